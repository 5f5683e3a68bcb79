/*
 * Keys, pastes, sizes and broken connections at random, on a database that changes meanwhile:
 * whatever comes, the program lives, says nothing odd to the terminal, and can be left.
 * MONKEY=SEED[:SECONDS] (`make check-e2e T=test_monkey MONKEY=77:600`) plays one again, or longer
 * (10 s, sanitized 30; by hand 600); a failure says the seed and the key.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS = 10, SANITIZED_SECONDS = 30 };

/* There in sanitized builds only. */
/* NOLINTNEXTLINE(readability-identifier-naming) */
extern void __asan_init(void) __attribute__((weak));

static unsigned
next(unsigned *seed)
{
    *seed = *seed * 1103515245U + 12345U;
    return *seed >> 16 & 0x7fff;
}

/* No q, Ctrl-C and Ctrl-Z: leaving is not what is tested here. */
/* clang-format off */
static const char *const keys[] = {
    "j", "k", "down", "up", "pgdn", "pgup", "g", "G", "enter", "enter", "esc", "esc", "1", "2",
    "3", "4", "5", "6", "7", "8", "tab", "?", "/", ":", "a", "v", "z", "+", "-", "Z", "f8", "C-l",
    "[", "]", "w", "y", "Y", "f", "S", "s", "<", ">", "I", "o", "space", "*", "U", "r", "R", "c",
    "p", "P", "L", "E", "d", "e", "N", "l", "X", "D", "b", "t", "m", "u", "n", "C", "K", "C-p",
    "C-n", "M-x", "f2", "f3", "f4", "f5", "bs", "C-u", "left", "right", "home", "end", "del",
    "C-f", "C-b", "text:state:failed", "text:5m", "text:mail", "text:12", "text:1",
    "text:nightly", "y", "n", "s-tab",
};
/* clang-format on */

static void
one_step(struct vt *vt, unsigned *seed)
{
    unsigned what = next(seed) % 100;
    bool is_small = vt->rows < 10 || vt->cols < 40; /* then most keys are not taken */

    if (what == 0 || (is_small && what < 20)) {
        vt_resize(vt, 1 + (int)(next(seed) % 60), 1 + (int)(next(seed) % 160));
    } else if (what == 1) {
        vt_paste(vt, "y\r\x1b[31m pasted \xff");
    } else {
        const char *key = keys[next(seed) % (sizeof keys / sizeof *keys)];
        if (!strcmp(key, "esc"))
            vt_type(vt, "\033"); /* without the wait that vt_keys makes */
        else
            vt_keys(vt, key);
    }
    vt_pump(vt);
}

/* All connections of the console end at once, as when a server goes down or a pooler is restarted.
 */
static void
cut_the_lines(void)
{
    pg_run(con_db(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = "
                     "current_database() and pid <> pg_backend_pid() and application_name like "
                     "'queuetop%%'");
}

static void
a_world(void)
{
    con_failed("mail.send", 30, "boom");
    con_running("sms.send", 5, "worker-1");
    con_node("worker-1", true);
    pg_run(con_db(),
           "select push_bytes('raw', '\\x00ff'), push_text('raw', 'a text', 'text/plain')");
    pg_run(con_db(), "select schedule_set(gen_random_uuid(), 'nightly', '{\"cron\": \"@daily\", "
                     "\"queue\": \"report\"}')");
    pg_run(con_db(), "create table t (i int)");
}

/* A screen of one column can't show a sanitizer's report, so this returns the raw output. */
static const char *
last_words(struct vt *vt)
{
    static char text[8192];
    size_t len = vt->raw_len < sizeof text - 1 ? vt->raw_len : sizeof text - 1;

    memcpy(text, vt->raw + vt->raw_len - len, len);
    text[len] = 0;
    return text;
}

static int64_t
seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void
survives_a_monkey(void **state)
{
    const char *again = getenv("MONKEY");
    unsigned seed = again ? (unsigned)strtoul(again, NULL, 10) : 20261121U, first = seed;
    long secs = __asan_init ? SANITIZED_SECONDS : SECONDS;
    const char *const env[] = {"VISUAL=true", NULL};
    struct vt vt;

    (void)state;
    if (again && strchr(again, ':'))
        secs = strtol(strchr(again, ':') + 1, NULL, 10);
    int64_t end = seconds_now() + secs;
    a_world();
    con_spawn(&vt, 24, 80, NULL, env);
    vt_want(&vt, "live");
    int keys_hit = 0;
    for (int i = 0; seconds_now() < end; keys_hit = ++i) {
        if (i % 100 == 0)
            con_ready(i % 200 ? "a.queue" : "mail.send", 2);
        if (i % 700 == 699)
            cut_the_lines();
        if (i % 5000 == 4999) { /* and the server dies */
            pg_restart("immediate");
            con_reconnect();
        }
        one_step(&vt, &seed);
        if (vt.has_ended)
            fail_msg("it ended at key %d of seed %u with %d; its last words:\n%s", i, first,
                     vt_exit_status(&vt), last_words(&vt));
    }
    print_message("seed %u: %d keys, lines cut %d times, server killed %d times\n", first, keys_hit,
                  keys_hit / 700, keys_hit / 5000);
    vt_resize(&vt, 24, 80);
    for (int i = 0; i < 8; i++)
        vt_keys(&vt, "esc");
    vt_keys(&vt, "1");
    vt_want(&vt, "1 Queues");
    if (vt.unknown)
        fail_msg("an odd sequence with seed %u: %s", first, vt.unknown_text);
    assert_int_equal(vt.titles, 0);
    vt_signal(&vt, 15);
    vt_ended_well(&vt, 128 + 15);
    vt_done(&vt);
}

/* The keys of a keyboard, one after the other, in each pane of each screen: each is answered or
 * refused, none ends the program. q leaves it on purpose. */
static void
each_key_in_each_pane(void **state)
{
    const char *const env[] = {"VISUAL=true", NULL}, *tabs[] = {"", "\t", "\t\t"};
    struct vt vt;

    (void)state;
    a_world();
    con_spawn(&vt, 40, 140, NULL, env);
    vt_want(&vt, "needs you"); /* there is a pane above the queues */
    for (char screen = '1'; screen <= '8'; screen++)
        for (size_t pane = 0; pane < sizeof tabs / sizeof *tabs; pane++)
            for (char c = '!'; c <= '~'; c++) {
                char typed[8];
                if (c == 'q')
                    continue;
                snprintf(typed, sizeof typed, "%c%s%c", screen, tabs[pane], c);
                vt_type(&vt, typed);
                vt_settle(&vt, 1); /* a box takes keys from when it is shown */
                if (vt.has_ended)
                    fail_msg("%c in pane %zu of screen %c: it ended with %d; its last words:\n%s",
                             c, pane, screen, vt_exit_status(&vt), last_words(&vt));
                vt_type(&vt, "\033\033\033");
            }
    vt_keys(&vt, "esc esc esc q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(survives_a_monkey, con_empty),
        cmocka_unit_test_setup(each_key_in_each_pane, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
