/*
 * Workers, schedulers and pushers on a server that takes no changes any more: a failover that left
 * its connections open, a server that is locked for a while. They go where libpq's rules lead, wait
 * where there is no other, and lose no job.
 */
#include "tests/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/fault/db_fixture.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 60000 };

/* New transactions of every session, those that are open included, are read-only from now on. */
static void
lock_server(PGconn *conn, bool on)
{
    pg_run(conn, "alter system set default_transaction_read_only = %s", on ? "on" : "off");
    pg_run(conn, "select pg_reload_conf()");
    pg_wait(conn, "show default_transaction_read_only", on ? "on" : "off", WAIT_MS);
}

static void
a_locked_server_is_waited_for(void **state)
{
    char *dsn = xstrdup(pg_newdb("locked"));
    PGconn *conn = pg_connect(dsn);
    struct proc worker, scheduler;
    char *err;

    (void)state;
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    assert_int_equal(mkfifo("gate", 0600), 0);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" push q", dsn), 0);
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule --name s", dsn);
    proc_queuetop(&worker, NULL, "-d \"%s\" work --node n -- sh -c 'read x < gate'", dsn);
    pg_wait(conn, "select count(*) from queues.work_queue where lock_key is not null", "1",
            WAIT_MS);
    lock_server(conn, true);
    proc_want(&worker, "waiting for a server that takes changes: local is read-only");
    proc_want(&scheduler, "waiting for a server that takes changes: local is read-only");
    proc_open_gate("gate"); /* the job ends while the server takes no answer */
    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" push q", dsn), 4);
    assert_non_null(strstr(err, "nothing was changed: local is read-only"));
    free(err);
    assert_int_equal(pg_int(conn, "select count(*) from queues.history"), 0);
    lock_server(conn, false);
    pg_wait(conn, "select count(*) from queues.history where state = 'completed'", "1", WAIT_MS);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" push q", dsn), 0);
    proc_open_gate("gate");
    pg_wait(conn, "select count(*) from queues.history where state = 'completed'", "2", WAIT_MS);
    assert_int_equal(pg_int(conn, "select max(tries) from queues.history"), 1);
    proc_ends(&worker);
    proc_ends(&scheduler);
    PQfinish(conn);
    unlink("gate");
    free(dsn);
}

/* The old primary keeps its connections and takes no changes; the standby is the new one. One
 * worker is told to look for a server that takes changes, the other one and the scheduler are not:
 * once refused, they do too. */
static void
the_new_primary_is_found(void **state)
{
    const char *dsn = pg_newdb("failover");
    struct proc worker[2], scheduler;
    char both[600];

    (void)state;
    PGconn *old = pg_connect(dsn);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    snprintf(both, sizeof both, "host=%s,%s port=5432,5433 user=postgres dbname=failover",
             pg_host(), pg_host());
    PGconn *new = pg_connect(pg_standby_dsn("postgres"));
    pg_wait(new, "select count(*) from pg_database where datname = 'failover'", "1", WAIT_MS);
    PQfinish(new);
    new = pg_connect(pg_standby_dsn("failover"));
    pg_wait(new, "select count(*) from pg_namespace where nspname = 'queues'", "1", WAIT_MS);
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule --name s", both);
    proc_want(&scheduler, "scheduler s is active");
    for (int i = 0; i < 2; i++) {
        proc_queuetop(&worker[i], NULL, "-d \"%s%s\" work --node n%d --queues q%d -- true", both,
                      i ? "" : " target_session_attrs=read-write", i, i);
        proc_want(&worker[i], i ? "node n1 is up" : "node n0 is up");
    }
    pg_wait(new, "select count(*) from queues.node", "2", WAIT_MS);
    pg_run(new, "select pg_promote()");
    lock_server(old, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            proc_run(NULL, NULL, NULL, "-d \"%s\" push q%d", pg_standby_dsn("failover"), i), 0);
    pg_wait(new, "select string_agg(queue, ' ' order by queue) from queues.history", "q0 q1",
            WAIT_MS);
    pg_wait(new,
            "select count(*) from pg_stat_activity where datname = 'failover' and pid <> "
            "pg_backend_pid() and application_name in ('queuetop', 'queuetop books')",
            "4", WAIT_MS);
    for (int i = 0; i < 2; i++)
        proc_ends(&worker[i]);
    proc_ends(&scheduler);
    PQfinish(old);
    PQfinish(new);
}

/* The server waits for a standby that is not there. If this wait is cancelled, the server answers
 * COMMIT, with a warning. The programs don't take such a commit as done: the push is in doubt, the
 * worker asks again. */
static void
what_no_standby_has_is_in_doubt(void **state)
{
    char *dsn = xstrdup(pg_newdb("alone"));
    PGconn *conn = pg_connect(dsn), *waits = pg_connect(dsn);
    struct proc worker;

    (void)state;
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    assert_int_equal(mkfifo("gate", 0600), 0);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" push q", dsn), 0);
    proc_queuetop(&worker, NULL, "-d \"%s\" work --node n --queues q -- sh -c 'read x < gate'",
                  dsn);
    pg_wait(conn, "select count(*) from queues.work_queue where lock_key is not null", "1",
            WAIT_MS);
    pg_run(conn, "create table waits ()");
    pg_run(conn, "alter system set synchronous_standby_names = 'nobody'");
    pg_run(conn, "select pg_reload_conf()");
    pg_wait(conn, "show synchronous_standby_names", "nobody", WAIT_MS);
    for (bool is_held = false; !is_held;) { /* once the checkpointer has read the setting */
        pg_send(waits, "insert into waits default values");
        do {
            is_held = pg_int(conn,
                             "select count(*) from pg_stat_activity where wait_event = 'SyncRep' "
                             "and pid = %d",
                             PQbackendPID(waits)) > 0;
            PQconsumeInput(waits);
        } while (!is_held && PQisBusy(waits));
        if (!is_held)
            assert_string_equal(pg_finish(waits), "");
    }
    proc_check(4, "", "alone: no standby has confirmed it", "-d \"%s\" push later --timeout 8s",
               dsn);
    proc_open_gate("gate");
    proc_want(&worker, "alone: no standby has confirmed it");
    pg_run(conn, "alter system reset synchronous_standby_names");
    pg_run(conn, "select pg_reload_conf()");
    assert_string_equal(pg_finish(waits), "");
    pg_wait(conn,
            "select string_agg(state::text || tries, ' ') from queues.history where queue = 'q'",
            "completed1", WAIT_MS);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" push other", dsn), 0);
    proc_ends(&worker);
    PQfinish(conn);
    PQfinish(waits);
    unlink("gate");
    free(dsn);
}

/* Until such a commit is confirmed, each transaction writes a word into the WAL. On a standby a
 * transaction can't write: reads are answered without it. */
static void
a_doubt_does_not_spoil_reads_at_a_standby(void **state)
{
    struct fixture *f = *state;
    PGconn *conn = pg_connect(pg_dsn("postgres"));
    char both[600];
    struct heard h;

    snprintf(both, sizeof both, "host=%s,%s port=5432,5433 user=postgres dbname=postgres",
             pg_host(), pg_host());
    struct db *db = open_db(f, both, (struct db_options){0});
    pg_run(conn, "create table public.alone (n int)");
    pg_run(conn, "alter system set synchronous_standby_names = 'nobody'");
    pg_run(conn, "select pg_reload_conf()");
    pg_wait(conn, "show synchronous_standby_names", "nobody", WAIT_MS);
    PQfinish(conn);
    do /* waits begin when the checkpointer has read the setting */
        get(f, db, "insert into public.alone values (1)", &h);
    while (h.err.kind == ERR_NONE);
    assert_true(h.in_doubt);
    assert_non_null(strstr(h.err.text, "alone: no standby has confirmed it"));
    pg_down("immediate");
    get(f, db, "select pg_is_in_recovery()", &h);
    assert_string_equal(h.err.text, "");
    assert_string_equal(h.text, "t");
    pg_up();
    pg_standby_down();
    get(f, db, "select 1", &h); /* learns that the standby is gone */
    get(f, db, "select 1", &h); /* a successful read on the standby does not confirm the write */
    assert_non_null(strstr(h.err.text, "alone: no standby has confirmed it"));
    db_free(db);
    pg_standby_up();
    conn = pg_connect(pg_dsn("postgres"));
    pg_run(conn, "alter system reset synchronous_standby_names");
    pg_run(conn, "select pg_reload_conf()");
    pg_wait(conn, "show synchronous_standby_names", "", WAIT_MS);
    PQfinish(conn);
}

static int
set_up(void **state)
{
    (void)state;
    if (chdir(getenv("TMPDIR")) != 0)
        return -1;
    pg_start(&(struct pg_opts){.conf = "wal_level = replica\nmax_wal_senders = 4\n"});
    pg_standby_start();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_locked_server_is_waited_for),
        cmocka_unit_test(what_no_standby_has_is_in_doubt),
        cmocka_unit_test_setup_teardown(a_doubt_does_not_spoil_reads_at_a_standby, db_setup,
                                        db_teardown),
        cmocka_unit_test(the_new_primary_is_found), /* the server is read-only from then on */
    };

    return cmocka_run_group_tests(tests, set_up, pg_group_stop);
}
