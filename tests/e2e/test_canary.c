/*
 * A requeue of many jobs tries a few of them first: what the box shows of them with workers that
 * are alive, dead, paused or gone, what it asks for, and what the audit says afterwards. The same
 * on the command line.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proc.h"

/* A worker that runs a command for each job of a queue. */
static void
work(struct proc *p, const char *queue, const char *command)
{
    proc_queuetop(p, NULL, "work -q %s -j 4 --node w1 \"%s\" -- sh -c '%s'", queue, con_dsn(),
                  command);
}

/* The question for the largest group of errors. */
static void
ask_group(struct vt *vt, int rows, int cols)
{
    con_start(vt, rows, cols, NULL);
    vt_keys(vt, "3");
    vt_want(vt, "refused");
    vt_keys(vt, "r");
    vt_want(vt, "first 10, then ask");
}

/* Two actions of the audit; the reason of the second names the first. */
static void
assert_two_actions(int first, int rest)
{
    assert_int_equal(pg_int(con_db(), "select count(*) from audit where verb = 'requeue'"), 2);
    assert_int_equal(pg_int(con_db(),
                            "select count(*) from audit_log a join audit_log b"
                            " on b.reason = 'rest of action ' || a.action::text"
                            " where a.reason = 'first %d of %d' and a.changed = %d"
                            " and b.changed = %d and a.params->>'priority' = '0'",
                            first, first + rest, first, rest),
                     1);
}

static void
the_rest_is_asked_for(void **state)
{
    struct proc worker = {0};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 120, "connection refused");
    ask_group(&vt, 24, 80);
    vt_want(&vt, "Requeue 120 jobs of mail.send");
    vt_want(&vt, "run again, one more try each");
    vt_want(&vt, "key 6, then u: for those that have not started");
    vt_want(&vt, "F4 spread over a time (now: at once), tries, reason");
    work(&worker, "mail.send", "true");
    vt_keys(&vt, "enter");
    vt_want(&vt, "10 of 10 tried");
    vt_want(&vt, "w1");
    vt_want(&vt, "10 of 10 are done: the cause seems gone. The other 110?");
    vt_want(&vt, "y requeue them, too");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 110 jobs");
    assert_two_actions(10, 110);
    con_quit(&vt);
    proc_ends(&worker);
    proc_done(&worker);
}

/* The tried job fails with the same error again. Enter, which normally continues with the rest,
 * stops here. */
static void
the_cause_is_still_there(void **state)
{
    struct proc worker = {0};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 120, "connection refused");
    work(&worker, "mail.send", "echo connection 17 refused >&2; exit 1");
    ask_group(&vt, 24, 80);
    vt_keys(&vt, "enter");
    vt_want(&vt, "the cause is still there: 10 of 10 failed again with the same error");
    vt_want(&vt, "Type 110 to go on:");
    vt_keys(&vt, "text:120 enter");
    vt_want(&vt, "nothing was done");
    assert_int_equal(con_count("state = 'failed' and priority = 5"), 110);
    vt_keys(&vt, "C-u enter");
    vt_want(&vt, "10 of 120 tried: 10 failed again; the other 110 are as they were");
    vt_gone(&vt, "Type 110");
    assert_int_equal(con_count("state = 'failed' and priority = 5"), 110);
    assert_int_equal(con_count("priority = 0"), 10); /* failed, or tried again already */
    con_quit(&vt);
    proc_ends(&worker);
    proc_done(&worker);
}

/* A paused queue: said at once. The box can be hidden, other acts wait, C-c ends the try. */
static void
what_is_in_the_way_is_said(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 120, "connection refused");
    pg_run(con_db(), "select pause(gen_random_uuid(), 'mail.send')");
    ask_group(&vt, 24, 80);
    vt_want(&vt, "start mail.send is paused");
    vt_keys(&vt, "enter");
    vt_want(&vt, "0 of 10 ended");
    vt_want(&vt, "mail.send is paused: nothing of it starts until it is resumed (key p)");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "first 10, then ask");
    vt_want(&vt, "[requeue 0 of 10]");
    vt_keys(&vt, "r");
    vt_want(&vt, "an action is running (F8 shows it)");
    vt_keys(&vt, "q");
    vt_want(&vt, "y quits: they go on, the rest stays as it is");
    vt_keys(&vt, "esc f8");
    vt_want(&vt, "first 10, then ask");
    vt_resize(&vt, 10, 40);
    vt_want(&vt, "0 done");
    vt_want(&vt, "mail.send is paused: nothing");
    vt_resize(&vt, 24, 80);
    vt_want(&vt, "first 10, then ask");
    vt_keys(&vt, "C-c");
    vt_want(&vt, "10 of 120 tried: 10 waiting; the other 110 are as they were");
    vt_gone(&vt, "first 10, then ask");
    assert_int_equal(con_count("state = 'failed'"), 110);
    assert_int_equal(con_count("state = 'ready' and priority = 0"), 10);
    con_quit(&vt);
}

/* Another operator requeues the rest and discards the few. */
static void
others_are_quicker(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 120, "connection refused");
    ask_group(&vt, 24, 80);
    vt_want(&vt, "no worker takes this queue");
    vt_keys(&vt, "enter");
    vt_want(&vt, "0 of 10 ended");
    pg_run(con_db(), "select requeue_where(gen_random_uuid(), 1, 'mail.send')");
    pg_run(con_db(), "select discard(gen_random_uuid(), 1, array(select id from queue"
                     " where state = 'ready' and priority = 0))");
    vt_want(&vt, "10 of 120 tried: 10 gone; nothing is left of the rest");
    assert_int_equal(con_count("state = 'ready'"), 110);
    con_quit(&vt);
}

/* Tab switches to the requeue of all jobs at once. Each of the two actions is undone separately. */
static void
all_at_once_and_undo(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 130, "connection refused");
    con_failed("mail.send", 3, "mailbox full");
    ask_group(&vt, 24, 80);
    vt_keys(&vt, "tab");
    vt_want(&vt, "Type 130 to go on:");
    vt_keys(&vt, "f4");
    vt_want(&vt, "spread over");
    vt_keys(&vt, "text:10m enter");
    vt_want(&vt, "spread over a time (now: 10m)");
    vt_keys(&vt, "text:130 enter");
    vt_want(&vt, "requeue: 130 jobs scheduled");
    assert_int_equal(con_count("state = 'scheduled' and priority = 5"), 130);
    vt_keys(&vt, "6");
    vt_want(&vt, "requeue   "); /* its row */
    vt_keys(&vt, "u");
    vt_want(&vt, "Type 130 to go on:");
    vt_keys(&vt, "text:130 enter");
    vt_want(&vt, "undo: 130");
    assert_int_equal(con_count("state = 'failed'"), 133);
    con_quit(&vt);
}

static void
the_verb_tries_a_few_first(void **state)
{
    static const char verb[] = "requeue -q mail.send --canary %s --yes \"%s\"";
    struct proc worker = {0};

    (void)state;
    con_failed("mail.send", 30, "connection refused");
    proc_check(2, NULL, "exclude each other", verb, "--no-canary", con_dsn());
    proc_check(2, NULL, "--wait is for --canary", "requeue -q mail.send --wait 1s \"%s\"",
               con_dsn());
    proc_check(2, NULL, "from 1 to 100", verb, "0", con_dsn());
    proc_check(3, NULL, "no worker takes this queue: none is alive", verb, "2 --wait 1s",
               con_dsn());
    assert_int_equal(con_count("state = 'failed'"), 28);
    work(&worker, "mail.send", "echo connection 17 refused >&2; exit 1");
    proc_check(3, NULL, "the other 23 are as they were", verb, "5", con_dsn());
    proc_ends(&worker);
    proc_done(&worker);
    assert_int_equal(con_count("state = 'failed'"), 23); /* the tried jobs may retry */
    work(&worker, "mail.send", "true");
    proc_check(0, "\"tried\": 10, \"done\": 10, \"failed\": 0", NULL, verb, "--json", con_dsn());
    assert_int_equal(con_count("state = 'failed'"), 0);
    con_failed("sms.send", 2, "boom"); /* a group smaller than the try: all jobs are tried */
    proc_ends(&worker);
    proc_done(&worker);
    work(&worker, "sms.send", "true");
    proc_check(0, "2 of 2 tried: 2 done", NULL, "requeue -q sms.send --canary --yes \"%s\"",
               con_dsn());
    proc_ends(&worker);
    proc_done(&worker);
}

/* With history "none" nothing is left of a completed job; with "meta" the end of the job is
 * known. */
static void
what_a_queue_keeps_is_what_is_known(void **state)
{
    static const char verb[] = "requeue -q %s --canary --yes --json \"%s\"";
    struct proc worker = {0};

    (void)state;
    con_failed("mail.send", 12, "connection refused");
    con_failed("sms.send", 2, "connection refused");
    pg_run(con_db(), "select set_queue(gen_random_uuid(), 'mail.send', '{\"history\": \"none\"}'),"
                     " set_queue(gen_random_uuid(), 'sms.send', '{\"history\": \"meta\"}')");
    proc_queuetop(&worker, NULL, "work -q mail.send,sms.send -j 4 --node w1 \"%s\" -- true",
                  con_dsn());
    proc_check(0,
               "\"tried\": 10, \"done\": 0, \"failed\": 0, \"waiting\": 0, \"gone\": 0, "
               "\"not_kept\": 10",
               NULL, verb, "mail.send", con_dsn());
    assert_int_equal(con_count("state = 'failed' and queue = 'mail.send'"), 0);
    proc_check(0, "\"tried\": 2, \"done\": 2", NULL, verb, "sms.send", con_dsn());
    proc_ends(&worker);
    proc_done(&worker);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_rest_is_asked_for, con_empty),
        cmocka_unit_test_setup(the_cause_is_still_there, con_empty),
        cmocka_unit_test_setup(what_is_in_the_way_is_said, con_empty),
        cmocka_unit_test_setup(others_are_quicker, con_empty),
        cmocka_unit_test_setup(all_at_once_and_undo, con_empty),
        cmocka_unit_test_setup(the_verb_tries_a_few_first, con_empty),
        cmocka_unit_test_setup(what_a_queue_keeps_is_what_is_known, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
