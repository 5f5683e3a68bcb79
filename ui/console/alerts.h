/* What needs attention: the counts in the header, the marks of the tabs, the rows of a screen, and
 * the walk through them. It is found once for each answer of the source. */
#ifndef UI_CONSOLE_ALERTS_H
#define UI_CONSOLE_ALERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "ui/facts/attention.h"
#include "ui/term/grid.h"

struct app;

/* From this age on the header names the age of the data, and they allow no verdict on this moment.
 */
enum { DATA_OLD_MS = 5000 };

struct alerts {
    struct attention now;
    struct arena *mem;
    const struct store *store; /* the store, generation and time that `now` was made from */
    uint64_t seen;
    int64_t at_ms;
    int64_t well_ms;     /* since when there has been no alert; 0 = there are some */
    char *last;          /* the row of the alert that the walk is at */
    int last_screen, at; /* the screen of `last`; the place of its alert among all */
    bool walking;        /* the walk opened the screen in front: Esc ends the walk */
};

const struct attention *app_attention(struct app *a);
void alerts_done(struct alerts *l);
/* The age of the queues' data if it is DATA_OLD_MS or more, else 0. */
int64_t alerts_old_ms(const struct app *a);
/* Draws a rule with a title, then as many alerts as have room. `at`: the alert with the cursor, -1
 * = none. Returns the number of alerts that are shown. */
int alerts_draw(struct app *a, struct grid *g, struct rect r, int at);
void alerts_open(struct app *a, int i); /* opens the screen of alert i and selects its row */
void alerts_leave(struct app *a);       /* the walk has ended */
void on_alert(struct app *a, int arg);
const char *no_alert(const struct app *a, int arg);

#endif
