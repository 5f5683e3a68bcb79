/*
 * The statement of a section: its check, and the only function that puts a schema into SQL. A small
 * scanner skips quoted text and comments, so a semicolon or a brace in them means nothing. A
 * placeholder inside a quoted string is refused, because it could not be quoted correctly there.
 */
#include <stdlib.h>
#include <string.h>

#include "model/adapter/sections.h"
#include "model/adapter/sections_parts.h"
#include "model/base/mem.h"
#include "model/base/text.h"

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

const char *
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

const char *
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
