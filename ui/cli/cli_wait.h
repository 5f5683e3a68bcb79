/* Waits for the end of a job. */
#ifndef UI_CLI_CLI_WAIT_H
#define UI_CLI_CLI_WAIT_H

#include "ui/cli/cli_open.h"

/* Looks at the job with that full id until the job has ended or wait_ms have passed (CLI_NO_TIME:
 * for ever). The looks are 50 ms apart in the beginning and 2 s later; each reads one job by its
 * id. A lost connection is reported once and opened again: q may then have another one, or none.
 * Opens q if q has no adapter. queue: the job existed, and this is its queue; NULL = not known. The
 * exit code is CLI_DONE, CLI_FAILED, CLI_TIME_OVER, CLI_NOTHING: the job does not exist (any more),
 * or CLI_UNKNOWN: the job does not exist any more, and its queue keeps no finished
 * jobs. */
bool cli_wait(struct cli_queue *q, const char *id, const char *queue, int64_t wait_ms, int *code,
              struct err *e) __attribute__((warn_unused_result));

/* Before a push: whether job_outcome() can be asked, with the id of the job to push. */
bool cli_wait_may(struct cli *c, const char *id, struct err *e) __attribute__((warn_unused_result));
/* After it: waits for the job by job_outcome() and prints the state, then the result or the error.
 * Returns the exit code; CLI_PART: the job is pushed, and the outcome could not be asked. */
int cli_wait_outcome(struct cli *c, const char *id, const char *queue, int64_t wait_ms);

#endif
