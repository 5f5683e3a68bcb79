/*
 * Schedules: the jobs that are pushed by the clock; below, the last runs of the selected one with
 * the reason where one did not run, and its next times. The clock of a run is that of the
 * schedule's zone, as the server writes it.
 */
#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/clock.h"
#include "ui/app.h"
#include "ui/table_view.h"
#include "ui/views.h"
#include "ui/words.h"

struct run_line {
    struct run_row r;
    char *id;
};

struct schedules {
    struct table_view table;
    struct list *runs;
    struct run_line *rows;
    int nrows;
    char *asked; /* what the runs were asked for: name, line, zone, state */
};

enum { NEXT_W = 26, NEXT_WIDE = 40, SPLIT_FROM = 72, WIDE_FROM = 110 };

/* --- words ----------------------------------------------------------------------------------- */

/* A job that waits in a paused queue is held, whatever its state is called. */
static const char *
outcome_of(const struct schedule_row *s, const char *outcome)
{
    bool waits =
        !strcmp(outcome, "ready") || !strcmp(outcome, "scheduled") || !strcmp(outcome, "blocked");

    return waits && s->queue_paused == 1 ? "held" : outcome;
}

/* "Fri 2026-11-20 06:00:00" without the year of today and seconds that are none. */
static void
short_due(const char *due, int64_t now_ms, char *out, size_t size)
{
    struct fmt now = fmt_iso(now_ms);
    size_t len = strlen(due);
    bool known = len == 23 && due[3] == ' ' && due[8] == '-' && due[20] == ':';

    if (!known) {
        snprintf(out, size, "%.40s", due);
        return;
    }
    if (!strcmp(due + 20, ":00"))
        len -= 3;
    if (!strncmp(due + 4, now.s, 5))
        snprintf(out, size, "%.4s%.*s", due, (int)len - 9, due + 9);
    else
        snprintf(out, size, "%.*s", (int)len, due);
}

/* --- columns --------------------------------------------------------------------------------- */

#define F(f) offsetof(struct schedule_row, f)
#define R(f) offsetof(struct run_line, r.f)

static void
draw_last(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct schedule_row *s = row;
    const char *outcome = outcome_of(s, s->last_outcome);

    if (s->last_run_ms == FIELD_NULL) {
        grid_str(g, r, ROLE_DIM, "—");
        return;
    }
    grid_printf(g, r, state_role(outcome), "%s %s", state_glyph(outcome),
                fmt_when(s->last_run_ms, c->now_ms, c->utc).s);
}

/* Rather "Berlin" than "Europe/Be…". */
static void
draw_zone(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const char *zone = ((const struct schedule_row *)row)->tz, *city = strrchr(zone, '/');

    (void)c;
    grid_str(g, r, ROLE_TEXT, city && (int)strlen(zone) > r.w ? city + 1 : zone);
}

static void
draw_outcome(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct schedule_row *s = row;
    const char *outcome = outcome_of(s, s->last_outcome);

    (void)c;
    grid_str(g, r, state_role(outcome), outcome);
}

static void
draw_next(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct schedule_row *s = row;

    if (s->next_run_ms == FIELD_NULL)
        grid_right(g, r, strcmp(s->state, "failed") ? ROLE_WARN : ROLE_BAD,
                   strcmp(s->state, "failed") ? s->state : "never");
    else if (s->next_run_ms <= c->now_ms)
        grid_right(g, r, c->now_ms - s->next_run_ms > 60000 ? ROLE_BAD : ROLE_TEXT,
                   c->now_ms - s->next_run_ms > 60000 ? "overdue" : "now");
    else
        grid_right(g, r, ROLE_TEXT, fmt_age(s->next_run_ms - c->now_ms).s);
}

static enum role
role_of_missed(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return ((const struct schedule_row *)row)->missed > 0 ? ROLE_WARN : ROLE_TEXT;
}

static void
draw_run(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    char text[64];

    short_due(((const struct run_line *)row)->r.due, c->now_ms, text, sizeof text);
    size_t len = strlen(text);
    if ((int)len > r.w && len > 3 && text[len - 3] == ':') /* rather without the seconds */
        text[len - 3] = 0;
    grid_str(g, r, ROLE_TEXT, text);
}

/* How long it took, and why it failed or was not pushed. */
static void
draw_took(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct run_row *run = &((const struct run_line *)row)->r;
    struct pen p = pen_start(g, r);

    (void)c;
    if (run->took_ms != FIELD_NULL)
        pen_printf(&p, ROLE_TEXT, "%s%s", fmt_duration(run->took_ms).s, *run->error ? "  " : "");
    pen_put(&p, state_role(run->outcome), run->error);
}

static const struct column_special last_special = {draw_last, NULL, K_BIG, false};
static const struct column_special zone_special = {draw_zone, NULL, K_TEXT, false};
static const struct column_special outcome_special = {draw_outcome, NULL, K_TEXT, false};
static const struct column_special next_special = {draw_next, NULL, K_BIG, true};
static const struct column_special missed_special = {NULL, role_of_missed, K_CUSTOM, false};
static const struct column_special run_special = {draw_run, NULL, K_CUSTOM, false};
static const struct column_special took_special = {draw_took, NULL, K_CUSTOM, false};

/* clang-format off */
static const struct column columns[] = {
    {"name", "NAME", "Name of the schedule", K_TEXT, F(name), 12, 26, 0, NULL},
    {"cron", "CRON", "When: minute hour day month weekday", K_TEXT, F(cron), 11, 20, 0, NULL},
    {"tz", "ZONE", "By the clock of this time zone", K_CUSTOM, F(tz), 8, 20, 3,
     &zone_special},
    {"queue", "QUEUE", "Where its jobs go", K_TEXT, F(queue), 12, 24, 9, NULL},
    {"last", "LAST", "Time of the last run, and what became of its job", K_CUSTOM, F(last_run_ms), 13,
     13, 0, &last_special},
    {"outcome", "OUTCOME", "What became of the job of the last run", K_CUSTOM, F(last_outcome), 10, 10,
     11, &outcome_special},
    {"took", "TOOK", "How long that job ran", K_DURATION, F(last_took_ms), 7, 7, 5, NULL},
    {"next", "NEXT IN", "Time until the next run", K_CUSTOM, F(next_run_ms), 7, 7, 0, &next_special},
    {"missed", "MISSED", "Of its last runs (100) those without a job of their own", K_COUNT, F(missed),
     6, 6, 4, &missed_special},
    {"state", "STATE", "active, paused, or failed: it can't push", K_STATE, F(state), 8, 8, 100, NULL},
    {"kind", "KIND", "What sort of job it is", K_TEXT, F(kind), 8, 16, 20, NULL},
    {"catch_up", "CATCH UP", "Which of the runs that were missed follow later", K_TEXT, F(catch_up), 8, 8,
     21, NULL},
    {"comment", "COMMENT", "A note", K_NOTE, F(comment), 10, 0, 22, NULL},
};
static const struct column run_columns[] = {
    {"outcome", "OUTCOME", "What became of the job", K_STATE, R(outcome), 12, 12, 0, NULL},
    {"run", "RUN", "The time it was for, by the schedule's clock", K_CUSTOM, R(due), 15, 20, 0,
     &run_special},
    {"job", "JOB", "Its id", K_UUID, R(job), 8, 8, 9, NULL},
    {"took", "TOOK, OR WHY NOT", "How long it ran, or why it failed", K_CUSTOM, R(error), 12, 0, 0,
     &took_special},
};
/* clang-format on */

/* A glyph where the schedule itself does not push. */
static struct lead
lead_of(const void *row, const struct cell_ctx *c)
{
    const struct schedule_row *s = row;

    (void)c;
    if (!strcmp(s->state, "active"))
        return (struct lead){NULL, ROLE_TEXT};
    return (struct lead){state_glyph(s->state), state_role(s->state)};
}

static const struct list_def list_of_schedules = {
    .columns = columns,
    .ncolumns = (int)(sizeof columns / sizeof *columns),
    .row_size = sizeof(struct schedule_row),
    .id_offset = F(name),
    .sort = "name",
    .lead = lead_of,
};
static const struct list_def list_of_runs = {
    .columns = run_columns,
    .ncolumns = (int)(sizeof run_columns / sizeof *run_columns),
    .row_size = sizeof(struct run_line),
    .id_offset = offsetof(struct run_line, id),
    .server_order = true,
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
keep(void *ctx, const void *row)
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
    table_init(view, &list_of_schedules, keep);
    v->runs = list_new(&list_of_runs);
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

/* The runs follow the selected schedule, and what it says. */
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

/* The runs in the store are those of the selected schedule, as it is now. */
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
        v->rows[i].r.outcome = outcome_of(of, r[i].outcome);
    }
    v->nrows = nr;
    list_set_rows(v->runs, v->rows, v->nrows);
}

/* --- frame ----------------------------------------------------------------------------------- */

static void
draw_summary(struct schedules *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    struct pen p = pen_start(g, r);
    int64_t server = store_now_ms(a->store), ahead = clock_wall_ms() - server;

    pen_put(&p, ROLE_DIM, " server clock ");
    pen_printf(&p, ROLE_STRONG, "%s%s", fmt_time(a->now_ms, a->options.utc).s,
               a->options.utc ? " UTC" : "");
    pen_put(&p, ROLE_DIM, " · yours ");
    if (a->clock_stands || server == 0 || (ahead > -500 && ahead < 500))
        pen_put(&p, ROLE_STRONG, "the same");
    else
        pen_printf(&p, ROLE_WARN, "%s %s", fmt_duration(ahead < 0 ? -ahead : ahead).s,
                   ahead < 0 ? "behind" : "ahead");
    if (*v->table.filter) {
        pen_put(&p, ROLE_DIM, " filter ");
        pen_put(&p, ROLE_STRONG, v->table.filter);
    }
}

static const char *
policy(const struct schedule_row *s)
{
    if (!strcmp(s->catch_up, "none"))
        return "missed runs: none is made up for";
    if (!strcmp(s->catch_up, "latest"))
        return "missed runs: the latest is made up for";
    return !strcmp(s->catch_up, "all") ? "missed runs: all are made up for" : "";
}

/* Where there is no room for a box of them: the next times in one line. */
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
        short_due(next[i].due, a->now_ms, text, sizeof text);
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
    struct rect in = rect_inset(
        grid_box(g, r, ROLE_BORDER, paused ? "next, once resumed" : "next ten times"), 1, 0);
    char text[64];
    int n;
    const struct run_row *next = store_next_runs(a->store, &n);

    if (!runs_fit(v)) {
        grid_str(g, in, ROLE_DIM, "asking ...");
        return;
    }
    for (int i = 0; i < n && i < in.h; i++) {
        struct rect row = rect_row(in, i);
        short_due(next[i].due, a->now_ms, text, sizeof text);
        rect_cut_left(&row, grid_str(g, row, paused ? ROLE_DIM : ROLE_TEXT, text) + 1);
        if (!paused)
            grid_right(g, row, ROLE_DIM, fmt_age_short(next[i].due_ms - a->now_ms).s);
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
    char title[300];
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .unfocused = true,
                             .stale = store_is_stale(a->store, TOPIC_RUNS),
                             .empty = "no run yet"};

    if (!s || r.h < 4)
        return;
    if (split)
        draw_next_box(v, g, rect_cut_right(&r, r.w >= WIDE_FROM ? NEXT_WIDE : NEXT_W));
    snprintf(title, sizeof title, "%.100s: last runs, %.60s", s->name, s->tz);
    struct rect in = rect_inset(grid_box(g, r, ROLE_BORDER, title), 1, 0);
    struct pen p = pen_start(g, rect_cut_bottom(&in, in.h > 4 ? 1 : 0));
    pen_put(&p, ROLE_DIM, policy(s));
    pen_put(&p, ROLE_DIM, s->unique == 1 ? "; one at a time" : "");
    if (!split && in.h > 3)
        draw_next_line(v, g, rect_cut_bottom(&in, 1));
    if (t->err.kind != ERR_NONE)
        look.empty = t->err.text;
    else if (t->unavailable)
        look.empty = t->unavailable;
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
                             .empty = "no schedule: N adds one"};

    if (t->unavailable)
        look.empty = t->unavailable;
    else if (!t->has_data)
        look.empty = "asking ...";
    else if (*v->table.filter)
        look.empty = "no schedule has these words";
    draw_summary(v, g, rect_cut_top(&r, 1));
    if (r.h >= 12)
        draw_runs(v, g, rect_cut_bottom(&r, r.h / 2));
    list_draw(v->table.list, g, r, &look);
}

/* The worst of what is wrong with the selected schedule. */
static bool
schedules_remark(struct view *view, struct buf *out)
{
    const struct schedule_row *s = list_selected(table_list(view));

    if (!s)
        return false;
    const char *outcome = outcome_of(s, s->last_outcome);
    if (*s->error)
        buf_printf(out, "%s could not push: %s", s->name, s->error);
    else if (!strcmp(outcome, "failed"))
        buf_printf(out, "%s: the job of its last run failed: %s", s->name,
                   *s->last_error ? s->last_error : "it did not say why");
    else if (s->queue_paused == 1)
        buf_printf(out, "%s: its queue %s is paused%s%s, so its jobs wait", s->name, s->queue,
                   *s->queue_paused_by ? " by " : "", s->queue_paused_by);
    else if (s->missed > 0)
        buf_printf(out, "%s missed %s of its last runs: the list above says why", s->name,
                   fmt_count(s->missed).s);
    else if (!strcmp(s->state, "paused"))
        buf_printf(out, "%s is paused%s%s%s%s", s->name, *s->paused_by ? " by " : "", s->paused_by,
                   *s->pause_reason ? ": " : "", s->pause_reason);
    else
        buf_str(out, s->comment);
    return *s->error || !strcmp(outcome, "failed") || s->queue_paused == 1 || s->missed > 0;
}

static void
schedules_crumb(struct view *view, struct buf *out)
{
    buf_printf(out, "%s in all", fmt_count(list_count(table_list(view))).s);
}

/* --- commands -------------------------------------------------------------------------------- */

static void
schedules_open(struct view *view)
{
    const struct schedule_row *s = list_selected(table_list(view));

    if (!s)
        return;
    char *text = filter_with("", "queue", s->queue);
    app_push(view->app, "jobs", text);
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
