/* A row that is to be selected in the screen in front as soon as its list has the row. It ends when
 * the screen is left or the user moves the cursor. */
#ifndef UI_CONSOLE_SEEK_H
#define UI_CONSOLE_SEEK_H

#include "ui/console/view.h"

struct seek {
    struct view *in; /* NULL = no row is sought */
    char *row;
};

/* The row with this id, or the first one whose id begins with it (Failed: queue, error). */
void seek_row(struct app *a, const char *row);
void seek_turn(struct app *a); /* after new rows */
void seek_end(struct app *a);

#endif
