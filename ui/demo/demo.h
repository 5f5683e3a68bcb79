/* `queuetop --demo [SECONDS]`: a private PostgreSQL in a temporary directory, with the queue
 * installed, a scheduler, workers and a mixed load, and the console on all that. However the
 * program ends, it leaves neither a process nor a file. */
#ifndef UI_DEMO_DEMO_H
#define UI_DEMO_DEMO_H

#include "ui/cli/cli.h"

/* Starts the demo, points *c at its server and runs `console` (the run function of the console
 * verb, with its options). Without a terminal it waits for SECONDS (words[0]) and prints the
 * queues. Returns the exit code. Must be called before any connection is made: it forks, so there
 * must be no second thread yet. */
int demo_run(struct cli *c, int (*console)(struct cli *c, const void *options),
             const void *options);

#endif
