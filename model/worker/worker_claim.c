/*
 * Getting jobs. If there are answers to deliver, the claim goes with them (worker_answer.c).
 * Otherwise it is claim_or_wait: if there is no job, this session waits in a slot on the server,
 * and a NOTIFY ends the wait. We still look once a second, because some things send no NOTIFY: a
 * process that was stopped before it could, a server that came back. If we can't wait (a pooler,
 * all slots taken, --poll) we look more often.
 */
#include <limits.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/worker/worker_parts.h"

enum {
    POLL_MIN_MS = 20,
    POLL_MAX_MS = 100,
    RETRY_MS = 250,
    CLAIM_RETRY_MS = 1000,
    ANSWERS_MAX = 5000, /* the worker claims nothing while more answers wait */
    AHEAD_US = 50000    /* jobs claimed ahead should begin within this time */
};

/* How many jobs to claim now. Short jobs are claimed ahead: while the jobs of one claim run, the
 * next claim is on its way. */
static int
room(const struct worker *w)
{
    int most = w->o.jobs > w->held.most ? w->o.jobs : w->held.most;
    int left = w->o.jobs + 2 * w->held.most - w->running - w->held.n - w->held.coming;

    return left < most ? left : most;
}

/* True if only the time may be against a claim. */
static bool
wants_jobs(const struct worker *w)
{
    return w->node.is_registered && w->stop.how == STOP_NOT && w->fatal.kind == ERR_NONE &&
           !w->node.is_paused && !w->claim.is_out && !w->sleep.is_asking && !w->node.is_tidying &&
           room(w) > 0 && answers_left(w) < ANSWERS_MAX;
}

bool
may_claim(const struct worker *w)
{
    return wants_jobs(w) && (w->start.wait_ms == 0 || clock_ms() >= w->start.at_ms);
}

int64_t
claims_due_ms(const struct worker *w)
{
    if (!wants_jobs(w))
        return INT64_MAX;
    return w->claim.at_ms > w->start.at_ms ? w->claim.at_ms : w->start.at_ms;
}

struct queue_claim
claim_of(struct worker *w, int64_t now)
{
    w->claim.is_out = true;
    w->claim.is_woken = false;
    w->claim.sent_ms = now;
    return (struct queue_claim){.node = w->node.name,
                                .n = w->claim.n = room(w),
                                .timeout_ms = w->o.timeout_ms,
                                .queues = w->o.queues,
                                .nqueues = w->o.nqueues,
                                .start = true};
}

static void
on_ahead(void *ctx, const struct err *e, const struct queue_job *jobs, int n)
{
    struct worker *w = ctx;

    claim_done(w, e, jobs, n, NULL);
    worker_pump(w);
}

/* Sends the next claim before the jobs that have just come are started. */
static void
claim_ahead(struct worker *w)
{
    answers_send(w);
    if (!may_claim(w))
        return;
    struct queue_claim claim = claim_of(w, clock_ms());
    queue_wait(w->queue, 0);
    queue_claim(w->queue, &claim, on_ahead, w);
}

/* --- what came back --- */

static void
claim_failed(struct worker *w, const struct err *e)
{
    if (queue_in_doubt(w->queue))
        w->node.untidy = 2;
    if (err_is_outdated(e) && w->counts.started == 0) /* waiting does not help */
        w->fatal = *e;
    w->claim.at_ms = clock_ms() + RETRY_MS;
    if (e->kind != ERR_CONN)
        w->claim.at_ms += CLAIM_RETRY_MS;
    if (e->kind != ERR_CONN && strcmp(w->claim.said.text, e->text) != 0)
        log_line(LOG_WARN, "claim: %s; trying again", e->text);
    w->claim.said = *e;
}

/* Doubles the wait before the next claim. */
static void
poll_later(struct worker *w, int least_ms, int most_ms)
{
    w->claim.idle_wait_ms = w->claim.idle_wait_ms ? w->claim.idle_wait_ms * 2 : least_ms;
    if (w->claim.idle_wait_ms > most_ms)
        w->claim.idle_wait_ms = most_ms;
}

/* The claim found nothing: sets the time of the next claim. */
static void
pace_claims(struct worker *w, const struct queue_sleep *sleep)
{
    int64_t now = clock_ms();

    if (sleep) /* slot -1: a push is under way and slot 0 is free; perhaps we had slot 0 last */
        w->sleep.is_first = sleep->slot == 0 || (w->sleep.is_first && sleep->slot == -1);
    if (!sleep || w->claim.is_woken) { /* that claim went with answers and does not wait in a slot:
                                    claim again at once */
        w->claim.at_ms = now;
        return;
    }
    w->sleep.slot = sleep->slot;
    db_own_session(w->db, sleep->slot >= 0);
    if (sleep->slot >= 0) {
        if (sleep->slot != w->sleep.listen_slot)
            w->sleep.listens_to_all = false; /* a claim for another slot begins with UNLISTEN */
        w->sleep.listen_slot = sleep->slot;
        w->sleep.listen_pid = db_backend_pid(w->db);
    }
    if (sleep->slot >= 0) {
        w->claim.idle_wait_ms = 0;
        w->claim.at_ms = now + sleep->wait_ms;
        return;
    }
    if (sleep->slot == -1) /* a push is under way; if its transaction stays open, asking again
                              without a pause would use a whole core */
        poll_later(w, sleep->wait_ms, POLL_MAX_MS / 2);
    else
        poll_later(w, POLL_MIN_MS, sleep->wait_ms < POLL_MAX_MS ? sleep->wait_ms : POLL_MAX_MS);
    w->claim.at_ms = now + w->claim.idle_wait_ms;
}

static void
pace_idle(struct worker *w, const struct queue_sleep *sleep)
{
    if (!w->claim.was_idle)
        w->claim.idle_since_ms = clock_ms();
    w->claim.was_idle = true;
    pace_claims(w, sleep);
    int64_t over_ms = w->claim.idle_since_ms + w->o.max_idle_ms;
    if (w->o.max_idle_ms > 0 && w->claim.sent_ms < over_ms && over_ms < w->claim.at_ms)
        w->claim.at_ms = over_ms; /* the last claim before --max-idle ends the worker */
}

static void
on_wake(void *ctx, const struct err *e, const char *text)
{
    (void)ctx, (void)text;
    if (e->kind != ERR_NONE)
        log_line(LOG_DEBUG, "wake: %s", e->text);
}

/* Sets how many jobs to claim ahead: as many as will begin within AHEAD_US. The number starts at 0
 * and doubles each time that a claim gets all the jobs it asked for. */
static void
pace_ahead(struct worker *w, int n)
{
    int64_t most = w->held.job_us > 0 ? w->o.jobs * AHEAD_US / w->held.job_us : w->o.ahead;

    if (n >= w->claim.n && w->held.most < w->o.ahead)
        w->held.most = w->held.most > 0 ? 2 * w->held.most : 1;
    if (w->held.most > w->o.ahead)
        w->held.most = w->o.ahead;
    if (w->held.most > most)
        w->held.most = (int)most;
}

static void
start_all(struct worker *w, const struct queue_job *jobs, int n)
{
    int64_t asked_ms = w->claim.sent_ms;

    w->held.coming = n;
    if (n >= w->claim.n && w->held.most > 0 && w->running + w->held.n == 0)
        claim_ahead(w);
    for (int i = 0; i < n; i++) {
        w->held.coming--;
        if (w->o.fn && (w->held.n > 0 || w->running >= w->o.jobs))
            held_add(w, &jobs[i], asked_ms);
        else
            job_start(w, &jobs[i], asked_ms);
    }
}

void
claim_done(struct worker *w, const struct err *e, const struct queue_job *jobs, int n,
           const struct queue_sleep *sleep)
{
    w->claim.is_out = false;
    w->sleep.slot = -1;
    jobs_count_suspension(w);
    if (e->kind != ERR_NONE) {
        claim_failed(w, e);
        return;
    }
    if (n == 0) {
        pace_idle(w, sleep);
        return;
    }
    w->claim.idle_wait_ms = 0;
    w->claim.idle_since_ms = clock_ms();
    w->claim.is_empty = false;
    w->claim.was_idle = false;
    sleep_later(w);
    w->claim.was_short = n < w->claim.n;
    w->claim.at_ms = w->claim.idle_since_ms;
    pace_ahead(w, n);
    start_all(w, jobs, n);
    if (w->sleep.is_first && room(w) <= 0) { /* another worker should wait in slot 0 */
        w->sleep.is_first = false;
        queue_wait(w->queue, 0);
        queue_wake(w->queue, 1, on_wake, w);
    }
}

static void
on_claim(void *ctx, const struct err *e, const struct queue_job *jobs, int n,
         const struct queue_sleep *sleep)
{
    struct worker *w = ctx;

    claim_done(w, e, jobs, n, sleep);
    worker_pump(w);
}

/* --- asking --- */

void
claims_wake(void *ctx, const char *channel)
{
    struct worker *w = ctx;

    (void)channel; /* this connection listens to one */
    w->claim.is_woken = true;
    sleep_end(w);
    if (w->sleep.slot < 0 || w->claim.is_out || w->sleep.is_asking)
        return;
    w->claim.at_ms = clock_ms();
    worker_pump(w);
}

static void
ask(struct worker *w, struct queue_claim claim)
{
    bool same = w->sleep.listen_pid == db_backend_pid(w->db);

    queue_wait(w->queue, 0);
    queue_claim_or_wait(w->queue, &claim, !w->o.poll, same ? w->sleep.listen_slot : -1, on_claim,
                        w);
}

/* A worker that takes no more jobs leaves its slot, so that a push wakes another one. */
static void
leave_slot(struct worker *w, int64_t now)
{
    if (w->sleep.slot < 0 || w->claim.is_out || (w->stop.how == STOP_NOT && !w->node.is_paused))
        return;
    struct queue_claim claim = claim_of(w, now);
    claim.n = 0;
    ask(w, claim);
}

void
claims_make(struct worker *w, int64_t now)
{
    leave_slot(w, now);
    if (may_claim(w) && now >= w->claim.at_ms)
        ask(w, claim_of(w, now));
}
