/* What the tests of River, Oban, Rails' queues and pgmq share: a database with the fixture of one
 * in it, whose time zone is far from UTC, and its sections asked as the console asks them. Text
 * that is returned lives until 16 later calls. */
#ifndef TESTS_SQL_OTHER_H
#define TESTS_SQL_OTHER_H

#include "model/adapter/adapter.h"
#include "tests/harness.h"
#include "tests/server.h"

struct other {
    PGconn *conn;      /* the actor's */
    PGconn *watcher;   /* another session: LISTENs, holds locks */
    struct adapter *a; /* bound to its default schema */
};
/* A new database of this name with tests/adapters/ADAPTER.sql in it. */
void other_open(struct other *f, const char *adapter, const char *database);
void other_close(struct other *f);

/* Parameters are words "ids={1,2}", the last one NULL. */
/* Runs an act in a transaction of its own: "1 ready, 5 running (why), 7 - (why)" in the order of
 * ids; an id that does not come back was refused. "!23505" = the SQLSTATE of an error. */
const char *other_act(struct other *f, enum section_id s, ...) __attribute__((sentinel));
/* As other_act, for an act that must wait for a lock of the watcher. While the act waits, the
 * watcher runs `then` ("commit", perhaps with more statements). */
const char *other_act_waits(struct other *f, const char *then, enum section_id s, ...)
    __attribute__((sentinel));
/* Read only: a column of every row, blanks between, "-" for null. */
const char *other_look(struct other *f, enum section_id s, const char *column, ...)
    __attribute__((sentinel));
/* Buffers that the statement touches. */
int64_t other_buffers(struct other *f, enum section_id s, ...) __attribute__((sentinel));

/* The plan, with what it read and how long it took. */
const char *other_plan(struct other *f, enum section_id s, ...) __attribute__((sentinel));

/* Jobs for an engine's table: 5,000 live and failed ones in 20 queues ("q0"), finished ones. */
struct other_load {
    const char *name, *table;
    const char *live, *done;
};
extern const struct other_load other_loads[];
extern const int other_loads_n;
/* Finished jobs number from + 1 to `to`, each a second older; beside from = 0 the live ones. */
void other_fill(struct other *f, const struct other_load *l, int from, int to);

/* The watcher listens, and what it has heard since: "channel payload; ...". */
void other_listen(struct other *f, const char *channel);
const char *other_heard(struct other *f);

#define expect_act(f, expected, ...) assert_string_equal(other_act(f, __VA_ARGS__, NULL), expected)
#define expect_look(f, expected, ...) \
    assert_string_equal(other_look(f, __VA_ARGS__, NULL), expected)
#define expect_row(f, expected, ...) assert_string_equal(pg_value((f)->conn, __VA_ARGS__), expected)
/* Fails unless every way through the list, by pages and searches of different sizes, finds these
 * ids in this order. */
#define expect_walk(f, expected, ...) other_expect_walk(f, expected, __VA_ARGS__, NULL)
void other_expect_walk(struct other *f, const char *expected, ...) __attribute__((sentinel));

#endif
