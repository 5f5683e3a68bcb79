/* The table widget of every screen. The list borrows the rows of a snapshot and owns only the
 * user's state: the cursor, the marks and the scroll position. These are kept by id and never by
 * row number, so that a refresh can't move a target. Sorting is stable, equal values are sorted by
 * id, and NULLs come last in both directions. If the server orders the rows (paged by key), the
 * list shows them in that order and says when it needs more. */
#ifndef UI_WIDGET_LIST_H
#define UI_WIDGET_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "ui/term/grid.h"
#include "ui/widget/column.h"

struct list;

struct sign { /* how bad a row is, before its first column: "×", "▲", "‖"; NULL = it is well */
    const char *glyph;
    enum role role;
};

struct list_def {
    const struct column *columns;
    size_t row_size;
    size_t id_offset;  /* offset of the const char * that is the row's id */
    bool server_order; /* the server sorts: another order must be asked for */
    const char *sort;  /* name of the first sort column; NULL = as given */
    bool desc;
    struct sign (*sign)(const void *row, const struct cell_ctx *c); /* or NULL */
    bool (*stale)(const void *row);  /* this row's data is old; or NULL */
    bool (*approx)(const void *row); /* its counts are estimates; or NULL */
    void *ctx;                       /* handed to column_special and sign */
};

struct list *list_new(const struct list_def *def); /* def is borrowed for the list's life */
void list_free(struct list *l);
void list_set_ctx(struct list *l, void *ctx); /* replaces def->ctx */

/* Sets new rows after a refresh; borrowed until the next call; the old ones may be freed already.
 * The cursor stays on its id. If the id has gone, the cursor goes to the nearest neighbour that is
 * left. */
void list_set_rows(struct list *l, const void *rows, int n);
/* The same for very many rows: the list keeps the order of all, but makes only those that are
 * drawn. The rows must come sorted by id. A row is valid until four others were read; the selected
 * row until another is selected. */
struct list_pages {
    void (*make)(void *ctx, int i, void *row); /* makes row i in def->row_size bytes */
    const char *(*id)(void *ctx, int i);
    void *ctx;
};
void list_set_pages(struct list *l, const struct list_pages *pages, int n);
/* The rows are the same, but each must be made again, because its calculated figures may differ. */
void list_make_anew(struct list *l);
/* Shows only rows for which keep() is true; NULL = all. Takes effect at once; call it again if the
 * words of the filter have changed. */
void list_set_filter(struct list *l, bool (*keep)(void *ctx, const void *row), void *ctx);

/* --- what is there ---------------------------------------------------------------------------- */
int list_count(const struct list *l);               /* number of rows shown */
const void *list_row(const struct list *l, int i);  /* row i of the order shown; NULL outside */
const char *list_id(const struct list *l, int i);   /* id of that row */
int list_index(const struct list *l);               /* place of the cursor, -1 = empty list */
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
void list_toggle_mark(struct list *l); /* marks or unmarks; then one down */
void list_mark(struct list *l, const char *id, bool on);
void list_mark_shown(struct list *l); /* marks all rows of the list, also those off the screen */
void list_mark_only_shown(struct list *l); /* the same, and rows that have left lose their marks */
void list_unmark_all(struct list *l);
bool list_is_marked(const struct list *l, const char *id);
/* The marked ids, sorted, including rows that are not in the list now; valid until the marks
 * change. */
const char *const *list_marks(const struct list *l, int *n);
/* The ids for an act: the marked ones; if none is marked, the selected one. Valid until the marks
 * change. */
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
/* True if the column is on, but had no room when the list was drawn last. */
bool list_column_no_room(const struct list *l, int i);
/* Switches the column on; others make room for it, because the user has asked for it by name. */
void list_column_pin(struct list *l, int i);
/* From now on hides each column in which no row has ever had a value, because its source has none.
 * The first column is always shown. */
void list_hide_empty(struct list *l, bool on);
/* This source never has the column. */
void list_column_lacks(struct list *l, const char *name, bool lacks);
/* Sets another width for a column of this list. */
void list_column_width(struct list *l, int i, int min_w, int max_w);
/* Sort and columns as one line for the state file ("sort=ready desc hide=eta,cap show=p50"), and
 * back; unknown names are ignored. */
void list_save(const struct list *l, struct buf *out);
void list_load(struct list *l, const char *line);

/* --- paging by key ---------------------------------------------------------------------------- */
void list_set_more(struct list *l, bool above, bool below); /* what the server still has */
/* +1: the cursor is near the end and the server has more below; -1: near the top and more above;
 * else 0. */
int list_wants(const struct list *l);

/* --- drawing ---------------------------------------------------------------------------------- */
struct list_look {
    int64_t now_ms;
    bool utc;
    bool stale;        /* data is old: rows in ROLE_STALE */
    bool unfocused;    /* the keys go elsewhere: no row looks selected, no cursor */
    const char *empty; /* shown if there is no row; NULL = "nothing here" */
    bool counts;       /* adds a line with the number of rows, if there is room; */
    const char *order; /* with the first order; NULL = the title shows it */
    int64_t old_ms;    /* the age of the data: below the rows if it is stale */
};
/* A click on the list as drawn last. On a title it sorts by that column, a second time in the other
 * direction (not without `sorts`). On a row it selects the row. */
enum list_hit { HIT_NOTHING, HIT_TITLE, HIT_ROW, HIT_SELECTED };
enum list_hit list_click(struct list *l, int x, int y, bool sorts);
/* The line of the screen where the selected row was drawn last; -1 = it was not drawn. */
int list_selected_line(const struct list *l);
/* Where a column was drawn last, title and rows; w 0 = it was not drawn. */
struct rect list_column_at(const struct list *l, int i);
/* Draws the title row and the rows into r; puts the grid's cursor on the selected row. Remembers
 * the height for list_page, and scrolls so that the cursor is visible. */
void list_draw(struct list *l, struct grid *g, struct rect r, const struct list_look *look);

#endif
