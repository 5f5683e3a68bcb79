/*
 * Push: all jobs of a call in one statement. The statement is kept until its answer has come, so
 * that it can be sent again after a lost answer; the same ids make both one push.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "model/base/array.h"
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/base/text.h"
#include "model/worker/queue.h"
#include "model/worker/queue_parts.h"

enum { ARRAYS = 16, COLUMNS = ARRAYS + 1, RESENDS = 20 };
enum { NAME_CHARS = 200, KEY_CHARS = 1000 };
static const size_t payload_bytes = (size_t)256
                                    << 20; /* one text parameter of this size is no problem */

void
queue_make_id(char out[static QUEUE_ID_LEN + 1])
{
    uuid_t id;
    uint64_t ms = (uint64_t)clock_wall_ms();

    uuid_generate_random(id);
    for (int i = 5; i >= 0; i--, ms >>= 8)
        id[i] = (unsigned char)(ms & 0xff);
    id[6] = (unsigned char)(0x70 | (id[6] & 0x0f));
    uuid_unparse_lower(id, out);
}

static bool
check_name(const char *what, const char *s, int min, int max, struct err *e)
{
    size_t len = strlen(s);
    int chars = 0;

    if (!utf8_valid(s, len))
        return fail(e, ERR_USAGE, "the %s is not valid UTF-8", what);
    for (size_t i = 0; i < len; i++)
        chars += (s[i] & 0xc0) != 0x80;
    if (chars < min || chars > max)
        return fail(e, ERR_USAGE, "the %s takes %d to %d characters, not %d", what, min, max,
                    chars);
    return true;
}

bool
queue_push_check(const struct queue_push *job, struct err *e)
{
    uuid_t id;

    if (*job->id && uuid_parse(job->id, id))
        return fail(e, ERR_USAGE, "'%s' is not a uuid", job->id);
    if (job->payload_len > payload_bytes)
        return fail(e, ERR_USAGE, "the payload has %zu bytes; %zu MiB is the most",
                    job->payload_len, payload_bytes >> 20);
    if (job->payload && !job->type && !utf8_valid(job->payload, job->payload_len))
        return fail(e, ERR_USAGE,
                    "the payload is not valid UTF-8, so it is no JSON; name its --type");
    return check_name("queue", job->queue, 1, NAME_CHARS, e) &&
           (!job->kind || check_name("kind", job->kind, 0, NAME_CHARS, e)) &&
           (!job->unique_key || check_name("unique key", job->unique_key, 1, KEY_CHARS, e)) &&
           (!job->concurrency_key ||
            check_name("concurrency key", job->concurrency_key, 1, KEY_CHARS, e));
}

struct push_call {
    struct queue *q;
    queue_push_fn *fn;
    queue_there_fn *there_fn;
    void *ctx;
    struct array arrays[ARRAYS];
    char *queue;              /* of the first job */
    struct queue_pushed *ids; /* the ids that were sent; is_new: queue_push made the id */
    int n;
    int resends;
    bool again, moved;
};

static void
push_free(struct push_call *call)
{
    for (int i = 0; i < ARRAYS; i++)
        array_free(&call->arrays[i]);
    free(call->ids);
    free(call->queue);
    free(call);
}

static void
add_interval(struct array *a, int64_t ms)
{
    ms > 0 ? array_interval(a, ms) : array_null(a);
}

static void
add_number(struct array *a, int value, bool is_set)
{
    is_set ? array_i32(a, value) : array_null(a);
}

static void
add_job(struct array *a, const struct queue_push *job, struct queue_pushed *id)
{
    const char *bytes = job->payload ? job->payload : job->type ? "" : NULL;

    snprintf(id->id, sizeof id->id, "%s", job->id);
    if (!*id->id)
        queue_make_id(id->id);
    id->is_new = !job->check_id;
    array_uuid(&a[0], id->id);
    array_text(&a[1], job->queue);
    array_text(&a[2], job->kind ? job->kind : "");
    add_number(&a[3], job->priority, job->priority >= 0);
    array_text(&a[4], job->run_after);
    add_interval(&a[5], job->delay_ms);
    array_text(&a[6], job->unique_key);
    add_number(&a[7], job->max_tries, job->max_tries > 0);
    add_interval(&a[8], job->run_timeout_ms);
    add_interval(&a[9], job->lease_timeout_ms);
    array_bytes(&a[10], job->type ? NULL : bytes, job->payload_len);
    array_bytes(&a[11], job->type ? bytes : NULL, job->payload_len);
    array_text(&a[12], job->type);
    array_text(&a[13], job->expires_at);
    add_interval(&a[14], job->expires_in_ms);
    array_text(&a[15], job->concurrency_key);
}

static void push_reply(void *ctx, struct db_reply *reply);

static void
push_params(struct push_call *call, struct db_param params[static COLUMNS])
{
    for (int i = 0; i < ARRAYS; i++)
        params[i] = db_array(&call->arrays[i]);
    params[ARRAYS] = queue_text(call->again ? "t" : "f");
}

static void
push_send(struct push_call *call)
{
    struct db_param params[COLUMNS];

    push_params(call, params);
    queue_send(call->q, SQL_PUSH, params, COLUMNS, push_reply, call);
}

struct push_row {
    int n, pushed;
    const char *id;
};

#define F(field) offsetof(struct push_row, field)
/* column, type, offset, optional */
static const struct field push_fields[] = {
    {"n",      F_INT,  F(n),      false},
    {"id",     F_STR,  F(id),     false},
    {"pushed", F_BOOL, F(pushed), false},
};
#undef F

static bool
push_rows(struct push_call *call, struct db_reply *reply, struct err *e)
{
    struct rowset set = {0};
    struct queue_pushed *jobs = xcalloc((size_t)call->n, sizeof *jobs);
    bool ok = rowset_decode(db_take(reply, 0), push_fields, 3, sizeof(struct push_row), &set, e);
    int found = 0;

    for (int i = 0; ok && i < set.n; i++) {
        const struct push_row *row = (const struct push_row *)set.rows + i;
        if (row->n < 1 || row->n > call->n)
            continue;
        snprintf(jobs[row->n - 1].id, sizeof jobs->id, "%s", row->id);
        /* The push was sent again, and the server already has the job under an id that only we
         * know. So the first push had arrived. */
        const struct queue_pushed *own = &call->ids[row->n - 1];
        bool is_ours = call->resends > 0 && own->is_new && !strcmp(own->id, row->id);
        jobs[row->n - 1].is_new = row->pushed == 1 || is_ours;
        found++;
    }
    if (ok && found != call->n)
        ok = fail(e, ERR_DATA, "pushed %d jobs, the server answered for %d", call->n, found);
    if (ok)
        call->fn(call->ctx, e, jobs, call->n);
    free(jobs);
    rowset_free(&set);
    return ok;
}

static void
note_doubt(const struct push_call *call)
{
    struct queue *q = call->q;

    free(q->doubtful_queue);
    q->doubtful_queue = xstrdup(call->queue);
    q->doubtful = (struct queue_push){.queue = q->doubtful_queue, .priority = -1};
    snprintf(q->doubtful.id, sizeof q->doubtful.id, "%s", call->ids[0].id);
}

static void
push_reply(void *ctx, struct db_reply *reply)
{
    struct push_call *call = ctx;
    struct err e = reply->err;

    call->q->in_doubt = reply->in_doubt;
    if (e.kind == ERR_CONN && !strcmp(e.sqlstate, "25006") && !call->moved) {
        call->moved = true; /* this server has changed nothing; the next connection may reach
                               another server */
        push_send(call);
        return;
    }
    if (e.kind == ERR_CONN && reply->in_doubt && call->resends < RESENDS) {
        call->resends++;
        call->again = true;
        push_send(call);
        return;
    }
    if (reply->in_doubt)
        note_doubt(call);
    if (e.kind != ERR_NONE || !push_rows(call, reply, &e))
        call->fn(call->ctx, &e, NULL, 0);
    push_free(call);
}

static struct push_call *
push_new(struct queue *q, const struct queue_push *jobs, int n)
{
    static const enum array_type types[ARRAYS] = {
        ARRAY_UUID, ARRAY_TEXT, ARRAY_TEXT,     ARRAY_I32,      ARRAY_TEXT, ARRAY_INTERVAL,
        ARRAY_TEXT, ARRAY_I32,  ARRAY_INTERVAL, ARRAY_INTERVAL, ARRAY_TEXT, ARRAY_BYTES,
        ARRAY_TEXT, ARRAY_TEXT, ARRAY_INTERVAL, ARRAY_TEXT,
    };
    struct push_call *call = xmalloc(sizeof *call);

    *call = (struct push_call){.q = q, .n = n, .queue = xstrdup(jobs[0].queue)};
    call->ids = xcalloc((size_t)n, sizeof *call->ids);
    for (int i = 0; i < ARRAYS; i++)
        array_start(&call->arrays[i], types[i], n);
    for (int i = 0; i < n; i++) {
        call->again |= jobs[i].check_id;
        add_job(call->arrays, &jobs[i], &call->ids[i]);
    }
    return call;
}

void
queue_push(struct queue *q, const struct queue_push *jobs, int n, queue_push_fn *fn, void *ctx)
{
    struct push_call *call = push_new(q, jobs, n);

    call->fn = fn;
    call->ctx = ctx;
    push_send(call);
}

/* --- is it there? --- */

static void
there_reply(void *ctx, struct db_reply *reply)
{
    struct push_call *call = ctx;
    struct err e = reply->err;
    struct result *r = e.kind == ERR_NONE ? reply->results[0] : NULL;
    int col = r ? result_col(r, "pushed") : -1;

    if (e.kind == ERR_NONE && (col < 0 || result_rows(r) != 1))
        fail(&e, ERR_DATA, "the server did not answer for the job");
    call->there_fn(call->ctx, &e, e.kind == ERR_NONE && !strcmp(result_text(r, 0, col), "f"));
    push_free(call);
}

void
queue_ask_doubtful(struct queue *q, queue_there_fn *fn, void *ctx)
{
    struct push_call *call = push_new(q, &q->doubtful, 1);
    struct db_param params[COLUMNS];

    call->again = true; /* also among finished jobs */
    call->there_fn = fn;
    call->ctx = ctx;
    push_params(call, params);
    struct db_stmt stmt = {.sql = q->sql[SQL_PUSH], .nparams = COLUMNS, .params = params};
    struct db_call ask = {.stmts = &stmt, .n = 1, .dry = true};
    db_ask(q->db, &ask, q->wait_ms, there_reply, call);
}
