/*
 * Adapters: the built-in adapters are complete, errors of bad files name the place, and parameters
 * are in the order that the file names.
 */
#include "model/base/console_sql.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/action/action.h"
#include "model/adapter/adapter.h"
#include "model/base/mem.h"

#define HEAD "-- adapter: x\n-- title: X\n-- format: 2\n-- schema: public\n"
#define NEEDED                                                                          \
    "-- name: detect\nselect 1\n-- name: queues\nselect 1\n-- name: counts\nselect 1\n" \
    "-- name: jobs\nselect 1\n"

static void
test_native(void **state)
{
    struct err e = {0};
    struct adapter *a = adapter_load("native", &e);

    (void)state;
    if (!a)
        fail_msg("%s", e.text);
    assert_string_equal(adapter_name(a), "native");
    assert_string_equal(adapter_default_schema(a), "queues");
    assert_null(adapter_schema(a));
    assert_string_not_equal(adapter_sql(a, SEC_DETECT), "");
    assert_string_equal(adapter_sql(a, SEC_JOBS), "");
    assert_true(adapter_use(a, "My \"Queue\"", &e));
    assert_string_equal(adapter_schema(a), "My \"Queue\"");
    assert_non_null(strstr(adapter_sql(a, SEC_JOBS), "\"My \"\"Queue\"\"\".queue"));
    assert_non_null(strstr(adapter_sql(a, SEC_ROLE), "'My \"Queue\"'"));
    for (int s = 0; s < SEC_COUNT; s++)
        if (section_kinds[s].required)
            assert_true(adapter_has(a, (enum section_id)s));
    assert_false(adapter_use(a, "\xff", &e));
    assert_string_equal(adapter_schema(a), "My \"Queue\"");
    adapter_free(a);
    assert_null(adapter_load("nothing", &e));
    assert_int_equal(e.kind, ERR_USAGE);
}

static void
test_binding(void **state)
{
    struct err e = {0};
    struct params p = {0};
    struct db_param storage[ADAPTER_PARAMS];
    struct adapter *a = adapter_parse(
        "x", HEAD NEEDED "-- name: job (limit ids)\nselect $1, $2 from {schema}.t\n", &e);

    (void)state;
    if (!a)
        fail_msg("%s", e.text);
    assert_true(adapter_use(a, "s", &e));
    params_set_int(&p, PARAM_LIMIT, 7);
    params_set(&p, PARAM_QUEUE, "not taken");
    struct db_stmt stmt = adapter_bind(a, SEC_JOB, &p, storage);
    assert_int_equal(stmt.nparams, 2);
    assert_string_equal(stmt.params[0].value, "7");
    assert_null(stmt.params[1].value);
    assert_string_equal(stmt.sql, "select $1, $2 from \"s\".t");
    assert_true(adapter_takes(a, SEC_JOB, PARAM_IDS));
    assert_false(adapter_takes(a, SEC_JOB, PARAM_QUEUE));
    assert_false(adapter_has(a, SEC_NODES));
    char *text = adapter_show(a, SEC_JOB, &p);
    assert_string_equal(text, "select $1, $2 from \"s\".t\n-- $1 limit = 7\n-- $2 ids = NULL");
    free(text);
    params_done(&p);
    adapter_free(a);
}

static void
refused(const char *text, const char *says)
{
    struct err e = {0};

    assert_null(adapter_parse("file.sql", text, &e));
    assert_int_equal(e.kind, ERR_DATA);
    if (!strstr(e.text, says))
        fail_msg("\"%s\" does not say \"%s\"", e.text, says);
}

static void
test_bad_files(void **state)
{
    (void)state;
    refused(HEAD "-- name: detect\nselect 1\n", "queues");
    refused("-- adapter: x\n-- title: X\n-- format: 2\n" NEEDED, "schema");
    refused("-- adapter: x\n-- title: X\n-- format: 1\n-- schema: y\n" NEEDED, "format");
    refused(HEAD NEEDED "-- name: job\n-- params: id\nselect $1\n", "\"id\"");
    refused(HEAD NEEDED "-- name: job\n-- params: ids limit\nselect $1\n", "$1");
    refused(HEAD NEEDED "-- name: job\nselect $1\n", "$1");
    refused(HEAD NEEDED "-- name: job (id)\nselect $1\n", "\"id\"");
    refused(HEAD NEEDED "-- name: job (ids) x\nselect $1\n", "no section is called \"job (ids) x");
    refused(HEAD NEEDED "-- name: job (ids)\n-- params: ids\nselect $1\n",
            "file.sql:14: job: params stands twice");
    refused(HEAD NEEDED "-- name: jbo\nselect 1\n", "jbo");
    refused(HEAD NEEDED "-- name: jobs\nselect 1\n", "jobs");
    refused(HEAD NEEDED "-- name: job\nselect '{schema}'\n", "quoted");
    refused(HEAD "-- vendor: me\n" NEEDED,
            "file.sql:5: no line of the header is called \"vendor\"");
    refused(HEAD "-- schema: me\n" NEEDED, "file.sql:5: schema stands twice");
    refused(HEAD "-- states: ready\n" NEEDED, "file.sql:5: states: each is");
    refused(HEAD "-- states: waiting=x\n" NEEDED, "file.sql:5: states: each is");
    refused(HEAD "-- states: ready=\n" NEEDED, "file.sql:5: states: a word is missing");
    refused(HEAD "-- tested-versions: new\n" NEEDED, "file.sql:5: tested-versions: ranges");
    refused(HEAD "-- search-path: {schema}, {x}\n" NEEDED, "file.sql:5: search-path");
    refused(HEAD "-- id-type: int\n" NEEDED, "file.sql:5: id-type");
    refused(HEAD "-- lacks: jbo: why\n" NEEDED, "file.sql:5: lacks: the name of a section");
    refused(HEAD "-- lacks: purge why\n" NEEDED, "file.sql:5: lacks: the name of a section");
    refused(HEAD "-- lacks: purge: \n" NEEDED, "file.sql:5: lacks: the name of a section");
    refused(HEAD "-- lacks: jobs: why\n" NEEDED, "file.sql:5: lacks: the file has this section");
    refused(HEAD NEEDED "-- name: job\n-- guarded: by me\nselect 1\n",
            "file.sql:14: job: no note is called \"guarded\"");
    refused(HEAD NEEDED "-- name: job\n-- mode: later\nselect 1\n", "file.sql:14: job: mode");
    refused(HEAD NEEDED "-- name: job\n-- range: 1-4\nselect 1\n", "file.sql:14: job: range");
    refused(HEAD NEEDED "-- name: job\n-- requires: luck\nselect 1\n",
            "file.sql:14: job: requires");
    refused(HEAD NEEDED "-- name: job\n-- params: states raw_states\nselect $1, $2\n",
            "file.sql:13: job: raw_states needs");
    refused(HEAD NEEDED "-- name: job\nselect 1\n-- name: purge\nselect 1\n",
            "file.sql:15: purge needs a section purge_preview");
}

/* An adapter file can say what it lacks, and why. The reason is for the section of exactly that
 * name. */
static void
test_lacks(void **state)
{
    struct err e = {0};
    struct adapter *a = adapter_parse(
        "x",
        HEAD "-- lacks: purge: rows go by themselves\n-- lacks: cancel: stop the worker\n" NEEDED
             "-- name: job\nselect 1\n",
        &e);

    (void)state;
    if (!a)
        fail_msg("%s", e.text);
    assert_string_equal(adapter_lacks(a, SEC_PURGE), "rows go by themselves");
    assert_string_equal(adapter_lacks(a, SEC_CANCEL), "stop the worker");
    assert_string_equal(adapter_lacks(a, SEC_CANCEL_WHERE), "this queue system can't do that");
    assert_null(adapter_reason(a, SEC_PURGE_PREVIEW));
    assert_null(adapter_lacks(a, SEC_JOBS));
    assert_string_equal(act_why_not(ACT_CANCEL, a, NULL), "stop the worker");
    assert_string_equal(act_why_not(ACT_DRAIN, a, NULL), "this queue system has no such action");
    adapter_free(a);
}

/* An error position of the server is turned into a line of the file. */
static void
test_lines(void **state)
{
    struct err e = {0};
    struct adapter *a = adapter_parse("x",
                                      HEAD NEEDED "-- name: job\n-- official: no\n\n-- words\n"
                                                  "select \"\xc3\xa4\xf0\x9f\x98\x80\"\n"
                                                  "  from {schema}.t -- here\n\n where b\n",
                                      &e);

    (void)state;
    if (!a)
        fail_msg("%s", e.text);
    assert_true(adapter_use(a, "a longer name", &e));
    const char *sql = adapter_sql(a, SEC_JOB);
    assert_string_equal(sql, "select \"\xc3\xa4\xf0\x9f\x98\x80\"\n"
                             "  from \"a longer name\".t -- here\n\n where b");
    static const struct {
        int position, line;
    } at[] = {
        {0,  13}, /* no position: the line where the section begins */
        {1,  17},
        {11, 17}, /* the quote after two characters that have six bytes */
        {12, 17}, /* the new line belongs to its line */
        {13, 18},
        {45, 18},
        {46, 19},
        {47, 20},
        {54, 20},
        {55, 20}, /* "at the end of the input" */
        {56, 13},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        assert_int_equal(adapter_line(a, SEC_JOB, at[i].position), at[i].line);
    adapter_free(a);
}

/* The parameter raw_states holds the console's states in the words of the other queue system. */
static void
test_raw_states(void **state)
{
    static const char *const some[] = {"ready", "cancelled", "scheduled", "blocked"};
    struct err e = {0};
    struct params p = {0};
    struct db_param storage[ADAPTER_PARAMS];
    struct adapter *a = adapter_parse(
        "x",
        HEAD "-- states: ready=available scheduled=available,later  cancelled=aborted\n"
             "-- note: one\n-- tables: a_b c*\n-- note: two\n" NEEDED
             "-- name: job\n-- params: raw_states states tables\nselect $1, $2, $3\n",
        &e);
    int at = 0;

    (void)state;
    if (!a)
        fail_msg("%s", e.text);
    assert_true(adapter_use(a, "s", &e));
    (void)adapter_bind(a, SEC_JOB, &p, storage);
    assert_null(storage[0].value);
    assert_string_equal(storage[2].value, "{\"a_b\",\"c*\"}");
    (void)adapter_bind(a, SEC_JOB, NULL, storage);
    assert_null(storage[0].value);
    params_set_list(&p, PARAM_STATES, some, 4);
    (void)adapter_bind(a, SEC_JOB, &p, storage);
    assert_string_equal(storage[0].value, "{\"available\",\"later\",\"aborted\"}");
    const char *first = storage[0].value;
    params_set(&p, PARAM_STATES, "{retry,cancelled}");
    (void)adapter_bind(a, SEC_JOB, &p, storage);
    assert_string_equal(storage[0].value, "{\"aborted\"}");
    params_set(&p, PARAM_STATES, "{running}");
    (void)adapter_bind(a, SEC_JOB, &p, storage);
    assert_string_equal(storage[0].value, "{}");
    assert_string_equal(first, "{\"available\",\"later\",\"aborted\"}");
    assert_string_equal(adapter_header(a, "schema"), "public");
    struct db_call call = {.n = 1};
    adapter_settings(a, true, &call);
    assert_null(call.timezone);
    assert_null(call.search_path);
    assert_null(adapter_header(a, "id-type"));
    assert_string_equal(adapter_header_next(a, "note", &at), "one");
    assert_string_equal(adapter_header_next(a, "note", &at), "two");
    assert_null(adapter_header_next(a, "note", &at));
    params_done(&p);
    adapter_free(a);
}

static void
test_params(void **state)
{
    const char *const items[] = {"a", "b\"c", "d\\e", ""};
    struct params p = {0}, q = {0};
    enum param found;

    (void)state;
    params_set_list(&p, PARAM_WORDS, items, 4);
    assert_string_equal(p.value[PARAM_WORDS], "{\"a\",\"b\\\"c\",\"d\\\\e\",\"\"}");
    params_set_list(&p, PARAM_WORDS, items, 0);
    assert_string_equal(p.value[PARAM_WORDS], "{}");
    params_set_time(&p, PARAM_BEFORE, 1763712000123);
    assert_string_equal(p.value[PARAM_BEFORE], "2025-11-21 08:00:00.123+00");
    params_set_time(&p, PARAM_BEFORE, -1);
    assert_string_equal(p.value[PARAM_BEFORE], "1969-12-31 23:59:59.999+00");
    params_set_interval(&p, PARAM_BY, 90500);
    assert_string_equal(p.value[PARAM_BY], "90500 ms");
    params_set_bool(&p, PARAM_FORCE, true);
    params_copy(&q, &p);
    params_set(&p, PARAM_FORCE, NULL);
    assert_null(p.value[PARAM_FORCE]);
    assert_string_equal(q.value[PARAM_FORCE], "true");
    params_set(&q, PARAM_FORCE, q.value[PARAM_FORCE]);
    assert_string_equal(q.value[PARAM_FORCE], "true");
    for (int i = 0; i < PARAM_TOTAL; i++) {
        const char *name = param_name((enum param)i);
        assert_true(param_find(name, (int)strlen(name), &found));
        assert_int_equal(found, i);
    }
    assert_false(param_find("id", 2, &found));
    params_done(&p);
    params_done(&q);
}

static void
test_console_files(void **state)
{
    (void)state;
    assert_non_null(strstr(console_sql("spent"), "spent_us"));
    for (int i = 0; i < sql_console_n; i++)
        assert_ptr_equal(console_sql(sql_console[i].name), sql_console[i].text);
}

static void
test_settings_of_a_call(void **state)
{
    struct err e = {0};
    struct db_call call = {.n = 1};
    struct adapter *a =
        adapter_parse("x",
                      HEAD "-- timezone: UTC\n-- search-path: {schema}, public\n" NEEDED
                           "-- name: job\nselect 1\n",
                      &e);

    (void)state;
    if (!a)
        fail_msg("%s", e.text);
    assert_true(adapter_use(a, "My \"Q\"", &e));
    adapter_settings(a, false, &call);
    assert_string_equal(call.timezone, "UTC");
    assert_null(call.search_path); /* a call that only reads needs no search_path */
    adapter_settings(a, true, &call);
    assert_string_equal(call.timezone, "UTC");
    assert_string_equal(call.search_path, "\"My \"\"Q\"\"\", public");
    adapter_free(a);
}

/* --- the choice ------------------------------------------------------------------------------ */

/* The answer of a DETECT statement: a list of schemas that ends with NULL. */
static struct result *
schemas(const char *const *list)
{
    static const char *const names[] = {"schema"};
    struct result *r = result_new(names, 1);

    for (int i = 0; list[i]; i++)
        result_put(r, i, 0, list[i], (int)strlen(list[i]));
    return r;
}

/* The login owns everything, except that mallory owns a schema whose name begins with "evil". */
static struct result *
owner(const char *schema)
{
    static const char *const names[] = {"role",      "name",  "known", "creates",
                                        "object",    "place", "me",    "place_owner",
                                        "place_acl", "power", "acts",  "risk"};
    bool evil = !strncmp(schema, "evil", 4);
    const char *row[] = {evil ? "66" : "10",
                         evil ? "mallory" : "app",
                         evil ? "f" : "t",
                         "f",
                         "view v",
                         "2200",
                         "10",
                         "10",
                         NULL,
                         NULL,
                         "f",
                         NULL};
    struct result *r = result_new(names, 12);

    for (int i = 0; i < 12; i++)
        result_put(r, 0, i, row[i], row[i] ? (int)strlen(row[i]) : 0);
    return r;
}

struct answer {
    const char *adapter;
    const char *const *schemas;
};

/* Chooses an adapter as if the DETECT statements had these answers. */
static bool
choose(struct adapter *a, const struct answer *answers, const char *wanted, struct err *e)
{
    struct db_stmt stmts[ADAPTERS_MAX];
    struct result *detected[ADAPTERS_MAX] = {NULL};
    static const char *const none[] = {NULL};
    int n = adapter_detects(a, stmts);

    *e = (struct err){0};
    for (int i = 0; i < n; i++) {
        const char *const *list = none;
        for (const struct answer *s = answers; s->adapter; s++) {
            struct adapter *one = adapter_load(s->adapter, e);
            assert_non_null(one);
            if (!strcmp(stmts[i].sql, adapter_sql(one, SEC_DETECT)))
                list = s->schemas;
            adapter_free(one);
        }
        detected[i] = schemas(list);
    }
    struct result *owners[ADAPTERS_MAX] = {NULL};
    int found = adapter_take(a, detected, wanted);
    for (int i = 0; i < found; i++)
        owners[i] = owner(adapter_found(a, i)->schema);
    bool ok = adapter_choose(a, owners, &(struct adapter_wanted){wanted, "app", "1/2", NULL}, e);
    for (int i = 0; i < n; i++)
        result_free(detected[i]);
    return ok;
}

static void
is_chosen(const struct adapter *a, const char *name, const char *schema)
{
    assert_string_equal(adapter_name(a), name);
    assert_string_equal(adapter_schema(a), schema);
}

static struct adapter *
open_all(void)
{
    struct err e = {0};
    struct adapter *a = adapter_open(NULL, &e);

    if (!a)
        fail_msg("%s", e.text);
    assert_string_equal(adapter_name(a), "native");
    assert_true(adapter_candidates(a) > 1);
    return a;
}

static void
test_choice(void **state)
{
    static const char *const queues[] = {"a", "queues", "b", NULL}, *const two[] = {"a", "b", NULL};
    static const char *const here[] = {"public", NULL}, *const there[] = {"a", NULL};
    const struct answer nothing[] =
        {
            {0}
    },
                        native[] = {{"native", queues}, {"minion", here}, {0}},
                        natives[] = {{"native", two}, {0}},
                        both[] = {{"minion", here}, {"native", there}, {0}},
                        foreign[] = {{"minion", here}, {"pgboss", two}, {0}};
    struct adapter *a = open_all();
    struct err e;

    (void)state;
    assert_false(choose(a, nothing, NULL, &e));
    assert_non_null(strstr(e.text, "no queue in database app yet: queuetop install; "));
    assert_non_null(strstr(e.text, "other systems were looked for"));
    assert_true(choose(a, native, NULL, &e));
    is_chosen(a, "native", "queues");
    assert_true(adapter_found(a, 0)->chosen);
    assert_string_equal(adapter_found(a, 1)->schema, "a");
    assert_string_equal(adapter_found(a, 3)->adapter, "minion");
    assert_string_equal(adapter_found(a, 3)->title, "Minion (Perl)");
    assert_false(adapter_found(a, 3)->chosen);
    assert_null(adapter_found(a, 4));
    assert_true(adapter_is_clear(a, NULL, "app", &e));
    int serial = adapter_serial(a);
    assert_true(choose(a, native, NULL, &e));
    assert_int_equal(adapter_serial(a), serial);
    const char *sql = adapter_sql(a, SEC_JOBS);
    assert_true(choose(a, native, "public", &e));
    is_chosen(a, "minion", "public");
    assert_true(adapter_is_clear(a, "public", "app", &e));
    assert_true(adapter_serial(a) > serial);
    assert_non_null(strstr(sql, "\"queues\".")); /* SQL that was bound before stays */
    assert_true(choose(a, both, NULL, &e));
    is_chosen(a, "native", "a");
    assert_false(adapter_is_clear(a, NULL, "app", &e)); /* the schema is not the usual one */
    assert_true(choose(a, foreign, NULL, &e));
    assert_false(adapter_is_clear(a, NULL, "app", &e));
    assert_int_equal(e.kind, ERR_USAGE);
    assert_non_null(strstr(e.text, "minion in schema public"));
    assert_false(choose(a, foreign, "c", &e));
    assert_non_null(strstr(e.text, "--schema may be: "));
    assert_true(choose(a, natives, NULL, &e));
    adapter_free(a);
    a = adapter_load("native", &e);
    assert_false(choose(a, natives, NULL, &e));
    assert_non_null(strstr(e.text, "--schema may be: a, b"));
    adapter_free(a);
    assert_null(adapter_open("nothing", &e));
    assert_non_null(strstr(e.text, "queuetop adapter list"));
    a = adapter_open("minion", &e);
    assert_int_equal(adapter_candidates(a), 1);
    assert_false(choose(a, nothing, NULL, &e));
    assert_string_equal(e.text, "no tables of Minion (Perl) in database app");
    adapter_free(a);
}

/* A system that belongs to a stranger is never chosen automatically, but the error names it. */
static void
test_strangers(void **state)
{
    static const char *const evil[] = {"evil", NULL}, *const two[] = {"evil", "mine", NULL};
    static const char *const here[] = {"public", NULL};
    const struct answer only[] =
        {
            {"native", evil},
            {0       }
    },
                        beside[] = {{"native", evil}, {"minion", here}, {0}},
                        both[] = {{"minion", two}, {0}};
    struct adapter *a = open_all();
    struct err e;

    (void)state;
    assert_false(choose(a, only, NULL, &e));
    assert_int_equal(e.kind, ERR_DENIED);
    assert_non_null(
        strstr(e.text, "native in schema evil is not opened: owned by mallory (view v)"));
    assert_non_null(strstr(e.text, "--trust-owner mallory allows it"));
    assert_null(adapter_schema(a)); /* no statement of the adapter can be sent */
    assert_true(choose(a, beside, NULL, &e));
    is_chosen(a, "minion", "public");
    assert_int_equal(adapter_found(a, 0)->owners->n, 1);
    assert_true(adapter_is_clear(a, NULL, "app", &e)); /* a stranger can't block the acts */
    assert_false(choose(a, beside, "evil", &e));
    assert_int_equal(e.kind, ERR_DENIED);
    assert_true(choose(a, both, NULL, &e));
    is_chosen(a, "minion", "mine");
    adapter_free(a);
}

/* However many systems a stranger makes up in his schema: those of other adapters and of other
 * schemas are found. */
static void
test_decoys(void **state)
{
    enum { DECOYS = 90 };
    char texts[DECOYS][24];
    const char *decoys[DECOYS + 1] = {NULL}, *more[DECOYS + 2] = {NULL};
    static const char *const here[] = {"jobs", "public", NULL};
    const struct answer beside[] = {
        {"pgqueuer", decoys},
        {"river",          here},
        {0}
    };
    const struct answer same[] = {
        {"pgqueuer", more},
        {0         }
    };
    const struct answer fewer[] = {
        {"pgqueuer", more + 40},
        {"river",          here},
        {0}
    };
    struct adapter *a = open_all();
    struct err e;

    (void)state;
    for (int i = 0; i < DECOYS; i++) {
        snprintf(texts[i], sizeof texts[i], "evil/a%02d_", i);
        decoys[i] = more[i] = texts[i];
    }
    more[DECOYS] = "mine";
    assert_true(choose(a, beside, NULL, &e));
    is_chosen(a, "river", "public");
    assert_string_equal(adapter_found(a, 63)->schema, "jobs");
    assert_null(adapter_found(a, 64));
    assert_non_null(adapter_complaint(a, 0)); /* not all are looked at */
    assert_true(choose(a, same, NULL, &e));
    is_chosen(a, "pgqueuer", "mine");
    adapter_free(a);
    a = open_all(); /* there is room for 50, mine and river's two */
    assert_true(choose(a, fewer, NULL, &e));
    is_chosen(a, "pgqueuer", "mine");
    assert_string_equal(adapter_found(a, 52)->schema, "jobs");
    assert_null(adapter_complaint(a, 0));
    adapter_free(a);
}

/* A candidate whose DETECT fails is left out until the next detection. */
static void
test_spoilt(void **state)
{
    struct adapter *a = open_all();
    struct db_stmt stmts[ADAPTERS_MAX];
    struct err why = {.kind = ERR_SQL, .text = "no such thing"};
    struct adapter_marks m;
    int n = adapter_detects(a, stmts);
    const char *second = stmts[1].sql;

    (void)state;
    assert_true(adapter_spoil(a, 1, &why));
    assert_non_null(strstr(adapter_complaint(a, 0), "no such thing"));
    assert_null(adapter_complaint(a, 1));
    assert_int_equal(adapter_detects(a, stmts), n - 1);
    assert_string_not_equal(stmts[1].sql, second);
    for (int i = n - 1; i > 1; i--)
        assert_true(adapter_spoil(a, 0, &why));
    assert_false(adapter_spoil(a, 0, &why));
    adapter_marks(a, &m); /* begins the next detection */
    adapter_marks_done(&m);
    assert_int_equal(adapter_detects(a, stmts), n);
    adapter_free(a);
}

/* --- versions -------------------------------------------------------------------------------- */

static void
judged(const char *header, const char *version, bool trust, const char *says)
{
    struct err e = {0};
    struct role_row role = {.role = "operator", .can_act = 1, .why = "", .signals = 0};
    char *text = xasprintf("%s%s%s-- name: version\nselect 1\n-- name: job\nselect 1\n"
                           "-- name: pause\n-- requires: version >= 2.5\nselect 1\n"
                           "-- name: terminate\n-- requires: pg_signal_backend\nselect 1\n",
                           HEAD, header, NEEDED);
    struct adapter *a = adapter_parse("x", text, &e);

    if (!a)
        fail_msg("%s", e.text);
    assert_true(adapter_use(a, "s", &e));
    if (trust)
        adapter_trust(a);
    adapter_judge(a, version, &role);
    assert_int_equal(role.can_act, says == NULL);
    assert_true(!says || strstr(role.why, says));
    assert_int_equal(adapter_has(a, SEC_PAUSE), strcmp(version, "3") >= 0);
    assert_true(!adapter_lacks(a, SEC_PAUSE) == adapter_has(a, SEC_PAUSE));
    assert_string_equal(adapter_lacks(a, SEC_TERMINATE), "needs the rights of pg_signal_backend");
    assert_non_null(adapter_lacks(a, SEC_RESUME));
    role.signals = 1;
    adapter_judge(a, version, &role);
    assert_null(adapter_lacks(a, SEC_TERMINATE));
    adapter_free(a);
    free(text);
}

static void
test_versions(void **state)
{
    (void)state;
    judged("", "9", false, NULL);
    judged("-- tested-versions: 1.5-1.9 3\n", "1.5", false, NULL);
    judged("-- tested-versions: 1.5-1.9 3\n", "1.9.2", false, NULL);
    judged("-- tested-versions: 1.5-1.9 3\n", "1.10", false,
           "version 1.10 here, tested is 1.5-1.9 3");
    judged("-- tested-versions: 1.5-1.9 3\n", "1.10", true, NULL);
    judged("-- tested-versions: 1.5-1.9 3\n", "3.4+", false, NULL);
    judged("-- tested-versions: 1.5-1.9 3\n", "", false, "--trust-version");
    judged("-- min-version: 2\n", "1.99", false, "the oldest that is known is 2");
    judged("-- min-version: 2\n", "9", false, NULL);
    judged("-- min-version: 2\n-- tested-versions: 2-4\n", "9", false, "tested is 2-4");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_lacks),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_console_files),
        cmocka_unit_test(test_raw_states),
        cmocka_unit_test(test_settings_of_a_call),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_versions),
    };

    setenv("XDG_CONFIG_HOME", "/nonexistent", 1); /* no adapters of the user's own */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
