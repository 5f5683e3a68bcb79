/*
 * Priority and time of waiting jobs, requeue spread over a time, what goes by predicate, and undo:
 * of each act what it brings back, and what it refuses because a worker or another operator was
 * there meanwhile. Every preview must say what the act then does.
 */
#include "tests/sql/core.h"

#define ACT(n) "'00000000-0000-0000-0000-00000000000" #n "'"

/* What an act or a preview answered, in counts: "2 failed again, 1 - (running)". */
static const char words[] =
    "create function t.ids(names text) returns uuid[] language sql as $$"
    " select array_agg(id order by name) from (select id, payload->>'name' as name from queue "
    "union "
    "all select id, payload->>'name' from history) z where name = any(string_to_array($1, ',')) $$;"
    "create function t.said(what text) returns text language plpgsql as $$ declare r text; begin "
    "execute 'select string_agg(n || '' '' || coalesce(state, ''-'') || coalesce('' ('' || why || "
    "'')'', ''''), '', '' order by state, why) from (select sum(n) n, state, why from ' || $1 || ' "
    "x group by 2, 3) z' into r; return coalesce(r, 'nothing'); end $$;"
    "create function t.failed(names text, error text default 'broken 1') returns void language "
    "plpgsql as $$ begin perform t.push('q', $1); perform schedule('test'); perform "
    "schedule('test'); perform t.claim('w', 1000); perform t.fail('w', error => $2, final => true);"
    " delete from t.held; end $$;";

static PGconn *
fresh(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "%s", words);
    return c;
}

#define SAID(text) "select t.said($x$" text "$x$)"

static void
priority_of_waiting_jobs(void **state)
{
    PGconn *c = fresh("priority");

    (void)state;
    pg_run(c, "select t.failed('f'); select t.push('q', 'runs')");
    core_settle(c);
    expect(c, "runs", "select t.claim('n', 1)");
    pg_run(c, "select t.push('q', 'a,b,c'); select t.push('q', 'soon', 1); "
              "select t.push('q', 'later', 5, '1 h')");
    core_settle(c);
    expect(c, "5 at priority 1 (was 5), 1 - (has it already), 1 - (running)",
           SAID("change_preview('priority', queue => 'q', wanted => 1)"));
    expect(c, "3 at priority 1 (was 5), 1 - (no such job), 1 - (running)",
           SAID("set_priority(" ACT(1) ", 1, t.ids('b,later,f,runs') || gen_random_uuid(), 1)"));
    core_check(c);
    core_settle(c);
    core_check(c);
    expect(c, "soon,b,a,c", "select t.claim('m', 9)"); /* the failed and the later one wait */
    expect(c, "done", "select t.done('n')");
    assert_string_equal(pg_try(c, "select set_priority(" ACT(2) ", 1, t.ids('f'), 10)"), "QT007");
    /* b runs; the others get back what they had */
    expect(c, "2 at priority 5, 1 - (running)", SAID("undo_preview(" ACT(1) ")"));
    expect(c, "2 at priority 5, 1 - (running)", SAID("undo(" ACT(3) ", 1, " ACT(1) ")"));
    expect(c, "5,5", "select string_agg(priority::text, ',') from queue where state <> 'ready'");
    core_check(c);
    expect(c, "2 - (has another priority by now), 1 - (running)", SAID("undo_preview(" ACT(1) ")"));
    PQfinish(c);
}

static void
time_of_waiting_jobs(void **state)
{
    PGconn *c = fresh("time");

    (void)state;
    pg_run(c, "select t.failed('f'); select t.push('q', 'a,b'); "
              "select t.push('q', 'later', 5, '1 h')");
    core_settle(c);
    expect(c, "3 scheduled, 1 - (failed: requeue it)",
           SAID("change_preview('reschedule', queue => 'q', at => now() + interval '2 h')"));
    expect(c, "2 scheduled, 1 - (failed: requeue it)",
           SAID("set_time(" ACT(1) ", 1, t.ids('a,f,later'), now() + interval '2 h')"));
    core_check(c);
    core_settle(c);
    expect(c, "b", "select t.claim('n', 9)");
    expect(c, "1 ready, 1 ready (now), 1 - (running)",
           "select replace(t.said($x$set_time(" ACT(2) ", 1, t.ids('a,b,later'))$x$), '2 ready', "
                                                       "'1 ready, 1 ready (now)')");
    core_settle(c);
    expect(c, "a", "select t.claim('m', 1)");
    core_check(c);
    /* a runs; later waits for a worker and gets its time back */
    expect(c, "1 scheduled again, 1 - (running)", SAID("undo(" ACT(3) ", 1, " ACT(2) ")"));
    expect(c, "t",
           "select run_after > now() + interval '1 h' from queue where state = 'scheduled'");
    core_check(c);
    assert_string_equal(pg_try(c, "select set_time(" ACT(4) ", 1, t.ids('b'), 'infinity')"),
                        "QT007");
    PQfinish(c);
}

static void
requeue_spread_over_time(void **state)
{
    PGconn *c = fresh("spread");

    (void)state;
    pg_run(c, "select t.many('q', 'j', 40)");
    core_settle(c);
    pg_run(c, "select t.claim('w', 40), t.claim('w', 40), t.claim('w', 40), t.claim('w', 40)");
    pg_run(c, "select t.fail('w', final => true); delete from t.held");
    pg_run(c, "update queue set unique_key = payload->>'name' where payload->>'name' < 'j2'");
    int64_t n = pg_int(c, "select count(*) from queue where state = 'failed'");
    assert_true(n >= 10);
    expect(c, "t",
           "select sum(n) = %lld and min(state) = 'scheduled' from requeue_preview(queue => 'q', "
           "spread => '10 min')",
           (long long)n);
    const char *before = pg_value(c, "select clock_timestamp()");
    expect(c, "t",
           "select count(*) = %lld and min(state) = 'scheduled' from requeue_where(" ACT(
               1) ", 1, 'q', spread => '10 min')",
           (long long)n);
    core_check(c);
    expect(
        c, "t",
        "select min(run_after) >= '%s' and max(run_after) < now() + interval '601 s' and count(*) "
        "filter (where run_after < timestamptz '%s' + interval '5 min') between 3 and %lld from "
        "queue where state = 'scheduled'",
        before, before, (long long)n - 3);
    assert_string_equal(pg_try(c, "select requeue(" ACT(2) ", 1, '{}', spread => '-1 s')"),
                        "QT007");
    expect(c, "t",
           "select count(*) = %lld and min(state) = 'failed again' from undo(" ACT(3) ", 1, " ACT(
               1) ")",
           (long long)n);
    core_check(c);
    expect(c, "1", "select count(*) from failure_groups()");
    PQfinish(c);
}

static void
discard_by_predicate_and_back(void **state)
{
    PGconn *c = fresh("discard_where");

    (void)state;
    pg_run(c, "insert into queue_config (queue, history) values ('q', 'none')");
    pg_run(c, "select t.failed('a,b,c,d', 'broken 1'); select t.failed('x', 'other')");
    pg_run(c, "select t.push('q', 'w1,w2')");
    core_settle(c);
    expect(c, "4 discarded (failed)",
           SAID("remove_preview('discard', queue => 'q', states => '{failed}', error => 'broken "
                "9')"));
    assert_string_equal(
        pg_try(c, "select discard_where(" ACT(1) ", 1, 'q', '{failed}', expected => 3)"), "QT005");
    expect(
        c, "3 discarded",
        SAID("discard_where(" ACT(1) ", 1, 'q', '{failed}', error => 'broken 9', \"limit\" => 3)"));
    expect(c, "1 discarded",
           SAID("discard_where(" ACT(1) ", 2, 'q', '{failed}', error => 'broken 9', \"limit\" => "
                                        "3, after => (select cursor from audit_batch))"));
    core_check(c);
    expect(c, "2 deleted", SAID("delete_where(" ACT(2) ", 1, 'q', '{ready}')"));
    core_check(c);
    assert_string_equal(pg_try(c, "select * from undo_preview(" ACT(2) ")"), "QT007");
    pg_run(c, "select requeue(" ACT(3) ", 1, t.ids('b'))"); /* a new job; the old one is history */
    pg_run(c, "create table t.was as select id, tries, error, created from history");
    expect(c, "4 failed again", SAID("undo_preview(" ACT(1) ")"));
    expect(c, "3 failed again", SAID("undo(" ACT(4) ", 1, " ACT(1) ")"));
    expect(c, "3 failed again", SAID("undo(" ACT(4) ", 1, " ACT(1) ")")); /* asked twice */
    expect(c, "1 failed again", SAID("undo(" ACT(4) ", 2, " ACT(1) ", '1')"));
    core_check(c);
    expect(c, "4",
           "select count(*) from queue q join t.was w using (id, tries, error, created) where "
           "q.state = 'failed' and q.error_key = 'broken N'");
    expect(c, "0", "select count(*) from history");
    expect(c, "4 - (is back already)", SAID("undo_preview(" ACT(1) ")"));
    PQfinish(c);
}

static void
undo_of_cancel(void **state)
{
    PGconn *c = fresh("undo_cancel");

    (void)state;
    pg_run(c, "select t.push('q', 'runs')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 1); select t.push('q', 'later', 2, '1 h')");
    pg_run(c, "select push('q', '{\"name\": \"key\"}', unique_key => 'k')");
    core_settle(c);
    expect(c, "2 cancelled, 1 running (asked to end)",
           SAID("cancel(" ACT(1) ", 1, t.ids('runs,later,key'))"));
    core_check(c);
    pg_run(c, "select push('q', '{\"name\": \"newer\"}', unique_key => 'k')");
    expect(c,
           "1 scheduled again, 1 - (a newer job has its unique key), 1 - (was asked to end while "
           "it ran)",
           SAID("undo_preview(" ACT(1) ")"));
    expect(c,
           "1 scheduled again, 1 - (a newer job has its unique key), 1 - (was asked to end while "
           "it ran)",
           SAID("undo(" ACT(2) ", 1, " ACT(1) ")"));
    expect(c, "later 2 scheduled",
           "select concat_ws(' ', payload->>'name', priority, state) from queue where state = "
           "'scheduled'");
    core_check(c);
    PQfinish(c);
}

/* An open transaction has pushed the unique key of one of the jobs. That job is left alone, and
 * stays in history; the other one comes back. */
static void
undo_of_cancel_meets_an_open_push(void **state)
{
    PGconn *c = fresh("undo_open"), *late = core_join("undo_open"), *act = core_join("undo_open");

    (void)state;
    pg_run(c, "select t.push('q', 'plain'), push('q', '{\"name\": \"key\"}', unique_key => 'k')");
    core_settle(c);
    expect(c, "2 cancelled", SAID("cancel(" ACT(1) ", 1, t.ids('plain,key'))"));
    pg_run(late, "begin; select push('q', '{\"name\": \"newer\"}', unique_key => 'k')");
    pg_send(act, "create table said as " SAID("undo(" ACT(2) ", 1, " ACT(1) ")") " as t");
    pg_wait_blocked(c, act);
    pg_run(late, "commit");
    assert_string_equal(pg_finish(act), "");
    expect(c, "1 ready again, 1 - (another job has its id or unique key since the preview)",
           "select t from said");
    expect(c, "newer plain",
           "select string_agg(payload ->> 'name', ' ' order by payload ->> 'name') from queue");
    expect(c, "key cancelled", "select concat_ws(' ', payload ->> 'name', state) from history");
    core_check(c);
    PQfinish(c);
    PQfinish(late);
    PQfinish(act);
}

static void
undo_of_requeue_leaves_what_has_run(void **state)
{
    PGconn *c = fresh("undo_requeue");

    (void)state;
    pg_run(c, "select t.failed(n) from unnest('{a,b,c,d,e}'::text[]) n; select t.push('q', 'old')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 9); select t.done('n')");
    pg_run(c, "create table t.was as select id, changed, tries, max_tries from queue");
    expect(c, "1 ready (as new job), 5 ready",
           "select regexp_replace(t.said($x$requeue(" ACT(
               1) ", 1, t.ids('a,b,c,d,e,old'))$x$), ' [0-9a-f-]{36}', '')");
    core_settle(c);
    expect(c, "a,b,c",
           "select t.claim('n', 1) || ',' || t.claim('n', 1) || ',' || t.claim('n', 1)");
    pg_run(c, "select t.done('n', 'a'); select t.fail('n', 'b', final => true)");
    pg_run(c, "select cancel(" ACT(2) ", 1, t.ids('d'))");
    expect(c,
           "1 failed again, 1 withdrawn, 2 - (finished or gone by now), 1 - (has run since), 1 - "
           "(running)",
           SAID("undo_preview(" ACT(1) ")"));
    expect(c,
           "1 failed again, 1 withdrawn, 2 - (finished or gone by now), 1 - (has run since), 1 - "
           "(running)",
           SAID("undo(" ACT(3) ", 1, " ACT(1) ")"));
    core_check(c);
    expect(c, "t",
           "select q.state = 'failed' and (q.changed, q.tries, coalesce(q.max_tries, -1)) = "
           "(w.changed, w.tries, coalesce(w.max_tries, -1)) from queue q join t.was w using (id) "
           "where payload->>'name' = 'e'");
    expect(c, "done", "select t.done('n', 'c')"); /* the worker was not disturbed */
    core_settle(c);
    expect(c, "", "select t.claim('m', 9)");
    core_check(c);
    PQfinish(c);
}

static void
undo_of_queues(void **state)
{
    PGconn *c = fresh("undo_queue");
    static const char each_setting[] =
        "do $$ declare r record; was jsonb; a uuid; begin"
        " for r in select * from setting_rules() where name <> 'paused' loop"
        "  a := gen_random_uuid(); was := to_jsonb(c) from queue_config c;"
        "  perform set_queue(a, 'q', jsonb_build_object(r.name, case r.kind when 'number' then "
        "   (r.low + 1)::text when 'rate' then '7/s' when 'time' then '11 min' else 'meta' end));"
        "  assert (select to_jsonb(c) from queue_config c) <> was, r.name;"
        "  perform undo(gen_random_uuid(), 1, a);"
        "  assert (select to_jsonb(c) from queue_config c) = was, r.name;"
        " end loop; end $$";

    (void)state;
    pg_run(c, "select t.push('q', 'a'); select pause(" ACT(1) ", 'q', 'why')");
    expect(c, "1 resumed", SAID("undo(" ACT(2) ", 1, " ACT(1) ")"));
    expect(c, "1 - (is not paused any more)", SAID("undo_preview(" ACT(1) ")"));
    pg_run(c, "select pause(" ACT(3) ", 'q', 'again')");
    expect(c, "1 - (was resumed and paused again since)", SAID("undo_preview(" ACT(1) ")"));
    pg_run(c, "select resume(" ACT(4) ", 'q')");
    expect(c, "1 paused", SAID("undo(" ACT(5) ", 1, " ACT(4) ")"));
    expect(c, "again", "select pause_reason from queue_config");
    pg_run(c, "select set_queue(" ACT(6) ", 'q', '{\"weight\": 7, \"rate\": \"5/s\"}')");
    pg_run(c, "select set_queue(" ACT(7) ", 'q', '{\"max_tries\": 2}')"); /* of another setting */
    expect(c, "1 set back", SAID("undo(" ACT(8) ", 1, " ACT(6) ")"));
    expect(c, "1 2 t again",
           "select concat_ws(' ', weight, max_tries, rate is null, pause_reason) from "
           "queue_config");
    pg_run(c, "select set_queue(" ACT(9) ", 'q', '{\"max_tries\": 3}')");
    expect(c, "1 - (was set again since)", SAID("undo_preview(" ACT(7) ")"));
    assert_string_equal(pg_try(c, "select * from undo_preview(" ACT(5) ")"), "QT007");
    assert_string_equal(pg_try(c, "select * from undo_preview(gen_random_uuid())"), "QT007");
    pg_run(c, "%s", each_setting); /* of a setting that is added later, too */
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

static void
undo_of_schedules(void **state)
{
    PGconn *c = fresh("undo_schedule");
    static const char all[] = "select string_agg(concat_ws(' ', name, cron, payload, paused_at is "
                              "not null, next_run is not null), ',') from schedule";

    (void)state;
    pg_run(c, "select schedule_set(" ACT(
                  1) ", 's', '{\"cron\": \"1 2 * * *\", \"queue\": \"q\"}', '{\"a\":  1}')");
    pg_run(c, "select schedule_set(" ACT(2) ", 's', '{\"cron\": \"5 5 * * *\"}')");
    expect(c, "1 - (was changed since)", SAID("undo_preview(" ACT(1) ")"));
    expect(c, "1 changed back", SAID("undo(" ACT(3) ", 1, " ACT(2) ")"));
    expect(c, "s 1 2 * * * {\"a\":  1} f t", all);
    pg_run(c, "select schedule_pause(" ACT(4) ", 's', 'x')");
    expect(c, "1 resumed", SAID("undo(" ACT(5) ", 1, " ACT(4) ")"));
    expect(c, "s 1 2 * * * {\"a\":  1} f t", all);
    pg_run(c, "select schedule_remove(" ACT(6) ", 's')");
    expect(c, "1 added again", SAID("undo(" ACT(7) ", 1, " ACT(6) ")"));
    expect(c, "s 1 2 * * * {\"a\":  1} f t", all);
    pg_run(c,
           "select schedule_set(" ACT(8) ", 'new', '{\"cron\": \"1 2 * * *\", \"queue\": \"q\"}')");
    expect(c, "1 removed", SAID("undo(" ACT(9) ", 1, " ACT(8) ")"));
    expect(c, "s 1 2 * * * {\"a\":  1} f t", all);
    PQfinish(c);
}

#define SCHEDULE                                                                      \
    "select concat_ws(' ', cron, queue, pause_reason, to_char(next_run, 'HH24:MI'), " \
    "to_char(last_run, 'HH24:MI')) from schedule"

/* What others have changed in the schedule since then, and its runs, stay as they are. */
static void
undo_leaves_the_rest_of_a_schedule_alone(void **state)
{
    PGconn *c = fresh("undo_schedule_rest");

    (void)state;
    pg_run(c, "set timezone = 'UTC'; select schedule_set(" ACT(
                  1) ", 's', '{\"cron\": \"0 6 1 1 *\", \"queue\": \"q\"}')");
    pg_run(c, "select schedule_set(" ACT(2) ", 's', '{\"queue\": \"r\"}');"
                                            "update schedule set next_run = '2026-01-01 06:00';"
                                            "select cron_due('2026-01-01 06:00');"
                                            "select schedule_pause(" ACT(3) ", 's', 'mine')");
    expect(c, "1 changed back", SAID("undo(" ACT(4) ", 1, " ACT(2) ")"));
    expect(c, "0 6 1 1 * q mine 06:00", SCHEDULE);
    pg_run(c, "select schedule_set(" ACT(5) ", 's', '{\"cron\": \"0 7 1 1 *\"}')");
    expect(c, "1 resumed", SAID("undo(" ACT(6) ", 1, " ACT(3) ")"));
    expect(c, "0 7 1 1 * q 07:00 06:00", SCHEDULE);
    pg_run(c, "select schedule_pause(" ACT(7) ", 's', 'first'); select schedule_resume(" ACT(
                  8) ", 's'); select schedule_pause(" ACT(9) ", 's', 'second')");
    expect(c, "1 - (was resumed and paused again since)",
           SAID("undo(gen_random_uuid(), 1, " ACT(7) ")"));
    expect(c, "1 resumed", SAID("undo(gen_random_uuid(), 1, " ACT(9) ")"));
    expect(c, "1 paused", SAID("undo(gen_random_uuid(), 1, " ACT(8) ")"));
    expect(c, "0 7 1 1 * q first 06:00", SCHEDULE);
    PQfinish(c);
}

/* A pause waits for a set that has not committed yet. The pause must find the row, or its undo
 * would take the row for a new one. */
static void
a_pause_behind_a_set_can_be_undone(void **state)
{
    PGconn *c = fresh("undo_schedule_race"), *d = core_join("undo_schedule_race");

    (void)state;
    pg_run(c,
           "select schedule_set(" ACT(1) ", 's', '{\"cron\": \"0 6 1 1 *\", \"queue\": \"q\"}')");
    pg_run(d, "begin; select schedule_set(" ACT(2) ", 's', '{\"queue\": \"r\"}')");
    pg_send(c, "select schedule_pause(" ACT(3) ", 's', 'x')");
    pg_wait_blocked(d, c);
    pg_run(d, "commit");
    assert_string_equal(pg_finish(c), "");
    expect(c, "1 resumed", SAID("undo(" ACT(4) ", 1, " ACT(3) ")"));
    expect(c, "r t", "select queue || ' ' || (next_run is not null)::char from schedule");
    PQfinish(c);
    PQfinish(d);
}

/* A claim and an undo want the same job at the same time: one of them has it. */
static void
undo_leaves_a_claim_under_way_alone(void **state)
{
    PGconn *c = fresh("undo_race"), *d = core_join("undo_race");

    (void)state;
    pg_run(c, "select t.failed('a,b'); select requeue(" ACT(1) ", 1, t.ids('a,b'))");
    core_settle(c);
    pg_run(d, "begin");
    expect(d, "1", "select length(t.claim('n', 1))"); /* splits the lease of two */
    expect(c, "a worker is just claiming it or answering for it",
           "select string_agg(distinct why, ';') from undo(" ACT(2) ", 1, " ACT(1) ")");
    pg_run(d, "commit");
    core_check(c);
    pg_run(c, "select undo(" ACT(3) ", 1, " ACT(1) ")");
    core_check(c);
    expect(c, "0 2,1 1",
           "select string_agg(changed || ' ' || skipped, ',' order by at) from audit_log where "
           "verb = 'undo'");
    expect(d, "done", "select t.done('n')");
    core_settle(c);
    expect(c, "", "select t.claim('m', 9)");
    expect(c, "1", "select count(*) from queue where state = 'failed'");
    core_check(c);
    PQfinish(c);
    PQfinish(d);
}

/* A job is pushed once, however often it was cancelled and brought back. */
static void
undo_pushes_nothing(void **state)
{
    PGconn *c = fresh("undo_pushed");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c'); select cancel(" ACT(1) ", 1, t.ids('a,b,c'))");
    pg_run(c, "select undo(" ACT(2) ", 1, " ACT(1) ")");
    expect(c, "3", "select sum(pushed) from t.counts");
    expect(c, "a,b,c", "select t.names('ready')");
    core_settle(c);
    expect(c, "a,b,c", "select t.claim('n', 3)");
    pg_run(c, "select t.done('n', 'a'); select requeue(" ACT(
                  3) ", 1, t.ids('a')); select undo(" ACT(4) ", 1, " ACT(3) ")");
    expect(c, "4", "select sum(pushed) from t.counts"); /* the requeue did push */
    expect(
        c, "f",
        "select exists (select from delta where pushed < 0 and at >= (select max(at) from audit))");
    core_check(c);
    PQfinish(c);
}

/* What the undo found before it had the lock does not count: meanwhile another act has changed the
 * job, and a step has cut it. It is left alone, and handed out. */
static void
undo_decides_under_the_lock(void **state)
{
    PGconn *c = fresh("undo_locked"), *d = core_join("undo_locked"), *e = core_join("undo_locked"),
           *f = core_join("undo_locked");

    (void)state;
    pg_run(c, "select t.failed('a'); select requeue(" ACT(1) ", 1, t.ids('a'))");
    core_settle(c);
    pg_run(d, "begin");
    expect(d, "at priority 3", "select state from set_priority(" ACT(2) ", 1, t.ids('a'), 3)");
    core_act_under_lock(c, d, e, f, "select undo(" ACT(3) ", 1, " ACT(1) ")");
    expect(c, "changed by another action since",
           "select rows -> 0 ->> 'why' from audit_batch where action = " ACT(3));
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
        cmocka_unit_test(priority_of_waiting_jobs),
        cmocka_unit_test(time_of_waiting_jobs),
        cmocka_unit_test(requeue_spread_over_time),
        cmocka_unit_test(discard_by_predicate_and_back),
        cmocka_unit_test(undo_of_cancel),
        cmocka_unit_test(undo_of_cancel_meets_an_open_push),
        cmocka_unit_test(undo_of_requeue_leaves_what_has_run),
        cmocka_unit_test(undo_of_queues),
        cmocka_unit_test(undo_of_schedules),
        cmocka_unit_test(undo_leaves_the_rest_of_a_schedule_alone),
        cmocka_unit_test(a_pause_behind_a_set_can_be_undone),
        cmocka_unit_test(undo_leaves_a_claim_under_way_alone),
        cmocka_unit_test(undo_decides_under_the_lock),
        cmocka_unit_test(undo_pushes_nothing),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
