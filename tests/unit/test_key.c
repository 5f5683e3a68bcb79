/* Words of keys, lists of words, and bytes of a terminal as keys. */
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

#include "ui/term/term_key.h"

static void
test_words(void **state)
{
    static const char *const words[] = {"r",   "R",      "?",         "é",      "Space", "Enter",
                                        "Esc", "Tab",    "S-Tab",     "PgDn",   "Up",    "F1",
                                        "F12", "C-l",    "Backspace", "Delete", "-",     "C--",
                                        "M-x", "C-Left", "C-Space",   "C-M-a"};
    static const char *const wrong[] = {"",     "xx",  "F13",  "enter", " ",
                                        "\033", "S-a", "\xff", "\u202E"};
    struct key k;

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_true(key_parse(words[i], strlen(words[i]), &k));
        assert_string_equal(key_word(&k).s, words[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(key_parse(wrong[i], strlen(wrong[i]), &k));
    assert_true(key_parse("C-m", 3, &k) && k.code == KC_ENTER && k.mods == 0);
    assert_true(key_parse("C-[", 3, &k) && k.code == KC_ESC);
    assert_true(key_parse("C-L", 3, &k) && k.code == 'l');
}

static void
test_lists(void **state)
{
    struct key j = {.code = 'j'}, down = {.code = KC_DOWN}, shift_j = {.code = 'J'}, k;
    const char *at = " j  Down bad! x", *start = at;
    struct key paste = {.code = KC_PASTE};

    (void)state;
    assert_true(key_in(&j, "j Down") && key_in(&down, "j Down"));
    assert_false(key_in(&shift_j, "j Down") || key_in(&j, "") || key_in(&paste, "j Down"));
    assert_true(key_next(&at, &k) && k.code == 'j');
    assert_true(key_next(&at, &k) && k.code == KC_DOWN);
    assert_false(key_next(&at, &k));
    assert_ptr_equal(at, start + 9);
    at = "j ";
    assert_true(key_next(&at, &k) && !key_next(&at, &k) && *at == 0);
    assert_true(key_lists_meet("a b", "c b") && !key_lists_meet("a b", "c d"));
}

/* The names of the events that bytes give. "|" is a pause, "<" and ">" begin and end a paste. */
static const char *
decode(const char *bytes)
{
    static char words[400];
    struct decoder d = {0};
    struct key k;

    words[0] = 0;
    for (const char *s = bytes; *s; s++) {
        if (*s == '|')
            decoder_pause(&d);
        else if (*s == '<' || *s == '>')
            decoder_paste(&d, *s == '<');
        else
            decoder_byte(&d, (unsigned char)*s);
        while (decoder_next(&d, 1, &k)) {
            size_t n = strlen(words);
            if (k.code == KC_PASTE)
                snprintf(words + n, sizeof words - n, "paste(%.*s) ", (int)k.paste_len, k.paste);
            else
                snprintf(words + n, sizeof words - n, "%s ", key_word(&k).s);
        }
    }
    decoder_done(&d);
    return words;
}

static void
test_decode(void **state)
{
    (void)state;
    assert_string_equal(decode("aZ "), "a Z Space ");
    assert_string_equal(decode("\r\n\t\x7f\b"), "Enter Enter Tab Backspace Backspace ");
    assert_string_equal(decode("\x03\x0c\x1f"), "C-c C-l C-_ ");
    assert_string_equal(decode("\xe6\x97\xa5\xc3|\xa9"), "日 é ");
    assert_string_equal(decode("\xff\xe6\x97x\xa5y"), "x y ");
}

static void
test_escapes(void **state)
{
    (void)state;
    assert_string_equal(decode("\033|q"), "Esc q ");
    assert_string_equal(decode("\033q"), "Esc q ");
    assert_string_equal(decode("\033\033|"), "Esc Esc ");
    assert_string_equal(decode("\033[A\033OB\033[H\033[4~\033[6~"), "Up Down Home End PgDn ");
    assert_string_equal(decode("\033[1;5C\033[3;2~\033[Z"), "C-Right S-Delete S-Tab ");
    assert_string_equal(decode("\033[15~\033OP\033[24~"), "F5 F1 F12 ");
    assert_string_equal(decode("\033[|1;|5|Cx"), "C-Right x "); /* in pieces */
    /* an unknown sequence is swallowed, not typed */
    assert_string_equal(decode("\033[Ix\033[?1;2cy\033[99~z\033[1;2;3Xw"), "x y z w ");
    assert_string_equal(decode("\033[12345678901234567890123456789012345678901234567890~x"), "x ");
}

static void
test_paste(void **state)
{
    struct decoder d = {0};
    struct key k;

    (void)state;
    assert_string_equal(decode("a<y\r\033[A>b"), "a paste(y\r\033[A) b ");
    assert_string_equal(decode("<>b"), "b ");
    decoder_paste(&d, true);
    for (int i = 0; i < PASTE_MAX + 10; i++)
        decoder_byte(&d, 'x');
    assert_false(decoder_next(&d, 100, &k));
    assert_false(decoder_next(&d, 100 + PASTE_WAIT_MS, &k));
    assert_true(decoder_next(&d, 101 + PASTE_WAIT_MS, &k)); /* the end of the paste never came */
    assert_true(k.code == KC_PASTE && k.paste_len == PASTE_MAX);
    decoder_byte(&d, 'q');
    assert_true(decoder_next(&d, 2000, &k) && k.code == 'q' && k.ms == 2000);
    decoder_done(&d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),   cmocka_unit_test(test_lists), cmocka_unit_test(test_decode),
        cmocka_unit_test(test_escapes), cmocka_unit_test(test_paste),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
