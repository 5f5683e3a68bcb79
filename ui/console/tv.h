/* --tv: the console on a wall. Nobody types: the screens take turns, below a verdict and, if there
 * is room, figures that can be read from afar. No key but q does anything, and no box opens. */
#ifndef UI_CONSOLE_TV_H
#define UI_CONSOLE_TV_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/term/grid.h"

struct app;
struct key;

struct tv { /* tv.c */
    int page;
    int64_t turn_ms; /* when the next page comes; monotonic, 0 = not begun */
    int64_t well_ms; /* since when all is well, by the server's clock; 0 = it is not */
};

void tv_key(struct app *a, const struct key *k);
void tv_turn(struct app *a);        /* each turn of the loop */
int tv_height(const struct app *a); /* rows that the figures take from the screen; 0 = no room */
void tv_draw(struct app *a);        /* over the frame: all but the screen in front */

#endif
