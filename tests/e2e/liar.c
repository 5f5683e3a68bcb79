/*
 * The server that lies: see liar.h. One connection is one process, so its state is static.
 */
#include "tests/e2e/liar.h"

#include "tests/harness.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 5, MAX_COLUMNS = 300, HUGE_VALUE = 1 << 20, MANY_ROWS = 300, BIG_ROW = 100000 };

enum lie { NAMES, TYPES, FEWER, MORE, VALUES, SOME_VALUES, EXTREMES, NULLS, ROWS, NO_ROWS, LIES };

static const char *const values[] = {
    "",
    "-1",
    "0",
    "t",
    "x",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999999",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e308",
    "-1e308",
    "0x10",
    " 7",
    "{",
    "}",
    "{}",
    "{1,2",
    "{NULL}",
    "{{1,2},{3,4}}",
    "[2:3]={1,2}",
    "{\"",
    "{\"a\\",
    "\\x",
    "\\x0",
    "\\xzz",
    "\xff\xfe",
    "\xed\xa0\x80",
    "\033]0;owned\007\033[2J",
    "infinity",
    "-infinity",
    "2026-13-45 99:99:99+99",
    "294276-12-31 23:59:59.999999+00",
    "4713-01-01 00:00:00+00 BC",
    "2026-11-23 10:00:00",
    "-1 days",
    "178000000 years",
    "{\"a\": ",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "{\"a\": 1e999999, \"a\": {\"a\": [null, -0, \"\\ud800\"]}}",
    "queues",
    "running",
    "%s%n%n%n",
    "00000000-0000-0000-0000-000000000000",
};

/* Numbers and times (in ms since 1970) that can be read, but hardly computed with. */
static const char *const extremes[] = {
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775806",
    "-9223372036854775807",
    "2147483647",
    "-2147483648",
    "253402300800000",
    "-62135596800001",
    "9224318015999999",
    "-210866803200001",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e308",
    "-1e308",
    "4e-324",
};

static struct {
    struct buf in;
    unsigned random, one_in;
    bool is_lying;
    enum lie lie;
    int extra; /* number of columns too many; negative: too few */
} liar;

static unsigned
draw(unsigned below)
{
    liar.random = liar.random * 1103515245u + 12345u;
    return (liar.random >> 8) % below;
}

static void
add_int(struct buf *b, uint32_t n)
{
    n = htonl(n);
    buf_add(b, &n, 4);
}

static void
add_short(struct buf *b, int n)
{
    uint16_t net = htons((uint16_t)n);

    buf_add(b, &net, 2);
}

static int
get_short(const char *p)
{
    return (unsigned char)p[0] << 8 | (unsigned char)p[1];
}

static uint32_t
get_int(const char *p)
{
    uint32_t n;

    memcpy(&n, p, 4);
    return ntohl(n);
}

static void
add_message(struct buf *out, char type, const struct buf *body)
{
    buf_add(out, &type, 1);
    add_int(out, (uint32_t)body->len + 4);
    buf_add(out, body->data ? body->data : "", body->len);
}

static bool
is_number(const char *s, uint32_t len)
{
    return len > 0 && len < 24 && strspn(s, "-.0123456789") >= len;
}

static void
add_value(struct buf *b, bool huge)
{
    if (huge) {
        static char text[HUGE_VALUE];
        memset(text, "x[\xff{"[draw(4)], sizeof text);
        add_int(b, sizeof text);
        buf_add(b, text, sizeof text);
        return;
    }
    const char *v = liar.lie == EXTREMES ? extremes[draw(sizeof extremes / sizeof *extremes)]
                                         : values[draw(sizeof values / sizeof *values)];
    add_int(b, (uint32_t)strlen(v));
    buf_str(b, v);
}

/* --- messages --- */

static int
columns(int n)
{
    n += liar.extra;
    return n < 0 ? 0 : n < MAX_COLUMNS ? n : MAX_COLUMNS;
}

/* RowDescription: each column is a name and 18 bytes, of which 6 to 9 are its type. */
static void
describe(struct buf *out, const char *p)
{
    struct buf body = {0};
    int n = get_short(p);
    const char *at = p + 2;

    liar.is_lying = draw(liar.one_in) == 0;
    liar.lie = draw(LIES);
    liar.extra = 0;
    if (liar.is_lying && liar.lie == MORE)
        liar.extra = 1 + (int)draw(40);
    if (liar.is_lying && liar.lie == FEWER)
        liar.extra = -1 - (int)draw((unsigned)n + 1);
    add_short(&body, columns(n));
    for (int i = 0; i < columns(n); i++) {
        bool is_there = i < n;
        bool other = liar.is_lying && (liar.lie == NAMES || !is_there);
        buf_str(&body, other ? values[draw(sizeof values / sizeof *values)] : at);
        buf_add(&body, "", 1);
        if (is_there)
            at += strlen(at) + 1;
        static const uint32_t types[] = {16,  17,   20,   23,   25,        114,
                                         701, 1184, 1186, 1009, 4000000000};
        bool as_it_is = is_there && !(liar.is_lying && liar.lie == TYPES);
        add_int(&body, is_there ? get_int(at) : 0);
        add_short(&body, is_there ? get_short(at + 4) : 0);
        add_int(&body, as_it_is ? get_int(at + 6) : types[draw(sizeof types / sizeof *types)]);
        add_short(&body, -1);
        add_int(&body, (uint32_t)-1);
        add_short(&body, is_there ? get_short(at + 16) : 0);
        if (is_there)
            at += 18;
    }
    add_message(out, 'T', &body);
    buf_free(&body);
}

static void
row(struct buf *out, const char *p)
{
    struct buf body = {0};
    int n = get_short(p);
    const char *at = p + 2;
    bool huge = draw(40) == 0;

    add_short(&body, columns(n));
    for (int i = 0; i < columns(n); i++) {
        uint32_t len = i < n ? get_int(at) : 0;
        bool other = i >= n || (liar.is_lying &&
                                (liar.lie == VALUES || (liar.lie == SOME_VALUES && draw(4) == 0) ||
                                 (liar.lie == EXTREMES && is_number(at + 4, len))));
        if (liar.is_lying && liar.lie == NULLS)
            add_int(&body, (uint32_t)-1);
        else if (other)
            add_value(&body, huge && i == 0);
        else
            buf_add(&body, at, 4 + (len == (uint32_t)-1 ? 0 : len));
        if (i < n)
            at += 4 + (len == (uint32_t)-1 ? 0 : len);
    }
    int times =
        !liar.is_lying || liar.lie != ROWS || body.len > BIG_ROW ? 1 : 2 + (int)draw(MANY_ROWS);
    for (int i = 0; i < times && !(liar.is_lying && liar.lie == NO_ROWS); i++)
        add_message(out, 'D', &body);
    buf_free(&body);
}

static void
done(struct buf *out, const char *tag)
{
    static const char *const tags[] = {"",           "SELECT -1", "UPDATE 99999999999999999999",
                                       "INSERT x y", "ROLLBACK",  "COMMIT"};
    struct buf body = {0};
    bool other = draw(liar.one_in * 2) == 0;

    buf_str(&body, other ? tags[draw(sizeof tags / sizeof *tags)] : tag);
    buf_add(&body, "", 1);
    add_message(out, 'C', &body);
    buf_clear(&body);
    if (draw(liar.one_in * 2) == 0) {
        add_int(&body, draw(2) ? 0 : 4000000000);
        buf_str(&body, values[draw(sizeof values / sizeof *values)]);
        buf_add(&body, "\0nothing", 9);
        add_message(out, 'A', &body);
        buf_clear(&body);
    }
    if (draw(liar.one_in * 2) == 0) {
        buf_printf(&body, "S%s%cC%s%cM%s%c", "WARNING", 0, "", 0,
                   values[draw(sizeof values / sizeof *values)], 0);
        buf_add(&body, "", 1);
        add_message(out, 'N', &body);
    }
    buf_free(&body);
}

static void
lie(struct buf *out, const char *data, size_t n)
{
    buf_add(&liar.in, data, n);
    size_t at = 0;
    while (liar.in.len - at >= HEAD) {
        const char *m = liar.in.data + at;
        size_t len = 1 + (size_t)get_int(m + 1);
        if (liar.in.len - at < len)
            break;
        if (*m == 'T')
            describe(out, m + HEAD);
        else if (*m == 'D')
            row(out, m + HEAD);
        else if (*m == 'C')
            done(out, m + HEAD);
        else
            buf_add(out, m, len);
        at += len;
    }
    memmove(liar.in.data, liar.in.data + at, liar.in.len - at);
    liar.in.len -= at;
}

void
liar_start(struct relay *r, unsigned seed, unsigned one_in)
{
    buf_clear(&liar.in);
    liar.random = seed;
    liar.one_in = one_in;
    relay_start_changing(r, lie);
}
