/*
 * Reading a recording: an index of its pieces in memory (40 bytes each), and one decompressor,
 * whose position is behind the piece that was read last.
 */
#include "model/tape/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "model/tape/tape_parts.h"

struct tape {
    char *file;
    int fd;
    struct tape_index index;
    ZSTD_DCtx *unpacker;
    int at; /* the piece whose bytes are in raw; -1 = none */
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

struct tape *
tape_open(const char *file, struct err *e)
{
    int fd = open_file(file, e);

    if (fd < 0)
        return NULL;
    struct tape *t = xcalloc(1, sizeof *t);
    t->file = xstrdup(file);
    t->fd = fd;
    t->at = -1;
    t->unpacker = ZSTD_createDCtx();
    if (!t->unpacker)
        abort();
    ZSTD_DCtx_setParameter(t->unpacker, ZSTD_d_windowLogMax, TAPE_WINDOW_LOG);
    bool ok = tape_scan(fd, file, &t->index, e);
    if (ok && t->index.n == 0)
        ok =
            fail(e, ERR_DATA, "%s: holds nothing whole (byte %lld)", file, (long long)t->index.end);
    if (!ok) {
        tape_close(t);
        return NULL;
    }
    return t;
}

void
tape_close(struct tape *t)
{
    if (!t)
        return;
    close(t->fd);
    ZSTD_freeDCtx(t->unpacker);
    free(t->index.pieces);
    buf_free(&t->raw);
    free(t->file);
    free(t);
}

int
tape_pieces(const struct tape *t)
{
    return t->index.n;
}

int64_t
tape_at_ms(const struct tape *t, int piece)
{
    return t->index.pieces[piece].at_ms;
}

int
tape_frame(const struct tape *t, int piece)
{
    while (piece > 0 && !t->index.pieces[piece].begins)
        piece--;
    return piece;
}

bool
tape_begins(const struct tape *t, int piece)
{
    return piece == 0 || t->index.pieces[piece].begins;
}

int64_t
tape_offset(const struct tape *t, int piece)
{
    return t->index.pieces[piece].offset;
}

int
tape_find(const struct tape *t, int64_t at_ms)
{
    int low = 0, high = t->index.n; /* pieces before low are at or before, from high on later */

    while (low < high) {
        int mid = low + (high - low) / 2;
        if (t->index.pieces[mid].at_ms <= at_ms)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 ? low - 1 : 0;
}

int64_t
tape_damage(const struct tape *t, int64_t *lost)
{
    *lost = t->index.size - t->index.end;
    return *lost > 0 ? t->index.end : 0;
}

static bool
damaged(const struct tape *t, const struct tape_piece *p, const char *why, struct err *e)
{
    return fail(e, ERR_DATA, "%s: damaged at byte %lld (%s)", t->file, (long long)p->offset, why);
}

static bool
unpack(struct tape *t, const struct tape_piece *p, const unsigned char *packed, struct err *e)
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
read_one(struct tape *t, int piece, struct err *e)
{
    const struct tape_piece *p = &t->index.pieces[piece];
    unsigned char *packed;

    t->at = -1;
    if (p->begins)
        ZSTD_DCtx_reset(t->unpacker, ZSTD_reset_session_only);
    if (!tape_load(t->fd, t->file, p, &packed, e))
        return false;
    bool ok = unpack(t, p, packed, e);
    free(packed);
    if (ok)
        t->at = piece;
    return ok;
}

bool
tape_read(struct tape *t, int piece, const struct buf **raw, struct err *e)
{
    bool goes_on = t->at >= 0 && t->at == piece - 1 && !t->index.pieces[piece].begins;
    int frame = goes_on ? t->at : tape_frame(t, piece), from = frame;

    if (t->at >= frame && t->at <= piece)
        from = t->at + 1;
    for (int i = from; i <= piece; i++)
        if (!read_one(t, i, e))
            return false;
    *raw = &t->raw;
    return true;
}
