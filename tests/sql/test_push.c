/*
 * Pushing: the four functions and the plain INSERT; ids and unique keys that are there already,
 * also in two sessions; delays; sizes; what hostile callers may try.
 */
#include "tests/sql/core.h"

#include <string.h>

static const char id_a[] = "01900000-0000-7000-8000-00000000000a";

static void
insert_is_a_push(void **state)
{
    PGconn *c = core_new("insert_is_a_push");

    (void)state;
    pg_run(c, "create role app_plain login; grant queues_worker to app_plain");
    PGconn *app = pg_connect(pg_dsn("insert_is_a_push"));
    pg_run(app, "set role queues_worker");
    pg_run(app,
           "insert into queues.queue (queue, kind, payload) values ('q', 'k', '{\"b\":1,\"a\" :2,"
           "\"a\":3}'), ('q', 'k', '{\"name\":\"two\"}')");
    pg_run(
        app,
        "insert into queues.queue (queue, payload, run_after) values ('q', '{\"name\":\"later\"}',"
        " now() + interval '1 h')");
    assert_string_equal(pg_try(app, "insert into queues.queue (queue, seq) values ('q', 1)"),
                        "42501");
    assert_string_equal(
        pg_try(app, "insert into queues.queue (queue, state) values ('q', 'failed')"), "42501");
    assert_string_equal(pg_try(app, "update queues.queue set priority = 0"), "42501");
    assert_string_equal(pg_try(app, "select * from queues.work_queue"), "42501");
    core_settle(c);
    expect(c, "{\"b\":1,\"a\" :2,\"a\":3}", "select payload from claim('n', 1)");
    expect(c, "two", "select t.claim('n', 5)");
    expect(c, "later", "select t.names('scheduled')");
    core_check(c);
    PQfinish(app);
    PQfinish(c);
}

/* The statement trigger has the owner's rights and no path: it must find nothing of the pusher's.
 */
static void
operators_of_others(void **state)
{
    PGconn *c = core_new("operators"), *w = core_join("operators");

    (void)state;
    pg_run(c, "create schema evil authorization queues_worker");
    pg_run(w, "set role queues_worker");
    pg_run(w,
           "create function evil.trap() returns void language plpgsql as $$ begin raise 'found by"
           " the path of the pusher, as %%', current_user; end $$;"
           " do $$ declare o record; n int := 0; begin"
           "  for o in select oprname, oprleft::regtype l, oprright::regtype r, oprresult::regtype"
           "  t from pg_operator where oprname in ('=', '<>', '<', '>', '<=', '>=', '||', '+') and"
           "  oprleft in ('text'::regtype, 'int4'::regtype, 'int2'::regtype, 'int8'::regtype,"
           "  'anyenum'::regtype) and oprright <> 'anynonarray'::regtype loop n := n + 1;"
           "   execute format('create function evil.f%%s(%%s, %%s) returns %%s language plpgsql as"
           "   ''begin perform evil.trap(); end''', n, o.l, o.r, o.t);"
           "   execute format('create operator evil.%%s (leftarg = %%s, rightarg = %%s,"
           "   function = evil.f%%s)', o.oprname, o.l, o.r, n); end loop; end $$");
    pg_run(w,
           "create function evil.octet_length(text) returns int language sql as 'select"
           " evil.trap(); select 1'; create function evil.concat(text, oid) returns text language"
           " sql as 'select evil.trap(); select null::text'; create domain evil.text as"
           " pg_catalog.text check (length(value) = 77)");
    pg_run(w, "set search_path = evil, pg_catalog");
    assert_string_equal(pg_try(w, "select 1 = 1"), "P0001"); /* the trap works */
    assert_string_equal(pg_try(w, "select octet_length('a'::pg_catalog.text)"), "P0001");
    pg_run(w, "insert into queues.queue (queue) values ('q')");
    pg_run(w, "insert into queues.queue (queue) values ('q'), ('q'), ('r')");
    pg_run(w, "insert into queues.queue (queue, unique_key) values ('q', 'k')");
    pg_run(w, "insert into queues.queue (queue, run_after) values ('q', 'infinity')");
    pg_run(w, "select queues.push('q'), queues.push('q', unique_key => 'l')");
    assert_string_equal(pg_try(w, "insert into queues.queue (queue) values ('')"), "23514");
    expect(c, "8", "select sum(pushed) from t.counts");
    core_check(c);
    PQfinish(w);
    PQfinish(c);
}

static void
same_id_is_one_job(void **state)
{
    PGconn *c = core_new("same_id");

    (void)state;
    expect(c, "t", "select pushed from push('q', '{\"name\":\"a\"}', id => '%s')", id_a);
    expect(c, "f", "select pushed from push('q', '{\"name\":\"b\"}', id => '%s')", id_a);
    expect(c, id_a, "select id from push('other', null, id => '%s')", id_a);
    core_settle(c);
    expect(c, "a", "select t.claim('n', 9)");
    expect(c, "f", "select pushed from push('q', null, id => '%s')", id_a);
    expect(c, "done", "select t.done('n')");
    /* finished: still the same job for whoever names its id */
    expect(c, "f", "select pushed from push('q', null, id => '%s')", id_a);
    expect(c, id_a, "select id from push_text('q', 'x', id => '%s')", id_a);
    expect(c, "{1,false}",
           "select array[n::text, pushed::text] from push_many(array['%s']::uuid[],"
           " array['q'], again => true)",
           id_a);
    assert_int_equal(pg_int(c, "select count(*) from queue"), 0);
    core_check(c);
    PQfinish(c);
}

static void
unique_key_among_the_unfinished(void **state)
{
    PGconn *c = core_new("unique_key");

    (void)state;
    const char *id = pg_value(c, "select id from push('q', '{\"name\":\"a\"}', unique_key => 'k')");
    expect(c, id, "select id from push('q', '{\"name\":\"b\"}', unique_key => 'k')");
    expect(c, "f", "select pushed from push('q', null, unique_key => 'k')");
    expect(c, "t", "select pushed from push('other', null, unique_key => 'k')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 9, queues => '{q}')");
    expect(c, "f", "select pushed from push('q', null, unique_key => 'k')"); /* running */
    expect(c, "retry", "select t.fail('n', 'a', retry_in => '1 h')");
    expect(c, "f",
           "select pushed from push('q', null, unique_key => 'k')"); /* waiting for a retry */
    pg_run(c, "update queue set run_after = now() where state = 'retry'; update tick set after ="
              " '-infinity'");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 9, queues => '{q}')");
    expect(c, "failed", "select t.fail('n', 'a', final => true)");
    expect(c, "t",
           "select pushed from push('q', '{\"name\":\"c\"}', unique_key => 'k')"); /* failed */
    core_settle(c);
    expect(c, "c", "select t.claim('n', 9, queues => '{q}')");
    expect(c, "done", "select t.done('n', 'c')");
    expect(c, "t", "select pushed from push('q', null, unique_key => 'k')"); /* completed */
    core_check(c);
    PQfinish(c);
}

/* The second waits for the first key in their order, whatever the order in which it was given them.
 */
static void
unique_keys_are_taken_in_order(void **state)
{
    PGconn *c = core_new("unique_order"), *a = core_join("unique_order"),
           *b = core_join("unique_order");

    (void)state;
    pg_run(a, "begin; select push('q', unique_key => 'k1')");
    pg_send(b, "insert into t.held (node, name) select pushed::text, n from push_many(null, "
               "'{q,q,q}', unique_keys =>"
               " '{k3,k2,k1}', payloads => '{1,2,3}')");
    pg_wait_blocked(c, b);
    pg_run(a, "select push('q', unique_key => 'k2'); commit");
    assert_string_equal(pg_finish(b), "");
    expect(c, "true 1,false 2,false 3",
           "select string_agg(node || ' ' || name, ',' order by name) from t.held");
    pg_run(c, "select push_many(null, '{r,r,r}', unique_keys => '{z,y,x}', payloads => '{1,2,3}')");
    expect(c, "1,2,3",
           "select string_agg(payload::text, ',' order by seq) from queue where queue = 'r'");
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* A database that sorts as people do: 'a' before 'B'. Pushes and acts insert keys in one order
 * there, too. Otherwise they would wait for each other. */
static void
unique_keys_have_one_order_in_any_language(void **state)
{
    PGconn *c = core_new("language"); /* makes the roles, too */

    (void)state;
    if (PQserverVersion(c) < 150000 ||
        pg_int(c, "select count(*) from pg_collation where collprovider = 'i'") == 0) {
        PQfinish(c);
        skip();
    }
    pg_run(c, "create database english template template0 encoding 'UTF8' locale 'C'"
              " locale_provider icu icu_locale 'en-US'");
    PQfinish(c);
    c = pg_connect(pg_dsn("english"));
    core_load(c, "queues");
    pg_run(c, "set search_path = queues, pg_temp");
    expect(c, "t", "select 'a' < 'B'");
    pg_run(c, "select push_many(null, '{q,q,Q}', unique_keys => '{a,B,c}')");
    expect(c, "c,B,a", "select string_agg(unique_key, ',' order by ctid) from queue");
    pg_run(c, "select schedule('s')");
    pg_run(c, "select c.* from claim('n', 9) x, complete('n', array[x.lease], array[x.version],"
              " array[x.seq], null::timestamptz[], null::bytea[]) c");
    pg_run(c, "select requeue(gen_random_uuid(), 1, array(select id from history order by id))");
    expect(c, "c,B,a", "select string_agg(unique_key, ',' order by seq) from queue");
    PQfinish(c);
}

/* Ids made within one millisecond are random: whatever they are, the first in the caller's order
 * wins. Sixty rounds, so that a choice by id shows. */
static void
the_first_of_equals_wins(void **state)
{
    PGconn *c = core_new("push_equals");

    (void)state;
    for (int i = 0; i < 60; i++) {
        expect(c, "1 t,2 f,3 t,4 f",
               "select string_agg(n || ' ' || left(pushed::text, 1), ',' order by n) from"
               " push_many(null, '{q,q,q,q}', unique_keys => '{z%d,z%d,a%d,a%d}',"
               " payloads => '{1,2,1,2}')",
               i, i, i, i);
        expect(c, "1 t,2 f,3 f",
               "select string_agg(n || ' ' || left(pushed::text, 1), ',' order by n) from"
               " (select gen_random_uuid() as a) i, push_many(array[a, a, a], '{q,o,q}',"
               " payloads => '{1,2,2}')");
        expect(c, "1 t,2 f",
               "select string_agg(n || ' ' || left(pushed::text, 1), ',' order by n) from"
               " (select gen_random_uuid() as a) i, push_many(array[a, a], '{q,q}',"
               " unique_keys => '{y%d,b%d}', payloads => '{1,2}')",
               i, i);
    }
    expect(c, "240 jobs, none is a second",
           "select format('%%s jobs, %%s', count(*), case when bool_and(payload::text = '1')"
           " then 'none is a second' end) from queue");
    core_check(c);
    PQfinish(c);
}

/* Two calls with the same ids, each in an order of its own: the one that comes second waits at the
 * first of them in the order of ids, and holds nothing that the other has still to push. */
static void
ids_are_taken_in_order(void **state)
{
    PGconn *c = core_new("ids_order"), *a = core_join("ids_order"), *b = core_join("ids_order");

    (void)state;
    pg_run(a, "begin; select push_many(array['%s']::uuid[], '{q}')", id_a);
    pg_send(b, "insert into t.held (node, name) select pushed::text, n from push_many(array["
               "'01900000-0000-7000-8000-00000000000b', '01900000-0000-7000-8000-00000000000a']"
               "::uuid[], '{q,q}')");
    pg_wait_blocked(c, b);
    pg_run(a, "select push_many(array['01900000-0000-7000-8000-00000000000b']::uuid[], '{q}');"
              " commit");
    assert_string_equal(pg_finish(b), "");
    expect(c, "false 1,false 2",
           "select string_agg(node || ' ' || name, ',' order by name) from t.held");
    pg_run(c, "select push_many(array['01900000-0000-7000-8000-00000000000f',"
              " '01900000-0000-7000-8000-00000000000e']::uuid[], '{r,r}', payloads => '{1,2}')");
    expect(c, "1,2",
           "select string_agg(payload::text, ',' order by seq) from queue where queue = 'r'");
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

static void
unique_key_in_two_sessions(void **state)
{
    PGconn *c = core_new("unique_race"), *a = core_join("unique_race"),
           *b = core_join("unique_race");

    (void)state;
    pg_run(a, "begin; select push('q', '{\"name\":\"a\"}', unique_key => 'k')");
    pg_send(
        b,
        "insert into t.held (node, id) select pushed::text, id from push('q', '{\"name\":\"b\"}',"
        " unique_key => 'k')");
    pg_wait_blocked(c, b);
    pg_run(a, "commit");
    assert_string_equal(pg_finish(b), "");
    expect(c, "false a",
           "select node || ' ' || (payload->>'name') from t.held join queue using (id)");
    pg_run(c, "delete from t.held");

    pg_run(a, "begin; select push('q', '{\"name\":\"a\"}', unique_key => 'l')");
    pg_send(
        b,
        "insert into t.held (node, id) select pushed::text, id from push('q', '{\"name\":\"b\"}',"
        " unique_key => 'l')");
    pg_wait_blocked(c, b);
    pg_run(a, "rollback");
    assert_string_equal(pg_finish(b), "");
    expect(c, "true b",
           "select node || ' ' || (payload->>'name') from t.held join queue using (id)");
    pg_run(c, "delete from t.held");

    /* the twin finishes while the push waits for it: a new job */
    core_settle(c);
    expect(c, "b", "select t.claim('n', 1, queues => '{q}') where 'a' = t.claim('m', 1)");
    pg_run(a, "begin; select t.done('n', 'b')");
    pg_send(
        b,
        "insert into t.held (node, id) select pushed::text, id from push('q', '{\"name\":\"d\"}',"
        " unique_key => 'l')");
    pg_wait_blocked(c, b);
    pg_run(a, "commit");
    assert_string_equal(pg_finish(b), "");
    expect(c, "true d",
           "select h.node || ' ' || (payload->>'name') from t.held h join queue using (id)"
           " where name is null");
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

static void
push_many_answers_each(void **state)
{
    PGconn *c = core_new("push_many");

    (void)state;
    pg_run(c, "select push('q', '{\"name\":\"old\"}', unique_key => 'k', id => '%s')", id_a);
    expect(c, "{tftftf}",
           "select array[string_agg(left(pushed::text, 1), '' order by n)] from push_many("
           "array[null, '%s', '01900000-0000-7000-8000-00000000000b', "
           "'01900000-0000-7000-8000-00000000000b', null, null]::uuid[], "
           "'{q,q,q,q,q,q}', unique_keys => '{null,null,null,null,l,k}', "
           "priorities => '{0,null,null,null,null,null}')",
           id_a);
    expect(c, "0", "select min(priority) from queue");
    expect(c, "4", "select count(*) from queue");
    expect(c, "0", "select count(*) from push_many('{}', '{}')");
    expect(c, "0", "select count(*) from push_many(null, null)");
    expect(c, "2",
           "select count(*) from push_many(null, '{q,q}', null, null, null, null, '{m,m}')");
    expect(c, "5", "select count(*) from queue");
    assert_string_equal(pg_try(c, "select push_many(array[null, null]::uuid[], '{q}')"), "QT007");
    assert_string_equal(pg_try(c, "select push_many(null, '{q,null}')"), "QT007");
    assert_string_equal(pg_try(c, "select push_many(null, '{q}', payloads => '{\"{\"}')"), "22P02");
    expect(c, "5", "select count(*) from queue");
    core_check(c);
    PQfinish(c);
}

static void
delays_by_the_servers_clock(void **state)
{
    PGconn *c = core_new("delays");

    (void)state;
    expect(c, "3", "select t.push('q', 'a,b,c', delay => '1 h')");
    expect(c, "1", "select t.push('q', 'past', delay => '-1 h')");
    pg_run(c, "select push('q', '{\"name\":\"far\"}', delay => '30 days')");
    pg_run(c, "select push('q', '{\"name\":\"never\"}', run_after => 'infinity')");
    pg_run(c, "select push('q', '{\"name\":\"ever\"}', run_after => '-infinity')");
    core_settle(c);
    expect(c, "past,ever", "select t.claim('n', 9)");
    expect(c, "a,b,c,far,never", "select t.names('scheduled')");
    /* nothing so far away may upset the scheduler */
    pg_run(c, "delete from queue where payload->>'name' in ('a', 'b', 'c')");
    expect(c, "t", "select active from schedule('test')");
    pg_run(c, "delete from queue where payload->>'name' = 'far'");
    expect(c, "t", "select active from schedule('test')");
    PQfinish(c);
}

static void
sizes_are_limited(void **state)
{
    PGconn *c = core_new("sizes");

    (void)state;
    pg_run(c, "update setting set value = '1000' where name = 'payload_limit'");
    /* a JSON string of n characters has n + 2 bytes */
    assert_string_equal(pg_try(c, "select push('q', to_json(repeat('x', 998)))"), "");
    assert_string_equal(pg_try(c, "select push('q', to_json(repeat('x', 999)))"), "QT004");
    assert_string_equal(pg_try(c, "select push_text('q', repeat('x', 1000))"), "");
    assert_string_equal(pg_try(c, "select push_text('q', repeat('x', 1001))"), "QT004");
    assert_string_equal(pg_try(c, "select push_text('q', repeat('\xc3\xa9', 501))"), "QT004");
    assert_string_equal(pg_try(c, "select push_bytes('q', decode(repeat('00', 1001), 'hex'))"),
                        "QT004");
    assert_string_equal(pg_try(c,
                               "select push_many(null, '{q}', bodies => array[decode(repeat('00',"
                               " 1001), 'hex')])"),
                        "QT004");
    assert_string_equal(pg_try(c, "select push_many(null, '{q,q}', payloads => array['1',"
                                  " to_json(repeat('x', 999))::text])"),
                        "QT004");
    pg_run(c, "update setting set value = '10485760' where name = 'payload_limit'");
    assert_string_equal(pg_try(c, "select push('q', to_json(repeat('x', 10485758)))"), "");
    assert_string_equal(pg_try(c, "select push('q', to_json(repeat('x', 10485759)))"), "QT004");
    expect(c, "3", "select count(*) from queue");
    PQfinish(c);
}

static void
strange_words(void **state)
{
    PGconn *c = core_new("strange");

    (void)state;
    pg_run(c,
           "select t.push(q, 'a') from unnest(array[repeat('\xf0\x9f\x98\x80', 200), '%%s''\"; --',"
           " 'Schr\xc3\xb6"
           "der''s {a,b} \\ ', ' ', 'NULL', repeat('x', 200)]) q");
    assert_string_equal(pg_try(c, "select push('')"), "23514");
    assert_string_equal(pg_try(c, "select push(null)"), "23514");
    assert_string_equal(pg_try(c, "select push(repeat('x', 201))"), "23514");
    assert_string_equal(pg_try(c, "select push('q', kind => repeat('x', 201))"), "23514");
    assert_string_equal(pg_try(c, "select push('q', priority => 10)"), "23514");
    assert_string_equal(pg_try(c, "select push('q', priority => -1)"), "23514");
    assert_string_equal(pg_try(c, "select push('q', priority => 100000)"), "23514");
    assert_string_equal(pg_try(c, "select push('q', max_tries => 0)"), "23514");
    assert_string_equal(pg_try(c, "select push('q', run_timeout => '-1 s')"), "23514");
    assert_string_equal(pg_try(c, "select push('q', lease_timeout => '0')"), "23514");
    assert_string_equal(
        pg_try(c, "insert into queue (queue, payload, body) values ('q', '1', '1')"), "23514");
    core_settle(c);
    expect(c, "6", "select count(*) from claim('n', 100)");
    expect(c, "6", "select count(*) from queue_config");
    core_check(c);
    PQfinish(c);
}

static void
keyed_jobs_are_born_blocked(void **state)
{
    PGconn *c = core_new("keyed"), *w = core_join("keyed");

    (void)state;
    pg_run(w, "set role queues_worker");
    pg_run(w, "select push('q', '1', concurrency_key => 'k'), push_text('q', 'x', concurrency_key"
              " => 'k'), push('q', '2', concurrency_key => 'k', delay => '1 h')");
    pg_run(w, "insert into queue (queue, concurrency_key) values ('q', 'k'), ('q', null)");
    pg_run(w, "select push_many(null, '{q,q}', concurrency_keys => '{k,null}')");
    expect(c, "blocked 4,ready 2,scheduled 1",
           "select string_agg(state || ' ' || n, ',' order by state::text) from (select state,"
           " count(*) n from queue group by 1) z");
    expect(
        c, "4 2 1 7",
        "select concat_ws(' ', sum(blocked), sum(ready), sum(scheduled), sum(pushed)) from delta");
    expect(c, "4", "select blocked from overview()");
    assert_string_equal(pg_try(c, "select push('q', concurrency_key => repeat('x', 1001))"),
                        "23514");
    /* pushed again after it was done: taken back, and its count */
    pg_run(c,
           "insert into history (id, created, finished, state, priority, tries, queue, kind)"
           " values ('%s', now(), now(), 'completed', 5, 1, 'q', '')",
           id_a);
    expect(c, "f", "select pushed from push('q', id => '%s', concurrency_key => 'k')", id_a);
    expect(c, "4", "select blocked from overview()");
    core_check(c);
    PQfinish(w);
    PQfinish(c);
}

static void
each_push_may_expire(void **state)
{
    PGconn *c = core_new("push_expiry");

    (void)state;
    pg_run(c,
           "select push('q', expires_at => now() + interval '1 h');"
           " select push_text('q', 'x', expires_at => now() + interval '1 h');"
           " select push('q', unique_key => 'k', expires_at => now() + interval '1 h');"
           " select push_many(null, '{q,q,q}', expires_ats => array[now() + interval '1 h', null,"
           " null], expires_ins => '{null,1 h,null}')");
    expect(c, "5", "select count(*) from queue where expires_at = created + interval '1 h'");
    expect(c, "1", "select count(*) from queue where expires_at is null");
    core_check(c);
    PQfinish(c);
}

/* A worker that waits holds its lock alone. A push that can't share the lock notifies, other pushes
 * do not. */
static void
a_push_wakes_who_waits(void **state)
{
    PGconn *c = core_new("push_wakes"), *p = core_join("push_wakes");

    (void)state;
    const char *oid = pg_value(c, "select 'queues.queue'::regclass::oid");
    pg_run(c, "listen queuetop_%s", oid);
    pg_run(p, "select push('q')");
    pg_run(c, "select 1");
    assert_null(PQnotifies(c));
    pg_run(c, "select pg_advisory_lock(1364481111, %s)", oid);
    pg_run(p, "insert into queue (queue) values ('q')");
    pg_run(c, "select 1");
    PGnotify *said = PQnotifies(c);
    assert_non_null(said);
    PQfreemem(said);
    pg_run(c, "select pg_advisory_unlock(1364481111, %s)", oid);
    /* and nobody goes to sleep while a push is on its way */
    pg_run(p, "begin; select push('q')");
    expect(c, "f", "select pg_try_advisory_lock(1364481111, %s)", oid);
    pg_run(p, "commit");
    expect(c, "t", "select pg_try_advisory_lock(1364481111, %s)", oid);
    PQfinish(p);
    PQfinish(c);
}

static void
what_is_refused_is_said(void **state)
{
    static const struct {
        const char *sql, *text;
    } bad[] = {
        {"insert into queue (queue) values ('')",                                 "1 to 200 characters, not 0"  },
        {"insert into queue (queue) values ('q'), ('q'), (repeat('x', 201))",
         "1 to 200 characters, not 201"                                                                         },
        {"insert into queue (queue, kind) values ('q', repeat('x', 201))",        "kind has 200"                },
        {"insert into queue (queue, priority) values ('q', 10)",                  "priority is 0 (soonest) to 9"},
        {"insert into queue (queue, payload, body) values ('q', '1', '1')",       "not both"                    },
        {"insert into queue (queue, max_tries) values ('q', 0)",                  "max_tries is 1 to 32767"     },
        {"insert into queue (queue, run_timeout) values ('q', '0')",              "longer than zero"            },
        {"insert into queue (queue, unique_key) values ('q', repeat('x', 1001))", "1000 char"                   },
        {"update queue set priority = 10",                                        "priority is 0 (soonest) to 9"},
        {"update queue set body = '1'",                                           "not both"                    },
    };
    PGconn *c = core_new("push_refused");

    (void)state;
    pg_run(c, "insert into queue (queue, kind, payload) values (repeat('\xc3\xa9', 200),"
              " repeat('\xc3\xa9', 200), '1')");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        PGresult *res = PQexec(c, bad[i].sql);
        assert_string_equal(PQresultErrorField(res, PG_DIAG_SQLSTATE), "23514");
        assert_non_null(strstr(PQresultErrorMessage(res), bad[i].text));
        PQclear(res);
    }
    expect(c, "1", "select count(*) from queue");
    core_check(c);
    PQfinish(c);
}

static void
rollback_takes_all_back(void **state)
{
    PGconn *c = core_new("push_rollback");

    (void)state;
    pg_run(c,
           "begin; select t.push('q', 'a,b'); savepoint s; select t.push('q', 'c'); rollback to s;"
           " select t.push('q', 'd'); commit");
    pg_run(c, "begin isolation level serializable; select t.push('r', 'x'); rollback");
    pg_run(c, "begin isolation level repeatable read; select t.push('q', 'e'); commit");
    core_settle(c);
    expect(c, "a,b,d,e", "select t.claim('n', 9)");
    expect(c, "4", "select sum(pushed) from t.counts");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insert_is_a_push),
        cmocka_unit_test(operators_of_others),
        cmocka_unit_test(same_id_is_one_job),
        cmocka_unit_test(unique_key_among_the_unfinished),
        cmocka_unit_test(unique_keys_are_taken_in_order),
        cmocka_unit_test(unique_keys_have_one_order_in_any_language),
        cmocka_unit_test(the_first_of_equals_wins),
        cmocka_unit_test(ids_are_taken_in_order),
        cmocka_unit_test(unique_key_in_two_sessions),
        cmocka_unit_test(push_many_answers_each),
        cmocka_unit_test(delays_by_the_servers_clock),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(strange_words),
        cmocka_unit_test(keyed_jobs_are_born_blocked),
        cmocka_unit_test(each_push_may_expire),
        cmocka_unit_test(a_push_wakes_who_waits),
        cmocka_unit_test(what_is_refused_is_said),
        cmocka_unit_test(rollback_takes_all_back),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
