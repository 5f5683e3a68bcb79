/*
 * One job is answered for by itself: the history and the counters then, how its lease goes on
 * without it, and the answer if there is nothing to complete.
 */
#include "tests/sql/core.h"

/* Jobs of queue q in leases of n for the node, with that history (NULL = as it comes). */
static PGconn *
new_leases(const char *db, const char *names, int n, const char *history)
{
    PGconn *c = core_new(db);

    if (history)
        pg_run(c, "insert into queue_config (queue, history) values ('q', '%s')", history);
    pg_run(c, "select t.push('q', '%s')", names);
    core_settle(c);
    expect(c, names, "select t.claim('n', %d)", n);
    return c;
}

static void
others_of_the_lease_go_on(void **state)
{
    PGconn *c = new_leases("others", "a,b,c", 3, NULL);

    (void)state;
    expect(c, "done", "select t.done('n', 'b')");
    expect(c, "{1,3} n 1", "select concat_ws(' ', seqs, lock_key, version) from work_queue");
    expect(c, "extended", "select t.extend('n', 'a')");
    expect(c, "done", "select t.done('n', 'a')");
    expect(c, "{3}", "select seqs from work_queue");
    expect(c, "retry", "select t.fail('n', 'c', 'x', '1 h')");
    expect(c, "0", "select count(*) from work_queue");
    expect(c, "a completed,b completed", "select t.finished()");
    core_check(c);
    PQfinish(c);
}

static void
gone_is_gone(void **state)
{
    PGconn *c = new_leases("gone_one", "a,b,c", 3, NULL);

    (void)state;
    expect(c, "done", "select t.done('n', 'a')");
    expect(c, "gone", "select t.done('n', 'a')");
    pg_run(c, "delete from queue where payload->>'name' = 'b'");
    expect(c, "gone", "select t.done('n', 'b')");
    expect(c, "{3}", "select seqs from work_queue"); /* nobody waits for it any more */
    expect(c, "done", "select t.done('n', 'c')");
    expect(c, "lost", "select t.done('n', 'c')"); /* and with the last one the lease */
    expect(c, "a completed,c completed", "select t.finished()");
    PQfinish(c);
}

/* An answer with another node's name, an old version or a job of another lease changes nothing,
 * whether the job is alone in its lease or not. */
static void
no_token_no_answer(void **state)
{
    PGconn *c = new_leases("tokens", "a,b,c", 3, NULL);

    (void)state;
    pg_run(c, "select t.push('q', 'd')");
    core_settle(c);
    expect(c, "d", "select t.claim('n', 1)");
    pg_run(c, "create table t.before as select t.picture() as p");
    expect(c, "lost,lost,lost,lost",
           "select string_agg(complete_job('m', lease, version, seq), ',') from t.held");
    expect(c, "lost,lost,lost,lost",
           "select string_agg(complete_job('n', lease, version + 1, seq), ',') from t.held");
    expect(
        c, "gone,gone,gone",
        "select string_agg(complete_job('n', lease, version, (select seq from t.held where name = "
        "'d')), ',') from t.held where name <> 'd'");
    expect(c, "gone", "select complete_job('n', lease, version, 1) from t.held where name = 'd'");
    expect(c, "t", "select p = t.picture() from t.before");
    expect(c, "done,done,done,done", "select t.done('n')");
    core_check(c);
    PQfinish(c);
}

/* Another node holds the job by now, or has finished it. */
static void
stolen(const char *db, int n, const char *names)
{
    PGconn *c = new_leases(db, names, n, NULL);

    core_expire(c, "n");
    core_second(c);
    core_settle(c);
    expect(c, "a", "select t.claim('m', 1)");
    pg_run(c,
           "create table t.before as select t.picture() as p, (select count(*) from delta) as d");
    expect(c, "lost", "select t.done('n', 'a')");
    expect(c, "t", "select p = t.picture() and d = (select count(*) from delta) from t.before");
    expect(c, "done", "select t.done('m', 'a')");
    expect(c, "lost", "select t.done('n', 'a')");
    expect(c, "a completed", "select t.finished()");
    expect(c, "m", "select node from history");
    core_check(c);
    PQfinish(c);
}

static void
lost_after_a_steal(void **state)
{
    (void)state;
    stolen("stolen_one", 1, "a");
    stolen("stolen_many", 3, "a,b,c");
}

/* With a result and a start, as workers answer. */
static const char answer[] =
    "select outcome from t.last h, complete('n', array[lease], array[version], array[seq], "
    "array[%s], array['\\x7b7d'::bytea]) where name = '%s'";

static void
history_as_the_queue_has_it(void **state)
{
    static const struct {
        const char *db, *history, *kept;
    } ways[] = {
        {"keeps_all",  "full", "2 2 2 2"},
        {"keeps_meta", "meta", "2 0 0 0"},
        {"keeps_none", "none", "0 0 0 0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        PGconn *c = new_leases(ways[i].db, "a,b", 2, ways[i].history);
        expect(c, "done", answer, "now()", "a");
        expect(c, "done", answer, "now()", "b");
        expect(c, ways[i].kept,
               "select concat_ws(' ', count(*), count(*) filter (where kept), count(payload), "
               "count(*) filter (where result = '\\x7b7d')) from history");
        expect(c, "2", "select sum(completed) from delta"); /* the counts know them all the same */
        core_check(c);
        PQfinish(c);
    }
}

/* A worker's clock may be wrong: a start is between the claim and now. */
static void
starts_between_claim_and_now(void **state)
{
    PGconn *c = new_leases("starts", "a,b,c,d", 4, NULL);

    (void)state;
    pg_run(c, "update work_queue set started = now() - interval '1 min'");
    expect(c, "done", answer, "now() - interval '1 year'", "a");
    expect(c, "done", answer, "now() + interval '1 year'", "b");
    expect(c, "done", answer, "now() - interval '30 s'", "c");
    expect(c, "done", answer, "null::timestamptz", "d");
    expect(c, "a 60,b 0,c 30,d 60",
           "select string_agg((payload->>'name') || ' ' || floor(extract(epoch from finished - "
           "started) / 30) * 30, ',' order by payload->>'name') from history");
    expect(c, "60 0 30 60",
           "select string_agg((floor(runs[1] / 30000.0) * 30)::text, ' ' order by "
           "xid::text::bigint) from "
           "delta where completed = 1 and run_ms = runs[1]");
    core_check(c);
    PQfinish(c);
}

static void
a_result_over_the_limit_changes_nothing(void **state)
{
    PGconn *c = new_leases("too_large", "a,b", 2, NULL);

    (void)state;
    pg_run(c, "update setting set value = '2000' where name = 'result_limit'");
    pg_run(c, "create table t.before as select t.picture() as p");
    assert_string_equal(
        pg_try(c, "select complete_job('n', lease, version, seq, repeat('x', 2001)) from t.held"),
        "QT004");
    expect(c, "t", "select p = t.picture() from t.before");
    expect(
        c, "done",
        "select complete_job('n', lease, version, seq, repeat('x', 2000)) from t.held where name = "
        "'a'");
    expect(c, "2000", "select octet_length(result) from history");
    core_check(c);
    PQfinish(c);
}

/* The same answer twice and one for another lease in one call: each answer is looked at by itself.
 */
static void
said_twice_is_told_twice(void **state)
{
    PGconn *c = new_leases("twice", "a,b,c", 3, NULL);

    (void)state;
    expect(c, "done,done,lost",
           "select string_agg(outcome, ',' order by o) from t.last h, complete('n', array[lease, "
           "lease, 77], array[version, version, 1], array[seq, seq, 9]) with ordinality r (seq, "
           "outcome, o) where name = 'a'");
    expect(c, "retry,retry,lost",
           "select string_agg(outcome, ',' order by o) from t.last h, fail('n', array[lease, "
           "lease, 77], array[version, version, 1], array[seq, seq, 9], '{x,y,z}') with ordinality "
           "r (seq, outcome, run_after, o) where name = 'b'");
    expect(c, "x", "select error from queue where state = 'retry'");
    expect(c, "{3}", "select seqs from work_queue");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_of_the_lease_go_on),
        cmocka_unit_test(gone_is_gone),
        cmocka_unit_test(no_token_no_answer),
        cmocka_unit_test(lost_after_a_steal),
        cmocka_unit_test(history_as_the_queue_has_it),
        cmocka_unit_test(starts_between_claim_and_now),
        cmocka_unit_test(a_result_over_the_limit_changes_nothing),
        cmocka_unit_test(said_twice_is_told_twice),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
