/*
 * What a newcomer stumbled over: values that typing appends to, choices that are cut, hints for
 * what can't be done, columns that are on and not there, an order that nobody names, one alert
 * that hides four.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/console.h"

/* What stands in the footer, the last row. */
static bool
offers(struct vt *vt, const char *text)
{
    return strstr(vt_row(vt, vt->rows - 1), text) != NULL;
}

static void
typing_replaces_what_stands_there(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 1);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "l");
    vt_want(&vt, "▸ limit");
    vt_want(&vt, "none");
    vt_keys(&vt, "tab text:10/min");
    vt_want(&vt, "10/min");
    vt_gone(&vt, "none10");
    vt_keys(&vt, "tab end text:5"); /* after a cursor key, typing changes the value that is there */
    vt_want(&vt, "none5");
    vt_keys(&vt, "C-u");
    vt_keys(&vt, "enter");
    vt_want(&vt, "10/min, was none");
    vt_keys(&vt, "esc esc");
    con_quit(&vt);
}

static void
the_purge_form_keeps_words_and_digits(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 1);
    con_start(&vt, 24, 60, NULL);
    vt_keys(&vt, "P");
    vt_want(&vt, "[both]  completed   cancelled");
    vt_keys(&vt, "text:30d"); /* on the first field, which is a choice */
    vt_want(&vt, "30d");
    vt_keys(&vt, "enter");
    vt_want(&vt, "nothing matches");
    vt_want(&vt, "older than"); /* the form is still there */
    vt_keys(&vt, "tab text:a");
    vt_want(&vt, "[all queues]");
    vt_keys(&vt, "text:x");
    vt_want(&vt, "no choice begins with \"x\"");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

static void
hints_are_what_can_be_done(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail", 2, "boom");
    con_start(&vt, 24, 140, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "× failed");
    vt_keys(&vt, "down");
    vt_want_row(&vt, 23, "r requeue");
    assert_true(offers(&vt, "e edit"));
    assert_false(offers(&vt, "E extend"));
    vt_keys(&vt, "space");
    vt_want(&vt, "1 marked: r requeue");
    assert_null(strstr(vt_row(&vt, 22), "extend"));
    vt_keys(&vt, "U");
    con_quit(&vt);
    con_start(&vt, 24, 140, "--read-only");
    vt_want_row(&vt, 23, "filter");
    assert_false(offers(&vt, "p pause"));
    assert_false(offers(&vt, "N push"));
    con_quit(&vt);
}

/* Returns the column of a text in the footer; -1 = the text is not there. */
static int
place_of(struct vt *vt, const char *text)
{
    const char *row = vt_row(vt, vt->rows - 1), *at = strstr(row, text);

    return at ? (int)(at - row) : -1;
}

/* If a command does not apply to the selected row, the footer keeps the word of the command in its
 * place, without the key. */
static void
what_cant_be_done_keeps_its_place(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail", 1, "boom");
    con_running("mail", 1, "n");
    con_start(&vt, 24, 140, NULL);
    vt_keys(&vt, "2 / text:state:running enter");
    vt_want_row(&vt, 23, "E extend");
    int extend = place_of(&vt, "extend"), quit = place_of(&vt, "quit");
    vt_keys(&vt, "/ C-u text:state:failed enter");
    vt_want(&vt, "last failed first");
    vt_want_row(&vt, 23, "  extend");
    assert_false(offers(&vt, "E extend"));
    assert_int_equal(place_of(&vt, "extend"), extend);
    assert_int_equal(place_of(&vt, "quit"), quit);
    con_quit(&vt);
}

/* A line that is too narrow cuts a long name, never the words that name the trouble. */
static void
an_alert_keeps_its_words(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("a.queue.with.a.name.that.has.no.room.beside.all.the.words", 12, "boom");
    con_start(&vt, 20, 60, NULL);
    vt_want(&vt, "12 failed");
    vt_want_row(&vt, 0, "1 WARN");
    con_quit(&vt);
}

/* The console's own file in a state directory, and the directories round it. */
static void
forget(const char *home)
{
    char path[400];

    snprintf(path, sizeof path, "%s/queuetop/state", home);
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = 0;
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(home), 0);
}

static void
a_column_that_is_on_has_room(void **unused)
{
    char state[300];
    const char *const env[] = {state, NULL};
    struct vt vt;

    (void)unused;
    con_ready("mail", 1);
    con_start(&vt, 45, 140, NULL);
    vt_want(&vt, "RETRY");
    vt_want(&vt, "LATER");
    vt_want(&vt, "BLOCKED");
    con_quit(&vt);
    snprintf(state, sizeof state, "XDG_STATE_HOME=%s/columns.%d",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    con_spawn(&vt, 24, 80, NULL, env);
    vt_want(&vt, "OUT/s");
    vt_gone(&vt, "RETRY");
    vt_keys(&vt, "o");
    vt_want(&vt, "no room");
    vt_keys(
        &vt,
        "down down down down down down down down down down down down down enter esc"); /* RETRY */
    vt_want(&vt, "RETRY");
    con_quit(&vt);
    con_spawn(&vt, 24, 80, NULL, env); /* the next run remembers it */
    vt_want(&vt, "RETRY");
    con_quit(&vt);
    forget(state + strlen("XDG_STATE_HOME="));
}

static void
the_order_of_jobs_has_a_name(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail", 2, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "unfinished jobs, newest first");
    vt_keys(&vt, "/ text:state:failed enter");
    vt_want(&vt, "last failed first");
    vt_keys(&vt, "/ C-u text:queue:mail enter");
    vt_want(&vt, "last in line first");
    vt_keys(&vt, "/ C-u text:state:done enter");
    vt_want(&vt, "last finished first");
    con_quit(&vt);
}

static void
paused_queues_are_not_the_worst(void **state)
{
    struct vt vt;
    int paused, moving;

    (void)state;
    con_ready("asleep", 3);
    con_ready("busy", 3);
    pg_run(con_db(), "select schedule('test')");
    pg_run(con_db(), "update queue set created = now() - interval '2 h', changed = now() - "
                     "interval '2 h' where queue = 'asleep'");
    pg_run(con_db(), "update queue set created = now() - interval '1 h', changed = now() - "
                     "interval '1 h' where queue = 'busy'");
    pg_run(con_db(), "select pause(gen_random_uuid(), 'asleep', 'on purpose')");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "‖ asleep");
    assert_true(vt_find(&vt, "‖ asleep", &paused, NULL));
    assert_true(vt_find(&vt, " busy", &moving, NULL));
    assert_true(moving < paused);
    con_quit(&vt);
}

static void
several_alerts_are_counted(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 3);
    con_failed("mail", 12, "boom");
    con_failed("sms", 12, "boom");
    con_failed("fax", 12, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_want_row(&vt, 0, "3 WARN");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(typing_replaces_what_stands_there, con_empty),
        cmocka_unit_test_setup(the_purge_form_keeps_words_and_digits, con_empty),
        cmocka_unit_test_setup(hints_are_what_can_be_done, con_empty),
        cmocka_unit_test_setup(what_cant_be_done_keeps_its_place, con_empty),
        cmocka_unit_test_setup(an_alert_keeps_its_words, con_empty),
        cmocka_unit_test_setup(a_column_that_is_on_has_room, con_empty),
        cmocka_unit_test_setup(the_order_of_jobs_has_a_name, con_empty),
        cmocka_unit_test_setup(paused_queues_are_not_the_worst, con_empty),
        cmocka_unit_test_setup(several_alerts_are_counted, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
