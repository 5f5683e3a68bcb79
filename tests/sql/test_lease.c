/*
 * The life of a lease: extended, expired, given back; a crash counts for the jobs that had started,
 * and a job that kills its workers ends as failed (rules 1, 3 and 4, decisions 7 to 11).
 */
#include "tests/sql/core.h"

static void
steal_all(PGconn *c, const char *node)
{
    core_expire(c, node);
    core_second(c);
    core_settle(c);
}

static void
crash_counts_what_had_started(void **state)
{
    PGconn *c = core_new("crash_counts");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    expect(c, "a,b,c,d", "select t.claim('n', 4, start => false)");
    expect(c, "extended", "select t.extend('n', started => 'a')");
    expect(c, "extended", "select t.extend('n', started => 'c')"); /* adds to those named before */
    expect(c, "extended", "select t.extend('n')");
    steal_all(c, "n");
    expect(c, "a1 b0 c1 d0",
           "select string_agg((payload->>'name') || tries, ' ' order by"
           " payload->>'name') from queue");
    expect(c, "a,c",
           "select string_agg(payload->>'name', ',' order by payload->>'name') from attempt"
           " join queue on id = job where outcome = 'lost' and node = 'n' and number = 1");
    expect(c, "2", "select sum(lost) from t.counts");
    /* each alone in its lease now, in the old order */
    expect(c, "4",
           "select count(*) from work_queue where cardinality(seqs) = 1 and lock_key is null");
    expect(c, "a,b,c,d", "select t.claim('m', 4)");
    core_check(c);
    PQfinish(c);
}

static void
start_true_counts_all(void **state)
{
    PGconn *c = core_new("start_true");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2)");
    expect(c, "done", "select t.done('n', 'a')");
    steal_all(c, "n");
    expect(c, "b 1", "select (payload->>'name') || ' ' || tries from queue");
    expect(c, "b", "select t.claim('m', 2)");
    expect(c, "2", "select try from t.held where node = 'm'");
    core_check(c);
    PQfinish(c);
}

static void
poison_ends_failed(void **state)
{
    PGconn *c = core_new("poison");

    (void)state;
    pg_run(c, "insert into queue_config (queue, max_tries) values ('q', 3); select t.push('q', "
              "'x,poison,y')");
    core_settle(c);
    /* the worker takes all, starts the poison, and dies; its neighbours have not started */
    for (int i = 1; i <= 3; i++) {
        expect(c, "3",
               "select cardinality(string_to_array(t.claim('n%d', 3, start => false), ','))", i);
        expect(c, "t",
               "select 'lost' <> all(string_to_array(t.extend('n%d', started => 'poison'), ','))",
               i);
        char node[8] = {'n', (char)('0' + i)};
        steal_all(c, node);
    }
    expect(c, "poison", "select t.names('failed')");
    expect(c, "x,y", "select t.names('ready')");
    expect(c, "0 3",
           "select max(tries) filter (where state = 'ready') || ' ' || max(tries) filter (where"
           " state = 'failed') from queue");
    expect(c, "3", "select count(*) from attempt");
    expect(c, "worker lost: its lease expired", "select error from queue where state = 'failed'");
    core_ten_seconds(c);
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

static void
extend_never_shortens(void **state)
{
    PGconn *c = core_new("extend");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1, '1 h')");
    expect(c, "extended", "select t.extend('n', by => '1 min')");
    expect(c, "extended", "select t.extend('n', by => '-1 day')");
    expect(c, "extended", "select t.extend('n', by => null)");
    expect(c, "01:00:00", "select date_trunc('minute', lock_timeout - started) from work_queue");
    expect(c, "extended", "select t.extend('n', by => '2 h')");
    expect(c, "t",
           "select lock_timeout - now() between interval '119 min' and interval '120 min' from"
           " work_queue");
    /* an expired lease that nobody has taken yet is the worker's again */
    core_expire(c, "n");
    expect(c, "extended", "select t.extend('n', by => '1 min')");
    core_second(c);
    core_settle(c);
    expect(c, "done", "select t.done('n')");
    expect(c, "0", "select count(*) from attempt");
    /* the version and all else stay as they are */
    pg_run(c, "select t.push('q', 'b')");
    core_settle(c);
    expect(c, "b", "select t.claim('n', 1)");
    pg_run(c,
           "create table t.w as select lease, version, seqs, all_started, started_seqs, lock_key, "
           "started from work_queue");
    expect(c, "extended", "select t.extend('n', by => '2 h')");
    expect(
        c, "0",
        "select count(*) from (select lease, version, seqs, all_started, started_seqs, lock_key, "
        "started from work_queue except select * from t.w) z");
    core_check(c);
    PQfinish(c);
}

static void
given_back_without_counting(void **state)
{
    PGconn *c = core_new("give_back");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    expect(c, "a,b,c,d", "select t.claim('n', 4)");
    expect(c, "given back,given back", "select t.back('n', 'b,c')");
    expect(c, "gone", "select t.done('n', 'b')");
    expect(c, "b,c", "select t.claim('m', 4)");
    expect(c, "gone", "select t.back('n', 'b')");
    expect(c, "done,done", "select t.done('n', 'a,d')");
    expect(c, "done,done", "select t.done('m', 'b,c')");
    expect(c, "4", "select sum(tries) from history"); /* one each */
    expect(c, "0", "select count(*) from attempt");
    core_check(c);
    PQfinish(c);
}

/* The queue was paused meanwhile, or has a limit: a job that comes back still obeys. */
static void
given_back_into_a_pause(void **state)
{
    PGconn *c = core_new("back_paused");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    expect(c, "a,b,c", "select t.claim('n', 3)");
    pg_run(c, "update queue_config set paused_at = now()");
    expect(c, "given back", "select t.back('n', 'a')");
    core_expire(c, "n");
    core_second(c);
    core_settle(c);
    expect(c, "", "select t.claim('m', 3)");
    expect(c, "b,c",
           "select string_agg(payload->>'name', ',' order by seq) from queue where tries = 1");
    core_check(c);
    PQfinish(c);
}

static void
cancel_is_heard(void **state)
{
    PGconn *c = core_new("cancel_heard");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    expect(c, "a,b,c,d", "select t.claim('n', 4)");
    pg_run(c, "update queue set cancel_asked = now() where payload->>'name' in ('a', 'b', 'c')");
    expect(c, "a,b,c",
           "select string_agg(name, ',' order by name) from t.held where seq = any(array(select"
           " unnest(cancel) from extend('n', array(select lease from t.held), array(select version"
           " from t.held), interval '1 min')))");
    expect(c, "cancelled", "select t.fail('n', 'a', 'killed')");
    expect(c, "done", "select t.done('n', 'b')"); /* it was quicker */
    core_expire(c, "n");
    core_second(c);
    core_settle(c);
    expect(c, "a cancelled,b completed,c cancelled", "select t.finished()");
    expect(c, "d", "select t.names('ready')");
    expect(c, "2", "select sum(cancelled) from t.counts");
    core_check(c);
    PQfinish(c);
}

/* Only the server's clock counts: a start time that a worker reports is believed only within its
 * claim. */
static void
a_clock_that_is_wrong(void **state)
{
    PGconn *c = core_new("wrong_clock");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    expect(c, "a,b,c,d", "select t.claim('n', 4)");
    expect(c, "done,done,done",
           "select string_agg(f.outcome, ',') from (select array_agg(lease) l, array_agg(version) "
           "v, array_agg(seq order"
           " by seq) s from t.held where name < 'd') h, complete('n', l, v, s, array['-infinity', "
           "'infinity', now() +"
           " interval '1 h']::timestamptz[]) f");
    expect(c, "retry",
           "select f.outcome from t.held h, fail('n', array[lease], array[version], array[h.seq], "
           "'{x}', started =>"
           " array[now() - interval '1000 years']) f where name = 'd'");
    expect(
        c, "3",
        "select count(*) from history where started between now() - interval '1 min' and finished");
    expect(c, "1",
           "select count(*) from attempt where started between now() - interval '1 min' and ended");
    expect(c, "t", "select sum(run_ms) between 0 and 60000 from delta");
    core_check(c);
    PQfinish(c);
}

static void
results_are_limited(void **state)
{
    PGconn *c = core_new("results");

    (void)state;
    pg_run(
        c,
        "update setting set value = '2000' where name = 'result_limit'; select t.push('q', 'a')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    assert_string_equal(
        pg_try(c, "select complete_job('n', lease, version, seq, repeat('x', 2001)) from t.held"),
        "QT004");
    expect(c, "done",
           "select complete_job('n', lease, version, seq, repeat('x', 2000)) from t.held");
    core_check(c);
    PQfinish(c);
}

/* Work needs no transaction: the server may restart while jobs run. */
static void
a_restart_between(void **state)
{
    PGconn *c = core_new("restart");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2)");
    PQfinish(c);
    pg_restart("fast");
    c = core_join("restart");
    expect(c, "extended", "select t.extend('n')");
    expect(c, "done,done", "select t.done('n')");
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

/* Consoles ask each second which node holds which lease. The answer leaves out the free leases,
 * because there may be thousands. */
static void
living_are_held(void **state)
{
    PGconn *c = core_new("living");

    (void)state;
    pg_run(c, "select t.many('q', 'j', 200)");
    core_settle(c);
    pg_run(c, "select t.claim('n', 5)");
    expect(c, "t", "select count(*) > 1 from live where lock_key is null");
    expect(c, "n 5",
           "select lock_key || ' ' || sum(cardinality(seqs)) from living() group by lock_key");
    expect(c, "t",
           "select count(*) = (select count(*) from live where lock_key is not null) from"
           " living()");
    PQfinish(c);
}

/* now() stands still within a transaction, so a time can be exactly at its border. A lease that
 * ends now has not expired; a node whose heartbeat is as old as it may be is alive, and may claim.
 */
static void
borders_are_exact(void **state)
{
    PGconn *c = core_new("borders");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    pg_run(c, "begin; update work_queue set lock_timeout = now() where lock_key = 'n'");
    core_second(c);
    expect(c, "0 0 0", "select t.step()");
    pg_run(c, "update work_queue set lock_timeout = now() - interval '1 us' where lock_key = 'n'");
    core_second(c);
    expect(c, "0 0 1", "select t.step()");
    pg_run(c, "rollback; select node_start('m', gen_random_uuid(), 'h', 1, 'v', 1, null, 4)");
    pg_run(c, "begin; update node set heartbeat = now() - interval '30 s'; savepoint s");
    expect(c, "b", "select t.claim('m', 1)");
    pg_run(c, "rollback to s; update node set heartbeat = heartbeat - interval '1 us'");
    expect(c, "", "select t.claim('m', 1)");
    pg_run(c, "rollback");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_counts_what_had_started),
        cmocka_unit_test(start_true_counts_all),
        cmocka_unit_test(poison_ends_failed),
        cmocka_unit_test(extend_never_shortens),
        cmocka_unit_test(given_back_without_counting),
        cmocka_unit_test(given_back_into_a_pause),
        cmocka_unit_test(cancel_is_heard),
        cmocka_unit_test(a_clock_that_is_wrong),
        cmocka_unit_test(results_are_limited),
        cmocka_unit_test(a_restart_between),
        cmocka_unit_test(living_are_held),
        cmocka_unit_test(borders_are_exact),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
