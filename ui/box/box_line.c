/*
 * The filter: a line that is typed above the footer. The filter takes effect while it is typed,
 * after 150 ms without a key. Tab completes keys and names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "ui/box/box.h"
#include "ui/console/complete.h"

enum { REST_MS = 150 };

struct filter_box {
    struct view view;
    struct line line;
    int64_t due_ms; /* when the text takes effect; 0 = it has already */
    struct filter_mark mark;
    struct err err;
    char *before; /* the filter at the start, */
    char *shown;  /* and the line then: without the characters that it can't show */
    bool words;   /* the table takes plain words only, no keys */
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
    f->before = xstrdup(arg);
    f->shown = xstrdup(f->line.text);
    f->words = !(app_scope(v->app) & (IN_JOBS | IN_FAILED));
    filter_find(f);
}

static void
filter_free(struct view *v)
{
    struct filter_box *f = (struct filter_box *)v;

    line_done(&f->line);
    complete_done(&f->found);
    free(f->before);
    free(f->shown);
}

/* The filter that the line stands for. As long as the line reads as at the start, this is the
 * filter of the start, also if the line can't show the whole of it. */
static const char *
text_of(const struct filter_box *f)
{
    return strcmp(f->line.text, f->shown) != 0 ? f->line.text : f->before;
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

/* Whether the text is a filter of jobs ("payload~acme"), typed on a table that takes plain words
 * only. */
static bool
is_for_jobs(struct filter_box *f)
{
    struct app *a = f->view.app;
    struct filter jobs;
    struct err e;
    bool ok = f->words && filter_parse(f->line.text, &jobs, NULL, &e);

    if (f->words)
        filter_done(&jobs);
    return ok && app_takes_filter(a, f->line.text, NULL, &e);
}

static void
filter_enter(struct filter_box *f)
{
    struct app *a = f->view.app;
    const char *jobs = view_screen(2)->name;

    if (filter_try(f, text_of(f))) {
        app_close_box(a, &f->view);
    } else if (is_for_jobs(f)) {
        char *text = xstrdup(f->line.text);
        filter_try(f, f->before);
        app_open_page(a, jobs, jobs, text); /* the filter's box closes together with its screen */
        free(text);
    }
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
        if (strcmp(f->before, text_of(f)) != 0 && !filter_try(f, f->before))
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
        filter_try(f, text_of(f));
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

    if (line_say_lost(&f->line, out))
        return;
    if (text_of(f) == f->before && strcmp(f->before, f->shown) != 0) {
        buf_str(out, "the line can't show all of the filter: Enter keeps it as it is");
        return;
    }
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
