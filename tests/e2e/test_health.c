/*
 * The Database screen: who holds vacuum back or has others wait, for how long and with what; C and
 * K with what the server says afterwards; what a login may not see; a standby.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A session of the role etl, which calls itself so. */
static PGconn *
etl(void)
{
    char dsn[500];

    snprintf(dsn, sizeof dsn, "%s user=etl application_name=etl", con_dsn());
    return pg_connect(dsn);
}

/* Opens a transaction that keeps every row that is deleted or replaced from now on. */
static PGconn *
etl_holds(void)
{
    PGconn *c = etl();

    pg_run(c, "begin isolation level repeatable read");
    pg_run(c, "select count(*) from queues.queue\n  where run_after < now()");
    return c;
}

/* Starts the console with a clock that is `minutes` ahead: open transactions look that much
 * older. */
static void
start_later(struct vt *vt, int rows, int cols, const char *option, int minutes)
{
    char now[60];
    time_t then = time(NULL) + minutes * 60 + 5;
    struct tm tm;

    gmtime_r(&then, &tm);
    strftime(now, sizeof now, "QUEUETOP_NOW=%Y-%m-%dT%H:%M:%SZ", &tm);
    con_spawn(vt, rows, cols, (const char *const[]){option, NULL},
              (const char *const[]){now, NULL});
    vt_want(vt, "live");
    vt_keys(vt, "7");
    vt_want(vt, "who holds vacuum back");
}

static void
to_database(struct vt *vt, int rows, int cols)
{
    con_start(vt, rows, cols, NULL);
    vt_keys(vt, "7");
    vt_want(vt, "who holds vacuum back");
}

/* With the sessions of etl only: a connection of another console may hold back vacuum for a moment,
 * and would be the row under the cursor. */
static void
to_etl(struct vt *vt)
{
    to_database(vt, 24, 80);
    vt_keys(vt, "/ text:etl enter");
    vt_want(vt, "filter etl");
}

static const char *
pid_text(const PGconn *c)
{
    static char text[4][40];
    static int n;
    char *t = text[n++ % 4];

    snprintf(t, sizeof text[0], "%d", PQbackendPID(c));
    return t;
}

static void
type_pid(struct vt *vt, const PGconn *c)
{
    vt_type(vt, pid_text(c));
    vt_keys(vt, "enter");
}

static bool
is_there(const PGconn *c)
{
    return pg_int(con_db(), "select count(*) from pg_stat_activity where pid = %d",
                  PQbackendPID(c)) > 0;
}

static void
wait_for_end(const PGconn *c)
{
    char sql[100];

    snprintf(sql, sizeof sql, "select count(*) from pg_stat_activity where pid = %d",
             PQbackendPID(c));
    pg_wait(con_db(), sql, "0", 5000);
}

static const char *
audited(void)
{
    return pg_value(con_db(), "select coalesce(string_agg(concat_ws(' ', verb, changed, skipped), "
                              "', ' order by at), '') from audit_log");
}

static void
shows_who_holds_vacuum_back(void **state)
{
    static const int sizes[][2] = {
        {24, 80 },
        {20, 60 },
        {45, 140}
    };
    struct vt vt;
    char text[200];
    PGconn *c = etl_holds();

    (void)state;
    start_later(&vt, 24, 80, NULL, 41);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        vt_resize(&vt, sizes[i][0], sizes[i][1]);
        vt_want(&vt, pid_text(c));
        vt_want(&vt, "idle in txn");
        vt_want(&vt, "41m");
        vt_want(&vt, "select cou");
    }
    vt_want(&vt, "select count(*) from queues.queue where"); /* on one line */
    snprintf(text, sizeof text, "pid %s (etl) holds back vacuum for 41m", pid_text(c));
    vt_want(&vt, text);
    vt_want(&vt, "K ends it");
    vt_want_row(&vt, 3,
                "what to do"); /* and the act beside it, before all that is only looked at */
    vt_want_row(&vt, 4, "holds back vacuum");
    vt_want_row(&vt, 4, "→ K  end it");
    vt_want_row(&vt, 9, "who holds vacuum back, who waits");
    vt_want(&vt, "dead rows in ");
    vt_want(&vt, "idle in a transaction 1");
    vt_keys(&vt, "enter");
    vt_want(&vt, "holds back");
    vt_want(&vt, "  where run_after < now()");
    vt_keys(&vt, "esc C");
    vt_want(&vt, "it runs no statement now: K ends the session");
    vt_keys(&vt, "f");
    vt_want(&vt, text);
    vt_keys(&vt, "esc v");
    vt_want(&vt, "-- health_server");
    vt_keys(&vt, "esc / text:elsewhere enter");
    vt_want(&vt, "no transaction matches");
    vt_keys(&vt, "esc");
    vt_want(&vt, pid_text(c));
    pg_run(c, "rollback");
    vt_want(&vt, "no transaction is open");
    vt_want(&vt, "idle in a transaction 0");
    con_quit(&vt);
    PQfinish(c);
}

static void
ends_a_session(void **state)
{
    struct vt vt;
    PGconn *c = etl_holds();

    (void)state;
    to_database(&vt, 24, 80);
    vt_want(&vt, pid_text(c));
    vt_keys(&vt, "K");
    vt_want(&vt, "End a session");
    vt_want(&vt, "user etl, app etl, from local");
    vt_want(&vt, "holds back vacuum by");
    vt_want(&vt, "its transaction is rolled back");
    vt_want(&vt, "Type the pid");
    vt_keys(&vt, "enter"); /* nothing typed, y, another number: nothing happens */
    vt_keys(&vt, "text:y enter");
    vt_settle(&vt, 100);
    vt_keys(&vt, "C-u text:1 enter");
    vt_settle(&vt, 100);
    vt_keys(&vt, "esc");
    vt_want(&vt, "nothing was changed");
    assert_true(is_there(c));
    assert_string_equal(audited(), "");
    vt_keys(&vt, "K");
    vt_want(&vt, "Type the pid");
    type_pid(&vt, c);
    vt_want(&vt, "terminate: 1 session told to end");
    wait_for_end(c);
    assert_string_equal(audited(), "end session 1 0");
    assert_non_null(strstr(pg_value(con_db(), "select params ->> 'who' from audit"), "app etl"));
    vt_want(&vt, "no transaction is open");
    vt_keys(&vt, "6");
    vt_want(&vt, "end ses");
    con_quit(&vt);
    PQfinish(c);
    /* a program of ours is named as such, and --read-only asks nothing at all */
    pg_run(con_db(), "set application_name = 'queuetop worker'");
    pg_run(con_db(), "begin");
    pg_run(con_db(), "select pg_current_xact_id()");
    to_database(&vt, 24, 80);
    vt_want(&vt, "queuetop worker");
    vt_keys(&vt, "K");
    vt_want(&vt, "A connection of queuetop");
    vt_paste(&vt, pid_text(con_db()));
    vt_keys(&vt, "enter");
    vt_settle(&vt, 200);
    vt_keys(&vt, "esc");
    con_quit(&vt);
    con_spawn(&vt, 24, 80, (const char *const[]){"--read-only", NULL}, NULL);
    vt_want(&vt, "live");
    vt_keys(&vt, "7");
    vt_want(&vt, "queuetop worker");
    vt_keys(&vt, "K");
    vt_want(&vt, "started with --read-only");
    con_quit(&vt);
    pg_run(con_db(), "rollback");
}

static void
cancels_a_statement_that_waits(void **state)
{
    struct vt vt;
    PGconn *holder, *c;
    char text[200];

    (void)state;
    pg_run(
        con_db(),
        "create table pay (i int); grant select, insert, update, delete, truncate on pay to etl");
    holder = etl_holds();
    c = etl();
    pg_run(holder, "lock table queues.pay in access exclusive mode");
    pg_send(c, "update queues.pay set i = 1");
    pg_wait_blocked(con_db(), c);
    to_database(&vt, 24, 80);
    vt_want(&vt, "blocked 1");
    vt_want(&vt, "1 waiting");
    vt_want(&vt, "waits: lock");
    snprintf(text, sizeof text, "(waits for pid %s) update", pid_text(holder));
    vt_want(&vt, text);
    snprintf(text, sizeof text, "/ text:update enter");
    vt_keys(&vt, text);
    vt_settle(&vt, 100);
    vt_keys(&vt, "C");
    vt_want(&vt, "Cancel a statement");
    snprintf(text, sizeof text, "waits itself for pid %s", pid_text(holder));
    vt_want(&vt, text);
    vt_keys(&vt, "esc");
    vt_want(&vt, "nothing was changed");
    vt_keys(&vt, "C");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "cancel query: 1 statement told to stop");
    assert_string_equal(pg_finish(c), "57014");
    assert_true(is_there(c) && is_there(holder));
    assert_string_equal(audited(), "cancel query 1 0");
    vt_want(&vt, "blocked 0");
    con_quit(&vt);
    PQfinish(holder);
    PQfinish(c);
}

/* The root of a queue for a lock is named with what ends it, and its own question says who waits.
 */
static void
names_the_root_of_a_wait(void **state)
{
    struct vt vt;
    PGconn *holder, *c;
    char text[200];

    (void)state;
    pg_run(
        con_db(),
        "create table pay (i int); grant select, insert, update, delete, truncate on pay to etl");
    holder = etl_holds();
    c = etl();
    pg_run(holder, "lock table queues.pay in access exclusive mode");
    pg_send(c, "update queues.pay set i = 1");
    pg_wait_blocked(con_db(), c);
    start_later(&vt, 24, 140, NULL, 3);
    vt_want(&vt, "waits: lock");
    vt_keys(&vt, "f");
    snprintf(text, sizeof text, "pid %s (etl) is idle in transaction for 3m, and 1 waits",
             pid_text(holder));
    vt_want(&vt, text);
    vt_keys(&vt, "esc / text:idle enter");
    vt_want(&vt, "filter idle");
    vt_keys(&vt, "K");
    snprintf(text, sizeof text, "others wait for its locks: pid %s", pid_text(c));
    vt_want(&vt, text);
    vt_want(&vt, "Type the pid");
    type_pid(&vt, holder);
    vt_want(&vt, "terminate: 1 session told to end");
    assert_string_equal(pg_finish(c), "");
    con_quit(&vt);
    PQfinish(holder);
    PQfinish(c);
}

static void
what_went_meanwhile_is_left_alone(void **state)
{
    struct vt vt, other;
    PGconn *c = etl_holds(), *d;

    (void)state;
    to_etl(&vt);
    vt_want(&vt, pid_text(c));
    vt_keys(&vt, "K");
    vt_want(&vt, "Type the pid");
    pg_run(c, "commit"); /* the same session, another transaction */
    pg_run(c, "begin; select 1");
    type_pid(&vt, c);
    vt_want(&vt, "is over");
    assert_true(is_there(c));
    assert_string_equal(audited(), "end session 0 1");
    pg_run(c, "commit");
    vt_keys(&vt, "g"); /* a key clears the message, which names this session, too */
    vt_gone(&vt, pid_text(c));
    /* two operators: the second finds what the first has done */
    d = etl_holds();
    to_etl(&other);
    vt_want(&vt, pid_text(d));
    vt_want(&other, pid_text(d));
    vt_keys(&vt, "K");
    vt_keys(&other, "K");
    vt_want(&vt, "Type the pid");
    vt_want(&other, "Type the pid");
    type_pid(&vt, d);
    vt_want(&vt, "terminate: 1 session told to end");
    wait_for_end(d);
    type_pid(&other, d);
    vt_want(&other, "has ended already");
    assert_string_equal(audited(), "end session 0 1, end session 1 0, end session 0 1");
    assert_true(is_there(c));
    con_quit(&vt);
    con_quit(&other);
    PQfinish(c);
    PQfinish(d);
}

/* The session ends after the key was pressed and before the question is shown: there is nothing to
 * ask. */
static void
gone_before_the_question(void **state)
{
    struct vt vt;
    PGconn *c = etl_holds();

    (void)state;
    to_database(&vt, 24, 80);
    vt_want(&vt, pid_text(c));
    vt_keys(&vt, "z"); /* a paused screen: the row stays */
    vt_want(&vt, "frozen");
    pg_run(con_db(), "select pg_terminate_backend(%s)", pid_text(c));
    wait_for_end(c);
    PQfinish(c);
    vt_keys(&vt, "K");
    vt_want(&vt, "has ended already");
    assert_string_equal(audited(), "");
    con_quit(&vt);
}

static void
spawn_as(struct vt *vt, const char *user)
{
    char dsn[500];

    snprintf(dsn, sizeof dsn, "%s user=%s", con_dsn(), user);
    vt_spawn(vt, 24, 80, (const char *const[]){getenv("QUEUETOP"), dsn, NULL}, NULL);
    vt_want(vt, "live");
    vt_keys(vt, "7");
    vt_want(vt, "who holds vacuum back");
}

/* What a login can't see or do is said, with the role that would help. */
static void
a_login_sees_what_it_may(void **state)
{
    struct vt vt;
    PGconn *c = etl_holds(), *own, *root = pg_connect(con_dsn());
    char dsn[500];

    (void)state;
    pg_run(root, "begin; select 1");
    spawn_as(&vt, "looker");
    vt_want(&vt, "no transaction is open");
    vt_want(&vt, "user looker can't see what other users' sessions do");
    vt_want(&vt, "history");
    snprintf(dsn, sizeof dsn, "%s user=looker application_name=mine", con_dsn());
    own = pg_connect(dsn);
    pg_run(own, "begin; select 1");
    vt_want(&vt, "mine");
    vt_keys(&vt, "K");
    vt_want(&vt, "may only look");
    vt_keys(&vt, "f");
    vt_want(&vt, "grant pg_monitor to it");
    vt_keys(&vt, "esc");
    con_quit(&vt);

    pg_run(con_db(), "grant pg_read_all_stats to doer");
    spawn_as(&vt, "doer");
    vt_want(&vt, pid_text(c));
    vt_keys(&vt, "/ text:etl enter");
    vt_want(&vt, "filter etl");
    vt_keys(&vt, "K");
    vt_want(&vt, "it is a session of etl: that needs the role pg_signal_backend");
    pg_run(con_db(), "grant pg_signal_backend to doer");
    vt_keys(&vt, "esc / text:postgres enter");
    vt_want(&vt, "filter postgres");
    con_asks_on(2500);
    vt_keys(&vt, "K");
    vt_want(&vt, "only a superuser may signal it");
    vt_keys(&vt, "/ text:etl enter");
    vt_want(&vt, "filter");
    vt_settle(&vt, 100);
    con_quit(&vt);
    assert_true(is_there(c) && is_there(own) && is_there(root));
    assert_string_equal(audited(), "");
    pg_run(con_db(), "revoke pg_read_all_stats, pg_signal_backend from doer");
    PQfinish(c);
    PQfinish(own);
    PQfinish(root);
}

/* Rows may be held back by something other than a session: then C and K say why they can't help. */
static void
slots_and_prepared_transactions(void **state)
{
    struct vt vt;

    (void)state;
    pg_run(con_db(), "begin; create table pay (i int); prepare transaction 'pay 4'");
    pg_run(con_db(), "select pg_create_physical_replication_slot('old', true)");
    start_later(&vt, 24, 140, NULL, 90);
    vt_want(&vt, "pay 4");
    vt_want(&vt, "unread slot");
    vt_want(&vt, "of WAL; select pg_drop_");
    vt_keys(&vt, "f");
    vt_want(&vt, "prepared transaction (pay 4) is open for 1h and holds back vacuum");
    vt_want(&vt, "replication slot (old) is not read by anybody and keeps WAL");
    vt_keys(&vt, "esc g K");
    vt_want(&vt, "commit prepared or rollback prepared ends it");
    pg_run(con_db(), "rollback prepared 'pay 4'");
    vt_gone(&vt, "pay 4");
    vt_keys(&vt, "K");
    vt_want(&vt, "a replication slot has no transaction");
    pg_run(con_db(), "select pg_drop_replication_slot('old')");
    vt_want(&vt, "no transaction is open");
    con_quit(&vt);
}

/* A vacuum that waits is shown as running and holds nothing back. */
static void
a_vacuum_is_no_holder(void **state)
{
    struct vt vt;
    PGconn *v = pg_connect(con_dsn()), *pin = pg_connect(con_dsn());

    (void)state;
    con_ready("mail.send", 20000);
    pg_run(con_db(), "delete from queue");
    pg_run(v, "set vacuum_cost_delay = 100; set vacuum_cost_limit = 1");
    pg_send(v, "vacuum queues.queue");
    pg_wait(con_db(), "select count(*) from pg_stat_progress_vacuum", "1", 5000);
    start_later(&vt, 24, 140, NULL, 41);
    vt_want(&vt, "queues.queue");
    vt_want(&vt, "vacuum queues.queue");
    vt_keys(&vt, "enter");
    vt_want(&vt, "nothing");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "holds back vacuum:");
    pg_run(con_db(), "select pg_cancel_backend(%d)", PQbackendPID(v));
    assert_string_equal(pg_finish(v), "57014");
    vt_want(&vt, "no vacuum runs");
    con_quit(&vt);
    PQfinish(pin);
    PQfinish(v);
}

/* While another screen is in front, the console asks nothing for this screen. If a lock blocks a
 * statement of this screen, the console reports the lock. */
static void
hidden_it_asks_nothing(void **state)
{
    struct vt vt;
    PGconn *lock = pg_connect(con_dsn());

    (void)state;
    to_database(&vt, 24, 80);
    vt_want(&vt, "no transaction is open");
    vt_keys(&vt, "2");
    vt_want(&vt, "unfinished jobs");
    vt_gone(&vt, "asking");
    vt_settle(&vt, 100);
    /* LOCK TABLE on a view locks what it reads, too: pg_database, which each look at the owners
     * reads */
    pg_run(lock, "begin; set local allow_system_table_mods = on; "
                 "alter view pg_catalog.pg_stat_progress_vacuum set (security_barrier = true)");
    con_asks_on(3000);
    vt_gone(&vt, "lock timeout");
    vt_keys(&vt, "7");
    vt_want(&vt, "lock timeout");
    vt_want(&vt, "history"); /* tables have a statement of their own, which was answered */
    pg_run(lock, "rollback");
    vt_gone(&vt, "lock timeout");
    vt_want(&vt, "no transaction is open");
    PQfinish(lock);
    con_quit(&vt);
}

/* A table that somebody holds for himself is not waited for: its size is missing, the rest comes.
 */
static void
locked_tables_are_not_waited_for(void **state)
{
    struct vt vt;
    PGconn *lock = pg_connect(con_dsn());

    (void)state;
    pg_run(lock, "begin; lock table queues.node in access exclusive mode");
    con_spawn(&vt, 45, 140, NULL, NULL);
    vt_keys(&vt, "7");
    vt_want(&vt, "attempt");
    vt_want(&vt, "no vacuum runs");
    vt_settle(&vt, 500);
    vt_gone(&vt, "timeout");
    pg_run(lock, "rollback");
    PQfinish(lock);
    con_quit(&vt);
}

static void
set_standby(bool on)
{
    char path[400];

    snprintf(path, sizeof path, "%s/data/standby.signal", pg_host());
    pg_down("fast");
    if (on) {
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        fclose(f);
        assert_int_equal(chmod(path, 0666), 0);
    } else {
        assert_int_equal(unlink(path), 0);
    }
    pg_up();
    con_reconnect();
}

static void
a_standby_says_so(void **state)
{
    struct vt vt;

    (void)state;
    set_standby(true);
    con_spawn(&vt, 24, 80, NULL, NULL);
    vt_want(&vt, "live");
    vt_keys(&vt, "7");
    vt_want(&vt, "replay");
    PGconn *c = etl_holds();
    vt_want(&vt, pid_text(c));
    vt_keys(&vt, "f");
    vt_want(&vt, "this is a standby: rows and vacuums are counted on the primary only");
    vt_keys(&vt, "esc K");
    vt_want(&vt, "this server is a standby: it takes no changes");
    assert_true(is_there(c));
    con_quit(&vt);
    PQfinish(c);
    set_standby(false);
}

static int
set_up(void **state)
{
    con_setup(state);
    PGconn *c = pg_connect(pg_dsn("postgres"));
    pg_run(c, "alter system set max_prepared_transactions = 4");
    pg_run(c, "alter system set wal_level = replica");
    pg_run(c, "alter system set max_replication_slots = 4");
    pg_run(c, "alter system set max_wal_senders = 4");
    pg_run(c, "create role etl login");
    pg_run(c, "create role looker login in role queues_viewer");
    pg_run(c, "create role doer login in role queues_operator");
    PQfinish(c);
    pg_restart("fast");
    c = pg_connect(pg_dsn("model"));
    pg_run(c, "grant usage on schema queues to etl");
    pg_run(c,
           "grant select, insert, update, delete, truncate on all tables in schema queues to etl");
    PQfinish(c);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(shows_who_holds_vacuum_back, con_empty),
        cmocka_unit_test_setup(ends_a_session, con_empty),
        cmocka_unit_test_setup(cancels_a_statement_that_waits, con_empty),
        cmocka_unit_test_setup(names_the_root_of_a_wait, con_empty),
        cmocka_unit_test_setup(what_went_meanwhile_is_left_alone, con_empty),
        cmocka_unit_test_setup(gone_before_the_question, con_empty),
        cmocka_unit_test_setup(a_login_sees_what_it_may, con_empty),
        cmocka_unit_test_setup(slots_and_prepared_transactions, con_empty),
        cmocka_unit_test_setup(a_vacuum_is_no_holder, con_empty),
        cmocka_unit_test_setup(hidden_it_asks_nothing, con_empty),
        cmocka_unit_test_setup(locked_tables_are_not_waited_for, con_empty),
        cmocka_unit_test_setup(a_standby_says_so, con_empty),
    };

    return cmocka_run_group_tests(tests, set_up, con_teardown);
}
