/* A question with lines of text, whose answer can't be given by accident: the box before an action,
 * and others. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/widget/prompt.h"

enum { BOX_MIN = 50, BOX_MAX = 100, MARGIN = 3, KEYS_MOST = 8, KEYS_ROWS = 3, ROOMY = 20 };

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
    free(a->aside);
    free(a->yes);
    free(a->no);
    free(a->options);
    free(a->turn);
    line_done(&a->line);
    a->title = a->challenge = a->prompt = a->aside = a->yes = a->no = a->options = a->turn = NULL;
}

void
question_words(char **to, const char *text)
{
    free(*to);
    *to = text ? xstrdup(text) : NULL;
}

void
question_say(struct question *a, enum role role, const char *label, const char *fmt, ...)
{
    char text[2000];
    va_list ap;

    if (a->n == ASK_LINES)
        return;
    va_start(ap, fmt);
    text_vprint(text, sizeof text, fmt, ap);
    va_end(ap);
    a->lines[a->n++] = (struct ask_line){role, label ? xstrdup(label) : NULL, xstrdup(text)};
}

void
question_typed(struct question *a, const char *what, const char *challenge)
{
    free(a->challenge);
    free(a->prompt);
    a->challenge = xstrdup(challenge);
    a->prompt = xasprintf("Type %s to go on: ", what ? what : challenge);
    a->line.digits_only = challenge[strspn(challenge, "0123456789")] == 0;
    line_set(&a->line, "");
}

/* --- keys ------------------------------------------------------------------------------------- */

static enum question_answer
typed_key(struct question *a, const struct key *k)
{
    switch (line_key(&a->line, k)) {
    case LINE_DONE:
        if (a->enter_is_no && a->line.len == 0)
            return ASK_NO;
        if (!strcmp(a->line.text, a->challenge))
            return ASK_YES;
        snprintf(a->note, sizeof a->note, "The text differs from the one above: nothing was done.");
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
    if (key_is(k, "F4") && a->options)
        return ASK_OPTIONS;
    if (key_is(k, "Tab") && a->turn)
        return ASK_TURN;
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

/* --- its keys in words ------------------------------------------------------------------------- */

struct key_words {
    const char *key, *words;
};

/* The keys that do something now. F4 has fewer words in the footer than in the box. */
static int
list_keys(const struct question *a, struct key_words list[static KEYS_MOST])
{
    int n = 0;

    if (a->busy) {
        list[n++] = (struct key_words){"Esc", "cancel"};
        return n;
    }
    if (!a->challenge && !a->watching)
        list[n++] = (struct key_words){a->easy && a->yes ? "Enter" : "y", a->yes ? a->yes : "yes"};
    if (a->turn)
        list[n++] = (struct key_words){"Tab", a->turn};
    if (a->can_dry)
        list[n++] = (struct key_words){"F2", "count again"};
    if (a->can_sql)
        list[n++] = (struct key_words){"F3", "SQL"};
    list[n++] = (struct key_words){"Esc", a->no ? a->no : "no"};
    if (a->options)
        list[n++] = (struct key_words){"F4", a->options};
    return n;
}

void
question_footer(const struct question *a, struct buf *out)
{
    struct key_words list[KEYS_MOST];
    int n = list_keys(a, list);

    if (a->challenge && !a->busy)
        buf_str(out, "type, then Enter");
    for (int i = 0; i < n; i++)
        buf_printf(out, "%s%s %s", out->len ? "   " : "", list[i].key, list[i].words);
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
    int w = most(most(BOX_MIN, a->pane.w),
                 most(cells(a->title) + 2, cells(a->prompt) + cells(a->challenge) + 2));

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

/* How many rows the keys take; draws them, unless g is NULL. A key and its words stay together. */
static int
flow_keys(const struct question *a, struct grid *g, struct rect r)
{
    struct key_words list[KEYS_MOST];
    int n = list_keys(a, list), x = 0, y = 0;

    for (int i = 0; i < n; i++) {
        int w = cells(list[i].key) + 1 + cells(list[i].words), gap = x > 0 ? 3 : 0;
        if (x > 0 && x + gap + w > r.w && y + 1 < KEYS_ROWS) {
            x = gap = 0;
            y++;
        }
        if (g && y < r.h) {
            struct pen pen = pen_start(g, (struct rect){r.x + x + gap, r.y + y, r.w - x - gap, 1});
            pen_put(&pen, ROLE_KEY, list[i].key);
            pen_put(&pen, ROLE_KEY_HELP, " ");
            pen_put(&pen, ROLE_KEY_HELP, list[i].words);
        }
        x += gap + w;
    }
    return y + 1;
}

static int
lines_height(const struct question *a, int label_w, int w)
{
    int h = 0;

    for (int i = 0; i < a->n; i++)
        h += line_height(&a->lines[i], label_w, most(w, 1));
    return h;
}

/* Draws the lines, and the pane below them. If there is little room, the lines are cut and the pane
 * keeps its rows. */
static void
draw_body(const struct question *a, struct grid *g, struct rect in, int label_w, int pane_h)
{
    int room = in.h - (a->n > 0);
    struct rect pane = rect_cut_bottom(&in, pane_h < room ? pane_h : most(room, 0));
    int first_w = a->n > 0 ? cells(a->lines[0].text) + (a->lines[0].label ? label_w : 0) : 0;

    draw_lines(a, g, in, label_w);
    if (a->aside && in.h > 0 && first_w + 2 + cells(a->aside) <= in.w)
        grid_right(g, rect_cut_top(&in, 1), ROLE_DIM, a->aside);
    if (pane.h > 0)
        a->pane.draw(a->pane.ctx, g, pane);
}

void
question_draw(const struct question *a, struct grid *g, struct rect screen)
{
    int label_w = label_width(a), w = inner_width(a, label_w, screen.w);
    int pane_h = a->pane.rows ? a->pane.rows(a->pane.ctx, w) : 0;
    int h = lines_height(a, label_w, w) + pane_h;
    int keys_h = flow_keys(a, NULL, (struct rect){0, 0, w, KEYS_ROWS});
    int below = (a->challenge ? 2 : 0) + (a->note[0] ? 1 : 0) + keys_h + 1;

    grid_paint(g, grid_rect(g), ROLE_SHADE);
    int room = screen.h >= ROOMY ? screen.h - 2 : screen.h; /* header and footer stay visible */
    struct rect box =
        rect_center(screen, w + 2 * MARGIN, h + below + 4 < room ? h + below + 4 : room);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER_ASK, a->title), MARGIN - 1, 0);
    int spare = in.h - h - (a->challenge != NULL) - (a->note[0] != 0) - keys_h;
    int above_typed = spare > 0 && a->challenge, above_keys = spare > above_typed;
    bool is_airy = spare >= above_typed + above_keys + 2;
    rect_cut_top(&in, is_airy);
    rect_cut_bottom(&in, is_airy);
    struct rect keys = rect_cut_bottom(&in, spare < 0 && in.h < keys_h + 4 ? 1 : keys_h);
    struct rect note = rect_cut_bottom(&in, a->note[0] != 0);
    rect_cut_bottom(&in, above_keys);
    struct rect typed = rect_cut_bottom(&in, a->challenge ? 1 : 0);
    rect_cut_bottom(&in, above_typed);
    draw_body(a, g, in, label_w, pane_h);
    grid_str(g, note, ROLE_WARN, a->note);
    flow_keys(a, g, keys);
    if (a->challenge)
        line_draw(&a->line, g, typed,
                  &(struct line_look){.label = a->prompt, .label_role = ROLE_STRONG});
    else
        grid_cursor(g, keys.x, keys.y);
}
