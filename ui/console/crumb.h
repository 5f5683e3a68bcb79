/* The way to where we are, one step after the other: "queues › image.resize › failed". */
#ifndef UI_CONSOLE_CRUMB_H
#define UI_CONSOLE_CRUMB_H

#include "model/base/mem.h"

/* Appends a step, unless the path has it already; an empty step is none. */
void crumb_add(struct buf *path, const char *step);
/* Takes steps away at the front until the path is at most w wide; the last step stays. */
void crumb_fit(struct buf *path, int w);

#endif
