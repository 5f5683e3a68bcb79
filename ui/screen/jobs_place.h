/* The place of the cursor in the list of jobs ("12 of 345"), as far as it is known. */
#ifndef UI_SCREEN_JOBS_PLACE_H
#define UI_SCREEN_JOBS_PLACE_H

#include "model/store/store.h"
#include "ui/widget/list.h"

/* The number of jobs in a state, from the counters of the queue system; FIELD_NULL = not known. */
int64_t jobs_in_state(const struct queue_row *q, const char *state);

void jobs_say_place(const struct store *s, const struct filter *f, const struct list *l,
                    struct buf *out); /* "12 of 345" */
/* The order of the rows in words, from the note "order" of the adapter's section jobs. The note has
 * clauses `STATES: words`; the first clause that fits counts. STATES is "queue" (fits if the filter
 * names one), or "*" (always fits), or a list of states (fits if it has all states of the filter).
 * "" = the adapter does not say. */
struct fmt_order {
    char s[60];
};
struct fmt_order jobs_say_order(const struct adapter *a, const struct filter *f);

#endif
