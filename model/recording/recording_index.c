/*
 * The layout of a recording: header, entries, sums, and finding them again in a file that may be
 * torn or hostile. Everything is checked before it is used: a length must be below its limit before
 * memory is allocated for it, and the usable part of a file ends before the first entry with a
 * wrong sum.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/recording/recording_parts.h"

static const char magic[24] = "queuetop recording\n";

void
recording_put32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (8 * i) & 0xFF);
}

void
recording_put64(unsigned char *p, uint64_t v)
{
    recording_put32(p, (uint32_t)(v & UINT32_MAX));
    recording_put32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t
get32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t
get64(const unsigned char *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* CRC-32 (reflected 0xEDB88320), four bits at a time. */
uint32_t
recording_crc(uint32_t crc, const void *bytes, size_t len)
{
    static const uint32_t table[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC,
                                       0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
                                       0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                       0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
    const unsigned char *p = bytes;

    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

void
recording_header(unsigned char *h)
{
    memset(h, 0, RECORDING_HEADER);
    memcpy(h, magic, sizeof magic);
    recording_put32(h + 24, RECORDING_VERSION);
    recording_put32(h + 28, recording_crc(0, h, 28));
}

/* Reads exactly len bytes; false with errno 0 = the file ends before. */
static bool
read_at(int fd, void *to, size_t len, int64_t offset)
{
    unsigned char *p = to;

    while (len > 0) {
        ssize_t n = pread(fd, p, len, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? 0 : errno;
            return false;
        }
        p += n;
        offset += n;
        len -= (size_t)n;
    }
    return true;
}

static bool
check_header(int fd, const char *file, struct err *e)
{
    unsigned char h[RECORDING_HEADER];

    if (!read_at(fd, h, sizeof h, 0))
        return errno ? fail(e, ERR_SYS, "%s: %s", file, strerror(errno))
                     : fail(e, ERR_DATA, "%s: not a recording of queuetop (too short)", file);
    if (memcmp(h, magic, sizeof magic) != 0)
        return fail(e, ERR_DATA, "%s: not a recording of queuetop (byte 0)", file);
    if (get32(h + 28) != recording_crc(0, h, 28))
        return fail(e, ERR_DATA, "%s: the header is damaged (byte 24)", file);
    if (get32(h + 24) != RECORDING_VERSION)
        return fail(e, ERR_DATA, "%s: a recording of format %u; this program reads %d", file,
                    get32(h + 24), RECORDING_VERSION);
    return true;
}

static bool
read_entry(int fd, int64_t offset, int64_t size, struct recording_entry *p)
{
    unsigned char h[RECORDING_HEADER];

    if (!read_at(fd, h, sizeof h, offset) || get32(h) != RECORDING_TAG)
        return false;
    *p = (struct recording_entry){.offset = offset,
                                  .at_ms = (int64_t)get64(h + 16),
                                  .packed = get32(h + 8),
                                  .raw = get32(h + 12),
                                  .sum = get32(h + 28),
                                  .begins = (get32(h + 4) & RECORDING_BEGINS) != 0};
    return p->packed <= RECORDING_PACKED_MAX && p->raw <= RECORDING_RAW_MAX && p->at_ms >= 0 &&
           p->at_ms < INT64_C(1) << 52 && p->packed <= size - offset - RECORDING_HEADER;
}

bool
recording_load(int fd, const char *file, const struct recording_entry *p, unsigned char **packed,
               struct err *e)
{
    unsigned char *all = xmalloc(RECORDING_HEADER + (size_t)p->packed + 1);

    errno = 0;
    bool ok = read_at(fd, all, RECORDING_HEADER + (size_t)p->packed, p->offset);
    if (!ok && errno)
        fail(e, ERR_SYS, "%s: %s", file, strerror(errno));
    else if (!ok ||
             recording_crc(recording_crc(0, all, 28), all + RECORDING_HEADER, p->packed) != p->sum)
        ok = fail(e, ERR_DATA, "%s: damaged at byte %lld", file, (long long)p->offset);
    if (ok)
        memmove(all, all + RECORDING_HEADER, p->packed);
    else {
        free(all);
        all = NULL;
    }
    *packed = all;
    return ok;
}

/* Adds an entry to the index. Its time may not be earlier than that of the entry before. An entry
 * before the first start of a frame can't be read. */
static bool
add_entry(struct recording_index *x, struct recording_entry *p)
{
    if (x->n == 0 && !p->begins)
        return false;
    if (x->n == x->cap) {
        x->cap = x->cap ? x->cap * 2 : 1024;
        x->entries = xreallocarray(x->entries, (size_t)x->cap, sizeof *x->entries);
    }
    if (x->n > 0 && p->at_ms < x->entries[x->n - 1].at_ms)
        p->at_ms = x->entries[x->n - 1].at_ms;
    x->entries[x->n++] = *p;
    x->end = p->offset + RECORDING_HEADER + p->packed;
    return true;
}

bool
recording_scan(int fd, const char *file, struct recording_index *out, struct err *e)
{
    struct recording_entry p;
    struct err why;
    struct stat st;
    unsigned char *packed;

    *out = (struct recording_index){.end = RECORDING_HEADER};
    if (fstat(fd, &st) != 0)
        return fail(e, ERR_SYS, "%s: %s", file, strerror(errno));
    out->size = st.st_size;
    if (!check_header(fd, file, e))
        return false;
    while (out->n < INT32_MAX / 2 && read_entry(fd, out->end, out->size, &p) && add_entry(out, &p))
        ;
    while (out->n > 0) { /* after a crash of the machine the last entry may be all zeros */
        struct recording_entry *last = &out->entries[out->n - 1];
        if (recording_load(fd, file, last, &packed, &why)) {
            free(packed);
            break;
        }
        out->end = last->offset;
        out->n--;
    }
    return true;
}
