/* What is known of one job: three fixed lines, and a page with payload, result, attempts and
 * errors. Used by the job's own screen and by the preview beside the list. */
#ifndef UI_SCREEN_JOBPAGE_H
#define UI_SCREEN_JOBPAGE_H

#include "model/store/store.h"
#include "ui/widget/page.h"

struct job_look {
    int64_t now_ms;
    bool utc;
};
/* Builds the page from the store's job and its attempts; the page is empty if the store has no job.
 */
void jobpage_build(struct page *p, const struct store *s, const struct job_look *look);
/* The three lines above the page: queue, state, tries; times; id and node. */
void jobpage_head(struct grid *g, struct rect r, const struct job_detail *j,
                  const struct job_look *look);

#endif
