/*
 * Time. A clock that is set back delays nothing. The clock decides what has expired, not the start
 * of a transaction. The partitions of coming days are made ahead, and dead nodes are forgotten. A
 * test can't set the clock: it moves all stored times ahead, which has the same effect.
 */
#include "tests/sql/core.h"

static void
set_back(PGconn *c)
{
    pg_run(c, "update tick set at = at + interval '1 h', mark_at = mark_at + interval '1 h',"
              " day_at = day_at + interval '1 h', cut_at = cut_at + interval '1 h', limited_at ="
              " limited_at + interval '1 h', cron_at = cron_at + interval '1 h', after = after +"
              " interval '1 h'");
    pg_run(c, "update fold set at = at + interval '1 h'; update lane set due = clock_timestamp() +"
              " interval '1 h', expire_at = clock_timestamp() + interval '1 h';"
              " update scheduler set until = until + interval '1 h' where term > 0");
}

static void
a_clock_set_back_puts_nothing_off(void **state)
{
    PGconn *c = core_new("set_back");

    (void)state;
    pg_run(c, "insert into queue_config (queue, rate, burst) values ('rated', 1000, 1);"
              " select t.push('q', 'lost'), t.push('rated', 'r1,r2')");
    core_settle(c);
    expect(c, "2", "select count(*) from claim('n', 9)");
    core_expire(c, "n");
    pg_run(c, "select schedule_set('00000000-0000-7000-8000-000000000001', 's', '{\"cron\":"
              " \"@every 1s\", \"queue\": \"cron\"}')");
    pg_run(c, "insert into queue (queue, run_after, expires_at) values ('late', now() + interval"
              " '1 h', now() + interval '1 ms')");
    core_settle(c);
    set_back(c);
    pg_run(c, "update schedule set next_run = now()");
    expect(c, "t", "select active from schedule('another')");
    core_settle(c);
    expect(c, "0", "select count(*) from work_queue where lock_key is not null"); /* stolen */
    expect(c, "1", "select count(*) from history where error = 'expired'");
    expect(c, "t", "select count(*) > 0 from queue where queue = 'cron'");
    expect(c, "t", "select count(*) > 0 from claim('n', 9, null, '{rated}')");
    expect(c, "t", "select at <= clock_timestamp() from fold order by fold desc limit 1");
    expect(c, "t",
           "select mark_at < clock_timestamp() + interval '2 s' and at <="
           " clock_timestamp() from tick order by tick desc limit 1");
    core_check(c);
    PQfinish(c);
}

/* The job was pushed while the clock was a year ahead: its waiting time is 0, and it is done once.
 */
static void
what_was_pushed_ahead_is_completed(void **state)
{
    PGconn *c = core_new("pushed_ahead");

    (void)state;
    pg_run(
        c,
        "select t.push('q', 'a,b,c,d,e,f'); update queue set created = now() + interval '1 year',"
        " changed = now() + interval '1 year'");
    core_settle(c);
    expect(c, "a", "select t.claim('one', 1)");
    expect(c, "b,c", "select t.claim('lease', 2)");
    expect(c, "d,e,f", "select t.claim('part', 3)");
    expect(c, "done", "select t.done('one')");
    expect(c, "done,done", "select t.done('lease')");
    expect(c, "done", "select t.done('part', 'e')");
    expect(c, "retry,retry", "select t.fail('part', 'd,f')");
    expect(c, "4 0", "select count(*) || ' ' || max(w) from delta, unnest(waits) w");
    core_ten_seconds(c);
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

/* The last scheduler has gone, and its `until` is an hour ahead of the clock. */
static void
a_word_from_ahead_is_none(void **state)
{
    PGconn *c = core_new("clock_ahead");

    (void)state;
    expect(c, "t", "select active from schedule('gone')");
    pg_run(c, "select t.push('q', 'a'); update scheduler set until = clock_timestamp() + interval "
              "'9 s' where term > 0");
    expect(c, "f", "select active from schedule('another')");
    set_back(c);
    expect(c, "a", "select t.claim('n')"); /* the claim makes the step */
    expect(c, "t", "select active from schedule('another')");
    set_back(c);
    pg_run(c, "select t.push('q', 'b')");
    expect(c, "1", "select count(*) from claim_or_wait('n', 1) where lease is not null");
    core_check(c);
    PQfinish(c);
}

static void
wait_for_due(PGconn *c)
{
    pg_wait(c, "select clock_timestamp() > max(run_after) from queue", "t", 5000);
}

/* A waiting job has a time before the mark of the last promotion, and is not due yet. */
static void
no_waiting_job_falls_behind_the_mark(void **state)
{
    PGconn *c = core_new("behind");

    (void)state;
    pg_run(c, "select t.push('q', 'first')");
    core_settle(c);
    expect(c, "first", "select t.claim('n')");
    pg_run(c, "update tick set after = now() + interval '1 h'; select t.push('q', 'a', delay => '40"
              " ms')");
    pg_run(c, "select schedule('test')");
    wait_for_due(c);
    core_settle(c);
    expect(c, "a", "select t.claim('n')");
    pg_run(c, "update tick set after = now() + interval '1 h'; select t.push('q', 'b', delay => '90"
              " ms'), t.push('q', 'now')");
    expect(c, "now", "select payload->>'name' from claim_or_wait('n', 1)");
    wait_for_due(c);
    core_settle(c);
    expect(c, "b", "select t.claim('n')");
    core_check(c);
    PQfinish(c);
}

/* The claim's transaction begins before a job expires. The claim looks at the job after that. */
static void
expired_is_what_the_clock_says(void **state)
{
    static const char *const claims[] = {
        "select count(*) from claim('n', 9)",
        "select count(*) from claim('n', 9, null, '{q}')",
        "select count(*) from complete_and_claim('n', '{}', '{}', '{}', null, null, 9)",
        "select count(*) from claim_or_wait('n', 9) where lease is not null",
    };

    (void)state;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        char name[] = {'o', 'v', 'e', 'r', (char)('0' + i), '\0'};
        PGconn *c = core_new(name), *a = core_join(name);
        pg_run(c, "select t.push('q', 'x')");
        core_settle(c);
        pg_run(c, "select complete_job('n', lease, version, seq) from claim('n')");
        pg_run(c, "insert into queue (queue, expires_at) values ('q', clock_timestamp() + interval"
                  " '60 ms'); insert into queue (queue) values ('q')");
        if (i < 3)
            pg_run(c, "select schedule('test')");
        pg_run(a, "begin; select now()");
        pg_wait(c, "select clock_timestamp() > max(expires_at) from queue", "t", 5000);
        expect(a, "1", "%s", claims[i]);
        pg_run(a, "commit");
        expect(c, "1", "select sum(cardinality(seqs)) from work_queue where lock_key = 'n'");
        core_second(c);
        core_settle(c);
        core_check(c);
        PQfinish(a);
        PQfinish(c);
    }
}

static void
days_are_made_a_week_ahead(void **state)
{
    static const char days[] =
        "select string_agg(parent || n || (last = (now() at time zone 'UTC')::date + 7), ' ' order"
        " by parent) from (select inhparent::regclass::text as parent, count(*) as n,"
        " max(to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD')) as last from pg_inherits"
        " where inhparent in ('history'::regclass, 'attempt'::regclass) and "
        "inhrelid::regclass::text"
        " ~ '_[0-9]{8}$' group by 1) z";
    PGconn *c = core_new("days");

    (void)state;
    expect(c, "attempt8true history8true", "%s", days);
    pg_run(c, "select schedule('test')");
    pg_run(c,
           "do $$ begin execute format('drop table %%I, %%I', to_char(now() at time zone 'UTC' +"
           " interval '7 d', '\"history_\"YYYYMMDD'), to_char(now() at time zone 'UTC' + interval"
           " '6 d', '\"attempt_\"YYYYMMDD')); end $$");
    pg_run(c, "update tick set day_at = '-infinity'; select schedule('test')");
    expect(c, "attempt8true history8true", "%s", days);
    PQfinish(c);
}

/* The clock jumps 30 days ahead for one step: to the step, all that it reads is 30 days old.
 * Nothing is deleted. The steps end before the hour is over; those of a week later delete it. */
static void
a_clock_ahead_deletes_no_history(void **state)
{
    static const char kept[] = "select count(*) from history where kind = 'old'";
    PGconn *c = core_new("ahead");

    (void)state;
    pg_run(c, "insert into queue_config (queue, retention) values ('short', '1 day')");
    core_settle(c);
    pg_run(c, "create table history_20200101 partition of history for values from ('2020-01-01"
              " 00:00+00') to ('2020-01-02 00:00+00');"
              " insert into history (id, created, finished, state, priority, tries, queue, kind)"
              " select uuid_v7(), now(), '2020-01-01 12:00+00', 'completed', 5, 1, q, 'old' from"
              " unnest('{long,short}'::text[]) q");
    pg_run(c, "update tick set at = at - interval '30 d', day_at = day_at - interval '30 d'");
    core_settle(c);
    expect(c, "2", kept);
    expect(c, "t",
           "select day_at > clock_timestamp() + interval '50 min' and at > now() -"
           " interval '1 h' from tick order by tick desc limit 1");
    pg_run(c, "update tick set at = at - interval '7 d', day_at = day_at - interval '7 d'");
    core_settle(c);
    expect(c, "0", kept);
    expect(c, "NULL", "select to_regclass('history_20200101')");
    PQfinish(c);
}

/* The clock is set back within the hour: retention does not wait for the time that it showed. */
static void
retention_goes_on_after_a_clock_ahead(void **state)
{
    PGconn *c = core_new("ahead_back");

    (void)state;
    core_settle(c);
    pg_run(c, "update tick set at = at + interval '30 d', day_at = day_at + interval '30 d'");
    core_settle(c);
    expect(c, "t",
           "select day_at < clock_timestamp() + interval '2 min' from tick order by tick"
           " desc limit 1");
    PQfinish(c);
}

static void
dead_nodes_are_forgotten(void **state)
{
    PGconn *c = core_new("dead");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    expect(c, "a", "select t.claim('holds')");
    pg_run(c, "insert into node (lock_key, session, heartbeat) select k, gen_random_uuid(), now() -"
              " t from (values ('holds', interval '3 d'), ('young', '23 h'), ('old', '25 h')) v (k,"
              " t)");
    for (int i = 0; i < 2; i++) { /* the first fold keeps nothing before it */
        pg_run(c, "select t.push('q', 'x')");
        core_ten_seconds(c);
        pg_run(c, "select schedule('test')");
    }
    expect(c, "holds,young", "select string_agg(lock_key, ',' order by lock_key) from node");
    PQfinish(c);
}

/* Folding ten thousand queues and priorities takes long, so it happens less often. A step folds two
 * seconds later than that, if nobody else has folded. */
static void
a_long_fold_is_a_rare_one(void **state)
{
    static const char folds[] = "select count(*) from fold, was where fold > max";
    PGconn *c = core_new("rare"), *big = core_new("big");

    (void)state;
    pg_run(c, "select t.push('q', 'a'); select schedule('test'); select fold_now()");
    pg_run(c, "select t.push('q', 'b'); create temp table was as select max(fold) from fold;"
              " update fold set ms = 60000, at = clock_timestamp() - interval '1000 s'");
    pg_run(c, "select schedule('test')");
    expect(c, "0", "%s", folds);
    pg_run(c, "update fold set ms = 60000, at = clock_timestamp() - interval '1203 s'");
    pg_run(c, "select schedule('test')");
    expect(c, "1", "%s", folds);
    pg_run(big, "insert into queue (queue, priority) select 'q' || i %% 1000, i / 1000 from"
                " generate_series(0, 9999) i");
    pg_run(big, "select fold_now()");
    expect(big, "t", "select ms > 25 from fold order by fold desc limit 1");
    PQfinish(big);
    PQfinish(c);
}

/* A worker's transaction begins, then come the claims, then the answers in it: what they write is
 * of the time of the answer. Each way of answering: one job, a lease, several leases, parts of
 * them, failures; with a word on when the job started, and without. */
static void
an_answer_is_of_its_own_time(void **state)
{
    PGconn *c = core_new("own_time"), *a = core_join("own_time");

    (void)state;
    pg_run(a, "begin; select now()"); /* the time of all that says now() */
    pg_run(c, "update queue_config set chunk = 4; insert into queue_config (queue, chunk) values"
              " ('q', 4); select t.push('q', 'a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,s')");
    core_settle(c);
    pg_run(c, "create table t.begun as select clock_timestamp() as at");
    pg_run(c, "select t.claim('n', 99)");
    expect(a, "done", "select t.done('n', 'a')");
    expect(a, "done,done,done", "select t.done('n', 'b,c,d')");
    expect(a, "done,done", "select t.done('n', 'e,f')");
    expect(a, "done,done,done,done",
           "select t.done('n', 'g,h,i,j')"); /* g, h are left of a lease */
    pg_run(a, "create function t.said(names text) returns text language sql as $$ select"
              " string_agg(r.outcome, ',') from (select array_agg(lease order by n) l,"
              " array_agg(version order by n) v, array_agg(seq order by n) s,"
              " array_agg(clock_timestamp()) t from t.last where name ="
              " any(string_to_array($1, ','))) h, complete('n', l, v, s, t, null::bytea[]) r $$");
    expect(a, "done", "select t.said('k')");
    expect(a, "done,done", "select t.said('l,m')");
    expect(a, "retry,retry", "select t.fail('n', 'n,o')");
    expect(a, "done,done", "select t.said('p,s')");
    pg_run(a, "commit");
    expect(c, "15 2 t t",
           "select concat_ws(' ', count(*) filter (where not failed), count(*) filter (where"
           " failed), bool_and(z.finished >= z.started), bool_and(z.started >= b.at)) from"
           " (select started, finished, false as failed from history union all"
           "  select started, ended, true from attempt) z, t.begun b");
    expect(c, "t t",
           "select concat_ws(' ', bool_and(d.at >= b.at), bool_and(d.at >= b.at - interval '2 ms' +"
           " (select max(r) from unnest(d.runs) r) * interval '1 ms')) from delta d, t.begun b"
           " where d.completed > 0 or d.retry > 0");
    expect(c, "t", "select bool_and(changed >= b.at) from queue, t.begun b where state = 'retry'");
    core_check(c);
    PQfinish(a);
    PQfinish(c);
}

/* Folds that were written while the clock was a year ahead give no rates, and are deleted. */
static void
folds_from_ahead_go(void **state)
{
    PGconn *c = core_new("folds_ahead");

    (void)state;
    for (int i = 0; i < 6; i++) {
        pg_run(c, "select t.push('q', 'a')");
        core_ten_seconds(c);
        pg_run(c, "select schedule('test')");
        if (i == 2)
            pg_run(c, "update fold set at = at + interval '1 year'");
        expect(c, "0", "select count(*) from rates() where at > now() + interval '1 h'");
    }
    expect(c, "0", "select count(*) from fold where at > now() + interval '1 h'");
    expect(c, "t", "select count(*) > 0 from rates()");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_pushed_ahead_is_completed),
        cmocka_unit_test(an_answer_is_of_its_own_time),
        cmocka_unit_test(folds_from_ahead_go),
        cmocka_unit_test(a_clock_set_back_puts_nothing_off),
        cmocka_unit_test(a_word_from_ahead_is_none),
        cmocka_unit_test(no_waiting_job_falls_behind_the_mark),
        cmocka_unit_test(expired_is_what_the_clock_says),
        cmocka_unit_test(days_are_made_a_week_ahead),
        cmocka_unit_test(a_clock_ahead_deletes_no_history),
        cmocka_unit_test(retention_goes_on_after_a_clock_ahead),
        cmocka_unit_test(dead_nodes_are_forgotten),
        cmocka_unit_test(a_long_fold_is_a_rare_one),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
