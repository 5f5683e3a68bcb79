/*
 * Every widget at every size from 1x1 to 300x100: nothing may crash (the sanitizers watch), nothing
 * may be drawn outside its rectangle, and both halves of every wide glyph must be there.
 */
#include "tests/harness.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "ui/term/chart.h"
#include "ui/widget/list.h"
#include "ui/widget/prompt.h"

struct row {
    const char *id, *text, *state;
    int64_t n;
};
#define F(field) offsetof(struct row, field)

static const struct column columns[] = {
    {.name = "id",
     .title = "ID",
     .help = "",
     .kind = K_UUID,
     .offset = F(id),
     .min_w = 8,
     .max_w = 8},
    {.name = "text",
     .title = "TEXT 日本",
     .help = "",
     .kind = K_TEXT,
     .offset = F(text),
     .min_w = 4,
     .max_w = 30,
     .keep = 1},
    {.name = "state",
     .title = "STATE",
     .help = "",
     .kind = K_STATE,
     .offset = F(state),
     .min_w = 11,
     .max_w = 11,
     .keep = 2},
    {.name = "n",
     .title = "N",
     .help = "",
     .kind = K_COUNT,
     .offset = F(n),
     .min_w = 3,
     .max_w = 12,
     .keep = 3},
    {.name = "error",
     .title = "ERROR",
     .help = "",
     .kind = K_NOTE,
     .offset = F(text),
     .min_w = 10,
     .keep = 4},
    {0     },
};
static const struct list_def def = {
    .columns = columns,
    .row_size = sizeof(struct row),
    .id_offset = F(id),
    .sort = "n",
};
static const struct row rows[] = {
    {"1", "plain",                           "ready",         1        },
    {"2", "日本語 wide e\u0301 \033[31m", "failed",        1234567  },
    {"3", "",                                "",              INT64_MIN},
    {"4", "\u202E\xff\xff bytes",            "no such state", -5       },
};

struct widgets {
    struct list *list;
    struct question ask;
    struct progress_box progress;
    struct line line;
    double values[50];
};

static void
draw(struct widgets *w, struct grid *g, struct rect r, int which)
{
    struct list_look look = {.now_ms = 5000, .stale = r.w % 2, .unfocused = r.h % 2};
    struct line_look label = {.label = "/日", .bad_at = 1, .bad_end = 5};
    struct chart chart = {.title = "chart",
                          .values = w->values,
                          .n = 50,
                          .top_label = "1,000",
                          .mid_label = "m",
                          .low_label = "0",
                          .from_label = "-60m",
                          .mid_time = "-30m",
                          .to_label = "now"};
    struct text_area area = {.wrap = r.h % 2, .left = r.w % 3, .top = r.h % 4};

    switch (which) {
    case 0:
        list_draw(w->list, g, r, &look);
        break;
    case 1:
        question_draw(&w->ask, g, r);
        break;
    case 2:
        progress_draw(&w->progress, g, r);
        break;
    case 3:
        line_draw(&w->line, g, r, &label);
        break;
    case 4:
        chart_panel(g, r, &chart);
        break;
    default:
        chart_spark(g, r, ROLE_CHART, w->values, 50, 0);
        chart_bar(g, r, 0.3);
        grid_lines(g, r, ROLE_CODE, rows[1].text, strlen(rows[1].text), &area);
        grid_right(g, r, ROLE_TEXT, rows[1].text);
        grid_center(g, r, ROLE_TEXT, rows[3].text);
        break;
    }
}

static void
check(const struct grid *g, struct rect r)
{
    struct rect all = grid_rect(g);

    for (int y = 0; y < all.h; y++)
        for (int x = 0; x < all.w; x++) {
            const struct cell *c = grid_cell(g, x, y);
            bool in = x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h;
            if (!in && strcmp(c->utf8, " ") != 0)
                fail_msg("%d,%d was drawn outside %dx%d", x, y, r.w, r.h);
            if ((c->width == 2 && (x + 1 == all.w || grid_cell(g, x + 1, y)->width != 0)) ||
                (c->width == 0 && (x == 0 || grid_cell(g, x - 1, y)->width != 2)))
                fail_msg("half a glyph at %d,%d of %dx%d", x, y, r.w, r.h);
        }
}

static void
start(struct widgets *w)
{
    *w = (struct widgets){
        .progress = {
                     .title = "title", .noun = "row", .done = 5, .total = 9, .batches = 1, .note = "note"}
    };
    w->list = list_new(&def);
    list_set_rows(w->list, rows, 4);
    list_move(w->list, 2);
    question_init(&w->ask, "title 日本");
    for (int i = 0; i < 6; i++)
        question_say(&w->ask, ROLE_TEXT, i % 2 ? "label" : NULL, "%s text that is long %d",
                     rows[1].text, i);
    question_typed(&w->ask, "the number", "4022");
    line_init(&w->line, NULL, "日本語 text");
    for (int i = 0; i < 50; i++)
        w->values[i] = i * i;
}

static void
finish(struct widgets *w)
{
    list_free(w->list);
    question_done(&w->ask);
    line_done(&w->line);
}

/* The widget in the middle of a grid that is two larger on each side. */
static void
every_size(int which, bool ascii, int step)
{
    struct grid *g = grid_new(1, 1, ascii);
    struct widgets w;

    start(&w);
    for (int h = 1; h <= 100; h += h < 26 ? 1 : step)
        for (int width = 1; width <= 300; width += width < 82 ? 1 : step) {
            struct rect r = {2, 2, width, h};
            grid_resize(g, width + 4, h + 4);
            draw(&w, g, r, which);
            check(g, r);
        }
    finish(&w);
    grid_free(g);
}

static void
test_list(void **state)
{
    (void)state;
    every_size(0, false, 19);
}

static void
test_ask(void **state)
{
    (void)state;
    every_size(1, false, 19);
}

static void
test_progress(void **state)
{
    (void)state;
    every_size(2, false, 19);
}

static void
test_line(void **state)
{
    (void)state;
    every_size(3, false, 37);
}

static void
test_chart(void **state)
{
    (void)state;
    every_size(4, false, 37);
}

static void
test_rest(void **state)
{
    (void)state;
    every_size(5, false, 37);
}

static void
test_ascii(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++)
        every_size(i, true, 73);
}

/* A rectangle that hangs over each edge of the grid is clipped. */
static void
test_over_edges(void **state)
{
    struct grid *g = grid_new(20, 8, false);
    struct widgets w;

    (void)state;
    start(&w);
    for (int which = 0; which < 6; which++)
        for (int x = -30; x < 25; x += 5)
            for (int y = -12; y < 12; y += 3) {
                grid_clear(g);
                draw(&w, g, (struct rect){x, y, 25, 9}, which);
                check(g, grid_rect(g));
            }
    finish(&w);
    grid_free(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),     cmocka_unit_test(test_ask),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_line),
        cmocka_unit_test(test_chart),    cmocka_unit_test(test_rest),
        cmocka_unit_test(test_ascii),    cmocka_unit_test(test_over_edges),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
