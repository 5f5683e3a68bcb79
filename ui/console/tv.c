/*
 * A page stays for 20 refreshes, a page with trouble for 40. The verdict at the top counts the
 * alerts. If there is no data yet, or only old data, the verdict says that instead.
 */
#include "ui/console/tv.h"

#include <stdio.h>
#include <string.h>

#include "model/base/clock.h"
#include "ui/console/app.h"
#include "ui/term/fmt.h"

enum {
    TALL_H = 40,
    DIGIT_H = 5,
    DIGIT_W = 3, /* of pixels, each two cells wide */
    FIGURE_W = 46,
    FIGURES_H = DIGIT_H + 3
};

static const int pages[] = {1, 4, 3, 5, 7};
enum { PAGES = (int)(sizeof pages / sizeof *pages) };

/* --- turning ---------------------------------------------------------------------------------- */

static int64_t
stays_ms(struct app *a, int page)
{
    bool trouble = app_attention(a)->screens[pages[page]] >= VERDICT_WARN;

    return trouble ? 2 * a->options.tv_ms : a->options.tv_ms;
}

/* Whether the queue system has something that the page shows. */
static bool
is_there(const struct app *a, int page)
{
    const struct view_ops *ops = view_screen(pages[page]);

    for (int t = 0; ops && t < TOPIC_COUNT; t++)
        if ((ops->topics & TOPIC_BIT(t)) && !store_topic(a->store, (enum topic)t)->unavailable)
            return true;
    return false;
}

void
tv_turn(struct app *a)
{
    struct tv *tv = &a->tv;
    int64_t now = clock_ms();

    if (tv->turn_ms && now >= tv->turn_ms) {
        int next = tv->page;
        do
            next = (next + 1) % PAGES;
        while (next != tv->page && !is_there(a, next));
        tv->page = next;
        app_open(a, view_screen(pages[next])->name, NULL);
        tv->turn_ms = 0;
        store_want(a->store, TOPIC_QUEUES, true); /* the figures need it */
        store_want(a->store, TOPIC_TIMES, true);
    }
    if (!tv->turn_ms)
        tv->turn_ms = now + stays_ms(a, tv->page);
}

void
tv_key(struct app *a, const struct key *k)
{
    if (key_is(k, "q") || key_is(k, "C-c"))
        app_quit(a);
}

/* --- figures ---------------------------------------------------------------------------------- */

/* Each row of a digit is three bits, the left pixel first. */
static const struct {
    char c;
    unsigned char row[DIGIT_H];
} digits[] = {
    {'0', {7, 5, 5, 5, 7}},
    {'1', {2, 6, 2, 2, 7}},
    {'2', {7, 1, 7, 4, 7}},
    {'3', {7, 1, 7, 1, 7}},
    {'4', {5, 5, 7, 1, 1}},
    {'5', {7, 4, 7, 1, 7}},
    {'6', {7, 4, 7, 5, 7}},
    {'7', {7, 1, 2, 2, 2}},
    {'8', {7, 5, 7, 5, 7}},
    {'9', {7, 5, 7, 1, 7}},
    {'k', {4, 5, 6, 5, 5}},
    {'M', {5, 7, 7, 5, 5}},
    {'m', {0, 5, 7, 7, 5}},
    {'s', {3, 4, 2, 1, 6}},
    {'h', {4, 4, 7, 5, 5}},
    {'d', {1, 1, 7, 5, 7}},
    {'.', {0, 0, 0, 0, 2}},
    {',', {0, 0, 0, 2, 4}},
    {'<', {1, 2, 4, 2, 1}},
    {'-', {0, 0, 7, 0, 0}},
};

static void
draw_digit(struct grid *g, struct rect r, enum role role, char c)
{
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++)
        for (int y = 0; digits[i].c == c && y < DIGIT_H; y++)
            for (int x = 0; x < DIGIT_W; x++)
                if (digits[i].row[y] >> (DIGIT_W - 1 - x) & 1)
                    grid_str(g, (struct rect){r.x + 2 * x, r.y + y, 2, 1}, role, "██");
}

static void
draw_figure(struct grid *g, struct rect r, enum role role, const char *label, const char *text)
{
    grid_str(g, rect_row(r, 0), ROLE_DIM, label);
    rect_cut_top(&r, 2);
    for (int i = 0; text[i] && r.w >= 2 * DIGIT_W; i++)
        draw_digit(g, rect_cut_left(&r, 2 * DIGIT_W + 2), role, text[i]);
}

static int64_t
oldest_wait(const struct app *a)
{
    int n;
    const struct queue_row *q = store_queues(a->store, &n);
    int64_t most = FIELD_NULL;

    for (int i = 0; i < n; i++) {
        bool waits = q[i].paused != 1 && q[i].oldest_ms != FIELD_NULL && q[i].oldest_ms > 0;
        int64_t age = waits ? a->now_ms - q[i].oldest_ms : FIELD_NULL;
        if (age != FIELD_NULL && (most == FIELD_NULL || age > most))
            most = age;
    }
    return most;
}

static void
draw_figures(struct app *a, struct rect r)
{
    const struct queue_row *t = store_totals(a->store);
    int64_t oldest = oldest_wait(a);

    rect_cut_left(&r, 2);
    rect_cut_top(&r, 1);
    if (!t)
        return;
    bool hour = t->failed_hour != FIELD_NULL;
    draw_figure(a->grid, rect_cut_left(&r, FIGURE_W), verdict_role(verdict_of_age(oldest)),
                "OLDEST JOB WAITS", oldest == FIELD_NULL ? "-" : fmt_age_short(oldest).s);
    if (r.w >= FIGURE_W - 6)
        draw_figure(a->grid, rect_cut_left(&r, FIGURE_W), ROLE_TEXT, "WAITING",
                    fmt_count_fit(t->ready, 5).s);
    if (r.w >= FIGURE_W - 6)
        draw_figure(a->grid, rect_cut_left(&r, FIGURE_W), verdict_role(verdict_of_failed(t)),
                    hour ? "FAILED IN 1 H" : "FAILED",
                    fmt_count_fit(hour ? t->failed_hour : t->failed, 5).s);
    if (r.w >= FIGURE_W - 6)
        draw_figure(a->grid, r, ROLE_TEXT, "OUT/s", fmt_rate(t->done_per_s).s);
}

int
tv_height(const struct app *a)
{
    return grid_rect(a->grid).h >= TALL_H ? FIGURES_H : 0;
}

/* --- verdict ---------------------------------------------------------------------------------- */

static const char *
no_data(const struct app *a)
{
    const struct err *e = store_error(a->store);

    if (e->kind != ERR_NONE)
        return arena_printf(a->frame, "no answer: %s", e->text);
    if (!store_topic(a->store, TOPIC_QUEUES)->has_data)
        return "asking ...";
    if (store_is_stale(a->store, TOPIC_QUEUES))
        return arena_printf(a->frame, "this is old: no answer for %s",
                            fmt_age(store_age_ms(a->store, TOPIC_QUEUES)).s);
    return NULL;
}

static const char *
say_trouble(const struct app *a, const struct attention *all)
{
    int n = all->bad + all->warn;
    const char *want =
        n == 1 ? "1 thing needs attention" : arena_printf(a->frame, "%d things need attention", n);

    if (all->bad == 0)
        return arena_printf(a->frame, "▲ %s", want);
    if (n == 1)
        return arena_printf(a->frame, "× %s: it is broken", want);
    return arena_printf(a->frame, "× %s, %d of them %s broken", want, all->bad,
                        all->bad == 1 ? "is" : "are");
}

static void
draw_verdict(struct app *a, struct rect r)
{
    const struct attention *all = app_attention(a);
    const char *why = no_data(a);
    bool well = !why && all->bad + all->warn == 0;

    a->tv.well_ms = !well ? 0 : a->tv.well_ms ? a->tv.well_ms : a->now_ms;
    enum role role = why || all->bad ? ROLE_HEADER_PROD : well ? ROLE_GOOD : ROLE_WARN;
    grid_fill(a->grid, r, role == ROLE_HEADER_PROD ? role : ROLE_TEXT);
    rect_cut_left(&r, 1);
    if (well && alerts_old_ms(a))
        grid_printf(a->grid, r, ROLE_DIM, "all was well %s ago", fmt_age_short(alerts_old_ms(a)).s);
    else if (well)
        grid_printf(a->grid, r, role, "all is well since %s",
                    fmt_time(a->tv.well_ms, a->options.utc).s);
    else
        grid_str(a->grid, r, role, why ? why : say_trouble(a, all));
}

/* --- frame ------------------------------------------------------------------------------------ */

/* Draws one alert at a time, because the screen in front does not show all of them. */
static void
draw_alert(struct app *a, struct rect r)
{
    const struct attention *all = app_attention(a);

    grid_fill(a->grid, r, ROLE_TEXT);
    if (all->n == 0)
        return;
    const struct alert *one = &all->alerts[a->tv.page % all->n];
    struct sign sign = verdict_sign(one->verdict);
    struct pen p = pen_start(a->grid, r);
    pen_printf(&p, sign.role, " %s ", sign.glyph ? sign.glyph : " ");
    pen_printf(&p, ROLE_STRONG, "%s  ", one->where);
    pen_put(&p, ROLE_TEXT, one->what);
}

static void
draw_foot(struct app *a, struct rect r)
{
    int64_t left = (a->tv.turn_ms - clock_ms() + 999) / 1000;
    struct pen p = pen_start(a->grid, r);

    grid_fill(a->grid, r, ROLE_TEXT);
    pen_put(&p, ROLE_KEY, " q");
    pen_printf(&p, ROLE_KEY_HELP, " quit   looks only   %d of %d: %s", a->tv.page + 1, PAGES,
               app_view(a)->ops->title);
    if (!a->clock.stands && left >= 0)
        pen_printf(&p, ROLE_DIM, ", next in %llds", (long long)left);
}

/* Removes the look of the selected row, because nobody moves a cursor here. */
static void
unselect(struct grid *g)
{
    struct rect all = grid_rect(g);

    grid_lay(g, all, GROUND_NONE);
    grid_no_cursor(g);
    for (int y = 0; y < all.h; y++)
        for (int x = 0; x < all.w; x++)
            if (!strcmp(grid_cell(g, x, y)->utf8, grid_ascii(g) ? ">" : "›") &&
                (x == 0 || !strcmp(grid_cell(g, x - 1, y)->utf8, " ")))
                grid_fill(g, (struct rect){x, y, 1, 1}, ROLE_TEXT);
}

void
tv_draw(struct app *a)
{
    struct rect all = grid_rect(a->grid);

    unselect(a->grid);
    draw_verdict(a, rect_row(all, 1));
    if (tv_height(a))
        draw_figures(a, (struct rect){0, 2, all.w, tv_height(a)});
    draw_alert(a, app_line(a));
    draw_foot(a, rect_row(all, all.h - 1));
}
