/*
 * The order of locks (sql/core/00_schema.sql): each statement that takes locks runs against each
 * other one, in both orders. The first statement's transaction is held open. The second statement
 * begins, and is done or waits. Then the first transaction commits or rolls back. In every case
 * there is no deadlock, the counters are those of the jobs, each job is in one place, and every job
 * that is ready is handed out. While a worker's transaction stays open, no session that waits for
 * it keeps the scheduler from its steps.
 */
#include "tests/sql/core.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 60000 };

/* One queue for each pair: its jobs are running (r1, r2 in one lease, r3, r4), cut (f1 to f4), not
 * cut (u), scheduled (s), failed (x), requeued by the action t.act(k, 1) (y, and p of history),
 * cancelled by the action 2 (z, with a unique key). */
static const char words[] =
    "create function t.act(k int, n int) returns uuid language sql immutable as"
    " $$ select format('00000000-0000-7000-8000-%s%s', to_char(k, 'FM0000000'), to_char(n, "
    "'FM00000'))::uuid $$;"
    "create function t.ids(k int, names text) returns uuid[] language sql stable as $$"
    " select coalesce(array_agg(id order by name), '{}') from (select id, payload->>'name' as name "
    "from queue where queue = 'q' || k"
    "  union all select id, payload->>'name' from history where queue = 'q' || k) z where name = "
    "any(string_to_array($2, ',')) $$;"
    "create function t.steps() returns void language plpgsql as $$ begin for i in 1 .. 2 loop"
    " update tick set cut_at = cut_at - interval '1 s' where tick = (select max(tick) from tick);"
    " perform schedule('test'); end loop; end $$;"
    "create function t.lay(k int) returns void language plpgsql as $$ declare q text := 'q' || k; "
    "n "
    "text := 'n' || k; begin"
    " insert into queue_config (queue, chunk) values (q, 2);"
    " perform t.push(q, 'x,y,p'); perform push(q, '{\"name\": \"z\"}', unique_key => 'k1');"
    " perform t.steps(); perform t.claim(n, 4, null, array[q]);"
    " perform t.fail(n, 'x,y', 'broken', null, true); perform t.done(n, 'p');"
    " perform t.back(n, 'z'); delete from t.held;"
    " perform cancel(t.act(k, 2), 1, t.ids(k, 'z'));"
    " perform t.push(q, 'r1,r2,r3,r4,f1,f2,f3,f4'); perform t.steps();"
    " perform t.claim(n, 4, null, array[q]);"
    " perform requeue(t.act(k, 1), 1, t.ids(k, 'y,p'));"
    " perform t.push(q, 's', 5, '1 h'); perform t.push(q, 'u', 9); end $$;"
    "create function t.rest(k int) returns text language plpgsql as $$ declare q text := 'q' || k; "
    "begin"
    " update queue_config set paused_at = null, max_running = null where queue = q; perform "
    "wake_queue(q);"
    " for i in 1 .. 20 loop perform t.steps(); exit when t.claim('z' || k, 100, null, array[q]) = "
    "''"
    " and i > 1; end loop;"
    " return (select string_agg(payload ->> 'name', ',') from queue j where queue = q and state = "
    "'ready'"
    "  and not exists (select from work_queue w where w.lock_key is not null and w.queue = q and "
    "j.seq = any(w.seqs))); end $$;"
    "create function t.clear(k int) returns void language sql as $$"
    " select t.done('z' || $1); select t.done('n' || $1);"
    " select delete_jobs(gen_random_uuid(), 1, array(select id from queue where queue = 'q' || "
    "$1)) $$;";

/* %1$s is the number of the pair. */
static const struct one {
    const char *name, *sql;
    bool worker; /* its transaction may stay open for long */
} ones[] = {
    {"complete",        "select t.done('n%1$s', 'r1,r2,r3')",                                                 true },
    {"fail",            "select t.fail('n%1$s', 'r3,r1')",                                                    true },
    {"extend",          "select t.extend('n%1$s')",                                                           true },
    {"claim",           "select t.claim('m%1$s', 3, '1 h', '{q%1$s}')",                                       true },
    {"give back",       "select t.back('n%1$s', 'r2,r3')",                                                    false},
    {"push with keys",
     "select count(*) from push_many(null, '{q%1$s,q%1$s,q%1$s}', unique_keys => '{k3,k1,k2}', "
     "payloads => array_fill('{\"name\": \"k\"}'::text, '{3}'))",                                             false},
    {"step",            "select active from schedule('test')",                                                false},
    {"cancel",          "select count(*) from cancel(gen_random_uuid(), 1, t.ids(%1$s, 'r1,f2,f3,u,s,x,y'))",
     false                                                                                                         },
    {"delete where",
     "select count(*) from delete_where(gen_random_uuid(), 1, 'q%1$s', "
     "'{running,ready,scheduled,failed,retry}')",                                                             false},
    {"priority",
     "select count(*) from set_priority(gen_random_uuid(), 1, t.ids(%1$s, 'r4,f4,u,y'), 2)",                  false},
    {"requeue",
     "select count(*) from requeue_where(gen_random_uuid(), 1, 'q%1$s', "
     "'{failed,cancelled,retry}')",                                                                           false},
    {"undo of requeue", "select count(*) from undo(gen_random_uuid(), 1, t.act(%1$s, 1))",                    false},
    {"undo of cancel",  "select count(*) from undo(gen_random_uuid(), 1, t.act(%1$s, 2))",                    false},
    {"edit",
     "select count(*) from (select id, job_version(state::text, seq, null) as v from queue where "
     "id = "
     "any(t.ids(%1$s, 'f3'))) j, edit_job(gen_random_uuid(), 1, array[j.id], j.v, '{\"name\": "
     "\"e\"}')",                                                                                              false},
    {"set queue",
     "select count(*) from set_queue(gen_random_uuid(), 'q%1$s', '{\"max_running\": 50}')",                   false},
    {"pause",           "select count(*) from pause(gen_random_uuid(), 'q%1$s')",                             false},
    {"release",         "select count(*) from release(gen_random_uuid(), 1, 'n%1$s', false, force => true)",
     false                                                                                                         },
    {"purge",
     "select count(*) from purge(gen_random_uuid(), 1, 'q%1$s', '{completed,cancelled,failed}', "
     "now())",                                                                                                false},
};
enum { ONES = sizeof ones / sizeof *ones };

struct field {
    PGconn *watch, *first, *second;
    int k;
};

/* Begins the statement in the second session. Returns when the statement is done or waits for a
 * lock. */
static void
begin_second(const struct field *f, const char *sql)
{
    char ask[300];

    pg_send(f->second, pg_value(f->watch, "select '/* ' || %d || ' */ ' || $f$%s$f$", f->k, sql));
    snprintf(ask, sizeof ask,
             "select query like '/* %d */%%' and (state <> 'active' or"
             " cardinality(pg_blocking_pids(pid)) > 0) from pg_stat_activity where pid = %d",
             f->k, PQbackendPID(f->second));
    pg_wait(f->watch, ask, "t", WAIT_MS);
}

static bool
may_say(const char *first, const struct one *second, const char *code)
{
    if (!strcmp(code, "40001")) /* what was to come back has been purged */
        return !strcmp(first, "purge") && !strcmp(second->name, "undo of cancel");
    if (!strcmp(code, "55P03")) /* it gives up instead of waiting */
        return !strcmp(second->name, "pause") || !strcmp(second->name, "set queue");
    return !*code;
}

static void
meet(struct field *f, const struct one *a, const struct one *b, const char *end)
{
    f->k++;
    const char *first = pg_value(f->watch, "select format($f$%s$f$, %d)", a->sql, f->k);
    const char *second = pg_value(f->watch, "select format($f$%s$f$, %d)", b->sql, f->k);
    pg_run(f->watch, "select t.lay(%d)", f->k);
    pg_run(f->first, "begin; %s", first);
    begin_second(f, second);
    if (a->worker)
        pg_wait(f->watch, "select active from schedule('test')", "t", WAIT_MS);
    pg_run(f->first, "%s", end);
    const char *code = pg_finish(f->second);
    if (!may_say(a->name, b, code))
        fail_msg("%s, then %s, %s: the second says %s", a->name, b->name, end, code);
    const char *left = pg_value(f->watch, "select coalesce(t.rest(%d), '')", f->k);
    if (*left)
        fail_msg("%s, then %s, %s: never handed out: %s", a->name, b->name, end, left);
    const char *wrong = pg_value(f->watch, "select t.truth()");
    if (*wrong)
        fail_msg("%s, then %s, %s: %s", a->name, b->name, end, wrong);
    pg_run(f->watch, "select t.clear(%d)", f->k);
}

/* n = 1: each with each; 3: a third of the pairs, each statement in both places. */
static void
each_with_each(const char *database, const char *end, int n)
{
    PGconn *c = core_new(database);
    struct field f = {c, core_join(database), core_join(database), 0};

    pg_run(c, "%s", words);
    for (int i = 0; i < ONES; i++)
        for (int j = i % n; j < ONES; j += n)
            meet(&f, &ones[i], &ones[j], end);
    PQfinish(f.first);
    PQfinish(f.second);
    PQfinish(c);
}

static void
the_first_commits(void **state)
{
    (void)state;
    each_with_each("order_commit", "commit", 1);
}

static void
the_first_rolls_back(void **state)
{
    (void)state;
    each_with_each("order_rollback", "rollback", 9);
}

/* --- the steps of the order, as pg_locks shows them ------------------------------------------- */

/* While the second session waits, it has no lock on these tables, except for reading. A session
 * that waits for a moment only (lock_timeout) has given up by then. */
static void
waits_without(const struct field *f, const char *tables)
{
    char ask[600];

    snprintf(ask, sizeof ask,
             "select not exists (select from pg_locks w where w.pid = %d and not w.granted) or not"
             " exists (select from pg_locks l where l.pid = %d and l.granted and l.relation ="
             " any('{%s}'::regclass[]) and l.mode <> 'AccessShareLock')",
             PQbackendPID(f->second), PQbackendPID(f->second), tables);
    pg_wait(f->watch, ask, "t", WAIT_MS);
}

/* The first session holds the locks of `hold`. Each statement that comes then waits for it, and has
 * no lock on `tables` yet. */
static void
none_waits_with(struct field *f, const char *hold, const char *tables)
{
    for (int i = 0; i < ONES; i++) {
        f->k++;
        pg_run(f->watch, "select t.lay(%d)", f->k);
        pg_run(f->first, "begin; %s",
               pg_value(f->watch, "select format($f$%s$f$, %d)", hold, f->k));
        begin_second(f, pg_value(f->watch, "select format($f$%s$f$, %d)", ones[i].sql, f->k));
        waits_without(f, tables);
        pg_run(f->first, "commit");
        const char *code = pg_finish(f->second);
        if (!may_say("", &ones[i], code))
            fail_msg("%s beside %s says %s", ones[i].name, hold, code);
        pg_run(f->watch, "select t.rest(%d), t.clear(%d)", f->k, f->k);
    }
}

/* Two sessions send the same act at once: the second waits for the first, and holds no table lock.
 */
static void
an_act_waits_with_nothing(struct field *f)
{
    int acts = 0;

    for (int i = 0; i < ONES; i++) {
        if (!strstr(ones[i].sql, "gen_random_uuid()"))
            continue;
        f->k++;
        acts++;
        pg_run(f->watch, "select t.lay(%d)", f->k);
        const char *sql = pg_value(
            f->watch, "select replace(format($f$%s$f$, %d), 'gen_random_uuid()', 't.act(%d, 9)')",
            ones[i].sql, f->k, f->k);
        pg_run(f->first, "begin; %s", sql);
        begin_second(f, sql);
        expect(f->watch, "advisory",
               "select coalesce(string_agg(locktype, ','), ones.name) from (select '%s' as name)"
               " ones left join pg_locks on pid = %d and not granted group by ones.name",
               ones[i].name, PQbackendPID(f->second));
        waits_without(f, "queue,work_queue,queue_config,schedule,scheduler,history,delta");
        pg_run(f->first, "commit");
        assert_string_equal(pg_finish(f->second), "");
        pg_run(f->watch, "select t.rest(%d), t.clear(%d)", f->k, f->k);
    }
    assert_in_range(acts, 10, ONES);
}

static void
each_step_before_the_next(void **state)
{
    PGconn *c = core_new("order_steps");
    struct field f = {c, core_join("order_steps"), core_join("order_steps"), 0};

    (void)state;
    pg_run(c, "%s", words);
    an_act_waits_with_nothing(&f);
    none_waits_with(&f,
                    "select from work_queue where queue = 'q%1$s' order by lease for update;"
                    " select from queue where queue = 'q%1$s' and state <> 'ready' order by id for"
                    " update; select from queue_config where queue = 'q%1$s' for update",
                    "scheduler");
    none_waits_with(&f, "select scheduler_lock(true)", "history,attempt");
    PQfinish(f.first);
    PQfinish(f.second);
    PQfinish(c);
}

/* --- push_many ---------------------------------------------------------------------------------- */

/* A key is free again before the call that met it looks. The call holds other keys by then, and
 * another call waits for one of these with the key that is free. */
static void
keys_end_while_many_are_pushed(void **state)
{
    PGconn *c = core_new("order_keys"), *late = core_join("order_keys");
    PGconn *first = core_join("order_keys"), *second = core_join("order_keys");

    (void)state;
    pg_run(c, "select push('q', '{}', unique_key => 'b')");
    pg_run(late, "begin; select push('q', '{}', unique_key => 'm')");
    pg_send(first, "create table said as select n, pushed from push_many(null, '{q,q,q}', "
                   "unique_keys => '{m,b,k}')");
    pg_wait_blocked(c, first);
    pg_run(c, "select delete_jobs(gen_random_uuid(), 1, array(select id from queue where unique_key"
              " = 'b'))");
    pg_send(second, "select * from push_many(null, '{q,q}', unique_keys => '{b,k}')");
    pg_wait_blocked(c, second);
    pg_run(late, "rollback");
    assert_string_equal(pg_finish(first), "");
    assert_string_equal(pg_finish(second), "");
    assert_string_equal(pg_value(c, "select string_agg(n || pushed::text, ' ') from said"),
                        "1true 2false 3false");
    assert_string_equal(
        pg_value(c, "select string_agg(unique_key, '' order by unique_key) from queue"), "bkm");
    assert_string_equal(pg_value(c, "select t.truth()"), "");
    PQfinish(second);
    PQfinish(first);
    PQfinish(late);
    PQfinish(c);
}

/* The same, and no other call takes the key: in the second round all jobs are new. */
static void
all_are_new_after_a_key_has_ended(void **state)
{
    PGconn *c = core_new("order_ended"), *late = core_join("order_ended");
    PGconn *first = core_join("order_ended");

    (void)state;
    pg_run(c, "select push('q', '{}', unique_key => 'b')");
    pg_run(late, "begin; select push('q', '{}', unique_key => 'm')");
    pg_send(first, "create table said as select * from push_many(null, '{q,q}', "
                   "unique_keys => '{m,b}')");
    pg_wait_blocked(c, first);
    pg_run(c, "select delete_jobs(gen_random_uuid(), 1, array(select id from queue where unique_key"
              " = 'b'))");
    pg_run(late, "rollback");
    assert_string_equal(pg_finish(first), "");
    assert_string_equal(
        pg_value(c, "select string_agg(n || unique_key || pushed::text, ' ' order by n)"
                    " from said join queue using (id)"),
        "1mtrue 2btrue");
    assert_string_equal(pg_value(c, "select t.truth()"), "");
    PQfinish(first);
    PQfinish(late);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_end_while_many_are_pushed),
        cmocka_unit_test(all_are_new_after_a_key_has_ended),
        cmocka_unit_test(each_step_before_the_next),
        cmocka_unit_test(the_first_commits),
        cmocka_unit_test(the_first_rolls_back),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
