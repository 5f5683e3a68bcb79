/*
 * Any bytes may come from a server or a job: the sanitiser must take them all, in both modes, and
 * what it gives must be valid UTF-8, of the width that it says, with nothing in it that steers a
 * terminal.
 */
#include <assert.h>
#include <locale.h>
#include <string.h>

#include "model/text.h"

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

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const char *s = (const char *)data;

    for (int i = 0; i < 4; i++)
        check_cells(s, size, i & 1 ? TEXT_DETAIL : TEXT_LINE, i & 2);
    return 0;
}
