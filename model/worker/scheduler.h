/* The loop of `queuetop schedule`: one scheduling step after the other, as often as the server
 * asks for. Any number of them may run; the server lets one be active, another takes over within
 * seconds. Reconnects for ever. */
#ifndef MODEL_WORKER_SCHEDULER_H
#define MODEL_WORKER_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/db/db.h"

struct scheduler;
/* holder: a name of this process, NULL = host-pid-random. loop and db outlive it. */
/* books: a second connection to the same database, for what may take long (SCHEDULER_STALL_MS);
 * the scheduler's own from here on. */
enum { SCHEDULER_STALL_MS = 120000 };
struct scheduler *scheduler_new(struct loop *l, struct db *db, struct db *books, const char *schema,
                                const char *holder, struct err *e);
/* From now on the scheduler sends nothing while nothing is due, for ms at most; 0 = it never
 * sleeps. */
void scheduler_may_sleep(struct scheduler *s, int64_t ms);
/* Turns the loop until SIGTERM or SIGINT (true), or until it is hopeless (false). */
bool scheduler_run(struct scheduler *s, struct err *e) __attribute__((warn_unused_result));
/* After the db is freed. */
void scheduler_free(struct scheduler *s);

#endif
