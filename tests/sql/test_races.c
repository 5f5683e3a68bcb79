/*
 * Two sessions want the same lease, in each order: one transaction is held open while the other
 * session comes. test_claim has claim against claim. Here are answers against each other, against
 * the steal and against the scheduler.
 */
#include "tests/sql/core.h"

#include <stdio.h>

struct race {
    PGconn *watch, *first, *second;
};

/* A session that waits for a lock only as long as a test needs: where the engine waits although it
 * must not, the test ends. */
static PGconn *
join(const char *database)
{
    PGconn *c = core_join(database);

    pg_run(c, "set lock_timeout = '30 s'");
    return c;
}

/* Jobs a, b and c run on node n; all in one lease, or each in its own. */
static struct race
begin_race(const char *database, const char *jobs)
{
    PGconn *c = core_new(database);

    pg_run(c, "select t.push('q', '%s')", jobs);
    core_settle(c);
    expect(c, jobs, "select t.claim('n', 9)");
    return (struct race){c, join(database), join(database)};
}

static void
end_race(const struct race *r)
{
    core_settle(r->watch);
    core_check(r->watch);
    PQfinish(r->first);
    PQfinish(r->second);
    PQfinish(r->watch);
}

/* The second session's statement begins while the first session holds its locks. After they are
 * gone its answer must be `expected`. */
static void
second_says(const struct race *r, const char *sql, const char *expected)
{
    char text[1000];

    snprintf(text, sizeof text, "create temp table said as %s", sql);
    pg_send(r->second, text);
    pg_wait_blocked(r->watch, r->second);
    pg_run(r->first, "commit");
    assert_string_equal(pg_finish(r->second), "");
    expect(r->second, expected, "select * from said");
    pg_run(r->second, "drop table said");
}

static void
steal_then_late_complete(void **state)
{
    struct race r = begin_race("steal_complete", "a,b");

    (void)state;
    core_expire(r.watch, "n");
    core_second(r.watch);
    pg_run(r.first, "begin");
    expect(r.first, "0 0 2", "select t.step()");
    second_says(&r, "select t.done('n', 'a,b')", "lost,lost");
    expect(r.watch, "a,b", "select t.names('ready')");
    end_race(&r);
}

static void
late_complete_then_steal(void **state)
{
    struct race r = begin_race("complete_steal", "a,b");

    (void)state;
    core_expire(r.watch, "n");
    core_second(r.watch);
    pg_run(r.first, "begin");
    expect(r.first, "done", "select t.done('n', 'a')");
    /* the step goes around a lease that is being answered */
    expect(r.second, "0 0 0", "select t.step()");
    pg_run(r.first, "commit");
    core_second(r.watch);
    expect(r.second, "0 0 1", "select t.step()");
    expect(r.watch, "a completed", "select t.finished()");
    expect(r.watch, "1", "select tries from queue");
    end_race(&r);
}

static void
extend_then_steal(void **state)
{
    struct race r = begin_race("extend_steal", "a");

    (void)state;
    core_expire(r.watch, "n");
    core_second(r.watch);
    pg_run(r.first, "begin");
    expect(r.first, "extended", "select t.extend('n')");
    expect(r.second, "0 0 0", "select t.step()");
    pg_run(r.first, "commit");
    core_second(r.watch);
    expect(r.second, "0 0 0", "select t.step()");
    expect(r.watch, "done", "select t.done('n')");
    end_race(&r);
}

static void
steal_then_extend(void **state)
{
    struct race r = begin_race("steal_extend", "a");

    (void)state;
    core_expire(r.watch, "n");
    core_second(r.watch);
    pg_run(r.first, "begin");
    expect(r.first, "0 0 1", "select t.step()");
    second_says(&r, "select t.extend('n')", "lost");
    expect(r.watch, "a", "select t.claim('m', 1)");
    expect(r.watch, "done", "select t.done('m')");
    end_race(&r);
}

static void
steal_then_fail(void **state)
{
    struct race r = begin_race("steal_fail", "a,b");

    (void)state;
    core_expire(r.watch, "n");
    core_second(r.watch);
    pg_run(r.first, "begin");
    expect(r.first, "0 0 2", "select t.step()");
    second_says(&r, "select t.fail('n')", "lost,lost");
    expect(r.watch, "2", "select count(*) from attempt"); /* each job counts once */
    end_race(&r);
}

static void
give_back_then_complete(void **state)
{
    struct race r = begin_race("back_complete", "a,b");

    (void)state;
    pg_run(r.first, "begin");
    expect(r.first, "given back", "select t.back('n', 'a')");
    /* no step makes leases meanwhile: those with lower numbers must not become visible later */
    expect(r.watch, "no", "select t.step('wake:w')");
    second_says(&r, "select t.done('n', 'a,b')", "lost,done");
    expect(r.watch, "0 0 0", "select t.step('wake:w')");
    expect(r.watch, "a", "select t.claim('m', 1)");
    expect(r.watch, "done", "select t.done('m')");
    end_race(&r);
}

static void
complete_then_give_back(void **state)
{
    struct race r = begin_race("complete_back", "a,b");

    (void)state;
    pg_run(r.first, "begin");
    expect(r.first, "done", "select t.done('n', 'a')");
    second_says(&r, "select t.back('n', 'a,b')", "gone,given back");
    expect(r.watch, "b", "select t.names('ready')");
    end_race(&r);
}

/* Two connections of one worker answer for neighbours in one lease, and for the same job. */
static void
neighbours_at_once(void **state)
{
    struct race r = begin_race("neighbours", "a,b,c");

    (void)state;
    pg_run(r.first, "begin");
    expect(r.first, "done", "select t.done('n', 'a')");
    second_says(&r, "select t.done('n', 'b')", "done");
    pg_run(r.first, "begin");
    expect(r.first, "retry", "select t.fail('n', 'c', 'x', '1 h')");
    second_says(&r, "select t.done('n', 'c')", "lost");
    expect(r.watch, "a completed,b completed", "select t.finished()");
    expect(r.watch, "0", "select count(*) from work_queue");
    end_race(&r);
}

/* An answer names a job that its lease does not have, while another connection answers for a
 * neighbour of the other job: both leave the lease. */
static void
parts_of_a_lease(void **state)
{
    struct race r = begin_race("parts", "a,b,c");

    (void)state;
    pg_run(r.first, "begin");
    expect(r.first, "done", "select t.done('n', 'b')");
    second_says(&r,
                "select string_agg(outcome, ',') from t.held h, complete('n', array[lease, lease], "
                "array[version, version], array[h.seq, 99]) where name = 'a'",
                "done,gone");
    expect(r.watch, "1", "select cardinality(seqs) from work_queue");
    expect(r.watch, "done", "select t.done('n', 'c')");
    expect(r.watch, "0", "select count(*) from work_queue");
    end_race(&r);
}

static void
same_answer_twice_at_once(void **state)
{
    struct race r = begin_race("twice", "a,b");

    (void)state;
    pg_run(r.first, "begin");
    expect(r.first, "done,done", "select t.done('n', 'a,b')");
    second_says(&r, "select t.done('n', 'a,b')", "lost,lost");
    expect(r.watch, "2", "select sum(completed) from t.counts");
    end_race(&r);
}

/* An operator asks for the end of jobs, or changes their rows, while the answer for several leases
 * comes. The answer looks at the locked rows again, and no job stays without a lease. */
static void
ask_for_the_end_then_complete(void **state)
{
    PGconn *c = core_new("ask_complete");
    struct race r = {c, join("ask_complete"), join("ask_complete")};

    (void)state;
    pg_run(c, "select t.push('q', 'a,b'), t.push('r', 'c')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 9)");
    expect(c, "2 3", "select concat_ws(' ', count(*), sum(cardinality(seqs))) from work_queue");
    pg_run(r.first, "begin");
    expect(r.first, "2",
           "select count(*) from cancel(gen_random_uuid(), 1, array(select id from queue where "
           "payload->>'name' in ('b', 'c'))) where why is not null");
    second_says(&r, "select t.done('n', 'a,b,c')", "done,done,done");
    expect(c, "a completed,b completed,c completed", "select t.finished()");
    pg_run(c, "select t.push('q', 'd,e'), t.push('r', 'f')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 9)");
    pg_run(r.first, "begin; update queue set max_tries = 7");
    second_says(&r, "select t.done('n', 'd,e,f')", "done,done,done");
    expect(c, "0", "select count(*) from queue");
    end_race(&r);
}

/* The first answer is rolled back: the other session's answer counts. */
static void
rolled_back_answer(void **state)
{
    struct race r = begin_race("rolled_back", "a,b");

    (void)state;
    pg_run(r.first, "begin");
    expect(r.first, "done,done", "select t.done('n', 'a,b')");
    pg_send(r.second, "create table t.said as select t.fail('n', 'a,b')");
    pg_wait_blocked(r.watch, r.second);
    pg_run(r.first, "rollback");
    assert_string_equal(pg_finish(r.second), "");
    expect(r.watch, "retry,retry", "select * from t.said");
    expect(r.watch, "", "select t.finished()");
    end_race(&r);
}

/* A lease is split by one claim while another session takes the rest back or claims it. */
static void
split_then_claim(void **state)
{
    PGconn *c = core_new("split_claim");
    struct race r = {c, join("split_claim"), join("split_claim")};

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    pg_run(r.first, "begin");
    expect(r.first, "a", "select t.claim('m', 1)");
    expect(r.second, "", "select t.claim('n', 4)");
    /* the scheduler sees neither a free job too many nor one too few */
    pg_run(c, "select t.push('q', 'e')");
    core_settle(r.second);
    pg_run(r.first, "commit");
    expect(r.second, "b,c,d,e", "select t.claim('n', 9)");
    expect(c, "done,done,done,done", "select t.done('n')");
    expect(c, "done", "select t.done('m')");
    end_race(&r);
}

/* Two steps at once: one works, the other finds nothing to do. */
static void
two_steps_at_once(void **state)
{
    PGconn *c = core_new("two_steps");
    struct race r = {c, join("two_steps"), join("two_steps")};

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    pg_run(r.first, "begin");
    expect(r.first, "2 0 0", "select t.step('one')");
    expect(r.second, "no", "select t.step('two')");
    expect(r.second, "no", "select t.step('one')"); /* the same name does not help */
    expect(r.second, "", "select t.claim('n', 9)");
    pg_run(r.first, "commit");
    pg_run(c, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    expect(r.second, "no", "select t.step('two')");
    expect(r.second, "a,b", "select t.claim('n', 9)");
    PQfinish(r.first);
    PQfinish(r.second);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steal_then_late_complete), cmocka_unit_test(late_complete_then_steal),
        cmocka_unit_test(extend_then_steal),        cmocka_unit_test(steal_then_extend),
        cmocka_unit_test(steal_then_fail),          cmocka_unit_test(give_back_then_complete),
        cmocka_unit_test(complete_then_give_back),  cmocka_unit_test(neighbours_at_once),
        cmocka_unit_test(parts_of_a_lease),         cmocka_unit_test(same_answer_twice_at_once),
        cmocka_unit_test(rolled_back_answer),       cmocka_unit_test(ask_for_the_end_then_complete),
        cmocka_unit_test(split_then_claim),         cmocka_unit_test(two_steps_at_once),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
