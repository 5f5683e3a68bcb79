/*
 * The columns of the jobs list. Times (WHEN), states and tries are drawn here; the kinds of the
 * other columns draw them.
 */
#include "ui/facts/jobs_columns.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/adapter/record.h"
#include "ui/facts/lease_columns.h"
#include "ui/facts/verdict.h"

#define F(f) offsetof(struct job_row, f)
enum { USUAL_PRIORITY = 5 };

struct fmt
job_tries(const struct job_row *j, int w)
{
    bool running = !strcmp(j->state, "running"); /* `tries` does not count the running one */
    int64_t tries = j->tries == INT_MIN ? 0 : (int64_t)j->tries + running;
    struct fmt f = {"—"};

    if (j->tries == INT_MIN)
        return f;
    int len = j->max_tries == INT_MIN
                  ? snprintf(f.s, sizeof f.s, "%" PRId64, tries)
                  : snprintf(f.s, sizeof f.s, "%" PRId64 "/%d", tries, j->max_tries);
    return len <= w ? f : fmt_count_fit(tries, w);
}

static void
draw_tries(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    (void)c;
    grid_right(g, r, ROLE_TEXT, job_tries(row, r.w).s);
}

/* How long the job has run, or when it may start. An expired lease or a lost worker is marked at
 * the start of the row; the Nodes screen shows how long leases last. If the queue system does not
 * record the worker, a long run is only a sign that it is lost: the time of the run is shown. */
static void
draw_due(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct job_row *j = row;
    bool running = !strcmp(j->state, "running");
    bool waits = !strcmp(j->state, "scheduled") || !strcmp(j->state, "retry");
    bool over = running && j->lease_until_ms != FIELD_NULL && j->lease_until_ms < c->now_ms;
    bool timed = running && j->started_ms != FIELD_NULL;

    if ((j->stale == 1 || over) && (*j->node || !timed))
        grid_right(g, r, ROLE_WARN, j->stale == 1 ? "no worker" : "expired");
    else if (timed) {
        char text[60];
        struct fmt age = fmt_age(c->now_ms - j->started_ms);
        snprintf(text, sizeof text, "for %s", age.s); /* 11 cells at most */
        grid_right(g, r, j->stale == 1 || over ? ROLE_WARN : ROLE_TEXT, text);
    } else if (waits && j->run_after_ms != FIELD_NULL)
        grid_right(g, r, ROLE_DIM, fmt_age(c->now_ms - j->run_after_ms).s);
}

/* When the lease of a running job ends. */
static void
draw_left(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct job_row *j = row;

    if (!strcmp(j->state, "running"))
        lease_draw_left(g, r, j->lease_until_ms, c->now_ms);
}

/* The usual priority is a dot, so that the others are seen. Only of our own queue is it known. */
static void
draw_priority(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    int priority = ((const struct job_row *)row)->priority;
    bool usual = c->ctx && priority == USUAL_PRIORITY;

    grid_right(g, r, usual ? ROLE_DIM : ROLE_TEXT,
               usual                 ? "·"
               : priority == INT_MIN ? ""
                                     : fmt_int(priority).s);
}

/* Only a failure of the last hour is red, because in a list of failed jobs every row is a failure.
 */
static void
draw_state(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct job_row *j = row;
    enum verdict v = verdict_of_job(j, c->now_ms);
    enum role plain = strcmp(j->state, "failed") ? state_role(j->state) : ROLE_DIM;

    grid_printf(g, r, v == VERDICT_WELL ? plain : verdict_role(v), "%s %s",
                j->stale == 1 ? "▲" : state_glyph(j->state), j->state);
}

static struct sign
sign_of(const void *row, const struct cell_ctx *c)
{
    return verdict_sign(verdict_of_job(row, c->now_ms));
}

static enum role
role_dim(const void *row, const struct cell_ctx *c)
{
    (void)row;
    (void)c;
    return ROLE_DIM;
}

/* Their K_ kinds only set the alignment and the order; the server sorts the jobs. */
static const struct column_special tries_special = {draw_tries, NULL, K_INT, true};
static const struct column_special priority_special = {draw_priority, NULL, K_INT, true};
static const struct column_special due_special = {draw_due, NULL, K_CUSTOM, true};
static const struct column_special left_special = {draw_left, NULL, K_TIME, true};
static const struct column_special state_special = {draw_state, NULL, K_STATE, false};
static const struct column_special dim_special = {NULL, role_dim, K_CUSTOM, false};

/* clang-format off */
const struct column jobs_columns[] = {
    {.name = "id", .title = "ID", .help = "Last digits of the id", .kind = K_UUID, .offset = F(id), .min_w = 8,
     .max_w = 8,
     .place = 1, .plain = K_TEXT},
    {.name = "queue", .title = "QUEUE", .help = "Queue of the job", .kind = K_TEXT, .offset = F(queue), .min_w = 8,
     .max_w = 16, .keep = 1,
     .place = 2, .most = 24},
    {.name = "state", .title = "STATE", .help = "What it is now", .kind = K_CUSTOM, .offset = F(state), .min_w = 11,
     .max_w = 11, .special = &state_special,
     .place = 4},
    {.name = "tries", .title = "TRY", .help = "Tries so far, of how many", .kind = K_CUSTOM, .offset = F(tries),
     .min_w = 5, .max_w = 5, .keep = 5, .special = &tries_special,
     .place = 6, .table = "TRIES"},
    {.name = "priority", .title = "PRI", .help = "0 is first, 9 is last; a dot: 5, the usual one", .kind = K_CUSTOM,
     .offset = F(priority), .min_w = 3, .max_w = 3, .keep = 9, .special = &priority_special,
     .place = 5, .plain = K_INT},
    {.name = "age", .title = "AGE", .help = "Time since it was pushed", .kind = K_AGE, .offset = F(created_ms),
     .min_w = 7, .max_w = 7, .keep = 3,
     .only = ON_SCREEN | IN_TABLE, .place = 8},
    {.name = "due", .title = "WHEN", .help = "How long it runs, or when it may start", .kind = K_CUSTOM,
     .offset = F(run_after_ms), .min_w = 11, .max_w = 11, .keep = 2, .special = &due_special,
     .only = ON_SCREEN},
    {.name = "left", .title = "LEASE", .help = "Time left on its lease, or since when it has expired",
     .kind = K_CUSTOM, .offset = F(lease_until_ms), .min_w = 10, .max_w = 11, .keep = 2, .special = &left_special,
     .only = ON_SCREEN},
    {.name = "kind", .title = "KIND", .help = "Kind of job within the queue", .kind = K_TEXT, .offset = F(kind),
     .min_w = 6, .max_w = 14, .keep = 20,
     .place = 3, .most = 16},
    {.name = "node", .title = "NODE", .help = "Who works on it, or did", .kind = K_NAME, .offset = F(node),
     .min_w = 8, .max_w = 12, .keep = 8,
     .place = 11, .most = 20},
    {.name = "error", .title = "LAST ERROR", .help = "Why the last try failed", .kind = K_NAME, .offset = F(error),
     .min_w = 20, .keep = 4, .special = &dim_special,
     .place = 13, .table = "ERROR", .most = 60},
    /* the command line alone */
    {.name = "max_tries", .title = "MAX", .kind = K_INT, .offset = F(max_tries), .only = IN_TABLE | IN_DATA, .place = 7},
    {.name = "created", .kind = K_TIME, .offset = F(created_ms), .only = IN_DATA, .place = 9},
    {.name = "run_after", .kind = K_TIME, .offset = F(run_after_ms), .only = IN_DATA, .place = 10},
    {.name = "lease_until", .kind = K_TIME, .offset = F(lease_until_ms), .only = IN_DATA, .place = 12},
    {0},
};
/* clang-format on */

const struct list_def jobs_def = {
    .columns = jobs_columns,
    .row_size = sizeof(struct job_row),
    .id_offset = F(id),
    .server_order = true,
    .sign = sign_of,
};

enum { ID_COLUMN = 0, ID_LEAST = 8, ID_MOST = 20 };

void
jobs_columns_fit(struct list *l, const struct job_row *rows, int n, bool foreign, bool when)
{
    int w = ID_LEAST;
    bool leased = false; /* the nodes of our own queue hold the leases, and its Nodes shows them */
    bool timed = !foreign;

    for (int i = 0; i < n && foreign; i++) {
        struct fmt id = fmt_id_tail(rows[i].id);
        int need = text_width(id.s, strlen(id.s), TEXT_LINE);
        w = need > w ? need : w;
        bool running = !strcmp(rows[i].state, "running");
        leased |= running && rows[i].lease_until_ms != FIELD_NULL;
        timed |= (running ? rows[i].started_ms : rows[i].run_after_ms) != FIELD_NULL;
    }
    list_column_lacks(l, "due", !when || !timed);
    list_column_lacks(l, "left", !leased);
    list_hide_empty(l, foreign);
    list_set_ctx(l, foreign ? NULL : l);
    list_column_width(l, ID_COLUMN, w < ID_MOST ? w : ID_MOST, w < ID_MOST ? w : ID_MOST);
}
