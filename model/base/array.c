/*
 * The wire form of an array: dimensions, has-null flag, element OID, length and lower bound, then
 * each element as a 4-byte length (-1 = NULL) and its bytes, all in network order.
 */
#include "model/base/array.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <uuid/uuid.h>

enum { HAS_NULL_AT = 4 };
static const int64_t year_2000_ms = INT64_C(946684800000);

static void
add_number(struct buf *b, uint64_t value, int bytes)
{
    unsigned char out[8];

    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        out[i] = (unsigned char)(value & 0xff);
    buf_add(b, out, (size_t)bytes);
}

static void
add_element(struct array *a, uint64_t value, int bytes)
{
    assert(a->left > 0);
    a->left--;
    add_number(&a->buf, (uint64_t)bytes, 4);
    add_number(&a->buf, value, bytes);
}

void
array_start(struct array *a, enum array_type type, int n)
{
    assert(n > 0);
    *a = (struct array){.n = n, .left = n};
    add_number(&a->buf, 1, 4);
    add_number(&a->buf, 0, 4);
    add_number(&a->buf, (uint64_t)type, 4);
    add_number(&a->buf, (uint64_t)n, 4);
    add_number(&a->buf, 1, 4);
}

void
array_null(struct array *a)
{
    assert(a->left > 0);
    a->left--;
    a->has_null = true;
    add_number(&a->buf, UINT32_MAX, 4);
}

void
array_bool(struct array *a, bool value)
{
    add_element(a, value, 1);
}

void
array_i32(struct array *a, int32_t value)
{
    add_element(a, (uint32_t)value, 4);
}

void
array_i64(struct array *a, int64_t value)
{
    add_element(a, (uint64_t)value, 8);
}

void
array_bytes(struct array *a, const void *p, size_t len)
{
    assert(len <= INT_MAX);
    if (!p) {
        array_null(a);
        return;
    }
    assert(a->left > 0);
    a->left--;
    add_number(&a->buf, len, 4);
    buf_add(&a->buf, p, len);
}

void
array_text(struct array *a, const char *s)
{
    array_bytes(a, s, s ? strlen(s) : 0);
}

void
array_time(struct array *a, int64_t since_1970_ms)
{
    array_i64(a, (since_1970_ms - year_2000_ms) * 1000);
}

void
array_interval(struct array *a, int64_t ms)
{
    assert(a->left > 0);
    a->left--;
    add_number(&a->buf, 16, 4);
    add_number(&a->buf, (uint64_t)(ms * 1000), 8);
    add_number(&a->buf, 0, 8); /* days and months */
}

bool
array_uuid(struct array *a, const char *text)
{
    uuid_t id;

    if (uuid_parse(text, id)) {
        array_null(a);
        return false;
    }
    array_bytes(a, id, sizeof id);
    return true;
}

const char *
array_whole(struct array *a, size_t *len)
{
    assert(a->left == 0 && a->buf.len <= INT_MAX);
    if (a->has_null)
        a->buf.data[HAS_NULL_AT + 3] = 1;
    *len = a->buf.len;
    return a->buf.data;
}

void
array_free(struct array *a)
{
    buf_free(&a->buf);
    *a = (struct array){0};
}
