/*
 * Answers -> snapshots, a function a topic. Each replaces its snapshot only when all of the answer
 * was understood, so a screen never sees half of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/mem.h"
#include "model/store_parts.h"

enum { RATE_WINDOW_MS = 5000 };

static void
replace(struct rowset *old, struct rowset *with)
{
    rowset_free(old);
    *old = *with;
}

/* One section into one snapshot. */
static bool
take_one(struct db_reply *reply, int i, const struct record *rec, struct rowset *out, struct err *e)
{
    struct rowset rows;

    if (!record_decode(rec, db_take(reply, i), &rows, e))
        return false;
    replace(out, &rows);
    return true;
}

/* --- queues ----------------------------------------------------------------------------------- */

static int
by_queue(const void *a, const void *b)
{
    return strcmp(((const struct queue_row *)a)->queue, ((const struct queue_row *)b)->queue);
}

static int64_t
plus(int64_t sum, int64_t value)
{
    return value == FIELD_NULL ? sum : sum + value;
}

static void
add_to_totals(struct queue_row *sum, const struct queue_row *q)
{
    sum->scheduled = plus(sum->scheduled, q->scheduled);
    sum->ready = plus(sum->ready, q->ready);
    sum->retry = plus(sum->retry, q->retry);
    sum->running = plus(sum->running, q->running);
    sum->failed = plus(sum->failed, q->failed);
    sum->pushed = plus(sum->pushed, q->pushed);
    sum->completed = plus(sum->completed, q->completed);
    sum->fails = plus(sum->fails, q->fails);
    sum->retried = plus(sum->retried, q->retried);
    sum->run_ms = plus(sum->run_ms, q->run_ms);
    if (q->oldest_ms != FIELD_NULL &&
        (sum->oldest_ms == FIELD_NULL || q->oldest_ms < sum->oldest_ms))
        sum->oldest_ms = q->oldest_ms;
}

static void
note_rates(struct store *s, struct queue_row *q)
{
    int64_t oldest = FIELD_NULL;

    if (q->oldest_ms != FIELD_NULL)
        oldest = s->server_ms > q->oldest_ms ? s->server_ms - q->oldest_ms : 0;
    struct sample now = {
        s->server_ms, {q->pushed, q->completed, q->fails, plus(q->ready, q->running), oldest}
    };
    history_add(s->history, q->queue, &now);
    q->pushed_per_s = history_now(s->history, q->queue, SERIES_PUSHED, RATE_WINDOW_MS);
    q->done_per_s = history_now(s->history, q->queue, SERIES_DONE, RATE_WINDOW_MS);
    q->failed_per_s = history_now(s->history, q->queue, SERIES_FAILED, RATE_WINDOW_MS);
}

/* The counts of a queue beside its settings; either may be missing. */
static struct queue_row
join(const struct queue_row *config, const struct queue_row *count)
{
    static const struct queue_row no_config = {.paused_by = "",
                                               .pause_reason = "",
                                               .info = "",
                                               .paused_ms = FIELD_NULL,
                                               .weight = INT32_MIN,
                                               .max_running = INT32_MIN};
    struct queue_row q = config ? *config : no_config;

    q.oldest_ms = q.blocked = FIELD_NULL;
    q.wait_p50_ms = q.wait_p99_ms = q.run_p50_ms = q.run_p99_ms = FIELD_NULL;
    if (!count)
        return q;
    q.queue = count->queue;
    q.scheduled = plus(0, count->scheduled);
    q.ready = plus(0, count->ready);
    q.retry = plus(0, count->retry);
    q.running = plus(0, count->running);
    q.failed = plus(0, count->failed);
    q.blocked = count->blocked;
    q.oldest_ms = count->oldest_ms;
    q.pushed = count->pushed;
    q.completed = count->completed;
    q.fails = count->fails;
    q.retried = count->retried;
    q.run_ms = count->run_ms;
    return q;
}

static int
times_by_queue(const void *a, const void *b)
{
    return strcmp(((const struct time_row *)a)->queue, ((const struct time_row *)b)->queue);
}

static void
join_times(const struct store *s, struct queue_row *q)
{
    struct time_row key = {.queue = q->queue};
    const struct time_row *t =
        s->times.n ? bsearch(&key, s->times.rows, (size_t)s->times.n, sizeof key, times_by_queue)
                   : NULL;

    if (!t)
        return;
    q->wait_p50_ms = t->wait_p50_ms;
    q->wait_p99_ms = t->wait_p99_ms;
    q->run_p50_ms = t->run_p50_ms;
    q->run_p99_ms = t->run_p99_ms;
}

static void
merge(struct store *s)
{
    const struct queue_row *a = s->queues.rows, *b = s->counts.rows;
    const struct queue_row *a_end = a + s->queues.n, *b_end = b + s->counts.n;

    free(s->merged);
    s->merged = xcalloc((size_t)(s->queues.n + s->counts.n) + 1, sizeof *s->merged);
    s->nmerged = 0;
    s->totals = join(NULL, NULL);
    s->totals.queue = "";
    while (a < a_end || b < b_end) {
        int order = a == a_end ? 1 : b == b_end ? -1 : strcmp(a->queue, b->queue);
        struct queue_row *q = &s->merged[s->nmerged++];
        *q = join(order <= 0 ? a : NULL, order >= 0 ? b : NULL);
        a += order <= 0;
        b += order >= 0;
        join_times(s, q);
        add_to_totals(&s->totals, q);
        note_rates(s, q);
    }
    note_rates(s, &s->totals);
}

static int
by_time(const void *a, const void *b)
{
    const struct rate_row *x = a, *y = b;

    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

/* The kept points of the counters: the first sparkline. Sums of one moment make the totals. */
static void
seed(struct store *s, struct rowset *rates)
{
    const struct rate_row *r = rates->rows;
    struct sample sum = {
        0, {0, 0, 0, FIELD_NULL, FIELD_NULL}
    };

    if (rates->n > 0)
        qsort(rates->rows, (size_t)rates->n, rates->size, by_time);
    for (int i = 0; i < rates->n; i++) {
        struct sample one = {
            r[i].at_ms, {r[i].pushed, r[i].completed, r[i].fails, FIELD_NULL, FIELD_NULL}
        };
        history_add(s->history, r[i].queue, &one);
        sum.value[SERIES_PUSHED] = plus(sum.value[SERIES_PUSHED], r[i].pushed);
        sum.value[SERIES_DONE] = plus(sum.value[SERIES_DONE], r[i].completed);
        sum.value[SERIES_FAILED] = plus(sum.value[SERIES_FAILED], r[i].fails);
        if (i + 1 < rates->n && r[i + 1].at_ms == r[i].at_ms)
            continue;
        sum.at_ms = r[i].at_ms;
        history_add(s->history, "", &sum);
        sum = (struct sample){
            0, {0, 0, 0, FIELD_NULL, FIELD_NULL}
        };
    }
    s->seeded = true;
}

static bool
take_queues(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset config = {0}, counts = {0}, rates = {0};
    bool with_rates = !s->seeded && adapter_has(s->adapter, SEC_RATES);

    bool ok = record_decode(&record_queue, db_take(reply, 0), &config, e) &&
              record_decode(&record_count, db_take(reply, 1), &counts, e) &&
              (!with_rates || record_decode(&record_rate, db_take(reply, 2), &rates, e));
    if (!ok) {
        rowset_free(&config);
        rowset_free(&counts);
        return false;
    }
    if (config.n > 0)
        qsort(config.rows, (size_t)config.n, config.size, by_queue);
    if (counts.n > 0)
        qsort(counts.rows, (size_t)counts.n, counts.size, by_queue);
    replace(&s->queues, &config);
    replace(&s->counts, &counts);
    if (with_rates)
        seed(s, &rates);
    rowset_free(&rates);
    merge(s);
    return true;
}

static bool
take_times(struct store *s, struct db_reply *reply, struct err *e)
{
    if (!take_one(reply, 0, &record_time, &s->times, e))
        return false;
    if (s->times.n > 0)
        qsort(s->times.rows, (size_t)s->times.n, s->times.size, times_by_queue);
    for (int i = 0; i < s->nmerged; i++)
        join_times(s, &s->merged[i]);
    return true;
}

static void
clear_times(struct store *s)
{
    rowset_free(&s->times);
}

static void
clear_queues(struct store *s)
{
    rowset_free(&s->queues);
    rowset_free(&s->counts);
    free(s->merged);
    s->merged = NULL;
    s->nmerged = 0;
}

const struct queue_row *
store_queues(const struct store *s, int *n)
{
    *n = s->nmerged;
    return s->merged;
}

const struct queue_row *
store_queue(const struct store *s, const char *queue)
{
    struct queue_row key = {.queue = queue};

    return s->nmerged ? bsearch(&key, s->merged, (size_t)s->nmerged, sizeof key, by_queue) : NULL;
}

const struct queue_row *
store_totals(const struct store *s)
{
    return &s->totals;
}

const struct history *
store_history(const struct store *s)
{
    return s->history;
}

/* --- one job ------------------------------------------------------------------------------------
 */

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
    replace(&s->job, &job);
    replace(&s->attempts, &attempts);
    return true;
}

static void
clear_job(struct store *s)
{
    rowset_free(&s->job);
    rowset_free(&s->attempts);
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
    return s->job.n ? s->job.rows : NULL;
}

const struct attempt_row *
store_attempts(const struct store *s, int *n)
{
    *n = s->attempts.n;
    return s->attempts.rows;
}

/* --- the plain ones
 * -------------------------------------------------------------------------------- */

static bool
take_groups(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset times = {0};

    if (reply->n > 1 && !record_decode(&record_fail_time, db_take(reply, 1), &times, e))
        return false;
    if (!take_one(reply, 0, &record_group, &s->groups, e)) {
        rowset_free(&times);
        return false;
    }
    replace(&s->fail_times, &times);
    return true;
}

static void
clear_groups(struct store *s)
{
    rowset_free(&s->groups);
    rowset_free(&s->fail_times);
}

void
store_ask_groups(struct store *s, const char *queue, const char *by)
{
    params_set(&s->slots[TOPIC_GROUPS].params, PARAM_SETTINGS, by);
    params_set(&s->slots[TOPIC_GROUPS].params, PARAM_QUEUE, queue);
    store_choose(s, TOPIC_GROUPS);
}

enum section_id
store_groups_section(const struct store *s, enum section_id sec)
{
    bool by_error = !s->slots[TOPIC_GROUPS].params.value[PARAM_SETTINGS];

    return sec == SEC_GROUPS && !by_error ? SEC_GROUPS_BY : sec;
}

int64_t
store_fails_at(const struct store *s, const struct group_row *g, int64_t at_ms)
{
    const struct fail_time_row *t = s->fail_times.rows;
    int64_t n = 0;

    for (int i = 0; i < s->fail_times.n; i++)
        if (t[i].at_ms == at_ms && !strcmp(t[i].error_key, g->error_key) &&
            !strcmp(t[i].queue, g->queue))
            n += t[i].n;
    return n;
}

const struct group_row *
store_groups(const struct store *s, int *n)
{
    *n = s->groups.n;
    return s->groups.rows;
}

static bool
take_nodes(struct store *s, struct db_reply *reply, struct err *e)
{
    return take_one(reply, 0, &record_node, &s->nodes, e);
}

static void
clear_nodes(struct store *s)
{
    rowset_free(&s->nodes);
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
    return take_one(reply, 0, &record_lease, &s->leases, e);
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
    return take_one(reply, 0, &record_audit, &s->audit, e);
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

/* name, sections, how many, pace, take, clear; in the order of enum topic */
const struct topic_kind topic_kinds[TOPIC_COUNT] = {
    {"queues",    {SEC_QUEUES, SEC_COUNTS, SEC_RATES},             3, 1,  take_queues,          clear_queues         },
    {"times",     {SEC_TIMES},                                     1, 15, take_times,           clear_times          },
    {"jobs",      {SEC_JOBS},                                      1, 1,  store_take_jobs,      store_clear_jobs     },
    {"job",       {SEC_JOB, SEC_ATTEMPTS},                         2, 1,  take_job,             clear_job            },
    {"groups",    {SEC_GROUPS, SEC_FAIL_TIMES},                    2, 2,  take_groups,          clear_groups         },
    {"nodes",     {SEC_NODES},                                     1, 1,  take_nodes,           clear_nodes          },
    {"leases",    {SEC_LEASES},                                    1, 1,  take_leases,          clear_leases         },
    {"audit",     {SEC_AUDIT},                                     1, 5,  take_audit,           clear_audit          },
    {"schedules", {SEC_SCHEDULES},                                 1, 1,  store_take_schedules, store_clear_schedules},
    {"runs",      {SEC_CRON_RUNS, SEC_CRON_NEXT},                  2, 2,  store_take_runs,      store_clear_runs     },
    {"health",
     {SEC_HEALTH_SERVER, SEC_HEALTH_SESSIONS, SEC_HEALTH_VACUUMS},
     3,                                                               2,
     store_take_health,                                                                         store_clear_health   },
    {"tables",    {SEC_HEALTH_TABLES},                             1, 10, store_take_tables,    store_clear_tables   },
};
