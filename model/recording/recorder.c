/*
 * Makes entries of a recording from answers. The answers of one pipeline are one entry. A frame
 * begins anew after two minutes or a megabyte, so that a reader is never far from a start.
 */
#include "model/recording/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/recording/recording.h"
#include "model/recording/recording_state.h"

enum { FRAME_MS = 120000, FRAME_BYTES = 1 << 20 };

struct recorder {
    struct store *store;
    struct recording_out *recording;
    struct recording_state state;
    const char *(*place)(void *ctx);
    void *ctx;
    struct buf entry;  /* of the answer that is being recorded */
    int64_t entry_ms;  /* its time */
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
    recording_state_take(&r->state, &a, &r->entry);
    result_free(t);
    free(interval);
    r->placed = true;
}

/* Drops the points of the past. They come with the first answer only, and no later frame needs
 * them. */
static void
drop_past(struct recorder *r)
{
    struct recording_part *p = recording_state_part(&r->state, "queues");

    if (p && p->n == STORE_TABLES)
        recording_done(&p->tables[--p->n]);
}

static void
flush_entry(struct recorder *r)
{
    bool begins = !r->begun || r->entry_ms - r->frame_ms >= FRAME_MS || r->entry_ms < r->frame_ms ||
                  r->frame_len >= FRAME_BYTES;

    if (begins && r->begun) { /* a new frame holds the whole state, not only the changes */
        buf_clear(&r->entry);
        recording_state_pack(&r->state, &r->entry);
    }
    if (recording_write(r->recording, r->entry_ms, begins, &r->entry, &r->told.err)) {
        r->frame_ms = begins ? r->entry_ms : r->frame_ms;
        r->frame_len = (begins ? 0 : r->frame_len) + (int64_t)r->entry.len;
        r->begun = true;
        r->told.snapshots++;
        r->told.last_ms = r->entry_ms;
    }
    r->told.bytes = recording_bytes(r->recording);
    buf_clear(&r->entry);
    drop_past(r);
}

static void
heard(void *ctx, const struct store_answer *a)
{
    struct recorder *r = ctx;

    if (r->told.err.kind != ERR_NONE)
        return;
    if (!a) {
        if (r->entry.len > 0)
            flush_entry(r);
        return;
    }
    if (!r->placed && a->n > 0)
        tell_place(r, a->at_ms);
    recording_state_take(&r->state, a, &r->entry);
    r->entry_ms = a->at_ms;
}

struct recorder *
recorder_new(const char *file, struct store *s, const char *(*place)(void *ctx), void *ctx,
             struct err *e)
{
    int64_t cut;
    struct recording_out *recording = recording_create(file, &cut, e);

    if (!recording)
        return NULL;
    struct recorder *r = xcalloc(1, sizeof *r);
    r->store = s;
    r->recording = recording;
    r->place = place;
    r->ctx = ctx;
    r->told.cut = cut;
    r->told.bytes = recording_bytes(recording);
    store_record(s, heard, r);
    return r;
}

void
recorder_free(struct recorder *r)
{
    if (!r)
        return;
    store_record(r->store, NULL, NULL);
    recording_end(r->recording);
    recording_state_done(&r->state);
    buf_free(&r->entry);
    free(r);
}

struct recorder_state
recorder_state(const struct recorder *r)
{
    return r->told;
}
