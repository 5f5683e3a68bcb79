/*
 * Failed jobs, grouped by what their errors have in common, with a sample in full. Enter opens the
 * jobs of the group; r requeues the group or the marked ones, R everything that the filter leaves.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/crumb.h"
#include "ui/console/table_view.h"
#include "ui/facts/group_say.h"
#include "ui/screen/failed_panes.h"
#include "ui/screen/views.h"

struct failures {
    struct view view;
    struct failed_table table;
    struct failed_panes panes;
    struct filter filter;
    char *home; /* the filter at the start: Esc goes back to it */
};

/* --- data ------------------------------------------------------------------------------------ */

static bool
groups_take(const void *ctx, enum param p)
{
    (void)ctx;
    return p == PARAM_QUEUE || p == PARAM_WORDS || p == PARAM_NOT_WORDS;
}

/* A group has a queue and texts. Any other term selects some jobs of a group: then the counts of
 * the rows, and what r changes, would not be those of the filter. */
static bool
parse_filter(const char *text, struct filter *f, struct filter_mark *mark, struct err *e)
{
    struct filter_mark at;
    bool ok = filter_parse(text, f, mark, e);
    const char *by = ok ? filter_untaken(text, groups_take, NULL, &at) : NULL;

    if (by && mark)
        *mark = at;
    return by ? fail(e, ERR_USAGE,
                     "groups can't be filtered by %s: :jobs state:failed %s lists the jobs", by,
                     text)
              : ok;
}

static void
failures_init(struct view *view, const char *arg)
{
    struct failures *v = (struct failures *)view;
    struct err e;

    failed_table_init(&v->table);
    failed_panes_init(&v->panes);
    v->home = xstrdup(arg ? arg : "");
    if (!parse_filter(arg ? arg : "", &v->filter, NULL, &e)) { /* no filter then: all jobs */
        filter_done(&v->filter);
        v->filter = (struct filter){.text = xstrdup("")};
        app_say(view->app, SAY_BAD, "%s", e.text);
    }
}

static void
failures_done(struct view *view)
{
    struct failures *v = (struct failures *)view;

    failed_table_done(&v->table);
    failed_panes_done(&v->panes);
    filter_done(&v->filter);
    free(v->home);
}

static void
failures_show(struct view *view)
{
    struct failures *v = (struct failures *)view;

    store_want(view->app->store, TOPIC_PACE, true); /* when requeued jobs would start */
    store_ask_groups(view->app->store, v->filter.terms.value[PARAM_QUEUE],
                     v->table.by == BY_ERROR ? NULL : failed_by[v->table.by]);
}

static void
failures_toggle(struct view *view, int what)
{
    struct failures *v = (struct failures *)view;

    (void)what;
    list_unmark_all(v->table.list); /* the rows will be others */
    v->table.by = (v->table.by + 1) % BY_TOTAL;
    if (v->table.by != BY_ERROR && !adapter_has(source_adapter(view->app->source), SEC_GROUPS_BY)) {
        v->table.by = BY_ERROR;
        app_say(view->app, SAY_INFO, "%s groups failures by their error only",
                adapter_title(source_adapter(view->app->source)));
    }
    failures_show(view);
    view->ops->update(view);
}

/* The words of the filter are matched with the group's texts; the server has chosen the queue. */
static bool
is_shown(void *ctx, const struct group_row *g)
{
    const struct failures *v = ctx;
    const char *const texts[] = {g->queue, g->error_key, g->sample, NULL};
    char *words = filter_with(v->filter.text, "queue", NULL);
    bool shown = words_match(words, texts);

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
    failed_panes_update(&v->panes, view->app, failed_selected(&v->table));
}

static enum pane_keys
failures_panes(struct view *view)
{
    struct failures *v = (struct failures *)view;

    if (!failed_panes_are_shown(view->app, &v->table))
        return PANES_NOT_SHOWN;
    return v->panes.focus ? PANES_BESIDE : PANES_TABLE;
}

/* --- frame ----------------------------------------------------------------------------------- */

static void
failures_draw(struct view *view, struct grid *g, struct rect r)
{
    struct failures *v = (struct failures *)view;
    struct app *a = view->app;
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_GROUPS),
                             .old_ms = store_age_ms(a->store, TOPIC_GROUPS),
                             .empty = app_none(a, "no failed job")};
    const struct topic_info *t = store_topic(a->store, TOPIC_GROUPS);

    if (t->unavailable)
        look.empty = app_unavailable(a, TOPIC_GROUPS);
    else if (!t->has_data)
        look.empty = "asking ...";
    failed_heading(&v->table, a, rect_cut_top(&r, 1), v->filter.text);
    (void)g;
    failed_panes_draw(&v->panes, a, &v->table, failed_panes_cut(a, &v->table, &r), &look);
    look.unfocused = failures_panes(view) == PANES_BESIDE;
    failed_table_draw(&v->table, a, r, &look);
}

static void
failures_drawn(struct view *view)
{
    failed_panes_ask(view->app, &((struct failures *)view)->table);
}

/* The acts for the marked groups; if none is marked, whether the cause of the selected group may
 * still exist. */
static bool
failures_remark(struct view *view, struct buf *out)
{
    struct failures *v = (struct failures *)view;
    const struct group_line *l = failed_selected(&v->table);
    struct group_detail d;

    if (say_marked(view, v->table.list, out) || !failed_detail(view->app, l, &d))
        return false;
    buf_printf(out, "%s: ", l->g.queue);
    group_say_cause(&d, &l->g, view->app->now_ms, view->app->options.utc, out);
    return false;
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
    struct failures *v = (struct failures *)view;

    return failures_panes(view) == PANES_BESIDE ? v->panes.who : v->table.list;
}

static void
failures_pane(struct view *view, int step)
{
    struct failures *v = (struct failures *)view;

    (void)step;
    v->panes.focus = !v->panes.focus && v->panes.n > 0;
}

static void
failures_step(struct view *view, int dir)
{
    struct failures *v = (struct failures *)view;

    failed_panes_step(&v->panes, view->app, failed_selected(&v->table), dir);
}

/* Enter on a node opens its page; Enter on a kind opens the jobs of the group that have this kind.
 */
static void
open_who(struct failures *v, const struct group_line *l, const struct who_line *who)
{
    bool kind = !strcmp(who->what, "kind") && strcmp(who->name, "none") != 0;

    if (!strcmp(who->what, "node")) {
        app_push(v->view.app, "node", who->name);
        return;
    }
    char *one = filter_with("state:failed", "queue", l->g.queue);
    char *two = filter_with(one, "error", l->g.error_key);
    char *three = kind ? filter_with(two, "kind", who->name) : xstrdup(two);

    app_push_jobs(v->view.app, three);
    free(one);
    free(two);
    free(three);
}

/* Enter opens the jobs of the row, if a filter can select them. No filter can select "the node of
 * the last try" or an hour: then the sample opens. */
static void
failures_open(struct view *view)
{
    struct failures *v = (struct failures *)view;
    const struct group_line *l = failed_selected(&v->table);

    if (failures_panes(view) == PANES_BESIDE) {
        open_who(v, l, list_selected(v->panes.who));
        return;
    }
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

    if (!parse_filter(text, &f, mark, e)) {
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
    int marks;

    if (failures_panes(view) == PANES_BESIDE) {
        v->panes.focus = false;
        return true;
    }
    list_marks(v->table.list, &marks);
    if (marks > 0) {
        list_unmark_all(v->table.list);
        return true;
    }
    return strcmp(failures_filter(view), v->home) != 0 &&
           failures_set_filter(view, v->home, NULL, &e);
}

/* The job whose payload e opens: of the selected group the one that is shown, of another group the
 * newest one. */
static const char *
sample_of(const struct failures *v, const struct target_group *group)
{
    const struct group_line *l = failed_line(&v->table, group);

    if (l && l == failed_selected(&v->table))
        return failed_sample(&v->panes, v->view.app, &v->table);
    return l ? l->g.sample_id : NULL;
}

static void
failures_target(struct view *view, struct target *t)
{
    struct failures *v = (struct failures *)view;
    int n, marks;
    const struct target_group *groups = failed_marked(&v->table, &n, &t->gone);

    t->where = &v->filter.terms;
    if (n == 0 || v->table.by != BY_ERROR)
        return;
    t->kind = TARGET_GROUP;
    t->name = n > 1 ? arena_printf(view->app->frame, "%d groups", n) : groups->error;
    t->error = groups->error;
    t->queue = groups->queue;
    t->state = "failed";
    t->groups = groups;
    t->ngroups = n > 1 ? n : 0;
    t->sample = n > 1 ? NULL : sample_of(v, groups);
    list_marks(v->table.list, &marks);
    t->marked = marks > 0;
}

static void
failures_mark_all(struct view *view)
{
    list_mark_shown(((struct failures *)view)->table.list);
}

static void
failures_unmark(struct view *view)
{
    list_unmark_all(((struct failures *)view)->table.list);
}

static const char *
failures_copy(struct view *view)
{
    struct failures *v = (struct failures *)view;

    return failed_sample(&v->panes, view->app, &v->table);
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
    for (int s = SEC_GROUP; s <= SEC_GROUP_SAMPLES; s++)
        if (adapter_has(source_adapter(view->app->source), (enum section_id)s))
            buf_printf(out, "\n\n-- %s\n%s", section_kinds[s].name,
                       adapter_sql(source_adapter(view->app->source), (enum section_id)s));
}

const struct view_ops view_failures = {
    .name = "failed",
    .title = "Failed",
    .opens = "its jobs",
    .screen = 3,
    .tab = 3,
    .stands_in = &view_failed_jobs,
    .needs = TOPIC_GROUPS,
    .scope = IN_FAILED,
    .topics = TOPIC_BIT(TOPIC_GROUPS) | TOPIC_BIT(TOPIC_QUEUES),
    .size = sizeof(struct failures),
    .init = failures_init,
    .done = failures_done,
    .show = failures_show,
    .update = failures_update,
    .draw = failures_draw,
    .drawn = failures_drawn,
    .remark = failures_remark,
    .step = failures_step,
    .pane = failures_pane,
    .panes = failures_panes,
    .list = failures_list,
    .open = failures_open,
    .back = failures_back,
    .mark_all = failures_mark_all,
    .unmark = failures_unmark,
    .target = failures_target,
    .crumb = failures_crumb,
    .filter = failures_filter,
    .set_filter = failures_set_filter,
    .sql = failures_sql,
    .copy = failures_copy,
    .toggle = failures_toggle,
};
