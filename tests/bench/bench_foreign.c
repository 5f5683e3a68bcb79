/*
 * Is the console polite to a table that another system fills? River's, Oban's, GoodJob's, Minion's
 * and pg-boss' with ROWS (environment, 1,000,000) finished jobs and 5,000 live ones, on a throwaway
 * server: what the statements cost and by which plan, how soon the real console shows its first
 * data, and which part of a core its session keeps busy on the overview and on the list of jobs.
 * Budgets: 2 s, 2 %, and no plan that reads the whole table but that of the finished jobs' counts.
 * pg-boss' own library makes its schema. ENGINES_ONLY="river oban" picks. `make bench T=foreign`.
 */
#include "tests/harness.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/e2e/engine.h"
#include "tests/server.h"
#include "tests/sql/other.h"
#include "tests/term.h"

enum { WATCH_MS = 30000, CHUNK = 1000000, FIRST_DATA_MS = 2000 };
static int missed;

static double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
judge(bool ok, const char *what)
{
    if (ok)
        return;
    missed++;
    printf("  MISSED: %s\n", what);
}

static double
number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtod(at + strlen(key), NULL) : 0;
}

/* Returns true if the plan reads the whole table. A branch that was not executed reads nothing. */
static bool
reads_all(const char *plan, const char *table)
{
    const char *dot = strchr(table, '.');
    char *scan = xasprintf("Seq Scan on %s ", dot ? dot + 1 : table);
    bool found = false;

    for (const char *at = plan; !found && (at = strstr(at, scan)); at++) {
        const char *never = strstr(at, "(never executed)");
        found = !never || never > at + strcspn(at, "\n");
    }
    free(scan);
    return found;
}

/* The time and buffers of one statement. may_scan: its plan may read the whole table. */
static void
cost(const char *name, const char *plan, const char *table, bool may_scan)
{
    bool all = reads_all(plan, table);
    const char *first = strstr(plan, "Buffers: shared");
    char line[160];

    snprintf(line, sizeof line, "%.*s", first ? (int)strcspn(first, "\n") : 0, first ? first : "");
    double buffers = number_after(line, "hit=") + number_after(line, "read=");
    printf("  %-34s %9.1f ms %9.0f buffers%s\n", name, number_after(plan, "Execution Time: "),
           buffers, all ? ", reads the whole table" : "");
    judge(may_scan || !all, "the plan reads the whole table");
}

static void
statements(struct other *f, const char *table)
{
    cost("counts", other_plan(f, SEC_COUNTS, NULL), table, false);
    cost("queues", other_plan(f, SEC_QUEUES, NULL), table, false);
    cost("jobs, the first page", other_plan(f, SEC_JOBS, "limit=200", NULL), table, false);
    cost("jobs, failed", other_plan(f, SEC_JOBS, "limit=200", "states={failed}", NULL), table,
         false);
    cost("jobs, completed", other_plan(f, SEC_JOBS, "limit=200", "states={completed}", NULL), table,
         false);
    cost("jobs, completed, of a queue",
         other_plan(f, SEC_JOBS, "limit=200", "states={completed}", "queue=q3", NULL), table,
         false);
    cost("jobs, by a word (10,000 looked at)",
         other_plan(f, SEC_JOBS, "limit=200", "words={no}", "n=10000", NULL), table, false);
    if (adapter_has(f->a, SEC_NODES))
        cost("nodes", other_plan(f, SEC_NODES, NULL), table, false);
    cost("groups of errors", other_plan(f, SEC_GROUPS, NULL), table, false);
    cost("counts of finished jobs (rarely)", other_plan(f, SEC_COUNTS_FINAL, NULL), table, true);
}

/* CPU time of the console's sessions, in milliseconds. */
static double
sessions_cpu_ms(PGconn *conn)
{
    PGresult *r =
        pg_query(conn, "select pid from pg_stat_activity where application_name like 'queuetop%%'");
    double sum = 0;

    assert_true(PQntuples(r) > 0);
    for (int i = 0; i < PQntuples(r); i++) {
        char path[64], line[64] = "";
        snprintf(path, sizeof path, "/proc/%s/schedstat", PQgetvalue(r, i, 0));
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        fclose(file);
        sum += strtod(line, NULL) / 1e6;
    }
    PQclear(r);
    return sum;
}

static void
listen_for(struct vt *vt, double ms)
{
    double end = now_ms() + ms;

    for (double left = ms; left > 0; left = end - now_ms()) {
        struct pollfd p = {vt->fd, POLLIN, 0};

        if (poll(&p, 1, (int)left + 1) > 0)
            vt_pump(vt);
    }
}

static void
watch(struct vt *vt, PGconn *conn, const char *screen)
{
    double start = sessions_cpu_ms(conn), began = now_ms();

    listen_for(vt, WATCH_MS);
    double load = (sessions_cpu_ms(conn) - start) * 100 / (now_ms() - began);
    printf("  %-34s %9.2f %% of a core for %d s\n", screen, load, WATCH_MS / 1000);
    judge(load <= 2, "more than 2 % of a core");
}

static void
console(struct other *f, const char *database)
{
    const char *argv[] = {getenv("QUEUETOP"), pg_dsn(database), NULL};
    struct vt vt;
    double start = now_ms();

    /* the terminal of the tests allows more than a console may cost */
    vt_spawn(&vt, 45, 140, argv, (const char *const[]){"QUEUETOP_BUDGET=2", NULL});
    while (!vt_find(&vt, "q0 ", NULL, NULL) && now_ms() - start < 60000)
        listen_for(&vt, 5);
    double took = now_ms() - start;
    printf("  %-34s %9.0f ms\n", "the console's first data", took);
    judge(took <= FIRST_DATA_MS, "later than 2 s");
    watch(&vt, f->conn, "its session, Queues");
    start = now_ms();
    vt_keys(&vt, "2");
    while (!vt_find(&vt, "1 of 2", NULL, NULL) && now_ms() - start < 60000)
        listen_for(&vt, 5);
    printf("  %-34s %9.0f ms\n", "the first jobs", now_ms() - start);
    judge(now_ms() - start <= FIRST_DATA_MS, "later than 2 s");
    watch(&vt, f->conn, "its session, Jobs");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

/* Replaces the schema of our fixture by the library's own schema, with all indexes. */
static void
by_its_library(struct other *f, const char *database)
{
    const char *argv[] = {
        "node", engine_script("engine.mjs"), "pgboss", NULL, pg_host(), database, "setup", NULL};

    argv[3] = engine_dir("npm-new", "pgboss-new");
    pg_run(f->conn, "drop schema pgboss cascade");
    engine_run(argv);
}

static void
measure(const struct other_load *l, int rows)
{
    struct other f;
    double start = now_ms();

    other_open(&f, l->name, l->name);
    if (!strcmp(l->name, "pgboss"))
        by_its_library(&f, l->name);
    for (int have = 0; have < rows; have += CHUNK)
        other_fill(&f, l, have, have + CHUNK < rows ? have + CHUNK : rows);
    pg_run(f.conn, "checkpoint");
    printf("%s: %d finished jobs, 5000 others, %s, filled in %.0f s\n", adapter_title(f.a), rows,
           pg_value(f.conn, "select pg_size_pretty(pg_total_relation_size('%s'))", l->table),
           (now_ms() - start) / 1e3);
    statements(&f, l->table);
    console(&f, l->name);
    PQfinish(f.watcher);
    f.watcher = pg_connect(pg_dsn("postgres"));
    PQfinish(f.conn);
    f.conn = NULL;
    pg_run(f.watcher, "drop database %s with (force)", l->name);
    other_close(&f);
}

static void
politeness(void **state)
{
    const char *only = getenv("ENGINES_ONLY");
    int rows = getenv("ROWS") ? (int)strtol(getenv("ROWS"), NULL, 10) : CHUNK;

    (void)state;
    if (!only)
        only = "river oban good_job minion pgboss";
    for (int i = 0; i < other_loads_n; i++)
        if (strstr(only, other_loads[i].name))
            measure(&other_loads[i], rows);
    printf("%d missed\n", missed);
    assert_int_equal(missed, 0);
}

static int
start(void **state)
{
    struct pg_opts opts = {.conf = "shared_buffers = 2GB\nmax_wal_size = 16GB\njit = off\n"};

    (void)state;
    pg_start(&opts);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(politeness)};

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests_name("foreign", tests, start, pg_group_stop);
}
