/* The event loop: the only place of the program that waits (one ppoll). File descriptors, signals
 * by signalfd, timers, and one hook that runs before each wait (the console draws there). It lives
 * in the model, because the workers and the scheduler wait in it too. Order of a turn: signals,
 * file descriptors in the order they were added, timers, hook. */
#ifndef MODEL_BASE_LOOP_H
#define MODEL_BASE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/base/err.h"

struct loop;

typedef void loop_fd_fn(void *ctx, short revents);
typedef void loop_timer_fn(void *ctx);
typedef void loop_signal_fn(void *ctx, int signo);

struct loop *loop_new(void);
void loop_free(struct loop *l);

/* Watches fd for `events` (POLLIN, POLLOUT). Returns a handle > 0. */
int loop_watch(struct loop *l, int fd, short events, loop_fd_fn *fn, void *ctx);
/* Changes what is watched; fd -1 keeps the handle but watches nothing. */
void loop_rewatch(struct loop *l, int handle, int fd, short events);
void loop_unwatch(struct loop *l, int handle);

/* Runs fn once, as soon as clock_ms() >= at_ms. Returns a handle > 0, which is invalid after fn has
 * run. */
int loop_at(struct loop *l, int64_t at_ms, loop_timer_fn *fn, void *ctx);
void loop_cancel(struct loop *l, int timer);

/* Blocks the signal and delivers it in the loop instead. Each signal has one handler. If SIGHUP,
 * SIGINT or SIGQUIT is ignored, it stays ignored: so nohup, and & in a script, start a program. */
void loop_on_signal(struct loop *l, int signo, loop_signal_fn *fn, void *ctx);
/* Gets the descriptor for signals. False with errno: none is free, and loop_on_signal would end the
 * program. */
bool loop_takes_signals(struct loop *l);
/* The same for a program that has a terminal: takes an ignored signal, too. */
void loop_take_signal(struct loop *l, int signo, loop_signal_fn *fn, void *ctx);
/* For a child before exec: the signal mask and dispositions as they were before this loop. */
void loop_child_signals(const struct loop *l);

void loop_before_wait(struct loop *l, void (*fn)(void *ctx), void *ctx);

/* One turn: waits at most max_wait_ms (-1: until something happens) and dispatches. */
bool loop_turn(struct loop *l, int max_wait_ms, struct err *e) __attribute__((warn_unused_result));
/* Turns until loop_stop. */
bool loop_run(struct loop *l, struct err *e) __attribute__((warn_unused_result));
void loop_stop(struct loop *l);
/* Turns until *done is true or deadline_ms (monotonic, 0 = none) has passed; false on time-out. */
bool loop_until(struct loop *l, const bool *done, int64_t deadline_ms, struct err *e)
    __attribute__((warn_unused_result));

#endif
