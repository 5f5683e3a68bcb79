/*
 * Nodes: which nodes work, since when, and whether there was a sign of life; below, the leases of
 * the selected node and what a release would do with each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/facts/lease_columns.h"
#include "ui/facts/life.h"
#include "ui/facts/node_columns.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/verdict.h"
#include "ui/screen/node_evidence.h"
#include "ui/screen/views.h"
#include "ui/term/fmt.h"

/* --- hosts --- */

/* The hosts of the nodes, one in a row, the worst first. The box shows whether a node's trouble
 * comes from its host or from its version. Each frame groups the nodes by host, but only if
 * there is room for the box, that is, if there are few nodes. */

enum { HOSTS_LEAST_W = 100, HOSTS_LEAST_H = 4 };

enum { NODES_MOST = 200, HOST_W = 20, NAMES_W = 60 };

struct host {
    const struct node_row **nodes; /* the nodes of this host */
    int n;
    enum verdict worst;
    int64_t slots, used; /* of its living nodes */
};

static int
by_host(const void *a, const void *b)
{
    const struct node_row *x = *(const struct node_row *const *)a,
                          *y = *(const struct node_row *const *)b;
    int order = strcmp(x->host, y->host);

    return order ? order : strcmp(x->node, y->node);
}

static int
by_verdict(const void *a, const void *b)
{
    const struct host *x = a, *y = b;

    if (x->worst != y->worst)
        return x->worst > y->worst ? -1 : 1;
    return strcmp(x->nodes[0]->host, y->nodes[0]->host);
}

static void
add_node(struct host *h, const struct node_row *n, bool foreign)
{
    enum verdict v = verdict_of_node(n, foreign);

    h->n++;
    h->worst = v > h->worst ? v : h->worst;
    if (!node_is_gone(n) && n->slots > 0) {
        h->slots += n->slots;
        h->used += node_busy(n);
    }
}

/* The hosts, the worst first, in the frame's memory. Nodes that did not name their host are left
 * out. */
static struct host *
hosts_of(struct app *a, const struct node_row *rows, int n, int *nhosts)
{
    const struct node_row **order = arena_alloc(a->frame, ((size_t)n + 1) * sizeof *order);
    struct host *hosts = arena_alloc(a->frame, ((size_t)n + 1) * sizeof *hosts);
    int known = 0, h = 0;

    for (int i = 0; i < n; i++)
        if (*rows[i].host)
            order[known++] = &rows[i];
    if (known > 0)
        qsort(order, (size_t)known, sizeof *order, by_host);
    for (int i = 0; i < known; i++) {
        if (i == 0 || strcmp(order[i]->host, order[i - 1]->host) != 0)
            hosts[h++] = (struct host){.nodes = &order[i]};
        add_node(&hosts[h - 1], order[i], app_is_foreign(a));
    }
    if (h > 0)
        qsort(hosts, (size_t)h, sizeof *hosts, by_verdict);
    *nhosts = h;
    return hosts;
}

/* The rows that the box needs for this many nodes at most. draw shows as many hosts as have room.
 */
static int
nodes_hosts_height(const struct node_row *rows, int n)
{
    int hosts = 0;

    if (n > NODES_MOST)
        return 0;
    for (int i = 0; i < n; i++) {
        bool first = *rows[i].host;
        for (int k = 0; k < i && first; k++)
            first = strcmp(rows[k].host, rows[i].host) != 0;
        hosts += first;
    }
    return hosts ? hosts + 2 : 0;
}

/* --- a row -------------------------------------------------------------------------------------- */

static void
draw_names(struct app *a, struct rect r, const struct host *h)
{
    struct pen p = pen_start(a->grid, r);

    for (int i = 0; i < h->n; i++) {
        struct sign sign = verdict_sign(verdict_of_node(h->nodes[i], app_is_foreign(a)));
        if (p.r.w < (int)strlen(h->nodes[i]->node) + 10 && i + 1 < h->n) {
            pen_printf(&p, ROLE_DIM, "+%d", h->n - i);
            return;
        }
        if (sign.glyph)
            pen_printf(&p, sign.role, "%s ", sign.glyph);
        pen_put(&p, ROLE_TEXT, h->nodes[i]->node);
        pen_gap(&p, 2);
    }
}

/* Draws each version on the host once, in the order of the nodes. */
static void
draw_versions(struct app *a, struct rect r, const struct host *h)
{
    struct pen p = pen_start(a->grid, r);
    const char *before = NULL;

    for (int i = 0; i < h->n; i++) {
        bool first = *h->nodes[i]->version != 0;
        for (int k = 0; k < i && first; k++)
            first = strcmp(h->nodes[k]->version, h->nodes[i]->version) != 0;
        if (!first)
            continue;
        pen_printf(&p, before ? ROLE_WARN : ROLE_TEXT, "%s%s", before ? " and " : "",
                   h->nodes[i]->version);
        before = h->nodes[i]->version;
    }
}

static void
draw_host(struct app *a, struct rect r, const struct host *h)
{
    struct sign sign = verdict_sign(h->worst);
    struct rect names, slots;

    if (sign.glyph)
        grid_str(a->grid, r, sign.role, sign.glyph);
    rect_cut_left(&r, 2);
    grid_str(a->grid, rect_cut_left(&r, HOST_W), ROLE_TEXT, h->nodes[0]->host);
    rect_cut_left(&r, 1);
    names = rect_cut_left(&r, r.w > 2 * NAMES_W    ? 2 * NAMES_W
                              : r.w > NAMES_W + 30 ? NAMES_W
                                                   : r.w / 2);
    draw_names(a, names, h);
    slots = rect_cut_left(&r, 18);
    if (h->slots > 0)
        grid_printf(a->grid, slots, ROLE_TEXT, "%s of %s slots", fmt_count(h->used).s,
                    fmt_count(h->slots).s);
    rect_cut_left(&r, 1);
    draw_versions(a, r, h);
}

static void
nodes_hosts_draw(struct app *a, struct rect r, const struct node_row *rows, int n)
{
    int nhosts;
    struct host *hosts = hosts_of(a, rows, n, &nhosts);
    struct rect in = grid_panel(a->grid, r, "hosts and their versions", false);

    for (int i = 0; i < nhosts && i < in.h; i++) {
        if (i == in.h - 1 && i + 1 < nhosts)
            grid_printf(a->grid, rect_row(in, i), ROLE_DIM, "  %d more", nhosts - i);
        else
            draw_host(a, rect_row(in, i), &hosts[i]);
    }
}

/* --- the screen --- */

enum { OTHER_FROM = 13 };
/* "slots 48 of 80 at work, 16 lost", "slots 48/80, 16 lost", or nothing: no figure is cut short */
enum { SLOTS_WIDE_W = 36, SLOTS_LEAST_W = 14, LOST_LEAST_W = 9, LEASES_LEAST_W = 22 };

struct nodes {
    struct table_view table;
    struct node_line *nodes;
    struct list *leases;
    struct leases held; /* the answer to `asked` */
    char *asked;        /* the node whose leases were asked for */
    char *queue;        /* shows only nodes that take jobs of this queue; NULL = all */
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
row_matches(void *ctx, const void *row)
{
    const struct nodes *v = ctx;
    const struct node_row *n = row;

    if (v->queue && !node_takes(n->queues, v->queue))
        return false;
    return words_match(v->table.filter,
                       (const char *const[]){n->node, n->state, n->host, n->queues, NULL});
}

static void
nodes_init(struct view *view, const char *arg)
{
    struct nodes *v = (struct nodes *)view;

    v->queue = arg && *arg ? xstrdup(arg) : NULL;
    v->asked = xstrdup("");
    table_init(view, &list_of_nodes, row_matches);
    v->leases = list_new(&list_of_leases);
    list_column_show(v->leases, LEASE_NODE_COLUMN, false);
    v->table.other = v->leases;
    v->table.other_from = OTHER_FROM;
}

static void
nodes_done(struct view *view)
{
    struct nodes *v = (struct nodes *)view;

    table_done(view);
    list_free(v->leases);
    leases_done(&v->held);
    free(v->nodes);
    free(v->asked);
    free(v->queue);
}

/* Asks for the leases of the selected node. */
static void
nodes_drawn(struct view *view)
{
    struct nodes *v = (struct nodes *)view;
    const char *node = list_selected_id(v->table.list);

    if (!strcmp(node, v->asked))
        return;
    free(v->asked);
    v->asked = xstrdup(node);
    leases_done(&v->held);
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
        v->nodes[i] = node_line_of(&rows[i], app_is_foreign(view->app));
    list_set_rows(v->table.list, v->nodes, n);
    if (!view->touched)
        list_home(v->table.list);
    const struct lease_row *l = store_leases(s, &nl);
    leases_take(&v->held, l, nl, list_selected_id(v->table.list), NULL);
    list_set_rows(v->leases, v->held.rows, v->held.n);
}

/* --- frame ----------------------------------------------------------------------------------- */

struct sum { /* summary of the nodes that are shown */
    int dead, late, cut_off, draining, asleep, up;
    int64_t slots, at_work, beyond, lost, leases, over;
};

static void
add_state(struct sum *s, enum node_state state)
{
    s->late += state == NODE_LATE;
    s->draining += state == NODE_DRAINING;
    s->asleep += state == NODE_ASLEEP;
    s->up += state == NODE_UP;
}

static struct sum
sum_of(const struct nodes *v)
{
    struct sum s = {.leases = FIELD_NULL, .over = FIELD_NULL};

    for (int i = 0; i < list_count(v->table.list); i++) {
        const struct node_row *n = list_row(v->table.list, i);
        bool dead = node_is_gone(n);
        if (dead)
            s.dead++;
        else if (node_is_cut_off(n))
            s.cut_off++;
        else
            add_state(&s, node_state(n));
        s.slots += !dead && n->slots > 0 ? n->slots : 0;
        s.at_work += dead ? 0 : node_busy(n);
        s.beyond += dead ? 0 : node_beyond(n);
        s.lost += dead ? (n->running > 0 ? n->running : 0) : node_lost(n);
        s.leases = add_if_known(s.leases, n->leases);
        s.over = add_if_known(s.over, n->expired);
    }
    return s;
}

static void
say_states(struct pen *p, const struct sum *s, bool foreign)
{
    if (s->dead > 0)
        pen_printf(p, foreign ? ROLE_DIM : ROLE_BAD, foreign ? " %d unknown " : " × %d dead ",
                   s->dead);
    if (s->late > 0)
        pen_printf(p, ROLE_WARN, " ▲ %d late ", s->late);
    if (s->cut_off > 0)
        pen_printf(p, ROLE_WARN, " ▲ %d cut off ", s->cut_off);
    if (s->draining > 0)
        pen_printf(p, ROLE_DIM, " ‖ %d drain%s ", s->draining, s->draining == 1 ? "s" : "");
    if (s->asleep > 0)
        pen_printf(p, ROLE_DIM, " %d asleep ", s->asleep);
    if (s->up > 0)
        pen_printf(p, ROLE_DIM, " %d up ", s->up);
}

static void
draw_summary(struct nodes *v, struct grid *g, struct rect r)
{
    struct pen p = pen_start(g, r);
    struct sum s = sum_of(v);
    bool foreign = app_is_foreign(v->table.view.app);

    say_states(&p, &s, foreign);
    if (s.slots > 0 && p.r.w >= SLOTS_LEAST_W) {
        bool wide = p.r.w >= SLOTS_WIDE_W;
        pen_put(&p, ROLE_DIM, "  slots ");
        pen_put(&p, ROLE_STRONG, fmt_count(s.at_work).s);
        pen_printf(&p, ROLE_DIM, wide ? " of %s at work" : "/%s", fmt_count(s.slots).s);
    }
    if (s.slots > 0 && s.beyond > 0 && p.r.w >= LOST_LEAST_W)
        pen_printf(&p, ROLE_DIM, ", %s beyond", fmt_count(s.beyond).s);
    if (s.lost > 0 && !foreign && p.r.w >= LOST_LEAST_W)
        pen_printf(&p, ROLE_BAD, "%s %s lost", s.slots > 0 ? "," : "", fmt_count(s.lost).s);
    if (s.leases != FIELD_NULL && p.r.w >= LEASES_LEAST_W) {
        pen_put(&p, ROLE_DIM, "  leases ");
        pen_put(&p, ROLE_STRONG, fmt_count(s.leases).s);
        if (s.over > 0)
            pen_printf(&p, ROLE_BAD, ", %s over", fmt_count(s.over).s);
    }
    if (*v->table.filter) {
        pen_put(&p, ROLE_DIM, "  filter ");
        pen_put(&p, ROLE_STRONG, v->table.filter);
    }
}

static void
draw_leases(struct nodes *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    const struct node_row *n = list_selected(v->table.list);
    const char *on = v->table.on_other ? "› " : "";
    const char *title;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .unfocused = !v->table.on_other,
                             .stale = store_is_stale(a->store, TOPIC_LEASES),
                             .empty = "no lease"};

    if (!n || r.h < 4)
        return;
    if (n->leases == FIELD_NULL)
        title = arena_printf(a->frame, "%s%s", on, n->node);
    else
        title = arena_printf(a->frame, "%s%s leases (%s)", on, n->node, fmt_count(n->leases).s);
    struct rect in = grid_panel(g, r, title, false);
    node_evidence(g, rect_cut_top(&in, 1), n, a);
    if (strcmp(n->node, v->asked) != 0) /* the store still has another node's leases */
        return;
    if (app_unavailable(a, TOPIC_LEASES))
        look.empty = app_unavailable(a, TOPIC_LEASES);
    else if (!store_topic(a->store, TOPIC_LEASES)->has_data)
        look.empty = "asking ...";
    list_draw(v->leases, g, in, &look);
}

/* Cuts the room for the hosts: the rows that the table does not need. */
static struct rect
cut_hosts(const struct app *a, struct rect *r, int shown)
{
    int n, left = r->h - shown - 2;
    const struct node_row *rows = store_nodes(a->store, &n);

    if (r->w < HOSTS_LEAST_W || left < HOSTS_LEAST_H)
        return rect_cut_bottom(r, 0);
    int want = nodes_hosts_height(rows, n);
    return rect_cut_bottom(r, want < left ? want : left);
}

static void
draw_hosts(struct app *a, struct rect r)
{
    int n;
    const struct node_row *rows = store_nodes(a->store, &n);

    if (r.h > 0)
        nodes_hosts_draw(a, r, rows, n);
}

static void
nodes_draw(struct view *view, struct grid *g, struct rect r)
{
    struct nodes *v = (struct nodes *)view;
    struct app *a = view->app;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_NODES),
                             .unfocused = v->table.on_other,
                             .counts = true,
                             .order = "trouble first",
                             .old_ms = store_age_ms(a->store, TOPIC_NODES),
                             .empty = "no node"};

    if (app_unavailable(a, TOPIC_NODES))
        look.empty = app_unavailable(a, TOPIC_NODES);
    else if (!store_topic(a->store, TOPIC_NODES)->has_data)
        look.empty = "asking ...";
    draw_summary(v, g, rect_cut_top(&r, 1));
    if (table_has_other(view))
        draw_leases(v, g, rect_cut_bottom(&r, r.h / 2));
    draw_hosts(a, cut_hosts(a, &r, list_count(v->table.list)));
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

    if (table_say_marked(view, out))
        return false;
    if (!n || node_held(n) <= 0 || !node_is_gone(n))
        return say_no_worker(view->app, out);
    if (app_is_foreign(view->app) && n->expired <= 0)
        return say_no_worker(view->app, out);
    buf_printf(out, "%s is %s: ", n->node, node_state(n) == NODE_DEAD ? "dead" : "not known");
    leases_say_release(&v->held, n, view->app->now_ms, view->app->options.utc, out);
    return true;
}

static void
nodes_crumb(struct view *view, struct buf *out)
{
    table_crumb(view, "nodes", out);
}

/* --- commands -------------------------------------------------------------------------------- */

static void
nodes_open(struct view *view)
{
    struct list *l = table_focus(view);
    const struct lease_line *lease = list_selected(l);

    if (l == table_list(view))
        app_push(view->app, "node", list_selected_id(l));
    else
        app_push(view->app, "job", lease_first_job(&lease->l, view->app->frame));
}

static void
nodes_target(struct view *view, struct target *t)
{
    if (!table_target(view, "node", t))
        return;
    const struct node_row *n = store_node(view->app->store, t->names[0]);
    t->kind = TARGET_NODE;
    t->state = t->nnames == 1 && n ? n->state : "";
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
    .opens = "node",
    .screen = 4,
    .tab = 4,
    .stands_in = &view_running_jobs,
    .needs = TOPIC_NODES,
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
    .focus = table_focus,
    .pane = table_pane,
    .open = nodes_open,
    .back = table_back,
    .mark_all = table_mark_all,
    .unmark = table_unmark,
    .target = nodes_target,
    .crumb = nodes_crumb,
    .remark = nodes_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .sql = nodes_sql,
    .copy = table_copy,
};
