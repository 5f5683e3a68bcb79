/* Charts of one queue over time, for every page that shows one: in and out, what waits, how long
 * jobs waited and ran. The page draws them in its draw and asks for
 * what they need in its drawn, when it is known which queue is selected; the span is the same on
 * all pages ("x" walks it). Events on the axis: nodes that died, and what was done to the queue. */
#ifndef UI_SCREEN_CHARTS_H
#define UI_SCREEN_CHARTS_H

#include "ui/console/app.h"
#include "ui/facts/course.h"
#include "ui/term/plot.h"

enum { CHARTS_EVENTS = 32, CHARTS_H = 11, CHARTS_W = COURSE_STEPS + PLOT_EDGES };

struct charts { /* what one frame draws from; big: not on the stack of a deep call */
    struct course course;
    struct plot_axis axis;
    struct plot_event events[CHARTS_EVENTS];
    const char *queue;
    enum span span;
    bool own; /* this console saw it: the system keeps no minutes */
};

/* The store is asked for what the charts of the queue need; NULL = for nothing any more. */
void charts_ask(struct app *a, const char *queue);
/* In the frame's memory; queue and all else stay valid for the frame. */
const struct charts *charts_of(struct app *a, const char *queue);

/* As many of the four panels (in and out, backlog, wait, run), from the one of that number on, as
 * have room beside each other: more things where there is more room, and none wider than its time.
 * Returns the number of the next, or -1; *row is what they leave of it. */
int charts_draw_row(const struct charts *c, struct app *a, struct rect *row, int first);

#endif
