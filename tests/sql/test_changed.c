/*
 * What an adapter reports as changed is changed. Each act of each adapter runs on each job of its
 * fixture alone, then once more in the same transaction, with values on both sides of what the job
 * has; all tables of the database are compared before and after. A row whose only new values are
 * those that each update writes (its time, its version) was not changed.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/action/action.h"
#include "model/base/mem.h"
#include "tests/sql/ask.h"
#include "tests/sql/core.h"

enum { TEXT_MOST = 400 };

/* Columns that an update writes whatever it changes. */
#define BOOKKEEPING "{updated_at,updated,retried,retries,version,revision}"

struct trial {
    struct adapter *a;
    PGconn *conn;
    struct loop *loop;
    struct db *db;
    char *digest; /* the query that computes it */
    int acts, changed, bad;
};

/* Computes one number from all rows of all tables. The order of the rows does not matter. */
static char *
digest_query(PGconn *conn)
{
    return xstrdup(pg_value(
        conn,
        "select 'select ' || string_agg(format('(select coalesce(sum(hashtextextended("
        "(to_jsonb(t) - ''" BOOKKEEPING "''::text[])::text, 0)::numeric), 0) from %%s t)', "
        "format('%%I.%%I', n.nspname, c.relname)), ' || '','' || ' order by c.oid) from pg_class c "
        "join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' "
        "and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"));
}

/* The number of jobs that an act reports as changed: the rows with a state. -1 = the act failed. */
static int
count_changed(PGresult *res)
{
    int state = PQfnumber(res, "state"), n = 0, rows = PQntuples(res);

    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        PQclear(res);
        return -1;
    }
    for (int i = 0; i < rows; i++)
        n += PQgetlength(res, i, state) > 0;
    PQclear(res);
    return n;
}

static void
act_twice(struct trial *t, enum section_id s, const struct params *p, const char *about)
{
    char *was = xstrdup("");

    ask_begin(t->conn, t->a, false);
    free(was);
    was = xstrdup(pg_value(t->conn, "%s", t->digest));
    for (int round = 1; round <= 2; round++) {
        int n = count_changed(ask_send(t->conn, t->a, s, p, ""));
        t->acts++;
        if (n < 0)
            break;
        const char *is = pg_value(t->conn, "%s", t->digest);
        if (n > 0 && !strcmp(is, was)) {
            print_error("%s: %s (%s), time %d: %d reported as changed, none is\n",
                        adapter_name(t->a), section_kinds[s].name, about, round, n);
            t->bad++;
        }
        t->changed += n;
        free(was);
        was = xstrdup(is);
    }
    free(was);
    pg_run(t->conn, "rollback");
}

/* Runs the act with each value that it may take in addition to its target. */
static void
act_with_values(struct trial *t, enum section_id s, struct params *p, const char *target)
{
    static const char *const by[] = {"1 ms", "1 s", "1 h", "300 h", NULL},
                             *const at[] = {"now", "2001-01-01", "2101-01-01", NULL},
                             *const n[] = {"0", "1", "2", "3", "4", "-7", NULL},
                             *const none[] = {"", NULL};
    enum param name = adapter_takes(t->a, s, PARAM_BY)   ? PARAM_BY
                      : adapter_takes(t->a, s, PARAM_AT) ? PARAM_AT
                      : adapter_takes(t->a, s, PARAM_N)  ? PARAM_N
                                                         : PARAM_TOTAL;
    const char *const *list = name == PARAM_BY   ? by
                              : name == PARAM_AT ? at
                              : name == PARAM_N  ? n
                                                 : none;

    for (; *list; list++) {
        char about[TEXT_MOST];
        if (name != PARAM_TOTAL)
            params_set(p, name, *list);
        snprintf(about, sizeof about, "%.200s %s", target, *list);
        act_twice(t, s, p, about);
    }
}

static void
set_rest(struct params *p, enum param target, const char *value)
{
    params_set(p, PARAM_REASON, "test");
    params_set_int(p, PARAM_LIMIT, 100);
    params_set_bool(p, PARAM_EXPIRED_ONLY, false);
    params_set_time(p, PARAM_BEFORE, INT64_C(4102444800000));
    if (target == PARAM_IDS)
        params_set_list(p, target, &value, 1);
    else if (target != PARAM_TOTAL)
        params_set(p, target, value);
}

/* Each value in the first column of what a section answers. */
static void
act_on_all(struct trial *t, enum section_id s, enum param target, enum section_id from,
           const char *states)
{
    struct params look = {0};

    if (!adapter_has(t->a, from))
        return;
    params_set_int(&look, PARAM_LIMIT, 100);
    params_set_int(&look, PARAM_N, 1000);
    params_set(&look, PARAM_STATES, states);
    ask_begin(t->conn, t->a, true);
    PGresult *res = ask_send(t->conn, t->a, from, &look, "");
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", adapter_name(t->a), PQresultErrorMessage(res));
    pg_run(t->conn, "rollback");
    params_done(&look);
    for (int i = 0; i < PQntuples(res); i++) {
        struct params p = {0};
        const char *value = PQgetvalue(res, i, 0);
        if (!*value)
            continue;
        set_rest(&p, target, value);
        act_with_values(t, s, &p, value);
        params_done(&p);
    }
    PQclear(res);
}

static void
act_on_jobs(struct trial *t, enum section_id s)
{
    static const char *const states[] = {"{scheduled}", "{ready}",   "{retry}",     "{running}",
                                         "{failed}",    "{blocked}", "{completed}", "{cancelled}"};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        act_on_all(t, s, PARAM_IDS, SEC_JOBS, states[i]);
}

/* True for an act that ends a session, has a `dry` note, or signals a program that changes the row
 * later. */
static bool
acts_elsewhere(const struct trial *t, enum section_id s)
{
    const char *mode = adapter_note(t->a, s, "mode");

    return s == SEC_TERMINATE || s == SEC_BACKEND_SIGNAL || adapter_note(t->a, s, "dry") ||
           (mode && !strcmp(mode, "signal"));
}

static void
check_acts(struct trial *t)
{
    struct params p = {0};

    for (int i = 0; i < SEC_COUNT; i++) {
        enum section_id s = (enum section_id)i;
        if (!section_kinds[s].acts || !adapter_has(t->a, s) || acts_elsewhere(t, s))
            continue;
        if (adapter_takes(t->a, s, PARAM_IDS)) {
            act_on_jobs(t, s);
        } else if (s == SEC_PURGE) {
            set_rest(&p, PARAM_TOTAL, NULL);
            params_set(&p, PARAM_STATES, "{completed,cancelled,failed}");
            act_twice(t, s, &p, "all");
            params_done(&p);
        } else if (adapter_takes(t->a, s, PARAM_NODE)) {
            act_on_all(t, s, PARAM_NODE, SEC_NODES, NULL);
        } else if (adapter_takes(t->a, s, PARAM_SCHEDULE)) {
            act_on_all(t, s, PARAM_SCHEDULE, SEC_SCHEDULES, NULL);
        } else {
            act_on_all(t, s, PARAM_QUEUE, SEC_QUEUES, NULL);
        }
    }
}

/* The number of acts that report a job as changed and did not change that job. */
static int
check_adapter(const char *name)
{
    struct trial t = {.a = ask_adapter(name, NULL)};

    t.conn = pg_fixture(name, name);
    pg_run(t.conn, "reset all");
    t.digest = digest_query(t.conn);
    check_acts(&t);
    print_message("%s: %d acts, %d rows changed\n", name, t.acts, t.changed);
    assert_true(t.changed > 0);
    free(t.digest);
    PQfinish(t.conn);
    adapter_free(t.a);
    return t.bad;
}

static void
test_what_is_reported_is_changed(void **state)
{
    int n = 0, bad = 0;

    (void)state;
    for (int i = 0; i < sql_adapters_n; i++)
        if (strcmp(sql_adapters[i].name, "native") != 0) {
            bad += check_adapter(sql_adapters[i].name);
            n++;
        }
    assert_int_equal(n, sql_adapters_n - 1);
    assert_int_equal(bad, 0);
}

/* --- a time: now, over, to come --------------------------------------------------------------- */

/* The job's time in the list of jobs, in ms; -1 = it is not there. */
static int64_t
time_of(struct trial *t, const char *id)
{
    struct params p = {0};

    params_set_list(&p, PARAM_IDS, &id, 1);
    params_set_int(&p, PARAM_LIMIT, 10);
    ask_begin(t->conn, t->a, true);
    PGresult *res = ask_send(t->conn, t->a, SEC_JOBS, &p, "");
    pg_run(t->conn, "rollback");
    params_done(&p);
    int col = PQfnumber(res, "run_after_ms");
    int64_t ms = PQntuples(res) == 1 ? strtoll(PQgetvalue(res, 0, col), NULL, 10) : -1;
    PQclear(res);
    return ms;
}

/* Runs the act as the console and the verb do. Returns how many jobs were reported as changed. */
static int
give_time(struct trial *t, const char *id, int64_t by_ms, int64_t at_ms)
{
    struct intent in = {
        .act = ACT_TIME, .ids = &id, .nids = 1, .by_ms = by_ms, .at_ms = at_ms, .expected = -1};
    struct action *a = action_new(t->loop, t->db, t->a, &in);

    struct err e = {0};

    while (action_state(a) == ACTION_PREVIEWING)
        assert_true(loop_turn(t->loop, 1000, &e));
    if (action_state(a) == ACTION_READY)
        action_start(a, false);
    while (action_state(a) == ACTION_RUNNING || action_state(a) == ACTION_WAITING)
        assert_true(loop_turn(t->loop, 1000, &e));
    if (action_state(a) != ACTION_DONE)
        fail_msg("%s: %s: %s", adapter_name(t->a), id, action_error(a)->text);
    int n = (int)action_progress(a).changed;
    action_free(a);
    return n;
}

static const char *
one_that_waits(struct trial *t)
{
    static char id[TEXT_MOST];
    static const char *const states[] = {"{scheduled}", "{retry}"};

    *id = 0;
    for (int i = 0; i < 2 && !*id; i++) {
        struct params p = {0};
        params_set(&p, PARAM_STATES, states[i]);
        params_set_int(&p, PARAM_LIMIT, 100);
        ask_begin(t->conn, t->a, true);
        PGresult *res = ask_send(t->conn, t->a, SEC_JOBS, &p, "");
        pg_run(t->conn, "rollback");
        if (PQntuples(res) > 0)
            snprintf(id, sizeof id, "%s", PQgetvalue(res, 0, 0));
        PQclear(res);
        params_done(&p);
    }
    return id;
}

/* The job must be reported as changed, and its time must be in this range. A ready job may have no
 * time. */
static void
expect_time(struct trial *t, const char *id, int64_t by_ms, int64_t at_ms, int64_t from_ms,
            int64_t until_ms)
{
    int n = give_time(t, id, by_ms, at_ms);
    int64_t is = time_of(t, id);

    if (n != 1)
        fail_msg("%s: job %s was not changed", adapter_name(t->a), id);
    if (is && (is < from_ms || is > until_ms))
        fail_msg("%s: job %s is due at %lld, not between %lld and %lld", adapter_name(t->a), id,
                 (long long)is, (long long)from_ms, (long long)until_ms);
}

static void
check_times(const char *name)
{
    enum { HOUR = 3600000 };
    struct trial t = {.a = ask_adapter(name, NULL)};

    if (adapter_has(t.a, SEC_TIME)) {
        char *database = xasprintf("times_%s", name);
        t.loop = loop_new();
        t.conn = pg_fixture(database, name);
        pg_run(t.conn, "reset all");
        struct db_options o = {.conninfo = pg_dsn(database),
                               .schema = "pg_catalog",
                               .stall_warn_ms = -1,
                               .stall_drop_ms = -1};
        t.db = db_new(t.loop, &o);
        const char *id = one_that_waits(&t);
        int64_t now = pg_int(t.conn, "select (extract(epoch from now()) * 1000)::bigint");
        if (!*id)
            fail_msg("%s: its fixture has no job that waits for its time", name);
        expect_time(&t, id, 2 * HOUR, 0, now + 2 * HOUR - 1000, INT64_MAX);
        expect_time(&t, id, 0, INT64_C(981173106000), 0, now + 1000);
        expect_time(&t, id, 2 * HOUR, 0, now + 2 * HOUR - 1000, INT64_MAX);
        expect_time(&t, id, 0, 0, now - 1000, now + HOUR);
        print_message("%s\n", name);
        db_free(t.db);
        loop_free(t.loop);
        PQfinish(t.conn);
        free(database);
    }
    adapter_free(t.a);
}

static void
test_now_is_a_time_everywhere(void **state)
{
    (void)state;
    for (int i = 0; i < sql_adapters_n; i++)
        if (strcmp(sql_adapters[i].name, "native") != 0)
            check_times(sql_adapters[i].name);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_reported_is_changed),
        cmocka_unit_test(test_now_is_a_time_everywhere),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
