/*
 * The sentences about one queue: its trend, what holds it, what helps. model/store/outlook.h does
 * the arithmetic.
 */
#include <math.h>

#include "ui/facts/queue_columns.h"

enum { HOUR_MS = 3600000, HOUR_S = 3600 };

static void
say_pause(const struct queue_row *q, int64_t now_ms, struct buf *out)
{
    buf_printf(out, "paused%s%s", *q->paused_by ? " by " : "", q->paused_by);
    if (q->paused_ms != FIELD_NULL)
        buf_printf(out, " for %s", fmt_age(now_ms - q->paused_ms).s);
    if (q->ready > 0)
        buf_printf(out, ", %s", fmt_they(q->ready, q->approx, "wait").s);
    if (*q->pause_reason)
        buf_printf(out, ": \"%s\"", q->pause_reason);
}

static void
say_filling(const struct queue_line *l, bool utc, struct buf *out)
{
    double more = (double)l->q.ready + l->o.gain * HOUR_S;

    buf_printf(out, "fills up by %s jobs/s", fmt_rate(l->o.gain).s);
    if (l->o.since_ms != FIELD_NULL)
        buf_printf(out, " since %s%.5s", l->o.since_before ? "before " : "",
                   fmt_time(l->o.since_ms, utc).s);
    buf_printf(out, "; at this pace %s wait in an hour", fmt_count_fit((int64_t)more, 9).s);
}

void
queue_say_trend(const struct queue_line *l, int64_t now_ms, bool utc, struct buf *out)
{
    struct flow f = outlook_flow(&l->q);

    if (l->q.paused == 1) {
        say_pause(&l->q, now_ms, out);
        return;
    }
    switch (l->o.trend) {
    case TREND_FILLS:
        say_filling(l, utc, out);
        break;
    case TREND_DRAINS:
        buf_printf(out, "drains by %s jobs/s, empty %s%s", fmt_rate(-l->o.gain).s,
                   l->o.empty_ms - now_ms < 24 * (int64_t)HOUR_MS ? "at " : "",
                   queue_empty_at(l, now_ms, utc, 0).s);
        break;
    case TREND_STANDS:
        buf_printf(out, "nothing completes, %s", fmt_they(l->q.ready, l->q.approx, "wait").s);
        break;
    case TREND_STEADY:
        buf_printf(out, "steady: in 5 minutes %s/s came in, %s/s went out", fmt_rate(f.in).s,
                   fmt_rate(f.out).s);
        break;
    case TREND_BRIEF:
        buf_printf(out,
                   "what waits goes out within a minute: in 5 minutes %s/s came in, %s/s went "
                   "out",
                   fmt_rate(f.in).s, fmt_rate(f.out).s);
        break;
    case TREND_TURNS:
        buf_printf(out,
                   "turning: in 5 minutes %s/s came in, %s/s went out, in the last minute %s/s "
                   "and %s/s",
                   fmt_rate(f.in).s, fmt_rate(f.out).s, fmt_rate(l->q.pushed_per_s).s,
                   fmt_rate(l->q.done_per_s).s);
        break;
    case TREND_EMPTY:
        buf_str(out, "nothing waits");
        break;
    case TREND_UNKNOWN:
        buf_str(out, "its rates are not known yet");
        break;
    }
}

/* Appends how many slots are missing: "3 more hold it level, 6 more empty it within an hour". */
static void
say_missing(const struct queue_line *l, struct buf *out)
{
    int64_t level = l->o.trend == TREND_FILLS ? outlook_slots_missing(&l->q, 0) : FIELD_NULL;
    int64_t empty = outlook_slots_missing(&l->q, HOUR_MS);

    if (level != FIELD_NULL)
        buf_printf(out, "; %s more hold%s it level", fmt_count(level).s, level == 1 ? "s" : "");
    if (empty != FIELD_NULL && l->o.trend != TREND_DRAINS)
        buf_printf(out, "%s %s more empt%s it within an hour", level == FIELD_NULL ? ";" : ",",
                   fmt_count(empty).s, empty == 1 ? "ies" : "y");
}

static void
say_need(const struct queue_line *l, struct buf *out)
{
    if (l->o.slots_needed == FIELD_NULL)
        return;
    buf_printf(out, "%s/s come in and run %s each: that needs %s",
               fmt_rate(outlook_flow(&l->q).in).s, fmt_duration((int64_t)l->q.run5_ms).s,
               fmt_plural(l->o.slots_needed, "slot").s);
}

void
queue_say_advice(const struct queue_line *l, struct buf *out)
{
    switch (l->o.held) {
    case HELD_LIMIT:
        buf_printf(out, "held by its limit: all of %s in use", fmt_count(l->o.held_of).s);
        say_missing(l, out);
        buf_str(out, " (l changes it)");
        break;
    case HELD_SLOTS:
        if (l->o.held_of == 1)
            buf_str(out, "held by slots: the only slot of its nodes is in use");
        else
            buf_printf(out, "held by slots: all %s slots of its nodes are in use",
                       fmt_count(l->o.held_of).s);
        if (l->q.running != FIELD_NULL && l->q.running < l->o.held_of)
            buf_printf(out, ", %s by other queues",
                       fmt_count(l->o.held_of - (l->q.running > 0 ? l->q.running : 0)).s);
        say_missing(l, out);
        break;
    case HELD_RATE:
        buf_str(out, "held by its rate limit: no token is left (l changes it)");
        break;
    case HELD_KEYS:
        buf_printf(out, "held by keys: %s wait%s for others with the same concurrency key",
                   fmt_plural(l->q.blocked, "job").s, l->q.blocked == 1 ? "s" : "");
        break;
    case HELD_FAILING:
        buf_printf(out, "%s failed for good in 5 minutes, %s completed (3 shows why)",
                   fmt_count(l->q.fails5).s, fmt_count(l->q.completed5).s);
        break;
    case HELD_NO_NODE:
        buf_str(out, "no living node takes its jobs: start a worker that does");
        break;
    case HELD_PAUSED:
        buf_str(out, "p resumes it");
        break;
    case HELD_NOT:
    case HELD_COUNT:
        say_need(l, out);
        break;
    }
}

/* Says first what holds the queue, because a narrow line is cut at its end. */
void
queue_say_why(const struct queue_line *l, int64_t now_ms, bool utc, struct buf *out)
{
    bool held = l->o.held != HELD_NOT && l->o.held != HELD_PAUSED;

    if (held) {
        queue_say_advice(l, out);
        buf_str(out, "; ");
    }
    queue_say_trend(l, now_ms, utc, out);
    size_t before = out->len;
    if (!held) {
        buf_str(out, "; ");
        queue_say_advice(l, out);
        if (out->len == before + 2) /* there is no advice */
            out->data[out->len = before] = 0;
    }
}
