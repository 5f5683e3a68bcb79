/*
 * One question to an adapter that is no topic of the store.
 */
#include "model/adapter/lookup.h"

#include <stdlib.h>

#include "model/base/mem.h"

enum { WAIT_MS = 5000 };

struct lookup {
    const struct record *record;
    lookup_fn *fn;
    void *ctx;
    bool asking, orphan;
};

static void
came(void *ctx, struct db_reply *reply)
{
    struct lookup *l = ctx;
    struct err e = reply->err;
    struct rowset rows = {0};

    l->asking = false;
    if (l->orphan) {
        free(l);
        return;
    }
    if (e.kind == ERR_NONE && !record_decode(l->record, db_take(reply, 0), &rows, &e))
        rows = (struct rowset){0};
    l->fn(l->ctx, &rows, &e);
    rowset_free(&rows);
}

struct lookup *
lookup_new(struct db *watcher, const struct adapter *a, enum section_id s, const struct params *p,
           lookup_fn *fn, void *ctx)
{
    struct db_param storage[ADAPTER_PARAMS];
    struct db_stmt stmt = adapter_bind(a, s, p, storage);
    struct lookup *l = xcalloc(1, sizeof *l);

    l->record = section_kinds[s].record;
    l->fn = fn;
    l->ctx = ctx;
    l->asking = true;
    struct db_call call = {.stmts = &stmt, .n = 1, .dry = true};
    adapter_settings(a, false, &call);
    db_ask(watcher, &call, WAIT_MS, came, l);
    return l;
}

void
lookup_free(struct lookup *l)
{
    if (l && l->asking)
        l->orphan = true;
    else
        free(l);
}
