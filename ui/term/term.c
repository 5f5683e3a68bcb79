/* The screen through ncurses. Two things are unusual. First, ncurses writes into a file in memory,
 * and tty.c sends the content when the terminal is ready, so that a slow terminal never stops the
 * loop; for this reason tty.c also sets the modes. Second, bytes of input are decoded here and not
 * by get_wch(), which loses a character whose bytes come in two reads. */
#include "ui/term/term.h"

#include <curses.h>
#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/text.h"
#include "ui/term/term_key.h"
#include "ui/term/tty.h"

enum { ESC_DELAY_MS = 25, PASTE_ON = 0770, PASTE_OFF = 0771, EXTENDED = 400 };

struct term {
    struct tty *tty;
    FILE *in, *out; /* out is the file in memory */
    int mem;
    SCREEN *screen;
    WINDOW *keys; /* a pad: reading keys from it never draws */
    enum theme theme;
    bool ascii, sync;
    int w, h;
    struct cell *shown; /* the cells that ncurses has got, w * h */
    bool repaint;
    bool taken;
    struct decoder decoder;
};

/* --- capabilities --- */

static void
add_cap(struct buf *b, const char *name)
{
    const char *s = tigetstr(name);

    if (s && s != (const char *)-1)
        tty_unpad(b, s);
}

/* The bytes that lead from any state of this program back to the shell's. */
static void
add_way_out(struct buf *b, bool mouse)
{
    if (mouse)
        buf_str(b, "\033[?1006l\033[?1000l");
    buf_str(b, "\033[?2004l");
    add_cap(b, "rmkx");
    add_cap(b, "op");
    add_cap(b, "sgr0");
    add_cap(b, "rmcup");
    add_cap(b, "cnorm");
    buf_str(b, "\r");
}

/* --- colours --- */

static void
start_colors(struct term *t, const struct term_options *o)
{
    static const int needs[THEMES] = {256, 256, 256, 16, 8, 0}; /* colours, by theme */
    int colors = tigetnum("colors");
    enum theme named;

    t->theme = style_choose(colors, o->color, getenv("NO_COLOR"), false);
    if (t->theme == THEME_MONO)
        return;
    if (o->theme && style_theme(o->theme, &named) && needs[named] <= colors)
        t->theme = named;
    start_color();
    use_default_colors();
    for (int i = 0; i < ROLES; i++) {
        struct style s = style_on(t->theme, (enum role)i, GROUND_NONE);
        init_pair((short)(i + 1), s.fg, s.bg);
        s = style_on(t->theme, (enum role)i, GROUND_ROW);
        init_pair((short)(ROLES + i + 1), s.fg, s.bg);
    }
}

/* --- output --- */

/* Moves the output of ncurses from memory to the queue. */
static void
collect(struct term *t, struct buf *out)
{
    char part[8192];
    off_t at = 0;
    ssize_t n;

    while ((n = pread(t->mem, part, sizeof part, at)) > 0) {
        buf_add(out, part, (size_t)n);
        at += n;
    }
    if (at > 0 && ftruncate(t->mem, 0) == 0)
        lseek(t->mem, 0, SEEK_SET);
}

static void
send_out(struct term *t, bool frame)
{
    struct buf b = {0};

    collect(t, &b);
    if (b.len > 0) {
        bool sync = frame && t->sync;
        if (sync)
            tty_put(t->tty, "\033[?2026h", 8);
        tty_put(t->tty, b.data, b.len);
        if (sync)
            tty_put(t->tty, "\033[?2026l", 8);
    }
    buf_free(&b);
    tty_flush(t->tty);
}

static attr_t
attrs_of(const struct style *s)
{
    return (s->attrs & STYLE_BOLD ? A_BOLD : 0) | (s->attrs & STYLE_REVERSE ? A_REVERSE : 0) |
           (s->attrs & STYLE_UNDERLINE ? A_UNDERLINE : 0);
}

static void
put_cell(const struct term *t, int x, int y, const struct cell *c)
{
    wchar_t chars[CCHARW_MAX + 1] = {L' '};
    struct style s = style_on(t->theme, (enum role)c->role, (enum ground)c->ground);
    size_t len = strlen(c->utf8);
    cchar_t cell;
    int n = 0;

    for (size_t at = 0; at < len && n < CCHARW_MAX;) {
        uint32_t cp = ' ';
        int bytes = utf8_decode(c->utf8 + at, len - at, &cp);
        chars[n++] = (wchar_t)cp;
        at += bytes > 0 ? (size_t)bytes : 1;
    }
    short pair = (short)(c->role + 1 + (c->ground == GROUND_NONE ? 0 : ROLES));
    if (t->theme == THEME_MONO)
        pair = 0;
    if (setcchar(&cell, chars, attrs_of(&s), pair, NULL) != ERR)
        mvadd_wch(y, x, &cell);
}

static bool
same(const struct cell *a, const struct cell *b)
{
    return a->role == b->role && a->ground == b->ground && a->width == b->width &&
           !strcmp(a->utf8, b->utf8);
}

bool
term_draw(struct term *t, const struct grid *g)
{
    int x, y;

    if (!t->taken || !tty_flush(t->tty))
        return false;
    if (t->repaint) {
        erase();
        clearok(curscr, TRUE);
        memset(t->shown, 0, (size_t)t->w * (size_t)t->h * sizeof *t->shown);
        t->repaint = false;
    }
    for (y = 0; y < t->h; y++)
        for (x = 0; x < t->w; x++) {
            const struct cell *c = grid_cell(g, x, y);
            struct cell *shown = &t->shown[(size_t)y * (size_t)t->w + (size_t)x];
            if (same(c, shown))
                continue;
            *shown = *c;
            if (c->width > 0 && x + c->width <= t->w)
                put_cell(t, x, y, c);
        }
    curs_set(grid_cursor_at(g, &x, &y) ? 1 : 0);
    move(y < t->h ? y : t->h - 1, x < t->w ? x : t->w - 1);
    refresh();
    send_out(t, true);
    return true;
}

bool
term_flush(struct term *t)
{
    return tty_flush(t->tty);
}

void
term_repaint(struct term *t)
{
    t->repaint = true;
}

/* --- size --- */

void
term_size(const struct term *t, int *w, int *h)
{
    *w = t->w;
    *h = t->h;
}

static void
set_size(struct term *t, int w, int h)
{
    t->w = w;
    t->h = h;
    t->shown = xreallocarray(t->shown, (size_t)w * (size_t)h, sizeof *t->shown);
    t->repaint = true;
}

bool
term_resized(struct term *t)
{
    int w = t->w, h = t->h;

    if (!tty_size(t->tty, &w, &h) || (w == t->w && h == t->h))
        return false;
    resizeterm(h, w);
    set_size(t, w, h);
    return true;
}

/* --- keys --- */

static struct key
key_of(int code)
{
    static const struct {
        int curses;
        uint32_t code;
    } table[] = {
        {KEY_UP,        KC_UP       },
        {KEY_DOWN,      KC_DOWN     },
        {KEY_LEFT,      KC_LEFT     },
        {KEY_RIGHT,     KC_RIGHT    },
        {KEY_HOME,      KC_HOME     },
        {KEY_END,       KC_END      },
        {KEY_PPAGE,     KC_PGUP     },
        {KEY_NPAGE,     KC_PGDN     },
        {KEY_IC,        KC_INSERT   },
        {KEY_DC,        KC_DELETE   },
        {KEY_BACKSPACE, KC_BACKSPACE},
        {KEY_ENTER,     KC_ENTER    },
        {KEY_BTAB,      KC_TAB      },
    };
    struct key k = {.mods = code == KEY_BTAB ? MOD_SHIFT : 0};

    if (code >= KEY_F(1) && code <= KEY_F(12))
        k.code = KC_F1 + (uint32_t)(code - KEY_F(1));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].curses == code)
            k.code = table[i].code;
    return k;
}

/* Passes one byte or key from ncurses to the decoder; false = there is none now. */
static bool
inject_key(struct term *t)
{
    int got = wgetch(t->keys);

    if (got == ERR) {
        unsigned char c;
        ssize_t n = read(tty_fd(t->tty), &c, 1); /* distinguishes "no input" from "terminal gone" */
        if (n == 0)
            tty_set_hung(t->tty);
        if (n <= 0)
            return false;
        got = c;
    }
    if (got == PASTE_ON || got == PASTE_OFF)
        decoder_paste(&t->decoder, got == PASTE_ON);
    else if (got > 0xFF)
        decoder_key(&t->decoder, key_of(got));
    else
        decoder_byte(&t->decoder, (unsigned char)got);
    return true;
}

bool
term_read(struct term *t, struct key *out, bool *hung)
{
    *hung = false;
    while (t->taken && !decoder_next(&t->decoder, clock_ms(), out)) {
        if (inject_key(t))
            continue;
        decoder_pause(&t->decoder);
        *hung = tty_hung(t->tty);
        return decoder_next(&t->decoder, clock_ms(), out);
    }
    return t->taken;
}

void
term_drop_input(struct term *t)
{
    struct key k;
    bool hung;

    while (term_read(t, &k, &hung))
        ;
}

/* --- opening and closing --- */

/* ncurses clears the eighth bit of what is typed, because the memory file has no modes of a
 * terminal that say otherwise. With meta() it keeps the bit, and would also send smm. That is not
 * wanted: the terminal sends UTF-8 already, and its Alt key would send other bytes. So smm is
 * emptied in the description that ncurses has read. */
static void
keep_eighth_bit(struct term *t)
{
    char *smm = tigetstr("smm");

    if (smm && smm != (char *)-1)
        *smm = '\0';
    meta(t->keys, TRUE);
}

static bool
start_curses(struct term *t, struct err *e)
{
    const char *name = getenv("TERM");
    int copy = fcntl(tty_fd(t->tty), F_DUPFD_CLOEXEC, 3);

    t->mem = memfd_create("screen", MFD_CLOEXEC);
    t->in = copy >= 0 ? fdopen(copy, "r") : NULL;
    t->out = t->mem >= 0 ? fdopen(t->mem, "w") : NULL;
    if (!t->in || !t->out)
        return fail(e, ERR_SYS, "no room for the screen");
    set_escdelay(ESC_DELAY_MS);
    t->screen = newterm(NULL, t->out, t->in);
    if (!t->screen)
        return fail(
            e, ERR_USAGE,
            "unknown terminal TERM=%.60s: set TERM (xterm-256color often works), or use the "
            "verbs, for example 'queuetop queues'",
            name ? name : "");
    if (!tigetstr("cup") || tigetstr("cup") == (char *)-1)
        return fail(e, ERR_USAGE,
                    "TERM=%.60s can't place text on a screen: use the verbs, for example "
                    "'queuetop queues'",
                    name ? name : "");
    t->keys = newpad(1, 1);
    if (!t->keys)
        return fail(e, ERR_SYS, "ncurses has no room");
    keypad(t->keys, TRUE);
    keep_eighth_bit(t);
    nodelay(t->keys, TRUE);
    typeahead(-1);
    const char *mouse = tigetstr("kmous"); /* we get its bytes: ncurses would read on */
    t->decoder.mouse = t->decoder.mouse && mouse && mouse != (const char *)-1;
    if (t->decoder.mouse)
        define_key(mouse, 0);
    for (int code = KEY_MAX + 1; code < KEY_MAX + EXTENDED; code++)
        keyok(code, FALSE); /* Alt-Left and similar keys: we read their bytes */
    define_key("\033[200~", PASTE_ON);
    define_key("\033[201~", PASTE_OFF);
    return true;
}

/* ncurses installs handlers of its own; this keeps ours, or the defaults. */
static bool
start_screen(struct term *t, const struct term_options *o, struct err *e)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
    struct sigaction was[4];
    struct buf way_out = {0};

    for (int i = 0; i < 4; i++)
        sigaction(signals[i], NULL, &was[i]);
    bool ok = start_curses(t, e);
    for (int i = 0; i < 4; i++)
        sigaction(signals[i], &was[i], NULL);
    if (!ok)
        return false;
    start_colors(t, o);
    add_way_out(&way_out, t->decoder.mouse);
    tty_set_rescue(t->tty, way_out.data, way_out.len);
    buf_free(&way_out);
    int w = COLS, h = LINES;
    if (tty_size(t->tty, &w, &h))
        resizeterm(h, w);
    set_size(t, w, h);
    return true;
}

bool
term_open(struct term **out, const struct term_options *o, struct err *e)
{
    struct tty *tty;
    enum theme named;

    if (o->theme && !style_theme(o->theme, &named))
        return fail(e, ERR_USAGE, "unknown theme %.60s: dark, light, contrast, 16, 8 or mono",
                    o->theme);
    if (!tty_open(&tty, e))
        return false;
    struct term *t = xcalloc(1, sizeof *t);
    t->tty = tty;
    t->mem = -1;
    t->sync = o->sync;
    t->decoder.mouse = o->mouse;
    t->ascii = o->ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    if (!start_screen(t, o, e)) {
        term_close(t);
        return false;
    }
    term_enter(t);
    *out = t;
    return true;
}

void
term_enter(struct term *t)
{
    struct buf b = {0};

    tty_take(t->tty);
    t->taken = true;
    term_resized(t);
    t->repaint = true;
    add_cap(&b, "smkx");
    buf_str(&b, "\033[?2004h");
    if (t->decoder.mouse)
        buf_str(&b, "\033[?1000h\033[?1006h");
    erase();
    refresh(); /* switches to the alternate screen */
    collect(t, &b);
    buf_str(&b, "\033[r"); /* ncurses begins with margins for 24 rows, whatever the size is */
    tty_put(t->tty, b.data, b.len);
    tty_flush(t->tty);
    buf_free(&b);
}

void
term_leave(struct term *t)
{
    struct buf b = {0};

    if (!t->taken)
        return;
    t->taken = false;
    endwin();
    collect(t, &b);
    buf_clear(&b);
    add_way_out(&b, t->decoder.mouse);
    tty_give(t->tty, b.data, b.len);
    buf_free(&b);
    decoder_reset(&t->decoder);
}

void
term_close(struct term *t)
{
    if (!t)
        return;
    term_leave(t);
    if (t->keys)
        delwin(t->keys);
    if (t->screen)
        delscreen(t->screen);
    if (t->in)
        fclose(t->in);
    if (t->out)
        fclose(t->out);
    tty_close(t->tty);
    decoder_done(&t->decoder);
    free(t->shown);
    free(t);
}

void
term_suspend(struct term *t)
{
    bool taken = t->taken;

    term_leave(t);
    tty_stop();
    if (taken)
        term_enter(t);
}

/* --- the rest --- */

int
term_fd(const struct term *t)
{
    return tty_fd(t->tty);
}

bool
term_ascii(const struct term *t)
{
    return t->ascii;
}

size_t
term_clipboard(struct term *t, const char *s, size_t len)
{
    return tty_clipboard(t->tty, s, len);
}
