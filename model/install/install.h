/* `queuetop install` and `queuetop migrate`: the core schema, in one transaction, idempotent. */
#ifndef MODEL_INSTALL_INSTALL_H
#define MODEL_INSTALL_INSTALL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/base/mem.h"
#include "model/db/db.h"

struct sql_text;

struct install_options {
    const char *schema; /* default "queues" */
    const char *viewer; /* role names, defaults queues_viewer and so on */
    const char *worker;
    const char *operator_;
    const char *pusher;
    bool dry_run;             /* runs the scripts and rolls back; migrations are named, not run */
    bool force;               /* although others have rights there: they are named */
    bool migrate;             /* the module must be installed already */
    bool adopt;               /* take over a queue of two plain tables (queue, work_queue) */
    const char *adopt_from;   /* the schema of these tables; NULL = `schema` */
    const char *adopt_zone;   /* time zone of their times; NULL = the database's */
    const char *adopt_states; /* "RUNNING=ready,DEAD=failed"; NULL = none */
    const struct sql_text *migrations; /* for tests; NULL = the program's own (sql/core/migrate) */
    int nmigrations;
};

/* If what is installed is what this program would make, it says so and takes no lock at all.
 * Otherwise runs the core scripts and the migrations that are due (sql/core/migrate/README.md) in
 * one transaction; tables are locked only by a migration or an adoption, for a fifth of a second at
 * most. If somebody holds the lock it tries again for 5 s, and then names who it is (ERR_REFUSED).
 * `say` gets each line of what was done or would be done. db must have been made with the same
 * schema and may not be read-only. Refused (nothing changed): migrate without a schema, a schema
 * that holds tables of others, one in which others have rights that a queue must not give (unless
 * force is set), one that a newer program installed; plain tables that could be
 * adopted and adopt is not set, states that nobody explained. Adopting is part of the same
 * transaction: the old tables are renamed aside, and every job and lease is moved. */
bool install_run(struct db *db, struct loop *l, const struct install_options *o,
                 void (*say)(void *ctx, const char *line), void *ctx, struct err *e)
    __attribute__((warn_unused_result));

/* Prints the installation as one text of SQL, for a tool that applies migrations. The text must run
 * in one transaction; otherwise it stops with an error that says so. from: 0 = into a new schema;
 * else the version that is installed (ERR_USAGE: this program can't start from it). Of the options
 * it takes schema and roles. The next install_run finds that nothing is to be done, and notes from
 * which scripts the schema was made. */
bool install_print(const struct install_options *o, int from, struct buf *out, struct err *e)
    __attribute__((warn_unused_result));

/* The version of the schema that this program makes. */
int install_version(void);

/* --- uninstall --- */

/* `queuetop uninstall`: the schema is dropped with all that the queue has in it, in one
 * transaction. */

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
