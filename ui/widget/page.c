/*
 * The scrolling page of detail screens.
 */
#include "ui/widget/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

enum { TWO_W = 106, GAP_W = 2 };

void
page_clear(struct page *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->blocks[i].text);
    p->n = p->split = 0;
}

void
page_done(struct page *p)
{
    page_clear(p);
    free(p->blocks);
    p->blocks = NULL;
    p->cap = 0;
}

void
page_add(struct page *p, enum role role, int indent, const char *text, size_t len)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 16;
        p->blocks = xreallocarray(p->blocks, (size_t)p->cap, sizeof *p->blocks);
    }
    p->blocks[p->n++] = (struct block){role, indent, xstrndup(text, len), len, false};
}

void
page_add_json(struct page *p, int indent, const char *text, size_t len)
{
    page_add(p, ROLE_CODE, indent, text, len);
    p->blocks[p->n - 1].json = true;
}

void
page_printf(struct page *p, enum role role, int indent, const char *fmt, ...)
{
    char text[2000];
    va_list ap;

    va_start(ap, fmt);
    text_vprint(text, sizeof text, fmt, ap);
    va_end(ap);
    page_add(p, role, indent, text, strlen(text));
}

static int
block_lines(const struct page *p, const struct block *b, int w)
{
    int n = grid_count_lines(b->text, b->len, p->nowrap ? 0 : w - b->indent);

    return n > 0 ? n : 1;
}

struct span_of_blocks {
    int first, end;
};

static int
span_lines(const struct page *p, struct span_of_blocks s, int w)
{
    int n = 0;

    for (int i = s.first; i < s.end; i++)
        n += block_lines(p, &p->blocks[i], w);
    return n;
}

void
page_scroll(struct page *p, int lines)
{
    p->top += lines;
}

static bool
is_glyph(const struct grid *g, int x, int y, const char *glyph)
{
    return !strcmp(grid_cell(g, x, y)->utf8, glyph);
}

/* Colours the names on a row: a string that ends with a colon. A string that goes on in the next
 * row is no name. */
static void
paint_names(struct grid *g, struct rect row)
{
    for (int x = row.x; x < row.x + row.w; x++) {
        int from = x;
        if (!is_glyph(g, x, row.y, "\""))
            continue;
        for (x++; x < row.x + row.w && !is_glyph(g, x, row.y, "\""); x++)
            x += is_glyph(g, x, row.y, "\\");
        if (x + 1 < row.x + row.w && is_glyph(g, x + 1, row.y, ":"))
            grid_paint(g, (struct rect){from, row.y, x + 1 - from, 1}, ROLE_CODE_KEY);
    }
}

static void
draw_span(const struct page *p, struct span_of_blocks s, struct grid *g, struct rect r)
{
    int at = -p->top;

    for (int i = s.first; i < s.end && at < r.h; i++) {
        const struct block *b = &p->blocks[i];
        int n = block_lines(p, b, r.w);
        if (at + n > 0) {
            struct text_area area = {at < 0 ? -at : 0, p->nowrap ? p->left : 0, !p->nowrap};
            int y = at < 0 ? 0 : at;
            struct rect in = {r.x + b->indent, r.y + y, r.w - b->indent, r.h - y};
            in.h = in.h < n - area.top ? in.h : n - area.top;
            grid_lines(g, in, b->role, b->text, b->len, &area);
            for (int k = 0; b->json && k < in.h; k++)
                paint_names(g, rect_row(in, k));
        }
        at += n;
    }
}

void
page_draw(struct page *p, struct grid *g, struct rect r)
{
    bool two = p->split > 0 && p->split < p->n && r.w >= TWO_W;
    struct span_of_blocks one = {0, two ? p->split : p->n}, other = {p->split, p->n};
    struct rect right = rect_cut_right(&r, two ? r.w / 2 : 0);

    r.w -= two ? GAP_W : 0;
    int all = span_lines(p, one, r.w), beside = two ? span_lines(p, other, right.w) : 0;
    all = beside > all ? beside : all;
    int last = all > r.h ? all - r.h : 0;
    p->height = r.h;
    p->top = p->top < 0 ? 0 : p->top > last ? last : p->top;
    draw_span(p, one, g, r);
    if (two)
        draw_span(p, other, g, right);
}
