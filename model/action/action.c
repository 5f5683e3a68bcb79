/*
 * Runs an action in batches. The uuid of the action is made once. A batch is asked again with the
 * same number until its answer has come. So a lost answer, or a lock in the way, can't make a batch
 * count twice.
 */
#include "model/action/action.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/action_parts.h"
#include "model/base/clock.h"
#include "model/base/console_sql.h"

enum {
    TRIES_MOST = 6,      /* attempts of a batch that meets a lock or a deadlock */
    FIRST_WAIT_MS = 200, /* each further wait is twice as long */
    LOST_WAIT_MS = 500,
    RECONNECT_MS = 5000,
    PURGE_MOST = 5000, /* rows of a batch; with more, each commit would slow the workers */
    PURGE_LEAST = 200,
    QUICK_US = 200000,
    SLOW_US = 1000000,
    NOTABLE_US = 300000
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
    for (int i = 0; i < a->rows.n; i++)
        free(a->rows.ids[i]);
    free(a->rows.ids);
    for (int i = 0; i < a->done.n; i++)
        free(a->done.ids[i]);
    free(a->done.ids);
    free(a->how.reason_prefix);
    params_done(&a->params);
    params_done(&a->rows.search);
    row_counts_clear(&a->preview.effects);
    row_counts_clear(&a->done.counts);
    rowset_free(&a->preview.nodes);
    free(a->how.about);
    free(a->preview.busy);
    free(a->preview.notes);
    free(a->run.waits);
    free(a->preview.what);
    free(a->preview.where);
    free(a->preview.these);
    free(a->preview.sql);
    free(a->preview.summary);
    free(a->preview.challenge);
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
    if (a->calls > 0 && a->state == ACTION_PREVIEWING)
        db_cancel(a->db); /* nobody needs its answer, and the next act would have to wait for it */
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
    adapter_settings(a->adapter, true, &own);
    db_ask(a->db, &own, wait_ms, fn, a);
}

bool
action_answered(struct action *a)
{
    a->calls--;
    if (a->orphan && a->calls == 0) {
        free_now(a);
        return false;
    }
    return !a->orphan && a->state != ACTION_STOPPED;
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

/* --- batches ---------------------------------------------------------------------------------- */

static void
again_in(struct action *a, int64_t ms)
{
    a->timer = loop_at(a->loop, clock_ms() + ms, ask_batch, a);
}

/* True if the batch should be asked again: a lock, a deadlock or a time limit is temporary. Any
 * other error would come again. */
static bool
may_pass(const struct err *e)
{
    return e->kind == ERR_TIMEOUT || !strcmp(e->sqlstate, "40P01") || !strcmp(e->sqlstate, "40001");
}

/* True if a batch may be asked again after a lost answer. A server that keeps no record can't
 * notice that a batch runs a second time. */
static bool
may_ask_again(const struct action *a)
{
    return a->audited || !a->run.in_doubt || a->act != ACT_CRON_RUN;
}

static void
lost(struct action *a, const struct db_reply *reply)
{
    int64_t now = clock_ms();

    a->run.in_doubt |= reply->in_doubt;
    if (!a->run.lost_ms)
        a->run.lost_ms = now;
    a->error = reply->err;
    if (a->run.stop || !may_ask_again(a) ||
        (a->how.give_up_ms && now - a->run.lost_ms >= a->how.give_up_ms)) {
        action_end(a, a->run.in_doubt ? ACTION_DOUBTFUL : ACTION_FAILED, NULL);
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
    if (ok && rows.n > 0 && a->run.waits) {
        free(a->run.waits);
        a->run.waits =
            xasprintf("waits for a lock: %s", ((const struct effect_row *)rows.rows)->why);
        action_touch(a);
    }
    rowset_free(&rows);
}

/* A lock is in the way: shows the operator which session holds it. */
static void
ask_holder(struct action *a)
{
    struct db_param schema = {.value = adapter_schema(a->adapter)};
    struct db_stmt stmt = {.sql = console_sql("holders"), .params = &schema, .nparams = 1};

    if (!a->run.waits || a->run.tries == 1) {
        free(a->run.waits);
        a->run.waits = xstrdup("waits for a lock");
    }
    action_ask(a, &(struct db_call){.stmts = &stmt, .n = 1, .dry = true}, RECONNECT_MS,
               holder_came);
}

/* One row that can't change makes the whole statement fail. Then the batch is asked again and
 * again, each time with half the rows. A single row that still fails is left alone. */
static bool
narrowed(struct action *a, const struct err *e)
{
    if (a->audited || !a->rows.ids || strcmp(e->sqlstate, "23505") != 0)
        return false;
    a->run.tries = 0;
    a->run.in_doubt = false; /* the batch has the same error, so the attempt whose answer was lost
                            failed, too */
    if (a->run.chunk > 1) {
        a->run.clash = true;
        a->run.narrow = a->run.chunk / 2;
    } else {
        action_add_duplicate(a, e);
        a->run.at++;
        a->run.narrow = 1;
    }
    return true;
}

static void
next_batch(struct action *a, bool more, int64_t pause_ms)
{
    if (a->state == ACTION_PREVIEWING && !more) {
        action_tried(a);
    } else if (!more || a->run.stop) {
        action_end(a, more ? ACTION_STOPPED : ACTION_DONE, NULL);
    } else {
        a->run.batch++;
        again_in(a, pause_ms);
        action_touch(a);
    }
}

static void
batch_failed(struct action *a, const struct db_reply *reply)
{
    const struct err *e = &reply->err;
    bool trying = a->state == ACTION_PREVIEWING;

    if (e->kind == ERR_CONN && !trying) {
        lost(a, reply);
    } else if (may_pass(e) && ++a->run.tries < TRIES_MOST && !a->run.stop) {
        again_in(a, (int64_t)FIRST_WAIT_MS << a->run.tries);
        if (!strcmp(e->sqlstate, "55P03"))
            ask_holder(a);
        action_touch(a);
    } else if (narrowed(a, e)) {
        next_batch(a, a->run.at < a->rows.n, 0);
    } else if (a->run.in_doubt && e->kind == ERR_DENIED) {
        /* the batch may have been done where it was sent first */
        action_end(a, ACTION_DOUBTFUL, e);
    } else if ((e->kind == ERR_REFUSED || e->kind == ERR_DENIED) && a->run.batch == 1) {
        action_end(a, ACTION_REFUSED, e);
    } else {
        action_end(a, ACTION_FAILED, e);
    }
}

/* For a section without a cursor: true if there may be more rows, because the batch was full. */
static bool
was_full(const struct action *a, const struct rowset *rows)
{
    const struct change_row *row = rows->rows;
    int changed = 0;

    if (a->audited || !adapter_takes(a->adapter, a->section, PARAM_LIMIT))
        return false;
    for (int i = 0; i < rows->n; i++)
        changed += *row[i].state != 0;
    return changed > 0 && rows->n >= a->how.batch_size && a->state != ACTION_PREVIEWING;
}

/* The next batch starts where this one ended; false = there is none. */
static bool
move_on(struct action *a, const struct rowset *rows)
{
    const struct change_row *last =
        rows->n ? (const struct change_row *)rows->rows + rows->n - 1 : NULL;
    const char *cursor = a->params.value[PARAM_CURSOR];

    if (a->rows.ids) {
        a->run.at += a->run.chunk;
        a->run.narrow = a->run.narrow * 2 >= a->how.batch_size ? 0 : a->run.narrow * 2;
        return a->run.at < a->rows.n;
    }
    if (act_infos[a->act].once || !last)
        return false;
    if (!*last->cursor)
        return was_full(a, rows);
    if (cursor && !strcmp(cursor, last->cursor) && row_counts_sum(&a->done.counts, true) == 0)
        return false; /* if the cursor does not change, the same batch would be asked for ever */
    params_set(&a->params, PARAM_CURSOR, last->cursor);
    return true;
}

/* Sets the size of the next batch of a purge. The first batches are small, so that progress is
 * visible at once. After a quick batch the next one is larger. So nobody waits long for the purge's
 * locks, and the user can stop it soon. */
static void
adapt_batch_size(struct action *a, int64_t took_us)
{
    bool counted = a->run.batch == 1; /* the first batch also compares the count, so its time says
                                     little */

    if (a->act != ACT_PURGE || !a->audited || counted)
        return;
    if (took_us < QUICK_US)
        a->how.batch_size = a->how.batch_size * 2 < PURGE_MOST ? a->how.batch_size * 2 : PURGE_MOST;
    else if (took_us > SLOW_US)
        a->how.batch_size =
            a->how.batch_size / 2 > PURGE_LEAST ? a->how.batch_size / 2 : PURGE_LEAST;
    params_set_int(&a->params, PARAM_LIMIT, a->how.batch_size);
}

static void
batch_came(void *ctx, struct db_reply *reply)
{
    struct action *a = ctx;
    struct err e = reply->err;
    struct rowset rows;

    if (!action_answered(a))
        return;
    if (a->state == ACTION_WAITING)
        a->state = ACTION_RUNNING;
    if (e.kind != ERR_NONE) {
        batch_failed(a, reply);
        return;
    }
    if (!record_decode(&record_change, db_take(reply, 0), &rows, &e)) {
        action_end(a, ACTION_FAILED, &e);
        return;
    }
    action_count_rows(a, &rows);
    bool more = move_on(a, &rows);
    rowset_free(&rows);
    free(a->run.waits);
    a->run.waits = NULL;
    if (reply->took_us > a->run.slowest_us)
        a->run.slowest_us = reply->took_us;
    adapt_batch_size(a, reply->took_us);
    a->run.tries = 0;
    a->run.lost_ms = 0;
    a->run.in_doubt = false;
    a->error = (struct err){0};
    /* pause for as long as the batch took, because deleted rows make work for vacuum and replicas
     */
    next_batch(a, more, a->act == ACT_PURGE ? reply->took_us / 1000 : 0);
}

bool
action_has_moved(struct action *a)
{
    struct err e = {0};

    if (a->serial == adapter_serial(a->adapter))
        return false;
    fail(&e, ERR_REFUSED,
         "the schema holds another queue now than when this action began: look again before you "
         "act");
    action_end(a, a->run.in_doubt ? ACTION_DOUBTFUL : ACTION_FAILED, &e);
    return true;
}

static void
ask_batch(void *ctx)
{
    struct action *a = ctx;
    struct db_param storage[ADAPTER_PARAMS];
    bool trying = a->state == ACTION_PREVIEWING;

    a->timer = 0;
    if (action_has_moved(a))
        return;
    if (a->run.stop && !a->run.in_doubt && a->run.tries == 0) {
        action_end(a, ACTION_STOPPED, NULL);
        return;
    }
    if (a->rows.ids) {
        int most = a->run.narrow ? a->run.narrow : a->how.batch_size;
        a->run.chunk = a->rows.n - a->run.at < most ? a->rows.n - a->run.at : most;
        params_set_list(&a->params, PARAM_IDS, (const char *const *)a->rows.ids + a->run.at,
                        a->run.chunk);
    }
    params_set_int(&a->params, PARAM_BATCH, a->run.batch);
    struct db_stmt stmt = adapter_bind(a->adapter, a->section, &a->params, storage);
    if (trying)
        action_is_busy(a, "trying it, to be rolled back", a->run.at, a->rows.n);
    struct db_call call = {.stmts = &stmt, .n = 1, .dry = trying};
    if (a->run.batch == 1 && a->params.value[PARAM_EXPECTED])
        call.statement_timeout_ms = ACTION_COUNT_MS;
    action_ask(a, &call, RECONNECT_MS, batch_came);
    action_touch(a);
}

void
action_try(struct action *a)
{
    a->run.batch = 1;
    ask_batch(a);
}

bool
action_can_hold_count(const struct action *a)
{
    bool is_one_batch = !a->rows.ids || a->rows.n <= a->how.batch_size;

    return is_one_batch && adapter_takes(a->adapter, a->section, PARAM_EXPECTED);
}

/* The first batch compares the count before it changes anything. This takes as long as the preview
 * did. So the dialog tells the user that it is counting. */
static void
say_recount(struct action *a)
{
    if (!a->params.value[PARAM_EXPECTED] || a->preview.took_us < NOTABLE_US)
        return;
    a->run.waits = xasprintf("counts again whether the number is unchanged: about %lld s",
                             (long long)((a->preview.took_us + 999999) / 1000000));
}

void
action_start(struct action *a, bool force)
{
    assert(a->state == ACTION_READY);
    if (!action_can_hold_count(a)) /* the preview has compared the count already */
        params_set(&a->params, PARAM_EXPECTED, NULL);
    if (force)
        params_set_bool(&a->params, PARAM_FORCE, true);
    a->run.started_ms = clock_ms();
    if (a->rows.ids && a->rows.n == 0) {
        action_end(a, ACTION_DONE, NULL);
        return;
    }
    a->state = ACTION_RUNNING;
    a->run.batch = 1;
    say_recount(a);
    ask_batch(a);
}

void
action_hold_count(struct action *a)
{
    if (action_can_hold_count(a))
        params_set_int(&a->params, PARAM_EXPECTED, row_counts_sum(&a->preview.effects, true));
}

static void
forget_timer(struct action *a)
{
    if (a->timer)
        loop_cancel(a->loop, a->timer);
    a->timer = 0;
}

void
action_stop(struct action *a)
{
    a->run.stop = true;
    if (a->state == ACTION_PREVIEWING || a->state == ACTION_READY) {
        forget_timer(a);
        action_end(a, ACTION_STOPPED, NULL);
    } else if (a->state == ACTION_WAITING && a->timer) {
        forget_timer(a);
        action_end(a, a->run.in_doubt ? ACTION_DOUBTFUL : ACTION_STOPPED, NULL);
    }
    action_touch(a);
}

/* --- what it is ------------------------------------------------------------------------------- */

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
    struct progress p = {.changed = row_counts_sum(&a->done.counts, true),
                         .skipped = row_counts_sum(&a->done.counts, false),
                         .total = row_counts_sum(&a->preview.effects, true) +
                                  row_counts_sum(&a->preview.effects, false),
                         .batches = a->run.batch,
                         .rate = (double)NAN,
                         .left_ms = -1,
                         .slowest_us = a->run.slowest_us};
    int64_t ms = a->run.started_ms ? clock_ms() - a->run.started_ms : 0,
            done = p.changed + p.skipped;

    if (done > 0 && ms > 0) {
        p.rate = (double)done * 1000.0 / (double)ms;
        if (p.total >= done)
            p.left_ms = (int64_t)((double)(p.total - done) / p.rate * 1000.0);
    }
    return p;
}
