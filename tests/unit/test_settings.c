/*
 * The configuration and the state file: correct lines apply, errors name file, line and key, and no
 * error in a file stops the program.
 */
#include "tests/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "ui/config/settings.h"
#include "ui/term/term_key.h"

struct target {
    bool utc, mouse, production;
    const char *theme;
    int64_t interval_ms;
};

static const char *const themes[] = {"dark", "light", NULL};
static const struct setting table[] = {
    {"utc",                   SET_FLAG, offsetof(struct target, utc), NULL},
    {"mouse", SET_FLAG, offsetof(struct target, mouse), NULL},
    {"production",                   SET_SAFETY, offsetof(struct target, production), NULL},
    {"theme",                 SET_TEXT, offsetof(struct target, theme), themes},
    {"interval", SET_TIME, offsetof(struct target, interval_ms), NULL},
    {0                  },
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
comments_are_no_values(void **state)
{
    struct settings *s = settings_new();
    struct target t = {.interval_ms = 1000};

    (void)state;
    settings_parse(s, "f",
                   "theme = light   # dark, light\n[prod]\t# mine\nproduction = yes # red\n"
                   "interval=2s\t#2\n; utc = yes\n  # utc = yes\n",
                   table, (const char *const[]){"prod", NULL}, &t);
    assert_null(settings_complaint(s, 0));
    assert_string_equal(t.theme, "light");
    assert_true(t.production && !t.utc && t.interval_ms == 2000);
    assert_false(settings_closed(s));
    settings_free(s);
}

/* If it is unclear whether the file sets production, production is on, because that is safe.
 * Otherwise the file decides. */
static void
safety_closes(void **state)
{
    static const struct {
        const char *text, *says;
        bool on;
    } cases[] = {
        {"production = yse",                                           "f:1: production: is yes or no",               true },
        {"production = yes, red",                                      "f:1: production: is yes or no",               true },
        {"production =",                                               "f:1: production: is yes or no",               true },
        {"producton = yes",                                            "f:1: producton: no such setting",             true },
        {"Production = no",                                            "f:1: Production: no such setting",            true },
        {"production yes",                                             "f:1: production yes: a line is key = value",  true },
        {"production: yes",                                            "f:1: production: yes: a line is key = value", true },
        {"[prod\nproduction = yes",                                    "f:1: [prod: a section is [name]",             true },
        {"[other]\nproduction = yse\nproducton = yes\nproduction yes",
         "f:3: producton: no such setting",                                                                           false},
        {"production = no",                                            NULL,                                          false},
        {"utc = maybe",                                                "f:1: utc: is yes or no",                      false},
        {"colour = red",                                               "f:1: colour: no such setting",                false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct settings *s = settings_new();
        struct target t = {.interval_ms = 1000};
        settings_parse(s, "f", cases[i].text, table, (const char *const[]){"prod", NULL}, &t);
        const char *says = settings_complaint(s, 0);
        if (t.production != cases[i].on || settings_closed(s) != cases[i].on)
            fail_msg("%s: %d", cases[i].text, t.production);
        assert_string_equal(says ? says : "", cases[i].says ? cases[i].says : "");
        settings_free(s);
    }
}

/* A file that exists and can't be read may have any content: production is on. */
static void
unreadable_file_closes(void **state)
{
    char dir[200], path[300];
    struct settings *s = settings_new();
    struct target t = {.interval_ms = 1000};

    (void)state;
    snprintf(dir, sizeof dir, "%s/closed.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(setenv("XDG_CONFIG_HOME", dir, 1), 0);
    settings_read(s, table, (const char *const[]){"", NULL}, &t);
    assert_false(t.production); /* no file: production is off */
    snprintf(path, sizeof path, "%s/queuetop", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/queuetop/config", dir);
    assert_int_equal(mkdir(path, 0700), 0); /* a folder can be opened, not read */
    settings_read(s, table, (const char *const[]){"", NULL}, &t);
    assert_true(t.production && settings_closed(s));
    settings_free(s);

    /* the folder of another user: this user has no configuration there, and hears nothing of it */
    s = settings_new();
    t.production = false;
    assert_int_equal(chmod(dir, 0), 0);
    uid_t user = geteuid();
    if (user == 0)
        assert_int_equal(seteuid(65534), 0);
    settings_read(s, table, (const char *const[]){"", NULL}, &t);
    settings_load(s);
    assert_int_equal(seteuid(user), 0);
    assert_null(settings_complaint(s, 0));
    assert_false(t.production || settings_closed(s));
    settings_free(s);

    assert_int_equal(chmod(dir, 0700), 0);
    rmdir(path);
    snprintf(path, sizeof path, "%s/queuetop", dir);
    rmdir(path);
    rmdir(dir);
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
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
    settings_put(s, "nodes", "sort=node"); /* the default again: the entry is removed */
    assert_true(settings_save(s, &e));
    settings_free(s);
    s = settings_new();
    settings_load(s);
    assert_string_equal(settings_get(s, "nodes"), "");
    for (int i = 0; i < 4; i++) { /* the file and the three folders we made */
        assert_int_equal(remove(file), 0);
        *strrchr(file, '/') = 0;
    }
    setenv("XDG_STATE_HOME", "/dev/null/nowhere", 1);
    settings_put(s, "jobs", "sort=age");
    assert_false(settings_save(s, &e));
    assert_non_null(strstr(e.text, "are not kept"));
    settings_free(s);
}

/* In a folder that others may write, the state is not kept: they could replace it. */
static void
keeps_nothing_beside_others(void **state)
{
    char dir[200], folder[300];
    struct settings *s = settings_new();
    struct err e;

    (void)state;
    snprintf(dir, sizeof dir, "%s/open.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    snprintf(folder, sizeof folder, "%s/queuetop", dir);
    assert_int_equal(mkdir(dir, 0700) | mkdir(folder, 0700) | chmod(folder, 0777), 0);
    setenv("XDG_STATE_HOME", dir, 1);
    settings_put(s, "jobs", "sort=age");
    assert_false(settings_save(s, &e));
    assert_non_null(strstr(e.text, "can be written by others (mode 0777): it is not used (chmod "
                                   "go-w); order and columns are not kept"));
    assert_int_equal(rmdir(folder) | rmdir(dir), 0);
    settings_free(s);
}

/* --- two consoles ---------------------------------------------------------------------------- */

static char state_dir[200];

static int
state_setup(void **state)
{
    static int n;

    (void)state;
    snprintf(state_dir, sizeof state_dir, "%s/two.%d.%d",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(), ++n);
    assert_int_equal(mkdir(state_dir, 0700), 0);
    return setenv("XDG_STATE_HOME", state_dir, 1);
}

static int
state_teardown(void **state)
{
    static const char *const names[] = {"/queuetop/state", "/queuetop", ""};
    char path[300];

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", state_dir, names[i]);
        assert_int_equal(remove(path), 0);
    }
    return 0;
}

static struct settings *
load_state(void)
{
    struct settings *s = settings_new();

    settings_load(s);
    return s;
}

static void
put_and_save(struct settings *s, const char *name, const char *line)
{
    struct err e;

    settings_put(s, name, line);
    assert_true(settings_save(s, &e));
}

static void
assert_kept(const char *name, const char *line)
{
    struct settings *s = load_state();

    assert_string_equal(settings_get(s, name), line);
    settings_free(s);
}

/* Of two consoles that run at once, each writes only what was changed in it. */
static void
two_write_their_own(void **state)
{
    struct settings *one = load_state(), *other;

    (void)state;
    put_and_save(one, "nodes", "sort=node");
    put_and_save(one, "jobs", "hide=kind");
    other = load_state();
    put_and_save(other, "trust", "an answer");
    put_and_save(other, "nodes", "sort=state");
    put_and_save(one, "queues", "sort=ready");
    assert_kept("trust", "an answer");
    assert_kept("queues", "sort=ready");
    assert_kept("nodes", "sort=state");
    put_and_save(other, "jobs", "");
    put_and_save(one, "queues", "sort=queue");
    assert_kept("jobs", ""); /* what was removed does not come back */
    assert_kept("trust", "an answer");
    settings_free(one);
    settings_free(other);
}

static void
keep_answer(struct settings *s, int64_t role, const char *name)
{
    char server[] = "7", *owner = xstrdup(name);
    struct stranger stranger = {.role = role, .name = owner};
    struct owners shown = {.me = 10, .server = server, .strangers = &stranger, .n = 1};
    struct err e;

    assert_true(trusted_keep(s, &shown, &e));
    free(owner);
}

static void
write_state(const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/queuetop/state", state_dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* An answer is added to those of other consoles; one that was deleted stays deleted. */
static void
answers_come_together(void **state)
{
    struct settings *one = load_state(), *other = load_state();

    (void)state;
    keep_answer(one, 11, "eve");
    keep_answer(other, 12, "bob");
    assert_kept("trust", "7 10 11 eve, 7 10 12 bob");
    write_state("queues: sort=ready\ntrust: 7 10 12 bob\n");
    put_and_save(one, "jobs", "hide=kind");
    assert_kept("trust", "7 10 12 bob");
    write_state("queues: sort=ready\n");
    put_and_save(other, "jobs", "hide=age");
    assert_kept("trust", "");
    keep_answer(one, 13, "ann");
    assert_kept("trust", "7 10 13 ann");
    assert_kept("queues", "sort=ready");
    settings_free(one);
    settings_free(other);
}

static int lock_fd;
static volatile sig_atomic_t has_waited;

static void
end_lock(int signo)
{
    (void)signo;
    has_waited = 1;
    close(lock_fd);
}

/* Another process holds the lock for ever, and the file can't be read: what is known is written. */
static void
nothing_stops_a_save(void **state)
{
    struct settings *s = load_state();
    char path[300];

    (void)state;
    put_and_save(s, "trust", "an answer");
    snprintf(path, sizeof path, "%s/queuetop", state_dir);
    lock_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(lock_fd >= 0);
    assert_int_equal(flock(lock_fd, LOCK_EX), 0);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = end_lock}, NULL);
    alarm(60);
    snprintf(path, sizeof path, "%s/queuetop/state", state_dir);
    assert_int_equal(truncate(path, 1000), 0); /* zero bytes: no text */
    put_and_save(s, "queues", "sort=ready");
    assert_kept("trust", "an answer");
    assert_kept("queues", "sort=ready");
    alarm(0);
    assert_false(has_waited);
    assert_int_equal(close(lock_fd), 0);
    settings_free(s);
}

/* --- the mouse ------------------------------------------------------------------------------- */

static void
feed(struct decoder *d, const char *bytes)
{
    for (; *bytes; bytes++)
        decoder_byte(d, (unsigned char)*bytes);
}

/* Bytes of a mouse are never a key, in every encoding that terminals use. */
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
        cmocka_unit_test(comments_are_no_values),
        cmocka_unit_test(safety_closes),
        cmocka_unit_test(unreadable_file_closes),
        cmocka_unit_test(remembers),
        cmocka_unit_test(keeps_nothing_beside_others),
        cmocka_unit_test_setup_teardown(two_write_their_own, state_setup, state_teardown),
        cmocka_unit_test_setup_teardown(answers_come_together, state_setup, state_teardown),
        cmocka_unit_test_setup_teardown(nothing_stops_a_save, state_setup, state_teardown),
        cmocka_unit_test(mice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
