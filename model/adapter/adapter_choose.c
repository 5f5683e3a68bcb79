/*
 * Which queue system a database has: every candidate is asked by its DETECT, a statement on the
 * catalogs that answers a row for each schema where it is installed.
 */
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter_parts.h"
#include "model/base/console_sql.h"

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

/* The next table of the header "tables", from *at on, that DETECT names, too: without it the system
 * is not there. "" = no more. */
static const char *
next_mark(const struct adapter_file *f, const char **at, int *len)
{
    for (const char *name = *at;; name += *len) {
        name += strspn(name, " \t");
        *len = (int)strcspn(name, " \t");
        *at = name + *len;
        char *quoted = xasprintf("'%.*s'", *len, name);
        bool is_mark = *len == 0 ||
                       (strcspn(quoted, "\"\\{}*") == strlen(quoted) && strstr(f->detect, quoted));
        free(quoted);
        if (is_mark)
            return name;
    }
}

static const char *
tables_of(const struct adapter_file *f)
{
    const char *tables = sections_header(&f->text, "tables");

    return tables ? tables : "";
}

struct db_stmt
adapter_marks(struct adapter *a, struct adapter_marks *m)
{
    struct buf numbers = {0}, tables = {0};

    for (int i = 0; i < a->nfiles; i++)
        a->files[i]->is_out = false;
    *m = (struct adapter_marks){.numbers = NULL};
    if (a->nfiles == 1)
        return (struct db_stmt){.sql = NULL};
    buf_str(&numbers, "{");
    buf_str(&tables, "{");
    for (int i = 0; i < a->nfiles; i++) {
        const char *at = tables_of(a->files[i]);
        int len;
        for (const char *name; *(name = next_mark(a->files[i], &at, &len));) {
            buf_printf(&numbers, "%s%d", numbers.len > 1 ? "," : "", i);
            buf_printf(&tables, "%s\"%s%.*s\"", tables.len > 1 ? "," : "",
                       sections_header(&a->files[i]->text, "prefix") ? "%" : "", len, name);
        }
    }
    buf_str(&numbers, "}");
    buf_str(&tables, "}");
    m->numbers = numbers.data;
    m->tables = tables.data;
    m->params[0] = (struct db_param){.value = m->numbers};
    m->params[1] = (struct db_param){.value = m->tables};
    return (struct db_stmt){.sql = console_sql("marks"), .nparams = 2, .params = m->params};
}

void
adapter_marks_done(struct adapter_marks *m)
{
    free(m->numbers);
    free(m->tables);
}

void
adapter_marked(struct adapter *a, const struct result *r)
{
    for (int i = 0; i < a->nfiles; i++) {
        const char *at = tables_of(a->files[i]);
        int len;
        a->files[i]->is_out = *next_mark(a->files[i], &at, &len) != 0;
    }
    for (int i = 0; i < result_rows(r); i++) {
        int64_t n = result_int(r, i, 0, -1);
        if (n >= 0 && n < a->nfiles)
            a->files[n]->is_out = false;
    }
}

int
adapter_detects(struct adapter *a, struct db_stmt *out)
{
    int n = 0;

    for (int i = 0; i < a->nfiles; i++)
        if (!a->files[i]->is_out && n < ADAPTERS_MAX)
            out[n++] = (struct db_stmt){.sql = a->files[i]->detect};
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
complain_of_many(struct adapter *a)
{
    adapter_complain(a, "more queue systems are here than are looked at: --schema opens one");
}

static void
add_found(struct adapter *a, const struct adapter_file *f, const char *schema)
{
    if (a->nfound == ADAPTERS_MAX) {
        complain_of_many(a);
        return;
    }
    a->places[a->nfound] = adapter_place(f, schema);
    struct adapter_place *p = &a->places[a->nfound];
    a->found[a->nfound++] = (struct adapter_found){name_of(f), sections_header(&f->text, "title"),
                                                   p->name, false, &p->owners};
}

static bool
is_found(const struct adapter *a, const struct adapter_file *f, const char *schema)
{
    for (int i = 0; i < a->nfound; i++)
        if (a->places[i].file == f && !strcmp(a->places[i].name, schema))
            return true;
    return false;
}

/* Everybody who may create tables can make many that look like a queue system, and the owners are
 * known only later. So if there is not room for all, each adapter gets the same share of it. If one
 * adapter finds more than its share, each schema gets the same number. Then nobody can push out the
 * systems of another adapter or schema. */
static int
share_of(struct result *const *detected, int n)
{
    int share = ADAPTERS_MAX + 1, sum;

    do {
        sum = 0;
        share--;
        for (int i = 0; i < n; i++) {
            int rows = detected[i] ? result_rows(detected[i]) : 0;
            sum += rows < share ? rows : share;
        }
    } while (sum > ADAPTERS_MAX);
    return share;
}

static size_t
schema_length(const struct adapter_file *f, const char *name)
{
    const char *slash = sections_header(&f->text, "prefix") ? strrchr(name, '/') : NULL;

    return slash ? (size_t)(slash - name) : strlen(name);
}

static bool
is_same_schema(const struct adapter_file *f, const char *one, const char *other)
{
    size_t len = schema_length(f, one);

    return len == schema_length(f, other) && !memcmp(one, other, len);
}

/* Whether row i is among the first `each` of its schema. The rows are sorted. */
static bool
is_within(const struct adapter_file *f, const struct result *r, int i, int each)
{
    return i < each || !is_same_schema(f, result_text(r, i - each, 0), result_text(r, i, 0));
}

/* How many rows of each schema are taken, if `share` rows are. */
static int
share_of_schema(const struct adapter_file *f, const struct result *r, int share)
{
    int each = share + 1, sum;

    if (result_rows(r) <= share)
        return share;
    do {
        sum = 0;
        each--;
        for (int i = 0; i < result_rows(r) && sum <= share; i++)
            sum += is_within(f, r, i, each);
    } while (sum > share && each > 1);
    return each;
}

/* Orders the default schema of a system before its other schemas. */
static void
add_answer(struct adapter *a, const struct adapter_file *f, const struct result *r, int share)
{
    const char *usual = sections_header(&f->text, "schema");
    int each = share_of_schema(f, r, share), n = 0;

    for (int i = 0; i < a->nfound; i++)
        n += a->places[i].file == f;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < result_rows(r); i++) {
            const char *name = result_text(r, i, 0);
            if ((strcmp(name, usual) == 0) != (pass == 0) || is_found(a, f, name))
                continue;
            if (n < share && is_within(f, r, i, each)) {
                add_found(a, f, name);
                n++;
            } else {
                complain_of_many(a);
            }
        }
}

/* Adds the schema that the user named, before all others, so that the limit does not cut it off. */
static void
add_wanted(struct adapter *a, const struct adapter_file *f, const struct result *r,
           const char *wanted)
{
    for (int i = 0; wanted && i < result_rows(r); i++)
        if (!strcmp(result_text(r, i, 0), wanted))
            add_found(a, f, wanted);
}

int
adapter_take(struct adapter *a, struct result *const *detected, const char *wanted)
{
    int n = 0;

    if (!a->places) {
        a->places = xcalloc(ADAPTERS_MAX, sizeof *a->places);
        a->found = xcalloc(ADAPTERS_MAX, sizeof *a->found);
    }
    for (int i = 0; i < a->nfound; i++)
        adapter_place_done(&a->places[i]);
    a->nfound = 0;
    for (int i = 0; i < a->nfiles; i++)
        n += !a->files[i]->is_out && n < ADAPTERS_MAX;
    int share = share_of(detected, n);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0, k = 0; i < a->nfiles; i++) {
            if (a->files[i]->is_out || k == n || !detected[k++])
                continue;
            if (pass == 0)
                add_wanted(a, a->files[i], detected[k - 1], wanted);
            else
                add_answer(a, a->files[i], detected[k - 1], share);
        }
    return a->nfound;
}

const struct adapter_found *
adapter_found(const struct adapter *a, int i)
{
    return i >= 0 && i < a->nfound ? &a->found[i] : NULL;
}

/* --- the choice ------------------------------------------------------------------------------ */

static bool
may_open(const struct adapter *a, int i)
{
    return a->places[i].owners.n == 0;
}

static void
list_found(const struct adapter *a, bool strangers, struct buf *out)
{
    for (int i = 0; i < a->nfound && i < 10; i++) {
        if (!strangers && !may_open(a, i))
            continue;
        if (a->nfiles > 1)
            buf_printf(out, "%s%s in schema %s", out->len ? ", " : "", a->found[i].adapter,
                       a->found[i].schema);
        else
            buf_printf(out, "%s%s", out->len ? ", " : "", a->found[i].schema);
    }
}

static bool
fail_to_find(const struct adapter *a, const char *wanted, const char *database, struct err *e)
{
    struct buf others = {0};

    buf_str(&others, "");
    if (a->nfiles > 1)
        buf_printf(&others, "; %d other systems were looked for", a->nfiles - 1);
    if (!is_native(name_of(a->files[0])))
        fail(e, ERR_DATA, "no tables of %s in %s%s%sdatabase %s",
             sections_header(&a->files[0]->text, "title"), wanted ? "schema " : "",
             wanted ? wanted : "", wanted ? " of " : "", database);
    else if (wanted)
        fail(e, ERR_DATA, "no queue in schema %s of database %s: queuetop install --schema %s%s",
             wanted, database, wanted, others.data);
    else
        fail(e, ERR_DATA, "no queue in database %s yet: queuetop install%s", database, others.data);
    buf_free(&others);
    return false;
}

bool
adapter_may_be_unknown(const struct adapter *a, const char *wanted)
{
    return a->nfiles > 1 && a->nfound == 0 && !wanted;
}

void
adapter_name_likely(const char *names, const char *database, struct err *e)
{
    if (*names)
        fail(
            e, ERR_SQL,
            "no queue system that is known in database %s, but tables that look like one: %s; "
            "queuetop-adapter(5) says how to open them, queuetop install makes a queue beside them",
            database, names);
}

static bool
fail_to_choose(const struct adapter *a, const char *want, const char *database, struct err *e)
{
    struct buf found = {0};

    list_found(a, true, &found);
    fail(e, ERR_DATA, "no queue in schema %s of database %s; --schema may be: %s", want, database,
         found.data);
    buf_free(&found);
    return false;
}

static bool
fits(const struct adapter *a, int i, const char *wanted)
{
    return a->places[i].owners.is_there && (!wanted || !strcmp(a->found[i].schema, wanted));
}

/* The index of the best system in found, among the systems of strangers or among the others; -1 =
 * none. If the user named the adapter but no schema, there must be only one system, or one in the
 * default schema. */
static int
best(const struct adapter *a, const char *wanted, bool strangers)
{
    const char *usual = sections_header(&a->files[0]->text, "schema");
    int first = -1, n = 0;

    for (int i = 0; i < a->nfound; i++)
        if (fits(a, i, wanted) && may_open(a, i) == !strangers) {
            first = first < 0 ? i : first;
            n++;
        }
    if (first < 0 || wanted || a->nfiles > 1 || n == 1)
        return first;
    return strcmp(a->found[first].schema, usual) == 0 || strangers ? first : -1;
}

static bool
judge_all(struct adapter *a, struct result **owners, const struct adapter_wanted *wanted,
          struct err *e)
{
    bool ok = true;

    for (int i = 0; i < a->nfound; i++) {
        struct result *r = owners[i];
        owners[i] = NULL;
        owners_done(&a->places[i].owners);
        if (ok)
            ok = owners_judge(r, wanted->trust, wanted->server, &a->places[i].owners, e);
        else
            result_free(r);
    }
    return ok;
}

bool
adapter_choose(struct adapter *a, struct result **owners, const struct adapter_wanted *wanted,
               struct err *e)
{
    if (!judge_all(a, owners, wanted, e))
        return false;
    int at = best(a, wanted->schema, false), closed = best(a, wanted->schema, true);
    if (at < 0 && closed >= 0) {
        owners_fail(&a->places[closed].owners, a->found[closed].adapter, a->found[closed].schema,
                    e);
        a->found[closed].chosen = true;
        return false;
    }
    if (at < 0 && a->nfound == 0)
        return fail_to_find(a, wanted->schema, wanted->database, e);
    if (at < 0)
        return fail_to_choose(
            a, wanted->schema ? wanted->schema : sections_header(&a->files[0]->text, "schema"),
            wanted->database, e);
    a->found[at].chosen = true;
    if (!adapter_become_named(a, a->found[at].adapter) || !adapter_use(a, a->found[at].schema, e))
        return false;
    adapter_guard(a, &a->places[at].owners);
    return true;
}

bool
adapter_is_clear(const struct adapter *a, const char *wanted, const char *database, struct err *e)
{
    struct buf found = {0};
    int fit = 0;

    for (int i = 0; i < a->nfound; i++)
        fit += fits(a, i, wanted) && may_open(a, i);
    bool usual = (a->nfiles == 1 || is_native(adapter_name(a))) &&
                 (wanted || !strcmp(adapter_schema(a), adapter_default_schema(a)));
    if (fit <= 1 || usual)
        return true;
    list_found(a, false, &found);
    fail(e, ERR_USAGE, "more than one queue in database %s (%s): say --adapter NAME or --schema S",
         database, found.data);
    buf_free(&found);
    return false;
}
