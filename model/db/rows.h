/* From an answer of the server to an array of structs, by a table of columns: name in SQL, kind,
 * offset in the struct. Columns are matched by name once an answer; a missing one is ERR_DATA that
 * names it, an unknown one is ignored. A result owns its bytes; strings of the rows point into it.
 */
#ifndef MODEL_DB_ROWS_H
#define MODEL_DB_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/field.h"

struct result; /* an answer of the server; the only owner of its PGresult */
void result_free(struct result *r);
int result_rows(const struct result *r);
int result_cols(const struct result *r);
int result_col(const struct result *r, const char *name); /* -1 = no such column */
const char *result_name(const struct result *r, int col);
unsigned result_type(const struct result *r, int col); /* the Oid of its type; 0 = no column */
bool result_null(const struct result *r, int row, int col);
const char *result_text(const struct result *r, int row, int col); /* "" for NULL; NUL-terminated */
int result_len(const struct result *r, int row, int col);
int64_t result_int(const struct result *r, int row, int col, int64_t if_null);
/* bytea in text format (\x...) -> bytes; the caller frees. */
unsigned char *result_bytes(const struct result *r, int row, int col, size_t *len);

/* A decoded answer: n rows of `size` bytes each. Immutable; rowset_free frees rows and result. */
struct rowset {
    struct result *res;
    void *rows;
    int n;
    size_t size;
};
/* Takes r over (also on failure). */
bool rowset_decode(struct result *r, const struct field *fields, int nfields, size_t size,
                   struct rowset *out, struct err *e) __attribute__((warn_unused_result));
void rowset_free(struct rowset *s);

/* Decodes row by row, for answers that are too long to be kept. First finds the column of each
 * field (-1 = an optional column that the answer does not have), then fills one struct from one
 * row. */
struct row_fields {
    const struct field *fields;
    int n;
    int *columns; /* n of them */
};
bool rows_columns(const struct result *r, const struct row_fields *f, struct err *e)
    __attribute__((warn_unused_result));
bool rows_read(const struct result *r, int row, const struct row_fields *f, void *at, struct err *e)
    __attribute__((warn_unused_result));

/* A table made by hand (recordings): its columns, then cell by cell, row after row. NULL text = SQL
 * NULL; len bytes without NUL. */
struct result *result_new(const char *const *names, int n);
void result_put(struct result *r, int row, int col, const char *text, int len);

/* For tests and for db.c: a result of PGresult * (taken over). */
struct pg_result;
struct result *result_wrap(struct pg_result *res);

#endif
