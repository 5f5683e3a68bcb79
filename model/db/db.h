/* One asynchronous connection. A call is one pipeline: BEGIN, session settings by set_config(...,
 * true), the statements, COMMIT; its reply comes through a callback from the loop, exactly once,
 * also when the connection breaks. Calls are sent in the order they were asked, one pipeline in
 * flight. The connection opens itself, reconnects for ever with back-off (0.25 s doubled up to
 * 4 s, 20 % jitter), resolves names anew off the loop at each attempt, and tells a slow server from
 * a dead line (db_stall.c). Works through a transaction pooler: there unnamed statements, and
 * nothing that outlives a transaction. Elsewhere isolation level and time limits that the database
 * or the role has set don't count for the session (db_pipeline.c, add_session_settings). */
#ifndef MODEL_DB_DB_H
#define MODEL_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/db/rows.h"

/* The states of a connection, and what ends each:
 *   OFF          the first call
 *   RESOLVING    the last look-up, or its deadline
 *   CONNECTING   the server accepts us (READY), or a failure
 *   READY        a call, or the server closes the connection
 *   BUSY         the end of the pipeline, after a ROLLBACK if one is due; or of the connection
 *   BACKOFF      its timer, or db_retry_now
 * Every failure leads to BACKOFF, or to OFF if `once` is set or after ERR_AUTH (but see
 * `unattended`). */
enum db_state {
    DB_OFF,        /* never asked to connect, or stopped after an ERR_AUTH (db.c: is_final) */
    DB_RESOLVING,  /* the helper thread looks a host name up */
    DB_CONNECTING, /* PQconnectPoll says what to wait for */
    DB_READY,      /* connected, nothing in flight */
    DB_BUSY,       /* a pipeline is in flight */
    DB_BACKOFF     /* waiting for the next attempt */
};

struct db_options {
    const char *conninfo; /* keywords, URI, or "" for libpq's environment; copied */
    const char *dbname;   /* -d, or NULL; may itself be a conninfo */
    const char *app_name; /* application_name */
    const char *schema;   /* search_path of every transaction: schema, pg_temp; NULL = pg_catalog */
    int statement_timeout_ms; /* 0 = none */
    int lock_timeout_ms;      /* 0 = none */
    int stall_warn_ms;        /* no answer for so long: cancel; 0 = 10000, -1 = never */
    int stall_drop_ms;        /* and so long: drop the socket; 0 = 15000, -1 = never */
    int connect_ms;           /* an address that accepts us and does not answer; 0 = 10000, or
                                 60000 if there is no other address */
    bool read_only;           /* BEGIN READ ONLY in every call, one snapshot for all statements */
    bool once; /* never reconnects by itself: the first failure is the answer to all that waits; a
                  later call connects anew (for verbs) */
    bool unattended; /* no person can act on a refusal (ERR_AUTH, or by the gate): it is tried again
                        each 4 s, like a server that is away */
    const struct db_gate *gate; /* asked first on each new connection, or NULL; borrowed */
};

struct db_param {
    const char *value; /* NULL = SQL NULL; text format unless binary */
    int len;           /* used when binary */
    bool binary;       /* bytes as they are (bytea) */
};

/* An array as a parameter; borrows its bytes. */
struct array;
struct db_param db_array(struct array *a);

struct db_stmt {
    const char *sql; /* one statement with $n; borrowed until the reply */
    int nparams;
    const struct db_param *params; /* copied when asked */
    const char *name;              /* errors show it when a time limit ends the statement. NULL =
                                      the name of the file in sql/console, if the text is from
                                      there; borrowed */
};

/* After each connect the server, database or owner at the other end may be another one. The gate
 * checks that: it is one statement in a transaction of its own, before anything else runs. If
 * `passes` says no, every waiting call is answered with the gate's error (usually ERR_DENIED) and
 * the connection stops for good. If it says no without an error, `more` is asked, once. db_keep()
 * takes its answer, too. */
struct db_gate {
    struct db_stmt stmt;
    bool (*passes)(void *ctx, struct result *r, struct err *e); /* takes r over */
    void *ctx;
    const struct db_stmt *more; /* or NULL */
};

/* The guard runs first in the transaction of a call. Its error 22P02 means that nothing else may
 * run in this transaction: the reply is then ERR_DENIED with `is_guarded`. */
struct db_guard {
    /* Of a read-only connection, of one for a call with looks_hard, of any other connection. */
    struct db_stmt looks, looks_hard, changes;
    struct db_stmt more; /* if its text is not NULL: after an error of looks_hard or changes the
                            call is sent again, with this guard */
};

struct db_call {
    const struct db_stmt *stmts;
    int n;
    bool bare;  /* no BEGIN/COMMIT around: each call is its own implicit transaction, one round trip
                   and no settings but those of the session. It runs in the login's search_path, so
                   it must name the schema of each function, type and operator (a session's SET
                   would outlive it in a pooler) */
    bool quick; /* no BEGIN/COMMIT either, but the settings: one implicit transaction. Each
                   statement has a snapshot of its own. For short questions, where two statements
                   more would be most of the work */
    bool script; /* each stmts[i] without parameters may be a script of many statements, sent by the
                    simple protocol inside the surrounding transaction; one round trip each; its
                    result is that of the script's last statement. Scripts must not end it. */
    bool dry;    /* ROLLBACK instead of COMMIT */
    int statement_timeout_ms; /* 0 = the connection's; a longer one lengthens the stall limits */
    const char *timezone; /* for this transaction; NULL = the login's; borrowed until the reply */
    const char *search_path; /* quoted as SET takes it; NULL = the connection's; borrowed too */
    const struct db_guard *guard; /* NULL = none; not for bare calls and scripts */
    bool looks_hard;              /* a call that only reads: use that statement of the guard */
};

struct db_reply {
    struct err err;  /* kind ERR_NONE = every statement ran and COMMIT was confirmed */
    int failed_at;   /* index of the statement that failed, -1 = none or not a statement's */
    bool in_doubt;   /* the connection broke after COMMIT was sent: it may have happened */
    bool is_guarded; /* the guard stopped it: no statement ran */
    struct result **results; /* one a statement (NULL where it did not run); freed after the
                                callback unless taken with db_take */
    int n;
    int64_t took_us;
};

typedef void db_reply_fn(void *ctx, struct db_reply *reply);

struct db;
/* Does not connect yet. A conninfo that can't be read is the answer to every call (ERR_USAGE). */
struct db *db_new(struct loop *l, const struct db_options *o);
/* Pending calls are answered with ERR_CONN first. May be called from a reply. */
void db_free(struct db *db);

/* Receives everything that the server sends beside its answers (NOTICE, WARNING): the severity in
 * the server's words, and message, detail and hint on one line, untrusted. Without fn they go to
 * the log. fn must not call back into db. */
typedef void db_notice_fn(void *ctx, const char *severity, const char *text);
void db_on_notice(struct db *db, db_notice_fn *fn, void *ctx);
/* Called for each NOTIFY of a channel that this session listens to, between calls. fn may ask. */
typedef void db_notify_fn(void *ctx, const char *channel);
void db_on_notify(struct db *db, db_notify_fn *fn, void *ctx);
/* The process id of the server, as the server reported it; 0 = none. Behind a pooler the id is
 * invented. */
int db_backend_pid(const struct db *db);
/* r: the answer to sql/console/server.sql. If its backend_pid is the process that greeted us, no
 * pooler stands between: then the session keeps the texts that stand before each call, guards and
 * settings, as prepared statements. */
void db_keep(struct db *db, const struct result *r);
/* True if the server has confirmed that process, so no pooler stands between. Then a statement that
 * is sent twice in a row is parsed once, until db_own_session(false) or a new connection. If its
 * columns have changed meanwhile (an upgrade), it fails once with SQLSTATE 0A000. */
void db_own_session(struct db *db, bool is_own);
/* Called when the state has changed or a connection attempt has failed; may call anything. */
void db_on_state(struct db *db, void (*fn)(void *ctx), void *ctx);

/* The server wants a password and none was given: last_error is ERR_AUTH and says how to give one.
 * One way is to ask the user and to pass the password here (it is copied, and wiped by db_free).
 * Then a call or db_retry_now tries again. */
bool db_needs_password(const struct db *db);
/* A password was given by TCP, and a server that asks for it in clear text would get it: neither
 * require_auth, channel_binding nor a checked certificate prevents that. libpq does not say how it
 * was given. */
bool db_bares_password(const struct db *db);
void db_password(struct db *db, const char *password);

/* Queues a call, and connects if needed. The reply never comes before this returns. A call that
 * waits for a connection, or for the gate, is answered with ERR_CONN after wait_ms (0 = at once if
 * the connection is down, -1 = waits for ever). */
void db_ask(struct db *db, const struct db_call *call, int wait_ms, db_reply_fn *fn, void *ctx);
/* Takes result i out of a reply: the caller owns it (result_free). */
struct result *db_take(struct db_reply *reply, int i);

/* Connections to one server that take turns: at most `most` of them connect or have a call under
 * way, the others wait, the first that came first. All at once would keep a slow server so busy
 * that none of them gets an answer in time. A turn of 30 s no longer counts, because a connection
 * that hangs must not keep the others waiting. */
struct db_turns;
struct db_turns *db_turns_new(struct loop *l, int most);
void db_turns_free(struct db_turns *ts); /* after its connections */
/* NULL = from now on it is always this connection's turn. */
void db_set_turns(struct db *db, struct db_turns *ts);
/* Reads which server the configuration names, without connecting: db_host, db_name, db_user. */
void db_find_where(struct db *db);

/* Sets stall_warn_ms and stall_drop_ms. */
void db_be_patient(struct db *db, int warn_ms, int drop_ms);
/* Asks the server to cancel what runs, by the helper thread; the reply comes as ERR_TIMEOUT. */
void db_cancel(struct db *db);
/* Call it when the user looks at the screen or types. If the server can't be reached, or refused
 * us, the connection tries again at once, then each second for two minutes. It does not try while a
 * password must be typed first. */
void db_attend(struct db *db);
void db_retry_now(struct db *db); /* ends a back-off, or a stop after ERR_AUTH */
/* Leaves the server and connects anew. The result of the call on the wire is unknown; waiting calls
 * go to the new connection. */
void db_move(struct db *db, const char *why);

enum db_state db_state(const struct db *db);
const struct err *db_last_error(const struct db *db); /* why it is not ready; kind NONE if it is */
int64_t db_next_try_ms(const struct db *db);          /* monotonic; 0 unless DB_BACKOFF */
/* Since the last byte while busy, since the attempt began while connecting; else 0. */
int64_t db_silent_ms(const struct db *db);
/* A limit for a statement that takes at most ms on a server with time to spare: more on a slow one,
 * by what its last answer took, a minute at most. */
int db_limit_ms(const struct db *db, int ms);
int db_tries(const struct db *db); /* failed attempts since the last success */
/* The server, for the header: "db1", "db1:6432" (port only if it is not 5432), "local" for a unix
 * socket. While not connected: the one that we try. "" = not known yet. Valid until the next call.
 */
const char *db_host(const struct db *db);
const char *db_name(const struct db *db);
const char *db_user(const struct db *db);
bool db_has_others(const struct db *db); /* the last connection had several hosts to choose from */

/* A connection string: a URI, or one that begins with a word that libpq knows and "=". */
bool db_is_conninfo(const char *text);
/* The value of this keyword ("dbname") in a string or URI; NULL = not given. The caller frees. */
char *db_conninfo_value(const char *conninfo, const char *word);
/* A copy of the connection string. If the string does not have the keyword, the copy gets word =
 * value. NULL if the string can't be parsed. The caller frees. */
char *db_conninfo_with(const char *conninfo, const char *word, const char *value);

/* The synchronous form, for verbs: asks, and turns the loop until the reply has come. The caller
 * owns the reply and frees its results with db_reply_done. False = reply->err says why (also copied
 * into *e). */
/* Without `once`, db_do waits for the connection for 30 s at most. */
bool db_do(struct db *db, struct loop *l, const struct db_call *call, struct db_reply *reply,
           struct err *e) __attribute__((warn_unused_result));
void db_reply_done(struct db_reply *reply);

/* One statement (at most LEND_PARAMS parameters) on the caller's own connection; waits for it. */
enum { LEND_PARAMS = 16 };
struct pg_conn;
bool db_lend(struct pg_conn *conn, const struct db_stmt *stmt, struct result **out, struct err *e)
    __attribute__((warn_unused_result));

#endif
