/* Database health as the server answers it: the rows of sql/console/health_*.sql. Strings are
 * foreign text, borrowed as in model/adapter/record.h. */
#ifndef MODEL_ADAPTER_HEALTH_ROWS_H
#define MODEL_ADAPTER_HEALTH_ROWS_H

#include <stdint.h>

#include "model/adapter/record.h"

struct health_server {
    int max_connections, connections, active, idle_in_txn, blocked;
    int hidden;                             /* sessions whose state this login may not see */
    int64_t longest_ms;                     /* since when the longest statement runs */
    int64_t blks_hit, blks_read, wal_bytes; /* cumulative */
    int standbys, standby;                  /* standby: 1 = this server is one */
    int64_t lag_ms, lag_bytes;
    int64_t xid_age, freeze_max;
    const char *xid_database;
    int autovacuum; /* it is on */
    int workers, max_workers;
    int sees_all, signals_all;
    const char *login;
};

struct health_session {    /* a transaction, or anything else that keeps dead rows from being
                              removed */
    const char *id, *kind; /* session, place, autovacuum, walsender, background, prepared, slot */
    int pid;               /* INT_MIN = none */
    const char *user, *app, *client, *state, *query, *waits, *blocked_by; /* pids */
    int64_t xact_ms, since_ms;
    int64_t held; /* how many transaction ids it holds back; FIELD_NULL = none */
    int wraparound;
    int holds_turn;           /* it holds the scheduler's row */
    const char *guard, *deny; /* for a signal to it; deny: why it can't be sent, "" = it can */
};

struct health_vacuum {
    int pid;
    const char *name, *phase;
    int64_t total_bytes, started_ms;
    double done; /* 0 to 1 */
    int automatic, wraparound;
};

struct health_table {
    const char *name;
    int parts, partitioned;
    int64_t live, dead, size, index_size;
    double hot; /* 0 to 1 */
    int64_t vacuumed_ms, analyzed_ms;
    int64_t next_dead, worst_dead; /* of the table, or of its partition `worst` */
    const char *worst, *largest;
    int64_t largest_size;
    int vacuum_off;
};

extern const struct record record_health_server, record_health_session, record_health_vacuum,
    record_health_table;

#endif
