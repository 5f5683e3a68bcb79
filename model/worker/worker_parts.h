/* Inside the worker: its state, and the chapters that share it. worker.c decides what to do next;
 * worker_node.c signs on and off; worker_job.c runs one job; worker_answer.c delivers answers;
 * worker_claim.c gets jobs; worker_sleep.c sleeps when there are none; worker_held.c keeps the jobs
 * claimed ahead; worker_call.c calls functions; worker_report.c makes the texts of an answer out of
 * what a command left. */
#ifndef MODEL_WORKER_WORKER_PARTS_H
#define MODEL_WORKER_WORKER_PARTS_H

#include <stdatomic.h>

#include "model/base/child.h"
#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "model/worker/worker.h"

enum slot_why { /* why a command was killed by us */
                WHY_NOT,
                WHY_LOST,      /* the server says that the lease is lost, or it is surely over */
                WHY_CANCELLED, /* an operator asked */
                WHY_TIMEOUT,   /* a function took too long (commands: model/base/child.h) */
                WHY_GIVE_BACK  /* told to stop at once */
};

struct queuetop_run { /* one call of a function; first in its slot */
    struct queuetop_task task;
    char *copy; /* copy of all that task points to, for a thread */
    void *result;
    size_t result_len;
    char *error, *trace;
    enum queuetop_outcome outcome;
    bool is_later;    /* the loop knows that the function has returned QUEUETOP_LATER */
    bool is_finished; /* queuetop_finish was called before that, with the outcome `finish` */
    enum queuetop_outcome finish;
    atomic_bool is_unwanted;
    struct queuetop_run *next; /* the next in a list of the pool */
};

struct slot { /* one running job */
    struct queuetop_run run;
    struct worker *w;
    bool is_busy;
    struct child *child; /* a command */
    struct queue_token token;
    char id[QUEUE_ID_LEN + 1];
    char *what; /* "queue/kind id", for the log */
    enum slot_why why;
    int64_t lease_ms;          /* granted length */
    int64_t over_ms;           /* monotonic: the lease is over; counted from before the request */
    int64_t extend_at_ms;      /* monotonic */
    int64_t started_us;        /* monotonic */
    int64_t server_started_ms; /* since 1970, the server's clock */
    int64_t run_timeout_ms;
};

enum answer_kind { ANSWER_COMPLETE, ANSWER_FAIL, ANSWER_GIVE_BACK, ANSWER_KINDS };

struct answer { /* an answer about one job that the server has not got yet */
    struct queue_token token;
    char id[QUEUE_ID_LEN + 1];
    int64_t server_started_ms;
    char *result; /* bytes */
    size_t result_len;
    char *error, *trace;
    const char *outcome; /* of a failure */
    int64_t retry_in_ms; /* when to try again; 0 = by the queue's back-off */
    bool final;
    bool in_doubt; /* was sent, and the connection broke before the answer */
    bool alone;    /* the server refused a call with this answer: it is now sent alone */
    bool bared;    /* its texts were removed already */
};

struct outbox { /* answers of one kind, the oldest first */
    struct worker *w;
    struct answer *items;
    int n, cap;
    int flying; /* the first n of them are in the call under way */
    bool plain; /* the next call carries no claim: the last one with a claim failed */
    int64_t retry_at_ms, backoff_ms;
};

struct held { /* claimed ahead, not started; job points into copy */
    struct queue_job job;
    char *copy;
    int64_t asked_ms;
};

/* worker_held.c: jobs claimed ahead */
struct worker_held {
    struct held *items; /* the oldest first */
    int n, cap;
    int coming;     /* jobs of an answer that is just being taken */
    int most;       /* how many are claimed ahead now */
    int64_t job_us; /* how long a job takes, about */
};

/* worker_node.c: this process as a node of the queue */
struct worker_node {
    char *name, *path, *host;
    char session[QUEUE_ID_LEN + 1];
    bool is_registered;
    bool is_calling; /* node_start, node_beat or node_stop is out */
    bool is_paused;  /* the server says that this node drains */
    bool is_tidying; /* keep_only is out */
    int untidy;      /* the answer of a claim was lost: we may hold leases that we don't know of */
    bool is_leaving, has_left;
    int64_t beat_at_ms, tidy_at_ms, retry_auth_ms;
    int64_t sent_ms; /* node_start or node_beat, by the wall clock */
};

/* worker_node.c: how far the server's clock is ahead of ours */
struct worker_clock {
    int64_t ahead_ms; /* as measured */
    int64_t told_ms;  /* what the server has noted of our clock, if is_told */
    bool is_told;
    bool is_telling; /* node_clock is out */
    bool is_unheard; /* the queue has no node_clock, or no right to it */
    bool is_wrong;   /* and the log says so */
};

/* worker_claim.c: getting jobs */
struct worker_claim {
    bool is_out;
    bool is_asking; /* queue_backlog is out (--drain) */
    bool is_woken;  /* a NOTIFY came since the last claim was sent */
    bool was_short; /* the last jobs were fewer than asked for: nothing more is there */
    bool was_idle;  /* the last claim found nothing */
    bool is_empty;  /* nothing was ready when last asked */
    int64_t at_ms, sent_ms, ask_at_ms, idle_since_ms;
    int idle_wait_ms, n;
    struct err said; /* last complaint about claims */
};

/* worker_job.c: extending the leases of running jobs */
struct worker_leases {
    bool is_extending;
    int64_t retry_ms, sent_ms;
    int64_t slept_ms; /* clock_slept_ms() up to which the times of leases were moved */
};

/* worker_job.c: starting commands */
struct worker_start {
    bool has_run;  /* a command has started */
    int64_t at_ms; /* takes no jobs before: the last command could not be started */
    int wait_ms;   /* how long it waits for that, 0 = the last command was started */
};

/* worker_sleep.c: waiting on the server for jobs */
struct worker_sleep {
    int slot;            /* where we wait, -1 = nowhere */
    bool is_first;       /* we wait in slot 0: if we take no more jobs, another worker should wait
                            there */
    int listen_slot;     /* the slot whose channel this connection listens to, -1 = none */
    int listen_pid;      /* server process of that connection */
    bool is_asleep;      /* sends nothing until claim.at_ms, unless a NOTIFY comes */
    bool is_asking;      /* node_sleep is out */
    bool listens_to_all; /* also to the channels that wake a sleeping worker */
    bool has_said;       /* the log already says why it can't sleep */
    int pid;             /* the connection that listens for who sleeps */
    int64_t at_ms;       /* does not sleep before this time */
};

enum worker_stop { STOP_NOT, STOP_DRAINING, STOP_NOW };

/* worker.c: how it ends */
struct worker_end {
    enum worker_stop how;
    int64_t at_ms;
    int64_t signal_ms; /* monotonic: the last signal to end that counted */
};

struct worker {
    struct loop *loop;
    struct db *db;
    struct queue *queue;
    struct worker_options o;
    struct slot *slots;
    int running;
    struct pool *pool;   /* of the threads, or NULL */
    bool is_calling;     /* a function runs in the loop */
    struct guard *guard; /* of the commands, or NULL */
    struct outbox box[ANSWER_KINDS];
    struct worker_counts counts;
    struct worker_held held;
    struct worker_node node;
    struct worker_clock clock;
    struct worker_claim claim;
    struct worker_leases lease;
    struct worker_start start;
    struct worker_sleep sleep;
    struct worker_end stop;
    bool is_dirty;
    struct err fatal;
    int timer;
};

/* worker.c: looks at everything and does what is due; call it after every change. Within a function
 * that runs in the loop it does nothing, because jobs are just being started: the job of the
 * function is still in its list. Whoever started them calls it afterwards. */
void worker_pump(struct worker *w);

/* worker_claim.c */
bool may_claim(const struct worker *w);
void claims_make(struct worker *w, int64_t now);
int64_t claims_due_ms(const struct worker *w);
void claims_wake(void *ctx, const char *channel); /* a NOTIFY */

/* worker_sleep.c */
void sleep_watch(struct worker *w);             /* from the start on */
void sleep_keep(struct worker *w, int64_t now); /* wakes when it is time, or the server is gone */
void sleep_try(struct worker *w, int64_t now);  /* asks for sleep if there is nothing to do */
void sleep_end(struct worker *w);
void sleep_later(struct worker *w); /* there was something to do */
int64_t sleep_due_ms(const struct worker *w, int64_t now);

/* worker_claim.c, too. Fills in what the next claim asks for. */
struct queue_claim claim_of(struct worker *w, int64_t now);
/* A claim was answered; sleep: NULL unless it says how to wait. */
void claim_done(struct worker *w, const struct err *e, const struct queue_job *jobs, int n,
                const struct queue_sleep *sleep);

/* A copy of the job with all its texts in one block (*copy), which the caller frees. */
struct queue_job job_copy(const struct queue_job *job, char **copy);
void held_add(struct worker *w, const struct queue_job *job, int64_t asked_ms);
void held_start(struct worker *w, int64_t now); /* starts jobs as slots are free; gives back jobs
                                                   that wait too long */
int held_leases(const struct worker *w, int64_t *leases);
int64_t held_due_ms(const struct worker *w);
void held_free(struct worker *w);

/* worker_call.c: functions */
/* NULL: *e says why not all threads run. */
struct pool *pool_new(struct worker *w, int threads, struct err *e);
void pool_free(struct pool *p); /* waits for the functions that run */
void call_start(struct slot *s, const struct queue_job *job);

/* worker_job.c */
void job_over(struct slot *s); /* the slot is free */
void job_start(struct worker *w, const struct queue_job *job, int64_t asked_ms);
void job_kill(struct slot *s, enum slot_why why);
/* Kills jobs whose lease is over by our own count, and extends the leases of the others. */
void jobs_keep(struct worker *w);
void jobs_check(struct worker *w); /* after SIGCHLD */
/* The monotonic clock stood still while this machine was suspended, the leases did not: moves their
 * times, also those of requests that are still out, back by as much. */
void jobs_count_suspension(struct worker *w);
/* When the next thing is due for a running job; INT64_MAX = nothing. */
int64_t jobs_due_ms(const struct worker *w);

/* The tokens of all running jobs; the array has room for them. */
int jobs_leases(const struct worker *w, int64_t *leases);

/* worker_answer.c */
int answers_leases(const struct worker *w, int64_t *leases);
void answer_add(struct worker *w, enum answer_kind kind, struct answer *a); /* takes its texts */
void answers_send(struct worker *w);
int answers_left(const struct worker *w);
int64_t answers_due_ms(const struct worker *w);
void answers_free(struct worker *w);

/* worker_node.c: the connection, and what the server knows of this process. */
void node_keep(struct worker *w, int64_t now); /* registers, then beats */
void node_tidy(struct worker *w, int64_t now); /* gives back leases that we don't know of */
void node_leave(struct worker *w);
void node_watch(struct worker *w); /* this login worked before and fails now: tries again */
int64_t node_due_ms(const struct worker *w, int64_t now);

/* worker_report.c */
/* The result of a command that exited 0: its output. If the output was cut, the last line says
 * so. */
char *report_result(const struct child_report *r, size_t *len);
/* One line that says how it ended, and the rest of standard error (*trace, may be NULL). */
char *report_error(const struct child_report *r, const char *how, char **trace);
/* The time that is the last line of its standard output, at least 1 ms; 0 = there is none, or *e
 * says why it is none. */
int64_t report_retry_in(const struct child_report *r, struct err *e);
/* "exit status 3", "killed by signal 9 (Killed)" */
void report_how(const struct child_report *r, char *out, size_t size);
/* Valid UTF-8 without NUL: what else is in it becomes U+FFFD. */
char *report_clean(const char *s, size_t len);

#endif
