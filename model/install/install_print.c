/* The installation as one text, for people who apply every change of a schema by a tool of theirs.
 * The same scripts as install_run sends, in the same order; only the words before them are written
 * here. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/install/install_parts.h"

/* The beginning of both texts. Outside of a transaction the local settings would be lost at once,
 * and the scripts would use the wrong schema and search_path. So the text then makes the session
 * read-only, and every further statement fails. */
static const char begin[] =
    "set local search_path = pg_catalog, pg_temp;\n"
    "set local client_encoding = 'UTF8';\n"
    "set local plpgsql.extra_errors = 'none';\n"
    "set local plpgsql.extra_warnings = 'none';\n"
    "set local lock_timeout = '200ms'; -- if somebody holds a lock for longer, run this again\n";
static const char guard[] =
    "select pg_catalog.set_config('default_transaction_read_only', 'on', false),\n"
    "       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)\n"
    "where coalesce(pg_catalog.current_setting('queuetop.schema', true), '') "
    "operator(pg_catalog.=) "
    "'';\n"
    "\n"
    "do $$\n"
    "declare\n"
    "    name pg_catalog.text := coalesce(pg_catalog.current_setting('queuetop.schema', true), "
    "'');\n"
    "begin\n"
    "    if name operator(pg_catalog.=) '' then\n"
    "        raise 'run this file in one transaction (psql -1 -v ON_ERROR_STOP=1 -f FILE)';\n"
    "    end if;\n"
    "    if pg_catalog.current_setting('server_version_num')::int < 130000 then\n"
    "        raise 'the queue needs PostgreSQL 13 or newer';\n"
    "    end if;\n"
    "    perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('queuetop install'),\n"
    "                                             pg_catalog.hashtext(name));\n"
    "    perform pg_catalog.set_config('queuetop.before', coalesce((\n"
    "        select pg_catalog.string_agg(pg_catalog.concat(p.oid, ':', p.xmin), ' ')\n"
    "        from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace\n"
    "        where n.nspname = name), ''), true); -- the functions before, see 88_functions.sql\n"
    "    perform pg_catalog.set_config('queuetop.there', coalesce((\n"
    "        select pg_catalog.concat('pg_namespace'::regclass::oid, ':', n.oid, ' ',\n"
    "                                 pg_catalog.string_agg(pg_catalog.concat(d.classid, ':', "
    "d.objid), ' '))\n"
    "        from pg_catalog.pg_namespace n left join pg_catalog.pg_depend d\n"
    "             on d.refclassid = 'pg_namespace'::regclass::oid and d.refobjid = n.oid\n"
    "        where n.nspname = name group by n.oid), ''), true); -- its objects, see "
    "90_roles.sql\n";
static const char fresh[] =
    "    if exists (select from pg_catalog.pg_class c\n"
    "               join pg_catalog.pg_namespace n on n.oid = c.relnamespace\n"
    "               where n.nspname = name and c.relkind in ('r', 'p', 'v')) then\n"
    "        raise 'schema % holds tables already', pg_catalog.quote_ident(name);\n"
    "    end if;\n"
    "end $$;\n";

/* Appends an E'' string, because its meaning does not depend on standard_conforming_strings. */
static void
add_setting(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "select pg_catalog.set_config('queuetop.%s', E'", name);
    for (const char *s = value; *s; s++) {
        if (*s == '\'' || *s == '\\')
            buf_add(out, s, 1);
        buf_add(out, s, 1);
    }
    buf_str(out, "', true);\n");
}

static void
add_script(struct buf *out, const char *name, const char *text)
{
    size_t len = strlen(text);

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    if (len == 0)
        return;
    buf_printf(out, "\n-- %s\n", name);
    buf_add(out, text, len);
    buf_str(out, text[len - 1] == ';' ? "\n" : "\n;\n"); /* the last line may end in a comment */
}

static void
add_made(struct buf *out, const char *name, char *text)
{
    add_script(out, name, text);
    free(text);
}

static void
add_begin(struct buf *out, const struct install_options *o, int from)
{
    const char *const settings[][2] = {
        {"schema",   o->schema   },
        {"viewer",   o->viewer   },
        {"worker",   o->worker   },
        {"operator", o->operator_},
        {"pusher",   o->pusher   }
    };

    buf_printf(out, "-- The queue of queuetop " QUEUETOP_VERSION ", version %d", install_newest(o));
    if (from)
        buf_printf(out, ", from version %d", from);
    buf_printf(out,
               ". Run this file in ONE transaction:\n-- psql -1 -v ON_ERROR_STOP=1 -f FILE\n%s",
               begin);
    if (from)
        buf_str(out, "set local check_function_bodies = off; -- their tables are changed later\n");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        add_setting(out, settings[i][0], settings[i][1]);
    add_setting(out, "drops", from && from < install_newest(o) ? "on" : "off");
    buf_str(out, guard);
    if (!from)
        buf_str(out, fresh);
    else
        buf_printf(
            out,
            "    perform pg_catalog.set_config('search_path', pg_catalog.format('%%I, pg_temp', "
            "name), true);\n"
            "    if (select version from meta) <> %d then\n"
            "        raise 'version %% is installed, this file is for version %d', (select version "
            "from meta);\n"
            "    end if;\n"
            "end $$;\n",
            from, from);
}

static void
add_migrations(struct buf *out, const struct install_options *o, int from, bool tables)
{
    int n;
    const struct sql_text *m = install_migrations(o, &n);

    for (int i = from - BASE_VERSION; i < n; i++)
        add_made(out, m[i].name, install_part(&m[i], tables));
}

static void
add_upgrade(struct buf *out, const struct install_options *o, int from)
{
    add_migrations(out, o, from, false);
    for (int i = 0; i < sql_core_n; i++)
        add_made(out, sql_core[i].name, install_without_tables(sql_core[i].text));
    add_migrations(out, o, from, true);
}

bool
install_print(const struct install_options *o, int from, struct buf *out, struct err *e)
{
    if (from && (from < BASE_VERSION || from > install_newest(o)))
        return fail(e, ERR_USAGE, "versions %d to %d can be brought up to date, not %d",
                    BASE_VERSION, install_newest(o), from);
    add_begin(out, o, from);
    if (from)
        add_upgrade(out, o, from);
    else
        for (int i = 0; i < sql_core_n; i++)
            add_script(out, sql_core[i].name, sql_core[i].text);
    if (install_newest(o) > (from ? from : BASE_VERSION))
        buf_printf(out, "\nupdate meta set version = %d;\n", install_newest(o));
    return true;
}

/* --- scripts --- */

/* The texts of an installation. In an empty schema the scripts of sql/core run whole. In one
 * that is installed, their statements about tables are left out: `create index if not exists`,
 * `alter table` and `create or replace view` lock a table even if nothing is to change, and a
 * migration does what is to change. How to find these statements: a statement of sql/core begins
 * at the start of a line, and its first words say what it is about; it ends with the first line
 * that ends with a semicolon. sql/core/migrate/README.md explains the order. */

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
