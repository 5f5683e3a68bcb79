/*
 * Counts by outcome: few distinct pairs of (state, why), many rows.
 */
#include <stdlib.h>
#include <string.h>

#include "model/action/action_parts.h"

#define OTHERS "other reasons"
enum { PAIRS_MOST = 100 };

void
tally_add(struct tally *t, const char *state, const char *why, int64_t n)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->rows[i].state, state) && !strcmp(t->rows[i].why, why)) {
            t->rows[i].n += n;
            return;
        }
    if (t->n >= PAIRS_MOST && strcmp(why, OTHERS) != 0) { /* reasons with an id in them */
        tally_add(t, state, OTHERS, n);
        return;
    }
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 8;
        t->rows = xreallocarray(t->rows, (size_t)t->cap, sizeof *t->rows);
        t->texts = xreallocarray(t->texts, (size_t)t->cap, sizeof *t->texts);
    }
    char *text = xasprintf("%s%c%s", state, 0, why);
    t->texts[t->n] = text;
    t->rows[t->n++] = (struct effect_row){text, text + strlen(state) + 1, n};
}

void
tally_clear(struct tally *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->texts[i]);
    free(t->texts);
    free(t->rows);
    *t = (struct tally){0};
}

int64_t
tally_sum(const struct tally *t, bool changed)
{
    int64_t sum = 0;

    for (int i = 0; i < t->n; i++)
        if ((*t->rows[i].state != 0) == changed)
            sum += t->rows[i].n;
    return sum;
}
