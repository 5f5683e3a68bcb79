/* Answers of the server: access by name, and decoding into arrays of structs by a table. A value
 * that does not fit its column is an error that names column and row; it never becomes a zero. */
#include "model/db/rows.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "model/base/mem.h"

struct result {
    PGresult *res;
};

struct result *
result_wrap(struct pg_result *res)
{
    struct result *r = xmalloc(sizeof *r);

    r->res = res;
    return r;
}

struct result *
result_new(const char *const *names, int n)
{
    PGresAttDesc *columns = xcalloc((size_t)n + 1, sizeof *columns);
    PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

    for (int i = 0; i < n; i++)
        columns[i].name = xstrdup(names[i]);
    if (!res || (n > 0 && !PQsetResultAttrs(res, n, columns)))
        abort();
    for (int i = 0; i < n; i++)
        free(columns[i].name);
    free(columns);
    return result_wrap((struct pg_result *)res);
}

void
result_put(struct result *r, int row, int col, const char *text, int len)
{
    /* libpq only reads it */
    if (!PQsetvalue(r->res, row, col, (char *)(uintptr_t)text, text ? len : -1))
        abort();
}

void
result_free(struct result *r)
{
    if (!r)
        return;
    PQclear(r->res);
    free(r);
}

int
result_rows(const struct result *r)
{
    return PQntuples(r->res);
}

int
result_cols(const struct result *r)
{
    return PQnfields(r->res);
}

/* Does not use PQfnumber, which turns unquoted upper case into lower case and strips quotes. */
int
result_col(const struct result *r, const char *name)
{
    int n = PQnfields(r->res);

    for (int i = 0; i < n; i++)
        if (strcmp(PQfname(r->res, i), name) == 0)
            return i;
    return -1;
}

const char *
result_name(const struct result *r, int col)
{
    const char *name = col >= 0 && col < PQnfields(r->res) ? PQfname(r->res, col) : NULL;

    return name ? name : "";
}

unsigned
result_type(const struct result *r, int col)
{
    return col >= 0 && col < PQnfields(r->res) ? PQftype(r->res, col) : 0;
}

bool
result_null(const struct result *r, int row, int col)
{
    if (row < 0 || row >= PQntuples(r->res) || col < 0 || col >= PQnfields(r->res))
        return true;
    return PQgetisnull(r->res, row, col) == 1;
}

const char *
result_text(const struct result *r, int row, int col)
{
    return result_null(r, row, col) ? "" : PQgetvalue(r->res, row, col);
}

int
result_len(const struct result *r, int row, int col)
{
    return result_null(r, row, col) ? 0 : PQgetlength(r->res, row, col);
}

static bool
parse_int(const char *s, int64_t *value)
{
    char *end = NULL;

    errno = 0;
    *value = strtoll(s, &end, 10);
    return end > s && *end == 0 && errno == 0;
}

int64_t
result_int(const struct result *r, int row, int col, int64_t if_null)
{
    int64_t value;

    return parse_int(result_text(r, row, col), &value) ? value : if_null;
}

unsigned char *
result_bytes(const struct result *r, int row, int col, size_t *len)
{
    const unsigned char *text = (const unsigned char *)result_text(r, row, col);
    unsigned char *raw = PQunescapeBytea(text, len);

    if (!raw)
        *len = 0;
    unsigned char *copy = xmalloc(*len + 1);
    memcpy(copy, raw ? raw : text, *len);
    copy[*len] = 0;
    PQfreemem(raw);
    return copy;
}

/* --- decoding --- */

static void
store_null(enum field_type type, void *at)
{
    switch (type) {
    case F_STR:
        *(const char **)at = "";
        return;
    case F_I64:
        *(int64_t *)at = FIELD_NULL;
        return;
    case F_INT:
        *(int *)at = INT_MIN;
        return;
    case F_DBL:
        *(double *)at = (double)NAN;
        return;
    case F_BOOL:
        *(int *)at = -1;
        return;
    }
}

/* Stores the value of text. NULL = stored; else a word for the type that was expected. */
static const char *
store_value(enum field_type type, void *at, const char *text)
{
    char *end = NULL;
    int64_t value;

    switch (type) {
    case F_STR:
        *(const char **)at = text;
        return NULL;
    case F_I64:
        if (!parse_int(text, &value))
            return "a whole number";
        *(int64_t *)at = value > FIELD_MOST    ? FIELD_MOST
                         : value < -FIELD_MOST ? -FIELD_MOST
                                               : value;
        return NULL;
    case F_INT:
        if (!parse_int(text, &value) || value < INT_MIN || value > INT_MAX)
            return "a small whole number";
        *(int *)at = (int)value;
        return NULL;
    case F_DBL:
        *(double *)at = strtod(text, &end);
        return end > text && *end == 0 ? NULL : "a number";
    case F_BOOL:
        *(int *)at = text[0] == 't';
        return (text[0] == 't' || text[0] == 'f') && text[1] == 0 ? NULL : "t or f";
    }
    return "of a known type";
}

static bool
read_cell(const struct result *r, int row, int col, const struct field *f, void *at, struct err *e)
{
    if (result_null(r, row, col)) {
        store_null(f->type, at);
        return true;
    }
    const char *text = PQgetvalue(r->res, row, col);
    const char *wanted = store_value(f->type, at, text);
    if (wanted)
        return fail(e, ERR_DATA, "column \"%s\", row %d: \"%.60s\" is not %s", f->name, row + 1,
                    text, wanted);
    return true;
}

static bool
find_column(const struct result *r, const struct field *f, int *col, struct err *e)
{
    *col = result_col(r, f->name);
    if (*col < 0 && !f->optional)
        return fail(e, ERR_DATA, "the answer has no column \"%s\"", f->name);
    return true;
}

bool
rows_columns(const struct result *r, const struct row_fields *f, struct err *e)
{
    for (int i = 0; i < f->n; i++)
        if (!find_column(r, &f->fields[i], &f->columns[i], e))
            return false;
    return true;
}

bool
rows_read(const struct result *r, int row, const struct row_fields *f, void *at, struct err *e)
{
    for (int i = 0; i < f->n; i++) {
        const struct field *field = &f->fields[i];
        if (!read_cell(r, row, f->columns[i], field, (char *)at + field->offset, e))
            return false;
    }
    return true;
}

static bool
decode_column(const struct result *r, const struct field *f, struct rowset *out, struct err *e)
{
    int col;

    if (!find_column(r, f, &col, e))
        return false;
    for (int i = 0; i < out->n; i++) {
        void *at = (char *)out->rows + (size_t)i * out->size + f->offset;
        if (!read_cell(r, i, col, f, at, e))
            return false;
    }
    return true;
}

bool
rowset_decode(struct result *r, const struct field *fields, int nfields, size_t size,
              struct rowset *out, struct err *e)
{
    *out = (struct rowset){.res = r, .n = PQntuples(r->res), .size = size};
    assert(size > 0);
    if (out->n > 0)
        out->rows = xcalloc((size_t)out->n, size);
    for (int i = 0; i < nfields; i++)
        if (!decode_column(r, &fields[i], out, e)) {
            rowset_free(out);
            return false;
        }
    return true;
}

void
rowset_free(struct rowset *s)
{
    result_free(s->res);
    free(s->rows);
    *s = (struct rowset){0};
}
