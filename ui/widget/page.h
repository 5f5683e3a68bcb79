/* A page: blocks of text with a role and an indent, one below the other, that scroll as a whole. If
 * the page is wide enough, it has two columns that scroll together. For detail screens; foreign
 * text passes the rules of detail views (\x1b is shown, lines are kept). */
#ifndef UI_WIDGET_PAGE_H
#define UI_WIDGET_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/term/grid.h"

struct block {
    enum role role;
    int indent;
    char *text;
    size_t len;
    bool json; /* names of members get a colour of their own */
};
struct page {
    struct block *blocks;
    int n, cap;
    int top, left; /* of scrolling */
    int height;    /* drawn last */
    bool nowrap;
    int split; /* blocks from this one on are in a second column if there is room; 0 = none */
};
void page_clear(struct page *p); /* frees the blocks; keeps top and left */
void page_done(struct page *p);
void page_add(struct page *p, enum role role, int indent, const char *text, size_t len);
/* JSON that json_pretty has laid out: one member a line. */
void page_add_json(struct page *p, int indent, const char *text, size_t len);
void page_printf(struct page *p, enum role role, int indent, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Scrolls by lines; stays within the page, by the height and width that were drawn last. */
void page_scroll(struct page *p, int lines);
void page_draw(struct page *p, struct grid *g, struct rect r);

#endif
