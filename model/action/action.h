/* One administrative action, from the intent to the counted outcome:
 *   intent -> PREVIEWING -> READY (effects, count, what to confirm) -> RUNNING -> DONE
 * Each batch is its own short transaction. An answer that was lost is asked again with the same
 * (action, batch): the server then repeats its answer and changes nothing twice. The console and
 * the command line show the same sentences, because both take them from here. No callbacks: the
 * owner watches action_generation after each turn of the loop.
 *
 * Another queue system knows no (action, batch), keeps no record and has no previews. There the
 * preview runs the act itself and rolls it back. The statement has a guard of its own: an id that
 * is missing in the answer was left alone by the guard. The guard also makes it safe to send a
 * batch again. */
#ifndef MODEL_ACTION_ACTION_H
#define MODEL_ACTION_ACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/adapter.h"
#include "model/adapter/filter.h"
#include "model/adapter/params.h"
#include "model/adapter/record.h"
#include "model/base/loop.h"
#include "model/base/mem.h"
#include "model/db/db.h"

enum act { /* the rows of model/adapter/acts.def */
#define ACT(id, by_ids, by_where, preview, info, verb, keys) ACT_##id,
#include "model/adapter/acts.def"
           ACT_COUNT
};

struct act_info {
    /* the sections of an adapter that do the act; SEC_COUNT = none */
    enum section_id by_ids, by_where, preview;
    const char *name;        /* "requeue" */
    const char *title;       /* "Requeue jobs" */
    const char *doing;       /* "Requeueing" */
    const char *noun;        /* what is counted: "job" */
    const char *undo;        /* how it can be taken back, or that it can't */
    bool harmless;           /* false = it can't be undone: the user must type the challenge */
    const char *becomes;     /* the state that rows come into, if there is no preview section */
    enum param target;       /* names the one thing that it changes; PARAM_IDS = it changes jobs */
    bool once;               /* all in one batch */
    bool says_why;           /* the outcome also tells why a row changed */
    int able;                /* position in `queuetop adapter list`, 0 = not listed */
    const char *able_by_ids; /* its word in that list if it is done by ids; NULL = the same word */
};
extern const struct act_info act_infos[ACT_COUNT];

/* The least that people may give without saying that they mean it: an hour. */
enum { PURGE_LEAST_MS = 3600000 };

struct intent { /* all borrowed for the call of action_new */
    enum act act;
    const char *const *ids; /* full ids; NULL = the predicate */
    int nids;
    const struct params
        *where; /* predicate: queue, states, kind, error, words, ... (a filter's terms) */
    const char *queue, *node; /* pause, resume, purge; release, extend, drain */
    const char *schedule;     /* cron acts: its name */
    const char *settings;     /* queue, cron set, push: a JSON object; edit: {"version"} */
    const char *payload;      /* edit, push; cron set: NULL = do not change it */
    const char *pid;          /* backend acts: the process; settings = {"act", "shown", "who"} */
    const char *about;        /* lines for the question, beside the preview; "! " = a warning */
    bool typed;               /* always asks for the typed challenge */
    int64_t by_ms;            /* extend; requeue: spread over it; time: from now, 0 = now */
    int64_t at_ms;            /* time: when the jobs become due; 0 = by_ms is used */
    const char *priority;     /* a number that act_priority_fits */
    const char *of;           /* undo: the action that is to be undone */
    int64_t older_than_ms;    /* purge */
    bool all_leases;          /* release: also leases that have not expired */
    bool fail;                /* release: to failed instead of back */
    bool no_count;            /* release: the lost try does not count */
    bool force;               /* release: also of a live node; pause, resume: a name without jobs */
    bool reset;               /* requeue: tries start over */
    int64_t expected;         /* do nothing if the preview counts another number; -1 = any */
    const char *reason;       /* NULL = none */
    int give_up_ms;           /* after a lost connection: how long to try again; 0 = until
                                 action_stop */
    int batch_size;           /* 0 = 500 ids or 1000 rows; a purge takes more while that is quick */
};

enum action_state {
    ACTION_PREVIEWING,
    ACTION_READY, /* previewed; waits for action_start or action_free */
    ACTION_RUNNING,
    ACTION_WAITING, /* running, but the connection is lost: asks again when it is back */
    ACTION_DONE,    /* all batches done; some rows may have been skipped */
    ACTION_STOPPED, /* stopped after a batch: what is done stays done */
    ACTION_REFUSED, /* a guard refused the act, nothing changed (action_error) */
    ACTION_FAILED,  /* preview or a batch failed (action_error); earlier batches stay done */
    ACTION_DOUBTFUL /* given up while an answer was missing: the audit has the outcome (action_id)
                     */
};

enum confirm {                  /* the ladder: action_confirm */
               CONFIRM_NOTHING, /* nothing would change: there is nothing to confirm */
               CONFIRM_KEY,     /* one reversible row: y */
               CONFIRM_DIALOG,  /* 2 to 99 reversible rows: default is no */
               CONFIRM_TYPE     /* 100 or more, irreversible, production, or alive: type
                                   action_challenge */
};

struct progress {
    int64_t changed, skipped; /* so far */
    int64_t total;            /* from the preview */
    int batches;
    double rate;        /* rows a second; NAN while unknown */
    int64_t left_ms;    /* estimate; -1 = unknown */
    int64_t slowest_us; /* batch */
};

struct action;
/* What the user can change in the question. action_again makes a new action with these options: the
 * same request with another uuid, previewed anew. The old action is not changed. */
struct act_options {
    int64_t spread_ms; /* requeue: 0 = at once */
    bool reset;        /* requeue */
    const char *reason;
};
struct act_options action_options(const struct action *a);
struct action *action_again(const struct action *a, const struct act_options *o);
bool action_has_reason(const struct action *a);

/* Makes an action and asks for its preview at once, on the actor. The db and the adapter are
 * borrowed. */
struct action *action_new(struct loop *l, struct db *actor, const struct adapter *a,
                          const struct intent *intent);
/* Call it before the actor is freed. The answer of a batch that is under way is thrown away. */
void action_free(struct action *a);

uint64_t action_generation(const struct action *a);
enum action_state action_state(const struct action *a);
const struct err *action_error(const struct action *a);
const char *action_id(const struct action *a); /* the uuid in the audit */
enum act action_act(const struct action *a);

/* The preview: from READY on. */
int64_t action_count(const struct action *a);  /* rows that would change, exact */
int64_t action_hollow(const struct action *a); /* release: of these rows, leases without a job */
int64_t action_skips(const struct action *a);
const struct effect_row *action_effects(const struct action *a, int *n);
const struct node_row *
action_evidence(const struct action *a);           /* release, drain: the node; or NULL */
bool action_looks_alive(const struct action *a);   /* release: the node seems to live */
int64_t action_counted_ms(const struct action *a); /* the server's clock at the preview */
/* True if the release would also end leases that have not expired. */
bool action_takes_held(const struct action *a);
/* Sentences, made once at the preview: what will change (one a line), where, undo, the SQL. */
const char *action_title(const struct action *a);
const char *action_what(const struct action *a);
const char *action_where(const struct action *a);
const char *action_these(const struct action *a); /* as action_where, without the time of the
                                                     count */
/* The value of this parameter in the intent; NULL = the intent has none. */
const char *action_param(const struct action *a, enum param p);
const char *action_undo(const struct action *a);
const char *action_about(const struct action *a); /* of the intent, "" = nothing */
/* What the user must know about this act in this system: its dangers, and whether it is official.
 * Lines; "! " begins a warning. */
const char *action_notes(const struct action *a);
const char *action_busy(const struct action *a); /* what a preview is doing, for a user who waits */
const char *action_sql(const struct action *a);
enum confirm action_confirm(const struct action *a, bool production);
const char *action_challenge(const struct action *a); /* what must be typed for CONFIRM_TYPE */

/* True if the server can check the expected count as it changes the rows. It can't if the ids go in
 * several batches, or if the act takes no count; then the server checks each id by itself. */
bool action_can_hold_count(const struct action *a);
/* If the system can check the count: the first batch fails if the count differs from that of the
 * preview. */
void action_hold_count(struct action *a);
/* Begins the batches. The console sets force if the user has typed the challenge for a live node.
 */
void action_start(struct action *a, bool force);
void action_stop(struct action *a); /* after the batch that runs; before the start: nothing
                                       changes */
struct progress action_progress(const struct action *a);
/* Why the batch under way waits: a lock and its holder, or the count that is compared before the
 * first batch. NULL = it does not wait. */
const char *action_waits(const struct action *a);
/* Skipped rows by reason, and changed rows by state; grows while it runs. */
const struct effect_row *action_outcome(const struct action *a, int *n);
/* One sentence: "402 jobs requeued, 3 skipped: 2 running, 1 not found". */
const char *action_summary(const struct action *a);
/* True if the server keeps a record of the action. If not, action_record makes one for the
 * messages. */
bool action_audited(const struct action *a);
void action_record(const struct action *a, struct buf *out);
/* The exit code of a verb for a finished action: 0, 1, 3, 4, 5, 6 (the table is in
 * queuetop(1)). */
int action_exit_code(const struct action *a);

/* Why this source can't do the act (the adapter lacks it, the role may not); NULL = it can. */
const char *act_why_not(enum act act, const struct adapter *a, const struct role_row *role);
/* True if the preview of this act runs the act itself and rolls it back. */
bool act_is_tried(enum act act, const struct adapter *a);
/* How the form marks an act. unofficial: the system has no call for it. danger: a sentence that
 * says why it is dangerous; NULL = it is not. guard: the jobs that the statement leaves alone; NULL
 * = not known. */
struct act_mark {
    bool unofficial;
    const char *danger, *guard;
};
struct act_mark act_mark(enum act act, bool by_ids, const struct adapter *a);
/* Whether the text is a priority that this queue system takes. */
bool act_priority_fits(const struct adapter *a, const char *text, struct err *e)
    __attribute__((warn_unused_result));

#endif
