/* The sanitiser. One pass decodes, classifies and measures. A character that a screen must not get
 * is replaced by one that can be seen, so nothing is hidden and nothing controls the terminal. Only
 * wcwidth() comes from the locale. Which characters are dangerous is decided here, because
 * iswprint() accepts characters that override the direction of text. */
#include "model/base/text.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

enum { MAX_MARKS = 4, TAB_STOP = 8 };

struct range {
    uint32_t from, to;
};

/* Invisible or order-changing characters; sorted. */
static const struct range hidden[] = {
    {0x00AD,  0x00AD }, /* soft hyphen */
    {0x034F,  0x034F }, /* combining grapheme joiner */
    {0x0600,  0x0605 }, /* number signs, invisible alone */
    {0x061C,  0x061C }, /* Arabic letter mark */
    {0x06DD,  0x06DD },
    {0x070F,  0x070F },
    {0x0890,  0x0891 },
    {0x08E2,  0x08E2 },
    {0x115F,  0x1160 }, /* fillers */
    {0x17B4,  0x17B5 },
    {0x180B,  0x180F },
    {0x200B,  0x200F }, /* zero width, direction */
    {0x2028,  0x202E }, /* separators, embeddings, overrides */
    {0x2060,  0x206F }, /* joiners, isolates */
    {0x3164,  0x3164 }, /* filler */
    {0xD800,  0xF8FF }, /* surrogates, private use */
    {0xFDD0,  0xFDEF }, /* noncharacters */
    {0xFEFF,  0xFEFF },
    {0xFFA0,  0xFFA0 }, /* filler */
    {0xFFF0,  0xFFFB },
    {0x110BD, 0x110BD},
    {0x110CD, 0x110CD},
    {0x13430, 0x1343F},
    {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A},
    {0xE0000, 0xE0FFF}, /* tags */
};

/* Our own glyphs as ASCII, for terminals and locales without UTF-8; sorted. */
static const struct {
    uint32_t cp;
    char ascii;
} replacements[] = {
    {0x00A0, ' ' },
    {0x00B5, 'u' },
    {0x00B7, '.' },
    {0x00D7, 'x' },
    {0x2013, '-' },
    {0x2014, '-' },
    {0x2016, '=' },
    {0x2018, '\''},
    {0x2019, '\''},
    {0x201C, '"' },
    {0x201D, '"' },
    {0x2026, '~' },
    {0x203A, '>' },
    {0x2190, '<' },
    {0x2191, '^' },
    {0x2192, '>' },
    {0x2193, 'v' },
    {0x21BB, '@' },
    {0x221E, '-' },
    {0x2500, '-' },
    {0x2502, '|' },
    {0x250C, '+' },
    {0x2510, '+' },
    {0x2514, '+' },
    {0x2518, '+' },
    {0x251C, '+' },
    {0x2524, '+' },
    {0x2581, '_' },
    {0x2582, '.' },
    {0x2583, '-' },
    {0x2584, '=' },
    {0x2585, '+' },
    {0x2586, '*' },
    {0x2587, '#' },
    {0x2588, '#' },
    {0x2591, '.' },
    {0x25B2, '!' },
    {0x25B8, '>' },
    {0x25CF, '*' },
    {0x25D0, 'o' },
    {0x2713, '*' },
};

int
utf8_decode(const char *s, size_t len, uint32_t *cp)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)s;

    if (len == 0)
        return 0;
    if (p[0] < 0x80) {
        *cp = p[0];
        return 1;
    }
    int n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || len < (size_t)n)
        return 0;
    uint32_t c = p[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3Fu);
    }
    if (c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    *cp = c;
    return n;
}

int
utf8_encode(uint32_t cp, char out[static 4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    int n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xFFu) | cp);
    return n;
}

bool
utf8_valid(const char *s, size_t len)
{
    uint32_t cp;

    for (size_t at = 0; at < len;) {
        int n = utf8_decode(s + at, len - at, &cp);
        if (n == 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

void
text_vprint(char *to, size_t size, const char *fmt, va_list ap)
{
    int need = vsnprintf(to, size, fmt, ap);

    if (need < 0 || (size_t)need < size || size < sizeof "…")
        return;
    size_t at = size - sizeof "…";
    while (at > 0 && ((unsigned char)to[at] & 0xC0) == 0x80)
        at--;
    memcpy(to + at, "…", sizeof "…");
}

void
text_print(char *to, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_vprint(to, size, fmt, ap);
    va_end(ap);
}

bool
text_is_plain(uint32_t cp)
{
    int low = 0, high = (int)(sizeof hidden / sizeof hidden[0]) - 1;

    if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp >= 0xF0000 || (cp & 0xFFFE) == 0xFFFE)
        return false;
    while (low <= high) {
        int mid = (low + high) / 2;
        if (cp > hidden[mid].to)
            low = mid + 1;
        else if (cp < hidden[mid].from)
            high = mid - 1;
        else
            return false;
    }
    return true;
}

/* Joiner and variation selectors: dropped, so that the width of a text is the sum of its parts. */
static bool
is_dropped(uint32_t cp)
{
    return cp == 0x200D || (cp >= 0xFE00 && cp <= 0xFE0F);
}

static char
ascii_of(uint32_t cp)
{
    int low = 0, high = (int)(sizeof replacements / sizeof replacements[0]) - 1;

    if (cp < 0x80)
        return (char)cp;
    if (cp >= 0x2800 && cp <= 0x28FF) { /* braille: by the number of dots */
        int dots = __builtin_popcount(cp & 0xFF);
        return dots == 0 ? ' ' : dots < 3 ? '.' : dots < 6 ? ':' : '#';
    }
    while (low <= high) {
        int mid = (low + high) / 2;
        if (replacements[mid].cp == cp)
            return replacements[mid].ascii;
        if (replacements[mid].cp < cp)
            low = mid + 1;
        else
            high = mid - 1;
    }
    return '?';
}

static void
glyph_set(struct glyph *g, uint32_t cp, int width)
{
    char c[4];
    int n = utf8_encode(cp, c);

    memset(g->utf8, 0, sizeof g->utf8);
    memcpy(g->utf8, c, (size_t)n);
    g->width = width;
}

static void
give(struct text_iter *it, struct glyph *g, uint32_t cp, int width)
{
    if (it->ascii) {
        width = 1;
        cp = (unsigned char)ascii_of(cp);
    }
    glyph_set(g, cp, width);
    it->col += width;
}

/* Adds up to four combining marks that follow; more of them are passed over. */
static void
take_marks(struct text_iter *it, struct glyph *g)
{
    uint32_t cp;
    int n, marks = 0;

    while ((n = utf8_decode(it->s + it->at, it->len - it->at, &cp)) > 1) {
        if (!is_dropped(cp)) {
            if (!text_is_plain(cp) || wcwidth((wchar_t)cp) != 0)
                return;
            if (marks++ < MAX_MARKS && !it->ascii)
                memcpy(g->utf8 + strlen(g->utf8), it->s + it->at, (size_t)n);
        }
        it->at += (size_t)n;
    }
}

static bool
next_pending(struct text_iter *it, struct glyph *g)
{
    unsigned char c = (unsigned char)it->pending[it->pending_at];

    if (c == 0)
        return false;
    it->pending_at++;
    glyph_set(g, c, 1);
    it->col++;
    return true;
}

/* The replacement of a character that must not be shown: `n` bytes were read, 0 = an invalid byte.
 */
static bool
give_instead(struct text_iter *it, struct glyph *g, uint32_t cp, int n)
{
    if (it->mode == TEXT_LINE) {
        give(it, g, n == 0 || cp > 0x7F ? 0xFFFD : cp == 0x7F ? 0x2421 : 0x2400 + cp, 1);
        return true;
    }
    it->pending_at = 0;
    if (n == 1 && cp == '\t')
        snprintf(it->pending, sizeof it->pending, "%*s", TAB_STOP - it->col % TAB_STOP, "");
    else if (n <= 1)
        snprintf(it->pending, sizeof it->pending, "\\x%02x",
                 n ? (unsigned)cp : (unsigned char)it->s[it->at - 1]);
    else
        snprintf(it->pending, sizeof it->pending, "\\u{%04x}", (unsigned)cp);
    return next_pending(it, g);
}

void
text_start(struct text_iter *it, const char *s, size_t len, enum text_mode mode, bool ascii)
{
    *it = (struct text_iter){.s = s, .len = len, .mode = mode, .ascii = ascii};
}

/* The character cp of n bytes that was just read (n 0: an invalid byte). */
static bool
give_char(struct text_iter *it, struct glyph *g, uint32_t cp, int n)
{
    if (n == 0 || !text_is_plain(cp))
        return give_instead(it, g, cp, n);
    int width = cp < 0x80 ? 1 : wcwidth((wchar_t)cp);
    if (width < 0 && !it->ascii) /* newer than the C library, or no UTF-8 locale */
        return give_instead(it, g, cp, n);
    if (width == 0) { /* a mark without a base */
        it->at -= (size_t)n;
        cp = 0x25CC;
    }
    give(it, g, cp, width == 2 ? 2 : 1);
    take_marks(it, g);
    return true;
}

bool
text_next(struct text_iter *it, struct glyph *g)
{
    uint32_t cp = 0;

    if (next_pending(it, g))
        return true;
    while (it->at < it->len) {
        int n = utf8_decode(it->s + it->at, it->len - it->at, &cp);
        it->at += n ? (size_t)n : 1;
        if (n == 1 && cp == '\n' && it->mode == TEXT_DETAIL) {
            it->col = 0;
            return false;
        }
        if (n <= 1 || !is_dropped(cp))
            return give_char(it, g, cp, n);
    }
    return false;
}

bool
text_more(const struct text_iter *it)
{
    return it->at < it->len;
}

int
text_width(const char *s, size_t len, enum text_mode mode)
{
    struct text_iter it;
    struct glyph g;
    int w = 0;

    text_start(&it, s, len, mode, false);
    while (text_next(&it, &g))
        w += g.width;
    return w;
}

/* One line. `fit` is the length of out where one cell is still free for the ellipsis. */
static void
clean_line(struct buf *out, struct text_iter *it, int max_cells)
{
    struct glyph g;
    size_t fit = out->len;
    int w = 0;
    bool cut = false;

    while (text_next(it, &g)) {
        if (cut)
            continue;
        if (max_cells >= 0 && w + g.width > max_cells) {
            cut = true;
            if (it->mode == TEXT_LINE)
                break;
            continue;
        }
        buf_str(out, g.utf8);
        w += g.width;
        if (w < max_cells)
            fit = out->len;
    }
    if (!cut)
        return;
    out->len = fit;
    if (out->data)
        out->data[fit] = 0;
    if (max_cells > 0)
        buf_str(out, "\u2026");
}

void
text_clean(struct buf *out, const char *s, size_t len, enum text_mode mode, int max_cells)
{
    struct text_iter it;

    text_start(&it, s, len, mode, false);
    clean_line(out, &it, max_cells);
    while (mode == TEXT_DETAIL && it.at > 0 && s[it.at - 1] == '\n') {
        buf_str(out, "\n");
        if (!text_more(&it))
            break;
        clean_line(out, &it, max_cells);
    }
}
