/*
 * Makes snapshots from answers; each topic has a function. A function replaces its snapshot only
 * after it has decoded the whole answer, so a screen never shows half an answer.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/store/store_parts.h"

static void
replace_rows(struct rowset *old, struct rowset *with)
{
    rowset_free(old);
    *old = *with;
}

/* Takes the answer of one section into one snapshot. */
bool
store_take_one(struct db_reply *reply, int i, const struct record *rec, struct rowset *out,
               struct err *e)
{
    struct rowset rows;

    if (!record_decode(rec, db_take(reply, i), &rows, e))
        return false;
    replace_rows(out, &rows);
    return true;
}

/* --- one job ---------------------------------------------------------------------------------- */

static bool
take_job(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset job, attempts = {0};

    if (!record_decode(&record_detail, db_take(reply, 0), &job, e))
        return false;
    if (adapter_has(s->adapter, SEC_ATTEMPTS) &&
        !record_decode(&record_attempt, db_take(reply, 1), &attempts, e)) {
        rowset_free(&job);
        return false;
    }
    replace_rows(&s->job.detail, &job);
    replace_rows(&s->job.attempts, &attempts);
    return true;
}

static void
clear_job(struct store *s)
{
    rowset_free(&s->job.detail);
    rowset_free(&s->job.attempts);
}

void
store_ask_job(struct store *s, const char *id)
{
    params_set_list(&s->slots[TOPIC_JOB].params, PARAM_IDS, &id, 1);
    store_choose(s, TOPIC_JOB);
}

const struct job_detail *
store_job(const struct store *s)
{
    return s->job.detail.n ? s->job.detail.rows : NULL;
}

const struct attempt_row *
store_attempts(const struct store *s, int *n)
{
    *n = s->job.attempts.n;
    return s->job.attempts.rows;
}

/* --- the plain ones --------------------------------------------------------------------------- */

static void
free_left(struct left_node *l)
{
    free(l->id);
    free(l->node);
    free(l->queues);
}

/* Keeps that a node has left. Queue systems forget a node that ends in order, so only a console
 * that watched knows it. */
static void
keep_left(struct store *s, const struct node_row *n)
{
    struct left_nodes *l = &s->left;

    if (l->n == LEFT_KEPT)
        free_left(&l->rows[--l->n]);
    memmove(&l->rows[1], &l->rows[0], sizeof l->rows[0] * (size_t)l->n++);
    l->rows[0] = (struct left_node){.id = xasprintf("left %s %d", n->node, ++l->count),
                                    .node = xstrdup(n->node),
                                    .queues = xstrdup(n->queues),
                                    .at_ms = store_now_ms(s)};
}

/* A node without a heartbeat is known only by its jobs; one that is dead is forgotten after a day.
 * *at: where the row of the node before was found; both answers have the same order. */
static bool
has_left(const struct node_row *n, const struct rowset *now, int *at)
{
    const struct node_row *rows = now->rows;

    for (int i = 0; i < now->n; i++) {
        int k = (*at + i) % now->n;
        if (!strcmp(rows[k].node, n->node)) {
            *at = k + 1;
            return false;
        }
    }
    return n->heartbeat_ms != FIELD_NULL && node_state(n) != NODE_DEAD;
}

enum { RECENT_MS = 20000 };

static bool
take_nodes(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset now;
    int at = 0;
    /* After a longer pause nobody knows how a process has ended. The server's clock decides: ours
     * may have stood still with the machine, and an answer may have waited for us to wake. */
    bool is_recent = s->source.server_ms - s->left.seen_ms < RECENT_MS;

    if (!record_decode(&record_node, db_take(reply, 0), &now, e))
        return false;
    const struct node_row *was = s->nodes.rows;
    for (int i = 0; is_recent && i < s->nodes.n; i++)
        if (has_left(&was[i], &now, &at))
            keep_left(s, &was[i]);
    s->left.seen_ms = s->source.server_ms;
    replace_rows(&s->nodes, &now);
    return true;
}

/* Another source, or another time of a recording: who left there is not known. */
static void
clear_nodes(struct store *s)
{
    rowset_free(&s->nodes);
    while (s->left.n > 0)
        free_left(&s->left.rows[--s->left.n]);
}

const struct left_node *
store_left(const struct store *s, int *n)
{
    *n = s->left.n;
    return s->left.rows;
}

const struct node_row *
store_nodes(const struct store *s, int *n)
{
    *n = s->nodes.n;
    return s->nodes.rows;
}

const struct node_row *
store_node(const struct store *s, const char *node)
{
    const struct node_row *rows = s->nodes.rows;

    for (int i = 0; i < s->nodes.n; i++)
        if (!strcmp(rows[i].node, node))
            return &rows[i];
    return NULL;
}

static bool
take_leases(struct store *s, struct db_reply *reply, struct err *e)
{
    return store_take_one(reply, 0, &record_lease, &s->leases, e);
}

static void
clear_leases(struct store *s)
{
    rowset_free(&s->leases);
}

void
store_ask_leases(struct store *s, const char *node, const char *queue)
{
    params_set(&s->slots[TOPIC_LEASES].params, PARAM_NODE, node);
    params_set(&s->slots[TOPIC_LEASES].params, PARAM_QUEUE, queue);
    store_choose(s, TOPIC_LEASES);
}

const struct lease_row *
store_leases(const struct store *s, int *n)
{
    *n = s->leases.n;
    return s->leases.rows;
}

static bool
take_audit(struct store *s, struct db_reply *reply, struct err *e)
{
    return store_take_one(reply, 0, &record_audit, &s->audit, e);
}

static void
clear_audit(struct store *s)
{
    rowset_free(&s->audit);
}

const struct audit_row *
store_audit(const struct store *s, int *n)
{
    *n = s->audit.n;
    return s->audit.rows;
}

static bool
take_happened(struct store *s, struct db_reply *reply, struct err *e)
{
    return store_take_one(reply, 0, &record_happened, &s->happened, e);
}

static void
clear_happened(struct store *s)
{
    rowset_free(&s->happened);
}

static bool
is_same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

void
store_ask_happened(struct store *s, const char *queue, const char *node, const char *error_key)
{
    struct params *p = &s->slots[TOPIC_HAPPENED].params;

    if (s->slots[TOPIC_HAPPENED].chosen && is_same(p->value[PARAM_QUEUE], queue) &&
        is_same(p->value[PARAM_NODE], node) && is_same(p->value[PARAM_ERROR], error_key))
        return;
    params_set(p, PARAM_QUEUE, queue);
    params_set(p, PARAM_NODE, node);
    params_set(p, PARAM_ERROR, error_key);
    params_set_int(p, PARAM_LIMIT, HAPPENED_MOST);
    store_choose(s, TOPIC_HAPPENED);
}

const struct happened_row *
store_happened(const struct store *s, int *n)
{
    *n = s->happened.n;
    return s->happened.rows;
}

static bool
take_life(struct store *s, struct db_reply *reply, struct err *e)
{
    return store_take_one(reply, 0, &record_life, &s->life, e);
}

static void
clear_life(struct store *s)
{
    rowset_free(&s->life);
}

const struct life_row *
store_life(const struct store *s)
{
    return s->life.n ? s->life.rows : NULL;
}

/* name, sections, how many, pace, take, clear */
/* clang-format off */
const struct topic_kind topic_kinds[TOPIC_COUNT] = {
    [TOPIC_QUEUES] = {"queues", {SEC_QUEUES, SEC_COUNTS, SEC_RATES}, 3, 1,
        store_take_queues, store_clear_queues},
    [TOPIC_FINAL] = {"final", {SEC_COUNTS_FINAL}, 1, 60, store_take_finals, store_clear_finals},
    [TOPIC_LIFE] = {"life", {SEC_LIFE}, 1, 3, take_life, clear_life},
    [TOPIC_TIMES] = {"times", {SEC_TIMES}, 1, 15, store_take_times, store_clear_times},
    [TOPIC_STEPS] = {"steps", {SEC_STEPS}, 1, 10, store_take_steps, store_clear_steps},
    [TOPIC_PACE] = {"pace", {SEC_PACE}, 1, 10, store_take_pace, store_clear_pace},
    [TOPIC_JOBS] = {"jobs", {SEC_JOBS}, 1, 1, store_take_jobs, store_clear_jobs},
    [TOPIC_JOB] = {"job", {SEC_JOB, SEC_ATTEMPTS}, 2, 1, take_job, clear_job},
    [TOPIC_GROUPS] = {"groups", {SEC_GROUPS, SEC_FAIL_TIMES}, 2, 2, 
        store_take_groups, store_clear_groups},
    [TOPIC_GROUP] = {"group", {SEC_GROUP, SEC_GROUP_PARTS, SEC_GROUP_SAMPLES}, 3, 10,
        store_take_group, store_clear_group},
    [TOPIC_NODES] = {"nodes", {SEC_NODES}, 1, 1, take_nodes, clear_nodes},
    [TOPIC_LEASES] = {"leases", {SEC_LEASES}, 1, 1, take_leases, clear_leases},
    [TOPIC_AUDIT] = {"audit", {SEC_AUDIT}, 1, 5, take_audit, clear_audit},
    [TOPIC_HAPPENED] = {"happened", {SEC_HAPPENED}, 1, 10, take_happened, clear_happened},
    [TOPIC_SCHEDULES] = {"schedules", {SEC_SCHEDULES}, 1, 1,
        store_take_schedules, store_clear_schedules},
    [TOPIC_RUNS] = {"runs", {SEC_CRON_RUNS, SEC_CRON_NEXT}, 2, 2,
        store_take_runs, store_clear_runs},
    [TOPIC_HEALTH] = {"health", {SEC_HEALTH_SERVER, SEC_HEALTH_SESSIONS, SEC_HEALTH_VACUUMS}, 3, 2,
        store_take_health, store_clear_health},
    [TOPIC_TABLES] = {"tables", {SEC_HEALTH_TABLES}, 1, 10, store_take_tables, store_clear_tables},
};
/* clang-format on */
