/*
 * claim_or_wait() looks, cuts and claims in one call. It must refuse what claim() refuses. Jobs
 * that are not for the worker must neither make it fail nor keep its own jobs from it.
 */
#include "tests/sql/core.h"

static PGconn *
fresh(const char *name)
{
    PGconn *c = core_new(name);

    pg_run(c, "insert into queue (queue) values ('q'), ('other')");
    core_settle(c);
    pg_run(c, "select complete_job('n', lease, version, seq) from claim('n', 9)");
    core_settle(c);
    return c;
}

/* A lease without a node would be free: two workers would work on it. */
static void
it_refuses_what_claim_refuses(void **state)
{
    static const char *const calls[] = {"null, 1",   "'', 1",         "repeat('n', 201), 1",
                                        "'n', null", "'n', 1, '0 s'", "'n', 1, '-1 h'"};
    PGconn *c = fresh("refuses");

    (void)state;
    pg_run(c, "insert into queue (queue) values ('q')");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_string_equal(pg_try(c, "select * from claim_or_wait(%s)", calls[i]), "QT007");
    expect(c, "0", "select count(*) from work_queue");
    expect(c, "1", "select count(*) from claim_or_wait('n', 1) where lease is not null");
    expect(c, "n", "select lock_key from work_queue");
    core_check(c);
    PQfinish(c);
}

/* No scheduler ran for months: a job is due so long that an int can't hold the milliseconds. */
static void
what_is_long_due_is_no_number(void **state)
{
    PGconn *c = fresh("due");

    (void)state;
    pg_run(c, "insert into queue (queue, run_after) values ('q', now() + interval '1 h')");
    pg_run(c, "update queue set run_after = now() - interval '40 days'");
    /* The place from which steps look for due jobs is of that time, too. A slow step that found
     * none would have moved it to now. */
    pg_run(c, "update tick set after = '-infinity', after_seq = 0");
    pg_run(c, "update scheduler set until = '-infinity'");
    expect(c, "-2", "select slot from claim_or_wait('n', 1, null, '{other}')");
    /* asked again, as a worker does: on a busy machine its step may come to an end too early */
    pg_wait(c, "select queue from claim_or_wait('n', 1)", "q", 60000);
    core_check(c);
    PQfinish(c);
}

/* Free jobs of a queue that no worker serves do not keep a worker from the jobs of another queue.
 */
static void
free_jobs_of_others_are_passed_by(void **state)
{
    PGconn *c = fresh("others");

    (void)state;
    pg_run(c, "insert into queue (queue) values ('other')");
    core_settle(c);
    expect(c, "1", "select count(*) from work_queue");
    expect(c, "-2", "select slot from claim_or_wait('n', 1, null, '{q}')");
    pg_run(c, "insert into queue (queue) values ('q')");
    expect(c, "q", "select queue from claim_or_wait('n', 1, null, '{q}')");
    expect(c, "other", "select queue from claim_or_wait('n', 1)");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_refuses_what_claim_refuses),
        cmocka_unit_test(what_is_long_due_is_no_number),
        cmocka_unit_test(free_jobs_of_others_are_passed_by),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
