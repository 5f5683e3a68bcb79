/*
 * Queues: how old the oldest ready job is, how much waits, runs, fails, and how fast. On a wide
 * screen also the backlog and the age over the last ten minutes, and what needs attention. A row is
 * made when it is drawn, with a rank for sorting, so that ages of a few seconds don't shuffle them
 * at each refresh. What is worked out over all queues is worked out once a second, not for each
 * key.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/facts/queue_columns.h"
#include "ui/screen/views.h"
#include "ui/term/chart.h"
#include "ui/term/words.h"

enum { STEPS = 61, WIDE_W = 120, WIDE_H = 36, SORT_ALWAYS = 2000 };
enum { TALL_H = 30, LEAST_H = 8, ALERT_ROWS = 6, ALERT_LEAST = 2 };

struct queues {
    struct table_view table;
    struct node_row *living; /* nodes */
    int nliving;
    uint64_t serial; /* of the rows that the list has in order, of */
    const struct store *store;
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
keep(void *ctx, const void *row)
{
    const struct queues *v = ctx;
    const struct queue_line *l = row;

    return words_match(v->table.filter, (const char *const[]){l->q.queue, l->q.info, NULL});
}

static void
queues_init(struct view *view, const char *arg)
{
    struct queues *v = (struct queues *)view;

    (void)arg;
    table_init(view, &list_of_queues, keep);
    list_set_ctx(v->table.list, view->app->store);
}

static void
queues_done(struct view *view)
{
    struct queues *v = (struct queues *)view;

    table_done(view);
    free(v->living);
}

/* Times are asked rarely: the age of the data is not theirs. */
static void
queues_show(struct view *view)
{
    store_want(view->app->store, TOPIC_TIMES, true);
}

static void
make_line(void *ctx, int i, void *row)
{
    const struct queues *v = ctx;
    const struct app *a = v->table.view.app;
    int n;
    const struct queue_row *q = store_queues(a->store, &n);

    queue_line_fill(row, &q[i], v->living, v->nliving, a->now_ms);
}

static const char *
line_id(void *ctx, int i)
{
    const struct queues *v = ctx;
    int n;

    return store_queues(v->table.view.app->store, &n)[i].queue;
}

/* Many queues are put in order when there is news of them, few also when they have grown older. */
static void
queues_update(struct view *view)
{
    struct queues *v = (struct queues *)view;
    struct app *a = view->app;
    uint64_t serial = store_queues_serial(a->store);
    int n;

    free(v->living);
    v->living = queue_workers(a->store, &v->nliving);
    list_hide_empty(v->table.list, app_is_foreign(a));
    list_column_lacks(v->table.list, "kept", store_topic(a->store, TOPIC_FINAL)->unavailable);
    store_queues(a->store, &n);
    if (n <= SORT_ALWAYS || serial != v->serial || a->store != v->store)
        list_set_pages(v->table.list, &(struct list_pages){make_line, line_id, v}, n);
    else
        list_make_anew(v->table.list);
    v->serial = serial;
    v->store = a->store;
    if (!view->touched)
        list_home(v->table.list);
}

/* --- frame ----------------------------------------------------------------------------------- */

/* Nodes that nobody knows are leases without a node in our own queue, and nothing but a lack of
 * heartbeats in others. */
static void
say_nodes(struct pen *p, const struct app *a)
{
    int n, up = 0, late = 0, dead = 0, unknown = 0;
    const struct node_row *rows = store_nodes(a->store, &n);

    if (store_topic(a->store, TOPIC_NODES)->unavailable)
        return;
    for (int i = 0; i < n; i++) {
        up += !strcmp(rows[i].state, "up") || !strcmp(rows[i].state, "draining");
        late += !strcmp(rows[i].state, "late");
        dead += !strcmp(rows[i].state, "dead");
        unknown += !strcmp(rows[i].state, "unknown");
    }
    dead += app_is_foreign(a) ? 0 : unknown;
    pen_put(p, ROLE_DIM, " · ");
    if (app_is_foreign(a) && unknown == n) {
        pen_put(p, ROLE_DIM, fmt_plural(n, "node").s);
        return;
    }
    if (dead)
        pen_printf(p, ROLE_BAD, "%d dead ", dead);
    if (late)
        pen_printf(p, ROLE_WARN, "%d late ", late);
    if (app_is_foreign(a) && unknown)
        pen_printf(p, ROLE_DIM, "%d unknown ", unknown);
    if (p->r.w >= 5) /* never cut short */
        pen_printf(p, ROLE_DIM, "%d up", up);
}

/* Finished jobs that are kept are counted rarely: as of when. */
static void
say_kept(struct pen *p, const struct app *a)
{
    const struct queue_row *t = store_totals(a->store);
    int64_t age = store_age_ms(a->store, TOPIC_FINAL);

    if (p->r.w < 30)
        return;
    if (age < 0 && store_topic(a->store, TOPIC_FINAL)->err.kind == ERR_TIMEOUT)
        pen_put(p, ROLE_DIM, " kept: too many to count");
    if (t->kept_completed == FIELD_NULL || age < 0)
        return;
    pen_put(p, ROLE_DIM, " kept ");
    pen_printf(p, ROLE_STRONG, "%s%s", t->kept_approx == 1 ? "~" : "",
               fmt_count_fit(t->kept_completed, 7).s);
    pen_printf(p, ROLE_DIM, " %s ago", fmt_age_short(age).s);
}

static void
draw_totals(struct app *a, struct grid *g, struct rect r)
{
    const struct queue_row *t = store_totals(a->store);
    struct pen p = pen_start(g, r);

    if (!t || !store_topic(a->store, TOPIC_QUEUES)->has_data) {
        pen_put(&p, ROLE_DIM,
                store_error(a->store)->kind == ERR_NONE ? " asking ..." : " no data yet");
        return;
    }
    int64_t age = queue_age(t, a->now_ms);
    pen_put(&p, ROLE_DIM, " oldest ");
    pen_put(&p, ROLE_STRONG, fmt_age(age == FIELD_NULL || age > 0 ? age : 0).s);
    pen_put(&p, ROLE_DIM, " ready ");
    pen_put(&p, ROLE_STRONG, fmt_about(t->ready, t->approx).s);
    pen_put(&p, ROLE_DIM, " run ");
    pen_put(&p, ROLE_STRONG, fmt_about(t->running, t->approx).s);
    pen_put(&p, ROLE_DIM, " failed ");
    pen_put(&p, ROLE_STRONG, fmt_about(t->failed, t->approx).s);
    if (t->failed_hour != FIELD_NULL && t->failed_hour > 0)
        pen_printf(&p, ROLE_BAD, " +%s in 1h", fmt_count_fit(t->failed_hour, 6).s);
    if (p.r.w >= 14 && !(app_is_foreign(a) && isnan(t->done_per_s))) { /* never cut short */
        pen_put(&p, ROLE_DIM, " done/s ");
        pen_put(&p, ROLE_STRONG, fmt_rate(t->done_per_s).s);
    }
    say_kept(&p, a);
    if (p.r.w >= 10)
        say_nodes(&p, a);
}

static void
draw_charts(struct app *a, struct grid *g, struct rect r)
{
    const struct history *h = store_history(a->store);
    double backlog[STEPS], oldest[STEPS];
    struct rect left = rect_cut_left(&r, r.w / 2);

    left.w -= 1;
    history_read(h, "", SERIES_BACKLOG, a->now_ms, backlog, STEPS);
    history_read(h, "", SERIES_OLDEST, a->now_ms, oldest, STEPS);
    double top = chart_max(backlog, STEPS), old = chart_max(oldest, STEPS);
    struct fmt t1 = fmt_count_fit((int64_t)top, 4), t2 = fmt_count_fit((int64_t)(top / 2), 4);
    chart_panel(g, left,
                &(struct chart){"backlog (ready + running), last 10 min", ROLE_CHART, backlog,
                                STEPS, 0, t1.s, t2.s, "0", "-10m", "-5m", "now"});
    t1 = fmt_age((int64_t)old);
    t2 = fmt_age((int64_t)(old / 2));
    chart_panel(g, r,
                &(struct chart){"age of the oldest ready job, last 10 min", ROLE_CHART_WARN, oldest,
                                STEPS, 0, t1.s, t2.s, "0", "-10m", "-5m", "now"});
}

/* Where alerts stand: below the totals where there is room for all, else in the rows that the table
 * leaves at the bottom. By the size and the number of queues alone: nothing moves when one comes.
 */
static struct rect
cut_alerts(struct rect *r, int queues)
{
    int left = r->h - queues - 1, h = left - 1 < ALERT_ROWS + 1 ? left - 1 : ALERT_ROWS + 1;

    if (r->h >= TALL_H)
        return rect_cut_top(r, ALERT_ROWS + 1);
    if (r->h < LEAST_H)
        return (struct rect){r->x, r->y, 0, 0};
    return rect_cut_bottom(r, h < ALERT_LEAST + 1 ? ALERT_LEAST + 1 : h);
}

static void
queues_draw(struct view *view, struct grid *g, struct rect r)
{
    struct queues *v = (struct queues *)view;
    struct app *a = view->app;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_QUEUES),
                             .empty = *v->table.filter ? "no queue matches" : "no queue yet"};

    if (!store_topic(a->store, TOPIC_QUEUES)->has_data)
        look.empty = "";
    draw_totals(a, g, rect_cut_top(&r, 1));
    bool wide = r.w >= WIDE_W && r.h >= WIDE_H;
    struct rect needs = cut_alerts(&r, list_count(v->table.list));
    if (needs.h > 0)
        alerts_draw(a, g, needs);
    if (wide) {
        draw_charts(a, g, rect_cut_bottom(&r, 12));
        rect_cut_bottom(&r, 1);
    }
    list_draw(v->table.list, g, r, &look);
}

/* Of the selected row, what its alert does not say; where the alerts have no room, the first. */
static bool
queues_remark(struct view *view, struct buf *out)
{
    struct app *a = view->app;
    const struct queue_line *l = list_selected(table_list(view));
    const struct attention *all = app_attention(a);

    if (app_body(a).h <= LEAST_H && all->n > 0) {
        buf_printf(out, "%s: %s", all->alerts[0].where, all->alerts[0].what);
        return all->alerts[0].verdict == VERDICT_BAD;
    }
    if (l && l->q.paused == 1) {
        buf_printf(out, "%s is paused%s%s", l->q.queue, *l->q.paused_by ? " by " : "",
                   l->q.paused_by);
        if (l->q.paused_ms != FIELD_NULL)
            buf_printf(out, ", %s ago", fmt_age(a->now_ms - l->q.paused_ms).s);
        buf_printf(out, "%s%s", *l->q.pause_reason ? ": " : "", l->q.pause_reason);
    } else if (l && l->gain > 0) {
        buf_printf(out, "%s fills up by %s jobs/s", l->q.queue, fmt_rate(l->gain).s);
    } else if (l && *l->q.info) {
        buf_printf(out, "%s: %s", l->q.queue, l->q.info);
    }
    return false;
}

static void
queues_crumb(struct view *view, struct buf *out)
{
    struct queues *v = (struct queues *)view;

    if (*v->table.filter)
        buf_printf(out, "queues › %s", v->table.filter);
    else
        buf_str(out, "all queues");
}

/* --- commands -------------------------------------------------------------------------------- */

static void
queues_open(struct view *view)
{
    struct queues *v = (struct queues *)view;
    char *text = filter_with("", "queue", list_selected_id(v->table.list));

    app_push_jobs(view->app, text);
    free(text);
}

static void
queues_target(struct view *view, struct target *t)
{
    const struct queue_line *l = list_selected(table_list(view));

    if (!l)
        return;
    t->kind = TARGET_QUEUE;
    t->name = l->q.queue;
    t->paused = l->q.paused == 1;
}

static void
queues_sql(struct view *view, struct buf *out)
{
    struct adapter *ad = source_adapter(view->app->source);

    buf_printf(out, "-- queues\n%s\n\n-- counts\n%s\n", adapter_sql(ad, SEC_QUEUES),
               adapter_sql(ad, SEC_COUNTS));
}

const struct view_ops view_queues = {
    .name = "queues",
    .title = "Queues",
    .screen = 1,
    .tab = 1,
    .scope = IN_QUEUES,
    .topics = TOPIC_BIT(TOPIC_QUEUES) | TOPIC_BIT(TOPIC_NODES),
    .size = sizeof(struct queues),
    .init = queues_init,
    .done = queues_done,
    .show = queues_show,
    .update = queues_update,
    .draw = queues_draw,
    .list = table_list,
    .open = queues_open,
    .back = table_back,
    .target = queues_target,
    .crumb = queues_crumb,
    .remark = queues_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .sql = queues_sql,
    .copy = table_copy,
};
