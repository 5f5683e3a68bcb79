/* What is known of one job, as three fixed lines and a page: payload, result, attempts, errors.
 * Used by the job's own screen and by the preview beside the list. */
#ifndef UI_SCREEN_JOBPAGE_H
#define UI_SCREEN_JOBPAGE_H

#include "model/store/store.h"
#include "ui/widget/page.h"

struct job_look {
    int64_t now_ms;
    bool utc;
};
/* Builds the page from the store's job and attempts; empty when there is none. */
void jobpage_build(struct page *p, const struct store *s, const struct job_look *look);
/* The three lines on top: queue, state, tries; times; id and node. */
void jobpage_head(struct grid *g, struct rect r, const struct job_detail *j,
                  const struct job_look *look);

#endif
