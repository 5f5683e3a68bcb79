/*
 * Adapters on databases: each built-in one has a fixture (tests/adapters), finds its own and no
 * other, and every section of it runs there and answers what it should, those that change
 * something on jobs in all states. Then what the console says of a login's rights, and what an
 * error's group is.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/sql.h"
#include "model/adapter/adapter.h"
#include "model/adapter/adapter_check.h"
#include "model/adapter/sections.h"
#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/sql/articles.h"
#include "tests/sql/ask.h"
#include "tests/sql/core.h"
#include "tests/sql/other.h"

enum { FIXTURES_MAX = 64, PLACES = 4 };

static struct fixture {
    char name[64];
    bool loaded;
} fixtures[FIXTURES_MAX];
static int nfixtures;

static int
is_fixture(const struct dirent *d)
{
    const char *dot = strchr(d->d_name, '.');

    return dot && dot > d->d_name && !strcmp(dot, ".sql");
}

static int
set_up(void **state)
{
    struct dirent **names;
    const char *src = getenv("SRCDIR");
    char *folder = xasprintf("%s/tests/adapters", src ? src : ".");
    int n = scandir(folder, &names, is_fixture, alphasort);

    free(folder);
    (void)setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    assert_in_range(n, 1, FIXTURES_MAX);
    for (int i = 0; i < n; i++) {
        snprintf(fixtures[i].name, sizeof fixtures[i].name, "%.*s",
                 (int)strcspn(names[i]->d_name, "."), names[i]->d_name);
        free(names[i]);
    }
    free(names);
    nfixtures = n;
    return core_setup(state);
}

/* Connects to the fixture's database, and makes the database at the first call. */
static PGconn *
join(struct fixture *f)
{
    if (f->loaded)
        return pg_connect(pg_dsn(f->name));
    PGconn *conn = pg_fixture(f->name, f->name);
    pg_run(conn, "reset all");
    article_add_columns(conn, f->name);
    f->loaded = true;
    return conn;
}

static bool
is_built_in(const char *name)
{
    for (int i = 0; i < sql_adapters_n; i++)
        if (!strcmp(sql_adapters[i].name, name))
            return true;
    return false;
}

/* The fixture's adapter is a built-in one, or the file in tests/adapters. */
static struct adapter *
adapter_for(const char *name)
{
    struct err e = {0};
    char *file = xasprintf("tests/adapters/%s.adapter.sql", name);
    char *path = is_built_in(name) ? xstrdup(name) : proc_own_copy(file);
    struct adapter *a = adapter_open(path, &e);

    if (!is_built_in(name))
        unlink(path);
    free(path);
    free(file);
    if (!a)
        fail_msg("%s: %s", name, e.text);
    return a;
}

/* --- which is found where -------------------------------------------------------------------- */

static void
test_all_have_a_fixture(void **state)
{
    (void)state;
    for (int i = 0; i < sql_adapters_n; i++) {
        bool has = !strcmp(sql_adapters[i].name, "native");
        for (int k = 0; k < nfixtures; k++)
            has |= !strcmp(fixtures[k].name, sql_adapters[i].name);
        if (!has)
            fail_msg("no tests/adapters/%s.sql", sql_adapters[i].name);
    }
    for (int k = 0; k < nfixtures; k++)
        adapter_free(adapter_for(fixtures[k].name));
}

/* The schemas that the statement returns, in one text. The transaction is set as the watcher sets
 * it. */
static const char *
detected(PGconn *conn, const char *sql)
{
    static char text[500];

    pg_run(conn, "begin read only; set local search_path = pg_catalog, pg_temp");
    PGresult *res = PQexecParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0);
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s\n%s", sql, PQresultErrorMessage(res));
    text[0] = 0;
    for (int i = 0; i < PQntuples(res); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %s", PQgetvalue(res, i, 0));
    PQclear(res);
    pg_run(conn, "rollback");
    return text;
}

/* Runs the detect section of every adapter in this database: only `own` may find something. */
static void
check_detects(PGconn *conn, const char *where, const char *own)
{
    struct err e = {0};
    struct adapter *all = adapter_open(NULL, &e);
    bool found = false;

    assert_non_null(all);
    for (int i = 0; i < adapter_candidates(all); i++) {
        adapter_become(all, i);
        const char *schemas = detected(conn, adapter_sql(all, SEC_DETECT));
        bool is_own = own && !strcmp(adapter_name(all), own);
        if (is_own != (*schemas != 0))
            fail_msg("%s: adapter %s finds \"%s\"", where, adapter_name(all), schemas);
        found |= is_own;
    }
    assert_int_equal(found, own != NULL);
    adapter_free(all);
}

static void
test_matrix(void **state)
{
    (void)state;
    for (int i = 0; i < nfixtures; i++) {
        PGconn *conn = join(&fixtures[i]);
        bool built_in = is_built_in(fixtures[i].name);
        check_detects(conn, fixtures[i].name, built_in ? fixtures[i].name : NULL);
        PQfinish(conn);
    }
    PGconn *conn = pg_connect(pg_newdb("empty"));
    check_detects(conn, "empty", NULL);
    PQfinish(conn);
    conn = core_new("native");
    check_detects(conn, "native", "native");
    PQfinish(conn);
}

/* --- the contract ---------------------------------------------------------------------------- */

struct heard {
    const char *name;
    int sections, bad;
};

/* Acts that no fixture can have rows for: they end sessions of another program. */
static bool
needs_no_rows(enum section_id s)
{
    return s == SEC_TERMINATE || s == SEC_BACKEND_SIGNAL;
}

static void
heard(void *ctx, const struct adapter_finding *f)
{
    struct heard *h = ctx;
    bool idle = section_kinds[f->section].acts && f->rows == 0 && !needs_no_rows(f->section);
    const char *says = f->left_out ? f->text : !f->ok ? f->text : idle ? "changes nothing" : "";

    h->sections++;
    if (!*says)
        return;
    print_error("%s.sql:%d: %s: %s\n", h->name, f->line, section_kinds[f->section].name, says);
    h->bad++;
}

/* Runs every section of the adapter there. */
static void
hear_all(const char *name, const char *database, adapter_finding_fn *fn, struct heard *h)
{
    struct loop *loop = loop_new();
    struct adapter *a = adapter_for(name);
    struct db_options o = {.conninfo = pg_dsn(database),
                           .schema = "pg_catalog",
                           .once = true,
                           .gate = &ask_gate,
                           .stall_warn_ms = -1,
                           .stall_drop_ms = -1};
    struct db *db = db_new(loop, &o);
    struct db_param storage[PLACES][OWNERS_PARAMS];
    struct db_stmt stmt, stmts[PLACES];
    struct db_reply reply;
    struct err e = {0};

    assert_int_equal(adapter_detects(a, &stmt), 1);
    if (!db_do(db, loop, &(struct db_call){.stmts = &stmt, .n = 1}, &reply, &e))
        fail_msg("%s: %s", name, e.text);
    int found = adapter_take(a, reply.results, NULL);
    assert_in_range(found, 1, PLACES);
    db_reply_done(&reply);
    for (int plain = 0; plain < 2; plain++) { /* the short proof is what guards the acts below */
        for (int i = 0; i < found; i++)
            stmts[i] = adapter_owners(a, i, plain, storage[i]);
        if (plain)
            db_reply_done(&reply);
        if (!db_do(db, loop, &(struct db_call){.stmts = stmts, .n = found}, &reply, &e))
            fail_msg("%s: %s", name, e.text);
    }
    assert_true(adapter_owners_proved(reply.results, found));
    if (!adapter_choose(a, reply.results, &(struct adapter_wanted){NULL, database, "", NULL}, &e))
        fail_msg("%s: %s", name, e.text);
    db_reply_done(&reply);
    if (!adapter_check(&(struct adapter_trial){a, db, loop, true}, fn, h, &e))
        fail_msg("%s: %s", name, e.text);
    db_free(db);
    adapter_free(a);
    loop_free(loop);
}

static void
check_contract(const char *name)
{
    struct heard h = {.name = name};

    hear_all(name, name, heard, &h);
    if (h.bad > 0 || h.sections < 5)
        fail_msg("%s: %d of %d sections", name, h.bad, h.sections);
}

static void
heard_wrong(void *ctx, const struct adapter_finding *f)
{
    struct heard *h = ctx;

    h->sections++;
    if (f->left_out || f->ok)
        return;
    print_error("%s.sql:%d: %s: %s\n", h->name, f->line, section_kinds[f->section].name, f->text);
    h->bad++;
}

/* Some versions of a system do not have all words of an enum type. Every section must run there,
 * too. */
static void
test_older_enums(void **state)
{
    static const struct {
        const char *adapter, *type, *word;
    } words[] = {
        {"oban",          "oban_job_state",               "suspended"},
        {"pgqueuer",      "pgqueuer_status",              "failed"   },
        {"procrastinate", "procrastinate_job_status",     "aborting" },
        {"procrastinate", "procrastinate_job_status",     "aborted"  },
        {"procrastinate", "procrastinate_job_event_type", "aborted"  },
    };
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *database = xasprintf("older_%zu", i);
        struct heard h = {.name = words[i].adapter};
        PGconn *conn = pg_fixture(database, words[i].adapter);
        pg_run(conn, "reset all");
        pg_run(conn, "alter type %s rename value '%s' to 'zz_later'", words[i].type, words[i].word);
        PQfinish(conn);
        hear_all(words[i].adapter, database, heard_wrong, &h);
        if (h.bad)
            print_error("%s without %s: %d of %d sections\n", words[i].adapter, words[i].word,
                        h.bad, h.sections);
        bad += h.bad;
        free(database);
    }
    assert_int_equal(bad, 0);
}

static void
test_contract(void **state)
{

    (void)state;
    for (int i = 0; i < nfixtures; i++) {
        PQfinish(join(&fixtures[i]));
        check_contract(fixtures[i].name);
    }
}

/* The screen shows a guard beside its act. Every guard says which jobs the act takes, not which
 * jobs the act refuses. */
static void
test_guards_say_what_is_taken(void **state)
{
    int guards = 0;

    (void)state;
    for (int i = 0; i < nfixtures; i++) {
        struct adapter *a = adapter_for(fixtures[i].name);
        for (int s = 0; s < SEC_COUNT; s++) {
            const char *guard = adapter_note(a, (enum section_id)s, "guard");
            if (guard && strncmp(guard, "only ", 5) != 0)
                fail_msg("%s: %s: guard: %s", fixtures[i].name, section_kinds[s].name, guard);
            guards += guard != NULL;
        }
        adapter_free(a);
    }
    assert_true(guards > 100);
}

/* Every change was rolled back: the same question finds the same rows again. */
static void
test_changes_nothing(void **state)
{
    struct fixture *f = NULL;

    (void)state;
    for (int i = 0; i < nfixtures; i++)
        if (!strcmp(fixtures[i].name, "example_jobs"))
            f = &fixtures[i];
    assert_non_null(f);
    PGconn *conn = join(f);
    static const char digest[] = "select md5(string_agg(j::text, '' order by id)) from shop.jobs j";
    char *before = xstrdup(pg_value(conn, digest));
    check_contract(f->name);
    assert_string_equal(pg_value(conn, digest), before);
    free(before);
    PQfinish(conn);
}

/* A check that never fails is worth nothing: the check must find the error in each wrong file. */
struct wrong_file {
    const char *from, *to, *says;
};

static void
join_named(const char *name)
{
    for (int i = 0; i < nfixtures; i++)
        if (!strcmp(fixtures[i].name, name))
            PQfinish(join(&fixtures[i]));
}

static void
hear_first(void *ctx, const struct adapter_finding *f)
{
    char *text = ctx;

    if (!f->ok && !*text)
        snprintf(text, 300, "%s:%d %s", section_kinds[f->section].name, f->line, f->text);
}

static void
check_wrong(const char *fixture, const char *schema, const struct wrong_file *w)
{
    struct loop *loop = loop_new();
    struct adapter *good = adapter_for(fixture);
    const char *source = adapter_source(good), *at = strstr(source, w->from);
    struct err e = {0};
    char first[300] = "";

    assert_non_null(at);
    char *text = xasprintf("%.*s%s%s", (int)(at - source), source, w->to, at + strlen(w->from));
    struct adapter *a = adapter_parse("x", text, &e);
    if (!a || !adapter_use(a, schema, &e))
        fail_msg("%s", e.text);
    struct db_options o = {.conninfo = pg_dsn(fixture),
                           .schema = "pg_catalog",
                           .once = true,
                           .gate = &ask_gate,
                           .stall_warn_ms = -1,
                           .stall_drop_ms = -1};
    struct db *db = db_new(loop, &o);
    assert_true(adapter_check(&(struct adapter_trial){a, db, loop, true}, hear_first, first, &e));
    if (!strstr(first, w->says))
        fail_msg("says \"%s\", not \"%s\"", first, w->says);
    db_free(db);
    adapter_free(a);
    adapter_free(good);
    free(text);
    loop_free(loop);
}

static void
test_finds_mistakes(void **state)
{
    static const struct wrong_file wrong[] = {
        {"worker as node, 'unknown' as state",                           "worker as node",
         "nodes:80 column state is missing"                                                                                                                },
        {"task as queue, null::boolean",                                 "task as queue, null::text",
         "column paused is not boolean"                                                                                                                    },
        {"from {schema}.jobs\nwhere status <> 'done' group",
         "from {schema}.job\nwhere status <> 'done' group",                                                 "queues:22 42P01"                              },
        {"id::text = any($1::text[]) and status <> 'working'",
         "id = any($1::bigint[]) and status <> 'working'",                                                  "delete:"                                      },
        {"where id::text = any($1::text[]) and status <> 'working'",
         "where $1::text[] is not null and status <> 'working'",                                            "nobody asked for"                             },
        {"and ($4::text[] is null or id::text = any($4::text[]))",
         "and coalesce($4::text[], '{}') is not null",                                                      "answers rows for ids that are none"           },
        {"{ms(due)}",                                                    "extract(epoch from due) * 1000",  "is not bigint"                                },
        {"set status = 'waiting', due = now(), tries = 0, ended = null", "set status = status",
         "as changed, but it is as it was"                                                                                                                 },
        {"'unknown' as state",                                           "'alive' as state",                "state is \"alive\", not one of up asleep late"},
        {"when 'done' then 'completed'",                                 "when 'done' then 'complted'",
         "state is \"complted\", not one of"                                                                                                               },
        {"null::bigint as lease_until_ms",                               "null::bigint as lease_untill_ms",
         "column lease_untill_ms is not known, is it lease_until_ms?"                                                                                      },
        {"-- name: rescue (ids)\n",
         "-- name: reschedule (ids at)\nupdate {schema}.jobs set due = $2::timestamptz\n"
         "where id::text = any($1::text[]) and $2::timestamptz > now()\n"
         "returning id::text, 'scheduled' as state;\n\n-- name: rescue (ids)\n",                            "for a time to come, none for 2001-01-01"      },
    };

    (void)state;
    join_named("example_jobs");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_wrong("example_jobs", "shop", &wrong[i]);
}

/* An act that changes the row, but not what it says: the lease of a job that has nine minutes left
 * is "extended" by 30 s. */
static void
test_finds_a_lease_that_is_not_extended(void **state)
{
    static const struct wrong_file wrong = {
        "      and coalesce(t.visibility_at < now() + $2::interval, true) and $2::interval",
        "      and $2::interval", "as extended, but its lease ends no later than before"};

    (void)state;
    join_named("jobs_table");
    check_wrong("jobs_table", "public", &wrong);
}

/* --- rights ---------------------------------------------------------------------------------- */

/* What ROLE answers to a login about the example: role|can_act|why|warning. */
static const char *
role_of(const char *user)
{
    struct err e = {0};
    struct adapter *a = adapter_for("example_jobs");
    struct db_param storage[ADAPTER_PARAMS];
    static char text[600];
    char *dsn = xasprintf("%s user=%s", pg_dsn("example_jobs"), user);
    PGconn *conn = pg_connect(dsn);

    assert_true(adapter_use(a, "shop", &e));
    struct db_stmt stmt = adapter_bind(a, SEC_ROLE, NULL, storage);
    const char *values[] = {stmt.params[0].value};
    pg_run(conn, "begin read only; set local search_path = pg_catalog, pg_temp");
    PGresult *res = PQexecParams(conn, stmt.sql, 1, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) != 1)
        fail_msg("%s", PQresultErrorMessage(res));
    snprintf(text, sizeof text, "%s|%s|%s|%s", PQgetvalue(res, 0, 0), PQgetvalue(res, 0, 1),
             PQgetvalue(res, 0, 2), PQgetvalue(res, 0, 3));
    PQclear(res);
    PQfinish(conn);
    free(dsn);
    adapter_free(a);
    return text;
}

static void
says(const char *user, const char *wanted)
{
    const char *text = role_of(user);

    if (!strstr(text, wanted))
        fail_msg("%s: \"%s\" is not in \"%s\"", user, wanted, text);
}

static void
test_rights(void **state)
{
    PGconn *conn = NULL;

    (void)state;
    for (int i = 0; i < nfixtures; i++)
        if (!strcmp(fixtures[i].name, "example_jobs"))
            conn = join(&fixtures[i]);
    assert_non_null(conn);
    pg_run(conn,
           "create role nobody_here login; create role reader login; create role writer login;"
           "create role holder login; grant usage on schema shop to reader, writer, holder;"
           "grant select on shop.jobs to reader, writer; grant update on shop.jobs to writer");
    says("nobody_here", "|f|user nobody_here may not look into schema shop: grant usage");
    says("holder", "|f|user holder may not read table jobs: grant select");
    says("reader", "viewer|f|user reader may only look");
    assert_string_equal(role_of("writer"), "operator|t||");
    pg_run(conn, "alter table shop.jobs enable row level security");
    says("reader", "row security of table jobs applies to user reader");
    says("writer", "operator|t||row security of table jobs applies to user writer");
    pg_run(conn, "alter role writer bypassrls");
    assert_string_equal(role_of("writer"), "operator|t||");
    pg_run(conn, "alter schema shop owner to reader; alter table shop.jobs owner to reader");
    assert_string_equal(role_of("reader"), "owner|t||");
    pg_run(conn, "alter table shop.jobs force row level security");
    says("reader", "owner|t||row security of table jobs applies to user reader");
    pg_run(conn,
           "alter schema shop owner to current_user; alter table shop.jobs owner to current_user;"
           "alter table shop.jobs no force row level security; alter table shop.jobs disable row "
           "level security;"
           "drop owned by nobody_here, reader, writer, holder; drop role nobody_here, reader, "
           "writer, holder");
    PQfinish(conn);
}

/* --- the group of an error ------------------------------------------------------------------- */

static void
test_error_key(void **state)
{
    static const char *const errors[] = {
        "timeout after 3.5 s at 10.0.0.7:5432",
        "no row 0xDEADbeef in \"orders\", 'x''y' and `z`",
        "job 11111111-2222-3333-4444-555555555555 gone\n  twice\t  over ",
        "\\d+ abc0123456789 deadbeef 12,5",
        " ~/bin/x: exit 1", /* params_group() */
        "",
    };
    char name[] = "x", sql[] = "select {error_key($1)}", *bound;
    struct section s = {.name = name, .sql = sql};
    struct err e = {0};
    PGconn *conn = core_new("keys");

    (void)state;
    assert_true(sections_bind(&s, "queues", &bound, &e));
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        PGresult *own =
            PQexecParams(conn, "select queues.error_key($1)", 1, NULL, &errors[i], NULL, NULL, 0);
        PGresult *res = PQexecParams(conn, bound, 1, NULL, &errors[i], NULL, NULL, 0);
        if (PQresultStatus(res) != PGRES_TUPLES_OK)
            fail_msg("%s", PQresultErrorMessage(res));
        assert_string_equal(PQgetvalue(res, 0, 0), PQgetvalue(own, 0, 0));
        PQclear(own);
        PQclear(res);
    }
    assert_string_equal(pg_value(conn, "select queues.error_key(' ~/bin/N: exit N')"),
                        "~/bin/N: exit N");
    free(bound);
    PQfinish(conn);
}

/* A failed job without an error is in the group whose key is empty: an act on the group must find
 * the job, and none that has not failed. */
static void
jobs_without_an_error_are_a_group(void **state)
{
    static const struct {
        const char *adapter, *clear;
    } systems[] = {
        {"oban",            "update oban_jobs set errors = '{}'"                        },
        {"river",           "update river_job set errors = null"                        },
        {"solid_queue",     "update solid_queue_failed_executions set error = null"     },
        {"graphile_worker", "update graphile_worker._private_jobs set last_error = null"},
        {"minion",          "update minion_jobs set result = null"                      },
        {"delayed_job",     "update delayed_jobs set last_error = null"                 },
        {"que",             "update que_jobs set last_error_message = null"             },
        {"pgboss",          "update pgboss.job set output = null"                       },
        {"pgqueuer",        "update pgqueuer_log set traceback = null"                  },
    };

    (void)state;
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        struct other f;
        char name[60];
        snprintf(name, sizeof name, "empty_%s", systems[i].adapter);
        other_open(&f, systems[i].adapter, name);
        pg_run(f.conn, "%s", systems[i].clear);
        char *failed = xstrdup(other_look(&f, SEC_JOBS, "id", "states={failed}", NULL));
        const char *found = other_look(&f, SEC_JOBS, "id", "states={failed}", "error=", NULL);
        if (!*failed || strcmp(failed, found) != 0)
            fail_msg("%s: failed \"%s\", in the group \"%s\"", systems[i].adapter, failed, found);
        expect_look(&f, "", SEC_JOBS, "id", "states={ready,scheduled,retry,running,blocked}",
                    "error=");
        free(failed);
        other_close(&f);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_have_a_fixture),
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_older_enums),
        cmocka_unit_test(test_guards_say_what_is_taken),
        cmocka_unit_test(test_changes_nothing),
        cmocka_unit_test(test_finds_mistakes),
        cmocka_unit_test(test_finds_a_lease_that_is_not_extended),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(jobs_without_an_error_are_a_group),
        cmocka_unit_test(test_error_key),
    };

    return cmocka_run_group_tests(tests, set_up, core_teardown);
}
