/* Charts over time, one column for each step: areas in eighths of a cell with a line over them, and
 * heat maps. Pure drawing: this file knows nothing of queues. Values are doubles, the oldest first.
 * NAN = not known: its column stays blank; a zero is a dot. The last column is a step that has not
 * ended: it is dim. Ticks are 1, 2 or 5 times a power of ten; for times, of a second, minute, hour
 * or day. Nothing is stretched: if there are more columns than room, only the last ones are shown.
 */
#ifndef UI_TERM_PLOT_H
#define UI_TERM_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/term/fmt.h"
#include "ui/term/grid.h"

enum { PLOT_LABEL_W = 6, PLOT_EDGES = PLOT_LABEL_W + 4 }; /* cells beside a panel's columns */

struct plot_event { /* a moment that is marked on the axis */
    int64_t at_ms;
    const char *glyph;
    enum role role;
};

struct plot_axis {
    int64_t first_ms; /* when the first column begins */
    int64_t step_ms;
    int n; /* columns */
    int64_t now_ms;
    bool utc;
    const struct plot_event *events;
    int nevents;
};

/* The least tick of 1, 2 or 5 times a power of ten that is max or more; 1 if max is not above 0. */
double plot_tick(double max);
double plot_tick_ms(double max_ms); /* the same for a duration */

struct plot {
    const char *title, *corner; /* at the left and at the right of the upper border */
    enum role role;
    const double *area, *line; /* line NULL = none */
    bool is_time;              /* values are milliseconds */
    const char *none;          /* shown if nothing is known; NULL = show nothing */
    const char *why;           /* follows "since 14:02" in the columns of which nothing is known, if
                                  there is room; NULL = nothing */
};
void plot_panel(struct grid *g, struct rect r, const struct plot_axis *axis, const struct plot *p);

struct heat {
    const char *title, *corner;
    const int (*counts)[64];         /* a column each: how many in each bucket */
    double (*bucket_ms)(int bucket); /* the lower edge of each bucket */
    enum role (*role)(double ms);    /* role of a value; NULL = ROLE_CHART */
    const char *none;
};
void plot_heat(struct grid *g, struct rect r, const struct plot_axis *axis, const struct heat *h);

#endif
