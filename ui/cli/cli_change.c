/*
 * The verbs that change or remove waiting jobs, by id or by what they have in common: cancel,
 * discard, delete, priority, reschedule; and undo.
 */
#include <stdio.h>

#include "model/base/clock.h"
#include "ui/cli/cli_act.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/verbs.h"
#include "ui/term/when.h"

static const struct act_words change_defaults = ACT_WORDS_DEFAULTS;

static int
change(struct cli *c, const struct act_words *w, struct intent *in)
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
run_cancel(struct cli *c, const void *options)
{
    return change(c, options, &(struct intent){.act = ACT_CANCEL});
}

static int
run_discard(struct cli *c, const void *options)
{
    return change(c, options, &(struct intent){.act = ACT_DISCARD});
}

static int
run_delete(struct cli *c, const void *options)
{
    return change(c, options, &(struct intent){.act = ACT_DELETE});
}

static int
run_priority(struct cli *c, const void *options)
{
    return change(c, options, &(struct intent){.act = ACT_PRIORITY, .priority = c->words[0]});
}

static int
run_reschedule(struct cli *c, const void *options)
{
    struct when w;
    struct err e = {0};

    if (!when_parse(c->words[0], clock_wall_ms(), false, &w, &e))
        return cli_usage(c, "%s", e.text);
    return change(c, options,
                  &(struct intent){.act = ACT_TIME, .at_ms = w.at_ms, .by_ms = w.in_ms});
}

static int
run_redrive(struct cli *c, const void *options)
{
    return change(c, options, &(struct intent){.act = ACT_REDRIVE});
}

static int
run_undo(struct cli *c, const void *options)
{
    return cli_act(c, options, &(struct intent){.act = ACT_UNDO, .of = c->words[0]});
}

/* clang-format off */
#define F(f) offsetof(struct act_words, f)
static const struct cli_option change_options[] = {
    {"id", 'i', "ID", CLI_LIST, F(ids), "these jobs (ids, or the 8 digits that lists show; may be repeated)", 0, 0},
    {"queue", 'q', "Q", CLI_TEXT, F(queue), "of this queue", 0, 0},
    {"state", 's', "STATES", CLI_LIST, F(states), "in these states", 0, 0},
    {"kind", 'k', "K", CLI_TEXT, F(kind), "of this kind", 0, 0},
    {"error", 'e', "TEXT", CLI_TEXT, F(error), "the group of this error; ~TEXT: a part of it", 0, 0},
    ACT_OPTIONS, {0}};
static const struct cli_option undo_options[] = {ACT_OPTIONS, {0}};

#define VERB(n, w, h, words_n, o, r)                                                               \
    {.name = (n), .words = (w), .help = (h), .min_words = (words_n), .max_words = (words_n), .options = (o),   \
     .size = sizeof(struct act_words), .defaults = &change_defaults, .run = (r)}
const struct cli_verb verbs_change[] = {
    VERB("cancel", "", "End waiting jobs; ask running ones to end", 0, change_options, run_cancel),
    VERB("discard", "", "Put failed or waiting jobs into history; undo brings them back", 0, change_options, run_discard),
    VERB("delete", "", "Delete failed or waiting jobs for good", 0, change_options, run_delete),
    VERB("priority", "N", "Set the priority of waiting jobs: 0 (soonest) to 9, or what their queue system has", 1, change_options, run_priority),
    VERB("reschedule", "WHEN", "Set when waiting jobs are due: now, 10m, 18:30, \"2026-11-30 06:00\"", 1, change_options, run_reschedule),
    VERB("redrive", "", "Bring dead letters back to the queue that they came from", 0, change_options, run_redrive),
    VERB("undo", "ACTION", "Take an action back, as far as its rows are as it left them", 1, undo_options, run_undo),
    {0},
};
/* clang-format on */
