/*
 * What the tests of install and migrate share: an empty database of its own for each test, and the
 * run of an installation with what it reported.
 */
#ifndef TESTS_SQL_INSTALL_H
#define TESTS_SQL_INSTALL_H

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/base/mem.h"
#include "model/install/install.h"
#include "tests/server.h"

struct fixture {
    struct loop *loop;
    char *dsn;
    PGconn *conn;
    struct buf said; /* the report, a line each; never NULL data after install_try() */
    struct err err;
};

/* A new fixture on a new database of that name; teardown frees it. */
struct fixture *install_open(const char *database);
int install_teardown(void **state);
/* Runs the installation on dsn; roles that o leaves NULL are queues_viewer and its kin. said and
 * err are those of this run. */
bool install_try(struct fixture *f, const char *dsn, struct install_options o);
/* The text of install_print, run by psql with these words ("-1"); gives its exit code. What psql
 * said is in f->said. */
int install_by_psql(struct fixture *f, const char *words, struct install_options o, int from);
/* The content of the schema, as pg_dump -s shows it, without the lines about other objects; the
 * caller frees. */
char *install_dump(const struct fixture *f, const char *schema);

#endif
