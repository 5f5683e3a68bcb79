/* The only place that makes foreign text safe to show. It decodes UTF-8 strictly, replaces what a
 * terminal must not get, measures in cells, and clips. Every byte from a server, a job or a file
 * goes through it before it reaches a screen, a terminal or the log. */
#ifndef MODEL_BASE_TEXT_H
#define MODEL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"

/* One cell's worth of text: a base and up to 4 combining marks, as UTF-8. */
struct glyph {
    char utf8[24];
    int width; /* 1 or 2 */
};

enum text_mode {
    TEXT_LINE,  /* list cells: control pictures, U+FFFD; everything on one line */
    TEXT_DETAIL /* detail views: \x1b, \u{202e}; newline ends the line, tab to 8 */
};

struct text_iter {
    const char *s;
    size_t len;
    size_t at;
    int col; /* cells returned so far: a tab fills up to the next stop */
    enum text_mode mode;
    bool ascii;       /* only ASCII comes out: '?' for what is not */
    char pending[16]; /* rest of an escape that is returned cell by cell */
    int pending_at;
};
void text_start(struct text_iter *it, const char *s, size_t len, enum text_mode mode, bool ascii);
/* The next cell; false at the end (and in TEXT_DETAIL at a newline, which is consumed: it->at is
 * then where the next line starts; text_more says whether there is one). */
bool text_next(struct text_iter *it, struct glyph *g);
bool text_more(const struct text_iter *it);

/* Cells that s takes in mode. */
int text_width(const char *s, size_t len, enum text_mode mode);
/* Appends the sanitised form of s to out, at most max_cells cells (< 0: all), with an ellipsis when
 * cut. In TEXT_DETAIL lines stay lines and each has max_cells of its own. */
void text_clean(struct buf *out, const char *s, size_t len, enum text_mode mode, int max_cells);

/* True if a screen may show this character unchanged. False for control, format and filler
 * characters, private characters and noncharacters. True for combining marks. Does not depend on
 * the locale. */
bool text_is_plain(uint32_t cp);

/* Like snprintf, but a text that does not fit ends in an ellipsis, never in half a character. */
void text_print(char *to, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void text_vprint(char *to, size_t size, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* Decodes one UTF-8 sequence at s. Returns its length (1 to 4) and its code point in *cp; 0 =
 * invalid. Does not depend on the locale. */
int utf8_decode(const char *s, size_t len, uint32_t *cp);
int utf8_encode(uint32_t cp, char out[static 4]);
bool utf8_valid(const char *s, size_t len);

/* Prints JSON with other white space between its parts and nothing else changed: 2 spaces a level,
 * short lists of plain values on one line. Input that is not JSON comes out unchanged. Nesting
 * deeper than 200 levels stays on one line. */
void json_pretty(struct buf *out, const char *s, size_t len);
/* The same without any white space between the parts. */
void json_compact(struct buf *out, const char *s, size_t len);
/* True if s is JSON. If not, line and column (from 1, in characters) say where the first error is.
 */
bool json_check(const char *s, size_t len, int *line, int *column);
/* Appends s as a JSON string with quotes; invalid UTF-8 becomes U+FFFD, characters that are not
 * text_is_plain become \uNNNN. */
void json_string(struct buf *out, const char *s, size_t len);
/* Appends text that is JSON already. Characters that are not text_is_plain become \uNNNN; the rest
 * is unchanged. */
void json_armour(struct buf *out, const char *s, size_t len);
/* Classic dump: offset, 16 bytes in hex, printable ASCII. */
void hex_dump(struct buf *out, const unsigned char *p, size_t len);

#endif
