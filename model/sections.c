/* Named sections of an annotated .sql file, and the one function that puts a schema into SQL. A
 * small scanner steps over quoted text and comments, so that a semicolon or a brace in them means
 * nothing, and a placeholder in a quoted string, where it could not be quoted rightly, is refused.
 */
#include "model/sections.h"

#include <stdlib.h>
#include <string.h>

#include "model/mem.h"
#include "model/text.h"

enum { NAME_MAX_BYTES = 63 }; /* of an identifier in PostgreSQL */

/* --- scanning SQL --- */

static const char *
skip_quoted(const char *s, bool backslash)
{
    char quote = *s++;

    for (; *s; s++) {
        if (backslash && *s == '\\' && s[1])
            s++;
        else if (*s == quote && s[1] == quote)
            s++;
        else if (*s == quote)
            return s + 1;
    }
    return NULL;
}

static const char *
skip_comment(const char *s)
{
    int depth = 0;

    if (*s == '-')
        return s + strcspn(s, "\n");
    for (; *s; s++) {
        if (s[0] == '/' && s[1] == '*')
            depth++, s++;
        else if (s[0] == '*' && s[1] == '/' && (s++, --depth == 0))
            return s + 1;
    }
    return NULL;
}

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* $tag$ ... $tag$; s itself when it is no dollar quote ($1). */
static const char *
skip_dollar(const char *s)
{
    const char *end = s + 1;

    if (*end >= '0' && *end <= '9')
        return s;
    while (is_word(*end))
        end++;
    if (*end != '$')
        return s;
    size_t len = (size_t)(end + 1 - s);
    for (const char *at = end + 1; (at = strchr(at, '$')); at++)
        if (strncmp(at, s, len) == 0)
            return at + len;
    return NULL;
}

/* Steps over quoted text or a comment at s; s itself when there is none, NULL when it has no end.
 */
static const char *
skip_opaque(const char *s, const char *start)
{
    if ((s[0] == '-' && s[1] == '-') || (s[0] == '/' && s[1] == '*'))
        return skip_comment(s);
    if (*s == '\'') {
        bool is_escape = s > start && (s[-1] == 'e' || s[-1] == 'E');
        return skip_quoted(s, is_escape && (s - 1 == start || !is_word(s[-2])));
    }
    if (*s == '"')
        return skip_quoted(s, false);
    if (*s == '$' && (s == start || !is_word(s[-1])))
        return skip_dollar(s);
    return s;
}

/* --- placeholders --- */

enum { SCHEMA, SCHEMA_LIT, ERROR_KEY };
static const char *const placeholders[] = {"{schema}", "{schema_lit}", "{error_key("};

/* What native's error_key() does, as built-in functions: the text of an error becomes the key of
 * its group. EXPR stands between the two halves. */
static const char *const error_key[2] = {
    "left(btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(left((",
    ")::text, 1000), '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}',"
    " 'N', 'g'), '\"[^\"]*\"|''[^'']*''|`[^`]*`', 'N', 'g'),"
    " E'0[xX][0-9a-fA-F]+|\\\\m(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\\\\M', 'N', 'g'),"
    " '[0-9]+([.,:][0-9]+)*', 'N', 'g'), E'\\\\s+', ' ', 'g')), 300)",
};

/* Index of the placeholder at s, -1 = none. */
static int
placeholder_at(const char *s)
{
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
        if (strncmp(s, placeholders[i], strlen(placeholders[i])) == 0)
            return (int)i;
    return -1;
}

static bool
has_placeholder(const char *s, const char *end)
{
    for (; s < end; s++)
        if (placeholder_at(s) >= 0)
            return true;
    return false;
}

/* The ")" of the ")}" that ends {error_key( at s; NULL = there is none. */
static const char *
error_key_end(const char *s)
{
    const char *start = s;
    int depth = 1;

    for (s += strlen(placeholders[ERROR_KEY]); *s;) {
        const char *after = skip_opaque(s, start);
        if (!after)
            return NULL;
        if (after > s) {
            s = after;
            continue;
        }
        depth += (*s == '(') - (*s == ')');
        if (depth == 0)
            return s[1] == '}' ? s : NULL;
        s++;
    }
    return NULL;
}

/* What is wrong with the statement, NULL = nothing. */
static const char *
check_sql(const char *sql)
{
    bool has_words = false;

    for (const char *s = sql; *s;) {
        const char *after = skip_opaque(s, sql);
        bool is_comment = (s[0] == '-' && s[1] == '-') || (s[0] == '/' && s[1] == '*');
        if (!after)
            return "quoted text or a comment has no end";
        if (after > s) {
            if (!is_comment && has_placeholder(s, after))
                return "a placeholder stands in quoted text: use {schema_lit}";
            has_words |= !is_comment;
            s = after;
            continue;
        }
        if (*s == ';')
            return "more than one statement";
        if (*s == '{' && placeholder_at(s) < 0)
            return "unknown placeholder";
        if (*s == '{' && placeholder_at(s) == ERROR_KEY && !error_key_end(s))
            return "{error_key(...)} has no end";
        has_words |= !strchr(" \t\r\n", *s);
        s++;
    }
    return has_words ? NULL : "no statement";
}

/* --- reading --- */

struct reader {
    const char *file;
    struct sections *out;
    struct buf sql; /* of the section being read */
    bool in_notes;  /* no SQL seen yet in it */
    int line;
    struct err *e;
};

static bool
is_blank(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r", s[i]))
            return false;
    return true;
}

static char *
trimmed(const char *s, size_t len)
{
    while (len > 0 && strchr(" \t\r", *s))
        s++, len--;
    while (len > 0 && strchr(" \t\r", s[len - 1]))
        len--;
    return xstrndup(s, len);
}

/* "-- key: value"; the key is one word of a-z, 0-9, _ and -. */
static bool
parse_note(const char *s, size_t len, int line, struct note *note)
{
    if (len < 4 || strncmp(s, "-- ", 3) != 0)
        return false;
    size_t key = strspn(s + 3, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    if (key == 0 || 3 + key >= len || s[3 + key] != ':')
        return false;
    if (4 + key < len && s[4 + key] != ' ' && s[4 + key] != '\r')
        return false; /* a word like http:// */
    note->key = xstrndup(s + 3, key);
    note->value = trimmed(s + 4 + key, len - 4 - key);
    note->line = line;
    return true;
}

static void
note_free(struct note *n)
{
    free(n->key);
    free(n->value);
}

static void
add_note(struct note **list, int *n, struct note note)
{
    *list = xreallocarray(*list, (size_t)*n + 1, sizeof **list);
    (*list)[(*n)++] = note;
}

static struct section *
last_section(struct reader *r)
{
    return r->out->n > 0 ? &r->out->list[r->out->n - 1] : NULL;
}

/* Cuts the final semicolon, with what is only white space and comments behind it. */
static void
cut_semicolon(char *sql)
{
    char *semicolon = NULL;

    for (const char *s = sql; *s;) {
        const char *after = skip_opaque(s, sql);
        if (!after)
            return;
        bool is_comment = (s[0] == '-' && s[1] == '-') || (s[0] == '/' && s[1] == '*');
        if (after == s && *s == ';' && !semicolon)
            semicolon = sql + (s - sql);
        else if (!is_comment && (after > s || !strchr(" \t\r\n", *s)))
            if (semicolon)
                return; /* something follows: check_sql says so */
        s = after > s ? after : s + 1;
    }
    if (semicolon)
        *semicolon = 0;
}

static bool
end_section(struct reader *r)
{
    struct section *s = last_section(r);

    if (!s)
        return true;
    char *start = r->sql.data ? r->sql.data : NULL;
    size_t skip = start ? strspn(start, " \t\r\n") : 0;
    s->sql = xstrdup(start ? start + skip : "");
    buf_clear(&r->sql);
    cut_semicolon(s->sql);
    for (size_t len = strlen(s->sql); len > 0 && strchr(" \t\r\n", s->sql[len - 1]); len--)
        s->sql[len - 1] = 0;
    const char *wrong = check_sql(s->sql);
    if (wrong)
        return fail(r->e, ERR_DATA, "%s:%d: section \"%s\": %s", r->file, s->line, s->name, wrong);
    return true;
}

static bool
begin_section(struct reader *r, struct note *name)
{
    struct sections *out = r->out;

    if (!end_section(r))
        return false;
    if (!*name->value)
        return fail(r->e, ERR_DATA, "%s:%d: a section without a name", r->file, r->line);
    const struct section *other = sections_find(out, name->value);
    if (other)
        return fail(r->e, ERR_DATA, "%s:%d: section \"%s\" stands already in line %d", r->file,
                    r->line, name->value, other->line);
    out->list = xreallocarray(out->list, (size_t)out->n + 1, sizeof *out->list);
    out->list[out->n++] = (struct section){.name = xstrdup(name->value), .line = r->line};
    r->in_notes = true;
    return true;
}

static bool
read_line(struct reader *r, const char *s, size_t len)
{
    struct section *section = last_section(r);
    struct note note;
    bool is_note = (!section || r->in_notes || strncmp(s, "-- name:", 8) == 0) &&
                   parse_note(s, len, r->line, &note);

    if (is_note && strcmp(note.key, "name") == 0) {
        bool ok = begin_section(r, &note);
        note_free(&note);
        return ok;
    }
    if (is_note) {
        if (section)
            add_note(&section->notes, &section->nnotes, note);
        else
            add_note(&r->out->header, &r->out->nheader, note);
        return true;
    }
    bool is_comment = len >= 2 && strncmp(s, "--", 2) == 0;
    if (!section && !is_comment && !is_blank(s, len))
        return fail(r->e, ERR_DATA, "%s:%d: SQL before the first \"-- name:\"", r->file, r->line);
    if (!section || (r->in_notes && (is_comment || is_blank(s, len))))
        return true; /* prose */
    r->in_notes = false;
    buf_add(&r->sql, s, len);
    buf_str(&r->sql, "\n");
    return true;
}

bool
sections_read(const char *file_name, const char *text, struct sections *out, struct err *e)
{
    struct reader r = {.file = file_name, .out = out, .e = e};
    bool ok = utf8_valid(text, strlen(text));

    *out = (struct sections){0};
    if (!ok)
        return fail(e, ERR_DATA, "%s: not valid UTF-8", file_name);
    while (ok && *text) {
        size_t len = strcspn(text, "\n");
        r.line++;
        ok = read_line(&r, text, len);
        text += len + (text[len] == '\n');
    }
    ok = ok && end_section(&r);
    buf_free(&r.sql);
    if (!ok)
        sections_free(out);
    return ok;
}

void
sections_free(struct sections *s)
{
    for (int i = 0; i < s->nheader; i++)
        note_free(&s->header[i]);
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < s->list[i].nnotes; j++)
            note_free(&s->list[i].notes[j]);
        free(s->list[i].notes);
        free(s->list[i].name);
        free(s->list[i].sql);
    }
    free(s->header);
    free(s->list);
    *s = (struct sections){0};
}

/* --- looking up --- */

const struct section *
sections_find(const struct sections *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->list[i].name, name) == 0)
            return &s->list[i];
    return NULL;
}

static const char *
find_note(const struct note *notes, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(notes[i].key, key) == 0)
            return notes[i].value;
    return NULL;
}

const char *
sections_header(const struct sections *s, const char *key)
{
    return find_note(s->header, s->nheader, key);
}

const char *
section_note(const struct section *s, const char *key)
{
    return find_note(s->notes, s->nnotes, key);
}

/* --- the schema --- */

/* Valid UTF-8 without NUL is given, so doubling is all there is to quoting. A backslash would
 * depend on standard_conforming_strings, hence the E. */
static void
add_quoted(struct buf *b, const char *s, char quote)
{
    bool is_escape = quote == '\'' && strchr(s, '\\');

    buf_str(b, is_escape ? " E" : "");
    buf_add(b, &quote, 1);
    for (; *s; s++) {
        if (*s == quote || (is_escape && *s == '\\'))
            buf_add(b, s, 1);
        buf_add(b, s, 1);
    }
    buf_add(b, &quote, 1);
}

static void
add_bound(struct buf *b, const char *from, const char *to, const char *schema)
{
    for (const char *at = from; at < to;) {
        const char *after = skip_opaque(at, from);
        int i = after == at ? placeholder_at(at) : -1;
        const char *end = i == ERROR_KEY ? error_key_end(at) : NULL;
        if (i == SCHEMA || i == SCHEMA_LIT) {
            add_quoted(b, schema, i == SCHEMA ? '"' : '\'');
            at += strlen(placeholders[i]);
            continue;
        }
        if (end) {
            buf_str(b, error_key[0]);
            add_bound(b, at + strlen(placeholders[i]), end, schema);
            buf_str(b, error_key[1]);
            at = end + 2;
            continue;
        }
        if (!after || after == at)
            after = at + 1;
        buf_add(b, at, (size_t)(after - at));
        at = after;
    }
}

bool
sections_bind(const struct section *s, const char *schema, char **sql, struct err *e)
{
    size_t len = strlen(schema);
    struct buf b = {0};

    *sql = NULL;
    if (len == 0 || len > NAME_MAX_BYTES || !utf8_valid(schema, len))
        return fail(e, ERR_USAGE, "not the name of a schema: 1 to %d bytes of UTF-8 are needed",
                    NAME_MAX_BYTES);
    add_bound(&b, s->sql, s->sql + strlen(s->sql), schema);
    *sql = b.data ? b.data : xstrdup("");
    return true;
}
