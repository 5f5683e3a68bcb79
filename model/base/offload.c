/* Calls that block run on helper threads, at most THREADS_MAX at a time. There are several, because
 * a cancel request must not wait behind a look-up that hangs, nor the other way round. A new job
 * starts a thread if no thread will be free for it; the thread runs jobs until the list is empty,
 * then ends. The shared state is freed when the loop's side and the last thread have released it.
 * An eventfd tells the loop that a job is done. */
#include "model/base/offload.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "model/base/log.h"
#include "model/base/mem.h"

enum { THREADS_MAX = 4 };

struct offload_job {
    struct offload_job *next;
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void (*drop)(void *ctx);
    void *ctx;
};

struct offload_list {
    struct offload_job *first, **end;
};

struct shared {
    pthread_mutex_t lock; /* guards all below */
    struct offload_list waiting, finished;
    int threads;
    int refs; /* the loop's side, each thread, and the dispatch under way */
    int event_fd;
    bool is_closed; /* the loop's side is gone */
};

struct offload {
    struct loop *loop;
    struct shared *shared;
    int watch;
};

static void
list_init(struct offload_list *l)
{
    l->first = NULL;
    l->end = &l->first;
}

static void
list_push(struct offload_list *l, struct offload_job *j)
{
    j->next = NULL;
    *l->end = j;
    l->end = &j->next;
}

static struct offload_job *
list_take(struct offload_list *l)
{
    struct offload_job *j = l->first;

    if (j) {
        l->first = j->next;
        if (!l->first)
            l->end = &l->first;
    }
    return j;
}

static void
drop_all(struct offload_list *l)
{
    for (struct offload_job *j; (j = list_take(l));) {
        j->drop(j->ctx);
        free(j);
    }
}

/* Call it with the lock held; it releases the lock. */
static void
unlock_and_release(struct shared *s)
{
    bool is_last = --s->refs == 0;

    pthread_mutex_unlock(&s->lock);
    if (!is_last)
        return;
    close(s->event_fd);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void *
work_off(void *arg)
{
    struct shared *s = arg;
    uint64_t one = 1;

    pthread_mutex_lock(&s->lock);
    for (struct offload_job *j; (j = list_take(&s->waiting));) {
        pthread_mutex_unlock(&s->lock);
        j->work(j->ctx);
        pthread_mutex_lock(&s->lock);
        list_push(&s->finished, j);
        if (s->is_closed)
            drop_all(&s->finished);
        else if (write(s->event_fd, &one, sizeof one) < 0)
            abort(); /* an eventfd takes 2^64 - 2 of them */
    }
    s->threads--;
    unlock_and_release(s);
    return NULL;
}

/* Starts a thread with every signal blocked: signals are the loop's. */
static bool
start_thread(struct shared *s)
{
    sigset_t all, old;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&thread, NULL, work_off, s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ok)
        pthread_detach(thread);
    return ok;
}

/* One job after the other, because `done` may free the offload, which drops the rest. */
static void
run_finished(void *ctx, short revents)
{
    struct offload *o = ctx;
    struct shared *s = o->shared;
    uint64_t count;

    (void)revents;
    if (read(s->event_fd, &count, sizeof count) < 0)
        return;
    pthread_mutex_lock(&s->lock);
    s->refs++;
    for (struct offload_job *j; (j = list_take(&s->finished));) {
        pthread_mutex_unlock(&s->lock);
        j->done(j->ctx);
        free(j);
        pthread_mutex_lock(&s->lock);
    }
    unlock_and_release(s);
}

struct offload *
offload_new(struct loop *l)
{
    int event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    if (event_fd < 0)
        return NULL;
    struct offload *o = xcalloc(1, sizeof *o);
    struct shared *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    list_init(&s->waiting);
    list_init(&s->finished);
    s->event_fd = event_fd;
    s->refs = 1;
    o->loop = l;
    o->shared = s;
    o->watch = loop_watch(l, s->event_fd, POLLIN, run_finished, o);
    return o;
}

void
offload_free(struct offload *o)
{
    if (!o)
        return;
    struct shared *s = o->shared;

    loop_unwatch(o->loop, o->watch);
    pthread_mutex_lock(&s->lock);
    s->is_closed = true;
    drop_all(&s->waiting);
    drop_all(&s->finished);
    unlock_and_release(s);
    free(o);
}

void
offload_run(struct offload *o, void (*work)(void *ctx), void (*done)(void *ctx),
            void (*drop)(void *ctx), void *ctx)
{
    struct shared *s = o->shared;
    struct offload_job *j = xmalloc(sizeof *j);

    *j = (struct offload_job){.work = work, .done = done, .drop = drop, .ctx = ctx};
    pthread_mutex_lock(&s->lock);
    list_push(&s->waiting, j);
    bool start = s->threads < THREADS_MAX;
    s->threads += start;
    s->refs += start;
    pthread_mutex_unlock(&s->lock);
    if (start && !start_thread(s)) {
        log_line(LOG_WARN, "no helper thread could be started: the program waits instead");
        work_off(s);
    }
}
