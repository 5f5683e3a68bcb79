/*
 * A recording may be anything: a file of any bytes (0), entries whose sums are right around any
 * compressed bytes (1), and entries as they are before compression (2), one after the other. All is
 * read, or refused with a word; nothing that was read breaks what it is made into.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/recording/recording_parts.h"
#include "model/recording/recording_state.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void
use_state(const struct recording_state *s)
{
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->parts[i].n; j++) {
            struct result *r = recording_result(&s->parts[i].tables[j]);
            assert(result_rows(r) == s->parts[i].tables[j].rows);
            result_free(r);
        }
}

static void
read_file(int fd)
{
    char name[64];
    struct err e = {0};
    struct recording_state s = {0};
    const struct buf *raw;
    const char *why;

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    struct recording *t = recording_open(name, &e);
    assert(t || e.kind != ERR_NONE);
    for (int i = 0; t && i < recording_entries(t); i++) {
        if (!recording_read(t, i, &raw, &e))
            assert(strstr(e.text, "byte "));
        else if (!recording_state_unpack(&s, raw, &why))
            assert(why && *why);
    }
    use_state(&s);
    recording_state_done(&s);
    recording_close(t);
}

static void
put(int fd, const void *bytes, size_t len)
{
    ssize_t n = write(fd, bytes, len);
    assert(n == (ssize_t)len);
}

/* Entries of at most 255 packed bytes: a byte of length, one of flags, one of raw length / 16. */
static void
put_entries(int fd, const unsigned char *data, size_t size)
{
    unsigned char h[RECORDING_HEADER];

    recording_header(h);
    put(fd, h, sizeof h);
    while (size > 3) {
        size_t len = data[0] < size - 3 ? data[0] : size - 3;
        memset(h, 0, sizeof h);
        recording_put32(h, RECORDING_TAG);
        recording_put32(h + 4, data[1]);
        recording_put32(h + 8, (uint32_t)len);
        recording_put32(h + 12, (uint32_t)data[2]);
        recording_put64(h + 16, data[1]);
        recording_put32(h + 28, recording_crc(recording_crc(0, h, 28), data + 3, len));
        put(fd, h, sizeof h);
        put(fd, data + 3, len);
        data += 3 + len;
        size -= 3 + len;
    }
}

/* The rest is cut in pieces: a byte of length before each. */
static void
unpack_entries(const unsigned char *data, size_t size)
{
    struct recording_state s = {0};
    const char *why;

    while (size > 1) {
        size_t len = data[0] < size - 1 ? data[0] : size - 1;
        struct buf raw = {0};
        buf_add(&raw, data + 1, len);
        if (!recording_state_unpack(&s, &raw, &why))
            assert(why && *why);
        buf_free(&raw);
        data += 1 + len;
        size -= 1 + len;
    }
    use_state(&s);
    recording_state_done(&s);
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 3 == 2) {
        unpack_entries(data + 1, size - 1);
        return 0;
    }
    int fd = memfd_create("recording", 0);
    assert(fd >= 0);
    if (data[0] % 3)
        put_entries(fd, data + 1, size - 1);
    else
        put(fd, data + 1, size - 1);
    read_file(fd);
    close(fd);
    return 0;
}
