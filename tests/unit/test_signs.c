/*
 * Whether any worker is at work, judged by rows alone: patience, paused queues, and other queue
 * systems that do not report it.
 */
#include "tests/harness.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ui/facts/life.h"

enum { NOW = 10000000 };

static const struct queue_row waits = {
    .queue = "mail", .ready = 3, .scheduled = 2, .retry = 0, .oldest_ms = NOW - 60000};

static const char *
first(struct life_look *l, struct arena *mem)
{
    struct trouble t[TROUBLES_MAX];

    l->now_ms = NOW;
    return life_troubles(l, mem, t) ? arena_printf(mem, "%s: %s", t[0].where, t[0].what) : "";
}

static void
our_own(void **state)
{
    struct arena *mem = arena_new();
    struct life_row row = {.scheduler_alive = 1,
                           .overdue_ms = FIELD_NULL,
                           .scheduler_ms = FIELD_NULL,
                           .held_ms = FIELD_NULL,
                           .scheduler = "",
                           .held_app = "",
                           .held_user = ""};
    struct queue_row q = waits;
    struct life_look l = {.row = &row, .queues = &q, .nqueues = 1};

    (void)state;
    assert_string_equal(first(&l, mem),
                        "no worker: 3 jobs wait, for 1m 00s: start queuetop work -- COMMAND");
    q.oldest_ms = NOW - LIFE_PATIENCE_MS + 1;
    assert_string_equal(first(&l, mem), "");
    q.oldest_ms = NOW - LIFE_PATIENCE_MS;
    assert_string_not_equal(first(&l, mem), "");
    row.workers = 1;
    assert_string_equal(first(&l, mem), "");
    row.workers = 0;
    l.completes = true;
    assert_string_equal(first(&l, mem), "");
    l.completes = false;
    q.paused = 1;
    assert_string_equal(first(&l, mem), "");
    q.ready = 0;
    q.paused = row.scheduler_alive = 0;
    assert_string_equal(
        first(&l, mem),
        "no worker or scheduler: 2 jobs are to run later: start queuetop work -- COMMAND");
    row.workers = 1;
    assert_string_equal(first(&l, mem), ""); /* a worker does the work of the scheduler */
    row.overdue = 1;
    row.overdue_ms = NOW - 20000;
    assert_string_equal(first(&l, mem),
                        "no scheduler: 1 schedule is overdue, for 20s: start queuetop schedule");
    row.scheduler_alive = 1;
    assert_string_equal(first(&l, mem), "");
    arena_free(mem);
}

/* A scheduler that was killed: 30 s after its last sign, if anything depends on it. One that was
 * never there is not missed, nor one with nothing to do. */
static void
a_dead_scheduler(void **state)
{
    struct arena *mem = arena_new();
    struct life_row row = {.workers = 1,
                           .overdue_ms = FIELD_NULL,
                           .scheduler_ms = NOW - LIFE_SCHEDULER_MS,
                           .held_ms = FIELD_NULL,
                           .scheduler = "s",
                           .held_app = "",
                           .held_user = ""};
    struct queue_row q = {.ready = 0, .retry = 1, .running = 2, .oldest_ms = FIELD_NULL};
    struct life_look l = {.row = &row, .queues = &q, .nqueues = 1};

    (void)state;
    assert_string_equal(first(&l, mem), "no scheduler: its last sign is 30s old, and 3 jobs depend "
                                        "on it: start queuetop schedule");
    row.schedules = 1;
    q.retry = q.running = 0;
    assert_string_equal(first(&l, mem), "no scheduler: its last sign is 30s old, and 1 schedule "
                                        "depends on it: start queuetop schedule");
    row.schedules = 0;
    assert_string_equal(first(&l, mem), "");
    q.retry = 1;
    row.scheduler_ms = NOW - LIFE_SCHEDULER_MS + 1;
    assert_string_equal(first(&l, mem), "");
    row.scheduler_ms = NOW - 600000;
    row.scheduler_alive = 1; /* or asleep */
    assert_string_equal(first(&l, mem), "");
    row.scheduler_alive = 0;
    row.scheduler = "";
    assert_string_equal(first(&l, mem), "");
    arena_free(mem);
}

/* An act was left in an open transaction. Who may not see since when goes by the scheduler. */
static void
who_holds_its_row(void **state)
{
    struct arena *mem = arena_new();
    struct life_row row = {.workers = 1,
                           .overdue_ms = FIELD_NULL,
                           .scheduler_ms = NOW - 12000,
                           .held_ms = NOW - 12000,
                           .held_pid = 4711,
                           .scheduler = "s",
                           .held_app = "psql",
                           .held_user = "alice"};
    struct life_look l = {.row = &row};
    struct trouble t[TROUBLES_MAX];

    (void)state;
    assert_string_equal(first(&l, mem), "scheduler: waits for 12s for the transaction of pid 4711 "
                                        "(psql, user alice): let it commit, or end it");
    assert_int_equal(life_troubles(&l, mem, t), 1);
    assert_string_equal(t[0].row, "pid 4711");
    assert_int_equal(t[0].id, COND_TURN);
    row.held_ms = FIELD_NULL;
    assert_string_equal(first(&l, mem), "");
    row.scheduler_ms = NOW - LIFE_SCHEDULER_MS;
    assert_string_equal(first(&l, mem), "scheduler: waits for the transaction of pid 4711 (psql, "
                                        "user alice): let it commit, or end it");
    row.scheduler_alive = 1; /* it has a turn: that was a step */
    assert_string_equal(first(&l, mem), "");
    arena_free(mem);
}

/* In a system without heartbeats, nodes are known by the leases that they hold. An empty list of
 * nodes proves nothing. */
static void
another_system(void **state)
{
    struct arena *mem = arena_new();
    struct queue_row q = waits;
    struct node_row nodes[] = {
        {.node = "a", .state = "dead", .heartbeat_ms = NOW - 600000},
        {.node = "b", .state = "dead", .heartbeat_ms = NOW - 900000},
    };
    struct life_look l = {.queues = &q, .nqueues = 1, .nodes = nodes, .nnodes = 2};

    (void)state;
    assert_string_equal(first(&l, mem), "no worker: 3 jobs wait, for 1m 00s");
    nodes[1].state = "late";
    assert_string_equal(first(&l, mem), "");
    nodes[1].state = "unknown";
    assert_string_equal(first(&l, mem), "");
    l.nnodes = 0;
    assert_string_equal(first(&l, mem), "");
    arena_free(mem);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own),
        cmocka_unit_test(a_dead_scheduler),
        cmocka_unit_test(who_holds_its_row),
        cmocka_unit_test(another_system),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
