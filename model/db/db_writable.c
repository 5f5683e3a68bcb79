/* A server that takes no changes: a standby, or one with default_transaction_read_only. This is not
 * a missing right: it is the wrong server, or the wrong time. So the connection is dropped, and a
 * new one goes where libpq's rules lead. This concerns only connections made for changes (not
 * `read_only`), and those whose target_session_attrs asks for a server that takes changes. */
#include "model/db/db_private.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/log.h"

static bool
is_on(const struct db *db, const char *name)
{
    const char *value = PQparameterStatus(db->conn, name);

    return value && strcmp(value, "on") == 0;
}

/* True if the server reports that it takes no changes. PostgreSQL 14 and later send both settings
 * unasked, whenever they change. */
static bool
says_read_only(const struct db *db)
{
    return is_on(db, "in_hot_standby") || is_on(db, "default_transaction_read_only");
}

static bool
reports_it(const struct db *db)
{
    return PQparameterStatus(db->conn, "in_hot_standby") != NULL;
}

/* SQLSTATE 25006 covers "cannot execute UPDATE in a read-only transaction" and "... during
 * recovery". A few functions fail on a standby with other messages. */
bool
writable_refused(const struct db *db, const struct err *e)
{
    bool is_odd = strcmp(e->sqlstate, "55000") == 0 || strcmp(e->sqlstate, "XX000") == 0;

    if (db->conf.read_only)
        return false;
    return strcmp(e->sqlstate, "25006") == 0 || (is_odd && is_on(db, "in_hot_standby"));
}

void
writable_err(const struct db *db, struct err *e)
{
    char said[sizeof e->text];

    memcpy(said, e->text, sizeof said);
    if (db->conf.once)
        fail(e, ERR_CONN,
             "nothing was changed: %s is read-only (a standby, or locked by "
             "default_transaction_read_only): %s",
             db_host(db), said);
    else
        fail(e, ERR_CONN,
             "waiting for a server that takes changes: %s is read-only (a standby, or locked by "
             "default_transaction_read_only): %s",
             db_host(db), said);
    memcpy(e->sqlstate, "25006", 6);
}

bool
writable_is_up(const struct db *db, struct err *e)
{
    if (!db->writable.is_locked || !says_read_only(db))
        return true;
    fail(e, ERR_CONN, "%s",
         is_on(db, "in_hot_standby") ? "it is a standby" : "default_transaction_read_only is on");
    writable_err(db, e);
    return false;
}

bool
db_has_others(const struct db *db)
{
    return db->writable.has_others;
}

void
writable_note(struct db *db)
{
    if (db->writable.is_locked && !(reports_it(db) && says_read_only(db)))
        db->writable.is_locked = false;
}

bool
writable_has_left(const struct db *db)
{
    const char *wants = db->writable.attrs ? db->writable.attrs : "";
    bool is_standby = is_on(db, "in_hot_standby");

    if (!db->writable.has_others)
        return false;
    if (strcmp(wants, "primary") == 0)
        return is_standby;
    return strcmp(wants, "read-write") == 0 && says_read_only(db);
}

const char *
writable_attrs(const struct db *db, int ntargets)
{
    bool is_open =
        !db->writable.attrs || !*db->writable.attrs || strcmp(db->writable.attrs, "any") == 0;

    return db->writable.is_locked && is_open && ntargets > 1 ? "read-write" : NULL;
}
