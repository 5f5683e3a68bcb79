/* Charts of one queue over time, for every page that shows one: jobs in and out, backlog, how long
 * jobs waited and ran. A page draws the charts in its draw, and asks for their data in its drawn,
 * because only then does it know which queue is selected. The span is the same on all pages (key
 * x). The axis marks events: nodes that died, and acts on the queue. */
#ifndef UI_SCREEN_CHARTS_H
#define UI_SCREEN_CHARTS_H

#include "ui/console/app.h"
#include "ui/facts/chart_points.h"
#include "ui/term/plot.h"

enum { CHARTS_EVENTS = 32, CHARTS_H = 11, CHARTS_W = CHART_STEPS + PLOT_EDGES };

struct charts { /* data of one frame; too big for the stack */
    struct chart_points points;
    struct plot_axis axis;
    struct plot_event events[CHARTS_EVENTS];
    const char *queue;
    enum span span;
    bool own; /* seen by this console: the system keeps no minutes */
};

/* The charts of a queue, in the frame's memory; queue and all other pointers must stay valid for
 * the frame. */
void charts_ask(struct app *a, const char *queue);
/* In the frame's memory; queue and all else stay valid for the frame. */
const struct charts *charts_of(struct app *a, const char *queue);

/* Draws as many panels as have room side by side, beginning with panel `first` (0 in and out, 1
 * backlog, 2 wait, 3 run; without times only 0 and 1). Returns the number of the next panel, or -1
 * if there is none; *row becomes the room that is left. */
int charts_draw_row(const struct charts *c, struct app *a, struct rect *row, int first);

#endif
