/*
 * Every function of the core that somebody may call, with each argument at its limits: NULL, empty,
 * negative, the largest and the smallest, without end, arrays with NULLs, of two dimensions, with
 * another lower bound, texts of a megabyte, JSON of another kind. Each call is refused with a word
 * or does what it says; afterwards the scheduler goes on, another queue's job is claimed and
 * completed, and the books are right.
 */
#include "tests/sql/core.h"

#include <string.h>

/* The right values by name of the argument. Other arguments get the right value for their type. */
static const char plain[] =
    "create table t.plain (name text, value text);"
    "insert into t.plain values"
    " ('action', 'gen_random_uuid()'), ('batch', '1'), ('queue', $$'other'$$), ('node', $$'n'$$),"
    " ('lease', '(select min(lease) from t.mine)'), ('version', '1'), ('seq', '1'),"
    " ('leases', 'array(select lease from t.mine order by name)'),"
    " ('versions', 'array(select version from t.mine order by name)'),"
    " ('seqs', 'array(select seq from t.mine order by name)'),"
    " ('ids', 'array(select id from t.mine)'), ('job', '(select min(id::text)::uuid from t.mine)'),"
    " ('session', 'gen_random_uuid()'), ('protocol', '1'), ('slots', '4'), ('host', $$'h'$$),"
    " ('queues', $$array['other']$$), ('payload', $$'{}'$$), ('name', $$'nightly'$$),"
    " ('settings', $${}$$), ('cron', $$'@daily'$$), ('holder', $$'test'$$), ('by', $$'1 s'$$),"
    " ('verb', $$'terminate'$$), ('pid', '0'), ('priority', '3'), ('expired_only', 'true'),"
    " ('due', 'now()'), ('before', 'now()'), ('error', $$'boom'$$), ('wish', $$'{}'$$),"
    " ('params', $$'{}'$$), ('body', $$'{}'$$), ('n', '1'), ('states', $$array['failed']$$),"
    " ('target', '1'), ('refused', 'null'), ('started', 'null'), ('results', 'null'),"
    " ('errors', 'null'), ('reason', $$'why'$$), ('of', 'gen_random_uuid()');"
    "update t.plain set value = $$'{}'$$ where name = 'settings'";

static const char odd[] =
    "create table t.odd (type text, value text);"
    "insert into t.odd select type, value from (values"
    " ('integer', array['-1', '0', '(-2147483648)', '2147483647']),"
    " ('bigint', array['-1', '0', '(-9223372036854775808)', '9223372036854775807']),"
    " ('boolean', array['true', 'false']),"
    " ('text', array[$$''$$, $$' '$$, $$repeat('x', 1000000)$$, $$repeat(U&'\\00e9', 150)$$,"
    "   $$E'\\n\\t\\x01'$$, $$'%_\\'$$, $$'{}'$$, $$'*'$$, $$'~'$$, $$'~('$$, $$'~' || "
    "repeat('(a*)*', "
    "20)$$, $$'-1'$$]),"
    " ('timestamp with time zone', array[$$'infinity'$$, $$'-infinity'$$,"
    "   $$'294276-12-31 23:59:59+00'$$, $$'4713-01-02 BC'$$]),"
    " ('interval', array[$$'0'$$, $$'-1 s'$$, $$'178000000 years'$$, $$'-178000000 years'$$,"
    "   $$'2147483647 days'$$, $$'1 us'$$, $$'-1 month 31 days'$$]),"
    " ('uuid', array[$$'00000000-0000-0000-0000-000000000000'$$,"
    "   $$'ffffffff-ffff-ffff-ffff-ffffffffffff'$$]),"
    " ('json', array[$$'null'$$, $$'\"\\ud83d\"'$$, $$'\"\\u0000\"'$$,"
    "   $$(repeat('[', 3000) || repeat(']', 3000))$$]),"
    " ('jsonb', array[$$'null'$$, $$'[]'$$, $$'1'$$, $$'\"x\"'$$, $$'{\"x\": 1}'$$,"
    "   $$'{\"queue\": null, \"cron\": [], \"payload\": 1}'$$,"
    "   $$'{\"queue\": {}, \"cron\": 7, \"rate\": \"NaN/s\", \"weight\": 1e300}'$$,"
    "   $$'{\"weight\": -1}'$$, $$'{\"rate\": 1e999}'$$, $$'{\"chunk\": \"x\"}'$$,"
    "   $$'{\"max_running\": 99999999999999999999}'$$, $$'{\"priority\": 40000}'$$,"
    "   $$'{\"priority\": 99999999999}'$$, $$'{\"max_tries\": 40000}'$$,"
    "   $$'{\"max_tries\": -99999999999}'$$, $$'{\"delay\": \"178000000 years\"}'$$,"
    "   $$'{\"delay\": \"x\"}'$$, $$'{\"at\": \"300000-01-01\"}'$$, $$'{\"lease_timeout\": "
    "\"1000000 "
    "years\"}'$$,"
    "   $$(repeat('[', 3000) || repeat(']', 3000))$$]),"
    " ('bytea', array[$$''$$, $$'\\x00ff'$$])) v (type, odds), unnest(odds || 'null'::text) value;"
    /* arrays of each type that there is */
    "insert into t.odd select o.type || '[]', v from (select type, (array_agg(value order by "
    "value))[1]"
    " as value from t.odd where value <> 'null' and value not like '%repeat%' group by type) o,"
    " unnest(array['null', $$'{}'$$, $$'{NULL}'$$, $$'{NULL,NULL,NULL,NULL,NULL}'$$,"
    " 'array[' || value || ']', 'array[array[' || value || '],array[' || value || ']]',"
    " 'array_fill(' || value || '::' || type || ', array[2], array[-5])',"
    " 'array_fill(' || value || '::' || type || ', array[3], array[2147483640])',"
    " 'array_fill(' || value || '::' || type || ', array[20000])']) v;"
    "insert into t.odd select 'integer[]', x from unnest(array['array[2147483647,-1]',"
    " 'array[0,(-2147483648)]']) x;"
    "insert into t.odd select 'bigint[]', x from unnest(array['array[9223372036854775807,-1]',"
    " 'array[0,(-9223372036854775808)]']) x;"
    "insert into t.odd select 'text[]', $$array['*', 'x', 'failed', 'ready']$$;"
    "insert into t.odd values ('audit', 'null')";

/* The calls: one argument odd, the others that have no default plain. */
static const char calls[] =
    "create table t.calls as"
    " with f as (select p.oid, p.proname, p.pronargs - p.pronargdefaults as needs, a.n, "
    "p.proretset,"
    "   p.proargnames[a.n] as name, format_type(a.type, null) as type"
    "  from pg_proc p, unnest(p.proargtypes::oid[]) with ordinality a (type, n)"
    "  where p.pronamespace = 'queues'::regnamespace and p.prokind = 'f'"
    "   and p.prorettype <> 'trigger'::regtype"
    "   and p.proname not in ('claim_or_wait', 'schedule_or_wait')" /* they wait */
    "   and (has_function_privilege('queues_worker', p.oid, 'execute')"
    "     or has_function_privilege('queues_operator', p.oid, 'execute')))"
    " select o.proname, o.name as odd, v.value, 'select queues.' || o.proname || '(' ||"
    "  (select string_agg(format('%I => %s::%s', f.name, case when f.n = o.n then v.value else"
    "    coalesce((select value from t.plain p where p.name = f.name), 'null') end, f.type), ', '"
    "    order by f.n)"
    "   from f where f.oid = o.oid and (f.n <= o.needs or f.n = o.n)) || ')' as sql"
    " from f o join t.odd v on v.type = o.type order by o.proname, o.oid, o.n, v.value";

/* Node n holds five jobs, so that a call may answer for them. */
static void
hold(PGconn *c)
{
    pg_run(c, "truncate t.mine");
    pg_run(c, "select r.* from resume(gen_random_uuid(), 'other') r");
    pg_run(c, "insert into queue (queue, payload) select 'other', '{}' from generate_series(1, 5)");
    core_settle(c);
    pg_run(c, "insert into t.mine select 'a' || row_number() over (), lease, version, seq, id"
              " from claim('n', 5, '1 h', array['other'])");
}

/* A job of another queue is pushed, claimed and completed. */
static void
goes_on(PGconn *c, const char *after)
{
    const char *n = "";

    pg_run(c, "select push('honest', '{}')");
    for (int i = 0; i < 50 && strcmp(n, "1") != 0; i++) {
        const char *state = pg_try(c, "select t.step()");
        if (*state)
            fail_msg("%s: the scheduler fails: %s", after, state);
        n = pg_value(c,
                     "select count(*) from (select * from claim('honest', 1, '1 min',"
                     " array['honest'])) k, complete_job('honest', k.lease, k.version, k.seq) d");
    }
    if (strcmp(n, "1") != 0)
        fail_msg("%s: an honest job is not handed out", after);
}

/* A refusal must blame the caller: the codes in `wrong` would blame the server or this schema. Its
 * text must be the schema's own, because the server's message for a value out of range names
 * neither the parameter nor the range. Only for invalid JSON the server's message is right, because
 * it names the place in the JSON. */
static void
check_refusal(const char *sql, const PGresult *r)
{
    static const char *const wrong[] = {"XX",    "57",    "53",    "58", /* the server's */
                                        "22003", "22007", "22008", /* out of range for type ... */
                                        "2201W", "2201X", "22023", "23502", "54000"};
    const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *says = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

    if (!code)
        return;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (strncmp(code, wrong[i], strlen(wrong[i])) == 0)
            fail_msg("%.300s: %s: %s", sql, code, PQresultErrorMessage(r));
    if (strstr(says, "violates check constraint") ||
        (strcmp(code, "22P02") == 0 && !strstr(says, "type json")))
        fail_msg("%.300s: %s", sql, PQresultErrorMessage(r));
}

static void
all_arguments(void **state)
{
    PGconn *c = core_new("arguments");
    const char *last = "";

    (void)state;
    pg_run(c, "create table t.mine (name text, lease bigint, version int, seq bigint, id uuid)");
    pg_run(c, "%s", plain);
    pg_run(c, "%s", odd);
    pg_run(c, "%s", calls);
    pg_run(c, "select node_start('n', gen_random_uuid(), 'h', 1, 'v', 1, null, 4)");
    pg_run(c, "set statement_timeout = '60s'"); /* what would never end */
    PGresult *all = pg_query(c, "select sql, proname from t.calls");
    assert_true(PQntuples(all) > 2000);
    for (int i = 0; i < PQntuples(all); i++) {
        const char *sql = PQgetvalue(all, i, 0), *name = PQgetvalue(all, i, 1);
        if (strcmp(name, last) != 0) {
            goes_on(c, last);
            hold(c);
        }
        last = name;
        PGresult *r = PQexec(c, sql);
        check_refusal(sql, r);
        PQclear(r);
    }
    goes_on(c, last);
    PQclear(all);
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_arguments)};

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
