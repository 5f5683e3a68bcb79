/*
 * What a dialog reads of an action: the preview and how it must be confirmed.
 */
#include <stdlib.h>
#include <string.h>

#include "model/action/action_parts.h"

int64_t
action_count(const struct action *a)
{
    return tally_sum(&a->effects, true);
}

int64_t
action_skips(const struct action *a)
{
    return tally_sum(&a->effects, false);
}

const struct effect_row *
action_effects(const struct action *a, int *n)
{
    *n = a->effects.n;
    return a->effects.rows;
}

const struct effect_row *
action_outcome(const struct action *a, int *n)
{
    *n = a->outcome.n;
    return a->outcome.rows;
}

const struct node_row *
action_evidence(const struct action *a)
{
    return a->evidence;
}

int64_t
action_counted_ms(const struct action *a)
{
    return a->now_ms;
}

/* The rule of the SQL function node_alive, and the database session besides: a node that registered
 * is as alive as its heartbeat; of one that never did, only leases that hold can tell. */
bool
action_looks_alive(const struct action *a)
{
    const struct node_row *node = a->evidence;

    if (a->act != ACT_RELEASE || !node)
        return false;
    if (strcmp(node->state, "unknown") == 0 && node->leases == FIELD_NULL)
        return a->all_leases && node->running != 0;
    if (strcmp(node->state, "unknown") == 0)
        return a->all_leases && node->leases > node->expired;
    return strcmp(node->state, "dead") != 0 || node->session_alive == 1;
}

bool
action_takes_held(const struct action *a)
{
    return a->act == ACT_RELEASE && a->all_leases && a->evidence &&
           a->evidence->leases > a->evidence->expired;
}

const char *
action_waits(const struct action *a)
{
    return a->waits;
}

const char *
action_title(const struct action *a)
{
    if (a->act != ACT_RELEASE || !a->ids)
        return act_infos[a->act].title;
    return a->nids == 1 ? "Give back a running job" : "Give back running jobs";
}

const char *
action_what(const struct action *a)
{
    return a->what ? a->what : "";
}

const char *
action_where(const struct action *a)
{
    return a->where ? a->where : "";
}

const char *
action_about(const struct action *a)
{
    return a->about ? a->about : "";
}

const char *
action_sql(const struct action *a)
{
    return a->sql ? a->sql : "";
}

const char *
action_challenge(const struct action *a)
{
    return a->challenge ? a->challenge : "";
}

enum confirm
action_confirm(const struct action *a, bool production)
{
    int64_t n = action_count(a);

    if (n == 0)
        return CONFIRM_NOTHING;
    if (n >= 100 || !act_infos[a->act].harmless || production || a->typed ||
        action_note(a, "confirm") || action_looks_alive(a))
        return CONFIRM_TYPE;
    if (a->act == ACT_BACKEND_CANCEL)
        return CONFIRM_DIALOG;
    return n == 1 ? CONFIRM_KEY : CONFIRM_DIALOG;
}
