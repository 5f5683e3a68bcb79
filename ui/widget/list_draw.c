/* How a list looks: a row of titles, the rows, another ground for the selected row. */
#include <stdio.h>
#include <string.h>

#include "ui/term/fmt.h"
#include "ui/widget/list_state.h"

enum { SIGN_W = 3 };     /* cells before the first column: cursor or mark, severity, a gap */
enum { COUNTED_H = 12 }; /* so many rows, of more, spare one for their count */

struct frame { /* what all parts of one drawing share */
    struct list *l;
    struct grid *g;
    const struct list_look *look;
    struct cell_ctx cell;
    int widths[LIST_COLUMNS];
};

static void
draw_title(struct grid *g, struct rect r, const struct column *c, const char *arrow)
{
    char s[64];

    snprintf(s, sizeof s, "%.40s%s", c->title, arrow);
    if (*arrow && column_right(c)) /* the arrow may use the gap beside the column's title */
        r.x--;
    if (*arrow)
        r.w++;
    if (column_right(c))
        grid_right(g, r, ROLE_TITLE, s);
    else
        grid_str(g, r, ROLE_TITLE, s);
}

static void
draw_titles(const struct frame *f, struct rect r)
{
    const struct list *l = f->l;

    grid_paint(f->g, r, ROLE_TITLE);
    rect_cut_left(&r, SIGN_W);
    for (int i = 0; i < l->ncolumns; i++) {
        if (f->widths[i] <= 0)
            continue;
        struct rect cell = rect_cut_left(&r, f->widths[i]);
        draw_title(f->g, cell, &l->def->columns[i], i != l->sort ? "" : l->desc ? "↓" : "↑");
        rect_cut_left(&r, 1);
    }
}

static void
draw_sign(const struct frame *f, struct rect r, const void *row, bool marked, bool here)
{
    struct rect cursor = rect_cut_left(&r, 1);

    if (marked)
        grid_str(f->g, cursor, ROLE_MARK, "✓");
    else if (here)
        grid_str(f->g, cursor, ROLE_TEXT, "›");
    if (f->l->def->sign) {
        struct sign sign = f->l->def->sign(row, &f->cell);
        if (sign.glyph)
            grid_str(f->g, r, sign.role, sign.glyph);
    }
}

static void
draw_row(struct frame *f, struct rect line, int i)
{
    const struct list *l = f->l;
    const void *row = list_row(l, i);
    bool marked = l->nmarks > 0 && list_is_marked(l, list_id(l, i));
    bool here = i == l->index && !f->look->unfocused;
    struct rect r = line, first = {0, 0, 0, 0};

    f->cell.approx = l->def->approx && l->def->approx(row);
    draw_sign(f, rect_cut_left(&r, SIGN_W), row, marked, here);
    for (int k = 0; k < l->ncolumns; k++) {
        if (f->widths[k] <= 0)
            continue;
        struct rect cell = rect_cut_left(&r, f->widths[k]);
        column_draw(&l->def->columns[k], f->g, cell, row, &f->cell);
        rect_cut_left(&r, 1);
        if (k == 0)
            first = cell;
    }
    if (f->look->stale || (l->def->stale && l->def->stale(row)))
        grid_paint(f->g, line, ROLE_STALE);
    if (marked)
        grid_paint(f->g, first, ROLE_MARK);
    if (!here)
        return;
    grid_lay(f->g, line, GROUND_ROW);
    grid_lay(f->g, (struct rect){line.x, line.y, 1, 1}, GROUND_NAME);
    grid_lay(f->g, first, GROUND_NAME);
    grid_cursor(f->g, line.x, line.y);
}

/* The column whose title, or the gap after it, is at x. */
static int
column_at(const struct list *l, int x)
{
    int at = l->titles_at.x + SIGN_W;

    for (int i = 0; i < l->ncolumns; i++) {
        if (l->widths[i] > 0 && x >= at && x <= at + l->widths[i])
            return i;
        at += l->widths[i] > 0 ? l->widths[i] + 1 : 0;
    }
    return -1;
}

struct rect
list_column_at(const struct list *l, int i)
{
    struct rect at = l->rows_at;

    at.x += SIGN_W;
    for (int k = 0; k < i; k++)
        at.x += l->widths[k] > 0 ? l->widths[k] + 1 : 0;
    at.w = l->widths[i];
    at.y -= l->titles_at.w > 0;
    at.h += l->titles_at.w > 0;
    return at;
}

enum list_hit
list_click(struct list *l, int x, int y, bool sorts)
{
    struct rect t = l->titles_at, r = l->rows_at;
    int row = l->top + y - r.y, column = column_at(l, x);

    if (t.w > 0 && y == t.y && x >= t.x && x < t.x + t.w) {
        if (sorts && column >= 0 && column == l->sort)
            list_sort_invert(l);
        else if (sorts && column >= 0)
            list_sort_by(l, l->def->columns[column].name,
                         column_desc_first(&l->def->columns[column]));
        return HIT_TITLE;
    }
    if (y < r.y || y >= r.y + r.h || x < r.x || x >= r.x + r.w || row >= l->count)
        return HIT_NOTHING;
    if (row == l->index)
        return HIT_SELECTED;
    list_select(l, list_id(l, row));
    return HIT_ROW;
}

int
list_selected_line(const struct list *l)
{
    int row = l->index - l->top;

    return l->count > 0 && row >= 0 && row < l->rows_at.h ? l->rows_at.y + row : -1;
}

/* "rows 1 to 20 of 300", "3 of 10 match", "10 of 10 · trouble first". */
static void
say_counts(const struct list *l, const struct list_look *look, int shown, struct pen *p)
{
    bool first = l->def->sort && l->sort >= 0 &&
                 !strcmp(l->def->columns[l->sort].name, l->def->sort) && l->desc == l->def->desc;

    if (shown < l->count)
        pen_printf(p, ROLE_DIM, "rows %d to %d of %d", l->top + 1, l->top + shown, l->count);
    else
        pen_printf(p, ROLE_DIM, "%d of %d", l->count, l->n);
    if (l->count < l->n)
        pen_printf(p, ROLE_DIM, shown < l->count ? ", %d in all" : " match the filter", l->n);
    if (first && look->order)
        pen_printf(p, ROLE_DIM, " · %s", look->order);
}

static bool
is_old(const struct list_look *look)
{
    return look->stale && look->old_ms > 0;
}

/* Cuts the row below the rows for their number, and for the age of data that is stale. */
static struct rect
cut_foot(const struct list *l, const struct list_look *look, struct rect *r)
{
    bool counts = look->counts && (l->count < r->h || (l->count > r->h && r->h >= COUNTED_H));

    return rect_cut_bottom(r, l->count > 0 && (counts || (is_old(look) && r->h > 1)) ? 1 : 0);
}

static void
draw_foot(const struct frame *f, struct rect r, int shown)
{
    rect_cut_left(&r, SIGN_W);
    struct pen p = pen_start(f->g, r);
    if (f->look->counts)
        say_counts(f->l, f->look, shown, &p);
    if (is_old(f->look))
        pen_printf(&p, ROLE_WARN, "%s%s old", f->look->counts ? " · " : "data ",
                   fmt_age(f->look->old_ms).s);
}

void
list_draw(struct list *l, struct grid *g, struct rect r, const struct list_look *look)
{
    struct frame f = {
        .l = l,
        .g = g,
        .look = look,
        .cell = {look->now_ms, look->utc, l->ctx, &l->scratch, false},
    };

    if (r.w <= 0 || r.h <= 0)
        return;
    list_widths(l, r.w - SIGN_W, f.widths);
    memcpy(l->widths, f.widths, sizeof l->widths);
    l->titles_at = (struct rect){r.x, r.y, r.h > 1 ? r.w : 0, 1};
    if (r.h > 1)
        draw_titles(&f, rect_cut_top(&r, 1));
    struct rect foot = cut_foot(l, look, &r);
    l->rows_at = r;
    l->page_h = r.h;
    list_scroll(l, r.h);
    for (int i = 0; i < r.h && l->top + i < l->count; i++)
        draw_row(&f, rect_row(r, i), l->top + i);
    foot.y -= l->count < r.h ? r.h - l->count : 0; /* below the last row drawn */
    if (foot.h > 0)
        draw_foot(&f, foot, l->count < r.h ? l->count : r.h);
    if (l->count == 0) {
        rect_cut_left(&r, SIGN_W);
        grid_str(g, r, ROLE_DIM, look->empty ? look->empty : "nothing here");
    }
}
