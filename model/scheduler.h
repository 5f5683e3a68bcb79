/* The loop of `queuetop schedule`: one scheduling step after the other, as often as the server
 * asks for. Any number of them may run; the server lets one be active, another takes over within
 * seconds. Reconnects for ever. */
#ifndef MODEL_SCHEDULER_H
#define MODEL_SCHEDULER_H

#include <stdbool.h>

#include "model/db.h"
#include "model/err.h"
#include "model/loop.h"

struct scheduler;
/* holder: a name of this process, NULL = host-pid-random. Both borrowed things outlive it. */
struct scheduler *scheduler_new(struct loop *l, struct db *db, const char *schema,
                                const char *holder, struct err *e);
/* Turns the loop until SIGTERM or SIGINT (true), or until it is hopeless (false). */
bool scheduler_run(struct scheduler *s, struct err *e) __attribute__((warn_unused_result));
/* After the db is freed. */
void scheduler_free(struct scheduler *s);

#endif
