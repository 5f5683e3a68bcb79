/* The tables of the Schedules screen as data: the schedules, and the last runs of one schedule. */
#ifndef UI_FACTS_SCHEDULE_COLUMNS_H
#define UI_FACTS_SCHEDULE_COLUMNS_H

#include "model/adapter/record.h"
#include "ui/widget/list.h"

struct run_line { /* a row of run_list */
    struct run_row r;
    char *id;
};

extern const struct column schedule_columns[]; /* of struct schedule_row */
extern const struct list_def schedule_list;    /* of struct schedule_row */
extern const struct list_def run_list;         /* of struct run_line */

/* A job that waits in a paused queue is held, in whatever state it is. */
const char *schedule_outcome(const struct schedule_row *s, const char *outcome);
/* "Fri 2026-11-20 06:00:00", without the year if it is this year, without the seconds if they are
 * zero. */
void schedule_due(const char *due, int64_t now_ms, char *out, size_t size);

#endif
