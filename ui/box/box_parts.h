/* What the boxes that ask share: the question before an act, the box of a canary, and the form of
 * their options. */
#ifndef UI_BOX_BOX_PARTS_H
#define UI_BOX_BOX_PARTS_H

#include "model/action/action.h"
#include "ui/console/app.h"
#include "ui/console/view.h"
#include "ui/widget/prompt.h"

extern const struct view_ops confirm_ops;

struct asking_box { /* the struct of a box that asks begins with this; its ops name these functions
                     */
    struct view view;
    struct question ask;
};
void asking_draw(struct view *v, struct grid *g, struct rect screen);
void asking_drawn(struct view *v);
void asking_footer(struct view *v, struct buf *out);
/* Handles a key in a box that takes only Yes and No. */
bool asking_key(struct view *v, const struct key *k, void (*yes)(struct view *),
                void (*no)(struct view *));
/* The answer is No: nothing was changed, and the box closes. */
void asking_no(struct view *v);

/* F4 opens the options: spread, tries and reason of a requeue; the reason of other acts. The box
 * that asks gets the result by confirm_again or canary_again. */
void box_options(struct app *a, const struct action *act);
/* Adds to the question what F4 opens. */
void say_options(struct question *ask, const struct action *act);
void confirm_again(struct view *v, const struct act_options *o);
void canary_again(struct view *v, const struct act_options *o);

struct about_requeue { /* a canary's store need not be the one on the screen */
    const struct app *app;
    const struct store *store;
    const struct action *action;
};
/* Begins the question before a requeue of several jobs: which jobs, what happens to them, when they
 * start, how undo works. */
void say_requeue(struct question *ask, const struct about_requeue *of);
/* A text of several lines. */
void say_lines(struct question *ask, enum role role, const char *label, const char *text);
/* How undo works, in the keys of the console. */
void say_undo(struct question *ask, const struct action *act);

#endif
