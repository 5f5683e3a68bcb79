/*
 * Who owns what the text of an adapter uses: finds the names in the text, makes the question about
 * their owners, and the guard. The rule is in model/adapter/trust.h.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter_parts.h"

enum { TABLES, PATTERNS, FUNCTIONS };

/* --- the names in the text -------------------------------------------------------------------- */

/* One more element of an array literal. */
static void
add_name(struct buf *list, const char *name, size_t len)
{
    buf_str(list, list->len > 1 ? ",\"" : "\"");
    for (size_t i = 0; i < len; i++) {
        if (name[i] == '"' || name[i] == '\\')
            buf_str(list, "\\");
        buf_add(list, &name[i], 1);
    }
    buf_str(list, "\"");
}

/* "queue_*" -> queue\_% */
static void
add_pattern(struct buf *list, const char *name, size_t len)
{
    struct buf like = {0};

    for (size_t i = 0; i < len; i++) {
        if (name[i] == '_' || name[i] == '%' || name[i] == '\\')
            buf_str(&like, "\\");
        buf_add(&like, name[i] == '*' ? "%" : &name[i], 1);
    }
    add_name(list, like.data, like.len);
    buf_free(&like);
}

static bool
is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c > 127;
}

/* Reads the name behind "{schema}.". The name may be quoted, and it may be that of a function that
 * is called. */
static void
add_named(struct buf *lists, const char *at)
{
    static const char prefix[] = "{prefix}";
    struct buf name = {0};

    if (!strncmp(at, prefix, sizeof prefix - 1))
        at += sizeof prefix - 1;
    buf_str(&name, "");
    if (*at == '"') {
        for (at++; *at && (*at != '"' || at[1] == '"'); at++) {
            at += *at == '"';
            buf_add(&name, at, 1);
        }
        at += *at == '"';
    } else {
        for (; is_letter(*at); at++) {
            char lower = (char)tolower((unsigned char)*at);
            buf_add(&name, &lower, 1);
        }
    }
    if (name.len > 0)
        add_name(&lists[TABLES], name.data, name.len);
    if (name.len > 0 && at[strspn(at, " \t\r\n")] == '(')
        add_name(&lists[FUNCTIONS], name.data, name.len);
    buf_free(&name);
}

static void
add_text(struct buf *lists, const char *sql)
{
    static const char schema[] = "{schema}";

    for (const char *at = sql; (at = strstr(at, schema));) {
        at += sizeof schema - 1;
        at += strspn(at, " \t\r\n");
        if (*at == '.')
            add_named(lists, at + 1 + strspn(at + 1, " \t\r\n"));
    }
}

static void
add_words(struct buf *lists, const char *header)
{
    for (const char *at = header ? header : ""; *at;) {
        size_t len = strcspn(at, " \t");
        if (len > 0 && memchr(at, '*', len))
            add_pattern(&lists[PATTERNS], at, len);
        else if (len > 0)
            add_name(&lists[TABLES], at, len);
        at += len + (at[len] != 0);
    }
}

void
adapter_find_touched(struct adapter_file *f)
{
    struct buf lists[3] = {{0}};

    for (int i = 0; i < 3; i++)
        buf_str(&lists[i], "{");
    for (int i = 0; i < f->text.n; i++)
        add_text(lists, f->text.list[i].sql);
    add_words(lists, sections_header(&f->text, "tables"));
    add_words(lists, sections_header(&f->text, "touches"));
    for (int i = 0; i < 3; i++) {
        buf_str(&lists[i], "}");
        f->touched[i] = lists[i].data;
    }
}

/* --- places ----------------------------------------------------------------------------------- */

struct adapter_place
adapter_place(const struct adapter_file *f, const char *name)
{
    struct adapter_place p = {.name = xstrdup(name), .schema = xstrdup(name), .file = f};
    char *slash = sections_header(&f->text, "prefix") ? strrchr(p.schema, '/') : NULL;

    if (slash)
        *slash = 0;
    p.prefix = xstrdup(slash ? slash + 1 : "");
    return p;
}

void
adapter_place_done(struct adapter_place *p)
{
    free(p->name);
    free(p->schema);
    free(p->prefix);
    owners_done(&p->owners);
    *p = (struct adapter_place){0};
}

static struct touched
adapter_touched(const struct adapter_place *p)
{
    return (struct touched){.tables = p->file->touched[TABLES],
                            .patterns = p->file->touched[PATTERNS],
                            .functions = p->file->touched[FUNCTIONS],
                            .prefix = p->prefix,
                            .whole = sections_header(&p->file->text, "search-path") != NULL};
}

bool
adapter_owners_proved(struct result *const *owners, int n)
{
    while (n > 0 && result_rows(owners[n - 1]) > 0)
        n--;
    return n == 0;
}

struct db_stmt
adapter_owners(const struct adapter *a, int i, bool plain,
               struct db_param storage[static OWNERS_PARAMS])
{
    struct touched t = adapter_touched(&a->places[i]);

    if (plain)
        return owners_ask_plain(a->places[i].schema, false, storage);
    return owners_ask(a->places[i].schema, &t, storage);
}

void
adapter_guard(struct adapter *a, const struct owners *owners)
{
    struct binding *b = a->now;
    struct touched t = adapter_touched(&b->place);

    owners_done(&b->place.owners);
    owners_copy(&b->place.owners, owners);
    guard_make(&b->guard, b->place.schema, &t, &b->place.owners);
    b->is_guarded = true;
}
