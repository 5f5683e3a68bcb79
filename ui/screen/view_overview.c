/*
 * All sources in one table: the queues of each, beside the name of their source. A source that
 * can't be reached keeps its rows, with the age of its data; a source without a queue to show has
 * one row that says why. Enter goes to the source. This screen can't change anything.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/facts/attention.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/source_columns.h"
#include "ui/screen/views.h"

struct row {
    struct queue_row q; /* its times are converted to the screen's clock */
    struct source_line of;
    const char *id;
    int at;              /* the index of its source */
    int64_t oldest_rank; /* as in struct queue_line */
    enum verdict verdict;
};

struct overview {
    struct table_view table;
    struct row *rows;
    int n, cap;
    struct arena *mem; /* the ids of the rows */
    struct queue_row sum;
    int lost, unknown;    /* unreachable sources; those of them without any numbers */
    int64_t lost_age;     /* age of the oldest numbers of lost sources; -1 = none */
    struct list *sources; /* below, if there is room */
    struct source_row list[SOURCES_MAX];
};

enum { WIDE_W = 120, WIDE_H = 36, RANK_MS = 10000 };

/* --- columns --------------------------------------------------------------------------------- */

#define F(f) offsetof(struct row, q.f)

static void
draw_queue(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct row *x = row;

    (void)c;
    if (*x->q.queue)
        grid_str(g, r, ROLE_TEXT, x->q.queue);
    else if (x->of.state == SOURCE_OPEN || x->of.state == SOURCE_LOOK_ONLY)
        grid_str(g, r, ROLE_DIM, x->of.age_ms < 0 ? "asking ..." : "no queue yet");
    else
        grid_str(g, r, source_state_role(x->of.state), source_state_word(x->of.state));
}

static void
draw_data(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct row *x = row;

    (void)c;
    if (x->of.age_ms < 0)
        grid_right(g, r, ROLE_DIM, "—");
    else if (x->of.stale)
        grid_right(g, r, ROLE_BAD, fmt_age(x->of.age_ms).s);
}

static void
draw_oldest(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    int64_t age = queue_age(&((const struct row *)row)->q, c->now_ms);
    bool paused = ((const struct row *)row)->q.paused == 1;

    grid_right(g, r, paused ? ROLE_DIM : verdict_role(verdict_of_age(age)),
               fmt_age(age == FIELD_NULL || age > 0 ? age : 0).s);
}

static void
draw_system(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    (void)c;
    source_draw_system(g, r, &((const struct row *)row)->of);
}

static const struct column_special system_special = {draw_system, NULL, K_TEXT, false};
static const struct column_special queue_special = {draw_queue, NULL, K_TEXT, false};
static const struct column_special data_special = {draw_data, NULL, K_BIG, true};
static const struct column_special oldest_special = {draw_oldest, NULL, K_WAIT, true};

/* clang-format off */
static const struct column columns[] = {
    {.name = "source", .title = "SOURCE", .help = "Database and queue system", .kind = K_TEXT,
     .offset = offsetof(struct row, of.name), .min_w = 17, .max_w = 26},
    {.name = "queue", .title = "QUEUE", .help = "Name of the queue", .kind = K_CUSTOM, .offset = F(queue),
     .min_w = 13, .max_w = 28, .special = &queue_special},
    {.name = "data", .title = "DATA", .help = "How old the numbers are, unless they are live", .kind = K_CUSTOM,
     .offset = offsetof(struct row, of.age_ms), .min_w = 7, .max_w = 7, .special = &data_special},
    {.name = "oldest", .title = "OLDEST", .help = "Age of the oldest ready job", .kind = K_CUSTOM,
     .offset = offsetof(struct row, oldest_rank), .min_w = 8, .max_w = 8, .special = &oldest_special},
    {.name = "ready", .title = "READY", .help = "Jobs that could start now", .kind = K_COUNT, .offset = F(ready),
     .min_w = 7, .max_w = 8},
    {.name = "running", .title = "RUN", .help = "Jobs that nodes are working on", .kind = K_COUNT,
     .offset = F(running), .min_w = 5, .max_w = 6, .keep = 4},
    {.name = "failed", .title = "FAILED", .help = "Jobs that failed for good", .kind = K_COUNT, .offset = F(failed),
     .min_w = 6, .max_w = 7, .keep = 3},
    {.name = "in", .title = "IN/s", .help = "Jobs pushed a second", .kind = K_RATE, .offset = F(pushed_per_s),
     .min_w = 5, .max_w = 6, .keep = 20},
    {.name = "done", .title = "OUT/s", .help = "Jobs completed a second", .kind = K_RATE, .offset = F(done_per_s),
     .min_w = 5, .max_w = 6, .keep = 5},
    {.name = "retry", .title = "RETRY", .help = "Jobs that wait for another try", .kind = K_COUNT, .offset = F(retry),
     .min_w = 6, .max_w = 7, .keep = 21},
    {.name = "scheduled", .title = "LATER", .help = "Jobs that are to run later", .kind = K_COUNT,
     .offset = F(scheduled), .min_w = 6, .max_w = 7, .keep = 22},
    {.name = "system", .title = "SYSTEM", .help = "The queue system", .kind = K_CUSTOM,
     .offset = offsetof(struct row, of.adapter), .min_w = 10, .keep = 23, .special = &system_special},
    {0},
};
/* clang-format on */

static struct sign
sign_of(const void *row, const struct cell_ctx *c)
{
    const struct row *x = row;

    (void)c;
    return verdict_sign(x->verdict);
}

static bool
is_stale(const void *row)
{
    const struct row *x = row;

    return x->of.stale && x->of.age_ms >= 0;
}

static bool
is_approx(const void *row)
{
    return ((const struct row *)row)->q.approx == 1;
}

static const struct list_def list_of_all = {
    .columns = columns,
    .row_size = sizeof(struct row),
    .id_offset = offsetof(struct row, id),
    .sort = "oldest",
    .desc = true,
    .sign = sign_of,
    .stale = is_stale,
    .approx = is_approx,
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
row_matches(void *ctx, const void *row)
{
    const struct overview *v = ctx;
    const struct row *x = row;

    return words_match(v->table.filter, (const char *const[]){x->of.name, x->q.queue, x->of.title,
                                                              x->of.adapter, NULL});
}

static void
overview_init(struct view *view, const char *arg)
{
    struct overview *v = (struct overview *)view;

    (void)arg;
    table_init(view, &list_of_all, row_matches);
    v->sources = list_new(&list_of_sources);
    v->mem = arena_new();
}

static void
overview_done(struct view *view)
{
    struct overview *v = (struct overview *)view;

    table_done(view);
    list_free(v->sources);
    arena_free(v->mem);
    free(v->rows);
}

static struct row *
add_row(struct overview *v, const struct source_line *of, int at, const char *queue)
{
    if (v->n == v->cap) {
        v->cap = v->cap ? 2 * v->cap : 64;
        v->rows = xreallocarray(v->rows, (size_t)v->cap, sizeof *v->rows);
    }
    struct row *x = &v->rows[v->n++];
    *x = (struct row){.of = *of, .at = at, .oldest_rank = FIELD_NULL};
    x->id = arena_printf(v->mem, "%d/%s", at, queue);
    return x;
}

static void
add_empty(struct overview *v, const struct source_line *of, int at)
{
    struct row *x = add_row(v, of, at, "");

    x->q = (struct queue_row){.queue = "", .info = "", .paused_by = "", .pause_reason = ""};
    x->q.scheduled = x->q.ready = x->q.retry = x->q.running = x->q.failed = FIELD_NULL;
    x->q.oldest_ms = FIELD_NULL;
    x->q.done_per_s = x->q.pushed_per_s = (double)NAN;
    x->verdict = source_is_bad(of->state) ? VERDICT_BAD : VERDICT_WELL;
}

static void
add_to_sum(struct queue_row *sum, const struct queue_row *q)
{
    sum->ready = add_if_known(sum->ready, q->ready);
    sum->running = add_if_known(sum->running, q->running);
    sum->failed = add_if_known(sum->failed, q->failed);
    if (!isnan(q->done_per_s))
        sum->done_per_s = (isnan(sum->done_per_s) ? 0 : sum->done_per_s) + q->done_per_s;
    if (q->oldest_ms != FIELD_NULL &&
        (sum->oldest_ms == FIELD_NULL || q->oldest_ms < sum->oldest_ms))
        sum->oldest_ms = q->oldest_ms;
    sum->approx |= q->approx == 1;
}

/* Converts a time of one server to the clock that the screen uses, because the clocks of servers
 * differ. */
static void
add_queues(struct overview *v, const struct source_line *of, int at)
{
    struct app *a = v->table.view.app;
    const struct store *s = source_store(sources_peek(a->sources, at));
    int64_t shift = a->now_ms - store_now_ms(s);
    int n;
    const struct queue_row *q = store_queues(s, &n);

    if (n == 0)
        add_empty(v, of, at);
    for (int i = 0; i < n; i++) {
        struct row *x = add_row(v, of, at, q[i].queue);
        x->q = q[i];
        if (x->q.oldest_ms != FIELD_NULL && x->q.oldest_ms > 0)
            x->q.oldest_ms += shift;
        int64_t age = queue_age(&x->q, a->now_ms);
        if (age != FIELD_NULL)
            x->oldest_rank = (age < 0 ? 0 : age) / RANK_MS * RANK_MS;
        static const struct slots unknown = {.all = FIELD_NULL};
        enum trend trend = outlook_of(&q[i], &unknown, store_now_ms(s)).trend;
        x->verdict =
            source_is_bad(of->state) ? VERDICT_BAD : verdict_of_queue(&x->q, trend, a->now_ms);
        add_to_sum(&v->sum, &x->q);
    }
}

static void
overview_update(struct view *view)
{
    struct overview *v = (struct overview *)view;
    struct app *a = view->app;
    int n = source_rows(a->sources, a->at, v->list);

    arena_reset(v->mem);
    bool late = false;
    v->n = v->lost = v->unknown = 0;
    v->lost_age = -1;
    v->sum = (struct queue_row){.queue = ""};
    v->sum.ready = v->sum.running = v->sum.failed = v->sum.oldest_ms = FIELD_NULL;
    v->sum.done_per_s = (double)NAN;
    for (int i = 0; i < n; i++) {
        const struct source_line *of = &v->list[i].line;
        v->lost += of->state == SOURCE_LOST;
        late |= of->stale || of->age_ms < 0;
        v->unknown += of->state == SOURCE_LOST && of->age_ms < 0;
        if (of->state == SOURCE_LOST && of->age_ms > v->lost_age)
            v->lost_age = of->age_ms;
        if (of->age_ms < 0)
            add_empty(v, of, i);
        else
            add_queues(v, of, i);
    }
    list_hide_empty(v->table.list, true);
    list_column_lacks(v->table.list, "data", !late);
    list_set_rows(v->table.list, v->rows, v->n);
    list_set_rows(v->sources, v->list, n);
    if (!view->touched)
        list_home(v->table.list);
}

/* --- frame ----------------------------------------------------------------------------------- */

/* Names the unreachable sources before the sums, and says whether the sums contain their last
 * numbers. */
static void
say_lost(const struct overview *v, struct pen *p)
{
    if (v->lost == 0)
        return;
    pen_printf(p, ROLE_BAD, " × %d unreachable", v->lost);
    if (v->lost == v->unknown)
        pen_put(p, ROLE_BAD, ", not counted");
    else if (v->unknown)
        pen_printf(p, ROLE_BAD, ", %d not counted", v->unknown);
    if (v->lost_age >= 0)
        pen_printf(p, ROLE_BAD, ", numbers %s old", fmt_age(v->lost_age).s);
    pen_put(p, ROLE_DIM, " ·");
}

static void
draw_totals(const struct overview *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    struct pen p = pen_start(g, r);
    int64_t age = queue_age(&v->sum, a->now_ms);

    say_lost(v, &p);
    pen_put(&p, ROLE_DIM, " oldest ");
    pen_put(&p, verdict_of_age(age) > VERDICT_WELL ? ROLE_WARN : ROLE_STRONG,
            fmt_age(age == FIELD_NULL || age > 0 ? age : 0).s);
    pen_put(&p, ROLE_DIM, "  ready ");
    pen_put(&p, ROLE_STRONG, fmt_about(v->sum.ready, v->sum.approx).s);
    pen_put(&p, ROLE_DIM, "  running ");
    pen_put(&p, ROLE_STRONG, fmt_about(v->sum.running, v->sum.approx).s);
    pen_put(&p, ROLE_DIM, "  failed ");
    pen_put(&p, ROLE_STRONG, fmt_about(v->sum.failed, v->sum.approx).s);
    if (p.r.w >= 14 && !isnan(v->sum.done_per_s)) {
        pen_put(&p, ROLE_DIM, "  out ");
        pen_put(&p, ROLE_STRONG, fmt_rate(v->sum.done_per_s).s);
        pen_put(&p, ROLE_DIM, "/s");
    }
}

/* True if the menu of sources is in front: it shows the list that the pane would show. */
static bool
is_menu_open(const struct app *a)
{
    return app_front(a) != app_view(a) && app_front(a)->ops->all_sources;
}

static void
overview_draw(struct view *view, struct grid *g, struct rect r)
{
    struct overview *v = (struct overview *)view;
    struct app *a = view->app;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .empty = *v->table.filter ? "no queue matches" : ""};

    draw_totals(v, g, rect_cut_top(&r, 1));
    if (r.w >= WIDE_W && r.h >= WIDE_H && !is_menu_open(a)) {
        int h = list_count(v->sources) + 3;
        struct rect box = rect_cut_bottom(&r, h < r.h / 2 ? h : r.h / 2);
        struct list_look quiet = {.now_ms = a->now_ms, .utc = a->options.utc, .unfocused = true};
        list_draw(v->sources, g, grid_panel(g, box, "sources", false), &quiet);
        rect_cut_bottom(&r, 1);
    }
    list_draw(v->table.list, g, r, &look);
}

/* About the source of the selected row; if no row is selected, about the first source in trouble.
 */
static bool
overview_remark(struct view *view, struct buf *out)
{
    struct overview *v = (struct overview *)view;
    const struct row *x = list_selected(table_list(view));
    int n = list_count(v->sources);

    if (x && view->touched)
        source_say(&x->of, out);
    if (out->len)
        return source_is_bad(x->of.state);
    for (int i = 0; i < n && !out->len; i++)
        if (source_is_bad(v->list[i].line.state))
            source_say(&v->list[i].line, out);
    return out->len > 0;
}

static void
overview_crumb(struct view *view, struct buf *out)
{
    table_crumb(view, "all sources", out);
}

/* --- commands -------------------------------------------------------------------------------- */

static void
overview_open(struct view *view)
{
    const struct row *x = list_selected(table_list(view));
    struct app *a = view->app;
    char *queue = xstrdup(x ? x->q.queue : "");

    if (x && app_switch(a, x->at)) {
        app_open(a, "queues", NULL);
        if (*queue)
            list_select(app_view(a)->ops->list(app_view(a)), queue);
        app_view(a)->touched = true;
    }
    free(queue);
}

static const char *
overview_copy(struct view *view)
{
    const struct row *x = list_selected(table_list(view));

    return x ? x->of.name : "";
}

const struct view_ops view_overview = {
    .name = "overview",
    .title = "Overview",
    .tab = 1,
    .scope = IN_OVERVIEW,
    .topics = TOPIC_BIT(TOPIC_QUEUES),
    .size = sizeof(struct overview),
    .all_sources = true,
    .init = overview_init,
    .done = overview_done,
    .update = overview_update,
    .draw = overview_draw,
    .list = table_list,
    .open = overview_open,
    .back = table_back,
    .crumb = overview_crumb,
    .remark = overview_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .copy = overview_copy,
};
