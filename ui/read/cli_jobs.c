/*
 * Lists of jobs: `jobs`, and `leases` if a queue system has no list of leases. The lists are read
 * and printed page by page, so that their length needs no memory.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/filter.h"
#include "model/adapter/terms.h"
#include "model/base/mem.h"
#include "ui/facts/jobs_columns.h"
#include "ui/read/cli_list.h"

enum { PAGE = 1000, SCAN = 100000, SORT_MOST = 100001 };

/* Adds the options that mean the same as a term of the filter. Both together are an error, because
 * one of them would be lost. */
static bool
add_options(const struct list_words *w, struct params *p, struct err *e)
{
    const struct {
        const char *name, *value;
        enum param param;
    } options[] = {
        {"queue", w->queue, PARAM_QUEUE},
        {"node",  w->node,  PARAM_NODE },
        {"kind",  w->kind,  PARAM_KIND },
        {"error", w->error, PARAM_ERROR},
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!options[i].value)
            continue;
        if (p->value[options[i].param])
            return fail(e, ERR_USAGE, "--%s and a term %s in the filter: leave one of them out",
                        options[i].name, options[i].name);
        params_set(p, options[i].param, options[i].value);
    }
    return true;
}

bool
list_filter(const struct cli *c, const struct list_words *w, struct params *p, struct err *e)
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
        ok = add_options(w, p, e);
        if (!ok)
            params_done(p);
    }
    filter_done(&f);
    buf_free(&text);
    buf_free(&states);
    return ok;
}

struct job_pages {
    const struct look *look;
    struct params params;
    struct cli_table out;
    int most, got, printed;
    bool more;           /* there may be another page, from the cursor in params */
    struct rowset *kept; /* all pages, if they must be sorted */
    int nkept;
};

static void
keep_page(struct job_pages *j, const struct rowset *rows)
{
    j->kept = xreallocarray(j->kept, (size_t)j->nkept + 1, sizeof *j->kept);
    j->kept[j->nkept++] = *rows;
}

static bool
read_page(struct job_pages *j, struct err *e)
{
    enum section_id section = SEC_JOBS;
    struct rowset rows;
    int left = j->most - j->got, limit = left < PAGE ? left : PAGE;

    params_set_int(&j->params, PARAM_LIMIT, limit);
    params_set_int(&j->params, PARAM_N, SCAN);
    if (!cli_ask(j->look->queue, &section, 1, &j->params, &rows, e))
        return false;
    const struct job_row *row = rows.rows, *last = rows.n ? row + rows.n - 1 : NULL;
    bool marked = last && !*last->id; /* the search stopped early */
    int n = rows.n - marked;
    j->got += n;
    j->more = last && *last->cursor && (marked || n == limit) && j->got < j->most;
    if (j->more)
        params_set(&j->params, PARAM_CURSOR, last->cursor);
    rows.n = n;
    j->out.now_ms = j->look->queue->now_ms;
    if (j->out.is_sorted) {
        keep_page(j, &rows);
        return true;
    }
    j->printed += cli_table_rows(&j->out, row, n, rows.size);
    rowset_free(&rows);
    return true;
}

static void
print_sorted(struct job_pages *j)
{
    const void **rows = xcalloc((size_t)j->got + 1, sizeof *rows);
    int n = 0;

    for (int i = 0; i < j->nkept; i++)
        for (int k = 0; k < j->kept[i].n; k++)
            rows[n++] = (const struct job_row *)j->kept[i].rows + k;
    j->printed = cli_table_print(&j->out, rows, n);
    free(rows);
}

/* Sorting needs all rows in memory: the number of rows is limited, and no list is sorted only in
 * part. */
static bool
check_sortable(const struct job_pages *j, struct err *e)
{
    return !j->out.is_sorted || j->got < SORT_MOST ||
           fail(e, ERR_REFUSED, "--sort takes at most %d jobs: a filter makes them fewer",
                SORT_MOST - 1);
}

/* Prints all jobs that the parameters select, and frees the parameters. */
static int
print_all(struct job_pages *j, const struct column *columns, struct err *e)
{
    const struct adapter *a = j->look->queue->adapter;
    const char *lacks = terms_lacking(a, SEC_JOBS, &j->params);
    bool ok = look_begin(j->look, &j->out, columns, e);

    if (ok && lacks)
        ok = fail(e, ERR_REFUSED, "%s can't filter by %s", adapter_title(a), lacks);
    ok = ok && terms_check_id(a, &j->params, e);
    j->most = j->look->words->limit == 0 ? INT_MAX : list_limit(j->look->words);
    if (j->out.is_sorted)
        j->most = SORT_MOST;
    else
        j->out.most = 0; /* j->most counts over all pages */
    j->more = true;
    while (ok && j->more && fflush(stdout) == 0) /* if head(1) has closed the pipe, no more pages
                                                    are asked */
        ok = read_page(j, e);
    ok = ok && check_sortable(j, e);
    if (ok && j->out.is_sorted)
        print_sorted(j);
    for (int i = 0; i < j->nkept; i++)
        rowset_free(&j->kept[i]);
    free(j->kept);
    params_done(&j->params);
    return ok ? j->printed : -1;
}

static int
look_at_jobs(const struct look *l, struct err *e)
{
    struct job_pages j = {.look = l};

    return list_filter(l->queue->cli, l->words, &j.params, e)
               ? print_all(&j, l->listing->columns, e)
               : -1;
}

int
list_jobs(struct cli *c, const void *options)
{
    struct err e = {0};
    struct params p = {0};

    if (!list_filter(c, options, &p, &e)) /* check before connecting */
        return cli_usage(c, "%s", e.text);
    params_done(&p);
    return list_run(c, options, &(struct listing){.look = look_at_jobs, .columns = jobs_columns});
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
list_held(const struct look *l, struct err *e)
{
    static const char *const running[] = {"running"};
    struct job_pages j = {.look = l};

    params_set_list(&j.params, PARAM_STATES, running, 1);
    params_set(&j.params, PARAM_QUEUE, l->words->queue);
    params_set(&j.params, PARAM_NODE, l->words->node);
    return print_all(&j, held_columns, e);
}
