/* What the jobs list shows of a row (struct job_row). */
#ifndef UI_JOBS_COLUMNS_H
#define UI_JOBS_COLUMNS_H

#include "ui/list.h"

extern const struct list_def jobs_def;
enum { JOBS_QUEUE_COLUMN = 1 }; /* hidden while the filter names one queue */

#endif
