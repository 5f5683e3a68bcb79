/*
 * What the tests of the foreign queues share: a database with one fixture of tests/adapters in it,
 * its adapter bound to it, and sections asked as the console asks them: one transaction with the
 * console's settings, values as text without types.
 *
 * Words are "param=value", up to NULL: foreign_act(&q, SEC_REQUEUE, "ids={1,2}", NULL).
 */
#ifndef TESTS_SQL_FOREIGN_H
#define TESTS_SQL_FOREIGN_H

#include "model/adapter/adapter.h"
#include "tests/harness.h"
#include "tests/server.h"

struct foreign {
    PGconn *conn;
    struct adapter *adapter;
};

/* A new database from tests/adapters/NAME.sql. schema NULL = the adapter's own. */
void foreign_open(struct foreign *q, const char *name, const char *schema);
void foreign_close(struct foreign *q);
/* A new session to its database. */
PGconn *foreign_join(const struct foreign *q);

/* Runs an act and returns its answer: "1 ready, 2 ready" in the order of the ids, "" for no row,
 * "!23505" for an error. The text is valid like that of pg_dsn. */
const char *foreign_act(struct foreign *q, enum section_id s, ...) __attribute__((sentinel));
/* The same, rolled back. */
const char *foreign_try(struct foreign *q, enum section_id s, ...) __attribute__((sentinel));
/* One section on another session, in the transaction that is open there (or in its own). */
const char *foreign_on(struct foreign *q, PGconn *conn, enum section_id s, ...)
    __attribute__((sentinel));
/* The answer of a section that only reads, asked as the watcher does: in a read-only transaction.
 * The test fails if the answer does not decode. */
PGresult *foreign_look(struct foreign *q, enum section_id s, ...) __attribute__((sentinel));
/* The column of the row whose first column is key; "NULL", "" where there is no such row. */
const char *foreign_cell(PGresult *res, const char *key, const char *column);
/* All values of a column, separated by blanks; frees res. */
const char *foreign_list(PGresult *res, const char *column);
/* What came on the session's channels since the last call: "channel:payload" a line. */
const char *foreign_heard(PGconn *conn);
/* Checks columns and types of an answer against the record of the section, and decodes a copy of
 * it; NULL, or what is wrong. */
const char *foreign_check(enum section_id s, const PGresult *res);

#endif
