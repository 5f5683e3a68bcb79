/* One asynchronous connection. A call is one pipeline: BEGIN, session settings by set_config(...,
 * true), the statements, COMMIT; its reply comes through a callback from the loop, exactly once,
 * also when the connection breaks. Calls are sent in the order they were asked, one pipeline in
 * flight. The connection opens itself, reconnects for ever with back-off (0.25 s doubled up to
 * 10 s, 20 % jitter), resolves names anew off the loop at each attempt, and watches for silence
 * (3 s: asks the server to cancel; 8 s: drops the socket). Works through a transaction pooler:
 * unnamed statements, nothing that outlives a transaction. */
#ifndef MODEL_DB_H
#define MODEL_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/err.h"
#include "model/loop.h"
#include "model/rows.h"

enum db_state {
    DB_OFF,        /* never asked to connect, or stopped for good after ERR_AUTH */
    DB_RESOLVING,  /* the helper thread looks a host name up */
    DB_CONNECTING, /* PQconnectPoll says what to wait for */
    DB_READY,      /* connected, nothing in flight */
    DB_BUSY,       /* a pipeline is in flight */
    DB_BACKOFF     /* waiting for the next attempt */
};

struct db_options {
    const char *conninfo;      /* keywords, URI, or "" for libpq's environment; copied */
    const char *dbname;        /* -d, or NULL; may itself be a conninfo */
    const char *app_name;      /* application_name */
    const char *schema;        /* search_path of every transaction: schema, pg_temp; NULL = untouched */
    int statement_timeout_ms;  /* 0 = none */
    int lock_timeout_ms;       /* 0 = none */
    int stall_warn_ms;         /* silence while busy: cancel; 0 = 3000 */
    int stall_drop_ms;         /* silence while busy: drop the socket; 0 = 8000, -1 = never */
    bool read_only;            /* BEGIN READ ONLY in every call */
    bool once;                 /* no reconnecting: the first failure is the answer (verbs) */
};

struct db_param {
    const char *value; /* NULL = SQL NULL; text format unless binary */
    int len;           /* used when binary */
    bool binary;       /* bytes as they are (bytea) */
};

struct db_stmt {
    const char *sql; /* one statement with $n; borrowed until the reply */
    int nparams;
    const struct db_param *params; /* copied when asked */
};

struct db_call {
    const struct db_stmt *stmts;
    int n;
    bool bare;   /* no BEGIN/COMMIT around: each call is its own implicit transaction, one round trip
                    and no settings; search_path is then the caller's business (qualified names) */
    bool script; /* stmts[0].sql is a script of many statements, sent by the simple protocol inside
                    the surrounding transaction; params must be empty */
    bool dry;    /* ROLLBACK instead of COMMIT */
    int statement_timeout_ms; /* 0 = the connection's */
};

struct db_reply {
    struct err err;          /* kind ERR_NONE = every statement ran and COMMIT was confirmed */
    int failed_at;           /* index of the statement that failed, -1 = none or not a statement's */
    bool in_doubt;           /* the connection broke after COMMIT was sent: it may have happened */
    struct result **results; /* one a statement (NULL where it did not run); freed after the
                                callback unless taken with db_take */
    int n;
    int64_t took_us;
};

typedef void db_reply_fn(void *ctx, struct db_reply *reply);

struct db;
struct db *db_new(struct loop *l, const struct db_options *o);
void db_free(struct db *db); /* pending calls are answered with ERR_CONN first */

/* Queues a call. Connects when needed. A call that waits for a connection is answered with ERR_CONN
 * after wait_ms (0 = at once when the connection is down, -1 = waits for ever). */
void db_ask(struct db *db, const struct db_call *call, int wait_ms, db_reply_fn *fn, void *ctx);
/* Takes result i out of a reply: the caller owns it (result_free). */
struct result *db_take(struct db_reply *reply, int i);

/* Asks the server to cancel what runs, by the helper thread; the reply comes as ERR_TIMEOUT. */
void db_cancel(struct db *db);
void db_retry_now(struct db *db); /* ends a back-off */

enum db_state db_state(const struct db *db);
const struct err *db_last_error(const struct db *db); /* why it is not ready; kind NONE if it is */
int64_t db_next_try_ms(const struct db *db);          /* monotonic; 0 unless DB_BACKOFF */
int64_t db_silent_ms(const struct db *db);            /* since the last byte while busy, else 0 */
int db_tries(const struct db *db);                    /* failed attempts since the last success */
/* Where we are: "user@host:port/dbname" parts for the header; "" while unknown. */
const char *db_host(const struct db *db);
const char *db_name(const struct db *db);
const char *db_user(const struct db *db);
int db_server_version(const struct db *db); /* 150018, 0 while unknown */

/* The synchronous face for verbs: asks and turns the loop until the reply is there; the reply is the
 * caller's: results freed by db_reply_done. False = reply->err says why (copied into *e). */
bool db_do(struct db *db, struct loop *l, const struct db_call *call, struct db_reply *reply,
           struct err *e) __attribute__((warn_unused_result));
void db_reply_done(struct db_reply *reply);

#endif
