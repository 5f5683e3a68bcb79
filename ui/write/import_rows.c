/*
 * Rows as jobs. The columns have known names, or the names that --columns gives them. For what a
 * row does not contain, the options are used.
 */
#include "ui/write/import_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/alias.h"
#include "model/base/clock.h"
#include "model/base/err.h"
#include "model/base/mem.h"
#include "model/base/text.h"

/* --- members of an object --- */

/* Reads a JSON object member by member. The text has passed json_check, so it can't be malformed,
 * and ends with a zero byte. */

struct json_member { /* as written: strings with their quotes */
    const char *name, *value;
    size_t name_len, value_len;
};

/* The place after the value that begins at s. */
static const char *
skip_value(const char *s)
{
    int depth = 0;

    do {
        if (*s == '"')
            for (s++; *s != '"'; s++)
                s += *s == '\\';
        depth += *s == '{' || *s == '[';
        depth -= *s == '}' || *s == ']';
        s++;
    } while (depth > 0 || !strchr(",:}] \t\r\n", *s));
    return s;
}

/* Reads the next member; *at is after the opening brace or after a value. False: there are no more.
 */
static bool
json_member(const char **at, struct json_member *m)
{
    const char *s = *at + strspn(*at, ", \t\r\n");

    if (*s == '}')
        return false;
    m->name = s;
    s = skip_value(s);
    m->name_len = (size_t)(s - m->name);
    s += strspn(s, ": \t\r\n");
    m->value = s;
    s = skip_value(s);
    m->value_len = (size_t)(s - m->value);
    *at = s;
    return true;
}

static uint32_t
read_hex(const char *s)
{
    char digits[5] = {s[0], s[1], s[2], s[3]};

    return (uint32_t)strtoul(digits, NULL, 16);
}

/* The character of \uXXXX; *s moves behind it. From 0xD800 on: half of a pair. */
static uint32_t
read_escape(const char **s)
{
    uint32_t cp = read_hex(*s);

    *s += 4;
    if (cp < 0xD800 || cp > 0xDBFF || (*s)[0] != '\\' || (*s)[1] != 'u')
        return cp;
    uint32_t low = read_hex(*s + 2);
    if (low < 0xDC00 || low > 0xDFFF)
        return cp;
    *s += 6;
    return 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
}

/* A string without its quotes and escapes, any other value as written; lives as long as mem. False:
 * half of a surrogate pair. */
static bool
json_text(struct arena *mem, const char *s, size_t len, char **text, size_t *text_len,
          struct err *e)
{
    static const char signs[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *end = s + len - 1;
    char *to = *text = arena_strndup(mem, s, len);

    *text_len = len;
    if (*s != '"')
        return true;
    for (s++; s < end;) {
        if (*s != '\\') {
            *to++ = *s++;
            continue;
        }
        const char *sign = strchr(signs, s[1]);
        s += 2;
        if (sign) {
            *to++ = meant[sign - signs];
            continue;
        }
        uint32_t cp = read_escape(&s);
        if (cp >= 0xD800 && cp <= 0xDFFF)
            return fail(e, ERR_USAGE, "\\u%04x is half of a character", (unsigned)cp);
        to += utf8_encode(cp, to);
    }
    *to = 0;
    *text_len = (size_t)(to - *text);
    return true;
}

/* --- rows --- */

/* The kind of value in a cell. */
enum cell_field {
    SAYS_NOTHING, /* line and reason: the columns of a file of rejects, if it is imported */
    SAYS_TEXT,
    SAYS_ID,
    SAYS_PAYLOAD,
    SAYS_NUMBER,
    SAYS_TIME
};
struct known_column {
    const char *name;
    enum cell_field field;
    size_t offset;
    int min, max;
};
#define Q(f) offsetof(struct queue_push, f)
static const struct known_column known[] = {
    {"queue",           SAYS_TEXT,    Q(queue),            0, 0    },
    {"kind",            SAYS_TEXT,    Q(kind),             0, 0    },
    {"payload",         SAYS_PAYLOAD, 0,                   0, 0    },
    {"type",            SAYS_TEXT,    Q(type),             0, 0    },
    {"priority",        SAYS_NUMBER,  Q(priority),         0, 9    },
    {"run_after",       SAYS_TEXT,    Q(run_after),        0, 0    },
    {"expires_at",      SAYS_TEXT,    Q(expires_at),       0, 0    },
    {"unique_key",      SAYS_TEXT,    Q(unique_key),       0, 0    },
    {"concurrency_key", SAYS_TEXT,    Q(concurrency_key),  0, 0    },
    {"id",              SAYS_ID,      0,                   0, 0    },
    {"max_tries",       SAYS_NUMBER,  Q(max_tries),        1, 32767},
    {"run_timeout",     SAYS_TIME,    Q(run_timeout_ms),   0, 0    },
    {"lease_timeout",   SAYS_TIME,    Q(lease_timeout_ms), 0, 0    },
    {"line",            SAYS_NOTHING, 0,                   0, 0    },
    {"reason",          SAYS_NOTHING, 0,                   0, 0    },
};
enum { KNOWN = sizeof known / sizeof *known };
static const struct known_column passed_over; /* NAME= in --columns */
static const char see[] = "; --columns gives it such a name, or passes over it";

/* --- names ------------------------------------------------------------------------------------ */

/* hint: another way to solve the problem. */
static bool
no_such_column(const char *name, const char *hint, struct err *e)
{
    const char *names[KNOWN + 1];
    char all[300] = "";

    for (int k = 0; k < KNOWN; k++) {
        size_t len = strlen(all);
        names[k] = known[k].name;
        if (known[k].field != SAYS_NOTHING)
            snprintf(all + len, sizeof all - len, "%s%s", k ? ", " : "", names[k]);
    }
    names[KNOWN] = NULL;
    const char *meant = alias_closest(name, names);
    if (meant)
        return fail(e, ERR_USAGE, "there is no column '%.40s', did you mean %s?", name, meant);
    return fail(e, ERR_USAGE, "there is no column '%.40s'; there are %s%s", name, all, hint);
}

static const struct known_column *
find_known(const char *name)
{
    for (int k = 0; k < KNOWN; k++)
        if (!strcmp(known[k].name, name))
            return &known[k];
    return NULL;
}

bool
import_names(const struct cli_list *names, struct err *e)
{
    for (int i = 0; i < names->n; i++) {
        const char *sign = strchr(names->items[i], '=');
        if (!sign || sign == names->items[i])
            return fail(e, ERR_USAGE, "--columns: '%.40s' is not NAME=COLUMN", names->items[i]);
        if (sign[1] && !find_known(sign + 1))
            return no_such_column(sign + 1, "", e) || fail_in(e, "--columns");
    }
    return true;
}

/* Whether the item NAME=COLUMN renames `name`. */
static bool
is_named(const char *item, const char *name, size_t len)
{
    return !strncmp(item, name, len) && item[len] == '=';
}

/* NULL: there is none. */
static const struct known_column *
find_column(const struct import_columns *c, const char *name, size_t len)
{
    if (strlen(name) != len)
        return NULL;
    for (int i = 0; c->names && i < c->names->n; i++)
        if (is_named(c->names->items[i], name, len)) {
            const char *meant = c->names->items[i] + len + 1;
            return *meant ? find_known(meant) : &passed_over;
        }
    return find_known(name);
}

static bool
add_column(struct import_columns *c, const char *name, size_t len, struct err *e)
{
    const struct known_column *found = find_column(c, name, len);

    if (!found)
        return no_such_column(name, see, e);
    if (c->n == IMPORT_COLUMNS)
        return fail(e, ERR_USAGE, "more than %d columns", IMPORT_COLUMNS);
    for (int k = 0; k < c->n; k++)
        if (c->columns[k] == found && found != &passed_over)
            return fail(e, ERR_USAGE, "column %s stands there twice", found->name);
    c->columns[c->n++] = found;
    return true;
}

/* --- cells ------------------------------------------------------------------------------------ */

/* The next cell of a row. *at moves behind the cell and its comma, *room behind its text, which has
 * at most as many bytes as the row. False: a quote is not closed. */
static bool
next_cell(const struct import_row *row, size_t *at, char **room, char **cell, size_t *len,
          struct err *e)
{
    size_t from = *at, n = 0;
    bool quoted = from < row->len && row->text[from] == '"', closed = !quoted;
    char *text = *room;

    for (from += quoted; from < row->len; from++) {
        char c = row->text[from];
        bool doubled = quoted && c == '"' && from + 1 < row->len && row->text[from + 1] == '"';
        if (quoted && c == '"' && !doubled) {
            closed = true;
            from++;
            break;
        }
        if (!quoted && c == ',')
            break;
        from += doubled;
        text[n++] = c;
    }
    if (!closed || (from < row->len && row->text[from] != ','))
        return fail(e, ERR_USAGE, "a \" that does not close, or text behind the closing one");
    text[n] = 0;
    *cell = text;
    *len = n;
    *room = text + n + 1;
    *at = from + 1;
    return true;
}

/* The length of a UTF-8 mark at the start of the input: spreadsheets begin a file with one. */
static size_t
bom(const struct import_row *row)
{
    bool is_first = row->line == 1 && row->len >= 3;

    return is_first && !memcmp(row->text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/* Rejects a name of --columns that the header does not have. */
static bool
check_names(const struct import_columns *c, char *const *names, struct err *e)
{
    for (int i = 0; c->names && i < c->names->n; i++) {
        const char *item = c->names->items[i];
        int k = 0;
        while (k < c->n && !is_named(item, names[k], strlen(names[k])))
            k++;
        if (k == c->n)
            return fail(e, ERR_USAGE, "--columns: there is no column '%.*s' in the file",
                        (int)strcspn(item, "="), item);
    }
    return true;
}

bool
import_header(struct import_columns *c, struct arena *mem, const struct import_row *row,
              struct err *e)
{
    struct import_row text = *row;
    char *room = arena_alloc(mem, row->len + 2), *names[IMPORT_COLUMNS];

    text.text += bom(row);
    text.len -= bom(row);
    for (size_t at = 0; at <= text.len;) {
        char *name;
        size_t len;
        if (!next_cell(&text, &at, &room, &name, &len, e) || !add_column(c, name, len, e))
            return fail_in(e, "line %" PRId64, row->line);
        names[c->n - 1] = name;
    }
    buf_add(&c->header, text.text, text.len);
    c->is_again = !strncmp(c->header.data, "line,reason,", 12);
    return check_names(c, names, e);
}

void
import_done(struct import_columns *c)
{
    buf_free(&c->header);
}

static bool
set_number(struct queue_push *job, const struct known_column *k, const char *cell, struct err *e)
{
    char *end;

    errno = 0;
    long value = strtol(cell, &end, 10);
    if (errno || *end || value < k->min || value > k->max)
        return fail(e, ERR_USAGE, "%s is a number from %d to %d, not '%.40s'", k->name, k->min,
                    k->max, cell);
    *(int *)((char *)job + k->offset) = (int)value;
    return true;
}

/* Sets a member of the job from a cell; an empty cell sets nothing. */
static bool
set_cell(struct queue_push *job, const struct known_column *k, const char *cell, size_t len,
         struct err *e)
{
    if (len == 0 || k->field == SAYS_NOTHING)
        return true;
    if (strlen(cell) != len && k->field != SAYS_PAYLOAD)
        return fail(e, ERR_USAGE, "%s has a zero byte", k->name);
    switch (k->field) {
    case SAYS_NOTHING:
        break;
    case SAYS_TEXT:
        *(const char **)((char *)job + k->offset) = cell;
        break;
    case SAYS_ID:
        if (len != QUEUE_ID_LEN)
            return fail(e, ERR_USAGE, "id: '%.40s' is not a uuid", cell);
        snprintf(job->id, sizeof job->id, "%s", cell);
        job->check_id = true;
        break;
    case SAYS_PAYLOAD:
        job->payload = cell;
        job->payload_len = len;
        break;
    case SAYS_NUMBER:
        return set_number(job, k, cell, e);
    case SAYS_TIME:
        return duration_parse(cell, (int64_t *)((char *)job + k->offset), e) ||
               fail_in(e, "%s", k->name);
    }
    return true;
}

static bool
read_cells(const struct import_columns *c, struct arena *mem, const struct import_row *row,
           struct queue_push *job, struct err *e)
{
    char *room = arena_alloc(mem, row->len + 2);
    int n = 0;
    bool ok = true;

    for (size_t at = 0; ok && at <= row->len; n++) {
        char *cell;
        size_t len;
        ok = next_cell(row, &at, &room, &cell, &len, e) &&
             (n >= c->n || set_cell(job, c->columns[n], cell, len, e));
    }
    return ok && (n == c->n || fail(e, ERR_USAGE, "%d cells instead of %d", n, c->n));
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* The members of a line that were read so far. */
struct object {
    struct queue_push *job;
    struct json_member payload;
    uint32_t said; /* bits of the places in `known` */
};

static bool
is_json_type(const char *type)
{
    static const char json[] = "application/json";
    size_t len = strcspn(type, "; ");

    return len == sizeof json - 1 && !strncasecmp(type, json, len);
}

/* Sets the payload. JSON is taken as written, for another type the text is taken. For the type
 * application/json a string is the text of the payload; any other value is the payload itself, and
 * needs no type. */
static bool
set_payload(struct arena *mem, const struct object *o, struct err *e)
{
    const struct json_member *m = &o->payload;
    struct queue_push *job = o->job;
    char *text;

    if (!m->value)
        return true;
    job->payload = m->value;
    job->payload_len = m->value_len;
    if (!job->type)
        return true;
    if (*m->value != '"') {
        if (!is_json_type(job->type))
            return fail(e, ERR_USAGE, "payload: of type %.40s it is a string", job->type);
        job->type = NULL;
        return true;
    }
    if (!json_text(mem, m->value, m->value_len, &text, &job->payload_len, e))
        return false;
    job->payload = text;
    return true;
}

/* Rejects two members with one name, because it is not known which one is meant. */
static bool
check_twice(struct object *o, const struct known_column *k, struct err *e)
{
    if (k == &passed_over)
        return true;
    uint32_t bit = UINT32_C(1) << (k - known);
    if (o->said & bit)
        return fail(e, ERR_USAGE, "%s stands there twice", k->name);
    o->said |= bit;
    return true;
}

static bool
read_member(const struct import_columns *c, struct arena *mem, const struct json_member *m,
            struct object *o, struct err *e)
{
    char *name, *text;
    size_t len;

    if (!json_text(mem, m->name, m->name_len, &name, &len, e))
        return false;
    const struct known_column *k = find_column(c, name, len);
    if (!k)
        return no_such_column(name, see, e);
    if (!check_twice(o, k, e))
        return false;
    if (k->field == SAYS_NOTHING || (m->value_len == 4 && !memcmp(m->value, "null", 4)))
        return true;
    if (k->field == SAYS_PAYLOAD) {
        o->payload = *m;
        return true;
    }
    if (strchr("{[tf", *m->value))
        return fail(e, ERR_USAGE, "%s is a text or a number", k->name);
    return json_text(mem, m->value, m->value_len, &text, &len, e) &&
           set_cell(o->job, k, text, len, e);
}

static bool
check_utf8(const char *text, size_t len, struct err *e)
{
    uint32_t cp;
    int n = 1;

    for (size_t at = 0; at < len; at += (size_t)n) {
        n = utf8_decode(text + at, len - at, &cp);
        if (n == 0)
            return fail(e, ERR_USAGE, "byte %zu is no UTF-8", at + 1);
    }
    return true;
}

static bool
read_object(const struct import_columns *c, struct arena *mem, const struct import_row *row,
            struct queue_push *job, struct err *e)
{
    size_t mark = bom(row);
    const char *text = arena_strndup(mem, row->text + mark, row->len - mark), *at = text;
    struct object o = {.job = job};
    struct json_member m;
    int line, column;

    at += strspn(at, " \t\r");
    if (!check_utf8(text, row->len - mark, e))
        return false;
    if (!json_check(text, row->len - mark, &line, &column))
        return fail(e, ERR_USAGE, "it is no JSON from byte %d on", column);
    if (*at != '{')
        return fail(e, ERR_USAGE, "it is no JSON object");
    for (at++; json_member(&at, &m);)
        if (!read_member(c, mem, &m, &o, e))
            return false;
    return set_payload(mem, &o, e);
}

bool
import_too_long(bool is_open, struct err *e)
{
    return fail(e, ERR_USAGE, "a row has %d MiB at most%s", IMPORT_RECORD >> 20,
                is_open ? " (a \" does not close?)" : "");
}

bool
import_job(const struct import_columns *c, struct arena *mem, const struct import_row *row,
           struct queue_push *job, struct err *e)
{
    if (row->is_too_long)
        return import_too_long(row->is_open, e);
    if (!(c->is_json ? read_object : read_cells)(c, mem, row, job, e))
        return false;
    return queue_push_check(job, e);
}

bool
import_is_blank(const struct import_columns *c, const struct import_row *row)
{
    size_t at = 0;

    while (c->is_json && at < row->len && strchr(" \t\r", row->text[at]) && row->text[at])
        at++;
    return at == row->len && !row->is_too_long;
}

/* --- rejects ---------------------------------------------------------------------------------- */

/* The place after the first n cells; the end of the row if it has fewer. */
static size_t
behind_cells(const struct import_row *row, int n)
{
    bool quoted = false;
    size_t at = 0;

    for (; at < row->len && n > 0; at++) {
        quoted ^= row->text[at] == '"';
        n -= !quoted && row->text[at] == ',';
    }
    return at;
}

void
import_reject_header(const struct import_columns *c, struct buf *out)
{
    buf_printf(out, "line,reason,%s", c->header.data + (c->is_again ? 12 : 0));
}

/* Writes line, cause and cells. A row that was not kept has too few cells to be imported again. */
static void
add_bad_cells(const struct import_columns *c, const struct import_row *row, const char *why,
              struct buf *out)
{
    buf_printf(out, "%" PRId64 ",\"", row->line);
    for (const char *s = why; *s; s++)
        buf_add(out, *s == '"' ? "'" : *s == '\n' ? " " : s, 1);
    buf_str(out, row->is_too_long ? "\"" : "\",");
    size_t from = c->is_again ? behind_cells(row, 2) : 0; /* these two are written again */
    buf_add(out, row->text + from, row->len - from);
}

/* Writes a text. A byte that is not UTF-8 becomes its character in Latin-1, so that no byte is
 * lost. */
static void
add_text(const char *s, size_t len, struct buf *out)
{
    struct buf text = {0};

    buf_str(&text, "");
    for (size_t i = 0, n; i < len; i += n) {
        char as_latin[4];
        uint32_t cp;
        int valid = utf8_decode(s + i, len - i, &cp);
        n = valid > 0 ? (size_t)valid : 1;
        if (valid > 0)
            buf_add(&text, s + i, n);
        else
            buf_add(&text, as_latin, (size_t)utf8_encode((unsigned char)s[i], as_latin));
    }
    json_string(out, text.data, text.len);
    buf_free(&text);
}

static void
add_members(const char *at, struct buf *out)
{
    struct json_member m;

    while (json_member(&at, &m)) {
        bool is_old = (m.name_len == 6 && !memcmp(m.name, "\"line\"", 6)) ||
                      (m.name_len == 8 && !memcmp(m.name, "\"reason\"", 8));
        if (!is_old)
            buf_printf(out, ", %.*s: %.*s", (int)m.name_len, m.name, (int)m.value_len, m.value);
    }
}

/* Writes an object without its old line and cause. If the line is no object, it is kept as a text.
 */
static void
add_bad_object(const struct import_row *row, const char *why, struct buf *out)
{
    struct arena *mem = arena_new();
    size_t mark = bom(row);
    const char *text = arena_strndup(mem, row->text + mark, row->len - mark);
    const char *at = text + strspn(text, " \t");
    int line, column;

    buf_printf(out, "{\"line\": %" PRId64 ", \"reason\": ", row->line);
    json_string(out, why, strlen(why));
    if (*at == '{' && json_check(text, row->len - mark, &line, &column) &&
        utf8_valid(text, row->len - mark))
        add_members(at + 1, out);
    else {
        buf_str(out, ", \"text\": ");
        add_text(text, row->len - mark, out);
    }
    buf_str(out, "}");
    arena_free(mem);
}

void
import_reject(const struct import_columns *c, const struct import_row *row, const char *why,
              struct buf *out)
{
    if (c->is_json)
        add_bad_object(row, why, out);
    else
        add_bad_cells(c, row, why, out);
}
