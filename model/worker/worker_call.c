/*
 * Calls a function for each job, in the loop or in threads. A thread touches only the run that it
 * was given: it takes the run from one list and puts it on the other, and an eventfd wakes the
 * loop. call_end makes the answer, always in the loop.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/worker/worker_parts.h"

struct pool {
    struct worker *w;
    pthread_t *threads;
    int n;
    pthread_mutex_t lock; /* guards the lists and is_closed */
    pthread_cond_t news;
    struct queuetop_run *waiting, **waiting_end, *finished;
    bool is_closed;
    int event_fd, watch;
};

static struct slot *
slot_of(struct queuetop_run *run)
{
    return (struct slot *)run; /* run is the first member of struct slot */
}

/* --- the threads --- */

static void *
work(void *ctx)
{
    struct pool *p = ctx;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->waiting && !p->is_closed)
            pthread_cond_wait(&p->news, &p->lock);
        struct queuetop_run *run = p->waiting;
        if (!run)
            break;
        p->waiting = run->next;
        if (!p->waiting)
            p->waiting_end = &p->waiting;
        pthread_mutex_unlock(&p->lock);
        run->outcome = p->w->o.fn(p->w->o.fn_ctx, &run->task);
        pthread_mutex_lock(&p->lock);
        bool is_first = !p->finished;
        run->next = p->finished;
        p->finished = run;
        if (is_first)
            (void)eventfd_write(p->event_fd, 1);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void call_returned(struct slot *s, enum queuetop_outcome outcome);

static void
on_finished(void *ctx, short revents)
{
    struct pool *p = ctx;
    eventfd_t n;

    (void)revents;
    (void)eventfd_read(p->event_fd, &n);
    pthread_mutex_lock(&p->lock);
    struct queuetop_run *run = p->finished;
    p->finished = NULL;
    pthread_mutex_unlock(&p->lock);
    while (run) {
        struct queuetop_run *next = run->next;
        call_returned(slot_of(run), run->outcome);
        run = next;
    }
    worker_pump(p->w);
}

/* 0, or why there are fewer threads than that. */
static int
start_threads(struct pool *p, int threads)
{
    sigset_t all, old;
    int why = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    while (p->n < threads && why == 0) {
        why = pthread_create(&p->threads[p->n], NULL, work, p);
        p->n += why == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return why;
}

struct pool *
pool_new(struct worker *w, int threads, struct err *e)
{
    struct pool *p = xcalloc(1, sizeof *p);

    p->w = w;
    p->waiting_end = &p->waiting;
    p->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int why = p->event_fd < 0 ? errno : 0;
    p->watch = loop_watch(w->loop, p->event_fd, POLLIN, on_finished, p);
    p->threads = xcalloc((size_t)threads, sizeof *p->threads);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->news, NULL);
    if (why == 0)
        why = start_threads(p, threads);
    if (why == 0)
        return p;
    fail(e, ERR_SYS, "%d of %d threads started: %s", p->n, threads, strerror(why));
    pool_free(p);
    return NULL;
}

void
pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_closed = true;
    p->waiting = NULL;
    pthread_cond_broadcast(&p->news);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n; i++)
        pthread_join(p->threads[i], NULL);
    loop_unwatch(p->w->loop, p->watch);
    if (p->event_fd >= 0)
        close(p->event_fd);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->news);
    free(p->threads);
    free(p);
}

static void
pool_add(struct pool *p, struct queuetop_run *run)
{
    pthread_mutex_lock(&p->lock);
    run->next = NULL;
    *p->waiting_end = run;
    p->waiting_end = &run->next;
    pthread_cond_signal(&p->news);
    pthread_mutex_unlock(&p->lock);
}

/* --- one call --- */

void
call_start(struct slot *s, const struct queue_job *job)
{
    struct worker *w = s->w;
    struct queue_job own = w->pool ? job_copy(job, &s->run.copy) : *job;

    s->run.task = (struct queuetop_task){.id = s->id,
                                         .queue = own.queue,
                                         .kind = own.kind,
                                         .payload = own.payload,
                                         .payload_len = own.payload_len,
                                         .type = own.type,
                                         .priority = own.priority,
                                         .try_number = own.try_,
                                         .max_tries = own.max_tries,
                                         .run = &s->run};
    if (w->pool) {
        pool_add(w->pool, &s->run);
        return;
    }
    w->is_calling = true;
    enum queuetop_outcome outcome = w->o.fn(w->o.fn_ctx, &s->run.task);
    w->is_calling = false;
    call_returned(s, outcome);
}

static void
failure_of(struct slot *s, enum queuetop_outcome outcome, struct answer *a)
{
    a->outcome = s->why == WHY_CANCELLED ? "cancelled"
                 : s->why == WHY_TIMEOUT ? "timeout"
                                         : "failed";
    a->final = outcome == QUEUETOP_FINAL;
    a->error = s->run.error ? s->run.error : xstrdup("failed");
    a->trace = s->run.trace;
    s->run.error = s->run.trace = NULL;
}

static void
call_end(struct slot *s, enum queuetop_outcome outcome)
{
    struct worker *w = s->w;
    struct answer a = {.token = s->token, .server_started_ms = s->server_started_ms};
    bool is_done = outcome == QUEUETOP_DONE;

    memcpy(a.id, s->id, sizeof a.id);
    if (is_done) {
        a.result = s->run.result;
        a.result_len = s->run.result_len;
        s->run.result = NULL;
    } else if (s->why != WHY_LOST)
        failure_of(s, outcome, &a);
    if (s->why != WHY_LOST)
        answer_add(w, is_done ? ANSWER_COMPLETE : ANSWER_FAIL, &a);
    free(s->run.result);
    free(s->run.error);
    free(s->run.trace);
    free(s->run.copy);
    job_over(s);
}

/* The slot is not freed before the function has returned: until then the task is in use, and a
 * thread may hold the run. */
static void
call_returned(struct slot *s, enum queuetop_outcome outcome)
{
    if (outcome != QUEUETOP_LATER)
        call_end(s, outcome);
    else if (s->run.is_finished)
        call_end(s, s->run.finish);
    else
        s->run.is_later = true;
}

/* --- what a function may say --- */

void
queuetop_result(struct queuetop_run *run, const void *bytes, size_t len)
{
    free(run->result);
    run->result = xmalloc(len + 1);
    memcpy(run->result, bytes ? bytes : "", len);
    run->result_len = len;
}

void
queuetop_problem(struct queuetop_run *run, const char *error, const char *trace)
{
    free(run->error);
    free(run->trace);
    run->error = error ? report_clean(error, strlen(error)) : NULL;
    run->trace = trace ? report_clean(trace, strlen(trace)) : NULL;
}

bool
queuetop_unwanted(const struct queuetop_run *run)
{
    return atomic_load(&run->is_unwanted);
}

void
queuetop_finish(struct queuetop_run *run, enum queuetop_outcome outcome)
{
    struct worker *w = slot_of(run)->w;

    if (!run->is_later) {
        run->is_finished = true;
        run->finish = outcome;
        return;
    }
    call_end(slot_of(run), outcome);
    worker_pump(w);
}
