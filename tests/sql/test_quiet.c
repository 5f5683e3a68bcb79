/*
 * A prepared transaction (two-phase commit) must not have notified, so a session or a role can say
 * that its pushes wake nobody. A waiting worker looks once a second, and finds such a push then.
 */
#include "tests/sql/core.h"

#include <stdio.h>

static int
setup(void **state)
{
    (void)state;
    pg_start(&(struct pg_opts){.conf = "max_prepared_transactions = 4\n"});
    return 0;
}

/* The answer of claim_or_wait in the session of a worker: "waits", or the name of the job. */
static const char *
claim_or_wait(PGconn *worker, int listening)
{
    return pg_value(worker,
                    "select coalesce(payload ->> 'name', case when slot = 0 then 'waits' end) from "
                    "claim_or_wait('w', 1, backend_pid => %d, listening => %d)",
                    PQbackendPID(worker), listening);
}

static void
a_push_is_prepared_while_a_worker_waits(void **state)
{
    PGconn *c = core_new("quiet"), *worker = core_join("quiet");

    (void)state;
    core_settle(c);
    assert_string_equal(claim_or_wait(worker, 0), "waits");
    assert_string_equal(pg_try(c, "begin; select t.push('q', 'a'); prepare transaction 'loud'"),
                        "0A000"); /* it has notified */
    pg_run(c, "rollback");
    pg_run(c, "set queuetop.quiet = on");
    pg_run(c,
           "begin; select t.push('q', 'b'), push_many(null, '{q}', payloads => '{\"{\\\"name\\\": "
           "\\\"c\\\"}\"}'); prepare transaction 'quiet'");
    assert_string_equal(claim_or_wait(worker, 0),
                        "waits"); /* one that stays prepared keeps no worker from waiting */
    pg_run(c, "commit prepared 'quiet'");
    assert_string_equal(claim_or_wait(worker, 0), "b");
    assert_string_equal(claim_or_wait(worker, 0), "c");
    core_check(c);
    PQfinish(worker);
    PQfinish(c);
}

/* Only a session that asks for it is quiet: every other session's push still wakes a worker. */
static void
who_does_not_say_so_wakes(void **state)
{
    PGconn *c = core_new("loud"), *worker = core_join("loud");

    (void)state;
    core_settle(c);
    assert_string_equal(claim_or_wait(worker, -1), "waits"); /* listens from here on */
    assert_string_equal(claim_or_wait(worker, 0), "waits");
    pg_run(c, "set queuetop.quiet = on; select t.push('q', 'a')");
    pg_run(worker, "select 1");
    assert_null(PQnotifies(worker));
    pg_run(c, "set queuetop.quiet = off; select t.push('q', 'b')");
    pg_run(worker, "select 1");
    PGnotify *note = PQnotifies(worker);
    assert_non_null(note);
    PQfreemem(note);
    PQfinish(worker);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_prepared_while_a_worker_waits),
        cmocka_unit_test(who_does_not_say_so_wakes),
    };

    return cmocka_run_group_tests(tests, setup, core_teardown);
}
