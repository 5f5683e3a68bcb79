/*
 * The worker of the library with a function that does nothing: bench_worker CONNINFO SCHEMA SLOTS
 * [drain | LEDGER]. LEDGER gets a line a call: id, try, kind. A payload {"t": SECONDS} (since 1970,
 * as the pusher's server saw it) prints the milliseconds from then to the first call, one line a
 * job. A payload {"fail": N} makes the first N tries fail. The end says jobs/s and CPU on standard
 * error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/worker/queuetop.h"

static double
seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double first, last;
static FILE *ledger;

/* The number behind this name in the payload; 0 = there is none */
static double
number(const struct queuetop_task *task, const char *name)
{
    const char *at = task->payload ? strstr(task->payload, name) : NULL;

    if (at)
        at = strpbrk(at + strlen(name), "0123456789");
    return at ? strtod(at, NULL) : 0;
}

static enum queuetop_outcome
no_op(void *ctx, const struct queuetop_task *task)
{
    double t = number(task, "\"t\"");

    (void)ctx;
    if (ledger) {
        fprintf(ledger, "%s %d %s\n", task->id, task->try_number, task->kind);
        fflush(ledger); /* write each line at once: the bench kills this program */
    }
    last = seconds(CLOCK_MONOTONIC);
    if (first == 0)
        first = last;
    if (t > 0 && task->try_number == 1) {
        printf("%.3f\n", (seconds(CLOCK_REALTIME) - t) * 1000);
        fflush(stdout);
    }
    if (task->try_number > number(task, "\"fail\""))
        return QUEUETOP_DONE;
    queuetop_problem(task->run, "the bench lets it fail", NULL);
    return QUEUETOP_FAILED;
}

int
main(int argc, char **argv)
{
    struct queuetop_error e = {0};

    if (argc < 4) {
        fprintf(stderr, "usage: bench_worker CONNINFO SCHEMA SLOTS [drain | LEDGER]\n");
        return argc == 1 ? 0 : 2;
    }
    bool drain = argc > 4 && !strcmp(argv[4], "drain");
    if (argc > 4 && !drain && !(ledger = fopen(argv[4], "a"))) {
        perror(argv[4]);
        return 1;
    }
    struct queuetop_options o = {.conninfo = argv[1],
                                 .schema = argv[2],
                                 .jobs = (int)strtol(argv[3], NULL, 10),
                                 .drain = drain,
                                 .signals = true,
                                 .fn = no_op};
    struct queuetop_worker *w = queuetop_worker_new(&o, &e);
    if (!w || !queuetop_worker_run(w, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    struct queuetop_counts n = queuetop_worker_counts(w);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), took = last - first;
    fprintf(stderr, "%lld jobs, %.0f jobs/s, %.2f us of CPU a job\n", (long long)n.done,
            took > 0 ? (double)n.done / took : 0, n.done ? cpu * 1e6 / (double)n.done : 0);
    queuetop_worker_free(w);
    return 0;
}
