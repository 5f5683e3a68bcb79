/*
 * Red is for the last hour alone: failed jobs stay until somebody acts, so their number itself is
 * no alarm.
 */
#include "ui/screen/failed_panes.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/store/fail_day.h"
#include "ui/term/chart.h"
#include "ui/term/fmt.h"

enum { WIDE_W = 140, CLOCK_EVERY = 6, BELOW_H = 12, AXIS_W = 100, CLOCK_W = 5, NOW_W = 3 };

const char *const failed_by[BY_TOTAL] = {
    [BY_ERROR] = "error", [BY_KIND] = "kind", [BY_NODE] = "node", [BY_HOUR] = "hour"};

/* --- cells ------------------------------------------------------------------------------------ */

#define F(f) offsetof(struct group_line, f)

static void
draw_count(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct group_line *l = row;
    char text[64];

    (void)c;
    snprintf(text, sizeof text, "%s%s", fmt_count(l->g.n).s, l->g.capped == 1 ? "+" : "");
    grid_right(g, r, ROLE_TEXT, text);
}

/* "+4,000"; ">9,801" if not all were counted. */
static void
draw_hour(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct group_line *l = row;
    const char *sign = fail_day_hour_is_least(&l->g, c->now_ms) ? ">" : "+";
    char text[64];

    if (l->hour == FIELD_NULL)
        return;
    snprintf(text, sizeof text, "%s%s", sign, fmt_count_fit(l->hour, r.w - 1).s);
    grid_right(g, r, l->hour == 0 ? ROLE_DIM : verdict_role(verdict_of_group(&l->g, c->now_ms)),
               l->hour == 0 ? "·" : text);
}

/* One cell for each half hour, or for each hour if there is less room. */
static void
draw_times(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct group_line *l = row;
    double steps[FAIL_STEPS];
    int w = r.w < FAIL_STEPS ? r.w : FAIL_STEPS;

    if (!l->g.day || w <= 0)
        return;
    fail_day_columns(l->g.day, c->now_ms, FAIL_STEPS / w, steps, w);
    chart_spark(g, r, ROLE_CHART, steps, w, 0);
}

static void
draw_group(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const char *group = ((const struct group_line *)row)->g.group;

    (void)c;
    grid_str(g, r, *group ? ROLE_TEXT : ROLE_DIM, *group ? group : "none");
}

static struct sign
sign_of(const void *row, const struct cell_ctx *c)
{
    return verdict_sign(verdict_of_group(&((const struct group_line *)row)->g, c->now_ms));
}

static const struct column_special group_special = {draw_group, NULL, K_TEXT, false};
static const struct column_special times_special = {draw_times, NULL, K_CUSTOM, false};
static const struct column_special count_special = {draw_count, NULL, K_COUNT, true};
static const struct column_special hour_special = {draw_hour, NULL, K_COUNT, true};

enum {
    COUNT_COLUMN,
    HOUR_COLUMN,
    QUEUE_COLUMN,
    FIRST_COLUMN,
    LAST_COLUMN,
    TIMES_COLUMN,
    GROUP_COLUMN
};
/* clang-format off */
static const struct column columns[] = {
    {.name = "n", .title = "JOBS", .help = "Failed jobs with this error; sorts new and rising ones first",
     .kind = K_CUSTOM, .offset = F(trouble), .min_w = 7, .max_w = 8, .special = &count_special},
    {.name = "hour", .title = "1 H", .help = "Those that failed in the last hour", .kind = K_CUSTOM,
     .offset = F(hour), .min_w = 6, .max_w = 7, .special = &hour_special},
    {.name = "queue", .title = "QUEUE", .help = "Queue of the jobs", .kind = K_TEXT, .offset = F(g.queue), .min_w = 16,
     .max_w = 18},
    {.name = "first", .title = "FIRST", .help = "Time since the first of them failed", .kind = K_AGE,
     .offset = F(g.first_ms), .min_w = 7, .max_w = 7, .keep = 4},
    {.name = "last", .title = "LAST", .help = "Time since the last of them failed", .kind = K_AGE,
     .offset = F(g.last_ms), .min_w = 7, .max_w = 7, .keep = 2},
    {.name = "times", .title = "LAST 24 H", .help = "How many failed in each half hour, or hour, of the last 24 hours",
     .kind = K_CUSTOM, .offset = 0, .min_w = FAIL_STEPS / 2, .max_w = FAIL_STEPS / 2, .keep = 3,
     .special = &times_special},
    {.name = "group", .title = "GROUP", .help = "Kind, node or hour that they have in common", .kind = K_CUSTOM,
     .offset = F(g.group), .min_w = 10, .max_w = 20, .special = &group_special},
    {.name = "error", .title = "ERROR (N = a number)", .help = "What their errors have in common", .kind = K_TEXT,
     .offset = F(g.error_key), .min_w = 24},
    {0},
};
/* clang-format on */

static const struct list_def list_of_groups = {
    .columns = columns,
    .row_size = sizeof(struct group_line),
    .id_offset = F(id),
    .sort = "n",
    .desc = true,
    .sign = sign_of,
};

/* --- rows ------------------------------------------------------------------------------------- */

void
failed_table_init(struct failed_table *t)
{
    t->list = list_new(&list_of_groups);
    list_column_show(t->list, GROUP_COLUMN, false);
}

static void
drop_rows(struct failed_table *t)
{
    for (int i = 0; i < t->all; i++)
        free(t->rows[i].id);
    t->n = t->all = 0;
}

void
failed_table_done(struct failed_table *t)
{
    list_free(t->list);
    drop_rows(t);
    free(t->rows);
    free(t->marked);
}

static void
fill_line(struct group_line *l, const struct group_row *g, enum group_by by, int64_t now_ms)
{
    static const int64_t first = (int64_t)1 << 50; /* greater than any number of jobs */

    l->g = *g;
    l->id =
        by == BY_ERROR ? xasprintf("%s\n%s", g->queue, g->error_key) : xasprintf("%s", g->group);
    l->trend = fail_trend_of(g, now_ms);
    l->hour = g->day ? g->day->hour : FIELD_NULL;
    l->trouble = (l->trend == FAIL_OLD ? 0 : first) + g->n;
}

/* Leaves out the columns for which the queue system has no values. */
static void
leave_out(struct failed_table *t)
{
    bool days = t->n == 0, first = days, last = days;

    for (int i = 0; i < t->n; i++) {
        days |= t->rows[i].g.day != NULL;
        first |= t->rows[i].g.first_ms != FIELD_NULL;
        last |= t->rows[i].g.last_ms != FIELD_NULL;
    }
    list_column_lacks(t->list, "hour", !days);
    list_column_lacks(t->list, "times", !days);
    list_column_lacks(t->list, "first", !first);
    list_column_lacks(t->list, "last", !last);
    list_column_show(t->list, GROUP_COLUMN, t->by != BY_ERROR);
}

void
failed_table_update(struct failed_table *t, struct app *a,
                    bool (*keep)(void *ctx, const struct group_row *g), void *ctx)
{
    int all, hidden = 0;
    const struct group_row *g = store_groups(a->store, &all);

    drop_rows(t);
    t->rows = xreallocarray(t->rows, (size_t)all + 1, sizeof *t->rows);
    t->all = all;
    for (int i = 0; i < all; i++)
        fill_line(keep(ctx, &g[i]) ? &t->rows[t->n++] : &t->rows[all - ++hidden], &g[i], t->by,
                  a->now_ms);
    leave_out(t);
    list_set_rows(t->list, t->rows, t->n);
}

const struct group_line *
failed_selected(const struct failed_table *t)
{
    return list_selected(t->list);
}

const struct group_line *
failed_line(const struct failed_table *t, const struct target_group *g)
{
    for (int i = 0; i < t->all; i++)
        if (!strcmp(t->rows[i].g.queue, g->queue) && !strcmp(t->rows[i].g.error_key, g->error))
            return &t->rows[i];
    return NULL;
}

const struct target_group *
failed_marked(struct failed_table *t, int *n, int *gone)
{
    int marks;
    const struct group_line *l = failed_selected(t);

    list_marks(t->list, &marks);
    *n = 0;
    t->marked = xreallocarray(t->marked, (size_t)t->all + 1, sizeof *t->marked);
    for (int i = 0; i < t->all && marks > 0; i++)
        if (list_is_marked(t->list, t->rows[i].id))
            t->marked[(*n)++] = (struct target_group){t->rows[i].g.queue, t->rows[i].g.error_key};
    *gone = marks - *n;
    if (marks == 0 && l)
        t->marked[(*n)++] = (struct target_group){l->g.queue, l->g.error_key};
    return t->marked;
}

/* --- drawing ---------------------------------------------------------------------------------- */

/* Clock times below the sparklines, each sixth hour of the day. */
static void
draw_axis(const struct app *a, struct grid *g, struct rect r)
{
    int per = FAIL_STEPS / (r.w > 0 ? r.w : 1), last = r.w - NOW_W - 1 - CLOCK_W;
    int64_t first = fail_day_first_ms(a->now_ms, per, r.w);

    for (int x = 0; x <= last; x++) {
        struct fmt clock = fmt_time(first + (int64_t)x * per * FAIL_STEP_MS, a->options.utc);
        int hour = (clock.s[0] - '0') * 10 + clock.s[1] - '0';
        if (hour % CLOCK_EVERY == 0 && clock.s[3] < '3')
            grid_printf(g, (struct rect){r.x + x, r.y, CLOCK_W, 1}, ROLE_DIM, "%.5s", clock.s);
    }
    grid_right(g, r, ROLE_DIM, "now");
}

static void
draw_below(struct failed_table *t, struct app *a, struct rect *r)
{
    struct rect times = list_column_at(t->list, TIMES_COLUMN);
    struct rect row = rect_cut_top(r, times.w > 0 ? 1 : 0);
    bool desc;
    const struct column *sort = list_sort_column(t->list, &desc);

    if (times.w > 0 && row.h > 0) {
        draw_axis(a, a->grid, (struct rect){times.x, row.y, times.w, 1});
        grid_printf(a->grid, (struct rect){times.x, times.y, times.w, 1}, ROLE_TITLE,
                    "LAST 24 H, A COLUMN %s", times.w < FAIL_STEPS ? "1 H" : "30 MIN");
    }
    if (r->h < 1 || t->n == 0)
        return;
    struct pen p = pen_start(a->grid, rect_cut_top(r, 1));
    pen_printf(&p, ROLE_DIM, "   %d of %d", t->n, t->all);
    if (sort == &columns[COUNT_COLUMN] && desc && p.r.w >= 52)
        pen_put(&p, ROLE_DIM, " · sorted by trouble ↓: new or rising, then JOBS");
}

void
failed_table_draw(struct failed_table *t, struct app *a, struct rect r,
                  const struct list_look *look)
{
    int w = r.w >= WIDE_W ? FAIL_STEPS : FAIL_STEPS / 2;
    int h = list_count(t->list) + 1, below = r.h < BELOW_H ? 0 : r.w >= AXIS_W ? 2 : 1;

    list_column_width(t->list, TIMES_COLUMN, w, w);
    h = h < 2 ? 2 : h > r.h - below ? r.h - below : h;
    struct rect rows = rect_cut_top(&r, h);
    list_draw(t->list, a->grid, rows, look);
    if (list_count(t->list) > 0)
        draw_below(t, a, &r);
}

/* --- heading ---------------------------------------------------------------------------------- */

/* Draws a part of the heading, or nothing: a part is never cut short. */
static void
say(struct pen *p, enum role role, const char *text)
{
    if ((int)text_width(text, strlen(text), TEXT_LINE) <= p->r.w)
        pen_put(p, role, text);
    else
        p->r.w = 0;
}

static void
say_trends(const struct failed_table *t, struct app *a, struct pen *p)
{
    static const char *const nouns[BY_TOTAL] = {"error", "kind", "node", "hour"};
    static const char *const words[] = {
        [FAIL_OLD] = "old", [FAIL_NEW] = "new", [FAIL_RISING] = "rising"};
    static const enum fail_trend order[] = {FAIL_NEW, FAIL_RISING, FAIL_OLD};
    int counts[3] = {0};
    struct buf text = {0};

    for (int i = 0; i < t->n; i++)
        counts[t->rows[i].trend]++;
    buf_printf(&text, "   %s", fmt_plural(t->n, nouns[t->by]).s);
    for (int i = 0, said = 0; i < 3; i++)
        if (counts[order[i]] > 0)
            buf_printf(&text, "%s %d %s", said++ ? "," : ":", counts[order[i]], words[order[i]]);
    say(p, ROLE_TEXT, arena_printf(a->frame, "%s", text.data));
    buf_free(&text);
}

static void
say_last(const struct failed_table *t, struct app *a, struct pen *p, bool after_hour)
{
    int64_t last = FIELD_NULL;

    for (int i = 0; i < t->n; i++)
        if (t->rows[i].g.last_ms != FIELD_NULL && t->rows[i].g.last_ms > last)
            last = t->rows[i].g.last_ms;
    if (last != FIELD_NULL)
        say(p, ROLE_TEXT,
            arena_printf(a->frame, "%slast %s ago", after_hour ? ", " : "  ",
                         fmt_age_short(a->now_ms > last ? a->now_ms - last : 0).s));
}

static void
say_by(const struct failed_table *t, struct app *a, struct pen *p)
{
    struct buf text = {0};

    buf_str(&text, "     by");
    for (int i = 0; i < BY_TOTAL; i++)
        buf_printf(&text, i == (int)t->by ? " [%s]" : " %s", failed_by[i]);
    buf_str(&text, "   m");
    say(p, ROLE_DIM, arena_printf(a->frame, "%s", text.data));
    buf_free(&text);
}

static int64_t
sum_of(const struct failed_table *t)
{
    int64_t jobs = 0;

    for (int i = 0; i < t->n; i++)
        jobs += t->rows[i].g.n;
    return jobs;
}

void
failed_heading(const struct failed_table *t, struct app *a, struct rect r, const char *filter)
{
    const struct queue_row *totals = store_totals(a->store);
    struct pen p = pen_start(a->grid, r);
    enum fail_trend worst = FAIL_OLD;
    static const struct sign signs[] = {
        [FAIL_OLD] = {" ",   ROLE_TEXT},
        [FAIL_NEW] = {"▲", ROLE_WARN},
        [FAIL_RISING] = {"×",  ROLE_BAD }
    };

    for (int i = 0; i < t->n; i++)
        worst = t->rows[i].trend > worst ? t->rows[i].trend : worst;
    pen_printf(&p, signs[worst].role, " %s ", signs[worst].glyph);
    if (totals)
        pen_put(&p, ROLE_STRONG, fmt_about(totals->failed, totals->approx).s);
    pen_put(&p, ROLE_TEXT, " failed");
    bool recent = totals && totals->failed_hour != FIELD_NULL && totals->failed_hour > 0;
    if (recent)
        say(&p, ROLE_BAD, arena_printf(a->frame, "  +%s in 1 h", fmt_count(totals->failed_hour).s));
    if (!*filter)
        say_last(t, a, &p, recent);
    if (t->n > 0)
        say_trends(t, a, &p);
    if (t->by != BY_ERROR && t->n > 0 && t->rows[0].g.capped == 1)
        say(&p, ROLE_WARN, arena_printf(a->frame, " of the newest %s", fmt_count(sum_of(t)).s));
    if (*filter) {
        say(&p, ROLE_DIM, arena_printf(a->frame, ", %s · filter ", fmt_plural(sum_of(t), "job").s));
        say(&p, ROLE_STRONG, filter);
    }
    say_by(t, a, &p);
}
