/*
 * Payloads come as they are: pretty printing may add and take away only white space between the
 * parts, printing what was printed changes nothing, and a JSON string that we write is one.
 */
#include <assert.h>
#include <string.h>

#include "model/base/text.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool
is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Returns the next byte, without the white space outside of strings. */
static int
next(const struct buf *b, size_t *at, bool *in_string)
{
    while (*at < b->len && !*in_string && is_space(b->data[*at]))
        ++*at;
    if (*at == b->len)
        return -1;
    char c = b->data[(*at)++];
    if (*in_string && c == '\\' && *at < b->len)
        return c; /* what is escaped comes next, and is compared as it is */
    if (c == '"' && !(*in_string && *at >= 2 && b->data[*at - 2] == '\\'))
        *in_string = !*in_string;
    return (unsigned char)c;
}

static void
check_same_parts(const struct buf *a, const struct buf *b)
{
    size_t at = 0, bt = 0;
    bool in_a = false, in_b = false;

    for (int x = 0; x >= 0;) {
        x = next(a, &at, &in_a);
        int y = next(b, &bt, &in_b);
        assert(x == y);
    }
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const char *s = (const char *)data;
    struct buf in = {0}, once = {0}, tight = {0}, twice = {0}, string = {0}, printed = {0};

    int line, column;

    buf_add(&in, s, size);
    json_pretty(&once, s, size);
    check_same_parts(&in, &once);
    json_compact(&tight, s, size);
    check_same_parts(&in, &tight);
    if (json_check(s, size, &line, &column))
        assert(json_check(tight.data ? tight.data : "", tight.len, &line, &column));
    assert(line > 0 && column > 0);
    if (once.data)
        json_pretty(&twice, once.data, once.len);
    assert(once.len == twice.len && (!once.len || !memcmp(once.data, twice.data, once.len)));
    json_string(&string, s, size);
    assert(utf8_valid(string.data, string.len));
    json_pretty(&printed, string.data, string.len);
    assert(printed.len == string.len);
    for (size_t i = 0; i < string.len; i++)
        assert((unsigned char)string.data[i] >= 0x20 && string.data[i] != 0x7F);
    hex_dump(&printed, data, size);
    buf_free(&in), buf_free(&once), buf_free(&tight), buf_free(&twice), buf_free(&string),
        buf_free(&printed);
    return 0;
}
