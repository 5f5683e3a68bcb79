/*
 * The configuration and the state file: what is right counts, what is wrong is named by file, line
 * and key, and nothing in either stops anything.
 */
#include "tests/harness.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/settings.h"
#include "ui/term_key.h"

struct target {
    bool utc, mouse;
    const char *theme;
    int64_t interval_ms;
};

static const char *const themes[] = {"dark", "light", NULL};
static const struct setting table[] = {
    {"utc",                   SET_FLAG, offsetof(struct target, utc), NULL},
    {"mouse", SET_FLAG, offsetof(struct target, mouse), NULL},
    {"theme",                   SET_TEXT, offsetof(struct target, theme), themes},
    {"interval",                 SET_TIME, offsetof(struct target, interval_ms), NULL},
    {0},
};

static void
reads(void **state)
{
    struct settings *s = settings_new();
    struct target t = {.interval_ms = 1000};

    (void)state;
    settings_parse(s, "f",
                   "# mine\r\n\n utc = yes \ntheme=light\n[other]\nmouse = yes\n[prod]\n"
                   "interval = 5s\n",
                   table, (const char *const[]){"prod", NULL}, &t);
    assert_null(settings_complaint(s, 0));
    assert_true(t.utc && !t.mouse);
    assert_string_equal(t.theme, "light");
    assert_int_equal(t.interval_ms, 5000);
    settings_free(s);
}

static void
names_what_is_wrong(void **state)
{
    struct settings *s = settings_new();
    struct target t = {.interval_ms = 1000};
    static const char *const wants[] = {
        "f:1: theme: is not one of: dark light", "f:2: colour: no such setting",
        "f:3: nonsense: a line is key = value",  "f:4: utc: is yes or no",
        "f:5: interval: is 100ms to 1h",         "f:6: [x: a section is [name]",
    };

    (void)state;
    settings_parse(s, "f",
                   "theme = pink\ncolour = red\nnonsense\nutc = maybe\ninterval = 2h\n[x\n[]\n"
                   "mouse=1",
                   table, (const char *const[]){"", NULL}, &t);
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
        assert_string_equal(settings_complaint(s, (int)i), wants[i]);
    assert_null(settings_complaint(s, 6));
    assert_null(t.theme);
    assert_true(!t.utc && t.mouse && t.interval_ms == 1000);
    settings_free(s);
}

static void
remembers(void **state)
{
    struct settings *s = settings_new();
    struct stat st;
    struct err e;
    char dir[200], file[300];

    (void)state;
    snprintf(dir, sizeof dir, "%s/settings.%d/deep", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    snprintf(file, sizeof file, "%s/queuetop/state", dir);
    setenv("XDG_STATE_HOME", dir, 1);
    settings_load(s);
    assert_string_equal(settings_get(s, "queues"), "");
    settings_usual(s, "queues", "sort=queue");
    settings_put(s, "queues", "sort=queue");
    assert_true(settings_save(s, &e)); /* nothing to write */
    assert_int_equal(access(file, F_OK), -1);
    settings_put(s, "queues", "sort=ready desc hide=eta");
    settings_put(s, "nodes", "sort=node");
    assert_true(settings_save(s, &e));
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    settings_free(s);
    s = settings_new();
    settings_load(s);
    assert_string_equal(settings_get(s, "queues"), "sort=ready desc hide=eta");
    settings_usual(s, "nodes", "sort=node");
    settings_put(s, "nodes", "sort=node"); /* as usual again: forgotten */
    assert_true(settings_save(s, &e));
    settings_free(s);
    s = settings_new();
    settings_load(s);
    assert_string_equal(settings_get(s, "nodes"), "");
    for (int i = 0; i < 4; i++) { /* the file and our three folders */
        assert_int_equal(remove(file), 0);
        *strrchr(file, '/') = 0;
    }
    setenv("XDG_STATE_HOME", "/dev/null/nowhere", 1);
    settings_put(s, "jobs", "sort=age");
    assert_false(settings_save(s, &e));
    assert_non_null(strstr(e.text, "are not kept"));
    settings_free(s);
}

static void
feed(struct decoder *d, const char *bytes)
{
    for (; *bytes; bytes++)
        decoder_byte(d, (unsigned char)*bytes);
}

/* What a mouse sends is never a key, whichever way its terminal writes it. */
static void
mice(void **state)
{
    struct decoder d = {.mouse = true};
    struct key k;

    (void)state;
    feed(&d, "\033[<0;12;5M\033[<0;12;5m\033[<65;1;1M\033[M !\"\033[<35;7;7M\033[<0;;M\033[<9M");
    assert_true(decoder_next(&d, 0, &k) && k.code == KC_CLICK && k.x == 11 && k.y == 4);
    assert_true(decoder_next(&d, 0, &k) && k.code == KC_WHEEL_DOWN);
    assert_true(decoder_next(&d, 0, &k) && k.code == KC_CLICK && k.x == 0 && k.y == 1);
    assert_false(decoder_next(&d, 0, &k));
    d.mouse = false;
    feed(&d, "\033[<0;12;5Mj");
    assert_true(decoder_next(&d, 0, &k) && k.code == 'j');
    assert_false(decoder_next(&d, 0, &k));
    decoder_done(&d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(remembers),
        cmocka_unit_test(mice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
