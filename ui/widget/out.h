/* Rows for the command line: an aligned table, JSON (one object a line) or CSV, from one table of
 * columns. Tables pass model/base/text.h, also in a pipe, because a pipe may end at a terminal. In
 * JSON, characters that a terminal must not get are \uNNNN. CSV in a pipe is unchanged, except for
 * cells that a spreadsheet would run. Times are ISO 8601 in UTC in JSON and CSV. */
#ifndef UI_WIDGET_OUT_H
#define UI_WIDGET_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"

enum out_form { OUT_TABLE, OUT_JSON, OUT_CSV };

enum out_kind {
    OUT_TEXT,       /* const char * */
    OUT_NAME,       /* const char *; "" is null */
    OUT_ID,         /* const char *; in the table as the console shows it: the last 8 digits */
    OUT_LIST,       /* const char *, comma separated: an array in JSON */
    OUT_JSON_VALUE, /* const char *: a JSON value, as it is in JSON; "" is null */
    OUT_INT,        /* int; INT_MIN is null */
    OUT_BIG,        /* int64_t; FIELD_NULL is null */
    OUT_COUNT,      /* the same; "~" before it in the table where the row's counts are estimates */
    OUT_TIME,       /* int64_t: ms since 1970 */
    OUT_SINCE,      /* int64_t: ms since 1970, shown as its age (seconds in JSON and CSV) */
    OUT_RATE,       /* double a second; NAN is null */
    OUT_BOOL        /* int: 1, 0, -1 is null */
};

struct out_column {
    const char *name;  /* in JSON and CSV; NULL = in the table only */
    const char *title; /* in the table; NULL = not there */
    enum out_kind kind;
    size_t offset;
    int most; /* cells in the table on a terminal; 0 = no limit */
};

enum { OUT_COLUMNS = 20 };

struct out {
    enum out_form form;
    bool terminal;
    bool formulas;      /* CSV: cells that a spreadsheet would run stay as they are */
    const char *source; /* the first field of every JSON object */
    int64_t now_ms;     /* for ages: the server's clock */
    bool (*estimates)(const void *row); /* its counts are; NULL = none are */
    const struct out_column *columns;
    int n;
    int width[OUT_COLUMNS]; /* of the table; made from the first rows */
    bool begun;
};

/* terminal: standard output is one. columns end with {0}: neither name nor title. */
void out_begin(struct out *o, enum out_form form, const char *source,
               const struct out_column *columns);
/* n rows of `size` bytes to standard output. May be called again: widths stay those of the first.
 */
void out_rows(struct out *o, const void *rows, int n, size_t size);
/* Members of one row as JSON, without braces; for objects with more in them. No source: NULL. */
void out_members(const struct out *o, const void *row, struct buf *b);
/* One row for people, a line a column that is not null. */
void out_sideways(const struct out *o, const void *row);
/* A line to standard output: unchanged, or sanitised for a terminal. */
void out_line(const char *s, size_t len);
/* A line of JSON. */
void out_json(const char *s, size_t len);

#endif
