/*
 * What lets a process in changes while it is at work: a password that is rotated, a certificate
 * of the server or of a client that runs out. Console, worker and scheduler say why they are
 * refused, come back when the new one is in its place, and lose no job.
 */
#include "tests/harness.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

enum { WAIT_MS = 60000 };

/* A scheduler, a worker whose job waits at a gate, a worker without a job, and a console. */
struct all {
    struct proc scheduler, busy, idle;
    struct vt console;
    const char *dsn; /* for the programs */
    PGconn *conn;    /* for the test, by the Unix socket */
};

static int port;

/* --- files --- */

static __attribute__((format(printf, 1, 2))) void
shell(const char *fmt, ...)
{
    char line[1000];
    const char *const argv[] = {"sh", "-ec", line, NULL};
    struct proc p;
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    proc_start(&p, argv, NULL);
    int code = proc_wait(&p);
    char *err = proc_errors(&p);
    if (code)
        fail_msg("%s\n%s", line, err);
    free(err);
    proc_done(&p);
}

/* In one step, so that nobody reads half of it. */
static __attribute__((format(printf, 2, 3))) void
put_file(const char *name, const char *fmt, ...)
{
    FILE *f = fopen("new", "we");
    va_list args;

    assert_non_null(f);
    va_start(args, fmt);
    vfprintf(f, fmt, args);
    va_end(args);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod("new", 0600), 0);
    assert_int_equal(rename("new", name), 0);
}

/* tls/NAME.crt of that host or role, good from..to. */
static void
sign(const char *name, const char *subject, const char *from, const char *to)
{
    shell("cd tls && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=%s "
          "-keyout %s.key -out %s.csr && "
          "openssl ca -batch -notext -config conf -in %s.csr -out %s.crt -startdate %s -enddate %s",
          subject, name, name, name, name, from, to);
}

static void
make_certificates(void)
{
    static const char past[] = "20200101000000Z", gone[] = "20200102000000Z",
                      future[] = "20991231235959Z";

    assert_int_equal(mkdir("tls", 0711), 0);
    put_file("tls/conf", "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nnew_certs_dir=.\n"
                         "default_md=sha256\npolicy=p\nrand_serial=yes\nunique_subject=no\n"
                         "certificate=ca.crt\nprivate_key=ca.key\n[p]\ncommonName=supplied\n");
    shell("cd tls && touch index && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
          "-nodes -days 2 "
          "-subj /CN=authority -keyout ca.key -out ca.crt");
    sign("good", "localhost", past, future);
    sign("over", "localhost", past, gone);
    sign("mygood", "known", past, future);
    sign("myover", "known", past, gone);
}

/* The server's certificate from now on. */
static void
serve_with(PGconn *conn, const char *which)
{
    shell("cd tls && cp -p %s.crt server.crt && cp -p %s.key server.key", which, which);
    if (conn)
        pg_run(conn, "select pg_reload_conf()");
}

/* --- the programs --- */

/* Ends all sessions of the programs. */
static void
throw_out(PGconn *conn)
{
    pg_run(conn, "select pg_terminate_backend(pid) from pg_stat_activity where usename in "
                 "('keeper', 'known')");
}

static void
start(struct all *a, const char *dsn)
{
    const char *const argv[] = {getenv("QUEUETOP"), "-d", dsn, NULL};

    a->dsn = dsn;
    a->conn = pg_connect(pg_dsn("app"));
    pg_run(a->conn, "alter role keeper password 'first'; delete from queues.history");
    unlink("gate"); /* of a test that failed */
    assert_int_equal(mkfifo("gate", 0600), 0);
    proc_check(0, NULL, NULL, "-d \"%s\" push busy", dsn);
    proc_queuetop(&a->scheduler, NULL, "-d \"%s\" schedule --name s", dsn);
    proc_want(&a->scheduler, "scheduler s is active");
    proc_queuetop(&a->busy, NULL, "-d \"%s\" work --node n --queues busy -- sh -c 'read x < gate'",
                  dsn);
    proc_queuetop(&a->idle, NULL, "-d \"%s\" work --node m --queues idle -- true", dsn);
    proc_want(&a->idle, "node m is up");
    pg_wait(a->conn, "select count(*) from queues.work_queue where lock_key is not null", "1",
            WAIT_MS);
    vt_spawn(&a->console, 24, 100, argv, NULL);
    vt_want(&a->console, "live");
}

/* Each program reports why the server refuses it. */
static void
want_all(struct all *a, const char *text)
{
    proc_want(&a->scheduler, text);
    proc_want(&a->busy, text);
    proc_want(&a->idle, text);
    vt_want(&a->console, text);
}

/* The job that ended while its worker was refused counts once. A delayed job needs the scheduler,
 * and then the other worker. */
static void
want_work(struct all *a)
{
    pg_wait(a->conn, "select string_agg(state::text || tries, ' ') from queues.history",
            "completed1", WAIT_MS);
    proc_check(0, NULL, NULL, "-d \"%s\" push idle --delay 1s", a->dsn);
    pg_wait(a->conn, "select string_agg(queue, ' ' order by queue) from queues.history",
            "busy idle", WAIT_MS);
    vt_want(&a->console, "live");
}

static void
end(struct all *a)
{
    vt_done(&a->console);
    proc_ends(&a->scheduler);
    proc_ends(&a->busy);
    proc_ends(&a->idle);
    PQfinish(a->conn);
    unlink("gate");
}

/* --- the tests --- */

static void
a_password_is_rotated(void **state)
{
    struct all a;
    char *err,
        *dsn = xasprintf("host=localhost port=%d user=keeper dbname=app passfile=pass", port);

    (void)state;
    put_file("pass", "localhost:%d:*:keeper:first\n", port);
    start(&a, dsn);
    pg_run(a.conn, "alter role keeper password 'second'");
    throw_out(a.conn);
    want_all(&a, "password authentication failed");
    proc_open_gate("gate");
    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" push idle", dsn), 4);
    assert_non_null(strstr(err, "password authentication failed for user \"keeper\""));
    assert_null(strstr(err, "first"));
    free(err);
    proc_check(4, NULL, "password authentication failed", "-d \"%s\" work -- true", dsn);
    proc_check(4, NULL, "password authentication failed", "-d \"%s\" schedule", dsn);
    put_file("pass", "localhost:%d:*:keeper:second\n", port);
    want_work(&a);
    end(&a);
    free(dsn);
}

static void
the_servers_certificate_runs_out(void **state)
{
    struct all a;
    char *dsn = xasprintf("host=localhost port=%d user=keeper dbname=app passfile=pass "
                          "sslmode=verify-full sslrootcert=tls/ca.crt",
                          port);

    (void)state;
    put_file("pass", "localhost:%d:*:keeper:first\n", port);
    start(&a, dsn);
    serve_with(a.conn, "over");
    throw_out(a.conn);
    want_all(&a, "certificate verify failed");
    proc_open_gate("gate");
    proc_check(4, NULL, "certificate verify failed", "-d \"%s\" push idle", dsn);
    serve_with(a.conn, "good");
    want_work(&a);
    end(&a);
    free(dsn);
}

static void
a_clients_certificate_runs_out(void **state)
{
    struct all a;
    char *dsn = xasprintf("host=localhost port=%d user=known dbname=app sslmode=verify-ca "
                          "sslrootcert=tls/ca.crt sslcert=tls/my.crt sslkey=tls/my.key",
                          port);

    (void)state;
    shell("cd tls && cp mygood.crt my.crt && cp mygood.key my.key");
    start(&a, dsn);
    shell("cd tls && cp myover.key my.key && cp myover.crt my.crt");
    throw_out(a.conn);
    want_all(&a, "certificate expired");
    proc_open_gate("gate");
    proc_check(4, NULL, "certificate expired", "-d \"%s\" push idle", dsn);
    shell("cd tls && cp mygood.key my.key && cp mygood.crt my.crt");
    want_work(&a);
    end(&a);
    free(dsn);
}

/* The books connection of a standby is first opened when it takes over, and is refused then. Its
 * steps go on in the session that is open. */
static void
a_standby_takes_over_with_an_old_password(void **state)
{
    static const char books[] =
        "select count(*) from pg_stat_activity where application_name = 'queuetop books'";
    struct proc a, b;
    PGconn *conn = pg_connect(pg_dsn("app"));
    char *dsn = xasprintf("host=localhost port=%d user=keeper dbname=app passfile=pass", port);

    (void)state;
    pg_run(conn, "alter role keeper password 'first'");
    put_file("pass", "localhost:%d:*:keeper:first\n", port);
    proc_queuetop(&a, NULL, "-d \"%s\" schedule --name a", dsn);
    proc_want(&a, "scheduler a is active");
    proc_queuetop(&b, NULL, "-d \"%s\" schedule --name b", dsn);
    proc_want(&b, "scheduler b stands by");
    pg_run(conn, "alter role keeper password 'second'");
    kill(a.pid, SIGKILL);
    proc_wait(&a);
    proc_done(&a);
    proc_want(&b, "scheduler b is active");
    proc_want(&b, "keeping the books: ");
    proc_want(&b, "password authentication failed");
    pg_wait(conn, books, "0", WAIT_MS);
    put_file("pass", "localhost:%d:*:keeper:second\n", port);
    pg_wait(conn, books, "1", WAIT_MS);
    proc_ends(&b);
    PQfinish(conn);
    free(dsn);
}

/* doctor warns of a login that gives its password to every server that asks. */
static void
a_password_for_everybody_is_named(void **state)
{
    static const char warning[] = "this login gives its password to every server that asks";
    static const struct {
        const char *options;
        bool warns;
        int since; /* libpq */
    } cases[] = {
        {"sslmode=require",                            true,  0     },
        {"sslmode=verify-ca sslrootcert=tls/ca.crt",   true,  0     },
        {"sslmode=verify-full sslrootcert=tls/ca.crt", false, 0     },
        {"require_auth=scram-sha-256",                 false, 160000},
        {"require_auth=!password",                     false, 160000},
        {"require_auth=scram-sha-256,password",        true,  160000},
    };
    PGconn *conn = pg_connect(pg_dsn("app"));

    (void)state;
    serve_with(NULL, "good");
    pg_run(conn, "alter role keeper password 'first'");
    pg_run(conn, "select pg_reload_conf()");
    put_file("pass", "localhost:%d:*:keeper:first\n", port);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out, *err;
        if (PQlibVersion() < cases[i].since) {
            print_message("not tried, libpq is older: %s\n", cases[i].options);
            continue;
        }
        proc_run(NULL, &out, &err,
                 "doctor \"host=localhost port=%d user=keeper dbname=app passfile=pass %s\"", port,
                 cases[i].options);
        if (!strstr(out, "clock") && !strstr(out, "WARN") && !strstr(out, "looks found nothing"))
            fail_msg("%s: %s%s", cases[i].options, out, err);
        if (!strstr(out, warning) == cases[i].warns)
            fail_msg("%s: %s", cases[i].options, out);
        free(out);
        free(err);
    }
    PQfinish(conn);
}

/* --- the server: by TCP with TLS; user known needs a certificate, user keeper a password --- */

static int
free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) ||
        getsockname(fd, (struct sockaddr *)&at, &len))
        return 0;
    close(fd);
    return ntohs(at.sin_port);
}

static int
set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    char conf[1000], text[20];

    (void)state;
    if (chdir(tmp) != 0 || !(port = free_port()))
        return -1;
    make_certificates();
    serve_with(NULL, "good");
    put_file("hba", "local all postgres trust\n"
                    "hostssl all known 127.0.0.1/32 cert\n"
                    "hostssl all keeper 127.0.0.1/32 scram-sha-256\n");
    if (user)
        shell("chown %s hba && chown %s tls/*", user->pw_name, user->pw_name);
    snprintf(text, sizeof text, "%d", port);
    setenv("PGPORT", text, 1);
    unsetenv("PGPASSFILE");
    unsetenv("PGPASSWORD");
    snprintf(conf, sizeof conf,
             "password_encryption = scram-sha-256\nlisten_addresses = '127.0.0.1'\nport "
             "= %d\nssl = on\nhba_file = '%s/hba'\n"
             "ssl_cert_file = '%s/tls/server.crt'\nssl_key_file = '%s/tls/server.key'\n"
             "ssl_ca_file = '%s/tls/ca.crt'\n",
             port, tmp, tmp, tmp, tmp);
    pg_start(&(struct pg_opts){.conf = conf});
    PGconn *conn = pg_connect(pg_newdb("app"));
    pg_run(conn, "create role keeper superuser login; create role known superuser login");
    PQfinish(conn);
    proc_check(0, NULL, NULL, "-d \"%s\" install", pg_dsn("app"));
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    pg_stop();
    shell("rm -rf tls hba pass gate");
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_is_rotated),
        cmocka_unit_test(the_servers_certificate_runs_out),
        cmocka_unit_test(a_clients_certificate_runs_out),
        cmocka_unit_test(a_standby_takes_over_with_an_old_password),
        cmocka_unit_test(a_password_for_everybody_is_named),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
