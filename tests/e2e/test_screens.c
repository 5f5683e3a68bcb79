/*
 * Golden screens: every screen at three sizes, on the data of the pictures
 * (tests/screens/fixture.sql) and with clocks that stand still. The files under tests/screens/ hold
 * text, cursor and colours; UPDATE=1 renews them, and their diff is to be read.
 */
#include "tests/harness.h"
#include "tests/server.h"
#include "tests/term.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    char dsn[400]; /* as the operator bob */
} shop;

static void
run(const char *const *argv)
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
    run((const char *const[]){getenv("CC") ? getenv("CC") : "cc", "-O1", "-shared", "-fPIC", "-o",
                              lib, source, NULL});
    setenv("LD_PRELOAD", lib, 1);
    setenv("QUEUETOP_CLOCK", file, 1);
}

static int
open_shop(void **state)
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
    run((const char *const[]){getenv("QUEUETOP"), "install", dsn, NULL});
    snprintf(set, sizeof set, "clock=%s", file);
    for (int i = 0; i < 2; i++) {
        snprintf(script, sizeof script, "%s/tests/screens/%s", getenv("SRCDIR"),
                 i ? "fixture_live.sql" : "fixture.sql");
        run((const char *const[]){"psql", "-qX", "-v", set, "-d", dsn, "-f", script, NULL});
    }
    snprintf(shop.dsn, sizeof shop.dsn, "host=%s dbname=shop user=bob", pg_host());
    return 0;
}

static int
close_shop(void **state)
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

/* The header names the server's version, which is not ours to promise. */
static void
golden(struct vt *vt, const char *screen)
{
    static const char header[] = "\0337\033[1;1H\033[0m\033[2Kheader\0338";
    char name[64];

    vt_settle(vt, 200);
    vt_want_row(vt, 0, "14:02:11");
    vterm_input_write(vt->vterm, header, sizeof header - 1);
    snprintf(name, sizeof name, "%d_%s", vt->cols, screen);
    vt_golden(vt, name);
    vt_keys(vt, "C-l");
    vt_want_row(vt, 0, "14:02:11");
}

static void
screens_at(int rows, int cols)
{
    struct vt vt;

    vt_spawn(&vt, rows, cols, (const char *const[]){getenv("QUEUETOP"), "--utc", shop.dsn, NULL},
             (const char *const[]){"QUEUETOP_NOW=2026-11-21T14:02:11Z", NULL});
    vt_want(&vt, "audit.ship");
    vt_want(&vt, "heartbeat");
    vt_keys(&vt, "j");
    golden(&vt, "queues");
    vt_keys(&vt, "2");
    vt_want(&vt, "all jobs");
    vt_keys(&vt, "/ text:queue:image.resize enter / end");
    vt_type(&vt, " state:failed,retry");
    vt_keys(&vt, "enter");
    vt_want(&vt, " of 12");
    vt_keys(&vt, "space j space");
    golden(&vt, "jobs");
    vt_keys(&vt, "U j enter");
    vt_want(&vt, "ATTEMPTS");
    golden(&vt, "job");
    vt_keys(&vt, "3");
    vt_want(&vt, "sample");
    golden(&vt, "failed");
    vt_keys(&vt, "r");
    vt_want(&vt, "Type the number");
    golden(&vt, "confirm");
    vt_keys(&vt, "esc 4");
    vt_want(&vt, "worker-4");
    vt_keys(&vt, "g j j j");
    vt_want(&vt, "worker-4 leases");
    golden(&vt, "nodes");
    vt_keys(&vt, "L");
    vt_want(&vt, "lost try");
    golden(&vt, "release");
    vt_keys(&vt, "esc a");
    vt_want(&vt, "actions");
    golden(&vt, "actions");
    vt_keys(&vt, "esc 5");
    vt_want(&vt, "TOOK, OR");
    vt_keys(&vt, "G");
    vt_want(&vt, "held");
    golden(&vt, "schedules");
    vt_keys(&vt, "N text:night tab");
    vt_type(&vt, "61 2 * * *");
    vt_keys(&vt, "tab tab text:reports enter");
    vt_want(&vt, "minute: 61 is not within");
    golden(&vt, "new");
    vt_keys(&vt, "esc ?");
    vt_want(&vt, "Everywhere");
    golden(&vt, "help");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

/* The last: nothing but this screen gets true answers from the server afterwards. */
static void
the_database(void **state)
{
    static const int sizes[][2] = {
        {24, 80 },
        {45, 140},
        {20, 60 }
    };
    char script[400];
    struct vt vt;

    (void)state;
    snprintf(script, sizeof script, "%s/tests/screens/fixture_health.sql", getenv("SRCDIR"));
    run((const char *const[]){"psql", "-qX", "-d", pg_dsn("shop"), "-f", script, NULL});
    for (int i = 0; i < 3; i++) {
        vt_spawn(&vt, sizes[i][0], sizes[i][1],
                 (const char *const[]){getenv("QUEUETOP"), "--utc", shop.dsn, NULL},
                 (const char *const[]){"QUEUETOP_NOW=2026-11-21T14:02:11Z", NULL});
        vt_want(&vt, "audit.ship");
        vt_keys(&vt, "7");
        vt_want(&vt, "idle in txn");
        vt_want(&vt, "history ");
        golden(&vt, "database");
        vt_keys(&vt, "K");
        vt_want(&vt, "Type the pid");
        if (sizes[i][0] > 20) {
            golden(&vt, "terminate");
        } else { /* the question stands where the header was */
            vt_settle(&vt, 200);
            vt_golden(&vt, "60_terminate");
        }
        vt_keys(&vt, "esc q");
        vt_ended_well(&vt, 0);
        vt_done(&vt);
    }
}

static void
at_80x24(void **state)
{
    (void)state;
    screens_at(24, 80);
}

static void
at_140x45(void **state)
{
    (void)state;
    screens_at(45, 140);
}

static void
at_60x20(void **state)
{
    (void)state;
    screens_at(20, 60);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_80x24),
        cmocka_unit_test(at_140x45),
        cmocka_unit_test(at_60x20),
        cmocka_unit_test(the_database),
    };

    return cmocka_run_group_tests(tests, open_shop, close_shop);
}
