/*
 * From the wish to the batches. The uuid is made once; a batch is asked again with the same number
 * until its answer is there, so neither a lost answer nor a lock that was in the way can make it
 * count twice.
 */
#include "model/action.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "model/action_parts.h"
#include "model/clock.h"

enum {
    BATCH_IDS = 500,
    BATCH_ROWS = 1000,
    TRIES_MOST = 6,      /* of a batch that met a lock or a deadlock */
    FIRST_WAIT_MS = 200, /* doubled */
    LOST_WAIT_MS = 500,
    RECONNECT_MS = 5000
};

static void ask_batch(void *ctx);

void
action_touch(struct action *a)
{
    a->generation++;
}

static void
free_now(struct action *a)
{
    for (int i = 0; i < a->nids; i++)
        free(a->ids[i]);
    free(a->ids);
    params_done(&a->params);
    params_done(&a->search);
    tally_clear(&a->effects);
    tally_clear(&a->outcome);
    rowset_free(&a->nodes);
    free(a->about);
    free(a->waits);
    free(a->what);
    free(a->where);
    free(a->sql);
    free(a->summary);
    free(a->challenge);
    free(a);
}

void
action_free(struct action *a)
{
    if (!a)
        return;
    if (a->timer)
        loop_cancel(a->loop, a->timer);
    a->timer = 0;
    if (a->calls > 0)
        a->orphan = true;
    else
        free_now(a);
}

void
action_ask(struct action *a, const struct db_call *call, int wait_ms, db_reply_fn *fn)
{
    struct db_call own = *call;

    a->calls++;
    adapter_settings(a->adapter, &own);
    db_ask(a->db, &own, wait_ms, fn, a);
}

bool
action_answered(struct action *a)
{
    a->calls--;
    if (!a->orphan)
        return true;
    if (a->calls == 0)
        free_now(a);
    return false;
}

void
action_end(struct action *a, enum action_state state, const struct err *e)
{
    a->state = state;
    if (e)
        a->error = *e;
    action_make_summary(a);
    action_touch(a);
}

/* --- batches -------------------------------------------------------------------------------------
 */

static void
again_in(struct action *a, int64_t ms)
{
    a->timer = loop_at(a->loop, clock_ms() + ms, ask_batch, a);
}

/* Locks, deadlocks and time limits pass; what else the server says will not change. */
static bool
may_pass(const struct err *e)
{
    return e->kind == ERR_TIMEOUT || !strcmp(e->sqlstate, "40P01") || !strcmp(e->sqlstate, "40001");
}

static void
lost(struct action *a, const struct db_reply *reply)
{
    int64_t now = clock_ms();

    a->in_doubt |= reply->in_doubt;
    if (!a->lost_ms)
        a->lost_ms = now;
    a->error = reply->err;
    if (a->stop || (a->give_up_ms && now - a->lost_ms >= a->give_up_ms)) {
        action_end(a, a->in_doubt ? ACTION_DOUBTFUL : ACTION_FAILED, NULL);
        return;
    }
    a->state = ACTION_WAITING;
    again_in(a, LOST_WAIT_MS);
    action_touch(a);
}

static void
holder_came(void *ctx, struct db_reply *reply)
{
    struct action *a = ctx;
    struct err e = reply->err;
    struct rowset rows = {0};

    if (!action_answered(a))
        return;
    bool ok = e.kind == ERR_NONE && record_decode(&record_effect, db_take(reply, 0), &rows, &e);
    if (ok && rows.n > 0 && a->waits) {
        free(a->waits);
        a->waits = xasprintf("waits for a lock: %s", ((const struct effect_row *)rows.rows)->why);
        action_touch(a);
    }
    rowset_free(&rows);
}

/* A lock is in the way: what the operator can do about it is to know whose. */
static void
ask_holder(struct action *a)
{
    struct db_param schema = {.value = adapter_schema(a->adapter)};
    struct db_stmt stmt = {.sql = console_sql("holders"), .params = &schema, .nparams = 1};

    if (!a->waits)
        a->waits = xstrdup("waits for a lock");
    action_ask(a, &(struct db_call){.stmts = &stmt, .n = 1, .dry = true}, RECONNECT_MS,
               holder_came);
}

static void
batch_failed(struct action *a, const struct db_reply *reply)
{
    const struct err *e = &reply->err;

    if (e->kind == ERR_CONN) {
        lost(a, reply);
    } else if (may_pass(e) && ++a->tries < TRIES_MOST && !a->stop) {
        again_in(a, (int64_t)FIRST_WAIT_MS << a->tries);
        if (!strcmp(e->sqlstate, "55P03"))
            ask_holder(a);
        action_touch(a);
    } else if ((e->kind == ERR_REFUSED || e->kind == ERR_DENIED) && a->batch == 1) {
        action_end(a, ACTION_REFUSED, e);
    } else {
        action_end(a, ACTION_FAILED, e);
    }
}

/* The next batch starts where this one ended; false = there is none. */
static bool
move_on(struct action *a, const struct rowset *rows)
{
    const struct change_row *last =
        rows->n ? (const struct change_row *)rows->rows + rows->n - 1 : NULL;
    const char *cursor = a->params.value[PARAM_CURSOR];

    if (a->ids) {
        a->at += a->chunk;
        return a->at < a->nids;
    }
    if (act_parts[a->act].once || !last || !*last->cursor)
        return false;
    if (cursor && !strcmp(cursor, last->cursor) && tally_sum(&a->outcome, true) == 0)
        return false; /* an adapter that does not move would be asked for ever */
    params_set(&a->params, PARAM_CURSOR, last->cursor);
    return true;
}

static void
batch_came(void *ctx, struct db_reply *reply)
{
    struct action *a = ctx;
    struct err e = reply->err;
    struct rowset rows;

    if (!action_answered(a))
        return;
    a->state = ACTION_RUNNING;
    if (e.kind != ERR_NONE) {
        batch_failed(a, reply);
        return;
    }
    if (!record_decode(&record_change, db_take(reply, 0), &rows, &e)) {
        action_end(a, ACTION_FAILED, &e);
        return;
    }
    const struct change_row *row = rows.rows;
    for (int i = 0; i < rows.n; i++)
        if (row[i].n != 0) /* a batch that found nothing may still lead on */
            tally_add(&a->outcome, row[i].state, row[i].why, row[i].n == FIELD_NULL ? 1 : row[i].n);
    bool more = move_on(a, &rows);
    rowset_free(&rows);
    free(a->waits);
    a->waits = NULL;
    if (reply->took_us > a->slowest_us)
        a->slowest_us = reply->took_us;
    a->tries = 0;
    a->lost_ms = 0;
    a->in_doubt = false;
    a->error = (struct err){0};
    if (!more || a->stop) {
        action_end(a, more ? ACTION_STOPPED : ACTION_DONE, NULL);
        return;
    }
    a->batch++;
    /* deleting makes work for vacuum and replicas: as long a pause as the batch took */
    again_in(a, a->act == ACT_PURGE ? reply->took_us / 1000 : 0);
    action_touch(a);
}

static void
ask_batch(void *ctx)
{
    struct action *a = ctx;
    struct db_param storage[ADAPTER_PARAMS];

    a->timer = 0;
    if (a->stop && !a->in_doubt && a->tries == 0) {
        action_end(a, ACTION_STOPPED, NULL);
        return;
    }
    if (a->ids) {
        a->chunk = a->nids - a->at < a->batch_size ? a->nids - a->at : a->batch_size;
        params_set_list(&a->params, PARAM_IDS, (const char *const *)a->ids + a->at, a->chunk);
    }
    params_set_int(&a->params, PARAM_BATCH, a->batch);
    struct db_stmt stmt = adapter_bind(a->adapter, a->section, &a->params, storage);
    action_ask(a, &(struct db_call){.stmts = &stmt, .n = 1}, RECONNECT_MS, batch_came);
    action_touch(a);
}

bool
action_can_hold_count(const struct action *a)
{
    bool is_one_batch = !a->ids || a->nids <= a->batch_size;

    return is_one_batch && adapter_takes(a->adapter, a->section, PARAM_EXPECTED);
}

void
action_start(struct action *a, bool force)
{
    assert(a->state == ACTION_READY);
    if (!action_can_hold_count(a)) /* the preview has compared it */
        params_set(&a->params, PARAM_EXPECTED, NULL);
    if (force)
        params_set_bool(&a->params, PARAM_FORCE, true);
    a->started_ms = clock_ms();
    if (a->ids && a->nids == 0) {
        action_end(a, ACTION_DONE, NULL);
        return;
    }
    a->state = ACTION_RUNNING;
    a->batch = 1;
    ask_batch(a);
}

void
action_hold_count(struct action *a)
{
    if (action_can_hold_count(a))
        params_set_int(&a->params, PARAM_EXPECTED, tally_sum(&a->effects, true));
}

void
action_stop(struct action *a)
{
    a->stop = true;
    if (a->state == ACTION_PREVIEWING || a->state == ACTION_READY) {
        action_end(a, ACTION_STOPPED, NULL);
    } else if (a->state == ACTION_WAITING && a->timer) {
        loop_cancel(a->loop, a->timer);
        a->timer = 0;
        action_end(a, a->in_doubt ? ACTION_DOUBTFUL : ACTION_STOPPED, NULL);
    }
    action_touch(a);
}

/* --- the wish
 * ------------------------------------------------------------------------------------- */

/* A predicate with terms that the acting section does not know. */
static bool
needs_gathering(const struct adapter *a, enum section_id s, const struct params *where)
{
    if (s == SEC_COUNT || !adapter_has(a, s))
        return true;
    for (int i = 0; i < PARAM_TOTAL; i++)
        if (where->value[i] && !adapter_takes(a, s, (enum param)i))
            return true;
    return false;
}

static void
take_predicate(struct action *a, const struct intent *in)
{
    static const char *const failed[] = {"failed"}, *const finished[] = {"completed", "cancelled"};
    const struct act_parts *parts = &act_parts[a->act];

    if (in->where)
        params_copy(&a->params, in->where);
    if (in->queue)
        params_set(&a->params, PARAM_QUEUE, in->queue);
    if (a->act == ACT_REQUEUE && !a->params.value[PARAM_STATES])
        params_set_list(&a->params, PARAM_STATES, failed, 1);
    if (a->act == ACT_PURGE && !a->params.value[PARAM_STATES])
        params_set_list(&a->params, PARAM_STATES, finished, 2);
    a->section = parts->by_where;
    if (in->where && needs_gathering(a->adapter, a->section, &a->params)) {
        params_copy(&a->search, &a->params);
        a->gather = true;
        a->section = parts->by_ids;
    }
}

static void
take_options(struct action *a, const struct intent *in)
{
    struct params *p = &a->params;

    if (in->node)
        params_set(p, PARAM_NODE, in->node);
    params_set(p, PARAM_SCHEDULE, in->schedule);
    params_set(p, PARAM_N, in->pid);
    params_set(p, PARAM_SETTINGS, in->settings);
    params_set(p, PARAM_PAYLOAD, in->payload);
    params_set(p, PARAM_OF, in->of);
    if (a->act == ACT_PRIORITY)
        params_set(p, PARAM_N, in->priority);
    if (a->act == ACT_TIME && in->at_ms)
        params_set_time(p, PARAM_AT, in->at_ms);
    else if (in->by_ms && a->act != ACT_TIME)
        params_set_interval(p, PARAM_BY, in->by_ms);
    if (a->act == ACT_RELEASE) {
        params_set_bool(p, PARAM_EXPIRED_ONLY, !in->all_leases);
        params_set_bool(p, PARAM_FAIL, in->fail);
        params_set_bool(p, PARAM_COUNT, !in->no_count);
        params_set_bool(p, PARAM_FORCE, in->force);
    }
    if (a->act == ACT_PAUSE)
        params_set_bool(p, PARAM_FORCE, in->force);
    params_set_bool(p, PARAM_RESET, in->reset);
    params_set(p, PARAM_ACTION, a->id);
    params_set(p, PARAM_REASON, in->reason);
    params_set_int(p, PARAM_LIMIT, a->batch_size);
    if (in->expected >= 0)
        params_set_int(p, PARAM_EXPECTED, in->expected);
}

struct action *
action_new(struct loop *l, struct db *actor, const struct adapter *adapter, const struct intent *in)
{
    struct action *a = xcalloc(1, sizeof *a);
    uuid_t id;

    a->loop = l;
    a->db = actor;
    a->adapter = adapter;
    a->act = in->act;
    a->expected = in->expected;
    a->give_up_ms = in->give_up_ms;
    a->all_leases = in->all_leases;
    a->typed = in->typed;
    a->about = in->about ? xstrdup(in->about) : NULL;
    a->spread_ms = in->act == ACT_REQUEUE ? in->by_ms : 0;
    a->in_ms = in->act == ACT_TIME && !in->at_ms ? in->by_ms : 0;
    a->older_than_ms = in->act == ACT_PURGE ? in->older_than_ms : 0;
    a->batch_size = in->batch_size ? in->batch_size : in->ids ? BATCH_IDS : BATCH_ROWS;
    uuid_generate_random(id);
    uuid_unparse_lower(id, a->id);
    if (in->ids) {
        a->ids = xcalloc((size_t)in->nids + 1, sizeof *a->ids);
        for (; a->nids < in->nids; a->nids++)
            a->ids[a->nids] = xstrdup(in->ids[a->nids]);
        a->section = act_parts[a->act].by_ids;
    } else {
        take_predicate(a, in);
    }
    take_options(a, in);
    a->summary = xstrdup("");
    if (a->section == SEC_COUNT || !adapter_has(adapter, a->section)) {
        struct err e = {0};
        fail(&e, ERR_REFUSED, "%s can't %s this way", adapter_title(adapter),
             act_infos[a->act].name);
        action_end(a, ACTION_REFUSED, &e);
    } else {
        action_preview(a);
    }
    return a;
}

uint64_t
action_generation(const struct action *a)
{
    return a->generation;
}

enum action_state
action_state(const struct action *a)
{
    return a->state;
}

const struct err *
action_error(const struct action *a)
{
    return &a->error;
}

const char *
action_id(const struct action *a)
{
    return a->id;
}

enum act
action_act(const struct action *a)
{
    return a->act;
}

struct progress
action_progress(const struct action *a)
{
    struct progress p = {.changed = tally_sum(&a->outcome, true),
                         .skipped = tally_sum(&a->outcome, false),
                         .total = tally_sum(&a->effects, true) + tally_sum(&a->effects, false),
                         .batches = a->batch,
                         .rate = (double)NAN,
                         .left_ms = -1,
                         .slowest_us = a->slowest_us};
    int64_t ms = a->started_ms ? clock_ms() - a->started_ms : 0, done = p.changed + p.skipped;

    if (done > 0 && ms > 0) {
        p.rate = (double)done * 1000.0 / (double)ms;
        if (p.total >= done)
            p.left_ms = (int64_t)((double)(p.total - done) / p.rate * 1000.0);
    }
    return p;
}
