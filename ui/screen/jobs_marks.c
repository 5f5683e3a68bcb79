/*
 * Marks stay when their rows leave the list. This file keeps the states that the marked jobs had.
 */
#include "ui/screen/jobs_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/record.h"
#include "model/base/mem.h"

struct marked {
    char *id;
    char state[16];
};

static const struct job_row *
row_of(const struct list *l, const char *id)
{
    int n = list_count(l);

    for (int i = 0; i < n; i++) {
        const struct job_row *j = list_row(l, i);
        if (!strcmp(j->id, id))
            return j;
    }
    return NULL;
}

void
jobs_marks_forget(struct jobs_marks *m)
{
    for (int i = 0; i < m->n; i++)
        free(m->was[i].id);
    free(m->was);
    *m = (struct jobs_marks){0};
}

static struct marked
as_it_is(const struct list *l, const char *id)
{
    const struct job_row *j = row_of(l, id);
    struct marked now = {.id = xstrdup(id)};

    snprintf(now.state, sizeof now.state, "%.15s", j ? j->state : "");
    return now;
}

void
jobs_marks_remember(struct jobs_marks *m, const struct list *l)
{
    int n, old = 0;
    const char *const *ids = list_marks(l, &n);
    struct jobs_marks now = {.n = n, .moved = m->moved, .left = m->left};

    if (n == 0) {
        jobs_marks_forget(m);
        return;
    }
    now.was = xcalloc((size_t)n, sizeof *now.was);
    for (int i = 0; i < n; i++) {
        while (old < m->n && strcmp(m->was[old].id, ids[i]) < 0)
            old++;
        if (old < m->n && !strcmp(m->was[old].id, ids[i])) {
            now.was[i] = m->was[old];
            now.was[i].id = xstrdup(ids[i]);
        } else {
            now.was[i] = as_it_is(l, ids[i]);
        }
    }
    jobs_marks_forget(m);
    *m = now;
}

bool
jobs_marks_have(const struct jobs_marks *m, const struct list *l, const char *state)
{
    for (int i = 0; i < list_count(l); i++) {
        const struct job_row *j = list_row(l, i);
        if (!strcmp(j->state, state) && list_is_marked(l, j->id))
            return true;
    }
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->was[i].state, state))
            return true;
    return false;
}

const char *
jobs_marks_states(const struct jobs_marks *m, const struct list *l, struct arena *mem)
{
    static const char *const known[] = {"failed", "running", "retry",     "scheduled",
                                        "ready",  "blocked", "completed", "cancelled"};
    const char *states = "";

    if (jobs_marks_have(m, l, ""))
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (jobs_marks_have(m, l, known[i]))
            states = arena_printf(mem, "%s%s%s", states, *states ? " " : "", known[i]);
    return states;
}

void
jobs_marks_look(struct jobs_marks *m, const struct list *l, bool whole)
{
    m->moved = m->left = 0;
    for (int i = 0; i < m->n; i++) {
        const struct job_row *j = row_of(l, m->was[i].id);
        m->left += !j && whole;
        m->moved += j && *m->was[i].state && strcmp(j->state, m->was[i].state) != 0;
    }
}
