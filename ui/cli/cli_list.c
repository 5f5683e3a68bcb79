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
#include "ui/facts/audit_columns.h"
#include "ui/facts/life.h"
#include "ui/facts/queue_columns.h"

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
    const struct column *columns;
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
    struct cli_table out;
    int n = 0;

    params_set(&p, PARAM_QUEUE, w->queue);
    params_set(&p, PARAM_NODE, w->node);
    params_set_int(&p, PARAM_LIMIT, list_limit(w));
    bool ok = cli_ask(q, &l->section, 1, &p, &rows, &e);
    if (ok) {
        cli_table_begin(&out, list_form(w), q->source, l->columns);
        out.formulas = w->exact;
        out.now_ms = q->now_ms;
        n = keep_rows(l, w, &rows);
        cli_table_rows(&out, rows.rows, n, rows.size);
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
static const struct column node_columns[] = {
    {.name = "node", .title = "NODE", .kind = K_TEXT, .offset = N(node), .most = 30},
    {.name = "state", .title = "STATE", .kind = K_TEXT, .offset = N(state)},
    {.name = "host", .title = "HOST", .kind = K_NAME, .offset = N(host), .most = 20},
    {.name = "pid", .title = "PID", .kind = K_INT, .offset = N(pid)},
    {.name = "heartbeat_s", .title = "BEAT", .kind = K_AGE, .offset = N(heartbeat_ms)},
    {.name = "leases", .title = "LEASES", .kind = K_BIG, .offset = N(leases)},
    {.name = "running", .title = "RUNNING", .kind = K_BIG, .offset = N(running)},
    {.name = "expired", .title = "EXPIRED", .kind = K_BIG, .offset = N(expired)},
    {.name = "queues", .title = "QUEUES", .kind = K_LIST, .offset = N(queues), .most = 30},
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
static const struct column lease_columns[] = {
    {.name = "lease", .title = "LEASE", .kind = K_BIG, .offset = L(lease)},
    {.name = "node", .title = "NODE", .kind = K_TEXT, .offset = L(node), .most = 30},
    {.name = "queue", .title = "QUEUE", .kind = K_TEXT, .offset = L(queue), .most = 24},
    {.name = "jobs", .title = "JOBS", .kind = K_BIG, .offset = L(jobs)},
    {.title = "TAKEN", .kind = K_AGE, .offset = L(started_ms)},
    {.title = "EXPIRED", .kind = K_AGE, .offset = L(lease_until_ms)},
    {.name = "started", .kind = K_TIME, .offset = L(started_ms)},
    {.name = "lock_timeout", .kind = K_TIME, .offset = L(lease_until_ms)},
    {.name = "version", .kind = K_BIG, .offset = L(version)},
    {.title = "EFFECT", .kind = K_TEXT, .offset = L(effect), .most = 40},
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
static const struct column group_columns[] = {
    {.name = "n", .title = "JOBS", .kind = K_BIG, .offset = G(n)},
    {.name = "queue", .title = "QUEUE", .kind = K_TEXT, .offset = G(queue), .most = 24},
    {.title = "FIRST", .kind = K_AGE, .offset = G(first_ms)},
    {.title = "LAST", .kind = K_AGE, .offset = G(last_ms)},
    {.name = "first", .kind = K_TIME, .offset = G(first_ms)},
    {.name = "last", .kind = K_TIME, .offset = G(last_ms)},
    {.name = "error_key", .title = "ERROR", .kind = K_TEXT, .offset = G(error_key), .most = 60},
    {.name = "sample", .kind = K_TEXT, .offset = G(sample)},
    {.name = "sample_id", .kind = K_NAME, .offset = G(sample_id)},
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

static int
run_audit(struct cli *c, const void *options)
{
    return list(c, options, &(struct listing){SEC_AUDIT, audit_columns, NULL});
}

/* --- queues ----------------------------------------------------------------------------------- */

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
        q[i].max_running = from ? from->max_running : INT_MIN;
        q[i].paused_by = q[i].pause_reason = q[i].info = "";
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
        q[i].failed_hour = from && from->failed > 0 ? from->failed : times->n > 0 ? 0 : FIELD_NULL;
    }
    free(known.rows);
}

/* What came in and went out in five minutes; rows without an answer know nothing of it. */
static void
add_paces(const struct rowset *paces, struct rowset *counts)
{
    struct by_queue known = by_queue(paces);
    struct queue_row *q = counts->rows;

    for (int i = 0; i < counts->n; i++) {
        const struct pace_row *from = find_queue(&known, q[i].queue);
        store_forget_pace(&q[i]);
        if (from)
            store_set_pace(&q[i], from);
    }
    free(known.rows);
}

/* With what is worked out for each. */
static struct queue_line *
lines_of(const struct rowset *counts, const struct rowset *nodes, int64_t now_ms)
{
    struct queue_line *lines = xcalloc((size_t)counts->n + 1, sizeof *lines);
    const struct queue_row *q = counts->rows;
    struct workers w = workers_of(nodes->rows, nodes->n);

    for (int i = 0; i < counts->n; i++)
        queue_line_fill(&lines[i], &q[i], &w, now_ms);
    workers_done(&w);
    return lines;
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
                                               SEC_LIFE,   SEC_PACE,   SEC_NODES};
    const struct list_words *w = options;
    const struct listing l = {SEC_COUNTS, queue_columns, is_queue};
    struct cli_queue q;
    struct err e = {0};
    struct rowset rows[7];
    struct cli_table out;
    int n = 0;

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    bool ok = cli_ask(&q, sections, 7, NULL, rows, &e);
    if (ok) {
        bool foreign = !adapter_has(q.adapter, SEC_RATES);
        if (foreign)
            add_idle(&rows[0], &rows[1]);
        add_settings(&rows[0], &rows[1], foreign);
        add_rates(&rows[2], &rows[1], q.now_ms);
        add_times(&rows[3], &rows[1]);
        add_paces(&rows[5], &rows[1]);
        settle_approx(&rows[1]);
        cli_table_begin(&out, list_form(w), q.source, l.columns);
        out.formulas = w->exact;
        out.estimates = is_approx;
        out.now_ms = q.now_ms;
        if (list_form(w) == OUT_TABLE)
            say_life(&q, &rows[1], &rows[4]);
        n = keep_rows(&l, w, &rows[1]);
        rows[1].n = n;
        struct queue_line *lines = lines_of(&rows[1], &rows[6], q.now_ms);
        cli_table_rows(&out, lines, n, sizeof *lines);
        free(lines);
        for (int i = 0; i < 7; i++)
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
