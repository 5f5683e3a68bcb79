/* A database with the queue in it, for tests that work it with the programs. */
#include "tests/fault/queue_fixture.h"

#include "tests/harness.h"

#include <stdio.h>

#include "tests/proc.h"
#include "tests/server.h"

PGconn *
queue_in_newdb(char dsn[static 400], const char *name)
{
    snprintf(dsn, 400, "%s", pg_newdb(name));
    PGconn *conn = pg_connect(dsn);

    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    return conn;
}
