/*
 * From a command line to a queue: connect, detect, bind the adapter. If the first connection fails,
 * the error is reported at once; nothing is retried silently.
 */
#include "ui/cli/cli_open.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/terms.h"
#include "model/base/console_sql.h"
#include "model/base/mem.h"
#include "model/db/rows.h"
#include "ui/cli/cli_trust.h"

enum { LOCK_TIMEOUT_MS = 2000, SECTIONS = 8 };
/* The server's own limit (--timeout) comes first. */
enum { STALL_MS = 2000, DROP_MS = 5000 };

static struct db *
connect_to(struct cli_queue *q, bool acts)
{
    struct cli *c = q->cli;
    struct db_options o;

    cli_db_options(c, &o);
    o.schema = "pg_catalog"; /* adapters name their schema themselves */
    place_gate_init(&q->place);
    if (c->place)
        place_gate_expect(&q->place, c->place);
    o.gate = &q->place.db; /* adapters check its owner themselves */
    o.once = true;
    o.read_only = !acts;
    o.statement_timeout_ms = o.connect_ms = c->timeout_ms;
    o.lock_timeout_ms = LOCK_TIMEOUT_MS;
    o.stall_warn_ms = c->timeout_ms + STALL_MS;
    o.stall_drop_ms = o.stall_warn_ms + DROP_MS;
    cli_watch_slow(c);
    c->db = db_new(c->loop, &o);
    return c->db;
}

/* Leaves out the systems whose tables are not here. */
static bool
ask_marks(struct cli_queue *q, struct err *e)
{
    struct adapter_marks m;
    struct db_stmt stmt = adapter_marks(q->adapter, &m);
    struct db_reply reply = {.n = 0};

    bool ok =
        !stmt.sql || db_do(q->db, q->cli->loop,
                           &(struct db_call){.stmts = &stmt, .n = 1, .quick = true}, &reply, e);
    if (ok && stmt.sql)
        adapter_marked(q->adapter, reply.results[0]);
    db_reply_done(&reply);
    adapter_marks_done(&m);
    return ok;
}

/* Tries all candidates in one call. A candidate whose own statement fails is left out and the
 * others are tried again. */
static bool
ask_detects(struct cli_queue *q, struct db_reply *reply, struct err *e)
{
    struct db_stmt stmts[ADAPTERS_MAX];

    if (!ask_marks(q, e))
        return false;
    for (;;) {
        int n = adapter_detects(q->adapter, stmts);
        if (n == 0 || db_do(q->db, q->cli->loop,
                            &(struct db_call){.stmts = stmts, .n = n, .quick = true}, reply, e))
            return true;
        bool conn = e->kind == ERR_CONN || e->kind == ERR_AUTH || reply->failed_at < 0;
        if (conn || !adapter_spoil(q->adapter, reply->failed_at, e))
            return false;
        db_reply_done(reply);
    }
}

static bool
ask_owners(struct cli_queue *q, int n, bool plain, struct db_reply *reply, struct err *e)
{
    struct db_param storage[ADAPTERS_MAX][OWNERS_PARAMS];
    struct db_stmt stmts[ADAPTERS_MAX];

    for (int i = 0; i < n; i++)
        stmts[i] = adapter_owners(q->adapter, i, plain, storage[i]);
    return db_do(q->db, q->cli->loop, &(struct db_call){.stmts = stmts, .n = n, .quick = true},
                 reply, e);
}

/* Reads the owners of the objects that were found. Nothing in a schema is used before its owner is
 * known. */
static bool
choose(struct cli_queue *q, int n, struct err *e)
{
    struct db_reply reply = {.n = 0};
    char *server = trust_server(q->place.identity, db_host(q->db), db_name(q->db));
    struct adapter_wanted wanted = {q->cli->wanted, db_name(q->db), server, cli_trust(q->cli)};

    bool ok = n == 0 || ask_owners(q, n, true, &reply, e);
    if (ok && n > 0 && !adapter_owners_proved(reply.results, n)) {
        db_reply_done(&reply);
        ok = ask_owners(q, n, false, &reply, e);
    }
    if (ok && !adapter_choose(q->adapter, reply.results, &wanted, e)) {
        ok = false;
        if (e->kind == ERR_DATA)
            e->kind = ERR_SQL; /* the server has no queue: treat it as a missing table */
    }
    db_reply_done(&reply);
    free(server);
    return ok;
}

/* No adapter knows this database. Whoever has another queue system there needs an adapter, not an
 * installation: names the tables that look like one. */
static void
name_likely(struct cli_queue *q, struct err *e)
{
    struct db_stmt stmt = {.sql = console_sql("likely_tables")};
    struct db_reply reply;
    struct err failed = {0};

    if (!db_do(q->db, q->cli->loop, &(struct db_call){.stmts = &stmt, .n = 1}, &reply, &failed))
        *e = failed;
    else
        adapter_name_likely(result_text(reply.results[0], 0, 0), db_name(q->db), e);
    db_reply_done(&reply);
}

void
cli_say_likely(struct cli *c)
{
    struct db_stmt stmt = {.sql = console_sql("likely_tables")};
    struct db_reply reply;
    struct err e = {0};

    if (!db_do(c->db, c->loop, &(struct db_call){.stmts = &stmt, .n = 1}, &reply, &e))
        cli_say(c, "likely_tables: %s", e.text);
    else if (*result_text(reply.results[0], 0, 0))
        cli_say(
            c,
            "these tables look like a queue of another kind: %s; queuetop-adapter(5) says how to "
            "open them",
            result_text(reply.results[0], 0, 0));
    db_reply_done(&reply);
}

static bool
detect(struct cli_queue *q, struct err *e)
{
    struct db_reply reply = {.n = 0};
    struct cli *c = q->cli;

    bool ok = ask_detects(q, &reply, e);
    if (ok) {
        q->source = arena_printf(c->mem, "%s/%s", db_host(q->db), db_name(q->db));
        int found = adapter_take(q->adapter, reply.results, c->wanted);
        ok = choose(q, found, e);
        if (!ok && e->kind == ERR_SQL && adapter_may_be_unknown(q->adapter, c->wanted))
            name_likely(q, e);
        ok = ok && adapter_is_clear(q->adapter, c->wanted, db_name(q->db), e);
    }
    db_reply_done(&reply);
    return ok;
}

/* Reads version and role, which decide what is possible. */
static bool
ask_role(struct cli_queue *q, struct err *e)
{
    struct db_param none[2][ADAPTER_PARAMS];
    bool has_version = adapter_has(q->adapter, SEC_VERSION);
    struct db_stmt stmts[2] = {adapter_bind(q->adapter, SEC_ROLE, NULL, none[0])};
    struct db_call call = {.stmts = stmts, .n = 1 + has_version};
    struct db_reply reply;

    if (has_version)
        stmts[1] = adapter_bind(q->adapter, SEC_VERSION, NULL, none[1]);
    adapter_settings(q->adapter, false, &call);
    bool ok = db_do(q->db, q->cli->loop, &call, &reply, e) &&
              record_decode(&record_role, db_take(&reply, 0), &q->role, e);
    bool told = ok && has_version && result_rows(reply.results[1]) > 0;
    if (ok)
        adapter_judge(q->adapter, told ? result_text(reply.results[1], 0, 0) : "",
                      q->role.n ? q->role.rows : NULL);
    db_reply_done(&reply);
    return ok;
}

static void
warn(struct cli_queue *q)
{
    const struct role_row *role = cli_role(q);

    for (int i = 0; adapter_complaint(q->adapter, i); i++)
        cli_say(q->cli, "%s", adapter_complaint(q->adapter, i));
    if (role && *role->warning)
        cli_say(q->cli, "%s", role->warning);
    const struct adapter_found *f;
    bool is_one = q->cli->wanted || q->cli->adapter || !adapter_schema(q->adapter);
    for (int i = 0; !is_one && (f = adapter_found(q->adapter, i)); i++)
        if (f->owners->n > 0)
            cli_say(q->cli, "%s in schema %s is not opened: owned by %s", f->adapter, f->schema,
                    f->owners->names);
}

bool
cli_open(struct cli *c, bool acts, struct cli_queue *q, struct err *e)
{
    *q = (struct cli_queue){.cli = c};
    if (acts && c->read_only)
        return fail(e, ERR_DENIED, "--read-only: nothing is changed");
    q->adapter = adapter_open(c->adapter, e);
    if (!q->adapter)
        return false;
    if (c->trust_version)
        adapter_trust(q->adapter);
    q->db = connect_to(q, acts);
    bool foreign = false;
    bool ok = detect(q, e);
    if (ok) {
        const char *why = acts ? adapter_no_acts(q->adapter) : NULL;
        foreign = strcmp(adapter_name(q->adapter), "native") != 0;
        ok = why ? fail(e, ERR_DENIED, "%s", why) : (!acts && !foreign) || ask_role(q, e);
    }
    warn(q);
    if (!ok)
        cli_close(q);
    return ok;
}

void
cli_close(struct cli_queue *q)
{
    db_free(q->cli->db);
    q->cli->db = NULL;
    rowset_free(&q->role);
    adapter_free(q->adapter);
    q->adapter = NULL;
    place_gate_done(&q->place);
}

/* How to remove a setting, by its source. */
static const char *
way_out(const char *source)
{
    return !strcmp(source, "database")        ? "alter database NAME reset"
           : !strcmp(source, "user")          ? "alter role NAME reset"
           : !strcmp(source, "database user") ? "alter role NAME in database NAME reset"
           : !strcmp(source, "client")        ? "leave out in PGOPTIONS or options="
                                              : "alter system reset";
}

bool
cli_takes_changes(struct cli_queue *q, struct err *e)
{
    const struct db_stmt stmt = {
        .sql = "select s.source from pg_catalog.pg_settings s where s.name operator(pg_catalog.=) "
               "'default_transaction_read_only' and s.setting operator(pg_catalog.=) 'on'"};
    struct db_reply reply;

    if (db_has_others(
            q->db)) /* another host may take changes: the first refused change looks for it */
        return true;
    bool ok = db_do(q->db, q->cli->loop, &(struct db_call){.stmts = &stmt, .n = 1}, &reply, e);
    if (ok && result_rows(reply.results[0]) > 0) {
        const char *source = result_text(reply.results[0], 0, 0);
        ok = fail(e, ERR_REFUSED,
                  "nothing was changed: default_transaction_read_only is on (set by: %s). To allow "
                  "changes: %s default_transaction_read_only; for one command: "
                  "PGOPTIONS='-c default_transaction_read_only=off'",
                  source, way_out(source));
    }
    db_reply_done(&reply);
    return ok;
}

const struct role_row *
cli_role(const struct cli_queue *q)
{
    return q->role.n ? q->role.rows : NULL;
}

static void
read_clock(struct cli_queue *q, struct db_reply *reply)
{
    struct rowset spent;
    struct err e;

    if (!record_decode(&record_spent, db_take(reply, reply->n - 1), &spent, &e))
        return;
    if (spent.n == 1) {
        const struct spent_row *row = spent.rows;
        if (row->now_ms != FIELD_NULL)
            q->now_ms = row->now_ms;
        if (row->spent_us != FIELD_NULL)
            q->spent_us += row->spent_us;
    }
    rowset_free(&spent);
}

bool
cli_ask(struct cli_queue *q, const enum section_id *sections, int n, const struct params *p,
        struct rowset *out, struct err *e)
{
    struct db_param storage[SECTIONS][ADAPTER_PARAMS];
    struct db_stmt stmts[SECTIONS + 1];
    struct db_reply reply;

    int asked = 0;

    assert(n <= SECTIONS);
    if (n == 1 && !adapter_has(q->adapter, sections[0]))
        return fail(e, ERR_REFUSED, "%s", adapter_silence(q->adapter));
    for (int i = 0; i < n; i++)
        if (adapter_has(q->adapter, sections[i]))
            stmts[asked++] = adapter_bind(q->adapter, sections[i], p, storage[i]);
    stmts[asked] = (struct db_stmt){.sql = console_sql("spent")};
    struct db_call call = {.stmts = stmts, .n = asked + 1, .quick = asked <= 1};
    adapter_settings(q->adapter, false, &call);
    bool ok = db_do(q->db, q->cli->loop, &call, &reply, e);
    if (ok) {
        read_clock(q, &reply);
        int known = adapter_decode(q->adapter, sections, n, &reply, out, e);
        ok = known == n || fail_in(e, "%s", section_kinds[sections[known]].name);
    }
    db_reply_done(&reply);
    return ok;
}

bool
cli_is_id(const struct adapter *a, const char *s)
{
    return terms_is_id(a, s);
}

/* --- sources --- */

/* From a command line to sources. The trusted owners are determined for each database by itself. */

int
cli_places(const struct cli *c)
{
    int n = c->conninfos.n > c->dbnames.n ? c->conninfos.n : c->dbnames.n;

    return n < 1 ? 1 : n;
}

struct sources *
cli_sources(struct cli *c, const struct source_options *like, int places, struct err *e)
{
    struct source_options *each = arena_alloc(c->mem, sizeof *each * (size_t)places);

    c->trusts = arena_alloc(c->mem, sizeof *c->trusts * (size_t)places);
    for (int i = 0; i < places; i++) {
        each[i] = *like;
        each[i].conninfo = c->conninfos.n > 1 ? c->conninfos.items[i] : c->conninfo;
        each[i].dbname = c->dbnames.n > 1 ? c->dbnames.items[i] : c->dbname;
        each[i].schema = c->wanted;
        each[i].adapter = c->adapter;
        each[i].trust_version = c->trust_version;
        each[i].record = i == 0 ? like->record : NULL;
        each[i].trust = c->trusts[c->ntrusts++] =
            cli_trust_new(c, each[i].conninfo, each[i].dbname);
    }
    return sources_new(c->loop, each, places, e);
}
