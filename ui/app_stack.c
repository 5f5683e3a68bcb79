/*
 * Where we are: the screens that live on, the views opened above one of them, the boxes in front of
 * all. Only the view in front has topics asked for it.
 */
#include "ui/app.h"

#include <stdlib.h>

#include "model/mem.h"
#include "ui/recording.h"
#include "ui/remember.h"

struct view *
app_view(const struct app *a)
{
    return a->stack[a->depth - 1];
}

struct view *
app_front(const struct app *a)
{
    return a->nboxes > 0 ? a->boxes[a->nboxes - 1] : app_view(a);
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
    if (v->ops->done)
        v->ops->done(v);
    free(v);
}

static void
leave_view(struct app *a)
{
    while (a->nboxes > 0)
        app_close_box(a, a->boxes[a->nboxes - 1]);
    if (a->depth > 0 && app_view(a)->ops->hide)
        app_view(a)->ops->hide(app_view(a));
}

/* The view in front decides what is asked: hidden screens ask nothing. */
static void
enter_view(struct app *a)
{
    struct view *v = app_view(a);

    for (int t = 0; t < TOPIC_COUNT; t++)
        store_want(a->store, (enum topic)t, v->ops->topics & TOPIC_BIT(t));
    if (v->ops->show)
        v->ops->show(v);
    if (v->ops->update)
        v->ops->update(v);
    a->stale = true;
}

static void
drop_stack(struct app *a)
{
    while (a->depth > 1)
        view_free(a->stack[--a->depth]);
    a->depth = 0;
}

void
app_open(struct app *a, const char *name, const char *arg)
{
    const struct view_ops *ops = view_named(name);

    if (!ops || ops->screen == 0) {
        app_push(a, name, arg);
        return;
    }
    trail_note(a);
    if (a->depth > 0)
        leave_view(a);
    drop_stack(a);
    if (!a->screens[ops->screen])
        a->screens[ops->screen] = view_new(a, ops, arg);
    a->stack[a->depth++] = a->screens[ops->screen];
    enter_view(a);
}

void
app_push(struct app *a, const char *name, const char *arg)
{
    const struct view_ops *ops = view_named(name);

    if (!ops || a->depth == APP_DEPTH) {
        app_say(a, SAY_WARN, "too deep: Esc goes back");
        return;
    }
    trail_note(a);
    leave_view(a);
    a->stack[a->depth] = view_new(a, ops, arg);
    a->depth++;
    enter_view(a);
}

void
app_back(struct app *a)
{
    if (a->depth < 2)
        return;
    trail_note(a);
    leave_view(a);
    view_free(a->stack[--a->depth]);
    enter_view(a);
}

struct view *
app_box(struct app *a, const struct view_ops *ops, const char *arg)
{
    if (a->nboxes == APP_BOXES)
        app_close_box(a, a->boxes[a->nboxes - 1]);
    struct view *box = view_new(a, ops, arg);

    a->boxes[a->nboxes++] = box;
    a->stale = true;
    return box;
}

void
app_close_box(struct app *a, struct view *box)
{
    for (int i = 0; i < a->nboxes; i++) {
        if (a->boxes[i] != box)
            continue;
        while (a->nboxes > i)
            view_free(a->boxes[--a->nboxes]);
    }
    a->stale = true;
}

void
app_drop_views(struct app *a)
{
    while (a->nboxes > 0)
        app_close_box(a, a->boxes[a->nboxes - 1]);
    drop_stack(a);
    for (int i = 0; i < APP_SCREENS; i++)
        view_free(a->screens[i]);
}
