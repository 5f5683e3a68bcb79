/* Whether anybody works at all: jobs wait and no worker is alive, schedules are overdue and no
 * scheduler is. Pure: rows in, sentences out. */
#ifndef UI_FACTS_LIFE_H
#define UI_FACTS_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/record.h"
#include "model/base/mem.h"
#include "model/store/store.h"

enum { LIFE_PATIENCE_MS = 15000 }; /* a job that has waited for less says nothing */

struct life_look {              /* what was read; what is missing says nothing */
    const struct life_row *row; /* NULL: judged by the nodes, where these have heartbeats */
    const struct queue_row *queues;
    const struct node_row *nodes;
    int nqueues, nnodes;
    bool completes; /* jobs were completed in the last seconds */
    int64_t now_ms;
};

struct trouble {
    const char *where; /* who is not there: "no worker or scheduler" */
    const char *what;  /* what that means, and how to start one */
    const char *key;   /* of the screen that shows it */
};
enum { TROUBLES_MAX = 2 };
/* The texts live in mem; returns how many. */
int life_troubles(const struct life_look *l, struct arena *mem, struct trouble out[TROUBLES_MAX]);

/* What is wrong with the books of the whole system, whoever works: names above the limit of queues,
 * counters that are not proven yet. The first is bad, the second a warning. "" = all is well. */
struct shortfalls {
    const char *unserved, *counting;
};
struct shortfalls life_shortfalls(const struct life_row *row, int64_t now_ms, struct arena *mem);

/* The same as life_troubles() by what the store knows. Schedules of which a run is overdue count
 * without a word of the queues. */
int life_of_store(const struct store *s, int64_t now_ms, struct arena *mem,
                  struct trouble out[TROUBLES_MAX]);

#endif
