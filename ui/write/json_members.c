/*
 * Reads the members of a JSON object. The text was checked by json_check, so that it can't be
 * malformed.
 */
#include "ui/write/json_members.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/text.h"

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

bool
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

bool
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
