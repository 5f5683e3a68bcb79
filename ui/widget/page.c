/*
 * The scrolling page of detail screens.
 */
#include "ui/widget/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

void
page_clear(struct page *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->blocks[i].text);
    p->n = 0;
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
    p->blocks[p->n++] = (struct block){role, indent, xstrndup(text, len), len};
}

void
page_printf(struct page *p, enum role role, int indent, const char *fmt, ...)
{
    char text[2000];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    page_add(p, role, indent, text, strlen(text));
}

static int
block_lines(const struct page *p, const struct block *b, int w)
{
    int n = grid_count_lines(b->text, b->len, p->nowrap ? 0 : w - b->indent);

    return n > 0 ? n : 1;
}

static int
page_lines(const struct page *p, int w)
{
    int n = 0;

    for (int i = 0; i < p->n; i++)
        n += block_lines(p, &p->blocks[i], w);
    return n;
}

void
page_scroll(struct page *p, int lines)
{
    p->top += lines;
}

void
page_draw(struct page *p, struct grid *g, struct rect r)
{
    int all = page_lines(p, r.w), last = all > r.h ? all - r.h : 0, at;

    p->height = r.h;
    p->top = p->top < 0 ? 0 : p->top > last ? last : p->top;
    at = -p->top;
    for (int i = 0; i < p->n && at < r.h; i++) {
        const struct block *b = &p->blocks[i];
        int n = block_lines(p, b, r.w);
        if (at + n > 0) {
            struct text_area area = {at < 0 ? -at : 0, p->nowrap ? p->left : 0, !p->nowrap};
            int y = at < 0 ? 0 : at;
            struct rect in = {r.x + b->indent, r.y + y, r.w - b->indent, r.h - y};
            in.h = in.h < n - area.top ? in.h : n - area.top;
            grid_lines(g, in, b->role, b->text, b->len, &area);
        }
        at += n;
    }
}
