/*
 * Asks a section as the console does: in a transaction with the settings of model/db/db_pipeline.c
 * and of the adapter, with values as text without types. The caller handles the answer and ends the
 * transaction.
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
/* before: the text in front of the statement ("explain ", ""). */
PGresult *ask_send(PGconn *conn, const struct adapter *a, enum section_id s, const struct params *p,
                   const char *before);
/* Begins it without waiting for the answer, for races of two sessions; PQgetResult() collects it.
 */
void ask_start(PGconn *conn, const struct adapter *a, enum section_id s, const struct params *p);

/* For db_options: lets every server pass, and the session keeps its guards (model/db/db.h). */
extern const struct db_gate ask_gate;

#endif
