/*
 * The rows of database health, and the rules of its advice.
 */
#include "model/health.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/text.h"

#define COLUMNS(t) (int)(sizeof(t) / sizeof(t)[0])
#define RECORD(what, table) \
    const struct record record_##what = {table, COLUMNS(table), sizeof(struct what)}

#define S(f) offsetof(struct health_server, f)
static const struct field server_fields[] = {
    {"max_connections", F_INT,  S(max_connections), false},
    {"connections",     F_INT,  S(connections),     false},
    {"active",          F_INT,  S(active),          false},
    {"idle_in_txn",     F_INT,  S(idle_in_txn),     false},
    {"blocked",         F_INT,  S(blocked),         false},
    {"hidden",          F_INT,  S(hidden),          false},
    {"longest_ms",      F_I64,  S(longest_ms),      false},
    {"blks_hit",        F_I64,  S(blks_hit),        false},
    {"blks_read",       F_I64,  S(blks_read),       false},
    {"wal_bytes",       F_I64,  S(wal_bytes),       false},
    {"standbys",        F_INT,  S(standbys),        false},
    {"standby",         F_BOOL, S(standby),         false},
    {"lag_ms",          F_I64,  S(lag_ms),          false},
    {"lag_bytes",       F_I64,  S(lag_bytes),       false},
    {"xid_age",         F_I64,  S(xid_age),         false},
    {"freeze_max",      F_I64,  S(freeze_max),      false},
    {"xid_database",    F_STR,  S(xid_database),    false},
    {"autovacuum",      F_BOOL, S(autovacuum),      false},
    {"workers",         F_INT,  S(workers),         false},
    {"max_workers",     F_INT,  S(max_workers),     false},
    {"sees_all",        F_BOOL, S(sees_all),        false},
    {"signals_all",     F_BOOL, S(signals_all),     false},
    {"login",           F_STR,  S(login),           false},
};
RECORD(health_server, server_fields);

#define T(f) offsetof(struct health_session, f)
static const struct field session_fields[] = {
    {"id",         F_STR,  T(id),         false},
    {"kind",       F_STR,  T(kind),       false},
    {"pid",        F_INT,  T(pid),        false},
    {"user",       F_STR,  T(user),       false},
    {"app",        F_STR,  T(app),        false},
    {"client",     F_STR,  T(client),     false},
    {"state",      F_STR,  T(state),      false},
    {"xact_ms",    F_I64,  T(xact_ms),    false},
    {"since_ms",   F_I64,  T(since_ms),   false},
    {"held",       F_I64,  T(held),       false},
    {"query",      F_STR,  T(query),      false},
    {"waits",      F_STR,  T(waits),      false},
    {"blocked_by", F_STR,  T(blocked_by), false},
    {"wraparound", F_BOOL, T(wraparound), false},
    {"guard",      F_STR,  T(guard),      false},
    {"deny",       F_STR,  T(deny),       false},
};
RECORD(health_session, session_fields);

#define V(f) offsetof(struct health_vacuum, f)
static const struct field vacuum_fields[] = {
    {"pid",         F_INT,  V(pid),         false},
    {"name",        F_STR,  V(name),        false},
    {"phase",       F_STR,  V(phase),       false},
    {"total_bytes", F_I64,  V(total_bytes), false},
    {"started_ms",  F_I64,  V(started_ms),  false},
    {"done",        F_DBL,  V(done),        false},
    {"auto",        F_BOOL, V(automatic),   false},
    {"wraparound",  F_BOOL, V(wraparound),  false},
};
RECORD(health_vacuum, vacuum_fields);

#define B(f) offsetof(struct health_table, f)
static const struct field table_fields[] = {
    {"name",         F_STR,  B(name),         false},
    {"parts",        F_INT,  B(parts),        false},
    {"partitioned",  F_BOOL, B(partitioned),  false},
    {"live",         F_I64,  B(live),         false},
    {"dead",         F_I64,  B(dead),         false},
    {"size",         F_I64,  B(size),         false},
    {"index_size",   F_I64,  B(index_size),   false},
    {"hot",          F_DBL,  B(hot),          false},
    {"vacuumed_ms",  F_I64,  B(vacuumed_ms),  false},
    {"analyzed_ms",  F_I64,  B(analyzed_ms),  false},
    {"next_dead",    F_I64,  B(next_dead),    false},
    {"worst_dead",   F_I64,  B(worst_dead),   false},
    {"worst",        F_STR,  B(worst),        false},
    {"largest",      F_STR,  B(largest),      false},
    {"largest_size", F_I64,  B(largest_size), false},
    {"vacuum_off",   F_BOOL, B(vacuum_off),   false},
};
RECORD(health_table, table_fields);

/* --- what follows ---------------------------------------------------------------------------- */

enum {
    LONG_MS = 5 * 60 * 1000, /* of an open transaction */
    IDLE_MS = 60 * 1000,     /* of one in which nothing happens */
    HELD_XIDS = 1000,        /* below, a holder is no matter */
    MANY_DEAD = 1000,
    LAG_MS = 30 * 1000,
    BLOCKED_MS = 10 * 1000
};
#define MUCH_DEAD 0.20
#define FREEZE_PART 0.80
#define FULL_PART 0.90

static int64_t
known(int64_t n)
{
    return n == FIELD_NULL || n < 0 ? 0 : n;
}

double
health_dead_part(const struct health_table *t)
{
    int64_t dead = known(t->dead), all = dead + known(t->live);

    return all > 0 ? (double)dead / (double)all : (double)NAN;
}

double
health_fill(const struct health_table *t)
{
    int64_t next = known(t->next_dead);

    return (double)known(t->worst_dead) / (double)(next > 0 ? next : 1);
}

bool
health_is_signalled(const struct health_session *s)
{
    return s->pid > 0 && strcmp(s->kind, "slot") != 0 && *s->guard;
}

static int64_t
open_for(const struct health *h, const struct health_session *s)
{
    return s->xact_ms == FIELD_NULL || h->now_ms < s->xact_ms ? 0 : h->now_ms - s->xact_ms;
}

static bool
is_idle(const struct health_session *s)
{
    return !strncmp(s->state, "idle in transaction", 19);
}

/* Of those that hold, the one that goes back furthest: as old in ids, or open so long that nothing
 * else matters in a quiet database. */
const struct health_session *
health_holder(const struct health *h)
{
    const struct health_session *most = NULL;

    for (int i = 0; i < h->nsessions; i++) {
        const struct health_session *s = &h->sessions[i];
        int64_t ms = open_for(h, s);
        if (s->held == FIELD_NULL || (s->held < HELD_XIDS && ms < (is_idle(s) ? IDLE_MS : LONG_MS)))
            continue;
        if (!most || s->held > most->held || (s->held == most->held && ms > open_for(h, most)))
            most = s;
    }
    return most;
}

int64_t
health_held_rows(const struct health *h)
{
    int64_t sum = 0;

    for (int i = 0; i < h->ntables; i++)
        sum += known(h->tables[i].dead);
    return sum;
}

/* --- advice ---------------------------------------------------------------------------------- */

struct list {
    const struct health *h;
    struct arena *mem;
    struct advice *out;
    int n, max;
};

static void
add(struct list *l, bool bad, const char *id, const char *text)
{
    if (l->n < l->max)
        l->out[l->n++] = (struct advice){bad, id, text};
}

/* "41m", as the lists say it. */
static const char *
span(struct list *l, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {
        {86400000, "d"},
        {3600000,  "h"},
        {60000,    "m"},
    };

    for (int i = 0; i < 3; i++)
        if (ms >= units[i].ms)
            return arena_printf(l->mem, "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
    return arena_printf(l->mem, "%llds", (long long)(ms / 1000));
}

static const char *
count(struct list *l, int64_t n)
{
    if (n < 1000)
        return arena_printf(l->mem, "%lld", (long long)n);
    if (n < 1000000)
        return arena_printf(l->mem, "%lld,%03lld", (long long)(n / 1000), (long long)(n % 1000));
    return arena_printf(l->mem, "%lld,%03lld,%03lld", (long long)(n / 1000000),
                        (long long)(n / 1000 % 1000), (long long)(n % 1000));
}

static const char *
who(struct list *l, const struct health_session *s)
{
    struct buf b = {0};

    if (s->pid > 0 && strcmp(s->kind, "slot") != 0)
        buf_printf(&b, "pid %d (%s ", s->pid, *s->app ? "app" : "user");
    else
        buf_printf(&b, "%s (",
                   !strcmp(s->kind, "slot") ? "replication slot" : "prepared transaction");
    text_clean(&b, *s->app ? s->app : s->user, strlen(*s->app ? s->app : s->user), TEXT_LINE, 24);
    buf_str(&b, ")");
    const char *text = arena_strndup(l->mem, b.data, b.len);
    buf_free(&b);
    return text;
}

static const char *
help_for(struct list *l, const struct health_session *s)
{
    if (!strcmp(s->kind, "slot"))
        return "start its reader, or drop the slot";
    if (!strcmp(s->kind, "prepared"))
        return "commit prepared or rollback prepared ends it";
    if (!strcmp(s->kind, "walsender"))
        return "a standby holds it by hot_standby_feedback: look for the long query there";
    if (*s->deny)
        return arena_printf(l->mem, "ending it is not yours to do: %s", s->deny);
    return is_idle(s) ? "K ends that session" : "C cancels its statement, K ends the session";
}

static const char *
what_it_does(struct list *l, const struct health_session *s)
{
    int64_t ms = open_for(l->h, s);

    if (!strcmp(s->kind, "slot"))
        return arena_printf(l->mem, "(%s) keeps rows since %s transactions", s->state,
                            count(l, known(s->held)));
    if (!strcmp(s->kind, "prepared"))
        return arena_printf(l->mem, "is open for %s", span(l, ms));
    return arena_printf(l->mem, "is %s for %s", s->state, span(l, ms));
}

static void
on_holder(struct list *l)
{
    const struct health_session *s = health_holder(l->h);
    int64_t rows = health_held_rows(l->h);

    if (!s)
        return;
    add(l, open_for(l->h, s) >= LONG_MS || rows >= MANY_DEAD, s->id,
        arena_printf(l->mem, "%s %s and holds back vacuum%s: %s", who(l, s), what_it_does(l, s),
                     rows >= MANY_DEAD
                         ? arena_printf(l->mem, " (up to %s dead rows stay)", count(l, rows))
                         : "",
                     help_for(l, s)));
}

/* Transactions that are open for long beside the holder; blockers have their own words. */
static void
on_sessions(struct list *l)
{
    const struct health *h = l->h;
    const struct health_session *holder = health_holder(h);

    for (int i = 0; i < h->nsessions; i++) {
        const struct health_session *s = &h->sessions[i];
        int64_t ms = open_for(h, s);
        if (*s->blocked_by && h->now_ms - s->since_ms >= BLOCKED_MS)
            add(l, true, s->id,
                arena_printf(l->mem,
                             "%s waits for a lock since %s, held by pid %s: look at that one first",
                             who(l, s), span(l, h->now_ms - s->since_ms), s->blocked_by));
        else if (s == holder || !strcmp(s->kind, "autovacuum"))
            continue;
        else if (!strcmp(s->kind, "slot") && !strncmp(s->state, "inactive", 8))
            add(l, false, s->id,
                arena_printf(
                    l->mem,
                    "%s is not read by anybody and keeps WAL%s: start its reader, or drop it",
                    who(l, s), s->held == FIELD_NULL ? "" : " and dead rows"));
        else if (is_idle(s) && ms >= LONG_MS)
            add(l, false, s->id,
                arena_printf(l->mem, "%s is %s for %s: %s", who(l, s), s->state, span(l, ms),
                             help_for(l, s)));
    }
}

static void
on_tables(struct list *l)
{
    const struct health *h = l->h;
    const struct health_session *holder = health_holder(h);

    for (int i = 0; i < h->ntables; i++) {
        const struct health_table *t = &h->tables[i];
        double part = health_dead_part(t);
        int percent = isnan(part) ? 0 : (int)(part * 100);
        if (t->vacuum_off == 1)
            add(l, true, "",
                arena_printf(l->mem,
                             "%s: autovacuum is switched off for it: alter table ... reset "
                             "(autovacuum_enabled)",
                             t->name));
        if (known(t->dead) < MANY_DEAD || isnan(part) || part < MUCH_DEAD)
            continue;
        if (holder)
            add(l, true, holder->id,
                arena_printf(l->mem, "%s: %d%% dead, %s rows, and vacuum is held back by %s",
                             t->name, percent, count(l, t->dead), who(l, holder)));
        else if (health_fill(t) >= 1)
            add(l, false, "",
                arena_printf(l->mem,
                             "%s: %d%% dead and past its mark of %s: autovacuum is due, or %d of "
                             "%d workers are not enough",
                             t->name, percent, count(l, t->next_dead),
                             h->server ? h->server->workers : 0,
                             h->server ? h->server->max_workers : 0));
        else
            add(l, false, "",
                arena_printf(
                    l->mem,
                    "%s: %d%% dead is normal between vacuums: the next starts at %s dead rows",
                    t->name, percent, count(l, t->next_dead)));
    }
}

static void
on_server(struct list *l)
{
    const struct health_server *s = l->h->server;

    if (!s)
        return;
    if (s->freeze_max > 0 && (double)s->xid_age >= FREEZE_PART * (double)s->freeze_max)
        add(l, true, "",
            arena_printf(l->mem,
                         "database %s is at %d%% of autovacuum_freeze_max_age: vacuum (freeze) its "
                         "oldest tables; end what holds vacuum back",
                         s->xid_database,
                         (int)(100.0 * (double)s->xid_age / (double)s->freeze_max)));
    if (s->autovacuum == 0)
        add(l, true, "",
            "autovacuum is switched off on this server: dead rows stay. alter system set "
            "autovacuum = on, then reload");
    if (s->max_connections > 0 && s->connections >= FULL_PART * s->max_connections)
        add(l, true, "",
            arena_printf(
                l->mem,
                "%d of %d connections are taken: a pooler, or fewer workers, before nobody gets in",
                s->connections, s->max_connections));
    if (s->lag_ms != FIELD_NULL && s->lag_ms >= LAG_MS)
        add(l, false, "",
            arena_printf(
                l->mem,
                s->standby == 1
                    ? "this standby is %s behind: what you see is that old"
                    : "a standby is %s behind: its disk, its network, or a long query there",
                span(l, s->lag_ms)));
}

static void
on_rights(struct list *l)
{
    const struct health_server *s = l->h->server;

    if (s && s->sees_all == 0)
        add(l, false, "",
            arena_printf(l->mem,
                         "user %s can't see what other users' sessions do (%d hidden now): grant "
                         "pg_monitor to it would show them",
                         s->login, s->hidden));
}

int
health_advice(const struct health *h, struct arena *mem, struct advice *out, int max)
{
    struct advice all[64];
    struct list l = {h, mem, all, 0, 64};
    int n = 0;

    on_holder(&l);
    on_server(&l);
    on_sessions(&l);
    on_tables(&l);
    on_rights(&l);
    for (int bad = 1; bad >= 0; bad--)
        for (int i = 0; i < l.n && n < max; i++)
            if (all[i].bad == (bad == 1))
                out[n++] = all[i];
    return n;
}
