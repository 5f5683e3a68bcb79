/*
 * Copies the id of the selected row, or the row as JSON, to the clipboard of the terminal; and
 * shows the row as text.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/text.h"
#include "ui/box/box.h"
#include "ui/console/app.h"
#include "ui/console/commands.h"
#include "ui/console/row_json.h"

static struct list *
front_list(const struct app *a)
{
    struct view *v = app_view(a);

    return v->ops->list ? v->ops->list(v) : NULL;
}

/* --- to the clipboard ------------------------------------------------------------------------- */

/* Reports what was copied; if the text was too long, also how much of it. */
static void
to_clipboard(struct app *a, const char *what, const char *text, bool show)
{
    size_t len = strlen(text), sent;

    if (!a->options.clipboard) {
        app_say(a, SAY_INFO, "%s   (--clipboard lets %s copy it)", show ? text : what,
                show ? "y" : "Y");
        return;
    }
    sent = term_clipboard(a->term, text, len);
    if (sent == len)
        app_say(a, SAY_GOOD, "copied: %s", show ? text : what);
    else
        app_say(a, SAY_WARN, "copied the first %s of %s: a terminal takes no more",
                fmt_bytes((int64_t)sent).s, fmt_bytes((int64_t)len).s);
}

static void
on_copy(struct app *a, int arg)
{
    struct view *v = app_view(a);
    const char *id = v->ops->copy ? v->ops->copy(v) : NULL;

    (void)arg;
    if (id && *id)
        to_clipboard(a, "the id", id, true);
}

/* --- the row ---------------------------------------------------------------------------------- */

static void
on_copy_row(struct app *a, int arg)
{
    struct buf b = {0};

    (void)arg;
    row_json(a, &b);
    if (!a->options.clipboard)
        box_text(a, "row as JSON (--clipboard lets Y copy it)", b.data);
    else
        to_clipboard(a, "the row as JSON", b.data, false);
    buf_free(&b);
}

static void
on_full(struct app *a, int arg)
{
    struct buf out = {0};

    (void)arg;
    row_lines(a, &out);
    box_prose(a, "the row in full", out.data);
    buf_free(&out);
}

static const char *
no_full(const struct app *a, int arg)
{
    struct list *l = front_list(a);

    (void)arg;
    return l && list_selected(l) ? NULL : app_no_row(a);
}

static const char *
no_row(const struct app *a, int arg)
{
    struct list *l = front_list(a);

    (void)arg;
    return l && !list_selected(l) ? app_no_row(a) : NULL;
}

/* clang-format off */
const struct command commands_copy[] = {
    {.name = "copy", .keys = "y", .help = "Show the name or id in full; --clipboard: copy it, too",
     .scope = IN_TABLES | IN_JOB, .run = on_copy, .why_not = no_row},
    {.name = "copy-row", .keys = "Y", .help = "The row as JSON; with --clipboard to the clipboard",
     .scope = IN_TABLES | IN_JOB, .run = on_copy_row, .why_not = no_row},
    {.name = "full", .keys = "f", .help = "The row in full, with the columns that are hidden or cut",
     .scope = IN_TABLES & ~IN_DATABASE, .run = on_full, .why_not = no_full},
    {0},
};
/* clang-format on */
