/* Ends the process groups of commands when this process dies without a word (SIGKILL, a crash): the
 * kernel tells a command of its parent's death, not the command's own children. A small process of
 * its own holds the other end of a pipe. What leaves its group (setsid) escapes. */
#ifndef MODEL_BASE_GUARD_H
#define MODEL_BASE_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "model/base/err.h"

struct guard;
/* For so many groups at a time; NULL: the system has no process, memory or descriptor left. */
struct guard *guard_new(int places, struct err *e);
/* Between fork and exec too: it only stores. pid 0 = the place is free again. */
void guard_note(struct guard *g, int place, pid_t pid);
/* Ends what is still noted. NULL is allowed. */
void guard_free(struct guard *g);

#endif
