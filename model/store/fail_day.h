/* When the failed jobs of one group of errors failed: the last 24 hours by half hours, and how many
 * in the last hour. Pure: rows in, columns out. */
#ifndef MODEL_STORE_FAIL_DAY_H
#define MODEL_STORE_FAIL_DAY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/record.h"

enum { FAIL_STEPS = 48, FAIL_STEP_MS = 1800000 };

struct fail_day {
    int64_t first_ms; /* when the first half hour begins; the last one is not over */
    int64_t since_ms; /* what failed before was not counted; FIELD_NULL = all was */
    int64_t hour;     /* in the last hour; of those counted */
    int64_t counts[FAIL_STEPS];
};

/* The days of n groups from the rows of their times, at a moment of the server's clock; out has
 * place for n. False: these rows don't tell the last hour, as those of an old recording. */
bool fail_days_read(const struct group_row *groups, int n, const struct fail_time_row *times,
                    int ntimes, int64_t now_ms, struct fail_day *out);

/* The last w columns of `per` half hours each, oldest first, that begin at multiples of their
 * length; NAN = not counted. */
void fail_day_columns(const struct fail_day *d, int64_t now_ms, int per, double *out, int w);
int64_t fail_day_first_ms(int64_t now_ms, int per, int w); /* when the first of them begins */

/* Some of the last hour were not counted: `hour` is the least that it can be. */
bool fail_day_hour_is_least(const struct group_row *g, int64_t now_ms);

#endif
