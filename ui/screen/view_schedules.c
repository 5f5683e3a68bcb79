/*
 * Schedules: the jobs that the scheduler pushes by the clock; below, the last runs of the selected
 * one, with the reason for a run that was not pushed, and the next times. The times of a run are in
 * the schedule's time zone, as the server writes them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/facts/life.h"
#include "ui/facts/schedule_columns.h"
#include "ui/facts/verdict.h"
#include "ui/screen/views.h"

struct schedules {
    struct table_view table;
    struct list *runs;
    struct run_line *rows;
    int nrows;
    char *asked; /* what `runs` was asked for: name, line, zone, state */
};

enum {
    OTHER_FROM = 13,
    CLOCKS_MS = 1000, /* clocks may differ by this much without a remark */
    OLD_RUNS_MS = 10000,
    NEXT_W = 26,
    NEXT_WIDE = 40,
    SPLIT_FROM = 72,
    WIDE_FROM = 110
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
row_matches(void *ctx, const void *row)
{
    const struct schedules *v = ctx;
    const struct schedule_row *s = row;

    return words_match(v->table.filter,
                       (const char *const[]){s->name, s->cron, s->tz, s->queue, s->kind, s->state,
                                             s->last_outcome, s->comment, NULL});
}

static void
schedules_init(struct view *view, const char *arg)
{
    struct schedules *v = (struct schedules *)view;

    (void)arg;
    v->asked = xstrdup("");
    table_init(view, &schedule_list, row_matches);
    v->runs = list_new(&run_list);
    v->table.other = v->runs;
    v->table.other_from = OTHER_FROM;
}

static void
drop_rows(struct schedules *v)
{
    for (int i = 0; i < v->nrows; i++)
        free(v->rows[i].id);
    v->nrows = 0;
}

static void
schedules_done(struct view *view)
{
    struct schedules *v = (struct schedules *)view;

    table_done(view);
    list_free(v->runs);
    drop_rows(v);
    free(v->rows);
    free(v->asked);
}

static char *
question(const struct schedule_row *s)
{
    return s ? xasprintf("%s\n%s\n%s\n%d", s->name, s->cron, s->tz, !strcmp(s->state, "failed"))
             : xstrdup("");
}

/* Asks for the runs again if another schedule is selected or the selected one has changed. */
static void
schedules_drawn(struct view *view)
{
    struct schedules *v = (struct schedules *)view;
    const struct schedule_row *s = list_selected(v->table.list);
    char *now = question(s);

    if (!strcmp(now, v->asked)) {
        free(now);
        return;
    }
    free(v->asked);
    v->asked = now;
    drop_rows(v);
    list_set_rows(v->runs, NULL, 0);
    store_want(view->app->store, TOPIC_RUNS, s != NULL);
    if (s)
        store_ask_runs(view->app->store, s);
}

static void
schedules_show(struct view *view)
{
    struct schedules *v = (struct schedules *)view;

    free(v->asked);
    v->asked = xstrdup("");
    store_want(view->app->store, TOPIC_RUNS, false);
}

/* Whether the store's runs are those of the selected schedule in its present form. */
static bool
runs_fit(const struct schedules *v)
{
    char *now = question(list_selected(v->table.list));
    bool same = *now && !strcmp(now, v->asked);

    free(now);
    return same && store_topic(v->table.view.app->store, TOPIC_RUNS)->has_data;
}

static void
schedules_update(struct view *view)
{
    struct schedules *v = (struct schedules *)view;
    struct store *s = view->app->store;
    int n, nr;
    const struct schedule_row *rows = store_schedules(s, &n);

    list_set_rows(v->table.list, rows, n);
    const struct schedule_row *of = list_selected(v->table.list);
    const struct run_row *r = store_runs(s, &nr);
    drop_rows(v);
    if (!runs_fit(v))
        nr = 0;
    v->rows = xreallocarray(v->rows, (size_t)nr + 1, sizeof *v->rows);
    for (int i = 0; i < nr; i++) {
        v->rows[i] = (struct run_line){r[i], xasprintf("%lld", (long long)r[i].due_ms)};
        v->rows[i].r.outcome = schedule_outcome(of, r[i].outcome);
    }
    v->nrows = nr;
    list_set_rows(v->runs, v->rows, v->nrows);
}

/* --- frame ----------------------------------------------------------------------------------- */

/* "8 schedules, 1 broken or late, last run of 2 failed, 1 paused". */
static void
say_states(const struct app *a, struct pen *p)
{
    int n, paused = 0, broken = 0, failed = 0;
    const struct schedule_row *s = store_schedules(a->store, &n);

    if (!store_topic(a->store, TOPIC_SCHEDULES)->has_data)
        return;
    for (int i = 0; i < n; i++) {
        enum verdict v = verdict_of_schedule(&s[i], a->now_ms);
        paused += !strcmp(s[i].state, "paused");
        broken += v == VERDICT_BAD;
        failed += v == VERDICT_WARN;
    }
    pen_printf(p, ROLE_TEXT, " %s", fmt_plural(n, "schedule").s);
    if (broken > 0)
        pen_printf(p, ROLE_BAD, ", %d broken or late", broken);
    if (failed > 0)
        pen_printf(p, ROLE_WARN, ", last run of %d failed", failed);
    if (paused > 0)
        pen_printf(p, ROLE_DIM, ", %d paused", paused);
}

/* All times are those of the server. The line shows both clocks only if they differ. */
static void
draw_summary(struct schedules *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    struct pen p = pen_start(g, r);
    int64_t server = store_now_ms(a->store), ahead = clock_wall_ms() - server;

    say_states(a, &p);
    if (!a->clock.stands && server != 0 && (ahead <= -CLOCKS_MS || ahead >= CLOCKS_MS))
        pen_printf(&p, ROLE_WARN, " · server clock %s%s, yours is %s %s",
                   fmt_time(a->now_ms, a->options.utc).s, a->options.utc ? " UTC" : "",
                   fmt_duration(ahead < 0 ? -ahead : ahead).s, ahead < 0 ? "behind" : "ahead");
    if (*v->table.filter) {
        pen_put(&p, ROLE_DIM, " filter ");
        pen_put(&p, ROLE_STRONG, v->table.filter);
    }
}

static const char *
policy(const struct schedule_row *s)
{
    if (!strcmp(s->catch_up, "none"))
        return "after a stop: missed runs are not made up";
    if (!strcmp(s->catch_up, "latest"))
        return "after a stop: the latest missed run is made up";
    return !strcmp(s->catch_up, "all") ? "after a stop: all missed runs are made up" : "";
}

/* The next times in one line, if there is no room for a box. */
static void
draw_next_line(struct schedules *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    struct pen p = pen_start(g, r);
    char text[64];
    int n;
    const struct run_row *next = store_next_runs(a->store, &n);

    pen_put(&p, ROLE_DIM, "next ");
    for (int i = 0; i < n && p.r.w >= 17; i++) {
        schedule_due(next[i].due, a->now_ms, text, sizeof text);
        pen_printf(&p, ROLE_TEXT, "%s%s", i ? ", " : "", text);
    }
    if (n == 0)
        pen_put(&p, ROLE_DIM, "none");
}

static void
draw_next_box(struct schedules *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    const struct schedule_row *s = list_selected(v->table.list);
    bool paused = !strcmp(s->state, "paused");
    struct rect in = grid_panel(g, r, paused ? "next, once resumed" : "next ten times", false);
    char text[64];
    int n;
    const struct run_row *next = store_next_runs(a->store, &n);

    if (!runs_fit(v)) {
        grid_str(g, in, ROLE_DIM, "asking ...");
        return;
    }
    for (int i = 0; i < n && i < in.h; i++) {
        struct rect row = rect_row(in, i);
        schedule_due(next[i].due, a->now_ms, text, sizeof text);
        rect_cut_left(&row, grid_str(g, row, paused ? ROLE_DIM : ROLE_TEXT, text) + 1);
        if (!paused)
            grid_right(g, row, ROLE_DIM, fmt_age(next[i].due_ms - a->now_ms).s);
    }
    if (n == 0)
        grid_str(g, in, ROLE_DIM, "none");
}

static void
draw_runs(struct schedules *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    const struct schedule_row *s = list_selected(v->table.list);
    const struct topic_info *t = store_topic(a->store, TOPIC_RUNS);
    bool split = r.w >= SPLIT_FROM;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .unfocused = !v->table.on_other,
                             .stale = store_is_stale(a->store, TOPIC_RUNS),
                             .empty = "no run yet"};

    if (!s || r.h < 4)
        return;
    if (split)
        draw_next_box(v, g, rect_cut_right(&r, r.w >= WIDE_FROM ? NEXT_WIDE : NEXT_W));
    int64_t age = store_age_ms(a->store, TOPIC_RUNS);
    const char *title =
        arena_printf(a->frame, "%s%s: last runs, %s%s%s%s", v->table.on_other ? "› " : "", s->name,
                     s->tz, age > OLD_RUNS_MS ? ", " : "", age > OLD_RUNS_MS ? fmt_age(age).s : "",
                     age > OLD_RUNS_MS ? " ago" : "");
    struct rect in = grid_panel(g, r, title, false);
    struct pen p = pen_start(g, rect_cut_bottom(&in, in.h > 4 ? 1 : 0));
    pen_put(&p, ROLE_DIM, policy(s));
    pen_put(&p, ROLE_DIM, s->unique == 1 ? "; one at a time" : "");
    if (!split && in.h > 3)
        draw_next_line(v, g, rect_cut_bottom(&in, 1));
    if (t->err.kind != ERR_NONE)
        look.empty = t->err.text;
    else if (t->unavailable)
        look.empty = app_unavailable(a, TOPIC_RUNS);
    else if (!runs_fit(v))
        look.empty = "asking ...";
    list_draw(v->runs, g, in, &look);
}

static void
schedules_draw(struct view *view, struct grid *g, struct rect r)
{
    struct schedules *v = (struct schedules *)view;
    struct app *a = view->app;
    const struct topic_info *t = store_topic(a->store, TOPIC_SCHEDULES);
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_SCHEDULES),
                             .old_ms = store_age_ms(a->store, TOPIC_SCHEDULES),
                             .unfocused = v->table.on_other,
                             .empty = "no schedule: N adds one"};

    if (t->unavailable)
        look.empty = app_unavailable(a, TOPIC_SCHEDULES);
    else if (!t->has_data)
        look.empty = "asking ...";
    else if (*v->table.filter)
        look.empty = "no schedule has these words";
    else if (app_is_foreign(a))
        look.empty = "no schedule";
    draw_summary(v, g, rect_cut_top(&r, 1));
    if (table_has_other(view))
        draw_runs(v, g, rect_cut_bottom(&r, r.h / 2));
    list_draw(v->table.list, g, r, &look);
}

static bool
say_no_scheduler(struct app *a, struct buf *out)
{
    struct trouble t[TROUBLES_MAX];
    int n = life_of_store(a->store, a->now_ms, a->frame, t);

    for (int i = 0; i < n; i++)
        if (t[i].id == COND_SCHEDULER)
            buf_printf(out, "%s: %s", t[i].where, t[i].what);
    return out->len > 0;
}

/* "report.daily: its queue is paused by alice: 3 jobs wait". */
static void
say_paused_queue(const struct app *a, const struct schedule_row *s, struct buf *out)
{
    const struct queue_row *q = store_queue(a->store, s->queue);
    bool other = strcmp(s->queue, s->name) != 0;

    buf_printf(out, "%s: its queue%s%s is paused%s%s", s->name, other ? " " : "",
               other ? s->queue : "", *s->queue_paused_by ? " by " : "", s->queue_paused_by);
    if (q && q->ready != FIELD_NULL && q->ready > 0)
        buf_printf(out, ": %s wait%s", fmt_plural(q->ready, "job").s, q->ready == 1 ? "s" : "");
}

/* The worst trouble of the selected schedule. A pause is no trouble, because somebody has decided
 * it. */
static bool
schedules_remark(struct view *view, struct buf *out)
{
    const struct schedule_row *s = list_selected(table_list(view));

    if (say_no_scheduler(view->app, out))
        return true;
    if (!s)
        return false;
    const char *outcome = schedule_outcome(s, s->last_outcome);
    if (*s->error)
        buf_printf(out, "%s could not push: %s", s->name, s->error);
    else if (!strcmp(outcome, "failed"))
        buf_printf(out, "%s: the job of its last run failed: %s", s->name,
                   *s->last_error ? s->last_error : "no error text was given");
    else if (s->queue_paused == 1)
        say_paused_queue(view->app, s, out);
    else if (s->missed > 0)
        buf_printf(out, "%s missed %s of its last runs: the list above says why", s->name,
                   fmt_count(s->missed).s);
    else if (!strcmp(s->state, "paused"))
        buf_printf(out, "%s is paused%s%s%s%s", s->name, *s->paused_by ? " by " : "", s->paused_by,
                   *s->pause_reason ? ": " : "", s->pause_reason);
    else
        buf_str(out, s->comment);
    return *s->error || !strcmp(outcome, "failed");
}

static void
schedules_crumb(struct view *view, struct buf *out)
{
    table_crumb(view, "schedules", out);
}

/* --- commands -------------------------------------------------------------------------------- */

static void
open_run(struct app *a, const struct run_line *run)
{
    if (*run->r.job)
        app_push(a, "job", run->r.job);
    else
        app_say(a, SAY_INFO, "no job of its own: this run was missed, or its job is gone");
}

static void
schedules_open(struct view *view)
{
    const struct schedule_row *s = list_selected(table_list(view));

    if (!s)
        return;
    if (table_focus(view) != table_list(view)) {
        open_run(view->app, list_selected(table_focus(view)));
        return;
    }
    char *text = filter_with("", "queue", s->queue);
    app_push_jobs(view->app, text);
    free(text);
}

static void
schedules_target(struct view *view, struct target *t)
{
    const struct schedule_row *s = list_selected(table_list(view));

    if (!s)
        return;
    t->kind = TARGET_SCHEDULE;
    t->name = s->name;
    t->state = s->state;
    t->paused = !strcmp(s->state, "paused");
}

static void
schedules_sql(struct view *view, struct buf *out)
{
    static const enum section_id sections[] = {SEC_SCHEDULES, SEC_CRON_RUNS, SEC_CRON_NEXT};
    static const char *const names[] = {"schedules", "last runs", "next runs"};
    struct adapter *ad = source_adapter(view->app->source);

    for (int i = 0; i < 3; i++)
        if (adapter_has(ad, sections[i]))
            buf_printf(out, "%s-- %s\n%s\n", i ? "\n" : "", names[i], adapter_sql(ad, sections[i]));
}

const struct view_ops view_schedules = {
    .name = "schedules",
    .title = "Sched",
    .screen = 5,
    .tab = 5,
    .scope = IN_SCHEDULES,
    .topics = TOPIC_BIT(TOPIC_SCHEDULES),
    .size = sizeof(struct schedules),
    .init = schedules_init,
    .done = schedules_done,
    .show = schedules_show,
    .update = schedules_update,
    .draw = schedules_draw,
    .drawn = schedules_drawn,
    .list = table_list,
    .focus = table_focus,
    .pane = table_pane,
    .open = schedules_open,
    .back = table_back,
    .target = schedules_target,
    .crumb = schedules_crumb,
    .remark = schedules_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .sql = schedules_sql,
    .copy = table_copy,
};
