/* A row of a table (RFC 4180) or a line of JSON becomes a job, or a line in a file of rejects, for
 * imports (ui/write/cli_import.c). Nothing here reads, writes or asks. */
#ifndef UI_WRITE_IMPORT_ROWS_H
#define UI_WRITE_IMPORT_ROWS_H

#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "ui/cli/cli.h"

/* The most bytes of a row. */
enum { IMPORT_RECORD = 16 << 20, IMPORT_COLUMNS = 32 };

struct import_row { /* its place in the input, without its line end */
    const char *text;
    size_t len;
    int64_t line;
    uint64_t before;  /* import_hash() of the rows before it */
    bool is_too_long; /* the row was not kept: text is empty */
    bool is_open;     /* the input ends inside quotes */
};

struct known_column;
struct import_columns {
    bool is_json;
    const struct cli_list *names;                       /* --columns: NAME=COLUMN each */
    bool is_again;                                      /* the rejects of an earlier import */
    const struct known_column *columns[IMPORT_COLUMNS]; /* of a table, from its header */
    int n;
    struct buf header; /* as written */
};

/* False: --columns is wrong. */
bool import_names(const struct cli_list *names, struct err *e) __attribute__((warn_unused_result));
/* Reads the header: the first row of a table. */
bool import_header(struct import_columns *c, struct arena *mem, const struct import_row *row,
                   struct err *e) __attribute__((warn_unused_result));
void import_done(struct import_columns *c);

/* Adds the values of the row to job; they live as long as mem and the row. */
bool import_job(const struct import_columns *c, struct arena *mem, const struct import_row *row,
                struct queue_push *job, struct err *e) __attribute__((warn_unused_result));
bool import_is_blank(const struct import_columns *c, const struct import_row *row);

bool import_too_long(bool is_open, struct err *e); /* always false; is_open: in quotes */

/* The header of a table of rejects, without its line end. */
void import_reject_header(const struct import_columns *c, struct buf *out);
/* A reject: line, cause, and the row, so that it can be corrected and imported. If it is not
 * corrected, it is rejected again. */
void import_reject(const struct import_columns *c, const struct import_row *row, const char *why,
                   struct buf *out);

#endif
