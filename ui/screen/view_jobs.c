/*
 * Jobs: a window over all jobs that match a filter, read page by page by key, so that a million
 * rows cost no more than two hundred. The marks are ids, or "all that match": this is a predicate
 * on the server, not the rows that happen to be loaded. A wide screen shows the selected job below.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/record.h"
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "ui/console/app.h"
#include "ui/console/crumb.h"
#include "ui/facts/jobs_columns.h"
#include "ui/screen/jobpage.h"
#include "ui/screen/jobs_strip.h"
#include "ui/screen/views.h"
#include "ui/widget/list.h"

/* --- marks --- */

/* The state that each marked job had when it was marked, so that the screen can say how many of
 * them have another state by now. Marks stay when their rows leave the list. */

struct jobs_marks {     /* starts as {0} */
    struct marked *was; /* sorted by id, as the marks are */
    int n;
    int moved, left; /* marked jobs in another state, marked jobs that left the list */
};
/* After new rows have come: counts moved and left. whole: the list holds all jobs that match the
 * filter; then a marked job that is not in the list has left. */

struct marked {
    char *id;
    char state[16];
};

static const struct job_row *
row_of(const struct list *l, const char *id)
{
    int n = list_count(l);

    for (int i = 0; i < n; i++) {
        const struct job_row *j = list_row(l, i);
        if (!strcmp(j->id, id))
            return j;
    }
    return NULL;
}

static void
jobs_marks_forget(struct jobs_marks *m)
{
    for (int i = 0; i < m->n; i++)
        free(m->was[i].id);
    free(m->was);
    *m = (struct jobs_marks){0};
}

static struct marked
as_it_is(const struct list *l, const char *id)
{
    const struct job_row *j = row_of(l, id);
    struct marked now = {.id = xstrdup(id)};

    snprintf(now.state, sizeof now.state, "%.15s", j ? j->state : "");
    return now;
}

/* After marking: keeps the state of rows that are newly marked. */
static void
jobs_marks_remember(struct jobs_marks *m, const struct list *l)
{
    int n, old = 0;
    const char *const *ids = list_marks(l, &n);
    struct jobs_marks now = {.n = n, .moved = m->moved, .left = m->left};

    if (n == 0) {
        jobs_marks_forget(m);
        return;
    }
    now.was = xcalloc((size_t)n, sizeof *now.was);
    for (int i = 0; i < n; i++) {
        while (old < m->n && strcmp(m->was[old].id, ids[i]) < 0)
            old++;
        if (old < m->n && !strcmp(m->was[old].id, ids[i])) {
            now.was[i] = m->was[old];
            now.was[i].id = xstrdup(ids[i]);
        } else {
            now.was[i] = as_it_is(l, ids[i]);
        }
    }
    jobs_marks_forget(m);
    *m = now;
}

/* Whether a marked job is in this state; of a job that is not in the list: was, when it was marked.
 */
static bool
jobs_marks_have(const struct jobs_marks *m, const struct list *l, const char *state)
{
    for (int i = 0; i < list_count(l); i++) {
        const struct job_row *j = list_row(l, i);
        if (!strcmp(j->state, state) && list_is_marked(l, j->id))
            return true;
    }
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->was[i].state, state))
            return true;
    return false;
}

/* The states of the marked jobs, "running ready"; NULL = there is one of an unknown state. */
static const char *
jobs_marks_states(const struct jobs_marks *m, const struct list *l, struct arena *mem)
{
    static const char *const known[] = {"failed", "running", "retry",     "scheduled",
                                        "ready",  "blocked", "completed", "cancelled"};
    const char *states = "";

    if (jobs_marks_have(m, l, ""))
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (jobs_marks_have(m, l, known[i]))
            states = arena_printf(mem, "%s%s%s", states, *states ? " " : "", known[i]);
    return states;
}

static void
jobs_marks_look(struct jobs_marks *m, const struct list *l, bool whole)
{
    m->moved = m->left = 0;
    for (int i = 0; i < m->n; i++) {
        const struct job_row *j = row_of(l, m->was[i].id);
        m->left += !j && whole;
        m->moved += j && *m->was[i].state && strcmp(j->state, m->was[i].state) != 0;
    }
}

/* --- the screen --- */

enum { WIDE_W = 120, WIDE_H = 36, LEAST_H = 8, PREVIEW_REST_MS = 120 };

struct jobs {
    struct view view;
    struct jobs_marks marks;
    struct jobs_strip strip;
    struct list *list;
    struct filter filter;
    bool anew;   /* the filter has changed: select the first row */
    bool all;    /* everything that matches is marked */
    bool to_end; /* select the last row when it has come */
    char *home;  /* the filter at the start: Esc goes back to it */
    char *kept;  /* selected id while another screen is in front */
    const char *one[1];
    struct page page;   /* of the preview */
    char *previewed;    /* id of the job that was asked for the preview; NULL = none was */
    int64_t preview_ms; /* when the preview may be asked for; 0 = not wanted */
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
is_ours(const struct jobs *v)
{
    const struct filter *f = store_jobs_filter(v->view.app->store);

    return f && f->text && !strcmp(f->text, v->filter.text ? v->filter.text : "");
}

/* Sets the filter; if the language or the queue system rejects the text, the filter is empty. */
static bool
read_filter(const struct app *a, const char *text, struct filter *f, struct filter_mark *mark,
            struct err *e)
{
    if (filter_parse(text, f, mark, e) && app_takes_filter(a, text, mark, e))
        return true;
    filter_done(f);
    (void)!filter_parse("", f, NULL, &(struct err){0});
    return false;
}

/* Hides columns that say nothing: those whose value the filter fixes, and those that no row can
 * have. */
static void
fit_columns(struct jobs *v)
{
    const struct filter *f = &v->filter;
    bool one = f->terms.value[PARAM_STATES] && !strchr(f->terms.value[PARAM_STATES], ',');

    list_column_show(v->list, JOBS_QUEUE_COLUMN, !f->terms.value[PARAM_QUEUE]);
    list_column_lacks(v->list, "state", one && !f->terms.value[PARAM_IDS]);
}

static void
jobs_init(struct view *view, const char *arg)
{
    struct jobs *v = (struct jobs *)view;
    struct err e;

    v->list = list_new(&jobs_def);
    if (!read_filter(view->app, arg ? arg : "", &v->filter, NULL, &e))
        app_say(view->app, SAY_BAD, "%s", e.text);
    v->home = xstrdup(v->filter.text);
    fit_columns(v);
}

static void
jobs_done(struct view *view)
{
    struct jobs *v = (struct jobs *)view;

    jobs_marks_forget(&v->marks);
    list_free(v->list);
    filter_done(&v->filter);
    page_done(&v->page);
    free(v->kept);
    free(v->home);
    free(v->previewed);
}

static void
jobs_show(struct view *view)
{
    struct jobs *v = (struct jobs *)view;

    if (!is_ours(v))
        store_ask_jobs(view->app->store, &v->filter);
    free(v->previewed);
    v->previewed = NULL;
}

static void
jobs_hide(struct view *view)
{
    struct jobs *v = (struct jobs *)view;

    free(v->kept);
    v->kept = xstrdup(list_selected_id(v->list));
}

static void
jobs_update(struct view *view)
{
    struct jobs *v = (struct jobs *)view;
    struct store *s = view->app->store;
    struct job_look look = {view->app->now_ms, view->app->options.utc};
    struct jobs_place place = store_jobs_place(s);
    const struct filter *f = &v->filter;
    bool when = filter_has_state(f, "running") || filter_has_state(f, "retry") ||
                filter_has_state(f, "scheduled");
    int n = 0;
    const struct job_row *rows = is_ours(v) ? store_jobs(s, &n) : NULL;

    for (int i = 0; rows && i < n; i++)
        if (i == 0 || strcmp(rows[i].kind, rows[i - 1].kind) != 0)
            names_add(&view->app->typed.kinds, rows[i].kind);
    jobs_columns_fit(v->list, rows, rows ? n : 0, app_is_foreign(view->app), when);
    list_set_rows(v->list, rows, rows ? n : 0);
    list_set_more(v->list, rows && !place.at_top, rows && !place.at_end);
    if (v->all) /* rows come and go for hours: their marks must not pile up */
        list_mark_only_shown(v->list);
    if (rows)
        jobs_marks_look(&v->marks, v->list, place.at_top && place.at_end && !place.searching);
    if ((v->anew || !view->touched) && n > 0) {
        list_home(v->list);
        v->anew = false;
    }
    if (v->to_end && place.at_end && n > 0) {
        list_end(v->list);
        v->to_end = false;
    }
    if (v->kept && n > 0) {
        list_select(v->list, v->kept);
        free(v->kept);
        v->kept = NULL;
    }
    jobpage_build(&v->page, s, &look);
}

static bool
is_wide(struct rect r)
{
    return r.w >= WIDE_W && r.h >= WIDE_H;
}

/* Asks for the next page when the cursor is near an end of the window. The preview follows the
 * cursor after a short rest. */
static void
jobs_drawn(struct view *view)
{
    struct jobs *v = (struct jobs *)view;
    struct app *a = view->app;
    int wants = list_wants(v->list);
    const char *id = list_selected_id(v->list);

    if (v->all)
        jobs_marks_forget(&v->marks);
    else
        jobs_marks_remember(&v->marks, v->list);

    if (wants && is_ours(v))
        store_more_jobs(a->store, wants);
    if (!is_wide(app_body(a)) || !*id || (v->previewed && !strcmp(id, v->previewed))) {
        v->preview_ms = 0;
        return;
    }
    if (!v->preview_ms)
        v->preview_ms = clock_ms() + (v->previewed ? PREVIEW_REST_MS : 0);
    if (clock_ms() < v->preview_ms) {
        app_wake(a, v->preview_ms);
        return;
    }
    free(v->previewed);
    v->previewed = xstrdup(id);
    v->preview_ms = 0;
    store_want(a->store, TOPIC_JOB, true);
    store_ask_job(a->store, id);
}

/* --- frame ----------------------------------------------------------------------------------- */

/* The order of the rows, if the adapter names it, and which jobs are not among the rows. */
static void
say_order(const struct jobs *v, struct pen *p)
{
    const struct app *a = v->view.app;
    struct fmt_order by = jobs_say_order(source_adapter(a->source), &v->filter);
    const char *order = by.s, *gap = " ";

    if (!*v->filter.text) {
        pen_put(p, ROLE_DIM, app_is_foreign(a) ? " jobs" : " unfinished jobs");
        gap = ", ";
    } else if (*order) {
        gap = "  · ";
    }
    if (*order && p->r.w > (int)strlen(order) + 4) {
        pen_put(p, ROLE_DIM, gap);
        pen_put(p, ROLE_DIM, order);
    }
}

static void
draw_summary(struct jobs *v, struct grid *g, struct rect r)
{
    struct store *s = v->view.app->store;
    struct jobs_place place = store_jobs_place(s);
    struct buf right = {0};
    int marks;

    list_marks(v->list, &marks);
    jobs_say_place(s, &v->filter, v->list, &right);
    if (place.searching)
        buf_printf(&right, "%s%s looked at", right.len ? " · " : "", fmt_count(place.looked).s);
    if (v->all)
        buf_str(&right, " · all that match marked");
    else if (marks > 0)
        buf_printf(&right, " · %s marked", fmt_count(marks).s);
    buf_str(&right, " ");
    int w = text_width(right.data, right.len, TEXT_LINE);
    grid_right(g, r, v->all || marks ? ROLE_MARK : ROLE_DIM, right.data);
    r.w -= w + 1;
    struct pen p = pen_start(g, r);
    if (*v->filter.text) {
        pen_put(&p, ROLE_DIM, " filter ");
        pen_put(&p, ROLE_STRONG, v->filter.text);
    }
    say_order(v, &p);
    buf_free(&right);
}

static void
draw_preview(struct jobs *v, struct grid *g, struct rect r)
{
    struct app *a = v->view.app;
    const struct job_detail *j = store_job(a->store);
    const char *id = list_selected_id(v->list);
    struct job_look look = {a->now_ms, a->options.utc};
    char title[100];

    snprintf(title, sizeof title, "job %s  (preview; Enter: full screen)", fmt_id_tail(id).s);
    struct rect in = grid_panel(g, r, title, false);
    if (!j || strcmp(j->job.id, id) != 0)
        return;
    jobpage_head(g, rect_cut_top(&in, 4), j, &look);
    v->page.top = 0;
    page_draw(&v->page, g, rect_inset(in, 1, 0));
}

/* Why there is no row. Only after the server has looked at all jobs does the text say that there is
 * none. */
static const char *
why_empty(const struct jobs *v)
{
    struct app *a = v->view.app;
    struct jobs_place place = store_jobs_place(a->store);
    const struct topic_info *t = store_topic(a->store, TOPIC_JOBS);
    const char *queue = v->filter.terms.value[PARAM_QUEUE];
    const char *what = filter_reads_payloads(&v->filter) ? "payloads" : "jobs";

    if (t->err.kind == ERR_TIMEOUT)
        return arena_printf(a->frame, "looking at these %s took too long: fewer at a time ...",
                            what);
    if (!is_ours(v) || !t->has_data)
        return "asking ...";
    if (place.searching && !place.waits)
        return arena_printf(a->frame, "none among %s %s: looking on ...", fmt_count(place.looked).s,
                            what);
    if (place.searching)
        return arena_printf(a->frame, "none among %s %s; PgDn looks at more",
                            fmt_count(place.looked).s, what);
    if (queue && store_totals(a->store) && !store_queue(a->store, queue))
        return arena_printf(a->frame, "no job matches; no queue is called %s", queue);
    return app_none(a, *v->filter.text ? "no job matches" : "no job yet");
}

static void
jobs_draw(struct view *view, struct grid *g, struct rect r)
{
    struct jobs *v = (struct jobs *)view;
    struct app *a = view->app;
    bool wide = is_wide(r);
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_JOBS),
                             .old_ms = store_age_ms(a->store, TOPIC_JOBS),
                             .unfocused = v->strip.focus,
                             .empty = why_empty(v)};

    draw_summary(v, g, rect_cut_top(&r, 1));
    struct rect strip = rect_cut_top(&r, r.h > LEAST_H ? 1 : 0);
    if (wide) {
        draw_preview(v, g, rect_cut_bottom(&r, r.h - (r.h > 60 ? r.h / 2 : 17)));
        rect_cut_bottom(&r, 1);
    }
    list_draw(v->list, g, r, &look);
    v->strip.listed = list_count(v->list);
    jobs_strip_draw(&v->strip, a->store, source_adapter(a->source), &v->filter, g, strip);
}

/* The acts that are possible for the marked jobs, by their states. */
static void
say_marked(const struct jobs *v, int marks, struct buf *out)
{
    static const struct {
        const char *act, *states[5];
    } acts[] = {
        {"requeue", {"failed", "retry", "scheduled", "completed", "cancelled"}},
        {"cancel",  {"running", "retry", "scheduled", "ready", "blocked"}     },
        {"extend",  {"running"}                                               },
        {"discard", {"failed"}                                                },
    };

    buf_printf(out, "%s marked:", fmt_count(marks).s);
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        const struct command *c = command_named(IN_JOBS, acts[i].act);
        bool fits = false;
        for (int k = 0; k < 5 && acts[i].states[k]; k++)
            fits = fits || jobs_marks_have(&v->marks, v->list, acts[i].states[k]);
        if (c && fits && !app_why_not(v->view.app, c))
            buf_printf(out, " %s %s ·", command_key(c).s, c->name);
    }
    buf_str(out, " Esc clears the marks");
}

static bool
jobs_remark(struct view *view, struct buf *out)
{
    struct jobs *v = (struct jobs *)view;
    struct jobs_place place = store_jobs_place(view->app->store);
    int marks, n = list_count(v->list);

    list_marks(v->list, &marks);
    if (place.waits && n > 0 && list_index(v->list) == n - 1)
        buf_printf(out, "%s looked at; PgDn looks at more", fmt_count(place.looked).s);
    else if (v->all)
        buf_str(out, "all that match are marked: r requeues them · U unmarks");
    else if (v->marks.left || v->marks.moved)
        buf_printf(out, "of %s marked %d left the list, %d came into another state · Esc clears",
                   fmt_count(marks).s, v->marks.left, v->marks.moved);
    else if (marks > 0)
        say_marked(v, marks, out);
    else if (view->ops->home && !strcmp(v->filter.text, view->ops->home))
        buf_str(out,
                view->ops == &view_failed_jobs
                    ? "the reasons of failures are not recorded here: these are the failed jobs"
                    : "the workers are not recorded here: these are the running jobs");
    return false;
}

static void
jobs_crumb(struct view *view, struct buf *out)
{
    const struct params *p = &((struct jobs *)view)->filter.terms;
    static const enum param steps[] = {PARAM_QUEUE, PARAM_NODE, PARAM_KIND, PARAM_ERROR};

    crumb_add(out, p->value[PARAM_ERROR] ? "failed" : "jobs");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (p->value[steps[i]])
            crumb_add(out, p->value[steps[i]]);
}

/* --- commands -------------------------------------------------------------------------------- */

static struct list *
jobs_list(struct view *view)
{
    return ((struct jobs *)view)->list;
}

static void
jobs_move(struct view *view, enum move m)
{
    struct jobs *v = (struct jobs *)view;

    struct store *s = view->app->store;
    bool last = list_index(v->list) == list_count(v->list) - 1;

    if (m == MOVE_LEFT || m == MOVE_RIGHT) {
        jobs_strip_step(&v->strip, source_adapter(view->app->source), &v->filter,
                        m == MOVE_LEFT ? -1 : 1);
        return;
    }
    v->strip.focus = false;
    v->to_end = false;
    if (!is_ours(v))
        return;
    if (m == MOVE_HOME && !store_jobs_place(s).at_top)
        store_top_jobs(s);
    if (m == MOVE_END)
        v->to_end = store_end_jobs(s);
    if ((m == MOVE_DOWN || m == MOVE_HALF_DOWN || m == MOVE_PAGE_DOWN || m == MOVE_END) && last)
        store_look_on(s);
}

static void
jobs_unmark(struct view *view)
{
    struct jobs *v = (struct jobs *)view;

    v->all = false;
    list_unmark_all(v->list);
}

static void
jobs_mark_all(struct view *view)
{
    struct jobs *v = (struct jobs *)view;

    v->all = true;
    list_mark_shown(v->list);
}

/* A row that loses its mark is not meant any more, so not all that match are. The rows that have
 * been read keep their marks. */
static void
jobs_before_mark(struct view *view)
{
    struct jobs *v = (struct jobs *)view;
    struct jobs_place place = store_jobs_place(view->app->store);

    if (v->all && !(place.at_top && place.at_end))
        app_say(view->app, SAY_WARN, "only the rows that were read are marked now, not all");
    v->all = false;
}

static const char *
jobs_filter(struct view *view)
{
    return ((struct jobs *)view)->filter.text;
}

static bool
jobs_set_filter(struct view *view, const char *text, struct filter_mark *mark, struct err *e)
{
    struct jobs *v = (struct jobs *)view;
    struct filter f;

    if (!read_filter(view->app, text, &f, mark, e)) {
        filter_done(&f);
        return false;
    }
    if (!strcmp(f.text, v->filter.text)) {
        filter_done(&f);
        return true;
    }
    filter_done(&v->filter);
    v->filter = f;
    if (v->all)
        jobs_unmark(view);
    v->anew = true;
    fit_columns(v);
    store_ask_jobs(view->app->store, &v->filter);
    jobs_update(view);
    return true;
}

/* Enter on the strip of states: shows the jobs of that state. */
static void
choose_state(struct jobs *v)
{
    struct err e;
    char *text = filter_with(v->filter.text, "state", jobs_strip_state(&v->strip));

    v->strip.focus = false;
    if (!jobs_set_filter(&v->view, text, NULL, &e))
        app_say(v->view.app, SAY_BAD, "%s", e.text);
    free(text);
}

static void
jobs_open(struct view *view)
{
    struct jobs *v = (struct jobs *)view;

    if (v->strip.focus) {
        choose_state(v);
        return;
    }
    char *id = xstrdup(list_selected_id(v->list));
    app_push(view->app, "job", id);
    free(id);
}

static bool
jobs_beside(struct view *view)
{
    return ((struct jobs *)view)->strip.focus;
}

static bool
jobs_back(struct view *view)
{
    struct jobs *v = (struct jobs *)view;
    struct err e;
    int marks;

    if (v->strip.focus) {
        v->strip.focus = false;
        return true;
    }
    list_marks(v->list, &marks);
    if (v->all || marks > 0) {
        jobs_unmark(view);
        return true;
    }
    return strcmp(v->filter.text, v->home) != 0 && jobs_set_filter(view, v->home, NULL, &e);
}

static void
jobs_target(struct view *view, struct target *t)
{
    struct jobs *v = (struct jobs *)view;
    const struct job_row *j = list_selected(v->list);
    int marks;

    t->where = &v->filter.terms;
    list_marks(v->list, &marks);
    if (!j && marks == 0 && !v->all)
        return;
    t->kind = TARGET_JOBS;
    t->queue = j ? j->queue : NULL;
    t->all = v->all;
    t->moved = v->marks.moved;
    t->left = v->marks.left;
    t->ids = list_targets(v->list, &t->nids);
    t->name = t->nids == 1 && !t->all ? t->ids[0] : "marked jobs";
    t->state = t->nids == 1 && j && !strcmp(t->ids[0], j->id) ? j->state : "";
    if (t->nids > 1 && !t->all)
        t->states = jobs_marks_states(&v->marks, v->list, view->app->frame);
}

static void
jobs_sql(struct view *view, struct buf *out)
{
    struct jobs *v = (struct jobs *)view;
    char *text = adapter_show(source_adapter(view->app->source), SEC_JOBS, &v->filter.terms);

    buf_str(out, text);
    free(text);
}

static const char *
jobs_copy(struct view *view)
{
    return list_selected_id(((struct jobs *)view)->list);
}

#define JOBS_OPS                                                                                 \
    .opens = "job", .scope = IN_JOBS, .topics = TOPIC_BIT(TOPIC_JOBS) | TOPIC_BIT(TOPIC_QUEUES), \
    .fixed_order = true, .size = sizeof(struct jobs), .init = jobs_init, .done = jobs_done,      \
    .show = jobs_show, .hide = jobs_hide, .update = jobs_update, .draw = jobs_draw,              \
    .drawn = jobs_drawn, .list = jobs_list, .move = jobs_move, .open = jobs_open,                \
    .beside = jobs_beside, .back = jobs_back, .target = jobs_target, .crumb = jobs_crumb,        \
    .remark = jobs_remark, .filter = jobs_filter, .set_filter = jobs_set_filter,                 \
    .mark_all = jobs_mark_all, .before_mark = jobs_before_mark, .unmark = jobs_unmark,           \
    .sql = jobs_sql, .copy = jobs_copy

const struct view_ops view_jobs = {
    .name = "jobs", .title = "Jobs", .screen = 2, .tab = 2, JOBS_OPS};
/* What stands on Failed and Nodes if the queue system keeps no errors or no names of workers. */
const struct view_ops view_failed_jobs = {
    .name = "failed", .title = "Failed", .screen = 3, .tab = 3, .home = "state:failed", JOBS_OPS};
const struct view_ops view_running_jobs = {
    .name = "nodes", .title = "Nodes", .screen = 4, .tab = 4, .home = "state:running", JOBS_OPS};
