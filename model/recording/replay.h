/* Shows a recording again. It feeds a store with the answers that were known at one time, and moves
 * this time: at a speed, in steps, by jumps. Screens don't notice the difference. */
#ifndef MODEL_RECORDING_REPLAY_H
#define MODEL_RECORDING_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/adapter.h"
#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/db/db.h"
#include "model/store/store.h"

struct replay;
/* Never asks db anything. Starts paused, at the first moment of the recording. */
struct replay *replay_new(struct loop *l, const char *file, struct db *db, struct adapter *a,
                          struct err *e) __attribute__((warn_unused_result));
void replay_free(struct replay *r); /* with its store */
struct store *replay_store(struct replay *r);

struct replay_state {
    int64_t start_ms, end_ms, now_ms; /* by the server's clock */
    bool playing;
    double speed;
    const char *place;     /* "host/db", "" = not told; valid until the next turn */
    const struct err *err; /* why a part of this moment could not be read; kind NONE = all was
                              read */
    int64_t damage, lost;  /* the recording is damaged from this byte on; 0 = it is whole */
    int entries;
};
struct replay_state replay_state(const struct replay *r);

void replay_play(struct replay *r, bool on);    /* at the end it starts again from the beginning */
void replay_speed(struct replay *r, int step);  /* faster, slower; 1/4 to 600 times */
void replay_seek(struct replay *r, int64_t ms); /* goes to the nearest time in the recording */
void replay_step(struct replay *r, int n); /* n snapshots forward, or back; the replay then stops */
/* "03:10", "03:10:05", "2026-11-21 03:10", "start", "end", "+5m", "-90s" -> a time in the
 * recording. A clock time may have a zone behind it: "02:30 CET", "02:30+01:00", "01:30 UTC"; the
 * names are those of the local zone. Of several times it is the one nearest to what is shown. */
bool replay_time(const struct replay *r, const char *text, bool utc, int64_t *ms, struct err *e)
    __attribute__((warn_unused_result));

#endif
