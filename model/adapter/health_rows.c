/* See health_rows.h. */
#include "model/adapter/health_rows.h"

#include <stddef.h>

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
    {"holds_turn", F_BOOL, T(holds_turn), true },
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
