/*
 * Each call is one statement, sent bare: a transaction of its own in one round trip. Names are
 * qualified by the schema, put in once by model/sections. Lists travel as binary arrays. Answers of
 * the server are matched to what was asked by seq (or lease), never by position.
 */
#include "model/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/array.h"
#include "model/mem.h"
#include "model/queue_parts.h"
#include "model/sections.h"

/* the files in sql/client, in the order of enum queue_sql */
static const char *const files[SQL_N] = {
    "push",      "claim",     "complete",  "fail",    "extend",   "give_back",      "node_start",
    "node_beat", "node_stop", "keep_only", "backlog", "schedule", "scheduler_stop",
};

static char *
client_sql(const char *name)
{
    for (int i = 0; i < sql_client_n; i++)
        if (!strcmp(sql_client[i].name, name))
            return xstrdup(sql_client[i].text);
    abort();
}

struct queue *
queue_new(struct db *db, const char *schema, struct err *e)
{
    struct queue *q = xcalloc(1, sizeof *q);

    q->db = db;
    q->wait_ms = -1;
    for (int i = 0; i < SQL_N; i++) {
        char *text = client_sql(files[i]), name[] = "queue";
        struct section s = {.name = name, .sql = text};
        bool ok = sections_bind(&s, schema, &q->sql[i], e);
        free(text);
        if (!ok) {
            queue_free(q);
            return NULL;
        }
    }
    return q;
}

void
queue_free(struct queue *q)
{
    if (!q)
        return;
    for (int i = 0; i < SQL_N; i++)
        free(q->sql[i]);
    free(q);
}

void
queue_wait(struct queue *q, int wait_ms)
{
    q->wait_ms = wait_ms;
}

bool
queue_in_doubt(const struct queue *q)
{
    return q->in_doubt;
}

void
queue_send(struct queue *q, enum queue_sql sql, const struct db_param *params, int n,
           db_reply_fn *fn, void *ctx)
{
    struct db_stmt stmt = {.sql = q->sql[sql], .nparams = n, .params = params};
    struct db_call call = {.stmts = &stmt, .n = 1, .bare = true};

    db_ask(q->db, &call, q->wait_ms, fn, ctx);
}

struct db_param
queue_interval(char buf[static 40], int64_t ms)
{
    if (ms <= 0)
        return (struct db_param){0};
    snprintf(buf, 40, "%" PRId64 " milliseconds", ms);
    return (struct db_param){.value = buf};
}

struct db_param
queue_text(const char *s)
{
    return (struct db_param){.value = s};
}

/* --- claim --- */

struct claim_call {
    struct queue *q;
    queue_claim_fn *fn;
    void *ctx;
};

struct claim_row { /* as it comes; struct queue_job is made from it */
    int64_t lease, seq, lease_until_ms, lease_ms, run_timeout_ms, cursor;
    int version, priority, try_, max_tries;
    const char *id, *queue, *kind;
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
    {"cursor",         F_I64, F(cursor),         true },
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

static void
claim_rows(struct claim_call *call, const struct rowset *set)
{
    struct err none = {0};
    size_t n = (size_t)set->n;
    struct queue_job *jobs = xcalloc(n + 1, sizeof *jobs);
    unsigned char **bodies = xcalloc(n + 1, sizeof *bodies);

    for (int i = 0; i < set->n; i++) {
        const struct claim_row *row = (const struct claim_row *)set->rows + i;
        if (row->cursor != FIELD_NULL && (i == 0 || row->cursor > call->q->cursor))
            call->q->cursor = row->cursor;
        take_job(set, i, &jobs[i], &bodies[i]);
    }
    if (set->n == 0)
        call->q->cursor = 0; /* found nothing: the next one looks from the start */
    call->fn(call->ctx, &none, jobs, set->n);
    for (size_t i = 0; i < n; i++)
        free(bodies[i]);
    free(bodies);
    free(jobs);
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
    if (ok)
        claim_rows(call, &set);
    else
        call->fn(call->ctx, &e, NULL, 0);
    rowset_free(&set);
    free(call);
}

/* A text[] of names; *a is left empty and the parameter NULL for none. */
static struct db_param
names_param(struct array *a, const char *const *names, int n)
{
    *a = (struct array){0};
    if (!names || n <= 0)
        return (struct db_param){0};
    array_start(a, ARRAY_TEXT, n);
    for (int i = 0; i < n; i++)
        array_text(a, names[i]);
    return array_param(a);
}

void
queue_claim(struct queue *q, const struct queue_claim *c, queue_claim_fn *fn, void *ctx)
{
    struct claim_call *call = xmalloc(sizeof *call);
    char n[16], cursor[24], timeout[40];
    struct array queues;

    *call = (struct claim_call){.q = q, .fn = fn, .ctx = ctx};
    snprintf(n, sizeof n, "%d", c->n);
    snprintf(cursor, sizeof cursor, "%" PRId64, q->cursor);
    struct db_param params[] = {
        queue_text(c->node),
        queue_text(n),
        queue_interval(timeout, c->timeout_ms),
        names_param(&queues, c->queues, c->nqueues),
        queue_text(c->start ? "t" : "f"),
        queue_text(cursor),
    };
    queue_send(q, SQL_CLAIM, params, 6, claim_reply, call);
    array_free(&queues);
}

/* --- the worker process and the scheduler --- */

struct node_call {
    struct queue *q;
    queue_node_fn *fn;
    queue_step_fn *step_fn;
    void *ctx;
};

static void
node_reply(void *ctx, struct db_reply *reply)
{
    struct node_call *call = ctx;
    struct result *r = reply->err.kind == ERR_NONE ? reply->results[0] : NULL;
    int col = r ? result_col(r, "state") : -1;

    call->q->in_doubt = reply->in_doubt;
    call->fn(call->ctx, &reply->err, col >= 0 && result_rows(r) > 0 ? result_text(r, 0, col) : "");
    free(call);
}

static void
node_ask(struct queue *q, enum queue_sql sql, const struct db_param *params, int n,
         const struct node_call *with)
{
    struct node_call *call = xmalloc(sizeof *call);

    *call = *with;
    call->q = q;
    queue_send(q, sql, params, n, node_reply, call);
}

void
queue_node_start(struct queue *q, const struct queue_node *node, queue_node_fn *fn, void *ctx)
{
    char pid[16], protocol[16], slots[16];
    struct array queues;

    snprintf(pid, sizeof pid, "%d", node->pid);
    snprintf(protocol, sizeof protocol, "%d", QUEUE_PROTOCOL);
    snprintf(slots, sizeof slots, "%d", node->slots);
    struct db_param params[] = {
        queue_text(node->name),
        queue_text(node->session),
        queue_text(node->host),
        queue_text(pid),
        queue_text(node->version),
        queue_text(protocol),
        names_param(&queues, node->queues, node->nqueues),
        queue_text(slots),
    };
    node_ask(q, SQL_NODE_START, params, 8, &(struct node_call){.fn = fn, .ctx = ctx});
    array_free(&queues);
}

void
queue_node_beat(struct queue *q, const struct queue_node *node, queue_node_fn *fn, void *ctx)
{
    struct db_param params[] = {queue_text(node->name), queue_text(node->session)};

    node_ask(q, SQL_NODE_BEAT, params, 2, &(struct node_call){.fn = fn, .ctx = ctx});
}

void
queue_node_stop(struct queue *q, const struct queue_node *node, queue_node_fn *fn, void *ctx)
{
    struct db_param params[] = {queue_text(node->name), queue_text(node->session)};

    node_ask(q, SQL_NODE_STOP, params, 2, &(struct node_call){.fn = fn, .ctx = ctx});
}

void
queue_keep_only(struct queue *q, const struct queue_node *node, const int64_t *leases, int n,
                queue_node_fn *fn, void *ctx)
{
    struct array known = {0};
    struct db_param params[] = {queue_text(node->name), queue_text(node->session), {.value = "{}"}};

    if (n > 0) {
        array_start(&known, ARRAY_I64, n);
        for (int i = 0; i < n; i++)
            array_i64(&known, leases[i]);
        params[2] = array_param(&known);
    }
    node_ask(q, SQL_KEEP_ONLY, params, 3, &(struct node_call){.fn = fn, .ctx = ctx});
    array_free(&known);
}

void
queue_backlog(struct queue *q, const char *const *queues, int n, queue_node_fn *fn, void *ctx)
{
    struct array names;
    struct db_param params[] = {names_param(&names, queues, n)};

    node_ask(q, SQL_BACKLOG, params, 1, &(struct node_call){.fn = fn, .ctx = ctx});
    array_free(&names);
}

struct step_row {
    int active, cut, promoted, stolen, wait_ms;
};

#define F(field) offsetof(struct step_row, field)
/* column, type, offset, optional */
static const struct field step_fields[] = {
    {"active",   F_INT, F(active),   false},
    {"cut",      F_INT, F(cut),      false},
    {"promoted", F_INT, F(promoted), false},
    {"stolen",   F_INT, F(stolen),   false},
    {"wait_ms",  F_INT, F(wait_ms),  false},
};
#undef F

static void
step_reply(void *ctx, struct db_reply *reply)
{
    struct node_call *call = ctx;
    struct rowset set = {0};
    struct err e = reply->err;
    struct queue_step step = {0};
    bool ok = e.kind == ERR_NONE &&
              rowset_decode(db_take(reply, 0), step_fields, 5, sizeof(struct step_row), &set, &e);

    if (ok && set.n > 0) {
        const struct step_row *row = set.rows;
        step = (struct queue_step){.active = row->active == 1,
                                   .cut = row->cut,
                                   .promoted = row->promoted,
                                   .stolen = row->stolen,
                                   .wait_ms = row->wait_ms};
    }
    call->q->in_doubt = reply->in_doubt;
    call->step_fn(call->ctx, &e, &step);
    rowset_free(&set);
    free(call);
}

void
queue_schedule(struct queue *q, const char *holder, queue_step_fn *fn, void *ctx)
{
    struct node_call *call = xmalloc(sizeof *call);
    struct db_param params[] = {queue_text(holder)};

    *call = (struct node_call){.q = q, .step_fn = fn, .ctx = ctx};
    queue_send(q, SQL_SCHEDULE, params, 1, step_reply, call);
}

void
queue_schedule_stop(struct queue *q, const char *holder, queue_node_fn *fn, void *ctx)
{
    struct db_param params[] = {queue_text(holder)};

    node_ask(q, SQL_SCHEDULE_STOP, params, 1, &(struct node_call){.fn = fn, .ctx = ctx});
}
