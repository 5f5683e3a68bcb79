/* Goes to a place that the user has typed: a command with an argument, or only a name. */
#ifndef UI_CONSOLE_GO_H
#define UI_CONSOLE_GO_H

#include <stdbool.h>

struct app;

/* run_with of the commands for screens; arg is the digit of the screen. */
void go_filtered(struct app *a, int digit, const char *filter);
void go_jobs(struct app *a, int digit, const char *filter);
void go_failed(struct app *a, int digit, const char *queue_or_filter);
/* run_with of the commands that open one thing. If no thing has this name, they open the only one
 * whose name begins with the text. If there are none or several, a message says so. */
void go_queue(struct app *a, int digit, const char *name);
void go_node(struct app *a, int digit, const char *name);
void go_schedule(struct app *a, int digit, const char *name);
void go_job(struct app *a, int digit, const char *id);
/* Goes to the queue, node or schedule with exactly this name, or to the job with this id. False:
 * there is none, and nothing happened. */
bool go_bare(struct app *a, const char *name);

#endif
