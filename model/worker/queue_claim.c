/*
 * Claiming, in its three forms: claim, claim_or_wait (an idle worker), complete_and_claim (a busy
 * one). All answers have one decoder: a row with an outcome is about a job that was answered for, a
 * row without a lease says how to wait, any other row is a job.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "model/worker/queue_parts.h"

struct claim_call {
    struct queue *q;
    queue_claim_fn *fn; /* one of the three */
    queue_sleep_fn *sleep_fn;
    queue_both_fn *both_fn;
    void *ctx;
    int n; /* answers: done unless a row says otherwise */
    struct queue_answer answers[];
};

struct claim_row { /* a row of the answer; becomes a struct queue_job */
    int64_t lease, seq, lease_until_ms, lease_ms, run_timeout_ms;
    int version, priority, try_, max_tries, slot, wait_ms;
    const char *id, *queue, *kind, *outcome;
};

#define F(field) offsetof(struct claim_row, field)
/* column, type, offset, optional */
static const struct field claim_fields[] = {
    {"lease",          F_I64, F(lease),          false},
    {"seq",            F_I64, F(seq),            false},
    {"version",        F_INT, F(version),        false},
    {"id",             F_STR, F(id),             false},
    {"queue",          F_STR, F(queue),          false},
    {"kind",           F_STR, F(kind),           false},
    {"priority",       F_INT, F(priority),       false},
    {"try",            F_INT, F(try_),           false},
    {"max_tries",      F_INT, F(max_tries),      false},
    {"lease_until_ms", F_I64, F(lease_until_ms), false},
    {"lease_ms",       F_I64, F(lease_ms),       false},
    {"run_timeout_ms", F_I64, F(run_timeout_ms), false},
    {"slot",           F_INT, F(slot),           true },
    {"wait_ms",        F_INT, F(wait_ms),        true },
    {"outcome",        F_STR, F(outcome),        true },
};
#undef F

/* JSON as the server's text, or the body's bytes in *bytes, which the caller frees. */
static void
take_payload(const struct result *r, int row, struct queue_job *job, unsigned char **bytes)
{
    int json = result_col(r, "payload"), body = result_col(r, "body");
    int type = result_col(r, "payload_type");

    if (json >= 0 && !result_null(r, row, json)) {
        job->payload = result_text(r, row, json);
        job->payload_len = (size_t)result_len(r, row, json);
    } else if (body >= 0 && !result_null(r, row, body)) {
        *bytes = result_bytes(r, row, body, &job->payload_len);
        job->payload = *bytes ? (const char *)*bytes : "";
        job->type = type >= 0 && !result_null(r, row, type) ? result_text(r, row, type) : "";
    }
}

static void
take_job(const struct rowset *set, int i, struct queue_job *job, unsigned char **bytes)
{
    const struct claim_row *row = (const struct claim_row *)set->rows + i;

    *job = (struct queue_job){
        .lease = row->lease,
        .seq = row->seq,
        .version = row->version,
        .queue = row->queue,
        .kind = row->kind,
        .priority = row->priority,
        .try_ = row->try_,
        .max_tries = row->max_tries,
        .lease_until_ms = row->lease_until_ms,
        .lease_ms = row->lease_ms,
        .run_timeout_ms = row->run_timeout_ms == FIELD_NULL ? 0 : row->run_timeout_ms,
    };
    snprintf(job->id, sizeof job->id, "%s", row->id);
    take_payload(set->res, i, job, bytes);
}

/* A row of complete_and_claim that says that the server did not accept "done" for a job. */
static bool
take_refusal(struct claim_call *call, const struct claim_row *row, struct err *e)
{
    for (int i = 0; i < call->n; i++)
        if (call->answers[i].seq == row->seq)
            return queue_outcome_of(row->outcome, &call->answers[i].outcome, e);
    return true;
}

static void
say_rows(const struct claim_call *call, const struct rowset *set, const struct queue_job *jobs,
         int n)
{
    const struct claim_row *last = set->n > 0 ? (struct claim_row *)set->rows + set->n - 1 : NULL;
    struct queue_sleep sleep = {.slot = -1};
    struct err none = {0};

    if (n == 0 && last && last->slot != INT_MIN)
        sleep = (struct queue_sleep){.slot = last->slot, .wait_ms = last->wait_ms};
    if (call->both_fn)
        call->both_fn(call->ctx, &none, call->answers, call->n, jobs, n);
    else if (call->sleep_fn)
        call->sleep_fn(call->ctx, &none, jobs, n, n == 0 ? &sleep : NULL);
    else
        call->fn(call->ctx, &none, jobs, n);
}

static void
say_error(const struct claim_call *call, const struct err *e)
{
    if (call->both_fn)
        call->both_fn(call->ctx, e, NULL, 0, NULL, 0);
    else if (call->sleep_fn)
        call->sleep_fn(call->ctx, e, NULL, 0, NULL);
    else
        call->fn(call->ctx, e, NULL, 0);
}

static bool
claim_rows(struct claim_call *call, const struct rowset *set, struct err *e)
{
    struct queue_job *jobs = xcalloc((size_t)set->n + 1, sizeof *jobs);
    unsigned char **bodies = xcalloc((size_t)set->n + 1, sizeof *bodies);
    int n = 0;
    bool ok = true;

    for (int i = 0; i < set->n && ok; i++) {
        const struct claim_row *row = (const struct claim_row *)set->rows + i;
        if (*row->outcome) {
            ok = take_refusal(call, row, e);
            continue;
        }
        if (row->lease == FIELD_NULL)
            continue;
        take_job(set, i, &jobs[n], &bodies[n]);
        n++;
    }
    if (ok)
        say_rows(call, set, jobs, n);
    for (int i = 0; i < n; i++)
        free(bodies[i]);
    free(bodies);
    free(jobs);
    return ok;
}

static void
claim_reply(void *ctx, struct db_reply *reply)
{
    struct claim_call *call = ctx;
    struct rowset set = {0};
    struct err e = reply->err;
    bool ok = e.kind == ERR_NONE && rowset_decode(db_take(reply, 0), claim_fields,
                                                  sizeof claim_fields / sizeof *claim_fields,
                                                  sizeof(struct claim_row), &set, &e);

    call->q->in_doubt = reply->in_doubt;
    if (!ok || !claim_rows(call, &set, &e))
        say_error(call, &e);
    rowset_free(&set);
    free(call);
}

/* --- asking --- */

/* The parameters that every form has; the buffers live until the call is sent. */
struct claim_words {
    struct array queues;
    char n[16], timeout[40], pid[16], slot[16];
};

static struct claim_call *
call_new(struct queue *q, int n, void *ctx)
{
    struct claim_call *call = xcalloc(1, sizeof *call + sizeof *call->answers * (size_t)n);

    call->q = q;
    call->n = n;
    call->ctx = ctx;
    return call;
}

void
queue_claim(struct queue *q, const struct queue_claim *c, queue_claim_fn *fn, void *ctx)
{
    struct claim_call *call = call_new(q, 0, ctx);
    struct claim_words w;

    call->fn = fn;
    snprintf(w.n, sizeof w.n, "%d", c->n);
    struct db_param params[] = {
        queue_text(c->node),
        queue_text(w.n),
        queue_interval(w.timeout, c->timeout_ms),
        queue_names(&w.queues, c->queues, c->nqueues),
        queue_text(c->start ? "t" : "f"),
    };
    queue_send(q, SQL_CLAIM, params, 5, claim_reply, call);
    array_free(&w.queues);
}

void
queue_claim_or_wait(struct queue *q, const struct queue_claim *c, bool wait, int slot,
                    queue_sleep_fn *fn, void *ctx)
{
    struct claim_call *call = call_new(q, 0, ctx);
    struct claim_words w;

    call->sleep_fn = fn;
    snprintf(w.n, sizeof w.n, "%d", c->n);
    snprintf(w.pid, sizeof w.pid, "%d", db_backend_pid(q->db));
    snprintf(w.slot, sizeof w.slot, "%d", slot);
    struct db_param params[] = {
        queue_text(c->node),
        queue_text(w.n),
        queue_interval(w.timeout, c->timeout_ms),
        queue_names(&w.queues, c->queues, c->nqueues),
        queue_text(c->start ? "t" : "f"),
        queue_text(wait ? w.pid : NULL),
        queue_text(w.slot),
    };
    queue_send(q, SQL_CLAIM_OR_WAIT, params, 7, claim_reply, call);
    array_free(&w.queues);
}

enum { LEASES, VERSIONS, SEQS, STARTED, RESULTS, ARRAYS };

static void
done_arrays(struct array a[static ARRAYS], const struct queue_done *done, int n)
{
    static const enum array_type types[ARRAYS] = {ARRAY_I64, ARRAY_I32, ARRAY_I64, ARRAY_TIME,
                                                  ARRAY_BYTES};

    for (int i = 0; i < ARRAYS; i++)
        array_start(&a[i], types[i], n);
    for (int i = 0; i < n; i++) {
        array_i64(&a[LEASES], done[i].token.lease);
        array_i32(&a[VERSIONS], done[i].token.version);
        array_i64(&a[SEQS], done[i].token.seq);
        if (done[i].started_ms)
            array_time(&a[STARTED], done[i].started_ms);
        else
            array_null(&a[STARTED]);
        array_bytes(&a[RESULTS], done[i].result, done[i].result_len);
    }
}

void
queue_complete_and_claim(struct queue *q, const struct queue_done *done, int n,
                         const struct queue_claim *c, queue_both_fn *fn, void *ctx)
{
    struct claim_call *call = call_new(q, n, ctx);
    struct array a[ARRAYS];
    struct claim_words w;
    bool has_results = false;

    call->both_fn = fn;
    for (int i = 0; i < n; i++) {
        call->answers[i] = (struct queue_answer){
            .lease = done[i].token.lease, .seq = done[i].token.seq, .outcome = QUEUE_DONE};
        has_results |= done[i].result != NULL;
    }
    done_arrays(a, done, n);
    snprintf(w.n, sizeof w.n, "%d", c->n);
    struct db_param params[] = {
        queue_text(c->node),
        db_array(&a[LEASES]),
        db_array(&a[VERSIONS]),
        db_array(&a[SEQS]),
        db_array(&a[STARTED]),
        has_results ? db_array(&a[RESULTS]) : (struct db_param){0},
        queue_text(w.n),
        queue_interval(w.timeout, c->timeout_ms),
        queue_names(&w.queues, c->queues, c->nqueues),
        queue_text(c->start ? "t" : "f"),
    };
    queue_send(q, SQL_COMPLETE_AND_CLAIM, params, 10, claim_reply, call);
    for (int i = 0; i < ARRAYS; i++)
        array_free(&a[i]);
    array_free(&w.queues);
}
