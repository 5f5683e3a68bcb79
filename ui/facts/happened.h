/* What happened, as lines: the answer of the queue system together with the nodes that this console
 * has seen leaving. */
#ifndef UI_FACTS_HAPPENED_H
#define UI_FACTS_HAPPENED_H

#include "model/base/mem.h"
#include "model/store/store.h"
#include "ui/facts/verdict.h"

struct happened_line {
    const char *id, *what;                  /* what: as in struct happened_row */
    const char *word;                       /* as shown: "pause", "came", "first failed" */
    const char *target, *queue, *error_key; /* "" = none, like the next ones */
    const char *action, *who;
    const char *say; /* what was asked for and why; what the node is; the error */
    int64_t at_ms, n;
};

/* The lines of the store's answer, and the nodes that left of the queue or with the name (NULL =
 * any). They live in mem, and not longer than the store's answers. */
const struct happened_line *happened_lines(const struct store *s, const char *queue,
                                           const char *node, struct arena *mem, int *n);
/* ": 14 acts by 2 people, 3 nodes died, 5 errors": what the answer holds; ", no older ones" if it
 * is as long as it may be. */
void happened_say_sums(const struct store *s, struct buf *out);

#endif
