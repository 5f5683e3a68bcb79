/* Where one is in the list of jobs, as far as it is known. */
#ifndef UI_JOBS_PLACE_H
#define UI_JOBS_PLACE_H

#include "model/store.h"
#include "ui/list.h"

void jobs_say_place(const struct store *s, const struct filter *f, const struct list *l,
                    struct buf *out); /* "12 of 345" */

#endif
