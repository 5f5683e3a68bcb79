/*
 * How long a statement may take over a slow line: the limit of the call, and the time that the line
 * needs for the bytes. That time is at most a minute, so every statement ends.
 */
#include "tests/harness.h"

#include "model/db/db_private.h"

enum { MINUTE_MS = 60000 };

static int
limit_of(int64_t byte_ns, int64_t greet_us, size_t size, int own_ms)
{
    struct db db = {
        .line = {.byte_ns = byte_ns, .greet_us = greet_us},
          .conf = {.statement_timeout_ms = 3000                 }
    };
    struct call call = {.size = size, .what = {.statement_timeout_ms = own_ms}};

    return call_limit_ms(&db, &call);
}

static void
a_limit_grows_with_the_line(void **state)
{
    (void)state;
    assert_int_equal(limit_of(0, 0, 1000000, 0), 3000);    /* the line's speed is not known */
    assert_int_equal(limit_of(0, 200000, 1000, 0), 3200);  /* a far server */
    assert_int_equal(limit_of(0, 200000, 1000, 500), 700); /* a call with a limit of its own */
    int some = limit_of(10000, 0, 1000000, 0), more = limit_of(10000, 0, 2000000, 0);
    assert_in_range(some, 3000 + 15000, 3000 + 16000); /* 10 s at 100 kB/s, and half of that */
    assert_in_range(more, 3000 + 30000, 3000 + 31000);
}

static void
by_a_minute_at_most(void **state)
{
    (void)state;
    assert_int_equal(limit_of(1000000, 0, 1000000, 0), 3000 + MINUTE_MS); /* 1 kB a second */
    assert_int_equal(limit_of(1000000, 0, 1000000, 500), 500 + MINUTE_MS);
    assert_int_equal(limit_of(1000000, 0, 1000000000, 0), 3000 + MINUTE_MS);
    assert_int_equal(limit_of(0, 3600000000, 0, 0), 3000 + MINUTE_MS);
}

static void
none_stays_none(void **state)
{
    struct db db = {
        .line = {.byte_ns = 1000000, .greet_us = 1000000}
    };
    struct call call = {.size = 1000000};

    (void)state;
    assert_int_equal(call_limit_ms(&db, &call), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_grows_with_the_line),
        cmocka_unit_test(by_a_minute_at_most),
        cmocka_unit_test(none_stays_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
