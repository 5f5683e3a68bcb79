/* The terminal driver of the tests itself, tried on small programs that every system has. */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/svg.h"
#include "tests/term.h"

static void
spawn_sh(struct vt *vt, const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    const char *env[] = {"HELLO=there", NULL};

    vt_spawn(vt, 5, 60, argv, env);
}

static void
shows_what_a_program_writes(void **state)
{
    struct vt vt;
    int row, col;

    (void)state;
    spawn_sh(&vt,
             "printf 'one\\n\\033[1;31mé→two\\033[0m '; echo $HELLO; stty size; read x; exit 3");
    vt_want(&vt, "two there");
    vt_want_row(&vt, 2, "5 60");
    assert_true(vt_find(&vt, "two", &row, &col));
    assert_int_equal(row, 1);
    assert_int_equal(col, 2);
    assert_string_equal(vt_cell(&vt, 1, 1).text, "→");
    assert_int_equal(vt_cell(&vt, 1, 1).fg, 1);
    assert_true(vt_cell(&vt, 1, 1).bold);
    assert_int_equal(vt_cell(&vt, 0, 0).fg, VT_DEFAULT);
    assert_string_equal(vt_row(&vt, 0), "one");
    vt_keys(&vt, "enter");
    vt_ended_well(&vt, 3);
    vt_done(&vt);
}

static void
types_keys(void **state)
{
    struct vt vt;

    (void)state;
    spawn_sh(&vt, "stty raw -echo; echo go; dd bs=1 count=16 2>/dev/null | od -An -tx1; stty sane");
    vt_want(&vt, "go");
    vt_keys(&vt, "a esc C-c text:bc up space f5 M-x");
    vt_want(&vt, "61 1b 03 62 63 1b");
    vt_want(&vt, "20 1b 5b 31 35 7e");
    vt_exit_status(&vt);
    vt_done(&vt);
}

static void
notices_bad_endings(void **state)
{
    struct vt vt;

    (void)state;
    spawn_sh(&vt, "printf '\\033[?1049h\\033[?25l\\033]8;;x\\007\\007\\033]2;t\\007'; kill -9 $$");
    assert_int_equal(vt_exit_status(&vt), 128 + SIGKILL);
    assert_true(vt.in_alt_screen);
    assert_false(vt.is_cursor_shown);
    assert_int_equal(vt.unknown, 1);
    assert_string_equal(vt.unknown_text, "OSC 8;;x");
    assert_int_equal(vt.bells, 1);
    assert_int_equal(vt.titles, 1);
    vt_done(&vt);
}

static void
sees_changed_modes(void **state)
{
    struct vt vt;
    struct termios after;

    (void)state;
    spawn_sh(&vt, "stty -icanon; exit 0");
    assert_int_equal(vt_exit_status(&vt), 0);
    tcgetattr(vt.slave, &after);
    assert_int_not_equal(after.c_lflag, vt.before.c_lflag);
    vt_done(&vt);
}

static void
resizes(void **state)
{
    struct vt vt;

    (void)state;
    spawn_sh(&vt, "trap 'stty size' WINCH; echo go; while read x; do echo $x; done; read x");
    vt_want(&vt, "go");
    vt_resize(&vt, 7, 30);
    vt_keys(&vt, "text:k enter");
    vt_want(&vt, "7 30");
    vt_done(&vt);
}

static void
text_goes(void **state)
{
    struct vt vt;

    (void)state;
    spawn_sh(&vt, "printf here; read x; printf '\\033[2J'; read x");
    vt_want(&vt, "here");
    assert_false(vt_came(&vt, "nowhere", 20));
    vt_keys(&vt, "enter");
    vt_gone(&vt, "here");
    vt_done(&vt);
}

static void
golden_screen(void **state)
{
    struct vt vt;

    (void)state;
    spawn_sh(&vt, "printf '\\033[44;97mblue\\033[0m \\033[7mback\\033[0m\\n日本 ok'; read x");
    vt_want(&vt, "ok");
    vt_golden(&vt, "driver");
    vt_done(&vt);
}

static void
picture_is_the_same_twice(void **state)
{
    char path[2][300], bytes[2][20000] = {"", ""};
    size_t len[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct vt vt;
        spawn_sh(&vt, "printf '\\033[44ma <b> ▅─⣿ \\033[1mc'; read x");
        vt_want(&vt, "c");
        snprintf(path[i], sizeof path[i], "%s/%d.svg", getenv("TMPDIR"), i);
        assert_true(svg_write(&vt, path[i]));
        vt_done(&vt);
        FILE *f = fopen(path[i], "re");
        assert_non_null(f);
        len[i] = fread(bytes[i], 1, sizeof bytes[i] - 1, f);
        fclose(f);
        remove(path[i]);
    }
    assert_int_equal(len[0], len[1]);
    assert_string_equal(bytes[0], bytes[1]);
    assert_non_null(strstr(bytes[0], ">a &lt;b&gt;</text>"));
    assert_null(strstr(bytes[0], "▅"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_what_a_program_writes),
        cmocka_unit_test(types_keys),
        cmocka_unit_test(notices_bad_endings),
        cmocka_unit_test(sees_changed_modes),
        cmocka_unit_test(resizes),
        cmocka_unit_test(text_goes),
        cmocka_unit_test(golden_screen),
        cmocka_unit_test(picture_is_the_same_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
