/*
 * The request. From an intent it makes the section that does the act, its parameters, and the ids
 * or the predicate. What the section can't take is rejected here, before anything is asked.
 */
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "model/action/action_parts.h"
#include "model/adapter/terms.h"

enum { BATCH_IDS = 500, BATCH_ROWS = 1000, REASON_MOST = 1000 };

static void
take_predicate(struct action *a, const struct intent *in)
{
    static const char *const failed[] = {"failed"}, *const finished[] = {"completed", "cancelled"},
                             *const running[] = {"running"};
    const struct act_info *info = &act_infos[a->act];

    if (in->where)
        params_copy(&a->params, in->where);
    if (in->queue)
        params_set(&a->params, PARAM_QUEUE, in->queue);
    bool any = !a->params.value[PARAM_STATES];
    if (a->act == ACT_REQUEUE && any)
        params_set_list(&a->params, PARAM_STATES, failed, 1);
    if (a->act == ACT_PURGE && any)
        params_set_list(&a->params, PARAM_STATES, finished, 2);
    if (a->act == ACT_RELEASE && any && in->where)
        params_set_list(&a->params, PARAM_STATES, running, 1);
    a->section = info->by_where;
    bool fits = a->section != SEC_COUNT && adapter_has(a->adapter, a->section) &&
                !terms_lacking(a->adapter, a->section, &a->params);
    if (in->where && !fits) {
        params_copy(&a->rows.search, &a->params);
        a->rows.gather = true;
        a->section = info->by_ids;
    }
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
take_ids(struct action *a, const struct intent *in)
{
    a->section = act_infos[a->act].by_ids;
    a->rows.ids = xcalloc((size_t)in->nids + 1, sizeof *a->rows.ids);
    for (; a->rows.n < in->nids; a->rows.n++)
        a->rows.ids[a->rows.n] = xstrdup(in->ids[a->rows.n]);
}

/* Sorts the ids and drops duplicates, because a preview that counts the rows of the answer counts
 * each id once. */
void
action_sort_ids(struct action *a)
{
    int n = 0;

    if (a->rows.n > 0)
        qsort(a->rows.ids, (size_t)a->rows.n, sizeof *a->rows.ids, by_text);
    for (int i = 0; i < a->rows.n; i++) {
        if (n > 0 && !strcmp(a->rows.ids[n - 1], a->rows.ids[i]))
            free(a->rows.ids[i]);
        else
            a->rows.ids[n++] = a->rows.ids[i];
    }
    a->rows.n = n;
}

static void
take_options(struct action *a, const struct intent *in)
{
    struct params *p = &a->params;

    if (in->node)
        params_set(p, PARAM_NODE, in->node);
    params_set(p, PARAM_SCHEDULE, in->schedule);
    params_set(p, PARAM_N, in->pid);
    params_set(p, PARAM_SETTINGS, in->settings);
    params_set(p, PARAM_PAYLOAD, in->payload);
    params_set(p, PARAM_OF, in->of);
    if (a->act == ACT_PRIORITY)
        params_set(p, PARAM_N, in->priority);
    if (a->act == ACT_TIME && in->at_ms)
        params_set_time(p, PARAM_AT, in->at_ms);
    else if (in->by_ms && a->act != ACT_TIME)
        params_set_interval(p, PARAM_BY, in->by_ms);
    if (a->act == ACT_RELEASE) {
        params_set_bool(p, PARAM_EXPIRED_ONLY, !in->all_leases);
        params_set_bool(p, PARAM_FAIL, in->fail);
        params_set_bool(p, PARAM_COUNT, !in->no_count);
        params_set_bool(p, PARAM_FORCE, in->force);
    }
    if (a->act == ACT_PAUSE || a->act == ACT_RESUME || a->act == ACT_CRON_PAUSE)
        params_set_bool(p, PARAM_FORCE, in->force);
    params_set_bool(p, PARAM_RESET, in->reset);
    params_set(p, PARAM_ACTION, a->id);
    params_set(p, PARAM_REASON, in->reason);
    params_set_int(p, PARAM_LIMIT, a->how.batch_size);
    if (in->expected >= 0)
        params_set_int(p, PARAM_EXPECTED, in->expected);
}

static struct action *
from_intent(struct loop *l, struct db *actor, const struct adapter *adapter,
            const struct intent *in)
{
    struct action *a = xcalloc(1, sizeof *a);
    uuid_t id;

    a->loop = l;
    a->db = actor;
    a->adapter = adapter;
    a->act = in->act;
    a->preview.expected = in->expected;
    a->how.give_up_ms = in->give_up_ms;
    a->how.all_leases = in->all_leases;
    a->how.typed = in->typed;
    a->how.about = in->about ? xstrdup(in->about) : NULL;
    a->how.spread_ms = in->act == ACT_REQUEUE ? in->by_ms : 0;
    a->how.at_ms = in->act == ACT_TIME ? in->at_ms : 0;
    a->how.in_ms = in->act == ACT_TIME && !in->at_ms ? in->by_ms : 0;
    a->how.older_than_ms = in->act == ACT_PURGE ? in->older_than_ms : 0;
    a->how.batch_size = in->batch_size ? in->batch_size : in->ids ? BATCH_IDS : BATCH_ROWS;
    uuid_generate_random(id);
    uuid_unparse_lower(id, a->id);
    if (in->ids)
        take_ids(a, in);
    else
        take_predicate(a, in);
    a->audited = a->section != SEC_COUNT && adapter_takes(adapter, a->section, PARAM_ACTION);
    if (a->rows.gather && !a->audited && !in->batch_size)
        a->how.batch_size = BATCH_IDS;
    take_options(a, in);
    a->preview.summary = xstrdup("");
    return a;
}

/* An option of the intent for which the section has no parameter, as words that fit behind "can't";
 * NULL = there is none. */
static const char *
option_lacking(const struct action *a, const struct intent *in)
{
    const struct adapter *ad = a->adapter;

    if (in->reset && !adapter_takes(ad, a->section, PARAM_RESET))
        return "start the tries of a job over";
    if (a->how.spread_ms && !adapter_takes(ad, a->section, PARAM_BY))
        return "spread a requeue over a time";
    if (in->fail && !adapter_takes(ad, a->section, PARAM_FAIL))
        return "end the jobs as failed";
    if (in->no_count && !adapter_takes(ad, a->section, PARAM_COUNT))
        return "not count the lost try";
    return NULL;
}

/* The queue system can't do the act in this way: says why, or names the way that it has. */
static bool
refuse_missing(const struct action *a, struct err *e)
{
    const struct act_info *info = &act_infos[a->act];
    const struct adapter *ad = a->adapter;
    const enum section_id ways[] = {a->section, info->by_ids, info->by_where};
    const char *why = NULL;

    for (int i = 0; i < 3 && !why; i++)
        why = ways[i] == SEC_COUNT ? NULL : adapter_reason(ad, ways[i]);
    if (why)
        return fail(e, ERR_REFUSED, "%s can't %s: %s", adapter_title(ad), info->name, why);
    if (info->by_ids != SEC_COUNT && adapter_has(ad, info->by_ids))
        return fail(e, ERR_REFUSED, "%s can %s only jobs that are named by their ids: --id",
                    adapter_title(ad), info->name);
    return fail(e, ERR_REFUSED, "%s has no action \"%s\"", adapter_title(ad), info->name);
}

/* False: the act can't be done in this way; *e says why. */
static bool
can_be_done(struct action *a, const struct intent *in, struct err *e)
{
    const struct adapter *ad = a->adapter;

    if (a->section != SEC_COUNT && adapter_note(ad, a->section, "requires") &&
        adapter_lacks(ad, a->section))
        return fail(e, ERR_REFUSED, "%s: %s", adapter_title(ad), adapter_lacks(ad, a->section));
    if (a->section == SEC_COUNT || !adapter_has(ad, a->section))
        return refuse_missing(a, e);
    const char *lacks = option_lacking(a, in);
    if (lacks)
        return fail(e, ERR_REFUSED, "%s can't %s", adapter_title(ad), lacks);
    lacks = a->rows.gather ? terms_lacking(ad, SEC_JOBS, &a->rows.search) : NULL;
    if (lacks)
        return fail(e, ERR_REFUSED, "%s can't filter by %s", adapter_title(ad), lacks);
    return a->act != ACT_PRIORITY || act_priority_fits(ad, in->priority, e);
}

struct action *
action_new(struct loop *l, struct db *actor, const struct adapter *adapter, const struct intent *in)
{
    struct action *a = from_intent(l, actor, adapter, in);
    struct err e = {0};

    if (!can_be_done(a, in, &e)) {
        action_end(a, ACTION_REFUSED, &e);
        return a;
    }
    if (!a->audited && a->rows.ids)
        action_sort_ids(a);
    if (a->act == ACT_RELEASE && !a->rows.ids &&
        !adapter_takes(adapter, a->section, PARAM_EXPIRED_ONLY))
        a->how.all_leases = true;
    action_preview(a);
    return a;
}

/* --- the same request with other options ------------------------------------------------------ */

/* Joins the prefix and the user's reason, cut to the length that the audit accepts. */
static void
set_reason(struct action *a, const char *reason)
{
    struct buf b = {0};
    size_t len;

    if (!reason || !*reason)
        reason = NULL;
    if (!a->how.reason_prefix) {
        params_set(&a->params, PARAM_REASON, reason);
        return;
    }
    buf_printf(&b, "%s%s%s", a->how.reason_prefix, reason ? ": " : "", reason ? reason : "");
    for (len = b.len < REASON_MOST ? b.len : REASON_MOST; len < b.len && len > 0; len--)
        if (((unsigned char)b.data[len] & 0xc0) != 0x80)
            break; /* never cut within a character */
    b.data[len] = 0;
    params_set(&a->params, PARAM_REASON, b.data);
    buf_free(&b);
}

/* The user's reason without the prefix. */
static const char *
own_reason(const struct action *a)
{
    const char *reason = a->params.value[PARAM_REASON];
    size_t len = a->how.reason_prefix ? strlen(a->how.reason_prefix) : 0;

    if (!reason || !a->how.reason_prefix)
        return reason;
    return strlen(reason) > len + 2 ? reason + len + 2 : NULL;
}

struct act_options
action_options(const struct action *a)
{
    const char *reset = a->params.value[PARAM_RESET];

    return (struct act_options){.spread_ms = a->how.spread_ms,
                                .reset = reset && !strcmp(reset, "true"),
                                .reason = own_reason(a)};
}

bool
action_has_reason(const struct action *a)
{
    return adapter_takes(a->adapter, a->section, PARAM_REASON);
}

static bool
is_one_of(const char *id, const char *const *ids, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(ids[i], id))
            return true;
    return false;
}

/* Copies the ids that were named or looked up, except the n ids in `without`. */
static void
copy_ids(struct action *a, const struct action *old, const char *const *without, int n)
{
    a->rows.ids = xcalloc((size_t)old->rows.n + 1, sizeof *a->rows.ids);
    for (int i = 0; i < old->rows.n; i++)
        if (!is_one_of(old->rows.ids[i], without, n))
            a->rows.ids[a->rows.n++] = xstrdup(old->rows.ids[i]);
}

/* A copy of the action with a uuid of its own, still without ids and options. */
static struct action *
same_request(const struct action *old)
{
    struct action *a = xcalloc(1, sizeof *a);
    uuid_t id;

    *a = (struct action){
        .loop = old->loop,
        .db = old->db,
        .adapter = old->adapter,
        .act = old->act,
        .section = old->section,
        .audited = old->audited,
        .rows = {.gather = old->rows.gather,        .frozen = old->rows.frozen},
        .how = old->how,
        .preview = {.expected = old->preview.expected, .summary = xstrdup("")    }
    };
    a->how.spread_ms = 0;
    a->how.keeps_changed = false;
    a->how.reason_prefix = old->how.reason_prefix ? xstrdup(old->how.reason_prefix) : NULL;
    a->how.about = old->how.about ? xstrdup(old->how.about) : NULL;
    params_copy(&a->params, &old->params);
    params_copy(&a->rows.search, &old->rows.search);
    params_set(&a->rows.search, PARAM_CURSOR, NULL);
    uuid_generate_random(id);
    uuid_unparse_lower(id, a->id);
    params_set(&a->params, PARAM_ACTION, a->id);
    return a;
}

static void
set_spread(struct action *a, int64_t ms)
{
    a->how.spread_ms = ms;
    params_set(&a->params, PARAM_BY, NULL);
    if (ms)
        params_set_interval(&a->params, PARAM_BY, ms);
}

/* A new action with a uuid of its own and a new preview. */
struct action *
action_again(const struct action *old, const struct act_options *o)
{
    struct action *a = same_request(old);

    if (old->rows.ids && (!old->rows.gather || old->rows.frozen))
        copy_ids(a, old, NULL, 0);
    set_reason(a, o->reason);
    if (a->act == ACT_REQUEUE) {
        params_set_bool(&a->params, PARAM_RESET, o->reset);
        set_spread(a, o->spread_ms);
    }
    action_preview(a);
    return a;
}

/* --- a part of a requeue, and the rest ----------------------------------------------------------- */

static void
set_prefix(struct action *a, const struct action *whole, const char *prefix)
{
    free(a->how.reason_prefix);
    a->how.reason_prefix = xstrdup(prefix);
    set_reason(a, own_reason(whole));
    a->preview.expected = -1; /* the expected count was that of the whole action */
    params_set(&a->params, PARAM_EXPECTED, NULL);
}

struct action *
action_few(const struct action *whole, const char *const *ids, int n, const char *prefix)
{
    struct action *a = same_request(whole);

    a->section = act_infos[a->act].by_ids;
    a->rows.gather = false;
    a->how.keeps_changed = true;
    a->rows.ids = xcalloc((size_t)n + 1, sizeof *a->rows.ids);
    for (; a->rows.n < n; a->rows.n++)
        a->rows.ids[a->rows.n] = xstrdup(ids[a->rows.n]);
    set_prefix(a, whole, prefix);
    set_spread(a, 0);
    params_set_int(&a->params, PARAM_N, 0); /* the soonest priority */
    action_preview(a);
    return a;
}

struct action *
action_rest(const struct action *whole, const char *const *without, int n, const char *prefix)
{
    struct action *a = same_request(whole);

    a->rows.frozen = true;
    if (whole->rows.ids)
        copy_ids(a, whole, without, n);
    set_prefix(a, whole, prefix);
    set_spread(a, whole->how.spread_ms);
    action_preview(a);
    return a;
}
