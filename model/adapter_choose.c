/*
 * Which queue system a database has: every candidate is asked by its DETECT, a statement on the
 * catalogs that answers a row for each schema where it is installed.
 */
#include <stdlib.h>
#include <string.h>

#include "model/adapter_parts.h"

static const char *
name_of(const struct adapter_file *f)
{
    return sections_header(&f->text, "adapter");
}

static bool
is_native(const char *name)
{
    return !strcmp(name, "native");
}

int
adapter_detects(struct adapter *a, bool again, struct db_stmt *out)
{
    int n = 0;

    for (int i = 0; i < a->nfiles; i++) {
        a->files[i]->is_out = a->files[i]->is_out && !again;
        if (!a->files[i]->is_out && n < ADAPTERS_MAX)
            out[n++] = (struct db_stmt){.sql = a->files[i]->detect};
    }
    return n;
}

bool
adapter_spoil(struct adapter *a, int i, const struct err *why)
{
    int left = 0;

    for (int k = 0; k < a->nfiles; k++) {
        struct adapter_file *f = a->files[k];
        if (f->is_out || i-- != 0) {
            left += !f->is_out;
            continue;
        }
        char *text = xasprintf("adapter %s can't look for its tables: %s", name_of(f), why->text);
        adapter_complain(a, text);
        free(text);
        f->is_out = true;
    }
    return left > 0;
}

/* --- what was found -------------------------------------------------------------------------- */

static void
add_found(struct adapter *a, const struct adapter_file *f, const char *schema)
{
    size_t n = (size_t)a->nfound + 1;

    a->found = xreallocarray(a->found, n, sizeof *a->found);
    a->schemas = xreallocarray(a->schemas, n, sizeof(char *));
    a->schemas[a->nfound] = xstrdup(schema);
    a->found[a->nfound] = (struct adapter_found){name_of(f), sections_header(&f->text, "title"),
                                                 a->schemas[a->nfound], false};
    a->nfound++;
}

/* The default schema of a system before its others. */
static void
add_answer(struct adapter *a, const struct adapter_file *f, const struct result *r)
{
    const char *usual = sections_header(&f->text, "schema");

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < result_rows(r); i++)
            if ((strcmp(result_text(r, i, 0), usual) == 0) == (pass == 0))
                add_found(a, f, result_text(r, i, 0));
}

static void
take_answers(struct adapter *a, struct result *const *detected)
{
    int n = 0;

    for (int i = 0; i < a->nfound; i++)
        free(a->schemas[i]);
    a->nfound = 0;
    for (int i = 0; i < a->nfiles; i++)
        if (!a->files[i]->is_out && n < ADAPTERS_MAX && detected[n++])
            add_answer(a, a->files[i], detected[n - 1]);
}

const struct adapter_found *
adapter_found(const struct adapter *a, int i)
{
    return i >= 0 && i < a->nfound ? &a->found[i] : NULL;
}

/* --- the choice ------------------------------------------------------------------------------ */

static void
list_found(const struct adapter *a, struct buf *out)
{
    for (int i = 0; i < a->nfound && i < 10; i++)
        if (a->nfiles > 1)
            buf_printf(out, "%s%s in schema %s", i ? ", " : "", a->found[i].adapter,
                       a->found[i].schema);
        else
            buf_printf(out, "%s%s", i ? ", " : "", a->found[i].schema);
}

static bool
fail_to_find(const struct adapter *a, const char *wish, const char *database, struct err *e)
{
    struct buf others = {0};

    buf_str(&others, "");
    if (a->nfiles > 1)
        buf_printf(&others, "; %d other systems were looked for", a->nfiles - 1);
    if (!is_native(name_of(a->files[0])))
        fail(e, ERR_DATA, "no tables of %s in %s%s%sdatabase %s",
             sections_header(&a->files[0]->text, "title"), wish ? "schema " : "", wish ? wish : "",
             wish ? " of " : "", database);
    else if (wish)
        fail(e, ERR_DATA, "no queue in schema %s of database %s: queuetop install --schema %s%s",
             wish, database, wish, others.data);
    else
        fail(e, ERR_DATA, "no queue in database %s yet: queuetop install%s", database, others.data);
    buf_free(&others);
    return false;
}

static bool
fail_to_choose(const struct adapter *a, const char *want, const char *database, struct err *e)
{
    struct buf found = {0};

    list_found(a, &found);
    fail(e, ERR_DATA, "no queue in schema %s of database %s; --schema may be: %s", want, database,
         found.data);
    buf_free(&found);
    return false;
}

/* The place of the best in found; -1 = none. A system that was asked for alone needs a clear one.
 */
static int
best(const struct adapter *a, const char *wish)
{
    const char *usual = sections_header(&a->files[0]->text, "schema");

    for (int i = 0; i < a->nfound; i++)
        if (!wish || !strcmp(a->found[i].schema, wish))
            return !wish && a->nfiles == 1 && a->nfound > 1 && strcmp(a->schemas[i], usual) != 0
                       ? -1
                       : i;
    return -1;
}

bool
adapter_choose(struct adapter *a, struct result *const *detected, const char *wish,
               const char *database, struct err *e)
{
    take_answers(a, detected);
    int at = best(a, wish);
    if (at < 0 && a->nfound == 0)
        return fail_to_find(a, wish, database, e);
    if (at < 0)
        return fail_to_choose(a, wish ? wish : sections_header(&a->files[0]->text, "schema"),
                              database, e);
    a->found[at].chosen = true;
    return adapter_become_named(a, a->found[at].adapter) && adapter_use(a, a->schemas[at], e);
}

bool
adapter_is_clear(const struct adapter *a, const char *wish, const char *database, struct err *e)
{
    struct buf found = {0};
    int fit = 0;

    for (int i = 0; i < a->nfound; i++)
        fit += !wish || !strcmp(a->found[i].schema, wish);
    bool usual = (a->nfiles == 1 || is_native(adapter_name(a))) &&
                 (wish || !strcmp(adapter_schema(a), adapter_default_schema(a)));
    if (fit <= 1 || usual)
        return true;
    list_found(a, &found);
    fail(e, ERR_USAGE, "more than one queue in database %s (%s): say --adapter NAME or --schema S",
         database, found.data);
    buf_free(&found);
    return false;
}
