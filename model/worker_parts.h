/* Inside the worker: its state, and the chapters that share it. worker.c decides what to do
 * next; worker_node.c signs on and off; worker_job.c runs one job; worker_answer.c delivers
 * answers; worker_report.c makes the texts of an answer out of what a command left. */
#ifndef MODEL_WORKER_PARTS_H
#define MODEL_WORKER_PARTS_H

#include "model/child.h"
#include "model/mem.h"
#include "model/queue.h"
#include "model/worker.h"

enum slot_why { /* why a command was killed by us */
                WHY_NOT,
                WHY_LOST,      /* the server says that the lease is lost, or it is surely over */
                WHY_CANCELLED, /* an operator asked */
                WHY_GIVE_BACK  /* told to stop at once */
};

struct slot { /* one running job */
    struct worker *w;
    struct child *child; /* NULL = free */
    struct queue_token token;
    char id[QUEUE_ID_LEN + 1];
    char *what; /* "queue/kind id", for the log */
    enum slot_why why;
    int64_t lease_ms;          /* granted length */
    int64_t over_ms;           /* monotonic: surely over then; counted from before the request */
    int64_t extend_at_ms;      /* monotonic */
    int64_t started_ms;        /* monotonic */
    int64_t server_started_ms; /* since 1970, the server's clock */
    int64_t run_timeout_ms;
};

enum answer_kind { ANSWER_COMPLETE, ANSWER_FAIL, ANSWER_GIVE_BACK, ANSWER_KINDS };

struct answer { /* what the server has yet to be told about one job */
    struct queue_token token;
    char id[QUEUE_ID_LEN + 1];
    int64_t server_started_ms;
    char *result; /* bytes */
    size_t result_len;
    char *error, *trace;
    const char *outcome; /* of a failure */
    bool final;
    bool in_doubt; /* was sent, and the connection broke before the answer */
    bool alone;    /* the server refused a call with it: goes by itself from now on */
    bool bared;    /* its texts were already taken out */
};

struct outbox { /* answers of one kind, oldest first */
    struct worker *w;
    struct answer *items;
    int n, cap;
    int flying; /* the first so many are in the call that is out */
    int64_t retry_at_ms, backoff_ms;
};

enum worker_stop { STOP_NOT, STOP_DRAINING, STOP_NOW };

struct worker {
    struct loop *loop;
    struct db *db;
    struct queue *queue;
    struct worker_options o;
    char *node, *path, *host;
    char session[QUEUE_ID_LEN + 1];
    struct slot *slots;
    int running;
    struct outbox box[ANSWER_KINDS];
    struct worker_counts counts;

    bool is_registered;
    bool is_calling_node; /* node_start, node_beat or node_stop is out */
    bool is_claiming, is_extending;
    bool is_paused;  /* the server says that this node drains */
    bool is_asking;  /* whether anything is ready (--drain) */
    bool is_tidying; /* keep_only is out */
    int untidy;      /* the answer of a claim was lost: leases may stand that we don't know of */
    bool is_leaving, has_left;
    bool is_dirty;
    enum worker_stop stop;
    struct err fatal;

    int timer;
    int64_t beat_at_ms, claim_at_ms, extend_retry_ms, ask_at_ms, stop_at_ms;
    int64_t tidy_at_ms, retry_auth_ms;
    int64_t claim_sent_ms, extend_sent_ms, idle_since_ms;
    int idle_wait_ms, claimed_n;
    bool was_idle;         /* the last claim found nothing */
    bool is_empty;         /* nothing was ready when last asked */
    struct err said_claim; /* last complaint about claims */
};

/* worker.c: looks at everything and does what is due; call it after every change. */
void worker_pump(struct worker *w);

/* worker_job.c */
void job_start(struct worker *w, const struct queue_job *job, int64_t asked_ms);
void job_kill(struct slot *s, enum slot_why why);
/* Kills what has no lease any more by our own count, and asks for more time for the others. */
void jobs_keep(struct worker *w);
void jobs_check(struct worker *w); /* after SIGCHLD */
/* When the next thing is due for a running job; INT64_MAX = nothing. */
int64_t jobs_due_ms(const struct worker *w);

/* The leases of all that runs; the array has room for that many. */
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
void node_watch(struct worker *w); /* the server refused us after it had let us in: tries again */
int64_t node_due_ms(const struct worker *w, int64_t now);

/* worker_report.c */
/* The result of a command that exited 0: its output, with a last line that says what was cut. */
char *report_result(const struct child_report *r, size_t *len);
/* One line that says how it ended, and the rest of standard error (*trace, may be NULL). */
char *report_error(const struct child_report *r, const char *how, char **trace);
/* "exit status 3", "killed by signal 9 (Killed)" */
void report_how(const struct child_report *r, char *out, size_t size);
/* Valid UTF-8 without NUL: what else is in it becomes U+FFFD. */
char *report_clean(const char *s, size_t len);

#endif
