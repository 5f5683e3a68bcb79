/*
 * Fairness: a queue with a mountain of jobs delays another queue's next job by at most one round,
 * and weights share out what is claimed (rule 5). All is measured in the order of claims, never in
 * time.
 */
#include "tests/sql/core.h"

#include <stdio.h>

/* Claims and finishes n jobs. Returns how many of them were of the queue. */
static int64_t
work_off(PGconn *c, int n, const char *queue)
{
    core_settle(c);
    pg_run(c, "select t.claim('w', %d)", n);
    int64_t got = pg_int(c, "select count(*) from t.held where queue = '%s'", queue);
    pg_run(c, "select t.done('w')");
    return got;
}

static void
a_trickle_beside_a_mountain(void **state)
{
    PGconn *c = core_new("mountain");
    int64_t waited = 0, allowed = 0;

    (void)state;
    pg_run(c, "select t.many('big', 'b', 20000)");
    for (int i = 0; i < 20; i++)
        work_off(c, 20, "big");
    for (int round = 0; round < 20; round++) {
        char small[16];
        snprintf(small, sizeof small, "small%d", round % 10);
        core_settle(c);
        allowed =
            pg_int(c, "select sum(cardinality(seqs)) from work_queue where lock_key is null") + 10;
        pg_run(c, "select t.push('%s', 's')", small);
        for (waited = 0; work_off(c, 10, small) == 0; waited += 10)
            assert_true(waited <= allowed);
    }
    assert_in_range(allowed, 11, 500); /* a round follows what workers take, not the backlog */
    core_check(c);
    PQfinish(c);
}

/* Ten queues get jobs at once: no queue waits for the second job of another one. */
static void
ten_queues_alternate(void **state)
{
    PGconn *c = core_new("ten");

    (void)state;
    pg_run(
        c,
        "insert into queue_config (queue, chunk) select 'q' || i, 1 from generate_series(0, 9) i;"
        " select t.many('q' || i, 'j', 50) from generate_series(0, 9) i; update tick set want = "
        "100");
    core_settle(c);
    for (int i = 0; i < 3; i++) {
        pg_run(c, "delete from t.held; select t.claim('w', 10)");
        expect(c, "10", "select count(distinct queue) from t.held");
    }
    for (int i = 0; i < 20; i++) {
        core_settle(c);
        pg_run(c, "select t.claim('w', 10)");
    }
    expect(c, "t",
           "select max(n) - min(n) <= 10 from (select count(*) n from work_queue where lock_key is "
           "not null"
           " group by queue) z");
    core_check(c);
    PQfinish(c);
}

/* Sets how many jobs the scheduler keeps ready. Without that the number follows how fast jobs are
 * claimed, and goes down from second to second. In these tests it must not depend on how busy the
 * machine is. */
static void
keep_ready(PGconn *c, int n)
{
    pg_run(c, "update tick set want = %d, mark_at = 'infinity'", n);
}

static void
weights_share(void **state)
{
    PGconn *c = core_new("weights");
    int64_t heavy = 0;

    (void)state;
    pg_run(
        c,
        "insert into queue_config (queue, chunk, weight) values ('heavy', 1, 3), ('light', 1, 1);"
        " select t.many('heavy', 'h', 2000), t.many('light', 'l', 2000)");
    for (int i = 0; i < 30; i++) {
        keep_ready(c, 40);
        int64_t got = work_off(c, 40, "heavy");
        heavy += i < 10 ? 0 : got; /* until the sum of weights is known */
    }
    assert_in_range(heavy, 800 * 70 / 100, 800 * 80 / 100);
    PQfinish(c);
}

/* One, two and four of each seven, whatever a lease holds (0: what was
 * measured, 100 of short jobs). How much is kept ready stays the same: by itself it follows how
 * fast jobs are claimed here, and so this machine. Where leases are measured, the lightest
 * queue got a quarter less on a machine with a tenth of a core. */
static void
weights_of_three(void **state)
{
    static const int chunks[] = {1, 5, 10, 0};

    (void)state;
    for (size_t n = 0; n < sizeof chunks / sizeof *chunks; n++) {
        char name[20];
        snprintf(name, sizeof name, "weights3_%d", chunks[n]);
        PGconn *c = core_new(name);
        pg_run(c,
               "insert into queue_config (queue, chunk, weight) values ('one', nullif(%d, 0), 1), "
               "('two', "
               "nullif(%d, 0), 2), ('four', nullif(%d, 0), 4); select t.many('one', 'o', 2000), "
               "t.many('two', 't', "
               "2000), t.many('four', 'f', 2000); create table t.shares as select queue from "
               "t.held",
               chunks[n], chunks[n], chunks[n]);
        for (int i = 0; i < 30; i++) {
            keep_ready(c, 70);
            pg_run(c, "update cursor set chunk = 100");
            core_settle(c);
            pg_run(c, "select t.claim('w', 70)");
            if (i >= 10) /* until the sum of weights is known */
                pg_run(c, "insert into t.shares select queue from t.held");
            pg_run(c, "select t.done('w')");
        }
        expect(c, "t t",
               "select concat_ws(' ', two / one between 1.5 and 3, four / one between 3 and 6.5) "
               "from (select count(*) filter (where queue = 'one')::float8 one, count(*) filter "
               "(where queue = 'two') two, count(*) filter (where queue = 'four') four from "
               "t.shares) z");
        PQfinish(c);
    }
}

/* Workers that serve some queues only do not take the leases of others: that starves no queue. */
static void
an_unserved_queue_stops_nobody(void **state)
{
    PGconn *c = core_new("unserved");

    (void)state;
    pg_run(c, "select t.many('nobody', 'n', 500), t.many('q', 'j', 300)");
    int64_t got = 0;
    for (int i = 0; i < 60; i++) {
        core_settle(c);
        got += pg_int(c, "select count(*) from claim('w', 10, '1 h', queues => '{q}')");
    }
    assert_int_equal(got, 300);
    assert_in_range(
        pg_int(c, "select sum(cardinality(seqs)) from work_queue where lock_key is null"), 1, 499);
    PQfinish(c);
}

/* Leases are small if weights differ, because small leases share out better. They are not small if
 * the weights are equal, or if some node works some queues only: jobs that such a node leaves count
 * as shared out, too. */
static void
small_leases_where_weights_differ(void **state)
{
    static const struct {
        const char *weight, *hasty, *largest;
    } stories[] = {
        {"1",       "false", "80"},
        {"seq % 3", "false", "20"},
        {"seq % 3", "true",  "80"},
    };
    PGconn *c = core_new("chooses");

    (void)state;
    pg_run(c, "insert into queue_config (queue) select 'q' || i from generate_series(1, 9) i;"
              " select t.many('q' || i, 'j', 300) from generate_series(1, 9) i");
    core_settle(c);
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        pg_run(c,
               "delete from work_queue; update cursor set seq = '{0,0,0,0,0,0,0,0,0,0}', high = "
               "'{0,0,0,0,0,0,0,0,0,0}', chunk = 80;"
               " update queue_config set weight = w from (select queue as q, row_number() over "
               "() as seq from queue_config) o, lateral (select greatest(1, %s) as w) v where "
               "queue = q;"
               " update tick set want = 180, weights = 9, more = true, hasty = %s, mark_at = "
               "'infinity', cut_at = now() - interval '1 s'",
               stories[i].weight, stories[i].hasty);
        pg_run(c, "select schedule('test')");
        expect(c, stories[i].largest, "select max(cardinality(seqs)) from work_queue");
    }
    PQfinish(c);
}

/* 120 queues, of which a worker serves only the last two. Each has more jobs than its share, and no
 * more than a second passes, so the patrol, which looks at 100, does not come to these. */
static PGconn *
served_last(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "insert into queue_config (queue, chunk) select to_char(i, 'FM000'), 1"
              " from generate_series(1, 120) i; select t.many(queue, 'j', 40) from queue_config;"
              " update tick set want = 120, weights = 120, mark_at = 'infinity'");
    core_settle(c);
    pg_run(c, "update tick set mark_at = 'infinity', filled = 0"); /* half of it is never taken */
    return c;
}

static int64_t
claimed(PGconn *c, const char *queue)
{
    return pg_int(c, "select count(*) from claim('n', 40, '1 h', '{%s}')", queue);
}

/* Jobs that come back to one queue hide in the sum what was claimed of another one, which is cut
 * within a second all the same: jobs of an expired lease, and jobs that a worker gives back. */
static void
what_comes_back_hides_nothing(void **state)
{
    PGconn *c = served_last("hides");

    (void)state;
    for (int expires = 0; expires < 2; expires++) {
        for (int i = 0; i < 5; i++) {
            pg_run(c, "select t.claim('m', 40, '1 h', '{119}')");
            core_settle(c);
        }
        pg_run(c, "update tick set mark_at = 'infinity', filled = 0");
        assert_in_range(claimed(c, "120"), 1, 10);
        if (expires)
            core_expire(c, "m");
        else
            pg_run(c, "select t.back('m')");
        pg_run(c, "update tick set patrol = '', mark_at = '-infinity'"); /* one second passes */
        core_settle(c);
        assert_in_range(claimed(c, "120"), 1, 10);
        core_settle(c);
    }
    core_check(c);
    PQfinish(c);
}

/* A push to another queue makes a cut of that queue alone, before the next cut of all is due. */
static void
a_push_hides_nothing(void **state)
{
    PGconn *c = served_last("push_hides");

    (void)state;
    pg_run(c, "update tick set waiting = '{}', place = ''"); /* as with more than 500 queues */
    assert_in_range(claimed(c, "120"), 1, 10);
    pg_run(c, "update tick set cut_at = clock_timestamp() + interval '1 min';"
              " select t.push('001', 'new'); select schedule('test')");
    pg_run(c, "update tick set cut_at = cut_at - interval '1 min'");
    core_settle(c);
    assert_in_range(claimed(c, "120"), 1, 10);
    core_check(c);
    PQfinish(c);
}

/* A new job of another queue waits behind the jobs that are kept ready. Their number follows how
 * fast jobs are claimed, and has a bound even if it is too small again and again. want = the number
 * before. */
static void
little_is_kept_ready(void **state)
{
    static const struct {
        int rate, want, least, most;
    } stories[] = {
        {2000,  20,    60,   100  }, /* 30 ms of work, and it ran out: a bit more */
        {2000,  60,    100,  120  }, /* no more than twice that */
        {2000,  120,   120,  120  },
        {50000, 5000,  9000, 10000}, /* 100 ms where a step takes its time */
        {50000, 10000, 9000, 10000},
    };
    PGconn *c = core_new("ready");

    (void)state;
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        int64_t want = -1;
        /* the number depends on the time since the last cut: after a pause of the machine, again */
        for (int tries = 0; tries < 100 && (want < stories[i].least || want > stories[i].most);
             tries++)
            want = pg_int(
                c,
                "select p.want from (select * from tick order by tick desc limit 1) k, "
                "jsonb_populate_record(null::tick, to_jsonb(k) || jsonb_build_object('rate', %d, "
                "'want', "
                "%d, 'jobs', %d, 'filled', %d, 'cut_at', clock_timestamp() - interval '1 s')) t, "
                "pace(t, 0, 0, true, 0) p",
                stories[i].rate, stories[i].want, stories[i].rate, stories[i].want);
        assert_in_range(want, stories[i].least, stories[i].most);
    }
    PQfinish(c);
}

/* On a slow server a cut takes long. What is kept ready lasts for a cut and the wait after it,
 * and the scheduler leaves the clients most of the processor. */
static void
a_slow_step_keeps_more_ready(void **state)
{
    PGconn *c = core_new("slow");

    (void)state;
    static const char slow[] =
        "select p.%s from (select * from tick order by tick desc limit 1) k, "
        "jsonb_populate_record(null::tick, to_jsonb(k) || jsonb_build_object('rate', 2000, 'want', "
        "20, 'jobs', 4000, 'filled', 4000, 'cut_at', clock_timestamp() + interval '1 h')) t, "
        "pace(t, 4000, 4000, true, %s) p";
    assert_in_range(pg_int(c, slow, "want", "0.2"), 1990, 2000); /* a second of work: 5 * 0.2 s */
    assert_int_equal(pg_int(c, slow, "wait", "0.2"), 250);
    assert_in_range(pg_int(c, slow, "want", "0.005"), 59, 60); /* 30 ms */
    assert_int_equal(pg_int(c, slow, "wait", "0.005"), 20);
    PQfinish(c);
}

/* If the last step has left a queue waiting, it was not idle. A lease of one job in front of others
 * would make each claim after it split a lease. */
static void
who_waits_was_not_idle(void **state)
{
    PGconn *c = core_new("waits");

    (void)state;
    pg_run(c, "select t.many('a', 'a', 100), t.many('b', 'b', 1)");
    core_settle(c);
    pg_run(c, "select t.claim('n', 1, null, '{b}'), t.done('n'), t.many('b', 'b', 3)");
    static const char fronts[] =
        "select count(*) from (select * from tick order by tick desc limit 1) k, "
        "jsonb_populate_record(null::tick, to_jsonb(k) || jsonb_build_object('waiting', %s)) t, "
        "front_jobs(t, '{b}') where idle";
    assert_int_equal(pg_int(c, fronts, "'[]'::jsonb"), 1);
    assert_int_equal(pg_int(c, fronts, "'[\"b\"]'::jsonb"), 0);
    PQfinish(c);
}

/* Measured leases keep the proportion of the weights, however little each queue's share is. */
static void
leases_follow_the_weights(void **state)
{
    PGconn *c = core_new("follow");

    (void)state;
    pg_run(c, "insert into queue_config (queue, weight) values ('one', 1), ('two', 2), ('four', 4);"
              " select t.many(queue, 'j', 500) from queue_config");
    core_settle(c);
    for (int i = 0; i < 2; i++) {
        pg_run(
            c,
            "update work_queue set seqs = seqs[:1] where lease in (select min(lease) from "
            "work_queue group by queue);"
            " delete from work_queue where lease not in (select min(lease) from work_queue group "
            "by queue);"
            " update cursor set chunk = 80;"
            " update tick set want = 20, weights = 7, more = true, hasty = false, mark_at = "
            "'infinity', cut_at = now() - interval '1 s'");
        pg_run(c, "select schedule('test')");
    }
    expect(c, "four 80,one 20,two 40",
           "select string_agg(queue || ' ' || n, ',' order by queue) from (select queue, "
           "max(cardinality(seqs)) as n from work_queue group by 1) z");
    PQfinish(c);
}

/* Sixty slow jobs are cut, one runs. An urgent job of their queue and a job of a queue with nothing
 * to do are the next two. While these run, a job of a third queue comes next, too. The second job
 * of a queue that has one in front stays at the end. */
static void
urgent_means_now(void **state)
{
    PGconn *c = core_new("urgent");

    (void)state;
    pg_run(c, "update tick set want = 60; select t.many('a', 'a', 60)");
    core_settle(c);
    core_second(c);
    core_settle(c);
    expect(c, "t", "select sum(cardinality(seqs)) >= 40 from work_queue where lock_key is null");
    expect(c, "a1", "select t.claim('w', 1)");
    pg_run(c, "update tick set rate = 1, mark_at = 'infinity'; update scheduler set until = "
              "clock_timestamp() + interval '9 s' where term > 0");
    pg_run(c, "select t.push('b', 'b1'), t.push('a', 'now', 0)");
    pg_run(c, "select schedule('test')");
    expect(c, "b1,now",
           "select string_agg(n, ',' order by n) from (select t.claim('w', 1) as n from "
           "generate_series(1, 2)) z");
    pg_run(
        c,
        "select t.push('c', 'c1'); select schedule('test'); select t.push('c', 'c2'), t.push('b', "
        "'b2'); select schedule('test')");
    expect(c, "c1", "select t.claim('w', 1)");
    expect(c, "a2", "select t.claim('w', 1)");
    core_check(c);
    pg_run(c, "select t.done('w')");
    for (int i = 0; i < 10; i++) {
        core_settle(c);
        pg_run(c, "select t.claim('w', 10, queues => '{a,b,c}'); select t.done('w')");
    }
    expect(c, "0", "select count(*) from queue");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trickle_beside_a_mountain),
        cmocka_unit_test(ten_queues_alternate),
        cmocka_unit_test(weights_share),
        cmocka_unit_test(weights_of_three),
        cmocka_unit_test(an_unserved_queue_stops_nobody),
        cmocka_unit_test(what_comes_back_hides_nothing),
        cmocka_unit_test(a_push_hides_nothing),
        cmocka_unit_test(small_leases_where_weights_differ),
        cmocka_unit_test(little_is_kept_ready),
        cmocka_unit_test(a_slow_step_keeps_more_ready),
        cmocka_unit_test(who_waits_was_not_idle),
        cmocka_unit_test(leases_follow_the_weights),
        cmocka_unit_test(urgent_means_now),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
