/* What a recording knows at one moment: the last answer to each question (queues, nodes, one job).
 * The writer and the reader keep the same state: the writer packs each change, the reader unpacks
 * it. A frame begins with the whole state. */
#ifndef MODEL_TAPE_TAPE_STATE_H
#define MODEL_TAPE_TAPE_STATE_H

#include "model/base/err.h"
#include "model/store/store.h"
#include "model/tape/tape_table.h"

/* Limits of a state. STATE_BYTES_MAX counts texts and cells, because a cell without a text takes
 * memory, too. */
enum { STATE_PARTS = 24, STATE_BYTES_MAX = 128 << 20 };

struct tape_part {
    char *name, *key; /* the question, and what it was about ("" = nothing in particular) */
    int64_t at_ms;    /* the server's clock when it was answered or failed */
    int64_t took_us;
    struct err err; /* of the last try; if it failed, the tables are those of the answer before */
    int n;
    struct tape_table tables[STORE_TABLES];
    bool fresh; /* changed since the reader last looked */
};

struct tape_state {
    struct tape_part parts[STATE_PARTS];
    int n;
};

void tape_state_done(struct tape_state *s);
struct tape_part *tape_state_part(struct tape_state *s,
                                  const char *name); /* NULL = not answered yet */
/* Takes an answer into the state, and appends to out the bytes that a reader needs to do the same.
 */
void tape_state_take(struct tape_state *s, const struct store_answer *a, struct buf *out);
/* All parts whole, for the begin of a frame. */
void tape_state_pack(const struct tape_state *s, struct buf *out);
/* Applies packed changes to the state. False: the bytes are wrong; *why says how. */
bool tape_state_unpack(struct tape_state *s, const struct buf *raw, const char **why);

#endif
