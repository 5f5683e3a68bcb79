/*
 * Back and forward. A place is made of names and texts only, so it is never out of date. A screen
 * whose subject is gone says so itself.
 */
#include "ui/console/trail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/commands.h"

static_assert(TRAIL_DEPTH >= (int)APP_DEPTH, "a place holds every stack");

static void
place_done(struct trail_place *p)
{
    for (int i = 0; i < p->depth; i++) {
        free(p->name[i]);
        free(p->arg[i]);
        free(p->id[i]);
    }
    p->depth = 0;
}

void
trail_done(struct trail *t)
{
    while (t->n > 0)
        place_done(&t->places[--t->n]);
}

/* The argument of a view: the filter of its list, or its subject. */
static const char *
arg_of(struct view *v)
{
    if (v->ops->subject)
        return v->ops->subject(v);
    if (v->ops->filter)
        return v->ops->filter(v);
    return !v->ops->list && v->ops->copy ? v->ops->copy(v) : NULL;
}

static void
place_take(struct trail_place *p, const struct app *a)
{
    place_done(p);
    for (int i = 0; i < a->views.depth; i++) {
        struct view *v = a->views.stack[i];
        const char *arg = arg_of(v);
        p->name[i] = xstrdup(v->ops->name);
        p->arg[i] = arg ? xstrdup(arg) : NULL;
        p->id[i] = xstrdup(v->ops->list ? list_selected_id(v->ops->list(v)) : "");
    }
    p->depth = a->views.depth;
    p->source = a->at;
}

static void
drop_first(struct trail *t)
{
    place_done(&t->places[0]);
    memmove(&t->places[0], &t->places[1], sizeof t->places[0] * (size_t)--t->n);
    memset(&t->places[t->n], 0, sizeof t->places[0]);
    t->at--;
}

/* Stores the present screen as a place. */
static void
take_here(struct app *a)
{
    struct trail *t = &a->trail;

    if (t->at == t->n && t->n == TRAIL_PLACES)
        drop_first(t);
    place_take(&t->places[t->at], a);
    if (t->at == t->n)
        t->n++;
}

void
trail_note(struct app *a)
{
    struct trail *t = &a->trail;

    if (t->walking || a->views.depth == 0)
        return;
    while (t->n > t->at + 1)
        place_done(&t->places[--t->n]);
    take_here(a);
    t->at = t->n;
}

static bool
is_below(const struct trail_place *p, const struct app *a)
{
    if (p->source != a->at || p->depth != a->views.depth - 1)
        return false;
    for (int i = 0; i < p->depth; i++)
        if (strcmp(p->name[i], a->views.stack[i]->ops->name) != 0)
            return false;
    return true;
}

bool
trail_is_below(const struct app *a)
{
    const struct trail *t = &a->trail;

    return t->at > 0 && is_below(&t->places[t->at - 1], a);
}

void
trail_rise(struct app *a)
{
    struct trail *t = &a->trail;

    if (t->walking)
        return;
    if (trail_is_below(a)) {
        take_here(a);
        t->at--;
        return;
    }
    while (t->n > t->at)
        place_done(&t->places[--t->n]);
}

static void
put_back(struct view *v, const char *arg, const char *id)
{
    struct err e = {0};
    struct filter_mark mark;

    if (arg && !v->ops->subject && v->ops->set_filter && strcmp(arg, v->ops->filter(v)) != 0)
        v->ops->set_filter(v, arg, &mark, &e); /* can't fail: it was valid before */
    if (*id && v->ops->list)
        seek_row(v->app, id);
}

static void
place_show(const struct trail_place *p, struct app *a)
{
    if (!app_switch(a, p->source))
        return;
    for (int i = 0; i < p->depth; i++) {
        if (i == 0)
            app_open(a, p->name[i], NULL);
        else
            app_push(a, p->name[i], p->arg[i]);
        put_back(app_view(a), p->arg[i], p->id[i]);
        app_view(a)->touched = true;
    }
}

static const char *
no_trail(const struct app *a, int step)
{
    const struct trail *t = &a->trail;

    if (step < 0)
        return t->at > 0 ? NULL : "this is the first place";
    return t->at + 1 < t->n ? NULL : "nothing to go forward to";
}

static void
on_trail(struct app *a, int step)
{
    struct trail *t = &a->trail;

    t->walking = true;
    take_here(a);
    t->at += step;
    place_show(&t->places[t->at], a);
    follow_hold(a);
    t->walking = false;
}

void
trail_hold(struct app *a, bool on)
{
    a->trail.walking = on;
}

bool
trail_back(struct app *a)
{
    if (no_trail(a, -1))
        return false;
    on_trail(a, -1);
    return true;
}

/* clang-format off */
const struct command commands_trail[] = {
    {.name = "backward", .keys = "C-p Backspace M-Left", .help = "Where you were before this",
     .scope = IN_ALL, .run = on_trail, .arg = -1, .why_not = no_trail, .moves = MOVES_ON},
    {.name = "forward", .keys = "C-n M-Right", .help = "Where you came back from",
     .scope = IN_ALL, .run = on_trail, .arg = 1, .why_not = no_trail, .moves = MOVES_ON},
    {0},
};
/* clang-format on */
