/*
 * The sanitiser against a table of inputs and outputs, for list cells and for detail views; the
 * decoder, and the printers of JSON and bytes.
 */
#include "tests/harness.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "model/base/diff.h"
#include "model/base/text.h"

static void
check(enum text_mode mode, int max, const char *in, size_t len, const char *want)
{
    struct buf out = {0};

    text_clean(&out, in, len, mode, max);
    assert_string_equal(out.data ? out.data : "", want);
    buf_free(&out);
}

static void
line(const char *in, const char *want)
{
    check(TEXT_LINE, -1, in, strlen(in), want);
}

static void
detail(const char *in, const char *want)
{
    check(TEXT_DETAIL, -1, in, strlen(in), want);
}

static void
test_plain(void **state)
{
    (void)state;
    line("", "");
    line("hello, wörld", "hello, wörld");
    line("日本語 한글 😀", "日本語 한글 😀");
    detail("a\nb\n", "a\nb\n");
    detail("a\n\nb", "a\n\nb");
}

static void
test_controls(void **state)
{
    (void)state;
    line("\033[31mred\a\r\n\t\x7f", "␛[31mred␇␍␊␉␡");
    check(TEXT_LINE, -1, "a\0b", 3, "a␀b");
    detail("\033[31m\r\n\x7f", "\\x1b[31m\\x0d\n\\x7f");
    detail("\tx\ty", "        x       y");
    detail("abc\tx\n\ty", "abc     x\n        y");
}

static void
test_bad_bytes(void **state)
{
    (void)state;
    line("\xff\xfe", "\uFFFD\uFFFD");
    line("\xc0\xaf", "\uFFFD\uFFFD");                               /* overlong */
    line("\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD");                     /* surrogate */
    line("\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD");           /* beyond Unicode */
    line("\xe6\x97", "\uFFFD\uFFFD");                               /* cut short */
    line("\xc2\x9b\xe2\x80\xa8\xef\xbf\xbe", "\uFFFD\uFFFD\uFFFD"); /* C1, U+2028, U+FFFE */
    detail("\xff\xe6\x97", "\\xff\\xe6\\x97");
    detail("\xc2\x9b\xe2\x80\xa9\xef\xb7\x90", "\\u{009b}\\u{2029}\\u{fdd0}");
}

static void
test_hidden(void **state)
{
    static const char *const hidden[] = {"\u00AD", "\u061C", "\u200B", "\u200E",    "\u202E",
                                         "\u2060", "\u2066", "\u206F", "\uFEFF",    "\uFFF9",
                                         "\u115F", "\u1160", "\u3164", "\U000E0041"};

    (void)state;
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        line(hidden[i], "\uFFFD");
    detail("a\u202Eb\U000E0041", "a\\u{202e}b\\u{e0041}");
    line("a\u200Db\uFE0F!", "ab!");
    detail("a\u200Db\uFE0F!", "ab!");
}

static void
test_marks(void **state)
{
    (void)state;
    line("e\u0301", "e\u0301");
    line("e\u0301\u0302\u0303\u0304\u0305\u0306x", "e\u0301\u0302\u0303\u0304x");
    line("\u0301x", "\u25CC\u0301x");
    line("e\u200D\u0301", "e\u0301");
    line("\033\u0301", "␛\u25CC\u0301");
    assert_int_equal(text_width("e\u0301\u0302", 5, TEXT_LINE), 1);
}

static void
test_clip(void **state)
{
    (void)state;
    check(TEXT_LINE, 5, "hello", 5, "hello");
    check(TEXT_LINE, 4, "hello", 5, "hel…");
    check(TEXT_LINE, 1, "hello", 5, "…");
    check(TEXT_LINE, 0, "hello", 5, "");
    check(TEXT_LINE, 4, "日本語", 9, "日…"); /* half of a wide glyph is never kept */
    check(TEXT_LINE, 3, "日本語", 9, "日…");
    check(TEXT_LINE, 2, "日本語", 9, "…");
    check(TEXT_DETAIL, 3, "abcdef\nab", 9, "ab…\nab");
}

static void
test_width(void **state)
{
    (void)state;
    assert_int_equal(text_width("日本", 6, TEXT_LINE), 4);
    assert_int_equal(text_width("\033", 1, TEXT_LINE), 1);
    assert_int_equal(text_width("\033", 1, TEXT_DETAIL), 4);
    assert_int_equal(text_width("a\u202E", 4, TEXT_DETAIL), 9);
}

static void
test_ascii(void **state)
{
    struct text_iter it;
    struct glyph g;
    char out[32] = "";

    (void)state;
    text_start(&it, "×●─日é\033…", strlen("×●─日é\033…"), TEXT_LINE, true);
    while (text_next(&it, &g)) {
        assert_int_equal(g.width, 1);
        memcpy(out + strlen(out), g.utf8, 2);
    }
    assert_string_equal(out, "x*-???~");
}

static void
test_utf8(void **state)
{
    char s[4];
    uint32_t back = 0;

    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        int n = utf8_encode(cp, s), want = cp >= 0xD800 && cp <= 0xDFFF ? 0 : n;
        if (utf8_decode(s, 4, &back) != want || (want && back != cp))
            fail_msg("U+%04X", (unsigned)cp);
        if (n > 1 && utf8_decode(s, (size_t)n - 1, &back))
            fail_msg("U+%04X cut short was taken", (unsigned)cp);
    }
    assert_true(utf8_valid("aé日😀", 10));
    assert_false(utf8_valid("\xf8\x88\x80\x80\x80", 5));
}

static void
pretty(const char *in, const char *want)
{
    struct buf out = {0};

    json_pretty(&out, in, strlen(in));
    assert_string_equal(out.data ? out.data : "", want);
    buf_free(&out);
}

static void
test_json(void **state)
{
    (void)state;
    pretty("1e5", "1e5");
    pretty("[ ]", "[]");
    pretty("[1,2 , 3]", "[1, 2, 3]");
    pretty("{\"a\":1,\"a\":1.0}", "{ \"a\": 1, \"a\": 1.0 }");
    pretty("{\"a\":[1,{\"b\":{}}]}",
           "{\n  \"a\": [\n    1,\n    {\n      \"b\": {}\n    }\n  ]\n}");
    pretty("{\"s\": \"a\\\"]\", \"t\": [[]]}",
           "{\n  \"s\": \"a\\\"]\",\n  \"t\": [\n    []\n  ]\n}");
    pretty("{\"a\":01}", "{\"a\":01}");
    pretty("[1,]", "[1,]");
    pretty("{\"a\" 1}", "{\"a\" 1}");
    pretty("[\"\n\"]", "[\"\n\"]");
    pretty("nul", "nul");
    pretty("", "");
    pretty("[1] x", "[1] x");
}

static void
test_json_deep(void **state)
{
    struct buf in = {0}, out = {0};

    (void)state;
    for (int i = 0; i < 5000; i++)
        buf_str(&in, "[");
    for (int i = 0; i < 5000; i++)
        buf_str(&in, "]");
    json_pretty(&out, in.data, in.len);
    assert_true(out.len > in.len && out.len < 100000);
    buf_free(&in);
    buf_free(&out);
}

static void
checks(const char *json, const char *where, const char *compact)
{
    struct buf out = {0};
    char at[40] = "";
    int line, column;

    if (!json_check(json, strlen(json), &line, &column))
        snprintf(at, sizeof at, "%d:%d", line, column);
    assert_string_equal(at, where);
    buf_str(&out, "");
    json_compact(&out, json, strlen(json));
    assert_string_equal(out.data, compact);
    buf_free(&out);
}

static void
test_json_check(void **state)
{
    (void)state;
    checks(" { \"a b\" : [1 , 2e3],\n\"\\\"\": null } ", "", "{\"a b\":[1,2e3],\"\\\"\":null}");
    checks("", "1:1", "");
    checks("{\n  \"é\": 1,\n}", "3:1", "{\n  \"é\": 1,\n}");
    checks("[\"é\", oops]", "1:7", "[\"é\", oops]");
    checks("1 2", "1:3", "1 2");
    checks("[1", "1:3", "[1");
}

static void
differs(const char *was, const char *is, const char *want)
{
    struct buf out = {0};

    buf_str(&out, "");
    diff_lines(&out, was, is, 2);
    assert_string_equal(out.data, want);
    buf_free(&out);
}

static void
test_diff(void **state)
{
    (void)state;
    differs("a\nb\nc", "a\nb\nc", "");
    differs("a\nb\nc", "a\nx\nc", "- b\n+ x\n");
    differs("a\nc", "a\nb\nc", "+ b\n");
    differs("a\na\n", "a\n", "- a\n");
    differs("", "x", "+ x\n");
    differs("1\n2\n3\n4", "9", "- 1\n- 2\n- … 2 more lines\n+ 9\n");
    differs("same", "same\n", "- same\n+ same\n");
}

static void
test_json_string(void **state)
{
    struct buf out = {0};

    (void)state;
    json_string(&out, "a\"\\\n\0\033\xff\u202Eé😀", 16);
    assert_string_equal(out.data, "\"a\\\"\\\\\\n\\u0000\\u001b\uFFFD\\u202eé😀\"");
    buf_clear(&out);
    json_string(&out, "\U000E0041", 4);
    assert_string_equal(out.data, "\"\\udb40\\udc41\"");
    buf_free(&out);
}

static void
test_hex(void **state)
{
    struct buf out = {0};

    (void)state;
    hex_dump(&out, (const unsigned char *)"0123456789abcdef\n", 17);
    assert_string_equal(out.data,
                        "00000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  "
                        "|0123456789abcdef|\n"
                        "00000010  0a                                                |.|\n");
    buf_free(&out);
}

/* A text that is cut ends in an ellipsis after a whole character. */
static void
test_print(void **state)
{
    char text[12];

    (void)state;
    text_print(text, sizeof text, "%s", "漢字 ab");
    assert_string_equal(text, "漢字 ab");
    text_print(text, sizeof text, "%s", "漢字漢ab"); /* 11 bytes: there is just room */
    assert_string_equal(text, "漢字漢ab");
    text_print(text, sizeof text, "%s", "漢字漢abc");
    assert_string_equal(text, "漢字…");
    text_print(text, sizeof text, "a%s", "漢字漢字");
    assert_string_equal(text, "a漢字…");
    text_print(text, sizeof text, "abc%s", "漢字漢字");
    assert_string_equal(text, "abc漢…");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),      cmocka_unit_test(test_controls),
        cmocka_unit_test(test_bad_bytes),  cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_marks),      cmocka_unit_test(test_clip),
        cmocka_unit_test(test_width),      cmocka_unit_test(test_ascii),
        cmocka_unit_test(test_utf8),       cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_check), cmocka_unit_test(test_diff),
        cmocka_unit_test(test_json_deep),  cmocka_unit_test(test_json_string),
        cmocka_unit_test(test_hex),        cmocka_unit_test(test_print),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
