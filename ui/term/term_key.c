/* A small state machine over bytes. After an ESC, `[` or `O` begins a sequence that ends with its
 * final letter. If another byte follows the ESC, the user pressed Esc. */
#include "ui/term/term_key.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/text.h"

static void
emit(struct decoder *d, uint32_t code, unsigned mods)
{
    if (code != KC_NONE && d->n < DECODER_KEYS)
        d->ready[d->n++] = (struct key){.code = code, .mods = mods};
}

/* --- escape sequences ------------------------------------------------------------------------- */

static const struct {
    char final;
    int number; /* before `~` */
    uint32_t code;
} sequences[] = {
    {'A', 0,  KC_UP     },
    {'B', 0,  KC_DOWN   },
    {'C', 0,  KC_RIGHT  },
    {'D', 0,  KC_LEFT   },
    {'H', 0,  KC_HOME   },
    {'F', 0,  KC_END    },
    {'P', 0,  KC_F1     },
    {'Q', 0,  KC_F1 + 1 },
    {'R', 0,  KC_F1 + 2 },
    {'S', 0,  KC_F1 + 3 },
    {'M', 0,  KC_ENTER  },
    {'~', 1,  KC_HOME   },
    {'~', 2,  KC_INSERT },
    {'~', 3,  KC_DELETE },
    {'~', 4,  KC_END    },
    {'~', 5,  KC_PGUP   },
    {'~', 6,  KC_PGDN   },
    {'~', 7,  KC_HOME   },
    {'~', 8,  KC_END    },
    {'~', 11, KC_F1     },
    {'~', 12, KC_F1 + 1 },
    {'~', 13, KC_F1 + 2 },
    {'~', 14, KC_F1 + 3 },
    {'~', 15, KC_F1 + 4 },
    {'~', 17, KC_F1 + 5 },
    {'~', 18, KC_F1 + 6 },
    {'~', 19, KC_F1 + 7 },
    {'~', 20, KC_F1 + 8 },
    {'~', 21, KC_F1 + 9 },
    {'~', 23, KC_F1 + 10},
    {'~', 24, KC_F12    },
};

static unsigned
mods_of(long parameter)
{
    long bits = parameter > 0 && parameter <= 16 ? parameter - 1 : 0;

    return (bits & 1 ? MOD_SHIFT : 0u) | (bits & 2 ? MOD_ALT : 0u) | (bits & 4 ? MOD_CTRL : 0u);
}

/* b: the button; 64 and 65 are the wheel; the bit 32 = the mouse moved. x and y count from 1. */
static void
emit_mouse(struct decoder *d, long b, long x, long y)
{
    uint32_t code = b == 0 ? KC_CLICK : b == 64 ? KC_WHEEL_UP : b == 65 ? KC_WHEEL_DOWN : KC_NONE;

    if (!d->mouse || code == KC_NONE || x < 1 || y < 1 || x > 9999 || y > 9999 ||
        d->n == DECODER_KEYS)
        return;
    d->ready[d->n++] = (struct key){.code = code, .x = (int)x - 1, .y = (int)y - 1};
}

/* "[<0;12;5M": a button was pressed; with a final m: released. */
static void
end_mouse(struct decoder *d, char final)
{
    char *end = d->sequence + 2;
    long v[3] = {0};

    for (int i = 0; i < 3; i++) {
        v[i] = strtol(end, &end, 10);
        if (*end != (i < 2 ? ';' : 0))
            return;
        end += i < 2;
    }
    if (final == 'M')
        emit_mouse(d, v[0], v[1], v[2]);
}

/* "[1;5A": number 1, modifiers 5, final A. A sequence that is not in the table is ignored. */
static void
end_sequence(struct decoder *d, char final)
{
    char *end = d->sequence + 1;
    long number, mods = 0;

    d->escaped = false;
    d->sequence[d->nsequence] = 0;
    if (d->sequence[0] == '[' && final == 'Z') {
        emit(d, KC_TAB, MOD_SHIFT);
        return;
    }
    if (d->sequence[0] == '[' && d->sequence[1] == '<' && d->nsequence > 1) {
        end_mouse(d, final);
        return;
    }
    if (d->sequence[0] == '[' && final == 'M') { /* an old mouse report; ESC O M is Enter */
        d->old_left = d->mouse && d->nsequence == 1 ? 3 : 0;
        return;
    }
    number = strtol(end, &end, 10);
    if (*end == ';')
        mods = strtol(end + 1, &end, 10);
    if (*end)
        return;
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++)
        if (sequences[i].final == final && (final != '~' || sequences[i].number == number)) {
            emit(d, sequences[i].code, mods_of(mods));
            return;
        }
}

/* --- characters ------------------------------------------------------------------------------- */

static void
control(struct decoder *d, unsigned char c)
{
    if (c == '\r' || c == '\n')
        emit(d, KC_ENTER, 0);
    else if (c == '\t')
        emit(d, KC_TAB, 0);
    else if (c == 0x7F || c == '\b')
        emit(d, KC_BACKSPACE, 0);
    else if (c == 0x1B)
        d->escaped = true, d->nsequence = 0;
    else if (c == 0)
        emit(d, ' ', MOD_CTRL);
    else
        emit(d, c < 27 ? c + 96u : c + 64u, MOD_CTRL);
}

static void
character(struct decoder *d, unsigned char c)
{
    uint32_t cp;

    if (c < 0x20 || c == 0x7F) {
        d->npart = 0;
        control(d, c);
        return;
    }
    if ((c & 0xC0) != 0x80) /* a new character begins: the unfinished one is dropped */
        d->npart = 0;
    if (d->npart == sizeof d->part)
        d->npart = 0;
    d->part[d->npart++] = (char)c;
    int n = utf8_decode(d->part, (size_t)d->npart, &cp);
    if (n == 0 && (d->npart > 1 || c >= 0xC2))
        return;
    d->npart = 0;
    if (n > 0)
        emit(d, cp, 0);
}

static void
sequence_byte(struct decoder *d, unsigned char c)
{
    if (d->nsequence == 0 && c != '[' && c != 'O') {
        d->escaped = false;
        emit(d, KC_ESC, 0);
        character(d, c);
    } else if (c < 0x20 || c >= 0x7F) {
        d->escaped = false;
        character(d, c);
    } else if (d->nsequence > 0 && c >= 0x40) {
        end_sequence(d, (char)c);
    } else if (d->nsequence < DECODER_SEQUENCE - 1) {
        d->sequence[d->nsequence++] = (char)c;
    }
}

void
decoder_byte(struct decoder *d, unsigned char c)
{
    if (d->old_left > 0) {
        d->old[3 - d->old_left--] = c;
        if (d->old_left == 0)
            emit_mouse(d, d->old[0] - 32, d->old[1] - 32, d->old[2] - 32);
    } else if (d->pasting) {
        if (d->paste.len < PASTE_MAX)
            buf_add(&d->paste, &c, 1);
    } else if (d->escaped) {
        sequence_byte(d, c);
    } else {
        character(d, c);
    }
}

static void
end_escape(struct decoder *d)
{
    if (d->escaped && d->nsequence == 0)
        emit(d, KC_ESC, 0);
    d->escaped = false;
}

void
decoder_key(struct decoder *d, struct key k)
{
    if (d->pasting || k.code == KC_NONE)
        return;
    end_escape(d);
    d->npart = 0;
    emit(d, k.code, k.mods);
}

void
decoder_pause(struct decoder *d)
{
    if (d->escaped && d->nsequence == 0)
        end_escape(d);
}

/* --- pasted text ------------------------------------------------------------------------------ */

void
decoder_paste(struct decoder *d, bool begins)
{
    if (begins && !d->pasting) {
        end_escape(d);
        buf_clear(&d->paste);
        d->paste_seen = 0;
        d->paste_ms = 0;
    }
    if (!begins && d->pasting && d->paste.len > 0)
        emit(d, KC_PASTE, 0);
    d->pasting = begins;
}

bool
decoder_next(struct decoder *d, int64_t now_ms, struct key *out)
{
    if (d->pasting && (d->paste_ms == 0 || d->paste.len != d->paste_seen)) {
        d->paste_ms = now_ms;
        d->paste_seen = d->paste.len;
    } else if (d->pasting && now_ms - d->paste_ms > PASTE_WAIT_MS) {
        decoder_paste(d, false);
    }
    if (d->n == 0)
        return false;
    *out = d->ready[0];
    memmove(d->ready, d->ready + 1, (size_t)--d->n * sizeof d->ready[0]);
    out->ms = now_ms;
    if (out->code == KC_PASTE) {
        out->paste = d->paste.data;
        out->paste_len = d->paste.len;
    }
    return true;
}

void
decoder_reset(struct decoder *d)
{
    buf_clear(&d->paste);
    d->n = d->npart = d->nsequence = d->old_left = 0;
    d->escaped = d->pasting = false;
}

void
decoder_done(struct decoder *d)
{
    buf_free(&d->paste);
}
