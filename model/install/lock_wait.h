/* Runs an attempt that needs locks on tables that other sessions read and write. The attempt has a
 * short lock_timeout, because every session that comes later waits behind it. If it fails, all of
 * it was rolled back; it is tried again, for 5 s. While somebody has held a lock for longer than a
 * second, no further attempt is made: it could not succeed, and others would have to wait. */
#ifndef MODEL_INSTALL_LOCK_WAIT_H
#define MODEL_INSTALL_LOCK_WAIT_H

#include <stdbool.h>

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/db/db.h"

struct lock_wait {
    struct db *db;
    struct loop *loop;
    const char *schemas[2]; /* whose relations are to be locked; NULL = no second one */
    /* One transaction that waits at most lock_ms for a lock; *e says why it failed. */
    bool (*attempt)(void *ctx, int lock_ms, struct err *e);
    void *ctx;
};

/* True = an attempt succeeded. Otherwise ERR_REFUSED, after 5 s, with who is in the way (process
 * id, user, statement), or the attempt's own error, or that a signal stopped it. */
bool lock_wait_run(const struct lock_wait *w, struct err *e) __attribute__((warn_unused_result));

#endif
