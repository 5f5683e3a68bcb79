/*
 * The panels. Each title has the present figures, so that the user need not read a number off a
 * chart. If the queue system keeps no minutes, or the span is ten minutes, the charts show what
 * this console has seen itself; a time that it has not seen is blank.
 */
#include "ui/screen/charts.h"

#include <math.h>
#include <string.h>

#include "ui/console/commands.h"
#include "ui/facts/verdict.h"

enum { LEAST_W = 56 }; /* the least width of a panel */

static bool
keeps_minutes(const struct app *a)
{
    return !store_topic(a->store, TOPIC_STEPS)->unavailable;
}

static enum span
span_of(const struct app *a)
{
    return keeps_minutes(a) ? a->span : SPAN_10_MINUTES;
}

void
charts_ask(struct app *a, const char *queue)
{
    bool asks = queue && *queue && span_of(a) != SPAN_10_MINUTES;

    if (asks)
        store_ask_steps(a->store, queue, span_step_ms(span_of(a)));
    store_want(a->store, TOPIC_STEPS, asks);
    store_want(a->store, TOPIC_AUDIT, queue && *queue); /* to tell which events are on the axis */
}

/* --- events ---------------------------------------------------------------------------------- */

static void
add_event(struct charts *c, int64_t at_ms, const char *glyph, enum role role)
{
    if (at_ms < c->axis.first_ms || c->axis.nevents == CHARTS_EVENTS)
        return;
    c->events[c->axis.nevents++] = (struct plot_event){at_ms, glyph, role};
}

static void
add_nodes(struct charts *c, const struct app *a)
{
    int n;
    const struct node_row *rows = store_nodes(a->store, &n);

    for (int i = 0; i < n; i++)
        if (node_state(&rows[i]) == NODE_DEAD && rows[i].heartbeat_ms != FIELD_NULL)
            add_event(c, rows[i].heartbeat_ms, "×", ROLE_BAD);
}

static void
add_acts(struct charts *c, const struct app *a)
{
    int n;
    const struct audit_row *rows = store_audit(a->store, &n);

    for (int i = 0; i < n; i++) {
        if (strcmp(rows[i].target, c->queue) != 0)
            continue;
        if (!strcmp(rows[i].verb, "pause"))
            add_event(c, rows[i].at_ms, "‖", ROLE_WARN);
        else if (!strcmp(rows[i].verb, "resume"))
            add_event(c, rows[i].at_ms, "▸", ROLE_TEXT);
        else if (!strcmp(rows[i].verb, "set"))
            add_event(c, rows[i].at_ms, "↑", ROLE_TEXT);
    }
}

const struct charts *
charts_of(struct app *a, const char *queue)
{
    struct charts *c = arena_alloc(a->frame, sizeof *c);

    memset(c, 0, sizeof *c);
    c->queue = queue;
    c->span = span_of(a);
    c->own = c->span == SPAN_10_MINUTES && !keeps_minutes(a);
    chart_read(a->store, queue, c->span, a->now_ms, &c->points);
    c->axis = (struct plot_axis){.first_ms = c->points.first_ms,
                                 .step_ms = c->points.step_ms,
                                 .n = CHART_STEPS,
                                 .now_ms = a->now_ms,
                                 .utc = a->options.utc,
                                 .events = c->events};
    add_nodes(c, a);
    add_acts(c, a);
    return c;
}

static bool
has_times(const struct charts *c)
{
    return c->points.has_times;
}

/* --- panels ---------------------------------------------------------------------------------- */

static double
last_known(const double *v)
{
    for (int i = CHART_STEPS - 1; i >= 0; i--)
        if (!isnan(v[i]))
            return v[i];
    return (double)NAN;
}

/* The newest step that has ended: the step that has not ended yet shows too little. */
static double
last_whole(const double *v)
{
    return isnan(v[CHART_STEPS - 2]) ? last_known(v) : v[CHART_STEPS - 2];
}

static const char *
corner(const struct charts *c, const struct app *a)
{
    return arena_printf(a->frame, c->own ? "%s, as seen here" : "x: %s", span_name(c->span));
}

static const char *
none(const struct charts *c, const struct app *a)
{
    const struct topic_info *t = store_topic(a->store, TOPIC_STEPS);
    int n;
    bool of_this = store_steps(a->store, c->queue, c->points.step_ms, &n) && t->has_data;

    if (c->span != SPAN_10_MINUTES && t->err.kind != ERR_NONE)
        return t->err.text;
    return c->span == SPAN_10_MINUTES || of_this ? "not known yet" : "asking ...";
}

static struct rect
panel(struct rect r)
{
    r.w = r.w > CHARTS_W ? CHARTS_W : r.w;
    return r;
}

static const char *
headed(const struct app *a, const char *name, const char *rest)
{
    return *name ? arena_printf(a->frame, "%s: %s", name, rest) : rest;
}

static void
draw_flow(const struct charts *c, struct app *a, struct rect r, const char *name)
{
    const char *title =
        arena_printf(a->frame, "jobs/s in %s %s   out %s %s", grid_ascii(a->grid) ? "-" : "─",
                     fmt_rate(last_whole(c->points.in)).s, grid_ascii(a->grid) ? "#" : "█",
                     fmt_rate(last_whole(c->points.out)).s);

    plot_panel(a->grid, panel(r), &c->axis,
               &(struct plot){.title = headed(a, name, title),
                              .corner = corner(c, a),
                              .role = ROLE_CHART,
                              .area = c->points.out,
                              .line = c->points.in,
                              .none = none(c, a)});
}

static const char *
say_growth(const struct charts *c, const struct app *a)
{
    double per_minute = chart_growth(&c->points) * 60;

    if (isnan(per_minute) || fabs(per_minute) < 1)
        return "";
    return arena_printf(a->frame, "   %s%s a minute", per_minute > 0 ? "+" : "-",
                        fmt_count_fit((int64_t)fabs(per_minute), 7).s);
}

static void
draw_backlog(const struct charts *c, struct app *a, struct rect r, const char *name)
{
    double now = last_known(c->points.backlog);
    const char *title = arena_printf(a->frame, "waiting and running %s%s",
                                     isnan(now) ? "" : fmt_count((int64_t)now).s, say_growth(c, a));

    plot_panel(a->grid, panel(r), &c->axis,
               &(struct plot){.title = headed(a, name, title),
                              .corner = corner(c, a),
                              .role = ROLE_CHART,
                              .area = c->points.backlog,
                              .none = none(c, a)});
}

static void
draw_times(const struct charts *c, struct app *a, struct rect r, const char *title,
           const int (*counts)[TIME_BUCKETS], enum role (*role)(double))
{
    double p50 = chart_percentile(counts, c->points.step_ms, 0.5);
    double p99 = chart_percentile(counts, c->points.step_ms, 0.99);

    if (!isnan(p50))
        title = arena_printf(a->frame, "%s   p50 %s   p99 %s", title, fmt_duration((int64_t)p50).s,
                             fmt_duration((int64_t)p99).s);
    plot_heat(a->grid, panel(r), &c->axis,
              &(struct heat){.title = title,
                             .corner = corner(c, a),
                             .counts = counts,
                             .bucket_ms = store_bucket_ms,
                             .role = role,
                             .none = c->points.has_times ? "nothing completed" : none(c, a)});
}

/* The colour of a wait: a warning if the queue's row would warn of an oldest job of that age. */
static enum role
role_of_wait(double ms)
{
    enum verdict v = verdict_of_age((int64_t)ms);

    return v == VERDICT_WELL ? ROLE_CHART : v == VERDICT_BAD ? ROLE_BAD : ROLE_CHART_WARN;
}

static void
draw_waits(const struct charts *c, struct app *a, struct rect r, const char *name)
{
    draw_times(c, a, r, headed(a, name, "waited before start"), c->points.waits, role_of_wait);
}

static void
draw_runs(const struct charts *c, struct app *a, struct rect r, const char *name)
{
    draw_times(c, a, r, headed(a, name, "ran"), c->points.runs, NULL);
}

int
charts_draw_row(const struct charts *c, struct app *a, struct rect *row, int first)
{
    static void (*const panels[])(const struct charts *, struct app *, struct rect,
                                  const char *) = {draw_flow, draw_backlog, draw_waits, draw_runs};
    int n = has_times(c) ? 4 : 2, across = row->w / (LEAST_W + 2), i = first;

    for (int x = 0; x < across && i < n; x++)
        panels[i++](c, a, rect_cut_left(row, row->w / (across - x)), x == 0 ? c->queue : "");
    return i < n && across > 0 ? i : -1;
}

/* --- the key --------------------------------------------------------------------------------- */

static void
on_span(struct app *a, int arg)
{
    (void)arg;
    a->span = (enum span)((a->span + 1) % SPANS);
    app_stale(a);
}

static const char *
no_span(const struct app *a, int arg)
{
    (void)arg;
    return keeps_minutes(a)
               ? NULL
               : "this system keeps no minutes: charts show what this console has seen";
}

/* clang-format off */
const struct command commands_charts[] = {
    {.name = "span", .keys = "x", .help = "Charts of the last hour, 24 hours, 7 days, 10 minutes",
     .scope = IN_QUEUES | IN_FAILED, .foot = 9, .run = on_span, .why_not = no_span,
     .of_screen = true},
    {0},
};
/* clang-format on */
