/*
 * Answers on their way to the server. Each kind has an outbox and at most one call out; answers
 * that come meanwhile go with the next call. An answer leaves the outbox when the server has
 * answered for it. If the connection breaks, the answers that were out are in doubt: they are sent
 * again, and "gone" or "lost" then means that they had perhaps arrived. If the server rejects the
 * content of a call, the call is taken apart, so that one bad job can't hold up the others.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/worker/worker_parts.h"

enum { BATCH = 500, BACKOFF_MS = 250, BACKOFF_MAX_MS = 5000 };
static const size_t batch_bytes = 8 << 20;

static void
answer_done(struct answer *a)
{
    free(a->result);
    free(a->error);
    free(a->trace);
    *a = (struct answer){0};
}

void
answer_add(struct worker *w, enum answer_kind kind, struct answer *a)
{
    struct outbox *box = &w->box[kind];

    if (box->n == box->cap) {
        box->cap = box->cap ? box->cap * 2 : 64;
        box->items = xreallocarray(box->items, (size_t)box->cap, sizeof *box->items);
    }
    box->items[box->n++] = *a;
    *a = (struct answer){0};
}

int
answers_left(const struct worker *w)
{
    int n = 0;

    for (int i = 0; i < ANSWER_KINDS; i++)
        n += w->box[i].n;
    return n;
}

int
answers_leases(const struct worker *w, int64_t *leases)
{
    int n = 0;

    for (int k = 0; k < ANSWER_KINDS; k++)
        for (int i = 0; i < w->box[k].n; i++)
            leases[n++] = w->box[k].items[i].token.lease;
    return n;
}

int64_t
answers_due_ms(const struct worker *w)
{
    int64_t due = INT64_MAX;

    for (int i = 0; i < ANSWER_KINDS; i++)
        if (w->box[i].n > 0 && w->box[i].flying == 0 && w->box[i].retry_at_ms < due)
            due = w->box[i].retry_at_ms;
    return due;
}

void
answers_free(struct worker *w)
{
    for (int k = 0; k < ANSWER_KINDS; k++) {
        for (int i = 0; i < w->box[k].n; i++)
            answer_done(&w->box[k].items[i]);
        free(w->box[k].items);
        w->box[k] = (struct outbox){.w = w};
    }
}

/* --- what came back --- */

static void
count_refused(struct worker *w, const struct answer *a, enum queue_outcome outcome)
{
    const char *word = outcome == QUEUE_LOST ? "lost" : "gone";

    if (a->in_doubt) {
        log_line(LOG_INFO, "job %s: the answer was sent twice, now it is %s: perhaps it was done",
                 a->id, word);
        return;
    }
    w->counts.lost++;
    log_line(LOG_WARN, "job %s: answer refused, the lease is %s", a->id, word);
}

static void
count_answer(struct worker *w, enum answer_kind kind, const struct answer *a,
             enum queue_outcome outcome)
{
    switch (outcome) {
    case QUEUE_DONE:
        w->counts.done++;
        break;
    case QUEUE_RETRY:
    case QUEUE_FAILED:
        w->counts.failed++;
        break;
    case QUEUE_CANCELLED:
        w->counts.cancelled++;
        break;
    case QUEUE_GIVEN_BACK:
        w->counts.given_back++;
        break;
    case QUEUE_EXTENDED:
        break;
    case QUEUE_LOST:
    case QUEUE_GONE:
        count_refused(w, a, outcome);
        break;
    }
    log_line(LOG_DEBUG, "job %s: %s", a->id,
             kind == ANSWER_COMPLETE ? "completed"
             : kind == ANSWER_FAIL   ? "failed"
                                     : "given back");
}

static void
drop_flying(struct outbox *box)
{
    for (int i = 0; i < box->flying; i++)
        answer_done(&box->items[i]);
    box->n -= box->flying;
    memmove(box->items, box->items + box->flying, sizeof *box->items * (size_t)box->n);
    box->flying = 0;
}

/* True if the server refuses the content of the call, so asking again is useless. Only a call
 * without a claim proves this (on_both). A failed CHECK does not: it means that history has no
 * partition for today, and the scheduler's next step makes the partition. */
static bool
is_content(const struct err *e)
{
    if (!strcmp(e->sqlstate, "23514"))
        return false;
    return e->kind == ERR_REFUSED || e->kind == ERR_DATA || !strncmp(e->sqlstate, "22", 2) ||
           !strncmp(e->sqlstate, "23", 2) || !strncmp(e->sqlstate, "54", 2);
}

/* The server rejects one single answer. Sends the answer without its texts; if that is rejected
 * too, sends a failure of the job; if that is rejected too, writes a log line and drops the answer.
 */
static void
take_apart(struct outbox *box, enum answer_kind kind, const struct err *e)
{
    struct answer *a = &box->items[0];

    log_line(LOG_WARN, "job %s: the server refuses its answer: %s", a->id, e->text);
    if (kind == ANSWER_COMPLETE) {
        struct answer failure = *a;
        free(failure.result);
        failure.result = NULL;
        failure.error = xasprintf("the result was refused: %s", e->text);
        *a = (struct answer){0};
        answer_add(box->w, ANSWER_FAIL, &failure);
    } else if (kind == ANSWER_FAIL && !a->bared) {
        a->bared = true;
        free(a->error);
        free(a->trace);
        a->error = xstrdup("failed; the server refused the error's text");
        a->trace = NULL;
        box->flying = 0;
        return;
    }
    box->flying = 1;
    drop_flying(box);
}

static void
answer_failed(struct outbox *box, enum answer_kind kind, const struct err *e)
{
    bool in_doubt = queue_in_doubt(box->w->queue);
    int flying = box->flying;

    box->flying = 0;
    if (e->kind == ERR_CONN) {
        for (int i = 0; i < flying; i++)
            box->items[i].in_doubt |= in_doubt;
        return; /* the next call waits for the connection */
    }
    if (is_content(e) && flying == 1) {
        take_apart(box, kind, e);
        return;
    }
    if (is_content(e)) {
        for (int i = 0; i < flying; i++)
            box->items[i].alone = true;
        return;
    }
    box->backoff_ms = box->backoff_ms ? box->backoff_ms * 2 : BACKOFF_MS;
    if (box->backoff_ms > BACKOFF_MAX_MS)
        box->backoff_ms = BACKOFF_MAX_MS;
    box->retry_at_ms = clock_ms() + box->backoff_ms;
    log_line(LOG_WARN, "%d answers wait: %s", box->n, e->text);
}

static void
answers_done(struct outbox *box, const struct err *e, const struct queue_answer *a, int n)
{
    struct worker *w = box->w;
    enum answer_kind kind = (enum answer_kind)(box - w->box);

    if (e->kind != ERR_NONE) {
        answer_failed(box, kind, e);
    } else {
        for (int i = 0; i < n && i < box->flying; i++)
            count_answer(w, kind, &box->items[i], a[i].outcome);
        box->backoff_ms = 0;
        box->retry_at_ms = 0;
        drop_flying(box);
    }
}

static void
on_answer(void *ctx, const struct err *e, const struct queue_answer *a, int n)
{
    struct outbox *box = ctx;

    answers_done(box, e, a, n);
    worker_pump(box->w);
}

/* Sends answers and the claim of the next jobs in one call. An error may come from the claim, which
 * also does the scheduler's step if no scheduler lives. So after an error the same answers are sent
 * again without a claim, before any answer is blamed or has to wait. */
static void
on_both(void *ctx, const struct err *e, const struct queue_answer *a, int n,
        const struct queue_job *jobs, int njobs)
{
    struct outbox *box = ctx;

    if (e->kind != ERR_NONE && e->kind != ERR_CONN) {
        log_line(LOG_DEBUG, "answers with a claim: %s; sending the answers alone", e->text);
        box->flying = 0;
        box->plain = true;
    } else
        answers_done(box, e, a, n);
    if (e->kind != ERR_NONE && is_content(e))
        box->w->claim.is_out = false; /* if the claim caused the error, the next claim reports it */
    else
        claim_done(box->w, e, jobs, njobs, NULL);
    worker_pump(box->w);
}

/* --- sending --- */

static int
batch_size(const struct outbox *box)
{
    size_t bytes = 0;
    int n = 0;

    while (n < box->n && n < BATCH && bytes < batch_bytes) {
        const struct answer *a = &box->items[n];
        if (a->alone && n > 0)
            break;
        bytes +=
            a->result_len + (a->error ? strlen(a->error) : 0) + (a->trace ? strlen(a->trace) : 0);
        n++;
        if (a->alone)
            break;
    }
    return n;
}

static void
send_complete(struct outbox *box, int n)
{
    struct queue_done jobs[BATCH];

    for (int i = 0; i < n; i++) {
        const struct answer *a = &box->items[i];
        jobs[i] = (struct queue_done){.token = a->token,
                                      .started_ms = a->server_started_ms,
                                      .result = a->result,
                                      .result_len = a->result_len};
    }
    bool plain = box->plain || box->items[0].alone;
    box->plain = false;
    if (!plain && may_claim(box->w) && clock_ms() >= box->w->claim.at_ms) {
        struct queue_claim claim = claim_of(box->w, clock_ms());
        queue_wait(box->w->queue, 0);
        queue_complete_and_claim(box->w->queue, jobs, n, &claim, on_both, box);
    } else
        queue_complete(box->w->queue, box->w->node.name, jobs, n, on_answer, box);
}

static void
send_fail(struct outbox *box, int n)
{
    struct queue_failure jobs[BATCH];

    for (int i = 0; i < n; i++) {
        const struct answer *a = &box->items[i];
        jobs[i] = (struct queue_failure){.token = a->token,
                                         .started_ms = a->server_started_ms,
                                         .error = a->error,
                                         .trace = a->trace,
                                         .outcome = a->outcome,
                                         .retry_in_ms = a->retry_in_ms > 0 ? a->retry_in_ms : -1,
                                         .final = a->final};
    }
    queue_fail(box->w->queue, box->w->node.name, jobs, n, on_answer, box);
}

static void
send_give_back(struct outbox *box, int n)
{
    struct queue_token tokens[BATCH];

    for (int i = 0; i < n; i++)
        tokens[i] = box->items[i].token;
    queue_give_back(box->w->queue, box->w->node.name, tokens, n, on_answer, box);
}

/* True if the answers may wait for the next claim and go with it: while jobs are short and a claim
 * is out. */
static bool
may_wait(const struct worker *w, int kind)
{
    return kind == ANSWER_COMPLETE && w->claim.is_out && w->held.most > 0 && !w->claim.was_short &&
           w->stop.how == STOP_NOT;
}

void
answers_send(struct worker *w)
{
    static void (*const send[ANSWER_KINDS])(struct outbox *, int) = {
        [ANSWER_COMPLETE] = send_complete,
        [ANSWER_FAIL] = send_fail,
        [ANSWER_GIVE_BACK] = send_give_back,
    };

    /* completions go last, because a claim goes with them: the jobs of the other answers would
     * still count beside those that it takes */
    for (int k = ANSWER_KINDS - 1; k >= 0; k--) {
        struct outbox *box = &w->box[k];
        if (box->n == 0 || box->flying > 0 || box->retry_at_ms > clock_ms() || may_wait(w, k))
            continue;
        box->w = w;
        box->flying = batch_size(box);
        queue_wait(w->queue, -1);
        send[k](box, box->flying);
    }
}
