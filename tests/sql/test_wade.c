/*
 * What a call costs follows its own jobs: not the square of their number, not the jobs of others,
 * not the dead rows that a held snapshot keeps. Measured in pages, or as processor time of the
 * server's process against that of fewer jobs in the same run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sql/core.h"

/* Processor time that the session's process has had so far, in clock ticks: fields 14 and 15. */
static int64_t
ticks(const PGconn *c)
{
    char path[64], line[1024];

    snprintf(path, sizeof path, "/proc/%d/stat", PQbackendPID(c));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    char *at = strrchr(line, ')');
    for (int field = 2; field < 14; field++) {
        assert_non_null(at);
        at = strchr(at + 1, ' ');
    }
    assert_non_null(at);
    int64_t user = strtoll(at, &at, 10);
    return user + strtoll(at, &at, 10);
}

/* n jobs in 20 queues, each in a lease of its own or ten in one, claimed by node n; the time of one
 * call that answers for all. */
static int64_t
answer_time(PGconn *c, int n, const char *answer)
{
    pg_run(c,
           "delete from t.held; insert into queue (queue, payload)"
           " select 'q' || i %% 20, '{}' from generate_series(1, %d) i",
           n);
    for (int64_t got = 0; got < n;) {
        pg_run(c, "update tick set want = 20000 where tick = (select max(tick) from tick)");
        core_settle(c);
        pg_run(c,
               "insert into t.held (node, lease, version, seq, id, queue) select 'n', lease, "
               "version, seq, id, queue from claim('n', %d)",
               n - (int)got);
        got = pg_int(c, "select count(*) from t.held");
    }
    int64_t before = ticks(c);
    expect(c, pg_value(c, "select '%d'", n), "%s", answer);
    return ticks(c) - before;
}

/* Four calls for 500 jobs and one for 4000: twice the jobs in all, eight times the square. */
static void
not_the_square(const char *database, const char *answer)
{
    PGconn *c = core_new(database);
    int64_t small = 0, large;

    pg_run(c, "set enable_seqscan = off");
    answer_time(c, 500, answer);
    for (int i = 0; i < 4; i++)
        small += answer_time(c, 500, answer);
    large = answer_time(c, 4000, answer);
    print_message("%s: %" PRId64 " ticks for 4 x 500 jobs, %" PRId64 " for 4000\n", database, small,
                  large);
    assert_true(large <= 6 * small + 20);
    core_check(c);
    PQfinish(c);
}

static void
many_fail_in_one_call(void **state)
{
    (void)state;
    not_the_square(
        "many_fail",
        "with h as (select array_agg(lease order by n) l, array_agg(version order by n) v,"
        " array_agg(seq order by n) s, array_agg('x'::text) e from t.held)"
        " select count(*) from h, fail('n', h.l, h.v, h.s, h.e, final => array[true])"
        " where outcome in ('retry', 'failed')");
}

/* One job of the last lease is said twice, so that it goes the long way. */
static void
many_complete_in_part(void **state)
{
    (void)state;
    not_the_square(
        "many_complete",
        "with h as (select array_agg(lease order by n) l, array_agg(version order by n) v,"
        " array_agg(seq order by n) s from t.held)"
        " select count(*) from h, complete_rest('n', h.l, h.v, h.s, null, null)"
        " where outcome = 'done'");
}

/* A fold that fails, or is cancelled as it takes too long, undoes no lease of its step. */
static void
a_fold_undoes_no_lease(void **state)
{
    static const char *const codes[] = {"57014", "22003"};
    PGconn *c = core_new("fold_fails");

    (void)state;
    pg_run(c, "alter function fold_now() rename to fold_well");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        pg_run(c,
               "create or replace function fold_now() returns boolean language plpgsql as $$ begin "
               "raise 'broken' using errcode = '%s'; end $$",
               codes[i]);
        pg_run(c, "update fold set at = at - interval '1 h'; select t.push('q', 'a,b,c')");
        core_settle(c);
        expect(c, "3000", "select ms from fold order by fold desc limit 1");
        expect(c, "a,b,c", "select t.claim('n', 3)");
        expect(c, "done,done,done", "select t.done('n')");
    }
    pg_run(c, "drop function fold_now(); alter function fold_well() rename to fold_now");
    pg_run(c, "update fold set at = at - interval '1 h'");
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

/* Pages that a statement touches. */
static int64_t
pages(PGconn *c, const char *sql)
{
    static const char *const kinds[] = {"\"Shared Hit Blocks\": ", "\"Shared Read Blocks\": "};
    PGresult *res = pg_query(c, "explain (analyze, buffers, format json) %s", sql);
    int64_t n = 0;

    for (int i = 0; i < 2; i++) {
        const char *at = strstr(PQgetvalue(res, 0, 0), kinds[i]); /* the first is the whole */
        assert_non_null(at);
        n += strtoll(at + strlen(kinds[i]), NULL, 10);
    }
    PQclear(res);
    return n;
}

/* A step that has nothing to do, twice: what it plans the first time does not count. */
static int64_t
idle_step(PGconn *c, const char *before)
{
    int64_t n = 0;

    for (int i = 0; i < 2; i++) {
        pg_run(c, "%s", before);
        n = pages(c, "select * from schedule('test')");
    }
    return n;
}

/* n jobs that were there and are gone, as far as the holder lets them. Nothing counts them. */
static void
dead_jobs(PGconn *c, int n, const char *columns, const char *values)
{
    pg_run(c,
           "begin; set local session_replication_role = replica;"
           " insert into queue (queue, payload, %s) select 'q', '{}', %s"
           " from generate_series(1, %d) i; delete from queue where queue = 'q'; commit",
           columns, values, n);
}

/* A thousand jobs are due at one instant, at which many others were: what was promoted is not read
 * again until a later job is due. */
static void
due_at_one_instant(void **state)
{
    PGconn *c = core_new("one_instant"), *holder = core_join("one_instant");

    (void)state;
    core_settle(c);
    int64_t fresh = idle_step(c, "select 1");
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    dead_jobs(c, 20000, "state, run_after", "'scheduled', '2020-01-01'");
    pg_run(c, "insert into queue (queue, payload, state, run_after) select 'r', '{}', 'scheduled',"
              " '2020-01-01' from generate_series(1, 1000)");
    expect(c, "1000", "select promoted from schedule('test')");
    core_settle(c);
    int64_t held = idle_step(c, "select 1");
    print_message("an idle step: %" PRId64 " pages, %" PRId64 " fresh\n", held, fresh);
    assert_true(held < fresh + 100);
    pg_run(c, "insert into queue (queue, payload, state, run_after) select 'r', '{}', 'scheduled',"
              " '2020-01-01' from generate_series(1, 3)"); /* they come late */
    expect(c, "3", "select promoted from schedule('test')");
    core_check(c);
    PQfinish(holder);
    PQfinish(c);
}

/* Jobs with a time to expire were completed long before it, under a snapshot: they are looked
 * through once, not at each step. What expires, or came with its time over, is found all the same.
 */
static void
expired_long_ago(void **state)
{
    PGconn *c = core_new("long_ago"), *holder = core_join("long_ago");
    static const char again[] = "update lane set expire_at = now(), expire_all = 'infinity'";

    (void)state;
    core_settle(c);
    int64_t fresh = idle_step(c, again);
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    dead_jobs(c, 100000, "expires_at", "now() - i * interval '1 ms'");
    pg_run(c, "update lane set expire_at = '-infinity'; select schedule('test')");
    int64_t held = idle_step(c, again);
    print_message("an idle step: %" PRId64 " pages, %" PRId64 " fresh\n", held, fresh);
    assert_true(held < fresh + 100);
    pg_run(
        c,
        "insert into queue (queue, payload, expires_at) values ('r', '{\"name\": \"a\"}', now());"
        " %s; select schedule('test')",
        again);
    expect(c, "a cancelled", "select t.finished()");
    pg_run(c, "insert into queue (queue, payload, expires_at) values ('r', '{\"name\": \"b\"}',"
              " now() - interval '1 h'); update lane set expire_at = now(), expire_all = now();"
              " select schedule('test')");
    expect(c, "a cancelled,b cancelled", "select t.finished()");
    core_check(c);
    PQfinish(holder);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(due_at_one_instant),     cmocka_unit_test(expired_long_ago),
        cmocka_unit_test(many_fail_in_one_call),  cmocka_unit_test(many_complete_in_part),
        cmocka_unit_test(a_fold_undoes_no_lease),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
