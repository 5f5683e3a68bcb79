/*
 * Rows for the command line. A cell is made into text once, by its kind and the form; the forms
 * differ in how they join cells.
 */
#include "ui/cli/cli_table.h"

#include <assert.h>
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

static const char *
title_of(const struct column *c)
{
    return c->only && !(c->only & IN_TABLE) ? NULL : c->table ? c->table : c->title;
}

static const char *
name_of(const struct column *c)
{
    return c->only && !(c->only & IN_DATA) ? NULL : c->json ? c->json : c->name;
}

static enum column_kind
kind_of(const struct column *c)
{
    return column_plain_kind(c);
}

static int
place_of(const struct column *c)
{
    return c->place ? c->place : INT_MAX;
}

void
cli_table_begin(struct cli_table *o, enum out_form form, const char *source,
                const struct column *columns)
{
    *o = (struct cli_table){.form = form, .source = source};
    o->terminal = isatty(STDOUT_FILENO);
    for (const struct column *c = columns; c->name || c->title; c++) {
        if (!title_of(c) && !name_of(c))
            continue;
        assert(o->n < OUT_COLUMNS);
        int at = o->n++;
        for (; at > 0 && place_of(o->columns[at - 1]) > place_of(c); at--)
            o->columns[at] = o->columns[at - 1];
        o->columns[at] = c;
    }
}

static void
put(struct buf *to, const char *s, size_t len)
{
    if (to)
        buf_add(to, s, len);
    else
        fwrite(s, 1, len, stdout);
}

static void
put_json(struct buf *to, const char *s, size_t len)
{
    struct buf safe = {0};

    json_armour(&safe, s, len);
    buf_str(&safe, "\n");
    put(to, safe.data, safe.len);
    buf_free(&safe);
}

static void
put_clean(struct buf *to, const char *s, size_t len)
{
    struct buf clean = {0};

    text_clean(&clean, s, len, TEXT_LINE, INT_MAX);
    buf_str(&clean, "\n");
    put(to, clean.data, clean.len);
    buf_free(&clean);
}

void
cli_table_json(const char *s, size_t len)
{
    put_json(NULL, s, len);
}

void
cli_table_line(const char *s, size_t len)
{
    put_clean(NULL, s, len);
}

/* --- cells ------------------------------------------------------------------------------------ */

/* The C type of the field of a kind. */
enum holds { HOLDS_TEXT, HOLDS_INT, HOLDS_BIG, HOLDS_DOUBLE, HOLDS_BOOL, HOLDS_NOTHING };

static enum holds
holds(enum column_kind kind)
{
    switch (kind) {
    case K_TEXT:
    case K_NAME:
    case K_NOTE:
    case K_STATE:
    case K_UUID:
    case K_LIST:
    case K_JSON:
        return HOLDS_TEXT;
    case K_INT:
        return HOLDS_INT;
    case K_BIG:
    case K_COUNT:
    case K_BYTES:
    case K_AGE:
    case K_TIME:
    case K_DURATION:
    case K_WAIT:
        return HOLDS_BIG;
    case K_RATE:
    case K_PERCENT:
        return HOLDS_DOUBLE;
    case K_BOOL:
        return HOLDS_BOOL;
    case K_SAME:
    case K_CUSTOM:
    case KINDS:
        break;
    }
    return HOLDS_NOTHING;
}

static bool
is_null(const struct column *c, const void *row)
{
    enum column_kind kind = kind_of(c);

    switch (holds(kind)) {
    case HOLDS_TEXT:
        return (kind == K_NAME || kind == K_JSON) && !*AT(char *const, row, c);
    case HOLDS_INT:
        return AT(int, row, c) == INT_MIN;
    case HOLDS_BIG:
        return AT(int64_t, row, c) == FIELD_NULL;
    case HOLDS_DOUBLE:
        return isnan(AT(double, row, c));
    case HOLDS_BOOL:
        return AT(int, row, c) < 0;
    case HOLDS_NOTHING:
        break;
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
is_text(const struct column *c)
{
    return holds(kind_of(c)) == HOLDS_TEXT;
}

static bool
is_age(enum column_kind kind)
{
    return kind == K_AGE;
}

/* Writes the value for programs, unquoted. */
static void
add_plain(const struct cli_table *o, const struct column *c, const void *row, struct buf *b)
{
    enum column_kind kind = kind_of(c);

    switch (holds(kind)) {
    case HOLDS_TEXT:
        buf_str(b, AT(char *const, row, c));
        break;
    case HOLDS_INT:
        buf_printf(b, "%d", AT(int, row, c));
        break;
    case HOLDS_BIG:
        if (kind == K_TIME)
            buf_str(b, fmt_iso(AT(int64_t, row, c)).s);
        else if (is_age(kind))
            add_seconds(b, o->now_ms - AT(int64_t, row, c));
        else
            buf_printf(b, "%" PRId64, AT(int64_t, row, c));
        break;
    case HOLDS_DOUBLE:
        buf_printf(b, "%.2f", AT(double, row, c));
        break;
    case HOLDS_BOOL:
        buf_str(b, AT(int, row, c) ? "true" : "false");
        break;
    case HOLDS_NOTHING:
        break;
    }
}

/* Writes the value for people; false = it is the same as for programs. */
static bool
add_words(const struct cli_table *o, const struct column *c, const void *row, struct buf *b)
{
    enum column_kind kind = kind_of(c);

    if (kind == K_UUID)
        buf_str(b, fmt_id_tail(AT(char *const, row, c)).s);
    else if (is_age(kind))
        buf_str(b, fmt_age(o->now_ms - AT(int64_t, row, c)).s);
    else if (kind == K_TIME)
        buf_str(b, fmt_date_time(AT(int64_t, row, c), false).s);
    else if (kind == K_DURATION || kind == K_WAIT)
        buf_str(b, fmt_duration(AT(int64_t, row, c)).s);
    else if (kind == K_BYTES)
        buf_str(b, fmt_bytes(AT(int64_t, row, c)).s);
    else if (kind == K_RATE)
        buf_str(b, fmt_rate(AT(double, row, c)).s);
    else if (kind == K_PERCENT)
        buf_str(b, fmt_percent(AT(double, row, c), 1).s);
    else if (kind == K_BOOL)
        buf_str(b, AT(int, row, c) ? "yes" : "no");
    else
        return false;
    return true;
}

static void
add_cell(const struct cli_table *o, const struct column *c, const void *row, struct buf *b)
{
    bool counts = kind_of(c) == K_COUNT;

    if (is_null(c, row)) {
        buf_str(b, "-");
    } else if (add_words(o, c, row, b)) {
        return;
    } else if (is_text(c)) { /* sanitised also in a pipe: it may end at a terminal */
        text_clean(b, AT(char *const, row, c), strlen(AT(char *const, row, c)), TEXT_LINE,
                   c->most && o->terminal ? c->most : INT_MAX);
    } else {
        buf_str(b, counts && o->estimates && o->estimates(row) ? "~" : "");
        add_plain(o, c, row, b);
    }
}

/* The first column of a row for people, "" for null; the caller frees it. */
static char *
out_text(const struct cli_table *o, const void *row)
{
    struct buf b = {0};

    buf_str(&b, "");
    if (!is_null(o->columns[0], row))
        add_cell(o, o->columns[0], row, &b);
    return b.data;
}

/* --- table ------------------------------------------------------------------------------------ */

static bool
is_right(enum column_kind kind)
{
    enum holds what = holds(kind);

    return what != HOLDS_TEXT && what != HOLDS_BOOL && kind != K_TIME;
}

static void
add_padded(struct buf *line, const struct cli_table *o, int col, const char *s, size_t len)
{
    int gap = o->width[col] - text_width(s, len, TEXT_LINE);
    bool right = is_right(kind_of(o->columns[col])), last = true;

    for (int i = col + 1; i < o->n; i++)
        last &= !title_of(o->columns[i]);
    if (line->len > 0)
        buf_str(line, "  ");
    if (right && gap > 0)
        buf_printf(line, "%*s", gap, "");
    buf_add(line, s, len);
    if (!right && gap > 0 && !last)
        buf_printf(line, "%*s", gap, "");
}

static void
put_line(const struct cli_table *o, struct buf *line)
{
    while (line->len > 0 && line->data[line->len - 1] == ' ')
        line->len--;
    buf_str(line, "\n");
    put(o->to, line->data, line->len);
    buf_clear(line);
}

static void
measure(struct cli_table *o, const void *const *rows, int n)
{
    struct buf cell = {0};

    for (int c = 0; c < o->n; c++) {
        const struct column *col = o->columns[c];
        if (!title_of(col))
            continue;
        o->width[c] = (int)strlen(title_of(col));
        if (o->follows && col->most > o->width[c])
            o->width[c] = col->most;
        for (int i = 0; i < n; i++) {
            buf_clear(&cell);
            add_cell(o, col, rows[i], &cell);
            int w = text_width(cell.data ? cell.data : "", cell.len, TEXT_LINE);
            if (w > o->width[c])
                o->width[c] = w;
        }
    }
    buf_free(&cell);
}

static void
table_rows(struct cli_table *o, const void *const *rows, int n)
{
    struct buf line = {0}, cell = {0};

    if (!o->begun) {
        measure(o, rows, n);
        for (int c = 0; c < o->n; c++)
            if (title_of(o->columns[c]))
                add_padded(&line, o, c, title_of(o->columns[c]), strlen(title_of(o->columns[c])));
        put_line(o, &line);
    }
    for (int i = 0; i < n; i++) {
        for (int c = 0; c < o->n; c++) {
            if (!title_of(o->columns[c]))
                continue;
            buf_clear(&cell);
            add_cell(o, o->columns[c], rows[i], &cell);
            add_padded(&line, o, c, cell.data ? cell.data : "", cell.len);
        }
        put_line(o, &line);
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
add_json(const struct cli_table *o, const struct column *c, const void *row, struct buf *b)
{
    struct buf plain = {0};

    if (is_null(c, row)) {
        buf_str(b, "null");
    } else if (kind_of(c) == K_LIST) {
        add_json_list(b, AT(char *const, row, c));
    } else if (kind_of(c) == K_JSON) {
        buf_str(b, AT(char *const, row, c));
    } else if (is_text(c) || kind_of(c) == K_TIME) {
        add_plain(o, c, row, &plain);
        json_string(b, plain.data ? plain.data : "", plain.len);
    } else {
        add_plain(o, c, row, b);
    }
    buf_free(&plain);
}

void
cli_table_members(const struct cli_table *o, const void *row, struct buf *b)
{
    const char *sign = "";

    if (o->source) {
        buf_str(b, "\"source\": ");
        json_string(b, o->source, strlen(o->source));
        sign = ", ";
    }
    for (int c = 0; c < o->n; c++)
        if (name_of(o->columns[c])) {
            buf_printf(b, "%s\"%s\": ", sign, name_of(o->columns[c]));
            add_json(o, o->columns[c], row, b);
            sign = ", ";
        }
}

void
cli_table_sideways(const struct cli_table *o, const void *row)
{
    for (int c = 0; c < o->n; c++) {
        struct cli_table one = {
            .columns = {o->columns[c]}, .n = 1, .source = "", .now_ms = o->now_ms};
        struct buf b = {0};
        char *text = out_text(&one, row);
        if (*text && title_of(o->columns[c])) {
            buf_printf(&b, "%-13s ", title_of(o->columns[c]));
            buf_str(&b, text);
            cli_table_line(b.data, b.len);
        }
        free(text);
        buf_free(&b);
    }
}

static void
json_rows(struct cli_table *o, const void *const *rows, int n)
{
    struct buf b = {0};

    for (int i = 0; i < n; i++) {
        buf_clear(&b);
        buf_str(&b, "{");
        cli_table_members(o, rows[i], &b);
        buf_str(&b, "}");
        put_json(o->to, b.data, b.len);
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

/* True if a cell that begins with these bytes may be taken for a formula: spreadsheets also take
 * the full-width signs (U+FF0B, U+FF0D, U+FF1D, U+FF20). */
static bool
begins_formula(const char *s)
{
    static const char *const wide[] = {"\uFF0B", "\uFF0D", "\uFF1D", "\uFF20"};

    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (!strncmp(s, wide[i], strlen(wide[i])))
            return true;
    return *s && strchr("=+-@", *s);
}

/* Writes a quote before what begins like a formula: then a spreadsheet takes the cell for text. A
 * spreadsheet that separates cells by semicolons (as in many countries) or tabs begins a cell
 * behind each of them, and a row behind the end of a line: our quotes do not stop it, because they
 * are not at the beginning of its cell. So the text behind these is treated in the same way, also
 * if it begins with quotes, which such a spreadsheet removes. */
static void
add_safe(const struct cli_table *o, const struct column *c, const void *row, struct buf *cell)
{
    if (o->formulas || !is_text(c)) {
        add_plain(o, c, row, cell);
        return;
    }
    const char *text = AT(char *const, row, c);
    if (*text && (strchr("\t\r\n", *text) || begins_formula(text)))
        buf_str(cell, "'");
    for (; *text; text++) {
        buf_add(cell, text, 1);
        if (strchr(";\t\r\n", *text) && begins_formula(text + 1 + strspn(text + 1, "\"")))
            buf_str(cell, "'");
    }
}

static void
csv_line(struct cli_table *o, const void *row)
{
    struct buf line = {0}, cell = {0};
    bool first = true;

    for (int c = 0; c < o->n; c++) {
        const struct column *col = o->columns[c];
        if (!name_of(col))
            continue;
        buf_str(&line, first ? "" : ",");
        first = false;
        buf_clear(&cell);
        if (!row)
            buf_str(&cell, name_of(col));
        else if (!is_null(col, row))
            add_safe(o, col, row, &cell);
        add_csv(&line, cell.data ? cell.data : "", cell.len);
    }
    if (o->terminal) {
        put_clean(o->to, line.data, line.len);
    } else {
        buf_str(&line, "\n");
        put(o->to, line.data, line.len);
    }
    buf_free(&line);
    buf_free(&cell);
}

static void
csv_rows(struct cli_table *o, const void *const *rows, int n)
{
    if (!o->begun)
        csv_line(o, NULL);
    for (int i = 0; i < n; i++)
        csv_line(o, rows[i]);
}

int
cli_table_print(struct cli_table *o, const void **rows, int n)
{
    cli_table_sort(o, rows, n);
    if (o->most && n > o->most)
        n = o->most;
    switch (o->form) {
    case OUT_TABLE:
        if (n > 0)
            table_rows(o, rows, n);
        break;
    case OUT_JSON:
        json_rows(o, rows, n);
        break;
    case OUT_CSV:
        csv_rows(o, rows, n);
        break;
    }
    o->begun |= n > 0 || o->form == OUT_CSV;
    return n;
}

int
cli_table_rows(struct cli_table *o, const void *rows, int n, size_t size)
{
    const void **each = xcalloc((size_t)n + 1, sizeof *each);

    for (int i = 0; i < n; i++)
        each[i] = (const char *)rows + (size_t)i * size;
    n = cli_table_print(o, each, n);
    free(each);
    return n;
}
