/*
 * What the looking and moving commands do. Each works on the view in front by its ops, so that no
 * command knows a screen. The sentences of the no_* functions are what the user reads when a key
 * can't do anything.
 */
#include "ui/console/handler.h"

#include <string.h>

#include "model/base/clock.h"
#include "ui/console/app.h"

static struct list *
front_list(const struct app *a)
{
    struct view *v = app_view(a);

    return v->ops->list ? v->ops->list(v) : NULL;
}

/* --- going ----------------------------------------------------------------------------------- */

void
on_screen(struct app *a, int digit)
{
    const struct view_ops *ops = view_screen(digit);

    if (ops)
        app_open(a, ops->name, NULL);
}

void
on_next_screen(struct app *a, int step)
{
    int at = app_view(a)->ops->tab;

    for (int i = 0; i < APP_SCREENS; i++) {
        at = (at + step + APP_SCREENS) % APP_SCREENS;
        if (view_screen(at)) {
            on_screen(a, at);
            return;
        }
    }
}

void
on_open(struct app *a, int arg)
{
    struct view *v = app_view(a);

    (void)arg;
    if (v->ops->open)
        v->ops->open(v);
}

void
on_back(struct app *a, int arg)
{
    struct view *v = app_view(a);

    (void)arg;
    if (v->ops->back && v->ops->back(v))
        return;
    app_back(a);
}

void
on_step(struct app *a, int dir)
{
    struct view *v = app_view(a);

    if (v->ops->step)
        v->ops->step(v, dir);
}

void
on_box(struct app *a, int which)
{
    switch (which) {
    case BOX_PALETTE:
        a->options.boxes->palette(a);
        break;
    case BOX_FILTER:
        a->options.boxes->filter(a);
        break;
    case BOX_HELP:
        app_push(a, "help", NULL);
        break;
    case BOX_ACTIONS:
        a->options.boxes->actions(a);
        break;
    case BOX_SQL:
        a->options.boxes->sql(a);
        break;
    case BOX_SORT:
        a->options.boxes->sort(a);
        break;
    case BOX_COLUMNS:
        a->options.boxes->columns(a);
        break;
    default:
        break;
    }
}

/* --- how it is shown ------------------------------------------------------------------------- */

void
on_freeze(struct app *a, int arg)
{
    bool on = !store_is_frozen(a->store);

    (void)arg;
    sources_freeze(a->sources, on);
    app_say(a, SAY_INFO, on ? "frozen: nothing is asked until z" : "live again");
}

void
on_interval(struct app *a, int step)
{
    static const int steps[] = {100,   250,   500,   1000,   2000,   5000,
                                10000, 30000, 60000, 300000, 600000, 3600000};
    int n = (int)(sizeof steps / sizeof *steps), now = sources_interval(a->sources), i = 0;

    while (i < n - 1 && steps[i] < now)
        i++;
    i += step;
    if (i < 0 || i >= n)
        return;
    sources_set_interval(a->sources, steps[i]);
    app_say(a, SAY_INFO, "refresh each %s", fmt_duration(steps[i]).s);
}

void
on_zone(struct app *a, int arg)
{
    (void)arg;
    a->options.utc = !a->options.utc;
    app_say(a, SAY_INFO, a->options.utc ? "times are UTC" : "times are local");
}

void
on_toggle(struct app *a, int what)
{
    struct view *v = app_view(a);

    if (v->ops->toggle)
        v->ops->toggle(v, what);
}

void
on_redraw(struct app *a, int arg)
{
    (void)arg;
    term_repaint(a->term);
}

void
on_suspend(struct app *a, int arg)
{
    (void)arg;
    term_suspend(a->term);
    term_resized(a->term);
}

void
on_reconnect(struct app *a, int arg)
{
    (void)arg;
    a->desks[a->at].password_refused = a->desks[a->at].asked_trust = false;
    db_retry_now(source_watcher(a->source));
    store_refresh_all(a->store);
    app_say(a, SAY_INFO, "asked the server again");
}

/* --- the running action, and leaving --------------------------------------------------------- */

void
on_action_box(struct app *a, int arg)
{
    (void)arg;
    a->options.boxes->progress(a);
}

void
on_stop(struct app *a, int arg)
{
    (void)arg;
    if (app_action_runs(a))
        app_action_stop(a);
    else if (a->nboxes == 0 || app_front(a)->ops != a->options.boxes->quit)
        app_box(a, a->options.boxes->quit, NULL);
}

void
on_quit(struct app *a, int arg)
{
    (void)arg;
    if (app_action_runs(a))
        app_box(a, a->options.boxes->quit, NULL);
    else
        a->quit = true;
}

/* --- tables ---------------------------------------------------------------------------------- */

static void
move_list(struct list *l, enum move move)
{
    switch (move) {
    case MOVE_UP:
        list_move(l, -1);
        break;
    case MOVE_DOWN:
        list_move(l, 1);
        break;
    case MOVE_PAGE_UP:
        list_page(l, -1);
        break;
    case MOVE_PAGE_DOWN:
        list_page(l, 1);
        break;
    case MOVE_HOME:
        list_home(l);
        break;
    case MOVE_END:
        list_end(l);
        break;
    case MOVE_LEFT:
    case MOVE_RIGHT:
        break;
    }
}

void
on_move(struct app *a, int move)
{
    struct list *l = front_list(a);
    struct view *v = app_view(a);

    if (l)
        move_list(l, (enum move)move);
    if (v->ops->move)
        v->ops->move(v, (enum move)move);
}

void
on_mark(struct app *a, int arg)
{
    struct list *l = front_list(a);

    (void)arg;
    if (l)
        list_toggle_mark(l);
}

void
on_mark_all(struct app *a, int arg)
{
    struct view *v = app_view(a);

    (void)arg;
    if (v->ops->mark_all)
        v->ops->mark_all(v);
}

void
on_unmark(struct app *a, int arg)
{
    struct view *v = app_view(a);
    struct list *l = front_list(a);

    (void)arg;
    if (v->ops->unmark)
        v->ops->unmark(v);
    else if (l)
        list_unmark_all(l);
}

void
on_sort_step(struct app *a, int step)
{
    list_sort_step(front_list(a), step);
}

void
on_sort_invert(struct app *a, int arg)
{
    (void)arg;
    list_sort_invert(front_list(a));
}

/* --- why not --------------------------------------------------------------------------------- */

const char *
no_row(const struct app *a, int arg)
{
    struct list *l = front_list(a);

    (void)arg;
    return l && !list_selected(l) ? app_no_row(a) : NULL;
}

const char *
no_filter(const struct app *a, int arg)
{
    (void)arg;
    return app_view(a)->ops->set_filter ? NULL : "nothing to filter on this screen";
}

const char *
no_marks(const struct app *a, int arg)
{
    return no_row(a, arg);
}

const char *
no_mark_all(const struct app *a, int arg)
{
    return app_view(a)->ops->mark_all ? no_row(a, arg) : "this table has no marks";
}

const char *
no_sql(const struct app *a, int arg)
{
    (void)arg;
    return app_view(a)->ops->sql ? NULL : "no SQL stands behind this screen";
}

const char *
no_action(const struct app *a, int arg)
{
    (void)arg;
    return a->action ? NULL : "no action is running";
}

const char *
no_sort(const struct app *a, int arg)
{
    struct list *l = front_list(a);

    (void)arg;
    if (!l)
        return "nothing to sort on this screen";
    return app_view(a)->ops->fixed_order ? "the server gives the order of this table" : NULL;
}
