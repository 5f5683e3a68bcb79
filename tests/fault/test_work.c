/*
 * The worker and scheduler processes through everything that goes wrong around them: commands that
 * fail, hang or are cancelled, leases that are lost, signals, a server that restarts or stays away.
 * The database is checked after each. A command that has to wait reads from a pipe file, `gate`.
 */
#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "tests/fault/queue_fixture.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 60000, LOOKS = 600, LOOK_MS = 50 };

struct place { /* a database of its own for each test */
    char dsn[400];
    PGconn *conn;
};

static void
enter(struct place *p, const char *name)
{
    p->conn = queue_in_newdb(p->dsn, name);
    unlink("gate");
    unlink("once"); /* left by a test that failed */
    unlink("started");
    assert_int_equal(mkfifo("gate", 0600), 0);
}

static void
leave(struct place *p)
{
    PQfinish(p->conn);
    unlink("gate");
}

static void
reconnect(struct place *p)
{
    PQfinish(p->conn);
    p->conn = pg_connect(p->dsn);
}

static void
push(const struct place *p, const char *words)
{
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" push %s", p->dsn, words), 0);
}

/* Waits for what the worker must do. Fails at once if the worker has ended, else after 30 s: later
 * on a slow machine, where each look takes longer. */
static void
wait_worked(const struct place *p, struct proc *w, const char *sql, const char *expected)
{
    char value[200];
    bool lives = true;

    for (int left = LOOKS; lives && left > 0; left--) {
        lives = proc_lives(w->pid); /* asked first: what it did at its end counts */
        PGresult *r = PQexec(p->conn, sql);
        snprintf(value, sizeof value, "%s",
                 PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : PQresultErrorMessage(r));
        PQclear(r);
        if (!strcmp(value, expected))
            return;
        poll(NULL, 0, LOOK_MS);
    }
    char *said = proc_errors(w);
    proc_done(w);
    fail_msg("the worker %s, and '%s' is not '%s' in: %s\nit wrote: %s",
             lives ? "still runs" : "has ended", value, expected, sql, said);
}

/* Lets one command that waits at the gate go on; those that come later find none. */
static void
open_gate(void)
{
    int fd, left_ms = WAIT_MS;

    while ((fd = open("gate", O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && left_ms > 0) {
        assert_int_equal(errno, ENXIO); /* no command waits yet */
        poll(NULL, 0, 10);
        left_ms -= 10;
    }
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "go\n", 3), 3);
    unlink("gate");
    close(fd);
}

/* Waits until n commands have written a line each to the file `started`. */
static void
wait_started(off_t n)
{
    struct stat is = {0};
    int left_ms = WAIT_MS;

    while ((stat("started", &is) != 0 || is.st_size < n) && left_ms > 0) {
        poll(NULL, 0, 10);
        left_ms -= 10;
    }
    assert_int_equal(is.st_size, n);
}

static void
wait_running(const struct place *p, const char *n)
{
    pg_wait(p->conn,
            "select coalesce(sum(cardinality(seqs)), 0) from queues.work_queue "
            "where lock_key is not null",
            n, WAIT_MS);
}

static void
check(const struct place *p, const char *sql, const char *expected)
{
    assert_string_equal(pg_value(p->conn, "%s", sql), expected);
}

/* --- commands --- */

static void
what_a_command_does_is_in_the_books(void **state)
{
    struct place p;
    char *err;

    (void)state;
    enter(&p, "books");
    pg_run(p.conn, "select queues.set_queue(gen_random_uuid(), 'q', '{\"backoff_base\": \"1h\"}')");
    push(&p, "q --kind good --payload '{\"re\": \"\\\\d+\"}'");
    push(&p, "q --kind bad --max-tries 2");
    push(&p, "q --kind segv --max-tries 1");
    push(&p, "q --kind slow --max-tries 1 --run-timeout 200ms");
    push(&p, "q --kind env --type text/x-y --payload abc");
    push(&p, "q --kind big");
    assert_int_equal(
        proc_run(NULL, NULL, &err,
                 "-d \"%s\" work --node n1 --drain --jobs 3 --result-limit 1000 -- sh -c 'case "
                 "$QUEUETOP_KIND in good) cat ;; bad) echo no row 17 >&2; echo at f >&2; exit 3 ;; "
                 "segv) kill -SEGV $$ ;; slow) exec tail -f /dev/null ;; big) seq 1 9999 ;; env) "
                 "echo $QUEUETOP_QUEUE $QUEUETOP_TRY $QUEUETOP_MAX_TRIES $QUEUETOP_NODE "
                 "$QUEUETOP_TYPE; cat ;; esac'",
                 p.dsn),
        0);
    free(err);
    check(&p, "select convert_from(result, 'UTF8') from queues.history where kind = 'good'",
          "{\"re\": \"\\\\d+\"}\n");
    check(&p, "select convert_from(result, 'UTF8') from queues.history where kind = 'env'",
          "q 1 5 n1 text/x-y\nabc");
    check(&p,
          "select right(convert_from(result, 'UTF8'), 43) from queues.history where kind = 'big'",
          "\n[queuetop: cut, 1000 of 48888 bytes kept]\n");
    check(&p,
          "select state::text || tries || error || (run_after > now()) from queues.queue "
          "where kind = 'bad'",
          "retry1no row 17 (exit status 3)true");
    check(&p, "select trace from queues.attempt where error like 'no row 17%'", "at f\n");
    check(&p, "select state || error from queues.queue where kind = 'segv'",
          "failedkilled by signal 11 (Segmentation fault)");
    check(&p, "select state || error from queues.queue where kind = 'slow'",
          "failedran longer than 200 ms (killed by signal 15 (Terminated))");
    check(&p, "select string_agg(outcome, ' ' order by outcome) from queues.attempt",
          "failed failed timeout");
    check(&p, "select count(*) from queues.node", "0");
    leave(&p);
}

/* Exit 65: no more tries. Exit 75: again in the time that was printed. */
static void
a_command_says_whether_to_try_again(void **state)
{
    struct place p;
    char *err;

    (void)state;
    enter(&p, "codes");
    pg_run(p.conn, "select queues.set_queue(gen_random_uuid(), 'q', '{\"backoff_base\": \"1h\"}')");
    push(&p, "q --kind 65 --payload 1");
    push(&p, "q --kind 75 --type text/plain --payload 'busy until\n then\n 3h\n\n'");
    push(&p, "q --kind 75 --type text/plain --payload soon");
    push(&p, "q --kind 75 --type text/plain --payload 400d");
    push(&p, "q --kind 75");
    push(&p, "q --kind 75 --type text/plain --payload 2h --max-tries 1");
    push(&p, "q --kind lines --payload '[1]'");
    assert_int_equal(proc_run(NULL, NULL, &err,
                              "-d \"%s\" work --drain -- sh -c 'case $QUEUETOP_KIND in lines) "
                              "while read -r line; do echo got $line; done; exit ;; esac; cat; "
                              "exit $QUEUETOP_KIND'",
                              p.dsn),
                     0);
    assert_non_null(strstr(err, "tried again by the back-off of its queue: "));
    assert_non_null(strstr(err, "400d is more than 365 days"));
    free(err);
    check(&p,
          "select string_agg(concat_ws(' ', kind, state, tries, "
          "round(extract(epoch from run_after - changed) / 3600) || ' h'), ', ' order by seq) "
          "from queues.queue",
          "65 failed 1, 75 retry 1 3 h, 75 retry 1 1 h, 75 retry 1 1 h, 75 retry 1 1 h, "
          "75 failed 1");
    check(&p, "select convert_from(result, 'UTF8') from queues.history", "got [1]\n");
    leave(&p);
}

/* The time is the last line of all that the command has printed. If that is more than is kept, the
 * worker says so, and the queue's back-off counts. */
static void
the_last_line_of_much_says_when(void **state)
{
    struct place p;
    char *err;

    (void)state;
    enter(&p, "much");
    pg_run(p.conn, "select queues.set_queue(gen_random_uuid(), 'q', '{\"backoff_base\": \"1h\"}')");
    push(&p, "q --kind lines --max-tries 5");
    push(&p, "q --kind more --max-tries 5");
    assert_int_equal(
        proc_run(
            NULL, NULL, &err,
            "-d \"%s\" work --drain -- sh -c 'case $QUEUETOP_KIND in lines) seq 12000 ;; more) "
            "seq 200000 ;; esac; echo 3h; exit 75'",
            p.dsn),
        0);
    assert_non_null(strstr(err, "tried again by the back-off of its queue: its standard output is "
                                "longer than --result-limit"));
    free(err);
    check(&p,
          "select string_agg(concat_ws(' ', kind, state, tries, "
          "round(extract(epoch from run_after - changed) / 3600) || ' h'), ', ' order by seq) "
          "from queues.queue",
          "lines retry 1 3 h, more retry 1 1 h");
    leave(&p);
}

static void
a_command_that_is_not_there_fails_no_job(void **state)
{
    struct place p;
    char *err;

    (void)state;
    enter(&p, "nocommand");
    push(&p, "q");
    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" work -- no-such-command", p.dsn), 2);
    assert_non_null(strstr(err, "no-such-command"));
    free(err);
    /* found, and yet the system can't run it */
    FILE *f = fopen("gate.sh", "we");
    assert_non_null(f);
    fputs("#!/no/such/interpreter\n", f);
    fchmod(fileno(f), 0700);
    fclose(f);
    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" work -- ./gate.sh", p.dsn), 2);
    assert_non_null(strstr(err, "can't run ./gate.sh"));
    free(err);
    unlink("gate.sh");
    check(&p, "select state::text || tries from queues.queue", "ready0");
    check(&p, "select count(*) from queues.work_queue where lock_key is not null", "0");
    leave(&p);
}

/* Makes the command `job`, which does this. */
static void
make_job(const char *line)
{
    FILE *f = fopen("job", "we");

    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", line);
    fchmod(fileno(f), 0700);
    fclose(f);
}

/* True if this system runs no file that somebody writes: Linux 6.11 and 6.12 do. */
static bool
is_busy_file(const char *path)
{
    struct proc p;

    proc_start(&p, (const char *const[]){path, NULL}, NULL);
    bool is_busy = proc_wait(&p) == 127;
    proc_done(&p);
    return is_busy;
}

/* Somebody replaces the command: the worker gives its jobs back and waits for the new one. */
static void
a_new_command_ends_no_worker(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "deploy");
    make_job("");
    push(&p, "q");
    int fd = open("job", O_WRONLY | O_APPEND | O_CLOEXEC);
    bool is_busy = is_busy_file("./job");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- ./job", p.dsn);
    if (is_busy) { /* even if it has never run */
        proc_want(&w, "can't run ./job: Text file busy");
        wait_worked(&p, &w, "select state::text || tries from queues.queue", "ready0");
    }
    close(fd);
    wait_worked(&p, &w, "select count(*) from queues.history", "1");
    assert_int_equal(rename("job", "job.new"), 0);
    push(&p, "q");
    proc_want(&w, "can't run ./job: No such file or directory");
    wait_worked(&p, &w, "select state::text || tries from queues.queue", "ready0");
    assert_int_equal(rename("job.new", "job"), 0);
    wait_worked(&p, &w, "select count(*) from queues.history", "2");
    check(&p, "select string_agg(tries::text, ' ') from queues.history", "1 1");
    check(&p, "select count(*) from queues.attempt", "0");
    proc_ends(&w);
    unlink("job");
    leave(&p);
}

/* Waits until the worker has written the text so many times. */
static void
wait_said(struct proc *w, const char *text, int times)
{
    for (int left = LOOKS, n = 0; n < times; left--) {
        char *said = proc_errors(w);
        n = 0;
        for (const char *at = said; (at = strstr(at, text)); at++)
            n++;
        if (n < times && left == 0) {
            proc_done(w);
            fail_msg("'%s' came %d times, not %d, in: %s", text, n, times, said);
        }
        free(said);
        poll(NULL, 0, n < times ? LOOK_MS : 0);
    }
}

/* The command is away twice, and between that one was started that still runs: the second time is
 * not a part of the first. */
static void
a_command_that_runs_has_started(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "deploys");
    make_job("echo >>started; read line <gate");
    push(&p, "q");
    proc_queuetop(&w, NULL, "-d \"%s\" work --slots 3 -- ./job", p.dsn);
    for (int n = 1; n <= 2; n++) {
        wait_started(n);
        assert_int_equal(rename("job", "job.new"), 0);
        push(&p, "q");
        wait_said(&w, "giving jobs back", n);
        assert_int_equal(rename("job.new", "job"), 0);
    }
    wait_started(3);
    proc_done(&w);
    unlink("job");
    unlink("started");
    leave(&p);
}

/* Who starts the worker ignores SIGCHLD: the worker still sees the end of its commands. */
static void
the_end_of_a_command_is_always_seen(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "ignored_end");
    push(&p, "q --kind good");
    push(&p, "q --kind bad --max-tries 1");
    signal(SIGCHLD, SIG_IGN);
    proc_queuetop(&w, NULL, "-d \"%s\" work -- sh -c 'test $QUEUETOP_KIND = good'", p.dsn);
    signal(SIGCHLD, SIG_DFL);
    wait_worked(&p, &w, "select state || kind from queues.history", "completedgood");
    wait_worked(&p, &w, "select state || error from queues.queue", "failedexit status 1");
    proc_ends(&w);
    leave(&p);
}

static void
an_operator_cancels_what_runs(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "cancel");
    push(&p, "q");
    proc_queuetop(&w, NULL, "-d \"%s\" work --timeout 1s -- tail -f /dev/null", p.dsn);
    wait_running(&p, "1");
    pg_run(p.conn, "update queues.queue set cancel_asked = now()");
    pg_wait(p.conn, "select state from queues.history", "cancelled", WAIT_MS);
    check(&p, "select count(*) from queues.queue", "0");
    proc_ends(&w);
    leave(&p);
}

/* --- signals --- */

static void
the_first_signal_finishes_what_runs(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "drain");
    push(&p, "q");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- sh -c 'echo >>started; read line <gate; echo $line'",
                  p.dsn);
    wait_running(&p, "1");
    wait_started(1); /* a command that has not been started would not be finished */
    push(&p, "q");
    kill(w.pid, SIGTERM);
    proc_want(&w, "finishing 1");
    open_gate();
    assert_int_equal(proc_wait(&w), 0);
    proc_done(&w);
    check(&p, "select count(*) || max(convert_from(result, 'UTF8')) from queues.history", "1go\n");
    check(&p, "select state::text || tries from queues.queue", "ready0");
    check(&p, "select count(*) from queues.work_queue where lock_key is not null", "0");
    leave(&p);
}

/* timeout(1) signals its child and then the group that the child is in. */
static void
one_wish_may_come_as_two_signals(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "twice");
    push(&p, "q");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- sh -c 'echo >>started; read line <gate; echo $line'",
                  p.dsn);
    wait_started(1);
    kill(w.pid, SIGSTOP);
    kill(w.pid, SIGTERM);
    kill(w.pid, SIGINT);
    kill(w.pid, SIGCONT);
    proc_want(&w, "finishing 1");
    open_gate();
    assert_int_equal(proc_wait(&w), 0);
    proc_done(&w);
    check(&p, "select count(*) from queues.history", "1");
    leave(&p);
}

static void
the_second_signal_gives_back_at_once(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "giveback");
    push(&p, "q");
    push(&p, "q");
    proc_queuetop(&w, NULL,
                  "-d \"%s\" work --jobs 2 --grace 100ms -- sh -c 'trap : TERM; "
                  "echo >>started; tail -f /dev/null; tail -f /dev/null'",
                  p.dsn);
    wait_started(2); /* what is claimed and has not started would be given back at once */
    kill(w.pid, SIGINT);
    proc_want(&w, "finishing 2");
    int64_t first = clock_ms();
    while (clock_ms() - first <= 300) /* sooner it is the same wish */
        poll(NULL, 0, 10);
    kill(w.pid, SIGINT);
    assert_int_equal(proc_wait(&w), 6);
    proc_done(&w);
    check(&p, "select string_agg(state || tries::text, ' ') from queues.queue", "ready0 ready0");
    check(&p, "select count(*) from queues.work_queue where lock_key is not null", "0");
    check(&p, "select count(*) from queues.attempt", "0");
    leave(&p);
}

/* nohup ignores SIGHUP, and a script's & ignores SIGINT: the worker outlives the terminal. */
static void
ignored_signals_end_no_worker(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "nohup");
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    proc_queuetop(&w, NULL, "-d \"%s\" work --node n1 -- true", p.dsn);
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    proc_want(&w, "node n1 is up");
    kill(w.pid, SIGHUP);
    kill(w.pid, SIGINT);
    push(&p, "q");
    wait_worked(&p, &w, "select count(*) from queues.history", "1");
    proc_ends(&w);
    leave(&p);
}

/* If no scheduler is alive, a claim makes the step. If that step fails, the answers in the same
 * call are still valid: the successful job is completed, and runs once. */
static void
a_step_that_fails_fails_no_job(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "bad_step");
    push(&p, "q");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- sh -c 'echo >>started; read line <gate'", p.dsn);
    wait_started(1);
    pg_run(p.conn,
           "create or replace function queues.must_cut(t queues.tick, free int) returns boolean"
           " language plpgsql as $$ begin raise 'integer out of range' using errcode = '22003'; "
           "end $$");
    open_gate();
    pg_wait(p.conn, "select state::text || tries from queues.history", "completed1", WAIT_MS);
    proc_want(&w, "claim: integer out of range");
    check(&p, "select count(*) from queues.queue", "0");
    check(&p, "select count(*) from queues.attempt", "0");
    pg_run(p.conn,
           "create or replace function queues.must_cut(t queues.tick, free int) returns boolean"
           " language sql stable as $$ select true $$");
    push(&p, "q");
    pg_wait(p.conn, "select count(*) from queues.work_queue where lock_key is not null", "0",
            WAIT_MS);
    proc_ends(&w);
    unlink("started");
    leave(&p);
}

/* --- the log --- */

/* Makes the pipe file `full` and fills it. */
static int
fill_log(void)
{
    static const char bytes[4096];
    int fd;

    assert_int_equal(mkfifo("full", 0600), 0);
    fd = open("full", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    while (write(fd, bytes, sizeof bytes) > 0)
        continue;
    return fd;
}

static void
empty_log(int fd)
{
    char bytes[4096];

    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
}

static void
wait_logged(struct proc *w, int fd, const char *text)
{
    char got[4096] = "";
    size_t len = 0;

    for (int left = LOOKS; !strstr(got, text); left--) {
        ssize_t n = read(fd, got + len, sizeof got - 1 - len);
        if (left == 0) {
            proc_done(w);
            fail_msg("no '%s' in %s", text, got);
        }
        len += n > 0 ? (size_t)n : 0;
        poll(NULL, 0, LOOK_MS);
    }
}

static void
a_log_that_nobody_reads_stops_no_worker(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "full_log");
    int fd = fill_log();
    const char *const argv[] = {"sh",
                                "-c",
                                "exec \"$0\" -d \"$1\" work -- sh -c 'test $QUEUETOP_KIND = "
                                "good' 2>full",
                                getenv("QUEUETOP"),
                                p.dsn,
                                NULL};
    proc_start(&w, argv, NULL);
    push(&p, "q --kind good");
    wait_worked(&p, &w, "select state || kind from queues.history", "completedgood");
    empty_log(fd);
    push(&p, "q --kind bad --max-tries 1"); /* each failure is logged */
    wait_logged(&w, fd, " lost\n");
    proc_ends(&w);
    close(fd);
    unlink("full");
    leave(&p);
}

/* --- leases --- */

/* The command hangs where it runs for the first time. */
#define HANGS_ONCE                                                                         \
    "-d \"%s\" work --timeout 3s -- sh -c 'test -e once && exit 0; : >once; exec tail -f " \
    "/dev/null'"

/* Waits until the command hangs: one that has not been started can't be killed. */
static void
wait_hanging(const struct place *p)
{
    wait_running(p, "1");
    for (int left_ms = WAIT_MS; access("once", F_OK) != 0; left_ms -= 10) {
        assert_true(left_ms > 0);
        poll(NULL, 0, 10);
    }
}

static void
a_lease_lasts_as_long_as_the_command(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "extend");
    push(&p, "q");
    proc_queuetop(&w, NULL, "-d \"%s\" work --timeout 5s -- sh -c 'read line <gate'", p.dsn);
    wait_running(&p, "1");
    pg_wait(p.conn,
            "select lock_timeout > started + interval '7 s' from queues.work_queue "
            "where lock_key is not null",
            "t", WAIT_MS);
    open_gate();
    pg_wait(p.conn, "select state::text || tries from queues.history", "completed1", WAIT_MS);
    check(&p, "select count(*) from queues.attempt", "0");
    proc_ends(&w);
    leave(&p);
}

static void
a_lost_lease_kills_the_command(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "lost");
    push(&p, "q");
    proc_queuetop(&w, NULL, HANGS_ONCE, p.dsn);
    wait_hanging(&p);
    pg_run(p.conn, "update queues.work_queue set lock_timeout = now() - interval '1 s', version = "
                   "version + 1 where lock_key is not null");
    proc_want(&w, "the lease is lost, killing the command");
    pg_wait(p.conn, "select state::text || tries from queues.history", "completed2", WAIT_MS);
    proc_ends(&w);
    unlink("once");
    check(&p, "select outcome from queues.attempt", "lost");
    leave(&p);
}

static void
a_worker_that_slept_kills_its_commands(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "slept");
    push(&p, "q");
    proc_queuetop(&w, NULL, HANGS_ONCE, p.dsn);
    wait_hanging(&p);
    kill(w.pid, SIGSTOP);
    pg_wait(p.conn,
            "select lock_timeout < clock_timestamp() from queues.work_queue "
            "where lock_key is not null",
            "t", WAIT_MS);
    kill(w.pid, SIGCONT);
    proc_want(&w, "the lease is lost, killing the command");
    pg_wait(p.conn, "select state::text || tries from queues.history", "completed2", WAIT_MS);
    proc_ends(&w);
    unlink("once");
    leave(&p);
}

static void
a_lost_claim_is_given_back(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "keeponly");
    for (int i = 0; i < 3; i++)
        push(&p, "q");
    pg_run(p.conn, "select queues.node_start('n', '00000000-0000-7000-8000-000000000001', 'h', 1, "
                   "'0', 1, null, 1)");
    pg_run(p.conn, "create table t as select * from queues.claim('n', 1)");
    pg_run(p.conn, "select * from queues.claim('n', 2)");
    check(&p,
          "select queues.keep_only('n', '00000000-0000-7000-8000-000000000002', "
          "array(select lease from t))",
          "0");
    check(&p,
          "select queues.keep_only('n', '00000000-0000-7000-8000-000000000001', "
          "array(select lease from t))",
          "2");
    wait_running(&p, "1");
    check(&p,
          "select outcome from t, queues.complete('n', array[lease], array[version], array[seq])",
          "done");
    check(&p, "select sum(tries) from queues.queue", "0");
    check(&p, "select ready from queues.backlog()", "2");
    check(&p, "select ready from queues.backlog('{other}')", "0");
    leave(&p);
}

/* --- the server --- */

static void
an_answer_survives_a_restart_of_the_server(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "restart");
    push(&p, "q");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- sh -c 'echo >>started; read line <gate; echo $line'",
                  p.dsn);
    wait_running(&p, "1");
    wait_started(1);
    pg_down("immediate");
    open_gate();
    pg_up();
    reconnect(&p);
    pg_wait(p.conn,
            "select state::text || tries || convert_from(result, 'UTF8') from queues.history",
            "completed1go\n", WAIT_MS);
    push(&p, "q --kind next");
    pg_wait(p.conn, "select count(*) from queues.history", "2", WAIT_MS);
    proc_ends(&w);
    check(&p, "select count(*) from queues.attempt", "0");
    leave(&p);
}

static void
a_server_that_stays_away_ends_the_lease(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "away");
    push(&p, "q");
    proc_queuetop(&w, NULL, HANGS_ONCE, p.dsn);
    wait_hanging(&p);
    pg_down("fast");
    proc_want(&w, "the lease is lost, killing the command");
    pg_up();
    reconnect(&p);
    pg_wait(p.conn, "select state::text || tries from queues.history", "completed2", WAIT_MS);
    proc_ends(&w);
    unlink("once");
    leave(&p);
}

/* --- nodes and schedulers --- */

static void
a_name_belongs_to_one_process(void **state)
{
    struct place p;
    struct proc w;
    char *err;

    (void)state;
    enter(&p, "names");
    proc_queuetop(&w, NULL, "-d \"%s\" work --node n1 -- true", p.dsn);
    proc_want(&w, "node n1 is up");
    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" work --node n1 -- true", p.dsn), 3);
    assert_non_null(strstr(err, "n1"));
    assert_non_null(strstr(err, "QT002"));
    free(err);
    proc_ends(&w);
    leave(&p);
}

/* The worker's clock is in the past: the worker reports this to its log and to the server, where
 * doctor finds it, and uses the clock of the server. */
static void
a_wrong_clock_is_told(void **state)
{
    struct place p;
    struct proc w;
    char *err, *out;

    (void)state;
    enter(&p, "clock");
    push(&p, "q");
    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" work --drain -- true", p.dsn), 0);
    assert_null(strstr(err, "this machine's"));
    free(err);
    push(&p, "q");
    setenv("QUEUETOP_NOW", "2020-01-01T00:00:00Z", 1);
    proc_queuetop(&w, NULL, "-d \"%s\" work --node n1 -- true", p.dsn);
    unsetenv("QUEUETOP_NOW");
    proc_want(&w, " s ahead of this machine's");
    pg_wait(p.conn, "select count(*) from queues.history", "2", WAIT_MS);
    pg_wait(p.conn,
            "select clock_ahead between '2020-01-01 00:00:00+00' - clock_timestamp() - interval"
            " '10 s' and interval '-1 year' from queues.node where lock_key = 'n1'",
            "t", WAIT_MS);
    int code = proc_run(NULL, &out, NULL, "-d \"%s\" doctor", p.dsn);
    if (code == 0 || !strstr(out, "WARN     clocks      node n1 on ") ||
        !strstr(out, " s behind the server's"))
        fail_msg("%s", out);
    free(out);
    proc_ends(&w);
    proc_queuetop(&w, NULL, "-d \"%s\" work --node n1 -- true", p.dsn);
    pg_wait(p.conn,
            "select clock_ahead between interval '-1 s' and interval '1 s' from queues.node"
            " where lock_key = 'n1'",
            "t", WAIT_MS);
    proc_ends(&w);
    leave(&p);
}

static void
a_drained_node_takes_no_jobs(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "drained");
    proc_queuetop(&w, NULL, "-d \"%s\" work --node n1 -- true", p.dsn);
    proc_want(&w, "node n1 is up");
    pg_run(p.conn, "update queues.node set state = 'draining'");
    push(&p, "q");
    proc_want(&w, "drained by an operator");
    check(&p, "select state::text || tries from queues.queue", "ready0");
    pg_run(p.conn, "delete from queues.node"); /* a stranger: it registers anew, and is up */
    proc_want(&w, "registering again");
    pg_wait(p.conn, "select count(*) from queues.history", "1", WAIT_MS);
    check(&p, "select lock_key || state from queues.node", "n1up");
    proc_ends(&w);
    leave(&p);
}

static void
a_second_scheduler_takes_over(void **state)
{
    struct place p;
    struct proc a, b, c;

    (void)state;
    enter(&p, "schedulers");
    proc_queuetop(&a, NULL, "-d \"%s\" schedule --name a", p.dsn);
    proc_want(&a, "scheduler a is active");
    proc_queuetop(&b, NULL, "-d \"%s\" schedule --name b", p.dsn);
    proc_want(&b, "scheduler b stands by");
    kill(a.pid, SIGKILL);
    proc_want(&b, "scheduler b is active");
    proc_queuetop(&c, NULL, "-d \"%s\" schedule --name c", p.dsn);
    proc_want(&c, "scheduler c stands by");
    kill(b.pid, SIGTERM);
    assert_int_equal(proc_wait(&b), 0);
    proc_want(&c, "scheduler c is active");
    kill(c.pid, SIGTERM);
    assert_int_equal(proc_wait(&c), 0);
    proc_done(&a);
    proc_done(&b);
    proc_done(&c);
    leave(&p);
}

/* Holds the scheduler's lock, as a claim does, until a step of the scheduler has been refused.
 * Returns how long the lock was held, at most. */
static int64_t
refuse_a_step(const struct place *p, PGconn *claim)
{
    static const char steps[] = "select count(*) > 0 from pg_stat_activity where query_start > "
                                "'%s' and datname = current_database() and state = 'idle' "
                                "and application_name = 'queuetop'";
    char sql[400];
    int64_t start = clock_ms();

    pg_run(claim, "begin");
    pg_run(claim, "select from queues.scheduler where term = 0 for update");
    snprintf(sql, sizeof sql, steps, pg_value(p->conn, "select clock_timestamp()"));
    pg_wait(p->conn, sql, "t", PROC_WAIT_MS);
    pg_run(claim, "commit");
    int64_t end = clock_ms();
    snprintf(sql, sizeof sql, steps, pg_value(p->conn, "select clock_timestamp()"));
    pg_wait(p->conn, sql, "t", PROC_WAIT_MS);
    return end - start;
}

/* A claim or an idle worker holds the lock for a moment: the scheduler must not report another
 * scheduler. */
static void
a_short_lock_is_not_told(void **state)
{
    struct place p;
    struct proc a;
    int64_t took = 3000;

    (void)state;
    enter(&p, "short_lock");
    PGconn *claim = pg_connect(p.dsn);
    for (int i = 0; i < 20 && took >= 3000; i++) { /* a busy machine: that was no moment */
        proc_queuetop(&a, NULL, "-d \"%s\" schedule --name a", p.dsn);
        proc_want(&a, "scheduler a is active");
        took = refuse_a_step(&p, claim);
        char *said = proc_errors(&a);
        if (took < 3000)
            assert_null(strstr(said, "stands by"));
        free(said);
        kill(a.pid, SIGTERM);
        assert_int_equal(proc_wait(&a), 0);
        proc_done(&a);
    }
    assert_true(took < 3000);
    PQfinish(claim);
    leave(&p);
}

static void
the_end_can_be_asked_for(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "ends");
    push(&p, "a");
    push(&p, "b");
    push(&p, "c --delay 1h");
    assert_int_equal(
        proc_run(NULL, NULL, NULL, "-d \"%s\" work --queues a,z --drain -- true", p.dsn), 0);
    check(&p, "select string_agg(queue, ' ') from queues.history", "a");
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" work --max-idle 10s -- true", p.dsn), 0);
    check(&p, "select string_agg(queue, ' ' order by queue) from queues.history", "a b");
    check(&p, "select queue || state from queues.queue", "cscheduled");
    leave(&p);
}

/* --- the driver --- */

static int
set_up(void **state)
{
    (void)state;
    if (chdir(getenv("TMPDIR")) != 0)
        return -1;
    pg_start(NULL);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    pg_stop();
    unlink("gate"); /* of a test that failed */
    unlink("once");
    unlink("started");
    unlink("job");
    unlink("job.new");
    unlink("full");
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_command_does_is_in_the_books),
        cmocka_unit_test(a_command_says_whether_to_try_again),
        cmocka_unit_test(the_last_line_of_much_says_when),
        cmocka_unit_test(a_command_that_is_not_there_fails_no_job),
        cmocka_unit_test(a_new_command_ends_no_worker),
        cmocka_unit_test(a_command_that_runs_has_started),
        cmocka_unit_test(the_end_of_a_command_is_always_seen),
        cmocka_unit_test(an_operator_cancels_what_runs),
        cmocka_unit_test(the_first_signal_finishes_what_runs),
        cmocka_unit_test(one_wish_may_come_as_two_signals),
        cmocka_unit_test(the_second_signal_gives_back_at_once),
        cmocka_unit_test(ignored_signals_end_no_worker),
        cmocka_unit_test(a_step_that_fails_fails_no_job),
        cmocka_unit_test(a_log_that_nobody_reads_stops_no_worker),
        cmocka_unit_test(a_lease_lasts_as_long_as_the_command),
        cmocka_unit_test(a_lost_lease_kills_the_command),
        cmocka_unit_test(a_worker_that_slept_kills_its_commands),
        cmocka_unit_test(a_lost_claim_is_given_back),
        cmocka_unit_test(an_answer_survives_a_restart_of_the_server),
        cmocka_unit_test(a_server_that_stays_away_ends_the_lease),
        cmocka_unit_test(a_name_belongs_to_one_process),
        cmocka_unit_test(a_wrong_clock_is_told),
        cmocka_unit_test(a_drained_node_takes_no_jobs),
        cmocka_unit_test(a_second_scheduler_takes_over),
        cmocka_unit_test(a_short_lock_is_not_told),
        cmocka_unit_test(the_end_can_be_asked_for),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
