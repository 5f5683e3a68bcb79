/*
 * Rate limits: in any window of w seconds at most burst + rate * w jobs of a queue start, whoever
 * claims, steals, releases, pauses or schedules. Time passes by moving the past: t.pass(). A token
 * takes an hour, so that the seconds which a test itself takes make none.
 */
#include "tests/sql/core.h"

#include <poll.h>
#include <stdio.h>

static const char words[] =
    "create function t.pass(i interval) returns void language sql as $$ update bucket set at = at "
    "- i; update work_queue set started = started - i; update delta set at = at - i; update tick "
    "set limited_at = limited_at - i $$;create table t.starts (lease bigint, started timestamptz, "
    "seen timestamptz);create function t.take(node text, n int) returns text language plpgsql as "
    "$$ declare r text; begin r := t.claim(node, n, queues => '{q}'); insert into t.starts select "
    "w.lease, w.started, clock_timestamp() from work_queue w where w.lock_key = node and not "
    "exists (select from t.starts s where s.lease = w.lease); return r; end $$;";

static PGconn *
fresh(const char *name, const char *settings)
{
    PGconn *c = core_new(name);

    pg_run(c, "%s", words);
    pg_run(c, "select set_queue(gen_random_uuid(), 'q', '%s')", settings);
    return c;
}

static void
a_burst_then_one_by_one(void **state)
{
    PGconn *c = fresh("rate", "{\"rate\": \"1/h\", \"burst\": 3}");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d,e,f,g,h,i,j,k,l'), t.push('other', 'o')");
    core_settle(c);
    expect(c, "a,b,c", "select t.claim('n', 9, queues => '{q}')");
    core_settle(c);
    expect(c, "o", "select t.claim('n', 9)");
    expect(c, "done,done", "select t.done('n', 'a,b')"); /* an answer gives no token back */
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    pg_run(c, "select t.pass('50 min')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    pg_run(c, "select t.pass('10 min')");
    core_settle(c);
    expect(c, "d", "select t.claim('n', 9)");
    pg_run(c, "select t.pass('1 day')"); /* no more tokens than a burst are saved */
    core_settle(c);
    expect(c, "e,f,g", "select t.claim('n', 9)");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

/* Free jobs may all be claimed at once: so the bucket is empty when they have been free for long.
 */
static void
what_stands_free_is_reserved(void **state)
{
    PGconn *c = fresh("rate_free", "{\"rate\": \"1/h\", \"burst\": 3}");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d,e,f')");
    core_settle(c);
    pg_run(c, "select t.pass('1 day')");
    core_settle(c);
    expect(c, "3", "select sum(cardinality(seqs)) from work_queue");
    expect(c, "a,b,c", "select t.claim('n', 9)");
    expect(c, "done,done,done", "select t.done('n')"); /* gone before the next look */
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    pg_run(c, "select t.pass('1 h')");
    core_settle(c);
    expect(c, "d", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

static void
taken_back_pays_again(void **state)
{
    PGconn *c = fresh("rate_back", "{\"rate\": \"1/h\", \"burst\": 2}");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 9)");
    core_expire(c, "n");
    core_second(c);
    core_settle(c);
    expect(c, "", "select t.claim('m', 9)");
    pg_run(c, "select t.pass('1 h')");
    core_settle(c);
    expect(c, "c", "select t.claim('m', 9)");
    expect(c, "given back", "select t.back('m', 'c')");
    core_settle(c);
    expect(c, "", "select t.claim('m', 9)");
    pg_run(c, "select t.pass('1 day')");
    core_settle(c);
    expect(c, "2", "select cardinality(string_to_array(t.claim('m', 9), ','))");
    core_check(c);
    PQfinish(c);
}

/* Jobs that were cut and do not start give their tokens back; a setting made again does not. */
static void
pauses_settings_cancels(void **state)
{
    PGconn *c = fresh("rate_acts", "{\"rate\": \"1/h\", \"burst\": 3}");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d,e,f,g')");
    core_settle(c);
    pg_run(c, "select pause(gen_random_uuid(), 'q', 'test'), resume(gen_random_uuid(), 'q')");
    core_settle(c);
    pg_run(c, "select cancel(gen_random_uuid(), 1, array(select id from queue where "
              "payload->>'name' = 'a'))");
    core_settle(c);
    expect(c, "b,c,d", "select t.claim('n', 9)");
    pg_run(c, "select pause(gen_random_uuid(), 'q', 'test'), resume(gen_random_uuid(), 'q')");
    pg_run(c, "select set_queue(gen_random_uuid(), 'q', '{\"weight\": 7}')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    pg_run(c, "select t.pass('30 min'); select set_queue(gen_random_uuid(), 'q', '{\"rate\": "
              "\"4/h\"}')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)"); /* the time before counts by the old rate */
    pg_run(c, "select t.pass('8 min')");
    core_settle(c);
    expect(c, "e", "select t.claim('n', 9)");
    pg_run(c, "update scheduler set until = '-infinity' where term > 0");
    expect(c, "0 0 0", "select t.step('another')"); /* takes over: no new bucket */
    expect(c, "", "select t.claim('n', 9)");
    pg_run(c, "select scheduler_stop('another'); select set_queue(gen_random_uuid(), 'q', "
              "'{\"rate\": null}')");
    core_settle(c);
    expect(c, "f,g", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

static void
the_scheduler_comes_in_time(void **state)
{
    PGconn *c = fresh("rate_wait", "{\"rate\": \"100/s\", \"burst\": 1}");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    expect(c, "t", "select wait_ms between 0 and 12 from schedule('test')");
    pg_run(c, "select set_queue(gen_random_uuid(), 'q', '{\"rate\": \"1/min\"}'); select "
              "t.claim('n', 1)");
    core_settle(c);
    expect(c, "t",
           "select limited_at - clock_timestamp() between '0 s' and '60 s' from tick order by "
           "tick desc limit 1");
    pg_run(c, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    expect(c, "t",
           "select wait_ms between 10 and 60001 from schedule('test')"); /* no busy waiting */
    pg_run(c, "update tick set mark_at = 'infinity'; update fold set at = now(), ms = 1000000; "
              "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    int64_t tick = pg_int(c, "select max(tick) from tick");
    pg_run(c, "select schedule('test')");
    pg_run(c, "select schedule('test')");
    assert_int_equal(pg_int(c, "select max(tick) from tick"), tick); /* and no writing */
    PQfinish(c);
}

enum { WORKERS = 8, RATE = 100, BURST = 10 };

/* A claim may hold its lease for so long that an act fails: then nothing was changed. */
static void
done_or_refused(const char *code)
{
    if (*code)
        assert_string_equal(code, "55P03");
}

static void
one_step(PGconn *conn, int turn)
{
    poll(NULL, 0, (int)pg_int(conn, "select least(wait_ms, 10) from schedule('s%d')", turn / 20));
    if (turn % 20 == 19) /* the next one takes over, or a claim makes its own step */
        pg_run(conn, "update scheduler set until = '-infinity' where term > 0");
    if (turn % 33 == 32)
        done_or_refused(
            pg_try(conn, "select pause(gen_random_uuid(), 'q'), resume(gen_random_uuid(), 'q')"));
    if (turn % 47 == 46)
        done_or_refused(pg_try(conn, "select set_queue(gen_random_uuid(), 'q', '{\"weight\": %d}')",
                               1 + turn % 9));
}

static void
one_of_eight(PGconn *conn, int i)
{
    char node[16];

    snprintf(node, sizeof node, "w%d", i);
    for (int turn = 0; pg_int(conn,
                              "select (clock_timestamp() < at or (select count(*) from t.starts) < "
                              "%d)::int from t.stop",
                              RATE);
         turn++) {
        if (i == 0) {
            one_step(conn, turn);
            continue;
        }
        if (!*pg_value(conn, "select t.take('%s', 1 + (5 * random())::int)", node)) {
            poll(NULL, 0, 3);
            continue;
        }
        core_answer_any(conn, node);
    }
}

/* Eight workers claim for three seconds, and until a second's number of jobs has started. A claim
 * happens between its `started` and its `seen`. For each pair of a first and a last start: the jobs
 * that began after the first and were seen before the last are within the bound. */
static void
eight_workers(void **state)
{
    PGconn *c = fresh("rate_eight", "{\"rate\": 100, \"burst\": 10, \"max_tries\": 1000}");

    (void)state;
    pg_run(c, "select t.many('q', 'j', 3000); create table t.stop as select clock_timestamp() + "
              "interval '3 s' as at");
    core_crowd("rate_eight", WORKERS, one_of_eight);
    expect(c, "",
           "select coalesce(string_agg(concat_ws(' ', n, w), ', '), '') from (select row_number() "
           "over (partition by a.lease order by b.seen) n, extract(epoch from b.seen - "
           "a.started)::float8 w from t.starts a join t.starts b on b.started >= a.started) z "
           "where n > %d + %d * w",
           BURST, RATE);
    pg_run(c, "update scheduler set until = '-infinity' where term > 0");
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_then_one_by_one),
        cmocka_unit_test(what_stands_free_is_reserved),
        cmocka_unit_test(taken_back_pays_again),
        cmocka_unit_test(pauses_settings_cancels),
        cmocka_unit_test(the_scheduler_comes_in_time),
        cmocka_unit_test(eight_workers),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
