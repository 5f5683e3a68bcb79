/*
 * The table of the acts, from model/adapter/acts.def, and the sentences that the dialog of the
 * console and the command line show alike. Foreign text is passed on unchanged; the code that draws
 * it must sanitise it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/action/action_parts.h"

enum { PAYLOAD_SHOWN = 300 };

/* clang-format off */
#define OWN(id, text) SEC_##id
#define SAME(id) SEC_##id
#define NONE SEC_COUNT
#define INFO(...) __VA_ARGS__
#define ACT(id, ids, where, looks, info, verb, keys)                                               \
    [ACT_##id] = {.by_ids = ids, .by_where = where, .preview = looks, info},
const struct act_info act_infos[ACT_COUNT] = {
#include "model/adapter/acts.def"
};
/* clang-format on */

void
action_add_count(struct buf *b, int64_t n, const char *noun)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n);

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf_str(b, ",");
        buf_add(b, &digits[i], 1);
    }
    if (noun)
        buf_printf(b, " %s%s", noun, n == 1 ? "" : "s");
}

/* What the rows of one state are. A release also ends leases whose jobs somebody has deleted. */
static const char *
noun_of(const struct action *a, const char *state)
{
    return a->act == ACT_RELEASE && !strcmp(state, "ended") ? "lease" : act_infos[a->act].noun;
}

static void
add_effect(struct buf *b, const struct action *a, const struct effect_row *row)
{
    if (b->len > 0)
        buf_str(b, "\n");
    action_add_count(b, row->n, noun_of(a, row->state));
    if (!*row->state && !strcmp(row->why, "its lease has not expired"))
        buf_str(b, row->n == 1 ? " stays: its lease has not expired (\"all\" takes it, too)"
                               : " stay: their leases have not expired (\"all\" takes them, too)");
    else if (!*row->state)
        buf_printf(b, " left alone: %s", *row->why ? row->why : "not in a state for this");
    else if (*row->why)
        buf_printf(b, " → %s (%s)", row->state, row->why);
    else
        buf_printf(b, " → %s", row->state);
}

/* One line for each effect: how many rows get which state, then what is left alone. */
static char *
make_what(const struct action *a)
{
    const struct row_counts *t = &a->preview.effects;
    struct buf b = {0};

    buf_str(&b, "");
    for (int i = 0; i < t->n; i++)
        if (*t->rows[i].state)
            add_effect(&b, a, &t->rows[i]);
    for (int i = 0; i < t->n; i++)
        if (!*t->rows[i].state)
            add_effect(&b, a, &t->rows[i]);
    if (a->preview.no_node)
        buf_printf(&b, "no node is called \"%s\", and no lease is its",
                   a->params.value[PARAM_NODE]);
    else if (a->preview.no_queue)
        buf_printf(&b, "no job was ever seen in queue \"%s\"", a->params.value[PARAM_QUEUE]);
    else if (b.len == 0 && !a->audited && !a->rows.ids && action_note(a, "guard"))
        buf_printf(&b, "nothing to change: %s takes %s", act_infos[a->act].name,
                   action_note(a, "guard"));
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
        buf_printf(b, "%serror like \"%s\"", b->len ? ", " : "", error + (*error == ' '));
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

/* The due time in the zone of the user, with its day and zone: the user may have typed only the
 * hour. */
static void
add_due(struct buf *b, int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char text[64];

    if (ms && localtime_r(&s, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M %Z", &tm))
        add_term(b, "due", text);
}

/* The beginning of the payload, so that the user sees what will be pushed. */
static void
add_payload(struct buf *b, const char *payload)
{
    size_t len = payload ? strlen(payload) : 0, shown = len < PAYLOAD_SHOWN ? len : PAYLOAD_SHOWN;

    while (shown < len && shown > 0 && ((unsigned char)payload[shown] & 0xc0) == 0x80)
        shown--; /* never cut within a character */
    if (payload)
        buf_printf(b, "%spayload %.*s%s", b->len ? "; " : "", (int)shown, payload,
                   shown < len ? "…" : "");
}

static void
make_where(struct action *a)
{
    enum param target = act_infos[a->act].target;
    char *const *v = a->params.value;
    struct buf b = {0};

    if (a->rows.ids && !a->rows.gather) {
        action_add_count(&b, a->rows.n, "job");
        buf_str(&b, " by id");
    }
    add_term(&b, "queue", v[PARAM_QUEUE]);
    add_list(&b, "state", a->rows.ids && !a->rows.gather ? NULL : v[PARAM_STATES]);
    add_term(&b, "kind", v[PARAM_KIND]);
    add_term(&b, "node", v[PARAM_NODE]);
    add_term(&b, "schedule", v[PARAM_SCHEDULE]);
    add_term(&b, "pid", target == PARAM_N ? v[PARAM_N] : NULL);
    add_term(&b, "settings", target != PARAM_IDS && target != PARAM_N ? v[PARAM_SETTINGS] : NULL);
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
    add_due(&b, a->how.at_ms ? a->how.at_ms : a->how.in_ms ? a->preview.now_ms + a->how.in_ms : 0);
    if (a->act == ACT_PURGE)
        add_term(&b, "finished before", v[PARAM_BEFORE]);
    if (a->act == ACT_RELEASE && v[PARAM_NODE])
        buf_str(&b, a->how.all_leases ? ", all its leases" : ", expired leases only");
    a->preview.these = xstrdup(b.data ? b.data : "");
    add_clock(&b, a->preview.now_ms);
    a->preview.where = b.data;
}

static char *
make_challenge(const struct action *a)
{
    const char *target = NULL;

    if (action_looks_alive(a))
        target = a->params.value[PARAM_NODE];
    else if (act_infos[a->act].target != PARAM_IDS)
        target = a->params.value[act_infos[a->act].target];
    return target ? xstrdup(target)
                  : xasprintf("%" PRId64, row_counts_sum(&a->preview.effects, true));
}

void
action_make_texts(struct action *a)
{
    a->preview.what = make_what(a);
    make_where(a);
    a->preview.notes = action_make_notes(a);
    a->preview.sql = adapter_show(a->adapter, a->section, &a->params);
    a->preview.challenge = make_challenge(a);
}

/* --- the outcome ------------------------------------------------------------------------------ */

/* The number of rows that came into the state of row i, for any reason; 0 if an earlier row has the
 * same state, because the sum was shown there. */
static int64_t
sum_of_state(const struct row_counts *t, int i)
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
add_reasons(struct buf *b, const struct action *a, const struct row_counts *t)
{
    int64_t skipped = row_counts_sum(t, false);
    const char *sign = ": ";

    for (int i = 0; i < t->n; i++) {
        const struct effect_row *row = &t->rows[i];
        if (*row->state || !*row->why)
            continue;
        if (!a->audited && row->n == skipped) /* all skipped rows have this one reason */
            buf_printf(b, "%s%s", sign, row->why);
        else
            buf_printf(b, "%s%" PRId64 " %s", sign, row->n, row->why);
        sign = ", ";
    }
}

static void
add_outcome(struct buf *b, const struct action *a)
{
    const struct row_counts *t = a->state == ACTION_READY ? &a->preview.effects : &a->done.counts;
    const char *sign = "";
    int64_t skipped = row_counts_sum(t, false);

    for (int i = 0; i < t->n; i++) {
        int64_t n = *t->rows[i].state ? sum_of_state(t, i) : 0;
        if (n == 0)
            continue;
        buf_str(b, sign);
        action_add_count(b, n, noun_of(a, t->rows[i].state));
        buf_printf(b, " %s", t->rows[i].state);
        if (act_infos[a->act].says_why && *t->rows[i].why)
            buf_printf(b, " (%s)", t->rows[i].why);
        sign = ", ";
    }
    if (!*sign)
        buf_str(b, a->state == ACTION_READY ? "nothing would change" : "nothing changed");
    if (!*sign && skipped == 1 && t->n == 1 && *t->rows[0].why) {
        buf_printf(b, ": %s", t->rows[0].why);
    } else if (skipped > 0) {
        buf_str(b, ", ");
        action_add_count(b, skipped, act_infos[a->act].noun);
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
        buf_str(b, row_counts_sum(&a->preview.effects, true) > 0 ? "would change: " : "");
        if (a->preview.no_node || a->preview.no_queue || (!a->audited && a->preview.effects.n == 0))
            buf_str(b, a->preview.what);
        else
            add_outcome(b, a);
        break;
    case ACTION_DONE:
        add_outcome(b, a);
        break;
    case ACTION_STOPPED:
        if (!a->run.started_ms)
            buf_str(b, "nothing was done");
        else
            add_outcome(b, a);
        buf_str(b, a->run.started_ms ? "; stopped before the rest" : "");
        break;
    case ACTION_REFUSED:
        buf_printf(b, "refused: %s", a->error.text);
        break;
    case ACTION_FAILED:
        buf_printf(b, "failed: %s", a->error.text);
        if (a->run.waits)
            buf_printf(b, "; %s", a->run.waits);
        if (row_counts_sum(&a->done.counts, true) > 0) {
            buf_str(b, "; done before: ");
            add_outcome(b, a);
        }
        break;
    case ACTION_DOUBTFUL:
        if (a->error.kind == ERR_DENIED) { /* of another place than the batch was sent to first */
            buf_printf(b,
                       "%s; before that the answer of batch %d was lost: whether it was done, tell "
                       "the rows and the audit of the old place (action %s)",
                       a->error.text, a->run.batch, a->id);
            break;
        }
        if (!a->audited) {
            buf_str(b, "the connection was lost before the last answer: look at the rows to see "
                       "whether the last batch was done");
            break;
        }
        buf_printf(b,
                   "the connection was lost before the last answer: look in the audit under %s "
                   "whether batch %d was done",
                   a->id, a->run.batch);
        break;
    }
}

/* If the server keeps no record of the details, the message says them. */
static void
add_footnotes(struct buf *b, const struct action *a)
{
    if (a->audited || !a->run.started_ms || a->state == ACTION_REFUSED)
        return;
    if (a->run.was_lost)
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
    free(a->preview.summary);
    a->preview.summary = b.data;
}

const char *
action_summary(const struct action *a)
{
    return a->preview.summary;
}

int
action_exit_code(const struct action *a)
{
    bool some = row_counts_sum(&a->done.counts, true) > 0;

    switch (a->state) {
    case ACTION_READY:
        return row_counts_sum(&a->preview.effects, true) > 0 ? 0 : 1;
    case ACTION_DONE:
        return some ? 0 : a->run.was_lost ? 6 : 1;
    case ACTION_REFUSED:
        return 3;
    case ACTION_FAILED:
        if (a->act == ACT_UNDO && !some && a->error.kind == ERR_REFUSED)
            return 3; /* the user's words are right, but the action can't be undone */
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
