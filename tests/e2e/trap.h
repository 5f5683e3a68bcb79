/*
 * A database in which a role without rights has put traps into schema public: functions, operators,
 * types and relations with every name that our SQL uses (tests/sql/trap.sql). The types of their
 * arguments are chosen so that PostgreSQL would prefer the trap somewhere. A trap writes a line to
 * the server's log and raises QTRAP.
 */
#ifndef TESTS_E2E_TRAP_H
#define TESTS_E2E_TRAP_H

#include "tests/harness.h"
#include "tests/server.h"

/* Group setup and teardown: the server, and the database that the others are copies of. */
int trap_setup(void **state);
int trap_teardown(void **state);

/* The two search paths of the sessions: public in its default place, or before pg_catalog. */
enum { TRAP_PATHS = 2 };
extern const char *const trap_paths[TRAP_PATHS];
/* Makes a fresh database of this name, whose sessions have this path, and drops the one before. */
void trap_enter(const char *name, const char *path);
/* The same with the queue, its users app, ops and look, and traps for its own types. */
void trap_install(const char *path);
/* The same as a copy: what the first call installed serves all later ones, in this search path. */
void trap_installed(const char *path);
PGconn *trap_db(void);       /* the superuser in it, in a path of its own */
const char *trap_name(void); /* the database's */

/* The lines that traps have written to the log since the last call; NULL = none. The caller frees.
 */
char *trap_sprung(void);
void trap_none_sprung(const char *when);

enum { ANY = -1 }; /* something or nothing to list */
/* queuetop -d (this database as that user) ...: the exit code, and nothing sprung. */
void trap_run(const char *user, int code, const char *words);

#endif
