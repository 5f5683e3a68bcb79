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

/* Lets the command go on that waits at the gate. */
static void
open_gate(void)
{
    int fd = -1, left_ms = WAIT_MS;

    while ((fd = open("gate", O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && left_ms-- > 0)
        poll(NULL, 0, 1); /* nobody waits at it yet */
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "go\n", 3), 3);
    close(fd);
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
    open_gate(); /* the job ends while nobody can be told */
    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" push q", dsn), 4);
    assert_non_null(strstr(err, "nothing was changed: local is read-only"));
    free(err);
    assert_int_equal(pg_int(conn, "select count(*) from queues.history"), 0);
    lock_server(conn, false);
    pg_wait(conn, "select count(*) from queues.history where state = 'completed'", "1", WAIT_MS);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" push q", dsn), 0);
    open_gate();
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
    pg_standby_start();
    PGconn *new = pg_connect(pg_standby_dsn("failover"));
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

static int
set_up(void **state)
{
    (void)state;
    if (chdir(getenv("TMPDIR")) != 0)
        return -1;
    pg_start(&(struct pg_opts){.conf = "wal_level = replica\nmax_wal_senders = 4\n"});
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_locked_server_is_waited_for),
        cmocka_unit_test(the_new_primary_is_found),
    };

    return cmocka_run_group_tests(tests, set_up, pg_group_stop);
}
