/* Turns bytes and function keys into key events, without curses: Unicode characters whose bytes
 * come in pieces, control characters, escape sequences that terminfo does not know (modified arrows
 * are understood, all others ignored), pasted text as one event. */
#ifndef UI_TERM_TERM_KEY_H
#define UI_TERM_TERM_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "ui/term/key.h"

enum { DECODER_KEYS = 8, DECODER_SEQUENCE = 32, PASTE_MAX = 64 * 1024, PASTE_WAIT_MS = 1000 };

struct decoder {                    /* starts as {0} */
    struct key ready[DECODER_KEYS]; /* decoded and not taken yet */
    int n;
    char part[4]; /* of a UTF-8 character */
    int npart;
    bool escaped;                    /* an ESC came */
    char sequence[DECODER_SEQUENCE]; /* the bytes after it, cut if they are too many */
    int nsequence;
    bool mouse;   /* the terminal reports a mouse: these bytes are not keys */
    int old_left; /* bytes of an old mouse report that must still come */
    unsigned char old[3];
    bool pasting;
    int64_t paste_ms; /* when the paste last grew */
    size_t paste_seen;
    struct buf paste;
};

void decoder_byte(struct decoder *d, unsigned char c);
void decoder_key(struct decoder *d, struct key k); /* KC_NONE is ignored */
void decoder_paste(struct decoder *d, bool begins);
/* No more bytes for now: an ESC without more bytes was the Esc key. */
void decoder_pause(struct decoder *d);
/* The next event; the text of a paste lives until the next call. If the end of a paste does not
 * come for a second, the next byte ends the paste. */
bool decoder_next(struct decoder *d, int64_t now_ms, struct key *out);
void decoder_reset(struct decoder *d);
void decoder_done(struct decoder *d);

#endif
