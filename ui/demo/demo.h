/* `queuetop --demo [SECONDS]`: a private PostgreSQL in a temporary directory, the queue installed
 * in it, a scheduler, workers and a mixed load, and the console on all that. Whatever way the
 * program ends, nothing of it stays: neither a process nor a file. */
#ifndef UI_DEMO_DEMO_H
#define UI_DEMO_DEMO_H

#include "ui/cli/cli.h"

/* Starts it all, points *c at it and runs `console` (the console verb's own run, with its options);
 * without a terminal waits SECONDS (words[0]) and prints the queues. Gives the exit code. Called
 * before anything connects: it forks, so there must be no second thread yet. */
int demo_run(struct cli *c, int (*console)(struct cli *c, const void *options),
             const void *options);

#endif
