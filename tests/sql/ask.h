/*
 * A section asked as the console asks it: in a transaction with the settings of
 * model/db/db_pipeline.c and those of the adapter, its values as text without types. What is done
 * with the answer, and how the transaction ends, is the caller's.
 */
#ifndef TESTS_SQL_ASK_H
#define TESTS_SQL_ASK_H

#include <stdarg.h>

#include "model/adapter/adapter.h"
#include "tests/harness.h"
#include "tests/server.h"

/* The adapter of this name, bound to a schema (NULL = its own). */
struct adapter *ask_adapter(const char *name, const char *schema);
/* "param=value" up to NULL. */
void ask_words(struct params *p, va_list words);
void ask_begin(PGconn *conn, const struct adapter *a, bool read_only);
/* before: stands before the statement ("explain ", ""). */
PGresult *ask_send(PGconn *conn, const struct adapter *a, enum section_id s, const struct params *p,
                   const char *before);
/* Begins it without waiting for the answer, for races of two sessions; PQgetResult() collects it.
 */
void ask_start(PGconn *conn, const struct adapter *a, enum section_id s, const struct params *p);

#endif
