/*
 * Finished jobs are deleted when their queue's time is up: whole days by dropping their partitions,
 * shorter times in batches. A job that somebody is reading is not deleted (decision 16).
 */
#include "tests/sql/core.h"

#include <stdio.h>

/* Partitions of the last ten days, and one finished job of two queues at each noon. */
static void
ten_days(PGconn *c)
{
    pg_run(
        c,
        "set timezone = 'UTC';"
        "insert into queue_config (queue, retention) values ('long', '3 days'), ('short', '1 day');"
        "do $$ declare d date; p text; begin"
        "  foreach p in array '{history,attempt}'::text[] loop"
        "    for i in 1..10 loop"
        "      d := current_date - i;"
        "      execute format('create table %%1$I partition of %%2$I for values from (%%3$L) to "
        "(%%4$L)',"
        "        p || to_char(d, '_YYYYMMDD'), p, d::timestamptz, (d + 1)::timestamptz);"
        "    end loop;"
        "  end loop;"
        "end $$;"
        "insert into history (id, created, finished, state, priority, tries, queue, kind)"
        "  select uuid_v7(), now(), current_date - i + interval '12 h', 'completed', 5, 1, q, ''"
        "  from generate_series(1, 10) i, unnest('{long,short}'::text[]) q;"
        "insert into attempt (job, number, queue, ended, outcome)"
        "  select uuid_v7(), 1, 'long', current_date - i + interval '12 h', 'failed'"
        "  from generate_series(1, 10) i");
}

/* The next steps look after retention, until one has nothing more to do there. */
static void
retain(PGconn *c)
{
    pg_run(c, "update tick set day_at = '-infinity'");
    core_settle(c);
}

static const char *
days_left(PGconn *c, const char *table)
{
    return pg_value(c,
                    "select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid"
                    " where i.inhparent = '%s'::regclass"
                    " and case when relname ~ '_[0-9]{8}$' then to_date(right(relname, 8), "
                    "'YYYYMMDD') < current_date end",
                    table);
}

static void
whole_days_are_dropped(void **state)
{
    PGconn *c = core_new("whole_days");

    (void)state;
    ten_days(c);
    assert_string_equal(days_left(c, "history"), "10");
    pg_run(c, "begin; set local enable_nestloop = off; set local enable_mergejoin = off; "
              "set local enable_indexscan = off; set local enable_bitmapscan = off; "
              "select drop_days(); rollback"); /* by any plan */
    retain(c);
    /* three days back from this instant: parts of the third day are still wanted */
    assert_string_equal(days_left(c, "history"), "3");
    assert_string_equal(days_left(c, "attempt"), "3");
    expect(c, "3", "select count(*) from history where queue = 'long'");
    PQfinish(c);
}

static void
short_ones_are_trimmed(void **state)
{
    PGconn *c = core_new("trimmed");

    (void)state;
    ten_days(c);
    retain(c);
    expect(c, "t",
           "select bool_and(finished >= now() - interval '1 day') is not false from history"
           " where queue = 'short'");
    expect(c, "3", "select count(*) from history where queue = 'long'");
    /* more than one batch: the next step comes at once, and the one after it a minute later */
    pg_run(c, "insert into history (id, created, finished, state, priority, tries, queue, kind)"
              " select uuid_v7(), now(), now() - interval '30 h', 'completed', 5, 1, 'short', ''"
              " from generate_series(1, 4500)");
    pg_run(c, "update tick set day_at = '-infinity'; select schedule('test')");
    expect(c, "2500",
           "select count(*) from history where finished = (select max(finished) from "
           "history where queue = 'short' and finished < now() - interval '29 h')");
    expect(c, "t", "select day_at <= clock_timestamp() from tick order by tick desc limit 1");
    pg_run(c, "select schedule('test'); select schedule('test')");
    expect(c, "0",
           "select count(*) from history where queue = 'short'"
           " and finished < now() - interval '1 day'");
    expect(c, "t", "select day_at > clock_timestamp() from tick order by tick desc limit 1");
    PQfinish(c);
}

static void
a_reader_is_not_waited_for(void **state)
{
    PGconn *c = core_new("reader"), *reader = core_join("reader");

    (void)state;
    ten_days(c);
    pg_run(reader, "begin; select * from only history_%s limit 1",
           pg_value(c, "select to_char(current_date - 6, 'YYYYMMDD')"));
    pg_run(c, "set statement_timeout = '60s'"); /* waiting for the reader would run into this */
    retain(c);
    assert_string_equal(days_left(c, "history"), "4");
    expect(c, "t",
           "select day_at < clock_timestamp() + interval '10 s' from tick"
           " order by tick desc limit 1");
    pg_run(reader, "commit");
    retain(c);
    assert_string_equal(days_left(c, "history"), "3");
    PQfinish(reader);
    PQfinish(c);
}

/* A purge that is not committed yet has deleted some: the steps leave these alone. */
static void
a_purge_is_not_waited_for(void **state)
{
    PGconn *c = core_new("purged"), *other = core_join("purged");

    (void)state;
    ten_days(c);
    pg_run(c, "update queue_config set retention = '20 days' where queue = 'long'");
    pg_run(other,
           "begin; select purge(gen_random_uuid(), 1, 'short', null, now() - interval '7 d')");
    pg_run(c, "set statement_timeout = '60s'"); /* waiting would run into this */
    retain(c);
    expect(c, "t",
           "select min(finished) < now() - interval '7 d' and count(*) between 4 and 5"
           " from history where queue = 'short'");
    pg_run(other, "rollback");
    retain(c);
    expect(c, "t", "select count(*) <= 1 from history where queue = 'short'");
    PQfinish(other);
    PQfinish(c);
}

/* Somebody's ANALYZE of all days is in the way of a new one: the steps go on, and a later one makes
 * it. */
static void
an_analyze_is_not_waited_for(void **state)
{
    PGconn *c = core_new("analyze"), *other = core_join("analyze");
    static const char last[] =
        "select count(*) from pg_class where relispartition and relname ="
        " to_char(now() at time zone 'UTC' + interval '7 d', '\"%s_\"YYYYMMDD')";

    (void)state;
    pg_run(c, "select schedule('test')");
    pg_run(c,
           "do $$ begin execute format('drop table %%I, %%I', to_char(now() at time zone 'UTC' +"
           " interval '7 d', '\"history_\"YYYYMMDD'), to_char(now() at time zone 'UTC' + interval"
           " '7 d', '\"attempt_\"YYYYMMDD')); end $$");
    pg_run(other, "begin; analyze history");
    pg_run(c, "set statement_timeout = '60s'"); /* waiting would run into this */
    retain(c);
    expect(c, "0", last, "history");
    pg_run(other, "commit");
    retain(c);
    expect(c, "1", last, "history");
    expect(c, "1", last, "attempt");
    PQfinish(other);
    PQfinish(c);
}

/* A week and more without any scheduling step: what is written then are lost leases, expired jobs
 * and operators' acts, each before anybody has made the partitions of today. */
static void
nothing_fails_for_want_of_a_day(void **state)
{
    static const char *const first[] = {
        "select t.step()",
        "select release(gen_random_uuid(), 1, 'n', false, force => true)",
        ("select cancel(gen_random_uuid(), 1, array(select id from queue "
         "where state = 'scheduled'))"),
        "select keep_only('n', gen_random_uuid(), '{}')",
        "select t.back('n', 'b')",
    };

    (void)state;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        char name[16];
        snprintf(name, sizeof name, "noday%zu", i);
        PGconn *c = core_new(name);
        pg_run(c, "select t.push('q', 'a,b'); select push('q', delay => '1 h'); "
                  "select push('q', delay => '1 h', expires_at => now() + interval '2 h')");
        core_settle(c);
        pg_run(c, "select t.claim('n', 2)");
        core_expire(c, "n");
        core_second(c);
        pg_run(c, "do $$ declare p regclass; begin for p in select inhrelid::regclass from "
                  "pg_inherits where inhparent in ('history'::regclass, 'attempt'::regclass) loop "
                  "execute format('drop table %%s', p); end loop; end $$");
        pg_run(c, "update tick set day_at = now() - interval '8 days'");
        pg_run(c,
               "update queue set expires_at = now() - interval '1 s' where expires_at is not null; "
               "update lane set expire_at = '-infinity'"); /* the next step looks */
        pg_run(c, "%s", first[i]);
        core_settle(c);
        expect(c, "t", "select count(*) >= 1 from history where state = 'cancelled'");
        core_check(c);
        PQfinish(c);
    }
}

/* A node that has been dead for a day is forgotten, unless a lease still names it. */
static void
dead_nodes_go(void **state)
{
    PGconn *c = core_new("dead_nodes");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    pg_run(c, "select node_start(n, gen_random_uuid(), 'h', 1, 'v', 1, null, 4) from unnest(array["
              "'gone', 'holds', 'late', 'lives']) n");
    pg_run(c, "select t.claim('holds')");
    pg_run(c, "update node set heartbeat = now() - setting_interval('node_keep') - interval '1 s' "
              "where lock_key in ('gone', 'holds')");
    pg_run(c, "update node set heartbeat = now() - setting_interval('node_keep') + interval '1 "
              "min' where lock_key = 'late'");
    core_ten_seconds(c);
    pg_run(c, "select t.push('q', 'b')"); /* a fold needs something new */
    core_settle(c);
    expect(c, "holds,late,lives", "select string_agg(lock_key, ',' order by lock_key) from node");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_nodes_go),
        cmocka_unit_test(nothing_fails_for_want_of_a_day),
        cmocka_unit_test(whole_days_are_dropped),
        cmocka_unit_test(short_ones_are_trimmed),
        cmocka_unit_test(a_reader_is_not_waited_for),
        cmocka_unit_test(a_purge_is_not_waited_for),
        cmocka_unit_test(an_analyze_is_not_waited_for),
    };

    return cmocka_run_group_tests_name("retention", tests, core_setup, core_teardown);
}
