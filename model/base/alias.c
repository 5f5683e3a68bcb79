/*
 * The words of other systems for ours, and how far two words are apart.
 */
#include "model/base/alias.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { WORD_MOST = 31 };

/* clang-format off */
const struct alias aliases[] = {
    {ALIAS_ACT, "retry", "requeue"},
    {ALIAS_ACT, "enqueue", "push"},
    {ALIAS_ACT, "rescue", "release"},
    {ALIAS_ACT, "unlock", "release"},
    {ALIAS_ACT, "workers", "nodes"},
    {ALIAS_ACT, "processes", "nodes"},
    {ALIAS_ACT, "failed", "failures"},
    {ALIAS_ACT, "failures", "failed"},

    {ALIAS_KEY, "attempts", "tries"},
    {ALIAS_KEY, "attempt", "tries"},
    {ALIAS_KEY, "worker", "node"},
    {ALIAS_KEY, "process", "node"},
    {ALIAS_KEY, "args", "payload"},

    {ALIAS_STATE, "dead", "failed"},
    {ALIAS_STATE, "discarded", "failed"},
    {ALIAS_STATE, "available", "ready"},
    {ALIAS_STATE, "enqueued", "ready"},
    {ALIAS_STATE, "waiting", "ready"},
    {ALIAS_STATE, "executing", "running"},
    {ALIAS_STATE, "busy", "running"},
    {ALIAS_STATE, "active", "running"},
    {ALIAS_STATE, "retryable", "retry"},
    {ALIAS_STATE, "retries", "retry"},
    {ALIAS_STATE, "delayed", "scheduled"},
    {ALIAS_STATE, "done", "completed"},
    {ALIAS_STATE, "finished", "completed"},
    {ALIAS_STATE, "succeeded", "completed"},
    {0},
};
/* clang-format on */

const char *
alias_find(enum alias_kind kind, const char *word, int len)
{
    for (const struct alias *a = aliases; a->word; a++)
        if (a->kind == kind && strlen(a->word) == (size_t)len &&
            !strncmp(a->word, word, (size_t)len))
            return a->ours;
    return NULL;
}

/* Letters to add, drop, change or swap with the next to make one of the other. */
static int
distance(const char *a, const char *b)
{
    int rows[3][WORD_MOST + 2], n = (int)strlen(a), m = (int)strlen(b);

    for (int k = 0; k <= m; k++)
        rows[0][k] = k;
    for (int i = 1; i <= n; i++) {
        int *row = rows[i % 3], *up = rows[(i + 2) % 3], *upper = rows[(i + 1) % 3];
        row[0] = i;
        for (int k = 1; k <= m; k++) {
            int least = up[k - 1] + (a[i - 1] != b[k - 1]);
            least = up[k] + 1 < least ? up[k] + 1 : least;
            least = row[k - 1] + 1 < least ? row[k - 1] + 1 : least;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                least = upper[k - 2] + 1 < least ? upper[k - 2] + 1 : least;
            row[k] = least;
        }
    }
    return rows[n % 3][m];
}

const char *
alias_closest(const char *word, const char *const *list)
{
    const char *best = NULL;
    size_t len = strlen(word);
    int least = len > 5 ? 3 : 2;

    for (; len <= WORD_MOST && *list; list++) {
        if (strlen(*list) > WORD_MOST)
            continue;
        int d = strcasecmp(word, *list) ? distance(word, *list) : 0;
        if (d < least) {
            least = d;
            best = *list;
        }
    }
    return best;
}
