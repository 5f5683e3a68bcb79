/* The inside of the store, for its own files only: store.c (the life of a store, what screens say),
 * store_ask.c (what is asked when), store_open.c (which queue is there), store_take.c,
 * store_queues.c, store_jobs.c, store_schedules.c, store_health.c (answers -> snapshots),
 * store_observer.c and store_inject.c (recordings). */
#ifndef MODEL_STORE_STORE_PARTS_H
#define MODEL_STORE_STORE_PARTS_H

#include "model/store/store.h"

enum { QUEUE_TRACES = 1000, TRACES_MOST = 2000 }; /* see store_queues.c */
enum { SPENT_SLOTS = 60, SECTIONS_MAX = 3, WORK_KINDS = 16, WORK_RUNS = 8 };

struct store;

struct topic_kind { /* a row of the table in store_take.c */
    const char *name;
    enum section_id sections[SECTIONS_MAX]; /* the first one is what the adapter must have */
    int nsections;
    int pace;                       /* asked each pace-th interval */
    size_t rows[SECTIONS_MAX];      /* where in struct store the rows of each section are */
    void (*taken)(struct store *s); /* after new rows; NULL = nothing follows */
    /* instead of rows: decodes the answer, replaces the snapshot */
    bool (*take)(struct store *s, struct db_reply *reply, struct err *e);
    void (*clear)(struct store *s); /* what else the topic has; NULL = nothing */
};
extern const struct topic_kind topic_kinds[TOPIC_COUNT];

struct topic_slot {
    struct topic_info info;
    struct params params; /* of what is asked for */
    bool chosen;          /* the user has chosen the subject of the question */
    bool again;           /* must be asked again when the present query is over */
    bool alone;           /* asked in a pipeline of its own, because it failed or was slow */
    int64_t work_us;      /* the server's work for the last answer, without waits */
    int serial;           /* grows when the question changes: older answers are then dropped */
};

struct work { /* the last runs of the same statements, a ring */
    uint64_t statements;
    int64_t took_us[WORK_RUNS], charged_us[WORK_RUNS];
    int n;        /* runs so far */
    int64_t used; /* the budget's `asked` at the last run */
};

struct budget {
    double balance_us; /* what may be spent; grows by the part of_time of wall time */
    double of_time;    /* 0.02, or what QUEUETOP_BUDGET says */
    double share;      /* of of_time */
    int64_t at_ms;     /* when the balance was made */
    int64_t spent_us[SPENT_SLOTS], slot_s[SPENT_SLOTS]; /* by second, for store_load */
    int64_t since_ms;
    struct work work[WORK_KINDS];
    int64_t asked; /* queries so far */
    bool slowed;
};

struct window_start {
    char *cursor;
    int64_t rows;   /* between the start before and this one; -1 = nobody has counted them */
    int64_t looked; /* rows that a search looked at there */
};

enum window_find { FIND_NOTHING, FIND_END, FIND_UP };

struct jobs_window {
    struct filter filter;
    struct window_start *starts; /* starts of the windows before this one */
    int depth, cap;              /* 0 = the window starts at the top */
    int limit;                   /* rows asked for */
    int scan, scan_most;         /* rows to look through; how far that may grow */
    int64_t look_to;             /* rows that a search looks at before the user must ask for more */
    enum window_find find;       /* the next answer is where the window starts (SEC_JOBS_BACK) */
    char *resume; /* cursor to go on from when the search stopped early; NULL = it did not */
    int n;        /* rows of the snapshot without the marker */
    bool at_end;
};

struct injected { /* nobody is asked: a recording gives the answers */
    bool on;
    int64_t now_ms;
    void (*asked)(void *ctx);
    void *ctx;
};

enum { STEPS_KEPT = 62 };

struct steps_topic { /* store_steps.c */
    struct step list[STEPS_KEPT];
    int n;
    int64_t step_ms;
    int64_t from_ms; /* of the question under way */
    bool goes_on;    /* the steps before that are known */
};

struct health_state {
    struct rowset server, sessions, vacuums, tables;
    struct history *dead;
    struct health_server was; /* the answer before, for rates; its strings are empty */
    int64_t was_ms;           /* 0 = none */
    double cache_hit, wal_per_s;
};

/* --- the parts of a store, each changed only by the file that its comment names --------------------- */

struct source_facts {          /* store_open.c: which queue is there, at which server */
    char *schema;              /* asked for; NULL = find one */
    const struct trust *trust; /* whom the user trusts */
    enum store_state state;
    bool open;          /* detection is done on this connection */
    bool asking;        /* detection is under way */
    bool is_plain;      /* the owners are asked by the cheap proof first */
    int64_t at_ms;      /* next try of the detection; 0 = not planned */
    bool turned;        /* the server has become a standby, or is none any more */
    int moves;          /* how often the server was another one after a break */
    int adapter_serial; /* adapter_serial() that the answers belong to; 0 = none yet */
    int64_t owners_ms;  /* when the owners were last checked in full */
    struct err error;
    int64_t server_ms, server_at_ms; /* the server's clock, and our monotonic clock then */
    struct rowset server, role;
    char *version;
};

struct pace { /* store_ask.c: when the next question is due; what the user sets of it, store.c */
    int interval_ms;
    bool frozen;
    int timer; /* 0 = none */
    struct budget budget;
};

struct queues_topic {                   /* store_queues.c */
    struct rowset finals, times, paces; /* answers that came before the first answer about queues */
    bool finals_known;
    struct queue_row *rows; /* by name; their texts are in names */
    struct arena *names;
    int n;
    uint64_t serial;
    int64_t at_ms; /* by the server's clock; 0 = never */
    struct queue_row totals;
    struct history *history;
    bool seeded;          /* the points of the past have come: they are asked once */
    struct rowset points; /* store_look: these points, by queue and time */
};

struct jobs_topic { /* store_jobs.c */
    struct rowset rows;
    struct jobs_window window;
};

struct job_topic { /* store_take.c */
    struct rowset detail, attempts;
};

enum { LEFT_KEPT = 100 };

struct left_nodes { /* store_take.c: the newest ones, the last one first */
    struct left_node rows[LEFT_KEPT];
    int n, count;    /* count: ever */
    int64_t seen_ms; /* the server's clock when it last listed its nodes; 0 = not yet */
};

struct groups_topic { /* store_groups.c */
    struct rowset rows;
    struct fail_day *days; /* one for each row */
};

struct group_topic { /* store_groups.c */
    struct rowset facts, parts, samples;
    int64_t step_ms;
};

struct schedules_topic { /* store_schedules.c */
    struct rowset rows, runs, next;
};

struct observer { /* store_observer.c: a recorder listens; what is asked while no screen shows it */
    store_observer_fn *fn;
    void *ctx;
    bool watched;
};

struct store {
    struct loop *loop;
    struct db *db;
    struct adapter *adapter;
    bool alive;          /* false inside store_free: nothing is asked any more */
    bool clock_stands;   /* QUEUETOP_NOW: ages don't tick */
    bool once;           /* store_look: there will be no second answer */
    uint64_t generation; /* store_touch */

    struct topic_slot
        slots[TOPIC_COUNT]; /* store_ask.c, store.c, and store_inject.c of a recording */
    struct source_facts source;
    struct pace pace;
    struct observer observer;
    struct injected injected; /* store_inject.c */

    struct queues_topic queues;
    struct jobs_topic jobs;
    struct job_topic job;
    struct groups_topic groups;
    struct group_topic group;
    struct schedules_topic schedules;
    struct steps_topic steps;                           /* store_steps.c */
    struct health_state health;                         /* store_health.c */
    struct rowset life, nodes, leases, audit, happened; /* store_take.c */
    struct left_nodes left;
};

void budget_init(struct budget *b, int64_t now);
void budget_spend(struct budget *b, int64_t now, int64_t us);
/* Pays for a run of statements (identified by a hash) that took took_us at the server. Returns the
 * part that counts as the server's work: see store_budget.c. */
int64_t budget_charge(struct budget *b, int64_t now, uint64_t statements, int64_t took_us);
/* How long refreshes must wait until the bucket holds something again. */
int64_t budget_wait_ms(struct budget *b, int64_t now);
/* The shortest wait after a refresh of this cost, even if the bucket is full. */
int64_t budget_pause_ms(const struct budget *b, int64_t work_us);
double budget_load(const struct budget *b, int64_t now);

/* The monotonic clock; for a recording, the time that is shown. */
int64_t store_clock(const struct store *s);
/* What the topic's question is about, as store_answer.key. */
void store_key(const struct store *s, enum topic t, struct buf *out);
/* The number of intervals between two questions of a topic that no screen shows; 0 = it is never
 * asked. */
int store_observer_pace(const struct store *s, enum topic t);
void store_observer_topic(struct store *s, enum topic t, const struct db_reply *own, int64_t us);
void store_observer(struct store *s, const char *name, struct result **tables, int n,
                    const struct err *err);
void store_observer_done(struct store *s);
/* Between two refreshes of a topic: max(interval, 5 x query time), more after an error. */
int64_t store_wait_ms(const struct store *s, const struct topic_slot *slot, enum topic t);
void store_touch(struct store *s); /* something changed: generation */
void store_plan(struct store *s);  /* sets the timer for what is due next */
void store_begin_open(struct store *s);
void store_look_anew(struct store *s); /* detects again which queue the connection leads to */
void store_lost(struct store *s, const struct err *e); /* the connection broke */
/* Takes the server's report whether it is a standby. If this has changed, the store opens again
 * after this answer. */
void store_note_recovery(struct store *s, int in_recovery);
bool store_owners_due(struct store *s); /* a full check of the owners is due */
void store_clear_error(struct store *s);
/* An answer of a recording about the source itself: "server", "adapter", "version", "role". */
void store_inject_source(struct store *s, struct store_answer *a);
void store_set_clock(struct store *s, int64_t server_ms);
void store_choose(struct store *s, enum topic t); /* the question has changed: forgets the answer
                                                     and asks */

/* From an answer to the snapshot of its topic; and the snapshot is forgotten. */
bool store_take(struct store *s, enum topic t, struct db_reply *reply, struct err *e);
void store_clear(struct store *s, enum topic t);
void store_init_queues(struct store *s);
void store_done_queues(struct store *s);
void store_skip_seed(struct store *s);    /* the points of the past are not asked (again) */
void store_reset_queues(struct store *s); /* another source, or another time of a recording */
bool store_take_queues(struct store *s, struct db_reply *reply, struct err *e);
void store_clear_queues(struct store *s);
void store_join_times(struct store *s);
void store_clear_times(struct store *s);
struct queue_row *store_find_queue(const struct store *s, const char *queue); /* or NULL */
/* The rates of a row since `was`, ms ago; and in a store that is asked once, since a kept point. */
void store_set_rates(struct queue_row *q, const struct queue_row *was, int64_t ms);
void store_rate_points(const struct store *s, struct queue_row *q);
void store_keep_points(struct store *s, struct rowset *rates); /* takes them over */
void store_forget_pace(struct queue_row *q);
/* The figures of five minutes in a row: store_carry_pace copies them from the row of the last
 * answer, store_see_pace makes them from the counters that this console has seen. */
void store_carry_pace(struct queue_row *q, const struct queue_row *was);
void store_see_pace(const struct store *s, struct queue_row *q);
void store_join_pace(struct store *s);
void store_clear_pace(struct store *s);
void store_join_finals(struct store *s);
void store_clear_finals(struct store *s);
void store_aim_steps(struct store *s); /* from which step on the next question is */
bool store_take_steps(struct store *s, struct db_reply *reply, struct err *e);
void store_clear_steps(struct store *s);
bool store_take_jobs(struct store *s, struct db_reply *reply, struct err *e);
void store_clear_jobs(struct store *s);
/* The section that the next question is, and its own time limit (0 = the usual one). */
enum section_id store_jobs_section(const struct store *s);
int store_jobs_timeout_ms(const struct store *s);
void store_jobs_failed(struct store *s, const struct err *e); /* the last question */
void store_rate_health(struct store *s);
void store_note_tables(struct store *s);
void store_init_health(struct store *s);
void store_done_health(struct store *s);
void store_reset_health(struct store *s);
void store_init_jobs(struct store *s);
void store_done_jobs(struct store *s);
void store_close_window(struct store *s); /* for a recording: no row follows the recorded ones */
bool store_take_groups(struct store *s, struct db_reply *reply, struct err *e);
void store_clear_groups(struct store *s);
bool store_take_group(struct store *s, struct db_reply *reply, struct err *e);
void store_clear_group(struct store *s);
enum section_id store_groups_section(const struct store *s, enum section_id sec);

#endif
