/* The places where the user was, as in a browser. A place is a stack of screens with their filters
 * and the selected row. To go back makes these screens anew and asks for their data again. */
#ifndef UI_CONSOLE_TRAIL_H
#define UI_CONSOLE_TRAIL_H

#include <stdbool.h>

#include "ui/console/view.h"

enum { TRAIL_PLACES = 32, TRAIL_DEPTH = 12 };

struct trail_place {
    int source;
    int depth;
    char *name[TRAIL_DEPTH], *arg[TRAIL_DEPTH], *id[TRAIL_DEPTH]; /* id: of the selected row */
};
struct trail {
    struct trail_place places[TRAIL_PLACES];
    int n, at;    /* at: where we are; == n while it is not among them yet */
    bool walking; /* we go through it: nothing is noted */
};

void trail_note(struct app *a); /* before somewhere else is gone to; forgets what was ahead */
/* Before one view is taken off the stack: the view below it is a place that the user comes back
 * to, so no new place is noted. */
void trail_rise(struct app *a);
/* The place before this is this one without its last view. */
bool trail_is_below(const struct app *a);
bool trail_back(struct app *a);          /* false: nowhere was before this */
void trail_hold(struct app *a, bool on); /* nothing is noted meanwhile */
void trail_done(struct trail *t);

#endif
