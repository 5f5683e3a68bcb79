/*
 * Looks for a row in a list whose answer may not have come yet.
 */
#include "ui/console/seek.h"

#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"

static const char *
find_row(const struct list *l, const char *row)
{
    size_t len = strlen(row);

    for (int i = 0; i < list_count(l); i++) {
        const char *id = list_id(l, i);
        if (!strncmp(id, row, len) && (id[len] == 0 || id[len] == '\n'))
            return id;
    }
    return NULL;
}

void
seek_end(struct app *a)
{
    free(a->seek.row);
    a->seek = (struct seek){0};
}

void
seek_turn(struct app *a)
{
    struct view *v = app_view(a);

    if (!a->seek.in || a->seek.in != v || !v->ops->list || a->views.nboxes > 0)
        return; /* an open box may be about the row under the cursor */
    const char *id = find_row(v->ops->list(v), a->seek.row);
    if (!id)
        return;
    list_select(v->ops->list(v), id);
    v->touched = true;
    seek_end(a);
}

void
seek_row(struct app *a, const char *row)
{
    char *kept = xstrdup(row); /* it may belong to the row sought so far */

    seek_end(a);
    a->seek = (struct seek){app_view(a), kept};
    seek_turn(a);
}
