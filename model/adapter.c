/*
 * Adapters: the annotated file is read by sections.c, here its sections get their meaning: which
 * there are, what they take, what they answer. Checking happens once, when the file is read, so
 * that binding a statement can't fail.
 */
#include "model/adapter.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/health.h"
#include "model/mem.h"
#include "model/sections.h"

/* name, record, acts, required */
const struct section_kind section_kinds[SEC_COUNT] = {
    {"detect",             NULL,                   false, true },
    {"version",            NULL,                   false, false},
    {"role",               &record_role,           false, false},
    {"queues",             &record_queue,          false, true },
    {"counts",             &record_count,          false, true },
    {"rates",              &record_rate,           false, false},
    {"times",              &record_time,           false, false},
    {"minutes",            &record_minute,         false, false},
    {"jobs",               &record_job,            false, true },
    {"jobs_back",          NULL,                   false, false},
    {"job",                &record_detail,         false, true },
    {"attempts",           &record_attempt,        false, false},
    {"nodes",              &record_node,           false, false},
    {"leases",             &record_lease,          false, false},
    {"groups",             &record_group,          false, false},
    {"groups_by",          &record_group,          false, false},
    {"fail_times",         &record_fail_time,      false, false},
    {"audit",              &record_audit,          false, false},
    {"schedules",          &record_schedule,       false, false},
    {"cron_runs",          &record_run,            false, false},
    {"cron_next",          &record_run,            false, false},
    {"queue_settings",     &record_setting,        false, false},
    {"health_server",      &record_health_server,  false, false},
    {"health_sessions",    &record_health_session, false, false},
    {"health_vacuums",     &record_health_vacuum,  false, false},
    {"health_tables",      &record_health_table,   false, false},
    {"requeue",            &record_change,         true,  false},
    {"requeue_where",      &record_change,         true,  false},
    {"release_where",      &record_change,         true,  false},
    {"extend",             &record_change,         true,  false},
    {"extend_where",       &record_change,         true,  false},
    {"purge",              &record_change,         true,  false},
    {"pause",              &record_change,         true,  false},
    {"resume",             &record_change,         true,  false},
    {"cancel",             &record_change,         true,  false},
    {"cancel_where",       &record_change,         true,  false},
    {"discard",            &record_change,         true,  false},
    {"discard_where",      &record_change,         true,  false},
    {"delete",             &record_change,         true,  false},
    {"delete_where",       &record_change,         true,  false},
    {"priority",           &record_change,         true,  false},
    {"priority_where",     &record_change,         true,  false},
    {"reschedule",         &record_change,         true,  false},
    {"reschedule_where",   &record_change,         true,  false},
    {"undo",               &record_change,         true,  false},
    {"drain",              &record_change,         true,  false},
    {"queue_set",          &record_change,         true,  false},
    {"cron_set",           &record_change,         true,  false},
    {"cron_pause",         &record_change,         true,  false},
    {"cron_resume",        &record_change,         true,  false},
    {"cron_run",           &record_change,         true,  false},
    {"cron_remove",        &record_change,         true,  false},
    {"backend_signal",     &record_change,         true,  false},
    {"requeue_preview",    &record_effect,         false, false},
    {"release_preview",    &record_effect,         false, false},
    {"extend_preview",     &record_effect,         false, false},
    {"purge_preview",      &record_effect,         false, false},
    {"cancel_preview",     &record_effect,         false, false},
    {"discard_preview",    &record_effect,         false, false},
    {"delete_preview",     &record_effect,         false, false},
    {"priority_preview",   &record_effect,         false, false},
    {"reschedule_preview", &record_effect,         false, false},
    {"undo_preview",       &record_effect,         false, false},
    {"pause_preview",      &record_effect,         false, false},
    {"cron_set_preview",   &record_effect,         false, false},
    {"queue_set_preview",  &record_effect,         false, false},
};

/* What the console asks any database; a section of the same name in the file comes before it. */
enum { CONSOLE_SECTIONS = 5 };
static const struct {
    enum section_id id;
    const char *file, *params;
} console_sections[CONSOLE_SECTIONS] = {
    {SEC_HEALTH_SERVER,   "health_server",   ""              },
    {SEC_HEALTH_SESSIONS, "health_sessions", ""              },
    {SEC_HEALTH_VACUUMS,  "health_vacuums",  ""              },
    {SEC_HEALTH_TABLES,   "health_tables",   ""              },
    {SEC_BACKEND_SIGNAL,  "health_signal",   "settings batch"},
};

struct bound {
    const struct section *section; /* NULL = the file has none */
    enum param params[ADAPTER_PARAMS];
    int nparams;
    char *sql; /* for the schema in use */
};

struct adapter {
    struct sections file;
    struct bound bound[SEC_COUNT];
    struct section console[CONSOLE_SECTIONS];
    struct note params[CONSOLE_SECTIONS];
    char *schema;
};

static int
section_index(const char *name)
{
    for (int i = 0; i < SEC_COUNT; i++)
        if (!strcmp(section_kinds[i].name, name))
            return i;
    return -1;
}

/* The highest $n in the statement. */
static int
highest_param(const char *sql)
{
    long highest = 0;

    for (const char *s = sql; (s = strchr(s, '$')); s++) {
        char *end;
        long n = isdigit((unsigned char)s[1]) ? strtol(s + 1, &end, 10) : 0;
        if (n > highest)
            highest = n;
    }
    return highest > ADAPTER_PARAMS ? ADAPTER_PARAMS + 1 : (int)highest;
}

static bool
read_params(const struct section *s, const char *file, struct bound *b, struct err *e)
{
    const char *list = section_note(s, "params");

    for (const char *at = list ? list : ""; *at;) {
        int len = (int)strcspn(at, " \t");
        if (len > 0 && b->nparams == ADAPTER_PARAMS)
            return fail(e, ERR_DATA, "%s:%d: %s: too many parameters", file, s->line, s->name);
        if (len > 0 && !param_find(at, len, &b->params[b->nparams++]))
            return fail(e, ERR_DATA, "%s:%d: %s: no parameter is called \"%.*s\"", file, s->line,
                        s->name, len, at);
        at += len + (at[len] != 0);
    }
    int highest = highest_param(s->sql);
    if (highest != b->nparams)
        return fail(e, ERR_DATA, "%s:%d: %s: the statement takes $1 to $%d, params: names %d", file,
                    s->line, s->name, highest, b->nparams);
    return true;
}

static bool
read_section(struct adapter *a, const char *file, const struct section *s, struct err *e)
{
    int i = section_index(s->name);

    if (i < 0)
        return fail(e, ERR_DATA, "%s:%d: no section is called \"%s\"", file, s->line, s->name);
    if (a->bound[i].section)
        return fail(e, ERR_DATA, "%s:%d: %s stands twice", file, s->line, s->name);
    a->bound[i].section = s;
    return read_params(s, file, &a->bound[i], e);
}

static bool
add_console_sections(struct adapter *a, struct err *e)
{
    bool ok = true;

    for (int i = 0; ok && i < CONSOLE_SECTIONS; i++) {
        enum section_id id = console_sections[i].id;
        const char *file = console_sections[i].file;
        if (a->bound[id].section)
            continue;
        a->params[i] = (struct note){xstrdup("params"), xstrdup(console_sections[i].params), 1};
        a->console[i] = (struct section){xstrdup(section_kinds[id].name),
                                         xstrdup(console_sql(file)), 1, &a->params[i], 1};
        a->bound[id].section = &a->console[i];
        ok = read_params(&a->console[i], file, &a->bound[id], e);
    }
    return ok;
}

static bool
check_header(const struct adapter *a, const char *file, struct err *e)
{
    static const char *const wanted[] = {"adapter", "title", "format", "schema"};

    for (int i = 0; i < 4; i++)
        if (!sections_header(&a->file, wanted[i]))
            return fail(e, ERR_DATA, "%s: the header has no \"%s:\"", file, wanted[i]);
    if (strcmp(sections_header(&a->file, "format"), "2") != 0)
        return fail(e, ERR_DATA, "%s: format %s is not 2", file,
                    sections_header(&a->file, "format"));
    for (int i = 0; i < SEC_COUNT; i++)
        if (section_kinds[i].required && !a->bound[i].section)
            return fail(e, ERR_DATA, "%s: section %s is missing", file, section_kinds[i].name);
    return true;
}

/* The text of one section for a schema; NULL = the file has no such section. */
static bool
bind_section(const struct adapter *a, int i, const char *schema, char **sql, struct err *e)
{
    *sql = NULL;
    return !a->bound[i].section || sections_bind(a->bound[i].section, schema, sql, e);
}

struct adapter *
adapter_parse(const char *file_name, const char *text, struct err *e)
{
    struct adapter *a = xcalloc(1, sizeof *a);
    bool ok = sections_read(file_name, text, &a->file, e);

    for (int i = 0; ok && i < a->file.n; i++)
        ok = read_section(a, file_name, &a->file.list[i], e);
    ok = ok && check_header(a, file_name, e) && add_console_sections(a, e) &&
         bind_section(a, SEC_DETECT, adapter_default_schema(a), &a->bound[SEC_DETECT].sql, e);
    if (ok)
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
        free(a->bound[i].sql);
    sections_free(&a->file);
    for (int i = 0; i < CONSOLE_SECTIONS; i++) {
        free(a->console[i].name);
        free(a->console[i].sql);
        free(a->params[i].key);
        free(a->params[i].value);
    }
    free(a->schema);
    free(a);
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
        free(a->bound[i].sql);
        a->bound[i].sql = sql[i];
    }
    if (!ok)
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
    return sections_header(&a->file, "schema");
}

const char *
adapter_name(const struct adapter *a)
{
    return sections_header(&a->file, "adapter");
}

const char *
adapter_title(const struct adapter *a)
{
    return sections_header(&a->file, "title");
}

bool
adapter_has(const struct adapter *a, enum section_id s)
{
    return a->bound[s].section != NULL;
}

const char *
adapter_sql(const struct adapter *a, enum section_id s)
{
    return a->bound[s].sql ? a->bound[s].sql : "";
}

const char *
adapter_note(const struct adapter *a, enum section_id s, const char *key)
{
    return a->bound[s].section ? section_note(a->bound[s].section, key) : NULL;
}

bool
adapter_takes(const struct adapter *a, enum section_id s, enum param p)
{
    for (int i = 0; i < a->bound[s].nparams; i++)
        if (a->bound[s].params[i] == p)
            return true;
    return false;
}

struct db_stmt
adapter_bind(const struct adapter *a, enum section_id s, const struct params *p,
             struct db_param *storage)
{
    const struct bound *b = &a->bound[s];

    assert(b->sql);
    for (int i = 0; i < b->nparams; i++)
        storage[i] = (struct db_param){.value = p ? p->value[b->params[i]] : NULL};
    return (struct db_stmt){.sql = b->sql, .nparams = b->nparams, .params = storage};
}

char *
adapter_show(const struct adapter *a, enum section_id s, const struct params *p)
{
    const struct bound *b = &a->bound[s];
    struct buf out = {0};

    buf_str(&out, adapter_sql(a, s));
    for (int i = 0; i < b->nparams; i++) {
        const char *value = p ? p->value[b->params[i]] : NULL;
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
