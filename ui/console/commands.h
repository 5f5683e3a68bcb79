/* The tables of commands, each at the end of its file; ui/start/commands.c puts them in order. */
#ifndef UI_CONSOLE_COMMANDS_H
#define UI_CONSOLE_COMMANDS_H

#include "ui/console/command.h"

extern const struct command commands_screens[]; /* ui/console/look.c, like the next two */
extern const struct command commands_look[], commands_page[], commands_table[];
extern const struct command commands_sources[];  /* ui/console/app_sources.c */
extern const struct command commands_trail[];    /* ui/console/trail.c */
extern const struct command commands_follow[];   /* ui/console/follow.c */
extern const struct command commands_replay[];   /* ui/console/replay_keys.c */
extern const struct command commands_copy[];     /* ui/act/act_copy.c */
extern const struct command commands_acts[];     /* ui/act/act.c: model/adapter/acts.def */
extern const struct command commands_health[];   /* ui/screen/view_health.c */
extern const struct command commands_charts[];   /* ui/screen/charts.c */
extern const struct command commands_happened[]; /* ui/screen/view_happened.c */
extern const struct command commands_dialog[];   /* ui/box/box_confirm.c */

#endif
