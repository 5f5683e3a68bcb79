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
#include "ui/cli/cli_queues.h"
#include "ui/cli/verbs.h"
#include "ui/facts/audit_columns.h"

enum { ON_TERMINAL = 100, ALL = 1000000 };

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

/* If the queue system has no rows for leases, they are made from its running jobs. */
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

/* Counts are exact unless the row says that they are estimates. */
static bool
is_approx(const void *row)
{
    return ((const struct queue_row *)row)->approx == 1;
}

/* Those that are meant to the front; how many. */
static int
keep_lines(const struct list_words *w, struct queues_look *l)
{
    int n = 0;

    for (int i = 0; i < l->n; i++)
        if (!w->queue || !strcmp(l->lines[i].q.queue, w->queue))
            l->lines[n++] = l->lines[i];
    return n > list_limit(w) ? list_limit(w) : n;
}

/* On standard error: the table is for other programs, too. */
static void
say_life(const struct cli_queue *q, const struct queues_look *l)
{
    struct trouble t[TROUBLES_MAX];
    int n = queues_troubles(q, l, t);

    for (int i = 0; i < n; i++)
        cli_say(q->cli, "%s: %s", t[i].where, t[i].what);
}

static int
run_queues(struct cli *c, const void *options)
{
    const struct list_words *w = options;
    struct cli_queue q;
    struct err e = {0};
    struct queues_look look;
    struct cli_table out;
    int n = 0;

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    bool ok = queues_look(&q, true, &look, &e);
    if (ok) {
        cli_table_begin(&out, list_form(w), q.source, queue_columns);
        out.formulas = w->exact;
        out.estimates = is_approx;
        out.now_ms = q.now_ms;
        if (list_form(w) == OUT_TABLE)
            say_life(&q, &look);
        n = keep_lines(w, &look);
        cli_table_rows(&out, look.lines, n, sizeof *look.lines);
        queues_done(&look);
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

#define VERB(n, w, h, most, o, r, ...)                                                             \
    {.name = (n), .words = (w), .help = (h), .max_words = (most), .options = (o), .examples = {__VA_ARGS__}, \
     .size = sizeof(struct list_words), .defaults = &list_defaults, .run = (r)}
const struct cli_verb verbs_list[] = {
    VERB("queues", "", "List queues with their counts, ages and rates", 0, queue_options, run_queues,
         "queues -d app", "queues -q mails --json"),
    VERB("jobs", "[FILTER]", "List jobs: by options, or in words as after / in the console", -1,
         job_options, list_jobs,
         "jobs state:failed queue:mails error:timeout", "jobs -q mails -s failed --csv >failed.csv"),
    VERB("nodes", "", "List worker processes: heartbeats and what they hold", 0, node_options, run_nodes,
         "nodes -d app", "nodes --node web-3 --json"),
    VERB("leases", "", "List leases: who holds what until when", 0, lease_options, run_leases,
         "leases --node web-3", "leases -q mails --csv"),
    VERB("failures", "", "List failed jobs by error", 0, queue_options, run_failures,
         "failures -q mails", "failures --json --limit 10"),
    VERB("audit", "", "List what was changed by whom", 0, plain_options, run_audit,
         "audit --limit 20", "audit --csv --limit 0 >audit.csv"),
    {0},
};
/* clang-format on */
