/*
 * Lists of jobs: `jobs`, and `leases` where a queue system keeps none beside its jobs. Read page by
 * page, so that any number of them streams through without being held.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "model/adapter/filter.h"
#include "model/adapter/terms.h"
#include "model/base/mem.h"
#include "ui/cli/cli_list.h"
#include "ui/facts/jobs_columns.h"

enum { PAGE = 1000, SCAN = 100000 };

/* The filter: from words in the filter language, and from options that mean the same. */
static bool
read_filter(const struct cli *c, const struct list_words *w, struct params *p, struct err *e)
{
    struct buf text = {0}, states = {0};
    struct filter f;

    buf_str(&text, "");
    for (int i = 0; i < c->nwords; i++)
        buf_printf(&text, "%s%s", i ? " " : "", c->words[i]);
    for (int i = 0; i < w->states.n; i++)
        buf_printf(&states, "%s%s", i ? "," : "", w->states.items[i]);
    if (states.len > 0) {
        buf_str(&text, " state:");
        filter_add_value(&text, states.data);
    }
    bool ok = filter_parse(text.data, &f, NULL, e);
    if (ok) {
        params_copy(p, &f.terms);
        if (w->queue)
            params_set(p, PARAM_QUEUE, w->queue);
        if (w->node)
            params_set(p, PARAM_NODE, w->node);
        if (w->kind)
            params_set(p, PARAM_KIND, w->kind);
        if (w->error)
            params_set(p, PARAM_ERROR, w->error);
    }
    filter_done(&f);
    buf_free(&text);
    buf_free(&states);
    return ok;
}

struct job_pages {
    struct cli_queue queue;
    struct params params;
    struct cli_table out;
    int most, printed;
    bool more; /* there may be another page, from the cursor that params has */
};

static bool
print_page(struct job_pages *j, struct err *e)
{
    enum section_id section = SEC_JOBS;
    struct rowset rows;
    int left = j->most - j->printed, limit = left < PAGE ? left : PAGE;

    params_set_int(&j->params, PARAM_LIMIT, limit);
    params_set_int(&j->params, PARAM_N, SCAN);
    if (!cli_ask(&j->queue, &section, 1, &j->params, &rows, e))
        return false;
    const struct job_row *row = rows.rows, *last = rows.n ? row + rows.n - 1 : NULL;
    bool marked = last && !*last->id; /* the search stopped early */
    int n = rows.n - marked;
    j->out.now_ms = j->queue.now_ms;
    cli_table_rows(&j->out, row, n, rows.size);
    j->printed += n;
    j->more = last && *last->cursor && (marked || n == limit) && j->printed < j->most;
    if (j->more)
        params_set(&j->params, PARAM_CURSOR, last->cursor);
    rowset_free(&rows);
    return true;
}

/* Prints all jobs that the parameters select; then frees them and closes the connection. */
static int
print_all(struct job_pages *j, const struct list_words *w, const struct column *columns)
{
    const struct adapter *a = j->queue.adapter;
    const char *lacks = terms_lacking(a, SEC_JOBS, &j->params);
    struct err e = {0};
    bool ok = true;

    j->most = w->limit == 0 ? INT_MAX : list_limit(w);
    j->more = true;
    if (lacks)
        ok = fail(&e, ERR_REFUSED, "%s can't filter by %s", adapter_title(a), lacks);
    cli_table_begin(&j->out, list_form(w), j->queue.source, columns);
    j->out.formulas = w->exact;
    while (ok && j->more && fflush(stdout) == 0) /* if head(1) has closed the pipe, no more pages
                                                    are asked */
        ok = print_page(j, &e);
    params_done(&j->params);
    cli_close(&j->queue);
    return cli_end(j->queue.cli, ok, j->printed, &e);
}

int
list_jobs(struct cli *c, const void *options)
{
    const struct list_words *w = options;
    struct err e = {0};
    struct job_pages j = {0};

    if (!read_filter(c, w, &j.params, &e))
        return cli_usage(c, "%s", e.text);
    if (cli_open(c, false, &j.queue, &e))
        return print_all(&j, w, jobs_columns);
    params_done(&j.params);
    return cli_fail(c, &e);
}

#define J(f) offsetof(struct job_row, f)
/* clang-format off */
static const struct column held_columns[] = {
    {.name = "job", .title = "JOB", .kind = K_TEXT, .offset = J(id)},
    {.name = "node", .title = "NODE", .kind = K_NAME, .offset = J(node), .most = 30},
    {.name = "queue", .title = "QUEUE", .kind = K_TEXT, .offset = J(queue), .most = 24},
    {.name = "kind", .title = "KIND", .kind = K_NAME, .offset = J(kind), .most = 16},
    {.title = "TAKEN", .kind = K_AGE, .offset = J(started_ms)},
    {.title = "EXPIRED", .kind = K_AGE, .offset = J(lease_until_ms)},
    {.name = "started", .kind = K_TIME, .offset = J(started_ms)},
    {.name = "lock_timeout", .kind = K_TIME, .offset = J(lease_until_ms)},
    {.name = "stale", .title = "STALE", .kind = K_BOOL, .offset = J(stale)},
    {0},
};
/* clang-format on */

int
list_held(struct cli_queue *q, const struct list_words *w)
{
    static const char *const running[] = {"running"};
    struct job_pages j = {.queue = *q};

    params_set_list(&j.params, PARAM_STATES, running, 1);
    params_set(&j.params, PARAM_QUEUE, w->queue);
    params_set(&j.params, PARAM_NODE, w->node);
    return print_all(&j, w, held_columns);
}
