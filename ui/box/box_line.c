/*
 * The two lines that are typed above the footer: the filter, which takes effect while it is typed
 * after 150 ms of rest and completes keys and names by Tab, and the palette, which completes the
 * names of commands.
 */
#include <stdio.h>
#include <string.h>

#include "model/base/clock.h"
#include "ui/box/box.h"
#include "ui/console/complete.h"

enum { REST_MS = 150, CANDIDATES = 8 };

/* --- the filter ------------------------------------------------------------------------------ */

struct filter_box {
    struct view view;
    struct line line;
    int64_t due_ms; /* when the text takes effect; 0 = it has */
    struct filter_mark mark;
    struct err err;
    char before[LINE_MAX_BYTES + 1];
    bool words; /* a table without keys */
    struct completion found;
    int at; /* index in found of the item that Tab has put in; -1 = none yet */
};

/* Finds what Tab can put in here. */
static void
filter_find(struct filter_box *f)
{
    const struct app *a = f->view.app;
    const struct known known = {source_adapter(a->source), a->store, &a->typed.kinds};

    complete_done(&f->found);
    complete(&f->found, &known, f->line.text, f->line.at, f->words);
    f->at = -1;
}

/* Tab puts the next item in; the rest of the line does not change. */
static void
filter_complete(struct filter_box *f, int step)
{
    struct completion *c = &f->found;
    char text[LINE_MAX_BYTES + 1], rest[LINE_MAX_BYTES + 1];

    if (c->n == 0)
        return;
    f->at = f->at < 0 ? (step > 0 ? 0 : c->n - 1) : (f->at + step + c->n) % c->n;
    snprintf(rest, sizeof rest, "%s", f->line.text + c->from + c->len);
    int n = snprintf(text, sizeof text, "%.*s%s", c->from, f->line.text, c->items[f->at]);
    if (n + (int)strlen(rest) > LINE_MAX_BYTES)
        return;
    c->len = n - c->from;
    memcpy(text + n, rest, strlen(rest) + 1);
    line_set(&f->line, text);
    f->line.at = n;
    f->due_ms = clock_ms() + REST_MS;
    app_wake(f->view.app, f->due_ms);
}

static void
filter_init(struct view *v, const char *arg)
{
    struct filter_box *f = (struct filter_box *)v;

    line_init(&f->line, &v->app->typed.filters, arg);
    snprintf(f->before, sizeof f->before, "%s", arg);
    f->words = !(app_scope(v->app) & (IN_JOBS | IN_FAILED));
    filter_find(f);
}

static void
filter_free(struct view *v)
{
    line_done(&((struct filter_box *)v)->line);
    complete_done(&((struct filter_box *)v)->found);
}

static bool
filter_try(struct filter_box *f, const char *text)
{
    struct view *screen = app_view(f->view.app);

    f->due_ms = 0;
    f->mark = (struct filter_mark){0, 0};
    f->err.kind = ERR_NONE;
    return screen->ops->set_filter(screen, text, &f->mark, &f->err);
}

static void
filter_enter(struct filter_box *f)
{
    struct app *a = f->view.app;

    if (filter_try(f, f->line.text))
        app_close_box(a, &f->view);
}

static bool
filter_key(struct view *v, const struct key *k)
{
    struct filter_box *f = (struct filter_box *)v;

    switch (line_key(&f->line, k)) {
    case LINE_CHANGED:
        f->due_ms = clock_ms() + REST_MS;
        app_wake(v->app, f->due_ms);
        filter_find(f);
        break;
    case LINE_DONE:
        filter_enter(f);
        break;
    case LINE_CANCEL:
        if (strcmp(f->before, f->line.text) != 0 && !filter_try(f, f->before))
            app_say(v->app, SAY_WARN, "%s", f->err.text);
        app_close_box(v->app, v);
        break;
    case LINE_COMPLETE:
        filter_complete(f, k->mods & MOD_SHIFT ? -1 : 1);
        break;
    case LINE_MOVED:
        filter_find(f);
        break;
    case LINE_IGNORED:
        break;
    }
    return true;
}

static void
filter_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct filter_box *f = (struct filter_box *)v;
    struct line_look look = {.label = "/", .label_role = ROLE_KEY};
    struct rect r = app_line(v->app);

    (void)screen;
    if (f->due_ms && clock_ms() >= f->due_ms)
        filter_try(f, f->line.text);
    else if (f->due_ms)
        app_wake(v->app, f->due_ms);
    if (f->err.kind != ERR_NONE) {
        look.bad_at = f->mark.start;
        look.bad_end = f->mark.start + f->mark.len;
    }
    grid_fill(g, r, ROLE_INPUT);
    line_draw(&f->line, g, r, &look);
}

static void
filter_footer(struct view *v, struct buf *out)
{
    struct filter_box *f = (struct filter_box *)v;

    bool typing = f->found.n > 0 && f->mark.start + f->mark.len >= f->found.from;

    if (f->err.kind != ERR_NONE && !typing) {
        buf_str(out, f->err.text);
        return;
    }
    if (f->found.n == 0) {
        buf_printf(out, "Enter keep   Esc as before   words !word%s",
                   f->words ? "" : " state: queue: kind: age>5m payload~part (? lists all)");
        return;
    }
    buf_str(out, "Tab");
    for (int i = 0; i < f->found.n; i++)
        buf_printf(out, i == f->at ? "  [%s]" : "  %s", f->found.items[i]);
    if (f->found.more)
        buf_printf(out, "  … %d more", f->found.more);
}

static const struct view_ops filter_ops = {
    .name = "filter",
    .size = sizeof(struct filter_box),
    .init = filter_init,
    .done = filter_free,
    .draw = filter_draw,
    .key = filter_key,
    .footer = filter_footer,
};

void
box_filter(struct app *a)
{
    struct view *screen = app_view(a);

    app_box(a, &filter_ops, screen->ops->filter ? screen->ops->filter(screen) : "");
}

/* --- the palette ----------------------------------------------------------------------------- */

struct palette {
    struct view view;
    struct line line;
    const struct command *found[CANDIDATES];
    int n, at;
};

static void
palette_find(struct palette *p)
{
    p->n = command_complete(app_scope(p->view.app), p->line.text, p->found, CANDIDATES);
    p->at = 0;
}

static void
palette_init(struct view *v, const char *arg)
{
    struct palette *p = (struct palette *)v;

    line_init(&p->line, &v->app->typed.words, arg ? arg : "");
    palette_find(p);
}

static void
palette_free(struct view *v)
{
    line_done(&((struct palette *)v)->line);
}

static void
palette_run(struct palette *p)
{
    struct app *a = p->view.app;
    char word[64], arg[LINE_MAX_BYTES + 1];
    size_t len = strcspn(p->line.text, " ");

    snprintf(word, sizeof word, "%.*s", len < 60 ? (int)len : 60, p->line.text);
    snprintf(arg, sizeof arg, "%s", p->line.text + len + strspn(p->line.text + len, " "));
    if (!strcmp(word, "q"))
        snprintf(word, sizeof word, "quit");
    const struct command *c = command_named(app_scope(a), word);
    if (!c && p->n > 0 && *word)
        c = p->found[p->at];
    app_close_box(a, &p->view);
    if (c && *arg && c->run_with)
        c->run_with(a, arg);
    else if (c)
        app_run(a, c);
    else if (*word)
        app_say(a, SAY_INFO, "no command is called %s; ? lists them", word);
}

static bool
palette_key(struct view *v, const struct key *k)
{
    struct palette *p = (struct palette *)v;

    switch (line_key(&p->line, k)) {
    case LINE_CHANGED:
        palette_find(p);
        break;
    case LINE_DONE:
        palette_run(p);
        break;
    case LINE_CANCEL:
        app_close_box(v->app, v);
        break;
    case LINE_COMPLETE:
        if (p->n == 0)
            break;
        if (!strcmp(p->line.text, p->found[p->at]->name))
            p->at = (p->at + (k->mods & MOD_SHIFT ? p->n - 1 : 1)) % p->n;
        line_set(&p->line, p->found[p->at]->name);
        break;
    case LINE_IGNORED:
    case LINE_MOVED:
        break;
    }
    return true;
}

static void
palette_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct palette *p = (struct palette *)v;
    struct rect r = app_line(v->app);
    struct line_look look = {.label = ":", .label_role = ROLE_KEY};
    int h = p->n + 2 < r.y - 1 ? p->n + 2 : r.y - 1, w = screen.w < 76 ? screen.w : 76;

    if (p->n > 0 && h > 2) {
        struct rect box = {0, r.y - h, w, h};
        grid_fill(g, box, ROLE_TEXT);
        struct rect in = grid_box(g, box, ROLE_BORDER, "commands");
        for (int i = 0; i < p->n; i++) {
            const struct command *c = p->found[i];
            bool off = app_why_not(v->app, c) != NULL;
            struct rect row = rect_row(in, i);
            if (i == p->at)
                grid_fill(g, row, ROLE_SELECTED);
            enum role role = i == p->at ? ROLE_SELECTED : off ? ROLE_OFF : ROLE_TEXT;
            struct pen pen = pen_start(g, row);
            pen_printf(&pen, role, " %-12s %-6s ", c->name, command_key(c).s);
            pen_put(&pen, role, off ? app_why_not(v->app, c) : c->help);
        }
    }
    grid_fill(g, r, ROLE_INPUT);
    line_draw(&p->line, g, r, &look);
}

static void
palette_footer(struct view *v, struct buf *out)
{
    (void)v;
    buf_str(out, "Enter run   Tab complete   Up Down history   Esc close");
}

static const struct view_ops palette_ops = {
    .name = "palette",
    .size = sizeof(struct palette),
    .init = palette_init,
    .done = palette_free,
    .draw = palette_draw,
    .key = palette_key,
    .footer = palette_footer,
};

void
box_palette(struct app *a)
{
    app_box(a, &palette_ops, "");
}
