/*
 * Times that a person types: the moment that each means, and texts that are no time.
 */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ui/term/when.h"

static const int64_t now = 1763712000000; /* 2025-11-21 08:00:00 UTC */

static void
means(const char *text, bool utc, int64_t at_ms, int64_t in_ms)
{
    struct when w;
    struct err e;

    if (!when_parse(text, now, utc, &w, &e))
        fail_msg("%s: %s", text, e.text);
    assert_int_equal(w.at_ms, at_ms);
    assert_int_equal(w.in_ms, in_ms);
}

static void
test_times(void **state)
{
    (void)state;
    means("now", true, 0, 0);
    means("10m", true, 0, 600000);
    means("+1h30m", true, 0, 5400000);
    means("08:30", true, now + 1800000, 0);
    means("08:00:01", true, now + 1000, 0);
    means("08:00", true, now + 86400000, 0); /* tomorrow */
    means("2025-11-21 06:00", true, now - 7200000, 0);
    means("2025-12-01T00:00:30", true, now + INT64_C(9) * 86400000 + 16 * 3600000 + 30000, 0);
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    means("09:30", false, now + 1800000, 0);
    means("2025-11-21 09:30", false, now + 1800000, 0);
    means("2025-06-21 10:00", false, now - INT64_C(153) * 86400000, 0); /* summer time */
}

static void
test_no_times(void **state)
{
    static const char *const wrong[] = {"",
                                        "soon",
                                        "-5m",
                                        "25:00",
                                        "08:30x",
                                        "2025-11-21",
                                        "2025-02-30 06:00",
                                        "2025-13-01 06:00",
                                        "08:30; drop table",
                                        "99999999999999999999d"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct when w;
        struct err e;
        if (when_parse(wrong[i], now, true, &w, &e))
            fail_msg("\"%s\" is a time", wrong[i]);
    }
}

static void
in_berlin(const char *text, int64_t at, int64_t means_ms, const char *error)
{
    struct when w;
    struct err e = {0};

    bool ok = when_parse(text, at, false, &w, &e);
    if (ok != !error)
        fail_msg("%s: %s", text, ok ? "is a time" : e.text);
    if (error)
        assert_string_equal(e.text, error);
    else
        assert_int_equal(w.at_ms, means_ms);
}

/* The night of 29 March 2026 has no 02:00 to 02:59 in Berlin, that of 25 October has it twice. */
static void
test_clocks_change(void **state)
{
    const int64_t hour = 3600000, spring = 1774746000000; /* 01:00 UTC = 03:00 CEST */
    const int64_t autumn = 1792890000000;                 /* 01:00 UTC = 02:00 CET, again */
    static const char gap[] = "there is no 02:30 on 2026-03-29: the clocks skip it";

    (void)state;
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    in_berlin("02:30", spring + hour, 1774830600000, NULL); /* 03-30 02:30 CEST */
    in_berlin("02:30", spring - hour, 0, gap);
    in_berlin("02:30", spring - 6 * hour, 0, gap); /* tomorrow */
    in_berlin("2026-03-29 02:30", spring - 50 * hour, 0, gap);
    in_berlin("2026-03-29 02:30", spring + 50 * hour, 0, gap);
    in_berlin("03:00", spring - hour, spring, NULL);
    in_berlin("01:30", spring + hour, spring + 45 * hour / 2, NULL);

    int64_t first = autumn - hour / 2, second = autumn + hour / 2;
    in_berlin("02:30", autumn - 2 * hour, first, NULL);
    in_berlin("02:30", first - 1000, first, NULL);
    in_berlin("02:30", first, second, NULL);
    in_berlin("02:30", autumn, second, NULL);
    in_berlin("02:30", second, second + 24 * hour, NULL);
    in_berlin("01:30", autumn, autumn + 47 * hour / 2, NULL);
    in_berlin("2026-10-25 02:30", autumn, second, NULL);
    in_berlin("2026-10-25 02:30", autumn + 50 * hour, first, NULL);
    in_berlin("2026-10-25 02:30:30", 0, first + 30000, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_no_times),
        cmocka_unit_test(test_clocks_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
