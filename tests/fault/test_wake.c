/*
 * Waking: a push wakes the worker that waits, a cut wakes as many as it has work for, nothing is
 * lost between looking and waiting, and nobody depends for long on a waker that stands still, dies
 * or loses its server. First with sessions that say what workers say, then with the programs.
 */
#include "tests/harness.h"

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 20000, BOUNCER_PORT = 16432 };

static const char waiting[] = "select count(*) from pg_locks where locktype = 'advisory' and mode "
                              "= 'ExclusiveLock' and database = (select oid from pg_database where "
                              "datname = current_database())";

static char dsn[400];
static PGconn *conn;

static void
enter(const char *name)
{
    snprintf(dsn, sizeof dsn, "%s", pg_newdb(name));
    conn = pg_connect(dsn);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
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
    int slot;
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
    if (!is_job)
        s->slot = (int)strtol(PQgetvalue(r, 0, 1), NULL, 10);
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
    pg_run(conn, "select queues.complete(n, lease, version, seq) from (select 'n' as n, * from "
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

/* Whoever looks while a push is under way must not wait: nobody would wake it. */
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

/* Who takes no more jobs hands its place on. */
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
        pg_run(conn, "%s", pushes[i]);
        assert_true(is_woken(&a, WAIT_MS));
        while (ask(&a))
            pg_run(a.conn, "select queues.complete('a', lease, version, seqs[1]) from "
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

/* Milliseconds from when jobs could start to when they did, all together. Looking each second alone
 * would make half a second each. */
static int64_t
late_ms(void)
{
    return pg_int(conn, "select coalesce(sum(1000 * extract(epoch from started - created - "
                        "coalesce((payload->>'delay')::interval, interval '0'))), 0)::bigint from "
                        "queues.history");
}

enum { PUSHES = 6, LATE_MS = 1500 };

static void
push_and_look(const char *sql)
{
    char n[16];

    for (int i = 1; i <= PUSHES; i++) {
        pg_wait(conn, waiting, "1", WAIT_MS);
        pg_run(conn, "%s", sql);
        snprintf(n, sizeof n, "%d", i);
        wait_done(n);
    }
    if (late_ms() > LATE_MS)
        fail_msg("%d jobs started %d ms late in all", PUSHES, (int)late_ms());
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

/* The waker keeps its lock, and does nothing: the other looks by itself. */
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

static pid_t
start_bouncer(void)
{
    char file[300];
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;

    snprintf(file, sizeof file, "%s/bouncer.ini", getenv("TMPDIR"));
    FILE *out = fopen(file, "we");
    assert_non_null(out);
    fprintf(out,
            "[databases]\n* = host=%s user=%s\n[pgbouncer]\nunix_socket_dir = %s\n"
            "listen_port = %d\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n",
            pg_host(), PQuser(conn), pg_host(), BOUNCER_PORT);
    fclose(out);
    chmod(file, 0644);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    if (user && (setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid)))
        _exit(126);
    execlp("pgbouncer", "pgbouncer", "-q", file, (char *)NULL);
    execl("/usr/sbin/pgbouncer", "pgbouncer", "-q", file, (char *)NULL);
    _exit(127);
}

/* Through a pooler it asks now and then, and leaves no lock behind. */
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
    for (int i = 1; i <= PUSHES; i++) {
        char n[16];
        pg_run(conn, "insert into queues.queue (queue) values ('q')");
        snprintf(n, sizeof n, "%d", i);
        wait_done(n);
    }
    if (late_ms() > LATE_MS)
        fail_msg("%d jobs started %d ms late in all", PUSHES, (int)late_ms());
    assert_string_equal(pg_value(conn, "%s", waiting), "0");
    proc_done(&worker);
    proc_done(&scheduler);
    kill(bouncer, SIGINT);
    waitpid(bouncer, NULL, 0);
    char file[300];
    snprintf(file, sizeof file, "%s/bouncer.ini", getenv("TMPDIR"));
    unlink(file);
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
        cmocka_unit_test(a_pooled_session_takes_no_lock),
        cmocka_unit_test(a_worker_starts_at_once),
        cmocka_unit_test(without_a_scheduler_too),
        cmocka_unit_test(a_delayed_job_starts_on_time),
        cmocka_unit_test(a_waker_that_stands_still),
        cmocka_unit_test(a_drained_node_leaves_its_place),
        cmocka_unit_test(after_a_restart_it_waits_again),
        cmocka_unit_test(through_a_pooler_it_polls),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
