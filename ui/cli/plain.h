/* `queuetop --plain`: lines in, lines out, nothing on the screen that moves; for screen readers,
 * slow links and terminals that can do nothing. */
#ifndef UI_CLI_PLAIN_H
#define UI_CLI_PLAIN_H

#include "ui/cli/cli.h"

/* Reads lines up to the end of input or "quit"; each is a verb with its words, and runs with the
 * connection that this program was started with. -> exit code of the last one */
int plain_run(struct cli *c);

#endif
