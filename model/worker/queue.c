/*
 * Each call is one statement without BEGIN and COMMIT: a transaction of its own in one round trip.
 * model/adapter/sections puts the schema into the names once. Lists are sent as binary arrays. An
 * answer is matched to its question by seq (or lease), never by position.
 */
#include "model/worker/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/adapter/sections.h"
#include "model/base/array.h"
#include "model/base/mem.h"
#include "model/worker/queue_parts.h"

/* the files in sql/client */
static const char *const files[SQL_N] = {
    [SQL_PUSH] = "push",
    [SQL_CLAIM] = "claim",
    [SQL_COMPLETE] = "complete",
    [SQL_FAIL] = "fail",
    [SQL_EXTEND] = "extend",
    [SQL_GIVE_BACK] = "give_back",
    [SQL_NODE_START] = "node_start",
    [SQL_NODE_BEAT] = "node_beat",
    [SQL_NODE_CLOCK] = "node_clock",
    [SQL_NODE_SLEEP] = "node_sleep",
    [SQL_SCHEDULER_SLEEP] = "scheduler_sleep",
    [SQL_NODE_STOP] = "node_stop",
    [SQL_KEEP_ONLY] = "keep_only",
    [SQL_BACKLOG] = "backlog",
    [SQL_SCHEDULE] = "schedule",
    [SQL_SCHEDULE_STOP] = "scheduler_stop",
    [SQL_SCHEDULER_HOLDER] = "scheduler_holder",
    [SQL_CLAIM_OR_WAIT] = "claim_or_wait",
    [SQL_COMPLETE_AND_CLAIM] = "complete_and_claim",
    [SQL_WAKE] = "wake",
    [SQL_KEEP_BOOKS] = "keep_books",
    [SQL_IS_NEW] = "is_new",
    [SQL_FOLD] = "fold_beside",
};

static char *
client_sql(const char *name)
{
    for (int i = 0; i < sql_client_n; i++)
        if (!strcmp(sql_client[i].name, name))
            return xstrdup(sql_client[i].text);
    abort();
}

bool
queue_client_sql(const char *file, const char *schema, char **sql, struct err *e)
{
    char *text = client_sql(file), name[] = "queue";
    struct section s = {.name = name, .sql = text};
    bool ok = sections_bind(&s, schema, sql, e);

    free(text);
    return ok;
}

struct queue *
queue_new(struct db *db, const char *schema, struct err *e)
{
    struct queue *q = xcalloc(1, sizeof *q);

    q->db = db;
    q->wait_ms = -1;
    for (int i = 0; i < SQL_N; i++)
        if (!queue_client_sql(files[i], schema, &q->sql[i], e)) {
            queue_free(q);
            return NULL;
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
    free(q->doubtful_queue);
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

struct db_param
queue_names(struct array *a, const char *const *names, int n)
{
    *a = (struct array){0};
    if (!names || n <= 0)
        return (struct db_param){0};
    array_start(a, ARRAY_TEXT, n);
    for (int i = 0; i < n; i++)
        array_text(a, names[i]);
    return db_array(a);
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
    call->q->server_ms =
        r && result_rows(r) > 0 ? result_int(r, 0, result_col(r, "server_ms"), 0) : 0;
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
        queue_names(&queues, node->queues, node->nqueues),
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
queue_node_clock(struct queue *q, const struct queue_node *node, int64_t ahead_ms,
                 queue_node_fn *fn, void *ctx)
{
    char ahead[24];
    struct db_param params[] = {queue_text(node->name), queue_text(node->session),
                                queue_text(ahead)};

    snprintf(ahead, sizeof ahead, "%" PRId64, ahead_ms);
    node_ask(q, SQL_NODE_CLOCK, params, 3, &(struct node_call){.fn = fn, .ctx = ctx});
}

int64_t
queue_server_ms(const struct queue *q)
{
    return q->server_ms;
}

void
queue_node_stop(struct queue *q, const struct queue_node *node, queue_node_fn *fn, void *ctx)
{
    struct db_param params[] = {queue_text(node->name), queue_text(node->session)};

    node_ask(q, SQL_NODE_STOP, params, 2, &(struct node_call){.fn = fn, .ctx = ctx});
}

void
queue_fall_asleep(struct queue *q, const struct queue_sleeper *who, queue_node_fn *fn, void *ctx)
{
    char most[40], slot[16], pid[16];
    int n = 0;
    struct db_param params[6];

    snprintf(most, sizeof most, "%" PRId64 " ms", who->most_ms);
    snprintf(slot, sizeof slot, "%d", who->slot);
    snprintf(pid, sizeof pid, "%d", db_backend_pid(q->db));
    params[n++] = queue_text(who->node);
    if (who->session)
        params[n++] = queue_text(who->session);
    params[n++] = queue_text(most);
    params[n++] = queue_text(slot);
    params[n++] = queue_text(pid);
    params[n++] = queue_text(who->is_listening ? "t" : "f");
    node_ask(q, who->session ? SQL_NODE_SLEEP : SQL_SCHEDULER_SLEEP, params, n,
             &(struct node_call){.fn = fn, .ctx = ctx});
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
        params[2] = db_array(&known);
    }
    node_ask(q, SQL_KEEP_ONLY, params, 3, &(struct node_call){.fn = fn, .ctx = ctx});
    array_free(&known);
}

void
queue_backlog(struct queue *q, const char *const *queues, int n, queue_node_fn *fn, void *ctx)
{
    struct array names;
    struct db_param params[] = {queue_names(&names, queues, n)};

    node_ask(q, SQL_BACKLOG, params, 1, &(struct node_call){.fn = fn, .ctx = ctx});
    array_free(&names);
}

struct step_row {
    int active, cut, promoted, stolen, wait_ms, look_ms, waits, late, fold;
};

#define F(field) offsetof(struct step_row, field)
/* column, type, offset, optional */
static const struct field step_fields[] = {
    {"active",   F_INT, F(active),   false},
    {"cut",      F_INT, F(cut),      false},
    {"promoted", F_INT, F(promoted), false},
    {"stolen",   F_INT, F(stolen),   false},
    {"wait_ms",  F_INT, F(wait_ms),  false},
    {"look_ms",  F_INT, F(look_ms),  false},
    {"waits",    F_INT, F(waits),    false},
    {"late",     F_INT, F(late),     false},
    {"fold",     F_INT, F(fold),     false},
};
#undef F

static void
step_reply(void *ctx, struct db_reply *reply)
{
    struct node_call *call = ctx;
    struct rowset set = {0};
    struct err e = reply->err;
    struct queue_step step = {0};
    bool ok = e.kind == ERR_NONE && rowset_decode(db_take(reply, 0), step_fields,
                                                  sizeof step_fields / sizeof *step_fields,
                                                  sizeof(struct step_row), &set, &e);

    if (ok && set.n > 0) {
        const struct step_row *row = set.rows;
        step = (struct queue_step){.active = row->active == 1,
                                   .cut = row->cut,
                                   .promoted = row->promoted,
                                   .stolen = row->stolen,
                                   .wait_ms = row->wait_ms,
                                   .look_ms = row->look_ms,
                                   .waits = row->waits == 1,
                                   .late = row->late == 1,
                                   .fold = row->fold == 1};
    }
    call->q->in_doubt = reply->in_doubt;
    call->step_fn(call->ctx, &e, &step);
    rowset_free(&set);
    free(call);
}

void
queue_schedule(struct queue *q, const struct queue_stepper *who, queue_step_fn *fn, void *ctx)
{
    struct node_call *call = xmalloc(sizeof *call);
    char quiet[40], pid[16];

    snprintf(quiet, sizeof quiet, "%" PRId64 " ms", who->quiet_ms);
    snprintf(pid, sizeof pid, "%d", db_backend_pid(q->db));
    struct db_param params[] = {
        queue_text(who->holder),
        queue_text(quiet),
        queue_text(pid),
        queue_text(who->is_listening ? "t" : "f"),
    };

    *call = (struct node_call){.q = q, .step_fn = fn, .ctx = ctx};
    struct db_stmt stmt = {.sql = q->sql[SQL_SCHEDULE], .nparams = 4, .params = params};
    db_ask(q->db,
           &(struct db_call){
               .stmts = &stmt, .n = 1, .bare = true, .statement_timeout_ms = who->patience_ms},
           q->wait_ms, step_reply, call);
}

void
queue_wake(struct queue *q, int n, queue_node_fn *fn, void *ctx)
{
    char count[16];

    snprintf(count, sizeof count, "%d", n);
    struct db_param params[] = {queue_text(count)};
    node_ask(q, SQL_WAKE, params, 1, &(struct node_call){.fn = fn, .ctx = ctx});
}

void
queue_schedule_stop(struct queue *q, const char *holder, queue_node_fn *fn, void *ctx)
{
    struct db_param params[] = {queue_text(holder)};

    node_ask(q, SQL_SCHEDULE_STOP, params, 1, &(struct node_call){.fn = fn, .ctx = ctx});
}

void
queue_schedule_holder(struct queue *q, queue_node_fn *fn, void *ctx)
{
    node_ask(q, SQL_SCHEDULER_HOLDER, NULL, 0, &(struct node_call){.fn = fn, .ctx = ctx});
}

void
queue_keep_books(struct queue *q, queue_node_fn *fn, void *ctx)
{
    node_ask(q, SQL_KEEP_BOOKS, NULL, 0, &(struct node_call){.fn = fn, .ctx = ctx});
}

void
queue_fold(struct queue *q, queue_node_fn *fn, void *ctx)
{
    node_ask(q, SQL_FOLD, NULL, 0, &(struct node_call){.fn = fn, .ctx = ctx});
}

void
queue_is_new(struct queue *q, queue_node_fn *fn, void *ctx)
{
    node_ask(q, SQL_IS_NEW, NULL, 0, &(struct node_call){.fn = fn, .ctx = ctx});
}
