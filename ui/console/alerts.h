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

/* --- the program --- */

/* Runs a program of the user's when alerts come and go (`alert_program` of the configuration).
 * The program is started without a shell and without arguments; its standard input has one JSON
 * object a line:   event   appeared, changed (another level) or gone   level   bad or warn
 * source, screen, row, where, what   as on the screen; screen is a word of `:`   for_ms  for how
 * long the alert has been there; of one that is gone: for how long it was An alert is reported
 * when it has been there, or away, for `alert_after`. The program runs at most once in that
 * time, never twice at once, and RUN_MS at the longest. While there is no connection, nothing is
 * gone; the lost connection is an alert itself. A run that fails (an exit code, a signal,
 * RUN_MS, no start) has reported nothing: the program is run again, with the alerts as they are
 * then. Each wait is twice the one before, at most five minutes. */

struct app;
struct alert_hook;

/* NULL: there is no such program, and a message says so. */
struct alert_hook *alert_hook_new(struct app *a, const char *program, int64_t after_ms);
void alert_hook_free(struct alert_hook *h);
void alert_hook_turn(struct alert_hook *h); /* called each turn of the loop */

#endif
