/* What the files of acts share (ui/act/act.c, ui/act/act_schedule.c): the row that an act is for,
 * why it can't be done, and the way to the question. */
#ifndef UI_ACT_ACT_PARTS_H
#define UI_ACT_ACT_PARTS_H

#include "model/action/action.h"
#include "ui/console/view.h"

/* The target of the row under the cursor; TARGET_NONE = there is no row. Borrowed, as its fields
 * are. */
struct target act_target(const struct app *a);
/* Why the act is impossible here, whatever the row: the connection, the role, the adapter, or
 * another action that runs. */
const char *act_no_one(const struct app *a, enum act act);
/* The same; also if there is no row. */
const char *act_no_target(const struct app *a, enum act act);
/* For the jobs of a target: the ids, or its predicate. Fills the intent and asks. */
void act_jobs(struct app *a, struct intent *i, const struct target *t);
/* The same act on each of the marked queues or nodes (target says which of the two), or on the one
 * that `subject` names, where none or others are marked. */
void act_ask_each(struct app *a, const struct intent *i, enum param target, const char *subject);
bool act_takes_many(enum act act);
/* Preview and question; the boxes that led here close. */
void act_ask(struct app *a, const struct intent *intent);

/* "Resume report.daily": what the key does with the row as it is. In the frame's memory. */
const char *help_pause(const struct app *a, int arg);

/* on_X and no_X of the rows of model/adapter/acts.def; ui/act/act.c has the table. */
#define KEY(id, on, no, ...)         \
    void on(struct app *a, int arg); \
    const char *no(const struct app *a, int arg);
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) keys
#include "model/adapter/acts.def"

#endif
