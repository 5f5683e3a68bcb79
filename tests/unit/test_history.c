/*
 * Rates from cumulative counters: steps, gaps, restarts of the counters, forgetting.
 */
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "model/db/rows.h"
#include "model/store/history.h"

static void
add(struct history *h, const char *queue, int64_t at_ms, int64_t done)
{
    struct sample s = {
        at_ms, {done * 2, done, FIELD_NULL, done * 10, FIELD_NULL}
    };

    history_add(h, queue, &s);
}

static void
check(const struct history *h, int64_t now_ms, const double *expected, int n)
{
    double out[16];

    assert_true(n <= 16);
    history_read(h, "q", SERIES_DONE, now_ms, out, n);
    for (int i = 0; i < n; i++)
        if (isnan(expected[i]) ? !isnan(out[i]) : fabs(out[i] - expected[i]) > 1e-9)
            fail_msg("step %d is %f, not %f", i, out[i], expected[i]);
}

static void
test_rates(void **state)
{
    struct history *h = history_new(1000, 10);

    (void)state;
    assert_true(isnan(history_now(h, "q", SERIES_DONE, 1000)));
    add(h, "q", 1000, 100);
    assert_true(isnan(history_now(h, "q", SERIES_DONE, 1000)));
    add(h, "q", 1500, 110);
    add(h, "q", 2000, 130);
    add(h, "q", 3000, 150);
    assert_true(history_now(h, "q", SERIES_DONE, 1000) == 20);
    assert_true(history_now(h, "q", SERIES_PUSHED, 1000) == 40);
    assert_true(history_now(h, "q", SERIES_DONE, 60000) == 25);
    assert_true(isnan(history_now(h, "q", SERIES_FAILED, 1000)));
    assert_true(history_now(h, "q", SERIES_BACKLOG, 1000) == 1500);
    assert_true(isnan(history_now(h, "other", SERIES_DONE, 1000)));
    const double steps[] = {NAN, NAN, 40, 20};
    check(h, 3000, steps, 4);
    const double later[] = {40, 20, NAN};
    check(h, 4200, later, 3);
    history_free(h);
}

/* A gap is one rate for all of its steps, not a hole and a peak. */
static void
test_gap(void **state)
{
    struct history *h = history_new(1000, 10);
    const double steps[] = {10, 5, 5, 5, 5};

    (void)state;
    add(h, "q", 1000, 0);
    add(h, "q", 2000, 10);
    add(h, "q", 6000, 30);
    check(h, 6000, steps, 5);
    history_free(h);
}

static void
test_ring_wraps(void **state)
{
    struct history *h = history_new(1000, 4);

    (void)state;
    for (int i = 1; i <= 20; i++)
        add(h, "q", i * 1000, i * i);
    const double steps[] = {NAN, NAN, 35, 37, 39};
    check(h, 20000, steps, 5);
    add(h, "q", 100000, 1000); /* after a long silence: starts anew */
    const double anew[] = {NAN, NAN};
    check(h, 100000, anew, 2);
    history_free(h);
}

static void
test_counters_run_backwards(void **state)
{
    struct history *h = history_new(1000, 10);

    (void)state;
    add(h, "q", 1000, 1000);
    add(h, "q", 2000, 1010);
    add(h, "q", 3000, 5);
    assert_true(isnan(history_now(h, "q", SERIES_DONE, 1000)));
    add(h, "q", 4000, 12);
    assert_true(history_now(h, "q", SERIES_DONE, 1000) == 7);
    const double steps[] = {NAN, NAN, 7};
    check(h, 4000, steps, 3);
    history_free(h);
}

static void
test_order_of_time(void **state)
{
    struct history *h = history_new(1000, 10);

    (void)state;
    add(h, "q", 3000, 30);
    add(h, "q", 2000, 20); /* older: ignored */
    add(h, "q", 3000, 99); /* the same moment: ignored */
    add(h, "q", 4000, 40);
    assert_true(history_now(h, "q", SERIES_DONE, 1000) == 10);
    history_free(h);
}

static void
test_many_queues_and_forgetting(void **state)
{
    struct history *h = history_new(1000, 5);
    char name[16];

    (void)state;
    for (int t = 1; t <= 2; t++)
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof name, "q%d", (i * 37) % 100);
            add(h, name, t * 1000, t * (i * 37) % 100);
        }
    add(h, "q", 2000, 1);
    assert_false(isnan(history_now(h, "q42", SERIES_DONE, 1000)));
    add(h, "q", 60000, 2);
    add(h, "new", 60000, 2); /* a new queue makes room: the silent ones are gone */
    assert_true(isnan(history_now(h, "q42", SERIES_BACKLOG, 1000)));
    assert_true(history_now(h, "q", SERIES_BACKLOG, 1000) == 20);
    history_free(h);
}

/* A producer that makes up a queue for each job: the first look at them must not take seconds. */
static void
test_very_many_queues(void **state)
{
    struct history *h = history_new(1000, 5);
    char name[16];
    clock_t begun = clock();

    (void)state;
    for (int i = 0; i < 40000; i++) {
        snprintf(name, sizeof name, "q%06d", i);
        add(h, name, 1000, 1);
    }
    assert_true(clock() - begun < 2 * CLOCKS_PER_SEC);
    assert_true(history_now(h, "q000042", SERIES_BACKLOG, 1000) == 10);
    history_free(h);
}

/* With a limit: who comes later has no ring until one stands still for a whole ring; "" always. */
static void
test_limit(void **state)
{
    struct history *h = history_new(1000, 5);
    char name[16];

    (void)state;
    history_limit(h, 100);
    for (int t = 1; t <= 20; t++) {
        for (int i = 0; i < 1000; i++) {
            struct sample s = {
                t * 1000, {0, i < 50 ? t : 1, 0, 0, 0}
            };
            snprintf(name, sizeof name, "q%03d", i);
            assert_true(history_add(h, name, &s) || history_count(h) >= 100);
        }
        add(h, "", t * 1000, t);
        assert_in_range(history_count(h), 100, 101);
    }
    assert_true(history_now(h, "q049", SERIES_DONE, 1000) == 1);
    assert_true(history_now(h, "", SERIES_DONE, 1000) == 1);
    assert_true(isnan(history_now(h, "q999", SERIES_BACKLOG, 1000)));
    struct sample late = {
        30000, {0, 1, 0, 0, 0}
    };
    assert_false(history_go_on(h, "new", &late));
    assert_true(history_add(h, "new", &late)); /* in the place of one that stood still */
    history_free(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_ring_wraps),
        cmocka_unit_test(test_counters_run_backwards),
        cmocka_unit_test(test_order_of_time),
        cmocka_unit_test(test_many_queues_and_forgetting),
        cmocka_unit_test(test_very_many_queues),
        cmocka_unit_test(test_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
