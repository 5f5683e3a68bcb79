/* Going somewhere by what is typed: a command with a word behind it, or a bare name. */
#ifndef UI_CONSOLE_GO_H
#define UI_CONSOLE_GO_H

#include <stdbool.h>

struct app;

/* run_with of the screens' commands: arg is the digit of the screen. */
void go_filtered(struct app *a, int digit, const char *filter);
void go_jobs(struct app *a, int digit, const char *filter);
void go_failed(struct app *a, int digit, const char *queue_or_filter);
/* ... and of those that open one thing. Where no thing has the name, the only one whose name begins
 * with it; else a message. */
void go_queue(struct app *a, int digit, const char *name);
void go_node(struct app *a, int digit, const char *name);
void go_schedule(struct app *a, int digit, const char *name);
void go_job(struct app *a, int digit, const char *id);
/* To the queue, node or schedule of exactly this name, or to the job with this id. False: there is
 * none, nothing happened. */
bool go_bare(struct app *a, const char *name);

#endif
