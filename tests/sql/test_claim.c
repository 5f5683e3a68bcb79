/*
 * Claiming: what comes in which order, how much, by whom; split leases; claims without a scheduler;
 * what hostile callers may try.
 */
#include "tests/sql/core.h"

static void
exactly_n_in_order(void **state)
{
    PGconn *c = core_new("exactly_n");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d,e,f,g,h,i,j,k,l')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 0)");
    expect(c, "", "select t.claim('n', -1)");
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "b,c,d", "select t.claim('n', 3)");
    expect(c, "e,f,g,h,i,j,k",
           "select t.claim('m', 7)"); /* the rest of one lease, part of the next */
    expect(c, "l", "select t.claim('n', 2147483647)");
    expect(c, "", "select t.claim('n', 5)");
    expect(c, "12", "select count(distinct seq) from (select unnest(seqs) seq from work_queue) z");
    expect(c, "done,done,done,done,done", "select t.done('n')");
    expect(c, "done,done,done,done,done,done,done", "select t.done('m')");
    core_check(c);
    PQfinish(c);
}

/* Each part of a split lease expires and ends on its own. */
static void
split_parts_are_leases(void **state)
{
    PGconn *c = core_new("split");

    (void)state;
    pg_run(
        c,
        "insert into queue_config (queue, chunk) values ('q', 100); select t.many('q', 'j', 100);"
        " insert into node (lock_key, session, slots) values ('big', gen_random_uuid(), 100);"
        " update cursor set chunk = 100; update tick set want = 100");
    core_settle(c);
    expect(c, "1", "select count(*) from work_queue");
    for (int i = 1; i <= 100; i++)
        expect(c, "1", "select count(*) from claim('n%d', 1)", i);
    expect(c, "100 100", "select count(*) || ' ' || count(distinct lock_key) from work_queue");
    expect(c, "", "select t.claim('n', 1)");
    core_expire(c, "n7");
    core_expire(c, "n100");
    core_second(c);
    core_settle(c);
    expect(c, "j7,j100", "select t.claim('n', 9)");
    core_second(c);
    core_check(c);
    expect(c, "100", "select count(*) from live");
    PQfinish(c);
}

static void
urgent_first(void **state)
{
    PGconn *c = core_new("urgent");

    (void)state;
    pg_run(c, "select t.push('q', 'c5,d5'), t.push('q', 'e9', 9), t.push('q', 'a0', 0), "
              "t.push('q', 'b1', 1)");
    core_settle(c);
    expect(c, "a0,b1,c5,d5,e9", "select t.claim('n', 9)");
    /* A job that comes later overtakes the jobs that are not cut yet. If the free leases hold more
     * than a tenth of a second of work, the job overtakes them, too. */
    pg_run(c, "select t.many('q', 'x', 200)");
    core_settle(c);
    int64_t ahead =
        pg_int(c, "select sum(cardinality(seqs)) from work_queue where lock_key is null");
    assert_in_range(ahead, 1, 40);
    pg_run(c, "update tick set rate = 100000, mark_at = 'infinity';"
              " select t.push('q', 'soon', 0); select t.step()");
    assert_string_not_equal(pg_value(c, "select t.claim('m', 1)"), "soon");
    pg_run(c, "update tick set rate = 1; select t.push('q', 'now', 0); select t.step()");
    expect(c, "soon,now", "select t.claim('m', 2)");
    core_check(c);
    PQfinish(c);
}

static void
only_these_queues(void **state)
{
    PGconn *c = core_new("these_queues");

    (void)state;
    pg_run(c, "select t.push('a', 'a1,a2'), t.push('b', 'b1,b2'), t.push('c', 'c1')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9, queues => '{}')");
    expect(c, "", "select t.claim('n', 9, queues => '{none,null}')");
    expect(c, "b1", "select t.claim('n', 1, queues => '{b,b,none}')");
    expect(c, "3", "select count(*) from claim('n', 9, queues => '{b,a}')");
    expect(c, "c1", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

/* Two sessions claim at once: the second takes other jobs, whether the first commits or not. */
static void
two_claims_at_once(void **state)
{
    PGconn *c = core_new("two_claims"), *a = core_join("two_claims"), *b = core_join("two_claims");

    (void)state;
    pg_run(c, "update cursor set chunk = 2; select t.push('q', 'a,b,c,d')");
    core_settle(c);
    pg_run(c, "update work_queue set seqs = seqs where lock_key is null");
    pg_run(a, "begin");
    expect(a, "a", "select t.claim('m', 1)");
    expect(b, "", "select t.claim('n', 1, queues => '{q}')"); /* the lease is being split */
    pg_run(a, "rollback");
    expect(b, "a,b", "select t.claim('n', 2)");
    pg_run(a, "begin");
    expect(a, "c", "select t.claim('m', 1)");
    pg_run(a, "commit");
    expect(b, "d", "select t.claim('n', 2)");
    expect(b, "done,done,done", "select t.done('n')");
    expect(a, "done", "select t.done('m')");
    core_check(c);
    /* whole leases: the second passes over the one that the first has locked. It would wait 10 s
     * for a lock, and then fail */
    pg_run(c, "insert into queue_config (queue, chunk) values ('r', 2); select t.push('r', "
              "'e,f,g,h')");
    core_settle(c);
    pg_run(b, "set lock_timeout = '10 s'");
    for (int i = 0; i < 2; i++) {
        pg_run(a, "begin");
        expect(a, "e,f", "select t.claim('m', 2%s)", i ? ", queues => '{r}'" : "");
        pg_run(b, "begin");
        expect(b, "g,h", "select t.claim('n', 2%s)", i ? ", queues => '{r}'" : "");
        pg_run(b, "rollback");
        pg_run(a, "rollback");
    }
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* A claim works in any isolation level, whether its transaction goes on or is rolled back. */
static void
in_the_callers_transaction(void **state)
{
    PGconn *c = core_new("callers"), *a = core_join("callers");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    pg_run(a, "begin isolation level serializable");
    expect(a, "a", "select t.claim('n', 1)");
    expect(a, "done", "select t.done('n')");
    pg_run(a, "rollback");
    expect(c, "a,b,c", "select t.names('ready')");
    pg_run(a, "begin isolation level repeatable read; select count(*) from queue");
    expect(c, "a", "select t.claim('m', 1)");
    /* its snapshot is old: it may give up, but not take what is taken */
    assert_string_equal(pg_try(a, "select t.claim('n', 9)"), "40001");
    pg_run(a, "rollback");
    pg_run(a, "begin isolation level repeatable read");
    assert_string_equal(pg_try(a, "select * from schedule('other')"), "QT007");
    pg_run(a, "rollback");
    expect(a, "b,c", "select t.claim('n', 9)");
    pg_run(a, "begin isolation level repeatable read; select count(*) from queue");
    pg_run(c, "update work_queue set lock_timeout = now() - interval '1 s'");
    core_second(c);
    core_settle(c);
    expect(c, "a,b,c", "select t.claim('o', 9)");
    assert_string_equal(pg_try(a, "select t.done('n')"), "40001");
    pg_run(a, "rollback");
    expect(c, "done,done,done", "select t.done('o')");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* If no scheduler lives, a claim makes the step itself. */
static void
without_a_scheduler(void **state)
{
    PGconn *c = core_new("no_scheduler");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    expect(c, "a", "select t.claim('n', 5)");
    pg_run(c, "select t.push('q', 'b'), t.push('new', 'c', delay => '-1 s')");
    expect(c, "2", "select count(*) from claim('n', 5)");
    pg_run(c, "select t.push('q', 'd')");
    expect(c, "no",
           "select t.step('other') from scheduler where holder = 'nobody' union all select 'no'");
    pg_run(c, "select schedule('other')");
    expect(c, "d", "select t.claim('n', 5)");
    pg_run(c, "select t.push('q', 'e'); update scheduler set until = clock_timestamp() + interval "
              "'9 s' where term > 0");
    expect(c, "", "select t.claim('n', 5)"); /* the scheduler is alive and will do it */
    pg_run(c, "update scheduler set until = now() where term > 0");
    expect(c, "e", "select t.claim('n', 5)");
    core_check(c);
    PQfinish(c);
}

/* A crash of a node that does not renew: without a scheduler claims steal as well. */
static void
claims_steal_without_a_scheduler(void **state)
{
    PGconn *c = core_new("claims_steal");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    expect(c, "a", "select t.claim('n', 5)");
    core_expire(c, "n");
    core_second(c);
    expect(c, "a", "select t.claim('m', 5)");
    expect(c, "lost", "select t.done('n')");
    core_check(c);
    PQfinish(c);
}

static void
strange_claims(void **state)
{
    PGconn *c = core_new("strange_claims");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    pg_run(c, "set statement_timeout = '60 s'");
    assert_string_equal(pg_try(c, "select * from claim(null, 1)"), "QT007");
    assert_string_equal(pg_try(c, "select * from claim('', 1)"), "QT007");
    assert_string_equal(pg_try(c, "select * from claim(repeat('x', 201), 1)"), "QT007");
    assert_string_equal(pg_try(c, "select * from claim('n', null)"), "QT007");
    assert_string_equal(pg_try(c, "select * from claim('n', 1, '-1 s')"), "QT007");
    assert_string_equal(pg_try(c, "select * from claim('n', 1, '0')"), "QT007");
    assert_string_equal(pg_try(c, "select * from claim('n', 1, '300000 years')"), "QT007");
    expect(c, "a", "select t.claim('n'';\" -- \xc3\xa9', 1, null, null, null)");
    expect(c, "done", "select t.done('n'';\" -- \xc3\xa9')");
    expect(c, "b", "select t.claim('n', 1)");
    core_check(c);
    PQfinish(c);
}

/* How long a lease lasts: the worker's value, else the job's, else the queue's, else a minute. */
static void
lease_times(void **state)
{
    PGconn *c = core_new("lease_times");

    (void)state;
    pg_run(c, "insert into queue_config (queue, lease_timeout) values ('q', '5 min')");
    pg_run(c, "select push('q', '{\"name\":\"own\"}', lease_timeout => '2 h'), t.push('q', 'cfg'),"
              " t.push('r', 'std')");
    core_settle(c);
    const char *left =
        "select string_agg(name || ' ' || to_char(lease_until - now(), 'HH24:MI'), ','"
        " order by name) from t.held where lease_until > now()";
    pg_run(c, "begin");
    pg_run(c, "select t.claim('n', 9)");
    expect(c, "cfg 00:05,own 02:00,std 00:01", "%s", left);
    pg_run(c, "rollback; begin");
    pg_run(c, "select t.claim('n', 9, '7 min')");
    expect(c, "cfg 00:07,own 00:07,std 00:07", "%s", left);
    pg_run(c, "rollback");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_n_in_order),  cmocka_unit_test(split_parts_are_leases),
        cmocka_unit_test(urgent_first),        cmocka_unit_test(only_these_queues),
        cmocka_unit_test(two_claims_at_once),  cmocka_unit_test(in_the_callers_transaction),
        cmocka_unit_test(without_a_scheduler), cmocka_unit_test(claims_steal_without_a_scheduler),
        cmocka_unit_test(strange_claims),      cmocka_unit_test(lease_times),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
