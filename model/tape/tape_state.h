/* What a recording knows at one moment: the last answer to each question (queues, nodes, one job).
 * The writer and the reader keep the same state, one packs what changes in it, the other unpacks
 * that; a frame begins with all of it. */
#ifndef MODEL_TAPE_TAPE_STATE_H
#define MODEL_TAPE_TAPE_STATE_H

#include "model/base/err.h"
#include "model/store/store.h"
#include "model/tape/tape_table.h"

/* Texts and cells of all tables: a cell without a text takes memory, too. */
enum { STATE_PARTS = 24, STATE_BYTES_MAX = 128 << 20 };

struct tape_part {
    char *name, *key; /* the question, and what it was about ("" = nothing in particular) */
    int64_t at_ms;    /* the server's clock when it was answered or failed */
    int64_t took_us;
    struct err err; /* of the last try; the tables are those of the answer before */
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
/* Takes an answer in and appends to out what a reader needs for that. */
void tape_state_take(struct tape_state *s, const struct store_answer *a, struct buf *out);
/* All parts whole, for the begin of a frame. */
void tape_state_pack(const struct tape_state *s, struct buf *out);
/* Changes the state by what was packed; false with a word for what is wrong. */
bool tape_state_unpack(struct tape_state *s, const struct buf *raw, const char **why);

#endif
