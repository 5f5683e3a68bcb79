/* Arithmetic of rectangles: the layout of the screen is made only of these cuts. */
#include "ui/term/grid.h"

static int
at_least(int a, int b)
{
    return a > b ? a : b;
}

static int
at_most(int a, int b)
{
    return a < b ? a : b;
}

/* How much can be cut off `have` if n is asked for. */
static int
share_of(int n, int have)
{
    return at_most(at_least(n, 0), at_least(have, 0));
}

struct rect
rect_clip(struct rect r, struct rect to)
{
    int x = at_least(r.x, to.x), y = at_least(r.y, to.y);
    int right = at_most(r.x + at_least(r.w, 0), to.x + at_least(to.w, 0));
    int bottom = at_most(r.y + at_least(r.h, 0), to.y + at_least(to.h, 0));

    return (struct rect){x, y, at_least(right - x, 0), at_least(bottom - y, 0)};
}

struct rect
rect_row(struct rect r, int i)
{
    return (struct rect){r.x, r.y + i, r.w, i >= 0 && i < r.h ? 1 : 0};
}

struct rect
rect_cut_top(struct rect *r, int n)
{
    n = share_of(n, r->h);
    struct rect cut = {r->x, r->y, r->w, n};
    r->y += n;
    r->h -= n;
    return cut;
}

struct rect
rect_cut_bottom(struct rect *r, int n)
{
    n = share_of(n, r->h);
    r->h -= n;
    return (struct rect){r->x, r->y + at_least(r->h, 0), r->w, n};
}

struct rect
rect_cut_left(struct rect *r, int n)
{
    n = share_of(n, r->w);
    struct rect cut = {r->x, r->y, n, r->h};
    r->x += n;
    r->w -= n;
    return cut;
}

struct rect
rect_cut_right(struct rect *r, int n)
{
    n = share_of(n, r->w);
    r->w -= n;
    return (struct rect){r->x + at_least(r->w, 0), r->y, n, r->h};
}

struct rect
rect_inset(struct rect r, int dx, int dy)
{
    return (struct rect){r.x + dx, r.y + dy, at_least(r.w - 2 * dx, 0), at_least(r.h - 2 * dy, 0)};
}

struct rect
rect_center(struct rect in, int w, int h)
{
    w = share_of(w, in.w);
    h = share_of(h, in.h);
    return (struct rect){in.x + (in.w - w) / 2, in.y + (in.h - h) / 2, w, h};
}
