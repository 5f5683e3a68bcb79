/*
 * Failover under patroni (cluster.sh): a scheduler, 8 workers, a console and the soak's pushers at
 * 500 jobs/s, half of the workers by a list of hosts, half by haproxy and pgbouncer. The leader is
 * lost, or has no room, in the ways that WAYS names; each time all of them must go on within
 * FOLLOW_MS of the moment when a leader takes changes. In the end the soak's books are closed.
 *     make failover             every way, with synchronous replication, then with asynchronous
 *     make check                a planned switchover, where the programs are installed
 * The program starts cluster.sh, which starts the program again inside its namespaces.
 */
#include "tests/harness.h"

#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/soak.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

enum { WORKERS = 8, PUSHERS = 6, CLAIMERS = 2 };
enum { FOLLOW_MS = 10000, WAIT_MS = 120000, CALM_MS = 600000 };
enum { SKIPPED = 77 }; /* exit code of cluster.sh */

#define HOSTS "host=10.77.0.11,10.77.0.12 user=postgres dbname=app connect_timeout=2"
#define PROXY(database) \
    "host=10.77.0.1 port=5000 user=postgres dbname=" database " connect_timeout=2"

/* How workers find the leader: by a list, by haproxy and a pgbouncer that pools sessions, and by
 * one that pools transactions. */
static const char *const roads[] = {HOSTS, PROXY("app"), HOSTS, PROXY("pooled")};

/* A file of events and the table that it is loaded into. */
static const struct {
    const char *name, *columns;
} files[] = {
    {"acked",  "id"                                                 },
    {"rolled", "id"                                                 },
    {"run",    "job, node, lease, version, seq, try, queue, claimed"},
    {"answer", "job, node, lease, version, seq, said, outcome"      },
    {"cmd",    "job, node, try"                                     },
};

extern char **environ;

static char self[PATH_MAX];
static struct soak soak;
static struct proc scheduler, worker[WORKERS];
static pid_t pusher[PUSHERS], claimer[CLAIMERS];
static int generation;

/* --- the cluster --- */

/* The first line of what a verb of cluster.sh says; the verb must succeed. */
static const char *
cluster(const char *verb)
{
    static char line[200];
    char command[400];

    snprintf(command, sizeof command, "%s/tests/fault/cluster.sh %s", getenv("SRCDIR"), verb);
    FILE *p = popen(command, "re");
    assert_non_null(p);
    if (!fgets(line, sizeof line, p))
        *line = 0;
    line[strcspn(line, "\n")] = 0;
    while (fgetc(p) != EOF) {
    }
    assert_int_equal(pclose(p), 0);
    return line;
}

static bool
is_synchronous(void)
{
    return strcmp(getenv("MODE"), "async") != 0;
}

static PGconn *
node_connect(const char *node)
{
    char dsn[200];

    snprintf(dsn, sizeof dsn, "host=10.77.0.1%d user=postgres dbname=app connect_timeout=2",
             *node == 'a' ? 1 : 2);
    return PQconnectdb(dsn);
}

/* The standby has it a moment after the primary. */
static void
want_database(const char *node)
{
    int64_t until = soak_ms() + WAIT_MS;
    bool good = false;

    while (!good) {
        if (soak_ms() > until)
            fail_msg("node %s does not get the database", node);
        PGconn *conn = node_connect(node);
        good = PQstatus(conn) == CONNECTION_OK;
        PQfinish(conn);
        soak_wait(good ? 0 : 20);
    }
}

/* The node that takes changes, as soon as there is one. lost: the node that must not be the one. */
static PGconn *
new_leader(const char *lost)
{
    int64_t until = soak_ms() + WAIT_MS;

    for (int i = 0; soak_ms() < until; i++) {
        const char *node = i % 2 ? "a" : "b";
        if (lost && *node == *lost)
            continue;
        PGconn *conn = node_connect(node);
        PGresult *r = PQexec(conn, "update soak.probe set n = n + 1");
        bool good = PQresultStatus(r) == PGRES_COMMAND_OK;
        PQclear(r);
        if (good)
            return conn;
        PQfinish(conn);
        soak_wait(20);
    }
    fail_msg("no node takes changes");
    return NULL;
}

/* --- the programs --- */

static pid_t
begin(bool pushes, int n)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    soak.random = soak.seed * 1000003 + (uint64_t)(n * 1000 + generation);
    if (pushes)
        soak_pusher(&soak, n);
    soak_claimer(&soak, n, true);
}

/* Poison kills a claimer; another one comes. */
static void
tend(void)
{
    for (int i = 0; i < CLAIMERS; i++)
        if (waitpid(claimer[i], NULL, WNOHANG) == claimer[i]) {
            generation++;
            claimer[i] = begin(false, PUSHERS + i);
        }
}

static void
prepare(void)
{
    PGconn *conn = pg_connect("host=10.77.0.11,10.77.0.12 user=postgres dbname=postgres "
                              "target_session_attrs=read-write");
    pg_run(conn, "create database app");
    PQfinish(conn);
    want_database("a"); /* libpq does not go on to the next host where a database is missing */
    want_database("b");
    snprintf(soak.dsn, sizeof soak.dsn,
             HOSTS " target_session_attrs=read-write tcp_user_timeout=3000 keepalives_idle=2 "
                   "keepalives_interval=1 keepalives_count=3");
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", soak.dsn), 0);
    conn = pg_connect(soak.dsn);
    pg_file(conn, "tests/fault/soak_books.sql");
    pg_run(conn, "create table soak.probe (n int); insert into soak.probe values (0);"
                 "insert into queues.queue_config (queue) select unnest("
                 "'{a,b,c,mail.send,lim.three,lim.varies,meta,rate,keys}'::text[]);"
                 "update queues.queue_config set backoff_base = '100 ms', backoff_max = '1 s', "
                 "max_tries = 3, lease_timeout = '5 s'");
    PQfinish(conn);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fclose(fopen(files[i].name, "we"));
    FILE *f = fopen("command", "we");
    assert_non_null(f);
    fputs("printf '%s\\t%s\\t%s\\n' $QUEUETOP_JOB_ID $QUEUETOP_NODE $QUEUETOP_TRY >>cmd\n", f);
    assert_int_equal(fclose(f), 0);
}

static void
start_all(void)
{
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule --name s", HOSTS);
    for (int i = 0; i < WORKERS; i++)
        proc_queuetop(&worker[i], NULL, "-d \"%s\" work --node w%d --jobs 4 -- sh ./command",
                      roads[i % 4], i);
    for (int i = 0; i < PUSHERS; i++)
        pusher[i] = begin(true, i);
    for (int i = 0; i < CLAIMERS; i++)
        claimer[i] = begin(false, PUSHERS + i);
}

/* --- following --- */

/* The programs that must continue at the new leader after that time, and the number of each. */
static const struct {
    const char *who, *sql;
    int n;
} followers[] = {
    {"the scheduler", /* it has prolonged its term */
     "select count(*) from queues.scheduler where holder = 's' and until > '%2$s'::timestamptz", 1      },
    {"workers",
     "select count(distinct node) from queues.history where node ~ '^w[0-9]$' and finished > "
     "'%1$s'",                                                                                                        WORKERS},
    {"pushers",
     "select count(*) from pg_catalog.pg_stat_activity where application_name ~ '^soak-push' and "
     "xact_start > '%1$s'::timestamptz or application_name ~ '^soak-push' and state = 'idle' and "
     "query = 'commit' and state_change > '%1$s'::timestamptz",                                                       PUSHERS},
    {"the console",
     "select count(*) from pg_catalog.pg_stat_activity where application_name = 'queuetop' and "
     "query_start > '%1$s'::timestamptz",                                                                             1      },
};

enum { FOLLOWERS = sizeof followers / sizeof *followers };

static void
follow(PGconn *conn, const char *way, int64_t lost)
{
    int64_t since = soak_ms(), took[FOLLOWERS] = {0};
    char when[64], term[64];
    int left = FOLLOWERS;

    snprintf(when, sizeof when, "%s", pg_value(conn, "select clock_timestamp()"));
    snprintf(term, sizeof term, "%s", pg_value(conn, "select max(until) from queues.scheduler"));
    while (left > 0) {
        for (int i = 0; i < FOLLOWERS; i++) {
            if (took[i])
                continue;
            char sql[600];
            PGresult *r = pg_query(conn, "select pg_catalog.format($q$%s$q$, '%s', '%s')",
                                   followers[i].sql, when, term);
            snprintf(sql, sizeof sql, "%s", PQgetvalue(r, 0, 0));
            PQclear(r);
            if (pg_int(conn, "%s", sql) < followers[i].n) {
                if (soak_ms() > since + WAIT_MS)
                    fail_msg("%s: %s did not follow", way, followers[i].who);
                continue;
            }
            took[i] = soak_ms() - since + 1;
            left--;
        }
        tend();
        soak_wait(20);
    }
    printf("failover: %s: a leader after %d ms;", way, (int)(since - lost));
    for (int i = 0; i < FOLLOWERS; i++)
        printf(" %s after %d ms%s", followers[i].who, (int)took[i], i + 1 < FOLLOWERS ? "," : "\n");
    fflush(stdout);
    for (int i = 0; i < FOLLOWERS; i++)
        if (getenv("WAYS") && took[i] > FOLLOW_MS)
            fail_msg("%s: %s took longer than %d ms", way, followers[i].who, FOLLOW_MS);
}

/* Waits until that many more jobs are done. */
static void
load(void)
{
    PGconn *conn = pg_connect(soak.dsn);
    int64_t until = soak_ms() + WAIT_MS;
    int64_t from = pg_int(conn, "select count(*) from queues.history");
    int jobs = getenv("WAYS") ? 1000 : 200;

    while (pg_int(conn, "select count(*) from queues.history") < from + jobs) {
        if (soak_ms() > until)
            fail_msg("the programs do not go on");
        tend();
        soak_wait(50);
    }
    PQfinish(conn);
}

/* The server is out of space: patroni restarts this server where it is, and all programs wait until
 * there is space. */
static bool
is_about_room(const char *way)
{
    return !strcmp(way, "full") || !strcmp(way, "wal");
}

/* What programs have said up to a moment: only later words are about what happens then. */
struct said {
    long errors; /* bytes of the file of that name, where pushers and claimers write */
    size_t scheduler, worker[WORKERS];
};

static size_t
said_by(const struct proc *p)
{
    char *all = proc_errors(p);
    size_t len = strlen(all);

    free(all);
    return len;
}

static struct said
note_said(void)
{
    struct said before = {.scheduler = said_by(&scheduler)};
    FILE *f = fopen("errors", "re");

    if (f && fseek(f, 0, SEEK_END) == 0)
        before.errors = ftell(f);
    if (f)
        fclose(f);
    for (int i = 0; i < WORKERS; i++)
        before.worker[i] = said_by(&worker[i]);
    return before;
}

/* Whether the file has such a line behind that many bytes. */
static bool
has_line(const char *file, long from, const char *text)
{
    char line[1000];
    FILE *f = fopen(file, "re");
    bool has = false, is_there = f && fseek(f, from, SEEK_SET) == 0;

    while (is_there && !has && fgets(line, sizeof line, f))
        has = strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return has;
}

static bool
is_up(const char *node)
{
    PGconn *conn = node_connect(node);
    bool up = PQstatus(conn) == CONNECTION_OK;

    PQfinish(conn);
    return up;
}

/* If the tables cannot grow, the server continues, and every program says why it does nothing. If
 * the WAL cannot grow, the server ends. */
static void
want_no_room(const char *way, const char *node, const struct said *before)
{
    static const char full[] = "a file system of the server is full; could not ";
    bool ends = !strcmp(way, "wal");
    int64_t until = soak_ms() + WAIT_MS;

    while (ends ? is_up(node) : !has_line("errors", before->errors, "No space left on device")) {
        if (soak_ms() > until)
            fail_msg("%s: the server does not run out of room", way);
        tend();
        soak_wait(20);
    }
    for (int i = 0; !ends && i < WORKERS; i++)
        proc_want_after(&worker[i], before->worker[i], full);
    if (!ends)
        proc_want_after(&scheduler, before->scheduler, full);
}

static void
lose(const char *way)
{
    char old[8];

    load();
    snprintf(old, sizeof old, "%s", cluster("leader"));
    struct said before = note_said();
    int64_t lost = soak_ms();
    cluster(way);
    if (is_about_room(way)) {
        want_no_room(way, old, &before);
        cluster("room");
        lost = soak_ms(); /* how long there was no room is the test's own choice */
    }
    PGconn *conn = new_leader(is_about_room(way) ? NULL : old);
    follow(conn, way, lost);
    PQfinish(conn);
    cluster(strcmp(way, "switch") && !is_about_room(way) ? "heal" : "whole");
}

/* --- the books --- */

/* Findings about confirmed transactions, which asynchronous replication may lose. */
#define ABOUT_CONFIRMED                                                                        \
    "(\"check\" = 'lost' and what like 'committed, %%' or \"check\" = 'twice' and (what like " \
    "'completions accepted%%' or what like 'accepted, %%') or \"check\" = 'fence')"

static void
close_books(void)
{
    PGconn *conn = pg_connect(soak.dsn);

    pg_wait(conn, "select count(*) from queues.queue where state <> 'failed'", "0", CALM_MS);
    pg_wait(conn, "select count(*) from queues.work_queue where cardinality(seqs) > 0", "0",
            CALM_MS);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        soak_read(conn, files[i].name, files[i].columns);
    pg_run(conn, "analyze");
    pg_run(conn,
           "create table soak.found as select * from soak.faults() where \"check\" in ('lost', "
           "'ghost', 'twice', 'fence', 'leases')");
    printf(
        "failover: %s: %s\n", getenv("MODE"),
        pg_value(
            conn,
            "select format('%%s pushes confirmed, %%s jobs completed, %%s lost tries; of what was "
            "confirmed, missing or done again: %%s', (select count(*) from soak.acked), (select "
            "count(*) from "
            "queues.history where state = 'completed'), (select count(*) from queues.attempt where "
            "outcome = 'lost'), (select count(*) from soak.found where " ABOUT_CONFIRMED "))"));
    fflush(stdout);
    PGresult *r = pg_query(conn, "select \"check\", what from soak.found where %s limit 20",
                           is_synchronous() ? "true" : "not " ABOUT_CONFIRMED);
    for (int i = 0; i < PQntuples(r); i++)
        print_error("failover: %s: %s\n", PQgetvalue(r, i, 0), PQgetvalue(r, i, 1));
    assert_int_equal(PQntuples(r), 0);
    PQclear(r);
    PQfinish(conn);
}

/* --- the tests --- */

static void
all_follow_and_the_books_are_right(void **state)
{
    const char *const argv[] = {getenv("QUEUETOP"), "-d", HOSTS, NULL};
    char ways[100], *rest = ways;

    struct vt console;

    (void)state;
    snprintf(ways, sizeof ways, "%s", getenv("WAYS") ? getenv("WAYS") : "switch");
    soak.seed = (uint64_t)time(NULL);
    prepare();
    start_all();
    vt_spawn(&console, 24, 100, argv, NULL);
    vt_want(&console, "mail.send");
    for (char *way = strtok_r(ways, " ", &rest); way; way = strtok_r(NULL, " ", &rest))
        lose(way);
    vt_done(&console);
    for (int i = 0; i < PUSHERS; i++) {
        kill(pusher[i], SIGKILL);
        waitpid(pusher[i], NULL, 0);
    }
    close_books();
    for (int i = 0; i < CLAIMERS; i++)
        kill(claimer[i], SIGKILL);
    for (int i = 0; i < WORKERS; i++)
        proc_ends(&worker[i]);
    proc_ends(&scheduler);
}

/* Outside of the namespaces: the same test again, inside. */
static void
the_cluster_is_made(void **state)
{
    char script[PATH_MAX];
    char *argv[] = {script, (char[]){"run"}, self, (char[]){"inside"}, NULL};
    pid_t pid;
    int status;

    (void)state;
    snprintf(script, sizeof script, "%s/tests/fault/cluster.sh", getenv("SRCDIR"));
    assert_int_equal(posix_spawn(&pid, script, NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
        skip(); /* cluster.sh has said why */
    assert_int_equal(status, 0);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest outer[] = {cmocka_unit_test(the_cluster_is_made)};
    const struct CMUnitTest inner[] = {cmocka_unit_test(all_follow_and_the_books_are_right)};

    if (!realpath(argv[0], self)) /* the folder changes */
        return 1;
    if (argc > 1 && !strcmp(argv[1], "inside"))
        return cmocka_run_group_tests(inner, NULL, NULL);
    if (getenv("TMPDIR") && chdir(getenv("TMPDIR")) != 0)
        return 1;
    return cmocka_run_group_tests(outer, NULL, NULL);
}
