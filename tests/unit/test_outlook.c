/*
 * The outlook of a queue: its trend, when it will be empty, when it turned, what holds it, the
 * slots that it needs.
 */
#include "tests/harness.h"

#include <limits.h>
#include <math.h>

#include "model/store/outlook.h"

enum { NOW = 1000000000, MINUTE = 60000 };

static const struct slots unknown = {.all = FIELD_NULL};

static struct queue_row
queue(double in, double out, int64_t ready)
{
    return (struct queue_row){.queue = "q",
                              .ready = ready,
                              .running = 4,
                              .blocked = FIELD_NULL,
                              .max_running = INT_MIN,
                              .oldest_ms = NOW - 1000,
                              .pushed_per_s = in,
                              .done_per_s = out,
                              .in5_per_s = in,
                              .out5_per_s = out,
                              .run5_ms = 500,
                              .completed5 = 100,
                              .fails5 = 0,
                              .turn_ms = FIELD_NULL,
                              .tokens = FIELD_NULL};
}

static struct outlook
look(const struct queue_row *q)
{
    return outlook_of(q, &unknown, NOW);
}

static enum trend
trend(double in, double out, int64_t ready)
{
    struct queue_row q = queue(in, out, ready);

    return look(&q).trend;
}

static void
test_trends_with_a_dead_band(void **state)
{
    (void)state;
    assert_int_equal(trend(30, 20, 5000), TREND_FILLS);
    assert_int_equal(trend(20, 30, 5000), TREND_DRAINS);
    assert_int_equal(trend(20.9, 20, 5000), TREND_STEADY); /* within 5 % */
    assert_int_equal(trend(20, 20.9, 5000), TREND_STEADY);
    assert_int_equal(trend(21.1, 20, 5000), TREND_FILLS);
    assert_int_equal(trend(30, 20, 1200), TREND_BRIEF); /* goes out within a minute */
    assert_int_equal(trend(20, 20, 1), TREND_STEADY);
    assert_int_equal(trend(30, 20, 1201), TREND_FILLS);
    assert_int_equal(trend(30, 20, 0), TREND_EMPTY);
    assert_int_equal(trend(3, 0, 10), TREND_STANDS);
    assert_int_equal(trend(0, 0, 10), TREND_STANDS);
    assert_int_equal(trend((double)NAN, (double)NAN, 10), TREND_UNKNOWN);
    struct queue_row q = queue((double)NAN, (double)NAN, 10);
    q.done_per_s = 0;
    q.running = 0;
    assert_int_equal(look(&q).trend, TREND_STANDS);
    assert_int_equal(trend(1, 1.06, 100000000), TREND_STEADY); /* empty only in fifty years */
}

/* The trend never contradicts the last minute: a user takes "never, +10/s" beside "in 20, out 30"
 * for a fault. */
static void
test_the_last_minute_is_never_contradicted(void **state)
{
    struct queue_row q = queue(30, 20, 5000);

    (void)state;
    q.done_per_s = 31;
    assert_int_equal(look(&q).trend, TREND_TURNS);
    q.pushed_per_s = (double)NAN;
    assert_int_equal(look(&q).trend, TREND_FILLS);
    q = queue(20, 30, 5000);
    q.done_per_s = 19;
    assert_int_equal(look(&q).trend, TREND_TURNS);
    q = queue(20, 20, 5000);
    q.done_per_s = 10; /* "steady" beside "in 20, out 10" is a fault, too */
    assert_int_equal(look(&q).trend, TREND_TURNS);
    q.done_per_s = 19; /* a little more or less is chance */
    assert_int_equal(look(&q).trend, TREND_STEADY);
    q = queue(0.1, 0.1, 5000);
    q.done_per_s = 0.05; /* 3 jobs instead of 6 */
    assert_int_equal(look(&q).trend, TREND_STEADY);
    q = queue(3, 0, 10);
    q.done_per_s = 2;
    assert_int_not_equal(look(&q).trend, TREND_STANDS);
}

static void
test_when_it_is_empty(void **state)
{
    struct queue_row q = queue(20, 30, 6000);
    struct outlook o = look(&q);

    (void)state;
    assert_true(o.empty_ms == NOW + 10 * MINUTE);
    assert_true(o.gain == -10);
    q.read_ms = NOW - MINUTE / 2; /* the counts are of that time */
    assert_true(look(&q).empty_ms == NOW + 10 * MINUTE - MINUTE / 2);
    q = queue(30, 20, 6000);
    o = look(&q);
    assert_true(o.empty_ms == FIELD_NULL);
    assert_true(o.gain == 10);
}

static void
test_slots(void **state)
{
    struct queue_row q = queue(31, 26.2, 11812);

    (void)state;
    assert_int_equal(look(&q).slots_needed, 16); /* 31 x 0.5 s */
    assert_int_equal(outlook_slots_missing(&q, 0), 3);
    assert_int_equal(outlook_slots_missing(&q, 3600000), 5);
    q.run5_ms = (double)NAN;
    assert_true(look(&q).slots_needed == FIELD_NULL);
    q = queue(20, 30, 100);
    assert_true(outlook_slots_missing(&q, 0) == FIELD_NULL); /* no slot is missing */
}

static int64_t
turn(const char *nets, bool *before)
{
    return (outlook_turn(nets, NOW, before) - NOW) / MINUTE;
}

static void
test_the_minute_in_which_it_turned(void **state)
{
    bool before;

    (void)state;
    assert_int_equal(turn("{0,0,0,0,0,0,10,10,10,10}", &before), -4);
    assert_false(before);
    assert_int_equal(turn("{3,-2,1,-1,2,-3,1,10,12,9}", &before), -3); /* about level before */
    assert_int_equal(turn("{9,9,-30,0,0,10,10,10,10,10}", &before), -5);
    assert_int_equal(turn("{10,10,10,10,10,10,10}", &before), -7);
    assert_true(before);
    assert_true(outlook_turn("", NOW, &before) == FIELD_NULL);
    assert_true(outlook_turn("{}", NOW, &before) == FIELD_NULL);
    assert_true(outlook_turn("{1,x}", NOW, &before) == FIELD_NULL);
}

static enum held
held(const struct queue_row *q, const struct slots *s)
{
    return outlook_of(q, s, NOW).held;
}

static void
test_what_holds_it_back(void **state)
{
    struct slots free_ones = {.all = 16, .used = 15, .told = true};
    struct slots full = {.all = 16, .used = 16, .told = true}, none = {.all = 0, .told = true};
    struct queue_row q = queue(30, 20, 5000);

    (void)state;
    assert_int_equal(held(&q, &free_ones), HELD_NOT);
    assert_int_equal(held(&q, &unknown), HELD_NOT);
    assert_int_equal(held(&q, &full), HELD_SLOTS);
    q.tokens = 0;
    assert_int_equal(held(&q, &full), HELD_RATE);
    q.blocked = 6000;
    assert_int_equal(held(&q, &full), HELD_KEYS);
    q.max_running = 4;
    assert_int_equal(held(&q, &full), HELD_LIMIT);
    q.fails5 = 101;
    assert_int_equal(held(&q, &full), HELD_FAILING);
    q.running = 0;
    assert_int_equal(held(&q, &none), HELD_NO_NODE);
    q.paused = 1;
    assert_int_equal(held(&q, &none), HELD_PAUSED);
}

/* A limit that is reached is not reported while the waiting jobs leave within a minute. */
static void
test_nothing_holds_what_moves(void **state)
{
    struct queue_row q = queue(30, 30, 100);

    (void)state;
    q.max_running = 4;
    assert_int_equal(held(&q, &unknown), HELD_NOT);
    q.oldest_ms = NOW - 2 * MINUTE;
    assert_int_equal(held(&q, &unknown), HELD_LIMIT);
    q.ready = 0;
    assert_int_equal(held(&q, &unknown), HELD_NOT);
    q.blocked = 3;
    assert_int_equal(held(&q, &unknown), HELD_KEYS);
}

/* Between two short jobs fewer jobs run than the limit allows. The limit still holds the queue. */
static void
test_a_limit_holds_between_two_jobs(void **state)
{
    struct slots free_ones = {.all = 16, .used = 0, .told = true};
    struct queue_row q = queue(30, 20, 5000);

    (void)state;
    q.max_running = 4;
    q.running = 0;
    q.full_ms = FIELD_NULL;
    assert_int_equal(held(&q, &free_ones), HELD_NOT);
    q.full_ms = NOW - 14000;
    assert_int_equal(held(&q, &free_ones), HELD_LIMIT);
    q.full_ms = NOW - 15000;
    assert_int_equal(held(&q, &free_ones), HELD_NOT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trends_with_a_dead_band),
        cmocka_unit_test(test_the_last_minute_is_never_contradicted),
        cmocka_unit_test(test_when_it_is_empty),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_the_minute_in_which_it_turned),
        cmocka_unit_test(test_what_holds_it_back),
        cmocka_unit_test(test_a_limit_holds_between_two_jobs),
        cmocka_unit_test(test_nothing_holds_what_moves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
