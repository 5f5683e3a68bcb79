/*
 * Asks for the password of the server. The password is shown as stars, handed over and wiped. The
 * box asks on the screen, so the first frame need not wait for the server.
 */
#include <string.h>

#include "ui/box/box.h"

struct password_box {
    struct view view;
    struct line line;
    int source;
};

static void
password_init(struct view *v, const char *arg)
{
    struct password_box *p = (struct password_box *)v;

    (void)arg;
    line_init(&p->line, NULL, "");
    p->line.secret = true;
}

static void
password_done(struct view *v)
{
    struct password_box *p = (struct password_box *)v;

    explicit_bzero(p->line.text, sizeof p->line.text);
    line_done(&p->line);
}

static bool
password_key(struct view *v, const struct key *k)
{
    struct password_box *p = (struct password_box *)v;
    struct app *a = v->app;

    switch (line_key(&p->line, k)) {
    case LINE_DONE:
        sources_password(a->sources, p->source, p->line.text);
        app_close_box(a, v);
        break;
    case LINE_CANCEL:
        app_refuse_password(a, p->source);
        app_say(a, SAY_WARN, "no password: there is no data%s without it; :reconnect asks again",
                app_of_source(a, p->source));
        app_close_box(a, v);
        break;
    case LINE_CHANGED:
    case LINE_COMPLETE:
    case LINE_IGNORED:
    case LINE_MOVED:
        break;
    }
    return true;
}

static void
password_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct password_box *p = (struct password_box *)v;
    struct rect box = box_room(screen, 60, 5);

    grid_paint(g, screen, ROLE_SHADE);
    grid_fill(g, box, ROLE_TEXT);
    const char *title = arena_printf(v->app->frame, "Password%s", app_of_source(v->app, p->source));
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER_ASK, title), 2, 1);
    grid_fill(g, rect_row(in, 0), ROLE_INPUT);
    line_draw(&p->line, g, rect_row(in, 0),
              &(struct line_look){.label = "Password: ", .label_role = ROLE_STRONG});
}

static void
password_footer(struct view *v, struct buf *out)
{
    if (!line_say_lost(&((struct password_box *)v)->line, out))
        buf_str(out, "Enter connect   Esc cancel   (~/.pgpass saves the typing)");
}

static const struct view_ops password_ops = {
    .name = "password-box",
    .size = sizeof(struct password_box),
    .init = password_init,
    .done = password_done,
    .draw = password_draw,
    .key = password_key,
    .footer = password_footer,
};

/* Closes the box if the connection is open: the server has come back and accepted the old password.
 */
void
box_password_settle(struct app *a)
{
    struct view *box = app_find_box(a, &password_ops);

    if (!box)
        return;
    struct source *s = sources_peek(a->sources, ((const struct password_box *)box)->source);
    enum db_state state = s ? db_state(source_watcher(s)) : DB_READY;
    if (state == DB_READY || state == DB_BUSY)
        app_close_box(a, box);
}

void
box_password(struct app *a, int source)
{
    if (app_find_box(a, &password_ops))
        return;
    struct password_box *p = (struct password_box *)app_box(a, &password_ops, NULL);
    p->source = source;
}
