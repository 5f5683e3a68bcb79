/* The flight recorder: every answer that a store gets goes to a file, from where
 * model/tape/replay.h shows it again. Asking is the store's business; this only listens. A disk
 * that is full ends the recording, never the program. */
#ifndef MODEL_TAPE_RECORDER_H
#define MODEL_TAPE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/store/store.h"

struct recorder;
/* Goes on in a file that is a recording already. place: "host/db", for the header of a replay; it
 * is asked for when the first answer comes. Both outlive the recorder. */
struct recorder *recorder_new(const char *file, struct store *s, const char *(*place)(void *ctx),
                              void *ctx, struct err *e) __attribute__((warn_unused_result));
void recorder_free(struct recorder *r);

struct recorder_state {
    int64_t snapshots; /* written by this program */
    int64_t bytes;     /* of the file */
    int64_t cut;       /* bytes of a torn end that were taken away at the start */
    int64_t last_ms;   /* the server's time of the last one */
    struct err err;    /* why it has ended; NONE = it goes on */
};
struct recorder_state recorder_state(const struct recorder *r);

#endif
