/* The marks of a list: a sorted array of ids, independent of the present rows. */
#include <stdlib.h>
#include <string.h>

#include "ui/widget/list_state.h"

/* The place of id; if the id is not there, the place to insert it. True = it is there. */
static bool
search_marks(const struct list *l, const char *id, int *place)
{
    int low = 0, high = l->nmarks;

    while (low < high) {
        int mid = low + (high - low) / 2, order = strcmp(l->marks[mid], id);
        if (order == 0) {
            *place = mid;
            return true;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *place = low;
    return false;
}

bool
list_is_marked(const struct list *l, const char *id)
{
    int place;

    return search_marks(l, id, &place);
}

void
list_mark(struct list *l, const char *id, bool on)
{
    int place;
    bool there = search_marks(l, id, &place);

    if (there == on)
        return;
    size_t after = (size_t)(l->nmarks - place) * sizeof *l->marks;
    if (on) {
        if ((l->nmarks & (l->nmarks - 1)) == 0) /* grows by doubling: full at each power of two */
            l->marks =
                xreallocarray(l->marks, (size_t)(l->nmarks ? 2 * l->nmarks : 1), sizeof *l->marks);
        memmove(l->marks + place + 1, l->marks + place, after);
        l->marks[place] = xstrdup(id);
        l->nmarks++;
    } else {
        free(l->marks[place]);
        memmove(l->marks + place, l->marks + place + 1, after - sizeof *l->marks);
        l->nmarks--;
    }
}

void
list_toggle_mark(struct list *l)
{
    const char *id = list_selected_id(l);

    if (!*id)
        return;
    list_mark(l, id, !list_is_marked(l, id));
    list_move(l, 1);
}

void
list_mark_shown(struct list *l)
{
    for (int i = 0; i < l->count; i++)
        list_mark(l, list_id(l, i), true);
}

void
list_unmark_all(struct list *l)
{
    for (int i = 0; i < l->nmarks; i++)
        free(l->marks[i]);
    l->nmarks = 0;
    free(l->marks);
    l->marks = NULL;
}

void
list_mark_only_shown(struct list *l)
{
    list_mark_shown(l);
    if (l->nmarks == l->count) /* no other row is marked */
        return;
    list_unmark_all(l);
    list_mark_shown(l);
}

const char *const *
list_marks(const struct list *l, int *n)
{
    *n = l->nmarks;
    return (const char *const *)l->marks;
}

const char *const *
list_targets(struct list *l, int *n)
{
    if (l->nmarks > 0)
        return list_marks(l, n);
    l->target[0] = list_selected_id(l);
    *n = l->target[0][0] != 0;
    return l->target;
}
