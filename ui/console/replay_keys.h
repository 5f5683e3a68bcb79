/* Recordings on the screen. For a recording that is being made: its badge. For one that is shown
 * (--replay): the time, the bar and the keys. The player is model/recording/replay.h; this file has
 * only its controls. */
#ifndef UI_CONSOLE_REPLAY_KEYS_H
#define UI_CONSOLE_REPLAY_KEYS_H

#include "ui/console/app.h"

bool app_replays(const struct app *a);
void replay_keys_begin(struct app *a); /* plays from the start, or stops at the time of --at */
/* After each turn: says once that a torn end was cut off, or that the recording had to end. */
void replay_keys_watch(struct app *a);
void replay_keys_badge(const struct app *a, struct buf *out); /* "REC 1.2 MB", "" = not recording */
void replay_keys_state(const struct app *a,
                       struct buf *out); /* for the header: "REPLAY 2026-11-21 > x10" */
/* The bar between the first and the last moment, in the line above the footer. */
void replay_keys_draw(const struct app *a, struct grid *g, struct rect r);

#endif
