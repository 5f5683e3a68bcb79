/* The scale of verdicts: what is bad, what needs a look, what somebody has decided. */
#include "tests/harness.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/store/fail_day.h"
#include "ui/facts/jobs_columns.h"
#include "ui/facts/node_columns.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/verdict.h"

enum { NOW = 1000000000, MINUTE = 60000, MANY = 10 };

static struct queue_row
queue(void)
{
    return (struct queue_row){.queue = "q",
                              .oldest_ms = FIELD_NULL,
                              .failed_left = FIELD_NULL,
                              .failed_per_s = (double)NAN};
}

static void
test_failures_of_this_hour(void **state)
{
    struct queue_row q = queue();

    (void)state;
    q.failed = 4000; /* none of them in the last hour */
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_WARN);
    q.failed_hour = MANY;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_BAD);
    q.failed_hour = FIELD_NULL; /* another system gives no times */
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_WARN);
    q.failed = MANY - 1;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_WELL);
}

/* Failures that were requeued since are over, unless failures go on or the failed jobs are still
 * there. */
static void
test_failures_that_somebody_requeued(void **state)
{
    struct queue_row q = queue();

    (void)state;
    q.failed_hour = 4000;
    q.failed = 3;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_WELL);
    q.failed_per_s = 0.1;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_BAD);
    q.failed_per_s = 0;
    q.failed = MANY;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_BAD);
    q.failed = FIELD_NULL;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_BAD);
    q.failed = 4000; /* older ones; of those of the hour few are left */
    q.failed_left = 3;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_WARN);
    q.failed_left = MANY;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_BAD);
    q.failed = 0; /* asked for more often */
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_WELL);
}

static void
test_a_decision(void **state)
{
    struct queue_row q = queue();

    (void)state;
    q.failed_hour = 4000;
    q.oldest_ms = 1;
    q.paused = 1;
    assert_int_equal(verdict_of_queue(&q, 5, NOW), VERDICT_DECIDED);
    assert_string_equal(verdict_sign(VERDICT_DECIDED).glyph, "‖");
    assert_int_equal(verdict_role(VERDICT_DECIDED), ROLE_DIM);
    assert_null(verdict_sign(VERDICT_WELL).glyph);
}

static void
test_age(void **state)
{
    struct queue_row q = queue();

    (void)state;
    q.oldest_ms = NOW - MINUTE / 2;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_WELL);
    q.oldest_ms = NOW - 2 * MINUTE;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_WARN);
    q.oldest_ms = NOW - 20 * MINUTE;
    assert_int_equal(verdict_of_queue(&q, TREND_STEADY, NOW), VERDICT_BAD);
}

static void
test_a_backlog_that_grows(void **state)
{
    struct queue_row q = queue();

    (void)state;
    q.ready = 5000;
    assert_int_equal(verdict_of_queue(&q, TREND_FILLS, NOW), VERDICT_WARN);
    assert_int_equal(verdict_of_queue(&q, TREND_DRAINS, NOW), VERDICT_WELL);
    assert_int_equal(verdict_of_queue(&q, TREND_UNKNOWN, NOW), VERDICT_WELL);
}

static void
test_nodes(void **state)
{
    struct node_row n = {.state = "dead", .leases = 0, .session_alive = -1, .backend_pid = INT_MIN};

    (void)state;
    assert_int_equal(verdict_of_node(&n, false), VERDICT_WELL); /* the node holds no lease */
    n.leases = 1;
    assert_int_equal(verdict_of_node(&n, false), VERDICT_BAD);
    n.state = "unknown";
    assert_int_equal(verdict_of_node(&n, false), VERDICT_BAD);
    assert_int_equal(verdict_of_node(&n, true), VERDICT_WELL); /* that system has no heartbeats */
    n.expired = 1;
    assert_int_equal(verdict_of_node(&n, true), VERDICT_BAD);
    n.state = "late";
    assert_int_equal(verdict_of_node(&n, false), VERDICT_WARN);
    n.state = "draining";
    assert_int_equal(verdict_of_node(&n, false), VERDICT_DECIDED);
    n.state = "up";
    assert_int_equal(verdict_of_node(&n, false), VERDICT_WELL);
    n.session_alive = 0;
    n.backend_pid = 4711;
    assert_int_equal(verdict_of_node(&n, false), VERDICT_WARN);
}

/* Jobs of expired leases and of dead nodes count as running, but take no slot. */
static void
no_more_jobs_than_slots(void **state)
{
    struct node_row nodes[] = {
        {.node = "a", .state = "up",   .queues = "", .slots = 6, .running = 9, .expired_jobs = 3},
        {.node = "b", .state = "dead", .queues = "", .slots = 8, .running = 8, .expired_jobs = 0},
        {.node = "c",
         .state = "up",
         .queues = "",
         .slots = 4,
         .running = 2,
         .expired_jobs = FIELD_NULL                                                             }
    };
    struct workers w = workers_of(nodes, 3);
    struct queue_row q = queue();
    struct queue_line l;

    (void)state;
    assert_int_equal(w.slots, 10);
    assert_int_equal(w.used, 8);
    assert_int_equal(w.lost, 11);
    assert_int_equal(w.beyond, 0);
    q.running = 16; /* 19 by the nodes, which were read at another time */
    assert_int_equal(workers_used(&w, &q), 5);
    q.running = 40;
    assert_int_equal(workers_used(&w, &q), 10);
    q.running = FIELD_NULL;
    assert_int_equal(workers_used(&w, &q), 8);
    q.running = 0;
    queue_line_fill(&l, &q, &w, NOW);
    assert_int_equal(l.slots.used, 8);
    assert_string_equal(node_at_work(&nodes[0], 7).s, "6/6+3");
    workers_done(&w);

    /* none expired: claimed ahead, or the server has not got the answers yet */
    nodes[0].expired_jobs = 0;
    w = workers_of(nodes, 3);
    assert_int_equal(w.used, 8);
    assert_int_equal(w.beyond, 3);
    assert_int_equal(w.lost, 8);
    q.running = 19;
    q.max_running = -1;
    queue_line_fill(&l, &q, &w, NOW);
    assert_int_equal(l.slots.used, 8);
    assert_string_equal(queue_running(&l, 7).s, "10/10+9");

    struct buf said = {0}; /* its limit is 5, and 2 run: why are all slots taken? */
    l.q.running = 2;
    l.o = (struct outlook){.held = HELD_SLOTS, .held_of = 21};
    l.q.in5_per_s = l.q.out5_per_s = l.q.run5_ms = (double)NAN;
    queue_say_advice(&l, &said);
    assert_string_equal(said.data,
                        "held by slots: all 21 slots of its nodes are in use, 19 by other "
                        "queues");
    buf_free(&said);
    l.q.running = 19;
    assert_string_equal(queue_running(&l, 6).s, "19");
    assert_string_equal(node_at_work(&nodes[0], 4).s, "6/6");
    assert_string_equal(node_at_work(&nodes[2], 7).s, "2/4");
    workers_done(&w);
}

/* A figure is never cut: the unit stands in the place of its last digits. */
static void
absurd_tries(void **state)
{
    struct job_row j = {.state = "running", .tries = 2, .max_tries = 5};

    (void)state;
    assert_string_equal(job_tries(&j, 5).s, "3/5");
    j.tries = INT_MAX;
    assert_string_equal(job_tries(&j, 5).s, "2.1G");
    j.max_tries = INT_MIN;
    assert_string_equal(job_tries(&j, 5).s, "2.1G");
    assert_string_equal(job_tries(&j, 12).s, "2147483648");
}

static void
test_groups_and_jobs(void **state)
{
    struct group_row g = {.n = 4000, .first_ms = NOW - 300 * MINUTE, .last_ms = NOW - MINUTE};
    struct job_row j = {
        .state = "failed", .changed_ms = NOW - 300 * MINUTE, .lease_until_ms = NOW - MINUTE};

    (void)state;
    assert_int_equal(verdict_of_group(&g, NOW), VERDICT_WELL);
    g.first_ms = NOW - 2 * MINUTE;
    assert_int_equal(verdict_of_group(&g, NOW), VERDICT_BAD);
    g.n = 1;
    assert_int_equal(verdict_of_group(&g, NOW), VERDICT_WARN);
    assert_int_equal(verdict_of_job(&j, NOW), VERDICT_WELL);
    j.changed_ms = NOW - MINUTE;
    assert_int_equal(verdict_of_job(&j, NOW), VERDICT_BAD);
    j.state = "running"; /* its lease has expired */
    assert_int_equal(verdict_of_job(&j, NOW), VERDICT_WARN);
    j.lease_until_ms = NOW + MINUTE;
    assert_int_equal(verdict_of_job(&j, NOW), VERDICT_WELL);
    j.stale = 1;
    assert_int_equal(verdict_of_job(&j, NOW), VERDICT_WARN);
}

static void
test_schedules(void **state)
{
    struct schedule_row s = {
        .state = "active", .last_outcome = "completed", .next_run_ms = NOW + MINUTE};

    (void)state;
    assert_int_equal(verdict_of_schedule(&s, NOW), VERDICT_WELL);
    s.queue_paused = 1;
    assert_int_equal(verdict_of_schedule(&s, NOW), VERDICT_DECIDED);
    s.last_outcome = "failed";
    assert_int_equal(verdict_of_schedule(&s, NOW), VERDICT_WARN);
    s.next_run_ms = NOW - MINUTE - 1;
    assert_int_equal(verdict_of_schedule(&s, NOW), VERDICT_BAD);
    s.state = "paused";
    assert_int_equal(verdict_of_schedule(&s, NOW), VERDICT_DECIDED);
    s.state = "failed";
    assert_int_equal(verdict_of_schedule(&s, NOW), VERDICT_BAD);
}

/* The tables of a new queue: 65 of 83 rows are dead, and autovacuum has not run yet. */
static void
few_dead_rows_are_well(void **state)
{
    struct health_table t = {.live = 18, .dead = 65, .worst_dead = 65, .next_dead = 61};

    (void)state;
    assert_int_equal(verdict_of_table(&t), VERDICT_WELL);
    t = (struct health_table){.live = 1800, .dead = 6500, .worst_dead = 6500, .next_dead = 6100};
    assert_int_equal(verdict_of_table(&t), VERDICT_BAD);
    t.dead = 1500; /* 45 % dead is bad, a fifth and less is a warning */
    t.live = 9000;
    assert_int_equal(verdict_of_table(&t), VERDICT_WARN);
    t.vacuum_off = 1; /* however many are dead */
    assert_int_equal(verdict_of_table(&t), VERDICT_BAD);
    t.dead = 500;
    assert_int_equal(verdict_of_table(&t), VERDICT_BAD);
    t.vacuum_off = 0;
    t.dead = 6500;
    t.worst_dead = 6099;
    assert_int_equal(verdict_of_table(&t), VERDICT_WELL);
}

/* An old error rises if many jobs failed in the last hour, or twice as many as in a usual hour. */
static void
an_error_rises(void **state)
{
    struct fail_day day = {.since_ms = FIELD_NULL, .hour = 4};
    struct group_row g = {
        .n = 100, .first_ms = NOW - 3 * 60 * MINUTE, .last_ms = NOW - MINUTE, .day = &day};

    (void)state;
    day.counts[46] = 4;
    assert_int_equal(fail_trend_of(&g, NOW), FAIL_OLD); /* too few failures */
    day.hour = day.counts[46] = 5;
    assert_int_equal(fail_trend_of(&g, NOW), FAIL_RISING);
    day.counts[43] = 5; /* 2.5 in a usual hour */
    assert_int_equal(fail_trend_of(&g, NOW), FAIL_OLD);
    day.hour = day.counts[46] = MANY;
    day.counts[43] = 1000;
    assert_int_equal(fail_trend_of(&g, NOW), FAIL_RISING);
    g.last_ms = NOW - 61 * MINUTE;
    assert_int_equal(fail_trend_of(&g, NOW), FAIL_OLD);
}

enum { HALF = FAIL_STEP_MS };

/* The rows of two groups that are shown, and a row of a third that is not. */
static void
a_day_by_half_hours(void **state)
{
    static const struct group_row groups[] = {
        {.queue = "a", .error_key = "x", .n = 9},
        {.queue = "b", .error_key = "x", .n = 9},
        {.queue = "c", .error_key = "x", .n = 9}
    };
    const int64_t now = 1000 * (int64_t)HALF + 100, none = FIELD_NULL;
    struct fail_time_row times[] = {
        {"b", "x", 999 * (int64_t)HALF,  2, 1, 999 * (int64_t)HALF},
        {"a", "x", 1000 * (int64_t)HALF, 3, 3, none               },
        {"z", "x", 1000 * (int64_t)HALF, 7, 7, none               },
        {"a", "x", 953 * (int64_t)HALF,  4, 0, none               },
        {"a", "x", 952 * (int64_t)HALF,  5, 0, none               }
    };
    struct fail_day days[3];
    double w[FAIL_STEPS];

    (void)state;
    assert_true(fail_days_read(groups, 3, times, 5, now, days));
    assert_int_equal(days[0].hour, 3);
    fail_day_columns(&days[0], now, 1, w, FAIL_STEPS);
    assert_true(w[0] == 4 && w[1] == 0 && w[47] == 3);
    fail_day_columns(&days[0], now, 2, w, 24); /* half-hour 1000 begins an hour */
    assert_true(w[23] == 3 && w[0] == 0);
    fail_day_columns(&days[0], now + HALF, 1, w, FAIL_STEPS); /* the answer is one step old */
    assert_true(w[0] == 0 && w[46] == 3 && w[47] == 0);
    fail_day_columns(&days[1], now, 1, w, FAIL_STEPS); /* older failures were not counted */
    assert_true(isnan(w[45]) && w[46] == 2 && w[47] == 0);
    assert_int_equal(fail_day_first_ms(now, 2, 24), 954 * (int64_t)HALF);
    times[0].hour = FIELD_NULL; /* a recording of an older version */
    assert_false(fail_days_read(groups, 3, times, 5, now, days));
}

/* If only failures since a certain time were counted, that time also applies to groups without a
 * row. */
static void
a_day_that_is_cut(void **state)
{
    static const struct group_row groups[] = {
        {.queue = "a", .error_key = "x", .n = 9},
        {.queue = "b", .error_key = "x", .n = 9}
    };
    const int64_t now = 1000 * (int64_t)HALF + 100;
    const struct fail_time_row time = {"a", "x", 1000 * (int64_t)HALF, 3, 3, now - 50};
    struct fail_day days[2];
    double w[FAIL_STEPS];
    struct group_row g = groups[0];

    (void)state;
    assert_true(fail_days_read(groups, 2, &time, 1, now, days));
    fail_day_columns(&days[1], now, 1, w, FAIL_STEPS);
    assert_true(isnan(w[46]) && w[47] == 0);
    g.day = &days[0];
    assert_true(fail_day_hour_is_least(&g, now));
    g.n = 3;
    assert_false(fail_day_hour_is_least(&g, now));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_dead_rows_are_well),
        cmocka_unit_test(test_failures_of_this_hour),
        cmocka_unit_test(test_failures_that_somebody_requeued),
        cmocka_unit_test(test_a_decision),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_a_backlog_that_grows),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(no_more_jobs_than_slots),
        cmocka_unit_test(absurd_tries),
        cmocka_unit_test(test_groups_and_jobs),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(an_error_rises),
        cmocka_unit_test(a_day_by_half_hours),
        cmocka_unit_test(a_day_that_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
