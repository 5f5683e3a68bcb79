/*
 * Which queue is in the database: asked at the start and after each new connection, because a
 * failover or a restore may have changed it. The first round trip asks which systems could be here.
 * The second runs the detection of these and reads the facts of the server. Then come the owners,
 * and version and role of the adapter that was chosen.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/store/store_parts.h"

enum { MISSING_WAIT_MS = 3000, OWNERS_MS = 30000 };

/* A server that lies may say anything; what is computed from its time must fit. */
void
store_set_clock(struct store *s, int64_t server_ms)
{
    const int64_t most = INT64_MAX / 4;

    s->source.server_ms = server_ms > most ? most : server_ms < -most ? -most : server_ms;
    s->source.server_at_ms = clock_ms();
}

int64_t
store_now_ms(const struct store *s)
{
    if (s->injected.on)
        return s->injected.now_ms;
    if (s->once)
        return s->source.server_ms;
    if (s->clock_stands)
        return clock_wall_ms();
    return s->source.server_ms ? s->source.server_ms + clock_ms() - s->source.server_at_ms : 0;
}

static void
try_later(struct store *s, enum store_state state, const struct err *e)
{
    bool has_stopped = e->kind == ERR_AUTH && db_state(s->db) == DB_OFF;

    s->source.asking = false;
    s->source.state = state;
    s->source.error = *e;
    s->source.at_ms = has_stopped ? 0 : clock_ms() + MISSING_WAIT_MS; /* see store_refresh */
    store_touch(s);
    store_plan(s);
}

/* Drops all snapshots if the adapter or the schema has changed. */
static void
begin_anew(struct store *s)
{
    int serial = adapter_serial(s->adapter);

    if (s->source.adapter_serial && s->source.adapter_serial != serial)
        store_inject_reset(s);
    s->source.adapter_serial = serial;
    for (int t = 0; t < TOPIC_COUNT; t++) {
        bool has = adapter_has(s->adapter, topic_kinds[t].sections[0]);
        s->slots[t].info.unavailable = has ? NULL : adapter_silence(s->adapter);
    }
}

/* Takes the role, and passes version and role to the adapter, because its sections depend on them.
 */
static bool
take_role(struct store *s, struct db_reply *reply, int at, struct err *e)
{
    struct rowset role = {0};

    if (!record_decode(&record_role, db_take(reply, at), &role, e))
        return false;
    adapter_judge(s->adapter, s->source.version, role.n ? role.rows : NULL);
    rowset_free(&s->source.role);
    s->source.role = role;
    return true;
}

static void
opened(void *ctx, struct db_reply *reply)
{
    struct store *s = ctx;
    struct err e = reply->err;
    int at = adapter_has(s->adapter, SEC_VERSION);

    bool ok = e.kind == ERR_NONE;
    if (ok && at)
        store_observer(s, "version", &reply->results[0], 1, NULL);
    if (ok)
        store_observer(s, "role", &reply->results[at], 1, NULL);
    store_observer_done(s);
    if (ok) {
        free(s->source.version);
        s->source.version = xstrdup(
            at && result_rows(reply->results[0]) > 0 ? result_text(reply->results[0], 0, 0) : "");
        ok = take_role(s, reply, at, &e);
    }
    if (!ok) {
        try_later(s, s->source.state, &e);
        return;
    }
    begin_anew(s);
    s->source.asking = false;
    s->source.open = true;
    s->source.at_ms = 0;
    s->source.state = STORE_OPEN;
    s->source.error = (struct err){0};
    for (int t = 0; t < TOPIC_COUNT; t++)
        s->slots[t].again = s->slots[t].info.wanted;
    store_touch(s);
    store_plan(s);
}

static void
ask_version(struct store *s)
{
    struct db_param none[2][ADAPTER_PARAMS];
    struct db_stmt stmts[3];
    int n = 0;

    if (adapter_has(s->adapter, SEC_VERSION)) {
        stmts[n] = adapter_bind(s->adapter, SEC_VERSION, NULL, none[n]);
        n++;
    }
    stmts[n] = adapter_bind(s->adapter, SEC_ROLE, NULL, none[n]);
    n++;
    stmts[n++] = (struct db_stmt){.sql = console_sql("spent")};
    struct db_call call = {.stmts = stmts, .n = n};
    adapter_settings(s->adapter, false, &call);
    db_ask(s->db, &call, -1, opened, s);
}

/* Records which system the answers that follow come from. */
static void
tell_adapter(struct store *s)
{
    static const char *const names[] = {"adapter", "title", "schema"};
    const char *values[] = {adapter_name(s->adapter), adapter_title(s->adapter),
                            adapter_schema(s->adapter)};
    struct result *t = result_new(names, 3);

    for (int i = 0; i < 3; i++)
        result_put(t, 0, i, values[i], (int)strlen(values[i]));
    store_observer(s, "adapter", &t, 1, NULL);
    result_free(t);
}

static void ask_detects(struct store *s);
static void ask_owners(struct store *s, bool plain);

/* If the detection of one of the user's own adapter files fails, that file is left out and the
 * others are tried. */
static bool
leave_out(struct store *s, const struct db_reply *reply)
{
    bool is_detect = reply->failed_at >= 0 && reply->failed_at < reply->n - 1;

    if (!is_detect || reply->err.kind == ERR_CONN || reply->err.kind == ERR_AUTH ||
        !adapter_spoil(s->adapter, reply->failed_at, &reply->err))
        return false;
    ask_detects(s);
    return true;
}

/* The address leads to another database now: a failover to a copy, a proxy that turned, a restore.
 * Counters, rows and actions under way belong to the old one: nothing of it is shown, and nothing
 * can be done, until the new one is open. */
static void
note_move(struct store *s, const struct server_row *is)
{
    const struct server_row *was = store_server(s);

    if (was && *was->identity && *is->identity && strcmp(was->identity, is->identity) != 0) {
        adapter_moved(s->adapter);
        s->source.moves++;
        s->source.state = STORE_CONNECTING;
        store_inject_reset(s);
    }
}

static bool
choose(struct store *s, struct result **owners, struct err *e)
{
    const struct server_row *is = store_server(s);
    char *server = trust_server(is->identity, db_host(s->db), db_name(s->db));
    struct adapter_wanted wanted = {s->source.schema, db_name(s->db), server, s->source.trust};

    bool ok = adapter_choose(s->adapter, owners, &wanted, e);
    free(server);
    return ok;
}

static void
likely_came(void *ctx, struct db_reply *reply)
{
    struct store *s = ctx;
    struct err e = {0};

    bool ok = choose(s, NULL, &e); /* for its sentence: nothing was found */
    if (!ok && reply->err.kind == ERR_NONE)
        adapter_name_likely(result_text(reply->results[0], 0, 0), db_name(s->db), &e);
    else if (!ok)
        log_line(LOG_WARN, "likely_tables: %s", reply->err.text);
    try_later(s, STORE_MISSING, &e);
}

/* No adapter fits this database: asks which tables look like those of a queue. */
static void
ask_likely(struct store *s)
{
    struct db_stmt stmt = {.sql = console_sql("likely_tables")};

    db_ask(s->db, &(struct db_call){.stmts = &stmt, .n = 1}, -1, likely_came, s);
}

/* owners: one answer for each schema that was found, in the same order. */
static void
choose_adapter(struct store *s, struct result **owners)
{
    struct err e = {0};

    bool ok = choose(s, owners, &e);
    if (!ok && adapter_may_be_unknown(s->adapter, s->source.schema)) {
        ask_likely(s);
        return;
    }
    if (!ok) {
        try_later(s, e.kind == ERR_DENIED ? STORE_STRANGE : STORE_MISSING, &e);
        return;
    }
    s->source.owners_ms = clock_ms();
    tell_adapter(s);
    ask_version(s);
}

static void
owners_came(void *ctx, struct db_reply *reply)
{
    struct store *s = ctx;

    if (reply->err.kind != ERR_NONE)
        try_later(s, s->source.state, &reply->err);
    else if (s->source.is_plain && !adapter_owners_proved(reply->results, reply->n))
        ask_owners(s, false);
    else
        choose_adapter(s, reply->results);
}

/* Reads who owns what was found. Nothing in a schema is used before its owner is known. */
static void
ask_owners(struct store *s, bool plain)
{
    struct db_param storage[ADAPTERS_MAX][OWNERS_PARAMS];
    struct db_stmt stmts[ADAPTERS_MAX];
    int n = 0;

    s->source.is_plain = plain;
    for (; adapter_found(s->adapter, n); n++)
        stmts[n] = adapter_owners(s->adapter, n, plain, storage[n]);
    db_ask(s->db, &(struct db_call){.stmts = stmts, .n = n, .quick = true}, -1, owners_came, s);
}

static void
detected(void *ctx, struct db_reply *reply)
{
    struct store *s = ctx;
    struct err e = reply->err;
    struct rowset server = {0};
    int last = reply->n - 1;

    if (e.kind != ERR_NONE) {
        if (!leave_out(s, reply))
            try_later(s, s->source.state, &e);
        return;
    }
    store_observer(s, "server", &reply->results[last], 1, NULL);
    db_keep(s->db, reply->results[last]);
    if (!record_decode(&record_server, db_take(reply, last), &server, &e) || server.n != 1) {
        rowset_free(&server);
        try_later(s, s->source.state, &e);
        return;
    }
    note_move(s, server.rows);
    rowset_free(&s->source.server);
    s->source.server = server;
    store_set_clock(s, ((const struct server_row *)server.rows)->now_ms);
    if (adapter_take(s->adapter, reply->results, s->source.schema) > 0)
        ask_owners(s, true);
    else
        choose_adapter(s, NULL);
}

static void
ask_detects(struct store *s)
{
    struct db_stmt stmts[ADAPTERS_MAX + 1];
    int n = adapter_detects(s->adapter, stmts);

    stmts[n++] = (struct db_stmt){.sql = console_sql("server")};
    db_ask(s->db, &(struct db_call){.stmts = stmts, .n = n, .quick = true}, -1, detected, s);
}

static void
marks_came(void *ctx, struct db_reply *reply)
{
    struct store *s = ctx;

    if (reply->err.kind != ERR_NONE) {
        try_later(s, s->source.state, &reply->err);
        return;
    }
    adapter_marked(s->adapter, reply->results[0]);
    ask_detects(s);
}

void
store_begin_open(struct store *s)
{
    struct adapter_marks m;

    if (s->source.asking)
        return;
    s->source.asking = true;
    s->source.at_ms = 0;
    struct db_stmt stmt = adapter_marks(s->adapter, &m);
    if (stmt.sql)
        db_ask(s->db, &(struct db_call){.stmts = &stmt, .n = 1, .quick = true}, -1, marks_came, s);
    else
        ask_detects(s);
    adapter_marks_done(&m);
}

/* --- what makes it ask again ------------------------------------------------------------------- */

/* True if the server's in_recovery has changed: it was promoted, or a pooler gave us another
 * server. The possible acts depend on this, so the store opens again. */
static bool
has_turned(const struct store *s, int in_recovery)
{
    const struct server_row *server = store_server(s);

    return s->source.open && server && in_recovery >= 0 && server->in_recovery != in_recovery;
}

void
store_note_recovery(struct store *s, int in_recovery)
{
    s->source.turned |= has_turned(s, in_recovery);
}

void
store_look_anew(struct store *s)
{
    s->source.turned = false;
    s->source.open = false;
    s->source.at_ms = clock_ms();
    store_plan(s);
}

/* True once every OWNERS_MS. Then the next pipeline checks the owners of all objects that it reads
 * (model/adapter/trust.h). */
bool
store_owners_due(struct store *s)
{
    int64_t now = clock_ms();

    if (now - s->source.owners_ms < OWNERS_MS)
        return false;
    s->source.owners_ms = now;
    return true;
}

void
store_lost(struct store *s, const struct err *e)
{
    bool was_open = s->source.open;

    s->source.open = false;
    s->source.error = *e;
    store_observer(s, "server", NULL, 0, e);
    store_observer_done(s);
    if (was_open && s->alive) {
        s->source.at_ms = clock_ms();
        store_plan(s);
    }
}

void
store_clear_error(struct store *s)
{
    s->source.error = (struct err){0};
}

/* --- from a recording -------------------------------------------------------------------------- */

/* Takes the adapter that the recording was made with. */
static void
inject_adapter(struct store *s, const struct result *r)
{
    const char *name = result_text(r, 0, result_col(r, "adapter"));
    const char *schema = result_text(r, 0, result_col(r, "schema"));

    if (adapter_become_named(s->adapter, name) && adapter_use(s->adapter, schema, &s->source.error))
        for (int t = 0; t < TOPIC_COUNT; t++)
            s->slots[t].info.unavailable = adapter_has(s->adapter, topic_kinds[t].sections[0])
                                               ? NULL
                                               : adapter_silence(s->adapter);
    else if (s->source.error.kind == ERR_NONE)
        fail(&s->source.error, ERR_DATA, "recorded with adapter %s, which is not here", name);
}

void
store_inject_source(struct store *s, struct store_answer *a)
{
    struct db_reply reply = {.results = a->tables, .n = a->n};
    struct rowset rows;
    struct err e = {0};

    s->source.state = STORE_OPEN;
    s->source.error = a->err ? *a->err : (struct err){0};
    if (a->n < 1 || !a->tables[0])
        return;
    if (!strcmp(a->name, "adapter")) {
        inject_adapter(s, a->tables[0]);
        return;
    }
    if (!strcmp(a->name, "version")) {
        free(s->source.version);
        s->source.version = xstrdup(result_text(a->tables[0], 0, 0));
        return;
    }
    bool server = !strcmp(a->name, "server");
    if (!record_decode(server ? &record_server : &record_role, db_take(&reply, 0), &rows, &e)) {
        s->source.error = e;
        return;
    }
    struct rowset *to = server ? &s->source.server : &s->source.role;
    rowset_free(to);
    *to = rows;
}

/* --- what is known of it ----------------------------------------------------------------------- */

const char *
store_warning(const struct store *s, int i)
{
    const struct role_row *role = store_role(s);
    bool hidden = role && *role->warning;

    if (hidden && i == 0)
        return role->warning;
    return adapter_complaint(s->adapter, i - hidden);
}

void
store_trust(struct store *s, const struct trust *t)
{
    s->source.trust = t;
}

const struct owners *
store_strangers(const struct store *s)
{
    const struct adapter_found *f;

    for (int i = 0; s->source.state == STORE_STRANGE && (f = adapter_found(s->adapter, i)); i++)
        if (f->chosen)
            return f->owners;
    return NULL;
}

void
store_look_again(struct store *s)
{
    if (s->alive)
        store_look_anew(s);
}

enum store_state
store_state(const struct store *s)
{
    return s->source.state;
}

/* While nothing is open, the error of the connection itself is reported: a call that waits for the
 * connection would report it much later. */
const struct err *
store_error(const struct store *s)
{
    const struct err *e = db_last_error(s->db);

    return s->source.open || e->kind == ERR_NONE ? &s->source.error : e;
}

const struct server_row *
store_server(const struct store *s)
{
    return s->source.server.n ? s->source.server.rows : NULL;
}

int
store_moves(const struct store *s)
{
    return s->source.moves;
}

const struct role_row *
store_role(const struct store *s)
{
    return s->source.role.n ? s->source.role.rows : NULL;
}

const char *
store_version(const struct store *s)
{
    return s->source.version;
}

const struct db *
store_db(const struct store *s)
{
    return s->db;
}
