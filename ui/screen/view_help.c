/*
 * Help: every row of the command table, grouped by where it stands; / searches. It is made anew for
 * each frame, because what a key can do now depends on the screen below.
 */
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/screen/views.h"
#include "ui/term/words.h"

struct help {
    struct view view;
    char *filter;
    int top, lines, height;
};

static void
help_init(struct view *view, const char *arg)
{
    (void)arg;
    ((struct help *)view)->filter = xstrdup("");
}

static void
help_done(struct view *view)
{
    free(((struct help *)view)->filter);
}

static bool
is_shown(const struct help *h, const struct command *c)
{
    return words_match(h->filter,
                       (const char *const[]){c->name, c->keys, c->help, command_group(c), NULL});
}

/* The groups in the order of the table; a group of which no row is left has no heading. */
static bool
starts_group(const struct help *h, int i)
{
    if (!is_shown(h, command_at(i)))
        return false;
    for (int j = 0; j < i; j++)
        if (command_group(command_at(j)) == command_group(command_at(i)) &&
            is_shown(h, command_at(j)))
            return false;
    return true;
}

static struct rect
next_line(struct help *h, struct rect r)
{
    return rect_row(r, h->lines++ - h->top);
}

/* As much of the text as a row takes, cut between words; the rest. */
static const char *
one_row(struct grid *g, struct rect row, int w, enum role role, const char *text)
{
    size_t len = strlen(text), n = len;

    while (n > 0 && text_width(text, n, TEXT_LINE) > w) {
        n--;
        while (n > 0 && text[n] != ' ')
            n--;
    }
    n = n > 0 ? n : len;
    grid_printf(g, row, role, "%.*s", (int)n, text);
    return text + n + (text[n] == ' ');
}

static void
draw_command(struct help *h, struct grid *g, struct rect r, const struct command *c)
{
    bool narrow = r.w < 80;
    struct rect row = next_line(h, r), keys = rect_cut_left(&row, narrow ? 11 : 14);
    struct rect name = rect_cut_left(&row, 14);
    enum role role = c->risk == DESTROYS ? ROLE_WARN : ROLE_TEXT;

    keys.x += narrow ? 1 : 2;
    keys.w -= narrow ? 2 : 3;
    grid_str(g, keys, ROLE_KEY, c->keys);
    name.w -= 1;
    grid_printf(g, name, ROLE_DIM, ":%s", c->name);
    int w = r.w - (row.x - r.x); /* rows above and below the window have none */
    for (const char *rest = one_row(g, row, w, role, c->help); *rest;) {
        struct rect more = next_line(h, r);
        rect_cut_left(&more, r.w - w);
        rest = one_row(g, more, w, role, rest);
    }
}

static void
draw_all(struct help *h, struct grid *g, struct rect r)
{
    h->lines = 0;
    for (int i = 0; command_at(i); i++) {
        if (!starts_group(h, i))
            continue;
        if (h->lines > 0)
            next_line(h, r);
        grid_printf(g, next_line(h, r), ROLE_HEADING, " %s", command_group(command_at(i)));
        for (int j = i; command_at(j); j++)
            if (command_group(command_at(j)) == command_group(command_at(i)) &&
                is_shown(h, command_at(j)))
                draw_command(h, g, r, command_at(j));
    }
}

static void
help_draw(struct view *view, struct grid *g, struct rect r)
{
    struct help *h = (struct help *)view;
    struct rect head = rect_cut_top(&r, 1);

    if (*h->filter)
        grid_printf(g, head, ROLE_DIM, " keys and commands with \"%s\"", h->filter);
    else
        grid_str(g, head, ROLE_DIM,
                 head.w < 86 ? " lower case: one row; upper case: many, or no way back"
                             : " lower case: one row, can be undone; upper case: many, or no way "
                               "back · / searches");
    h->height = r.h;
    int last = h->lines > r.h ? h->lines - r.h : 0;
    h->top = h->top < 0 ? 0 : h->top > last ? last : h->top;
    draw_all(h, g, r);
    grid_cursor(g, r.x, r.y);
}

static void
help_move(struct view *view, enum move m)
{
    struct help *h = (struct help *)view;

    switch (m) {
    case MOVE_UP:
        h->top--;
        break;
    case MOVE_DOWN:
        h->top++;
        break;
    case MOVE_PAGE_UP:
        h->top -= h->height;
        break;
    case MOVE_PAGE_DOWN:
        h->top += h->height;
        break;
    case MOVE_HOME:
        h->top = 0;
        break;
    case MOVE_END:
        h->top = h->lines;
        break;
    case MOVE_LEFT:
    case MOVE_RIGHT:
        break;
    }
}

static const char *
help_filter(struct view *view)
{
    return ((struct help *)view)->filter;
}

static bool
help_set_filter(struct view *view, const char *text, struct filter_mark *mark, struct err *e)
{
    struct help *h = (struct help *)view;

    (void)mark;
    (void)e;
    free(h->filter);
    h->filter = xstrdup(text);
    h->top = 0;
    return true;
}

static bool
help_back(struct view *view)
{
    return *help_filter(view) && help_set_filter(view, "", NULL, NULL);
}

static void
help_crumb(struct view *view, struct buf *out)
{
    (void)view;
    buf_str(out, "help");
}

const struct view_ops view_help = {
    .name = "help",
    .title = "Help",
    .scope = IN_HELP,
    .size = sizeof(struct help),
    .init = help_init,
    .done = help_done,
    .draw = help_draw,
    .move = help_move,
    .back = help_back,
    .crumb = help_crumb,
    .filter = help_filter,
    .set_filter = help_set_filter,
};
