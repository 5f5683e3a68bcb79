/* A database of its own for each test, with the queue in it. */
#ifndef TESTS_FAULT_QUEUE_FIXTURE_H
#define TESTS_FAULT_QUEUE_FIXTURE_H

#include <libpq-fe.h>

/* Makes the database `name` and installs the queue as a user does it. The caller closes the
 * connection. */
PGconn *queue_in_newdb(char dsn[static 400], const char *name) __attribute__((warn_unused_result));

#endif
