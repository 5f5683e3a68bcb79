/* queuetop: jobs in PostgreSQL, from C or C++. Link with -lqueuetop (pkg-config queuetop).
 *
 * Pushing works on a libpq connection of your own, inside your own transaction: what is rolled back
 * was never pushed. Working is a process: queuetop_worker_run claims jobs, hands each to a
 * callback, extends its leases, delivers the answers and reconnects for ever. Times are in
 * milliseconds. */
#ifndef QUEUETOP_H
#define QUEUETOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pg_conn; /* libpq's PGconn */

struct queuetop_error {
    char sqlstate[6]; /* "" unless the server said it */
    char text[400];
};

/* --- pushing --- */

struct queuetop_push {
    const char *queue;
    const char *kind;       /* NULL = "" */
    const char *payload;    /* JSON, or bytes when type is set; NULL = none */
    size_t payload_len;     /* 0 = it ends with a NUL */
    const char *type;       /* NULL = payload is JSON; else its media type: kept as bytes */
    const char *unique_key; /* NULL = none */
    const char *run_after;  /* a timestamp with time zone as text; NULL = now */
    int64_t delay_ms;       /* counted by the server's clock; 0 = none */
    int64_t run_timeout_ms; /* 0 = the queue's */
    int priority;           /* 0 (soonest) to 9; queuetop_job sets the default, 5 */
    int max_tries;          /* 0 = the queue's */
};
/* A job with everything else at its default. */
struct queuetop_push queuetop_job(const char *queue, const char *payload);
/* Pushes one job on your connection, in the transaction that is open there (or one of its own), and
 * waits for the answer. 1 = pushed; 0 = an unfinished job with this unique key was there; -1 = *e
 * says why not (the transaction is aborted then, as after any error of the server). id: 37 bytes
 * for the job's uuid, or NULL. schema: where the queue is installed, NULL = "queues". Its function
 * is called with the rights of your login, whoever owns it: name a schema whose owner you trust. */
int queuetop_push(struct pg_conn *conn, const char *schema, const struct queuetop_push *job,
                  char *id, struct queuetop_error *e);

/* --- working --- */

struct queuetop_worker;
struct queuetop_run; /* one running job */

struct queuetop_task { /* what the callback is given; valid until it returns */
    const char *id, *queue, *kind;
    const char *payload; /* NULL = none; JSON as text, or bytes */
    size_t payload_len;
    const char *type; /* NULL = JSON */
    int priority;
    int try_number, max_tries; /* 1 = the first */
    struct queuetop_run *run;  /* for the calls below */
};
enum queuetop_outcome {
    QUEUETOP_DONE,
    QUEUETOP_FAILED, /* tried again later, by the queue's back-off, if tries are left */
    QUEUETOP_FINAL,  /* failed, and no more tries */
    QUEUETOP_LATER   /* not finished yet: queuetop_finish follows */
};
typedef enum queuetop_outcome queuetop_fn(void *ctx, const struct queuetop_task *task);

/* In the callback, or before queuetop_finish: copied. */
void queuetop_result(struct queuetop_run *run, const void *bytes, size_t len);
void queuetop_problem(struct queuetop_run *run, const char *error, const char *trace);
/* True if the work is no longer wanted: an operator cancelled it, its time is over, or its lease is
 * lost. */
bool queuetop_unwanted(const struct queuetop_run *run);
/* Answers for a job whose callback returned QUEUETOP_LATER; from the thread of the worker, also in
 * the callback of another job. If the callback has not returned yet, the answer waits for that. */
void queuetop_finish(struct queuetop_run *run, enum queuetop_outcome outcome);

struct queuetop_options {
    const char *conninfo;      /* as for libpq; NULL = its environment */
    const char *schema;        /* NULL = "queues" */
    const char *trust_owner;   /* roles, separated by commas, that may own the schema and its
                                  objects. The login, its roles, the database's owner and
                                  superusers may always. NULL = no other. Code of another owner
                                  never runs */
    const char *node;          /* this process's name; NULL = host-pid-random */
    const char *const *queues; /* NULL = all */
    int nqueues;
    int jobs;            /* how many at a time; 0 = 1 */
    int threads;         /* 0: callbacks run in the worker's loop and must not block (return
                            QUEUETOP_LATER instead). Else callbacks run in this number of threads
                            and may block */
    int ahead;           /* how many short jobs it may claim ahead; 0 = 500, -1 = none */
    int64_t timeout_ms;  /* of a lease; 0 = the job's, the queue's or 60 s */
    int64_t max_idle_ms; /* ends after that long without a job; 0 = never */
    int64_t sleep_ms;    /* while nothing is due, the worker sends nothing to the server for this
                            time at most: 1 s to a day; not with drain or poll. 0 = it looks once
                            a second */
    bool drain;          /* ends when nothing is ready */
    bool poll;           /* never wait for a NOTIFY */
    bool signals;        /* SIGTERM, SIGINT and SIGHUP end it (the mask of this thread changes);
                            SIGINT and SIGHUP do not if they are ignored when it starts to run */
    queuetop_fn *fn;
    void *ctx;
};
/* Copies all that o points to, except ctx. NULL: *e says why; also if fewer threads can be started
 * than that, or no descriptor is free. */
struct queuetop_worker *queuetop_worker_new(const struct queuetop_options *o,
                                            struct queuetop_error *e);
/* Works until the worker is drained, idle or stopped, or a signal ends it: true. False: it can't go
 * on; *e says why. A worker runs once: a second call returns false. */
bool queuetop_worker_run(struct queuetop_worker *w, struct queuetop_error *e);
/* Finishes what runs, then ends. From any thread, and from a signal handler. */
void queuetop_worker_stop(struct queuetop_worker *w);
void queuetop_worker_free(struct queuetop_worker *w);

struct queuetop_counts {
    int64_t started, done, failed, lost;
};
struct queuetop_counts queuetop_worker_counts(const struct queuetop_worker *w);

/* For callbacks that return QUEUETOP_LATER: the worker's loop watches a descriptor (events as for
 * poll) and calls fn. Returns a handle. Call it only in the thread of the worker. */
int queuetop_watch(struct queuetop_worker *w, int fd, short events,
                   void (*fn)(void *ctx, short revents), void *ctx);
void queuetop_unwatch(struct queuetop_worker *w, int handle);

#ifdef __cplusplus
}
#endif
#endif
