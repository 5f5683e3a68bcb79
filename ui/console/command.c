/*
 * Looks up commands in their tables.
 */
#include "ui/console/command.h"

#include <assert.h>
#include <string.h>

#include "model/base/alias.h"

enum { COMMANDS_MOST = 200 };

/* The commands of all tables in one array, made at the first call. */
static const struct command *const *
all_commands(void)
{
    static const struct command *all[COMMANDS_MOST + 1];
    int n = 0;

    if (all[0])
        return all;
    for (const struct command *const *t = command_tables; *t; t++)
        for (const struct command *c = *t; c->name; c++) {
            assert(n < COMMANDS_MOST);
            all[n++] = c;
        }
    return all;
}

const struct command *
command_at(int i)
{
    return i < COMMANDS_MOST ? all_commands()[i] : NULL;
}

const struct command *
command_for_key(unsigned scope, const struct key *k)
{
    const struct command *found = NULL;

    for (int i = 0; command_at(i); i++)
        if ((command_at(i)->scope & scope) && key_in(k, command_at(i)->keys)) {
            if (command_at(i)->scope & IN_REPLAY) /* commands of a recording come before others
                                                     with the same key */
                return command_at(i);
            found = found ? found : command_at(i);
        }
    return found;
}

static const struct command *
find_named(unsigned scope, const char *name)
{
    const struct command *other = NULL;

    for (int i = 0; command_at(i); i++) {
        if (strcmp(command_at(i)->name, name) != 0)
            continue;
        if (command_at(i)->scope & scope)
            return command_at(i);
        other = command_at(i);
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

    for (int i = 0; command_at(i) && n < max; i++)
        if ((command_at(i)->scope & scope) && command_at(i)->run &&
            strncmp(command_at(i)->name, prefix, strlen(prefix)) == 0)
            out[n++] = command_at(i);
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
        {IN_TABLES,                       "Tables"                 },
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

const char *
command_takes(const struct command *c)
{
    static const char *const words[] = {
        [TAKES_NOTHING] = "",    [TAKES_FILTER] = "FILTER", [TAKES_QUEUE] = "NAME",
        [TAKES_NODE] = "NAME",   [TAKES_SCHEDULE] = "NAME", [TAKES_JOB] = "ID",
        [TAKES_SOURCE] = "NAME",
    };

    return words[c->takes];
}

/* Whether command i is the first one of its group. The groups are in the order in which the tables
 * first name them. */
static bool
first_of_group(int i)
{
    for (int j = 0; j < i; j++)
        if (command_group(command_at(j)) == command_group(command_at(i)))
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
    buf_printf(out, " | `:%s%s%s` | %s |\n", c->name, c->takes ? " " : "", command_takes(c),
               c->help);
}

void
command_markdown(struct buf *out)
{
    for (int i = 0; command_at(i); i++) {
        if (!first_of_group(i))
            continue;
        const char *group = command_group(command_at(i));
        buf_printf(out, "%s**%s**\n\n| keys | command | what it does |\n|---|---|---|\n",
                   i ? "\n" : "", group);
        for (int j = i; command_at(j); j++)
            if (command_group(command_at(j)) == group)
                markdown_row(out, command_at(j));
    }
}
