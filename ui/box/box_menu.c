/*
 * Menus: the actions of a row (an impossible one is grey, with the reason), the columns to sort by,
 * the columns to show. The items are made again for every frame, so an open menu stays correct
 * after a refresh. The menu of a row is drawn below or above the row, never over it.
 */
#include <stdio.h>
#include <string.h>

#include "ui/box/box.h"

enum { ITEMS = 48, DETAIL_H = 3, MENU_LEAST_H = 16 };

struct item {
    char key[32], text[160];
    bool off;
    bool head; /* the title of a group: can't be selected */
    bool destroys;
    int n; /* index of the command or column */
};

struct menu {
    struct view view;
    char title[120];
    bool at_row; /* the menu is about the selected row */
    void (*fill)(struct menu *m);
    bool (*pick)(struct menu *m, const struct item *it); /* true = close the menu and call act */
    void (*act)(struct app *a, int n);                   /* called after the menu has closed */
    void (*detail)(const struct menu *m, const struct item *it, struct buf *out); /* may be NULL */
    struct item items[ITEMS];
    int n, at, top;
};

static struct list *
list_behind(const struct menu *m)
{
    return app_list(m->view.app);
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

    if (m->at >= m->n || m->items[m->at].head)
        return;
    int n = m->items[m->at].n;
    if (!m->pick(m, &m->items[m->at]))
        return;
    app_close_box(a, &m->view);
    if (act)
        act(a, n);
}

/* The next item in this direction from `from` on that can be selected; else the present one. */
static void
menu_move(struct menu *m, int from, int step)
{
    for (int i = from; i >= 0 && i < m->n; i += step)
        if (!m->items[i].head) {
            m->at = i;
            return;
        }
}

static bool
menu_key(struct view *v, const struct key *k)
{
    struct menu *m = (struct menu *)v;

    if (key_in(k, "Esc q")) {
        app_close_box(v->app, v);
        return true;
    }
    if (key_in(k, "j Down"))
        menu_move(m, m->at + 1, 1);
    else if (key_in(k, "k Up"))
        menu_move(m, m->at - 1, -1);
    else if (key_in(k, "g Home"))
        menu_move(m, 0, 1);
    else if (key_in(k, "G End"))
        menu_move(m, m->n - 1, -1);
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
    enum role key = it->off ? ROLE_OFF : ROLE_KEY;
    enum role text = it->off ? ROLE_OFF : it->destroys ? ROLE_WARN : ROLE_TEXT;

    if (it->head) {
        grid_rule(g, row, ROLE_BOX_TITLE, it->text);
        return;
    }
    if (i == m->at) {
        key = text = ROLE_SELECTED;
        grid_fill(g, row, ROLE_SELECTED);
        grid_cursor(g, row.x, row.y);
    }
    struct pen p = pen_start(g, row);
    pen_printf(&p, key, " %-6s ", it->key);
    pen_put(&p, text, it->text);
}

/* Draws the rest of the selected item's text, which has no room in the item's line. */
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

static int
menu_width(const struct menu *m)
{
    int w = 40;

    for (int i = 0; i < m->n; i++) {
        int need = text_width(m->items[i].text, strlen(m->items[i].text), TEXT_LINE) + 14;
        w = need > w ? need : w;
    }
    return w;
}

/* The place of the menu: below or above its row, on the side with more room. */
static struct rect
beside_row(struct rect screen, int line, int w, int h)
{
    int below = screen.h - 1 - (line + 1), above = line - 1, w_most = screen.w - 4;
    bool down = below >= h || below >= above;
    int room = down ? below : above;

    h = h < room ? h : room;
    return (struct rect){3, down ? line + 1 : line - h, w < w_most ? w : w_most, h};
}

static struct rect
menu_place(const struct menu *m, struct rect screen, int h)
{
    const struct list *l = m->at_row ? list_behind(m) : NULL;
    int line = l ? list_selected_line(l) : -1;

    if (line < 0 || screen.h < MENU_LEAST_H)
        return box_room(screen, menu_width(m), h);
    return beside_row(screen, line, menu_width(m), h);
}

/* Shades the screen except the row that the menu is about. */
static void
shade(const struct menu *m, struct grid *g, struct rect screen)
{
    const struct list *l = m->at_row ? list_behind(m) : NULL;
    int line = l ? list_selected_line(l) : -1;

    grid_paint(g, (struct rect){0, 0, screen.w, line < 0 ? screen.h : line}, ROLE_SHADE);
    if (line >= 0)
        grid_paint(g, (struct rect){0, line + 1, screen.w, screen.h - line - 1}, ROLE_SHADE);
}

static void
menu_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct menu *m = (struct menu *)v;

    m->n = 0;
    m->fill(m);
    m->at = m->at < m->n ? m->at : m->n > 0 ? m->n - 1 : 0;
    if (m->n > 0 && m->items[m->at].head)
        menu_move(m, m->at, 1);
    struct rect box = menu_place(m, screen, m->n + 2 + (m->detail ? DETAIL_H : 0));
    shade(m, g, screen);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = grid_box(g, box, ROLE_BORDER, m->title);
    if (m->detail)
        draw_detail(m, g, rect_cut_bottom(&in, in.h > 2 * DETAIL_H ? DETAIL_H : 0));
    if (m->at < m->top)
        m->top = m->at;
    if (m->top == 1) /* the title of the first group */
        m->top = 0;
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

/* What the adapter says about the act of a command. */
static struct act_mark
mark_of(const struct app *a, const struct command *c)
{
    bool by_ids = (app_scope(a) & (IN_JOBS | IN_JOB)) && !c->by_filter;

    if (!c->act)
        return (struct act_mark){0};
    return act_mark((enum act)(c->act - act_infos), by_ids, source_adapter(a->source));
}

/* Whether the act exists in other queue systems, but not in this one. */
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
add_action(struct menu *m, int i)
{
    struct app *a = m->view.app;
    const struct command *c = command_at(i);
    const char *why = app_why_not(a, c);
    struct act_mark mark = mark_of(a, c);
    const char *sign = mark.danger ? "▲ " : "", *word = mark.unofficial ? "unofficial: " : "";
    struct item *it = menu_add(m);

    snprintf(it->key, sizeof it->key, "%s", command_key(c).s);
    if (why) /* short, so that the reason is not cut */
        text_print(it->text, sizeof it->text, "%s%s%s: %s", sign, word, c->name, why);
    else
        text_print(it->text, sizeof it->text, "%s%s%s", sign, word,
                   c->help_now ? c->help_now(a, c->arg) : c->help);
    it->off = why != NULL;
    it->destroys = c->risk == DESTROYS;
    it->n = i;
}

static bool
is_in_menu(const struct app *a, const struct command *c)
{
    static const char *const looks[] = {"open", "full", "copy", "copy-row"};
    bool look = false;

    if (!(c->scope & app_scope(a)) || !c->run || is_others(a, c))
        return false;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        look = look || !strcmp(c->name, looks[i]);
    return c->risk != SAFE || look;
}

/* The title of the menu: the name of the row or rows that the actions are for. */
static void
say_target(struct menu *m)
{
    struct target t = app_target(m->view.app);

    if (t.kind == TARGET_JOBS && t.nids == 1 && !t.all)
        snprintf(m->title, sizeof m->title, "job %s", fmt_id_tail(t.ids[0]).s);
    else if (t.kind != TARGET_NONE && *t.name)
        text_print(m->title, sizeof m->title, "%s", t.name);
    else
        snprintf(m->title, sizeof m->title, "actions");
}

/* First the actions that only look, then those that can be taken back, then the others; last what
 * is not possible, so that this hides nothing that is. */
static void
actions_fill(struct menu *m)
{
    enum { IMPOSSIBLE = DESTROYS + 1 };
    static const char *const groups[] = {[SAFE] = "look",
                                         [CHANGES] = "change",
                                         [DESTROYS] = "many rows, or no way back",
                                         [IMPOSSIBLE] = "not possible now"};
    const struct app *a = m->view.app;

    say_target(m);
    for (int group = SAFE; group <= IMPOSSIBLE; group++) {
        struct item *head = menu_add(m);
        int before = m->n;
        head->head = true;
        snprintf(head->text, sizeof head->text, "%s", groups[group]);
        for (int i = 0; command_at(i); i++) {
            const struct command *c = command_at(i);
            if (is_in_menu(a, c) && group == (app_why_not(a, c) ? IMPOSSIBLE : (int)c->risk))
                add_action(m, i);
        }
        if (m->n == before)
            m->n--;
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

    m->at_row = true;
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

    for (int i = 0; l && i < list_columns(l); i++) { /* no list: the pane has lost the focus */
        const struct column *c = list_column(l, i);
        bool sorting = m->act != NULL, desc = false;
        if (sorting && !column_sortable(c))
            continue;
        bool on = sorting ? list_sort_column(l, &desc) == c : list_column_on(l, i);
        struct item *it = menu_add(m);
        bool no_room = !sorting && on && list_column_no_room(l, i);
        snprintf(it->key, sizeof it->key, "%s", on ? "on" : "");
        text_print(it->text, sizeof it->text, "%-12s %s%s", *c->title ? c->title : c->name,
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
    struct list *l = app_list(a);
    const struct column *c = list_column(l, n);

    list_sort_by(l, c->name, column_desc_first(c));
}

void
box_sort(struct app *a)
{
    struct menu *m = (struct menu *)app_box(a, &menu_ops, NULL);

    snprintf(m->title, sizeof m->title, "sort by");
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

    snprintf(m->title, sizeof m->title, "columns");
    m->fill = columns_fill;
    m->pick = columns_pick;
    m->act = NULL;
}
