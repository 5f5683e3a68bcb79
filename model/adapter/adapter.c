/*
 * An adapter in use: a file that was read (adapter_read.c), bound to a schema. A binding is kept
 * until the end, because statements with its text may be under way.
 */
#include "model/adapter/adapter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/adapter/adapter_parts.h"
#include "model/base/mem.h"

/* --- life ------------------------------------------------------------------------------------ */

void
adapter_add(struct adapter *a, struct adapter_file *f)
{
    a->files = xreallocarray(a->files, (size_t)a->nfiles + 1, sizeof(struct adapter_file *));
    a->files[a->nfiles++] = f;
    if (!a->file)
        a->file = f;
}

struct adapter *
adapter_parse(const char *file_name, const char *text, struct err *e)
{
    struct adapter_file *f = adapter_file_read(file_name, text, e);

    if (!f)
        return NULL;
    struct adapter *a = xcalloc(1, sizeof *a);
    adapter_add(a, f);
    return a;
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

/* Adds the built-in adapters; the native one is the first. */
static bool
add_built_in(struct adapter *a, struct err *e)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < sql_adapters_n; i++) {
            if (!strcmp(sql_adapters[i].name, "native") != (pass == 0))
                continue;
            struct adapter_file *f =
                adapter_file_read(sql_adapters[i].name, sql_adapters[i].text, e);
            if (!f)
                return false;
            adapter_add(a, f);
        }
    return true;
}

static struct adapter *
open_all(struct err *e)
{
    struct adapter *a = xcalloc(1, sizeof *a);

    if (add_built_in(a, e)) {
        adapter_add_own(a);
        return a;
    }
    adapter_free(a);
    return NULL;
}

/* Drops all candidates except the one in use. */
static void
drop_others(struct adapter *a)
{
    for (int i = 0; i < a->nfiles; i++)
        if (a->files[i] != a->file)
            adapter_file_free(a->files[i]);
    a->files[0] = a->file;
    a->nfiles = 1;
}

struct adapter *
adapter_open(const char *wanted, struct err *e)
{
    bool is_file = wanted && (strchr(wanted, '/') || strstr(wanted, ".sql"));

    if (is_file) {
        struct adapter_file *f = adapter_file_open(wanted, e);
        if (!f)
            return NULL;
        struct adapter *one = xcalloc(1, sizeof *one);
        adapter_add(one, f);
        return one;
    }
    struct adapter *a = open_all(e);
    if (!a || !wanted)
        return a;
    if (adapter_become_named(a, wanted)) {
        drop_others(a);
        return a;
    }
    fail(e, ERR_USAGE, "no adapter is called \"%s\": queuetop adapter list shows them", wanted);
    adapter_free(a);
    return NULL;
}

static void
binding_free(struct binding *b)
{
    for (int i = 0; i < SEC_COUNT; i++)
        free(b->sql[i]);
    adapter_place_done(&b->place);
    free(b->schema);
    free(b->search_path);
    free(b);
}

static void
free_kept(struct kept_text *k)
{
    for (struct kept_text *next; k; k = next) {
        next = k->next;
        free(k->text);
        free(k);
    }
}

void
adapter_free(struct adapter *a)
{
    if (!a)
        return;
    for (struct binding *next; a->all; a->all = next) {
        next = a->all->next;
        binding_free(a->all);
    }
    free_kept(a->complaints);
    free_kept(a->verdicts);
    for (int i = 0; i < a->nfiles; i++)
        adapter_file_free(a->files[i]);
    for (int i = 0; i < a->nfound; i++)
        adapter_place_done(&a->places[i]);
    free(a->places);
    free(a->found);
    free(a->files);
    free(a);
}

const char *
adapter_keep(struct kept_text **list, const char *text)
{
    for (; *list; list = &(*list)->next)
        if (!strcmp((*list)->text, text))
            return (*list)->text;
    *list = xmalloc(sizeof **list);
    **list = (struct kept_text){.text = xstrdup(text)};
    return (*list)->text;
}

void
adapter_complain(struct adapter *a, const char *text)
{
    (void)adapter_keep(&a->complaints, text);
}

const char *
adapter_complaint(const struct adapter *a, int i)
{
    const struct kept_text *c = a->complaints;

    while (c && i-- > 0)
        c = c->next;
    return c ? c->text : NULL;
}

/* --- binding --------------------------------------------------------------------------------- */

static bool
bind_path(const struct adapter *a, const char *schema, char **path, struct err *e)
{
    const char *header = adapter_header(a, "search-path");
    char *text = header ? xstrdup(header) : NULL;
    const struct section as_section = {.sql = text};

    *path = NULL;
    bool ok = !text || sections_bind(&as_section, schema, path, e);
    free(text);
    return ok;
}

bool
adapter_use(struct adapter *a, const char *schema, struct err *e)
{
    struct binding *b = a->all;

    while (b && (b->file != a->file || strcmp(b->schema, schema) != 0))
        b = b->next;
    if (!b) {
        b = xcalloc(1, sizeof *b);
        b->file = a->file;
        b->schema = xstrdup(schema);
        b->place = adapter_place(a->file, schema);
        bool ok = bind_path(a, schema, &b->search_path, e);
        for (int i = 0; ok && i < SEC_COUNT; i++)
            if (a->file->bound[i].section)
                ok = sections_bind(a->file->bound[i].section, schema, &b->sql[i], e);
        if (!ok) {
            binding_free(b);
            return false;
        }
        b->next = a->all;
        a->all = b;
    }
    if (a->now != b) {
        a->serial++;
        memset(a->lacks, 0, sizeof a->lacks);
    }
    a->now = b;
    return true;
}

void
adapter_become(struct adapter *a, int i)
{
    if (a->file == a->files[i])
        return;
    a->file = a->files[i];
    a->now = NULL;
    a->serial++;
    memset(a->lacks, 0, sizeof a->lacks);
}

bool
adapter_become_named(struct adapter *a, const char *name)
{
    for (int i = 0; i < a->nfiles; i++)
        if (!strcmp(sections_header(&a->files[i]->text, "adapter"), name)) {
            adapter_become(a, i);
            return true;
        }
    return false;
}

int
adapter_candidates(const struct adapter *a)
{
    return a->nfiles;
}

int
adapter_serial(const struct adapter *a)
{
    return a->serial;
}

void
adapter_moved(struct adapter *a)
{
    a->serial++;
}

const char *
adapter_origin(const struct adapter *a)
{
    return a->file->origin;
}

const char *
adapter_source(const struct adapter *a)
{
    return a->file->source;
}

const char *
adapter_silence(const struct adapter *a)
{
    return a->file->silence;
}

/* --- looking up ------------------------------------------------------------------------------ */

const char *
adapter_schema(const struct adapter *a)
{
    return a->now ? a->now->schema : NULL;
}

const char *
adapter_risk(const struct adapter *a)
{
    return a->now && !strcmp(adapter_name(a), "native") ? a->now->place.owners.risk : NULL;
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
    return a->file->bound[s].section != NULL && !a->lacks[s];
}

const char *
adapter_sql(const struct adapter *a, enum section_id s)
{
    if (s == SEC_DETECT)
        return a->file->detect;
    return a->now && a->now->sql[s] ? a->now->sql[s] : "";
}

/* The line of the file. A text that replaces a placeholder has no line breaks, so each line of the
 * statement is a line of the file. The only exception is a schema with a line break in its name. */
int
adapter_line(const struct adapter *a, enum section_id s, int position)
{
    const struct section *section = a->file->bound[s].section;
    int line = section->sql_line, at = 1;

    for (const char *c = adapter_sql(a, s); *c && at < position; c++) {
        line += *c == '\n';
        at += (c[1] & 0xc0) != 0x80; /* the next byte begins a character */
    }
    return at == position ? line : section->line;
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

    assert(a->now && a->now->sql[s]);
    for (int i = 0; i < b->nparams; i++)
        storage[i] = (struct db_param){.value = value_of(a, p, b->params[i])};
    return (struct db_stmt){.sql = a->now->sql[s],
                            .nparams = b->nparams,
                            .params = storage,
                            .name = section_kinds[s].name};
}

int
adapter_decode(const struct adapter *a, const enum section_id *sections, int n,
               struct db_reply *reply, struct rowset *out, struct err *e)
{
    int answer = 0;

    for (int i = 0; i < n; i++) {
        out[i] = (struct rowset){0};
        if (!adapter_has(a, sections[i]) ||
            record_decode(section_kinds[sections[i]].record, db_take(reply, answer++), &out[i], e))
            continue;
        for (int k = 0; k < i; k++)
            rowset_free(&out[k]);
        return i;
    }
    return n;
}

void
adapter_settings(const struct adapter *a, bool acts, struct db_call *call)
{
    call->timezone = adapter_header(a, "timezone");
    call->search_path = acts && a->now ? a->now->search_path : NULL;
    call->guard = a->now && a->now->is_guarded ? &a->now->guard.db : NULL;
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
