/* The canary of a requeue: a few of its jobs are requeued first, ahead of those that wait, and what
 * becomes of them is shown before the rest is asked for:
 *   CHOOSING -> TRYING -> WATCHING -> COUNTING -> ASKING, at the end OVER
 * Two actions come of it, with a uuid each; the reason of the second names the first. The few are
 * requeued by their ids. The rest is what the whole requeue counted, as it was at that time: what
 * has moved on since is left alone. No callbacks: the owner calls canary_update after each turn of
 * the loop. */
#ifndef MODEL_ACTION_CANARY_H
#define MODEL_ACTION_CANARY_H

#include "model/action/action.h"

enum {
    CANARY_FROM = 100, /* jobs from which on a dialog begins with a canary */
    CANARY_JOBS = 10,
    CANARY_MOST = 100, /* jobs of a canary at most: they are watched one by one */
    CANARY_WAIT_MS = 60000
};

enum canary_state {
    CANARY_CHOOSING, /* which jobs are tried */
    CANARY_TRYING,   /* they are being requeued */
    CANARY_WATCHING, /* until each has ended, or the time is over */
    CANARY_COUNTING, /* how many the rest is */
    CANARY_ASKING,   /* the verdict and the count are there: canary_take_rest, or canary_stop */
    CANARY_OVER      /* nothing is left to ask; canary_summary says why */
};

enum tried_state { TRIED_WAITS, TRIED_RUNS, TRIED_DONE, TRIED_FAILED, TRIED_GONE, TRIED_STATES };

struct tried_job {
    char *id, *queue, *node, *error; /* never NULL; foreign text */
    enum tried_state state;
    int64_t run_ms; /* of a done one; FIELD_NULL = not known */
};

enum canary_hope {
    HOPE_GOOD,    /* all that were tried are done */
    HOPE_SOME,    /* most are done */
    HOPE_LITTLE,  /* many failed again */
    HOPE_NONE,    /* all failed again: the cause is still there */
    HOPE_UNKNOWN, /* some have not answered, and none failed */
};

struct canary_verdict {
    enum canary_hope hope;
    int tried, by_state[TRIED_STATES];
    bool same_error; /* all that failed again have the same error, but for its numbers */
};

/* Which places of a list of `total` are tried: the first, the last and some at equal steps between.
 * Fills at most n, and returns how many. */
int canary_places(int64_t total, int n, int64_t *places);
struct canary_verdict canary_judge(const struct tried_job *jobs, int n);
/* "9 of 10 are done, 1 failed again: the cause seems gone". waited_ms: for those without an
 * answer. */
void canary_say(const struct canary_verdict *v, int64_t waited_ms, struct buf *out);
/* Why jobs that wait can't start, by the answers of the sections queues, life and nodes: a queue is
 * paused, or no worker takes it. NULL = nothing is known; else the caller frees. */
char *canary_find_obstacle(const struct tried_job *jobs, int n, const struct rowset *queues,
                           const struct rowset *life, const struct rowset *nodes);

struct canary;
/* Whether some of the jobs of a previewed action can be tried first: this system can put jobs ahead
 * of others and shows what becomes of them, and no finished jobs are among them. */
bool canary_fits(const struct action *whole);
/* Takes over the action, which must fit; n jobs at most are tried, for wait_ms at most. */
struct canary *canary_new(struct action *whole, int n, int wait_ms);
/* Call it before the actor is freed. */
void canary_free(struct canary *c);
void canary_update(struct canary *c);
/* What is tried stays as it is, and nothing else is requeued. */
void canary_stop(struct canary *c);

uint64_t canary_generation(const struct canary *c);
enum canary_state canary_state(const struct canary *c);
/* The requeue as a whole, for its sentences; and that of the few, NULL until they are chosen. */
const struct action *canary_whole(const struct canary *c);
const struct action *canary_first(const struct canary *c);
const struct tried_job *canary_jobs(const struct canary *c, int *n);
int canary_wanted(const struct canary *c); /* jobs that are tried, if there are so many */
int64_t canary_waited_ms(const struct canary *c);
int64_t canary_wait_ms(const struct canary *c);
struct canary_verdict canary_verdict(const struct canary *c);
/* Why jobs of it can't start, and what to do; NULL = nothing is known against it. */
const char *canary_obstacle(const struct canary *c);
/* The connection is lost: a sentence; NULL = it is not. */
const char *canary_away(const struct canary *c);
/* ASKING: the rest, previewed. */
const struct action *canary_rest(const struct canary *c);
/* The same rest with other options: it is counted again. */
void canary_rest_again(struct canary *c, const struct act_options *o);
/* The rest, to be started by the caller, who frees it; the canary is OVER then. */
struct action *canary_take_rest(struct canary *c);
/* OVER: what was done and what was not, one sentence; and whether it ended well. */
const char *canary_summary(const struct canary *c);
bool canary_failed(const struct canary *c);
int canary_exit_code(const struct canary *c); /* OVER: of a verb */

#endif
