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
        pg_run(c, "select complete_job('n', lease, version, seq) from claim('n', 99)");
        core_check(c);
    }
    expect(c, "scheduled:4",
           "select string_agg(distinct state || ':' || n, ',') from (select"
           " state, count(*) as n from queue group by state) z");
    expect(c, "1", "select count(*) from history where queue = 'q' and state = 'completed'");
    PQfinish(c);
}

/* The slots of the nodes decide how many jobs are kept ready: neither one node nor many of them can
 * make a step fail. */
static void
slots_without_bound(void **state)
{
    static const char *const wrong[] = {"2147483647", "1001", "0", "-1"};
    PGconn *c = core_new("hostile_slots");

    (void)state;
    for (int i = 0; i < 4; i++) {
        char ask[200];
        snprintf(ask, sizeof ask,
                 "select node_start('n', gen_random_uuid(), 'h', 1, 'v', 1, null, %s)", wrong[i]);
        refused(c, ask, "has 1 to 1000 slots, not");
    }
    pg_run(c, "select node_start('n' || i, gen_random_uuid(), 'h', 1, 'v', 1, null, 1000)"
              " from generate_series(1, 30) i");
    pg_run(c, "insert into node (lock_key, session, slots) select 'm' || n, gen_random_uuid(), n"
              " from unnest('{2147483647,2147483646,-2147483648}'::int[]) n");
    pg_run(c, "update node set heartbeat = now() + interval '1 h'; select t.many('q', 'j', 100)");
    core_settle(c);
    expect(c, "20000", "select want from tick order by tick desc limit 1");
    expect(c, "7", "select count(*) from claim('n1', 7)");
    core_check(c);
    PQfinish(c);
}

/* The clock of a node: any number is an interval, and a NULL is no number. */
static void
clocks_without_bound(void **state)
{
    static const struct {
        const char *ahead, *want;
    } clocks[] = {
        {"9223372036854775807",  "876000:00:00" },
        {"-9223372036854775808", "-876000:00:00"},
        {"null",                 ""             },
        {"-1",                   "-00:00:00.001"},
    };
    PGconn *c = core_new("hostile_clocks");

    (void)state;
    pg_run(c, "select node_start('n', '00000000-0000-0000-0000-000000000001', 'h', 1, 'v', 1,"
              " null, 1)");
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        char tell[150];
        snprintf(tell, sizeof tell,
                 "select node_clock('n', '00000000-0000-0000-0000-000000000001', %s)",
                 clocks[i].ahead);
        pg_run(c, "%s", tell);
        expect(c, clocks[i].want, "select coalesce(clock_ahead::text, '') from node");
    }
    PQfinish(c);
}

/* The call that takes a number or a time from a worker or an operator refuses a wrong one. */
static void
numbers_without_bound(void **state)
{
    static const struct {
        const char *ask, *text;
    } wrong[] = {
        {"select claim('n', 1, '1000000 years')",                                            "longer than 365 days"},
        {"select claim('n', 1, '366 days')",                                                 "longer than 365 days"},
        {"select claim_or_wait('n', 1, '366 days')",                                         "longer than 365 days"},
        {"select extend('n', '{1}'::bigint[], '{1}', '366 days')",                           "365 days at most"    },
        {"select extend_leases(gen_random_uuid(), 1, null, 'n', '366 days')",                "365 days at most"    },
        {"select fail('n', '{1}'::bigint[], '{1}', '{1}', '{x}', retry_in => '{366 days}')",
         "within 365 days"                                                                                         },
        {"update setting set value = '1000000000 days' where name = 'node_keep'",            "setting_time"        },
        {"update setting set value = 'soon' where name = 'node_dead'",                       "interval"            },
        {"update setting set value = '-1' where name = 'error_limit'",                       "setting_number"      },
    };
    PGconn *c = core_new("hostile_numbers");

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(c, wrong[i].ask, wrong[i].text);
    pg_run(c,
           "insert into queue_config (queue, chunk) values ('q', 1); select t.many('q', 'j', 300)");
    core_settle(c);
    expect(c, "f", "select count(*) = 0 from claim('n', 2147483647)");
    pg_run(c, "select t.push('q', 'a')");
    expect(c, "t", "select bool_and(lease is not null) from claim_or_wait('n', 2147483647)");
    core_check(c);
    PQfinish(c);
}

/* A schedule that runs all its missed times is 60 days behind: an int can't hold so many
 * milliseconds. */
static void
a_schedule_far_behind(void **state)
{
    PGconn *c = core_new("hostile_behind");

    (void)state;
    pg_run(c, "select schedule_set(gen_random_uuid(), 's', '{\"cron\": \"* * * * *\", \"queue\":"
              " \"q\", \"catch_up\": \"all\"}'); update schedule set next_run = next_run - "
              "interval '60 days', runs_from = null");
    expect(c, "t", "select active and wait_ms = 0 from schedule('test')");
    expect(c, "100", "select count(*) from queue");
    pg_run(c, "update tick set cron_at = null");
    expect(c, "t", "select active from schedule('test')");
    expect(c, "200", "select count(*) from queue");
    PQfinish(c);
}

/* As many tries as the column holds: the last one is counted, and a requeue allows one more. */
static void
tries_without_end(void **state)
{
    PGconn *c = core_new("hostile_tries");

    (void)state;
    pg_run(c, "select push('q', '{\"name\": \"a\"}', max_tries => 32767), t.push('q', 'b')");
    pg_run(
        c,
        "update queue set tries = 32766 where max_tries is not null; update queue set max_tries = 1"
        " where max_tries is null");
    for (int i = 0; i < 2; i++) {
        core_settle(c);
        expect(c, "2", "select count(*) from regexp_split_to_table(t.claim('n', 2), ',')");
        expect(c, "failed,failed", "select t.fail('n', 'a,b')");
        expect(c, i ? "3" : "1", "select min(tries) from queue");
        expect(c, "32767", "select max(tries) from queue");
        pg_run(c, "select requeue(gen_random_uuid(), 1, array(select id from queue))");
        expect(c, "ready,ready", "select string_agg(state::text, ',') from queue");
        if (i == 0) { /* a lost lease counts, too */
            core_settle(c);
            expect(c, "2", "select count(*) from regexp_split_to_table(t.claim('n', 2), ',')");
            core_expire(c, "n");
            core_second(c);
            core_settle(c);
            expect(c, "failed,failed", "select string_agg(state::text, ',') from queue");
            pg_run(c, "select requeue(gen_random_uuid(), 1, array(select id from queue))");
        }
    }
    core_check(c);
    PQfinish(c);
}

/* An act on a schedule that does not exist answers "not found", as the other acts do. */
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
        cmocka_unit_test(timeouts_that_overflow), cmocka_unit_test(times_without_end),
        cmocka_unit_test(slots_without_bound),    cmocka_unit_test(clocks_without_bound),
        cmocka_unit_test(numbers_without_bound),  cmocka_unit_test(a_schedule_far_behind),
        cmocka_unit_test(tries_without_end),      cmocka_unit_test(schedule_that_is_not),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
