/*
 * No plan depends on what the planner knows, and nothing wades through the dead. An installation is
 * measured fresh; then 100,000 dead rows lie in every table that changes at work, kept by a
 * snapshot that somebody holds, and everything is measured again in three states of the statistics:
 * taken when the tables were full, taken when they were empty again, and none at all, as after
 * pg_upgrade. Each call may touch twice as many pages as before and some more (whoever plans looks
 * at the ends of indexes, over up to a hundred dead pages each time); planned for its values,
 * planned for any, and the workers' calls by a role that has switched off what they need. SOME is
 * that, and what has died since the mark of leases moved.
 *
 * What is called stands in tests/sql/plans.calls: every statement of sql/client, every section of
 * the native adapter, those of sql/console that read our tables; "not: WHY" stands with those that
 * read none. A statement without a call fails the test, and so does a function of the schema that
 * names a table and that no call reaches. "all: N WHY" after a call says that it may touch N pages
 * more, and why. "first: WHY" says that what it does depends on the clock: on the first look behind
 * many that have gone it reads them, once. So it has three tries to keep its bound, and FIRST is
 * its SOME: the mark of leases has moved longer ago on a busy machine.
 *
 * PLANS_DEAD: so many dead rows; PLANS_ALL: prints every figure; PLANS_ONLY=TEXT: calls only
 * statements with that in their name; PLANS_WHY=TEXT: explains what the
 * calls do that have the text in their name or their values (auto_explain).
 */
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/adapter/sections.h"
#include "model/base/err.h"
#include "model/base/mem.h"
#include "tests/sql/core.h"

enum { DEAD = 100000, SOME = 600, FIRST = 1500, STATES = 4, MODES = 3, CALLS = 400, ARGS = 32 };

static const char *const states[STATES] = {"fresh", "statistics of full tables",
                                           "statistics of empty tables", "no statistics"};
enum { AUTO, GENERIC, ROLE };
static const char *const modes[MODES] = {"auto", "force_generic_plan", "a role without indexes"};
static const char *const settings[MODES] = {
    "set plan_cache_mode = auto", "set plan_cache_mode = force_generic_plan",
    "set plan_cache_mode = auto; set enable_indexscan = off; set enable_indexonlyscan = off"};
/* Statistics of full tables are the kindest, so one way to plan is enough there. */
static const bool measured[STATES][MODES] = {
    {true,  true,  false},
    {true,  false, false},
    {true,  true,  true },
    {false, true,  false}
};

struct call {
    const char *name, *before, *args;
    int64_t all;              /* pages that it may touch beyond the others' bound */
    bool is_not;              /* it is not called */
    bool has_first;           /* its first look may read what the next does not */
    char *sql;                /* the statement, with $1, $2, ... */
    const struct section *of; /* of the native adapter */
    int64_t pages[STATES][MODES];
};

static struct call calls[CALLS];
static int ncalls;
static struct sections native;
static struct arena *arena; /* of all text here */

/* --- what is called --------------------------------------------------------------------------- */

static char *
read_text(const char *path)
{
    char name[PATH_MAX];
    const char *src = getenv("SRCDIR");
    size_t size = 1 << 20;
    char *text = arena_alloc(arena, size);

    snprintf(name, sizeof name, "%s/%s", src ? src : ".", path);
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
    return text;
}

static const char *
text_of(const struct sql_text *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i].name, name))
            return list[i].text;
    fail_msg("there is no statement %s", name);
    return NULL;
}

static char *
with_schema(const char *sql)
{
    static const char word[] = "{schema}";
    char *out = arena_alloc(arena, strlen(sql) * 2 + 1), *to = out;

    for (const char *s = sql; *s;)
        if (!strncmp(s, word, sizeof word - 1)) {
            memcpy(to, "queues", 6);
            to += 6;
            s += sizeof word - 1;
        } else
            *to++ = *s++;
    *to = '\0';
    return out;
}

static void
find_statement(struct call *c)
{
    struct err e = {0};

    char *bound = NULL;

    if (!strncmp(c->name, "client ", 7))
        c->sql = with_schema(text_of(sql_client, sql_client_n, c->name + 7));
    else if (!strncmp(c->name, "console ", 8))
        c->sql = with_schema(text_of(sql_console, sql_console_n, c->name + 8));
    else if (!strncmp(c->name, "native ", 7)) {
        c->of = sections_find(&native, c->name + 7);
        if (!c->of || !sections_bind(c->of, "queues", &bound, &e))
            fail_msg("%s: %s", c->name, e.text);
        c->sql = arena_printf(arena, "%s", bound);
        free(bound);
    }
}

/* Blocks between empty lines; see the head of the file. */
static void
read_calls(void)
{
    char *text = read_text("tests/sql/plans.calls"), *more = NULL;

    for (char *line = strtok_r(text, "\n", &more); line; line = strtok_r(NULL, "\n", &more)) {
        bool is_name =
            *line != '#' && (!strncmp(line, "client ", 7) || !strncmp(line, "native ", 7) ||
                             !strncmp(line, "console ", 8) || !strcmp(line, "sql"));
        struct call *c = &calls[ncalls - 1];
        if (*line == '#')
            continue;
        if (is_name) {
            assert_in_range(++ncalls, 1, CALLS);
            c = &calls[ncalls - 1];
            c->name = line;
            c->before = c->args = "";
            find_statement(c);
        } else if (!strncmp(line, "all: ", 5)) {
            c->all = strtoll(line + 5, NULL, 10);
            assert_true(c->all > 0); /* all: PAGES WHY */
        } else if (!strncmp(line, "not: ", 5))
            c->is_not = true;
        else if (!strncmp(line, "first: ", 7))
            c->has_first = true;
        else if (!strncmp(line, "before: ", 8))
            c->before = line + 8;
        else
            c->args = *c->args ? arena_printf(arena, "%s %s", c->args, line) : line;
    }
}

/* The arguments of a section in the order of its parameters, as one list of SQL. */
static char *
section_args(const struct call *c)
{
    const char *params = section_note(c->of, "params");
    char *names = arena_printf(arena, "%s", params ? params : ""), *more = NULL,
         *list = arena_printf(arena, "%s", "");

    for (char *name = strtok_r(names, " ", &more); name; name = strtok_r(NULL, " ", &more)) {
        char *given = arena_printf(arena, "%s", c->args), *rest = NULL;
        const char *value = "null";
        for (char *a = strtok_r(given, "|", &rest); a; a = strtok_r(NULL, "|", &rest))
            if (!strncmp(a, name, strlen(name)) && a[strlen(name)] == '=')
                value = a + strlen(name) + 1;
        list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "", value);
    }
    return list;
}

/* The call as a statement to be explained: a prepared one with its values, or plain. */
static const char *
statement_of(PGconn *c, const struct call *call, int n)
{
    if (!call->sql)
        return call->args;
    const char *args = call->of ? section_args(call) : call->args;
    pg_run(c, "deallocate all");
    pg_run(c, "prepare s%d as %s", n, call->sql);
    if (!*args)
        return arena_printf(arena, "execute s%d", n);
    PGresult *res = pg_query(c, "select %s", args);
    char *list = arena_printf(arena, "%s", "");
    for (int i = 0; i < PQnfields(res); i++) {
        char *value = PQgetisnull(res, 0, i) ? NULL
                                             : PQescapeLiteral(c, PQgetvalue(res, 0, i),
                                                               strlen(PQgetvalue(res, 0, i)));
        list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "", value ? value : "null");
        PQfreemem(value);
    }
    PQclear(res);
    return arena_printf(arena, "execute s%d(%s)", n, list);
}

/* --- measuring -------------------------------------------------------------------------------- */

static void
print_plan(void *arg, const PGresult *res)
{
    (void)arg;
    fprintf(stderr, "%s", PQresultErrorMessage(res)); /* print_message() would cut it */
}

/* What a call does in detail, where it is asked for. */
static void
explain(PGconn *c, const struct call *call)
{
    const char *why = getenv("PLANS_WHY");

    if (!why)
        return;
    bool is_asked = strstr(why, call->name) || strstr(call->args, why) || strstr(call->before, why);
    PQsetNoticeReceiver(c, print_plan, NULL);
    pg_run(c,
           "load 'auto_explain'; set auto_explain.log_nested_statements = on;"
           " set auto_explain.log_analyze = on; set auto_explain.log_buffers = on;"
           " set auto_explain.log_timing = off; set auto_explain.log_level = 'notice';"
           " set auto_explain.log_min_duration = %d",
           is_asked ? 0 : -1);
}

static int
dead_rows(void)
{
    const char *wanted = getenv("PLANS_DEAD");

    return wanted ? (int)strtol(wanted, NULL, 10) : DEAD;
}

/* What the call may touch in that state. */
static int64_t
bound(const struct call *c, int mode)
{
    return 2 * c->pages[0][mode == ROLE ? AUTO : mode] + (c->has_first ? FIRST : SOME) +
           c->all * dead_rows() / DEAD;
}

/* Steps until one that took over has looked at every queue. A step also counts a queue where nobody
 * has done it for six minutes, which a busy machine may need up to here: that is another call. */
static void
settle(PGconn *c)
{
    int steps = 0;

    pg_run(c, "update checked set at = now(); update meta set installed_at = now();"
              " delete from scheduler where term > 0 and holder <> 'test'"); /* of another call */
    do {
        pg_run(c, "select schedule('test')");
        assert_true(++steps < 500);
    } while (pg_int(
        c, "select count(settled) from (select settled from tick order by tick desc limit 1) t"));
}

/* As if the last fold had taken three seconds longer: then the next one comes after a minute, and
 * not in the step that is measured, whenever that is. A fold is another call. */
static void
put_off_fold(PGconn *c, bool off)
{
    pg_run(c,
           "update fold set at = clock_timestamp(), ms = greatest(0, ms %s 3000)"
           " where fold = (select fold from fold order by fold desc limit 1)",
           off ? "+" : "-");
}

/* Pages that the call touches. However slow the machine is, a scheduler that has begun still has
 * its turn: one that takes over looks at all queues again, from their first job on. */
static int64_t
touched(PGconn *c, const struct call *call, int n)
{
    if (!strcmp(call->name, "client schedule"))
        settle(c); /* and sweeps, if ten seconds have gone by */
    if (*call->before)
        pg_run(c, "%s", call->before);
    bool after_step = strstr(call->before, "select schedule('test')");
    bool without_fold = after_step || strstr(call->before, "select t.later()");
    if (after_step) {
        settle(c);
        pg_run(c, "select t.later()"); /* what a step does once a second, each time */
    }
    if (without_fold)
        put_off_fold(c, true);
    const char *ask = statement_of(c, call, n);
    explain(c, call);
    char *quoted = PQescapeLiteral(c, ask, strlen(ask));
    pg_run(c, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    PGresult *res = PQexec(c, arena_printf(arena, "select * from t.pages(%s)", quoted));
    bool done = PQresultStatus(res) == PGRES_TUPLES_OK;
    const char *code = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    if (!done && strcmp(code ? code : "", "57014") != 0)
        fail_msg("%s: %s", ask, PQresultErrorMessage(res));
    int64_t pages = done ? strtoll(PQgetvalue(res, 0, 0), NULL, 10) : INT64_MAX;
    PQclear(res);
    PQfreemem(quoted);
    if (without_fold)
        put_off_fold(c, false);
    return pages;
}

/* A new session: each of its statements is planned in this state. */
static void
measure(int state, int mode)
{
    PGconn *c = core_join("plans");

    pg_run(c, "set track_functions = 'all'; set statement_timeout = '60 s'; %s", settings[mode]);
    for (int i = 0; i < ncalls; i++) {
        struct call *call = &calls[i];
        /* what a role has set turns the console's own statements, but none of a worker's */
        if (call->is_not || (mode == ROLE && strncmp(call->name, "client ", 7) != 0) ||
            (getenv("PLANS_ONLY") && !strstr(call->name, getenv("PLANS_ONLY"))))
            continue;
        int64_t *pages = &call->pages[state][mode];
        int tries = 1;
        *pages = touched(c, call, i);
        while (call->has_first && tries < 3 && (state == 0 || *pages > bound(call, mode))) {
            int64_t next = touched(c, call, i);
            *pages = next < *pages ? next : *pages;
            tries++;
        }
        if (getenv("PLANS_ALL"))
            print_message("%s %s: %s (%.50s; %.70s): %lld%s\n", states[state], modes[mode],
                          call->name, call->before, call->args, (long long)*pages,
                          call->all ? ", all" : "");
    }
    PQfinish(c);
}

static int
wading(int state, int mode)
{
    int bad = 0;

    for (int i = 0; i < ncalls; i++) {
        const struct call *c = &calls[i];
        int64_t fresh = c->pages[0][mode == ROLE ? AUTO : mode], now = c->pages[state][mode];
        if (now <= bound(c, mode))
            continue;
        print_message(
            "%s, %s: %s (%.100s; %.100s) touches %d pages, fresh %d, %d more are allowed\n",
            states[state], modes[mode], c->name, c->before, c->args, (int)now, (int)fresh,
            (int)c->all);
        bad++;
    }
    return bad;
}

/* A VACUUM or ANALYZE that nobody asked for would change what is measured: none comes (t.still). */
static void
no_plan_wades(void **state)
{
    PGconn *c = core_new("plans"), *holder = core_join("plans");
    int bad = 0;

    (void)state;
    pg_file(c, "tests/sql/plans.sql");
    pg_run(c, "select t.still(); select t.live(); analyze");
    measure(0, AUTO);
    measure(0, GENERIC);
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    pg_run(c, "select t.clear()");
    pg_run(c, "select t.fill(%d)", dead_rows());
    pg_run(c, "analyze");
    for (int s = 1; s < STATES; s++) {
        if (s == 1) /* in a transaction of its own: its triggers are off */
            pg_run(c, "select t.empty()");
        else if (s == 2)
            pg_run(c, "select t.clear(); analyze");
        else
            pg_run(c, "select t.forget()");
        pg_run(c, "select t.live()");
        for (int m = 0; m < MODES; m++)
            if (measured[s][m]) {
                measure(s, m);
                bad += wading(s, m);
            }
    }
    PQfinish(holder);
    PQfinish(c);
    assert_int_equal(bad, 0);
}

/* --- nothing is left out ---------------------------------------------------------------------- */

static bool
is_called(const char *kind, const char *name)
{
    for (int i = 0; i < ncalls; i++)
        if (!strncmp(calls[i].name, kind, strlen(kind)) &&
            !strcmp(calls[i].name + strlen(kind), name))
            return true;
    return false;
}

static void
every_statement_is_called(void **state)
{
    int missing = 0;

    (void)state;
    for (int i = 0; i < sql_client_n; i++)
        if (!is_called("client ", sql_client[i].name)) {
            print_message("sql/client/%s.sql is not called\n", sql_client[i].name);
            missing++;
        }
    for (int i = 0; i < sql_console_n; i++)
        if (!is_called("console ", sql_console[i].name)) {
            print_message("sql/console/%s.sql is not called\n", sql_console[i].name);
            missing++;
        }
    for (int i = 0; i < native.n; i++)
        if (!is_called("native ", native.list[i].name)) {
            print_message("section %s of native.sql is not called\n", native.list[i].name);
            missing++;
        }
    assert_int_equal(missing, 0);
}

static void
every_function_is_reached(void **state)
{
    PGconn *c = core_join("plans");

    (void)state;
    expect(c, "", "select coalesce(string_agg(name, ', ' order by name), '') from t.unreached");
    PQfinish(c);
}

static int
setup(void **state)
{
    struct err e = {0};

    core_setup(state);
    arena = arena_new();
    if (!sections_read("native.sql", text_of(sql_adapters, sql_adapters_n, "native"), &native, &e))
        fail_msg("%s", e.text);
    read_calls();
    return 0;
}

static int
teardown(void **state)
{
    sections_free(&native);
    arena_free(arena);
    return core_teardown(state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_statement_is_called),
                                       cmocka_unit_test(no_plan_wades),
                                       cmocka_unit_test(every_function_is_reached)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
