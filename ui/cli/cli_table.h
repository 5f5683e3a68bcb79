/* Rows for the command line: an aligned table, JSON (one object in a line) or CSV, from one table
 * of columns. Tables pass through model/base/text.h, also in a pipe, because a pipe may end at a
 * terminal. In JSON, characters that are unsafe for a terminal are written as \uNNNN. CSV in a pipe
 * is unchanged, except for cells that a spreadsheet would run as formulas. Times are ISO 8601 in
 * UTC in JSON and CSV. */
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
    bool formulas;                      /* CSV: do not change cells that a spreadsheet would run */
    const char *source;                 /* the first field of every JSON object */
    int64_t now_ms;                     /* for ages: the server's clock */
    bool (*estimates)(const void *row); /* whether the counts of a row are estimates; NULL = none
                                           are */
    struct buf *to;                     /* where to write; NULL = standard output */
    int most;                           /* most rows; 0 = all */
    bool follows; /* rows come one by one: each column has its width `most` at once */
    const struct column *columns[OUT_COLUMNS];
    int n;
    struct column made[OUT_COLUMNS], sort; /* for cli_table_choose: then do not copy the struct */
    bool is_sorted, desc;
    char names[OUT_COLUMNS + 1][2][OUT_NAME];
    int width[OUT_COLUMNS]; /* widths in the table, from the first rows */
    bool begun;
};

/* Selects the columns that belong to this form, and notes whether standard output is a terminal. */
void cli_table_begin(struct cli_table *o, enum out_form form, const char *source,
                     const struct column *columns);
/* Call after cli_table_begin. Selects only these columns, in this order (no names: the columns of
 * the form), and sorts the rows by "COLUMN[:asc|:desc]" (NULL: their own order). ERR_USAGE names
 * the columns that exist. */
bool cli_table_choose(struct cli_table *o, const struct column *columns,
                      const struct cli_list *names, const char *sort, struct err *e)
    __attribute__((warn_unused_result));
/* Prints n rows of `size` bytes, sorted; returns how many were written. May be called again: the
 * widths of the first call stay. */
int cli_table_rows(struct cli_table *o, const void *rows, int n, size_t size);
/* The same for an array of pointers to rows; the array is sorted in place. */
int cli_table_print(struct cli_table *o, const void **rows, int n);
void cli_table_sort(struct cli_table *o, const void **rows, int n);
/* The members of one row as JSON, without braces, for objects that have more members. No source:
 * NULL. */
void cli_table_members(const struct cli_table *o, const void *row, struct buf *b);
/* Prints one row for people, one line for each column that is not null. */
void cli_table_sideways(const struct cli_table *o, const void *row);
/* Prints a line to standard output: sanitised for a terminal, else unchanged. */
void cli_table_line(const char *s, size_t len);
/* Prints a line of JSON. */
void cli_table_json(const char *s, size_t len);

#endif
