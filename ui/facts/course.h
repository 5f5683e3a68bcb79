/* What a queue did over time, as points of its charts: what came in and went out, what waited,
 * how long jobs waited and ran. A span of ten minutes comes from model/store/history, which begins
 * with the points that the scheduler kept. Longer spans come from the store's topic of steps, which
 * somebody must ask for. Pure: snapshots in, columns out. */
#ifndef UI_FACTS_COURSE_H
#define UI_FACTS_COURSE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/store/store.h"

enum span { SPAN_HOUR, SPAN_DAY, SPAN_WEEK, SPAN_10_MINUTES, SPANS };
const char *span_name(enum span span); /* "10 min", "1 h", "24 h", "7 d" */
int64_t span_step_ms(enum span span);

enum { COURSE_STEPS = STEPS_SHOWN };
struct course {
    int64_t first_ms, step_ms; /* of the first column; each column */
    /* Jobs per second, and jobs; oldest first, NAN = not known. */
    double in[COURSE_STEPS], out[COURSE_STEPS], failed[COURSE_STEPS], backlog[COURSE_STEPS];
    double oldest[COURSE_STEPS]; /* ms; of ten minutes only */
    bool has_times;              /* the system keeps histograms, and the span shows them */
    int waits[COURSE_STEPS][TIME_BUCKETS], runs[COURSE_STEPS][TIME_BUCKETS];
    int known; /* columns in use */
};
/* queue "" = all queues together, only for ten minutes. */
void course_read(const struct store *s, const char *queue, enum span span, int64_t now_ms,
                 struct course *out);

/* The median or another percentile over at least the last ten minutes, in ms; NAN = nothing
 * completed. */
double course_percentile(const int (*counts)[TIME_BUCKETS], int64_t step_ms, double part);

/* Jobs a second by which the backlog grows over the last tenth of the span; NAN = not known. */
double course_growth(const struct course *c);

#endif
