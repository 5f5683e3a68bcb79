/* The grid: clipping, wide glyphs at edges, boxes, pens, detail lines, ASCII, themes. */
#include "tests/harness.h"

#include <locale.h>
#include <string.h>

#include "ui/term/grid.h"

static void
expect(const struct grid *g, const char *want)
{
    struct buf b = {0};

    grid_dump(g, &b);
    assert_string_equal(b.data, want);
    buf_free(&b);
}

static void
expect_roles(const struct grid *g, const char *want)
{
    struct buf b = {0};

    grid_dump_roles(g, &b);
    assert_string_equal(b.data, want);
    buf_free(&b);
}

static void
test_text(void **state)
{
    struct grid *g = grid_new(8, 3, false);

    (void)state;
    assert_int_equal(grid_str(g, (struct rect){1, 0, 7, 1}, ROLE_BAD, "abc"), 3);
    assert_int_equal(grid_str(g, (struct rect){1, 1, 4, 1}, ROLE_TEXT, "abcdef"), 4);
    assert_int_equal(grid_str(g, (struct rect){6, 2, 9, 1}, ROLE_TEXT, "abcdef"), 2);
    expect(g, " abc\n abc…\n      a…\n");
    expect_roles(g, ".bbb\n\n\n");
    grid_free(g);
}

/* A sentence ends after a clause, or after a word; a number is shown whole or not at all. */
static void
test_words(void **state)
{
    static const char *const cases[][2] = {
        {"4,003 failed in 1 h",                         "4,003 failed in 1 h\n"    },
        {"4,003 failed in 1 h, none for 9m",            "4,003 failed in 1 h …\n"},
        {"4 failed, none for over 9m, 12.8k completed", "4 failed …\n"           },
        {"died 6m ago; up to 31,310 dead rows",         "died 6m ago …\n"        },
        {"a word, aaaaaaaaaaaaaaaaaaaaaaaaaaa",         "a word, aaaaaaaaaaaa…\n"},
        {"died 6m; left alone, nothing happens",        "died 6m …\n"            },
        {"oldest waits, 12,345,678",                    "oldest waits …\n"       },
        {"日本日本日本 日本日本日本",       "日本日本日本 …\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grid *g = grid_new(21, 1, false);
        grid_words(g, (struct rect){0, 0, 21, 1}, ROLE_TEXT, cases[i][0]);
        expect(g, cases[i][1]);
        grid_free(g);
    }
    struct grid *g = grid_new(4, 1, true);
    grid_words(g, (struct rect){1, 0, 9, 1}, ROLE_TEXT, "a b c d e f");
    expect(g, " a ~\n");
    grid_free(g);
}

static void
test_wide(void **state)
{
    struct grid *g = grid_new(6, 2, false);

    (void)state;
    grid_str(g, (struct rect){0, 0, 3, 1}, ROLE_TEXT, "日本");
    grid_str(g, (struct rect){5, 1, 3, 1}, ROLE_TEXT, "日");
    expect(g, "日…\n     …\n");
    assert_int_equal(grid_cell(g, 1, 0)->width, 0);
    grid_str(g, (struct rect){1, 0, 1, 1}, ROLE_TEXT, "x"); /* overwrites half of the wide glyph */
    expect(g, " x…\n     …\n");
    grid_str(g, (struct rect){0, 0, 4, 1}, ROLE_TEXT, "a日");
    expect(g, "a日\n     …\n");
    grid_fill(g, (struct rect){2, 0, 1, 1}, ROLE_TEXT);
    expect(g, "a\n     …\n");
    grid_free(g);
}

static void
test_left_of_grid(void **state)
{
    struct grid *g = grid_new(5, 1, false);

    (void)state;
    grid_str(g, (struct rect){-3, 0, 6, 1}, ROLE_TEXT, "abcdef");
    expect(g, "def\n");
    grid_clear(g);
    grid_str(g, (struct rect){-1, 0, 6, 1}, ROLE_TEXT, "日本語");
    expect(g, " 本語\n");
    grid_free(g);
}

static void
test_align(void **state)
{
    struct grid *g = grid_new(7, 3, false);

    (void)state;
    grid_right(g, (struct rect){0, 0, 7, 1}, ROLE_TEXT, "12");
    grid_center(g, (struct rect){0, 1, 7, 1}, ROLE_TEXT, "abc");
    grid_right(g, (struct rect){0, 2, 3, 1}, ROLE_TEXT, "12345");
    expect(g, "     12\n  abc\n12…\n");
    grid_free(g);
}

static void
test_box(void **state)
{
    struct grid *g = grid_new(14, 3, false);
    struct rect in = grid_box(g, grid_rect(g), ROLE_BORDER, "title");

    (void)state;
    assert_true(in.x == 1 && in.y == 1 && in.w == 12 && in.h == 1);
    expect(g, "┌─ title ────┐\n│            │\n└────────────┘\n");
    grid_clear(g);
    grid_box(g, grid_rect(g), ROLE_BORDER, "a very long title");
    expect(g, "┌─ a very … ─┐\n│            │\n└────────────┘\n");
    grid_free(g);
}

static void
test_pen(void **state)
{
    struct grid *g = grid_new(10, 1, false);
    struct pen p = pen_start(g, grid_rect(g));

    (void)state;
    pen_put(&p, ROLE_KEY, "q");
    pen_printf(&p, ROLE_DIM, " %s", "quit");
    pen_gap(&p, 1);
    pen_put(&p, ROLE_BAD, "failing");
    pen_put(&p, ROLE_BAD, "no room");
    expect(g, "q quit fa…\n");
    expect_roles(g, "kddddd.bbb\n");
    grid_free(g);
}

static void
test_lines(void **state)
{
    struct grid *g = grid_new(6, 3, false);
    struct text_area wrap = {.wrap = true}, shifted = {.top = 1, .left = 2};
    const char *s = "abcdefgh\nx\033\n";

    (void)state;
    assert_int_equal(grid_lines(g, grid_rect(g), ROLE_CODE, s, strlen(s), &wrap), 3);
    expect(g, "abcdef\ngh\nx\\x1b\n");
    grid_clear(g);
    assert_int_equal(grid_lines(g, grid_rect(g), ROLE_CODE, s, strlen(s), &shifted), 2);
    expect(g, "x1b\n\n\n");
    assert_int_equal(grid_count_lines(s, strlen(s), 3), 5);
    assert_int_equal(grid_count_lines("", 0, 3), 0);
    assert_int_equal(grid_count_lines("\n\n", 2, 0), 2);
    s = "ab cdef abcdefgh"; /* between words, where a word fits on a line */
    grid_clear(g);
    assert_int_equal(grid_lines(g, grid_rect(g), ROLE_CODE, s, strlen(s), &wrap), 4);
    expect(g, "ab\ncdef a\nbcdefg\n");
    s = "abcdef gh";
    grid_clear(g);
    assert_int_equal(grid_lines(g, grid_rect(g), ROLE_CODE, s, strlen(s), &wrap), 2);
    expect(g, "abcdef\ngh\n\n");
    grid_free(g);
}

static void
test_ascii(void **state)
{
    struct grid *g = grid_new(12, 3, true);

    (void)state;
    grid_box(g, grid_rect(g), ROLE_BORDER, "ü");
    grid_str(g, (struct rect){1, 1, 5, 1}, ROLE_TEXT, "●×日本語");
    expect(g, "+- ? ------+\n|*x???     |\n+----------+\n");
    grid_free(g);
}

static void
test_cursor(void **state)
{
    struct grid *g = grid_new(4, 2, false);
    int x, y;

    (void)state;
    assert_false(grid_cursor_at(g, &x, &y));
    grid_cursor(g, 99, -1);
    assert_true(grid_cursor_at(g, &x, &y));
    assert_true(x == 3 && y == 0);
    grid_clear(g);
    assert_false(grid_cursor_at(g, &x, &y));
    grid_free(g);
}

/* Whatever is drawn where: nothing outside the rectangle changes, and halves of wide glyphs match.
 */
static void
test_nothing_outside(void **state)
{
    static const char *const texts[] = {"", "a", "日本語", "a日b本c", "\033\n\t", "e\u0301\u0302"};
    struct grid *g = grid_new(9, 4, false);

    (void)state;
    for (int x = -4; x < 10; x++)
        for (int w = 0; w < 8; w++)
            for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                struct rect r = {x, 1, w, 2};
                grid_clear(g);
                grid_paint(g, grid_rect(g), ROLE_BORDER);
                grid_str(g, r, ROLE_TEXT, texts[i]);
                grid_right(g, r, ROLE_TEXT, texts[i]);
                grid_box(g, r, ROLE_TEXT, texts[i]);
                grid_fill(g, r, ROLE_TEXT);
                grid_str(g, r, ROLE_TEXT, texts[i]);
                for (int cy = 0; cy < 4; cy++)
                    for (int cx = 0; cx < 9; cx++) {
                        const struct cell *c = grid_cell(g, cx, cy);
                        bool in = cx >= x && cx < x + w && cy >= 1 && cy < 3;
                        assert_true(in || (c->role == ROLE_BORDER && c->utf8[0] == ' '));
                        assert_true(c->width != 2 || grid_cell(g, cx + 1, cy)->width == 0);
                        assert_true(c->width != 0 || grid_cell(g, cx - 1, cy)->width == 2);
                    }
            }
    grid_free(g);
}

static void
test_rects(void **state)
{
    struct rect r = {0, 0, 10, 4};

    (void)state;
    struct rect top = rect_cut_top(&r, 1), bottom = rect_cut_bottom(&r, 9);
    assert_true(top.h == 1 && top.y == 0 && bottom.h == 3 && bottom.y == 1 && r.h == 0);
    assert_int_equal(rect_cut_top(&r, 3).h, 0);
    r = (struct rect){0, 0, 10, 4};
    struct rect left = rect_cut_left(&r, 3), right = rect_cut_right(&r, 2);
    assert_true(left.x == 0 && left.w == 3 && right.x == 8 && right.w == 2 && r.x == 3 && r.w == 5);
    assert_int_equal(rect_row(r, 4).h, 0);
    assert_int_equal(rect_row(r, 3).y, 3);
    struct rect c = rect_center((struct rect){0, 0, 10, 4}, 99, 2);
    assert_true(c.w == 10 && c.h == 2 && c.y == 1);
}

static void
test_styles(void **state)
{
    static const char *const themes[] = {"dark", "light", "contrast", "16", "8", "mono"};
    enum theme t;
    char seen[256] = {0};

    (void)state;
    assert_int_equal(style_choose(256, COLOR_AUTO, NULL, false), THEME_DARK);
    assert_int_equal(style_choose(256, COLOR_AUTO, "", false), THEME_DARK);
    assert_int_equal(style_choose(256, COLOR_AUTO, "1", false), THEME_MONO);
    assert_int_equal(style_choose(256, COLOR_ALWAYS, "1", true), THEME_LIGHT);
    assert_int_equal(style_choose(16, COLOR_AUTO, NULL, false), THEME_16);
    assert_int_equal(style_choose(8, COLOR_AUTO, NULL, false), THEME_8);
    assert_int_equal(style_choose(-1, COLOR_ALWAYS, NULL, false), THEME_MONO);
    assert_int_equal(style_choose(1 << 24, COLOR_AUTO, NULL, false), THEME_8);
    assert_int_equal(style_choose(256, COLOR_NEVER, NULL, false), THEME_MONO);
    for (int i = 0; i < THEMES; i++)
        assert_true(style_theme(themes[i], &t) && t == (enum theme)i);
    assert_false(style_theme("no", &t));
    for (int i = 0; i < ROLES; i++) {
        unsigned char c = (unsigned char)style_letter((enum role)i);
        assert_int_equal(seen[c]++, 0);
        assert_int_equal(style_of(THEME_MONO, (enum role)i)->fg, -1);
        assert_true(style_of(THEME_8, (enum role)i)->fg < 8);
        assert_true(style_of(THEME_16, (enum role)i)->fg < 16);
    }
    assert_true(style_of(THEME_8, ROLE_SELECTED)->attrs & STYLE_REVERSE);
    assert_true(style_of(THEME_MONO, ROLE_SELECTED)->attrs & STYLE_REVERSE);
}

/* A bad cell of the selected row has its own foreground and the selection's background. If there is
 * no colour for that, only the name is in reverse. */
static void
test_grounds(void **state)
{
    static const enum theme coloured[] = {THEME_DARK, THEME_LIGHT};
    static const enum theme few[] = {THEME_16, THEME_8, THEME_MONO};
    struct style s;

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int role = 0; role < ROLES; role++) {
            s = style_on(coloured[i], (enum role)role, GROUND_ROW);
            assert_int_equal(s.fg, style_of(coloured[i], (enum role)role)->fg);
            if (style_of(coloured[i], (enum role)role)->bg < 0)
                assert_int_equal(s.bg, coloured[i] == THEME_DARK ? 236 : 254);
        }
    assert_true(style_on(THEME_DARK, ROLE_TEXT, GROUND_NAME).attrs & STYLE_BOLD);
    s = style_on(THEME_CONTRAST, ROLE_BAD, GROUND_ROW); /* white on red is always readable */
    assert_int_equal(s.bg, style_of(THEME_CONTRAST, ROLE_BAD)->bg);
    s = style_on(THEME_CONTRAST, ROLE_WARN, GROUND_ROW); /* yellow on yellow is not */
    assert_int_not_equal(s.bg, s.fg);
    for (int i = 0; i < 3; i++) {
        s = style_on(few[i], ROLE_BAD, GROUND_ROW);
        assert_memory_equal(&s, style_of(few[i], ROLE_BAD), sizeof s);
        assert_true(style_on(few[i], ROLE_BAD, GROUND_NAME).attrs & STYLE_REVERSE);
    }
}

/* grid_lay() sets the ground of cells. Text that is drawn later, and grid_paint(), as behind a
 * dialog, remove the ground. */
static void
test_lay(void **state)
{
    struct grid *g = grid_new(6, 1, false);

    (void)state;
    grid_str(g, grid_rect(g), ROLE_BAD, "abc");
    grid_lay(g, (struct rect){1, 0, 9, 9}, GROUND_ROW);
    assert_int_equal(grid_cell(g, 0, 0)->ground, GROUND_NONE);
    assert_int_equal(grid_cell(g, 1, 0)->ground, GROUND_ROW);
    assert_int_equal(grid_cell(g, 1, 0)->role, ROLE_BAD);
    grid_str(g, (struct rect){2, 0, 1, 1}, ROLE_TEXT, "x");
    assert_int_equal(grid_cell(g, 2, 0)->ground, GROUND_NONE);
    grid_paint(g, grid_rect(g), ROLE_SHADE);
    assert_int_equal(grid_cell(g, 1, 0)->ground, GROUND_NONE);
    grid_free(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_left_of_grid),
        cmocka_unit_test(test_align),
        cmocka_unit_test(test_box),
        cmocka_unit_test(test_pen),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_ascii),
        cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_nothing_outside),
        cmocka_unit_test(test_rects),
        cmocka_unit_test(test_styles),
        cmocka_unit_test(test_grounds),
        cmocka_unit_test(test_lay),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
