/* The inside of a list, shared by list.c (rows, cursor), list_marks.c (marks), list_columns.c
 * (order and columns) and list_draw.c. No other file includes it. */
#ifndef UI_WIDGET_LIST_STATE_H
#define UI_WIDGET_LIST_STATE_H

#include "ui/widget/list.h"

enum { LIST_COLUMNS = 48, LIST_MADE = 4 };

struct made {          /* rows of list_set_pages */
    int of[LIST_MADE]; /* their row numbers, -1 = none */
    int next;          /* the index of the oldest */
    char *selected;    /* a copy of the selected row */
    char rows[];
};

struct list {
    const struct list_def *def;
    int ncolumns; /* of def->columns */
    void *ctx;

    const char *rows; /* borrowed; n of def->row_size bytes; NULL where rows are made: */
    struct list_pages pages;
    struct made *made; /* NULL = never */
    int n;
    int *order; /* row numbers in the order that is shown */
    int count;  /* of order */
    bool (*keep)(void *ctx, const void *row);
    void *keep_ctx;

    char *cursor;                   /* its id; NULL = none chosen yet */
    int index;                      /* its place in order; 0 when the list is empty */
    int top;                        /* the first place on the screen */
    int page_h;                     /* number of rows drawn last */
    struct rect rows_at, titles_at; /* where they were drawn; titles: w 0 = not at all */
    int widths[LIST_COLUMNS];       /* of the columns then */

    struct buf old_ids; /* all ids as shown, each with its NUL, for neighbours */
    size_t *old_at;     /* where each id begins */
    int old_n;

    char **marks; /* sorted ids */
    int nmarks;
    const char *target[1]; /* result of list_targets without marks */

    int sort; /* column number, -1 = the order of the rows */
    bool desc;
    bool hidden[LIST_COLUMNS]; /* hidden by the user or the screen */
    bool hide_empty;           /* hides columns that never had a value */
    bool filled[LIST_COLUMNS], lacks[LIST_COLUMNS];
    struct column own[LIST_COLUMNS]; /* the columns, with the widths of this list */
    bool more_above, more_below;
    struct buf scratch;
};

/* Finds the columns that have values in these rows. */
void list_note_filled(struct list *l);
/* How wide each column is in w cells; 0 = not shown. */
void list_widths(const struct list *l, int w, int *widths);
/* Builds the order again from rows, filter and sort, and finds the cursor again. */
void list_rebuild(struct list *l);
/* The row with this number in the given rows. */
const void *list_row_at(const struct list *l, int row);
/* The id of the row at this place of the order. */
/* Scrolls so that the cursor is among h rows. */
void list_scroll(struct list *l, int h);

#endif
