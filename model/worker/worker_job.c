/*
 * One job in one slot: starts the command, keeps the lease while it runs, makes an answer of its
 * end. The time left on a lease is counted by our own monotonic clock, from before the request that
 * got the lease was sent, and the time in which this machine was suspended is added: so the lease
 * never seems longer than it is. When this count is over, the command is killed and no answer is
 * sent.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/worker/worker_parts.h"

enum {
    EXTEND_MS = 5000, /* at the latest, because its answer also reports an operator's cancel */
    EXTEND_RETRY_MS = 250,
    EXTEND_MAX = 1000,
    SUSPEND_MS = 100, /* less is no suspension: the two clocks are not read at the same moment */
    START_MS = 1000,  /* after a command could not be started; doubles */
    START_MOST_MS = 30000,
    ENV_WORDS = 7,
    /* exit codes of a command, as in sysexits.h */
    EXIT_FINAL = 65, /* the job can't be done: no more tries */
    EXIT_LATER = 75  /* again in the time that standard output says */
};

/* --- the command's environment --- */

static char **
env_make(const struct worker *w, const struct queue_job *job)
{
    int n = 0;

    while (environ[n])
        n++;
    char **env = xcalloc((size_t)n + ENV_WORDS + 1, sizeof *env);
    char **at = env;
    *at++ = xasprintf("QUEUETOP_JOB_ID=%s", job->id);
    *at++ = xasprintf("QUEUETOP_QUEUE=%s", job->queue);
    *at++ = xasprintf("QUEUETOP_KIND=%s", job->kind);
    *at++ = xasprintf("QUEUETOP_TRY=%d", job->try_);
    *at++ = xasprintf("QUEUETOP_MAX_TRIES=%d", job->max_tries);
    *at++ = xasprintf("QUEUETOP_NODE=%s", w->node.name);
    *at++ = xasprintf("QUEUETOP_TYPE=%s", job->type      ? job->type
                                          : job->payload ? "application/json"
                                                         : "");
    for (int i = 0; i < n; i++)
        if (strncmp(environ[i], "QUEUETOP_", 9) != 0)
            *at++ = environ[i];
    return env;
}

static void
env_free(char **env)
{
    for (int i = 0; i < ENV_WORDS; i++)
        free(env[i]);
    free(env);
}

/* --- the end of a job --- */

void
job_over(struct slot *s)
{
    struct worker *w = s->w;
    int64_t now = clock_us();

    w->held.job_us += (now - s->started_us - w->held.job_us) / 8;
    free(s->what);
    *s = (struct slot){.w = w};
    w->running--;
    w->claim.idle_since_ms = now / 1000;
}

/* What the exit code says about further tries. */
static void
plan_tries(struct answer *a, const struct slot *s, const struct child_report *r)
{
    struct err e = {0};

    if (s->why != WHY_NOT || r->timed_out || r->end != CHILD_EXITED)
        return;
    a->final = r->code == EXIT_FINAL;
    if (r->code == EXIT_LATER)
        a->retry_in_ms = report_retry_in(r, &e);
    if (e.kind != ERR_NONE)
        log_line(LOG_WARN, "%s: tried again by the back-off of its queue: %s", s->what, e.text);
}

static void
fail_answer(struct answer *a, const struct slot *s, const struct child_report *r)
{
    char how[240], ended[120];

    report_how(r, ended, sizeof ended);
    snprintf(how, sizeof how, "%s", ended);
    a->outcome = "failed";
    if (s->why == WHY_CANCELLED) {
        a->outcome = "cancelled";
        snprintf(how, sizeof how, "cancelled by an operator (%s)", ended);
    } else if (r->timed_out) {
        a->outcome = "timeout";
        bool whole = s->run_timeout_ms % 1000 == 0;
        snprintf(how, sizeof how, "ran longer than %" PRId64 " %s (%s)",
                 whole ? s->run_timeout_ms / 1000 : s->run_timeout_ms, whole ? "s" : "ms", ended);
    }
    a->error = report_error(r, how, &a->trace);
    plan_tries(a, s, r);
}

static bool
cannot_start(const struct child_report *r)
{
    return r->end == CHILD_NOT_STARTED && r->code != E2BIG;
}

/* False if the program is being written, or the machine lacks something for a moment. */
static bool
is_lasting(int code)
{
    return code != ETXTBSY && code != ENOMEM && code != EAGAIN && code != EIO && code != ESTALE &&
           code != EMFILE && code != ENFILE;
}

static bool
any_has_run(struct worker *w)
{
    for (int i = 0; i < w->o.jobs && !w->start.has_run; i++)
        w->start.has_run = w->slots[i].child && child_has_started(w->slots[i].child);
    return w->start.has_run;
}

/* The command of this slot has started. */
static void
note_start(const struct slot *s)
{
    struct worker *w = s->w;

    w->start.has_run = true;
    if (s->started_us / 1000 >= w->start.at_ms) /* an older one does not show that it works again */
        w->start.wait_ms = 0;
}

/* Takes no jobs for a while, because a command could not be started. */
static void
wait_with_starts(struct worker *w, const char *why)
{
    int64_t now = clock_ms();

    for (int i = 0; i < w->o.jobs; i++) /* those that run for long have not said so yet */
        if (w->slots[i].child && child_has_started(w->slots[i].child))
            note_start(&w->slots[i]);
    if (w->start.wait_ms > 0 && now < w->start.at_ms) /* its job came together with the last one */
        return;
    if (w->start.wait_ms == 0)
        log_line(LOG_WARN, "%s; giving jobs back until the command can be run", why);
    w->start.wait_ms = w->start.wait_ms ? w->start.wait_ms * 2 : START_MS;
    if (w->start.wait_ms > START_MOST_MS)
        w->start.wait_ms = START_MOST_MS;
    w->start.at_ms = now + w->start.wait_ms;
}

/* A command that can't be run ends the worker, unless it has run before: then somebody replaces its
 * file, and the worker waits for the new one. With --drain it ends, because it must not wait for
 * ever. */
static void
start_failed(struct worker *w, int code)
{
    struct err e = {0};

    fail(&e, ERR_USAGE, "can't run %s: %s", w->node.path, strerror(code));
    if (is_lasting(code) && (w->o.drain || !any_has_run(w)))
        w->fatal = e;
    else
        wait_with_starts(w, e.text);
}

static void
on_child(void *ctx, const struct child_report *r)
{
    struct slot *s = ctx;
    struct worker *w = s->w;
    struct answer a = {.token = s->token, .server_started_ms = s->server_started_ms};
    enum answer_kind kind = ANSWER_FAIL;

    memcpy(a.id, s->id, sizeof a.id);
    if (r->end != CHILD_NOT_STARTED)
        note_start(s);
    if (cannot_start(r)) {
        start_failed(w, r->code);
        kind = ANSWER_GIVE_BACK;
    } else if (s->why == WHY_GIVE_BACK) {
        kind = ANSWER_GIVE_BACK;
        w->is_dirty = true;
    } else if (s->why == WHY_NOT && !r->timed_out && r->end == CHILD_EXITED && r->code == 0) {
        kind = ANSWER_COMPLETE;
        a.result = report_result(r, &a.result_len);
        if (r->output_all > r->output_len)
            log_line(LOG_WARN, "job %s: %" PRIu64 " bytes of output, %zu kept", s->id,
                     r->output_all, r->output_len);
    } else if (s->why != WHY_LOST) {
        fail_answer(&a, s, r);
        w->counts.timed_out += r->timed_out;
        log_line(LOG_INFO, "%s: %s", s->what, a.error);
    }
    if (s->why != WHY_LOST)
        answer_add(w, kind, &a);
    child_free(s->child);
    job_over(s);
}

/* The name of the job for the log. For functions it is only the id, because they are called too
 * often to make a text for each call. */
static const char *
slot_name(const struct slot *s)
{
    return s->what ? s->what : s->id;
}

void
job_kill(struct slot *s, enum slot_why why)
{
    struct worker *w = s->w;

    if (s->why == WHY_LOST || s->why == why)
        return;
    s->why = why;
    if (why == WHY_LOST) {
        w->counts.lost++;
        log_line(LOG_WARN, "%s: the lease is lost, killing the command", slot_name(s));
    } else
        log_line(LOG_INFO, "%s: ending the command%s", slot_name(s),
                 why == WHY_CANCELLED ? ", an operator cancelled the job" : "");
    atomic_store(&s->run.is_unwanted, true);
    if (s->child)
        child_kill(s->child, why == WHY_LOST ? 0 : w->o.grace_ms);
}

void
jobs_check(struct worker *w)
{
    for (int i = 0; i < w->o.jobs; i++)
        if (w->slots[i].child)
            child_check(w->slots[i].child);
}

/* --- the start --- */

static int64_t
extend_every(int64_t lease_ms)
{
    return lease_ms / 2 < EXTEND_MS ? lease_ms / 2 : EXTEND_MS;
}

static void
give_back(struct worker *w, const struct queue_job *job)
{
    struct answer a = {
        .token = {.lease = job->lease, .seq = job->seq, .version = job->version}
    };

    memcpy(a.id, job->id, sizeof a.id);
    answer_add(w, ANSWER_GIVE_BACK, &a);
}

static struct slot *
slot_find(struct worker *w)
{
    for (int i = 0; i < w->o.jobs && w->running < w->o.jobs; i++)
        if (!w->slots[i].is_busy)
            return &w->slots[i];
    return NULL;
}

static struct child *
start_child(struct slot *s, const struct queue_job *job, struct err *e)
{
    struct worker *w = s->w;
    char **env = env_make(w, job);
    struct child_start start = {.path = w->node.path,
                                .argv = w->o.argv,
                                .env = env,
                                .input = job->payload,
                                .input_len = job->payload_len,
                                .input_is_text = job->payload && !job->type,
                                .output_limit = w->o.result_limit,
                                .tail_limit = w->o.error_limit,
                                .run_timeout_ms = job->run_timeout_ms,
                                .grace_ms = w->o.grace_ms,
                                .may_leave = w->o.may_leave,
                                .guard = w->guard,
                                .place = (int)(s - w->slots)};
    struct child *c = child_new(w->loop, &start, on_child, s, e);

    env_free(env);
    return c;
}

static void
slot_take(struct slot *s, const struct queue_job *job, int64_t asked_ms)
{
    s->is_busy = true;
    s->w->running++;
    s->w->counts.started++;
    s->token = (struct queue_token){job->lease, job->seq, job->version};
    memcpy(s->id, job->id, sizeof s->id);
    s->lease_ms = job->lease_ms;
    s->over_ms = asked_ms + job->lease_ms;
    s->extend_at_ms = asked_ms + extend_every(job->lease_ms);
    s->started_us = clock_us();
    s->server_started_ms = job->lease_until_ms - job->lease_ms + s->started_us / 1000 - asked_ms;
    s->run_timeout_ms = job->run_timeout_ms;
}

static void
command_start(struct slot *s, const struct queue_job *job, int64_t asked_ms)
{
    struct worker *w = s->w;
    struct err e = {0};

    s->child = start_child(s, job, &e);
    if (!s->child) {
        wait_with_starts(w, e.text);
        give_back(w, job);
        return;
    }
    slot_take(s, job, asked_ms);
    s->what = xasprintf("%s%s%s %s try %d", job->queue, *job->kind ? "/" : "", job->kind, job->id,
                        job->try_);
    log_line(LOG_DEBUG, "%s: started", s->what);
}

void
job_start(struct worker *w, const struct queue_job *job, int64_t asked_ms)
{
    struct slot *s = slot_find(w);

    /* Whether the job must be given back: it came too late (this process was stopped), there is no
     * slot, or the worker ends. Another worker should get it. */
    if (!s || w->stop.how != STOP_NOT || w->fatal.kind != ERR_NONE ||
        clock_ms() >= asked_ms + job->lease_ms)
        give_back(w, job);
    else if (w->o.fn) {
        slot_take(s, job, asked_ms);
        call_start(s, job);
    } else
        command_start(s, job, asked_ms);
}

/* --- the lease --- */

static void
take_extension(struct worker *w, const struct queue_answer *a)
{
    int64_t over_ms = w->lease.sent_ms + a->lease_ms;

    for (int i = 0; i < w->o.jobs; i++) {
        struct slot *s = &w->slots[i];
        if (!s->is_busy || s->token.seq != a->seq || s->token.lease != a->lease)
            continue;
        if (a->outcome != QUEUE_EXTENDED) {
            job_kill(s, WHY_LOST);
            continue;
        }
        if (over_ms > s->over_ms)
            s->over_ms = over_ms;
        s->extend_at_ms = clock_ms() + extend_every(s->lease_ms);
        if (a->cancel_asked)
            job_kill(s, WHY_CANCELLED);
    }
}

static void
on_extend(void *ctx, const struct err *e, const struct queue_answer *a, int n)
{
    struct worker *w = ctx;

    w->lease.is_extending = false;
    if (e->kind != ERR_NONE) {
        w->lease.retry_ms = clock_ms() + EXTEND_RETRY_MS;
        log_line(LOG_DEBUG, "extend: %s", e->text);
    }
    for (int i = 0; i < n; i++)
        take_extension(w, &a[i]);
    worker_pump(w);
}

static bool
is_held(const struct slot *s)
{
    return s->is_busy && s->why != WHY_LOST && s->why != WHY_TIMEOUT;
}

/* Extends leases by the length that each was granted. One call serves all leases of nearly the same
 * length. */
static void
extend_like(struct worker *w, int64_t by_ms)
{
    struct queue_token tokens[EXTEND_MAX];
    int64_t started[EXTEND_MAX];
    int n = 0;

    for (int i = 0; i < w->o.jobs && n < EXTEND_MAX; i++) {
        const struct slot *s = &w->slots[i];
        if (!is_held(s) || s->lease_ms < by_ms - by_ms / 20 || s->lease_ms > by_ms + by_ms / 20)
            continue;
        tokens[n] = s->token;
        started[n++] = s->token.seq;
    }
    struct queue_extend x = {
        .jobs = tokens, .n = n, .started = started, .nstarted = n, .by_ms = by_ms};
    w->lease.is_extending = true;
    w->lease.sent_ms = clock_ms();
    queue_wait(w->queue, 0);
    queue_extend(w->queue, w->node.name, &x, on_extend, w);
}

/* The time at which a function has run too long. From then on queuetop_unwanted returns true, and
 * the lease is not extended. */
static int64_t
call_over_ms(const struct slot *s)
{
    return s->child || s->run_timeout_ms == 0 ? INT64_MAX
                                              : s->started_us / 1000 + s->run_timeout_ms;
}

void
jobs_count_suspension(struct worker *w)
{
    int64_t slept = clock_slept_ms(), more = slept - w->lease.slept_ms;

    if (more < SUSPEND_MS)
        return;
    w->lease.slept_ms = slept;
    w->claim.sent_ms -= more;
    w->lease.sent_ms -= more;
    for (int i = 0; i < w->o.jobs; i++) {
        w->slots[i].over_ms -= more;
        w->slots[i].extend_at_ms -= more;
    }
    for (int i = 0; i < w->held.n; i++)
        w->held.items[i].asked_ms -= more;
}

void
jobs_keep(struct worker *w)
{
    const struct slot *first = NULL;

    jobs_count_suspension(w);
    int64_t now = clock_ms();
    for (int i = 0; i < w->o.jobs; i++) {
        struct slot *s = &w->slots[i];
        /* if the command has ended while this process was stopped, its answer is still sent; the
         * server may refuse it */
        if (is_held(s) && now >= s->over_ms && !(s->child && child_check(s->child)))
            job_kill(s, WHY_LOST);
        if (is_held(s) && now >= call_over_ms(s))
            job_kill(s, WHY_TIMEOUT);
        if (is_held(s) && now >= s->extend_at_ms && (!first || s->over_ms < first->over_ms))
            first = s;
    }
    if (first && !w->lease.is_extending && now >= w->lease.retry_ms)
        extend_like(w, first->lease_ms);
}

int64_t
jobs_due_ms(const struct worker *w)
{
    int64_t due = INT64_MAX;

    for (int i = 0; i < w->o.jobs; i++) {
        const struct slot *s = &w->slots[i];
        if (!is_held(s))
            continue;
        int64_t extend = s->extend_at_ms > w->lease.retry_ms ? s->extend_at_ms : w->lease.retry_ms;
        if (s->over_ms < due)
            due = s->over_ms;
        if (call_over_ms(s) < due)
            due = call_over_ms(s);
        if (!w->lease.is_extending && extend < due)
            due = extend;
    }
    return due;
}

int
jobs_leases(const struct worker *w, int64_t *leases)
{
    int n = 0;

    for (int i = 0; i < w->o.jobs; i++)
        if (w->slots[i].is_busy)
            leases[n++] = w->slots[i].token.lease;
    return n;
}
