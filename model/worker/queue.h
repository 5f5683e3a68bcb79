/* The core queue module's C interface: push, claim, extend, complete, fail, asynchronous over one
 * struct db. Every call mirrors the SQL function of the same name (sql/core), which holds the
 * rules. All answers come from the loop; arrays in an answer live until the callback returns. */
#ifndef MODEL_WORKER_QUEUE_H
#define MODEL_WORKER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/db/db.h"

#define QUEUE_PROTOCOL 1 /* of the SQL functions this code speaks */
#define QUEUE_ID_LEN 36  /* a uuid as text, without the NUL */

struct queue;
/* schema: where the module is installed, e.g. "queues". The db is borrowed; NULL when the schema
 * can't be a name. */
struct queue *queue_new(struct db *db, const char *schema, struct err *e);
/* When no call is out: after db_free, or after the last answer. */
void queue_free(struct queue *q);
/* How long the next calls wait for a connection: -1 = for ever (default), 0 = not at all. */
void queue_wait(struct queue *q, int wait_ms);
/* Inside a callback with an error: the connection broke, and the call may have happened. */
bool queue_in_doubt(const struct queue *q);

/* A version 7 uuid (RFC 9562) as text from the wall clock and libuuid's random bytes. */
void queue_make_id(char out[static QUEUE_ID_LEN + 1]);

struct queue_push {
    char id[QUEUE_ID_LEN + 1]; /* "" = queue_push makes one */
    const char *queue;
    const char *kind;    /* NULL = "" */
    const char *payload; /* JSON, or bytes when type is set; NULL = no payload */
    size_t payload_len;
    const char *type;       /* NULL = payload is JSON; else its media type: stored as bytes */
    const char *unique_key; /* NULL = none */
    const char
        *concurrency_key;     /* few jobs of it at a time (queue_config.max_per_key); NULL = none */
    const char *run_after;    /* timestamp with time zone as text; NULL = now */
    const char *expires_at;   /* not after: then it ends as cancelled; NULL = never */
    int64_t expires_in_ms;    /* 0 = never; counted by the server's clock */
    int64_t delay_ms;         /* 0 = none; counted by the server's clock */
    int64_t run_timeout_ms;   /* 0 = the queue's */
    int64_t lease_timeout_ms; /* 0 = the queue's */
    int priority;             /* 0 (soonest) to 9, -1 = default */
    int max_tries;            /* 0 = the queue's */
    bool check_id;            /* id is the caller's own: also look among finished jobs */
};
struct queue_pushed {
    char id[QUEUE_ID_LEN + 1];
    bool is_new; /* false: an unfinished job had this id or unique key already; `id` is the id of
                    that job */
};
/* Says what the server would refuse, before anything is sent: names, id, sizes. */
bool queue_push_check(const struct queue_push *job, struct err *e)
    __attribute__((warn_unused_result));
typedef void queue_push_fn(void *ctx, const struct err *e, const struct queue_pushed *jobs, int n);
/* Pushes all n jobs in one statement: all or none. After a lost answer it sends the statement
 * again; because of the ids the jobs are pushed once. */
void queue_push(struct queue *q, const struct queue_push *jobs, int n, queue_push_fn *fn,
                void *ctx);
/* After a push that ended in doubt: asks whether the server has the first job of the push, finished
 * or not. If it has this job, it has all of them. To ask, it pushes the same id and rolls back,
 * because a worker's role may do nothing else. If the first push still runs, the answer comes when
 * it has ended. */
typedef void queue_there_fn(void *ctx, const struct err *e, bool is_there);
void queue_ask_doubtful(struct queue *q, queue_there_fn *fn, void *ctx);

struct queue_job {
    int64_t lease, seq;
    int version;
    char id[QUEUE_ID_LEN + 1];
    const char *queue, *kind;
    const char *payload; /* JSON text or bytes; NULL = none */
    size_t payload_len;
    const char *type; /* NULL = JSON */
    int priority, try_, max_tries;
    int64_t lease_until_ms; /* since 1970, the server's clock */
    int64_t lease_ms;       /* lease length that was granted */
    int64_t run_timeout_ms; /* 0 = none */
};
typedef void queue_claim_fn(void *ctx, const struct err *e, const struct queue_job *jobs, int n);
struct queue_claim {
    const char *node;
    int n;
    int64_t timeout_ms;        /* 0 = the job's, the queue's or the default */
    const char *const *queues; /* NULL = all */
    int nqueues;
    bool start; /* all jobs of the answer count as started; if false, name those that start in
                   queue_extend */
};
void queue_claim(struct queue *q, const struct queue_claim *c, queue_claim_fn *fn, void *ctx);

struct queue_sleep { /* a claim found nothing */
    int slot;        /* the slot in which this session waits now; below 0 = none: ask again */
    int wait_ms;     /* ask again after that long, unless woken by a NOTIFY (db_on_notify) */
};
/* s: NULL when there are jobs. */
typedef void queue_sleep_fn(void *ctx, const struct err *e, const struct queue_job *jobs, int n,
                            const struct queue_sleep *s);
/* A claim for a worker that has nothing to do. If there is no job, the session waits in a slot
 * until the next call. slot: the slot of the last answer on this connection, -1 = none. wait: false
 * = do not wait in a slot (polling). The function assumes that all advisory locks of the session
 * are its own. */
void queue_claim_or_wait(struct queue *q, const struct queue_claim *c, bool wait, int slot,
                         queue_sleep_fn *fn, void *ctx);

struct queue_token { /* the right to answer for one job */
    int64_t lease, seq;
    int version;
};
enum queue_outcome {
    QUEUE_DONE,
    QUEUE_RETRY,
    QUEUE_FAILED,
    QUEUE_CANCELLED,
    QUEUE_GIVEN_BACK,
    QUEUE_EXTENDED,
    QUEUE_LOST,
    QUEUE_GONE
};
struct queue_answer {
    int64_t lease, seq;
    enum queue_outcome outcome;
    int64_t lease_until_ms; /* extend only */
    int64_t lease_ms;       /* extend only: what is left of the lease, by the server's clock */
    bool cancel_asked;      /* extend only: an operator wants this job ended */
};
typedef void queue_answer_fn(void *ctx, const struct err *e, const struct queue_answer *a, int n);

struct queue_done {
    struct queue_token token;
    int64_t started_ms; /* since 1970, 0 = unknown */
    const void *result; /* NULL = none */
    size_t result_len;
};
void queue_complete(struct queue *q, const char *node, const struct queue_done *jobs, int n,
                    queue_answer_fn *fn, void *ctx);
typedef void queue_both_fn(void *ctx, const struct err *e, const struct queue_answer *a, int n,
                           const struct queue_job *jobs, int njobs);
/* queue_complete and queue_claim in one transaction and one round trip. */
void queue_complete_and_claim(struct queue *q, const struct queue_done *done, int n,
                              const struct queue_claim *c, queue_both_fn *fn, void *ctx);
struct queue_failure {
    struct queue_token token;
    int64_t started_ms;
    const char *error, *trace; /* NUL-terminated; trace may be NULL */
    const char *outcome;       /* "failed", "timeout", "cancelled"; NULL = "failed" */
    int64_t retry_in_ms;       /* -1 = the queue's back-off */
    bool final;                /* no more tries */
};
void queue_fail(struct queue *q, const char *node, const struct queue_failure *jobs, int n,
                queue_answer_fn *fn, void *ctx);
struct queue_extend {
    const struct queue_token *jobs; /* unfinished jobs that this node holds */
    int n;
    const int64_t *started; /* seqs that have been started, for the crash count */
    int nstarted;
    int64_t by_ms;
};
void queue_extend(struct queue *q, const char *node, const struct queue_extend *x,
                  queue_answer_fn *fn, void *ctx);
void queue_give_back(struct queue *q, const char *node, const struct queue_token *jobs, int n,
                     queue_answer_fn *fn, void *ctx);

/* --- the worker process and the scheduler --------------------------------------------------- */
struct queue_node {
    const char *name, *session; /* session: a uuid made by the process */
    const char *host, *version;
    int pid, slots;
    const char *const *queues; /* NULL = all */
    int nqueues;
};
/* text: node_beat's state ("up", "draining", "gone"), else "". */
typedef void queue_node_fn(void *ctx, const struct err *e, const char *text);
/* Registers the process. SQLSTATE QT002: a live process has the name; QT003: protocol. */
void queue_node_start(struct queue *q, const struct queue_node *node, queue_node_fn *fn, void *ctx);
void queue_node_beat(struct queue *q, const struct queue_node *node, queue_node_fn *fn, void *ctx);
/* In the callback of the two above: the server's clock when it answered, since 1970; 0 = unknown.
 */
int64_t queue_server_ms(const struct queue *q);
/* By how many ms this machine's clock is ahead of the server's; below 0 = behind. text: "". */
void queue_node_clock(struct queue *q, const struct queue_node *node, int64_t ahead_ms,
                      queue_node_fn *fn, void *ctx);
void queue_node_stop(struct queue *q, const struct queue_node *node, queue_node_fn *fn, void *ctx);

struct queue_sleeper {          /* a worker that has nothing to do, or a scheduler */
    const char *node, *session; /* of a scheduler: its holder, NULL */
    int64_t most_ms;
    int slot;          /* the slot of the last claim */
    bool is_listening; /* the last answer on this connection was "listens" or a number */
};
/* text: the number of ms for which the session may send nothing unless a NOTIFY comes; or the
 * reason why it may not sleep. */
void queue_fall_asleep(struct queue *q, const struct queue_sleeper *who, queue_node_fn *fn,
                       void *ctx);

/* Call it after a claim whose answer was lost. Gives back every lease of the node that is not among
 * these n; the tries do not count. text: how many jobs. */
void queue_keep_only(struct queue *q, const struct queue_node *node, const int64_t *leases, int n,
                     queue_node_fn *fn, void *ctx);
/* text: how many jobs of these queues (NULL = all) are ready and not running. Paused queues do not
 * count. */
void queue_backlog(struct queue *q, const char *const *queues, int n, queue_node_fn *fn, void *ctx);

struct queue_step { /* what a scheduling step did */
    bool active;    /* this holder is the scheduler */
    int cut, promoted, stolen;
    int wait_ms; /* until the next step */
    int look_ms; /* call queue_is_new after this time; if it is not less than wait_ms, the next
                    step comes first */
    bool late;   /* a worker waits for a push, but has not taken a job that was pushed */
    bool fold;   /* queue_fold is due */
    bool waits;  /* a NOTIFY (db_on_notify) ends the wait early */
};
typedef void queue_step_fn(void *ctx, const struct err *e, const struct queue_step *step);
struct queue_stepper { /* who asks for a step */
    const char *holder;
    int64_t quiet_ms;  /* time since a step last did something or asked for a short wait. After
                          one second this session may wait in a slot, as an idle worker does.
                          After two seconds there is one step a second */
    bool is_listening; /* an earlier step on this connection waited */
    int patience_ms; /* how long the server may be silent before the step is cancelled; 0 = as long
                        as with any other call */
};
void queue_schedule(struct queue *q, const struct queue_stepper *who, queue_step_fn *fn, void *ctx);
/* Call it between steps. text: "1" = a step would find something; "0" = it would not. */
void queue_is_new(struct queue *q, queue_node_fn *fn, void *ctx);
/* Wakes up to n workers that wait, for example when this worker has left slot 0. text: "". */
void queue_wake(struct queue *q, int n, queue_node_fn *fn, void *ctx);
/* Lets another scheduler take over at once. */
void queue_schedule_stop(struct queue *q, const char *holder, queue_node_fn *fn, void *ctx);
/* For a step that was refused. text: the transaction that holds the scheduler's row, in words; "" =
 * another scheduler is active. */
void queue_schedule_holder(struct queue *q, queue_node_fn *fn, void *ctx);
/* Folds the counters while steps go on. text: "1" = the counters were folded; "0" = they were not.
 */
void queue_fold(struct queue *q, queue_node_fn *fn, void *ctx);
/* Minutes and checks of the counters, which may take seconds. text: ms until the next call. */
void queue_keep_books(struct queue *q, queue_node_fn *fn, void *ctx);

/* The text of a file in sql/client with the schema's name in it; the caller frees. */
bool queue_client_sql(const char *file, const char *schema, char **sql, struct err *e)
    __attribute__((warn_unused_result));

#endif
