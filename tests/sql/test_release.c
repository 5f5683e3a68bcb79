/*
 * Acts on leases: release of a node's locks with its previews and guards, and extension by an
 * operator (rules 2 and 3, decisions 7 to 9). Which node counts as alive.
 */
#include "tests/sql/core.h"

#define ACT(n) "'00000000-0000-0000-0000-00000000000" #n "'"

static const char words[] = "create function t.look(p text) returns text language plpgsql as $$ "
                            "declare r text; begin execute"
                            " 'select string_agg(concat_ws('' '', n, coalesce(state, ''-''), ''('' "
                            "|| why || '')''), '', '' order"
                            " by state, why, n) from ' || p into r; return coalesce(r, ''); end $$;"
                            "create function t.released(node text, act int, expired boolean "
                            "default true, fail boolean default"
                            " false, count boolean default true, force boolean default false) "
                            "returns text language sql as $$"
                            " select coalesce(string_agg(n || ' ' || coalesce(state, '-'), ', ' "
                            "order by state), '') from (select"
                            " state, count(*) n from release((lpad(act::text, 8,"
                            " '0') || '-0000-0000-0000-000000000000')::uuid, 1, node, expired, "
                            "fail, count, force) group by 1) z $$;";

static PGconn *
fresh(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "%s", words);
    return c;
}

/* Node n holds a (its last try), b and c, of which a and b have started. */
static void
holds_three(PGconn *c)
{
    pg_run(c, "select t.push('q', 'a,b,c')");
    pg_run(c, "update queue set tries = 4 where payload->>'name' = 'a'");
    core_settle(c);
    expect(c, "a,b,c", "select t.claim('n', 3, start => false)");
    expect(c, "extended", "select t.extend('n', started => 'a,b')");
}

static void
previews_come_true(void **state)
{
    PGconn *c = fresh("previews");

    (void)state;
    holds_three(c);
    expect(c, "3 - (its lease has not expired)", "select t.look('release_preview(''n'')')");
    expect(c, "1 failed (last try), 1 ready (counts as a try), 1 ready (had not started)",
           "select t.look('release_preview(''n'', false)')");
    expect(c, "3 ready", "select t.look('release_preview(''n'', false, false, false)')");
    expect(c, "3 failed", "select t.look('release_preview(''n'', false, true)')");
    core_expire(c, "n");
    expect(c, "1 failed (last try), 1 ready (counts as a try), 1 ready (had not started)",
           "select t.look('release_preview(''n'')')");
    expect(c, "1 failed, 2 ready", "select t.released('n', 1)");
    expect(c, "a 5 failed,b 1 ready,c 0 ready",
           "select string_agg(concat_ws(' ', payload->>'name', tries, state), ',' order by"
           " payload->>'name') from queue");
    expect(c, "lost lost lost lost",
           "select t.answers('n', lease, version, seq) from t.held where name = 'b'");
    expect(c, "worker lost: released from n by postgres", "select distinct error from attempt");
    core_check(c);
    expect(c, "b,c", "select t.claim('m', 9)");
    core_check(c);
    PQfinish(c);
}

static void
without_counting_or_as_failed(void **state)
{
    PGconn *c = fresh("uncounted");

    (void)state;
    holds_three(c);
    core_expire(c, "n");
    expect(c, "3 ready", "select t.released('n', 1, count => false)");
    expect(c, "4,0,0", "select string_agg(tries::text, ',' order by payload->>'name') from queue");
    expect(c, "0", "select count(*) from attempt");
    expect(c, "a,b,c", "select t.claim('n', 3)");
    core_expire(c, "n");
    expect(c, "3 failed", "select t.released('n', 2, fail => true)");
    core_check(c);
    PQfinish(c);
}

/* Somebody deleted their jobs by hand: leases that hold nothing end, too. */
static void
a_lease_without_a_job_ends(void **state)
{
    PGconn *c = fresh("hollow");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    expect(c, "b", "select t.claim('n', 1)");
    pg_run(c, "delete from queue where payload->>'name' = 'a'");
    expect(c, "1 - (its lease has not expired)", "select t.look('release_preview(''n'')')");
    core_expire(c, "n");
    expect(c, "1 ended (lease without a job), 1 ready (counts as a try)",
           "select t.look('release_preview(''n'')')");
    expect(c, "1 ended, 1 ready", "select t.released('n', 1)");
    expect(c, "0", "select count(*) from live where lock_key is not null");
    expect(c, "2 0", "select concat_ws(' ', changed, skipped) from audit_log");
    expect(c, "", "select t.released('n', 2)");
    PQfinish(c);
}

static void
who_looks_alive_is_refused(void **state)
{
    PGconn *c = fresh("alive");

    (void)state;
    holds_three(c);
    /* not registered, but its leases hold */
    const char *before = pg_value(c, "select t.picture()");
    assert_string_equal(pg_try(c, "select t.released('n', 1, expired => false)"), "QT006");
    expect(c, "", "select t.released('n', 2)"); /* expired ones only: there are none */
    /* registered and beating */
    pg_run(c, "select node_start('n', gen_random_uuid(), 'h', 1, 'v', 1, null, 4)");
    core_expire(c, "n");
    before = pg_value(c, "select t.picture()");
    assert_string_equal(pg_try(c, "select t.released('n', 3)"), "QT006");
    expect(c, before, "select t.picture()");
    expect(c, "0", "select count(*) from audit_batch where changed > 0");
    /* dead for long: no need to force */
    pg_run(c, "update node set heartbeat = now() - interval '1 min'");
    expect(c, "1 failed, 2 ready", "select t.released('n', 4)");
    /* the same is true while its leases have not expired */
    pg_run(c, "update node set heartbeat = now()");
    expect(c, "b,c", "select t.claim('n', 3)");
    pg_run(c, "update node set heartbeat = now() - interval '1 min'");
    expect(c, "2 ready", "select t.released('n', 6, expired => false)");
    /* alive, and forced */
    pg_run(c, "update node set heartbeat = now()");
    expect(c, "b,c", "select t.claim('n', 3)");
    expect(c, "2 ready", "select t.released('n', 5, expired => false, force => true)");
    core_check(c);
    PQfinish(c);
}

static void
expected_count_is_checked_first(void **state)
{
    PGconn *c = fresh("expected");

    (void)state;
    holds_three(c);
    core_expire(c, "n");
    const char *before = pg_value(c, "select t.picture()");
    assert_string_equal(pg_try(c, "select release(" ACT(1) ", 1, 'n', expected => 2)"), "QT005");
    expect(c, before, "select t.picture()");
    expect(c, "3", "select count(*) from release(" ACT(1) ", 1, 'n', expected => 3)");
    expect(c, "3", "select count(*) from release(" ACT(1) ", 1, 'n', expected => 3)"); /* again */
    expect(c, "3 0 3", "select concat_ws(' ', changed, skipped, expected) from audit_log");
    PQfinish(c);
}

static void
other_nodes_keep_theirs(void **state)
{
    PGconn *c = fresh("others");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2)");
    expect(c, "c,d", "select t.claim('m', 2)");
    core_expire(c, "n");
    core_expire(c, "m");
    expect(c, "2 ready", "select t.released('n', 1)");
    expect(c, "done,done", "select t.done('m')");
    core_check(c);
    PQfinish(c);
}

static void
one_that_answers_is_left_alone(void **state)
{
    PGconn *c = fresh("answering"), *d = core_join("answering");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    core_expire(c, "n");
    pg_run(d, "begin");
    expect(d, "done", "select t.done('n', 'a')");
    expect(c, "1 -", "select t.released('n', 1)"); /* does not wait, says so */
    expect(c, "its worker is answering for this lease now",
           "select why from act_answer("
           "'00000001-0000-0000-0000-000000000000', 1)");
    pg_run(d, "commit");
    expect(c, "a completed", "select t.finished()");
    core_check(c);
    PQfinish(c);
    PQfinish(d);
}

static void
released_while_answering(void **state)
{
    PGconn *c = fresh("released"), *d = core_join("released"), *e = core_join("released");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    expect(c, "a", "select t.claim('n', 1)");
    core_expire(c, "n");
    pg_run(c, "begin");
    expect(c, "1 ready", "select t.released('n', 1)");
    pg_send(d, "create table t.got as select t.done('n', 'a') as r"); /* waits for the lease */
    pg_wait_blocked(e, d);
    pg_run(c, "commit");
    assert_string_equal(pg_finish(d), "");
    expect(c, "lost", "select r from t.got");
    expect(c, "a", "select t.claim('m', 1)");
    core_check(c);
    PQfinish(c);
    PQfinish(d);
    PQfinish(e);
}

static void
a_job_asked_to_end_is_cancelled(void **state)
{
    PGconn *c = fresh("asked");

    (void)state;
    holds_three(c);
    pg_run(c, "update queue set run_timeout = '7 s' where payload->>'name' = 'b'");
    pg_run(c, "select cancel(" ACT(1) ", 1, array[id]) from queue where payload->>'name' = 'b'");
    core_expire(c, "n");
    expect(c, "1 cancelled (its end was asked for), 1 failed (last try), 1 ready (had not started)",
           "select t.look('release_preview(''n'')')");
    expect(c, "1 cancelled, 1 failed, 1 ready", "select t.released('n', 2)");
    expect(c, "b cancelled", "select t.finished()");
    expect(c, "00:00:07", "select run_timeout from history"); /* requeued, it is the same job */
    core_check(c);
    PQfinish(c);
}

static void
many_leases_go_in_batches(void **state)
{
    PGconn *c = fresh("many_leases");

    (void)state;
    pg_run(
        c,
        "insert into queue_config (queue, chunk) values ('q', 1); select t.many('q', 'j', 1200)");
    pg_run(c, "update tick set want = 5000");
    core_settle(c);
    expect(c, "1200", "select count(*) from claim('n', 1200)");
    core_expire(c, "n");
    expect(c, "500 more", "select count(*) || ' ' || max(cursor) from release(" ACT(1) ", 1, 'n')");
    expect(c, "500 more", "select count(*) || ' ' || max(cursor) from release(" ACT(1) ", 2, 'n')");
    expect(c, "200", "select concat(count(*), max(cursor)) from release(" ACT(1) ", 3, 'n')");
    expect(c, "1200 0 3", "select concat_ws(' ', changed, skipped, batches) from audit_log");
    core_check(c);
    PQfinish(c);
}

static void
extending_only_prolongs(void **state)
{
    PGconn *c = fresh("extending");

    (void)state;
    holds_three(c);
    pg_run(c, "select t.push('p', 'free')");
    core_settle(c);
    expect(
        c, "1 running (lease of 3 jobs)",
        "select t.look('extend_preview((select array_agg(id) from queue where queue = ''q''))')");
    expect(
        c, "1 - (in no lease)",
        "select t.look('extend_preview((select array_agg(id) from queue where queue = ''p''))')");
    expect(c, "1 running (lease of 3 jobs)", "select t.look('extend_preview(null, ''n'')')");
    expect(c, "1 running (holds longer already)",
           "select t.look('extend_preview(null, ''n'', ''1 s'')')");
    expect(
        c, "running lease of 3 jobs",
        "select state || ' ' || why from extend_leases(" ACT(1) ", 1, null, 'n', '1 h', 1, null)");
    expect(c, "t",
           "select lock_timeout > now() + interval '59 min' and version = 1 from work_queue"
           " where lock_key = 'n'");
    /* neither the operator nor the worker's own renewal makes it shorter */
    expect(c, "running", "select state from extend_leases(" ACT(2) ", 1, null, 'n', '1 s')");
    expect(c, "extended", "select t.extend('n', by => '1 s')");
    expect(c, "t",
           "select lock_timeout > now() + interval '59 min' from work_queue where lock_key = 'n'");
    assert_string_equal(pg_try(c, "select extend_leases(" ACT(3) ", 1, null, 'n', '1 h', 2)"),
                        "QT005");
    assert_string_equal(pg_try(c, "select extend_leases(" ACT(3) ", 1, null, null, '1 h')"),
                        "QT007");
    expect(c, "done,done,done", "select t.done('n')"); /* the worker's tokens still hold */
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(previews_come_true),
        cmocka_unit_test(without_counting_or_as_failed),
        cmocka_unit_test(a_lease_without_a_job_ends),
        cmocka_unit_test(who_looks_alive_is_refused),
        cmocka_unit_test(expected_count_is_checked_first),
        cmocka_unit_test(other_nodes_keep_theirs),
        cmocka_unit_test(one_that_answers_is_left_alone),
        cmocka_unit_test(released_while_answering),
        cmocka_unit_test(a_job_asked_to_end_is_cancelled),
        cmocka_unit_test(many_leases_go_in_batches),
        cmocka_unit_test(extending_only_prolongs),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
