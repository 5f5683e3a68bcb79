/* The box of a running action. The box blocks nothing: Esc hides it and the action continues. */
#include <math.h>
#include <string.h>

#include "model/base/field.h"
#include "ui/term/chart.h"
#include "ui/term/fmt.h"
#include "ui/widget/prompt.h"

enum { BOX_W = 64, BOX_H = 12, MARGIN = 2 };

enum progress_answer
progress_key(const struct progress_box *p, const struct key *k)
{
    if (key_is(k, "Esc") || (p->result && key_in(k, "Enter q Space")))
        return PROGRESS_HIDE;
    return key_is(k, "C-c") && !p->result ? PROGRESS_STOP : PROGRESS_IGNORED;
}

static void
draw_bar(const struct progress_box *p, struct grid *g, struct rect r)
{
    double part = p->total > 0 ? (double)p->done / (double)p->total : p->result ? 1 : 0;

    if (p->total < 0 && !p->result) {
        grid_str(g, r, ROLE_TEXT, "counting how many there are");
        return;
    }
    struct rect percent = rect_cut_right(&r, 7);
    chart_bar(g, r, part);
    grid_right(g, percent, ROLE_STRONG,
               p->total > 0 ? fmt_percent((double)p->done, (double)p->total).s : "");
}

static void
draw_counts(const struct progress_box *p, struct grid *g, struct rect r)
{
    struct pen pen = pen_start(g, r);

    if (p->total >= 0)
        pen_printf(&pen, ROLE_TEXT, "%s of %s", fmt_count(p->done).s,
                   fmt_plural(p->total, p->noun).s);
    else
        pen_put(&pen, ROLE_TEXT, fmt_plural(p->done, p->noun).s);
    if (p->batches > 0 && p->all_batches > 0)
        pen_printf(&pen, ROLE_TEXT, "   %s of %s parts", fmt_count(p->batches).s,
                   fmt_count(p->all_batches).s);
    else if (p->batches > 0)
        pen_printf(&pen, ROLE_TEXT, "   part %s", fmt_count(p->batches).s);
    if (p->batch_size > 0)
        pen_printf(&pen, ROLE_TEXT, " of %s", fmt_count(p->batch_size).s);
}

static void
draw_speed(const struct progress_box *p, struct grid *g, struct rect r)
{
    struct pen pen = pen_start(g, r);

    if (!isnan(p->rate))
        pen_printf(&pen, ROLE_DIM, "%s %ss/s", fmt_rate(p->rate).s, p->noun);
    if (p->left_ms != FIELD_NULL && p->left_ms < 1000 && !p->result)
        pen_put(&pen, ROLE_DIM, "   done in less than 1s");
    else if (p->left_ms != FIELD_NULL && !p->result)
        pen_printf(&pen, ROLE_DIM, "   %s left", fmt_age(p->left_ms).s);
    if (p->slowest_ms != FIELD_NULL)
        pen_printf(&pen, ROLE_DIM, "   slowest part %s", fmt_duration(p->slowest_ms).s);
}

static void
draw_keys(const struct progress_box *p, struct grid *g, struct rect r)
{
    struct pen pen = pen_start(g, r);

    pen_put(&pen, ROLE_KEY, "Esc");
    pen_put(&pen, ROLE_KEY_HELP, p->result ? " close" : " hide (goes on; F8 shows it)    ");
    if (p->result)
        return;
    pen_put(&pen, p->stopping ? ROLE_OFF : ROLE_KEY, "Ctrl-C");
    pen_put(&pen, ROLE_KEY_HELP, p->stopping ? " stops after this part" : " stop after part");
}

void
progress_draw(const struct progress_box *p, struct grid *g, struct rect screen)
{
    struct text_area area = {.wrap = true};
    struct rect box = rect_center(screen, BOX_W, BOX_H);

    grid_paint(g, screen, ROLE_SHADE);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER, p->title), MARGIN, 0);
    bool tight = in.h < BOX_H - 2;
    rect_cut_top(&in, tight ? 0 : 1);
    rect_cut_bottom(&in, tight ? 0 : 1);
    struct rect keys = rect_cut_bottom(&in, 1);
    draw_keys(p, g, keys);
    grid_cursor(g, keys.x, keys.y);
    draw_bar(p, g, rect_cut_top(&in, 1));
    rect_cut_top(&in, tight ? 0 : 1);
    draw_counts(p, g, rect_cut_top(&in, 1));
    draw_speed(p, g, rect_cut_top(&in, 1));
    if (p->result) {
        grid_lines(g, in, p->bad ? ROLE_BAD : ROLE_STRONG, p->result, strlen(p->result), &area);
        return;
    }
    grid_str(g, rect_cut_top(&in, 1), ROLE_DIM,
             "each part is its own transaction: what is done stays done");
    if (p->note)
        grid_lines(g, in, ROLE_WARN, p->note, strlen(p->note), &area);
}
