/*
 * A publication for all tables, such as Debezium makes by default. PostgreSQL then rejects each
 * UPDATE and DELETE on a table that has no replica identity, even if no row matches.
 */
#include "tests/sql/core.h"

#define ACT(n) "'00000000-0000-7000-8000-00000000000" #n "'"

/* Tables and partitions that have no usable replica identity. */
static void
all_have_an_identity(PGconn *c)
{
    expect(c, "",
           "select coalesce(string_agg(c.relname, ' ' order by c.relname), '') from pg_class c"
           " where c.relnamespace = 'queues'::regnamespace and c.relkind in ('r', 'p') and"
           " c.relreplident <> 'f' and not exists (select from pg_index i where i.indrelid = c.oid"
           " and i.indisvalid and case c.relreplident when 'd' then i.indisprimary when 'i' then"
           " i.indisreplident end)");
}

static void
each_table_has_an_identity(void **state)
{
    PGconn *c = core_new("identities");

    (void)state;
    all_have_an_identity(c);
    pg_run(
        c,
        "do $$ declare p regclass; begin for p in select inhrelid::regclass from pg_inherits where"
        " inhparent in ('history'::regclass, 'attempt'::regclass) loop execute format('drop table "
        "%%s', p); end loop; end $$");
    pg_run(c, "update tick set day_at = '-infinity'; select schedule('test')");
    expect(c, "16",
           "select count(*) from pg_inherits where inhparent in ('history'::regclass,"
           " 'attempt'::regclass)");
    all_have_an_identity(c);
    PQfinish(c);
}

static PGconn *
published(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "set client_min_messages = error"); /* wal_level is minimal here */
    pg_run(c, "create publication everything for all tables");
    return c;
}

/* Folds whose sweep deletes deltas, counters, folds, ticks, cursors, marks and nodes. */
static void
fold_and_sweep(PGconn *c)
{
    for (int i = 0; i < 3; i++) {
        pg_run(c, "select t.push('q', 'x')");
        core_ten_seconds(c);
        core_settle(c);
        pg_run(c, "select fold_now()");
    }
    core_check(c);
}

static void
the_scheduler_goes_on(void **state)
{
    PGconn *c = published("published_steps");

    (void)state;
    pg_run(c, "select t.push('lim', 'a,b,c,d,e,f'), t.push('q', 'g,h,i')");
    core_settle(c);
    pg_run(c, "select set_queue(" ACT(1) ", 'lim', '{\"max_running\": 3}')");
    pg_run(c, "select set_queue(" ACT(2) ", 'q', '{\"rate\": 1000, \"retention\": \"1ms\"}')");
    pg_run(c,
           "select schedule_set(" ACT(3) ", 's', '{\"cron\": \"@every 1s\", \"queue\": \"q\"}')");
    pg_run(c, "select push('keyed', concurrency_key => 'k') from generate_series(1, 3);"
              " select push('late', delay => '1 ms', expires_at => now() + interval '1 h')");
    core_settle(c);
    pg_run(c, "select node_start('n', gen_random_uuid(), 'h', 1, 'v', 1, null, 4)");
    expect(c, "a,b,c", "select t.claim('n', 3, queues => '{lim}')");
    expect(c, "done", "select t.done('n', 'a')");
    expect(c, "retry", "select t.fail('n', 'b')");
    core_expire(c, "n");
    core_second(c);
    core_settle(c);
    fold_and_sweep(c);
    /* older than the retention even if the next two statements take less; but not of yesterday */
    pg_run(c, "insert into history (id, created, finished, state, priority, tries, queue, kind)"
              " select uuid_v7(), d, d, 'completed', 5, 1, 'q', 'old' from generate_series(1, 3),"
              " greatest(now() - interval '1 min', date_trunc('day', now(), 'UTC')) d");
    pg_run(c, "update tick set day_at = '-infinity'");
    core_settle(c);
    expect(c, "0", "select count(*) from history where kind = 'old'");
    pg_run(c, "select set_queue(" ACT(4) ", 'q', '{\"rate\": null}')");
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

static void
operators_go_on(void **state)
{
    PGconn *c = published("published_acts");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2)");
    expect(c, "failed", "select t.fail('n', 'a', final => true)");
    expect(c, "done", "select t.done('n', 'b')");
    expect(c, "ready", "select state from requeue(" ACT(1) ", 1, array(select id from history))");
    expect(c, "t",
           "select bool_and(state = 'cancelled') from cancel(" ACT(
               2) ", 1, array(select id from"
                  " queue where payload->>'name' in ('c', 'd')))");
    expect(c, "2",
           "select count(*) from undo(" ACT(3) ", 1, " ACT(2) ") where state = 'ready again'");
    expect(c, "discarded",
           "select state from discard(" ACT(4) ", 1, array(select id from queue where state ="
                                               " 'failed'))");
    pg_run(c, "select pause(" ACT(5) ", 'q'), resume(" ACT(6) ", 'q')");
    expect(c, "t",
           "select sum(n) > 0 from purge(" ACT(7) ", 1, null, null, now() + interval '2 days')");
    pg_run(c, "select purge_audit(" ACT(8) ", 1, now() - interval '2 days')");
    core_settle(c);
    fold_and_sweep(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_table_has_an_identity),
        cmocka_unit_test(the_scheduler_goes_on),
        cmocka_unit_test(operators_go_on),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
