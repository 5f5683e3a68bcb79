/*
 * Reads one adapter file and checks everything in it: the header, notes and parameters of each
 * section, which sections must be there and which belong together. So binding a statement later
 * can't fail.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter_parts.h"
#include "model/adapter/health_rows.h"
#include "model/base/console_sql.h"

/* clang-format off */
/* name, record, acts, required */
const struct section_kind section_kinds[SEC_COUNT] = {
    [SEC_DETECT] = {"detect", NULL, false, true},
    [SEC_VERSION] = {"version", NULL, false, false},
    [SEC_ROLE] = {"role", &record_role, false, false},
    [SEC_QUEUES] = {"queues", &record_queue, false, true},
    [SEC_COUNTS] = {"counts", &record_count, false, true},
    [SEC_COUNTS_FINAL] = {"counts_final", &record_final, false, false},
    [SEC_RATES] = {"rates", &record_rate, false, false},
    [SEC_TIMES] = {"times", &record_time, false, false},
    [SEC_PACE] = {"pace", &record_pace, false, false},
    [SEC_MINUTES] = {"minutes", &record_minute, false, false},
    [SEC_STEPS] = {"steps", &record_step, false, false},
    [SEC_LIFE] = {"life", &record_life, false, false},
    [SEC_JOBS] = {"jobs", &record_job, false, true},
    [SEC_JOBS_BACK] = {"jobs_back", NULL, false, false},
    [SEC_JOB] = {"job", &record_detail, false, true},
    [SEC_ATTEMPTS] = {"attempts", &record_attempt, false, false},
    [SEC_NODES] = {"nodes", &record_node, false, false},
    [SEC_LEASES] = {"leases", &record_lease, false, false},
    [SEC_GROUPS] = {"groups", &record_group, false, false},
    [SEC_GROUPS_BY] = {"groups_by", &record_group, false, false},
    [SEC_FAIL_TIMES] = {"fail_times", &record_fail_time, false, false},
    [SEC_GROUP] = {"group", &record_group_facts, false, false},
    [SEC_GROUP_PARTS] = {"group_parts", &record_group_part, false, false},
    [SEC_GROUP_SAMPLES] = {"group_samples", &record_group_sample, false, false},
    [SEC_AUDIT] = {"audit", &record_audit, false, false},
    [SEC_HAPPENED] = {"happened", &record_happened, false, false},
    [SEC_SCHEDULES] = {"schedules", &record_schedule, false, false},
    [SEC_CRON_RUNS] = {"cron_runs", &record_run, false, false},
    [SEC_CRON_NEXT] = {"cron_next", &record_run, false, false},
    [SEC_QUEUE_SETTINGS] = {"queue_settings", &record_setting, false, false},
    [SEC_REQUEUE_SAMPLE] = {"requeue_sample", &record_sample, false, false},
    [SEC_HEALTH_SERVER] = {"health_server", &record_health_server, false, false},
    [SEC_HEALTH_SESSIONS] = {"health_sessions", &record_health_session, false, false},
    [SEC_HEALTH_VACUUMS] = {"health_vacuums", &record_health_vacuum, false, false},
    [SEC_HEALTH_TABLES] = {"health_tables", &record_health_table, false, false},
#define OWN(id, text) [SEC_##id] = {text, &record_change, true, false},
#define SAME(id)
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) by_ids by_where
#include "model/adapter/acts.def"
#define OWN(id, text) [SEC_##id] = {text, &record_effect, false, false},
#define SAME(id)
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) preview
#include "model/adapter/acts.def"
};
/* clang-format on */

/* The console's own statements for any database; a section of the same name in the file replaces
 * them. */
static const struct {
    enum section_id id;
    const char *file, *params;
} console_sections[CONSOLE_SECTIONS] = {
    {SEC_HEALTH_SERVER,   "health_server",   ""              },
    {SEC_HEALTH_SESSIONS, "health_sessions", ""              },
    {SEC_HEALTH_VACUUMS,  "health_vacuums",  ""              },
    {SEC_HEALTH_TABLES,   "health_tables",   ""              },
    {SEC_BACKEND_SIGNAL,  "health_signal",   "settings batch"},
    {SEC_ROLE,            "foreign_role",    "tables"        },
};

static int
section_index(const char *name)
{
    for (int i = 0; i < SEC_COUNT; i++)
        if (!strcmp(section_kinds[i].name, name))
            return i;
    return -1;
}

/* --- keys and values -------------------------------------------------------------------------- */

static bool
is_one_of(const char *key, const char *const *list)
{
    while (*list && strcmp(*list, key) != 0)
        list++;
    return *list != NULL;
}

static const char *
check_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return *name && !name[len] ? NULL : "a name is made of a-z, 0-9 and _";
}

/* Checks version numbers with dots. With ranges also "1-2", and several separated by blanks. */
static const char *
check_versions(const char *text, bool ranges)
{
    const char *allowed = ranges ? "0123456789.- " : "0123456789.";

    if (!isdigit((unsigned char)*text) || text[strspn(text, allowed)])
        return ranges ? "ranges such as \"6-7 9.1\" are needed" : "a number such as 1.5 is needed";
    return NULL;
}

static const char *
check_path(const char *path)
{
    static const char schema[] = "{schema}";

    for (const char *s = path; (s = strpbrk(s, "{}")); s += sizeof schema - 1)
        if (strncmp(s, schema, sizeof schema - 1) != 0)
            return "only {schema} is put in here";
    return *path ? NULL : "it has no value";
}

static const char *
check_header_value(const struct note *n)
{
    static const char *const id_types[] = {"uuid", "bigint", "text", NULL};

    if (!strcmp(n->key, "adapter"))
        return check_name(n->value);
    if (!strcmp(n->key, "format") && strcmp(n->value, "2") != 0)
        return "this program reads format 2";
    if (!strcmp(n->key, "id-type") && !is_one_of(n->value, id_types))
        return "uuid, bigint or text is needed";
    if (!strcmp(n->key, "tested-versions"))
        return check_versions(n->value, true);
    if (!strcmp(n->key, "min-version"))
        return check_versions(n->value, false);
    if (!strcmp(n->key, "states"))
        return adapter_check_states(n->value);
    if (!strcmp(n->key, "search-path"))
        return check_path(n->value);
    return *n->value ? NULL : "it has no value";
}

/* Checks a header line `lacks`: "SECTION: why not", for a section that the file does not have. */
static const char *
check_lack(const struct adapter_file *f, const char *value)
{
    size_t len = strcspn(value, ":");
    char *name = xstrndup(value, len);
    int s = section_index(name);

    free(name);
    if (s < 0 || !value[len] || !value[len + 1 + strspn(value + len + 1, " ")])
        return "the name of a section, a colon and why it is not there are needed";
    /* a section that requires something may be missing: then these words say why */
    return f->bound[s].section && !section_note(f->bound[s].section, "requires")
               ? "the file has this section"
               : NULL;
}

static bool
repeats(const char *key)
{
    return !strcmp(key, "note") || !strcmp(key, "lacks");
}

static bool
check_header(const struct adapter_file *f, const char *file, struct err *e)
{
    static const char *const known[] = {"adapter",         "title",       "format",      "schema",
                                        "id-type",         "min-version", "states",      "prefix",
                                        "tested-versions", "timezone",    "search-path", "tables",
                                        "touches",         "note",        "lacks",       NULL};
    static const char *const wanted[] = {"adapter", "title", "format", "schema"};

    for (int i = 0; i < f->text.nheader; i++) {
        const struct note *n = &f->text.header[i];
        if (!is_one_of(n->key, known))
            return fail(e, ERR_DATA, "%s:%d: no line of the header is called \"%s\"", file, n->line,
                        n->key);
        const char *wrong =
            strcmp(n->key, "lacks") ? check_header_value(n) : check_lack(f, n->value);
        if (wrong)
            return fail(e, ERR_DATA, "%s:%d: %s: %s", file, n->line, n->key, wrong);
        if (!repeats(n->key) && sections_header(&f->text, n->key) != n->value)
            return fail(e, ERR_DATA, "%s:%d: %s stands twice", file, n->line, n->key);
    }
    for (int i = 0; i < 4; i++)
        if (!sections_header(&f->text, wanted[i]))
            return fail(e, ERR_DATA, "%s: the header has no \"%s:\"", file, wanted[i]);
    return true;
}

static const char *
check_range(const char *text)
{
    char *end;
    long low = strtol(text, &end, 10);
    bool ok = end > text && !strncmp(end, "..", 2);
    const char *rest = ok ? end + 2 : "";
    long high = strtol(rest, &end, 10);

    return ok && end > rest && !*end && low <= high ? NULL : "a range such as 1..4 is needed";
}

static const char *
check_requires(const char *text)
{
    static const char version[] = "version >= ", column[] = "column ";

    if (!strcmp(text, "pg_signal_backend"))
        return NULL;
    if (!strncmp(text, column, sizeof column - 1))
        return check_name(text + sizeof column - 1);
    if (strncmp(text, version, sizeof version - 1) != 0)
        return "\"version >= 2\", \"column C\" or \"pg_signal_backend\" is needed";
    return check_versions(text + sizeof version - 1, false);
}

static const char *
check_note_value(const struct note *n)
{
    static const char *const modes[] = {"signal", "deferred", NULL};

    if (!strcmp(n->key, "params"))
        return NULL; /* read_params */
    if (!strcmp(n->key, "mode") && !is_one_of(n->value, modes))
        return "signal or deferred is needed";
    if (!strcmp(n->key, "dry") && strcmp(n->value, "no") != 0)
        return "only \"no\" has a meaning";
    if (!strcmp(n->key, "range"))
        return check_range(n->value);
    if (!strcmp(n->key, "requires"))
        return check_requires(n->value);
    return *n->value ? NULL : "it has no value";
}

static bool
check_notes(const struct section *s, const char *file, struct err *e)
{
    static const char *const known[] = {"params", "official", "guard", "confirm",
                                        "mode",   "requires", "cost",  "range",
                                        "dry",    "order",    NULL};

    for (int i = 0; i < s->nnotes; i++) {
        const struct note *n = &s->notes[i];
        if (!is_one_of(n->key, known))
            return fail(e, ERR_DATA, "%s:%d: %s: no note is called \"%s\"", file, n->line, s->name,
                        n->key);
        const char *wrong = check_note_value(n);
        if (wrong)
            return fail(e, ERR_DATA, "%s:%d: %s: %s: %s", file, n->line, s->name, n->key, wrong);
        if (section_note(s, n->key) != n->value)
            return fail(e, ERR_DATA, "%s:%d: %s: %s stands twice", file, n->line, s->name, n->key);
    }
    return true;
}

/* --- parameters ------------------------------------------------------------------------------- */

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
read_section(struct adapter_file *f, const char *file, const struct section *s, struct err *e)
{
    int i = section_index(s->name);

    if (i < 0)
        return fail(e, ERR_DATA, "%s:%d: no section is called \"%s\"", file, s->line, s->name);
    f->bound[i].section = s;
    return check_notes(s, file, e) && read_params(s, file, &f->bound[i], e);
}

static bool
takes_param(const struct bound *b, enum param p)
{
    for (int i = 0; i < b->nparams; i++)
        if (b->params[i] == p)
            return true;
    return false;
}

/* Checks that required sections are there, and that sections which belong together come
 * together. */
static bool
check_whole(const struct adapter_file *f, const char *file, struct err *e)
{
    const struct section *purge = f->bound[SEC_PURGE].section;

    for (int i = 0; i < SEC_COUNT; i++) {
        const struct bound *b = &f->bound[i];
        if (section_kinds[i].required && !b->section)
            return fail(e, ERR_DATA, "%s: section %s is missing", file, section_kinds[i].name);
        if (takes_param(b, PARAM_RAW_STATES) && !sections_header(&f->text, "states"))
            return fail(e, ERR_DATA, "%s:%d: %s: raw_states needs \"states:\" in the header", file,
                        b->section->line, b->section->name);
        if (takes_param(b, PARAM_TABLES) && !f->tables)
            return fail(e, ERR_DATA, "%s:%d: %s: tables needs \"tables:\" in the header", file,
                        b->section->line, b->section->name);
    }
    if (purge && !f->bound[SEC_PURGE_PREVIEW].section)
        return fail(e, ERR_DATA, "%s:%d: purge needs a section purge_preview beside it", file,
                    purge->line);
    const struct section *group = f->bound[SEC_GROUP].section;
    if (group && !(f->bound[SEC_GROUP_PARTS].section && f->bound[SEC_GROUP_SAMPLES].section))
        return fail(e, ERR_DATA, "%s:%d: group needs sections group_parts and group_samples", file,
                    group->line);
    return true;
}

static bool
add_console_sections(struct adapter_file *f, struct err *e)
{
    bool ok = true;

    for (int i = 0; ok && i < CONSOLE_SECTIONS; i++) {
        enum section_id id = console_sections[i].id;
        const char *file = console_sections[i].file;
        if (f->bound[id].section)
            continue;
        f->params[i] = (struct note){xstrdup("params"), xstrdup(console_sections[i].params), 1};
        f->console[i] = (struct section){.name = xstrdup(section_kinds[id].name),
                                         .sql = xstrdup(console_sql(file)),
                                         .line = 1,
                                         .sql_line = 1,
                                         .notes = &f->params[i],
                                         .nnotes = 1,
                                         .has_prefix = sections_header(&f->text, "prefix") != NULL};
        f->bound[id].section = &f->console[i];
        ok = read_params(&f->console[i], file, &f->bound[id], e);
    }
    return ok;
}

/* "a b" -> {"a","b"} */
static char *
make_tables(const char *header)
{
    struct params p = {0};
    const char *items[64];
    char *copy = xstrdup(header), *rest = copy;
    int n = 0;

    for (char *word; (word = strsep(&rest, " \t"));)
        if (*word && n < 64)
            items[n++] = word;
    params_set_list(&p, PARAM_TABLES, items, n);
    char *list = p.value[PARAM_TABLES];
    free(copy);
    return list;
}

struct adapter_file *
adapter_file_read(const char *file_name, const char *text, struct err *e)
{
    struct adapter_file *f = xcalloc(1, sizeof *f);
    bool ok = sections_read(file_name, text, &f->text, e);
    const char *tables = ok ? sections_header(&f->text, "tables") : NULL;

    f->origin = xstrdup("");
    f->source = xstrdup(text);
    f->tables = tables ? make_tables(tables) : NULL;
    for (int i = 0; ok && i < f->text.n; i++)
        ok = read_section(f, file_name, &f->text.list[i], e);
    if (ok && check_header(f, file_name, e) && check_whole(f, file_name, e) &&
        add_console_sections(f, e) &&
        sections_bind(f->bound[SEC_DETECT].section, sections_header(&f->text, "schema"), &f->detect,
                      e)) {
        adapter_find_touched(f);
        f->silence = xasprintf("%s does not record this", sections_header(&f->text, "title"));
        return f;
    }
    adapter_file_free(f);
    return NULL;
}

void
adapter_file_free(struct adapter_file *f)
{
    if (!f)
        return;
    sections_free(&f->text);
    for (int i = 0; i < CONSOLE_SECTIONS; i++) {
        free(f->console[i].name);
        free(f->console[i].sql);
        free(f->params[i].key);
        free(f->params[i].value);
    }
    for (struct raw_states *next; f->raw; f->raw = next) {
        next = f->raw->next;
        free(f->raw->states);
        free(f->raw->raw);
        free(f->raw);
    }
    for (int i = 0; i < 3; i++)
        free(f->touched[i]);
    free(f->tables);
    free(f->origin);
    free(f->silence);
    free(f->source);
    free(f->detect);
    free(f);
}
