/* The terminal: the only file that knows curses. It never makes the program wait: ncurses writes
 * into memory, and output that the terminal does not take at once is kept until it does
 * (term_flush). The terminal is restored however the program ends: term_close, exit, out of memory,
 * a fatal signal (then only with calls that are safe in a handler). While the screen is up,
 * standard error goes to memory; it is printed afterwards. A process has one terminal. */
#ifndef UI_TERM_TERM_H
#define UI_TERM_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/err.h"
#include "ui/term/grid.h"
#include "ui/term/key.h"
#include "ui/term/style.h"

struct term;

struct term_options {
    enum color_when color;
    const char *theme; /* name of a theme; NULL = chosen by the terminal */
    bool ascii;        /* --ascii, or the locale is not UTF-8 */
    bool mouse;        /* report clicks and the wheel as keys */
    bool sync;         /* wrap frames in synchronized output */
};

/* Takes the terminal: if this returns true, the alternate screen is up. The caller has called
 * setlocale. Fails without a terminal, with TERM=dumb or an unknown TERM; the error says what to
 * do. */
bool term_open(struct term **out, const struct term_options *o, struct err *e)
    __attribute__((warn_unused_result));
void term_close(struct term *t); /* frees; NULL is allowed */

int
term_fd(const struct term *t); /* poll it for POLLIN, and for POLLOUT while term_flush is false */
bool term_ascii(const struct term *t);

/* The next key, or false if there is none now; call it until it returns false after each POLLIN.
 * *hung is set if the terminal has gone away (end of file). */
bool term_read(struct term *t, struct key *out, bool *hung);
/* Drops keys that were typed and not read yet. */
void term_drop_input(struct term *t);

/* Shows the grid: sends only what changed. If earlier output still waits for the terminal, it draws
 * nothing and returns false: draw again when term_flush has returned true. */
bool term_draw(struct term *t, const struct grid *g);
bool term_flush(struct term *t);   /* true = everything was written */
void term_repaint(struct term *t); /* the next term_draw sends all cells (Ctrl-L) */

/* The size in cells. term_resized reads the size again (after SIGWINCH) and returns whether it
 * changed. */
void term_size(const struct term *t, int *w, int *h);
bool term_resized(struct term *t);

/* term_leave gives the terminal to another program or to the shell; term_enter takes it back and
 * repaints. */
void term_leave(struct term *t);
void term_enter(struct term *t);
/* Ctrl-Z: leaves, stops this process, and enters when it goes on. Call it from the loop's handler
 * of SIGTSTP. After SIGCONT from elsewhere call term_enter. */
void term_suspend(struct term *t);

/* Puts text on the clipboard of the terminal (OSC 52), at most 64 kB; only if the user asked for
 * it. Returns how many bytes were sent. */
size_t term_clipboard(struct term *t, const char *s, size_t len);

#endif
