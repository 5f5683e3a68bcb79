/* Sparklines, buckets, braille areas and bars. */
#include "tests/harness.h"

#include <locale.h>
#include <math.h>

#include "ui/term/chart.h"
#include "ui/term/plot.h"

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
    expect(g, "·▁▂▃▅▆ ▆\n");
    chart_spark(g, grid_rect(g), ROLE_CHART, v, 3, 100);
    expect(g, "     ·▁▂\n");
    chart_spark(g, (struct rect){0, 0, 2, 1}, ROLE_CHART, v, 6, 0);
    expect(g, "▅▆\n");
    chart_spark(g, grid_rect(g), ROLE_CHART, zero, 3, 0);
    expect(g, "     ···\n");
    chart_spark(g, grid_rect(g), ROLE_CHART, v, 8, 10); /* values above the top */
    expect(g, "·▁▇▇▇▇ ▇\n");
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
    chart_bucket(v, 6, 2, 7, out, 4); /* the same samples, one step later: other borders */
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

/* --- over time ------------------------------------------------------------------------------- */

static void
ticks_are_round(void **state)
{
    static const double of[][2] = {
        {0,  1  },
        {1,  1  },
        {3,  5  },
        {11, 20 },
        {50, 50 },
        {51, 100}
    };
    static const double of_ms[][2] = {
        {300,     500    },
        {1200,    2000   },
        {45000,   60000  },
        {2282000, 2400000},
        {4000000, 7200000}
    };

    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        assert_true(fabs(plot_tick(of[i][0]) - of[i][1]) < 1e-9);
    for (size_t i = 0; i < sizeof of_ms / sizeof *of_ms; i++)
        assert_true(fabs(plot_tick_ms(of_ms[i][0]) - of_ms[i][1]) < 1e-6);
}

enum { NOON_MS = 43200000, MINUTE = 60000 };

static const struct plot_axis twenty = {
    .first_ms = NOON_MS, .step_ms = MINUTE, .n = 20, .now_ms = NOON_MS + 19 * MINUTE, .utc = true};

static double
octaves(int bucket)
{
    return bucket <= 1 ? 0 : pow(2, (bucket - 2) / 2.0);
}

static void
an_area_a_line_and_a_gap(void **state)
{
    struct grid *g = grid_new(30, 6, false);
    double out[20], in[20];

    (void)state;
    for (int i = 0; i < 20; i++) {
        out[i] = i < 3 ? GAP : i < 5 ? 0 : i;
        in[i] = i < 12 ? GAP : 2;
    }
    plot_panel(g, grid_rect(g), &twenty,
               &(struct plot){.title = "t", .corner = "1 h", .area = out, .line = in});
    expect(g, "┌─ t ────────────────── 1 h ─┐\n"
              "│     20              ▁▂▃▄▆▇ │\n"
              "│               ▂▃▄▅▆███████ │\n"
              "│      0   ··▆▇█████▁▁▁▁▁▁▁▁ │\n"
              "│        12:01         12:19 │\n"
              "└────────────────────────────┘\n");
    grid_free(g);
}

/* An event is drawn on the axis, and no clock time overwrites the event's sign. ASCII characters
 * show heights. */
static void
events_and_ascii(void **state)
{
    static const struct plot_event died[] = {
        {NOON_MS + 3 * MINUTE, "x", ROLE_BAD}
    };
    struct plot_axis axis = twenty;
    struct grid *g = grid_new(30, 5, true);
    double out[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        out[i] = i < 13 ? GAP : i - 12;
    axis.events = died;
    axis.nevents = 1;
    plot_panel(g, grid_rect(g), &axis, &(struct plot){.title = "t", .area = out});
    expect(g, "+- t ------------------------+\n"
              "|     10                  :- |\n"
              "|      0 since 12:13 :-+*### |\n"
              "|          x           12:19 |\n"
              "+----------------------------+\n");
    grid_free(g);
}

/* The axis has no figures while nothing is known. One known value is drawn, and the columns before
 * it say why they are blank, if there is room. */
static void
the_first_frame(void **state)
{
    struct grid *g = grid_new(30, 5, true);
    double out[20];
    struct plot p = {.title = "t", .area = out, .none = "asking ..."};

    (void)state;
    for (int i = 0; i < 20; i++)
        out[i] = GAP;
    plot_panel(g, grid_rect(g), &twenty, &p);
    expect(g, "+- t ------------------------+\n"
              "|                            |\n"
              "|            asking ...      |\n"
              "|        12:01         12:19 |\n"
              "+----------------------------+\n");
    out[19] = 8;
    p.why = ": new";
    grid_clear(g);
    plot_panel(g, grid_rect(g), &twenty, &p);
    expect(g, "+- t ------------------------+\n"
              "|     10                   + |\n"
              "|      0 since 12:19: new  # |\n"
              "|        12:01         12:19 |\n"
              "+----------------------------+\n");
    p.why = ": too long for it";
    grid_clear(g);
    plot_panel(g, grid_rect(g), &twenty, &p);
    expect(g, "+- t ------------------------+\n"
              "|     10                   + |\n"
              "|      0 since 12:19       # |\n"
              "|        12:01         12:19 |\n"
              "+----------------------------+\n");
    grid_free(g);
}

/* The range of the data decides which rows are drawn. Each sign shows its share of the minute. */
static void
heat_of_times(void **state)
{
    static int counts[20][64];
    struct grid *g = grid_new(30, 6, false);

    (void)state;
    for (int i = 0; i < 20; i++) {
        counts[i][10] = 80;
        counts[i][14] = i > 9 ? 20 : 0;
        counts[i][17] = i > 14 ? 3 : 0;
    }
    plot_heat(
        g, grid_rect(g), &twenty,
        &(struct heat){.title = "ran", .counts = (const int(*)[64])counts, .bucket_ms = octaves});
    expect(g, "┌─ ran ──────────────────────┐\n"
              "│   0.1s               ····· │\n"
              "│   45ms          ▒▒▒▒▒░░░░░ │\n"
              "│  <45ms ███████████████████ │\n"
              "│        12:01         12:19 │\n"
              "└────────────────────────────┘\n");
    grid_free(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spark),
        cmocka_unit_test(test_bucket),
        cmocka_unit_test(test_area),
        cmocka_unit_test(test_bar),
        cmocka_unit_test(test_panel),
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(an_area_a_line_and_a_gap),
        cmocka_unit_test(events_and_ascii),
        cmocka_unit_test(the_first_frame),
        cmocka_unit_test(heat_of_times),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
