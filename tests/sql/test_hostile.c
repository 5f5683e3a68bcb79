/*
 * A producer that wants to stop everybody else: values that are valid to PostgreSQL and that no
 * claim, step or act may stumble over. Whatever is accepted, other queues go on.
 */
#include "tests/sql/core.h"

#include <string.h>

static void
refused(PGconn *c, const char *sql, const char *text)
{
    PGresult *res = PQexec(c, sql);

    assert_int_equal(PQresultStatus(res), PGRES_FATAL_ERROR);
    if (strstr(PQresultErrorMessage(res), text) == NULL)
        fail_msg("%s: %s", sql, PQresultErrorMessage(res));
    PQclear(res);
}

/* A lease ends at now() + the longest timeout of its jobs: that must be a time, or no claim works.
 */
static void
timeouts_that_overflow(void **state)
{
    PGconn *c = core_new("hostile_timeouts");

    (void)state;
    refused(c, "insert into queue (queue, lease_timeout) values ('q', '178000000 years')", "365 d");
    refused(c, "insert into queue (queue, run_timeout) values ('q', '366 days')", "365 days at");
    refused(c,
            "insert into queue (queue, lease_timeout) values ('q', make_interval(months =>"
            " -71582788, days => 2147483647))",
            "out of range");
    refused(c, "select push('q', run_timeout => '-1 month 31 days 9000 hours')", "365 days at");
    pg_run(c, "insert into queue (queue, lease_timeout, run_timeout) values ('q', '365 days',"
              " '365 days')");
    core_settle(c);
    expect(c, "1", "select count(*) from claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

/* Times at the ends of what a timestamp can be, for every column that a push may give. */
static void
times_without_end(void **state)
{
    PGconn *c = core_new("hostile_times");

    (void)state;
    pg_run(c, "insert into queue (queue, run_after, concurrency_key) select 'at', t::timestamptz, k"
              " from unnest('{infinity,-infinity,294276-12-31,4714-11-24 BC}'::text[]) t,"
              " unnest('{a,null}'::text[]) k");
    pg_run(c, "insert into queue (queue, expires_at) select 'end', t::timestamptz"
              " from unnest('{infinity,-infinity,294276-12-31,4714-11-24 BC}'::text[]) t");
    pg_run(c, "insert into queue (queue, max_tries, concurrency_key) values ('t', 32767, '')");
    pg_run(c, "select t.push('q', 'honest')");
    for (int i = 0; i < 4; i++) {
        core_second(c);
        core_settle(c);
        pg_run(c, "select complete('n', lease, version, seq) from claim('n', 99)");
        core_check(c);
    }
    expect(c, "scheduled:4",
           "select string_agg(distinct state || ':' || n, ',') from (select"
           " state, count(*) as n from queue group by state) z");
    expect(c, "1", "select count(*) from history where queue = 'q' and state = 'completed'");
    PQfinish(c);
}

/* An act on what is not there answers so, as its neighbours do. */
static void
schedule_that_is_not(void **state)
{
    PGconn *c = core_new("hostile_schedule");

    (void)state;
    expect(c, "not found",
           "select why from schedule_run('00000000-0000-7000-8000-000000000001', 'nope')");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_that_overflow),
        cmocka_unit_test(times_without_end),
        cmocka_unit_test(schedule_that_is_not),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
