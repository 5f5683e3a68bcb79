/* Runs a program of the user's when alerts come and go (`alert_program` of the configuration). The
 * program is started without a shell and without arguments; its standard input has one JSON object
 * a line:
 *   event   appeared, changed (another level) or gone
 *   level   bad or warn
 *   source, screen, row, where, what   as on the screen; screen is a word of `:`
 *   for_ms  for how long the alert has been there; of one that is gone: for how long it was
 * An alert is reported when it has been there, or away, for `alert_after`. The program runs at most
 * once in that time, never twice at once, and RUN_MS at the longest. While there is no connection,
 * nothing is gone; the lost connection is an alert itself.
 * A run that fails (an exit code, a signal, RUN_MS, no start) has reported nothing: the program is
 * run again, with the alerts as they are then. Each wait is twice the one before, at most five
 * minutes. */
#ifndef UI_CONSOLE_ALERT_HOOK_H
#define UI_CONSOLE_ALERT_HOOK_H

#include <stdint.h>

struct app;
struct alert_hook;

/* NULL: there is no such program, and a message says so. */
struct alert_hook *alert_hook_new(struct app *a, const char *program, int64_t after_ms);
void alert_hook_free(struct alert_hook *h);
void alert_hook_turn(struct alert_hook *h); /* called each turn of the loop */

#endif
