/* JSON without a library: a checker that finds the end of each part, and a printer that changes
 * only the white space between parts. Strings and numbers are never decoded, so the text that is
 * shown is the text that is stored. Nothing is recursive: the nesting is a stack of open brackets,
 * which may be as deep as the text is long. */
#include <ctype.h>
#include <string.h>

#include "model/base/text.h"

enum { MAX_DEPTH = 200, SHORT = 60 };

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Each scan function returns the length of the part that it found at s; 0 = that part is not there.
 */
static size_t
scan_escape(const char *s, size_t len)
{
    size_t n = len > 1 && s[1] == 'u' ? 6 : 2;

    if (len < n || s[1] == 0 || !strchr("\"\\/bfnrtu", s[1]))
        return 0;
    for (size_t i = 2; i < n; i++)
        if (!isxdigit((unsigned char)s[i]))
            return 0;
    return n;
}

static size_t
scan_string(const char *s, size_t len)
{
    for (size_t i = 1, n; i < len; i += n) {
        if (s[i] == '"')
            return i + 1;
        if ((unsigned char)s[i] < 0x20)
            return 0;
        n = s[i] == '\\' ? scan_escape(s + i, len - i) : 1;
        if (n == 0)
            return 0;
    }
    return 0;
}

static size_t
scan_digits(const char *s, size_t len)
{
    size_t i = 0;

    while (i < len && is_digit(s[i]))
        i++;
    return i;
}

static size_t
scan_number(const char *s, size_t len)
{
    size_t i = s[0] == '-', n = scan_digits(s + i, len - i);

    if (n == 0 || (n > 1 && s[i] == '0'))
        return 0;
    i += n;
    if (i < len && s[i] == '.') {
        n = scan_digits(s + i + 1, len - i - 1);
        if (n == 0)
            return 0;
        i += n + 1;
    }
    if (i < len && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        i += i < len && (s[i] == '+' || s[i] == '-');
        n = scan_digits(s + i, len - i);
        if (n == 0)
            return 0;
        i += n;
    }
    return i;
}

static size_t
scan_scalar(const char *s, size_t len)
{
    static const char *const words[] = {"true", "false", "null"};

    if (s[0] == '"')
        return scan_string(s, len);
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if (len >= n && memcmp(s, words[i], n) == 0)
            return n;
    }
    return scan_number(s, len);
}

/* State of the reader. Together with the open brackets it says which part may come next. */
enum expect { VALUE, VALUE_OR_END, NAME, NAME_OR_END, COLON, COMMA_OR_END, NOTHING };

struct json_reader {
    const char *s;
    size_t len, at;
    struct buf open; /* the brackets that are open */
    enum expect expect;
};

struct json_part {
    const char *s;
    size_t len;
};

static void
close_bracket(struct json_reader *r)
{
    r->open.len--;
    r->expect = r->open.len ? COMMA_OR_END : NOTHING;
}

static bool
next_mark(struct json_reader *r, char c)
{
    char top = r->open.len ? r->open.data[r->open.len - 1] : 0;
    bool value = r->expect == VALUE || r->expect == VALUE_OR_END;

    if ((c == '{' || c == '[') && value) {
        buf_add(&r->open, &c, 1);
        r->expect = c == '{' ? NAME_OR_END : VALUE_OR_END;
    } else if (c == '}' && top == '{' && (r->expect == NAME_OR_END || r->expect == COMMA_OR_END)) {
        close_bracket(r);
    } else if (c == ']' && top == '[' && (r->expect == VALUE_OR_END || r->expect == COMMA_OR_END)) {
        close_bracket(r);
    } else if (c == ',' && r->expect == COMMA_OR_END) {
        r->expect = top == '{' ? NAME : VALUE;
    } else if (c == ':' && r->expect == COLON) {
        r->expect = VALUE;
    } else {
        return false;
    }
    return true;
}

/* Reads the next part. False: the text is over, or there is an error. The text was correct if
 * `expect` is NOTHING and `at` equals `len`. */
static bool
next_part(struct json_reader *r, struct json_part *p)
{
    while (r->at < r->len && is_space(r->s[r->at]))
        r->at++;
    if (r->at == r->len || r->expect == NOTHING)
        return false;
    p->s = r->s + r->at;
    p->len = 1;
    if (!next_mark(r, p->s[0])) {
        bool name = r->expect == NAME || r->expect == NAME_OR_END;
        bool value = r->expect == VALUE || r->expect == VALUE_OR_END;
        if (!(name && p->s[0] == '"') && !value)
            return false;
        p->len = scan_scalar(p->s, r->len - r->at);
        if (p->len == 0)
            return false;
        r->expect = name ? COLON : r->open.len ? COMMA_OR_END : NOTHING;
    }
    r->at += p->len;
    return true;
}

bool
json_check(const char *s, size_t len, int *line, int *column)
{
    struct json_reader r = {.s = s, .len = len};
    struct json_part p;

    while (next_part(&r, &p))
        ;
    buf_free(&r.open);
    *line = *column = 1;
    for (size_t i = 0; i < r.at; i++) {
        bool is_more = ((unsigned char)s[i] & 0xC0) == 0x80; /* of a character */
        *column = s[i] == '\n' ? 1 : *column + !is_more;
        *line += s[i] == '\n';
    }
    return r.expect == NOTHING && r.at == len;
}

static bool
is_json(const char *s, size_t len)
{
    int line, column;

    return json_check(s, len, &line, &column);
}

/* True if the bracket at s closes within SHORT cells of the printed form and holds no other
 * bracket. */
static bool
is_short(const char *s, size_t len)
{
    size_t cells = 0;

    for (size_t i = 1; i < len && cells < SHORT; i++) {
        size_t n = s[i] == '"' ? scan_string(s + i, len - i) : 1;
        if (s[i] == '[' || s[i] == '{' || n == 0)
            return false;
        if (s[i] == ']' || s[i] == '}')
            return true;
        cells += is_space(s[i]) ? 0 : s[i] == ',' || s[i] == ':' ? 2 : n;
        i += n - 1;
    }
    return false;
}

static void
new_line(struct buf *out, size_t level)
{
    buf_str(out, "\n");
    for (size_t i = 0; i < level; i++)
        buf_str(out, "  ");
}

static bool
is_close(char c)
{
    return c == '}' || c == ']';
}

static char
peek(const struct json_reader *r)
{
    size_t i = r->at;

    while (i < r->len && is_space(r->s[i]))
        i++;
    return i < r->len ? r->s[i] : 0;
}

static void
print_open(struct buf *out, const struct json_reader *r, struct json_part p, size_t *flat)
{
    size_t depth = r->open.len;

    if (!*flat && (depth > MAX_DEPTH || is_short(p.s, r->len - (size_t)(p.s - r->s))))
        *flat = depth;
    buf_add(out, p.s, 1);
    if (is_close(peek(r)))
        return;
    if (!*flat)
        new_line(out, depth);
    else if (*p.s == '{')
        buf_str(out, " ");
}

static void
print_close(struct buf *out, const struct json_reader *r, struct json_part p, size_t *flat)
{
    char before = out->data[out->len - 1];

    if (before != '{' && before != '[') {
        if (!*flat)
            new_line(out, r->open.len);
        else if (*p.s == '}')
            buf_str(out, " ");
    }
    if (r->open.len < *flat)
        *flat = 0;
    buf_add(out, p.s, 1);
}

/* Writes one part. `flat` is the depth at which a bracket stays on one line, 0 = none does. */
static void
print_part(struct buf *out, const struct json_reader *r, struct json_part p, size_t *flat)
{
    if (*p.s == '{' || *p.s == '[') {
        print_open(out, r, p, flat);
    } else if (is_close(*p.s)) {
        print_close(out, r, p, flat);
    } else {
        buf_add(out, p.s, p.len);
        if (*p.s == ':' || (*p.s == ',' && *flat))
            buf_str(out, " ");
        else if (*p.s == ',')
            new_line(out, r->open.len);
    }
}

void
json_pretty(struct buf *out, const char *s, size_t len)
{
    struct json_reader r = {.s = s, .len = len};
    struct json_part p;
    size_t flat = 0;

    if (!is_json(s, len)) {
        buf_add(out, s, len);
        return;
    }
    while (next_part(&r, &p))
        print_part(out, &r, p, &flat);
    buf_free(&r.open);
}

void
json_compact(struct buf *out, const char *s, size_t len)
{
    struct json_reader r = {.s = s, .len = len};
    struct json_part p;

    if (!is_json(s, len)) {
        buf_add(out, s, len);
        return;
    }
    while (next_part(&r, &p))
        buf_add(out, p.s, p.len);
    buf_free(&r.open);
}

static void
escape(struct buf *out, uint32_t cp)
{
    if (cp < 0x10000)
        buf_printf(out, "\\u%04x", (unsigned)cp);
    else
        buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((cp - 0x10000) >> 10)),
                   (unsigned)(0xDC00 + ((cp - 0x10000) & 0x3FF)));
}

static void
string_char(struct buf *out, uint32_t cp, const char *s, int n)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = cp && cp < 0x80 ? strchr(named, (int)cp) : NULL;

    if (at)
        buf_printf(out, "\\%c", letters[at - named]);
    else if (text_is_plain(cp))
        buf_add(out, s, (size_t)n);
    else
        escape(out, cp);
}

void
json_string(struct buf *out, const char *s, size_t len)
{
    buf_str(out, "\"");
    for (size_t at = 0; at < len;) {
        uint32_t cp = 0xFFFD;
        int n = utf8_decode(s + at, len - at, &cp);
        if (n == 0)
            buf_str(out, "\uFFFD");
        else
            string_char(out, cp, s + at, n);
        at += n ? (size_t)n : 1;
    }
    buf_str(out, "\"");
}

void
json_armour(struct buf *out, const char *s, size_t len)
{
    for (size_t at = 0; at < len;) {
        uint32_t cp = 0xFFFD;
        int n = utf8_decode(s + at, len - at, &cp);
        bool space = n == 1 && (cp == '\n' || cp == '\r' || cp == '\t');
        if (n == 0)
            buf_str(out, "\uFFFD");
        else if (space || (cp >= ' ' && text_is_plain(cp)))
            buf_add(out, s + at, (size_t)n);
        else
            escape(out, cp);
        at += n ? (size_t)n : 1;
    }
}

void
hex_dump(struct buf *out, const unsigned char *p, size_t len)
{
    for (size_t at = 0; at < len; at += 16) {
        buf_printf(out, "%08zx  ", at);
        for (size_t i = at; i < at + 16; i++) {
            if (i < len)
                buf_printf(out, "%02x ", p[i]);
            else
                buf_str(out, "   ");
            if (i == at + 7)
                buf_str(out, " ");
        }
        buf_str(out, " |");
        for (size_t i = at; i < at + 16 && i < len; i++)
            buf_printf(out, "%c", p[i] >= 0x20 && p[i] < 0x7F ? p[i] : '.');
        buf_str(out, "|\n");
    }
}
