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
const struct column queue_columns[] = {
    {.name = "queue", .title = "QUEUE", .help = "Name of the queue", .kind = K_TEXT, .offset = F(queue), .min_w = 16,
     .max_w = 24,
     .place = 1, .most = 30},
    {.name = "oldest", .title = "OLDEST", .help = "Age of the oldest ready job", .kind = K_CUSTOM,
     .offset = offsetof(struct queue_line, oldest_rank), .min_w = 8, .max_w = 8, .special = &oldest_special,
     .only = ON_SCREEN},
    {.name = "ready", .title = "READY", .help = "Jobs that could start now", .kind = K_COUNT, .offset = F(ready),
     .min_w = 7, .max_w = 8,
     .place = 3},
    {.name = "running", .title = "RUN", .help = "Jobs that nodes are working on", .kind = K_COUNT,
     .offset = F(running), .min_w = 4, .max_w = 5, .keep = 4,
     .place = 6, .table = "RUNNING"},
    {.name = "failed", .title = "FAILED", .help = "Jobs that failed for good", .kind = K_COUNT, .offset = F(failed),
     .min_w = 6, .max_w = 6, .keep = 9,
     .place = 7},
    {.name = "hour", .title = "FAIL 1H", .help = "Jobs that failed for good in the last hour", .kind = K_COUNT,
     .offset = F(failed_hour), .min_w = 7, .max_w = 7, .keep = 3, .special = &hour_role,
     .only = ON_SCREEN},
    {.name = "done", .title = "DONE/s", .help = "Jobs completed a second", .kind = K_RATE, .offset = F(done_per_s),
     .min_w = 6, .max_w = 6, .keep = 5,
     .place = 11, .json = "done_per_s"},
    {.name = "trend", .title = "DONE, LAST MINUTES", .help = "Jobs completed a second, newest at the right",
     .kind = K_CUSTOM, .offset = F(done_per_s), .min_w = 22, .keep = 8, .special = &spark_special,
     .only = ON_SCREEN},
    {.name = "in", .title = "IN/s", .help = "Jobs pushed a second", .kind = K_RATE, .offset = F(pushed_per_s),
     .min_w = 5, .max_w = 6, .keep = 9,
     .place = 10, .json = "pushed_per_s", .table = "PUSHED/s"},
    {.name = "retry", .title = "RETRY", .help = "Jobs that wait for another try", .kind = K_COUNT, .offset = F(retry),
     .min_w = 5, .max_w = 7, .keep = 10,
     .place = 5},
    {.name = "scheduled", .title = "SCHED", .help = "Jobs that are to run later", .kind = K_COUNT,
     .offset = F(scheduled), .min_w = 6, .max_w = 7, .keep = 12,
     .place = 4, .table = "SCHEDULED"},
    {.name = "fails", .title = "FAIL/s", .help = "Tries that failed a second", .kind = K_RATE,
     .offset = F(failed_per_s), .min_w = 6, .max_w = 6, .keep = 11,
     .place = 12, .json = "failed_per_s", .table = "FAILED/s"},
    {.name = "blocked", .title = "BLOCK", .help = "Jobs that wait for another of their concurrency key",
     .kind = K_COUNT, .offset = F(blocked), .min_w = 5, .max_w = 6, .keep = 17,
     .only = ON_SCREEN | IN_DATA, .place = 8},
    {.name = "used", .title = "USED", .help = "Jobs that run, of those that limit and living nodes allow",
     .kind = K_PERCENT, .offset = offsetof(struct queue_line, used), .min_w = 4, .max_w = 4, .keep = 14,
     .only = ON_SCREEN},
    {.name = "drain", .title = "DRAIN", 
     .help = "Time until nothing is ready at the rates of a minute; grows, or steady: no more than 5 % between in and out",
     .kind = K_CUSTOM,
     .offset = offsetof(struct queue_line, drain_ms), .min_w = 7, .max_w = 8, .keep = 13, .special = &drain_special,
     .only = ON_SCREEN},
    {.name = "wait50", .title = "WAIT p50", .help = "Half of the jobs of the last hour waited no longer",
     .kind = K_DURATION, .offset = F(wait_p50_ms), .min_w = 8, .max_w = 8, .keep = 19,
     .only = ON_SCREEN | IN_DATA, .place = 13, .json = "wait_p50_ms"},
    {.name = "wait99", .title = "WAIT p99", .help = "99 of 100 waited no longer", .kind = K_DURATION,
     .offset = F(wait_p99_ms), .min_w = 8, .max_w = 8, .keep = 15,
     .only = ON_SCREEN | IN_DATA, .place = 14, .json = "wait_p99_ms"},
    {.name = "run50", .title = "RUN p50", .help = "Half of the jobs of the last hour ran no longer",
     .kind = K_DURATION, .offset = F(run_p50_ms), .min_w = 7, .max_w = 7, .keep = 20,
     .only = ON_SCREEN | IN_DATA, .place = 15, .json = "run_p50_ms"},
    {.name = "run99", .title = "RUN p99", .help = "99 of 100 ran no longer", .kind = K_DURATION,
     .offset = F(run_p99_ms), .min_w = 7, .max_w = 7, .keep = 16,
     .only = ON_SCREEN | IN_DATA, .place = 16, .json = "run_p99_ms"},
    {.name = "kept", .title = "KEPT", .help = "Completed jobs that are still there; counted rarely", .kind = K_CUSTOM,
     .offset = F(kept_completed), .min_w = 7, .max_w = 8, .keep = 9, .special = &kept_special,
     .only = ON_SCREEN},
    {.name = "limit", .title = "LIMIT", .help = "At most so many jobs at a time", .kind = K_INT,
     .offset = F(max_running), .min_w = 5, .max_w = 5, .keep = 24,
     .only = ON_SCREEN},
    /* the command line alone */
    {.name = "paused", .title = "PAUSED", .kind = K_BOOL, .offset = F(paused), .only = IN_TABLE | IN_DATA, .place = 2},
    {.name = "oldest_ready_s", .title = "OLDEST", .kind = K_AGE, .offset = F(oldest_ms), .only = IN_TABLE | IN_DATA, .place = 9},
    {.name = "approx", .kind = K_BOOL, .offset = F(approx), .only = IN_DATA, .place = 17},
    {0},
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
    .columns = queue_columns,
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
