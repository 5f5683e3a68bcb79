/*
 * A throwaway PostgreSQL for one test program: own cluster in TMPDIR, unix socket only, trust, no
 * fsync. All functions here block. If one can't do its work, the running test fails with a report.
 *
 * A keeper process owns the server. It holds one end of a socket pair. When the test program has
 * ended in any way, the keeper notices that the other end is closed, stops the server and removes
 * the directory.
 */
#ifndef TESTS_SERVER_H
#define TESTS_SERVER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

struct pg_opts {
    bool is_durable;  /* fsync and full_page_writes on; committed data survives pg_down with or
                         without this */
    const char *conf; /* more lines for postgresql.conf, or NULL */
};

/* initdb and start; opts may be NULL. One server a program; call it in the group's setup. */
void pg_start(const struct pg_opts *opts);
/* Ends the server and removes its directory. Also done at exit. */
void pg_stop(void);
/* The same as the setup and teardown of a cmocka group that needs no more. */
int pg_group_start(void **state);
int pg_group_stop(void **state);
/* Takes the server down: "fast" ends sessions in order, "immediate" is a crash. */
void pg_down(const char *mode);
/* Starts it again after pg_down() and waits until it accepts connections. */
void pg_up(void);
/* pg_down() and pg_up(). */
void pg_restart(const char *mode);
/* Makes a standby that follows the first server by streaming replication (the first needs
 * "wal_level = replica" and "max_wal_senders" in opts.conf), and waits until both answer. To copy
 * the first server it restarts it, so all sessions end. A program may call it once. */
void pg_standby_start(void);
/* Connection string of a database on it, valid like that of pg_dsn. */
const char *pg_standby_dsn(const char *database);
/* Stops the standby in order, or starts it again. */
void pg_standby_down(void);
void pg_standby_up(void);
/* The process id of the postmaster, for tests that stop it with signals; 0 when down. */
int pg_pid(void);
/* Where the server's binaries are (psql, pgbench, ...). */
const char *pg_bindir(void);
/* Skips the running test on a server older than that, and says why. */
void pg_needs(PGconn *conn, int major, const char *why);
/* The socket directory, for host=. */
const char *pg_host(void);

/* Connection string of a database; valid until 16 later calls of functions that return text. */
const char *pg_dsn(const char *database);
/* Creates an empty database and returns its connection string (valid like that of pg_dsn). */
const char *pg_newdb(const char *name);
/* The same, but a copy of another database, to which nobody may be connected. */
const char *pg_copydb(const char *name, const char *from);
/* Connects; close with PQfinish. Notices are dropped. */
PGconn *pg_connect(const char *dsn);

/* One statement or several; must succeed. The caller clears the result. */
PGresult *pg_query(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Like pg_query for statements whose result does not matter. */
void pg_run(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Runs the statement and returns the SQLSTATE, "" if it succeeded; the text is valid like that of
 * pg_dsn. */
const char *pg_try(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first column of the only row as text, "NULL" for null, "" for no row; kept like pg_dsn. */
const char *pg_value(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same as a number. */
int64_t pg_int(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Runs a file of SQL below the source tree. */
void pg_file(PGconn *conn, const char *path);
/* A new database with the tables and jobs of tests/adapters/ADAPTER.sql. */
PGconn *pg_fixture(const char *database, const char *adapter);

/* Asks again until the value of sql is expected; fails when timeout_ms have passed. */
void pg_wait(PGconn *conn, const char *sql, const char *expected, int timeout_ms);
/* Waits until the other session is blocked by a lock (it has a statement under way). Fails at once
 * if the statement has ended. */
void pg_wait_blocked(PGconn *conn, PGconn *other);
/* Sends a statement without waiting, for races of two sessions; pg_finish() collects it. */
void pg_send(PGconn *conn, const char *sql);
/* Waits for what pg_send() began; returns its SQLSTATE, "" when it succeeded. */
const char *pg_finish(PGconn *conn);

#endif
