/* Helper threads for the two things libpq can't do without waiting: looking a host name up and
 * sending a cancel request. A job runs on a thread (one, unless an earlier job hangs: then up to
 * four); its `done` runs later in the loop. */
#ifndef MODEL_BASE_OFFLOAD_H
#define MODEL_BASE_OFFLOAD_H

#include "model/base/loop.h"

struct offload;
struct offload *offload_new(struct loop *l); /* NULL with errno: no descriptor is free */
/* Does not wait for a job that hangs: that thread is detached and frees its memory itself. */
void offload_free(struct offload *o);
/* `work` may use only ctx. If the offload is freed before the job is done, `drop` runs instead of
 * `done`, perhaps on the thread: it may use only ctx, too. */
void offload_run(struct offload *o, void (*work)(void *ctx), void (*done)(void *ctx),
                 void (*drop)(void *ctx), void *ctx);

#endif
