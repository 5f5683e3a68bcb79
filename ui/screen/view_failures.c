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
#include "ui/screen/failed_table.h"
#include "ui/screen/views.h"
#include "ui/term/words.h"

struct failures {
    struct view view;
    struct failed_table table;
    struct filter filter;
    char *home; /* the filter that it was opened with: Esc goes back to it */
};

/* --- data ------------------------------------------------------------------------------------ */

static void
failures_init(struct view *view, const char *arg)
{
    struct failures *v = (struct failures *)view;
    struct err e;

    failed_table_init(&v->table);
    v->home = xstrdup(arg ? arg : "");
    if (!filter_parse(arg ? arg : "", &v->filter, NULL, &e)) /* then it is empty: everything */
        app_say(view->app, SAY_BAD, "%s", e.text);
}

static void
failures_done(struct view *view)
{
    struct failures *v = (struct failures *)view;

    failed_table_done(&v->table);
    filter_done(&v->filter);
    free(v->home);
}

static void
failures_show(struct view *view)
{
    struct failures *v = (struct failures *)view;

    store_ask_groups(view->app->store, v->filter.terms.value[PARAM_QUEUE],
                     v->table.by == BY_ERROR ? NULL : failed_by[v->table.by]);
}

static void
failures_toggle(struct view *view, int what)
{
    struct failures *v = (struct failures *)view;

    (void)what;
    v->table.by = (v->table.by + 1) % BY_TOTAL;
    if (v->table.by != BY_ERROR && !adapter_has(source_adapter(view->app->source), SEC_GROUPS_BY)) {
        v->table.by = BY_ERROR;
        app_say(view->app, SAY_INFO, "%s groups failures by their error only",
                adapter_title(source_adapter(view->app->source)));
    }
    failures_show(view);
    view->ops->update(view);
}

/* Words of the filter are looked for in the group's texts; terms with a key go to the server. */
static bool
is_shown(void *ctx, const struct group_row *g)
{
    const struct failures *v = ctx;
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

    failed_table_update(&v->table, view->app, is_shown, v);
    if (!view->touched)
        list_home(v->table.list);
}

/* --- frame ----------------------------------------------------------------------------------- */

/* What a requeue of the group would do, from what is known without asking. */
static void
draw_requeue(struct failures *v, struct grid *g, struct rect r, const struct group_row *row)
{
    const struct queue_row *q = store_queue(v->view.app->store, row->queue);
    struct pen p = pen_start(g, r);

    if (v->table.by != BY_ERROR) {
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
    const struct group_line *l = failed_selected(&v->table);
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
    failed_heading(&v->table, a, rect_cut_top(&r, 1), v->filter.text);
    int sample = r.h >= 30 ? 12 : r.h >= 14 ? 8 : 0;
    if (sample && list_count(v->table.list) > 0)
        draw_sample(v, g, rect_cut_bottom(&r, sample));
    failed_table_draw(&v->table, a, r, &look);
}

static void
failures_crumb(struct view *view, struct buf *out)
{
    const struct failures *v = (struct failures *)view;
    const char *queue = v->filter.terms.value[PARAM_QUEUE];

    crumb_add(out, "failed");
    crumb_add(out, queue ? queue : "");
    if (v->table.by != BY_ERROR)
        crumb_add(out, arena_printf(view->app->frame, "by %s", failed_by[v->table.by]));
}

/* --- commands -------------------------------------------------------------------------------- */

static struct list *
failures_list(struct view *view)
{
    return ((struct failures *)view)->table.list;
}

/* No filter says "the node of the last try" or an hour: there the sample opens. */
static void
failures_open(struct view *view)
{
    struct failures *v = (struct failures *)view;
    const struct group_line *l = failed_selected(&v->table);

    if (v->table.by == BY_NODE || v->table.by == BY_HOUR) {
        char *id = xstrdup(l->g.sample_id);
        app_push(view->app, "job", id);
        free(id);
        return;
    }
    char *one = filter_with("state:failed", "queue", *l->g.queue ? l->g.queue : NULL);
    char *two = v->table.by == BY_KIND && *l->g.group ? filter_with(one, "kind", l->g.group)
                : v->table.by == BY_KIND              ? xstrdup(one)
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
    const struct group_line *l = failed_selected(&v->table);

    t->where = &v->filter.terms;
    if (!l || v->table.by != BY_ERROR)
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
    const struct group_line *l = failed_selected(&((struct failures *)view)->table);

    return l ? l->g.sample_id : NULL;
}

static void
failures_sql(struct view *view, struct buf *out)
{
    struct failures *v = (struct failures *)view;
    struct params p = {{0}};

    params_copy(&p, &v->filter.terms);
    params_set(&p, PARAM_SETTINGS, failed_by[v->table.by]);
    char *text = adapter_show(source_adapter(view->app->source),
                              v->table.by == BY_ERROR ? SEC_GROUPS : SEC_GROUPS_BY, &p);
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
