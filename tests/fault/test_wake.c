/*
 * Waking: a push wakes the worker that waits, a cut wakes as many as it has work for, nothing is
 * lost between looking and waiting, and nobody depends for long on a waker that stands still, dies
 * or loses its server. First with sessions that say what workers say, then with the programs.
 */
#include "tests/harness.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bouncer.h"
#include "tests/fault/queue_fixture.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 60000, BOUNCER_PORT = 16432 };

/* Of the wait slots only: a step with news holds the lock of the sleepers for a moment. */
static const char waiting[] =
    "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and "
    "classid::bigint between 1364481111 and 1364481127 and database = (select oid from "
    "pg_database where datname = current_database())";

static char dsn[400];
static PGconn *conn;

static void
enter(const char *name)
{
    conn = queue_in_newdb(dsn, name);
}

static void
leave(void)
{
    PQfinish(conn);
}

/* --- sessions --- */

struct session {
    PGconn *conn;
    char name[20];
    int slot, wait_ms; /* of the last answer without a job */
};

static struct session
session_new(const char *name)
{
    struct session s = {.conn = pg_connect(dsn), .slot = -1};

    snprintf(s.name, sizeof s.name, "%s", name);
    return s;
}

/* One call; how many jobs came. */
static int
ask(struct session *s)
{
    PGresult *r = pg_query(s->conn,
                           "select lease, slot, wait_ms from queues.claim_or_wait('%s', 1, null, "
                           "null, true, %d, %d)",
                           s->name, PQbackendPID(s->conn), s->slot);
    bool is_job = PQntuples(r) > 0 && !PQgetisnull(r, 0, 0);

    assert_int_equal(PQntuples(r), 1);
    if (!is_job) {
        s->slot = (int)strtol(PQgetvalue(r, 0, 1), NULL, 10);
        s->wait_ms = (int)strtol(PQgetvalue(r, 0, 2), NULL, 10);
    }
    PQclear(r);
    return is_job;
}

/* Until it waits: the first answer of a slot says that it listens only now. */
static void
wait_in(struct session *s, int slot)
{
    assert_int_equal(ask(s), 0);
    assert_int_equal(ask(s), 0);
    assert_int_equal(s->slot, slot);
}

static bool
is_woken(struct session *s, int wait_ms)
{
    struct pollfd fd = {.fd = PQsocket(s->conn), .events = POLLIN};
    PGnotify *n;

    poll(&fd, 1, wait_ms);
    PQconsumeInput(s->conn);
    n = PQnotifies(s->conn);
    PQfreemem(n);
    return n != NULL;
}

/* A round trip: what was sent to the session before has arrived. */
static bool
is_left_alone(struct session *s)
{
    pg_run(s->conn, "select 1");
    return !is_woken(s, 0);
}

/* A queue and its cursor are known from here on. */
static void
make_known(const char *queue)
{
    pg_run(conn, "insert into queues.queue (queue) values ('%s')", queue);
    pg_run(conn, "select * from queues.schedule('test')");
    pg_run(conn, "select queues.complete_job(n, lease, version, seq) from (select 'n' as n, * from "
                 "queues.claim('n', 10)) c");
    pg_run(conn, "select * from queues.schedule('test')");
}

static void
a_push_wakes_who_waits(void **state)
{
    struct session a;

    (void)state;
    enter("push");
    make_known("q");
    a = session_new("a");
    wait_in(&a, 0);
    assert_true(is_left_alone(&a));
    pg_run(conn, "begin; insert into queues.queue (queue) values ('q')");
    assert_true(is_left_alone(&a));
    pg_run(conn, "commit");
    assert_true(is_woken(&a, WAIT_MS));
    assert_int_equal(ask(&a), 1); /* it makes the step itself, though a scheduler lives */
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    assert_true(is_left_alone(&a)); /* it does not wait now */
    assert_int_equal(ask(&a), 1);
    PQfinish(a.conn);
    leave();
}

/* A worker must not wait beside an open push: this push would not wake the worker. */
static void
nobody_waits_beside_an_open_push(void **state)
{
    struct session a;

    (void)state;
    enter("open");
    make_known("q");
    a = session_new("a");
    pg_run(conn, "begin; insert into queues.queue (queue) values ('q')");
    assert_int_equal(ask(&a), 0);
    assert_int_equal(a.slot, -1);
    pg_run(conn, "commit");
    assert_int_equal(ask(&a), 1);
    PQfinish(a.conn);
    leave();
}

static void
a_cut_wakes_as_many_as_it_has_work_for(void **state)
{
    struct session s[3];
    static const char *const names[] = {"a", "b", "c"};

    (void)state;
    enter("cut");
    make_known("q");
    for (int i = 0; i < 3; i++) {
        s[i] = session_new(names[i]);
        wait_in(&s[i], i);
    }
    /* two leases, by a way that no trigger sees */
    pg_run(conn, "alter table queues.queue disable trigger all");
    pg_run(conn, "insert into queues.queue (queue) select 'q' from generate_series(1, 2)");
    pg_run(conn, "update queues.queue_config set chunk = 1 where queue = 'q'");
    pg_run(conn, "insert into queues.delta (queue, priority, ready, pushed, min_seq, max_seq) "
                 "select 'q', 5, 2, 2, min(seq), max(seq) from queues.queue");
    assert_true(is_left_alone(&s[0]));
    pg_run(conn, "select * from queues.schedule('test')");
    assert_true(is_woken(&s[0], WAIT_MS));
    assert_true(is_woken(&s[1], WAIT_MS));
    assert_true(is_left_alone(&s[2]));
    assert_int_equal(ask(&s[0]) + ask(&s[1]), 2);
    for (int i = 0; i < 3; i++)
        PQfinish(s[i].conn);
    leave();
}

/* A worker that takes no more jobs passes its place on. */
static void
a_place_that_is_left_is_offered(void **state)
{
    struct session a, b;

    (void)state;
    enter("place");
    a = session_new("a");
    b = session_new("b");
    wait_in(&a, 0);
    wait_in(&b, 1);
    pg_run(a.conn, "select * from queues.claim_or_wait('a', 0, null, null, true, %d, 0)",
           PQbackendPID(a.conn));
    assert_true(is_woken(&b, WAIT_MS));
    wait_in(&b, 0);
    PQfinish(a.conn);
    PQfinish(b.conn);
    leave();
}

/* Jobs that the short way must leave to the whole step are found all the same. */
static void
what_is_not_simple_gets_the_whole_step(void **state)
{
    static const char *const pushes[] = {
        "insert into queues.queue (queue) values ('new')",
        "insert into queues.queue (queue, priority) values ('q', 1)",
        "insert into queues.queue (queue) select 'q' from generate_series(1, 5)",
        "insert into queues.queue (queue, concurrency_key) values ('q', 'k')",
        "insert into queues.queue (queue) values ('one')",
    };
    struct session a;

    (void)state;
    enter("step");
    make_known("q");
    make_known("one");
    pg_run(conn, "update queues.queue_config set max_running = 1 where queue = 'one'");
    a = session_new("a");
    for (size_t i = 0; i < sizeof pushes / sizeof *pushes; i++) {
        wait_in(&a, 0);
        pg_run(conn, "update queues.lane set due = '-infinity'"); /* as if looking took no time */
        pg_run(conn, "%s", pushes[i]);
        assert_true(is_woken(&a, WAIT_MS));
        while (ask(&a))
            pg_run(a.conn, "select queues.complete_job('a', lease, version, seqs[1]) from "
                           "queues.work_queue where lock_key = 'a'");
        if (pg_int(conn, "select count(*) from queues.queue") != 0)
            fail_msg("left: %s", pushes[i]);
    }
    pg_run(conn, "select queues.pause(gen_random_uuid(), 'q')");
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    assert_int_equal(ask(&a), 0);
    PQfinish(a.conn);
    leave();
}

/* On a busy machine blocked jobs are searched for only now and then. A worker woken for one comes
 * back when the next search is due, not a second later. */
static void
a_blocked_job_is_looked_for_when_due(void **state)
{
    struct session a;
    bool has_come;

    (void)state;
    enter("lane");
    make_known("q");
    a = session_new("a");
    wait_in(&a, 0);
    pg_run(conn, "select * from queues.schedule('test')"); /* its term may be over */
    pg_run(conn, "update queues.lane set laps = 2, due = clock_timestamp() + interval '100 ms'");
    pg_run(conn, "insert into queues.queue (queue, concurrency_key) values ('q', 'k')");
    assert_true(is_woken(&a, WAIT_MS));
    has_come = ask(&a);
    if (!has_come) {
        assert_in_range(a.wait_ms, 1, 101);
        assert_false(is_woken(&a, a.wait_ms));
        has_come = ask(&a);
    }
    assert_true(has_come);
    PQfinish(a.conn);
    leave();
}

static void
a_pooled_session_takes_no_lock(void **state)
{
    (void)state;
    enter("pooled");
    assert_string_equal(pg_value(conn, "select slot from queues.claim_or_wait('n', 1, null, null, "
                                       "true, pg_backend_pid() + 1)"),
                        "-2");
    assert_string_equal(pg_value(conn, "select slot from queues.claim_or_wait('n', 1)"), "-2");
    assert_string_equal(pg_value(conn, "%s", waiting), "0");
    leave();
}

/* --- the scheduler waits, too --- */

/* One step of a process of its own in which nothing was new for a second; does it wait now? */
static bool
step_or_wait(struct session *s, const char *holder)
{
    PGresult *r = pg_query(s->conn,
                           "select active, waits, wait_ms from queues.schedule_or_wait('%s', '1 s',"
                           " %d, %s)",
                           holder, PQbackendPID(s->conn), s->slot == 0 ? "true" : "false");
    bool waits = *PQgetvalue(r, 0, 1) == 't';

    if (waits && s->slot != 0)
        assert_string_equal(PQgetvalue(r, 0, 2), "0"); /* it listens only now */
    s->slot = waits ? 0 : -1;
    PQclear(r);
    return waits;
}

/* A scheduler with nothing to do, until it waits in its place. */
static struct session
waiting_scheduler(void)
{
    pg_run(conn, "select queues.scheduler_stop('test')");
    struct session s = session_new("s");

    pg_wait(conn, "select (queues.schedule('s')).wait_ms > 40", "t", WAIT_MS);
    assert_true(step_or_wait(&s, "s"));
    assert_true(step_or_wait(&s, "s"));
    return s;
}

static void
a_push_wakes_the_scheduler_where_no_worker_waits(void **state)
{
    struct session s, other;

    (void)state;
    enter("sleeper");
    make_known("q");
    s = waiting_scheduler();
    other = session_new("other");
    assert_false(step_or_wait(&other, "other")); /* this one is on standby, and has no place */
    assert_true(is_left_alone(&s));
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    assert_true(is_woken(&s, WAIT_MS));
    assert_true(step_or_wait(&s, "s")); /* this step has cut jobs */
    assert_int_equal(ask(&other), 1);
    PQfinish(s.conn);
    PQfinish(other.conn);
    leave();
}

/* The scheduler leaves its place to a worker: a woken worker makes the step itself, one hop
 * less. */
static void
the_scheduler_leaves_its_place_to_a_worker(void **state)
{
    struct session s, a;

    (void)state;
    enter("yields");
    make_known("q");
    s = waiting_scheduler();
    a = session_new("a");
    wait_in(&a, 1);
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    assert_true(is_woken(&s, WAIT_MS));
    assert_true(is_left_alone(&a));
    assert_false(step_or_wait(&s, "s")); /* what it cuts wakes the worker, as does the place */
    assert_true(is_woken(&a, WAIT_MS));
    assert_int_equal(ask(&a), 1);
    wait_in(&a, 0);
    assert_false(step_or_wait(&s, "s"));
    /* the same where the step of the scheduler finds nothing: it passes on what woke it */
    pg_run(a.conn,
           "select queues.complete_job(n, lease, version, seq) from (select 'a' as n, lease, "
           "version, unnest(seqs) as seq from queues.work_queue) c");
    pg_run(a.conn, "select queues.claim_or_wait('a', 0, null, null, true, %d, 0)",
           PQbackendPID(a.conn));
    pg_wait(conn, "select (queues.schedule('s')).wait_ms > 40", "t", WAIT_MS);
    a.slot = -1;
    assert_true(step_or_wait(&s, "s"));
    assert_true(step_or_wait(&s, "s"));
    wait_in(&a, 1);
    assert_false(step_or_wait(&s, "s"));
    assert_true(is_woken(&a, WAIT_MS));
    PQfinish(s.conn);
    PQfinish(a.conn);
    leave();
}

/* Tests the query that a scheduler runs between its steps, and that a polling worker runs. */
static void
a_look_sees_what_a_step_would(void **state)
{
    (void)state;
    enter("looks");
    make_known("q");
    pg_run(conn, "set search_path = queues");
    assert_string_equal(pg_value(conn, "select is_new()"), "f");
    assert_string_equal(pg_value(conn, "select nothing from glance(null)"), "t");
    pg_run(conn, "insert into queue (queue) select 'q' from generate_series(1, 200)");
    assert_string_equal(pg_value(conn, "select is_new()"), "t");
    assert_string_equal(pg_value(conn, "select nothing from glance(null)"), "f");
    pg_run(conn, "select schedule('test')");
    assert_string_equal(pg_value(conn, "select is_new()"), "f");
    assert_string_equal(pg_value(conn, "select nothing from glance(null)"), "f");
    pg_run(conn, "select count(*) from claim('n', 1)");
    assert_string_equal(pg_value(conn, "select is_new()"), "t"); /* more should be cut */
    pg_run(conn, "delete from queue; delete from work_queue");
    pg_run(conn, "select recount()");
    pg_wait(conn, "select (schedule('test')).wait_ms > 40", "t", WAIT_MS);
    assert_string_equal(pg_value(conn, "select nothing from glance(null)"), "t");
    pg_run(conn, "insert into delta (queue, priority, error_key, failed) values ('q', 0, 'e', 1)");
    assert_string_equal(pg_value(conn, "select is_new()"), "f"); /* a step does not look at it */
    pg_run(conn, "insert into queue (queue, run_after) values ('q', now() + interval '1 h')");
    pg_run(conn, "select schedule('test')");
    assert_string_equal(pg_value(conn, "select nothing and due is null from glance(null)"), "t");
    pg_run(conn, "update queue set run_after = now()");
    assert_string_equal(pg_value(conn, "select nothing from glance(null)"), "f");
    leave();
}

/* --- programs --- */

static void
wait_done(const char *n)
{
    pg_wait(conn, "select count(*) from queues.history", n, WAIT_MS);
}

static void
work(struct proc *p)
{
    proc_queuetop(p, NULL, "-d \"%s\" work -- true", dsn);
    proc_want(p, "is up");
}

enum { PUSHES = 6, LATE_MS = 3000, LOOKS_LATE_MS = 150, ROUNDS = 10 };

/* Returns the sum of the newest jobs' delays in ms. A worker that only polls is late by most of a
 * second in every round; a busy machine only in some. So one good round of ROUNDS is enough. */
static int64_t
late_ms(void)
{
    return pg_int(conn,
                  "select coalesce(sum(1000 * extract(epoch from started - created - "
                  "coalesce((payload->>'delay')::interval, interval '0'))), 0)::bigint from "
                  "(select * from queues.history order by created desc limit %d) h",
                  PUSHES);
}

/* Pushes one after the other, each when so many wait (NULL = at once), until a round was in time.
 */
static void
push_in_time(const char *sql, const char *waits)
{
    int64_t late = 0, done = pg_int(conn, "select count(*) from queues.history");
    char n[16];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PUSHES; i++) {
            if (waits)
                pg_wait(conn, waiting, waits, WAIT_MS);
            pg_run(conn, "%s", sql);
            snprintf(n, sizeof n, "%d", (int)++done);
            wait_done(n);
        }
        late = late_ms();
        if (late <= LATE_MS)
            return;
    }
    fail_msg("%d jobs started %d ms late in all", PUSHES, (int)late);
}

static void
push_and_look(const char *sql)
{
    push_in_time(sql, "1");
}

static void
a_worker_starts_at_once(void **state)
{
    struct proc scheduler, worker;

    (void)state;
    enter("at_once");
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", dsn);
    proc_want(&scheduler, "is active");
    work(&worker);
    push_and_look("insert into queues.queue (queue) values ('q')");
    proc_done(&worker);
    proc_done(&scheduler);
    leave();
}

static void
without_a_scheduler_too(void **state)
{
    struct proc worker;

    (void)state;
    enter("alone");
    work(&worker);
    push_and_look("insert into queues.queue (queue) values ('q')");
    proc_done(&worker);
    leave();
}

static void
a_delayed_job_starts_on_time(void **state)
{
    struct proc scheduler, worker;

    (void)state;
    enter("delayed");
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", dsn);
    proc_want(&scheduler, "is active");
    work(&worker);
    push_and_look("insert into queues.queue (queue, payload, run_after) values "
                  "('q', '{\"delay\": \"120 ms\"}', clock_timestamp() + interval '120 ms')");
    proc_done(&worker);
    proc_done(&scheduler);
    leave();
}

/* The waker keeps its lock and does nothing: the other worker polls. */
static void
a_waker_that_stands_still(void **state)
{
    struct proc a, b;

    (void)state;
    enter("still");
    work(&a);
    pg_wait(conn, waiting, "1", WAIT_MS);
    work(&b);
    pg_wait(conn, waiting, "2", WAIT_MS);
    kill(a.pid, SIGSTOP);
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    wait_done("1");
    kill(a.pid, SIGKILL); /* and one that dies gives its place away; not let go first: it might
                             still claim */
    proc_wait(&a);
    pg_wait(conn, waiting, "1", WAIT_MS);
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    wait_done("2");
    proc_done(&a);
    proc_done(&b);
    leave();
}

static void
a_drained_node_leaves_its_place(void **state)
{
    struct proc a, b;

    (void)state;
    enter("drained");
    work(&a);
    pg_wait(conn, waiting, "1", WAIT_MS);
    pg_run(conn, "select queues.drain_node(gen_random_uuid(), lock_key) from queues.node");
    pg_wait(conn, waiting, "0", WAIT_MS);
    work(&b);
    pg_wait(conn, waiting, "1", WAIT_MS);
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    wait_done("1");
    proc_done(&a);
    proc_done(&b);
    leave();
}

static void
after_a_restart_it_waits_again(void **state)
{
    struct proc worker;

    (void)state;
    enter("restart");
    work(&worker);
    pg_wait(conn, waiting, "1", WAIT_MS);
    PQfinish(conn);
    pg_restart("immediate");
    conn = pg_connect(dsn);
    push_and_look("insert into queues.queue (queue) values ('q')");
    proc_done(&worker);
    leave();
}

/* Who waits in slot 0. */
static const char waiter[] =
    "select coalesce(min(case when pid in (select backend_pid from queues.node) then 'worker' else "
    "'scheduler' end), '') from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' "
    "and classid = 1364481111 and database = (select oid from pg_database where datname = "
    "current_database())";

static int64_t
calls_of(const char *function)
{
    return pg_int(conn,
                  "select coalesce(sum(calls), 0) from pg_stat_user_functions where schemaname = "
                  "'queues' and funcname = '%s'",
                  function);
}

/* Waits until the scheduler has renewed its term n times: once a second by its own clock. */
static void
wait_terms(int n)
{
    char sql[100];

    snprintf(sql, sizeof sql, "select max(term) >= %" PRId64 " from queues.scheduler",
             pg_int(conn, "select max(term) from queues.scheduler") + n);
    pg_wait(conn, sql, "t", WAIT_MS);
}

enum { STEPS_MAX = 40, IDLE_STEPS_MAX = 15, LOOKS_MAX = 400, TERMS = 5 };

/* Nothing is pushed and nobody works: a step a second, not twenty; a term is a second, too. */
static void
an_idle_scheduler_rests(void **state)
{
    struct proc scheduler;

    (void)state;
    enter("rests");
    pg_run(conn, "alter database rests set track_functions = 'all'");
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", dsn);
    proc_want(&scheduler, "is active");
    pg_wait(conn, waiting, "1", WAIT_MS);
    wait_terms(3);
    int64_t steps = calls_of("schedule"), looks = calls_of("is_new");
    wait_terms(TERMS);
    steps = calls_of("schedule") - steps;
    looks = calls_of("is_new") - looks;
    if (steps > IDLE_STEPS_MAX || looks > 0)
        fail_msg("%d steps and %d looks in %d s", (int)steps, (int)looks, TERMS);
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    pg_wait(conn, "select count(*) from queues.work_queue", "1", WAIT_MS);
    proc_done(&scheduler);
    leave();
}

/* A backlog that nobody works is no reason to look two hundred times a second. */
static void
a_backlog_without_workers_costs_little(void **state)
{
    struct proc scheduler;

    (void)state;
    enter("backlog");
    pg_run(conn, "alter database backlog set track_functions = 'all'");
    pg_run(conn, "insert into queues.queue (queue) select 'q' from generate_series(1, 1000)");
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", dsn);
    proc_want(&scheduler, "is active");
    wait_terms(2);
    int64_t steps = calls_of("schedule"), looks = calls_of("is_new");
    wait_terms(TERMS);
    steps = calls_of("schedule") - steps;
    looks = calls_of("is_new") - looks;
    if (steps > STEPS_MAX || looks > LOOKS_MAX)
        fail_msg("%d steps and %d looks in %d s", (int)steps, (int)looks, TERMS);
    proc_done(&scheduler);
    leave();
}

static void
a_worker_takes_over_the_scheduler_s_place(void **state)
{
    struct proc scheduler, worker;

    (void)state;
    enter("place_of");
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", dsn);
    proc_want(&scheduler, "is active");
    pg_wait(conn, waiter, "scheduler", WAIT_MS);
    work(&worker);
    pg_wait(conn, waiter, "worker", WAIT_MS);
    push_and_look("insert into queues.queue (queue) values ('q')");
    proc_ends(&worker);
    pg_wait(conn, waiter, "scheduler", WAIT_MS);
    proc_done(&scheduler);
    leave();
}

enum { MANY = 30, FOUND = 9, FOUND_LATE_MS = 400 };

static void
push_each(int from, int to, const char *then)
{
    char n[16];

    for (int i = from; i <= to; i++) {
        pg_wait(conn, waiting, "2", WAIT_MS);
        pg_run(conn, "insert into queues.queue (queue) values ('q'); %s", then);
        snprintf(n, sizeof n, "%d", i);
        wait_done(n);
    }
}

/* Anybody may take the lock of slot 0. The scheduler believes that a worker waits there, until it
 * finds itself, twice, what was pushed a while ago; from then on it looks, and no job waits for the
 * worker's own look, a second later. */
static void
a_stranger_in_the_place_costs_little(void **state)
{
    struct proc scheduler, worker;
    PGconn *stranger;
    int n = 0;

    (void)state;
    enter("stranger");
    stranger = pg_connect(dsn);
    pg_run(stranger, "select pg_advisory_lock(1364481111, 'queues.queue'::regclass::oid::int)");
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", dsn);
    proc_want(&scheduler, "is active");
    work(&worker);
    for (bool said = false; !said && n < MANY; n++) {
        push_each(n + 1, n + 1,
                  "update queues.delta set at = at - interval '1 s' where at >= now()");
        char *err = proc_errors(&scheduler);
        said = strstr(err, "does not work it") != NULL;
        free(err);
    }
    proc_want(&scheduler, "does not work it");
    int64_t late = 0;
    for (int round = 0; round < ROUNDS; round++, n += FOUND) {
        push_each(n + 1, n + FOUND, "");
        late = pg_int(conn,
                      "select percentile_disc(0.5) within group (order by 1000 * extract(epoch "
                      "from started - created))::int from (select * from queues.history order "
                      "by created desc limit %d) h",
                      FOUND);
        if (late <= FOUND_LATE_MS)
            break;
    }
    if (late > FOUND_LATE_MS)
        fail_msg("half of %d jobs started %d ms late or more", FOUND, (int)late);
    proc_done(&worker);
    proc_done(&scheduler);
    PQfinish(stranger);
    leave();
}

static pid_t
start_bouncer(void)
{
    char databases[300];

    snprintf(databases, sizeof databases, "* = host=%s user=%s", pg_host(), PQuser(conn));
    return bouncer_start(BOUNCER_PORT, databases, 2);
}

/* For clients that claim by SQL alone: a push after an idle time is cut long before the next
 * regular step, one second after the last. */
static void
cut_soon(void)
{
    int64_t late = 0;

    for (int round = 0; round < ROUNDS; round++) {
        late = 0;
        for (int i = 0; i < PUSHES; i++) {
            wait_terms(2);
            pg_run(conn, "insert into queues.queue (queue) values ('soon')");
            pg_wait(conn, "select count(*) > 0 from queues.claim('me', 1)", "t", WAIT_MS);
            late += pg_int(conn, "select (1000 * extract(epoch from (select max(cut_at) from "
                                 "queues.tick) - max(created)))::int from queues.queue");
        }
        if (late <= PUSHES * LOOKS_LATE_MS)
            return;
    }
    fail_msg("%d jobs were cut %d ms late in all", PUSHES, (int)late);
}

/* Through a pooler the worker polls, and leaves no lock behind. */
static void
through_a_pooler_it_polls(void **state)
{
    struct proc scheduler, worker;

    (void)state;
    enter("bouncer");
    pid_t bouncer = start_bouncer();
    snprintf(dsn, sizeof dsn, "host=%s port=%d user=%s dbname=bouncer", pg_host(), BOUNCER_PORT,
             PQuser(conn));
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", dsn);
    proc_want(&scheduler, "is active");
    work(&worker);
    push_in_time("insert into queues.queue (queue) values ('q')", NULL);
    assert_string_equal(pg_value(conn, "%s", waiting), "0");
    bouncer_stop(bouncer); /* all clients lose their connection; then it comes back */
    char n[16];
    snprintf(n, sizeof n, "%d", 1 + (int)pg_int(conn, "select count(*) from queues.history"));
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    bouncer = start_bouncer();
    wait_done(n);
    proc_done(&worker);
    cut_soon();
    proc_done(&scheduler);
    bouncer_stop(bouncer);
    leave();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_wakes_who_waits),
        cmocka_unit_test(nobody_waits_beside_an_open_push),
        cmocka_unit_test(a_cut_wakes_as_many_as_it_has_work_for),
        cmocka_unit_test(a_place_that_is_left_is_offered),
        cmocka_unit_test(what_is_not_simple_gets_the_whole_step),
        cmocka_unit_test(a_blocked_job_is_looked_for_when_due),
        cmocka_unit_test(a_pooled_session_takes_no_lock),
        cmocka_unit_test(a_push_wakes_the_scheduler_where_no_worker_waits),
        cmocka_unit_test(the_scheduler_leaves_its_place_to_a_worker),
        cmocka_unit_test(a_look_sees_what_a_step_would),
        cmocka_unit_test(a_worker_starts_at_once),
        cmocka_unit_test(without_a_scheduler_too),
        cmocka_unit_test(a_delayed_job_starts_on_time),
        cmocka_unit_test(a_waker_that_stands_still),
        cmocka_unit_test(a_drained_node_leaves_its_place),
        cmocka_unit_test(after_a_restart_it_waits_again),
        cmocka_unit_test(an_idle_scheduler_rests),
        cmocka_unit_test(a_backlog_without_workers_costs_little),
        cmocka_unit_test(a_worker_takes_over_the_scheduler_s_place),
        cmocka_unit_test(a_stranger_in_the_place_costs_little),
        cmocka_unit_test(through_a_pooler_it_polls),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
