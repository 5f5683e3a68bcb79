/* The common half of the screens over one table; any text is a filter, so setting it never fails.
 */
#include "ui/table_view.h"

#include <stdlib.h>

#include "model/mem.h"

void
table_init(struct view *v, const struct list_def *def, bool (*keep)(void *ctx, const void *row))
{
    struct table_view *t = (struct table_view *)v;

    t->filter = xstrdup("");
    t->keep = keep;
    t->list = list_new(def);
    list_set_filter(t->list, keep, v);
}

void
table_done(struct view *v)
{
    struct table_view *t = (struct table_view *)v;

    list_free(t->list);
    free(t->filter);
}

struct list *
table_list(struct view *v)
{
    return ((struct table_view *)v)->list;
}

const char *
table_filter(struct view *v)
{
    return ((struct table_view *)v)->filter;
}

bool
table_set_filter(struct view *v, const char *text, struct filter_mark *mark, struct err *e)
{
    struct table_view *t = (struct table_view *)v;
    char *kept = xstrdup(text); /* it may be the filter itself */

    (void)mark;
    (void)e;
    free(t->filter);
    t->filter = kept;
    list_set_filter(t->list, t->keep, v);
    return true;
}

bool
table_back(struct view *v)
{
    return *table_filter(v) && table_set_filter(v, "", NULL, NULL);
}

const char *
table_copy(struct view *v)
{
    return list_selected_id(table_list(v));
}
