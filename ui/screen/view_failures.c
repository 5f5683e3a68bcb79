/*
 * Failed jobs, grouped by what their errors have in common, with a sample in full. Enter opens the
 * jobs of the group; r requeues the group, R everything that the filter leaves.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/crumb.h"
#include "ui/facts/verdict.h"
#include "ui/screen/views.h"
#include "ui/term/chart.h"
#include "ui/term/words.h"

enum group_by { BY_ERROR, BY_KIND, BY_NODE, BY_HOUR, BY_TOTAL };
static const char *const by_names[BY_TOTAL] = {
    [BY_ERROR] = "error", [BY_KIND] = "kind", [BY_NODE] = "node", [BY_HOUR] = "hour"};

struct group_line {
    struct group_row g;
    char *id; /* queue and error: one row of the table */
};

struct failures {
    struct view view;
    struct list *list;
    struct group_line *rows;
    int n;
    struct filter filter;
    enum group_by by;
    char *home; /* the filter that it was opened with: Esc goes back to it */
};

/* --- columns --------------------------------------------------------------------------------- */

#define F(f) offsetof(struct group_line, g.f)

static void
draw_count(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct group_line *l = row;
    char text[64];

    (void)c;
    snprintf(text, sizeof text, "%s%s", fmt_count(l->g.n).s, l->g.capped == 1 ? "+" : "");
    grid_right(g, r, ROLE_TEXT, text);
}

/* How many failed, in steps of two minutes; of groups by error only. */
static void
draw_times(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct group_line *l = row;
    const struct failures *v = c->ctx;
    double steps[FAILS_STEPS];
    int64_t now = c->now_ms / FAILS_STEP_MS;

    if (v->by != BY_ERROR)
        return;
    for (int i = 0; i < FAILS_STEPS; i++)
        steps[i] = (double)store_fails_at(v->view.app->store, &l->g,
                                          (now - FAILS_STEPS + 1 + i) * FAILS_STEP_MS);
    if (chart_max(steps, FAILS_STEPS) > 0)
        chart_spark(g, r, ROLE_CHART, steps, FAILS_STEPS, 0);
}

static void
draw_group(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const char *group = ((const struct group_line *)row)->g.group;

    (void)c;
    grid_str(g, r, *group ? ROLE_TEXT : ROLE_DIM, *group ? group : "none");
}

static struct lead
lead_of(const void *row, const struct cell_ctx *c)
{
    return verdict_lead(verdict_of_group(&((const struct group_line *)row)->g, c->now_ms));
}

static const struct column_special group_special = {draw_group, NULL, K_TEXT, false};
static const struct column_special times_special = {draw_times, NULL, K_CUSTOM, false};
static const struct column_special count_special = {draw_count, NULL, K_COUNT, true};

/* clang-format off */
static const struct column columns[] = {
    {.name = "n", .title = "JOBS", .help = "Failed jobs with this error", .kind = K_CUSTOM, .offset = F(n),
     .min_w = 7, .max_w = 8, .special = &count_special},
    {.name = "queue", .title = "QUEUE", .help = "Queue of the jobs", .kind = K_TEXT, .offset = F(queue), .min_w = 8,
     .max_w = 18, .keep = 2},
    {.name = "first", .title = "FIRST", .help = "When the first of them failed", .kind = K_AGE_SHORT,
     .offset = F(first_ms), .min_w = 5, .max_w = 5, .keep = 4},
    {.name = "last", .title = "LAST", .help = "When the last of them failed", .kind = K_AGE_SHORT,
     .offset = F(last_ms), .min_w = 5, .max_w = 5, .keep = 3},
    {.name = "times", .title = "LAST 30 MIN", .help = "How many failed in each two minutes", .kind = K_CUSTOM,
     .offset = 0, .min_w = 15, .max_w = 15, .keep = 1, .special = &times_special},
    {.name = "group", .title = "GROUP", .help = "Kind, node or hour that they have in common", .kind = K_CUSTOM,
     .offset = F(group), .min_w = 10, .max_w = 20, .special = &group_special},
    {.name = "error", .title = "ERROR (numbers → N)", .help = "What their errors have in common", .kind = K_TEXT,
     .offset = F(error_key), .min_w = 12},
    {0},
};
/* clang-format on */
enum { TIMES_COLUMN = 4, GROUP_COLUMN = 5 };

static const struct list_def list_of_groups = {
    .columns = columns,
    .row_size = sizeof(struct group_line),
    .id_offset = offsetof(struct group_line, id),
    .sort = "n",
    .desc = true,
    .lead = lead_of,
};

/* --- data ------------------------------------------------------------------------------------ */

static void
drop_rows(struct failures *v)
{
    for (int i = 0; i < v->n; i++)
        free(v->rows[i].id);
    v->n = 0;
}

static void
failures_init(struct view *view, const char *arg)
{
    struct failures *v = (struct failures *)view;
    struct err e;

    v->list = list_new(&list_of_groups);
    list_set_ctx(v->list, v);
    v->home = xstrdup(arg ? arg : "");
    list_column_show(v->list, GROUP_COLUMN, false);
    if (!filter_parse(arg ? arg : "", &v->filter, NULL, &e)) /* then it is empty: everything */
        app_say(view->app, SAY_BAD, "%s", e.text);
}

static void
failures_done(struct view *view)
{
    struct failures *v = (struct failures *)view;

    list_free(v->list);
    drop_rows(v);
    free(v->rows);
    filter_done(&v->filter);
    free(v->home);
}

static void
failures_show(struct view *view)
{
    struct failures *v = (struct failures *)view;

    store_ask_groups(view->app->store, v->filter.terms.value[PARAM_QUEUE],
                     v->by == BY_ERROR ? NULL : by_names[v->by]);
}

static void
failures_toggle(struct view *view, int what)
{
    struct failures *v = (struct failures *)view;

    (void)what;
    v->by = (v->by + 1) % BY_TOTAL;
    if (v->by != BY_ERROR && !adapter_has(source_adapter(view->app->source), SEC_GROUPS_BY)) {
        v->by = BY_ERROR;
        app_say(view->app, SAY_INFO, "%s groups failures by their error only",
                adapter_title(source_adapter(view->app->source)));
    }
    list_column_show(v->list, GROUP_COLUMN, v->by != BY_ERROR);
    list_column_show(v->list, TIMES_COLUMN, v->by == BY_ERROR);
    failures_show(view);
    view->ops->update(view);
}

/* Words of the filter are looked for in the group's texts; terms with a key go to the server. */
static bool
is_shown(const struct failures *v, const struct group_row *g)
{
    const char *const texts[] = {g->queue, g->error_key, g->sample, NULL};
    char *words = filter_with(v->filter.text, "queue", NULL);
    bool shown = strpbrk(words, ":<>=~") || words_match(words, texts);

    free(words);
    return shown;
}

static void
failures_update(struct view *view)
{
    struct failures *v = (struct failures *)view;
    int n;
    const struct group_row *g = store_groups(view->app->store, &n);

    drop_rows(v);
    v->rows = xreallocarray(v->rows, (size_t)n + 1, sizeof *v->rows);
    for (int i = 0; i < n; i++) {
        if (!is_shown(v, &g[i]))
            continue;
        struct group_line *l = &v->rows[v->n++];
        l->g = g[i];
        l->id = v->by == BY_ERROR ? xasprintf("%s\n%s", g[i].queue, g[i].error_key)
                                  : xasprintf("%s", g[i].group);
    }
    list_column_lacks(v->list, "times",
                      !adapter_has(source_adapter(view->app->source), SEC_FAIL_TIMES));
    list_set_rows(v->list, v->rows, v->n);
    if (!view->touched)
        list_home(v->list);
}

/* --- frame ----------------------------------------------------------------------------------- */

static int64_t
sum_of(const struct failures *v)
{
    int64_t jobs = 0;

    for (int i = 0; i < v->n; i++)
        jobs += v->rows[i].g.n;
    return jobs;
}

static void
draw_summary(struct failures *v, struct grid *g, struct rect r)
{
    const struct queue_row *t = store_totals(v->view.app->store);
    int64_t jobs = sum_of(v);
    struct pen p = pen_start(g, r);

    pen_put(&p, ROLE_DIM, " ");
    pen_put(&p, ROLE_STRONG, t ? fmt_about(t->failed, t->approx).s : "");
    pen_put(&p, ROLE_TEXT, " failed");
    if (t && t->failed_hour != FIELD_NULL && t->failed_hour > 0)
        pen_printf(&p, ROLE_BAD, "  +%s in 1 h", fmt_count(t->failed_hour).s);
    pen_printf(&p, ROLE_DIM, " · %s", fmt_plural(v->n, "group").s);
    if (v->by != BY_ERROR && v->n > 0 && v->rows[0].g.capped == 1)
        pen_printf(&p, ROLE_WARN, " of the newest %s", fmt_count(sum_of(v)).s);
    if (*v->filter.text) {
        pen_printf(&p, ROLE_DIM, " of %s · filter ", fmt_plural(jobs, "job").s);
        pen_put(&p, ROLE_STRONG, v->filter.text);
    }
}

/* What a requeue of the group would do, from what is known without asking. */
static void
draw_requeue(struct failures *v, struct grid *g, struct rect r, const struct group_row *row)
{
    const struct queue_row *q = store_queue(v->view.app->store, row->queue);
    struct pen p = pen_start(g, r);

    if (v->by != BY_ERROR) {
        grid_str(g, r, ROLE_TEXT,
                 "r requeues groups of errors: m goes back to them; R requeues "
                 "all that the filter leaves");
        return;
    }
    bool ours = !app_is_foreign(v->view.app);
    pen_printf(&p, ROLE_TEXT, "%s %s%s%s",
               r.w < 68 ? "r:" : "What r would do:", fmt_plural(row->n, "job").s,
               row->capped == 1 ? " or more" : "",
               ours ? " to ready, tries kept, a last one each" : " again, each by its id");
    if (r.h > 1)
        p = pen_start(g, rect_row(r, 1));
    if (q && q->paused == 1)
        pen_printf(&p, ROLE_WARN, "%s is paused: they would wait", row->queue);
    else if (q && q->ready > 0)
        pen_printf(&p, ROLE_DIM, "%s has %s ready before them", row->queue,
                   fmt_about(q->ready, q->approx).s);
}

static void
draw_sample(struct failures *v, struct grid *g, struct rect r)
{
    const struct group_line *l = list_selected(v->list);
    char title[200];

    if (!l || r.h < 4)
        return;
    snprintf(title, sizeof title, "sample: job %s%s%.100s", fmt_id_tail(l->g.sample_id).s,
             *l->g.queue ? ", " : "", l->g.queue);
    struct rect in = rect_inset(grid_box(g, r, ROLE_BORDER, title), 1, 0);
    struct rect what = rect_cut_bottom(&in, in.h > 4 ? 2 : 1);
    grid_lines(g, in, ROLE_TEXT, l->g.sample, strlen(l->g.sample),
               &(struct text_area){.wrap = true});
    draw_requeue(v, g, what, &l->g);
}

static void
failures_draw(struct view *view, struct grid *g, struct rect r)
{
    struct failures *v = (struct failures *)view;
    struct app *a = view->app;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_GROUPS),
                             .empty = app_none(a, "no failed job")};
    const struct topic_info *t = store_topic(a->store, TOPIC_GROUPS);

    if (t->unavailable)
        look.empty = app_unavailable(a, TOPIC_GROUPS);
    else if (!t->has_data)
        look.empty = "asking ...";
    draw_summary(v, g, rect_cut_top(&r, 1));
    int sample = r.h >= 30 ? 12 : r.h >= 14 ? 8 : 0;
    if (sample && list_count(v->list) > 0)
        draw_sample(v, g, rect_cut_bottom(&r, sample));
    list_draw(v->list, g, r, &look);
}

static void
failures_crumb(struct view *view, struct buf *out)
{
    const struct failures *v = (struct failures *)view;
    const char *queue = v->filter.terms.value[PARAM_QUEUE];

    crumb_add(out, "failed");
    crumb_add(out, queue ? queue : "");
    if (v->by != BY_ERROR)
        crumb_add(out, arena_printf(view->app->frame, "by %s", by_names[v->by]));
}

/* --- commands -------------------------------------------------------------------------------- */

static struct list *
failures_list(struct view *view)
{
    return ((struct failures *)view)->list;
}

/* No filter says "the node of the last try" or an hour: there the sample opens. */
static void
failures_open(struct view *view)
{
    struct failures *v = (struct failures *)view;
    const struct group_line *l = list_selected(v->list);

    if (v->by == BY_NODE || v->by == BY_HOUR) {
        char *id = xstrdup(l->g.sample_id);
        app_push(view->app, "job", id);
        free(id);
        return;
    }
    char *one = filter_with("state:failed", "queue", *l->g.queue ? l->g.queue : NULL);
    char *two = v->by == BY_KIND && *l->g.group ? filter_with(one, "kind", l->g.group)
                : v->by == BY_KIND              ? xstrdup(one)
                                                : filter_with(one, "error", l->g.error_key);

    app_push_jobs(view->app, two);
    free(one);
    free(two);
}

static const char *
failures_filter(struct view *view)
{
    return ((struct failures *)view)->filter.text;
}

static bool
failures_set_filter(struct view *view, const char *text, struct filter_mark *mark, struct err *e)
{
    struct failures *v = (struct failures *)view;
    struct filter f;

    if (!filter_parse(text, &f, mark, e)) {
        filter_done(&f);
        return false;
    }
    filter_done(&v->filter);
    v->filter = f;
    failures_show(view);
    failures_update(view);
    return true;
}

static bool
failures_back(struct view *view)
{
    struct failures *v = (struct failures *)view;
    struct err e;

    return strcmp(failures_filter(view), v->home) != 0 &&
           failures_set_filter(view, v->home, NULL, &e);
}

static void
failures_target(struct view *view, struct target *t)
{
    struct failures *v = (struct failures *)view;
    const struct group_line *l = list_selected(v->list);

    t->where = &v->filter.terms;
    if (!l || v->by != BY_ERROR)
        return;
    t->kind = TARGET_GROUP;
    t->name = l->g.error_key;
    t->error = l->g.error_key;
    t->queue = l->g.queue;
    t->state = "failed";
}

static const char *
failures_copy(struct view *view)
{
    const struct group_line *l = list_selected(((struct failures *)view)->list);

    return l ? l->g.sample_id : NULL;
}

static void
failures_sql(struct view *view, struct buf *out)
{
    struct failures *v = (struct failures *)view;
    struct params p = {{0}};

    params_copy(&p, &v->filter.terms);
    params_set(&p, PARAM_SETTINGS, by_names[v->by]);
    char *text = adapter_show(source_adapter(view->app->source),
                              v->by == BY_ERROR ? SEC_GROUPS : SEC_GROUPS_BY, &p);
    params_done(&p);

    buf_str(out, text);
    free(text);
}

const struct view_ops view_failures = {
    .name = "failed",
    .title = "Failed",
    .screen = 3,
    .tab = 3,
    .scope = IN_FAILED,
    .topics = TOPIC_BIT(TOPIC_GROUPS) | TOPIC_BIT(TOPIC_QUEUES),
    .size = sizeof(struct failures),
    .init = failures_init,
    .done = failures_done,
    .show = failures_show,
    .update = failures_update,
    .draw = failures_draw,
    .list = failures_list,
    .open = failures_open,
    .back = failures_back,
    .target = failures_target,
    .crumb = failures_crumb,
    .filter = failures_filter,
    .set_filter = failures_set_filter,
    .sql = failures_sql,
    .copy = failures_copy,
    .toggle = failures_toggle,
};
