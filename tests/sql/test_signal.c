/*
 * signal_backend: a statement is cancelled, a session ended, if it still is what was shown; with a
 * line in the audit, once, and with the rights of the caller alone.
 */
#include "model/base/console_sql.h"
#include "tests/sql/core.h"

#include <stdio.h>
#include <string.h>

#include "model/adapter/adapter.h"

#define ACT(n) "'00000000-0000-0000-0000-00000000000" #n "'"

/* t.wish(act, pid): what the console sends, of the session as it is now; t.sent(n, wish): one
 * answer as words. */
static const char words[] =
    "create table t.shown (name text primary key, wish jsonb);"
    "create function t.wish(act text, pid int) returns jsonb language sql as $$"
    " select jsonb_build_object('act', $1, 'who', 'who it was', 'shown', jsonb_build_object('pid', "
    "a.pid,"
    " 'start', a.backend_start, 'state', a.state, 'xact', a.xact_start, 'query', a.query_start, "
    "'own', -1)) from pg_stat_activity a where a.pid = $2 $$;"
    "create function t.sent(n int, wish jsonb, batch int default 1) returns text language sql as $$"
    " select coalesce(state, '-') || ' ' || coalesce(replace(why, wish -> 'shown' ->> 'pid', 'N'), "
    "'') from signal_backend((lpad(n::text, 8, '0') || '-0000-0000-0000-000000000000')::uuid, $3, "
    "$2) $$;"
    "create function t.audited() returns text language sql as $$"
    " select coalesce(string_agg(concat_ws(' ', verb, who, params ->> 'who', changed, skipped), ', "
    "' order by at), '') from audit_log $$;";

static PGconn *
fresh(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "%s", words);
    return c;
}

static PGconn *
holder(const char *database)
{
    PGconn *d = core_join(database);

    pg_run(d, "begin isolation level repeatable read");
    pg_run(d, "select 1");
    return d;
}

static void
keep_wish(PGconn *c, const char *name, const char *act, const PGconn *of)
{
    pg_run(c,
           "insert into t.shown values ('%s', t.wish('%s', %d)) on conflict (name) do update set "
           "wish = excluded.wish",
           name, act, PQbackendPID(of));
}

#define SEND(c, n, name) \
    pg_value(c, "select t.sent(%d, wish) from t.shown where name = '%s'", n, name)
#define LOOK(c, name) \
    pg_value(c, "select t.sent(9, wish, null) from t.shown where name = '%s'", name)

/* The session is told, and its end is seen. */
static void
wait_for_end(PGconn *c, const PGconn *of)
{
    char sql[100];

    snprintf(sql, sizeof sql, "select count(*) from pg_stat_activity where pid = %d",
             PQbackendPID(of));
    pg_wait(c, sql, "0", 5000);
}

static void
a_session_is_ended_once(void **state)
{
    PGconn *c = fresh("ended"), *d = holder("ended"), *e;

    (void)state;
    keep_wish(c, "d", "terminate", d);
    assert_string_equal(LOOK(c, "d"), "told to end ");
    assert_string_equal(pg_value(d, "select 'there'"), "there"); /* a look does nothing */
    expect(c, "", "select t.audited()");
    keep_wish(c, "d", "terminate", d);
    assert_string_equal(SEND(c, 1, "d"), "told to end ");
    wait_for_end(c, d);
    expect(c, "end session postgres who it was 1 0", "select t.audited()");
    /* the answer was lost and is asked for again: stored, whoever has the pid by now */
    assert_string_equal(SEND(c, 1, "d"), "told to end ");
    expect(c, "1", "select count(*) from audit_batch");
    assert_string_equal(SEND(c, 2, "d"), "- pid N has ended already");
    e = holder("ended");
    assert_string_equal(pg_value(e, "select 'there'"), "there");
    PQfinish(e);
    PQfinish(d);
    PQfinish(c);
}

static void
a_statement_is_cancelled(void **state)
{
    PGconn *c = fresh("cancelled"), *d = core_join("cancelled"), *e = core_join("cancelled");

    (void)state;
    pg_run(c, "begin");
    pg_run(c, "lock table node in access exclusive mode");
    pg_send(d, "select count(*) from node");
    pg_wait_blocked(e, d);
    keep_wish(e, "d", "cancel", d);
    assert_string_equal(SEND(e, 1, "d"), "told to stop ");
    assert_string_equal(pg_finish(d), "57014");
    assert_string_equal(pg_value(d, "select 'alive'"), "alive");
    pg_run(c, "rollback");
    assert_string_equal(SEND(e, 2, "d"), "- the statement of pid N is over");
    expect(e, "cancel query postgres who it was 1 0, cancel query postgres who it was 0 1",
           "select t.audited()");
    PQfinish(e);
    PQfinish(d);
    PQfinish(c);
}

/* The console shows a session as it was, and the session may have changed since. Nothing is ended
 * that is not as shown. */
static void
what_has_changed_is_left_alone(void **state)
{
    PGconn *c = fresh("moved"), *d = holder("moved");

    (void)state;
    keep_wish(c, "d", "terminate", d);
    pg_run(d, "commit");
    assert_string_equal(SEND(c, 1, "d"), "- the transaction of pid N is over");
    pg_run(d, "begin");
    pg_run(d, "select 1");
    assert_string_equal(SEND(c, 2, "d"), "- the transaction of pid N is over");
    /* the pid was given to another one */
    keep_wish(c, "d", "terminate", d);
    pg_run(c, "update t.shown set wish = jsonb_set(wish, '{shown,start}', "
              "to_jsonb(now() - interval '1 day'))");
    assert_string_equal(SEND(c, 3, "d"), "- pid N is another session by now");
    /* it was idle, and works again */
    keep_wish(c, "d", "terminate", d);
    PGconn *e = core_join("moved");
    pg_run(e, "begin");
    pg_run(e, "lock table node in access exclusive mode");
    pg_send(d, "select count(*) from node");
    pg_wait_blocked(c, d);
    assert_string_equal(SEND(c, 4, "d"), "- pid N goes on: it runs a statement by now");
    keep_wish(c, "d", "cancel", d); /* cancel is for the statement that was shown */
    pg_run(e, "rollback");
    assert_string_equal(pg_finish(d), "");
    assert_string_equal(SEND(c, 5, "d"), "- the statement of pid N is over");
    /* shown at work, idle in the same transaction by now: still the one that holds */
    pg_run(c, "update t.shown set wish = t.wish('terminate', %d)", PQbackendPID(d));
    pg_run(c, "update t.shown set wish = jsonb_set(wish, '{shown,state}', '\"active\"')");
    assert_string_equal(SEND(c, 6, "d"), "told to end ");
    wait_for_end(c, d);
    PQfinish(e);
    PQfinish(d);
    PQfinish(c);
}

static void
never_its_own(void **state)
{
    PGconn *c = fresh("own"), *d = holder("own");

    (void)state;
    keep_wish(c, "c", "terminate", c);
    assert_string_equal(SEND(c, 1, "c"), "- pid N is a connection of this program");
    keep_wish(c, "d", "terminate", d);
    pg_run(c, "update t.shown set wish = jsonb_set(wish, '{shown,own}', wish -> 'shown' -> 'pid')");
    assert_string_equal(SEND(c, 2, "d"), "- pid N is a connection of this program");
    assert_string_equal(pg_value(d, "select 'there'"), "there");
    PQfinish(d);
    PQfinish(c);
}

static void
only_what_the_caller_may(void **state)
{
    PGconn *c = fresh("rights"), *d = holder("rights"), *o, *m;
    char dsn[500];

    (void)state;
    pg_run(c, "create role signal_bob login in role queues_operator");
    pg_run(c, "create role signal_eve login");
    pg_run(c, "grant usage on schema t to public; grant select on t.shown to public");
    keep_wish(c, "super", "terminate", d);
    snprintf(dsn, sizeof dsn, "%s user=signal_eve", pg_dsn("rights"));
    m = pg_connect(dsn);
    pg_run(m, "begin; select 1");
    keep_wish(c, "eve", "terminate", m);
    snprintf(dsn, sizeof dsn, "%s user=signal_bob", pg_dsn("rights"));
    o = pg_connect(dsn);
    pg_run(o, "set search_path = queues");
    /* he sees nothing of others: what he was shown can't be what is there */
    assert_string_equal(SEND(o, 1, "eve"), "- pid N is another session by now");
    pg_run(c, "grant pg_read_all_stats to signal_bob");
    assert_string_equal(SEND(o, 2, "eve"),
                        "- pid N: signal_bob needs membership in role signal_eve or in "
                        "pg_signal_backend");
    pg_run(c, "grant pg_signal_backend to signal_bob");
    assert_string_equal(
        SEND(o, 3, "super"),
        "- pid N belongs to superuser postgres: only a superuser may send it a signal");
    assert_string_equal(pg_value(d, "select 'there'"), "there");
    assert_string_equal(SEND(o, 4, "eve"), "told to end ");
    wait_for_end(c, m);
    expect(c, "0 1,0 1,0 1,1 0",
           "select string_agg(changed || ' ' || skipped, ',' order by at) from audit_log "
           "where who = 'signal_bob' and verb = 'end session'");
    PQfinish(m);
    m = pg_connect(pg_dsn("rights"));
    pg_run(m, "set role signal_eve");
    assert_string_equal(pg_try(m, "select * from queues.signal_backend(gen_random_uuid(), null, "
                                  "'{\"act\": \"cancel\", \"shown\": {\"pid\": 1}}')"),
                        "42501");
    PQfinish(m);
    PQfinish(o);
    PQfinish(d);
    PQfinish(c);
}

/* Who may call signal_backend may call send_signal too, and only send what he may: what the audit
 * says was sent, was. */
static void
what_is_recorded_was_sent(void **state)
{
    PGconn *c = fresh("recorded"), *d = holder("recorded"), *o;
    char dsn[500];

    (void)state;
    pg_run(c, "create role signal_ann login in role queues_operator, queues_viewer");
    snprintf(dsn, sizeof dsn, "%s user=signal_ann", pg_dsn("recorded"));
    o = pg_connect(dsn);
    pg_run(o, "set search_path = queues");
    expect(o, "0",
           "select count(*) from pg_proc where pronamespace = 'queues'::regnamespace and"
           " proname = 'note_signal'");
    /* not allowed: recorded as left alone, and nothing happens */
    expect(o, "f",
           "select send_signal(" ACT(1) ", 1, 'end session', %d, '{}', 'why', null) -> 0 ? 'state'",
           PQbackendPID(d));
    assert_string_equal(pg_value(d, "select 'there'"), "there");
    /* a process that does not exist, no process, an unknown verb */
    expect(o, "pid 2147483 has ended already",
           "select send_signal(" ACT(
               2) ", 1, 'cancel query', 2147483, null, null, null) -> 0 ->> 'why'");
    assert_string_equal(
        pg_try(o, "select send_signal(" ACT(3) ", 1, 'cancel query', null, null, null, null)"),
        "QT007");
    assert_string_equal(
        pg_try(o, "select send_signal(" ACT(3) ", 1, 'requeue', 1, null, null, null)"), "QT007");
    expect(c, "0 1,0 1", "select string_agg(changed || ' ' || skipped, ',') from audit_log");
    /* allowed: the answer says so, and the session ends */
    PGconn *e = pg_connect(dsn);
    expect(
        o, "told to end",
        "select send_signal(" ACT(4) ", 1, 'end session', %d, null, null, null) -> 0 ->> 'state'",
        PQbackendPID(e));
    wait_for_end(c, e);
    /* after SET ROLE the session has only the rights of that role */
    PGconn *s = core_join("recorded");
    pg_run(s, "set role queues_operator");
    expect(s, "f",
           "select queues.send_signal(" ACT(
               5) ", 1, 'end session', %d, null, null, null) -> 0 ? 'state'",
           PQbackendPID(d));
    PQfinish(s);
    PQfinish(e);
    PQfinish(o);
    PQfinish(d);
    PQfinish(c);
}

static void
nonsense_is_refused(void **state)
{
    PGconn *c = fresh("nonsense"), *d = holder("nonsense");

    (void)state;
    keep_wish(c, "d", "terminat", d);
    assert_string_equal(pg_try(c, "select t.sent(1, wish) from t.shown"), "QT007");
    assert_string_equal(pg_try(c, "select t.sent(1, wish, null) from t.shown"), "QT007");
    assert_string_equal(pg_try(c, "select t.sent(1, '{\"act\": \"cancel\"}')"), "QT007");
    assert_string_equal(pg_try(c, "select t.sent(1, null)"), "QT007");
    /* nobody adds to an action of another */
    keep_wish(c, "d", "terminate", d);
    assert_string_equal(SEND(c, 2, "d"), "told to end ");
    assert_string_equal(
        pg_try(c, "select t.sent(2, jsonb_set(wish, '{shown,pid}', '1')) from t.shown"), "QT007");
    expect(c, "1", "select count(*) from audit");
    PQfinish(d);
    PQfinish(c);
}

/* The same rules where the queue is no queuetop's: the console's own statement. */
static void
the_consoles_statement_agrees(void **state)
{
    PGconn *c = fresh("console"), *d = holder("console");
    const char *sql = console_sql("health_signal");

    (void)state;
    keep_wish(c, "d", "terminate", d);
    const char *wish = pg_value(c, "select wish from t.shown");
    PGresult *r = PQexecParams(c, sql, 2, NULL, (const char *const[]){wish, NULL}, NULL, NULL, 0);
    assert_int_equal(PQntuples(r), 1);
    assert_string_equal(PQgetvalue(r, 0, 1), "told to end");
    PQclear(r);
    assert_string_equal(pg_value(d, "select 'there'"), "there");
    keep_wish(c, "d", "terminate", d);
    pg_run(d, "commit");
    pg_run(d, "begin; select 1");
    wish = pg_value(c, "select wish from t.shown");
    r = PQexecParams(c, sql, 2, NULL, (const char *const[]){wish, "1"}, NULL, NULL, 0);
    assert_true(PQgetisnull(r, 0, 1));
    assert_non_null(strstr(PQgetvalue(r, 0, 2), "is over"));
    PQclear(r);
    keep_wish(c, "d", "terminate", d);
    wish = pg_value(c, "select wish from t.shown");
    r = PQexecParams(c, sql, 2, NULL, (const char *const[]){wish, "1"}, NULL, NULL, 0);
    assert_string_equal(PQgetvalue(r, 0, 1), "told to end");
    PQclear(r);
    wait_for_end(c, d);
    PQfinish(d);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_ended_once),
        cmocka_unit_test(a_statement_is_cancelled),
        cmocka_unit_test(what_has_changed_is_left_alone),
        cmocka_unit_test(never_its_own),
        cmocka_unit_test(only_what_the_caller_may),
        cmocka_unit_test(what_is_recorded_was_sent),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(the_consoles_statement_agrees),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
