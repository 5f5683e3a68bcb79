/*
 * An act on very many jobs, at the keyboard of the real console: how long the question takes, when
 * progress is first seen, how soon Ctrl-C stops it, how long all of it takes, and the console's
 * memory. tests/bench/bulk.sh makes the jobs and the load beside, and calls it:
 *   bench_bulk requeue|purge CONNINFO
 * Lines of `name TAB value`; judges nothing.
 */
#include "tests/harness.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

static struct {
    const char *act, *dsn;
    char of[40], over[40]; /* the total, as the progress box and the final message print it */
} bulk;

static double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
give_up(struct vt *vt, const char *text)
{
    fprintf(stderr, "%s\n", vt_screen_text(vt));
    fail_msg("did not come: %s", text);
}

/* Returns the milliseconds until the text is on the screen; gives up after most_s seconds. */
static double
until(struct vt *vt, const char *text, int most_s)
{
    double start = now_ms();

    while (!vt_find(vt, text, NULL, NULL)) {
        struct pollfd p = {vt->fd, POLLIN, 0};

        if (vt->has_ended || now_ms() - start > most_s * 1e3)
            give_up(vt, text);
        poll(&p, 1, 100);
        vt_pump(vt);
    }
    return now_ms() - start;
}

/* The whole number before a text on the screen, without its commas; 0 = not there. */
static long long
number_before(struct vt *vt, const char *text)
{
    int row, col;
    long long n = 0;

    if (!vt_find(vt, text, &row, &col))
        return 0;
    const char *line = vt_row(vt, row), *at = strstr(line, text);
    const char *s = at;
    while (s > line && (strchr("0123456789,", s[-1])))
        s--;
    for (; s < at; s++)
        n = *s == ',' ? n : n * 10 + (*s - '0');
    return n;
}

static double
until_progress(struct vt *vt)
{
    double start = now_ms();

    while (number_before(vt, bulk.of) == 0 && !vt_find(vt, bulk.over, NULL, NULL)) {
        struct pollfd p = {vt->fd, POLLIN, 0};

        if (vt->has_ended || now_ms() - start > 60e3)
            give_up(vt, "progress");
        poll(&p, 1, 20);
        vt_pump(vt);
    }
    return now_ms() - start;
}

/* Opens the question of the act from its screen; returns the number that must be typed. */
static double
ask(struct vt *vt, char *number, size_t size)
{
    if (!strcmp(bulk.act, "requeue")) {
        vt_keys(vt, "3");
        vt_settle(vt, 200); /* its rows are asked for anew */
        until(vt, "the newest of", 60);
        vt_keys(vt, "R");
    } else {
        vt_keys(vt, "1");
        until(vt, "queue1", 60);
        vt_keys(vt, "P");
        until(vt, "Purge finished jobs", 60);
        vt_keys(vt, "space tab tab C-u text:1m enter");
    }
    double took = until(vt, "Type the number", 120);
    long long n = number_before(vt, " jobs →");
    snprintf(number, size, "%lld", n);
    return took;
}

static int64_t
batches(PGconn *c)
{
    return pg_int(c,
                  "select count(*) from queues.audit_batch b join queues.audit a using (action) "
                  "where a.verb = '%s'",
                  bulk.act);
}

/* " of 1,000,000 " */
static void
note_total(const char *number)
{
    size_t len = strlen(number), at = 4;

    snprintf(bulk.over, sizeof bulk.over, "%s: ", bulk.act);
    memcpy(bulk.of, " of ", 5);
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            bulk.of[at++] = ',';
        bulk.of[at++] = number[i];
    }
    memcpy(bulk.of + at, " ", 2);
}

static void
type_number(struct vt *vt, const char *number)
{
    char keys[64];

    note_total(number);
    snprintf(keys, sizeof keys, "text:%s enter", number);
    vt_keys(vt, keys);
}

static void
at_the_keyboard(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), bulk.dsn, NULL};
    PGconn *c = pg_connect(bulk.dsn);
    char number[32];
    struct vt vt;

    (void)state;
    vt_spawn(&vt, 24, 80, argv, NULL);
    until(&vt, "live", 60);
    printf("RSS before, MiB\t%.1f\n", (double)proc_number(vt.pid, "VmRSS:") / 1024);
    printf("preview, s\t%.2f\n", ask(&vt, number, sizeof number) / 1e3);
    printf("rows\t%s\n", number);
    type_number(&vt, number);
    printf("first progress, s\t%.2f\n", until_progress(&vt) / 1e3);
    while (number_before(&vt, " of ") < strtoll(number, NULL, 10) / 4) {
        if (vt_find(&vt, bulk.over, NULL, NULL))
            fail_msg("%s rows are done before they could be stopped: more are needed", number);
        until_progress(&vt), vt_settle(&vt, 1);
    }
    vt_keys(&vt, "C-c");
    int64_t before = batches(c);
    double stop = until(&vt, "stopped before the rest", 60);
    printf("stop, s\t%.2f\n", stop / 1e3);
    printf("batches after Ctrl-C\t%lld\n", (long long)(batches(c) - before));
    vt_keys(&vt, "esc");
    vt_gone(&vt, "slowest batch");
    double again = ask(&vt, number, sizeof number);
    printf("preview of the rest, s\t%.2f\n", again / 1e3);
    type_number(&vt, number);
    double took = until(&vt, bulk.over, 3600);
    printf("rows a second\t%.0f\n", strtod(number, NULL) / took * 1e3);
    printf("RSS most, MiB\t%.1f\n", (double)proc_number(vt.pid, "VmHWM:") / 1024);
    vt_keys(&vt, "esc q");
    vt_exit_status(&vt);
    vt_done(&vt);
    PQfinish(c);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_the_keyboard)};

    if (argc != 3) {
        fputs("usage: bench_bulk requeue|purge CONNINFO\n", stderr);
        return 2;
    }
    bulk.act = argv[1];
    bulk.dsn = argv[2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests_name("bulk", tests, NULL, NULL);
}
