/*
 * The shop of the pictures.
 */
#include "tests/e2e/shop.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/server.h"

enum { LOOKS = 300 }; /* each of them after a rest of 200 ms */

static struct {
    char dsn[400]; /* as the operator bob */
} shop;

void
shop_run(const char *const *argv)
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout))
            _exit(126);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0)
        fail_msg("%s: status %d", argv[0], status);
}

/* The server's clock is preloaded and stands in a file, which the fixture moves on. */
static void
stop_the_clock(const char *lib, const char *file)
{
    char source[400];
    FILE *f = fopen(file, "we");

    assert_non_null(f);
    fputs("1795237000000000\n", f);
    fclose(f);
    assert_int_equal(chmod(file, 0666), 0);
    snprintf(source, sizeof source, "%s/tests/screens/clock.c", getenv("SRCDIR"));
    shop_run((const char *const[]){getenv("CC") ? getenv("CC") : "cc", "-O1", "-shared", "-fPIC",
                                   "-o", lib, source, NULL});
    setenv("LD_PRELOAD", lib, 1);
    setenv("QUEUETOP_CLOCK", file, 1);
}

int
shop_open(void **state)
{
    char lib[300], file[300], set[320], script[400];
    const char *tmp = getenv("TMPDIR");

    (void)state;
    assert_non_null(tmp);
    snprintf(lib, sizeof lib, "%s/clock.so", tmp);
    snprintf(file, sizeof file, "%s/clock", tmp);
    stop_the_clock(lib, file);
    pg_start(NULL);
    unsetenv("LD_PRELOAD"); /* the console has QUEUETOP_NOW */
    const char *dsn = pg_newdb("shop");
    shop_run((const char *const[]){getenv("QUEUETOP"), "install", dsn, NULL});
    snprintf(set, sizeof set, "clock=%s", file);
    for (int i = 0; i < 2; i++) {
        snprintf(script, sizeof script, "%s/tests/screens/%s", getenv("SRCDIR"),
                 i ? "fixture_live.sql" : "fixture.sql");
        shop_run((const char *const[]){"psql", "-qX", "-v", set, "-d", dsn, "-f", script, NULL});
    }
    snprintf(shop.dsn, sizeof shop.dsn, "host=%s dbname=shop user=bob", pg_host());
    return 0;
}

int
shop_close(void **state)
{
    char path[300];

    (void)state;
    pg_stop();
    snprintf(path, sizeof path, "%s/clock.so", getenv("TMPDIR"));
    unlink(path);
    snprintf(path, sizeof path, "%s/clock", getenv("TMPDIR"));
    unlink(path);
    return 0;
}

/* Writes a word over a row of the screen, 0 = the first one. */
static void
hide_row(struct vt *vt, int row, const char *word)
{
    char text[80];
    int n = snprintf(text, sizeof text, "\0337\033[%d;1H\033[0m\033[2K%s\0338", row + 1, word);

    vterm_input_write(vt->vterm, text, (size_t)n);
}

/* Tabs and keys are asserted on the pictures of 80 columns and of Queues alone: a new tab or key
 * shall not change all pictures. */
static bool
shows_tabs_and_keys(const char *screen, int cols)
{
    return !strncmp(screen, "queues", 6) || (cols == 80 && !strpbrk(screen, "_"));
}

/* The header names the server's version, which is not ours to promise. */
static void
hide_rows(struct vt *vt, const char *screen)
{
    vt_settle(vt, 200);
    vt_want_row(vt, 0, "live");
    hide_row(vt, 0, "header");
    if (shows_tabs_and_keys(screen, vt->cols))
        return;
    if (strstr(vt_row(vt, 1), "1 Queues")) /* else a dialog stands there */
        hide_row(vt, 1, "tabs");
    hide_row(vt, vt->rows - 1, "keys");
}

/* Answers of the server may come late: looked at again and again, drawn anew each time. */
void
shop_golden(struct vt *vt, const char *screen)
{
    char name[64];
    const char *update = getenv("UPDATE");

    snprintf(name, sizeof name, "%d_%s", vt->cols, screen);
    hide_rows(vt, screen);
    bool is_it = false;
    for (int i = 0; i < LOOKS && !(update && *update) && !(is_it = vt_is_golden(vt, name)); i++) {
        vt_keys(vt, "C-l");
        hide_rows(vt, screen);
    }
    if (!is_it)
        vt_golden(vt, name);
    vt_keys(vt, "C-l");
    vt_want_row(vt, 0, "live");
}

const char *
shop_dsn(void)
{
    return shop.dsn;
}

void
shop_enter(struct vt *vt, int rows, int cols, const char *env)
{
    vt_spawn(vt, rows, cols, (const char *const[]){getenv("QUEUETOP"), "--utc", shop.dsn, NULL},
             (const char *const[]){"QUEUETOP_NOW=2026-11-21T14:02:11Z", env, NULL});
    vt_want(vt, "audit.ship");
    vt_want(vt, "died 6m");
}
