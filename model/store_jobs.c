/*
 * The window of the jobs list: where it starts (a cursor, and a stack of the starts that were
 * scrolled past), how many rows it asks for, how many it may look through. Every refresh asks for
 * the same window again, so memory and cost don't depend on how many jobs there are.
 *
 * An adapter may stop a search early (words, ages): then its last row has no id and the cursor to
 * go on from. Asking for more first raises how much is looked through, then moves on.
 */
#include <stdlib.h>
#include <string.h>

#include "model/mem.h"
#include "model/store_parts.h"

enum { SCAN_FIRST = 10000, SCAN_MOST = 160000 };

static const char *
start_cursor(const struct jobs_window *w)
{
    return w->depth ? w->starts[w->depth - 1] : NULL;
}

/* What the topic's next query will ask. */
static void
set_params(struct store *s)
{
    struct jobs_window *w = &s->window;
    struct params *p = &s->slots[TOPIC_JOBS].params;

    params_done(p);
    params_copy(p, &w->filter.terms);
    params_set(p, PARAM_CURSOR, start_cursor(w));
    params_set_int(p, PARAM_LIMIT, w->limit);
    params_set_int(p, PARAM_N, w->scan);
}

static void
back_to_top(struct jobs_window *w)
{
    while (w->depth > 0)
        free(w->starts[--w->depth]);
    w->limit = JOBS_PAGE;
    w->scan = SCAN_FIRST;
}

void
store_init_jobs(struct store *s)
{
    s->window.filter.text = xstrdup("");
    back_to_top(&s->window);
    set_params(s);
}

void
store_done_jobs(struct store *s)
{
    back_to_top(&s->window);
    free(s->window.starts);
    free(s->window.rows);
    filter_done(&s->window.filter);
}

void
store_clear_jobs(struct store *s)
{
    rowset_free(&s->jobs);
    free(s->window.resume);
    s->window.resume = NULL;
    s->window.n = 0;
    s->window.at_end = false;
}

bool
store_take_jobs(struct store *s, struct db_reply *reply, struct err *e)
{
    struct jobs_window *w = &s->window;
    struct rowset rows;

    if (!record_decode(&record_job, db_take(reply, 0), &rows, e))
        return false;
    store_clear_jobs(s);
    s->jobs = rows;
    w->n = rows.n;
    const struct job_row *last = rows.n ? (const struct job_row *)rows.rows + rows.n - 1 : NULL;
    if (last && !*last->id) {
        w->resume = xstrdup(last->cursor);
        w->n--;
    }
    w->at_end = !w->resume && w->n < w->limit;
    return true;
}

/* The window starts behind row i from now on. */
static void
push_start(struct jobs_window *w, const char *cursor, int rows)
{
    if (w->depth == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 16;
        w->starts = xreallocarray(w->starts, (size_t)w->cap, sizeof *w->starts);
        w->rows = xreallocarray(w->rows, (size_t)w->cap, sizeof *w->rows);
    }
    w->starts[w->depth] = xstrdup(cursor);
    w->rows[w->depth++] = rows;
}

static bool
move_down(struct store *s)
{
    struct jobs_window *w = &s->window;
    const struct job_row *rows = s->jobs.rows;

    if (w->at_end)
        return false;
    if (w->resume && w->scan < SCAN_MOST)
        w->scan *= 4;
    else if (w->resume && w->n < JOBS_PAGE)
        push_start(w, w->resume, w->n);
    else if (w->limit + JOBS_PAGE <= JOBS_WINDOW)
        w->limit += JOBS_PAGE;
    else if (w->n >= JOBS_PAGE)
        push_start(w, rows[JOBS_PAGE - 1].cursor, JOBS_PAGE);
    return true;
}

static bool
move_up(struct store *s)
{
    struct jobs_window *w = &s->window;

    if (w->depth == 0)
        return false;
    free(w->starts[--w->depth]);
    w->limit = JOBS_WINDOW;
    return true;
}

/* Asks anew without forgetting what is shown. */
static void
ask_again(struct store *s)
{
    set_params(s);
    s->slots[TOPIC_JOBS].serial++;
    store_refresh(s, TOPIC_JOBS);
}

void
store_more_jobs(struct store *s, int direction)
{
    const struct slot *slot = &s->slots[TOPIC_JOBS];

    if (slot->info.asking || slot->again || !slot->info.has_data)
        return;
    if (direction > 0 ? move_down(s) : move_up(s))
        ask_again(s);
}

void
store_top_jobs(struct store *s)
{
    if (s->window.depth == 0)
        return;
    back_to_top(&s->window);
    ask_again(s);
}

void
store_ask_jobs(struct store *s, const struct filter *f)
{
    struct jobs_window *w = &s->window;

    filter_done(&w->filter);
    filter_copy(&w->filter, f);
    back_to_top(w);
    set_params(s);
    store_choose(s, TOPIC_JOBS);
}

const struct filter *
store_jobs_filter(const struct store *s)
{
    return &s->window.filter;
}

const struct job_row *
store_jobs(const struct store *s, int *n)
{
    *n = s->window.n;
    return s->jobs.rows;
}

struct jobs_place
store_jobs_place(const struct store *s)
{
    const struct jobs_window *w = &s->window;
    struct jobs_place place = {.at_top = w->depth == 0,
                               .at_end = w->at_end && s->slots[TOPIC_JOBS].info.has_data,
                               .searching = w->resume != NULL};

    for (int i = 0; i < w->depth; i++)
        place.before += w->rows[i];
    return place;
}
