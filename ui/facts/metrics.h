/* The data of sources as metrics in the text format OpenMetrics 1.0 (https://openmetrics.io), which
 * Prometheus and similar programs read. Units are seconds and counts; a figure that a queue system
 * does not record is left out. Pure: reads stores, asks nothing. */
#ifndef UI_FACTS_METRICS_H
#define UI_FACTS_METRICS_H

#include <stdbool.h>

#include "model/base/mem.h"
#include "model/store/store.h"

struct metrics_source {
    const char *name; /* label `source`, unique */
    const char *adapter, *version;
    const struct store *store; /* NULL = not opened */
    bool up;                   /* its figures are current */
    bool foreign;              /* the same as in attention.h */
};

/* queues: how many queues of each source have figures of their own, in the order of their names.
 * modern: OpenMetrics; else its predecessor, the text format 0.0.4. */
void metrics_write(const struct metrics_source *sources, int n, int queues, bool modern,
                   struct buf *out);

#endif
