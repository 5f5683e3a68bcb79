/*
 * The words: one table of the acts, and the sentences that the console's dialog and the command
 * line show alike. Foreign text goes through as it is; who draws it sanitises it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/action/action_parts.h"

enum { PAYLOAD_SHOWN = 300 };

/* name, title, doing, noun, undo, harmless */
/* clang-format off */
const struct act_info act_infos[ACT_COUNT] = {
    [ACT_REQUEUE] = {"requeue", "Requeue jobs", "Requeueing", "job",
        "Audit: u, for those that have not started", true},
    [ACT_RELEASE] = {"release", "Release a node's leases", "Releasing", "job",
        "none: released jobs run again; a late answer of the old worker is refused", true},
    [ACT_EXTEND] = {"extend", "Extend leases", "Extending", "lease",
        "none needed: a lease only gets longer", true},
    [ACT_PURGE] = {"purge", "Purge finished jobs", "Purging", "job",
        "none: they are gone for good", false},
    [ACT_CANCEL] = {"cancel", "Cancel jobs", "Cancelling", "job",
        "Audit: u brings back those that waited", true},
    [ACT_DISCARD] = {"discard", "Discard jobs", "Discarding", "job",
        "to history, undo brings it back: press u in Audit", true},
    [ACT_DELETE] = {"delete", "Delete jobs", "Deleting", "job",
        "none: they are gone for good, payload and all", false},
    [ACT_PRIORITY] = {"priority", "Set the priority of jobs", "Setting", "job",
        "Audit: u, for those that still have it", true},
    [ACT_TIME] = {"reschedule", "Set the time of jobs", "Setting", "job",
        "Audit: u, for those that have not started", true},
    [ACT_REDRIVE] = {"redrive", "Give dead letters back", "Redriving", "job",
        "none: they are back where they came from", true},
    [ACT_UNDO] = {"undo", "Undo an action", "Undoing", "row", "none: do the action again", true},
    [ACT_EDIT] = {"edit", "Edit and requeue a job", "Editing", "job",
        "Audit: u brings the old payload back, while the job has not started", true},
    [ACT_PUSH] = {"push", "Push a job by hand", "Pushing", "job", "cancel it", true},
    [ACT_PAUSE] = {"pause", "Pause a queue", "Pausing", "queue", "resume", true},
    [ACT_RESUME] = {"resume", "Resume a queue", "Resuming", "queue", "pause", true},
    [ACT_DRAIN] = {"drain", "Drain a node", "Draining", "node",
        "none: the worker ends after its jobs; start it again", true},
    [ACT_TERMINATE] = {"terminate", "End a node's sessions", "Ending", "session",
        "none: its transactions are rolled back and its connections closed", false},
    [ACT_QUEUE_SET] = {"queue", "Set a queue", "Setting", "queue",
        "queue with what it was (the audit keeps it)", true},
    [ACT_CRON_SET] = {"cron add", "Set a schedule", "Setting", "schedule",
        "cron add with what it was (the audit keeps it)", true},
    [ACT_CRON_PAUSE] = {"cron pause", "Pause a schedule", "Pausing", "schedule",
        "cron resume", true},
    [ACT_CRON_RESUME] = {"cron resume", "Resume a schedule", "Resuming", "schedule",
        "cron pause", true},
    [ACT_CRON_RUN] = {"cron run", "Run a schedule now", "Running", "schedule",
        "cancel its job", true},
    [ACT_CRON_REMOVE] = {"cron remove", "Remove a schedule", "Removing", "schedule",
        "cron add with what it was (the audit keeps it)", false},
    [ACT_BACKEND_CANCEL] = {"cancel query", "Cancel a statement", "Cancelling", "statement",
        "none: its transaction fails; who asked may ask again", true},
    [ACT_BACKEND_END] = {"terminate", "End a session", "Ending", "session",
        "none: its transaction is rolled back and its connection closed", false},
};
/* clang-format on */

/* by ids, by predicate, preview, becomes, target, once */
/* clang-format off */
const struct act_parts act_parts[ACT_COUNT] = {
    [ACT_REQUEUE] = {SEC_REQUEUE, SEC_REQUEUE_WHERE, SEC_REQUEUE_PREVIEW,
        "ready", PARAM_TOTAL, false},
    [ACT_RELEASE] = {SEC_RESCUE, SEC_RELEASE_WHERE, SEC_RELEASE_PREVIEW,
        "ready", PARAM_NODE, false},
    [ACT_EXTEND] = {SEC_EXTEND, SEC_EXTEND_WHERE, SEC_EXTEND_PREVIEW, "extended", PARAM_NODE, true},
    [ACT_PURGE] = {SEC_COUNT, SEC_PURGE, SEC_PURGE_PREVIEW, "purged", PARAM_QUEUE, false},
    [ACT_CANCEL] = {SEC_CANCEL, SEC_CANCEL_WHERE, SEC_CANCEL_PREVIEW,
        "cancelled", PARAM_TOTAL, false},
    [ACT_DISCARD] = {SEC_DISCARD, SEC_DISCARD_WHERE, SEC_DISCARD_PREVIEW,
        "discarded", PARAM_TOTAL, false},
    [ACT_DELETE] = {SEC_DELETE, SEC_DELETE_WHERE, SEC_DELETE_PREVIEW,
        "deleted", PARAM_TOTAL, false},
    [ACT_PRIORITY] = {SEC_PRIORITY, SEC_PRIORITY_WHERE, SEC_PRIORITY_PREVIEW,
        "changed", PARAM_TOTAL, false},
    [ACT_TIME] = {SEC_TIME, SEC_TIME_WHERE, SEC_TIME_PREVIEW, "scheduled", PARAM_TOTAL, false},
    [ACT_REDRIVE] = {SEC_REDRIVE, SEC_COUNT, SEC_COUNT, "ready", PARAM_TOTAL, false},
    [ACT_UNDO] = {SEC_COUNT, SEC_UNDO, SEC_UNDO_PREVIEW, "undone", PARAM_TOTAL, false},
    [ACT_EDIT] = {SEC_EDIT, SEC_COUNT, SEC_EDIT_PREVIEW, "ready", PARAM_TOTAL, true},
    [ACT_PUSH] = {SEC_COUNT, SEC_PUSH, SEC_PUSH_PREVIEW, "ready", PARAM_QUEUE, true},
    [ACT_PAUSE] = {SEC_COUNT, SEC_PAUSE, SEC_PAUSE_PREVIEW, "paused", PARAM_QUEUE, true},
    [ACT_RESUME] = {SEC_COUNT, SEC_RESUME, SEC_COUNT, "resumed", PARAM_QUEUE, true},
    [ACT_DRAIN] = {SEC_COUNT, SEC_DRAIN, SEC_COUNT, "draining", PARAM_NODE, true},
    [ACT_TERMINATE] = {SEC_COUNT, SEC_TERMINATE, SEC_COUNT, "ended", PARAM_NODE, true},
    [ACT_QUEUE_SET] = {SEC_COUNT, SEC_QUEUE_SET, SEC_QUEUE_SET_PREVIEW, "set", PARAM_QUEUE, true},
    [ACT_CRON_SET] = {SEC_COUNT, SEC_CRON_SET, SEC_CRON_SET_PREVIEW, "set", PARAM_SCHEDULE, true},
    [ACT_CRON_PAUSE] = {SEC_COUNT, SEC_CRON_PAUSE, SEC_COUNT, "paused", PARAM_SCHEDULE, true},
    [ACT_CRON_RESUME] = {SEC_COUNT, SEC_CRON_RESUME, SEC_COUNT, "resumed", PARAM_SCHEDULE, true},
    [ACT_CRON_RUN] = {SEC_COUNT, SEC_CRON_RUN, SEC_COUNT, "run", PARAM_SCHEDULE, true},
    [ACT_CRON_REMOVE] = {SEC_COUNT, SEC_CRON_REMOVE, SEC_COUNT, "removed", PARAM_SCHEDULE, true},
    [ACT_BACKEND_CANCEL] = {SEC_COUNT, SEC_BACKEND_SIGNAL, SEC_BACKEND_SIGNAL,
        "told to stop", PARAM_N, true},
    [ACT_BACKEND_END] = {SEC_COUNT, SEC_BACKEND_SIGNAL, SEC_BACKEND_SIGNAL,
        "told to end", PARAM_N, true},
};
/* clang-format on */

static void
add_count(struct buf *b, int64_t n, const char *noun)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n);

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf_str(b, ",");
        buf_add(b, &digits[i], 1);
    }
    buf_printf(b, " %s%s", noun, n == 1 ? "" : "s");
}

static void
add_effect(struct buf *b, const struct effect_row *row, const char *noun)
{
    if (b->len > 0)
        buf_str(b, "\n");
    add_count(b, row->n, noun);
    if (!*row->state)
        buf_printf(b, " left alone: %s", *row->why ? row->why : "not in a state for this");
    else if (*row->why)
        buf_printf(b, " → %s (%s)", row->state, row->why);
    else
        buf_printf(b, " → %s", row->state);
}

/* One line an effect: what becomes of how many, then what is left alone. */
static char *
make_what(const struct action *a)
{
    const struct tally *t = &a->effects;
    struct buf b = {0};

    buf_str(&b, "");
    for (int i = 0; i < t->n; i++)
        if (*t->rows[i].state)
            add_effect(&b, &t->rows[i], act_infos[a->act].noun);
    for (int i = 0; i < t->n; i++)
        if (!*t->rows[i].state)
            add_effect(&b, &t->rows[i], act_infos[a->act].noun);
    if (a->no_node)
        buf_printf(&b, "no node is called \"%s\", and no lease is its",
                   a->params.value[PARAM_NODE]);
    else if (b.len == 0 && !a->audited && !a->ids && action_note(a, "guard"))
        buf_printf(&b, "nothing to change: guard: %s", action_note(a, "guard"));
    else if (b.len == 0)
        buf_str(&b, "nothing matches");
    return b.data;
}

static void
add_term(struct buf *b, const char *words, const char *value)
{
    if (value)
        buf_printf(b, "%s%s %s", b->len ? ", " : "", words, value);
}

/* {"a","b"} -> a,b */
static void
add_list(struct buf *b, const char *words, const char *list)
{
    struct buf plain = {0};

    if (!list)
        return;
    buf_str(&plain, "");
    for (const char *s = list; *s; s++) {
        if (*s == '\\' && s[1])
            buf_add(&plain, ++s, 1);
        else if (!strchr("{}\"", *s))
            buf_add(&plain, s, 1);
    }
    add_term(b, words, plain.data);
    buf_free(&plain);
}

static void
add_error_term(struct buf *b, const char *error)
{
    if (error && *error == '~')
        buf_printf(b, "%serror has \"%s\"", b->len ? ", " : "", error + 1);
    else if (error)
        buf_printf(b, "%serror like \"%s\"", b->len ? ", " : "", error);
}

static void
add_clock(struct buf *b, int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char text[64];

    if (gmtime_r(&s, &tm) && strftime(text, sizeof text, "%H:%M:%S UTC", &tm))
        buf_printf(b, "%scounted at %s", b->len ? "; " : "", text);
}

/* Its beginning: what is pushed is seen before it is. */
static void
add_payload(struct buf *b, const char *payload)
{
    size_t len = payload ? strlen(payload) : 0, shown = len < PAYLOAD_SHOWN ? len : PAYLOAD_SHOWN;

    while (shown < len && shown > 0 && ((unsigned char)payload[shown] & 0xc0) == 0x80)
        shown--; /* not into the middle of a character */
    if (payload)
        buf_printf(b, "%spayload %.*s%s", b->len ? "; " : "", (int)shown, payload,
                   shown < len ? "…" : "");
}

static char *
make_where(const struct action *a)
{
    char *const *v = a->params.value;
    struct buf b = {0};

    if (a->ids && !a->gather) {
        add_count(&b, a->nids, "job");
        buf_str(&b, " by id");
    }
    add_term(&b, "queue", v[PARAM_QUEUE]);
    add_list(&b, "state", a->ids && !a->gather ? NULL : v[PARAM_STATES]);
    add_term(&b, "kind", v[PARAM_KIND]);
    add_term(&b, "node", v[PARAM_NODE]);
    add_term(&b, "schedule", v[PARAM_SCHEDULE]);
    add_term(&b, "pid", a->act >= ACT_BACKEND_CANCEL ? v[PARAM_N] : NULL);
    add_term(&b, "settings",
             a->act >= ACT_PAUSE && a->act < ACT_BACKEND_CANCEL ? v[PARAM_SETTINGS] : NULL);
    if (a->act == ACT_CRON_SET || a->act == ACT_PUSH)
        add_payload(&b, v[PARAM_PAYLOAD]);
    add_term(&b, "of action", v[PARAM_OF]);
    add_error_term(&b, v[PARAM_ERROR]);
    add_list(&b, "words", v[PARAM_WORDS]);
    add_list(&b, "not", v[PARAM_NOT_WORDS]);
    add_term(&b, "older than", v[PARAM_OLDER_THAN]);
    add_term(&b, "younger than", v[PARAM_YOUNGER_THAN]);
    add_term(&b, "tries at least", v[PARAM_MIN_TRIES]);
    add_term(&b, "tries at most", v[PARAM_TOP_TRIES]);
    add_list(&b, "in the payload at", v[PARAM_PATH]);
    add_term(&b, "payload", v[PARAM_IN_PAYLOAD]);
    add_term(&b, a->act == ACT_REQUEUE ? "spread over" : "by", v[PARAM_BY]);
    if (a->act == ACT_PURGE)
        add_term(&b, "finished before", v[PARAM_BEFORE]);
    if (a->act == ACT_RELEASE && v[PARAM_NODE])
        buf_str(&b, a->all_leases ? ", all its leases" : ", expired leases only");
    add_clock(&b, a->now_ms);
    return b.data;
}

static char *
make_challenge(const struct action *a)
{
    const char *target = NULL;

    if (action_looks_alive(a))
        target = a->params.value[PARAM_NODE];
    else if (a->act >= ACT_PAUSE) /* of one thing that has a name */
        target = a->params.value[act_parts[a->act].target];
    return target ? xstrdup(target) : xasprintf("%" PRId64, tally_sum(&a->effects, true));
}

void
action_make_texts(struct action *a)
{
    a->what = make_what(a);
    a->where = make_where(a);
    a->notes = action_make_notes(a);
    a->sql = adapter_show(a->adapter, a->section, &a->params);
    a->challenge = make_challenge(a);
}

/* --- the outcome ------------------------------------------------------------------------------ */

/* Rows that came into this state, whatever the reason; 0 when an earlier row was counted for it. */
static int64_t
sum_of_state(const struct tally *t, int i)
{
    int64_t sum = 0;

    for (int k = 0; k < t->n; k++)
        if (!strcmp(t->rows[k].state, t->rows[i].state)) {
            if (k < i)
                return 0;
            sum += t->rows[k].n;
        }
    return sum;
}

static void
add_reasons(struct buf *b, const struct action *a, const struct tally *t)
{
    int64_t skipped = tally_sum(t, false);
    const char *sign = ": ";

    for (int i = 0; i < t->n; i++) {
        const struct effect_row *row = &t->rows[i];
        if (*row->state || !*row->why)
            continue;
        if (!a->audited && row->n == skipped) /* a sentence by itself */
            buf_printf(b, "%s%s", sign, row->why);
        else
            buf_printf(b, "%s%" PRId64 " %s", sign, row->n, row->why);
        sign = ", ";
    }
}

static void
add_outcome(struct buf *b, const struct action *a)
{
    const struct tally *t = a->state == ACTION_READY ? &a->effects : &a->outcome;
    const char *noun = act_infos[a->act].noun, *sign = "";
    int64_t skipped = tally_sum(t, false);

    for (int i = 0; i < t->n; i++) {
        int64_t n = *t->rows[i].state ? sum_of_state(t, i) : 0;
        if (n == 0)
            continue;
        buf_str(b, sign);
        add_count(b, n, noun);
        buf_printf(b, " %s", t->rows[i].state);
        if (a->act >= ACT_EDIT && *t->rows[i].why)
            buf_printf(b, " (%s)", t->rows[i].why);
        sign = ", ";
    }
    if (!*sign)
        buf_str(b, a->state == ACTION_READY ? "nothing would change" : "nothing changed");
    if (!*sign && skipped == 1 && t->n == 1 && *t->rows[0].why) {
        buf_printf(b, ": %s", t->rows[0].why);
    } else if (skipped > 0) {
        buf_str(b, ", ");
        add_count(b, skipped, noun);
        buf_str(b, " left alone");
        add_reasons(b, a, t);
    }
}

static void
add_summary(struct buf *b, const struct action *a)
{
    switch (a->state) {
    case ACTION_PREVIEWING:
    case ACTION_RUNNING:
    case ACTION_WAITING:
        break;
    case ACTION_READY:
        buf_str(b, tally_sum(&a->effects, true) > 0 ? "would change: " : "");
        if (a->no_node || (!a->audited && a->effects.n == 0))
            buf_str(b, a->what);
        else
            add_outcome(b, a);
        break;
    case ACTION_DONE:
        add_outcome(b, a);
        break;
    case ACTION_STOPPED:
        if (!a->started_ms)
            buf_str(b, "nothing was done");
        else
            add_outcome(b, a);
        buf_str(b, a->started_ms ? "; stopped before the rest" : "");
        break;
    case ACTION_REFUSED:
        buf_printf(b, "refused: %s", a->error.text);
        break;
    case ACTION_FAILED:
        buf_printf(b, "failed: %s", a->error.text);
        if (a->waits)
            buf_printf(b, "; %s", a->waits);
        if (tally_sum(&a->outcome, true) > 0) {
            buf_str(b, "; done before: ");
            add_outcome(b, a);
        }
        break;
    case ACTION_DOUBTFUL:
        if (!a->audited) {
            buf_str(b, "the connection was lost and the last answer with it: only the rows "
                       "themselves tell whether the last batch was done");
            break;
        }
        buf_printf(b,
                   "the connection was lost and the last answer with it: whether batch %d was done "
                   "stands in the audit under %s",
                   a->batch, a->id);
        break;
    }
}

/* What the server does not keep must be said now. */
static void
add_footnotes(struct buf *b, const struct action *a)
{
    if (a->audited || !a->started_ms || a->state == ACTION_REFUSED)
        return;
    if (a->was_lost)
        buf_str(b, "; an answer was lost and its batch done again: rows left alone there may have "
                   "been changed by it");
    buf_str(b, "; not audited by this system");
}

void
action_make_summary(struct action *a)
{
    struct buf b = {0};

    buf_str(&b, "");
    add_summary(&b, a);
    add_footnotes(&b, a);
    free(a->summary);
    a->summary = b.data;
}

const char *
action_summary(const struct action *a)
{
    return a->summary;
}

int
action_exit_code(const struct action *a)
{
    bool some = tally_sum(&a->outcome, true) > 0;

    switch (a->state) {
    case ACTION_READY:
        return tally_sum(&a->effects, true) > 0 ? 0 : 1;
    case ACTION_DONE:
        return some ? 0 : a->was_lost ? 6 : 1;
    case ACTION_REFUSED:
        return 3;
    case ACTION_FAILED:
        if (a->act == ACT_UNDO && !some && a->error.kind == ERR_REFUSED)
            return 3; /* no value is wrong: the action can't be undone */
        return some ? 6 : err_exit_code(&a->error);
    case ACTION_PREVIEWING:
    case ACTION_RUNNING:
    case ACTION_WAITING:
    case ACTION_STOPPED:
    case ACTION_DOUBTFUL:
        break;
    }
    return 6;
}
