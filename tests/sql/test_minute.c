/*
 * Minutes: every delta counts once, whoever rolls it up and however late it commits; the histograms
 * answer percentiles; what is old goes in bounded pieces.
 */
#include "tests/sql/core.h"

#include <string.h>

static void
fold(PGconn *c)
{
    core_ten_seconds(c);
    pg_run(c, "select schedule('test')");
}

/* Two folds, the last of which saw all that had been done; then what it saw is rolled up. */
static void
roll(PGconn *c)
{
    fold(c);
    pg_run(c, "select t.push('other', 'x')");
    fold(c);
    pg_run(c, "select keep_books()");
}

static const char sums[] =
    "select concat_ws(' ', sum(pushed), sum(completed), sum(fails), sum(retried), sum(cancelled),"
    " sum(lost)) from %s where queue <> 'other'";

static void
every_delta_counts_once(void **state)
{
    PGconn *c = core_new("once"), *a = core_join("once"), *b = core_join("once");

    (void)state;
    pg_run(a, "begin; select t.push('q', 'late,later')");
    for (int i = 0; i < 10; i++) {
        if (i % 3 == 0)
            pg_run(b, "begin; select t.push('r', 'p,q,r')");
        pg_run(c, "select t.push('q', 'a,b,c,d')");
        core_settle(c);
        pg_run(c, "delete from t.held; select t.claim('n', 4, null, '{q}')");
        pg_run(c, "select t.done('n', min(name)), t.fail('n', max(name)) from t.held");
        fold(c);
        pg_run(c, "select t.fail('n', (select name from t.held order by name limit 1 offset 1), "
                  "'bad', null, true)");
        core_expire(c, "n");
        core_second(c);
        if (i % 2)
            pg_run(c, "select keep_books()");
        fold(c);
        if (i % 3 == 2)
            pg_run(b, "commit");
    }
    pg_run(b, "commit");
    pg_run(a, "commit");
    roll(c);
    const char *all = pg_value(c, sums, "t.counts");
    assert_true(strlen(all) > 11); /* not only zeros */
    expect(c, all, sums, "minute");
    pg_run(c, "select keep_books(), keep_books()");
    fold(c);
    expect(c, all, sums, "minute");
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* A step that pushes (schedules do) and folds in one transaction, while later ones are over. */
static void
a_fold_and_its_own_changes(void **state)
{
    PGconn *c = core_new("own"), *a = core_join("own");

    (void)state;
    pg_run(c, "begin; select t.push('q', 'a,b')");
    pg_run(a, "select t.push('q', 'c')");
    fold(c);
    pg_run(c, "commit");
    pg_run(a, "select keep_books()");
    expect(c, "1", "select pushed from minute");
    roll(c);
    expect(c, "3 0 0 0 0 0", sums, "minute");
    PQfinish(a);
    PQfinish(c);
}

/* keep_books() and a scheduler's step want the same piece: one does it, the other finds it done. */
static void
two_at_once(void **state)
{
    PGconn *c = core_new("two"), *a = core_join("two");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    fold(c);
    pg_run(a, "begin; select keep_books()");
    assert_string_equal(pg_try(c, "set lock_timeout = '50ms'; select roll_minutes((select "
                                  "max(fold) from fold where keep))"),
                        "55P03");
    expect(a, "3", "select sum(pushed) from minute");
    pg_run(a, "rollback"); /* its process died */
    expect(c, "0", "select count(*) from minute");
    pg_run(c, "reset lock_timeout; select t.push('q', 'd')");
    fold(c); /* the next fold that is kept rolls up the rest before it deletes deltas */
    expect(c, "3", "select sum(pushed) from minute");
    expect(c, "t",
           "select bool_and(rolled = (fold < (select max(fold) from fold))) from fold where"
           " keep");
    pg_run(a, "select keep_books()");
    expect(c, "4", "select sum(pushed) from minute");
    expect(c, "0", "select roll_minutes(max(fold)) from fold where keep");
    expect(c, "4", "select sum(pushed) from minute");
    PQfinish(a);
    PQfinish(c);
}

static void
completed(PGconn *c, const char *waits, const char *runs)
{
    pg_run(c,
           "insert into delta (queue, priority, completed, run_ms, waits, runs) select 'q', 5,"
           " cardinality(r), (select sum(x) from unnest(r) x), w, r from (select %s::int[] as w,"
           " %s::int[] as r) z",
           waits, runs);
    roll(c);
}

static void
histograms(void **state)
{
    PGconn *c = core_new("histograms");

    (void)state;
    pg_run(c, "set timezone = 'UTC'");
    /* each in its bucket: below 1, 1, 2, 3, 4 and 5, 1000; minutes are pressed into one */
    completed(c, "'{0,1,2,3,4,5,1000}'", "'{7,7,7,7,7,7,2000000000}'");
    pg_run(c, "update minute set minute = date_trunc('minute', now()) where queue = 'q'");
    expect(c, "{1,2,4,5,6,7,21,63} {1,1,1,1,2,0,1,0} {0,0,0,0,0,6,0,1} 1015 1000 2000000000",
           "select concat_ws(' ', buckets, waits, runs, wait_ms, wait_max, run_max) from minute"
           " where queue = 'q'");
    pg_run(c, "update delta set at = now()");
    completed(c, "'{3,900000}'", "'{7,0}'");
    expect(c, "9 2 901018 900000",
           "select concat_ws(' ', sum(completed), (select"
           " sum(w) from minute, unnest(buckets, waits)"
           "   u (b, w) where b = 5), sum(wait_ms), max(wait_max)) from minute where queue = 'q'");
    pg_run(c, "delete from minute");
    completed(c, "array(select generate_series(1, 1000))",
              "array(select i - i / 10 * 10 from generate_series(1, 1000) i)");
    expect(c, "1000 t t t 1000 t t t 9",
           "select concat_ws(' ', completed, wait_p50 between 354 and 707, wait_p90 between 800 and"
           "  1000, wait_p99 between 900 and 1000, wait_max, run_p50 between 3 and 7, run_p90"
           " between 7 and 9, run_p99 between 8 and 9, run_max) from percentiles('{q}')");
    expect(c, "0",
           "select count(*) from percentiles('{q}', now() - interval '2 h', now() - "
           "interval '1 h')");
    expect(c, "0", "select count(*) from percentiles('{none}')");
    /* more of short ones moves them all */
    completed(c, "array_fill(3, array[99000])", "array_fill(50, array[99000])");
    expect(c, "t t t t",
           "select concat_ws(' ', wait_p50 between 2.8 and 4, wait_p90 between 2.8 and 4, wait_p99"
           " between 2.8 and 4, run_p50 between 45 and 64) from percentiles()"
           " where queue = 'q'");
    PQfinish(c);
}

/* A delta belongs to the minute of its own time, or to the oldest minute that is kept. */
static void
its_own_minute(void **state)
{
    PGconn *c = core_new("own_minute");

    (void)state;
    pg_run(c, "insert into delta (queue, priority, pushed, at) values ('q', 5, 1, now() - interval "
              "'90 min'), ('q', 5, 2, now() - interval '90 min'), ('q', 5, 4, now() - interval '40 "
              "days')");
    roll(c);
    expect(c, "3",
           "select pushed from minutes('{q}', now() - interval '2 h', now() - interval '1 h')");
    expect(c, "4 t",
           "select pushed || ' ' || (minute > now() - interval '8 days')::char from minutes('{q}',"
           " '-infinity') order by minute limit 1");
    PQfinish(c);
}

/* Each step of time has its sums, and what was ready at its end: exact also in the past, and right
 * up to the newest fold. */
static void
steps_know_the_backlog(void **state)
{
    PGconn *c = core_new("steps");
    static const char all[] =
        "select string_agg(concat_ws('/', pushed, completed, backlog), ' '"
        " order by at) from minute_steps('q', (select at from t.zero) - interval '30 min',"
        " interval '10 min') where pushed <> 0 or completed <> 0";

    (void)state;
    pg_run(c, "create table t.zero as select now() as at");
    pg_run(c, "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled,"
              " lost, wait_ms, run_ms) values (now() - interval '2 h', 'old', 0, 0, 0, 0, 0, 0, 0,"
              " 0)");
    pg_run(c, "insert into delta (queue, priority, ready, pushed, completed, at) values ('q', 5, 9,"
              " 9, 0, (select at from t.zero) - interval '30 min'), ('q', 6, 2, 2, 0, (select at "
              "from t.zero) - interval '20 min'),"
              " ('q', 5, -3, 0, 3, (select at from t.zero) - interval '10 min'), ('q', 5, -4, 0, "
              "0, (select at from t.zero) - interval"
              " '10 min')");
    roll(c);
    expect(c, "9/0/9 2/0/11 0/3/4", all);
    expect(c, "4",
           "select count(*) from minute_steps('q', now() - interval '30 min',"
           " interval '10 min')");
    pg_run(c, "insert into delta (queue, priority, ready, pushed) values ('q', 5, 5, 5)");
    expect(c, "9/0/9 2/0/11 0/3/4", all);
    core_second(c);
    pg_run(c, "select fold_now()"); /* not kept: no minute holds it yet */
    expect(c, "9/0/9 2/0/11 0/3/4 5/0/9", all);
    expect(c, "9", "select sum(ready + running) from overview() where queue = 'q'");
    roll(c);
    expect(c, "9/0/9 2/0/11 0/3/4 5/0/9", all);
    PQfinish(c);
}

/* If the numbers of a time are not known, the time has no row: before the oldest minute, and while
 * deltas wait for a scheduler. */
static void
what_is_not_known_has_no_row(void **state)
{
    PGconn *c = core_new("not_known");
    /* each minute from the oldest one up to that time */
    static const char rows[] =
        "select count(*) = 1 + extract(epoch from date_trunc('minute', %s) - (select min(minute) "
        "from minute)) / 60 and max(seconds) = 60 from minute_steps('%s', %s)",
                      hour[] = "now() - interval '1 h'";

    (void)state;
    roll(c);
    pg_run(c, "delete from minute");
    expect(c, "t", "select count(*) < 3 from minute_steps('q', now() - interval '1 h')");
    pg_run(c, "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled,"
              " lost, wait_ms, run_ms) values (date_trunc('minute', now()) - interval '20 min',"
              " 'other', 0, 0, 0, 0, 0, 0, 0, 0)");
    expect(c, "t", rows, "now()", "q", hour);
    expect(c, "t", rows, "now()", "none", "'-infinity'");
    pg_run(c, "update fold set at = at - interval '10 min 30 s'");
    expect(c, "t", rows, "now()", "q", hour); /* nothing has happened since */
    pg_run(c, "select t.push('other', 'y')");
    expect(c, "t", rows, "(select at from fold order by fold desc limit 1)", "q", hour);
    PQfinish(c);
}

static void
old_minutes_go(void **state)
{
    PGconn *c = core_new("old_minutes");
    const char *old = "select count(*) from minute where minute < now() - interval '7 days 2 min'";

    (void)state;
    pg_run(c, "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled,"
              " lost, wait_ms, run_ms) select date_trunc('minute', now() - interval '9 days') + i *"
              " interval '1 s', 'q', 1, 0, 0, 0, 0, 0, 0, 0 from generate_series(1, 5000) i");
    for (int left = 3000; left >= -1000; left -= 2000) {
        pg_run(c, "select t.push('q', 'x')");
        fold(c);
        assert_int_equal(pg_int(c, "%s", old), left < 0 ? 0 : left);
    }
    /* the next looks from there on only: what is dead before is not read again */
    expect(c, "t",
           "select to_timestamp(swept[4]) between now() - interval '9 days' and now() - interval '8"
           " days' from fold order by fold desc limit 1");
    pg_run(c, "insert into minute select (now() - interval '10 days'), 'before', 1, 0, 0, 0, 0, 0,"
              " 0, 0");
    pg_run(c, "select t.push('q', 'x')");
    fold(c);
    expect(c, "1", "%s", old);
    PQfinish(c);
}

/* --- pages touched --- */

/* A step that folds, cleans up and finds a lease to take back: the least of some, so the session is
 * warm. The second column of the plan's buffers is what counts, never the time. */
static int64_t
pages(PGconn *c, const char *ask)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < 4; i++) {
        pg_run(c, "select t.push('q', 'a,b'); select t.step()");
        core_settle(c);
        pg_run(c, "delete from t.held; select t.claim('n', 2, null, '{q}'); select t.done('n')");
        core_second(c);
        core_ten_seconds(c);
        int64_t n = pg_int(c, "select t.pages('%s')", ask);
        least = n < least ? n : least;
    }
    return least;
}

/* A snapshot held for long, 200,000 deltas folded and swept behind it, old minutes deleted: nobody
 * wades through what is dead. */
static void
a_held_snapshot_slows_no_fold(void **state)
{
    PGconn *c = core_new("held_fold"), *old = core_join("held_fold");

    (void)state;
    pg_run(c, "create function t.pages(ask text) returns bigint language plpgsql as $$ declare j "
              "json; begin execute 'explain (analyze, buffers, format json) ' || ask into j;"
              " return (j->0->'Plan'->>'Shared Hit Blocks')::bigint + (j->0->'Plan'->>'Shared Read "
              "Blocks')::bigint; end $$");
    pg_run(c, "insert into queue_config (queue) select 'k' || i from generate_series(1, 20) i");
    pg_run(old, "begin isolation level repeatable read; select count(*) from queue");
    int64_t step = pages(c, "select schedule($y$test$y$)");
    int64_t look = pages(c, "select count(*) from overview()");
    for (int i = 0; i < 10; i++) {
        pg_run(c, "insert into delta (queue, priority, pushed, completed, waits) select 'k' || 1 + "
                  "i - i / 20 * 20, 5, 1, 1, '{1}' from generate_series(1, 20000) i");
        pg_run(c,
               "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled,"
               " lost, wait_ms, run_ms) select date_trunc('minute', now() - interval '9 days') + "
               "i * interval '1 s', 'q', 1, 0, 0, 0, 0, 0, 0, 0 from generate_series(%d, %d) i",
               i * 2000, i * 2000 + 1999);
        fold(c);
        pg_run(c, "select keep_books()");
    }
    for (int i = 0; i < 2; i++) {
        pg_run(c, "select t.push('q', 'x')");
        fold(c);
    }
    expect(c, "t", "select count(*) < 1000 from delta");
    int64_t step_after = pages(c, "select schedule($y$test$y$)");
    int64_t look_after = pages(c, "select count(*) from overview()");
    print_message("pages: step %d -> %d, overview %d -> %d\n", (int)step, (int)step_after,
                  (int)look, (int)look_after);
    assert_in_range(step_after, 1, step + 300); /* 20 queues more */
    assert_in_range(look_after, 1, look + 60);
    pg_run(old, "commit");
    PQfinish(old);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_delta_counts_once),
        cmocka_unit_test(a_fold_and_its_own_changes),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(histograms),
        cmocka_unit_test(its_own_minute),
        cmocka_unit_test(steps_know_the_backlog),
        cmocka_unit_test(what_is_not_known_has_no_row),
        cmocka_unit_test(old_minutes_go),
        cmocka_unit_test(a_held_snapshot_slows_no_fold),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
