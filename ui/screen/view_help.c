/*
 * Help: every row of the command table. First the keys of the screen from which help was opened,
 * then the keys that move, those that work everywhere, and the keys of other screens; / searches.
 * The page is made again for each frame.
 */
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/crumb.h"
#include "ui/console/table_view.h"
#include "ui/screen/views.h"

struct help {
    struct view view;
    char *filter;
    int top, lines, height, columns;
};

enum { TWO_COLUMNS_W = 120 };

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

/* --- sections --------------------------------------------------------------------------------- */

enum section { HERE, MOVING, EVERYWHERE, OTHERS, SECTIONS };

/* The scope of the screen from which help was opened. */
static unsigned
scope_below(const struct help *h)
{
    const struct view *below = app_below(h->view.app);

    return (below ? below->ops->scope : IN_HELP) | (app_scope(h->view.app) & IN_REPLAY);
}

static enum section
section_of(const struct help *h, const struct command *c)
{
    if (!(c->scope & scope_below(h)))
        return OTHERS;
    if (c->moves != MOVES_NOTHING)
        return MOVING;
    return (c->scope & IN_TABLES) == IN_TABLES ? EVERYWHERE : HERE;
}

static const char *
title_of(const struct help *h, enum section s, const struct command *c)
{
    const struct view *below = app_below(h->view.app);

    if (s == HERE)
        return arena_printf(h->view.app->frame, "On this screen: %s",
                            below ? below->ops->title : "");
    return s == MOVING ? "Moving" : s == EVERYWHERE ? "Everywhere" : command_group(c);
}

/* Commands of the same section are listed together; among the commands of other screens, those of
 * the same group. */
static bool
is_together(const struct help *h, const struct command *a, const struct command *b)
{
    enum section s = section_of(h, a);

    return s == section_of(h, b) && (s != OTHERS || command_group(a) == command_group(b));
}

/* Whether command i is the first one shown of its group: then the heading of the group comes before
 * it. */
static bool
starts_group(const struct help *h, int i)
{
    if (!is_shown(h, command_at(i)))
        return false;
    for (int j = 0; j < i; j++)
        if (is_together(h, command_at(j), command_at(i)) && is_shown(h, command_at(j)))
            return false;
    return true;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The row for the next line: the right column continues the left one. A line above or below the
 * window has no row. */
static struct rect
next_line(struct help *h, struct rect r)
{
    int at = h->lines++ - h->top, column = at >= 0 && h->height > 0 ? at / h->height : 0;

    r.w = h->columns > 1 ? r.w / h->columns - 1 : r.w;
    r.x += column * (r.w + 1);
    return column < h->columns ? rect_row(r, at - column * h->height) : (struct rect){0, 0, 0, 0};
}

/* Cuts off as much text as one row holds, between two words, and leaves the rest. */
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
    int w = h->columns > 1 ? r.w / h->columns - 1 : r.w;
    bool narrow = w < 80;
    struct rect row = next_line(h, r), keys = rect_cut_left(&row, narrow ? 11 : 14);
    struct rect name = rect_cut_left(&row, 14);
    enum role role = c->risk == DESTROYS ? ROLE_WARN : ROLE_TEXT;
    int before = narrow ? 25 : 28;

    keys.x += narrow ? 1 : 2;
    keys.w -= narrow ? 2 : 3;
    grid_str(g, keys, ROLE_KEY, c->keys);
    name.w -= 1;
    bool fits = (int)(strlen(c->name) + strlen(command_takes(c))) + 2 <= 13;
    grid_printf(g, name, ROLE_DIM, ":%s%s%s", c->name, fits ? " " : "",
                fits ? command_takes(c) : "");
    for (const char *rest = one_row(g, row, w - before, role, c->help); *rest;) {
        struct rect more = next_line(h, r);
        rect_cut_left(&more, before);
        rest = one_row(g, more, w - before, role, rest);
    }
}

/* One line for all keys that move the cursor; / and the keys for what it finds have their own
 * lines. */
static void
draw_cursor_keys(struct help *h, struct grid *g, struct rect r)
{
    struct rect row = next_line(h, r);
    struct pen p = pen_start(g, row);

    pen_gap(&p, row.w < 80 ? 1 : 2);
    pen_put(&p, ROLE_KEY, "j k  C-d C-u  PgDn PgUp  g G");
    pen_put(&p, ROLE_TEXT, row.w < 56 ? "  move" : "  move, and so do the arrows");
}

static void
draw_group(struct help *h, struct grid *g, struct rect r, int i)
{
    enum section s = section_of(h, command_at(i));

    if (h->lines > 0)
        next_line(h, r);
    grid_printf(g, next_line(h, r), ROLE_HEADING, " %s", title_of(h, s, command_at(i)));
    if (s == MOVING && !*h->filter)
        draw_cursor_keys(h, g, r);
    for (int j = i; command_at(j); j++)
        if (is_together(h, command_at(i), command_at(j)) && is_shown(h, command_at(j)) &&
            (s != MOVING || *h->filter || command_at(j)->moves != MOVES_CURSOR))
            draw_command(h, g, r, command_at(j));
}

static void
draw_all(struct help *h, struct grid *g, struct rect r)
{
    h->lines = 0;
    for (int s = HERE; s < SECTIONS; s++)
        for (int i = 0; command_at(i); i++)
            if ((int)section_of(h, command_at(i)) == s && starts_group(h, i))
                draw_group(h, g, r, i);
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
                 head.w < 90 ? " small letter: one row · capital: many, or can't be undone"
                             : " small letter: one row, can be undone · capital: many rows, or "
                               "can't be undone · / searches");
    h->height = r.h;
    h->columns = r.w >= TWO_COLUMNS_W ? 2 : 1;
    int page = r.h * h->columns, last = h->lines > page ? h->lines - page : 0;
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
        h->top -= h->height * h->columns;
        break;
    case MOVE_PAGE_DOWN:
        h->top += h->height * h->columns;
        break;
    case MOVE_HALF_UP:
        h->top -= h->height / 2;
        break;
    case MOVE_HALF_DOWN:
        h->top += h->height / 2;
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
    crumb_add(out, "help");
    crumb_add(out, help_filter(view));
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
