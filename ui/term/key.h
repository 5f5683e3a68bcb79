/* Keys as events and as words. The command table writes keys as a list of words ("r F5 C-r"). This
 * file compares the words with the keys that the terminal sent, and writes them for help texts.
 * Words: a single character means itself; C-x is Ctrl, M-x is Alt, S-Tab; Space Enter Esc Tab
 * Backspace Delete Insert Up Down Left Right Home End PgUp PgDn F1 to F12. */
#ifndef UI_TERM_KEY_H
#define UI_TERM_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key_code { /* above all of Unicode, so that a code is a character or one of these */
                KC_NONE = 0,
                KC_ENTER = 0x110000,
                KC_ESC,
                KC_TAB,
                KC_BACKSPACE,
                KC_DELETE,
                KC_INSERT,
                KC_UP,
                KC_DOWN,
                KC_LEFT,
                KC_RIGHT,
                KC_HOME,
                KC_END,
                KC_PGUP,
                KC_PGDN,
                KC_F1, /* KC_F1 + n - 1 is Fn, n up to 12 */
                KC_F12 = KC_F1 + 11,
                KC_CLICK, /* of the mouse, at x, y */
                KC_WHEEL_UP,
                KC_WHEEL_DOWN,
                KC_PASTE /* pasted text, see `paste`: never a command */
};

enum key_mod { MOD_CTRL = 1, MOD_ALT = 2, MOD_SHIFT = 4 }; /* SHIFT: only for enum key_code */

struct key {
    uint32_t code; /* a Unicode character (Ctrl-l is 'l' with MOD_CTRL) or enum key_code */
    unsigned mods;
    int64_t ms;        /* clock_ms when it was read */
    int x, y;          /* of the mouse, in cells from 0 */
    const char *paste; /* KC_PASTE: the bytes as they came, untrusted; lives until the next read */
    size_t paste_len;
};

/* Makes a key of one word; false = no such key. C-i, C-m and C-[ are Tab, Enter and Esc, as
 * terminals send them. */
bool key_parse(const char *word, size_t len, struct key *out);
/* The word of a key, at most 31 bytes; "" for KC_PASTE and KC_NONE. */
struct key_word {
    char s[32];
};
struct key_word key_word(const struct key *k);

bool key_same(const struct key *a, const struct key *b); /* compares code and mods */
bool key_is(const struct key *k, const char *word);
/* Whether k is in the list of words, for example "j Down". */
bool key_in(const struct key *k, const char *list);
/* Walks through a list: the next word from *at on. False at the end of the list (*at is at the
 * NUL), and at a word that is not a key (*at is at this word). */
bool key_next(const char **at, struct key *out);
/* Whether a key is in both lists (for the check of the command table). */
bool key_lists_meet(const char *a, const char *b);

/* True when the key is a printable character without Ctrl or Alt. */
bool key_is_char(const struct key *k);

#endif
