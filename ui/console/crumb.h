/* The path to the present place, one step after the other: "queues › image.resize › failed". */
#ifndef UI_CONSOLE_CRUMB_H
#define UI_CONSOLE_CRUMB_H

#include "model/base/mem.h"

/* Appends a step. Ignores an empty step, and one that the path has already. */
void crumb_add(struct buf *path, const char *step);
/* Removes steps at the front until the path is at most w cells wide; the last step stays. */
void crumb_fit(struct buf *path, int w);

#endif
