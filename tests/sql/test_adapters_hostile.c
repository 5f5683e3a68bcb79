/*
 * Every adapter against what a hostile or careless producer can leave in its tables, and what a
 * careless operator can ask: each column of each fixture takes, row by row, values that its type
 * allows (control characters, halves of JSON, NULL, the ends of integers and of time, ids of other
 * shapes), in a database whose settings are not the usual ones and whose search path leads
 * elsewhere. Every watching section must answer and decode; every act must skip what it can't take,
 * without an error. Then the same tables in a schema with an unfriendly name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/base/mem.h"
#include "tests/sql/articles.h"
#include "tests/sql/ask.h"
#include "tests/sql/foreign.h"

enum { ROUNDS = 6 };

struct victim {
    const char *name;
    struct loop *loop;
    struct db *db;
    PGconn *conn; /* the producer's */
    struct adapter *adapter;
    char ids[20000]; /* of what is there, as an array */
    int wrong;
};

static const char *const wrong_ids[] = {
    "1; drop",
    "",
    "99999999999999999999",
    "x:y:z",
    ":",
    "mail:",
    ":7",
    "mail:99999999999999999999",
    "-9223372036854775809",
    "1e3",
    "00000000-0000-4000-8000-00000000000",
    "{}",
    "\x1b[2J",
    "consumer/1",
    "/",
    "9/9/9",
    "NULL",
    "no such:00000000-0000-4000-8000-000000000000",
};

static void
open_victim(struct victim *v, const char *name)
{
    struct err e = {0};
    char *database = xasprintf("h_%s", name);

    *v = (struct victim){.name = name, .loop = loop_new()};
    v->conn = pg_fixture(database, name);
    pg_run(v->conn, "reset all");
    article_add_columns(v->conn, name);
    pg_file(v->conn, "tests/sql/unfriendly.sql"); /* t.spoil(round) */
    struct db_options o = {.conninfo = pg_dsn(database),
                           .schema = "pg_catalog",
                           .statement_timeout_ms = 60000,
                           .stall_warn_ms = -1,
                           .stall_drop_ms = -1,
                           .lock_timeout_ms = 500,
                           .once = true,
                           .gate = &ask_gate};
    v->db = db_new(v->loop, &o);
    v->adapter = adapter_load(name, &e);
    if (!v->adapter)
        fail_msg("%s", e.text);
    free(database);
}

static void
close_victim(struct victim *v)
{
    PQfinish(v->conn);
    db_free(v->db);
    adapter_free(v->adapter);
    loop_free(v->loop);
}

static void
complain(struct victim *v, enum section_id s, const char *how, const char *what)
{
    print_error("%s: %s (%s): %s\n", v->name, section_kinds[s].name, how, what);
    v->wrong++;
}

/* Runs a section as the console does, and undoes its changes. Returns true with the reply. */
static bool
ask(struct victim *v, enum section_id s, const struct params *p, struct db_reply *reply,
    struct err *e)
{
    struct db_param storage[ADAPTER_PARAMS];
    struct db_stmt stmt = adapter_bind(v->adapter, s, p, storage);
    struct db_call call = {.stmts = &stmt, .n = 1, .dry = true};

    adapter_settings(v->adapter, section_kinds[s].acts, &call);
    return db_do(v->db, v->loop, &call, reply, e);
}

static void
look(struct victim *v, enum section_id s, const struct params *p, const char *how)
{
    struct db_reply reply;
    struct rowset rows;
    struct err e = {0};

    if (!ask(v, s, p, &reply, &e)) {
        complain(v, s, how, e.text);
        return;
    }
    if (section_kinds[s].record &&
        !record_decode(section_kinds[s].record, db_take(&reply, 0), &rows, &e))
        complain(v, s, how, e.text);
    else if (section_kinds[s].record)
        rowset_free(&rows);
    db_reply_done(&reply);
}

/* Spoilt ids can be the same as wrong ones. */
static bool
is_there(const struct victim *v, const char *id)
{
    struct params p = {0};

    params_set_list(&p, PARAM_IDS, &id, 1);
    char *quoted = xstrndup(p.value[PARAM_IDS] + 1, strlen(p.value[PARAM_IDS]) - 2);
    bool there = strstr(v->ids, quoted) != NULL;
    free(quoted);
    params_done(&p);
    return there;
}

/* A job that can't be changed must cause no error. Without may_change, only a job that exists may
 * be reported as changed. */
static void
act(struct victim *v, enum section_id s, const struct params *p, const char *how, bool may_change)
{
    struct db_reply reply;
    struct rowset rows;
    struct err e = {0};

    if (!ask(v, s, p, &reply, &e)) {
        if (strcmp(e.sqlstate, "23505") != 0) /* told row by row */
            complain(v, s, how, e.text);
        return;
    }
    if (!record_decode(&record_change, db_take(&reply, 0), &rows, &e)) {
        complain(v, s, how, e.text);
    } else {
        const struct change_row *row = rows.rows;
        for (int i = 0; i < rows.n && !may_change; i++)
            if (*row[i].state && !is_there(v, row[i].id))
                complain(v, s, how, "changes something");
        rowset_free(&rows);
    }
    db_reply_done(&reply);
}

/* The ids of all that the adapter lists now. */
static void
gather(struct victim *v)
{
    static const char *const lists[] = {NULL, "{completed,cancelled,failed}"};
    const char *ids[500];
    struct rowset rows[2] = {{0}};
    struct err e = {0};
    int n = 0;

    for (int k = 0; k < 2; k++) {
        struct params p = {0};
        struct db_reply reply;
        params_set(&p, PARAM_STATES, lists[k]);
        params_set_int(&p, PARAM_LIMIT, 200);
        if (ask(v, SEC_JOBS, &p, &reply, &e)) {
            if (!record_decode(&record_job, db_take(&reply, 0), &rows[k], &e))
                rows[k] = (struct rowset){0};
            db_reply_done(&reply);
        }
        params_done(&p);
        const struct job_row *row = rows[k].rows;
        for (int i = 0; i < rows[k].n && n < 500; i++)
            ids[n++] = row[i].id;
    }
    struct params p = {0};
    params_set_list(&p, PARAM_IDS, ids, n);
    assert_true(strlen(p.value[PARAM_IDS]) < sizeof v->ids);
    snprintf(v->ids, sizeof v->ids, "%s", p.value[PARAM_IDS]);
    params_done(&p);
    for (int k = 0; k < 2; k++)
        if (rows[k].rows)
            rowset_free(&rows[k]);
}

static void
set_ids(struct params *p, const struct victim *v, bool real)
{
    if (real)
        params_set(p, PARAM_IDS, v->ids);
    else
        params_set_list(p, PARAM_IDS, wrong_ids, (int)(sizeof wrong_ids / sizeof *wrong_ids));
}

/* Sets all parameters. Each value fits the type of its parameter, and nothing else. */
static void
set_all(struct params *p, bool odd)
{
    static const char *const words[] = {"\x1b[2J", "%", "\\", "{\"", "'"};

    params_set(p, PARAM_QUEUE, odd ? "x{x{" : "'; drop \"\x1b\\");
    params_set(p, PARAM_NODE, odd ? "-1" : "no:where/'\\\x1b");
    params_set(p, PARAM_KIND, "$1 {schema}");
    params_set(p, PARAM_ERROR, odd ? "~%_\\" : "\x1b]0;t\x07 17");
    params_set(p, PARAM_SCHEDULE, "99999999999999999999");
    params_set_list(p, PARAM_WORDS, words, 5);
    params_set_list(p, PARAM_NOT_WORDS, words, 5);
    params_set_list(p, PARAM_PATH, words, 2);
    params_set(p, PARAM_IN_PAYLOAD, odd ? "~\x1b" : "=\\");
    params_set_int(p, PARAM_MIN_TRIES, odd ? 2147483647 : -2147483647);
    params_set_int(p, PARAM_TOP_TRIES, odd ? 2147483647 : -2147483647);
    params_set_interval(p, PARAM_OLDER_THAN, odd ? 100LL * 365 * 86400 * 1000 : 1);
    params_set_interval(p, PARAM_YOUNGER_THAN, 1000);
    params_set_int(p, PARAM_LIMIT, 3);
    params_set_time(p, PARAM_BEFORE, odd ? 253402300799000 : 0);
    params_set_time(p, PARAM_AT, odd ? 253402300799000 : 0);
    params_set_interval(p, PARAM_BY, odd ? 100LL * 365 * 86400 * 1000 : 1000);
    params_set_int(p, PARAM_N, odd ? 2147483647 : 1);
    params_set(p, PARAM_REASON, "\x1b[2J'\\");
}

static bool
is_asked(const struct victim *v, enum section_id s)
{
    return adapter_has(v->adapter, s) && s != SEC_BACKEND_SIGNAL &&
           strncmp(section_kinds[s].name, "health_", 7) != 0;
}

/* All sections that only look, in four ways. */
static void
look_at_all(struct victim *v, int round)
{
    char how[60];

    for (int way = 0; way < 5; way++) {
        struct params p = {0};
        if (way >= 3)
            set_all(&p, way == 3);
        if (way == 1 || way == 2)
            set_ids(&p, v, way == 1);
        if (way == 2)
            params_set(&p, PARAM_STATES, "{failed,completed,cancelled}");
        snprintf(how, sizeof how, "round %d, way %d", round, way);
        for (int s = 0; s < SEC_COUNT; s++)
            if (is_asked(v, (enum section_id)s) && !section_kinds[s].acts)
                look(v, (enum section_id)s, &p, how);
        params_done(&p);
    }
}

/* Each job that is listed, alone: its page. */
static void
look_at_each(struct victim *v, int round)
{
    struct db_reply reply;
    struct rowset rows;
    struct params p = {0};
    struct err e = {0};
    char how[100];

    if (!ask(v, SEC_JOBS, &p, &reply, &e))
        return;
    if (record_decode(&record_job, db_take(&reply, 0), &rows, &e)) {
        const struct job_row *row = rows.rows;
        for (int i = 0; i < rows.n; i++) {
            params_set_list(&p, PARAM_IDS, &row[i].id, 1);
            snprintf(how, sizeof how, "round %d, job %s", round, row[i].id);
            look(v, SEC_JOB, &p, how);
            if (adapter_has(v->adapter, SEC_ATTEMPTS))
                look(v, SEC_ATTEMPTS, &p, how);
        }
        rowset_free(&rows);
    }
    params_done(&p);
    db_reply_done(&reply);
}

/* Reads the whole list in pages of one row: each job comes once, and the list ends. */
static void
page_through(struct victim *v, int round, const char *states)
{
    char cursor[1000] = "", how[100], *seen = xstrdup(" ");
    int all = 0, n = 0;

    for (int limit = 100; limit > 0 && n < 100; limit = 1) {
        struct params p = {0};
        struct db_reply reply;
        struct rowset rows;
        struct err e = {0};
        snprintf(how, sizeof how, "round %d, page %d", round, n);
        params_set(&p, PARAM_STATES, states);
        params_set(&p, PARAM_CURSOR, *cursor ? cursor : NULL);
        params_set_int(&p, PARAM_LIMIT, limit);
        bool ok = ask(v, SEC_JOBS, &p, &reply, &e);
        params_done(&p);
        if (!ok || !record_decode(&record_job, db_take(&reply, 0), &rows, &e)) {
            complain(v, SEC_JOBS, how, e.text);
            break;
        }
        db_reply_done(&reply);
        const struct job_row *row = rows.rows;
        if (limit > 1) {
            all = rows.n;
        } else if (rows.n > 0) {
            char *id = xasprintf(" %s ", row->id);
            if (*row->id && strstr(seen, id))
                complain(v, SEC_JOBS, how, "a row comes twice");
            char *more = xasprintf("%s%s", seen, id + 1);
            free(id);
            free(seen);
            seen = more;
            n += *row->id != 0;
            snprintf(cursor, sizeof cursor, "%s", row->cursor);
        }
        bool end = limit == 1 && rows.n == 0;
        rowset_free(&rows);
        if (end)
            break;
    }
    free(seen);
    snprintf(how, sizeof how, "round %d: %d by pages, %d at once", round, n, all);
    if (n != all)
        complain(v, SEC_JOBS, how, "paging");
}

static void
act_on_all(struct victim *v, int round)
{
    char how[60];

    for (int way = 0; way < 4; way++) {
        struct params p = {0};
        bool real = way >= 2;
        set_all(&p, way % 2);
        set_ids(&p, v, real);
        if (real)
            params_set(&p, PARAM_QUEUE, NULL);
        snprintf(how, sizeof how, "round %d, %s ids, way %d", round, real ? "real" : "wrong", way);
        for (int s = 0; s < SEC_COUNT; s++) {
            bool by_ids = adapter_takes(v->adapter, (enum section_id)s, PARAM_IDS);
            if (is_asked(v, (enum section_id)s) && section_kinds[s].acts && s != SEC_TERMINATE)
                act(v, (enum section_id)s, &p, how, real || !by_ids);
        }
        params_done(&p);
    }
}

static bool
chosen(struct victim *v, struct err *e)
{
    struct db_stmt stmt = {.sql = adapter_sql(v->adapter, SEC_DETECT)};
    struct db_call call = {.stmts = &stmt, .n = 1};
    struct db_reply reply;
    bool ok = db_do(v->db, v->loop, &call, &reply, e);

    if (!ok)
        return false;
    ok = result_rows(reply.results[0]) > 0 &&
         adapter_use(v->adapter, result_text(reply.results[0], 0, 0), e);
    db_reply_done(&reply);
    return ok;
}

/* A job of these can stand in several tables, which no producer can bring about. */
static bool
has_one_place(const struct victim *v)
{
    return strcmp(v->name, "solid_queue") != 0 && strcmp(v->name, "pgmq") != 0;
}

/* The same tables in a schema whose name must be quoted in every way. */
static void
look_elsewhere(struct victim *v)
{
    struct err e = {0};

    pg_run(v->conn, "alter schema %s rename to \"we\"\"ird '\\ {schema} $1\"",
           adapter_schema(v->adapter));
    if (!chosen(v, &e))
        complain(v, SEC_DETECT, "another schema", e.text);
    else
        look_at_all(v, -1);
}

static int total;

static void
check_rows(const char *name)
{
    struct victim v;
    struct err e = {0};

    open_victim(&v, name);
    if (!chosen(&v, &e))
        fail_msg("%s: not found: %s", name, e.text);
    for (int round = 0; round < ROUNDS; round++) {
        pg_run(v.conn, "begin; select t.spoil(%d); commit", round);
        gather(&v);
        look_at_all(&v, round);
        look_at_each(&v, round);
        if (round % 5 == 1 && has_one_place(&v)) {
            page_through(&v, round, NULL);
            page_through(&v, round, "{failed,completed,cancelled}");
        }
        act_on_all(&v, round);
    }
    if (strcmp(name, "pgmq") != 0 && strcmp(name, "pgq") != 0) /* their schemas have fixed names */
        look_elsewhere(&v);
    close_victim(&v);
    total += v.wrong;
}

static bool
is_foreign(const char *name)
{
    return strcmp(name, "native") != 0;
}

static void
test_rows(void **state)
{
    (void)state;
    for (int i = 0; i < sql_adapters_n; i++)
        if (is_foreign(sql_adapters[i].name))
            check_rows(sql_adapters[i].name);
    assert_int_equal(total, 0);
}

/* Which value a row gets depends on its place in the table: a vacuum may change the places, and
 * make rows that no trigger of the system itself would accept. */
static int
without_vacuum(void **state)
{
    int rc = pg_group_start(state);
    PGconn *c = pg_connect(pg_dsn("postgres"));

    pg_run(c, "alter system set autovacuum = off");
    pg_run(c, "select pg_reload_conf()");
    PQfinish(c);
    return rc;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
    };

    return cmocka_run_group_tests(tests, without_vacuum, pg_group_stop);
}
