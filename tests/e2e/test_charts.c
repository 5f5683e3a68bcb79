/*
 * Charts are true at the first frame: seven days of minutes lie in the database, the console has
 * just been started, and its first picture of a queue shows the last hour. In colour, in mono and
 * in ASCII, over each span, and on a screen where there is room for all of them.
 */
#include "tests/harness.h"
#include "tests/server.h"
#include "tests/term.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/e2e/shop.h"

static int
week_open(void **state)
{
    char script[400];
    int status = shop_open(state);

    snprintf(script, sizeof script, "%s/tests/screens/fixture_week.sql", getenv("SRCDIR"));
    shop_run((const char *const[]){"psql", "-qX", "-d", pg_dsn("shop"), "-f", script, NULL});
    return status;
}

/* Compares the first picture. The only keys before select a queue that has a history. */
static void
first_frame(int rows, int cols, const char *env, const char *name)
{
    struct vt vt;

    shop_enter(&vt, rows, cols, env);
    vt_keys(&vt, "g j");
    vt_want(&vt, "image.resize: jobs/s");
    vt_want(&vt, "most: connect() to es-N");
    vt_want(&vt, "x: 1 h");
    vt_gone(&vt, "asking ...");
    shop_golden(&vt, name);
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

static void
an_hour_at_the_first_frame(void **state)
{
    (void)state;
    first_frame(45, 140, NULL, "first");
}

static void
with_room_for_all(void **state)
{
    (void)state;
    first_frame(60, 200, NULL, "first");
}

static void
without_colours(void **state)
{
    (void)state;
    first_frame(45, 140, "NO_COLOR=1", "first_mono");
}

static void
each_span(void **state)
{
    struct vt vt;

    (void)state;
    shop_enter(&vt, 45, 140, NULL);
    vt_keys(&vt, "g j");
    vt_want(&vt, "most: connect() to es-N");
    vt_want(&vt, "x: 1 h");
    vt_keys(&vt, "x");
    vt_want(&vt, "x: 24 h");
    vt_gone(&vt, "asking ...");
    shop_golden(&vt, "day");
    vt_keys(&vt, "x");
    vt_want(&vt, "x: 7 d");
    vt_gone(&vt, "asking ...");
    shop_golden(&vt, "week");
    vt_keys(&vt, "x");
    vt_want(&vt, "x: 10 min");
    shop_golden(&vt, "minutes");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hour_at_the_first_frame),
        cmocka_unit_test(with_room_for_all),
        cmocka_unit_test(without_colours),
        cmocka_unit_test(each_span),
    };

    return cmocka_run_group_tests(tests, week_open, shop_close);
}
