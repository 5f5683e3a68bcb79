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
#include "model/base/mem.h"
#include "tests/sql/core.h"

enum { PLACES = 4 };

struct scene {
    const char *name; /* of the adapter */
    char table[80];   /* the first one that it reads, qualified */
    char database[64];
    PGconn *conn; /* a superuser's, for setting traps */
    struct loop *loop;
    struct db *db; /* as the program connects */
};

static char mark[200]; /* the file that a trap leaves */

/* --- the scene -------------------------------------------------------------------------------- */

static int
set_up(void **state)
{
    int failed = core_setup(state);

    (void)setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    PGconn *c = pg_connect(pg_dsn("postgres"));
    snprintf(mark, sizeof mark, "%.150s/trap", pg_value(c, "show data_directory"));
    PQfinish(c);
    return failed;
}

static bool
has_sprung(void)
{
    bool yes = access(mark, F_OK) == 0;

    if (yes)
        unlink(mark);
    return yes;
}

/* Mallory has a schema of his own, with the trap in it. */
static void
let_mallory_in(PGconn *c)
{
    if (pg_int(c, "select count(*) from pg_roles where rolname = 'mallory'") == 0)
        pg_run(c, "create role mallory; create role app; create role ops login");
    pg_run(c, "create extension if not exists file_fdw");
    pg_run(c,
           "create schema his authorization mallory; grant usage on schema his to public;"
           "set role mallory;"
           "create function his.boom() returns boolean language plpgsql as $f$ begin "
           "execute 'copy (select 1) to program ''cat >%s'''; return true; end $f$;"
           "create function his.spring() returns trigger language plpgsql as $f$ begin "
           "perform his.boom(); return new; end $f$;"
           "create function his.calm() returns boolean language plpgsql immutable as $f$ begin "
           "return his.boom(); end $f$;"
           "create type his.word as enum ('x');"
           "create function his.word_text(his.word) returns text language plpgsql as $f$ begin "
           "perform his.boom(); return 'x'; end $f$;"
           "create cast (his.word as text) with function his.word_text(his.word) as implicit;"
           "reset role;"
           "create server his foreign data wrapper file_fdw",
           mark);
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
    struct db_options o = {.conninfo = pg_dsn(s->database), .schema = "pg_catalog", .once = true};
    s->db = db_new(s->loop, &o);
}

static void
close_scene(struct scene *s)
{
    db_free(s->db);
    loop_free(s->loop);
    PQfinish(s->conn);
}

/* --- opening, as the program does ------------------------------------------------------------- */

static bool
open_it(struct scene *s, struct adapter *a, const struct trust *trust, struct err *e)
{
    struct db_param storage[PLACES][OWNERS_PARAMS];
    struct db_stmt detect, stmts[PLACES];
    struct db_reply reply;

    assert_int_equal(adapter_detects(a, true, &detect), 1);
    if (!db_do(s->db, s->loop, &(struct db_call){.stmts = &detect, .n = 1}, &reply, e))
        fail_msg("%s: %s", s->name, e->text);
    int n = adapter_take(a, reply.results, NULL);
    assert_in_range(n, 0, PLACES);
    db_reply_done(&reply);
    for (int i = 0; i < n; i++)
        stmts[i] = adapter_owners(a, i, storage[i]);
    if (n > 0 && !db_do(s->db, s->loop, &(struct db_call){.stmts = stmts, .n = n}, &reply, e))
        fail_msg("%s: %s", s->name, e->text);
    struct adapter_wish wish = {NULL, s->database, "", trust};
    bool ok = adapter_choose(a, n ? reply.results : NULL, &wish, e);
    db_reply_done(&reply);
    return ok;
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

/* $T the table, $S its schema, $M the file, $C the table's columns with their types. What is undone
 * is as before. */
struct trap {
    const char *name, *set, *unset;
    bool springs; /* a select on the table by a superuser springs it: shows that the trap works */
    bool is_open; /* systems that call no function of their schema are opened all the same */
};

#define ASIDE "alter table $T rename to put_aside;"
#define BACK "alter table $S.put_aside rename to $N"

/* clang-format off */
static const struct trap traps[] = {
    {.name = "view",
     .set = ASIDE
     "create view $T as select p.* from $S.put_aside p right join (select his.boom() as b) x on x.b;"
     "grant usage on schema $S to mallory; grant select on $S.put_aside to mallory;"
     "alter view $T owner to mallory",
     .unset = "drop view $T; revoke all on $S.put_aside from mallory;"
              "revoke all on schema $S from mallory;" BACK,
     .springs = true},
    {.name = "view of the table's owner",
     .set = ASIDE
     "create view $T as select p.* from $S.put_aside p right join (select his.boom() as b) x on x.b",
     .unset = "drop view $T;" BACK,
     .springs = true},
    {.name = "foreign table",
     .set = ASIDE "create foreign table $T ($C) server his options (program 'touch $M');"
                  "alter foreign table $T owner to mallory",
     .unset = "drop foreign table $T;" BACK,
     .springs = true},
    {.name = "type",
     .set = "alter table $T add column trap his.word",
     .unset = "alter table $T drop column trap"},
    {.name = "policy",
     .set = "alter table $T enable row level security;"
            "create policy trap on $T using (his.boom())",
     .unset = "drop policy trap on $T; alter table $T disable row level security"},
    {.name = "default",
     .set = "alter table $T add column trap boolean;"
            "alter table $T alter trap set default his.boom()",
     .unset = "alter table $T drop column trap"},
    {.name = "check",
     .set = "alter table $T add constraint trap check (his.boom()) not valid",
     .unset = "alter table $T drop constraint trap"},
    {.name = "trigger",
     .set = "grant usage on schema $S to mallory;"
            "grant trigger on all tables in schema $S to mallory; set role mallory;"
            "create trigger trap before insert or update or delete on $T for each row "
            "execute function his.spring(); reset role",
     .unset = "drop trigger trap on $T; revoke all on all tables in schema $S from mallory;"
              "revoke all on schema $S from mallory"},
    {.name = "generated column",
     .set = "alter table $T add column trap boolean generated always as (his.calm()) stored",
     .unset = "alter table $T drop column trap"},
    {.name = "index expression",
     .set = "create index trap on $T ((his.calm()))",
     .unset = "drop index $S.trap"},
    {.name = "index predicate",
     .set = "create index trap on $T ((1)) where his.calm()",
     .unset = "drop index $S.trap"},
    {.name = "domain",
     .set = "create domain his.dom as text default 'x' check (his.boom());"
            "alter domain his.dom owner to mallory; alter table $T add column trap his.dom[]",
     .unset = "alter table $T drop column trap; drop domain his.dom"},
    {.name = "rule",
     .set = "create rule trap as on update to $T do also select his.boom()",
     .unset = "drop rule trap on $T"},
    {.name = "owner of the table",
     .set = "alter table $T owner to mallory",
     .unset = "alter table $T owner to current_user"},
    {.name = "owner of the schema",
     .set = "alter schema $S owner to mallory",
     .unset = "alter schema $S owner to current_user"},
    {.name = "function and operator",
     .set = "create function $S.lower(text) returns text language sql as 'select his.boom()::text';"
            "alter function $S.lower(text) owner to mallory;"
            "create function his.same(oid, regclass) returns boolean language sql as "
            "'select his.boom()';"
            "create operator $S.= (leftarg = oid, rightarg = regclass, function = his.same);"
            "alter operator $S.= (oid, regclass) owner to mallory",
     .unset = "drop function $S.lower(text); drop operator $S.= (oid, regclass);"
              "drop function his.same(oid, regclass)",
     .is_open = true},
};
/* clang-format on */

static void
run_words(struct scene *s, const char *words)
{
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
    pg_run(s->conn, "%s", sql.data);
    buf_free(&sql);
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

static void
try_trap(struct scene *s, const struct trap *t)
{
    struct err e = {0};
    struct adapter *a = adapter_of(s);

    run_words(s, t->set);
    (void)has_sprung(); /* what an index or a generated column computes as it is made */
    if (t->springs) {
        pg_run(s->conn, "select count(*) from %s", s->table);
        if (!has_sprung())
            fail_msg("%s, %s: the trap does not work", s->name, t->name);
    }
    bool opens = open_it(s, a, NULL, &e);
    if (opens != (t->is_open && !calls_functions(s->name)))
        fail_msg("%s, %s: %s", s->name, t->name, opens ? "it is opened" : e.text);
    if (opens)
        run_all(s, a);
    else if (e.kind == ERR_DENIED)
        assert_non_null(strstr(e.text, "is not opened: owned by mallory"));
    else if (!t->springs) /* a view or a foreign table is none of its tables: nothing is found */
        fail_msg("%s, %s: %s", s->name, t->name, e.text);
    if (has_sprung())
        fail_msg("%s, %s: mallory's code has run", s->name, t->name);
    adapter_free(a);
    run_words(s, t->unset);
}

static void
test_matrix(void **state)
{
    (void)state;
    for (int i = 0; i < sql_adapters_n; i++) {
        struct scene s;
        struct err e = {0};
        open_scene(&s, sql_adapters[i].name, "s");
        for (size_t k = 0; k < sizeof traps / sizeof *traps; k++)
            try_trap(&s, &traps[k]);
        struct adapter *a = adapter_of(&s);
        if (!open_it(&s, a, NULL, &e)) /* all traps are gone */
            fail_msg("%s: %s", s.name, e.text);
        adapter_free(a);
        close_scene(&s);
    }
}

/* --- what comes later ------------------------------------------------------------------------- */

/* One look, in a transaction as the console sends it; true = it was answered. */
static bool
look(struct scene *s, struct db *db, struct adapter *a)
{
    struct db_param none[ADAPTER_PARAMS];
    struct db_stmt stmt = adapter_bind(a, SEC_QUEUES, NULL, none);
    struct db_call call = {.stmts = &stmt, .n = 1};
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

/* An opened system changes: the transaction that would meet it ends before its first statement. */
static void
change_it(struct scene *s, struct db *watcher, const struct trust *app)
{
    struct adapter *a = adapter_of(s);
    struct err e = {0};

    pg_run(s->conn, "alter table tasks owner to app");
    assert_false(open_it(s, a, NULL, &e));
    assert_true(open_it(s, a, app, &e));
    assert_true(look(s, watcher, a) && look(s, s->db, a));
    /* a trigger runs when something is changed, and not before */
    pg_run(s->conn, "grant trigger on tasks to mallory; set role mallory;"
                    "create trigger trap before update on tasks for each row "
                    "execute function his.spring(); reset role");
    assert_true(look(s, watcher, a));
    assert_false(look(s, s->db, a));
    pg_run(s->conn, "drop trigger trap on tasks");
    assert_true(look(s, s->db, a));
    /* who may create objects there has changed: looked at anew, and at each time from then on */
    pg_run(s->conn, "grant create on schema public to public");
    assert_false(look(s, watcher, a));
    assert_true(open_it(s, a, app, &e));
    assert_true(look(s, watcher, a));
    pg_run(s->conn, "alter table tasks owner to mallory");
    assert_false(look(s, watcher, a));
    assert_false(look(s, s->db, a));
    assert_false(open_it(s, a, app, &e));
    pg_run(s->conn, "alter table tasks owner to app");
    assert_true(open_it(s, a, app, &e) && look(s, watcher, a));
    /* another schema of that name */
    pg_run(s->conn, "alter schema public rename to aside; create schema public");
    assert_false(look(s, watcher, a));
    adapter_free(a);
}

static void
test_guard(void **state)
{
    struct scene s;
    struct trust *app = trust_new();

    (void)state;
    trust_names(app, "app");
    open_scene(&s, "seed_teti", "g");
    pg_run(s.conn, "revoke create on schema public from public"); /* as it is from 15 on */
    struct db_options o = {
        .conninfo = pg_dsn(s.database), .schema = "pg_catalog", .once = true, .read_only = true};
    struct db *watcher = db_new(s.loop, &o);
    change_it(&s, watcher, app);
    assert_false(has_sprung());
    trust_free(app);
    db_free(watcher);
    close_scene(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_matrix),
    };

    return cmocka_run_group_tests(tests, set_up, core_teardown);
}
