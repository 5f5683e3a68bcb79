/*
 * The preview. First it reads the server's clock, which freezes the predicate. If the filter says
 * more than the acting section can take, it then looks up the ids that match, page by page. Then it
 * asks the preview section, with the evidence about a node beside it. If there is no preview
 * section, it runs the act itself in transactions that are rolled back. Nothing stays written.
 */
#include <stdlib.h>
#include <string.h>

#include "model/action/action_parts.h"
#include "model/base/console_sql.h"

/* The most ids that a filter may match. The limit is higher for another queue system whose acts
 * take only ids. */
enum {
    GATHER_MOST = 10000,
    GATHER_FOREIGN = 100000,
    GATHER_PAGE = 2000,
    GATHER_SCAN = 100000,
    CONNECT_MS = 10000
};

static void ask_page(struct action *a);

/* --- the answer ------------------------------------------------------------------------------- */

static void
find_evidence(struct action *a)
{
    const struct node_row *rows = a->preview.nodes.rows;
    const char *node = a->params.value[PARAM_NODE];

    for (int i = 0; node && i < a->preview.nodes.n; i++)
        if (!strcmp(rows[i].node, node))
            a->preview.evidence = &rows[i];
}

static bool
wants_evidence(const struct action *a)
{
    return a->params.value[PARAM_NODE] && adapter_has(a->adapter, SEC_NODES);
}

void
action_previewed(struct action *a)
{
    int64_t n = row_counts_sum(&a->preview.effects, true);
    struct err e = {0};

    a->preview.no_node = a->preview.effects.n == 0 && wants_evidence(a) && !a->preview.evidence;
    action_make_texts(a);
    if (a->preview.expected >= 0 && a->preview.expected != n) {
        fail(&e, ERR_REFUSED, "expected %lld, would change %lld: nothing was changed",
             (long long)a->preview.expected, (long long)n);
        action_end(a, ACTION_REFUSED, &e);
        return;
    }
    a->state = ACTION_READY;
    action_make_summary(a);
    action_touch(a);
}

/* Fills in the effects of an act without a preview section: it changes one thing, or the ids that
 * it was given. */
static void
assume_effects(struct action *a)
{
    const struct act_info *info = &act_infos[a->act];

    if (!a->audited && wants_evidence(a) && !a->preview.evidence)
        return; /* the node does not exist, so nothing would change */
    if (!a->rows.ids || a->rows.n > 0)
        row_counts_add(&a->preview.effects, info->becomes, "", a->rows.ids ? a->rows.n : 1);
}

/* No section can count: the statement itself runs and is rolled back, and its rows are counted. */
static bool
wants_trial(const struct action *a)
{
    return !a->audited && !action_note(a, "dry") && !(a->rows.ids && a->rows.n == 0);
}

/* The rest of the preview, if there is no preview section. */
static void
preview_without(struct action *a)
{
    if (wants_trial(a)) {
        action_try(a);
        return;
    }
    assume_effects(a);
    action_previewed(a);
}

static bool
read_effects(struct action *a, struct result *r, struct err *e)
{
    struct rowset rows;

    if (!record_decode(&record_effect, r, &rows, e))
        return false;
    const struct effect_row *row = rows.rows;
    for (int i = 0; i < rows.n; i++)
        if (row[i].n > 0)
            row_counts_add(&a->preview.effects, row[i].state, row[i].why, row[i].n);
    rowset_free(&rows);
    return true;
}

static bool
has_preview(const struct action *a)
{
    enum section_id s = act_infos[a->act].preview;

    return s != SEC_COUNT && adapter_has(a->adapter, s) &&
           (!a->rows.ids || adapter_takes(a->adapter, s, PARAM_IDS));
}

/* --- a queue that is not there ---------------------------------------------------------------- */

/* Nothing matches, the predicate names a queue, and the adapter can say whether it was ever seen.
 */
static bool
wants_queue(const struct action *a)
{
    return a->preview.effects.n == 0 && a->params.value[PARAM_QUEUE] &&
           adapter_has(a->adapter, SEC_QUEUE_SETTINGS);
}

static void
queue_came(void *ctx, struct db_reply *reply)
{
    struct action *a = ctx;

    if (!action_answered(a))
        return;
    a->preview.no_queue = reply->err.kind == ERR_NONE && result_rows(reply->results[0]) == 0;
    action_previewed(a);
}

/* A queue that was never seen is perhaps a misspelt name. */
static void
ask_queue(struct action *a)
{
    struct db_param storage[ADAPTER_PARAMS];
    struct db_stmt stmt = adapter_bind(a->adapter, SEC_QUEUE_SETTINGS, &a->params, storage);
    struct db_call call = {.stmts = &stmt, .n = 1, .dry = true};

    call.statement_timeout_ms = ACTION_COUNT_MS;
    action_ask(a, &call, CONNECT_MS, queue_came);
}

/* --- the preview ------------------------------------------------------------------------------ */

static void
previewed(void *ctx, struct db_reply *reply)
{
    struct action *a = ctx;
    struct err e = reply->err;
    int i = 0;

    if (!action_answered(a))
        return;
    a->preview.took_us = reply->took_us;
    bool ok = e.kind == ERR_NONE;
    if (ok && has_preview(a))
        ok = read_effects(a, db_take(reply, i++), &e);
    if (ok && wants_evidence(a)) {
        ok = record_decode(&record_node, db_take(reply, i), &a->preview.nodes, &e);
        find_evidence(a);
    }
    if (!ok)
        action_end(a, ACTION_FAILED, &e);
    else if (!has_preview(a))
        preview_without(a);
    else if (wants_queue(a))
        ask_queue(a);
    else
        action_previewed(a);
}

static void
ask_preview(struct action *a)
{
    struct db_param storage[2][ADAPTER_PARAMS];
    struct db_stmt stmts[2];
    int n = 0;

    if (a->rows.ids)
        params_set_list(&a->params, PARAM_IDS, (const char *const *)a->rows.ids, a->rows.n);
    if (has_preview(a)) {
        stmts[n] = adapter_bind(a->adapter, act_infos[a->act].preview, &a->params, storage[n]);
        n++;
    }
    if (wants_evidence(a)) {
        stmts[n] = adapter_bind(a->adapter, SEC_NODES, NULL, storage[n]);
        n++;
    }
    if (n == 0) {
        preview_without(a);
        return;
    }
    struct db_call call = {
        .stmts = stmts, .n = n, .dry = true, .statement_timeout_ms = ACTION_COUNT_MS};
    action_ask(a, &call, CONNECT_MS, previewed);
}

/* --- ids that match --------------------------------------------------------------------------- */

static void
add_id(struct action *a, const char *id)
{
    if (a->rows.n == a->rows.cap) {
        a->rows.cap = a->rows.cap ? a->rows.cap * 2 : 64;
        a->rows.ids = xreallocarray(a->rows.ids, (size_t)a->rows.cap, sizeof *a->rows.ids);
    }
    a->rows.ids[a->rows.n++] = xstrdup(id);
}

static void
refuse_so_many(struct action *a)
{
    struct err e = {0};

    if (a->audited)
        fail(&e, ERR_REFUSED,
             "more than %d jobs match; narrow the filter, or use only queue: state: "
             "kind: error:, which know no limit",
             GATHER_MOST);
    else
        fail(&e, ERR_REFUSED, "more than %d jobs match, and %s takes them by id only: narrow it",
             GATHER_FOREIGN, adapter_title(a->adapter));
    action_end(a, ACTION_REFUSED, &e);
}

static void
page_came(void *ctx, struct db_reply *reply)
{
    struct action *a = ctx;
    struct err e = reply->err;
    struct rowset rows;

    if (!action_answered(a))
        return;
    if (e.kind != ERR_NONE || !record_decode(&record_job, db_take(reply, 0), &rows, &e)) {
        action_end(a, ACTION_FAILED, &e);
        return;
    }
    const struct job_row *row = rows.rows;
    bool more = rows.n >= GATHER_PAGE || (rows.n && !*row[rows.n - 1].id);
    for (int i = 0; i < rows.n; i++)
        if (*row[i].id)
            add_id(a, row[i].id);
    if (more)
        params_set(&a->rows.search, PARAM_CURSOR, row[rows.n - 1].cursor);
    rowset_free(&rows);
    if (a->rows.n > (a->audited ? GATHER_MOST : GATHER_FOREIGN)) {
        refuse_so_many(a);
    } else if (more) {
        ask_page(a);
    } else {
        if (!a->audited)
            action_sort_ids(a);
        ask_preview(a);
    }
}

static void
ask_page(struct action *a)
{
    struct db_param storage[ADAPTER_PARAMS];

    if (action_has_moved(a))
        return;
    params_set_int(&a->rows.search, PARAM_LIMIT, GATHER_PAGE);
    params_set_int(&a->rows.search, PARAM_N, GATHER_SCAN);
    struct db_stmt stmt = adapter_bind(a->adapter, SEC_JOBS, &a->rows.search, storage);
    action_is_busy(a, "looking for the jobs that match", a->rows.n, 0);
    action_ask(a, &(struct db_call){.stmts = &stmt, .n = 1, .dry = true}, CONNECT_MS, page_came);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void
clock_came(void *ctx, struct db_reply *reply)
{
    struct action *a = ctx;
    struct err e = reply->err;
    struct rowset rows = {0};

    if (!action_answered(a))
        return;
    if (e.kind != ERR_NONE || !record_decode(&record_spent, db_take(reply, 0), &rows, &e) ||
        rows.n != 1) {
        rowset_free(&rows);
        action_end(a, ACTION_FAILED, &e);
        return;
    }
    a->preview.now_ms = ((const struct spent_row *)rows.rows)->now_ms;
    rowset_free(&rows);
    if (!a->rows.frozen)
        params_set_time(&a->params, PARAM_BEFORE, a->preview.now_ms - a->how.older_than_ms);
    /* now_ms is rounded up, but "now" must lie in the past */
    if (a->act == ACT_TIME && !a->how.at_ms)
        params_set_time(&a->params, PARAM_AT,
                        a->preview.now_ms + (a->how.in_ms ? a->how.in_ms : -1));
    if (a->rows.gather && !a->rows.frozen) {
        a->rows.ids = xcalloc(1, sizeof *a->rows.ids);
        a->rows.cap = 1;
        ask_page(a);
    } else {
        ask_preview(a);
    }
}

void
action_preview(struct action *a)
{
    struct db_stmt stmt = {.sql = console_sql("spent")};

    a->serial = adapter_serial(a->adapter);
    action_ask(a, &(struct db_call){.stmts = &stmt, .n = 1, .dry = true}, CONNECT_MS, clock_came);
}
