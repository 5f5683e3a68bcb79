/*
 * How many jobs came into and went out of each queue in five minutes, joined to the row of the
 * queue. The figures come from the minutes that the queue system keeps. If there are none, or the
 * queue is too new, they come from the counters that this console has seen, as soon as these cover
 * a minute. Also jobs a second: since the last answer or, in a store that is asked once, since a
 * point that the queue system keeps.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/store/outlook.h"
#include "model/store/store_parts.h"

enum { FIVE_MS = 300000, LEAST_MS = 60000, POINTS_MS = 10000, POINTS_OLDEST_MS = 610000 };

void
store_forget_pace(struct queue_row *q)
{
    q->in5_per_s = q->out5_per_s = q->run5_ms = (double)NAN;
    q->completed5 = q->fails5 = q->turn_ms = q->tokens = FIELD_NULL;
    q->turn_before = q->paced = false;
}

void
store_carry_pace(struct queue_row *q, const struct queue_row *was)
{
    q->in5_per_s = was->in5_per_s;
    q->out5_per_s = was->out5_per_s;
    q->run5_ms = was->run5_ms;
    q->completed5 = was->completed5;
    q->fails5 = was->fails5;
    q->turn_ms = was->turn_ms;
    q->tokens = was->tokens;
    q->turn_before = was->turn_before;
    q->paced = was->paced;
}

/* Fills in the figures from the counters that this console has seen. Cancelled jobs are missing in
 * them. */
void
store_see_pace(const struct store *s, struct queue_row *q)
{
    const struct history *h = s->queues.history;

    if (q->paced)
        return;
    double fails = history_mean(h, q->queue, SERIES_FAILED, FIVE_MS, LEAST_MS);
    q->in5_per_s = history_mean(h, q->queue, SERIES_PUSHED, FIVE_MS, LEAST_MS);
    q->out5_per_s = history_mean(h, q->queue, SERIES_DONE, FIVE_MS, LEAST_MS);
    if (!isnan(fails))
        q->out5_per_s += fails;
}

static void
set_pace(struct queue_row *q, const struct pace_row *p)
{
    double seconds = p->minutes * 60.0;

    store_forget_pace(q);
    q->tokens = p->tokens;
    if (p->minutes <= 0)
        return;
    q->paced = true;
    q->in5_per_s = (double)p->pushed / seconds;
    q->out5_per_s = (double)p->gone / seconds;
    q->completed5 = p->completed;
    q->fails5 = p->fails;
    if (p->completed > 0 && p->run_ms != FIELD_NULL)
        q->run5_ms = (double)p->run_ms / (double)p->completed;
    if (p->upto_ms != FIELD_NULL)
        q->turn_ms = outlook_turn(p->nets, p->upto_ms, &q->turn_before);
}

/* The answer stays in s->queues.paces until there are queues. */
void
store_join_pace(struct store *s)
{
    const struct pace_row *p = s->queues.paces.rows;

    if (!s->queues.paces.res || s->queues.n == 0)
        return;
    for (int i = 0; i < s->queues.n; i++) {
        store_forget_pace(&s->queues.rows[i]);
        store_see_pace(s, &s->queues.rows[i]);
    }
    for (int i = 0; i < s->queues.paces.n; i++) {
        struct queue_row *q = store_find_queue(s, p[i].queue);
        if (!q)
            continue;
        set_pace(q, &p[i]);
        store_see_pace(s, q);
    }
    s->queues.serial++;
    rowset_free(&s->queues.paces);
}

void
store_clear_pace(struct store *s)
{
    for (int i = 0; i < s->queues.n; i++)
        store_forget_pace(&s->queues.rows[i]);
}

/* --- jobs a second ---------------------------------------------------------------------------- */

/* The rate between two answers. If the counter ran backwards, it was recounted, and there is no
 * rate. */
static double
rate_since(int64_t was, int64_t is, int64_t ms)
{
    if (was == FIELD_NULL || is == FIELD_NULL || is < was || ms <= 0)
        return (double)NAN;
    return (double)(is - was) * 1000.0 / (double)ms;
}

void
store_set_rates(struct queue_row *q, const struct queue_row *was, int64_t ms)
{
    q->pushed_per_s = rate_since(was->pushed, q->pushed, ms);
    q->done_per_s = rate_since(was->completed, q->completed, ms);
    q->failed_per_s = rate_since(was->fails, q->fails, ms);
}

static int
compare_points(const void *a, const void *b)
{
    const struct rate_row *x = a, *y = b;
    int order = strcmp(x->queue, y->queue);

    return order ? order : (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

/* The kept point from which a rate of now counts: the newest one that is POINTS_MS old, or else the
 * oldest one. NULL = none. */
static const struct rate_row *
point_before(const struct store *s, const char *queue)
{
    const struct rate_row *p = s->queues.points.rows, *from = NULL;
    struct rate_row now = {.queue = queue, .at_ms = s->source.server_ms};
    int low = 0, high = s->queues.points.n;

    while (low < high) {
        int mid = low + (high - low) / 2;
        if (compare_points(&p[mid], &now) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    while (low > 0 && (!from || now.at_ms - from->at_ms < POINTS_MS) &&
           !strcmp(p[low - 1].queue, queue))
        from = &p[--low];
    return from && now.at_ms - from->at_ms < POINTS_OLDEST_MS ? from : NULL;
}

void
store_rate_points(const struct store *s, struct queue_row *q)
{
    const struct rate_row *from = point_before(s, q->queue);
    struct queue_row was = {.pushed = FIELD_NULL, .completed = FIELD_NULL, .fails = FIELD_NULL};

    if (from)
        was = (struct queue_row){
            .pushed = from->pushed, .completed = from->completed, .fails = from->fails};
    store_set_rates(q, &was, from ? s->source.server_ms - from->at_ms : 0);
}

void
store_keep_points(struct store *s, struct rowset *rates)
{
    s->queues.points = *rates;
    *rates = (struct rowset){0};
    if (s->queues.points.n > 0)
        qsort(s->queues.points.rows, (size_t)s->queues.points.n, s->queues.points.size,
              compare_points);
}
