/* The tables of verbs, one a file; ui/verbs.c puts them in order. */
#ifndef UI_VERBS_H
#define UI_VERBS_H

#include "ui/cli.h"

extern const struct cli_verb verbs_work[]; /* ui/cli_work.c: install migrate push schedule work */
extern const struct cli_verb verbs_demo[]; /* ui/demo_load.c: inner verbs of --demo */

#endif
