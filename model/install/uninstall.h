/* `queuetop uninstall`: the schema is dropped with all that the queue has in it, in one
 * transaction. */
#ifndef MODEL_INSTALL_UNINSTALL_H
#define MODEL_INSTALL_UNINSTALL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/db/db.h"

struct uninstall_options {
    const char *schema;
    const char *viewer, *worker, *operator_, *pusher; /* role names */
    bool drop_roles; /* drop the roles, too, if nothing else needs them */
    bool force;      /* even if workers live, or views of others would be dropped, too */
    const struct uninstall_look *seen; /* what uninstall_look has found, for uninstall_run */
};

struct uninstall_look {
    char *text;               /* what is there, a line each */
    char *alive;              /* living nodes and schedulers; NULL = none */
    char *tables, *functions; /* names between commas */
};
void uninstall_look_done(struct uninstall_look *look);

/* Looks at what would be dropped. Refused if nothing is installed there; if the schema also holds
 * tables that are not the queue's (they are named); without force also if views elsewhere depend on
 * it. */
bool uninstall_look(struct db *db, struct loop *l, const struct uninstall_options *o,
                    struct uninstall_look *look, struct err *e) __attribute__((warn_unused_result));

/* Drops it; `say` gets what happened to the roles. Waits at most 5 s for a lock. Looks again behind
 * the locks: refused if something has come since `seen` that the look would have refused. */
bool uninstall_run(struct db *db, struct loop *l, const struct uninstall_options *o,
                   void (*say)(void *ctx, const char *line), void *ctx, struct err *e)
    __attribute__((warn_unused_result));

#endif
