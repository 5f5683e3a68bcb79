/*
 * What leaves the screen: y and Y to the clipboard of the terminal, also from inside tmux and
 * screen; f, the row in full; l, the limits of a queue as a form.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The last OSC 52 among the bytes, decoded; what stands around it is for the caller to look at. */
static const char *
copied(const struct vt *vt)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static char text[100000];
    const char *at = NULL, *next = vt->raw, *end = vt->raw + vt->raw_len;
    unsigned v = 0;
    size_t n = 0;
    int bits = 0;

    while ((next = memmem(next, (size_t)(end - next), "]52;c;", 6)))
        at = next += 6;
    assert_non_null(at);
    for (const char *d; at < end && *at && (d = strchr(digits, *at)); at++) {
        v = v << 6 | (unsigned)(d - digits);
        bits += 6;
        if (bits >= 8)
            text[n++] = (char)(v >> (bits -= 8));
    }
    text[n] = 0;
    return text;
}

static bool
has_bytes(const struct vt *vt, const char *bytes, size_t len)
{
    return memmem(vt->raw, vt->raw_len, bytes, len) != NULL;
}

static void
start(struct vt *vt, const char *term, const char *tmux)
{
    char var[60], mux[60];
    const char *const env[] = {var, mux, NULL};

    snprintf(var, sizeof var, "TERM=%s", term);
    snprintf(mux, sizeof mux, "TMUX=%s", tmux);
    con_spawn(vt, 24, 80, (const char *const[]){"--clipboard", NULL}, env);
    vt_want(vt, "mail.send");
}

static void
copies_rows(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    start(&vt, "xterm-256color", "");
    vt_keys(&vt, "Y");
    vt_want(&vt, "copied: the row as JSON");
    assert_non_null(strstr(copied(&vt), "{\"queue\": \"mail.send\""));
    assert_non_null(strstr(copied(&vt), "\"failed\": 1"));
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "Y");
    vt_settle(&vt, 100);
    assert_string_equal(pg_value(con_db(),
                                 "select j ->> 'id' = q.id::text and j ->> 'state' = 'failed' "
                                 "and (j ->> 'created')::timestamptz between q.created - "
                                 "interval '1 s' and q.created + interval '1 s' from (select "
                                 "$x$%s$x$::jsonb as j) x, queue q",
                                 copied(&vt)),
                        "t");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "Y");
    vt_settle(&vt, 100);
    assert_string_equal(
        pg_value(con_db(), "select $x$%s$x$::jsonb -> 'payload' ->> 'note'", copied(&vt)), "job 1");
    vt_keys(&vt, "y");
    vt_settle(&vt, 100);
    assert_string_equal(copied(&vt), pg_value(con_db(), "select id::text from queue"));
    vt_keys(&vt, "8");
    vt_want(&vt, "in this session");
    vt_keys(&vt, "Y");
    vt_settle(&vt, 100);
    assert_non_null(strstr(copied(&vt), "copied: "));
    assert_false(has_bytes(&vt, "\033P", 2));
    vt_keys(&vt, "q");
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);
}

/* tmux hands on what is wrapped for it, each ESC twice; screen in short parts. */
static void
copies_through_multiplexers(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    start(&vt, "tmux-256color", "/tmp/tmux,1,0");
    vt_keys(&vt, "y");
    vt_want(&vt, "copied: mail.send");
    assert_true(has_bytes(&vt, "\033Ptmux;\033\033]52;c;bWFpbC5zZW5k\a\033\\", 30));
    vt_keys(&vt, "q");
    vt_exit_status(&vt);
    vt_done(&vt);
    start(&vt, "screen-256color", "");
    vt_keys(&vt, "y");
    vt_want(&vt, "copied: mail.send");
    assert_true(has_bytes(&vt, "\033P\033]52;c;bWFpbC5zZW5k\a\033\\", 24));
    vt_keys(&vt, "q");
    vt_exit_status(&vt);
    vt_done(&vt);
}

/* The whole way through a real tmux: screens, keys, an editor in between, the clipboard. */
static void
works_in_tmux(void **state)
{
    char conf[300], sock[300];
    const char *argv[] = {
        "tmux",        "-S",      sock, "-f", conf, "new-session", getenv("QUEUETOP"),
        "--clipboard", con_dsn(), NULL};
    const char *const env[] = {"VISUAL=sed -i s/job/JOB/", "TMUX=", NULL};
    struct vt vt;

    (void)state;
    if (access("/usr/bin/tmux", X_OK) != 0)
        skip();
    con_failed("mail.send", 1, "boom");
    snprintf(sock, sizeof sock, "%s/tmux.sock", getenv("TMPDIR"));
    snprintf(conf, sizeof conf, "%s/tmux.conf", getenv("TMPDIR"));
    FILE *f = fopen(conf, "we");
    assert_non_null(f);
    fputs("set -g default-terminal tmux-256color\nset -g allow-passthrough on\n"
          "set -g status off\nset -s escape-time 0\nset -g set-clipboard off\n",
          f);
    fclose(f);
    vt_spawn(&vt, 24, 80, argv, env);
    vt_want(&vt, "mail.send");
    vt_want(&vt, "live");
    vt_keys(&vt, "y");
    vt_want(&vt, "copied: mail.send");
    assert_string_equal(copied(&vt), "mail.send");
    vt_keys(&vt, "3");
    vt_want(&vt, "boom");
    vt_type(&vt, "\033[1;3D"); /* Alt-Left */
    vt_want_row(&vt, 1, "[1 Queues");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "e");
    vt_want(&vt, "JOB 1");
    vt_keys(&vt, "y");
    vt_want(&vt, "edit: 1 job ready");
    vt_resize(&vt, 30, 100);
    vt_want_row(&vt, 29, "help");
    vt_keys(&vt, "q");
    vt_exit_status(&vt);
    vt_done(&vt);
    unlink(conf);
    unlink(sock);
    assert_int_equal(con_count("payload ->> 'note' = 'JOB 1'"), 1);
}

/* A terminal takes a limited number of bytes: the console reports how much of the text was cut. */
static void
says_how_much_was_copied(void **state)
{
    struct vt vt;

    (void)state;
    pg_run(con_db(), "select push('mail.send', json_build_object('x', repeat('é', 50000)))");
    start(&vt, "xterm-256color", "");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "Y");
    vt_want(&vt, "copied the first 64");
    vt_keys(&vt, "q");
    vt_exit_status(&vt);
    vt_done(&vt);
}

/* Each member once, a time as a time, and a span of time as a number: in JSON and for people. */
static void
names_times_and_spans(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    con_node("n1", true);
    pg_run(con_db(), "update node set clock_ahead = interval '12 ms'");
    pg_run(con_db(), "select pause(gen_random_uuid(), 'mail.send', 'lunch')");
    pg_run(con_db(), "select schedule_set(gen_random_uuid(), 'daily', '{\"cron\": \"@daily\", "
                     "\"queue\": \"mail.send\"}')");
    start(&vt, "xterm-256color", "");
    vt_keys(&vt, "Y");
    vt_want(&vt, "copied: the row as JSON");
    assert_string_equal(
        pg_value(con_db(),
                 "select concat_ws(' ', count(*) = count(distinct k), max(j ->> 'paused'), "
                 "max(j ->> 'paused_at') ~ '^20') from (select $x$%s$x$::json as j) x, "
                 "json_object_keys(j) k",
                 copied(&vt)),
        "t true t");
    vt_keys(&vt, "4");
    vt_want(&vt, "n1");
    vt_keys(&vt, "f");
    vt_want(&vt, "clock_ahead_ms 12 ");
    assert_false(vt_find(&vt, "1970", NULL, NULL));
    vt_keys(&vt, "esc 5");
    vt_want(&vt, "@daily");
    vt_keys(&vt, "f");
    vt_want(&vt, "next_run      20");
    vt_keys(&vt, "esc q");
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);
}

static void
shows_rows_in_full(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1,
               "a very long error that no column of a screen of eighty cells can hold");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "a very long");
    assert_false(vt_find(&vt, "can hold", NULL, NULL));
    vt_keys(&vt, "f");
    vt_want(&vt, "can hold");
    vt_keys(&vt, "esc Y");
    vt_want(&vt, "row as JSON (--clipboard");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* Only what was changed is sent, and the server says what is wrong beside its field. */
static void
sets_limits(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    pg_run(con_db(), "select set_queue(gen_random_uuid(), 'mail.send', '{\"weight\": 3}')");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "l");
    vt_want(&vt, "Limits of queue: mail.send");
    vt_want(&vt, "first retry");
    vt_keys(&vt, "C-u text:4 tab C-u text:often enter");
    vt_want(&vt, "rate \"often\"");
    vt_keys(&vt, "C-u");
    vt_type(&vt, "100/min");
    vt_keys(&vt, "enter");
    vt_want(&vt, "max_running 4, was none");
    vt_keys(&vt, "y");
    vt_want(&vt, "queue: 1 queue set");
    assert_string_equal(pg_value(con_db(), "select concat_ws(' ', max_running, round(rate * 60), "
                                           "weight, max_tries) from queue_config"),
                        "4 100 3 5");
    vt_keys(&vt, "l");
    vt_want(&vt, "Limits of queue");
    vt_keys(&vt, "C-u enter"); /* empty: as if never set */
    vt_want(&vt, "max_running none, was 4");
    pg_run(con_db(), "select set_queue(gen_random_uuid(), 'mail.send', '{\"max_running\": 9}')");
    vt_keys(&vt, "y"); /* another operator's limit is not overruled, neither here nor in the form */
    vt_want(&vt, "changed meanwhile: max_running is 9 now");
    vt_keys(&vt, "esc l");
    vt_want(&vt, "Limits of queue");
    pg_run(con_db(), "select set_queue(gen_random_uuid(), 'mail.send', '{\"max_running\": 8}')");
    vt_keys(&vt, "C-u enter");
    vt_want(&vt, "changed meanwhile: max_running is 8 now");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "Limits of queue");
    vt_keys(&vt, "l");
    vt_want(&vt, "Limits of queue");
    vt_keys(&vt, "C-u enter");
    vt_want(&vt, "max_running none, was 8");
    vt_keys(&vt, "y");
    vt_want(&vt, "queue: 1 queue set");
    assert_string_equal(pg_value(con_db(), "select max_running is null and weight = 3 from "
                                           "queue_config"),
                        "t");
    con_quit(&vt);
}

/* A name may have 200 characters, which may be 800 bytes. */
static void
sets_limits_of_a_long_name(void **state)
{
    struct vt vt;

    (void)state;
    pg_run(con_db(), "select push(repeat('漢', 100), '{}')");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "漢");
    vt_keys(&vt, "l");
    vt_want(&vt, "Limits of queue: 漢");
    vt_want(&vt, "first retry");
    vt_keys(&vt, "C-u text:4 enter");
    vt_want(&vt, "max_running 4, was none");
    vt_keys(&vt, "y");
    vt_want(&vt, "queue: 1 queue set");
    assert_int_equal(pg_int(con_db(), "select max_running from queue_config where queue = "
                                      "repeat('漢', 100)"),
                     4);
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(copies_rows, con_empty),
        cmocka_unit_test_setup(copies_through_multiplexers, con_empty),
        cmocka_unit_test_setup(works_in_tmux, con_empty),
        cmocka_unit_test_setup(says_how_much_was_copied, con_empty),
        cmocka_unit_test_setup(names_times_and_spans, con_empty),
        cmocka_unit_test_setup(shows_rows_in_full, con_empty),
        cmocka_unit_test_setup(sets_limits, con_empty),
        cmocka_unit_test_setup(sets_limits_of_a_long_name, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
