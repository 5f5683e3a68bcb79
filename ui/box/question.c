/* A question with lines of text and an answer that can't be given by accident: the box before an
 * action, and others. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/widget/prompt.h"

enum { BOX_MIN = 50, BOX_MAX = 100, MARGIN = 3 };

void
question_init(struct question *a, const char *title)
{
    *a = (struct question){.title = xstrdup(title)};
    line_init(&a->line, NULL, "");
}

void
question_clear(struct question *a)
{
    for (int i = 0; i < a->n; i++) {
        free(a->lines[i].label);
        free(a->lines[i].text);
    }
    a->n = 0;
    a->shown_ms = 0;
}

void
question_done(struct question *a)
{
    question_clear(a);
    free(a->title);
    free(a->challenge);
    free(a->prompt);
    line_done(&a->line);
    a->title = a->challenge = a->prompt = NULL;
}

void
question_say(struct question *a, enum role role, const char *label, const char *fmt, ...)
{
    char text[2000];
    va_list ap;

    if (a->n == ASK_LINES)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    a->lines[a->n++] = (struct ask_line){role, label ? xstrdup(label) : NULL, xstrdup(text)};
}

void
question_typed(struct question *a, const char *what, const char *challenge)
{
    free(a->challenge);
    free(a->prompt);
    a->challenge = xstrdup(challenge);
    a->prompt = xasprintf("Type %s to go on: ", what);
    a->line.digits_only = challenge[strspn(challenge, "0123456789")] == 0;
    line_set(&a->line, "");
}

/* --- keys ------------------------------------------------------------------------------------- */

static enum question_answer
typed_key(struct question *a, const struct key *k)
{
    switch (line_key(&a->line, k)) {
    case LINE_DONE:
        if (!strcmp(a->line.text, a->challenge))
            return ASK_YES;
        snprintf(a->note, sizeof a->note, "That is not what stands above; nothing has happened.");
        return ASK_WAIT;
    case LINE_CANCEL: /* Backspace in an empty line is not an answer */
    case LINE_IGNORED:
    case LINE_MOVED:
    case LINE_CHANGED:
    case LINE_COMPLETE:
        return ASK_WAIT;
    }
    return ASK_WAIT;
}

enum question_answer
question_key(struct question *a, const struct key *k)
{
    if (a->shown_ms == 0 || k->ms < a->shown_ms)
        return ASK_WAIT;
    a->note[0] = 0;
    if (key_is(k, "Esc"))
        return ASK_NO;
    if (a->busy)
        return ASK_WAIT;
    if (k->code == KC_PASTE) {
        snprintf(a->note, sizeof a->note, "Pasted text is refused here: please type.");
        return ASK_WAIT;
    }
    if (key_is(k, "F2") && a->can_dry)
        return ASK_DRY;
    if (key_is(k, "F3") && a->can_sql)
        return ASK_SQL;
    if (key_is(k, "F4") && a->can_options)
        return ASK_OPTIONS;
    if (a->challenge)
        return typed_key(a, k);
    if (key_in(k, "y Y") || (a->easy && key_is(k, "Enter")))
        return ASK_YES;
    return key_in(k, "n N Enter") ? ASK_NO : ASK_WAIT;
}

void
question_shown(struct question *a, int64_t now_ms)
{
    if (a->shown_ms == 0)
        a->shown_ms = now_ms > 0 ? now_ms : 1;
}

const char *
question_footer(const struct question *a)
{
    if (a->busy)
        return "Esc cancel";
    if (a->challenge)
        return a->can_options
                   ? "type, then Enter confirms   F2 dry run   F3 SQL   F4 options   Esc cancel"
                   : "type, then Enter confirms   F2 dry run   F3 SQL   Esc cancel";
    if (a->can_options)
        return a->easy ? "y or Enter go on   F2 dry run   F3 SQL   F4 options   Esc cancel"
                       : "y go on   F2 dry run   F3 SQL   F4 options   Enter, n or Esc cancel";
    return a->easy ? "y or Enter go on   Esc cancel" : "y go on   Enter, n or Esc cancel";
}

/* --- drawing ---------------------------------------------------------------------------------- */

static int
cells(const char *s)
{
    return s ? text_width(s, strlen(s), TEXT_LINE) : 0;
}

static int
most(int a, int b)
{
    return a > b ? a : b;
}

static int
label_width(const struct question *a)
{
    int w = 0;

    for (int i = 0; i < a->n; i++)
        w = most(w, cells(a->lines[i].label));
    return w > 0 ? w + 1 : 0;
}

static int
inner_width(const struct question *a, int label_w, int screen_w)
{
    int w = most(BOX_MIN, most(cells(a->title) + 2, cells(a->prompt) + cells(a->challenge) + 2));

    for (int i = 0; i < a->n; i++)
        w = most(w, cells(a->lines[i].text) + (a->lines[i].label ? label_w : 0));
    w = w < BOX_MAX ? w : BOX_MAX;
    return w < screen_w - 2 * MARGIN ? w : screen_w - 2 * MARGIN;
}

static int
line_height(const struct ask_line *line, int label_w, int w)
{
    int h =
        grid_count_lines(line->text, strlen(line->text), most(1, w - (line->label ? label_w : 0)));

    return h > 0 ? h : 1;
}

static void
draw_lines(const struct question *a, struct grid *g, struct rect r, int label_w)
{
    struct text_area area = {.wrap = true};

    for (int i = 0; i < a->n && r.h > 0; i++) {
        const struct ask_line *line = &a->lines[i];
        struct rect row = rect_cut_top(&r, line_height(line, label_w, r.w));
        if (line->label)
            grid_str(g, rect_cut_left(&row, label_w), ROLE_DIM, line->label);
        grid_lines(g, row, line->role, line->text, strlen(line->text), &area);
    }
}

static void
draw_keys(const struct question *a, struct grid *g, struct rect r)
{
    struct pen pen = pen_start(g, r);
    bool acts = !a->busy && !a->challenge;
    int need = (acts ? a->easy ? 17 : 11 : 0) + 10; /* with four cells between them */

    if (!a->busy)
        need += (a->can_dry ? 14 : 0) + (a->can_sql ? 10 : 0) + (a->can_options ? 14 : 0);
    int gap = need > r.w ? 2 : 4;

    if (acts) {
        pen_put(&pen, ROLE_KEY, a->easy ? "y Enter" : "y");
        pen_put(&pen, ROLE_KEY_HELP, " go on");
        pen_gap(&pen, gap);
    }
    if (!a->busy && a->can_dry) {
        pen_put(&pen, ROLE_KEY, "F2");
        pen_put(&pen, ROLE_KEY_HELP, " dry run");
        pen_gap(&pen, gap);
    }
    if (!a->busy && a->can_sql) {
        pen_put(&pen, ROLE_KEY, "F3");
        pen_put(&pen, ROLE_KEY_HELP, " SQL");
        pen_gap(&pen, gap);
    }
    if (!a->busy && a->can_options) {
        pen_put(&pen, ROLE_KEY, "F4");
        pen_put(&pen, ROLE_KEY_HELP, " options");
        pen_gap(&pen, gap);
    }
    pen_put(&pen, ROLE_KEY, "Esc");
    pen_put(&pen, ROLE_KEY_HELP, pen.r.w < 25 ? " cancel" : " cancel (nothing happens)");
}

void
question_draw(const struct question *a, struct grid *g, struct rect screen)
{
    int label_w = label_width(a), w = inner_width(a, label_w, screen.w), h = 0;
    int below = (a->challenge ? 2 : 0) + (a->note[0] ? 1 : 0) + 2;

    for (int i = 0; i < a->n; i++)
        h += line_height(&a->lines[i], label_w, most(w, 1));
    grid_paint(g, grid_rect(g), ROLE_SHADE);
    struct rect box = rect_center(screen, w + 2 * MARGIN, h + below + 4);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER_ASK, a->title), MARGIN - 1, 0);
    bool tight = in.h < h + below + 2;
    rect_cut_top(&in, tight ? 0 : 1);
    rect_cut_bottom(&in, tight ? 0 : 1);
    struct rect keys = rect_cut_bottom(&in, 1), note = rect_cut_bottom(&in, a->note[0] != 0);
    rect_cut_bottom(&in, tight ? 0 : 1);
    struct rect typed = rect_cut_bottom(&in, a->challenge ? 1 : 0);
    rect_cut_bottom(&in, !tight && a->challenge ? 1 : 0);
    draw_lines(a, g, in, label_w);
    grid_str(g, note, ROLE_WARN, a->note);
    draw_keys(a, g, keys);
    if (a->challenge)
        line_draw(&a->line, g, typed,
                  &(struct line_look){.label = a->prompt, .label_role = ROLE_STRONG});
    else
        grid_cursor(g, keys.x, keys.y);
}
