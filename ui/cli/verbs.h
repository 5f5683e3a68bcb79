/* The tables of verbs, one a file; ui/cli/verbs.c puts them in order. */
#ifndef UI_CLI_VERBS_H
#define UI_CLI_VERBS_H

#include "ui/cli/cli.h"

extern const struct cli_verb verbs_console[]; /* ui/start/console.c */
extern const struct cli_verb verbs_install[]; /* ui/cli/cli_install.c: install migrate ... */
extern const struct cli_verb verbs_push[];    /* ui/cli/cli_push.c */
extern const struct cli_verb verbs_work[];    /* ui/cli/cli_work.c: schedule work */
extern const struct cli_verb verbs_list[];    /* ui/cli/cli_list.c: queues jobs nodes leases ... */
extern const struct cli_verb verbs_tail[];    /* ui/cli/cli_tail.c: tail */
extern const struct cli_verb verbs_check[];   /* ui/cli/cli_check.c: check */
extern const struct cli_verb verbs_doctor[];  /* ui/cli/cli_doctor.c: doctor */
extern const struct cli_verb verbs_metrics[]; /* ui/cli/cli_metrics.c: metrics */
extern const struct cli_verb verbs_job[];     /* ui/cli/cli_job.c */
extern const struct cli_verb verbs_act[];   /* model/adapter/acts.def: requeue release cancel ... */
extern const struct cli_verb verbs_edit[];  /* ui/cli/cli_edit.c: edit */
extern const struct cli_verb verbs_cron[];  /* ui/cli/cli_cron.c */
extern const struct cli_verb verbs_queue[]; /* ui/cli/cli_queue.c */
extern const struct cli_verb verbs_demo[];  /* ui/demo/demo_load.c: inner verbs of --demo */
extern const struct cli_verb verbs_record[];   /* ui/cli/cli_record.c */
extern const struct cli_verb verbs_words[];    /* ui/cli/cli_words.c: help */
extern const struct cli_verb verbs_complete[]; /* ui/cli/cli_complete.c: completion */
extern const struct cli_verb verbs_adapter[];  /* ui/cli/cli_adapter.c */

#endif
