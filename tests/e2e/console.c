/*
 * The console's e2e tests: database, jobs, terminal.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/clock.h"

static struct {
    PGconn *conn;
    const char *model; /* database that the others are copies of */
    char dsn[400];
    int n;
} con;

static void
run_queuetop(const char *const *argv)
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout))
            _exit(126);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

const char *
con_dsn(void)
{
    return con.dsn;
}

PGconn *
con_db(void)
{
    return con.conn;
}

int
con_setup(void **state)
{
    (void)state;
    pg_start(NULL);
    con.model = pg_newdb("model");
    run_queuetop((const char *const[]){getenv("QUEUETOP"), "install", con.model, NULL});
    return 0;
}

int
con_teardown(void **state)
{
    (void)state;
    PQfinish(con.conn);
    pg_stop();
    return 0;
}

void
con_reconnect(void)
{
    PQfinish(con.conn);
    con.conn = pg_connect(con.dsn);
    pg_run(con.conn, "set search_path to queues, public");
    pg_run(con.conn, "set client_min_messages to error");
}

/* Makes a copy of the installed database, so that no test sees the rows of another test. */
int
con_empty(void **state)
{
    char name[32];

    (void)state;
    PQfinish(con.conn);
    snprintf(name, sizeof name, "app%d", ++con.n);
    snprintf(con.dsn, sizeof con.dsn, "%s", pg_copydb(name, "model"));
    con.conn = NULL;
    con_reconnect();
    return 0;
}

void
con_ready(const char *queue, int n)
{
    pg_run(con.conn,
           "select push('%s', json_build_object('n', i, 'note', 'job ' || i)) "
           "from generate_series(1, %d) i",
           queue, n);
}

/* Claims at most n jobs a call, until the node has n jobs: if many queues have jobs, a step may cut
 * only some jobs of this queue, and the next ones 50 ms later. */
static void
claim(const char *queue, int n, const char *node)
{
    pg_run(con.conn, "create temp table if not exists held (node text, lease bigint, version int, "
                     "seq bigint)");
    pg_run(con.conn, "truncate held");
    for (int64_t until = clock_ms() + 60000; clock_ms() < until;) {
        int64_t have = pg_int(con.conn, "select count(*) from held");
        if (have >= n)
            return;
        pg_run(con.conn,
               "insert into held select '%s', lease, version, seq "
               "from claim('%s', %d, '60 s', array['%s'])",
               node, node, n - (int)have, queue);
    }
    fail_msg("could not claim %d jobs of %s", n, queue);
}

void
con_running(const char *queue, int n, const char *node)
{
    con_ready(queue, n);
    claim(queue, n, node);
}

void
con_failed(const char *queue, int n, const char *error)
{
    con_ready(queue, n);
    claim(queue, n, "tester");
    PGresult *r = pg_query(
        con.conn,
        "select f.* from (select array_agg(lease) l, array_agg(version) v, array_agg(seq) s, "
        "array_agg('%s'::text) e, array_agg(true) t from held) h, "
        "fail('tester', h.l, h.v, h.s, h.e, final => h.t) f",
        error);
    assert_int_equal(PQntuples(r), n);
    PQclear(r);
}

void
con_node(const char *node, bool alive)
{
    pg_run(con.conn,
           "select node_start('%s', gen_random_uuid(), 'host1', 4711, '1.0', 1, null, 16)", node);
    if (alive) { /* it stays alive, however long the test takes */
        pg_run(con.conn, "update setting set value = '30 min' where name in ('node_late', "
                         "'node_dead')");
        return;
    }
    pg_run(con.conn,
           "update node set heartbeat = now() - interval '1 hour', backend_pid = null "
           "where lock_key = '%s'",
           node);
    pg_run(con.conn,
           "update work_queue set started = now() - interval '2 hours', "
           "lock_timeout = now() - interval '1 hour' where lock_key = '%s'",
           node);
}

void
con_spawn(struct vt *vt, int rows, int cols, const char *const *options, const char *const *env)
{
    const char *argv[16] = {getenv("QUEUETOP")};
    int n = 1;

    while (options && *options && n < 14)
        argv[n++] = *options++;
    argv[n++] = con.dsn;
    argv[n] = NULL;
    vt_spawn(vt, rows, cols, argv, env);
}

void
con_start(struct vt *vt, int rows, int cols, const char *option)
{
    con_spawn(vt, rows, cols, (const char *const[]){option, NULL}, NULL);
    vt_want(vt, "ready");
    vt_want(vt, "live");
}

/* True while the box of an action stands there: it takes each key for itself. */
static bool
has_box_of_action(const struct vt *vt)
{
    return vt_find(vt, "Esc hide (goes on", NULL, NULL) || vt_find(vt, "Esc close", NULL, NULL);
}

void
con_done(struct vt *vt, const char *marked)
{
    int64_t deadline = clock_ms() + VT_WAIT_MS;

    do
        vt_settle(vt, 20);
    while ((has_box_of_action(vt) || vt_find(vt, marked, NULL, NULL)) && clock_ms() < deadline);
    vt_gone(vt, "Esc hide (goes on");
    vt_gone(vt, marked);
}

/* An action whose effect the test has seen may still have its last answer before it: then a box
 * takes the key, or a question comes. */
void
con_quit(struct vt *vt)
{
    int64_t deadline = clock_ms() + VT_WAIT_MS;

    while (!vt->has_ended && clock_ms() < deadline) {
        while (has_box_of_action(vt) && clock_ms() < deadline) {
            vt_keys(vt, "esc");
            vt_settle(vt, 20);
        }
        vt_keys(vt, "q");
        if (vt_came(vt, "an action is running", 2000)) {
            vt_keys(vt, "esc");
            vt_gone(vt, "an action is running");
        }
    }
    vt_ended_well(vt, 0);
    vt_done(vt);
}

/* Not by the view pg_stat_activity: a test may have locked what it reads. */
void
con_asks_on(int ms)
{
    char sql[300];

    snprintf(sql, sizeof sql,
             "select count(*) > 0 from pg_stat_get_activity(null) where application_name like "
             "'queuetop%%' and pid <> pg_backend_pid() and query_start > timestamptz '%s' + "
             "interval '%d ms'",
             pg_value(con.conn, "select clock_timestamp()"), ms);
    pg_wait(con.conn, sql, "t", ms);
}

PGconn *
con_hold_queue(const char *queue)
{
    PGconn *conn = pg_connect(con_dsn());

    pg_run(conn, "begin; insert into queues.queue_config (queue) values ('%s')", queue);
    return conn;
}

void
con_pause_marked(struct vt *vt, int n)
{
    char ask[60], title[60], sum[60];

    snprintf(ask, sizeof ask, "Pause queue: %d queues", n);
    snprintf(title, sizeof title, "Pause %d queues", n);
    snprintf(sum, sizeof sum, "%d queues in all", n);
    vt_keys(vt, "p");
    vt_want(vt, ask);
    vt_keys(vt, "text:close enter");
    vt_want(vt, title);
    vt_want(vt, sum);
}

int64_t
con_count(const char *where)
{
    return pg_int(con.conn, "select count(*) from queue where %s", where);
}
