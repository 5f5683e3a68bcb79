/*
 * Adapters: the built-in ones are whole, bad files are refused with their place, parameters stand
 * in the order that the file names them.
 */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/adapter.h"
#include "model/mem.h"

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
        "x", HEAD NEEDED "-- name: job\n-- params: limit ids\nselect $1, $2 from {schema}.t\n", &e);

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

/* The states of the console in the engine's words, as one more parameter. */
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
    adapter_settings(a, &call);
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
    assert_string_equal(p.value[PARAM_BY], "90.500 seconds");
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
    adapter_settings(a, &call);
    assert_string_equal(call.timezone, "UTC");
    assert_string_equal(call.search_path, "\"My \"\"Q\"\"\", public");
    adapter_free(a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_console_files),
        cmocka_unit_test(test_raw_states),
        cmocka_unit_test(test_settings_of_a_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
