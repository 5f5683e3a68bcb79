/*
 * A worker that has lost its lease changes nothing. Every answer is sent with a wrong or an old
 * token, after every way in which a lease can end (rule 2 of the design, decisions 7 and 9).
 */
#include "tests/sql/core.h"

static const char all_lost[] = "lost lost lost lost";

static void
wrong_tokens_change_nothing(void **state)
{
    PGconn *c = core_new("wrong_tokens");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "b", "select t.claim('m', 1)");
    pg_run(c, "create table t.before as select t.picture() as p");
    expect(c, all_lost, "select t.answers('m', lease, version, seq) from t.held where node = 'n'");
    expect(c, all_lost, "select t.answers('', lease, version, seq) from t.held where node = 'n'");
    expect(c, all_lost, "select t.answers(null, lease, version, seq) from t.held where node = 'n'");
    expect(c, all_lost,
           "select t.answers('n', lease, version + 1, seq) from t.held where node = 'n'");
    expect(c, all_lost,
           "select t.answers('n', lease, version - 1, seq) from t.held where node = 'n'");
    expect(c, all_lost,
           "select t.answers('n', lease + 100, version, seq) from t.held where node = 'n'");
    expect(c, "t", "select p = t.picture() from t.before");
    /* my lease, but the job of another one: nothing happens to that job */
    expect(c, "gone gone extended gone",
           "select t.answers('n', x.lease, x.version, y.seq) from t.held x, t.held y where x.node "
           "= 'n' and"
           " y.node = 'm'");
    expect(c, "done", "select t.done('m', 'b')");
    expect(c, "done", "select t.done('n', 'a')");
    expect(c, all_lost, "select t.answers('n', lease, version, seq) from t.held where node = 'n'");
    expect(c, "a completed,b completed", "select t.finished()");
    core_check(c);
    PQfinish(c);
}

/* The same for answers that name many jobs: a part of a lease, a whole lease, several leases, parts
 * of several. Each is another statement. */
static void
wrong_tokens_of_many_jobs(void **state)
{
    static const char *const names[] = {"a,b", "a,b,c", "a,b,c,d,e", "a,b,d", "e,a"};
    static const char *const with[] = {"'n', 1", "'n', -1", "'m', 0"};
    PGconn *c = core_new("wrong_many");

    (void)state;
    pg_run(c, "create function t.wrong(names text, node text, more int) returns text language "
              "plpgsql as $$ declare h record; begin select array_agg(lease order by n) l, "
              "array_agg(version + more order by n) v, array_agg(seq order by n) s, "
              "array_agg('x'::text) e into h from t.last where name = "
              "any(string_to_array(names, ',')); return (select string_agg(distinct o, ' ') from "
              "(select outcome as o from complete($2, h.l, h.v, h.s) union all select outcome from "
              "fail($2, h.l, h.v, h.s, h.e)) z); end $$");
    pg_run(c, "select t.push('q', 'a,b,c'), t.push('r', 'd,e')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 9)");
    expect(c, "2 5", "select concat_ws(' ', count(*), sum(cardinality(seqs))) from work_queue");
    pg_run(c, "create table t.before as select t.picture() as p");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof with / sizeof *with; k++)
            expect(c, "lost", "select t.wrong('%s', %s)", names[i], with[k]);
    expect(c, "t", "select p = t.picture() from t.before");
    expect(c, "done,done,done,done,done", "select t.done('n')");
    core_check(c);
    PQfinish(c);
}

static void
by_hand_says_lost(void **state)
{
    PGconn *c = core_new("by_hand");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2)");
    assert_string_equal(pg_try(c, "select extend_lease('m', lease, version, '1 min') from t.held"),
                        "QT001");
    assert_string_equal(
        pg_try(c, "select extend_lease('n', lease, version + 1, '1 min') from t.held"), "QT001");
    expect(c, "lost", "select complete_job('n', lease, version + 1, seq) from t.held limit 1");
    expect(c, "lost", "select fail_job('m', lease, version, seq, 'x') from t.held limit 1");
    expect(c, "done",
           "select complete_job('n', lease, version, seq, 'res') from t.held where name = 'a'");
    expect(c, "gone", "select complete_job('n', lease, version, seq) from t.held where name = 'a'");
    expect(c, "retry",
           "select fail_job('n', lease, version, seq, 'bad') from t.held where name = 'b'");
    expect(c, "lost",
           "select fail_job('n', lease, version, seq, 'bad') from t.held where name = 'b'");
    expect(c, "res", "select convert_from(result, 'UTF8') from history");
    core_check(c);
    PQfinish(c);
}

/* A worker stops, its lease is stolen and another one holds the job: the first comes back. */
static void
stolen_then_late(void **state)
{
    PGconn *c = core_new("stolen_then_late");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    expect(c, "a,b,c", "select t.claim('slow', 3)");
    core_expire(c, "slow");
    core_second(c);
    core_settle(c);
    expect(c, "0", "select count(*) from work_queue where lock_key = 'slow'");
    /* new numbers, each job in a new lease of its own: nothing that the old token names is left */
    expect(c, "0", "select count(*) from t.held h join queue q on q.seq = h.seq");
    expect(c, "3",
           "select count(*) from work_queue where cardinality(seqs) = 1 and lease > (select "
           "max(lease) from t.held)");
    expect(c, "lost,lost,lost", "select t.done('slow', 'a,b,c')"); /* free again */
    expect(c, "a,b", "select t.claim('new', 2)");
    pg_run(c, "create table t.before as select t.picture() as p");
    expect(c, "lost,lost,lost", "select t.done('slow', 'a,b,c')");
    expect(c, "lost,lost,lost", "select t.fail('slow', 'a,b,c')");
    expect(c, "lost", "select t.extend('slow', 'a,b,c')");
    expect(c, "lost,lost,lost", "select t.back('slow', 'a,b,c')");
    expect(c, "t", "select p = t.picture() from t.before");
    expect(c, "done,done", "select t.done('new', 'a,b')");
    expect(c, "a completed,b completed", "select t.finished()");
    /* the history has a row for each lost attempt */
    expect(c, "3",
           "select count(*) from attempt where outcome = 'lost' and node = 'slow' and number = 1");
    expect(c, "1", "select tries from queue");
    core_check(c);
    PQfinish(c);
}

/* The node itself claims the same jobs again: its old answers are still old. */
static void
old_token_of_the_same_node(void **state)
{
    PGconn *c = core_new("same_node");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    pg_run(c, "create table t.old as select * from t.held");
    core_expire(c, "n");
    core_second(c);
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, all_lost, "select t.answers('n', lease, version, seq) from t.old");
    /* given back and claimed again, too */
    expect(c, "given back", "select t.back('n', 'a')");
    pg_run(c, "insert into t.old select * from t.last");
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "lost lost lost lost,lost lost lost lost",
           "select string_agg(t.answers('n', lease, version, seq), ',') from t.old");
    expect(c, "done", "select t.done('n', 'a')");
    core_check(c);
    PQfinish(c);
}

/* One lease of three jobs, answered in pieces, some of them twice and some never held. */
static void
answers_one_by_one(void **state)
{
    PGconn *c = core_new("one_by_one");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d,e')");
    core_settle(c);
    expect(c, "a,b,c,d,e", "select t.claim('n', 5)");
    expect(c, "1", "select count(*) from work_queue");
    expect(c, "done", "select t.done('n', 'b')");
    expect(c, "gone", "select t.done('n', 'b')");
    expect(c, "done,gone,done", "select t.done('n', 'a,b,c')");
    /* parts in any order */
    pg_run(c, "select t.push('r', 'f,g,h,i')");
    core_settle(c);
    expect(c, "f,g,h,i", "select t.claim('o', 9)");
    expect(c, "done,done,done",
           "select string_agg(r.outcome, ',') from (select array_agg(lease) l, array_agg(version)"
           " v, array_agg(seq order by seq desc) s from t.last where name in ('f', 'g', 'h')) h,"
           " complete('o', l, v, s) r");
    expect(c, "given back", "select t.back('o', 'i')");
    expect(c, "i", "select t.claim('o', 9)");
    expect(c, "done", "select t.done('o', 'i')");
    expect(c, "retry", "select t.fail('n', 'd', 'x', '1 h')");
    expect(c, "gone", "select t.done('n', 'd')");
    expect(c, "gone", "select t.fail('n', 'a')");
    expect(c, "{5}", "select seqs from work_queue");
    expect(c, "done,done",
           "select string_agg(outcome, ',') from t.last h, complete('n', array[lease, lease],"
           " array[version, version], array[seq, seq]) where name = 'e'");
    expect(c, "0", "select count(*) from work_queue");
    expect(c,
           "a completed,b completed,c completed,e completed,f completed,g completed,h completed,i "
           "completed",
           "select t.finished()");
    core_check(c);
    PQfinish(c);
}

/* A job that somebody deletes while it runs is gone. The other jobs of its lease are not. */
static void
deleted_while_running(void **state)
{
    PGconn *c = core_new("deleted");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    expect(c, "a,b,c", "select t.claim('n', 3)");
    pg_run(c, "delete from queue where payload->>'name' = 'b'");
    expect(c, "done,gone", "select t.done('n', 'a,b')");
    expect(c, "done", "select t.done('n', 'c')");
    expect(c, "0", "select count(*) from work_queue");
    pg_run(c, "select t.push('q', 'd')");
    core_settle(c);
    expect(c, "d", "select t.claim('n', 1)");
    pg_run(c, "delete from queue");
    expect(c, "gone", "select t.done('n', 'd')");
    expect(c, "0", "select count(*) from work_queue");
    PQfinish(c);
}

/* Arrays as a hostile or careless caller may send them. */
static void
careless_arrays(void **state)
{
    PGconn *c = core_new("careless");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    pg_run(c, "create table t.before as select t.picture() as p");
    expect(c, "0",
           "select count(*) from complete('n', null::bigint[], null::int[], null::bigint[])");
    expect(c, "0",
           "select count(*) from complete('n', '{}'::bigint[], '{}'::int[], '{}'::bigint[])");
    expect(c, "0",
           "select count(*) from fail('n', null::bigint[], null::int[], null::bigint[], "
           "null::text[])");
    expect(c, "0",
           "select count(*) from fail('n', '{}'::bigint[], '{}'::int[], '{}'::bigint[], "
           "'{}'::text[])");
    expect(c, "0", "select count(*) from extend('n', null::bigint[], null::int[], '1 min')");
    expect(c, "0", "select count(*) from extend('n', '{}'::bigint[], '{}'::int[], '1 min')");
    expect(c, "0", "select count(*) from give_back('n', '{}', '{}', '{}')");
    expect(c, "0", "select count(*) from give_back('n', null, null, null)");
    expect(c, "lost",
           "select string_agg(outcome, ',') from t.held h, complete('n', array[-lease],"
           " array[-2147483648], array[9223372036854775807])");
    expect(c, "t", "select p = t.picture() from t.before");
    core_check(c);
    PQfinish(c);
}

/* A seq that is in no lease, and a lease that is named twice. Arrays that are not in parallel:
 * test_parallel. */
static void
careless_seqs(void **state)
{
    PGconn *c = core_new("careless_seqs");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "done,lost,lost,lost",
           "select (select string_agg(o, ',') from complete('n', array[lease, lease, 7,"
           " 7], array[version, version, 1, 1], array[seq, -seq, 9, 9]) r (s, o)) from t.held");
    pg_run(c, "select t.push('twice', 'z')");
    core_settle(c);
    expect(c, "z", "select t.claim('n', 1, queues => '{twice}')");
    expect(c, "lost,extended",
           "select string_agg(outcome, ',' order by o) from t.held h, lateral extend('n', "
           "array[h.lease, h.lease], array[h.version + 1, h.version], '1 min') with ordinality x "
           "(lease, outcome, until, cancel, o) where h.name = 'z'");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_tokens_change_nothing),
        cmocka_unit_test(wrong_tokens_of_many_jobs),
        cmocka_unit_test(by_hand_says_lost),
        cmocka_unit_test(stolen_then_late),
        cmocka_unit_test(old_token_of_the_same_node),
        cmocka_unit_test(answers_one_by_one),
        cmocka_unit_test(deleted_while_running),
        cmocka_unit_test(careless_arrays),
        cmocka_unit_test(careless_seqs),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
