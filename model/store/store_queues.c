/*
 * The queues: their settings, the live counts, how long jobs took and which finished ones are kept
 * come as answers of their own, at a pace of their own, and are joined here.
 *
 * There may be a queue for each of fifty thousand customers. So one row a queue is all that is
 * kept: an answer is first read through, then written row by row over the rows of the last one, and
 * freed. Names are kept once, other texts as often as they change from row to row. With more queues
 * than QUEUE_TRACES only those that do something have a history, TRACES_MOST at most; rates are
 * those between two answers.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/store/store_parts.h"

enum { RATE_WINDOW_MS = 5000, DRAIN_WINDOW_MS = 60000 };

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

/* Between two answers; a counter that runs backwards was counted anew. */
static double
rate_since(int64_t was, int64_t is, int64_t ms)
{
    if (was == FIELD_NULL || is == FIELD_NULL || is < was || ms <= 0)
        return (double)NAN;
    return (double)(is - was) * 1000.0 / (double)ms;
}

static void
rates_of_answers(const struct store *s, struct queue_row *q, const struct queue_row *was)
{
    int64_t ms = s->merged_ms ? s->server_ms - s->merged_ms : 0;

    if (s->merged_ms && ms <= 0) /* the same moment again */
        return;
    q->pushed_per_s = rate_since(was->pushed, q->pushed, ms);
    q->done_per_s = rate_since(was->completed, q->completed, ms);
    q->failed_per_s = rate_since(was->fails, q->fails, ms);
    q->drain_per_s = q->done_per_s - q->pushed_per_s;
}

static void
rates_of_history(const struct store *s, struct queue_row *q)
{
    const struct history *h = s->history;

    q->pushed_per_s = history_now(h, q->queue, SERIES_PUSHED, RATE_WINDOW_MS);
    q->done_per_s = history_now(h, q->queue, SERIES_DONE, RATE_WINDOW_MS);
    q->failed_per_s = history_now(h, q->queue, SERIES_FAILED, RATE_WINDOW_MS);
    q->drain_per_s = history_now(h, q->queue, SERIES_DONE, DRAIN_WINDOW_MS) -
                     history_now(h, q->queue, SERIES_PUSHED, DRAIN_WINDOW_MS);
}

static struct sample
sample_of(const struct store *s, const struct queue_row *q)
{
    int64_t oldest = FIELD_NULL;

    if (q->oldest_ms != FIELD_NULL)
        oldest = s->server_ms > q->oldest_ms ? s->server_ms - q->oldest_ms : 0;
    return (struct sample){
        s->server_ms, {q->pushed, q->completed, q->fails, plus(q->ready, q->running), oldest}
    };
}

/* was: the row of the last answer, NULL = there was none. */
static void
note_rates(struct store *s, struct queue_row *q, const struct queue_row *was)
{
    struct sample now = sample_of(s, q);

    if (s->nmerged <= QUEUE_TRACES) {
        q->traced = history_add(s->history, q->queue, &now);
        rates_of_history(s, q);
        return;
    }
    bool moved = was && (was->pushed != q->pushed || was->completed != q->completed ||
                         was->fails != q->fails);
    if (moved)
        q->traced = history_add(s->history, q->queue, &now);
    else if (q->traced)
        q->traced = history_go_on(s->history, q->queue, &now);
    q->pushed_per_s = q->done_per_s = q->failed_per_s = q->drain_per_s = (double)NAN;
    if (was)
        rates_of_answers(s, q, was);
}

#define F(f) offsetof(struct queue_row, f)
static const size_t live[] = {F(scheduled), F(ready), F(retry), F(running), F(failed)};
enum { LIVE = sizeof live / sizeof *live, ALL_LIVE = (1 << LIVE) - 1 };

static int64_t *
number(struct queue_row *q, int i)
{
    return (int64_t *)(void *)((char *)q + live[i]);
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
    q.wait_p50_ms = q.wait_p99_ms = q.run_p50_ms = q.run_p99_ms = q.failed_hour = FIELD_NULL;
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

static void
add_hour(struct queue_row *sum, const struct queue_row *q)
{
    if (q->failed_hour != FIELD_NULL)
        sum->failed_hour = plus(q->failed_hour, plus(0, sum->failed_hour));
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

/* All together: of many queues, too, the steps of these are kept. */
static void
note_totals(struct store *s)
{
    struct sample now = sample_of(s, &s->totals);

    (void)history_add(s->history, "", &now);
    rates_of_history(s, &s->totals);
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

/* --- an answer, row by row ------------------------------------------------------------------- */

struct half { /* the settings, or the counts */
    struct result *res;
    struct row_fields fields;
    int columns[RECORD_FIELDS];
    int name; /* column */
    int n;
    int *order; /* rows by name */
};

struct both { /* halves of one queue: rows, -1 = not in that half */
    int config, count;
    bool was_there; /* in the last answer */
};

struct answer {
    struct half config, counts;
    unsigned told;
    struct both *queues; /* by name */
    int n;
};

static const char *
name_at(const struct half *h, int i)
{
    return result_text(h->res, h->order[i], h->name);
}

static int
by_name(const void *a, const void *b, void *ctx)
{
    const struct half *h = ctx;

    return strcmp(result_text(h->res, *(const int *)a, h->name),
                  result_text(h->res, *(const int *)b, h->name));
}

static void
sort_half(struct half *h)
{
    bool sorted = true;

    h->order = xcalloc((size_t)h->n + 1, sizeof *h->order);
    for (int i = 0; i < h->n; i++)
        h->order[i] = i;
    for (int i = 1; i < h->n && sorted; i++)
        sorted = strcmp(name_at(h, i - 1), name_at(h, i)) <= 0;
    if (!sorted)
        qsort_r(h->order, (size_t)h->n, sizeof *h->order, by_name, h);
}

/* Every value is looked at before one is believed. told: the live numbers that this system tells at
 * all, as bits: what no queue has a number for is unknown and not 0. */
static bool
check_half(struct half *h, unsigned *told, struct err *e)
{
    struct queue_row q = {0};

    if (!rows_columns(h->res, &h->fields, e))
        return false;
    h->name = result_col(h->res, "queue");
    h->n = result_rows(h->res);
    for (int i = 0; i < h->n; i++) {
        if (!rows_read(h->res, i, &h->fields, &q, e))
            return false;
        for (int k = 0; k < LIVE; k++)
            *told |= (*number(&q, k) != FIELD_NULL) ? 1U << k : 0;
    }
    sort_half(h);
    return true;
}

static void
pair_halves(struct answer *a)
{
    const struct half *x = &a->config, *y = &a->counts;
    int i = 0, k = 0;

    a->queues = xcalloc((size_t)x->n + (size_t)y->n + 1, sizeof *a->queues);
    while (i < x->n || k < y->n) {
        int order = i == x->n ? 1 : k == y->n ? -1 : strcmp(name_at(x, i), name_at(y, k));
        a->queues[a->n++] = (struct both){.config = order <= 0 ? x->order[i] : -1,
                                          .count = order >= 0 ? y->order[k] : -1};
        i += order <= 0;
        k += order >= 0;
    }
}

static void
answer_done(struct answer *a)
{
    result_free(a->config.res);
    result_free(a->counts.res);
    free(a->config.order);
    free(a->counts.order);
    free(a->queues);
}

static const char *
name_of(const struct answer *a, const struct both *b)
{
    return b->config >= 0 ? result_text(a->config.res, b->config, a->config.name)
                          : result_text(a->counts.res, b->count, a->counts.name);
}

/* Rows of queues that are gone go; the others move to their new places, in the same memory. */
static void
make_places(struct store *s, struct answer *a)
{
    struct queue_row *rows = s->merged;
    int kept = 0, at = 0;

    for (int i = 0; i < s->nmerged && at < a->n; i++) {
        int order = -1;
        while (at < a->n && (order = strcmp(name_of(a, &a->queues[at]), rows[i].queue)) < 0)
            at++;
        if (order != 0)
            continue;
        a->queues[at++].was_there = true;
        rows[kept++] = rows[i];
    }
    s->merged = rows = xreallocarray(rows, (size_t)a->n + 1, sizeof *rows);
    s->nmerged = a->n;
    for (int i = a->n - 1; i >= 0; i--) {
        if (a->queues[i].was_there)
            rows[i] = rows[--kept];
        else
            rows[i] = join(NULL, NULL, ALL_LIVE);
    }
}

/* In the pool; the last row's text is often this row's too. */
static const char *
keep_text(struct arena *pool, const char *text, const char **last)
{
    if (!*text)
        return "";
    if (!*last || strcmp(*last, text) != 0)
        *last = arena_strndup(pool, text, strlen(text));
    return *last;
}

struct texts {
    const char *by, *reason, *info;
};

static void
keep_texts(struct arena *pool, struct queue_row *q, struct texts *last)
{
    q->queue = arena_strndup(pool, q->queue, strlen(q->queue));
    q->paused_by = keep_text(pool, q->paused_by, &last->by);
    q->pause_reason = keep_text(pool, q->pause_reason, &last->reason);
    q->info = keep_text(pool, q->info, &last->info);
}

/* What comes with other answers stays as it is. */
static void
carry_over(const struct store *s, struct queue_row *q, const struct queue_row *was)
{
    if (!was) {
        q->kept_completed = q->kept_cancelled = s->finals_known ? 0 : FIELD_NULL;
        return;
    }
    q->kept_completed = was->kept_completed;
    q->kept_cancelled = was->kept_cancelled;
    q->kept_approx = was->kept_approx;
    q->wait_p50_ms = was->wait_p50_ms;
    q->wait_p99_ms = was->wait_p99_ms;
    q->run_p50_ms = was->run_p50_ms;
    q->run_p99_ms = was->run_p99_ms;
    q->failed_hour = was->failed_hour;
    q->pushed_per_s = was->pushed_per_s;
    q->done_per_s = was->done_per_s;
    q->failed_per_s = was->failed_per_s;
    q->drain_per_s = was->drain_per_s;
    q->traced = was->traced;
}

/* check_half has read the same row. */
static const struct queue_row *
read_row(const struct half *h, int row, struct queue_row *q)
{
    struct err e;

    return row >= 0 && rows_read(h->res, row, &h->fields, q, &e) ? q : NULL;
}

static void
write_row(struct store *s, const struct answer *a, int i, struct arena *pool, struct texts *last)
{
    const struct both *b = &a->queues[i];
    struct queue_row config = {0}, count = {0}, was = s->merged[i];
    struct queue_row q = join(read_row(&a->config, b->config, &config),
                              read_row(&a->counts, b->count, &count), a->told);

    carry_over(s, &q, b->was_there ? &was : NULL);
    keep_texts(pool, &q, last);
    note_rates(s, &q, b->was_there ? &was : NULL);
    add_to_totals(&s->totals, &q);
    add_finals(&s->totals, &q);
    add_hour(&s->totals, &q);
    s->merged[i] = q;
}

static void
merge(struct store *s, struct answer *a)
{
    struct arena *pool = arena_new();
    struct texts last = {NULL, NULL, NULL};

    make_places(s, a);
    s->totals = join(NULL, NULL, ALL_LIVE);
    s->totals.queue = "";
    for (int i = 0; i < a->n; i++)
        write_row(s, a, i, pool, &last);
    arena_free(s->names);
    s->names = pool;
    for (int i = 0; i < LIVE; i++)
        if (!(a->told & 1U << i))
            *number(&s->totals, i) = FIELD_NULL;
    forget_untold(s);
    note_totals(s);
    s->merged_ms = s->server_ms;
    s->merged_serial++;
}

static int
by_time(const void *a, const void *b)
{
    const struct rate_row *x = a, *y = b;

    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

/* The kept points of the counters: the first sparkline. Sums of one moment make the totals; of many
 * queues these only. */
static void
seed(struct store *s, struct rowset *rates, bool many)
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
        if (!many)
            (void)history_add(s->history, r[i].queue, &one);
        sum.value[SERIES_PUSHED] = plus(sum.value[SERIES_PUSHED], r[i].pushed);
        sum.value[SERIES_DONE] = plus(sum.value[SERIES_DONE], r[i].completed);
        sum.value[SERIES_FAILED] = plus(sum.value[SERIES_FAILED], r[i].fails);
        if (i + 1 < rates->n && r[i + 1].at_ms == r[i].at_ms)
            continue;
        sum.at_ms = r[i].at_ms;
        (void)history_add(s->history, "", &sum);
        sum = (struct sample){
            0, {0, 0, 0, FIELD_NULL, FIELD_NULL}
        };
    }
    s->seeded = true;
}

/* --- answers that are joined to it ------------------------------------------------------------ */

static struct queue_row *
find(const struct store *s, const char *queue)
{
    struct queue_row key = {.queue = queue};

    return s->nmerged ? bsearch(&key, s->merged, (size_t)s->nmerged, sizeof key, by_queue) : NULL;
}

static void
forget_times(struct store *s)
{
    for (int i = 0; i < s->nmerged; i++) {
        struct queue_row *q = &s->merged[i];
        q->wait_p50_ms = q->wait_p99_ms = q->run_p50_ms = q->run_p99_ms = FIELD_NULL;
        q->failed_hour = FIELD_NULL;
    }
    s->totals.failed_hour = FIELD_NULL;
}

/* Waits in s->times until there are queues to join it to. */
static void
join_times(struct store *s)
{
    const struct time_row *t = s->times.rows;

    if (!s->times.res || s->nmerged == 0)
        return;
    forget_times(s);
    for (int i = 0; i < s->nmerged; i++)
        s->merged[i].failed_hour = 0;
    s->totals.failed_hour = 0;
    for (int i = 0; i < s->times.n; i++) {
        struct queue_row *q = find(s, t[i].queue);
        if (!q)
            continue;
        q->wait_p50_ms = t[i].wait_p50_ms;
        q->wait_p99_ms = t[i].wait_p99_ms;
        q->run_p50_ms = t[i].run_p50_ms;
        q->run_p99_ms = t[i].run_p99_ms;
        q->failed_hour = plus(0, t[i].failed);
        s->totals.failed_hour += q->failed_hour;
    }
    s->merged_serial++;
    rowset_free(&s->times);
}

static void
set_finals(struct store *s, int64_t kept)
{
    for (int i = 0; i < s->nmerged; i++) {
        struct queue_row *q = &s->merged[i];
        q->kept_completed = q->kept_cancelled = kept;
        q->kept_approx = 0;
    }
    s->totals.kept_completed = s->totals.kept_cancelled = FIELD_NULL;
    s->totals.kept_approx = 0;
}

/* Kept jobs change slowly and cost much: they come rarely, and stand beside the live numbers. */
static void
join_finals(struct store *s)
{
    const struct queue_row *f = s->finals.rows;

    if (!s->finals.res || s->nmerged == 0)
        return;
    set_finals(s, 0);
    s->finals_known = true;
    for (int i = 0; i < s->finals.n; i++) {
        struct queue_row *q = find(s, f[i].queue);
        if (!q)
            continue;
        q->kept_completed = f[i].kept_completed;
        q->kept_cancelled = f[i].kept_cancelled;
        q->kept_approx = f[i].kept_approx == 1;
    }
    for (int i = 0; i < s->nmerged; i++)
        add_finals(&s->totals, &s->merged[i]);
    s->merged_serial++;
    rowset_free(&s->finals);
}

bool
store_take_queues(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset rates = {0};
    struct answer a = {.config.res = db_take(reply, 0), .counts.res = db_take(reply, 1)};
    bool with_rates = !s->seeded && adapter_has(s->adapter, SEC_RATES);
    unsigned ignored = 0;

    a.config.fields = record_fields(&record_queue, a.config.columns);
    a.counts.fields = record_fields(&record_count, a.counts.columns);
    bool ok = check_half(&a.config, &ignored, e) && check_half(&a.counts, &a.told, e) &&
              (!with_rates || record_decode(&record_rate, db_take(reply, 2), &rates, e));
    if (ok) {
        if (a.counts.n == 0)
            a.told = ALL_LIVE;
        pair_halves(&a);
        if (with_rates)
            seed(s, &rates, a.n > QUEUE_TRACES);
        rowset_free(&rates);
        merge(s, &a);
        join_times(s);
        join_finals(s);
    }
    answer_done(&a);
    return ok;
}

bool
store_take_times(struct store *s, struct db_reply *reply, struct err *e)
{
    if (!store_take_one(reply, 0, &record_time, &s->times, e))
        return false;
    join_times(s);
    return true;
}

bool
store_take_finals(struct store *s, struct db_reply *reply, struct err *e)
{
    if (!store_take_one(reply, 0, &record_final, &s->finals, e))
        return false;
    join_finals(s);
    return true;
}

void
store_clear_finals(struct store *s)
{
    rowset_free(&s->finals);
    s->finals_known = false;
    set_finals(s, FIELD_NULL);
}

void
store_clear_times(struct store *s)
{
    rowset_free(&s->times);
    forget_times(s);
}

void
store_clear_queues(struct store *s)
{
    free(s->merged);
    arena_free(s->names);
    s->merged = NULL;
    s->names = NULL;
    s->nmerged = 0;
    s->merged_ms = 0;
    s->merged_serial++;
    s->finals_known = false;
}

uint64_t
store_queues_serial(const struct store *s)
{
    return s->merged_serial;
}

size_t
store_queues_bytes(const struct store *s)
{
    return (size_t)s->nmerged * sizeof *s->merged + arena_size(s->names);
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
    return find(s, queue);
}

const struct queue_row *
store_totals(const struct store *s)
{
    return &s->totals;
}

struct history *
store_new_history(void)
{
    struct history *h = history_new(10000, 61);

    history_limit(h, TRACES_MOST);
    return h;
}

const struct history *
store_history(const struct store *s)
{
    return s->history;
}
