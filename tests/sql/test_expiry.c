/*
 * Jobs whose time is over end as cancelled, with the error "expired", wherever they wait. Running
 * and failed jobs are left alone.
 */
#include "tests/sql/core.h"

/* The jobs of these names are over now. */
static void
over(PGconn *c, const char *names)
{
    pg_run(c,
           "update queue set expires_at = now() - interval '1 ms' where payload->>'name' = "
           "any(string_to_array('%s', ','));update lane set expire_at = '-infinity'",
           names);
}

static void
wherever_they_wait(void **state)
{
    PGconn *c = core_new("expiry");

    (void)state;
    pg_run(c, "select t.push('q', 'run,fail,try,free,free2'); select set_queue(gen_random_uuid(), "
              "'q', '{\"chunk\": 5}')");
    core_settle(c);
    expect(c, "run,fail,try", "select t.claim('n', 3)");
    expect(c, "failed", "select t.fail('n', 'fail', final => true)");
    expect(c, "retry", "select t.fail('n', 'try', retry_in => '1 h')");
    pg_run(
        c,
        "select t.push('q', 'later', delay => '1 h'); select pause(gen_random_uuid(), 'p'); select "
        "t.push('p', 'uncut'); insert into queue (queue, concurrency_key, payload) select 'k', "
        "'k', json_build_object('name', n) from unnest('{key,blocked,next}'::text[]) n");
    core_settle(c);
    over(c, "run,fail,try,free,later,uncut,blocked");
    pg_run(c, "select t.step()");
    expect(c, "blocked cancelled,free cancelled,later cancelled,try cancelled,uncut cancelled",
           "select t.finished()");
    expect(c, "expired 5 t",
           "select concat_ws(' ', min(error), count(*), bool_and(payload is not null and node is "
           "null and started is null)) from history where error = 'expired'");
    core_check(c);
    expect(c, "free2,key", /* of different queues: either may be the first */
           "select string_agg(name, ',' order by name) from "
           "unnest(string_to_array(t.claim('m', 9), ',')) name");
    expect(c, "done,done", "select t.done('m', 'key,free2')");
    core_settle(c);
    expect(c, "next", "select t.claim('m', 9)");
    expect(c, "done", "select t.done('n', 'run')"); /* it was running when its time was over */
    expect(c, "fail", "select t.names('failed')");
    pg_run(
        c,
        "select requeue(gen_random_uuid(), 1, array(select id from queue where state = 'failed'))");
    core_settle(c);
    expect(c, "fail", "select t.claim('m', 9)"); /* an operator wants it now */
    expect(c, "5", "select sum(cancelled) from overview()");
    core_check(c);
    PQfinish(c);
}

/* A claim has just taken a lease: the step does not wait for it. */
static void
nobody_is_waited_for(void **state)
{
    PGconn *c = core_new("expiry_wait"), *a = core_join("expiry_wait");

    (void)state;
    pg_run(c, "select t.push('q', 'a'), t.push('r', 'b')");
    core_settle(c);
    pg_run(a, "begin");
    expect(a, "a", "select t.claim('n', 1, queues => '{q}')");
    over(c, "a,b");
    pg_run(c, "set statement_timeout = '60 s'; select t.step()");
    expect(c, "b cancelled", "select t.finished()");
    pg_run(a, "rollback");
    pg_run(c, "update lane set expire_at = '-infinity'; select t.step()");
    expect(c, "a cancelled,b cancelled", "select t.finished()");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* Thousands of jobs expire in batches, one batch a step. Running jobs do not delay the others. */
static void
in_batches(void **state)
{
    PGconn *c = core_new("expiry_many");

    (void)state;
    pg_run(c, "select t.many('q', 'r', 5); select set_queue(gen_random_uuid(), 'q', '{\"history\": "
              "\"meta\"}')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 5); update queue set expires_at = '-infinity'");
    pg_run(c, "insert into queue (queue, payload, expires_at) select 'q', '1', now() - interval '1 "
              "s' from generate_series(1, 2500)");
    pg_run(c, "update lane set expire_at = '-infinity'; select t.step()");
    expect(c, "1000", "select count(*) from history");
    pg_wait(c, "select count(*) from queue, t.step() where expires_at > '-infinity'", "0", 20000);
    expect(c, "2500 0", "select concat_ws(' ', count(*), count(payload)) from history");
    expect(c, "5", "select count(*) from queue");
    pg_run(c, "select t.done('n')");
    core_settle(c);
    expect(c, "0", "select count(*) from queue");
    core_check(c);
    PQfinish(c);
}

/* A waiting worker has seen the job, and its time ends before the hand-out: a trigger ends it. */
static void
over_while_it_is_handed_out(void **state)
{
    PGconn *c = core_new("expiry_handed");

    (void)state;
    pg_run(c, "select t.push('q', 'x')");
    core_settle(c);
    pg_run(c, "select t.claim('n', 1); select t.done('n')");
    core_settle(c);
    pg_run(c, "create function t.over() returns trigger language plpgsql as $$ begin update queue "
              "set expires_at = now() - interval '1 ms' where payload->>'name' = 'a'; return null; "
              "end $$; create trigger over after insert on work_queue for each statement execute "
              "function t.over()");
    pg_run(c, "select t.push('q', 'a,b')");
    expect(c, "b", "select string_agg(payload->>'name', ',') from claim_or_wait('n', 9)");
    expect(c, "1", "select cardinality(seqs) from work_queue");
    pg_run(c, "drop trigger over on work_queue; update lane set expire_at = '-infinity'");
    pg_run(c, "select t.step()");
    expect(c, "a cancelled,x completed", "select t.finished()");
    core_check(c);
    PQfinish(c);
}

/* The time of b ends between the cut and the claim, and no step comes in between. Each way to read
 * the jobs of a lease leaves it out: one whole lease, a part, several leases. */
static void
over_before_the_claim(void **state)
{
    static const char *const calls[] = {"claim('n', ",
                                        "complete_and_claim('n', '{}', '{}', '{}', null, null, "};
    PGconn *c = core_new("expiry_claim");

    (void)state;
    pg_run(c, "insert into queue_config (queue, chunk) values ('q', 2); select t.push('q', "
              "'a,b,c,d')");
    core_settle(c);
    expect(c, "2", "select count(*) from work_queue");
    over(c, "b,c");
    for (int i = 0; i < 2; i++)
        for (int n = 1; n <= 4; n++) {
            static const char *const got[] = {"a", "a", "a", "a,d"};
            pg_run(c, "begin");
            expect(c, got[n - 1],
                   "select string_agg(payload->>'name', ',' order by payload->>'name') from %s%d)",
                   calls[i], n);
            pg_run(c, "rollback");
        }
    /* a lease of which nothing is left: the claim goes on to the next */
    over(c, "a");
    expect(c, "d", "select t.claim('n', 2)");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wherever_they_wait),
        cmocka_unit_test(nobody_is_waited_for),
        cmocka_unit_test(in_batches),
        cmocka_unit_test(over_while_it_is_handed_out),
        cmocka_unit_test(over_before_the_claim),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
