/* A call from asking to answering: our own copies of what was asked, the queue, the reply. Every
 * call sits in exactly one list or is the one in flight; call_answer is the only place that runs a
 * reply. */
#include "model/db/db_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/array.h"
#include "model/base/clock.h"
#include "model/base/mem.h"

enum { PARAMS_MAX = 65535, DO_WAIT_MS = 30000, LET_GO_MS = 3000, ASK_AGAIN_MS = 100 };

struct db_param
db_array(struct array *a)
{
    size_t len;
    const char *value = array_whole(a, &len);

    return (struct db_param){.value = value, .len = (int)len, .binary = true};
}

void
calls_init(struct calls *q)
{
    q->first = NULL;
    q->end = &q->first;
}

void
calls_push(struct calls *q, struct call *c)
{
    c->next = NULL;
    *q->end = c;
    q->end = &c->next;
}

struct call *
calls_take(struct calls *q)
{
    struct call *c = q->first;

    if (c) {
        q->first = c->next;
        if (!q->first)
            q->end = &q->first;
    }
    return c;
}

void
calls_expire(struct calls *q, struct calls *out, int64_t now_ms)
{
    struct calls kept;

    calls_init(&kept);
    for (struct call *c; (c = calls_take(q));) {
        bool is_due = now_ms < 0 || (c->give_up_ms >= 0 && c->give_up_ms <= now_ms);
        calls_push(is_due ? out : &kept, c);
    }
    while (kept.first)
        calls_push(q, calls_take(&kept));
}

void
db_reply_done(struct db_reply *reply)
{
    for (int i = 0; reply->results && i < reply->n; i++)
        result_free(reply->results[i]);
    free(reply->results);
    reply->results = NULL;
    reply->n = 0;
}

void
call_free(struct call *c)
{
    db_reply_done(&c->reply);
    free(c->stmts);
    free(c->params);
    free(c->bytes);
    free(c);
}

void
call_answer(struct call *c)
{
    if (c->sent_us)
        c->reply.took_us = clock_us() - c->sent_us;
    if (c->fn)
        c->fn(c->ctx, &c->reply);
    call_free(c);
}

void
calls_answer(struct calls *q, const struct err *why)
{
    for (struct call *c; (c = calls_take(q));) {
        c->reply.err = *why;
        call_answer(c);
    }
}

static int64_t
param_size(const struct db_param *p)
{
    if (!p->value)
        return 0;
    assert(!p->binary || p->len >= 0);
    return p->binary ? p->len : (int64_t)strlen(p->value) + 1;
}

/* The statements to send. If there is a guard, its statements are the last of them. */
static const struct db_stmt *
stmt_of(const struct db *db, const struct db_call *what, int i)
{
    if (i < what->n)
        return &what->stmts[i];
    if (i > what->n)
        return &what->guard->more;
    if (!db->conf.read_only)
        return &what->guard->changes;
    return what->looks_hard ? &what->guard->looks_hard : &what->guard->looks;
}

/* Our own copies of statements and parameters: 4 allocations a call, however many there are. */
struct call *
call_new(const struct db *db, const struct db_call *what)
{
    struct call *c = xcalloc(1, sizeof *c);
    size_t nparams = 0, size = 0;

    c->has_guard = what->guard && !what->bare && !what->script;
    c->has_more =
        c->has_guard && what->guard->more.sql && (what->looks_hard || !db->conf.read_only);
    c->has_path = c->has_guard && what->search_path;
    int n = what->n + c->has_guard + c->has_more;
    for (int i = 0; i < n; i++) {
        const struct db_stmt *s = stmt_of(db, what, i);
        assert(s->sql && s->nparams <= PARAMS_MAX);
        c->size += (int64_t)strlen(s->sql);
        nparams += (size_t)s->nparams;
        for (int j = 0; j < s->nparams; j++)
            size += (size_t)param_size(&s->params[j]);
    }
    c->stmts = xcalloc((size_t)n, sizeof *c->stmts);
    c->params = xcalloc(nparams, sizeof *c->params);
    c->bytes = xmalloc(size);
    c->size += (int64_t)size;
    struct db_param *p = c->params;
    char *at = c->bytes;
    for (int i = 0; i < n; i++) {
        c->stmts[i] = *stmt_of(db, what, i);
        const struct db_param *from = c->stmts[i].params;
        c->stmts[i].params = p;
        for (int j = 0; j < c->stmts[i].nparams; j++, p++) {
            *p = from[j];
            size_t len = (size_t)param_size(p);
            p->value = p->value ? memcpy(at, p->value, len) : NULL;
            at += len;
        }
    }
    c->what = *what;
    c->what.stmts = c->stmts;
    c->what.guard = NULL;
    c->reply = (struct db_reply){.failed_at = -1, .n = what->n};
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    c->reply.results = xcalloc((size_t)what->n, sizeof *c->reply.results);
    return c;
}

struct result *
db_take(struct db_reply *reply, int i)
{
    struct result *r = reply->results[i];

    reply->results[i] = NULL;
    return r;
}

/* --- waiting for a reply --- */

struct waiter {
    struct db_reply *reply;
    bool done;
};

static void
keep_reply(void *ctx, struct db_reply *reply)
{
    struct waiter *w = ctx;

    *w->reply = *reply;
    reply->results = NULL; /* the waiter owns them now */
    reply->n = 0;
    w->done = true;
}

/* Removes the waiter. The reply to its call is then dropped. */
static void
forget_waiter(struct db *db, const struct waiter *w)
{
    for (struct call *c = db->queue.first; c; c = c->next)
        if (c->ctx == w)
            c->fn = NULL;
    if (db->flight.call && db->flight.call->ctx == w) {
        db->flight.call->fn = NULL;
        stall_cancel(db);
    }
}

/* A signal stopped the loop. A server that works or waits for a lock does not notice that its
 * client is gone, and keeps its locks. So we ask it to cancel, and wait for that, 3 s at most.
 * Between two statements of a script a cancel request has no effect, so we send it again and again.
 */
static void
stop_at_the_server(struct db *db, struct loop *l, const struct waiter *w)
{
    int64_t deadline = clock_ms() + LET_GO_MS, again = 0;
    struct err ignored;

    while (!w->done && db->flight.call && db->flight.call->ctx == w && clock_ms() < deadline) {
        if (clock_ms() >= again) {
            stall_cancel(db);
            again = clock_ms() + ASK_AGAIN_MS;
        }
        if (!loop_turn(l, ASK_AGAIN_MS, &ignored))
            return;
    }
}

bool
db_do(struct db *db, struct loop *l, const struct db_call *call, struct db_reply *reply,
      struct err *e)
{
    struct waiter w = {.reply = reply};

    *reply = (struct db_reply){.failed_at = -1};
    db_ask(db, call, db->conf.once ? -1 : DO_WAIT_MS, keep_reply, &w);
    if (!loop_until(l, &w.done, 0, e)) {
        stop_at_the_server(db, l, &w);
        if (w.done) { /* what the call had committed before the cancel is not undone */
            bool is_done = reply->err.kind == ERR_NONE;
            if (is_done)
                *e = reply->err;
            else
                reply->err = *e;
            return is_done;
        }
        forget_waiter(db, &w);
        reply->err = *e;
        return false;
    }
    *e = reply->err;
    return e->kind == ERR_NONE;
}

/* --- a connection that is lent --- */

/* One statement on a connection that belongs to the caller. The caller lends its PGconn for the
 * time of the call; the statement runs in the transaction that is open there. This is the only
 * call of the program that blocks, and it does so on purpose: a caller of the C library who
 * pushes within its own transaction waits for the answer anyway. The console never comes here.
 * Values are bound, never put into the text. */

bool
db_lend(struct pg_conn *conn, const struct db_stmt *stmt, struct result **out, struct err *e)
{
    const char *values[LEND_PARAMS];
    int lengths[LEND_PARAMS], formats[LEND_PARAMS];

    if (!conn || PQstatus(conn) != CONNECTION_OK)
        return fail(e, ERR_CONN, "the connection is not open");
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF || PQisBusy(conn))
        return fail(e, ERR_USAGE, "the connection is busy, or in pipeline mode");
    for (int i = 0; i < stmt->nparams; i++) {
        values[i] = stmt->params[i].value;
        lengths[i] = stmt->params[i].len;
        formats[i] = stmt->params[i].binary;
    }
    PGresult *res = PQexecParams(conn, stmt->sql, stmt->nparams, NULL, values, lengths, formats, 0);
    if (PQresultStatus(res) == PGRES_TUPLES_OK) {
        *out = result_wrap(res);
        return true;
    }
    err_of_result(e, res);
    PQclear(res);
    return false;
}
