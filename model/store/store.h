/* What the console knows about one source: for each topic a snapshot, its age, and the time of the
 * next refresh. Snapshots are immutable; a failed refresh keeps the last good one with the error
 * beside it. Only topics that a screen wants are asked. The next refresh of a topic is timed from
 * the end of its last one: max(interval, 5 x query time), and later if the budget of 2 % of one
 * server core is used up. The watcher is read only. Views hold const pointers until the next turn
 * of the loop at most, and find rows again by their ids. */
#ifndef MODEL_STORE_STORE_H
#define MODEL_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/adapter.h"
#include "model/adapter/filter.h"
#include "model/adapter/record.h"
#include "model/base/loop.h"
#include "model/db/db.h"
#include "model/store/health.h"
#include "model/store/history.h"

enum topic {
    TOPIC_QUEUES, /* queues, counts, rates, totals */
    TOPIC_FINAL, /* finished jobs that are kept; joined to the queues, asked as long as these are */
    TOPIC_LIFE,  /* whether a worker and a scheduler are alive */
    TOPIC_TIMES, /* how long jobs of each queue waited and ran; joined to the queues */
    TOPIC_STEPS, /* what happened in one queue in each step of time, by store_ask_steps */
    TOPIC_PACE,  /* what came in and went out in five minutes; joined to the queues */
    TOPIC_JOBS,  /* the window of the jobs list, by store_ask_jobs */
    TOPIC_JOB,   /* one job and its attempts, by store_ask_job */
    TOPIC_GROUPS, /* failed jobs by error, by store_ask_groups */
    TOPIC_GROUP,  /* one of them in detail, by store_ask_group */
    TOPIC_NODES,
    TOPIC_LEASES, /* of one node or queue, by store_ask_leases */
    TOPIC_AUDIT,
    TOPIC_HAPPENED, /* acts, changes of nodes, errors, by store_ask_happened */
    TOPIC_SCHEDULES,
    TOPIC_RUNS,   /* the last and the next runs of one schedule, by store_ask_runs */
    TOPIC_HEALTH, /* of the database: connections, transactions, running vacuums */
    TOPIC_TABLES, /* its tables: sizes, dead rows */
    TOPIC_COUNT
};

struct topic_info {
    bool wanted;
    bool asking;             /* a query is under way */
    bool has_data;           /* an answer to the present question has come */
    int64_t taken_ms;        /* monotonic time of the last good answer; 0 = none */
    int64_t took_us;         /* of the server's time */
    int64_t next_ms;         /* monotonic time of the next refresh; 0 = not planned */
    struct err err;          /* of the last try; kind NONE when it was good */
    const char *unavailable; /* why the adapter can't answer this topic; NULL = it can */
};

enum store_state {
    STORE_CONNECTING, /* no answer yet; store_error has the cause, if there is an error */
    STORE_MISSING,    /* connected, but no queue is installed there: store_error has the sentence */
    STORE_STRANGE,    /* the system belongs to a stranger: see store_error, store_strangers */
    STORE_OPEN        /* detected and asked; the connection may be lost and come back */
};

struct store;
/* The db and the adapter are borrowed; the adapter changes to the system that is found in the
 * database. schema NULL = the system's default schema, or else the first one that is found. */
struct store *store_new(struct loop *l, struct db *watcher, struct adapter *a, const char *schema,
                        int interval_ms);
/* Sets the owners whom the user trusts (model/adapter/trust.h), borrowed. Call it before the loop
 * turns. */
void store_trust(struct store *s, const struct trust *t);
void store_free(struct store *s);

uint64_t store_generation(const struct store *s); /* grows with every change that a screen should
                                                     draw */
enum store_state store_state(const struct store *s);
/* STORE_STRANGE: the owners of the system, valid until the next turn. Otherwise NULL. */
const struct owners *store_strangers(const struct store *s);
void store_look_again(struct store *s);               /* looks again at once, because the user
                                                         has answered */
const struct err *store_error(const struct store *s); /* error of the whole source; kind NONE =
                                                         none */
const struct server_row *store_server(const struct store *s); /* NULL until known */
int store_moves(const struct store *s); /* how often the address led to another database */
const struct role_row *store_role(const struct store *s); /* NULL until known */
/* The i-th reason why the user may not see everything, as a sentence: rows that this login may not
 * read, or the user's own adapters that were rejected. NULL = no more. */
const char *store_warning(const struct store *s, int i);
const char *store_version(const struct store *s); /* of the queue system, "" */
const struct db *store_db(const struct store *s);
int64_t store_now_ms(const struct store *s); /* the server's clock, since 1970; 0 until known */

void store_want(struct store *s, enum topic t, bool wanted);
void store_refresh(struct store *s, enum topic t); /* asks at once, without regard to the budget */
void store_refresh_all(struct store *s);           /* asks every wanted topic, after an action */
const struct topic_info *store_topic(const struct store *s, enum topic t);
/* on: the topics that show whether something needs attention are asked slowly even while no screen
 * shows them. */
void store_watch(struct store *s, bool on);
/* True if the data should be live, but is older than twice its planned interval, or if the last
 * refresh failed. */
bool store_is_stale(const struct store *s, enum topic t);
int64_t store_age_ms(const struct store *s, enum topic t); /* age of its data; -1 = no data */

void store_set_interval(struct store *s, int interval_ms); /* 100 to 3600000 */
/* The part of the budget that this store may use, 1 = all. Other stores may ask the same server. */
void store_set_share(struct store *s, double share);
int store_interval(const struct store *s);
void store_freeze(struct store *s, bool frozen); /* no refresh but those asked for */
bool store_is_frozen(const struct store *s);
/* The work of the server for this store, divided by wall time, over the last minute; 0.01 = 1 % of
 * a core. store_budget.c explains what counts as work. */
double store_load(const struct store *s);
bool store_is_slowed(const struct store *s); /* the budget makes it wait */

const struct queue_row *store_queues(const struct store *s, int *n);           /* sorted by name */
const struct queue_row *store_queue(const struct store *s, const char *queue); /* or NULL */
/* Grows whenever the rows are replaced. After that the same row number may be another queue. */
uint64_t store_queues_serial(const struct store *s);
size_t store_queues_bytes(const struct store *s); /* memory of the queues, without the history */
const struct queue_row *store_totals(const struct store *s); /* sums; queue = "" */
const struct life_row *store_life(const struct store *s);    /* NULL = not known */
const struct history *store_history(const struct store *s);

/* The charts of one queue: STEPS_SHOWN steps of time, and the present step, which is not over. The
 * first answer has all steps, later ones only the last two. A call with the same arguments changes
 * nothing. */
enum { STEPS_SHOWN = 60, TIME_BUCKETS = 64 };
struct step {
    int64_t at_ms;  /* when it begins */
    double seconds; /* how many seconds of the step are known */
    int64_t pushed, completed, fails, retried, lost;
    int64_t backlog;                             /* ready and running at its end */
    int waits[TIME_BUCKETS], runs[TIME_BUCKETS]; /* [n]: times from store_bucket_ms(n) up to the
                                                    next bucket */
};
void store_ask_steps(struct store *s, const char *queue, int64_t step_ms);
/* The steps in the order of time; a missing step is not known. NULL = the store was asked for
 * another queue or size of step. */
const struct step *store_steps(const struct store *s, const char *queue, int64_t step_ms, int *n);
double store_bucket_ms(int bucket); /* lower bound of a bucket: 0, 1, 1.4, 2, ... */

/* Asks for the jobs that match, the newest (or the next due) first. A new filter empties the
 * window. */
void store_ask_jobs(struct store *s, const struct filter *f);
const struct filter *store_jobs_filter(const struct store *s);
const struct job_row *store_jobs(const struct store *s, int *n);
struct jobs_place {
    bool at_top;    /* no job comes before the window */
    bool at_end;    /* no job comes after it */
    bool searching; /* the window holds less than asked, but the search has not reached the end */
    bool waits;     /* the search waits until store_look_on */
    int64_t looked; /* rows that the search has looked at */
    int64_t before; /* rows above the window; -1 = not counted */
};
struct jobs_place store_jobs_place(const struct store *s);
/* Call it when the list comes near the end (+1) or the start (-1) of its window: loads more rows.
 * The window holds at most JOBS_WINDOW rows; rows that drop out at the other side are loaded again
 * when needed. */
#define JOBS_PAGE 200
#define JOBS_WINDOW 600
void store_more_jobs(struct store *s, int direction);
void store_top_jobs(struct store *s); /* back to the first page */
/* Goes to the last page, which is read from the end. False: this order can't be read backwards. */
bool store_end_jobs(struct store *s);
/* Continues a search that waits; it looks at the same number of rows again. */
void store_look_on(struct store *s);

void store_ask_job(struct store *s, const char *id);
const struct job_detail *store_job(const struct store *s); /* NULL = no answer or no such job */
const struct attempt_row *store_attempts(const struct store *s, int *n);

/* Groups the failed jobs. queue NULL = of all queues. by NULL = by the error; else by "kind",
 * "node" or "hour", among the newest failed jobs only. */
void store_ask_groups(struct store *s, const char *queue, const char *by);
/* The groups. Each has its day (model/store/fail_day.h) if the adapter reports it. */
const struct group_row *store_groups(const struct store *s, int *n);
/* The group of the error, if the present answer has it. *is_known: if it does not, there is no such
 * failed job any more. Otherwise the answer may lack the group: it is about another queue, counts
 * by something else, or holds only the largest groups. */
const struct group_row *store_find_group(const struct store *s, const char *queue,
                                         const char *error_key, bool *is_known);
bool store_groups_are_all(const struct store *s); /* asked for all queues, by the error */
/* Asks for one group by its error, with its failures in steps of time. A call with the same
 * arguments changes nothing. */
void store_ask_group(struct store *s, const char *queue, const char *error_key, int64_t step_ms);
struct group_detail {
    const struct group_facts_row *facts; /* never NULL */
    const struct group_part_row *parts;
    const struct group_sample_row *samples; /* newest first */
    int nparts, nsamples;
    int64_t step_ms;
};
/* False: another group was asked for, or there is no answer yet. */
bool store_group(const struct store *s, const char *queue, const char *error_key,
                 struct group_detail *out);
const struct node_row *store_nodes(const struct store *s, int *n);
const struct node_row *store_node(const struct store *s, const char *node); /* or NULL */
void store_ask_leases(struct store *s, const char *node, const char *queue);
const struct lease_row *store_leases(const struct store *s, int *n);
const struct audit_row *store_audit(const struct store *s, int *n);
/* Asks what happened to a queue, to a node, or to an error of the queue (NULL = not limited to
 * one), newest first: at most HAPPENED_MOST rows, half of them errors, a quarter of them nodes. A
 * call with the same arguments changes nothing. */
enum { HAPPENED_MOST = 200 };
void store_ask_happened(struct store *s, const char *queue, const char *node,
                        const char *error_key);
const struct happened_row *store_happened(const struct store *s, int *n);
/* The nodes that ended in order while this store watched, the last one first. */
struct left_node {
    char *id, *node;
    char *queues; /* that it took, separated by commas; "" = all */
    int64_t at_ms;
};
const struct left_node *store_left(const struct store *s, int *n);
const struct schedule_row *store_schedules(const struct store *s, int *n);
const struct schedule_row *store_schedule(const struct store *s, const char *name); /* or NULL */
/* Asks for the runs of a schedule: the last ones, newest first, and the next ones. */
void store_ask_runs(struct store *s, const struct schedule_row *of);
const struct run_row *store_runs(const struct store *s, int *n);
const struct run_row *store_next_runs(const struct store *s, int *n);
/* The database's health. Borrowed, as rows are; parts that were not asked for yet are empty. */
struct health store_health(const struct store *s);
/* Dead rows of each table (SERIES_BACKLOG), as long as TOPIC_TABLES was asked. */
enum { STORE_DEAD_STEPS = 181 };
const struct history *store_dead_rows(const struct store *s);

/* --- one look: a verb prints what a screen would show (store_ask.c) ------------------------------ */

/* A store on a connection that leads to a queue already. It asks only by store_look, once. Its
 * rates are those between the points that the queue system keeps and now; rates: ask for them. */
struct store *store_new_look(struct loop *l, struct db *db, struct adapter *a, bool rates);
/* Asks the topics in one transaction and waits for the answers. A topic that the adapter lacks
 * stays without rows. */
bool store_look(struct store *s, const enum topic *topics, int n, struct err *e)
    __attribute__((warn_unused_result));

/* --- recording, and showing what was recorded (store_observer.c, store_inject.c) -------------- */

enum { STORE_TABLES = 3 };

/* An answer to one question. The name is that of a topic, or "server", "adapter", "version",
 * "role". */
struct store_answer {
    const char *name;
    const char *key; /* the subject of the question: the filter's text, the job; "" = none */
    int64_t at_ms;   /* by the server's clock */
    int64_t took_us;
    const struct err *err;  /* the error if the question failed; NULL or kind NONE = it did not */
    struct result **tables; /* n tables; none if the question failed */
    int n;
};

/* Passes every answer to fn before the store takes it; fn gets NULL when the parts of one answer
 * are complete. While there is an observer, the topics of the whole system are asked even if no
 * screen shows them, each at a slow pace of its own. */
typedef void store_observer_fn(void *ctx, const struct store_answer *a);
void store_record(struct store *s, store_observer_fn *fn, void *ctx);

/* A store that asks no server: the caller gives it the answers. The store calls asked() when it
 * lacks answers. db and adapter as in store_new. */
struct store *store_new_injected(struct loop *l, struct db *db, struct adapter *a,
                                 void (*asked)(void *ctx), void *ctx);
/* Takes over the tables. If the key of the answer is not the one that the store asks for, the topic
 * gets an error that says so. */
void store_inject(struct store *s, struct store_answer *a);
void store_inject_clock(struct store *s, int64_t now_ms); /* the time that is shown */
void store_inject_reset(struct store *s);                 /* forgets all answers before a jump to
                                                           another time */
void store_inject_done(struct store *s); /* wanted topics without an answer get an error */

#endif
