/*
 * Rates from cumulative counters: steps, gaps, restarts of the counters, forgetting.
 */
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "model/db/rows.h"
#include "model/store/history.h"

#define NONE ((double)NAN)

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
    const double steps[] = {NONE, NONE, 40, 20};
    check(h, 3000, steps, 4);
    const double later[] = {40, 20, NONE};
    check(h, 4200, later, 3);
    history_free(h);
}

/* All steps of a gap have the same rate: no hole and no peak. */
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
    const double steps[] = {NONE, NONE, 35, 37, 39};
    check(h, 20000, steps, 5);
    add(h, "q", 100000, 1000); /* after a long silence the history begins again */
    const double anew[] = {NONE, NONE};
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
    const double steps[] = {NONE, NONE, 7};
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
    add(h, "new", 60000, 2); /* a new queue takes the place of the silent queues */
    assert_true(isnan(history_now(h, "q42", SERIES_BACKLOG, 1000)));
    assert_true(history_now(h, "q", SERIES_BACKLOG, 1000) == 20);
    history_free(h);
}

/* A producer may create a queue for each job: the first look at all queues must not take
 * seconds. */
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

/* With a limit, a new queue gets a ring only if another queue stood still for a whole ring. ""
 * always has a ring. */
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
    assert_true(history_add(h, "new", &late)); /* takes the place of a queue that stood still */
    history_free(h);
}

static void
add_failed(struct history *h, int64_t at_ms, int64_t done, int64_t failed, int64_t backlog)
{
    struct sample s = {
        at_ms, {FIELD_NULL, done, failed, backlog, FIELD_NULL}
    };

    history_add(h, "q", &s);
}

/* history_still() gives the last step in which a counter grew, history_falls() the last time when a
 * gauge was highest. */
static void
test_since_when(void **state)
{
    struct history *h = history_new(1000, 10);
    struct history_since s;

    (void)state;
    assert_false(history_still(h, "q", SERIES_FAILED, &s));
    add(h, "q", 1000, 0); /* no failures are known at 1000 */
    assert_false(history_still(h, "q", SERIES_FAILED, &s));
    add_failed(h, 2000, 10, 5, 70);
    assert_true(history_still(h, "q", SERIES_FAILED, &s));
    assert_true(s.at_ms == 2000 && s.ms == 0 && s.done == 0);
    add_failed(h, 3000, 20, 7, 90);
    add_failed(h, 4000, 25, 7, 90);
    add_failed(h, 6500, 31, 7, 60); /* there is no sample in between */
    assert_true(history_still(h, "q", SERIES_FAILED, &s));
    assert_true(s.at_ms == 3000 && s.ms == 3500 && s.done == 11 && !s.before);
    assert_true(history_falls(h, "q", SERIES_BACKLOG, &s));
    assert_true(s.at_ms == 4000 && s.was == 90 && s.ms == 2500);
    assert_false(history_falls(h, "q", SERIES_OLDEST, &s));
    add_failed(h, 7000, 31, 7, 90);
    assert_false(history_falls(h, "q", SERIES_BACKLOG, &s));
    add_failed(h, 13900, 40, 7, 10); /* the ring begins at 4000 */
    assert_true(history_still(h, "q", SERIES_FAILED, &s));
    assert_true(s.at_ms == 4000 && s.before);
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
        cmocka_unit_test(test_since_when),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
