/*
 * The asynchronous connection against a real server: transactions, errors, dry runs, scripts, the
 * order of replies, ends in the middle, killed backends and a server that goes and comes back.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/loop.h"
#include "model/db/db.h"
#include "tests/fault/db_fixture.h"
#include "tests/server.h"

static void
test_one_call(void **state)
{
    struct fixture *f = *state;
    struct db *db =
        open_db(f, NULL, (struct db_options){.schema = "My Queue", .statement_timeout_ms = 3000});
    struct heard h;

    assert_int_equal(db_state(db), DB_OFF);
    get(f, db, "select current_setting('search_path')", &h);
    assert_string_equal(h.err.text, "");
    assert_string_equal(h.text, "\"My Queue\", pg_temp");
    assert_int_equal(db_state(db), DB_READY);
    get(f, db, "select current_setting('statement_timeout')", &h);
    assert_string_equal(h.text, "3s");
    get(f, db, "select current_setting('application_name')", &h);
    assert_string_equal(h.text, "test_db");
    assert_string_equal(db_name(db), "postgres");
    assert_string_equal(db_host(db), "local");
    db_free(db);
    db = open_db(f, NULL, (struct db_options){0}); /* the login's path is never ours */
    get(f, db, "select current_setting('search_path')", &h);
    assert_string_equal(h.text, "pg_catalog, pg_temp");
    db_free(db);
}

/* A call's own time zone and search path: for the watcher and the actor, for that call only. */
static void
test_settings_of_a_call(void **state)
{
    struct fixture *f = *state;
    struct db_stmt stmt = {.sql = "select concat(current_setting('TimeZone'), ' ',"
                                  " current_setting('search_path'))"};

    for (int read_only = 0; read_only < 2; read_only++) {
        struct db *db = open_db(
            f, NULL, (struct db_options){.schema = "pg_catalog", .read_only = read_only == 1});
        struct heard h = {0}, usual;
        get(f, db, stmt.sql, &usual);
        assert_null(strstr(usual.text, "Asia/Tokyo"));
        db_ask(
            db,
            &(struct db_call){
                .stmts = &stmt, .n = 1, .timezone = "Asia/Tokyo", .search_path = "\"a b\", public"},
            -1, hear, &h);
        until(f, &h.done);
        assert_string_equal(h.err.text, "");
        assert_string_equal(h.text, "Asia/Tokyo \"a b\", public, pg_temp");
        get(f, db, stmt.sql, &h);
        assert_string_equal(h.text, usual.text);
        db_free(db);
    }
}

/* A bare call has no settings of its own: those of the session, whatever the role has set. */
static void
test_settings_of_a_session(void **state)
{
    static const char *const odd[] = {"default_transaction_isolation = serializable",
                                      "statement_timeout = '1h'",
                                      "lock_timeout = '1h'",
                                      "session_replication_role = replica",
                                      "idle_session_timeout = '1h'",
                                      "transaction_timeout = '1h'"};
    static const struct db_stmt look = {
        .sql = "select concat_ws(' ', current_setting('transaction_isolation'), "
               "current_setting('statement_timeout'), current_setting('lock_timeout'), "
               "current_setting('session_replication_role'), "
               "coalesce(current_setting('idle_session_timeout', true), '0'), "
               "coalesce(current_setting('transaction_timeout', true), '0'))"};
    struct fixture *f = *state;
    PGconn *owner = pg_connect(pg_dsn("postgres"));
    struct heard h = {0};

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        (void)pg_try(owner, "alter role postgres set %s", odd[i]); /* older servers lack the last */
    struct db *db =
        open_db(f, NULL, (struct db_options){.statement_timeout_ms = 3000, .lock_timeout_ms = 100});
    get(f, db, "select 1/0", &h); /* a call that fails has set nothing */
    get(f, db, "select current_setting('statement_timeout')", &h);
    assert_string_equal(h.text, "3s");
    h.done = false;
    db_ask(db, &(struct db_call){.stmts = &look, .n = 1, .bare = true}, -1, hear, &h);
    until(f, &h.done);
    assert_string_equal(h.text, "read committed 3s 100ms origin 0 0");
    db_free(db);
    pg_run(owner, "alter role postgres reset all");
    PQfinish(owner);
}

static void
test_errors(void **state)
{
    struct fixture *f = *state;
    struct db *db =
        open_db(f, NULL, (struct db_options){.statement_timeout_ms = 2000, .lock_timeout_ms = 100});
    struct heard h;

    get(f, db, "select 1/0", &h);
    assert_int_equal(h.err.kind, ERR_SQL);
    assert_string_equal(h.err.sqlstate, "22012");
    assert_int_equal(h.failed_at, 0);
    get(f, db, "select 1", &h); /* the failed transaction is gone */
    assert_string_equal(h.text, "1");
    get(f, db, "select pg_sleep(300)", &h);
    assert_int_equal(h.err.kind, ERR_TIMEOUT);
    assert_string_equal(h.err.text, "statement reached its limit of 2 s: ask for less at a time");
    assert_string_equal(h.err.sqlstate, "57014");
    get(f, db,
        "do $$ begin raise exception 'no' using errcode = 'QT005', detail = 'd1\n d2', hint = 'h'; "
        "end $$",
        &h);
    assert_int_equal(h.err.kind, ERR_REFUSED);
    assert_string_equal(h.err.text, "no; d1 d2; hint: h");
    get(f, db, "set local role pg_monitor; select 1", &h);
    assert_int_equal(h.err.kind, ERR_SQL); /* one statement only */
    db_free(db);
}

static void
test_failed_statement_is_named(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, NULL, (struct db_options){0});
    struct db_param p[3] = {{.value = "7"}, {.value = NULL}};
    const struct db_stmt sum = {.sql = "select $1::int + 1, $2::text is null, length($3::bytea)",
                                .nparams = 3,
                                .params = p};
    const struct db_stmt wrong = {.sql = "select no_such_column"}, s[] = {sum, wrong, sum};
    struct db_reply r;
    struct err e = {0};

    p[2] = (struct db_param){.value = "\0\1", .len = 2, .binary = true};
    assert_false(db_do(db, f->loop, &(struct db_call){.stmts = s, .n = 3}, &r, &e));
    assert_int_equal(r.failed_at, 1);
    assert_string_equal(e.sqlstate, "42703");
    assert_null(r.results[2]);
    assert_int_equal(result_int(r.results[0], 0, 0, -1), 8);
    assert_string_equal(result_text(r.results[0], 0, 1), "t");
    assert_int_equal(result_int(r.results[0], 0, 2, -1), 2);
    db_reply_done(&r);
    assert_true(db_do(db, f->loop, &(struct db_call){.stmts = s, .n = 1, .bare = true}, &r, &e));
    struct result *mine = db_take(&r, 0);
    db_reply_done(&r);
    assert_int_equal(result_rows(mine), 1);
    result_free(mine);
    db_free(db);
}

static void
test_dry_and_read_only(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, NULL, (struct db_options){.schema = "public"});
    struct db *reader = open_db(f, NULL, (struct db_options){.read_only = true});
    const struct db_stmt make = {.sql = "create table dry_table()"}, look = {.sql = "select 1"};
    struct db_reply r;
    struct err e = {0};
    struct heard h;

    assert_true(db_do(db, f->loop, &(struct db_call){.stmts = &make, .n = 1, .dry = true}, &r, &e));
    db_reply_done(&r);
    get(f, db, "select to_regclass('public.dry_table') is null", &h);
    assert_string_equal(h.text, "t");
    get(f, reader, "create table t()", &h);
    assert_int_equal(h.err.kind, ERR_DENIED);
    get(f, reader, "select current_setting('transaction_isolation')", &h);
    assert_string_equal(h.text, "repeatable read");
    assert_false(
        db_do(reader, f->loop, &(struct db_call){.stmts = &look, .n = 1, .bare = true}, &r, &e));
    assert_int_equal(e.kind, ERR_REFUSED);
    db_reply_done(&r);
    db_free(db);
    db_free(reader);
}

static void
collect_notice(void *ctx, const char *severity, const char *text)
{
    char *said = ctx;

    snprintf(said, 100, "%s %s", severity, text);
}

static void
test_script(void **state)
{
    struct fixture *f = *state;
    struct db *db =
        open_db(f, NULL, (struct db_options){.schema = "public", .statement_timeout_ms = 60000});
    const struct db_param p = {.value = "x'y"};
    static const char made[] =
        "create table script_table(a int); insert into script_table values (1), (2);"
        " do $$ begin raise notice 'hello'; end $$; select current_setting('test.word')";
    const struct db_stmt set = {
        .sql = "select set_config('test.word', $1, true)", .nparams = 1, .params = &p};
    const struct db_stmt make = {.sql = made}, count = {.sql = "select count(*) from script_table"};
    const struct db_stmt more = {.sql = "insert into script_table values (3)"};
    const struct db_stmt breaks = {.sql = "select 1; select 1/0; select 2"};
    const struct db_stmt good[] = {set, make, count}, bad[] = {more, breaks, more};
    const struct db_stmt ends = {.sql = "commit"}, copies = {.sql = "copy script_table to stdout"};
    struct db_reply r;
    struct err e = {0};
    char said[100] = "";

    db_on_notice(db, collect_notice, said);
    assert_true(
        db_do(db, f->loop, &(struct db_call){.stmts = good, .n = 3, .script = true}, &r, &e));
    assert_string_equal(result_text(r.results[1], 0, 0), "x'y");
    assert_int_equal(result_int(r.results[2], 0, 0, -1), 2);
    assert_string_equal(said, "NOTICE hello");
    db_reply_done(&r);
    assert_false(
        db_do(db, f->loop, &(struct db_call){.stmts = bad, .n = 3, .script = true}, &r, &e));
    assert_int_equal(r.failed_at, 1);
    assert_string_equal(e.sqlstate, "22012");
    db_reply_done(&r);
    assert_false(
        db_do(db, f->loop, &(struct db_call){.stmts = &ends, .n = 1, .script = true}, &r, &e));
    assert_int_equal(e.kind, ERR_DATA);
    db_reply_done(&r);
    assert_true(db_do(db, f->loop, &(struct db_call){.stmts = &count, .n = 1}, &r, &e));
    assert_int_equal(result_int(r.results[0], 0, 0, -1), 2);
    db_reply_done(&r);
    assert_false(
        db_do(db, f->loop, &(struct db_call){.stmts = &copies, .n = 1, .script = true}, &r, &e));
    assert_string_equal(e.text, "COPY can't be used here");
    db_reply_done(&r);
    assert_true(db_do(db, f->loop, &(struct db_call){.stmts = &count, .n = 1}, &r, &e));
    db_reply_done(&r);
    db_free(db);
}

/* The order of replies, and a reply that asks again. */
struct chain {
    struct db *db;
    char order[20];
    int left;
    bool done;
};

static void
chain_next(void *ctx, struct db_reply *reply)
{
    struct chain *c = ctx;
    const struct db_stmt s = {.sql = "select 'x'"};

    assert_int_equal(reply->err.kind, ERR_NONE);
    snprintf(c->order + strlen(c->order), 2, "%s", result_text(reply->results[0], 0, 0));
    c->done = strlen(c->order) == 4;
    if (c->left-- > 0)
        db_ask(c->db, &(struct db_call){.stmts = &s, .n = 1}, -1, chain_next, c);
}

static void
get_bare(struct fixture *f, struct db *db, const char *sql, struct heard *h)
{
    const struct db_stmt stmt = {.sql = sql};

    *h = (struct heard){.failed_at = -1};
    db_ask(db, &(struct db_call){.stmts = &stmt, .n = 1, .bare = true}, -1, hear, h);
    until(f, &h->done);
}

/* Whether the server was told the text anew shows where its answer must change. After that it is
 * told, and by a new connection, and always where a pooler may stand between. */
static void
test_own_session_parses_once(void **state)
{
    static const char sql[] = "select * from once.t";
    struct fixture *f = *state;
    struct db *db = open_db(f, NULL, (struct db_options){0});
    struct heard h;

    get(f, db, "create schema once", &h);
    get(f, db, "create table once.t as select 'a' as a", &h);
    for (int own = 0; own < 2; own++) {
        db_own_session(db, own == 1);
        get_bare(f, db, sql, &h);
        get_bare(f, db, sql, &h);
        assert_string_equal(h.text, "a");
        get_once(f, NULL, own ? "alter table once.t add c text" : "alter table once.t add b text",
                 &h);
        get_bare(f, db, sql, &h);
        assert_string_equal(h.err.sqlstate, own ? "0A000" : "");
        get_bare(f, db, sql, &h);
        assert_string_equal(h.err.text, "");
        assert_string_equal(h.text, "a");
    }
    get_bare(f, db, "select 1/0", &h); /* parsed, and yet it fails */
    get_bare(f, db, "select 1/0", &h);
    assert_string_equal(h.err.sqlstate, "22012");
    get_bare(f, db, "select 1/", &h);
    get_bare(f, db, "select 1/", &h);
    assert_string_equal(h.err.sqlstate, "42601");
    get(f, db, sql, &h); /* between, a transaction: its COMMIT is what is parsed */
    get_bare(f, db, sql, &h);
    assert_string_equal(h.text, "a");
    db_own_session(db, false);
    get_bare(f, db, "select 'b'", &h);
    db_own_session(db, true);
    get_bare(f, db, sql, &h);
    assert_string_equal(h.text, "a");
    get_bare(f, db, "select pg_backend_pid()", &h);
    char kill[60];
    snprintf(kill, sizeof kill, "select pg_terminate_backend(%.12s, 10000)", h.text);
    get_bare(f, db, sql, &h);
    get_once(f, NULL, kill, &h);
    struct err e;
    while (db_state(db) == DB_READY)
        assert_true(loop_turn(f->loop, 10, &e));
    get_bare(f, db, sql, &h);
    assert_string_equal(h.err.text, "");
    assert_string_equal(h.text, "a");
    db_free(db);
}

static bool
lets_pass(void *ctx, struct result *r, struct err *e)
{
    (void)ctx, (void)e;
    result_free(r);
    return true;
}

/* Asks with a guard, which says no if told to. */
static void
get_guarded(struct fixture *f, struct db *db, const char *sql, const char *no, struct heard *h)
{
    static const char text[] = "select case when $1::text <> '' then $1::int end";
    const struct db_param p = {.value = no};
    const struct db_stmt ask = {.sql = text, .nparams = 1, .params = &p}, stmt = {.sql = sql};
    const struct db_guard guard = {ask, ask, ask, {.sql = NULL}};

    *h = (struct heard){.failed_at = -1};
    db_ask(db, &(struct db_call){.stmts = &stmt, .n = 1, .search_path = "public", .guard = &guard},
           -1, hear, h);
    until(f, &h->done);
}

/* A session whose gate saw the process that greeted us keeps the texts that stand before a call:
 * settings, guard, path. What throws them away, or a wrong one, does no harm. */
static void
test_session_keeps_its_own(void **state)
{
    static const char kept[] = "select count(*) from pg_prepared_statements"
                               " where name like 'queuetop%' and not from_sql";
    static const char *const gates[] = {"select pg_backend_pid() as backend_pid",
                                        "select 1 as backend_pid", "select pg_backend_pid()"};
    struct fixture *f = *state;
    struct heard h;

    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++) {
        const struct db_gate gate = {{.sql = gates[i]}, lets_pass, NULL, NULL};
        struct db *db = open_db(f, NULL, (struct db_options){.gate = &gate});
        for (int n = 0; n < 3; n++) {
            get_guarded(f, db, kept, "", &h);
            assert_string_equal(h.err.text, "");
            assert_string_equal(h.text, i == 0 ? "3" : "0");
        }
        get_guarded(f, db, kept, "no", &h);
        assert_int_equal(h.err.kind, ERR_DENIED);
        get(f, db, i == 0 ? "deallocate all" : "prepare queuetop_0 as select 1", &h);
        assert_string_equal(h.err.text, "");
        get_guarded(f, db, kept, "", &h);
        assert_string_equal(h.err.text, "");
        assert_string_equal(h.text, "0"); /* asked again, with all texts */
        get_guarded(f, db, "select 1/0", "", &h);
        assert_string_equal(h.err.sqlstate, "22012");
        assert_int_equal(h.failed_at, 0);
        db_free(db);
    }
}

static void
test_order(void **state)
{
    struct fixture *f = *state;
    struct chain c = {.db = open_db(f, NULL, (struct db_options){0}), .left = 2};
    const struct db_stmt a = {.sql = "select 'a' from pg_sleep(0.05)"}, b = {.sql = "select 'b'"};

    db_ask(c.db, &(struct db_call){.stmts = &a, .n = 1}, -1, chain_next, &c);
    db_ask(c.db, &(struct db_call){.stmts = &b, .n = 1}, -1, chain_next, &c);
    until(f, &c.done);
    assert_string_equal(c.order, "abxx");
    db_free(c.db);
}

static void
free_db(void *ctx, struct db_reply *reply)
{
    struct db **db = ctx;

    (void)reply;
    db_free(*db);
    *db = NULL;
}

static void
test_freeing(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, NULL, (struct db_options){0});
    const struct db_stmt s = {.sql = "select 1"};
    struct heard h[3];
    struct err e = {0};

    ask(db, "select pg_sleep(1)", -1, &h[0]);
    ask(db, "select 1", -1, &h[1]);
    db_free(db); /* before anything was sent */
    assert_int_equal(h[0].err.kind, ERR_CONN);
    assert_int_equal(h[1].err.kind, ERR_CONN);
    assert_false(h[0].in_doubt);

    db = open_db(f, NULL, (struct db_options){0});
    get(f, db, "select 1", &h[0]);
    ask(db, "select pg_sleep(1)", -1, &h[0]);
    ask(db, "select 1", -1, &h[1]);
    while (db_state(db) != DB_BUSY)
        assert_true(loop_turn(f->loop, 10, &e));
    db_free(db); /* in flight: it may still happen */
    assert_true(h[0].in_doubt);
    assert_false(h[1].in_doubt);
    assert_int_equal(h[0].count + h[1].count, 2);

    db = open_db(f, NULL, (struct db_options){0});
    db_ask(db, &(struct db_call){.stmts = &s, .n = 1}, -1, free_db, &db);
    ask(db, "select 1", -1, &h[1]);
    until(f, &h[1].done); /* from inside the first reply */
    assert_null(db);
    assert_int_equal(h[1].err.kind, ERR_CONN);
}

/* --- faults --- */

/* The planned waits before each new attempt. The real waits depend on the machine. */
struct waits {
    struct db *db;
    int n;
    int64_t longest_ms;
};

static void
note_wait(void *ctx)
{
    struct waits *w = ctx;

    if (db_state(w->db) != DB_BACKOFF)
        return;
    int64_t ms = db_next_try_ms(w->db) - clock_ms();
    w->n++;
    if (ms > w->longest_ms)
        w->longest_ms = ms;
}

static void
test_terminated_backend(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, NULL, (struct db_options){0});
    PGconn *other = pg_connect(pg_dsn("postgres"));
    struct waits w = {.db = db};
    struct heard h;

    get(f, db, "select pg_backend_pid()", &h);
    db_on_state(db, note_wait, &w);
    pg_run(other, "select pg_terminate_backend(%s)", h.text); /* while idle */
    get(f, db, "select 1", &h);
    if (h.err.kind == ERR_CONN) /* it was sent before the end was noticed */
        get(f, db, "select 1", &h);
    assert_string_equal(h.text, "1");
    assert_int_equal(w.n, 1); /* one attempt is enough, and it comes at once: */
    assert_in_range(w.longest_ms, 0, 300);

    ask(db, "select pg_terminate_backend(pg_backend_pid())", -1, &h); /* while busy */
    until(f, &h.done);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_string_equal(h.err.sqlstate, "57P01");
    assert_false(h.in_doubt); /* the statement itself failed: nothing was committed */
    get(f, db, "select 2", &h);
    assert_string_equal(h.text, "2");
    assert_int_equal(db_last_error(db)->kind, ERR_NONE);
    PQfinish(other);
    db_free(db);
}

static void
test_server_restart(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, NULL, (struct db_options){0});
    struct heard h, waits, now;
    struct err e = {0};

    get(f, db, "select 1", &h);
    pg_down("immediate");
    ask(db, "select 2", -1, &waits);
    while (db_state(db) != DB_BACKOFF || db_tries(db) < 2)
        assert_true(loop_turn(f->loop, 100, &e));
    assert_int_equal(db_last_error(db)->kind, ERR_CONN);
    ask(db, "select 3", 0, &now);
    until(f, &now.done); /* at once: there is no connection */
    assert_int_equal(now.err.kind, ERR_CONN);
    assert_int_equal(db_state(db) == DB_READY, false);
    pg_up();
    db_retry_now(db);
    until(f, &waits.done);
    if (waits.err.kind == ERR_CONN) /* it was sent before the end was noticed */
        get(f, db, "select 2", &waits);
    assert_string_equal(waits.text, "2");
    db_free(db);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_call, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_settings_of_a_call, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_settings_of_a_session, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_errors, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_failed_statement_is_named, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_dry_and_read_only, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_script, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_own_session_parses_once, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_session_keeps_its_own, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_order, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_freeing, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_terminated_backend, db_setup, db_teardown),
        cmocka_unit_test_setup_teardown(test_server_restart, db_setup, db_teardown),
    };

    log_min_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
    pg_start(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
