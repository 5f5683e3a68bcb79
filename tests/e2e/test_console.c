/*
 * The console as its users meet it: start, look, move, filter, mark, open, and requeue; after each
 * action the database is asked whether it is so.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
starts_and_quits(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 3);
    con_ready("image.resize", 5);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_want(&vt, "image.resize");
    vt_want_row(&vt, 0, "app");
    vt_want_row(&vt, 1, "1 Queues");
    vt_want_row(&vt, 2, "ready 8");
    vt_want_row(&vt, 23, "? help");
    con_quit(&vt);
}

static void
says_what_is_missing(void **state)
{
    struct vt vt;
    const char *dsn = pg_newdb("empty");
    const char *argv[] = {getenv("QUEUETOP"), dsn, NULL};

    (void)state;
    vt_spawn(&vt, 24, 80, argv, NULL);
    vt_want(&vt, "queuetop install");
    con_quit(&vt);
}

static void
draws_before_it_connects(void **state)
{
    struct vt vt;
    const char *argv[] = {getenv("QUEUETOP"), "host=/nonexistent dbname=x", NULL};

    (void)state;
    vt_spawn(&vt, 24, 80, argv, NULL);
    vt_want(&vt, "1 Queues");
    vt_want(&vt, "connecting");
    vt_keys(&vt, "2");
    vt_want(&vt, "unfinished jobs");
    vt_keys(&vt, "f");
    vt_want(&vt, "there is no data yet");
    con_quit(&vt);
}

/* The hardware cursor stands on the selected row, for those who can't see the colour. */
static void
moves(void **state)
{
    struct vt vt;
    int row, col, top;

    (void)state;
    con_ready("a.first", 1);
    con_ready("b.second", 2);
    con_ready("c.third", 3);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "c.third");
    vt_keys(&vt, "g");
    vt_settle(&vt, 60);
    vt_cursor(&vt, &top, &col);
    vt_keys(&vt, "j j");
    vt_settle(&vt, 60);
    vt_cursor(&vt, &row, &col);
    assert_int_equal(row, top + 2);
    assert_int_not_equal(vt_cell(&vt, row, 10).bg, vt_cell(&vt, top, 10).bg);
    vt_keys(&vt, "k up down end home G pgup pgdn C-f C-b");
    vt_settle(&vt, 60);
    vt_cursor(&vt, &row, &col);
    assert_int_equal(row, top);
    con_quit(&vt);
}

static void
filters(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    con_ready("image.resize", 2);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "image.resize");
    vt_keys(&vt, "/ text:mail");
    vt_gone(&vt, "image.resize"); /* live, before Enter */
    vt_keys(&vt, "enter");
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "esc");
    vt_want(&vt, "image.resize");
    vt_keys(&vt, "/ text:image");
    vt_gone(&vt, "mail.send");
    vt_keys(&vt, "esc"); /* leaving the line takes back what was typed */
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 4");
    vt_keys(&vt, "/ text:queue:mail.send");
    vt_want(&vt, "1 of 2");
    vt_paste(&vt, " nonsense:1"); /* at once: half of it would be a word */
    vt_want(&vt, "nonsense");     /* the footer says what is wrong, the last good filter holds */
    vt_keys(&vt, "enter");
    vt_settle(&vt, 100);
    vt_want(&vt, "1 of 2");
    vt_keys(&vt, "esc");
    vt_want(&vt, "1 of 4");
    con_quit(&vt);
}

/* What was done to a queue stands on the axis of its charts, whether Audit was opened or not. */
static void
acts_stand_on_the_axis(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 3);
    pg_run(con_db(), "select pause(gen_random_uuid(), 'mail.send')");
    pg_run(con_db(), "select resume(gen_random_uuid(), 'mail.send')");
    con_start(&vt, 45, 140, NULL);
    vt_want(&vt, "mail.send: jobs/s");
    vt_want(&vt, "‖");
    vt_keys(&vt, "enter");
    vt_want(&vt, "next to start");
    vt_want(&vt, "‖");
    con_quit(&vt);
}

static void
opens_a_job(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "smtp 451: try later");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "enter");
    vt_want(&vt, "next to start");
    vt_keys(&vt, "2");
    vt_want(&vt, "filter queue:mail.send");
    vt_want(&vt, "smtp 451");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    vt_want(&vt, "\"note\": \"job ");
    vt_want(&vt, "ATTEMPTS");
    const char *id = pg_value(con_db(), "select id from queue order by seq desc limit 1");
    const char *other = pg_value(con_db(), "select id from queue order by seq limit 1");
    bool first = strstr(vt_screen_text(&vt), id) != NULL;
    vt_keys(&vt, "]");
    vt_want(&vt, first ? other : id);
    vt_keys(&vt, "[");
    vt_want(&vt, first ? id : other);
    vt_keys(&vt, "esc");
    vt_want(&vt, "filter queue:mail.send");
    vt_keys(&vt, "esc");
    vt_want(&vt, "next to start");
    vt_keys(&vt, "esc");
    vt_want_row(&vt, 1, "[1 Queues");
    con_quit(&vt);
}

static void
next_job(struct vt *vt, int n)
{
    for (int i = 0; i < n; i++)
        vt_keys(vt, "]");
    vt_settle(vt, 40);
}

/* The list reads 200 jobs at first. A job's page reads on, as the list does. */
static void
walks_beyond_the_first_rows(void **state)
{
    static const char none[] = "no other job in that direction", more[] = "reading more jobs";
    struct vt vt;

    (void)state;
    con_ready("mail.send", 300);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "mail.send · ready");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    next_job(&vt, 199);
    next_job(&vt, 1);
    for (int i = 0; i < 1000 && vt_find(&vt, more, NULL, NULL); i++) /* until they have come */
        next_job(&vt, 1);
    next_job(&vt, 98);
    assert_false(vt_find(&vt, none, NULL, NULL));
    next_job(&vt, 1); /* the last one */
    assert_false(vt_find(&vt, none, NULL, NULL));
    next_job(&vt, 1);
    vt_want(&vt, none);
    con_quit(&vt);
}

static void
requeues_three(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 5, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "space space space");
    vt_want(&vt, "3 marked");
    vt_keys(&vt, "r");
    vt_want(&vt, "3 jobs");
    vt_keys(&vt, "n"); /* the default is no */
    vt_want(&vt, "nothing was changed");
    assert_int_equal(con_count("state = 'failed'"), 5);
    vt_keys(&vt, "r");
    vt_want(&vt, "3 jobs");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 3 jobs");
    assert_int_equal(con_count("state = 'failed'"), 2);
    assert_int_equal(con_count("state = 'ready'"), 3);
    assert_int_equal(pg_int(con_db(), "select sum(changed) from audit_batch"), 3);
    vt_gone(&vt, "3 marked");
    con_quit(&vt);
}

/* The cost of a page does not depend on the number of rows. Here a few thousand rows show that one
 * page follows another. */
static void
pages_by_key(void **state)
{
    struct vt vt;

    (void)state;
    pg_run(con_db(), "insert into queue (queue, payload) select 'big', '{}' "
                     "from generate_series(1, 3000)");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of ");
    for (int i = 0; i < 30; i++) {
        vt_keys(&vt, "pgdn pgdn pgdn");
        vt_settle(&vt, 30);
    }
    int row, col;
    assert_true(vt_find(&vt, " of ", &row, &col));
    vt_keys(&vt, "g");
    vt_want(&vt, " 1 of ");
    con_quit(&vt);
}

static void
help_is_searchable(void **state)
{
    struct vt vt;

    (void)state;
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "?");
    vt_want(&vt, "On this screen");
    vt_keys(&vt, "/ text:lease enter");
    vt_want(&vt, "Release the leases");
    vt_gone(&vt, "Push a job");
    vt_keys(&vt, "esc");
    vt_want(&vt, "Push a job");
    vt_keys(&vt, "esc");
    vt_want_row(&vt, 1, "[1 Queues");
    con_quit(&vt);
}

static void
reads_only(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    con_start(&vt, 24, 80, "--read-only");
    vt_want(&vt, "READ-ONLY");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "r");
    vt_want(&vt, "--read-only");
    vt_keys(&vt, "a");
    vt_want(&vt, "requeue: started with --read-only");
    vt_keys(&vt, "r esc");
    vt_settle(&vt, 60);
    assert_int_equal(con_count("state = 'failed'"), 1);
    con_quit(&vt);
}

/* F keeps the cursor on a queue: through sorting, new rows and other screens, which show the state
 * of the queue. Another row, F or Esc ends this. */
static void
follows_a_queue(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("a.first", 1);
    con_ready("mail", 2);
    con_ready("z.last", 3);
    con_start(&vt, 24, 100, NULL);
    vt_keys(&vt, "/ text:mail enter F");
    vt_want(&vt, "mail is followed on all screens");
    vt_want_row(&vt, 0, "F mail");
    vt_keys(&vt, "/ C-u enter g");
    vt_want(&vt, "mail is no longer followed"); /* another row was selected */
    vt_keys(&vt, "/ text:mail enter");
    vt_want(&vt, "›  mail");
    vt_keys(&vt, "F / C-u enter");
    vt_want(&vt, "z.last");
    vt_keys(&vt, "> > I");
    con_ready("b.new", 1);
    vt_want(&vt, "b.new");
    vt_want(&vt, "›  mail");
    vt_keys(&vt, "4");
    vt_want(&vt, "F mail: 2 ready");
    con_ready("mail", 5);
    vt_want(&vt, "F mail: 7 ready");
    vt_keys(&vt, "F");
    vt_want(&vt, "mail is no longer followed");
    vt_keys(&vt, "F");
    vt_want(&vt, "follow: a queue, a job or an error can be followed");
    con_quit(&vt);
}

/* Events of the followed queue come by themselves, the newest below, until the cursor is moved up;
 * G goes on. */
static void
shows_what_happens_to_a_queue(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("a.first", 1);
    con_ready("mail", 2);
    con_start(&vt, 24, 100, NULL);
    vt_keys(&vt, "/ text:mail enter i");
    vt_want(&vt, "followed from here on; 2 wait, 0 run, 0 failed");
    con_ready("mail", 3);
    vt_want(&vt, "3 pushed; 5 wait, 0 run, 0 failed");
    con_ready("a.first", 7);
    con_ready("mail", 1);
    vt_want(&vt, "1 pushed; 6 wait, 0 run, 0 failed");
    assert_false(vt_find(&vt, "7 pushed", &(int){0}, &(int){0}));
    vt_keys(&vt, "g");
    vt_want(&vt, "stands still: G goes to the newest");
    con_ready("mail", 4);
    vt_want(&vt, "4 pushed; 10 wait");
    vt_want(&vt, "stands still");
    vt_keys(&vt, "G");
    vt_want_row(&vt, 22, "4 pushed; 10 wait");
    con_ready("mail", 5);
    vt_want_row(&vt, 22, "5 pushed; 15 wait");
    vt_keys(&vt, "esc");
    vt_want_row(&vt, 1, "[1 Queues");
    vt_want_row(&vt, 0, "F mail"); /* Esc went back; the queue is still followed */
    vt_keys(&vt, "F");
    vt_want(&vt, "mail is no longer followed");
    con_quit(&vt);
}

/* A job and a group of errors: through what becomes of them. */
static void
follows_a_job_and_an_error(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 2, "no paper");
    con_ready("mail", 1);
    con_start(&vt, 24, 100, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 3");
    vt_keys(&vt, "/ text:queue:mail enter");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "F 4");
    vt_want(&vt, "mail, ready for");
    pg_run(con_db(), "select cancel(gen_random_uuid(), 1, array_agg(id)) from queue "
                     "where queue = 'mail'");
    vt_want(&vt, "mail, cancelled for");
    vt_keys(&vt, "esc");
    vt_want(&vt, "is no longer followed");
    vt_keys(&vt, "3");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "F 6");
    vt_want(&vt, "F no paper: 2 failed jobs");
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id), false, null) from queue "
                     "where state = 'failed'");
    vt_want(&vt, "F no paper: no failed job any more");
    con_quit(&vt);
}

/* The end of the following drops the events, and keys that are typed at once filter them before the
 * next frame. What is freed is filled, so that reading it ends the console. */
static void
filters_events_that_were_dropped(void **state)
{
    static const char *const env[] = {"MALLOC_PERTURB_=170", NULL};
    struct vt vt;

    (void)state;
    con_ready("mail", 2);
    con_spawn(&vt, 24, 100, NULL, env);
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "F i");
    vt_want(&vt, "followed from here on");
    for (int n = 2; n < 8; n++) { /* one event each: the box of the filter takes the first places */
        char line[40];
        con_ready("mail", 1);
        snprintf(line, sizeof line, "%012d", n);
        vt_want(&vt, line);
    }
    vt_type(&vt, "F/x\r");
    vt_want(&vt, "nothing has happened yet");
    vt_want_row(&vt, 1, "events › x");
    con_quit(&vt);
}

/* A followed error is counted by answers that are about it: not by those that count by kind. The
 * screen of queues shows the errors of all queues, also while an error of one queue is followed. */
static void
follows_an_error_through_other_groups(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 2, "no paper");
    con_failed("fax", 1, "no toner");
    con_failed("mail", 3, "no route");
    con_start(&vt, 60, 200, NULL);
    vt_keys(&vt, "3 / text:queue:fax enter");
    con_asks_on(1500); /* the filter asks anew, and F needs a row */
    vt_want(&vt, "2 of 2");
    vt_keys(&vt, "g F");
    vt_want(&vt, "no paper is followed");
    vt_keys(&vt, "m");
    vt_want(&vt, "by error [kind]");
    con_asks_on(1500);
    vt_keys(&vt, "1");
    vt_want(&vt, "errors of failed jobs: 3");
    vt_want(&vt, "no route");
    vt_want(&vt, "F no paper: 2 failed jobs");
    con_failed("fax", 1, "no paper");
    vt_want(&vt, "F no paper: 3 failed jobs");
    vt_keys(&vt, "i");
    vt_want(&vt, "1 more failed, 3 in all");
    vt_want(&vt, "2 of 2 · the newest below");
    con_quit(&vt);
}

/* A followed error comes back while the menu of another one is open: the cursor, and with it the
 * menu, stays where it was, and goes back after the menu has closed. */
static void
leaves_the_row_of_a_menu_alone(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 3, "no paper");
    con_failed("mail", 1, "no route");
    con_start(&vt, 24, 160, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "no route");
    vt_keys(&vt, "g F");
    vt_want(&vt, "no paper is followed");
    vt_keys(&vt, "g"); /* the message goes */
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id), false, null) from queue "
                     "where queue = 'fax'");
    vt_want(&vt, "F no paper: no failed job any more");
    vt_keys(&vt, "a");
    vt_want(&vt, "no route ─");
    con_failed("fax", 1, "no paper");
    vt_want(&vt, "2 errors");
    vt_want(&vt, "no route ─");
    assert_false(vt_find(&vt, "no paper ─", &(int){0}, &(int){0}));
    vt_keys(&vt, "X");
    vt_want(&vt, "these queue mail, state failed");
    vt_keys(&vt, "y");
    vt_want(&vt, "discard: 1 job");
    assert_int_equal(con_count("state = 'failed' and queue = 'fax'"), 1);
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(starts_and_quits, con_empty),
        cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(draws_before_it_connects),
        cmocka_unit_test_setup(moves, con_empty),
        cmocka_unit_test_setup(filters, con_empty),
        cmocka_unit_test_setup(acts_stand_on_the_axis, con_empty),
        cmocka_unit_test_setup(opens_a_job, con_empty),
        cmocka_unit_test_setup(walks_beyond_the_first_rows, con_empty),
        cmocka_unit_test_setup(requeues_three, con_empty),
        cmocka_unit_test_setup(pages_by_key, con_empty),
        cmocka_unit_test_setup(help_is_searchable, con_empty),
        cmocka_unit_test_setup(reads_only, con_empty),
        cmocka_unit_test_setup(follows_a_queue, con_empty),
        cmocka_unit_test_setup(shows_what_happens_to_a_queue, con_empty),
        cmocka_unit_test_setup(follows_a_job_and_an_error, con_empty),
        cmocka_unit_test_setup(filters_events_that_were_dropped, con_empty),
        cmocka_unit_test_setup(follows_an_error_through_other_groups, con_empty),
        cmocka_unit_test_setup(leaves_the_row_of_a_menu_alone, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
