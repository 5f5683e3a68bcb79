/*
 * The columns of the table of queues. queue_line.c calculates their figures.
 */
#include "ui/facts/queue_columns.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ui/term/chart.h"

enum { STEPS = 61 };

/* --- columns --------------------------------------------------------------------------------- */

#define F(f) offsetof(struct queue_line, q.f)

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

static enum role
role_of_trend(enum trend t)
{
    if (t == TREND_FILLS || t == TREND_STANDS)
        return ROLE_WARN;
    return t == TREND_DRAINS ? ROLE_TEXT : ROLE_DIM;
}

static void
draw_empty(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct queue_line *l = row;
    struct fmt text = queue_empty_at(l, c->now_ms, c->utc, r.w);

    grid_right(g, r, !*text.s || l->q.paused == 1 ? ROLE_DIM : role_of_trend(l->o.trend),
               *text.s ? text.s : "—");
}

static void
draw_held(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct queue_line *l = row;
    bool bad = l->o.held == HELD_NO_NODE || l->o.held == HELD_FAILING;

    (void)c;
    if (l->q.paused != 1) /* EMPTY AT shows the pause */
        grid_str(g, r, bad ? ROLE_WARN : ROLE_TEXT, queue_held_by(l).s);
}

struct fmt
queue_running(const struct queue_line *l, int w)
{
    int64_t most = l->capacity, more = l->q.running - most;
    struct fmt f, run = fmt_about(l->q.running, l->q.approx);

    if (most == FIELD_NULL || l->q.running == FIELD_NULL)
        return run;
    int len = more > 0 ? snprintf(f.s, sizeof f.s, "%.15s/%.15s+%.15s", fmt_count(most).s,
                                  fmt_count(most).s, fmt_count(more).s)
                       : snprintf(f.s, sizeof f.s, "%.20s/%.20s", run.s, fmt_count(most).s);
    return len <= w ? f : run;
}

static void
draw_running(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct queue_line *l = row;
    bool about = l->q.approx == 1 && l->q.running != FIELD_NULL;
    struct fmt run = queue_running(l, r.w);
    char text[64];

    (void)c;
    if (strchr(run.s, '/')) {
        grid_right(g, r, ROLE_TEXT, run.s);
        return;
    }
    if (l->q.running == 0 && !about) {
        grid_right(g, r, ROLE_DIM, "·");
        return;
    }
    snprintf(text, sizeof text, "%s%s", about ? "~" : "",
             fmt_count_fit(l->q.running, r.w - about).s);
    grid_right(g, r, ROLE_TEXT, text);
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
static const struct column_special empty_special = {draw_empty, NULL, K_DURATION, true};
static const struct column_special held_special = {draw_held, NULL, K_TEXT, false};
static const struct column_special run_special = {draw_running, NULL, K_COUNT, true};
static const struct column_special hour_role = {NULL, role_of_hour, K_CUSTOM, false};
static const struct column_special oldest_special = {draw_oldest, NULL, K_WAIT, true};
static const struct column_special spark_special = {draw_spark, NULL, K_RATE, false};

/* clang-format off */
const struct column queue_columns[] = {
    {.name = "queue", .title = "QUEUE", .help = "Name of the queue", .kind = K_TEXT, .offset = F(queue), .min_w = 14,
     .max_w = 24,
     .place = 1, .most = 30},
    {.name = "oldest", .title = "OLDEST", .help = "Age of the oldest ready job; sorts queues in trouble first",
     .kind = K_CUSTOM,
     .offset = offsetof(struct queue_line, oldest_rank), .min_w = 7, .max_w = 7, .special = &oldest_special,
     .only = ON_SCREEN},
    {.name = "ready", .title = "READY", .help = "Jobs that could start now", .kind = K_COUNT, .offset = F(ready),
     .min_w = 6, .max_w = 8,
     .place = 3},
    {.name = "running", .title = "RUN", .help = "Jobs that nodes are working on, of those that limit and living nodes allow; +3: beyond them",
     .kind = K_CUSTOM, .offset = F(running), .min_w = 5, .max_w = 7, .keep = 5, .special = &run_special,
     .place = 6, .table = "RUNNING", .plain = K_COUNT},
    {.name = "in", .title = "IN/s", .help = "Jobs pushed a second, over a minute", .kind = K_RATE, .offset = F(pushed_per_s),
     .min_w = 5, .max_w = 6, .keep = 6,
     .place = 10, .json = "pushed_per_s", .table = "PUSHED/s"},
    {.name = "done", .title = "OUT/s", .help = "Jobs completed a second, over a minute", .kind = K_RATE,
     .offset = F(done_per_s), .min_w = 5, .max_w = 6, .keep = 2,
     .place = 11, .json = "done_per_s", .table = "DONE/s"},
    {.name = "empty", .title = "EMPTY AT",
     .help = "When nothing will be ready any more, by in and out of five minutes; never: more comes in, by so much; "
             "steady: they differ by no more than 5 %; wait <1m: what waits goes out within a minute; "
             "turning: the last minute disagrees with them",
     .kind = K_CUSTOM, .offset = offsetof(struct queue_line, empty_rank), .min_w = 8, .max_w = 17, .keep = 4,
     .special = &empty_special, .only = ON_SCREEN},
    {.name = "held", .title = "HELD BY",
     .help = "What keeps its jobs waiting: limit (as many run as it allows), slots (all in use), rate (no token left), "
             "keys (jobs of the same concurrency key), paused, no node, failing (more fail than complete)",
     .kind = K_CUSTOM, .offset = offsetof(struct queue_line, held), .min_w = 8, .max_w = 9, .keep = 7,
     .special = &held_special, .only = ON_SCREEN},
    {.name = "hour", .title = "FAIL 1H", .help = "Jobs that failed for good in the last hour", .kind = K_COUNT,
     .offset = F(failed_hour), .min_w = 7, .max_w = 7, .keep = 3, .special = &hour_role,
     .only = ON_SCREEN | IN_DATA, .place = 18, .json = "failed_hour"},
    {.name = "failed", .title = "FAILED", .help = "Jobs that failed for good", .kind = K_COUNT, .offset = F(failed),
     .min_w = 6, .max_w = 6, .keep = 9,
     .place = 7},
    {.name = "trend", .title = "OUT/s, 10 MIN", .help = "Jobs completed a second, newest at the right; each row on its own scale",
     .kind = K_CUSTOM, .offset = F(done_per_s), .min_w = 13, .keep = 8, .special = &spark_special,
     .only = ON_SCREEN},
    {.name = "wait99", .title = "WAIT p99", .help = "99 of 100 waited no longer", .kind = K_DURATION,
     .offset = F(wait_p99_ms), .min_w = 8, .max_w = 8, .keep = 10,
     .only = ON_SCREEN | IN_DATA, .place = 14, .json = "wait_p99_ms"},
    {.name = "run99", .title = "RUN p99", .help = "99 of 100 ran no longer", .kind = K_DURATION,
     .offset = F(run_p99_ms), .min_w = 7, .max_w = 7, .keep = 11,
     .only = ON_SCREEN | IN_DATA, .place = 16, .json = "run_p99_ms"},
    {.name = "retry", .title = "RETRY", .help = "Jobs that wait for another try", .kind = K_COUNT, .offset = F(retry),
     .min_w = 5, .max_w = 7, .keep = 12,
     .place = 5},
    {.name = "scheduled", .title = "LATER", .help = "Jobs that are to run at a later time", .kind = K_COUNT,
     .offset = F(scheduled), .min_w = 5, .max_w = 7, .keep = 13,
     .place = 4, .table = "SCHEDULED"},
    {.name = "blocked", .title = "BLOCKED", .help = "Jobs that wait for another job with the same concurrency key",
     .kind = K_COUNT, .offset = F(blocked), .min_w = 7, .max_w = 7, .keep = 14,
     .only = ON_SCREEN | IN_DATA, .place = 8},
    {.name = "fails", .title = "FAIL/s", .help = "Tries that failed a second", .kind = K_RATE,
     .offset = F(failed_per_s), .min_w = 6, .max_w = 6, .keep = 15,
     .place = 12, .json = "failed_per_s", .table = "FAILED/s"},
    {.name = "wait50", .title = "WAIT p50", .help = "Half of the jobs of the last hour waited no longer; of fewer minutes where there are "
             "more than 200 queues",
     .kind = K_DURATION,
     .offset = F(wait_p50_ms), .min_w = 8, .max_w = 8, .keep = 19,
     .only = ON_SCREEN | IN_DATA, .place = 13, .json = "wait_p50_ms"},
    {.name = "run50", .title = "RUN p50", .help = "Half of the jobs of the last hour ran no longer",
     .kind = K_DURATION, .offset = F(run_p50_ms), .min_w = 7, .max_w = 7, .keep = 20,
     .only = ON_SCREEN | IN_DATA, .place = 15, .json = "run_p50_ms"},
    {.name = "kept", .title = "KEPT", .help = "Completed jobs that are still there; counted rarely", .kind = K_CUSTOM,
     .offset = F(kept_completed), .min_w = 7, .max_w = 8, .keep = 9, .special = &kept_special,
     .only = ON_SCREEN},
    /* the command line alone */
    {.name = "paused", .title = "PAUSED", .kind = K_BOOL, .offset = F(paused), .only = IN_TABLE | IN_DATA, .place = 2},
    {.name = "oldest_ready_s", .title = "OLDEST", .kind = K_AGE, .offset = F(oldest_ms), .only = IN_TABLE | IN_DATA, .place = 9},
    {.name = "approx", .kind = K_BOOL, .offset = F(approx), .only = IN_DATA, .place = 17},
    {.name = "outlook", .title = "OUTLOOK", .kind = K_NAME, .offset = offsetof(struct queue_line, trend),
     .only = IN_TABLE | IN_DATA, .place = 19},
    {.name = "held_by", .title = "HELD BY", .kind = K_NAME, .offset = offsetof(struct queue_line, held),
     .only = IN_TABLE | IN_DATA, .place = 20},
    {.name = "empty_at", .kind = K_TIME, .offset = offsetof(struct queue_line, o.empty_ms), .only = IN_DATA, .place = 21},
    {.name = "fills_per_s", .kind = K_RATE, .offset = offsetof(struct queue_line, fills_per_s), .only = IN_DATA, .place = 22},
    {.name = "fills_since", .kind = K_TIME, .offset = offsetof(struct queue_line, o.since_ms), .only = IN_DATA, .place = 23},
    {.name = "slots_needed", .kind = K_BIG, .offset = offsetof(struct queue_line, o.slots_needed), .only = IN_DATA, .place = 24},
    {0},
};
/* clang-format on */

static struct sign
sign_of(const void *row, const struct cell_ctx *c)
{
    const struct queue_line *l = row;

    (void)c;
    return verdict_sign(l->verdict);
}

const struct list_def list_of_queues = {
    .columns = queue_columns,
    .row_size = sizeof(struct queue_line),
    .id_offset = F(queue),
    .sort = "oldest",
    .desc = true,
    .sign = sign_of,
    .approx = is_approx,
};
