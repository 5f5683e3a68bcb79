/*
 * The queues for a verb: the answers of one transaction, joined row by row. The console has a store
 * for this; a verb asks only once.
 */
#include "ui/read/cli_queues.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/store/history.h"

enum { RATE_MS = 10000 };

/* Rows sorted by the name of their queue, the first member of each. There may be hundreds of
 * thousands, in the order of the server's collation. */
struct by_queue {
    const void **rows; /* rows of the same queue keep their order */
    int n;
};

static const char *
queue_of(const void *row)
{
    return *(const char *const *)row;
}

static int
compare_queues(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    int order = strcmp(queue_of(x), queue_of(y));

    return order ? order : (x > y) - (x < y);
}

static struct by_queue
by_queue(const struct rowset *rows)
{
    struct by_queue b = {xcalloc((size_t)rows->n + 1, sizeof *b.rows), rows->n};

    for (int i = 0; i < rows->n; i++)
        b.rows[i] = (const char *)rows->rows + (size_t)i * rows->size;
    qsort(b.rows, (size_t)b.n, sizeof *b.rows, compare_queues);
    return b;
}

/* The number of rows up to the last row of this queue. */
static int
up_to(const struct by_queue *b, const char *queue)
{
    int low = 0, high = b->n;

    while (low < high) {
        int mid = low + (high - low) / 2;
        if (strcmp(queue_of(b->rows[mid]), queue) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The last row of this queue; NULL = none. */
static const void *
find_queue(const struct by_queue *b, const char *queue)
{
    int n = up_to(b, queue);

    return n && !strcmp(queue_of(b->rows[n - 1]), queue) ? b->rows[n - 1] : NULL;
}

/* Sets the rates: from the kept points of the queue's counters and the present counts. */
static void
set_rates(struct queue_row *q, const struct by_queue *kept, int64_t now_ms)
{
    struct history *h = history_new(RATE_MS, 61);
    int n = up_to(kept, q->queue), i = n;

    while (i > 0 && !strcmp(queue_of(kept->rows[i - 1]), q->queue))
        i--;
    for (; i < n; i++) {
        const struct rate_row *r = kept->rows[i];
        history_add(h, q->queue,
                    &(struct sample){
                        r->at_ms, {r->pushed, r->completed, r->fails, FIELD_NULL, FIELD_NULL}
        });
    }
    history_add(h, q->queue,
                &(struct sample){
                    now_ms, {q->pushed, q->completed, q->fails, FIELD_NULL, FIELD_NULL}
    });
    q->pushed_per_s = history_now(h, q->queue, SERIES_PUSHED, RATE_MS);
    q->done_per_s = history_now(h, q->queue, SERIES_DONE, RATE_MS);
    q->failed_per_s = history_now(h, q->queue, SERIES_FAILED, RATE_MS);
    history_free(h);
}

/* Makes one queue's history after the other, because all at once would need a gigabyte. */
static void
add_rates(const struct rowset *kept, struct rowset *counts, int64_t now_ms)
{
    struct by_queue points = by_queue(kept);
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++)
        set_rates(&q[i], &points, now_ms);
    free(points.rows);
}

/* Sets whether queues are paused. In our own queue system a queue without settings is not paused;
 * in others it is not known. */
static void
add_settings(const struct rowset *config, struct rowset *counts, bool foreign)
{
    struct by_queue settings = by_queue(config);
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++) {
        const struct queue_row *from = find_queue(&settings, q[i].queue);
        q[i].paused = from ? from->paused : foreign ? -1 : 0;
        q[i].max_running = from ? from->max_running : INT_MIN;
        q[i].paused_by = q[i].pause_reason = q[i].info = "";
    }
    free(settings.rows);
}

/* Sets how long the jobs of the last hour waited and ran. */
static void
add_times(const struct rowset *times, struct rowset *counts)
{
    struct by_queue known = by_queue(times);
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++) {
        const struct time_row *from = find_queue(&known, q[i].queue);
        q[i].wait_p50_ms = from ? from->wait_p50_ms : FIELD_NULL;
        q[i].wait_p99_ms = from ? from->wait_p99_ms : FIELD_NULL;
        q[i].run_p50_ms = from ? from->run_p50_ms : FIELD_NULL;
        q[i].run_p99_ms = from ? from->run_p99_ms : FIELD_NULL;
        q[i].failed_left = from ? from->failed_left : FIELD_NULL;
        q[i].failed_hour = from && from->failed > 0 ? from->failed : times->n > 0 ? 0 : FIELD_NULL;
    }
    free(known.rows);
}

/* Sets the jobs in and out of five minutes; a queue without an answer has unknown values. */
static void
add_paces(const struct rowset *paces, struct rowset *counts)
{
    struct by_queue known = by_queue(paces);
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++) {
        const struct pace_row *from = find_queue(&known, q[i].queue);
        store_forget_pace(&q[i]);
        if (from)
            store_set_pace(&q[i], from);
    }
    free(known.rows);
}

/* Makes lines with calculated figures from the counts. */
static struct queue_line *
lines_of(const struct rowset *counts, const struct rowset *nodes, int64_t now_ms)
{
    struct queue_line *lines = xcalloc((size_t)counts->n + 1, sizeof *lines);
    const struct queue_row *q = counts->rows;
    struct workers w = workers_of(nodes->rows, nodes->n);

    for (int i = 0; i < counts->n; i++)
        queue_line_fill(&lines[i], &q[i], &w, now_ms);
    workers_done(&w);
    return lines;
}

/* Adds the queues that have settings but no jobs, because other queue systems do not count them. A
 * queue that is in both lists stays one row. */
static void
add_idle(const struct rowset *config, struct rowset *counts)
{
    const struct queue_row *from = config->rows;
    size_t most = (size_t)counts->n + (size_t)config->n;
    struct queue_row *q = xreallocarray(counts->rows, most + 1, sizeof *from);

    counts->rows = q;
    struct by_queue counted = by_queue(counts), named = by_queue(config);
    for (int i = 0; i < config->n; i++) {
        if (find_queue(&counted, from[i].queue) || find_queue(&named, from[i].queue) != &from[i])
            continue;
        struct queue_row idle = from[i];
        idle.oldest_ms = idle.blocked = idle.expired = FIELD_NULL;
        idle.pushed = idle.completed = idle.fails = idle.retried = idle.run_ms = FIELD_NULL;
        q[counts->n++] = idle;
    }
    free(counted.rows);
    free(named.rows);
}

/* Counts are exact unless the row says that they are estimates. */
static void
settle_approx(struct rowset *counts)
{
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++)
        q[i].approx = q[i].approx == 1;
}

/* Sets the times to "not known" if nobody asked for them: zero would be wrong. */
static void
forget_times(struct rowset *counts)
{
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++) {
        q[i].pushed_per_s = q[i].done_per_s = q[i].failed_per_s = (double)NAN;
        q[i].failed_hour = q[i].failed_left = q[i].wait_p50_ms = q[i].wait_p99_ms = FIELD_NULL;
        q[i].run_p50_ms = q[i].run_p99_ms = FIELD_NULL;
    }
}

static void
put_together(const struct cli_queue *q, bool times, struct queues_look *l)
{
    struct rowset *counts = &l->rows[LOOK_COUNTS];

    l->foreign = !adapter_has(q->adapter, SEC_RATES);
    if (l->foreign)
        add_idle(&l->rows[LOOK_QUEUES], counts);
    add_settings(&l->rows[LOOK_QUEUES], counts, l->foreign);
    if (times) {
        add_rates(&l->rows[LOOK_RATES], counts, q->now_ms);
        add_times(&l->rows[LOOK_TIMES], counts);
    } else
        forget_times(counts);
    add_paces(&l->rows[LOOK_PACE], counts);
    settle_approx(counts);
    l->lines = lines_of(counts, &l->rows[LOOK_NODES], q->now_ms);
    l->n = counts->n;
}

bool
queues_look(struct cli_queue *q, bool times, struct queues_look *l, struct err *e)
{
    static const enum section_id sections[] = {
        [LOOK_QUEUES] = SEC_QUEUES, [LOOK_COUNTS] = SEC_COUNTS, [LOOK_LIFE] = SEC_LIFE,
        [LOOK_PACE] = SEC_PACE,     [LOOK_NODES] = SEC_NODES,   [LOOK_RATES] = SEC_RATES,
        [LOOK_TIMES] = SEC_TIMES};

    *l = (struct queues_look){.n = 0};
    if (!cli_ask(q, sections, times ? LOOK_PARTS : LOOK_RATES, NULL, l->rows, e))
        return false;
    put_together(q, times, l);
    return true;
}

void
queues_done(struct queues_look *l)
{
    free(l->lines);
    for (int i = 0; i < LOOK_PARTS; i++)
        rowset_free(&l->rows[i]);
}

int
queues_troubles(const struct cli_queue *q, const struct queues_look *l, struct trouble *out)
{
    struct life_look look = {.row = queues_life(l),
                             .queues = l->rows[LOOK_COUNTS].rows,
                             .nqueues = l->rows[LOOK_COUNTS].n,
                             .now_ms = q->now_ms};

    return look.row ? life_troubles(&look, q->cli->mem, out) : 0;
}

const struct life_row *
queues_life(const struct queues_look *l)
{
    return l->rows[LOOK_LIFE].n ? l->rows[LOOK_LIFE].rows : NULL;
}
