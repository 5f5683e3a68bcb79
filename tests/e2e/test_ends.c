/*
 * Sizes, terminals and ends: the terminal is put back whatever way the program goes, a storm of
 * sizes breaks nothing, and poorer terminals still show everything in words.
 */
#include "tests/e2e/console.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
ends_by_signal(void **state)
{
    static const int signals[] = {SIGTERM, SIGHUP};
    struct vt vt;

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        con_start(&vt, 24, 80, NULL);
        vt_signal(&vt, signals[i]);
        vt_ended_well(&vt, 128 + signals[i]);
        vt_done(&vt);
    }
}

static void
crashes_tidily(void **state)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE};
    static const char *const env[] = {"ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0",
                                      NULL};
    struct vt vt;

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        con_spawn(&vt, 24, 80, NULL, env);
        vt_want(&vt, "live");
        vt_signal(&vt, signals[i]);
        assert_int_equal(vt_exit_status(&vt), 128 + signals[i]);
        assert_false(vt.in_alt_screen);
        assert_true(vt.is_cursor_shown);
        struct termios now;
        assert_int_equal(tcgetattr(vt.slave, &now), 0);
        assert_int_equal(now.c_lflag, vt.before.c_lflag);
        assert_int_equal(now.c_iflag, vt.before.c_iflag);
        vt_done(&vt);
    }
}

static void
survives_sizes(void **state)
{
    static const int sizes[][2] = {
        {1,   1  },
        {2,   2  },
        {1,   300},
        {100, 1  },
        {3,   40 },
        {9,   39 },
        {10,  40 },
        {11,  41 },
        {20,  60 },
        {24,  80 },
        {45,  140},
        {36,  120},
        {37,  119},
        {100, 300},
        {5,   200}
    };
    const char *screens[] = {"1",   "2",           "3",     "4",     "6",     "8",
                             "? G", "esc 2 enter", "esc a", "esc :", "esc v", "esc /"};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_start(&vt, 24, 80, NULL);
    for (size_t s = 0; s < sizeof screens / sizeof *screens; s++) {
        vt_keys(&vt, screens[s]);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            vt_resize(&vt, sizes[i][0], sizes[i][1]);
            vt_keys(&vt, "down");
            vt_pump(&vt);
        }
        vt_resize(&vt, 8, 39);
        vt_want(&vt, "40x10 needed, have 39x8");
        vt_resize(&vt, 24, 80);
        vt_gone(&vt, "needed");
    }
    vt_keys(&vt, "esc esc 1");
    vt_want_row(&vt, 1, "[1 Queues");
    con_quit(&vt);
}

static bool
has_colour(const struct vt *vt)
{
    for (int r = 0; r < vt->rows; r++)
        for (int c = 0; c < vt->cols; c++) {
            struct vt_cell cell = vt_cell(vt, r, c);
            if (cell.fg != VT_DEFAULT || cell.bg != VT_DEFAULT)
                return true;
        }
    return false;
}

static void
keeps_to_words_without_colour(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_spawn(&vt, 24, 80, NULL, (const char *const[]){"NO_COLOR=1", NULL});
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "2");
    vt_want(&vt, "× failed");
    assert_false(has_colour(&vt));
    con_quit(&vt);
    con_spawn(&vt, 24, 80, NULL, (const char *const[]){"NO_COLOR=", NULL});
    vt_want(&vt, "mail.send");
    assert_true(has_colour(&vt));
    con_quit(&vt);
}

static bool
is_ascii(const struct vt *vt)
{
    for (size_t i = 0; i < vt->raw_len; i++)
        if ((unsigned char)vt->raw[i] >= 0x80)
            return false;
    return true;
}

static void
falls_back_to_ascii(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_spawn(&vt, 24, 80, (const char *const[]){"--ascii", NULL}, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "2");
    vt_want(&vt, "x failed");
    vt_keys(&vt, "3 4 6 8 ?");
    vt_want(&vt, "Everywhere");
    vt_keys(&vt, "esc");
    assert_true(is_ascii(&vt));
    con_quit(&vt);
    con_spawn(&vt, 24, 80, NULL, (const char *const[]){"LC_ALL=C", NULL});
    vt_want(&vt, "mail.send");
    assert_true(is_ascii(&vt));
    con_quit(&vt);
}

static void
runs_on_poor_terminals(void **state)
{
    static const char *const terms[] = {"TERM=vt100", "TERM=linux", "TERM=xterm", "TERM=screen"};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        con_spawn(&vt, 24, 80, NULL, (const char *const[]){terms[i], NULL});
        vt_want(&vt, "mail.send");
        vt_keys(&vt, "2");
        vt_want(&vt, "failed");
        vt_keys(&vt, "q");
        assert_int_equal(vt_exit_status(&vt), 0);
        vt_done(&vt);
    }
    con_spawn(&vt, 24, 80, NULL, (const char *const[]){"TERM=dumb", NULL});
    assert_int_not_equal(vt_exit_status(&vt), 0);
    assert_true(vt_came(&vt, "dumb", 60000));
    vt_done(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ends_by_signal, con_empty),
        cmocka_unit_test_setup(crashes_tidily, con_empty),
        cmocka_unit_test_setup(survives_sizes, con_empty),
        cmocka_unit_test_setup(keeps_to_words_without_colour, con_empty),
        cmocka_unit_test_setup(falls_back_to_ascii, con_empty),
        cmocka_unit_test_setup(runs_on_poor_terminals, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
