/*
 * Makes snapshots from answers. A snapshot is replaced only after the whole answer has been
 * decoded, so a screen never shows half an answer. Most topics are rows of their sections; the
 * others have a function.
 */
#include <stddef.h>
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

/* --- one job ---------------------------------------------------------------------------------- */

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

const struct audit_row *
store_audit(const struct store *s, int *n)
{
    *n = s->audit.n;
    return s->audit.rows;
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

const struct life_row *
store_life(const struct store *s)
{
    return s->life.n ? s->life.rows : NULL;
}

/* --- the table -------------------------------------------------------------------------------- */

#define R(f) offsetof(struct store, f)
/* clang-format off */
const struct topic_kind topic_kinds[TOPIC_COUNT] = {
    [TOPIC_QUEUES] = {"queues", {SEC_QUEUES, SEC_COUNTS, SEC_RATES}, 3, 1,
        .take = store_take_queues, .clear = store_clear_queues},
    [TOPIC_FINAL] = {"final", {SEC_COUNTS_FINAL}, 1, 60, .rows = {R(queues.finals)},
        .taken = store_join_finals, .clear = store_clear_finals},
    [TOPIC_LIFE] = {"life", {SEC_LIFE}, 1, 3, .rows = {R(life)}},
    [TOPIC_TIMES] = {"times", {SEC_TIMES}, 1, 15, .rows = {R(queues.times)},
        .taken = store_join_times, .clear = store_clear_times},
    [TOPIC_STEPS] = {"steps", {SEC_STEPS}, 1, 10, .take = store_take_steps, .clear = store_clear_steps},
    [TOPIC_PACE] = {"pace", {SEC_PACE}, 1, 10, .rows = {R(queues.paces)},
        .taken = store_join_pace, .clear = store_clear_pace},
    [TOPIC_JOBS] = {"jobs", {SEC_JOBS}, 1, 1, .take = store_take_jobs, .clear = store_clear_jobs},
    [TOPIC_JOB] = {"job", {SEC_JOB, SEC_ATTEMPTS}, 2, 1, .rows = {R(job.detail), R(job.attempts)}},
    [TOPIC_GROUPS] = {"groups", {SEC_GROUPS, SEC_FAIL_TIMES}, 2, 2,
        .take = store_take_groups, .clear = store_clear_groups},
    [TOPIC_GROUP] = {"group", {SEC_GROUP, SEC_GROUP_PARTS, SEC_GROUP_SAMPLES}, 3, 10,
        .take = store_take_group, .clear = store_clear_group},
    [TOPIC_NODES] = {"nodes", {SEC_NODES}, 1, 1, .take = take_nodes, .clear = clear_nodes},
    [TOPIC_LEASES] = {"leases", {SEC_LEASES}, 1, 1, .rows = {R(leases)}},
    [TOPIC_AUDIT] = {"audit", {SEC_AUDIT}, 1, 5, .rows = {R(audit)}},
    [TOPIC_HAPPENED] = {"happened", {SEC_HAPPENED}, 1, 10, .rows = {R(happened)}},
    [TOPIC_SCHEDULES] = {"schedules", {SEC_SCHEDULES}, 1, 1, .rows = {R(schedules.rows)}},
    [TOPIC_RUNS] = {"runs", {SEC_CRON_RUNS, SEC_CRON_NEXT}, 2, 2, .rows = {R(schedules.runs), R(schedules.next)}},
    [TOPIC_HEALTH] = {"health", {SEC_HEALTH_SERVER, SEC_HEALTH_SESSIONS, SEC_HEALTH_VACUUMS}, 3, 2,
        .rows = {R(health.server), R(health.sessions), R(health.vacuums)}, .taken = store_rate_health},
    [TOPIC_TABLES] = {"tables", {SEC_HEALTH_TABLES}, 1, 10, .rows = {R(health.tables)}, .taken = store_note_tables},
};
/* clang-format on */

static struct rowset *
rows_of(struct store *s, enum topic t, int i)
{
    size_t at = topic_kinds[t].rows[i];

    return at ? (struct rowset *)(void *)((char *)s + at) : NULL;
}

bool
store_take(struct store *s, enum topic t, struct db_reply *reply, struct err *e)
{
    const struct topic_kind *k = &topic_kinds[t];
    struct rowset rows[SECTIONS_MAX];

    if (k->take)
        return k->take(s, reply, e);
    int known = adapter_decode(s->adapter, k->sections, k->nsections, reply, rows, e);
    if (known < k->nsections)
        return fail_in(e, "%s", section_kinds[k->sections[known]].name);
    for (int i = 0; i < k->nsections; i++)
        replace_rows(rows_of(s, t, i), &rows[i]);
    if (k->taken)
        k->taken(s);
    return true;
}

void
store_clear(struct store *s, enum topic t)
{
    for (int i = 0; i < SECTIONS_MAX; i++)
        if (rows_of(s, t, i))
            rowset_free(rows_of(s, t, i));
    if (topic_kinds[t].clear)
        topic_kinds[t].clear(s);
}
