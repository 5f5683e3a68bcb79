/*
 * A box of text that scrolls: the SQL of a screen or of an action, or other text.
 */
#include <stdlib.h>
#include <string.h>

#include "ui/box/box.h"

struct text_box {
    struct view view;
    char *title;
    char *text;
    enum role role;
    struct text_area area;
    int page, lines;
};

struct rect
box_room(struct rect screen, int w, int h)
{
    int max_w = screen.w > 20 ? screen.w - 4 : screen.w;
    int max_h = screen.h > 8 ? screen.h - 4 : screen.h;

    return rect_center(screen, w < max_w ? w : max_w, h < max_h ? h : max_h);
}

static void
text_free(struct view *v)
{
    struct text_box *t = (struct text_box *)v;

    free(t->title);
    free(t->text);
}

static bool
text_key(struct view *v, const struct key *k)
{
    struct text_box *t = (struct text_box *)v;
    int top = t->area.top;

    if (key_in(k, "Esc q Enter v F3"))
        app_close_box(v->app, v);
    else if (key_in(k, "j Down"))
        top++;
    else if (key_in(k, "k Up"))
        top--;
    else if (key_in(k, "PgDn C-f Space"))
        top += t->page;
    else if (key_in(k, "PgUp C-b"))
        top -= t->page;
    else if (key_in(k, "g Home"))
        top = 0;
    else if (key_in(k, "G End"))
        top = t->lines;
    else
        return true;
    if (key_in(k, "Esc q Enter v F3"))
        return true;
    int last = t->lines > t->page ? t->lines - t->page : 0;
    t->area.top = top < 0 ? 0 : top > last ? last : top;
    return true;
}

static void
text_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct text_box *t = (struct text_box *)v;
    size_t len = strlen(t->text);
    int w = screen.w > 104 ? 100 : screen.w - 4;
    int h = grid_count_lines(t->text, len, w - 4) + 2;
    struct rect box = box_room(screen, w, h);

    grid_paint(g, screen, ROLE_SHADE);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER, t->title), 1, 0);
    t->area.wrap = true;
    t->page = in.h;
    t->lines = grid_lines(g, in, t->role, t->text, len, &t->area);
    grid_cursor(g, in.x, in.y);
}

static void
text_footer(struct view *v, struct buf *out)
{
    (void)v;
    buf_str(out, "j k PgUp PgDn scroll   Esc close");
}

static const struct view_ops text_ops = {
    .name = "text",
    .size = sizeof(struct text_box),
    .done = text_free,
    .draw = text_draw,
    .key = text_key,
    .footer = text_footer,
};

void
box_text(struct app *a, const char *title, const char *text)
{
    struct text_box *t = (struct text_box *)app_box(a, &text_ops, NULL);

    t->title = xstrdup(title);
    t->text = xstrdup(text);
    t->role = ROLE_CODE;
}

void
box_prose(struct app *a, const char *title, const char *text)
{
    box_text(a, title, text);
    ((struct text_box *)app_front(a))->role = ROLE_TEXT;
}

void
box_sql(struct app *a)
{
    struct view *v = app_view(a);
    struct buf sql = {0};

    v->ops->sql(v, &sql);
    box_text(a, "SQL of this screen", sql.data ? sql.data : "nothing was asked yet");
    buf_free(&sql);
}
