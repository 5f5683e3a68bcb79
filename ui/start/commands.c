/*
 * The list of all commands, in the order of help, menus and palette. A file with commands ends with
 * one table; this is the only place that knows them all.
 */
#include "ui/console/commands.h"

#include <stddef.h>

const struct command *const command_tables[] = {
    commands_screens,  commands_sources, commands_look,   commands_trail,  commands_follow,
    commands_happened, commands_page,    commands_copy,   commands_table,  commands_acts,
    commands_charts,   commands_health,  commands_replay, commands_dialog, NULL,
};
