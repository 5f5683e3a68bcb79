/*
 * The terminal lent to an editor. Meanwhile nothing is drawn and no key is read here, but the loop
 * goes on: connections stay, a running action goes on, and a signal still ends the program.
 */
#include <poll.h>

#include "ui/console/app.h"

static void
come_back(struct app *a)
{
    a->away = false;
    term_enter(a->term);
    term_drop_input(a->term);
    loop_rewatch(a->loop, a->tty, term_fd(a->term), POLLIN);
    a->stale = a->keyed = true;
}

static void
edited(void *ctx, const char *text, size_t len, const struct err *e)
{
    struct app *a = ctx;
    struct editor *ed = a->editor;

    a->editor = NULL;
    come_back(a);
    a->edited(a->edited_ctx, text, len, e);
    editor_free(ed);
}

bool
app_edit(struct app *a, const struct app_text *t, editor_fn *fn, void *ctx)
{
    struct err e = {.kind = ERR_NONE};

    if (a->away)
        return false;
    a->away = true;
    a->unsent = false;
    loop_rewatch(a->loop, a->tty, -1, 0);
    term_leave(a->term);
    a->editor = editor_open(a->loop, t->suffix, t->text, t->len, &e);
    if (!a->editor) {
        come_back(a);
        app_say(a, SAY_BAD, "%s", e.text);
        return false;
    }
    a->edited = fn;
    a->edited_ctx = ctx;
    editor_then(a->editor, edited, a);
    return true;
}
