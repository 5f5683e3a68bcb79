/* Waiting for the end of a job. */
#ifndef UI_CLI_CLI_WAIT_H
#define UI_CLI_CLI_WAIT_H

#include "ui/cli/cli_open.h"

/* Looks at the job with that full id until it has ended or wait_ms have passed (CLI_NO_TIME: for
 * ever). The looks are 50 ms apart in the beginning and 2 s later; each reads one job by its id. A
 * lost connection is told once and made anew: q may have another one then, or none. One without an
 * adapter is opened. The
 * exit code: CLI_DONE, CLI_FAILED, CLI_TIME_OVER, CLI_NOTHING: it is not there (any more). */
bool cli_wait(struct cli_queue *q, const char *id, int64_t wait_ms, int *code, struct err *e)
    __attribute__((warn_unused_result));

/* The same, and prints how it ended: its state, then its result or its error. Opens the queue of
 * --schema itself; gives the exit code. */
int cli_wait_outcome(struct cli *c, const char *id, int64_t wait_ms);

#endif
