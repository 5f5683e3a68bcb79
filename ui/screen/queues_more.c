/*
 * Boxes of plain rows. The cursor can't go into them: their screens are 3 Failed, 4 Nodes, 6
 * Audit.
 */
#include "ui/screen/queues_more.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/facts/node_columns.h"
#include "ui/facts/verdict.h"
#include "ui/term/fmt.h"

enum { EVENTS = 64, NAME_W = 16 };

void
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

void
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

void
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
