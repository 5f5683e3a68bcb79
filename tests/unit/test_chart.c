/* Sparklines, buckets, braille areas and bars. */
#include "tests/harness.h"

#include <locale.h>
#include <math.h>

#include "ui/term/chart.h"

#define GAP ((double)NAN)

static void
expect(struct grid *g, const char *want)
{
    struct buf b = {0};

    grid_dump(g, &b);
    assert_string_equal(b.data, want);
    buf_free(&b);
    grid_clear(g);
}

static void
test_spark(void **state)
{
    struct grid *g = grid_new(8, 1, false);
    double v[] = {0, 1, 25, 50, 75, 100, GAP, 100};
    double zero[] = {0, 0, 0};

    (void)state;
    chart_spark(g, grid_rect(g), ROLE_CHART, v, 8, 0);
    expect(g, "▁▂▃▄▆▇ ▇\n");
    chart_spark(g, grid_rect(g), ROLE_CHART, v, 3, 100);
    expect(g, "     ▁▂▃\n");
    chart_spark(g, (struct rect){0, 0, 2, 1}, ROLE_CHART, v, 6, 0);
    expect(g, "▆▇\n");
    chart_spark(g, grid_rect(g), ROLE_CHART, zero, 3, 0);
    expect(g, "     ▁▁▁\n");
    chart_spark(g, grid_rect(g), ROLE_CHART, v, 8, 10); /* more than the top */
    expect(g, "▁▂▇▇▇▇ ▇\n");
    chart_spark(g, (struct rect){0, 0, 0, 1}, ROLE_CHART, v, 8, 0);
    expect(g, "\n");
    grid_free(g);
}

static void
test_bucket(void **state)
{
    double v[] = {1, 3, 5, 7, 9, GAP}, out[4];

    (void)state;
    chart_bucket(v, 6, 2, 6, out, 4);
    assert_true(isnan(out[0]) && out[1] == 2 && out[2] == 6 && out[3] == 9);
    chart_bucket(v, 6, 2, 7, out, 4); /* the same samples, one later: other borders */
    assert_true(out[0] == 1 && out[1] == 4 && out[2] == 8 && isnan(out[3]));
    chart_bucket(v, 0, 2, 0, out, 4);
    assert_true(isnan(out[3]));
}

static void
test_area(void **state)
{
    struct grid *g = grid_new(3, 2, false);
    double v[] = {1, 2, 3, 4, 5, 8};

    (void)state;
    chart_area(g, grid_rect(g), ROLE_CHART, v, 6, 8);
    expect(g, "  ⣸\n⣠⣾⣿\n");
    chart_area(g, grid_rect(g), ROLE_CHART, v + 5, 1, 0);
    expect(g, "  ⢸\n  ⢸\n");
    chart_area(g, (struct rect){0, 0, 0, 0}, ROLE_CHART, v, 6, 8);
    expect(g, "\n\n");
    grid_free(g);
}

static void
test_bar(void **state)
{
    struct grid *g = grid_new(4, 1, false), *a = grid_new(4, 1, true);

    (void)state;
    chart_bar(g, grid_rect(g), 0.5);
    expect(g, "██░░\n");
    chart_bar(g, grid_rect(g), 2);
    expect(g, "████\n");
    chart_bar(g, grid_rect(g), GAP);
    expect(g, "░░░░\n");
    chart_bar(a, grid_rect(a), 0.99);
    expect(a, "###.\n");
    grid_free(g);
    grid_free(a);
}

static void
test_panel(void **state)
{
    struct grid *g = grid_new(30, 7, false);
    double v[] = {0, 4, 8};
    struct chart c = {.title = "ready",
                      .role = ROLE_CHART,
                      .values = v,
                      .n = 3,
                      .top_label = "8",
                      .mid_label = "4",
                      .low_label = "0",
                      .from_label = "-60m",
                      .to_label = "now"};

    (void)state;
    chart_panel(g, grid_rect(g), &c);
    expect(g, "┌─ ready ────────────────────┐\n"
              "│       8             ⣿⣿⣿⣿⣿⣿ │\n"
              "│                     ⣿⣿⣿⣿⣿⣿ │\n"
              "│               ⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿ │\n"
              "│       0       ⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿ │\n"
              "│         -60m           now │\n"
              "└────────────────────────────┘\n");
    grid_free(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spark), cmocka_unit_test(test_bucket), cmocka_unit_test(test_area),
        cmocka_unit_test(test_bar),   cmocka_unit_test(test_panel),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
