/*
 * Concurrency keys: at most max_per_key of the unfinished jobs with one key are handed out, and
 * keys take turns. No blocked job is forgotten after a crash, a retry or a late commit.
 */
#include "tests/sql/core.h"

#include <poll.h>
#include <stdio.h>

/* t.keyed(queue, 'k1=a,k1=b,k2=c', delay) */
static PGconn *
fresh(const char *name)
{
    PGconn *c = core_new(name);

    pg_run(c,
           "create function t.keyed(queue text, what text, delay interval default null) returns "
           "void language sql as $$ insert into queue (queue, concurrency_key, payload, run_after) "
           "select $1, split_part(w, '=', 1), json_build_object('name', split_part(w, '=', 2)), "
           "now() + $3 from regexp_split_to_table($2, ',') with ordinality x (w, o) order by o "
           "$$;create function t.keys_over() returns text language sql as $$ select "
           "coalesce(string_agg(k, ','), '') from (select q.concurrency_key k from queue q left "
           "join queue_config c using (queue) where state = 'ready' and concurrency_key is not "
           "null group by queue, 1 having count(*) > max(coalesce(c.max_per_key, 1))) z $$");
    return c;
}

static void
one_of_a_key(void **state)
{
    PGconn *c = fresh("key");

    (void)state;
    pg_run(c, "select t.keyed('q', 'k1=a,k1=b,k1=c,k2=d,k2=e,k3=f')");
    core_settle(c);
    expect(c, "a,d,f", "select t.claim('n', 9)");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    core_check(c);
    expect(c, "3", "select blocked from overview()");
    expect(c, "done", "select t.done('n', 'a')");
    core_settle(c);
    expect(c, "b", "select t.claim('n', 9)");
    pg_run(c, "select set_queue(gen_random_uuid(), 'q', '{\"max_per_key\": 2}')");
    core_settle(c);
    expect(c, "c,e", "select t.claim('n', 9)");
    pg_run(c, "select set_queue(gen_random_uuid(), 'q', '{\"max_per_key\": null}')");
    pg_run(c, "select t.keyed('q', 'k1=g'), t.keyed('r', 'k1=h')"); /* a key is a queue's own */
    core_settle(c);
    expect(c, "h", "select t.claim('n', 9)");
    expect(c, "done,done", "select t.done('n', 'b,c')");
    core_settle(c);
    expect(c, "g", "select t.claim('n', 9)");
    expect(c, "0", "select sum(blocked) from overview()");
    core_check(c);
    PQfinish(c);
}

static void
failures_and_crashes(void **state)
{
    PGconn *c = fresh("key_fail");

    (void)state;
    pg_run(c, "select t.keyed('q', 'k=a,k=b,k=c')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 9)");
    expect(c, "retry", "select t.fail('n', 'a', retry_in => '1 ms')");
    core_settle(c); /* a waits behind b, as a retry that is due again */
    expect(c, "b", "select t.claim('n', 9)");
    pg_wait(c, "select count(*) from queue, t.step() where state = 'retry'", "0", 5000);
    core_settle(c);
    expect(c, "c,a", "select t.names('blocked')");
    core_expire(c, "n");
    core_second(c);
    core_settle(c); /* b was taken back: it still has the key */
    expect(c, "b", "select t.claim('m', 9)");
    expect(c, "given back", "select t.back('m', 'b')");
    core_settle(c);
    expect(c, "b", "select t.claim('m', 9)");
    expect(c, "failed", "select t.fail('m', 'b', final => true)");
    core_settle(c);
    expect(c, "c", "select t.claim('m', 9)");
    pg_run(
        c,
        "select requeue(gen_random_uuid(), 1, array(select id from queue where state = 'failed'))");
    core_settle(c);
    expect(c, "", "select t.claim('m', 9)");
    expect(c, "a,b", "select t.names('blocked')");
    expect(c, "1",
           "select count(*) from cancel(gen_random_uuid(), 1, array(select id from queue where "
           "payload->>'name' = 'a')) where state = 'cancelled'");
    expect(c, "done", "select t.done('m', 'c')");
    core_settle(c);
    expect(c, "b", "select t.claim('m', 9)");
    pg_run(c, "select requeue(gen_random_uuid(), 1, array(select id from history))"); /* c and a */
    expect(c, "2", "select count(*) from queue where state = 'blocked' and concurrency_key = 'k'");
    core_check(c);
    PQfinish(c);
}

/* Every blocked job is found: after a failover, after a late commit, and one that was delayed. */
static void
none_is_forgotten(void **state)
{
    PGconn *c = fresh("key_late"), *a = core_join("key_late");

    (void)state;
    pg_run(a, "begin; select t.keyed('q', 'k=late,j=later')");
    pg_run(c, "select t.keyed('q', 'k=a,k=b'), t.keyed('q', 'k=s', '1 ms'), t.many('q', 'x', 15)");
    core_settle(c);
    pg_run(c, "select t.claim('n', 60)");
    expect(c, "t", "select t.done('n') like '%%done%%'");
    core_settle(c);
    expect(c, "b", "select t.claim('n', 9)");
    pg_run(a, "commit");
    pg_run(c, "update scheduler set until = '-infinity' where term > 0");
    expect(c, "1", "select cut from schedule('another')");
    expect(c, "later", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n', 'b')");
    pg_run(c, "update scheduler set until = '-infinity' where term > 0");
    core_settle(c);
    expect(c, "late", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n', 'late')");
    core_settle(c);
    expect(c, "s", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* A ready job that nobody has claimed gives its key to a more urgent job, whether it is cut or not.
 * A running job does not, nor does a job that a session is just claiming. */
static void
the_urgent_one_takes_the_key(void **state)
{
    PGconn *c = fresh("key_urgent"), *a = core_join("key_urgent");

    (void)state;
    pg_run(c, "create function t.one(queue text, key text, name text, priority int) returns void"
              " language sql as $$ insert into queue (queue, concurrency_key, payload, priority)"
              " values ($1, $2, json_build_object('name', $3), $4) $$");
    pg_run(c, "select t.one('q', 'k', 'low', 9)"); /* cut */
    core_settle(c);
    pg_run(c, "select t.one('q', 'k', 'high', 0), t.one('q', 'k', 'same', 0)");
    core_settle(c);
    expect(c, "same,low", "select t.names('blocked')");
    core_check(c);
    expect(c, "high", "select t.claim('n', 9)");
    pg_run(c, "select t.one('q', 'k', 'late', 0)"); /* high runs, same is as urgent as late */
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n', 'high')");
    core_settle(c);
    expect(c, "same", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n', 'same')");
    core_settle(c);
    expect(c, "late", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n', 'late')");
    core_settle(c);
    expect(c, "low", "select t.claim('n', 9)");
    pg_run(c, "select t.one('q', 'k', 'high', 0)");
    core_settle(c); /* low runs */
    expect(c, "", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n', 'low')");
    core_settle(c);
    expect(c, "high", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n', 'high')");
    core_check(c);

    pg_run(c,
           "select t.many('r', 'x', 200, 5), t.one('r', 'k', 'low', 9)"); /* behind them: uncut */
    core_settle(c);
    pg_run(c, "select t.one('r', 'k', 'high', 0)");
    core_settle(c);
    expect(c, "low", "select t.names('blocked')");
    expect(c, "high", "select t.claim('n', 1)");
    core_check(c);

    pg_run(c, "select t.one('s', 'k', 'low', 9), t.one('s', 'j', 'other', 9)");
    core_settle(c);
    pg_run(a, "begin; select t.claim('m', 9, null, '{s}')"); /* a session is claiming them */
    pg_run(c, "select t.one('s', 'k', 'high', 0)");
    core_settle(c);
    expect(c, "high", "select t.names('blocked', 's')");
    pg_run(a, "rollback");
    pg_run(c, "select wake_queue('s')");
    core_settle(c);
    expect(c, "low", "select t.names('blocked', 's')");
    expect(c, "high,other", "select t.claim('n', 9, null, '{s}')");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* Two jobs of a key may run at a time. In a queue with a rate, an urgent job gets the token of the
 * job that it displaces. */
static void
urgent_ones_of_several(void **state)
{
    PGconn *c = fresh("key_several");

    (void)state;
    pg_run(c, "select set_queue(gen_random_uuid(), 'q', '{\"max_per_key\": 2}'),"
              " set_queue(gen_random_uuid(), 'r', '{\"rate\": \"1/h\", \"burst\": 1}')");
    pg_run(c, "insert into queue (queue, concurrency_key, payload, priority)"
              " select 'q', 'k', json_build_object('name', n), p from (values ('a', 7), ('b', 8),"
              " ('c', 9)) v (n, p)");
    core_settle(c);
    expect(c, "c", "select t.names('blocked', 'q')");
    pg_run(c, "insert into queue (queue, concurrency_key, payload, priority)"
              " select 'q', 'k', json_build_object('name', n), p from (values ('d', 1), ('e', 7),"
              " ('f', 8)) v (n, p)");
    core_settle(c); /* d displaces b; e is no more urgent than a */
    expect(c, "e,b,f,c", "select t.names('blocked', 'q')");
    expect(c, "d,a", "select t.claim('n', 9)");
    pg_run(c, "insert into queue (queue, concurrency_key, payload, priority) values ('r', 'k',"
              " '{\"name\": \"low\"}', 9)");
    core_settle(c);
    pg_run(c, "insert into queue (queue, concurrency_key, payload, priority) values ('r', 'k',"
              " '{\"name\": \"high\"}', 0)");
    core_settle(c);
    expect(c, "high", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

/* More keys than a step looks at: all get their turn, each its first job before any its second. */
static void
many_keys_take_turns(void **state)
{
    PGconn *c = fresh("key_many");

    (void)state;
    pg_run(c, "insert into queue (queue, concurrency_key, payload) select 'q', 'k' || i %% 500, "
              "json_build_object('name', i) from generate_series(0, 999) i");
    for (int i = 0; i < 2; i++) {
        for (int got = 0; got < 500;) {
            core_settle(c);
            expect(c, "", "select t.keys_over()");
            got += (int)pg_int(c, "select coalesce(cardinality(string_to_array(nullif(t.claim('n', "
                                  "500, '1 h'), ''), ',')), 0)");
        }
        expect(c, "500", "select count(*) from t.held where name::int / 500 = %d", i);
        pg_run(c, "select t.done('n')");
    }
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

enum { WORKERS = 6, JOBS = 100 };

static void
one_of_six(PGconn *conn, int i)
{
    char node[16];

    snprintf(node, sizeof node, "w%d", i);
    while (pg_int(conn, "select count(*) from queue") > 0) {
        assert_string_equal(pg_value(conn, "select t.keys_over()"), "");
        if (i == 0) {
            poll(NULL, 0, (int)pg_int(conn, "select least(wait_ms, 5) from schedule('test')"));
        } else if (*pg_value(conn, "select t.claim('%s', 1 + (3 * random())::int)", node)) {
            core_answer_any(conn, node);
        }
    }
}

static void
six_workers(void **state)
{
    PGconn *c = fresh("key_six");

    (void)state;
    pg_run(c,
           "select set_queue(gen_random_uuid(), 'q', '{\"max_per_key\": 2, \"max_tries\": 1000}')");
    pg_run(c,
           "insert into queue (queue, concurrency_key, payload) select 'q', 'k' || i %% 5, "
           "json_build_object('name', i) from "
           "generate_series(1, %d) i",
           JOBS);
    core_crowd("key_six", WORKERS, one_of_six);
    assert_int_equal(pg_int(c, "select count(*) from history where state = 'completed'"), JOBS);
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_a_key),
        cmocka_unit_test(failures_and_crashes),
        cmocka_unit_test(none_is_forgotten),
        cmocka_unit_test(the_urgent_one_takes_the_key),
        cmocka_unit_test(urgent_ones_of_several),
        cmocka_unit_test(many_keys_take_turns),
        cmocka_unit_test(six_workers),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
