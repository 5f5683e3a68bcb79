/*
 * Queues that keep no record of an action: what a batch changed is known from the rows that came
 * back, the others are counted against the guard of the statement. The same tells beforehand what
 * will happen, by batches that are rolled back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/action_parts.h"

#define WHY_LOST "perhaps changed by the batch whose answer was lost"

static bool
is_trying(const struct action *a)
{
    return a->state == ACTION_PREVIEWING;
}

static struct tally *
tally_of(struct action *a)
{
    return is_trying(a) ? &a->effects : &a->outcome;
}

const char *
action_note(const struct action *a, const char *key)
{
    return adapter_note(a->adapter, a->section, key);
}

/* Ids that were asked for and did not come back. */
static void
add_missing(const struct action *a, struct tally *t, int n)
{
    const char *guard = action_note(a, "guard");
    char *why = a->in_doubt ? xstrdup(WHY_LOST)
                : guard     ? xasprintf("guard: %s", guard)
                            : xstrdup("not in a fitting state any more");

    tally_add(t, "", why, n);
    free(why);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Rows with an id of their own. */
static int
distinct(const struct rowset *rows)
{
    const struct change_row *row = rows->rows;
    const char **ids = xcalloc((size_t)rows->n + 1, sizeof *ids);
    int n = 0;

    for (int i = 0; i < rows->n; i++)
        ids[i] = row[i].id;
    if (rows->n > 0)
        qsort(ids, (size_t)rows->n, sizeof *ids, by_text);
    for (int i = 0; i < rows->n; i++)
        n += i == 0 || strcmp(ids[i], ids[i - 1]) != 0;
    free(ids);
    return n;
}

void
action_count_rows(struct action *a, const struct rowset *rows)
{
    const struct change_row *row = rows->rows;
    struct tally *t = tally_of(a);

    for (int i = 0; i < rows->n; i++)
        if (row[i].n != 0) /* a batch that found nothing may still lead on */
            tally_add(t, row[i].state, row[i].why, row[i].n == FIELD_NULL ? 1 : row[i].n);
    a->was_lost |= a->in_doubt && !a->audited;
    if (a->audited || !a->ids)
        return;
    int missing = a->chunk - distinct(rows);
    if (missing > 0)
        add_missing(a, t, missing);
}

void
action_add_duplicate(struct action *a, const struct err *e)
{
    char *why = *e->constraint ? xasprintf("another live job has the same unique key (index %s)",
                                           e->constraint)
                               : xstrdup("another live job has the same unique key");

    tally_add(tally_of(a), "", why, 1);
    free(why);
}

void
action_tried(struct action *a)
{
    int n = a->nids < a->batch_size ? a->nids : a->batch_size;

    a->batch = a->at = a->tries = a->narrow = 0;
    a->slowest_us = 0;
    if (a->ids) /* as they will be sent, for those who read the statement */
        params_set_list(&a->params, PARAM_IDS, (const char *const *)a->ids, n);
    params_set(&a->params, PARAM_CURSOR, NULL);
    action_previewed(a);
}

void
action_is_busy(struct action *a, const char *what, int n, int of)
{
    char *words = of  ? xasprintf("%s: %d of %d", what, n, of)
                  : n ? xasprintf("%s: %d so far", what, n)
                      : xstrdup(what);

    free(a->busy);
    a->busy = words;
    action_touch(a);
}

const char *
action_busy(const struct action *a)
{
    return a->busy ? a->busy : "counting what this would change";
}
