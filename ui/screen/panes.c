/*
 * How panes share the rows of a page. Each pane gets a row for its rule, one for its titles and
 * one for each of its rows, if there is enough room. Rows that are left over go in turn to the
 * panes that want more.
 */
#include "ui/screen/panes.h"

#include <stdio.h>
#include <stdlib.h>

enum { TWO_W = 110, HEAD = 2, LEAST = 3 };

void
panes_add(struct panes *p, const char *title, const struct list_def *def, void *ctx)
{
    struct list *l = list_new(def);

    list_set_ctx(l, ctx);
    p->list[p->n++] = (struct pane){title, l, "none"};
}

void
panes_done(struct panes *p)
{
    for (int i = 0; i < p->n; i++)
        list_free(p->list[i].list);
    p->n = 0;
}

struct list *
panes_list(const struct panes *p)
{
    return p->list[p->focus].list;
}

void
panes_step(struct panes *p, int step)
{
    p->focus = (p->focus + step + p->n) % p->n;
}

static void
draw_pane(const struct panes *p, int i, struct grid *g, struct rect r,
          const struct list_look *usual)
{
    struct rect rule = rect_cut_top(&r, 1);
    struct list_look look = *usual;
    bool on = i == p->focus;

    char title[100];
    snprintf(title, sizeof title, "%s%.90s", on ? "› " : "", p->list[i].title);
    grid_rule(g, rule, on ? ROLE_STRONG : ROLE_BOX_TITLE, title);
    look.unfocused = !on;
    look.empty = p->list[i].empty;
    list_draw(p->list[i].list, g, r, &look);
}

/* Which panes of one column have room: the first ones, and the one with the focus. */
static int
choose(struct panes *p, int first, int step, int h)
{
    int n = 0, last = -1;

    for (int i = first; i < p->n; i += step) {
        p->shown[i] = n < h / LEAST;
        last = p->shown[i] ? i : last;
        n += p->shown[i];
    }
    if (last >= 0 && p->focus % step == first && !p->shown[p->focus]) {
        p->shown[last] = false;
        p->shown[p->focus] = true;
    }
    return n;
}

static void
draw_column(struct panes *p, int first, int step, struct grid *g, struct rect r,
            const struct list_look *look)
{
    int h[PANES_MOST] = {0}, n = choose(p, first, step, r.h), left = r.h - n * LEAST;
    bool more = true;

    for (int i = first; i < p->n; i += step)
        h[i] = p->shown[i] ? LEAST : 0;
    while (left > 0 && more) {
        more = false;
        for (int i = first; i < p->n && left > 0; i += step) {
            if (!p->shown[i] || h[i] >= HEAD + list_count(p->list[i].list))
                continue;
            h[i]++;
            left--;
            more = true;
        }
    }
    for (int i = first; i < p->n; i += step)
        if (h[i] > 0)
            draw_pane(p, i, g, rect_cut_top(&r, h[i]), look);
}

void
panes_draw(struct panes *p, struct grid *g, struct rect r, const struct list_look *look)
{
    if (r.w < TWO_W) {
        draw_column(p, 0, 1, g, r, look);
        return;
    }
    struct rect left = rect_cut_left(&r, r.w / 2);
    rect_cut_right(&left, 1);
    draw_column(p, 0, 2, g, left, look);
    draw_column(p, 1, 2, g, r, look);
}
