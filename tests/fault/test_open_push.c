/*
 * A transaction that has pushed and stays open: a worker that comes meanwhile can't wait to be
 * woken, as its push would wake nobody any more. It looks again and again, less and less often.
 */
#include "tests/fault/queue_fixture.h"
#include "tests/harness.h"
#include "tests/proc.h"
#include "tests/server.h"

#include <stdio.h>

enum { WAIT_MS = 60000, MOST_CALLS = 150 /* in 2.5 s; one call every 2 ms would make 1000 */ };

static void
a_worker_beside_it_costs_little(void **state)
{
    char dsn[400];
    struct proc p;
    PGconn *conn, *open;

    (void)state;
    conn = queue_in_newdb(dsn, "open");
    pg_run(conn, "alter database open set track_functions = 'pl'");
    open = pg_connect(dsn);
    pg_run(open, "begin; insert into queues.queue (queue) values ('q')");
    proc_queuetop(&p, NULL, "-d \"%s\" work -- true", dsn);
    proc_want(&p, "is up");
    pg_wait(conn, "select max(started) < now() - interval '2500 ms' from queues.node", "t",
            WAIT_MS);
    pg_wait(conn, /* the server counts what a session reports: once a second */
            "select coalesce(max(calls), 0) >= 5 from pg_stat_user_functions where funcname = "
            "'claim_or_wait'",
            "t", WAIT_MS);
    int64_t calls = pg_int(conn, "select calls from pg_stat_user_functions where funcname ="
                                 " 'claim_or_wait'");
    assert_in_range(calls, 5, MOST_CALLS);
    pg_run(open, "commit");
    pg_wait(conn, "select count(*) from queues.history", "1", WAIT_MS);
    proc_done(&p);
    PQfinish(open);
    PQfinish(conn);
}

static int
setup(void **state)
{
    (void)state;
    pg_start(NULL);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    pg_stop();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_beside_it_costs_little),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
