/*
 * Lends the terminal to an editor. Meanwhile nothing is drawn and no key is read here, but the loop
 * goes on: connections stay open, a running action goes on, and a signal still ends the program.
 */
#include "ui/console/app.h"

static void
come_back(struct app *a)
{
    a->lent.away = false;
    app_take_terminal(a);
}

static void
edited(void *ctx, const char *text, size_t len, const struct err *e)
{
    struct app *a = ctx;
    struct editor *ed = a->lent.editor;
    editor_fn *then = a->lent.then;

    a->lent.editor = NULL;
    a->lent.then = NULL;
    come_back(a);
    if (then)
        then(a->lent.ctx, text, len, e);
    else
        app_say(a, SAY_WARN, "what was edited is dropped: its box was closed meanwhile");
    editor_free(ed);
}

void
app_edit_view_gone(struct app *a, const struct view *v)
{
    if (a->lent.ctx == v)
        a->lent.then = NULL;
}

bool
app_edit(struct app *a, const struct app_text *t, editor_fn *fn, struct view *ctx)
{
    struct err e = {.kind = ERR_NONE};

    if (a->lent.away)
        return false;
    a->lent.away = true;
    app_lend_terminal(a);
    a->lent.editor = editor_open(a->loop, t->suffix, t->text, t->len, &e);
    if (!a->lent.editor) {
        come_back(a);
        app_say(a, SAY_BAD, "%s", e.text);
        return false;
    }
    a->lent.then = fn;
    a->lent.ctx = ctx;
    editor_then(a->lent.editor, edited, a);
    return true;
}
