/* What the question before an act, the box of a canary and the form of their options share. */
#ifndef UI_BOX_BOX_PARTS_H
#define UI_BOX_BOX_PARTS_H

#include "model/action/action.h"
#include "ui/console/app.h"
#include "ui/console/view.h"
#include "ui/widget/prompt.h"

extern const struct view_ops confirm_ops;

/* F4: spread, tries and reason of a requeue; the reason of other acts. The box of this view takes
 * what was set, by confirm_again or canary_again. */
void box_options(struct app *a, const struct action *act);
/* What F4 opens, in words. */
void say_options(struct question *ask, const struct action *act);
void confirm_again(struct view *v, const struct act_options *o);
void canary_again(struct view *v, const struct act_options *o);

/* A requeue of several jobs: which, what happens to them, when they start, how undo works. Begins
 * the question. */
void say_requeue(struct question *ask, const struct app *a, const struct action *act);
/* A text of several lines. */
void say_lines(struct question *ask, enum role role, const char *label, const char *text);
/* How undo works, in the keys of the console. */
void say_undo(struct question *ask, const struct action *act);

#endif
