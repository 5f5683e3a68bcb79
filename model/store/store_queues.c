/*
 * The queues: their settings, the live counts, how long jobs took and which finished ones are kept
 * come as answers of their own, at a pace of their own, and are joined here.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/store/store_parts.h"

enum { RATE_WINDOW_MS = 5000 };

static int
by_queue(const void *a, const void *b)
{
    return strcmp(((const struct queue_row *)a)->queue, ((const struct queue_row *)b)->queue);
}

static int64_t
plus(int64_t sum, int64_t value)
{
    return value == FIELD_NULL ? sum : sum + value;
}

static void
add_to_totals(struct queue_row *sum, const struct queue_row *q)
{
    sum->scheduled = plus(sum->scheduled, q->scheduled);
    sum->ready = plus(sum->ready, q->ready);
    sum->retry = plus(sum->retry, q->retry);
    sum->running = plus(sum->running, q->running);
    sum->failed = plus(sum->failed, q->failed);
    sum->pushed = plus(sum->pushed, q->pushed);
    sum->completed = plus(sum->completed, q->completed);
    sum->fails = plus(sum->fails, q->fails);
    sum->retried = plus(sum->retried, q->retried);
    sum->run_ms = plus(sum->run_ms, q->run_ms);
    sum->approx |= q->approx;
    if (q->paused != 1 && q->oldest_ms != FIELD_NULL && /* what waits on purpose is not late */
        (sum->oldest_ms == FIELD_NULL || q->oldest_ms < sum->oldest_ms))
        sum->oldest_ms = q->oldest_ms;
}

static void
note_rates(struct store *s, struct queue_row *q)
{
    int64_t oldest = FIELD_NULL;

    if (q->oldest_ms != FIELD_NULL)
        oldest = s->server_ms > q->oldest_ms ? s->server_ms - q->oldest_ms : 0;
    struct sample now = {
        s->server_ms, {q->pushed, q->completed, q->fails, plus(q->ready, q->running), oldest}
    };
    history_add(s->history, q->queue, &now);
    q->pushed_per_s = history_now(s->history, q->queue, SERIES_PUSHED, RATE_WINDOW_MS);
    q->done_per_s = history_now(s->history, q->queue, SERIES_DONE, RATE_WINDOW_MS);
    q->failed_per_s = history_now(s->history, q->queue, SERIES_FAILED, RATE_WINDOW_MS);
}

#define F(f) offsetof(struct queue_row, f)
static const size_t live[] = {F(scheduled), F(ready), F(retry), F(running), F(failed)};
enum { LIVE = sizeof live / sizeof *live, ALL_LIVE = (1 << LIVE) - 1 };

static int64_t *
number(struct queue_row *q, int i)
{
    return (int64_t *)(void *)((char *)q + live[i]);
}

/* The live numbers that this system tells at all, as bits: what no queue has a number for is
 * unknown and not 0. */
static unsigned
told_by(const struct rowset *counts)
{
    struct queue_row *q = counts->rows;
    unsigned told = counts->n ? 0 : ALL_LIVE;

    for (int row = 0; row < counts->n; row++)
        for (int i = 0; i < LIVE; i++)
            told |= (*number(&q[row], i) != FIELD_NULL) ? 1U << i : 0;
    return told;
}

static void
set_live(struct queue_row *q, const struct queue_row *count, unsigned told)
{
    struct queue_row from = count ? *count : *q;

    for (int i = 0; i < LIVE; i++)
        *number(q, i) = told & 1U << i ? plus(0, count ? *number(&from, i) : 0) : FIELD_NULL;
}

/* The counts of a queue beside its settings; either may be missing. */
static struct queue_row
join(const struct queue_row *config, const struct queue_row *count, unsigned told)
{
    static const struct queue_row no_config = {.paused_by = "",
                                               .pause_reason = "",
                                               .info = "",
                                               .paused_ms = FIELD_NULL,
                                               .weight = INT32_MIN,
                                               .max_running = INT32_MIN};
    struct queue_row q = config ? *config : no_config;

    q.oldest_ms = q.blocked = q.kept_completed = q.kept_cancelled = FIELD_NULL;
    q.wait_p50_ms = q.wait_p99_ms = q.run_p50_ms = q.run_p99_ms = FIELD_NULL;
    set_live(&q, count, told);
    if (!count)
        return q;
    q.queue = count->queue;
    q.blocked = count->blocked;
    q.oldest_ms = count->oldest_ms;
    q.pushed = count->pushed;
    q.completed = count->completed;
    q.fails = count->fails;
    q.retried = count->retried;
    q.run_ms = count->run_ms;
    q.approx = count->approx == 1;
    return q;
}

static int
times_by_queue(const void *a, const void *b)
{
    return strcmp(((const struct time_row *)a)->queue, ((const struct time_row *)b)->queue);
}

static void
join_times(const struct store *s, struct queue_row *q)
{
    struct time_row key = {.queue = q->queue};
    const struct time_row *t =
        s->times.n ? bsearch(&key, s->times.rows, (size_t)s->times.n, sizeof key, times_by_queue)
                   : NULL;

    if (!t)
        return;
    q->wait_p50_ms = t->wait_p50_ms;
    q->wait_p99_ms = t->wait_p99_ms;
    q->run_p50_ms = t->run_p50_ms;
    q->run_p99_ms = t->run_p99_ms;
}

/* Kept jobs change slowly and cost much: they come rarely, and stand beside the live numbers. */
static void
join_finals(const struct store *s, struct queue_row *q)
{
    const struct queue_row key = {.queue = q->queue};
    const struct queue_row *f =
        s->finals.n ? bsearch(&key, s->finals.rows, (size_t)s->finals.n, sizeof key, by_queue)
                    : NULL;

    q->kept_completed = f ? f->kept_completed : s->finals.res ? 0 : FIELD_NULL;
    q->kept_cancelled = f ? f->kept_cancelled : s->finals.res ? 0 : FIELD_NULL;
    q->kept_approx = f && f->kept_approx == 1;
}

static void
add_finals(struct queue_row *sum, const struct queue_row *q)
{
    if (q->kept_completed != FIELD_NULL)
        sum->kept_completed = plus(q->kept_completed, plus(0, sum->kept_completed));
    if (q->kept_cancelled != FIELD_NULL)
        sum->kept_cancelled = plus(q->kept_cancelled, plus(0, sum->kept_cancelled));
    sum->kept_approx |= q->kept_approx;
}

/* Sums of what no queue tells: so no rates of theirs either. */
static void
forget_untold(struct store *s)
{
    static const size_t ever[] = {F(pushed), F(completed), F(fails), F(retried), F(run_ms)};

    for (size_t i = 0; i < sizeof ever / sizeof *ever && s->nmerged > 0; i++) {
        bool told = false;
        for (int k = 0; k < s->nmerged && !told; k++)
            told = *(int64_t *)(void *)((char *)&s->merged[k] + ever[i]) != FIELD_NULL;
        if (!told)
            *(int64_t *)(void *)((char *)&s->totals + ever[i]) = FIELD_NULL;
    }
}

static void
merge(struct store *s)
{
    const struct queue_row *a = s->queues.rows, *b = s->counts.rows;
    const struct queue_row *a_end = a ? a + s->queues.n : a, *b_end = b ? b + s->counts.n : b;

    free(s->merged);
    s->merged = xcalloc((size_t)(s->queues.n + s->counts.n) + 1, sizeof *s->merged);
    s->nmerged = 0;
    unsigned told = told_by(&s->counts);
    s->totals = join(NULL, NULL, ALL_LIVE);
    s->totals.queue = "";
    while (a < a_end || b < b_end) {
        int order = a == a_end ? 1 : b == b_end ? -1 : strcmp(a->queue, b->queue);
        struct queue_row *q = &s->merged[s->nmerged++];
        *q = join(order <= 0 ? a : NULL, order >= 0 ? b : NULL, told);
        a += order <= 0;
        b += order >= 0;
        join_times(s, q);
        join_finals(s, q);
        add_to_totals(&s->totals, q);
        add_finals(&s->totals, q);
        note_rates(s, q);
    }
    for (int i = 0; i < LIVE; i++)
        if (!(told & 1U << i))
            *number(&s->totals, i) = FIELD_NULL;
    forget_untold(s);
    note_rates(s, &s->totals);
}

static int
by_time(const void *a, const void *b)
{
    const struct rate_row *x = a, *y = b;

    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

/* The kept points of the counters: the first sparkline. Sums of one moment make the totals. */
static void
seed(struct store *s, struct rowset *rates)
{
    const struct rate_row *r = rates->rows;
    struct sample sum = {
        0, {0, 0, 0, FIELD_NULL, FIELD_NULL}
    };

    if (rates->n > 0)
        qsort(rates->rows, (size_t)rates->n, rates->size, by_time);
    for (int i = 0; i < rates->n; i++) {
        struct sample one = {
            r[i].at_ms, {r[i].pushed, r[i].completed, r[i].fails, FIELD_NULL, FIELD_NULL}
        };
        history_add(s->history, r[i].queue, &one);
        sum.value[SERIES_PUSHED] = plus(sum.value[SERIES_PUSHED], r[i].pushed);
        sum.value[SERIES_DONE] = plus(sum.value[SERIES_DONE], r[i].completed);
        sum.value[SERIES_FAILED] = plus(sum.value[SERIES_FAILED], r[i].fails);
        if (i + 1 < rates->n && r[i + 1].at_ms == r[i].at_ms)
            continue;
        sum.at_ms = r[i].at_ms;
        history_add(s->history, "", &sum);
        sum = (struct sample){
            0, {0, 0, 0, FIELD_NULL, FIELD_NULL}
        };
    }
    s->seeded = true;
}

bool
store_take_queues(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset config = {0}, counts = {0}, rates = {0};
    bool with_rates = !s->seeded && adapter_has(s->adapter, SEC_RATES);

    bool ok = record_decode(&record_queue, db_take(reply, 0), &config, e) &&
              record_decode(&record_count, db_take(reply, 1), &counts, e) &&
              (!with_rates || record_decode(&record_rate, db_take(reply, 2), &rates, e));
    if (!ok) {
        rowset_free(&config);
        rowset_free(&counts);
        return false;
    }
    if (config.n > 0)
        qsort(config.rows, (size_t)config.n, config.size, by_queue);
    if (counts.n > 0)
        qsort(counts.rows, (size_t)counts.n, counts.size, by_queue);
    store_replace(&s->queues, &config);
    store_replace(&s->counts, &counts);
    if (with_rates)
        seed(s, &rates);
    rowset_free(&rates);
    merge(s);
    return true;
}

bool
store_take_times(struct store *s, struct db_reply *reply, struct err *e)
{
    if (!store_take_one(reply, 0, &record_time, &s->times, e))
        return false;
    if (s->times.n > 0)
        qsort(s->times.rows, (size_t)s->times.n, s->times.size, times_by_queue);
    for (int i = 0; i < s->nmerged; i++)
        join_times(s, &s->merged[i]);
    return true;
}

bool
store_take_finals(struct store *s, struct db_reply *reply, struct err *e)
{
    if (!store_take_one(reply, 0, &record_final, &s->finals, e))
        return false;
    if (s->finals.n > 0)
        qsort(s->finals.rows, (size_t)s->finals.n, s->finals.size, by_queue);
    s->totals.kept_completed = s->totals.kept_cancelled = FIELD_NULL;
    s->totals.kept_approx = 0;
    for (int i = 0; i < s->nmerged; i++) {
        join_finals(s, &s->merged[i]);
        add_finals(&s->totals, &s->merged[i]);
    }
    return true;
}

void
store_clear_finals(struct store *s)
{
    rowset_free(&s->finals);
}

void
store_clear_times(struct store *s)
{
    rowset_free(&s->times);
}

void
store_clear_queues(struct store *s)
{
    rowset_free(&s->queues);
    rowset_free(&s->counts);
    free(s->merged);
    s->merged = NULL;
    s->nmerged = 0;
}

const struct queue_row *
store_queues(const struct store *s, int *n)
{
    *n = s->nmerged;
    return s->merged;
}

const struct queue_row *
store_queue(const struct store *s, const char *queue)
{
    struct queue_row key = {.queue = queue};

    return s->nmerged ? bsearch(&key, s->merged, (size_t)s->nmerged, sizeof key, by_queue) : NULL;
}

const struct queue_row *
store_totals(const struct store *s)
{
    return &s->totals;
}

const struct history *
store_history(const struct store *s)
{
    return s->history;
}
