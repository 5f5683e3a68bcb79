/*
 * The columns of the table of queues, and what is worked out for them.
 */
#include "ui/facts/queue_columns.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ui/term/chart.h"

enum { STEPS = 61, RANK_MS = 10000 };
static const int64_t PAUSED_BEHIND_MS = INT64_MAX / 2;

/* --- columns --------------------------------------------------------------------------------- */

#define F(f) offsetof(struct queue_line, q.f)

int64_t
queue_age(const struct queue_row *q, int64_t now_ms)
{
    return q->oldest_ms == FIELD_NULL || q->oldest_ms <= 0 ? FIELD_NULL : now_ms - q->oldest_ms;
}

static enum role
role_of_age(const void *row, const struct cell_ctx *c)
{
    const struct queue_row *q = &((const struct queue_line *)row)->q;
    int64_t age = q->paused == 1 ? FIELD_NULL : queue_age(q, c->now_ms);

    return q->paused == 1 ? ROLE_DIM : verdict_role(verdict_of_age(age));
}

static void
draw_oldest(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    int64_t age = queue_age(&((const struct queue_line *)row)->q, c->now_ms);

    grid_right(g, r, role_of_age(row, c), fmt_age(age == FIELD_NULL || age > 0 ? age : 0).s);
}

static void
draw_spark(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct queue_line *l = row;
    const struct history *h = store_history(c->ctx);
    double steps[STEPS], shown[STEPS];
    int step = history_step_ms(h),
        per = r.w >= 40 ? 1 : (STEPS - 1 + r.w - 1) / (r.w > 0 ? r.w : 1);
    int w = r.w < STEPS ? r.w : STEPS;

    history_read(h, l->q.queue, SERIES_DONE, c->now_ms, steps, STEPS);
    if (per == 1) {
        chart_spark(g, r, ROLE_CHART, steps, STEPS, 0);
        return;
    }
    chart_bucket(steps, STEPS, per, c->now_ms / step, shown, w);
    chart_spark(g, r, ROLE_CHART, shown, w, 0);
}

static void
draw_drain(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct queue_line *l = row;

    (void)c;
    if (l->drain_ms == FIELD_NULL)
        grid_right(g, r, ROLE_DIM, l->q.paused == 1 ? "paused" : "—");
    else if (l->gain > 0)
        grid_right(g, r, ROLE_WARN, "grows");
    else if (l->drain_ms == INT64_MAX)
        grid_right(g, r, ROLE_TEXT, l->q.done_per_s > 0.01 ? "steady" : "stands");
    else
        grid_right(g, r, ROLE_TEXT, fmt_age(l->drain_ms).s);
}

static enum role
role_of_hour(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return verdict_role(verdict_of_failed(&((const struct queue_line *)row)->q));
}

static void
draw_kept(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct queue_row *q = &((const struct queue_line *)row)->q;
    bool about = q->kept_approx == 1 && q->kept_completed != FIELD_NULL;
    char text[64];

    (void)c;
    snprintf(text, sizeof text, "%s%s", about ? "~" : "",
             fmt_count_fit(q->kept_completed, r.w - about).s);
    grid_right(g, r, ROLE_DIM, text);
}

static bool
is_approx(const void *row)
{
    return ((const struct queue_line *)row)->q.approx == 1;
}

static const struct column_special kept_special = {draw_kept, NULL, K_BIG, true};
static const struct column_special drain_special = {draw_drain, NULL, K_DURATION, true};
static const struct column_special hour_role = {NULL, role_of_hour, K_CUSTOM, false};
static const struct column_special oldest_special = {draw_oldest, NULL, K_WAIT, true};
static const struct column_special spark_special = {draw_spark, NULL, K_RATE, false};

/* clang-format off */
/* name, title, help, kind, offset, min, max, keep, special */
static const struct column columns[] = {
    {"queue", "QUEUE", "Name of the queue", K_TEXT, F(queue), 16, 24, 0, NULL},
    {"oldest", "OLDEST", "Age of the oldest ready job", K_CUSTOM,
     offsetof(struct queue_line, oldest_rank), 8, 8, 0, &oldest_special},
    {"ready", "READY", "Jobs that could start now", K_COUNT, F(ready), 7, 8, 0, NULL},
    {"running", "RUN", "Jobs that nodes are working on", K_COUNT, F(running), 4, 5, 4, NULL},
    {"failed", "FAILED", "Jobs that failed for good", K_COUNT, F(failed), 6, 6, 4, NULL},
    {"hour", "FAIL 1H", "Jobs that failed for good in the last hour", K_COUNT, F(failed_hour), 7, 7, 3, &hour_role},
    {"done", "DONE/s", "Jobs completed a second", K_RATE, F(done_per_s), 6, 6, 5, NULL},
    {"trend", "DONE, LAST MINUTES", "Jobs completed a second, newest at the right", K_CUSTOM,
     F(done_per_s), 22, 0, 8, &spark_special},
    {"in", "IN/s", "Jobs pushed a second", K_RATE, F(pushed_per_s), 5, 6, 9, NULL},
    {"retry", "RETRY", "Jobs that wait for another try", K_COUNT, F(retry), 5, 7, 10, NULL},
    {"scheduled", "SCHED", "Jobs that are to run later", K_COUNT, F(scheduled), 6, 7, 12, NULL},
    {"fails", "FAIL/s", "Tries that failed a second", K_RATE, F(failed_per_s), 6, 6, 11, NULL},
    {"blocked", "BLOCK", "Jobs that wait for another of their concurrency key", K_COUNT, F(blocked), 5, 6,
     17, NULL},
    {"used", "USED", "Jobs that run, of those that limit and living nodes allow", K_PERCENT,
     offsetof(struct queue_line, used), 4, 4, 14, NULL},
    {"drain", "DRAIN", "Time until nothing is ready at the rates of a minute; grows, or steady: no more than 5 % between in and out", K_CUSTOM,
     offsetof(struct queue_line, drain_ms), 7, 8, 13, &drain_special},
    {"wait50", "WAIT p50", "Half of the jobs of the last hour waited no longer", K_DURATION, F(wait_p50_ms), 8,
     8, 19, NULL},
    {"wait99", "WAIT p99", "99 of 100 waited no longer", K_DURATION, F(wait_p99_ms), 8, 8, 15, NULL},
    {"run50", "RUN p50", "Half of the jobs of the last hour ran no longer", K_DURATION, F(run_p50_ms), 7, 7, 20,
     NULL},
    {"run99", "RUN p99", "99 of 100 ran no longer", K_DURATION, F(run_p99_ms), 7, 7, 16, NULL},
    {"kept", "KEPT", "Completed jobs that are still there; counted rarely", K_CUSTOM, F(kept_completed),
     7, 8, 9, &kept_special},
    {"limit", "LIMIT", "At most so many jobs at a time", K_INT, F(max_running), 5, 5, 24, NULL},
};
/* clang-format on */

static struct lead
lead_of(const void *row, const struct cell_ctx *c)
{
    const struct queue_line *l = row;

    (void)c;
    return verdict_lead(l->verdict);
}

const struct list_def list_of_queues = {
    .columns = columns,
    .ncolumns = (int)(sizeof columns / sizeof *columns),
    .row_size = sizeof(struct queue_line),
    .id_offset = F(queue),
    .sort = "oldest",
    .desc = true,
    .lead = lead_of,
    .approx = is_approx,
};

/* --- what is worked out --------------------------------------------------------------------- */

/* Is the queue among those of the node ("a,b"; empty = all)? */
static bool
works_for(const struct node_row *n, const char *queue)
{
    size_t len = strlen(queue);
    const char *at = n->queues;

    if (!*at)
        return true;
    for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, queue, len) && (at[len] == ',' || !at[len]))
            return true;
    return false;
}

struct node_row *
queue_workers(const struct store *s, int *n)
{
    int all, kept = 0;
    const struct node_row *rows = store_nodes(s, &all);
    struct node_row *living = xcalloc((size_t)all + 1, sizeof *living);

    for (int i = 0; i < all; i++)
        if ((!strcmp(rows[i].state, "up") || !strcmp(rows[i].state, "late")) && rows[i].slots > 0)
            living[kept++] = rows[i];
    *n = kept;
    return living;
}

/* The slots of those that work for it; FIELD_NULL = no node says how many it has. */
static int64_t
slots_for(const struct node_row *living, int n, const char *queue)
{
    int64_t slots = FIELD_NULL;

    for (int i = 0; i < n; i++)
        if (works_for(&living[i], queue))
            slots = (slots == FIELD_NULL ? 0 : slots) + living[i].slots;
    return slots;
}

/* By the rates of a minute: those of the last seconds would make it jump. */
static int64_t
drain_time(const struct queue_row *q, double gain)
{
    if (q->ready <= 0 || q->paused == 1 || isnan(gain))
        return FIELD_NULL;
    if (gain > -0.01)
        return INT64_MAX;
    double ms = (double)q->ready / -gain * 1000;
    return ms < 1e12 ? (int64_t)ms : INT64_MAX;
}

void
queue_line_fill(struct queue_line *l, const struct queue_row *q, const struct node_row *living,
                int n, int64_t now_ms)
{
    int64_t age = queue_age(q, now_ms);

    *l = (struct queue_line){
        .q = *q, .capacity = slots_for(living, n, q->queue), .used = (double)NAN};
    l->oldest_rank = age == FIELD_NULL ? FIELD_NULL : (age < 0 ? 0 : age) / RANK_MS * RANK_MS;
    if (q->paused == 1 && age != FIELD_NULL) /* somebody's decision: behind all that should move */
        l->oldest_rank -= PAUSED_BEHIND_MS;
    if (q->max_running >= 0 && (l->capacity == FIELD_NULL || q->max_running < l->capacity))
        l->capacity = q->max_running;
    if (l->capacity > 0)
        l->used = (double)q->running / (double)l->capacity;
    l->gain = queue_gain(q);
    l->drain_ms = drain_time(q, l->gain);
    l->verdict = verdict_of_queue(q, l->gain, now_ms);
}
