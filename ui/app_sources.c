/*
 * The console and its several sources, looked after once a turn: who is asked, who is new, who
 * wants a password.
 */
#include <string.h>

#include "ui/app.h"
#include "ui/box.h"
#include "ui/handler.h"

const char *
app_of_source(const struct app *a, int source)
{
    if (sources_n(a->sources) < 2)
        return "";
    return arena_printf(a->frame, " of %s", sources_name(a->sources, source));
}

bool
app_is_foreign(const struct app *a)
{
    return strcmp(adapter_name(source_adapter(a->source)), "native") != 0;
}

static bool
takes(const void *ctx, enum param p)
{
    const struct adapter *a = ctx;

    return adapter_takes(a, SEC_JOBS, p) ||
           (p == PARAM_STATES && adapter_takes(a, SEC_JOBS, PARAM_RAW_STATES));
}

bool
app_takes_filter(const struct app *a, const char *text, struct filter_mark *mark, struct err *e)
{
    const struct adapter *ad = source_adapter(a->source);
    struct filter_mark here;
    const char *by = filter_untaken(text, takes, ad, &here);

    if (!by)
        return true;
    if (mark)
        *mark = here;
    return fail(e, ERR_USAGE, "%s can't filter by %s", adapter_title(ad), by);
}

static bool
shows_all(const struct app *a)
{
    for (int i = 0; i < a->nboxes; i++)
        if (a->boxes[i]->ops->all_sources)
            return true;
    return app_view(a)->ops->all_sources;
}

static bool
wants_password(const struct app *a, int i)
{
    struct source *s = sources_peek(a->sources, i);

    return s && !a->desks[i].password_refused && db_needs_password(store_db(source_store(s)));
}

/* Of the source on the screen first; of the others only while they are shown. */
static void
ask_password(struct app *a)
{
    if (wants_password(a, a->at)) {
        box_password(a, a->at);
        return;
    }
    for (int i = 0; app_view(a)->ops->all_sources && i < sources_n(a->sources); i++)
        if (wants_password(a, i)) {
            box_password(a, i);
            return;
        }
}

static void
tell_new(struct app *a)
{
    int n = sources_n(a->sources), left = sources_left_out(a->sources);

    if (n == a->told_of)
        return;
    a->told_of = n;
    if (left)
        app_say(a, SAY_WARN, "%d sources; %d more are left out. S lists them, 0 shows all queues",
                n, left);
    else
        app_say(a, SAY_INFO, "%d queue systems here: S lists them, 0 shows all their queues", n);
}

void
app_watch_sources(struct app *a)
{
    bool news = sources_update(a->sources), all = shows_all(a);

    if (news || all != a->asks_all || a->at != a->asks_at) {
        a->asks_all = all;
        a->asks_at = a->at;
        sources_show(a->sources, a->at, all);
        a->stale = true;
    }
    tell_new(a);
    ask_password(a);
}

/* --- commands -------------------------------------------------------------------------------- */

void
on_source(struct app *a, int arg)
{
    (void)arg;
    box_sources(a);
}

void
on_overview(struct app *a, int arg)
{
    (void)arg;
    if (app_view(a)->ops->all_sources)
        return;
    app_open(a, "queues", NULL);
    app_push(a, "overview", NULL);
}

void
app_source_named(struct app *a, const char *name)
{
    int i = sources_find(a->sources, name);

    if (i >= 0)
        app_switch(a, i);
    else
        app_say(a, SAY_INFO,
                i == -2 ? "several sources begin with %s; S lists them"
                        : "no source is called %s; S lists them",
                name);
}
