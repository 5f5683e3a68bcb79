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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_fail_in_one_call),
        cmocka_unit_test(many_complete_in_part),
        cmocka_unit_test(a_fold_undoes_no_lease),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
