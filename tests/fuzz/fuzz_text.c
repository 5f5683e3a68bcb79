/*
 * Any bytes may come from a server or a job: the sanitiser must take them all, in both modes, and
 * what it gives must be valid UTF-8, of the width that it says, with nothing in it that steers a
 * terminal or is hidden; cleaning twice is cleaning once, and drawing stays inside its rectangle.
 */
#include <assert.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "model/base/text.h"
#include "ui/term/grid.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* NOLINTNEXTLINE(readability-non-const-parameter): the fuzzer says what this looks like */
int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return setlocale(LC_ALL, "C.UTF-8") ? 0 : 1;
}

static void
check_cells(const char *s, size_t len, enum text_mode mode, bool ascii)
{
    struct text_iter it;
    struct glyph g;
    int cells = 0;

    text_start(&it, s, len, mode, ascii);
    do {
        while (text_next(&it, &g)) {
            size_t n = strlen(g.utf8);
            assert(g.width == 1 || g.width == 2);
            assert(n > 0 && utf8_valid(g.utf8, n));
            assert((unsigned char)g.utf8[0] >= 0x20 && g.utf8[0] != 0x7f);
            assert(!ascii || (n == 1 && (unsigned char)g.utf8[0] < 0x80));
            cells += g.width;
        }
    } while (text_more(&it));
    if (mode == TEXT_LINE && !ascii)
        assert(cells == text_width(s, len, mode));
}

/* Each character of the output can be seen, or is a mark on a visible one: nothing may hide. */
static void
check_shown(const char *s, size_t len, enum text_mode mode)
{
    uint32_t cp;

    for (size_t at = 0; at < len;) {
        int n = utf8_decode(s + at, len - at, &cp);
        assert(n > 0);
        assert((cp == '\n' && mode == TEXT_DETAIL) || text_is_plain(cp));
        assert(cp == '\n' || wcwidth((wchar_t)cp) >= 0);
        at += (size_t)n;
    }
}

static void
check_clean(const char *s, size_t len, enum text_mode mode, int max)
{
    struct buf once = {0}, twice = {0};

    text_clean(&once, s, len, mode, max);
    if (once.data) {
        check_shown(once.data, once.len, mode);
        text_clean(&twice, once.data, once.len, mode, max);
        assert(once.len == 0 ||
               (twice.len == once.len && !memcmp(once.data, twice.data, once.len)));
        if (mode == TEXT_LINE && max >= 0)
            assert(text_width(once.data, once.len, mode) <= max);
    }
    buf_free(&once);
    buf_free(&twice);
}

/* What is drawn stays inside its rectangle. */
static void
check_grid(const char *s, size_t len, bool ascii)
{
    struct grid *g = grid_new(9, 5, ascii);
    struct rect r = {2, 1, 5, 3};
    struct text_area area = {.wrap = true};

    grid_fill(g, grid_rect(g), ROLE_BORDER);
    grid_text(g, r, ROLE_TEXT, s, len);
    grid_lines(g, r, ROLE_TEXT, s, len, &area);
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 9; x++) {
            const struct cell *c = grid_cell(g, x, y);
            bool inside = x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h;
            assert(inside || (c->role == ROLE_BORDER && !strcmp(c->utf8, " ")));
            assert(c->width != 2 || grid_cell(g, x + 1, y)->width == 0);
            assert(c->width != 0 || grid_cell(g, x - 1, y)->width == 2);
        }
    grid_free(g);
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const char *s = (const char *)data;

    for (int i = 0; i < 4; i++)
        check_cells(s, size, i & 1 ? TEXT_DETAIL : TEXT_LINE, i & 2);
    for (int max = -1; max < 12; max += 3) {
        check_clean(s, size, TEXT_LINE, max);
        check_clean(s, size, TEXT_DETAIL, max);
    }
    check_grid(s, size, false);
    check_grid(s, size, true);
    return 0;
}
