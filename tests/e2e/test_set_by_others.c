/*
 * Settings that somebody has put on the database (alter database .. set) must not change what the
 * program and its queue do. Each row of the table is such settings, on a database of its own:
 * there the queue is installed, a job is pushed, claimed and completed by plain SQL, another one by
 * `push` and `work`, the queues are listed and one is paused. A cell of the table is empty if that
 * went as without the setting. tests/e2e/set_by_others.md is the table.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { INSTALL, PLAIN, PUSH, WORK, QUEUES, ACT, STEPS };

/* Settings that concern the same thing share a row. */
struct row {
    const char *settings[12];
    unsigned skips; /* steps that are not tried, each as a bit */
    const char *note;
};

/* clang-format off */
static const struct row rows[] = {
    {.settings = {"default_transaction_isolation = 'repeatable read'"},
     .note = "by plain SQL, schedule() refuses it; the program sets its own"},
    {.settings = {"default_transaction_isolation = serializable", "default_transaction_deferrable = on"},
     .note = "the same"},
    {.settings = {"default_transaction_read_only = on"}, .skips = 1 << WORK,
     .note = "somebody has locked the database: nothing is changed, work waits until it ends"},
    {.settings = {"session_replication_role = replica"},
     .note = "a push would not be counted: the functions refuse it; the program of a superuser sets origin"},
    {.settings = {"statement_timeout = '1h'", "lock_timeout = '1h'", "idle_in_transaction_session_timeout = '1h'"}},
    {.settings = {"search_path = nowhere", "default_text_search_config = 'pg_catalog.german'"}},
    {.settings = {"DateStyle = 'SQL, DMY'", "IntervalStyle = sql_standard", "TimeZone = 'Pacific/Kiritimati'"}},
    {.settings = {"DateStyle = German", "IntervalStyle = iso_8601", "timezone_abbreviations = 'India'"}},
    {.settings = {"bytea_output = escape", "extra_float_digits = -15", "xmlbinary = hex", "xmloption = document"}},
    {.settings = {"standard_conforming_strings = off", "backslash_quote = on", "escape_string_warning = off"}},
    {.settings = {"array_nulls = off", "transform_null_equals = on", "quote_all_identifiers = on"}},
    {.settings = {"row_security = off", "check_function_bodies = off"}},
    {.settings = {"client_encoding = 'LATIN1'", "lc_messages = 'C'", "lc_monetary = 'C'", "lc_numeric = 'C'",
                  "lc_time = 'C'"}},
    {.settings = {"default_tablespace = 'other'", "temp_tablespaces = 'other'",
                  "default_table_access_method = heap"},
     .note = "a tablespace that does not exist"},
    {.settings = {"enable_indexscan = off", "enable_bitmapscan = off", "enable_sort = off",
                  "enable_partition_pruning = off", "gin_fuzzy_search_limit = 1"}},
    {.settings = {"enable_seqscan = off", "enable_hashjoin = off", "enable_nestloop = off",
                  "enable_mergejoin = off"}},
    {.settings = {"jit_above_cost = 0", "jit_inline_above_cost = 0", "work_mem = '64kB'"}},
    {.settings = {"plan_cache_mode = force_generic_plan", "constraint_exclusion = on", "from_collapse_limit = 1",
                  "join_collapse_limit = 1", "geqo_threshold = 2"}},
    {.settings = {"synchronous_commit = off", "max_parallel_workers_per_gather = 0"}},
    {.settings = {"parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0"}},
    {.settings = {"plpgsql.variable_conflict = use_variable", "plpgsql.check_asserts = off"}},
    {.settings = {"plpgsql.variable_conflict = use_column", "plpgsql.extra_errors = 'all'",
                  "plpgsql.extra_warnings = 'all'"}},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

static char dsn[300];
static PGconn *eye; /* began before the setting, so it does not have it */
static struct buf page;

/* A cell: empty if all went well, otherwise how it ended and which words the error has. */
static void
add_cell(const struct row *r, int code, const char *said, bool is_done)
{
    buf_str(&page, " |");
    char name[60];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(*r->settings, " "), *r->settings);
    if (code)
        buf_printf(&page, " exit %d%s%s", code, strstr(said, name) ? ", names it" : "",
                   strstr(said, "reset") || strstr(said, " set ") ? " and the way out" : "");
    else if (!is_done)
        buf_str(&page, " not done");
    if (code || !is_done)
        print_message("%s: %d %s\n", *r->settings, code, said);
}

static void
skip_cell(void)
{
    buf_str(&page, " | not tried");
}

static bool
is_so(const char *sql)
{
    return !strcmp(pg_value(eye, "select %s", sql), "t");
}

/* The program with these words. done: a condition that must hold afterwards; NULL = the output must
 * have the queue. */
static void
run(const struct row *r, int step, const char *words, const char *done)
{
    char *out, *err;

    if (r->skips & 1U << step) {
        skip_cell();
        return;
    }
    int code = proc_run(NULL, &out, &err, "-d \"%s\" %s", dsn, words);
    add_cell(r, code, err, done ? code || is_so(done) : strstr(out, "mails") != NULL);
    free(out);
    free(err);
}

/* Pushes, schedules, claims and completes by plain SQL. */
static void
run_plain(const struct row *r)
{
    static const char *const steps[] = {
        "select queues.push_text('plain', E'\\\\ x')",
        "select queues.schedule('plain')",
        "create temp table held as select * from queues.claim('plain', 1)",
        "select queues.complete('plain', array[lease], array[version], array[seq]) from held",
    };
    PGconn *c = pg_connect(dsn);
    bool ok = true;

    pg_run(c, "set client_min_messages = error");
    for (size_t i = 0; i < sizeof steps / sizeof *steps && ok; i++)
        ok = !*pg_try(c, "%s", steps[i]);
    add_cell(r, !ok, PQerrorMessage(c),
             !ok || is_so("exists (select from queues.history where queue = 'plain' and state = "
                          "'completed')"));
    PQfinish(c);
    pg_run(eye, "update queues.scheduler set until = '-infinity'"); /* work makes its own steps */
}

static void
set_all(const struct row *r, const char *database)
{
    for (int i = 0; r->settings[i]; i++)
        pg_run(eye, "alter database %s set %s", database, r->settings[i]);
}

static void
try_settings(const struct row *r, int i)
{
    char name[20];

    snprintf(name, sizeof name, "set%d", i);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb(name));
    eye = pg_connect(dsn);
    set_all(r, name);
    for (int k = 0; r->settings[k]; k++)
        buf_printf(&page, "%s `%s`", k ? "," : "|", r->settings[k]);
    run(r, INSTALL, "install", "true");
    if (is_so("to_regnamespace('queues') is null")) {
        pg_run(eye, "alter database %s reset all", name);
        proc_check(0, NULL, NULL, "install \"%s\"", dsn);
        set_all(r, name);
    }
    run_plain(r);
    run(r, PUSH, "push mails",
        "exists (select from queues.queue where queue = 'mails') and exists (select from "
        "queues.delta where queue = 'mails' and ready = 1)");
    run(r, WORK, "work --drain -- cat",
        "exists (select from queues.history where queue = 'mails' and state = 'completed')");
    run(r, QUEUES, "queues --csv", NULL);
    run(r, ACT, "pause mails --yes",
        "(select paused_at is not null from queues.queue_config where queue = 'mails')");
    buf_printf(&page, " | %s |\n", r->note ? r->note : "");
    PQfinish(eye);
}

static void
settings_of_others_change_nothing(void **state)
{
    (void)state;
    buf_str(
        &page,
        "# Settings that somebody has put on the database\n\n"
        "Written by `UPDATE=1 make check T=test_set_by_others`, and asserted by it: `alter "
        "database "
        ".. set` with each of\nthese, then the queue is installed, a job is pushed, claimed and "
        "completed by plain SQL, another one by `push`\nand `work --drain`, the queues are "
        "listed and one is paused. An empty cell: it went as without the setting. Time "
        "limits of a few ms\nhave no row, because the speed of the machine would decide: "
        "test_settings_of_a_session of test_db looks what a session has.\n\n"
        "| setting | install | plain SQL | push | work | queues | pause | why |\n"
        "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++)
        try_settings(&rows[i], i);
    golden_text("tests/e2e/set_by_others.md", page.data);
    buf_free(&page);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_of_others_change_nothing),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
