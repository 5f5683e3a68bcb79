/*
 * Manners: settings that last, themes, the mouse where it was asked for, the least terminal, a slow
 * line, rows that stay where they are when a figure grows.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/mem.h"

static char home[200], config_env[260], state_env[260];

static int
setup(void **state)
{
    static int n;

    snprintf(home, sizeof home, "%s/manners.%d.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid(), ++n);
    snprintf(config_env, sizeof config_env, "XDG_CONFIG_HOME=%s", home);
    snprintf(state_env, sizeof state_env, "XDG_STATE_HOME=%s", home);
    assert_int_equal(mkdir(home, 0700), 0);
    return con_empty(state);
}

static int
teardown(void **state)
{
    static const char *const files[] = {"/queuetop/config", "/queuetop/state", "/queuetop", ""};
    char path[300];

    (void)state;
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", home, files[i]);
        remove(path);
    }
    return 0;
}

static void
write_config(const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/queuetop", home);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/queuetop/config", home);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void
start(struct vt *vt, const char *const *options)
{
    con_spawn(vt, 24, 80, options, (const char *const[]){config_env, state_env, NULL});
    vt_want(vt, "ready");
    vt_want(vt, "live");
}

static void
file_settles(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    write_config("interval = 5s\nutc = yes\ncolour = red\ntheme = contrast\n");
    start(&vt, NULL);
    vt_want(&vt, "live, each 5s");
    vt_want(&vt, "config:3: colour: no such setting");
    const char *header = vt_row(&vt, 0);
    assert_int_equal(header[strlen(header) - 1], 'Z');
    assert_int_equal(vt_cell(&vt, 3, 1).bg, 16);
    vt_keys(&vt, "8");
    vt_want(&vt, "no such setting");
    con_quit(&vt);
    start(&vt, (const char *const[]){"--interval", "2s", "--theme", "dark", NULL});
    vt_want(&vt, "live, each 2s"); /* options override the file */
    assert_int_equal(vt_cell(&vt, 3, 1).bg, VT_DEFAULT);
    con_quit(&vt);
}

/* The block of settings in queuetop-console(7), as it is pasted. */
static void
paste_from_page(void)
{
    char path[4096], line[500];
    struct buf block = {0};
    bool inside = false, is_block = false;

    snprintf(path, sizeof path, "%s/docs/queuetop-console.7.md", getenv("SRCDIR"));
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (*line == '#')
            inside = !strcmp(line, "## Settings\n");
        is_block = !strncmp(line, "    ", 4) || (is_block && *line == '\n');
        if (inside && is_block)
            buf_str(&block, line);
    }
    fclose(f);
    assert_non_null(strstr(block.data, "production = yes "));
    write_config(block.data);
    buf_free(&block);
}

static void
page_settles(void **state)
{
    char service[300], file[320];
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    paste_from_page();
    snprintf(service, sizeof service, "%s/service", home);
    FILE *f = fopen(service, "we");
    assert_non_null(f);
    fputs("[prod]\napplication_name=x\n", f);
    fclose(f);
    snprintf(file, sizeof file, "PGSERVICEFILE=%s", service);
    con_spawn(&vt, 24, 140, NULL, /* room for the clock, also where the console slows itself down */
              (const char *const[]){config_env, state_env, "PGSERVICE=prod", file, NULL});
    vt_want(&vt, "PRODUCTION");
    vt_want(&vt, "live, each 2s");
    const char *header = vt_row(&vt, 0);
    assert_int_equal(header[strlen(header) - 1], 'Z');
    assert_null(strstr(header, "PRODUCTION?"));
    assert_int_equal(vt_cell(&vt, 3, 1).bg, 16); /* theme = contrast */
    vt_keys(&vt, "8");
    vt_settle(&vt, 60);
    int row, col;
    assert_false(vt_find(&vt, "config:", &row, &col));
    con_quit(&vt);
    unlink(service);
}

/* A section [name of the database], with one line. */
static void
write_section(const char *line)
{
    char text[200];

    snprintf(text, sizeof text, "interval = 2s\n[%s]\n%s\n", PQdb(con_db()), line);
    write_config(text);
}

/* The name of the database is only in the service file. */
static void
name_in_a_service_file_protects(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), "service=s", NULL};
    char service[300], file[320];
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    write_section("production = yes");
    snprintf(service, sizeof service, "%s/service", home);
    FILE *f = fopen(service, "we");
    assert_non_null(f);
    fprintf(f, "[s]\nhost=%s\nuser=postgres\ndbname=%s\n", pg_host(), PQdb(con_db()));
    fclose(f);
    snprintf(file, sizeof file, "PGSERVICEFILE=%s", service);
    vt_spawn(&vt, 24, 140, argv, (const char *const[]){config_env, state_env, file, NULL});
    vt_want(&vt, "ready 2");
    vt_want_row(&vt, 0, "PRODUCTION  ");
    vt_keys(&vt, "p");
    vt_want(&vt, "reason");
    vt_keys(&vt, "enter");
    vt_want(&vt, "Type the name");
    vt_keys(&vt, "esc");
    con_quit(&vt);
    unlink(service);
}

/* Nobody says the name of the database: it is that of the role. A slip of the pen protects here,
 * too. */
static void
name_of_the_role_protects(void **state)
{
    const char *name = PQdb(con_db());
    const char *argv[] = {getenv("QUEUETOP"), "-h", pg_host(), "-U", name, NULL};
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    pg_run(con_db(), "create role %s superuser login", name);
    write_section("read-only = yess");
    vt_spawn(&vt, 24, 140, argv, (const char *const[]){config_env, state_env, NULL});
    vt_want(&vt, "live, each 2s");
    vt_want_row(&vt, 0, "READ-ONLY");
    vt_keys(&vt, "p");
    vt_want(&vt, "pause: started with --read-only");
    vt_keys(&vt, "8");
    vt_want(&vt, "config:3: read-only: is yes or no");
    vt_want(&vt, "config:3: so read-only is on");
    con_quit(&vt);
    pg_run(con_db(), "drop role %s", name);
}

/* A section of another name protects nothing, and none takes --production back. */
static void
other_names_protect_nothing(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    write_config("[other]\nproduction = yes\nread-only = yes\n");
    start(&vt, NULL);
    assert_null(strstr(vt_row(&vt, 0), "PRODUCTION"));
    assert_null(strstr(vt_row(&vt, 0), "READ-ONLY"));
    con_quit(&vt);
    write_section("production = no");
    start(&vt, (const char *const[]){"--production", NULL});
    vt_want_row(&vt, 0, "PRODUCTION  ");
    con_quit(&vt);
}

static void
slip_of_the_pen_protects(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    write_config("production = yess\n");
    con_spawn(&vt, 24, 160, NULL, (const char *const[]){config_env, state_env, NULL});
    vt_want(&vt, "PRODUCTION?");
    vt_want(&vt, "ready 2");
    vt_keys(&vt, "p");
    vt_want(&vt, "reason");
    vt_keys(&vt, "enter");
    vt_want(&vt, "Type the name");
    vt_keys(&vt, "esc");
    vt_keys(&vt, "8");
    vt_want(&vt, "config:1: production: is yes or no");
    vt_want(&vt, "config:1: so production is on");
    con_quit(&vt);
    write_config("read-only = on # look only\n");
    start(&vt, NULL);
    vt_want(&vt, "READ-ONLY");
    con_quit(&vt);
}

static void
remembers_order(void **state)
{
    struct vt vt;
    int row, col;

    (void)state;
    con_ready("a.few", 1);
    con_ready("b.many", 9);
    start(&vt, NULL);
    vt_want(&vt, "OLDEST↓");
    vt_keys(&vt, ">");
    vt_gone(&vt, "OLDEST↓");
    vt_keys(&vt, "I");
    vt_settle(&vt, 60);
    char titles[200];
    snprintf(titles, sizeof titles, "%s", vt_row(&vt, 3));
    con_quit(&vt);
    start(&vt, NULL);
    vt_want_row(&vt, 3, titles);
    assert_false(vt_find(&vt, "OLDEST↓", &row, &col));
    con_quit(&vt);
}

static void
mouse_looks(void **state)
{
    struct vt vt;
    int row, col;

    (void)state;
    con_ready("a.first", 1);
    con_ready("b.second", 2);
    con_ready("c.third", 3);
    start(&vt, (const char *const[]){"--mouse", NULL});
    vt_want(&vt, "c.third");
    assert_true(vt_find(&vt, "QUEUE", &row, &col));
    vt_type(&vt, "\033[<0;4;4M\033[<0;4;4m"); /* the title: by name */
    vt_want(&vt, "QUEUE↑");
    vt_type(&vt, "\033[<0;10;7M");
    vt_settle(&vt, 60);
    vt_cursor(&vt, &row, &col);
    assert_int_equal(row, 6);
    vt_type(&vt, "\033[<64;10;7M"); /* the wheel */
    vt_settle(&vt, 60);
    vt_cursor(&vt, &row, &col);
    assert_int_equal(row, 4);
    vt_type(&vt, "\033[<0;14;2M"); /* a tab */
    vt_want(&vt, "unfinished jobs");
    vt_keys(&vt, "1 : ");
    vt_type(&vt, "\033[<0;14;2M"); /* in a box a click does nothing */
    vt_settle(&vt, 60);
    vt_keys(&vt, "esc");
    vt_want_row(&vt, 1, "[1 Queues");
    con_quit(&vt);
    start(&vt, NULL); /* not asked for: the terminal keeps its own selection */
    assert_null(memmem(vt.raw, vt.raw_len, "\033[?1000h", 8));
    con_quit(&vt);
}

static void
any_terminal(void **state)
{
    static const char *const terms[] = {"TERM=vt100", "TERM=linux", "TERM=xterm-256color",
                                        "TERM=screen", "TERM=tmux-256color"};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom");
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        con_spawn(&vt, 20, 60, (const char *const[]){"--mouse", NULL},
                  (const char *const[]){terms[i], NULL});
        vt_want(&vt, "mail.send");
        vt_keys(&vt, "2");
        vt_want(&vt, "1 of 2");
        vt_keys(&vt, "3");
        vt_want(&vt, "boom");
        vt_keys(&vt, "4 1");
        vt_want_row(&vt, 1, "[1 Queues");
        vt_keys(&vt, "q");
        assert_int_equal(vt_exit_status(&vt), 0);
        vt_done(&vt);
    }
}

/* Lines in, lines out; no sequence moves anything. */
static void
line_mode(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom");
    con_spawn(&vt, 24, 80, (const char *const[]){"--plain", NULL},
              (const char *const[]){"TERM=dumb", NULL});
    vt_want(&vt, "queuetop>");
    vt_type(&vt, "queues\r");
    vt_want(&vt, "mail.send");
    assert_null(memchr(vt.raw, '\033', vt.raw_len));
    vt_type(&vt, "requeue --queue mail.send --expect 2 --yes\r");
    vt_want(&vt, "2 jobs");
    vt_type(&vt, "jobs 'no end\r");
    vt_want(&vt, "a quote has no end");
    vt_type(&vt, "nonsense\r");
    vt_want(&vt, "there is no verb 'nonsense'");
    vt_type(&vt, "quit\r");
    vt_exit_status(&vt);
    vt_done(&vt);
    assert_int_equal(con_count("state = 'ready'"), 2);
}

/* 9600 baud are 960 bytes a second. If all figures of a screen change, a refresh needs less than
 * half of that; if none changes, next to nothing. */
static void
slow_line(void **state)
{
    struct vt vt;

    (void)state;
    for (int i = 0; i < 18; i++) {
        char name[32];
        snprintf(name, sizeof name, "queue%02d.work", i);
        con_ready(name, 5);
    }
    con_start(&vt, 27, 80, NULL);
    vt_want(&vt, "queue17");
    assert_false(vt_came(&vt, "what never comes", 1500));
    size_t before = vt.raw_len;
    int64_t start_ms = clock_ms();
    for (int i = 0; i < 4; i++) {
        pg_run(con_db(), "insert into queue (queue, payload) select 'queue' || to_char(i %% 18, "
                         "'FM00') || '.work', '{}' from generate_series(1, 90) i");
        assert_false(vt_came(&vt, "what never comes", 1000));
    }
    size_t a_second = (vt.raw_len - before) * 1000 / (size_t)(clock_ms() - start_ms);
    print_message("18 queues that all move: %zu bytes a second\n", a_second);
    assert_in_range(a_second, 1, 960);
    con_quit(&vt);
}

/* The columns keep their places when a figure gets three more digits. */
static void
no_jump(void **state)
{
    struct vt vt;
    char titles[200];

    (void)state;
    con_ready("mail.send", 9);
    start(&vt, NULL);
    vt_want(&vt, "ready 9");
    snprintf(titles, sizeof titles, "%s", vt_row(&vt, 3));
    pg_run(con_db(), "insert into queue (queue, payload) select 'mail.send', '{}' "
                     "from generate_series(1, 12000)");
    vt_want(&vt, "ready 12,009");
    vt_settle(&vt, 30);
    assert_string_equal(vt_row(&vt, 3), titles);
    con_quit(&vt);
}

/* --- alert_program ---------------------------------------------------------------------------- */

static void
write_program(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static char heard_text[100000];

static int
count_in(const char *path, const char *text)
{
    char *all = heard_text;
    FILE *f = fopen(path, "re");
    int n = 0;

    if (!f)
        return 0;
    all[fread(all, 1, sizeof heard_text - 1, f)] = 0;
    assert_int_equal(fclose(f), 0);
    for (const char *at = all; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

/* Waits until the program has heard the text n times. */
static void
wait_for_text(struct vt *vt, const char *path, const char *text, int n)
{
    for (int i = 0; count_in(path, text) < n; i++) {
        assert_false(vt_came(vt, "what never comes", 100));
        if (i > VT_WAIT_MS / 100)
            fail_msg("not %d times %s in\n%s", n, text, heard_text);
    }
}

/* A program for alerts that appends its input to the file `heard`, and then does what `ending`
 * says. */
static void
write_hook(char *heard, size_t size, const char *ending)
{
    char hook[300], text[1000];

    snprintf(hook, sizeof hook, "%s/hook", home);
    snprintf(heard, size, "%s/heard", home);
    snprintf(text, sizeof text, "#!/bin/sh\ncat >>%s\n%s\n", heard, ending);
    write_program(hook, text);
    snprintf(text, sizeof text, "alert_program = %s\nalert_after = 100ms\n", hook);
    write_config(text);
}

static void
remove_hook(const char *heard)
{
    char hook[300];

    snprintf(hook, sizeof hook, "%s/hook", home);
    assert_int_equal(unlink(hook), 0);
    assert_int_equal(unlink(heard), 0);
}

static void
requeue_all(void)
{
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id), false, null) from queue");
}

static void
alerts_are_sent(void **state)
{
    char heard[300];
    struct vt vt;

    (void)state;
    write_hook(heard, sizeof heard, "");
    start(&vt, NULL);
    vt_want(&vt, "all is well");
    con_failed("fax \"1\"; touch x", 12, "no paper"); /* no shell reads it */
    vt_want_row(&vt, 0, "1 WARN");
    wait_for_text(&vt, heard, "{\"event\": \"appeared\", \"level\": \"warn\", \"for_ms\": ", 1);
    wait_for_text(&vt, heard, "\"screen\": \"failed\", \"row\": \"fax \\\"1\\\"; touch x\"", 1);
    requeue_all();
    wait_for_text(&vt, heard, "{\"event\": \"gone\", \"level\": \"warn\"", 1);
    con_failed("fax", 12, "no paper");
    wait_for_text(&vt, heard, "\"event\": \"appeared\"", 2);
    con_quit(&vt);
    remove_hook(heard);
}

/* The alerts of a failed run are sent again until a run succeeds, then not again. */
static void
a_failed_alert_run_is_repeated(void **state)
{
    static const char failed[] = "\"screen\": \"failed\", \"row\": \"fax\"";
    char heard[300], broken[300], ending[340];
    struct vt vt;

    (void)state;
    snprintf(broken, sizeof broken, "%s/broken", home);
    snprintf(ending, sizeof ending, "test ! -e %s", broken);
    write_hook(heard, sizeof heard, ending);
    write_program(broken, "");
    con_failed("fax", 12, "no paper");
    start(&vt, NULL);
    vt_want(&vt, "alert_program: exit code 1");
    wait_for_text(&vt, heard, "\"appeared\", \"level\": \"warn\"", 3);
    assert_int_equal(unlink(broken), 0);
    vt_want(&vt, "alert_program works again, after");
    int appeared = count_in(heard, failed);
    write_program(broken, "");
    requeue_all();
    wait_for_text(&vt, heard, failed, appeared + 2); /* that it is gone */
    vt_want(&vt, "alert_program: exit code 1");      /* it is said again after a good run */
    assert_int_equal(unlink(broken), 0);
    vt_want(&vt, "alert_program works again, after");
    int told = count_in(heard, failed);
    con_failed("mail", 12, "boom");
    wait_for_text(&vt, heard, "\"row\": \"mail\"", 1);
    assert_int_equal(count_in(heard, failed), told);
    con_quit(&vt);
    remove_hook(heard);
}

/* An error of the program is reported once, and stops nothing else. */
static void
a_bad_alert_program(void **state)
{
    char heard[300];
    struct vt vt;

    (void)state;
    write_hook(heard, sizeof heard, "echo out of credit >&2; exit 7");
    con_failed("fax", 12, "no paper");
    start(&vt, NULL);
    vt_want(&vt, "exit code 7: out of credit");
    wait_for_text(&vt, heard, "\"appeared\"", 2);
    vt_keys(&vt, "8");
    vt_want(&vt, "out of credit");
    vt_settle(&vt, 60);
    int said = 0;
    for (int i = 2; i < 22; i++) /* the list of messages */
        said += strstr(vt_row(&vt, i), "out of credit") != NULL;
    assert_int_equal(said, 1);
    con_quit(&vt);
    write_config("alert_program = hook\n");
    start(&vt, NULL);
    vt_want(&vt, "the path must begin with /");
    con_quit(&vt);
    remove_hook(heard);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_settles, setup, teardown),
        cmocka_unit_test_setup_teardown(page_settles, setup, teardown),
        cmocka_unit_test_setup_teardown(name_in_a_service_file_protects, setup, teardown),
        cmocka_unit_test_setup_teardown(name_of_the_role_protects, setup, teardown),
        cmocka_unit_test_setup_teardown(other_names_protect_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(slip_of_the_pen_protects, setup, teardown),
        cmocka_unit_test_setup_teardown(remembers_order, setup, teardown),
        cmocka_unit_test_setup_teardown(mouse_looks, setup, teardown),
        cmocka_unit_test_setup_teardown(any_terminal, setup, teardown),
        cmocka_unit_test_setup_teardown(line_mode, setup, teardown),
        cmocka_unit_test_setup_teardown(slow_line, setup, teardown),
        cmocka_unit_test_setup_teardown(no_jump, setup, teardown),
        cmocka_unit_test_setup_teardown(alerts_are_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_alert_run_is_repeated, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_alert_program, setup, teardown),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
