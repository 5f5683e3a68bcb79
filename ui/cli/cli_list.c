/*
 * The verbs that look: queues, nodes, leases, failures, audit (jobs: ui/cli/cli_jobs.c). Each is a
 * table of columns over the rows of the adapter's section.
 */
#include "ui/cli/cli_list.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "model/store/history.h"
#include "ui/cli/verbs.h"
#include "ui/facts/life.h"

enum { ON_TERMINAL = 100, ALL = 1000000, RATE_MS = 10000 };

static const struct list_words list_defaults = {.limit = -1};

enum out_form
list_form(const struct list_words *w)
{
    return w->json ? OUT_JSON : w->csv ? OUT_CSV : OUT_TABLE;
}

int
list_limit(const struct list_words *w)
{
    if (w->limit < 0)
        return isatty(STDOUT_FILENO) ? ON_TERMINAL : ALL;
    return w->limit ? w->limit : ALL;
}

/* Asks and prints; keep (may be NULL) says which rows are meant. */
struct listing {
    enum section_id section;
    const struct out_column *columns;
    bool (*keep)(const struct list_words *w, const void *row);
};

static int
keep_rows(const struct listing *l, const struct list_words *w, struct rowset *rows)
{
    char *data = rows->rows;
    int n = 0;

    for (int i = 0; i < rows->n; i++)
        if (!l->keep || l->keep(w, data + (size_t)i * rows->size))
            memmove(data + (size_t)n++ * rows->size, data + (size_t)i * rows->size, rows->size);
    return n > list_limit(w) ? list_limit(w) : n;
}

/* Ends with the connection closed. */
static int
list_open(struct cli_queue *q, const struct list_words *w, const struct listing *l)
{
    struct err e = {0};
    struct params p = {0};
    struct rowset rows = {0};
    struct out out;
    int n = 0;

    params_set(&p, PARAM_QUEUE, w->queue);
    params_set(&p, PARAM_NODE, w->node);
    params_set_int(&p, PARAM_LIMIT, list_limit(w));
    bool ok = cli_ask(q, &l->section, 1, &p, &rows, &e);
    if (ok) {
        out_begin(&out, list_form(w), q->source, l->columns);
        out.formulas = w->exact;
        out.now_ms = q->now_ms;
        n = keep_rows(l, w, &rows);
        out_rows(&out, rows.rows, n, rows.size);
    }
    rowset_free(&rows);
    params_done(&p);
    cli_close(q);
    return cli_end(q->cli, ok, n, &e);
}

static int
list(struct cli *c, const struct list_words *w, const struct listing *l)
{
    struct cli_queue q;
    struct err e = {0};

    return cli_open(c, false, &q, &e) ? list_open(&q, w, l) : cli_fail(c, &e);
}

/* --- nodes, leases, failures, audit ----------------------------------------------------------- */

#define N(f) offsetof(struct node_row, f)
/* clang-format off */
static const struct out_column node_columns[] = {
    {"node",        "NODE",    OUT_TEXT,  N(node),         30},
    {"state",       "STATE",   OUT_TEXT,  N(state),        0},
    {"host",        "HOST",    OUT_NAME,  N(host),         20},
    {"pid",         "PID",     OUT_INT,   N(pid),          0},
    {"heartbeat_s", "BEAT",    OUT_SINCE, N(heartbeat_ms), 0},
    {"leases",      "LEASES",  OUT_BIG,   N(leases),       0},
    {"running",     "RUNNING", OUT_BIG,   N(running),      0},
    {"expired",     "EXPIRED", OUT_BIG,   N(expired),      0},
    {"queues",      "QUEUES",  OUT_LIST,  N(queues),       30},
    {0},
};
/* clang-format on */

static bool
is_node(const struct list_words *w, const void *row)
{
    return !w->node || !strcmp(((const struct node_row *)row)->node, w->node);
}

static int
run_nodes(struct cli *c, const void *options)
{
    return list(c, options, &(struct listing){SEC_NODES, node_columns, is_node});
}

#define L(f) offsetof(struct lease_row, f)
/* clang-format off */
static const struct out_column lease_columns[] = {
    {"lease",        "LEASE",   OUT_BIG,   L(lease),          0},
    {"node",         "NODE",    OUT_TEXT,  L(node),           30},
    {"queue",        "QUEUE",   OUT_TEXT,  L(queue),          24},
    {"jobs",         "JOBS",    OUT_BIG,   L(jobs),           0},
    {NULL,           "TAKEN",   OUT_SINCE, L(started_ms),     0},
    {NULL,           "EXPIRED", OUT_SINCE, L(lease_until_ms), 0},
    {"started",      NULL,      OUT_TIME,  L(started_ms),     0},
    {"lock_timeout", NULL,      OUT_TIME,  L(lease_until_ms), 0},
    {"version",      NULL,      OUT_BIG,   L(version),        0},
    {NULL,           "EFFECT",  OUT_TEXT,  L(effect),         40},
    {0},
};
/* clang-format on */

static bool
is_lease(const struct list_words *w, const void *row)
{
    const struct lease_row *l = row;

    return (!w->node || !strcmp(l->node, w->node)) && (!w->queue || !strcmp(l->queue, w->queue));
}

/* Where leases are no rows of their own, they are what the running jobs say of themselves. */
static int
run_leases(struct cli *c, const void *options)
{
    struct cli_queue q;
    struct err e = {0};

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    if (!adapter_has(q.adapter, SEC_LEASES))
        return list_held(&q, options);
    return list_open(&q, options, &(struct listing){SEC_LEASES, lease_columns, is_lease});
}

#define G(f) offsetof(struct group_row, f)
/* clang-format off */
static const struct out_column group_columns[] = {
    {"n",         "JOBS",  OUT_BIG,   G(n),         0},
    {"queue",     "QUEUE", OUT_TEXT,  G(queue),     24},
    {NULL,        "FIRST", OUT_SINCE, G(first_ms),  0},
    {NULL,        "LAST",  OUT_SINCE, G(last_ms),   0},
    {"first",     NULL,    OUT_TIME,  G(first_ms),  0},
    {"last",      NULL,    OUT_TIME,  G(last_ms),   0},
    {"error_key", "ERROR", OUT_TEXT,  G(error_key), 60},
    {"sample",    NULL,    OUT_TEXT,  G(sample),    0},
    {"sample_id", NULL,    OUT_NAME,  G(sample_id), 0},
    {0},
};
/* clang-format on */

static bool
is_group(const struct list_words *w, const void *row)
{
    return !w->queue || !strcmp(((const struct group_row *)row)->queue, w->queue);
}

static int
run_failures(struct cli *c, const void *options)
{
    return list(c, options, &(struct listing){SEC_GROUPS, group_columns, is_group});
}

#define A(f) offsetof(struct audit_row, f)
/* clang-format off */
static const struct out_column audit_columns[] = {
    {"at",       "TIME",    OUT_TIME, A(at_ms),    0},
    {"who",      "WHO",     OUT_TEXT, A(who),      16},
    {NULL,       "ACTION",  OUT_ID,   A(action),   0},
    {"addr",     "FROM",    OUT_NAME, A(addr),     20},
    {"verb",     "VERB",    OUT_TEXT, A(verb),     0},
    {"target",   "TARGET",  OUT_NAME, A(target),   24},
    {"expected", NULL,      OUT_BIG,  A(expected), 0},
    {"changed",  "CHANGED", OUT_BIG,  A(changed),  0},
    {"skipped",  "SKIPPED", OUT_BIG,  A(skipped),  0},
    {"change",   "CHANGE",  OUT_NAME, A(change),   40},
    {"params",   NULL,      OUT_JSON_VALUE, A(params), 0},
    {"before",   NULL,      OUT_JSON_VALUE, A(before), 0},
    {"reason",   "REASON",  OUT_NAME, A(reason),   40},
    {"action",   NULL,      OUT_TEXT, A(action),   0},
    {0},
};
/* clang-format on */

static int
run_audit(struct cli *c, const void *options)
{
    return list(c, options, &(struct listing){SEC_AUDIT, audit_columns, NULL});
}

/* --- queues ----------------------------------------------------------------------------------- */

#define Q(f) offsetof(struct queue_row, f)
/* clang-format off */
static const struct out_column queue_columns[] = {
    {"queue",          "QUEUE",     OUT_TEXT,  Q(queue),        30},
    {"paused",         "PAUSED",    OUT_BOOL,  Q(paused),       0},
    {"ready",          "READY",     OUT_COUNT, Q(ready),        0},
    {"scheduled",      "SCHEDULED", OUT_COUNT, Q(scheduled),    0},
    {"retry",          "RETRY",     OUT_COUNT, Q(retry),        0},
    {"running",        "RUNNING",   OUT_COUNT, Q(running),      0},
    {"failed",         "FAILED",    OUT_COUNT, Q(failed),       0},
    {"blocked",        NULL,        OUT_COUNT, Q(blocked),      0},
    {"oldest_ready_s", "OLDEST",    OUT_SINCE, Q(oldest_ms),    0},
    {"pushed_per_s",   "PUSHED/s",  OUT_RATE,  Q(pushed_per_s), 0},
    {"done_per_s",     "DONE/s",    OUT_RATE,  Q(done_per_s),   0},
    {"failed_per_s",   "FAILED/s",  OUT_RATE,  Q(failed_per_s), 0},
    {"wait_p50_ms",    NULL,        OUT_BIG,   Q(wait_p50_ms),  0},
    {"wait_p99_ms",    NULL,        OUT_BIG,   Q(wait_p99_ms),  0},
    {"run_p50_ms",     NULL,        OUT_BIG,   Q(run_p50_ms),   0},
    {"run_p99_ms",     NULL,        OUT_BIG,   Q(run_p99_ms),   0},
    {"approx",         NULL,        OUT_BOOL,  Q(approx),       0},
    {0},
};
/* clang-format on */

/* Rows by the name of their queue, which is the first member of each. There may be hundreds of
 * thousands, in the order of the server's collation. */
struct by_queue {
    const void **rows; /* of one queue: as they came */
    int n;
};

static const char *
queue_of(const void *row)
{
    return *(const char *const *)row;
}

static int
compare_queues(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    int order = strcmp(queue_of(x), queue_of(y));

    return order ? order : (x > y) - (x < y);
}

static struct by_queue
by_queue(const struct rowset *rows)
{
    struct by_queue b = {xcalloc((size_t)rows->n + 1, sizeof *b.rows), rows->n};

    for (int i = 0; i < rows->n; i++)
        b.rows[i] = (const char *)rows->rows + (size_t)i * rows->size;
    qsort(b.rows, (size_t)b.n, sizeof *b.rows, compare_queues);
    return b;
}

/* How many rows there are up to the last one of this queue. */
static int
up_to(const struct by_queue *b, const char *queue)
{
    int low = 0, high = b->n;

    while (low < high) {
        int mid = low + (high - low) / 2;
        if (strcmp(queue_of(b->rows[mid]), queue) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The last row of this queue; NULL = none. */
static const void *
find_queue(const struct by_queue *b, const char *queue)
{
    int n = up_to(b, queue);

    return n && !strcmp(queue_of(b->rows[n - 1]), queue) ? b->rows[n - 1] : NULL;
}

/* Rates out of one look: the kept points of a queue's counters and the counts of now. */
static void
set_rates(struct queue_row *q, const struct by_queue *kept, int64_t now_ms)
{
    struct history *h = history_new(RATE_MS, 61);
    int n = up_to(kept, q->queue), i = n;

    while (i > 0 && !strcmp(queue_of(kept->rows[i - 1]), q->queue))
        i--;
    for (; i < n; i++) {
        const struct rate_row *r = kept->rows[i];
        history_add(h, q->queue,
                    &(struct sample){
                        r->at_ms, {r->pushed, r->completed, r->fails, FIELD_NULL, FIELD_NULL}
        });
    }
    history_add(h, q->queue,
                &(struct sample){
                    now_ms, {q->pushed, q->completed, q->fails, FIELD_NULL, FIELD_NULL}
    });
    q->pushed_per_s = history_now(h, q->queue, SERIES_PUSHED, RATE_MS);
    q->done_per_s = history_now(h, q->queue, SERIES_DONE, RATE_MS);
    q->failed_per_s = history_now(h, q->queue, SERIES_FAILED, RATE_MS);
    history_free(h);
}

/* One queue after the other: the history of all at once would be a gigabyte. */
static void
add_rates(const struct rowset *kept, struct rowset *counts, int64_t now_ms)
{
    struct by_queue points = by_queue(kept);
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++)
        set_rates(&q[i], &points, now_ms);
    free(points.rows);
}

/* A queue that has no settings is not paused, where they are ours; else nobody knows. */
static void
add_settings(const struct rowset *config, struct rowset *counts, bool foreign)
{
    struct by_queue settings = by_queue(config);
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++) {
        const struct queue_row *from = find_queue(&settings, q[i].queue);
        q[i].paused = from ? from->paused : foreign ? -1 : 0;
    }
    free(settings.rows);
}

/* How long jobs of the last hour waited and ran, by queue. */
static void
add_times(const struct rowset *times, struct rowset *counts)
{
    struct by_queue known = by_queue(times);
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++) {
        const struct time_row *from = find_queue(&known, q[i].queue);
        q[i].wait_p50_ms = from ? from->wait_p50_ms : FIELD_NULL;
        q[i].wait_p99_ms = from ? from->wait_p99_ms : FIELD_NULL;
        q[i].run_p50_ms = from ? from->run_p50_ms : FIELD_NULL;
        q[i].run_p99_ms = from ? from->run_p99_ms : FIELD_NULL;
    }
    free(known.rows);
}

/* Queues that are known but hold nothing: other systems do not count them. Named twice, once. */
static void
add_idle(const struct rowset *config, struct rowset *counts)
{
    const struct queue_row *from = config->rows;
    size_t most = (size_t)counts->n + (size_t)config->n;
    struct queue_row *q = xreallocarray(counts->rows, most + 1, sizeof *from);

    counts->rows = q;
    struct by_queue counted = by_queue(counts), named = by_queue(config);
    for (int i = 0; i < config->n; i++) {
        if (find_queue(&counted, from[i].queue) || find_queue(&named, from[i].queue) != &from[i])
            continue;
        struct queue_row idle = from[i];
        idle.oldest_ms = idle.blocked = FIELD_NULL;
        idle.pushed = idle.completed = idle.fails = idle.retried = idle.run_ms = FIELD_NULL;
        q[counts->n++] = idle;
    }
    free(counted.rows);
    free(named.rows);
}

/* Counts are exact unless the row says that they are estimates. */
static bool
is_approx(const void *row)
{
    return ((const struct queue_row *)row)->approx == 1;
}

static void
settle_approx(struct rowset *counts)
{
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++)
        q[i].approx = is_approx(&q[i]);
}

static bool
is_queue(const struct list_words *w, const void *row)
{
    return !w->queue || !strcmp(((const struct queue_row *)row)->queue, w->queue);
}

/* On standard error: the table is for other programs, too. */
static void
say_life(const struct cli_queue *q, const struct rowset *queues, const struct rowset *life)
{
    struct life_look look = {.row = life->n ? life->rows : NULL,
                             .queues = queues->rows,
                             .nqueues = queues->n,
                             .now_ms = q->now_ms};
    struct trouble t[TROUBLES_MAX];
    int n = look.row ? life_troubles(&look, q->cli->mem, t) : 0;

    for (int i = 0; i < n; i++)
        cli_say(q->cli, "%s: %s", t[i].where, t[i].what);
}

static int
run_queues(struct cli *c, const void *options)
{
    static const enum section_id sections[] = {SEC_QUEUES, SEC_COUNTS, SEC_RATES, SEC_TIMES,
                                               SEC_LIFE};
    const struct list_words *w = options;
    const struct listing l = {SEC_COUNTS, queue_columns, is_queue};
    struct cli_queue q;
    struct err e = {0};
    struct rowset rows[5];
    struct out out;
    int n = 0;

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    bool ok = cli_ask(&q, sections, 5, NULL, rows, &e);
    if (ok) {
        bool foreign = !adapter_has(q.adapter, SEC_RATES);
        if (foreign)
            add_idle(&rows[0], &rows[1]);
        add_settings(&rows[0], &rows[1], foreign);
        add_rates(&rows[2], &rows[1], q.now_ms);
        add_times(&rows[3], &rows[1]);
        settle_approx(&rows[1]);
        out_begin(&out, list_form(w), q.source, l.columns);
        out.formulas = w->exact;
        out.estimates = is_approx;
        out.now_ms = q.now_ms;
        if (list_form(w) == OUT_TABLE)
            say_life(&q, &rows[1], &rows[4]);
        n = keep_rows(&l, w, &rows[1]);
        out_rows(&out, rows[1].rows, n, rows[1].size);
        for (int i = 0; i < 5; i++)
            rowset_free(&rows[i]);
    }
    cli_close(&q);
    return cli_end(c, ok, n, &e);
}

/* --- the table -------------------------------------------------------------------------------- */

#define F(f) offsetof(struct list_words, f)
/* clang-format off */
#define QUEUE {"queue", 'q', "Q", CLI_TEXT, F(queue), "of this queue only", 0, 0}
#define NODE {"node", 0, "N", CLI_TEXT, F(node), "of this node only", 0, 0}
#define FORMS                                                                                      \
    {"json", 0, NULL, CLI_FLAG, F(json), "one JSON object a line", 0, 0},                          \
    {"csv", 0, NULL, CLI_FLAG, F(csv), "comma separated, with a header line", 0, 0},               \
    {"exact", 0, NULL, CLI_FLAG, F(exact), "CSV: no ' before a text that begins like a formula", 0, 0}, \
    {"limit", 'n', "N", CLI_INT, F(limit), "at most so many (100 on a terminal; 0 = all)", 0, INT_MAX}
static const struct cli_option plain_options[] = {FORMS, {0}};
static const struct cli_option queue_options[] = {QUEUE, FORMS, {0}};
static const struct cli_option node_options[] = {NODE, FORMS, {0}};
static const struct cli_option lease_options[] = {QUEUE, NODE, FORMS, {0}};
static const struct cli_option job_options[] = {
    QUEUE, NODE,
    {"state", 's', "STATES", CLI_LIST, F(states), "in these states (ready, failed, ...)", 0, 0},
    {"kind", 'k', "K", CLI_TEXT, F(kind), "of this kind", 0, 0},
    {"error", 'e', "TEXT", CLI_TEXT, F(error), "the group of this error; ~TEXT: a part of it", 0, 0},
    FORMS, {0}};

#define VERB(n, w, h, most, o, r)                                                                  \
    {.name = (n), .words = (w), .help = (h), .max_words = (most), .options = (o),                            \
     .size = sizeof(struct list_words), .defaults = &list_defaults, .run = (r)}
const struct cli_verb verbs_list[] = {
    VERB("queues", "", "List queues with their counts, ages and rates", 0, queue_options, run_queues),
    VERB("jobs", "[FILTER]", "List jobs: by options, or in words as after / in the console", -1,
         job_options, list_jobs),
    VERB("nodes", "", "List worker processes: heartbeats and what they hold", 0, node_options, run_nodes),
    VERB("leases", "", "List leases: who holds what until when", 0, lease_options, run_leases),
    VERB("failures", "", "List failed jobs by error", 0, queue_options, run_failures),
    VERB("audit", "", "List what was changed by whom", 0, plain_options, run_audit),
    {0},
};
/* clang-format on */
