/*
 * Concurrency limits hold exactly, and pauses hold at once: with many workers, too, and however a
 * lease ends (rule 5, decision 12).
 */
#include "tests/sql/core.h"

#include <poll.h>
#include <stdio.h>

static void
set_queue(PGconn *c, const char *queue, const char *settings)
{
    pg_run(c, "select set_queue(gen_random_uuid(), '%s', '%s')", queue, settings);
}

static void
pause_queue(PGconn *c, const char *queue)
{
    pg_run(c, "select pause(gen_random_uuid(), '%s', 'test')", queue);
}

static void
resume_queue(PGconn *c, const char *queue)
{
    pg_run(c, "select resume(gen_random_uuid(), '%s', 'test')", queue);
}

static void
never_more_than_three(void **state)
{
    PGconn *c = core_new("limit");

    (void)state;
    set_queue(c, "q", "{\"max_running\": 3}");
    pg_run(c, "select t.push('q', 'a,b,c,d,e,f,g,h,i,j'), t.push('other', 'o')");
    core_settle(c);
    core_check(c);
    expect(c, "a,b,c", "select t.claim('n', 9, queues => '{q}')");
    core_settle(c);
    expect(c, "o", "select t.claim('m', 9)");
    expect(c, "done", "select t.done('n', 'a')");
    core_settle(c);
    expect(c, "d", "select t.claim('n', 9)");
    expect(c, "retry", "select t.fail('n', 'b', retry_in => '1 h')");
    expect(c, "given back", "select t.back('n', 'c')");
    core_settle(c);
    core_check(c);
    expect(c, "2", "select cardinality(string_to_array(t.claim('n', 9), ','))");
    core_expire(c, "n");
    core_second(c);
    core_settle(c);
    core_check(c);
    expect(c, "3", "select cardinality(string_to_array(t.claim('n', 9), ','))");
    expect(c, "3",
           "select count(*) from release(gen_random_uuid(), 1, 'n', false, force => true)"
           " where state is not null");
    core_settle(c);
    core_check(c);
    expect(c, "3", "select cardinality(string_to_array(t.claim('n', 9), ','))");
    PQfinish(c);
}

static void
limits_change(void **state)
{
    PGconn *c = core_new("limit_changes");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d,e,f')");
    core_settle(c);
    expect(c, "a,b,c,d", "select t.claim('n', 4)");
    set_queue(c, "q", "{\"max_running\": 2}"); /* none starts until fewer than 2 run */
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    expect(c, "done,done", "select t.done('n', 'a,b')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n', 'c')");
    core_settle(c);
    expect(c, "e", "select t.claim('n', 9)");
    set_queue(c, "q", "{\"max_running\": null}");
    core_settle(c);
    expect(c, "f", "select t.claim('n', 9)");
    set_queue(c, "q", "{\"max_running\": 0}");
    pg_run(c, "select t.push('q', 'g,h')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    set_queue(c, "q", "{\"max_running\": 4}");
    core_settle(c);
    expect(c, "g", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

static void
pause_is_at_once(void **state)
{
    PGconn *c = core_new("pause"), *a = core_join("pause");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d,e'), t.push('r', 'r')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2, queues => '{q}')");
    pause_queue(c, "q");
    expect(c, "r", "select t.claim('n', 9)"); /* no step between */
    expect(c, "", "select t.claim('n', 9, queues => '{q}')");
    pg_run(c, "select t.push('q', 'f')");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    expect(c, "done,done", "select t.done('n', 'a,b')");
    core_settle(c);
    core_check(c);
    resume_queue(c, "q");
    core_settle(c);
    expect(c, "c,d,e,f", "select t.claim('n', 9)"); /* in the old order */
    /* against a claim that is under way: it waits for it, then what was left is taken back */
    expect(c, "done,done,done,done", "select t.done('n', 'c,d,e,f')");
    pg_run(c, "select t.push('q', 'g,h')");
    core_settle(c);
    pg_run(a, "begin");
    expect(a, "g", "select t.claim('m', 1)");
    PGconn *b = core_join("pause");
    core_replace(b, "uncut", "100ms", "1min");
    pg_send(b, "select pause(gen_random_uuid(), 'q', 'test')");
    pg_wait_blocked(c, b);
    pg_run(a, "commit");
    assert_string_equal(pg_finish(b), "");
    expect(c, "", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('m')");
    core_settle(c);
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* Jobs are pushed, fail and are delayed while their queue is paused: none is forgotten. */
static void
nothing_is_lost_in_a_pause(void **state)
{
    PGconn *c = core_new("pause_keeps"), *a = core_join("pause_keeps");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 9)");
    pg_run(a, "begin; select t.push('q', 'late')");
    pause_queue(c, "q");
    pg_run(c, "select t.push('q', 'c'), t.push('q', 'd', delay => '10 ms')");
    expect(c, "retry", "select t.fail('n', 'a', retry_in => '10 ms')");
    expect(c, "given back", "select t.back('n', 'b')");
    pg_run(a, "commit");
    pg_wait(c, "select count(*) from queue, t.step() where state in ('scheduled', 'retry')", "0",
            5000);
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    core_check(c);
    resume_queue(c, "q");
    core_settle(c);
    expect(c, "a,b,c,d,late",
           "select string_agg(n, ',' order by n) from unnest(string_to_array(t.claim('n', 9),"
           " ',')) n");
    PQfinish(a);
    PQfinish(c);
}

/* Eight workers, a limit of three, leases that expire and go back; the log is written while a job
 * is held. */
enum { WORKERS = 8, JOBS = 200 };

static void
one_of_eight(PGconn *conn, int i)
{
    char node[16];

    snprintf(node, sizeof node, "w%d", i);
    while (pg_int(conn, "select count(*) from queue where queue = 'q'") > 0) {
        if (i == 0) {
            poll(NULL, 0, (int)pg_int(conn, "select least(wait_ms, 5) from schedule('test')"));
            pg_run(conn, "insert into t.seen select count(*) from (select unnest(seqs) from "
                         "work_queue where queue ="
                         " 'q') z");
        } else if (*pg_value(conn, "select t.claim('%s', 1 + (3 * random())::int)", node)) {
            pg_run(
                conn,
                "insert into t.log select name, 1, clock_timestamp() from t.held where node = '%s'",
                node);
            pg_run(conn,
                   "insert into t.log select name, -1, clock_timestamp() from t.held where node = "
                   "'%s'",
                   node);
            core_answer_any(conn, node);
        }
    }
}

static void
eight_workers(void **state)
{
    PGconn *c = core_new("eight");

    (void)state;
    pg_run(c, "create table t.log (name text, n int, at timestamptz); create table t.seen (n int)");
    set_queue(c, "q", "{\"max_running\": 3, \"max_tries\": 1000}");
    pg_run(c, "select t.many('q', 'j', %d)", JOBS);
    core_settle(c);
    core_crowd("eight", WORKERS, one_of_eight);
    expect(c, "3", "select max(n) from t.seen");
    assert_in_range(
        pg_int(c, "select max(s) from (select sum(n) over (order by at, n) s from t.log) z"), 1, 3);
    assert_int_equal(pg_int(c, "select count(*) from history where state = 'completed'"), JOBS);
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_more_than_three), cmocka_unit_test(limits_change),
        cmocka_unit_test(pause_is_at_once),      cmocka_unit_test(nothing_is_lost_in_a_pause),
        cmocka_unit_test(eight_workers),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
