/* The tables of a recording: an answer of the server as plain cells, packed against the table that
 * the same question gave before. An unchanged cell becomes a zero, a number becomes its difference,
 * so the compressor gets mostly zeros. Unpacking checks every byte. */
#ifndef MODEL_TAPE_TAPE_TABLE_H
#define MODEL_TAPE_TAPE_TABLE_H

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

struct tape_cell {
    uint32_t at; /* offset in text; a NUL follows the cell */
    int32_t len; /* -1 = SQL NULL */
};

struct tape_table {
    int cols, rows;
    struct tape_cell *cells; /* the names of the columns, then row by row */
    struct buf text;
};

void tape_done(struct tape_table *t);
void tape_of_result(struct tape_table *t, const struct result *r); /* t is done or zero */
struct result *tape_result(const struct tape_table *t);
const char *tape_text(const struct tape_table *t, int row, int col); /* "" for NULL, outside */

/* Packs t against base. base NULL = no base; a base with other columns is not used. */
void tape_pack(struct buf *out, const struct tape_table *t, const struct tape_table *base);

/* Bytes to be read. `ok` becomes false at the first read beyond the end; all later reads return 0.
 */
struct tape_bytes {
    const unsigned char *p;
    size_t len, at;
    bool ok;
};
bool tape_unpack(struct tape_bytes *in, const struct tape_table *base, struct tape_table *out);

void bytes_put(struct buf *out, uint64_t v);
void bytes_put_signed(struct buf *out, int64_t v);
void bytes_put_text(struct buf *out, const char *s, size_t len);
uint64_t bytes_get(struct tape_bytes *in);
int64_t bytes_get_signed(struct tape_bytes *in);
const char *bytes_get_text(struct tape_bytes *in, size_t *len); /* no NUL behind */

#endif
