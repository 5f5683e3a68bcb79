/* Rates from cumulative counters. Each queue ("" = all together) has a ring of steps for sparklines
 * and its last few samples for the rate of now. Gauges (backlog, age of the oldest job) are kept in
 * the same ring. If a counter runs backwards (it was recounted after a restore), it starts anew and
 * makes no rate. The memory of one queue is fixed; a queue that is not seen for a whole ring is
 * forgotten. With history_limit the number of rings is bounded too: the first queues get one, and a
 * ring in which nothing has happened for its whole length is given to another queue. */
#ifndef MODEL_STORE_HISTORY_H
#define MODEL_STORE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum series {
    SERIES_PUSHED,
    SERIES_DONE,
    SERIES_FAILED, /* counters: read as a rate a second */
    SERIES_BACKLOG,
    SERIES_OLDEST, /* gauges: jobs, ms; read as the last value */
    SERIES_COUNT
};

struct sample {
    int64_t at_ms;               /* the server's clock */
    int64_t value[SERIES_COUNT]; /* FIELD_NULL = unknown */
};

struct history;
struct history *history_new(int step_ms, int steps); /* 10000, 61: ten minutes */
void history_free(struct history *h);
void history_limit(struct history *h, int most); /* rings; "" has one besides */
int history_count(const struct history *h);      /* rings that there are */
/* In order of time for a queue; older ones than the newest are ignored. False: all rings are taken,
 * nothing is kept. */
bool history_add(struct history *h, const char *queue, const struct sample *s);
/* The same, but only if the queue has a ring already; false = it has none. */
bool history_go_on(struct history *h, const char *queue, const struct sample *s);
/* A rate a second over about the last window_ms; NAN while unknown. Gauges: the last value. */
double history_now(const struct history *h, const char *queue, enum series what, int window_ms);
/* A counter's rate a second between its newest value and the oldest one that is kept and no older
 * than window_ms; NAN where less than least_ms lie between. With least_ms 0 any two values do. */
double history_mean(const struct history *h, const char *queue, enum series what, int window_ms,
                    int least_ms);
/* The last n steps, oldest first, ending with the one that now_ms is in; NAN = unknown. The newest
 * step is a rate over its part so far. */
void history_read(const struct history *h, const char *queue, enum series what, int64_t now_ms,
                  double *out, int n);
int history_step_ms(const struct history *h);

#endif
