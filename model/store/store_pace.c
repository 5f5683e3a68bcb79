/*
 * How many jobs came into and went out of each queue in five minutes, joined to the row of the
 * queue. The figures come from the minutes that the queue system keeps. If there are none, or the
 * queue is too new, they come from the counters that this console has seen, as soon as these cover
 * a minute.
 */
#include <limits.h>
#include <math.h>

#include "model/store/outlook.h"
#include "model/store/store_parts.h"

enum { FIVE_MS = 300000, LEAST_MS = 60000 };

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

void
store_set_pace(struct queue_row *q, const struct pace_row *p)
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
        store_set_pace(q, &p[i]);
        store_see_pace(s, q);
    }
    s->queues.serial++;
    rowset_free(&s->queues.paces);
}

bool
store_take_pace(struct store *s, struct db_reply *reply, struct err *e)
{
    if (!store_take_one(reply, 0, &record_pace, &s->queues.paces, e))
        return false;
    store_join_pace(s);
    return true;
}

void
store_clear_pace(struct store *s)
{
    rowset_free(&s->queues.paces);
    for (int i = 0; i < s->queues.n; i++)
        store_forget_pace(&s->queues.rows[i]);
}
