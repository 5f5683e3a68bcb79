/*
 * Computes where a queue is heading. If the rates in and out differ by less than 5 %, the queue
 * counts as steady, because the two rates are never exactly equal.
 */
#include "model/store/outlook.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/field.h"

#define BAND 1.05
#define NOTHING 0.001 /* jobs a second */

enum { MINUTE_S = 60, MINUTE_MS = 60000, WAITS_MS = 60000, FULL_MS = 15000, TURN_MINUTES = 240 };
static const double FAR_S = 90 * 86400.0;

struct flow
outlook_flow(const struct queue_row *q)
{
    return (struct flow){q->in5_per_s, q->out5_per_s};
}

/* --- the trend ------------------------------------------------------------------------------- */

static bool
is_above(double a, double b)
{
    return a > b * BAND && a - b > NOTHING;
}

/* True if the rates of the last minute agree with the trend, or are not known. */
static bool
agrees(double more, double less)
{
    return isnan(more) || isnan(less) || more > less;
}

/* True if the rates of the last minute differ by more than chance explains: by a quarter, and by
 * more than three times the usual deviation of so few jobs. */
static bool
differs(double a, double b)
{
    double more = a > b ? a : b, less = a > b ? b : a, gap = (more - less) * MINUTE_S;

    return !isnan(a) && !isnan(b) && more > less * 1.25 && gap * gap > 9 * (more + less) * MINUTE_S;
}

/* The trend by the rates of five minutes, unless the last minute contradicts it. */
static enum trend
trend_of_rates(const struct queue_row *q, struct flow f)
{
    bool fills = is_above(f.in, f.out), drains = is_above(f.out, f.in);

    if (!fills && !drains)
        return differs(q->pushed_per_s, q->done_per_s) ? TREND_TURNS : TREND_STEADY;
    if ((double)q->ready <= f.out * MINUTE_S)
        return TREND_BRIEF;
    if (fills)
        return agrees(q->pushed_per_s, q->done_per_s) ? TREND_FILLS : TREND_TURNS;
    if ((double)q->ready / (f.out - f.in) >= FAR_S)
        return TREND_STEADY;
    return agrees(q->done_per_s, q->pushed_per_s) ? TREND_DRAINS : TREND_TURNS;
}

static enum trend
trend_of(const struct queue_row *q)
{
    struct flow f = outlook_flow(q);
    bool still = isnan(q->done_per_s) || q->done_per_s < NOTHING;

    if (q->ready != FIELD_NULL && q->ready <= 0)
        return TREND_EMPTY;
    if (q->ready == FIELD_NULL)
        return TREND_UNKNOWN;
    if (isnan(f.in) || isnan(f.out)) /* the queue is too new for rates of five minutes; but it
                                        stands still if nothing runs */
        return q->done_per_s < NOTHING && q->running <= 0 ? TREND_STANDS : TREND_UNKNOWN;
    if (f.out < NOTHING && still)
        return TREND_STANDS;
    return trend_of_rates(q, f);
}

int64_t
outlook_turn(const char *nets, int64_t upto_ms, bool *before)
{
    double sum[TURN_MINUTES + 1] = {0}, least = 0;
    const char *at = nets + (*nets == '{');
    int n = 0, first = 0;

    *before = false;
    for (char *end; n < TURN_MINUTES && *at && *at != '}'; at = end + (*end == ',')) {
        double net = strtod(at, &end);
        if (end == at)
            return FIELD_NULL;
        sum[n + 1] = sum[n] + net;
        least = sum[n + 1] < least ? sum[n + 1] : least;
        n++;
    }
    if (n == 0)
        return FIELD_NULL;
    /* a level that is above the minimum by at most half a minute's growth counts as the minimum */
    int last = n < 5 ? n : 5;
    double near = (sum[n] - sum[n - last]) / last / 2;
    for (int i = 0; i < n; i++)
        if (sum[i] <= least + (near > 0 ? near : 0))
            first = i;
    *before = first == 0;
    return upto_ms - (int64_t)(n - first) * MINUTE_MS;
}

/* --- what holds it ---------------------------------------------------------------------------- */

/* True if jobs wait longer than they should. Otherwise a limit only does its work and holds nothing
 * back. */
static bool
waits(const struct queue_row *q, enum trend t, int64_t now_ms)
{
    bool old = q->oldest_ms != FIELD_NULL && q->oldest_ms > 0 && now_ms - q->oldest_ms >= WAITS_MS;

    if (q->ready == FIELD_NULL || q->ready <= 0)
        return false;
    return old || t == TREND_FILLS || t == TREND_DRAINS || t == TREND_STANDS;
}

static bool
has_no_node(const struct queue_row *q, const struct slots *s)
{
    return s->told && s->all == 0 && q->running <= 0;
}

/* True if the limit is reached, or was reached a moment ago: between short jobs there are gaps in
 * which fewer run. */
static bool
is_full(const struct queue_row *q, int64_t now_ms)
{
    if (q->max_running < 0)
        return false;
    return q->running >= q->max_running ||
           (q->full_ms != FIELD_NULL && now_ms - q->full_ms < FULL_MS);
}

static void
find_hold(struct outlook *o, const struct queue_row *q, const struct slots *s, int64_t now_ms)
{
    bool waiting = waits(q, o->trend, now_ms), keyed = q->blocked != FIELD_NULL && q->blocked > 0;

    o->held_of = FIELD_NULL;
    if (q->paused == 1)
        o->held = HELD_PAUSED;
    else if (waiting && has_no_node(q, s))
        o->held = HELD_NO_NODE;
    else if (waiting && q->fails5 != FIELD_NULL && q->fails5 > 0 && q->fails5 > q->completed5)
        o->held = HELD_FAILING;
    else if (waiting && is_full(q, now_ms)) {
        o->held = HELD_LIMIT;
        o->held_of = q->max_running;
    } else if (keyed && (q->ready <= 0 || (waiting && q->blocked > q->ready)))
        o->held = HELD_KEYS;
    else if (waiting && q->tokens != FIELD_NULL && q->tokens < 1)
        o->held = HELD_RATE;
    else if (waiting && s->all > 0 && s->used >= s->all) {
        o->held = HELD_SLOTS;
        o->held_of = s->all;
    }
}

/* --- together --------------------------------------------------------------------------------- */

/* The number of slots, by the mean run time of the jobs that completed. */
static int64_t
slots_for(const struct queue_row *q, double per_s)
{
    if (isnan(q->run5_ms) || isnan(per_s) || per_s < NOTHING)
        return FIELD_NULL;
    double slots = ceil(per_s * q->run5_ms / 1000 - NOTHING);
    return slots < 1 ? 1 : slots > INT_MAX ? INT_MAX : (int64_t)slots;
}

int64_t
outlook_slots_missing(const struct queue_row *q, int64_t ms)
{
    struct flow f = outlook_flow(q);

    return slots_for(q, f.in - f.out + (ms > 0 ? (double)q->ready * 1000 / (double)ms : 0));
}

struct outlook
outlook_of(const struct queue_row *q, const struct slots *slots, int64_t now_ms)
{
    struct flow f = outlook_flow(q);
    struct outlook o = {.trend = trend_of(q), .empty_ms = FIELD_NULL, .since_ms = FIELD_NULL};

    if (o.trend == TREND_FILLS || o.trend == TREND_DRAINS)
        o.gain = f.in - f.out;
    if (o.trend == TREND_DRAINS)
        o.empty_ms = (q->read_ms ? q->read_ms : now_ms) +
                     (int64_t)((double)q->ready / (f.out - f.in) * 1000);
    if (o.trend == TREND_FILLS) {
        o.since_ms = q->turn_ms;
        o.since_before = q->turn_before;
    }
    o.slots_needed = slots_for(q, f.in);
    find_hold(&o, q, slots, now_ms);
    return o;
}
