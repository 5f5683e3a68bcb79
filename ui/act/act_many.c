/*
 * One act on several marked queues or nodes: an action for each, previewed together. The question
 * has the sum; after the yes they run one after the other.
 */
#include <string.h>

#include "ui/act/act_parts.h"
#include "ui/box/box.h"
#include "ui/console/app.h"

bool
act_takes_many(enum act act)
{
    return act == ACT_PAUSE || act == ACT_RESUME || act == ACT_PURGE || act == ACT_DRAIN ||
           act == ACT_RELEASE;
}

static struct action *
begin_one(struct app *a, struct intent i, enum param target, const char *name)
{
    const struct params *all = i.where;
    struct params where = {{0}};

    i.queue = target == PARAM_QUEUE ? name : NULL;
    i.node = target == PARAM_NODE ? name : NULL;
    if (all) {
        params_copy(&where, all);
        params_set(&where, target, name);
        i.where = &where;
    }
    struct action *act = app_action_begin(a, &i);
    params_done(&where);
    return act;
}

void
act_ask_each(struct app *a, const struct intent *i, enum param target, const char *subject)
{
    struct target t = act_target(a);
    struct action *acts[RUNNING_MOST];
    int n = 0;

    if (t.nnames <= 1 || strcmp(t.name, subject) != 0) {
        struct action *act = begin_one(a, *i, target, subject);
        app_drop_boxes(a);
        if (act)
            box_confirm(a, act, NULL);
        return;
    }
    if (t.nnames > RUNNING_MOST) {
        app_say(a, SAY_WARN, "%d are marked: at most %d at a time", t.nnames, RUNNING_MOST);
        return;
    }
    while (n < t.nnames && (acts[n] = begin_one(a, *i, target, t.names[n])) != NULL)
        n++;
    if (n == t.nnames)
        box_many(a, acts, t.names, n);
    else
        while (n > 0)
            action_free(acts[--n]);
}
