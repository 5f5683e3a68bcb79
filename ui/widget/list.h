/* The table widget of every screen. It borrows the rows of a snapshot and owns only what belongs to
 * the user: the cursor, the marks and the scroll position, all kept by id and never by row number,
 * so that a refresh can't move a target. Sorting is stable, ties go by id, NULLs stand last in both
 * directions. For lists that the server orders (paged by key) the list shows the rows as they come
 * and says when it wants more. */
#ifndef UI_WIDGET_LIST_H
#define UI_WIDGET_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "ui/term/grid.h"
#include "ui/widget/column.h"

struct list;

struct lead { /* how bad a row is, before its first column: "×", "▲", "‖"; NULL = it is well */
    const char *glyph;
    enum role role;
};

struct list_def {
    const struct column *columns;
    size_t row_size;
    size_t id_offset;  /* of the const char * that is the row's identity */
    bool server_order; /* rows come sorted: a change of the order is a question to the server */
    const char *sort;  /* name of the first sort column; NULL = as given */
    bool desc;
    struct lead (*lead)(const void *row, const struct cell_ctx *c); /* or NULL */
    bool (*stale)(const void *row);  /* this row's data is old; or NULL */
    bool (*approx)(const void *row); /* its counts are estimates; or NULL */
    void *ctx;                       /* handed to column_special and lead */
};

struct list *list_new(const struct list_def *def); /* def is borrowed for the list's life */
void list_free(struct list *l);
void list_set_ctx(struct list *l, void *ctx); /* instead of def->ctx */

/* New rows after a refresh, borrowed until the next call; the old ones may be gone already. The
 * cursor stays on its id; when that has gone, on its nearest neighbour that is left. */
void list_set_rows(struct list *l, const void *rows, int n);
/* The same of so many rows that they are not all made: the list keeps their order and makes those
 * that it draws. They come sorted by id. A row lives until four others were looked at, the selected
 * one until another is selected. */
struct list_pages {
    void (*make)(void *ctx, int i, void *row); /* into def->row_size bytes */
    const char *(*id)(void *ctx, int i);
    void *ctx;
};
void list_set_pages(struct list *l, const struct list_pages *pages, int n);
/* The rows are the same, made anew from now on: what is worked out for them may have changed. */
void list_make_anew(struct list *l);
/* Only rows for which keep() is true are shown; NULL = all. Takes effect at once; call it again
 * when the filter's words have changed. */
void list_set_filter(struct list *l, bool (*keep)(void *ctx, const void *row), void *ctx);

/* --- what is there ---------------------------------------------------------------------------- */
int list_count(const struct list *l);               /* rows shown */
const void *list_row(const struct list *l, int i);  /* in the order shown; NULL outside */
const char *list_id(const struct list *l, int i);   /* of that row */
int list_index(const struct list *l);               /* of the cursor, -1 = empty list */
const void *list_selected(const struct list *l);    /* row under the cursor, NULL = empty list */
const char *list_selected_id(const struct list *l); /* "" = empty list; lives as the rows do */
bool list_select(struct list *l, const char *id);   /* false = not there, nothing changed */

/* --- moving ----------------------------------------------------------------------------------- */
void list_move(struct list *l, int delta);
void list_page(struct list *l, int pages); /* pages of the height that was drawn last */
void list_half_page(struct list *l, int halves);
void list_home(struct list *l);
void list_end(struct list *l);

/* --- marks ------------------------------------------------------------------------------------ */
void list_toggle_mark(struct list *l); /* of the selected row; then one down */
void list_mark(struct list *l, const char *id, bool on);
void list_mark_shown(struct list *l); /* all rows of the list (not only those on the screen) */
void list_unmark_all(struct list *l);
bool list_is_marked(const struct list *l, const char *id);
/* The marked ids, sorted, also of rows that are not in the list now; valid until marks change. */
const char *const *list_marks(const struct list *l, int *n);
/* What an action is for: the marks, or when there is none the selected id. Pointers as above. */
const char *const *list_targets(struct list *l, int *n);

/* --- order and columns ------------------------------------------------------------------------ */
const struct column *list_sort_column(const struct list *l, bool *desc); /* NULL = as given */
bool list_sort_by(struct list *l, const char *name,
                  bool desc);                  /* false = no such sortable column */
void list_sort_step(struct list *l, int step); /* next or previous visible sortable column */
void list_sort_invert(struct list *l);
int list_columns(const struct list *l);
const struct column *list_column(const struct list *l, int i);
bool list_column_on(const struct list *l, int i);
void list_column_show(struct list *l, int i, bool on); /* the first column always stays */
/* On, but it had no room when the list was drawn last. */
bool list_column_no_room(const struct list *l, int i);
/* On, and others make room for it: what a user has asked for by name. */
void list_column_pin(struct list *l, int i);
/* From now on a column in which no row has ever had a value is not shown: its source has none. The
 * first one always is. */
void list_hide_empty(struct list *l, bool on);
/* This source never has the column. */
void list_column_lacks(struct list *l, const char *name, bool lacks);
/* Another width for a column of this list. */
void list_column_width(struct list *l, int i, int min_w, int max_w);
/* Sort and columns as one line for the state file ("sort=ready desc hide=eta,cap show=p50"), and
 * back; unknown names are ignored. */
void list_save(const struct list *l, struct buf *out);
void list_load(struct list *l, const char *line);

/* --- paging by key ---------------------------------------------------------------------------- */
void list_set_more(struct list *l, bool above, bool below); /* what the server still has */
/* +1: near the end and there is more below; -1: near the top and there is more above; else 0. */
int list_wants(const struct list *l);

/* --- drawing ---------------------------------------------------------------------------------- */
struct list_look {
    int64_t now_ms;
    bool utc;
    bool stale;        /* data is old: rows in ROLE_STALE */
    bool unfocused;    /* the keys go elsewhere: no row is selected, no cursor */
    const char *empty; /* the text if there is no row; NULL = "nothing here" */
};
/* A click where the list was drawn last: on a title it sorts (again: the other way round; not
 * without `sorts`), on a row it selects. */
enum list_hit { HIT_NOTHING, HIT_TITLE, HIT_ROW, HIT_SELECTED };
enum list_hit list_click(struct list *l, int x, int y, bool sorts);
/* The line of the screen on which the selected row was drawn last; -1 = on none. */
int list_selected_line(const struct list *l);
/* Where a column was drawn last, title and rows; w 0 = it was not. */
struct rect list_column_at(const struct list *l, int i);
/* Title row and rows into r; puts the grid's cursor on the selected row. Remembers the height for
 * list_page and scrolls so that the cursor can be seen. */
void list_draw(struct list *l, struct grid *g, struct rect r, const struct list_look *look);

#endif
