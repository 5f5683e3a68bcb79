/*
 * Keys, pastes and sizes at random, on a database that changes meanwhile: whatever comes, the
 * program lives, says nothing odd to the terminal, and can be left. QUEUETOP_MONKEY=SEED[:KEYS]
 * plays one again, or longer.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 1500 };

static unsigned
next(unsigned *seed)
{
    *seed = *seed * 1103515245U + 12345U;
    return *seed >> 16 & 0x7fff;
}

/* No q, Ctrl-C and Ctrl-Z: leaving is not what is tested here. */
static const char *const keys[] = {
    "j",       "k",         "down",    "up",  "pgdn", "pgup",
    "g",       "G",         "enter",   "esc", "1",    "2",
    "3",       "4",         "6",       "8",   "tab",  "?",
    "/",       ":",         "a",       "v",   "z",    "+",
    "-",       "Z",         "f8",      "C-l", "[",    "]",
    "w",       "y",         "s",       "<",   ">",    "I",
    "o",       "space",     "*",       "U",   "r",    "R",
    "c",       "p",         "P",       "L",   "E",    "d",
    "f2",      "f3",        "bs",      "C-u", "left", "right",
    "home",    "end",       "del",     "C-f", "C-b",  "text:state:failed",
    "text:5m", "text:mail", "text:12", "n",
};

static void
one_step(struct vt *vt, unsigned *seed)
{
    unsigned what = next(seed) % 100;

    if (what == 0) {
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

static void
survives_a_monkey(void **state)
{
    const char *again = getenv("QUEUETOP_MONKEY");
    unsigned seed = again ? (unsigned)strtoul(again, NULL, 10) : 20261121U;
    int n = again && strchr(again, ':') ? (int)strtol(strchr(again, ':') + 1, NULL, 10) : KEYS;
    struct vt vt;

    (void)state;
    con_failed("mail.send", 30, "boom");
    con_running("sms.send", 5, "worker-1");
    con_node("worker-1", true);
    con_start(&vt, 24, 80, NULL);
    for (int i = 0; i < n; i++) {
        if (i % 100 == 0)
            con_ready(i % 200 ? "a.queue" : "mail.send", 2);
        one_step(&vt, &seed);
        if (vt.has_ended)
            fail_msg("it ended at key %d of seed %u: %s", i, seed, vt_screen_text(&vt));
    }
    vt_resize(&vt, 24, 80);
    for (int i = 0; i < 8; i++)
        vt_keys(&vt, "esc");
    vt_keys(&vt, "1");
    vt_want(&vt, "1 Queues");
    assert_int_equal(vt.unknown, 0);
    assert_int_equal(vt.titles, 0);
    vt_signal(&vt, 15);
    vt_ended_well(&vt, 128 + 15);
    vt_done(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(survives_a_monkey, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
