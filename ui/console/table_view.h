/* What the screens share whose rows are all in memory: one list, and the small filter of
 * ui/term/words.h over it. The struct of such a screen begins with a struct table_view, and its ops
 * name these functions. */
#ifndef UI_CONSOLE_TABLE_VIEW_H
#define UI_CONSOLE_TABLE_VIEW_H

#include "ui/console/view.h"

struct table_view {
    struct view view;
    struct list *list;
    char *filter; /* never NULL */
    bool (*keep)(void *ctx, const void *row);
};

/* keep(view, row): whether the filter leaves the row. */
void table_init(struct view *v, const struct list_def *def,
                bool (*keep)(void *ctx, const void *row));
void table_done(struct view *v);

struct list *table_list(struct view *v);
const char *table_filter(struct view *v);
bool table_set_filter(struct view *v, const char *text, struct filter_mark *mark, struct err *e);
bool table_back(struct view *v);        /* Esc takes the filter away */
const char *table_copy(struct view *v); /* the selected row's id */

#endif
