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

    (void)c;
    if (node_state(n) == NODE_DEAD && n->running > 0) {
        grid_printf(g, r, ROLE_BAD, "%*lld lost", r.w - 5, (long long)n->running);
        return;
    }
    grid_right(g, r, ROLE_TEXT, node_at_work(n, r.w).s);
}

struct fmt
node_at_work(const struct node_row *n, int w)
{
    int64_t more = n->running > 0 ? n->running - node_busy(n) : 0;
    struct fmt f;

    if (n->slots <= 0)
        return fmt_int(n->running);
    int len = snprintf(f.s, sizeof f.s, "%lld/%d", (long long)node_busy(n), n->slots);
    struct fmt plus = fmt_count(more);
    if (more > 0 && len + 1 + (int)strlen(plus.s) <= w)
        snprintf(f.s + len, sizeof f.s - (size_t)len, "+%.20s", plus.s);
    return f;
}

void
node_draw_gauge(struct grid *g, struct rect r, const struct node_row *n, enum role role)
{
    int64_t slots = n->slots == INT_MIN ? 0 : n->slots;
    int64_t jobs = node_state(n) == NODE_DEAD ? n->running : node_busy(n);
    int64_t full = slots > 0 && jobs > 0 ? jobs * r.w / slots : 0;

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

struct sign
node_sign(const void *line, const struct cell_ctx *c)
{
    (void)c;
    return verdict_sign(((const struct node_line *)line)->verdict);
}

const struct column_special node_state_special = {draw_state, NULL, K_INT, false};
