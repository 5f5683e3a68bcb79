/* One call on the wire. Steps: BEGIN, the session's settings, the statements, COMMIT; a quick call
 * has neither BEGIN nor COMMIT. Usually all of them go out in one pipeline with one Sync and are
 * answered in order; a script call sends them one by one, because scripts need the simple protocol,
 * which a pipeline does not carry. If a call leaves a transaction open, a ROLLBACK follows before
 * the call is answered. Nothing here waits: PQgetResult is called only when PQisBusy says that it
 * has something to give. */
#include "model/db/db_private.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"

enum { SETTINGS_STEP = 1, GUARD_STEP = 2, PATH_STEP = 3, TLS_WAIT_MS = 5, TLS_WAIT_MAX_MS = 320 };

/* The settings of each transaction; they end with it, so the next client of a pooler never sees
 * them. Those of the session (add_session_settings) come first.
 * search_path is that of the call, or the connection's schema, or only pg_catalog. It is never the
 * login's: the owner of any schema in that path could decide what our operators mean. Temporary
 * objects come last. The server quotes the schema; whoever sets a whole path has quoted it. This
 * statement itself runs in the login's path, so it names the schema of all that it uses.
 * jit: our plans are wide, our statements short. The last settings are those that our statements
 * are written for, whatever the database or the login has set. */
#define SETTINGS                                                                           \
    "pg_catalog.set_config('search_path', case"                                            \
    " when $5::pg_catalog.text is not null then pg_catalog.concat($5::pg_catalog.text,"    \
    " ', pg_temp') else pg_catalog.format('%I, pg_temp', $1::pg_catalog.text) end, true)," \
    " pg_catalog.set_config('statement_timeout', $2, true),"                               \
    " pg_catalog.set_config('lock_timeout', $3, true),"                                    \
    " pg_catalog.set_config('idle_in_transaction_session_timeout', $4, true),"             \
    " pg_catalog.set_config('jit', 'off', true),"                                          \
    " pg_catalog.set_config('standard_conforming_strings', 'on', true),"                   \
    " pg_catalog.set_config('transform_null_equals', 'off', true),"                        \
    " pg_catalog.set_config('DateStyle', 'ISO', true),"                                    \
    " pg_catalog.set_config('IntervalStyle', 'postgres', true),"                           \
    " pg_catalog.set_config('bytea_output', 'hex', true)"
/* The guard runs with pg_catalog only; the path of the call is set after it. */
static const char path_sql[] = "select pg_catalog.set_config('search_path', pg_catalog.concat("
                               "$1::pg_catalog.text, ', pg_temp'), true)";
static const char script_begin[] = "begin transaction isolation level read committed;"
                                   "set local idle_in_transaction_session_timeout = '10s'";
/* Without BEGIN READ ONLY. */
#define READ_ONLY ", pg_catalog.set_config('transaction_read_only', 'on', true)"
#define ZONE ", pg_catalog.set_config('TimeZone', $6, true)"
#define MAY_WRITE(more)                                                                     \
    "pg_catalog.has_function_privilege(pg_catalog.to_regprocedure('pg_catalog."             \
    "pg_logical_emit_message(pg_catalog.bool, pg_catalog.text, pg_catalog.text" more ")')," \
    " 'execute')"
/* Writes a short message into the WAL. With it the commit waits for the standby even if the call
 * changes nothing. The function has one more parameter since PostgreSQL 17. A standby can't write
 * WAL: there the message would fail, and a call that only reads would fail with it. */
#define WORD                                                                                     \
    ", case when not pg_catalog.pg_is_in_recovery() and coalesce(" MAY_WRITE("") ", " MAY_WRITE( \
        ", pg_catalog.bool") ") then"                                                            \
                             " pg_catalog.pg_logical_emit_message(true, 'queuetop', '') end"
/* Statements without BEGIN and COMMIT are one transaction, too, which the Sync ends. */
static bool
is_implicit(const struct call *c)
{
    return c->what.bare || c->what.quick;
}

static int
first_step(const struct call *c)
{
    return c->what.quick ? SETTINGS_STEP : 0;
}

static int
first_statement(const struct call *c)
{
    return c->what.bare ? 0 : GUARD_STEP + c->has_guard + c->has_path;
}

static int
commit_step(const struct call *c)
{
    return first_statement(c) + c->what.n;
}

/* The index of the caller's statement in this step; -1 = the step is BEGIN, settings or COMMIT. */
static int
statement_of(const struct call *c, int step)
{
    int i = step - first_statement(c);

    return i < c->what.n ? i : -1;
}

/* The statement_timeout of a call. On a slow line it is longer, by a minute at most: the server
 * starts to count when the text of a statement arrives, but the parameters may arrive seconds
 * later. */
int
call_limit_ms(const struct db *db, const struct call *c)
{
    int ms =
        c->what.statement_timeout_ms ? c->what.statement_timeout_ms : db->conf.statement_timeout_ms;

    return ms ? ms + stall_line_ms(db, c) : 0;
}

/* --- sending --- */

void
pipeline_forget(struct db *db)
{
    free(db->session.parsed);
    db->session.parsed = NULL;
}

/* Behind a pooler the unnamed statement may belong to another client. */
static bool
is_parsed(struct db *db, const char *sql)
{
    if (!db->session.is_own)
        return false;
    if (db->session.parsed && strcmp(db->session.parsed, sql) == 0)
        return true;
    pipeline_forget(db);
    db->session.parsed = xstrdup(sql);
    return false;
}

void
pipeline_forget_kept(struct db *db)
{
    for (int i = 0; i < KEPT_MAX; i++)
        free(db->session.kept[i].sql);
    memset(db->session.kept, 0, sizeof db->session.kept);
    db->session.is_direct = false;
}

/* The place of a statement that the session keeps, or has room for. */
static struct kept *
kept_at(struct db *db, const char *sql)
{
    for (int i = 0; db->session.is_direct && i < KEPT_MAX; i++) {
        struct kept *k = &db->session.kept[i];
        if (!k->sql)
            k->sql = xstrdup(sql);
        if (strcmp(k->sql, sql) == 0)
            return k;
    }
    return NULL;
}

/* Sends the parameters for the statement of this name; NULL = its text, too. */
static bool
send_values(struct db *db, const struct db_stmt *s, const char *name)
{
    size_t n = (size_t)s->nparams;
    const char **values = xcalloc(n, sizeof *values);
    int *lengths = xcalloc(n, sizeof *lengths), *formats = xcalloc(n, sizeof *formats);

    for (size_t i = 0; i < n; i++) {
        values[i] = s->params[i].value;
        lengths[i] = s->params[i].len;
        formats[i] = s->params[i].binary;
    }
    int ok =
        name ? PQsendQueryPrepared(db->conn, name, s->nparams, values, lengths, formats, 0)
             : PQsendQueryParams(db->conn, s->sql, s->nparams, NULL, values, lengths, formats, 0);
    free(values);
    free(lengths);
    free(formats);
    return ok == 1;
}

static bool
send_statement(struct db *db, const struct db_stmt *s)
{
    return send_values(db, s, is_parsed(db, s->sql) ? "" : NULL);
}

/* A step before the caller's statements. All calls send the same few texts there, and to plan the
 * guard takes longer than to run it, so a session that is ours keeps them. */
static bool
send_kept(struct db *db, const struct call *c, int step, const struct db_stmt *s)
{
    struct kept *k = c->what.script ? NULL : kept_at(db, s->sql);
    char name[24];

    if (!k)
        return send_statement(db, s);
    snprintf(name, sizeof name, "queuetop_%d", (int)(k - db->session.kept));
    if (!k->is_there) {
        db->flight.parses[step] = k;
        if (PQsendPrepare(db->conn, name, s->sql, s->nparams, NULL) != 1)
            return false;
    }
    return send_values(db, s, name);
}

static bool
send_plain(struct db *db, const char *sql)
{
    return send_statement(db, &(struct db_stmt){.sql = sql});
}

/* Settings for the whole session, beside those of each transaction (SETTINGS): a bare call has only
 * these, and between two calls the server must not end the session. They are set only if the server
 * says that this is the process that greeted us: behind a pooler the next client would get them.
 * Their values stand in the text, because only the first call of a connection sends them. If the
 * login is no superuser, session_replication_role stays, and the queue's functions refuse
 * "replica". */
static void
add_session_settings(struct buf *b, const struct db *db)
{
    int version = PQserverVersion(db->conn);

    buf_printf(b,
               "case when pg_catalog.pg_backend_pid() operator(pg_catalog.=) %d then "
               "pg_catalog.concat("
               "pg_catalog.set_config('default_transaction_isolation', 'read committed', false), "
               "pg_catalog.set_config('statement_timeout', '%d', false), "
               "pg_catalog.set_config('lock_timeout', '%d', false)",
               PQbackendPID(db->conn), db->conf.statement_timeout_ms, db->conf.lock_timeout_ms);
    if (version >= 140000)
        buf_str(b, ", pg_catalog.set_config('idle_session_timeout', '0', false)");
    if (version >= 170000)
        buf_str(b, ", pg_catalog.set_config('transaction_timeout', '0', false)");
    buf_str(b, ", case when pg_catalog.current_setting('is_superuser') operator(pg_catalog.=) 'on'"
               " and pg_catalog.current_setting('session_replication_role')"
               " operator(pg_catalog.=) 'replica' then"
               " pg_catalog.set_config('session_replication_role', 'origin', false) end) end, ");
}

static bool
send_settings(struct db *db, const struct call *c, int step)
{
    char statement[16], lock[16];
    struct buf sql = {0};

    snprintf(statement, sizeof statement, "%d", call_limit_ms(db, c));
    snprintf(lock, sizeof lock, "%d", db->conf.lock_timeout_ms);
    const struct db_param params[] = {
        {.value = db->conf.schema ? db->conf.schema : "pg_catalog"},
        {.value = statement},
        {.value = lock},
        {.value = "10000"},
        {.value = c->has_path ? "pg_catalog" : c->what.search_path},
        {.value = c->what.timezone},
    };
    bool reads = c->what.quick && db->conf.read_only, zone = c->what.timezone && !reads;
    buf_str(&sql, "select ");
    if (!db->session.has_settings)
        add_session_settings(&sql, db);
    buf_printf(&sql, "%s%s%s", SETTINGS,
               reads  ? READ_ONLY
               : zone ? ZONE
                      : "",
               db->writable.must_replicate && !reads ? WORD : "");
    bool ok = send_kept(
        db, c, step, &(struct db_stmt){.sql = sql.data, .nparams = zone ? 6 : 5, .params = params});
    buf_free(&sql);
    return ok;
}

static bool
send_path(struct db *db, const struct call *c)
{
    const struct db_param path = {.value = c->what.search_path};

    return send_kept(db, c, PATH_STEP,
                     &(struct db_stmt){.sql = path_sql, .nparams = 1, .params = &path});
}

static bool
send_step(struct db *db, const struct call *c, int step)
{
    int i = statement_of(c, step);

    if (step == 0 && c->what.script) { /* the server waits for us after each step */
        pipeline_forget(db);
        return PQsendQuery(db->conn, script_begin) == 1;
    }
    if (i >= 0 && c->what.script && c->stmts[i].nparams == 0) {
        pipeline_forget(db);
        return PQsendQuery(db->conn, c->stmts[i].sql) == 1;
    }
    if (i >= 0)
        return send_statement(db, &c->stmts[i]);
    if (step == commit_step(c))
        return send_plain(db, c->what.dry ? "rollback" : "commit");
    if (step == GUARD_STEP)
        return send_kept(db, c, step, &c->stmts[c->what.n]);
    if (step == PATH_STEP)
        return send_path(db, c);
    if (step == 0)
        return send_plain(db, db->conf.read_only
                                  ? "begin transaction isolation level repeatable read read only"
                                  : "begin transaction isolation level read committed");
    return send_settings(db, c, step);
}

static void
broke(struct db *db)
{
    struct err e = db->flight.call ? db->flight.call->reply.err : db->session.fatal;

    if (e.kind != ERR_CONN)
        e = db->session.fatal;
    if (e.kind == ERR_NONE)
        err_of_break(&e, db->conn);
    e.kind = ERR_CONN;
    db_broken(db, &e);
}

/* Hands libpq's buffer to the kernel. Watches for POLLOUT only while bytes are left in the buffer.
 */
static bool
flush(struct db *db)
{
    int left = PQflush(db->conn);

    if (left < 0)
        return false;
    loop_rewatch(db->loop, db->wait.watch, PQsocket(db->conn),
                 (short)(left > 0 ? POLLIN | POLLOUT : POLLIN));
    return true;
}

static bool
set_pipeline_mode(PGconn *conn, bool on)
{
    if (on)
        return PQenterPipelineMode(conn) == 1;
    return PQexitPipelineMode(conn) == 1;
}

static bool
send_all(struct db *db, const struct call *c)
{
    int last = commit_step(c) - is_implicit(c);

    if (!set_pipeline_mode(db->conn, true))
        return false;
    for (int step = first_step(c); step <= last; step++)
        if (!send_step(db, c, step))
            return false;
    return PQpipelineSync(db->conn) == 1;
}

static void
refuse(struct db *db, struct call *c)
{
    fail(&c->reply.err, ERR_REFUSED, "this connection is read-only");
    call_answer(c);
    if (!db->is_dead)
        db_kick(db);
}

/* Reads what has come since the last turn of the loop. Nothing of the next call was sent yet, so if
 * the server has hung up, it is certain that this call was not done. libpq does not report a write
 * that fails: after it, nobody knows how much has left. */
bool
pipeline_is_open(struct db *db)
{
    bool is_open = PQconsumeInput(db->conn) == 1;

    (void)PQisBusy(db->conn); /* reads the last message of a server that closes */
    if (is_open && db->session.fatal.kind == ERR_NONE && PQstatus(db->conn) == CONNECTION_OK)
        return true;
    broke(db);
    return false;
}

void
pipeline_send(struct db *db, struct call *c)
{
    bool ok;

    if (db->conf.read_only &&
        c->what.bare) { /* without BEGIN READ ONLY nothing would forbid it to write */
        refuse(db, c);
        return;
    }
    db->flight = (struct flight){.call = c,
                                 .step = first_step(c),
                                 .failed_step = -1,
                                 .heard_ms = clock_ms(),
                                 .out_left = -1};
    c->sent_us = clock_us();
    db_set_state(db, DB_BUSY);
    if (c->what.script)
        ok = set_pipeline_mode(db->conn, false) && send_step(db, c, 0);
    else
        ok = send_all(db, c);
    if (!ok || !flush(db)) {
        broke(db);
        return;
    }
    stall_arm(db);
}

/* --- the end of a call --- */

/* The answer to the call is complete, and the server has changed nothing, because it is read-only.
 * The next call goes to another connection. */
static void
leave_read_only(struct db *db)
{
    struct db_reply *reply = &db->flight.call->reply;
    struct err e;

    writable_err(db, &reply->err);
    reply->failed_at = -1;
    db->writable.is_locked = true;
    e = reply->err;
    db_broken(db, &e);
}

/* The answer to the call is complete, but target_session_attrs no longer accepts this server.
 * Leaves the server. */
static void
leave_wrong(struct db *db)
{
    struct err e;

    fail(&e, ERR_CONN, "%s is not %s any more", db_host(db),
         strcmp(db->writable.attrs, "primary") == 0 ? "the primary" : "read-write");
    db_broken(db, &e);
}

/* The call is committed on this server, but no standby has confirmed it. After a failover the new
 * leader may lack it. So the caller asks again, as after a lost answer, until a standby has
 * confirmed. */
static void
leave_alone(struct db *db)
{
    struct err e;

    fail(&e, ERR_CONN, "committed on %s alone: no standby has confirmed it", db_host(db));
    db->flight.is_committed = false;
    db->writable.must_replicate = true;
    db_broken(db, &e);
}

/* The guard's cheap statement said no, or what the session keeps was thrown away (DISCARD ALL, a
 * pooler after all): nothing was done, so the whole call can be sent again, with the other guard,
 * or with all texts. */
static bool
sends_again(struct db *db, struct call *c)
{
    bool asks_more = c->reply.is_guarded && c->has_more;

    if (!(asks_more || db->flight.is_forgotten) || db->is_cancelling)
        return false;
    if (asks_more) {
        c->has_more = false;
        c->stmts[c->what.n] = c->stmts[c->what.n + 1];
        c->reply.is_guarded = false;
    } else {
        pipeline_forget_kept(db);
    }
    c->reply.err = (struct err){0};
    c->reply.failed_at = -1;
    stall_over(db);
    pipeline_send(db, c);
    return true;
}

static void
finish(struct db *db)
{
    struct call *c = db->flight.call;

    if (sends_again(db, c))
        return;

    if (writable_refused(db, &c->reply.err)) {
        leave_read_only(db);
        return;
    }
    if (db->flight.is_alone && db->flight.is_committed && !c->what.dry) {
        leave_alone(db);
        return;
    }
    if (db->flight.is_committed && !c->what.dry && db->flight.has_word)
        db->writable.must_replicate = false;
    if (c->reply.err.kind == ERR_TIMEOUT)
        err_of_limit(db, c);
    if (c->reply.err.kind == ERR_NONE) {
        writable_note(db);
        stall_answered(db, c);
        db->session.has_settings |= !c->what.bare && !c->what.dry;
    }
    if (!db->writable.is_locked)
        db->retry.tries = 0;
    db->flight = (struct flight){.failed_step = -1};
    loop_cancel(db->loop, db->wait.tls_timer);
    db->wait.tls_timer = 0;
    stall_over(db);
    db_set_state(db, DB_READY);
    call_answer(c);
    if (!db->is_dead && db->state == DB_READY && writable_has_left(db))
        leave_wrong(db);
    if (!db->is_dead)
        db_kick(db);
}

/* Every step is answered: true = done, false = a ROLLBACK is on its way or the connection is gone.
 */
static bool
roll_back(struct db *db)
{
    if (PQtransactionStatus(db->conn) == PQTRANS_IDLE)
        return true;
    bool is_pipeline = PQpipelineStatus(db->conn) != PQ_PIPELINE_OFF;
    bool ok = !db->flight.is_rolling_back && send_plain(db, "rollback");
    if (ok && is_pipeline)
        ok = PQpipelineSync(db->conn) == 1;
    db->flight.is_rolling_back = true;
    if (!ok || !flush(db))
        broke(db);
    else
        stall_sent(db);
    return false;
}

bool
pipeline_in_doubt(const struct db *db)
{
    const struct flight *f = &db->flight;
    const struct call *c = f->call;

    if (db->conf.read_only || c->what.dry || f->is_committed)
        return false;
    if (c->what.script && f->step < commit_step(c))
        return false;
    return f->failed_step < 0 ||
           (f->failed_step == commit_step(c) && c->reply.err.kind == ERR_CONN);
}

/* --- answers --- */

/* The statement that the next answer is about, if it is not about the step itself. */
static struct kept *
parse_of(const struct flight *f)
{
    return f->step < OUR_STEPS ? f->parses[f->step] : NULL;
}

static void
take_error(struct db *db, const PGresult *res)
{
    struct flight *f = &db->flight;
    struct db_reply *reply = &f->call->reply;

    bool is_libpqs = !PQresultErrorField(res, PG_DIAG_SQLSTATE);
    pipeline_forget(db); /* the parsing may have failed, or the parsed statement may be outdated */
    if (f->failed_step >= 0 || f->is_rolling_back)
        return;
    if (is_libpqs && PQstatus(db->conn) == CONNECTION_BAD)
        return; /* the server said nothing about this statement */
    f->failed_step = f->step;
    err_of_result(&reply->err, res);
    if (reply->err.kind != ERR_CONN)
        reply->failed_at = f->step < first_statement(f->call) ? -1 : statement_of(f->call, f->step);
    f->is_forgotten = f->step < first_statement(f->call) &&
                      (!strcmp(reply->err.sqlstate, "26000") ||
                       !strcmp(reply->err.sqlstate, "42P05")); /* not there; another's is there */
    if (f->call->has_guard && f->step == GUARD_STEP && !strcmp(reply->err.sqlstate, "22P02")) {
        log_line(LOG_INFO, "connection: the guard says: %s", reply->err.text);
        reply->is_guarded = true;
        fail(
            &reply->err, ERR_DENIED,
            "something that would be read or changed here has got another owner: nothing was done");
    }
}

static void
take_answer(struct db *db, PGresult *res)
{
    struct flight *f = &db->flight;
    struct db_reply *reply = &f->call->reply;
    int i = f->step < first_statement(f->call) ? -1 : statement_of(f->call, f->step);

    if (f->is_rolling_back) {
        PQclear(res);
        return;
    }
    if (parse_of(f)) {
        parse_of(f)->is_there = true;
        PQclear(res);
        return;
    }
    if (i >= 0) {
        result_free(reply->results[i]); /* a script's earlier statement */
        reply->results[i] = result_wrap(res);
        return;
    }
    if (f->step == SETTINGS_STEP && !f->call->what.bare && db->writable.must_replicate)
        f->has_word = !PQgetisnull(res, 0, PQnfields(res) - 1);
    if (f->step == commit_step(f->call)) {
        f->is_committed = f->call->what.dry || strcmp(PQcmdStatus(res), "COMMIT") == 0;
        if (!f->is_committed && f->failed_step < 0) {
            f->failed_step = f->step;
            fail(&reply->err, ERR_SQL, "the server rolled the transaction back");
        }
    }
    PQclear(res);
}

/* The answer to a single statement is complete. True = the call is. */
static bool
step_done(struct db *db)
{
    struct flight *f = &db->flight;
    bool is_single = f->call->what.script;

    if (f->is_rolling_back)
        return is_single && roll_back(db);
    if (parse_of(f)) {
        f->parses[f->step] = NULL;
        return false;
    }
    if (!is_single) {
        f->step++;
        return false;
    }
    bool is_last = f->step == commit_step(f->call);
    if (!is_last && f->failed_step < 0 && PQtransactionStatus(db->conn) != PQTRANS_INTRANS) {
        f->failed_step = f->step;
        f->call->reply.failed_at = statement_of(f->call, f->step);
        fail(&f->call->reply.err, ERR_DATA, "the script ended its transaction");
    }
    if (is_last || f->failed_step >= 0)
        return roll_back(db);
    if (!send_step(db, f->call, ++f->step) || !flush(db))
        broke(db);
    else
        stall_sent(db);
    return false;
}

/* Takes one result, NULL included. True = the call is complete. */
static bool
take_result(struct db *db, PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);

    if (!res)
        return step_done(db);
    switch (status) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
        take_answer(db, res);
        return false;
    case PGRES_PIPELINE_SYNC:
        PQclear(res);
        if (is_implicit(db->flight.call) && db->flight.failed_step < 0)
            db->flight.is_committed = true;
        return roll_back(db);
    case PGRES_PIPELINE_ABORTED:
        break;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH: {
        struct err e;
        fail(&e, ERR_DATA, "COPY can't be used here");
        db->flight.failed_step = db->flight.step;
        PQclear(res);
        db_broken(db, &e);
        return false;
    }
    default: /* PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE; newer libpqs have more */
        take_error(db, res);
        break;
    }
    PQclear(res);
    return false;
}

static void on_tls_timer(void *ctx);

/* A TLS record that is larger than libpq's free space can leave bytes in the buffer of the TLS
 * library, which the socket never reports (records of 16 KiB: PostgreSQL 17, proxies). libpq 15 has
 * no way to ask for that. So we read again a few times while an answer is incomplete. */
static void
arm_tls_timer(struct db *db, int wait_ms)
{
    bool is_hidden = PQsslInUse(db->conn) || PQgssEncInUse(db->conn);

    loop_cancel(db->loop, db->wait.tls_timer);
    db->wait.tls_timer = 0;
    db->wait.tls_ms = wait_ms;
    if (is_hidden && wait_ms <= TLS_WAIT_MAX_MS)
        db->wait.tls_timer = loop_at(db->loop, clock_ms() + wait_ms, on_tls_timer, db);
}

static void
take_all(struct db *db)
{
    bool is_done = false;

    while (!is_done && db->flight.call && PQstatus(db->conn) == CONNECTION_OK &&
           !PQisBusy(db->conn))
        is_done = take_result(db, PQgetResult(db->conn));
    if (is_done)
        finish(db);
}

/* Delivers notifications. Those that arrive while a call is on the wire wait until the call is
 * over. */
static void
take_notifies(struct db *db)
{
    PGnotify *n;

    while (!db->is_dead && db->conn && (n = PQnotifies(db->conn))) {
        if (db->tell.notify_fn)
            db->tell.notify_fn(db->tell.notify_ctx, n->relname);
        PQfreemem(n);
    }
}

static void
on_tls_timer(void *ctx)
{
    struct db *db = ctx;

    db_enter(db);
    db->wait.tls_timer = 0;
    if (db->state == DB_BUSY) {
        if (!PQconsumeInput(db->conn))
            broke(db);
        else
            take_all(db);
        if (!db->is_dead && db->state == DB_BUSY)
            arm_tls_timer(db, db->wait.tls_ms * 2);
    }
    if (!db->is_dead && db->state == DB_READY)
        take_notifies(db);
    db_leave(db);
}

void
pipeline_go_on(struct db *db, short revents)
{
    if (!db->conn)
        return;
    if ((revents & ~POLLOUT) && !PQconsumeInput(db->conn)) {
        broke(db);
        return;
    }
    if (db->state == DB_BUSY) {
        if (revents & (POLLIN | POLLOUT)) /* POLLOUT: there is room for more */
            db->flight.heard_ms = clock_ms();
        if (!flush(db)) {
            broke(db);
            return;
        }
        take_all(db);
        if (!db->is_dead && db->state == DB_BUSY)
            arm_tls_timer(db, TLS_WAIT_MS);
    } else {
        (void)PQisBusy(db->conn); /* reads notices and the last message of a server that closes */
    }
    if (!db->is_dead && db->state == DB_READY)
        take_notifies(db);
    if (!db->is_dead && db->conn && PQstatus(db->conn) == CONNECTION_BAD)
        broke(db);
}
