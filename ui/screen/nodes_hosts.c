/*
 * Each frame groups the nodes by host, but only if there is room for the box, that is, if there are
 * few nodes.
 */
#include "ui/screen/nodes_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "ui/facts/verdict.h"
#include "ui/term/fmt.h"

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

int
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

void
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
