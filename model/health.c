/*
 * The rows of database health, and what is read off them.
 */
#include "model/health.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

enum { HELD_XIDS = 1000, HELD_MS = 10 * 1000 }; /* below, a holder is no matter */
#define FREEZE_LATE 1.25                        /* of the age at which vacuums are forced */
#define FREEZE_BAD 1e9                          /* half way to the halt */

int64_t
health_known(int64_t n)
{
    return n == FIELD_NULL || n < 0 ? 0 : n;
}

double
health_dead_part(const struct health_table *t)
{
    int64_t dead = health_known(t->dead), all = dead + health_known(t->live);

    return all > 0 ? (double)dead / (double)all : (double)NAN;
}

double
health_fill(const struct health_table *t)
{
    int64_t next = health_known(t->next_dead);

    return (double)health_known(t->worst_dead) / (double)(next > 0 ? next : 1);
}

bool
health_is_signalled(const struct health_session *s)
{
    return s->pid > 0 && strcmp(s->kind, "slot") != 0 && *s->guard;
}

bool
health_waits(const struct health_session *s)
{
    return *s->blocked_by || !strncmp(s->waits, "Lock: ", 6);
}

bool
health_waits_for(const struct health_session *s, int pid)
{
    for (const char *at = s->blocked_by; *at;) {
        char *end;
        long one = strtol(at, &end, 10);
        if (end == at)
            return false;
        if (one == pid)
            return true;
        at = end;
    }
    return false;
}

void
health_say_blockers(struct buf *out, const struct health_session *s)
{
    const char *sign = "pid ";
    bool prepared = health_waits_for(s, 0);

    for (const char *at = s->blocked_by; *at;) {
        char *end;
        long one = strtol(at, &end, 10);
        if (end == at)
            break;
        if (one > 0) {
            buf_printf(out, "%s%ld", sign, one);
            sign = ", ";
        }
        at = end;
    }
    if (prepared)
        buf_printf(out, "%sa prepared transaction", *sign == ',' ? " and " : "");
    else if (*sign != ',')
        buf_str(out, "others");
}

int
health_xid_alarm(const struct health_server *s)
{
    if ((double)s->xid_age >= FREEZE_BAD)
        return 2;
    return s->freeze_max > 0 && (double)s->xid_age >= FREEZE_LATE * (double)s->freeze_max;
}

int64_t
health_open_ms(const struct health *h, const struct health_session *s)
{
    return s->xact_ms == FIELD_NULL || h->now_ms < s->xact_ms ? 0 : h->now_ms - s->xact_ms;
}

bool
health_is_idle(const struct health_session *s)
{
    return !strncmp(s->state, "idle in transaction", 19);
}

/* It goes far back in ids, or is open so long that nothing else matters in a quiet database. */
static bool
is_worth_a_word(const struct health *h, const struct health_session *s)
{
    int64_t ms = health_open_ms(h, s);

    if (s->held == FIELD_NULL)
        return false;
    if (s->held >= HELD_XIDS && (s->xact_ms == FIELD_NULL || ms >= HELD_MS))
        return true;
    return ms >= (health_is_idle(s) ? HEALTH_IDLE_MS : HEALTH_LONG_MS);
}

const struct health_session *
health_holder(const struct health *h)
{
    const struct health_session *most = NULL;

    for (int i = 0; i < h->nsessions; i++) {
        const struct health_session *s = &h->sessions[i];
        if (is_worth_a_word(h, s) &&
            (!most || s->held > most->held ||
             (s->held == most->held && health_open_ms(h, s) > health_open_ms(h, most))))
            most = s;
    }
    return most;
}

int64_t
health_held_rows(const struct health *h)
{
    int64_t sum = 0;

    for (int i = 0; i < h->ntables; i++)
        sum += health_known(h->tables[i].dead);
    return sum;
}
