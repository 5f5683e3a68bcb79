/* What the verbs that act share: their common options, and the steps from an intent to the last
 * line: preview, question, outcome (ui/write/cli_act.c). */
#ifndef UI_WRITE_CLI_ACT_H
#define UI_WRITE_CLI_ACT_H

#include "model/action/action.h"
#include "ui/cli/cli.h"

struct act_words { /* the first member of a verb's own options struct */
    struct cli_list ids, states;
    const char *queue, *node, *kind, *error, *reason;
    int64_t by_ms, older_ms, expect; /* older_ms, expect: -1 = not given */
    int canary;                      /* jobs of the canary; 0 = as many as usual, -1 = none */
    int64_t wait_ms;                 /* time limit for the canary; 0 = not given */
    bool no_canary;
    bool dry_run, yes, json, reset, expired_only, all, fail, no_count, force;
};
/* clang-format off */
#define ACT_WORDS_DEFAULTS {.expect = -1, .older_ms = -1, .canary = -1}

/* The options that every acting verb takes, as rows of its table. */
#define ACT_OPTION(f) offsetof(struct act_words, f)
#define ACT_OPTIONS                                                                                \
    {"dry-run", 0, NULL, CLI_FLAG, ACT_OPTION(dry_run), "show what would happen, change nothing", 0, 0}, \
    {"yes", 'y', NULL, CLI_FLAG, ACT_OPTION(yes), "do not ask", 0, 0},                             \
    {"reason", 'r', "TEXT", CLI_TEXT, ACT_OPTION(reason), "why, for the audit", 0, 0},             \
    {"expect", 0, "N", CLI_BIG, ACT_OPTION(expect), "refuse unless exactly N would change", 0, INT64_MAX}, \
    {"json", 0, NULL, CLI_FLAG, ACT_OPTION(json), "the outcome as one JSON object", 0, 0}
/* clang-format on */

/* Reads --state: the names of the jobs list, and "done"; false = a name is unknown. */
bool cli_act_states(const struct act_words *w, struct params *where, struct err *e);
/* Adds the common options to the intent and runs it. Returns the exit code. */
int cli_act(struct cli *c, const struct act_words *w, struct intent *in);

#endif
