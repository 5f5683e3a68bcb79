/* The tables of a recording: an answer of the server as plain cells, packed against the table that
 * the same question gave before. An unchanged cell becomes a zero, a number becomes its difference,
 * so the compressor gets mostly zeros. Unpacking checks every byte. */
#ifndef MODEL_RECORDING_RECORDING_TABLE_H
#define MODEL_RECORDING_RECORDING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "model/db/rows.h"

enum {
    TABLE_COLS_MAX = 200,
    TABLE_CELLS_MAX = 2000000,
    TABLE_TEXT_MAX = 16 << 20,
    TABLE_CELL_MAX = 1 << 20 /* of a text; a longer one is cut, and ends with three dots */
};

struct recording_cell {
    uint32_t at; /* offset in text; a NUL follows the cell */
    int32_t len; /* -1 = SQL NULL */
};

struct recording_table {
    int cols, rows;
    struct recording_cell *cells; /* the names of the columns, then row by row */
    struct buf text;
};

void recording_done(struct recording_table *t);
void recording_of_result(struct recording_table *t, const struct result *r); /* t is done or zero */
struct result *recording_result(const struct recording_table *t);
const char *recording_text(const struct recording_table *t, int row,
                           int col); /* "" for NULL, outside */

/* Packs t against base. base NULL = no base; a base with other columns is not used. */
void recording_pack(struct buf *out, const struct recording_table *t,
                    const struct recording_table *base);

/* Bytes to be read. `ok` becomes false at the first read beyond the end; all later reads return 0.
 */
struct recording_bytes {
    const unsigned char *p;
    size_t len, at;
    bool ok;
};
bool recording_unpack(struct recording_bytes *in, const struct recording_table *base,
                      struct recording_table *out);

void bytes_put(struct buf *out, uint64_t v);
void bytes_put_signed(struct buf *out, int64_t v);
void bytes_put_text(struct buf *out, const char *s, size_t len);
uint64_t bytes_get(struct recording_bytes *in);
int64_t bytes_get_signed(struct recording_bytes *in);
const char *bytes_get_text(struct recording_bytes *in, size_t *len); /* no NUL behind */

#endif
