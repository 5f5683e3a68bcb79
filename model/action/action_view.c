/*
 * What a dialog or a verb reads of an action and of an act: what the preview has counted, how it
 * must be confirmed, which call of the system an act copies, its risks, what it can't tell; and its
 * record for the messages, if the server keeps none.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/action_parts.h"
#include "model/adapter/terms.h"

/* --- the preview --------------------------------------------------------------------------------- */

int64_t
action_count(const struct action *a)
{
    return row_counts_sum(&a->preview.effects, true);
}

int64_t
action_hollow(const struct action *a)
{
    int64_t n = 0;

    for (int i = 0; i < a->preview.effects.n; i++)
        if (a->act == ACT_RELEASE && !strcmp(a->preview.effects.rows[i].state, "ended"))
            n += a->preview.effects.rows[i].n;
    return n;
}

int64_t
action_skips(const struct action *a)
{
    return row_counts_sum(&a->preview.effects, false);
}

const struct effect_row *
action_effects(const struct action *a, int *n)
{
    *n = a->preview.effects.n;
    return a->preview.effects.rows;
}

const struct effect_row *
action_outcome(const struct action *a, int *n)
{
    *n = a->done.counts.n;
    return a->done.counts.rows;
}

const struct node_row *
action_evidence(const struct action *a)
{
    return a->preview.evidence;
}

int64_t
action_counted_ms(const struct action *a)
{
    return a->preview.now_ms;
}

/* True if the node seems to live. The rule is that of the SQL function node_alive, and the node's
 * database session counts, too. A node that has registered lives while its heartbeat is fresh. A
 * node that never registered lives while it has leases that have not expired. */
bool
action_looks_alive(const struct action *a)
{
    const struct node_row *node = a->preview.evidence;

    if (a->act != ACT_RELEASE || !node)
        return false;
    if (node_state(node) == NODE_UNKNOWN && node->leases == FIELD_NULL)
        return a->how.all_leases && node->running != 0;
    if (node_state(node) == NODE_UNKNOWN)
        return a->how.all_leases && node->leases > node->expired;
    return node_state(node) != NODE_DEAD || node->session_alive == 1;
}

bool
action_takes_held(const struct action *a)
{
    return a->act == ACT_RELEASE && a->how.all_leases && a->preview.evidence &&
           a->preview.evidence->leases > a->preview.evidence->expired;
}

const char *
action_waits(const struct action *a)
{
    return a->run.waits;
}

const char *
action_title(const struct action *a)
{
    if (a->act != ACT_RELEASE || !a->rows.ids)
        return act_infos[a->act].title;
    return a->rows.n == 1 ? "Give back a running job" : "Give back running jobs";
}

const char *
action_what(const struct action *a)
{
    return a->preview.what ? a->preview.what : "";
}

const char *
action_where(const struct action *a)
{
    return a->preview.where ? a->preview.where : "";
}

const char *
action_these(const struct action *a)
{
    return a->preview.these ? a->preview.these : "";
}

const char *
action_param(const struct action *a, enum param p)
{
    return a->params.value[p];
}

const char *
action_about(const struct action *a)
{
    return a->how.about ? a->how.about : "";
}

const char *
action_sql(const struct action *a)
{
    return a->preview.sql ? a->preview.sql : "";
}

const char *
action_challenge(const struct action *a)
{
    return a->preview.challenge ? a->preview.challenge : "";
}

enum confirm
action_confirm(const struct action *a, bool production)
{
    int64_t n = action_count(a);

    if (n == 0)
        return CONFIRM_NOTHING;
    if (n >= 100 || !act_infos[a->act].harmless || production || a->how.typed ||
        action_note(a, "confirm") || action_looks_alive(a))
        return CONFIRM_TYPE;
    if (a->act == ACT_BACKEND_CANCEL)
        return CONFIRM_DIALOG;
    return n == 1 ? CONFIRM_KEY : CONFIRM_DIALOG;
}

/* --- notes ---------------------------------------------------------------------------------------- */

/* One more line; a warning begins with "! ". */
static void
add_line(struct buf *b, const char *text)
{
    buf_printf(b, "%s%s", b->len ? "\n" : "", text);
}

static bool
is_unofficial(const char *official)
{
    return !strncmp(official, "no", 2) && (!official[2] || strchr(" ,;:(", official[2]));
}

/* The note `official`: "no", "no (why)", or the call of the system that the act copies. */
static void
add_official(struct buf *b, const struct action *a)
{
    const char *official = action_note(a, "official");

    if (!official)
        return;
    if (!is_unofficial(official)) {
        buf_printf(b, "%sas the system's own: %s", b->len ? "\n" : "", official);
        return;
    }
    const char *why = official + 2 + strspn(official + 2, " ,;:");
    buf_printf(b, "%s! unofficial: %s has no call for this%s%s", b->len ? "\n" : "",
               adapter_title(a->adapter), *why ? " " : "", why);
}

char *
action_make_notes(const struct action *a)
{
    const char *confirm = action_note(a, "confirm");
    const char *windowed =
        a->rows.gather ? terms_windowed(a->adapter, SEC_JOBS, &a->rows.search) : NULL;
    struct buf b = {0};

    buf_str(&b, "");
    if (confirm)
        buf_printf(&b, "! %s", confirm);
    add_official(&b, a);
    if (action_note(a, "mode"))
        add_line(&b, "takes effect when its workers see it");
    if (action_note(a, "dry"))
        add_line(&b, "! it can't be tried beforehand: what it changes is assumed");
    if (a->run.clash)
        add_line(&b, "! of jobs that share a unique key only one changes");
    if (windowed && !a->audited)
        buf_printf(&b, "%s! %s was looked for among the newest jobs only", b.len ? "\n" : "",
                   windowed);
    if (a->act == ACT_RELEASE && !a->rows.ids &&
        !adapter_takes(a->adapter, a->section, PARAM_EXPIRED_ONLY))
        add_line(&b, "! it can't tell expired leases from others: all that the guard lets through");
    return b.data;
}

const char *
action_notes(const struct action *a)
{
    return a->preview.notes ? a->preview.notes : "";
}

const char *
action_undo(const struct action *a)
{
    const char *undo = act_infos[a->act].undo;

    if (a->audited)
        return undo;
    if (a->act == ACT_RELEASE)
        return "none: released jobs run again, also where the old worker still lives";
    return strstr(undo, "udit") ? "none from here: this system keeps no record of it" : undo;
}

bool
action_audited(const struct action *a)
{
    return a->audited;
}

void
action_record(const struct action *a, struct buf *out)
{
    const char *reason = a->params.value[PARAM_REASON];

    buf_printf(out, "%s by %s on %s/%s: %s: %s", act_infos[a->act].name, db_user(a->db),
               db_host(a->db), db_name(a->db), action_where(a), action_summary(a));
    if (reason)
        buf_printf(out, "; reason: %s", reason);
}

bool
act_priority_fits(const struct adapter *a, const char *text, struct err *e)
{
    const char *range = adapter_note(a, SEC_PRIORITY, "range");
    long low = INT_MIN, high = INT_MAX;
    char *end;

    if (range) {
        low = strtol(range, &end, 10);
        high = strtol(end + 2, NULL, 10); /* "1..4", checked when the file was read */
    }
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end > text && !*end && !errno && n >= low && n <= high)
        return true;
    if (!range)
        return fail(e, ERR_USAGE, "a priority is a number, not \"%s\"", text);
    return fail(e, ERR_USAGE, "a priority is %ld to %ld here, not \"%s\"", low, high, text);
}

struct act_mark
act_mark(enum act act, bool by_ids, const struct adapter *a)
{
    const struct act_info *info = &act_infos[act];
    enum section_id s = by_ids && info->by_ids != SEC_COUNT ? info->by_ids : info->by_where;

    if (s == SEC_COUNT || !adapter_has(a, s))
        s = info->by_ids;
    if (s == SEC_COUNT || !adapter_has(a, s))
        return (struct act_mark){0};
    const char *official = adapter_note(a, s, "official");
    return (struct act_mark){.unofficial = official && is_unofficial(official),
                             .danger = adapter_note(a, s, "confirm"),
                             .guard = adapter_note(a, s, "guard")};
}

const char *
act_why_not(enum act act, const struct adapter *a, const struct role_row *role)
{
    const enum section_id ways[] = {act_infos[act].by_ids, act_infos[act].by_where};
    const char *why = NULL;
    bool can = false;

    for (int i = 0; i < 2; i++) {
        if (ways[i] == SEC_COUNT)
            continue;
        can = can || adapter_has(a, ways[i]);
        if (why)
            continue;
        if (adapter_note(a, ways[i], "requires")) /* the section is there, but this login, version
                                                     or table lacks something */
            why = adapter_lacks(a, ways[i]);
        else
            why = adapter_reason(a, ways[i]);
    }
    if (!can)
        return why ? why : "this queue system has no such action";
    if (role && role->can_act != 1)
        return *role->why ? role->why : "your role may only look";
    return NULL;
}

/* True if there is no other way to see what s would change than to run its statement. */
static bool
needs_trial(const struct adapter *a, enum section_id s, enum section_id preview, bool by_ids)
{
    if (s == SEC_COUNT || !adapter_has(a, s) || adapter_takes(a, s, PARAM_ACTION))
        return false;
    return preview == SEC_COUNT || !adapter_has(a, preview) ||
           (by_ids && !adapter_takes(a, preview, PARAM_IDS));
}

bool
act_is_tried(enum act act, const struct adapter *a)
{
    const struct act_info *info = &act_infos[act];

    return needs_trial(a, info->by_ids, info->preview, true) ||
           needs_trial(a, info->by_where, info->preview, false);
}
