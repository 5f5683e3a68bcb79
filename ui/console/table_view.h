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
    struct list *other; /* the view's own list below the table; NULL = there is none */
    int other_from;     /* the least height of the screen's body that has room for it */
    bool on_other;      /* Tab has given it the keys */
};

/* keep(view, row): whether the filter leaves the row. */
void table_init(struct view *v, const struct list_def *def,
                bool (*keep)(void *ctx, const void *row));
void table_done(struct view *v);

struct list *table_list(struct view *v);
const char *table_filter(struct view *v);
bool table_set_filter(struct view *v, const char *text, struct filter_mark *mark, struct err *e);
bool table_back(struct view *v); /* Esc: back to the table, then takes the filter away */
/* Marks: of rows that the table shows. */
void table_mark_all(struct view *v);
void table_unmark(struct view *v);
/* The marked rows, or the selected one, of a thing that is called so: "3 queues". False: no row. */
bool table_target(struct view *v, const char *noun, struct target *t);
/* "2 marked: p pause ·": with what can be done with them; false = none is marked. */
bool table_say_marked(struct view *v, struct buf *out);
/* Tab, and the list that has the keys. */
void table_pane(struct view *v, int step);
bool table_has_other(struct view *v); /* there is room for the list below */
struct list *table_focus(struct view *v);
/* The name of its screen; in front also its filter. */
void table_crumb(struct view *v, const char *name, struct buf *out);
const char *table_copy(struct view *v); /* the selected row's id */

#endif
