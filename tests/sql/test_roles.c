/*
 * Rights (rule 10, decisions 3 and 21): what each role may do and, above all, may not; that no
 * session's search_path or temporary objects can lead a function astray; other schema names, two at
 * once.
 */
#include <stdio.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/sql/core.h"

#define DENIED "42501"
#define ACT(n) "'00000000-0000-0000-0000-00000000000" #n "'"

/* A session of a login that is a member of one role and owns nothing. */
static PGconn *
as_role(const char *database, const char *role)
{
    PGconn *conn = core_join(database);

    pg_run(conn,
           "do $$ begin create role \"bare_%s\" login in role %s; exception when duplicate_object"
           " then null; end $$",
           role, role);
    pg_run(conn, "set session authorization \"bare_%s\"", role);
    return conn;
}

static void
a_bare_worker_pushes_by_insert(void **state)
{
    PGconn *c = core_new("bare_insert"), *w = as_role("bare_insert", "queues_worker");

    (void)state;
    pg_run(w, "insert into queue (queue, payload) values ('q', '{\"re\":\"\\\\d+\"}')");
    pg_run(
        w,
        "insert into queue (id, queue, kind, priority, body, payload_type, run_after, expires_at,"
        " unique_key, max_tries, run_timeout, lease_timeout) values (gen_random_uuid(), 'q', 'k', "
        "1,"
        " '\\x00ff', 'x/y', now() + interval '1 h', now() + interval '2 h', 'u', 3, '1 s', '1 s')");
    assert_string_equal(pg_try(w, "insert into queue (queue, state) values ('q', 'failed')"),
                        DENIED);
    assert_string_equal(pg_try(w, "insert into queue (queue, seq) values ('q', 1)"), DENIED);
    assert_string_equal(pg_try(w, "insert into queue (queue, tries) values ('q', 1)"), DENIED);
    assert_string_equal(pg_try(w, "select * from queue"), DENIED);
    assert_string_equal(pg_try(w, "delete from queue"), DENIED);
    core_settle(c);
    expect(c, "1 1", "select ready || ' ' || scheduled from overview()");
    expect(w, "{\"re\":\"\\\\d+\"}", "select payload from claim('n', 9)"); /* to the letter */
    core_check(c);
    PQfinish(c);
    PQfinish(w);
}

static void
a_bare_worker_works(void **state)
{
    PGconn *c = core_new("bare_work"), *w = as_role("bare_work", "queues_worker");

    (void)state;
    pg_run(w, "select push('q', '1'); select push_text('q', 'x'); select push_many(null, '{q,q}')");
    pg_run(
        w,
        "select node_start('n', '00000000-0000-0000-0000-000000000001', 'h', 1, 'v', 1, null, 4)");
    expect(w, "up", "select node_beat('n', '00000000-0000-0000-0000-000000000001')");
    expect(w, "pooler", "select node_sleep('n', gen_random_uuid(), '1 h', 0, null, true)");
    expect(w, "t", "select active from schedule('s')");
    expect(w, "done", "select complete_job('n', lease, version, seq) from claim('n')");
    expect(w, "retry", "select fail_job('n', lease, version, seq, 'x') from claim('n')");
    expect(w, "t", "select extend_lease('n', lease, version, '1 h') > now() from claim('n')");
    pg_run(w, "select give_back('n', array[lease], array[version], array[seq]) from claim('n')");
    pg_run(w, "select node_stop('n', '00000000-0000-0000-0000-000000000001')");
    core_check(c);
    /* and nothing else */
    assert_string_equal(pg_try(w, "select requeue(" ACT(1) ", 1, '{}')"), DENIED);
    assert_string_equal(pg_try(w, "select pause(" ACT(1) ", 'q')"), DENIED);
    assert_string_equal(pg_try(w, "select take_back('{1}', true, true, 'x')"), DENIED);
    assert_string_equal(pg_try(w, "select recount()"), DENIED);
    assert_string_equal(pg_try(w, "select * from history"), DENIED);
    assert_string_equal(pg_try(w, "update work_queue set lock_key = 'me'"), DENIED);
    assert_string_equal(pg_try(w, "insert into delta (queue, priority, ready) values ('q', 5, 9)"),
                        DENIED);
    PQfinish(c);
    PQfinish(w);
}

static void
a_bare_pusher_only_pushes(void **state)
{
    PGconn *c = core_new("bare_push"), *p = as_role("bare_push", "queues_pusher");
    char id[40];

    (void)state;
    pg_run(p, "select push('q', '1'); select push_text('q', 'x'); select push_bytes('q', '\\xff'); "
              "select push_many(null, '{q,q}')");
    snprintf(id, sizeof id, "%s",
             pg_value(p, "insert into queue (queue, payload) values ('q', '1') returning id"));
    expect(p, "ready", "select state from job_outcome('%s')", id);
    expect(p, "job_outcome,push,push_bytes,push_many,push_text,uuid_v7",
           "select string_agg(distinct proname, ',' order by proname) from pg_proc where "
           "pronamespace = 'queues'::regnamespace and has_function_privilege(oid, 'execute')");
    expect(p, "meta",
           "select string_agg(relname, ',') from pg_class where relnamespace = "
           "'queues'::regnamespace and relkind in ('r', 'p', 'v') and has_table_privilege(oid, "
           "'select, insert, update, delete, truncate, references, trigger')");
    assert_string_equal(pg_try(p, "select * from claim('n')"), DENIED);
    assert_string_equal(pg_try(p, "select schedule('s')"), DENIED);
    assert_string_equal(pg_try(p, "select payload from queue"), DENIED);
    assert_string_equal(pg_try(p, "insert into queue (queue, tries) values ('q', 1)"), DENIED);
    assert_string_equal(pg_try(p, "delete from queue"), DENIED);
    expect(c, "0", "select count(*) from rights_of_others()");
    core_settle(c);
    core_check(c);
    PQfinish(p);
    PQfinish(c);
}

/* Whoever pushes learns the id, and with it what became of the job, without a right to read tables.
 */
static void
a_bare_worker_asks_what_became_of_a_job(void **state)
{
    PGconn *c = core_new("outcome"), *w = as_role("outcome", "queues_worker");
    char id[40];

    (void)state;
    snprintf(id, sizeof id, "%s",
             pg_value(w, "insert into queue (queue, payload) values ('q', '1') returning id"));
    expect(w, "ready 0 full",
           "select state || ' ' || tries || ' ' || history from job_outcome('%s')", id);
    core_settle(c);
    pg_run(w, "create temp table held as select * from claim('n')");
    expect(w, "running t",
           "select state || ' ' || (started is not null)::text::char from job_outcome('%s')", id);
    pg_run(w, "select fail('n', array[lease], array[version], array[seq], '{bad}', "
              "retry_in => '{1 h}') from held");
    expect(w, "retry 1 bad t",
           "select concat_ws(' ', state, tries, error, (run_after > now())::text::char) from "
           "job_outcome('%s')",
           id);
    pg_run(c, "update queue set run_after = now()");
    core_settle(c);
    pg_run(w, "truncate held; insert into held select * from claim('n')");
    expect(w, "done", "select complete_job('n', lease, version, seq, 'sent') from held");
    expect(w, "completed 2 bad sent t",
           "select concat_ws(' ', state, tries, error, result_text, (finished >= started)::text::"
           "char) from job_outcome('%s')",
           id);
    pg_run(c, "update history set result = '\\xff'"); /* bytes that are no text */
    expect(w, "\\xff", "select concat(result, result_text) from job_outcome('%s')", id);
    expect(w, "0", "select count(*) from job_outcome(gen_random_uuid())");
    expect(w, "0", "select count(*) from job_outcome(null)");
    assert_string_equal(pg_try(w, "select payload from queue"), DENIED);
    assert_string_equal(pg_try(w, "select * from history_of(array['%s'::uuid])", id), DENIED);
    PQfinish(c);
    PQfinish(w);
}

static void
an_operator_acts_by_functions_only(void **state)
{
    PGconn *c = core_new("operator"), *o = as_role("operator", "queues_operator");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    pg_run(o, "select pause(" ACT(1) ", 'q', 'why'); select resume(" ACT(2) ", 'q')");
    expect(o, "bare_queues_operator", "select distinct who from audit_log");
    expect(o, "1", "select ready from overview()");
    expect(o, "cancelled", "select state from cancel(" ACT(3) ", 1, array(select id from queue))");
    const char *tables =
        "queue,work_queue,queue_config,node,history,attempt,delta,fold,counter,tick,cursor,"
        "mark,scheduler,audit,audit_batch,meta,setting";
    expect(
        o, "0 0",
        "select count(*) filter (where has_table_privilege(t, 'insert') or has_table_privilege(t,"
        " 'update') or has_table_privilege(t, 'delete') or has_table_privilege(t, 'truncate') or"
        " has_any_column_privilege(t, 'insert, update')) || ' ' || count(*) filter (where not"
        " has_table_privilege(t, 'select')) from regexp_split_to_table('%s', ',') t",
        tables);
    assert_string_equal(pg_try(o, "update queue set state = 'ready'"), DENIED);
    assert_string_equal(pg_try(o, "update audit set who = 'nobody'"), DENIED);
    assert_string_equal(pg_try(o, "delete from audit_batch"), DENIED);
    assert_string_equal(pg_try(o, "select claim('n')"), DENIED);
    assert_string_equal(pg_try(o, "select push('q')"), DENIED);
    PQfinish(c);
    PQfinish(o);
}

static void
a_viewer_reads_and_no_more(void **state)
{
    PGconn *c = core_new("viewer"), *v = as_role("viewer", "queues_viewer");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    expect(v, "1", "select ready from overview()");
    pg_run(
        v,
        "select * from rates(); select * from failure_groups(); select * from live; select * from"
        " audit_log; select * from queue; select * from history; select * from attempt");
    pg_run(v, "select * from requeue_preview(queue => 'q'); select * from release_preview('n');"
              " select * from extend_preview(null, 'n'); select * from purge_preview()");
    /* every function that acts or works is closed to it */
    expect(v, "",
           "select coalesce(string_agg(p.proname, ','), '') from pg_proc p where pronamespace ="
           " 'queues'::regnamespace and provolatile = 'v' and has_function_privilege(p.oid, "
           "'execute')");
    assert_string_equal(pg_try(v, "select push('q')"), DENIED);
    assert_string_equal(pg_try(v, "insert into queue (queue) values ('q')"), DENIED);
    assert_string_equal(pg_try(v, "select pause(" ACT(1) ", 'q')"), DENIED);
    PQfinish(c);
    PQfinish(v);
}

static void
the_public_has_nothing(void **state)
{
    PGconn *c = core_new("public"), *p = core_join("public");

    (void)state;
    pg_run(
        c,
        "do $$ begin create role nobody_special login; exception when duplicate_object then null;"
        " end $$");
    pg_run(p, "set session authorization nobody_special");
    assert_string_equal(pg_try(p, "select * from queues.queue"), DENIED);
    assert_string_equal(pg_try(p, "select queues.push('q')"), DENIED);
    expect(c, "",
           "select coalesce(string_agg(proname, ','), '') from pg_proc where pronamespace ="
           " 'queues'::regnamespace and has_function_privilege('nobody_special', oid, 'execute')");
    expect(
        c, "0",
        "select count(*) from pg_class where relnamespace = 'queues'::regnamespace and relkind in"
        " ('r', 'v', 'p') and has_table_privilege('nobody_special', oid, 'select')");
    PQfinish(c);
    PQfinish(p);
}

static void
every_open_function_is_pinned(void **state)
{
    PGconn *c = core_new("pinned");

    (void)state;
    /* what runs with the owner's rights names its own path, temporary objects last; but the trigger
       of each push and push(), which name all they use in full (test_push: operators_of_others) */
    expect(c, "push,queue_pushed",
           "select coalesce(string_agg(distinct proname, ','), '') from pg_proc where "
           "pronamespace ="
           " 'queues'::regnamespace and prosecdef and not coalesce(proconfig, '{}') @>"
           " array['search_path=queues, pg_temp']");
    /* and what anybody may call without them, too, but for those that use pg_catalog alone, and the
       constant slot_class() */
    expect(
        c, "code_of_others,error_key,push,slot_class,uuid_v7",
        "select string_agg(distinct p.proname, ',') from pg_proc p, unnest(array['queues_viewer',"
        " 'queues_worker', 'queues_operator', 'queues_pusher']) r where pronamespace = "
        "'queues'::regnamespace and"
        " has_function_privilege(r, p.oid, 'execute') and not coalesce(proconfig, '{}') @>"
        " array['search_path=queues, pg_temp']");
    PQfinish(c);
}

static void
temporary_objects_lead_nobody_astray(void **state)
{
    PGconn *c = core_new("hijack"), *w = as_role("hijack", "queues_worker");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    pg_run(c, "grant temp on database hijack to public");
    pg_run(w,
           "create temp table queue (id uuid, queue text); create temp table delta (n int);"
           " create temp table work_queue (lease bigint); create temp table tick (tick bigint);"
           " create function pg_temp.now() returns timestamptz language sql as $$ select"
           " '2000-01-01'::timestamptz $$;"
           " create function pg_temp.hashtextextended(text, bigint) returns bigint language plpgsql"
           " as $$ begin raise 'hijacked'; end $$");
    pg_run(w, "set search_path = pg_temp, pg_catalog, public");
    pg_run(w, "select queues.push('q', '{\"name\": \"b\"}')");
    pg_run(w, "insert into queues.queue (queue, payload) values ('q', '{\"name\": \"c\"}')");
    pg_run(w, "select queues.schedule('s')");
    expect(
        w, "done",
        "select string_agg(distinct o, ',') from (select queues.complete_job('n', lease, version,"
        " seq) o from queues.claim('n', 3)) z");
    expect(c, "a completed,b completed,c completed", "select t.finished()");
    core_check(c);
    PQfinish(c);
    PQfinish(w);
}

static void
any_name_and_two_in_one_database(void **state)
{
    PGconn *c = core_new("names");

    (void)state;
    core_load(c, "My Queue");
    core_load(c, "My Queue"); /* again: nothing changes */
    pg_run(c, "select \"My Queue\".push('q', '1'); select t.push('q', 'a')");
    expect(c, "1 1",
           "select (select count(*) from \"My Queue\".queue) || ' ' || (select count(*) from"
           " queues.queue)");
    expect(
        c, "done",
        "select \"My Queue\".complete_job('n', lease, version, seq) from \"My Queue\".claim('n')");
    expect(c, "1", "select completed from \"My Queue\".overview()");
    core_settle(c);
    expect(c, "a", "select t.claim('n')");
    core_check(c);
    PQfinish(c);
}

static void
a_second_load_changes_nothing(void **state)
{
    PGconn *c = core_new("again");
    const char *digest =
        "select md5(string_agg(x, ';' order by x)) from ("
        " select oid || pg_get_functiondef(oid) || proacl::text as x from pg_proc where "
        "pronamespace ="
        "  'queues'::regnamespace and prokind = 'f'"
        " union all select oid || relname || coalesce(relacl::text, '') || "
        "coalesce(reloptions::text, '')"
        "  from pg_class where relnamespace = 'queues'::regnamespace"
        " union all select oid::text from pg_trigger where tgrelid = 'queues.queue'::regclass"
        " union all select conname from pg_constraint where connamespace = 'queues'::regnamespace"
        " union all select t::text from queues.setting t union all select t::text from queues.meta "
        "t"
        " union all select t::text from queues.fold t union all select t::text from queues.tick t) "
        "z";

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a", "select t.claim('n')");
    pg_run(c, "update setting set value = '2000' where name = 'payload_limit'");
    const char *before = pg_value(c, "%s", digest);
    core_load(c, "queues");
    pg_run(c, "set search_path = queues, pg_temp");
    expect(c, before, "%s", digest);
    expect(c, "done", "select t.done('n')");
    expect(c, "b", "select t.claim('n')");
    core_check(c);
    PQfinish(c);
}

static void
everything_is_commented(void **state)
{
    PGconn *c = core_new("comments");

    (void)state;
    expect(c, "",
           "select coalesce(string_agg(relname, ',' order by 1), '') from pg_class where "
           "relnamespace ="
           " 'queues'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition and"
           " obj_description(oid, 'pg_class') is null");
    expect(
        c, "",
        "select coalesce(string_agg(proname, ',' order by 1), '') from pg_proc where pronamespace ="
        " 'queues'::regnamespace and obj_description(oid, 'pg_proc') is null");
    PQfinish(c);
}

/* --- each function as each role ------------------------------------------------------------------ */

static const char *const callers[] = {"queues_viewer", "queues_pusher", "queues_worker",
                                      "queues_operator", "nobody"};
enum { CALLERS = sizeof callers / sizeof *callers };

/* Whether the session may call the function: the call says so. A function that may be called, but
 * then meets something that its caller may not use, is no use to him. */
static bool
may_call(PGconn *s, const char *name, const char *call)
{
    char refused[200];

    pg_run(s, "begin; set local statement_timeout = '20s'");
    const char *state = pg_try(s, "select %s", call);
    bool denied = !strcmp(state, DENIED);
    snprintf(refused, sizeof refused, "permission denied for function %.100s\n", name);
    if (denied && !strstr(PQerrorMessage(s), refused) &&
        !strstr(PQerrorMessage(s), "permission denied for schema queues"))
        fail_msg("%s: %s", call, PQerrorMessage(s));
    pg_run(s, "rollback");
    return !denied;
}

/* Tries one function as all: "x" where the catalogs and the call say yes. True = somebody may. */
static bool
try_function(PGconn *const *s, const PGresult *r, int i, struct buf *row)
{
    const char *name = PQgetvalue(r, i, 0), *call = PQgetvalue(r, i, 1);
    bool some = false;

    buf_clear(row);
    buf_printf(row, "| `%s` |", PQgetvalue(r, i, 2));
    for (int k = 0; k < CALLERS; k++) {
        bool listed = *PQgetvalue(r, i, 3 + k) == 't';
        if (may_call(s[k], name, call) != listed)
            fail_msg("%s as %s: the catalogs say %s, the call says the opposite", call, callers[k],
                     listed ? "yes" : "no");
        buf_str(row, listed ? " x |" : "  |");
        some |= listed;
    }
    buf_str(row, "\n");
    return some;
}

/* The page lists who may call what. What it does not list, only the owner may call. */
static void
each_function_as_each_role(void **state)
{
    PGconn *c = core_new("each"), *s[CALLERS];
    struct buf page = {0}, row = {0};

    (void)state;
    pg_run(c, "do $$ begin create role nobody; exception when duplicate_object then null; end $$");
    for (int k = 0; k < CALLERS; k++)
        s[k] = as_role("each", callers[k]);
    pg_run(c, "reset search_path"); /* so that format_type names the schema */
    PGresult *r = PQexec(
        c, "select p.proname, format('queues.%I(%s)', p.proname, (select string_agg('(select "
           "null::' || "
           "format_type(t, null) || ')', ', ' order by n) from unnest(p.proargtypes) with "
           "ordinality a (t, "
           "n))), format('%s(%s)', p.proname, (select string_agg(format_type(t, null), ', ' order "
           "by n) from unnest(p.proargtypes) with ordinality a (t, n))), "
           "has_function_privilege('bare_queues_viewer', p.oid, 'execute'), "
           "has_function_privilege('bare_queues_pusher', p.oid, 'execute'), "
           "has_function_privilege('bare_queues_worker', p.oid, 'execute'), "
           "has_function_privilege('bare_queues_operator', p.oid, 'execute'), "
           "has_function_privilege('bare_nobody', p.oid, 'execute') "
           "from pg_proc p where p.pronamespace = 'queues'::regnamespace order by 3");
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(c));
    buf_str(
        &page,
        "# Who may call which function\n\nWritten by `UPDATE=1 make check T=test_roles`, and "
        "asserted by it: each function was called as each role, with\nNULL for all parameters. "
        "x: it may be called; otherwise the call ends with 42501. Only the owner may call the\n"
        "functions that are not listed; that, too, was tried. nobody: a login without a role of "
        "the queue.\n\n| function | viewer | pusher | worker | operator | nobody "
        "|\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < PQntuples(r); i++)
        if (try_function(s, r, i, &row))
            buf_str(&page, row.data);
    golden_text("tests/sql/functions.md", page.data);
    PQclear(r);
    buf_free(&page);
    buf_free(&row);
    for (int k = 0; k < CALLERS; k++)
        PQfinish(s[k]);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_function_as_each_role),
        cmocka_unit_test(a_bare_worker_pushes_by_insert),
        cmocka_unit_test(a_bare_worker_works),
        cmocka_unit_test(a_bare_pusher_only_pushes),
        cmocka_unit_test(a_bare_worker_asks_what_became_of_a_job),
        cmocka_unit_test(an_operator_acts_by_functions_only),
        cmocka_unit_test(a_viewer_reads_and_no_more),
        cmocka_unit_test(the_public_has_nothing),
        cmocka_unit_test(every_open_function_is_pinned),
        cmocka_unit_test(temporary_objects_lead_nobody_astray),
        cmocka_unit_test(any_name_and_two_in_one_database),
        cmocka_unit_test(a_second_load_changes_nothing),
        cmocka_unit_test(everything_is_commented),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
