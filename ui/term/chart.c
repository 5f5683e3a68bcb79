/* Small pictures from text: each cell is a block or a braille character. grid_str draws it, and
 * replaces it if the terminal has only ASCII. */
#include "ui/term/chart.h"

#include <math.h>
#include <string.h>

static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇"};

/* The largest value, 0 if there is none. */
static double
largest(const double *v, int n)
{
    double max = 0;

    for (int i = 0; i < n; i++)
        if (!isnan(v[i]) && v[i] > max)
            max = v[i];
    return max;
}

/* The height of v in `steps` steps: 0 for nothing, at least 1 for anything. */
static int
height(double v, double top, int steps)
{
    if (isnan(v) || v <= 0 || top <= 0)
        return 0;
    if (v >= top)
        return steps;
    int h = (int)ceil(v / top * steps);
    return h < 1 ? 1 : h > steps ? steps : h;
}

/* Moves v and n so that only the last w values are left. */
static const double *
last(const double *v, int *n, int w)
{
    int skip = *n > w ? *n - w : 0;

    *n -= skip;
    return v + skip;
}

/* Each step has a different sign in ASCII, too. */
static const char *
step_glyph(const struct grid *g, int h)
{
    static const char *const ascii[] = {".", ":", "-", "=", "+", "*", "#"};

    return grid_ascii(g) ? ascii[h - 1] : blocks[h - 1];
}

void
chart_spark(struct grid *g, struct rect r, enum role role, const double *v, int n, double top)
{
    v = last(v, &n, r.w);
    if (top <= 0)
        top = 1.25 * largest(v, n);
    for (int i = 0; i < n; i++) {
        struct rect cell = {r.x + r.w - n + i, r.y, 1, r.h};
        int h = height(v[i], top, 7);
        if (!isnan(v[i]))
            grid_str(g, cell, h ? role : ROLE_DIM, h ? step_glyph(g, h) : "·");
    }
}

void
chart_bucket(const double *v, int n, int per, int64_t seen, double *out, int w)
{
    int64_t newest = per > 0 ? (seen - 1) / per : 0;

    for (int i = 0; i < w; i++)
        out[i] = (double)NAN;
    if (per < 1 || seen < n)
        return;
    for (int i = w - 1; i >= 0; i--) {
        int64_t bucket = newest - (w - 1 - i);
        double sum = 0;
        int count = 0;
        for (int64_t k = bucket * per; k < (bucket + 1) * per; k++) {
            int64_t at = k - (seen - n);
            if (at < 0 || at >= n || isnan(v[at]))
                continue;
            sum += v[at];
            count++;
        }
        if (count)
            out[i] = sum / count;
    }
}

/* The braille character of two columns of dots that are filled from below to heights 0 to 4. */
static void
braille(char out[5], int left, int right)
{
    static const unsigned char left_dots[] = {0, 0x40, 0x44, 0x46, 0x47};
    static const unsigned char right_dots[] = {0, 0x80, 0xA0, 0xB0, 0xB8};
    int n = utf8_encode(0x2800u + left_dots[left] + right_dots[right], out);

    out[n] = 0;
}

static int
part(int height_all, int row_from_below)
{
    int h = height_all - 4 * row_from_below;

    return h < 0 ? 0 : h > 4 ? 4 : h;
}

void
chart_area(struct grid *g, struct rect r, enum role role, const double *v, int n, double top)
{
    if (r.w <= 0 || r.h <= 0)
        return;
    v = last(v, &n, 2 * r.w);
    if (top <= 0)
        top = largest(v, n);
    for (int x = 0; x < r.w; x++) {
        int i = n - 2 * (r.w - x);
        int left = i >= 0 ? height(v[i], top, 4 * r.h) : 0;
        int right = i + 1 >= 0 ? height(v[i + 1], top, 4 * r.h) : 0;
        for (int y = 0; y < r.h && (left > 4 * y || right > 4 * y); y++) {
            char s[5];
            braille(s, part(left, y), part(right, y));
            grid_str(g, (struct rect){r.x + x, r.y + r.h - 1 - y, 1, 1}, role, s);
        }
    }
}

/* The value at place i of w if n values are stretched over w places. */
static double
stretched(const double *v, int n, int i, int w)
{
    int from = (int)((int64_t)i * n / w), to = (int)((int64_t)(i + 1) * n / w);
    double sum = 0;
    int count = 0;

    for (int k = from; k < (to > from ? to : from + 1); k++)
        if (!isnan(v[k])) {
            sum += v[k];
            count++;
        }
    return count ? sum / count : (double)NAN;
}

static void
plot(struct grid *g, struct rect r, const struct chart *c)
{
    double values[1024] = {0};
    int w = 2 * r.w < 1024 ? 2 * r.w : 1024;

    if (c->n <= 0 || r.w <= 0)
        return;
    for (int i = 0; i < w; i++)
        values[i] = stretched(c->values, c->n, i, w);
    chart_area(g, r, c->role, values, w, c->top);
}

static void
label(struct grid *g, struct rect r, const char *s)
{
    if (s)
        grid_right(g, r, ROLE_DIM, s);
}

void
chart_panel(struct grid *g, struct rect r, const struct chart *c)
{
    struct rect in = rect_inset(grid_box(g, r, ROLE_BORDER, c->title), 1, 0);
    struct rect axis = rect_cut_bottom(&in, in.h > 3 ? 1 : 0);
    struct rect left = rect_cut_left(&in, in.w > 20 ? 7 : 0);

    rect_cut_left(&in, left.w ? 1 : 0);
    axis.w = in.w;
    axis.x = in.x;
    label(g, rect_row(left, 0), c->top_label);
    if (left.h > 4)
        label(g, rect_row(left, left.h / 2), c->mid_label);
    label(g, rect_row(left, left.h - 1), left.h > 1 ? c->low_label : NULL);
    plot(g, in, c);
    if (c->from_label)
        grid_str(g, axis, ROLE_DIM, c->from_label);
    if (c->mid_time && axis.w > 30)
        grid_center(g, axis, ROLE_DIM, c->mid_time);
    label(g, axis, axis.w > 12 ? c->to_label : NULL);
}

void
chart_bar(struct grid *g, struct rect r, double fraction)
{
    int full = isnan(fraction) || fraction < 0 ? 0 : fraction >= 1 ? r.w : (int)(fraction * r.w);

    for (int i = 0; i < r.w; i++)
        grid_str(g, (struct rect){r.x + i, r.y, 1, r.h}, i < full ? ROLE_BAR : ROLE_BAR_REST,
                 i < full ? "█" : "░");
}
