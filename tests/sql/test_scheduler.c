/*
 * The scheduler: one is active, another takes over when it stops, nothing is cut twice and nothing
 * is forgotten; nodes: names, heartbeats, draining.
 */
#include "tests/sql/core.h"

#include <stdio.h>

/* Its lease of three seconds is over. */
static void
three_seconds_later(PGconn *c)
{
    pg_run(c, "update scheduler set until = '-infinity' where term > 0");
}

/* Somebody else is active: his word holds for three seconds, here for nine from now on. */
static void
says_no(PGconn *c, const char *holder)
{
    pg_run(c, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    expect(c, "no", "select t.step('%s')", holder);
}

static void
fails_over(void **state)
{
    PGconn *c = core_new("failover"), *a = core_join("failover"), *b = core_join("failover");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    const char *before = pg_value(c, "select clock_timestamp()");
    expect(a, "3 0 0", "select t.step('A')");
    expect(c, "t",
           "select until between timestamptz '%s' + interval '3 s' and clock_timestamp() + "
           "interval '3 s' from scheduler where holder = 'A'",
           before);
    says_no(b, "B");
    pg_run(c, "select t.push('q', 'd')");
    says_no(b, "B");
    three_seconds_later(c);
    expect(b, "1 0 0", "select t.step('B')");
    says_no(a, "A"); /* it comes back: too late */
    pg_run(c, "select t.push('q', 'e')");
    says_no(a, "A");
    expect(b, "1 0 0", "select t.step('B')");
    expect(c, "a,b,c,d,e", "select t.claim('n', 9)");
    /* the active scheduler renews its term while it steps */
    before = pg_value(c, "update scheduler set until = clock_timestamp() + interval '1 s' where "
                         "term > 0; select clock_timestamp()");
    pg_run(b, "select t.step('B')");
    expect(c, "t", "select max(until) >= timestamptz '%s' + interval '3 s' from scheduler", before);
    expect(c, "1", "select count(*) from scheduler where term > 0");
    /* the active scheduler may stop, another one may not stop it */
    expect(b, "f", "select scheduler_stop('A')");
    expect(b, "t", "select scheduler_stop('B')");
    expect(a, "0 0 0", "select t.step('A')");
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* A takeover makes progress however little time a step has: each step looks at one queue at least,
 * and notes it in the tick. */
static void
takeover_comes_on(void **state)
{
    PGconn *c = core_new("portions");
    static const char part[] = "select concat_ws(' ', coalesce(after, 'end'), busy) from "
                               "settle_until('%s', %d, '%s')";

    (void)state;
    pg_run(c, "select t.push(q, 'x') from unnest(array['a', 'b', 'd', 'e', 'f', 'g']) q");
    core_settle(c);
    pg_run(c, "insert into queue_config (queue) values ('c')"); /* it has no job */
    expect(c, "a {a}", part, "", 100, "-infinity");
    expect(c, "b {b}", part, "a", 100, "-infinity");
    expect(c, "c {}", part, "b", 100, "-infinity");
    expect(c, "end {}", part, "g", 100, "-infinity");
    expect(c, "end {a,b,d,e,f,g}", part, "", 100, "infinity");
    expect(c, "d {a,b,d}", part, "", 4, "infinity");
    expect(c, "end {e,f,g}", part, "d", 4, "infinity");
    core_check(c);
    PQfinish(c);
}

/* A claim's step that takes too long is cancelled, and the next claim begins another one. The
 * scheduler has more time: it waits for its turn between them, but not for ever. While a scheduler
 * has its turn, nobody waits. */
static void
steps_of_claims_keep_nobody_out(void **state)
{
    PGconn *c = core_new("long_steps"), *a = core_join("long_steps"), *b = core_join("long_steps");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    pg_run(a, "begin; select scheduler_hold('claim:n')"); /* a long step */
    pg_send(b, "select t.step('A')");
    pg_wait_blocked(c, b);
    expect(c, "no", "select t.step('claim:m')"); /* such steps never wait */
    expect(c, "no", "select t.step('wake:m')");
    assert_string_equal(pg_finish(b), "");
    expect(c, "0", "select count(*) from scheduler where term > 0"); /* not the scheduler yet */
    pg_run(c, "alter function scheduler_wait() set lock_timeout = '60 s'");
    pg_send(b, "select t.step('A')");
    pg_wait_blocked(c, b);
    pg_run(a, "rollback"); /* the long step is cancelled */
    assert_string_equal(pg_finish(b), "");
    expect(c, "A", "select holder from scheduler order by term desc limit 1");
    expect(c, "a,b,c", "select t.claim('n', 9)");
    pg_run(c, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    pg_run(a, "begin; select scheduler_hold('wake:n')");
    pg_run(b, "set lock_timeout = '1 ms'");
    expect(b, "no", "select t.step('B')");
    expect(b, "no", "select t.step('A')");
    pg_run(a, "rollback");
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* After a long step the scheduler still has its whole turn. */
static void
a_long_step_keeps_the_turn(void **state)
{
    PGconn *c = core_new("long_step"), *a = core_join("long_step"), *b = core_join("long_step");
    char old[160];

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    pg_run(a, "begin; lock table tick in exclusive mode");
    pg_send(b, "select t.step('A')");
    pg_wait_blocked(c, b);
    snprintf(old, sizeof old,
             "select query_start < clock_timestamp() - interval '5 s' from pg_stat_activity "
             "where pid = %d",
             PQbackendPID(b));
    pg_wait(c, old, "t", 60000);
    pg_run(a, "rollback");
    assert_string_equal(pg_finish(b), "");
    expect(c, "t",
           "select s.until > q.query_start + interval '7 s' from scheduler s, pg_stat_activity q "
           "where s.holder = 'A' and q.pid = %d",
           PQbackendPID(b));
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* Who takes over looks at everything again: no hint is trusted. */
static void
takeover_rescans(void **state)
{
    PGconn *c = core_new("takeover");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c'), t.push('r', 'x', 2)");
    core_settle(c);
    expect(c, "2", "select cardinality(string_to_array(t.claim('n', 2, queues => '{q}'), ','))");
    /* jobs that no delta tells of, behind a cursor that is too high */
    pg_run(c, "alter table queue disable trigger queue_pushed; select t.push('q', 'd,e'), "
              "t.push('r', 'y', 2);"
              " alter table queue enable trigger queue_pushed; update cursor set seq = "
              "array(select case when s is not null"
              " then 1000000 end from unnest(seq) s)");
    core_settle(c);
    expect(c, "c,x",
           "select string_agg(n, ',' order by n) from unnest(string_to_array(t.claim('n', 9), "
           "',')) n");
    core_replace(c, "settle", "50 ms", "1 h"); /* one step looks at both queues */
    three_seconds_later(c);
    expect(c, "3 0 0", "select t.step('other')");
    expect(c, "d,e,y",
           "select string_agg(n, ',' order by n) from unnest(string_to_array(t.claim('n', 9), "
           "',')) n");
    expect(c, "7", "select count(distinct s) from work_queue, unnest(seqs) s");
    PQfinish(c);
}

/* A step that dies halfway changes nothing, and the next one does its work. */
static void
a_step_is_all_or_nothing(void **state)
{
    PGconn *c = core_new("halfway"), *a = core_join("halfway");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b'), t.push('q', 'c', delay => '-1 s')");
    pg_run(a, "begin");
    expect(a, "3 0 0", "select t.step('A')");
    PQfinish(a);
    pg_wait(c, "select count(*) from pg_stat_activity where datname = current_database()", "1",
            5000);
    expect(c, "0", "select count(*) from work_queue");
    expect(c, "3 0 0", "select t.step('B')");
    expect(c, "a,b,c", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

/* Nothing new: a step writes nothing, and says how long to wait. */
static void
an_idle_step_writes_nothing(void **state)
{
    PGconn *c = core_new("idle");

    (void)state;
    pg_run(c, "select t.push('q', 'a', delay => '1 h')");
    core_settle(c);
    core_ten_seconds(c);
    core_settle(c);
    pg_run(c, "update tick set mark_at = 'infinity', day_at = 'infinity'; update fold set at = "
              "now(), ms = 1000000; update scheduler set until = clock_timestamp() + interval '9 "
              "s' where term > 0");
    pg_run(c, "begin; select schedule('test')");
    expect(c, "t",
           "select pg_current_xact_id_if_assigned() is null or not exists (select from tick where "
           "xid ="
           " pg_current_xact_id())");
    pg_run(c, "commit");
    expect(c, "t", "select wait_ms between 1 and 1000 from schedule('test')");
    pg_run(c, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    expect(c, "t", "select wait_ms between 100 and 5000 and not active from schedule('other')");
    PQfinish(c);
}

/* An act or a claim in an open transaction keeps every scheduler from its turn: it is named, also
 * if its savepoint is gone. An act bounds for how long its client may be idle; a claim, whose job
 * may take any time, does not. */
static void
who_holds_the_turn(void **state)
{
    static const char idle[] = "select current_setting('idle_in_transaction_session_timeout')",
                      act[] = "select from pause(gen_random_uuid(), 'q', 'a test')";
    PGconn *c = core_new("turn"), *a = core_join("turn"), *b = core_join("turn");
    const char *pid = pg_value(a, "select pg_backend_pid()");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    pg_run(c, "alter function scheduler_wait() set lock_timeout = '1 ms'");
    pg_run(a, "set application_name = 'lunch'; begin; savepoint s");
    pg_run(a, act);
    pg_run(a, "release s");
    expect(a, "10s", idle);
    expect(a, "NULL", "select scheduler_holder()"); /* not its own */
    expect(b, "f", "select active from schedule('B')");
    expect(b, "t",
           "select scheduler_holder() like format('the transaction of pid %%s (lunch, user %%s), "
           "open for %%%%', "
           "%s, current_user)",
           pid);
    pg_run(a, "commit");
    expect(a, "0", idle);
    pg_run(a, "select from resume(gen_random_uuid(), 'q', 'a test')");
    pg_run(a, "set idle_in_transaction_session_timeout = '3 s'; begin");
    pg_run(a, act);
    expect(a, "3s", idle); /* a shorter one stays */
    pg_run(a, "rollback; set idle_in_transaction_session_timeout = 0; begin");
    expect(a, "1", "select count(*) from claim('n')"); /* it makes the step itself */
    expect(a, "0", idle);
    expect(b, "f", "select active from schedule('B')");
    expect(b, "t", "select scheduler_holder() like '%%pid %s (lunch,%%'", pid);
    pg_run(a, "rollback");
    expect(b, "t", "select active from schedule('B')");
    pg_run(c, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    pg_run(a, "begin; select scheduler_lock(true)");
    expect(c, "f", "select active from schedule('C')");
    expect(c, "NULL", "select scheduler_holder()"); /* another scheduler is active */
    pg_run(a, "rollback");
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* The client of an act leaves its transaction open. A push, an answer and a claim of what is free
 * go on meanwhile; then the server ends the session, nothing is paused, and steps go on. */
static void
an_act_left_open_ends(void **state)
{
    PGconn *c = core_new("left_open"), *a = core_join("left_open"), *b = core_join("left_open");

    (void)state;
    pg_run(c, "alter function scheduler_wait() set lock_timeout = '1 ms'");
    pg_run(c, "select t.push('q', 'a,b'), t.push('free', 'f')");
    expect(b, "t", "select active from schedule('B')");
    expect(c, "a", "select t.claim('n', 1, null, '{q}')");
    pg_run(a, "begin");
    pg_run(a, "select from pause(gen_random_uuid(), 'q', 'a test')");
    expect(b, "f", "select active from schedule('B')");
    pg_run(c, "select t.push('q', 'c')");
    expect(c, "done", "select t.done('n')");
    expect(c, "f", "select t.claim('n', 9)"); /* the free lease of q is locked */
    pg_run(a, "set idle_in_transaction_session_timeout = 1");
    pg_wait(c, "select count(*) from pg_locks where mode = 'ShareLock' and objsubid = 2", "0",
            20000);
    expect(b, "t", "select active from schedule('B')");
    core_settle(c);
    expect(c, "b,c", "select t.claim('m', 9)");
    expect(c, "0", "select count(*) from queue_config where paused_at is not null");
    core_check(c);
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

static void
node_start(PGconn *c, const char *expected, const char *session, const char *more)
{
    assert_string_equal(
        pg_try(c, "select node_start('n', '%s', 'host', 1, '0.1', %s, null, 4)", session, more),
        expected);
}

/* If nothing is new, a step comes again after half a second, later after a second. If a job may
 * wait for the end of another job, it stays half a second, because that end notifies nobody. */
static void
how_soon_it_comes_again(void **state)
{
    static const char once[] =
        "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0; "
        "update tick set cron_at = 'infinity'; " /* a second from the last look */
        "select wait_ms > 500 from schedule_or_wait('s', '2 s')";
    PGconn *c = core_new("soon");

    (void)state;
    pg_run(c, "insert into queue_config (queue) values ('q')");
    pg_run(c, once); /* it takes over and looks at everything */
    expect(c, "f", "select wait_ms > 500 from schedule_or_wait('s', '1 s')");
    expect(c, "t", once);
    pg_run(c, "update queue_config set max_running = 1");
    expect(c, "f", once);
    pg_run(c, "update queue_config set max_running = null");
    expect(c, "t", once);
    pg_run(c, "insert into queue (queue, concurrency_key) values ('q', 'k'), ('q', 'k')");
    pg_wait(c, /* the pause between two looks grows with what a look takes */
            "select (select count(*) from queue where state = 'blocked')"
            " from schedule_or_wait('s', '2 s') offset 0",
            "1", 60000);
    expect(c, "f", once);
    PQfinish(c);
}

static const char one[] = "00000000-0000-4000-8000-000000000001",
                  two[] = "00000000-0000-4000-8000-000000000002";

static void
a_name_is_one_process(void **state)
{
    PGconn *c = core_new("names");

    (void)state;
    node_start(c, "", one, "1");
    node_start(c, "QT002", two, "1");
    node_start(c, "", one, "1"); /* a reconnect */
    expect(c, "up", "select node_beat('n', '%s')", one);
    expect(c, "gone", "select node_beat('n', '%s')", two);
    expect(c, "gone", "select node_beat('m', '%s')", one);
    pg_run(c, "begin; update node set heartbeat = now() - interval '30 s'"); /* now() stays */
    node_start(c, "QT002", two, "1");
    pg_run(c, "rollback; begin; update node set heartbeat = now() - interval '30.001 s'");
    node_start(c, "", two, "1"); /* the first is dead */
    pg_run(c, "commit");
    expect(c, "gone", "select node_beat('n', '%s')", one);
    pg_run(c, "select node_stop('n', '%s')", one);
    expect(c, "up", "select node_beat('n', '%s')", two);
    pg_run(c, "select node_stop('n', '%s')", two);
    expect(c, "0", "select count(*) from node");
    node_start(c, "QT003", one, "0");
    node_start(c, "QT003", one, "99"); /* what a newer worker calls is not there */
    assert_string_equal(pg_try(c, "select node_start('', '%s', 'h', 1, '', 1, null, 1)", one),
                        "QT007");
    assert_string_equal(pg_try(c, "select node_start(null, '%s', 'h', 1, '', 1, null, 1)", one),
                        "QT007");
    assert_string_equal(
        pg_try(c, "select node_start(repeat('x', 201), '%s', 'h', 1, '', 1, null, 1)", one),
        "QT007");
    PQfinish(c);
}

static void
two_of_a_name_at_once(void **state)
{
    PGconn *c = core_new("names_race"), *a = core_join("names_race"), *b = core_join("names_race");
    char ask[200];

    (void)state;
    pg_run(a, "begin; select node_start('n', '%s', 'host', 1, '0.1', 1, null, 4)", one);
    snprintf(ask, sizeof ask, "select node_start('n', '%s', 'host', 1, '0.1', 1, null, 4)", two);
    pg_send(b, ask);
    pg_wait_blocked(c, b);
    pg_run(a, "commit");
    assert_string_equal(pg_finish(b), "QT002");
    PQfinish(a);
    PQfinish(b);
    PQfinish(c);
}

/* How many notifications have come since the last look. */
static int
notified(PGconn *conn)
{
    int n = 0;

    pg_run(conn, "select 1"); /* what was committed before has come with its answer */
    for (PGnotify *note; (note = PQnotifies(conn)); PQfreemem(note))
        n++;
    return n;
}

/* A step notifies sleepers of jobs that may be due now. They are also notified when a node or the
 * scheduler stops: if it was the one that waited for a push, nobody would wait for the next one. A
 * step that only moves the mark notifies nobody, because a node of many slots has one a second. */
static void
sleepers_are_told_of_what_is_due(void **state)
{
    PGconn *c = core_new("told"), *sleeper = core_join("told");

    (void)state;
    pg_run(c, "select node_start('n', '%s', 'host', 1, '0.1', 1, null, 48)", one);
    pg_run(c, "select t.push('q', 'z')");
    core_settle(c);
    expect(c, "z", "select t.claim('n', 1)");
    pg_run(c, "select t.done('n')");
    core_settle(c);
    expect(c, "t", "select want > 20 from tick order by tick desc limit 1");
    pg_run(sleeper, "select pg_advisory_lock_shared(slot_class() + 17, "
                    "'queue'::regclass::oid::int)");
    pg_run(sleeper, "do $$ begin execute format('listen %%I', sleep_channel()); end $$");
    pg_run(c, "update tick set mark_at = '-infinity'; update scheduler set until = "
              "clock_timestamp() + interval '9 s' where term > 0");
    pg_run(c, "select t.step('test')");
    assert_int_equal(notified(sleeper), 0);
    expect(c, "t",
           "select mark_at > now() - interval '1 min' from tick order by tick desc limit 1");
    pg_run(c, "select t.push('q', 'a'); select t.step('test')");
    assert_int_equal(notified(sleeper), 1);
    pg_run(c, "select node_stop('n', '%s')", one);
    assert_int_equal(notified(sleeper), 1);
    expect(c, "t", "select scheduler_stop('test')");
    assert_int_equal(notified(sleeper), 1);
    PQfinish(sleeper);
    PQfinish(c);
}

static void
only_a_living_node_claims(void **state)
{
    PGconn *c = core_new("claims_of_nodes");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    node_start(c, "", one, "1");
    expect(c, "a", "select t.claim('n', 1)");
    pg_run(c, "select drain_node(gen_random_uuid(), 'n', 'test')");
    expect(c, "draining", "select node_beat('n', '%s')", one);
    expect(c, "", "select t.claim('n', 1)");
    node_start(c, "", one, "1");
    expect(c, "draining", "select node_beat('n', '%s')", one); /* a reconnect does not end it */
    expect(c, "done", "select t.done('n')");                   /* what runs is finished */
    pg_run(c, "select node_stop('n', '%s')", one);
    node_start(c, "", two, "1");
    expect(c, "b", "select t.claim('n', 1)");
    pg_run(c, "update node set heartbeat = now() - interval '31 s'");
    expect(c, "", "select t.claim('n', 1)"); /* taken for dead: it must show itself first */
    expect(c, "up", "select node_beat('n', '%s')", two);
    expect(c, "c", "select t.claim('n', 1)");
    /* dead nodes are forgotten after a day, but not while they hold leases */
    pg_run(c, "update node set heartbeat = now() - interval '2 days'");
    core_ten_seconds(c);
    pg_run(c, "select t.push('q', 'd')");
    core_settle(c);
    expect(c, "1", "select count(*) from node");
    expect(c, "done,done", "select t.done('n')");
    core_ten_seconds(c);
    core_settle(c);
    expect(c, "0", "select count(*) from node");
    core_check(c);
    PQfinish(c);
}

/* Somebody deletes rows by hand: nothing that waits there is forgotten. */
static void
settings_deleted_by_hand(void **state)
{
    PGconn *c = core_new("byhand");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    core_ten_seconds(c);
    pg_run(c, "delete from queue_config where queue = 'q'");
    pg_run(c, "select t.push('q', 'c')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 9)");
    pg_run(c, "select keep_books()");
    core_settle(c);
    expect(c, "c", "select t.claim('n', 9)");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_over),
        cmocka_unit_test(sleepers_are_told_of_what_is_due),
        cmocka_unit_test(takeover_comes_on),
        cmocka_unit_test(steps_of_claims_keep_nobody_out),
        cmocka_unit_test(a_long_step_keeps_the_turn),
        cmocka_unit_test(takeover_rescans),
        cmocka_unit_test(a_step_is_all_or_nothing),
        cmocka_unit_test(an_idle_step_writes_nothing),
        cmocka_unit_test(how_soon_it_comes_again),
        cmocka_unit_test(who_holds_the_turn),
        cmocka_unit_test(an_act_left_open_ends),
        cmocka_unit_test(a_name_is_one_process),
        cmocka_unit_test(two_of_a_name_at_once),
        cmocka_unit_test(only_a_living_node_claims),
        cmocka_unit_test(settings_deleted_by_hand),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
