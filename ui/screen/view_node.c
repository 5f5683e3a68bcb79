/*
 * The page of one node: its facts, the evidence that it is alive, what becomes of its jobs if
 * nobody acts; as panes its leases and the other nodes of its host. Enter on a row opens its page.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/crumb.h"
#include "ui/facts/lease_columns.h"
#include "ui/facts/node_columns.h"
#include "ui/facts/verdict.h"
#include "ui/screen/node_evidence.h"
#include "ui/screen/panes.h"
#include "ui/screen/views.h"
#include "ui/term/chart.h"

enum { PANE_LEASES, PANE_HOST };

struct node_page {
    struct view view;
    char *name;
    struct panes panes;
    struct leases leases;
    struct node_row *host; /* the other nodes of this host */
};

#define N(f) offsetof(struct node_row, f)
/* clang-format off */
static const struct column host_columns[] = {
    {.name = "node", .title = "NODE", .help = "Name of the worker process", .kind = K_TEXT, .offset = N(node),
     .min_w = 12, .max_w = 24},
    {.name = "state", .title = "STATE", .help = "up, late, dead or draining", .kind = K_TEXT, .offset = N(state),
     .min_w = 10, .max_w = 10},
    {.name = "beat", .title = "BEAT", .help = "Time since the last heartbeat", .kind = K_AGE, .offset = N(heartbeat_ms),
     .min_w = 7, .max_w = 7},
    {.name = "run", .title = "RUN", .help = "Jobs of all queues that it runs, of its slots; lost ones of a dead node",
     .kind = K_CUSTOM, .offset = N(running), .min_w = 7, .max_w = 7, .special = &node_slots_special},
    {.name = "slots", .title = "SLOTS", .help = "The same as a bar", .kind = K_CUSTOM, .offset = N(running),
     .min_w = NODE_GAUGE_W, .max_w = NODE_GAUGE_W, .keep = 1, .special = &node_gauge_special},
    {.name = "version", .title = "VERSION", .help = "Its version", .kind = K_TEXT, .offset = N(version), .min_w = 7,
     .max_w = 9},
    {0},
};
/* clang-format on */

static struct sign
sign_of(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return verdict_sign(verdict_of_node(row, false));
}

static const struct list_def list_of_host = {
    .columns = host_columns,
    .row_size = sizeof(struct node_row),
    .id_offset = N(node),
    .sort = "node",
    .sign = sign_of,
};

/* --- data ------------------------------------------------------------------------------------- */

static void
node_init(struct view *view, const char *arg)
{
    struct node_page *v = (struct node_page *)view;

    v->name = xstrdup(arg ? arg : "");
    panes_add(&v->panes, "its leases, the first to end on top", &list_of_leases, NULL);
    panes_add(&v->panes, "other nodes of its host", &list_of_host, NULL);
    list_column_show(v->panes.list[PANE_LEASES].list, LEASE_NODE_COLUMN, false);
}

static void
node_done(struct view *view)
{
    struct node_page *v = (struct node_page *)view;

    panes_done(&v->panes);
    leases_done(&v->leases);
    free(v->host);
    free(v->name);
}

static void
node_show(struct view *view)
{
    store_ask_leases(view->app->store, ((struct node_page *)view)->name, NULL);
}

static void
take_host(struct node_page *v, const struct node_row *me)
{
    int n, kept = 0;
    const struct node_row *rows = store_nodes(v->view.app->store, &n);

    v->host = xreallocarray(v->host, (size_t)n + 1, sizeof *v->host);
    for (int i = 0; i < n && me && *me->host; i++)
        if (!strcmp(rows[i].host, me->host) && strcmp(rows[i].node, v->name) != 0)
            v->host[kept++] = rows[i];
    list_set_rows(v->panes.list[PANE_HOST].list, v->host, kept);
}

static void
node_update(struct view *view)
{
    struct node_page *v = (struct node_page *)view;
    struct store *s = view->app->store;
    int n;
    const struct lease_row *l = store_leases(s, &n);

    leases_take(&v->leases, l, n, v->name, NULL);
    list_set_rows(v->panes.list[PANE_LEASES].list, v->leases.rows, v->leases.n);
    take_host(v, store_node(s, v->name));
}

/* --- frame ------------------------------------------------------------------------------------ */

static void
draw_facts(const struct app *a, const struct node_row *n, struct grid *g, struct rect r)
{
    enum verdict verdict = verdict_of_node(n, app_is_foreign(a));
    struct sign sign = verdict_sign(verdict);
    struct pen p = pen_start(g, r);
    bool lost = node_state(n) == NODE_DEAD && n->running > 0;

    pen_printf(&p, sign.role, " %s ", sign.glyph ? sign.glyph : " ");
    pen_printf(&p, verdict_role(verdict), "%s", node_is_cut_off(n) ? "cut off" : n->state);
    pen_printf(&p, lost ? ROLE_BAD : ROLE_TEXT, lost ? "  %s lost" : "  %s",
               lost || n->slots <= 0 ? fmt_plural(n->running, "job").s : fmt_count(node_busy(n)).s);
    if (!lost && n->slots > 0) {
        pen_printf(&p, ROLE_TEXT, " of %s at work", fmt_plural(n->slots, "slot").s);
        if (node_beyond(n) > 0)
            pen_printf(&p, ROLE_TEXT, ", %s beyond", fmt_count(node_beyond(n)).s);
        if (node_lost(n) > 0)
            pen_printf(&p, ROLE_BAD, ", %s lost", fmt_count(node_lost(n)).s);
    }
    if (n->leases != FIELD_NULL)
        pen_printf(&p, ROLE_TEXT, "  %s", fmt_plural(n->leases, "lease").s);
    if (n->expired > 0)
        pen_printf(&p, ROLE_BAD, ", %s over", fmt_count(n->expired).s);
    if (n->started_ms != FIELD_NULL)
        pen_printf(&p, ROLE_DIM, "  up for %s", fmt_age(a->now_ms - n->started_ms).s);
    if (*n->host)
        pen_printf(&p, ROLE_DIM, "  host %s", n->host);
    if (n->pid != INT_MIN)
        pen_printf(&p, ROLE_DIM, " pid %d", n->pid);
    if (*n->version)
        pen_printf(&p, ROLE_DIM, "  version %s", n->version);
    if (n->heartbeat_ms != FIELD_NULL)
        pen_printf(&p, ROLE_DIM, "  queues %s", *n->queues ? n->queues : "all");
}

/* What L does, and what becomes of the jobs without it. */
static void
draw_future(const struct node_page *v, const struct node_row *n, struct grid *g, struct rect r)
{
    const struct app *a = v->view.app;
    struct buf text = {0};

    if (!node_is_gone(n) || n->leases <= 0 || v->leases.n == 0 || app_is_foreign(a))
        return;
    grid_str(g, (struct rect){r.x + 1, r.y, 1, 1}, ROLE_DIM, "→");
    rect_cut_left(&r, 3);
    leases_say_release(&v->leases, n, a->now_ms, a->options.utc, &text);
    grid_str(g, r, ROLE_TEXT, text.data);
    buf_free(&text);
}

/* --- for how long its jobs run ---------------------------------------------------------------- */

/* How many jobs it has held for less than each of these times; the last one has no end. */
static const struct {
    const char *name;
    int64_t upto_ms;
} spans[] = {
    {"under 1s",   1000     },
    {"1s to 3s",   3000     },
    {"3s to 10s",  10000    },
    {"10s to 30s", 30000    },
    {"30s to 2m",  120000   },
    {"2m to 10m",  600000   },
    {"10m to 1h",  3600000  },
    {"1h or more", INT64_MAX},
};
enum { SPANS_N = (int)(sizeof spans / sizeof *spans), SPAN_NAME_W = 12, SPAN_BAR_W = 40 };

struct ages {
    int64_t jobs[SPANS_N], most, total;
    int first, last; /* the spans that have jobs, and those between; none: first > last */
};

static struct ages
ages_of(const struct leases *l, int64_t now_ms)
{
    struct ages a = {.first = SPANS_N, .last = -1};

    for (int i = 0; i < l->n; i++) {
        const struct lease_row *row = &l->rows[i].l;
        int k = 0;
        if (row->started_ms == FIELD_NULL || row->jobs <= 0)
            continue;
        while (k < SPANS_N - 1 && now_ms - row->started_ms >= spans[k].upto_ms)
            k++;
        a.jobs[k] += row->jobs;
        a.total += row->jobs;
        a.most = a.jobs[k] > a.most ? a.jobs[k] : a.most;
        a.first = k < a.first ? k : a.first;
        a.last = k > a.last ? k : a.last;
    }
    return a;
}

/* The rows that the panes leave: two lines of each, and the rows of its list. */
static int
rows_left(const struct panes *p, struct rect r)
{
    int n = list_count(p->list[PANE_LEASES].list), other = list_count(p->list[PANE_HOST].list);
    bool beside = r.w >= PANES_TWO_W;

    return r.h - 2 - (beside ? (n > other ? n : other) : n + other + 2);
}

/* How long ago it took the jobs that it holds. Only in the rows that the panes leave. */
static void
draw_ages(const struct node_page *v, struct grid *g, struct rect *r)
{
    struct ages a = ages_of(&v->leases, v->view.app->now_ms);
    int h = a.last - a.first + 2;

    if (a.total == 0 || rows_left(&v->panes, *r) < h + 1)
        return;
    struct rect in = rect_cut_bottom(r, h);
    grid_rule(g, rect_cut_top(&in, 1), ROLE_BOX_TITLE,
              arena_printf(v->view.app->frame, "how long ago it took its %s",
                           fmt_plural(a.total, "job").s));
    for (int k = a.first; k <= a.last; k++) {
        struct rect row = rect_inset(rect_cut_top(&in, 1), 3, 0), bar;
        grid_str(g, rect_cut_left(&row, SPAN_NAME_W), ROLE_TEXT, spans[k].name);
        bar = rect_cut_left(&row, row.w > SPAN_BAR_W + 8 ? SPAN_BAR_W : row.w - 8);
        if (a.jobs[k] > 0)
            chart_bar(g, bar, fmax((double)a.jobs[k] / (double)a.most, 1.0 / bar.w));
        grid_right(g, rect_cut_left(&row, 8), a.jobs[k] ? ROLE_TEXT : ROLE_DIM,
                   a.jobs[k] ? fmt_count(a.jobs[k]).s : "·");
    }
}

static void
node_draw(struct view *view, struct grid *g, struct rect r)
{
    struct node_page *v = (struct node_page *)view;
    struct app *a = view->app;
    const struct node_row *n = store_node(a->store, v->name);
    struct list_look look = {
        .now_ms = a->now_ms, .utc = a->options.utc, .stale = store_is_stale(a->store, TOPIC_NODES)};
    struct rect head = rect_cut_top(&r, 3);
    const char *why = app_unavailable(a, TOPIC_LEASES);

    grid_cursor(g, r.x, r.y);
    if (!n) {
        bool none = store_topic(a->store, TOPIC_NODES)->has_data;
        grid_printf(g, head, ROLE_DIM, " %s %s",
                    none ? "there is no node (any more) with the name" : "asking for", v->name);
        return;
    }
    draw_facts(a, n, g, rect_row(head, 0));
    node_evidence(g, rect_inset(rect_row(head, 1), 3, 0), n, a);
    draw_future(v, n, g, rect_row(head, 2));
    v->panes.list[PANE_LEASES].empty = why ? why
                                       : store_topic(a->store, TOPIC_LEASES)->has_data
                                           ? "no lease"
                                           : "asking ...";
    v->panes.list[PANE_HOST].empty = *n->host ? "no other" : "its host is not known";
    draw_ages(v, g, &r);
    panes_draw(&v->panes, g, r, &look);
}

static void
node_crumb(struct view *view, struct buf *out)
{
    crumb_add(out, ((struct node_page *)view)->name);
}

/* --- commands --------------------------------------------------------------------------------- */

static struct list *
node_list(struct view *view)
{
    return panes_list(&((struct node_page *)view)->panes);
}

static void
node_pane(struct view *view, int step)
{
    panes_step(&((struct node_page *)view)->panes, step);
}

static void
node_open(struct view *view)
{
    struct node_page *v = (struct node_page *)view;
    const void *row = list_selected(panes_list(&v->panes));

    if (v->panes.focus == PANE_LEASES)
        app_push(view->app, "job",
                 lease_first_job(&((const struct lease_line *)row)->l, view->app->frame));
    else
        app_push(view->app, "node", ((const struct node_row *)row)->node);
}

static void
node_target(struct view *view, struct target *t)
{
    struct node_page *v = (struct node_page *)view;
    const struct node_row *n = store_node(view->app->store, v->name);

    if (!n)
        return;
    t->kind = TARGET_NODE;
    t->name = v->name;
    t->names = (const char *const *)&v->name;
    t->nnames = 1;
    t->state = n->state;
}

static const char *
node_subject(struct view *view)
{
    return ((struct node_page *)view)->name;
}

static void
node_sql(struct view *view, struct buf *out)
{
    struct adapter *ad = source_adapter(view->app->source);

    buf_printf(out, "-- nodes\n%s\n\n-- leases\n%s\n", adapter_sql(ad, SEC_NODES),
               adapter_sql(ad, SEC_LEASES));
}

const struct view_ops view_node = {
    .name = "node",
    .title = "Node",
    .tab = 4,
    .scope = IN_NODES,
    .topics = TOPIC_BIT(TOPIC_NODES) | TOPIC_BIT(TOPIC_LEASES),
    .size = sizeof(struct node_page),
    .fixed_order = true,
    .page = true,
    .init = node_init,
    .done = node_done,
    .show = node_show,
    .update = node_update,
    .draw = node_draw,
    .list = node_list,
    .open = node_open,
    .target = node_target,
    .crumb = node_crumb,
    .sql = node_sql,
    .subject = node_subject,
    .pane = node_pane,
};
