/* One row above the jobs: their states with counts. Left and Right select a state, Enter filters
 * by it. */
#ifndef UI_SCREEN_JOBS_STRIP_H
#define UI_SCREEN_JOBS_STRIP_H

#include "model/store/store.h"
#include "ui/term/grid.h"
#include "ui/widget/list.h"

struct jobs_strip { /* starts as {0} */
    bool focus;     /* the strip gets the key Enter */
    int at;         /* the state under its cursor: 0 = all states */
    int listed;     /* rows of the list below, set before each frame */
};
/* Moves the cursor to the next state that this queue system has; false = there is none. */
bool jobs_strip_step(struct jobs_strip *s, const struct adapter *a, const struct filter *f,
                     int step);
/* The state under the cursor; NULL = all. */
const char *jobs_strip_state(const struct jobs_strip *s);
/* The counts are those of the queue that the filter names, or of all queues. A filter that has more
 * than queue and states shows no counts. */
void jobs_strip_draw(const struct jobs_strip *s, const struct store *store, const struct adapter *a,
                     const struct filter *f, struct grid *g, struct rect r);

/* --- the place of a job --- */

/* The place of the cursor in the list of jobs ("12 of 345"), as far as it is known. */

void jobs_say_place(const struct store *s, const struct filter *f, const struct list *l,
                    struct buf *out); /* "12 of 345" */
/* The order of the rows in words, from the note "order" of the adapter's section jobs. The note has
 * clauses `STATES: words`; the first clause that fits counts. STATES is "queue" (fits if the filter
 * names one), or "*" (always fits), or a list of states (fits if it has all states of the filter).
 * "" = the adapter does not say. */
struct fmt_order {
    char s[60];
};
struct fmt_order jobs_say_order(const struct adapter *a, const struct filter *f);

#endif
