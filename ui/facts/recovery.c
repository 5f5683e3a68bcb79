/*
 * A cause counts as gone only after a minute. The jobs of some queues fail only now and then, and
 * some backlogs swing: a few quiet seconds prove nothing.
 */
#include "ui/facts/recovery.h"

#include <math.h>

#include "ui/term/fmt.h"

#define BAND 0.95 /* a backlog that swings by less than 5 % counts as level */

enum { LEAST_MS = 60000, MINUTE_STEPS = 7, MINUTE_S = 60 };

bool
recovery_say_failures(const struct recovery_of *of, const struct queue_row *q, struct buf *out)
{
    struct history_since still;
    bool known = history_still(store_history(of->s), q->queue, SERIES_FAILED, &still);

    if (known && still.ms >= LEAST_MS) {
        buf_printf(out, ", none for %s%s", still.before ? "over " : "", fmt_age_short(still.ms).s);
        if (still.done != FIELD_NULL)
            buf_printf(out, ", %s completed",
                       still.done > 0 ? fmt_count_fit(still.done, 5).s : "none");
        return true;
    }
    if (!isnan(q->failed_per_s) && q->failed_per_s * MINUTE_S >= 1)
        buf_printf(out, ", still %s a minute",
                   fmt_count((int64_t)(q->failed_per_s * MINUTE_S + 0.5)).s);
    return false;
}

bool
recovery_is_seen(const struct store *s, const char *queue)
{
    struct history_since still;

    return history_still(store_history(s), queue, SERIES_FAILED, &still) && still.ms >= LEAST_MS &&
           still.done != FIELD_NULL && still.done > 0;
}

void
recovery_say_backlog(const struct recovery_of *of, const struct queue_row *q, struct buf *out)
{
    const struct history *h = store_history(of->s);
    struct history_since top;
    double minute[MINUTE_STEPS], now = history_now(h, q->queue, SERIES_BACKLOG, LEAST_MS);

    if (!history_falls(h, q->queue, SERIES_BACKLOG, &top) || top.ms < LEAST_MS)
        return;
    history_read(h, q->queue, SERIES_BACKLOG, of->now_ms, minute, MINUTE_STEPS);
    if (now > top.was * BAND || isnan(minute[0]) || now >= minute[0])
        return;
    buf_printf(out, ", fewer wait since %s%.5s", top.before ? "before " : "",
               fmt_time(top.at_ms, of->utc).s);
}
