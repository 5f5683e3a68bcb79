/* What an adapter answers, as structs: one struct a kind of row and its table of columns. Times are
 * milliseconds since 1970 by the server's clock, FIELD_NULL where there is none. Strings are never
 * NULL. They are foreign text: pass them through model/base/text.h before they reach a screen. A
 * row borrows its strings from its snapshot. The same tables check an adapter in the contract test:
 * every column that is not optional must come, with a fitting type. */
#ifndef MODEL_ADAPTER_RECORD_H
#define MODEL_ADAPTER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "model/db/rows.h"

struct queue_row {
    const char *queue;
    int paused; /* 1, 0, -1 = can't tell */
    int keeps;  /* finished jobs are kept and can be looked up: 1, 0, -1 = can't tell */
    const char *paused_by, *pause_reason, *info;
    int64_t paused_ms;                                /* since when */
    int weight, max_running;                          /* INT_MIN = none */
    int64_t scheduled, ready, retry, running, failed; /* exact */
    int64_t expired; /* running with a lease that has ended; FIELD_NULL = counted in the nodes */
    int64_t
        blocked; /* waits for another job of its concurrency key; FIELD_NULL = not known there */
    int64_t oldest_ms;                                 /* when the oldest ready job became ready */
    int64_t pushed, completed, fails, retried, run_ms; /* cumulative */
    int64_t wait_p50_ms, wait_p99_ms, run_p50_ms, run_p99_ms; /* filled in from SEC_TIMES */
    int64_t failed_hour; /* failed for good in the last hour, from SEC_TIMES; FIELD_NULL = not
                            known */
    int64_t failed_left; /* how many of these are failed still, counted up to 10 */
    double pushed_per_s, done_per_s, failed_per_s; /* by model/history; NAN while unknown */
    int64_t kept_completed, kept_cancelled; /* finished jobs still in the tables; FIELD_NULL = not
                                               known: by SEC_COUNTS_FINAL, asked rarely */
    int approx, kept_approx;                /* 1: the live numbers, the kept ones, are estimates */
    double in5_per_s, out5_per_s; /* over five minutes; out: also failed and cancelled; NAN while
                                     unknown */
    double run5_ms;               /* mean run time of the jobs that completed in these five
                                     minutes */
    int64_t completed5, fails5;   /* in these five minutes; FIELD_NULL = not known */
    int64_t turn_ms;  /* when it began to grow (model/store/outlook.h); FIELD_NULL = not known */
    int64_t full_ms;  /* when its limit was last seen to be reached; FIELD_NULL = not since the
                         limit was set */
    bool turn_before; /* it grew already in the first minute that is known */
    bool paced;       /* the queue system keeps minutes, and these figures come from them */
    int64_t tokens;   /* tokens left of its rate limit; FIELD_NULL = it has no limit */
    bool traced;      /* model/store/history keeps its steps */
    int64_t read_ms;  /* when its counts were read, by the server's clock; 0 = now */
    int place;        /* in the server's order of the queues */
};

struct rate_row { /* a kept point of the cumulative counters; ready: with those that run */
    const char *queue;
    int64_t at_ms, pushed, completed, fails, ready, oldest_ms;
};

struct time_row { /* what completed in the last hour, in ms; FIELD_NULL = nothing did */
    const char *queue;
    int64_t completed, failed, failed_left, wait_p50_ms, wait_p99_ms, run_p50_ms, run_p99_ms;
};

struct pace_row { /* what came in and went out in the last whole minutes, five at most */
    const char *queue, *nets; /* "{1,-2,...}": its growth in each minute, up to upto_ms; "" = not
                                 known */
    int minutes;              /* 0 = the queue is too new */
    int64_t pushed, gone, completed, fails, run_ms, upto_ms, tokens;
};

struct minute_row { /* one minute of the last hour; a minute in which nothing happened has no row */
    const char *queue;
    int64_t at_ms, pushed, completed, fails, retried;
};

struct step_row { /* what happened in one queue in one step of time */
    int64_t at_ms;
    double seconds; /* how many seconds of the step are known */
    int64_t pushed, completed, fails, retried, lost;
    int64_t backlog;                    /* ready and running at its end */
    const char *buckets, *waits, *runs; /* arrays: the numbers of buckets of times, and how many
                                           jobs each holds */
};

struct job_row {
    const char *id, *queue, *kind, *state;
    int priority, tries, max_tries; /* tries: those that have ended */
    int64_t created_ms, run_after_ms, changed_ms, started_ms, finished_ms;
    const char *node; /* "" unless running (or finished: by whom) */
    int64_t lease, lease_until_ms;
    const char *error;  /* the first 300 characters */
    const char *cursor; /* the place of this row for the next page */
    int stale;          /* running, but its worker seems gone: 1, 0, -1 = can't tell */
};

struct job_detail {
    struct job_row job; /* job.error is whole here */
    const char *unique_key, *payload, *payload_format, *payload_type, *result, *origin_id;
    int64_t payload_size, run_timeout_ms, lease_timeout_ms;
    int cancel_asked;
    const char *version;   /* an edit is refused if this has changed; "" = this adapter has none */
    const char *raw_state; /* the system's own word for its state; "" = it has none */
};

struct attempt_row {
    int number;
    const char *node, *outcome, *error, *trace;
    int64_t started_ms, ended_ms;
};

/* The states of a node: what the console knows, from the words of the column "state". */
enum node_state {
    NODE_OTHER, /* a word of the adapter's own */
    NODE_UP,
    NODE_ASLEEP,
    NODE_LATE,
    NODE_DRAINING,
    NODE_STOPPED,
    NODE_LOST,
    NODE_UNKNOWN, /* it holds leases and never registered */
    NODE_DEAD
};

struct node_row {
    const char *node, *state, *host, *version, *queues;
    int pid, slots;
    int64_t started_ms, heartbeat_ms, running, leases, expired;
    int64_t expired_jobs;      /* of `running`, those on expired leases: they take no slot */
    int session_alive;         /* 1, 0, -1 = can't tell (another's session, or behind a pooler) */
    int64_t lease_until_ms;    /* of its newest lease */
    int backend_pid;           /* of its database session; INT_MIN = it did not say */
    const char *session_state; /* as pg_stat_activity says: "idle"; "" = not seen */
    int64_t session_ms;        /* since when it is in that state */
    int64_t clock_ahead_ms;    /* of its machine, before the server's; < 0 = behind */
};
/* The only place that reads the word of a node's state. */
enum node_state node_state(const struct node_row *n);
extern const char
    *const node_states[]; /* the words, by enum node_state from NODE_UP on; NULL ends */
/* Nobody works there any more, as far as is known: dead, or it never registered. */
bool node_is_gone(const struct node_row *n);
/* Whether a node with this list of queues, "a,b" or "" for all, takes jobs of the queue. */
bool node_takes(const char *queues, const char *queue);
/* What the node holds: its leases. If leases are not known there: the jobs that run there. */
int64_t node_held(const struct node_row *n);
/* The jobs of a node are of three kinds. Lost: all jobs of a dead node, and those of expired
 * leases: their worker has given them up, or is gone, but they count as running until the scheduler
 * takes the lease back. Busy: those on its slots, never more than it has. Beyond: those that it
 * holds besides, because it claims ahead, or because the server has not got its answers yet. */
int64_t node_lost(const struct node_row *n);
int64_t node_busy(const struct node_row *n);
int64_t node_beyond(const struct node_row *n);

struct life_row {    /* whether anybody works; of the whole system */
    int64_t workers; /* workers that sent a heartbeat, hold a valid lease, or wait for a push */
    int scheduler_alive;
    const char *scheduler; /* the last one's name, "" = there was none */
    int64_t scheduler_ms;  /* the last sign of it, if it is not alive; FIELD_NULL = not known */
    int64_t schedules;     /* active ones; FIELD_NULL = not known */
    int held_pid; /* of the transaction that holds the scheduler's row; INT_MIN = a prepared one */
    const char *held_app, *held_user; /* who that is; "" = nobody holds it */
    int64_t held_ms;                  /* since when; FIELD_NULL = not known */
    int64_t overdue;                  /* schedules of which a run is due and was not pushed */
    int64_t overdue_ms;               /* since when the first of them is */
    int64_t counting;    /* queues whose counters must still be recounted; FIELD_NULL = not known */
    int64_t counting_ms; /* since when */
    int64_t unserved, max_queues; /* queue names beyond the limit, whose jobs wait; the limit */
};

struct lease_row {
    int64_t lease, jobs, started_ms, lease_until_ms, version;
    const char *node, *queue, *job_ids, *effect;
    int tries, max_tries;
};

struct group_row { /* failed jobs by error */
    const char *error_key, *queue, *sample, *sample_id;
    int64_t n, first_ms, last_ms;
    int capped;                 /* 1: n is a lower bound */
    const char *group;          /* what it is grouped by, if not by the error */
    const struct fail_day *day; /* filled in from SEC_FAIL_TIMES; NULL = not known */
};

struct fail_time_row { /* failed jobs of one error that failed in one half hour */
    const char *queue, *error_key;
    int64_t at_ms, n;
    int64_t hour;     /* how many failed in the last hour */
    int64_t since_ms; /* only failures of the group since this time were counted; FIELD_NULL =
                         all */
};

struct group_facts_row {   /* more facts about one group */
    int64_t retrying;      /* jobs with the same error that wait for a retry, among those looked
                              at */
    int64_t done, done_ms; /* jobs of the same kinds that are done since the last failure; time
                              of the last one */
    const char *past_who, *past_verb; /* what was done with the group the last time; "" = nothing */
    int64_t past_ms, past_jobs;
    int64_t past_looked, past_failed, past_waiting; /* of those jobs: looked at; failed again or
                                                       still; waiting */
};

struct group_part_row { /* what the newest jobs of a group have in common, and where they differ */
    const char
        *what; /* jobs (how many were looked at), node, kind, tries, took, number, step, since */
    const char *name; /* the node, the kind, "5 of 5", "p50" (took), the number's text */
    int place;        /* number: its place in the error's text; tries: 1 = not all were used */
    int64_t n;        /* how many; took: ms; since: when the oldest failed of which steps tell */
    int64_t of;       /* different ones; step: when it begins, in ms */
};

struct group_sample_row { /* one of the newest jobs of a group */
    const char *id, *kind, *node, *error, *trace, *payload;
    int64_t failed_ms;
    int tries, max_tries;
};

struct audit_row {
    const char *action, *who, *addr, *verb, *target, *reason;
    const char *change;  /* what was asked, in words, with what was there before */
    const char *params;  /* what was asked, as JSON */
    const char *before;  /* the changed row before the act, as JSON; "" = several rows, or not
                            kept */
    const char *no_undo; /* why it can't be undone at all, "" = it can */
    const char *cursor;  /* cursor: the list continues behind this row */
    int64_t at_ms, expected, changed, skipped;
};

struct happened_row {
    const char *id;
    const char *what; /* act, came, died, left (a node); failed, first, last (an error) */
    const char *target, *queue, *error_key;
    const char *action, *who, *verb, *reason; /* of an act */
    const char *text;                         /* what was asked; what the node is; the error */
    int64_t at_ms;
    int64_t n; /* rows that an act changed; failed jobs of the error */
};

struct schedule_row {
    const char *name, *cron, *tz, *queue, *kind, *state; /* active, paused, failed (error) */
    const char *catch_up, *payload, *payload_type, *comment, *paused_by, *pause_reason, *error;
    const char *last_job, *last_outcome; /* a state, or "not pushed", "gone" */
    int64_t last_run_ms, next_run_ms, created_ms, changed_ms;
    int priority, max_tries, unique;
    int64_t last_took_ms, missed; /* missed: how many of the kept runs pushed no job of their own */
    const char *last_error;       /* why the job of the last run failed */
    int queue_paused;             /* its jobs wait: 1, 0, -1 = can't tell */
    const char *queue_paused_by;
};

struct run_row { /* a run of a schedule; of a future run only due_ms is known */
    int64_t due_ms, at_ms;
    const char *job, *outcome, *error, *due; /* due: as a clock in its zone shows it */
    int64_t took_ms;
};

struct setting_row { /* of a queue */
    const char *setting, *value, *standard, *note;
};

struct sample_row { /* one of the jobs that a requeue by filter would change */
    const char *id;
};

struct effect_row { /* of a preview: n rows will become state; state "" = skipped, because why */
    const char *state, *why;
    int64_t n;
};

struct change_row { /* of a batch: what a row became; state "" = skipped, because why */
    const char *id, *state, *why, *cursor;
    int64_t n; /* rows that this row stands for */
};

struct server_row { /* sql/console/server.sql */
    const char *server_version, *user, *database;
    const char *identity; /* of cluster and database; "" = not known */
    int64_t now_ms;
    int backend_pid, in_recovery, read_only, is_superuser;
};

struct role_row {     /* what the adapter lets this login do */
    const char *role; /* viewer, worker, operator, owner, "" = nothing */
    int can_act;
    const char *why;     /* why not, as a sentence */
    const char *warning; /* a sentence if this login may not see all rows; "" = it sees all */
    int signals;         /* may end others' sessions: 1, 0, -1 = can't tell */
};

struct spent_row { /* sql/console/spent.sql: the last statement of each refresh */
    int64_t now_ms, spent_us;
    int in_recovery; /* a standby: 1, 0, -1 = not asked (a recording of an older version) */
};

struct record {
    const struct field *fields;
    int n;
    size_t size; /* of the struct */
};
extern const struct record record_queue, record_count, record_final, record_rate, record_time,
    record_pace, record_minute, record_step, record_life, record_job, record_detail, record_attempt,
    record_node, record_lease, record_group, record_fail_time, record_group_facts,
    record_group_part, record_group_sample, record_audit, record_happened, record_schedule,
    record_run, record_setting, record_sample, record_effect, record_change, record_server,
    record_role, record_spent;

/* rowset_decode by a record; takes r over. */
bool record_decode(const struct record *rec, struct result *r, struct rowset *out, struct err *e)
    __attribute__((warn_unused_result));

/* The sum of two numbers of which FIELD_NULL is none. */
int64_t add_if_known(int64_t sum, int64_t n);

/* Decodes a record row by row (model/db/rows.h); at most RECORD_FIELDS columns. */
enum { RECORD_FIELDS = 40 };
struct row_fields record_fields(const struct record *rec, int columns[RECORD_FIELDS]);

#endif
