/* The flight recorder: every answer that a store gets is written to a file, which
 * model/recording/replay.h can show again. The recorder asks nothing; it only listens to the store.
 * A full disk ends the recording, never the program. */
#ifndef MODEL_RECORDING_RECORDER_H
#define MODEL_RECORDING_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/store/store.h"

struct recorder;
/* If the file is a recording already, continues it. place: a function that returns "host/db" for
 * the header of a replay; it is called when the first answer comes. The store and the context of
 * place must outlive the recorder. */
struct recorder *recorder_new(const char *file, struct store *s, const char *(*place)(void *ctx),
                              void *ctx, struct err *e) __attribute__((warn_unused_result));
void recorder_free(struct recorder *r);

struct recorder_state {
    int64_t snapshots; /* written by this program */
    int64_t bytes;     /* of the file */
    int64_t cut;       /* bytes of a torn end that were taken away at the start */
    int64_t last_ms;   /* the server's time of the last one */
    struct err err;    /* why the recording has ended; NONE = it goes on */
};
struct recorder_state recorder_state(const struct recorder *r);

#endif
