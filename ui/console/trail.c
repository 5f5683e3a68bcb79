/*
 * Back and forward. A place holds names and texts only, so it can't go stale; a screen that has
 * nothing to show any more says so itself.
 */
#include "ui/console/trail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/commands.h"

static_assert(TRAIL_DEPTH >= (int)APP_DEPTH, "a place holds every stack");

static void
place_done(struct place *p)
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

/* A list's filter, or what a page is about. */
static const char *
arg_of(struct view *v)
{
    if (v->ops->filter)
        return v->ops->filter(v);
    return !v->ops->list && v->ops->copy ? v->ops->copy(v) : NULL;
}

static void
place_take(struct place *p, const struct app *a)
{
    place_done(p);
    for (int i = 0; i < a->depth; i++) {
        struct view *v = a->stack[i];
        const char *arg = arg_of(v);
        p->name[i] = xstrdup(v->ops->name);
        p->arg[i] = arg ? xstrdup(arg) : NULL;
        p->id[i] = xstrdup(v->ops->list ? list_selected_id(v->ops->list(v)) : "");
    }
    p->depth = a->depth;
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

    if (t->walking || a->depth == 0)
        return;
    while (t->n > t->at + 1)
        place_done(&t->places[--t->n]);
    take_here(a);
    t->at = t->n;
}

static void
put_back(struct view *v, const char *arg, const char *id)
{
    struct err e = {0};
    struct filter_mark mark;

    if (arg && v->ops->set_filter && strcmp(arg, v->ops->filter(v)) != 0)
        v->ops->set_filter(v, arg, &mark, &e); /* it was right when it was set */
    if (*id && v->ops->list)
        list_select(v->ops->list(v), id);
}

static void
place_show(const struct place *p, struct app *a)
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
        return t->at > 0 ? NULL : "nowhere was before this";
    return t->at + 1 < t->n ? NULL : "nowhere was gone back from";
}

static void
on_trail(struct app *a, int step)
{
    struct trail *t = &a->trail;

    t->walking = true;
    take_here(a);
    t->at += step;
    place_show(&t->places[t->at], a);
    t->walking = false;
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
     .scope = IN_ALL, .run = on_trail, .arg = -1, .why_not = no_trail},
    {.name = "forward", .keys = "C-n M-Right", .help = "Where you came back from",
     .scope = IN_ALL, .run = on_trail, .arg = 1, .why_not = no_trail},
    {0},
};
/* clang-format on */
