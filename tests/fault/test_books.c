/*
 * The books beside the steps: a running `queuetop schedule` repairs counters and fills minutes by a
 * second connection, whose loss or failure never stops the steps; who stands by keeps none.
 */
#include "tests/harness.h"

#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/fault/queue_fixture.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 60000 };

static char dsn[400];
static PGconn *conn;

static const char keepers[] = "select count(*) from pg_stat_activity where application_name = "
                              "'queuetop books' and datname = current_database()";
static const char repairs[] = "select coalesce(sum(repairs), 0) from queues.checked";

static void
enter(const char *name)
{
    conn = queue_in_newdb(dsn, name);
    pg_run(conn, "insert into queues.queue (queue) select 'q' from generate_series(1, 3)");
    pg_run(conn, "insert into queues.delta (queue, priority, ready) values ('q', 5, 7)");
}

static void
become(const char *sql, const char *wanted)
{
    for (int ms = 0; ms < WAIT_MS; ms += 10) {
        if (!strcmp(pg_value(conn, "%s", sql), wanted))
            return;
        poll(NULL, 0, 10);
    }
    fail_msg("%s: %s, not %s", sql, pg_value(conn, "%s", sql), wanted);
}

static void
start(struct proc *p, const char *name, const char *becomes)
{
    char text[100];

    proc_queuetop(p, NULL, "-d \"%s\" schedule --name %s", dsn, name);
    snprintf(text, sizeof text, "scheduler %s %s", name, becomes);
    proc_want(p, text);
}

static void
a_wrong_counter_is_repaired(void **state)
{
    struct proc a;

    (void)state;
    enter("repair");
    become("select ready from queues.overview()", "10");
    start(&a, "a", "is active");
    become(repairs, "1");
    become("select ready from queues.overview()", "3");
    assert_string_equal(pg_value(conn, "select count(*) from queues.audit where verb = "
                                       "'repair counters' and app = 'queuetop books'"),
                        "1");
    proc_ends(&a);
    become(keepers, "0");
    PQfinish(conn);
}

/* A kept fold by hand and nothing to fold after it: no other fold rolls it up. */
static void
minutes_are_filled(void **state)
{
    struct proc a;

    (void)state;
    enter("minutes");
    pg_run(conn, "update queues.fold set at = at - interval '1 min'");
    pg_run(conn, "select queues.fold_now()");
    assert_string_equal(pg_value(conn, "select count(*) from queues.minute"), "0");
    start(&a, "a", "is active");
    become("select coalesce(sum(pushed), 0) from queues.minute", "3");
    proc_ends(&a);
    PQfinish(conn);
}

static void
only_who_is_active_keeps_them(void **state)
{
    struct proc a, b;

    (void)state;
    enter("active");
    start(&a, "a", "is active");
    become(keepers, "1");
    start(&b, "b", "stands by");
    become(repairs, "1");
    become("select count(*) > 1 from queues.tick", "t");
    assert_string_equal(pg_value(conn, "%s", keepers), "1");
    kill(a.pid, SIGKILL);
    proc_wait(&a);
    proc_done(&a);
    proc_want(&b, "scheduler b is active");
    become(keepers, "1");
    proc_ends(&b);
    PQfinish(conn);
}

static void
step_goes_on(const char *queue)
{
    char sql[200];

    pg_run(conn, "insert into queues.queue (queue) values ('%s')", queue);
    snprintf(sql, sizeof sql, "select count(*) from queues.work_queue where queue = '%s'", queue);
    become(sql, "1");
}

static void
its_failure_stops_nothing(void **state)
{
    struct proc a;

    (void)state;
    enter("fails");
    pg_run(conn, "alter function queues.keep_books() rename to kept_books");
    start(&a, "a", "is active");
    proc_want(&a, "keeping the books: ");
    step_goes_on("s");
    pg_run(conn, "alter function queues.kept_books() rename to keep_books");
    become(repairs, "1");
    pg_run(conn, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = "
                 "'queuetop books' and datname = current_database()");
    step_goes_on("t");
    become(keepers, "1");
    proc_ends(&a);
    PQfinish(conn);
}

/* A check waits for a lock: the steps do not. */
static void
its_length_stops_nothing(void **state)
{
    struct proc a;
    PGconn *other;

    (void)state;
    enter("long");
    other = pg_connect(dsn);
    pg_run(other, "begin; lock table queues.checked in access exclusive mode");
    start(&a, "a", "is active");
    become("select count(*) from pg_locks where not granted and relation = "
           "'queues.checked'::regclass",
           "1");
    step_goes_on("s");
    pg_run(other, "rollback");
    become(repairs, "1");
    proc_ends(&a);
    PQfinish(other);
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_counter_is_repaired),
        cmocka_unit_test(minutes_are_filled),
        cmocka_unit_test(only_who_is_active_keeps_them),
        cmocka_unit_test(its_failure_stops_nothing),
        cmocka_unit_test(its_length_stops_nothing),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
