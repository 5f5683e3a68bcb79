/*
 * Two real servers, the second following the first by streaming replication: the lag on the
 * primary's Database screen; a console on the standby, which looks and says why it does no more;
 * and a promotion under its eyes.
 */
#include "tests/e2e/console.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/proc.h"

static PGconn *standby;

/* A console on the standby's copy of the test's database. */
static void
on_standby(struct vt *vt)
{
    const char *argv[] = {getenv("QUEUETOP"), pg_standby_dsn("app1"), NULL};

    vt_spawn(vt, 24, 80, argv, NULL);
    vt_want(vt, "live");
    vt_want(vt, "STANDBY");
}

/* As the screen says it: "8ms", "2.3s". */
static double
lag_ms(struct vt *vt)
{
    int row, col;
    char *unit;

    vt_want(vt, "  lag ");
    assert_true(vt_find(vt, "  lag ", &row, &col));
    double n = strtod(strstr(vt_row(vt, row), "  lag ") + 6, &unit);
    return n * (!strncmp(unit, "ms", 2) ? 1 : *unit == 's' ? 1000 : 60000);
}

/* If the lag never appears, the time limit of the test program ends the wait. */
static void
the_primary_tells_how_far_it_is_behind(void **state)
{
    struct vt vt;

    (void)state;
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "7");
    vt_want(&vt, "  lag ");
    pg_run(standby, "select pg_wal_replay_pause()");
    pg_wait(standby, "select pg_is_wal_replay_paused()", "t", 5000);
    con_ready("mail.send", 200);
    while (lag_ms(&vt) < 2000)
        vt_settle(&vt, 100);
    pg_run(standby, "select pg_wal_replay_resume()");
    while (lag_ms(&vt) >= 2000)
        vt_settle(&vt, 100);
    con_quit(&vt);
}

static void
a_standby_is_looked_at(void **state)
{
    struct vt vt;

    (void)state;
    on_standby(&vt);
    vt_want(&vt, "sms.send");
    con_ready("report.daily", 7);
    vt_want(&vt, "report.daily"); /* the row reaches the standby, and the console stays live */
    vt_keys(&vt, "3");
    vt_want(&vt, "boom");
    vt_keys(&vt, "r");
    vt_want(&vt, "this server is a standby: it takes no changes");
    vt_keys(&vt, "esc a");
    vt_want(&vt, "this server is a standby");
    vt_keys(&vt, "esc 7");
    vt_want(&vt, "own lag");
    vt_keys(&vt, "f");
    vt_want(&vt, "this is a standby: rows and vacuums are counted on the primary only");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

static void
a_promotion_is_noticed(void **state)
{
    struct vt vt;

    (void)state;
    on_standby(&vt);
    vt_keys(&vt, "3");
    vt_want(&vt, "boom");
    pg_run(standby, "select pg_promote()");
    vt_want(&vt, "this server was promoted");
    vt_gone(&vt, "STANDBY");
    vt_keys(&vt, "r");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 3 jobs ready");
    assert_int_equal(pg_int(standby, "select count(*) from queues.audit"), 1);
    assert_int_equal(pg_int(standby, "select count(*) from queues.queue where state = 'failed'"),
                     0);
    assert_int_equal(con_count("state = 'failed'"), 3); /* the old primary knows nothing of it */
    con_quit(&vt);
}

/* Another database takes the place of the first one: same address, same names, another queue. */
static void
take_its_place(void)
{
    char *name = xstrdup(pg_value(con_db(), "select current_database()"));
    PGconn *admin = pg_connect(pg_dsn("postgres"));

    pg_run(admin, "drop database if exists past");
    pg_run(admin, "create database fresh template model");
    pg_run(admin, "alter database %s allow_connections false", name);
    pg_run(admin, "select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s'",
           name);
    char *gone = xasprintf("select count(*) from pg_stat_activity where datname = '%s'", name);
    pg_wait(admin, gone, "0", 60000); /* the rename waits for 5 s only */
    free(gone);
    pg_run(admin, "alter database %s rename to past; alter database fresh rename to %s", name,
           name);
    PQfinish(admin);
    free(name);
    con_reconnect();
}

/* It does so while a box is open and no call is under way. The console closes the box, and says
 * why. */
static void
another_database_is_noticed(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 3);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "p");
    vt_want(&vt, "Pause queue: mail.send");
    take_its_place();
    con_ready("mail.send", 1);
    vt_want(&vt, "another server or database is at this address now");
    vt_gone(&vt, "Pause queue");
    vt_want(&vt, "ready 1 ");
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 0);
    con_quit(&vt);
}

/* It does so while an editor has the payload of a job of the first one: no act follows. */
static void
an_edited_payload_is_of_the_old_database(void **state)
{
    char *go = xasprintf("%s/go", pg_host()), *path = xasprintf("%s/editor", pg_host());
    char *var = xasprintf("EDITOR=%s", path);
    const char *const env[] = {var, "VISUAL=", NULL};
    struct vt vt;

    (void)state;
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\necho it waits\nread word <%s\n", go);
    fprintf(f, "sed -i 's/job 1/job one/' \"$1\"\n");
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(mkfifo(go, 0600), 0);
    int fd = open(go, O_RDWR | O_CLOEXEC); /* waits for no reader */
    assert_true(fd >= 0);
    con_failed("mail.send", 1, "boom");
    con_spawn(&vt, 24, 80, NULL, env);
    vt_want(&vt, "live");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "e");
    vt_want(&vt, "it waits");
    take_its_place();
    pg_wait(con_db(), /* the console has looked at the new one for a while */
            "select count(*) from pg_stat_activity where application_name = 'queuetop' and "
            "datname = current_database() and query_start > backend_start + interval '2 s'",
            "1", 60000);
    assert_int_equal(write(fd, "\n", 1), 1);
    vt_want(&vt, "what was edited is dropped: its box was closed meanwhile");
    con_quit(&vt);
    close(fd);
    assert_int_equal(unlink(go) | unlink(path), 0);
    free(go), free(path), free(var);
}

/* What the service "here" names. */
static void
serve(const char *path, const char *dbname)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    fprintf(f, "[here]\nhost=%s\nuser=postgres\ndbname=%s\n", pg_host(), dbname);
    assert_int_equal(fclose(f), 0);
}

/* A console that finds the test's database by a service, so that the test can turn it to another
 * database. The caller frees. */
struct by_service {
    char *path, *env, *old; /* the file of services, and its variable; the first database */
};

static struct by_service
start_by_service(struct vt *vt)
{
    struct by_service s = {.path = xasprintf("%s/services", pg_host())};
    const char *argv[] = {getenv("QUEUETOP"), "service=here", NULL};

    s.env = xasprintf("PGSERVICEFILE=%s", s.path);
    s.old = xstrdup(con_dsn());
    serve(s.path, pg_value(con_db(), "select current_database()"));
    vt_spawn(vt, 24, 80, argv, (const char *const[]){s.env, NULL});
    return s;
}

static void
end_by_service(struct by_service *s)
{
    free(s->path);
    free(s->env);
    free(s->old);
}

/* Asks to pause the queue, up to the last question. */
static void
ask_to_pause(struct vt *vt)
{
    vt_keys(vt, "p");
    vt_want(vt, "Pause queue: mail.send");
    vt_keys(vt, "enter");
    vt_want(vt, "F2 count again");
}

/* Only the watcher's connection breaks, and reconnects to another server. The actor's connection to
 * the old server is still open. */
static void
no_act_goes_to_the_old_database(void **state)
{
    struct vt vt;

    con_ready("mail.send", 3);
    struct by_service here = start_by_service(&vt);
    vt_want(&vt, "ready 3 ");
    ask_to_pause(&vt);
    vt_keys(&vt, "esc esc *");
    vt_want(&vt, "1 marked");
    con_empty(state);
    con_ready("mail.send", 1);
    serve(here.path, pg_value(con_db(), "select current_database()"));
    PGconn *was = pg_connect(here.old);
    assert_int_equal(pg_int(was, "select count(*) from pg_stat_activity where application_name = "
                                 "'queuetop actor' and datname = current_database()"),
                     1);
    pg_run(was, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = "
                "'queuetop'");
    vt_want(&vt, "another server or database is at this address now");
    vt_want(&vt, "ready 1 ");
    vt_keys(&vt, "g"); /* the message goes */
    vt_gone(&vt, "1 marked");
    ask_to_pause(&vt);
    vt_keys(&vt, "y");
    vt_want(&vt, "pause: ");
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 1);
    assert_int_equal(pg_int(was, "select count(*) from queues.audit"), 0);
    pg_wait(was,
            "select count(*) from pg_stat_activity where application_name = 'queuetop actor' and "
            "datname = current_database()",
            "0", 60000);
    con_quit(&vt);
    PQfinish(was);
    end_by_service(&here);
}

/* The other way round: only the actor's connection breaks, in the middle of an act, and reconnects
 * to another database that has the same queue. The act ends; the watcher looks there, too. */
static void
no_act_goes_to_a_database_not_seen(void **state)
{
    struct vt vt;

    con_ready("mail.send", 3);
    struct by_service here = start_by_service(&vt);
    PGconn *lock = con_hold_queue("mail.send"), *was = pg_connect(here.old);
    con_empty(state); /* now: the act waits for the lock no longer than 15 s */
    con_ready("mail.send", 1);
    vt_want(&vt, "ready 3 ");
    ask_to_pause(&vt);
    vt_keys(&vt, "y");
    vt_want(&vt, "waits for a lock");
    serve(here.path, pg_value(con_db(), "select current_database()"));
    pg_run(was, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = "
                "'queuetop actor'");
    vt_want(&vt, "another server or database is at this address now: look");
    vt_gone(&vt, "Pause a queue");
    vt_want(&vt, "ready 1 ");
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 0);
    assert_int_equal(
        pg_int(con_db(), "select count(*) from queue_config where paused_at is not null"), 0);
    assert_int_equal(pg_int(was, "select count(*) from queues.audit"), 0);
    vt_keys(&vt, "8");
    vt_want_row(&vt, 1, "[8 Messages]");
    vt_want(&vt, "pause: refused: another server");
    vt_keys(&vt, "1");
    vt_want_row(&vt, 1, "[1 Queues");
    vt_want(&vt, "ready 1 ");
    ask_to_pause(&vt); /* the next act is for what is shown now */
    vt_keys(&vt, "y");
    vt_want(&vt, "pause: 1 queue paused");
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 1);
    assert_int_equal(pg_int(was, "select count(*) from queues.audit"), 0);
    con_quit(&vt);
    pg_run(lock, "rollback");
    PQfinish(lock);
    PQfinish(was);
    end_by_service(&here);
}

static void
verb_by_service(struct proc *p, const char *path, const char *words)
{
    assert_int_equal(setenv("PGSERVICEFILE", path, 1), 0);
    proc_queuetop(p, NULL, "%s -d service=here", words);
    assert_int_equal(unsetenv("PGSERVICEFILE"), 0);
}

/* A verb loses its connection while it waits for a lock. */
static void
no_verb_goes_to_another_database(void **state)
{
    char *path = xasprintf("%s/services", pg_host()), *err;
    struct proc p;

    con_ready("mail.send", 3);
    PGconn *lock = con_hold_queue("mail.send"), *was = pg_connect(con_dsn());
    serve(path, PQdb(was));
    con_empty(state); /* now: the verb does not wait for the lock for ever */
    con_ready("mail.send", 1);
    verb_by_service(&p, path, "pause mail.send --yes");
    pg_wait(was,
            "select count(*) from pg_stat_activity where application_name = 'queuetop' and "
            "datname = current_database() and wait_event_type = 'Lock'",
            "1", 60000);
    serve(path, pg_value(con_db(), "select current_database()"));
    pg_run(was, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = "
                "'queuetop' and datname = current_database()");
    assert_int_equal(proc_wait(&p), 3);
    err = proc_errors(&p);
    assert_non_null(strstr(err, "another server or database is at this address now than before"));
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 0);
    proc_done(&p);
    PQfinish(lock);
    PQfinish(was);
    unlink(path);
    free(err);
    free(path);
}

/* Waits until the one session of the program in the database is as `what` says, or has ended. */
static void
wait_for_session(PGconn *was, const char *what)
{
    char *sql = xasprintf("select (count(*) = 0 or bool_or(%s))::int from pg_stat_activity where "
                          "application_name = 'queuetop' and datname = current_database()",
                          what);

    pg_wait(was, sql, "1", 60000);
    free(sql);
}

/* Runs `uninstall`, which waits for a lock, and ends its session in a pause between two tries, when
 * the address leads to the other database. Returns the errors; the caller frees. */
static char *
uninstall_elsewhere(const char *path, PGconn *was, const char *other)
{
    struct proc p;

    serve(path, PQdb(was));
    verb_by_service(&p, path, "uninstall --yes-drop-schema queues");
    pg_wait(was,
            "select count(*) from pg_stat_activity where application_name = 'queuetop' and "
            "datname = current_database()",
            "1", 60000);
    /* what it does before is not to be lost, or in doubt: its first try lasts 100 ms */
    wait_for_session(was, "wait_event_type = 'Lock'");
    serve(path, other);
    wait_for_session(was, "case when state = 'idle' and state_change < clock_timestamp() - "
                          "interval '50 ms' then pg_terminate_backend(pid) end");
    assert_int_not_equal(proc_wait(&p), 0);
    char *err = proc_errors(&p);
    proc_done(&p);
    return err;
}

/* Whenever the session ends, the queue of neither database is dropped. Only if it ends between two
 * tries, the verb connects again and notices the other database. On a busy machine the test may
 * come too late for that, and tries again. */
static void
no_uninstall_goes_to_another_database(void **state)
{
    char *path = xasprintf("%s/services", pg_host());
    bool is_noticed = false;

    PGconn *lock = pg_connect(con_dsn()), *was = pg_connect(con_dsn());
    con_empty(state);
    char *other = xstrdup(pg_value(con_db(), "select current_database()"));
    pg_run(lock, "begin; select from queues.queue");
    for (int i = 0; i < 50 && !is_noticed; i++) {
        char *err = uninstall_elsewhere(path, was, other);
        is_noticed = strstr(err, "another server or database is at this address now") != NULL;
        free(err);
        assert_int_equal(pg_int(con_db(), "select count(*) from queues.queue"), 0);
        assert_int_equal(pg_int(was, "select count(*) from queues.queue"), 0);
    }
    assert_true(is_noticed);
    PQfinish(lock);
    PQfinish(was);
    unlink(path);
    free(other);
    free(path);
}

static int
set_up(void **state)
{
    con_setup(state);
    PGconn *c = pg_connect(pg_dsn("postgres"));
    pg_run(c, "alter system set wal_level = replica");
    pg_run(c, "alter system set max_wal_senders = 4");
    pg_run(c, "alter system set wal_receiver_status_interval = 1");
    PQfinish(c);
    pg_restart("fast");
    con_empty(state);
    con_ready("sms.send", 2);
    con_failed("mail.send", 3, "boom");
    pg_standby_start();
    con_reconnect();
    standby = pg_connect(pg_standby_dsn("app1"));
    return 0;
}

static int
tear_down(void **state)
{
    PQfinish(standby);
    return con_teardown(state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_standby_is_looked_at),
        cmocka_unit_test(the_primary_tells_how_far_it_is_behind),
        cmocka_unit_test(a_promotion_is_noticed),
        cmocka_unit_test_setup(another_database_is_noticed, con_empty),
        cmocka_unit_test_setup(an_edited_payload_is_of_the_old_database, con_empty),
        cmocka_unit_test_setup(no_act_goes_to_the_old_database, con_empty),
        cmocka_unit_test_setup(no_act_goes_to_a_database_not_seen, con_empty),
        cmocka_unit_test_setup(no_verb_goes_to_another_database, con_empty),
        cmocka_unit_test_setup(no_uninstall_goes_to_another_database, con_empty),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
