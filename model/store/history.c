/*
 * Ring buffers of cumulative counters. A queue has one ring of steps (the last value seen in each
 * step of step_ms) for sparklines, and one of the newest samples for the rate of now. Differences
 * are taken when they are read, so a sample costs a few stores.
 */
#include "model/store/history.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/db/rows.h"

enum { RECENT = 8 };

struct track { /* one queue */
    char *queue;
    int64_t step;                  /* number of the newest step = at_ms / step_ms */
    int64_t first_step;            /* of the oldest value in the ring */
    int64_t moved_step;            /* the last step in which a counter changed */
    int64_t (*last)[SERIES_COUNT]; /* [step % steps]: the newest value in that step */
    int64_t *at_ms;                /* [step % steps]: time of that value; 0 = no value in the
                                      step */
    struct sample recent[RECENT];  /* newest at (nrecent - 1) % RECENT */
    int64_t nrecent;
};

struct history {
    int step_ms, steps;
    struct track **tracks; /* sorted by name */
    int n, cap;
    int most;       /* the most rings, without the one of ""; 0 = no limit */
    int64_t forgot; /* the step in which old rings were last removed */
};

struct history *
history_new(int step_ms, int steps)
{
    struct history *h = xcalloc(1, sizeof *h);

    assert(step_ms > 0 && steps > 1);
    h->step_ms = step_ms;
    h->steps = steps;
    return h;
}

void
history_limit(struct history *h, int most)
{
    h->most = most;
}

int
history_count(const struct history *h)
{
    return h->n;
}

static void
track_done(struct track *t)
{
    free(t->queue);
    free(t->last);
    free(t->at_ms);
    free(t);
}

void
history_free(struct history *h)
{
    if (!h)
        return;
    for (int i = 0; i < h->n; i++)
        track_done(h->tracks[i]);
    free(h->tracks);
    free(h);
}

int
history_step_ms(const struct history *h)
{
    return h->step_ms;
}

/* The place of the queue in the sorted list; if the list does not have it, the place where it
 * belongs. */
static int
find_place(const struct history *h, const char *queue, bool *found)
{
    int low = 0, high = h->n;

    while (low < high) {
        int mid = low + (high - low) / 2;
        int order = strcmp(h->tracks[mid]->queue, queue);
        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *found = false;
    return low;
}

static bool
is_full(const struct history *h)
{
    return h->most && h->n >= h->most;
}

/* Frees the rings of queues that were not seen for a whole ring. If all rings are taken, it also
 * frees those of queues whose counters have not moved for that long. It looks once a step:
 * otherwise each of ten thousand new queues would look at all the others. */
static void
forget_old(struct history *h, int64_t step)
{
    int kept = 0;
    bool full = is_full(h);

    if (h->forgot == step)
        return;
    h->forgot = step;
    for (int i = 0; i < h->n; i++) {
        struct track *t = h->tracks[i];
        bool still = full && *t->queue && t->moved_step + h->steps < step;
        if (still || t->step + h->steps < step)
            track_done(t);
        else
            h->tracks[kept++] = t;
    }
    h->n = kept;
}

static struct track *
track_add(struct history *h, const char *queue, int64_t step)
{
    bool found;

    forget_old(h, step);
    if (is_full(h) && *queue)
        return NULL;
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        h->tracks = xreallocarray(h->tracks, (size_t)h->cap, sizeof *h->tracks);
    }
    int at = find_place(h, queue, &found);
    struct track *t = xcalloc(1, sizeof *t);
    memmove(h->tracks + at + 1, h->tracks + at, (size_t)(h->n - at) * sizeof *h->tracks);
    h->tracks[at] = t;
    h->n++;
    *t = (struct track){
        .queue = xstrdup(queue), .step = step, .first_step = step, .moved_step = step};
    t->last = xcalloc((size_t)h->steps, sizeof *t->last);
    t->at_ms = xcalloc((size_t)h->steps, sizeof *t->at_ms);
    return t;
}

static void
start_over(struct history *h, struct track *t, int64_t step)
{
    memset(t->at_ms, 0, (size_t)h->steps * sizeof *t->at_ms);
    t->step = t->first_step = step;
    t->nrecent = 0;
}

/* Moves the ring on to `step`, emptying the steps in between. */
static void
advance(struct history *h, struct track *t, int64_t step)
{
    if (step - t->step >= h->steps) {
        start_over(h, t, step);
        return;
    }
    while (t->step < step) {
        t->step++;
        t->at_ms[t->step % h->steps] = 0;
    }
    if (t->first_step <= t->step - h->steps)
        t->first_step = t->step - h->steps + 1;
}

static const struct sample *
newest(const struct track *t)
{
    return t->nrecent ? &t->recent[(t->nrecent - 1) % RECENT] : NULL;
}

static bool
runs_backwards(const struct sample *old, const struct sample *s)
{
    for (int i = 0; i <= SERIES_FAILED; i++)
        if (old->value[i] != FIELD_NULL && s->value[i] != FIELD_NULL && s->value[i] < old->value[i])
            return true;
    return false;
}

static void
add_sample(struct history *h, struct track *t, const struct sample *s)
{
    const struct sample *old = newest(t);
    int64_t step = s->at_ms / h->step_ms;

    if (s->at_ms <= 0 || (old && s->at_ms <= old->at_ms))
        return;
    if (!old || memcmp(old->value, s->value, sizeof *s->value * SERIES_BACKLOG) != 0)
        t->moved_step = step;
    advance(h, t, step);
    if (old && t->nrecent && runs_backwards(old, s))
        start_over(h, t, step);
    memcpy(t->last[step % h->steps], s->value, sizeof s->value);
    t->at_ms[step % h->steps] = s->at_ms;
    t->recent[t->nrecent++ % RECENT] = *s;
}

bool
history_add(struct history *h, const char *queue, const struct sample *s)
{
    bool found;
    int at = find_place(h, queue, &found);
    struct track *t = found ? h->tracks[at] : track_add(h, queue, s->at_ms / h->step_ms);

    if (t)
        add_sample(h, t, s);
    return t != NULL;
}

bool
history_go_on(struct history *h, const char *queue, const struct sample *s)
{
    bool found;
    int at = find_place(h, queue, &found);

    if (found)
        add_sample(h, h->tracks[at], s);
    return found;
}

static const struct track *
find_track(const struct history *h, const char *queue)
{
    bool found;
    int at = find_place(h, queue, &found);

    return found ? h->tracks[at] : NULL;
}

static double
rate(int64_t from, int64_t to, int64_t ms)
{
    if (from == FIELD_NULL || to == FIELD_NULL || ms <= 0)
        return (double)NAN;
    return (double)(to - from) * 1000.0 / (double)ms;
}

double
history_now(const struct history *h, const char *queue, enum series what, int window_ms)
{
    const struct track *t = find_track(h, queue);
    const struct sample *now = t ? newest(t) : NULL, *from = NULL;

    if (!now || now->value[what] == FIELD_NULL)
        return (double)NAN;
    if (what >= SERIES_BACKLOG)
        return (double)now->value[what];
    int64_t first = t->nrecent > RECENT ? t->nrecent - RECENT : 0;
    for (int64_t i = t->nrecent - 2; i >= first; i--) {
        from = &t->recent[i % RECENT];
        if (now->at_ms - from->at_ms >= window_ms)
            break;
    }
    return from ? rate(from->value[what], now->value[what], now->at_ms - from->at_ms) : (double)NAN;
}

double
history_mean(const struct history *h, const char *queue, enum series what, int window_ms,
             int least_ms)
{
    const struct track *t = find_track(h, queue);
    const struct sample *now = t ? newest(t) : NULL;

    if (!now)
        return (double)NAN;
    int64_t since = now->at_ms - window_ms, step = since / h->step_ms;
    step = step < t->first_step ? t->first_step : step;
    for (; step <= t->step; step++) {
        int64_t at = t->at_ms[step % h->steps], ms = now->at_ms - at;
        if (at && at >= since && ms > 0)
            return ms < least_ms ? (double)NAN
                                 : rate(t->last[step % h->steps][what], now->value[what], ms);
    }
    return least_ms > 0 ? (double)NAN : history_now(h, queue, what, window_ms);
}

/* The newest seen step before `step`, or -1. */
static int64_t
seen_before(const struct history *h, const struct track *t, int64_t step)
{
    while (--step >= t->first_step && step > t->step - h->steps)
        if (t->at_ms[step % h->steps])
            return step;
    return -1;
}

/* The rate of one step, from the last value before the step to the value in the step. A step
 * without a value gets the mean rate between the values before and after it. */
static double
step_value(const struct history *h, const struct track *t, enum series what, int64_t step)
{
    int64_t to = step;

    if (step > t->step || step < t->first_step)
        return (double)NAN;
    while (to <= t->step && !t->at_ms[to % h->steps])
        to++;
    int64_t from = seen_before(h, t, step);
    if (what >= SERIES_BACKLOG) {
        int64_t at = to == step ? step : from;
        int64_t value = at < 0 ? FIELD_NULL : t->last[at % h->steps][what];
        return value == FIELD_NULL ? (double)NAN : (double)value;
    }
    if (to > t->step || from < 0)
        return (double)NAN;
    return rate(t->last[from % h->steps][what], t->last[to % h->steps][what],
                t->at_ms[to % h->steps] - t->at_ms[from % h->steps]);
}

void
history_read(const struct history *h, const char *queue, enum series what, int64_t now_ms,
             double *out, int n)
{
    const struct track *t = find_track(h, queue);
    int64_t now = now_ms / h->step_ms;

    for (int i = 0; i < n; i++)
        out[i] = t ? step_value(h, t, what, now - (n - 1 - i)) : (double)NAN;
}

/* --- since when -------------------------------------------------------------------------------- */

static void
since_step(const struct history *h, const struct track *t, enum series what, int64_t step,
           struct history_since *out)
{
    const struct sample *now = newest(t);
    const int64_t *then = t->last[step % h->steps];
    int64_t done = now->value[SERIES_DONE], was = then[SERIES_DONE];

    out->at_ms = t->at_ms[step % h->steps];
    out->ms = now->at_ms - out->at_ms;
    out->before = seen_before(h, t, step) < 0;
    out->done = done == FIELD_NULL || was == FIELD_NULL ? FIELD_NULL : done - was;
    out->was = (double)then[what];
}

bool
history_still(const struct history *h, const char *queue, enum series counter,
              struct history_since *out)
{
    const struct track *t = find_track(h, queue);
    const struct sample *now = t ? newest(t) : NULL;
    int64_t found = -1;

    if (!now || now->value[counter] == FIELD_NULL)
        return false;
    for (int64_t step = t->step; step >= 0; step = seen_before(h, t, step)) {
        if (t->last[step % h->steps][counter] != now->value[counter])
            break;
        found = step;
    }
    if (found >= 0)
        since_step(h, t, counter, found, out);
    return found >= 0;
}

bool
history_falls(const struct history *h, const char *queue, enum series gauge,
              struct history_since *out)
{
    const struct track *t = find_track(h, queue);
    const struct sample *now = t ? newest(t) : NULL;
    int64_t found = -1, most = now ? now->value[gauge] : FIELD_NULL;

    if (most == FIELD_NULL)
        return false;
    for (int64_t step = t->step; step >= 0; step = seen_before(h, t, step))
        if (t->last[step % h->steps][gauge] > most) { /* an unknown value is lower than all
                                                         others */
            most = t->last[step % h->steps][gauge];
            found = step;
        }
    if (found >= 0)
        since_step(h, t, gauge, found, out);
    return found >= 0;
}
