/*
 * A server that is alive and slow. A verb waits for it, and says so to a person; --timeout is the
 * end of its patience. How slow the server is decides the test: it stops a process of the server,
 * or holds a lock, until the program has said that it waits.
 */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fault/queue_fixture.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

static char dsn[400];
static PGconn *conn;

static int
start(void **state)
{
    pg_group_start(state);
    conn = queue_in_newdb(dsn, "slow");
    return 0;
}

static int
stop(void **state)
{
    PQfinish(conn);
    return pg_group_stop(state);
}

static const char *
state_of(const char *queue)
{
    return pg_value(conn, "select count(*) from queues.queue where queue = '%s'", queue);
}

/* Its statement waits for longer than the time after which it was cancelled once. */
static void
a_push_waits(void **state)
{
    struct vt vt;
    PGconn *holder = pg_connect(dsn);

    (void)state;
    pg_run(holder, "begin; lock table queues.queue");
    vt_spawn(&vt, 24, 120,
             (const char *const[]){getenv("QUEUETOP"), "-d", dsn, "push", "mails", NULL}, NULL);
    vt_want(&vt, "the server is slow: no answer for 3 s yet; waiting 60 s at most (--timeout)");
    pg_wait(conn,
            "select count(*) from pg_stat_activity where application_name = 'queuetop' and "
            "wait_event_type = 'Lock' and now() - query_start > interval '12 s'",
            "1", 60000);
    pg_run(holder, "commit");
    assert_int_equal(vt_exit_status(&vt), 0);
    assert_null(strstr(vt_screen_text(&vt), "cancel"));
    vt_done(&vt);
    PQfinish(holder);
    assert_string_equal(state_of("mails"), "1");
}

static void
the_limit_is_an_end(void **state)
{
    PGconn *holder = pg_connect(dsn);

    (void)state;
    pg_run(holder, "begin; lock table queues.queue");
    proc_check(5, "", "no answer in 1 s, it was cancelled", "-d \"%s\" push --timeout 1s late",
               dsn);
    pg_run(holder, "commit");
    PQfinish(holder);
    assert_string_equal(state_of("late"), "0");
}

/* The postmaster stands still: the kernel accepts the connection, and nobody answers. */
static void
a_server_that_does_not_begin(void **state)
{
    struct vt vt;

    (void)state;
    assert_int_equal(kill(pg_pid(), SIGSTOP), 0);
    vt_spawn(&vt, 24, 120, (const char *const[]){getenv("QUEUETOP"), "-d", dsn, "queues", NULL},
             NULL);
    bool said = vt_came(&vt, "the server is slow", 60000);
    proc_check(4, "", "no answer from local for 1 s", "-d \"%s\" queues --timeout 1s", dsn);
    kill(pg_pid(), SIGCONT);
    assert_true(said);
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);
}

/* The console's session at the server stands still. The console says so once, on whatever screen,
 * keeps its rows, and goes on with the same session. */
static void
a_console_waits(void **state)
{
    struct vt vt;
    char watcher[200];
    long pid;

    (void)state;
    vt_spawn(&vt, 24, 120, (const char *const[]){getenv("QUEUETOP"), "-d", dsn, NULL}, NULL);
    vt_want(&vt, "mails");
    vt_want(&vt, "live");
    snprintf(watcher, sizeof watcher, "%s",
             pg_value(conn, "select pid from pg_stat_activity where application_name = 'queuetop' "
                            "and datname = current_database() and pid <> pg_backend_pid()"));
    pid = strtol(watcher, NULL, 10);
    assert_int_equal(kill((pid_t)pid, SIGSTOP), 0);
    bool said = vt_came(&vt, "slow: an answer takes more than 5 s", 60000);
    bool kept = strstr(vt_screen_text(&vt), "mails") != NULL;
    vt_keys(&vt, "4");
    bool went = vt_came(&vt, "[4 Nodes", 60000);
    vt_keys(&vt, "8");
    bool listed = vt_came(&vt, "rows keep their age", 60000);
    kill((pid_t)pid, SIGCONT);
    assert_true(said && kept && went && listed);
    vt_keys(&vt, "1");
    vt_want(&vt, "mails");
    vt_want(&vt, "live");
    vt_keys(&vt, "8");
    vt_want(&vt, "rows keep their age");
    vt_want(&vt, "1 message in this session");
    assert_null(strstr(vt_screen_text(&vt), "cancel"));
    assert_string_equal(
        pg_value(conn, "select pid from pg_stat_activity where application_name = 'queuetop' "
                       "and datname = current_database() and pid <> pg_backend_pid()"),
        watcher);
    vt_keys(&vt, "q");
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);
}

/* Where the verb has a --timeout of its own, this is the one that is meant. */
static void
a_verbs_own_timeout(void **state)
{
    (void)state;
    proc_check(2, "", "--timeout: '5ms' is too short", "-d \"%s\" work --timeout 5ms -- true", dsn);
    proc_check(2, "", "--timeout: \"soon\" is not a duration", "-d \"%s\" queues --timeout soon",
               dsn);
    proc_check(0, "push", NULL, "push --help");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_waits),
        cmocka_unit_test(the_limit_is_an_end),
        cmocka_unit_test(a_server_that_does_not_begin),
        cmocka_unit_test(a_console_waits),
        cmocka_unit_test(a_verbs_own_timeout),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
