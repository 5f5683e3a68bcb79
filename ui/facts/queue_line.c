/*
 * The calculated part of a row of the table of queues: the nodes that take its jobs, its trend
 * (model/store/outlook.h), and the words for them.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "ui/facts/queue_columns.h"

enum { RANK_MS = 10000, LONG_W = 13, DAY_MS = 86400000 };
static const int64_t VERDICT_AHEAD_MS = INT64_MAX / 8, PAUSED_BEHIND_MS = INT64_MAX / 2;

int64_t
queue_age(const struct queue_row *q, int64_t now_ms)
{
    return q->oldest_ms == FIELD_NULL || q->oldest_ms <= 0 ? FIELD_NULL : now_ms - q->oldest_ms;
}

/* --- nodes ------------------------------------------------------------------------------------ */

struct workers
workers_of(const struct node_row *nodes, int n)
{
    struct workers w = {.rows = xcalloc((size_t)n + 1, sizeof *w.rows)};

    for (int i = 0; i < n; i++) {
        enum node_state state = node_state(&nodes[i]);
        w.told |= nodes[i].slots > 0 && nodes[i].heartbeat_ms != FIELD_NULL;
        w.lost += node_lost(&nodes[i]);
        if (nodes[i].slots > 0 && state != NODE_DEAD) {
            w.slots += nodes[i].slots;
            w.used += node_busy(&nodes[i]);
            w.beyond += node_beyond(&nodes[i]);
        } else if (nodes[i].running > 0)
            w.beyond += nodes[i].running - node_lost(&nodes[i]);
        if ((state == NODE_UP || state == NODE_LATE || state == NODE_ASLEEP) && nodes[i].slots > 0)
            w.rows[w.n++] = nodes[i];
    }
    return w;
}

int64_t
workers_used(const struct workers *w, const struct queue_row *totals)
{
    if (totals->running == FIELD_NULL)
        return w->used;
    int64_t used = totals->running - w->beyond - w->lost;

    return used < 0 ? 0 : used > w->slots ? w->slots : used;
}

void
workers_done(struct workers *w)
{
    free(w->rows);
    *w = (struct workers){.rows = NULL};
}

static struct slots
slots_of(const struct workers *w, const char *queue)
{
    struct slots s = {.all = w->told ? 0 : FIELD_NULL, .told = w->told};

    for (int i = 0; i < w->n; i++) {
        if (!node_takes(w->rows[i].queues, queue))
            continue;
        s.all = (s.all == FIELD_NULL ? 0 : s.all) + w->rows[i].slots;
        s.used += node_busy(&w->rows[i]);
    }
    return s;
}

/* --- the row ---------------------------------------------------------------------------------- */

static const char *const trend_words[] = {
    [TREND_UNKNOWN] = "",      [TREND_EMPTY] = "empty",  [TREND_STEADY] = "steady",
    [TREND_BRIEF] = "brief",   [TREND_TURNS] = "turns",  [TREND_FILLS] = "fills",
    [TREND_DRAINS] = "drains", [TREND_STANDS] = "stands"};
static const char *const held_words[HELD_COUNT] = {[HELD_NOT] = "",
                                                   [HELD_PAUSED] = "paused",
                                                   [HELD_NO_NODE] = "no node",
                                                   [HELD_FAILING] = "failing",
                                                   [HELD_LIMIT] = "limit",
                                                   [HELD_KEYS] = "keys",
                                                   [HELD_RATE] = "rate",
                                                   [HELD_SLOTS] = "slots"};

static int64_t
rank_of(const struct outlook *o, int64_t now_ms)
{
    switch (o->trend) {
    case TREND_UNKNOWN:
    case TREND_EMPTY:
        break;
    case TREND_STEADY:
    case TREND_BRIEF:
    case TREND_TURNS:
        return 0;
    case TREND_DRAINS:
        return o->empty_ms - now_ms;
    case TREND_FILLS:
    case TREND_STANDS:
        return INT64_MAX;
    }
    return FIELD_NULL;
}

/* Sorts the worst first, then the oldest. A paused queue comes behind all others, because somebody
 * has decided the pause. */
static int64_t
rank_of_oldest(enum verdict verdict, int64_t age)
{
    int64_t rank = age < 0 ? 0 : age / RANK_MS * RANK_MS; /* FIELD_NULL is below 0 */

    if (verdict >= VERDICT_WARN)
        return rank + verdict * VERDICT_AHEAD_MS;
    if (age == FIELD_NULL)
        return FIELD_NULL;
    return verdict == VERDICT_DECIDED ? rank - PAUSED_BEHIND_MS : rank;
}

void
queue_line_fill(struct queue_line *l, const struct queue_row *q, const struct workers *w,
                int64_t now_ms)
{
    int64_t age = queue_age(q, now_ms);

    *l = (struct queue_line){.q = *q, .slots = slots_of(w, q->queue)};
    l->capacity = l->slots.all > 0 ? l->slots.all : FIELD_NULL;
    if (q->max_running >= 0 && (l->capacity == FIELD_NULL || q->max_running < l->capacity))
        l->capacity = q->max_running;
    l->o = outlook_of(q, &l->slots, now_ms);
    l->empty_rank = q->paused == 1 ? FIELD_NULL : rank_of(&l->o, now_ms);
    l->fills_per_s = l->o.trend == TREND_FILLS ? l->o.gain : (double)NAN;
    l->trend = trend_words[l->o.trend];
    l->held = held_words[l->o.held];
    l->verdict = verdict_of_queue(q, l->o.trend, now_ms);
    l->oldest_rank = rank_of_oldest(l->verdict, age);
}

/* --- words ------------------------------------------------------------------------------------ */

struct fmt
queue_empty_at(const struct queue_line *l, int64_t now_ms, bool utc, int w)
{
    struct fmt f = {""};

    if (l->q.paused == 1) {
        snprintf(f.s, sizeof f.s, "paused");
        return f;
    }
    switch (l->o.trend) {
    case TREND_STEADY:
        snprintf(f.s, sizeof f.s, "steady");
        break;
    case TREND_BRIEF:
        snprintf(f.s, sizeof f.s, "wait <1m");
        break;
    case TREND_TURNS:
        snprintf(f.s, sizeof f.s, "turning");
        break;
    case TREND_STANDS:
        snprintf(f.s, sizeof f.s, w < 17 ? "stands" : "nothing completes");
        break;
    case TREND_FILLS:
        snprintf(f.s, sizeof f.s, "%s+%.20s/s", w < LONG_W ? "" : "never, ", fmt_rate(l->o.gain).s);
        break;
    case TREND_DRAINS:
        if (l->o.empty_ms - now_ms < DAY_MS)
            snprintf(f.s, sizeof f.s, "%.5s", fmt_time(l->o.empty_ms, utc).s);
        else
            f = fmt_age(now_ms - l->o.empty_ms);
        break;
    case TREND_UNKNOWN:
    case TREND_EMPTY:
        break;
    }
    return f;
}

struct fmt
queue_held_by(const struct queue_line *l)
{
    struct fmt f = {""};

    if (l->o.held == HELD_LIMIT)
        snprintf(f.s, sizeof f.s, "limit %lld", (long long)l->o.held_of);
    else
        snprintf(f.s, sizeof f.s, "%s", held_words[l->o.held]);
    return f;
}
