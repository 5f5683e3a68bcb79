/*
 * `queuetop help`: about the program, about a verb, about the words that other queue systems
 * use, or about the conditions that count as wrong.
 */
#include <stdio.h>
#include <string.h>

#include "model/base/alias.h"
#include "ui/cli/cli_parts.h"
#include "ui/cli/verbs.h"
#include "ui/facts/checks.h"

enum { SYSTEMS = 8, COLUMNS = SYSTEMS + 1 };

static const char *const titles[COLUMNS] = {"HERE",    "River",   "Oban",
                                            "Sidekiq", "GoodJob", "Solid Queue",
                                            "pg-boss", "BullMQ",  "graphile-worker"};

/* clang-format off */
/* Our word, then the words of the others in the order of the titles; "-" = they have no such thing.
 */
static const char *const words[][COLUMNS] = {
    {"ready", "available", "available", "enqueued", "queued", "ready", "created", "waiting", "run_at is over"},
    {"scheduled", "scheduled", "scheduled", "scheduled", "scheduled", "scheduled", "created", "delayed", "run_at to come"},
    {"retry", "retryable", "retryable", "retries", "retried", "scheduled", "retry", "delayed", "run_at to come"},
    {"running", "running", "executing", "busy", "running", "claimed", "active", "active", "locked"},
    {"failed", "discarded", "discarded", "dead", "discarded", "failed", "failed", "failed", "permanently failed"},
    {"blocked", "pending", "suspended", "-", "-", "blocked", "-", "waiting-children", "-"},
    {"completed", "completed", "completed", "-", "succeeded", "finished", "completed", "completed", "-"},
    {"cancelled", "cancelled", "cancelled", "-", "-", "-", "cancelled", "-", "-"},
    {"push", "insert", "insert", "push", "enqueue", "enqueue", "send", "add", "add_job"},
    {"requeue", "retry", "retry_job", "retry", "retry", "retry", "retry", "retry", "reschedule_jobs"},
    {"cancel", "cancel", "cancel_job", "-", "-", "-", "cancel", "-", "-"},
    {"discard", "-", "-", "kill", "discard", "-", "-", "-", "permanently_fail_jobs"},
    {"delete", "delete", "delete_job", "delete", "destroy", "discard", "deleteJob", "remove", "complete_jobs"},
    {"release", "rescue", "rescue", "-", "-", "prune", "-", "stalled", "force_unlock_workers"},
    {"node", "client", "node", "process", "process", "process", "-", "worker", "worker"},
    {"tries", "attempt", "attempt", "retry_count", "executions", "executions", "retry_count", "attemptsMade", "attempts"},
    {"kind", "kind", "worker", "class", "job_class", "class_name", "-", "name", "task_identifier"},
};
/* clang-format on */
enum { WORDS = sizeof words / sizeof *words };

static void
print_row(const char *const *row, const int *widths)
{
    for (int k = 0; k < COLUMNS; k++)
        printf("%-*s%s", k < COLUMNS - 1 ? widths[k] : 0, row[k], k < COLUMNS - 1 ? "  " : "\n");
}

static void
print_aliases(void)
{
    static const char *const names[] = {[ALIAS_ACT] = "verbs and commands",
                                        [ALIAS_KEY] = "keys of the filter",
                                        [ALIAS_STATE] = "states"};

    printf("\nThese words are taken for ours:\n");
    for (int kind = ALIAS_ACT; kind <= ALIAS_STATE; kind++) {
        printf("  %s:", names[kind]);
        const char *comma = "";
        for (const struct alias *a = aliases; a->word; a++)
            if ((int)a->kind == kind) {
                printf("%s %s = %s", comma, a->word, a->ours);
                comma = ",";
            }
        printf("\n");
    }
    printf("\nMind: discard moves a job to history, and undo brings it back; elsewhere it deletes, "
           "or\n"
           "\"discarded\" is the state that is failed here. purge deletes finished jobs, never "
           "those that\n"
           "wait. drain is for a node, which ends after its jobs; it never empties a queue.\n");
}

static int
print_words(const struct cli *c)
{
    int widths[COLUMNS];

    for (int k = 0; k < COLUMNS; k++) {
        widths[k] = (int)strlen(titles[k]);
        for (int i = 0; i < WORDS; i++)
            widths[k] = (int)strlen(words[i][k]) > widths[k] ? (int)strlen(words[i][k]) : widths[k];
    }
    print_row(titles, widths);
    for (int i = 0; i < WORDS; i++)
        print_row(words[i], widths);
    print_aliases();
    return cli_flush_look(c);
}

static int
print_conditions(const struct cli *c)
{
    static const char *const of[] = {
        [OF_ALL] = "all",           [OF_QUEUE] = "queue",     [OF_NODE] = "node",
        [OF_SCHEDULE] = "schedule", [OF_SESSION] = "session", [OF_TABLE] = "table"};

    printf("%-12s %-9s %-8s %-8s %-6s %-6s WHAT\n", "CONDITION", "OF", "WARN >", "BAD >", "CHECK",
           "SCREEN");
    for (const struct condition *k = conditions; k < conditions + CONDITIONS; k++) {
        char screen[12] = "-";
        if (k->screen)
            snprintf(screen, sizeof screen, "%d", k->screen);
        printf("%-12s %-9s %-8s %-8s %-6s %-6s %s\n", k->name, of[k->of],
               condition_limit(k, k->warn).s, condition_limit(k, k->bad).s,
               k->is_check ? "yes" : "-", screen, k->help);
    }
    return cli_flush_look(c);
}

static int
run_help(struct cli *c, const void *options)
{
    const char *word = c->nwords ? c->words[0] : "";

    (void)options;
    if (!strcmp(word, "words"))
        return print_words(c);
    if (!strcmp(word, "conditions"))
        return print_conditions(c);
    const struct cli_verb *v = cli_find_verb(word);
    const char *meant = v ? NULL : cli_meant_verb(word);
    if (!v && meant)
        return cli_usage(c, "there is no verb '%s', did you mean %s?", word, meant);
    if (!v)
        return cli_usage(c, "there is no verb '%s'", word);
    c->verb = v;
    cli_help(c);
    return cli_flush_look(c);
}

static int
run_version(struct cli *c, const void *options)
{
    (void)options;
    cli_version();
    return cli_flush_look(c);
}

const struct cli_verb verbs_words[] = {
    {.name = "help",
     .words = "[VERB | words | conditions]",
     .help = "About a verb; words: what other queue systems call each thing; conditions: what "
             "counts as wrong", .max_words = 1,
     .examples = {"help push", "help conditions"},
     .run = run_help},
    {.name = "version",
     .words = "",
     .help = "Print the version",
     .examples = {"version", "version >queuetop.version"},
     .run = run_version},
    {0},
};
