/*
 * What is wrong is seen first: counted in the header, marked on the tabs and in the first column,
 * and one key goes to each row that it is about.
 */
#include "tests/e2e/console.h"

#include <string.h>

/* A dead node with leases and a queue with failures. */
static void
trouble(void)
{
    con_running("mail", 2, "gone");
    con_failed("fax", 12, "no paper");
    con_node("gone", false); /* last: a claim might take its leases back */
}

static void
the_key_walks_all_alerts(void **state)
{
    struct vt vt;

    (void)state;
    trouble();
    con_start(&vt, 24, 80, NULL);
    vt_want_row(&vt, 0, "1 BAD 1 WARN");
    vt_want(&vt, "needs you");
    vt_keys(&vt, "j !");
    vt_want(&vt, "1 of 2  gone: died");
    vt_want(&vt, "›× gone");
    vt_keys(&vt, "!");
    vt_want(&vt, "2 of 2  fax: 12 failed");
    vt_want(&vt, "›×       12     +12 fax");
    vt_want(&vt, "no paper");
    vt_keys(&vt, "!"); /* and from the start */
    vt_want(&vt, "1 of 2  gone: died");
    vt_keys(&vt, "esc"); /* back to the row where the walk began */
    vt_want(&vt, "needs you");
    con_quit(&vt);
}

/* A filter of the screen would hide what the alert is about: the walk begins without one. */
static void
an_alert_opens_without_a_filter(void **state)
{
    struct vt vt;

    (void)state;
    trouble();
    con_start(&vt, 24, 80, NULL);
    vt_want_row(&vt, 0, "1 BAD 1 WARN");
    vt_keys(&vt, "3 / text:queue:mail enter");
    vt_want(&vt, "filter queue:mail");
    vt_gone(&vt, "no paper");
    vt_keys(&vt, "4 / text:nobody enter");
    vt_want(&vt, "filter nobody");
    vt_keys(&vt, "1 !");
    vt_want(&vt, "1 of 2  gone: died");
    vt_want(&vt, "›× gone");
    vt_keys(&vt, "!");
    vt_want(&vt, "2 of 2  fax: 12 failed");
    vt_want(&vt, "›×       12     +12 fax");
    vt_gone(&vt, "filter queue:mail");
    con_quit(&vt);
}

/* Tab gives the keys to the next pane, Enter opens the row of the pane, Esc gives them back. */
static void
tab_walks_the_panes(void **state)
{
    struct vt vt;

    (void)state;
    trouble();
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "12 failed");
    vt_want(&vt, "Ent queue");
    vt_keys(&vt, "tab");
    vt_want(&vt, "› needs you");
    vt_want(&vt, "Ent open"); /* not always a queue */
    vt_keys(&vt, "j enter");
    vt_want(&vt, "2 of 2  fax: 12 failed");
    vt_want_row(&vt, 1, "[3 Failed");
    vt_keys(&vt, "esc");
    vt_want(&vt, "› needs you");
    vt_keys(&vt, "tab");
    vt_gone(&vt, "› needs you");
    vt_want(&vt, "›▲ fax");
    vt_keys(&vt, "4 tab");
    vt_want(&vt, "› gone leases (1)");
    vt_want(&vt, "IF RELEASED");
    vt_want(&vt, " ›      2 ");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "esc");
    vt_want(&vt, "› gone leases (1)");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "› gone leases");
    vt_want(&vt, "›× gone");
    con_quit(&vt);
}

/* The cursor stays on its alert when a worse one comes above it. */
static void
the_cursor_keeps_its_alert(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 12, "no paper");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "12 failed");
    vt_keys(&vt, "tab");
    vt_want(&vt, "›▲ fax");
    con_running("mail", 2, "gone");
    con_node("gone", false);
    vt_want_row(&vt, 0, "1 BAD 1 WARN");
    vt_want(&vt, " × gone");
    vt_keys(&vt, "enter");
    vt_want(&vt, "2 of 2  fax: 12 failed");
    vt_want_row(&vt, 1, "[3 Failed");
    con_quit(&vt);
}

static void
nothing_wrong_is_said(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail", 1, "no reply"); /* a job that waits would miss its worker soon */
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "all is well");
    vt_keys(&vt, "!");
    vt_want(&vt, "nothing needs attention");
    con_quit(&vt);
}

/* Data that are some seconds old allow no verdict on this moment. */
static void
old_data_are_no_verdict(void **state)
{
    static const char *const options[] = {"--interval", "1h", NULL};
    struct vt vt;

    (void)state;
    con_failed("mail", 1, "no reply");
    con_spawn(&vt, 45, 140, options, NULL);
    vt_want_row(&vt, 2, " all is well   ready");
    vt_want(&vt, "   all is well, as seen since ");
    con_failed("fax", 12, "no paper");
    vt_want_row(&vt, 2, " all was well ");
    vt_gone(&vt, "all is well");
    vt_keys(&vt, "!");
    vt_want(&vt, "nothing needed attention ");
    con_quit(&vt);
    con_spawn(&vt, 45, 140, (const char *const[]){"--tv", "--interval", "1h", NULL}, NULL);
    vt_want_row(&vt, 1, "1 thing needs attention");
    con_quit(&vt);
}

/* The console also looks for trouble that the open screen does not show: here trouble begins while
 * another screen is in front. */
static void
trouble_is_counted_elsewhere(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail", 1, "no reply");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "all is well");
    vt_keys(&vt, "6");
    vt_want_row(&vt, 1, "[6 Audit");
    trouble();
    vt_want_row(&vt, 0, "1 BAD 1 WARN");
    vt_want_row(&vt, 1, "3 Failed▲ 4 Nodes×");
    con_quit(&vt);
}

/* The selected row is the worst one: its warning keeps its colour on the background of the
 * selection. */
static void
a_selected_row_keeps_its_colours(void **state)
{
    struct vt vt;
    int row, col;

    (void)state;
    trouble();
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "›× gone");
    vt_settle(&vt, 200);
    assert_true(vt_find(&vt, "›× gone", &row, &col));
    struct vt_cell mark = vt_cell(&vt, row, 1), name = vt_cell(&vt, row, 3);
    struct vt_cell title = vt_cell(&vt, row - 1, 3);
    assert_int_equal(mark.fg, 203);
    assert_int_equal(mark.bg, 236);
    assert_int_equal(name.bg, 236);
    assert_true(name.bold);
    assert_int_equal(title.bg, VT_DEFAULT);
    con_quit(&vt);
}

/* However narrow the terminal is, each screen has its tab, with the mark of the tab. */
static void
tabs_stay_and_carry_marks(void **state)
{
    static const int widths[] = {40, 60, 80, 140};
    struct vt vt;

    (void)state;
    trouble();
    for (int i = 0; i < 4; i++) {
        con_start(&vt, 20, widths[i], NULL);
        vt_want(&vt, "mail");
        vt_want_row(&vt, 1, "[1");
        vt_want_row(&vt, 1, widths[i] < 80 ? " 3▲ 4×" : "3 Failed▲ 4 Nodes×");
        for (int tab = 2; tab <= 8; tab++) {
            char digit[] = {' ', (char)('0' + tab), 0};
            assert_non_null(strstr(vt_row(&vt, 1), digit));
        }
        vt_keys(&vt, "2"); /* the marks stay on other screens */
        vt_want_row(&vt, 1, "[2");
        vt_want_row(&vt, 1, "×");
        con_quit(&vt);
    }
}

/* On a wall display the screens take turns by themselves; no key does anything, except q. */
static void
on_a_wall(void **state)
{
    static const char *const options[] = {"--tv", "--interval", "100ms", NULL};
    struct vt vt;

    (void)state;
    con_spawn(&vt, 45, 140, options, NULL);
    vt_want(&vt, "1 of 5: Queues");
    vt_want_row(&vt, 1, "all is well since ");
    vt_want(&vt, "OLDEST JOB WAITS");
    vt_keys(&vt, "p P a : N / 2");
    vt_want(&vt, "2 of 5: Nodes");
    vt_want(&vt, "no node");
    vt_want(&vt, "3 of 5: Failed");
    vt_want(&vt, "4 of 5: Sched");
    vt_want(&vt, "5 of 5: DB");
    vt_want(&vt, "1 of 5: Queues");
    con_failed("mail.send", 12, "boom");
    vt_want_row(&vt, 1, "1 thing needs attention");
    assert_int_equal(con_count("state = 'failed'"), 12);
    vt_resize(&vt, 20, 60);
    vt_want_row(&vt, 1, "needs attention");
    vt_gone(&vt, "OLDEST JOB WAITS");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_key_walks_all_alerts, con_empty),
        cmocka_unit_test_setup(an_alert_opens_without_a_filter, con_empty),
        cmocka_unit_test_setup(tab_walks_the_panes, con_empty),
        cmocka_unit_test_setup(the_cursor_keeps_its_alert, con_empty),
        cmocka_unit_test_setup(nothing_wrong_is_said, con_empty),
        cmocka_unit_test_setup(old_data_are_no_verdict, con_empty),
        cmocka_unit_test_setup(trouble_is_counted_elsewhere, con_empty),
        cmocka_unit_test_setup(a_selected_row_keeps_its_colours, con_empty),
        cmocka_unit_test_setup(tabs_stay_and_carry_marks, con_empty),
        cmocka_unit_test_setup(on_a_wall, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
