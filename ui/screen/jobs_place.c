/*
 * The place of the cursor in the list of jobs. If the filter has only a queue and states, the
 * number of all jobs that match comes from the counters of the queue system.
 */
#include "ui/screen/jobs_place.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ui/term/fmt.h"

int64_t
jobs_in_state(const struct queue_row *q, const char *state)
{
    static const struct {
        const char *state;
        size_t offset;
    } counts[] = {
        {"running",   offsetof(struct queue_row, running)       },
        {"ready",     offsetof(struct queue_row, ready)         },
        {"retry",     offsetof(struct queue_row, retry)         },
        {"scheduled", offsetof(struct queue_row, scheduled)     },
        {"failed",    offsetof(struct queue_row, failed)        },
        {"completed", offsetof(struct queue_row, kept_completed)},
        {"cancelled", offsetof(struct queue_row, kept_cancelled)},
    };

    for (size_t i = 0; q && i < sizeof counts / sizeof *counts; i++)
        if (!strcmp(counts[i].state, state))
            return *(const int64_t *)((const char *)q + counts[i].offset);
    return FIELD_NULL;
}

/* How many jobs match a filter of queue and states, by the counters of the queue system. -1 = not
 * known, or another filter. */
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
    static const char *const live[] = {"scheduled", "ready", "running", "retry", "failed"};
    int64_t n = 0;
    for (size_t i = 0; i < sizeof live / sizeof *live && n >= 0; i++) {
        if (!filter_has_state(f, live[i]))
            continue;
        int64_t more = jobs_in_state(q, live[i]);
        n = more == FIELD_NULL ? -1 : n + more;
    }
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
    else if (place.at_end && exact >= count) /* the rows are counted from the end */
        buf_printf(out, "%s of %s", fmt_count(exact - count + index + 1).s, fmt_count(exact).s);
    else if (place.at_end && index == count - 1)
        buf_str(out, "the last");
    else if (place.at_end)
        buf_printf(out, "%s before the end", fmt_count(count - index - 1).s);
    else
        buf_str(out, "near the end");
}

static bool
has_word(const char *list, size_t len, const char *word, size_t word_len)
{
    for (const char *at = list, *end = list + len; at < end;) {
        size_t n = strcspn(at, ",:");
        if (n == word_len && !memcmp(at, word, n))
            return true;
        at += n + 1;
    }
    return false;
}

/* Whether the list has all states of the array literal {"a","b"}. */
static bool
has_all(const char *list, size_t len, const char *states)
{
    bool any = false;

    for (const char *at = states; (at = strchr(at, '"')); at++) {
        size_t n = strcspn(++at, "\"");
        if (!has_word(list, len, at, n))
            return false;
        any = true;
        at += n;
    }
    return any;
}

struct fmt_order
jobs_say_order(const struct adapter *a, const struct filter *f)
{
    const char *clause = adapter_note(a, SEC_JOBS, "order");
    const char *states = f->terms.value[PARAM_STATES], *queue = f->terms.value[PARAM_QUEUE];
    struct fmt_order out = {""};

    for (; clause && *clause; clause += *clause == ';') {
        clause += strspn(clause, " ");
        size_t len = strcspn(clause, ":"), all = strcspn(clause, ";");
        if (len >= all)
            break;
        if (has_word(clause, len, "*", 1) || (queue && has_word(clause, len, "queue", 5)) ||
            (states && has_all(clause, len, states))) {
            snprintf(out.s, sizeof out.s, "%.*s", (int)(all - len - 2), clause + len + 2);
            break;
        }
        clause += all;
    }
    return out;
}
