/*
 * The terminal layer alone, in a real terminal: what is drawn and in which colours, keys, paste,
 * sizes, Ctrl-Z, and that every way out leaves the terminal as it was. The program under test is
 * this program, started again with a word.
 */
#include "tests/harness.h"

#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/loop.h"
#include "tests/term.h"
#include "ui/term/term.h"

/* --- the program ------------------------------------------------------------------------------ */

struct program {
    struct loop *loop;
    struct term *term;
    struct grid *grid;
    char said[300]; /* words of the last keys */
    int frames;
};

static void
draw(void *ctx)
{
    struct program *p = ctx;
    struct rect r = grid_rect(p->grid);
    int w, h;

    term_size(p->term, &w, &h);
    if (w != r.w || h != r.h)
        grid_resize(p->grid, w, h);
    grid_clear(p->grid);
    grid_box(p->grid, grid_rect(p->grid), ROLE_BORDER, NULL);
    grid_printf(p->grid, (struct rect){1, 1, w - 2, 1}, ROLE_BAD, "size %dx%d", w, h);
    grid_str(p->grid, (struct rect){1, 2, w - 2, 1}, ROLE_SELECTED,
             "日本 e\u0301 ● ▁▂\033[31m\u202E");
    grid_printf(p->grid, (struct rect){1, 3, w - 2, 1}, ROLE_TEXT, "keys%s", p->said);
    grid_cursor(p->grid, 1, 2);
    term_draw(p->term, p->grid);
}

static void
command(struct program *p, const struct key *k)
{
    if (key_is(k, "q"))
        loop_stop(p->loop);
    if (key_is(k, "A"))
        abort();
    if (key_is(k, "E"))
        exit(3);
    if (key_is(k, "F"))
        raise(SIGFPE);
    if (key_is(k, "W"))
        fprintf(stderr, "a warning\n");
    if (key_is(k, "L")) {
        term_leave(p->term);
        printf("outside\n");
        fflush(stdout);
        term_enter(p->term);
    }
}

static void
on_input(void *ctx, short revents)
{
    struct program *p = ctx;
    struct key k;
    bool hung;

    (void)revents;
    while (term_read(p->term, &k, &hung)) {
        size_t n = strlen(p->said);
        if (k.code == KC_PASTE)
            snprintf(p->said + n, sizeof p->said - n, " [%.*s]", (int)k.paste_len, k.paste);
        else
            snprintf(p->said + n, sizeof p->said - n, " %s", key_word(&k).s);
        command(p, &k);
    }
    if (hung)
        loop_stop(p->loop);
}

static void
on_signal(void *ctx, int signo)
{
    struct program *p = ctx;

    if (signo == SIGTSTP)
        term_suspend(p->term);
    else if (signo == SIGWINCH)
        term_resized(p->term);
    else
        loop_stop(p->loop);
}

static int
program(const char *word)
{
    struct program p = {.loop = loop_new()};
    struct err e = {0};
    int status = 0;

    setlocale(LC_ALL, "");
    if (!term_open(&p.term, &(struct term_options){.sync = !strcmp(word, "sync")}, &e)) {
        fprintf(stderr, "%s\n", e.text);
        status = err_exit_code(&e);
    } else {
        p.grid = grid_new(1, 1, term_ascii(p.term));
        loop_watch(p.loop, term_fd(p.term), POLLIN, on_input, &p);
        loop_on_signal(p.loop, SIGTSTP, on_signal, &p);
        loop_on_signal(p.loop, SIGWINCH, on_signal, &p);
        loop_on_signal(p.loop, SIGTERM, on_signal, &p);
        loop_before_wait(p.loop, draw, &p);
        status = loop_run(p.loop, &e) ? 0 : 1;
        term_close(p.term);
    }
    loop_free(p.loop);
    grid_free(p.grid);
    return status;
}

/* --- the tests -------------------------------------------------------------------------------- */

static void
start(struct vt *vt, const char *word, const char *env)
{
    static char self[4096];
    const char *argv[] = {self, word, NULL}, *vars[] = {env, NULL};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    assert_true(n > 0);
    self[n] = 0;
    vt_spawn(vt, 10, 40, argv, env ? vars : NULL);
}

static void
test_draws(void **state)
{
    struct vt vt;
    int row, col;

    (void)state;
    start(&vt, "run", NULL);
    vt_want(&vt, "size 40x10");
    vt_want(&vt, "日本 e\u0301 ● ▁▂␛[31m\uFFFD");
    assert_true(vt.in_alt_screen && vt.is_cursor_shown);
    vt_cursor(&vt, &row, &col);
    assert_true(row == 2 && col == 1);
    assert_int_equal(vt_cell(&vt, 1, 1).fg, 203);
    assert_true(vt_cell(&vt, 1, 1).bold);
    assert_int_equal(vt_cell(&vt, 2, 1).bg, 39);
    assert_string_equal(vt_cell(&vt, 9, 39).text, "┘");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

static void
test_keys(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt, "sync", NULL);
    vt_want(&vt, "keys");
    vt_keys(&vt, "j up pgdn f8 C-c");
    vt_want(&vt, "keys j Up PgDn F8 C-c");
    vt_keys(&vt, "esc");
    vt_want(&vt, "C-c Esc");
    vt_paste(&vt, "a\033[Ab");
    vt_want(&vt, "Esc [a␛[Ab]");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

/* As after `su postgres -c queuetop`: the terminal belongs to another user, and the session has
 * none, so that neither its name nor /dev/tty can be opened. Root gives up the right to open it. */
static void
test_only_standard_files(void **state)
{
    static const char script[] =
        "chmod 000 \"$(tty)\"; test $(id -u) -ne 0 || drop='setpriv "
        "--bounding-set=-dac_override,-dac_read_search'; exec $drop setsid -w sh -c 'if true "
        "2>/dev/null </dev/tty; then echo has a terminal; else exec \"$0\" run; fi' \"$0\"";
    char self[4096];
    const char *argv[] = {"sh", "-c", script, self, NULL};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    struct vt vt;

    (void)state;
    assert_true(n > 0);
    self[n] = 0;
    vt_spawn(&vt, 10, 40, argv, NULL);
    vt_want(&vt, "size 40x10");
    assert_true(fcntl(vt.slave, F_GETFL) & O_NONBLOCK);
    vt_keys(&vt, "j up");
    vt_want(&vt, "keys j Up");
    vt_keys(&vt, "L");
    vt_want(&vt, "keys j Up L"); /* given back and taken again */
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    assert_false(fcntl(vt.slave, F_GETFL) & O_NONBLOCK);
    vt_done(&vt);
}

static void
test_sizes(void **state)
{
    static const int sizes[][2] = {
        {3,  20 },
        {1,  1  },
        {2,  200},
        {60, 2  },
        {50, 140},
        {10, 40 }
    };
    struct vt vt;
    char text[32];

    (void)state;
    start(&vt, "run", NULL);
    vt_want(&vt, "size 40x10");
    for (int i = 0; i < 6; i++) {
        vt_resize(&vt, sizes[i][0], sizes[i][1]);
        snprintf(text, sizeof text, "size %dx%d", sizes[i][1], sizes[i][0]);
        if (sizes[i][0] > 2 && sizes[i][1] > 14)
            vt_want(&vt, text);
    }
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

/* Frames that change nothing send next to nothing. */
static void
test_little_output(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt, "run", NULL);
    vt_want(&vt, "size 40x10");
    vt_settle(&vt, 50);
    size_t before = vt.raw_len;
    vt_keys(&vt, "j");
    vt_want(&vt, "keys j");
    assert_true(vt.raw_len - before < 100);
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

static void
test_leave_and_enter(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt, "run", NULL);
    vt_want(&vt, "size 40x10");
    vt_keys(&vt, "L x");
    vt_want(&vt, "keys L x");
    assert_non_null(memmem(vt.raw, vt.raw_len, "outside", 7));
    assert_true(vt.in_alt_screen);
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

static void
ends_with(const char *key, int status)
{
    struct vt vt;

    start(&vt, "run", NULL);
    vt_want(&vt, "size 40x10");
    vt_keys(&vt, key);
    vt_ended_well(&vt, status);
    vt_done(&vt);
}

static void
test_dies(void **state)
{
    (void)state;
    ends_with("E", 3);
    ends_with("A", 128 + SIGABRT);
}

static void
test_killed(void **state)
{
    static const int signals[] = {SIGTERM, SIGSEGV, SIGBUS, SIGQUIT, SIGINT};
    struct vt vt;

    (void)state;
    for (int i = 0; i < 5; i++) {
        start(&vt, "run", "ASAN_OPTIONS=handle_segv=0:handle_sigbus=0");
        vt_want(&vt, "size 40x10");
        vt_signal(&vt, signals[i]);
        vt_ended_well(&vt, signals[i] == SIGTERM ? 0 : 128 + signals[i]);
        vt_done(&vt);
    }
}

/* Under a shell with jobs: Ctrl-Z gives the terminal back, `bg` does not take it, `fg` does. */
static void
test_stops_and_goes_on(void **state)
{
    const char *argv[] = {"bash", "--norc", "--noediting", "-i", NULL};
    const char *env[] = {"HISTFILE=", "PS1=$ ", NULL};
    char self[4096], line[4200];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    struct vt vt;

    (void)state;
    assert_true(n > 0);
    self[n] = 0;
    vt_spawn(&vt, 10, 40, argv, env);
    vt_want(&vt, "$");
    snprintf(line, sizeof line, "%s run\n", self);
    vt_type(&vt, line);
    vt_want(&vt, "size 40x10");
    vt_keys(&vt, "j");
    vt_want(&vt, "keys j");
    vt_type(&vt, "\032");
    vt_want(&vt, "Stopped");
    assert_false(vt.in_alt_screen);
    vt_type(&vt, "clear; stty -a | grep -o ' icanon'; bg\n");
    vt_want(&vt, " icanon");
    vt_want(&vt, "run &");
    assert_false(vt.in_alt_screen);
    vt_type(&vt, "fg\n");
    vt_want(&vt, "keys j");
    assert_true(vt.in_alt_screen);
    vt_keys(&vt, "q");
    vt_gone(&vt, "size 40x10");
    vt_type(&vt, "exit 0\n");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

static void
test_warning_is_kept(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt, "run", NULL);
    vt_want(&vt, "size 40x10");
    vt_keys(&vt, "W x");
    vt_want(&vt, "keys W x");
    assert_null(memmem(vt.raw, vt.raw_len, "a warning", 9));
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    assert_non_null(memmem(vt.raw, vt.raw_len, "a warning", 9));
    vt_done(&vt);
}

static void
refuses(const char *env, const char *text)
{
    struct vt vt;

    start(&vt, "run", env);
    vt_want(&vt, text);
    assert_int_equal(vt_exit_status(&vt), 2);
    assert_null(memmem(vt.raw, vt.raw_len, "\033", 1));
    vt_done(&vt);
}

static void
test_refuses(void **state)
{
    (void)state;
    refuses("TERM=dumb", "TERM=dumb can't place text");
    refuses("TERM=nonsense", "unknown terminal");
}

static void
test_themes(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt, "run", "NO_COLOR=1");
    vt_want(&vt, "size 40x10");
    assert_int_equal(vt_cell(&vt, 1, 1).fg, VT_DEFAULT);
    assert_true(vt_cell(&vt, 1, 1).bold && vt_cell(&vt, 2, 1).reverse);
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    start(&vt, "run", "LC_ALL=C");
    vt_want(&vt, "?? e? * _.?[31m?");
    vt_want(&vt, "+------");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_only_standard_files),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_little_output),
        cmocka_unit_test(test_leave_and_enter),
        cmocka_unit_test(test_dies),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stops_and_goes_on),
        cmocka_unit_test(test_warning_is_kept),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_themes),
    };

    if (argc > 1)
        return program(argv[1]);
    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
