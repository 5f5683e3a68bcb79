/* The cells of the screen in memory. Only put_glyph() writes into them. It stays inside a clip
 * rectangle, and blanks the other half of a wide glyph that is overwritten. At the end: the
 * arithmetic of rectangles; the layout of every screen is made only of these cuts. */
#include "ui/term/grid.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 2000 };

struct grid {
    int w, h;
    bool ascii;
    bool has_cursor;
    int cursor_x, cursor_y;
    struct cell *cells;
};

static const struct cell blank = {" ", 1, ROLE_TEXT, GROUND_NONE};

static int
clamp_int(int n, int low, int high)
{
    return n < low ? low : n > high ? high : n;
}

struct grid *
grid_new(int w, int h, bool ascii)
{
    struct grid *g = xcalloc(1, sizeof *g);

    g->ascii = ascii;
    grid_resize(g, w, h);
    return g;
}

void
grid_free(struct grid *g)
{
    if (!g)
        return;
    free(g->cells);
    free(g);
}

void
grid_resize(struct grid *g, int w, int h)
{
    g->w = clamp_int(w, 1, MAX_SIDE);
    g->h = clamp_int(h, 1, MAX_SIDE);
    g->cells = xreallocarray(g->cells, (size_t)g->w * (size_t)g->h, sizeof *g->cells);
    grid_clear(g);
}

struct rect
grid_rect(const struct grid *g)
{
    return (struct rect){0, 0, g->w, g->h};
}

bool
grid_ascii(const struct grid *g)
{
    return g->ascii;
}

static struct cell *
cell_at(const struct grid *g, int x, int y)
{
    assert(x >= 0 && y >= 0 && x < g->w && y < g->h);
    return &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
}

void
grid_clear(struct grid *g)
{
    for (size_t i = 0, n = (size_t)g->w * (size_t)g->h; i < n; i++)
        g->cells[i] = blank;
    g->has_cursor = false;
}

const struct cell *
grid_cell(const struct grid *g, int x, int y)
{
    return x >= 0 && y >= 0 && x < g->w && y < g->h ? cell_at(g, x, y) : &blank;
}

void
grid_cursor(struct grid *g, int x, int y)
{
    g->has_cursor = true;
    g->cursor_x = clamp_int(x, 0, g->w - 1);
    g->cursor_y = clamp_int(y, 0, g->h - 1);
}

void
grid_no_cursor(struct grid *g)
{
    g->has_cursor = false;
}

bool
grid_cursor_at(const struct grid *g, int *x, int *y)
{
    *x = g->has_cursor ? g->cursor_x : 0;
    *y = g->has_cursor ? g->cursor_y : 0;
    return g->has_cursor;
}

/* Blanks a cell, and the other half if the cell was half of a wide glyph. */
static void
wipe_cell(struct grid *g, int x, int y)
{
    struct cell *c = cell_at(g, x, y);
    int other = c->width == 0 ? x - 1 : c->width == 2 ? x + 1 : x;

    memcpy(c->utf8, blank.utf8, sizeof c->utf8);
    c->width = 1;
    if (other != x && other >= 0 && other < g->w) {
        struct cell *half = cell_at(g, other, y);
        memcpy(half->utf8, blank.utf8, sizeof half->utf8);
        half->width = 1;
    }
}

/* Writes one glyph; the clip rectangle lies inside the grid. A glyph that would cross an edge of
 * the clip is left out. */
static void
put_glyph(struct grid *g, struct rect clip, int x, int y, const struct glyph *glyph, enum role role)
{
    if (y < clip.y || y >= clip.y + clip.h || x < clip.x || x + glyph->width > clip.x + clip.w)
        return;
    for (int i = 0; i < glyph->width; i++) {
        wipe_cell(g, x + i, y);
        cell_at(g, x + i, y)->role = (uint8_t)role;
        cell_at(g, x + i, y)->ground = GROUND_NONE;
    }
    struct cell *c = cell_at(g, x, y);
    memcpy(c->utf8, glyph->utf8, sizeof c->utf8);
    c->width = (uint8_t)glyph->width;
    if (glyph->width == 2) {
        cell_at(g, x + 1, y)->utf8[0] = 0;
        cell_at(g, x + 1, y)->width = 0;
    }
}

static void
put_str(struct grid *g, struct rect clip, int x, int y, enum role role, const char *s)
{
    struct text_iter it;
    struct glyph glyph;

    text_start(&it, s, strlen(s), TEXT_LINE, g->ascii);
    for (; text_next(&it, &glyph); x += glyph.width)
        put_glyph(g, clip, x, y, &glyph, role);
}

/* --- text ------------------------------------------------------------------------------------- */

int
grid_text(struct grid *g, struct rect r, enum role role, const char *s, size_t len)
{
    struct rect clip = rect_clip(rect_row(r, 0), grid_rect(g));
    int w = clip.x + clip.w - r.x; /* cells up to the right edge, and those left of the grid */
    struct text_iter it;
    struct glyph glyph;
    int used = 0;

    if (clip.w == 0 || clip.h == 0)
        return 0;
    text_start(&it, s, len, TEXT_LINE, g->ascii);
    while (text_next(&it, &glyph)) {
        if (used + glyph.width > w) {
            if (used < w) /* a wide glyph has no room: blank, ellipsis */
                put_str(g, clip, r.x + used, r.y, role, " ");
            put_str(g, clip, r.x + w - 1, r.y, role, "…");
            return w;
        }
        put_glyph(g, clip, r.x + used, r.y, &glyph, role);
        used += glyph.width;
    }
    return used;
}

int
grid_str(struct grid *g, struct rect r, enum role role, const char *s)
{
    return grid_text(g, r, role, s, strlen(s));
}

static bool
is_space(const struct glyph *g)
{
    return g->utf8[0] == ' ' && !g->utf8[1];
}

enum { LEAST_CLAUSE = 16 }; /* less of a clause than this says nothing */

/* Where to end instead of at `end`: at the last stop, if little is behind it and the text up to it
 * fills a third of the room. */
static int
end_at_stop(int end, int stop, int w)
{
    return 3 * stop >= w && end - stop < LEAST_CLAUSE ? stop : end;
}

/* How many cells of s to keep in w cells: all, or whole words, without the comma at the end. The
 * beginning of a clause or of a sentence is left out if it is short. Leaves room for " …". */
static int
words_that_fit(const struct grid *g, const char *s, int w)
{
    struct text_iter it;
    struct glyph glyph;
    int used = 0, word = 0, clause = 0, sentence = 0;
    char last = 0;

    text_start(&it, s, strlen(s), TEXT_LINE, g->ascii);
    while (used <= w && text_next(&it, &glyph)) {
        bool stop = last == ',' || last == ';' || last == ':';
        if (is_space(&glyph) && last != ' ' && used - stop + 2 <= w) {
            word = used - stop;
            clause = last == ',' ? word : clause;
            sentence = last == ';' ? word : sentence;
        }
        last = glyph.utf8[1] ? 0 : glyph.utf8[0];
        used += glyph.width;
    }
    return used <= w ? used : end_at_stop(end_at_stop(word, clause, w), sentence, w);
}

int
grid_words(struct grid *g, struct rect r, enum role role, const char *s)
{
    int keep = words_that_fit(g, s, r.w), used = 0;
    struct rect all = grid_rect(g);
    struct text_iter it;
    struct glyph glyph;

    if (3 * keep < r.w || r.x < 0 || r.x + r.w > all.w) /* one long word: cut like any text */
        return grid_str(g, r, role, s);
    text_start(&it, s, strlen(s), TEXT_LINE, g->ascii);
    while (used < keep && text_next(&it, &glyph)) {
        put_glyph(g, rect_clip(rect_row(r, 0), all), r.x + used, r.y, &glyph, role);
        used += glyph.width;
    }
    if (!text_next(&it, &glyph))
        return used;
    struct rect more = {r.x + keep, r.y, 2, 1};
    return keep + grid_str(g, rect_clip(more, rect_row(r, 0)), role, " …");
}

static int
width_of(const struct grid *g, const char *s)
{
    struct text_iter it;
    struct glyph glyph;
    int w = 0;

    text_start(&it, s, strlen(s), TEXT_LINE, g->ascii);
    while (text_next(&it, &glyph))
        w += glyph.width;
    return w;
}

int
grid_right(struct grid *g, struct rect r, enum role role, const char *s)
{
    int w = width_of(g, s);

    if (w < r.w) {
        r.x += r.w - w;
        r.w = w;
    }
    return grid_str(g, r, role, s);
}

int
grid_center(struct grid *g, struct rect r, enum role role, const char *s)
{
    int w = width_of(g, s);

    if (w < r.w)
        rect_cut_left(&r, (r.w - w) / 2);
    return grid_str(g, r, role, s);
}

int
grid_printf(struct grid *g, struct rect r, enum role role, const char *fmt, ...)
{
    char s[4096]; /* more than the widest grid has */
    va_list ap;

    va_start(ap, fmt);
    text_vprint(s, sizeof s, fmt, ap);
    va_end(ap);
    return grid_str(g, r, role, s);
}

/* The width of the word that begins with `first`; the iterator is behind `first`. Counts up to max.
 */
static int
word_width(struct text_iter it, const struct glyph *first, int max)
{
    struct glyph g;
    int w = first->width;

    while (w <= max && text_next(&it, &g) && !is_space(&g))
        w += g.width;
    return w;
}

/* Whether the glyph goes to the next line of w cells: the glyph does not fit, or it begins a word
 * that fits on a line of its own but not here. */
static bool
wraps(const struct text_iter *it, const struct glyph *g, bool after_space, int col, int w)
{
    if (col == 0)
        return false;
    if (col + g->width > w)
        return true;
    if (!after_space || is_space(g))
        return false;
    int word = word_width(*it, g, w);
    return word <= w && col + word > w;
}

/* Walks through the lines of s, wrapped at r.w cells or not; draws them if g is not NULL. */
static int
walk_lines(struct grid *g, struct rect r, enum role role, struct text_iter *it,
           const struct text_area *area)
{
    struct rect clip = g ? rect_clip(r, grid_rect(g)) : r;
    struct glyph glyph;
    int lines = 0;

    while (text_more(it)) {
        bool after_space = false;
        int col = 0;
        while (text_next(it, &glyph)) {
            if (area->wrap && wraps(it, &glyph, after_space, col, r.w)) {
                lines++;
                col = 0;
                if (is_space(&glyph)) /* it ends the line and is not drawn */
                    continue;
            }
            after_space = is_space(&glyph);
            int x = area->wrap ? col : col - area->left;
            if (g && x >= 0 && lines >= area->top)
                put_glyph(g, clip, r.x + x, r.y + lines - area->top, &glyph, role);
            col += glyph.width;
        }
        lines++;
    }
    return lines;
}

int
grid_lines(struct grid *g, struct rect r, enum role role, const char *s, size_t len,
           const struct text_area *area)
{
    struct text_iter it;

    text_start(&it, s, len, TEXT_DETAIL, g->ascii);
    return walk_lines(g, r, role, &it, area);
}

int
grid_count_lines(const char *s, size_t len, int w)
{
    struct text_iter it;
    struct text_area area = {.wrap = w > 0};

    text_start(&it, s, len, TEXT_DETAIL, false);
    return walk_lines(NULL, (struct rect){0, 0, w, 0}, ROLE_TEXT, &it, &area);
}

struct pen
pen_start(struct grid *g, struct rect r)
{
    return (struct pen){g, rect_row(r, 0)};
}

void
pen_put(struct pen *p, enum role role, const char *s)
{
    rect_cut_left(&p->r, grid_str(p->g, p->r, role, s));
}

void
pen_printf(struct pen *p, enum role role, const char *fmt, ...)
{
    char s[4096];
    va_list ap;

    va_start(ap, fmt);
    text_vprint(s, sizeof s, fmt, ap);
    va_end(ap);
    pen_put(p, role, s);
}

void
pen_gap(struct pen *p, int cells)
{
    rect_cut_left(&p->r, cells);
}

/* --- shapes ----------------------------------------------------------------------------------- */

void
grid_fill(struct grid *g, struct rect r, enum role role)
{
    struct rect c = rect_clip(r, grid_rect(g));

    for (int y = c.y; y < c.y + c.h; y++)
        for (int x = c.x; x < c.x + c.w; x++) {
            wipe_cell(g, x, y);
            cell_at(g, x, y)->role = (uint8_t)role;
            cell_at(g, x, y)->ground = GROUND_NONE;
        }
}

void
grid_paint(struct grid *g, struct rect r, enum role role)
{
    struct rect c = rect_clip(r, grid_rect(g));

    for (int y = c.y; y < c.y + c.h; y++)
        for (int x = c.x; x < c.x + c.w; x++) {
            cell_at(g, x, y)->role = (uint8_t)role;
            cell_at(g, x, y)->ground = GROUND_NONE;
        }
}

void
grid_lay(struct grid *g, struct rect r, enum ground ground)
{
    struct rect c = rect_clip(r, grid_rect(g));

    for (int y = c.y; y < c.y + c.h; y++)
        for (int x = c.x; x < c.x + c.w; x++)
            cell_at(g, x, y)->ground = (uint8_t)ground;
}

/* Draws on the first row of r. */
static void
grid_hline(struct grid *g, struct rect r, enum role role)
{
    struct rect c = rect_clip(rect_row(r, 0), grid_rect(g));

    for (int x = c.x; x < c.x + c.w; x++)
        put_str(g, c, x, c.y, role, "─");
}

static void
vline(struct grid *g, struct rect r, enum role role)
{
    struct rect c = rect_clip(r, grid_rect(g));

    for (int y = c.y; c.w > 0 && y < c.y + c.h; y++)
        put_str(g, c, c.x, y, role, "│");
}

void
grid_rule(struct grid *g, struct rect r, enum role role, const char *title)
{
    for (int x = 0; x < r.w; x++)
        grid_str(g, (struct rect){r.x + x, r.y, 1, 1}, ROLE_BORDER, "─");
    rect_cut_left(&r, 2);
    rect_cut_right(&r, 2);
    grid_printf(g, r, role, " %s ", title);
}

void
grid_more(struct grid *g, struct rect box, int above, int below)
{
    char text[64] = "";
    struct rect line = {box.x + 2, box.y + box.h - 1, box.w - 4, 1};

    if (above > 0 && below > 0)
        snprintf(text, sizeof text, " ↑ %d ↓ %d more ", above, below);
    else if (above > 0 || below > 0)
        snprintf(text, sizeof text, " %s %d more ", above > 0 ? "↑" : "↓",
                 above > 0 ? above : below);
    if (*text)
        grid_right(g, line, ROLE_KEY_HELP, text);
}

struct rect
grid_box(struct grid *g, struct rect r, enum role role, const char *title)
{
    struct rect clip = rect_clip(r, grid_rect(g));
    int right = r.x + r.w - 1, bottom = r.y + r.h - 1;

    if (r.w < 2 || r.h < 2)
        return (struct rect){r.x, r.y, 0, 0};
    grid_hline(g, (struct rect){r.x, r.y, r.w, 1}, role);
    grid_hline(g, (struct rect){r.x, bottom, r.w, 1}, role);
    vline(g, (struct rect){r.x, r.y, 1, r.h}, role);
    vline(g, (struct rect){right, r.y, 1, r.h}, role);
    put_str(g, clip, r.x, r.y, role, "┌");
    put_str(g, clip, right, r.y, role, "┐");
    put_str(g, clip, r.x, bottom, role, "└");
    put_str(g, clip, right, bottom, role, "┘");
    if (title && r.w > 6) {
        struct rect line = {r.x + 2, r.y, r.w - 4, 1};
        struct rect words = {r.x + 3, r.y, r.w - 6, 1};
        int used = grid_str(g, words, ROLE_BOX_TITLE, title);
        put_str(g, rect_clip(line, clip), r.x + 2, r.y, role, " ");
        put_str(g, rect_clip(line, clip), r.x + 3 + used, r.y, role, " ");
    }
    return rect_inset(r, 1, 1);
}

enum { PANEL_BOX_H = 30 };

struct rect
grid_panel(struct grid *g, struct rect r, const char *title, bool strong)
{
    if (g->h >= PANEL_BOX_H)
        return rect_inset(grid_box(g, r, strong ? ROLE_STRONG : ROLE_BORDER, title), 1, 0);
    grid_rule(g, rect_cut_top(&r, 1), strong ? ROLE_STRONG : ROLE_BOX_TITLE, title);
    return rect_inset(r, 1, 0);
}

/* --- reading back ----------------------------------------------------------------------------- */

void
grid_dump(const struct grid *g, struct buf *out)
{
    for (int y = 0; y < g->h; y++) {
        size_t end = out->len;
        for (int x = 0; x < g->w; x++) {
            buf_str(out, cell_at(g, x, y)->utf8);
            if (strcmp(cell_at(g, x, y)->utf8, " ") != 0)
                end = out->len;
        }
        out->len = end;
        buf_str(out, "\n");
    }
}

void
grid_dump_roles(const struct grid *g, struct buf *out)
{
    for (int y = 0; y < g->h; y++) {
        size_t end = out->len;
        for (int x = 0; x < g->w; x++) {
            char c = style_letter(cell_at(g, x, y)->role);
            buf_add(out, &c, 1);
            if (c != '.')
                end = out->len;
        }
        out->len = end;
        buf_str(out, "\n");
    }
}

/* --- rectangles ------------------------------------------------------------------------------ */

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
