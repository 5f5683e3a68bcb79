/*
 * The table of commands, and the functions that look things up in it. A new key is one row here and
 * one handler in ui/console/handler.c or ui/act/act.c.
 */
#include "ui/console/command.h"

#include <string.h>

#include "model/base/alias.h"
#include "ui/console/handler.h"
#include "ui/console/view.h"

#define LISTS IN_TABLES
#define PAGES (IN_TABLES | IN_JOB | IN_HELP)

/* clang-format off */
const struct command commands[] = {
    {.name = "queues", .keys = "1", .help = "Queues: backlog, rates and the age of the oldest job",
     .scope = IN_ALL, .run = on_screen, .arg = 1},
    {.name = "jobs", .keys = "2", .help = "Jobs: all, or those that a filter finds",
     .scope = IN_ALL, .run = on_screen, .arg = 2},
    {.name = "failed", .keys = "3", .help = "Failed jobs, grouped by their error",
     .scope = IN_ALL, .run = on_screen, .arg = 3},
    {.name = "nodes", .keys = "4", .help = "Nodes: workers, their heartbeats and leases",
     .scope = IN_ALL, .run = on_screen, .arg = 4},
    {.name = "schedules", .keys = "5", .help = "Schedules: jobs that are pushed by the clock",
     .scope = IN_ALL, .run = on_screen, .arg = 5},
    {.name = "audit", .keys = "6", .help = "Audit: what was done, by whom",
     .scope = IN_ALL, .run = on_screen, .arg = 6},
    {.name = "database", .keys = "7", .help = "Database: what holds vacuum back, dead rows, locks",
     .scope = IN_ALL, .run = on_screen, .arg = 7},
    {.name = "messages", .keys = "8", .help = "Messages of this session",
     .scope = IN_ALL, .run = on_screen, .arg = 8},
    {.name = "overview", .keys = "0", .help = "All sources: the queues of each in one table",
     .scope = IN_ALL, .run = on_overview},
    {.name = "source", .keys = "S", .help = "Sources: what else is here; :source NAME goes there",
     .scope = IN_ALL, .run = on_source},
    {.name = "next", .keys = "Tab", .help = "Next screen", .scope = IN_ALL, .run = on_next_screen, .arg = 1},
    {.name = "previous", .keys = "S-Tab", .help = "Previous screen",
     .scope = IN_ALL, .run = on_next_screen, .arg = -1},
    {.name = "command", .keys = ":", .help = "Type a command by its name",
     .scope = IN_ALL, .run = on_box, .arg = BOX_PALETTE},
    {.name = "help", .keys = "? F1", .help = "All keys",
     .scope = IN_ALL & ~IN_HELP, .foot = 1, .run = on_box, .arg = BOX_HELP},
    {.name = "filter", .keys = "/", .help = "Filter: words, state: queue: node: kind: error: age> tries>",
     .scope = IN_ALL & ~IN_JOB, .foot = 2, .run = on_box, .arg = BOX_FILTER, .why_not = no_filter},
    {.name = "actions", .keys = "a", .help = "What can be done with this row, and why not",
     .scope = IN_ALL & ~IN_HELP, .foot = 4, .run = on_box, .arg = BOX_ACTIONS},
    {.name = "sql", .keys = "v", .help = "The SQL behind this screen",
     .scope = IN_ALL, .run = on_box, .arg = BOX_SQL, .why_not = no_sql},
    {.name = "freeze", .keys = "z", .help = "Freeze the data, or let it move again",
     .scope = IN_ALL, .run = on_freeze},
    {.name = "slower", .keys = "+", .help = "Longer interval between refreshes",
     .scope = IN_ALL, .run = on_interval, .arg = 1},
    {.name = "faster", .keys = "-", .help = "Shorter interval between refreshes",
     .scope = IN_ALL, .run = on_interval, .arg = -1},
    {.name = "zone", .keys = "Z", .help = "Times in local time or in UTC", .scope = IN_ALL, .run = on_zone},
    {.name = "progress", .keys = "F8", .help = "Show the running action",
     .scope = IN_ALL, .run = on_action_box, .why_not = no_action},
    {.name = "stop", .keys = "C-c", .help = "Stop the running action after its batch, or quit",
     .scope = IN_ALL, .run = on_stop},
    {.name = "reconnect", .keys = "", .help = "Try the server now, without waiting for the next try",
     .scope = IN_ALL, .run = on_reconnect},
    {.name = "redraw", .keys = "C-l", .help = "Draw the screen anew", .scope = IN_ALL, .run = on_redraw},
    {.name = "suspend", .keys = "C-z", .help = "Back to the shell; fg comes back",
     .scope = IN_ALL, .run = on_suspend},
    {.name = "quit", .keys = "q", .help = "Quit; asks only while an action runs",
     .scope = IN_ALL, .foot = 20, .run = on_quit},

    {.name = "up", .keys = "k Up", .help = "Up", .scope = PAGES, .run = on_move, .arg = MOVE_UP},
    {.name = "down", .keys = "j Down", .help = "Down", .scope = PAGES, .run = on_move, .arg = MOVE_DOWN},
    {.name = "page-up", .keys = "PgUp C-b", .help = "A page up", .scope = PAGES, .run = on_move, .arg = MOVE_PAGE_UP},
    {.name = "page-down", .keys = "PgDn C-f", .help = "A page down",
     .scope = PAGES, .run = on_move, .arg = MOVE_PAGE_DOWN},
    {.name = "top", .keys = "g Home", .help = "To the first row", .scope = PAGES, .run = on_move, .arg = MOVE_HOME},
    {.name = "end", .keys = "G End", .help = "To the last row", .scope = PAGES, .run = on_move, .arg = MOVE_END},
    {.name = "left", .keys = "Left", .help = "To the left, where lines are not wrapped",
     .scope = IN_JOB, .run = on_move, .arg = MOVE_LEFT},
    {.name = "right", .keys = "Right", .help = "To the right, where lines are not wrapped",
     .scope = IN_JOB, .run = on_move, .arg = MOVE_RIGHT},
    {.name = "open", .keys = "Enter", .help = "Open the row",
     .scope = IN_QUEUES | IN_JOBS | IN_FAILED | IN_NODES | IN_SCHEDULES | IN_DATABASE | IN_OVERVIEW, .foot = 3, .run = on_open, .why_not = no_row},
    {.name = "back", .keys = "Esc", .help = "Back; in a table first clears marks, then the filter",
     .scope = IN_ALL, .foot = 19, .run = on_back},
    {.name = "backward", .keys = "C-p Backspace M-Left", .help = "Where you were before this",
     .scope = IN_ALL, .run = on_trail, .arg = -1, .why_not = no_trail},
    {.name = "forward", .keys = "C-n M-Right", .help = "Where you came back from",
     .scope = IN_ALL, .run = on_trail, .arg = 1, .why_not = no_trail},
    {.name = "before", .keys = "[", .help = "Previous job", .scope = IN_JOB, .foot = 5, .run = on_step, .arg = -1},
    {.name = "after", .keys = "]", .help = "Next job", .scope = IN_JOB, .foot = 6, .run = on_step, .arg = 1},
    {.name = "wrap", .keys = "w", .help = "Wrap long lines, or not",
     .scope = IN_JOB, .foot = 7, .run = on_toggle, .arg = TOGGLE_WRAP},
    {.name = "group", .keys = "m", .help = "Group by error, kind, node or hour",
     .scope = IN_FAILED, .foot = 4, .run = on_toggle, .arg = TOGGLE_GROUP},
    {.name = "copy", .keys = "y", .help = "Show the full id; with --clipboard also copy it",
     .scope = IN_TABLES | IN_JOB, .run = on_copy, .why_not = no_row},
    {.name = "copy-row", .keys = "Y", .help = "The row as JSON; with --clipboard to the clipboard",
     .scope = IN_TABLES | IN_JOB, .run = on_copy_row, .why_not = no_row},
    {.name = "full", .keys = "f", .help = "The row in full, with the columns that are hidden or cut",
     .scope = IN_TABLES & ~IN_DATABASE, .run = on_full, .why_not = no_full},

    {.name = "sort", .keys = "s", .help = "Sort by a column from a list",
     .scope = LISTS, .foot = 12, .run = on_box, .arg = BOX_SORT, .why_not = no_sort},
    {.name = "sort-left", .keys = "<", .help = "Sort by the column to the left",
     .scope = LISTS, .run = on_sort_step, .arg = -1, .why_not = no_sort},
    {.name = "sort-right", .keys = ">", .help = "Sort by the column to the right",
     .scope = LISTS, .run = on_sort_step, .arg = 1, .why_not = no_sort},
    {.name = "invert", .keys = "I", .help = "Sort the other way round",
     .scope = LISTS, .run = on_sort_invert, .why_not = no_sort},
    {.name = "columns", .keys = "o", .help = "Show and hide columns",
     .scope = LISTS, .run = on_box, .arg = BOX_COLUMNS},
    {.name = "mark", .keys = "Space", .help = "Mark the row",
     .scope = IN_JOBS, .foot = 4, .run = on_mark, .why_not = no_marks},
    {.name = "all", .keys = "*", .help = "Mark all that match, on the server too",
     .scope = IN_JOBS, .foot = 8, .run = on_mark_all, .why_not = no_mark_all},
    {.name = "unmark", .keys = "U", .help = "Unmark all", .scope = IN_JOBS, .run = on_unmark, .why_not = no_marks},

#define KEY(id, on, no, ...) {.run = on, .why_not = no, .arg = ACT_##id, .act = &act_infos[ACT_##id], __VA_ARGS__},
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) keys
#include "model/adapter/acts.def"

    {.name = "advice", .keys = "f", .help = "All advice in full, and what this login can't see",
     .scope = IN_DATABASE, .foot = 9, .run = on_advice},

    {.name = "play", .keys = "z", .help = "Play, or stand still", .scope = IN_REPLAY, .foot = 1, .run = on_play},
    {.name = "step", .keys = ".", .help = "One snapshot on",
     .scope = IN_REPLAY, .foot = 1, .run = on_replay_step, .arg = 1},
    {.name = "step-back", .keys = ",", .help = "One snapshot back",
     .scope = IN_REPLAY, .run = on_replay_step, .arg = -1},
    {.name = "jump", .keys = "J", .help = "Jump to a time: 03:10, 03:10:05, +5m, -90s, start, end",
     .scope = IN_REPLAY, .foot = 1, .run = on_replay_jump},
    {.name = "minute", .keys = ")", .help = "A minute on", .scope = IN_REPLAY, .run = on_replay_move, .arg = 60},
    {.name = "minute-back", .keys = "(", .help = "A minute back",
     .scope = IN_REPLAY, .run = on_replay_move, .arg = -60},
    {.name = "start", .keys = "{", .help = "To the first snapshot", .scope = IN_REPLAY, .run = on_replay_end},
    {.name = "finish", .keys = "}", .help = "To the last snapshot",
     .scope = IN_REPLAY, .run = on_replay_end, .arg = 1},
    {.name = "speed-up", .keys = "+", .help = "Play faster", .scope = IN_REPLAY, .run = on_replay_speed, .arg = 1},
    {.name = "slow-down", .keys = "-", .help = "Play slower", .scope = IN_REPLAY, .run = on_replay_speed, .arg = -1},

    {.name = "accept", .keys = "y", .help = "Yes, where no typing is asked for", .scope = IN_DIALOG},
    {.name = "editor", .keys = "F5", .help = "A payload that is typed: in your editor", .scope = IN_DIALOG},
    {.name = "dry-run", .keys = "F2", .help = "Count again, change nothing", .scope = IN_DIALOG},
    {.name = "dialog-sql", .keys = "F3", .help = "The SQL that would run", .scope = IN_DIALOG},
    {.name = "options", .keys = "F4", .help = "Requeue: spread over a time, tries start over; a reason for the audit",
     .scope = IN_DIALOG},
    {.name = "dismiss", .keys = "Esc", .help = "Close the box; nothing happens", .scope = IN_DIALOG},
};
/* clang-format on */
const int commands_n = (int)(sizeof commands / sizeof *commands);

const struct command *
command_for_key(unsigned scope, const struct key *k)
{
    const struct command *found = NULL;

    for (int i = 0; i < commands_n; i++)
        if ((commands[i].scope & scope) && key_in(k, commands[i].keys)) {
            if (commands[i].scope & IN_REPLAY) /* before what the key means elsewhere */
                return &commands[i];
            found = found ? found : &commands[i];
        }
    return found;
}

static const struct command *
find_named(unsigned scope, const char *name)
{
    const struct command *other = NULL;

    for (int i = 0; i < commands_n; i++) {
        if (strcmp(commands[i].name, name) != 0)
            continue;
        if (commands[i].scope & scope)
            return &commands[i];
        other = &commands[i];
    }
    return other;
}

const struct command *
command_named(unsigned scope, const char *name)
{
    const struct command *found = find_named(scope, name);
    const char *ours = found ? NULL : alias_find(ALIAS_ACT, name, (int)strlen(name));

    return ours ? find_named(scope, ours) : found;
}

int
command_complete(unsigned scope, const char *prefix, const struct command **out, int max)
{
    int n = 0;

    for (int i = 0; i < commands_n && n < max; i++)
        if ((commands[i].scope & scope) && commands[i].run &&
            strncmp(commands[i].name, prefix, strlen(prefix)) == 0)
            out[n++] = &commands[i];
    for (const struct alias *a = aliases; a->word && n == 0 && *prefix; a++) {
        const struct command *c = a->kind == ALIAS_ACT ? find_named(scope, a->ours) : NULL;
        if (c && (c->scope & scope) && c->run && !strncmp(a->word, prefix, strlen(prefix)))
            out[n++] = c;
    }
    return n;
}

const char *
command_group(const struct command *c)
{
    static const struct {
        unsigned scope;
        const char *title;
    } groups[] = {
        {IN_DIALOG,                       "In boxes that ask"      },
        {IN_REPLAY,                       "In a recording"         },
        {IN_QUEUES,                       "Queues"                 },
        {IN_NODES,                        "Nodes"                  },
        {IN_SCHEDULES,                    "Schedules"              },
        {IN_DATABASE,                     "Database"               },
        {IN_AUDIT,                        "Audit"                  },
        {IN_JOB,                          "Job"                    },
        {IN_JOBS | IN_FAILED | IN_JOB,    "Jobs and Failed"        },
        {IN_QUEUES | IN_JOBS | IN_FAILED, "Queues, Jobs and Failed"},
        {IN_NODES | IN_JOBS | IN_JOB,     "Jobs and Nodes"         },
        {LISTS,                           "Tables"                 },
        {IN_ALL,                          "Everywhere"             },
    };

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (!(c->scope & ~groups[i].scope))
            return groups[i].title;
    return "Everywhere";
}

struct key_word
command_key(const struct command *c)
{
    const char *at = c->keys;
    struct key k;
    struct key_word w = {""};

    if (key_next(&at, &k))
        w = key_word(&k);
    if (!strcmp(w.s, "Enter"))
        return (struct key_word){"Ent"};
    return w;
}

/* The groups in the order in which the table first names them. */
static bool
first_of_group(int i)
{
    for (int j = 0; j < i; j++)
        if (command_group(&commands[j]) == command_group(&commands[i]))
            return false;
    return true;
}

static void
markdown_row(struct buf *out, const struct command *c)
{
    const char *at = c->keys;
    struct key k;
    bool any = false;

    buf_str(out, "| ");
    while (key_next(&at, &k)) {
        struct key_word w = key_word(&k);
        buf_printf(out, "%s`%s`", any ? " " : "", w.s);
        any = true;
    }
    buf_printf(out, " | `:%s` | %s |\n", c->name, c->help);
}

void
command_markdown(struct buf *out)
{
    for (int i = 0; i < commands_n; i++) {
        if (!first_of_group(i))
            continue;
        const char *group = command_group(&commands[i]);
        buf_printf(out, "%s**%s**\n\n| keys | command | what it does |\n|---|---|---|\n",
                   i ? "\n" : "", group);
        for (int j = i; j < commands_n; j++)
            if (command_group(&commands[j]) == group)
                markdown_row(out, &commands[j]);
    }
}
