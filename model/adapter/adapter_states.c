/*
 * States. The console has eight words; an engine has words of its own. The header maps them:
 * "ready=available retry=retryable cancelled=cancelled,aborted". A state that the header does not
 * name does not exist in that engine.
 */
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter_parts.h"

static const char *const states[] = {"scheduled", "ready",   "retry",     "running",
                                     "failed",    "blocked", "completed", "cancelled"};
enum { STATES = sizeof states / sizeof *states, WORDS_MAX = 64 };

static bool
is_state(const char *s, size_t len)
{
    for (int i = 0; i < STATES; i++)
        if (strlen(states[i]) == len && !strncmp(states[i], s, len))
            return true;
    return false;
}

const char *
adapter_check_states(const char *header)
{
    int words = 0;

    for (const char *at = header; *at;) {
        size_t len = strcspn(at, " \t"), name = strcspn(at, "=");
        if (len > 0 && (name >= len || !is_state(at, name)))
            return "each is scheduled, ready, retry, running, failed, blocked, completed or "
                   "cancelled, = and the engine's word";
        if (len > 0 && (at[name + 1] == ',' || name + 1 == len))
            return "a word is missing";
        for (size_t i = 0; i < len; i++)
            words += at[i] == '=' || at[i] == ',';
        at += len + (at[len] != 0);
    }
    return words > WORDS_MAX ? "too many words" : words == 0 ? "it has no value" : NULL;
}

/* True if the array literal contains the state. States have no character that needs an escape. */
static bool
is_listed(const char *list, const char *name, size_t len)
{
    for (const char *at = list; *at;) {
        at += strspn(at, "{},\"");
        size_t n = strcspn(at, "{},\"");
        if (n == len && !strncmp(at, name, n))
            return true;
        at += n;
    }
    return false;
}

static void
add_words(char **words, int *n, const char *list, size_t len)
{
    for (const char *at = list; at < list + len;) {
        size_t size = strcspn(at, ", \t");
        bool known = size == 0 || *n == WORDS_MAX;
        for (int i = 0; i < *n; i++)
            known |= strlen(words[i]) == size && !strncmp(words[i], at, size);
        if (!known)
            words[(*n)++] = xstrndup(at, size);
        at += size + 1;
    }
}

static char *
translate(const char *header, const char *list)
{
    struct params p = {0};
    char *words[WORDS_MAX] = {NULL};
    int n = 0;

    for (const char *at = header; *at;) {
        size_t len = strcspn(at, " \t"), name = strcspn(at, "=");
        if (len > name && is_listed(list, at, name))
            add_words(words, &n, at + name + 1, len - name - 1);
        at += len + (at[len] != 0);
    }
    params_set_list(&p, PARAM_RAW_STATES, (const char *const *)words, n);
    for (int i = 0; i < n; i++)
        free(words[i]);
    return p.value[PARAM_RAW_STATES];
}

const char *
adapter_raw_states(struct adapter_file *f, const char *list)
{
    const char *header = sections_header(&f->text, "states");

    if (!list || !header)
        return NULL;
    for (const struct raw_states *r = f->raw; r; r = r->next)
        if (!strcmp(r->states, list))
            return r->raw;
    struct raw_states *r = xmalloc(sizeof *r);
    *r = (struct raw_states){xstrdup(list), translate(header, list), f->raw};
    f->raw = r;
    return r->raw;
}
