/*
 * Faults while a worker waits for work, when nothing but its own looks can tell: its backend stands
 * still, the network swallows everything without an end, the connection breaks. It looks once a
 * second, gives a call eight seconds of silence and connects anew: so it is back within fifteen,
 * with what was pushed meanwhile, each job once.
 */
#include "tests/harness.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "tests/fault/queue_fixture.h"
#include "tests/fault/relay.h"
#include "tests/proc.h"
#include "tests/server.h"

/* The bound for a program that notices the loss. Otherwise the kernel gives up after a quarter of
 * an hour for sent data, and after hours without any. So a bound far above the delays of a busy
 * machine proves as much as a small one. */
enum { WAIT_MS = 60000 };

static char dsn[400];
static PGconn *conn;
static struct relay relay;
static struct proc worker;

static const char waiting[] =
    "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and pid "
    "in (select backend_pid from queues.node)";

static void
enter(const char *name)
{
    conn = queue_in_newdb(dsn, name);
    relay_start(&relay, NULL);
    proc_queuetop(&worker, NULL, "-d \"host=%s user=%s dbname=%s\" work --node w -- true",
                  relay.dir, PQuser(conn), name);
    proc_want(&worker, "is up");
    pg_wait(conn, waiting, "1", WAIT_MS);
}

/* A job that is pushed now is worked at its first try, and then the worker waits again. */
static void
works_next(const char *n)
{
    pg_run(conn, "select queues.push('q')");
    pg_wait(conn, "select count(*) from queues.history where state = 'completed' and tries = 1", n,
            WAIT_MS);
    pg_wait(conn, waiting, "1", WAIT_MS);
}

static void
leave(void)
{
    assert_string_equal(pg_value(conn, "select count(*) from queues.attempt"), "0");
    proc_ends(&worker);
    proc_done(&worker);
    relay_stop(&relay);
    PQfinish(conn);
}

/* Between two looks: one that is stopped within a step holds the scheduler's lock, and everybody
 * waits with it. */
static pid_t
stop_backend(void)
{
    for (;; poll(NULL, 0, 5)) {
        pid_t backend = (pid_t)pg_int(conn, "select backend_pid from queues.node");
        assert_int_equal(kill(backend, SIGSTOP), 0);
        const char *is =
            pg_value(conn, "select state from pg_stat_activity where pid = %d", (int)backend);
        if (!strcmp(is, "idle"))
            return backend;
        kill(backend, SIGCONT);
    }
}

static void
its_backend_stands_still(void **state)
{
    (void)state;
    enter("still");
    pid_t backend = stop_backend();
    works_next("1");
    kill(backend, SIGCONT);
    works_next("2");
    leave();
}

static void
the_network_falls_silent(void **state)
{
    (void)state;
    enter("silent");
    relay_silence(&relay);
    works_next("1");
    relay_silence(&relay); /* and once more */
    works_next("2");
    leave();
}

static void
the_connection_breaks(void **state)
{
    (void)state;
    enter("broken");
    relay_break(&relay);
    works_next("1");
    leave();
}

/* The job that runs then keeps its lease, is finished, and answered for once. */
static void
silence_while_a_job_runs(void **state)
{
    char gate[300], sql[100];

    (void)state;
    enter("busy");
    proc_ends(&worker);
    proc_done(&worker);
    snprintf(gate, sizeof gate, "%s/gate", getenv("TMPDIR"));
    assert_int_equal(mkfifo(gate, 0600), 0);
    proc_queuetop(&worker, NULL,
                  "-d \"host=%s user=%s dbname=busy\" work --timeout 30s -- sh -c 'read x <%s'",
                  relay.dir, PQuser(conn), gate);
    pg_run(conn, "select queues.push('q')");
    pg_wait(conn,
            "select count(*) from queues.work_queue where all_started or started_seqs <> '{}'", "1",
            WAIT_MS);
    snprintf(sql, sizeof sql, "select backend_pid <> %s from queues.node",
             pg_value(conn, "select backend_pid from queues.node"));
    relay_silence(&relay);
    pg_wait(conn, sql, "t", WAIT_MS); /* a heartbeat by another connection */
    FILE *out = fopen(gate, "we");
    assert_non_null(out);
    fputs("go\n", out);
    fclose(out);
    unlink(gate);
    pg_wait(conn, "select state::text || tries from queues.history", "completed1", WAIT_MS);
    leave();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_backend_stands_still),
        cmocka_unit_test(the_network_falls_silent),
        cmocka_unit_test(the_connection_breaks),
        cmocka_unit_test(silence_while_a_job_runs),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
