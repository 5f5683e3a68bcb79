/*
 * Whatever a terminal sends: the decoder gives events that have a word which means the same event,
 * and a line that they are typed into stays valid, visible and inside its box.
 */
#include <assert.h>
#include <locale.h>
#include <string.h>

#include "model/base/text.h"
#include "ui/term/term_key.h"
#include "ui/widget/prompt.h"

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
check_word(const struct key *k)
{
    struct key_word w = key_word(k);
    struct key back;

    if (k->code == KC_PASTE) {
        assert(k->paste_len <= PASTE_MAX && !w.s[0]);
        return;
    }
    assert(k->code != KC_NONE && w.s[0]);
    if (k->code < KC_ENTER && !text_is_plain(k->code))
        return; /* such a character has no word that can be written */
    if (key_parse(w.s, strlen(w.s), &back))
        assert(key_same(&back, k) && key_is(k, w.s));
}

static void
check_line(const struct line *l, struct grid *g)
{
    int x, y;

    assert(l->len >= 0 && l->len <= LINE_MAX_BYTES && l->at >= 0 && l->at <= l->len);
    assert(l->text[l->len] == 0 && utf8_valid(l->text, (size_t)l->len));
    assert(utf8_valid(l->text, (size_t)l->at));
    grid_clear(g);
    line_draw(l, g, (struct rect){1, 0, 10, 1}, &(struct line_look){.label = "/", .bad_end = 3});
    assert(grid_cursor_at(g, &x, &y) && x >= 2 && x <= 10 && y == 0);
}

static void
take(struct decoder *d, int64_t now, struct line *l, struct grid *g)
{
    struct key k;

    while (decoder_next(d, now, &k)) {
        check_word(&k);
        line_key(l, &k);
        check_line(l, g);
    }
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct decoder d = {0};
    struct line_history history = {0};
    struct grid *g = grid_new(12, 1, false);
    struct line line;
    struct key k;

    line_init(&line, &history, "");
    for (size_t i = 0; i < size; i++) {
        if (data[i] == 0xFF)
            decoder_paste(&d, i % 2 == 0);
        else if (data[i] == 0xFE)
            decoder_pause(&d);
        else
            decoder_byte(&d, data[i]);
        take(&d, (int64_t)i * 50, &line, g);
    }
    key_parse((const char *)data, size, &k);
    decoder_reset(&d);
    decoder_done(&d);
    line_done(&line);
    line_history_done(&history);
    grid_free(g);
    return 0;
}
