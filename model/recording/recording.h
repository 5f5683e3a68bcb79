/* A recording as a file: entries of bytes, each with its time, compressed by zstd. Entries stand in
 * frames: a frame is one stream of the compressor and needs nothing before it, so a reader starts
 * at any frame. Every entry is written at once, with its length and a check sum. After a crash the
 * last entry may be incomplete: a reader notices this and cuts it off; all entries before it are
 * good.
 *
 * Layout, all numbers little endian: 32 bytes of header (magic, version, sum), then for each entry
 * 32 bytes (tag, flags, packed length, raw length, time in ms since 1970, zero, sum) and the packed
 * bytes. The sum is CRC-32 of those 28 bytes and the packed ones. */
#ifndef MODEL_RECORDING_RECORDING_H
#define MODEL_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/mem.h"

enum { RECORDING_VERSION = 1 };

/* --- writing --------------------------------------------------------------------------------- */

struct recording_out;
/* Creates the file (mode 0600), or appends to it if it is a recording already. *cut = how many
 * bytes of an incomplete end were cut off. Any other file is an error and stays unchanged. */
struct recording_out *recording_create(const char *file, int64_t *cut, struct err *e)
    __attribute__((warn_unused_result));
void recording_end(struct recording_out *t);
/* Writes one entry. begins = the entry starts a frame (the first entry of a file always does). If a
 * time is earlier than the last one, the last one is written instead. After a failure (disk full)
 * the file holds all earlier entries, and every further call fails. */
bool recording_write(struct recording_out *t, int64_t at_ms, bool begins, const struct buf *entry,
                     struct err *e) __attribute__((warn_unused_result));
int64_t recording_bytes(const struct recording_out *t); /* of the file */
int64_t recording_last_ms(const struct recording_out *t);

/* --- reading --------------------------------------------------------------------------------- */

struct recording;
/* Finds all entries by their headers. A damaged end is left out; recording_damage reports it. A
 * file without a single whole entry is an error that names the offset. */
struct recording *recording_open(const char *file, struct err *e)
    __attribute__((warn_unused_result));
void recording_close(struct recording *t);
int recording_entries(const struct recording *t); /* at least 1 */
int64_t recording_at_ms(const struct recording *t, int entry);
int recording_frame(const struct recording *t,
                    int entry); /* the entry that its frame begins with */
bool recording_begins(const struct recording *t, int entry);    /* it is the first of its frame */
int64_t recording_offset(const struct recording *t, int entry); /* its offset in the file */
/* The last entry at or before a time; 0 when all are later. */
int recording_find(const struct recording *t, int64_t at_ms);
/* Where the file stops being a recording; 0 = it is whole. *lost = bytes from there on. */
int64_t recording_damage(const struct recording *t, int64_t *lost);
/* The raw bytes of an entry, valid until the next call. Reading entries in order is cheap; for any
 * other entry its frame is read from the start. An error names the offset. */
bool recording_read(struct recording *t, int entry, const struct buf **raw, struct err *e)
    __attribute__((warn_unused_result));

#endif
