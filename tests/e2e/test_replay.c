/*
 * Recordings as their users meet them: what a console saw is seen again, at the time it was seen;
 * nothing can be done there; a file that is torn or something else is told, not shown.
 */
#include "tests/e2e/console.h"
#include "tests/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char file[200];

static int
setup(void **state)
{
    snprintf(file, sizeof file, "%s/rec.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    unlink(file);
    return con_empty(state);
}

static int
teardown(void **state)
{
    (void)state;
    unlink(file);
    return 0;
}

static const char *const utc[] = {"TZ=UTC", NULL};

static void
record_start(struct vt *vt)
{
    con_spawn(vt, 24, 80, (const char *const[]){"--interval", "200ms", "--record", file, NULL},
              utc);
    vt_want(vt, "ready");
    vt_want(vt, "REC  ");
    vt_want(vt, "live");
}

/* A few snapshots more. */
static void
goes_on(struct vt *vt)
{
    assert_false(vt_came(vt, "what never comes", 900));
}

/* at: a time, or NULL = it plays from the start. */
static void
replay_start(struct vt *vt, const char *at)
{
    const char *argv[] = {getenv("QUEUETOP"), "--replay", file, at ? "--at" : NULL, at, NULL};

    vt_spawn(vt, 24, 80, argv, utc);
    vt_want(vt, "REPLAY");
}

static const char *
server_time(void)
{
    return pg_value(con_db(), "select to_char(now() at time zone 'utc', 'HH24:MI:SS')");
}

/* Keeps the columns of six rows of Jobs that do not depend on the time of the refresh. */
static void
keep_rows(const struct vt *vt, char out[6][48])
{
    for (int i = 0; i < 6; i++)
        snprintf(out[i], 48, "%.41s", vt_row(vt, 4 + i));
}

static void
shows_what_was(void **state)
{
    struct vt vt;
    char before[6][48], again[6][48];
    struct stat st;

    (void)state;
    con_failed("mail.send", 3, "smtp 451: try later");
    con_ready("image.resize", 5);
    record_start(&vt);
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 8");
    vt_want(&vt, "smtp 451");
    goes_on(&vt);
    keep_rows(&vt, before);
    char *then = strdup(server_time());
    vt_keys(&vt, "1");
    goes_on(&vt); /* into another second */
    goes_on(&vt);
    con_ready("image.resize", 20);
    vt_want(&vt, "ready 25");
    goes_on(&vt);
    con_quit(&vt);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    pg_run(con_db(), "drop schema queues cascade"); /* nobody asks it any more */
    replay_start(&vt, then);
    vt_want(&vt, "ready 5");
    vt_want_row(&vt, 0, then);
    vt_want_row(&vt, 0, "app");
    vt_resize(&vt, 20, 60);
    vt_settle(&vt, 60);
    vt_want_row(&vt, 0, then);
    vt_resize(&vt, 24, 80);
    vt_keys(&vt, "2");
    vt_want(&vt, "smtp 451");
    vt_settle(&vt, 60);
    keep_rows(&vt, again);
    for (int i = 0; i < 6; i++)
        assert_string_equal(again[i], before[i]);
    vt_keys(&vt, "1 }");
    vt_want(&vt, "ready 25");
    vt_keys(&vt, "J");
    vt_keys(&vt, "text:nonsense enter");
    vt_want(&vt, "is no time");
    vt_keys(&vt, "C-u text:start enter");
    vt_want(&vt, "ready 5");
    free(then);
    con_quit(&vt);
}

/* How many steps lie between two figures depends on how often the console was answered. */
static void
step_to(struct vt *vt, const char *key, const char *text)
{
    for (int i = 0; i < 100 && !vt_came(vt, text, 200); i++)
        vt_keys(vt, key);
    vt_want(vt, text);
}

static void
has_controls(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 5);
    record_start(&vt);
    goes_on(&vt);
    con_ready("mail.send", 5);
    vt_want(&vt, "ready 10");
    goes_on(&vt);
    con_quit(&vt);
    replay_start(&vt, NULL);
    vt_want(&vt, "x1");
    vt_keys(&vt, "+");
    vt_want(&vt, "x2");
    vt_keys(&vt, "-");
    vt_want(&vt, "x1 ");
    vt_keys(&vt, "z");
    vt_want(&vt, "‖ x1");
    vt_keys(&vt, "{");
    vt_want(&vt, "ready 5");
    step_to(&vt, ".", "ready 10");
    step_to(&vt, ",", "ready 5");
    vt_keys(&vt, ")");
    vt_want(&vt, "ready 10");
    vt_keys(&vt, "(");
    vt_want(&vt, "ready 5");
    vt_keys(&vt, "- -"); /* slowly: a busy machine still sees it play */
    vt_want(&vt, "‖ x1/4");
    vt_keys(&vt, "z"); /* plays to the end and stands */
    vt_want(&vt, "▸ x1/4");
    vt_keys(&vt, "+ +");
    vt_want(&vt, "ready 10");
    vt_want(&vt, "‖ x1 ");
    con_quit(&vt);
}

static void
changes_nothing(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom");
    record_start(&vt);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    goes_on(&vt);
    con_quit(&vt);
    replay_start(&vt, NULL);
    vt_keys(&vt, "2 }");
    vt_want(&vt, "boom");
    vt_keys(&vt, "r");
    vt_want(&vt, "this is a recording");
    vt_keys(&vt, "a");
    vt_want(&vt, "requeue: this is a recording");
    vt_keys(&vt, "r esc");
    vt_settle(&vt, 60);
    vt_keys(&vt, "enter"); /* nobody opened this job then */
    vt_want(&vt, "not recorded");
    vt_keys(&vt, "esc / text:state:ready enter");
    vt_want(&vt, "not recorded then");
    assert_int_equal(con_count("state = 'failed'"), 2);
    con_quit(&vt);
}

static int64_t
size_of(void)
{
    struct stat st;

    assert_int_equal(stat(file, &st), 0);
    return st.st_size;
}

static void
torn_and_foreign(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), "--replay", file, NULL};
    struct vt vt;

    (void)state;
    con_ready("mail.send", 5);
    record_start(&vt);
    goes_on(&vt);
    vt_signal(&vt, SIGKILL);
    vt_exit_status(&vt);
    vt_done(&vt);
    assert_int_equal(truncate(file, size_of() - 3), 0);
    replay_start(&vt, NULL);
    vt_want(&vt, "cut short");
    vt_want(&vt, "ready 5");
    con_quit(&vt);
    record_start(&vt); /* goes on behind what is whole */
    vt_want(&vt, "torn");
    goes_on(&vt);
    con_quit(&vt);
    FILE *f = fopen(file, "w");
    fputs("notes of mine\n", f);
    fclose(f);
    vt_spawn(&vt, 24, 80, argv, NULL);
    vt_want(&vt, "not a recording of queuetop");
    vt_ended_well(&vt, 5);
    vt_done(&vt);
    const char *over[] = {getenv("QUEUETOP"), "--record", file, con_dsn(), NULL};
    vt_spawn(&vt, 24, 80, over, NULL);
    vt_want(&vt, "no recording");
    vt_exit_status(&vt);
    vt_done(&vt);
    assert_int_equal(size_of(), 14);
}

/* A limit on file sizes simulates a full disk. */
static void
record_on_little_room(struct vt *vt)
{
    char line[600];

    snprintf(line, sizeof line, "ulimit -f 32; exec '%s' --record '%s' '%s'", getenv("QUEUETOP"),
             file, con_dsn());
    vt_spawn(vt, 24, 80, (const char *const[]){"sh", "-c", line, NULL}, NULL);
    vt_want(vt, "ready 5");
}

/* One refresh with many queues does it, because their names compress badly; so a busy machine does
 * not matter. */
static void
fill_the_room(void)
{
    pg_run(con_db(), "select push(md5(i::text) || md5(i || 'b')) from generate_series(1, 1000) i");
}

/* The first source is recorded. The end of the recording is said while another one is shown, too.
 */
static void
disk_full_elsewhere(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 5);
    pg_run(con_db(), "create schema river; set search_path = river");
    pg_file(con_db(), "tests/adapters/river.sql");
    pg_run(con_db(), "set search_path = queues, public");
    record_on_little_room(&vt);
    vt_want(&vt, "is recorded");
    vt_keys(&vt, ":");
    vt_type(&vt, "source ");
    vt_type(&vt, PQdb(con_db()));
    vt_type(&vt, ":river");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 0, ":river 2/2");
    vt_keys(&vt, "0"); /* the queues of all sources: each of them is asked */
    vt_want_row(&vt, 0, "2 sources");
    fill_the_room();
    vt_want(&vt, "recording has ended");
    con_quit(&vt);
}

/* The console continues on a full disk. */
static void
disk_full(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 5);
    record_on_little_room(&vt);
    fill_the_room();
    vt_want(&vt, "recording has ended");
    vt_keys(&vt, "j");
    vt_want(&vt, "REC ended");
    con_ready("mail.send", 2);
    vt_want(&vt, "ready 1,007");
    con_quit(&vt);
    replay_start(&vt, NULL);
    vt_want(&vt, "ready 5");
    con_quit(&vt);
}

static void
without_a_screen(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), "record", "--for", "10s", file, con_dsn(), NULL};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom at 42");
    con_node("host1-1-aa", true);
    vt_spawn(&vt, 24, 80, argv, NULL);
    vt_want(&vt, "recorded;");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    replay_start(&vt, NULL);
    vt_keys(&vt, "}");
    vt_want(&vt, "failed 2");
    vt_keys(&vt, "3");
    vt_want(&vt, "boom at");
    vt_keys(&vt, "4");
    vt_want(&vt, "host1-1-aa");
    vt_keys(&vt, "6");
    vt_want_row(&vt, 1, "[6 Audit");
    con_quit(&vt);
}

/* A server that takes connections and never answers: a signal ends the recorder before it has
 * anything to write. Its exit code is that of the signal, not that of a missing server. */
static void
ended_before_the_first_snapshot(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct proc p;

    (void)state;
    snprintf(at.sun_path, sizeof at.sun_path, "%s/.s.PGSQL.5432", getenv("TMPDIR"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 8), 0);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        proc_queuetop(&p, NULL, "record %s \"host=%s port=5432\"", file, getenv("TMPDIR"));
        assert_int_equal(poll(&ready, 1, PROC_WAIT_MS), 1);
        int session = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        assert_int_equal(kill(p.pid, signals[i]), 0);
        assert_int_equal(proc_wait(&p), 128 + signals[i]);
        char *out = proc_output(&p), *err = proc_errors(&p);
        assert_non_null(strstr(out, "0 snapshots recorded"));
        assert_non_null(strstr(err, "ended by a signal before the first snapshot"));
        free(out);
        free(err);
        proc_done(&p);
        close(session);
    }
    close(fd);
    unlink(at.sun_path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shows_what_was, setup, teardown),
        cmocka_unit_test_setup_teardown(has_controls, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(torn_and_foreign, setup, teardown),
        cmocka_unit_test_setup_teardown(disk_full, setup, teardown),
        cmocka_unit_test_setup_teardown(disk_full_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_screen, setup, teardown),
        cmocka_unit_test_setup_teardown(ended_before_the_first_snapshot, setup, teardown),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
