/*
 * The columns of a list and its order, by the words of the user. The name of a column is its name
 * in JSON. A column that only a table has is named by its title in small letters.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/alias.h"
#include "ui/cli/cli_table.h"

static const char *
key_of(const struct column *c, char key[static OUT_NAME])
{
    const char *name = c->json ? c->json : c->name;
    const char *title = c->table ? c->table : c->title;

    snprintf(key, OUT_NAME, "%s", name ? name : title ? title : "");
    for (char *s = key; *s && !name; s++)
        *s = *s == ' ' ? '_' : (char)tolower((unsigned char)*s);
    return key;
}

static bool
is_for_us(const struct column *c)
{
    return c->only != ON_SCREEN;
}

static unsigned
place_of_form(const struct cli_table *o)
{
    return o->form == OUT_TABLE ? IN_TABLE : IN_DATA;
}

/* Finds a column by its name; if two columns have the same name, the one that this form shows. */
static const struct column *
find_column(const struct cli_table *o, const struct column *columns, const char *name)
{
    const struct column *found = NULL;
    char key[OUT_NAME];

    for (const struct column *c = columns; c->name || c->title; c++) {
        bool ours = !c->only || (c->only & place_of_form(o));
        if (is_for_us(c) && !strcasecmp(key_of(c, key), name) && (!found || ours))
            found = c;
    }
    return found;
}

static bool
no_such_column(const struct column *columns, const char *name, struct err *e)
{
    enum { MOST = 40 };
    char keys[MOST][OUT_NAME], all[300] = "";
    const char *names[MOST + 1];
    int n = 0;

    for (const struct column *c = columns; (c->name || c->title) && n < MOST; c++) {
        bool seen = !is_for_us(c);
        key_of(c, keys[n]);
        for (int i = 0; i < n; i++)
            seen |= !strcmp(keys[i], keys[n]);
        if (seen)
            continue;
        size_t len = strlen(all);
        snprintf(all + len, sizeof all - len, "%s%s", n ? ", " : "", keys[n]);
        names[n] = keys[n];
        n++;
    }
    names[n] = NULL;
    const char *meant = alias_closest(name, names);
    if (meant)
        return fail(e, ERR_USAGE, "there is no column '%.40s', did you mean %s? There are %s", name,
                    meant, all);
    return fail(e, ERR_USAGE, "there is no column '%.40s'; there are %s", name, all);
}

/* Makes a column that every form shows. */
static struct column
make_column(const struct column *from, char name[static OUT_NAME], char title[static OUT_NAME])
{
    struct column c = *from;

    key_of(from, name);
    snprintf(title, OUT_NAME, "%s", from->table ? from->table : from->title ? from->title : name);
    for (char *s = title; *s; s++)
        *s = (char)toupper((unsigned char)*s);
    c.kind = column_plain_kind(from);
    c.plain = K_SAME;
    c.special = NULL;
    c.only = 0;
    c.name = c.json = name;
    c.title = c.table = title;
    return c;
}

static bool
choose_columns(struct cli_table *o, const struct column *columns, const struct cli_list *names,
               struct err *e)
{
    if (names->n > OUT_COLUMNS)
        return fail(e, ERR_USAGE, "--columns takes at most %d names", OUT_COLUMNS);
    o->n = 0;
    for (int i = 0; i < names->n; i++) {
        const struct column *c = find_column(o, columns, names->items[i]);
        if (!c)
            return no_such_column(columns, names->items[i], e);
        o->made[i] = make_column(c, o->names[i][0], o->names[i][1]);
        o->columns[o->n++] = &o->made[i];
    }
    return true;
}

static bool
choose_order(struct cli_table *o, const struct column *columns, const char *sort, struct err *e)
{
    size_t len = strcspn(sort, ":");
    const char *way = sort + len;
    char name[OUT_NAME];

    if (*way && strcasecmp(way, ":desc") != 0 && strcasecmp(way, ":asc") != 0)
        return fail(e, ERR_USAGE, "--sort takes COLUMN, COLUMN:asc or COLUMN:desc, not '%.60s'",
                    sort);
    snprintf(name, sizeof name, "%.*s", (int)len, sort);
    const struct column *c = find_column(o, columns, name);
    if (!c)
        return no_such_column(columns, name, e);
    o->sort = make_column(c, o->names[OUT_COLUMNS][0], o->names[OUT_COLUMNS][1]);
    o->is_sorted = true;
    o->desc = !strcasecmp(way, ":desc");
    return true;
}

bool
cli_table_choose(struct cli_table *o, const struct column *columns, const struct cli_list *names,
                 const char *sort, struct err *e)
{
    return (names->n == 0 || choose_columns(o, columns, names, e)) &&
           (!sort || choose_order(o, columns, sort, e));
}

struct keyed_row {
    const void *row;
    struct column_value value;
    int at; /* keeps the order of equal rows */
};

static int
compare_rows(const void *a, const void *b, void *ctx)
{
    const struct keyed_row *x = a, *y = b;
    const struct cli_table *o = ctx;
    int order = column_order(&o->sort, x->value, y->value, o->desc);

    return order ? order : (x->at > y->at) - (x->at < y->at);
}

void
cli_table_sort(struct cli_table *o, const void **rows, int n)
{
    if (!o->is_sorted || n < 2)
        return;
    struct keyed_row *keyed = xcalloc((size_t)n, sizeof *keyed);
    for (int i = 0; i < n; i++)
        keyed[i] = (struct keyed_row){rows[i], column_value(&o->sort, rows[i]), i};
    qsort_r(keyed, (size_t)n, sizeof *keyed, compare_rows, o);
    for (int i = 0; i < n; i++)
        rows[i] = keyed[i].row;
    free(keyed);
}
