/* Asks one section of an adapter once, on the watcher. It is for values that no screen shows
 * permanently. */
#ifndef MODEL_ADAPTER_LOOKUP_H
#define MODEL_ADAPTER_LOOKUP_H

#include "model/adapter/adapter.h"
#include "model/db/db.h"

struct lookup;
/* rows: by the section's record; borrowed for the call, which may free the lookup. */
typedef void lookup_fn(void *ctx, const struct rowset *rows, const struct err *e);

struct lookup *lookup_new(struct db *watcher, const struct adapter *a, enum section_id s,
                          const struct params *p, lookup_fn *fn, void *ctx);
void lookup_free(struct lookup *l); /* an answer that comes later is dropped */

#endif
