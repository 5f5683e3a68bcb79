/*
 * The columns of the jobs list. Times that count down (DUE) and tries are drawn here, all else by
 * the kind of its column.
 */
#include "ui/facts/jobs_columns.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/adapter/record.h"
#include "ui/facts/verdict.h"

#define F(f) offsetof(struct job_row, f)

static void
draw_tries(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct job_row *j = row;
    bool running = !strcmp(j->state, "running"); /* this try is not among those so far */
    int tries = j->tries == INT_MIN ? 0 : j->tries + running;
    char text[40];

    (void)c;
    if (j->tries == INT_MIN)
        snprintf(text, sizeof text, "—");
    else if (j->max_tries == INT_MIN)
        snprintf(text, sizeof text, "%d", tries);
    else
        snprintf(text, sizeof text, "%d/%d", tries, j->max_tries);
    grid_right(g, r, ROLE_TEXT, text);
}

/* What the job waits for: its lease while it runs, else the time when it may start. */
static int64_t
due_of(const struct job_row *j)
{
    if (!strcmp(j->state, "running"))
        return j->lease_until_ms;
    if (!strcmp(j->state, "scheduled") || !strcmp(j->state, "retry"))
        return j->run_after_ms;
    return FIELD_NULL;
}

static void
draw_due(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct job_row *j = row;
    int64_t due = due_of(j), late = due == FIELD_NULL ? 0 : c->now_ms - due;
    bool running = !strcmp(j->state, "running");

    if (j->stale == 1) {
        grid_right(g, r, ROLE_WARN, "stale");
        return;
    }
    if (due == FIELD_NULL)
        return;
    grid_right(g, r, late > 0 && running ? ROLE_WARN : ROLE_DIM,
               late > 0 && running ? "expired" : fmt_age_short(late).s);
}

/* Red is for a failure of this hour: in a list of failed jobs each is one. */
static void
draw_state(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct job_row *j = row;
    enum verdict v = verdict_of_job(j, c->now_ms);
    enum role plain = strcmp(j->state, "failed") ? state_role(j->state) : ROLE_DIM;

    grid_printf(g, r, v == VERDICT_WELL ? plain : verdict_role(v), "%s %s",
                j->stale == 1 ? "▲" : state_glyph(j->state), j->state);
}

static struct lead
lead_of(const void *row, const struct cell_ctx *c)
{
    return verdict_lead(verdict_of_job(row, c->now_ms));
}

static enum role
role_dim(const void *row, const struct cell_ctx *c)
{
    (void)row;
    (void)c;
    return ROLE_DIM;
}

/* They sort as numbers so that one sees whether there are any; the server gives the order. */
static const struct column_special tries_special = {draw_tries, NULL, K_INT, true};
static const struct column_special due_special = {draw_due, NULL, K_BIG, true};
static const struct column_special state_special = {draw_state, NULL, K_STATE, false};
static const struct column_special dim_special = {NULL, role_dim, K_CUSTOM, false};

/* clang-format off */
/* name, title, help, kind, offset, min, max, keep, special */
static const struct column columns[] = {
    {"id", "ID", "Last digits of the id", K_UUID, F(id), 8, 8, 0, NULL},
    {"queue", "QUEUE", "Queue of the job", K_TEXT, F(queue), 8, 16, 6, NULL},
    {"state", "STATE", "What it is now", K_CUSTOM, F(state), 11, 11, 0, &state_special},
    {"tries", "TRY", "Tries so far, of how many", K_CUSTOM, F(tries), 5, 5, 3, &tries_special},
    {"priority", "PRI", "0 is first, 9 is last", K_INT, F(priority), 3, 3, 9, NULL},
    {"age", "AGE", "Time since it was pushed", K_AGE, F(created_ms), 7, 7, 2, NULL},
    {"due", "DUE", "When it may start, or how long its lease lasts", K_CUSTOM, F(run_after_ms), 7, 7,
     7, &due_special},
    {"kind", "KIND", "Kind of job within the queue", K_TEXT, F(kind), 6, 14, 20, NULL},
    {"node", "NODE", "Who works on it, or did", K_TEXT, F(node), 8, 12, 8, NULL},
    {"error", "LAST ERROR", "Why the last try failed", K_TEXT, F(error), 20, 0, 4, &dim_special},
};
/* clang-format on */

const struct list_def jobs_def = {
    .columns = columns,
    .ncolumns = (int)(sizeof columns / sizeof *columns),
    .row_size = sizeof(struct job_row),
    .id_offset = F(id),
    .server_order = true,
    .lead = lead_of,
};

enum { ID_COLUMN = 0, ID_LEAST = 8, ID_MOST = 20 };

void
jobs_columns_fit(struct list *l, const struct job_row *rows, int n, bool foreign)
{
    int w = ID_LEAST;

    for (int i = 0; i < n && foreign; i++) {
        struct fmt id = fmt_id_tail(rows[i].id);
        int need = text_width(id.s, strlen(id.s), TEXT_LINE);
        w = need > w ? need : w;
    }
    list_hide_empty(l, foreign);
    list_column_width(l, ID_COLUMN, w < ID_MOST ? w : ID_MOST, w < ID_MOST ? w : ID_MOST);
}
