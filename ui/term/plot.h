/* Charts over time, a column a step: areas in eighths of a cell with a line over them, and heat
 * maps. Pure drawing: nothing here knows a queue. Values are doubles, oldest first; NAN = not
 * known: the column stays blank, a zero is a dot. The last column is a step that is not over: it is
 * dim. Ticks are 1, 2 or 5 of a power of ten (of a second, minute, hour or day for times), times
 * are clock times. Nothing is stretched: with less room than columns the last ones are shown. */
#ifndef UI_TERM_PLOT_H
#define UI_TERM_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/term/fmt.h"
#include "ui/term/grid.h"

enum { PLOT_LABEL_W = 6, PLOT_EDGES = PLOT_LABEL_W + 4 }; /* of a panel, beside its columns */

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

/* The least tick of 1, 2 or 5 times a power of ten that is not below max; 1 for nothing. */
double plot_tick(double max);
double plot_tick_ms(double max_ms); /* the same for a length of time */

struct plot {
    const char *title, *corner; /* at the left and at the right of the upper border */
    enum role role;
    const double *area, *line; /* line NULL = none */
    bool is_time;              /* values are milliseconds */
    const char *none;          /* said where nothing is known; NULL = nothing is */
};
void plot_panel(struct grid *g, struct rect r, const struct plot_axis *axis, const struct plot *p);

struct heat {
    const char *title, *corner;
    const int (*counts)[64];         /* a column each: how many in each bucket */
    double (*bucket_ms)(int bucket); /* where a bucket begins */
    enum role (*role)(double ms);    /* of the row that begins there; NULL = ROLE_CHART */
    const char *none;
};
void plot_heat(struct grid *g, struct rect r, const struct plot_axis *axis, const struct heat *h);

#endif
