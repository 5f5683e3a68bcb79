/*
 * What an operator asks at night is answered: since when a queue fills up, what holds it, when it
 * is empty; and the ways from a queue or a node to what belongs to it, and back.
 */
#include "tests/e2e/console.h"

#include <stdlib.h>
#include <string.h>

#include "tests/proc.h"

enum { WAITING = 3000 };

/* An hour in which jobs came in as fast as they went out, and ten minutes of twice as many. */
static void
filling(const char *queue)
{
    con_ready(queue, WAITING);
    pg_run(con_db(),
           "insert into queue_config (queue, registered, max_running)"
           " values ('%s', now() - interval '1 day', 0)",
           queue);
    pg_run(con_db(),
           "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled, lost,"
           " wait_ms, run_ms) select date_trunc('minute', now()) - i * interval '1 min', '%s',"
           " case when i <= 10 then 240 else 120 end, 120, 0, 0, 0, 0, 0, 60000"
           " from generate_series(0, 59) i",
           queue);
}

static void
a_queue_that_fills_up(void **state)
{
    struct vt vt;

    (void)state;
    filling("mail");
    con_start(&vt, 24, 100, NULL);
    vt_want(&vt, "held by limit 0: "); /* the reason first */
    vt_want(&vt, "fills up by 2 jobs/s since ");
    vt_want(&vt, "+2/s");
    vt_keys(&vt, "enter");
    vt_want(&vt, "queues › mail");
    vt_want(&vt, "at this pace 10,200 wait in an hour");
    vt_want(&vt, "held by its limit: all of 0 in use; 1 more holds it level, 2 more empty it");
    con_quit(&vt);
}

/* A queue whose jobs failed is the first row, although no job waits in this queue; the screen names
 * the error. */
static void
what_is_wrong_comes_first_and_is_named(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 3);
    con_failed("fax", 12, "no paper");
    pg_run(con_db(),
           "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled, lost,"
           " wait_ms, run_ms) select date_trunc('minute', now()) - interval '1 min', 'fax', 12, 0,"
           " 12, 0, 0, 0, 0, 0");
    con_start(&vt, 40, 120, NULL);
    vt_want(&vt, "12 failed in 1 h: no paper");
    vt_want(&vt, "fax is broken");
    vt_want(&vt, "›× fax");
    con_quit(&vt);
}

/* A dead node runs no jobs; the page of the queue shows this, too. An empty pane takes one row. */
static void
a_dead_node_has_lost_its_jobs(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail", 2, "gone");
    con_node("gone", false);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "/ text:mail enter enter");
    vt_want(&vt, "queues › mail");
    vt_want(&vt, "2 lost ××");
    vt_want(&vt, "schedules that feed it: no schedule ─");
    vt_want(&vt, "errors of failed jobs: no failed job ─");
    vt_want(&vt, "lease 60s, tries 5, finished jobs kept for");
    con_quit(&vt);
}

static void
json_and_csv_have_it_too(void **state)
{
    char *out;

    (void)state;
    filling("mail");
    assert_int_equal(proc_run(NULL, &out, NULL, "queues --json \"%s\"", con_dsn()), 0);
    assert_non_null(strstr(out, "\"outlook\": \"fills\""));
    assert_non_null(strstr(out, "\"held_by\": \"limit\""));
    assert_non_null(strstr(out, "\"fills_since\": \"20"));
    assert_non_null(strstr(out, "\"empty_at\": null"));
    assert_non_null(strstr(out, "\"slots_needed\": 2"));
    free(out);
    proc_check(0, ",outlook,held_by,empty_at,fills_per_s,fills_since,slots_needed", NULL,
               "queues --csv \"%s\"", con_dsn());
    proc_check(0, "OUTLOOK", NULL, "queues \"%s\"", con_dsn());
}

/* 2, 3 and 4 keep the subject, Esc comes back; pressed again they show all. */
static void
digits_keep_the_subject(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 3);
    con_ready("fax", 1);
    con_failed("mail", 2, "boom");
    con_failed("fax", 2, "no paper");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "/ text:mail enter enter");
    vt_want(&vt, "next to start");
    vt_want(&vt, "boom");
    vt_keys(&vt, "3");
    vt_want(&vt, "queues › mail › failed");
    vt_want(&vt, "boom");
    vt_gone(&vt, "no paper");
    vt_keys(&vt, "3");
    vt_want(&vt, "no paper");
    vt_keys(&vt, "esc");
    vt_want(&vt, "queues › mail › failed");
    vt_keys(&vt, "esc 2");
    vt_want(&vt, "queues › mail › jobs");
    vt_want(&vt, "of 5");
    vt_keys(&vt, "esc 4");
    vt_want(&vt, "queues › mail › nodes");
    vt_keys(&vt, "esc esc");
    vt_want(&vt, "needs you");
    con_quit(&vt);
}

/* Esc returns to the previous place. If there is none, the footer says so. */
static void
escape_comes_back(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 3);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "no node");
    vt_keys(&vt, "6");
    vt_want_row(&vt, 1, "[6 Audit");
    vt_keys(&vt, "esc");
    vt_want(&vt, "no node");
    vt_keys(&vt, "esc");
    vt_want(&vt, "needs you");
    vt_keys(&vt, "esc");
    vt_want(&vt, "this is the first place: q quits");
    con_quit(&vt);
}

/* Tab walks the panes of a page, Enter goes to the row of the pane. */
static void
panes_are_walked_and_entered(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail", 2, "boom");
    con_running("mail", 1, "n1");
    con_node("n1", true);
    con_start(&vt, 45, 140, NULL);
    vt_want(&vt, "›  mail");
    vt_keys(&vt, "enter");
    vt_want(&vt, "› next to start");
    vt_keys(&vt, "tab");
    vt_want(&vt, "› running");
    vt_want(&vt, "1/5");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "esc");
    vt_want(&vt, "next to start");
    vt_keys(&vt, "tab");
    vt_want(&vt, "› errors");
    vt_want(&vt, "boom");
    vt_keys(&vt, "enter");
    vt_want(&vt, "error:boom");
    vt_keys(&vt, "esc tab");
    vt_want(&vt, "› nodes");
    vt_keys(&vt, "enter");
    vt_want(&vt, "queues › mail › n1");
    vt_want(&vt, "other nodes of its host");
    vt_keys(&vt, "esc esc");
    vt_want(&vt, "needs you");
    con_quit(&vt);
}

/* What happens to the jobs of a dead node if nobody acts. */
static void
a_dead_node(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail", 2, "gone");
    con_node("gone", false);
    con_start(&vt, 24, 100, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "gone is dead: L releases its lease (2 jobs); left alone, the scheduler takes");
    vt_keys(&vt, "enter");
    vt_want(&vt, "nodes › gone");
    vt_want(&vt, "L releases its lease (2 jobs); left alone, the scheduler takes 2 jobs back now");
    vt_keys(&vt, "L");
    vt_want(&vt, "this try");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* A wide screen shows more beside the tables: hosts with their nodes, slots and versions; what an
 * act has changed; the error of a job beside its attempts. */
static void
a_wide_screen_says_more(void **state)
{
    struct vt vt;
    int row;

    (void)state;
    con_failed("mail", 1, "boom");
    con_node("n1", false);
    con_node("n2", false);
    pg_run(con_db(), "select pause(gen_random_uuid(), 'mail', 'month close')");
    con_start(&vt, 45, 140, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "hosts and their versions");
    vt_want(&vt, "│   host1                n1  n2 ");
    vt_want(&vt, "2 of 2 · trouble first");
    vt_keys(&vt, "/ text:n2 enter");
    vt_want(&vt, "1 of 2 match the filter");
    vt_keys(&vt, "6");
    vt_want(&vt, "┌─ pause mail ─");
    vt_want(&vt, "│ reason   month close");
    vt_keys(&vt, "3");
    vt_want(&vt, "newest of 1");
    vt_keys(&vt, "enter");
    vt_want(&vt, "error:boom");
    vt_want(&vt, "1/5");
    vt_keys(&vt, "enter");
    vt_want(&vt, "ATTEMPTS");
    vt_settle(&vt, 100); /* the whole frame is there */
    for (row = 0; row < vt.rows && !strstr(vt_row(&vt, row), " LAST ERROR"); row++)
        ;
    vt_want_row(&vt, row, " ATTEMPTS");
    vt_want_row(&vt, row + 1, "   boom ");
    vt_want_row(&vt, row + 1, " failed ");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_queue_that_fills_up, con_empty),
        cmocka_unit_test_setup(what_is_wrong_comes_first_and_is_named, con_empty),
        cmocka_unit_test_setup(a_dead_node_has_lost_its_jobs, con_empty),
        cmocka_unit_test_setup(json_and_csv_have_it_too, con_empty),
        cmocka_unit_test_setup(digits_keep_the_subject, con_empty),
        cmocka_unit_test_setup(escape_comes_back, con_empty),
        cmocka_unit_test_setup(panes_are_walked_and_entered, con_empty),
        cmocka_unit_test_setup(a_dead_node, con_empty),
        cmocka_unit_test_setup(a_wide_screen_says_more, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
