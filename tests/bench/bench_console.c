/*
 * The console's figures (budgets: first frame < 50 ms, RSS < 16 MiB, key to frame p99 < 16 ms
 * whatever the server does, < 2 KB a refresh at 80x24, idle CPU < 0.1 %): the real program in a
 * terminal emulator, on a throwaway server with JOBS jobs (environment, default 100,000) in QUEUES
 * queues (50). Prints a table and judges nothing: `make bench T=console`.
 */
#include "tests/harness.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

enum { STARTS = 9, KEYS = 300, IDLE_MS = 15000, SETTLE_MS = 300000 };

static double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int
by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double
percentile(double *v, int n, double p)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[(int)((n - 1) * p)];
}

/* Reads output for ms milliseconds. The time is not measured. */
static void
listen_for(struct vt *vt, double ms)
{
    double end = now_ms() + ms;

    for (double left = ms; left > 0; left = end - now_ms()) {
        struct pollfd p = {vt->fd, POLLIN, 0};

        if (poll(&p, 1, (int)left + 1) > 0) {
            vt_pump(vt);
        }
    }
}

/* Milliseconds until the text is on the screen. */
static double
until(struct vt *vt, const char *text, double start)
{
    while (!vt_find(vt, text, NULL, NULL)) {
        struct pollfd p = {vt->fd, POLLIN, 0};

        assert_true(now_ms() - start < 20000);
        poll(&p, 1, 100);
        vt_pump(vt);
    }
    return now_ms() - start;
}

/* Milliseconds from a key to the frame in which the cursor stands on another row. */
static double
key_to_frame(struct vt *vt, const char *key)
{
    double start = now_ms();
    int before, row, col;

    vt_cursor(vt, &before, &col);
    vt_type(vt, key);
    do {
        struct pollfd p = {vt->fd, POLLIN, 0};

        if (now_ms() - start > 2000) {
            return 2000;
        }
        poll(&p, 1, 50);
        vt_pump(vt);
        vt_cursor(vt, &row, &col);
    } while (row == before);
    return now_ms() - start;
}

static void
keys(struct vt *vt, const char *what)
{
    double *took = calloc(KEYS, sizeof *took);

    for (int i = 0; i < KEYS; i++) {
        took[i] = key_to_frame(vt, i / 5 % 2 ? "k" : "j");
    }
    double p50 = percentile(took, KEYS, 0.5);
    double p99 = percentile(took, KEYS, 0.99);

    printf("%-34s p50 %7.2f ms  p99 %7.2f ms  max %7.2f ms  (%d keys)\n", what, p50, p99,
           took[KEYS - 1], KEYS);
    free(took);
}

/* User and system time of all threads, in milliseconds, from the scheduler's own account. */
static double
cpu_ms(pid_t pid)
{
    char path[64], line[64];

    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    return strtod(line, NULL) / 1e6;
}

static void
spawn(struct vt *vt, int rows, int cols)
{
    const char *argv[] = {getenv("QUEUETOP"), pg_dsn("bench"), NULL};

    vt_spawn(vt, rows, cols, argv, NULL);
}

static void
start_figures(int rows, int cols)
{
    double frame[STARTS], data[STARTS];

    for (int i = 0; i < STARTS; i++) {
        struct vt vt;
        double start = now_ms();

        spawn(&vt, rows, cols);
        frame[i] = until(&vt, "queuetop", start);
        data[i] = until(&vt, "queue-0", start);
        vt_keys(&vt, "q");
        vt_exit_status(&vt);
        vt_done(&vt);
    }
    printf("%dx%d first frame %33.1f ms   first data %6.1f ms   (median of %d)\n", cols, rows,
           percentile(frame, STARTS, 0.5), percentile(data, STARTS, 0.5), STARTS);
}

static void
idle_figures(struct vt *vt, const char *what)
{
    listen_for(vt, 2000);
    size_t bytes = vt->raw_len;
    double cpu = cpu_ms(vt->pid);
    long wakes = proc_number(vt->pid, "voluntary_ctxt_switches:");

    listen_for(vt, IDLE_MS);
    printf("%-34s %8.0f bytes/s  CPU %6.3f %%  wakeups %5.1f/s  RSS %5.1f MiB\n", what,
           (double)(vt->raw_len - bytes) * 1e3 / IDLE_MS, (cpu_ms(vt->pid) - cpu) * 100 / IDLE_MS,
           (double)(proc_number(vt->pid, "voluntary_ctxt_switches:") - wakes) * 1e3 / IDLE_MS,
           (double)proc_number(vt->pid, "VmRSS:") / 1024);
}

static void
stop_backends(PGconn *conn, int sig)
{
    PGresult *r = pg_query(conn, "select pid from pg_stat_activity "
                                 "where application_name like 'queuetop%%'");

    for (int i = 0; i < PQntuples(r); i++) {
        kill((pid_t)strtol(PQgetvalue(r, i, 0), NULL, 10), sig);
    }
    PQclear(r);
}

static void
figures(void **state)
{
    const char *jobs = getenv("JOBS") ? getenv("JOBS") : "100000",
               *queues = getenv("QUEUES") ? getenv("QUEUES") : "50";
    PGconn *conn = pg_connect(pg_newdb("bench"));
    char command[4096];
    struct vt vt;

    (void)state;
    snprintf(command, sizeof command, "%s install '%s' >/dev/null", getenv("QUEUETOP"),
             pg_dsn("bench"));
    assert_int_equal(pclose(popen(command, "re")), 0);
    pg_run(conn,
           "insert into queues.queue (queue, kind, payload) "
           "select 'queue-' || right('0000' || mod(i, %s), greatest(2, length('%s') - 1)), 'bench',"
           " '{\"n\": 1}' from generate_series(1, %s::int) i",
           queues, queues, jobs);
    pg_wait(conn,
            "select (select not joining and settled is null from queues.tick order by tick desc"
            " limit 1) from queues.schedule('bench') offset 0",
            "t", SETTLE_MS);
    pg_run(conn, "vacuum analyze");
    printf("%s jobs in %s queues\n", jobs, queues);
    start_figures(24, 80);
    start_figures(45, 140);

    spawn(&vt, 24, 80);
    vt_want(&vt, "queue-0");
    idle_figures(&vt, "80x24 idle, Queues");
    keys(&vt, "80x24 key to frame, idle");
    stop_backends(conn, SIGSTOP);
    keys(&vt, "80x24 key to frame, backend stopped");
    stop_backends(conn, SIGCONT);
    listen_for(&vt, 3000);
    vt_keys(&vt, "2");
    vt_want(&vt, "bench");
    idle_figures(&vt, "80x24 idle, Jobs");
    keys(&vt, "80x24 key to frame, Jobs");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures)};

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests_name("console", tests, pg_group_start, pg_group_stop);
}
