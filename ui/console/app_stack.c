/*
 * The stack of views: screens that stay in memory, pages opened above a screen, boxes in front of
 * all. Only the topics of the view in front are asked for.
 */
#include "ui/config/settings.h"
#include "ui/console/app.h"

#include <stdlib.h>

#include "model/adapter/lookup.h"
#include "model/base/mem.h"
#include "ui/console/replay_keys.h"

static struct list *
kept_list(struct view *v)
{
    bool own = v->ops->list && !v->ops->home; /* what stands in has the columns of another list */

    return v->app->options.settings && own && !view_in_pane(v) ? v->ops->list(v) : NULL;
}

/* After the table of a screen was made: sets the order and the columns that the state file keeps. A
 * table that the user did not change leaves no line there. */
static void
remember_begin(struct view *v)
{
    struct list *l = kept_list(v);
    struct buf usual = {0};

    if (!l)
        return;
    list_save(l, &usual);
    settings_usual(v->app->options.settings, v->ops->name, usual.data);
    const char *line = settings_get(v->app->options.settings, v->ops->name);
    if (*line)
        list_load(l, line);
    buf_free(&usual);
}

/* Before the table is freed. */
static void
remember_end(struct view *v)
{
    struct list *l = kept_list(v);
    struct buf now = {0};

    if (!l)
        return;
    list_save(l, &now);
    settings_put(v->app->options.settings, v->ops->name, now.data);
    buf_free(&now);
}

struct view *
app_view(const struct app *a)
{
    return a->views.stack[a->views.depth - 1];
}

struct target
app_target(const struct app *a)
{
    struct view *v = app_view(a);
    struct target t = {.kind = TARGET_NONE, .name = "", .state = ""};

    if (v->ops->target)
        v->ops->target(v, &t);
    return t;
}

struct list *
app_list(const struct app *a)
{
    struct view *v = app_view(a);

    if (v->ops->focus)
        return v->ops->focus(v);
    return v->ops->list ? v->ops->list(v) : NULL;
}

struct view *
app_front(const struct app *a)
{
    return a->views.nboxes > 0 ? a->views.boxes[a->views.nboxes - 1] : app_view(a);
}

unsigned
app_scope(const struct app *a)
{
    return app_view(a)->ops->scope | (app_replays(a) ? IN_REPLAY : 0);
}

static struct view *
view_new(struct app *a, const struct view_ops *ops, const char *arg)
{
    struct view *v = xcalloc(1, ops->size);

    v->ops = ops;
    v->app = a;
    if (ops->init)
        ops->init(v, arg);
    remember_begin(v);
    return v;
}

static void
view_free(struct view *v)
{
    if (!v)
        return;
    remember_end(v);
    app_action_view_gone(v->app, v);
    app_edit_view_gone(v->app, v);
    if (v->ops->done)
        v->ops->done(v);
    free(v);
}

static void
leave_view(struct app *a)
{
    app_drop_boxes(a);
    seek_end(a);
    if (a->views.depth > 0 && app_view(a)->ops->hide)
        app_view(a)->ops->hide(app_view(a));
}

/* Screens that show waiting work also show whether workers and schedulers are alive (TOPIC_LIFE);
 * how much waits comes from the queues. The alerts are counted on all screens, at a slow pace that
 * costs little. */
static void
want_life(struct app *a, unsigned topics)
{
    bool says = topics & (TOPIC_BIT(TOPIC_QUEUES) | TOPIC_BIT(TOPIC_NODES) |
                          TOPIC_BIT(TOPIC_SCHEDULES) | TOPIC_BIT(TOPIC_HEALTH));

    store_watch(a->store, true);

    store_want(a->store, TOPIC_LIFE, says);
    if (says && !store_topic(a->store, TOPIC_LIFE)->unavailable)
        store_want(a->store, TOPIC_QUEUES, true);
}

static void
update_view(struct view *v)
{
    if (v->ops->update)
        v->ops->update(v);
}

/* Asks for the topics of the view in front. Hidden screens ask nothing. */
static void
enter_view(struct app *a)
{
    struct view *v = app_view(a);

    for (int t = 0; t < TOPIC_COUNT; t++)
        store_want(a->store, (enum topic)t, v->ops->topics & TOPIC_BIT(t));
    want_life(a, v->ops->topics);
    follow_ask(a);
    if (v->ops->show)
        v->ops->show(v);
    update_view(v);
    follow_hold(a);
    app_stale(a);
}

static void
drop_stack(struct app *a)
{
    while (a->views.depth > 1)
        view_free(a->views.stack[--a->views.depth]);
    a->views.depth = 0;
}

const struct view_ops *
app_screen(const struct app *a, int digit)
{
    const struct view_ops *ops = view_screen(digit);

    return ops && ops->stands_in && store_topic(a->store, ops->needs)->unavailable ? ops->stands_in
                                                                                   : ops;
}

/* Leaves only this screen on the stack. Only enter_view lets it ask. */
static void
put_screen(struct app *a, const struct view_ops *ops, const char *arg)
{
    trail_note(a);
    alerts_leave(a);
    if (a->views.depth > 0)
        leave_view(a);
    drop_stack(a);
    struct view **screen = &a->views.screens[a->at][ops->screen];
    if (*screen && (*screen)->ops != ops) { /* what stands there has changed */
        view_free(*screen);
        *screen = NULL;
    }
    if (!*screen)
        *screen = view_new(a, ops, arg ? arg : ops->home);
    a->views.stack[a->views.depth++] = *screen;
}

void
app_open(struct app *a, const char *name, const char *arg)
{
    const struct view_ops *ops = view_named(name);

    if (!ops || ops->screen == 0) {
        app_push(a, name, arg);
        return;
    }
    put_screen(a, app_screen(a, ops->screen), arg);
    enter_view(a);
}

void
app_fit_screen(struct app *a)
{
    const struct view_ops *ops = a->views.stack[0]->ops;

    if (a->views.depth == 1 && app_screen(a, ops->screen) != ops && ops->screen > 0)
        app_open(a, ops->name, NULL);
}

void
app_open_page(struct app *a, const char *screen, const char *page, const char *arg)
{
    char *kept = arg ? xstrdup(arg) : NULL; /* it may belong to the view that is freed */

    put_screen(a, app_screen(a, view_named(screen)->screen), NULL);
    update_view(app_view(a)); /* its rows may have been freed while it was not on the stack */
    a->views.stack[a->views.depth] = view_new(a, view_named(page), kept);
    a->views.depth++;
    enter_view(a);
    free(kept);
}

void
app_push(struct app *a, const char *name, const char *arg)
{
    const struct view_ops *ops = view_named(name);

    if (!ops || a->views.depth == APP_DEPTH) {
        app_say(a, SAY_WARN, "too deep: Esc goes back");
        return;
    }
    trail_note(a);
    leave_view(a);
    a->views.stack[a->views.depth] = view_new(a, ops, arg);
    a->views.depth++;
    enter_view(a);
}

void
app_push_jobs(struct app *a, const char *filter)
{
    struct err e;

    if (app_takes_filter(a, filter, NULL, &e))
        app_push(a, "jobs", filter);
    else
        app_say(a, SAY_INFO, "%s", e.text);
}

void
app_back(struct app *a)
{
    if (a->views.depth < 2)
        return;
    trail_rise(a);
    leave_view(a);
    view_free(a->views.stack[--a->views.depth]);
    enter_view(a);
}

bool
app_switch(struct app *a, int source)
{
    const char *screen = a->views.stack[0]->ops->name;
    struct err e;

    if (source == a->at)
        return true;
    struct source *s = sources_at(a->sources, source, &e);
    if (!s) {
        app_say(a, SAY_BAD, "%s: %s", sources_name(a->sources, source), e.text);
        return false;
    }
    trail_note(a);
    follow_end(a);
    leave_view(a);
    drop_stack(a);
    lookup_free(a->form.lookup); /* a queue of the other source may have the same name */
    a->form.lookup = NULL;
    for (int t = 0; t < TOPIC_COUNT; t++)
        store_want(a->store, (enum topic)t, false);
    store_watch(a->store, false);
    a->at = source;
    a->source = s;
    a->store = source_store(s);
    app_open(a, screen, NULL);
    return true;
}

struct view *
app_box(struct app *a, const struct view_ops *ops, const char *arg)
{
    if (a->views.nboxes == APP_BOXES)
        app_close_box(a, a->views.boxes[a->views.nboxes - 1]);
    struct view *box = view_new(a, ops, arg);

    a->views.boxes[a->views.nboxes++] = box;
    app_stale(a);
    return box;
}

void
app_close_box(struct app *a, struct view *box)
{
    for (int i = 0; i < a->views.nboxes; i++) {
        if (a->views.boxes[i] != box)
            continue;
        while (a->views.nboxes > i)
            view_free(a->views.boxes[--a->views.nboxes]);
    }
    app_stale(a);
}

void
app_drop_boxes(struct app *a)
{
    while (a->views.nboxes > 0)
        app_close_box(a, a->views.boxes[a->views.nboxes - 1]);
}

struct view *
app_find_box(const struct app *a, const struct view_ops *ops)
{
    for (int i = 0; i < a->views.nboxes; i++)
        if (a->views.boxes[i]->ops == ops)
            return a->views.boxes[i];
    return NULL;
}

struct view *
app_below(const struct app *a)
{
    return a->views.depth > 1 ? a->views.stack[a->views.depth - 2] : NULL;
}

void
app_drop_views(struct app *a)
{
    app_drop_boxes(a);
    drop_stack(a);
    for (int i = 1; i <= SOURCES_MAX; i++) /* the source on the screen is freed last: its columns
                                              are the ones that are kept */
        for (int k = 0; k < APP_SCREENS; k++)
            view_free(a->views.screens[(a->at + i) % SOURCES_MAX][k]);
}
