/* The tables of verbs, one a file; ui/verbs.c puts them in order. */
#ifndef UI_VERBS_H
#define UI_VERBS_H

#include "ui/cli.h"

extern const struct cli_verb verbs_console[]; /* ui/console.c */
extern const struct cli_verb verbs_install[]; /* ui/cli_install.c: install migrate ... */
extern const struct cli_verb verbs_push[];    /* ui/cli_push.c */
extern const struct cli_verb verbs_work[];    /* ui/cli_work.c: schedule work */
extern const struct cli_verb verbs_list[];    /* ui/cli_list.c: queues jobs nodes leases ... */
extern const struct cli_verb verbs_job[];     /* ui/cli_job.c */
extern const struct cli_verb verbs_act[];     /* ui/cli_act.c: requeue release extend purge ... */
extern const struct cli_verb verbs_edit[];    /* ui/cli_edit.c: edit */
extern const struct cli_verb verbs_change[];  /* ui/cli_change.c: cancel discard ... undo */
extern const struct cli_verb verbs_cron[];    /* ui/cli_cron.c */
extern const struct cli_verb verbs_queue[];   /* ui/cli_queue.c */
extern const struct cli_verb verbs_demo[];    /* ui/demo_load.c: inner verbs of --demo */
extern const struct cli_verb verbs_record[];  /* ui/cli_record.c */
extern const struct cli_verb verbs_words[];   /* ui/cli_words.c: help */
extern const struct cli_verb verbs_adapter[]; /* ui/cli_adapter.c */

#endif
