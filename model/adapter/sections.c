/* Named sections of an annotated .sql file: reading, looking up. */
#include "model/adapter/sections.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/text.h"

/* --- the statement of a section --- */

/* The statement of a section: its check, and the only function that puts a schema into SQL. A
 * small scanner skips quoted text and comments, so a semicolon or a brace in them means nothing.
 * A placeholder inside a quoted string is refused, because it could not be quoted correctly
 * there. */

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

/* Returns the end of a dollar quote, $tag$ ... $tag$; s itself if there is none (for example $1).
 */
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

/* Returns the end of the quoted text or comment at s; s itself if there is none; NULL if it has no
 * end. start: the beginning of the statement. */
static const char *
sql_skip_opaque(const char *s, const char *start)
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

enum { SCHEMA, SCHEMA_LIT, PREFIX, PREFIX_LIT, ERROR_KEY, MS, UUIDS, BIGINTS, PLACEHOLDERS };
static const char *const placeholders[PLACEHOLDERS] = {
    [SCHEMA] = "{schema}",         [SCHEMA_LIT] = "{schema_lit}", [PREFIX] = "{prefix}",
    [PREFIX_LIT] = "{prefix_lit}", [ERROR_KEY] = "{error_key(",   [MS] = "{ms(",
    [UUIDS] = "{uuids(",           [BIGINTS] = "{bigints(",
};

/* The macros, which contain an expression: {error_key(EXPR)}. EXPR is put between the two halves.
 * error_key does the same as the native function error_key(), but with built-in functions only: the
 * text of an error becomes the key of its group. ms gives the milliseconds since 1970 of a point in
 * time, NULL for infinity. uuids and bigints give an array of those ids that have the right form.
 */
static const char *const macros[PLACEHOLDERS][2] = {
    [ERROR_KEY] =
        {"left(btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace("
         "left((",                     ")::text, 1000), '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-"
         "[0-9a-fA-F]{12}', 'N', 'g'), '\"[^\"]*\"|''[^'']*''|`[^`]*`', 'N', 'g'),"
         " E'0[xX][0-9a-fA-F]+|\\\\m(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\\\\M', 'N', 'g'),"
         " '[0-9]+([.,:][0-9]+)*', 'N', 'g'), E'\\\\s+', ' ', 'g')), 300)"},
    [MS] = {"(extract(epoch from nullif(nullif(",  ", 'infinity'), '-infinity')) * 1000)::bigint"       },
    [UUIDS] = {"array(select i::uuid from unnest(",
                     "::text[]) i where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')"                     },
    [BIGINTS] = {"array(select i::bigint from unnest(",
                     "::text[]) i where case when i ~ '^-?[0-9]{1,19}$'"
                 " then i::numeric between -9223372036854775808 and 9223372036854775807 end)"                    },
};

/* Index of the placeholder at s, -1 = none. */
static int
placeholder_at(const char *s)
{
    for (size_t i = 0; *s == '{' && i < sizeof placeholders / sizeof *placeholders; i++)
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

static bool
is_macro(int placeholder)
{
    return placeholder >= 0 && macros[placeholder][0];
}

/* The ")" of the ")}" that ends the macro at s; NULL = there is none. */
static const char *
macro_end(const char *s)
{
    const char *start = s;
    int depth = 1;

    for (s += strlen(placeholders[placeholder_at(s)]); *s;) {
        const char *after = sql_skip_opaque(s, start);
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
sql_check(const char *sql)
{
    bool has_words = false;

    for (const char *s = sql; *s;) {
        const char *after = sql_skip_opaque(s, sql);
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
        if (*s == '{' && is_macro(placeholder_at(s)) && !macro_end(s))
            return "{ms(...)} or another such placeholder has no end";
        has_words = has_words || !strchr(" \t\r\n", *s);
        s++;
    }
    return has_words ? NULL : "no statement";
}

/* --- the schema --- */

/* Quotes a text. The text is valid UTF-8 without NUL, so it is enough to double the quotes. E'' is
 * used because otherwise the meaning of a backslash would depend on standard_conforming_strings. */
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

/* The texts that replace {schema} and {prefix}. */
struct section_texts {
    const char *schema, *prefix;
};

static void
add_name(struct buf *b, int placeholder, const struct section_texts *names)
{
    if (placeholder == PREFIX)
        buf_str(b, names->prefix);
    else if (placeholder == PREFIX_LIT)
        add_quoted(b, names->prefix, '\'');
    else
        add_quoted(b, names->schema, placeholder == SCHEMA ? '"' : '\'');
}

static void
add_bound(struct buf *b, const char *from, const char *to, const struct section_texts *names)
{
    for (const char *at = from; at < to;) {
        const char *after = sql_skip_opaque(at, from);
        int i = after == at ? placeholder_at(at) : -1;
        const char *end = is_macro(i) ? macro_end(at) : NULL;
        if (i >= 0 && !is_macro(i)) {
            add_name(b, i, names);
            at += strlen(placeholders[i]);
            continue;
        }
        if (end) {
            buf_str(b, macros[i][0]);
            add_bound(b, at + strlen(placeholders[i]), end, names);
            buf_str(b, macros[i][1]);
            at = end + 2;
            continue;
        }
        if (!after || after == at)
            after = at + 1;
        buf_add(b, at, (size_t)(after - at));
        at = after;
    }
}

/* Splits "schema/prefix" at the last slash. A prefix becomes part of names without quotes, so it
 * may have only lower case. */
static bool
split_prefix(char *schema, const char **prefix)
{
    char *slash = strrchr(schema, '/');
    const char *s = slash ? slash + 1 : "";

    *prefix = s;
    if (slash)
        *slash = 0;
    return !(*s >= '0' && *s <= '9') && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_")] &&
           strlen(s) <= NAME_MAX_BYTES;
}

bool
sections_bind(const struct section *s, const char *schema, char **sql, struct err *e)
{
    char *copy = xstrdup(schema);
    struct section_texts names = {copy, ""};
    bool ok = !s->has_prefix || split_prefix(copy, &names.prefix);
    size_t len = strlen(copy);
    struct buf b = {0};

    *sql = NULL;
    if (!ok || len == 0 || len > NAME_MAX_BYTES || !utf8_valid(copy, len)) {
        free(copy);
        return fail(e, ERR_USAGE, "not the name of a schema: 1 to %d bytes of UTF-8 are needed",
                    NAME_MAX_BYTES);
    }
    add_bound(&b, s->sql, s->sql + strlen(s->sql), &names);
    *sql = b.data ? b.data : xstrdup("");
    free(copy);
    return true;
}

/* --- reading --- */

struct section_reader {
    const char *file;
    struct sections *out;
    struct buf sql;   /* of the section being read */
    bool in_notes;    /* no SQL was seen in this section yet */
    bool after_note;  /* the line before was a note, or more of one */
    size_t value_len; /* of that note */
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
trim_line(const char *s, size_t len)
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
    note->value = trim_line(s + 4 + key, len - 4 - key);
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

/* "--  more": at least two blanks, then the rest of the value of the line before. */
static bool
is_continuation(const char *s, size_t len)
{
    return len > 4 && strncmp(s, "--  ", 4) == 0 && !is_blank(s + 4, len - 4);
}

static void
continue_note(struct section_reader *r, struct note *note, const char *s, size_t len)
{
    char *more = trim_line(s + 2, len - 2);
    size_t blank = r->value_len > 0, n = strlen(more), old = r->value_len + blank;

    note->value = xreallocarray(note->value, old + n + 1, 1);
    if (blank)
        note->value[r->value_len] = ' ';
    memcpy(note->value + old, more, n + 1);
    r->value_len = old + n;
    free(more);
}

static struct section *
last_section(struct section_reader *r)
{
    return r->out->n > 0 ? &r->out->list[r->out->n - 1] : NULL;
}

/* Cuts the final semicolon, with what is only white space and comments behind it. */
static void
cut_semicolon(char *sql)
{
    char *semicolon = NULL;

    for (const char *s = sql; *s;) {
        const char *after = sql_skip_opaque(s, sql);
        if (!after)
            return;
        bool is_comment = (s[0] == '-' && s[1] == '-') || (s[0] == '/' && s[1] == '*');
        if (after == s && *s == ';' && !semicolon)
            semicolon = sql + (s - sql);
        else if (semicolon && !is_comment && (after > s || !strchr(" \t\r\n", *s)))
            return; /* a second statement follows; sql_check reports it */
        s = after > s ? after : s + 1;
    }
    if (semicolon)
        *semicolon = 0;
}

static bool
end_section(struct section_reader *r)
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
    const char *wrong = sql_check(s->sql);
    if (wrong)
        return fail(r->e, ERR_DATA, "%s:%d: section \"%s\": %s", r->file, s->line, s->name, wrong);
    return true;
}

/* "NAME (LIST)" is NAME with the note "params: LIST". Cuts the name; gives the list, NULL = none.
 */
static char *
cut_params(char *name)
{
    size_t len = strlen(name);
    char *list = strchr(name, '(');

    if (!list || name[len - 1] != ')')
        return NULL;
    name[len - 1] = 0;
    *list = 0;
    for (char *end = list; end > name && end[-1] == ' ';)
        *--end = 0;
    return list + 1;
}

static bool
begin_section(struct section_reader *r, struct note *name)
{
    struct sections *out = r->out;
    const char *list = cut_params(name->value);

    if (!end_section(r))
        return false;
    if (!*name->value)
        return fail(r->e, ERR_DATA, "%s:%d: a section without a name", r->file, r->line);
    const struct section *other = sections_find(out, name->value);
    if (other)
        return fail(r->e, ERR_DATA, "%s:%d: section \"%s\" stands already in line %d", r->file,
                    r->line, name->value, other->line);
    out->list = xreallocarray(out->list, (size_t)out->n + 1, sizeof *out->list);
    struct section *section = &out->list[out->n++];
    *section = (struct section){.name = xstrdup(name->value), .line = r->line};
    if (list)
        add_note(&section->notes, &section->nnotes,
                 (struct note){xstrdup("params"), trim_line(list, strlen(list)), r->line});
    r->in_notes = true;
    r->after_note = false;
    return true;
}

/* The line is a note, or more of one; otherwise it is prose or SQL. */
static bool
read_note(struct section_reader *r, const char *s, size_t len)
{
    struct section *section = last_section(r);
    struct note **list = section ? &section->notes : &r->out->header;
    int *n = section ? &section->nnotes : &r->out->nheader;
    struct note note;

    if (section && !r->in_notes)
        return false;
    if (r->after_note && is_continuation(s, len)) {
        continue_note(r, &(*list)[*n - 1], s, len);
        return true;
    }
    r->after_note = parse_note(s, len, r->line, &note);
    if (r->after_note) {
        r->value_len = strlen(note.value);
        add_note(list, n, note);
    }
    return r->after_note;
}

static bool
read_line(struct section_reader *r, const char *s, size_t len)
{
    struct section *section = last_section(r);
    struct note note;

    if (strncmp(s, "-- name:", 8) == 0 && parse_note(s, len, r->line, &note)) {
        bool ok = begin_section(r, &note);
        note_free(&note);
        return ok;
    }
    if (read_note(r, s, len))
        return true;
    bool is_comment = len >= 2 && strncmp(s, "--", 2) == 0;
    if (!section && !is_comment && !is_blank(s, len))
        return fail(r->e, ERR_DATA, "%s:%d: SQL before the first \"-- name:\"", r->file, r->line);
    if (!section || (r->in_notes && (is_comment || is_blank(s, len))))
        return true; /* prose */
    if (r->in_notes)
        section->sql_line = r->line;
    r->in_notes = false;
    buf_add(&r->sql, s, len);
    buf_str(&r->sql, "\n");
    return true;
}

bool
sections_read(const char *file_name, const char *text, struct sections *out, struct err *e)
{
    struct section_reader r = {.file = file_name, .out = out, .e = e};
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
    for (int i = 0; i < out->n; i++)
        out->list[i].has_prefix = sections_header(out, "prefix") != NULL;
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
