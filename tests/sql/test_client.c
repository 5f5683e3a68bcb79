/*
 * The statements of the C interface against the real functions: each is prepared on a server, its
 * parameters and its columns are what model/queue*.c sends and reads, and a worker without any
 * right but its role can run them all.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/adapter/sections.h"
#include "tests/proc.h"
#include "tests/server.h"

/* file, parameters, columns */
static const struct {
    const char *name;
    int params;
    const char *columns;
} expected[] = {
    {"backlog",            1,  "state"                                                     },
    {"claim",              5,
     "lease version seq id queue kind priority try max_tries payload body payload_type "
     "lease_until_ms lease_ms run_timeout_ms"                                              },
    {"claim_or_wait",      7,
     "lease version seq id queue kind priority try max_tries payload body payload_type "
     "lease_until_ms lease_ms run_timeout_ms slot wait_ms"                                 },
    {"complete",           6,  "seq outcome"                                               },
    {"complete_and_claim", 10,
     "outcome lease version seq id queue kind priority try max_tries payload body payload_type "
     "lease_until_ms lease_ms run_timeout_ms"                                              },
    {"extend",             5,  "lease outcome lease_until_ms lease_ms cancel"              },
    {"fail",               10, "seq outcome"                                               },
    {"fold_beside",        0,  "state"                                                     },
    {"give_back",          4,  "seq outcome"                                               },
    {"is_new",             0,  "state"                                                     },
    {"job_outcome",        1,  "state said history"                                        },
    {"keep_books",         0,  "state"                                                     },
    {"keep_only",          3,  "state"                                                     },
    {"node_beat",          2,  "state server_ms"                                           },
    {"node_clock",         3,  "state"                                                     },
    {"node_sleep",         6,  "state"                                                     },
    {"node_start",         8,  "state server_ms"                                           },
    {"node_stop",          2,  "state"                                                     },
    {"push",               17, "n id pushed"                                               },
    {"push_one",           9,  "id pushed"                                                 },
    {"push_one_bytes",     10, "id pushed"                                                 },
    {"schedule",           4,  "active cut promoted stolen wait_ms look_ms waits late fold"},
    {"scheduler_holder",   0,  "state"                                                     },
    {"scheduler_sleep",    5,  "state"                                                     },
    {"scheduler_stop",     1,  "state"                                                     },
    {"wake",               1,  "state"                                                     },
};

static PGconn *conn;
static const char schema[] = "My \"Queue\"";

static char *
bound(const char *name, const char *text)
{
    char *sql = NULL, *named = strdup(name), *copy = strdup(text);
    struct section s = {.name = named, .sql = copy};
    struct err e = {0};

    assert_true(sections_bind(&s, schema, &sql, &e));
    free(named);
    free(copy);
    return sql;
}

static void
check_columns(const PGresult *r, const char *columns)
{
    char found[400] = "";

    for (int i = 0; i < PQnfields(r); i++) {
        size_t len = strlen(found);
        snprintf(found + len, sizeof found - len, "%s%s", i ? " " : "", PQfname(r, i));
    }
    assert_string_equal(found, columns);
}

static void
every_statement_is_what_the_code_expects(void **state)
{
    (void)state;
    assert_int_equal(sql_client_n, sizeof expected / sizeof *expected);
    for (int i = 0; i < sql_client_n; i++) {
        assert_string_equal(sql_client[i].name, expected[i].name);
        char *sql = bound(sql_client[i].name, sql_client[i].text);
        PGresult *r = PQprepare(conn, "", sql, 0, NULL);
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            fail_msg("%s: %s", expected[i].name, PQerrorMessage(conn));
        PQclear(r);
        r = PQdescribePrepared(conn, "");
        assert_int_equal(PQnparams(r), expected[i].params);
        check_columns(r, expected[i].columns);
        PQclear(r);
        free(sql);
    }
}

/* Without parameters all are NULL or empty: nothing may be refused for lack of a right. */
static void
the_worker_role_may_run_them(void **state)
{
    (void)state;
    pg_run(conn, "set role queues_worker");
    for (int i = 0; i < sql_client_n; i++) {
        const char *none[20] = {NULL};
        char *sql = bound(sql_client[i].name, sql_client[i].text);
        PGresult *r = PQexecParams(conn, sql, expected[i].params, NULL, none, NULL, NULL, 0);
        const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        if (code && !strcmp(code, "42501"))
            fail_msg("%s: %s", expected[i].name, PQerrorMessage(conn));
        PQclear(r);
        free(sql);
    }
    pg_run(conn, "reset role");
}

/* Traps in a schema that the session searches first: exact operators where pg_catalog has none, a
 * function and a type of a common name. No statement may see them. */
static void
the_path_of_the_session_says_nothing(void **state)
{
    (void)state;
    pg_run(conn,
           "create schema ev; create function ev.trap() returns text language plpgsql as $$ begin"
           " raise 'trapped' using errcode = 'QTRAP'; end $$; create domain ev.text as"
           " pg_catalog.text check (ev.trap() is null); create domain ev.uuid as pg_catalog.uuid"
           " check (ev.trap() is null); create function ev.now() returns timestamptz language sql"
           " as 'select ev.trap()::pg_catalog.text::timestamptz'; create function ev.times(numeric,"
           " int) returns numeric language sql as 'select ev.trap()::pg_catalog.text::numeric';"
           " create operator ev.* (leftarg = numeric, rightarg = int, function = ev.times);"
           " create function ev.times(double precision, int) returns numeric language sql as"
           " 'select ev.trap()::pg_catalog.text::numeric'; create operator ev.* (leftarg = double"
           " precision, rightarg = int, function = ev.times); create function "
           "ev.array_to_string(bigint[], text) returns pg_catalog.text language"
           " sql as 'select ev.trap()'; create function ev.set_config(pg_catalog.text,"
           " pg_catalog.text, boolean) returns pg_catalog.text language sql as 'select ev.trap()';"
           " set search_path = ev, pg_catalog");
    assert_string_equal(pg_try(conn, "select '1'::text"), "QTRAP"); /* they work */
    assert_string_equal(pg_try(conn, "select extract(epoch from pg_catalog.now()) * 1000"),
                        "QTRAP");
    for (int i = 0; i < sql_client_n; i++) {
        const char *values[20] = {NULL};
        char *sql = bound(sql_client[i].name, sql_client[i].text);
        if (!strncmp(sql_client[i].name, "claim", 5)) {
            pg_run(conn,
                   "select \"My \"\"Queue\"\"\".push('q'), \"My \"\"Queue\"\"\".schedule('s')");
            values[0] = "n";
            values[1] = "1";
        }
        PGresult *r = PQexecParams(conn, sql, expected[i].params, NULL, values, NULL, NULL, 0);
        const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        if (code && !strcmp(code, "QTRAP"))
            fail_msg("%s: %s", expected[i].name, PQerrorMessage(conn));
        if (values[0])
            assert_int_equal(PQntuples(r), 1);
        PQclear(r);
        free(sql);
    }
    pg_run(conn, "reset search_path");
}

static int
set_up(void **state)
{
    (void)state;
    pg_start(NULL);
    const char *dsn = pg_newdb("client");
    conn = pg_connect(dsn);
    return proc_run(NULL, NULL, NULL, "-d \"%s\" --schema '%s' install", dsn, schema);
}

static int
tear_down(void **state)
{
    (void)state;
    PQfinish(conn);
    pg_stop();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_statement_is_what_the_code_expects),
        cmocka_unit_test(the_worker_role_may_run_them),
        cmocka_unit_test(the_path_of_the_session_says_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
