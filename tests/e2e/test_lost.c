/*
 * A server that goes, comes back, stops answering or holds a lock: keys work all the time, old data
 * stays with its age, and everything recovers by itself.
 */
#include "tests/e2e/console.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/proc.h"

static pid_t
backend_of_console(void)
{
    return (pid_t)pg_int(con_db(), "select pid from pg_stat_activity where application_name like "
                                   "'queuetop%%' and datname = current_database() and pid <> "
                                   "pg_backend_pid() order by pid limit 1");
}

/* The cursor follows each key before the console has rested for this long: it waits for no server.
 * How busy the machine is does not count (vt_settle). */
enum { KEY_MS = 100 };

static void
keys_answer(struct vt *vt)
{
    int from, to, col;

    vt_keys(vt, "g");
    vt_settle(vt, 60);
    vt_cursor(vt, &from, &col);
    for (int i = 1; i <= 3; i++) {
        vt_keys(vt, "j");
        vt_settle(vt, KEY_MS);
        vt_cursor(vt, &to, &col);
        assert_int_equal(to, from + i);
    }
}

/* The console waits for a count that takes longer than the time-out of a silent server. Esc cancels
 * the count. */
static void
waits_for_a_long_count(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    pg_run(con_db(), "create or replace function purge_preview(queue text default null, states "
                     "text[] default null, before timestamptz default null) returns table (state "
                     "text, n bigint, why text) language sql stable as $$ select 'purged', "
                     "500::bigint, 'completed' from pg_sleep(9) $$");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "P tab tab C-u text:1h enter");
    vt_want(&vt, "counting");
    pg_wait(con_db(), "select count(*) from pg_stat_activity where wait_event = 'PgSleep'", "1",
            3000);
    vt_keys(&vt, "esc esc");
    pg_wait(con_db(), "select count(*) from pg_stat_activity where wait_event = 'PgSleep'", "0",
            3000);
    vt_keys(&vt, "P tab tab C-u text:1h enter");
    assert_true(vt_came(&vt, "500 jobs", 60000));
    vt_keys(&vt, "esc esc");
    con_quit(&vt);
}

static void
four_queues(void)
{
    con_ready("a.first", 1);
    con_ready("b.second", 1);
    con_ready("c.third", 1);
    con_ready("d.fourth", 1);
}

static void
survives_a_restart(void **state)
{
    struct vt vt;

    (void)state;
    four_queues();
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "d.fourth");
    pg_down("immediate");
    vt_want_row(&vt, 0, "reconnecting");
    vt_want(&vt, "d.fourth"); /* the old data stays */
    keys_answer(&vt);
    vt_want_row(&vt, 0, "STALE");
    pg_up();
    vt_keys(&vt, ": text:reconnect enter");
    vt_want_row(&vt, 0, "live");
    con_quit(&vt);
    con_reconnect();
}

/* A database that is away for a moment, as while it is restored, is tried again until it is back.
 */
static void
survives_a_renamed_database(void **state)
{
    struct vt vt;
    char *name = xstrdup(pg_value(con_db(), "select current_database()"));
    PGconn *admin = pg_connect(pg_dsn("postgres"));

    (void)state;
    four_queues();
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "d.fourth");
    pg_run(admin, "alter database %s allow_connections false", name);
    pg_run(admin, "select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s'",
           name);
    char *gone = xasprintf("select count(*) from pg_stat_activity where datname = '%s'", name);
    pg_wait(admin, gone, "0", 60000); /* the rename waits for 5 s only */
    free(gone);
    pg_run(admin, "alter database %s rename to away", name);
    char *why = xasprintf("FATAL: database \"%s\" does not exist (on socket \"", name);
    vt_want_row(&vt, 22, why);
    free(why);
    vt_want_row(&vt, 0, "reconnecting in");
    keys_answer(&vt);
    pg_run(admin, "alter database away rename to %s; alter database %s allow_connections true",
           name, name);
    vt_want_row(&vt, 0, "live");
    vt_gone(&vt, "does not exist");
    PQfinish(admin);
    con_reconnect();
    con_ready("e.fifth", 1);
    vt_want(&vt, "e.fifth");
    con_quit(&vt);
    free(name);
}

static void
survives_a_terminated_backend(void **state)
{
    struct vt vt;

    (void)state;
    four_queues();
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "d.fourth");
    pg_run(con_db(), "select pg_terminate_backend(%d)", (int)backend_of_console());
    con_ready("e.fifth", 1);
    vt_want(&vt, "e.fifth");
    con_quit(&vt);
}

static void
survives_a_stopped_backend(void **state)
{
    struct vt vt;

    (void)state;
    four_queues();
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "d.fourth");
    pid_t pid = backend_of_console();
    assert_int_equal(kill(pid, SIGSTOP), 0);
    vt_want_row(&vt, 0, "STALE");
    keys_answer(&vt);
    vt_keys(&vt, "2");
    vt_want(&vt, "asking");
    vt_keys(&vt, "?");
    vt_want(&vt, "On this screen");
    vt_keys(&vt, "esc 1");
    vt_want(&vt, "d.fourth");
    assert_int_equal(kill(pid, SIGCONT), 0);
    vt_want_row(&vt, 0, "live");
    con_quit(&vt);
}

static void
survives_a_lock(void **state)
{
    struct vt vt;

    (void)state;
    four_queues();
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "d.fourth");
    pg_run(con_db(), "begin; lock table queue, queue_config, fold, delta in access exclusive mode");
    vt_want_row(&vt, 0, "STALE");
    keys_answer(&vt);
    pg_run(con_db(), "commit");
    vt_want_row(&vt, 0, "live");
    con_quit(&vt);
}

/* The connection is lost during an action: the action is done exactly once, and the console shows
 * its result. */
static void
an_action_is_done_once(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "space space space r");
    vt_want(&vt, "3 jobs");
    pg_restart("fast");
    con_reconnect();
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 3 jobs");
    assert_int_equal(con_count("state = 'ready'"), 3);
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 1);
    vt_keys(&vt, "esc"); /* if the action took long, a box shows the result */
    con_quit(&vt);
}

static void
says_install(const char *verb)
{
    char *err;

    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" %s", con_dsn(), verb), 5);
    if (!strstr(err, "queuetop install --schema queues"))
        fail_msg("%s: %s", verb, err);
    free(err);
}

/* What an older queuetop installed lacks functions: each program says what to do, and that helps.
 */
static void
an_older_queue_is_named(void **state)
{
    struct proc worker;
    struct vt vt;

    (void)state;
    con_ready("mail.send", 3);
    pg_run(con_db(), "drop function overview, schedule_or_wait, claim_or_wait");
    con_spawn(&vt, 24, 80, NULL, NULL);
    vt_want(&vt, "older version, queuetop install --schema queues");
    says_install("schedule");
    says_install("work -- true");
    says_install("queues");
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", con_dsn()), 0);
    vt_want(&vt, "mail.send");
    proc_queuetop(&worker, NULL, "-d \"%s\" work --drain -- true", con_dsn());
    assert_int_equal(proc_wait(&worker), 0);
    proc_done(&worker);
    con_quit(&vt);
}

/* Somebody deleted jobs by hand: the counters still count these jobs as ready. */
static void
a_drain_ends_on_wrong_counters(void **state)
{
    (void)state;
    con_ready("mail.send", 5);
    pg_run(con_db(), "delete from queue where seq > (select min(seq) + 1 from queue)");
    proc_check(0, NULL, NULL, "work --drain -d \"%s\" -- true", con_dsn());
    assert_int_equal(pg_int(con_db(), "select count(*) from history"), 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(survives_a_renamed_database, con_empty),
        cmocka_unit_test_setup(survives_a_terminated_backend, con_empty),
        cmocka_unit_test_setup(survives_a_stopped_backend, con_empty),
        cmocka_unit_test_setup(survives_a_lock, con_empty),
        cmocka_unit_test_setup(waits_for_a_long_count, con_empty),
        cmocka_unit_test_setup(survives_a_restart, con_empty),
        cmocka_unit_test_setup(an_action_is_done_once, con_empty),
        cmocka_unit_test_setup(an_older_queue_is_named, con_empty),
        cmocka_unit_test_setup(a_drain_ends_on_wrong_counters, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
