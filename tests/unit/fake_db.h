/*
 * A scripted struct db: the test reads each call and gives the answer when it wants. This header
 * DEFINES the functions of model/db/db.h that stores and actions call, so a program that includes
 * it links without the real ones.
 */
#ifndef TESTS_UNIT_FAKE_DB_H
#define TESTS_UNIT_FAKE_DB_H

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/db/db.h"
#include "tests/harness.h"

enum { FAKE_CALLS = 200, FAKE_STMTS = 40, FAKE_PARAMS = 32 };

struct fake_call {
    const char *sql[FAKE_STMTS];
    char *param[FAKE_STMTS][FAKE_PARAMS];
    int n;
    bool dry, answered;
    int patience_ms; /* statement_timeout_ms of the call */
    db_reply_fn *fn;
    void *ctx;
};

struct db {
    struct fake_call call[FAKE_CALLS];
    int n;           /* calls so far */
    int next;        /* the first one that was not answered */
    int64_t took_us; /* what answers say that they took; 0 = 1 ms */
    struct err error;
    enum db_state state;
    char host[32], name[32]; /* of a conninfo "HOST/NAME" */
    char password[32];       /* the last one that came */
    int retries, cancels;
    struct db_turns *turns;
    struct result **planned; /* the answer of the next db_do: a table for each of its statements */
};

struct db_turns {
    int most;
};

struct db *
db_new(struct loop *l, const struct db_options *o)
{
    struct db *db = xcalloc(1, sizeof *db);
    const char *slash = o && o->conninfo ? strchr(o->conninfo, '/') : NULL;

    (void)l;
    snprintf(db->host, sizeof db->host, "local");
    snprintf(db->name, sizeof db->name, "%s", slash ? slash + 1 : "fake");
    if (slash)
        snprintf(db->host, sizeof db->host, "%.*s", (int)(slash - o->conninfo), o->conninfo);
    return db;
}

void
db_cancel(struct db *db)
{
    db->cancels++;
}

void
db_ask(struct db *db, const struct db_call *call, int wait_ms, db_reply_fn *fn, void *ctx)
{
    struct fake_call *c = &db->call[db->n++];

    (void)wait_ms;
    assert_true(db->n <= FAKE_CALLS && call->n <= FAKE_STMTS);
    *c = (struct fake_call){.n = call->n,
                            .dry = call->dry,
                            .patience_ms = call->statement_timeout_ms,
                            .fn = fn,
                            .ctx = ctx};
    for (int i = 0; i < call->n; i++) {
        c->sql[i] = call->stmts[i].sql;
        assert_true(call->stmts[i].nparams <= FAKE_PARAMS);
        for (int j = 0; j < call->stmts[i].nparams; j++) {
            const char *v = call->stmts[i].params[j].value;
            c->param[i][j] = v ? xstrdup(v) : NULL;
        }
    }
}

struct result *
db_take(struct db_reply *reply, int i)
{
    struct result *r = reply->results[i];

    reply->results[i] = NULL;
    return r;
}

bool
db_do(struct db *db, struct loop *l, const struct db_call *call, struct db_reply *reply,
      struct err *e)
{
    (void)l;
    (void)e;
    assert_non_null(db->planned);
    *reply = (struct db_reply){.failed_at = -1, .results = db->planned, .n = call->n};
    db->planned = NULL;
    return true;
}

void
db_reply_done(struct db_reply *reply)
{
    for (int i = 0; i < reply->n; i++)
        result_free(reply->results[i]);
}

static inline void
fake_reply(struct db *db, struct db_reply *reply)
{
    assert_true(db->next < db->n);
    struct fake_call *c = &db->call[db->next++];
    c->answered = true;
    reply->n = c->n;
    c->fn(c->ctx, reply);
    for (int i = 0; reply->results && i < reply->n; i++)
        result_free(reply->results[i]);
}

void
db_free(struct db *db)
{
    if (!db)
        return;
    while (db->next < db->n) {
        struct db_reply reply = {.failed_at = -1, .err = {.kind = ERR_CONN}};
        fake_reply(db, &reply);
    }
    for (int i = 0; i < db->n; i++)
        for (int j = 0; j < FAKE_STMTS; j++)
            for (int k = 0; k < FAKE_PARAMS; k++)
                free(db->call[i].param[j][k]);
    free(db);
}

/* Answers the oldest call with an error of one of its statements (-1 = of none). */
static inline void
fake_fail_at(struct db *db, int at, enum err_kind kind, const char *sqlstate)
{
    struct db_reply reply = {.failed_at = at, .err = {.kind = kind}};

    snprintf(reply.err.sqlstate, sizeof reply.err.sqlstate, "%s", sqlstate);
    snprintf(reply.err.text, sizeof reply.err.text, "fake %s", sqlstate);
    fake_reply(db, &reply);
}

/* Answers the oldest call with an error of the connection, or of whatever it asked. */
static inline void
fake_fail(struct db *db, enum err_kind kind, const char *sqlstate, bool in_doubt)
{
    struct db_reply reply = {.failed_at = -1, .in_doubt = in_doubt, .err = {.kind = kind}};

    if (!strcmp(sqlstate, "23505"))
        snprintf(reply.err.constraint, sizeof reply.err.constraint, "live_key");
    snprintf(reply.err.sqlstate, sizeof reply.err.sqlstate, "%s", sqlstate);
    snprintf(reply.err.text, sizeof reply.err.text, "fake %s", sqlstate);
    fake_reply(db, &reply);
}

/* Answers the oldest call: a table for each of its statements. */
static inline void
fake_answer(struct db *db, struct result **tables)
{
    struct db_reply reply = {
        .failed_at = -1, .results = tables, .took_us = db->took_us ? db->took_us : 1000};

    fake_reply(db, &reply);
}

/* A table from "name name", "value|value", ...; "~" is NULL. Ends with NULL. */
static inline struct result *
fake_table(const char *names, ...)
{
    PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc cols[32] = {0};
    char text[1000], *at = text;
    int n = 0, row = 0;
    va_list ap;

    snprintf(text, sizeof text, "%s", names);
    for (char *name; (name = strsep(&at, " "));)
        cols[n++].name = name;
    assert_int_equal(PQsetResultAttrs(res, n, cols), 1);
    va_start(ap, names);
    for (const char *line; (line = va_arg(ap, const char *)); row++) {
        char copy[1000], *rest = copy;
        snprintf(copy, sizeof copy, "%s", line);
        for (int i = 0; i < n; i++) {
            char *v = strsep(&rest, "|");
            assert_non_null(v);
            bool null = !strcmp(v, "~");
            assert_int_equal(PQsetvalue(res, row, i, null ? NULL : v, null ? -1 : (int)strlen(v)),
                             1);
        }
    }
    va_end(ap);
    return result_wrap((struct pg_result *)res);
}

/* If the next call asks which systems could be here: all of them. */
static inline void
fake_marks(struct db *db)
{
    const struct fake_call *c = &db->call[db->next];

    if (db->next == db->n || !strstr(c->sql[0], "wanted (adapter, name)"))
        return;
    char *numbers = xstrdup(c->param[0][0] + 1), *at = numbers, *number;
    struct result *all = result_new((const char *const[]){"adapter"}, 1);
    for (int i = 0; (number = strsep(&at, ",}")) && *number; i++)
        result_put(all, i, 0, number, (int)strlen(number));
    fake_answer(db, &all);
    free(numbers);
}

#define FAKE_OWNERS "role name known creates object place place_owner place_acl me power acts risk"
#define FAKE_OWNER "16384|app|t|f|table t|2200|16384|~|10|~|f|~"

/* Answers who owns the systems that were found: a row of FAKE_OWNERS for each place, with the given
 * owner only. If he is a stranger, the cheap proof fails first. */
static inline void
fake_owners(struct db *db, const char *row)
{
    bool is_stranger = strstr(row, "|f|f|") != NULL;

    for (int plain = 1; plain >= 0; plain -= is_stranger ? 1 : 2) {
        struct result *tables[FAKE_STMTS];
        const struct fake_call *c = &db->call[db->next];
        assert_true(db->next < db->n && strstr(c->sql[0], plain ? "as plain" : "memberships"));
        for (int i = 0; i < c->n; i++)
            tables[i] = fake_table(FAKE_OWNERS, plain && is_stranger ? NULL : row, NULL);
        fake_answer(db, tables);
    }
}

const struct err *
db_last_error(const struct db *db)
{
    return &db->error;
}

const char *
db_name(const struct db *db)
{
    return db->name;
}

const char *
db_user(const struct db *db)
{
    (void)db;
    return "anna";
}

const char *
db_host(const struct db *db)
{
    return db->host;
}

enum db_state
db_state(const struct db *db)
{
    return db->state;
}

void
db_password(struct db *db, const char *password)
{
    snprintf(db->password, sizeof db->password, "%s", password);
}

int
db_limit_ms(const struct db *db, int ms)
{
    (void)db;
    return ms;
}

void
db_be_patient(struct db *db, int warn_ms, int drop_ms)
{
    (void)db, (void)warn_ms, (void)drop_ms;
}

void
db_keep(struct db *db, const struct result *r)
{
    (void)db, (void)r;
}

struct db_turns *
db_turns_new(struct loop *l, int most)
{
    struct db_turns *ts = xcalloc(1, sizeof *ts);

    (void)l;
    ts->most = most;
    return ts;
}

void
db_turns_free(struct db_turns *ts)
{
    free(ts);
}

void
db_set_turns(struct db *db, struct db_turns *ts)
{
    db->turns = ts;
}

void
db_find_where(struct db *db)
{
    (void)db;
}

void
db_move(struct db *db, const char *why)
{
    (void)db, (void)why;
}

void
db_attend(struct db *db)
{
    (void)db;
}

void
db_retry_now(struct db *db)
{
    db->retries++;
}

void
db_on_state(struct db *db, void (*fn)(void *ctx), void *ctx)
{
    (void)db, (void)fn, (void)ctx;
}

#endif
