/*
 * Keeps order and columns of a list in the state file. A table that the user did not change leaves
 * no line there.
 */
#include "ui/console/remember.h"

#include "ui/config/settings.h"
#include "ui/console/app.h"

static struct list *
list_of(struct view *v)
{
    bool own = v->ops->list && !v->ops->home; /* what stands in has the columns of another list */

    return v->app->options.settings && own && !view_in_pane(v) ? v->ops->list(v) : NULL;
}

void
remember_begin(struct view *v)
{
    struct list *l = list_of(v);
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

void
remember_end(struct view *v)
{
    struct list *l = list_of(v);
    struct buf now = {0};

    if (!l)
        return;
    list_save(l, &now);
    settings_put(v->app->options.settings, v->ops->name, now.data);
    buf_free(&now);
}
