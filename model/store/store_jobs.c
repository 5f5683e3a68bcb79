/*
 * The window of the jobs list: where it starts (a cursor, and a stack of the starts that were
 * scrolled past), how many rows it asks for, how many it may look through. Every refresh asks for
 * the same window again, so memory and cost don't depend on how many jobs there are.
 *
 * An adapter may stop a search early (words, ages, payloads): then its last row has no id and the
 * cursor to go on from. When more rows are needed, the next search first looks through more rows,
 * and then continues behind them, up to a fixed total. Beyond this total it waits for
 * store_look_on. After a timeout the next call looks at fewer rows.
 *
 * SEC_JOBS_BACK reads backwards. It finds the start of a window that ends with the last row of all,
 * or with the row before the present window.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/store/store_parts.h"

enum {
    SCAN_FIRST = 10000,
    SCAN_MOST = 160000,
    SCAN_LEAST = 200,
    PAYLOADS_FIRST = 2000,
    PAYLOADS_MOST = 16000,
    PAYLOADS_TIMEOUT_MS = 1500
};

static const char *
start_cursor(const struct jobs_window *w)
{
    return w->depth ? w->starts[w->depth - 1].cursor : NULL;
}

static int64_t
looked_before(const struct jobs_window *w)
{
    int64_t sum = 0;

    for (int i = 0; i < w->depth; i++)
        sum += w->starts[i].looked;
    return sum;
}

/* Sets the parameters of the topic's next query. */
static void
set_params(struct store *s)
{
    struct jobs_window *w = &s->jobs.window;
    struct params *p = &s->slots[TOPIC_JOBS].params;

    params_done(p);
    params_copy(p, &w->filter.terms);
    params_set(p, PARAM_CURSOR, w->find == FIND_END ? NULL : start_cursor(w));
    params_set_int(p, PARAM_LIMIT, w->find ? JOBS_PAGE : w->limit);
    params_set_int(p, PARAM_N, w->scan);
}

static void
back_to_top(struct jobs_window *w)
{
    bool payloads = filter_reads_payloads(&w->filter);

    while (w->depth > 0)
        free(w->starts[--w->depth].cursor);
    w->limit = JOBS_PAGE;
    w->scan = payloads ? PAYLOADS_FIRST : SCAN_FIRST;
    w->scan_most = payloads ? PAYLOADS_MOST : SCAN_MOST;
    w->look_to = w->scan_most;
    w->find = FIND_NOTHING;
}

void
store_init_jobs(struct store *s)
{
    s->jobs.window.filter.text = xstrdup("");
    back_to_top(&s->jobs.window);
    set_params(s);
}

void
store_done_jobs(struct store *s)
{
    back_to_top(&s->jobs.window);
    free(s->jobs.window.starts);
    filter_done(&s->jobs.window.filter);
}

void
store_clear_jobs(struct store *s)
{
    rowset_free(&s->jobs.rows);
    free(s->jobs.window.resume);
    s->jobs.window.resume = NULL;
    s->jobs.window.n = 0;
    s->jobs.window.at_end = false;
}

void
store_close_window(struct store *s)
{
    free(s->jobs.window.resume);
    s->jobs.window.resume = NULL;
    s->jobs.window.at_end = true;
}

/* From now on the window starts behind this cursor. */
static void
push_start(struct jobs_window *w, const char *cursor, int64_t rows, int64_t looked)
{
    if (w->depth == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 16;
        w->starts = xreallocarray(w->starts, (size_t)w->cap, sizeof *w->starts);
    }
    w->starts[w->depth++] = (struct window_start){xstrdup(cursor), rows, looked};
}

/* Asks again, and keeps the present rows until the answer comes. */
static void
ask_again(struct store *s)
{
    set_params(s);
    s->slots[TOPIC_JOBS].serial++;
    store_refresh(s, TOPIC_JOBS);
}

/* Takes the start of the window that a search from the end has found. No row: this order can't be
 * read backwards. */
static void
take_start(struct store *s, struct result *r)
{
    struct jobs_window *w = &s->jobs.window;
    bool can = result_rows(r) > 0;

    if (can) {
        while (w->depth > 0)
            free(w->starts[--w->depth].cursor);
        if (!result_null(r, 0, 0))
            push_start(w, result_text(r, 0, 0), -1, 0);
        w->limit = w->find == FIND_END ? JOBS_PAGE + 1 : 2 * JOBS_PAGE; /* + 1 shows the end */
    }
    w->find = FIND_NOTHING;
    ask_again(s);
}

bool
store_take_jobs(struct store *s, struct db_reply *reply, struct err *e)
{
    struct jobs_window *w = &s->jobs.window;
    struct rowset rows;

    if (w->find && result_cols(reply->results[0]) == 1) {
        take_start(s, reply->results[0]);
        return true;
    }
    if (!record_decode(&record_job, db_take(reply, 0), &rows, e))
        return false;
    store_clear_jobs(s);
    s->jobs.rows = rows;
    w->n = rows.n;
    const struct job_row *last = rows.n ? (const struct job_row *)rows.rows + rows.n - 1 : NULL;
    if (last && !*last->id) {
        w->resume = xstrdup(last->cursor);
        w->n--;
    }
    w->at_end = !w->resume && w->n < w->limit;
    return true;
}

enum section_id
store_jobs_section(const struct store *s)
{
    return s->jobs.window.find ? SEC_JOBS_BACK : SEC_JOBS;
}

int
store_jobs_timeout_ms(const struct store *s)
{
    return filter_reads_payloads(&s->jobs.window.filter) ? PAYLOADS_TIMEOUT_MS : 0;
}

/* After a failed question, gives up the search for the last page. If the question ran into its time
 * limit, the next one looks at fewer rows. */
void
store_jobs_failed(struct store *s, const struct err *e)
{
    struct jobs_window *w = &s->jobs.window;

    if (w->find) {
        w->find = FIND_NOTHING;
        set_params(s);
    } else if (e->kind == ERR_TIMEOUT && w->scan > SCAN_LEAST) {
        w->scan = w->scan / 4 > SCAN_LEAST ? w->scan / 4 : SCAN_LEAST;
        w->scan_most = w->scan;
        set_params(s);
    }
}

static bool
may_look_on(const struct jobs_window *w)
{
    return looked_before(w) + w->scan < w->look_to;
}

static bool
move_down(struct store *s)
{
    struct jobs_window *w = &s->jobs.window;
    const struct job_row *rows = s->jobs.rows.rows;

    if (w->at_end || (w->resume && !may_look_on(w)))
        return false;
    if (w->resume && w->scan < w->scan_most)
        w->scan = w->scan * 4 < w->scan_most ? w->scan * 4 : w->scan_most;
    else if (w->resume && w->n < JOBS_PAGE)
        push_start(w, w->resume, w->n, w->scan);
    else if (w->limit + JOBS_PAGE <= JOBS_WINDOW)
        w->limit += JOBS_PAGE;
    else if (w->n >= JOBS_PAGE)
        push_start(w, rows[JOBS_PAGE - 1].cursor, JOBS_PAGE, 0);
    return true;
}

static bool
move_up(struct store *s)
{
    struct jobs_window *w = &s->jobs.window;

    if (w->depth == 0)
        return false;
    if (w->depth == 1 && w->starts[0].rows < 0) {
        w->find = FIND_UP;
        return true;
    }
    free(w->starts[--w->depth].cursor);
    w->limit = JOBS_WINDOW;
    return true;
}

static bool
is_busy(const struct store *s)
{
    const struct topic_slot *slot = &s->slots[TOPIC_JOBS];

    return slot->info.asking || slot->again || !slot->info.has_data;
}

void
store_more_jobs(struct store *s, int direction)
{
    if (!is_busy(s) && (direction > 0 ? move_down(s) : move_up(s)))
        ask_again(s);
}

void
store_look_on(struct store *s)
{
    struct jobs_window *w = &s->jobs.window;

    if (!s->slots[TOPIC_JOBS].info.has_data || !w->resume || may_look_on(w))
        return; /* a refresh is under way: the list asks again at the next frame */
    w->look_to = looked_before(w) + w->scan + w->scan_most;
    store_more_jobs(s, 1);
}

void
store_top_jobs(struct store *s)
{
    if (s->jobs.window.depth == 0)
        return;
    back_to_top(&s->jobs.window);
    ask_again(s);
}

bool
store_end_jobs(struct store *s)
{
    struct jobs_window *w = &s->jobs.window;

    if (s->injected.on || !adapter_has(s->adapter, SEC_JOBS_BACK) || w->resume)
        return false;
    for (int i = 0; i < PARAM_TOTAL; i++)
        if (w->filter.terms.value[i] && i != PARAM_QUEUE && i != PARAM_STATES)
            return false;
    if (!w->at_end) {
        w->find = FIND_END;
        ask_again(s);
    }
    return true;
}

void
store_ask_jobs(struct store *s, const struct filter *f)
{
    struct jobs_window *w = &s->jobs.window;

    filter_done(&w->filter);
    filter_copy(&w->filter, f);
    back_to_top(w);
    set_params(s);
    store_choose(s, TOPIC_JOBS);
}

const struct filter *
store_jobs_filter(const struct store *s)
{
    return &s->jobs.window.filter;
}

const struct job_row *
store_jobs(const struct store *s, int *n)
{
    *n = s->jobs.window.n;
    return s->jobs.rows.rows;
}

struct jobs_place
store_jobs_place(const struct store *s)
{
    const struct jobs_window *w = &s->jobs.window;
    bool has = s->slots[TOPIC_JOBS].info.has_data;
    struct jobs_place place = {.at_top = w->depth == 0,
                               .at_end = w->at_end && has,
                               .searching = w->resume != NULL,
                               .waits = w->resume && !may_look_on(w),
                               .looked = w->resume ? looked_before(w) + w->scan : 0};

    for (int i = 0; i < w->depth && place.before >= 0; i++)
        place.before = w->starts[i].rows < 0 ? -1 : place.before + w->starts[i].rows;
    return place;
}
