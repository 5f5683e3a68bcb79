/* The texts of an installation. In an empty schema the scripts of sql/core run whole. In one that
 * is installed, their statements about tables are left out: `create index if not exists`, `alter
 * table` and `create or replace view` lock a table even if nothing is to change, and a migration
 * does what is to change. How to find these statements: a statement of sql/core begins at the start
 * of a line, and its first words say what it is about; it ends with the first line that ends with a
 * semicolon. sql/core/migrate/README.md explains the order. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/install/install_parts.h"

const struct sql_text *
install_migrations(const struct install_options *o, int *n)
{
    *n = o->migrations ? o->nmigrations : sql_migrate_n;
    return o->migrations ? o->migrations : sql_migrate;
}

int
install_newest(const struct install_options *o)
{
    int n, newest = BASE_VERSION;
    const struct sql_text *m = install_migrations(o, &n);

    for (int i = 0; i < n; i++) {
        newest++;
        assert(strtol(m[i].name, NULL, 10) == newest); /* the number that its name begins with */
    }
    return newest;
}

int
install_version(void)
{
    return install_newest(&(struct install_options){0});
}

/* FNV-1a. A hash that is not cryptographic is enough: it must notice a change, and nobody gains by
 * finding a second text with the same hash. */
static uint64_t
mix(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

void
install_made_from(const struct install_options *o, char digits[static 17])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const char *const roles[] = {o->viewer, o->worker, o->operator_, o->pusher};
    int n;
    const struct sql_text *m = install_migrations(o, &n);

    for (int i = 0; i < sql_core_n; i++)
        hash = mix(mix(hash, sql_core[i].name), sql_core[i].text);
    for (int i = 0; i < n; i++)
        hash = mix(mix(hash, m[i].name), m[i].text);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        hash = mix(hash, roles[i]);
    snprintf(digits, 17, "%016" PRIx64, hash);
}

static bool
concerns_tables(const char *line)
{
    static const char *const words[] = {"create table ",      "create unlogged table ",
                                        "create index ",      "create unique index ",
                                        "create sequence ",   "create or replace view ",
                                        "create view ",       "create trigger ",
                                        "alter table ",       "alter index ",
                                        "alter sequence ",    "drop table ",
                                        "drop index ",        "drop view ",
                                        "drop trigger ",      "comment on table ",
                                        "comment on column ", "comment on index ",
                                        "comment on view ",   "comment on sequence ",
                                        "comment on trigger "};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(line, words[i], strlen(words[i])))
            return true;
    return false;
}

/* True if a statement ends in this line. A comment may follow the semicolon. */
static bool
ends_statement(const char *line, size_t len)
{
    for (size_t i = 0; i + 2 < len; i++)
        if (line[i] == ';' && (i + 4 <= len && !strncmp(line + i + 1, " --", 3)))
            return true;
    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == ' '))
        len--;
    return len > 0 && line[len - 1] == ';';
}

char *
install_without_tables(const char *script)
{
    struct buf kept = {0};
    bool skips = false;

    buf_str(&kept, "");
    for (const char *at = script; *at;) {
        size_t len = strcspn(at, "\n");
        len += at[len] == '\n';
        bool was = skips;
        skips = skips || concerns_tables(at);
        if (!skips)
            buf_add(&kept, at, len);
        else
            buf_str(&kept, "\n"); /* keep the line break, so that line numbers in the server's
                                     errors stay right */
        if (skips && (ends_statement(at, len) || (was && *at == '\n')))
            skips = false;
        at += len;
    }
    return kept.data ? kept.data : xstrdup("");
}

char *
install_part(const struct sql_text *migration, bool tables)
{
    static const char mark[] = "-- tables\n";
    const char *text = migration->text, *at = text;
    struct buf part = {0};

    while (strncmp(at, mark, sizeof mark - 1) != 0 && *at) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    if (tables)
        buf_str(&part, *at ? at : "");
    else
        buf_add(&part, text, (size_t)(at - text));
    return part.data ? part.data : xstrdup("");
}
