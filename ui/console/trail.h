/* The places where the user was, as in a browser. A place is a stack of screens with their filters
 * and the selected row. Going back makes these screens again and asks for their data again. */
#ifndef UI_CONSOLE_TRAIL_H
#define UI_CONSOLE_TRAIL_H

#include <stdbool.h>

#include "ui/console/view.h"

enum { TRAIL_PLACES = 32, TRAIL_DEPTH = 12 };

struct trail_place {
    int source;
    int depth;
    char *name[TRAIL_DEPTH], *arg[TRAIL_DEPTH], *id[TRAIL_DEPTH]; /* id: the selected row */
};
struct trail {
    struct trail_place places[TRAIL_PLACES];
    int n, at;    /* at: the index of the present place; n if the place is not noted yet */
    bool walking; /* the user goes back or forward: nothing is noted */
};

void trail_note(struct app *a); /* call before the user goes elsewhere; forgets the places ahead */
/* Call before one view is taken off the stack. The view below is a place that the user comes back
 * to, so no new place is noted. */
void trail_rise(struct app *a);
/* True if the place before this one is the same without its last view. */
bool trail_is_below(const struct app *a);
bool trail_back(struct app *a);          /* false: there is no place before this one */
void trail_hold(struct app *a, bool on); /* while on, no place is noted */
void trail_done(struct trail *t);

#endif
