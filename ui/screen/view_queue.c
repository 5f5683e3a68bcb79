/*
 * The page of one queue: its figures, its trend and what would help; its charts; and as panes the
 * jobs that start next, the running jobs, the errors, the nodes that take its jobs, the schedules.
 * Enter on a row of a pane opens its page.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/crumb.h"
#include "ui/facts/jobs_columns.h"
#include "ui/facts/lease_columns.h"
#include "ui/facts/node_columns.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/schedule_columns.h"
#include "ui/screen/charts.h"
#include "ui/screen/panes.h"
#include "ui/screen/views.h"
#include "ui/term/chart.h"

enum { PANE_NEXT, PANE_RUNNING, PANE_ERRORS, PANE_NODES, PANE_SCHEDULES };
enum {
    STEPS = 61,
    CHARTS_LEAST_H = 36,
    TWO_ROWS_H = 38, /* the least height for two rows of charts */
    CHARTS_LEAST_W = 116,
    SPARK_H = 20,
    HEAD_H = 3,
    LABEL_W = 14
};

struct queue_page {
    struct view view;
    char *name;
    struct panes panes;
    struct leases leases;
    struct group_row *groups;
    struct node_line *nodes;
    struct schedule_row *schedules;
    struct queue_line line;
    bool known; /* `line` has the queue's figures */
};

/* --- panes ------------------------------------------------------------------------------------ */

#define G(f) offsetof(struct group_row, f)
#define N(f) offsetof(struct node_row, f)
/* clang-format off */
static const struct column group_columns[] = {
    {.name = "jobs", .title = "JOBS", .help = "Failed jobs", .kind = K_COUNT, .offset = G(n), .min_w = 6, .max_w = 7},
    {.name = "last", .title = "LAST", .help = "Time since the last one failed", .kind = K_AGE, .offset = G(last_ms),
     .min_w = 7, .max_w = 7},
    {.name = "error", .title = "ERROR (N = a number)", .help = "Their error", .kind = K_TEXT, .offset = G(error_key),
     .min_w = 20},
    {0},
};
static const struct column taker_columns[] = {
    {.name = "node", .title = "NODE", .help = "Name of the worker process", .kind = K_TEXT, .offset = N(node),
     .min_w = 12, .max_w = 24},
    {.name = "state", .title = "STATE", .help = "up, late, dead or draining", .kind = K_CUSTOM,
     .offset = offsetof(struct node_line, trouble), .min_w = 10, .max_w = 10, .special = &node_state_special},
    {.name = "run", .title = "RUN", .help = "Jobs of all queues that it runs, of its slots; lost ones of a dead node",
     .kind = K_CUSTOM, .offset = N(running), .min_w = 7, .max_w = 7, .special = &node_slots_special},
    {.name = "slots", .title = "SLOTS", .help = "The same as a bar", .kind = K_CUSTOM, .offset = N(running),
     .min_w = NODE_GAUGE_W, .max_w = NODE_GAUGE_W, .keep = 1, .special = &node_gauge_special},
    {.name = "beat", .title = "BEAT", .help = "Time since the last heartbeat", .kind = K_AGE, .offset = N(heartbeat_ms),
     .min_w = 7, .max_w = 7},
    {0},
};
/* clang-format on */

static const struct list_def list_of_groups = {
    .columns = group_columns,
    .row_size = sizeof(struct group_row),
    .id_offset = G(error_key),
    .sort = "jobs",
    .desc = true,
};
static const struct list_def list_of_takers = {
    .columns = taker_columns,
    .row_size = sizeof(struct node_line),
    .id_offset = N(node),
    .sort = "state",
    .sign = node_sign,
};

static void
hide(struct list *l, const char *const *names)
{
    for (int i = 0; i < list_columns(l); i++)
        for (int k = 0; names[k]; k++)
            if (!strcmp(list_column(l, i)->name, names[k]))
                list_column_show(l, i, false);
}

static void
add_panes(struct queue_page *v)
{
    static const char *const of_jobs[] = {"queue", "due", "left", "node", "state", NULL};
    static const char *const of_leases[] = {"queue", "effect", NULL};
    static const char *const of_schedules[] = {"queue", "missed", "took", NULL};
    struct panes *p = &v->panes;
    void *store = v->view.app->store, *own = app_is_foreign(v->view.app) ? NULL : store;

    panes_add(p, "next to start, first on top", &jobs_def, own);
    panes_add(p, "running, longest on top", &list_of_running, store);
    panes_add(p, "errors of failed jobs", &list_of_groups, store);
    panes_add(p, "nodes that take its jobs", &list_of_takers, store);
    panes_add(p, "schedules that feed it", &schedule_list, store);
    hide(p->list[PANE_NEXT].list, of_jobs);
    hide(p->list[PANE_RUNNING].list, of_leases);
    hide(p->list[PANE_SCHEDULES].list, of_schedules);
}

static void
queue_init(struct view *view, const char *arg)
{
    struct queue_page *v = (struct queue_page *)view;

    v->name = xstrdup(arg ? arg : "");
    add_panes(v);
}

static void
queue_done(struct view *view)
{
    struct queue_page *v = (struct queue_page *)view;

    panes_done(&v->panes);
    leases_done(&v->leases);
    free(v->groups);
    free(v->nodes);
    free(v->schedules);
    free(v->name);
}

static void
queue_show(struct view *view)
{
    struct queue_page *v = (struct queue_page *)view;
    struct store *s = view->app->store;
    struct filter f = {0};
    struct err e;
    char *text = filter_with("state:ready", "queue", v->name);

    if (app_takes_filter(view->app, text, NULL, &e) && filter_parse(text, &f, NULL, &e)) {
        store_want(s, TOPIC_JOBS, true);
        store_ask_jobs(s, &f);
        filter_done(&f);
    }
    free(text);
    store_ask_leases(s, NULL, v->name);
    store_ask_groups(s, v->name, NULL);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void
take_jobs(struct queue_page *v)
{
    const struct filter *f = store_jobs_filter(v->view.app->store);
    int n;
    const struct job_row *rows = store_jobs(v->view.app->store, &n);
    bool ours = f && f->terms.value[PARAM_QUEUE] && !strcmp(f->terms.value[PARAM_QUEUE], v->name);

    list_set_rows(v->panes.list[PANE_NEXT].list, rows, ours ? n : 0);
}

static void
take_groups(struct queue_page *v)
{
    int n, kept = 0;
    const struct group_row *rows = store_groups(v->view.app->store, &n);

    v->groups = xreallocarray(v->groups, (size_t)n + 1, sizeof *v->groups);
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].queue, v->name))
            v->groups[kept++] = rows[i];
    list_set_rows(v->panes.list[PANE_ERRORS].list, v->groups, kept);
}

static void
take_nodes(struct queue_page *v)
{
    int n, kept = 0;
    const struct node_row *rows = store_nodes(v->view.app->store, &n);

    v->nodes = xreallocarray(v->nodes, (size_t)n + 1, sizeof *v->nodes);
    for (int i = 0; i < n; i++)
        if (node_takes(rows[i].queues, v->name))
            v->nodes[kept++] = node_line_of(&rows[i], app_is_foreign(v->view.app));
    list_set_rows(v->panes.list[PANE_NODES].list, v->nodes, kept);
}

static void
take_schedules(struct queue_page *v)
{
    int n, kept = 0;
    const struct schedule_row *rows = store_schedules(v->view.app->store, &n);

    v->schedules = xreallocarray(v->schedules, (size_t)n + 1, sizeof *v->schedules);
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].queue, v->name))
            v->schedules[kept++] = rows[i];
    list_set_rows(v->panes.list[PANE_SCHEDULES].list, v->schedules, kept);
}

static void
queue_update(struct view *view)
{
    struct queue_page *v = (struct queue_page *)view;
    struct app *a = view->app;
    int n;
    const struct node_row *nodes = store_nodes(a->store, &n);
    const struct queue_row *q = store_queue(a->store, v->name);
    struct workers w = workers_of(nodes, n);
    const struct lease_row *l = store_leases(a->store, &n);

    v->known = q != NULL;
    if (q)
        queue_line_fill(&v->line, q, &w, a->now_ms);
    workers_done(&w);
    leases_take(&v->leases, l, n, NULL, v->name);
    list_set_rows(v->panes.list[PANE_RUNNING].list, v->leases.rows, v->leases.n);
    take_jobs(v);
    take_groups(v);
    take_nodes(v);
    take_schedules(v);
}

/* --- frame ------------------------------------------------------------------------------------ */

static void
say(struct pen *p, const char *name, struct fmt figure, enum role role)
{
    if (p->r.w < (int)strlen(name) + (int)strlen(figure.s) + 3) /* a part is never cut short */
        return;
    pen_printf(p, ROLE_DIM, "%s ", name);
    pen_put(p, role, figure.s);
    pen_put(p, ROLE_DIM, "  ");
}

static void
draw_facts(const struct queue_page *v, struct grid *g, struct rect r)
{
    const struct queue_row *q = &v->line.q;
    int64_t age = queue_age(q, v->view.app->now_ms);
    struct pen p = pen_start(g, r);
    struct sign sign = verdict_sign(v->line.verdict);

    pen_printf(&p, sign.role, " %s ", sign.glyph ? sign.glyph : " ");
    say(&p, "ready", fmt_about(q->ready, q->approx), ROLE_STRONG);
    say(&p, "running", queue_running(&v->line, r.w), ROLE_STRONG);
    if (!isnan(q->pushed_per_s) && !isnan(q->done_per_s)) {
        say(&p, "in/s", fmt_rate(q->pushed_per_s), ROLE_STRONG);
        say(&p, "out/s", fmt_rate(q->done_per_s), ROLE_STRONG);
    }
    say(&p, "oldest", fmt_age(age == FIELD_NULL || age > 0 ? age : 0),
        q->paused == 1 ? ROLE_DIM : verdict_role(verdict_of_age(age)));
    say(&p, "failed", fmt_about(q->failed, q->approx), verdict_role(verdict_of_failed(q)));
    say(&p, "retry", fmt_about(q->retry, q->approx), ROLE_TEXT);
    say(&p, "later", fmt_about(q->scheduled, q->approx), ROLE_TEXT);
    if (q->blocked != FIELD_NULL)
        say(&p, "blocked", fmt_about(q->blocked, q->approx), ROLE_TEXT);
    if (q->wait_p99_ms != FIELD_NULL)
        say(&p, "wait p99", fmt_duration(q->wait_p99_ms), ROLE_TEXT);
    if (q->run_p99_ms != FIELD_NULL)
        say(&p, "run p99", fmt_duration(q->run_p99_ms), ROLE_TEXT);
}

/* Draws the queue's trend, and what helps. */
static void
draw_answers(const struct queue_page *v, struct grid *g, struct rect r)
{
    const struct app *a = v->view.app;
    bool bad = v->line.o.trend == TREND_FILLS || v->line.o.trend == TREND_STANDS;
    struct buf text = {0};
    struct sign sign = verdict_sign(v->line.verdict);
    enum role role = bad && v->line.q.paused != 1 ? ROLE_WARN : ROLE_TEXT;
    struct rect row = rect_row(r, 0);

    grid_str(g, (struct rect){row.x + 1, row.y, 1, 1}, sign.role, sign.glyph ? sign.glyph : " ");
    rect_cut_left(&row, 3);
    queue_say_trend(&v->line, a->now_ms, a->options.utc, &text);
    grid_str(g, row, role, text.data);
    buf_clear(&text);
    row = rect_row(r, 1);
    queue_say_advice(&v->line, &text);
    if (text.len > 0) {
        grid_str(g, (struct rect){row.x + 1, row.y, 1, 1}, ROLE_DIM, "→");
        rect_cut_left(&row, 3);
        grid_str(g, row, ROLE_TEXT, text.data);
    }
    buf_free(&text);
}

static void
draw_spark(const struct queue_page *v, struct grid *g, struct rect r, enum series what,
           const char *label)
{
    double steps[STEPS], shown[STEPS];
    struct app *a = v->view.app;
    const struct history *h = store_history(a->store);

    grid_str(g, rect_cut_left(&r, LABEL_W), ROLE_DIM, label);
    history_read(h, v->name, what, a->now_ms, steps, STEPS);
    if (r.w >= STEPS - 1) {
        r.w = STEPS;
        chart_spark(g, r, ROLE_CHART, steps, STEPS, 0);
        return;
    }
    int w = r.w > 0 ? r.w : 1, per = (STEPS + w - 1) / w;
    chart_bucket(steps, STEPS, per, a->now_ms / history_step_ms(h), shown, w);
    chart_spark(g, r, ROLE_CHART, shown, w, 0);
}

static bool
has_charts(struct rect r)
{
    return r.h >= CHARTS_LEAST_H && r.w >= CHARTS_LEAST_W;
}

static void
draw_charts(const struct queue_page *v, struct grid *g, struct rect *r)
{
    struct app *a = v->view.app;

    if (has_charts(*r)) {
        const struct charts *c = charts_of(a, v->name);
        for (int i = 0, rows = 1 + (r->h >= TWO_ROWS_H); i >= 0 && rows > 0; rows--) {
            struct rect row = rect_cut_top(r, CHARTS_H);
            i = charts_draw_row(c, a, &row, i);
        }
    } else if (r->h >= SPARK_H - 4) {
        draw_spark(v, g, rect_cut_top(r, 1), SERIES_PUSHED, "   in, 10 min");
        draw_spark(v, g, rect_cut_top(r, 1), SERIES_DONE, "  out, 10 min");
    }
}

/* Asks for the charts' data if there is room for charts below the head. */
static void
queue_drawn(struct view *view)
{
    struct rect r = app_body(view->app);

    rect_cut_top(&r, HEAD_H);
    charts_ask(view->app, has_charts(r) ? ((struct queue_page *)view)->name : NULL);
}

static const char *
why_empty(const struct app *a, enum topic t, const char *none)
{
    const char *why = app_unavailable(a, t);

    return why ? why : store_topic(a->store, t)->has_data ? none : "asking ...";
}

static void
queue_draw(struct view *view, struct grid *g, struct rect r)
{
    struct queue_page *v = (struct queue_page *)view;
    struct app *a = view->app;
    struct pane *p = v->panes.list;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_QUEUES)};
    struct rect head = rect_cut_top(&r, HEAD_H);

    grid_cursor(g, r.x, r.y);
    if (!v->known) {
        bool none = store_topic(a->store, TOPIC_QUEUES)->has_data;
        grid_printf(g, head, ROLE_DIM, " %s %s",
                    none ? "there is no queue (any more) with the name" : "asking for", v->name);
        return;
    }
    draw_facts(v, g, rect_cut_top(&head, 1));
    draw_answers(v, g, head);
    draw_charts(v, g, &r);
    p[PANE_NEXT].empty = why_empty(a, TOPIC_JOBS, "nothing is ready");
    p[PANE_RUNNING].empty = why_empty(a, TOPIC_LEASES, "nothing runs");
    p[PANE_ERRORS].empty = why_empty(a, TOPIC_GROUPS, "no failed job");
    p[PANE_NODES].empty = why_empty(a, TOPIC_NODES, "no node takes its jobs");
    p[PANE_SCHEDULES].empty = why_empty(a, TOPIC_SCHEDULES, "no schedule");
    panes_draw(&v->panes, g, r, &look);
}

/* Shows the settings of the queue. */
static bool
queue_remark(struct view *view, struct buf *out)
{
    const struct queue_page *v = (const struct queue_page *)view;

    if (!v->known)
        return false;
    if (v->line.q.max_running >= 0)
        buf_printf(out, "at most %d at a time", v->line.q.max_running);
    if (*v->line.q.info)
        buf_printf(out, "%s%s", out->len ? ", " : "", v->line.q.info);
    return false;
}

static void
queue_crumb(struct view *view, struct buf *out)
{
    crumb_add(out, ((struct queue_page *)view)->name);
}

/* --- commands --------------------------------------------------------------------------------- */

static struct list *
queue_list(struct view *view)
{
    return panes_list(&((struct queue_page *)view)->panes);
}

static void
queue_pane(struct view *view, int step)
{
    panes_step(&((struct queue_page *)view)->panes, step);
}

static void
open_group(struct queue_page *v, const struct group_row *group)
{
    char *one = filter_with("state:failed", "queue", v->name);
    char *two = filter_with(one, "error", group->error_key);

    app_push_jobs(v->view.app, two);
    free(one);
    free(two);
}

static void
open_schedule(struct app *a, const char *schedule)
{
    char *name = xstrdup(schedule);

    app_open(a, "schedules", NULL);
    list_select(app_view(a)->ops->list(app_view(a)), name);
    app_view(a)->touched = true;
    free(name);
}

static void
queue_open(struct view *view)
{
    struct queue_page *v = (struct queue_page *)view;
    const void *row = list_selected(panes_list(&v->panes));

    switch (v->panes.focus) {
    case PANE_NEXT:
        app_push(view->app, "job", ((const struct job_row *)row)->id);
        break;
    case PANE_RUNNING:
        app_push(view->app, "job",
                 lease_first_job(&((const struct lease_line *)row)->l, view->app->frame));
        break;
    case PANE_ERRORS:
        open_group(v, row);
        break;
    case PANE_NODES:
        app_push(view->app, "node", ((const struct node_row *)row)->node);
        break;
    case PANE_SCHEDULES:
        open_schedule(view->app, ((const struct schedule_row *)row)->name);
        break;
    default:
        break;
    }
}

static void
queue_target(struct view *view, struct target *t)
{
    struct queue_page *v = (struct queue_page *)view;

    if (!v->known)
        return;
    t->kind = TARGET_QUEUE;
    t->name = v->name;
    t->names = (const char *const *)&v->name;
    t->nnames = 1;
    t->paused = v->line.q.paused == 1;
}

static const char *
queue_subject(struct view *view)
{
    return ((struct queue_page *)view)->name;
}

static void
queue_sql(struct view *view, struct buf *out)
{
    struct adapter *ad = source_adapter(view->app->source);
    static const enum section_id sections[] = {SEC_COUNTS, SEC_PACE, SEC_LEASES, SEC_GROUPS};

    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (adapter_has(ad, sections[i]))
            buf_printf(out, "%s\n\n", adapter_sql(ad, sections[i]));
}

const struct view_ops view_queue = {
    .name = "queue",
    .title = "Queue",
    .tab = 1,
    .scope = IN_QUEUES,
    .topics = TOPIC_BIT(TOPIC_QUEUES) | TOPIC_BIT(TOPIC_NODES) | TOPIC_BIT(TOPIC_LEASES) |
              TOPIC_BIT(TOPIC_GROUPS) | TOPIC_BIT(TOPIC_SCHEDULES) | TOPIC_BIT(TOPIC_PACE) |
              TOPIC_BIT(TOPIC_TIMES),
    .size = sizeof(struct queue_page),
    .fixed_order = true,
    .page = true,
    .init = queue_init,
    .done = queue_done,
    .show = queue_show,
    .update = queue_update,
    .draw = queue_draw,
    .drawn = queue_drawn,
    .list = queue_list,
    .open = queue_open,
    .target = queue_target,
    .crumb = queue_crumb,
    .remark = queue_remark,
    .sql = queue_sql,
    .subject = queue_subject,
    .pane = queue_pane,
};
