/*
 * Discard, delete, priority, time, requeue spread over a time, and undo, by their keys: what the
 * question says, and what the database says afterwards.
 */
#include "tests/e2e/console.h"

#include <stdio.h>

static void
discards_a_group_and_brings_it_back(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 120, "connection refused");
    con_failed("mail.send", 3, "mailbox full");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "connection refused");
    vt_keys(&vt, "X");
    vt_want(&vt, "120 jobs → discarded (failed)");
    vt_want(&vt, "Type 120 to go on:");
    vt_keys(&vt, "text:120 enter");
    vt_want(&vt, "discard: 120 jobs discarded");
    assert_int_equal(con_count("true"), 3);
    assert_int_equal(pg_int(con_db(), "select count(*) from history where state = 'failed'"), 120);
    vt_keys(&vt, "6");
    vt_want(&vt, "discard  "); /* the row of the action in Audit */
    vt_keys(&vt, "u");
    vt_want(&vt, "120 rows → failed again");
    vt_want(&vt, "discard by");
    vt_keys(&vt, "text:120 enter");
    vt_want(&vt, "undo: 120 rows failed again");
    assert_int_equal(con_count("state = 'failed' and error = 'connection refused'"), 120);
    assert_int_equal(pg_int(con_db(), "select count(*) from history"), 0);
    vt_want_row(&vt, 4, "undo"); /* its row is on top */
    vt_keys(&vt, "u");           /* the cursor has stayed with the discard */
    vt_want(&vt, "120 rows left alone: is back already");
    vt_keys(&vt, "g u");
    vt_want(&vt, "an undo can't be undone");
    con_quit(&vt);
}

static void
deletes_one_for_good(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "D");
    vt_want(&vt, "gone for good");
    vt_want(&vt, "Type 1 to go on:");
    vt_keys(&vt, "y enter");
    vt_settle(&vt, 60);
    assert_int_equal(con_count("true"), 2);
    vt_keys(&vt, "text:1 enter");
    vt_want(&vt, "delete: 1 job deleted");
    assert_int_equal(con_count("true"), 1);
    assert_int_equal(pg_int(con_db(), "select count(*) from history"), 0);
    vt_keys(&vt, "6");
    vt_want(&vt, "delete  "); /* its row */
    vt_keys(&vt, "u");
    vt_want(&vt, "can't be undone");
    con_quit(&vt);
}

static void
sets_priority_and_time(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 3);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 3");
    vt_keys(&vt, "space space b");
    vt_want(&vt, "Priority: marked jobs");
    vt_keys(&vt, "text:12 enter"); /* no priority */
    vt_want(&vt, "0 (soonest) to 9");
    vt_keys(&vt, "C-u text:2 tab text:vip enter");
    vt_want(&vt, "2 jobs → at priority 2 (was 5)");
    vt_keys(&vt, "y");
    vt_want(&vt, "priority: 2 jobs at priority 2");
    assert_int_equal(con_count("priority = 2"), 2);
    assert_string_equal(pg_value(con_db(), "select reason from audit where verb = 'priority'"),
                        "vip");
    vt_keys(&vt, "* t");
    vt_want(&vt, "Time: ");
    vt_keys(&vt, "C-u text:whenever enter");
    vt_want(&vt, "now; 10m or 2h from now");
    vt_keys(&vt, "C-u text:2h enter");
    vt_want(&vt, "3 jobs → scheduled");
    vt_want(&vt, "due 2");
    vt_keys(&vt, "y");
    vt_want(&vt, "reschedule: 3 jobs scheduled");
    assert_int_equal(con_count("state = 'scheduled' and run_after between now() + interval '119 "
                               "min' and now() + interval '121 min'"),
                     3);
    vt_keys(&vt, "g t");
    vt_want(&vt, "Time: ");
    vt_keys(&vt, "enter"); /* now */
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "reschedule: 1 job ready");
    assert_int_equal(con_count("state = 'ready'"), 1);
    con_quit(&vt);
}

static void
spreads_a_requeue(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 20, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "boom");
    vt_keys(&vt, "r");
    vt_want(&vt, "Requeue 20 jobs of mail.send");
    vt_keys(&vt, "f4");
    vt_want(&vt, "spread over");
    vt_keys(&vt, "text:soon enter");
    vt_want(&vt, "with its unit: 90s, 10m or 2h");
    vt_keys(&vt, "C-u text:10m tab space tab text:gently enter");
    vt_want(&vt, "spread over a time (now: 10m)");
    vt_want(&vt, "spread over");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 20 jobs scheduled");
    assert_int_equal(con_count("state = 'scheduled' and tries = 0 and run_after < now() + interval "
                               "'10 min'"),
                     20);
    assert_string_equal(pg_value(con_db(), "select reason from audit"), "gently");
    vt_keys(&vt, "6");
    vt_want(&vt, "gently"); /* its row */
    vt_keys(&vt, "u");
    vt_want(&vt, "20 rows → failed again");
    vt_keys(&vt, "y");
    vt_want(&vt, "undo: 20 rows failed again");
    assert_int_equal(con_count("state = 'failed' and tries = 1"), 20);
    con_quit(&vt);
}

/* Another operator was quicker: the console reports the jobs that changed, and leaves them
 * alone. */
static void
undo_refuses_what_has_moved_on(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "space space space X");
    vt_want(&vt, "3 jobs");
    vt_keys(&vt, "y");
    vt_want(&vt, "discard: 3 jobs");
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id)) from history");
    pg_run(con_db(), "delete from history where id in (select id from history limit 1)");
    vt_keys(&vt, "6");
    vt_want(&vt, "discard  "); /* its row */
    vt_keys(&vt, "/ text:discard enter u");
    vt_want(&vt, "2 rows → failed again");
    vt_want(&vt, "1 row left alone: no longer in history");
    vt_keys(&vt, "y");
    vt_want(&vt, "2 rows failed again, 1 row left alone");
    assert_int_equal(con_count("state = 'failed'"), 2);
    con_quit(&vt);
}

/* Marks stay with their jobs. The console reports what happened to these jobs meanwhile, and the
 * guards hold. */
static void
says_what_marked_rows_became(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 4, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "space space space");
    vt_want(&vt, "3 marked");
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id)) from (select id from "
                     "queue order by id desc limit 1) x"); /* the newest job is the first row */
    pg_run(con_db(), "select delete_jobs(gen_random_uuid(), 1, array_agg(id)) from (select id from "
                     "queue order by id desc offset 1 limit 1) x");
    vt_want(&vt, "of 3 marked 1 left the list, 1 came into another state");
    vt_keys(&vt, "X");
    vt_want(&vt, "1 left the list, 1 came into another state");
    vt_want(&vt, "1 job → discarded (failed)");
    vt_want(&vt, "1 job → discarded (ready)");
    vt_want(&vt, "1 job left alone: no such job");
    vt_keys(&vt, "esc");
    assert_int_equal(con_count("true"), 3);
    con_quit(&vt);
}

/* A batch that meets a lock waits, and the console names the session that holds the lock. */
static void
says_who_holds_the_lock(void **state)
{
    struct vt vt;
    PGconn *other = pg_connect(con_dsn());

    (void)state;
    con_failed("mail.send", 2, "boom");
    pg_run(other, "set application_name = 'the culprit'; begin; select from queues.queue for "
                  "update");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "boom");
    vt_keys(&vt, "r");
    vt_want(&vt, "Requeue 2 jobs");
    vt_keys(&vt, "y");
    vt_want(&vt, "waits for a lock: pid");
    vt_want(&vt, "the culprit");
    pg_run(other, "rollback");
    PQfinish(other);
    vt_want(&vt, "2 jobs ready");
    assert_int_equal(con_count("state = 'ready'"), 2);
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

static void
shows_why_a_queue_is_paused(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    con_ready("sms.send", 1);
    pg_run(con_db(), "select pause(gen_random_uuid(), 'sms.send', 'the provider is down')");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "sms.send");
    vt_keys(&vt, "/ text:state:bogus");
    vt_want(&vt, "Enter looks in Jobs");
    vt_keys(&vt, "esc / text:sms enter");
    vt_gone(&vt, "mail.send");
    vt_keys(&vt, "j");
    vt_want(&vt, "sms.send: paused by postgres");
    vt_want(&vt, "the provider is down");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(discards_a_group_and_brings_it_back, con_empty),
        cmocka_unit_test_setup(deletes_one_for_good, con_empty),
        cmocka_unit_test_setup(sets_priority_and_time, con_empty),
        cmocka_unit_test_setup(spreads_a_requeue, con_empty),
        cmocka_unit_test_setup(undo_refuses_what_has_moved_on, con_empty),
        cmocka_unit_test_setup(says_what_marked_rows_became, con_empty),
        cmocka_unit_test_setup(says_who_holds_the_lock, con_empty),
        cmocka_unit_test_setup(shows_why_a_queue_is_paused, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
