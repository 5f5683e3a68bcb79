/* What becomes of a queue, by arithmetic alone: whether it fills up or empties, since when and
 * until when, what holds it, how many slots it needs. By the rates of five minutes, so that the
 * answer stands from frame to frame; it never contradicts the rates of the last minute, which are
 * shown beside it. Pure: numbers in, numbers out. */
#ifndef MODEL_STORE_OUTLOOK_H
#define MODEL_STORE_OUTLOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/record.h"

enum trend {
    TREND_UNKNOWN, /* the rates are not known yet */
    TREND_EMPTY,   /* nothing is ready */
    TREND_STEADY,  /* what is ready goes out within a minute, or in and out differ by 5 % at most */
    TREND_FILLS,
    TREND_DRAINS,
    TREND_STANDS /* nothing goes out at all */
};

/* What holds a queue back, the first that is true. */
enum held {
    HELD_NOT,
    HELD_PAUSED,
    HELD_NO_NODE, /* no living node takes its jobs */
    HELD_FAILING, /* more jobs fail for good than complete */
    HELD_LIMIT,   /* as many run as its limit allows */
    HELD_KEYS,    /* jobs wait for others of their concurrency key */
    HELD_RATE,    /* its tokens are gone */
    HELD_SLOTS,   /* all slots of the nodes that take its jobs are in use */
    HELD_COUNT
};

struct slots { /* of the living nodes that take jobs of the queue; all FIELD_NULL = not known */
    int64_t all, used;
    bool told; /* nodes make themselves known here: none means that there is none */
};

struct outlook {
    enum trend trend;
    double gain;       /* jobs a second that come in beyond those that go out; of FILLS, DRAINS */
    int64_t empty_ms;  /* when nothing will be ready any more: FIELD_NULL but for DRAINS */
    int64_t since_ms;  /* of FILLS: the minute in which out fell below in; FIELD_NULL = not known */
    bool since_before; /* it was so already then: what is known reaches no further */
    enum held held;
    int64_t held_of;      /* the limit, or the slots; FIELD_NULL = there is no such figure */
    int64_t slots_needed; /* to keep up with what comes in; FIELD_NULL = not known */
};

struct outlook outlook_of(const struct queue_row *q, const struct slots *slots, int64_t now_ms);

/* In jobs a second, a mean of five minutes; NAN = not known. */
struct flow {
    double in, out;
};
struct flow outlook_flow(const struct queue_row *q);

/* The slots that are missing until it is empty within ms from now; FIELD_NULL = not known. */
int64_t outlook_slots_missing(const struct queue_row *q, int64_t ms);

/* When a queue began to grow, to the minute. nets: by how much it grew in each minute, oldest
 * first, as an SQL array "{3,-1,5}"; the last minute ends at upto_ms. FIELD_NULL = no minute is
 * known. *before: it grew already in the first of them. */
int64_t outlook_turn(const char *nets, int64_t upto_ms, bool *before);

#endif
