/*
 * Checks that an act really changes the rows that it reports as changed: before and after the act,
 * in the transaction that is rolled back, the adapter's own section for the target is read. An
 * extended lease must end later, whatever else the act changes.
 * `changed_ms` and cursors are left out: an update may move them and change nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter_check_parts.h"
#include "model/adapter/adapter_parts.h"
#include "model/base/mem.h"

/* The section that shows the target of the act; SEC_COUNT = there is none. */
static enum section_id
look_of(const struct check *c, enum section_id act)
{
    const char *mode = adapter_note(c->a, act, "mode");
    enum section_id look = SEC_COUNT;

    if (mode && !strcmp(mode, "signal"))
        return SEC_COUNT; /* the act only sends a signal: another program changes the row later */
    if (adapter_takes(c->a, act, PARAM_IDS))
        look = adapter_takes(c->a, SEC_JOBS, PARAM_IDS) ? SEC_JOBS : SEC_COUNT;
    else if (adapter_takes(c->a, act, PARAM_SCHEDULE))
        look = SEC_SCHEDULES;
    else if (act == SEC_PAUSE || act == SEC_RESUME)
        look = SEC_QUEUES;
    return look != SEC_COUNT && adapter_has(c->a, look) ? look : SEC_COUNT;
}

bool
check_ask_thrice(struct check *c, enum section_id s, struct result *out[3], struct err *e)
{
    struct db_param storage[3][ADAPTER_PARAMS];
    enum section_id look = look_of(c, s);
    struct params p = {0};
    struct db_reply reply;

    memset(out, 0, 3 * sizeof *out);
    if (look == SEC_COUNT)
        return check_ask(c, s, &out[1], e);
    params_set(&p, PARAM_IDS, c->p.value[PARAM_IDS]);
    params_set_int(&p, PARAM_LIMIT, 1000);
    params_set_int(&p, PARAM_N, 1000);
    struct db_stmt stmts[] = {adapter_bind(c->a, look, &p, storage[0]),
                              adapter_bind(c->a, s, &c->p, storage[1]),
                              adapter_bind(c->a, look, &p, storage[2])};
    struct db_call call = {.stmts = stmts, .n = 3, .dry = true};
    adapter_settings(c->a, true, &call);
    if (db_do(c->db, c->loop, &call, &reply, e))
        for (int i = 0; i < 3; i++)
            out[i] = db_take(&reply, i);
    int failed_at = reply.failed_at;
    db_reply_done(&reply);
    params_done(&p);
    if (failed_at == 0 || failed_at == 2) { /* the look failed; the check of that section reports
                                               it */
        *e = (struct err){0};
        return check_ask(c, s, &out[1], e);
    }
    if (out[1] || (e->kind != ERR_CONN && e->kind != ERR_AUTH))
        return true;
    *c->e = *e;
    return false;
}

/* --- comparing ------------------------------------------------------------------------------- */

static int
row_of(const struct result *r, int col, const char *id)
{
    for (int i = 0; i < result_rows(r); i++)
        if (!strcmp(result_text(r, i, col), id))
            return i;
    return -1;
}

static bool
is_noise(const char *column)
{
    return !strcmp(column, "changed_ms") || !strcmp(column, "cursor");
}

static bool
is_same_row(const struct result *a, int i, const struct result *b, int k)
{
    for (int col = 0; col < result_cols(a); col++)
        if (!is_noise(result_name(a, col)) &&
            (result_null(a, i, col) != result_null(b, k, col) ||
             strcmp(result_text(a, i, col), result_text(b, k, col)) != 0))
            return false;
    return true;
}

/* True if both rows have the end of a lease, and it is no later than before. */
static bool
ends_as_before(const struct result *a, int i, const struct result *b, int k)
{
    int was = result_col(a, "lease_until_ms"), is = result_col(b, "lease_until_ms");

    return was >= 0 && is >= 0 && !result_null(a, i, was) &&
           result_int(b, k, is, 0) <= result_int(a, i, was, 0);
}

const char *
check_unchanged(enum section_id act, const struct result *before, const struct rowset *rows,
                const struct result *after)
{
    const struct change_row *row = rows->rows;
    const char *key = result_col(before, "id") >= 0     ? "id"
                      : result_col(before, "name") >= 0 ? "name"
                                                        : "queue";
    int was = result_col(before, key), is = result_col(after, key);

    for (int i = 0; was >= 0 && is >= 0 && i < rows->n; i++) {
        int b = row_of(before, was, row[i].id), a = row_of(after, is, row[i].id);
        if (!*row[i].state || a < 0 || b < 0)
            continue;
        if (is_same_row(before, b, after, a) ||
            (act == SEC_EXTEND && ends_as_before(before, b, after, a)))
            return row[i].id;
    }
    return NULL;
}
