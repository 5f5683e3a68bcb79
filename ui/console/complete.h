/* Completes the word at the cursor of the filter with keys, states, and names of queues, nodes and
 * kinds. Names are those that the store has loaded; a completion asks the server nothing. Kinds and
 * nodes are collected from all windows of jobs seen so far, because the filter itself removes them
 * from the present one. */
#ifndef UI_CONSOLE_COMPLETE_H
#define UI_CONSOLE_COMPLETE_H

#include <stdbool.h>

#include "model/store/store.h"

enum { NAMES_MAX = 200, COMPLETIONS = 8 };

struct names { /* each once, in the order in which they came; the first NAMES_MAX */
    char *items[NAMES_MAX];
    int n;
};
void names_add(struct names *n, const char *name); /* not if empty or not typeable */
void names_done(struct names *n);

struct known { /* sources of what can be offered */
    const struct adapter *adapter;
    const struct store *store;
    const struct names *kinds;
};

struct completion {
    int from, len;            /* bytes of the text that an item replaces */
    char *items[COMPLETIONS]; /* what can replace them */
    int n, more;              /* `more` items have no place here */
};
/* Completes the term at byte `at` of the text. Only keys that the adapter can filter jobs by are
 * offered. words: the table has no keys, so only names are offered. */
void complete(struct completion *c, const struct known *known, const char *text, int at,
              bool words);
/* Offers names of these kinds of things that begin with the text from byte `from` on. */
enum {
    NAMES_QUEUES = 1,
    NAMES_NODES = 2,
    NAMES_SCHEDULES = 4,
    NAMES_JOBS = 8,
    NAMES_KINDS = 16 /* names in known->kinds */
};
void complete_names(struct completion *c, const struct known *known, const char *text, int from,
                    unsigned kinds);
void complete_done(struct completion *c); /* may be called twice for the same value */

#endif
