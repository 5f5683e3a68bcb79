/*
 * One act on several marked queues, nodes or groups of failed jobs: an action for each, previewed
 * together. The question has the sum; after the yes they run one after the other.
 */
#include <string.h>

#include "ui/act/act_parts.h"
#include "ui/box/box.h"
#include "ui/console/app.h"

bool
act_takes_many(const struct target *t, enum act act)
{
    if (t->kind == TARGET_GROUP)
        return act == ACT_REQUEUE || act == ACT_DISCARD || act == ACT_DELETE || act == ACT_PRIORITY;
    return act == ACT_PAUSE || act == ACT_RESUME || act == ACT_PURGE || act == ACT_DRAIN ||
           act == ACT_RELEASE;
}

/* Whether n actions are more than RUNNING_MOST; if they are, a message says so. */
static bool
are_too_many(struct app *a, int n)
{
    if (n > RUNNING_MOST)
        app_say(a, SAY_WARN, "%d are marked: at most %d at a time", n, RUNNING_MOST);
    return n > RUNNING_MOST;
}

static void
drop_all(struct action **acts, int n)
{
    while (n > 0)
        action_free(acts[--n]);
}

/* --- queues and nodes ------------------------------------------------------------------------ */

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
    struct target t = app_target(a);
    struct action *acts[RUNNING_MOST];
    int n = 0;

    if (t.nnames <= 1 || strcmp(t.name, subject) != 0) {
        struct action *act = begin_one(a, *i, target, subject);
        app_drop_boxes(a);
        if (act)
            box_confirm(a, act, NULL);
        return;
    }
    if (are_too_many(a, t.nnames))
        return;
    while (n < t.nnames && (acts[n] = begin_one(a, *i, target, t.names[n])) != NULL)
        n++;
    if (n == t.nnames)
        box_many(a, acts, t.names, n, target == PARAM_NODE ? "node" : "queue", "");
    else
        drop_all(acts, n);
}

/* --- groups of failed jobs ------------------------------------------------------------------- */

void
act_group(struct params *where, const struct target *t, const struct target_group *group)
{
    static const char *const failed[] = {"failed"};

    if (t->where)
        params_copy(where, t->where);
    if (t->marked) {
        params_set(where, PARAM_WORDS, NULL);
        params_set(where, PARAM_NOT_WORDS, NULL);
    }
    params_set_group(where, group->error);
    params_set(where, PARAM_QUEUE, group->queue);
    params_set_list(where, PARAM_STATES, failed, 1);
}

const char *
act_say_gone(const struct app *a, const struct target *t)
{
    if (t->gone == 0)
        return "";
    return arena_printf(a->frame, "%d marked group%s no failed job any more", t->gone,
                        t->gone == 1 ? " has" : "s have");
}

static struct action *
begin_group(struct app *a, struct intent i, const struct target *t, int group)
{
    struct params where = {{0}};

    act_group(&where, t, &t->groups[group]);
    i.where = &where;
    struct action *act = app_action_begin(a, &i);
    params_done(&where);
    return act;
}

void
act_ask_groups(struct app *a, const struct intent *i, const struct target *t)
{
    struct action *acts[RUNNING_MOST];
    const char *names[RUNNING_MOST];
    int n = 0;

    if (are_too_many(a, t->ngroups))
        return;
    for (; n < t->ngroups && (acts[n] = begin_group(a, *i, t, n)) != NULL; n++)
        names[n] = arena_printf(a->frame, "%s, %s", t->groups[n].queue, t->groups[n].error);
    if (n == t->ngroups)
        box_many(a, acts, names, n, "group", act_say_gone(a, t));
    else
        drop_all(acts, n);
}
