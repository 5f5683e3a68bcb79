/*
 * Where one is in the list of jobs. Counts come from the queues' own, where the filter is one of
 * queue and states only.
 */
#include "ui/jobs_place.h"

#include "ui/fmt.h"

static int64_t
with(int64_t n, const struct filter *f, const char *state, int64_t more)
{
    if (n < 0 || !filter_has_state(f, state))
        return n;
    return more == FIELD_NULL ? -1 : n + more;
}

/* How many match, where the maintained counters know it: a filter of queue and states only.
 * -1 = unknown. */
static int64_t
exact_count(const struct store *s, const struct filter *f)
{
    const struct params *p = &f->terms;
    const char *queue = p->value[PARAM_QUEUE];
    const struct queue_row *q = queue ? store_queue(s, queue) : store_totals(s);

    for (int i = 0; i < PARAM_TOTAL; i++)
        if (p->value[i] && i != PARAM_QUEUE && i != PARAM_STATES)
            return -1;
    if (!q || !p->value[PARAM_STATES] || filter_has_state(f, "completed") ||
        filter_has_state(f, "cancelled"))
        return -1;
    if (q->approx == 1)
        return -1;
    int64_t n = 0;
    n = with(n, f, "scheduled", q->scheduled);
    n = with(n, f, "ready", q->ready);
    n = with(n, f, "running", q->running);
    n = with(n, f, "retry", q->retry);
    n = with(n, f, "failed", q->failed);
    return n;
}

void
jobs_say_place(const struct store *s, const struct filter *f, const struct list *l, struct buf *out)
{
    struct jobs_place place = store_jobs_place(s);
    int index = list_index(l), count = list_count(l);
    int64_t exact = exact_count(s, f), seen = place.before + count;

    if (index < 0)
        return;
    if (place.before >= 0)
        buf_printf(out, "%s of %s%s", fmt_count(place.before + index + 1).s,
                   fmt_count(exact >= seen ? exact : seen).s,
                   exact >= seen || place.at_end ? "" : "+");
    else if (place.at_end && exact >= count) /* counted from the end */
        buf_printf(out, "%s of %s", fmt_count(exact - count + index + 1).s, fmt_count(exact).s);
    else if (place.at_end && index == count - 1)
        buf_str(out, "the last");
    else if (place.at_end)
        buf_printf(out, "%s before the end", fmt_count(count - index - 1).s);
    else
        buf_str(out, "near the end");
}
