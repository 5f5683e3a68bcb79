/* Small pictures made of text: sparklines, bars, braille areas. Values are doubles, newest last;
 * NAN is a missing value and stays blank. Zero is a dot and anything above zero a block, so that
 * one failure can be seen. Heights end at seven eighths: a full block would touch the row above. */
#ifndef UI_TERM_CHART_H
#define UI_TERM_CHART_H

#include <stddef.h>
#include <stdint.h>

#include "ui/term/grid.h"

/* Draws the last r.w values on the first row of r, right-aligned; `top` is the value of a full
 * cell (<= 0: a quarter above the largest value drawn, so that what is steady is not full). */
void chart_spark(struct grid *g, struct rect r, enum role role, const double *v, int n, double top);

/* Means of `per` neighbouring samples, newest last, into out[w]; places without samples get NAN.
 * `seen` is how many samples there were ever: buckets begin at multiples of `per` of that count, so
 * they don't change their borders from one sample to the next. */
void chart_bucket(const double *v, int n, int per, int64_t seen, double *out, int w);

/* Braille area in r, two values a cell: draws the last 2 * r.w values; `top` as in chart_spark. */
void chart_area(struct grid *g, struct rect r, enum role role, const double *v, int n, double top);

/* A framed area chart with labels, as on the wide queues screen. Labels may be NULL. */
struct chart {
    const char *title;
    enum role role;
    const double *values; /* newest last; stretched or averaged over the width */
    int n;
    double top;                                    /* value of the upper edge; <= 0: the largest */
    const char *top_label, *mid_label, *low_label; /* at the left: "24k", "12k", "0" */
    const char *from_label, *mid_time, *to_label;  /* below: "-60m", "-30m", "now" */
};
void chart_panel(struct grid *g, struct rect r, const struct chart *c);

/* A bar over r.w cells filled by fraction (0 to 1). */
void chart_bar(struct grid *g, struct rect r, double fraction);

#endif
