/*
 * Rows for the command line. A cell is made once as text, by its kind and the form; the forms
 * differ in how cells are joined.
 */
#include "ui/widget/out.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/field.h"
#include "model/base/text.h"
#include "ui/term/fmt.h"

#define AT(type, row, col) (*(const type *)((const char *)(row) + (col)->offset))

void
out_begin(struct out *o, enum out_form form, const char *source, const struct out_column *columns)
{
    *o = (struct out){.form = form, .source = source, .columns = columns};
    o->terminal = isatty(STDOUT_FILENO);
    while (columns[o->n].name || columns[o->n].title)
        o->n++;
}

void
out_json(const char *s, size_t len)
{
    struct buf safe = {0};

    json_armour(&safe, s, len);
    buf_str(&safe, "\n");
    fwrite(safe.data, 1, safe.len, stdout);
    buf_free(&safe);
}

void
out_line(const char *s, size_t len)
{
    struct buf clean = {0};

    text_clean(&clean, s, len, TEXT_LINE, INT_MAX);
    buf_str(&clean, "\n");
    fwrite(clean.data, 1, clean.len, stdout);
    buf_free(&clean);
}

/* --- cells ------------------------------------------------------------------------------------ */

static bool
is_null(const struct out_column *c, const void *row)
{
    switch (c->kind) {
    case OUT_TEXT:
    case OUT_ID:
    case OUT_LIST:
        return false;
    case OUT_JSON_VALUE:
    case OUT_NAME:
        return !*AT(char *const, row, c);
    case OUT_INT:
        return AT(int, row, c) == INT_MIN;
    case OUT_BIG:
    case OUT_COUNT:
    case OUT_TIME:
    case OUT_SINCE:
        return AT(int64_t, row, c) == FIELD_NULL;
    case OUT_RATE:
        return isnan(AT(double, row, c));
    case OUT_BOOL:
        return AT(int, row, c) < 0;
    }
    return true;
}

static void
add_seconds(struct buf *b, int64_t ms)
{
    buf_printf(b, "%s%" PRId64 ".%03d", ms < 0 ? "-" : "", ms < 0 ? -ms / 1000 : ms / 1000,
               (int)(ms < 0 ? -ms % 1000 : ms % 1000));
}

static bool
is_text(enum out_kind kind)
{
    return kind == OUT_TEXT || kind == OUT_NAME || kind == OUT_LIST || kind == OUT_ID ||
           kind == OUT_JSON_VALUE;
}

/* The value for programs, unquoted. */
static void
add_plain(const struct out *o, const struct out_column *c, const void *row, struct buf *b)
{
    if (is_text(c->kind))
        buf_str(b, AT(char *const, row, c));
    else if (c->kind == OUT_INT)
        buf_printf(b, "%d", AT(int, row, c));
    else if (c->kind == OUT_BIG || c->kind == OUT_COUNT)
        buf_printf(b, "%" PRId64, AT(int64_t, row, c));
    else if (c->kind == OUT_TIME)
        buf_str(b, fmt_iso(AT(int64_t, row, c)).s);
    else if (c->kind == OUT_SINCE)
        add_seconds(b, o->now_ms - AT(int64_t, row, c));
    else if (c->kind == OUT_RATE)
        buf_printf(b, "%.2f", AT(double, row, c));
    else
        buf_str(b, AT(int, row, c) ? "true" : "false");
}

/* The value for people. */
static void
add_cell(const struct out *o, const struct out_column *c, const void *row, struct buf *b)
{
    if (is_null(c, row))
        buf_str(b, "-");
    else if (c->kind == OUT_ID)
        buf_str(b, fmt_id_tail(AT(char *const, row, c)).s);
    else if (c->kind == OUT_SINCE)
        buf_str(b, fmt_age(o->now_ms - AT(int64_t, row, c)).s);
    else if (c->kind == OUT_TIME)
        buf_str(b, fmt_date_time(AT(int64_t, row, c), false).s);
    else if (c->kind == OUT_RATE)
        buf_str(b, fmt_rate(AT(double, row, c)).s);
    else if (c->kind == OUT_BOOL)
        buf_str(b, AT(int, row, c) ? "yes" : "no");
    else if (is_text(c->kind)) /* in a pipe, too: it may end at a terminal */
        text_clean(b, AT(char *const, row, c), strlen(AT(char *const, row, c)), TEXT_LINE,
                   c->most && o->terminal ? c->most : INT_MAX);
    else {
        buf_str(b, c->kind == OUT_COUNT && o->estimates && o->estimates(row) ? "~" : "");
        add_plain(o, c, row, b);
    }
}

/* The first column of a row for people, "" for null; the caller frees. */
static char *
out_text(const struct out *o, const void *row)
{
    struct buf b = {0};

    buf_str(&b, "");
    if (!is_null(&o->columns[0], row))
        add_cell(o, &o->columns[0], row, &b);
    return b.data;
}

/* --- table ------------------------------------------------------------------------------------ */

static bool
is_right(enum out_kind kind)
{
    return kind == OUT_INT || kind == OUT_BIG || kind == OUT_COUNT || kind == OUT_SINCE ||
           kind == OUT_RATE;
}

static void
add_padded(struct buf *line, const struct out *o, int col, const char *s, size_t len)
{
    int gap = o->width[col] - text_width(s, len, TEXT_LINE);
    bool right = is_right(o->columns[col].kind), last = true;

    for (int i = col + 1; i < o->n; i++)
        last &= !o->columns[i].title;
    if (line->len > 0)
        buf_str(line, "  ");
    if (right && gap > 0)
        buf_printf(line, "%*s", gap, "");
    buf_add(line, s, len);
    if (!right && gap > 0 && !last)
        buf_printf(line, "%*s", gap, "");
}

static void
put_line(struct buf *line)
{
    while (line->len > 0 && line->data[line->len - 1] == ' ')
        line->len--;
    buf_str(line, "\n");
    fwrite(line->data, 1, line->len, stdout);
    buf_clear(line);
}

static void
measure(struct out *o, const void *rows, int n, size_t size)
{
    struct buf cell = {0};

    for (int c = 0; c < o->n; c++) {
        const struct out_column *col = &o->columns[c];
        if (!col->title)
            continue;
        o->width[c] = (int)strlen(col->title);
        for (int i = 0; i < n; i++) {
            buf_clear(&cell);
            add_cell(o, col, (const char *)rows + (size_t)i * size, &cell);
            int w = text_width(cell.data ? cell.data : "", cell.len, TEXT_LINE);
            if (w > o->width[c])
                o->width[c] = w;
        }
    }
    buf_free(&cell);
}

static void
table_rows(struct out *o, const void *rows, int n, size_t size)
{
    struct buf line = {0}, cell = {0};

    if (!o->begun) {
        measure(o, rows, n, size);
        for (int c = 0; c < o->n; c++)
            if (o->columns[c].title)
                add_padded(&line, o, c, o->columns[c].title, strlen(o->columns[c].title));
        put_line(&line);
    }
    for (int i = 0; i < n; i++) {
        for (int c = 0; c < o->n; c++) {
            if (!o->columns[c].title)
                continue;
            buf_clear(&cell);
            add_cell(o, &o->columns[c], (const char *)rows + (size_t)i * size, &cell);
            add_padded(&line, o, c, cell.data ? cell.data : "", cell.len);
        }
        put_line(&line);
    }
    buf_free(&line);
    buf_free(&cell);
}

/* --- JSON and CSV ----------------------------------------------------------------------------- */

static void
add_json_list(struct buf *b, const char *s)
{
    buf_str(b, "[");
    for (bool first = true; *s; first = false) {
        size_t len = strcspn(s, ",");
        buf_str(b, first ? "" : ", ");
        json_string(b, s, len);
        s += len + (s[len] == ',');
    }
    buf_str(b, "]");
}

static void
add_json(const struct out *o, const struct out_column *c, const void *row, struct buf *b)
{
    struct buf plain = {0};

    if (is_null(c, row)) {
        buf_str(b, "null");
    } else if (c->kind == OUT_LIST) {
        add_json_list(b, AT(char *const, row, c));
    } else if (c->kind == OUT_JSON_VALUE) {
        buf_str(b, AT(char *const, row, c));
    } else if (is_text(c->kind) || c->kind == OUT_TIME) {
        add_plain(o, c, row, &plain);
        json_string(b, plain.data ? plain.data : "", plain.len);
    } else {
        add_plain(o, c, row, b);
    }
    buf_free(&plain);
}

void
out_members(const struct out *o, const void *row, struct buf *b)
{
    const char *sign = "";

    if (o->source) {
        buf_str(b, "\"source\": ");
        json_string(b, o->source, strlen(o->source));
        sign = ", ";
    }
    for (int c = 0; c < o->n; c++)
        if (o->columns[c].name) {
            buf_printf(b, "%s\"%s\": ", sign, o->columns[c].name);
            add_json(o, &o->columns[c], row, b);
            sign = ", ";
        }
}

void
out_sideways(const struct out *o, const void *row)
{
    for (int c = 0; c < o->n; c++) {
        struct out one = {.columns = &o->columns[c], .n = 1, .source = "", .now_ms = o->now_ms};
        struct buf b = {0};
        char *text = out_text(&one, row);
        if (*text && o->columns[c].title) {
            buf_printf(&b, "%-13s ", o->columns[c].title);
            buf_str(&b, text);
            out_line(b.data, b.len);
        }
        free(text);
        buf_free(&b);
    }
}

static void
json_rows(struct out *o, const void *rows, int n, size_t size)
{
    struct buf b = {0};

    for (int i = 0; i < n; i++) {
        buf_clear(&b);
        buf_str(&b, "{");
        out_members(o, (const char *)rows + (size_t)i * size, &b);
        buf_str(&b, "}");
        out_json(b.data, b.len);
    }
    buf_free(&b);
}

static void
add_csv(struct buf *b, const char *s, size_t len)
{
    bool quoted = false;

    for (size_t i = 0; i < len; i++)
        quoted |= strchr(",\"\r\n", s[i]) != NULL;
    if (quoted)
        buf_str(b, "\"");
    for (size_t i = 0, n; i < len; i += n) {
        uint32_t cp;
        int valid = utf8_decode(s + i, len - i, &cp);
        n = valid > 0 ? (size_t)valid : 1;
        if (s[i] == '"')
            buf_str(b, "\"");
        buf_add(b, valid > 0 ? s + i : "\uFFFD", valid > 0 ? n : 3);
    }
    if (quoted)
        buf_str(b, "\"");
}

/* A text that begins like a formula gets a quote before it, which a spreadsheet takes for "text".
 */
static void
add_safe(const struct out *o, const struct out_column *c, const void *row, struct buf *cell)
{
    const char *text = is_text(c->kind) ? AT(char *const, row, c) : "";

    if (!o->formulas && *text && strchr("=+-@\t\r", *text))
        buf_str(cell, "'");
    add_plain(o, c, row, cell);
}

static void
csv_line(struct out *o, const void *row)
{
    struct buf line = {0}, cell = {0};
    bool first = true;

    for (int c = 0; c < o->n; c++) {
        const struct out_column *col = &o->columns[c];
        if (!col->name)
            continue;
        buf_str(&line, first ? "" : ",");
        first = false;
        buf_clear(&cell);
        if (!row)
            buf_str(&cell, col->name);
        else if (!is_null(col, row))
            add_safe(o, col, row, &cell);
        add_csv(&line, cell.data ? cell.data : "", cell.len);
    }
    if (o->terminal) {
        out_line(line.data, line.len);
    } else {
        buf_str(&line, "\n");
        fwrite(line.data, 1, line.len, stdout);
    }
    buf_free(&line);
    buf_free(&cell);
}

static void
csv_rows(struct out *o, const void *rows, int n, size_t size)
{
    if (!o->begun)
        csv_line(o, NULL);
    for (int i = 0; i < n; i++)
        csv_line(o, (const char *)rows + (size_t)i * size);
}

void
out_rows(struct out *o, const void *rows, int n, size_t size)
{
    switch (o->form) {
    case OUT_TABLE:
        if (n > 0)
            table_rows(o, rows, n, size);
        break;
    case OUT_JSON:
        json_rows(o, rows, n, size);
        break;
    case OUT_CSV:
        csv_rows(o, rows, n, size);
        break;
    }
    o->begun |= n > 0 || o->form == OUT_CSV;
}
