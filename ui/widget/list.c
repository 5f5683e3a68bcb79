/* Rows and cursor of a list. A refresh may replace all rows, so only ids are kept between two
 * refreshes. The ids of the last order tell which rows were neighbours. */
#include "ui/widget/list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ui/widget/list_state.h"

enum { NEIGHBOURS = 200 }; /* how many neighbours are tried if the cursor's row has gone */

static int
clamp_int(int n, int low, int high)
{
    return n > high ? (high < low ? low : high) : n < low ? low : n;
}

struct list *
list_new(const struct list_def *def)
{
    struct list *l = xcalloc(1, sizeof *l);

    l->ncolumns = column_count(def->columns);
    assert(l->ncolumns > 0 && l->ncolumns <= LIST_COLUMNS);
    l->def = def;
    l->ctx = def->ctx;
    l->page_h = 1;
    l->sort = -1;
    memcpy(l->own, def->columns, sizeof *l->own * (size_t)l->ncolumns);
    for (int i = 1; i < l->ncolumns; i++)
        l->hidden[i] = def->columns[i].keep >= 100;
    if (def->sort)
        list_sort_by(l, def->sort, def->desc);
    return l;
}

void
list_free(struct list *l)
{
    if (!l)
        return;
    list_unmark_all(l);
    free(l->marks);
    free(l->order);
    free(l->cursor);
    free(l->old_at);
    free(l->made);
    buf_free(&l->old_ids);
    buf_free(&l->scratch);
    free(l);
}

void
list_set_ctx(struct list *l, void *ctx)
{
    l->ctx = ctx;
}

/* --- rows ------------------------------------------------------------------------------------- */

int
list_count(const struct list *l)
{
    return l->count;
}

/* Keeps the last LIST_MADE rows; a new row replaces the oldest one. */
static const void *
made_row(const struct list *l, int row)
{
    struct made *m = l->made;
    int at = 0;

    while (at < LIST_MADE && m->of[at] != row)
        at++;
    if (at == LIST_MADE) {
        at = m->next;
        m->next = (at + 1) % LIST_MADE;
        m->of[at] = row;
        l->pages.make(l->pages.ctx, row, m->rows + (size_t)at * l->def->row_size);
    }
    return m->rows + (size_t)at * l->def->row_size;
}

const void *
list_row_at(const struct list *l, int row)
{
    return l->pages.make ? made_row(l, row) : l->rows + (size_t)row * l->def->row_size;
}

static const char *
id_at(const struct list *l, int row)
{
    if (l->pages.id)
        return l->pages.id(l->pages.ctx, row);
    return *(const char *const *)(const void *)((const char *)list_row_at(l, row) +
                                                l->def->id_offset);
}

const void *
list_row(const struct list *l, int i)
{
    return i >= 0 && i < l->count ? list_row_at(l, l->order[i]) : NULL;
}

const char *
list_id(const struct list *l, int i)
{
    return id_at(l, l->order[i]);
}

struct sorting {
    const struct list *list;
    const struct column_value *values; /* of each row by its number */
};

static int
compare_rows(const void *a, const void *b, void *ctx)
{
    const struct sorting *s = ctx;
    const struct list *l = s->list;
    int x = *(const int *)a, y = *(const int *)b;
    int order = column_order(&l->def->columns[l->sort], s->values[x], s->values[y], l->desc);

    if (order == 0 && !l->pages.make) /* rows that are made on demand come sorted by id */
        order = strcmp(id_at(l, x), id_at(l, y));
    return order ? order : x - y;
}

/* Sorts the rows. The texts of the sort values are borrowed, so they must live in the snapshot,
 * also for rows that are made on demand. */
static void
sort_rows(struct list *l)
{
    struct column_value *values = xcalloc((size_t)l->n, sizeof *values);
    struct sorting s = {l, values};

    for (int i = 0; i < l->count; i++)
        values[l->order[i]] = column_value(&l->def->columns[l->sort], list_row_at(l, l->order[i]));
    qsort_r(l->order, (size_t)l->count, sizeof *l->order, compare_rows, &s);
    free(values);
}

/* The number of a row that was made on demand. */
static int
search_ids(const struct list *l, const char *id)
{
    int low = 0, high = l->n;

    while (low < high) {
        int mid = low + (high - low) / 2, order = strcmp(id_at(l, mid), id);
        if (order == 0)
            return mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

static int
find_row(const struct list *l, const char *id)
{
    int row = l->pages.make ? search_ids(l, id) : -1;

    for (int i = 0; i < l->count; i++)
        if (l->pages.make ? l->order[i] == row : !strcmp(list_id(l, i), id))
            return i;
    return -1;
}

static void
remember_order(struct list *l)
{
    buf_clear(&l->old_ids);
    l->old_at = xreallocarray(l->old_at, (size_t)l->count + 1, sizeof *l->old_at);
    l->old_n = l->count;
    for (int i = 0; i < l->count; i++) {
        const char *id = list_id(l, i);
        l->old_at[i] = l->old_ids.len;
        buf_add(&l->old_ids, id, strlen(id) + 1);
    }
}

static int
find_old(const struct list *l, int i)
{
    return i >= 0 && i < l->old_n ? find_row(l, l->old_ids.data + l->old_at[i]) : -1;
}

/* The place of the cursor's row in the new order. If the row has gone: the place of its nearest
 * neighbour that is still there; -1 = none is. */
static int
find_cursor(const struct list *l)
{
    int found = l->cursor ? find_row(l, l->cursor) : -1;

    for (int d = 1; found < 0 && d < NEIGHBOURS; d++) {
        found = find_old(l, l->index + d);
        if (found < 0)
            found = find_old(l, l->index - d);
    }
    return found >= 0 ? found : clamp_int(l->index, 0, l->count - 1);
}

static void
put_cursor(struct list *l, int i)
{
    if (l->count == 0)
        return;
    l->index = clamp_int(i, 0, l->count - 1);
    const char *id = list_id(l, l->index);
    if (l->cursor && !strcmp(l->cursor, id))
        return;
    free(l->cursor);
    l->cursor = xstrdup(id);
}

void
list_rebuild(struct list *l)
{
    int line = l->index - l->top; /* of the screen */

    l->count = 0;
    l->order = xreallocarray(l->order, (size_t)l->n + 1, sizeof *l->order);
    for (int i = 0; i < l->n; i++)
        if (!l->keep || l->keep(l->keep_ctx, list_row_at(l, i)))
            l->order[l->count++] = i;
    if (l->sort >= 0 && !l->def->server_order && l->count > 1)
        sort_rows(l);
    if (l->count == 0)
        return; /* the cursor's id and its neighbours are kept: the rows may come back */
    put_cursor(l, find_cursor(l));
    if (l->top > 0) /* if the user has scrolled, the row stays on its line */
        l->top = l->index - line;
    list_scroll(l, l->page_h);
    remember_order(l);
}

void
list_set_rows(struct list *l, const void *rows, int n)
{
    assert(n >= 0 && (rows || n == 0));
    l->pages = (struct list_pages){NULL, NULL, NULL};
    l->rows = rows;
    l->n = n;
    list_note_filled(l);
    list_rebuild(l);
}

void
list_make_anew(struct list *l)
{
    for (int i = 0; l->made && i < LIST_MADE; i++)
        l->made->of[i] = -1;
}

static struct made *
made_new(size_t row_size)
{
    struct made *m = xcalloc(1, sizeof *m + (LIST_MADE + 1) * row_size);

    m->selected = m->rows + LIST_MADE * row_size;
    return m;
}

void
list_set_pages(struct list *l, const struct list_pages *pages, int n)
{
    assert(n >= 0 && pages->make && pages->id);
    if (!l->made)
        l->made = made_new(l->def->row_size);
    l->pages = *pages;
    l->rows = NULL;
    l->n = n;
    list_make_anew(l);
    list_note_filled(l);
    list_rebuild(l);
}

void
list_set_filter(struct list *l, bool (*keep)(void *ctx, const void *row), void *ctx)
{
    l->keep = keep;
    l->keep_ctx = ctx;
    list_rebuild(l);
}

/* --- the cursor ------------------------------------------------------------------------------- */

int
list_index(const struct list *l)
{
    return l->count ? l->index : -1;
}

const void *
list_selected(const struct list *l)
{
    const void *row = list_row(l, l->index);

    if (!row || !l->pages.make)
        return row;
    return memcpy(l->made->selected, row, l->def->row_size);
}

const char *
list_selected_id(const struct list *l)
{
    return l->count ? list_id(l, l->index) : "";
}

bool
list_select(struct list *l, const char *id)
{
    int i = find_row(l, id);

    if (i >= 0)
        put_cursor(l, i);
    return i >= 0;
}

void
list_move(struct list *l, int delta)
{
    int64_t to = (int64_t)l->index + delta;

    put_cursor(l, to < 0 ? 0 : to > l->count ? l->count : (int)to);
}

/* Moves cursor and window together. */
static void
list_shift(struct list *l, int rows)
{
    l->top = clamp_int(l->top + rows, 0, l->count - l->page_h);
    list_move(l, rows);
}

void
list_page(struct list *l, int pages)
{
    list_shift(l, pages * (l->page_h > 1 ? l->page_h - 1 : 1));
}

void
list_half_page(struct list *l, int halves)
{
    list_shift(l, halves * (l->page_h > 3 ? l->page_h / 2 : 1));
}

void
list_home(struct list *l)
{
    put_cursor(l, 0);
}

void
list_end(struct list *l)
{
    put_cursor(l, l->count - 1);
}

void
list_scroll(struct list *l, int h)
{
    if (h < 1)
        h = 1;
    if (l->index < l->top)
        l->top = l->index;
    if (l->index >= l->top + h)
        l->top = l->index - h + 1;
    l->top = clamp_int(l->top, 0, l->count - h);
}

/* --- paging by key ---------------------------------------------------------------------------- */

void
list_set_more(struct list *l, bool above, bool below)
{
    l->more_above = above;
    l->more_below = below;
}

int
list_wants(const struct list *l)
{
    if (l->more_below && l->index >= l->count - l->page_h)
        return 1;
    if (l->more_above && l->index < l->page_h)
        return -1;
    return 0;
}

/* --- marks --- */

/* The marks of a list: a sorted array of ids, independent of the present rows. */

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
