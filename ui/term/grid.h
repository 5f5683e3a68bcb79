/* The screen in memory: each cell has one glyph and one role. Views draw only here; term.c copies
 * the grid to the terminal, tests read it. Text enters only through grid_text and the functions
 * built on it, which pass every byte through model/text; so no cell can hold a hostile character.
 * Everything is clipped to its rectangle and to the grid. A wide character never crosses an edge:
 * its cell stays blank. With `ascii` every glyph is replaced by one ASCII character. */
#ifndef UI_TERM_GRID_H
#define UI_TERM_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "model/base/text.h"
#include "ui/term/style.h"

struct rect {
    int x, y, w, h; /* w or h <= 0: empty, nothing is drawn */
};

struct cell {
    char utf8[24];  /* ends with NUL; " " if blank, "" in the right half of a wide glyph */
    uint8_t width;  /* 1, 2, or 0 in the right half of a wide glyph */
    uint8_t role;   /* enum role */
    uint8_t ground; /* enum ground */
};

/* --- rectangles ------------------------------------------------------------------------------ */
struct rect rect_clip(struct rect r, struct rect to); /* the common part, possibly empty */
struct rect rect_row(struct rect r, int i);           /* row i of r, one high; empty outside r */
/* Cut n rows or columns off a side. The result is the piece, *r becomes the rest; both may be
 * empty. */
struct rect rect_cut_top(struct rect *r, int n);
struct rect rect_cut_bottom(struct rect *r, int n);
struct rect rect_cut_left(struct rect *r, int n);
struct rect rect_cut_right(struct rect *r, int n);
struct rect rect_inset(struct rect r, int dx, int dy);
struct rect rect_center(struct rect in, int w, int h); /* w x h, or less, in the middle of `in` */

/* --- the grid -------------------------------------------------------------------------------- */
struct grid;
struct grid *grid_new(int w, int h, bool ascii);
void grid_free(struct grid *g);
void grid_resize(struct grid *g, int w, int h); /* all cells blank afterwards; at least 1x1 */
struct rect grid_rect(const struct grid *g);    /* the rectangle of the whole grid */
bool grid_ascii(const struct grid *g);
void grid_clear(struct grid *g); /* blank cells, no cursor */
/* The cell at x, y; never NULL: outside the grid it is a blank cell. */
const struct cell *grid_cell(const struct grid *g, int x, int y);

/* The hardware cursor, on the selected row or at the place of typing. If it is outside the grid, it
 * is moved to the edge. */
void grid_cursor(struct grid *g, int x, int y);
void grid_no_cursor(struct grid *g);
bool grid_cursor_at(const struct grid *g, int *x, int *y); /* false = no cursor was set */

/* --- text: the only door --------------------------------------------------------------------- */
/* Draws s on the first row of r. If s does not fit, it is cut and ends with an ellipsis; cells that
 * s does not need stay unchanged. Returns the number of cells used. */
int grid_text(struct grid *g, struct rect r, enum role role, const char *s, size_t len);
int grid_str(struct grid *g, struct rect r, enum role role, const char *s); /* NUL-terminated */
/* For sentences of our own. If s does not fit, it ends with a whole word, or with a whole clause
 * if little of the next one would fit; so no number is shown in part: "4,003 failed …". */
int grid_words(struct grid *g, struct rect r, enum role role, const char *s);
int grid_right(struct grid *g, struct rect r, enum role role, const char *s); /* right-aligned */
int grid_center(struct grid *g, struct rect r, enum role role, const char *s);
int grid_printf(struct grid *g, struct rect r, enum role role, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Draws many lines by the rules of detail views (\x1b is shown, a newline breaks, a tab goes to a
 * multiple of 8), from line `top` and cell `left` on (left counts only without wrapping). Returns
 * the number of lines in s. */
struct text_area {
    int top, left;
    bool wrap;
};
int grid_lines(struct grid *g, struct rect r, enum role role, const char *s, size_t len,
               const struct text_area *area);
/* How many lines s has if it is wrapped at w cells (w <= 0: not wrapped). */
int grid_count_lines(const char *s, size_t len, int w);

/* A pen writes pieces of text with different roles one after the other on one row. */
struct pen {
    struct grid *g;
    struct rect r; /* the part of the row behind what was written */
};
struct pen pen_start(struct grid *g, struct rect r);
void pen_put(struct pen *p, enum role role, const char *s);
void pen_printf(struct pen *p, enum role role, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void pen_gap(struct pen *p, int cells);

/* --- shapes ---------------------------------------------------------------------------------- */
void grid_fill(struct grid *g, struct rect r, enum role role); /* writes n blanks */
/* Gives the cells another role and no ground; their glyphs stay. */
void grid_paint(struct grid *g, struct rect r, enum role role);
/* Gives the cells another ground; glyphs and roles stay. Text that is written later has no ground.
 */
void grid_lay(struct grid *g, struct rect r, enum ground ground);
/* Draws a frame on the edge of r, with an optional title; the inside stays unchanged. Returns the
 * inside. */
struct rect grid_box(struct grid *g, struct rect r, enum role role, const char *title);
/* Draws the frame of a pane: a box, or in a window of few rows a rule with the title. Returns the
 * inside, with a cell of space at its sides. strong: the pane has the focus. */
struct rect grid_panel(struct grid *g, struct rect r, const char *title, bool strong);
/* Draws a line across the first row of r, with a title in it. */
void grid_rule(struct grid *g, struct rect r, enum role role, const char *title);
/* Shows on the lower border of a box that there are more rows above or below. */
void grid_more(struct grid *g, struct rect box, int above, int below);

/* --- for tests and for printing --------------------------------------------------------------- */
void grid_dump(const struct grid *g, struct buf *out);       /* text, no trailing blanks */
void grid_dump_roles(const struct grid *g, struct buf *out); /* style_letters, no trailing '.' */

#endif
