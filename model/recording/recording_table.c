/*
 * Tables -> bytes and back. A row is compared with the row of the base that has the same first
 * column (a queue's name, an id); a new row is compared with the row above it. Each cell is a
 * number: 0 = the same, 1 = NULL, 2 = a text follows, else a difference of whole numbers. Cells are
 * written column by column, because neighbours in a column are alike.
 */
#include "model/recording/recording_table.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_SAME, OP_NULL, OP_TEXT, OP_NUMBER };
enum { HAS_BASE = 1 };

void
recording_done(struct recording_table *t)
{
    free(t->cells);
    buf_free(&t->text);
    *t = (struct recording_table){0};
}

static void
add_cell(struct recording_table *t, int i, const char *s, int len)
{
    struct recording_cell *c = &t->cells[i];

    *c = (struct recording_cell){(uint32_t)t->text.len, len};
    if (len >= 0) {
        buf_add(&t->text, s, (size_t)len);
        buf_add(&t->text, "", 1);
    }
}

static void
table_make(struct recording_table *t, int cols, int rows)
{
    *t = (struct recording_table){.cols = cols, .rows = rows};
    t->cells = xcalloc((size_t)cols * ((size_t)rows + 1) + 1, sizeof *t->cells);
}

static void
add_value(struct recording_table *t, int i, const char *s, int len)
{
    if (len <= TABLE_CELL_MAX) {
        add_cell(t, i, s, len);
        return;
    }
    char *cut = xasprintf("%.*s...", TABLE_CELL_MAX - 3, s);
    add_cell(t, i, cut, TABLE_CELL_MAX);
    free(cut);
}

/* Rows that do not fit into a packed table are left out at the end. No section answers with that
 * many. */
void
recording_of_result(struct recording_table *t, const struct result *r)
{
    int cols = result_cols(r), rows = result_rows(r);

    cols = cols > TABLE_COLS_MAX ? TABLE_COLS_MAX : cols;
    if (cols > 0 && rows > TABLE_CELLS_MAX / cols)
        rows = TABLE_CELLS_MAX / cols;
    table_make(t, cols, rows);
    for (int c = 0; c < cols; c++)
        add_cell(t, c, result_name(r, c), (int)strlen(result_name(r, c)));
    for (int i = 0; i < rows; i++) {
        if (t->text.len > TABLE_TEXT_MAX / 2) {
            t->rows = i;
            return;
        }
        for (int c = 0; c < cols; c++)
            add_value(t, (i + 1) * cols + c, result_text(r, i, c),
                      result_null(r, i, c) ? -1 : result_len(r, i, c));
    }
}

/* The cell of a row; row -1 holds the names of the columns. */
static const struct recording_cell *
cell_of(const struct recording_table *t, int row, int col)
{
    return &t->cells[(row + 1) * t->cols + col];
}

static const char *
text_of(const struct recording_table *t, const struct recording_cell *c)
{
    return c->len >= 0 ? t->text.data + c->at : "";
}

const char *
recording_text(const struct recording_table *t, int row, int col)
{
    if (row < 0 || row >= t->rows || col < 0 || col >= t->cols)
        return "";
    return text_of(t, cell_of(t, row, col));
}

struct result *
recording_result(const struct recording_table *t)
{
    const char **names = xcalloc((size_t)t->cols + 1, sizeof *names);

    for (int c = 0; c < t->cols; c++)
        names[c] = text_of(t, cell_of(t, -1, c));
    struct result *r = result_new(names, t->cols);
    for (int i = 0; i < t->rows; i++)
        for (int c = 0; c < t->cols; c++) {
            const struct recording_cell *cell = cell_of(t, i, c);
            result_put(r, i, c, cell->len >= 0 ? text_of(t, cell) : NULL, cell->len);
        }
    free(names);
    return r;
}

/* --- packing --------------------------------------------------------------------------------- */

static bool
same_cell(const struct recording_table *a, const struct recording_cell *x,
          const struct recording_table *b, const struct recording_cell *y)
{
    return x->len == y->len &&
           (x->len <= 0 || !memcmp(text_of(a, x), text_of(b, y), (size_t)x->len));
}

static bool
same_columns(const struct recording_table *a, const struct recording_table *b)
{
    if (a->cols != b->cols)
        return false;
    for (int c = 0; c < a->cols; c++)
        if (!same_cell(a, cell_of(a, -1, c), b, cell_of(b, -1, c)))
            return false;
    return true;
}

/* The row of the base with the same first cell, looked for from a place on; -1 = none. */
static int
match(const struct recording_table *t, int row, const struct recording_table *base, int from)
{
    for (int k = 0; k < base->rows; k++) {
        int i = (from + k) % base->rows;
        if (same_cell(t, cell_of(t, row, 0), base, cell_of(base, i, 0)))
            return i;
    }
    return -1;
}

/* A whole number as the server writes it, so that the difference gives back the same text. */
static bool
whole(const struct recording_table *t, const struct recording_cell *c, int64_t *v)
{
    const char *s = text_of(t, c), *d = s + (*s == '-');
    size_t n = c->len > 0 ? strspn(d, "0123456789") : 0;

    if (n == 0 || n > 17 || d + n != s + c->len || (*d == '0' && (n > 1 || d > s)))
        return false;
    *v = strtoll(s, NULL, 10);
    return true;
}

static void
pack_cell(struct buf *out, const struct recording_table *t, const struct recording_cell *c,
          const struct recording_table *bt, const struct recording_cell *b)
{
    int64_t now, was;

    if (b && same_cell(t, c, bt, b)) {
        bytes_put(out, OP_SAME);
    } else if (c->len < 0) {
        bytes_put(out, OP_NULL);
    } else if (b && whole(t, c, &now) && whole(bt, b, &was)) {
        struct buf one = {0};
        bytes_put_signed(&one, now - was);
        struct recording_bytes in = {(const unsigned char *)one.data, one.len, 0, true};
        bytes_put(out, OP_NUMBER + bytes_get(&in));
        buf_free(&one);
    } else {
        bytes_put(out, OP_TEXT);
        bytes_put_text(out, text_of(t, c), (size_t)c->len);
    }
}

/* Which row of which table a cell is compared with: the base's, or the one above. */
static const struct recording_cell *
model_of(const struct recording_table *t, const struct recording_table *base, int row, int col,
         int matched, const struct recording_table **of)
{
    *of = matched >= 0 ? base : t;
    if (matched >= 0)
        return cell_of(base, matched, col);
    return row > 0 ? cell_of(t, row - 1, col) : NULL;
}

void
recording_pack(struct buf *out, const struct recording_table *t, const struct recording_table *base)
{
    int *rows = xcalloc((size_t)t->rows + 1, sizeof *rows), next = 0;
    const struct recording_table *of;

    if (base && (!same_columns(t, base) || base->rows == 0))
        base = NULL;
    bytes_put(out, base ? HAS_BASE : 0);
    bytes_put(out, (uint64_t)t->rows);
    if (!base) {
        bytes_put(out, (uint64_t)t->cols);
        for (int c = 0; c < t->cols; c++)
            bytes_put_text(out, text_of(t, cell_of(t, -1, c)), (size_t)cell_of(t, -1, c)->len);
    }
    for (int i = 0; i < t->rows; i++) {
        rows[i] = base && t->cols > 0 ? match(t, i, base, next % base->rows) : -1;
        if (base) /* 0 = a new row, else 1 + its distance from the expected row */
            bytes_put_signed(out, rows[i] < 0 ? INT32_MIN : rows[i] - next);
        next = rows[i] < 0 ? next : rows[i] + 1;
    }
    for (int c = 0; c < t->cols; c++)
        for (int i = 0; i < t->rows; i++) {
            const struct recording_cell *m = model_of(t, base, i, c, rows[i], &of);
            pack_cell(out, t, cell_of(t, i, c), of, m);
        }
    free(rows);
}

/* --- unpacking ------------------------------------------------------------------------------- */

static bool
put_copy(struct recording_table *t, int i, const char *s, int len)
{
    if (t->text.len + (size_t)(len > 0 ? len : 0) + 1 > TABLE_TEXT_MAX)
        return false;
    add_cell(t, i, s, len);
    return true;
}

static bool
put_same(struct recording_table *t, int i, const struct recording_table *of,
         const struct recording_cell *b)
{
    if (!b)
        return false;
    if (b->len < 0)
        return put_copy(t, i, NULL, -1);
    char *copy = xstrndup(text_of(of, b), (size_t)b->len); /* `of` may be t itself, whose text
                                                              moves when it grows */
    bool ok = put_copy(t, i, copy, (int)strlen(copy));
    free(copy);
    return ok;
}

static bool
unpack_cell(struct recording_bytes *in, struct recording_table *t, int i,
            const struct recording_table *of, const struct recording_cell *b)
{
    uint64_t op = bytes_get(in);
    char number[32];
    int64_t was, now;
    size_t len;

    if (!in->ok)
        return false;
    if (op == OP_SAME)
        return put_same(t, i, of, b);
    if (op == OP_NULL)
        return put_copy(t, i, NULL, -1);
    if (op == OP_TEXT) {
        const char *s = bytes_get_text(in, &len);
        return in->ok && len < INT_MAX && !memchr(s, 0, len) && put_copy(t, i, s, (int)len);
    }
    uint64_t folded = op - OP_NUMBER;
    int64_t d = (int64_t)(folded >> 1) ^ -(int64_t)(folded & 1);
    if (!b || !whole(of, b, &was) || __builtin_add_overflow(was, d, &now))
        return false;
    int n = snprintf(number, sizeof number, "%lld", (long long)now);
    return put_copy(t, i, number, n);
}

static bool
unpack_names(struct recording_bytes *in, const struct recording_table *base,
             struct recording_table *t)
{
    size_t len;

    for (int c = 0; c < t->cols; c++) {
        const char *s = base ? text_of(base, cell_of(base, -1, c)) : bytes_get_text(in, &len);
        if (base)
            len = strlen(s);
        if (!in->ok || len > 1000 || memchr(s, 0, len) || !put_copy(t, c, s, (int)len))
            return false;
    }
    return true;
}

/* The cells are made column by column, but a cell's place in memory does not depend on that. */
static bool
unpack_cells(struct recording_bytes *in, const struct recording_table *base, const int *rows,
             struct recording_table *t)
{
    const struct recording_table *of;

    for (int c = 0; c < t->cols; c++)
        for (int i = 0; i < t->rows; i++) {
            const struct recording_cell *m = model_of(t, base, i, c, rows[i], &of);
            if (!unpack_cell(in, t, (i + 1) * t->cols + c, of, m))
                return false;
        }
    return true;
}

static bool
unpack_rows(struct recording_bytes *in, const struct recording_table *base, int *rows, int n)
{
    int64_t next = 0;

    for (int i = 0; i < n; i++) {
        rows[i] = -1;
        int64_t d = base ? bytes_get_signed(in) : INT32_MIN;
        if (d == INT32_MIN)
            continue;
        if (!in->ok || d < -next || d >= base->rows - next)
            return false;
        rows[i] = (int)(next + d);
        next = rows[i] + 1;
    }
    return in->ok;
}

bool
recording_unpack(struct recording_bytes *in, const struct recording_table *base,
                 struct recording_table *out)
{
    uint64_t flags = bytes_get(in), rows = bytes_get(in), cols;

    *out = (struct recording_table){0};
    if (!(flags & HAS_BASE))
        base = NULL;
    else if (!base)
        return false;
    cols = base ? (uint64_t)base->cols : bytes_get(in);
    /* each cell takes at least one byte, so a count larger than the rest of the bytes is false */
    if (!in->ok || cols > TABLE_COLS_MAX || rows > TABLE_CELLS_MAX ||
        rows * (cols + (base ? 1 : 0)) > in->len - in->at)
        return false;
    if (cols == 0 && rows > 0)
        return false;
    table_make(out, (int)cols, (int)rows);
    int *matched = xcalloc((size_t)rows + 1, sizeof *matched);
    bool ok = unpack_names(in, base, out) && unpack_rows(in, base, matched, (int)rows) &&
              unpack_cells(in, base, matched, out);
    free(matched);
    if (!ok)
        recording_done(out);
    return ok;
}

/* --- numbers and texts as bytes --- */

/* Numbers and texts as bytes. A number takes seven bits of each byte; its sign is the lowest
 * bit. */

void
bytes_put(struct buf *out, uint64_t v)
{
    unsigned char b[10];
    int n = 0;

    while (v >= 0x80) {
        b[n++] = (unsigned char)(v & 0x7F) | 0x80;
        v >>= 7;
    }
    b[n++] = (unsigned char)v;
    buf_add(out, b, (size_t)n);
}

static uint64_t
fold(int64_t v)
{
    return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

void
bytes_put_signed(struct buf *out, int64_t v)
{
    bytes_put(out, fold(v));
}

void
bytes_put_text(struct buf *out, const char *s, size_t len)
{
    bytes_put(out, len);
    buf_add(out, s, len);
}

uint64_t
bytes_get(struct recording_bytes *in)
{
    uint64_t v = 0;

    for (unsigned shift = 0; in->ok && shift < 64; shift += 7) {
        if (in->at == in->len)
            break;
        unsigned char c = in->p[in->at++];
        v |= (uint64_t)(c & 0x7F) << shift;
        if (!(c & 0x80))
            return v;
    }
    in->ok = false;
    return 0;
}

int64_t
bytes_get_signed(struct recording_bytes *in)
{
    uint64_t v = bytes_get(in);

    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

const char *
bytes_get_text(struct recording_bytes *in, size_t *len)
{
    uint64_t n = bytes_get(in);

    if (!in->ok || n > in->len - in->at) {
        in->ok = false;
        *len = 0;
        return "";
    }
    const char *s = (const char *)in->p + in->at;
    *len = (size_t)n;
    in->at += *len;
    return s;
}
