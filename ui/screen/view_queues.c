/*
 * Queues: the age of the oldest ready job; how many jobs wait, run and fail, and how fast; and what
 * needs attention. A wide screen also has the charts of the selected queue, a large one errors,
 * nodes and the latest events. A row is made when it is drawn. Rows are sorted by a rank in steps,
 * so that ages of a few seconds don't change the order at each refresh. What depends on all queues
 * is calculated once a second, not for each key.
 */
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/facts/node_columns.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/recovery.h"
#include "ui/facts/verdict.h"
#include "ui/screen/charts.h"
#include "ui/screen/views.h"
#include "ui/term/fmt.h"

/* --- more of a queue --- */

/* What a large screen shows below the table of queues: errors, nodes, and the latest events.
 * They concern all queues, and other screens show the same rows in full. Boxes of plain rows.
 * The cursor can't go into them: their screens are 3 Failed, 4 Nodes, 6 Audit. */

enum { MORE_LEAST_H = 6, MORE_MOST_H = 13, MORE_LEAST_W = 56 };

enum { EVENTS = 64, NAME_W = 16 };

/* wanted: the store asks for the data of these boxes, or stops asking. */
static void
queues_more_ask(struct app *a, bool wanted)
{
    bool is_asked = store_topic(a->store, TOPIC_GROUPS)->wanted && store_groups_are_all(a->store);

    if (wanted && !is_asked) /* F may have asked for the errors of one queue */
        store_ask_groups(a->store, NULL, NULL);
    store_want(a->store, TOPIC_GROUPS, wanted || a->follow.what == FOLLOW_GROUP);
}

static struct rect
open_box(struct app *a, struct rect r, const char *title)
{
    return grid_panel(a->grid, r, title, false);
}

/* A cell of one row; the rest of the row stays. */
static struct rect
cell(struct rect *row, int w)
{
    struct rect c = rect_cut_left(row, w);

    rect_cut_left(row, 1);
    return c;
}

/* --- errors, nodes ---------------------------------------------------------------------------- */

static void
draw_error(struct app *a, struct rect row, const struct group_row *e)
{
    struct sign sign = verdict_sign(verdict_of_group(e, a->now_ms));

    if (sign.glyph)
        grid_str(a->grid, row, sign.role, sign.glyph);
    rect_cut_left(&row, 2);
    grid_right(a->grid, cell(&row, 6), ROLE_TEXT, fmt_count_fit(e->n, 6).s);
    grid_right(a->grid, cell(&row, 7), ROLE_DIM,
               e->last_ms == FIELD_NULL ? "" : fmt_age(a->now_ms - e->last_ms).s);
    grid_str(a->grid, cell(&row, NAME_W), ROLE_TEXT, e->queue);
    grid_str(a->grid, row, ROLE_DIM, e->error_key);
}

static void
draw_errors(struct app *a, struct rect r)
{
    int n;
    const struct group_row *rows = store_groups(a->store, &n);
    struct rect in = open_box(a, r, "errors of failed jobs: 3");

    if (n == 0)
        grid_str(a->grid, in, ROLE_DIM,
                 store_topic(a->store, TOPIC_GROUPS)->has_data ? "none" : "asking ...");
    for (int i = 0; i < n && i < in.h; i++)
        draw_error(a, rect_row(in, i), &rows[i]);
}

static void
draw_node(struct app *a, struct rect row, const struct node_row *n)
{
    enum verdict v = verdict_of_node(n, app_is_foreign(a));
    struct sign sign = verdict_sign(v);
    bool dead = node_state(n) == NODE_DEAD && n->running > 0;
    int slots = n->slots == INT_MIN ? 0 : n->slots;

    if (sign.glyph)
        grid_str(a->grid, row, sign.role, sign.glyph);
    rect_cut_left(&row, 2);
    grid_str(a->grid, cell(&row, NAME_W), ROLE_TEXT, n->node);
    grid_str(a->grid, cell(&row, 9), verdict_role(v), n->state);
    struct rect gauge = cell(&row, slots > 0 && row.w > NODE_GAUGE_W + 10 ? NODE_GAUGE_W : 0);
    node_draw_gauge(a->grid, gauge, n, verdict_role(v));
    if (dead)
        grid_printf(a->grid, row, ROLE_TEXT, "%s lost", fmt_count(n->running).s);
    else if (slots > 0)
        grid_str(a->grid, row, ROLE_TEXT, node_at_work(n, row.w).s);
    else
        grid_str(a->grid, row, ROLE_TEXT, fmt_plural(n->running, "job").s);
}

/* Those in trouble first, as on their screen. */
static void
draw_nodes(struct app *a, struct rect r)
{
    int n, y = 0;
    const struct node_row *rows = store_nodes(a->store, &n);
    struct rect in = open_box(a, r, "nodes: 4");

    if (n == 0)
        grid_str(a->grid, in, ROLE_DIM, app_none(a, "no node"));
    for (int v = VERDICT_BAD; v >= VERDICT_WELL; v--)
        for (int i = 0; i < n && y < in.h; i++)
            if ((int)verdict_of_node(&rows[i], app_is_foreign(a)) == v)
                draw_node(a, rect_row(in, y++), &rows[i]);
}

/* Errors and nodes side by side. */
static void
queues_more_draw(struct app *a, struct rect r)
{
    draw_errors(a, rect_cut_left(&r, r.w / 2));
    draw_nodes(a, r);
}

/* --- lately ----------------------------------------------------------------------------------- */

struct event {
    int64_t at_ms;
    const char *who, *what;
    enum role role;
};

struct events {
    struct event list[EVENTS];
    int n;
};

static void
add(struct events *e, int64_t at_ms, const char *who, enum role role, const char *what)
{
    if (at_ms != FIELD_NULL && e->n < EVENTS)
        e->list[e->n++] = (struct event){at_ms, who, what, role};
}

static void
add_acts(struct app *a, struct events *e)
{
    int n;
    const struct audit_row *rows = store_audit(a->store, &n);

    for (int i = 0; i < n && i < EVENTS / 2; i++)
        add(e, rows[i].at_ms, rows[i].who, ROLE_TEXT,
            arena_printf(a->frame, "%s %s%s%s", rows[i].verb, rows[i].target,
                         *rows[i].reason ? ": " : "", rows[i].reason));
}

static void
add_deaths(struct app *a, struct events *e)
{
    int n;
    const struct node_row *rows = store_nodes(a->store, &n);

    for (int i = 0; i < n && e->n < EVENTS * 3 / 4; i++)
        if (node_state(&rows[i]) == NODE_DEAD)
            add(e, rows[i].heartbeat_ms, rows[i].node,
                verdict_role(verdict_of_node(&rows[i], false)),
                arena_printf(a->frame, "its last heartbeat, with %s",
                             fmt_plural(rows[i].running, "job").s));
}

static void
add_errors(struct app *a, struct events *e)
{
    int n;
    const struct group_row *rows = store_groups(a->store, &n);

    for (int i = 0; i < n; i++) {
        if (rows[i].n > 1)
            add(e, rows[i].first_ms, rows[i].queue, ROLE_TEXT,
                arena_printf(a->frame, "failed first: %s", rows[i].error_key));
        add(e, rows[i].last_ms, rows[i].queue, ROLE_TEXT,
            rows[i].n > 1 ? arena_printf(a->frame, "the last of %s: %s", fmt_count(rows[i].n).s,
                                         rows[i].error_key)
                          : arena_printf(a->frame, "failed: %s", rows[i].error_key));
    }
}

static int
by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    return x->at_ms == y->at_ms ? strcmp(x->what, y->what) : x->at_ms > y->at_ms ? -1 : 1;
}

/* Acts, nodes that died, the first and the last time of each error; newest first. */
static void
queues_more_lately(struct app *a, struct rect r)
{
    struct events *e = arena_alloc(a->frame, sizeof *e);
    struct rect in = open_box(a, r, "lately");

    e->n = 0;
    add_acts(a, e);
    add_deaths(a, e);
    add_errors(a, e);
    qsort(e->list, (size_t)e->n, sizeof *e->list, by_time);
    if (e->n == 0)
        grid_str(a->grid, in, ROLE_DIM, "nothing is known");
    for (int i = 0; i < e->n && i < in.h; i++) {
        struct rect row = rect_row(in, i);
        grid_str(a->grid, cell(&row, 11), ROLE_DIM,
                 fmt_when(e->list[i].at_ms, a->now_ms, a->options.utc).s);
        grid_str(a->grid, cell(&row, NAME_W), ROLE_TEXT, e->list[i].who);
        grid_str(a->grid, row, e->list[i].role, e->list[i].what);
    }
}

/* --- the screen --- */

enum { RATES_W = 24, WIDE_W = 120, WIDE_H = 36, MORE_H = 45, SORT_ALWAYS = 2000 };
enum { TALL_H = 30, LEAST_H = 8, ALERT_ROWS = 6, ALERT_LEAST = 2 };

struct queues {
    struct table_view table;
    struct workers workers;
    uint64_t serial; /* serial of the rows that the list has sorted, and */
    const struct store *store;
    bool on_alerts; /* Tab has moved the focus to the alerts; */
    int alert;      /* the cursor is on this one of */
    int alerts;     /* the alerts that were drawn; */
    char *key;      /* its alert_key(), because others come and go */
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
row_matches(void *ctx, const void *row)
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
    table_init(view, &list_of_queues, row_matches);
    list_set_ctx(v->table.list, view->app->store);
}

static void
queues_done(struct view *view)
{
    struct queues *v = (struct queues *)view;

    free(v->key);
    table_done(view);
    workers_done(&v->workers);
}

/* Asks for times, too. These are read rarely, so they do not count for the age of the data. */
static void
queues_show(struct view *view)
{
    store_want(view->app->store, TOPIC_TIMES, true);
    store_want(view->app->store, TOPIC_PACE, true);
}

static void
make_line(void *ctx, int i, void *row)
{
    const struct queues *v = ctx;
    const struct app *a = v->table.view.app;
    int n;
    const struct queue_row *q = store_queues(a->store, &n);

    queue_line_fill(row, &q[i], &v->workers, a->now_ms);
}

static const char *
line_id(void *ctx, int i)
{
    const struct queues *v = ctx;
    int n;

    return store_queues(v->table.view.app->store, &n)[i].queue;
}

static bool
has_charts(const struct app *a)
{
    struct rect r = app_body(a);

    return r.w >= WIDE_W && r.h >= WIDE_H;
}

/* If there are many queues, they are sorted when new data has come; few queues are sorted also
 * when their ages have grown. */
static void
queues_update(struct view *view)
{
    struct queues *v = (struct queues *)view;
    struct app *a = view->app;
    uint64_t serial = store_queues_serial(a->store);
    int n;
    const struct node_row *nodes = store_nodes(a->store, &n);

    workers_done(&v->workers);
    v->workers = workers_of(nodes, n);
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

/* --- panes: the table, and what needs attention ----------------------------------------------- */

static struct list *
queues_focus(struct view *view)
{
    struct queues *v = (struct queues *)view;

    return v->on_alerts ? NULL : v->table.list;
}

/* The first alert whose key begins with these n bytes of the cursor's; -1 = none. */
static int
alert_like(const struct queues *v, size_t n)
{
    const struct attention *all = app_attention(v->table.view.app);

    for (int i = 0; i < all->n; i++) {
        char *key = alert_key(&all->alerts[i]);
        bool is_it = !strncmp(key, v->key, n);
        free(key);
        if (is_it)
            return i;
    }
    return -1;
}

/* The cursor's alert among those of this moment; -1 = it is over. If it has become another one of
 * the same row (a late node that is dead now), that one. */
static int
find_alert(const struct queues *v)
{
    int at = v->key ? alert_like(v, strlen(v->key) + 1) : -1;

    if (v->key && at < 0)
        at = alert_like(v, (size_t)(strrchr(v->key, '\n') + 1 - v->key));
    return at;
}

static void
note_alert(struct queues *v)
{
    const struct attention *all = app_attention(v->table.view.app);

    free(v->key);
    v->key = v->alert < all->n ? alert_key(&all->alerts[v->alert]) : NULL;
}

static void
queues_pane(struct view *view, int step)
{
    struct queues *v = (struct queues *)view;

    (void)step;
    if (v->alerts == 0)
        app_say(view->app, SAY_INFO, "%s",
                app_attention(view->app)->n ? "only this table has room here"
                                            : "there is no alert to go to");
    v->on_alerts = !v->on_alerts && v->alerts > 0;
    note_alert(v);
}

static void
queues_move(struct view *view, enum move m)
{
    struct queues *v = (struct queues *)view;
    int last = app_attention(view->app)->n - 1, page = v->alerts > 1 ? v->alerts - 1 : 1;
    const int steps[] = {
        [MOVE_UP] = -1,
        [MOVE_DOWN] = 1,
        [MOVE_PAGE_UP] = -page,
        [MOVE_PAGE_DOWN] = page,
        [MOVE_HALF_UP] = -(page + 1) / 2,
        [MOVE_HALF_DOWN] = (page + 1) / 2,
        [MOVE_HOME] = -last,
        [MOVE_END] = last,
        [MOVE_LEFT] = 0,
        [MOVE_RIGHT] = 0,
    };

    if (!v->on_alerts)
        return;
    v->alert += steps[m];
    v->alert = v->alert > last ? last : v->alert;
    v->alert = v->alert < 0 ? 0 : v->alert;
    note_alert(v);
}

static bool
queues_back(struct view *view)
{
    struct queues *v = (struct queues *)view;

    if (!v->on_alerts)
        return table_back(view);
    v->on_alerts = false;
    return true;
}

/* --- frame ----------------------------------------------------------------------------------- */

/* The number of finished jobs that are kept. They are counted rarely, so the text says when. */
static void
say_kept(struct pen *p, const struct app *a)
{
    const struct queue_row *t = store_totals(a->store);
    int64_t age = store_age_ms(a->store, TOPIC_FINAL);

    if (p->r.w < 34)
        return;
    if (age < 0 && store_topic(a->store, TOPIC_FINAL)->err.kind == ERR_TIMEOUT)
        pen_put(p, ROLE_DIM, "  completed: too many to count");
    if (t->kept_completed == FIELD_NULL || age < 0)
        return;
    pen_put(p, ROLE_DIM, "  completed ");
    pen_printf(p, ROLE_STRONG, "%s%s", t->kept_approx == 1 ? "~" : "",
               fmt_count_fit(t->kept_completed, 7).s);
    pen_printf(p, ROLE_DIM, ", counted %s ago", fmt_age_short(age).s);
}

/* "worker-4 is broken, 3 want a look": all alerts, as the header counts them. If there is only one
 * of a kind, it is named. Who is not there is named alone: "no worker is broken" would say the
 * opposite. */
static void
say_verdicts(struct app *a, struct pen *p)
{
    const struct attention *all = app_attention(a);
    const struct alert *warning = all->bad < all->n ? &all->alerts[all->bad] : NULL;

    if (all->bad == 1)
        pen_printf(p, ROLE_BAD, all->alerts[0].is_missing ? " %s" : " %s is broken",
                   all->alerts[0].where);
    else if (all->bad > 1)
        pen_printf(p, ROLE_BAD, " %d are broken", all->bad);
    if (all->warn > 0)
        pen_put(p, ROLE_WARN, all->bad > 0 ? ", " : " ");
    if (all->warn == 1 && warning)
        pen_printf(p, ROLE_WARN, "%s wants a look", warning->where);
    else if (all->warn > 0)
        pen_printf(p, ROLE_WARN, "%d want a look", all->warn);
    if (all->bad + all->warn == 0 && alerts_old_ms(a))
        pen_printf(p, ROLE_DIM, " all was well %s ago", fmt_age_short(alerts_old_ms(a)).s);
    else if (all->bad + all->warn == 0)
        pen_put(p, ROLE_DIM, " all is well");
    pen_put(p, ROLE_DIM, " ");
}

static void
say_figure(struct pen *p, const char *name, struct fmt figure)
{
    pen_printf(p, ROLE_DIM, "%s%s ", p->r.x > 1 ? "  " : " ", name);
    pen_put(p, ROLE_STRONG, figure.s);
}

static void
say_running(const struct queues *v, struct pen *p, const struct queue_row *t)
{
    const struct workers *w = &v->workers;

    say_figure(p, "running",
               w->slots > 0 ? fmt_count(workers_used(w, t)) : fmt_about(t->running, t->approx));
    if (w->slots > 0)
        pen_printf(p, ROLE_DIM, p->r.w > 60 ? " of %s slots" : "/%s", fmt_count(w->slots).s);
    if (w->slots > 0 && w->beyond > 0)
        pen_printf(p, ROLE_DIM, p->r.w > 60 ? ", %s beyond" : "+%s", fmt_count(w->beyond).s);
    if (w->slots > 0 && w->lost > 0)
        pen_printf(p, ROLE_BAD, ", %s lost", fmt_count(w->lost).s);
}

static void
draw_totals(const struct queues *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    const struct queue_row *t = store_totals(a->store);
    struct pen p = pen_start(g, r);

    if (!t || !store_topic(a->store, TOPIC_QUEUES)->has_data) {
        pen_put(&p, ROLE_DIM,
                store_error(a->store)->kind == ERR_NONE ? " asking ..." : " no data yet");
        return;
    }
    if (r.w >= WIDE_W)
        say_verdicts(a, &p);
    say_figure(&p, "ready", fmt_about(t->ready, t->approx));
    say_running(v, &p, t);
    say_figure(&p, "failed", fmt_about(t->failed, t->approx));
    bool has_rates = !isnan(t->pushed_per_s) || !isnan(t->done_per_s);
    if (p.r.w >= 16 + (has_rates ? RATES_W : 0) && t->failed_hour != FIELD_NULL &&
        t->failed_hour > 0)
        pen_printf(&p, ROLE_BAD, " (+%s in 1h)", fmt_count_fit(t->failed_hour, 6).s);
    if (p.r.w >= 12 && !isnan(t->pushed_per_s)) { /* never cut short */
        say_figure(&p, "in", fmt_rate(t->pushed_per_s));
        pen_put(&p, ROLE_DIM, "/s");
    }
    if (p.r.w >= 12 && !isnan(t->done_per_s)) {
        say_figure(&p, "out", fmt_rate(t->done_per_s));
        pen_put(&p, ROLE_DIM, "/s");
    }
    say_kept(&p, a);
}

/* The latest events are drawn beside the last charts. */
static void
draw_charts(struct app *a, struct rect r, const char *queue)
{
    const struct charts *c = charts_of(a, queue);

    for (int i = 0; r.h >= CHARTS_H && i >= 0;) {
        struct rect row = rect_cut_top(&r, CHARTS_H);
        i = charts_draw_row(c, a, &row, i);
        if (i < 0 && row.w >= MORE_LEAST_W)
            queues_more_lately(a, row);
    }
}

/* Cuts the room for one row of charts, or for two if the table leaves enough. */
static struct rect
cut_charts(struct rect *r, int queues)
{
    return rect_cut_bottom(r, r->h - queues - 1 >= 2 * CHARTS_H ? 2 * CHARTS_H : CHARTS_H);
}

/* Cuts the room that the charts leave, if two of the boxes of queues_more.h fit into it. */
static struct rect
cut_more(struct rect *r, int queues)
{
    int left = r->h - queues - 2;

    if (r->w < 2 * MORE_LEAST_W || left < MORE_LEAST_H)
        left = 0;
    return rect_cut_bottom(r, left < MORE_MOST_H ? left : MORE_MOST_H);
}

/* Where the alerts are drawn: below the totals if there is room for all rows, otherwise in the
 * rows that the table leaves at the bottom. This depends only on the size and the number of
 * queues, so nothing moves when an alert comes. */
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
draw_alerts(struct queues *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    int n = app_attention(a)->n, at = v->on_alerts ? find_alert(v) : -1;

    v->on_alerts = v->on_alerts && n > 0;
    v->alert = at >= 0 ? at : v->alert < n ? v->alert : n > 0 ? n - 1 : 0;
    if (v->on_alerts && at < 0)
        note_alert(v);
    v->alerts = alerts_draw(a, g, r, v->on_alerts ? v->alert : -1);
}

static void
queues_draw(struct view *view, struct grid *g, struct rect r)
{
    struct queues *v = (struct queues *)view;
    struct app *a = view->app;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_QUEUES),
                             .counts = true,
                             .order = "trouble first, then the oldest",
                             .old_ms = store_age_ms(a->store, TOPIC_QUEUES),
                             .empty = *v->table.filter ? "no queue matches" : "no queue yet"};

    if (!store_topic(a->store, TOPIC_QUEUES)->has_data)
        look.empty = "";
    look.unfocused = queues_focus(view) == NULL;
    v->alerts = 0;
    draw_totals(v, g, rect_cut_top(&r, 1));
    const char *queue = list_selected_id(v->table.list);
    bool wide = has_charts(a) && queue;
    struct rect needs = cut_alerts(&r, list_count(v->table.list));
    if (needs.h > 0)
        draw_alerts(v, g, needs);
    if (wide)
        draw_charts(a, cut_charts(&r, list_count(v->table.list)), queue);
    struct rect more = {0};
    if (wide && app_body(a).h >= MORE_H)
        more = cut_more(&r, list_count(v->table.list));
    if (more.h > 0)
        queues_more_draw(a, more);
    list_draw(v->table.list, g, r, &look);
}

/* Whether an alert needs the name of an error. */
static bool
much_failed(const struct attention *all)
{
    for (int i = 0; i < all->n; i++)
        if (all->alerts[i].id == COND_FAILED_HOUR)
            return true;
    return false;
}

/* Asks for the charts of the selected queue. */
static void
queues_drawn(struct view *view)
{
    struct app *a = view->app;

    charts_ask(a, has_charts(a) ? list_selected_id(table_list(view)) : NULL);
    queues_more_ask(a, (has_charts(a) && app_body(a).h >= MORE_H) || much_failed(app_attention(a)));
}

/* Says whether the queue's failures continue. */
static void
say_failing(const struct app *a, const struct queue_row *q, struct buf *out)
{
    const struct recovery_of of = {a->store, a->now_ms, a->options.utc};

    buf_printf(out, "%s: %s failed in 1 h", q->queue, fmt_count(q->failed_hour).s);
    (void)recovery_say_failures(&of, q, out);
}

/* If there is no room for the alerts, the line shows the first one. Otherwise it shows the selected
 * queue's trend, if there is something to say. */
static bool
queues_remark(struct view *view, struct buf *out)
{
    struct app *a = view->app;
    const struct queue_line *l = list_selected(table_list(view));
    const struct attention *all = app_attention(a);

    if (table_say_marked(view, out))
        return false;
    if (app_body(a).h <= LEAST_H && all->n > 0) {
        buf_printf(out, "%s: %s", all->alerts[0].where, all->alerts[0].what);
        return all->alerts[0].verdict == VERDICT_BAD;
    }
    bool news = l && (l->q.paused == 1 || l->o.held != HELD_NOT || l->o.trend == TREND_FILLS ||
                      l->o.trend == TREND_STANDS);
    if (news) {
        buf_printf(out, "%s: ", l->q.queue);
        queue_say_why(l, a->now_ms, a->options.utc, out);
    } else if (l && l->q.failed_hour > 0) {
        say_failing(a, &l->q, out);
    } else if (l && *l->q.info) {
        buf_printf(out, "%s: %s", l->q.queue, l->q.info);
    }
    return false;
}

static void
queues_crumb(struct view *view, struct buf *out)
{
    table_crumb(view, "queues", out);
}

/* --- commands -------------------------------------------------------------------------------- */

static void
queues_open(struct view *view)
{
    struct queues *v = (struct queues *)view;
    int alert = v->on_alerts ? find_alert(v) : -1;

    if (v->on_alerts && alert < 0)
        app_say(view->app, SAY_INFO, "this alert is over");
    else if (v->on_alerts)
        alerts_open(view->app, alert);
    else
        app_push(view->app, "queue", list_selected_id(table_list(view)));
}

static void
queues_target(struct view *view, struct target *t)
{
    if (!table_target(view, "queue", t))
        return;
    t->kind = TARGET_QUEUE;
    t->paused = true;
    for (int i = 0; i < t->nnames; i++) {
        const struct queue_row *q = store_queue(view->app->store, t->names[i]);
        t->paused = t->paused && q && q->paused == 1;
    }
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
    .opens = "queue",
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
    .drawn = queues_drawn,
    .list = table_list,
    .focus = queues_focus,
    .pane = queues_pane,
    .move = queues_move,
    .open = queues_open,
    .back = queues_back,
    .mark_all = table_mark_all,
    .unmark = table_unmark,
    .target = queues_target,
    .crumb = queues_crumb,
    .remark = queues_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .sql = queues_sql,
    .copy = table_copy,
};
