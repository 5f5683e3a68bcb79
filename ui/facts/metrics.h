/* What is known of sources as metrics in the text of OpenMetrics 1.0 (https://openmetrics.io),
 * which Prometheus and its kin read. Seconds and counts; what a queue system does not tell is left
 * out. Pure: reads stores, asks nothing. */
#ifndef UI_FACTS_METRICS_H
#define UI_FACTS_METRICS_H

#include <stdbool.h>

#include "model/base/mem.h"
#include "model/store/store.h"

struct metrics_source {
    const char *name; /* label `source`: no other has it */
    const char *adapter, *version;
    const struct store *store; /* NULL = not opened */
    bool up;                   /* its figures are those of now */
    bool foreign;              /* as attention.h has it */
};

/* queues: at most so many of each source have figures of their own, the first by name. modern:
 * OpenMetrics; else the text format 0.0.4 that came before it. */
void metrics_write(const struct metrics_source *sources, int n, int queues, bool modern,
                   struct buf *out);

#endif
