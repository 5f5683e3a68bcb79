/* What a recording knows at one moment: the last answer to each question (queues, nodes, one job).
 * The writer and the reader keep the same state: the writer packs each change, the reader unpacks
 * it. A frame begins with the whole state. */
#ifndef MODEL_RECORDING_RECORDING_STATE_H
#define MODEL_RECORDING_RECORDING_STATE_H

#include "model/base/err.h"
#include "model/recording/recording_table.h"
#include "model/store/store.h"

/* Limits of a state. STATE_BYTES_MAX counts texts and cells, because a cell without a text takes
 * memory, too. */
enum { STATE_PARTS = 24, STATE_BYTES_MAX = 128 << 20 };

struct recording_part {
    char *name, *key; /* the question, and what it was about ("" = nothing in particular) */
    int64_t at_ms;    /* the server's clock when it was answered or failed */
    int64_t took_us;
    struct err err; /* of the last try; if it failed, the tables are those of the answer before */
    int n;
    struct recording_table tables[STORE_TABLES];
    bool fresh; /* changed since the reader last looked */
};

struct recording_state {
    struct recording_part parts[STATE_PARTS];
    int n;
};

void recording_state_done(struct recording_state *s);
struct recording_part *recording_state_part(struct recording_state *s,
                                            const char *name); /* NULL = not answered yet */
/* Takes an answer into the state, and appends to out the bytes that a reader needs to do the same.
 */
void recording_state_take(struct recording_state *s, const struct store_answer *a, struct buf *out);
/* All parts whole, for the begin of a frame. */
void recording_state_pack(const struct recording_state *s, struct buf *out);
/* Applies packed changes to the state. False: the bytes are wrong; *why says how. */
bool recording_state_unpack(struct recording_state *s, const struct buf *raw, const char **why);

#endif
