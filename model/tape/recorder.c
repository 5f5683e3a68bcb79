/*
 * Makes pieces of a recording from answers. The answers of one pipeline are one piece. A frame
 * begins anew after two minutes or a megabyte, so that a reader is never far from a start.
 */
#include "model/tape/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/tape/tape.h"
#include "model/tape/tape_state.h"

enum { FRAME_MS = 120000, FRAME_BYTES = 1 << 20 };

struct recorder {
    struct store *store;
    struct tape_out *tape;
    struct tape_state state;
    const char *(*place)(void *ctx);
    void *ctx;
    struct buf piece;  /* of the answer that is being recorded */
    int64_t piece_ms;  /* its time */
    int64_t frame_ms;  /* when the frame began */
    int64_t frame_len; /* raw bytes in it */
    bool begun, placed;
    struct recorder_state told;
};

/* Records the place ("host/db") once, before the first answer, as a table of our own. */
static void
tell_place(struct recorder *r, int64_t at_ms)
{
    static const char *const names[] = {"place", "interval"};
    const char *place = r->place(r->ctx);
    char *interval = xasprintf("%d", store_interval(r->store));
    struct result *t = result_new(names, 2);

    result_put(t, 0, 0, place, (int)strlen(place));
    result_put(t, 0, 1, interval, (int)strlen(interval));
    struct store_answer a = {.name = "source", .key = "", .at_ms = at_ms, .tables = &t, .n = 1};
    tape_state_take(&r->state, &a, &r->piece);
    result_free(t);
    free(interval);
    r->placed = true;
}

/* Drops the points of the past. They come with the first answer only, and no later frame needs
 * them. */
static void
drop_past(struct recorder *r)
{
    struct tape_part *p = tape_state_part(&r->state, "queues");

    if (p && p->n == STORE_TABLES)
        tape_done(&p->tables[--p->n]);
}

static void
flush_piece(struct recorder *r)
{
    bool begins = !r->begun || r->piece_ms - r->frame_ms >= FRAME_MS || r->piece_ms < r->frame_ms ||
                  r->frame_len >= FRAME_BYTES;

    if (begins && r->begun) { /* a new frame holds the whole state, not only the changes */
        buf_clear(&r->piece);
        tape_state_pack(&r->state, &r->piece);
    }
    if (tape_write(r->tape, r->piece_ms, begins, &r->piece, &r->told.err)) {
        r->frame_ms = begins ? r->piece_ms : r->frame_ms;
        r->frame_len = (begins ? 0 : r->frame_len) + (int64_t)r->piece.len;
        r->begun = true;
        r->told.snapshots++;
        r->told.last_ms = r->piece_ms;
    }
    r->told.bytes = tape_bytes(r->tape);
    buf_clear(&r->piece);
    drop_past(r);
}

static void
heard(void *ctx, const struct store_answer *a)
{
    struct recorder *r = ctx;

    if (r->told.err.kind != ERR_NONE)
        return;
    if (!a) {
        if (r->piece.len > 0)
            flush_piece(r);
        return;
    }
    if (!r->placed && a->n > 0)
        tell_place(r, a->at_ms);
    tape_state_take(&r->state, a, &r->piece);
    r->piece_ms = a->at_ms;
}

struct recorder *
recorder_new(const char *file, struct store *s, const char *(*place)(void *ctx), void *ctx,
             struct err *e)
{
    int64_t cut;
    struct tape_out *tape = tape_create(file, &cut, e);

    if (!tape)
        return NULL;
    struct recorder *r = xcalloc(1, sizeof *r);
    r->store = s;
    r->tape = tape;
    r->place = place;
    r->ctx = ctx;
    r->told.cut = cut;
    r->told.bytes = tape_bytes(tape);
    store_record(s, heard, r);
    return r;
}

void
recorder_free(struct recorder *r)
{
    if (!r)
        return;
    store_record(r->store, NULL, NULL);
    tape_end(r->tape);
    tape_state_done(&r->state);
    buf_free(&r->piece);
    free(r);
}

struct recorder_state
recorder_state(const struct recorder *r)
{
    return r->told;
}
