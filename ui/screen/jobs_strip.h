/* One row above the jobs: their states with counts. Left and Right select a state, Enter filters
 * by it. */
#ifndef UI_SCREEN_JOBS_STRIP_H
#define UI_SCREEN_JOBS_STRIP_H

#include "model/store/store.h"
#include "ui/term/grid.h"

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

#endif
