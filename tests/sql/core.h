/*
 * What the tests of the core schema share: databases with the schema in them, and a few words to
 * tell a story with. Jobs have names (their payload is '{"name": "a1"}'), a session's claims are
 * remembered in the table t.held with their tokens, so a test can answer for them by name, also
 * when the lease has long been somebody else's.
 *
 *   t.push(queue, names, ...)  one job a name; names are separated by commas
 *   t.claim(node, n, ...)      the names claimed, in order
 *   t.done / t.fail / t.back (node, names)     the outcomes, in order
 *   t.answers(node, lease, version, seq)       all four answers by raw token: "lost lost lost lost"
 *   t.picture()                a digest of all that an answer could change
 *   t.step()                   one step of the scheduler "test"; returns "cut promoted stolen"
 *   t.truth()                  the errors in the counters; empty = all is right
 *
 * The scripts of sql/core are part of the test program. tests/mutants.sh builds it with a broken
 * rule, and shows which test notices.
 */
#ifndef TESTS_SQL_CORE_H
#define TESTS_SQL_CORE_H

#include "tests/harness.h"
#include "tests/server.h"

/* Loads the core schema under that name into the database, as `queuetop install` does, and the
 * words. */
void core_load(PGconn *conn, const char *schema);
/* A new database with schema "queues", and a session whose search_path is on it. */
PGconn *core_new(const char *database);
/* One more session on a database of core_new(). */
PGconn *core_join(const char *database);

/* Steps of the scheduler "test" until one has nothing more to do; at most 100. */
void core_settle(PGconn *conn);
/* Makes the next step do the work that is done once a second (steal, marks). */
void core_second(PGconn *conn);
/* The next step also folds the counters, as it does each ten seconds (groups, chunks, sweep). */
void core_ten_seconds(PGconn *conn);
/* Makes all leases of the node expire now. */
void core_expire(PGconn *conn, const char *node);
/* `act` is sent in c while d holds an uncommitted act on the same jobs and e is the next in line
 * for the scheduler's lock; d commits, a step of e cuts what it may, and act, which got the lock
 * last, must end well. f looks on. All four are sessions of one database. */
void core_act_under_lock(PGconn *c, PGconn *d, PGconn *e, PGconn *f, const char *act);
/* Replaces a part of a function, such as a time that is too short for a slow machine. */
void core_replace(PGconn *conn, const char *function, const char *from, const char *to);
/* Compares the counters and the leases with the jobs themselves; fails with the difference. */
void core_check(PGconn *conn);

/* At random, the node gives back the jobs that it holds, loses them, fails them or completes them.
 */
void core_answer_any(PGconn *conn, const char *node);

/* n processes, each with a session of its own, do work(session, 0 to n - 1) at once; waits for all.
 */
void core_crowd(const char *database, int n, void (*work)(PGconn *conn, int i));

/* Compares the value of a statement with what it should be, and shows both with the statement. */
#define expect(conn, expected, ...) assert_string_equal(pg_value(conn, __VA_ARGS__), expected)

/* Starts and stops the server: for cmocka's group setup and teardown. */
int core_setup(void **state);
int core_teardown(void **state);

#endif
