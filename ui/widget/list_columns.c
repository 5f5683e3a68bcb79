/* Order and columns of a list, and both as one line of text for the state file. */
#include <string.h>

#include "ui/widget/list_state.h"

enum { PINNED_KEEP = 1 };

const struct column *
list_sort_column(const struct list *l, bool *desc)
{
    *desc = l->desc;
    return l->sort >= 0 ? &l->def->columns[l->sort] : NULL;
}

/* Finds a column by the len bytes at name; -1 = none. */
static int
find_column(const struct list *l, const char *name, size_t len)
{
    for (int i = 0; i < l->ncolumns; i++) {
        const char *has = l->def->columns[i].name;
        if (strlen(has) == len && memcmp(has, name, len) == 0)
            return i;
    }
    return -1;
}

static bool
sort_by(struct list *l, int column, bool desc)
{
    if (column < 0 || !column_sortable(&l->def->columns[column]))
        return false;
    l->sort = column;
    l->desc = desc;
    list_rebuild(l);
    return true;
}

bool
list_sort_by(struct list *l, const char *name, bool desc)
{
    return sort_by(l, find_column(l, name, strlen(name)), desc);
}

static bool
is_off(const struct list *l, int i)
{
    return l->hidden[i] || l->lacks[i] || (l->hide_empty && l->n > 0 && !l->filled[i]);
}

void
list_sort_step(struct list *l, int step)
{
    int n = l->ncolumns, at = l->sort;

    if (at < 0 && step < 0)
        at = 0;
    for (int tries = 0; tries < n; tries++) {
        at = (at + (step < 0 ? n - 1 : 1)) % n;
        const struct column *c = &l->def->columns[at];
        if (!is_off(l, at) && column_sortable(c)) {
            sort_by(l, at, column_desc_first(c));
            return;
        }
    }
}

void
list_sort_invert(struct list *l)
{
    if (l->sort >= 0)
        sort_by(l, l->sort, !l->desc);
}

int
list_columns(const struct list *l)
{
    return l->ncolumns;
}

const struct column *
list_column(const struct list *l, int i)
{
    return &l->def->columns[i];
}

bool
list_column_on(const struct list *l, int i)
{
    return !l->hidden[i];
}

bool
list_column_no_room(const struct list *l, int i)
{
    return l->page_h > 0 && !is_off(l, i) && l->widths[i] <= 0;
}

void
list_column_pin(struct list *l, int i)
{
    list_column_show(l, i, true);
    if (i > 0 && i < l->ncolumns)
        l->own[i].keep = PINNED_KEEP;
}

void
list_hide_empty(struct list *l, bool on)
{
    l->hide_empty = on;
}

void
list_column_lacks(struct list *l, const char *name, bool lacks)
{
    int i = find_column(l, name, strlen(name));

    if (i > 0)
        l->lacks[i] = lacks;
}

void
list_column_width(struct list *l, int i, int min_w, int max_w)
{
    l->own[i].min_w = min_w;
    l->own[i].max_w = max_w;
}

/* Marks the columns in which this row is the first with a value. Returns how many columns have no
 * value yet. */
static int
note_row(struct list *l, const void *row)
{
    int left = 0;

    for (int i = 0; i < l->ncolumns; i++) {
        if (!l->filled[i])
            l->filled[i] = !column_is_null(&l->def->columns[i], row);
        left += !l->filled[i];
    }
    return left;
}

void
list_note_filled(struct list *l)
{
    int left = 1;

    for (int row = 0; l->hide_empty && row < l->n && left > 0; row++)
        left = note_row(l, list_row_at(l, row));
}

void
list_widths(const struct list *l, int w, int *widths)
{
    bool off[LIST_COLUMNS];

    for (int i = 0; i < l->ncolumns; i++)
        off[i] = is_off(l, i);
    column_layout(l->own, l->ncolumns, off, w, widths);
}

void
list_column_show(struct list *l, int i, bool on)
{
    if (i <= 0 || i >= l->ncolumns)
        return;
    l->hidden[i] = !on;
    if (!on)
        l->own[i].keep = l->def->columns[i].keep;
}

/* Whether the user shows this column, because the list hides it at first or the user pinned it. */
static bool
is_shown(const struct list *l, int i)
{
    int keep = l->def->columns[i].keep;

    return !l->hidden[i] && (keep >= 100 || l->own[i].keep != keep);
}

static void
save_columns(const struct list *l, const char *word, bool hidden, struct buf *out)
{
    bool first = true;

    for (int i = 1; i < l->ncolumns; i++) {
        const struct column *c = &l->def->columns[i];
        if (hidden ? !l->hidden[i] || c->keep >= 100 : !is_shown(l, i))
            continue;
        buf_printf(out, "%s%s", first ? word : ",", c->name);
        first = false;
    }
}

void
list_save(const struct list *l, struct buf *out)
{
    buf_str(out, "");
    if (l->sort >= 0)
        buf_printf(out, "sort=%s%s", l->def->columns[l->sort].name, l->desc ? " desc" : "");
    save_columns(l, " hide=", true, out);
    save_columns(l, " show=", false, out);
}

static void
load_columns(struct list *l, const char *names, size_t len, bool on)
{
    const char *end = names + len;

    while (names < end) {
        const char *comma = memchr(names, ',', (size_t)(end - names));
        size_t n = (size_t)((comma ? comma : end) - names);
        int i = find_column(l, names, n);
        if (on)
            list_column_pin(l, i);
        else
            list_column_show(l, i, false);
        names += n + 1;
    }
}

void
list_load(struct list *l, const char *line)
{
    int sort = -1;
    bool desc = false;

    for (const char *s = line + strspn(line, " "); *s; s += strspn(s, " ")) {
        size_t len = strcspn(s, " ");
        if (len > 5 && !memcmp(s, "sort=", 5))
            sort = find_column(l, s + 5, len - 5);
        else if (len == 4 && !memcmp(s, "desc", 4))
            desc = true;
        else if (len > 5 && (!memcmp(s, "hide=", 5) || !memcmp(s, "show=", 5)))
            load_columns(l, s + 5, len - 5, s[0] == 's');
        s += len;
    }
    sort_by(l, sort, desc);
}
