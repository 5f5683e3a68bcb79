/*
 * Functions as jobs (model/worker/queuetop.h): in the loop, in threads, finished later; what they
 * say is what the database keeps; what was claimed ahead goes back when the jobs turn out to be
 * long.
 */
#include "tests/harness.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
}

/* A job that failed is not tried again within the test. */
static void
set_backoff(void)
{
    pg_run(conn, "select queues.set_queue(gen_random_uuid(), 'q', '{\"backoff_base\": \"1h\"}')");
}

static void
check(const char *sql, const char *expected)
{
    assert_string_equal(pg_value(conn, "%s", sql), expected);
}

static struct queuetop_worker *
worker(struct queuetop_options o)
{
    struct queuetop_error e = {0};

    o.conninfo = dsn;
    struct queuetop_worker *w = queuetop_worker_new(&o, &e);
    if (!w)
        fail_msg("%s", e.text);
    return w;
}

static struct queuetop_counts
run(struct queuetop_worker *w)
{
    struct queuetop_error e = {0};

    if (!queuetop_worker_run(w, &e))
        fail_msg("%s", e.text);
    struct queuetop_counts n = queuetop_worker_counts(w);
    queuetop_worker_free(w);
    return n;
}

/* Ends the job as its payload says. */
static enum queuetop_outcome
obey(void *ctx, const struct queuetop_task *task)
{
    (void)ctx;
    if (!task->payload)
        return QUEUETOP_DONE;
    if (!strcmp(task->payload, "\"result\"")) {
        queuetop_result(task->run, "wrong", 5);
        queuetop_result(task->run, task->queue, strlen(task->queue));
        return QUEUETOP_DONE;
    }
    queuetop_problem(task->run, "it broke\xff", "line 1");
    return !strcmp(task->payload, "\"final\"") ? QUEUETOP_FINAL : QUEUETOP_FAILED;
}

static void
ends(int threads)
{
    pg_run(conn, "insert into queues.queue (queue, payload) values ('q', null), ('q', "
                 "'\"result\"'), ('q', '\"final\"'), ('q', '\"fail\"')");
    struct queuetop_counts n =
        run(worker((struct queuetop_options){.fn = obey, .threads = threads, .drain = true}));
    assert_int_equal(n.started, 4);
    assert_int_equal(n.done, 2);
    assert_int_equal(n.failed, 2);
    check("select string_agg(coalesce(convert_from(result, 'UTF8'), '-'), ' ' order by result) "
          "from queues.history",
          "q -");
    check("select string_agg(state::text || ' ' || tries || ' ' || error, ', ' order by state) "
          "from queues.queue",
          "retry 1 it broke\xEF\xBF\xBD, failed 1 it broke\xEF\xBF\xBD");
    check("select count(*) from queues.attempt where trace = 'line 1'", "2");
    check("select count(*) from queues.work_queue", "0");
    pg_run(conn, "delete from queues.queue; delete from queues.history; delete from "
                 "queues.attempt");
}

static void
what_a_function_says_is_kept(void **state)
{
    (void)state;
    enter("says");
    set_backoff();
    ends(0);
    ends(3);
    PQfinish(conn);
}

/* --- threads --- */

static atomic_int inside, most;
static pthread_barrier_t together;

static enum queuetop_outcome
meet(void *ctx, const struct queuetop_task *task)
{
    int n = atomic_fetch_add(&inside, 1) + 1;

    (void)ctx, (void)task;
    pthread_barrier_wait(&together); /* blocks for ever unless all run at once */
    if (n > atomic_load(&most))
        atomic_store(&most, n);
    atomic_fetch_sub(&inside, 1);
    return QUEUETOP_DONE;
}

static void
threads_may_block(void **state)
{
    (void)state;
    enter("threads");
    pthread_barrier_init(&together, NULL, 4);
    pg_run(conn, "insert into queues.queue (queue) select 'q' from generate_series(1, 40)");
    struct queuetop_counts n =
        run(worker((struct queuetop_options){.fn = meet, .threads = 4, .jobs = 4, .drain = true}));
    assert_int_equal(n.done, 40);
    assert_int_equal(atomic_load(&most), 4);
    check("select count(*) || ' ' || sum(tries) from queues.history", "40 40");
    pthread_barrier_destroy(&together);
    PQfinish(conn);
}

/* --- later --- */

struct later {
    struct queuetop_worker *w;
    struct queuetop_run *runs[3];
    int n, fd, handle;
};

static void
on_event(void *ctx, short revents)
{
    struct later *l = ctx;

    (void)revents;
    queuetop_unwatch(l->w, l->handle);
    for (int i = 0; i < l->n; i++) {
        queuetop_result(l->runs[i], "late", 4);
        queuetop_finish(l->runs[i], QUEUETOP_DONE);
    }
    queuetop_worker_stop(l->w);
}

static enum queuetop_outcome
begin(void *ctx, const struct queuetop_task *task)
{
    struct later *l = ctx;

    l->runs[l->n++] = task->run;
    if (l->n == 3)
        eventfd_write(l->fd, 1);
    return QUEUETOP_LATER;
}

static void
a_job_may_be_finished_later(void **state)
{
    struct later l = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};

    (void)state;
    enter("later");
    pg_run(conn, "insert into queues.queue (queue) select 'q' from generate_series(1, 3)");
    l.w = worker((struct queuetop_options){.fn = begin, .ctx = &l, .jobs = 3});
    l.handle = queuetop_watch(l.w, l.fd, POLLIN, on_event, &l);
    assert_int_equal(run(l.w).done, 3);
    check("select string_agg(convert_from(result, 'UTF8'), ' ') from queues.history",
          "late late late");
    close(l.fd);
    PQfinish(conn);
}

struct early {
    struct queuetop_worker *w;
    struct queuetop_run *run;
    atomic_bool is_finished, has_lost_task;
    int fd;
};

static void
finish_early(void *ctx, short revents)
{
    struct early *s = ctx;
    eventfd_t n;

    (void)revents;
    (void)eventfd_read(s->fd, &n);
    queuetop_finish(s->run, QUEUETOP_DONE);
    atomic_store(&s->is_finished, true);
}

/* In a thread: the loop finishes the job before the function returns. */
static enum queuetop_outcome
return_late(void *ctx, const struct queuetop_task *task)
{
    struct early *s = ctx;

    atomic_store(&s->is_finished, false);
    s->run = task->run;
    eventfd_write(s->fd, 1);
    while (!atomic_load(&s->is_finished))
        poll(NULL, 0, 1);
    if (!task->id)
        atomic_store(&s->has_lost_task, true);
    return QUEUETOP_LATER;
}

static void
a_job_is_not_over_before_its_function(void **state)
{
    struct early s = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};

    (void)state;
    enter("early");
    pg_run(conn, "insert into queues.queue (queue) select 'q' from generate_series(1, 3)");
    s.w = worker(
        (struct queuetop_options){.fn = return_late, .ctx = &s, .threads = 1, .drain = true});
    queuetop_watch(s.w, s.fd, POLLIN, finish_early, &s);
    assert_int_equal(run(s.w).done, 3);
    assert_false(atomic_load(&s.has_lost_task));
    check("select count(*) || ' ' || sum(tries) from queues.history", "3 3");
    close(s.fd);
    PQfinish(conn);
}

/* --- ahead --- */

struct within {
    struct queuetop_worker *w;
    struct queuetop_run *runs[8];
    int n, fd;
};

static void
finish_some(void *ctx, short revents)
{
    struct within *s = ctx;
    eventfd_t count;

    (void)revents;
    (void)eventfd_read(s->fd, &count);
    if (s->n == 2) {
        queuetop_finish(s->runs[1], QUEUETOP_DONE);
        return;
    }
    for (int i = 2; i < s->n; i++)
        queuetop_finish(s->runs[i], QUEUETOP_DONE);
    queuetop_worker_stop(s->w);
}

/* Many short ones; the third long one finishes the first. */
static enum queuetop_outcome
finish_another(void *ctx, const struct queuetop_task *task)
{
    struct within *s = ctx;
    struct queuetop_run *first = s->n == 2 ? s->runs[0] : NULL;

    if (!task->payload)
        return QUEUETOP_DONE;
    assert_true(s->n < 8);
    s->runs[s->n++] = task->run;
    if (first)
        queuetop_finish(first, QUEUETOP_DONE);
    if (s->n >= 2)
        eventfd_write(s->fd, 1);
    return QUEUETOP_LATER;
}

static void
a_function_may_finish_another_job(void **state)
{
    struct within s = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};

    (void)state;
    enter("within");
    pg_run(conn, "insert into queues.queue (queue, payload) select 'q', case when i > 500 then "
                 "'1'::json end from generate_series(1, 503) i");
    s.w = worker((struct queuetop_options){.fn = finish_another, .ctx = &s, .jobs = 2});
    queuetop_watch(s.w, s.fd, POLLIN, finish_some, &s);
    assert_int_equal(run(s.w).done, 503);
    assert_int_equal(s.n, 3);
    check("select count(*) || ' ' || sum(tries) from queues.history", "503 503");
    close(s.fd);
    PQfinish(conn);
}

struct slow {
    struct queuetop_worker *w;
    struct queuetop_run *run;
    int n, fd;
};

static void
release(void *ctx, short revents)
{
    struct slow *s = ctx;
    eventfd_t n;

    (void)revents;
    (void)eventfd_read(s->fd, &n);
    queuetop_worker_stop(s->w);
    queuetop_finish(s->run, QUEUETOP_DONE);
}

/* Many short ones, then one that hangs. */
static enum queuetop_outcome
hang(void *ctx, const struct queuetop_task *task)
{
    struct slow *s = ctx;

    if (!task->payload)
        return QUEUETOP_DONE;
    s->run = task->run;
    return QUEUETOP_LATER;
}

static void *
look(void *ctx)
{
    struct slow *s = ctx;
    PGconn *c = pg_connect(dsn);

    /* the other jobs were given back, and no attempt is counted */
    pg_wait(c,
            "select (select sum(cardinality(seqs)) from queues.work_queue where lock_key is not "
            "null) || ' ' || (select max(tries) from queues.queue) || ' ' || (select count(*) from "
            "queues.history)",
            "1 0 399", WAIT_MS);
    PQfinish(c);
    eventfd_write(s->fd, 1);
    return NULL;
}

static void
what_was_claimed_ahead_goes_back(void **state)
{
    struct slow s = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    pthread_t looker;

    (void)state;
    enter("ahead");
    pg_run(conn, "insert into queues.queue (queue, payload) select 'q', case when i = 400 then "
                 "'1'::json end from generate_series(1, 500) i");
    s.w = worker((struct queuetop_options){.fn = hang, .ctx = &s, .ahead = 60});
    queuetop_watch(s.w, s.fd, POLLIN, release, &s);
    assert_int_equal(pthread_create(&looker, NULL, look, &s), 0);
    struct queuetop_counts n = run(s.w);
    pthread_join(looker, NULL);
    assert_int_equal(n.done, 400);
    check("select count(*) || ' ' || max(tries) from queues.queue", "100 0");
    close(s.fd);
    PQfinish(conn);
}

/* Of two jobs that end at once, one completes and one fails. The failure is sent before the
 * completion that brings the next claim, so the node never holds more jobs than it works on. */
static void
a_failure_goes_before_the_next_claim(void **state)
{
    (void)state;
    enter("order");
    set_backoff();
    pg_run(
        conn,
        "create table most (jobs bigint); create function note() returns trigger language "
        "plpgsql as $$ begin insert into public.most select coalesce(sum(cardinality(seqs)), "
        "0) from queues.work_queue where lock_key is not null; return null; end $$; "
        "create trigger note after insert or update on queues.work_queue for each "
        "statement execute function note(); "
        "insert into queues.queue (queue, payload) select 'q', case when i in (1,3,5,8,10,12) then "
        "'\"fail\"'::json end from generate_series(1, 12) i");
    run(worker((struct queuetop_options){.fn = obey, .jobs = 2, .ahead = -1, .drain = true}));
    check("select max(jobs) from most", "2");
    check("select count(*) from queues.history", "6");
    PQfinish(conn);
}

/* --- limits of a run --- */

static enum queuetop_outcome
until_unwanted(void *ctx, const struct queuetop_task *task)
{
    (void)ctx;
    while (!queuetop_unwanted(task->run))
        poll(NULL, 0, 5);
    queuetop_problem(task->run, "gave up", NULL);
    return QUEUETOP_FINAL;
}

static void
a_function_is_told_that_its_time_is_over(void **state)
{
    (void)state;
    enter("over");
    set_backoff();
    pg_run(conn, "insert into queues.queue (queue, run_timeout) values ('q', '300 ms')");
    run(worker((struct queuetop_options){.fn = until_unwanted, .threads = 1, .drain = true}));
    check("select string_agg(outcome || ' ' || error, ',') from queues.attempt", "timeout gave up");
    PQfinish(conn);
}

/* --- what a worker needs --- */

/* In a process of its own, with so many free descriptors and such stacks: true if there is no
 * worker, and `text` says why. */
static bool
is_refused(struct queuetop_options o, int files, size_t stack, const char *text)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        struct queuetop_error e = {0};
        pthread_attr_t attr;
        int next = eventfd(0, EFD_CLOEXEC);
        rlim_t limit = (rlim_t)(next + files);
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, stack);
        pthread_setattr_default_np(&attr);
        close(next);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit, limit});
        o.conninfo = dsn;
        _exit(!queuetop_worker_new(&o, &e) && strstr(e.text, text) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void
there_is_no_worker_without_threads_or_files(void **state)
{
    const struct queuetop_options loop = {.fn = obey}, signals = {.fn = obey, .signals = true},
                                  threads = {.fn = obey, .threads = 2};
    size_t usual = 1 << 20, huge = (size_t)1 << 50;

    (void)state;
    assert_true(is_refused(loop, 0, usual, "no descriptor"));
    assert_true(is_refused(signals, 1, usual, "no descriptor"));
    assert_true(is_refused(threads, 1, usual, "0 of 2 threads"));
    assert_true(is_refused(threads, 2, huge, "0 of 2 threads"));
    assert_false(is_refused(threads, 2, usual, ""));
}

static void
a_worker_runs_once(void **state)
{
    struct queuetop_error e = {0};
    int status = 1;

    (void)state;
    enter("once");
    struct queuetop_worker *w = worker((struct queuetop_options){.fn = obey, .drain = true});
    assert_true(queuetop_worker_run(w, &e));
    pid_t child = fork(), ended = 0;
    if (child == 0) /* it may sleep for ever */
        _exit(!queuetop_worker_run(w, &e) && strstr(e.text, "has ended") ? 0 : 1);
    for (int ms = 0; ms < WAIT_MS && ended == 0; ms += 5) {
        ended = waitpid(child, &status, WNOHANG);
        poll(NULL, 0, ended == 0 ? 5 : 0);
    }
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        fail_msg("the second run does not end");
    }
    assert_int_equal(status, 0);
    queuetop_worker_free(w);
    PQfinish(conn);
}

/* --- a machine that was suspended --- */

static atomic_int slept_s;

/* In place of the C library's: CLOCK_BOOTTIME has gone on while all other clocks stood still. */
int
clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);

    if (id == CLOCK_BOOTTIME)
        t->tv_sec += atomic_load(&slept_s);
    return rc;
}

/* The server may be away when the machine is on again: the worker must know it by itself. */
static enum queuetop_outcome
sleep_through(void *ctx, const struct queuetop_task *task)
{
    (void)ctx;
    atomic_fetch_add(&slept_s, 3600);
    for (int ms = 0; ms < WAIT_MS && !queuetop_unwanted(task->run); ms += 5)
        poll(NULL, 0, 5);
    return QUEUETOP_DONE;
}

static void
a_suspended_machine_loses_its_leases(void **state)
{
    (void)state;
    enter("suspended");
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    struct queuetop_counts n = run(worker((struct queuetop_options){
        .fn = sleep_through, .threads = 1, .ahead = -1, .timeout_ms = 600000, .drain = true}));
    assert_int_equal(n.lost, 1);
    assert_int_equal(n.done, 0);
    PQfinish(conn);
}

static void *
run_apart(void *w)
{
    struct queuetop_error e;

    return queuetop_worker_run(w, &e) ? w : NULL;
}

/* The machine is suspended while a claim is under way: its jobs are not even started. */
static void
a_suspended_claim_starts_nothing(void **state)
{
    pthread_t thread;
    void *ok;

    (void)state;
    enter("suspended_claim");
    PGconn *other = pg_connect(dsn);
    pg_run(conn, "insert into queues.queue (queue) values ('q')");
    struct queuetop_worker *w =
        worker((struct queuetop_options){.fn = obey, .threads = 1, .ahead = -1, .drain = true});
    pg_run(other, "begin");
    pg_run(other, "lock table queues.queue in access exclusive mode");
    assert_int_equal(pthread_create(&thread, NULL, run_apart, w), 0);
    pg_wait(conn,
            "select count(*) from pg_stat_activity where query like '%claim%' and "
            "cardinality(pg_blocking_pids(pid)) > 0",
            "1", WAIT_MS);
    atomic_fetch_add(&slept_s, 3600);
    pg_run(other, "commit");
    assert_int_equal(pthread_join(thread, &ok), 0);
    assert_ptr_equal(ok, w);
    struct queuetop_counts n = queuetop_worker_counts(w);
    assert_int_equal(n.lost, 0);
    assert_int_equal(n.started, 1);
    assert_int_equal(n.done, 1);
    queuetop_worker_free(w);
    PQfinish(other);
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_function_says_is_kept),
        cmocka_unit_test(threads_may_block),
        cmocka_unit_test(a_job_may_be_finished_later),
        cmocka_unit_test(a_job_is_not_over_before_its_function),
        cmocka_unit_test(a_function_may_finish_another_job),
        cmocka_unit_test(what_was_claimed_ahead_goes_back),
        cmocka_unit_test(a_failure_goes_before_the_next_claim),
        cmocka_unit_test(a_function_is_told_that_its_time_is_over),
        cmocka_unit_test(there_is_no_worker_without_threads_or_files),
        cmocka_unit_test(a_worker_runs_once),
        cmocka_unit_test(a_suspended_machine_loses_its_leases),
        cmocka_unit_test(a_suspended_claim_starts_nothing),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
