/* --help and --version, printed from the tables of verbs and options. */
#ifndef UI_CLI_CLI_HELP_H
#define UI_CLI_CLI_HELP_H

#include "ui/cli/cli.h"

void cli_help(const struct cli *c); /* of c->verb, or of the program */
void cli_version(void);

#endif
