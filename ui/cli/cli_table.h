/* Rows for the command line: an aligned table, JSON (one object a line) or CSV, from one table of
 * columns. Tables pass model/base/text.h, also in a pipe, because a pipe may end at a terminal. In
 * JSON, characters that a terminal must not get are \uNNNN. CSV in a pipe is unchanged, except for
 * cells that a spreadsheet would run. Times are ISO 8601 in UTC in JSON and CSV. */
#ifndef UI_CLI_CLI_TABLE_H
#define UI_CLI_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "ui/cli/cli.h"
#include "ui/widget/column.h"

enum out_form { OUT_TABLE, OUT_JSON, OUT_CSV };

enum { OUT_COLUMNS = 32, OUT_NAME = 24 };

struct cli_table {
    enum out_form form;
    bool terminal;
    bool formulas;      /* CSV: cells that a spreadsheet would run stay as they are */
    const char *source; /* the first field of every JSON object */
    int64_t now_ms;     /* for ages: the server's clock */
    bool (*estimates)(const void *row); /* whether the counts of a row are estimates; NULL = none
                                           are */
    struct buf *to;                     /* instead of standard output; NULL = there */
    int most;                           /* rows; 0 = all */
    const struct column *columns[OUT_COLUMNS];
    int n;
    struct column made[OUT_COLUMNS], sort; /* of cli_table_choose: don't copy the struct then */
    bool is_sorted, desc;
    char names[OUT_COLUMNS + 1][2][OUT_NAME];
    int width[OUT_COLUMNS]; /* of the table; made from the first rows */
    bool begun;
};

/* Takes those of the columns that belong to this form, and notes whether standard output is a
 * terminal. */
void cli_table_begin(struct cli_table *o, enum out_form form, const char *source,
                     const struct column *columns);
/* After cli_table_begin: these columns only, in this order (none: those of the form), and the rows
 * sorted by "COLUMN[:asc|:desc]" (NULL: as they come). ERR_USAGE names the columns that exist. */
bool cli_table_choose(struct cli_table *o, const struct column *columns,
                      const struct cli_list *names, const char *sort, struct err *e)
    __attribute__((warn_unused_result));
/* n rows of `size` bytes, sorted; says how many were written. May be called again: widths stay
 * those of the first. */
int cli_table_rows(struct cli_table *o, const void *rows, int n, size_t size);
/* The same for rows that stand apart; the array is sorted in place. */
int cli_table_print(struct cli_table *o, const void **rows, int n);
void cli_table_sort(struct cli_table *o, const void **rows, int n);
/* Members of one row as JSON, without braces; for objects with more in them. No source: NULL. */
void cli_table_members(const struct cli_table *o, const void *row, struct buf *b);
/* One row for people, a line a column that is not null. */
void cli_table_sideways(const struct cli_table *o, const void *row);
/* A line to standard output: unchanged, or sanitised for a terminal. */
void cli_table_line(const char *s, size_t len);
/* A line of JSON. */
void cli_table_json(const char *s, size_t len);

#endif
