/* `queuetop --plain`: reads lines and prints lines, and nothing on the screen moves; for screen
 * readers, slow links and simple terminals. */
#ifndef UI_CLI_PLAIN_H
#define UI_CLI_PLAIN_H

#include "ui/cli/cli.h"

/* Reads lines up to the end of the input or "quit". Each line is a verb with its words and uses the
 * connection options of this program. Returns the exit code of the last verb. */
int plain_run(struct cli *c);

#endif
