/*
 * An adapter in use: a file that was read (adapter_read.c), bound to a schema.
 */
#include "model/adapter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/adapter_parts.h"
#include "model/mem.h"

struct adapter {
    struct adapter_file *file;
    char *sql[SEC_COUNT]; /* for the schema in use */
    char *schema;
    char *search_path; /* of the header, for the schema; NULL = none */
};

/* The text of one section for a schema; NULL = the file has no such section. */
static bool
bind_section(const struct adapter *a, int i, const char *schema, char **sql, struct err *e)
{
    const struct section *s = a->file->bound[i].section;

    *sql = NULL;
    return !s || sections_bind(s, schema, sql, e);
}

struct adapter *
adapter_parse(const char *file_name, const char *text, struct err *e)
{
    struct adapter_file *f = adapter_file_read(file_name, text, e);

    if (!f)
        return NULL;
    struct adapter *a = xcalloc(1, sizeof *a);
    a->file = f;
    if (bind_section(a, SEC_DETECT, adapter_default_schema(a), &a->sql[SEC_DETECT], e))
        return a;
    adapter_free(a);
    return NULL;
}

struct adapter *
adapter_load(const char *name, struct err *e)
{
    for (int i = 0; i < sql_adapters_n; i++)
        if (!strcmp(sql_adapters[i].name, name))
            return adapter_parse(name, sql_adapters[i].text, e);
    fail(e, ERR_USAGE, "no adapter is called \"%s\"", name);
    return NULL;
}

void
adapter_free(struct adapter *a)
{
    if (!a)
        return;
    for (int i = 0; i < SEC_COUNT; i++)
        free(a->sql[i]);
    adapter_file_free(a->file);
    free(a->schema);
    free(a->search_path);
    free(a);
}

static bool
bind_path(const struct adapter *a, const char *schema, char **path, struct err *e)
{
    char *text = xstrdup(adapter_header(a, "search-path") ? adapter_header(a, "search-path") : "");
    const struct section as_section = {.sql = text};
    bool ok = sections_bind(&as_section, schema, path, e);

    free(text);
    return ok;
}

bool
adapter_use(struct adapter *a, const char *schema, struct err *e)
{
    char *sql[SEC_COUNT];
    bool ok = true;
    int n = 0;

    for (; ok && n < SEC_COUNT; n++)
        ok = bind_section(a, n, schema, &sql[n], e);
    for (int i = 0; i < n; i++) {
        if (!ok) {
            free(sql[i]);
            continue;
        }
        free(a->sql[i]);
        a->sql[i] = sql[i];
    }
    if (!ok)
        return false;
    free(a->search_path);
    if (!bind_path(a, schema, &a->search_path, e))
        return false;
    char *copy = xstrdup(schema);
    free(a->schema);
    a->schema = copy;
    return true;
}

static bool
has_schema(const struct result *detected, const char *name)
{
    for (int i = 0; i < result_rows(detected); i++)
        if (!strcmp(result_text(detected, i, 0), name))
            return true;
    return false;
}

static bool
fail_to_choose(const struct result *detected, const char *want, const char *database, bool wished,
               struct err *e)
{
    struct buf found = {0};

    if (result_rows(detected) == 0 && wished)
        return fail(e, ERR_DATA,
                    "no queue in schema %s of database %s: queuetop install --schema %s", want,
                    database, want);
    if (result_rows(detected) == 0)
        return fail(e, ERR_DATA, "no queue in database %s yet: queuetop install", database);
    for (int i = 0; i < result_rows(detected) && i < 10; i++)
        buf_printf(&found, "%s%s", i ? ", " : "", result_text(detected, i, 0));
    fail(e, ERR_DATA, "no queue in schema %s of database %s; --schema may be: %s", want, database,
         found.data);
    buf_free(&found);
    return false;
}

bool
adapter_choose(struct adapter *a, const struct result *detected, const char *wish,
               const char *database, struct err *e)
{
    const char *want = wish ? wish : adapter_default_schema(a);

    if (!has_schema(detected, want)) {
        if (wish || result_rows(detected) != 1)
            return fail_to_choose(detected, want, database, wish != NULL, e);
        want = result_text(detected, 0, 0);
    }
    return (a->schema && !strcmp(a->schema, want)) || adapter_use(a, want, e);
}

const char *
adapter_schema(const struct adapter *a)
{
    return a->schema;
}

const char *
adapter_default_schema(const struct adapter *a)
{
    return sections_header(&a->file->text, "schema");
}

const char *
adapter_name(const struct adapter *a)
{
    return sections_header(&a->file->text, "adapter");
}

const char *
adapter_title(const struct adapter *a)
{
    return sections_header(&a->file->text, "title");
}

bool
adapter_has(const struct adapter *a, enum section_id s)
{
    return a->file->bound[s].section != NULL;
}

const char *
adapter_sql(const struct adapter *a, enum section_id s)
{
    return a->sql[s] ? a->sql[s] : "";
}

const char *
adapter_note(const struct adapter *a, enum section_id s, const char *key)
{
    return a->file->bound[s].section ? section_note(a->file->bound[s].section, key) : NULL;
}

const char *
adapter_header(const struct adapter *a, const char *key)
{
    return sections_header(&a->file->text, key);
}

const char *
adapter_header_next(const struct adapter *a, const char *key, int *at)
{
    const struct sections *text = &a->file->text;

    while (*at < text->nheader) {
        const struct note *n = &text->header[(*at)++];
        if (!strcmp(n->key, key))
            return n->value;
    }
    return NULL;
}

bool
adapter_takes(const struct adapter *a, enum section_id s, enum param p)
{
    for (int i = 0; i < a->file->bound[s].nparams; i++)
        if (a->file->bound[s].params[i] == p)
            return true;
    return false;
}

/* raw_states and tables come from the header. */
static const char *
value_of(const struct adapter *a, const struct params *p, enum param name)
{
    if (name == PARAM_TABLES)
        return a->file->tables;
    if (!p)
        return NULL;
    return name == PARAM_RAW_STATES ? adapter_raw_states(a->file, p->value[PARAM_STATES])
                                    : p->value[name];
}

struct db_stmt
adapter_bind(const struct adapter *a, enum section_id s, const struct params *p,
             struct db_param *storage)
{
    const struct bound *b = &a->file->bound[s];

    assert(a->sql[s]);
    for (int i = 0; i < b->nparams; i++)
        storage[i] = (struct db_param){.value = value_of(a, p, b->params[i])};
    return (struct db_stmt){.sql = a->sql[s], .nparams = b->nparams, .params = storage};
}

void
adapter_settings(const struct adapter *a, struct db_call *call)
{
    call->timezone = adapter_header(a, "timezone");
    call->search_path = a->search_path && *a->search_path ? a->search_path : NULL;
}

char *
adapter_show(const struct adapter *a, enum section_id s, const struct params *p)
{
    const struct bound *b = &a->file->bound[s];
    struct buf out = {0};

    buf_str(&out, adapter_sql(a, s));
    for (int i = 0; i < b->nparams; i++) {
        const char *value = value_of(a, p, b->params[i]);
        buf_printf(&out, "\n-- $%d %s = %s", i + 1, param_name(b->params[i]),
                   value ? value : "NULL");
    }
    return out.data;
}

const char *
console_sql(const char *name)
{
    for (int i = 0; i < sql_console_n; i++)
        if (!strcmp(sql_console[i].name, name))
            return sql_console[i].text;
    assert(false && "no such file in sql/console");
    return NULL;
}
