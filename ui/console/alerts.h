/* What needs attention, for all that shows it: the counts in the header, the marks of the tabs, the
 * rows of a screen; and the walk through it. Worked out once for each answer of the source. */
#ifndef UI_CONSOLE_ALERTS_H
#define UI_CONSOLE_ALERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "ui/facts/attention.h"
#include "ui/term/grid.h"

struct app;

struct alerts {
    struct attention now;
    struct arena *mem;
    const struct store *store; /* whose they are, as of when */
    uint64_t seen;
    int64_t at_ms;
    char *last, *seek;   /* the row gone to last; the row to select as soon as it is there */
    int last_screen, at; /* its screen; its place among the alerts */
    bool walking;        /* the screen in front was gone to by the walk: Esc ends it */
};

const struct attention *app_attention(struct app *a);
void alerts_done(struct alerts *l);
/* A rule with a title, then the alerts, as many as there is room for. */
void alerts_draw(struct app *a, struct grid *g, struct rect r);
void alerts_seek(struct app *a); /* new rows are there */
void on_alert(struct app *a, int arg);
const char *no_alert(const struct app *a, int arg);

#endif
