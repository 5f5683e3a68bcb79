/*
 * The menu of sources (S): each source with its queue system, state and backlog. Enter goes to the
 * source.
 */
#include <string.h>

#include "ui/box/box.h"
#include "ui/facts/source_columns.h"

struct sources_box {
    struct view view;
    struct list *list;
    struct source_row rows[SOURCES_MAX];
};

static void
sources_fill(struct view *v)
{
    struct sources_box *b = (struct sources_box *)v;

    list_set_rows(b->list, b->rows, source_rows(v->app->sources, v->app->at, b->rows));
}

static void
sources_box_init(struct view *v, const char *arg)
{
    struct sources_box *b = (struct sources_box *)v;

    (void)arg;
    b->list = list_new(&list_of_sources);
    sources_fill(v);
    list_select(b->list, sources_name(v->app->sources, v->app->at));
}

static void
sources_box_done(struct view *v)
{
    list_free(((struct sources_box *)v)->list);
}

static void
sources_pick(struct sources_box *b)
{
    const struct source_row *r = list_selected(b->list);
    struct app *a = b->view.app;
    int at = r ? r->at : -1;

    app_close_box(a, &b->view);
    if (at >= 0)
        app_switch(a, at);
}

static bool
sources_key(struct view *v, const struct key *k)
{
    struct sources_box *b = (struct sources_box *)v;

    if (key_in(k, "Esc q S"))
        app_close_box(v->app, v);
    else if (key_in(k, "j Down"))
        list_move(b->list, 1);
    else if (key_in(k, "k Up"))
        list_move(b->list, -1);
    else if (key_in(k, "PgDn C-f"))
        list_page(b->list, 1);
    else if (key_in(k, "PgUp C-b"))
        list_page(b->list, -1);
    else if (key_in(k, "g Home"))
        list_home(b->list);
    else if (key_in(k, "G End"))
        list_end(b->list);
    else if (key_in(k, "Enter Space"))
        sources_pick(b);
    else if (key_in(k, "0")) {
        struct app *a = v->app;
        app_close_box(a, v);
        app_overview(a);
    }
    return true;
}

static void
sources_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct sources_box *b = (struct sources_box *)v;
    struct app *a = v->app;
    struct rect box = box_room(screen, 112, list_count(b->list) + 5);
    struct list_look look = {.now_ms = a->now_ms, .utc = a->options.utc};
    const struct source_row *r = list_selected(b->list);
    struct buf text = {0};

    int left = sources_left_out(a->sources);
    const char *title = left ? arena_printf(a->frame, "sources: %d more %s left out", left,
                                            left == 1 ? "is" : "are")
                             : "sources";

    grid_paint(g, screen, ROLE_SHADE);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER, title), 1, 0);
    struct rect why = rect_cut_bottom(&in, in.h > 4 ? 2 : 0);
    list_draw(b->list, g, in, &look);
    if (r)
        source_say(&r->line, &text);
    if (text.len)
        grid_lines(g, why, source_state_role(r->line.state), text.data, text.len,
                   &(struct text_area){.wrap = true});
    buf_free(&text);
}

static void
sources_footer(struct view *v, struct buf *out)
{
    (void)v;
    buf_str(out, "Enter go there   0 all their queues   Esc close");
}

static const struct view_ops sources_ops = {
    .name = "sources-box",
    .size = sizeof(struct sources_box),
    .all_sources = true,
    .init = sources_box_init,
    .done = sources_box_done,
    .update = sources_fill,
    .draw = sources_draw,
    .key = sources_key,
    .footer = sources_footer,
};

void
box_sources(struct app *a)
{
    app_box(a, &sources_ops, NULL);
}
