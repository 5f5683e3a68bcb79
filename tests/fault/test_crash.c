/*
 * 2,000 jobs and four worker processes. One is killed with -9 while its commands run; one is
 * stopped with SIGSTOP for longer than its leases last, and goes on after its commands have ended.
 * The command notes each of its runs in a file. In the end every job is completed exactly once in
 * the queue's books, none is lost, the late answers of the stopped worker were refused, and the
 * number of runs is exactly the number of jobs and of counted losses.
 */
#include "tests/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/server.h"

enum { JOBS = 2000, WORKERS = 4, SLOTS = 4, WAIT_MS = 120000 };

static const char *const names[WORKERS] = {"killed", "stopped", "calm", "quiet"};

/* One line a run. With the file `hang` in place, the commands of one node never end, and those of
 * another end when somebody has opened the pipe `gate` and closed it. */
static const char script[] = "echo \"$QUEUETOP_JOB_ID\" >>runs\n"
                             "test -e hang || exit 0\n"
                             "case $QUEUETOP_NODE in\n"
                             "killed) echo >>waiting; exec tail -f /dev/null ;;\n"
                             "stopped) echo >>waiting; read line <gate; exit 0 ;;\n"
                             "esac\n";

static void
write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int
count_lines(const char *name)
{
    FILE *f = fopen(name, "re");
    int n = 0;

    assert_non_null(f);
    for (int c; (c = fgetc(f)) != EOF;)
        n += c == '\n';
    fclose(f);
    return n;
}

static void
push_all(const char *dsn)
{
    size_t size = JOBS * 8;
    char *lines = calloc(1, size), *out = NULL;
    int n = 0;

    assert_non_null(lines);
    for (int i = 0, at = 0; i < JOBS; i++)
        at += snprintf(lines + at, size - (size_t)at, "%d\n", i);
    assert_int_equal(proc_run(lines, &out, NULL, "-d \"%s\" push crash - --lines", dsn), 0);
    for (const char *at = out; *at; at++)
        n += *at == '\n';
    assert_int_equal(n, JOBS);
    free(lines);
    free(out);
}

static void
start_all(struct proc *workers, const char *dsn)
{
    for (int i = 0; i < WORKERS; i++)
        proc_queuetop(&workers[i], NULL,
                      "-d \"%s\" work --jobs %d --timeout 15s --node %s -- sh ./command", dsn,
                      SLOTS, names[i]);
}

/* All slots of both are full of commands that wait, and both hold leases for these commands. */
static void
wait_until_full(PGconn *conn)
{
    for (int left_ms = WAIT_MS; count_lines("waiting") < 2 * SLOTS; left_ms -= 10) {
        assert_true(left_ms > 0);
        poll(NULL, 0, 10);
    }
    pg_wait(
        conn,
        "select string_agg(lock_key || n, ' ' order by lock_key) from "
        "(select lock_key, sum(cardinality(case when all_started then seqs else started_seqs end)) "
        " as n from queues.work_queue"
        " where lock_key in ('killed', 'stopped') group by 1) z",
        "killed4 stopped4", WAIT_MS);
}

static void
open_gate(void)
{
    int fd = open("gate", O_RDWR | O_CLOEXEC); /* both ends: opening never waits */

    assert_true(fd >= 0);
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(write(fd, "go\n", 3), 3);
    unlink("gate"); /* those that come later find none, and end */
    close(fd);
}

static void
check_books(PGconn *conn)
{
    int64_t lost = pg_int(conn, "select count(*) from queues.attempt where outcome = 'lost'");

    assert_int_equal(pg_int(conn, "select count(*) from queues.queue"), 0);
    assert_int_equal(pg_int(conn, "select count(*) from queues.history"), JOBS);
    assert_int_equal(pg_int(conn, "select count(distinct id) from queues.history "
                                  "where state = 'completed'"),
                     JOBS);
    assert_int_equal(pg_int(conn, "select count(distinct payload::text) from queues.history"),
                     JOBS);
    assert_int_equal(lost, 2 * SLOTS);
    assert_int_equal(pg_int(conn, "select count(*) from queues.attempt"), lost);
    assert_int_equal(count_lines("runs"), JOBS + lost);
}

static void
every_job_is_completed_once(void **state)
{
    struct proc workers[WORKERS] = {0}, scheduler = {0};
    const char *dsn = pg_newdb("crash");
    PGconn *conn = pg_connect(dsn);

    (void)state;
    write_file("command", script);
    write_file("waiting", "");
    assert_int_equal(mkfifo("gate", 0600), 0);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    push_all(dsn);
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", dsn);
    start_all(workers, dsn);
    pg_wait(conn, "select count(*) >= 100 from queues.history", "t", WAIT_MS);
    write_file("hang", "");
    wait_until_full(conn);

    kill(workers[0].pid, SIGKILL);
    kill(workers[1].pid, SIGSTOP);
    pg_wait(conn, "select count(*) from queues.attempt where outcome = 'lost'", "8", WAIT_MS);
    unlink("hang");
    open_gate();
    pg_wait(conn, "select count(*) from queues.history", "2000", WAIT_MS);
    kill(workers[1].pid, SIGCONT);
    /* Its answers are refused; or a heartbeat comes first, and it kills its commands. */
    proc_want(&workers[1], "the lease is lost");

    for (int i = 1; i < WORKERS; i++)
        kill(workers[i].pid, SIGTERM);
    for (int i = 1; i < WORKERS; i++)
        assert_int_equal(proc_wait(&workers[i]), 0);
    proc_want(&workers[1], "4 lost");
    check_books(conn);
    kill(scheduler.pid, SIGTERM);
    assert_int_equal(proc_wait(&scheduler), 0);
    for (int i = 0; i < WORKERS; i++)
        proc_done(&workers[i]);
    proc_done(&scheduler);
    PQfinish(conn);
}

static int
set_up(void **state)
{
    (void)state;
    if (chdir(getenv("TMPDIR")) != 0)
        return -1;
    pg_start(NULL);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    pg_stop();
    unlink("command");
    unlink("runs");
    unlink("hang");
    unlink("gate");
    unlink("waiting");
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_job_is_completed_once)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
