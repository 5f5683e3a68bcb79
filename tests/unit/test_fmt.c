/* Numbers and times for people, around the values where the format changes. */
#include "tests/harness.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/text.h"
#include "model/db/rows.h"
#include "ui/facts/lease_columns.h"
#include "ui/term/fmt.h"

#define is(call, want) assert_string_equal((call).s, want)
#define SEC 1000LL
#define MIN (60 * SEC)
#define HOUR (60 * MIN)
#define DAY (24 * HOUR)

static void
test_age(void **state)
{
    (void)state;
    is(fmt_age(0), "0s");
    is(fmt_age(999), "0s");
    is(fmt_age(2 * SEC), "2s");
    is(fmt_age(MIN - 1), "59s");
    is(fmt_age(MIN), "1m 00s");
    is(fmt_age(4 * MIN + 10 * SEC), "4m 10s");
    is(fmt_age(HOUR - 1), "59m 59s");
    is(fmt_age(2 * HOUR + 14 * MIN), "2h 14m");
    is(fmt_age(DAY - 1), "23h 59m");
    is(fmt_age(4 * DAY + 2 * HOUR), "4d 02h");
    is(fmt_age(100 * DAY), "100d");
    is(fmt_age(-1), "0s");
    is(fmt_age(-4 * MIN), "in 4m 00s");
    is(fmt_age(FIELD_NULL), "—");
    is(fmt_age_short(41 * MIN + 59 * SEC), "41m");
    is(fmt_age_short(9 * DAY), "9d");
    for (int64_t ms = 0; ms < 99 * DAY; ms += ms / 7 + 777)
        assert_true(strlen(fmt_age(ms).s) <= 7);
}

static void
test_duration(void **state)
{
    (void)state;
    is(fmt_duration(20), "20ms");
    is(fmt_duration(99), "99ms");
    is(fmt_duration(400), "0.4s");
    is(fmt_duration(30950), "30.9s");
    is(fmt_duration(59999), "59.9s");
    is(fmt_duration(62 * SEC), "1m 02s");
    is(fmt_duration(FIELD_NULL), "—");
}

static void
test_counts(void **state)
{
    (void)state;
    is(fmt_count(0), "0");
    is(fmt_count(999), "999");
    is(fmt_count(1000), "1,000");
    is(fmt_count(-1234567), "-1,234,567");
    is(fmt_count(INT64_MAX), "9,223,372,036,854,775,807");
    is(fmt_count(FIELD_NULL), "—");
    is(fmt_about(1234, 1), "~1,234");
    is(fmt_about(1234, 0), "1,234");
    is(fmt_about(1234, -1), "1,234");
    is(fmt_about(FIELD_NULL, 1), "—");
    is(fmt_about(INT64_MAX, 1), "~9,223,372,036,854,775,807");
    is(fmt_int(-18234), "-18234");
    is(fmt_count_fit(18234, 6), "18,234");
    is(fmt_count_fit(18234, 5), "18.2k");
    is(fmt_count_fit(18234, 4), "18k");
    is(fmt_count_fit(1234567, 5), "1.2M");
    is(fmt_count_fit(999999, 5), "1.0M");
    is(fmt_count_fit(999499, 4), "999k");
    is(fmt_count_fit(123456, 3), "###");
    is(fmt_count_fit(5, 1), "5");
    is(fmt_count_fit(55, 0), "");
}

/* A narrowed number fits the width, and differs by at most one unit of its last digit. */
static void
test_narrow(void **state)
{
    (void)state;
    for (int64_t n = 1; n < INT64_MAX / 3; n += n / 3 + 1)
        for (int w = 1; w <= 8; w++) {
            struct fmt f = fmt_count_fit(n, w);
            static const char units[] = "kMGTPE";
            char *end;
            assert_true((int)strlen(f.s) <= w);
            if (f.s[0] == '#' || strchr(f.s, ','))
                continue;
            double v = strtod(f.s, &end);
            for (const char *u = units; *end && u <= strchr(units, *end); u++)
                v *= 1000;
            assert_true(fabs(v - (double)n) <= 0.51 * (double)n);
        }
}

static void
test_rates(void **state)
{
    (void)state;
    is(fmt_rate(0), "0");
    is(fmt_rate(0.01), "<0.1");
    is(fmt_rate(0.4), "0.4");
    is(fmt_rate(4), "4");
    is(fmt_rate(9.94), "9.9");
    is(fmt_rate(9.96), "10");
    is(fmt_rate(96.4), "96");
    is(fmt_rate(12345), "12,345");
    is(fmt_rate((double)NAN), "—");
    is(fmt_rate((double)INFINITY), "∞");
}

static void
test_bytes(void **state)
{
    (void)state;
    is(fmt_bytes(412), "412 B");
    is(fmt_bytes(1024), "1.0 kB");
    is(fmt_bytes(16 * 1024), "16 kB");
    is(fmt_bytes(1024 * 1024 - 1), "1.0 MB");
    is(fmt_bytes(48 * 1024 * 1024), "48 MB");
    is(fmt_bytes(INT64_MAX), "8.0 EB");
    is(fmt_bytes(FIELD_NULL), "—");
}

static void
test_percent(void **state)
{
    (void)state;
    is(fmt_percent(0, 10), "0%");
    is(fmt_percent(1, 1000), "<1%");
    is(fmt_percent(47000, 81204), "58%");
    is(fmt_percent(9999, 10000), ">99%");
    is(fmt_percent(10, 10), "100%");
    is(fmt_percent(1, 0), "—");
    is(fmt_percent((double)NAN, 1), "—");
}

static void
test_times(void **state)
{
    const int64_t t = 1795269731123; /* 2026-11-21 14:02:11.123 UTC */

    (void)state;
    is(fmt_time(t, true), "14:02:11");
    is(fmt_date_time(t, true), "2026-11-21 14:02:11");
    is(fmt_iso(t), "2026-11-21T14:02:11.123Z");
    is(fmt_when(t, t + HOUR, true), "14:02:11");
    is(fmt_when(t, t + DAY, true), "11-21 14:02");
    is(fmt_when(t, t + 400 * DAY, true), "2026-11-21");
    is(fmt_time(FIELD_NULL, true), "—");
    is(fmt_iso(-1), "1969-12-31T23:59:59.999Z");
    setenv("TZ", "XYZ-2", 1);
    tzset();
    is(fmt_time(t, false), "16:02:11");
    is(fmt_time(t, true), "14:02:11");
}

static void
test_words(void **state)
{
    (void)state;
    is(fmt_id_tail("019392a1-0000-7000-8000-0123456789ab"), "456789ab");
    is(fmt_id_tail("42"), "42");
    is(fmt_id_tail("9223372036854775807"), "9223372036854775807");
    is(fmt_id_tail("mail:019392a1-0000-7000-8000-0123456789ab"), "456789ab");
    is(fmt_id_tail("a-very-long-identity-of-a-job-17"), "a-very-l…of-a-job-17");
    is(fmt_id_tail("abcdefgé-längere-identität-è2345678910"), "abcdefg…2345678910");
    is(fmt_plural(1, "job"), "1 job");
    is(fmt_plural(1204, "job"), "1,204 jobs");
    is(fmt_plural(0, "row"), "0 rows");
    is(fmt_they(1, 0, "wait"), "1 waits");
    is(fmt_they(1204, 1, "wait"), "~1,204 wait");
}

/* Every number gives valid text that fits. */
static void
test_any(void **state)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MIN + 1, -DAY,     -1, 0,
                                  1,         INT64_MAX - 1, INT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct fmt all[] = {fmt_age(odd[i]),          fmt_age_short(odd[i]),
                            fmt_duration(odd[i]),     fmt_count(odd[i]),
                            fmt_count_fit(odd[i], 3), fmt_bytes(odd[i]),
                            fmt_time(odd[i], 1),      fmt_date_time(odd[i], 1),
                            fmt_iso(odd[i]),          fmt_plural(odd[i], "thing"),
                            fmt_rate((double)odd[i]), fmt_when(odd[i], 0, 1)};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
            assert_true(utf8_valid(all[k].s, strlen(all[k].s)) && strlen(all[k].s) < 48);
    }
}

/* Some systems have long ids: the page of the job needs the whole id. */
static void
test_first_job(void **state)
{
    struct arena *mem = arena_new();
    const char *id = "notifications.customer.reports:019392a1-0000-7000-8000-0123456789ab";

    (void)state;
    assert_string_equal(lease_first_job(&(struct lease_row){.job_ids = id}, mem), id);
    assert_string_equal(lease_first_job(&(struct lease_row){.job_ids = "7,8"}, mem), "7");
    assert_string_equal(lease_first_job(&(struct lease_row){.job_ids = ""}, mem), "");
    arena_free(mem);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_age),       cmocka_unit_test(test_duration),
        cmocka_unit_test(test_counts),    cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_rates),     cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_percent),   cmocka_unit_test(test_times),
        cmocka_unit_test(test_words),     cmocka_unit_test(test_any),
        cmocka_unit_test(test_first_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
