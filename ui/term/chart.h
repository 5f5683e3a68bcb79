/* Small pictures made of text: sparklines, bars, braille areas. Values are doubles, the newest
 * last; NAN is a missing value and its place stays blank. Zero is a dot and any value above zero at
 * least one block, so that a single failure is visible. No bar is higher than seven eighths of a
 * cell, because a full block would touch the row above. */
#ifndef UI_TERM_CHART_H
#define UI_TERM_CHART_H

#include <stddef.h>
#include <stdint.h>

#include "ui/term/grid.h"

/* Draws the last r.w values on the first row of r, right-aligned. top: the value of a full cell; <=
 * 0: a quarter above the largest value drawn, so that a steady value does not look full. */
void chart_spark(struct grid *g, struct rect r, enum role role, const double *v, int n, double top);

/* Writes means of `per` neighbouring samples into out[w], the newest last; places without samples
 * get NAN. seen: how many samples there were since the start. Groups begin at multiples of `per` of
 * that count, so that they don't shift from one sample to the next. */
void chart_bucket(const double *v, int n, int per, int64_t seen, double *out, int w);

/* Braille area in r, two values a cell: draws the last 2 * r.w values; `top` as in chart_spark. */
void chart_area(struct grid *g, struct rect r, enum role role, const double *v, int n, double top);

/* Draws a framed area chart with labels, as on the wide Queues screen. Labels may be NULL. */
struct chart {
    const char *title;
    enum role role;
    const double *values; /* the newest last; stretched or averaged to the width */
    int n;
    double top;                                    /* the upper edge; <= 0: the largest value */
    const char *top_label, *mid_label, *low_label; /* at the left: "24k", "12k", "0" */
    const char *from_label, *mid_time, *to_label;  /* below: "-60m", "-30m", "now" */
};
void chart_panel(struct grid *g, struct rect r, const struct chart *c);

/* A bar over r.w cells filled by fraction (0 to 1). */
void chart_bar(struct grid *g, struct rect r, double fraction);

#endif
