/* The canary of a requeue: a few of its jobs are requeued first, ahead of the jobs that wait. The
 * user sees the outcome of these few before he is asked about the rest:
 *   CHOOSING -> TRYING -> WATCHING -> COUNTING -> ASKING, at the end OVER
 * This makes two actions, each with its own uuid; the reason of the second names the first. The few
 * are requeued by their ids. The rest are the jobs that the whole requeue counted at that time;
 * jobs that have changed since are left alone. No callbacks: the owner calls canary_update after
 * each turn of the loop. */
#ifndef MODEL_ACTION_CANARY_H
#define MODEL_ACTION_CANARY_H

#include "model/action/action.h"

enum {
    CANARY_FROM = 100, /* with this many jobs or more, a dialog begins with a canary */
    CANARY_JOBS = 10,
    CANARY_MOST = 100, /* jobs of a canary at most: they are watched one by one */
    CANARY_WAIT_MS = 60000
};

enum canary_state {
    CANARY_CHOOSING, /* which jobs are tried */
    CANARY_TRYING,   /* they are being requeued */
    CANARY_WATCHING, /* waits until each has ended, or the time is over */
    CANARY_COUNTING, /* counts the rest */
    CANARY_ASKING,   /* the verdict and the count are there: canary_take_rest, or canary_stop */
    CANARY_OVER      /* nothing is left to ask; canary_summary says why */
};

enum tried_state {
    TRIED_WAITS,
    TRIED_RUNS,
    TRIED_DONE,
    TRIED_FAILED,
    TRIED_GONE,     /* discarded, cancelled, or no longer to be found */
    TRIED_NOT_KEPT, /* completed or removed: its queue keeps no finished jobs, so nobody knows
                       which. It has not failed, because failed jobs stay */
    TRIED_STATES
};

struct tried_job {
    char *id, *queue, *node, *error; /* never NULL; foreign text */
    enum tried_state state;
    int64_t run_ms; /* if it is done; FIELD_NULL = not known */
};

enum canary_hope {
    HOPE_GOOD,    /* all that were tried are done, or at least none of them failed */
    HOPE_SOME,    /* most are done */
    HOPE_LITTLE,  /* many failed again */
    HOPE_NONE,    /* all failed again: the cause is still there */
    HOPE_UNKNOWN, /* none failed, but some have not ended */
};

struct canary_verdict {
    enum canary_hope hope;
    int tried, by_state[TRIED_STATES];
    bool same_error; /* all that failed again have the same error, apart from numbers in it */
};

/* Chooses the places in a list of `total` jobs that are tried: the first, the last and others at
 * equal distances between. Fills at most n places, and returns how many. */
int canary_places(int64_t total, int n, int64_t *places);
struct canary_verdict canary_judge(const struct tried_job *jobs, int n);
/* "9 of 10 are done, 1 failed again: the cause seems gone". waited_ms: how long it waited for
 * those that have not ended. */
void canary_say(const struct canary_verdict *v, int64_t waited_ms, struct buf *out);
/* Why jobs that wait can't start, by the answers of the sections queues, life and nodes: a queue is
 * paused, or no worker takes it. NULL = nothing is known; else the caller frees. */
char *canary_find_obstacle(const struct tried_job *jobs, int n, const struct rowset *queues,
                           const struct rowset *life, const struct rowset *nodes);

struct canary;
/* Whether some of the jobs of a previewed action can be tried first: this system can put jobs ahead
 * of others and shows what becomes of them, and no finished jobs are among them. */
bool canary_fits(const struct action *whole);
/* Takes over the action, for which canary_fits must be true. Tries at most n jobs, and watches them
 * for wait_ms at most. */
struct canary *canary_new(struct action *whole, int n, int wait_ms);
/* Call it before the actor is freed. */
void canary_free(struct canary *c);
void canary_update(struct canary *c);
/* Stops the canary. The jobs that were tried stay requeued; no other job is requeued. */
void canary_stop(struct canary *c);

uint64_t canary_generation(const struct canary *c);
enum canary_state canary_state(const struct canary *c);
/* The requeue as a whole, for its sentences; and that of the few, NULL until they are chosen. */
const struct action *canary_whole(const struct canary *c);
const struct action *canary_first(const struct canary *c);
const struct tried_job *canary_jobs(const struct canary *c, int *n);
int canary_wanted(const struct canary *c); /* how many jobs are tried at most */
int64_t canary_waited_ms(const struct canary *c);
int64_t canary_wait_ms(const struct canary *c);
struct canary_verdict canary_verdict(const struct canary *c);
/* Why its jobs can't start, and what to do; NULL = no reason is known. */
const char *canary_obstacle(const struct canary *c);
/* The connection is lost: a sentence; NULL = it is not. */
const char *canary_away(const struct canary *c);
/* ASKING: the rest, previewed. */
const struct action *canary_rest(const struct canary *c);
/* The same rest with other options: it is counted again. */
void canary_rest_again(struct canary *c, const struct act_options *o);
/* The rest. The caller owns it and starts it; the canary is then OVER. */
struct action *canary_take_rest(struct canary *c);
/* OVER: what was done and what was not, one sentence; and whether it ended well. */
const char *canary_summary(const struct canary *c);
bool canary_failed(const struct canary *c);
int canary_exit_code(const struct canary *c); /* OVER: the exit code of the verb */

#endif
