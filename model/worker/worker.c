/*
 * Decides what the worker does next. worker_pump looks at everything and starts what is due. It
 * runs after every answer, signal and timer, so no other order of events matters. At most one call
 * of each kind is out: register or beat, claim, extend, and one for each kind of answer.
 */
#include "model/worker/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/worker/worker_parts.h"

enum { PATIENCE_LEAST_MS = 8000, PATIENCE_MOST_MS = 15000, LET_GO_MS = 5000 };
enum {
    ASK_MS = 100,
    AGAIN_MS = 300,  /* a signal so soon after the last one is the same signal: timeout(1) and
                        shells send it to a process and to its group */
    LEAVE_MS = 10000 /* after the second signal, even if calls are still out */
};

/* --- the end --- */

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void
stop_claiming(struct worker *w, const char *why)
{
    if (w->stop.how != STOP_NOT)
        return;
    w->stop.how = STOP_DRAINING;
    if (w->node.is_registered)
        log_line(LOG_INFO, "%s: finishing %d, then ending", why, w->running);
}

static void
stop_now(struct worker *w)
{
    w->stop.how = STOP_NOW;
    w->stop.at_ms = clock_ms() + w->o.grace_ms + LEAVE_MS;
    log_line(LOG_INFO, "told again: ending %d commands and giving their jobs back", w->running);
    for (int i = 0; i < w->o.jobs; i++)
        if (w->slots[i].is_busy)
            job_kill(&w->slots[i], WHY_GIVE_BACK);
}

static void
on_backlog(void *ctx, const struct err *e, const char *text)
{
    struct worker *w = ctx;

    w->claim.is_asking = false;
    w->claim.ask_at_ms = clock_ms() + ASK_MS;
    if (e->kind == ERR_NONE) {
        w->claim.is_empty = !strcmp(text, "0");
        w->claim.at_ms = earlier(w->claim.at_ms, w->claim.ask_at_ms);
    } else if (e->kind != ERR_CONN && w->fatal.kind == ERR_NONE)
        w->fatal = *e;
    worker_pump(w);
}

/* --drain: a claim that finds nothing does not say that nothing is ready. */
static void
ask_backlog(struct worker *w, int64_t now)
{
    if (!w->o.drain || !w->node.is_registered || w->stop.how != STOP_NOT || w->claim.is_asking ||
        w->running > 0 || !w->claim.was_idle || now < w->claim.ask_at_ms)
        return;
    w->claim.is_asking = true;
    queue_wait(w->queue, 0);
    queue_backlog(w->queue, w->o.queues, w->o.nqueues, on_backlog, w);
}

/* With --drain the first failure to connect ends the worker. Without it a worker waits for the
 * server for ever. */
static void
check_server(struct worker *w)
{
    if (w->o.drain && !w->node.is_registered && w->fatal.kind == ERR_NONE && db_tries(w->db) > 0)
        w->fatal = *db_last_error(w->db);
}

/* The worker is idle if a claim that was sent after max_idle_ms found nothing. Earlier claims do
 * not count, because a busy server may not have answered them in time. If the worker can't claim
 * (no server, or it must take no jobs), only the time counts. */
static bool
is_idle(const struct worker *w, int64_t now)
{
    bool may_ask = w->node.is_registered && !w->node.is_paused;

    if (w->o.max_idle_ms <= 0 || (may_ask && !w->claim.was_idle))
        return false;
    return (may_ask ? w->claim.sent_ms : now) - w->claim.idle_since_ms >= w->o.max_idle_ms;
}

static void
check_end(struct worker *w, int64_t now)
{
    bool is_busy = w->running > 0 || w->held.n > 0 || w->claim.is_out || answers_left(w) > 0;

    check_server(w);
    if (w->fatal.kind != ERR_NONE)
        stop_claiming(w, "error");
    if (w->o.drain && w->claim.is_empty && !is_busy)
        stop_claiming(w, "nothing is ready");
    if (!is_busy && is_idle(w, now)) {
        if (!w->node.is_registered && w->fatal.kind == ERR_NONE && db_last_error(w->db)->kind)
            w->fatal = *db_last_error(w->db);
        stop_claiming(w, "idle");
    }
    if (w->stop.how == STOP_NOW && now >= w->stop.at_ms) {
        w->is_dirty = true;
        w->node.has_left = true;
        loop_stop(w->loop);
    } else if (w->stop.how != STOP_NOT && !is_busy && !w->node.is_leaving)
        node_leave(w);
}

static void
on_signal(void *ctx, int signo)
{
    struct worker *w = ctx;
    int64_t now = clock_ms();

    if (signo == SIGCHLD)
        jobs_check(w);
    else if (now - w->stop.signal_ms >= AGAIN_MS) {
        w->stop.signal_ms = now;
        if (w->stop.how == STOP_NOT)
            stop_claiming(w, strsignal(signo));
        else if (w->stop.how == STOP_DRAINING)
            stop_now(w);
        else
            w->stop.at_ms = now;
    }
    worker_pump(w);
}

/* --- the middle --- */

static void
on_timer(void *ctx)
{
    struct worker *w = ctx;

    w->timer = 0;
    worker_pump(w);
}

static void
set_timer(struct worker *w, int64_t now)
{
    int64_t due = earlier(earlier(jobs_due_ms(w), answers_due_ms(w)), node_due_ms(w, now));

    due = earlier(due, earlier(claims_due_ms(w), held_due_ms(w)));
    due = earlier(due, sleep_due_ms(w, now));
    if (w->o.max_idle_ms > 0 && w->running == 0 && claims_due_ms(w) == INT64_MAX)
        due = earlier(due, w->claim.idle_since_ms + w->o.max_idle_ms);
    if (w->o.drain && w->claim.was_idle && !w->claim.is_asking)
        due = earlier(due, w->claim.ask_at_ms);
    if (w->o.drain && !w->node.is_registered)
        due = earlier(due, now + ASK_MS);
    if (w->stop.how == STOP_NOW)
        due = earlier(due, w->stop.at_ms);
    loop_cancel(w->loop, w->timer);
    w->timer = loop_at(w->loop, due > now ? due : now + 1, on_timer, w);
}

void
worker_pump(struct worker *w)
{
    int64_t now = clock_ms();

    if (w->node.has_left || w->is_calling)
        return;
    node_watch(w);
    sleep_keep(w, now);
    if (!w->node.is_leaving && (w->fatal.kind == ERR_NONE || w->node.is_registered))
        node_keep(w, now);
    node_tidy(w, now);
    jobs_keep(w);
    held_start(w, now);
    if (w->claim.was_short) /* the claim goes first, in a call of its own, so that this session
                         waits for a wake-up soon */
        claims_make(w, now);
    answers_send(w);
    claims_make(w, now);
    ask_backlog(w, now);
    sleep_try(w, now);
    check_end(w, now);
    if (!w->node.has_left)
        set_timer(w, now);
}

/* Each command takes four descriptors. */
static bool
allow_files(int jobs, struct err *e)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)jobs * 4 + 64;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= needed)
        return true;
    if (limit.rlim_max < needed)
        return fail(e, ERR_USAGE, "%d commands at a time need %ju open files, the limit is %ju",
                    jobs, (uintmax_t)needed, (uintmax_t)limit.rlim_max);
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        return fail(e, ERR_SYS, "open files: %s", strerror(errno));
    return true;
}

/* After a connection that answers nothing, the next one must come in time to extend the leases. */
static int
patience_ms(int64_t lease_ms)
{
    int64_t ms = lease_ms / 4;

    if (lease_ms == 0 || ms > PATIENCE_MOST_MS)
        return PATIENCE_MOST_MS;
    return ms < PATIENCE_LEAST_MS ? PATIENCE_LEAST_MS : (int)ms;
}

struct worker *
worker_new(struct loop *l, struct db *db, const struct worker_options *o, struct err *e)
{
    char *path = NULL, host[256] = "";

    if (o->argv && (!allow_files(o->jobs, e) || !child_find(o->argv[0], &path, e)))
        return NULL;
    struct queue *queue = queue_new(db, o->schema, e);
    if (!queue) {
        free(path);
        return NULL;
    }
    struct guard *guard = NULL;
    if (o->argv && !(guard = guard_new(o->jobs, e))) {
        queue_free(queue);
        free(path);
        return NULL;
    }
    struct worker *w = xcalloc(1, sizeof *w);
    int drop_ms = patience_ms(o->timeout_ms);
    db_be_patient(db, drop_ms - LET_GO_MS, drop_ms);
    w->guard = guard;
    gethostname(host, sizeof host - 1);
    w->loop = l;
    w->db = db;
    w->queue = queue;
    w->node.path = path;
    w->o = *o;
    w->node.host = xstrdup(host);
    w->node.name = o->node ? xstrdup(o->node) : worker_make_name();
    w->sleep.slot = w->sleep.listen_slot = -1;
    w->claim.idle_since_ms = clock_ms();
    w->lease.slept_ms = clock_slept_ms();
    queue_make_id(w->node.session);
    w->slots = xcalloc((size_t)o->jobs, sizeof *w->slots);
    for (int i = 0; i < o->jobs; i++)
        w->slots[i].w = w;
    for (int i = 0; i < ANSWER_KINDS; i++)
        w->box[i].w = w;
    if (o->threads > 0 && !(w->pool = pool_new(w, o->threads, e))) {
        worker_free(w);
        return NULL;
    }
    return w;
}

bool
worker_run(struct worker *w, struct err *e)
{
    if (w->node.has_left)
        return fail(e, ERR_USAGE, "this worker has ended: make a new one");
    if (!w->o.no_signals) {
        loop_on_signal(w->loop, SIGTERM, on_signal, w);
        loop_on_signal(w->loop, SIGINT, on_signal, w);
        loop_on_signal(w->loop, SIGHUP, on_signal, w);
    }
    if (w->o.argv)
        loop_on_signal(w->loop, SIGCHLD, on_signal, w);
    db_on_notify(w->db, claims_wake, w);
    sleep_watch(w);
    worker_pump(w);
    if (!loop_run(w->loop, e))
        return false;
    w->node.has_left = true;
    if (w->fatal.kind != ERR_NONE)
        *e = w->fatal;
    return w->fatal.kind == ERR_NONE;
}

void
worker_end(struct worker *w, const char *why)
{
    stop_claiming(w, why);
    worker_pump(w);
}

bool
worker_is_clean(const struct worker *w)
{
    return !w->is_dirty && answers_left(w) == 0;
}

const struct worker_counts *
worker_counts(const struct worker *w)
{
    return &w->counts;
}

const char *
worker_node(const struct worker *w)
{
    return w->node.name;
}

void
worker_free(struct worker *w)
{
    if (!w)
        return;
    loop_cancel(w->loop, w->timer);
    pool_free(w->pool);
    held_free(w);
    for (int i = 0; i < w->o.jobs; i++) {
        free(w->slots[i].run.copy);
        child_free(w->slots[i].child);
        free(w->slots[i].what);
    }
    guard_free(w->guard);
    answers_free(w);
    queue_free(w->queue);
    free(w->slots);
    free(w->node.name);
    free(w->node.host);
    free(w->node.path);
    free(w);
}
