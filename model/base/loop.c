/* The event loop: one ppoll over the watched descriptors and one signalfd. A handle is a slot
 * number with a generation, so the handle of a removed watch is never taken for a new one.
 * Callbacks may add and remove anything, also themselves, and may run the loop again (verbs do
 * while they wait for a reply). So after a callback no pointer into the tables may be used. The
 * loop knows nothing about what it waits for. */
#include "model/base/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/mem.h"

enum { SIGNALS = 65, GENERATIONS = 1 << 15, SLOTS_MAX = 1 << 15 };

struct watch {
    int handle; /* 0 = removed */
    int fd;
    short events, revents;
    loop_fd_fn *fn;
    void *ctx;
};

struct timer {
    bool armed;
    int generation;
    int64_t at_ms;
    int64_t order; /* order of creation: decides between timers that are due at the same time */
    loop_timer_fn *fn;
    void *ctx;
};

struct loop {
    struct watch *watches; /* in the order they were added */
    int nwatches, watches_cap;
    struct pollfd *pollfds;
    int pollfds_cap;
    int last_handle;
    struct timer *timers;
    int ntimers;
    int64_t timer_order;
    int signal_fd;
    sigset_t signals, old_mask;
    struct sigaction old_pipe;
    loop_signal_fn *on_signal[SIGNALS];
    void *signal_ctx[SIGNALS];
    void (*hook)(void *ctx);
    void *hook_ctx;
    int depth; /* turns under way */
    bool is_stopped;
};

struct loop *
loop_new(void)
{
    struct loop *l = xcalloc(1, sizeof *l);
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&l->signals);
    l->signal_fd = -1;
    pthread_sigmask(SIG_BLOCK, NULL, &l->old_mask);
    sigaction(SIGPIPE, &ignore,
              &l->old_pipe); /* SIGPIPE would end the process; we want the error EPIPE */
    return l;
}

void
loop_child_signals(const struct loop *l)
{
    sigaction(SIGPIPE, &l->old_pipe, NULL);
    pthread_sigmask(SIG_SETMASK, &l->old_mask, NULL);
}

void
loop_free(struct loop *l)
{
    if (!l)
        return;
    assert(l->depth == 0);
    if (l->signal_fd >= 0)
        close(l->signal_fd);
    loop_child_signals(l);
    free(l->watches);
    free(l->pollfds);
    free(l->timers);
    free(l);
}

/* --- descriptors --- */

static struct watch *
find_watch(struct loop *l, int handle)
{
    for (int i = 0; i < l->nwatches; i++)
        if (l->watches[i].handle == handle)
            return &l->watches[i];
    return NULL;
}

int
loop_watch(struct loop *l, int fd, short events, loop_fd_fn *fn, void *ctx)
{
    if (l->nwatches == l->watches_cap) {
        l->watches_cap = l->watches_cap ? l->watches_cap * 2 : 8;
        l->watches = xreallocarray(l->watches, (size_t)l->watches_cap, sizeof *l->watches);
    }
    do
        l->last_handle = l->last_handle == INT_MAX ? 1 : l->last_handle + 1;
    while (find_watch(l, l->last_handle));
    l->watches[l->nwatches++] =
        (struct watch){.handle = l->last_handle, .fd = fd, .events = events, .fn = fn, .ctx = ctx};
    return l->last_handle;
}

void
loop_rewatch(struct loop *l, int handle, int fd, short events)
{
    struct watch *w = handle > 0 ? find_watch(l, handle) : NULL;

    if (!w)
        return;
    if (w->fd != fd)
        w->revents = 0; /* revents is about the old descriptor */
    w->fd = fd;
    w->events = events;
}

void
loop_unwatch(struct loop *l, int handle)
{
    struct watch *w = handle > 0 ? find_watch(l, handle) : NULL;

    if (w)
        *w = (struct watch){.fd = -1};
}

static void
forget_removed(struct loop *l)
{
    int kept = 0;

    for (int i = 0; i < l->nwatches; i++)
        if (l->watches[i].handle)
            l->watches[kept++] = l->watches[i];
    l->nwatches = kept;
}

static void
run_watches(struct loop *l)
{
    int n = l->nwatches; /* watches that a callback adds wait for the next turn */

    for (int i = 0; i < n; i++) {
        struct watch w = l->watches[i];
        l->watches[i].revents = 0;
        if (w.handle && w.revents)
            w.fn(w.ctx, w.revents);
    }
}

/* --- timers --- */

int
loop_at(struct loop *l, int64_t at_ms, loop_timer_fn *fn, void *ctx)
{
    int i = 0;

    while (i < l->ntimers && l->timers[i].armed)
        i++;
    if (i == l->ntimers) {
        assert(l->ntimers < SLOTS_MAX);
        int cap = l->ntimers ? l->ntimers * 2 : 8;
        l->timers = xreallocarray(l->timers, (size_t)cap, sizeof *l->timers);
        memset(l->timers + l->ntimers, 0, (size_t)(cap - l->ntimers) * sizeof *l->timers);
        l->ntimers = cap;
    }
    struct timer *t = &l->timers[i];
    int generation = (t->generation + 1) % GENERATIONS;
    *t = (struct timer){
        .armed = true, .generation = generation, .at_ms = at_ms, .fn = fn, .ctx = ctx};
    t->order = l->timer_order++;
    return generation * SLOTS_MAX + i + 1;
}

void
loop_cancel(struct loop *l, int timer)
{
    int i = (timer - 1) % SLOTS_MAX;

    if (timer <= 0 || i >= l->ntimers)
        return;
    if (l->timers[i].generation == (timer - 1) / SLOTS_MAX)
        l->timers[i].armed = false;
}

/* The armed timer that is due first among those made before `order`; -1 = none. */
static int
first_timer(const struct loop *l, int64_t order)
{
    int best = -1;

    for (int i = 0; i < l->ntimers; i++) {
        const struct timer *t = &l->timers[i], *b = best < 0 ? t : &l->timers[best];
        if (!t->armed || t->order >= order)
            continue;
        if (best < 0 || t->at_ms < b->at_ms || (t->at_ms == b->at_ms && t->order < b->order))
            best = i;
    }
    return best;
}

static void
run_timers(struct loop *l)
{
    int64_t now = clock_ms(),
            order = l->timer_order; /* a timer made here waits for the next turn */

    for (int i; (i = first_timer(l, order)) >= 0 && l->timers[i].at_ms <= now;) {
        struct timer t = l->timers[i];
        l->timers[i].armed = false;
        t.fn(t.ctx);
    }
}

/* --- signals --- */

bool
loop_takes_signals(struct loop *l)
{
    if (l->signal_fd < 0)
        l->signal_fd = signalfd(-1, &l->signals, SFD_NONBLOCK | SFD_CLOEXEC);
    return l->signal_fd >= 0;
}

void
loop_take_signal(struct loop *l, int signo, loop_signal_fn *fn, void *ctx)
{
    assert(signo > 0 && signo < SIGNALS);
    l->on_signal[signo] = fn;
    l->signal_ctx[signo] = ctx;
    sigaddset(&l->signals, signo);
    pthread_sigmask(SIG_BLOCK, &l->signals, NULL);
    l->signal_fd = signalfd(l->signal_fd, &l->signals, SFD_NONBLOCK | SFD_CLOEXEC);
    assert(l->signal_fd >= 0);
}

static bool
is_ignored(int signo)
{
    struct sigaction was;

    return (signo == SIGHUP || signo == SIGINT || signo == SIGQUIT) &&
           sigaction(signo, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
}

void
loop_on_signal(struct loop *l, int signo, loop_signal_fn *fn, void *ctx)
{
    if (!is_ignored(signo)) /* once blocked, it would come although it is ignored */
        loop_take_signal(l, signo, fn, ctx);
}

static void
run_signals(struct loop *l)
{
    struct signalfd_siginfo info;

    while (read(l->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int signo = (int)info.ssi_signo;
        if (signo > 0 && signo < SIGNALS && l->on_signal[signo])
            l->on_signal[signo](l->signal_ctx[signo], signo);
    }
}

/* --- turning --- */

void
loop_before_wait(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
    l->hook = fn;
    l->hook_ctx = ctx;
}

void
loop_stop(struct loop *l)
{
    l->is_stopped = true;
}

static int
wait_ms(const struct loop *l, int max_wait_ms)
{
    int i = first_timer(l, INT64_MAX);
    int64_t wait = max_wait_ms < 0 ? INT64_MAX : max_wait_ms;

    if (l->is_stopped)
        return 0;
    if (i >= 0) {
        int64_t left = l->timers[i].at_ms - clock_ms();
        wait = left < wait ? left : wait;
    }
    if (wait == INT64_MAX)
        return -1;
    return wait < 0 ? 0 : wait > INT_MAX ? INT_MAX : (int)wait;
}

/* Waits once. Fills in revents of the watches; *signals is true if a signal has arrived. */
static bool
wait_once(struct loop *l, int ms, bool *signals, struct err *e)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    int n = l->nwatches;

    if (l->pollfds_cap < n + 1) {
        l->pollfds_cap = n + 8;
        l->pollfds = xreallocarray(l->pollfds, (size_t)l->pollfds_cap, sizeof *l->pollfds);
    }
    for (int i = 0; i < n; i++)
        l->pollfds[i] = (struct pollfd){.fd = l->watches[i].fd, .events = l->watches[i].events};
    l->pollfds[n] = (struct pollfd){.fd = l->signal_fd, .events = POLLIN};
    int ready = ppoll(l->pollfds, (nfds_t)n + 1, ms < 0 ? NULL : &t, NULL);
    if (ready < 0 && errno != EINTR)
        return fail(e, ERR_SYS, "ppoll: %s", strerror(errno));
    for (int i = 0; i < n; i++)
        l->watches[i].revents = ready > 0 ? l->pollfds[i].revents : 0;
    *signals = ready > 0 && l->pollfds[n].revents;
    return true;
}

bool
loop_turn(struct loop *l, int max_wait_ms, struct err *e)
{
    bool signals = false;

    l->depth++;
    if (l->hook)
        l->hook(l->hook_ctx);
    bool ok = wait_once(l, wait_ms(l, max_wait_ms), &signals, e);
    if (ok) {
        if (signals)
            run_signals(l);
        run_watches(l);
        run_timers(l);
    }
    if (--l->depth == 0)
        forget_removed(l);
    return ok;
}

bool
loop_run(struct loop *l, struct err *e)
{
    bool ok = true;

    while (ok && !l->is_stopped)
        ok = loop_turn(l, -1, e);
    l->is_stopped = false;
    return ok;
}

bool
loop_until(struct loop *l, const bool *done, int64_t deadline_ms, struct err *e)
{
    while (!*done) {
        int64_t left = deadline_ms ? deadline_ms - clock_ms() : INT_MAX;
        if (l->is_stopped)
            return fail(e, ERR_SYS, "interrupted");
        if (left <= 0)
            return fail(e, ERR_TIMEOUT, "timed out");
        if (!loop_turn(l, deadline_ms ? (int)(left < INT_MAX ? left : INT_MAX) : -1, e))
            return false;
    }
    return true;
}
