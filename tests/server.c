/*
 * The throwaway server of a test program: see server.h. Below are three parts: the keeper process,
 * the requests that the test sends to it (one byte each, answered by one byte), and the SQL
 * conveniences.
 */
#include "tests/server.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness.h"

enum {
    UP = 'u',
    FAST = 'f',
    CRASH = 'i',
    COPY = 'c',
    UP2 = 'U',
    FAST2 = 'F',
    DONE = '.',
    FAILED = '!',
    KEPT = 16,
    READY_MS = 300000,
    PATIENCE_MS = 300000 /* a slow machine must not fail a test */
};

static struct {
    char bindir[PATH_MAX - 64];
    char dir[PATH_MAX - 64]; /* holds data/, the socket, the log and the settings */
    pid_t keeper;
    pid_t owner; /* the process that called pg_start: a forked child must not stop the server */
    int line;    /* our end of the socket pair */
} pg;

static int64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static _Noreturn void
give_up(const char *what)
{
    char path[PATH_MAX], line[1000];

    fprintf(stderr, "server: %s: %s\n", what, strerror(errno));
    snprintf(path, sizeof path, "%s/log", pg.dir);
    FILE *log = fopen(path, "re");
    while (log && fgets(line, sizeof line, log))
        fprintf(stderr, "server log: %s", line);
    exit(1);
}

/* --- the keeper ------------------------------------------------------------------------------- */

/* A server does not run as root: as root we change to the server's usual user, or to nobody. */
static const struct passwd *
server_user(void)
{
    const struct passwd *user = getpwnam("postgres");

    return user ? user : getpwnam("nobody");
}

static void
drop_root(void)
{
    const struct passwd *user = geteuid() == 0 ? server_user() : NULL;

    if (user && (setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid)))
        _exit(126);
}

/* Runs in a new child of the keeper, before exec. The programs find their own folder by argv[0].
 * Their current directory must be one that their user may enter. */
static void
prepare_child(pid_t keeper)
{
    char log[PATH_MAX];
    sigset_t none;

    snprintf(log, sizeof log, "%s/log", pg.dir);
    drop_root();
    if (chdir(pg.dir) != 0)
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != keeper)
        _exit(125);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (null < 0 || out < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(124);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
}

/* Forks. Parent and child both get in data the path of place, which is below the server's
 * directory. */
static pid_t
start_child(char *data, const char *place)
{
    pid_t keeper = getpid(), pid = fork();

    if (pid == 0)
        prepare_child(keeper);
    snprintf(data, PATH_MAX, "%s/%s", pg.dir, place);
    return pid;
}

static bool
ended_well(pid_t pid)
{
    int status = 1;

    return pid > 0 && waitpid(pid, &status, 0) > 0 && status == 0;
}

static bool
init_cluster(void)
{
    char path[PATH_MAX], data[PATH_MAX];
    pid_t pid = start_child(data, "data");

    if (pid == 0) {
        snprintf(path, sizeof path, "%s/initdb", pg.bindir);
        execl(path, path, "-D", data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8",
              "--locale=C.UTF-8", (char *)NULL);
        _exit(127);
    }
    return ended_well(pid);
}

static bool
copy_cluster(const char *from, const char *to)
{
    char data[PATH_MAX];
    pid_t pid = start_child(data, "data");

    if (pid == 0) {
        execlp("cp", "cp", "-a", "-T", "--", from ? from : data, to ? to : data, (char *)NULL);
        _exit(127);
    }
    return ended_well(pid);
}

/* initdb takes a second of processor time, a copy takes a tenth. The driver of the tests names a
 * folder for the copy. The first test that finds no copy makes it; rename() publishes it whole. */
static bool
make_cluster(void)
{
    char kept[PATH_MAX], own[PATH_MAX];
    const char *shared = getenv("TEST_CLUSTER");

    if (!shared)
        return init_cluster();
    snprintf(kept, sizeof kept, "%s/data", shared);
    snprintf(own, sizeof own, "%s/%d", shared, (int)getpid());
    if (access(kept, F_OK) == 0)
        return copy_cluster(kept, NULL);
    if (!init_cluster() || !copy_cluster(NULL, own))
        return false;
    if (rename(own, kept) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        return false;
    return true;
}

/* Copies the server while it is down, because pg_basebackup may have another version than the
 * server. Both servers read "conf", which names the primary. */
static bool
make_standby(void)
{
    char place[PATH_MAX], signal_file[PATH_MAX + 20];

    snprintf(place, sizeof place, "%s/standby", pg.dir);
    snprintf(signal_file, sizeof signal_file, "%s/standby.signal", place);
    if (!copy_cluster(NULL, place))
        return false;
    int fd = open(signal_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd >= 0 && close(fd) == 0;
}

/* port NULL = the port in the server's configuration. */
static pid_t
start_server(const char *place, const char *port)
{
    char path[PATH_MAX], data[PATH_MAX], conf[PATH_MAX];
    pid_t pid = start_child(data, place);

    if (pid == 0) {
        snprintf(path, sizeof path, "%s/postgres", pg.bindir);
        snprintf(conf, sizeof conf, "--config_file=%s/conf", pg.dir);
        execl(path, path, "-D", data, conf, port ? "-p" : NULL, port, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void
stop_server(pid_t *server, int sig)
{
    if (*server <= 0)
        return;
    kill(*server, SIGCONT);
    kill(*server, sig);
    waitpid(*server, NULL, 0);
    *server = 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* Serves requests until the test program is gone. */
static _Noreturn void
keep(int line)
{
    char request;
    pid_t server[2] = {0};

    while (read(line, &request, 1) == 1) {
        char answer = DONE;
        bool ok = true;
        if (request == COPY)
            ok = make_standby();
        else if (request == UP)
            ok = (server[0] = start_server("data", NULL)) > 0;
        else if (request == UP2)
            ok = (server[1] = start_server("standby", "5433")) > 0;
        else
            stop_server(&server[request == FAST2], request == CRASH ? SIGQUIT : SIGINT);
        if (!ok)
            answer = FAILED;
        if (write(line, &answer, 1) != 1)
            break;
    }
    stop_server(&server[1], SIGQUIT);
    stop_server(&server[0], SIGQUIT);
    nftw(pg.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void
start_keeper(void)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        give_up("socketpair");
    fflush(NULL);
    pg.keeper = fork();
    if (pg.keeper < 0)
        give_up("fork");
    if (pg.keeper == 0) {
        close(pair[0]);
        setsid();
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        char answer = make_cluster() ? DONE : FAILED;
        if (write(pair[1], &answer, 1) != 1)
            answer = FAILED;
        keep(pair[1]);
    }
    close(pair[1]);
    pg.line = pair[0];
}

/* --- starting and stopping -------------------------------------------------------------------- */

static void
expect_done(const char *what)
{
    char answer = FAILED;

    if (read(pg.line, &answer, 1) != 1 || answer != DONE)
        give_up(what);
}

static void
request(char what)
{
    if (send(pg.line, &what, 1, MSG_NOSIGNAL) != 1)
        give_up("the keeper is gone");
    expect_done("request to the keeper");
}

/* Looks for the server's binaries: in PATH, then in the usual places, the newest version first. */
static bool
find_in(const char *pattern)
{
    glob_t found;
    int newest = -1;

    if (glob(pattern, 0, NULL, &found))
        return false;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *digits = strpbrk(found.gl_pathv[i], "0123456789");
        int version = digits ? (int)strtol(digits, NULL, 10) : 0;
        if (version > newest && access(found.gl_pathv[i], X_OK) == 0) {
            newest = version;
            snprintf(pg.bindir, sizeof pg.bindir, "%s", found.gl_pathv[i]);
            *strrchr(pg.bindir, '/') = 0;
        }
    }
    globfree(&found);
    return newest >= 0;
}

const char *
pg_bindir(void)
{
    static const char *const usual[] = {
        "/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres",
        "/usr/local/pgsql/bin/postgres", "/opt/homebrew/opt/postgresql*/bin/postgres"};
    const char *path = getenv("PATH");

    if (*pg.bindir)
        return pg.bindir;
    while (path && *path) {
        char pattern[PATH_MAX];
        int len = (int)strcspn(path, ":");
        snprintf(pattern, sizeof pattern, "%.*s/postgres", len, path);
        if (find_in(pattern))
            return pg.bindir;
        path += len + (path[len] == ':');
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (find_in(usual[i]))
            return pg.bindir;
    errno = ENOENT;
    give_up("no PostgreSQL server found (sudo make deps)");
}

static void
write_conf(const struct pg_opts *opts)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/conf", pg.dir);
    FILE *f = fopen(path, "we");
    if (!f)
        give_up(path);
    fprintf(f,
            "listen_addresses = ''\nunix_socket_directories = '%s'\nshared_buffers = 64MB\n"
            "max_connections = 60\nmax_wal_senders = 0\nwal_level = minimal\nTimeZone = 'UTC'\n"
            "log_timezone = 'UTC'\njit = off\nlc_messages = 'C'\nmax_wal_size = 4GB\n"
            "primary_conninfo = 'host=%s user=postgres'\n",
            pg.dir, pg.dir);
    if (!opts || !opts->is_durable) /* a crash of the server alone still loses no commit */
        fputs("fsync = off\nfull_page_writes = off\n", f);
    fputs(opts && opts->conf ? opts->conf : "", f);
    fputs("\n", f);
    fclose(f);
    chmod(path, 0644);
}

static void
make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    const struct passwd *user = geteuid() == 0 ? server_user() : NULL;

    /* a socket's path may have 107 bytes */
    if (!tmp || !*tmp || strlen(tmp) > 70)
        tmp = "/tmp";
    snprintf(pg.dir, sizeof pg.dir, "%s/pg-XXXXXX", tmp);
    if (!mkdtemp(pg.dir) || (user && chown(pg.dir, user->pw_uid, user->pw_gid)))
        give_up(pg.dir);
}

void
pg_start(const struct pg_opts *opts)
{
    pg_bindir();
    make_dir();
    write_conf(opts);
    pg.owner = getpid();
    start_keeper();
    atexit(pg_stop);
    expect_done("initdb");
    pg_up();
}

void
pg_stop(void)
{
    if (pg.keeper <= 0 || pg.owner != getpid())
        return;
    shutdown(pg.line, SHUT_RDWR); /* children that a failed test left have the line, too */
    close(pg.line);
    waitpid(pg.keeper, NULL, 0);
    pg.keeper = 0;
}

int
pg_group_start(void **state)
{
    (void)state;
    pg_start(NULL);
    return 0;
}

int
pg_group_stop(void **state)
{
    (void)state;
    pg_stop();
    return 0;
}

void
pg_down(const char *mode)
{
    request(strcmp(mode, "immediate") == 0 ? CRASH : FAST);
}

static void
wait_ready(const char *dsn)
{
    int64_t deadline = now_ms() + READY_MS;

    while (PQping(dsn) != PQPING_OK) {
        if (now_ms() > deadline)
            give_up("the server does not answer");
        poll(NULL, 0, 5);
    }
}

void
pg_up(void)
{
    request(UP);
    wait_ready(pg_dsn("postgres"));
}

void
pg_standby_up(void)
{
    request(UP2);
    wait_ready(pg_standby_dsn("postgres"));
}

void
pg_standby_start(void)
{
    pg_down("fast");
    request(COPY);
    pg_up();
    pg_standby_up();
}

void
pg_standby_down(void)
{
    request(FAST2);
}

void
pg_restart(const char *mode)
{
    pg_down(mode);
    pg_up();
}

int
pg_pid(void)
{
    char path[PATH_MAX], line[32] = "";

    snprintf(path, sizeof path, "%s/data/postmaster.pid", pg.dir);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    if (!fgets(line, sizeof line, f))
        *line = 0;
    fclose(f);
    return (int)strtol(line, NULL, 10);
}

const char *
pg_host(void)
{
    return pg.dir;
}

/* --- SQL -------------------------------------------------------------------------------------- */

/* Keeps the text that a function returns: 16 slots, and the oldest slot is reused. */
static const char *
keep_text(const char *text)
{
    static char *kept[KEPT];
    static unsigned next;
    char **slot = &kept[next++ % KEPT];

    free(*slot);
    *slot = strdup(text);
    if (!*slot)
        abort();
    return *slot;
}

__attribute__((format(printf, 1, 0))) static char *
vformat(const char *fmt, va_list args)
{
    char *text = NULL;

    if (vasprintf(&text, fmt, args) < 0)
        abort();
    return text;
}

static const char *
dsn_at(const char *port, const char *database)
{
    char text[PATH_MAX + 128];

    assert_null(strpbrk(database, "'\\"));
    snprintf(text, sizeof text, "host=%s%s user=postgres dbname='%s'", pg.dir, port, database);
    return keep_text(text);
}

const char *
pg_dsn(const char *database)
{
    return dsn_at("", database);
}

const char *
pg_standby_dsn(const char *database)
{
    return dsn_at(" port=5433", database);
}

static void
drop_notice(void *arg, const PGresult *res)
{
    (void)arg, (void)res;
}

void
pg_needs(PGconn *conn, int major, const char *why)
{
    if (PQserverVersion(conn) >= major * 10000)
        return;
    print_message("skipped on PostgreSQL %s: %s\n", PQparameterStatus(conn, "server_version"), why);
    skip();
}

PGconn *
pg_connect(const char *dsn)
{
    PGconn *conn = PQconnectdb(dsn);

    PQsetNoticeReceiver(conn, drop_notice, NULL);
    if (PQstatus(conn) != CONNECTION_OK) {
        print_error("server: %s", PQerrorMessage(conn));
        _fail(__FILE__, __LINE__);
    }
    return conn;
}

/* A copy of files costs the server a third of the copy by its log that is usual since 15. */
const char *
pg_copydb(const char *name, const char *from)
{
    PGconn *conn = pg_connect(pg_dsn("postgres"));

    pg_run(conn, "create database \"%s\" template \"%s\"%s", name, from,
           PQserverVersion(conn) >= 150000 ? " strategy file_copy" : "");
    PQfinish(conn);
    return pg_dsn(name);
}

const char *
pg_newdb(const char *name)
{
    return pg_copydb(name, "template1");
}

static bool
is_good(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static const char *
sqlstate(const PGresult *res)
{
    const char *code = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    return is_good(res) ? "" : keep_text(code ? code : "08000");
}

static PGresult *
must(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);

    if (!is_good(res)) {
        print_error("server: %sserver: in: %.2000s\n", PQerrorMessage(conn), sql);
        PQclear(res);
        _fail(__FILE__, __LINE__);
    }
    return res;
}

PGresult *
pg_query(PGconn *conn, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *sql = vformat(fmt, args);
    va_end(args);
    PGresult *res = must(conn, sql);
    free(sql);
    return res;
}

void
pg_run(PGconn *conn, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *sql = vformat(fmt, args);
    va_end(args);
    PQclear(must(conn, sql));
    free(sql);
}

const char *
pg_try(PGconn *conn, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *sql = vformat(fmt, args);
    va_end(args);
    PGresult *res = PQexec(conn, sql);
    const char *code = sqlstate(res);
    PQclear(res);
    free(sql);
    return code;
}

static const char *
first_value(PGresult *res)
{
    const char *text = "";

    if (PQntuples(res) > 0 && PQnfields(res) > 0)
        text = PQgetisnull(res, 0, 0) ? "NULL" : PQgetvalue(res, 0, 0);
    text = keep_text(text);
    PQclear(res);
    return text;
}

const char *
pg_value(PGconn *conn, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *sql = vformat(fmt, args);
    va_end(args);
    PGresult *res = must(conn, sql);
    free(sql);
    return first_value(res);
}

int64_t
pg_int(PGconn *conn, const char *fmt, ...)
{
    va_list args;
    char *end = NULL;

    va_start(args, fmt);
    char *sql = vformat(fmt, args);
    va_end(args);
    const char *text = first_value(must(conn, sql));
    int64_t value = strtoll(text, &end, 10);
    if (end == text || *end) {
        print_error("server: not a number: '%s'\nserver: in: %s\n", text, sql);
        free(sql);
        _fail(__FILE__, __LINE__);
    }
    free(sql);
    return value;
}

void
pg_file(PGconn *conn, const char *path)
{
    char full[PATH_MAX];
    const char *src = getenv("SRCDIR");
    char *text = NULL;
    size_t size = 0;

    snprintf(full, sizeof full, "%s/%s", src ? src : ".", path);
    FILE *f = fopen(full, "re");
    if (!f || getdelim(&text, &size, 0, f) < 0) {
        print_error("server: cannot read %s\n", full);
        _fail(__FILE__, __LINE__);
    }
    fclose(f);
    PQclear(must(conn, text));
    free(text);
}

PGconn *
pg_fixture(const char *database, const char *adapter)
{
    char path[PATH_MAX];
    PGconn *conn = pg_connect(pg_newdb(database));

    snprintf(path, sizeof path, "tests/adapters/%s.sql", adapter);
    pg_file(conn, path);
    return conn;
}

void
pg_wait(PGconn *conn, const char *sql, const char *expected, int timeout_ms)
{
    int64_t deadline = now_ms() + (timeout_ms > PATIENCE_MS ? timeout_ms : PATIENCE_MS);

    for (int pause_ms = 2;; pause_ms = pause_ms < 50 ? pause_ms * 2 : 50) {
        const char *value = first_value(must(conn, sql));
        if (strcmp(value, expected) == 0)
            return;
        if (now_ms() >= deadline) {
            print_error("server: after %d ms '%s' is not '%s'\nserver: in: %s\n", timeout_ms, value,
                        expected, sql);
            _fail(__FILE__, __LINE__);
        }
        poll(NULL, 0, pause_ms);
    }
}

void
pg_wait_blocked(PGconn *conn, PGconn *other)
{
    char sql[200];

    snprintf(sql, sizeof sql, "SELECT cardinality(pg_blocking_pids(%d)) > 0", PQbackendPID(other));
    for (int64_t deadline = now_ms() + PATIENCE_MS; strcmp(first_value(must(conn, sql)), "t");) {
        bool done = PQtransactionStatus(other) == PQTRANS_ACTIVE && PQconsumeInput(other) &&
                    !PQisBusy(other);
        if (done || now_ms() >= deadline) {
            print_error("server: pid %d was to wait for a lock%s\n", PQbackendPID(other),
                        done ? ", but it has answered" : "");
            _fail(__FILE__, __LINE__);
        }
        poll(NULL, 0, 2);
    }
}

void
pg_send(PGconn *conn, const char *sql)
{
    if (!PQsendQuery(conn, sql)) {
        print_error("server: %s", PQerrorMessage(conn));
        _fail(__FILE__, __LINE__);
    }
}

const char *
pg_finish(PGconn *conn)
{
    const char *code = "";

    for (PGresult *res; (res = PQgetResult(conn)); PQclear(res))
        if (*code == 0)
            code = sqlstate(res);
    return code;
}
