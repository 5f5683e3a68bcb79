/* The worker: claims jobs and runs one command a job, or calls a function (queuetop.h is its public
 * face), several at a time, from one loop. It keeps its leases while commands run, kills a command
 * whose lease is lost or surely over, keeps answers in memory while the server is away, and
 * reconnects for ever. A job runs outside the queue's transactions. */
#ifndef MODEL_WORKER_WORKER_H
#define MODEL_WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/db/db.h"
#include "model/worker/queuetop.h"

struct worker_options { /* all borrowed for the worker's life */
    const char *schema;
    const char *node;          /* NULL = host-pid-random */
    const char *const *queues; /* NULL = all */
    int nqueues;
    char *const *argv; /* the command, or NULL and: */
    queuetop_fn *fn;   /* a function */
    void *fn_ctx;
    int threads;         /* that run it; 0 = the loop does, and it must not block */
    int ahead;           /* how many short jobs are claimed ahead (functions only) */
    bool no_signals;     /* the worker handles no signals; worker_end ends it */
    int jobs;            /* commands at a time */
    int64_t timeout_ms;  /* length of a lease; 0 = the job's, the queue's or the default */
    int64_t max_idle_ms; /* ends after that long without a job; 0 = never */
    int64_t grace_ms;    /* between SIGTERM and SIGKILL of a command */
    bool may_leave;      /* processes in the command's group live on after its end */
    bool drain;          /* ends when nothing is ready */
    bool poll;           /* never waits on the server for a wake-up: only asks now and then */
    int64_t sleep_ms;    /* while nothing is due, sends nothing for this time at most; 0 = looks */
    size_t result_limit; /* bytes of standard output kept */
    size_t error_limit;  /* bytes of the end of standard error kept */
};

struct worker_counts {
    int64_t started, done, failed, timed_out, cancelled, given_back;
    int64_t lost; /* answers that were refused, and commands killed for a lost lease */
};

struct worker;
/* ERR_USAGE if the command can't be found, ERR_SYS if a thread can't be started: so the worker does
 * not start, and no job fails. */
struct worker *worker_new(struct loop *l, struct db *db, const struct worker_options *o,
                          struct err *e);
/* Turns the loop until the worker has ended: drained, idle, told to by SIGTERM, SIGINT or SIGHUP
 * (the first finishes what runs, the second kills and gives back at once), or refused (false). Only
 * once: false after that. */
bool worker_run(struct worker *w, struct err *e) __attribute__((warn_unused_result));
/* False after worker_run: jobs were killed, or answers could not be delivered. */
bool worker_is_clean(const struct worker *w);
const struct worker_counts *worker_counts(const struct worker *w);
const char *worker_node(const struct worker *w);
/* Ends the worker as the first signal does. */
void worker_end(struct worker *w, const char *why);
/* After the db is freed. Kills what still runs. */
void worker_free(struct worker *w);

/* host-pid-random: a name that no other process has. The caller frees. */
char *worker_make_name(void);

#endif
