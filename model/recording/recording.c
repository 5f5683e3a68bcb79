/*
 * Reading a recording: an index of its entries in memory (40 bytes each), and one decompressor,
 * whose position is behind the entry that was read last.
 */
#include "model/recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "model/recording/recording_parts.h"

struct recording {
    char *file;
    int fd;
    struct recording_index index;
    ZSTD_DCtx *unpacker;
    int at; /* the entry whose bytes are in raw; -1 = none */
    struct buf raw;
};

static int
open_file(const char *file, struct err *e)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0) {
        fail(e, ERR_SYS, "%s: %s", file, strerror(errno));
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    fail(e, ERR_USAGE, "%s: not a file", file);
    close(fd);
    return -1;
}

struct recording *
recording_open(const char *file, struct err *e)
{
    int fd = open_file(file, e);

    if (fd < 0)
        return NULL;
    struct recording *t = xcalloc(1, sizeof *t);
    t->file = xstrdup(file);
    t->fd = fd;
    t->at = -1;
    t->unpacker = ZSTD_createDCtx();
    if (!t->unpacker)
        abort();
    ZSTD_DCtx_setParameter(t->unpacker, ZSTD_d_windowLogMax, RECORDING_WINDOW_LOG);
    bool ok = recording_scan(fd, file, &t->index, e);
    if (ok && t->index.n == 0)
        ok =
            fail(e, ERR_DATA, "%s: holds nothing whole (byte %lld)", file, (long long)t->index.end);
    if (!ok) {
        recording_close(t);
        return NULL;
    }
    return t;
}

void
recording_close(struct recording *t)
{
    if (!t)
        return;
    close(t->fd);
    ZSTD_freeDCtx(t->unpacker);
    free(t->index.entries);
    buf_free(&t->raw);
    free(t->file);
    free(t);
}

int
recording_entries(const struct recording *t)
{
    return t->index.n;
}

int64_t
recording_at_ms(const struct recording *t, int entry)
{
    return t->index.entries[entry].at_ms;
}

int
recording_frame(const struct recording *t, int entry)
{
    while (entry > 0 && !t->index.entries[entry].begins)
        entry--;
    return entry;
}

bool
recording_begins(const struct recording *t, int entry)
{
    return entry == 0 || t->index.entries[entry].begins;
}

int64_t
recording_offset(const struct recording *t, int entry)
{
    return t->index.entries[entry].offset;
}

int
recording_find(const struct recording *t, int64_t at_ms)
{
    int low = 0, high = t->index.n; /* entries before low are at or before, from high on later */

    while (low < high) {
        int mid = low + (high - low) / 2;
        if (t->index.entries[mid].at_ms <= at_ms)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 ? low - 1 : 0;
}

int64_t
recording_damage(const struct recording *t, int64_t *lost)
{
    *lost = t->index.size - t->index.end;
    return *lost > 0 ? t->index.end : 0;
}

static bool
damaged(const struct recording *t, const struct recording_entry *p, const char *why, struct err *e)
{
    return fail(e, ERR_DATA, "%s: damaged at byte %lld (%s)", t->file, (long long)p->offset, why);
}

static bool
unpack(struct recording *t, const struct recording_entry *p, const unsigned char *packed,
       struct err *e)
{
    ZSTD_inBuffer in = {packed, p->packed, 0};
    char part[16384];

    buf_clear(&t->raw);
    for (;;) {
        ZSTD_outBuffer out = {part, sizeof part, 0};
        size_t left = ZSTD_decompressStream(t->unpacker, &out, &in);
        if (ZSTD_isError(left))
            return damaged(t, p, ZSTD_getErrorName(left), e);
        buf_add(&t->raw, part, out.pos);
        if (t->raw.len > p->raw)
            return damaged(t, p, "longer than it says", e);
        if (out.pos < sizeof part && in.pos == in.size)
            break;
        if (left == 0 && in.pos < in.size)
            return damaged(t, p, "the frame ends early", e);
    }
    return t->raw.len == p->raw || damaged(t, p, "shorter than it says", e);
}

static bool
read_one(struct recording *t, int entry, struct err *e)
{
    const struct recording_entry *p = &t->index.entries[entry];
    unsigned char *packed;

    t->at = -1;
    if (p->begins)
        ZSTD_DCtx_reset(t->unpacker, ZSTD_reset_session_only);
    if (!recording_load(t->fd, t->file, p, &packed, e))
        return false;
    bool ok = unpack(t, p, packed, e);
    free(packed);
    if (ok)
        t->at = entry;
    return ok;
}

bool
recording_read(struct recording *t, int entry, const struct buf **raw, struct err *e)
{
    bool goes_on = t->at >= 0 && t->at == entry - 1 && !t->index.entries[entry].begins;
    int frame = goes_on ? t->at : recording_frame(t, entry), from = frame;

    if (t->at >= frame && t->at <= entry)
        from = t->at + 1;
    for (int i = from; i <= entry; i++)
        if (!read_one(t, i, e))
            return false;
    *raw = &t->raw;
    return true;
}
