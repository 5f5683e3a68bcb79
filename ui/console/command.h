/* Commands: every key of the console is a row of a table. The table is at the end of the file that
 * has the functions of its rows. Dispatch, footer, help screen, palette, the menu of actions,
 * `--help-keys` and the table in queuetop(1) come from them; a test types every command once. A
 * command runs on the app and its current view. If it can't run now, why_not gives the reason,
 * which the menu and the message line show. */
#ifndef UI_CONSOLE_COMMAND_H
#define UI_CONSOLE_COMMAND_H

#include <stdbool.h>

#include "model/action/action.h"
#include "model/base/mem.h"
#include "ui/term/key.h"

struct app;

enum scope { /* bit set of the screens on which a command works */
             IN_QUEUES = 1,
             IN_JOBS = 2,
             IN_JOB = 4,
             IN_FAILED = 8,
             IN_NODES = 16,
             IN_AUDIT = 32,
             IN_MESSAGES = 64,
             IN_HELP = 128,
             IN_SCHEDULES = 256,
             IN_DATABASE = 512,
             IN_OVERVIEW = 1024,
             IN_HAPPENED = 2048,
             IN_EVENTS = 4096,
             IN_REPLAY = 32768, /* set besides the bit of the screen while a recording is shown */
             IN_DIALOG = 65536, /* boxes that ask: help lists their keys, the box handles them */
             IN_TABLES = IN_QUEUES | IN_JOBS | IN_FAILED | IN_NODES | IN_SCHEDULES | IN_AUDIT |
                         IN_DATABASE | IN_MESSAGES | IN_OVERVIEW | IN_HAPPENED | IN_EVENTS,
             IN_ALL = IN_TABLES | IN_JOB | IN_HELP
};

enum risk {
    SAFE,    /* only looks */
    CHANGES, /* can be taken back */
    DESTROYS /* many rows or no way back */
};

enum takes { /* what the user can type after the name */
             TAKES_NOTHING,
             TAKES_FILTER,
             TAKES_QUEUE,
             TAKES_NODE,
             TAKES_SCHEDULE,
             TAKES_JOB,
             TAKES_SOURCE
};

enum moves { /* help shows all keys that move the cursor in one line */
             MOVES_NOTHING,
             MOVES_CURSOR,
             MOVES_ON /* goes to another place */
};

struct command {
    const char *name; /* one word: footer, palette */
    const char *keys; /* as ui/term/key.h writes them; "" = by the palette only */
    const char *help; /* a sentence without a full stop */
    unsigned scope;
    enum risk risk;
    int foot;                           /* place in the footer, 0 = not in the footer */
    void (*run)(struct app *, int arg); /* NULL: the box in front handles the key */
    int arg;
    const char *(*why_not)(const struct app *, int arg); /* NULL = always possible */
    bool of_screen; /* if the command is impossible, it is so for all rows: the footer leaves it out
                     */
    const char *(*help_now)(const struct app *, int arg); /* for the selected row; NULL = help */
    /* Runs the command with the argument that was typed; NULL = the command takes no argument. */
    void (*run_with)(struct app *, int arg, const char *word);
    enum takes takes;
    enum moves moves;
    const struct act_info *act; /* the act on the queue; NULL = it only looks */
    bool by_filter;             /* it acts on all rows that match, although rows can be marked */
    enum section_id only_with;  /* menus hide it if the adapter lacks this section; 0 = never */
};
/* The tables in the order of help, menus and palette, ended by NULL; {0} ends each of them
 * (ui/start/commands.c). */
extern const struct command *const command_tables[];
const struct command *command_at(int i); /* the i-th of all commands; NULL = no more */

/* The command of a key in a scope (one bit), NULL = none. */
const struct command *command_for_key(unsigned scope, const struct key *k);
/* By name, preferably one of this scope. NULL = no such command. */
const struct command *command_named(unsigned scope, const char *name);
/* Commands of the scope whose name begins with prefix, in the order of the table. */
int command_complete(unsigned scope, const char *prefix, const struct command **out, int max);
/* "Queues", "Jobs and Failed", "Everywhere": the heading of a scope in help. */
const char *command_group(const struct command *c);
/* The first key as it is shown ("Ent", "r"); "" when the command has none. */
struct key_word command_key(const struct command *c);
/* The name of the argument: "FILTER", "NAME"; "" = no argument. */
const char *command_takes(const struct command *c);
/* All commands as a Markdown table, grouped: for docs/queuetop.1.md. */
void command_markdown(struct buf *out);

#endif
