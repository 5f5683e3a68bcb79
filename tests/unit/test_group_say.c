/* The sentences about a group of errors: the values of N, the last time, the effect of a
 * requeue. */
#include "tests/harness.h"

#include <math.h>
#include <string.h>

#include "ui/facts/group_say.h"

enum { MINUTE = 60000, HOUR = 3600000 };
static const int64_t now = 1795269731000; /* 2026-11-21 14:02:11 UTC */

#define PARTS(p)                                                      \
    (struct group_detail)                                             \
    {                                                                 \
        .facts = &nothing, .parts = p, .nparts = sizeof p / sizeof *p \
    }
static const struct group_facts_row nothing = {
    .done_ms = FIELD_NULL, .past_ms = FIELD_NULL, .past_who = "", .past_verb = ""};

static const struct group_part_row of_es[] = {
    {"jobs",   "",         0,         1000, FIELD_NULL},
    {"node",   "worker-1", 0,         600,  5         },
    {"node",   "worker-2", 0,         300,  5         },
    {"tries",  "5 of 5",   0,         990,  2         },
    {"tries",  "1 of 5",   1,         10,   2         },
    {"number", "es-3",     1,         900,  6         },
    {"number", "es-1",     1,         90,   6         },
    {"number", "doc-1",    2,         1,    1000      },
    {"number", "doc-2",    2,         1,    1000      },
    {"number", "503",      3,         1000, 1         },
    {"took",   "p50",      INT32_MIN, 12,   1000      },
    {"took",   "p99",      INT32_MIN, 31,   1000      }
};

#define expect_said(expected, say)               \
    do {                                         \
        struct buf out = {0};                    \
        buf_str(&out, "");                       \
        say;                                     \
        assert_string_equal(out.data, expected); \
        buf_free(&out);                          \
    } while (0)

/* A number that differs in each job says nothing. */
static void
what_n_was(void **state)
{
    struct group_detail d = PARTS(of_es);
    struct group_row all = {.n = 1000}, more = {.n = 4000};
    struct number numbers[NUMBER_PLACES];

    (void)state;
    assert_int_equal(group_numbers(&d, numbers), 2);
    assert_int_equal(numbers[0].place, 1);
    assert_int_equal(numbers[1].place, 3);
    expect_said("es-3 900, es-1 90, 4 others", group_say_number(&d, &all, &numbers[0], &out));
    expect_said("es-3 ~3,600, es-1 ~360, 4 others", group_say_number(&d, &more, &numbers[0], &out));
    expect_said("503 in all", group_say_number(&d, &more, &numbers[1], &out));
}

/* A group of few jobs: numbers that differ in each job say nothing, one common value does. */
static void
what_n_was_of_few(void **state)
{
    static const struct group_part_row each[] = {
        {"jobs",   "",    0, 3, FIELD_NULL},
        {"number", "7",   1, 1, 3         },
        {"number", "8",   1, 1, 3         },
        {"number", "9",   1, 1, 3         },
        {"number", "row", 9, 3, 1         }
    };
    static const struct group_part_row one[] = {
        {"jobs",   "",   0, 1, FIELD_NULL},
        {"number", "v9", 1, 1, 1         }
    };
    struct group_detail d = PARTS(each), single = PARTS(one);
    struct number numbers[NUMBER_PLACES];

    (void)state;
    assert_int_equal(group_numbers(&d, numbers), 0);
    assert_int_equal(group_numbers(&single, numbers), 1);
    d.nparts = 0;
    assert_int_equal(group_numbers(&d, numbers), 0);
}

static void
who_and_what(void **state)
{
    struct group_detail d = PARTS(of_es);
    struct group_row g = {.n = 1000};

    (void)state;
    expect_said("worker-1 600, worker-2 300, 3 others", group_say_parts(&d, &g, "node", 3, &out));
    expect_said("worker-1 600, 4 others", group_say_parts(&d, &g, "node", 1, &out));
    expect_said("5 of 5 990, 1 of 5 10 (no retry)", group_say_parts(&d, &g, "tries", 3, &out));
    expect_said("", group_say_parts(&d, &g, "kind", 3, &out));
    expect_said("p50 12ms, p99 31ms", group_say_took(&d, &out));
}

static void
the_last_time(void **state)
{
    struct group_facts_row f = nothing;
    struct group_detail d = {.facts = &f};

    (void)state;
    expect_said("", group_say_past(&d, now, true, &out));
    f.past_ms = now - 20 * (int64_t)24 * HOUR;
    f.past_who = "carol";
    f.past_verb = "requeue";
    f.past_jobs = 812;
    f.past_looked = 200;
    f.past_failed = 3;
    expect_said("11-01 14:02 carol requeued 812 jobs: of 200 3 failed again, 197 ended",
                group_say_past(&d, now, true, &out));
    f.past_waiting = 7;
    f.past_looked = 812;
    expect_said("11-01 14:02 carol requeued 812 jobs: 3 failed again, 7 wait or run, 802 ended",
                group_say_past(&d, now, true, &out));
    f.past_waiting = 1;
    expect_said("11-01 14:02 carol requeued 812 jobs: 3 failed again, 1 waits or runs, 808 ended",
                group_say_past(&d, now, true, &out));
    f.past_verb = "discard";
    expect_said("11-01 14:02 carol discarded 812 jobs", group_say_past(&d, now, true, &out));
}

static void
what_a_requeue_does(void **state)
{
    struct group_row g = {.n = 4000, .queue = "search.index"};
    struct queue_row q = {
        .ready = 5056, .in5_per_s = 0, .out5_per_s = 2, .pushed_per_s = 0, .done_per_s = 2};
    struct requeue r = {&g, &q, true, now, true};

    (void)state;
    expect_said("4,000 jobs run again, one more try each", requeue_say_what(&r, &out));
    expect_said("behind 5,056 that wait in search.index", requeue_say_before(&r, &out));
    expect_said("at 2/s the first of them starts about 14:44, the last about 15:17",
                requeue_say_when(&r, &out));
    expect_said("r: 4,000 jobs run again, one more try each; behind 5,056 that wait: the first "
                "starts about 14:44, the last about 15:17",
                requeue_say_line(&r, &out));
    g.n = q.ready = 1;
    expect_said("r: 1 job runs again, one more try; behind 1 that waits: the first starts about "
                "14:02, the last about 14:02",
                requeue_say_line(&r, &out));
    expect_said("behind 1 that waits in search.index", requeue_say_before(&r, &out));
    g.n = 4000;
    q.ready = 0;
    expect_said("nothing waits before them in search.index", requeue_say_before(&r, &out));
    q.paused = 1;
    expect_said("search.index is paused: they would wait", requeue_say_before(&r, &out));
    expect_said("", requeue_say_when(&r, &out));
    expect_said("r: 4,000 jobs run again, one more try each; search.index is paused: they would "
                "wait",
                requeue_say_line(&r, &out));
    r.q = NULL;
    r.ours = false;
    expect_said("r: 4,000 jobs again, each by its id", requeue_say_line(&r, &out));
}

static void
whether_the_cause_is_there(void **state)
{
    struct group_facts_row f = nothing;
    struct group_detail d = {.facts = &f};
    struct group_row g = {.n = 4000, .last_ms = now - 10 * MINUTE};

    (void)state;
    expect_said("none was tried since 13:52:11: cause still there?",
                assert_true(group_say_cause(&d, &g, now, true, &out)));
    f.retrying = 5;
    expect_said("none was tried since 13:52:11: cause still there?; 5 more wait to try again with "
                "it",
                assert_true(group_say_cause(&d, &g, now, true, &out)));
    g.last_ms = now - 8000;
    f.retrying = 0;
    expect_said("the last one failed 8s ago: the cause is there",
                assert_true(group_say_cause(&d, &g, now, true, &out)));
    f.done = 12;
    expect_said("12 jobs of the kind completed since 14:02:03, only some fail",
                assert_false(group_say_cause(&d, &g, now, true, &out)));
    g.last_ms = now - 10 * MINUTE;
    expect_said("12 jobs of the kind completed since 13:52:11: the cause seems gone",
                assert_false(group_say_cause(&d, &g, now, true, &out)));
    g.last_ms = FIELD_NULL;
    expect_said("", assert_false(group_say_cause(&d, &g, now, true, &out)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_n_was),          cmocka_unit_test(what_n_was_of_few),
        cmocka_unit_test(who_and_what),        cmocka_unit_test(the_last_time),
        cmocka_unit_test(what_a_requeue_does), cmocka_unit_test(whether_the_cause_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
