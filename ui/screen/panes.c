/*
 * How panes share the rows of a page. If there is enough room, a pane gets a row for its rule, one
 * for its titles and one for each of its own rows. Rows that are left over go in turn to the panes
 * that want more. An empty pane is only its rule, which says that it is empty.
 */
#include "ui/screen/panes.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEAD = 2, LEAST = 3 };

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

    char title[400];
    text_print(title, sizeof title, "%s%s%s%s", on ? "› " : "", p->list[i].title,
               r.h == 0 ? ": " : "", r.h == 0 ? p->list[i].empty : "");
    grid_rule(g, rule, on ? ROLE_STRONG : ROLE_BOX_TITLE, title);
    look.unfocused = !on;
    look.empty = p->list[i].empty;
    if (r.h > 0)
        list_draw(p->list[i].list, g, r, &look);
    else if (on)
        grid_cursor(g, rule.x, rule.y);
}

static int
least(const struct panes *p, int i)
{
    return list_count(p->list[i].list) > 0 ? LEAST : 1;
}

/* Decides which panes of one column are shown: as many as have room, from the first one on, and
 * always the one with the focus. Returns the rows that are left. */
static int
choose(struct panes *p, int first, int step, int h)
{
    int last = -1, on = p->focus % step == first ? p->focus : -1;

    for (int i = first; i < p->n; i += step) {
        p->shown[i] = least(p, i) <= h;
        last = p->shown[i] ? i : last;
        h -= p->shown[i] ? least(p, i) : 0;
    }
    if (last >= 0 && on >= 0 && !p->shown[on] && h + least(p, last) >= least(p, on)) {
        h += least(p, last) - least(p, on);
        p->shown[last] = false;
        p->shown[on] = true;
    }
    return h;
}

static void
draw_column(struct panes *p, int first, int step, struct grid *g, struct rect r,
            const struct list_look *look)
{
    int h[PANES_MOST] = {0}, left = choose(p, first, step, r.h);
    bool more = true;

    for (int i = first; i < p->n; i += step)
        h[i] = p->shown[i] ? least(p, i) : 0;
    while (left > 0 && more) {
        more = false;
        for (int i = first; i < p->n && left > 0; i += step) {
            int rows = list_count(p->list[i].list);
            if (!p->shown[i] || rows == 0 || h[i] >= HEAD + rows)
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
    if (r.w < PANES_TWO_W) {
        draw_column(p, 0, 1, g, r, look);
        return;
    }
    struct rect left = rect_cut_left(&r, r.w / 2);
    rect_cut_right(&left, 1);
    draw_column(p, 0, 2, g, left, look);
    draw_column(p, 1, 2, g, r, look);
}
