/* The inside of a list, shared by list.c (rows, cursor), list_marks.c (marks), list_columns.c
 * (order and columns) and list_draw.c. Nobody else includes this. */
#ifndef UI_WIDGET_LIST_STATE_H
#define UI_WIDGET_LIST_STATE_H

#include "ui/widget/list.h"

enum { LIST_COLUMNS = 48, LIST_MADE = 4 };

struct made {          /* rows of list_set_pages */
    int of[LIST_MADE]; /* which they are, -1 = none */
    int next;          /* the oldest */
    char *selected;    /* a copy of the selected one */
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
    int *order; /* row numbers in the order shown */
    int count;  /* of order */
    bool (*keep)(void *ctx, const void *row);
    void *keep_ctx;

    char *cursor;                   /* id; NULL = none chosen yet */
    int index;                      /* its place in order; 0 when the list is empty */
    int top;                        /* first place on the screen */
    int page_h;                     /* rows drawn last time */
    struct rect rows_at, titles_at; /* where they were drawn; titles: w 0 = not at all */
    int widths[LIST_COLUMNS];       /* of the columns then */

    struct buf old_ids; /* ids in the order shown, each with its NUL, to find neighbours later */
    size_t *old_at;     /* where each begins */
    int old_n;

    char **marks; /* sorted ids */
    int nmarks;
    const char *target[1]; /* answer of list_targets without marks */

    int sort; /* column number, -1 = as given */
    bool desc;
    bool hidden[LIST_COLUMNS]; /* by the user or the screen */
    bool hide_empty;           /* and where no row has had a value yet: */
    bool filled[LIST_COLUMNS], lacks[LIST_COLUMNS];
    struct column own[LIST_COLUMNS]; /* the columns, with the widths of this list */
    bool more_above, more_below;
    struct buf scratch;
};

/* Looks which columns have values in these rows. */
void list_note_filled(struct list *l);
/* How wide each column is in w cells; 0 = not shown. */
void list_widths(const struct list *l, int w, int *widths);
/* Makes the order anew from rows, filter and sort, and finds the cursor again. */
void list_rebuild(struct list *l);
/* A row by its number as it was given. */
const void *list_row_at(const struct list *l, int row);
/* The id of the row at a place of the order. */
/* Scrolls so that the cursor is inside h rows. */
void list_scroll(struct list *l, int h);

#endif
