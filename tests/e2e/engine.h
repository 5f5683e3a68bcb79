/* Shared by the tests of adapters that run the original libraries of other queue systems: starts
 * these engines, clones a database, and compares rows without their times. */
#ifndef TESTS_E2E_ENGINE_H
#define TESTS_E2E_ENGINE_H

#include <libpq-fe.h>

#include "tests/proc.h"
#include "tests/term.h"

/* The directory of an engine that tests/engines.sh fetched ("npm-new"). If the directory is
 * missing, the running test is skipped with the reason that tests/engines.sh noted for the engine
 * ("pgboss-new"). */
const char *engine_dir(const char *dir, const char *engine);

/* A driver's file in tests/adapters; valid until the next call. */
const char *engine_script(const char *name);
/* Starts a driver: argv ends in NULL. engine_run waits, and it must end well. */
void engine_run(const char *const *argv);
/* Starts it, waits until it says "holding", and kills it by SIGKILL. */
void engine_crash(const char *const *argv);

/* Moves every time in these tables (separated by blanks) back by an hour, so that the times that an
 * act writes can be recognised. */
void engine_age(PGconn *conn, const char *tables);
/* All rows of a table as JSON, one on each line, in this order. A time is replaced by its distance
 * from now in steps of ten minutes. The caller frees. */
char *engine_rows(PGconn *conn, const char *table, const char *order);
/* Fails unless these tables ("table:order table:order") have the same rows in both databases. */
void engine_same(const char *a, const char *b, const char *tables);

/* Runs the program on a database: `queuetop VERB... DSN`; the exit code must be this one, and the
 * output, unless NULL, is the caller's. */
void engine_queuetop(const char *database, int code, char **out, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Fails unless the text contains this part, or the JSON this job. Frees the text. */
void engine_has(char *text, const char *part);
void engine_has_job(char *text, const char *id);
/* The console on it, until its first data are there. */
void engine_console(const char *database, struct vt *vt);
/* One act as an operator does it: selects one job on Jobs (the id may be shortened if it stays
 * unique), types a key, expects the texts of the question, types the keys of the answer, and
 * expects the message at the end. Unused places of asks are NULL. */
struct engine_step {
    const char *id, *key;
    const char *asks[4];
    const char *answer, *said;
};
void engine_step(struct vt *vt, const struct engine_step *s);
void engine_steps(struct vt *vt, const struct engine_step *steps, size_t n);
/* On Queues: expects that the numbers of the queue's row, behind its name and age, begin with this
 * text; one blank between two numbers. */
void engine_counts(struct vt *vt, const char *queue, const char *numbers);
void engine_drop(const char *databases); /* blanks between */

#endif
