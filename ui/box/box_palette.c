/*
 * The palette: a line that is typed above the footer. The line is the name of a command and its
 * argument, or only the name of a queue, a node, a schedule or a job; then Enter goes there. Tab
 * completes both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/box/box.h"
#include "ui/console/complete.h"
#include "ui/console/go.h"

enum { OFFERS = 8, WIDTH = 76 };

struct offer {  /* Tab inserts it; Enter runs it if the line is no command or name */
    char *text; /* the whole line */
    const struct command *command; /* NULL = the offer is a name */
    const char *noun;              /* the kind of thing that the name is of */
};

struct palette {
    struct view view;
    struct line line;
    struct offer offers[OFFERS];
    int n, at;
    bool put; /* Tab has inserted the offer */
};

/* --- what can be put in ----------------------------------------------------------------------- */

static void
drop_offers(struct palette *p)
{
    while (p->n > 0)
        free(p->offers[--p->n].text);
    p->at = 0;
    p->put = false;
}

/* Puts the completion into the line. */
static void
offer_all(struct palette *p, const struct completion *c, const char *noun)
{
    for (int i = 0; i < c->n && p->n < OFFERS; i++) {
        char *text = xasprintf("%.*s%s", c->from, p->line.text, c->items[i]);
        p->offers[p->n++] = (struct offer){text, NULL, noun};
    }
}

static void
offer_names(struct palette *p, int from, unsigned kinds, const char *noun)
{
    struct app *a = p->view.app;
    const struct known known = {source_adapter(a->source), a->store, &a->typed.kinds};
    struct completion c;

    complete_names(&c, &known, p->line.text, from, kinds);
    offer_all(p, &c, noun);
    complete_done(&c);
}

static void
offer_filter(struct palette *p, const struct command *c)
{
    struct app *a = p->view.app;
    const struct known known = {source_adapter(a->source), a->store, &a->typed.kinds};
    bool words = strcmp(c->name, "jobs") != 0 && strcmp(c->name, "failed") != 0;
    struct completion found;

    complete(&found, &known, p->line.text, (int)strlen(p->line.text), words);
    offer_all(p, &found, "");
    complete_done(&found);
}

static void
offer_sources(struct palette *p, int from)
{
    struct app *a = p->view.app;
    struct names names = {.n = 0};
    const struct known known = {.kinds = &names};
    struct completion c;

    for (int i = 0; i < sources_n(a->sources); i++)
        names_add(&names, sources_name(a->sources, i));
    complete_names(&c, &known, p->line.text, from, NAMES_KINDS);
    offer_all(p, &c, "source");
    complete_done(&c);
    names_done(&names);
}

/* Offers values for the argument of a command. */
static void
offer_words(struct palette *p, const struct command *c, int from)
{
    switch (c->takes) {
    case TAKES_NOTHING:
        break;
    case TAKES_FILTER:
        offer_filter(p, c);
        break;
    case TAKES_QUEUE:
        offer_names(p, from, NAMES_QUEUES, "queue");
        break;
    case TAKES_NODE:
        offer_names(p, from, NAMES_NODES, "node");
        break;
    case TAKES_SCHEDULE:
        offer_names(p, from, NAMES_SCHEDULES, "schedule");
        break;
    case TAKES_JOB:
        offer_names(p, from, NAMES_JOBS, "job");
        break;
    case TAKES_SOURCE:
        offer_sources(p, from);
        break;
    }
}

static void
offer_commands(struct palette *p)
{
    const struct command *found[OFFERS];
    int n = command_complete(app_scope(p->view.app), p->line.text, found, OFFERS);

    for (int i = 0; i < n; i++)
        p->offers[p->n++] = (struct offer){xstrdup(found[i]->name), found[i], ""};
    if (!*p->line.text)
        return;
    offer_names(p, 0, NAMES_QUEUES, "queue");
    offer_names(p, 0, NAMES_NODES, "node");
    offer_names(p, 0, NAMES_SCHEDULES, "schedule");
}

/* The command that the line begins with; *word = the text behind the command. */
static const struct command *
typed_command(const struct palette *p, const char **word)
{
    const char *text = p->line.text;
    size_t len = strcspn(text, " ");
    char *name = len == 1 && *text == 'q' ? xstrdup("quit") : xstrndup(text, len);
    const struct command *c = command_named(app_scope(p->view.app), name);

    free(name);
    *word = text + len + strspn(text + len, " ");
    return c;
}

static void
palette_find(struct palette *p)
{
    const char *word;
    const struct command *c = typed_command(p, &word);

    drop_offers(p);
    if (c && strchr(p->line.text, ' '))
        offer_words(p, c, (int)(word - p->line.text));
    else
        offer_commands(p);
}

/* --- keys ------------------------------------------------------------------------------------- */

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
    drop_offers((struct palette *)v);
    line_done(&((struct palette *)v)->line);
}

/* Runs the line; the box is closed by now. */
static void
obey(struct app *a, const struct command *c, const char *word, const char *text)
{
    if (c && *word && c->run_with)
        c->run_with(a, c->arg, word);
    else if (c && *word)
        app_say(a, SAY_WARN, "%s takes no argument: nothing was done", c->name);
    else if (c)
        app_run(a, c);
    else if (*text && !go_bare(a, text))
        app_say(a, SAY_WARN,
                "no command is called %s, nor a queue, a node or a schedule; ? lists the commands",
                text);
}

static char *
trimmed(const char *text)
{
    size_t len;

    text += strspn(text, " ");
    for (len = strlen(text); len > 0 && text[len - 1] == ' ';)
        len--;
    return xstrndup(text, len);
}

/* If the line is neither a command nor a name, Enter runs the selected offer. */
static void
palette_run(struct palette *p)
{
    struct app *a = p->view.app;
    const char *behind;
    const struct command *c = typed_command(p, &behind);
    char *word = trimmed(behind), *text = trimmed(p->line.text);
    const struct offer *o = p->n > 0 && !c ? &p->offers[p->at] : NULL;

    if (o && *text && !store_queue(a->store, text) && !store_node(a->store, text) &&
        !store_schedule(a->store, text)) {
        c = o->command;
        free(text);
        text = xstrdup(o->text);
        *word = 0;
    }
    app_close_box(a, &p->view);
    obey(a, c, word, text);
    free(word);
    free(text);
}

static void
palette_complete(struct palette *p, int step)
{
    if (p->n == 0)
        return;
    if (p->put)
        p->at = (p->at + step + p->n) % p->n;
    line_set(&p->line, p->offers[p->at].text);
    p->put = true;
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
        palette_complete(p, k->mods & MOD_SHIFT ? -1 : 1);
        break;
    case LINE_IGNORED:
    case LINE_MOVED:
        break;
    }
    return true;
}

/* --- frame ------------------------------------------------------------------------------------ */

static void
draw_offer(const struct palette *p, struct grid *g, struct rect row, int i)
{
    const struct offer *o = &p->offers[i];
    const struct command *c = o->command;
    const char *why = c ? app_why_not(p->view.app, c) : NULL;
    enum role role = i == p->at ? ROLE_SELECTED : why ? ROLE_OFF : ROLE_TEXT;
    char name[64];

    if (i == p->at)
        grid_fill(g, row, ROLE_SELECTED);
    struct pen pen = pen_start(g, row);
    if (!c) {
        pen_printf(&pen, role, " %s  %s", o->text, o->noun);
        return;
    }
    snprintf(name, sizeof name, "%.40s %.20s", c->name, command_takes(c));
    pen_printf(&pen, role, " %-13s %-6s ", name, command_key(c).s);
    pen_put(&pen, role, why ? why : c->help);
}

static void
palette_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct palette *p = (struct palette *)v;
    struct rect r = app_line(v->app);
    struct line_look look = {.label = ":", .label_role = ROLE_KEY};
    int h = p->n + 2 < r.y - 1 ? p->n + 2 : r.y - 1, w = screen.w < WIDTH ? screen.w : WIDTH;

    if (p->n > 0 && h > 2) {
        struct rect box = {0, r.y - h, w, h};
        grid_fill(g, box, ROLE_TEXT);
        struct rect in = grid_box(g, box, ROLE_BORDER, "commands");
        for (int i = 0; i < p->n; i++)
            draw_offer(p, g, rect_row(in, i), i);
    }
    grid_fill(g, r, ROLE_INPUT);
    line_draw(&p->line, g, r, &look);
}

static void
palette_footer(struct view *v, struct buf *out)
{
    if (!line_say_lost(&((struct palette *)v)->line, out))
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
