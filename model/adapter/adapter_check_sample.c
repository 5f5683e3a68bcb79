/*
 * Takes the sample: rows of the database on which the adapter is tried, read by its own sections.
 */
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter_check_parts.h"
#include "model/base/mem.h"

const char *const check_states[8] = {"scheduled", "ready",   "retry",     "running",
                                     "failed",    "blocked", "completed", "cancelled"};

void
check_clear(struct check *c)
{
    params_done(&c->p);
    params_set_int(&c->p, PARAM_LIMIT, 20);
    params_set_int(&c->p, PARAM_N, 1000);
}

static void
note_text(char **at, const char *text)
{
    if (!*at && *text)
        *at = xstrdup(text);
}

static void
note_name(char **names, int *n, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(names[i], name))
            return;
    if (*n < NAMES_MOST && *name)
        names[(*n)++] = xstrdup(name);
}

static void
note_jobs(struct check_sample *s, const struct job_row *row, int n, int most)
{
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int k = 0; k < s->nids; k++)
            known |= !strcmp(s->ids[k], row[i].id);
        if (!known && i < most && s->nids < SAMPLES_MOST)
            s->ids[s->nids++] = xstrdup(row[i].id);
        note_text(&s->queue, row[i].queue);
        note_text(&s->kind, row[i].kind);
        note_text(&s->node, row[i].node);
        note_text(&s->error, row[i].error);
        note_text(&s->cursor, row[i].cursor);
        if (!strcmp(row[i].state, "running"))
            note_name(s->nodes, &s->nnodes, row[i].node);
    }
}

/* The rows of a section with the parameters c->p. Empty if the section fails; the check of that
 * section reports the failure. */
static bool
sample_section(struct check *c, enum section_id s, struct rowset *rows)
{
    struct result *r = NULL;
    struct err e = {0};

    *rows = (struct rowset){0};
    if (!adapter_has(c->a, s))
        return true;
    if (!check_ask(c, s, &r, &e))
        return false;
    if (r && !record_decode(section_kinds[s].record, r, rows, &e))
        *rows = (struct rowset){0};
    return true;
}

/* Two jobs in each state, and the newest of all. */
static bool
look_for_jobs(struct check *c)
{
    struct rowset rows;

    for (int i = 0; i < 9; i++) {
        if (i < 8 && !adapter_takes(c->a, SEC_JOBS, PARAM_STATES))
            continue;
        check_clear(c);
        if (i < 8)
            params_set_list(&c->p, PARAM_STATES, &check_states[i], 1);
        if (!sample_section(c, SEC_JOBS, &rows))
            return false;
        note_jobs(&c->sample, rows.rows, rows.n, i < 8 ? 2 : 8);
        rowset_free(&rows);
    }
    return true;
}

bool
check_take_sample(struct check *c)
{
    struct check_sample *s = &c->sample;
    struct rowset rows;

    if (!look_for_jobs(c))
        return false;
    check_clear(c);
    if (!sample_section(c, SEC_QUEUES, &rows))
        return false;
    const struct queue_row *q = rows.rows;
    for (int pass = 0; pass < 2; pass++) /* first pass: the paused ones */
        for (int i = 0; i < rows.n; i++)
            if ((q[i].paused == 1) == (pass == 0))
                note_name(s->queues, &s->nqueues, q[i].queue);
    rowset_free(&rows);
    if (!sample_section(c, SEC_NODES, &rows))
        return false;
    const struct node_row *node = rows.rows;
    for (int i = 0; i < rows.n; i++)
        note_name(s->nodes, &s->nnodes, node[i].node);
    rowset_free(&rows);
    if (!sample_section(c, SEC_SCHEDULES, &rows))
        return false;
    const struct schedule_row *schedule = rows.rows;
    for (int i = 0; i < rows.n; i++)
        note_name(s->schedules, &s->nschedules, schedule[i].name);
    rowset_free(&rows);
    return true;
}

void
check_sample_done(struct check_sample *s)
{
    for (int i = 0; i < s->nids; i++)
        free(s->ids[i]);
    for (int i = 0; i < s->nqueues; i++)
        free(s->queues[i]);
    for (int i = 0; i < s->nnodes; i++)
        free(s->nodes[i]);
    for (int i = 0; i < s->nschedules; i++)
        free(s->schedules[i]);
    free(s->queue);
    free(s->kind);
    free(s->node);
    free(s->error);
    free(s->cursor);
}
