/* What the marked jobs of a list were when they were marked, so that it can be said which of them
 * are something else by now. */
#ifndef UI_SCREEN_JOBS_MARKS_H
#define UI_SCREEN_JOBS_MARKS_H

#include <stdbool.h>

#include "ui/widget/list.h"

struct jobs_marks {     /* starts as {0} */
    struct marked *was; /* sorted by id, as the marks are */
    int n;
    int moved, left; /* in another state, not in the list any more */
};
void jobs_marks_forget(struct jobs_marks *m);
/* After marking: keeps the state of rows that are newly marked. */
void jobs_marks_remember(struct jobs_marks *m, const struct list *l);
/* After new rows. whole: the list holds all that match, so what is not there has left. */
void jobs_marks_look(struct jobs_marks *m, const struct list *l, bool whole);

#endif
