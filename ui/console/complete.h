/* What completes the word at the cursor of the filter: keys, states, and names of queues, nodes
 * and kinds. Names are those that the store has loaded; a completion asks the server nothing.
 * Kinds and nodes are collected from all windows of jobs seen so far, because the filter itself
 * removes them from the present one. */
#ifndef UI_CONSOLE_COMPLETE_H
#define UI_CONSOLE_COMPLETE_H

#include <stdbool.h>

#include "model/store/store.h"

enum { NAMES_MAX = 200, COMPLETIONS = 8 };

struct names { /* each once, in the order in which they came; the first NAMES_MAX */
    char *items[NAMES_MAX];
    int n;
};
void names_add(struct names *n, const char *name); /* unless it is empty or can't be typed */
void names_done(struct names *n);

struct known { /* what is there to offer */
    const struct adapter *adapter;
    const struct store *store;
    const struct names *kinds;
};

struct completion {
    int from, len;            /* of the text: what is replaced */
    char *items[COMPLETIONS]; /* with one of these */
    int n, more;              /* there are `more` besides */
};
/* At byte `at` of the text. Keys are those that jobs of the adapter can be asked by. words = a
 * table without keys: only names complete. */
void complete(struct completion *c, const struct known *known, const char *text, int at,
              bool words);
/* A name that the rest of the text, from byte `from`, begins with: of these kinds of things. */
enum {
    NAMES_QUEUES = 1,
    NAMES_NODES = 2,
    NAMES_SCHEDULES = 4,
    NAMES_JOBS = 8,
    NAMES_KINDS = 16 /* what known->kinds holds */
};
void complete_names(struct completion *c, const struct known *known, const char *text, int from,
                    unsigned kinds);
void complete_done(struct completion *c); /* may be called twice */

#endif
