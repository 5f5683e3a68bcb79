/*
 * The other administrative acts: pause and resume, settings of a queue, draining a node, cancel,
 * discard, delete and purge; each leaves its row in the audit, and leaves alone what runs.
 */
#include "tests/sql/core.h"

#include <string.h>

#define ACT(n) "'00000000-0000-0000-0000-00000000000" #n "'"

static const char words[] =
    "create function t.ids(names text) returns uuid[] language sql as $$"
    " select array_agg(id order by name) from (select id, payload->>'name' as name from queue "
    "union all"
    " select id, payload->>'name' from history) z where name = any(string_to_array($1, ',')) $$;"
    "create function t.acts(verb text, act int, names text) returns text language plpgsql as $$ "
    "declare r"
    " text; begin execute format('select string_agg(coalesce(state, ''-'') || coalesce('' ('' || "
    "why ||"
    " '')'', ''''), '','' order by n, id) from %s($1, 1, $2)', verb) into r using (lpad(act::text, "
    "8, '0')"
    " || '-0000-0000-0000-000000000000')::uuid, t.ids(names); return r; end $$;";

static PGconn *
fresh(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "%s", words);
    return c;
}

static void
pause_keeps_order_and_running_jobs(void **state)
{
    PGconn *c = fresh("pause");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d'); select t.push('other', 'x')");
    core_settle(c);
    expect(c, "x", "select t.claim('n', 1, queues => '{other}')");
    expect(c, "a,b", "select t.claim('n', 2)");
    expect(c, "paused 2 jobs taken back",
           "select state || ' ' || why from pause(" ACT(1) ", 'q', 'why')");
    expect(c, "", "select t.claim('m', 9)");
    core_settle(c);
    expect(c, "", "select t.claim('m', 9)");
    expect(c, "done,done,done", "select t.done('n')"); /* what runs is finished */
    pg_run(c, "select t.push('q', 'e')");
    core_settle(c);
    expect(c, "", "select t.claim('m', 9)");
    expect(c, "postgres why",
           "select paused_by || ' ' || pause_reason from queue_config where queue = 'q'");
    expect(c, "- paused already",
           "select coalesce(state, '-') || ' ' || why from pause(" ACT(2) ", 'q')");
    core_check(c);
    expect(c, "resumed", "select state from resume(" ACT(3) ", 'q')");
    core_settle(c);
    expect(c, "c,d,e", "select t.claim('m', 9)"); /* in their old order */
    expect(c, "- not paused",
           "select coalesce(state, '-') || ' ' || why from resume(" ACT(4) ", 'q')");
    core_check(c);
    PQfinish(c);
}

static void
pause_waits_for_a_claim_under_way(void **state)
{
    PGconn *c = fresh("pause_race"), *d = core_join("pause_race"), *e = core_join("pause_race");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    pg_run(d, "begin");
    expect(d, "a", "select t.claim('n', 1)"); /* splits the lease of two */
    core_replace(c, "uncut", "100ms", "1min");
    pg_send(c, "select pause(" ACT(1) ", 'q')");
    pg_wait_blocked(e, c);
    pg_run(d, "commit");
    assert_string_equal(pg_finish(c), "");
    expect(c, "", "select t.claim('m', 9)");
    expect(d, "done", "select t.done('n')");
    core_check(c);
    /* a claim that is rolled back leaves nothing claimable behind in a paused queue */
    pg_run(c, "select resume(" ACT(2) ", 'q')");
    core_settle(c);
    pg_run(d, "begin");
    expect(d, "b", "select t.claim('n', 1)");
    pg_send(c, "select pause(" ACT(3) ", 'q')");
    pg_wait_blocked(e, c);
    pg_run(d, "rollback");
    assert_string_equal(pg_finish(c), "");
    core_settle(c);
    expect(c, "", "select t.claim('m', 9)");
    pg_run(c, "select resume(" ACT(4) ", 'q')");
    core_settle(c);
    expect(c, "b", "select t.claim('m', 9)");
    core_check(c);
    PQfinish(c);
    PQfinish(d);
    PQfinish(e);
}

/* A job that somebody else changes: an act waits for it, and the scheduler goes on meanwhile. */
static void
an_act_waits_for_a_job_that_changes(void **state)
{
    PGconn *c = fresh("act_waits"), *d = core_join("act_waits"), *e = core_join("act_waits");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "failed", "select t.fail('n', 'a', 'broken', null, true)");
    pg_run(d, "begin; select from queue where state = 'failed' for update");
    pg_send(c, "create table t.said as select state, why"
               " from delete_jobs(" ACT(1) ", 1, t.ids('a,c'))");
    pg_wait_blocked(e, c);
    expect(e, "t", "select active from schedule('test')");
    expect(e, "b", "select t.claim('m', 1)");
    pg_run(d, "rollback");
    assert_string_equal(pg_finish(c), "");
    expect(c, "deleted deleted", "select string_agg(concat(state, why), ' ') from t.said");
    core_check(c);
    PQfinish(e);
    PQfinish(d);
    PQfinish(c);
}

static void
settings_hold_at_once(void **state)
{
    PGconn *c = fresh("settings");

    (void)state;
    pg_run(c, "select t.many('q', 'j', 30)");
    core_settle(c);
    expect(c, "set",
           "select state from set_queue(" ACT(
               1) ", 'q', '{\"max_running\": 2, \"max_tries\":"
                  " 1, \"lease_timeout\": \"90 s\", \"history\": \"meta\"}')");
    core_settle(c);
    expect(c, "2", "select count(*) from claim('n', 9)");
    expect(c, "t", "select bool_and(lock_timeout = started + interval '90 s') from work_queue");
    core_check(c);
    expect(
        c, "null 5",
        "select concat_ws(' ', coalesce(before->>'max_running', 'null'), before->>'max_tries') from"
        " audit_batch");
    expect(c, "set", "select state from set_queue(" ACT(2) ", 'q', '{\"max_running\": null}')");
    core_settle(c);
    expect(c, "9", "select count(*) from claim('n', 9)");
    assert_string_equal(pg_try(c, "select set_queue(" ACT(3) ", 'q', '{\"max_runing\": 2}')"),
                        "QT007");
    assert_string_equal(pg_try(c, "select set_queue(" ACT(3) ", 'q', '{\"weight\": 0}')"), "QT007");
    expect(c, "2", "select count(*) from audit");
    core_check(c);
    PQfinish(c);
}

static void
a_draining_node_claims_nothing(void **state)
{
    PGconn *c = fresh("drain");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    pg_run(
        c,
        "create table t.s as select gen_random_uuid() as s; select node_start('n', s, 'h', 1, 'v',"
        " 1, null, 4) from t.s");
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "draining", "select state from drain_node(" ACT(1) ", 'n')");
    expect(c, "", "select t.claim('n', 1)");
    expect(c, "draining", "select state from node_beat('n', (select s from t.s))");
    expect(c, "done", "select t.done('n')");
    expect(c, "draining already", "select why from drain_node(" ACT(2) ", 'n')");
    expect(c, "no such node is registered", "select why from drain_node(" ACT(3) ", 'x')");
    expect(c, "b", "select t.claim('m', 1)");
    PQfinish(c);
}

/* repair corrects each part of a queue's books once. A second call finds all of them right. */
static void
repair_puts_the_books_right(void **state)
{
    PGconn *c = fresh("repair"), *other = pg_connect(pg_dsn("repair"));

    (void)state;
    pg_run(c,
           "create function t.repair(act int, part text, queue text) returns text language sql as"
           " $$ select string_agg(coalesce(state, '-') || coalesce(' ' || why, ''), ',') from"
           " repair((lpad(act::text, 8, '0') || '-0000-0000-0000-000000000000')::uuid, part,"
           " queue) $$; select t.push('q', 'a,b,c')");
    core_settle(c);
    expect(c, "- its counters are right", "select t.repair(1, 'counters', 'q')");
    expect(c, "- no job stands behind the cursor", "select t.repair(2, 'orphans', 'q')");
    expect(c, "- those of a week are there", "select t.repair(3, 'partitions', null)");
    pg_run(c, "delete from queue where payload->>'name' = 'c'; delete from work_queue");
    for (int again = 0; again < 2; again++)
        expect(c, "repaired 1 count was wrong: priority 5: counted 3 ready, there are 2",
               "select t.repair(4, 'counters', 'q')");
    expect(c, "- its counters are right", "select t.repair(5, 'counters', 'q')");
    pg_run(c, "begin");
    expect(c, "repaired 2 jobs will be handed out", "select t.repair(6, 'orphans', 'q')");
    pg_send(other, "set search_path = queues, t; select t.repair(7, 'orphans', 'q')");
    pg_wait_blocked(c, other);
    pg_run(c, "commit");
    assert_string_equal(pg_finish(other), "");
    expect(c, "no job stands behind the cursor",
           "select rows -> 0 ->> 'why' from audit_batch where action::text like '00000007%%'");
    core_settle(c);
    expect(c, "a,b", "select t.claim('m', 9)");
    pg_run(c,
           "do $$ begin execute format('drop table attempt_%%s, history_%%s', to_char(now() at time"
           " zone 'UTC' + interval '3 days', 'YYYYMMDD'), to_char(now() at time zone 'UTC' + "
           "interval '1 day', 'YYYYMMDD')); end $$");
    expect(c, "repaired,repaired", "select t.repair(8, 'partitions', null)");
    expect(c, "- those of a week are there", "select t.repair(9, 'partitions', null)");
    expect(c, "- no job was ever seen in queue \"x\"", "select t.repair(10, 'counters', 'x')");
    assert_string_equal(pg_try(c, "select t.repair(11, 'orphans', null)"), "QT007");
    assert_string_equal(pg_try(c, "select t.repair(11, 'all', 'q')"), "QT007");
    expect(c, "10 10",
           "select concat_ws(' ', count(*), count(*) filter (where verb = 'repair' and who "
           "<> 'scheduler')) from audit"); /* one row for each act */
    core_check(c);
    PQfinish(other);
    PQfinish(c);
}

static void
cancel_waiting_and_running(void **state)
{
    PGconn *c = fresh("cancel");

    (void)state;
    pg_run(c, "select t.push('q', 'runs,cut'); select t.push('q', 'later', delay => '1 h')");
    core_settle(c);
    expect(c, "runs", "select t.claim('n', 1)");
    pg_run(c, "select t.push('q', 'uncut')");
    expect(
        c, "cancelled,cancelled,running (asked to end),cancelled",
        "select string_agg(r, ',' order by k) from (values (1, t.acts('cancel', 1, 'cut')), (2,"
        " t.acts('cancel', 2, 'later')), (3, t.acts('cancel', 3, 'runs')), (4, t.acts('cancel', 4,"
        " 'uncut'))) v (k, r)");
    core_check(c);
    expect(c, "- (asked to end already)", "select t.acts('cancel', 5, 'runs')");
    expect(c, "t",
           "select cancel = array(select seq from t.held) from extend('n', array(select lease from"
           " t.held), array(select version from t.held), '1 min')");
    expect(c, "cancelled", "select t.fail('n')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    expect(c, "cut cancelled,later cancelled,runs cancelled,uncut cancelled",
           "select t.finished()");
    expect(c, "4", "select cancelled from overview()");
    core_check(c);
    PQfinish(c);
}

static void
a_running_job_may_win_against_cancel(void **state)
{
    PGconn *c = fresh("cancel_late");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "running (asked to end)", "select t.acts('cancel', 1, 'a')");
    expect(c, "done", "select t.done('n')");
    expect(c, "a completed", "select t.finished()");
    core_check(c);
    PQfinish(c);
}

static void
discard_can_be_undone_delete_not(void **state)
{
    PGconn *c = fresh("discard");

    (void)state;
    pg_run(c, "insert into queue_config (queue, history) values ('q', 'none')");
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 2)");
    pg_run(c, "select t.fail('n', 'a', final => true)");
    expect(c, "- (failed: discard or delete it)", "select t.acts('cancel', 1, 'a')");
    expect(c, "discarded",
           "select t.acts('discard', 2, 'a')"); /* kept whole, whatever history says */
    expect(c, "- (running)", "select t.acts('discard', 3, 'b')");
    expect(c, "- (running)", "select t.acts('delete_jobs', 4, 'b')");
    expect(c, "deleted", "select t.acts('delete_jobs', 5, 'c')");
    core_check(c);
    expect(c, "a failed", "select t.finished()");
    expect(c, "0", "select count(*) from failure_groups()");
    expect(c, "ready",
           "select state from requeue(" ACT(9) ", 1, (select array_agg(id) from history))");
    expect(c, "done", "select t.done('n', 'b')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

/* Ten jobs finished each on three days, the last one today; on the oldest day one was discarded. */
static void
three_days(PGconn *c)
{
    pg_run(
        c,
        "do $$ begin for i in 1 .. 2 loop"
        " execute format('create table %%I (like history including all)', 'history_2024010' || i);"
        " execute format('alter table history attach partition %%I for values from (%%L) to (%%L)',"
        "  'history_2024010' || i, format('2024-01-0%%s 00:00+00', i), format('2024-01-0%%s"
        " 00:00+00', i + 1)); end loop; end $$");
    pg_run(
        c,
        "insert into history (id, created, finished, state, priority, tries, queue, kind) select"
        " gen_random_uuid(), t, t, 'completed', 5, 1, 'q' || i %% 2, '' from generate_series(1, 10)"
        " i, unnest(array['2024-01-01 12:00+00'::timestamptz, '2024-01-02 12:00+00', now()]) t");
}

static void
purge_by_days_and_rows(void **state)
{
    PGconn *c = fresh("purge");

    (void)state;
    three_days(c);
    expect(c, "20", "select sum(n) from purge_preview(null, null, '2024-06-01')");
    assert_string_equal(
        pg_try(c, "select purge(" ACT(1) ", 1, null, null, '2024-06-01', 1000, 19)"), "QT005");
    expect(
        c, "history_20240101 10,history_20240102 10 more",
        "select string_agg(id || ' ' || n, ',' order by id) || case when max(cursor) <> '' then ' "
        "more' end from purge(" ACT(1) ", 1, null, null, '2024-06-01', 1000, 20)");
    expect(c, "0", "select count(*) from purge(" ACT(1) ", 2, null, null, '2024-06-01', 1000, 20)");
    expect(c, "10", "select count(*) from history");
    expect(c, "20 20", "select changed || ' ' || expected from audit_log");
    /* For one queue the purge deletes row by row, a few rows a call. Whatever the plan is, the
     * names of other tables are not read as days. */
    pg_run(c, "set enable_nestloop = off; set enable_indexscan = off; set enable_bitmapscan = off");
    expect(c, "q1 3 more",
           "select concat_ws(' ', id, n, case when cursor <> '' then 'more' end) from purge(" ACT(
               2) ", 1, 'q1', null, now() + interval '1 h', 3)");
    expect(c, "q1 2 ",
           "select concat(id, ' ', n, ' ', cursor) from purge(" ACT(
               2) ", 2, 'q1', null, now() + interval '1 h', 3)");
    expect(c, "q0", "select string_agg(distinct queue, ',') from history");
    assert_string_equal(pg_try(c, "select purge(" ACT(3) ", 1, null, '{ready}', now())"), "QT007");
    PQfinish(c);
}

/* Pages that one batch of a purge reads. */
static int64_t
purge_pages(PGconn *c, int batch, const char *queue)
{
    return pg_int(
        c,
        "with p as materialized (select t.pages('select * from purge(''%08d-0000-0000-0000-"
        "000000000007'', %d, %s, null, now(), 250)')) select * from p",
        (int)strlen(queue), batch, queue);
}

/* A purge may have deleted any number of jobs: its next batch does not read their dead rows. */
static void
purge_goes_on_where_it_was(void **state)
{
    static const char *const of[] = {"null", "''q0''"};
    PGconn *c = fresh("purge_far");

    (void)state;
    pg_needs(c, 14, "it can't read a table from a page on, so each batch reads the day");
    three_days(c);
    pg_run(c,
           "create function t.pages(ask text) returns bigint language plpgsql as $$ declare j "
           "json; begin execute 'explain (analyze, buffers, format json) ' || ask into j; return "
           "(j->0->'Plan'->>'Shared Hit Blocks')::bigint + (j->0->'Plan'->>'Shared Read "
           "Blocks')::bigint; end $$");
    pg_run(c,
           "insert into history (id, created, finished, state, priority, tries, queue, kind, "
           "payload) select uuid_v7(), t, t, 'completed', 5, 1, 'q' || i %% 2, '', "
           "to_json(repeat('x', 1800)) from generate_series(1, 24000) i, lateral (select now() - "
           "i * interval '1 us') x (t)");
    for (size_t k = 0; k < 2; k++) {
        int64_t early = 0, late = 0;
        for (int i = 1; i <= 30; i++) {
            int64_t n = purge_pages(c, i, of[k]);
            early = i == 3 ? n : early;
            late = i > 25 && n > late ? n : late;
        }
        if (late > early + 600) /* it reads 512 at a time */
            fail_msg("queue %s: %lld pages at first, %lld later", of[k], (long long)early,
                     (long long)late);
    }
    expect(c, "9260", "select count(*) from history");
    PQfinish(c);
}

static void
purge_waits_for_nobody(void **state)
{
    PGconn *c = fresh("purge_dump"), *d = core_join("purge_dump");

    (void)state;
    three_days(c);
    pg_run(d, "begin isolation level repeatable read; select count(*) from history"); /* a dump */
    /* the days stay, their rows go */
    expect(c, "q0 10,q1 10",
           "select string_agg(id || ' ' || n, ',' order by id) from purge(" ACT(
               1) ", 1, null, null, '2024-06-01')");
    expect(c, "2",
           "select count(*) from pg_inherits where inhparent = 'history'::regclass and"
           " inhrelid::regclass::text like '%%2024%%'");
    expect(d, "30", "select count(*) from history");
    PQfinish(c);
    PQfinish(d);
}

static void
purge_of_failed_jobs(void **state)
{
    PGconn *c = fresh("purge_failed");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 2); select t.fail('n', final => true)");
    expect(c, "2", "select sum(n) from purge_preview(null, '{failed}', now() + interval '1 h')");
    expect(c, "2",
           "select sum(n) from purge(" ACT(1) ", 1, null, '{failed}', now() + interval '1 h')");
    expect(c, "c", "select t.names('ready')");
    core_check(c);
    PQfinish(c);
}

static void
the_audit_says_who(void **state)
{
    PGconn *c = fresh("audit");

    (void)state;
    pg_run(c, "set application_name = 'a test'; select pause(" ACT(1) ", 'q', 'just so')");
    expect(c, "postgres|a test|pause|q|just so|1|0|1",
           "select concat_ws('|', who, app, verb, queue, reason, changed, skipped, batches) from"
           " audit_log");
    PQfinish(c);
}

static void
nobody_adds_to_the_action_of_another(void **state)
{
    PGconn *c = fresh("audit_of_another");
    static const char release[] = "select release(" ACT(1) ", %d, '%s', false)";

    (void)state;
    pg_run(c, "create role eve; grant queues_operator to eve");
    pg_run(c, release, 1, "n");
    assert_string_equal(pg_try(c, release, 2, "m"), "QT007"); /* another node */
    assert_string_equal(pg_try(c, "select drain_node(" ACT(1) ", 'n')"), "QT007");
    pg_run(c, "set session authorization eve");
    assert_string_equal(pg_try(c, release, 2, "n"), "QT007");
    assert_string_equal(pg_try(c, release, 1, "n"), "QT007"); /* the same call, but another user */
    pg_run(c, "reset session authorization");
    pg_run(c, release, 2, "n");
    expect(c, "postgres n 2", "select concat_ws(' ', who, node, batches) from audit_log");
    PQfinish(c);
}

static void
a_result_has_a_limit(void **state)
{
    PGconn *c = fresh("result");

    (void)state;
    pg_run(
        c,
        "update setting set value = '2000' where name = 'result_limit'; select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2)");
    const char *before = pg_value(c, "select t.picture()");
    assert_string_equal(
        pg_try(c, "select complete_job('n', lease, version, seq, repeat('x', 2001)) from t.held"
                  " where name = 'a'"),
        "QT004");
    expect(c, before, "select t.picture()");
    expect(c, "done",
           "select complete_job('n', lease, version, seq, repeat('x', 2000)) from t.held where name"
           " = 'a'");
    expect(c, "2000", "select length(result) from history");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pause_keeps_order_and_running_jobs),
        cmocka_unit_test(pause_waits_for_a_claim_under_way),
        cmocka_unit_test(an_act_waits_for_a_job_that_changes),
        cmocka_unit_test(settings_hold_at_once),
        cmocka_unit_test(a_draining_node_claims_nothing),
        cmocka_unit_test(repair_puts_the_books_right),
        cmocka_unit_test(cancel_waiting_and_running),
        cmocka_unit_test(a_running_job_may_win_against_cancel),
        cmocka_unit_test(discard_can_be_undone_delete_not),
        cmocka_unit_test(purge_by_days_and_rows),
        cmocka_unit_test(purge_goes_on_where_it_was),
        cmocka_unit_test(purge_waits_for_nobody),
        cmocka_unit_test(purge_of_failed_jobs),
        cmocka_unit_test(the_audit_says_who),
        cmocka_unit_test(a_result_has_a_limit),
        cmocka_unit_test(nobody_adds_to_the_action_of_another),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
