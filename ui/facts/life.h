/* Whether anybody works at all: jobs wait and no worker is alive; or the scheduler is gone and
 * something depends on it. Pure: rows in, sentences out. */
#ifndef UI_FACTS_LIFE_H
#define UI_FACTS_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/record.h"
#include "model/base/mem.h"
#include "model/store/conditions.h"
#include "model/store/store.h"

enum {
    LIFE_PATIENCE_MS = 15000, /* a job that has waited for less is no sign of trouble */
    LIFE_SCHEDULER_MS = 30000 /* a scheduler without a sign of life for less is no trouble */
};

struct life_look {              /* the rows that were read; no row = no sign */
    const struct life_row *row; /* NULL: the nodes decide, if they have heartbeats */
    const struct queue_row *queues;
    const struct node_row *nodes;
    int nqueues, nnodes;
    bool completes; /* jobs were completed in the last seconds */
    int64_t now_ms;
};

struct trouble {
    const char *where;    /* who is missing: "no worker or scheduler" */
    const char *what;     /* the consequence, and how to start one */
    enum condition_id id; /* WORKER, SCHEDULER; TURN: a transaction keeps the scheduler waiting */
    const char *row;      /* TURN: the session that should be ended; "" = none */
};
enum { TROUBLES_MAX = 2 };
/* Fills out with the troubles; the texts live in mem. Returns their number. */
int life_troubles(const struct life_look *l, struct arena *mem, struct trouble out[TROUBLES_MAX]);

/* What is wrong with the whole installation: there are more queue names than max_queues (bad), or
 * counters must still be counted again after a restore (a warning). "" = all is well. */
struct shortfalls {
    const char *unserved, *counting;
};
struct shortfalls life_shortfalls(const struct life_row *row, int64_t now_ms, struct arena *mem);

/* The same as life_troubles(), from the rows in the store. Overdue schedules count even if the
 * queues are not known. */
int life_of_store(const struct store *s, int64_t now_ms, struct arena *mem,
                  struct trouble out[TROUBLES_MAX]);

#endif
