/* The public functions of the connection, and its states. Calls are queued and answered here, and
 * what happens after a failure is decided here. How to get connected is in db_connect.c, how a call
 * goes over the wire in db_pipeline.c. The one rule: an event changes the state first and runs
 * replies last, because a reply may ask again or free the whole connection. */
#include "model/db/db.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/db/db_private.h"

enum { ATTEND_MS = 120000, ATTENDED_MS = 800 };
enum { LAGS = 100, LIMIT_MOST_MS = 60000 };
enum { BACKOFF_MS = 250, BACKOFF_MAX_MS = 4000, FULL_MS = 2000, FULL_MAX_MS = 30000 };

/* --- events --- */

static void
release(struct db *db)
{
    connect_free(db);
    free(db->conf.app_name);
    free(db->conf.schema);
    free(db->writable.attrs);
    free(db->where.host);
    free(db->where.name);
    free(db->where.user);
    free(db);
}

void
db_enter(struct db *db)
{
    db->depth++;
}

void
db_leave(struct db *db)
{
    if (--db->depth == 0 && db->is_dead)
        release(db);
}

static bool
is_connected(const struct db *db)
{
    return db->state == DB_READY || db->state == DB_BUSY;
}

/* Connected, and past the gate: a call that waits is the next one to be sent. */
static bool
is_open(const struct db *db)
{
    return is_connected(db) && (!db->session.gate || db->session.is_past_gate);
}

void
db_set_state(struct db *db, enum db_state state)
{
    bool was_connected = is_connected(db), is_same = db->state == state;

    db->state = state;
    if (state != DB_BACKOFF)
        db->retry.at_ms = 0;
    if (is_same || (was_connected && is_connected(db)))
        return;
    db->tell.is_news = true;
    db_kick(db);
}

struct offload *
db_offload(struct db *db)
{
    if (!db->off)
        db->off = offload_new(db->loop);
    return db->off;
}

/* Why a waiting call gets no connection. */
static struct err
waiting_error(const struct db *db)
{
    struct err e = db->retry.last_err;

    if (e.kind == ERR_NONE)
        fail(&e, ERR_CONN, "not connected yet");
    return e;
}

static void pump(struct db *db);

static void
on_wait_timer(void *ctx)
{
    struct db *db = ctx;
    struct calls due;

    db_enter(db);
    db->wait.queue_timer = 0;
    if (!is_open(db)) {
        struct err why = waiting_error(db);
        calls_init(&due);
        calls_expire(&db->queue, &due, clock_ms());
        calls_answer(&due, &why);
    }
    if (!db->is_dead)
        pump(db);
    db_leave(db);
}

/* The next time at which a waiting call gives up. */
static void
arm_wait_timer(struct db *db)
{
    int64_t at = INT64_MAX;

    loop_cancel(db->loop, db->wait.queue_timer);
    db->wait.queue_timer = 0;
    if (is_open(db))
        return;
    for (const struct call *c = db->queue.first; c; c = c->next)
        if (c->give_up_ms >= 0 && c->give_up_ms < at)
            at = c->give_up_ms;
    if (at < INT64_MAX)
        db->wait.queue_timer = loop_at(db->loop, at, on_wait_timer, db);
}

static void
gate_reply(void *ctx, struct db_reply *reply)
{
    struct db *db = ctx;
    struct err e = reply->err;

    if (db->is_dead || e.kind == ERR_CONN || e.kind == ERR_AUTH)
        return; /* the connection is gone: answer the calls that wait */
    struct result *r = db_take(reply, 0);
    if (e.kind == ERR_NONE)
        db_keep(db, r);
    db->session.is_past_gate =
        e.kind == ERR_NONE && db->session.gate->passes(db->session.gate->ctx, r, &e);
    bool asks_more = !db->session.is_past_gate && e.kind == ERR_NONE && !db->session.is_asked_more;
    if (asks_more)
        db->session.is_asked_more = true;
    else if (!db->session.is_past_gate)
        db_broken(db, &e);
}

/* Sends the next call. If there is a gate, its statement is the first call on each connection. */
static void
send_next(struct db *db)
{
    if (!db->session.gate || db->session.is_past_gate) {
        pipeline_send(db, calls_take(&db->queue));
        return;
    }
    const struct db_stmt *stmt =
        db->session.is_asked_more ? db->session.gate->more : &db->session.gate->stmt;
    struct call *c = call_new(
        db, &(struct db_call){.stmts = stmt, .n = 1, .quick = true, .search_path = "pg_catalog"});
    c->fn = gate_reply;
    c->ctx = db;
    pipeline_send(db, c);
}

/* A connection that waits for its turn is off: when it is its turn, pump starts it. */
static void
connect_in_turn(struct db *db)
{
    if (turn_take(db))
        connect_start(db);
    else
        db_set_state(db, DB_OFF);
}

/* Looks at what waits, and does the one thing that the state allows. */
static void
pump(struct db *db)
{
    struct calls all;

    if (!db->queue.first) {
        if (db->state == DB_READY || db->state == DB_OFF)
            turn_end(db);
        arm_wait_timer(db);
        return;
    }
    if (db->state == DB_OFF && db->retry.is_stopped) {
        struct err why = waiting_error(db);
        calls_init(&all);
        calls_expire(&db->queue, &all, -1);
        calls_answer(&all, &why);
        return;
    }
    if (db->state == DB_READY && !db->is_cancelling) {
        if (turn_take(db) && pipeline_is_open(db))
            send_next(db);
    } else if (db->state == DB_OFF) {
        connect_in_turn(db);
    }
    if (!db->is_dead)
        arm_wait_timer(db);
}

static void
on_kick(void *ctx)
{
    struct db *db = ctx;

    db_enter(db);
    db->wait.kick_timer = 0;
    if (db->tell.is_news && db->tell.state_fn) {
        db->tell.is_news = false;
        db->tell.state_fn(db->tell.state_ctx);
    }
    if (!db->is_dead)
        pump(db);
    db_leave(db);
}

void
db_kick(struct db *db)
{
    if (!db->wait.kick_timer && !db->is_dead)
        db->wait.kick_timer = loop_at(db->loop, clock_ms(), on_kick, db);
}

void
db_ask(struct db *db, const struct db_call *call, int wait_ms, db_reply_fn *fn, void *ctx)
{
    struct call *c = call_new(db, call);

    assert(call->n > 0 && !(call->bare && (call->script || call->dry)));
    c->fn = fn;
    c->ctx = ctx;
    c->wait_ms = wait_ms;
    c->give_up_ms = wait_ms < 0 ? -1 : clock_ms() + wait_ms;
    calls_push(&db->queue, c);
    db_kick(db);
}

/* --- state changes --- */

static void
on_timer(void *ctx)
{
    struct db *db = ctx;

    db_enter(db);
    db->wait.timer = 0;
    switch (db->state) {
    case DB_RESOLVING:
    case DB_CONNECTING:
        connect_timeout(db);
        break;
    case DB_BACKOFF:
        connect_in_turn(db);
        break;
    case DB_BUSY:
        stall_timeout(db);
        break;
    case DB_READY:
        stall_cancel_hangs(db);
        break;
    case DB_OFF:
        break;
    }
    db_leave(db);
}

void
db_set_timer(struct db *db, int64_t at_ms)
{
    loop_cancel(db->loop, db->wait.timer);
    db->wait.timer = at_ms ? loop_at(db->loop, at_ms, on_timer, db) : 0;
}

static bool
is_attended(const struct db *db)
{
    return db->retry.attended_ms && clock_ms() - db->retry.attended_ms < ATTEND_MS;
}

/* The server or the gate says no; somebody must change something before waiting can help. */
static bool
is_refused(const struct db *db)
{
    return db->retry.last_err.kind == ERR_AUTH || db->retry.last_err.kind == ERR_DENIED;
}

/* 0.25 s doubled up to 4 s; a full server gets more time; 20 % jitter keeps clients apart. */
static int64_t
backoff_ms(struct db *db)
{
    bool is_full = strcmp(db->retry.last_err.sqlstate, "53300") == 0;
    int64_t ms = is_full ? FULL_MS : BACKOFF_MS, max = is_full ? FULL_MAX_MS : BACKOFF_MAX_MS;

    if (db->conf.unattended && is_refused(db))
        ms = max; /* each attempt writes into the server's log */
    if (is_attended(db) && !is_full)
        max = ATTENDED_MS; /* one second, including the jitter */
    for (int i = 1; i < db->retry.tries && ms < max; i++)
        ms *= 2;
    if (ms > max)
        ms = max;
    db->retry.random ^= db->retry.random << 13; /* xorshift: quality does not matter here */
    db->retry.random ^= db->retry.random >> 7;
    db->retry.random ^= db->retry.random << 17;
    return ms * (int64_t)(80 + db->retry.random % 41) / 100;
}

static void
close_connection(struct db *db)
{
    connect_forget(db);
    db_set_timer(db, 0);
    loop_cancel(db->loop, db->wait.tls_timer);
    db->wait.tls_timer = 0;
    loop_rewatch(db->loop, db->wait.watch, -1, 0);
    PQfinish(db->conn);
    db->conn = NULL;
    pipeline_forget(db);
    pipeline_forget_kept(db);
    db->session.is_own = db->session.has_settings = false;
    db->session.is_past_gate = db->session.is_asked_more = false;
    db->is_cancelling = false;
    db->session.serial++;
}

static void
restart_waiting(struct db *db)
{
    int64_t now = clock_ms();

    for (struct call *c = db->queue.first; c; c = c->next)
        if (c->wait_ms >= 0)
            c->give_up_ms = now + c->wait_ms;
}

/* True if waiting can't help. If the server accepted us before, its refusal may be temporary:
 * somebody is changing a password or restoring the database. So may any refusal of a process that
 * nobody watches: it may have been started before its database, role or password. */
static bool
is_final(const struct db *db)
{
    enum err_kind why = db->retry.last_err.kind;

    if (db->conf.unattended && is_refused(db))
        return false;
    if (why == ERR_AUTH)
        return !db->retry.was_up || (db->retry.wants_password && !db->retry.is_trusted);
    return why == ERR_USAGE || why == ERR_DENIED;
}

/* Sets the state after a failure. `all` receives the calls that the failure answers. */
static void
after_failure(struct db *db, bool was_open, struct calls *all)
{
    db->retry.tries++;
    turn_end(db);
    if (is_final(db))
        db->retry.is_stopped = true;
    if (db->retry.is_stopped || db->conf.once) {
        calls_expire(&db->queue, all, -1);
        db_set_state(db, DB_OFF);
        return;
    }
    if (was_open)
        restart_waiting(db);
    db->retry.at_ms = clock_ms() + backoff_ms(db);
    db_set_timer(db, db->retry.at_ms);
    db_set_state(db, DB_BACKOFF);
}

void
db_broken(struct db *db, const struct err *why)
{
    struct call *flying = db->flight.call;
    bool was_open = is_open(db);
    struct calls all;

    calls_init(&all);
    db->retry.last_err = *why;
    if (flying) {
        flying->reply.in_doubt = pipeline_in_doubt(db);
        if (flying->reply.err.kind == ERR_NONE && !db->flight.is_committed)
            flying->reply.err = *why;
        db->flight = (struct flight){.failed_step = -1};
    }
    log_line(LOG_INFO, "connection: %s", why->text);
    close_connection(db);
    after_failure(db, was_open, &all);
    if (flying)
        call_answer(flying);
    calls_answer(&all, why);
    if (db->is_dead)
        return;
    db->tell.is_news = true; /* report the error even if the state has not changed */
    arm_wait_timer(db);
    db_kick(db);
}

void
db_retry_now(struct db *db)
{
    db->retry.is_stopped = db->conf.err.kind != ERR_NONE;
    if (db->retry.is_stopped || (db->state != DB_BACKOFF && db->state != DB_OFF))
        return;
    db_set_state(db, DB_BACKOFF);
    db->retry.at_ms = clock_ms();
    db_set_timer(db, db->retry.at_ms);
}

void
db_attend(struct db *db)
{
    int64_t now = clock_ms(), at = db->retry.tried_ms + ATTENDED_MS;
    bool was_refused = db->state == DB_OFF && db->retry.is_stopped &&
                       db->retry.last_err.kind == ERR_AUTH && !db->retry.wants_password;

    db->retry.attended_ms = now;
    if (at < now)
        at = now;
    if (was_refused) {
        db_retry_now(db);
    } else if (db->state != DB_BACKOFF || db->retry.at_ms <= at)
        return;
    db->retry.at_ms = at;
    db_set_timer(db, at);
}

void
db_move(struct db *db, const char *why)
{
    struct err e;

    db_enter(db);
    if (db->conn) {
        fail(&e, ERR_CONN, "%s", why);
        db_broken(db, &e);
    }
    if (!db->is_dead)
        db_retry_now(db);
    db_leave(db);
}

void
db_be_patient(struct db *db, int warn_ms, int drop_ms)
{
    db->conf.warn_ms = warn_ms;
    db->conf.drop_ms = drop_ms;
}

void
db_cancel(struct db *db)
{
    if (db->state == DB_BUSY)
        stall_cancel(db);
}

/* --- making and ending --- */

static char *
copy_of(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct db *
db_new(struct loop *l, const struct db_options *o)
{
    struct db *db = xcalloc(1, sizeof *db);

    db->loop = l;
    db->conf.app_name = copy_of(o->app_name);
    db->conf.schema = copy_of(o->schema);
    db->conf.statement_timeout_ms = o->statement_timeout_ms;
    db->conf.lock_timeout_ms = o->lock_timeout_ms;
    db->conf.warn_ms = o->stall_warn_ms ? o->stall_warn_ms : DEFAULT_WARN_MS;
    db->conf.drop_ms = o->stall_drop_ms ? o->stall_drop_ms : DEFAULT_DROP_MS;
    db->conf.connect_ms = o->connect_ms;
    db->conf.read_only = o->read_only;
    db->conf.once = o->once;
    db->conf.unattended = o->unattended;
    db->session.gate = o->gate;
    db->retry.random = (uint64_t)clock_us() * 2654435761U + (uint64_t)getpid() + 1;
    db->flight.failed_step = -1;
    calls_init(&db->queue);
    connect_config(db, o->conninfo, o->dbname);
    db->retry.last_err = db->conf.err;
    db->retry.is_stopped = db->conf.err.kind != ERR_NONE;
    return db;
}

void
db_free(struct db *db)
{
    struct calls all;
    struct err why;

    if (!db || db->is_dead)
        return;
    fail(&why, ERR_CONN, "the connection was closed");
    calls_init(&all);
    db_enter(db);
    db->is_dead = true;
    if (db->flight.call) {
        db->flight.call->reply.in_doubt = pipeline_in_doubt(db);
        calls_push(&all, db->flight.call);
        db->flight.call = NULL;
    }
    calls_expire(&db->queue, &all, -1);
    close_connection(db);
    turn_end(db);
    loop_unwatch(db->loop, db->wait.watch);
    loop_cancel(db->loop, db->wait.kick_timer);
    loop_cancel(db->loop, db->wait.queue_timer);
    offload_free(db->off);
    db->off = NULL;
    calls_answer(&all, &why);
    /* calls that were asked inside these replies get one answer each, and no further round, because
     * a caller that always asks again would keep this function running for ever */
    calls_expire(&db->queue, &all, -1);
    calls_answer(&all, &why);
    for (struct call *c; (c = calls_take(&db->queue));)
        call_free(c);
    db_leave(db);
}

void
db_on_notice(struct db *db, db_notice_fn *fn, void *ctx)
{
    db->tell.notice_fn = fn;
    db->tell.notice_ctx = ctx;
}

void
db_on_notify(struct db *db, db_notify_fn *fn, void *ctx)
{
    db->tell.notify_fn = fn;
    db->tell.notify_ctx = ctx;
}

int
db_backend_pid(const struct db *db)
{
    return is_connected(db) ? PQbackendPID(db->conn) : 0;
}

void
db_keep(struct db *db, const struct result *r)
{
    db->session.is_direct =
        db->conn && result_rows(r) > 0 &&
        result_int(r, 0, result_col(r, "backend_pid"), 0) == PQbackendPID(db->conn);
}

void
db_own_session(struct db *db, bool is_own)
{
    if (!is_own)
        pipeline_forget(db); /* from here on we do not remember which statement is parsed */
    db->session.is_own = is_own && db->conn;
}

void
db_on_state(struct db *db, void (*fn)(void *ctx), void *ctx)
{
    db->tell.state_fn = fn;
    db->tell.state_ctx = ctx;
}

enum db_state
db_state(const struct db *db)
{
    return db->state;
}

const struct err *
db_last_error(const struct db *db)
{
    return &db->retry.last_err;
}

int64_t
db_next_try_ms(const struct db *db)
{
    return db->retry.at_ms;
}

int64_t
db_silent_ms(const struct db *db)
{
    if (db->state == DB_RESOLVING || db->state == DB_CONNECTING)
        return clock_ms() - db->retry.tried_ms;
    return db->state == DB_BUSY ? clock_ms() - db->flight.heard_ms : 0;
}

int
db_limit_ms(const struct db *db, int ms)
{
    int64_t limit = ms + db->line.lag_us * LAGS / 1000;

    return limit < LIMIT_MOST_MS ? (int)limit : ms < LIMIT_MOST_MS ? LIMIT_MOST_MS : ms;
}

int
db_tries(const struct db *db)
{
    return db->retry.tries;
}

void
db_find_where(struct db *db)
{
    if (db->state != DB_OFF || db->retry.is_stopped)
        return;
    hosts_find(db);
    connect_forget(db);
}

const char *
db_host(const struct db *db)
{
    return db->where.host ? db->where.host : "";
}

const char *
db_name(const struct db *db)
{
    return db->where.name ? db->where.name : "";
}

const char *
db_user(const struct db *db)
{
    return db->where.user ? db->where.user : "";
}
