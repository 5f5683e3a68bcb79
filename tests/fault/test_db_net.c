/*
 * The connection against what networks and servers do: names that don't exist, ports that are
 * closed, listeners that stay silent, refusals, TLS, a transaction pooler. Nothing of it may make
 * the loop stand still.
 */
#include "tests/harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/loop.h"
#include "model/base/mem.h"
#include "model/db/db.h"
#include "tests/bouncer.h"
#include "tests/fault/db_fixture.h"
#include "tests/server.h"

enum { DEADLINE_MS = 60000, BOUNCER_PORT = 6432 };

static struct {
    int port;
    char cert[300], key[300], conf[1000];
} server;

/* A socket that listens on 127.0.0.1 and never accepts: connections are made and stay silent. */
static int
silent_listener(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 10), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* Returns the number of new connections since the last call. */
static int
connections_to(int listener)
{
    int n = 0, fd;

    assert_int_equal(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    for (; (fd = accept(listener, NULL, NULL)) >= 0; n++)
        close(fd);
    return n;
}

/* --- getting there --- */

static void
unknown_name(void **state)
{
    struct fixture *f = *state;
    struct heard h;

    get_once(f, "host=no-such-host.invalid dbname=postgres", "select 1", &h);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "no-such-host.invalid"));
    assert_false(h.in_doubt);
}

static void
closed_port(void **state)
{
    struct fixture *f = *state;
    char conninfo[200];
    struct heard h;
    int port, fd = silent_listener(&port);

    close(fd);
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres", port);
    get_once(f, conninfo, "select 1", &h);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "refused"));
    assert_null(strchr(h.err.text, '\n'));
}

static void
silent_server(void **state)
{
    struct fixture *f = *state;
    char conninfo[300];
    struct heard h;
    int port, fd = silent_listener(&port);

    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres connect_timeout=1",
             port);
    get_once(f, conninfo, "select 1", &h);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "no answer from 127.0.0.1"));
    assert_non_null(strstr(h.err.text, " for 1 s")); /* the timer's own figure: not 10 s */
    assert_int_equal(connections_to(fd), 1);

    /* a list goes on behind the silent one, the unknown one and the closed one */
    snprintf(conninfo, sizeof conninfo,
             "host=no-such-host.invalid,127.0.0.1,127.0.0.1,localhost port=1,%d,1,%d user=postgres "
             "dbname=postgres connect_timeout=1 target_session_attrs=read-write",
             port, server.port);
    h.err.kind = ERR_CONN;
    for (int left = 20; left > 0 && h.err.kind == ERR_CONN; left--) /* 1 s can be too short */
        get_once(f, conninfo, "select inet_server_port()", &h);
    assert_string_equal(h.err.text, "");
    assert_int_equal(strtol(h.text, NULL, 10), server.port);
    close(fd);
}

/* From now on our kernel drops all that comes for connections to this port, as if the line were
 * cut: what they send is never confirmed. */
static void
cut_the_line(int port)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog filter = {.len = 1, .filter = &nothing};
    int cut = 0;

    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in at = {.sin_family = AF_UNSPEC};
        socklen_t len = sizeof at;
        if (getpeername(fd, (struct sockaddr *)&at, &len) == 0 && at.sin_family == AF_INET &&
            ntohs(at.sin_port) == port)
            cut += !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
    }
    assert_int_equal(cut, 1);
}

/* A call may take an hour here, and no keepalive is sent: only what the kernel knows of the line
 * ends it. The call behind it goes over the next connection. */
static void
a_cut_line_is_not_a_slow_server(void **state)
{
    struct fixture *f = *state;
    char conninfo[200];
    struct heard h, next;

    snprintf(conninfo, sizeof conninfo,
             "host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=disable keepalives=0",
             server.port);
    struct db *db = open_db(
        f, conninfo, (struct db_options){.stall_warn_ms = 3600000, .stall_drop_ms = 3600000});
    get(f, db, "select 1", &h);
    assert_string_equal(h.text, "1");
    cut_the_line(server.port);
    ask(db, "select 1", -1, &h);
    ask(db, "select 2", -1, &next);
    until(f, &h.done);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "the line is dead"));
    until(f, &next.done);
    assert_string_equal(next.err.text, "");
    assert_string_equal(next.text, "2");
    db_free(db);
}

static void
session_attributes(void **state)
{
    struct fixture *f = *state;
    char conninfo[300];
    struct heard h;

    snprintf(conninfo, sizeof conninfo,
             "host=127.0.0.1,localhost port=%d,%d user=postgres "
             "target_session_attrs=standby",
             server.port, server.port);
    get_once(f, conninfo, "select 1", &h);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "not in hot standby mode"));
}

static void
environment_and_service(void **state)
{
    struct fixture *f = *state;
    char file[300], text[200];
    struct heard h;

    snprintf(file, sizeof file, "%s/services", getenv("TMPDIR"));
    FILE *out = fopen(file, "we");
    assert_non_null(out);
    fprintf(out, "[mine]\nhost=localhost\nport=%d\nuser=postgres\ndbname=template1\n", server.port);
    fclose(out);
    setenv("PGSERVICEFILE", file, 1);
    get_once(f, "service=mine", "select current_database() || inet_server_port()", &h);
    snprintf(text, sizeof text, "template1%d", server.port);
    assert_string_equal(h.text, text);
    setenv("PGSERVICE", "mine", 1);
    struct db *db = db_new(f->loop, &(struct db_options){.dbname = "postgres"});
    get(f, db, "select current_database()", &h);
    assert_string_equal(h.text, "postgres"); /* option -d has priority */
    snprintf(text, sizeof text, "localhost:%d", server.port);
    assert_string_equal(db_host(db), text);
    db_free(db);
    unsetenv("PGSERVICE");
    unsetenv("PGSERVICEFILE");
    unlink(file);
    setenv("PGHOST", "localhost", 1);
    get_once(f, "postgresql://postgres@/postgres", "select inet_server_port()", &h);
    assert_int_equal(strtol(h.text, NULL, 10), server.port);
    unsetenv("PGHOST");
}

/* The name stands beside the address, or the certificate could not be checked. */
static void
tls(void **state)
{
    struct fixture *f = *state;
    char conninfo[600];
    struct heard h;

    snprintf(
        conninfo, sizeof conninfo,
        "host=localhost port=%d user=postgres dbname=postgres sslmode=verify-full sslrootcert=%s",
        server.port, server.cert);
    get_once(f, conninfo, "select ssl from pg_stat_ssl where pid = pg_backend_pid()", &h);
    assert_string_equal(h.err.text, "");
    assert_string_equal(h.text, "t");
    get_once(f, conninfo, "select repeat('x', 3000000)", &h);
    assert_int_equal(h.len, 3000000);
    snprintf(
        conninfo, sizeof conninfo,
        "host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=verify-full sslrootcert=%s",
        server.port, server.cert);
    get_once(f, conninfo, "select 1", &h);
    assert_int_equal(h.err.kind, ERR_CONN);
    assert_non_null(strstr(h.err.text, "does not match host name"));
}

/* Both directions full at once: neither side may wait for the other. */
static void
large_both_ways(void **state)
{
    struct fixture *f = *state;
    struct db *db = open_db(f, NULL, (struct db_options){0});
    enum { SIZE = 4000000 };
    char *big = xmalloc(SIZE + 1);
    struct heard h = {0};

    memset(big, 'y', SIZE);
    big[SIZE] = 0;
    const struct db_param p = {.value = big};
    const struct db_stmt s = {.sql = "select $1::text", .nparams = 1, .params = &p},
                         list[] = {s, s, s};
    struct err e = {0};
    db_ask(db, &(struct db_call){.stmts = list, .n = 3}, -1, hear, &h);
    free(big); /* the connection has its own copy */
    assert_true(loop_until(f->loop, &h.done, clock_ms() + DEADLINE_MS, &e));
    assert_string_equal(h.err.text, "");
    assert_int_equal(h.len, SIZE);
    db_free(db);
}

/* In every state of the connection db_free() answers the open calls, and no answer comes later. */
static void
freed_in_each_state(void **state)
{
    static const enum db_state states[] = {DB_OFF, DB_RESOLVING, DB_CONNECTING, DB_BUSY,
                                           DB_BACKOFF};
    struct fixture *f = *state;
    char there[200], closed[200];
    struct err e = {0};
    struct heard h;

    snprintf(there, sizeof there, "host=localhost port=%d user=postgres dbname=postgres",
             server.port);
    snprintf(closed, sizeof closed, "host=localhost port=1");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct db *db =
            open_db(f, states[i] == DB_BACKOFF ? closed : there, (struct db_options){0});
        ask(db, "select pg_sleep(10)", -1, &h);
        while (db_state(db) != states[i])
            assert_true(loop_turn(f->loop, 100, &e));
        if (states[i] == DB_BUSY)
            db_cancel(db); /* its helper thread outlives the connection */
        db_free(db);
        assert_true(h.done);
        assert_int_equal(h.err.kind, ERR_CONN);
        assert_int_equal(h.in_doubt, states[i] == DB_BUSY);
    }
}

/* A call gives up when its own time is over, and does not wait for the next attempt. The number of
 * attempts proves this: the third one comes after 600 ms at the earliest. */
static void
waiting_has_an_end(void **state)
{
    struct fixture *f = *state;
    const struct db_stmt s = {.sql = "select 1"};
    const struct db_call call = {.stmts = &s, .n = 1};
    struct heard h[2] = {{.done = false}};
    struct db *db = open_db(f, "host=127.0.0.1 port=1", (struct db_options){0});
    struct err e = {0};
    int64_t start = clock_ms();

    db_ask(db, &call, 300, hear, &h[0]);
    db_ask(db, &call, 100, hear, &h[1]);
    assert_true(loop_until(f->loop, &h[0].done, clock_ms() + DEADLINE_MS, &e));
    assert_true(clock_ms() - start >= 300);
    assert_in_range(db_tries(db), 1, 2);
    assert_true(h[1].done);
    assert_int_equal(h[1].err.kind, ERR_CONN);
    assert_non_null(strstr(h[0].err.text, "refused"));
    db_free(db);
}

static void
full_server(void **state)
{
    struct fixture *f = *state;
    PGconn *owner = pg_connect(pg_dsn("postgres"));
    struct heard h;
    char conninfo[400];

    pg_run(owner, "create role guest login connection limit 0");
    f->beat_ms = 0; /* the test itself has blocked the loop */
    snprintf(conninfo, sizeof conninfo, "host=%s user=guest dbname=postgres", pg_host());
    get_once(f, conninfo, "select 1", &h);
    assert_string_equal(h.err.sqlstate, "53300");
    assert_int_equal(h.err.kind, ERR_CONN);
    snprintf(conninfo, sizeof conninfo, "host=%s user=nobody_here dbname=postgres", pg_host());
    get_once(f, conninfo, "select 1", &h);
    assert_int_equal(h.err.kind, ERR_AUTH);
    get_once(f, pg_dsn("no_such_database"), "select 1", &h);
    assert_int_equal(h.err.kind, ERR_AUTH);
    assert_string_equal(h.err.sqlstate, "3D000");
    pg_run(owner, "drop role guest");
    PQfinish(owner);
}

/* --- a pooler --- */

static void
through_a_pooler(void **state)
{
    struct fixture *f = *state;
    char conninfo[300], database[300];
    struct heard h;

    snprintf(database, sizeof database, "postgres = host=%s port=%d user=postgres", pg_host(),
             server.port);
    pid_t bouncer = bouncer_start(BOUNCER_PORT, database, 1);
    snprintf(conninfo, sizeof conninfo, "host=%s port=%d user=postgres dbname=postgres", pg_host(),
             BOUNCER_PORT);
    struct db *a = open_db(f, conninfo,
                           (struct db_options){.schema = "mine",
                                               .app_name = "queuetop/test",
                                               .statement_timeout_ms = 1234,
                                               .read_only = true});
    struct db *b = open_db(f, conninfo, (struct db_options){0});
    get(f, a, "select current_setting('statement_timeout') || current_setting('search_path')", &h);
    assert_string_equal(h.text, "1234msmine, pg_temp");
    get(f, a, "select pg_backend_pid()", &h);
    const struct db_stmt look = {.sql =
                                     "select concat_ws(' ', current_setting('statement_timeout'), "
                                     "current_setting('search_path'), "
                                     "current_setting('transaction_read_only'), pg_backend_pid())"};
    char wanted[300];
    struct err e = {0};
    snprintf(wanted, sizeof wanted, "0 \"$user\", public off %s", h.text);
    h.done = false; /* bare: nothing of ours is set, the server connection is the same */
    db_ask(b, &(struct db_call){.stmts = &look, .n = 1, .bare = true}, -1, hear, &h);
    assert_true(loop_until(f->loop, &h.done, clock_ms() + DEADLINE_MS, &e));
    assert_string_equal(h.text, wanted);
    get(f, b, "select 1/0", &h);
    assert_string_equal(h.err.sqlstate, "22012");
    get(f, a, "select pg_sleep(5)", &h); /* cancelled by the server through the pooler */
    assert_int_equal(h.err.kind, ERR_TIMEOUT);
    get(f, b, "select 7", &h);
    assert_string_equal(h.text, "7");
    db_free(a);
    db_free(b);
    bouncer_stop(bouncer);
}

/* --- the server of these tests: TCP on a free port, with TLS --- */

static void
make_certificate(void)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    int status = -1;

    snprintf(server.cert, sizeof server.cert, "%s/server.crt", getenv("TMPDIR"));
    snprintf(server.key, sizeof server.key, "%s/server.key", getenv("TMPDIR"));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        execlp("openssl", "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
               "-subj", "/CN=localhost", "-keyout", server.key, "-out", server.cert, (char *)NULL);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        exit(1);
    chmod(server.key, 0600);
    if (user && (chown(server.key, user->pw_uid, user->pw_gid) ||
                 chown(server.cert, user->pw_uid, user->pw_gid)))
        exit(1);
}

static int
start_server(void **state)
{
    char port[10];

    (void)state;
    make_certificate();
    close(silent_listener(&server.port));
    snprintf(port, sizeof port, "%d", server.port);
    setenv("PGPORT", port, 1);
    snprintf(server.conf, sizeof server.conf,
             "listen_addresses = '127.0.0.1'\nport = %s\nssl = on\nssl_cert_file = '%s'\n"
             "ssl_key_file = '%s'\n",
             port, server.cert, server.key);
    pg_start(&(struct pg_opts){.conf = server.conf});
    return 0;
}

static int
stop_server(void **state)
{
    (void)state;
    pg_stop();
    unlink(server.cert);
    unlink(server.key);
    return 0;
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, db_setup, db_teardown_prompt)
    const struct CMUnitTest tests[] = {
        T(unknown_name),
        T(closed_port),
        T(silent_server),
        T(a_cut_line_is_not_a_slow_server),
        T(session_attributes),
        T(environment_and_service),
        T(tls),
        T(large_both_ways),
        T(freed_in_each_state),
        T(waiting_has_an_end),
        T(full_server),
        T(through_a_pooler),
    };

    log_min_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
