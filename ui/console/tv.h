/* --tv: the console on a screen on the wall, where nobody types. The screens take turns. Above them
 * is a verdict and, if there is room, figures that can be read from far away. Only the key q works,
 * and no box opens. */
#ifndef UI_CONSOLE_TV_H
#define UI_CONSOLE_TV_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/term/grid.h"

struct app;
struct key;

struct tv { /* tv.c */
    int page;
    int64_t turn_ms; /* when the next page is due; monotonic, 0 = not begun */
    int64_t well_ms; /* since when all is well, by the server's clock; 0 = all is not well */
};

void tv_key(struct app *a, const struct key *k);
void tv_turn(struct app *a);        /* called each turn of the loop */
int tv_height(const struct app *a); /* rows that the figures take; 0 = no room */
void tv_draw(struct app *a);        /* draws all but the screen in front */

#endif
