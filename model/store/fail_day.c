/*
 * Half hours are those of the UTC clock. The rows of one group are mostly neighbours, so the search
 * for the group of a row begins at the group of the row before.
 */
#include "model/store/fail_day.h"

#include <math.h>
#include <string.h>

#include "model/base/field.h"

enum { HOUR_MS = 3600000 };

static int
find_group(const struct group_row *groups, int n, const struct fail_time_row *t, int from)
{
    for (int k = 0; k < n; k++) {
        const struct group_row *g = &groups[(from + k) % n];
        if (!strcmp(g->error_key, t->error_key) && !strcmp(g->queue, t->queue))
            return (from + k) % n;
    }
    return -1;
}

/* The time since which failures were counted, if it is the same in all rows: then it is also valid
 * for groups without a row. FIELD_NULL = the rows differ, or there are none. */
static int64_t
since_of_all(const struct fail_time_row *times, int n)
{
    for (int i = 1; i < n; i++)
        if (times[i].since_ms != times[0].since_ms)
            return FIELD_NULL;
    return n > 0 ? times[0].since_ms : FIELD_NULL;
}

static int64_t
first_of(int64_t now_ms, int64_t step_ms, int w)
{
    return now_ms - now_ms % step_ms - (w - 1) * step_ms;
}

bool
fail_days_read(const struct group_row *groups, int n, const struct fail_time_row *times, int ntimes,
               int64_t now_ms, struct fail_day *out)
{
    int64_t since = since_of_all(times, ntimes);
    int at = 0;

    for (int i = 0; i < n; i++)
        out[i] = (struct fail_day){.first_ms = first_of(now_ms, FAIL_STEP_MS, FAIL_STEPS),
                                   .since_ms = since};
    for (int i = 0; i < ntimes; i++) {
        if (times[i].hour == FIELD_NULL)
            return false;
        int found = find_group(groups, n, &times[i], at);
        if (found < 0)
            continue;
        struct fail_day *d = &out[at = found];
        int64_t step = (times[i].at_ms - d->first_ms) / FAIL_STEP_MS;
        d->since_ms = times[i].since_ms;
        d->hour += times[i].hour;
        if (times[i].at_ms >= d->first_ms && step < FAIL_STEPS)
            d->counts[step] += times[i].n;
    }
    return true;
}

int64_t
fail_day_first_ms(int64_t now_ms, int per, int w)
{
    return first_of(now_ms, (int64_t)per * FAIL_STEP_MS, w);
}

void
fail_day_columns(const struct fail_day *d, int64_t now_ms, int per, double *out, int w)
{
    int64_t step_ms = (int64_t)per * FAIL_STEP_MS, first = fail_day_first_ms(now_ms, per, w);

    for (int i = 0; i < w; i++) {
        int64_t from = first + i * step_ms;
        out[i] = d->since_ms != FIELD_NULL && from + step_ms <= d->since_ms ? (double)NAN : 0;
    }
    for (int i = 0; i < FAIL_STEPS; i++) {
        int64_t at = d->first_ms + (int64_t)i * FAIL_STEP_MS - first;
        if (at >= 0 && at / step_ms < w && d->counts[i] > 0)
            out[at / step_ms] += (double)d->counts[i];
    }
}

bool
fail_day_hour_is_least(const struct group_row *g, int64_t now_ms)
{
    return g->day && g->day->hour < g->n && g->day->since_ms != FIELD_NULL &&
           g->day->since_ms > now_ms - HOUR_MS;
}
