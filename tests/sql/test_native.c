/*
 * The adapter contract: every section of native.sql against a really installed schema, by the
 * column tables of model/adapter/record.h: each column that is not optional comes, with a type that
 * fits. On an empty schema, with data, with a name that must be quoted, and as a bare viewer. Then
 * what the jobs section finds, in which order, and that no way of asking scans the table of jobs at
 * many rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter.h"
#include "model/adapter/filter.h"
#include "model/base/mem.h"
#include "tests/sql/core.h"

static struct adapter *
adapter_for(const char *schema)
{
    struct err e = {0};
    struct adapter *a = adapter_load("native", &e);

    if (!a || !adapter_use(a, schema, &e))
        fail_msg("%s", e.text);
    return a;
}

/* Nothing but pg_catalog on the path. */
static PGresult *
ask_within(PGconn *conn, const char *sql, const struct db_stmt *stmt)
{
    const char *values[ADAPTER_PARAMS];

    for (int i = 0; i < stmt->nparams; i++)
        values[i] = stmt->params[i].value;
    pg_run(conn, "set local search_path = pg_catalog, pg_temp");
    PGresult *res = PQexecParams(conn, sql, stmt->nparams, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s\n%s", sql, PQresultErrorMessage(res));
    return res;
}

/* As the watcher does it: read only. */
static PGresult *
ask(PGconn *conn, const char *sql, const struct db_stmt *stmt)
{
    pg_run(conn, "begin read only");
    PGresult *res = ask_within(conn, sql, stmt);
    pg_run(conn, "rollback");
    return res;
}

static PGresult *
section(PGconn *conn, const struct adapter *a, enum section_id s, const struct params *p)
{
    struct db_param storage[ADAPTER_PARAMS];
    struct db_stmt stmt = adapter_bind(a, s, p, storage);

    return ask(conn, stmt.sql, &stmt);
}

/* --- types ------------------------------------------------------------------------------------ */

enum { OID_BOOL = 16, OID_INT8 = 20, OID_INT2 = 21, OID_INT4 = 23, OID_TEXT = 25 };

static bool
fits(enum field_type type, Oid oid)
{
    switch (type) {
    case F_STR:
        return oid == OID_TEXT;
    case F_I64:
        return oid == OID_INT8 || oid == OID_INT4;
    case F_INT:
        return oid == OID_INT4 || oid == OID_INT2;
    case F_BOOL:
        return oid == OID_BOOL;
    case F_DBL:
        return oid == 701;
    }
    return false;
}

static void
check_columns(const char *name, const struct record *rec, const PGresult *res)
{
    for (int i = 0; rec && i < rec->n; i++) {
        int col = PQfnumber(res, rec->fields[i].name);
        if (col < 0 && !rec->fields[i].optional)
            fail_msg("section %s has no column %s", name, rec->fields[i].name);
        if (col >= 0 && !fits(rec->fields[i].type, PQftype(res, col)))
            fail_msg("section %s: column %s has type %u", name, rec->fields[i].name,
                     PQftype(res, col));
    }
}

/* These sections refuse parameters that are all NULL, or the general values of this test. */
static bool
needs_words(int s)
{
    return s == SEC_EXTEND_PREVIEW || s == SEC_CRON_NEXT || s == SEC_CRON_SET_PREVIEW ||
           s == SEC_QUEUE_SET_PREVIEW || s == SEC_PRIORITY_PREVIEW || s == SEC_UNDO_PREVIEW ||
           s == SEC_EDIT_PREVIEW || s == SEC_PUSH_PREVIEW;
}

/* Every section is planned and described; those of the watcher also run, with every parameter NULL
 * and with every parameter given, and their rows must decode. */
static void
check_sections(PGconn *conn, const struct adapter *a)
{
    static const char *const list[] = {"failed", "00000000-0000-7000-8000-000000000000"};
    struct params none = {0}, some = {0};

    for (int i = 0; i < PARAM_TOTAL; i++)
        params_set(&some, (enum param)i, "1");
    for (int i = 0; i < PARAM_TOTAL; i++)
        if (param_is_list((enum param)i))
            params_set_list(&some, (enum param)i, i == PARAM_IDS ? list + 1 : list, 1);
    params_set_time(&some, PARAM_BEFORE, 0);
    params_set_time(&some, PARAM_AT, 0);
    params_set_interval(&some, PARAM_OLDER_THAN, 1000);
    params_set_interval(&some, PARAM_YOUNGER_THAN, 1000);
    params_set_interval(&some, PARAM_BY, 1000);
    params_set(&some, PARAM_ACTION, list[1]);
    params_set(&some, PARAM_CURSOR, NULL);
    for (int s = 0; s < SEC_COUNT; s++) {
        const struct section_kind *kind = &section_kinds[s];
        if (!adapter_has(a, (enum section_id)s))
            continue;
        pg_run(conn, "begin; set local search_path = pg_catalog, pg_temp");
        PGresult *res = PQprepare(conn, "", adapter_sql(a, (enum section_id)s), 0, NULL);
        if (PQresultStatus(res) != PGRES_COMMAND_OK)
            fail_msg("section %s: %s", kind->name, PQresultErrorMessage(res));
        PQclear(res);
        res = PQdescribePrepared(conn, "");
        check_columns(kind->name, kind->record, res);
        PQclear(res);
        pg_run(conn, "rollback");
        for (int with = 0; with < 2 && !kind->acts && !needs_words(s); with++) {
            struct err e;
            struct rowset rows;
            res = section(conn, a, (enum section_id)s, with ? &some : &none);
            if (!kind->record)
                PQclear(res);
            else if (!record_decode(kind->record, result_wrap((struct pg_result *)res), &rows, &e))
                fail_msg("section %s: %s", kind->name, e.text);
            else
                rowset_free(&rows);
        }
    }
    params_done(&some);
}

/* A little of everything: ready, scheduled, retry, running, failed, completed, cancelled. */
static void
make_jobs(PGconn *conn)
{
    pg_run(conn, "select push('mail', '{\"a\":1}', kind => 'welcome', priority => p) "
                 "from generate_series(3, 6) p");
    pg_run(conn,
           "select push('mail', kind => 'later', delay => '1 hour') from generate_series(1, 2)");
    pg_run(conn, "select push_text('text', 'hello')");
    pg_run(conn, "select push_bytes('bytes', '\\x00ff')");
    pg_run(conn, "select push('bad', max_tries => 1) from generate_series(1, 3)");
    core_settle(conn);
    pg_run(conn, "select fail_job('n1', lease, version, seq, 'timeout after ' || seq || ' s') "
                 "from claim('n1', 3, queues => '{bad}')");
    pg_run(conn, "select push('bad', max_tries => 9)");
    core_settle(conn);
    pg_run(conn, "select fail_job('n1', lease, version, seq, 'again') "
                 "from claim('n1', 1, queues => '{bad}')");
    pg_run(conn, "select complete_job('n1', lease, version, seq, 'result') "
                 "from claim('n1', 1, queues => '{mail}')");
    pg_run(conn, "select node_start('n1', gen_random_uuid(), 'host', 7, '1', 1, '{mail}', 2)");
    pg_run(conn, "select count(*) from claim('n1', 1, queues => '{mail}')");
    pg_run(conn,
           "select cancel(gen_random_uuid(), 1, array(select id from queue where kind = 'later' "
           "limit 1))");
    pg_run(conn, "select pause(gen_random_uuid(), 'text', 'because')");
    pg_run(conn, "select schedule_set(gen_random_uuid(), '1', '{\"cron\": \"@daily\", \"queue\": "
                 "\"mail\"}'); select schedule_run(gen_random_uuid(), '1')");
    core_ten_seconds(conn);
    core_settle(conn);
}

/* What a producer may write into its rows: each section still answers, and the job too. */
static void
check_times_without_end(PGconn *conn, const struct adapter *a)
{
    struct params p = {0};

    pg_run(conn,
           "insert into queue (queue, state, run_after) values ('ends', 'scheduled', 'infinity')");
    pg_run(conn, "insert into queue (queue, created, expires_at) select 'ends', t, 'infinity'"
                 " from unnest('{infinity,-infinity,294276-12-31}'::timestamptz[]) t");
    check_sections(conn, a);
    PGresult *res = pg_query(conn, "select id from queue where queue = 'ends'");
    assert_int_equal(PQntuples(res), 4);
    for (int i = 0; i < PQntuples(res); i++) {
        const char *id = PQgetvalue(res, i, 0);
        params_set_list(&p, PARAM_IDS, &id, 1);
        PGresult *job = section(conn, a, SEC_JOB, &p);
        assert_int_equal(PQntuples(job), 1);
        PQclear(job);
    }
    PQclear(res);
    params_done(&p);
}

static void
test_contract(void **state)
{
    PGconn *conn = core_new("contract");
    struct adapter *a = adapter_for("queues");

    (void)state;
    check_sections(conn, a);
    make_jobs(conn);
    core_check(conn);
    check_sections(conn, a);
    check_times_without_end(conn, a);
    adapter_free(a);
    PQfinish(conn);
}

static void
test_weird_schema(void **state)
{
    PGconn *conn = pg_connect(pg_newdb("weird"));
    struct adapter *a = adapter_for("My \"Queue\"");

    (void)state;
    core_load(conn, "My \"Queue\"");
    pg_run(conn, "set search_path = \"My \"\"Queue\"\"\", t");
    make_jobs(conn);
    check_sections(conn, a);
    PGresult *res = section(conn, a, SEC_DETECT, NULL);
    assert_string_equal(PQgetvalue(res, 0, 0), "My \"Queue\"");
    PQclear(res);
    res = section(conn, a, SEC_ROLE, NULL);
    assert_string_equal(PQgetvalue(res, 0, PQfnumber(res, "role")), "owner");
    PQclear(res);
    adapter_free(a);
    PQfinish(conn);
}

static void
test_roles(void **state)
{
    PGconn *conn = core_new("roles");
    struct adapter *a = adapter_for("queues");
    static const struct {
        const char *grant, *role, *can_act;
    } expected[] = {
        {NULL,              "",         "f"},
        {"queues_viewer",   "viewer",   "f"},
        {"queues_operator", "operator", "t"},
    };

    (void)state;
    make_jobs(conn);
    pg_run(conn, "create role anna");
    for (int i = 0; i < 3; i++) {
        if (expected[i].grant)
            pg_run(conn, "grant %s to anna", expected[i].grant);
        pg_run(conn, "set session authorization anna");
        PGresult *res = section(conn, a, SEC_ROLE, NULL);
        assert_string_equal(PQgetvalue(res, 0, PQfnumber(res, "role")), expected[i].role);
        assert_string_equal(PQgetvalue(res, 0, PQfnumber(res, "can_act")), expected[i].can_act);
        assert_int_equal(*PQgetvalue(res, 0, PQfnumber(res, "why")) == 0, i == 2);
        PQclear(res);
        if (i > 0)
            check_sections(conn, a);
        pg_run(conn, "reset session authorization");
    }
    adapter_free(a);
    PQfinish(conn);
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Names (payload) of the jobs that a filter finds, read in pages of `page`. */
static char *
find(PGconn *conn, const struct adapter *a, const char *text, int page, int scan)
{
    static char out[4000];
    struct filter f;
    struct err e = {0};
    struct params p = {0};

    if (!filter_parse(text, &f, NULL, &e))
        fail_msg("%s: %s", text, e.text);
    params_copy(&p, &f.terms);
    filter_done(&f);
    params_set_int(&p, PARAM_LIMIT, page);
    params_set_int(&p, PARAM_N, scan);
    out[0] = 0;
    for (bool more = true; more;) {
        PGresult *res = section(conn, a, SEC_JOBS, &p);
        int n = PQntuples(res), id = PQfnumber(res, "id"), cursor = PQfnumber(res, "cursor");
        assert_true(n <= page + 1);
        more = n >= page || (n > 0 && !*PQgetvalue(res, n - 1, id));
        for (int i = 0; i < n; i++) {
            if (!*PQgetvalue(res, i, id))
                continue;
            const char *name =
                pg_value(conn,
                         "select kind from (select id, kind from queues.queue union all "
                         "select id, kind from queues.history) j where id = '%s'",
                         PQgetvalue(res, i, id));
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", *out ? " " : "", name);
        }
        if (more) {
            assert_true(!p.value[PARAM_CURSOR] ||
                        strcmp(p.value[PARAM_CURSOR], PQgetvalue(res, n - 1, cursor)) != 0);
            params_set(&p, PARAM_CURSOR, PQgetvalue(res, n - 1, cursor));
        }
        PQclear(res);
    }
    params_done(&p);
    return out;
}

/* The names of one page behind a cursor (NULL = the first), each with a blank behind it. */
static char *
one_page(PGconn *conn, const struct adapter *a, struct params *p, const char *cursor)
{
    struct buf out = {0};

    params_set(p, PARAM_CURSOR, cursor);
    PGresult *res = section(conn, a, SEC_JOBS, p);
    buf_str(&out, "");
    for (int i = 0; i < PQntuples(res); i++)
        buf_printf(&out, "%s ", PQgetvalue(res, i, PQfnumber(res, "kind")));
    PQclear(res);
    return out.data;
}

/* The same jobs from the end: the way up in steps of two. */
static void
find_back(PGconn *conn, const struct adapter *a, const char *text)
{
    struct filter f;
    struct err e = {0};
    struct params p = {0};
    const char *names = find(conn, a, text, 100, 1000);
    char *all = xasprintf("%s%s", names, *names ? " " : ""), *cursor = NULL;
    size_t left = strlen(all);
    bool top = false;

    assert_true(filter_parse(text, &f, NULL, &e));
    params_copy(&p, &f.terms);
    filter_done(&f);
    params_set_int(&p, PARAM_LIMIT, 2);
    params_set_int(&p, PARAM_N, 1000);
    while (!top) {
        params_set(&p, PARAM_CURSOR, cursor);
        PGresult *res = section(conn, a, SEC_JOBS_BACK, &p);
        if (PQntuples(res) != 1)
            fail_msg("%s: %d rows", text, PQntuples(res));
        top = PQgetisnull(res, 0, 0);
        free(cursor);
        cursor = top ? NULL : xstrdup(PQgetvalue(res, 0, 0));
        PQclear(res);
        char *page = one_page(conn, a, &p, cursor);
        size_t len = strlen(page);
        if (!top && (len > left || strncmp(all + left - len, page, len) != 0))
            fail_msg("%s: %s is not the end of %.*s", text, page, (int)left, all);
        if (top && left > len)
            fail_msg("%s: %.*s is more than a page", text, (int)left, all);
        left -= top ? 0 : len;
        free(page);
    }
    free(all);
    params_done(&p);
}

struct found {
    const char *filter, *kinds;
};

static const char *const both_ways[] = {"",
                                        "queue:a",
                                        "queue:f",
                                        "state:failed",
                                        "state:failed queue:f",
                                        "state:failed queue:a",
                                        "queue:a state:ready",
                                        "state:scheduled,retry",
                                        "state:completed",
                                        "state:completed queue:h",
                                        "state:completed,cancelled"};

/* The kind of a job is its name here. */
static const struct found cases[] = {
    {"",                                           "s2 s1 b2 b1 f4 f3 f2 f1 a6 a5 a4 a3 a2 a1"},
    {"queue:a",                                    "s2 s1 a6 a5 a4 a3 a2 a1"                  },
    {"queue:a state:ready",                        "a6 a1 a2 a3 a4"                           },
    {"queue:a state:running",                      "a5"                                       },
    {"state:running",                              "a5 b1"                                    },
    {"node:n2",                                    "b1"                                       },
    {"state:ready",                                "a6 a1 a2 a3 a4 b2"                        },
    {"state:failed",                               "f4 f3 f2 f1"                              },
    {"state:failed queue:f",                       "f4 f3 f2 f1"                              },
    {"state:failed queue:a",                       ""                                         },
    {"error:\"boom 77\"",                          "f3 f1"                                    },
    {"error:\"boom 77\" state:failed",             "f3 f1"                                    },
    {"error~BANG",                                 "f4 f2"                                    },
    {"bang",                                       "f4 f2"                                    },
    {"bang !\"bang 4\"",                           "f2"                                       },
    {"boom bang",                                  ""                                         },
    {"queue:f boom",                               "f3 f1"                                    },
    {"!state:ready,running,failed,scheduled",      "c2 h4 h3 h2 h1"                           },
    {"state:scheduled",                            "s1 s2"                                    },
    {"state:scheduled queue:a",                    "s2 s1"                                    },
    {"state:scheduled queue:f",                    ""                                         },
    {"state:completed",                            "h4 h3 h2 h1"                              },
    {"state:completed queue:h",                    "h4 h3 h2 h1"                              },
    {"state:completed queue:a",                    ""                                         },
    {"state:cancelled",                            "c2"                                       },
    {"state:completed,cancelled",                  "c2 h4 h3 h2 h1"                           },
    {"state:failed,completed",                     "f4 f3 f2 f1 h4 h3 h2 h1"                  },
    {"state:failed,completed node:n1",             "f4 f3 f2 f1 h4 h3 h2 h1"                  },
    {"state:failed node:n1",                       "f4 f3 f2 f1"                              },
    {"state:failed node:n2",                       ""                                         },
    {"state:completed h3",                         "h3"                                       },
    {"tries>=1",                                   "f4 f3 f2 f1"                              },
    {"tries<1 queue:f",                            ""                                         },
    {"age>1h",                                     ""                                         },
    {"age<1h kind:a3",                             "a3"                                       },
    {"id:nonsense",                                ""                                         },
    {"state:failed,scheduled",                     "f4 f3 f2 f1 s1 s2"                        },
    {"state:failed,scheduled !\"bang 2\" queue:f", "f4 f3 f1"                                 },
    {"state:failed,scheduled boom",                "f3 f1"                                    },
    {"state:failed,scheduled,completed kind:h2",   "h2"                                       },
    {"state:blocked",                              ""                                         },
    {"payload~ACME",                               "b2 b1"                                    },
    {"payload.customer.id=7",                      "b2"                                       },
    {"payload.customer.name~\"CM\"",               "b2"                                       },
    {"payload.customer=7",                         ""                                         },
    {"payload.broken=x",                           ""                                         },
    {"payload~acme state:completed,cancelled",     "h1"                                       },
    {"payload.h=1 state:completed",                "h1"                                       },
};

static void
make_named(PGconn *conn)
{
    static const struct {
        const char *queue, *names;
        int priority;
    } pushes[] = {
        {"a", "a1,a2,a3,a4", 5},
        {"a", "a5,a6",       2},
        {"f", "f1,f2,f3,f4", 5},
        {"b", "b1,b2",       5},
        {"h", "h1,h2,h3,h4", 5},
    };

    for (size_t i = 0; i < sizeof pushes / sizeof *pushes; i++)
        pg_run(conn,
               "select push('%s', kind => k, priority => %d, max_tries => 1) "
               "from unnest(string_to_array('%s', ',')) k",
               pushes[i].queue, pushes[i].priority, pushes[i].names);
    pg_run(conn, "select push('a', kind => k, delay => d) from (values ('s1', interval '1 hour'), "
                 "('s2', interval '2 hours')) v (k, d)");
    pg_run(conn, "select push('b', kind => 'c2')");
    pg_run(conn,
           "select cancel(gen_random_uuid(), 1, array(select id from queue where kind = 'c2'))");
    core_settle(conn);
    for (int i = 1; i <= 4; i++) {
        pg_run(
            conn,
            "select complete_job('n1', lease, version, seq) from claim('n1', 1, queues => '{h}')");
        pg_run(conn,
               "select fail_job('n1', lease, version, seq, case when %d %% 2 = 0 then 'bang %d' "
               "else 'boom %d' end) from claim('n1', 1, queues => '{f}')",
               i, i, i);
    }
    /* ids in the order of the names, whatever the clock did */
    pg_run(conn, "with o as (select id, ('00000000-0000-7000-8000-0000000000' || "
                 "lpad(row_number() over (order by array_position('{a,f,b,s}', left(kind, 1)), "
                 "kind)::text, 2, '0'))::uuid as named from queue), "
                 "a as (update attempt t set job = o.named from o where o.id = t.job) "
                 "update queue q set id = o.named from o where o.id = q.id");
    pg_run(conn, "update queue set changed = now() + right(kind, 1)::int * interval '1 ms' where "
                 "state = 'failed'");
    pg_run(conn, "update history set finished = date_trunc('day', finished) + right(kind, 1)::int "
                 "* interval '1 ms' "
                 "where kind like 'h%%'");
    pg_run(conn, "update queue set payload = case kind when 'b1' then '{\"broken\": "
                 "\"\\u0000 acme\"}' else '{\"customer\": {\"id\": 7, \"name\": \"Acme "
                 "\\ud83d\\ude00\"}}' end::json where queue = 'b'");
    pg_run(conn, "update history set payload = null, body = 'for ACME' where kind = 'h1'");
    pg_run(conn, "update history set payload = '{\"h\": 1}' where kind = 'h1'");
    pg_run(conn, "select count(*) from claim('n1', 1, queues => '{a}')");
    pg_run(conn, "select count(*) from claim('n2', 1, queues => '{b}')");
}

static void
test_jobs(void **state)
{
    int wrong = 0;
    PGconn *conn = core_new("jobs");
    struct adapter *a = adapter_for("queues");
    static const int pages[][2] = {
        {100, 10000},
        {2,   10000},
        {1,   10000},
        {100, 1    },
        {3,   2    }
    };

    (void)state;
    make_named(conn);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof pages / sizeof *pages; k++) {
            const char *got = find(conn, a, cases[i].filter, pages[k][0], pages[k][1]);
            if (!strcmp(got, cases[i].kinds))
                continue;
            wrong++;
            print_error("%s, pages of %d, scanning %d: \"%s\" is not \"%s\"\n", cases[i].filter,
                        pages[k][0], pages[k][1], got, cases[i].kinds);
        }
    assert_int_equal(wrong, 0);
    for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++)
        find_back(conn, a, both_ways[i]);
    adapter_free(a);
    PQfinish(conn);
}

/* --- cost ------------------------------------------------------------------------------------- */

static void
make_many(PGconn *conn)
{
    pg_run(conn,
           "insert into queue (queue, kind, priority) select case when i %% 20 = 0 then 'apart'"
           " else 'big' end, 'k', (i %% 3) * 2 + 1 from generate_series(1, 60000) i");
    pg_run(conn, "insert into queue (queue, run_after) select 'later', now() + i * interval '1 s' "
                 "from generate_series(1, 20000) i");
    pg_run(conn,
           "insert into queue (queue, state, error, error_key, changed) select 'bad' || i %% 5, "
           "'failed', 'boom ' || i, 'boom N', now() - i * interval '1 s' "
           "from generate_series(1, 20000) i");
    pg_run(conn, "insert into queue (queue) select 'small' from generate_series(1, 20)");
    pg_run(
        conn,
        "insert into history (id, created, started, finished, state, priority, tries, queue, kind) "
        "select ('0190' || lpad(to_hex(i), 28, '0'))::uuid, now(), now(), date_trunc('day', now()) "
        "+ i * interval '1 ms', "
        "(case when i %% 1000 = 0 then 'cancelled' else 'completed' end)::job_state, 5, 1, 'big', "
        "'k' "
        "from generate_series(1, 50000) i");
    core_settle(conn);
    pg_run(conn, "select count(*) from claim('n1', 20)");
    pg_run(conn, "analyze");
}

/* Rows that a line of a plan says it read or threw away. */
static long
rows_in(const char *line, const char *word)
{
    const char *at = strstr(line, word);

    return at ? strtol(at + strlen(word), NULL, 10) : 0;
}

/* The jobs table or a partition of history read as a whole (an empty one may be). */
static bool
scans_all(const PGresult *plan, int row)
{
    const char *line = PQgetvalue(plan, row, 0), *at = strstr(line, "Seq Scan on ");
    long rows = rows_in(line, "actual rows=");

    if (!at || (strncmp(at + 12, "queue q", 7) != 0 && strncmp(at + 12, "history", 7) != 0))
        return false;
    for (int i = row + 1; i < PQntuples(plan) && i < row + 3; i++)
        rows += rows_in(PQgetvalue(plan, i, 0), "Rows Removed by Filter: ");
    return rows > 100;
}

/* The first line of a plan with its buffers names all of them. */
static int
pages_of(const PGresult *plan)
{
    for (int i = 0; i < PQntuples(plan); i++) {
        const char *hit = strstr(PQgetvalue(plan, i, 0), "shared hit=");
        if (hit)
            return (int)strtol(hit + 11, NULL, 10);
    }
    return 0;
}

static void
check_plan(PGconn *conn, const struct adapter *a, const char *text, int most_buffers)
{
    struct db_param storage[ADAPTER_PARAMS];
    struct params p = {0};
    struct filter f;
    struct err e;

    assert_true(filter_parse(text, &f, NULL, &e));
    params_copy(&p, &f.terms);
    filter_done(&f);
    params_set_int(&p, PARAM_LIMIT, 200);
    params_set_int(&p, PARAM_N, 10000);
    struct db_stmt stmt = adapter_bind(a, SEC_JOBS, &p, storage);
    char *sql = xasprintf("explain (analyze, buffers, costs off, timing off) %s", stmt.sql);
    PGresult *res = ask(conn, sql, &stmt);
    for (int i = 0; i < PQntuples(res); i++) {
        if (scans_all(res, i))
            fail_msg("%s: %s", text, PQgetvalue(res, i, 0));
    }
    if (pages_of(res) > most_buffers)
        fail_msg("%s: %d buffers", text, pages_of(res));
    PQclear(res);
    free(sql);
    params_done(&p);
}

/* A page costs what a page holds; a search costs what it may look through. */
static void
test_cost(void **state)
{
    PGconn *conn = core_new("cost");
    struct adapter *a = adapter_for("queues");
    static const char *const pages[] = {"",
                                        "queue:big",
                                        "queue:small",
                                        "queue:later",
                                        "queue:bad1",
                                        "queue:big state:ready",
                                        "queue:small state:ready",
                                        "state:failed",
                                        "state:failed queue:bad1",
                                        "state:failed error:\"boom 1\" queue:bad2",
                                        "state:scheduled",
                                        "state:running",
                                        "node:n1",
                                        "state:completed",
                                        "state:completed queue:big",
                                        "state:completed queue:small",
                                        "state:ready",
                                        "id:00000000-0000-7000-8000-000000000000"};
    static const char *const searches[] = {"needle",
                                           "needle queue:big",
                                           "needle queue:later",
                                           "kind:none",
                                           "tries>3 state:failed",
                                           "needle state:completed",
                                           "state:cancelled",
                                           "state:scheduled queue:small",
                                           "state:retry",
                                           "payload~needle"};

    (void)state;
    make_many(conn);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        check_plan(conn, a, pages[i], 3000);
    check_plan(conn, a, "queue:apart state:ready", 450); /* 3000 jobs on all pages */
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
        check_plan(conn, a, searches[i], 25000);
    adapter_free(a);
    PQfinish(conn);
}

/* With 1,000 queues the times are those of 12 minutes, not of an hour. */
static void
test_cost_of_times(void **state)
{
    PGconn *conn = core_new("times");
    struct adapter *a = adapter_for("queues");

    (void)state;
    pg_run(conn,
           "insert into queue_config (queue) select 'q' || i from generate_series(1, 1000) i");
    pg_run(conn, "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled,"
                 " lost, wait_ms, run_ms, wait_max, run_max, buckets, waits, runs)"
                 " select date_trunc('minute', now()) - m * interval '1 min', 'q' || i, 1, 1, 0, 0,"
                 " 0, 0, 1, 1, 1, 1, '{2}', '{1}', '{1}' from generate_series(0, 30) m,"
                 " generate_series(1, 1000) i");
    pg_run(conn, "analyze");
    PGresult *res = pg_query(conn, "explain (analyze, buffers) %s", adapter_sql(a, SEC_TIMES));
    if (pages_of(res) > 5500) /* of 30 minutes they are 8060 */
        fail_msg("times: %d buffers", pages_of(res));
    PQclear(res);
    adapter_free(a);
    PQfinish(conn);
}

/* --- failures --------------------------------------------------------------------------------- */

/* Jobs a1 to aN of the queue are claimed by the node and fail for good with the error, in which #
 * is the job's number. */
static void
fail_jobs(PGconn *c, const char *queue, const char *node, int n, const char *error)
{
    pg_run(c,
           "select push('%s', json_build_object('name', 'a' || i), kind => 'k' || i %% 2)"
           " from generate_series(1, %d) i",
           queue, n);
    core_settle(c);
    pg_run(c,
           "with c as (select * from claim('%s', %d, queues => '{%s}'))"
           " select count(*) from (select array_agg(lease) as l, array_agg(version) as v,"
           " array_agg(seq) as s, array_agg(replace('%s', '#', substr(payload ->> 'name', 2)))"
           " as e, array_agg(true) as f from c) x, fail('%s', l, v, s, e, final => f)",
           node, n, queue, error, node);
    char sure[16];
    snprintf(sure, sizeof sure, "%d", n);
    expect(c, sure,
           "select count(*) from queue where state = 'failed'"
           " and error_key = error_key(replace('%s', '#', '1'))",
           error);
    core_ten_seconds(c);
    core_settle(c);
}

static int64_t
number(const PGresult *res, int row, const char *column)
{
    return strtoll(PQgetvalue(res, row, PQfnumber(res, column)), NULL, 10);
}

/* How many of the jobs that failed within the hour are failed still: older ones do not count. */
static void
what_is_left_of_the_hour(void **state)
{
    static const char of_q[] = "select failed_left from (%s) t where queue = 'q'";
    PGconn *c = core_new("left");
    struct adapter *a = adapter_for("queues");

    (void)state;
    fail_jobs(c, "q", "n", 12, "no paper in tray #");
    fail_jobs(c, "other", "n", 3, "no ink"); /* the next kept fold sums up the minute of q */
    expect(c, "10", of_q, adapter_sql(a, SEC_TIMES));
    pg_run(c, "update queue set changed = now() - interval '3 h' where queue = 'q'"
              " and payload->>'name' <> 'a1'");
    expect(c, "1", of_q, adapter_sql(a, SEC_TIMES));
    pg_run(c, "select requeue_where(gen_random_uuid(), 1, 'q')");
    expect(c, "0", of_q, adapter_sql(a, SEC_TIMES));
    adapter_free(a);
    PQfinish(c);
}

/* Small groups are counted whole; the large one gets what is left, and says since when. */
static void
when_groups_failed(void **state)
{
    PGconn *c = core_new("fails");
    struct adapter *a = adapter_for("queues");
    struct params p = {0};
    int64_t of_large = 0, of_small = 0, hour = 0, since = 0;

    (void)state;
    fail_jobs(c, "q", "n1", 12, "row # is bad");
    fail_jobs(c, "q", "n1", 3, "boom");
    pg_run(c, "update queue set changed = now() - interval '2 h' where error = 'boom' and seq = "
              "(select min(seq) from queue where error = 'boom')");
    params_set(&p, PARAM_N, "10");
    PGresult *res = section(c, a, SEC_FAIL_TIMES, &p);
    for (int i = 0; i < PQntuples(res); i++) {
        bool large = !strcmp(PQgetvalue(res, i, PQfnumber(res, "error_key")), "row N is bad");
        *(large ? &of_large : &of_small) += number(res, i, "n");
        hour += large ? 0 : number(res, i, "hour");
        since += large ? 0 : !PQgetisnull(res, i, PQfnumber(res, "since_ms"));
        assert_true(!large || !PQgetisnull(res, i, PQfnumber(res, "since_ms")));
    }
    assert_int_equal(of_large, 7);
    assert_int_equal(of_small, 3);
    assert_int_equal(hour, 2);
    assert_int_equal(since, 0);
    PQclear(res);
    params_done(&p);
    adapter_free(a);
    PQfinish(c);
}

static const char *
field(const PGresult *res, int row, const char *column)
{
    return PQgetvalue(res, row, PQfnumber(res, column));
}

/* "jobs=2 node n9=2 ...": the parts of that sort. */
static void
expect_parts(PGconn *c, const struct adapter *a, const struct params *p, const char *what,
             const char *expected)
{
    PGresult *res = section(c, a, SEC_GROUP_PARTS, p);
    struct buf got = {0};

    buf_str(&got, "");
    for (int i = 0; i < PQntuples(res); i++)
        if (!strcmp(field(res, i, "what"), what))
            buf_printf(&got, "%s%s=%s/%s", got.len ? " " : "", field(res, i, "name"),
                       field(res, i, "n"), field(res, i, "of"));
    assert_string_equal(got.data, expected);
    buf_free(&got);
    PQclear(res);
}

static void
check_parts(PGconn *c, const struct adapter *a, struct params *p)
{
    params_set(p, PARAM_BY, "30 days"); /* one step, or two */
    expect_parts(c, a, p, "jobs", "=2/");
    expect_parts(c, a, p, "node", "n2=2/1");
    expect_parts(c, a, p, "kind", "k0=1/2 k1=1/2");
    expect_parts(c, a, p, "tries", "2 of 5=2/1");
    expect_parts(c, a, p, "number", "x-7=2/1 503=2/1 1=1/2 2=1/2");
    params_set(p, PARAM_N, "1");
    expect_parts(c, a, p, "jobs", "=1/");
    params_set(p, PARAM_N, NULL);
}

static void
check_samples(PGconn *c, const struct adapter *a, const struct params *p)
{
    PGresult *res = section(c, a, SEC_GROUP_SAMPLES, p);

    assert_int_equal(PQntuples(res), 2);
    assert_string_equal(field(res, 0, "node"), "n2");
    assert_string_equal(field(res, 0, "error"), "host=x-7 said 503 to 2");
    assert_string_equal(field(res, 0, "trace"), "at f");
    assert_non_null(strstr(field(res, 0, "payload"), "the last"));
    PQclear(res);
}

/* Of six: two fail for good, one waits to try again, three complete. */
static void
fail_again(PGconn *c)
{
    char list[200], *names[6] = {list};

    snprintf(list, sizeof list, "%s", pg_value(c, "select t.claim('n2', 6)"));
    for (int i = 1; i < 6; i++) {
        char *comma = strchr(names[i - 1], ',');
        assert_non_null(comma);
        *comma = '\0';
        names[i] = comma + 1;
    }
    for (int i = 0; i < 2; i++)
        pg_run(c, "select t.fail('n2', '%s', 'host=x-7 said 503 to %d', final => true)", names[i],
               i + 1);
    pg_run(c, "select t.fail('n2', '%s', 'host=x-7 said 503 to 6')", names[2]);
    pg_run(c, "select t.done('n2', '%s,%s,%s')", names[3], names[4], names[5]);
    pg_run(c, "update queue set kind = case when error like '%%1' then 'k0' else 'k1' end"
              " where state = 'failed'");
    pg_run(c, "update queue set payload = '{\"name\": \"the last\"}'"
              " where state = 'failed' and error like '%%2'");
    pg_run(c, "update attempt set trace = 'at f'");
}

/* 12 jobs failed and were requeued; 2 failed again, 3 completed since, the rest waits. */
static void
a_group_in_detail(void **state)
{
    PGconn *c = core_new("detail");
    struct adapter *a = adapter_for("queues");
    struct params p = {0};

    (void)state;
    fail_jobs(c, "q", "n1", 12, "host=x-7 said 503 to #");
    params_set(&p, PARAM_QUEUE, "q");
    params_set(&p, PARAM_ERROR, "host=x-N said N to N");
    PGresult *res = section(c, a, SEC_GROUP, &p);
    assert_int_equal(PQntuples(res), 1);
    assert_true(PQgetisnull(res, 0, PQfnumber(res, "past_verb")));
    assert_int_equal(number(res, 0, "done"), 0);
    PQclear(res);
    pg_run(c, "select requeue_where(gen_random_uuid(), 1, 'q', error => 'host=x-9 said 1 to 2')");
    core_settle(c);
    fail_again(c);
    res = section(c, a, SEC_GROUP, &p);
    assert_string_equal(field(res, 0, "past_verb"), "requeue");
    assert_int_equal(number(res, 0, "past_jobs"), 12);
    assert_int_equal(number(res, 0, "past_looked"), 12);
    assert_int_equal(number(res, 0, "past_failed"), 2);
    assert_int_equal(number(res, 0, "past_waiting"), 7);
    assert_int_equal(number(res, 0, "done"), 3);
    assert_int_equal(number(res, 0, "retrying"), 1);
    PQclear(res);
    check_parts(c, a, &p);
    check_samples(c, a, &p);
    params_done(&p);
    adapter_free(a);
    PQfinish(c);
}

/* The clock of a node comes from its column, and is not known if a queue of version 2 has no such
 * column. The rows are not made into JSON: they hold up to 1000 names of queues each. */
static void
the_clock_of_a_node(void **state)
{
    PGconn *conn = core_new("native_clock");
    struct adapter *a = adapter_for("queues");

    (void)state;
    pg_run(conn, "select node_start('n', gen_random_uuid(), 'h', 1, '1', 1, null, 1)");
    pg_run(conn, "select node_clock('n', session, -3500) from node");
    assert_null(strstr(adapter_sql(a, SEC_NODES), "json"));
    for (int without = 0; without < 2; without++) {
        if (without)
            pg_run(conn, "alter table node drop column clock_ahead");
        PGresult *res = section(conn, a, SEC_NODES, NULL);
        int ms = PQfnumber(res, "clock_ahead_ms");
        assert_int_equal(PQntuples(res), 1);
        assert_string_equal(PQgetvalue(res, 0, ms), without ? "" : "-3500");
        assert_int_equal(PQgetisnull(res, 0, ms), without);
        PQclear(res);
    }
    adapter_free(a);
    PQfinish(conn);
}

/* The jobs of an expired lease are counted by themselves: they take no slot. */
static void
the_jobs_of_expired_leases(void **state)
{
    PGconn *conn = core_new("native_expired");
    struct adapter *a = adapter_for("queues");

    (void)state;
    pg_run(conn, "select t.push('q', 'e' || i) from generate_series(1, 5) i; "
                 "select node_start('n', gen_random_uuid(), 'h', 1, '1', 1, null, 5)");
    core_settle(conn);
    expect(conn, "2", "select count(*) from claim('n', 2)");
    pg_run(conn,
           "update work_queue set lock_timeout = now() - interval '1 s' where lock_key = 'n'");
    expect(conn, "3", "select count(*) from claim('n', 3)");
    PGresult *res = section(conn, a, SEC_NODES, NULL);
    assert_string_equal(PQgetvalue(res, 0, PQfnumber(res, "running")), "5");
    assert_string_equal(PQgetvalue(res, 0, PQfnumber(res, "expired_jobs")), "2");
    PQclear(res);
    adapter_free(a);
    PQfinish(conn);
}

static char *
cell_within(PGconn *conn, const struct adapter *a, enum section_id s, const char *column)
{
    struct db_param storage[ADAPTER_PARAMS];
    struct db_stmt stmt = adapter_bind(a, s, NULL, storage);
    PGresult *res = ask_within(conn, stmt.sql, &stmt);
    char *text = xstrdup(PQgetvalue(res, 0, PQfnumber(res, column)));

    PQclear(res);
    pg_run(conn, "set local search_path = queues, pg_temp");
    return text;
}

/* A node is dead when its heartbeat is older than the setting. All who decide it agree, at exactly
 * that age, too. */
static void
all_agree_who_is_dead(void **state)
{
    static const struct {
        const char *age, *claims, *shown, *alive, *taken_over;
    } ages[] = {
        {"30 s",               "1", "late", "30",   "QT002"},
        {"30 s 1 microsecond", "0", "dead", "NULL", ""     },
    };
    PGconn *conn = core_new("native_dead");
    struct adapter *a = adapter_for("queues");

    (void)state;
    pg_run(conn,
           "select t.push('q', 'a1'), node_start('n', gen_random_uuid(), 'h', 1, '1', 1, null, 1)");
    core_settle(conn);
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        pg_run(conn, "begin; update node set heartbeat = now() - interval '%s'", ages[i].age);
        char *shown = cell_within(conn, a, SEC_NODES, "state"),
             *workers = cell_within(conn, a, SEC_LIFE, "workers");
        assert_string_equal(shown, ages[i].shown);
        assert_string_equal(workers, ages[i].claims);
        expect(conn, ages[i].alive, "select substring(node_alive('n', false) from '(\\d+) s old')");
        expect(conn, ages[i].claims,
               "select coalesce(sum(slots), 0) from node where not is_dead(heartbeat)");
        pg_run(conn, "savepoint s");
        expect(conn, ages[i].claims, "select count(*) from claim('n')");
        pg_run(conn, "rollback to s");
        assert_string_equal(
            pg_try(conn, "select node_start('n', gen_random_uuid(), 'h', 1, '1', 1, null, 1)"),
            ages[i].taken_over);
        pg_run(conn, "rollback");
        free(shown);
        free(workers);
    }
    adapter_free(a);
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_weird_schema),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_cost_of_times),
        cmocka_unit_test(what_is_left_of_the_hour),
        cmocka_unit_test(when_groups_failed),
        cmocka_unit_test(a_group_in_detail),
        cmocka_unit_test(the_clock_of_a_node),
        cmocka_unit_test(the_jobs_of_expired_leases),
        cmocka_unit_test(all_agree_who_is_dead),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
