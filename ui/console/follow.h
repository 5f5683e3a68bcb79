/* F follows one queue, job or group of failed jobs: the cursor stays on its row, however the table
 * is sorted or moved, and every screen shows its state. If the user selects another row, the
 * following ends. */
#ifndef UI_CONSOLE_FOLLOW_H
#define UI_CONSOLE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/mem.h"

/* What happens to the thing that F follows: one line for each change between two answers of the
 * server, the newest last. The lines come from the figures that the screens have anyway, so
 * nothing more is asked, however much happens. */

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

void follow_log_note(struct app *a); /* after an answer */

struct app;
struct view;

/* A row that is to be selected in the screen in front as soon as its list has the row. It ends when
 * the screen is left or the user moves the cursor. */
struct seek {
    struct view *in; /* NULL = no row is sought */
    char *row;
};

/* The row with this id, or the first one whose id begins with it (Failed: queue, error). */
void seek_row(struct app *a, const char *row);
void seek_turn(struct app *a); /* after new rows */
void seek_end(struct app *a);

enum followed { FOLLOW_NOTHING, FOLLOW_QUEUE, FOLLOW_JOB, FOLLOW_GROUP };

struct follow { /* follow.c */
    enum followed what;
    char *id;            /* the id of its row */
    char *queue, *error; /* only for a group */
    char *name;          /* its name on the screen */
    struct view *held;   /* the screen whose cursor is on its row; NULL = none */
    struct follow_log log;
};

void follow_done(struct follow *f);
void follow_end(struct app *a);  /* and says so; does nothing if nothing is followed */
void follow_ask(struct app *a);  /* a screen comes to the front: asks for the data */
void follow_hold(struct app *a); /* after new data: moves the cursor to the row if the row exists */
void follow_key(struct app *a);  /* after a key: ends the following if another row was selected */
/* True if Esc ends the following. On the page of events it goes back first. */
bool follow_ends_by_esc(const struct app *a);
/* True if the screen shows the followed thing: the cursor is on its row, or the page is about it.
 */
bool follow_is_seen(const struct app *a);
void follow_say(const struct app *a, struct buf *out); /* its state, as a sentence */

#endif
