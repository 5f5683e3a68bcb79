/* The tables of verbs, one a file; ui/cli/verbs.c puts them in order. */
#ifndef UI_CLI_VERBS_H
#define UI_CLI_VERBS_H

#include "ui/cli/cli.h"

extern const struct cli_verb verbs_console[]; /* ui/start/console.c */
extern const struct cli_verb verbs_install[]; /* ui/setup/cli_install.c: install migrate ... */
extern const struct cli_verb verbs_push[];    /* ui/write/cli_push.c */
extern const struct cli_verb verbs_work[];    /* ui/setup/cli_work.c: schedule work */
extern const struct cli_verb verbs_list[];    /* ui/read/cli_list.c: queues jobs nodes leases ... */
extern const struct cli_verb verbs_tail[];    /* ui/read/cli_tail.c: tail */
extern const struct cli_verb verbs_check[];   /* ui/read/cli_check.c: check */
extern const struct cli_verb verbs_doctor[];  /* ui/read/cli_doctor.c: doctor */
extern const struct cli_verb verbs_metrics[]; /* ui/read/cli_metrics.c: metrics */
extern const struct cli_verb verbs_job[];     /* ui/read/cli_job.c */
extern const struct cli_verb verbs_act[];   /* model/adapter/acts.def: requeue release cancel ... */
extern const struct cli_verb verbs_edit[];  /* ui/write/cli_edit.c: edit */
extern const struct cli_verb verbs_cron[];  /* ui/write/cli_cron.c */
extern const struct cli_verb verbs_queue[]; /* ui/write/cli_queue.c */
extern const struct cli_verb verbs_demo[];  /* ui/demo/demo.c: the inner verb of --demo */
extern const struct cli_verb verbs_record[];   /* ui/setup/cli_record.c */
extern const struct cli_verb verbs_words[];    /* ui/cli/cli_words.c: help */
extern const struct cli_verb verbs_complete[]; /* ui/cli/cli_complete.c: completion */
extern const struct cli_verb verbs_adapter[];  /* ui/setup/cli_adapter.c */

#endif
