/*
 * Workers that sleep (--sleep): while nothing is due they send the server nothing at all. Whatever
 * could give them work wakes them: a push, a delayed job whose time comes, a schedule, an act, a
 * connection that breaks. Who sleeps holds no leases, and nobody sleeps while somebody does.
 */
#include "tests/harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "model/worker/queuetop.h"
#include "tests/fault/queue_fixture.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 60000 };

static char dsn[400];
static PGconn *conn;

static void
enter(const char *name)
{
    conn = queue_in_newdb(dsn, name);
    pg_run(conn, "set search_path = queues");
}

static void
leave(void)
{
    PQfinish(conn);
}

static void
work(struct proc *p, const char *node, const char *command)
{
    proc_queuetop(p, NULL, "-d \"%s\" work --sleep 1h --timeout 3s --node %s -- %s", dsn, node,
                  command);
    proc_want(p, "is up");
}

/* All n nodes sleep, for longer than the next second. */
static void
wait_asleep(int n)
{
    char sql[200];

    snprintf(sql, sizeof sql,
             "select count(*) = %d and min(heartbeat) > now() + interval '1 s' from queues.node",
             n);
    pg_wait(conn, sql, "t", WAIT_MS);
}

static void
wait_done(int n)
{
    char sql[100];

    snprintf(sql, sizeof sql, "select count(*) >= %d from queues.history where state = 'completed'",
             n);
    pg_wait(conn, sql, "t", WAIT_MS);
}

/* --- nothing is sent --- */

enum { PERIOD_S = 6 }; /* six looks of a worker, and one beat at least */

/* The last statement of each session of this database; asked from another one. */
static const char statements[] =
    "select string_agg(pid || ' ' || query_start, ',' order by pid) from pg_stat_activity where "
    "datname = '%s' and backend_type = 'client backend' and pid <> %d";

/* For a whole period no session of the database sends a statement. There are at least `sessions`
 * sessions. One that asked for a sleep and was refused sends some more: then the next period
 * counts. */
static void
nothing_is_sent(const char *database, int sessions)
{
    PGconn *admin = pg_connect(pg_dsn("postgres"));
    char before[900], after[900] = "", sql[300];
    int own = PQbackendPID(conn); /* its session may outlive the call that ends it */

    PQfinish(conn);
    snprintf(sql, sizeof sql,
             "select count(*) >= %d from pg_stat_activity where datname = '%s' and backend_type = "
             "'client backend' and pid <> %d",
             sessions, database, own);
    pg_wait(admin, sql, "t", WAIT_MS);
    pg_run(admin, "create temp table since (at timestamptz)");
    snprintf(sql, sizeof sql, "select clock_timestamp() > max(at) + interval '%d s' from since",
             PERIOD_S);
    snprintf(before, sizeof before, "%s", pg_value(admin, statements, database, own));
    for (int left = 3; left > 0 && strcmp(before, after) != 0; left--) {
        if (*after)
            memcpy(before, after, sizeof before);
        pg_run(admin, "insert into since values (clock_timestamp())");
        pg_wait(admin, sql, "t", WAIT_MS);
        snprintf(after, sizeof after, "%s", pg_value(admin, statements, database, own));
    }
    assert_string_equal(after, before);
    PQfinish(admin);
    conn = pg_connect(dsn);
    pg_run(conn, "set search_path = queues");
}

static void
who_sleeps_sends_nothing(void **state)
{
    struct proc a, b;

    (void)state;
    enter("sleeps");
    work(&a, "a", "true");
    work(&b, "b", "true");
    wait_asleep(2);
    nothing_is_sent("sleeps", 2);
    proc_check(0, "asleep", NULL, "-d \"%s\" nodes", dsn);
    wait_asleep(2); /* a worker that only looks wakes no other */
    pg_run(conn, "insert into queue (queue) values ('q')");
    wait_done(1);
    wait_asleep(2);
    proc_ends(&a);
    proc_ends(&b);
    assert_int_equal(pg_int(conn, "select count(*) from node"), 0);
    leave();
}

/* Waits until there are n sleepers: each holds a lock. */
static void
wait_sleepers(const char *n)
{
    pg_wait(conn,
            "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and "
            "classid = 1364481128 and database = (select oid from pg_database where datname = "
            "current_database())",
            n, WAIT_MS);
}

static enum queuetop_outcome
do_nothing(void *ctx, const struct queuetop_task *task)
{
    (void)ctx, (void)task;
    return QUEUETOP_DONE;
}

static void *
run_library(void *w)
{
    struct queuetop_error e;

    return queuetop_worker_run(w, &e) ? w : NULL;
}

/* A worker of the C library does as queuetop work --sleep does. */
static void
the_library_sleeps(void **state)
{
    struct queuetop_options o = {
        .fn = do_nothing, .node = "lib", .sleep_ms = 3600000, .drain = true};
    struct queuetop_error e;
    pthread_t thread;
    void *ended;

    (void)state;
    enter("library");
    o.conninfo = dsn;
    assert_null(queuetop_worker_new(&o, &e));
    assert_non_null(strstr(e.text, "without drain and poll"));
    o.drain = false;
    o.sleep_ms = 999;
    assert_null(queuetop_worker_new(&o, &e));
    assert_non_null(strstr(e.text, "1 s to 1 day"));
    o.sleep_ms = 3600000;
    struct queuetop_worker *w = queuetop_worker_new(&o, &e);
    assert_non_null(w);
    assert_int_equal(pthread_create(&thread, NULL, run_library, w), 0);
    wait_asleep(1);
    pg_run(conn, "select push('q')");
    wait_done(1);
    wait_asleep(1);
    queuetop_worker_stop(w);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_non_null(ended);
    assert_int_equal(queuetop_worker_counts(w).done, 1);
    queuetop_worker_free(w);
    leave();
}

static void
schedulers_sleep_too(void **state)
{
    struct proc a, s[2];

    (void)state;
    enter("schedulers");
    for (int i = 0; i < 2; i++) {
        proc_queuetop(&s[i], NULL, "-d \"%s\" schedule --sleep 1h --name s%d", dsn, i);
        proc_want(&s[i], "is active"); /* or: "stands by: another is active" */
    }
    work(&a, "a", "true");
    pg_run(conn, "select push('q')");
    wait_done(1);
    wait_sleepers("3");
    nothing_is_sent("schedulers", 4); /* who was active has a second connection for the books */
    proc_check(0, NULL, NULL, "-d \"%s\" check -c scheduler=0", dsn);
    pg_run(conn, "select push('q')");
    wait_done(2);
    wait_sleepers("3");
    pg_run(conn, "select schedule_set(gen_random_uuid(), 's', "
                 "'{\"cron\": \"@every 25s\", \"queue\": \"q\"}')");
    wait_sleepers("0"); /* the sleepers were woken */
    wait_sleepers("3"); /* all sleep until the schedule is due */
    wait_done(3);
    wait_sleepers("3");
    kill(s[0].pid, SIGKILL);
    proc_wait(&s[0]);
    kill(a.pid, SIGKILL); /* whoever waited first in line */
    proc_wait(&a);
    wait_done(3);
    work(&a, "b", "true");
    wait_done(4); /* by the time alone */
    proc_done(&a);
    for (int i = 0; i < 2; i++)
        proc_done(&s[i]);
    leave();
}

/* --- what wakes --- */

static void
a_push_and_its_time_wake(void **state)
{
    struct proc a, b;

    (void)state;
    enter("due");
    work(&a, "a", "true");
    work(&b, "b", "true");
    wait_asleep(2);
    pg_run(conn, "select push('q', run_after => now() + interval '30 min')");
    pg_wait(conn, "select max(heartbeat) <= min(run_after) from queue, node", "t", WAIT_MS);
    wait_asleep(2);
    pg_run(conn, "select push('q')"); /* one that is due before */
    wait_done(1);
    wait_asleep(2);
    pg_run(conn, "select push('q', run_after => now() + interval '7 s')");
    pg_wait(conn,
            "select min(n.heartbeat) > now() + interval '1 s' and max(n.heartbeat) <= "
            "min(q.run_after) from queue q, node n",
            "t", WAIT_MS); /* they sleep until then */
    wait_done(2);
    assert_int_equal(pg_int(conn, "select count(*) from history where started < run_after"), 0);
    proc_done(&a);
    proc_done(&b);
    leave();
}

static void
a_retry_wakes(void **state)
{
    struct proc a;

    (void)state;
    enter("again");
    pg_run(conn, "select set_queue(gen_random_uuid(), 'q', '{\"backoff_base\": \"8s\"}')");
    work(&a, "a", "sh -c 'test $QUEUETOP_TRY -gt 1'");
    wait_asleep(1);
    pg_run(conn, "select push('q')");
    pg_wait(conn, "select count(*) from queue where state = 'retry'", "1", WAIT_MS);
    wait_asleep(1);
    wait_done(1);
    proc_done(&a);
    leave();
}

static void
acts_wake(void **state)
{
    struct proc a, b;

    (void)state;
    enter("acts");
    work(&a, "a", "true");
    work(&b, "b", "true");
    pg_run(conn, "select push('q')");
    wait_done(1);
    pg_run(conn, "select pause(gen_random_uuid(), 'q')");
    pg_run(conn, "select push('q')");
    wait_asleep(2); /* a job that waits for an operator */
    pg_run(conn, "select resume(gen_random_uuid(), 'q')");
    wait_done(2);
    pg_run(conn, "select push('q', run_after => now() + interval '1 h')");
    wait_asleep(2);
    pg_run(conn, "select set_time(gen_random_uuid(), 1, array(select id from queue))");
    wait_done(3);
    wait_asleep(2);
    pg_run(conn, "select schedule_set(gen_random_uuid(), 's', "
                 "'{\"cron\": \"@every 5s\", \"queue\": \"q\"}')");
    wait_done(5);
    pg_run(conn, "select drain_node(gen_random_uuid(), 'a')");
    pg_wait(conn, "select state || (heartbeat <= now()) from node where lock_key = 'a'",
            "drainingtrue", WAIT_MS);
    proc_done(&a);
    proc_done(&b);
    leave();
}

/* --- harm --- */

static void
a_broken_connection_wakes(void **state)
{
    struct proc a;

    (void)state;
    enter("cut");
    work(&a, "a", "true");
    for (int i = 1; i <= 2; i++) {
        wait_asleep(1);
        pg_run(conn, "begin");
        pg_run(conn, "select pg_terminate_backend(backend_pid) from node");
        pg_run(conn, "select push('q'); commit");
        wait_done(i);
    }
    PQfinish(conn);
    pg_restart("immediate");
    conn = pg_connect(dsn);
    pg_run(conn, "set search_path = queues; select push('q')");
    wait_done(3);
    proc_done(&a);
    leave();
}

/* A push wakes the first waiter. If this waiter is stopped, as one whose host has crashed, all
 * sleepers are woken. */
static void
a_waiter_that_stands_still_keeps_nobody_asleep(void **state)
{
    struct proc a, b;

    (void)state;
    enter("stands");
    work(&a, "a", "true");
    wait_asleep(1);
    work(&b, "b", "true");
    wait_asleep(2);
    kill(a.pid, SIGSTOP);
    pg_run(conn, "select push('q')");
    wait_done(1);
    assert_string_equal(pg_value(conn, "select node from history"), "b");
    kill(a.pid, SIGCONT);
    proc_done(&a);
    proc_done(&b);
    leave();
}

static void
a_lease_keeps_awake(void **state)
{
    struct proc a, b;

    (void)state;
    enter("lease");
    work(&a, "a", "sh -c 'test $QUEUETOP_TRY -gt 1 || exec sleep 1000'");
    wait_asleep(1);
    work(&b, "b", "sh -c 'test $QUEUETOP_TRY -gt 1 || exec sleep 1000'");
    wait_asleep(2);
    pg_run(conn, "select push('q')");
    pg_wait(conn, "select count(*) from work_queue where lock_key is not null", "1", WAIT_MS);
    bool is_a = !strcmp(pg_value(conn, "select lock_key from work_queue"), "a");
    kill(is_a ? a.pid : b.pid, SIGKILL);
    proc_wait(is_a ? &a : &b);
    wait_done(1);
    assert_string_equal(pg_value(conn, "select node from history"), is_a ? "b" : "a");
    proc_done(&a);
    proc_done(&b);
    leave();
}

/* The name of a node that was killed in its sleep is free at once. */
static void
a_dead_sleeper_gives_its_name_away(void **state)
{
    struct proc a, b;

    (void)state;
    enter("name");
    work(&a, "a", "true");
    wait_asleep(1);
    proc_check(3, NULL, "in use by a live process", "-d \"%s\" work --node a -- true", dsn);
    kill(a.pid, SIGKILL);
    proc_wait(&a);
    pg_wait(conn, "select count(*) from pg_stat_activity a join node n on n.backend_pid = a.pid",
            "0", WAIT_MS);
    work(&b, "a", "true");
    wait_asleep(1);
    proc_done(&a);
    proc_done(&b);
    leave();
}

/* --- sessions --- */

static const char me[] = "00000000-0000-0000-0000-000000000001";

static const char *
lull(PGconn *c, bool listening)
{
    return pg_value(c,
                    "select state ~ '^[0-9]+$' and state::int > 3590000, state from "
                    "queues.node_sleep('n', '%s', '1 h', 0, %d, %s)",
                    me, PQbackendPID(c), listening ? "true" : "false");
}

static bool
is_told(PGconn *c)
{
    pg_run(c, "select 1"); /* a round trip: what was sent before has arrived */
    PGnotify *n = PQnotifies(c);

    PQfreemem(n);
    return n != NULL;
}

static void
who_changes_something_tells(void **state)
{
    (void)state;
    enter("told");
    PGconn *s = pg_connect(dsn), *other = pg_connect(dsn);

    pg_run(s, "select queues.node_start('n', '%s', 'h', 1, 'v', 1, null, 1)", me);
    pg_run(conn, "select schedule('test')");
    pg_wait(conn, "select sleep_due('1 h') is not null", "t", WAIT_MS);
    assert_string_equal(lull(s, false), "f"); /* it listens from now on */
    assert_string_equal(lull(s, true), "t");
    pg_run(conn, "select cron_times('* * * * *')");
    assert_false(is_told(s));
    pg_run(conn, "select pause(gen_random_uuid(), 'q')");
    assert_true(is_told(s));
    /* a step, and a claim that makes one, while who sleeps is not the one that pushes tell */
    pg_run(conn, "set queuetop.quiet = on; select push('r')");
    assert_false(is_told(s));
    pg_run(conn, "select schedule('test')");
    assert_true(is_told(s));
    pg_run(s, "select pg_advisory_unlock_all()");
    assert_string_equal(lull(s, true), "f"); /* there is a lease */
    pg_run(conn, "delete from queue; delete from work_queue; select recount()");
    pg_wait(conn, "select (schedule('test')).wait_ms > 40", "t", WAIT_MS);
    pg_run(other, "begin; select queues.pause(gen_random_uuid(), 'z')");
    assert_string_equal(lull(s, true), "f"); /* an act is under way */
    pg_run(other, "commit");
    assert_string_equal(lull(s, true), "t");
    pg_run(other, "select pg_advisory_lock_shared(1364481128, 'queues.queue'::regclass::oid::int)");
    pg_run(s, "select pg_advisory_unlock_all()");
    pg_run(conn, "select resume(gen_random_uuid(), 'z')");
    assert_true(is_told(s)); /* as long as anybody sleeps */
    assert_string_equal(pg_try(s, "select queues.node_sleep('n', '%s', '2 days', 0, 1, true)", me),
                        "QT007");
    PQfinish(other);
    PQfinish(s);
    leave();
}

static void
what_does_not_go_together(void **state)
{
    (void)state;
    enter("usage");
    proc_check(2, NULL, "not with --poll or --drain", "-d \"%s\" work --sleep 1h --poll -- true",
               dsn);
    proc_check(2, NULL, NULL, "-d \"%s\" work --sleep 2d -- true", dsn);
    leave();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_sleeps_sends_nothing),
        cmocka_unit_test(the_library_sleeps),
        cmocka_unit_test(schedulers_sleep_too),
        cmocka_unit_test(a_push_and_its_time_wake),
        cmocka_unit_test(a_retry_wakes),
        cmocka_unit_test(acts_wake),
        cmocka_unit_test(a_broken_connection_wakes),
        cmocka_unit_test(a_waiter_that_stands_still_keeps_nobody_asleep),
        cmocka_unit_test(a_lease_keeps_awake),
        cmocka_unit_test(a_dead_sleeper_gives_its_name_away),
        cmocka_unit_test(who_changes_something_tells),
        cmocka_unit_test(what_does_not_go_together),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
