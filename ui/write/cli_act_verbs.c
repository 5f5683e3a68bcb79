/*
 * The verbs of acts that need only a line of the command line; model/adapter/acts.def has their
 * rows. Each verb makes an intent.
 */
#include <stdlib.h>
#include <string.h>

#include "model/action/canary.h"
#include "model/base/alias.h"
#include "model/base/clock.h"
#include "ui/cli/verbs.h"
#include "ui/term/when.h"
#include "ui/write/cli_act.h"

static const struct act_words act_defaults = ACT_WORDS_DEFAULTS;

/* The jobs that the options select: by id, or by a filter. */
static int
act_on_jobs(struct cli *c, const struct act_words *w, struct intent *in)
{
    struct params where = {0};
    struct err e = {0};

    if (w->ids.n == 0 && !w->queue && !w->error && !w->kind && w->states.n == 0)
        return cli_usage(c, "say which: --id, --queue, --state, --kind or --error");
    if (w->ids.n > 0 && (w->queue || w->error || w->kind || w->states.n > 0))
        return cli_usage(
            c, "--id names jobs; it can't be joined with --queue, --state, --kind or --error");
    if (!cli_act_states(w, &where, &e))
        return cli_usage(c, "--state: %s", e.text);
    params_set(&where, PARAM_QUEUE, w->queue);
    params_set(&where, PARAM_KIND, w->kind);
    params_set(&where, PARAM_ERROR, w->error);
    in->where = &where;
    int code = cli_act(c, w, in);
    params_done(&where);
    return code;
}

static int
run_jobs(struct cli *c, const void *options)
{
    return act_on_jobs(c, options, &(struct intent){.act = (enum act)c->verb->arg});
}

/* Acts on the one queue or node that the word names. */
static int
run_named(struct cli *c, const void *options)
{
    enum act act = (enum act)c->verb->arg;
    enum param target = act_infos[act].target;

    return cli_act(c, options,
                   &(struct intent){.act = act,
                                    .queue = target == PARAM_QUEUE ? c->words[0] : NULL,
                                    .node = target == PARAM_NODE ? c->words[0] : NULL,
                                    .schedule = target == PARAM_SCHEDULE ? c->words[0] : NULL});
}

static int
run_requeue(struct cli *c, const void *options)
{
    const struct act_words *w = options;

    if (w->canary >= 0 && w->no_canary)
        return cli_usage(c, "--canary and --no-canary exclude each other");
    if (w->canary < 0 && w->wait_ms)
        return cli_usage(c, "--wait is for --canary");
    return act_on_jobs(c, w,
                       &(struct intent){.act = ACT_REQUEUE, .reset = w->reset, .by_ms = w->by_ms});
}

static int
run_release(struct cli *c, const void *options)
{
    const struct act_words *w = options;

    if ((w->ids.n > 0) == (w->node != NULL))
        return cli_usage(c, "say which: --node NAME, or --id ID of running jobs");
    if (w->all && w->expired_only)
        return cli_usage(c, "--all and --expired-only exclude each other");
    if (w->ids.n > 0 && (w->all || w->expired_only || w->fail || w->no_count))
        return cli_usage(c, "--all, --expired-only, --fail and --no-count are for --node");
    return cli_act(c, w,
                   &(struct intent){.act = ACT_RELEASE,
                                    .node = w->node,
                                    .all_leases = w->all,
                                    .fail = w->fail,
                                    .no_count = w->no_count,
                                    .force = w->force});
}

static int
run_extend(struct cli *c, const void *options)
{
    const struct act_words *w = options;

    if (!w->by_ms)
        return cli_usage(c, "say how long: --by 5m");
    if ((w->ids.n > 0) == (w->node != NULL))
        return cli_usage(c, "say which: --id or --node");
    return cli_act(c, w, &(struct intent){.act = ACT_EXTEND, .node = w->node, .by_ms = w->by_ms});
}

/* True for the states that purge takes, also in the words of other queue systems: done, dead. */
static bool
has_ended(const char *state)
{
    const char *ours = alias_find(ALIAS_STATE, state, (int)strlen(state));

    state = ours ? ours : state;
    return !strcmp(state, "completed") || !strcmp(state, "cancelled") || !strcmp(state, "failed");
}

static int
run_purge(struct cli *c, const void *options)
{
    const struct act_words *w = options;
    struct params where = {0};
    struct err e = {0};

    if (w->older_ms < 0)
        return cli_usage(c, "say how old: --older-than 7d (with --force 0: whatever is finished)");
    if (w->older_ms < PURGE_LEAST_MS && !w->force)
        return cli_usage(c, "--older-than is an hour at least: what ended just now is what people "
                            "still look at, and nothing brings it back; --force: less than that");
    for (int i = 0; i < w->states.n; i++)
        if (!has_ended(w->states.items[i]))
            return cli_usage(
                c, "purge is for jobs that have ended: completed (done), cancelled, failed; not %s",
                w->states.items[i]);
    if (!cli_act_states(w, &where, &e))
        return cli_usage(c, "--state: %s", e.text);
    params_set(&where, PARAM_QUEUE, w->queue);
    int code = cli_act(
        c, w, &(struct intent){.act = ACT_PURGE, .where = &where, .older_than_ms = w->older_ms});
    params_done(&where);
    return code;
}

static int
run_pause(struct cli *c, const void *options)
{
    return cli_act(c, options,
                   &(struct intent){.act = (enum act)c->verb->arg,
                                    .queue = c->words[0],
                                    .force = ((const struct act_words *)options)->force});
}

static int
run_priority(struct cli *c, const void *options)
{
    return act_on_jobs(c, options, &(struct intent){.act = ACT_PRIORITY, .priority = c->words[0]});
}

static int
run_reschedule(struct cli *c, const void *options)
{
    struct when w;
    struct err e = {0};

    if (!when_parse(c->words[0], clock_wall_ms(), false, &w, &e))
        return cli_usage(c, "%s", e.text);
    return act_on_jobs(c, options,
                       &(struct intent){.act = ACT_TIME, .at_ms = w.at_ms, .by_ms = w.in_ms});
}

static int
run_undo(struct cli *c, const void *options)
{
    return cli_act(c, options, &(struct intent){.act = ACT_UNDO, .of = c->words[0]});
}

/* --- the table -------------------------------------------------------------------------------- */

/* clang-format off */
#define F(f) offsetof(struct act_words, f)
#define ID {"id", 'i', "ID", CLI_LIST, F(ids), "these jobs (ids, or the 8 digits that lists show; may be repeated)", 0, 0}
#define QUEUE {"queue", 'q', "Q", CLI_TEXT, F(queue), "of this queue", 0, 0}
#define STATE {"state", 's', "STATES", CLI_LIST, F(states), "in these states", 0, 0}
#define NODE {"node", 0, "NAME", CLI_TEXT, F(node), "of this node", 0, 0}
#define KIND {"kind", 'k', "K", CLI_TEXT, F(kind), "of this kind", 0, 0}
#define ERROR {"error", 'e', "TEXT", CLI_TEXT, F(error), "the group of this error; ~TEXT: a part of it", 0, 0}

static const struct cli_option jobs_options[] = {
    ID, QUEUE, STATE, KIND, ERROR,
    ACT_OPTIONS, {0}};
static const struct cli_option requeue_options[] = {
    ID, QUEUE, STATE,
    KIND, ERROR,
    {"reset-tries", 0, NULL, CLI_FLAG, F(reset), "tries start over", 0, 0},
    {"canary", 0, "[N]", CLI_SOME, F(canary), "try N of them first (10), ahead of others; the rest only if none failed again", 1, CANARY_MOST},
    {"wait", 0, "T", CLI_TIME, F(wait_ms), "with --canary: until each has ended, at most this long (60s)", 1000, 86400000},
    {"no-canary", 0, NULL, CLI_FLAG, F(no_canary), "all at once (the default)", 0, 0},
    {"spread", 0, "T", CLI_TIME, F(by_ms), "not at once, but evenly over this time: 10m, 2h", 1, INT64_C(30) * 86400000},
    ACT_OPTIONS, {0}};
static const struct cli_option release_options[] = {
    NODE,
    {"id", 'i', "ID", CLI_LIST, F(ids), "running jobs whose worker is gone, if the queue system records that", 0, 0},
    {"expired-only", 0, NULL, CLI_FLAG, F(expired_only), "expired leases only (the default)", 0, 0},
    {"all", 0, NULL, CLI_FLAG, F(all), "all its leases", 0, 0},
    {"fail", 0, NULL, CLI_FLAG, F(fail), "the jobs end as failed instead of going back", 0, 0},
    {"no-count", 0, NULL, CLI_FLAG, F(no_count), "the lost try does not count", 0, 0},
    {"force", 0, NULL, CLI_FLAG, F(force), "although the node looks alive", 0, 0},
    ACT_OPTIONS, {0}};
static const struct cli_option extend_options[] = {
    ID, NODE,
    {"by", 0, "T", CLI_TIME, F(by_ms), "from now: 90s, 5m, 2h", 1, INT64_MAX / 1000},
    ACT_OPTIONS, {0}};
static const struct cli_option purge_options[] = {
    QUEUE, STATE,
    {"older-than", 0, "T", CLI_TIME, F(older_ms), "finished longer ago: 12h, 7d; an hour at least", 0, INT64_MAX / 1000},
    {"force", 0, NULL, CLI_FLAG, F(force), "with a shorter time, too: 5m, 0", 0, 0},
    ACT_OPTIONS, {0}};
static const struct cli_option pause_options[] = {
    {"create", 0, NULL, CLI_FLAG, F(force), "also a queue of which no job is known", 0, 0},
    ACT_OPTIONS, {0}};
static const struct cli_option plain_options[] = {ACT_OPTIONS, {0}};

#define VERB(id, place, verb, function, option_rows, word, sentence, example, another)              \
    [place] = {.name = (verb), .words = (word), .help = (sentence), .examples = {(example), (another)},   \
               .min_words = sizeof(word) > 1,                                                       \
               .max_words = sizeof(word) > 1, .options = (option_rows), .size = sizeof(struct act_words), \
               .defaults = &act_defaults, .run = (function), .arg = ACT_##id},
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) verb
const struct cli_verb verbs_act[ACT_COUNT + 1] = { /* the last row stays zero */
#include "model/adapter/acts.def"
};
/* clang-format on */
