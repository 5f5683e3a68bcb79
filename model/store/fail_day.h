/* When the failed jobs of one group of errors failed: the last 24 hours by half hours, and how many
 * in the last hour. Pure: rows in, columns out. */
#ifndef MODEL_STORE_FAIL_DAY_H
#define MODEL_STORE_FAIL_DAY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/record.h"

enum { FAIL_STEPS = 48, FAIL_STEP_MS = 1800000 };

struct fail_day {
    int64_t first_ms; /* start of the first half hour; the last half hour is not over */
    int64_t since_ms; /* failures before this time were not counted; FIELD_NULL = all were */
    int64_t hour;     /* how many of the counted ones failed in the last hour */
    int64_t counts[FAIL_STEPS];
};

/* Makes the days of n groups from the rows of times. now_ms is the server's clock; out has space
 * for n. False: the rows have no figure for the last hour (an old recording). */
bool fail_days_read(const struct group_row *groups, int n, const struct fail_time_row *times,
                    int ntimes, int64_t now_ms, struct fail_day *out);

/* The last w columns, oldest first. Each column is the sum of `per` half hours and begins at a
 * multiple of its length; NAN = not counted. */
void fail_day_columns(const struct fail_day *d, int64_t now_ms, int per, double *out, int w);
int64_t fail_day_first_ms(int64_t now_ms, int per, int w); /* when the first of them begins */

/* True if some failures of the last hour were not counted: `hour` is then a lower bound. */
bool fail_day_hour_is_least(const struct group_row *g, int64_t now_ms);

#endif
