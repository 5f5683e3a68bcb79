/* The terminal line below curses: modes, output that never blocks, and the way back. This file
 * knows nothing about screens. While the line is taken, standard error goes to memory, and it is
 * printed when the line is given back. If the program dies (exit, abort, fatal signal), a fixed
 * string and the old modes are written, only with calls that are allowed in a signal handler. Only
 * ui/term/term.c uses this. */
#ifndef UI_TERM_TTY_H
#define UI_TERM_TTY_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/err.h"
#include "model/base/mem.h"

struct tty;

/* Opens the terminal of standard output a second time, so that O_NONBLOCK does not affect other
 * programs that share it. If it can't be opened (su -c), the standard file itself is used, and its
 * flags are put back. */
bool tty_open(struct tty **out, struct err *e) __attribute__((warn_unused_result));
void tty_close(struct tty *t); /* gives the line back first */
int tty_fd(const struct tty *t);

/* Sets the string that is sent if the program dies while the line is taken. */
void tty_set_rescue(struct tty *t, const char *bytes, size_t len);
/* Takes the line: keys come one by one, Ctrl-C as a key, Ctrl-Z as a signal. A process in the
 * background stops here until it is in the foreground. A second call sets the modes again. */
void tty_take(struct tty *t);
/* Gives the line back: sends `last`, then sets the old modes. Output that still waits is
 * dropped. Never blocks. */
void tty_give(struct tty *t, const char *last, size_t len);

/* Stops the process as Ctrl-Z does, after tty_give; returns when it goes on. */
void tty_stop(void);

void tty_put(struct tty *t, const char *bytes, size_t len); /* adds to the output queue */
bool tty_flush(struct tty *t);                              /* true = nothing is left to send */
bool tty_hung(const struct tty *t);                         /* the terminal has gone away */
void tty_set_hung(struct tty *t);
/* Appends a terminfo string without its padding ("$<5>"). */
void tty_unpad(struct buf *b, const char *s);
/* Queues the sequence that puts text on the clipboard (OSC 52), at most 64 kB, also from inside
 * tmux and screen. Returns how many bytes of the text were queued. */
size_t tty_clipboard(struct tty *t, const char *s, size_t len);
bool tty_size(const struct tty *t, int *w, int *h);

#endif
