/*
 * Acts with a payload: another one for a job that is then requeued, only while the job is as it was
 * read; undo, which brings the old one back; and a job pushed by hand, with the guards of a push.
 */
#include "tests/sql/core.h"

#define ACT(n) "'00000000-0000-0000-0000-00000000000" #n "'"

/* What an act or a preview answered; v(name) = the version of a job as the console reads it. */
static const char words[] =
    "create function t.said(what text) returns text language plpgsql as $$ declare r text; begin "
    "execute 'select string_agg(n || '' '' || coalesce(state, ''-'') || coalesce('' ('' || "
    "regexp_replace(why, ''[0-9a-f-]{36}'', ''ID'') || '')'', ''''), '', '' order by state, why) "
    "from ' || $1 || ' z' into r; return coalesce(r, 'nothing'); end $$;"
    "create function t.id(name text) returns uuid[] language sql as $$"
    " select array_agg(id) from (select id, payload->>'name' as name from queue union "
    "select id, payload->>'name' from history) z where z.name = $1 $$;"
    "create function t.v(name text) returns text language sql as $$"
    " select job_version(state, seq, finished) from (select id, state::text, seq, "
    "null::timestamptz "
    "as finished from queue union select id, state::text, null, finished from history) z "
    "where id = any(t.id($1)) $$;"
    "create function t.failed(names text) returns void language plpgsql as $$ begin perform "
    "t.push('q', $1); perform schedule('test'); perform schedule('test'); perform t.claim('w', "
    "1000); perform t.fail('w', error => 'broken', final => true); delete from t.held; end $$;";

static PGconn *
fresh(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "%s", words);
    return c;
}

#define SAID(text) "select t.said($x$" text "$x$)"
#define EDIT(n, name, version, payload) \
    SAID("edit_job(" ACT(n) ", 1, t.id('" name "'), " version ", '" payload "')")

static void
a_failed_job_gets_another_payload(void **state)
{
    PGconn *c = fresh("failed");

    (void)state;
    pg_run(c, "select t.failed('a,b')");
    expect(c, "1 ready", SAID("edit_preview(t.id('a'), t.v('a'), '{\"name\": \"a2\"}')"));
    expect(c, "1 ready", EDIT(1, "a", "t.v('a')", "{\"name\":  \"a2\"}"));
    /* to the letter, the tries are kept; the other job is as it was */
    expect(c, "{\"name\":  \"a2\"} ready 1",
           "select payload || ' ' || state || ' ' || tries from queue "
           "where id = any(t.id('a2'))");
    expect(c, "1", "select count(*) from queue where state = 'failed'");
    core_check(c);
    /* asked again after a lost answer: the same words, nothing twice */
    expect(c, "1 ready",
           SAID("edit_job(" ACT(1) ", 1, t.id('a2'), 'failed/1', '{\"name\": \"a3\"}')"));
    expect(c, "1", "select count(*) from queue where payload->>'name' = 'a2'");
    expect(c, "edit 1 0", "select verb || ' ' || changed || ' ' || skipped from audit_log");
    expect(c, "{\"name\":\"a\"}",
           "select replace(before->0->>'payload', ' ', '') from audit_batch");
    core_settle(c);
    expect(c, "a2", "select t.claim('n', 9)");
    expect(c, "1 - (running)", SAID("undo(" ACT(2) ", 1, " ACT(1) ")"));
    PQfinish(c);
}

static void
undo_brings_the_payload_back(void **state)
{
    PGconn *c = fresh("undo");

    (void)state;
    pg_run(c, "select t.failed('a'); select t.push('q', 'later', 5, '1 h')");
    pg_run(c, "select id from push_text('q', 'three words', 'text/plain', delay => '1 h')");
    core_settle(c);
    pg_run(c, "create table t.was as select * from queue");
    expect(c, "1 ready", EDIT(1, "a", "t.v('a')", "[1]"));
    expect(c, "1 ready (now instead of later)", EDIT(2, "later", "t.v('later')", "[2]"));
    pg_run(c, "select edit_job(" ACT(3) ", 1, array_agg(id), min(job_version(state::text, seq, "
                                        "null)), 'no {json') from queue where body is not null");
    expect(c, "[1],[2],no {json",
           "select string_agg(coalesce(payload::text, convert_from(body, 'UTF8')), ',' order by "
           "seq) from queue where state = 'ready'");
    core_check(c);
    expect(c, "1 failed again", SAID("undo_preview(" ACT(1) ")"));
    expect(c, "1 failed again", SAID("undo(" ACT(4) ", 1, " ACT(1) ")"));
    expect(c, "1 scheduled again", SAID("undo(" ACT(5) ", 1, " ACT(2) ")"));
    expect(c, "1 scheduled again", SAID("undo(" ACT(6) ", 1, " ACT(3) ")"));
    expect(
        c, "3",
        "select count(*) from queue q join t.was w using (id) where q.payload::text is not "
        "distinct from w.payload::text and q.body is not distinct from w.body and q.payload_type "
        "is not distinct from w.payload_type and q.state = w.state and q.tries = w.tries and "
        "q.max_tries is not distinct from w.max_tries and q.run_after is not distinct from "
        "w.run_after and q.changed = w.changed");
    core_check(c);
    PQfinish(c);
}

static void
what_moved_on_is_left_alone(void **state)
{
    PGconn *c = fresh("moved");
    const char *v;

    (void)state;
    pg_run(c, "select t.failed('a'); create table t.version as select t.v('a') as v");
    pg_run(c, "select requeue(" ACT(1) ", 1, t.id('a'))");
    v = "(select v from t.version)";
    expect(c, "1 - (it has moved on since it was read: ready now)",
           "select t.said('edit_preview(t.id(''a''), %s, ''[1]'')')", v);
    expect(c, "1 - (it has moved on since it was read: ready now)",
           "select t.said($x$edit_job(" ACT(2) ", 1, t.id('a'), %s, '[1]')$x$)", v);
    /* a ready one in a free lease goes behind the others; one that runs stays */
    pg_run(c, "select t.push('q', 'b')");
    core_settle(c);
    expect(c, "1 ready (behind those that wait)", EDIT(3, "a", "t.v('a')", "{\"name\": \"a2\"}"));
    core_check(c);
    core_settle(c);
    expect(c, "b", "select t.claim('n', 1)");
    expect(c, "1 - (running)", EDIT(4, "b", "t.v('b')", "[1]"));
    expect(c, "a2", "select t.claim('n', 1)");
    expect(c, "done,done", "select t.done('n')");
    expect(c, "1 - (it has moved on since it was read: completed now)",
           "select t.said($x$edit_job(" ACT(5) ", 1, t.id('b'), 'ready/1', '[1]')$x$)");
    expect(c, "1 - (no such job)",
           SAID("edit_job(" ACT(6) ", 1, array[gen_random_uuid()], 'ready/1', '[1]')"));
    core_check(c);
    /* finished: a new job with its history */
    expect(c, "1 ready (as new job ID)", EDIT(7, "b", "t.v('b')", "{\"name\": \"b2\"}"));
    expect(c, "{\"name\": \"b2\"}",
           "select q.payload::text from queue q join history h on h.id = q.origin_id");
    core_check(c);
    expect(c, "1 withdrawn", SAID("undo(" ACT(8) ", 1, " ACT(7) ")"));
    expect(c, "0", "select count(*) from queue");
    core_check(c);
    PQfinish(c);
}

static void
what_no_payload_may_be(void **state)
{
    PGconn *c = fresh("guards");

    (void)state;
    pg_run(c, "select t.failed('a'); select push_bytes('q', '\\x00ff')");
    assert_string_equal(
        pg_try(c, "select edit_job(" ACT(1) ", 1, t.id('a'), t.v('a'), '{\"name\"')"), "22P02");
    assert_string_equal(pg_try(c, "select * from edit_preview(t.id('a'), t.v('a'), '')"), "22P02");
    pg_run(c, "update setting set value = '2000' where name = 'payload_limit'");
    assert_string_equal(pg_try(c, "select edit_job(" ACT(1) ", 1, t.id('a'), t.v('a'), '\"' || "
                                                            "repeat('x', 3000) || '\"')"),
                        "QT004");
    assert_string_equal(pg_try(c, "select push_by_hand(" ACT(1) ", 'q', '{}', '\"' || "
                                                                "repeat('x', 3000) || '\"')"),
                        "QT004");
    assert_string_equal(pg_try(c, "select edit_job(" ACT(1) ", 1, '{}', 'x', '1')"), "QT007");
    expect(c, "1 - (its payload is bytes, not text)",
           "select t.said(format('edit_preview(%%L, %%L, ''x'')', array[id], "
           "job_version(state::text, seq, null))) from queue where body is not null");
    expect(c, "0", "select count(*) from audit");
    /* a newer job has its key */
    pg_run(c, "update queue set unique_key = 'k' where state = 'failed'; select push('q', "
              "unique_key => 'k')");
    expect(c, "1 - (a newer job has its unique key)", EDIT(2, "a", "t.v('a')", "[1]"));
    expect(c, "failed", "select state from queue where id = any(t.id('a'))");
    core_check(c);
    PQfinish(c);
}

static void
pushed_by_hand(void **state)
{
    PGconn *c = fresh("hand");

    (void)state;
    expect(c, "1 ready (a queue that was never seen so far)", SAID("push_preview('q')"));
    expect(c, "1 ready (job ID)",
           SAID("push_by_hand(" ACT(1) ", 'q', '{\"kind\": \"k\", \"priority\": 2, \"unique_key\": "
                                       "\"u\", \"max_tries\": 3}', '{\"name\": \"a\"}', 'why')"));
    expect(c, "1 ready (job ID)", SAID("push_by_hand(" ACT(1) ", 'q', '{\"kind\": \"k\"}')"));
    expect(c, "k 2 u 3 {\"name\": \"a\"}",
           "select concat_ws(' ', kind, priority, unique_key, max_tries, payload) from queue");
    core_check(c);
    expect(c, "1 - (there is such a job already: ID)",
           SAID("push_preview('q', '{\"unique_key\": \"u\"}')"));
    expect(c, "1 - (there is such a job already: ID)",
           SAID("push_by_hand(" ACT(2) ", 'q', '{\"unique_key\": \"u\"}')"));
    expect(c, "1 scheduled (job ID)",
           SAID("push_by_hand(" ACT(3) ", 'q', '{\"delay\": \"1 h\", \"payload_type\": "
                                       "\"text/plain\"}', 'no {json')"));
    expect(c, "no {json", "select convert_from(body, 'UTF8') from queue where state = 'scheduled'");
    expect(c, "push q why 1 0",
           "select concat_ws(' ', verb, queue, reason, changed, skipped) from audit_log order by at"
           " limit 1");
    assert_string_equal(pg_try(c, "select undo(" ACT(4) ", 1, " ACT(1) ")"), "QT007");
    pg_run(c, "select pause(" ACT(5) ", 'q')");
    expect(c, "1 ready (the queue is paused: it waits)", SAID("push_preview('q')"));
    core_check(c);
    PQfinish(c);
}

static void
what_no_push_may_say(void **state)
{
    static const char *const bad[][2] = {
        {"'', '{}', '1'",                      "23514"},
        {"'q', '{\"priority\": 10}', '1'",     "QT007"},
        {"'q', '{\"max_tries\": 0}', '1'",     "QT007"},
        {"'q', '{\"max_tries\": 40000}', '1'", "QT007"},
        {"'q', '{\"prio\": 1}', '1'",          "QT007"},
        {"'q', '{\"at\": \"infinity\"}', '1'", "QT007"},
        {"'q', '{}', '{'",                     "22P02"},
    };
    PGconn *c = fresh("nopush");

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_string_equal(pg_try(c, "select push_by_hand(" ACT(1) ", %s)", bad[i][0]), bad[i][1]);
        assert_string_equal(pg_try(c, "select * from push_preview(%s)", bad[i][0]), bad[i][1]);
    }
    expect(c, "0 0", "select (select count(*) from queue) || ' ' || (select count(*) from audit)");
    PQfinish(c);
}

/* The operator may, and only by these functions; who looks or works may not. */
static void
only_operators_may(void **state)
{
    static const char *const acts[] = {
        "select queues.push_by_hand(" ACT(1) ", 'q')",
        "select queues.edit_job(" ACT(2) ", 1, array[gen_random_uuid()], 'x', '1')",
    };
    PGconn *c = fresh("roles");

    (void)state;
    for (int i = 0; i < 2; i++) {
        pg_run(c, "set role queues_viewer");
        assert_string_equal(pg_try(c, "%s", acts[i]), "42501");
        pg_run(c, "select * from push_preview('q')");
        pg_run(c, "set role queues_worker");
        assert_string_equal(pg_try(c, "%s", acts[i]), "42501");
        pg_run(c, "set role queues_operator");
        pg_run(c, "%s", acts[i]);
        pg_run(c, "reset role");
    }
    PQfinish(c);
}

/* The same as undo_decides_under_the_lock in test_undo.c, with an edit. */
static void
an_edit_decides_under_the_lock(void **state)
{
    PGconn *c = fresh("edit_locked"), *d = core_join("edit_locked"), *e = core_join("edit_locked"),
           *f = core_join("edit_locked");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    pg_run(d, "begin");
    expect(d, "at priority 3", "select state from set_priority(" ACT(1) ", 1, t.id('a'), 3)");
    core_act_under_lock(c, d, e, f,
                        "select edit_job(" ACT(2) ", 1, t.id('a'), t.v('a'), '{\"name\": \"b\"}')");
    expect(c, "it has moved on since it was read: ready now",
           "select rows -> 0 ->> 'why' from audit_batch where action = " ACT(2));
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    core_check(c);
    PQfinish(c);
    PQfinish(d);
    PQfinish(e);
    PQfinish(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_job_gets_another_payload),
        cmocka_unit_test(undo_brings_the_payload_back),
        cmocka_unit_test(what_moved_on_is_left_alone),
        cmocka_unit_test(what_no_payload_may_be),
        cmocka_unit_test(pushed_by_hand),
        cmocka_unit_test(what_no_push_may_say),
        cmocka_unit_test(only_operators_may),
        cmocka_unit_test(an_edit_decides_under_the_lock),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
