/*
 * Acts that the queues of other systems have and our own queue has not: give back one job whose
 * worker is gone (in our own queue the lease expires by itself), send dead letters back, end the
 * database sessions of a node.
 */
#include <string.h>

#include "ui/act/act_parts.h"
#include "ui/console/app.h"

static bool
has(const struct app *a, enum section_id s)
{
    return adapter_has(source_adapter(a->source), s);
}

const char *
no_rescue(const struct app *a, int act)
{
    const char *why = act_no_target(a, (enum act)act);
    struct target t = app_target(a);

    if (why)
        return why;
    if (!has(a, SEC_RESCUE))
        return "here a node's leases are released: Nodes (4), L";
    if (t.all)
        return "only marked rows can be given back: U, then Space";
    return t.nids == 1 && *t.state && strcmp(t.state, "running") != 0 ? "the job is not running"
                                                                      : NULL;
}

const char *
no_redrive(const struct app *a, int act)
{
    const char *why = act_no_target(a, (enum act)act);

    if (!why && app_target(a).all)
        why = "only marked rows can be sent back: U, then Space";
    return why;
}
