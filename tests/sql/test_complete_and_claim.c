/*
 * complete_and_claim(): the answer for some jobs and the next claim in one transaction. All that
 * holds for complete() and for claim() holds for it; a lost answer does not stop the claim, and an
 * error undoes both.
 */
#include "tests/sql/core.h"

#include <stdio.h>

/* t.next(node, names, n): answers for these jobs, claims n; "name outcome, ... | claimed names". */
static const char word[] =
    "create function t.next(node text, names text, n int, timeout interval default null, queues "
    "text[] default null)"
    " returns text language plpgsql as $$ #variable_conflict use_column\n declare r text; h "
    "record; begin"
    " select array_agg(lease order by n) l, array_agg(version order by n) v, array_agg(seq order "
    "by n) s into h"
    "  from t.last x where x.node = $1 and name = any(string_to_array($2, ','));"
    " with c as (select * from complete_and_claim($1, h.l, h.v, h.s, null, null, $3, $4, $5) with "
    "ordinality), i as ("
    "  insert into t.held (node, name, lease, version, seq, id, queue, try, max_tries, "
    "lease_until) select $1,"
    "  payload->>'name', lease, version, seq, id, c.queue, try, max_tries, lease_until from c "
    "where outcome is null"
    "  order by ordinality) select concat(string_agg((select name from t.last x where x.node = $1 "
    "and x.seq = c.seq)"
    "  || ' ' || outcome, ',' order by ordinality) filter (where outcome is not null), '|',"
    "  string_agg(payload->>'name', ',' order by ordinality) filter (where outcome is null)) into "
    "r from c;"
    " return r; end $$";

static PGconn *
new_story(const char *database, const char *jobs)
{
    PGconn *c = core_new(database);

    pg_run(c, "%s", word);
    pg_run(c, "select t.push('q', '%s')", jobs);
    core_settle(c);
    return c;
}

static void
one_after_the_other(void **state)
{
    PGconn *c = new_story("one_after", "a,b,c,d,e,f,g");

    (void)state;
    expect(c, "|a", "select t.next('n', null, 1)");
    expect(c, "|b,c", "select t.next('n', 'a', 2)");
    expect(c, "|d", "select t.next('n', 'b', 1)");     /* part of a lease */
    expect(c, "|e,f", "select t.next('n', 'd,c', 2)"); /* parts of two */
    expect(c, "|", "select t.next('n', 'e', 0)");
    expect(c, "|g", "select t.next('n', 'f', 9)");
    expect(c, "|", "select t.next('n', 'g', 9)");
    expect(c, "7", "select count(*) from history where state = 'completed' and node = 'n'");
    expect(c, "0", "select count(*) from work_queue");
    expect(c, "7 7 7",
           "select concat_ws(' ', sum(completed), sum(cardinality(waits)), sum(cardinality(runs))) "
           "from delta");
    core_check(c);
    PQfinish(c);
}

static void
what_claim_says(void **state)
{
    PGconn *c = new_story("what_claim_says", "a,b");

    (void)state;
    pg_run(c, "update queue_config set run_timeout = '7 s', max_tries = 3");
    pg_run(c, "update work_queue set run_timeout = '7 s', max_tries = 3");
    expect(c, "1 3 00:00:07 t",
           "select concat_ws(' ', try, max_tries, run_timeout, lease_until between now() + "
           "interval '59 min' and now() +"
           " interval '61 min') from complete_and_claim('n', null, null, null, null, "
           "null, 1, '1 h') where"
           " payload->>'name' = 'a'");
    expect(c, "0",
           "select count(*) from complete_and_claim('n', '{}', '{}', "
           "'{}', null, null, 1,"
           " null, '{other}')");
    expect(c, "b",
           "select payload->>'name' from complete_and_claim('n', '{}', '{}', '{}', null, null, 1, "
           "null, '{q}', false)");
    expect(c, "1",
           "select count(*) from work_queue where not all_started and started_seqs is null and "
           "lock_key = 'n'");
    PQfinish(c);
}

/* A worker that has lost its lease is told so, changes nothing, and still gets its next jobs. */
static void
lost_and_yet_claims(void **state)
{
    PGconn *c = new_story("lost_claims", "a,b,c,d");

    (void)state;
    expect(c, "|a", "select t.next('n', null, 1)");
    expect(c, "|b", "select t.next('n', null, 1)");
    core_expire(c, "n");
    core_second(c);
    pg_run(c, "update work_queue set lock_timeout = now() + interval '1 h' where 'b' = (select "
              "name from t.held h where"
              " h.seq = seqs[1] and h.lease = work_queue.lease)");
    core_settle(c);
    expect(c, "b", "select name from t.last join work_queue w using (lease)");
    expect(c, "a lost|c", "select t.next('n', 'a,b', 1)");
    expect(c, "b lost|d", "select t.next('n', 'b', 1)");
    expect(c, "b completed", "select t.finished()");
    expect(c, "a", "select t.claim('m', 1)");
    pg_run(c, "create table t.before as select p from (select t.picture() p) z");
    expect(c, "a lost|", "select t.next('n', 'a', 1)");
    expect(c, "t", "select p = t.picture() from t.before");
    expect(c, "done", "select t.done('m', 'a')");
    core_check(c);
    PQfinish(c);
}

static void
duplicates_and_strangers(void **state)
{
    PGconn *c = new_story("duplicates", "a,b,c,d");

    (void)state;
    expect(c, "|a,b", "select t.next('n', null, 2)");
    expect(c, "c",
           "select string_agg(coalesce(outcome, payload->>'name'), ',') from t.last h, "
           "complete_and_claim('n',"
           " array[h.lease, h.lease], array[h.version, h.version], array[h.seq, h.seq], null, "
           "null, 1) where name = 'a'");
    expect(c, "gone,d",
           "select string_agg(coalesce(outcome, payload->>'name'), ',') from t.last h, "
           "complete_and_claim('n',"
           " array[h.lease], array[h.version], array[h.seq], null, null, 1) where name = 'a'");
    expect(c, "lost",
           "select outcome from t.last h, complete_and_claim('m', array[h.lease], "
           "array[h.version], array[h.seq], null,"
           " null, 1) where name = 'b'");
    expect(c, "2", "select count(*) from queue where payload->>'name' in ('c', 'd')");
    expect(c, "a completed", "select t.finished()");
    core_check(c);
    PQfinish(c);
}

/* An error undoes everything, also the answer. */
static void
an_error_changes_nothing(void **state)
{
    PGconn *c = new_story("an_error", "a,b");

    (void)state;
    expect(c, "|a", "select t.next('n', null, 1)");
    pg_run(c, "create table t.before as select t.picture() as p");
    assert_string_equal(pg_try(c, "select t.next('n', 'a', null)"), "QT007");
    assert_string_equal(pg_try(c, "select t.next('n', 'a', 1, '-1 s')"), "QT007");
    assert_string_equal(
        pg_try(c, "select complete_and_claim('n', array[lease], array[version], array[seq], null,"
                  " array[convert_to(repeat('x', 1048577), 'UTF8')], 1) from t.held"),
        "QT004");
    expect(c, "t", "select p = t.picture() from t.before");
    expect(c, "|b", "select t.next('n', 'a', 1)");
    core_check(c);
    PQfinish(c);
}

/* The steal comes first: the answer waits for it and is lost. And the other way round. */
static void
beside_a_steal(void **state)
{
    PGconn *c = new_story("beside_steal", "a,b"), *s = core_join("beside_steal"),
           *n = core_join("beside_steal");

    (void)state;
    expect(c, "|a", "select t.next('n', null, 1)");
    core_expire(c, "n");
    core_second(c);
    pg_run(s, "begin");
    expect(s, "1", "select stolen from schedule('test')");
    pg_send(n, "create temp table said as select t.next('n', 'a', 1) as x");
    pg_wait_blocked(c, n);
    pg_run(s, "commit");
    assert_string_equal(pg_finish(n), "");
    expect(n, "a lost|b", "select x from said");
    /* the answer comes first */
    expect(c, "a", "select t.claim('m', 1)");
    core_expire(c, "m");
    core_second(c);
    pg_run(n, "begin");
    expect(n, "|", "select t.next('m', 'a', 1)");
    expect(s, "0", "select stolen from schedule('test')"); /* leaves it alone */
    pg_run(n, "commit");
    expect(c, "a completed", "select t.finished()");
    core_settle(c);
    core_check(c);
    PQfinish(n);
    PQfinish(s);
    PQfinish(c);
}

/* Two sessions answer and claim at once: the second takes other jobs, whether the first commits or
 * not. */
static void
two_at_once(void **state)
{
    PGconn *c = new_story("two_at_once", "a,b,c,d"), *m = core_join("two_at_once"),
           *n = core_join("two_at_once");

    (void)state;
    pg_run(c, "update work_queue set seqs = seqs");
    expect(c, "|a", "select t.next('m', null, 1)");
    expect(c, "|b", "select t.next('n', null, 1)");
    pg_run(m, "begin");
    expect(m, "|c", "select t.next('m', 'a', 1)");
    expect(n, "|", "select t.next('n', 'b', 1)"); /* the only lease left is being split */
    pg_run(m, "rollback");
    expect(n, "|c,d", "select t.next('n', null, 2)");
    expect(m, "|", "select t.next('m', 'a', 1)");
    expect(n, "|", "select t.next('n', 'd,c', 1)");
    expect(c, "4", "select count(*) from history");
    core_check(c);
    PQfinish(n);
    PQfinish(m);
    PQfinish(c);
}

/* Jobs whose time is over are not handed out; the claim goes on to those that are left. */
static void
expired_jobs_are_left_out(void **state)
{
    PGconn *c = new_story("expired_left", "a,b,c,d,e,f");

    (void)state;
    pg_run(c, "update queue_config set chunk = 2; select t.many('x', 'x', 3)");
    core_settle(c);
    pg_run(c, "update queue set expires_at = now() - interval '1 ms' where payload->>'name' in "
              "('a', 'b', 'd')");
    expect(c, "|x1,c", "select t.next('n', null, 4)"); /* x was idle: in front */
    expect(c, "|e,f", "select t.next('n', 'x1,c', 3)");
    expect(c, "|x2,x3", "select t.next('n', 'e,f', 3)");
    expect(c, "|", "select t.next('n', 'x2,x3', 3)");
    expect(c, "0", "select count(*) from work_queue where lock_key is not null");
    PQfinish(c);
}

/* No scheduler for more than a week: the partitions of the days are missing, the answers are not
 * lost. */
static void
no_partition_of_today(void **state)
{
    PGconn *c = new_story("no_partition", "a,b,c"), *n = core_join("no_partition");

    (void)state;
    expect(c, "|a", "select t.next('n', null, 1)");
    expect(c, "|b", "select t.next('n', null, 1)");
    pg_run(c, "do $$ declare p regclass; begin for p in select inhrelid::regclass from pg_inherits "
              "where inhparent in"
              " ('history'::regclass, 'attempt'::regclass) loop execute format('drop table %%s', "
              "p); end loop; end $$");
    expect(c, "|c", "select t.next('n', 'a', 1)");
    expect(n, "failed", "select t.fail('n', 'b', final => true)");
    expect(n, "|", "select t.next('n', 'c', 1)");
    expect(c, "a completed,c completed", "select t.finished()");
    expect(c, "1", "select count(*) from attempt");
    core_check(c);
    PQfinish(n);
    PQfinish(c);
}

/* One session works for two queues in one database: that it has seen today in one says nothing of
 * the other. */
static void
each_schema_has_its_day(void **state)
{
    PGconn *c = new_story("two_schemas", "a,b");

    (void)state;
    expect(c, "|a", "select t.next('n', null, 1)");
    expect(c, "|b", "select t.next('n', 'a', 1)");
    core_load(c, "second");
    pg_run(c, "set search_path = second; select push('q'); create table second.held as select * "
              "from claim('n')");
    pg_run(c, "do $$ declare p regclass; begin for p in select inhrelid::regclass from pg_inherits "
              "where inhparent in"
              " ('history'::regclass, 'attempt'::regclass) loop execute format('drop table %%s', "
              "p); end loop; end $$");
    expect(
        c, "done",
        "select outcome from held, complete('n', array[lease], array[version], array[held.seq])");
    expect(c, "1", "select count(*) from history");
    pg_run(c, "reset search_path; set search_path = queues");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(what_claim_says),
        cmocka_unit_test(lost_and_yet_claims),
        cmocka_unit_test(duplicates_and_strangers),
        cmocka_unit_test(an_error_changes_nothing),
        cmocka_unit_test(beside_a_steal),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(expired_jobs_are_left_out),
        cmocka_unit_test(no_partition_of_today),
        cmocka_unit_test(each_schema_has_its_day),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
