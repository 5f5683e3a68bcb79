/* The line editor, the question with its ladder and guards, the progress box. */
#include "tests/harness.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "model/db/rows.h"
#include "ui/widget/prompt.h"

static struct key
key(const char *word)
{
    struct key k = {0};

    assert_true(key_parse(word, strlen(word), &k));
    k.ms = 1000;
    return k;
}

static struct key
paste(const char *s)
{
    return (struct key){.code = KC_PASTE, .paste = s, .paste_len = strlen(s), .ms = 1000};
}

/* Types words of keys that blanks separate. Returns the answer to the last key. */
static enum line_answer
type(struct line *l, const char *words)
{
    enum line_answer a = LINE_IGNORED;
    struct key k;

    while (key_next(&words, &k))
        a = line_key(l, &k);
    return a;
}

static void
expect_draw(const struct grid *g, const char *want)
{
    struct buf b = {0};

    grid_dump(g, &b);
    assert_string_equal(b.data, want);
    buf_free(&b);
}

static void
test_editing(void **state)
{
    struct line l;

    (void)state;
    line_init(&l, NULL, "");
    assert_int_equal(type(&l, "a é 日"), LINE_CHANGED);
    assert_string_equal(l.text, "aé日");
    type(&l, "Left Left x");
    assert_string_equal(l.text, "axé日");
    type(&l, "Backspace C-d");
    assert_string_equal(l.text, "a日");
    type(&l, "C-a Delete C-e Space w o r d Space z C-w");
    assert_string_equal(l.text, "日 word ");
    type(&l, "C-w");
    assert_string_equal(l.text, "日 ");
    type(&l, "C-a Right C-k");
    assert_string_equal(l.text, "日");
    type(&l, "C-u");
    assert_string_equal(l.text, "");
    assert_int_equal(type(&l, "Backspace"), LINE_CANCEL);
    assert_int_equal(type(&l, "Esc"), LINE_CANCEL);
    assert_int_equal(type(&l, "Enter"), LINE_DONE);
    assert_int_equal(type(&l, "Tab"), LINE_COMPLETE);
    assert_int_equal(type(&l, "F5"), LINE_IGNORED);
    assert_int_equal(type(&l, "C-a C-e Left Right Delete C-w C-u C-k"), LINE_MOVED);
    line_done(&l);
}

static void
expect_lost(const struct line *l, const char *want)
{
    struct buf b = {0};

    buf_str(&b, "");
    assert_int_equal(line_say_lost(l, &b), *want != '\0');
    assert_string_equal(b.data, want);
    buf_free(&b);
}

static void
test_marks_and_paste(void **state)
{
    struct line l;
    struct key bad = paste("e\u0301\nx\033[31m\u202E\xff\ty"), huge;
    static char big[5000];

    (void)state;
    line_init(&l, NULL, "");
    assert_int_equal(line_key(&l, &bad), LINE_CHANGED);
    assert_string_equal(l.text, "e\u0301 x[31m y");
    expect_lost(&l, "3 characters were left out: a line can't show them");
    type(&l, "C-a");
    expect_lost(&l, "");
    line_key(&l, &(struct key){.code = 0x200C, .ms = 1000}); /* some keyboards have this key */
    expect_lost(&l, "1 character was left out: a line can't show it");
    type(&l, "Right Backspace"); /* a letter is deleted with its mark */
    assert_string_equal(l.text, " x[31m y");
    memset(big, 'x', sizeof big - 1);
    huge = paste(big);
    line_key(&l, &huge);
    assert_int_equal(l.len, LINE_MAX_BYTES);
    assert_int_equal(l.lost, (int)sizeof big - 1 + (int)strlen(" x[31m y") - LINE_MAX_BYTES);
    assert_int_equal(type(&l, "y"), LINE_MOVED);
    expect_lost(&l, "1 character was left out: the line is full");
    line_init(&l, NULL, "12a3");
    assert_string_equal(l.text, "12a3");
    l.digits_only = true;
    assert_int_equal(type(&l, "x"), LINE_MOVED);
    assert_int_equal(type(&l, "4"), LINE_CHANGED);
    line_done(&l);
}

/* Not only control characters: joiners, a soft hyphen, bidi marks, a BOM, private characters. */
static void
test_what_fits(void **state)
{
    static const char *const lost[] = {"x\u200Cy", "x\u00ADy", "x\u202Ey", "\uFEFFx", "\uE000",
                                       "a\nb",     "\x7f",     "\xff",     "a\xc3"};
    char big[LINE_MAX_BYTES + 2] = {0};
    struct line l;

    (void)state;
    assert_true(line_fits("") && line_fits("e\u0301 日本 {\"a\": 1}"));
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        assert_false(line_fits(lost[i]));
        line_init(&l, NULL, lost[i]);
        assert_string_not_equal(l.text, lost[i]);
        line_done(&l);
    }
    memset(big, 'x', LINE_MAX_BYTES);
    assert_true(line_fits(big));
    big[LINE_MAX_BYTES] = 'x';
    assert_false(line_fits(big));
}

static void
test_history(void **state)
{
    struct line_history h = {0};
    struct line l;

    (void)state;
    line_history_add(&h, "one");
    line_history_add(&h, "two");
    line_history_add(&h, "two");
    line_history_add(&h, "");
    assert_int_equal(h.n, 2);
    line_init(&l, &h, "new");
    type(&l, "Up");
    assert_string_equal(l.text, "two");
    type(&l, "Up Up Up");
    assert_string_equal(l.text, "one");
    type(&l, "Down Down Down");
    assert_string_equal(l.text, "new");
    type(&l, "Enter");
    assert_int_equal(h.n, 3);
    for (int i = 0; i < 2 * LINE_HISTORY; i++) {
        char s[16];
        snprintf(s, sizeof s, "%d", i);
        line_history_add(&h, s);
    }
    assert_int_equal(h.n, LINE_HISTORY);
    assert_string_equal(h.items[LINE_HISTORY - 1], "99");
    line_done(&l);
    line_history_done(&h);
}

static void
test_line_draw(void **state)
{
    struct grid *g = grid_new(10, 1, false);
    struct line_look look = {.label = "/", .label_role = ROLE_KEY, .bad_at = 2, .bad_end = 4};
    struct buf b = {0};
    struct line l;
    int x, y;

    (void)state;
    line_init(&l, NULL, "abcdef");
    line_draw(&l, g, grid_rect(g), &look);
    expect_draw(g, "/abcdef\n");
    grid_dump_roles(g, &b);
    assert_string_equal(b.data, "knnNNnnn\n");
    assert_true(grid_cursor_at(g, &x, &y) && x == 7);
    line_set(&l, "abcdefghijklm");
    grid_clear(g);
    line_draw(&l, g, grid_rect(g), &look); /* scrolled so that the end is seen */
    expect_draw(g, "/fghijklm\n");
    assert_true(grid_cursor_at(g, &x, &y) && x == 9);
    type(&l, "C-a");
    grid_clear(g);
    line_draw(&l, g, grid_rect(g), &look);
    expect_draw(g, "/abcdefgh…\n");
    assert_true(grid_cursor_at(g, &x, &y) && x == 1);
    l.secret = true;
    grid_clear(g);
    type(&l, "C-e");
    line_draw(&l, g, grid_rect(g), &look);
    expect_draw(g, "/********\n");
    buf_free(&b);
    line_done(&l);
    grid_free(g);
}

static enum question_answer
answer(struct question *a, const char *word)
{
    struct key k = key(word);

    return question_key(a, &k);
}

static void
test_ask_yes(void **state)
{
    struct question a;
    struct key early = key("y"), pasted = paste("y");

    (void)state;
    question_init(&a, "Pause");
    assert_int_equal(answer(&a, "y"), ASK_WAIT); /* not shown yet */
    question_shown(&a, 1000);
    early.ms = 999;
    assert_int_equal(question_key(&a, &early), ASK_WAIT);
    assert_int_equal(question_key(&a, &pasted), ASK_WAIT);
    assert_non_null(strstr(a.note, "refused"));
    assert_int_equal(answer(&a, "x"), ASK_WAIT);
    assert_int_equal(answer(&a, "F2"), ASK_WAIT);
    assert_int_equal(answer(&a, "Enter"), ASK_NO);
    assert_int_equal(answer(&a, "Esc"), ASK_NO);
    assert_int_equal(answer(&a, "n"), ASK_NO);
    assert_int_equal(answer(&a, "y"), ASK_YES);
    a.can_dry = a.can_sql = a.easy = true;
    assert_int_equal(answer(&a, "F2"), ASK_DRY);
    assert_int_equal(answer(&a, "F3"), ASK_SQL);
    assert_int_equal(answer(&a, "Enter"), ASK_YES);
    a.busy = true;
    assert_int_equal(answer(&a, "y"), ASK_WAIT);
    assert_int_equal(answer(&a, "Esc"), ASK_NO);
    a.busy = false;
    question_clear(&a); /* the question has another text now */
    assert_int_equal(answer(&a, "y"), ASK_WAIT);
    question_done(&a);
    question_done(&a);
}

static void
test_ask_typed(void **state)
{
    struct question a;
    struct key pasted = paste("402");

    (void)state;
    question_init(&a, "Requeue");
    question_typed(&a, "the number of jobs", "402");
    question_shown(&a, 500);
    assert_int_equal(answer(&a, "y"), ASK_WAIT);
    assert_int_equal(answer(&a, "Enter"), ASK_WAIT);
    assert_true(a.note[0]);
    assert_int_equal(question_key(&a, &pasted), ASK_WAIT);
    assert_int_equal(a.line.len, 0);
    answer(&a, "Backspace");
    answer(&a, "4");
    assert_int_equal(a.note[0], 0);
    answer(&a, "0");
    assert_int_equal(answer(&a, "Enter"), ASK_WAIT);
    answer(&a, "2");
    assert_int_equal(answer(&a, "Enter"), ASK_YES);
    question_typed(&a, "the queue's name", "mail");
    answer(&a, "m");
    assert_string_equal(a.line.text, "m");
    question_done(&a);
}

static void
test_ask_draw(void **state)
{
    struct grid *g = grid_new(64, 13, false);
    struct question a;
    int x, y;

    (void)state;
    question_init(&a, "Requeue — prod@db1");
    question_say(&a, ROLE_STRONG, NULL, "402 jobs in %s", "search.index");
    question_say(&a, ROLE_TEXT, "where", "error = \"connection refused\"");
    question_say(&a, ROLE_TEXT, "", "counted 0.4s ago");
    question_typed(&a, "the number of jobs", "402");
    line_set(&a.line, "40");
    a.can_dry = true;
    question_draw(&a, g, grid_rect(g));
    expect_draw(g, "\n"
                   "    ┌─ Requeue — prod@db1 ─────────────────────────────────┐\n"
                   "    │                                                      │\n"
                   "    │  402 jobs in search.index                            │\n"
                   "    │  where error = \"connection refused\"                  │\n"
                   "    │        counted 0.4s ago                              │\n"
                   "    │                                                      │\n"
                   "    │  Type the number of jobs to go on: 40                │\n"
                   "    │                                                      │\n"
                   "    │  F2 count again   Esc no                             │\n"
                   "    │                                                      │\n"
                   "    └──────────────────────────────────────────────────────┘\n"
                   "\n");
    assert_true(grid_cursor_at(g, &x, &y) && x == 43 && y == 7);
    assert_int_equal(grid_cell(g, 0, 0)->role, ROLE_SHADE);
    question_done(&a);
    grid_free(g);
}

/* On a screen that is too low the question and the keys are shown, and the explanation is cut. */
static void
test_ask_small(void **state)
{
    struct grid *g = grid_new(40, 7, false);
    struct question a;
    struct buf b = {0};

    (void)state;
    question_init(&a, "Requeue");
    for (int i = 0; i < 40; i++)
        question_say(&a, ROLE_TEXT, "where", "a long line of words that has to be wrapped %d", i);
    question_typed(&a, NULL, "402");
    question_draw(&a, g, grid_rect(g));
    grid_dump(g, &b);
    assert_non_null(strstr(b.data, "Type 402 to go on:"));
    assert_non_null(strstr(b.data, "Esc no"));
    assert_non_null(strstr(b.data, "wrapped 0"));
    buf_free(&b);
    question_done(&a);
    grid_free(g);
}

static void
test_progress(void **state)
{
    struct progress_box p = {.title = "Purging",
                             .noun = "row",
                             .done = 47000,
                             .total = 81204,
                             .batches = 47,
                             .all_batches = 82,
                             .batch_size = 1000,
                             .rate = 2310,
                             .left_ms = 14000,
                             .slowest_ms = 610,
                             .note = "backing off"};
    struct grid *g = grid_new(66, 12, false);
    struct key esc = key("Esc"), stop = key("C-c"), j = key("j");
    struct buf b = {0};

    (void)state;
    progress_draw(&p, g, grid_rect(g));
    expect_draw(g, " ┌─ Purging ────────────────────────────────────────────────────┐\n"
                   " │                                                              │\n"
                   " │  █████████████████████████████░░░░░░░░░░░░░░░░░░░░░░    58%  │\n"
                   " │                                                              │\n"
                   " │  47,000 of 81,204 rows   47 of 82 parts of 1,000             │\n"
                   " │  2,310 rows/s   14s left   slowest part 0.6s                 │\n"
                   " │  each part is its own transaction: what is done stays done   │\n"
                   " │  backing off                                                 │\n"
                   " │                                                              │\n"
                   " │  Esc hide (goes on; F8 shows it)    Ctrl-C stop after part   │\n"
                   " │                                                              │\n"
                   " └──────────────────────────────────────────────────────────────┘\n");
    assert_int_equal(progress_key(&p, &esc), PROGRESS_HIDE);
    assert_int_equal(progress_key(&p, &stop), PROGRESS_STOP);
    assert_int_equal(progress_key(&p, &j), PROGRESS_IGNORED);
    p.result = "81,204 rows purged";
    p.total = -1;
    p.left_ms = p.slowest_ms = FIELD_NULL;
    grid_clear(g);
    progress_draw(&p, g, grid_rect(g));
    buf_clear(&b);
    grid_dump(g, &b);
    assert_non_null(strstr(b.data, "81,204 rows purged"));
    assert_int_equal(progress_key(&p, &stop), PROGRESS_IGNORED);
    buf_free(&b);
    grid_free(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_editing),  cmocka_unit_test(test_marks_and_paste),
        cmocka_unit_test(test_history),  cmocka_unit_test(test_line_draw),
        cmocka_unit_test(test_ask_yes),  cmocka_unit_test(test_ask_typed),
        cmocka_unit_test(test_ask_draw), cmocka_unit_test(test_ask_small),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_what_fits),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
