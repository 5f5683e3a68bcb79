/* Where a queue is heading, by arithmetic alone: whether it fills up or empties, since when and
 * until when, what holds it back, how many slots it needs. It uses the rates of five minutes, so
 * that the answer does not change with every frame. It never contradicts the rates of the last
 * minute, because the screen shows them beside the answer. Pure: numbers in, numbers out. */
#ifndef MODEL_STORE_OUTLOOK_H
#define MODEL_STORE_OUTLOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/record.h"

enum trend {
    TREND_UNKNOWN, /* the rates are not known yet */
    TREND_EMPTY,   /* nothing is ready */
    TREND_STEADY,  /* the rates in and out differ by 5 % at most */
    TREND_BRIEF,   /* they differ, but the ready jobs go out within a minute */
    TREND_TURNS,   /* the last minute disagrees with the five minutes */
    TREND_FILLS,
    TREND_DRAINS,
    TREND_STANDS /* nothing goes out at all */
};

/* What holds a queue back. The first value that is true counts. */
enum held {
    HELD_NOT,
    HELD_PAUSED,
    HELD_NO_NODE, /* no living node takes its jobs */
    HELD_FAILING, /* more jobs fail for good than complete */
    HELD_LIMIT,   /* as many run as its limit allows */
    HELD_KEYS,    /* jobs wait for others of their concurrency key */
    HELD_RATE,    /* the tokens of its rate limit are used up */
    HELD_SLOTS,   /* all slots of the nodes that take its jobs are in use */
    HELD_COUNT
};

struct slots { /* of the living nodes that take jobs of the queue; all FIELD_NULL = not known */
    int64_t all, used;
    bool told; /* in this system nodes register, so if no node is known, there is none */
};

struct outlook {
    enum trend trend;
    double gain;       /* FILLS, DRAINS: rate in minus rate out, in jobs per second */
    int64_t empty_ms;  /* DRAINS: when no job will be ready any more; FIELD_NULL otherwise */
    int64_t since_ms;  /* FILLS: the minute in which the rate out fell below the rate in;
                          FIELD_NULL = not known */
    bool since_before; /* it began earlier: since_ms is only the oldest known minute */
    enum held held;
    int64_t held_of;      /* the limit, or the slots; FIELD_NULL = there is no such figure */
    int64_t slots_needed; /* slots that would keep up with the rate in; FIELD_NULL = not known */
};

struct outlook outlook_of(const struct queue_row *q, const struct slots *slots, int64_t now_ms);

/* Means of five minutes, in jobs per second; NAN = not known. */
struct flow {
    double in, out;
};
struct flow outlook_flow(const struct queue_row *q);

/* How many more slots would empty the queue within ms from now; FIELD_NULL = not known. */
int64_t outlook_slots_missing(const struct queue_row *q, int64_t ms);

/* When a queue began to grow, to the minute. nets: by how much it grew in each minute, oldest
 * first, as an SQL array "{3,-1,5}"; the last minute ends at upto_ms. FIELD_NULL = no minute is
 * known. *before: the queue was growing already in the first of these minutes. */
int64_t outlook_turn(const char *nets, int64_t upto_ms, bool *before);

#endif
