/*
 * The table widget: order, cursor and marks by id across refreshes, columns that fit, drawing, and
 * all kinds of columns.
 */
#include "tests/harness.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/db/rows.h"
#include "ui/widget/list.h"

struct job {
    const char *id, *queue, *state;
    int64_t ready, created_ms, run_ms;
    double rate;
    int tries, ok;
};

static void
draw_try(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    (void)c;
    grid_printf(g, r, ROLE_DIM, "%d/5", ((const struct job *)row)->tries);
}

static enum role
role_ready(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return ((const struct job *)row)->ready > 100 ? ROLE_WARN : ROLE_TEXT;
}

static const struct column_special try_special = {.draw = draw_try, .sort_as = K_INT};
static const struct column_special ready_special = {.role = role_ready};
#define F(field) offsetof(struct job, field)

static const struct column columns[] = {
    {.name = "queue",
     .title = "QUEUE",
     .help = "Queue",
     .kind = K_TEXT,
     .offset = F(queue),
     .min_w = 6},
    {.name = "ready",
     .title = "READY",
     .help = "Ready",
     .kind = K_COUNT,
     .offset = F(ready),
     .min_w = 6,
     .max_w = 8,
     .keep = 1,
     .special = &ready_special},
    {.name = "try",
     .title = "TRY",
     .help = "Tries",
     .kind = K_CUSTOM,
     .offset = F(tries),
     .min_w = 3,
     .max_w = 3,
     .keep = 3,
     .special = &try_special},
    {.name = "rate",
     .title = "/s",
     .help = "Rate",
     .kind = K_RATE,
     .offset = F(rate),
     .min_w = 5,
     .max_w = 5,
     .keep = 2},
    {.name = "age",
     .title = "AGE",
     .help = "Age",
     .kind = K_AGE,
     .offset = F(created_ms),
     .min_w = 7,
     .max_w = 7,
     .keep = 4},
    {.name = "state",
     .title = "STATE",
     .help = "State",
     .kind = K_STATE,
     .offset = F(state),
     .min_w = 11,
     .max_w = 11,
     .keep = 100},
    {0        },
};

static struct sign
sign(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return (struct sign){((const struct job *)row)->ok ? "▲" : "×", ROLE_BAD};
}

static const struct list_def def = {
    .columns = columns,
    .row_size = sizeof(struct job),
    .id_offset = F(id),
    .sort = "ready",
    .desc = true,
    .sign = sign,
};

static const struct job jobs[] = {
    {"a", "mail",   "ready",   120,        1000,       5, 412,         1, 1},
    {"b", "image",  "failed",  18234,      2000,       5, 96,          3, 1},
    {"c", "report", "retry",   3,          FIELD_NULL, 5, (double)NAN, 2, 0},
    {"d", "search", "running", 5021,       3000,       5, 18,          5, 1},
    {"e", "none",   "ready",   FIELD_NULL, 4000,       5, 0,           0, 1},
};
enum { JOBS = 5, NOW = 302000 };

static void
expect_order(const struct list *l, const char *want)
{
    char got[64] = "";

    for (int i = 0; i < list_count(l); i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s",
                 ((const struct job *)list_row(l, i))->id);
    assert_string_equal(got, want);
}

static void
expect_draw(struct list *l, int w, int h, const struct list_look *look, const char *want)
{
    struct grid *g = grid_new(w, h, false);
    struct buf b = {0};

    list_draw(l, g, grid_rect(g), look);
    grid_dump(g, &b);
    assert_string_equal(b.data, want);
    buf_free(&b);
    grid_free(g);
}

static void
make_job(void *ctx, int i, void *row)
{
    ++*(int *)ctx;
    memcpy(row, &jobs[i], sizeof jobs[i]);
}

static const char *
job_id(void *ctx, int i)
{
    (void)ctx;
    return jobs[i].id;
}

/* Rows can be made only when somebody looks at them. Order, cursor and drawing stay the same, and
 * only the drawn rows are made. */
static void
test_pages(void **state)
{
    struct list *l = list_new(&def), *whole = list_new(&def);
    struct list_look look = {.now_ms = NOW};
    struct buf want = {0};
    int made = 0;

    (void)state;
    list_set_pages(l, &(struct list_pages){make_job, job_id, &made}, JOBS);
    list_set_rows(whole, jobs, JOBS);
    expect_order(l, "bdace");
    assert_true(list_select(l, "c"));
    list_select(whole, "c");
    const struct job *selected = list_selected(l);
    for (int i = 0; i < JOBS; i++)
        assert_string_equal(((const struct job *)list_row(l, i))->id,
                            ((const struct job *)list_row(whole, i))->id);
    assert_string_equal(selected->id, "c"); /* other rows did not overwrite it */
    list_make_anew(l);
    made = 0;
    struct grid *g = grid_new(40, 3, false);
    list_draw(whole, g, grid_rect(g), &look);
    grid_dump(g, &want);
    expect_draw(l, 40, 3, &look, want.data);
    assert_int_equal(made, 2);
    assert_true(list_sort_by(l, "age", false));
    expect_order(l, "edbac");
    assert_string_equal(list_selected_id(l), "c");
    assert_false(list_select(l, "zzz"));
    buf_free(&want);
    grid_free(g);
    list_free(whole);
    list_free(l);
}

static void
test_order(void **state)
{
    struct list *l = list_new(&def);
    bool desc;

    (void)state;
    assert_int_equal(list_index(l), -1);
    assert_null(list_selected(l));
    list_set_rows(l, jobs, JOBS);
    expect_order(l, "bdace"); /* a row without a number is last */
    list_sort_invert(l);
    expect_order(l, "cadbe");
    assert_true(list_sort_by(l, "rate", true));
    expect_order(l, "abdec");
    assert_true(list_sort_by(l, "age", false)); /* youngest first */
    expect_order(l, "edbac");
    list_sort_invert(l);
    expect_order(l, "abdec");
    assert_true(list_sort_by(l, "try", true));
    expect_order(l, "dbcae");
    assert_false(list_sort_by(l, "nothing", true));
    list_sort_step(l, 1);
    assert_string_equal(list_sort_column(l, &desc)->name, "rate");
    assert_true(desc);
    list_sort_step(l, -1);
    assert_string_equal(list_sort_column(l, &desc)->name, "try");
    list_free(l);
}

static void
test_ties_by_id(void **state)
{
    const struct job same[] = {
        {.id = "c", .queue = "x"},
        {.id = "a", .queue = "x"},
        {.id = "b", .queue = "x"}
    };
    struct list *l = list_new(&def);

    (void)state;
    list_set_rows(l, same, 3);
    expect_order(l, "abc");
    list_sort_invert(l);
    expect_order(l, "abc");
    list_free(l);
}

static void
test_cursor_stays(void **state)
{
    struct list *l = list_new(&def);
    struct job more[JOBS];

    (void)state;
    list_set_rows(l, jobs, JOBS);
    list_move(l, 1);
    assert_string_equal(list_selected_id(l), "d");
    memcpy(more, jobs, sizeof jobs);
    more[0].ready = 99999; /* a moves to the top */
    more[3].ready = 1;     /* d moves down */
    list_set_rows(l, more, JOBS);
    expect_order(l, "abcde");
    assert_string_equal(list_selected_id(l), "d");
    list_sort_by(l, "queue", false);
    assert_string_equal(list_selected_id(l), "d");
    assert_true(list_select(l, "a") && list_index(l) == 1);
    assert_false(list_select(l, "zz"));
    list_free(l);
}

static void
test_deleted_goes_to_neighbour(void **state)
{
    struct list *l = list_new(&def);
    struct job some[3] = {jobs[1], jobs[0], jobs[4]}; /* of bdace: b a e */

    (void)state;
    list_set_rows(l, jobs, JOBS);
    list_select(l, "d");
    list_set_rows(l, some, 3);
    assert_string_equal(list_selected_id(l), "a"); /* the row after the deleted one */
    list_set_rows(l, some, 1);
    assert_string_equal(list_selected_id(l), "b");
    list_set_rows(l, NULL, 0);
    assert_string_equal(list_selected_id(l), "");
    assert_int_equal(list_index(l), -1);
    list_move(l, 3);
    list_toggle_mark(l);
    list_set_rows(l, jobs, JOBS); /* it comes back */
    assert_string_equal(list_selected_id(l), "b");
    list_free(l);
}

static bool
keep_ready(void *ctx, const void *row)
{
    return ((const struct job *)row)->ready >= *(int *)ctx;
}

static void
test_filter(void **state)
{
    struct list *l = list_new(&def);
    int least = 100;

    (void)state;
    list_set_rows(l, jobs, JOBS);
    list_select(l, "a");
    list_set_filter(l, keep_ready, &least);
    expect_order(l, "bda");
    least = 1000000;
    list_set_filter(l, keep_ready, &least);
    assert_int_equal(list_count(l), 0);
    assert_int_equal(list_wants(l), 0);
    list_set_filter(l, NULL, NULL);
    assert_string_equal(list_selected_id(l), "a"); /* where it was before */
    list_free(l);
}

static void
test_marks(void **state)
{
    struct list *l = list_new(&def);
    int n;

    (void)state;
    list_set_rows(l, jobs, JOBS);
    assert_string_equal(list_targets(l, &n)[0], "b");
    assert_int_equal(n, 1);
    list_toggle_mark(l);
    list_toggle_mark(l);
    assert_string_equal(list_selected_id(l), "a");
    const char *const *ids = list_targets(l, &n);
    assert_true(n == 2 && !strcmp(ids[0], "b") && !strcmp(ids[1], "d"));
    list_set_rows(l, jobs, 1); /* a mark stays while its row is away */
    assert_true(list_is_marked(l, "d") && !list_is_marked(l, "a"));
    list_set_rows(l, jobs, JOBS);
    list_mark_shown(l);
    list_mark(l, "c", false);
    ids = list_marks(l, &n);
    assert_true(n == 4 && !strcmp(ids[0], "a") && !strcmp(ids[3], "e"));
    list_unmark_all(l);
    list_marks(l, &n);
    assert_int_equal(n, 0);
    list_mark_shown(l);
    list_set_rows(l, jobs, 2);
    list_mark_only_shown(l);
    list_marks(l, &n); /* the other rows have left */
    assert_true(n == 2 && list_is_marked(l, jobs[0].id) && list_is_marked(l, jobs[1].id));
    list_set_rows(l, jobs + 1, 2); /* as many marks as rows, but not the same */
    list_mark_only_shown(l);
    list_marks(l, &n);
    assert_true(n == 2 && list_is_marked(l, jobs[1].id) && list_is_marked(l, jobs[2].id));
    list_free(l);
}

/* A list of many rows: the cursor stays visible and keeps its line, and paging stops at the first
 * and the last row. */
static void
test_scrolling(void **state)
{
    static struct job many[300];
    static char ids[300][12];
    struct list_def plain = def;
    struct grid *g = grid_new(60, 11, false);
    struct list_look look = {.now_ms = NOW};
    int x, y;

    (void)state;
    plain.sort = NULL;
    plain.server_order = true;
    for (int i = 0; i < 300; i++) {
        snprintf(ids[i], sizeof ids[i], "%04d", i);
        many[i] = (struct job){.id = ids[i], .queue = "q"};
    }
    struct list *l = list_new(&plain);
    list_set_rows(l, many, 200);
    list_draw(l, g, grid_rect(g), &look);
    list_set_more(l, false, true);
    assert_int_equal(list_wants(l), 0);
    list_half_page(l, 1);
    assert_int_equal(list_index(l), 5);
    list_half_page(l, -1);
    assert_int_equal(list_index(l), 0);
    list_page(l, 3);
    assert_int_equal(list_index(l), 27);
    list_page(l, 100);
    assert_int_equal(list_index(l), 199);
    assert_int_equal(list_wants(l), 1);
    list_set_rows(l, many, 300);
    assert_int_equal(list_index(l), 199);
    list_draw(l, g, grid_rect(g), &look);
    assert_true(grid_cursor_at(g, &x, &y) && y == 10);
    list_set_rows(l, many + 50, 250); /* rows above disappear: the cursor keeps its line */
    grid_clear(g);
    list_draw(l, g, grid_rect(g), &look);
    assert_string_equal(list_selected_id(l), "0199");
    assert_true(grid_cursor_at(g, &x, &y) && y == 10);
    list_home(l);
    list_set_more(l, true, false);
    assert_int_equal(list_wants(l), -1);
    list_page(l, -1);
    assert_int_equal(list_index(l), 0);
    list_end(l);
    assert_int_equal(list_index(l), 249);
    list_move(l, INT_MIN);
    list_move(l, INT_MAX);
    assert_int_equal(list_index(l), 249);
    list_free(l);
    grid_free(g);
}

static void
test_draw(void **state)
{
    struct list *l = list_new(&def);
    struct list_look look = {.now_ms = NOW};

    (void)state;
    expect_draw(l, 40, 3, &look, "   QUEUE        READY↓ TRY    /s     AGE\n   nothing here\n\n");
    list_set_rows(l, jobs, JOBS);
    list_mark(l, "a", true);
    expect_draw(l, 40, 7, &look,
                "   QUEUE        READY↓ TRY    /s     AGE\n"
                "›▲ image        18,234 3/5    96  5m 00s\n"
                " ▲ search        5,021 5/5    18  4m 59s\n"
                "✓▲ mail            120 1/5   412  5m 01s\n"
                " × report            3 2/5     —       —\n"
                " ▲ none              — 0/5     ·  4m 58s\n"
                "\n");
    look.unfocused = true; /* a list without the focus has no selected row */
    expect_draw(l, 40, 2, &look,
                "   QUEUE        READY↓ TRY    /s     AGE\n"
                " ▲ image        18,234 3/5    96  5m 00s\n");
    list_free(l);
}

static void
expect_line(struct list *l, int h, const struct list_look *look, int y, const char *want)
{
    struct grid *g = grid_new(60, h, false);
    struct buf b = {0};
    char *at, *line;

    list_draw(l, g, grid_rect(g), look);
    grid_dump(g, &b);
    at = b.data;
    for (int i = 0; i <= y; i++)
        line = strsep(&at, "\n");
    assert_string_equal(line, want);
    buf_free(&b);
    grid_free(g);
}

/* The line that counts the rows never takes the place of a row, unless there are more rows than
 * lines. */
static void
test_counts(void **state)
{
    struct list *l = list_new(&def);
    struct list_look look = {.now_ms = NOW, .counts = true, .order = "most first"};
    struct job many[30];
    char ids[30][12];
    int least = 100;

    (void)state;
    list_set_rows(l, jobs, JOBS);
    expect_line(l, 7, &look, 6, "   5 of 5 · most first");
    expect_line(l, 20, &look, 6, "   5 of 5 · most first");
    expect_line(l, 6, &look, 5, " ▲ none                                  — 0/5     ·  4m 58s");
    expect_line(l, 5, &look, 4, " × report                                3 2/5     —       —");
    list_set_filter(l, keep_ready, &least);
    look.stale = true;
    look.old_ms = 250000;
    expect_line(l, 7, &look, 4, "   3 of 5 match the filter · most first · 4m 10s old");
    list_set_filter(l, NULL, NULL);
    list_sort_by(l, "ready", false);
    look.stale = false;
    expect_line(l, 7, &look, 6, "   5 of 5"); /* the title shows the order */
    for (int i = 0; i < 30; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i + 10);
        many[i] = jobs[0];
        many[i].id = many[i].queue = ids[i];
    }
    list_set_rows(l, many, 30);
    list_select(l, "39");
    expect_line(l, 13, &look, 12, "   rows 20 to 30 of 30");
    expect_line(l, 13, &look, 11, "›▲ 39                                  120 1/5   412  5m 01s");
    list_free(l);
}

static void
test_draw_roles(void **state)
{
    struct list *l = list_new(&def);
    struct list_look look = {.now_ms = NOW};
    struct grid *g = grid_new(24, 4, false);
    struct buf b = {0};

    (void)state;
    list_set_rows(l, jobs, JOBS);
    list_mark(l, "d", true);
    list_draw(l, g, grid_rect(g), &look);
    grid_dump_roles(g, &b);
    assert_string_equal(b.data, "llllllllllllllllllllllll\n"
                                ".b..........wwwwww\n"
                                "mb.mmmmmm....wwwww\n"
                                ".b.............www\n");
    for (int x = 0; x < 24; x++) { /* cells of the selected row keep their colours */
        bool is_name = x == 0 || (x >= 3 && x < 9);
        assert_int_equal(grid_cell(g, x, 1)->ground, is_name ? GROUND_NAME : GROUND_ROW);
        assert_int_equal(grid_cell(g, x, 2)->ground, GROUND_NONE);
    }
    buf_free(&b);
    grid_free(g);
    list_free(l);
}

static void
test_layout(void **state)
{
    int w[6];
    bool hidden[6] = {false, false, false, false, false, true};

    (void)state;
    column_layout(columns, 6, hidden, 200, w);
    assert_true(w[1] == 8 && w[2] == 3 && w[3] == 5 && w[4] == 7 && w[5] == 0);
    assert_int_equal(w[0], 200 - 8 - 3 - 5 - 7 - 4);
    column_layout(columns, 6, hidden, 31, w); /* all columns have exactly their least width */
    assert_true(w[0] == 6 && w[1] == 6 && w[4] == 7);
    column_layout(columns, 6, hidden, 30, w); /* age is the first to be hidden */
    assert_true(w[4] == 0 && w[2] == 3 && w[1] == 8);
    column_layout(columns, 6, hidden, 12, w);
    assert_true(w[0] == 12 && w[1] == 0);
    column_layout(columns, 6, NULL, 3, w);
    assert_int_equal(w[0], 3);
    column_layout(columns, 6, NULL, -3, w);
    assert_int_equal(w[0], 0);
    for (int width = 0; width < 120; width++) {
        int sum = 0;
        column_layout(columns, 6, hidden, width, w);
        for (int i = 0; i < 6; i++)
            sum += w[i] ? w[i] + (sum > 0) : 0;
        assert_true(sum <= width);
        assert_true(width == 0 || w[0] > 0);
    }
}

static void
test_save(void **state)
{
    struct list *l = list_new(&def);
    struct buf b = {0};
    bool desc;

    (void)state;
    list_save(l, &b);
    assert_string_equal(b.data, "sort=ready desc");
    list_load(l, "sort=age hide=try,rate,queue,nothing show=state junk");
    assert_false(list_column_on(l, 2) || list_column_on(l, 3));
    assert_true(list_column_on(l, 0) && list_column_on(l, 5)); /* the first is never hidden */
    assert_string_equal(list_sort_column(l, &desc)->name, "age");
    buf_clear(&b);
    list_save(l, &b);
    assert_string_equal(b.data, "sort=age hide=try,rate show=state");
    list_load(l, "");
    list_load(l, "sort= hide=,, =");
    buf_free(&b);
    list_free(l);
}

struct every {
    const char *text;
    int number;
    int64_t big;
    double real;
};

static void
expect_kind(enum column_kind kind, size_t offset, const struct every *row, int w, const char *want)
{
    struct column c = {.name = "x", .title = "X", .kind = kind, .offset = offset, .max_w = 10};
    struct cell_ctx ctx = {.now_ms = NOW, .utc = true};
    struct buf b = {0};

    column_text(&c, row, &ctx, w, &b);
    assert_string_equal(b.data ? b.data : "", want);
    buf_free(&b);
}

static void
test_kinds(void **state)
{
    static const size_t text = offsetof(struct every, text),
                        number = offsetof(struct every, number), big = offsetof(struct every, big),
                        real = offsetof(struct every, real);
    struct every e = {"019392a1-0000-7000-8000-0123456789ab", 3, 2000, 0.58};
    struct every s = {"failed", 1, 81204, 12345};
    struct every none = {"", INT_MIN, FIELD_NULL, (double)NAN};

    (void)state;
    expect_kind(K_UUID, text, &e, 8, "456789ab");
    expect_kind(K_UUID, text, &e, 0, e.text);
    expect_kind(K_TEXT, text, &e, 8, e.text);
    expect_kind(K_STATE, text, &s, 0, "× failed");
    expect_kind(K_STATE, text, &none, 0, "");
    expect_kind(K_INT, number, &e, 0, "3");
    expect_kind(K_INT, number, &none, 0, "—");
    expect_kind(K_BOOL, number, &s, 0, "yes");
    expect_kind(K_BOOL, number, &none, 0, "—");
    expect_kind(K_BIG, big, &s, 0, "81204");
    expect_kind(K_COUNT, big, &s, 0, "81,204");
    expect_kind(K_COUNT, big, &s, 4, "81k");
    expect_kind(K_RATE, real, &s, 5, "12.3k");
    expect_kind(K_RATE, real, &none, 5, "—");
    expect_kind(K_PERCENT, real, &e, 0, "58%");
    expect_kind(K_BYTES, big, &s, 0, "79 kB");
    expect_kind(K_AGE, big, &e, 7, "5m 00s");
    expect_kind(K_AGE, big, &e, 4, "5m");
    expect_kind(K_TIME, big, &e, 8, "00:00:02");
    expect_kind(K_TIME, big, &e, 0, "1970-01-01 00:00:02");
    expect_kind(K_DURATION, big, &s, 0, "1m 21s");
    expect_kind(K_WAIT, big, &none, 0, "—");
    expect_kind(K_CUSTOM, big, &e, 0, "");
}

/* A column is hidden until one row has a value for the column. After that the column stays. */
static void
test_hide_empty(void **state)
{
    static const struct job bare[] = {
        {"a", "mail", "", FIELD_NULL, FIELD_NULL, 5, (double)NAN, INT_MIN, 1}
    };
    struct grid *g = grid_new(70, 4, false);
    struct list *l = list_new(&def);

    (void)state;
    list_hide_empty(l, true);
    list_set_rows(l, bare, 1);
    list_draw(l, g, grid_rect(g), &(struct list_look){.now_ms = 5000});
    assert_true(list_click(l, 3, 0, false) == HIT_TITLE);
    assert_string_equal(grid_cell(g, 3, 0)->utf8, "Q");
    for (int x = 8; x < 70; x++)
        assert_string_equal(grid_cell(g, x, 0)->utf8, " ");
    list_set_rows(l, jobs, 3);
    list_set_rows(l, bare, 1);
    grid_clear(g);
    list_draw(l, g, grid_rect(g), &(struct list_look){.now_ms = 5000});
    bool ready = false;
    for (int x = 8; x < 70; x++)
        ready = ready || !strcmp(grid_cell(g, x, 0)->utf8, "R");
    assert_true(ready);
    list_column_lacks(l, "ready", true);
    grid_clear(g);
    list_draw(l, g, grid_rect(g), &(struct list_look){.now_ms = 5000});
    for (int x = 8; x < 70; x++)
        assert_string_not_equal(grid_cell(g, x, 0)->utf8, "D");
    list_free(l);
    grid_free(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_ties_by_id),
        cmocka_unit_test(test_cursor_stays),
        cmocka_unit_test(test_deleted_goes_to_neighbour),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_scrolling),
        cmocka_unit_test(test_draw),
        cmocka_unit_test(test_draw_roles),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_save),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_hide_empty),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
