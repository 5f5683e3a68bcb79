/*
 * Which queue is there: asked at the start and after each new connection, because a failover or a
 * restore may have changed it. First detect and the server's facts, then, with the schema chosen
 * and the adapter bound to it, version and role.
 */
#include <stdlib.h>
#include <string.h>

#include "model/clock.h"
#include "model/mem.h"
#include "model/store_parts.h"

enum { MISSING_WAIT_MS = 3000 };

void
store_set_clock(struct store *s, int64_t server_ms)
{
    s->server_ms = server_ms;
    s->server_at_ms = clock_ms();
}

int64_t
store_now_ms(const struct store *s)
{
    if (s->still.on)
        return s->still.now_ms;
    if (s->clock_stands)
        return clock_wall_ms();
    return s->server_ms ? s->server_ms + clock_ms() - s->server_at_ms : 0;
}

static void
try_later(struct store *s, enum store_state state, const struct err *e)
{
    s->opening = false;
    s->state = state;
    s->error = *e;
    s->open_at_ms = e->kind == ERR_AUTH ? 0 : clock_ms() + MISSING_WAIT_MS; /* see store_refresh */
    store_touch(s);
    store_plan(s);
}

static void
opened(void *ctx, struct db_reply *reply)
{
    struct store *s = ctx;
    struct err e = reply->err;
    struct rowset role = {0};
    int at = adapter_has(s->adapter, SEC_VERSION);

    bool ok = e.kind == ERR_NONE;
    if (ok && at)
        store_tap(s, "version", &reply->results[0], 1, NULL);
    if (ok && adapter_has(s->adapter, SEC_ROLE))
        store_tap(s, "role", &reply->results[at], 1, NULL);
    store_tap_done(s);
    if (ok && at && result_rows(reply->results[0]) > 0) {
        free(s->version);
        s->version = xstrdup(result_text(reply->results[0], 0, 0));
    }
    if (ok && adapter_has(s->adapter, SEC_ROLE))
        ok = record_decode(&record_role, db_take(reply, at), &role, &e);
    if (!ok) {
        try_later(s, s->state, &e);
        return;
    }
    rowset_free(&s->role);
    s->role = role;
    s->opening = false;
    s->open = true;
    s->open_at_ms = 0;
    s->state = STORE_OPEN;
    s->error = (struct err){0};
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
    if (adapter_has(s->adapter, SEC_ROLE)) {
        stmts[n] = adapter_bind(s->adapter, SEC_ROLE, NULL, none[n]);
        n++;
    }
    stmts[n++] = (struct db_stmt){.sql = console_sql("spent")};
    struct db_call call = {.stmts = stmts, .n = n};
    adapter_settings(s->adapter, &call);
    db_ask(s->db, &call, -1, opened, s);
}

static void
detected(void *ctx, struct db_reply *reply)
{
    struct store *s = ctx;
    struct err e = reply->err;
    struct rowset server = {0};

    if (e.kind != ERR_NONE) {
        try_later(s, s->state, &e);
        return;
    }
    store_tap(s, "server", &reply->results[1], 1, NULL);
    if (!record_decode(&record_server, db_take(reply, 1), &server, &e) || server.n != 1) {
        rowset_free(&server);
        try_later(s, s->state, &e);
        return;
    }
    rowset_free(&s->server);
    s->server = server;
    store_set_clock(s, ((const struct server_row *)server.rows)->now_ms);
    if (!adapter_choose(s->adapter, reply->results[0], s->schema, db_name(s->db), &e)) {
        try_later(s, STORE_MISSING, &e);
        return;
    }
    ask_version(s);
}

void
store_begin_open(struct store *s)
{
    struct db_stmt stmts[2] = {{.sql = adapter_sql(s->adapter, SEC_DETECT)},
                               {.sql = console_sql("server")}};

    if (s->opening)
        return;
    s->opening = true;
    s->open_at_ms = 0;
    db_ask(s->db, &(struct db_call){.stmts = stmts, .n = 2}, -1, detected, s);
}

enum store_state
store_state(const struct store *s)
{
    return s->state;
}

/* A break of the connection is said at once, not when the call that waits for it gives up. */
const struct err *
store_error(const struct store *s)
{
    const struct err *e = db_last_error(s->db);

    return s->open || e->kind == ERR_NONE ? &s->error : e;
}

const struct server_row *
store_server(const struct store *s)
{
    return s->server.n ? s->server.rows : NULL;
}

const struct role_row *
store_role(const struct store *s)
{
    return s->role.n ? s->role.rows : NULL;
}

const char *
store_version(const struct store *s)
{
    return s->version;
}

const struct db *
store_db(const struct store *s)
{
    return s->db;
}
