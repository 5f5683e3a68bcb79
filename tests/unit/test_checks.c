/* The values of `queuetop check`: which limit applies, and what each rule reports as bad. */
#include "tests/harness.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "ui/facts/checks.h"

static const int64_t NOW = 10000000000, MINUTE = 60000;

static struct arena *mem;
static struct check_limits limits;
static struct check_look look;
static struct checks seen;
static struct queue_line lines[2];

static int
set_up(void **state)
{
    (void)state;
    mem = arena_new();
    limits.n = 0;
    look = (struct check_look){.lines = lines,
                               .nlines = 2,
                               .has_minutes = true,
                               .has_leases = true,
                               .has_heartbeats = true,
                               .now_ms = NOW};
    for (int i = 0; i < 2; i++)
        lines[i] = (struct queue_line){
            .q = {.queue = i ? "b" : "a",
                  .oldest_ms = FIELD_NULL,
                  .paced = true,
                  .completed5 = 5,
                  .fails5 = 0},
            .o = {.trend = TREND_EMPTY,        .empty_ms = FIELD_NULL            }
        };
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    arena_free(mem);
    return 0;
}

static void
limit(bool is_crit, const char *spec)
{
    struct err e = {0};

    if (!check_limit_add(&limits, is_crit, spec, mem, &e))
        fail_msg("%s", e.text);
}

static enum verdict
judged(enum condition_id id)
{
    checks_judge(&look, &limits, mem, &seen);
    return seen.seen[id].verdict;
}

static void
wait_in(int i, int64_t ms)
{
    lines[i].q.ready = 3;
    lines[i].q.oldest_ms = NOW - ms;
}

static void
the_console_s_scale_by_itself(void **state)
{
    (void)state;
    assert_int_equal(judged(COND_OLDEST), VERDICT_WELL);
    wait_in(1, 2 * MINUTE);
    assert_int_equal(judged(COND_OLDEST), VERDICT_WARN);
    assert_string_equal(seen.seen[COND_OLDEST].queue, "b");
    wait_in(0, 20 * MINUTE);
    assert_int_equal(judged(COND_OLDEST), VERDICT_BAD);
    assert_string_equal(seen.seen[COND_OLDEST].queue, "a");
    assert_int_equal(seen.seen[COND_OLDEST].bad, 2);
    lines[0].q.paused = 1; /* somebody paused the queue */
    assert_int_equal(judged(COND_OLDEST), VERDICT_WARN);
}

/* A value that equals the limit is well, as in the ranges of monitoring plugins. */
static void
above_the_limit(void **state)
{
    (void)state;
    wait_in(0, 30000);
    limit(true, "oldest=30s");
    assert_int_equal(judged(COND_OLDEST), VERDICT_WELL);
    wait_in(0, 30001);
    assert_int_equal(judged(COND_OLDEST), VERDICT_BAD);
}

static void
the_queue_s_own_limit_counts(void **state)
{
    (void)state;
    wait_in(0, MINUTE);
    wait_in(1, MINUTE);
    limit(true, "oldest@b=10s");
    limit(true, "oldest=1h"); /* a later limit for all queues does not replace the limit of b */
    assert_int_equal(judged(COND_OLDEST), VERDICT_BAD);
    assert_string_equal(seen.seen[COND_OLDEST].queue, "b");
    assert_int_equal(seen.nown, 1);
    assert_string_equal(seen.own[0].seen.queue, "b");
    limit(true, "oldest@b=off");
    assert_int_equal(judged(COND_OLDEST), VERDICT_WELL);
}

static void
names_with_signs(void **state)
{
    (void)state;
    lines[0].q.queue = "a@b=c";
    wait_in(0, MINUTE);
    limit(true, "backlog@a@b=c=2");
    assert_int_equal(judged(COND_BACKLOG), VERDICT_BAD);
    assert_string_equal(seen.seen[COND_BACKLOG].queue, "a@b=c");
}

static void
wrong_limits(void **state)
{
    static const char *const wrong[] = {
        "",           "oldest",        "=5",         "old=5",          "oldest=",     "oldest=soon",
        "backlog=-1", "backlog=1e999", "backlog=5x", "worker@mails=1", "backlog=nan", "oldest=-1s"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        e = (struct err){0};
        if (check_limit_add(&limits, true, wrong[i], mem, &e))
            fail_msg("'%s' was taken", wrong[i]);
        assert_true(*e.text);
    }
    for (int i = 0; i < CHECK_LIMITS; i++)
        limit(false, "backlog=1");
    assert_false(check_limit_add(&limits, true, "backlog=1", mem, &e));
}

/* No job was completed in the last five minutes. The minutes say since when. */
static void
work_stands_still(void **state)
{
    struct minute_row minutes[] = {
        {"b", NOW - 50 * MINUTE, 1, 1, 0, 0},
        {"a", NOW - 20 * MINUTE, 1, 1, 0, 0},
        {"a", NOW - 10 * MINUTE, 1, 0, 1, 0}
    };

    (void)state;
    look.minutes = minutes;
    look.nminutes = 3;
    lines[0].q.completed5 = lines[1].q.completed5 = 0;
    assert_false(check_needs_minutes(&look, &limits)); /* no job waits */
    assert_int_equal(judged(COND_STALLED), VERDICT_WELL);
    wait_in(0, 55 * MINUTE);
    assert_true(check_needs_minutes(&look, &limits));
    assert_int_equal(judged(COND_STALLED), VERDICT_WARN); /* 19 minutes */
    assert_int_equal((int)seen.seen[COND_STALLED].value, 19 * 60);
    lines[0].q.completed5 = 1;
    assert_int_equal(judged(COND_STALLED), VERDICT_WELL);
}

/* The first jobs after an idle night are no stall, though nothing was completed for hours. */
static void
work_has_just_begun(void **state)
{
    (void)state;
    lines[0].q.completed5 = lines[1].q.completed5 = 0;
    wait_in(0, MINUTE);
    assert_int_equal(judged(COND_STALLED), VERDICT_WELL);
    assert_int_equal((int)seen.seen[COND_STALLED].value, 60);
}

/* The stall of a running job counts from the start of the job. One queue alone stalls only by its
 * own limit. */
static void
a_queue_stands_still(void **state)
{
    struct lease_row lease = {
        .node = "n", .queue = "b", .started_ms = NOW - 40 * MINUTE, .lease_until_ms = NOW + MINUTE};

    (void)state;
    look.leases = &lease;
    look.nleases = 1;
    lines[1].q.running = 1;
    lines[1].q.completed5 = 0;
    assert_int_equal(judged(COND_STALLED), VERDICT_WELL); /* queue a completes jobs */
    limit(true, "stalled@b=30m");
    assert_true(check_needs_leases(&look, &limits));
    assert_int_equal(judged(COND_STALLED), VERDICT_BAD);
    assert_string_equal(seen.seen[COND_STALLED].queue, "b");
    assert_int_equal((int)seen.seen[COND_STALLED].value, 40 * 60);
}

/* If only queue b is asked about, what queue a completes does not count, and a lease of a does not
 * say since when. */
static void
the_asked_queue_stands_still(void **state)
{
    static const char *const asked[] = {"b"};
    struct lease_row leases[] = {
        {.node = "n", .queue = "a", .started_ms = NOW - 55 * MINUTE, .lease_until_ms = NOW},
        {.node = "n", .queue = "b", .started_ms = NOW - 40 * MINUTE, .lease_until_ms = NOW}
    };
    struct minute_row minutes[] = {
        {"a", NOW - MINUTE, 5, 5, 0, 0}
    };

    (void)state;
    look.lines = &lines[1];
    look.nlines = 1;
    look.asked = asked;
    look.nasked = 1;
    look.leases = leases;
    look.nleases = 2;
    look.minutes = minutes;
    look.nminutes = 1;
    lines[1].q.running = 1;
    lines[1].q.completed5 = 0;
    assert_int_equal(judged(COND_STALLED), VERDICT_BAD);
    assert_int_equal((int)seen.seen[COND_STALLED].value, 40 * 60);
    minutes[0].queue = "b";
    assert_int_equal(judged(COND_STALLED), VERDICT_WELL);
}

static void
leases_and_nodes(void **state)
{
    struct node_row nodes[] = {
        {.node = "x", .state = "dead", .leases = 2, .expired = 1},
        {.node = "y", .state = "up",   .leases = 2, .expired = 0}
    };
    struct lease_row leases[] = {
        {.node = "x", .queue = "a", .started_ms = 1, .lease_until_ms = NOW - 11000},
        {.node = "x", .queue = "a", .started_ms = 1, .lease_until_ms = NOW - 9000 }
    };

    (void)state;
    assert_false(check_needs_leases(&look, &limits));
    look.nodes = nodes;
    look.nnodes = 2;
    assert_true(check_needs_leases(&look, &limits));
    look.leases = leases;
    look.nleases = 2;
    assert_int_equal(judged(COND_EXPIRED), VERDICT_WARN); /* the other lease expired just now */
    assert_int_equal((int)seen.seen[COND_EXPIRED].value, 1);
    assert_int_equal(seen.seen[COND_DEAD].verdict, VERDICT_BAD);
    assert_int_equal((int)seen.seen[COND_DEAD].value, 1);
}

/* An adapter may leave out leases and expired. */
static void
nodes_that_do_not_tell_their_leases(void **state)
{
    struct node_row node = {
        .node = "x", .state = "dead", .running = 114, .leases = FIELD_NULL, .expired = FIELD_NULL};

    (void)state;
    look.nodes = &node;
    look.nnodes = 1;
    assert_true(check_needs_leases(&look, &limits));
    judged(COND_DEAD);
    assert_int_equal((int)seen.seen[COND_DEAD].value, 1);
    assert_string_equal(seen.seen[COND_DEAD].text, "1 dead node holds jobs: x");
    node.running = 0;
    assert_int_equal(judged(COND_DEAD), VERDICT_WELL);
}

/* A queue system that does not know who holds its leases counts the expired ones in its queues. */
static void
leases_of_queues(void **state)
{
    (void)state;
    look.has_leases = false;
    lines[0].q.expired = lines[1].q.expired = FIELD_NULL;
    judged(COND_EXPIRED);
    assert_false(seen.seen[COND_EXPIRED].known);
    lines[0].q.expired = 0;
    assert_int_equal(judged(COND_EXPIRED), VERDICT_WELL);
    lines[1].q.expired = 2;
    assert_int_equal(judged(COND_EXPIRED), VERDICT_WARN);
    assert_string_equal(seen.seen[COND_EXPIRED].text,
                        "2 leases have expired and nobody took them back");
}

static void
nobody_lives(void **state)
{
    struct life_row life = {.workers = 0,
                            .scheduler_alive = 0,
                            .overdue = 2,
                            .overdue_ms = 1,
                            .scheduler_ms = FIELD_NULL};

    (void)state;
    assert_int_equal(judged(COND_WORKER), VERDICT_WELL);
    assert_false(seen.seen[COND_WORKER].known);
    look.life = &life;
    look.waiting = 4;
    assert_int_equal(judged(COND_WORKER), VERDICT_BAD);
    assert_int_equal(seen.seen[COND_SCHEDULER].verdict, VERDICT_WARN);
    assert_int_equal(seen.seen[COND_OVERDUE].verdict, VERDICT_BAD);
    life.overdue = 0;
    look.waiting = 0;
    life.scheduler_ms = look.now_ms - 5000; /* its step takes long */
    assert_int_equal(judged(COND_SCHEDULER), VERDICT_WELL);
    life.scheduler_ms = look.now_ms - 20000;
    assert_int_equal(judged(COND_SCHEDULER), VERDICT_WARN);
    assert_int_equal(judged(COND_WORKER), VERDICT_WELL); /* no job needs a worker */
    assert_int_equal(seen.seen[COND_OVERDUE].verdict, VERDICT_WELL);
}

static void
books_of_the_whole(void **state)
{
    struct life_row life = {.workers = 1, .scheduler_alive = 1, .unserved = FIELD_NULL};

    (void)state;
    look.life = &life;
    judged(COND_UNSERVED);
    assert_false(seen.seen[COND_UNSERVED].known); /* another system */
    life.unserved = 0;
    assert_int_equal(judged(COND_UNSERVED), VERDICT_WELL);
    assert_int_equal(seen.seen[COND_UNCOUNTED].verdict, VERDICT_WELL);
    life.unserved = 3;
    life.max_queues = 100000;
    life.counting = 1;
    life.counting_ms = look.now_ms - 60000;
    assert_int_equal(judged(COND_UNSERVED), VERDICT_BAD);
    assert_string_equal(seen.seen[COND_UNSERVED].text,
                        "3 queues above max_queues (100,000) are not served: raise it in table"
                        " setting, or remove queues");
    assert_int_equal(seen.seen[COND_UNCOUNTED].verdict, VERDICT_WARN);
    assert_string_equal(seen.seen[COND_UNCOUNTED].text,
                        "counters are counted anew after a restore, for 1m 00s: those of 1 queue"
                        " may be wrong");
    life.scheduler_alive = 0;
    judged(COND_UNCOUNTED);
    assert_non_null(strstr(seen.seen[COND_UNCOUNTED].text, ": start queuetop schedule"));
}

static void
never_empty(void **state)
{
    (void)state;
    wait_in(0, 1000);
    lines[0].o.trend = TREND_FILLS;
    assert_int_equal(judged(COND_DRAIN), VERDICT_WELL); /* no limit was given */
    limit(false, "drain=1h");
    assert_int_equal(judged(COND_DRAIN), VERDICT_WARN);
    lines[0].o.trend = TREND_DRAINS;
    lines[0].o.empty_ms = NOW + MINUTE;
    assert_int_equal(judged(COND_DRAIN), VERDICT_WELL);
    lines[0].o.empty_ms = NOW + 61 * MINUTE;
    assert_int_equal(judged(COND_DRAIN), VERDICT_WARN);
}

static void
the_database(void **state)
{
    struct health_server server = {.xid_age = 100, .freeze_max = 200000000};
    struct health_session sessions[] = {
        {.kind = "autovacuum", .pid = 1,       .user = "",  .xact_ms = NOW - 600 * MINUTE},
        {.kind = "session",    .pid = 4711,    .user = "u", .xact_ms = NOW - 6 * MINUTE  },
        {.kind = "session",    .pid = INT_MIN, .user = "u", .xact_ms = FIELD_NULL        }
    };

    (void)state;
    look.server = &server;
    look.sessions = sessions;
    look.nsessions = 3;
    assert_int_equal(judged(COND_TRANSACTION), VERDICT_WARN);
    assert_non_null(strstr(seen.seen[COND_TRANSACTION].text, "pid 4711"));
    assert_int_equal(seen.seen[COND_XIDS].verdict, VERDICT_WELL);
    server.xid_age = 1900000000;
    assert_int_equal(judged(COND_XIDS), VERDICT_BAD);
    limit(true, "xids=2000000000");
    assert_int_equal(judged(COND_XIDS), VERDICT_WELL);
}

static void
rights_of_others(void **state)
{
    (void)state;
    (void)judged(COND_RIGHTS);
    assert_false(seen.seen[COND_RIGHTS].known); /* another system */
    look.is_native = true;
    assert_int_equal(judged(COND_RIGHTS), VERDICT_WELL);
    look.risk = "mallory has CREATE";
    assert_int_equal(judged(COND_RIGHTS), VERDICT_BAD);
    assert_string_equal(seen.seen[COND_RIGHTS].text, "mallory has CREATE");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {CASE(the_console_s_scale_by_itself),
                                       CASE(above_the_limit),
                                       CASE(the_queue_s_own_limit_counts),
                                       CASE(names_with_signs),
                                       CASE(wrong_limits),
                                       CASE(work_stands_still),
                                       CASE(work_has_just_begun),
                                       CASE(a_queue_stands_still),
                                       CASE(the_asked_queue_stands_still),
                                       CASE(leases_and_nodes),
                                       CASE(nodes_that_do_not_tell_their_leases),
                                       CASE(leases_of_queues),
                                       CASE(nobody_lives),
                                       CASE(rights_of_others),
                                       CASE(books_of_the_whole),
                                       CASE(never_empty),
                                       CASE(the_database)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
