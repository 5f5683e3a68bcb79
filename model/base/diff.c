/*
 * The lines between the common beginning and the common end of two texts.
 */
#include "model/base/diff.h"

#include <string.h>

#include "model/base/text.h"

enum { LINE = 120 };

static size_t
line_len(const char *s)
{
    size_t n = strcspn(s, "\n");

    return n + (s[n] == '\n');
}

/* The start of the line that ends at `end` (behind its newline); not before `from`. */
static const char *
line_before(const char *from, const char *end)
{
    const char *s = end - (end > from);

    while (s > from && s[-1] != '\n')
        s--;
    return s;
}

static void
add_line(struct buf *out, char sign, const char *s, size_t len)
{
    size_t cut = len > LINE ? LINE : len;

    while (cut < len && cut > 0 && ((unsigned char)s[cut] & 0xC0) == 0x80)
        cut--;
    buf_printf(out, "%c ", sign);
    buf_add(out, s, cut);
    buf_str(out, cut < len ? "…\n" : "\n");
}

static void
add_lines(struct buf *out, char sign, const char *s, const char *end, int most)
{
    int more = 0;

    for (int i = 0; s < end; i++, s += line_len(s)) {
        size_t len = line_len(s);
        if (s + len > end)
            len = (size_t)(end - s);
        if (i < most)
            add_line(out, sign, s, len - (s[len - 1] == '\n'));
        else
            more++;
    }
    if (more > 0)
        buf_printf(out, "%c … %d more line%s\n", sign, more, more == 1 ? "" : "s");
}

void
diff_lines(struct buf *out, const char *was, const char *is, int lines)
{
    const char *was_end = was + strlen(was), *is_end = is + strlen(is);

    while (*was && *is) {
        size_t n = line_len(was);
        if (n != line_len(is) || memcmp(was, is, n) != 0)
            break;
        was += n;
        is += n;
    }
    while (was_end > was && is_end > is) {
        const char *a = line_before(was, was_end), *b = line_before(is, is_end);
        if (was_end - a != is_end - b || memcmp(a, b, (size_t)(is_end - b)) != 0)
            break;
        was_end = a;
        is_end = b;
    }
    add_lines(out, '-', was, was_end, lines);
    add_lines(out, '+', is, is_end, lines);
}
