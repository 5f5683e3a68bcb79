/*
 * The event loop and the helper threads: the order of callbacks, and every change that a callback
 * may make to the table that called it.
 */
#include "tests/harness.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/loop.h"
#include "model/base/offload.h"

/* The events so far, one letter each, and the objects that callbacks need. */
struct story {
    struct loop *loop;
    char said[64];
    int timer, handle, fd;
    int pipe[2];
    bool done;
};

static void
say(struct story *s, char c)
{
    size_t len = strlen(s->said);

    assert_true(len + 1 < sizeof s->said);
    s->said[len] = c;
}

static void
turn(struct story *s)
{
    struct err e = {0};

    if (!loop_turn(s->loop, 0, &e))
        fail_msg("%s", e.text);
}

static void
on_a(void *ctx)
{
    say(ctx, 'a');
}

static void
on_b(void *ctx)
{
    say(ctx, 'b');
}

static void
on_stop(void *ctx)
{
    struct story *s = ctx;

    say(s, 's');
    loop_stop(s->loop);
}

static void
on_again(void *ctx)
{
    struct story *s = ctx;

    say(s, 'r');
    loop_at(s->loop, clock_ms(), on_again, s);
}

static void
on_cancel(void *ctx)
{
    struct story *s = ctx;

    say(s, 'c');
    loop_cancel(s->loop, s->timer);
}

static void
on_done(void *ctx)
{
    struct story *s = ctx;

    s->done = true;
}

static int
setup(void **state)
{
    struct story *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->loop = loop_new();
    assert_int_equal(pipe(s->pipe), 0);
    *state = s;
    return 0;
}

static int
teardown(void **state)
{
    struct story *s = *state;

    loop_free(s->loop);
    close(s->pipe[0]);
    close(s->pipe[1]);
    free(s);
    return 0;
}

static void
timers_run_in_order(void **state)
{
    struct story *s = *state;
    int64_t now = clock_ms();

    loop_at(s->loop, now, on_b, s);
    loop_at(s->loop, now - 5, on_a, s);
    loop_at(s->loop, now, on_a, s);
    loop_at(s->loop, now + 100000, on_b, s);
    turn(s);
    assert_string_equal(s->said, "aba");
}

static void
timer_made_in_a_timer_waits_a_turn(void **state)
{
    struct story *s = *state;

    loop_at(s->loop, 0, on_again, s);
    turn(s);
    assert_string_equal(s->said, "r");
    turn(s);
    assert_string_equal(s->said, "rr");
}

static void
timer_can_cancel_another(void **state)
{
    struct story *s = *state;

    loop_at(s->loop, 0, on_cancel, s);
    s->timer = loop_at(s->loop, 1, on_b, s);
    turn(s);
    assert_string_equal(s->said, "c");
    s->timer = loop_at(s->loop, 1, on_b, s); /* the same slot with another handle: still alive */
    turn(s);
    assert_string_equal(s->said, "cb");
}

static void
void_handle_touches_nothing(void **state)
{
    struct story *s = *state;
    int old = loop_at(s->loop, 0, on_a, s);

    turn(s);
    for (int i = 0; i < 100; i++)
        loop_cancel(s->loop, loop_at(s->loop, 0, on_b, s));
    loop_at(s->loop, 0, on_b, s);
    loop_cancel(s->loop, old);
    loop_cancel(s->loop, 0);
    loop_cancel(s->loop, -3);
    loop_cancel(s->loop, 12345678);
    turn(s);
    assert_string_equal(s->said, "ab");
}

static void
many_timers(void **state)
{
    struct story *s = *state;

    for (int i = 0; i < 60; i++)
        loop_at(s->loop, 100 - i, i % 2 ? on_a : on_b, s);
    turn(s);
    assert_int_equal(strlen(s->said), 60);
    assert_memory_equal(s->said, "abab", 4); /* the last timer made was due first */
}

static void
on_fd_a(void *ctx, short revents)
{
    assert_true(revents & POLLIN);
    say(ctx, 'A');
}

static void
on_fd_remove_next(void *ctx, short revents)
{
    struct story *s = ctx;

    (void)revents;
    say(s, 'R');
    loop_unwatch(s->loop, s->handle);
}

static void
on_fd_silence_next(void *ctx, short revents)
{
    struct story *s = ctx;

    (void)revents;
    say(s, 'Q');
    loop_rewatch(s->loop, s->handle, -1, 0);
}

static void
on_fd_add(void *ctx, short revents)
{
    struct story *s = ctx;

    (void)revents;
    say(s, 'N');
    for (int i = 0; i < 20; i++) /* the table moves */
        loop_watch(s->loop, -1, POLLIN, on_fd_a, s);
}

static void
on_fd_turn(void *ctx, short revents)
{
    struct story *s = ctx;
    struct err e = {0};

    (void)revents;
    say(s, '(');
    loop_unwatch(s->loop, s->handle);
    assert_true(loop_turn(s->loop, 0, &e));
    say(s, ')');
}

static void
descriptors_in_order(void **state)
{
    struct story *s = *state;

    loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_add, s);
    loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_a, s);
    turn(s);
    assert_string_equal(s->said, "");
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    turn(s);
    assert_string_equal(s->said, "NA");
}

static void
descriptor_removed_in_a_callback(void **state)
{
    struct story *s = *state;
    int first = loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_remove_next, s);

    s->handle = loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_a, s);
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    turn(s);
    turn(s);
    assert_string_equal(s->said, "RR");
    s->handle = first; /* removes itself */
    turn(s);
    turn(s);
    assert_string_equal(s->said, "RRR");
}

static void
descriptor_silenced_in_a_callback(void **state)
{
    struct story *s = *state;

    loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_silence_next, s);
    s->handle = loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_a, s);
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    turn(s);
    loop_rewatch(s->loop, s->handle, s->pipe[0], POLLIN);
    turn(s);
    assert_string_equal(s->said, "QQ");
}

static void
callback_turns_the_loop(void **state)
{
    struct story *s = *state;

    s->handle = loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_turn, s);
    loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_a, s);
    loop_at(s->loop, 0, on_a, s);
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    turn(s);
    assert_string_equal(s->said, "(Aa)");
}

static void
on_signal(void *ctx, int signo)
{
    say(ctx, signo == SIGUSR1 ? '1' : '2');
}

static void
signals_come_first(void **state)
{
    struct story *s = *state;
    sigset_t mask;

    loop_on_signal(s->loop, SIGUSR1, on_signal, s);
    loop_on_signal(s->loop, SIGUSR2, on_signal, s);
    loop_watch(s->loop, s->pipe[0], POLLIN, on_fd_a, s);
    loop_at(s->loop, 0, on_a, s);
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    kill(getpid(), SIGUSR1);
    turn(s);
    assert_string_equal(s->said, "1Aa");
    loop_child_signals(s->loop); /* the signal mask of a child process */
    sigprocmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGUSR1));
    struct sigaction pipe_action;
    sigaction(SIGPIPE, NULL, &pipe_action);
    assert_true(pipe_action.sa_handler == SIG_DFL);
}

static void
ignored_signals_stay_ignored(void **state)
{
    struct story *s = *state;

    signal(SIGHUP, SIG_IGN);
    loop_on_signal(s->loop, SIGHUP, on_signal, s);
    loop_on_signal(s->loop, SIGUSR1, on_signal, s);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGUSR1);
    turn(s);
    assert_string_equal(s->said, "1");
    loop_take_signal(s->loop, SIGHUP, on_signal, s);
    kill(getpid(), SIGHUP);
    turn(s);
    assert_string_equal(s->said, "12");
    signal(SIGHUP, SIG_DFL);
}

static void
run_stops(void **state)
{
    struct story *s = *state;
    struct err e = {0};
    bool never = false;

    loop_before_wait(s->loop, on_b, s);
    loop_at(s->loop, 0, on_stop, s);
    assert_true(loop_run(s->loop, &e));
    assert_string_equal(s->said, "bs");
    loop_before_wait(s->loop, NULL, NULL);
    assert_false(loop_until(s->loop, &never, clock_ms() + 5, &e));
    assert_int_equal(e.kind, ERR_TIMEOUT);
    loop_at(s->loop, 0, on_stop, s);
    assert_false(loop_until(s->loop, &never, 0, &e));
    assert_int_equal(e.kind, ERR_SYS);
    assert_true(loop_run(s->loop, &e)); /* takes the stop */
    loop_at(s->loop, 0, on_done, s);
    assert_true(loop_until(s->loop, &s->done, 0, &e));
}

/* --- helper threads --- */

struct task {
    struct story *story;
    sem_t *gate; /* the helper thread waits for this */
    char work, done;
};

static void
task_work(void *ctx)
{
    struct task *t = ctx;

    if (t->gate)
        sem_wait(t->gate);
    t->work = 'w';
}

static void
task_done(void *ctx)
{
    struct task *t = ctx;

    t->done = 'd';
    say(t->story, t->work);
    t->story->done = true;
}

static void
task_drop(void *ctx)
{
    struct task *t = ctx;

    t->done = 'x';
    if (t->gate)
        sem_post(t->gate + 1);
}

static void
offload_runs(void **state)
{
    struct story *s = *state;
    struct offload *o = offload_new(s->loop);
    struct task t[50];
    struct err e = {0};

    for (int i = 0; i < 50; i++) {
        t[i] = (struct task){.story = s};
        offload_run(o, task_work, task_done, task_drop, &t[i]);
    }
    while (strlen(s->said) < 50)
        assert_true(loop_turn(s->loop, 1000, &e));
    for (int i = 0; i < 50; i++)
        assert_int_equal(t[i].done, 'd');
    offload_free(o);
}

/* A job that hangs delays neither another job nor the end of the program. */
static void
offload_hangs(void **state)
{
    struct story *s = *state;
    struct offload *o = offload_new(s->loop);
    sem_t gate[2];
    struct task stuck = {.story = s, .gate = gate}, quick = {.story = s};
    struct err e = {0};

    sem_init(&gate[0], 0, 0);
    sem_init(&gate[1], 0, 0);
    offload_run(o, task_work, task_done, task_drop, &stuck);
    offload_run(o, task_work, task_done, task_drop, &quick);
    assert_true(loop_until(s->loop, &s->done, clock_ms() + 60000, &e));
    assert_int_equal(quick.done, 'd');
    offload_free(o);
    assert_int_equal(stuck.done, 0);
    sem_post(&gate[0]);
    sem_wait(&gate[1]); /* the helper thread dropped the job */
    assert_int_equal(stuck.done, 'x');
    sem_destroy(&gate[0]);
    sem_destroy(&gate[1]);
}

struct freer {
    struct offload *offload;
    struct story *story;
};

static void
nothing(void *ctx)
{
    (void)ctx;
}

static void
free_offload(void *ctx)
{
    struct freer *f = ctx;

    say(f->story, 'f');
    offload_free(f->offload);
    f->story->done = true;
}

static void
drop_freer(void *ctx)
{
    struct freer *f = ctx;

    say(f->story, 'x');
}

static void
offload_freed_by_its_job(void **state)
{
    struct story *s = *state;
    struct freer f = {offload_new(s->loop), s};
    struct err e = {0};

    offload_run(f.offload, nothing, free_offload, drop_freer, &f);
    offload_run(f.offload, nothing, free_offload, drop_freer, &f);
    assert_true(loop_until(s->loop, &s->done, clock_ms() + 60000, &e));
    while (strlen(s->said) < 2)
        turn(s);
    assert_string_equal(s->said, "fx");
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(timers_run_in_order),
        T(timer_made_in_a_timer_waits_a_turn),
        T(timer_can_cancel_another),
        T(void_handle_touches_nothing),
        T(many_timers),
        T(descriptors_in_order),
        T(descriptor_removed_in_a_callback),
        T(descriptor_silenced_in_a_callback),
        T(callback_turns_the_loop),
        T(signals_come_first),
        T(ignored_signals_stay_ignored),
        T(run_stops),
        T(offload_runs),
        T(offload_hangs),
        T(offload_freed_by_its_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
