/* What a queue did over time, as points of its charts: what came in and went out, what waited,
 * how long jobs waited and ran. A span of ten minutes comes from model/store/history, which begins
 * with the points that the scheduler kept. Longer spans come from the store's topic of steps, which
 * somebody must ask for. Pure: snapshots in, columns out. */
#ifndef UI_FACTS_CHART_POINTS_H
#define UI_FACTS_CHART_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/store/store.h"

enum span { SPAN_HOUR, SPAN_DAY, SPAN_WEEK, SPAN_10_MINUTES, SPANS };
const char *span_name(enum span span); /* "10 min", "1 h", "24 h", "7 d" */
int64_t span_step_ms(enum span span);

enum { CHART_STEPS = STEPS_SHOWN };
struct chart_points {
    int64_t first_ms, step_ms; /* of the first column; each column */
    /* Jobs per second, and jobs; oldest first, NAN = not known. */
    double in[CHART_STEPS], out[CHART_STEPS], failed[CHART_STEPS], backlog[CHART_STEPS];
    double oldest[CHART_STEPS]; /* ms; of ten minutes only */
    bool has_times;             /* the system keeps histograms, and the span shows them */
    int waits[CHART_STEPS][TIME_BUCKETS], runs[CHART_STEPS][TIME_BUCKETS];
    int known; /* columns in use */
};
/* queue "" = all queues together, only for ten minutes. */
void chart_read(const struct store *s, const char *queue, enum span span, int64_t now_ms,
                struct chart_points *out);

/* The median or another percentile over at least the last ten minutes, in ms; NAN = nothing
 * completed. */
double chart_percentile(const int (*counts)[TIME_BUCKETS], int64_t step_ms, double part);

/* Jobs a second by which the backlog grows over the last tenth of the span; NAN = not known. */
double chart_growth(const struct chart_points *c);

#endif
