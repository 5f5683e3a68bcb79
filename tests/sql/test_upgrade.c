/*
 * Upgrades that nobody notices: an installation that is up to date takes no lock, one whose
 * functions differ waits for no reader and no writer, migrations lock tables last and briefly, and
 * who is in the way is named. The migrations here are the test's own.
 */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/sql.h"
#include "model/base/clock.h"
#include "model/base/log.h"
#include "tests/proc.h"
#include "tests/sql/install.h"

enum { PATIENCE_MS = 600000 };

/* From the base: a function gets another result, which `create or replace` can't give it, and the
 * tables with the most traffic get a column. */
static const struct sql_text migrations[] = {
    {"003_backlog",
     "-- The scripts make it anew; who is in the old one at this moment ends in it.\n"
     "alter function backlog(text[]) rename to backlog_before_003;\n"       },
    {"004_note",    "create function before_tables() returns bigint language sql as"
                 " $$ select count(note) from queue $$;\n"
                 "-- tables\n"
                 "alter table work_queue add column note text;\n"
                 "alter table queue add column note text;\n"},
};
enum { NEWEST = 4 };

static bool
install(struct fixture *f, struct install_options o)
{
    o.schema = "q";
    return install_try(f, f->dsn, o);
}

static void
must_install(struct fixture *f, struct install_options o, const char *says)
{
    if (!install(f, o))
        fail_msg("%s", f->err.text);
    if (!strstr(f->said.data, says))
        fail_msg("no '%s' in:\n%s", says, f->said.data);
}

/* The same where sessions never pause: on a slow machine one of them can be in the way for longer
 * than install tries. It says who it was and changes nothing, and an operator runs it again. */
static void
must_install_at_last(struct fixture *f, struct install_options o, const char *says)
{
    int64_t deadline = clock_ms() + PATIENCE_MS;

    while (!install(f, o))
        if (!strstr(f->err.text, "nothing was changed: the lock was not free for 5 s: pid ") ||
            clock_ms() > deadline)
            fail_msg("%s", f->err.text);
    if (!strstr(f->said.data, says))
        fail_msg("no '%s' in:\n%s", says, f->said.data);
}

static const struct install_options fresh = {0}, again = {.migrate = true},
                                    dry = {.migrate = true, .dry_run = true},
                                    newer = {.migrate = true,
                                             .migrations = migrations,
                                             .nmigrations = 2},
                                    newer_dry = {.migrate = true,
                                                 .dry_run = true,
                                                 .migrations = migrations,
                                                 .nmigrations = 2};

static int
setup(void **state)
{
    static int n;
    char name[20];

    snprintf(name, sizeof name, "upgrade%d", ++n);
    struct fixture *f = install_open(name);
    *state = f;
    must_install(f, fresh, "version 2 installed");
    pg_run(f->conn, "set search_path to q");
    return 0;
}

/* A session that holds a lock on every table and view of the schema but `except`, until it is
 * finished. */
static PGconn *
hold_all(const struct fixture *f, const char *mode, const char *except)
{
    PGconn *conn = pg_connect(f->dsn);

    pg_run(conn, "begin");
    pg_run(conn,
           "do $$ declare t regclass; begin"
           " for t in select oid from pg_class where relnamespace = 'q'::regnamespace and"
           " relkind in ('r', 'p', 'v') and relname <> '%s' loop"
           " execute format('lock table %%s in %s mode', t); end loop; end $$",
           except, mode);
    return conn;
}

/* Another session holds every table but `meta` exclusively: an install that needs one would wait.
 */
static void
nothing_to_do_needs_no_lock(void **state)
{
    struct fixture *f = *state;
    PGconn *other = hold_all(f, "access exclusive", "meta");

    pg_run(other, "select pg_advisory_lock(hashtext('queuetop install'), hashtext('q'))");
    must_install(f, fresh, "nothing to change (");
    must_install(f, again, "nothing to change (");
    must_install(f, dry, "nothing to change (");
    PQfinish(other);
}

/* A reader and a writer of every table stay in their transactions. A lock that conflicts with
 * theirs would have to wait. */
static void
functions_are_replaced_under_load(void **state)
{
    struct fixture *f = *state;
    PGconn *reader = hold_all(f, "access share", ""), *writer = hold_all(f, "row exclusive", "");

    pg_run(f->conn, "drop function setting_int(text) cascade");
    must_install(f, dry, "would be brought up to date");
    assert_string_equal(pg_value(f->conn, "select to_regprocedure('setting_int(text)')"), "NULL");
    must_install(f, again, "brought up to date");
    assert_string_equal(pg_value(f->conn, "select setting_int('error_limit')"), "8192");
    must_install(f, again, "nothing to change (");
    PQfinish(reader);
    PQfinish(writer);
}

static void
a_dry_run_tries_no_migration(void **state)
{
    struct fixture *f = *state;
    PGconn *other = hold_all(f, "access exclusive", "meta");

    must_install(f, newer_dry, "migration 003_backlog: would be run");
    assert_non_null(strstr(f->said.data, "migration 004_note: would be run"));
    assert_string_equal(pg_value(f->conn, "select version from meta"), "2");
    PQfinish(other);
}

/* A reader holds the lock. Sessions that push later must not wait long behind the installer. */
static void
who_is_in_the_way_is_named(void **state)
{
    struct fixture *f = *state;
    PGconn *reader = pg_connect(f->dsn);
    char pid[40];

    pg_run(reader, "begin");
    pg_run(reader, "select count(*) from q.queue");
    assert_false(install(f, newer));
    assert_int_equal(err_exit_code(&f->err), 3);
    snprintf(pid, sizeof pid, "pid %d (postgres, ", PQbackendPID(reader));
    if (!strstr(f->err.text, pid) || !strstr(f->err.text, "select count(*) from q.queue"))
        fail_msg("%s", f->err.text);
    assert_string_equal(pg_value(f->conn, "select version from meta"), "2");
    assert_string_equal(pg_value(f->conn, "select to_regprocedure('before_tables()')"), "NULL");
    pg_run(f->conn, "select push('a', '1')");
    PQfinish(reader);
}

static void
another_installer_is_named(void **state)
{
    struct fixture *f = *state;
    PGconn *other = pg_connect(f->dsn);

    pg_run(other, "begin; select pg_advisory_xact_lock(hashtext('queuetop install'), "
                  "hashtext('q'))");
    assert_false(install(f, newer));
    assert_non_null(strstr(f->err.text, "pg_advisory_xact_lock"));
    pg_run(other, "rollback; begin; insert into q.queue (queue) values ('a');"
                  " prepare transaction 'forgotten'");
    assert_false(install(f, newer));
    if (!strstr(f->err.text, "prepared transaction 'forgotten'"))
        fail_msg("%s", f->err.text);
    pg_run(other, "rollback prepared 'forgotten'");
    PQfinish(other);
}

/* --- from the base, on a busy queue --- */

/* A child that does not outlive a test that fails. */
static pid_t
start_child(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

/* Repeats the call in a child process until the child is told to end. The exit code says whether
 * each call went well. The child's sessions never look for a deadlock: the installer must give way
 * by itself, however long a slow machine lets it wait for its turn. */
static pid_t
keep_on(const struct fixture *f, const char *sql)
{
    pid_t pid = start_child();

    if (pid != 0)
        return pid;
    sigset_t end;
    const struct timespec no_time = {0};
    PGconn *conn = PQconnectdb(f->dsn);
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    PQclear(PQexec(conn, "set search_path to q; set deadlock_timeout to '10min'"));
    while (sigtimedwait(&end, NULL, &no_time) < 0) {
        PGresult *res = PQexec(conn, sql);
        ExecStatusType status = PQresultStatus(res);
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            fprintf(stderr, "%s: %s", sql, PQresultErrorMessage(res));
            _exit(1);
        }
        PQclear(res);
    }
    PQfinish(conn);
    _exit(0);
}

static void
ended_well(pid_t pid)
{
    int status = 1;

    kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
goes_on(const struct fixture *f)
{
    char sql[200];

    snprintf(sql, sizeof sql, "select (select count(*) from q.history) > %d + %d",
             (int)pg_int(f->conn, "select count(*) from history"), 20);
    pg_wait(f->conn, sql, "t", PATIENCE_MS);
}

static void
migrations_from_the_base_on_a_busy_queue(void **state)
{
    struct fixture *f = *state;
    static const char *const jobs[] = {
        "select push('a', '1')", "select schedule('s')",
        ("select c.* from claim('n', 5) x, complete('n', array[x.lease], array[x.version],"
         " array[x.seq], null::timestamptz[], null::bytea[]) c"),
        "select count(*) from overview(), backlog(null)"};
    enum { JOBS = sizeof jobs / sizeof *jobs };
    pid_t child[JOBS];

    for (int i = 0; i < JOBS; i++)
        child[i] = keep_on(f, jobs[i]);
    goes_on(f);
    must_install_at_last(f, newer, "version 4 made from version 2 (");
    goes_on(f);
    for (int i = 0; i < JOBS; i++)
        ended_well(child[i]);
    assert_int_equal(pg_int(f->conn, "select version from meta"), NEWEST);
    assert_string_equal(pg_value(f->conn, "select concat(before_tables(), pg_get_function_result("
                                          "'backlog(text[])'::regprocedure) = 'text')"),
                        "0f");
    must_install(f, newer, "version 4 is there, nothing to change (");
    assert_false(install(f, again)); /* the program without these migrations is an older one */
    assert_non_null(strstr(f->err.text, "version 4"));
}

/* What `queuetop --schema q install --print` of the base wrote, and what still earlier trees left.
 */
static void
run_file(struct fixture *f, const char *name)
{
    char path[300];
    struct proc p;

    snprintf(path, sizeof path, "%s/tests/sql/%s", getenv("SRCDIR"), name);
    const char *argv[] = {
        "psql", "-Xq1", "-vON_ERROR_STOP=1", "-o", "/dev/null", "-d", f->dsn, "-f", path, NULL};
    proc_start(&p, argv, NULL);
    if (proc_wait(&p) != 0)
        fail_msg("%s", proc_errors(&p));
    proc_done(&p);
}

/* The program's own migrations, while an older worker registers, sends heartbeats, claims and
 * completes. In the end the schema is the same as a new one, byte for byte. */
static void
the_program_upgrades_the_base_on_a_busy_queue(void **state)
{
    struct fixture *f = *state, *made = install_open("upgrade_base");
    const struct install_options own = {
        .migrate = true, .migrations = sql_migrate, .nmigrations = sql_migrate_n};
    static const char *const jobs[] = {
        "select push('a', '1')", "select schedule('s')",
        "select node_start('n', '00000000-0000-0000-0000-000000000001', 'h', 1, '0.1.0', 1, null,"
        " 4), node_beat('n', '00000000-0000-0000-0000-000000000001')",
        ("select c.* from claim('n', 5) x, complete('n', array[x.lease], array[x.version],"
         " array[x.seq], null::timestamptz[], null::bytea[]) c"),
        "select count(*) from overview(), backlog(null)"};
    enum { JOBS = sizeof jobs / sizeof *jobs };
    pid_t child[JOBS];

    run_file(made, "base_2.sql");
    pg_run(made->conn, "set search_path to q");
    pg_run(made->conn, "alter database upgrade_base set search_path to q");
    run_file(made, "base_2_left.sql");
    pg_run(made->conn, "alter database upgrade_base reset search_path");
    assert_string_equal(pg_value(made->conn, "select version from meta"), "2");
    for (int i = 0; i < JOBS; i++)
        child[i] = keep_on(made, jobs[i]);
    goes_on(made);
    must_install_at_last(made, own, " made from version 2 (");
    goes_on(made);
    for (int i = 0; i < JOBS; i++)
        ended_well(child[i]);
    assert_int_equal(pg_int(made->conn, "select version from meta"), 2 + sql_migrate_n);
    assert_string_equal(
        pg_value(made->conn, "select node_clock('n', '00000000-0000-0000-0000-000000000001', -3500)"
                             "; select clock_ahead from node"),
        "-00:00:03.5");
    must_install(made, own, "nothing to change (");
    char *upgraded = install_dump(made, "q"), *fresh_one = install_dump(f, "q");
    assert_string_equal(upgraded, fresh_one);
    free(upgraded);
    free(fresh_one);
    void *second = made;
    install_teardown(&second);
}

/* --- functions that are not made any more --- */

/* An earlier program makes three functions that the next one does not. Somebody has replaced one of
 * them, and a view of somebody depends on another. */
static const struct sql_text earlier[] = {
    {"003_earlier",
     "create function dead_003(a int, b text) returns int language sql as 'select 1';\n"
     "create function used_003() returns int language sql as 'select 2';\n"
     "create function changed_003() returns int language sql as 'select 3';\n"},
    {"004_later",   "-- nothing\n"                                            },
    {"005_last",    "-- nothing\n"                                            },
};

static struct install_options
earlier_ones(int n)
{
    return (struct install_options){.migrate = true, .migrations = earlier, .nmigrations = n};
}

/* Functions of the schema that are not the queue's of today. */
static void
left_are(const struct fixture *f, const char *names)
{
    assert_string_equal(
        pg_value(f->conn, "select coalesce(string_agg(proname, ' ' order by proname), '') from "
                          "pg_proc where pronamespace = 'q'::regnamespace and proname ~ '_003$'"),
        names);
}

static void
what_is_no_longer_made_is_dropped(void **state)
{
    struct fixture *f = *state;
    static const char theirs[] = "create function their_003() returns int language sql as "
                                 "'select 4'; create view public.v as select used_003();"
                                 "create function push(int, int) returns int language sql as "
                                 "'select 5'";

    must_install(f, earlier_ones(1), "version 3 made from version 2");
    left_are(f, "changed_003 dead_003 used_003");
    pg_run(f->conn, theirs);
    pg_run(f->conn,
           "create or replace function changed_003() returns int language sql as 'select 6'");
    must_install(f, earlier_ones(2), "version 4 made from version 3");
    left_are(f, "changed_003 their_003 used_003");
    if (!strstr(f->said.data, "function changed_003() is not needed any more, but somebody has "
                              "changed it: it stays") ||
        !strstr(f->said.data,
                "function used_003() is not needed any more, but it stays: view public.v "
                "depends on function used_003()"))
        fail_msg("%s", f->said.data);
    pg_run(f->conn, "drop view public.v");
    must_install(f, earlier_ones(3), "version 5 made from version 4");
    left_are(f, "changed_003 their_003");
    assert_string_equal(pg_value(f->conn, "select push(1, 2)"), "5");
    assert_int_equal(pg_int(f->conn, "select count(*) from made_function where name ~ '_003[(]'"),
                     0);
}

/* A program of the same version may know functions that this one does not: they stay until an
 * installation brings a newer version. */
static void
the_same_version_drops_nothing(void **state)
{
    struct fixture *f = *state;

    pg_run(f->conn, "create function other_003() returns int language sql as 'select 7';"
                    "insert into made_function select 'other_003()', md5(prosrc) from pg_proc"
                    " where proname = 'other_003'");
    pg_run(f->conn, "drop function setting_int(text) cascade");
    must_install(f, again, "brought up to date");
    left_are(f, "other_003");
    must_install(f, earlier_ones(2), "version 4 made from version 2");
    left_are(f, "changed_003 dead_003 used_003");
}

/* The printed text does the same, also where a tool sets a savepoint before each statement. */
static void
the_printed_text_drops_the_same(void **state)
{
    struct fixture *f = *state;
    struct install_options o = earlier_ones(2);

    o.schema = "q";
    must_install(f, earlier_ones(1), "version 3 made from version 2");
    int all = (int)pg_int(f->conn, "select count(*) from made_function");
    assert_int_equal(install_by_psql(f, "-1vON_ERROR_ROLLBACK=on", o, 3), 0);
    left_are(f, "");
    assert_int_equal(pg_int(f->conn, "select count(*) from made_function"), all - 3);
    assert_int_equal(pg_int(f->conn, "select count(*) from pg_proc where pronamespace = "
                                     "'q'::regnamespace"),
                     all - 3);
}

/* The reader ends while the installer waits for it. */
static void
it_is_tried_again(void **state)
{
    struct fixture *f = *state;
    pid_t child = start_child();

    if (child == 0) {
        PGconn *reader = PQconnectdb(f->dsn), *watch = PQconnectdb(f->dsn);
        PQclear(PQexec(reader, "begin; select count(*) from q.queue"));
        PQclear(PQexec(watch, "create table public.reads ()"));
        for (bool waits = false; !waits;) {
            PGresult *res = PQexec(watch, "select from pg_locks where not granted and relation ="
                                          " 'q.queue'::regclass");
            waits = PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) > 0;
            PQclear(res);
        }
        PQclear(PQexec(reader, "commit"));
        _exit(0);
    }
    pg_wait(f->conn, "select to_regclass('public.reads') is not null", "t", PATIENCE_MS);
    must_install_at_last(f, newer, "version 4 made from version 2 (");
    ended_well(child);
}

/* --- signals --- */

/* Starts an install and returns when it waits for the lock 42. On a slow machine it may give up
 * before and say so; then an operator runs it again. */
static void
install_until_it_waits(struct fixture *f, struct proc *p)
{
    int64_t deadline = clock_ms() + PATIENCE_MS;

    for (;;) {
        siginfo_t end = {0};
        proc_queuetop(p, NULL, "--schema other install -d \"%s\"", f->dsn);
        while (waitid(P_PID, (id_t)p->pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && !end.si_pid)
            if (pg_int(f->conn, "select count(*) from pg_locks where locktype = 'advisory' and not"
                                " granted") == 1)
                return;
        proc_wait(p);
        char *said = proc_errors(p);
        if (!strstr(said, "nothing was changed") || clock_ms() > deadline)
            fail_msg("%s", said);
        free(said);
        proc_done(p);
    }
}

/* While a statement waits, its server process does not notice that the program is gone: the program
 * must cancel it. Here a trigger waits for a lock without a limit, in place of a statement that
 * takes long. */
static void
a_signal_ends_it_at_the_server(void **state)
{
    struct fixture *f = *state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct proc p;

    pg_run(f->conn, "create function public.waits() returns event_trigger language plpgsql set "
                    "lock_timeout = 0 as $$ begin perform pg_advisory_lock(42); end $$");
    pg_run(f->conn, "create event trigger waits on ddl_command_start execute function "
                    "public.waits()");
    pg_run(f->conn, "select pg_advisory_lock(42)");
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        install_until_it_waits(f, &p);
        kill(p.pid, signals[i]);
        assert_int_not_equal(proc_wait(&p), 0);
        char *said = proc_errors(&p);
        if (!strstr(said, "interrupted"))
            fail_msg("%s", said);
        free(said);
        proc_done(&p);
        pg_wait(f->conn,
                "select count(*) from pg_locks where locktype = 'advisory' and not granted", "0",
                PATIENCE_MS);
    }
    pg_run(f->conn, "drop event trigger waits");
}

/* What the scripts make is of the newest version already: no migration is run over it, by install
 * or by the printed text. */
static void
a_new_schema_is_the_newest(void **state)
{
    struct fixture *f = *state, *other = install_open("upgrade_new");
    struct install_options o = newer;

    o.schema = "p";
    o.migrate = false;
    if (!install_try(f, f->dsn, o))
        fail_msg("%s", f->err.text);
    assert_string_equal(pg_value(f->conn, "select version from p.meta"), "4");
    if (!install_try(f, f->dsn, o) || !strstr(f->said.data, "nothing to change"))
        fail_msg("%s%s", f->said.data, f->err.text);
    if (install_by_psql(other, "-1vON_ERROR_STOP=1", o, 0) != 0)
        fail_msg("%s", other->said.data);
    assert_string_equal(pg_value(other->conn, "select version from p.meta"), "4");
    void *second = other;
    install_teardown(&second);
}

/* The same migrations as one text for psql. */
static void
the_printed_text_upgrades_the_same(void **state)
{
    struct fixture *f = *state, *other = install_open("upgrade_printed");
    struct install_options o = newer;

    must_install(other, fresh, "version 2 installed");
    must_install(other, newer, "version 4 made from version 2");
    o.schema = "q";
    PGconn *reader = hold_all(f, "access share", "");
    assert_int_equal(install_by_psql(f, "-1vON_ERROR_STOP=1", o, 2), 3);
    assert_non_null(strstr(f->said.data, "lock timeout"));
    pg_run(reader, "commit");
    PQfinish(reader);
    if (install_by_psql(f, "-1vON_ERROR_STOP=1", o, 2) != 0)
        fail_msg("%s", f->said.data);
    assert_string_equal(pg_value(f->conn, "select version from meta"), "4");
    char *printed = install_dump(f, "q"), *installed = install_dump(other, "q");
    assert_string_equal(printed, installed);
    assert_int_equal(install_by_psql(f, "-1vON_ERROR_STOP=1", o, 2), 3);
    assert_non_null(strstr(f->said.data, "version 4 is installed, this file is for version 2"));
    free(printed);
    free(installed);
    void *second = other;
    install_teardown(&second);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, install_teardown)
    const struct CMUnitTest tests[] = {
        T(nothing_to_do_needs_no_lock),
        T(functions_are_replaced_under_load),
        T(a_dry_run_tries_no_migration),
        T(who_is_in_the_way_is_named),
        T(another_installer_is_named),
        T(migrations_from_the_base_on_a_busy_queue),
        T(the_program_upgrades_the_base_on_a_busy_queue),
        T(what_is_no_longer_made_is_dropped),
        T(the_same_version_drops_nothing),
        T(the_printed_text_drops_the_same),
        T(it_is_tried_again),
        T(a_signal_ends_it_at_the_server),
        T(a_new_schema_is_the_newest),
        T(the_printed_text_upgrades_the_same),
    };

    log_min_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
    pg_start(&(struct pg_opts){.conf = "max_prepared_transactions = 2"});
    return cmocka_run_group_tests(tests, NULL, NULL);
}
