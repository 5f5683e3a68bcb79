/* A line that the user types. The text is always valid UTF-8 without control or invisible
 * characters, so that the user sees exactly what the line holds. */
#include "ui/widget/prompt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "model/base/text.h"

/* --- history ---------------------------------------------------------------------------------- */

void
line_history_add(struct line_history *h, const char *s)
{
    if (!*s || (h->n > 0 && !strcmp(h->items[h->n - 1], s)))
        return;
    if (h->n == LINE_HISTORY) {
        free(h->items[0]);
        memmove(h->items, h->items + 1, (size_t)--h->n * sizeof h->items[0]);
    }
    h->items[h->n++] = xstrdup(s);
}

void
line_history_done(struct line_history *h)
{
    for (int i = 0; i < h->n; i++)
        free(h->items[i]);
    h->n = 0;
}

/* --- the text --------------------------------------------------------------------------------- */

static uint32_t
char_at(const struct line *l, int at, int *len)
{
    uint32_t cp = 0;

    *len = at < l->len ? utf8_decode(l->text + at, (size_t)(l->len - at), &cp) : 0;
    return cp;
}

static bool
is_mark(const struct line *l, int at)
{
    int len;
    uint32_t cp = char_at(l, at, &len);

    return len > 1 && wcwidth((wchar_t)cp) == 0;
}

/* One step over a character with its combining marks. */
static int
step_right(const struct line *l, int at)
{
    int len;

    do {
        char_at(l, at, &len);
        at += len;
    } while (len > 0 && is_mark(l, at));
    return at;
}

static int
step_left(const struct line *l, int at)
{
    do {
        at -= at > 0;
        while (at > 0 && ((unsigned char)l->text[at] & 0xC0) == 0x80)
            at--;
    } while (at > 0 && is_mark(l, at));
    return at;
}

static enum line_answer
cut(struct line *l, int from, int to)
{
    if (from == to)
        return LINE_MOVED;
    memmove(l->text + from, l->text + to, (size_t)(l->len - to) + 1);
    l->len -= to - from;
    l->at = from;
    return LINE_CHANGED;
}

static bool
insert(struct line *l, uint32_t cp)
{
    char c[4];
    int n = utf8_encode(cp, c);

    if (l->len + n > LINE_MAX_BYTES || !text_is_plain(cp))
        return false;
    if (l->digits_only && (cp < '0' || cp > '9'))
        return false;
    memmove(l->text + l->at + n, l->text + l->at, (size_t)(l->len - l->at) + 1);
    memcpy(l->text + l->at, c, (size_t)n);
    l->len += n;
    l->at += n;
    return true;
}

/* Returns how many characters were left out. */
static int
insert_text(struct line *l, const char *s, size_t len)
{
    int lost = 0;

    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        int n = utf8_decode(s + i, len - i, &cp);
        if (n == 1 && (cp == '\n' || cp == '\r' || cp == '\t'))
            cp = ' ';
        if (n == 0 || !insert(l, cp))
            lost++;
        i += n > 0 ? (size_t)n : 1;
    }
    return lost;
}

static enum line_answer
paste(struct line *l, const struct key *k)
{
    int before = l->len;

    l->lost = insert_text(l, k->paste, k->paste_len);
    return l->len > before ? LINE_CHANGED : LINE_MOVED;
}

static enum line_answer
type(struct line *l, uint32_t cp)
{
    bool typed = insert(l, cp);

    l->lost = !typed;
    return typed ? LINE_CHANGED : LINE_MOVED;
}

void
line_init(struct line *l, struct line_history *history, const char *text)
{
    *l = (struct line){.history = history, .place = history ? history->n : 0};
    line_set(l, text ? text : "");
}

void
line_done(struct line *l)
{
    free(l->kept);
    l->kept = NULL;
    explicit_bzero(l->text, sizeof l->text);
    l->len = l->at = 0;
}

void
line_set(struct line *l, const char *text)
{
    l->len = l->at = 0;
    l->text[0] = 0;
    insert_text(l, text, strlen(text));
}

bool
line_fits(const char *text)
{
    size_t len = strlen(text);
    uint32_t cp;

    for (size_t i = 0; i < len;) {
        int n = utf8_decode(text + i, len - i, &cp);
        if (n == 0 || !text_is_plain(cp))
            return false;
        i += (size_t)n;
    }
    return len <= LINE_MAX_BYTES;
}

bool
line_say_lost(const struct line *l, struct buf *out)
{
    bool one = l->lost == 1, full = l->len > LINE_MAX_BYTES - 4; /* 4: the longest character */

    if (l->lost == 0)
        return false;
    buf_printf(out, "%d character%s left out: %s", l->lost, one ? " was" : "s were",
               full  ? "the line is full"
               : one ? "a line can't show it"
                     : "a line can't show them");
    return true;
}

/* --- keys ------------------------------------------------------------------------------------- */

static enum line_answer
walk_history(struct line *l, int step)
{
    struct line_history *h = l->history;
    int to = l->place + step;

    if (!h || to < 0 || to > h->n)
        return LINE_MOVED;
    if (l->place >= h->n) {
        free(l->kept);
        l->kept = xstrdup(l->text);
    }
    l->place = to;
    line_set(l, to < h->n ? h->items[to] : l->kept ? l->kept : "");
    return LINE_CHANGED;
}

static int
word_start(const struct line *l)
{
    int at = l->at;

    while (at > 0 && l->text[at - 1] == ' ')
        at--;
    while (at > 0 && l->text[at - 1] != ' ')
        at--;
    return at;
}

static enum line_answer
move_to(struct line *l, int at)
{
    l->at = at;
    return LINE_MOVED;
}

static enum line_answer
done(struct line *l)
{
    if (l->history && !l->secret) {
        line_history_add(l->history, l->text);
        l->place = l->history->n;
    }
    return LINE_DONE;
}

static enum line_answer
do_done(struct line *l)
{
    return done(l);
}
static enum line_answer
do_cancel(struct line *l)
{
    (void)l;
    return LINE_CANCEL;
}
static enum line_answer
do_complete(struct line *l)
{
    (void)l;
    return LINE_COMPLETE;
}
static enum line_answer
do_home(struct line *l)
{
    return move_to(l, 0);
}
static enum line_answer
do_end(struct line *l)
{
    return move_to(l, l->len);
}
static enum line_answer
do_left(struct line *l)
{
    return move_to(l, step_left(l, l->at));
}
static enum line_answer
do_right(struct line *l)
{
    return move_to(l, step_right(l, l->at));
}
static enum line_answer
do_cut_start(struct line *l)
{
    return cut(l, 0, l->at);
}
static enum line_answer
do_cut_end(struct line *l)
{
    return cut(l, l->at, l->len);
}
static enum line_answer
do_cut_word(struct line *l)
{
    return cut(l, word_start(l), l->at);
}
static enum line_answer
do_delete(struct line *l)
{
    return cut(l, l->at, step_right(l, l->at));
}
static enum line_answer
do_up(struct line *l)
{
    return walk_history(l, -1);
}
static enum line_answer
do_down(struct line *l)
{
    return walk_history(l, 1);
}

static enum line_answer
do_backspace(struct line *l)
{
    return l->len == 0 ? LINE_CANCEL : cut(l, step_left(l, l->at), l->at);
}

static const struct {
    const char *keys;
    enum line_answer (*act)(struct line *l);
} edits[] = {
    {"Enter",         do_done     },
    {"Esc",           do_cancel   },
    {"Tab S-Tab",     do_complete },
    {"Backspace C-h", do_backspace},
    {"Home C-a",      do_home     },
    {"End C-e",       do_end      },
    {"Left C-b",      do_left     },
    {"Right C-f",     do_right    },
    {"C-u",           do_cut_start},
    {"C-k",           do_cut_end  },
    {"C-w",           do_cut_word },
    {"Delete C-d",    do_delete   },
    {"Up C-p",        do_up       },
    {"Down C-n",      do_down     },
};

void
line_select(struct line *l)
{
    l->whole = l->len > 0;
}

enum line_answer
line_key(struct line *l, const struct key *k)
{
    bool whole = l->whole;
    bool is_text = k->code >= ' ' && k->code < KC_ENTER && !(k->mods & (MOD_CTRL | MOD_ALT));

    assert(l->at >= 0 && l->at <= l->len && l->len <= LINE_MAX_BYTES);
    l->whole = false;
    l->lost = 0;
    if (whole && (k->code == KC_PASTE || key_is_char(k)))
        cut(l, 0, l->len);
    else if (whole && key_in(k, "Backspace C-h Delete C-d C-w"))
        return cut(l, 0, l->len);
    if (k->code == KC_PASTE)
        return paste(l, k);
    if (is_text) /* also characters that can't be shown: they are counted */
        return type(l, k->code);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        if (key_in(k, edits[i].keys))
            return edits[i].act(l);
    return LINE_IGNORED;
}

/* --- drawing ---------------------------------------------------------------------------------- */

/* The first byte to draw so that the cursor's cell is within w cells. */
static int
first_byte(const struct line *l, int w)
{
    int from = 0, cells = text_width(l->text, (size_t)l->at, TEXT_LINE);

    while (cells >= w && from < l->at) {
        int next = step_right(l, from);
        cells -= text_width(l->text + from, (size_t)(next - from), TEXT_LINE);
        from = next;
    }
    return from;
}

static void
draw_stars(const struct line *l, struct grid *g, struct rect r)
{
    int n = text_width(l->text, (size_t)l->at, TEXT_LINE);

    n = n < r.w ? n : r.w - 1;
    for (int i = 0; i < n; i++)
        grid_str(g, (struct rect){r.x + i, r.y, 1, 1}, ROLE_INPUT, "*");
    grid_cursor(g, r.x + (n > 0 ? n : 0), r.y);
}

void
line_draw(const struct line *l, struct grid *g, struct rect r, const struct line_look *look)
{
    r = rect_row(r, 0);
    if (r.w <= 0 || r.h <= 0)
        return;
    if (look->label)
        rect_cut_left(&r, grid_str(g, r, look->label_role, look->label));
    if (r.w <= 0)
        return;
    if (l->secret) {
        draw_stars(l, g, r);
        return;
    }
    int from = first_byte(l, r.w), borders[] = {look->bad_at, look->bad_end, l->len};
    struct pen pen = pen_start(g, r);

    grid_cursor(g, r.x + text_width(l->text + from, (size_t)(l->at - from), TEXT_LINE), r.y);
    for (int i = 0; i < 3; i++) {
        char part[LINE_MAX_BYTES + 1];
        int to = borders[i] < l->len ? borders[i] : l->len;
        if (to <= from)
            continue;
        memcpy(part, l->text + from, (size_t)(to - from));
        part[to - from] = 0;
        pen_put(&pen, l->whole ? ROLE_SELECTED : i == 1 ? ROLE_INPUT_BAD : ROLE_INPUT, part);
        from = to;
    }
    grid_fill(g, (struct rect){pen.r.x, r.y, pen.r.w > 0, 1}, ROLE_INPUT); /* the cursor's cell */
}
