/*
 * Requeue, one or all that match: what becomes ready and with how many tries, what is left alone
 * and why, unique keys, finished jobs as new ones, frozen predicates, expected counts, answers
 * asked for twice (decisions 14, 15, 17, 18, rule 9). Every preview must say what the act then
 * does.
 */
#include "tests/sql/core.h"

#define ACT(n) "'00000000-0000-0000-0000-00000000000" #n "'"

/* What an act answered: "name state (why)" a job; what a preview says: "n state (why)". */
static const char words[] =
    "create function t.ids(names text) returns uuid[] language sql as $$"
    " select array_agg(id order by o) from regexp_split_to_table($1, ',') with ordinality x (name, "
    "o)"
    " join (select id, payload from queue union all select id, payload from history) q"
    " on q.payload->>'name' = name $$;"
    "create function t.said(id text, state text, why text) returns text language sql as $$"
    " select concat_ws(' ', coalesce((select payload->>'name' from (select q.id, q.payload from "
    "queue q"
    "  union all select h.id, h.payload from history h) z where z.id::text = $1 limit 1), 'none'),"
    "  coalesce($2, '-'), '(' || regexp_replace($3, '[0-9a-f-]{36}', 'ID') || ')') $$;"
    "create function t.look(p text) returns text language plpgsql as $$ declare r text; begin "
    "execute"
    " 'select string_agg(concat_ws('' '', n, coalesce(state, ''-''), ''('' || why || '')''), '', "
    "'' order"
    " by state, why, n) from ' || p into r; return coalesce(r, ''); end $$;"
    /* jobs named so, failed for good with that error */
    "create function t.failed(queue text, names text, error text) returns void language plpgsql as "
    "$$"
    " begin perform t.push($1, $2); perform schedule('test'); perform schedule('test');"
    " perform t.claim('w', 1000); perform t.fail('w', error => $3, final => true); delete from "
    "t.held;"
    " end $$;";

static PGconn *
fresh(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "%s", words);
    return c;
}

static const char in_order[] = "select string_agg(payload->>'name', ',' order by seq) from queue";

static void
tries_are_kept_and_one_is_added(void **state)
{
    PGconn *c = fresh("tries_kept");

    (void)state;
    pg_run(c, "select t.failed('q', 'a,b', 'broken')");
    pg_run(c, "update queue set tries = 5 where payload->>'name' = 'b'");
    const char *order = pg_value(c, in_order);
    expect(c, "2 ready", "select t.look('requeue_preview(t.ids(''a,b''))')");
    expect(c, "a ready,b ready",
           "select string_agg(t.said(id, state, why), ',' order by t.said(id, state, why)) from "
           "requeue(" ACT(1) ", 1,"
                             " t.ids('a,b'), false, 'again')");
    expect(c, "a 1 null,b 5 6",
           "select string_agg(concat_ws(' ', payload->>'name', tries, coalesce(max_tries::text,"
           " 'null')), ',' order by payload->>'name') from queue where state = 'ready'");
    expect(c, order, in_order);
    core_check(c);
    core_settle(c);
    expect(c, order, "select t.claim('n', 2)");
    expect(c, "6 of 6", "select try || ' of ' || max_tries from t.held where name = 'b'");
    pg_run(c, "select t.fail('n', 'b')"); /* its one more try */
    expect(c, "failed", "select state from queue where payload->>'name' = 'b'");
    expect(c, "ready", "select state from requeue(" ACT(2) ", 1, t.ids('b'), true, null)");
    expect(c, "0", "select tries from queue where payload->>'name' = 'b'");
    core_check(c);
    PQfinish(c);
}

static void
what_is_left_alone_says_why(void **state)
{
    PGconn *c = fresh("left_alone");

    (void)state;
    pg_run(c, "select t.push('q', 'runs'); select t.push('q', 'later', delay => '1 h')");
    core_settle(c);
    expect(c, "runs", "select t.claim('n', 1)");
    pg_run(c, "select t.push('q', 'waits')");
    core_settle(c);
    expect(c,
           "1 ready (now instead of later), 1 - (no such job), 1 - (ready already), 1 - (running)",
           "select t.look('requeue_preview(t.ids(''runs,waits,later'') || gen_random_uuid())')");
    expect(c, "later ready,none - (no such job),runs - (running),waits - (ready already)",
           "select string_agg(t.said(id, state, why), ',' order by t.said(id, state, why)) from"
           " requeue(" ACT(1) ", 1, t.ids('runs,waits,later') || gen_random_uuid(), false, null)");
    expect(c, "1 3", "select changed || ' ' || skipped from audit_log");
    expect(c, "done", "select t.done('n')"); /* the running one was not touched */
    core_settle(c);
    expect(c, "waits,later", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

static void
a_newer_key_is_never_overwritten(void **state)
{
    PGconn *c = fresh("newer_key");

    (void)state;
    pg_run(c, "select t.failed('q', 'a,b,c', 'broken')");
    pg_run(c, "update queue set unique_key = 'k'");
    expect(c, "1 ready, 2 - (another of these has its unique key)",
           "select t.look('requeue_preview(queue => ''q'')')");
    expect(c, "1 ready, 2 - (another of these has its unique key)",
           "select t.look('requeue_preview(t.ids(''a,b,c''))')");
    pg_run(
        c,
        "insert into queue (queue, unique_key, payload) values ('q', 'k', '{\"name\": \"new\"}')");
    expect(c, "3 - (a newer job has its unique key)",
           "select t.look('requeue_preview(queue => ''q'')')");
    expect(c, "3 - (a newer job has its unique key)",
           "select t.look('requeue_preview(t.ids(''a,b,c''))')");
    expect(c, "a - (a newer job has its unique key),b - (a newer job has its unique key)",
           "select string_agg(t.said(id, state, why), ',' order by t.said(id, state, why)) from "
           "requeue(" ACT(1) ", 1,"
                             " t.ids('a,b'), false, null)");
    pg_run(c, "delete from queue where payload->>'name' = 'new'; select recount()");
    expect(c, "1 of 3",
           "select count(*) filter (where state = 'ready') || ' of ' || count(*) from "
           "requeue_where(" ACT(2) ", 1, 'q', expected => 1)");
    core_check(c);
    PQfinish(c);
}

/* If several ids would take one unique key, only one of them gets the key. If one of them waits and
 * holds the key, no other gets it. The preview gives the numbers of the act. */
static void
a_preview_of_ids_is_what_comes(void **state)
{
    PGconn *c = fresh("ids_exact");

    (void)state;
    pg_run(c, "select t.push('q', 'f,g,h')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 9); select t.done('n')");
    pg_run(c,
           "update history set unique_key = case payload->>'name' when 'h' then 'k' else 'j' end");
    pg_run(c, "select t.failed('q', 'a,b,c,d,x', 'broken')");
    pg_run(c,
           "update queue set unique_key = case payload->>'name' when 'd' then null when 'x' then "
           "'l' else 'k' end");
    pg_run(c, "insert into queue (queue, unique_key, run_after) values ('q', 'l', now() + '1 h')");
    pg_run(c, "create table t.all as select array_agg(id order by id) as ids from (select id from "
              "queue union all select id from history) z");
    pg_run(c, "create table t.would as select p.* from t.all, requeue_preview(ids || ids) p");
    pg_run(c, "create table t.did as select r.* from t.all, requeue(" ACT(1) ", 1, ids || ids) r");
    expect(c, "4 of 9",
           "select sum(n) filter (where state = 'ready') || ' of ' || sum(n) from t.would");
    expect(c, "4 of 9",
           "select count(*) filter (where state = 'ready') || ' of ' || count(*) from t.did");
    core_check(c);
    PQfinish(c);
}

static void
newer_key_in_another_session(void **state)
{
    PGconn *c = fresh("key_race"), *d = core_join("key_race"), *e = core_join("key_race");

    (void)state;
    pg_run(c, "select t.failed('q', 'old', 'broken')");
    pg_run(c, "update queue set unique_key = 'k'");
    /* the push is there first, not committed yet: the requeue waits for it, then leaves its job
     * alone */
    pg_run(d, "begin; insert into queue (queue, unique_key) values ('q', 'k')");
    pg_send(
        c, "create table t.got as select * from requeue(" ACT(1) ", 1, t.ids('old'), false, null)");
    pg_wait_blocked(e, c);
    pg_run(d, "commit");
    assert_string_equal(pg_finish(c), "");
    expect(c, "old - (a newer job has its unique key)", "select t.said(id, state, why) from t.got");
    /* the other way round: the push finds the requeued job */
    pg_run(c, "delete from queue where state = 'ready'; select recount()");
    pg_run(c, "begin; select requeue(" ACT(2) ", 1, t.ids('old'), false, null)");
    pg_send(d, "create table t.pushed as select * from push('q', unique_key => 'k')");
    pg_wait_blocked(e, d);
    pg_run(c, "commit");
    assert_string_equal(pg_finish(d), "");
    expect(c, "f", "select pushed from t.pushed");
    core_check(c);
    PQfinish(c);
    PQfinish(d);
    PQfinish(e);
}

static void
finished_jobs_come_as_new_ones(void **state)
{
    PGconn *c = fresh("finished");

    (void)state;
    pg_run(c, "select t.push('q', 'a'); select t.push('meta', 'b')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 9)");
    pg_run(c, "update work_queue set history = 'm' where queue = 'meta'");
    pg_run(c, "select t.done('n')");
    expect(c, "1 ready (as a new job), 1 - (its payload was not kept)",
           "select t.look('requeue_preview((select array_agg(id) from history))')");
    expect(c, "ready (as new job ID),- (completed, and its payload was not kept)",
           "select string_agg(concat_ws(' ', coalesce(state, '-'), '(' || regexp_replace(why,"
           " '[0-9a-f-]{36}', 'ID') || ')'), ',' order by state) from requeue(" ACT(
               1) ", 1,"
                  " (select array_agg(id) from history), false, null)");
    expect(c, "t",
           "select q.origin_id = h.id and q.payload::text = h.payload::text and q.id <> h.id and"
           " q.tries = 0 from queue q, history h where h.queue = 'q'");
    /* and by predicate */
    expect(c, "1",
           "select count(*) from requeue_where(" ACT(2) ", 1, 'q', '{completed}', expected => 1)"
                                                        " where state = 'ready'");
    core_settle(c);
    expect(c, "a,a", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

static void
groups_and_texts(void **state)
{
    PGconn *c = fresh("groups");

    (void)state;
    pg_run(c, "select t.failed('q', 'a,b', 'no route to host 10.0.0.7'); select t.failed('q', 'c',"
              " 'no route to host 10.0.0.99'); select t.failed('q', 'd', 'disk full');"
              " select t.failed('p', 'e', 'disk full')");
    core_ten_seconds(c);
    core_settle(c);
    expect(c, "p disk full 1,q disk full 1,q no route to host N 3",
           "select string_agg(concat_ws(' ', queue, error_key, n), ',' order by queue, error_key)"
           " from failure_groups()");
    expect(c, "3 ready",
           "select t.look('requeue_preview(error => ''no route to host 10.1.2.3'')')");
    expect(c, "3 ready", "select t.look('requeue_preview(error => ''no route to host N'')')");
    expect(c, "1 ready", "select t.look('requeue_preview(error => ''~0.99'')')");
    expect(c, "", "select t.look('requeue_preview(error => ''~0.98'')')");
    /* upper and lower case do not matter, as in the list of jobs */
    expect(c, "3 ready", "select t.look('requeue_preview(error => ''~ROUTE to'')')");
    expect(c, "2 ready", "select t.look('requeue_preview(error => ''disk full'')')");
    expect(c, "1", "select count(*) from requeue_where(" ACT(1) ", 1, 'q', error => 'disk full')");
    expect(c, "p disk full 1,q no route to host N 3",
           "select string_agg(concat_ws(' ', queue, error_key, n), ',' order by queue, error_key)"
           " from failure_groups()");
    expect(c, "d", "select t.names('ready')");
    core_check(c);
    PQfinish(c);
}

static void
batches_follow_a_cursor(void **state)
{
    PGconn *c = fresh("batches");

    (void)state;
    pg_run(c, "select t.failed('q', 'a,b,c,d,e', 'x'); select t.failed('p', 'f,g', 'x')");
    pg_run(c, "update queue set unique_key = 'k' where payload->>'name' in ('b', 'c')");
    /* b goes, c stays: a cursor that only asked "what is failed" would meet it for ever */
    pg_run(c, "create table t.got as select 1 as batch, * from requeue_where(" ACT(
                  1) ", 1, null,"
                     " \"limit\" => 3, expected => 6)");
    for (int i = 2; i <= 3; i++)
        pg_run(
            c,
            "insert into t.got select %d, * from requeue_where(" ACT(
                1) ", %d, null, \"limit\" =>"
                   " 3, after => (select max(cursor) from t.got where batch = %d), expected => 6)",
            i, i, i - 1);
    expect(
        c, "3 3 1",
        "select string_agg(n::text, ' ' order by batch) from (select batch, count(*) n from t.got"
        " group by 1) z");
    expect(c, "t", "select max(cursor) is null from t.got where batch = 3");
    expect(c, "6", "select count(*) from queue where state = 'ready'");
    expect(c, "c", "select t.names('failed')");
    expect(c, "6 1 3", "select concat_ws(' ', changed, skipped, batches) from audit_log");
    core_check(c);
    PQfinish(c);
}

static void
asked_twice_changes_once(void **state)
{
    PGconn *c = fresh("twice");

    (void)state;
    pg_run(c, "select t.failed('q', 'a,b', 'x')");
    const char *first =
        pg_value(c, "select string_agg(r::text, ';') from requeue_where(" ACT(1) ", 1, 'q') r");
    pg_run(c, "update queue set state = 'failed'");
    const char *seqs = pg_value(c, "select string_agg(seq::text, ',') from queue");
    expect(c, first, "select string_agg(r::text, ';') from requeue_where(" ACT(1) ", 1, 'q') r");
    expect(c, seqs, "select string_agg(seq::text, ',') from queue");
    expect(c, "1 2", "select count(*) || ' ' || max(changed) from audit_log");
    /* another verb under the same uuid is a mistake; no uuid at all, too */
    assert_string_equal(pg_try(c, "select pause(" ACT(1) ", 'q')"), "QT007");
    assert_string_equal(pg_try(c, "select cancel(" ACT(1) ", 2, '{}')"), "QT007");
    assert_string_equal(pg_try(c, "select requeue(null, 1, '{}')"), "QT007");
    assert_string_equal(pg_try(c, "select requeue(" ACT(3) ", 0, '{}')"), "QT007");
    PQfinish(c);
}

/* An action is over an hour after its last batch: a new batch under its uuid is then an error.
 * Before that, a new batch is an error only if its reason or its values differ. */
static void
nobody_adds_to_an_action_that_is_over(void **state)
{
    PGconn *c = fresh("over");

    (void)state;
    pg_run(c, "select t.failed('q', 'a,b,c,d', 'x')");
    const char *first = pg_value(c, "select t.said(id, state, why) from requeue(" ACT(
                                        1) ", 1, t.ids('a'), false, 'as agreed')");
    assert_string_equal(first, "a ready");
    /* another reason or other values, within the hour */
    assert_string_equal(pg_try(c, "select requeue(" ACT(1) ", 2, t.ids('b'), false, 'not so')"),
                        "QT007");
    assert_string_equal(pg_try(c, "select requeue(" ACT(1) ", 2, t.ids('b'), true, 'as agreed')"),
                        "QT007");
    expect(c, "b ready",
           "select t.said(id, state, why) from requeue(" ACT(
               1) ", 2, t.ids('b'), false, 'as agreed')");
    pg_run(c, "update audit set at = at - interval '50 min'; update audit_batch set at = at -"
              " interval '50 min'");
    expect(c, "c ready",
           "select t.said(id, state, why) from requeue(" ACT(
               1) ", 3, t.ids('c'), false, 'as agreed')");
    pg_run(c, "update audit_batch set at = at - interval '61 min'");
    assert_string_equal(pg_try(c, "select requeue(" ACT(1) ", 4, t.ids('d'), false, 'as agreed')"),
                        "QT007");
    /* a batch that is done always gets its stored answer */
    expect(c, first,
           "select t.said(id, state, why) from requeue(" ACT(
               1) ", 1, t.ids('a'), false, 'as agreed')");
    expect(c, "d", "select t.names('failed')");
    expect(c, "3 3", "select concat_ws(' ', changed, batches) from audit_log");
    core_check(c);
    PQfinish(c);
}

static void
twice_at_the_same_time(void **state)
{
    PGconn *c = fresh("twice_race"), *d = core_join("twice_race"), *e = core_join("twice_race");

    (void)state;
    pg_run(c, "select t.failed('q', 'a', 'x')");
    pg_run(c, "begin; select requeue(" ACT(1) ", 1, t.ids('a'), false, null)");
    pg_send(d,
            "create table t.got as select * from requeue(" ACT(1) ", 1, t.ids('a'), false, null)");
    pg_wait_blocked(e, d);
    pg_run(c, "commit");
    assert_string_equal(pg_finish(d), "");
    expect(c, "a ready", "select t.said(id, state, why) from t.got");
    expect(c, "1", "select count(*) from audit_batch");
    core_check(c);
    PQfinish(c);
    PQfinish(d);
    PQfinish(e);
}

static void
expected_and_frozen(void **state)
{
    PGconn *c = fresh("frozen");

    (void)state;
    pg_run(c, "select t.failed('q', 'a,b', 'x')");
    const char *seen = pg_value(c, "select clock_timestamp()");
    pg_run(c, "select t.failed('q', 'c', 'x')");
    assert_string_equal(pg_try(c, "select requeue_where(" ACT(1) ", 1, 'q', expected => 2)"),
                        "QT005");
    expect(c, "0 0",
           "select (select count(*) from audit) || ' ' || count(*) from queue where state ="
           " 'ready'");
    /* what failed after the look is not meant */
    expect(c, "a,b",
           "with r as (select * from requeue_where(" ACT(
               2) ", 1, 'q', before => '%s', expected => 2))"
                  " select string_agg(split_part(t.said(id, state, why), ' ', 1), ',' order by id) "
                  "from r",
           seen);
    expect(c, "c", "select t.names('failed')");
    core_check(c);
    PQfinish(c);
}

/* How often a statement normalises an error. That is expensive: for a million rows it happens once,
 * for the error that was asked for, and not once a row. */
static int64_t
keys_made(PGconn *c, const char *ask)
{
    pg_run(c, "begin; set local track_functions = 'all'; select %s", ask);
    int64_t n = pg_int(c, "select coalesce(sum(calls), 0)::bigint from pg_stat_xact_user_functions"
                          " where funcname in ('error_key', 'error_matches')");
    pg_run(c, "rollback");
    return n;
}

static void
what_is_wanted_is_normalised_once(void **state)
{
    static const char *const asks[] = {
        "requeue_preview(error => 'code 7')",
        "requeue_preview(error => '~code')",
        "remove_preview('discard', error => 'code 7')",
        "change_preview('priority', error => 'code 7', wanted => 1)",
        "requeue_where(" ACT(1) ", 1, null, error => 'code 7', expected => 300)",
        "discard_where(" ACT(1) ", 1, null, '{failed}', error => 'code 7', expected => 300)",
    };
    PGconn *c = fresh("normalised");

    (void)state;
    pg_run(c, "insert into queue (queue, payload, state, tries, error, error_key)"
              " select 'q', '{}', 'failed', 5, 'code ' || i, 'code N' from generate_series(1, 300) "
              "i; select recount()");
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        int64_t n = keys_made(c, asks[i]);
        if (n > 20)
            fail_msg("%lld times: %s", (long long)n, asks[i]);
    }
    PQfinish(c);
}

/* Ids made within one millisecond are random: the order in which the caller names jobs decides,
 * here against that of their ids. */
static void
the_callers_order_decides(void **state)
{
    PGconn *c = fresh("requeue_in_order");

    (void)state;
    pg_run(
        c,
        "select push('q', '{\"name\": \"a\"}', unique_key => 'k',"
        " id => '01900000-0000-7000-8000-00000000000f'); select t.step(), t.step(), t.claim('n'),"
        " t.fail('n', final => true); delete from t.held;"
        "select push('q', '{\"name\": \"b\"}', unique_key => 'k',"
        " id => '01900000-0000-7000-8000-00000000000e'); select t.step(), t.step(), t.claim('n'),"
        " t.fail('n', final => true); delete from t.held");
    expect(
        c, "a ready|b - (a newer job has its unique key)",
        "select string_agg(t.said(id, state, why), '|') from requeue(" ACT(1) ", 1, t.ids('a,b'))");
    pg_run(c, "select push('r', '{\"name\": \"c\"}', id => '01900000-0000-7000-8000-00000000000c');"
              "select push('r', '{\"name\": \"d\"}', id => '01900000-0000-7000-8000-00000000000b');"
              "select t.step(), t.step(), t.claim('n', 9), t.done('n')");
    expect(
        c, "c ready (as new job ID)|d ready (as new job ID)",
        "select string_agg(t.said(id, state, why), '|') from requeue(" ACT(2) ", 1, t.ids('c,d'))");
    expect(c, "c,d",
           "select string_agg(payload->>'name', ',' order by seq) from queue where queue = 'r'");
    pg_run(c, "delete from history");
    expect(c, "c at priority 3 (was 5)|d at priority 3 (was 5)",
           "select string_agg(t.said(id, state, why), '|') from set_priority(" ACT(
               3) ", 1, t.ids('c,d'), 3)");
    pg_run(c,
           "select push('s', '{\"name\": \"e\"}', id => '01900000-0000-7000-8000-00000000000a');"
           "select push('s', '{\"name\": \"f\"}', id => '01900000-0000-7000-8000-000000000009')");
    expect(
        c, "e cancelled|f cancelled",
        "select string_agg(t.said(id, state, why), '|') from cancel(" ACT(4) ", 1, t.ids('e,f'))");
    pg_run(c, "select push('f', json_build_object('name', chr(96 + i)),"
              " id => ('01900000-0000-7000-8000-00000000010' || 9 - i)::uuid)"
              " from generate_series(1, 5) i;"
              "delete from t.held; select t.step(), t.step(), t.claim('n', 9, null, '{f}'),"
              " t.fail('n', final => true)");
    expect(c, "a,b,c,d,e", "select t.names('failed', 'f')");
    core_check(c);
    PQfinish(c);
}

/* Some are tried before the rest: which ones, at which priority, and the way back. */
static void
a_sample_goes_ahead_of_those_that_wait(void **state)
{
    PGconn *c = fresh("sample");
    static const char sample[] = "select string_agg(t.said(id, null, null), ',' order by o) from"
                                 " requeue_sample(%s) with ordinality s (id, o)";

    (void)state;
    pg_run(c, "select t.failed('q', 'a,b,c,d,e,f,g', 'broken 1'); select t.failed('q', 'x', 'no')");
    pg_run(c,
           "update queue set changed = now() - (122 - ascii(payload->>'name')) * interval '1 s'");
    pg_run(c, "update queue set unique_key = 'k' where payload->>'name' = 'd'");
    expect(c, "g -,d -,a -", sample, "'q', error => 'broken 9', n => 3");
    expect(c, "g -,f -,e -,d -,c -,b -,a -", sample,
           "'q', kind => null, error "
           "=> '~broken', n => 10");
    expect(c, "a -", sample, "'q', before => now() - interval '24.5 s', n => 1");
    expect(c, "", "select coalesce(string_agg(id, ','), '') from requeue_sample('none')");
    expect(c, "0", "select count(*) from requeue_sample('q', n => 0)");
    expect(c, "a -", sample, "'q', error => 'broken 1', n => 1");
    pg_run(c,
           "insert into queue (queue, unique_key, payload) values ('q', 'k', '{\"name\": \"d2\"}');"
           "select t.push('q', 'waits,more')");
    expect(c, "g -,e -,a -", sample, "'q', error => 'broken 1', n => 3"); /* not d */
    core_settle(c);
    expect(c, "e ready,a ready,d - (a newer job has its unique key)",
           "select string_agg(t.said(id, state, why), ',') from requeue_at_priority(" ACT(
               1) ", 1,"
                  " t.ids('e,a,d'), false, 'three of 7', null, 0)");
    core_check(c);
    expect(c, "a 0,e 0",
           "select string_agg(concat_ws(' ', payload->>'name', priority), ',' order by"
           " payload->>'name') from queue where state = 'ready' and priority = 0");
    expect(c, "b,c,d,f,g,x", "select t.names('failed', 'q')"); /* frozen, by the filter */
    expect(c, "4 ready, 1 - (a newer job has its unique key)",
           "select t.look('requeue_preview(queue => ''q'', error => ''broken 1'')')");
    core_settle(c);
    core_check(c);
    expect(c, "a", "select t.claim('n', 1)"); /* before those that wait */
    expect(c, "1 failed again, 1 - (running)",
           "select t.look('undo_preview(''00000000-0000-0000-0000-000000000001'')')");
    pg_run(c, "select undo(" ACT(2) ", 1, " ACT(1) ")");
    expect(c, "failed 5",
           "select concat_ws(' ', state, priority) from queue where"
           " payload->>'name' = 'e'");
    core_check(c);
    expect(c, "priority 0", "select audit_change(a) from audit a where action = " ACT(1));
    assert_string_equal(
        pg_try(c, "select requeue_at_priority(" ACT(3) ", 1, t.ids('b'), priority => 10)"),
        "QT007");
    assert_string_equal(
        pg_try(c, "select requeue_at_priority(" ACT(1) ", 1, t.ids('b'), priority => 1)"), "");
    pg_run(c, "select t.done('n')"); /* a finished one comes as a new job */
    core_settle(c);
    expect(c, "a ready (as new job ID)",
           "select t.said(id, state, why) from requeue_at_priority(" ACT(4) ", 1, t.ids('a'),"
                                                                            " priority => 0)");
    expect(c, "0", "select priority from queue where payload->>'name' = 'a'");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_callers_order_decides),
        cmocka_unit_test(tries_are_kept_and_one_is_added),
        cmocka_unit_test(what_is_left_alone_says_why),
        cmocka_unit_test(a_newer_key_is_never_overwritten),
        cmocka_unit_test(a_preview_of_ids_is_what_comes),
        cmocka_unit_test(newer_key_in_another_session),
        cmocka_unit_test(finished_jobs_come_as_new_ones),
        cmocka_unit_test(groups_and_texts),
        cmocka_unit_test(batches_follow_a_cursor),
        cmocka_unit_test(asked_twice_changes_once),
        cmocka_unit_test(nobody_adds_to_an_action_that_is_over),
        cmocka_unit_test(twice_at_the_same_time),
        cmocka_unit_test(expected_and_frozen),
        cmocka_unit_test(what_is_wanted_is_normalised_once),
        cmocka_unit_test(a_sample_goes_ahead_of_those_that_wait),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
