/*
 * The connection against a server whose answers are written in this file: answers in pieces,
 * answers that break off at each important place, refusals, silence, nonsense.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "model/base/log.h"
#include "model/db/db.h"
#include "model/install/install.h"
#include "tests/unit/fake_server.h"

enum { DEADLINE_MS = 60000 };

struct fixture {
    struct loop *loop;
    struct fake *fake;
    struct db *db;
};

struct heard {
    bool done;
    int count;
    struct err err;
    int failed_at;
    bool in_doubt;
    char text[100];
};

static void
hear(void *ctx, struct db_reply *reply)
{
    struct heard *h = ctx;

    h->done = true;
    h->count++;
    h->err = reply->err;
    h->failed_at = reply->failed_at;
    h->in_doubt = reply->in_doubt;
    if (reply->n > 0 && reply->results[0])
        snprintf(h->text, sizeof h->text, "%s", result_text(reply->results[0], 0, 0));
}

static void
ask(struct fixture *f, struct heard *h)
{
    const struct db_stmt s = {.sql = "select v"};

    *h = (struct heard){.failed_at = -1};
    db_ask(f->db, &(struct db_call){.stmts = &s, .n = 1}, -1, hear, h);
}

static void
until(struct fixture *f, const bool *done)
{
    struct err e = {0};

    if (!loop_until(f->loop, done, clock_ms() + DEADLINE_MS, &e))
        fail_msg("%s; last error: %s; queries: %s", e.text, db_last_error(f->db)->text,
                 f->fake->queries.data ? f->fake->queries.data : "");
}

static void
get(struct fixture *f, struct heard *h)
{
    ask(f, h);
    until(f, &h->done);
    assert_int_equal(h->count, 1);
}

static void
open_db(struct fixture *f, struct db_options o)
{
    o.conninfo = fake_dsn(f->fake);
    f->db = db_new(f->loop, &o);
}

/* A good server's answer to one statement: the first `parts` messages of begin, settings, value,
 * commit, ready. */
static struct fake_answer *
good(struct fixture *f, int parts)
{
    struct fake_answer *a = fake_next(f->fake);

    if (parts > 0)
        fake_done(&a->bytes, "BEGIN");
    if (parts > 1)
        fake_value(&a->bytes, "settings");
    if (parts > 2)
        fake_value(&a->bytes, "hello");
    if (parts > 3)
        fake_done(&a->bytes, "COMMIT");
    if (parts > 4)
        fake_ready(&a->bytes, 'I');
    return a;
}

static int
setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    f->loop = loop_new();
    f->fake = fake_new(f->loop);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;

    db_free(f->db);
    fake_free(f->fake);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void
pipeline_goes_out_in_order(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){.schema = "s"});
    good(f, 5);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
    assert_string_equal(h.text, "hello");
    const char *begin =
        strstr(f->fake->queries.data, "begin transaction isolation level read committed\n");
    const char *settings = strstr(f->fake->queries.data, "set_config('search_path'");
    const char *query = strstr(f->fake->queries.data, "select v\n");
    const char *commit = strstr(f->fake->queries.data, "commit\n");
    assert_true(begin && begin < settings && settings < query && query < commit);
    assert_int_equal(f->fake->syncs, 1);
}

static void
answers_in_single_bytes(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    f->fake->slowly = 1;
    open_db(f, (struct db_options){0});
    good(f, 5);
    get(f, &h);
    assert_string_equal(h.text, "hello");
}

/* The connection breaks at each place: the caller learns whether the COMMIT is in doubt. */
static void
break_at_each_place(void **state)
{
    static const bool in_doubt[] = {true, true, true, true, false};
    struct fixture *f = *state;
    struct heard h;

    for (int parts = 0; parts <= 4; parts++) {
        fake_reset(f->fake);
        open_db(f, (struct db_options){.once = true});
        good(f, parts)->hangs_up = true;
        get(f, &h);
        assert_int_equal(h.in_doubt, in_doubt[parts]);
        assert_int_equal(h.err.kind, parts == 4 ? ERR_NONE : ERR_CONN);
        if (parts == 4)
            assert_string_equal(h.text, "hello");
        db_free(f->db);
    }
    fake_reset(f->fake);
    open_db(f, (struct db_options){.once = true, .read_only = true});
    good(f, 3)->hangs_up = true;
    get(f, &h);
    assert_false(h.in_doubt); /* there was nothing to commit */
}

static void
error_then_break_is_no_doubt(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){.once = true});
    struct fake_answer *a = good(f, 2);
    fake_error(&a->bytes, "ERROR", "23505", "twice");
    a->hangs_up = true;
    get(f, &h);
    assert_false(h.in_doubt);
    assert_string_equal(h.err.sqlstate, "23505");
    assert_int_equal(h.failed_at, 0);
}

static void
shutdown_during_commit_is_doubt(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){.once = true});
    struct fake_answer *a = good(f, 3);
    fake_error(&a->bytes, "FATAL", "57P01", "terminating connection");
    a->hangs_up = true;
    get(f, &h);
    assert_true(h.in_doubt);
    assert_string_equal(h.err.sqlstate, "57P01");
}

static void
commit_that_rolls_back_fails(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){0});
    struct fake_answer *a = good(f, 3);
    fake_done(&a->bytes, "ROLLBACK");
    fake_ready(&a->bytes, 'I');
    good(f, 5);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_SQL);
    assert_false(h.in_doubt);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
    assert_int_equal(f->fake->connections, 1);
}

/* An error leaves a transaction open. ROLLBACK comes before the callback and the next call. */
static void
error_is_rolled_back_first(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){0});
    struct fake_answer *a = good(f, 2);
    fake_error(&a->bytes, "ERROR", "42501", "no");
    fake_ready(&a->bytes, 'E');
    a = fake_next(f->fake);
    fake_done(&a->bytes, "ROLLBACK");
    fake_ready(&a->bytes, 'I');
    good(f, 5);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_DENIED);
    assert_int_equal(f->fake->syncs, 2);
    assert_non_null(strstr(f->fake->queries.data, "commit\nrollback\n"));
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
}

/* What a time limit ended is said by its name, with the limit and a way out; by the section's name,
 * or that of the file in sql/console. A full disk is said to be the server's. */
static void
a_limit_names_its_statement(void **state)
{
    const struct {
        struct db_stmt stmt;
        bool read_only;
        int limit_ms;
        const char *sqlstate, *says;
    } cases[] = {
        {{.sql = "select v", .name = "jobs"},
         true,                                         1,
         "57014",                                                      "statement jobs reached its limit of 0.001 s: ask for less, as one queue or one state"  },
        {{.sql = "select v", .name = "requeue"},
         false,                                        1,
         "57014",                                                      "statement requeue reached its limit of 0.001 s: ask for less at a time"                },
        {{.sql = console_sql("server")},
         true,                                         1,
         "57014",                                                      "statement server reached its limit of 0.001 s: ask for less, as one queue or one state"},
        {{.sql = "select v", .name = "jobs"},    true, 60000, "57014", "no"                                                                                    }, /* somebody's cancel */
        {{.sql = "select v", .name = "jobs"},    true, 0,     "57014", "no"                                                                                    },
        {{.sql = "select v", .name = "nodes"},   true, 1,     "55P03", "statement nodes: no"                                                                   },
        {{.sql = "select v"},                    true, 1,     "55P03", "statement: no"                                                                         },
        {{.sql = "select v", .name = "jobs"},
         true,                                         1,
         "53100",                                                      "a file system of the server is full; no"                                               },
        {{.sql = "select v", .name = "jobs"},    true, 1,     "22003", "no"                                                                                    },
    };
    struct fixture *f = *state;

    f->fake->slowly = 1; /* so that more than a millisecond passes */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct heard h = {.failed_at = -1};
        open_db(f, (struct db_options){.read_only = cases[i].read_only,
                                       .statement_timeout_ms = cases[i].limit_ms});
        struct fake_answer *a = good(f, 2);
        fake_error(&a->bytes, "ERROR", cases[i].sqlstate, "no");
        fake_ready(&a->bytes, 'E');
        a = fake_next(f->fake);
        fake_done(&a->bytes, "ROLLBACK");
        fake_ready(&a->bytes, 'I');
        db_ask(f->db, &(struct db_call){.stmts = &cases[i].stmt, .n = 1}, -1, hear, &h);
        until(f, &h.done);
        assert_string_equal(h.err.text, cases[i].says);
        assert_string_equal(h.err.sqlstate, cases[i].sqlstate);
        db_free(f->db);
        f->db = NULL;
        fake_reset(f->fake);
    }
}

static void
refuse_change(struct fixture *f)
{
    struct fake_answer *a = good(f, 2);

    fake_error(&a->bytes, "ERROR", "25006", "cannot execute UPDATE in a read-only transaction");
    fake_ready(&a->bytes, 'E');
    a = fake_next(f->fake);
    fake_done(&a->bytes, "ROLLBACK");
    fake_ready(&a->bytes, 'I');
}

/* The next call goes to a new connection, later each time, until a server takes the change. */
static void
a_read_only_server_is_left(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){0});
    for (int i = 1; i <= 3; i++) {
        refuse_change(f);
        get(f, &h);
        assert_int_equal(h.err.kind, ERR_CONN);
        assert_string_equal(h.err.sqlstate, "25006");
        assert_non_null(strstr(h.err.text, "waiting for a server that takes changes"));
        assert_false(h.in_doubt);
        assert_int_equal(db_state(f->db), DB_BACKOFF);
        assert_int_equal(db_tries(f->db), i);
        assert_int_equal(f->fake->connections, i);
    }
    good(f, 5);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
    assert_int_equal(f->fake->connections, 4);
    assert_int_equal(db_tries(f->db), 0);
}

/* With `once` the error is reported immediately. With `read_only` the user chose read-only. */
static void
read_only_by_wish_or_once(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){.once = true});
    refuse_change(f);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "nothing was changed"));
    assert_int_equal(db_state(f->db), DB_OFF);
    db_free(f->db);
    fake_reset(f->fake);
    open_db(f, (struct db_options){.read_only = true});
    refuse_change(f);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_DENIED);
    assert_int_equal(db_state(f->db), DB_READY);
}

static void
refusals(void **state)
{
    static const struct {
        const char *sqlstate;
        enum err_kind kind;
        enum db_state state;
        int wait_ms; /* least time until the next attempt */
    } cases[] = {
        {"28P01", ERR_AUTH, DB_OFF,     0   },
        {"28000", ERR_AUTH, DB_OFF,     0   },
        {"3D000", ERR_AUTH, DB_OFF,     0   },
        {"42501", ERR_AUTH, DB_OFF,     0   },
        {"57P03", ERR_CONN, DB_BACKOFF, 150 },
        {"53300", ERR_CONN, DB_BACKOFF, 1500},
        {"08P01", ERR_CONN, DB_BACKOFF, 150 },
        {"XX000", ERR_CONN, DB_BACKOFF, 150 },
    };
    struct fixture *f = *state;
    struct err e = {0};
    struct heard h;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_reset(f->fake);
        buf_clear(&f->fake->greeting.bytes);
        fake_error(&f->fake->greeting.bytes, "FATAL", cases[i].sqlstate, "go away");
        f->fake->greeting.hangs_up = true;
        open_db(f, (struct db_options){0});
        int64_t before = clock_ms();
        ask(f, &h);
        while (db_tries(f->db) < 1)
            assert_true(loop_turn(f->loop, 100, &e));
        const struct err *last = db_last_error(f->db);
        assert_int_equal(last->kind, cases[i].kind);
        assert_string_equal(last->sqlstate, cases[i].sqlstate);
        assert_non_null(strstr(last->text, "FATAL: go away"));
        assert_int_equal(db_state(f->db), cases[i].state);
        if (cases[i].state == DB_BACKOFF)
            assert_true(db_next_try_ms(f->db) - before > cases[i].wait_ms);
        assert_int_equal(h.done, cases[i].state == DB_OFF);
        db_free(f->db);
        assert_int_equal(h.count, 1);
    }
    f->db = NULL;
}

static void
password_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    buf_clear(&f->fake->greeting.bytes);
    fake_wants_password(&f->fake->greeting.bytes);
    open_db(f, (struct db_options){0});
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_AUTH);
    assert_non_null(strstr(h.err.text, "PGPASSFILE"));
    assert_true(db_needs_password(f->db));
    get(f, &h); /* stopped: the same answer, no new attempt */
    assert_int_equal(h.err.kind, ERR_AUTH);
    assert_int_equal(f->fake->connections, 1);
    f->fake->good_password = "open sesame";
    db_password(f->db, "wrong");
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_AUTH);
    assert_non_null(strstr(h.err.text, "refuses this password"));
    assert_string_equal(h.err.sqlstate, "28P01");
    assert_true(db_needs_password(f->db)); /* to be typed again */
    db_password(f->db, "open sesame");
    good(f, 5);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
    assert_string_equal(f->fake->password, "open sesame");
    assert_false(db_needs_password(f->db));
}

static void
refuse_all(struct fixture *f)
{
    buf_clear(&f->fake->greeting.bytes);
    fake_error(&f->fake->greeting.bytes, "FATAL", "28P01", "password authentication failed");
    f->fake->greeting.hangs_up = true;
}

static void
until_tries(struct fixture *f, int n)
{
    struct err e = {0};

    while (db_tries(f->db) < n)
        assert_true(loop_turn(f->loop, 100, &e));
}

/* Connects once, then the server refuses. Returns when the first reconnection is under way. */
static void
let_in_then_refuse(struct fixture *f)
{
    struct heard h;

    open_db(f, (struct db_options){0});
    good(f, 5);
    get(f, &h);
    refuse_all(f);
    db_move(f->db, "a test");
}

/* A server that accepted us before may accept us again. While a user looks, each wait is short. */
static void
a_refusal_passes(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    let_in_then_refuse(f);
    until_tries(f, 2);
    assert_int_equal(db_state(f->db), DB_BACKOFF);
    assert_int_equal(db_last_error(f->db)->kind, ERR_AUTH);
    db_attend(f->db);
    for (int i = 3; i <= 7; i++) { /* the last would wait for 6 s */
        until_tries(f, i);
        assert_true(db_next_try_ms(f->db) - clock_ms() <= 1000);
    }
    fake_reset(f->fake);
    good(f, 5);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
}

/* The wait stops growing: a new leader is found within 5 s, however long there was no leader. */
static void
the_wait_for_a_leader_is_bounded(void **state)
{
    struct fixture *f = *state;

    let_in_then_refuse(f);
    for (int i = 2; i <= 9; i++) { /* doubled each time, the last wait would be 64 s */
        until_tries(f, i);
        assert_int_equal(db_state(f->db), DB_BACKOFF);
        assert_in_range(db_next_try_ms(f->db) - clock_ms(), 0, 4800);
        db_retry_now(f->db);
    }
}

/* A server that never accepted us is asked again when the user presses a key. */
static void
a_key_asks_again(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    refuse_all(f);
    open_db(f, (struct db_options){0});
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_AUTH);
    assert_int_equal(db_state(f->db), DB_OFF);
    fake_reset(f->fake);
    good(f, 5);
    db_attend(f->db);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
}

/* Without a person, a server that never accepted us is asked again by the clock. */
static void
a_service_asks_again(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    refuse_all(f);
    open_db(f, (struct db_options){.unattended = true});
    ask(f, &h);
    until_tries(f, 1);
    assert_int_equal(db_state(f->db), DB_BACKOFF);
    assert_int_equal(db_last_error(f->db)->kind, ERR_AUTH);
    assert_false(h.done);
    fake_reset(f->fake);
    good(f, 5);
    until(f, &h.done);
    assert_int_equal(h.err.kind, ERR_NONE);
}

static void
password_is_never_said(void **state)
{
    static const char *const words[] = {
        "postgres://u:s3cret@h/d?s3cret",
        "host=h password='s3cret",
        "password=s3cret nonsense",
        "postgres://u:s3cret@[::1/d",
    };
    struct fixture *f = *state;
    struct heard h;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        f->db = db_new(f->loop, &(struct db_options){.conninfo = words[i]});
        get(f, &h);
        assert_int_equal(h.err.kind, ERR_USAGE);
        if (strstr(h.err.text, "s3cret"))
            fail_msg("said: %s", h.err.text);
        db_free(f->db);
    }
    buf_clear(&f->fake->greeting.bytes);
    fake_error(&f->fake->greeting.bytes, "FATAL", "28P01", "wrong: s3cret");
    open_db(f, (struct db_options){0});
    db_password(f->db, "s3cret");
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_AUTH);
    assert_null(strstr(h.err.text, "s3cret"));
    assert_non_null(strstr(h.err.text, "***"));
}

static void
end_silence(struct fake *fake)
{
    struct buf b = {0};

    fake_error(&b, "ERROR", "57014", "canceling statement due to user request");
    fake_ready(&b, 'E');
    fake_send(fake, &b);
    buf_free(&b);
}

static void
silence_is_cancelled(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){.stall_warn_ms = 1000, .stall_drop_ms = 60000});
    good(f, 2);
    struct fake_answer *a = fake_next(f->fake);
    fake_done(&a->bytes, "ROLLBACK");
    fake_ready(&a->bytes, 'I');
    good(f, 5);
    f->fake->on_cancel = end_silence;
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_TIMEOUT);
    assert_non_null(strstr(h.err.text, "no answer in "));
    assert_null(strstr(h.err.text, "user request")); /* it was ours */
    assert_int_equal(f->fake->cancels, 1);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
    assert_int_equal(f->fake->connections, 1);
}

/* A slow reader is not silent, whether the bytes are in our buffer or only in the kernel's. */
static void
bytes_that_go_out_are_life(void **state)
{
    static const struct {
        size_t bytes;
        int sips, pause_ms, warn_ms, drop_ms;
    } cases[] = {
        {4 << 20, 60000, 20,  400, 800 },
        {190000,  40000, 300, 700, 1400},
    };
    struct fixture *f = *state;
    struct heard h;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *value = xcalloc(cases[i].bytes, 1);
        const struct db_param p = {.value = value, .len = (int)cases[i].bytes, .binary = true};
        const struct db_stmt s = {.sql = "select v", .params = &p, .nparams = 1};
        fake_reset(f->fake);
        f->fake->sips = cases[i].sips;
        f->fake->pause_ms = cases[i].pause_ms;
        open_db(f, (struct db_options){.stall_warn_ms = cases[i].warn_ms,
                                       .stall_drop_ms = cases[i].drop_ms});
        good(f, 5);
        h = (struct heard){.failed_at = -1};
        db_ask(f->db, &(struct db_call){.stmts = &s, .n = 1}, -1, hear, &h);
        until(f, &h.done);
        assert_string_equal(h.err.text, "");
        assert_int_equal(f->fake->connections, 1);
        assert_int_equal(f->fake->cancels, 0);
        db_free(f->db);
        free(value);
    }
    f->db = NULL;
}

/* A server that reads no more bytes is silent, however many bytes are still to be sent. */
static void
bytes_that_stay_are_silence(void **state)
{
    struct fixture *f = *state;
    size_t size = 1 << 20;
    char *value = xcalloc(size, 1);
    const struct db_param p = {.value = value, .len = (int)size, .binary = true};
    const struct db_stmt s = {.sql = "select v", .params = &p, .nparams = 1};
    struct heard h = {.failed_at = -1};

    open_db(f, (struct db_options){.stall_warn_ms = 30, .stall_drop_ms = 90, .once = true});
    f->fake->sips = 4000;
    f->fake->pause_ms = 1000000;
    db_ask(f->db, &(struct db_call){.stmts = &s, .n = 1}, -1, hear, &h);
    until(f, &h.done);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "silent"));
    free(value);
}

static void
silence_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct heard h, next;

    open_db(f, (struct db_options){.stall_warn_ms = 1000, .stall_drop_ms = 5000});
    good(f, 2);
    good(f, 5);
    ask(f, &h);
    ask(f, &next);
    until(f, &h.done);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_true(h.in_doubt);
    until(f, &next.done); /* not sent before: it waits for the new connection */
    assert_int_equal(next.err.kind, ERR_NONE);
    assert_int_equal(f->fake->connections, 2);
    assert_int_equal(f->fake->cancels, 1);
}

static bool
passes_all(void *ctx, struct result *r, struct err *e)
{
    (void)ctx;
    (void)e;
    result_free(r);
    return true;
}

/* The server accepts connections and answers nothing, not even the gate's question. A call waits
 * its time and no longer, however often the connection is made anew. */
static void
a_silent_gate_keeps_nobody(void **state)
{
    static const struct db_gate gate = {{.sql = "select who"}, passes_all, NULL, NULL};
    static const struct db_stmt s = {.sql = "select what"};
    struct fixture *f = *state;
    struct heard h = {.failed_at = -1};

    open_db(f, (struct db_options){.stall_warn_ms = 50, .stall_drop_ms = 100, .gate = &gate});
    db_ask(f->db, &(struct db_call){.stmts = &s, .n = 1}, 6000, hear, &h);
    until(f, &h.done); /* longer than the longest pause between two attempts */
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_null(strstr(f->fake->queries.data, "select what"));
}

static void
cancel_on_request(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct heard h;

    open_db(f, (struct db_options){0});
    good(f, 2);
    struct fake_answer *a = fake_next(f->fake);
    fake_done(&a->bytes, "ROLLBACK");
    fake_ready(&a->bytes, 'I');
    f->fake->on_cancel = end_silence;
    db_cancel(f->db); /* no call runs: the cancel does nothing */
    ask(f, &h);
    while (f->fake->syncs < 1)
        assert_true(loop_turn(f->loop, 100, &e));
    db_cancel(f->db);
    db_cancel(f->db);
    until(f, &h.done);
    assert_int_equal(h.err.kind, ERR_TIMEOUT);
    assert_int_equal(f->fake->cancels, 1);
}

/* A call is cancelled, and answered while the cancel request is still under way. There is an answer
 * for one more call. */
static void
end_before_cancel(struct fixture *f)
{
    struct err e = {0};
    struct heard h;

    f->fake->holds_cancel = true;
    (void)fake_next(f->fake); /* no answer yet */
    const struct fake_answer *late = good(f, 5);
    ask(f, &h);
    while (f->fake->syncs < 1)
        assert_true(loop_turn(f->loop, 100, &e));
    db_cancel(f->db);
    while (f->fake->cancels < 1)
        assert_true(loop_turn(f->loop, 100, &e));
    fake_send(f->fake, &late->bytes);
    until(f, &h.done);
    assert_int_equal(h.err.kind, ERR_NONE);
}

/* The call ended before its cancel request arrived. The request could hit the next call, so the
 * next call waits for the end of the request. */
static void
late_cancel_hits_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct heard next;

    open_db(f, (struct db_options){0});
    end_before_cancel(f);
    ask(f, &next);
    for (int i = 0; i < 5; i++)
        assert_true(loop_turn(f->loop, 5, &e));
    assert_int_equal(f->fake->syncs, 1);
    fake_let_cancel(f->fake);
    until(f, &next.done);
    assert_int_equal(next.err.kind, ERR_NONE);
}

/* The cancel request never ends (a proxy that takes no more connections): it may hit whatever this
 * session runs next. So the next call goes to a new session. */
static void
a_cancel_that_hangs_keeps_nobody(void **state)
{
    struct fixture *f = *state;
    struct heard next;

    open_db(f, (struct db_options){0});
    end_before_cancel(f);
    ask(f, &next);
    until(f, &next.done);
    assert_int_equal(next.err.kind, ERR_NONE);
    assert_int_equal(f->fake->connections, 2);
}

/* The helper thread that looks a name up needs a descriptor. A program may have none left for a
 * while: it must go on, and the call learns why. */
static void
a_name_without_a_descriptor(void **state)
{
    struct fixture *f = *state;
    struct rlimit usual, none;
    struct heard h;
    int next = dup(STDERR_FILENO);

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = usual.rlim_max};
    f->db = db_new(f->loop, &(struct db_options){.conninfo = "host=none.invalid", .once = true});
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    get(f, &h);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "could not look up host name \"none.invalid\""));
}

static void
nonsense_breaks_the_connection_only(void **state)
{
    static const char nonsense[] = "HTTP/1.1 400 Bad Request\r\n\r\n\xff\xff\xff\xff\xff\xff";
    struct fixture *f = *state;
    struct heard h;

    open_db(f, (struct db_options){.stall_drop_ms = 2000});
    struct fake_answer *a = good(f, 1);
    buf_add(&a->bytes, nonsense, sizeof nonsense);
    good(f, 5);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_CONN);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
}

static void
nonsense_as_greeting(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    buf_clear(&f->fake->greeting.bytes);
    buf_str(&f->fake->greeting.bytes, "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n");
    open_db(f, (struct db_options){.once = true});
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_int_equal(db_state(f->db), DB_OFF);
    fake_reset(f->fake); /* with `once` a later call tries to connect again */
    good(f, 5);
    get(f, &h);
    assert_int_equal(h.err.kind, ERR_NONE);
}

static void
keep_text(void *ctx, const char *severity, const char *text)
{
    struct buf *b = ctx;

    buf_printf(b, "%s:%s;", severity, text);
}

static void
count_call(void *ctx)
{
    ++*(int *)ctx;
}

static void
notices_and_last_words(void **state)
{
    struct fixture *f = *state;
    struct buf said = {0}, words = {0};
    struct err e = {0};
    struct heard h;
    int states = 0;

    open_db(f, (struct db_options){0});
    db_on_notice(f->db, keep_text, &said);
    db_on_state(f->db, count_call, &states);
    struct fake_answer *a = fake_next(f->fake);
    fake_notice(&a->bytes, "one\n two");
    fake_done(&a->bytes, "BEGIN");
    fake_value(&a->bytes, "settings");
    fake_value(&a->bytes, "hello");
    fake_done(&a->bytes, "COMMIT");
    fake_ready(&a->bytes, 'I');
    get(f, &h);
    assert_string_equal(said.data, "NOTICE:one two;");
    fake_error(&words, "FATAL", "57P05", "idle too long"); /* while nothing runs */
    fake_send(f->fake, &words);
    shutdown(f->fake->fd, SHUT_RDWR);
    while (db_state(f->db) == DB_READY)
        assert_true(loop_turn(f->loop, 100, &e));
    assert_string_equal(db_last_error(f->db)->sqlstate, "57P05");
    assert_string_equal(db_last_error(f->db)->text, "idle too long");
    while (db_state(f->db) != DB_READY)
        assert_true(loop_turn(f->loop, 100, &e));
    assert_true(states >= 3);
    buf_free(&said);
    buf_free(&words);
}

/* The server hangs up, and a call is asked before anybody has read that: nothing of the call was
 * sent, so nothing is in doubt. With `once` the call fails, else it waits for a new connection. */
static void
a_call_after_the_end_is_not_sent(void **state)
{
    struct fixture *f = *state;
    struct buf words = {0};
    struct heard h;

    fake_error(&words, "FATAL", "57P01", "terminating connection");
    for (int once = 0; once < 2; once++) {
        fake_reset(f->fake);
        open_db(f, (struct db_options){.once = once});
        good(f, 5);
        get(f, &h);
        good(f, 5);
        fake_send(f->fake, &words);
        shutdown(f->fake->fd, SHUT_RDWR);
        get(f, &h);
        assert_false(h.in_doubt);
        assert_string_equal(h.err.sqlstate, once ? "57P01" : "");
        assert_int_equal(f->fake->connections, once ? 1 : 2);
        assert_int_equal(f->fake->syncs, once ? 1 : 2);
        db_free(f->db);
        f->db = NULL;
    }
    buf_free(&words);
}

static void
hear_line(void *ctx, const char *line)
{
    fail_msg("%s%s", ctx ? "" : "said: ", line);
}

/* An old server gets an error message of its own. No statement that it does not know is sent. */
static void
installing_on_an_old_server(void **state)
{
    struct fixture *f = *state;
    struct fake_answer *a = fake_next(f->fake);
    struct err e = {0};

    fake_done(&a->bytes, "BEGIN");
    fake_value(&a->bytes, "settings");
    fake_value(&a->bytes, "12.22 (Debian 12.22-1)");
    fake_done(&a->bytes, "COMMIT");
    fake_ready(&a->bytes, 'I');
    open_db(f, (struct db_options){.once = true, .schema = "q"});
    const struct install_options o = {
        .schema = "q", .viewer = "v", .worker = "w", .operator_ = "o"};
    assert_false(install_run(f->db, f->loop, &o, hear_line, NULL, &e));
    assert_int_equal(e.kind, ERR_REFUSED);
    assert_string_equal(e.text,
                        "the queue needs PostgreSQL 13 or newer, this is 12.22 (Debian 12.22-1)");
    assert_int_equal(f->fake->syncs, 1);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(pipeline_goes_out_in_order),
        T(installing_on_an_old_server),
        T(answers_in_single_bytes),
        T(break_at_each_place),
        T(error_then_break_is_no_doubt),
        T(shutdown_during_commit_is_doubt),
        T(commit_that_rolls_back_fails),
        T(error_is_rolled_back_first),
        T(a_limit_names_its_statement),
        T(a_read_only_server_is_left),
        T(read_only_by_wish_or_once),
        T(refusals),
        T(password_is_asked_for),
        T(a_refusal_passes),
        T(the_wait_for_a_leader_is_bounded),
        T(a_key_asks_again),
        T(a_service_asks_again),
        T(password_is_never_said),
        T(silence_is_cancelled),
        T(bytes_that_go_out_are_life),
        T(bytes_that_stay_are_silence),
        T(silence_is_dropped),
        T(a_silent_gate_keeps_nobody),
        T(cancel_on_request),
        T(late_cancel_hits_nothing_else),
        T(a_cancel_that_hangs_keeps_nobody),
        T(a_name_without_a_descriptor),
        T(nonsense_breaks_the_connection_only),
        T(nonsense_as_greeting),
        T(notices_and_last_words),
        T(a_call_after_the_end_is_not_sent),
    };

    log_min_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
