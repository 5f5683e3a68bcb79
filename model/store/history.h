/* Rates from cumulative counters. Each queue ("" = all together) has a ring of steps for sparklines
 * and its last few samples for the rate of now. Gauges (backlog, age of the oldest job) are kept in
 * the same ring. If a counter runs backwards (it was recounted after a restore), the ring starts
 * with it anew, without a rate for this step. The memory of one queue is fixed; a queue that is not
 * seen for a whole ring is forgotten. With history_limit the number of rings is bounded too: the
 * first queues get one, and a ring in which nothing has happened for its whole length is given to
 * another queue. */
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
void history_limit(struct history *h, int most); /* limits the number of rings; the ring of ""
                                                    does not count */
int history_count(const struct history *h);      /* how many rings there are */
/* Samples of a queue come in the order of time; one that is older than the newest is ignored.
 * False: all rings are taken, so the sample is not kept. */
bool history_add(struct history *h, const char *queue, const struct sample *s);
/* As history_add, but only if the queue has a ring already; false = it has none. */
bool history_go_on(struct history *h, const char *queue, const struct sample *s);
/* Counters: the rate per second over about the last window_ms. Gauges: the last value. NAN while
 * unknown. */
double history_now(const struct history *h, const char *queue, enum series what, int window_ms);
/* A counter's rate per second between its newest value and the oldest kept value that is at most
 * window_ms old. NAN if the two are less than least_ms apart; least_ms 0 accepts any two values. */
double history_mean(const struct history *h, const char *queue, enum series what, int window_ms,
                    int least_ms);
/* The last n steps, oldest first, ending with the one that now_ms is in; NAN = unknown. The newest
 * step is a rate over its part so far. */
void history_read(const struct history *h, const char *queue, enum series what, int64_t now_ms,
                  double *out, int n);
int history_step_ms(const struct history *h);
/* Since when a condition is true, according to the kept values; exact to one step. */
struct history_since {
    int64_t at_ms, ms; /* since when; for how long, until the newest value */
    bool before;       /* the condition was true already in the oldest kept value */
    int64_t done;      /* jobs that completed since then; FIELD_NULL = not known */
    double was;        /* the value then */
};
/* Finds out since when a counter has not grown. False: nothing is known. */
bool history_still(const struct history *h, const char *queue, enum series counter,
                   struct history_since *out);
/* Finds out when a gauge was last at its maximum. False: the gauge is at its maximum now, or
 * nothing is known. */
bool history_falls(const struct history *h, const char *queue, enum series gauge,
                   struct history_since *out);

#endif
