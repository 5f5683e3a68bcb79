/* What is common to the screens whose rows are all in memory: one list, and the small filter
 * words_match() over it. The struct of such a screen begins with a struct table_view, and its ops
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
    bool on_other;      /* Tab has moved the focus to `other` */
};

/* Whether the texts match the filter. Every word must be a part of one of the texts; upper and
 * lower case (ASCII) are equal. A word with ! before it must not be in them. texts ends with NULL.
 * An empty filter matches all. */
bool words_match(const char *filter, const char *const *texts);

/* keep(view, row): whether the filter leaves the row. */
void table_init(struct view *v, const struct list_def *def,
                bool (*keep)(void *ctx, const void *row));
void table_done(struct view *v);

struct list *table_list(struct view *v);
const char *table_filter(struct view *v);
bool table_set_filter(struct view *v, const char *text, struct filter_mark *mark, struct err *e);
bool table_back(struct view *v); /* Esc: focus on the table; then clears the filter */
/* Marks count only on rows that the table shows. */
void table_mark_all(struct view *v);
void table_unmark(struct view *v);
/* Fills t with the marked rows, or else the selected row, and their noun: "3 queues". False: there
 * is no row. */
bool table_target(struct view *v, const char *noun, struct target *t);
/* "2 marked: p pause ·": appends the number of marks and the possible acts; false = none is marked.
 */
bool table_say_marked(struct view *v, struct buf *out);
bool say_marked(struct view *v, const struct list *l,
                struct buf *out); /* the same for a list of another screen */
/* Tab: moves the focus; and the list with the focus. */
void table_pane(struct view *v, int step);
bool table_has_other(struct view *v); /* there is room for the list below */
struct list *table_focus(struct view *v);
/* Appends the screen's name; if the screen is in front, also its filter. */
void table_crumb(struct view *v, const char *name, struct buf *out);
const char *table_copy(struct view *v); /* the selected row's id */

#endif
