/* The panels share a frame: labels at the left, columns, and below them clock times and events. */
#include "ui/term/plot.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { BUCKETS = 64, LABEL_EVERY = 15, CLOCK_W = 6 };
enum { MINUTE_MS = 60000, HOUR_MS = 3600000, DAY_MS = 86400000 };

static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ramp[] = {" ", ".", ":", "-", "=", "+", "*", "#", "#"};

double
plot_tick(double max)
{
    if (isnan(max) || max <= 0)
        return 1;
    double power = pow(10, floor(log10(max)));
    double steps[] = {1, 2, 5, 10};
    for (int i = 0; i < 4; i++)
        if (steps[i] * power >= max * (1 - 1e-9))
            return steps[i] * power;
    return 10 * power;
}

double
plot_tick_ms(double max_ms)
{
    static const double ticks[] = {
        1e3,       2e3,           5e3,           10e3,           20e3,           30e3,
        MINUTE_MS, 2 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS, 20 * MINUTE_MS, 40 * MINUTE_MS,
        HOUR_MS,   2 * HOUR_MS,   4 * HOUR_MS,   8 * HOUR_MS,    12 * HOUR_MS,   DAY_MS};

    if (isnan(max_ms) || max_ms < 1e3)
        return plot_tick(max_ms);
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        if (ticks[i] >= max_ms)
            return ticks[i];
    return DAY_MS * plot_tick(max_ms / DAY_MS);
}

/* The label of an axis with steps of this length: "14:02", "11-21". */
static struct fmt
plot_clock(int64_t at_ms, int64_t step_ms, bool utc)
{
    time_t t = (time_t)(at_ms / 1000);
    struct tm tm;
    struct fmt f = {""};

    if (!(utc ? gmtime_r(&t, &tm) : localtime_r(&t, &tm)))
        return f;
    strftime(f.s, sizeof f.s, step_ms > HOUR_MS ? "%m-%d" : "%H:%M", &tm);
    return f;
}

/* --- frame ----------------------------------------------------------------------------------- */

struct frame {
    struct rect labels, plot, axis;
    int skip; /* columns at the left that have no room */
};

static struct frame
open_frame(struct grid *g, struct rect r, const struct plot_axis *axis, const char *title,
           const char *corner)
{
    struct frame f = {.plot = rect_inset(grid_box(g, r, ROLE_BORDER, title), 1, 0)};
    int cw = corner ? (int)text_width(corner, strlen(corner), TEXT_LINE) : 0;
    int tw = (int)text_width(title, strlen(title), TEXT_LINE);

    if (cw > 0 && tw + cw + 9 < r.w)
        grid_printf(g, (struct rect){r.x + r.w - cw - 4, r.y, cw + 2, 1}, ROLE_DIM, " %s ", corner);
    f.axis = rect_cut_bottom(&f.plot, f.plot.h > 2 ? 1 : 0);
    f.labels = rect_cut_left(&f.plot, f.plot.w > 3 * PLOT_LABEL_W ? PLOT_LABEL_W : 0);
    rect_cut_left(&f.plot, f.labels.w ? 1 : 0);
    f.skip = axis->n > f.plot.w ? axis->n - f.plot.w : 0;
    f.plot.w = axis->n - f.skip;
    f.axis.x = f.plot.x;
    f.axis.w = f.plot.w;
    return f;
}

static int
column_of(const struct plot_axis *a, const struct frame *f, int64_t at_ms)
{
    int64_t i = a->step_ms > 0 ? (at_ms - a->first_ms) / a->step_ms : -1;

    return at_ms < a->first_ms || i >= a->n ? -1 : (int)i - f->skip;
}

/* Whether an event is at the place of a label: then the label is left out. */
static bool
is_taken(const struct plot_axis *a, const struct frame *f, int from, int w)
{
    for (int i = 0; i < a->nevents; i++) {
        int x = column_of(a, f, a->events[i].at_ms);
        if (x >= from && x < from + w)
            return true;
    }
    return false;
}

static void
draw_axis(struct grid *g, const struct plot_axis *a, const struct frame *f)
{
    int last = f->axis.w - CLOCK_W + 1;

    if (f->axis.h <= 0)
        return;
    for (int x = 0; x + CLOCK_W < last; x += LABEL_EVERY) {
        int64_t at = a->first_ms + (x + f->skip) * a->step_ms;
        if (!is_taken(a, f, x, CLOCK_W))
            grid_str(g, (struct rect){f->axis.x + x, f->axis.y, CLOCK_W, 1}, ROLE_DIM,
                     plot_clock(at, a->step_ms, a->utc).s);
    }
    if (last >= 0 && !is_taken(a, f, last, CLOCK_W))
        grid_right(g, f->axis, ROLE_DIM, plot_clock(a->now_ms, a->step_ms, a->utc).s);
    for (int i = 0; i < a->nevents; i++) {
        int x = column_of(a, f, a->events[i].at_ms);
        if (x >= 0)
            grid_str(g, (struct rect){f->axis.x + x, f->axis.y, 1, 1}, a->events[i].role,
                     a->events[i].glyph);
    }
}

/* If nothing is known of the first columns: says since when values are known. */
static void
say_since(struct grid *g, const struct plot_axis *a, const struct frame *f, int known,
          const struct plot *p)
{
    struct rect blank = f->plot;

    if (known >= a->n) {
        if (p->none)
            grid_center(g, rect_row(blank, blank.h / 2), ROLE_DIM, p->none);
        return;
    }
    blank.w = known - f->skip;
    if (blank.w < 11)
        return;
    int64_t at = a->first_ms + known * a->step_ms;
    struct fmt clock = plot_clock(at, a->step_ms, a->utc);
    bool fits = p->why && 6 + (int)strlen(clock.s) + (int)strlen(p->why) < blank.w;
    grid_printf(g, rect_row(blank, blank.h / 2), ROLE_DIM, "since %s%s", clock.s,
                fits ? p->why : "");
}

/* --- areas ----------------------------------------------------------------------------------- */

static double
most(const double *v, int n)
{
    double max = 0;

    for (int i = 0; v && i < n; i++)
        if (!isnan(v[i]) && v[i] > max)
            max = v[i];
    return max;
}

static bool
is_known(const double *v, int n)
{
    for (int i = 0; v && i < n; i++)
        if (!isnan(v[i]))
            return true;
    return false;
}

/* A height in eighths of a cell; at least one for a value above zero. */
static int
height(double v, double top, int cells)
{
    if (isnan(v) || v <= 0)
        return 0;
    int h = (int)lround(v / top * cells * 8);
    return h < 1 ? 1 : h > cells * 8 ? cells * 8 : h;
}

static void
draw_column(struct grid *g, struct rect col, enum role role, double v, double top)
{
    int h = height(v, top, col.h);

    if (!isnan(v) && h == 0)
        grid_str(g, rect_row(col, col.h - 1), ROLE_DIM, "·");
    for (int y = 0; y * 8 < h; y++) {
        int part = h - y * 8 > 8 ? 8 : h - y * 8;
        grid_str(g, rect_row(col, col.h - 1 - y), role, grid_ascii(g) ? ramp[part] : eighths[part]);
    }
}

/* The line has three levels in a row. In the row where the area ends, the area shows the level. */
static void
draw_line(struct grid *g, struct rect col, double v, double area, double top)
{
    static const char *const levels[] = {"▁", "─", "▔"};
    int h = height(v, top, col.h), row = (h - 1) / 8, other = (height(area, top, col.h) - 1) / 8;

    if (isnan(v) || h == 0 || (row == other && area > 0))
        return;
    grid_str(g, rect_row(col, col.h - 1 - row), ROLE_STRONG,
             grid_ascii(g) ? "-" : levels[((h - 1) % 8) / 3]);
}

static void
draw_ticks(struct grid *g, const struct frame *f, double top, bool is_time)
{
    double at[] = {top, top / 2, 0};
    int rows[] = {0, f->plot.h / 2, f->plot.h - 1};

    for (int i = 0; i < 3; i++) {
        struct fmt s = is_time && at[i] > 0 ? fmt_duration((int64_t)at[i])
                       : top < 10           ? fmt_rate(at[i])
                                            : fmt_count_fit((int64_t)at[i], 4);
        if (is_time && at[i] >= MINUTE_MS)
            s = fmt_age_short((int64_t)at[i]);
        if (f->labels.w && (i != 1 || f->plot.h > 4))
            grid_right(g, rect_row(f->labels, rows[i]), ROLE_DIM, s.s);
    }
}

void
plot_panel(struct grid *g, struct rect r, const struct plot_axis *axis, const struct plot *p)
{
    struct frame f = open_frame(g, r, axis, p->title, p->corner);
    double max = fmax(most(p->area, axis->n), most(p->line, axis->n));
    double top = p->is_time ? plot_tick_ms(max) : plot_tick(max);
    int known = axis->n;

    if (f.plot.h <= 0 || f.plot.w <= 0)
        return;
    for (int i = axis->n - 1; i >= 0; i--) {
        bool last = i == axis->n - 1;
        struct rect col = {f.plot.x + i - f.skip, f.plot.y, i < f.skip ? 0 : 1, f.plot.h};
        known = isnan(p->area[i]) ? known : i;
        draw_column(g, col, last ? ROLE_DIM : p->role, p->area[i], top);
        if (p->line)
            draw_line(g, col, p->line[i], p->area[i], top);
    }
    if (known < axis->n || is_known(p->line, axis->n)) /* else the figures would be made up */
        draw_ticks(g, &f, top, p->is_time);
    draw_axis(g, axis, &f);
    say_since(g, axis, &f, known, p);
}

/* --- heat maps ------------------------------------------------------------------------------- */

struct heat_rows {
    int low, per; /* the first bucket of the lowest row, buckets in a row */
};

/* Fits the buckets to the range of the data: as few in a row as the room allows. */
static struct heat_rows
choose_rows(const struct heat *h, int n, int rows)
{
    int low = BUCKETS, high = -1;

    for (int i = 0; i < n; i++)
        for (int b = 0; b < BUCKETS; b++)
            if (h->counts[i][b] > 0) {
                low = b < low ? b : low;
                high = b > high ? b : high;
            }
    if (high < 0)
        return (struct heat_rows){0, 0};
    int per = (high - low + rows) / rows;
    return (struct heat_rows){low, per < 1 ? 1 : per};
}

static const char *
shade(const struct grid *g, int64_t n, int64_t all)
{
    static const char *const signs[] = {" ", "·", "░", "▒", "▓", "█"};
    static const char *const ascii[] = {" ", ".", ":", "-", "=", "#"};
    int64_t percent = all > 0 ? n * 100 / all : 0;
    int i = n == 0         ? 0
            : percent < 5  ? 1
            : percent < 20 ? 2
            : percent < 40 ? 3
            : percent < 70 ? 4
                           : 5;

    return grid_ascii(g) ? ascii[i] : signs[i];
}

static void
draw_heat_column(struct grid *g, struct rect col, const struct heat *h, const int *counts,
                 struct heat_rows rows)
{
    int64_t all = 0;

    for (int b = 0; b < BUCKETS; b++)
        all += counts[b];
    for (int y = 0; y < col.h && all > 0; y++) {
        int from = rows.low + y * rows.per;
        int64_t n = 0;
        for (int b = from; b < from + rows.per && b < BUCKETS; b++)
            n += counts[b];
        grid_str(g, rect_row(col, col.h - 1 - y),
                 h->role ? h->role(h->bucket_ms(from)) : ROLE_CHART, shade(g, n, all));
    }
}

static void
label_rows(struct grid *g, const struct frame *f, const struct heat *h, struct heat_rows rows)
{
    for (int y = 0; y < f->plot.h && f->labels.w; y++) {
        int from = rows.low + y * rows.per;
        double ms = h->bucket_ms(y == 0 ? from + rows.per : from);
        struct fmt s = ms < MINUTE_MS ? fmt_duration((int64_t)ms) : fmt_age_short((int64_t)ms);
        if (from >= BUCKETS)
            return;
        struct rect at = rect_row(f->labels, f->plot.h - 1 - y);
        int used = (int)strlen(s.s);
        grid_right(g, at, ROLE_DIM, s.s);
        if (y == 0 && used < at.w)
            grid_str(g, (struct rect){at.x + at.w - used - 1, at.y, 1, 1}, ROLE_DIM, "<");
    }
}

void
plot_heat(struct grid *g, struct rect r, const struct plot_axis *axis, const struct heat *h)
{
    struct frame f = open_frame(g, r, axis, h->title, h->corner);

    if (f.plot.h <= 0 || f.plot.w <= 0)
        return;
    struct heat_rows rows = choose_rows(h, axis->n, f.plot.h);
    if (rows.per > 0) {
        for (int i = f.skip; i < axis->n; i++)
            draw_heat_column(g, (struct rect){f.plot.x + i - f.skip, f.plot.y, 1, f.plot.h}, h,
                             h->counts[i], rows);
        label_rows(g, &f, h, rows);
    } else if (h->none)
        grid_center(g, rect_row(f.plot, f.plot.h / 2), ROLE_DIM, h->none);
    draw_axis(g, axis, &f);
}
