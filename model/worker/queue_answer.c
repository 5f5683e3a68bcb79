/*
 * The calls that answer for jobs: complete, fail, extend, give_back. Each call keeps the tokens
 * that it sent. A token that is missing in the answer counts as lost, because the server has no
 * lease for it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/array.h"
#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "model/worker/queue_parts.h"

struct answer_call {
    struct queue *q;
    queue_answer_fn *fn;
    void *ctx;
    bool by_lease; /* extend answers a lease, the others a job */
    int n;
    struct queue_token tokens[];
};

struct answer_row {
    int64_t lease, seq, lease_until_ms, lease_ms;
    const char *outcome, *cancel;
};

#define F(field) offsetof(struct answer_row, field)
/* column, type, offset, optional */
static const struct field answer_fields[] = {
    {"lease",          F_I64, F(lease),          true },
    {"seq",            F_I64, F(seq),            true },
    {"lease_until_ms", F_I64, F(lease_until_ms), true },
    {"lease_ms",       F_I64, F(lease_ms),       true },
    {"outcome",        F_STR, F(outcome),        false},
    {"cancel",         F_STR, F(cancel),         true },
};
#undef F

static const struct {
    const char *word;
    enum queue_outcome outcome;
} outcomes[] = {
    {"done",       QUEUE_DONE      },
    {"retry",      QUEUE_RETRY     },
    {"failed",     QUEUE_FAILED    },
    {"cancelled",  QUEUE_CANCELLED },
    {"given back", QUEUE_GIVEN_BACK},
    {"extended",   QUEUE_EXTENDED  },
    {"lost",       QUEUE_LOST      },
    {"gone",       QUEUE_GONE      },
};

bool
queue_outcome_of(const char *word, enum queue_outcome *out, struct err *e)
{
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        if (!strcmp(word, outcomes[i].word)) {
            *out = outcomes[i].outcome;
            return true;
        }
    return fail(e, ERR_DATA, "the server answered an unknown outcome '%s'", word);
}

/* Is seq among numbers parted by spaces? */
static bool
is_listed(const char *list, int64_t seq)
{
    char *end = NULL;

    for (const char *at = list; at && *at; at = end) {
        int64_t value = strtoll(at, &end, 10);
        if (end == at)
            return false;
        if (value == seq)
            return true;
    }
    return false;
}

static bool
take_row(const struct answer_call *call, const struct answer_row *row, struct queue_answer *a,
         struct err *e)
{
    for (int i = 0; i < call->n; i++) {
        const struct queue_token *t = &call->tokens[i];
        if (call->by_lease ? t->lease != row->lease : t->seq != row->seq)
            continue;
        if (!queue_outcome_of(row->outcome, &a[i].outcome, e))
            return false;
        a[i].lease_until_ms = row->lease_until_ms;
        a[i].lease_ms = row->lease_ms;
        a[i].cancel_asked = is_listed(row->cancel, t->seq);
        if (!call->by_lease)
            return true;
    }
    return true;
}

static bool
take_rows(const struct answer_call *call, const struct rowset *set, struct queue_answer *a,
          struct err *e)
{
    for (int i = 0; i < call->n; i++)
        a[i] = (struct queue_answer){
            .lease = call->tokens[i].lease, .seq = call->tokens[i].seq, .outcome = QUEUE_LOST};
    for (int i = 0; i < set->n; i++)
        if (!take_row(call, (const struct answer_row *)set->rows + i, a, e))
            return false;
    return true;
}

static void
answer_reply(void *ctx, struct db_reply *reply)
{
    struct answer_call *call = ctx;
    struct rowset set = {0};
    struct err e = reply->err;
    struct queue_answer *a = xcalloc((size_t)call->n, sizeof *a);
    bool ok = e.kind == ERR_NONE &&
              rowset_decode(db_take(reply, 0), answer_fields,
                            sizeof answer_fields / sizeof *answer_fields, sizeof(struct answer_row),
                            &set, &e) &&
              take_rows(call, &set, a, &e);

    call->q->in_doubt = reply->in_doubt;
    call->fn(call->ctx, &e, ok ? a : NULL, ok ? call->n : 0);
    rowset_free(&set);
    free(a);
    free(call);
}

static struct answer_call *
answer_new(struct queue *q, int n, queue_answer_fn *fn, void *ctx)
{
    struct answer_call *call = xmalloc(sizeof *call + sizeof *call->tokens * (size_t)n);

    *call = (struct answer_call){.q = q, .fn = fn, .ctx = ctx, .n = n};
    return call;
}

/* Sends the statement; the node and the tokens are the first four of its n parameters. */
static void
answer_send(struct answer_call *call, enum queue_sql sql, const char *node, struct db_param *params,
            int n)
{
    struct array leases, versions, seqs;

    array_start(&leases, ARRAY_I64, call->n);
    array_start(&versions, ARRAY_I32, call->n);
    array_start(&seqs, ARRAY_I64, call->n);
    for (int i = 0; i < call->n; i++) {
        array_i64(&leases, call->tokens[i].lease);
        array_i32(&versions, call->tokens[i].version);
        array_i64(&seqs, call->tokens[i].seq);
    }
    params[0] = queue_text(node);
    params[1] = db_array(&leases);
    params[2] = db_array(&versions);
    if (!call->by_lease)
        params[3] = db_array(&seqs);
    queue_send(call->q, sql, params, n, answer_reply, call);
    array_free(&leases);
    array_free(&versions);
    array_free(&seqs);
}

static void
add_time(struct array *a, int64_t ms)
{
    ms ? array_time(a, ms) : array_null(a);
}

void
queue_complete(struct queue *q, const char *node, const struct queue_done *jobs, int n,
               queue_answer_fn *fn, void *ctx)
{
    struct answer_call *call = answer_new(q, n, fn, ctx);
    struct array started, results;
    struct db_param params[6];

    array_start(&started, ARRAY_TIME, n);
    array_start(&results, ARRAY_BYTES, n);
    for (int i = 0; i < n; i++) {
        call->tokens[i] = jobs[i].token;
        add_time(&started, jobs[i].started_ms);
        array_bytes(&results, jobs[i].result, jobs[i].result_len);
    }
    params[4] = db_array(&started);
    params[5] = db_array(&results);
    answer_send(call, SQL_COMPLETE, node, params, 6);
    array_free(&started);
    array_free(&results);
}

void
queue_fail(struct queue *q, const char *node, const struct queue_failure *jobs, int n,
           queue_answer_fn *fn, void *ctx)
{
    enum { ERRORS, TRACES, STARTED, RETRY_IN, FINAL, OUTCOMES, N };
    static const enum array_type types[N] = {ARRAY_TEXT,     ARRAY_TEXT, ARRAY_TIME,
                                             ARRAY_INTERVAL, ARRAY_BOOL, ARRAY_TEXT};
    struct answer_call *call = answer_new(q, n, fn, ctx);
    struct array a[N];
    struct db_param params[4 + N];

    for (int i = 0; i < N; i++)
        array_start(&a[i], types[i], n);
    for (int i = 0; i < n; i++) {
        const struct queue_failure *job = &jobs[i];
        call->tokens[i] = job->token;
        array_text(&a[ERRORS], job->error ? job->error : "");
        array_text(&a[TRACES], job->trace);
        add_time(&a[STARTED], job->started_ms);
        job->retry_in_ms < 0 ? array_null(&a[RETRY_IN])
                             : array_interval(&a[RETRY_IN], job->retry_in_ms);
        array_bool(&a[FINAL], job->final);
        array_text(&a[OUTCOMES], job->outcome ? job->outcome : "failed");
    }
    for (int i = 0; i < N; i++)
        params[4 + i] = db_array(&a[i]);
    answer_send(call, SQL_FAIL, node, params, 4 + N);
    for (int i = 0; i < N; i++)
        array_free(&a[i]);
}

void
queue_extend(struct queue *q, const char *node, const struct queue_extend *x, queue_answer_fn *fn,
             void *ctx)
{
    struct answer_call *call = answer_new(q, x->n, fn, ctx);
    struct array started = {0};
    struct db_param params[5] = {{0}};
    char by[40];

    call->by_lease = true;
    memcpy(call->tokens, x->jobs, sizeof *x->jobs * (size_t)x->n);
    if (x->nstarted > 0) {
        array_start(&started, ARRAY_I64, x->nstarted);
        for (int i = 0; i < x->nstarted; i++)
            array_i64(&started, x->started[i]);
        params[4] = db_array(&started);
    }
    params[3] = queue_interval(by, x->by_ms);
    answer_send(call, SQL_EXTEND, node, params, 5);
    array_free(&started);
}

void
queue_give_back(struct queue *q, const char *node, const struct queue_token *jobs, int n,
                queue_answer_fn *fn, void *ctx)
{
    struct answer_call *call = answer_new(q, n, fn, ctx);
    struct db_param params[4];

    memcpy(call->tokens, jobs, sizeof *jobs * (size_t)n);
    answer_send(call, SQL_GIVE_BACK, node, params, 4);
}
