/*
 * What the console's e2e tests share: a database with an installed queue, jobs in it made by the
 * queue's own functions, and the console in a terminal.
 */
#ifndef TESTS_E2E_CONSOLE_H
#define TESTS_E2E_CONSOLE_H

#include "tests/harness.h"
#include "tests/server.h"
#include "tests/term.h"

/* Group setup and teardown: a server. */
int con_setup(void **state);
int con_teardown(void **state);
/* Setup of one test: a fresh database with the queue and nothing in it. */
int con_empty(void **state);

void con_reconnect(void); /* after a restart of the server */
/* Waits until the console has begun a question at least ms later than now; its answer may not have
 * come yet. With ms well above a second, it has by then what it asks once a second, unless the
 * machine is slow. */
void con_asks_on(int ms);
const char *con_dsn(void);
PGconn *con_db(void); /* as owner, search_path = queues */

/* Makes n jobs in a queue: jobs that wait; jobs that run on a node (lease of 60 s); jobs that
 * failed for good. */
void con_ready(const char *queue, int n);
void con_running(const char *queue, int n, const char *node);
void con_failed(const char *queue, int n, const char *error);
/* A node that has registered; alive = its last heartbeat was now, else an hour ago, with its
 * leases expired. */
void con_node(const char *node, bool alive);

/* A session that holds the settings of a queue without any, until its transaction ends: what would
 * set or pause that queue waits. */
PGconn *con_hold_queue(const char *queue);

/* Starts the console on the database with an option (NULL = none), and waits for its first data. */
void con_start(struct vt *vt, int rows, int cols, const char *option);
void con_spawn(struct vt *vt, int rows, int cols, const char *const *options,
               const char *const *env);
/* Asks to pause the n marked queues, with the reason "close", up to the last question. */
void con_pause_marked(struct vt *vt, int n);
/* Waits until all that was answered is done: the marks have gone (marked = "2 marked"). While the
 * box of a slow action stands there, the row of the marks is hidden, and the box takes every key.
 */
void con_done(struct vt *vt, const char *marked);
/* Types q, and checks that the console ends well. */
void con_quit(struct vt *vt);
/* The number of rows that a condition on queues.queue finds. */
int64_t con_count(const char *where);

#endif
