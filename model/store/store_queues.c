/*
 * The queues. Their settings, the live counts, the times of jobs and the numbers of kept finished
 * jobs come in separate answers, each at its own pace, and are joined here.
 *
 * There may be a queue for each of fifty thousand customers. So one row a queue is all that is
 * kept: an answer is first read through, then written row by row over the rows of the last one, and
 * freed. Names are kept once, other texts as often as they change from row to row. With more queues
 * than QUEUE_TRACES only active queues have a history, TRACES_MOST at most; the rates of the others
 * come from the last two answers.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/store/store_parts.h"

enum { RATE_WINDOW_MS = 60000 };

static int
by_queue(const void *a, const void *b)
{
    return strcmp(((const struct queue_row *)a)->queue, ((const struct queue_row *)b)->queue);
}

static int64_t
add_known(int64_t sum, int64_t value)
{
    return value == FIELD_NULL ? sum : sum + value;
}

static void
add_to_totals(struct queue_row *sum, const struct queue_row *q)
{
    sum->scheduled = add_known(sum->scheduled, q->scheduled);
    sum->ready = add_known(sum->ready, q->ready);
    sum->retry = add_known(sum->retry, q->retry);
    sum->running = add_known(sum->running, q->running);
    sum->failed = add_known(sum->failed, q->failed);
    sum->pushed = add_known(sum->pushed, q->pushed);
    sum->completed = add_known(sum->completed, q->completed);
    sum->fails = add_known(sum->fails, q->fails);
    sum->retried = add_known(sum->retried, q->retried);
    sum->run_ms = add_known(sum->run_ms, q->run_ms);
    sum->approx |= q->approx;
    if (q->paused != 1 && q->oldest_ms != FIELD_NULL && /* jobs of a paused queue are not late */
        (sum->oldest_ms == FIELD_NULL || q->oldest_ms < sum->oldest_ms))
        sum->oldest_ms = q->oldest_ms;
}

static void
rates_of_answers(const struct store *s, struct queue_row *q, const struct queue_row *was)
{
    int64_t ms = s->queues.at_ms ? s->source.server_ms - s->queues.at_ms : 0;

    if (s->queues.at_ms && ms <= 0) /* the same answer again: no time has passed */
        return;
    store_set_rates(q, was, ms);
}

static void
rates_of_history(const struct store *s, struct queue_row *q)
{
    const struct history *h = s->queues.history;

    q->pushed_per_s = history_mean(h, q->queue, SERIES_PUSHED, RATE_WINDOW_MS, 0);
    q->done_per_s = history_mean(h, q->queue, SERIES_DONE, RATE_WINDOW_MS, 0);
    q->failed_per_s = history_mean(h, q->queue, SERIES_FAILED, RATE_WINDOW_MS, 0);
    store_see_pace(s, q);
}

static struct sample
sample_of(const struct store *s, const struct queue_row *q)
{
    int64_t oldest = FIELD_NULL;

    if (q->oldest_ms != FIELD_NULL)
        oldest = s->source.server_ms > q->oldest_ms ? s->source.server_ms - q->oldest_ms : 0;
    return (struct sample){
        s->source.server_ms,
        {q->pushed, q->completed, q->fails, add_known(q->ready, q->running), oldest}
    };
}

/* was: the row in the last answer, NULL = there was none. */
static void
note_rates(struct store *s, struct queue_row *q, const struct queue_row *was)
{
    struct sample now = sample_of(s, q);

    if (s->once) {
        store_rate_points(s, q);
        return;
    }
    if (s->queues.n <= QUEUE_TRACES) {
        q->traced = history_add(s->queues.history, q->queue, &now);
        rates_of_history(s, q);
        return;
    }
    bool moved = was && (was->pushed != q->pushed || was->completed != q->completed ||
                         was->fails != q->fails);
    if (moved)
        q->traced = history_add(s->queues.history, q->queue, &now);
    else if (q->traced)
        q->traced = history_go_on(s->queues.history, q->queue, &now);
    q->pushed_per_s = q->done_per_s = q->failed_per_s = (double)NAN;
    if (was)
        rates_of_answers(s, q, was);
    store_see_pace(s, q);
}

#define F(f) offsetof(struct queue_row, f)
static const size_t live[] = {F(scheduled), F(ready), F(retry), F(running), F(failed)};
enum { LIVE = sizeof live / sizeof *live, ALL_LIVE = (1 << LIVE) - 1 };

static int64_t *
number_at(struct queue_row *q, int i)
{
    return (int64_t *)(void *)((char *)q + live[i]);
}

static void
set_live(struct queue_row *q, const struct queue_row *count, unsigned told)
{
    struct queue_row from = count ? *count : *q;

    for (int i = 0; i < LIVE; i++)
        *number_at(q, i) =
            told & 1U << i ? add_known(0, count ? *number_at(&from, i) : 0) : FIELD_NULL;
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

    q.oldest_ms = q.blocked = q.expired = q.kept_completed = q.kept_cancelled = FIELD_NULL;
    q.wait_p50_ms = q.wait_p99_ms = q.run_p50_ms = q.run_p99_ms = FIELD_NULL;
    q.failed_hour = q.failed_left = FIELD_NULL;
    store_forget_pace(&q);
    set_live(&q, count, told);
    if (!count)
        return q;
    q.queue = count->queue;
    q.blocked = count->blocked;
    q.expired = count->expired;
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
        sum->failed_hour = add_known(q->failed_hour, add_known(0, sum->failed_hour));
    if (q->failed_left != FIELD_NULL)
        sum->failed_left = add_known(q->failed_left, add_known(0, sum->failed_left));
}

static void
add_finals(struct queue_row *sum, const struct queue_row *q)
{
    if (q->kept_completed != FIELD_NULL)
        sum->kept_completed = add_known(q->kept_completed, add_known(0, sum->kept_completed));
    if (q->kept_cancelled != FIELD_NULL)
        sum->kept_cancelled = add_known(q->kept_cancelled, add_known(0, sum->kept_cancelled));
    sum->kept_approx |= q->kept_approx;
}

/* The history of all queues together is kept even if there are too many queues for one each. */
static void
note_totals(struct store *s)
{
    struct sample now = sample_of(s, &s->queues.totals);

    (void)history_add(s->queues.history, "", &now);
    rates_of_history(s, &s->queues.totals);
}

/* Totals that no queue reports are unknown, and their rates too. */
static void
forget_untold(struct store *s)
{
    static const size_t ever[] = {F(pushed), F(completed), F(fails), F(retried), F(run_ms)};

    for (size_t i = 0; i < sizeof ever / sizeof *ever && s->queues.n > 0; i++) {
        bool told = false;
        for (int k = 0; k < s->queues.n && !told; k++)
            told = *(int64_t *)(void *)((char *)&s->queues.rows[k] + ever[i]) != FIELD_NULL;
        if (!told)
            *(int64_t *)(void *)((char *)&s->queues.totals + ever[i]) = FIELD_NULL;
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

struct both { /* the row numbers of one queue in both halves; -1 = not in that half */
    int config, count;
    bool was_there; /* in the last answer */
};

struct queues_answer {
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

/* Checks every row before any row is taken. told: one bit for each live number, set if at least one
 * queue reports the number. A number that no queue reports is unknown, not 0. */
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
            *told |= (*number_at(&q, k) != FIELD_NULL) ? 1U << k : 0;
    }
    sort_half(h);
    return true;
}

static void
pair_halves(struct queues_answer *a)
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
answer_done(struct queues_answer *a)
{
    result_free(a->config.res);
    result_free(a->counts.res);
    free(a->config.order);
    free(a->counts.order);
    free(a->queues);
}

static const char *
name_of(const struct queues_answer *a, const struct both *b)
{
    return b->config >= 0 ? result_text(a->config.res, b->config, a->config.name)
                          : result_text(a->counts.res, b->count, a->counts.name);
}

/* Removes the rows of queues that no longer exist, and moves the others to their new places in the
 * same memory. */
static void
make_places(struct store *s, struct queues_answer *a)
{
    struct queue_row *rows = s->queues.rows;
    int kept = 0, at = 0;

    for (int i = 0; i < s->queues.n && at < a->n; i++) {
        int order = -1;
        while (at < a->n && (order = strcmp(name_of(a, &a->queues[at]), rows[i].queue)) < 0)
            at++;
        if (order != 0)
            continue;
        a->queues[at++].was_there = true;
        rows[kept++] = rows[i];
    }
    s->queues.rows = rows = xreallocarray(rows, (size_t)a->n + 1, sizeof *rows);
    s->queues.n = a->n;
    for (int i = a->n - 1; i >= 0; i--) {
        if (a->queues[i].was_there)
            rows[i] = rows[--kept];
        else
            rows[i] = join(NULL, NULL, ALL_LIVE);
    }
}

/* Copies the text to the pool, unless the row before has the same text. */
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

/* Fields that other answers fill keep their values. */
static void
carry_over(const struct store *s, struct queue_row *q, const struct queue_row *was)
{
    if (!was) {
        q->kept_completed = q->kept_cancelled = s->queues.finals_known ? 0 : FIELD_NULL;
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
    q->failed_left = was->failed_left;
    q->pushed_per_s = was->pushed_per_s;
    q->done_per_s = was->done_per_s;
    q->failed_per_s = was->failed_per_s;
    store_carry_pace(q, was);
    q->traced = was->traced;
}

/* Can't fail, because check_half has read the same row. */
static const struct queue_row *
read_row(const struct half *h, int row, struct queue_row *q)
{
    struct err e;

    return row >= 0 && rows_read(h->res, row, &h->fields, q, &e) ? q : NULL;
}

static int64_t
last_full(const struct store *s, const struct queue_row *q, const struct queue_row *was)
{
    if (q->max_running >= 0 && q->running >= q->max_running)
        return s->source.server_ms;
    return was && was->max_running == q->max_running ? was->full_ms : FIELD_NULL;
}

static void
write_row(struct store *s, const struct queues_answer *a, int i, struct arena *pool,
          struct texts *last)
{
    const struct both *b = &a->queues[i];
    struct queue_row config = {0}, count = {0}, was = s->queues.rows[i];
    struct queue_row q = join(read_row(&a->config, b->config, &config),
                              read_row(&a->counts, b->count, &count), a->told);

    carry_over(s, &q, b->was_there ? &was : NULL);
    keep_texts(pool, &q, last);
    note_rates(s, &q, b->was_there ? &was : NULL);
    q.full_ms = last_full(s, &q, b->was_there ? &was : NULL);
    q.read_ms = s->source.server_ms;
    q.place = b->count >= 0 ? b->count : a->counts.n + b->config;
    if (s->once && b->config < 0 && strcmp(adapter_name(s->adapter), "native") != 0)
        q.paused = -1; /* not known there */
    add_to_totals(&s->queues.totals, &q);
    add_finals(&s->queues.totals, &q);
    add_hour(&s->queues.totals, &q);
    s->queues.rows[i] = q;
}

static void
merge(struct store *s, struct queues_answer *a)
{
    struct arena *pool = arena_new();
    struct texts last = {NULL, NULL, NULL};

    make_places(s, a);
    s->queues.totals = join(NULL, NULL, ALL_LIVE);
    s->queues.totals.queue = "";
    for (int i = 0; i < a->n; i++)
        write_row(s, a, i, pool, &last);
    arena_free(s->queues.names);
    s->queues.names = pool;
    for (int i = 0; i < LIVE; i++)
        if (!(a->told & 1U << i))
            *number_at(&s->queues.totals, i) = FIELD_NULL;
    forget_untold(s);
    note_totals(s);
    s->queues.at_ms = s->source.server_ms;
    s->queues.serial++;
}

static int
by_time(const void *a, const void *b)
{
    const struct rate_row *x = a, *y = b;

    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

static int64_t
waited_ms(const struct rate_row *r)
{
    if (r->oldest_ms == FIELD_NULL)
        return FIELD_NULL;
    return r->at_ms > r->oldest_ms ? r->at_ms - r->oldest_ms : 0;
}

/* Takes the kept points of the counters, for the first sparklines. The sums of all points of one
 * time are the points of the totals. With many queues only these sums are taken. */
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
            r[i].at_ms, {r[i].pushed, r[i].completed, r[i].fails, r[i].ready, waited_ms(&r[i])}
        };
        if (!many)
            (void)history_add(s->queues.history, r[i].queue, &one);
        sum.value[SERIES_PUSHED] = add_known(sum.value[SERIES_PUSHED], r[i].pushed);
        sum.value[SERIES_DONE] = add_known(sum.value[SERIES_DONE], r[i].completed);
        sum.value[SERIES_FAILED] = add_known(sum.value[SERIES_FAILED], r[i].fails);
        if (r[i].ready != FIELD_NULL)
            sum.value[SERIES_BACKLOG] =
                add_known(r[i].ready, add_known(0, sum.value[SERIES_BACKLOG]));
        if (one.value[SERIES_OLDEST] > sum.value[SERIES_OLDEST]) /* an unknown value is lower
                                                                    than all others */
            sum.value[SERIES_OLDEST] = one.value[SERIES_OLDEST];
        if (i + 1 < rates->n && r[i + 1].at_ms == r[i].at_ms)
            continue;
        sum.at_ms = r[i].at_ms;
        (void)history_add(s->queues.history, "", &sum);
        sum = (struct sample){
            0, {0, 0, 0, FIELD_NULL, FIELD_NULL}
        };
    }
    s->queues.seeded = true;
}

/* --- answers that are joined to it ------------------------------------------------------------ */

struct queue_row *
store_find_queue(const struct store *s, const char *queue)
{
    struct queue_row key = {.queue = queue};

    return s->queues.n ? bsearch(&key, s->queues.rows, (size_t)s->queues.n, sizeof key, by_queue)
                       : NULL;
}

static void
forget_times(struct store *s)
{
    for (int i = 0; i < s->queues.n; i++) {
        struct queue_row *q = &s->queues.rows[i];
        q->wait_p50_ms = q->wait_p99_ms = q->run_p50_ms = q->run_p99_ms = FIELD_NULL;
        q->failed_hour = q->failed_left = FIELD_NULL;
    }
    s->queues.totals.failed_hour = s->queues.totals.failed_left = FIELD_NULL;
}

/* The answer waits in s->queues.times until there are queues to join it to. */
void
store_join_times(struct store *s)
{
    const struct time_row *t = s->queues.times.rows;

    if (!s->queues.times.res || s->queues.n == 0)
        return;
    forget_times(s);
    for (int i = 0; i < s->queues.n; i++)
        s->queues.rows[i].failed_hour = s->once && !s->queues.times.n ? FIELD_NULL : 0;
    s->queues.totals.failed_hour = 0;
    for (int i = 0; i < s->queues.times.n; i++) {
        struct queue_row *q = store_find_queue(s, t[i].queue);
        if (!q)
            continue;
        q->wait_p50_ms = t[i].wait_p50_ms;
        q->wait_p99_ms = t[i].wait_p99_ms;
        q->run_p50_ms = t[i].run_p50_ms;
        q->run_p99_ms = t[i].run_p99_ms;
        q->failed_hour = add_known(0, t[i].failed);
        s->queues.totals.failed_hour += q->failed_hour;
        q->failed_left = t[i].failed_left;
        if (q->failed_left != FIELD_NULL)
            s->queues.totals.failed_left =
                add_known(q->failed_left, add_known(0, s->queues.totals.failed_left));
    }
    s->queues.serial++;
    rowset_free(&s->queues.times);
}

static void
set_finals(struct store *s, int64_t kept)
{
    for (int i = 0; i < s->queues.n; i++) {
        struct queue_row *q = &s->queues.rows[i];
        q->kept_completed = q->kept_cancelled = kept;
        q->kept_approx = 0;
    }
    s->queues.totals.kept_completed = s->queues.totals.kept_cancelled = FIELD_NULL;
    s->queues.totals.kept_approx = 0;
}

/* Joins the numbers of finished jobs to the rows. They change slowly and are costly to count, so
 * this answer comes rarely. */
void
store_join_finals(struct store *s)
{
    const struct queue_row *f = s->queues.finals.rows;

    if (!s->queues.finals.res || s->queues.n == 0)
        return;
    set_finals(s, 0);
    s->queues.finals_known = true;
    for (int i = 0; i < s->queues.finals.n; i++) {
        struct queue_row *q = store_find_queue(s, f[i].queue);
        if (!q)
            continue;
        q->kept_completed = f[i].kept_completed;
        q->kept_cancelled = f[i].kept_cancelled;
        q->kept_approx = f[i].kept_approx == 1;
    }
    for (int i = 0; i < s->queues.n; i++)
        add_finals(&s->queues.totals, &s->queues.rows[i]);
    s->queues.serial++;
    rowset_free(&s->queues.finals);
}

bool
store_take_queues(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset rates = {0};
    struct queues_answer a = {.config.res = db_take(reply, 0), .counts.res = db_take(reply, 1)};
    bool with_rates = !s->queues.seeded && adapter_has(s->adapter, SEC_RATES);
    unsigned ignored = 0;

    a.config.fields = record_fields(&record_queue, a.config.columns);
    a.counts.fields = record_fields(&record_count, a.counts.columns);
    bool ok = (check_half(&a.config, &ignored, e) || fail_in(e, "queues")) &&
              (check_half(&a.counts, &a.told, e) || fail_in(e, "counts")) &&
              (!with_rates || record_decode(&record_rate, db_take(reply, 2), &rates, e) ||
               fail_in(e, "rates"));
    if (ok) {
        if (a.counts.n == 0)
            a.told = ALL_LIVE;
        pair_halves(&a);
        if (with_rates && s->once)
            store_keep_points(s, &rates);
        else if (with_rates)
            seed(s, &rates, a.n > QUEUE_TRACES);
        rowset_free(&rates);
        merge(s, &a);
        store_join_times(s);
        store_join_finals(s);
        store_join_pace(s);
    }
    answer_done(&a);
    return ok;
}

void
store_clear_finals(struct store *s)
{
    s->queues.finals_known = false;
    set_finals(s, FIELD_NULL);
}

void
store_clear_times(struct store *s)
{
    forget_times(s);
}

void
store_clear_queues(struct store *s)
{
    free(s->queues.rows);
    arena_free(s->queues.names);
    s->queues.rows = NULL;
    s->queues.names = NULL;
    s->queues.n = 0;
    s->queues.at_ms = 0;
    s->queues.serial++;
    s->queues.finals_known = false;
}

uint64_t
store_queues_serial(const struct store *s)
{
    return s->queues.serial;
}

size_t
store_queues_bytes(const struct store *s)
{
    return (size_t)s->queues.n * sizeof *s->queues.rows + arena_size(s->queues.names);
}

const struct queue_row *
store_queues(const struct store *s, int *n)
{
    *n = s->queues.n;
    return s->queues.rows;
}

const struct queue_row *
store_queue(const struct store *s, const char *queue)
{
    return store_find_queue(s, queue);
}

const struct queue_row *
store_totals(const struct store *s)
{
    return &s->queues.totals;
}

static struct history *
make_history(void)
{
    struct history *h = history_new(10000, 61);

    history_limit(h, TRACES_MOST);
    return h;
}

void
store_init_queues(struct store *s)
{
    s->queues.history = make_history();
    s->queues.totals = (struct queue_row){.queue = "",
                                          .paused_by = "",
                                          .pause_reason = "",
                                          .info = "",
                                          .oldest_ms = FIELD_NULL,
                                          .kept_completed = FIELD_NULL,
                                          .kept_cancelled = FIELD_NULL,
                                          .pushed_per_s = (double)NAN,
                                          .done_per_s = (double)NAN,
                                          .failed_per_s = (double)NAN};
}

void
store_done_queues(struct store *s)
{
    history_free(s->queues.history);
    rowset_free(&s->queues.points);
}

void
store_reset_queues(struct store *s)
{
    history_free(s->queues.history);
    s->queues.history = make_history();
    s->queues.seeded = false;
}

void
store_skip_seed(struct store *s)
{
    s->queues.seeded = true;
}

const struct history *
store_history(const struct store *s)
{
    return s->queues.history;
}
