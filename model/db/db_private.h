/* What the files of the connection share. Nobody else includes it. db.c has states and events,
 * db_calls.c the queue and the replies, db_hosts.c and db_connect.c the way to a connection,
 * db_pipeline.c one call on the wire, db_stall.c silence, db_writable.c servers that take no
 * changes, db_error.c the server's words. The rule for all of them: a callback may free the db. So
 * every event starts with db_enter, ends with db_leave, and checks db->is_dead after each callback.
 */
#ifndef MODEL_DB_DB_PRIVATE_H
#define MODEL_DB_DB_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

#include "model/base/offload.h"
#include "model/db/db.h"

enum {
    DEFAULT_WARN_MS = 10000,
    DEFAULT_DROP_MS = 15000,
    CONNECT_MS = 10000,
    SLOW_CONNECT_MS = 60000
};

struct call {
    struct call *next;
    struct db_call what;   /* statements and parameters are our own copies, the SQL is borrowed */
    struct db_stmt *stmts; /* the guard's statements come last, if there is a guard */
    struct db_param *params;
    bool has_guard;
    bool has_more; /* the guard's second statement was not sent yet */
    bool has_path; /* search_path is set behind the guard */
    char *bytes;   /* the parameters' values */
    int64_t size;  /* of statements and parameters */
    int wait_ms;
    int64_t give_up_ms; /* the call fails if there is no connection by then; -1 = waits for ever */
    int64_t sent_us;
    db_reply_fn *fn;
    void *ctx;
    struct db_reply reply;
};

struct calls {
    struct call *first, **end;
};

struct keyword {
    char *name, *value;
};

/* One address to try; host is kept beside it for TLS and the password file. */
struct db_target {
    char *host, *hostaddr, *port;
};

struct host {
    char *name, *addr, *port; /* as configured; addr "" = look it up unless name is a socket */
    char **found;             /* addresses the look-up found */
    int nfound;
    char *problem; /* why the look-up found none */
};

/* The connection attempt under way. */
struct attempt {
    struct host *hosts;
    int nhosts;
    int lookups; /* not answered yet */
    struct db_target *targets;
    int ntargets;
    int at;             /* target that libpq is busy with, -1 = not known yet */
    int timeout_ms;     /* limit for each address; if nobody has set one, only silence counts */
    bool is_total;      /* connect_timeout is set */
    int64_t reached_us; /* when libpq began with the address */
};

/* What libpq is given; a later keyword overrides an earlier one. */
enum { KEYWORDS_MAX = 80 };

struct keywords {
    const char *names[KEYWORDS_MAX + 1], *values[KEYWORDS_MAX + 1];
    int n;
};

enum {
    OUR_STEPS = 4, /* BEGIN, settings, guard, path */
    KEPT_MAX = 8   /* settings have five texts, guards two, paths one */
};

/* A statement of ours, not of a caller, that the session keeps parsed and planned. */
struct kept {
    char *sql;     /* NULL = free */
    bool is_there; /* the server has it */
};

/* How far the call on the wire is. Steps: BEGIN, settings, the statements, COMMIT; bare calls have
 * the statements only. */
struct flight {
    struct call *call; /* NULL = nothing on the wire */
    int step;          /* whose results come next */
    int failed_step;   /* the first that failed, -1 = none */
    bool is_committed; /* COMMIT was confirmed */
    bool is_alone;     /* COMMIT was confirmed, but the server gave up waiting for its standby */
    bool has_word;     /* the transaction wrote its word into the WAL: db->must_replicate */
    bool is_rolling_back;
    bool is_cancelled;              /* stall_timeout has sent a cancel request */
    struct kept *parses[OUR_STEPS]; /* an answer about this one comes before that to the step */
    bool is_forgotten; /* the server does not know a statement that it should have kept */
    int64_t heard_ms;  /* when the last byte moved, in or out */
    int out_left;      /* bytes that the other side has not taken yet, -1 = not asked */
};

/* The place of a connection among those that share a server (db_turns.c). */
struct turn {
    struct db_turns *of; /* NULL = it is always its turn */
    struct db *next;     /* in the list of those that wait, or of those that have a turn */
    int64_t since_ms;    /* it has a turn; 0 = it has none */
    bool waits;
};

/* What was configured, for the whole life of the db (db.c, db_connect.c). */
struct db_conf {
    char *app_name, *schema, *password;
    int statement_timeout_ms, lock_timeout_ms, warn_ms, drop_ms, connect_ms;
    bool read_only, once, unattended;
    struct keyword *keywords; /* of conninfo and dbname */
    int nkeywords;
    struct err err; /* they can't be read */
};

/* When to connect again, and whether (db.c). */
struct db_retry {
    bool is_stopped; /* no attempt before db_retry_now, db_password */
    bool was_up;     /* the server has accepted us before */
    bool wants_password;
    bool is_trusted;               /* the server has accepted the password that was typed */
    int64_t tried_ms, attended_ms; /* the last attempt; when somebody looked; 0 = never */
    struct err last_err;
    int tries;
    int64_t at_ms;
    uint64_t random;
};

/* Whether the server takes changes (db_writable.c). */
struct db_writable {
    bool is_locked;      /* the last server took none */
    bool must_replicate; /* a commit was not confirmed by a standby (is_alone), and no later one was
                            either */
    bool has_others;     /* the attempt that succeeded had more than one address */
    char *attrs;         /* target_session_attrs as configured */
};

/* How fast the line is (db_stall.c). */
struct db_line {
    int64_t lag_us;   /* how long a statement of the last call took */
    int64_t greet_us; /* the shortest time for a few short messages to and fro on this line */
    int64_t byte_ns;  /* the longest time for a byte */
};

/* What the server's session has been asked and keeps (db_pipeline.c, db_connect.c). */
struct db_session {
    int serial; /* number of the connection attempt: shows that an answer of a helper thread is
                   too late */
    const struct db_gate *gate; /* or NULL */
    bool is_past_gate;          /* the gate has passed on this connection */
    bool is_asked_more;         /* the gate's second statement was sent */
    bool has_settings;          /* the session's own settings were sent (add_session_settings) */
    bool is_own;                /* the session is nobody else's (db_own_session) */
    bool is_direct;             /* it was when the gate was asked: it may keep statements */
    bool is_raw;                /* the texts come as they are stored (db_connect.c) */
    struct kept kept[KEPT_MAX];
    char *parsed;     /* if is_own: the text of the server's unnamed statement; NULL = not known */
    struct err fatal; /* what the server said as it hung up */
};

/* What the loop watches for this connection. */
struct db_wait {
    int watch, timer, kick_timer, queue_timer, tls_timer;
    int tls_ms;
};

/* Who is told of what. */
struct db_tell {
    db_notice_fn *notice_fn;
    void *notice_ctx;
    db_notify_fn *notify_fn;
    void *notify_ctx;
    void (*state_fn)(void *ctx);
    void *state_ctx;
    bool is_news; /* state_fn is due */
};

struct db {
    struct loop *loop;
    struct offload *off; /* made when first needed */
    enum db_state state;
    PGconn *conn;
    bool is_cancelling; /* a cancel request for this connection is on its way */
    struct attempt attempt;
    struct calls queue;
    struct flight flight;
    struct turn turn;
    struct db_conf conf;
    struct db_retry retry;
    struct db_writable writable;
    struct db_line line;
    struct db_session session;
    struct db_wait wait;
    struct db_tell tell;
    struct db_where {
        char *host, *name, *user;
    } where;   /* what is connected */
    int depth; /* events under way */
    bool is_dead;
};

/* db.c */
void db_enter(struct db *db);
void db_leave(struct db *db); /* db may be gone afterwards */
void db_kick(struct db *db);  /* soon, from the loop: look at the queue */
void db_set_state(struct db *db, enum db_state state);
/* Sets the one timer of the present state; at_ms 0 = no timer. */
void db_set_timer(struct db *db, int64_t at_ms);
/* The connection or the attempt has ended. Chooses the next state and answers the calls that fail.
 */
void db_broken(struct db *db, const struct err *why);
struct offload *db_offload(struct db *db); /* NULL with errno: no descriptor is free */

/* db_turns.c */
bool turn_take(struct db *db); /* false: db_kick comes when it is its turn */
void turn_end(struct db *db);

/* db_calls.c */
struct call *call_new(const struct db *db, const struct db_call *what); /* copies it */
void call_free(struct call *c);
void call_answer(struct call *c); /* runs the reply, frees the call; db may be gone afterwards */
void calls_init(struct calls *q);
void calls_push(struct calls *q, struct call *c);
struct call *calls_take(struct calls *q); /* NULL = empty */
/* Moves to `out` the calls whose time is up; all when now_ms is -1. */
void calls_expire(struct calls *q, struct calls *out, int64_t now_ms);
void calls_answer(struct calls *q, const struct err *why);

/* db_connect.c */
void connect_config(struct db *db, const char *conninfo, const char *dbname);
void connect_start(struct db *db); /* to RESOLVING or CONNECTING; may end in db_broken */
void connect_begin(struct db *db); /* every look-up is in, or late */
void connect_timeout(struct db *db);
void connect_free(struct db *db); /* frees the configuration */

/* db_hosts.c */
void keywords_base(const struct db *db, struct keywords *k);                /* all but the hosts */
void keywords_add(struct keywords *k, const char *name, const char *value); /* borrowed */
void hosts_find(struct db *db); /* fills the attempt's hosts; reads files only */
/* Calls connect_begin after the last answer. If no descriptor is free, the host has a problem. */
void hosts_look_up(struct db *db, int i);
void options_free(PQconninfoOption *options); /* wipes the password */
bool host_is_socket(const char *name);
bool host_is_numeric(const char *name);
void where_set(char **field, const char *text);
void where_set_host(struct db *db, const char *host, const char *port);
void connect_forget(struct db *db); /* frees the attempt */

/* db_pipeline.c */
bool pipeline_is_open(struct db *db); /* false: the server has hung up, and db_broken was called */
void pipeline_send(struct db *db, struct call *c); /* to BUSY */
void pipeline_go_on(struct db *db, short revents); /* the socket of a READY or BUSY db is ready */
bool pipeline_in_doubt(const struct db *db);       /* if the connection broke now */
int call_limit_ms(const struct db *db, const struct call *c); /* of each statement; 0 = none */
void pipeline_forget(struct db *db);                          /* which statement is parsed */
void pipeline_forget_kept(struct db *db);                     /* a new session keeps nothing */

/* db_stall.c */
void stall_arm(struct db *db);
void stall_timeout(struct db *db);
void stall_sent(struct db *db);                     /* more was sent for the call on the wire */
void stall_greeted(struct db *db, int64_t took_us); /* measures the line: by the greeting, */
void stall_answered(struct db *db, const struct call *c); /* and by each call */
/* The time that a slow line needs for a call, times 1.5, at most a minute; 0 if the line is not
 * slow. */
int stall_line_ms(const struct db *db, const struct call *c);
void stall_cancel(struct db *db);       /* asks the server to cancel, by a helper thread */
void stall_over(struct db *db);         /* the call is over; from now on READY */
void stall_cancel_hangs(struct db *db); /* its cancel request had time enough to end */

/* db_writable.c */
/* Whether the server refused a change because it takes none at present. */
bool writable_refused(const struct db *db, const struct err *e);
void writable_err(const struct db *db, struct err *e); /* puts this cause around the server's
                                                          message */
/* Checks a new session after such a refusal. False = it accepts no changes either; *e says so. */
bool writable_is_up(const struct db *db, struct err *e);
void writable_note(struct db *db); /* a call succeeded */
/* True if target_session_attrs no longer accepts this server, and there are other servers to try.
 */
bool writable_has_left(const struct db *db);
/* What to demand as target_session_attrs in addition to what is configured; NULL = nothing. */
const char *writable_attrs(const struct db *db, int ntargets);

/* db_error.c */
void err_of_result(struct err *e, const PGresult *res);
void err_of_connect(struct err *e, PGconn *conn, const char *secret);
void err_of_conninfo(struct err *e, const char *conninfo, const char *said);
void err_of_break(struct err *e, PGconn *conn);
void err_of_limit(const struct db *db, struct call *c); /* the text names the statement */
void notice_receiver(void *ctx, const PGresult *res);

#endif
