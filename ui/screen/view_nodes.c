/*
 * Nodes: who works, since when, and whether there was a sign of life; below, the leases of the
 * selected node and what a release would make of each.
 */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/facts/life.h"
#include "ui/facts/verdict.h"
#include "ui/screen/views.h"
#include "ui/term/words.h"

struct lease_line {
    struct lease_row l;
    char *id;
};

struct node_line { /* a node_row first: the columns are its members */
    struct node_row n;
    const char *state; /* as it is shown: one whose session is gone is not just up */
    enum verdict verdict;
    int trouble; /* worst first */
};

struct nodes {
    struct table_view table;
    struct node_line *nodes;
    struct list *leases;
    struct lease_line *rows;
    int nrows;
    char *asked; /* the node whose leases were asked */
};

/* --- columns --------------------------------------------------------------------------------- */

#define F(f) offsetof(struct node_row, f)
#define L(f) offsetof(struct lease_line, l.f)

static void
draw_slots(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_row *n = row;
    char text[64];

    (void)c;
    if (n->slots > 0)
        snprintf(text, sizeof text, "%lld/%d", (long long)n->running, n->slots);
    else
        snprintf(text, sizeof text, "%s", fmt_int(n->running).s);
    grid_right(g, r, ROLE_TEXT, text);
}

/* Its session in the database, by pg_stat_activity. */
static void
draw_session(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_row *n = row;

    (void)c;
    if (n->session_alive == 1)
        grid_right(g, r, ROLE_TEXT, "alive");
    else if (n->session_alive == 0)
        grid_right(g, r, ROLE_BAD, "gone");
    else
        grid_right(g, r, ROLE_DIM, "?");
}

static enum role
role_of_expired(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return ((const struct node_row *)row)->expired > 0 ? ROLE_BAD : ROLE_TEXT;
}

/* Time left on the lease, or since when it has been over. */
static void
draw_left(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct lease_line *l = row;

    if (l->l.lease_until_ms == FIELD_NULL)
        return;
    int64_t left = l->l.lease_until_ms - c->now_ms;
    char text[64];
    snprintf(text, sizeof text, "%s%s", left < 0 ? "exp " : "", fmt_age(left < 0 ? -left : left).s);
    grid_right(g, r, left < 0 ? ROLE_BAD : ROLE_TEXT, text);
}

static void
draw_lease_tries(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct lease_line *l = row;
    char text[48];

    (void)c;
    if (l->l.tries == INT_MIN)
        return;
    if (l->l.max_tries == INT_MIN) /* the running try is not among the tries so far */
        snprintf(text, sizeof text, "%d", l->l.tries + 1);
    else
        snprintf(text, sizeof text, "%d/%d", l->l.tries + 1, l->l.max_tries);
    grid_right(g, r, ROLE_TEXT, text);
}

static enum role
role_of_effect(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return strstr(((const struct lease_line *)row)->l.effect, "failed") ? ROLE_BAD : ROLE_TEXT;
}

/* The last digits of the jobs' ids, as in the list of jobs. */
static void
draw_ids(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const char *id = ((const struct lease_line *)row)->l.job_ids;
    struct buf out = {0};

    (void)c;
    while (*(id += strspn(id, " ,{}"))) {
        size_t len = strcspn(id, " ,{}"), tail = len > 8 ? 8 : len;
        buf_printf(&out, "%s%.*s", out.len ? " " : "", (int)tail, id + len - tail);
        id += len;
    }
    if (out.len)
        grid_str(g, r, ROLE_TEXT, out.data);
    buf_free(&out);
}

static void
draw_state(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_line *n = row;

    (void)c;
    grid_printf(g, r, verdict_role(n->verdict), "%s %s", state_glyph(n->state), n->state);
}

static struct lead
lead_of(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return verdict_lead(((const struct node_line *)row)->verdict);
}

static const struct column_special state_special = {draw_state, NULL, K_INT, false};
static const struct column_special ids_special = {draw_ids, NULL, K_CUSTOM, false};
static const struct column_special session_special = {draw_session, NULL, K_BOOL, true};
static const struct column_special slots_special = {draw_slots, NULL, K_BIG, true};
static const struct column_special expired_special = {NULL, role_of_expired, K_CUSTOM, false};
static const struct column_special left_special = {draw_left, NULL, K_TIME, true};
static const struct column_special tries_special = {draw_lease_tries, NULL, K_CUSTOM, true};
static const struct column_special effect_special = {NULL, role_of_effect, K_CUSTOM, false};

/* clang-format off */
static const struct column columns[] = {
    {.name = "node", .title = "NODE", .help = "Name of the worker process", .kind = K_TEXT, .offset = F(node),
     .min_w = 10, .max_w = 24},
    {.name = "state", .title = "STATE",
     .help = "up, late, dead, draining, cut off (its session is gone), or unknown: leases without a node; "
             "sorts by trouble",
     .kind = K_CUSTOM, .offset = offsetof(struct node_line, trouble), .min_w = 10, .max_w = 10,
     .special = &state_special},
    {.name = "beat", .title = "BEAT", .help = "Time since the last heartbeat", .kind = K_AGE,
     .offset = F(heartbeat_ms), .min_w = 7, .max_w = 7},
    {.name = "run", .title = "RUN", .help = "Jobs it runs, of its slots", .kind = K_CUSTOM, .offset = F(running),
     .min_w = 7, .max_w = 7, .keep = 3, .special = &slots_special},
    {.name = "leases", .title = "LEASES", .help = "Leases it holds", .kind = K_COUNT, .offset = F(leases), .min_w = 6,
     .max_w = 6},
    {.name = "expired", .title = "EXPIRED", .help = "Leases that are over without an answer", .kind = K_COUNT,
     .offset = F(expired), .min_w = 7, .max_w = 7, .special = &expired_special},
    {.name = "session", .title = "SESSION",
     .help = "Its database session: alive, gone, or ?: not to be seen, or behind a pooler", .kind = K_CUSTOM,
     .offset = F(session_alive), .min_w = 7, .max_w = 7, .keep = 21, .special = &session_special},
    {.name = "up", .title = "UP", .help = "Time since it started", .kind = K_AGE, .offset = F(started_ms), .min_w = 7,
     .max_w = 7, .keep = 6},
    {.name = "version", .title = "VERSION", .help = "Its version", .kind = K_TEXT, .offset = F(version), .min_w = 7,
     .max_w = 9, .keep = 8},
    {.name = "host", .title = "HOST", .help = "Where it runs", .kind = K_TEXT, .offset = F(host), .min_w = 8,
     .max_w = 20, .keep = 20},
    {.name = "pid", .title = "PID", .help = "Its process", .kind = K_INT, .offset = F(pid), .min_w = 7, .max_w = 7,
     .keep = 21},
    {.name = "queues", .title = "QUEUES", .help = "Queues it works for; empty = all", .kind = K_TEXT,
     .offset = F(queues), .min_w = 8, .keep = 22},
    {0},
};
static const struct column lease_columns[] = {
    {.name = "jobs", .title = "JOBS", .help = "Jobs on this lease", .kind = K_COUNT, .offset = L(jobs), .min_w = 4,
     .max_w = 5},
    {.name = "job_ids", .title = "ID", .help = "Their ids", .kind = K_CUSTOM, .offset = L(job_ids), .min_w = 8,
     .max_w = 44, .keep = 5, .special = &ids_special},
    {.name = "queue", .title = "QUEUE", .help = "Their queue", .kind = K_TEXT, .offset = L(queue), .min_w = 12,
     .max_w = 18},
    {.name = "taken", .title = "TAKEN", .help = "Time since it was taken", .kind = K_AGE, .offset = L(started_ms),
     .min_w = 7, .max_w = 7, .keep = 4},
    {.name = "left", .title = "LEFT", .help = "Time left, or since when it is over", .kind = K_CUSTOM,
     .offset = L(lease_until_ms), .min_w = 11, .max_w = 11, .special = &left_special},
    {.name = "tries", .title = "TRY", .help = "This try, of how many", .kind = K_CUSTOM, .offset = L(tries),
     .min_w = 5, .max_w = 5, .keep = 3, .special = &tries_special},
    {.name = "effect", .title = "EFFECT OF RELEASE", .help = "What a release makes of them", .kind = K_TEXT,
     .offset = L(effect), .min_w = 19, .special = &effect_special},
    {0},
};
/* clang-format on */

static const struct list_def list_of_nodes = {
    .columns = columns,
    .row_size = sizeof(struct node_line),
    .id_offset = F(node),
    .sort = "state",
    .lead = lead_of,
};
static const struct list_def list_of_leases = {
    .columns = lease_columns,
    .row_size = sizeof(struct lease_line),
    .id_offset = offsetof(struct lease_line, id),
    .sort = "left",
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
keep(void *ctx, const void *row)
{
    const struct nodes *v = ctx;
    const struct node_row *n = row;

    return words_match(v->table.filter,
                       (const char *const[]){n->node, n->state, n->host, n->queues, NULL});
}

static void
nodes_init(struct view *view, const char *arg)
{
    struct nodes *v = (struct nodes *)view;

    (void)arg;
    v->asked = xstrdup("");
    table_init(view, &list_of_nodes, keep);
    v->leases = list_new(&list_of_leases);
}

static void
drop_rows(struct nodes *v)
{
    for (int i = 0; i < v->nrows; i++)
        free(v->rows[i].id);
    v->nrows = 0;
}

static void
nodes_done(struct view *view)
{
    struct nodes *v = (struct nodes *)view;

    table_done(view);
    list_free(v->leases);
    drop_rows(v);
    free(v->rows);
    free(v->nodes);
    free(v->asked);
}

static struct node_line
line_of(const struct node_row *n, bool foreign)
{
    enum verdict v = verdict_of_node(n, foreign);

    return (struct node_line){*n, node_is_cut_off(n) ? "cut off" : n->state, v, VERDICT_BAD - v};
}

/* The leases follow the selected node. */
static void
nodes_drawn(struct view *view)
{
    struct nodes *v = (struct nodes *)view;
    const char *node = list_selected_id(v->table.list);

    if (!strcmp(node, v->asked))
        return;
    free(v->asked);
    v->asked = xstrdup(node);
    drop_rows(v);
    list_set_rows(v->leases, NULL, 0);
    store_want(v->table.view.app->store, TOPIC_LEASES, *node);
    if (*node)
        store_ask_leases(v->table.view.app->store, node, NULL);
}

static void
nodes_show(struct view *view)
{
    struct nodes *v = (struct nodes *)view;

    free(v->asked);
    v->asked = xstrdup("");
    store_want(view->app->store, TOPIC_LEASES, false);
}

static void
nodes_update(struct view *view)
{
    struct nodes *v = (struct nodes *)view;
    struct store *s = view->app->store;
    int n, nl;
    const struct node_row *rows = store_nodes(s, &n);

    list_hide_empty(v->table.list, app_is_foreign(view->app));
    list_hide_empty(v->leases, app_is_foreign(view->app));
    v->nodes = xreallocarray(v->nodes, (size_t)n + 1, sizeof *v->nodes);
    for (int i = 0; i < n; i++)
        v->nodes[i] = line_of(&rows[i], app_is_foreign(view->app));
    list_set_rows(v->table.list, v->nodes, n);
    if (!view->touched)
        list_home(v->table.list);
    const struct lease_row *l = store_leases(s, &nl);
    drop_rows(v);
    v->rows = xreallocarray(v->rows, (size_t)nl + 1, sizeof *v->rows);
    for (int i = 0; i < nl; i++) {
        if (strcmp(l[i].node, list_selected_id(v->table.list)) != 0)
            continue;
        v->rows[v->nrows].l = l[i];
        v->rows[v->nrows++].id = xasprintf("%lld", (long long)l[i].lease);
    }
    list_set_rows(v->leases, v->rows, v->nrows);
}

/* --- frame ----------------------------------------------------------------------------------- */

static int64_t
plus(int64_t sum, int64_t n)
{
    return n == FIELD_NULL ? sum : sum == FIELD_NULL ? n : sum + n;
}

static void
draw_summary(struct nodes *v, struct grid *g, struct rect r)
{
    struct pen p = pen_start(g, r);
    int64_t leases = FIELD_NULL, expired = FIELD_NULL, running = FIELD_NULL;

    for (int i = 0; i < list_count(v->table.list); i++) {
        const struct node_row *n = list_row(v->table.list, i);
        leases = plus(leases, n->leases);
        expired = plus(expired, n->expired);
        running = plus(running, n->running);
    }
    pen_put(&p, ROLE_DIM, " nodes ");
    pen_put(&p, ROLE_STRONG, fmt_count(list_count(v->table.list)).s);
    pen_put(&p, ROLE_DIM, " running ");
    pen_put(&p, ROLE_STRONG, fmt_count(running).s);
    pen_put(&p, ROLE_DIM, " leases ");
    pen_put(&p, ROLE_STRONG, fmt_count(leases).s);
    pen_put(&p, ROLE_DIM, " expired ");
    pen_put(&p, expired > 0 ? ROLE_BAD : ROLE_STRONG, fmt_count(expired).s);
    if (*v->table.filter) {
        pen_put(&p, ROLE_DIM, " filter ");
        pen_put(&p, ROLE_STRONG, v->table.filter);
    }
}

static void
say_session(struct pen *p, const struct node_row *n, int64_t now_ms)
{
    if (n->backend_pid == INT_MIN) {
        pen_put(p, ROLE_DIM, " · session unknown");
        return;
    }
    if (n->session_alive == 0)
        pen_printf(p, ROLE_BAD, " · its session, pid %d, is gone", n->backend_pid);
    else if (n->session_alive < 0)
        pen_printf(p, ROLE_DIM, " · session pid %d not for us to see", n->backend_pid);
    else
        pen_printf(p, ROLE_TEXT, " · session pid %d %s", n->backend_pid,
                   *n->session_state ? n->session_state : "alive");
    if (n->session_alive == 1 && n->session_ms != FIELD_NULL)
        pen_printf(p, ROLE_TEXT, " for %s", fmt_age(now_ms - n->session_ms).s);
}

/* What speaks for its life: heartbeat, leases, its session in the database. */
static void
draw_evidence(struct grid *g, struct rect r, const struct node_row *n, const struct app *a)
{
    struct pen p = pen_start(g, r);
    int64_t now_ms = a->now_ms;

    if (n->heartbeat_ms == FIELD_NULL && app_is_foreign(a))
        pen_put(&p, ROLE_DIM, "no heartbeat is kept: only its jobs tell of it");
    else if (n->heartbeat_ms == FIELD_NULL)
        pen_put(&p, ROLE_WARN, "never a heartbeat");
    else
        pen_printf(&p, verdict_role(verdict_of_node(n, app_is_foreign(a))), "heartbeat %s ago",
                   fmt_age(now_ms - n->heartbeat_ms).s);
    if (n->leases > 0 && n->lease_until_ms != FIELD_NULL) {
        int64_t left = n->lease_until_ms - now_ms;
        pen_printf(&p, left < 0 ? ROLE_BAD : ROLE_TEXT,
                   left < 0 ? " · all leases over, the last for %s" : " · newest lease has %s left",
                   fmt_age(left < 0 ? -left : left).s);
    }
    if (p.r.w >= (n->backend_pid == INT_MIN ? 18 : 30) &&
        (n->backend_pid != INT_MIN || !app_is_foreign(a))) /* never cut short */
        say_session(&p, n, now_ms);
}

static void
draw_leases(struct nodes *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    const struct node_row *n = list_selected(v->table.list);
    char title[200];
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .unfocused = true,
                             .stale = store_is_stale(a->store, TOPIC_LEASES),
                             .empty = "no lease"};

    if (!n || r.h < 4)
        return;
    if (n->leases == FIELD_NULL)
        snprintf(title, sizeof title, "%.120s", n->node);
    else
        snprintf(title, sizeof title, "%.120s leases (%s)", n->node, fmt_count(n->leases).s);
    struct rect in = rect_inset(grid_box(g, r, ROLE_BORDER, title), 1, 0);
    draw_evidence(g, rect_cut_top(&in, 1), n, a);
    if (strcmp(n->node, v->asked) != 0) /* the list still holds another node's */
        return;
    if (app_unavailable(a, TOPIC_LEASES))
        look.empty = app_unavailable(a, TOPIC_LEASES);
    else if (!store_topic(a->store, TOPIC_LEASES)->has_data)
        look.empty = "asking ...";
    list_draw(v->leases, g, in, &look);
}

static void
nodes_draw(struct view *view, struct grid *g, struct rect r)
{
    struct nodes *v = (struct nodes *)view;
    struct app *a = view->app;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_NODES),
                             .empty = "no node"};

    if (app_unavailable(a, TOPIC_NODES))
        look.empty = app_unavailable(a, TOPIC_NODES);
    else if (!store_topic(a->store, TOPIC_NODES)->has_data)
        look.empty = "asking ...";
    draw_summary(v, g, rect_cut_top(&r, 1));
    if (r.h >= 12)
        draw_leases(v, g, rect_cut_bottom(&r, r.h / 2));
    list_draw(v->table.list, g, r, &look);
}

static bool
say_no_worker(struct app *a, struct buf *out)
{
    struct trouble t[TROUBLES_MAX];

    if (life_of_store(a->store, a->now_ms, a->frame, t) == 0)
        return false;
    buf_printf(out, "%s: %s", t[0].where, t[0].what);
    return true;
}

static bool
nodes_remark(struct view *view, struct buf *out)
{
    struct nodes *v = (struct nodes *)view;
    const struct node_row *n = list_selected(v->table.list);

    if (!n || n->leases <= 0 || (strcmp(n->state, "dead") != 0 && strcmp(n->state, "unknown") != 0))
        return say_no_worker(view->app, out);
    if (app_is_foreign(view->app) && n->expired <= 0)
        return say_no_worker(view->app, out);
    buf_printf(out, "%s is %s and holds %s, %s expired: L releases them", n->node, n->state,
               fmt_plural(n->leases, "lease").s, fmt_count(n->expired).s);
    return true;
}

static void
nodes_crumb(struct view *view, struct buf *out)
{
    struct nodes *v = (struct nodes *)view;

    buf_str(out, fmt_plural(list_count(v->table.list), "node").s);
}

/* --- commands -------------------------------------------------------------------------------- */

static void
nodes_open(struct view *view)
{
    char *text = filter_with("state:running", "node", list_selected_id(table_list(view)));

    app_push_jobs(view->app, text);
    free(text);
}

static void
nodes_target(struct view *view, struct target *t)
{
    const struct node_row *n = list_selected(table_list(view));

    if (!n)
        return;
    t->kind = TARGET_NODE;
    t->name = n->node;
    t->state = n->state;
}

static void
nodes_sql(struct view *view, struct buf *out)
{
    struct adapter *ad = source_adapter(view->app->source);

    buf_printf(out, "-- nodes\n%s\n\n-- leases\n%s\n", adapter_sql(ad, SEC_NODES),
               adapter_sql(ad, SEC_LEASES));
}

const struct view_ops view_nodes = {
    .name = "nodes",
    .title = "Nodes",
    .screen = 4,
    .tab = 4,
    .scope = IN_NODES,
    .topics = TOPIC_BIT(TOPIC_NODES),
    .size = sizeof(struct nodes),
    .init = nodes_init,
    .done = nodes_done,
    .show = nodes_show,
    .update = nodes_update,
    .draw = nodes_draw,
    .drawn = nodes_drawn,
    .list = table_list,
    .open = nodes_open,
    .back = table_back,
    .target = nodes_target,
    .crumb = nodes_crumb,
    .remark = nodes_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .sql = nodes_sql,
    .copy = table_copy,
};
