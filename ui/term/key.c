/* Keys and their words. One table of names serves both directions. */
#include "ui/term/key.h"

#include <stdio.h>
#include <string.h>

#include "model/base/text.h"

static const struct {
    const char *word;
    uint32_t code;
} names[] = {
    {"Space",     ' '         },
    {"Enter",     KC_ENTER    },
    {"Esc",       KC_ESC      },
    {"Tab",       KC_TAB      },
    {"Backspace", KC_BACKSPACE},
    {"Delete",    KC_DELETE   },
    {"Insert",    KC_INSERT   },
    {"Up",        KC_UP       },
    {"Down",      KC_DOWN     },
    {"Left",      KC_LEFT     },
    {"Right",     KC_RIGHT    },
    {"Home",      KC_HOME     },
    {"End",       KC_END      },
    {"PgUp",      KC_PGUP     },
    {"PgDn",      KC_PGDN     },
    {"F1",        KC_F1       },
    {"F2",        KC_F1 + 1   },
    {"F3",        KC_F1 + 2   },
    {"F4",        KC_F1 + 3   },
    {"F5",        KC_F1 + 4   },
    {"F6",        KC_F1 + 5   },
    {"F7",        KC_F1 + 6   },
    {"F8",        KC_F1 + 7   },
    {"F9",        KC_F1 + 8   },
    {"F10",       KC_F1 + 9   },
    {"F11",       KC_F1 + 10  },
    {"F12",       KC_F12      },
};
enum { NAMES = sizeof names / sizeof names[0] };

static bool
name_code(const char *word, size_t len, uint32_t *code)
{
    for (int i = 0; i < NAMES; i++)
        if (strlen(names[i].word) == len && memcmp(names[i].word, word, len) == 0) {
            *code = names[i].code;
            return true;
        }
    return false;
}

/* A terminal sends the same byte for some Ctrl keys and a named key, such as C-i and Tab. */
static bool
settle_ctrl(struct key *k)
{
    if (!(k->mods & MOD_CTRL))
        return true;
    if (k->code >= 'A' && k->code <= 'Z')
        k->code += 'a' - 'A';
    uint32_t named = k->code == 'i'   ? KC_TAB
                     : k->code == 'm' ? KC_ENTER
                     : k->code == '[' ? KC_ESC
                                      : KC_NONE;
    if (named) {
        k->code = named;
        k->mods &= ~(unsigned)MOD_CTRL;
    }
    return true;
}

bool
key_parse(const char *word, size_t len, struct key *out)
{
    static const struct {
        char letter;
        unsigned mod;
    } mods[] = {
        {'C', MOD_CTRL },
        {'M', MOD_ALT  },
        {'S', MOD_SHIFT}
    };
    struct key k = {0};

    for (bool again = true; again && len > 2 && word[1] == '-';) {
        again = false;
        for (int i = 0; i < 3 && !again; i++)
            if (word[0] == mods[i].letter) {
                k.mods |= mods[i].mod;
                word += 2;
                len -= 2;
                again = true;
            }
    }
    if (!name_code(word, len, &k.code)) {
        int n = utf8_decode(word, len, &k.code);
        if (n == 0 || (size_t)n != len || !text_is_plain(k.code) || k.code == ' ')
            return false;
        if (k.mods & MOD_SHIFT)
            return false;
    }
    *out = k;
    return settle_ctrl(out);
}

struct key_word
key_word(const struct key *k)
{
    struct key_word w = {""};
    char c[5] = "";
    const char *name = NULL;

    if (k->code == KC_NONE || k->code == KC_PASTE)
        return w;
    for (int i = 0; i < NAMES && !name; i++)
        if (names[i].code == k->code)
            name = names[i].word;
    if (!name && k->code < KC_ENTER) {
        c[utf8_encode(k->code, c)] = 0;
        name = c;
    }
    snprintf(w.s, sizeof w.s, "%s%s%s%s", k->mods & MOD_CTRL ? "C-" : "",
             k->mods & MOD_ALT ? "M-" : "", k->mods & MOD_SHIFT ? "S-" : "", name ? name : "?");
    return w;
}

bool
key_same(const struct key *a, const struct key *b)
{
    return a->code == b->code && a->mods == b->mods && a->code != KC_NONE && a->code != KC_PASTE;
}

bool
key_is(const struct key *k, const char *word)
{
    struct key want;

    return key_parse(word, strlen(word), &want) && key_same(k, &want);
}

bool
key_next(const char **at, struct key *out)
{
    const char *s = *at + strspn(*at, " ");
    size_t len = strcspn(s, " ");

    *at = s;
    if (len == 0 || !key_parse(s, len, out))
        return false;
    *at = s + len;
    return true;
}

bool
key_in(const struct key *k, const char *list)
{
    struct key want;

    while (key_next(&list, &want))
        if (key_same(k, &want))
            return true;
    return false;
}

bool
key_lists_meet(const char *a, const char *b)
{
    struct key k;

    while (key_next(&a, &k))
        if (key_in(&k, b))
            return true;
    return false;
}

bool
key_is_char(const struct key *k)
{
    return k->code < KC_ENTER && !(k->mods & (MOD_CTRL | MOD_ALT)) && text_is_plain(k->code);
}
