/*
 * Numbers and texts as bytes. A number takes seven bits of each byte; its sign is the lowest bit.
 */
#include <string.h>

#include "model/recording/recording_table.h"

void
bytes_put(struct buf *out, uint64_t v)
{
    unsigned char b[10];
    int n = 0;

    while (v >= 0x80) {
        b[n++] = (unsigned char)(v & 0x7F) | 0x80;
        v >>= 7;
    }
    b[n++] = (unsigned char)v;
    buf_add(out, b, (size_t)n);
}

static uint64_t
fold(int64_t v)
{
    return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

void
bytes_put_signed(struct buf *out, int64_t v)
{
    bytes_put(out, fold(v));
}

void
bytes_put_text(struct buf *out, const char *s, size_t len)
{
    bytes_put(out, len);
    buf_add(out, s, len);
}

uint64_t
bytes_get(struct recording_bytes *in)
{
    uint64_t v = 0;

    for (unsigned shift = 0; in->ok && shift < 64; shift += 7) {
        if (in->at == in->len)
            break;
        unsigned char c = in->p[in->at++];
        v |= (uint64_t)(c & 0x7F) << shift;
        if (!(c & 0x80))
            return v;
    }
    in->ok = false;
    return 0;
}

int64_t
bytes_get_signed(struct recording_bytes *in)
{
    uint64_t v = bytes_get(in);

    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

const char *
bytes_get_text(struct recording_bytes *in, size_t *len)
{
    uint64_t n = bytes_get(in);

    if (!in->ok || n > in->len - in->at) {
        in->ok = false;
        *len = 0;
        return "";
    }
    const char *s = (const char *)in->p + in->at;
    *len = (size_t)n;
    in->at += *len;
    return s;
}
