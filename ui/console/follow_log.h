/* What happens to the thing that F follows: one line for each change between two answers of the
 * server, the newest last. The lines come from the figures that the screens have anyway, so nothing
 * more is asked, however much happens. */
#ifndef UI_CONSOLE_FOLLOW_LOG_H
#define UI_CONSOLE_FOLLOW_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct app;

struct follow_event {
    char *number; /* id of its row, ascending */
    int64_t at_ms;
    bool bad;
    char *text;
};

struct follow_was { /* the figures of the last answer; FIELD_NULL = not known */
    bool known;
    int64_t pushed, completed, fails, retried, ready, running, failed, paused;
    char *state; /* of a job, as a sentence */
};

struct follow_log {
    struct follow_event *events;
    int n;
    int64_t count; /* all events, also those that were dropped */
    struct follow_was was;
};

void follow_log_done(struct follow_log *l);
void follow_log_note(struct app *a); /* after an answer */

#endif
