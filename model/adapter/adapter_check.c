/*
 * Running an adapter's sections with sample values. First a sample of what is there is taken by its
 * own sections: a job in each state, queues, nodes, schedules. Then each section runs several
 * times: without parameters, with values that no row has (also ids of any form), and with values of
 * the sample. The list of jobs also runs with each of its parameters alone.
 */
#include "model/adapter/adapter_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter_check_parts.h"
#include "model/adapter/adapter_parts.h"
#include "model/base/alias.h"
#include "model/base/clock.h"
#include "model/base/mem.h"

/* --- what an act changed --- */

/* Checks that an act really changes the rows that it reports as changed: before and after the
 * act, in the transaction that is rolled back, the adapter's own section for the target is read.
 * An extended lease must end later, whatever else the act changes. `changed_ms` and cursors are
 * left out: an update may move them and change nothing else. */

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

/* Runs an act between two looks at its target, in one transaction. out[0] and out[2] are the
 * answers of the look before and after the act; NULL if no section shows the target. Otherwise as
 * check_ask. */
static bool
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

/* The first row that was reported as changed, but has not changed; NULL = none. */
static const char *
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

/* --- running the sections --- */

enum { COLUMNS_MOST = 60 };

static const char *const no_ids[] = {"no such id",
                                     "",
                                     "'",
                                     "99999999999999999999999",
                                     "-1",
                                     "00000000-0000-0000-0000-000000000000",
                                     "no such queue:1",
                                     "no such queue:00000000-0000-0000-0000-000000000000"};

/* --- one run --------------------------------------------------------------------------------- */

static bool
is_of_type(enum field_type type, unsigned oid)
{
    bool whole = oid == 20 || oid == 21 || oid == 23;

    switch (type) {
    case F_STR:
        return oid != 705; /* 705 = unknown: a literal without a type */
    case F_I64:
    case F_INT:
        return whole;
    case F_BOOL:
        return oid == 16;
    case F_DBL:
        return whole || oid == 700 || oid == 701 || oid == 1700;
    }
    return false;
}

static bool note_wrong(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool
note_wrong(struct check *c, const char *fmt, ...)
{
    va_list ap;

    if (!c->found.ok)
        return false;
    c->found.ok = false;
    va_start(ap, fmt);
    vsnprintf(c->text, sizeof c->text, fmt, ap);
    va_end(ap);
    return false;
}

static bool
check_types(struct check *c, const struct record *rec, const struct result *r)
{
    static const char *const names[] = {"text", "bigint", "int", "double precision", "boolean"};

    for (int i = 0; i < rec->n; i++) {
        const struct field *f = &rec->fields[i];
        int col = result_col(r, f->name);
        if (col < 0 && !f->optional)
            return note_wrong(c, "column %s is missing", f->name);
        if (col >= 0 && !is_of_type(f->type, result_type(r, col)))
            return note_wrong(c, "column %s is not %s", f->name, names[f->type]);
    }
    return true;
}

static bool
is_asked_for(const struct check *c, const char *id)
{
    for (int i = 0; i < c->sample.nids; i++)
        if (!strcmp(c->sample.ids[i], id))
            return true;
    return false;
}

/* --- words ----------------------------------------------------------------------------------- */

static const char *const job_states[] = {"scheduled", "ready",     "retry",     "running", "failed",
                                         "blocked",   "completed", "cancelled", NULL};
static const char *const schedule_states[] = {"active", "paused", "failed", NULL};

static bool
is_word(const char *word, const char *const *list)
{
    while (*list && strcmp(*list, word) != 0)
        list++;
    return *list != NULL;
}

/* The words that the console knows for the column "state" of this record; NULL = any. */
static const char *const *
states_of(const struct record *rec)
{
    return rec == &record_job || rec == &record_detail ? job_states
           : rec == &record_node                       ? node_states + NODE_UP
           : rec == &record_schedule                   ? schedule_states
                                                       : NULL;
}

static void
check_states_known(struct check *c, const struct record *rec, const struct result *r)
{
    const char *const *known = states_of(rec);
    int col = known ? result_col(r, "state") : -1;
    struct buf all = {0};

    for (int i = 0; col >= 0 && i < result_rows(r); i++) {
        const char *state = result_text(r, i, col);
        bool is_mark = rec == &record_job && !*result_text(r, i, result_col(r, "id"));
        if (is_mark || is_word(state, known))
            continue;
        buf_str(&all, "");
        for (const char *const *k = known; *k; k++)
            buf_printf(&all, " %s", *k);
        note_wrong(c, "state is \"%.40s\", not one of%s", state, all.data);
        break;
    }
    buf_free(&all);
}

/* Reports a misspelt column: an unknown column whose name is close to that of a missing one. */
static void
check_names(struct check *c, const struct record *rec, const struct result *r)
{
    const char *missing[COLUMNS_MOST + 1], *known[COLUMNS_MOST + 1];
    int n = 0, all = 0;

    for (int i = 0; i < rec->n && all < COLUMNS_MOST; i++) {
        known[all++] = rec->fields[i].name;
        if (result_col(r, rec->fields[i].name) < 0)
            missing[n++] = rec->fields[i].name;
    }
    missing[n] = known[all] = NULL;
    for (int i = 0; i < result_cols(r); i++) {
        const char *name = result_name(r, i), *meant = alias_closest(name, missing);
        if (!is_word(name, known) && meant) {
            note_wrong(c, "column %.60s is not known, is it %s?", name, meant);
            return;
        }
    }
}

/* Checks the answer of an act: only jobs that were asked for, each with its new state or why it has
 * none. */
static void
check_changes(struct check *c, const struct rowset *rows, struct result *const looks[3])
{
    const struct change_row *row = rows->rows;
    bool by_ids = adapter_takes(c->a, c->found.section, PARAM_IDS);

    for (int i = 0; i < rows->n; i++) {
        c->found.rows += *row[i].state != 0;
        if (by_ids && *row[i].id && !is_asked_for(c, row[i].id))
            note_wrong(c, "answers job %s, which was not asked for", row[i].id);
        if (!*row[i].state && !*row[i].why && result_col(rows->res, "why") >= 0 && *row[i].id)
            note_wrong(c, "left job %s alone without saying why", row[i].id);
    }
    const char *same =
        looks[0] && looks[2] ? check_unchanged(c->found.section, looks[0], rows, looks[2]) : NULL;
    if (same && c->found.section == SEC_EXTEND)
        note_wrong(c, "reports %s as extended, but its lease ends no later than before", same);
    else if (same)
        note_wrong(
            c, "reports %s as changed, but it is as it was (if it changes later: -- mode: signal)",
            same);
}

/* What a user lacks without a column that may be missing. */
static const struct {
    const struct record *rec;
    const char *column, *lacks;
} costs[] = {
    {&record_count, "pushed",         "no rate of what comes in"                              },
    {&record_count, "completed",      "no rate of what goes out, no checks drain and stalled" },
    {&record_count, "fails",          "no check failures"                                     },
    {&record_node,  "heartbeat_ms",   "no age of a heartbeat, and nobody is known to be alive"},
    {&record_node,  "leases",         "running counts as what a dead node holds"              },
    {&record_node,  "expired",        "check reads all leases each time"                      },
    {&record_job,   "lease_until_ms", "no time that is left of a lease"                       },
    {&record_job,   "stale",          "a job without a worker looks like one that runs"       },
};

static void
note_costs(struct check *c, const struct record *rec, const struct result *r)
{
    size_t len = 0;

    for (size_t i = 0; c->found.ok && i < sizeof costs / sizeof *costs && len < sizeof c->text; i++)
        if (costs[i].rec == rec && result_col(r, costs[i].column) < 0)
            len += (size_t)snprintf(c->text + len, sizeof c->text - len, "%swithout %s: %s",
                                    len ? "; " : "", costs[i].column, costs[i].lacks);
}

/* The sum of the jobs in a preview: each row counts any number of jobs, also none. */
static int
sum_of(const struct rowset *rows)
{
    const struct effect_row *row = rows->rows;
    int64_t sum = 0;

    for (int i = 0; i < rows->n; i++)
        sum += row[i].n > 0 ? row[i].n : 0;
    return (int)sum;
}

/* looks: the answers before and after an act, NULL = there are none. */
static void
check_answer(struct check *c, enum section_id s, struct result *r, struct result *const looks[3])
{
    const struct record *rec = section_kinds[s].record;
    struct rowset rows;
    struct err e = {0};

    if (!rec) {
        c->found.rows += result_rows(r);
        result_free(r);
        return;
    }
    if (!check_types(c, rec, r)) {
        result_free(r);
        return;
    }
    check_names(c, rec, r);
    check_states_known(c, rec, r);
    note_costs(c, rec, r);
    if (!record_decode(rec, r, &rows, &e)) {
        note_wrong(c, "%s", e.text);
        return;
    }
    if (section_kinds[s].acts)
        check_changes(c, &rows, looks);
    else if (rec == &record_effect)
        c->found.rows += sum_of(&rows);
    else
        c->found.rows += rows.n;
    rowset_free(&rows);
}

bool
check_ask(struct check *c, enum section_id s, struct result **out, struct err *e)
{
    struct db_param storage[ADAPTER_PARAMS];
    struct db_stmt stmt = adapter_bind(c->a, s, &c->p, storage);
    struct db_call call = {.stmts = &stmt, .n = 1, .dry = true};
    struct db_reply reply;

    adapter_settings(c->a, section_kinds[s].acts, &call);
    *out = NULL;
    if (db_do(c->db, c->loop, &call, &reply, e))
        *out = db_take(&reply, 0);
    db_reply_done(&reply);
    if (*out || (e->kind != ERR_CONN && e->kind != ERR_AUTH))
        return true;
    *c->e = *e;
    return false;
}

static bool run_section(struct check *c, enum section_id s);

/* A batch violated a unique index. Runs the act again job by job, as the console does. */
static bool
run_alone(struct check *c, enum section_id s)
{
    bool ok = true;

    c->is_alone = true;
    for (int i = 0; ok && i < c->sample.nids; i++) {
        params_set_list(&c->p, PARAM_IDS, (const char *const *)&c->sample.ids[i], 1);
        ok = run_section(c, s);
    }
    c->is_alone = false;
    return ok;
}

static bool
run_section(struct check *c, enum section_id s)
{
    struct result *got[3] = {0};
    struct err e = {0};

    if (!c->found.ok)
        return true;
    if (!(section_kinds[s].acts ? check_ask_thrice(c, s, got, &e) : check_ask(c, s, &got[1], &e)))
        return false;
    c->found.runs++;
    if (got[1])
        check_answer(c, s, got[1], got);
    else if (!strcmp(e.sqlstate, "23505") && adapter_takes(c->a, s, PARAM_IDS) && !c->is_alone)
        return run_alone(c, s);
    else if (!strcmp(e.sqlstate, "23505") && c->is_alone)
        return true; /* the system rejects this one job */
    else if (e.kind != ERR_REFUSED) {
        c->found.line = adapter_line(c->a, s, e.position);
        note_wrong(c, "%s%s%s", e.sqlstate, *e.sqlstate ? ": " : "", e.text);
    }
    result_free(got[0]);
    result_free(got[2]);
    return true;
}

/* --- values ---------------------------------------------------------------------------------- */

/* Sets the parameters that an act needs in addition to its target. */
static void
set_rest(struct check *c, enum section_id s)
{
    const char *range = adapter_note(c->a, s, "range");

    params_set_interval(&c->p, PARAM_BY, HOUR_MS);
    params_set_time(&c->p, PARAM_AT, clock_wall_ms() + HOUR_MS);
    params_set_int(&c->p, PARAM_N, range ? strtol(range, NULL, 10) : 1);
    params_set(&c->p, PARAM_REASON, "check");
    params_set(&c->p, PARAM_ACTION, "00000000-0000-4000-8000-000000000001");
    params_set(&c->p, PARAM_SETTINGS, "{}");
    params_set_int(&c->p, PARAM_BATCH, 1);
    params_set_bool(&c->p, PARAM_EXPIRED_ONLY, false);
}

/* Fills in values that no row has. */
static void
set_nothing(struct check *c, enum section_id s)
{
    static const char *const word = "no such word";

    check_clear(c);
    set_rest(c, s);
    params_set_list(&c->p, PARAM_IDS, no_ids, (int)(sizeof no_ids / sizeof *no_ids));
    params_set(&c->p, PARAM_QUEUE, "no such queue");
    params_set(&c->p, PARAM_KIND, "no such kind");
    params_set(&c->p, PARAM_NODE, "no such node");
    params_set(&c->p, PARAM_SCHEDULE, "no such schedule");
    params_set(&c->p, PARAM_ERROR, "no such error");
    params_set_list(&c->p, PARAM_WORDS, &word, 1);
    params_set_list(&c->p, PARAM_STATES, check_states, 8);
    params_set_time(&c->p, PARAM_BEFORE, 0);
    params_set(&c->p, PARAM_OF, "00000000-0000-4000-8000-000000000001");
}

static void
set_ids(struct check *c)
{
    params_set_list(&c->p, PARAM_IDS, (const char *const *)c->sample.ids, c->sample.nids);
}

/* Sets one parameter to a value of the sample (or to any value). False: the sample has no value. */
static bool
set_one(struct check *c, enum param p)
{
    const struct check_sample *s = &c->sample;
    static const char *const word = "a";
    const char *text = p == PARAM_QUEUE    ? s->queue
                       : p == PARAM_KIND   ? s->kind
                       : p == PARAM_NODE   ? s->node
                       : p == PARAM_ERROR  ? s->error
                       : p == PARAM_CURSOR ? s->cursor
                                           : NULL;
    if (text)
        params_set(&c->p, p, text);
    else if (p == PARAM_STATES || p == PARAM_RAW_STATES)
        params_set_list(&c->p, PARAM_STATES, check_states, 8);
    else if (p == PARAM_IDS)
        set_ids(c);
    else if (p == PARAM_WORDS || p == PARAM_NOT_WORDS)
        params_set_list(&c->p, p, &word, 1);
    else if (p == PARAM_OLDER_THAN || p == PARAM_YOUNGER_THAN)
        params_set_interval(&c->p, p, HOUR_MS);
    else if (p == PARAM_MIN_TRIES || p == PARAM_TOP_TRIES)
        params_set_int(&c->p, p, 1);
    else
        return false;
    return true;
}

/* Runs an act that extends leases, with a time of one second. Most leases of the sample end later
 * than one second from now: an act that does not look at the end of a lease makes it shorter here,
 * and run_section() reports that. */
static bool
extend_by_one_second(struct check *c, enum section_id s)
{
    int before = c->found.rows;

    check_clear(c);
    set_rest(c, s);
    params_set_interval(&c->p, PARAM_BY, 1000);
    set_ids(c);
    bool ok = run_section(c, s);
    c->found.rows = before;
    return ok;
}

/* Runs an act on the jobs of the sample. If the act takes a time, runs it three times: without a
 * time, with a time in the past, and with "now". A job that accepts one of these must accept the
 * others. */
static bool
run_jobs(struct check *c, enum section_id s)
{
    static const char *const times[] = {NULL, "2001-01-01", "now"};
    int first = 0;

    for (int i = 0; i < (adapter_takes(c->a, s, PARAM_AT) ? 3 : 1); i++) {
        int before = c->found.rows;
        check_clear(c);
        set_rest(c, s);
        if (times[i])
            params_set(&c->p, PARAM_AT, times[i]);
        set_ids(c);
        if (!run_section(c, s))
            return false;
        if (i == 0)
            first = c->found.rows;
        else if (c->found.ok && first > 0 && c->found.rows == before)
            note_wrong(c, "changes %d jobs for a time to come, none for %s", first, times[i]);
        if (i > 0)
            c->found.rows = first;
    }
    return !adapter_takes(c->a, s, PARAM_BY) || extend_by_one_second(c, s);
}

/* --- a section ------------------------------------------------------------------------------- */

/* Runs the list of jobs with each parameter alone, and with a part of an error. */
static bool
run_each(struct check *c, enum section_id s)
{
    for (int p = 0; p < PARAM_TOTAL; p++) {
        check_clear(c);
        if (adapter_takes(c->a, s, (enum param)p) && set_one(c, (enum param)p) &&
            !run_section(c, s))
            return false;
    }
    check_clear(c);
    params_set(&c->p, PARAM_ERROR, "~a");
    return run_section(c, s);
}

/* The error_key of a group, as it is shown, must find the jobs of the group. */
static bool
check_groups(struct check *c)
{
    struct result *r = NULL, *jobs = NULL;
    struct err e = {0};

    if (!c->found.ok || !adapter_takes(c->a, SEC_JOBS, PARAM_ERROR))
        return true;
    check_clear(c);
    if (!check_ask(c, SEC_GROUPS, &r, &e))
        return false;
    int key = r ? result_col(r, "error_key") : -1, queue = r ? result_col(r, "queue") : -1;
    bool ok = true;
    for (int i = 0; ok && key >= 0 && i < result_rows(r) && i < SAMPLES_MOST; i++) {
        if (!*result_text(r, i, key))
            continue; /* jobs without an error */
        check_clear(c);
        params_set_list(&c->p, PARAM_STATES, &check_states[4], 1);
        params_set(&c->p, PARAM_QUEUE, result_text(r, i, queue));
        params_set_group(&c->p, result_text(r, i, key));
        ok = check_ask(c, SEC_JOBS, &jobs, &e);
        if (jobs && result_rows(jobs) == 0)
            note_wrong(c, "jobs finds none of the group \"%.80s\"", result_text(r, i, key));
        result_free(jobs);
    }
    result_free(r);
    return ok;
}

static bool
check_reader(struct check *c, enum section_id s)
{
    check_clear(c);
    if (!run_section(c, s))
        return false;
    set_nothing(c, s);
    if (!run_section(c, s))
        return false;
    if (adapter_takes(c->a, s, PARAM_IDS)) {
        int before = c->found.rows;
        check_clear(c);
        params_set_list(&c->p, PARAM_IDS, no_ids, (int)(sizeof no_ids / sizeof *no_ids));
        if (!run_section(c, s))
            return false;
        if (c->found.rows > before)
            note_wrong(c, "answers rows for ids that are none");
    }
    return run_each(c, s) && (s != SEC_GROUPS || check_groups(c));
}

/* Runs the section once for each name as the value of the parameter. */
static bool
run_names(struct check *c, enum section_id s, enum param p, char **names, int n)
{
    for (int i = 0; i < n; i++) {
        check_clear(c);
        set_rest(c, s);
        params_set(&c->p, p, names[i]);
        c->found.has_sample = true;
        if (!run_section(c, s))
            return false;
    }
    return true;
}

static bool
run_purge(struct check *c, enum section_id s)
{
    for (int i = 0; i < 2; i++) {
        check_clear(c);
        set_rest(c, s);
        params_set_list(&c->p, PARAM_STATES, check_states, 8);
        params_set(&c->p, PARAM_QUEUE, i ? c->sample.queue : NULL);
        params_set_time(&c->p, PARAM_BEFORE, clock_wall_ms() + 24 * (int64_t)HOUR_MS);
        c->found.has_sample = true;
        if (!run_section(c, s))
            return false;
    }
    return true;
}

static bool
check_act(struct check *c, enum section_id s)
{
    struct check_sample *m = &c->sample;
    const char *dry = adapter_note(c->a, s, "dry");

    set_nothing(c, s);
    if (!run_section(c, s))
        return false;
    bool by_name = !adapter_takes(c->a, s, PARAM_IDS) && !adapter_takes(c->a, s, PARAM_NODE) &&
                   s != SEC_PURGE && s != SEC_PURGE_PREVIEW;
    if (by_name)
        c->found.rows = 0; /* this may change a row: a queue may be paused before it has a job */
    else if (c->found.rows > 0)
        note_wrong(c, "changes rows that nobody asked for");
    if (dry) {
        c->found.has_sample = false;
        return true; /* no run on real rows: it could not be rolled back */
    }
    if (s == SEC_PURGE || s == SEC_PURGE_PREVIEW)
        return run_purge(c, s);
    if (adapter_takes(c->a, s, PARAM_IDS) && m->nids > 0) {
        c->found.has_sample = true;
        return run_jobs(c, s);
    }
    if (adapter_takes(c->a, s, PARAM_SCHEDULE))
        return run_names(c, s, PARAM_SCHEDULE, m->schedules, m->nschedules);
    if (adapter_takes(c->a, s, PARAM_NODE))
        return run_names(c, s, PARAM_NODE, m->nodes, m->nnodes);
    if (adapter_takes(c->a, s, PARAM_QUEUE))
        return run_names(c, s, PARAM_QUEUE, m->queues, m->nqueues);
    return true;
}

static bool
is_native(const struct adapter *a)
{
    return !strcmp(adapter_name(a), "native");
}

static bool
check_section(struct check *c, enum section_id s, const struct section *section, bool acts)
{
    bool is_act = section_kinds[s].acts || s == SEC_PURGE_PREVIEW;

    c->found = (struct adapter_finding){.section = s, .line = section->line, .ok = true};
    c->found.text = c->text;
    c->text[0] = 0;
    if (!adapter_has(c->a, s)) {
        c->found.left_out = true;
        snprintf(c->text, sizeof c->text, "%s", adapter_lacks(c->a, s));
        return true;
    }
    if (is_native(c->a) && (section_kinds[s].acts || strstr(section_kinds[s].name, "_preview"))) {
        c->found.left_out = true;
        snprintf(c->text, sizeof c->text, "not run: a function of queuetop's own");
        return true;
    }
    if (section_kinds[s].acts && !acts) {
        c->found.left_out = true;
        snprintf(c->text, sizeof c->text, "not run: it changes something");
        return true;
    }
    return is_act ? check_act(c, s) : check_reader(c, s);
}

bool
adapter_check(const struct adapter_trial *t, adapter_finding_fn *fn, void *ctx, struct err *e)
{
    struct check c = {.a = t->adapter, .db = t->db, .loop = t->loop, .e = e};
    const struct adapter_file *f = t->adapter->file;

    bool ok = check_take_sample(&c);
    for (int i = 0; ok && i < f->text.n; i++)
        for (int s = 0; ok && s < SEC_COUNT; s++)
            if (f->bound[s].section == &f->text.list[i]) {
                ok = check_section(&c, (enum section_id)s, &f->text.list[i], t->acts);
                if (ok)
                    fn(ctx, &c.found);
            }
    params_done(&c.p);
    check_sample_done(&c.sample);
    return ok;
}
