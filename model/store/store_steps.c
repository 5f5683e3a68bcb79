/*
 * The charts of one queue. Minutes that are over seldom change (a late commit may), so after the
 * first answer only the last two steps are asked for, and replace the old ones. A recorder gets all
 * steps each time, because a replay may start in the middle of the recording.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/store/store_parts.h"

double
store_bucket_ms(int bucket)
{
    static const double half_octave = 1.4142135623730951;
    double ms = 1;

    for (int i = 2; i < bucket; i += 2)
        ms *= i + 1 < bucket ? 2 : half_octave;
    return bucket <= 1 ? 0 : ms;
}

static int64_t
floor_to(int64_t ms, int64_t step_ms)
{
    return ms - ms % step_ms;
}

static int64_t
first_shown(const struct store *s)
{
    int64_t now = store_now_ms(s);

    return floor_to(now ? now : clock_wall_ms(), s->steps.step_ms) - STEPS_SHOWN * s->steps.step_ms;
}

void
store_ask_steps(struct store *s, const char *queue, int64_t step_ms)
{
    struct params *p = &s->slots[TOPIC_STEPS].params;
    const char *is = p->value[PARAM_QUEUE];

    if (is && !strcmp(is, queue) && s->steps.step_ms == step_ms)
        return;
    params_set(p, PARAM_QUEUE, queue);
    params_set_interval(p, PARAM_BY, step_ms);
    s->steps.step_ms = step_ms;
    store_choose(s, TOPIC_STEPS);
}

void
store_aim_steps(struct store *s)
{
    struct steps_topic *t = &s->steps;
    int64_t low = first_shown(s);
    int64_t last = t->n > 0 ? t->list[t->n - 1].at_ms : 0;

    t->goes_on = last - t->step_ms > low && !s->observer.fn;
    t->from_ms = t->goes_on ? last - t->step_ms : low;
    params_set_time(&s->slots[TOPIC_STEPS].params, PARAM_AT, t->from_ms);
}

/* Parses "{3,4,10}" into out; returns how many numbers it has. */
static int
read_numbers(const char *text, int *out, int most)
{
    int n = 0;

    for (const char *p = text; *p && n < most;) {
        char *end;
        long v = strtol(p, &end, 10);
        if (end == p) {
            p++;
            continue;
        }
        out[n++] = v < 0 ? 0 : v > INT32_MAX ? INT32_MAX : (int)v;
        p = end;
    }
    return n;
}

static void
read_times(const struct step_row *r, struct step *out)
{
    int buckets[TIME_BUCKETS], waits[TIME_BUCKETS], runs[TIME_BUCKETS];
    int n = read_numbers(r->buckets, buckets, TIME_BUCKETS);
    int w = read_numbers(r->waits, waits, TIME_BUCKETS);
    int u = read_numbers(r->runs, runs, TIME_BUCKETS);

    for (int i = 0; i < n && i < w && i < u; i++) {
        if (buckets[i] >= TIME_BUCKETS)
            continue;
        out->waits[buckets[i]] = waits[i];
        out->runs[buckets[i]] = runs[i];
    }
}

/* Keeps only the steps between low and high: removes those that are too old, and those that the
 * answer contains again. */
static void
keep_between(struct steps_topic *t, int64_t low, int64_t high)
{
    int n = 0;

    for (int i = 0; i < t->n; i++)
        if (t->list[i].at_ms >= low && t->list[i].at_ms < high)
            t->list[n++] = t->list[i];
    t->n = n;
}

bool
store_take_steps(struct store *s, struct db_reply *reply, struct err *e)
{
    struct steps_topic *t = &s->steps;
    struct rowset rows;

    if (!record_decode(&record_step, db_take(reply, 0), &rows, e))
        return false;
    keep_between(t, first_shown(s), t->goes_on ? t->from_ms : 0);
    for (int i = 0; i < rows.n && t->n < STEPS_KEPT; i++) {
        const struct step_row *r = (const struct step_row *)rows.rows + i;
        struct step *to = &t->list[t->n];
        if (t->n > 0 && r->at_ms <= to[-1].at_ms)
            continue;
        *to = (struct step){.at_ms = r->at_ms,
                            .seconds = r->seconds,
                            .pushed = r->pushed,
                            .completed = r->completed,
                            .fails = r->fails,
                            .retried = r->retried,
                            .lost = r->lost,
                            .backlog = r->backlog};
        read_times(r, to);
        t->n++;
    }
    rowset_free(&rows);
    return true;
}

void
store_clear_steps(struct store *s)
{
    s->steps.n = 0;
    s->steps.goes_on = false;
}

const struct step *
store_steps(const struct store *s, const char *queue, int64_t step_ms, int *n)
{
    const char *is = s->slots[TOPIC_STEPS].params.value[PARAM_QUEUE];
    bool same = is && !strcmp(is, queue) && s->steps.step_ms == step_ms;

    *n = same ? s->steps.n : 0;
    return same ? s->steps.list : NULL;
}
