/*
 * What each screen costs the server (`make bench T=screens`; the bar: 2 % of one core): ten
 * consoles at 140x45, each on a screen of its own and with a login of its own, watch the same
 * database for WATCH (60) seconds at once. The cost is the processor time of the console's
 * sessions, as the system counts it, so a busy machine changes it little. It is printed for the
 * first 10 s of the screen, with all that is asked once, and for the time after that. "every" is
 * how often the screen's own statement is asked, in seconds: what the budget saves makes the screen
 * older. BUDGET=100 (QUEUETOP_BUDGET) shows what the screens would ask for if nothing limited them.
 *
 * Two databases: 50 queues with 7 days in table minute, and 5,000 queues with two hours. Beside the
 * consoles the scheduler runs, and a writer who pushes and completes some 400 jobs a second. For a
 * screen over the bar its three most expensive statements are printed (by pg_stat_statements, in
 * elapsed time), and the program ends with 1. V=1 prints them for all screens.
 */
#include "tests/harness.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/adapter/adapter.h"
#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

enum { FIRST_MS = 10000, APART_MS = 100, SETTLE_MS = 600000 };
enum { NODES = 40, HELD = 50, FAILED = 2000, BATCH = 20 };
#define BAR 2.0

/* The keys that lead to the screen from Queues; the count begins before the last key. own: the
 * section that it shows above all. shows: what must be on the screen in the end. */
static const struct screen {
    const char *name, *way, *key, *own, *shows;
} screens[] = {
    {"queue",     NULL, "enter", "leases",          "errors of failed jobs"},
    {"jobs",      NULL, "2",     "jobs",            "kind-"                },
    {"job",       "2",  "enter", "job",             "PAYLOAD"              },
    {"failed",    NULL, "3",     "groups",          "no answer"            },
    {"nodes",     NULL, "4",     "nodes",           "node-0"               },
    {"node",      "4",  "enter", "leases",          "its leases"           },
    {"schedules", NULL, "5",     "schedules",       "schedule-"            },
    {"audit",     NULL, "6",     "audit",           "looked at"            },
    {"database",  NULL, "7",     "health_sessions", "what to do"           },
    {"queues",    NULL, NULL,    "counts",          "queue-0"              },
};
enum { SCREENS = (int)(sizeof screens / sizeof *screens) };

static const struct scene {
    const char *title;
    int queues, minutes;
} scenes[] = {
    {"50 queues, 7 days of minutes",     50,   7 * 24 * 60},
    {"5,000 queues, 2 hours of minutes", 5000, 120        },
};

struct watch { /* one console */
    struct vt vt;
    int64_t opened_ms, opened_ns; /* when its screen was opened; the time of its sessions then */
    int64_t first_ms, first_ns, last_ms, last_ns;
};

static int
watch_ms(void)
{
    const char *s = getenv("WATCH");
    long n = s ? strtol(s, NULL, 10) : 60;

    assert_true(n >= 20 && n <= 3600);
    return (int)n * 1000;
}

/* --- the database ----------------------------------------------------------------------------- */

/* What `sql` with a node, a number and the writer's arrays does to jobs that were claimed. */
static int
claim_and(PGconn *conn, const char *node, int n, const char *sql)
{
    const char *args[4] = {node};
    char count[16];

    snprintf(count, sizeof count, "%d", n);
    PGresult *r = PQexecParams(conn,
                               "select array_agg(lease), array_agg(version), array_agg(seq),"
                               " count(*) from queues.claim($1, $2::int, '2 h')",
                               2, NULL, (const char *const[]){node, count}, NULL, NULL, 0);
    int got = PQntuples(r) == 1 ? (int)strtol(PQgetvalue(r, 0, 3), NULL, 10) : -1;
    if (got > 0 && sql) {
        for (int i = 0; i < 3; i++)
            args[i + 1] = PQgetvalue(r, 0, i);
        PGresult *done = PQexecParams(conn, sql, 4, NULL, args, NULL, NULL, 0);
        if (PQresultStatus(done) != PGRES_TUPLES_OK)
            got = -1;
        PQclear(done);
    }
    PQclear(r);
    return got;
}

static const char completes[] =
    "select count(*) from queues.complete($1, $2::bigint[], $3::int[], $4::bigint[], null, null)";
static const char fails[] =
    "select count(*) from (select array_agg('no answer from host ' || s % 30 || chr(97 + "
    "(s % 25)::int)) as e, array_agg(true) as t from unnest($4::bigint[]) s) z,"
    " queues.fail($1, $2::bigint[], $3::int[], $4::bigint[], z.e, final => z.t)";

static void
claim_all(PGconn *conn, const char *node, int n, const char *sql)
{
    int64_t until = clock_ms() + SETTLE_MS;

    for (int have = 0; have < n;) {
        int got = claim_and(conn, node, n - have, sql);
        assert_true(got >= 0);
        assert_true(clock_ms() < until);
        have += got;
    }
}

static void
lay_ready(PGconn *conn, const struct scene *s)
{
    pg_run(conn, "set bench.queues = %d; set bench.minutes = %d", s->queues, s->minutes);
    pg_file(conn, "tests/bench/screens.sql");
    pg_wait(conn,
            "select (select not joining and settled is null from queues.tick order by tick desc"
            " limit 1) from queues.schedule('bench') offset 0",
            "t", SETTLE_MS);
    claim_all(conn, "failer", FAILED, fails);
    for (int i = 1; i <= NODES; i++) {
        char node[24];
        snprintf(node, sizeof node, "node-%02d", i);
        claim_all(conn, node, HELD, NULL);
    }
    for (int i = 0; i < SCREENS; i++)
        pg_run(conn,
               "drop role if exists watch_%s;"
               " create role watch_%s login in role queues_operator, pg_monitor",
               screens[i].name, screens[i].name);
    pg_run(conn, "create extension pg_stat_statements");
    pg_run(conn, "vacuum analyze");
    pg_run(conn, "checkpoint");
}

/* Pushes, completes and now and then fails a batch, twenty times a second. */
static pid_t
start_writer(const char *dsn, int queues)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    PGconn *conn = PQconnectdb(dsn);
    PQclear(PQexec(conn, "select queues.node_start('writer', gen_random_uuid(), 'host-9', 999, "
                         "'1.0', 1, null, 50)"));
    for (int n = 1;; n++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "insert into queues.queue (queue, kind, payload) select 'queue-' || lpad("
                 "floor(random() * %d)::text, 4, '0'), 'kind-1', '{}' from generate_series(1, %d)",
                 queues, BATCH);
        PGresult *r = PQexec(conn, sql);
        bool good = PQresultStatus(r) == PGRES_COMMAND_OK;
        PQclear(r);
        if (!good || claim_and(conn, "writer", BATCH, n % 100 ? completes : fails) < 0)
            _exit(1);
        poll(NULL, 0, 1000 / 20);
    }
}

/* --- the consoles ----------------------------------------------------------------------------- */

/* The processor time of the sessions of a login, in nanoseconds. */
static int64_t
spent_ns(PGconn *conn, const char *name)
{
    PGresult *r =
        pg_query(conn, "select pid from pg_stat_activity where usename = 'watch_%s'", name);
    int64_t ns = 0;

    for (int i = 0; i < PQntuples(r); i++) {
        char path[64], line[64];
        snprintf(path, sizeof path, "/proc/%s/schedstat", PQgetvalue(r, i, 0));
        FILE *f = fopen(path, "re");
        assert_non_null(f);
        assert_non_null(fgets(line, sizeof line, f));
        fclose(f);
        ns += strtoll(line, NULL, 10);
    }
    PQclear(r);
    return ns;
}

static void
start_console(struct watch *w, const struct screen *s, const char *database)
{
    const char *most = getenv("BUDGET") ? getenv("BUDGET") : "2";
    char dsn[500], budget[40];

    snprintf(budget, sizeof budget, "QUEUETOP_BUDGET=%s", most);
    snprintf(dsn, sizeof dsn, "%s user=watch_%s", pg_dsn(database), s->name);
    const char *argv[] = {getenv("QUEUETOP"), dsn, NULL};
    w->opened_ms = clock_ms();
    vt_spawn(&w->vt, 45, 140, argv, (const char *const[]){budget, NULL});
    if (!s->key)
        return;
    vt_want(&w->vt, "queue-0");
    if (s->way) {
        vt_keys(&w->vt, s->way);
        vt_settle(&w->vt, 500);
    }
}

/* Reads the output of the consoles, for at most ms milliseconds. */
static void
read_all(struct watch *w, int ms)
{
    int64_t until = clock_ms() + ms;

    for (int64_t now = clock_ms(); now < until; now = clock_ms()) {
        struct pollfd p[SCREENS];
        for (int i = 0; i < SCREENS; i++)
            p[i] = (struct pollfd){w[i].vt.fd, POLLIN, 0};
        poll(p, SCREENS, (int)(until - now));
        for (int i = 0; i < SCREENS; i++)
            if (p[i].revents)
                vt_pump(&w[i].vt);
    }
}

/* Opens the screens at different times: each screen asks once a second, and ten at the same moment
 * would wait for each other. */
static void
open_all(PGconn *conn, struct watch *w)
{
    for (int i = 0; i < SCREENS; i++) {
        const struct screen *s = &screens[i];
        if (!s->key) /* it has been open since its console began */
            continue;
        read_all(w, APART_MS);
        pg_run(conn, "select pg_stat_statements_reset('watch_%s'::regrole)", s->name);
        w[i].opened_ns = spent_ns(conn, s->name);
        w[i].opened_ms = clock_ms();
        vt_keys(&w[i].vt, s->key);
    }
}

/* Reads what all consoles write, and notes what each has cost when 10 s and when all time is over.
 */
static void
watch_all(PGconn *conn, struct watch *w, int all_ms)
{
    for (int left = SCREENS; left > 0;) {
        left = 0;
        read_all(w, 50);
        for (int i = 0; i < SCREENS; i++) {
            int64_t now = clock_ms();
            if (!w[i].first_ms && now >= w[i].opened_ms + FIRST_MS) {
                w[i].first_ns = spent_ns(conn, screens[i].name);
                w[i].first_ms = now;
            }
            if (!w[i].last_ms && now >= w[i].opened_ms + all_ms) {
                w[i].last_ns = spent_ns(conn, screens[i].name);
                w[i].last_ms = now;
            }
            left += !w[i].last_ms;
        }
    }
}

/* --- the table -------------------------------------------------------------------------------- */

static size_t
common(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* The section whose text begins most like that; the rest of the text has no constants any more. */
static const char *
section_of(const struct adapter *a, const char *query)
{
    const char *name = "spent";
    size_t most = common(console_sql("spent"), query);

    for (int i = 0; i < SEC_COUNT; i++) {
        size_t n = common(adapter_sql(a, (enum section_id)i), query);
        if (n > most) {
            most = n;
            name = section_kinds[i].name;
        }
    }
    return name;
}

static void
print_worst(PGconn *conn, const struct adapter *a, const char *name)
{
    PGresult *r = pg_query(
        conn,
        "select query, calls, round(total_exec_time::numeric, 0), round((total_exec_time /"
        " calls)::numeric, 1), round((shared_blks_hit + shared_blks_read)::numeric / calls),"
        " rows / calls from pg_stat_statements where userid = 'watch_%s'::regrole and query !~"
        " '^(begin|commit|set)' order by total_exec_time desc limit 3",
        name);

    for (int i = 0; i < PQntuples(r); i++)
        printf("             %-14s asked %4s times, %6s ms in all, %6s ms, %6s pages and %6s rows"
               " each\n",
               section_of(a, PQgetvalue(r, i, 0)), PQgetvalue(r, i, 1), PQgetvalue(r, i, 2),
               PQgetvalue(r, i, 3), PQgetvalue(r, i, 4), PQgetvalue(r, i, 5));
    PQclear(r);
}

/* Returns how often the screen's own statement was executed. */
static int64_t
asked(PGconn *conn, const struct adapter *a, const struct screen *s)
{
    PGresult *r = pg_query(conn,
                           "select query, calls from pg_stat_statements where userid ="
                           " 'watch_%s'::regrole",
                           s->name);
    int64_t n = 0;

    for (int i = 0; i < PQntuples(r); i++)
        if (!strcmp(section_of(a, PQgetvalue(r, i, 0)), s->own))
            n += strtoll(PQgetvalue(r, i, 1), NULL, 10);
    PQclear(r);
    return n;
}

static int
print_screen(PGconn *conn, const struct adapter *a, const struct watch *w, const struct screen *s)
{
    double first =
        (double)(w->first_ns - w->opened_ns) / 1e4 / (double)(w->first_ms - w->opened_ms);
    double rest = (double)(w->last_ns - w->first_ns) / 1e4 / (double)(w->last_ms - w->first_ms);
    int64_t n = asked(conn, a, s);
    bool over = first > BAR || rest > BAR;

    printf("%-12s %8.2f %% %8.2f %% %8.1f s %s\n", s->name, first, rest,
           n > 0 ? (double)(w->last_ms - w->opened_ms) / 1e3 / (double)n : 0.0,
           over ? " over" : "");
    if (over || getenv("V"))
        print_worst(conn, a, s->name);
    return over;
}

static int
measure(const struct scene *s, const char *database)
{
    struct watch *w = calloc(SCREENS, sizeof *w);
    struct adapter *a = adapter_load("native", &(struct err){0});
    struct proc scheduler = {0};
    int over = 0;

    assert_true(a && adapter_use(a, "queues", &(struct err){0}));
    pg_newdb(database);
    proc_check(0, NULL, NULL, "install -d \"%s\"", pg_dsn(database));
    PGconn *conn = pg_connect(pg_dsn(database));
    lay_ready(conn, s);
    proc_queuetop(&scheduler, NULL, "schedule -d \"%s\"", pg_dsn(database));
    pid_t writer = start_writer(pg_dsn(database), s->queues);
    for (int i = 0; i < SCREENS; i++)
        start_console(&w[i], &screens[i], database);
    open_all(conn, w);
    watch_all(conn, w, watch_ms());
    assert_int_equal(waitpid(writer, NULL, WNOHANG), 0);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    printf("\n%s; %% of one core\n%-12s %10s %10s %10s\n", s->title, "screen", "first 10 s", "then",
           "every");
    for (int i = 0; i < SCREENS; i++) {
        vt_want(&w[i].vt, screens[i].shows);
        over += print_screen(conn, a, &w[i], &screens[i]);
        vt_done(&w[i].vt);
    }
    proc_ends(&scheduler);
    PQfinish(conn);
    adapter_free(a);
    free(w);
    return over;
}

static void
screens_cost(void **state)
{
    const char *only = getenv("QUEUES");
    int over = 0;

    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        char database[16];
        snprintf(database, sizeof database, "bench%zu", i);
        if (!only || strtol(only, NULL, 10) == scenes[i].queues)
            over += measure(&scenes[i], database);
    }
    printf("\n%d over %.0f %%\n", over, BAR);
    assert_int_equal(over, 0);
}

static int
start(void **state)
{
    struct pg_opts opts = {.conf = "shared_buffers = 512MB\nmax_wal_size = 4GB\n"
                                   "shared_preload_libraries = 'pg_stat_statements'\n"};

    (void)state;
    pg_start(&opts);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(screens_cost)};

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests_name("screens", tests, start, pg_group_stop);
}
