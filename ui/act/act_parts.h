/* What the files of acts share (ui/act/act.c, ui/act/act_schedule.c): the row that an act is for,
 * the reason why an act is impossible, and the way to the question. */
#ifndef UI_ACT_ACT_PARTS_H
#define UI_ACT_ACT_PARTS_H

#include "model/action/action.h"
#include "ui/console/view.h"

/* Why the act is impossible whatever the row is: because of the connection, the role, the adapter,
 * or another action that runs. NULL = it is possible. */
const char *act_no_one(const struct app *a, enum act act);
/* The same, and also a reason if there is no row. */
const char *act_no_target(const struct app *a, enum act act);
/* For the jobs of a target: the ids, or its predicate. Fills the intent and asks. */
void act_jobs(struct app *a, struct intent *i, const struct target *t);
/* The same act on each marked queue or node (`target` says which of the two). If no row or only
 * other rows are marked: on the queue or node named `subject`. */
void act_ask_each(struct app *a, const struct intent *i, enum param target, const char *subject);
/* The same for marked groups of failed jobs. */
void act_ask_groups(struct app *a, const struct intent *i, const struct target *t);
/* The filter for the jobs of one group: the terms of the screen's filter hold, too. */
void act_group(struct params *where, const struct target *t, const struct target_group *group);
/* Which of the marked groups do not exist any more, as a sentence in the frame's memory; "" = none.
 */
const char *act_say_gone(const struct app *a, const struct target *t);
/* What is wrong with a time that was typed, in words that fit beside the field; NULL = nothing. */
const char *act_check_when(const struct app *a, const char *text);
bool act_takes_many(const struct target *t, enum act act);
/* Asks for the preview and opens the question. The boxes that led here close. */
void act_ask(struct app *a, const struct intent *intent);

/* "Resume report.daily": what the key does to the row in its present state. In the frame's memory.
 */
const char *help_pause(const struct app *a, int arg);

/* on_X and no_X of the rows of model/adapter/acts.def; ui/act/act.c has the table. */
#define KEY(id, on, no, ...)         \
    void on(struct app *a, int arg); \
    const char *no(const struct app *a, int arg);
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) keys
#include "model/adapter/acts.def"

#endif
