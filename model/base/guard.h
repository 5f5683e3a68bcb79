/* Ends the process groups of commands if this process dies without a chance to do it (SIGKILL, a
 * crash). The kernel tells a command that its parent died, but not the children of the command. So
 * a small helper process holds the other end of a pipe and sees it close. A process that leaves its
 * group (setsid) escapes. */
#ifndef MODEL_BASE_GUARD_H
#define MODEL_BASE_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "model/base/err.h"

struct guard;
/* For at most n groups at a time. NULL: the system has no process, memory or descriptor left. */
struct guard *guard_new(int places, struct err *e);
/* May be called between fork and exec: it only stores. pid 0 = the place is free again. */
void guard_note(struct guard *g, int place, pid_t pid);
/* Ends the helper process and all groups that are still stored. NULL is allowed. */
void guard_free(struct guard *g);

#endif
