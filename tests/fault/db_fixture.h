/*
 * What the tests of the connection share: a loop with a heartbeat, and replies copied out of the
 * callback. The heartbeat proves that no call blocks the loop: it must never be late.
 */
#ifndef TESTS_FAULT_DB_FIXTURE_H
#define TESTS_FAULT_DB_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/loop.h"
#include "model/db/db.h"

struct fixture {
    struct loop *loop;
    int64_t beat_ms, starved_ms; /* of the last heartbeat */
    int64_t worst_ms; /* the longest delay, without the time in which the machine was busy */
};

/* The content of a reply. */
struct heard {
    bool done;
    int count; /* replies: must be 1 */
    struct err err;
    int failed_at;
    bool in_doubt;
    int len;        /* of the first value of the last result */
    char text[200]; /* its beginning; "" = none */
};

int db_setup(void **state);
int db_teardown(void **state);
/* As db_teardown, but fails if the loop was blocked; for tests that do not block it themselves. */
int db_teardown_prompt(void **state);

/* A reply function: ctx is a struct heard. */
void hear(void *ctx, struct db_reply *reply);
void ask(struct db *db, const char *sql, int wait_ms, struct heard *h);
/* Turns the loop until *done, at most 60 s. */
void until(struct fixture *f, const bool *done);
/* Asks and waits for the reply. */
void get(struct fixture *f, struct db *db, const char *sql, struct heard *h);
/* A connection to conninfo, NULL = the throwaway server. */
struct db *open_db(struct fixture *f, const char *conninfo, struct db_options o);
/* Asks once over a connection of its own. */
void get_once(struct fixture *f, const char *conninfo, const char *sql, struct heard *h);

#endif
