/* What an operator should look at now, from the snapshots that are there: dead nodes, queues that
 * wait too long, that fail, that are paused. Pure: reads the store, asks nothing. */
#ifndef UI_FACTS_ATTENTION_H
#define UI_FACTS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "model/store/store.h"

enum { OLD_MS = 60000, VERY_OLD_MS = 900000 }; /* ages of the oldest ready job: warning, bad */

struct alert {
    bool bad;           /* else a warning */
    const char *where;  /* queue or node; borrowed from the store; or who is not there */
    bool is_words;      /* `where` holds words of ours, not a name: it is not cut */
    const char *what;   /* sentence; in the arena */
    const char *advice; /* which key helps */
};
/* The most urgent first; returns how many there are, at most max. foreign: a node that does not
 * register is not reported, because most other systems keep no heartbeats. */
int attention(const struct store *s, int64_t now_ms, bool foreign, struct arena *mem,
              struct alert *out, int max);

#endif
