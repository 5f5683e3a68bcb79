/* Rates from cumulative counters: for each queue ("" = all together) a ring of steps for sparklines
 * and the last few samples for the rate of now. Also gauges (backlog, age of the oldest). A counter
 * that runs backwards (recounted after a restore) starts anew, it never makes a rate. Memory is
 * fixed a queue; queues that are not seen for a whole ring are forgotten. With a limit also their
 * number is: who comes first has a ring, and the rings of queues in which nothing has happened for
 * a whole ring are given to others. */
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
/* The same where the queue has a ring already; false = it has none. */
bool history_go_on(struct history *h, const char *queue, const struct sample *s);
/* A rate a second over about the last window_ms; NAN while unknown. Gauges: the last value. */
double history_now(const struct history *h, const char *queue, enum series what, int window_ms);
/* The last n steps, oldest first, ending with the one that now_ms is in; NAN = unknown. The newest
 * step is a rate over its part so far. */
void history_read(const struct history *h, const char *queue, enum series what, int64_t now_ms,
                  double *out, int n);
int history_step_ms(const struct history *h);

#endif
