/*
 * Whose code runs in a session of ours (model/adapter/trust.h): every adapter, as a superuser,
 * against what a role without any right on the queue can put in its way. A trap is a function of
 * mallory that leaves a file behind when somebody calls it: in a view or a foreign table instead of
 * the table, in a type, a policy, a default, a trigger, a partition's place, as a function and as
 * an operator of the schema. No trap may spring, whatever is asked, until the user trusts mallory;
 * most systems are not even opened. Then what comes later: who may create objects in the schema of
 * an opened system.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/sql.h"
#include "model/adapter/adapter.h"
#include "model/adapter/adapter_check.h"
#include "model/base/console_sql.h"
#include "model/base/mem.h"
#include "tests/sql/ask.h"
#include "tests/sql/core.h"

enum { PLACES = 4, LOGINS = 3 };

struct scene {
    const char *name; /* of the adapter */
    char table[80];   /* the first one that it reads, qualified */
    char database[64];
    PGconn *conn; /* a superuser's, for setting traps */
    struct loop *loop;
    struct db *db, *reader;    /* as the program connects: for acts, to look */
    struct db *logins[LOGINS]; /* the same without being superuser; NULL = no more */
};

static char mark[200]; /* the file that a trap leaves */

/* --- the scene -------------------------------------------------------------------------------- */

/* Who has run code since the last call; NULL = nobody. */
static const char *
has_sprung(void)
{
    static char who[40];
    FILE *f = fopen(mark, "re");

    if (!f)
        return NULL;
    who[fread(who, 1, sizeof who - 1, f)] = 0;
    fclose(f);
    unlink(mark);
    return who;
}

/* A stranger has a schema of his own, with the trap in it. */
static void
let_in(PGconn *c, const char *role, const char *schema)
{
    pg_run(
        c,
        "do $do$ begin execute replace(replace($w$"
        "create schema $H authorization $R; grant usage on schema $H to public; set role $R;"
        "create function $H.boom() returns boolean language plpgsql as $f$ begin "
        "execute 'copy (select ''$R'') to program ''cat >%s'''; return true; end $f$;"
        "create function $H.spring() returns trigger language plpgsql as $f$ begin "
        "perform $H.boom(); return new; end $f$;"
        "create function $H.calm() returns boolean language plpgsql immutable as $f$ begin "
        "return $H.boom(); end $f$;"
        "create function $H.event() returns event_trigger language plpgsql as $f$ begin "
        "perform $H.boom(); end $f$;"
        "create function $H.compare(integer, integer) returns integer language plpgsql immutable "
        "as $f$ begin perform $H.boom(); return 0; end $f$;"
        "create type $H.word as enum ('x');"
        "create function $H.word_text($H.word) returns text language plpgsql as $f$ begin "
        "perform $H.boom(); return 'x'; end $f$;"
        "create cast ($H.word as text) with function $H.word_text($H.word) as implicit;"
        "reset role $w$, '$R', '%s'), '$H', '%s'); end $do$",
        mark, role, schema);
}

static void
let_mallory_in(PGconn *c)
{
    pg_run(c, "create extension if not exists file_fdw;"
              "create server his foreign data wrapper file_fdw");
    let_in(c, "mallory", "his");
}

/* A login that may read everything in another system. On this program's own schema: one login for
 * each role that the install makes. */
static void
open_logins(struct scene *s, bool native)
{
    static const char *const names[LOGINS] = {"ops", "look", "work"};
    char schema[80];

    snprintf(schema, sizeof schema, "%.*s", (int)strcspn(s->table, "."), s->table);
    if (native)
        pg_run(s->conn, "grant queues_operator to ops; grant queues_viewer to look;"
                        "grant queues_worker to work");
    else
        pg_run(s->conn,
               "grant usage on schema %s to ops; grant select on all tables in schema %s to ops",
               schema, schema);
    for (int i = 0; i < (native ? LOGINS : 1); i++) {
        char dsn[300];
        snprintf(dsn, sizeof dsn, "%s user=%s", pg_dsn(s->database), names[i]);
        struct db_options o = {.conninfo = dsn,
                               .schema = "pg_catalog",
                               .once = true,
                               .gate = &ask_gate,
                               .stall_warn_ms = -1,
                               .stall_drop_ms = -1};
        s->logins[i] = db_new(s->loop, &o);
    }
}

static void
open_scene(struct scene *s, const char *name, const char *prefix)
{
    struct err e = {0};
    struct adapter *a = adapter_load(name, &e);
    const char *tables = adapter_header(a, "tables");
    bool native = !strcmp(name, "native");

    *s = (struct scene){.name = name, .loop = loop_new()};
    snprintf(s->database, sizeof s->database, "%s_%s", prefix, name);
    s->conn = native ? core_new(s->database) : pg_fixture(s->database, name);
    pg_run(s->conn, native ? "select push('q'); reset all" : "reset all");
    snprintf(s->table, sizeof s->table, "%s.%.*s", adapter_default_schema(a),
             native ? 5 : (int)strcspn(tables, " "), native ? "queue" : tables);
    adapter_free(a);
    let_mallory_in(s->conn);
    struct db_options o = {.conninfo = pg_dsn(s->database),
                           .schema = "pg_catalog",
                           .once = true,
                           .gate = &ask_gate,
                           .stall_warn_ms = -1,
                           .stall_drop_ms = -1};
    s->db = db_new(s->loop, &o);
    o.read_only = true;
    s->reader = db_new(s->loop, &o);
    open_logins(s, native);
}

static void
close_scene(struct scene *s)
{
    for (int i = 0; i < LOGINS; i++)
        db_free(s->logins[i]);
    db_free(s->reader);
    db_free(s->db);
    loop_free(s->loop);
    PQfinish(s->conn);
}

/* --- opening, as the program does ------------------------------------------------------------- */

/* plain: with the cheap proof, if it holds. */
static bool
open_with(struct scene *s, struct db *db, struct adapter *a, const struct trust *trust, bool plain,
          struct err *e)
{
    struct db_param storage[PLACES][OWNERS_PARAMS];
    struct db_stmt detect, stmts[PLACES];
    struct db_reply reply;

    assert_int_equal(adapter_detects(a, &detect), 1);
    if (!db_do(db, s->loop, &(struct db_call){.stmts = &detect, .n = 1}, &reply, e))
        fail_msg("%s: %s", s->name, e->text);
    int n = adapter_take(a, reply.results, NULL);
    assert_in_range(n, 0, PLACES);
    db_reply_done(&reply);
    for (int i = 0; i < n; i++)
        stmts[i] = adapter_owners(a, i, true, storage[i]);
    if (n > 0 && !db_do(db, s->loop, &(struct db_call){.stmts = stmts, .n = n}, &reply, e))
        fail_msg("%s: %s", s->name, e->text);
    bool proved = n > 0 && adapter_owners_proved(reply.results, n);
    if (n > 0 && !(proved && plain)) {
        db_reply_done(&reply);
        for (int i = 0; i < n; i++)
            stmts[i] = adapter_owners(a, i, false, storage[i]);
        if (!db_do(db, s->loop, &(struct db_call){.stmts = stmts, .n = n}, &reply, e))
            fail_msg("%s: %s", s->name, e->text);
    }
    struct adapter_wanted wish = {NULL, s->database, "", trust};
    bool ok = adapter_choose(a, n ? reply.results : NULL, &wish, e);
    db_reply_done(&reply);
    if (proved && (e->kind == ERR_DENIED ||
                   adapter_no_acts(a))) /* the proof must never hold where owners.sql fails */
        fail_msg("%s: owners_plain.sql finds no stranger, owners.sql does: %s", s->name, e->text);
    return ok;
}

static bool
open_as(struct scene *s, struct db *db, struct adapter *a, const struct trust *trust, struct err *e)
{
    return open_with(s, db, a, trust, false, e);
}

static bool
open_it(struct scene *s, struct adapter *a, const struct trust *trust, struct err *e)
{
    return open_as(s, s->db, a, trust, e);
}

static struct adapter *
adapter_of(const struct scene *s)
{
    struct err e = {0};
    struct adapter *a = adapter_open(s->name, &e);

    if (!a)
        fail_msg("%s: %s", s->name, e.text);
    return a;
}

static void
ignore(void *ctx, const struct adapter_finding *f)
{
    (void)ctx, (void)f;
}

/* Every section of it, those that change something too. */
static void
run_all(struct scene *s, struct adapter *a)
{
    struct err e = {0};

    if (!adapter_check(&(struct adapter_trial){a, s->db, s->loop, true}, ignore, NULL, &e))
        fail_msg("%s: %s", s->name, e.text);
}

/* --- traps ------------------------------------------------------------------------------------ */

/* $T the table, $S its schema, $N its name, $C its columns with their types; $R the stranger, $H
 * his schema, $X a name for what is made; $M the file. What is undone is as before. */
struct trap {
    const char *name, *set, *unset;
    const char *unsafe; /* what springs it when somebody does it unsafely; NULL = ours is refused
                         * because of the owner, although nothing that we do could run it */
    int since;          /* the server's version that has it, 15; 0 = each */
    bool is_open;       /* systems that call no function of their schema are opened all the same */
    bool is_for_acts;   /* only acts would run it: every system is opened, for reading */
    bool is_harmless;   /* none of our statements can run it: every system is opened */
    bool replaces;      /* it stands where the table was: perhaps nothing is found */
    const char *plain;  /* push, claim, complete by plain SQL; NULL = they work, and nothing runs */
    bool may_not;       /* some tables can't have it: what the server then says ends the trial */
};
#define READ "select count(*) from $T"
#define ADD "insert into $T default values"
#define CHANGE "update $T set id = id"

#define ASIDE "alter table $T rename to put_aside;"
#define BACK "alter table $S.put_aside rename to $N"

/* Who owns the table comes near the end: what an index computes would run as this role. */
/* clang-format off */
static const struct trap traps[] = {
    {.name = "view",
     .plain = "| fails | runs | fails |",
     .replaces = true,
     .set = ASIDE
     "create view $T as select p.* from $S.put_aside p right join (select $H.boom() as b) x on x.b;"
     "grant usage on schema $S to $R; grant select on $S.put_aside to $R;"
     "alter view $T owner to $R",
     .unset = "drop view $T; revoke all on $S.put_aside from $R;"
              "revoke all on schema $S from $R;" BACK,
     .unsafe = READ},
    {.name = "view of the table's owner",
     .plain = "| fails | runs | fails |",
     .replaces = true,
     .set = ASIDE
     "create view $T as select p.* from $S.put_aside p right join (select $H.boom() as b) x on x.b",
     .unset = "drop view $T;" BACK,
     .unsafe = READ},
    {.name = "foreign table",
     .plain = "| fails | runs | fails |",
     .replaces = true,
     .set = ASIDE "create foreign table $T ($C) server his options (program 'touch $M');"
                  "alter foreign table $T owner to $R",
     .unset = "drop foreign table $T;" BACK,
     .unsafe = READ},
    {.name = "type",
     .set = "alter table $T add column $X $H.word",
     .unsafe = "update $T set $X = 'x'; select $X::text from $T",
     .unset = "alter table $T drop column $X"},
    {.name = "policy",
     .set = "alter table $T enable row level security;"
            "create policy $X on $T using ($H.boom())",
     .unsafe = "set role ops; select * from $T; reset role",
     .unset = "drop policy $X on $T; alter table $T disable row level security"},
    {.name = "default",
     .plain = "| runs | works | works |",
     .set = "alter table $T add column $X boolean;"
            "alter table $T alter $X set default $H.boom()",
     .unsafe = ADD,
     .unset = "alter table $T drop column $X"},
    {.name = "check",
     .plain = "| runs | works | works |",
     .set = "alter table $T add constraint $X check ($H.boom()) not valid",
     .unsafe = ADD,
     .unset = "alter table $T drop constraint $X"},
    {.name = "trigger",
     .plain = "| runs | works | runs |",
     .set = "grant usage on schema $S to $R;"
            "grant trigger on all tables in schema $S to $R; set role $R;"
            "create trigger $X before insert or update or delete on $T for each row "
            "execute function $H.spring(); reset role",
     .unsafe = CHANGE,
     .unset = "drop trigger $X on $T; revoke all on all tables in schema $S from $R;"
              "revoke all on schema $S from $R",
     .is_for_acts = true},
    {.name = "generated column",
     .plain = "| runs | works | works |",
     .set = "alter table $T add column $X boolean generated always as ($H.calm()) stored",
     .unsafe = ADD,
     .unset = "alter table $T drop column $X"},
    {.name = "index expression",
     .plain = "| runs | works | works |",
     .set = "create index $X on $T (($H.calm()))",
     .unsafe = ADD,
     .unset = "drop index $S.$X"},
    {.name = "index predicate",
     .plain = "| runs | runs | runs |",
     .set = "create index $X on $T ((1)) where $H.calm()",
     .unsafe = ADD,
     .unset = "drop index $S.$X"},
    {.name = "domain",
     .set = "create domain $H.dom as text default 'x' check ($H.boom());"
            "alter domain $H.dom owner to $R; alter table $T add column $X $H.dom[]",
     .unsafe = "select array['x']::$H.dom[]",
     .unset = "alter table $T drop column $X; drop domain $H.dom"},
    {.name = "rule",
     .set = "create rule $X as on update to $T do also select $H.boom()",
     .unsafe = CHANGE,
     .unset = "drop rule $X on $T"},
    {.name = "function and operator",
     .plain = "| refused | refused | refused |",
     .set = "create function $S.lower(text) returns text language sql as 'select $H.boom()::text';"
            "alter function $S.lower(text) owner to $R;"
            "create function $H.same(oid, regclass) returns boolean language sql as "
            "'select $H.boom()';"
            "create operator $S.= (leftarg = oid, rightarg = regclass, function = $H.same);"
            "alter operator $S.= (oid, regclass) owner to $R",
     .unsafe = "set search_path = $S, pg_catalog; select lower('a'::text); reset search_path",
     .unset = "drop function $S.lower(text); drop operator $S.= (oid, regclass);"
              "drop function $H.same(oid, regclass)",
     .is_open = true},
    {.name = "condition of a trigger",
     .set = "grant usage on schema $S to $R;"
            "grant trigger on all tables in schema $S to $R; set role $R;"
            "create trigger $X before update on $T for each row when ($H.boom()) "
            "execute function pg_catalog.suppress_redundant_updates_trigger(); reset role",
     .unsafe = CHANGE,
     .unset = "drop trigger $X on $T; revoke all on all tables in schema $S from $R;"
              "revoke all on schema $S from $R",
     .is_for_acts = true},
    {.name = "view in the condition of a trigger",
     .set = "grant usage on schema $S to $R;"
            "grant trigger on all tables in schema $S to $R; set role $R;"
            "create view $H.$X as select $H.boom() as b;"
            "create trigger $X before update on $T for each row "
            "when (pg_catalog.table_to_xml('$H.$X', true, true, '') is not null) "
            "execute function pg_catalog.suppress_redundant_updates_trigger(); reset role",
     .unsafe = CHANGE,
     .unset = "drop trigger $X on $T; drop view $H.$X; revoke all on all tables in schema $S "
              "from $R; revoke all on schema $S from $R",
     .is_for_acts = true},
    {.name = "known function in the condition of a trigger",
     .set = "grant usage on schema $S to $R;"
            "grant trigger on all tables in schema $S to $R; set role $R;"
            "create trigger $X before update on $T for each row "
            "when (pg_catalog.query_to_xml('select $H.boom()', true, true, '') is not null) "
            "execute function pg_catalog.suppress_redundant_updates_trigger(); reset role",
     .unsafe = CHANGE,
     .unset = "drop trigger $X on $T; revoke all on all tables in schema $S from $R;"
              "revoke all on schema $S from $R",
     .is_for_acts = true},
    {.name = "argument of a known trigger function",
     .set = "create function public.$X() returns trigger language plpgsql as "
            "'begin execute tg_argv[0]; return new; end';"
            "grant usage on schema $S, public to $R;"
            "grant trigger on all tables in schema $S to $R; set role $R;"
            "create trigger $X before update on $T for each row "
            "execute function public.$X('select $H.boom()'); reset role",
     .unsafe = CHANGE,
     .unset = "drop trigger $X on $T; drop function public.$X();"
              "revoke all on all tables in schema $S from $R; revoke all on schema $S from $R",
     .is_for_acts = true},
    {.name = "statistics",
     .plain = "| works | runs | runs |",
     .set = "create statistics $H.$X on (($H.calm())) from $T",
     .unsafe = READ " where id > 0",
     .unset = "drop statistics $H.$X",
     .since = 14},
    {.name = "foreign table as a child",
     .plain = "| works | runs | fails |",
     .set = "create foreign table $H.child () inherits ($T) server his "
            "options (program 'touch $M'); alter foreign table $H.child owner to $R",
     .unsafe = READ,
     .unset = "drop foreign table $H.child",
     .may_not = true},
    {.name = "child with a trigger",
     .set = "create table $H.child () inherits ($T); alter table $H.child owner to $R;"
            "create trigger $X before update on $H.child for each row "
            "execute function $H.spring()",
     .unsafe = "insert into $H.child default values;" CHANGE,
     .unset = "drop table $H.child",
     .may_not = true},
    {.name = "trigger on a child",
     .set = "create table $H.child () inherits ($T); grant trigger on $H.child to $R;"
            "set role $R; create trigger $X before update on $H.child for each row "
            "execute function $H.spring(); reset role",
     .unsafe = "insert into $H.child default values;" CHANGE,
     .unset = "drop table $H.child",
     .is_for_acts = true,
     .may_not = true},
    {.name = "cast in the condition of a trigger",
     .set = "grant usage on schema $S to $R;"
            "grant trigger on all tables in schema $S to $R; set role $R;"
            "create type $H.one as enum ('x'); create type $H.two as enum ('x');"
            "create function $H.cast_word($H.one) returns $H.two language sql as "
            "'select ''x''::$H.two where $H.boom()';"
            "create cast ($H.one as $H.two) with function $H.cast_word($H.one);"
            "create function $H.is_x($H.two) returns boolean language plpgsql as "
            "'begin return true; end';"
            "create trigger $X before update on $T for each row "
            "when ($H.is_x('x'::$H.one::$H.two)) "
            "execute function pg_catalog.suppress_redundant_updates_trigger(); reset role",
     .unsafe = CHANGE,
     .unset = "drop trigger $X on $T; drop function $H.is_x($H.two);"
              "drop cast ($H.one as $H.two); drop function $H.cast_word($H.one);"
              "drop type $H.one, $H.two; revoke all on all tables in schema $S from $R;"
              "revoke all on schema $S from $R",
     .is_for_acts = true},
    {.name = "foreign key of a table of his own",
     .set = "alter table $T add column $X integer unique;"
            "grant usage on schema $S to $R; grant references ($X) on $T to $R;"
            "set role $R; create table $H.other (id integer references $T ($X) "
            "on update cascade on delete cascade); create trigger $X before update on $H.other "
            "for each row execute function $H.spring(); reset role",
     .unset = "drop table $H.other; alter table $T drop column $X;"
              "revoke all on schema $S from $R",
     .is_for_acts = true,
     .may_not = true},
    {.name = "cast of the owner's type",
     .set = "create type $S.$X_word as enum ('x'); grant usage on schema $S to $R;"
            "create function $H.cast_word($S.$X_word) returns text language sql as "
            "'select $H.boom()::text';"
            "alter function $H.cast_word($S.$X_word) owner to $R;"
            "create cast ($S.$X_word as text) with function $H.cast_word($S.$X_word) "
            "as implicit; alter table $T add column $X $S.$X_word",
     .unsafe = "update $T set $X = 'x'; select $X::text from $T",
     .unset = "alter table $T drop column $X; drop cast ($S.$X_word as text);"
              "drop function $H.cast_word($S.$X_word); drop type $S.$X_word;"
              "revoke all on schema $S from $R"},
    {.name = "cast between two types",
     .set = "create type $S.$X_word as enum ('x'); create type $S.$X_other as enum ('x');"
            "grant usage on schema $S to $R;"
            "create function $H.cast_word($S.$X_word) returns $S.$X_other language sql as "
            "'select ''x''::$S.$X_other where $H.boom()';"
            "alter function $H.cast_word($S.$X_word) owner to $R;"
            "create cast ($S.$X_word as $S.$X_other) "
            "with function $H.cast_word($S.$X_word) as implicit;"
            "alter table $T add column $X $S.$X_word, add column $X_other $S.$X_other",
     .unsafe = "update $T set $X = 'x'; update $T set $X_other = $X",
     .unset = "alter table $T drop column $X, drop column $X_other;"
              "drop cast ($S.$X_word as $S.$X_other);"
              "drop function $H.cast_word($S.$X_word); drop type $S.$X_word, $S.$X_other;"
              "revoke all on schema $S from $R"},
    {.name = "cast to a type of his own",
     .set = "create type $S.$X_word as enum ('x'); grant usage on schema $S to $R;"
            "alter table $T add column $X $S.$X_word; set role $R;"
            "create function $H.cast_word($S.$X_word) returns $H.word language sql as "
            "'select ''x''::$H.word where $H.boom()';"
            "create cast ($S.$X_word as $H.word) with function $H.cast_word($S.$X_word) "
            "as implicit; create type $H.other as enum ('x');"
            "create cast ($H.other as $S.$X_word) with inout as implicit; reset role",
     .unsafe = "update $T set $X = 'x'; select $X::$H.word from $T",
     .unset = "alter table $T drop column $X; drop cast ($S.$X_word as $H.word);"
              "drop function $H.cast_word($S.$X_word); drop type $S.$X_word cascade;"
              "drop type $H.other; revoke all on schema $S from $R",
     .is_harmless = true},
    {.name = "operator class",
     .plain = "| runs | works | works |",
     .set = "create operator class $S.$X_class for type integer using btree as "
            "operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, "
            "function 1 $H.compare(integer, integer);"
            "create index $X on $T ((1) $S.$X_class)",
     .unsafe = ADD "; " ADD,
     .unset = "drop index $S.$X; drop operator class $S.$X_class using btree;"
              "drop operator family $S.$X_class using btree"},
    {.name = "field of a composite type",
     .set = "create domain $H.dom as text check ($H.boom());"
            "alter domain $H.dom owner to $R; create type $S.$X_row as (a $H.dom);"
            "alter table $T add column $X $S.$X_row",
     .unsafe = "update $T set $X = '(x)'",
     .unset = "alter table $T drop column $X; drop type $S.$X_row; drop domain $H.dom"},
    {.name = "collation",
     .set = "create collation $H.$X (locale = 'C'); alter collation $H.$X owner to $R;"
            "alter table $T add column $X text collate $H.$X",
     .unset = "alter table $T drop column $X; drop collation $H.$X"},
    {.name = "table behind a foreign key",
     .set = "create table $H.other (id integer primary key);"
            "alter table $H.other owner to $R;"
            "alter table $T add column $X integer references $H.other",
     .unset = "alter table $T drop column $X; drop table $H.other"},
    {.name = "owner of the table",
     .set = "alter table $T owner to $R",
     .unset = "alter table $T owner to current_user"},
    {.name = "owner of the schema",
     .plain = "| refused | refused | refused |",
     .set = "alter schema $S owner to $R",
     .unset = "alter schema $S owner to current_user"},
    {.name = "event trigger of a superuser",
     .set = "create event trigger $X on ddl_command_start execute function $H.event()",
     .unsafe = "create table $H.made ()",
     .unset = "drop event trigger $X; drop table if exists $H.made",
     .is_open = true},
};
/* clang-format on */
enum { TRAPS = sizeof traps / sizeof *traps };

/* Each trap has a stranger of its own, so that many can be set at once: each must be found. */
static struct who {
    char role[8], schema[8], word[12];
} of_trap(size_t k)
{
    struct who w;

    snprintf(w.role, sizeof w.role, "m%02u", (unsigned)k % 100);
    snprintf(w.schema, sizeof w.schema, "h%02u", (unsigned)k % 100);
    snprintf(w.word, sizeof w.word, "trap%02u", (unsigned)k % 100);
    return w;
}

static int
set_up(void **state)
{
    int failed = core_setup(state);

    (void)setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    PGconn *c = pg_connect(pg_dsn("postgres"));
    snprintf(mark, sizeof mark, "%.150s/trap", pg_value(c, "show data_directory"));
    pg_run(c, "create role mallory; create role app; create role ops login; create role look login;"
              "create role work login; grant pg_execute_server_program to ops, look, work");
    for (size_t k = 0; k < TRAPS; k++)
        pg_run(c, "create role %s", of_trap(k).role);
    PQfinish(c);
    return failed;
}

static void
let_them_in(PGconn *c)
{
    for (size_t k = 0; k < TRAPS; k++) {
        struct who w = of_trap(k);
        let_in(c, w.role, w.schema);
    }
}

/* What is wrong with words of trap k: a SQLSTATE, "" = nothing. */
static const char *
try_words(struct scene *s, size_t k, const char *words)
{
    const struct who w = of_trap(k);
    struct buf sql = {0};
    const char *dot = strchr(s->table, '.');
    static char columns[20000];

    snprintf(
        columns, sizeof columns, "%s",
        strstr(words, "$C")
            ? pg_value(
                  s->conn,
                  "select string_agg(format('%%I %%s', attname, format_type(atttypid, atttypmod)), "
                  "', ' order by attnum) from pg_attribute where attrelid = '%s'::regclass and "
                  "attnum > 0 and not attisdropped",
                  s->table)
            : "");
    for (; *words; words++) {
        if (*words != '$') {
            buf_add(&sql, words, 1);
            continue;
        }
        switch (*++words) {
        case 'T':
            buf_str(&sql, s->table);
            break;
        case 'S':
            buf_add(&sql, s->table, (size_t)(dot - s->table));
            break;
        case 'N':
            buf_str(&sql, dot + 1);
            break;
        case 'R':
            buf_str(&sql, w.role);
            break;
        case 'H':
            buf_str(&sql, w.schema);
            break;
        case 'X':
            buf_str(&sql, w.word);
            break;
        case 'M':
            buf_str(&sql, mark);
            break;
        case 'C':
            buf_str(&sql, columns);
            break;
        default:
            fail_msg("$%c in a trap", *words);
        }
    }
    const char *state = pg_try(s->conn, "%s", sql.data);
    buf_free(&sql);
    return state;
}

static void
run_words(struct scene *s, size_t k, const char *words)
{
    const char *state = try_words(s, k, words);

    if (*state)
        fail_msg("%s: %s: %s", s->name, words, PQerrorMessage(s->conn));
}

/* Whether the adapter calls functions of its schema, or runs with a path on it. */
static bool
calls_functions(const char *name)
{
    static const char *const names[] = {"native", "graphile_worker", "pgmq", "pgq",
                                        "procrastinate"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* One look, in a transaction as the console sends it; true = it was answered. hard: with the guard
 * that it sends now and then. */
static bool
look(struct scene *s, struct db *db, struct adapter *a, bool hard)
{
    struct db_param none[ADAPTER_PARAMS];
    struct db_stmt stmt = adapter_bind(a, SEC_QUEUES, NULL, none);
    struct db_call call = {.stmts = &stmt, .n = 1, .looks_hard = hard};
    struct db_reply reply;
    struct err e = {0};

    adapter_settings(a, false, &call);
    bool ok = db_do(db, s->loop, &call, &reply, &e);
    if (!ok && !reply.is_guarded)
        fail_msg("%s", e.text);
    if (!ok)
        assert_int_equal(e.kind, ERR_DENIED);
    db_reply_done(&reply);
    return ok;
}

/* What becomes of a system in which the trap is set: a letter of the matrix. */
static char
expected(const struct scene *s, const struct trap *t)
{
    return t->is_for_acts                                                ? 'r'
           : t->is_harmless || (t->is_open && !calls_functions(s->name)) ? 'o'
                                                                         : 'x';
}

/* It is opened for reading, and what could act is refused. The server itself runs no trigger in a
 * transaction that only reads. */
static void
check_reads(struct scene *s, struct adapter *a)
{
    if (!look(s, s->reader, a, false) || !look(s, s->reader, a, true) || look(s, s->db, a, false))
        fail_msg("%s: not opened for reading alone", s->name);
}

/* The roles that a login is told about: who keeps the system closed, or its acts refused. */
static void
list_named(const struct adapter *a, bool opens, struct buf *b)
{
    const struct adapter_found *f;

    buf_clear(b);
    buf_str(b, opens && adapter_no_acts(a) ? adapter_no_acts(a) : "");
    for (int i = 0; !opens && (f = adapter_found(a, i)); i++)
        buf_printf(b, " %s", f->owners->names);
}

/* One login meets the traps that are set: it is told of each stranger, and nothing has run. A table
 * that was put aside may not be found at all. */
static void
try_login(struct scene *s, struct adapter *a, const bool *set, char letter, struct db *db)
{
    struct err e = {0};
    struct buf named = {0};
    const char *who;
    bool replaces = false, opens = open_as(s, db, a, NULL, &e);

    list_named(a, opens, &named);
    for (size_t k = 0; k < TRAPS; k++)
        replaces |= set[k] && traps[k].replaces;
    if (opens != (letter != 'x') || (!opens && e.kind != ERR_DENIED && !replaces))
        fail_msg("%s, %c: %s", s->name, letter, opens ? "it is opened" : e.text);
    for (size_t k = 0; k < TRAPS; k++)
        if (set[k] && letter != 'o' && (opens || e.kind == ERR_DENIED) &&
            !strstr(named.data, of_trap(k).role))
            fail_msg("%s, %s: nobody is told of %s: %s", s->name, traps[k].name, of_trap(k).role,
                     named.data);
    if (opens && db == s->db && letter == 'r')
        check_reads(s, a);
    else if (opens && db == s->db)
        run_all(s, a);
    if ((who = has_sprung()))
        fail_msg("%s, %c: code of %s has run", s->name, letter, who);
    buf_free(&named);
}

/* Sets the trap if the server allows it. */
static bool
set_trap(struct scene *s, size_t k)
{
    pg_run(s->conn, "begin");
    bool is_set = !*try_words(s, k, traps[k].set);
    if (!is_set && !traps[k].may_not)
        fail_msg("%s, %s: %s", s->name, traps[k].name, PQerrorMessage(s->conn));
    pg_run(s->conn, is_set ? "commit" : "rollback");
    return is_set;
}

/* Sets all traps of a letter that still have none in `cells`, at most one of those that take the
 * table's place, and tries each login. False = there was none. */
static bool
try_round(struct scene *s, struct adapter *a, char letter, char cells[TRAPS])
{
    bool set[TRAPS] = {false}, some = false, replaces = false;

    for (size_t k = 0; k < TRAPS && !replaces; k++) {
        const struct trap *t = &traps[k];
        if (cells[k] || expected(s, t) != letter)
            continue;
        if (t->replaces && some)
            break;
        replaces = t->replaces;
        set[k] = t->since * 10000 <= PQserverVersion(s->conn) && set_trap(s, k);
        cells[k] = set[k] ? letter : '.';
        some |= set[k];
    }
    (void)has_sprung(); /* what an index or a generated column computes as it is made */
    if (some)
        try_login(s, a, set, letter, s->db);
    for (int i = 0; some && i < LOGINS && s->logins[i]; i++)
        try_login(s, a, set, letter, s->logins[i]);
    for (size_t k = TRAPS; k-- > 0;)
        if (set[k])
            run_words(s, k, traps[k].unset);
    (void)has_sprung(); /* by ourselves */
    return some;
}

/* Each trap springs where somebody is careless: on a table of its own. */
static void
test_each_springs(void **state)
{
    struct scene s = {.name = "plain", .table = "plain.plain"};

    (void)state;
    s.conn = pg_connect(pg_newdb("plain"));
    let_mallory_in(s.conn);
    let_them_in(s.conn);
    pg_run(s.conn, "create schema plain; create table plain.plain (id serial, word text);"
                   "insert into plain.plain values (1), (2);"
                   "grant usage on schema plain to ops; grant select on plain.plain to ops");
    for (size_t k = 0; k < TRAPS; k++) {
        const struct trap *t = &traps[k];
        if (!t->unsafe || t->since * 10000 > PQserverVersion(s.conn))
            continue;
        run_words(&s, k, t->set);
        (void)has_sprung();
        pg_run(s.conn, "begin");
        run_words(&s, k, t->unsafe);
        pg_run(s.conn, "rollback");
        if (!has_sprung())
            fail_msg("%s: the trap does not work", t->name);
        run_words(&s, k, t->unset);
    }
    PQfinish(s.conn);
}

/* The server refuses these statements on tables of others: so there is no trap of their kind. */
static void
test_what_the_server_refuses(void **state)
{
    static const struct {
        const char *what, *sqlstate;
        int since;
    } cases[] = {
        {"set role mallory; create table his.child () inherits (plain.plain)",                      "42501", 0 },
        {"set role mallory; alter table plain.plain add column trap his.word",                      "42501", 0 },
        {"set role mallory; alter table plain.plain alter id set default 1",                        "42501", 0 },
        {"set role mallory; create index on plain.plain (id)",                                      "42501", 0 },
        {"set role mallory; create statistics his.trap on id, word from plain.plain",               "42501", 0 },
        {"set role mallory; create policy trap on plain.plain using (his.boom())",                  "42501", 0 },
        {"set role mallory; create rule trap as on select to plain.plain do instead select 1, 'x'",
         "42501",                                                                                            0 },
        {"set role mallory; create trigger trap before update on plain.plain for each row "
         "execute function his.spring()",                                                  "42501", 0 },
        {"set role mallory; create event trigger trap on ddl_command_start "
         "execute function his.event()",                                                   "42501", 0 },
        {"set role mallory; create cast (plain.word as text) with inout as implicit",               "42501", 0 },
        {"set role mallory; create operator class his.trap default for type integer using btree as "
         "function 1 his.compare(integer, integer)",                                       "42501", 0 },
        {"set role mallory; create publication trap for table plain.plain",                         "42501", 0 },
        {"create publication trap for table plain.plain where (his.calm())",                        "0A000", 15},
        {"security label on table plain.plain is 'x'",                                              "22023", 0 },
    };
    PGconn *c = pg_connect(pg_newdb("refuses"));

    (void)state;
    let_mallory_in(c);
    pg_run(c, "create schema plain; create table plain.plain (id integer, word text);"
              "create type plain.word as enum ('x'); grant usage on schema plain to mallory;"
              "grant select, insert, update, delete on plain.plain to mallory;"
              "grant create on database refuses to mallory");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].since * 10000 > PQserverVersion(c))
            continue;
        const char *got = pg_try(c, "%s", cases[i].what);
        if (strcmp(got, cases[i].sqlstate) != 0)
            fail_msg("%s: %s, %s", cases[i].what, got, PQerrorMessage(c));
        pg_run(c, "reset role");
    }
    assert_false(has_sprung());
    PQfinish(c);
}

static void
write_head(struct buf *b)
{
    buf_str(
        b,
        "# Whose code runs: what a stranger can put in the way of each queue system\n\n"
        "Written by `UPDATE=1 make check T=test_strangers`, and asserted by it. Each cell was "
        "tried as a superuser and as a\nlogin that may only read, our own queue as each of its "
        "roles. No code of the strangers ran. `x`: the system is not\nopened, `r`: it is opened "
        "for reading and acts are refused, `o`: it is opened and all its sections run, `.`: the\n"
        "server allows no such object there.\n\n| |");
    for (int i = 0; i < sql_adapters_n; i++)
        buf_printf(b, " %s |", sql_adapters[i].name);
    buf_str(b, "\n|---|");
    for (int i = 0; i < sql_adapters_n; i++)
        buf_str(b, "---|");
    buf_str(b, "\n");
}

/* --- our own queue by plain SQL ---------------------------------------------------------------- */

/* What becomes of a call by plain SQL, which asks nobody but the server: refused = by only_ours(),
 * runs = the stranger's code has run, fails = another error, works. */
static const char *
plain_call(PGconn *c, const char *role, const char *sql)
{
    pg_run(c, "begin; set local role %s", role);
    const char *got = pg_try(c, "%s", sql);
    bool refused = strstr(PQerrorMessage(c), "nothing is done before") != NULL;
    pg_run(c, "rollback");
    return has_sprung() ? "runs" : refused ? "refused" : *got ? "fails" : "works";
}

#define WORKS "| works | works | works |"

static const char *
plain_words(size_t k)
{
    return traps[k].plain ? traps[k].plain : WORKS;
}

static void
test_plain_sql(void **state)
{
    static const char *const calls[][2] = {
        {"queues_pusher", "select queues.push('q')"                                      },
        {"queues_worker", "select queues.claim('n', 1)"                                  },
        {"queues_worker", "select queues.complete('n', array[lease], array[version],"
                          " array[seq]) from t.held where n = 1"},
    };
    struct scene s;
    struct buf is = {0};

    (void)state;
    open_scene(&s, "native", "p");
    let_them_in(s.conn);
    pg_run(s.conn, "set search_path = queues, pg_temp; select t.many('q', 'a', 9), schedule('s'), "
                   "t.claim('n', 3); reset search_path; grant usage on schema t to public; "
                   "grant select on t.held to public");
    for (size_t k = 0; k < TRAPS; k++) {
        if (traps[k].since * 10000 > PQserverVersion(s.conn) || !set_trap(&s, k))
            continue;
        (void)has_sprung(); /* what an index or a generated column computes as it is made */
        PGconn *fresh = core_join(s.database);
        buf_clear(&is);
        for (int i = 0; i < 3; i++)
            buf_printf(&is, "| %s ", plain_call(fresh, calls[i][0], calls[i][1]));
        buf_str(&is, "|");
        if (strcmp(is.data, plain_words(k)) != 0)
            fail_msg("%s: %s, not %s", traps[k].name, is.data, plain_words(k));
        PQfinish(fresh);
        run_words(&s, k, traps[k].unset);
        (void)has_sprung();
    }
    buf_free(&is);
    close_scene(&s);
}

/* The second table: what test_plain_sql asserts, a row for each outcome. */
static void
write_plain(struct buf *b)
{
    buf_str(b, "\n## Our own queue by plain SQL\n\n"
               "What becomes of a call in a new session, as a role of the queue (asserted, too). "
               "`refused`: by the function itself.\n`runs`: the stranger's code has run, as the "
               "owner of the queue. `fails`: another error. Such code gets to our table\nthrough "
               "its owner, or through the right TRIGGER or REFERENCES: the program opens no queue "
               "that has it (column native\nabove), and doctor and check name it; plain SQL looks "
               "only at who may create in the schema.\n\n"
               "| push | claim | complete | with |\n|---|---|---|---|\n");
    for (size_t k = 0; k < TRAPS; k++) {
        size_t first = 0;
        while (strcmp(plain_words(first), plain_words(k)) != 0)
            first++;
        if (first < k)
            continue;
        buf_printf(b, "%s %s", plain_words(k), traps[k].name);
        for (size_t i = k + 1; i < TRAPS; i++)
            if (!strcmp(plain_words(i), plain_words(k)))
                buf_printf(b, ", %s", traps[i].name);
        buf_str(b, " |\n");
    }
}

/* --- the page ---------------------------------------------------------------------------------- */

/* tests/sql/strangers.md is what has come out. */
static void
test_matrix(void **state)
{
    char(*cells)[TRAPS] = test_calloc((size_t)sql_adapters_n, sizeof *cells);
    struct buf b = {0};
    bool is_whole = true; /* every class is one of this server */

    (void)state;
    for (int i = 0; i < sql_adapters_n; i++) {
        struct scene s;
        struct err e = {0};
        open_scene(&s, sql_adapters[i].name, "s");
        struct adapter *a = adapter_of(&s);
        let_them_in(s.conn);
        for (const char *letter = "xro"; *letter; letter++)
            while (try_round(&s, a, *letter, cells[i]))
                ;
        for (size_t k = 0; k < TRAPS; k++)
            is_whole &= traps[k].since * 10000 <= PQserverVersion(s.conn);
        if (!open_it(&s, a, NULL, &e)) /* all traps are gone */
            fail_msg("%s: %s", s.name, e.text);
        adapter_free(a);
        close_scene(&s);
    }
    write_head(&b);
    for (size_t k = 0; k < TRAPS; k++) {
        buf_printf(&b, "| %s |", traps[k].name);
        for (int i = 0; i < sql_adapters_n; i++)
            buf_printf(&b, " %c |", cells[i][k]);
        buf_str(&b, "\n");
    }
    write_plain(&b);
    if (is_whole)
        golden_text("tests/sql/strangers.md", b.data);
    buf_free(&b);
    test_free(cells);
}

/* --- what comes later ------------------------------------------------------------------------- */

/* An opened system changes: the transaction that would meet it ends before its first statement. */
static void
change_it(struct scene *s, struct db *watcher, const struct trust *app)
{
    struct adapter *a = adapter_of(s);
    struct err e = {0};

    pg_run(s->conn, "alter table tasks owner to app");
    assert_false(open_it(s, a, NULL, &e));
    assert_true(open_it(s, a, app, &e));
    assert_true(look(s, watcher, a, false) && look(s, s->db, a, false));
    assert_true(look(s, watcher, a, true));
    /* a trigger runs when something is changed, and not before: a reader learns of it in time */
    pg_run(s->conn, "grant trigger on tasks to mallory; set role mallory;"
                    "create trigger trap before update on tasks for each row "
                    "execute function his.spring(); reset role");
    assert_true(look(s, watcher, a, false));
    assert_false(look(s, watcher, a, true));
    assert_false(look(s, s->db, a, false));
    assert_true(open_it(s, a, app, &e));
    assert_true(look(s, watcher, a, true) && !look(s, s->db, a, false));
    pg_run(s->conn, "drop trigger trap on tasks");
    assert_true(look(s, watcher, a, false) && !look(s, watcher, a, true)); /* acts are possible */
    assert_true(open_it(s, a, app, &e) && !adapter_no_acts(a));
    assert_true(look(s, watcher, a, true) && look(s, s->db, a, false));
    /* who may create objects there has changed: looked at anew, and at each time from then on */
    pg_run(s->conn, "grant create on schema public to public");
    assert_false(look(s, watcher, a, false));
    assert_true(open_it(s, a, app, &e));
    assert_true(look(s, watcher, a, false));
    pg_run(s->conn, "alter table tasks owner to mallory");
    assert_false(look(s, watcher, a, false));
    assert_false(look(s, s->db, a, false));
    assert_false(open_it(s, a, app, &e));
    pg_run(s->conn, "alter table tasks owner to app");
    assert_true(open_it(s, a, app, &e) && look(s, watcher, a, false));
    if (PQserverVersion(s->conn) >= 150000) { /* public belongs to the owner of the database */
        pg_run(s->conn, "alter database %s owner to mallory", s->database);
        assert_false(look(s, watcher, a, false) || look(s, s->db, a, false));
        assert_false(open_it(s, a, app, &e));
        pg_run(s->conn, "alter database %s owner to current_user", s->database);
        assert_true(open_it(s, a, app, &e) && look(s, watcher, a, false));
    }
    /* another schema of that name */
    pg_run(s->conn, "alter schema public rename to aside; create schema public");
    assert_false(look(s, watcher, a, false));
    adapter_free(a);
}

static void
test_guard(void **state)
{
    struct scene s;
    struct trust *app = trust_new();

    (void)state;
    trust_names(app, "app");
    open_scene(&s, "tasks_table", "g");
    pg_run(s.conn, "revoke create on schema public from public"); /* as it is from 15 on */
    change_it(&s, s.reader, app);
    assert_false(has_sprung());
    trust_free(app);
    close_scene(&s);
}

static int
rows_of(PGconn *c, const char *sql)
{
    PGresult *r = pg_query(c, "%s", sql);
    int n = PQntuples(r);

    PQclear(r);
    return n;
}

/* owners_plain.sql holds only while nothing here belongs to anybody but superusers and this login:
 * whatever kind it is, wherever it is, and if its owner is a role that initdb made, too. */
static void
test_the_cheap_proof(void **state)
{
    static const char *const kinds[][2] = {
        {"table public.thing()",                                                   "table public.thing"                     },
        {"view public.thing as select 1",                                          "view public.thing"                      },
        {"sequence public.thing",                                                  "sequence public.thing"                  },
        {"function public.thing() returns int language sql as 'select 1'",
         "function public.thing()"                                                                                          },
        {"type public.thing as enum ('a')",                                        "type public.thing"                      },
        {"domain public.thing as int",                                             "domain public.thing"                    },
        {"operator public.### (leftarg = int, rightarg = int, function = int4pl)",
         "operator public.### (int, int)"                                                                                   },
        {"operator class public.thing for type int using btree as operator 1 <",
         "operator class public.thing using btree"                                                                          },
        {"operator family public.thing using hash",                                "operator family public.thing using hash"},
        {"collation public.thing (locale = 'C')",                                  "collation public.thing"                 },
        {"schema thing",                                                           "schema thing"                           },
    };
    static const char *const owners[] = {"mallory", "pg_monitor"};
    PGconn *c = core_new("cheap");

    (void)state;
    pg_run(c, "reset all");
    pg_run(c, "prepare proof (text, bool) as %s", console_sql("owners_plain"));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int k = 0; k < 2; k++) {
            pg_run(c, "begin");
            pg_run(c, "create %s", kinds[i][0]);
            assert_true(rows_of(c, "execute proof ('queues', false)") > 0);
            pg_run(c, "alter %s owner to %s", kinds[i][1], owners[k]);
            if (rows_of(c, "execute proof ('queues', false)") > 0)
                fail_msg("%s of %s is not seen", kinds[i][1], owners[k]);
            assert_string_equal(pg_try(c, "execute proof ('queues', true)"), "22P02");
            pg_run(c, "rollback");
        }
    PQfinish(c);
}

/* The guard of a system that was opened by the cheap proof: whatever comes later ends an act before
 * its first statement, if the act could touch it, and only then. */
static void
test_the_cheap_guard(void **state)
{
    struct scene s;
    struct err e = {0};

    (void)state;
    open_scene(&s, "tasks_table", "c");
    pg_run(s.conn, "drop schema his cascade; drop server his");
    struct adapter *a = adapter_of(&s);
    assert_true(open_with(&s, s.db, a, NULL, true, &e));
    assert_true(look(&s, s.db, a, false));
    let_mallory_in(s.conn); /* elsewhere in the database */
    let_them_in(s.conn);
    assert_true(look(&s, s.db, a, false));
    pg_run(s.conn, "grant trigger on tasks to mallory; set role mallory;"
                   "create trigger trap before update on tasks for each row "
                   "execute function his.spring(); reset role");
    assert_false(look(&s, s.db, a, false));
    pg_run(s.conn, "drop trigger trap on tasks");
    assert_true(look(&s, s.db, a, false));
    for (size_t k = 0; k < TRAPS; k++) {
        const struct trap *t = &traps[k];
        if (t->replaces || t->is_open || t->is_harmless || t->may_not ||
            t->since * 10000 > PQserverVersion(s.conn))
            continue;
        run_words(&s, k, t->set);
        (void)has_sprung();
        if (look(&s, s.db, a, false))
            fail_msg("%s: not noticed", t->name);
        if (has_sprung())
            fail_msg("%s: mallory's code has run", t->name);
        run_words(&s, k, t->unset);
        (void)has_sprung();
        assert_true(look(&s, s.db, a, false));
    }
    adapter_free(a);
    close_scene(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_springs),    cmocka_unit_test(test_what_the_server_refuses),
        cmocka_unit_test(test_the_cheap_proof), cmocka_unit_test(test_the_cheap_guard),
        cmocka_unit_test(test_guard),           cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_plain_sql),
    };

    return cmocka_run_group_tests(tests, set_up, core_teardown);
}
