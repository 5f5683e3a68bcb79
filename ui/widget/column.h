/* Columns as data: a row of a table has the name, the kind, and the offset of the value in the
 * row's struct. The kind decides how the value is compared, written, aligned and coloured, and in
 * which direction it is sorted first. The same row is used by the screen, the command line's table,
 * JSON and CSV. To add a column, add one row to such a table and one line to the SQL. */
#ifndef UI_WIDGET_COLUMN_H
#define UI_WIDGET_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/term/fmt.h"
#include "ui/term/grid.h"
#include "ui/term/style.h"

/* kind          the C type of the field     how it is shown; a zero of counts and rates: "·" */
enum column_kind {
    K_SAME,     /* of `plain`: the column's own kind */
    K_TEXT,     /* const char *                left, cut with an ellipsis */
    K_NAME,     /* const char *                as K_TEXT; "" is null in JSON */
    K_NOTE,     /* const char *                as K_TEXT, quieter */
    K_LIST,     /* const char *                as K_TEXT, split by commas: an array in JSON */
    K_JSON,     /* const char *                as K_NAME; a JSON value, as it is in JSON */
    K_STATE,    /* const char * (glossary)     glyph and word, coloured: "× failed" */
    K_UUID,     /* const char *                the last 8 digits */
    K_INT,      /* int (F_INT)                 plain number */
    K_BIG,      /* int64_t                     plain number (lease, pid) */
    K_COUNT,    /* int64_t                     "18,234", narrowed when needed */
    K_RATE,     /* double                      per second */
    K_PERCENT,  /* double, 0 to 1              "58%" */
    K_BYTES,    /* int64_t */
    K_AGE,      /* int64_t, ms since 1970      time between it and now */
    K_TIME,     /* int64_t, ms since 1970      time of day */
    K_DURATION, /* int64_t, ms                 "30.9s" */
    K_WAIT,     /* int64_t, ms (an age)        "4m 10s" */
    K_BOOL,     /* int: 1, 0, -1 = unknown     "yes", "no" */
    K_CUSTOM,   /* whatever `special` draws */
    KINDS
};

/* What the function of a cell may read. */
struct cell_ctx {
    int64_t now_ms;
    bool utc;
    void *ctx;           /* ctx of the list's list_def */
    struct buf *scratch; /* memory for the text of a cell; NULL = allocated and freed each time */
    bool approx;         /* the row's counts are estimates */
};

/* For columns whose kind is not enough; any member may be unset (NULL, K_CUSTOM). */
struct column_special {
    /* Draws the cell (K_CUSTOM); r is one row high. */
    void (*draw)(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c);
    /* A role for the cell instead of the kind's role. */
    enum role (*role)(const void *row, const struct cell_ctx *c);
    /* For K_CUSTOM columns: sorts like a field of this kind at the offset; K_CUSTOM = not sortable.
     */
    enum column_kind sort_as;
    bool right; /* K_CUSTOM: title at the right */
};

enum column_place { ON_SCREEN = 1, IN_TABLE = 2, IN_DATA = 4 }; /* data: JSON and CSV */

struct column {        /* tables of them end with {0} */
    const char *name;  /* its name in SQL, in the configuration and in JSON; NULL = not in data */
    const char *title; /* the title above the column; NULL = only in data */
    const char *help;  /* one line of help */
    enum column_kind kind;
    size_t offset; /* offset of the field in the row's struct */
    unsigned only; /* bits of enum column_place; 0 = everywhere. Rows that are not ON_SCREEN come
                      after those that are. */

    /* for the screen, where the columns are in the order of these rows */
    int min_w, max_w; /* cells; max_w 0 = takes the spare width of the screen */
    int keep;         /* 0 = always shown; else the higher the sooner dropped when narrow;
                         100 and more = hidden until the user asks for it */
    const struct column_special *special; /* may be NULL */

    /* the command line: ui/cli/cli_table.h */
    int place;                /* in the order of the columns there; 0 = last, as the rows stand */
    const char *json, *table; /* its name in data and title there, if they differ */
    enum column_kind plain;   /* its kind there, if it differs */
    int most;                 /* cells of the table on a terminal; 0 = no limit */
};

int column_count(const struct column *c); /* those for the screen */
/* The value by which a row is sorted in a column, read once; a text is borrowed. */
struct column_value {
    union {
        const char *text;
        int64_t number;
        double real;
    };
};
struct column_value column_value(const struct column *c, const void *row);
/* Total order of two such values, ascending: NULLs come last whatever `desc` says. Ages are
 * compared as ages: the younger one is less. */
int column_order(const struct column *c, struct column_value a, struct column_value b, bool desc);
bool column_is_null(const struct column *c, const void *row); /* not if its kind is unknown */
bool column_sortable(const struct column *c);
enum column_kind column_plain_kind(const struct column *c); /* on the command line */
bool column_right(const struct column *c);      /* numbers and times are right-aligned */
bool column_desc_first(const struct column *c); /* counts and ages: largest first */
/* The text of a cell in at most w cells (w <= 0: no limit, for batch tables and for tests). "" for
 * K_CUSTOM. The text is not sanitised: pass it through grid_text or text_clean. */
void column_text(const struct column *c, const void *row, const struct cell_ctx *ctx, int w,
                 struct buf *out);
void column_draw(const struct column *c, struct grid *g, struct rect r, const void *row,
                 const struct cell_ctx *ctx);

/* Glyph and role for the word of a state, also of a node; unknown words are plain. */
const char *state_glyph(const char *state);
enum role state_role(const char *state);

/* Which columns fit in w cells, and their widths: widths[i] = 0 if hidden; the gap of one cell
 * between columns is not included. hidden[i]: the user has switched the column off. Pure. The first
 * column always stays. */
void column_layout(const struct column *c, int n, const bool *hidden, int w, int *widths);

#endif
