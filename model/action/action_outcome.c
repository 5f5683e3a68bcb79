/*
 * Counts the rows of a batch by outcome: many rows, but few different pairs of (state, why). A
 * queue that keeps no record of an action answers with the rows that a batch changed; ids that are
 * not among them are counted against the guard of the statement. In the same way a preview is made
 * by batches that are rolled back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/action_parts.h"

#define OTHERS "other reasons"
#define WHY_LOST "perhaps changed by the batch whose answer was lost"
enum { PAIRS_MOST = 100 };

/* --- pairs and their counts -------------------------------------------------------------------- */

void
row_counts_add(struct row_counts *t, const char *state, const char *why, int64_t n)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->rows[i].state, state) && !strcmp(t->rows[i].why, why)) {
            t->rows[i].n += n;
            return;
        }
    if (t->n >= PAIRS_MOST && strcmp(why, OTHERS) != 0) { /* if each reason names an id, there
                                                             are too many */
        row_counts_add(t, state, OTHERS, n);
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
row_counts_clear(struct row_counts *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->texts[i]);
    free(t->texts);
    free(t->rows);
    *t = (struct row_counts){0};
}

int64_t
row_counts_sum(const struct row_counts *t, bool changed)
{
    int64_t sum = 0;

    for (int i = 0; i < t->n; i++)
        if ((*t->rows[i].state != 0) == changed)
            sum += t->rows[i].n;
    return sum;
}

/* --- rows of a batch ----------------------------------------------------------------------------- */

static bool
is_trying(const struct action *a)
{
    return a->state == ACTION_PREVIEWING;
}

static struct row_counts *
row_counts_of(struct action *a)
{
    return is_trying(a) ? &a->preview.effects : &a->done.counts;
}

const char *
action_note(const struct action *a, const char *key)
{
    return adapter_note(a->adapter, a->section, key);
}

/* Counts the ids that were asked for and are missing in the answer. */
static void
add_missing(const struct action *a, struct row_counts *t, int n)
{
    const char *guard = action_note(a, "guard");
    char *why = a->run.in_doubt ? xstrdup(WHY_LOST)
                : guard         ? xasprintf("%s takes %s", act_infos[a->act].name, guard)
                                : xstrdup("its state does not allow this any more");

    row_counts_add(t, "", why, n);
    free(why);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The number of different ids among the rows. */
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

static void
keep_changed(struct action *a, const struct change_row *row)
{
    a->done.ids = xreallocarray(a->done.ids, (size_t)a->done.n + 1, sizeof *a->done.ids);
    a->done.ids[a->done.n++] = xstrdup(row->id);
}

void
action_count_rows(struct action *a, const struct rowset *rows)
{
    const struct change_row *row = rows->rows;
    struct row_counts *t = row_counts_of(a);

    for (int i = 0; i < rows->n && a->how.keeps_changed && !is_trying(a); i++)
        if (*row[i].state)
            keep_changed(a, &row[i]);
    for (int i = 0; i < rows->n; i++)
        if (row[i].n != 0) /* 0: the batch found nothing, but its cursor leads on */
            row_counts_add(t, row[i].state, row[i].why, row[i].n == FIELD_NULL ? 1 : row[i].n);
    a->run.was_lost |= a->run.in_doubt && !a->audited;
    if (a->audited || !a->rows.ids)
        return;
    int missing = a->run.chunk - distinct(rows);
    if (missing > 0)
        add_missing(a, t, missing);
}

void
action_add_duplicate(struct action *a, const struct err *e)
{
    char *why = *e->constraint ? xasprintf("another live job has the same unique key (index %s)",
                                           e->constraint)
                               : xstrdup("another live job has the same unique key");

    row_counts_add(row_counts_of(a), "", why, 1);
    free(why);
}

void
action_tried(struct action *a)
{
    int n = a->rows.n < a->how.batch_size ? a->rows.n : a->how.batch_size;

    a->run.batch = a->run.at = a->run.tries = a->run.narrow = 0;
    a->run.slowest_us = 0;
    if (a->rows.ids) /* as the first batch will send them, because the dialog shows the statement */
        params_set_list(&a->params, PARAM_IDS, (const char *const *)a->rows.ids, n);
    params_set(&a->params, PARAM_CURSOR, NULL);
    action_previewed(a);
}

void
action_is_busy(struct action *a, const char *what, int n, int of)
{
    char *words = of  ? xasprintf("%s: %d of %d", what, n, of)
                  : n ? xasprintf("%s: %d so far", what, n)
                      : xstrdup(what);

    free(a->preview.busy);
    a->preview.busy = words;
    action_touch(a);
}

const char *
action_busy(const struct action *a)
{
    return a->preview.busy ? a->preview.busy : "counting what this would change";
}
