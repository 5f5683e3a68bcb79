/* A recording as a file: pieces of bytes, each with its time, compressed by zstd. Pieces stand in
 * frames: a frame is one stream of the compressor and needs nothing before it, so a reader starts
 * at any frame. Every piece is written at once, with its length and a check sum. After a crash the
 * last piece may be incomplete: a reader notices this and cuts it off; all pieces before it are
 * good.
 *
 * Layout, all numbers little endian: 32 bytes of header (magic, version, sum), then for each piece
 * 32 bytes (tag, flags, packed length, raw length, time in ms since 1970, zero, sum) and the packed
 * bytes. The sum is CRC-32 of those 28 bytes and the packed ones. */
#ifndef MODEL_TAPE_TAPE_H
#define MODEL_TAPE_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/mem.h"

enum { TAPE_VERSION = 1 };

/* --- writing --------------------------------------------------------------------------------- */

struct tape_out;
/* Creates the file (mode 0600), or appends to it if it is a recording already. *cut = how many
 * bytes of an incomplete end were cut off. Any other file is an error and stays unchanged. */
struct tape_out *tape_create(const char *file, int64_t *cut, struct err *e)
    __attribute__((warn_unused_result));
void tape_end(struct tape_out *t);
/* Writes one piece. begins = the piece starts a frame (the first piece of a file always does). If a
 * time is earlier than the last one, the last one is written instead. After a failure (disk full)
 * the file holds all earlier pieces, and every further call fails. */
bool tape_write(struct tape_out *t, int64_t at_ms, bool begins, const struct buf *piece,
                struct err *e) __attribute__((warn_unused_result));
int64_t tape_bytes(const struct tape_out *t); /* of the file */
int64_t tape_last_ms(const struct tape_out *t);

/* --- reading --------------------------------------------------------------------------------- */

struct tape;
/* Finds all pieces by their headers. A damaged end is left out; tape_damage reports it. A file
 * without a single whole piece is an error that names the offset. */
struct tape *tape_open(const char *file, struct err *e) __attribute__((warn_unused_result));
void tape_close(struct tape *t);
int tape_pieces(const struct tape *t); /* at least 1 */
int64_t tape_at_ms(const struct tape *t, int piece);
int tape_frame(const struct tape *t, int piece);      /* the piece that its frame begins with */
bool tape_begins(const struct tape *t, int piece);    /* it is the first of its frame */
int64_t tape_offset(const struct tape *t, int piece); /* its offset in the file */
/* The last piece at or before a time; 0 when all are later. */
int tape_find(const struct tape *t, int64_t at_ms);
/* Where the file stops being a recording; 0 = it is whole. *lost = bytes from there on. */
int64_t tape_damage(const struct tape *t, int64_t *lost);
/* The raw bytes of a piece, valid until the next call. Reading pieces in order is cheap; for any
 * other piece its frame is read from the start. An error names the offset. */
bool tape_read(struct tape *t, int piece, const struct buf **raw, struct err *e)
    __attribute__((warn_unused_result));

#endif
