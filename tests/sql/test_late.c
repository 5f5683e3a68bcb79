/*
 * Transactions that take their numbers early and commit late: their jobs are found at once when
 * they appear, whatever went on meanwhile, and nothing is cut twice (rule 6, decisions 5 and 6). No
 * test waits: "10 seconds" are a transaction held open while hundreds of other jobs come and go.
 */
#include "tests/sql/core.h"

/* Pushes, schedules and finishes n jobs of the queue, ten at a time. */
static void
go_on(PGconn *c, const char *queue, int n)
{
    for (int i = 0; i < n; i += 10) {
        pg_run(c, "select t.many('%s', 'x%d-', 10)", queue, i);
        core_settle(c);
        expect(c, "10",
               "select cardinality(string_to_array(t.claim('w', 10, queues => '{%s}'), ','))",
               queue);
        pg_run(c, "select t.done('w')");
    }
}

static void
late_but_at_once(void **state)
{
    PGconn *c = core_new("late"), *a = core_join("late"), *b = core_join("late");

    (void)state;
    go_on(c, "q", 20);
    pg_run(a, "begin; select t.push('q', 'late1'); select t.push('q', 'late0', 0); select "
              "t.push('new', 'late2')");
    go_on(c, "q", 200);
    pg_run(b, "begin; select t.push('q', 'later')");
    go_on(c, "q", 100);
    core_ten_seconds(c);
    core_settle(c);
    core_ten_seconds(c);
    go_on(c, "q", 100);
    pg_run(a, "commit");
    pg_run(c, "select schedule('test')"); /* one step */
    expect(c, "3", "select count(*) from work_queue");
    expect(c, "late1,late0", "select t.claim('n', 9, queues => '{q}')");
    expect(c, "late2", "select t.claim('n', 9)");
    go_on(c, "q", 50);
    pg_run(b, "commit");
    pg_run(c, "select schedule('test')");
    expect(c, "later", "select t.claim('n', 9)");
    expect(c, "done,done,done,done", "select t.done('n')");
    core_settle(c);
    core_check(c);
    expect(c, "474", "select count(*) from history");
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* The late range is full of jobs in leases, free ones and claimed ones: no job is cut twice. */
static void
late_among_leased(void **state)
{
    PGconn *c = core_new("late_leased"), *a = core_join("late_leased");

    (void)state;
    go_on(c, "q", 10);
    pg_run(c, "select t.push('q', 'b,c')");
    pg_run(a, "begin; select t.push('q', 'late1'), t.push('q', 'late2')");
    pg_run(c, "select t.push('q', 'd,e')");
    pg_run(a, "select t.push('q', 'late3')");
    core_settle(c);
    expect(c, "b,c", "select t.claim('n', 2)");
    pg_run(a, "commit");
    core_settle(c);
    core_settle(c);
    expect(c, "7 7",
           "select count(distinct seq) || ' ' || count(*) from (select unnest(seqs) seq from "
           "work_queue) z");
    expect(c, "5", "select cardinality(string_to_array(t.claim('n', 9), ','))");
    expect(c, "done,done,done,done,done,done,done", "select t.done('n')");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* Later jobs lie between the jobs of a lease: neither a claim nor an answer takes them along. */
static void
late_between_leased(void **state)
{
    PGconn *c = core_new("late_between"), *a = core_join("late_between");

    (void)state;
    pg_run(c, "insert into queue_config (queue, chunk) values ('q', 2)");
    pg_run(a, "begin");
    for (int i = 0; i < 8; i += 2) {
        pg_run(c, "select t.push('q', 'j%d')", i);
        pg_run(a, "select t.push('q', 'late%d,late%d')", i, i + 1);
        pg_run(c, "select t.push('q', 'j%d')", i + 1);
    }
    core_settle(c);
    pg_run(a, "commit");
    expect(c, "j0,j1", "select t.claim('n', 2)");
    expect(c, "done,done", "select t.done('n')");
    expect(c, "j2,j3,j4,j5", "select t.claim('n', 4)");
    expect(c, "done,done,done,done", "select t.done('n')");
    expect(
        c, "j6,j7",
        "select string_agg(payload->>'name', ',') from complete_and_claim('n', '{}', '{}', '{}', "
        "null, null, 2)");
    expect(c, "8", "select count(*) from queue where payload->>'name' like 'late%%'");
    core_settle(c);
    expect(c, "late0,late1,late2,late3,late4,late5,late6,late7", "select t.claim('n', 8)");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* More late jobs than one step looks at. */
static void
many_late(void **state)
{
    PGconn *c = core_new("many_late"), *a = core_join("many_late");

    (void)state;
    go_on(c, "q", 10);
    pg_run(a, "begin; select t.many('q', 'late', 1700)");
    go_on(c, "q", 50);
    pg_run(a, "commit");
    int64_t got = 0;
    for (int i = 0; i < 100 && got < 1700; i++) {
        core_settle(c);
        got += pg_int(c, "select count(*) from claim('n', 1000, '1 h')");
    }
    assert_int_equal(got, 1700);
    core_settle(c);
    expect(c, "1700",
           "select count(distinct seq) from (select unnest(seqs) seq from work_queue) z");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* A queue with a limit finds its late jobs too, one by one. */
static void
late_under_a_limit(void **state)
{
    PGconn *c = core_new("late_limit"), *a = core_join("late_limit");

    (void)state;
    pg_run(c, "insert into queue_config (queue, max_running) values ('q', 1)");
    pg_run(a, "begin; select t.push('q', 'late1,late2')");
    pg_run(c, "select t.push('q', 'x')");
    core_settle(c);
    expect(c, "x", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n')");
    core_settle(c);
    pg_run(a, "commit");
    core_settle(c);
    expect(c, "late1", "select t.claim('n', 9)");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    expect(c, "done", "select t.done('n')");
    core_settle(c);
    expect(c, "late2", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* Late for a queue that is paused when it commits. */
static void
late_into_a_pause(void **state)
{
    PGconn *c = core_new("late_pause"), *a = core_join("late_pause");

    (void)state;
    go_on(c, "q", 10);
    pg_run(a, "begin; select t.push('q', 'late')");
    go_on(c, "q", 10);
    pg_run(c, "update queue_config set paused_at = now() where queue = 'q'");
    pg_run(a, "commit");
    core_settle(c);
    expect(c, "", "select t.claim('n', 9)");
    pg_run(c, "update queue_config set paused_at = null where queue = 'q'");
    pg_run(c, "select t.push('q', 'wake')"); /* resume() wakes the scheduler: tested elsewhere */
    core_settle(c);
    expect(c, "late,wake", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* Rolled back numbers leave a gap and nothing else; a subtransaction commits with its parent. */
static void
gaps_and_savepoints(void **state)
{
    PGconn *c = core_new("gaps"), *a = core_join("gaps"), *b = core_join("gaps");

    (void)state;
    pg_run(a, "begin; select t.push('q', 'gone')");
    pg_run(b, "begin; select t.push('q', 'one'); savepoint s; select t.push('q', 'undone'); "
              "rollback to s; savepoint"
              " u; select t.push('q', 'two'); release u");
    go_on(c, "q", 30);
    pg_run(a, "rollback");
    pg_run(c, "select schedule('test')");
    expect(c, "", "select t.claim('n', 9)");
    pg_run(b, "commit");
    pg_run(c, "select schedule('test')");
    expect(c, "one,two", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* A completion that commits late is no late push; a failure that commits late waits for its time.
 */
static void
late_answers(void **state)
{
    PGconn *c = core_new("late_answers"), *a = core_join("late_answers");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2)");
    pg_run(a, "begin");
    expect(a, "done", "select t.done('n', 'a')");
    expect(a, "retry", "select t.fail('n', 'b', retry_in => '-1 s')");
    go_on(c, "q", 50);
    core_check(c);
    pg_run(a, "commit");
    core_check(c);
    pg_run(c, "select schedule('test')");
    expect(c, "b", "select t.claim('n', 2)");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_but_at_once),    cmocka_unit_test(late_among_leased),
        cmocka_unit_test(late_between_leased), cmocka_unit_test(many_late),
        cmocka_unit_test(late_under_a_limit),  cmocka_unit_test(late_into_a_pause),
        cmocka_unit_test(gaps_and_savepoints), cmocka_unit_test(late_answers),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
