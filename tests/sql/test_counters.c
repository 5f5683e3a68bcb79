/*
 * Counts are exact at every moment, and folding them costs the same whatever is open elsewhere:
 * late committers, writers in other databases, old snapshots; in another cluster they are made anew
 * (rule 6, decisions 5, 13 and 20).
 */
#include "tests/sql/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
fold(PGconn *c)
{
    core_ten_seconds(c);
    pg_run(c, "select schedule('test')");
}

/* Every kind of change, with folds between them: equal to count(*) each time, also while some are
 * open. */
static void
equal_to_the_truth(void **state)
{
    PGconn *c = core_new("truth"), *a = core_join("truth"), *b = core_join("truth");

    (void)state;
    core_check(c);
    pg_run(a, "begin; select t.push('q', 'late,later')");
    for (int round = 0; round < 12; round++) {
        pg_run(c,
               "select t.push('q', 'a' || i || ',b' || i || ',c' || i || ',d' || i), t.push('r', "
               "'e' || i, 2),"
               " t.push('q', 'f' || i, 5, '1 h') from generate_series(%d, %d) i",
               round, round);
        core_check(c);
        core_settle(c);
        pg_run(c, "delete from t.held; select t.claim('n', 5)");
        core_check(c);
        pg_run(c, "select t.done('n', name), t.fail('n', name, 'bad ' || name, '1 h') from (select "
                  "min(name) from t.held)"
                  " z (name)");
        pg_run(c, "select t.fail('n', name, 'bad ' || name, null, true) from (select max(name) "
                  "from t.held) z (name)");
        core_check(c);
        if (round % 3 == 0) {
            pg_run(b, "begin");
            expect(b, "given back",
                   "select t.back('n', name) from (select name from t.held order by name offset 1 "
                   "limit 1) z");
            core_check(c);
            fold(c);
            pg_run(b, "%s", round % 2 ? "commit" : "rollback");
        }
        core_check(c);
        core_expire(c, "n");
        core_second(c);
        fold(c);
        core_check(c);
    }
    pg_run(a, "commit");
    core_check(c);
    fold(c);
    core_check(c);
    expect(c, "t",
           "select sum(pushed) = (select count(*) from queue) + sum(completed) + sum(cancelled) "
           "from t.counts");
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* A step promotes and fails jobs, and folds in the same transaction. Its own changes count once. */
static void
a_fold_and_its_own_changes(void **state)
{
    PGconn *c = core_new("own_changes"), *a = core_join("own_changes");

    (void)state;
    pg_run(c, "insert into queue_config (queue, max_tries) values ('p', 1); select t.push('q', "
              "'a,b', delay => '1 h'),"
              " t.push('p', 'poison')");
    core_settle(c);
    expect(c, "poison", "select t.claim('n', 1)");
    pg_run(c, "update queue set run_after = now() - interval '1 s' where state = 'scheduled'; "
              "update tick set after ="
              " '-infinity'");
    core_expire(c, "n");
    core_second(c);
    core_ten_seconds(c);
    /* the step's transaction id is lower than that of a transaction that ends before the fold */
    pg_run(a, "begin; select pg_current_xact_id()");
    pg_run(c, "select t.push('q', 'c')");
    expect(a, "3 2 1", "select t.step()");
    pg_run(a, "commit");
    expect(c, "t",
           "select f.xid = t.xid from fold f, tick t order by fold desc, tick desc limit 1");
    core_check(c);
    pg_run(c, "select t.push('q', 'd')");
    for (int i = 0; i < 3; i++) {
        fold(c);
        core_check(c);
    }
    PQfinish(a);
    PQfinish(c);
}

/* Deltas that a fold has summed are deleted, even if a writing transaction was open long before. */
static int64_t
deltas_after(PGconn *c, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        pg_run(c, "select t.push('q', 'x') from generate_series(1, 10)");
        core_settle(c);
        pg_run(c, "delete from t.held; select t.claim('n', 10); select t.done('n')");
        fold(c);
    }
    return pg_int(c, "select count(*) from delta");
}

/* A transaction that is older than several folds writes, and then folds itself: its number is below
 * those that the last fold saw, and in that fold's list of what was in progress. One that reads as
 * of its beginning can't fold: it would begin at a fold whose deltas have been deleted. */
static void
a_fold_of_an_old_transaction(void **state)
{
    PGconn *c = core_new("old_fold"), *old = core_join("old_fold"), *still = core_join("old_fold");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    pg_run(old, "begin; select t.push('q', 'd')");
    pg_run(still, "begin isolation level repeatable read; select count(*) from queue");
    for (int i = 0; i < 3; i++) { /* the third sweeps what the first has summed */
        pg_run(c, "select t.push('q', 'e'), t.claim('n', 1), t.done('n')");
        core_ten_seconds(c);
        expect(c, "t", "select fold_beside()");
        core_check(c);
    }
    assert_string_equal(pg_try(still, "select fold_beside()"), "QT007");
    pg_run(still, "rollback");
    pg_run(old, "select t.push('q', 'f')");
    pg_run(c, "select t.push('q', 'h')");
    core_ten_seconds(c);
    expect(old, "t", "select fold_beside()");
    core_check(old);
    core_check(c); /* the others still count by the fold before */
    pg_run(c, "select t.push('q', 'g')");
    expect(c, "f", "select fold_beside()"); /* one at a time */
    pg_run(old, "commit");
    core_check(c);
    core_ten_seconds(c);
    expect(c, "t", "select fold_beside()");
    core_check(c);
    expect(c, "10", "select sum(pushed) from t.counts");
    PQfinish(still);
    PQfinish(old);
    PQfinish(c);
}

static void
a_writer_elsewhere_stretches_nothing(void **state)
{
    PGconn *c = core_new("here"), *far = core_new("elsewhere"), *near = core_join("here");

    (void)state;
    int64_t before = deltas_after(c, 5);
    pg_run(far, "begin; create table t.open (x int)");
    pg_run(near, "begin; select t.push('q', 'late')");
    int64_t after = deltas_after(c, 15);
    assert_in_range(after, 1, before + 30);
    core_check(c);
    /* the number of deltas that a reader adds to the newest fold is bounded, too */
    assert_in_range(
        pg_int(
            c,
            "select count(*) from delta d, (select * from fold order by fold desc limit 1) f where"
            " d.xid >= pg_snapshot_xmax(f.snapshot) or d.xid = any(array(select"
            " pg_snapshot_xip(f.snapshot)))"),
        0, 20);
    pg_run(far, "commit");
    pg_run(near, "commit");
    core_settle(c);
    expect(c, "late", "select t.claim('n', 9)");
    fold(c);
    core_check(c);
    PQfinish(far);
    PQfinish(near);
    PQfinish(c);
}

/* The books do not grow with what is finished. */
static void
books_stay_small(void **state)
{
    PGconn *c = core_new("small_books");

    (void)state;
    deltas_after(c, 10);
    pg_run(c, "create view t.rows as select (select count(*) from delta) d, (select count(*) from "
              "tick) t, (select count(*) from"
              " cursor) c, (select count(*) from mark) m, (select count(*) from scheduler) s, "
              "(select count(*) from"
              " counter where fold < (select max(fold) from fold) and error_key is null) f");
    int64_t before = pg_int(c, "select d + t + c + m + s from t.rows");
    deltas_after(c, 20);
    assert_in_range(pg_int(c, "select d + t + c + m + s from t.rows"), 1, before + 20);
    /* kept folds: ten minutes of them */
    pg_run(c, "update fold set at = at - interval '11 min'");
    deltas_after(c, 2);
    assert_in_range(pg_int(c, "select count(*) from fold"), 1, 5);
    assert_in_range(pg_int(c, "select f from t.rows"), 0, 5);
    core_check(c);
    PQfinish(c);
}

/* Restored into another cluster: transaction ids of the old one mean nothing. */
static void
moved(PGconn *c)
{
    pg_run(c, "update meta set system_identifier = 1;"
              " update fold set snapshot = '900000000000:900000000010:900000000001', xid = "
              "'900000000005';"
              " update tick set snapshot = '900000000000:900000000010:900000000001', xid = "
              "'900000000005';"
              " update delta set xid = '900000000003';"
              " update scheduler set until = now() - interval '1 h' where term > 0");
}

static void
another_cluster(void **state)
{
    PGconn *c = core_new("moved");

    (void)state;
    for (int who = 0; who < 3; who++) {
        deltas_after(c, 2);
        pg_run(c, "select t.push('q', 'a,b,c,d'), t.push('r', 'e', 3), t.push('r', 'f', 5, '1 h')");
        core_settle(c);
        expect(c, "a,b", "select t.claim('n', 2, queues => '{q}')");
        pg_run(c, "select t.fail('n', 'a', 'bad 1', null, true)");
        pg_run(c, "select t.push('q', 'g')");
        moved(c);
        pg_run(c, "select t.push('q', 'h')"); /* before anybody looked */
        /* another scheduler, the same one, or a claim where there is none */
        pg_run(c, "%s",
               who == 0   ? "select schedule('another')"
               : who == 1 ? "select schedule('test')"
                          : "select count(*) from claim('x', 1, queues => '{none}')");
        expect(c, "f", "select system_identifier = 1 from meta");
        core_check(c);
        pg_run(c, "update scheduler set until = now() - interval '1 h' where term > 0");
        core_settle(c);
        core_check(c);
        expect(c, "done", "select t.done('n', 'b')"); /* it had gone on running */
        expect(c, "c,d,e,g,h",
               "select string_agg(n, ',' order by n) from unnest(string_to_array(t.claim('m', 9), "
               "',')) n");
        pg_run(c, "select t.done('m')");
        fold(c);
        core_check(c);
        pg_run(c, "delete from t.held; select t.push('q', 'z')");
        core_settle(c);
        expect(c, "z", "select t.claim('n', 9)");
        pg_run(c, "select t.done('n')");
        core_check(c);
    }
    PQfinish(c);
}

/* Calls keep_books() until it has nothing to do. Returns how many calls had something to do. */
static int
keep_books(PGconn *c)
{
    int n = 0;

    while (pg_int(c, "select keep_books()") <= 10 && n < 100)
        n++;
    return n;
}

#define COUNTING "select counting from shortfalls()"

/* In another cluster each queue is counted anew, while a scheduler works, and readers are told. A
 * finished count is kept if the next call is undone, if it is cancelled because a queue takes too
 * long, and if another scheduler takes over. Others push and work meanwhile. */
static void
counted_anew_in_portions(void **state)
{
    PGconn *c = core_new("portions"), *d = core_join("portions");

    (void)state;
    pg_run(c, "select t.push('q' || i, 'a,b,c') from generate_series(1, 9) i");
    core_settle(c);
    fold(c);
    pg_run(c,
           "set session_replication_role = replica; delete from queue where queue in ('q2', 'q5')"
           " and payload ->> 'name' = 'b'; insert into queue (queue, state, error, error_key)"
           " values ('silent', 'failed', 'e', 'e'); reset session_replication_role");
    pg_run(c,
           "create or replace function few_jobs(queue text, most bigint) returns boolean language"
           " sql as 'select false';" /* nothing is counted by a step, one queue by a call */
           " create or replace function check_time(anew timestamptz, most bigint) returns"
           " interval language sql as $$ select interval '0' $$");
    expect(c, "0", COUNTING);
    moved(c);
    pg_run(c, "select schedule('another')");
    expect(c, "f", "select moved()");
    expect(c, "9", COUNTING);
    pg_run(c, "begin; select keep_books(); rollback");
    expect(c, "9", COUNTING);
    expect(c, "10", "select keep_books()");
    expect(c, "8", COUNTING);
    pg_run(c, "update scheduler set until = '-infinity' where term > 0; select schedule('third')");
    expect(c, "8", COUNTING);
    pg_run(d, "begin; select t.push('q5', 'x'), t.push('new', 'y')");
    pg_run(c, "select t.claim('n', 4); select t.done('n')");
    pg_run(c, "create table t.well as select pg_get_functiondef('count_jobs'::regproc) as text;"
              " do $$ begin execute (select replace(text, 'with sums', 'if count_jobs.queue = '"
              " || quote_literal('q5') || ' then raise query_canceled; end if; with sums')"
              " from t.well); end $$");
    assert_int_equal(keep_books(c), 3); /* up to q5, for which the next try comes later */
    expect(c, "5", COUNTING);
    assert_int_equal(keep_books(c), 4); /* and last */
    expect(c, "1", COUNTING);
    pg_run(d, "commit");
    pg_run(c, "do $$ begin execute (select text from t.well); end $$");
    core_settle(c);
    assert_true(keep_books(c) >= 2);
    expect(c, "0", COUNTING);
    expect(c, "1", "select failed from overview() where queue = 'silent'");
    expect(c, "0 0",
           "select (select count(*) from audit) || ' ' || count(*) from checked"
           " where queue = ''");
    core_check(c);
    core_settle(c);
    fold(c);
    core_check(c);
    PQfinish(c);
    PQfinish(d);
}

/* A copy of the cluster has the same system identifier, and its transactions have lower numbers. */
static void
a_copy_of_the_cluster(void **state)
{
    PGconn *c = core_new("copied");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c'), t.push('r', 'd')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1, queues => '{q}')");
    expect(c, "failed", "select t.fail('n', 'a', 'bad 1', null, true)");
    pg_run(c, "select t.push('q', 'e')");
    core_check(c);
    moved(c);
    pg_run(
        c,
        "update meta set system_identifier = (select system_identifier from pg_control_system())");
    /* what is pushed there is shown at once, and news */
    pg_run(c, "select t.push('q', 'f')");
    expect(c, "4 1", "select ready || ' ' || failed from overview() where queue = 'q'");
    expect(c, "t", "select is_new()");
    for (int i = 0; i < 4; i++) {
        pg_run(c, "update scheduler set until = now() - interval '1 h' where term > 0");
        core_second(c);
        core_settle(c);
        fold(c);
        core_check(c);
        expect(c, "4 1", "select ready || ' ' || failed from overview() where queue = 'q'");
        expect(c, "f", "select moved()");
    }
    expect(c, "1", "select count(*) from mark where mark = 0 and n > 1"); /* counted anew once */
    expect(c, "5", "select count(*) from claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

/* --- the counters against the jobs --- */

static char said[4096];

static void
remember(void *ctx, const PGresult *r)
{
    (void)ctx;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s", PQresultErrorMessage(r));
}

enum { TURNS = 50 };

/* Calls keep_books() until each queue is checked, and collects the log messages in `said`. One call
 * checks the queues that wait longest, for 20 ms or one queue: how many these are depends on the
 * machine. A time of two hours ago marks a queue that is not checked yet, one hour ago a checked
 * queue. */
static void
check_all(PGconn *c)
{
    bool done = false;

    said[0] = 0;
    PQsetNoticeReceiver(c, remember, NULL);
    pg_run(c, "update checked set at = now() - interval '2 h', ms = 0");
    for (int i = 0; i < TURNS && !done; i++) {
        pg_run(c, "set client_min_messages = log");
        bool kept = (int)strtol(pg_value(c, "select keep_books()"), NULL, 10) >=
                    1000; /* minutes are rolled up */
        pg_run(c, "reset client_min_messages; update checked set at = now() - interval '1 h', "
                  "ms = 0 where at > now() - interval '30 min'");
        done = kept && *pg_value(c, "select not exists (select from (select queue from "
                                    "queue_config union select queue from checked) q left join "
                                    "checked using (queue) where at is null or at < now() - "
                                    "interval '90 min')") == 't';
    }
    assert_true(done);
}

static void
changes_by_hand_are_repaired(void **state)
{
    PGconn *c = core_new("by_hand");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d'), t.push('q', 'e', 2), t.push('q', 'f', 5, '1 h'), "
              "t.push('it''s\nr', 'x')");
    core_settle(c);
    expect(c, "e,a", "select t.claim('n', 2, queues => '{q}')");
    expect(c, "failed", "select t.fail('n', 'a', 'bad', null, true)");
    check_all(c);
    assert_string_equal(said, "");
    expect(c, "2 0", "select count(*) || ' ' || sum(repairs) from checked");

    /* somebody tidies up */
    pg_run(c, "delete from queue where payload->>'name' in ('b', 'f'); update queue set state = "
              "'ready' where state = 'failed'");
    check_all(c);
    assert_non_null(strstr(said, "schema queues: queue \"q\", priority 5: the counter said 1 "
                                 "failed, there are 0: repaired"));
    assert_non_null(strstr(said, "the counter said 1 scheduled, there are 0: repaired"));
    assert_null(strstr(said, "ready")); /* one less, one more */
    expect(c, "4 0 0",
           "select concat_ws(' ', ready + running, failed, scheduled) from overview() where queue "
           "= 'q'");
    assert_non_null(strstr(
        said, "queue \"q\", error \"bad\": the counter said 1 failed, there are 0: repaired"));
    core_check(c); /* the groups, too */
    expect(c, "1 scheduler repair counters q 3",
           "select concat_ws(' ', (select sum(repairs) from checked), who, verb, queue, changed) "
           "from audit_log");
    /* a delta is lost; the next check finds what the others have left */
    pg_run(c, "select t.push('it''s\nr', 'y'); delete from delta where xid = (select xid from "
              "delta order by xid desc limit 1)");
    check_all(c);
    assert_non_null(
        strstr(said, "queue \"it's\\nr\", priority 5: the counter said 1 ready, there are 2"));
    check_all(c);
    assert_string_equal(said, "");

    /* loaded with the triggers off: counted, and the scheduler hears of them */
    pg_run(c, "set session_replication_role = replica; insert into queue (queue, payload) values "
              "('new', '{\"name\": \"n\"}'), "
              "('it''s\nr', '{\"name\": \"z\"}'); insert into queue (queue, payload, state, "
              "run_after) values ('q', '{\"name\": \"w\"}', "
              "'scheduled', now() - interval '1 s'); reset session_replication_role");
    check_all(c);
    assert_non_null(strstr(said, "queue \"new\""));
    core_check(c);
    pg_run(c, "delete from t.held");
    core_settle(c);
    expect(c, "n", "select t.claim('m', 9, queues => '{new}')");
    expect(c, "x,y,z", "select t.claim('m', 9, queues => array[e'it''s\nr'])");
    assert_non_null(strstr(pg_value(c, "select t.claim('m', 9, queues => '{q}')"), "w"));
    core_check(c);
    PQfinish(c);
}

/* Checking the counters costs little. Between two checks lies a minute, or a thousand times what
 * the last check took. The scheduler's step checks only if nobody else does, and never a large
 * queue. Here the last checks were `ago` and took `ms`: the next check must be 20 s from now. The
 * clock is read before and after the call, so that a slow call passes, too. */
static void
looks_in_20_s(PGconn *c, const char *ago, const char *ms, const char *limit)
{
    pg_run(c,
           "do $$ declare t0 timestamptz := clock_timestamp(); t1 timestamptz; wait int; most "
           "bigint := %s; begin "
           "update checked set ms = %s, at = t0 - interval '%s'; "
           "t1 := clock_timestamp(); wait := check_counts(most); "
           "if wait < 20000 - 1000 * extract(epoch from clock_timestamp() - t0) or "
           "wait > 20002 - 1000 * extract(epoch from t1 - t0) "
           "then raise 'it waits for %% ms', wait; end if; "
           "if exists (select from checked where at > t0 - interval '%s') "
           "then raise 'it looked'; end if; end $$",
           limit, ms, ago, ago);
}

static void
checks_are_rare(void **state)
{
    PGconn *c = core_new("rare");

    (void)state;
    pg_run(c, "select t.many('q', 'a', 50), t.many('r', 'b', 5)");
    core_settle(c);
    core_ten_seconds(c);
    pg_run(c, "update meta set installed_at = now(); select schedule('test')");
    expect(c, "0", "select count(*) from checked"); /* not in the first minutes */
    pg_run(c, "select check_counts()");
    expect(c, "t", "select count(*) > 0 from checked"); /* all that 20 ms were enough for */
    pg_run(c, "select check_queue(q) from unnest('{q,r}'::text[]) q");
    pg_run(c, "delete from queue");
    looks_in_20_s(c, "40 s", "0", "null");
    looks_in_20_s(c, "40 s", "60", "null");
    looks_in_20_s(c, "299980 s", "300000", "null"); /* that took 5 minutes: three days and a half */
    looks_in_20_s(c, "340 s", "0", "20");
    looks_in_20_s(c, "1280 s", "1000", "20");
    pg_run(c, "update checked set at = now() - interval '7 min', ms = 0");
    pg_run(c, "select check_counts(20)");
    expect(c, "r", "select queue from checked where at > now() - interval '6 min'");
    pg_run(c, "update checked set at = now() - interval '7 min'");
    core_ten_seconds(c);
    pg_run(c, "select t.push('q', 'x')");
    pg_run(c, "select schedule('test')"); /* both, or what 20 ms were enough for */
    expect(c, "t", "select count(*) > 0 from checked where at > now() - interval '6 min'");
    pg_run(c, "select check_queue(q) from unnest('{q,r}'::text[]) q");
    core_check(c);
    PQfinish(c);
}

enum { DEAD_WAIT_MS = 60000 };

/* The search for queues that nobody knows reads all dead entries. Behind a snapshot that is held it
 * would never end, and no counter would be checked: it waits until there are few. */
static void
very_many_dead_rows_put_off_a_search_only(void **state)
{
    static const char again[] = "update checked set at = now() - interval '1 day', ms = 0;"
                                " select check_counts()";
    PGconn *c = core_new("dead");

    (void)state;
    pg_run(c, "alter table queue set (autovacuum_enabled = off)");
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    pg_run(c, "select check_queue('q')");
    pg_run(c, "set session_replication_role = replica"); /* no step and no counter knows of it */
    pg_run(c, "insert into queue (queue) select 'u' from generate_series(1, 300001)");
    pg_run(c, "delete from queue where queue = 'u'");
    pg_run(c, "insert into queue (queue) values ('u')");
    pg_run(c, "reset session_replication_role");
    pg_wait(c, "select pg_stat_get_dead_tuples('queue'::regclass) > 300000", "t", DEAD_WAIT_MS);
    pg_run(c, "%s", again);
    expect(c, "q",
           "select string_agg(queue, ' ' order by queue) from checked"
           " where at > now() - interval '1 hour'");
    pg_run(c, "vacuum queue");
    pg_wait(c, "select pg_stat_get_dead_tuples('queue'::regclass) < 300000", "t", DEAD_WAIT_MS);
    pg_run(c, "%s", again);
    expect(c, "1", "select count(*) from checked where queue = 'u'");
    PQfinish(c);
}

enum { BUSY = 4 };

static void
push_and_work(PGconn *c, PGconn *late, int i)
{
    char node[] = {'n', (char)('0' + i), 0};

    for (int k = 0; k < 30; k++) {
        if (k % 7 == 0)
            pg_run(late, "begin; select t.push('q', 'f,g')");
        pg_run(c,
               "begin; select t.push('q', 'a,b,c'), t.push('r', 'd', 3), t.push('r', 'e', 3, '20 "
               "ms'); %s",
               k % 11 ? "commit" : "rollback");
        pg_run(c, "select schedule('test'); delete from t.held where node = '%s'", node);
        pg_run(c, "select t.claim('%s', 3)", node);
        pg_run(c,
               "select t.done('%s', min(name)), t.fail('%s', max(name), 'bad', '10 ms') from t.held"
               " where node = '%s'",
               node, node, node);
        if (k % 7 == 5)
            pg_run(late, "commit");
    }
}

static void
busy_or_checking(PGconn *c, int i)
{
    if (i < BUSY) {
        PGconn *late = core_join("left_alone");
        push_and_work(c, late, i);
        PQfinish(late);
    } else {
        for (int k = 0; k < 100; k++)
            pg_run(c, "select check_queue(q) from unnest('{q,r}'::text[]) q");
    }
    PQfinish(c);
}

/* Right counters are never repaired, whatever commits meanwhile. Two checkers repair only once. */
static void
right_counters_are_left_alone(void **state)
{
    PGconn *c = core_new("left_alone"), *a = core_join("left_alone");

    (void)state;
    core_crowd("left_alone", BUSY + 2, busy_or_checking);
    expect(c, "0", "select sum(repairs) from checked");
    expect(c, "0", "select count(*) from audit");
    core_check(c);

    pg_run(c, "delete from queue where queue = 'q'");
    pg_run(a, "begin");
    assert_true(pg_int(a, "select check_queue('q')") > 0);
    expect(c, "NULL", "select check_queue('q')");
    pg_run(a, "commit");
    expect(c, "0", "select check_queue('q')");
    core_check(c);
    pg_run(c, "begin isolation level repeatable read");
    assert_string_equal(pg_try(c, "select check_queue('q')"), "QT007");
    PQfinish(a);
    PQfinish(c);
}

/* A session that keeps the books counts for a long time. Meanwhile nobody waits for the rows that
 * it has written. It commits new names before it counts. Other sessions skip the rows of `checked`
 * that it has added, and add none. */
static void
nobody_waits_for_who_counts(void **state)
{
    PGconn *c = core_new("counts"), *a = core_join("counts");

    (void)state;
    core_ten_seconds(c);
    pg_run(c, "select t.push('q', 'a'), t.push('r', 'b')");
    core_settle(c);
    keep_books(c);
    expect(c, "2 true",
           "select count(*) || ' ' || bool_and(f.rolled) from (select * from fold where"
           " keep order by fold desc limit 1) f join counter using (fold)");
    pg_run(c, "delete from checked; delete from queue_config; set lock_timeout = '50ms'");
    pg_run(a, "begin; select from scheduler where term = 0 for update");
    expect(c, "100 0", "select keep_books() || ' ' || (select count(*) from queue_config)");
    pg_run(a, "rollback; begin");
    expect(a, "10", "select keep_books()");
    expect(a, "2 0", "select (select count(*) from queue_config) || ' ' || count(*) from checked");
    pg_run(a, "commit; begin");
    expect(a, "0", "select check_queue('q')");
    expect(c, "t t", "select concat_ws(' ', check_queue('q') is null, check_unheard() is null)");
    pg_run(c, "select check_counts(), check_counts(20000)");
    expect(c, "0", "select count(*) from checked");
    pg_run(a, "commit");
    expect(c, "0", "select check_queue('r')");
    expect(c, "2", "select count(*) from checked");

    pg_run(c, "insert into checked values ('old', now() - interval '2 days')");
    pg_run(c, "update checked set at = now() - interval '1 h' where queue <> 'old'");
    pg_run(a, "begin; select from checked where queue = 'old' for update");
    pg_run(c, "select check_counts()");
    pg_run(a, "rollback");
    PQfinish(a);
    PQfinish(c);
}

/* One session finds that all is counted, while another session begins to count all anew. The first
 * session does not end the new count. */
static void
what_has_just_begun_goes_on(void **state)
{
    PGconn *c = core_new("begun"), *a = core_join("begun");

    (void)state;
    keep_books(c);
    pg_run(c, "insert into checked (queue, at) values ('', now() - interval '1 min')");
    pg_run(a, "begin; update checked set at = clock_timestamp() where queue = ''");
    pg_send(c, "select keep_books()");
    pg_wait_blocked(a, c);
    pg_run(a, "commit");
    assert_string_equal(pg_finish(c), "");
    expect(c, "1", "select count(*) from checked where queue = ''");
    expect(c, "1000", "select keep_books()");
    expect(c, "0", "select count(*) from checked where queue = ''");
    PQfinish(a);
    PQfinish(c);
}

/* The question of `work --drain`. A job that somebody deleted by hand does not count, whatever the
 * counters say. Each job that waits counts, even if no step has seen it. */
static void
a_backlog_is_looked_for(void **state)
{
    PGconn *c = core_new("backlog"), *a = core_join("backlog");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')"); /* unknown to the scheduler */
    expect(c, "3", "select ready from backlog()");
    pg_run(a, "begin; select t.push('q', 'late')");
    pg_run(c, "select t.push('q', 'd')");
    core_settle(c);
    expect(c, "4", "select ready from backlog('{q}')"); /* cut */
    expect(c, "a,b,c,d", "select t.claim('n', 9)");
    expect(c, "0", "select ready from backlog()"); /* all run */
    pg_run(a, "commit");
    expect(c, "1", "select ready from backlog()"); /* behind the cursor */
    core_settle(c);
    expect(c, "1", "select ready from backlog()");
    pg_run(c, "delete from queue where payload->>'name' = 'late'");
    expect(c, "1", "select sum(ready) from overview()");
    expect(c, "0", "select ready from backlog()");
    pg_run(c, "select t.many('r', 'r', 500), t.push('p', 'p', 9)");
    core_settle(c);
    expect(c, "t", "select ready >= 500 from backlog('{r}')"); /* some cut, most not */
    pg_run(c, "delete from queue where queue = 'r' and seq in (select unnest(seqs) from"
              " work_queue)");
    expect(c, "t", "select ready > 0 from backlog('{r}')");
    pg_run(c, "delete from queue where queue = 'r'");
    expect(c, "0", "select ready from backlog('{r,q}')");
    expect(c, "t", "select ready > 0 from backlog()"); /* p */
    pg_run(c, "select pause(gen_random_uuid(), 'p')");
    expect(c, "0", "select ready from backlog()");
    pg_run(c,
           "select set_queue(gen_random_uuid(), 'p', '{\"paused\": false, \"max_running\": 0}')");
    expect(c, "0", "select ready from backlog()");
    PQfinish(a);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_the_truth),
        cmocka_unit_test(a_fold_and_its_own_changes),
        cmocka_unit_test(a_fold_of_an_old_transaction),
        cmocka_unit_test(a_writer_elsewhere_stretches_nothing),
        cmocka_unit_test(books_stay_small),
        cmocka_unit_test(another_cluster),
        cmocka_unit_test(a_copy_of_the_cluster),
        cmocka_unit_test(counted_anew_in_portions),
        cmocka_unit_test(changes_by_hand_are_repaired),
        cmocka_unit_test(checks_are_rare),
        cmocka_unit_test(very_many_dead_rows_put_off_a_search_only),
        cmocka_unit_test(right_counters_are_left_alone),
        cmocka_unit_test(nobody_waits_for_who_counts),
        cmocka_unit_test(what_has_just_begun_goes_on),
        cmocka_unit_test(a_backlog_is_looked_for),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
