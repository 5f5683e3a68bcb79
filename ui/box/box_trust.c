/*
 * The question before the console opens a queue system that belongs to another role
 * (model/adapter/trust.h): who owns it, and what the owner's code could do. A yes is remembered for
 * these owners, this login and this database.
 */
#include <string.h>

#include "ui/box/box.h"
#include "ui/box/box_parts.h"
#include "ui/config/settings.h"

struct trust_box {
    struct view view;
    struct question ask;
    struct owners shown; /* a copy: the answer is for these owners */
    int source;
};

static void
trust_yes(struct view *v)
{
    struct trust_box *b = (struct trust_box *)v;
    struct app *a = v->app;
    struct err e;

    sources_trust(a->sources, b->source, &b->shown);
    if (a->options.settings && !trusted_keep(a->options.settings, &b->shown, &e))
        app_say(a, SAY_WARN, "%s", e.text);
    app_say(a, SAY_INFO, "code of %s may run here from now on", b->shown.names);
    app_close_box(a, v);
}

static void
trust_no(struct view *v)
{
    app_say(v->app, SAY_INFO, "not opened: owned by %s; :reconnect asks again",
            ((struct trust_box *)v)->shown.names);
    app_close_box(v->app, v);
}

static bool
trust_key(struct view *v, const struct key *k)
{
    return asking_key(v, k, trust_yes, trust_no);
}

static void
trust_free_box(struct view *v)
{
    struct trust_box *b = (struct trust_box *)v;

    question_done(&b->ask);
    owners_done(&b->shown);
}

static const struct view_ops trust_ops = {
    .name = "trust-box",
    .size = sizeof(struct trust_box),
    .done = trust_free_box,
    .draw = asking_draw,
    .drawn = asking_drawn,
    .key = trust_key,
    .footer = asking_footer,
};

enum { SHOWN_MOST = 4 };

static void
say_all(struct trust_box *b, const struct source_line *l, const char *user)
{
    struct question *ask = &b->ask;
    const struct owners *o = &b->shown;

    question_say(ask, ROLE_STRONG, NULL, "%s in schema %s is not opened: owned by %s", l->title,
                 l->schema, o->names);
    question_say(ask, ROLE_TEXT, NULL, " ");
    for (int i = 0; i < o->n && i < SHOWN_MOST; i++)
        question_say(ask, ROLE_TEXT, "owner", "%s: %s", o->strangers[i].name,
                     o->strangers[i].object);
    if (o->n > SHOWN_MOST)
        question_say(ask, ROLE_TEXT, "", "and %d more", o->n - SHOWN_MOST);
    question_say(ask, ROLE_TEXT, "login", "%s%s%s", user, o->power ? ", " : "",
                 o->power ? o->power : "");
    question_say(ask, ROLE_TEXT, NULL, " ");
    if (o->power)
        question_say(ask, ROLE_BAD, NULL,
                     "Code of that owner (views, functions, types) would run with the rights of "
                     "%s, %s: it could reach other databases and the server itself. A login with "
                     "fewer rights is safer.",
                     user, o->power);
    else
        question_say(
            ask, ROLE_WARN, NULL,
            "Code of that owner (views, functions, types) would run with your rights: it could "
            "read "
            "and change all that %s may.",
            user);
    question_say(ask, ROLE_DIM, NULL, "Yes is remembered for this login, this database and %s.",
                 o->n == 1 ? "this owner" : "these owners");
}

void
box_trust(struct app *a, int source)
{
    struct source *s = sources_peek(a->sources, source);
    const struct owners *o = s ? store_strangers(source_store(s)) : NULL;
    struct source_line l;

    if (!o || app_find_box(a, &trust_ops))
        return;
    struct trust_box *b = (struct trust_box *)app_box(a, &trust_ops, NULL);
    b->source = source;
    owners_copy(&b->shown, o);
    sources_line(a->sources, source, &l);
    question_init(&b->ask, "Trust this owner?");
    say_all(b, &l, db_user(store_db(source_store(s))));
}
