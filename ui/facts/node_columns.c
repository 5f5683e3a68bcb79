/*
 * How many of its slots a node uses, in figures and as a bar; and its state, by which lists of
 * nodes are sorted worst first.
 */
#include "ui/facts/node_columns.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ui/term/fmt.h"

static void
draw_slots(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_row *n = row;
    char text[64];

    (void)c;
    if (node_state(n) == NODE_DEAD && n->running > 0) {
        grid_printf(g, r, ROLE_BAD, "%*lld lost", r.w - 5, (long long)n->running);
        return;
    }
    if (n->slots > 0)
        snprintf(text, sizeof text, "%lld/%d", (long long)n->running, n->slots);
    else
        snprintf(text, sizeof text, "%s", fmt_int(n->running).s);
    grid_right(g, r, ROLE_TEXT, text);
}

void
node_draw_gauge(struct grid *g, struct rect r, const struct node_row *n, enum role role)
{
    int64_t slots = n->slots == INT_MIN ? 0 : n->slots;
    int64_t full = slots > 0 && n->running > 0 ? n->running * r.w / slots : 0;

    if (slots <= 0)
        return;
    for (int i = 0; i < r.w; i++)
        grid_str(g, (struct rect){r.x + i, r.y, 1, 1}, i < full ? role : ROLE_BAR_REST,
                 i >= full                    ? "░"
                 : node_state(n) == NODE_DEAD ? "×"
                                              : "█");
}

static void
draw_gauge(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    (void)c;
    node_draw_gauge(g, r, row, node_state(row) == NODE_DEAD ? ROLE_BAD : ROLE_CHART);
}

const struct column_special node_slots_special = {draw_slots, NULL, K_BIG, true};
const struct column_special node_gauge_special = {draw_gauge, NULL, K_BIG, false};

/* --- a line of a list of nodes -------------------------------------------------------------------- */

struct node_line
node_line_of(const struct node_row *n, bool foreign)
{
    enum verdict v = verdict_of_node(n, foreign);

    return (struct node_line){*n, node_is_cut_off(n) ? "cut off" : n->state, v, VERDICT_BAD - v};
}

static void
draw_state(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_line *n = row;

    (void)c;
    grid_str(g, r, verdict_role(n->verdict), n->state);
}

struct lead
node_lead(const void *line, const struct cell_ctx *c)
{
    (void)c;
    return verdict_lead(((const struct node_line *)line)->verdict);
}

const struct column_special node_state_special = {draw_state, NULL, K_INT, false};
