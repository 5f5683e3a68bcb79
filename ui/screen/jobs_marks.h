/* The state that each marked job had when it was marked, so that the screen can say how many of
 * them have another state by now. */
#ifndef UI_SCREEN_JOBS_MARKS_H
#define UI_SCREEN_JOBS_MARKS_H

#include <stdbool.h>

#include "model/base/mem.h"
#include "ui/widget/list.h"

struct jobs_marks {     /* starts as {0} */
    struct marked *was; /* sorted by id, as the marks are */
    int n;
    int moved, left; /* marked jobs in another state, marked jobs that left the list */
};
void jobs_marks_forget(struct jobs_marks *m);
/* After marking: keeps the state of rows that are newly marked. */
void jobs_marks_remember(struct jobs_marks *m, const struct list *l);
/* After new rows have come: counts moved and left. whole: the list holds all jobs that match the
 * filter; then a marked job that is not in the list has left. */
/* Whether a marked job is in this state; of a job that is not in the list: was, when it was marked.
 */
bool jobs_marks_have(const struct jobs_marks *m, const struct list *l, const char *state);
/* The states of the marked jobs, "running ready"; NULL = there is one of an unknown state. */
const char *jobs_marks_states(const struct jobs_marks *m, const struct list *l, struct arena *mem);
void jobs_marks_look(struct jobs_marks *m, const struct list *l, bool whole);

#endif
