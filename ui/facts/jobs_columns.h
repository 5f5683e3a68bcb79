/* What the jobs list shows of a row (struct job_row), on the screen and on the command line. */
#ifndef UI_FACTS_JOBS_COLUMNS_H
#define UI_FACTS_JOBS_COLUMNS_H

#include "model/adapter/record.h"
#include "ui/term/fmt.h"
#include "ui/widget/list.h"

extern const struct column jobs_columns[];
extern const struct list_def jobs_def; /* ctx: NULL = of another queue system */
enum { JOBS_QUEUE_COLUMN = 1 };        /* hidden while the filter names one queue */

/* "2/5": the tries so far, of how many; in w cells, if need be without the most, "2.1G". */
struct fmt job_tries(const struct job_row *j, int w);

/* Call before rows are set. Makes the ids as wide as they need; for a foreign queue shows only the
 * columns that it has values for. when: the filter asks for states that have a time of their own.
 */
void jobs_columns_fit(struct list *l, const struct job_row *rows, int n, bool foreign, bool when);

#endif
