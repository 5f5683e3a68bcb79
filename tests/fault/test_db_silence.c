/*
 * The connection against a server that does not answer: a stopped backend, work that takes long, a
 * lock. Nothing of it may make the loop stand still.
 */
#include "tests/harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "tests/fault/db_fixture.h"
#include "tests/server.h"

enum { DEADLINE_MS = 60000 };

static void
stopped_backend(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, pg_dsn("postgres"),
                            (struct db_options){.stall_warn_ms = 1000, .stall_drop_ms = 4000});
    struct heard h, next;
    struct err e = {0};

    get(f, db, "select pg_backend_pid()", &h);
    pid_t backend = (pid_t)strtol(h.text, NULL, 10);
    assert_true(backend > 1);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    ask(db, "select 1", -1, &h);
    ask(db, "select pg_backend_pid()", -1, &next);
    while (db_silent_ms(db) < 100 && !h.done)
        assert_true(loop_turn(f->loop, 50, &e));
    assert_int_equal(db_state(db), DB_BUSY);
    assert_true(loop_until(f->loop, &h.done, clock_ms() + DEADLINE_MS, &e));
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "silent"));
    assert_true(loop_until(f->loop, &next.done, clock_ms() + DEADLINE_MS, &e));
    assert_string_equal(next.err.text, "");
    assert_true(strtol(next.text, NULL, 10) != backend);
    kill(backend, SIGCONT);
    db_free(db);
}

static void
long_work_is_cancelled_unless_allowed(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, pg_dsn("postgres"),
                            (struct db_options){.stall_warn_ms = 100, .stall_drop_ms = 60000});
    const struct db_stmt s = {.sql = "select 'done' from pg_sleep(0.4)"};
    struct err e = {0};
    struct heard h;

    get(f, db, "select 'done' from pg_sleep(50)", &h);
    assert_int_equal(h.err.kind, ERR_TIMEOUT);
    h.done = false;
    db_ask(db, &(struct db_call){.stmts = &s, .n = 1, .statement_timeout_ms = 60000}, -1, hear, &h);
    assert_true(loop_until(f->loop, &h.done, clock_ms() + DEADLINE_MS, &e));
    assert_string_equal(h.err.text, "");
    assert_string_equal(h.text, "done");
    db_free(db);
    db = open_db(f, pg_dsn("postgres"),
                 (struct db_options){.stall_warn_ms = -1, .stall_drop_ms = -1});
    get(f, db, s.sql, &h);
    assert_string_equal(h.text, "done");
    db_free(db);
}

/* The server may be silent for some seconds after a call that sent it many bytes. The same time is
 * too long for a small call: it is cancelled before it ends. */
static void
a_large_call_may_take_longer(void **state)
{
    enum { LARGE = 3 << 20 };
    struct fixture *f = *state;
    struct db *db = open_db(f, pg_dsn("postgres"),
                            (struct db_options){.stall_warn_ms = 100, .stall_drop_ms = 60000});
    char *value = xcalloc(LARGE + 1, 1);
    const struct db_param p = {.value = memset(value, 'x', LARGE)};
    const struct db_stmt s = {
        .sql = "select 'done' from pg_sleep(0.4) where $1::text <> ''", .params = &p, .nparams = 1};
    const struct db_stmt longer = {
        .sql = "select 'done' from pg_sleep(9) where $1::text <> ''", .params = &p, .nparams = 1};
    struct err e = {0};
    struct heard h = {.failed_at = -1};

    db_ask(db, &(struct db_call){.stmts = &s, .n = 1}, -1, hear, &h);
    assert_true(loop_until(f->loop, &h.done, clock_ms() + DEADLINE_MS, &e));
    assert_string_equal(h.err.text, "");
    assert_string_equal(h.text, "done");
    value[1] = 0;
    h = (struct heard){.failed_at = -1};
    db_ask(db, &(struct db_call){.stmts = &longer, .n = 1}, -1, hear, &h);
    assert_true(loop_until(f->loop, &h.done, clock_ms() + DEADLINE_MS, &e));
    assert_int_equal(h.err.kind, ERR_TIMEOUT);
    db_free(db);
    free(value);
}

static void
locked_table(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, NULL, (struct db_options){.lock_timeout_ms = 100});
    PGconn *other = pg_connect(pg_dsn("postgres"));
    struct heard h;

    pg_run(other, "create table held()");
    pg_run(other, "begin; lock table held");
    f->beat_ms = 0; /* the test itself has blocked the loop */
    get(f, db, "select count(*) from public.held", &h);
    assert_int_equal(h.err.kind, ERR_TIMEOUT);
    assert_string_equal(h.err.sqlstate, "55P03");
    pg_run(other, "commit; drop table held");
    PQfinish(other);
    db_free(db);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, db_setup, db_teardown_prompt)
    const struct CMUnitTest tests[] = {
        T(stopped_backend),
        T(long_work_is_cancelled_unless_allowed),
        T(a_large_call_may_take_longer),
        T(locked_table),
    };

    log_min_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
    pg_start(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
