/* The inside of an action, for its own files only: action_request.c (from the intent to a section
 * and its parameters), action_preview.c (what would happen), action.c (batches), action_outcome.c
 * (what came of them, counted), action_view.c (what a dialog reads), action_text.c (the words). */
#ifndef MODEL_ACTION_ACTION_PARTS_H
#define MODEL_ACTION_ACTION_PARTS_H

#include "model/action/action.h"
#include "model/base/mem.h"

/* The time limit of a count. It is long, because a count of millions takes time, also on a server
 * in trouble; Esc ends it. */
enum { ACTION_COUNT_MS = 120000 };

struct row_counts { /* rows by (state, why); it owns the strings */
    struct effect_row *rows;
    char **texts; /* state and why of a row, one after the other */
    int n, cap;
};
void row_counts_add(struct row_counts *t, const char *state, const char *why, int64_t n);
void row_counts_clear(struct row_counts *t);
/* Sum of the rows that changed (state is not empty), or of the others. */
int64_t row_counts_sum(const struct row_counts *t, bool changed);

/* action_request.c: which rows */
struct action_rows {
    char **ids; /* NULL = by predicate */
    int n, cap;
    bool gather; /* the section does not take the whole predicate: ids are looked up first */
    struct params search; /* the predicate of that look-up */
    bool frozen;          /* its predicate or its ids are taken from an earlier preview */
};

/* action_request.c: how it is done */
struct action_how {
    int give_up_ms, batch_size;
    bool all_leases, typed;
    bool keeps_changed;  /* the ids of the rows that changed */
    char *reason_prefix; /* text before the user's reason; NULL = none */
    char *about;         /* NULL = nothing */
    int64_t older_than_ms;
    int64_t spread_ms;
    int64_t at_ms; /* act "time": the point in time that the intent names; 0 = none */
    int64_t in_ms; /* otherwise: how long after the preview; 0 = at once */
};

/* action_preview.c, action_view.c: what it would change */
struct action_preview {
    int64_t expected;
    int64_t now_ms;  /* the server's clock at the preview */
    int64_t took_us; /* how long the count took */
    bool no_node;    /* no node has this name, and no lease is held under it */
    bool no_queue;   /* no job was ever seen in the queue that the predicate names */
    struct row_counts effects;
    struct rowset nodes; /* evidence */
    const struct node_row *evidence;
    char *what, *where, *these, *notes, *sql, *summary, *challenge;
    char *busy; /* what the preview is doing; NULL = counting */
};

/* action.c: the batches */
struct action_run {
    int batch, at, tries; /* batch under way, first id of it, how often it was asked */
    int chunk;            /* ids in it */
    int narrow;           /* most ids in the next batch, after a duplicate; 0 = batch_size */
    bool clash;           /* a job of the batch has the unique key of another job */
    bool was_lost;        /* an answer was lost, and its batch was asked again */
    bool stop, in_doubt;
    char *waits; /* who blocks the batch, or why it takes long; NULL = nothing */
    int64_t started_ms, lost_ms, slowest_us;
};

/* action_outcome.c: what it has changed */
struct action_done {
    struct row_counts counts;
    char **ids; /* if how.keeps_changed: the ids of the rows that changed */
    int n;
};

struct action {
    struct loop *loop;
    struct db *db;
    const struct adapter *adapter;
    int serial; /* adapter_serial() at the preview */
    enum act act;
    struct params params; /* of the preview and of every batch */
    char id[40];
    enum section_id section;
    bool audited; /* the server keeps a record, and knows a batch that is asked again */
    struct action_rows rows;
    struct action_how how;
    struct action_preview preview;
    struct action_run run;
    struct action_done done;

    enum action_state state;
    uint64_t generation;
    struct err error;
    bool orphan; /* freed while a call had no answer: that answer frees the memory */
    int calls;   /* calls that have no answer yet */
    int timer;   /* 0 = none */
};

void action_touch(struct action *a);
/* Sends a call, whose answer comes to fn, and adds it to a->calls. */
void action_ask(struct action *a, const struct db_call *call, int wait_ms, db_reply_fn *fn);
/* If the adapter has changed since the preview (after a new connection), this ends the action. */
bool action_has_moved(struct action *a);
/* Call it at the start of each answer. False: the action was freed, so return at once. */
bool action_answered(struct action *a);
void action_end(struct action *a, enum action_state state, const struct err *e);

/* For a canary. action_few requeues some of the jobs by id, ahead of other jobs. action_rest
 * requeues the jobs that the whole action counted, without those few. Each is a new action with a
 * preview of its own; its reason begins with the prefix. */
struct action *action_few(const struct action *whole, const char *const *ids, int n,
                          const char *prefix);
struct action *action_rest(const struct action *whole, const char *const *without, int n,
                           const char *prefix);
void action_preview(struct action *a);
void action_sort_ids(struct action *a);
/* If there is no preview section: run the batches themselves, and roll each back. */
void action_try(struct action *a);
void action_tried(struct action *a);     /* the last of these batches was answered */
void action_previewed(struct action *a); /* the effects are known */
/* Reports progress of the preview: what it does, and how far it is (n of `of`; of = 0: the total is
 * not known). */
void action_is_busy(struct action *a, const char *what, int n, int of);
/* Adds the answer of a batch to effects or outcome. Ids that are missing in the answer count as
 * left alone. */
void action_count_rows(struct action *a, const struct rowset *rows);
/* Counts the one id of the batch as left alone: another job has its unique key. */
void action_add_duplicate(struct action *a, const struct err *e);
char *action_make_notes(const struct action *a);
/* A note of the section in use, NULL = none. */
const char *action_note(const struct action *a, const char *key);
/* "4,000 jobs"; noun NULL: the number alone. */
void action_add_count(struct buf *b, int64_t n, const char *noun);
void action_make_texts(struct action *a);
void action_make_summary(struct action *a);

#endif
