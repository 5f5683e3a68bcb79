/* Recordings on the screen: the badge of one that is being made, and the time, the bar and the keys
 * of one that is shown (--replay). The player is model/tape/replay.h; here are only its controls.
 */
#ifndef UI_CONSOLE_RECORDING_H
#define UI_CONSOLE_RECORDING_H

#include "ui/console/app.h"

bool app_replays(const struct app *a);
void recording_begin(struct app *a); /* plays, or stands at the time of --at */
/* At the start and after each turn: a torn end that was cut, a disk that is full, said once. */
void recording_watch(struct app *a);
void recording_badge(const struct app *a, struct buf *out); /* "REC 1.2 MB", "" = not recording */
void recording_state(const struct app *a,
                     struct buf *out); /* for the header: "REPLAY 2026-11-21 > x10" */
/* The bar between the first and the last moment, in the line above the footer. */
void recording_draw(const struct app *a, struct grid *g, struct rect r);

#endif
