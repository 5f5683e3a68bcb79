/*
 * Menus: the actions of a row (grey with the reason if they can't be done), the columns to sort by,
 * the columns to show. The items are made anew for every frame, so an open menu is true after a
 * refresh, too.
 */
#include <stdio.h>
#include <string.h>

#include "ui/box/box.h"

enum { ITEMS = 48, DETAIL_H = 3 };

struct item {
    char key[32], text[160];
    bool off;
    int n; /* index of the command or column */
};

struct menu {
    struct view view;
    const char *title;
    void (*fill)(struct menu *m);
    bool (*pick)(struct menu *m, const struct item *it); /* true = the menu closes before */
    void (*act)(struct app *a, int n);                   /* after it has closed */
    void (*detail)(const struct menu *m, const struct item *it, struct buf *out); /* or NULL */
    struct item items[ITEMS];
    int n, at, top;
};

static struct list *
list_behind(const struct menu *m)
{
    struct view *v = app_view(m->view.app);

    return v->ops->list ? v->ops->list(v) : NULL;
}

static struct item *
menu_add(struct menu *m)
{
    struct item *it = &m->items[m->n < ITEMS - 1 ? m->n++ : ITEMS - 1];

    memset(it, 0, sizeof *it);
    return it;
}

/* --- keys and frame -------------------------------------------------------------------------- */

static void
menu_pick(struct menu *m)
{
    struct app *a = m->view.app;
    void (*act)(struct app *, int) = m->act;

    if (m->at >= m->n)
        return;
    int n = m->items[m->at].n;
    if (!m->pick(m, &m->items[m->at]))
        return;
    app_close_box(a, &m->view);
    if (act)
        act(a, n);
}

static bool
menu_key(struct view *v, const struct key *k)
{
    struct menu *m = (struct menu *)v;

    if (key_in(k, "Esc q")) {
        app_close_box(v->app, v);
        return true;
    }
    if (key_in(k, "j Down") && m->at < m->n - 1)
        m->at++;
    else if (key_in(k, "k Up") && m->at > 0)
        m->at--;
    else if (key_in(k, "g Home"))
        m->at = 0;
    else if (key_in(k, "G End"))
        m->at = m->n > 0 ? m->n - 1 : 0;
    else if (key_in(k, "Enter Space"))
        menu_pick(m);
    else
        for (int i = 0; i < m->n && m->act; i++)
            if (*m->items[i].key && key_is(k, m->items[i].key)) {
                m->at = i;
                menu_pick(m);
                break;
            }
    return true;
}

static void
draw_item(const struct menu *m, struct grid *g, struct rect row, int i)
{
    const struct item *it = &m->items[i];
    enum role key = it->off ? ROLE_OFF : ROLE_KEY, text = it->off ? ROLE_OFF : ROLE_TEXT;

    if (i == m->at) {
        key = text = ROLE_SELECTED;
        grid_fill(g, row, ROLE_SELECTED);
        grid_cursor(g, row.x, row.y);
    }
    struct pen p = pen_start(g, row);
    pen_printf(&p, key, " %-6s ", it->key);
    pen_put(&p, text, it->text);
}

/* Draws the text of the selected item that has no room in its line. */
static void
draw_detail(const struct menu *m, struct grid *g, struct rect r)
{
    struct buf text = {0};

    if (m->at < m->n)
        m->detail(m, &m->items[m->at], &text);
    rect_cut_top(&r, 1);
    if (text.len)
        grid_lines(g, rect_inset(r, 1, 0), ROLE_DIM, text.data, text.len,
                   &(struct text_area){.wrap = true});
    buf_free(&text);
}

static void
menu_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct menu *m = (struct menu *)v;
    int w = 40;

    m->n = 0;
    m->fill(m);
    m->at = m->at < m->n ? m->at : m->n > 0 ? m->n - 1 : 0;
    for (int i = 0; i < m->n; i++) {
        int need = text_width(m->items[i].text, strlen(m->items[i].text), TEXT_LINE) + 14;
        w = need > w ? need : w;
    }
    struct rect box = box_room(screen, w, m->n + 2 + (m->detail ? DETAIL_H : 0));
    grid_paint(g, screen, ROLE_SHADE);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = grid_box(g, box, ROLE_BORDER, m->title);
    if (m->detail)
        draw_detail(m, g, rect_cut_bottom(&in, in.h > 2 * DETAIL_H ? DETAIL_H : 0));
    if (m->at < m->top)
        m->top = m->at;
    if (m->at >= m->top + in.h)
        m->top = m->at - in.h + 1;
    for (int i = m->top; i < m->n && i - m->top < in.h; i++)
        draw_item(m, g, rect_row(in, i - m->top), i);
    grid_more(g, box, m->top, m->n - m->top - in.h);
}

static void
menu_footer(struct view *v, struct buf *out)
{
    struct menu *m = (struct menu *)v;

    buf_str(out, m->act ? "Enter or its key: do it   Esc close" : "Space on or off   Esc close");
}

static const struct view_ops menu_ops = {
    .name = "menu",
    .size = sizeof(struct menu),
    .draw = menu_draw,
    .key = menu_key,
    .footer = menu_footer,
};

/* --- the actions of this row ----------------------------------------------------------------- */

/* What the queue system says of the act of a command. */
static struct act_mark
mark_of(const struct app *a, const struct command *c)
{
    bool by_ids = (app_scope(a) & (IN_JOBS | IN_JOB)) && !c->by_filter;

    if (!c->act)
        return (struct act_mark){0};
    return act_mark((enum act)(c->act - act_infos), by_ids, source_adapter(a->source));
}

/* An act that other systems have, but not this one. */
static bool
is_others(const struct app *a, const struct command *c)
{
    return c->only_with && !adapter_has(source_adapter(a->source), c->only_with);
}

static void
actions_detail(const struct menu *m, const struct item *it, struct buf *out)
{
    struct app *a = m->view.app;
    const struct command *c = command_at(it->n);
    const char *why = app_why_not(a, c);
    struct act_mark mark = mark_of(a, c);

    if (why)
        buf_printf(out, "%s: %s. ", c->name, why);
    if (mark.unofficial)
        buf_printf(out, "Unofficial: %s has no call for this. ",
                   adapter_title(source_adapter(a->source)));
    if (mark.danger)
        buf_printf(out, "%s ", mark.danger);
    if (mark.guard)
        buf_printf(out, "Guard: %s.", mark.guard);
}

static void
actions_fill(struct menu *m)
{
    struct app *a = m->view.app;

    for (int i = 0; command_at(i); i++) {
        const struct command *c = command_at(i);
        if (!(c->scope & app_scope(a)) || !c->run ||
            (c->risk == SAFE && strcmp(c->name, "open") != 0 && strcmp(c->name, "copy") != 0))
            continue;
        if (is_others(a, c))
            continue;
        const char *why = app_why_not(a, c);
        struct item *it = menu_add(m);
        snprintf(it->key, sizeof it->key, "%s", command_key(c).s);
        struct act_mark mark = mark_of(a, c);
        const char *sign = mark.danger ? "▲ " : "", *word = mark.unofficial ? "unofficial: " : "";
        if (why) /* short, so that the reason is not cut */
            snprintf(it->text, sizeof it->text, "%s%s%s: %s", sign, word, c->name, why);
        else
            snprintf(it->text, sizeof it->text, "%s%s%s", sign, word, c->help);
        it->off = why != NULL;
        it->n = i;
    }
}

static bool
actions_pick(struct menu *m, const struct item *it)
{
    (void)m;
    return !it->off;
}

static void
actions_act(struct app *a, int n)
{
    app_run(a, command_at(n));
}

void
box_actions(struct app *a)
{
    struct menu *m = (struct menu *)app_box(a, &menu_ops, NULL);

    m->title = "actions";
    m->fill = actions_fill;
    m->detail = app_is_foreign(a) ? actions_detail : NULL;
    m->pick = actions_pick;
    m->act = actions_act;
}

/* --- sorting --------------------------------------------------------------------------------- */

static void
columns_fill(struct menu *m)
{
    struct list *l = list_behind(m);

    for (int i = 0; i < list_columns(l); i++) {
        const struct column *c = list_column(l, i);
        bool sorting = m->act != NULL, desc = false;
        if (sorting && !column_sortable(c))
            continue;
        bool on = sorting ? list_sort_column(l, &desc) == c : list_column_on(l, i);
        struct item *it = menu_add(m);
        bool no_room = !sorting && on && list_column_no_room(l, i);
        snprintf(it->key, sizeof it->key, "%s", on ? "on" : "");
        snprintf(it->text, sizeof it->text, "%-12s %s%s", *c->title ? c->title : c->name,
                 no_room ? "(no room; Enter makes it) " : "", c->help);
        it->n = i;
    }
}

static bool
sort_pick(struct menu *m, const struct item *it)
{
    (void)m;
    (void)it;
    return true;
}

static void
sort_act(struct app *a, int n)
{
    struct view *v = app_view(a);
    struct list *l = v->ops->list(v);
    const struct column *c = list_column(l, n);

    list_sort_by(l, c->name, column_desc_first(c));
}

void
box_sort(struct app *a)
{
    struct menu *m = (struct menu *)app_box(a, &menu_ops, NULL);

    m->title = "sort by";
    m->fill = columns_fill;
    m->pick = sort_pick;
    m->act = sort_act;
}

/* --- columns --------------------------------------------------------------------------------- */

static bool
columns_pick(struct menu *m, const struct item *it)
{
    struct list *l = list_behind(m);

    if (!list_column_on(l, it->n) || list_column_no_room(l, it->n))
        list_column_pin(l, it->n);
    else
        list_column_show(l, it->n, false);
    return false;
}

void
box_columns(struct app *a)
{
    struct menu *m = (struct menu *)app_box(a, &menu_ops, NULL);

    m->title = "columns";
    m->fill = columns_fill;
    m->pick = columns_pick;
    m->act = NULL;
}
