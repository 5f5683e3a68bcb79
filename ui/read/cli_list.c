/*
 * The verbs that look: queues, nodes, leases, failures, audit (jobs: ui/read/cli_jobs.c). Each
 * prints the rows of one section of the adapter by a table of columns.
 */
#include "ui/read/cli_list.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "ui/cli/verbs.h"
#include "ui/facts/audit_columns.h"
#include "ui/facts/lease_columns.h"
#include "ui/facts/node_columns.h"
#include "ui/facts/schedule_columns.h"
#include "ui/read/cli_queues.h"

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
        return isatty(STDOUT_FILENO) || w->watch_ms ? ON_TERMINAL : ALL;
    return w->limit ? w->limit : ALL;
}

static int
keep_rows(const struct look *l, struct rowset *rows)
{
    char *data = rows->rows;
    int n = 0;

    for (int i = 0; i < rows->n; i++)
        if (!l->listing->keep || l->listing->keep(l->words, data + (size_t)i * rows->size))
            memmove(data + (size_t)n++ * rows->size, data + (size_t)i * rows->size, rows->size);
    return n;
}

/* Prints a section. The server gives the first rows in its own order, so all rows must be read to
 * sort by another column. */
static int
look_at_section(const struct look *l, struct err *e)
{
    const struct list_words *w = l->words;
    struct params p = {0};
    struct rowset rows = {0};
    struct cli_table out;
    int n = -1;

    params_set(&p, PARAM_QUEUE, w->queue);
    params_set(&p, PARAM_NODE, w->node);
    params_set_int(&p, PARAM_LIMIT, w->sort ? ALL : list_limit(w));
    if (cli_ask(l->queue, &l->listing->section, 1, &p, &rows, e) &&
        look_begin(l, &out, l->listing->columns, e))
        n = cli_table_rows(&out, rows.rows, keep_rows(l, &rows), rows.size);
    rowset_free(&rows);
    params_done(&p);
    return n;
}

/* --- nodes, leases, failures, audit ----------------------------------------------------------- */

static bool
is_node(const struct list_words *w, const void *row)
{
    return !w->node || !strcmp(((const struct node_row *)row)->node, w->node);
}

static int
run_nodes(struct cli *c, const void *options)
{
    return list_run(c, options,
                    &(struct listing){look_at_section, SEC_NODES, node_columns, is_node, false});
}

static bool
is_lease(const struct list_words *w, const void *row)
{
    const struct lease_row *l = row;

    return (!w->node || !strcmp(l->node, w->node)) && (!w->queue || !strcmp(l->queue, w->queue));
}

/* Prints leases. If the queue system has no rows for leases, the rows are made from its running
 * jobs. */
static int
look_at_leases(const struct look *l, struct err *e)
{
    return adapter_has(l->queue->adapter, SEC_LEASES) ? look_at_section(l, e) : list_held(l, e);
}

static int
run_leases(struct cli *c, const void *options)
{
    return list_run(c, options,
                    &(struct listing){look_at_leases, SEC_LEASES, lease_columns, is_lease, true});
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

/* Prints the groups of failed jobs. If the queue system records no errors, says what lists its
 * failed jobs. */
static int
look_at_groups(const struct look *l, struct err *e)
{
    const struct adapter *a = l->queue->adapter;

    if (adapter_has(a, SEC_GROUPS))
        return look_at_section(l, e);
    fail(e, ERR_REFUSED, "%s does not record why jobs failed: jobs state:failed lists them",
         adapter_title(a));
    return -1;
}

static int
run_failures(struct cli *c, const void *options)
{
    return list_run(c, options,
                    &(struct listing){look_at_groups, SEC_GROUPS, group_columns, is_group, false});
}

static int
run_audit(struct cli *c, const void *options)
{
    return list_run(c, options,
                    &(struct listing){look_at_section, SEC_AUDIT, audit_columns, NULL, false});
}

static bool
is_schedule(const struct list_words *w, const void *row)
{
    return !w->queue || !strcmp(((const struct schedule_row *)row)->queue, w->queue);
}

static int
run_schedules(struct cli *c, const void *options)
{
    return list_run(
        c, options,
        &(struct listing){look_at_section, SEC_SCHEDULES, schedule_columns, is_schedule, false});
}

/* --- queues ----------------------------------------------------------------------------------- */

/* Counts are exact unless the row says that they are estimates. */
static bool
is_approx(const void *row)
{
    return ((const struct queue_row *)row)->approx == 1;
}

/* Moves the lines that are selected to the front; returns their number. */
static int
keep_lines(const struct list_words *w, struct queues_look *l)
{
    int n = 0;

    for (int i = 0; i < l->n; i++)
        if (!w->queue || !strcmp(l->lines[i].q.queue, w->queue))
            l->lines[n++] = l->lines[i];
    return n;
}

/* Prints on standard error, because other programs read the table. */
static void
say_life(const struct cli_queue *q, const struct queues_look *l)
{
    struct trouble t[TROUBLES_MAX];
    int n = queues_troubles(q, l, t);

    for (int i = 0; i < n; i++)
        cli_say(q->cli, "%s: %s", t[i].where, t[i].what);
}

static int
look_at_queues(const struct look *l, struct err *e)
{
    const struct list_words *w = l->words;
    bool says_life = list_form(w) == OUT_TABLE && !w->watch_ms;
    struct queues_look look;
    struct cli_table out;
    int n = -1;

    if (!queues_look(l->queue, BESIDES_TIMES | (says_life ? BESIDES_LIFE : 0), &look, e))
        return -1;
    if (look_begin(l, &out, l->listing->columns, e)) {
        out.estimates = is_approx;
        if (says_life)
            say_life(l->queue, &look);
        n = cli_table_rows(&out, look.lines, keep_lines(w, &look), sizeof *look.lines);
    }
    queues_done(&look);
    return n;
}

static int
run_queues(struct cli *c, const void *options)
{
    return list_run(c, options,
                    &(struct listing){.look = look_at_queues, .columns = queue_columns});
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
    {"columns", 'C', "A,B", CLI_LIST, F(columns), "these columns, in this order", 0, 0},           \
    {"sort", 0, "COLUMN", CLI_TEXT, F(sort), "sort by it; COLUMN:desc: the largest first", 0, 0},  \
    {"watch", 'w', "[T]", CLI_MAYBE, F(watch_ms), "look again every T (2s), until Ctrl-C", 100, INT64_C(86400000)}, \
    {"limit", 'n', "N", CLI_INT, F(limit), "at most N rows (100 on a terminal and with --watch; 0 = all; 10000 with --watch)", 0, INT_MAX}
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
         "queues --sort ready:desc --watch", "queues -q mails --json"),
    VERB("jobs", "[FILTER]", "List jobs: by options, or in words as after / in the console", -1,
         job_options, list_jobs,
         "jobs state:failed queue:mails error:timeout", "jobs -q mails -s failed --csv >failed.csv"),
    VERB("nodes", "", "List worker processes: heartbeats and what they hold", 0, node_options, run_nodes,
         "nodes --columns node,running,heartbeat_s --sort heartbeat_s:desc", "nodes --node web-3 --json"),
    VERB("leases", "", "List leases: who holds what until when", 0, lease_options, run_leases,
         "leases --node web-3", "leases -q mails --csv"),
    VERB("schedules", "", "List schedules: the same as cron list", 0, queue_options, run_schedules,
         "schedules -d app", "schedules --sort next_run --columns name,cron,next_run"),
    VERB("failures", "", "List failed jobs by error", 0, queue_options, run_failures,
         "failures -q mails", "failures --json --limit 10"),
    VERB("audit", "", "List what was changed by whom", 0, plain_options, run_audit,
         "audit --limit 20", "audit --csv --limit 0 >audit.csv"),
    {0},
};
/* clang-format on */
