/*
 * That nobody works is the first thing to know: jobs wait and no worker is alive, schedules are
 * overdue and no scheduler is. Whoever gives any sign of life ends the alarm.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/proc.h"

/* Twelve jobs that were pushed that long ago. */
static void
push_ago(const char *ago)
{
    pg_run(con_db(), "insert into queue (queue) select 'mail.send' from generate_series(1, 12)");
    pg_run(con_db(),
           "update queue set created = created - interval '%s', changed = changed - interval '%s'",
           ago, ago);
    pg_run(con_db(), "update delta set at = at - interval '%s'", ago);
}

static void
push_old(void)
{
    push_ago("1 h");
}

static void
to_queues(struct vt *vt, int rows, int cols)
{
    push_old();
    con_start(vt, rows, cols, NULL);
    vt_want(vt, "mail.send");
}

static void
nobody_is_the_first_alert(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("sms.send", 20, "boom");
    to_queues(&vt, 24, 80);
    vt_want(&vt, "× no worker or scheduler 12 jobs wait, for 1h 0");
    vt_want(&vt, "m: start");
    vt_keys(&vt, "4");
    vt_want(&vt, "no worker or scheduler: 12 jobs wait, for 1h 0");
    vt_want(&vt, "m: start queuetop work");
    vt_keys(&vt, "7");
    vt_want(&vt, "no worker or scheduler: 12 jobs wait");
    con_quit(&vt);
    con_start(&vt, 45, 140, NULL);
    vt_want(&vt, "no worker or scheduler");
    vt_want(&vt, "start queuetop work -- COMMAND");
    con_quit(&vt);
}

/* Who is missing is named alone: "no worker is broken" would say that all of them are well. */
static void
who_is_missing_is_not_broken(void **state)
{
    struct vt vt;

    (void)state;
    push_ago("30 s");
    con_start(&vt, 45, 140, NULL);
    vt_want_row(&vt, 2, " no worker or scheduler");
    assert_false(vt_find(&vt, "is broken", NULL, NULL));
    con_quit(&vt);
}

/* A worker that registered, one that only holds a lease, one that only waits for a push, and a
 * queue whose jobs nobody is to take. */
static void
any_sign_of_life_ends_it(void **state)
{
    struct vt vt;
    PGconn *idle = pg_connect(con_dsn());

    (void)state;
    to_queues(&vt, 24, 80);
    vt_want(&vt, "no worker");
    con_node("w1", true);
    vt_gone(&vt, "no worker");
    pg_run(con_db(), "delete from node");
    vt_want(&vt, "no worker");
    pg_run(con_db(), "select from schedule('t')");
    pg_run(con_db(), "select from claim('library', 1)");
    vt_gone(&vt, "no worker");
    pg_run(con_db(), "update work_queue set lock_timeout = now() - interval '1 s' "
                     "where lock_key is not null");
    vt_want(&vt, "no worker");
    pg_run(idle, "select pg_advisory_lock(1364481111 + 3, 'queues.queue'::regclass::oid::int)");
    vt_gone(&vt, "no worker");
    pg_run(idle, "select pg_advisory_unlock_all()");
    vt_want(&vt, "no worker");
    pg_run(con_db(), "select from pause(gen_random_uuid(), 'mail.send', 'a test')");
    vt_gone(&vt, "no worker");
    con_quit(&vt);
    PQfinish(idle);
}

static void
an_overdue_schedule_says_so(void **state)
{
    struct vt vt;
    struct proc scheduler;

    (void)state;
    pg_run(con_db(), "select from schedule_set(gen_random_uuid(), 'nightly', "
                     "'{\"cron\": \"0 3 * * *\", \"queue\": \"report\"}', null)");
    pg_run(con_db(), "update schedule set next_run = now() - interval '10 h 30 min'");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "× no scheduler  1 schedule is overdue, for 10h");
    vt_keys(&vt, "5");
    vt_want(&vt, "10h late");
    vt_want(&vt, "start queuetop schedule");
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule --name s", con_dsn());
    vt_gone(&vt, "no scheduler");
    vt_gone(&vt, "h late");
    con_quit(&vt);
    proc_ends(&scheduler);
}

/* kill -9: nothing else tells that a scheduler was there. One line for it, its late schedules
 * among it. */
static void
a_killed_scheduler_is_the_first_alert(void **state)
{
    struct vt vt;
    char *out;

    (void)state;
    con_node("w1", true);
    pg_run(con_db(),
           "insert into queue (queue, run_after) values ('report', now() + interval '1 d')");
    pg_run(con_db(), "select from schedule('killed')");
    pg_run(con_db(), "update scheduler set until = now() - interval '90 min' where term > 0");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "× no scheduler  its last sign is 1h");
    vt_keys(&vt, "5");
    vt_want(&vt, "no scheduler: its last sign is");
    con_quit(&vt);
    assert_int_equal(proc_run(NULL, &out, NULL, "-d \"%s\" check", con_dsn()), 2);
    assert_non_null(strstr(out, "no scheduler: its last sign is 1h"));
    free(out);
}

/* An act in an open transaction: the alert names the session, K ends it, the scheduler says what
 * it waits for. */
static void
an_act_left_open_is_named(void **state)
{
    struct vt vt;
    struct proc scheduler;
    char *out;
    PGconn *lunch = pg_connect(con_dsn());

    (void)state;
    con_node("w1", true);
    pg_run(
        lunch,
        "set application_name = 'lunch'; set idle_in_transaction_session_timeout = '5 min'; begin");
    pg_run(lunch, "select from queues.pause(gen_random_uuid(), 'report', 'a test')");
    pg_run(lunch, "set idle_in_transaction_session_timeout = 0");
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule --name s", con_dsn());
    proc_want(&scheduler, "scheduler s waits for the transaction of pid");
    con_start(&vt, 24, 100, NULL);
    vt_want(&vt, "s for the transaction of pid");
    pg_wait(con_db(),
            "select now() - xact_start > interval '11 s' from pg_stat_activity where "
            "application_name = "
            "'lunch'",
            "t", 60000);
    proc_run(NULL, &out, NULL, "-d \"%s\" doctor", con_dsn());
    assert_non_null(strstr(out, "(lunch, user"));
    assert_non_null(strstr(out, "select pg_terminate_backend("));
    free(out);
    vt_keys(&vt, "7");
    vt_want(&vt, "holds the scheduler's row");
    con_quit(&vt);
    PQfinish(lunch);
    proc_want(&scheduler, "scheduler s is active");
    proc_ends(&scheduler);
}

static char *
errors_of(const char *verb)
{
    char *err;

    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" %s", con_dsn(), verb), 0);
    return err;
}

static void
verbs_say_it(void **state)
{
    (void)state;
    push_old();
    pg_run(con_db(), "select from schedule_set(gen_random_uuid(), 'nightly', "
                     "'{\"cron\": \"0 3 * * *\", \"queue\": \"report\"}', null)");
    pg_run(con_db(), "update schedule set next_run = now() - interval '10 min'");
    char *err = errors_of("queues");
    assert_non_null(strstr(err, "no worker or scheduler: 12 jobs wait"));
    assert_non_null(strstr(err, "no scheduler: 1 schedule is overdue"));
    free(err);
    err = errors_of("cron list");
    assert_non_null(strstr(err, "no scheduler: 1 schedule is overdue"));
    assert_null(strstr(err, "no worker"));
    free(err);
    con_node("w1", true);
    err = errors_of("queues --json");
    assert_string_equal(err, ""); /* for programs */
    free(err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nobody_is_the_first_alert, con_empty),
        cmocka_unit_test_setup(who_is_missing_is_not_broken, con_empty),
        cmocka_unit_test_setup(any_sign_of_life_ends_it, con_empty),
        cmocka_unit_test_setup(an_overdue_schedule_says_so, con_empty),
        cmocka_unit_test_setup(a_killed_scheduler_is_the_first_alert, con_empty),
        cmocka_unit_test_setup(an_act_left_open_is_named, con_empty),
        cmocka_unit_test_setup(verbs_say_it, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
