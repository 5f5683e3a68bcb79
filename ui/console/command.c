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
#define WORK (IN_JOBS | IN_FAILED | IN_JOB)

/* clang-format off */
/* name, keys, help, scope, risk, footer, run, arg, why not */
const struct command commands[] = {
    {"queues", "1", "Queues: backlog, rates and the age of the oldest job", IN_ALL, SAFE, 0,
     on_screen, 1, NULL},
    {"jobs", "2", "Jobs: all, or those that a filter finds", IN_ALL, SAFE, 0, on_screen, 2, NULL},
    {"failed", "3", "Failed jobs, grouped by their error", IN_ALL, SAFE, 0, on_screen, 3, NULL},
    {"nodes", "4", "Nodes: workers, their heartbeats and leases", IN_ALL, SAFE, 0, on_screen, 4, NULL},
    {"schedules", "5", "Schedules: jobs that are pushed by the clock", IN_ALL, SAFE, 0, on_screen, 5,
     NULL},
    {"audit", "6", "Audit: what was done, by whom", IN_ALL, SAFE, 0, on_screen, 6, NULL},
    {"database", "7", "Database: what holds vacuum back, dead rows, locks", IN_ALL, SAFE, 0, on_screen,
     7, NULL},
    {"messages", "8", "Messages of this session", IN_ALL, SAFE, 0, on_screen, 8, NULL},
    {"overview", "0", "All sources: the queues of each in one table", IN_ALL, SAFE, 0, on_overview, 0,
     NULL},
    {"source", "S", "Sources: what else is here; :source NAME goes there", IN_ALL, SAFE, 0, on_source,
     0, NULL},
    {"next", "Tab", "Next screen", IN_ALL, SAFE, 0, on_next_screen, 1, NULL},
    {"previous", "S-Tab", "Previous screen", IN_ALL, SAFE, 0, on_next_screen, -1, NULL},
    {"command", ":", "Type a command by its name", IN_ALL, SAFE, 0, on_box, BOX_PALETTE, NULL},
    {"help", "? F1", "All keys", IN_ALL & ~IN_HELP, SAFE, 1, on_box, BOX_HELP, NULL},
    {"filter", "/", "Filter: words, state: queue: node: kind: error: age> tries>", IN_ALL & ~IN_JOB,
     SAFE, 2, on_box, BOX_FILTER, no_filter},
    {"actions", "a", "What can be done with this row, and why not", IN_ALL & ~IN_HELP, SAFE, 4,
     on_box, BOX_ACTIONS, NULL},
    {"sql", "v", "The SQL behind this screen", IN_ALL, SAFE, 0, on_box, BOX_SQL, no_sql},
    {"freeze", "z", "Freeze the data, or let it move again", IN_ALL, SAFE, 0, on_freeze, 0, NULL},
    {"slower", "+", "Longer interval between refreshes", IN_ALL, SAFE, 0, on_interval, 1, NULL},
    {"faster", "-", "Shorter interval between refreshes", IN_ALL, SAFE, 0, on_interval, -1, NULL},
    {"zone", "Z", "Times in local time or in UTC", IN_ALL, SAFE, 0, on_zone, 0, NULL},
    {"progress", "F8", "Show the running action", IN_ALL, SAFE, 0, on_action_box, 0, no_action},
    {"stop", "C-c", "Stop the running action after its batch, or quit", IN_ALL, SAFE, 0, on_stop, 0,
     NULL},
    {"reconnect", "", "Try the server now, without waiting for the next try", IN_ALL, SAFE, 0,
     on_reconnect, 0, NULL},
    {"redraw", "C-l", "Draw the screen anew", IN_ALL, SAFE, 0, on_redraw, 0, NULL},
    {"suspend", "C-z", "Back to the shell; fg comes back", IN_ALL, SAFE, 0, on_suspend, 0, NULL},
    {"quit", "q", "Quit; asks only while an action runs", IN_ALL, SAFE, 20, on_quit, 0, NULL},

    {"up", "k Up", "Up", PAGES, SAFE, 0, on_move, MOVE_UP, NULL},
    {"down", "j Down", "Down", PAGES, SAFE, 0, on_move, MOVE_DOWN, NULL},
    {"page-up", "PgUp C-b", "A page up", PAGES, SAFE, 0, on_move, MOVE_PAGE_UP, NULL},
    {"page-down", "PgDn C-f", "A page down", PAGES, SAFE, 0, on_move, MOVE_PAGE_DOWN, NULL},
    {"top", "g Home", "To the first row", PAGES, SAFE, 0, on_move, MOVE_HOME, NULL},
    {"end", "G End", "To the last row", PAGES, SAFE, 0, on_move, MOVE_END, NULL},
    {"left", "Left", "To the left, where lines are not wrapped", IN_JOB, SAFE, 0, on_move, MOVE_LEFT,
     NULL},
    {"right", "Right", "To the right, where lines are not wrapped", IN_JOB, SAFE, 0, on_move,
     MOVE_RIGHT, NULL},
    {"open", "Enter", "Open the row", IN_QUEUES | IN_JOBS | IN_FAILED | IN_NODES | IN_SCHEDULES | IN_DATABASE | IN_OVERVIEW, SAFE, 3,
     on_open, 0, no_row},
    {"back", "Esc", "Back; in a table first clears marks, then the filter", IN_ALL, SAFE, 19, on_back, 0, NULL},
    {"backward", "C-p Backspace M-Left", "Where you were before this", IN_ALL, SAFE, 0, on_trail, -1, no_trail},
    {"forward", "C-n M-Right", "Where you came back from", IN_ALL, SAFE, 0, on_trail, 1, no_trail},
    {"before", "[", "Previous job", IN_JOB, SAFE, 5, on_step, -1, NULL},
    {"after", "]", "Next job", IN_JOB, SAFE, 6, on_step, 1, NULL},
    {"wrap", "w", "Wrap long lines, or not", IN_JOB, SAFE, 7, on_toggle, TOGGLE_WRAP, NULL},
    {"group", "m", "Group by error, kind, node or hour", IN_FAILED, SAFE, 4, on_toggle, TOGGLE_GROUP,
     NULL},
    {"copy", "y", "Show the full id; with --clipboard also copy it", IN_TABLES | IN_JOB, SAFE, 0,
     on_copy, 0, no_row},
    {"copy-row", "Y", "The row as JSON; with --clipboard to the clipboard", IN_TABLES | IN_JOB, SAFE, 0,
     on_copy_row, 0, no_row},
    {"full", "f", "The row in full, with the columns that are hidden or cut", IN_TABLES & ~IN_DATABASE, SAFE,
     0, on_full, 0, no_full},

    {"sort", "s", "Sort by a column from a list", LISTS, SAFE, 12, on_box, BOX_SORT, no_sort},
    {"sort-left", "<", "Sort by the column to the left", LISTS, SAFE, 0, on_sort_step, -1, no_sort},
    {"sort-right", ">", "Sort by the column to the right", LISTS, SAFE, 0, on_sort_step, 1, no_sort},
    {"invert", "I", "Sort the other way round", LISTS, SAFE, 0, on_sort_invert, 0, no_sort},
    {"columns", "o", "Show and hide columns", LISTS, SAFE, 0, on_box, BOX_COLUMNS, NULL},
    {"mark", "Space", "Mark the row", IN_JOBS, SAFE, 4, on_mark, 0, no_marks},
    {"all", "*", "Mark all that match, on the server too", IN_JOBS, SAFE, 8, on_mark_all, 0,
     no_mark_all},
    {"unmark", "U", "Unmark all", IN_JOBS, SAFE, 0, on_unmark, 0, no_marks},

    {"requeue", "r", "Requeue this row, or the marked ones", WORK, CHANGES, 7, on_requeue, 0,
     no_requeue},
    {"requeue-all", "R", "Requeue all that match the filter", IN_JOBS | IN_FAILED, DESTROYS, 8,
     on_requeue, 1, no_requeue},
    {"edit", "e", "Edit the payload of this job in your editor, and requeue it", WORK, CHANGES, 11, on_edit, 0,
     no_edit},
    {"push", "N", "Push a job by hand", IN_QUEUES | IN_JOBS | IN_FAILED, CHANGES, 14, on_push, 0, no_push},
    {"cancel", "c", "Cancel this job, or the marked ones", IN_JOBS | IN_JOB, CHANGES, 9, on_cancel, 0,
     no_cancel},
    {"discard", "X", "Discard this job, the marked ones or the group: to history, undo brings back",
     WORK, DESTROYS, 13, on_discard, 0, no_discard},
    {"delete", "D", "Delete this job, the marked ones or the group for good", WORK, DESTROYS, 0,
     on_delete, 0, no_delete},
    {"priority", "b", "Set the priority of this job, or of the marked ones", WORK, CHANGES, 0,
     on_priority, 0, no_priority},
    {"reschedule", "t", "Set when this job, or the marked ones, are due; or run them now",
     IN_JOBS | IN_JOB, CHANGES, 0, on_time, 0, no_time},
    {"undo", "u", "Undo this action, as far as its rows are as it left them", IN_AUDIT, CHANGES, 4,
     on_undo, 0, no_undo},
    {"pause", "p", "Pause the queue, or resume it", IN_QUEUES, CHANGES, 7, on_pause, 0, no_pause},
    {"limits", "l", "Limits of the queue: jobs at a time, rate, tries, what is kept", IN_QUEUES, CHANGES, 15,
     on_limits, 0, no_limits},
    {"purge", "P", "Purge finished jobs by age", IN_QUEUES, DESTROYS, 8, on_purge, 0, no_purge},
    {"release", "L", "Release the leases that a node holds", IN_NODES, DESTROYS, 6, on_release, 0,
     no_release},
    {"release", "L", "Give back running jobs whose worker is gone", IN_JOBS | IN_JOB, DESTROYS, 0,
     on_rescue, 0, no_rescue},
    {"redrive", "M", "Send dead letters back to the queue that they came from", IN_JOBS | IN_JOB,
     DESTROYS, 0, on_redrive, 0, no_redrive},
    {"terminate", "K", "End the database sessions of the node", IN_NODES, DESTROYS, 0, on_terminate, 0,
     no_terminate},
    {"extend", "E", "Extend leases: of the node, or of running jobs", IN_NODES | IN_JOBS | IN_JOB,
     CHANGES, 10, on_extend, 0, no_extend},
    {"drain", "d", "Drain the node: it finishes what it has and takes no more", IN_NODES, CHANGES, 8,
     on_drain, 0, no_drain},
    {"run", "n", "Run the schedule now, besides its own times", IN_SCHEDULES, CHANGES, 4, on_run_now, 0,
     no_run_now},
    {"pause", "p", "Pause the schedule, or resume it", IN_SCHEDULES, CHANGES, 7, on_pause_schedule, 0,
     no_pause_schedule},
    {"new", "N", "Add a schedule", IN_SCHEDULES, CHANGES, 8, on_new_schedule, 0, no_new_schedule},
    {"edit", "e", "Change the schedule", IN_SCHEDULES, CHANGES, 9, on_edit_schedule, 0,
     no_edit_schedule},
    {"remove", "D", "Remove the schedule; its jobs stay", IN_SCHEDULES, DESTROYS, 10,
     on_remove_schedule, 0, no_remove_schedule},

    {"cancel-query", "C", "Cancel the statement that this session runs", IN_DATABASE, DESTROYS, 8,
     on_signal, 0, no_signal},
    {"terminate", "K", "End this session; its transaction is rolled back", IN_DATABASE, DESTROYS, 7,
     on_signal, 1, no_signal},
    {"advice", "f", "All advice in full, and what this login can't see", IN_DATABASE, SAFE, 9,
     on_advice, 0, NULL},

    {"play", "z", "Play, or stand still", IN_REPLAY, SAFE, 1, on_play, 0, NULL},
    {"step", ".", "One snapshot on", IN_REPLAY, SAFE, 1, on_replay_step, 1, NULL},
    {"step-back", ",", "One snapshot back", IN_REPLAY, SAFE, 0, on_replay_step, -1, NULL},
    {"jump", "J", "Jump to a time: 03:10, 03:10:05, +5m, -90s, start, end", IN_REPLAY, SAFE, 1,
     on_replay_jump, 0, NULL},
    {"minute", ")", "A minute on", IN_REPLAY, SAFE, 0, on_replay_move, 60, NULL},
    {"minute-back", "(", "A minute back", IN_REPLAY, SAFE, 0, on_replay_move, -60, NULL},
    {"start", "{", "To the first snapshot", IN_REPLAY, SAFE, 0, on_replay_end, 0, NULL},
    {"finish", "}", "To the last snapshot", IN_REPLAY, SAFE, 0, on_replay_end, 1, NULL},
    {"speed-up", "+", "Play faster", IN_REPLAY, SAFE, 0, on_replay_speed, 1, NULL},
    {"slow-down", "-", "Play slower", IN_REPLAY, SAFE, 0, on_replay_speed, -1, NULL},

    {"accept", "y", "Yes, where no typing is asked for", IN_DIALOG, SAFE, 0, NULL, 0, NULL},
    {"editor", "F5", "A payload that is typed: in your editor", IN_DIALOG, SAFE, 0, NULL, 0, NULL},
    {"dry-run", "F2", "Count again, change nothing", IN_DIALOG, SAFE, 0, NULL, 0, NULL},
    {"dialog-sql", "F3", "The SQL that would run", IN_DIALOG, SAFE, 0, NULL, 0, NULL},
    {"options", "F4", "Requeue: spread over a time, tries start over; a reason for the audit", IN_DIALOG,
     SAFE, 0, NULL, 0, NULL},
    {"dismiss", "Esc", "Close the box; nothing happens", IN_DIALOG, SAFE, 0, NULL, 0, NULL},
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
