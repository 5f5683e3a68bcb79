#include "ui/facts/chart_points.h"

#include <math.h>
#include <string.h>

enum { MINUTE_MS = 60000, LATELY_MS = 600000 };

static const struct {
    const char *name;
    int64_t step_ms;
} spans[SPANS] = {
    [SPAN_HOUR] = {"1 h",    MINUTE_MS      },
    [SPAN_DAY] = {"24 h",   24 * MINUTE_MS },
    [SPAN_WEEK] = {"7 d",    168 * MINUTE_MS},
    [SPAN_10_MINUTES] = {"10 min", 10000          },
};

const char *
span_name(enum span span)
{
    return spans[span].name;
}

int64_t
span_step_ms(enum span span)
{
    return spans[span].step_ms;
}

static void
start(struct chart_points *c, int64_t step_ms, int64_t now_ms)
{
    memset(c, 0, sizeof *c);
    c->step_ms = step_ms;
    c->first_ms = now_ms - now_ms % step_ms - (CHART_STEPS - 1) * step_ms;
    for (int i = 0; i < CHART_STEPS; i++)
        c->in[i] = c->out[i] = c->failed[i] = c->backlog[i] = c->oldest[i] = (double)NAN;
}

static void
count_known(struct chart_points *c)
{
    for (int i = 0; i < CHART_STEPS; i++)
        c->known += !isnan(c->out[i]) || !isnan(c->backlog[i]);
}

static void
read_history(const struct store *s, const char *queue, int64_t now_ms, struct chart_points *c)
{
    const struct history *h = store_history(s);

    history_read(h, queue, SERIES_PUSHED, now_ms, c->in, CHART_STEPS);
    history_read(h, queue, SERIES_DONE, now_ms, c->out, CHART_STEPS);
    history_read(h, queue, SERIES_FAILED, now_ms, c->failed, CHART_STEPS);
    history_read(h, queue, SERIES_BACKLOG, now_ms, c->backlog, CHART_STEPS);
    history_read(h, queue, SERIES_OLDEST, now_ms, c->oldest, CHART_STEPS);
}

static void
read_step(const struct step *from, struct chart_points *c, int i)
{
    double seconds = from->seconds;

    c->in[i] = seconds > 0 ? (double)from->pushed / seconds : (double)NAN;
    c->out[i] = seconds > 0 ? (double)from->completed / seconds : (double)NAN;
    c->failed[i] = seconds > 0 ? (double)from->fails / seconds : (double)NAN;
    c->backlog[i] =
        from->backlog == FIELD_NULL ? (double)NAN : (double)(from->backlog > 0 ? from->backlog : 0);
    memcpy(c->waits[i], from->waits, sizeof c->waits[i]);
    memcpy(c->runs[i], from->runs, sizeof c->runs[i]);
}

static void
read_steps(const struct store *s, const char *queue, struct chart_points *c)
{
    int n;
    const struct step *steps = store_steps(s, queue, c->step_ms, &n);

    c->has_times = true;
    for (int k = 0; k < n; k++) {
        int64_t i = (steps[k].at_ms - c->first_ms) / c->step_ms;
        if (steps[k].at_ms >= c->first_ms && i < CHART_STEPS)
            read_step(&steps[k], c, (int)i);
    }
}

void
chart_read(const struct store *s, const char *queue, enum span span, int64_t now_ms,
           struct chart_points *out)
{
    start(out, spans[span].step_ms, now_ms);
    if (span == SPAN_10_MINUTES)
        read_history(s, queue, now_ms, out);
    else
        read_steps(s, queue, out);
    count_known(out);
}

static double
bucket_end(int bucket)
{
    return store_bucket_ms(bucket + 1);
}

double
chart_percentile(const int (*counts)[TIME_BUCKETS], int64_t step_ms, double part)
{
    int64_t all = 0, below = 0, sums[TIME_BUCKETS] = {0};
    int columns = step_ms >= LATELY_MS ? 2 : (int)(LATELY_MS / step_ms);

    for (int i = CHART_STEPS - columns; i < CHART_STEPS; i++)
        for (int b = 0; b < TIME_BUCKETS; b++) {
            sums[b] += counts[i][b];
            all += counts[i][b];
        }
    for (int b = 0; b < TIME_BUCKETS; b++) {
        double want = part * (double)all - (double)below;
        if (sums[b] > 0 && want <= (double)sums[b])
            return store_bucket_ms(b) +
                   (bucket_end(b) - store_bucket_ms(b)) * want / (double)sums[b];
        below += sums[b];
    }
    return (double)NAN;
}

double
chart_growth(const struct chart_points *c)
{
    double sum = 0;
    int n = 0;

    for (int i = CHART_STEPS - CHART_STEPS / 10 - 1; i < CHART_STEPS - 1; i++)
        if (!isnan(c->backlog[i]) && !isnan(c->backlog[i + 1])) {
            sum += c->backlog[i + 1] - c->backlog[i];
            n++;
        }
    return n ? sum / n * 1000.0 / (double)c->step_ms : (double)NAN;
}
