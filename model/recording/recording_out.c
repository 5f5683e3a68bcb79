/*
 * Writing a recording. An entry is compressed into the frame's stream, flushed, and written with
 * one call; if the write fails, the file is cut back to its last whole entry and the recording has
 * ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "model/base/owned.h"
#include "model/recording/recording_parts.h"

enum { LEVEL = 9 };

struct recording_out {
    char *file;
    int fd;
    ZSTD_CCtx *packer;
    struct buf entry; /* header and packed bytes */
    int64_t end, last_ms;
    bool any;    /* a frame of this stream has begun */
    bool failed; /* nothing more is taken */
};

static bool
write_all(int fd, const void *bytes, size_t len, int64_t offset)
{
    const unsigned char *p = bytes;

    while (len > 0) {
        ssize_t n = pwrite(fd, p, len, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return false;
        }
        p += n;
        offset += n;
        len -= (size_t)n;
    }
    return true;
}

/* True for a plain file that belongs to this user and has no second name (hard link). We write to
 * no other file. */
static bool
is_ours(const struct recording_out *t, struct stat *st, struct err *e)
{
    if (fstat(t->fd, st) != 0)
        return fail(e, ERR_SYS, "%s: %s", t->file, strerror(errno));
    if (!S_ISREG(st->st_mode))
        return fail(e, ERR_USAGE, "%s is no plain file: it stays as it is", t->file);
    if (!owned_by_us(st, t->file, e))
        return false;
    if (st->st_nlink > 1)
        return fail(e, ERR_DENIED, "%s has another name too (a hard link): it stays as it is",
                    t->file);
    return true;
}

/* Sets the mode to 0600, because a recording holds payloads and nobody else may read it. Called
 * only when the file is known to be a recording. */
static bool
keep_private(const struct recording_out *t, const struct stat *st)
{
    return (st->st_mode & 0777) == 0600 || fchmod(t->fd, 0600) == 0;
}

/* Writes the header of a new file. In an existing recording, finds the last whole entry and cuts
 * the file behind it. */
static bool
find_end(struct recording_out *t, int64_t *cut, struct err *e)
{
    unsigned char header[RECORDING_HEADER];
    struct recording_index index = {0};
    struct stat st;

    if (!is_ours(t, &st, e))
        return false;
    if (flock(t->fd, LOCK_EX | LOCK_NB) != 0)
        return fail(e, ERR_SYS, "%s: another program records into it", t->file);
    if (fstat(t->fd, &st) != 0)
        return fail(e, ERR_SYS, "%s: %s", t->file, strerror(errno));
    t->end = RECORDING_HEADER;
    if (st.st_size == 0) {
        recording_header(header);
        return (keep_private(t, &st) && write_all(t->fd, header, sizeof header, 0)) ||
               fail(e, ERR_SYS, "%s: %s", t->file, strerror(errno));
    }
    bool ok = recording_scan(t->fd, t->file, &index, e);
    if (ok && !keep_private(t, &st))
        ok = fail(e, ERR_SYS, "%s: %s", t->file, strerror(errno));
    if (ok) {
        t->end = index.end;
        t->last_ms = index.n > 0 ? index.entries[index.n - 1].at_ms : 0;
        *cut = index.size - index.end;
        if (*cut > 0 && ftruncate(t->fd, t->end) != 0)
            ok = fail(e, ERR_SYS, "%s: %s", t->file, strerror(errno));
    } else if (e->kind == ERR_DATA) {
        fail(e, ERR_USAGE, "%s is there already and is no recording: it stays as it is", t->file);
    }
    free(index.entries);
    return ok;
}

struct recording_out *
recording_create(const char *file, int64_t *cut, struct err *e)
{
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0600);

    *cut = 0;
    if (fd < 0 && errno == ELOOP) {
        fail(e, ERR_USAGE, "%s is a symbolic link: name the file itself", file);
        return NULL;
    }
    if (fd < 0) {
        fail(e, ERR_SYS, "%s: %s", file, strerror(errno));
        return NULL;
    }
    signal(SIGXFSZ, SIG_IGN); /* beyond the limit on file sizes write() must fail, and not end
                                 the program */
    struct recording_out *t = xcalloc(1, sizeof *t);
    t->file = xstrdup(file);
    t->fd = fd;
    t->packer = ZSTD_createCCtx();
    if (!t->packer)
        abort();
    ZSTD_CCtx_setParameter(t->packer, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(t->packer, ZSTD_c_windowLog, RECORDING_WINDOW_LOG);
    if (!find_end(t, cut, e)) {
        recording_end(t);
        return NULL;
    }
    return t;
}

void
recording_end(struct recording_out *t)
{
    if (!t)
        return;
    close(t->fd);
    ZSTD_freeCCtx(t->packer);
    buf_free(&t->entry);
    free(t->file);
    free(t);
}

/* Compresses the bytes into the entry, behind the space of its header. */
static bool
pack(struct recording_out *t, const struct buf *entry, struct err *e)
{
    static const unsigned char room[RECORDING_HEADER];
    unsigned char part[16384];
    ZSTD_inBuffer in = {entry->data, entry->len, 0};
    size_t left;

    buf_clear(&t->entry);
    buf_add(&t->entry, room, sizeof room);
    do {
        ZSTD_outBuffer out = {part, sizeof part, 0};
        left = ZSTD_compressStream2(t->packer, &out, &in, ZSTD_e_flush);
        if (ZSTD_isError(left))
            return fail(e, ERR_SYS, "%s: zstd: %s", t->file, ZSTD_getErrorName(left));
        buf_add(&t->entry, part, out.pos);
    } while (left > 0);
    return true;
}

static bool
give_up(struct recording_out *t, struct err *e)
{
    int why = errno;

    t->failed = true;
    if (ftruncate(t->fd, t->end) != 0)
        return fail(e, ERR_SYS, "%s: %s; its end may be torn", t->file, strerror(why));
    return fail(e, ERR_SYS, "%s: %s", t->file, strerror(why));
}

bool
recording_write(struct recording_out *t, int64_t at_ms, bool begins, const struct buf *entry,
                struct err *e)
{
    unsigned char h[RECORDING_HEADER] = {0};

    if (t->failed)
        return fail(e, ERR_SYS, "%s: the recording has ended", t->file);
    if (entry->len > RECORDING_RAW_MAX)
        return fail(e, ERR_DATA, "%s: a snapshot of more than 64 MB is left out", t->file);
    begins |= !t->any;
    if (begins)
        ZSTD_CCtx_reset(t->packer, ZSTD_reset_session_only);
    if (!pack(t, entry, e)) {
        t->failed = true;
        return false;
    }
    t->any = true;
    t->last_ms = at_ms > t->last_ms ? at_ms : t->last_ms;
    size_t packed = t->entry.len - RECORDING_HEADER;
    recording_put32(h, RECORDING_TAG);
    recording_put32(h + 4, begins ? RECORDING_BEGINS : 0);
    recording_put32(h + 8, (uint32_t)packed);
    recording_put32(h + 12, (uint32_t)entry->len);
    recording_put64(h + 16, (uint64_t)t->last_ms);
    recording_put32(
        h + 28, recording_crc(recording_crc(0, h, 28), t->entry.data + RECORDING_HEADER, packed));
    memcpy(t->entry.data, h, sizeof h);
    if (!write_all(t->fd, t->entry.data, t->entry.len, t->end))
        return give_up(t, e);
    t->end += (int64_t)t->entry.len;
    return true;
}

int64_t
recording_bytes(const struct recording_out *t)
{
    return t->end;
}

int64_t
recording_last_ms(const struct recording_out *t)
{
    return t->last_ms;
}
