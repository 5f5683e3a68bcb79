/* What an operator should look at, from the snapshots that are there: by the scale of verdict.h,
 * BAD first. Each alert has a place: the screen and the row that it is about, and the key that
 * helps there. Pure: reads the store, asks nothing. */
#ifndef UI_FACTS_ATTENTION_H
#define UI_FACTS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "model/store/store.h"
#include "ui/facts/verdict.h"

enum { ALERTS_MOST = 24, ALERT_SCREENS = 10 };

struct alert {
    enum condition_id id;
    enum verdict verdict; /* WARN or BAD */
    int screen;           /* the digit of the screen that has the row */
    const char *row;      /* id of the row, "" = none; on Failed: the queue */
    const char *where; /* queue, node, schedule; or who is not there. All texts are in the arena */
    bool is_words;     /* `where` holds words of ours, not a name: it is not cut */
    bool is_missing;   /* `where` says who is not there: "no worker" */
    const char *what;  /* sentence */
    const char *key;   /* the key that helps, "" = none */
    const char *act;   /* what the key does */
};

struct attention {
    struct alert alerts[ALERTS_MOST]; /* the worst alerts */
    int n, bad, warn;                 /* n: in the array; bad, warn: among all alerts */
    enum verdict screens[ALERT_SCREENS];
};

/* foreign: another queue system. A node of unknown state is then no trouble, because most other
 * systems keep no heartbeats. */
struct attention_of {
    int64_t now_ms;
    bool foreign, utc;
};
void attention(const struct store *s, const struct attention_of *of, struct arena *mem,
               struct attention *out);
/* The same text for the same trouble in a later look: screen, row, where, act. The caller frees. */
char *alert_key(const struct alert *alert);

#endif
