/*
 * The same wish with other options, from the question before it: a new action with a uuid of its
 * own, previewed anew.
 */
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "model/action/action_parts.h"

struct act_options
action_options(const struct action *a)
{
    const char *reset = a->params.value[PARAM_RESET];

    return (struct act_options){.spread_ms = a->spread_ms,
                                .reset = reset && !strcmp(reset, "true"),
                                .reason = a->params.value[PARAM_REASON]};
}

bool
action_has_reason(const struct action *a)
{
    return adapter_takes(a->adapter, a->section, PARAM_REASON);
}

struct action *
action_again(const struct action *old, const struct act_options *o)
{
    struct action *a = xcalloc(1, sizeof *a);
    uuid_t id;

    *a = (struct action){.loop = old->loop,
                         .db = old->db,
                         .adapter = old->adapter,
                         .act = old->act,
                         .gather = old->gather,
                         .section = old->section,
                         .audited = old->audited,
                         .expected = old->expected,
                         .give_up_ms = old->give_up_ms,
                         .batch_size = old->batch_size,
                         .all_leases = old->all_leases,
                         .typed = old->typed,
                         .about = old->about ? xstrdup(old->about) : NULL,
                         .older_than_ms = old->older_than_ms,
                         .has_time = old->has_time,
                         .in_ms = old->in_ms,
                         .spread_ms = o->spread_ms,
                         .summary = xstrdup("")};
    params_copy(&a->params, &old->params);
    params_copy(&a->search, &old->search);
    params_set(&a->search, PARAM_CURSOR, NULL);
    if (old->ids && !old->gather) {
        a->ids = xcalloc((size_t)old->nids + 1, sizeof *a->ids);
        for (; a->nids < old->nids; a->nids++)
            a->ids[a->nids] = xstrdup(old->ids[a->nids]);
    }
    uuid_generate_random(id);
    uuid_unparse_lower(id, a->id);
    params_set(&a->params, PARAM_ACTION, a->id);
    params_set(&a->params, PARAM_REASON, o->reason && *o->reason ? o->reason : NULL);
    if (a->act == ACT_REQUEUE) {
        params_set_bool(&a->params, PARAM_RESET, o->reset);
        params_set(&a->params, PARAM_BY, NULL);
        if (o->spread_ms)
            params_set_interval(&a->params, PARAM_BY, o->spread_ms);
    }
    action_preview(a);
    return a;
}
