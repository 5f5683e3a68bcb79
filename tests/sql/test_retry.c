/*
 * Failing: back-off, retries and their end, attempts, groups of errors; promotion of delays and
 * retries in the order of their time (rules 7 and 8, decision 19).
 */
#include "tests/sql/core.h"

/* Makes everything that waits due, in the order in which it was. */
static void
make_due(PGconn *c)
{
    pg_run(c, "update queue set run_after = run_after - interval '100 days' where state in "
              "('scheduled', 'retry');"
              " update tick set after = '-infinity'");
    core_settle(c);
}

static void
back_off_doubles(void **state)
{
    PGconn *c = core_new("back_off");

    (void)state;
    pg_run(c, "insert into queue_config (queue, max_tries, backoff_base, backoff_max) values ('q', "
              "8, '10 s', '5"
              " min'); select t.push('q', 'a')");
    for (int i = 1; i < 8; i++) {
        core_settle(c);
        expect(c, "a", "select t.claim('n', 1)");
        expect(c, "retry", "select t.fail('n', 'a', 'try %d')", i);
        int64_t wait = 10 << (i - 1) > 300 ? 300 : 10 << (i - 1);
        int64_t got = pg_int(c, "select extract(epoch from run_after - changed)::int from queue");
        assert_in_range(got, wait * 8 / 10, wait * 12 / 10);
        make_due(c);
    }
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "8", "select max(try) from t.held");
    expect(c, "failed", "select t.fail('n', 'a', 'try 8')");
    expect(c, "8 try 8 try N",
           "select concat_ws(' ', tries, error, error_key) from queue where state = 'failed'");
    expect(c, "12345678",
           "select string_agg(number::text, '' order by number) from attempt where outcome ="
           " 'failed' and error = 'try ' || number and node = 'n' and ended >= started");
    expect(c, "1 7", "select fails || ' ' || retried from t.counts");
    core_ten_seconds(c);
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

/* The jitter: not all of a burst come back in the same second. */
static void
back_off_is_spread(void **state)
{
    PGconn *c = core_new("jitter");

    (void)state;
    pg_run(c, "insert into queue_config (queue, backoff_base) values ('q', '100 s');"
              " select t.many('q', 'j', 50); update tick set want = 50, mark_at = 'infinity'");
    core_settle(c);
    expect(c, "50", "select cardinality(string_to_array(t.claim('n', 50), ','))");
    pg_run(c, "select t.fail('n')");
    expect(c, "t", "select count(distinct date_trunc('second', run_after)) > 10 from queue");
    expect(c, "t",
           "select min(run_after - changed) >= interval '80 s' and max(run_after - changed) <= "
           "interval"
           " '120 s' from queue");
    PQfinish(c);
}

/* A worker can report a failure however often the job has failed, whatever the queue's settings
 * are. */
static void
back_off_without_end(void **state)
{
    PGconn *c = core_new("no_end");

    (void)state;
    pg_run(c, "insert into queue_config (queue, max_tries, backoff_base, backoff_max) values ('q', "
              "32767, '1 day',"
              " '10 days'), ('zero', 9, '0', '0'); select t.push('q', 'a'), t.push('zero', 'z');"
              " update queue set tries = 1000 where queue = 'q'");
    core_settle(c);
    expect(c, "2", "select cardinality(string_to_array(t.claim('n', 2), ','))");
    expect(c, "retry,retry", "select t.fail('n')");
    expect(c, "t",
           "select run_after - now() between interval '7 days' and interval '13 days' from queue "
           "where queue"
           " = 'q'");
    core_settle(c);
    expect(c, "z", "select t.claim('n', 2)");
    PQfinish(c);
}

static void
the_worker_may_say_how(void **state)
{
    PGconn *c = core_new("say_how");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d,e')");
    core_settle(c);
    expect(c, "a,b,c,d,e", "select t.claim('n', 5)");
    expect(c, "retry", "select t.fail('n', 'a', retry_in => '3 h')");
    expect(c, "3",
           "select round(extract(epoch from run_after - now()) / 3600) from queue where state = "
           "'retry'");
    expect(c, "retry", "select t.fail('n', 'b', retry_in => '-1 h')");
    expect(c, "failed", "select t.fail('n', 'c', final => true)");
    pg_run(c, "select fail('n', array[lease], array[version], array[seq], '{late}', array['at line "
              "1'], outcomes =>"
              " '{timeout}') from t.last where name = 'd'");
    expect(c, "timeout late at line 1",
           "select concat_ws(' ', outcome, error, trace) from attempt where error = 'late'");
    expect(c, "cancelled",
           "select f.outcome from t.last h, fail('n', array[lease], array[version], array[h.seq], "
           "'{x}',"
           " outcomes => '{cancelled}') f where name = 'e'");
    expect(c, "e cancelled", "select t.finished()");
    core_settle(c);
    expect(c, "b", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

static void
due_in_the_order_of_time(void **state)
{
    PGconn *c = core_new("due_order");

    (void)state;
    /* 300 jobs, the last pushed is due first; a few retries among them */
    pg_run(c, "select t.push('q', 'r1,r2'); ");
    core_settle(c);
    expect(c, "r1,r2", "select t.claim('n', 2)");
    expect(c, "retry", "select t.fail('n', 'r1', retry_in => '7350.5 s')");
    expect(c, "retry", "select t.fail('n', 'r2', retry_in => '7210.5 s')");
    pg_run(c, "select t.push('q', 'j' || i, 5, make_interval(secs => 7501 - i)) from "
              "generate_series(1, 300) i;"
              " analyze queue");
    core_settle(c);
    expect(c, "0", "select count(*) from queue where state = 'ready'");
    pg_run(
        c,
        "create table t.want as select id, row_number() over (order by run_after) as n from queue");
    make_due(c);
    expect(c, "302", "select count(*) from queue where state = 'ready' and run_after is null");
    expect(c, "0",
           "select count(*) from (select w.n, row_number() over (order by q.seq) as got from queue "
           "q join t.want w"
           " using (id)) z where n <> got");
    core_check(c);
    PQfinish(c);
}

/* A row that another session holds is promoted later, the others at once. */
static void
due_around_a_locked_row(void **state)
{
    PGconn *c = core_new("due_locked"), *a = core_join("due_locked");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c', delay => '1 h')");
    core_settle(c);
    pg_run(a, "begin; select from queue where payload->>'name' = 'b' for update");
    pg_run(c, "update queue set run_after = now() - interval '1 s' where payload->>'name' <> 'b'");
    pg_run(a, "update queue set run_after = now() - interval '1 s' where payload->>'name' = 'b'");
    pg_run(c, "update tick set after = '-infinity'");
    core_settle(c);
    expect(c, "a,c", "select t.claim('n', 9)");
    pg_run(a, "rollback; update queue set run_after = now() - interval '1 s' where "
              "payload->>'name' = 'b'");
    pg_run(a, "begin; select from queue where payload->>'name' = 'b' for update");
    pg_run(c, "update tick set after = '-infinity'");
    core_settle(c);
    core_settle(c);
    pg_run(a, "commit");
    core_settle(c);
    expect(c, "b", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* Pushed for soon in a transaction that commits when its time is long over and others went before.
 */
static void
due_committed_late(void **state)
{
    PGconn *c = core_new("due_late"), *a = core_join("due_late");

    (void)state;
    pg_run(a, "begin; select t.push('q', 'a', delay => '10 ms')");
    pg_run(c, "select t.push('q', 'b', delay => '20 ms')");
    pg_wait(c, "select t.step()", "1 1 0", 5000);
    expect(c, "b", "select t.claim('n', 9)");
    pg_run(a, "commit");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

static void
errors_are_kept_and_grouped(void **state)
{
    PGconn *c = core_new("groups");

    (void)state;
    pg_run(c, "update setting set value = '50' where name = 'error_limit'; select t.push('q', "
              "'a,b,c,d,e')");
    core_settle(c);
    expect(c, "a,b,c,d,e", "select t.claim('n', 5)");
    pg_run(c,
           "select t.fail('n', 'a', 'timeout after 35 ms for \"x\" at 0xdeadbeef', final => true)");
    pg_run(c,
           "select t.fail('n', 'b', 'timeout after 1,200 ms for \"y z\" at 0x1', final => true)");
    pg_run(c, "select t.fail('n', 'c', repeat('x', 100), final => true)");
    pg_run(c, "select t.fail('n', 'd', null, final => true)");
    pg_run(c, "select t.fail('n', 'e', 'id 01900000-0000-7000-8000-00000000000a', final => true)");
    expect(c, "timeout after N ms for N at N",
           "select error_key from queue where payload->>'name' = 'b'");
    expect(c, "id N", "select error_key from queue where payload->>'name' = 'e'");
    expect(c, "50", "select length(error) from queue where payload->>'name' = 'c'");
    expect(c, "t", "select error = '' from queue where payload->>'name' = 'd'");
    core_check(c);
    core_ten_seconds(c);
    core_settle(c);
    core_check(c);
    core_ten_seconds(c);
    pg_run(c, "delete from queue where payload->>'name' in ('a', 'b'); insert into delta (queue, "
              "priority, failed) values"
              " ('q', 5, -2); insert into delta (queue, priority, error_key, failed) values ('q', "
              "0, 'timeout after N ms"
              " for N at N', -2)");
    core_check(c);
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(back_off_doubles),         cmocka_unit_test(back_off_is_spread),
        cmocka_unit_test(back_off_without_end),     cmocka_unit_test(the_worker_may_say_how),
        cmocka_unit_test(due_in_the_order_of_time), cmocka_unit_test(due_around_a_locked_row),
        cmocka_unit_test(due_committed_late),       cmocka_unit_test(errors_are_kept_and_grouped),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
