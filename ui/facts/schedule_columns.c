/*
 * What the tables of the Schedules screen show, and the words for it.
 */
#include "ui/facts/schedule_columns.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ui/facts/verdict.h"

/* --- words ----------------------------------------------------------------------------------- */

const char *
schedule_outcome(const struct schedule_row *s, const char *outcome)
{
    bool waits =
        !strcmp(outcome, "ready") || !strcmp(outcome, "scheduled") || !strcmp(outcome, "blocked");

    return waits && s->queue_paused == 1 ? "held" : outcome;
}

void
schedule_due(const char *due, int64_t now_ms, char *out, size_t size)
{
    struct fmt now = fmt_iso(now_ms);
    size_t len = strlen(due);
    bool known = len == 23 && due[3] == ' ' && due[8] == '-' && due[20] == ':';

    if (!known) {
        snprintf(out, size, "%.40s", due);
        return;
    }
    if (!strcmp(due + 20, ":00"))
        len -= 3;
    if (!strncmp(due + 4, now.s, 5))
        snprintf(out, size, "%.4s%.*s", due, (int)len - 9, due + 9);
    else
        snprintf(out, size, "%.*s", (int)len, due);
}

/* --- columns --------------------------------------------------------------------------------- */

#define F(f) offsetof(struct schedule_row, f)
#define R(f) offsetof(struct run_line, r.f)

/* Red is for a failure of this hour. */
static enum role
outcome_role(const struct schedule_row *s, const char *outcome, const struct cell_ctx *c)
{
    enum role role = state_role(outcome);

    return role == ROLE_BAD && !verdict_is_recent(s->last_run_ms, c->now_ms) ? ROLE_WARN : role;
}

static void
draw_last(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct schedule_row *s = row;
    const char *outcome = schedule_outcome(s, s->last_outcome);

    if (s->last_run_ms == FIELD_NULL) {
        grid_str(g, r, ROLE_DIM, "—");
        return;
    }
    grid_printf(g, r, outcome_role(s, outcome, c), "%s %s", state_glyph(outcome),
                fmt_when(s->last_run_ms, c->now_ms, c->utc).s);
}

/* Rather "Berlin" than "Europe/Be…". */
static void
draw_zone(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const char *zone = ((const struct schedule_row *)row)->tz, *city = strrchr(zone, '/');

    (void)c;
    grid_str(g, r, ROLE_TEXT, city && (int)strlen(zone) > r.w ? city + 1 : zone);
}

static void
draw_outcome(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct schedule_row *s = row;
    const char *outcome = schedule_outcome(s, s->last_outcome);

    grid_str(g, r, outcome_role(s, outcome, c), outcome);
}

static void
draw_next(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct schedule_row *s = row;

    if (s->next_run_ms == FIELD_NULL)
        grid_right(g, r, strcmp(s->state, "failed") ? ROLE_DIM : ROLE_BAD,
                   strcmp(s->state, "failed") ? s->state : "never");
    else if (c->now_ms - s->next_run_ms >= SCHEDULE_LATE_MS)
        grid_printf(g, r, ROLE_BAD, "%*s late", r.w - 5,
                    fmt_age_short(c->now_ms - s->next_run_ms).s);
    else if (s->next_run_ms <= c->now_ms)
        grid_right(g, r, ROLE_TEXT, "now");
    else
        grid_right(g, r, ROLE_TEXT, fmt_age(s->next_run_ms - c->now_ms).s);
}

static enum role
role_of_missed(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return ((const struct schedule_row *)row)->missed > 0 ? ROLE_WARN : ROLE_TEXT;
}

static void
draw_run(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    char text[64];

    schedule_due(((const struct run_line *)row)->r.due, c->now_ms, text, sizeof text);
    size_t len = strlen(text);
    if ((int)len > r.w && len > 3 && text[len - 3] == ':') /* rather without the seconds */
        text[len - 3] = 0;
    grid_str(g, r, ROLE_TEXT, text);
}

/* How long it took, and why it failed or was not pushed. */
static void
draw_took(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct run_row *run = &((const struct run_line *)row)->r;
    struct pen p = pen_start(g, r);

    (void)c;
    if (run->took_ms != FIELD_NULL)
        pen_printf(&p, ROLE_TEXT, "%s%s", fmt_duration(run->took_ms).s, *run->error ? "  " : "");
    pen_put(&p, state_role(run->outcome), run->error);
}

static const struct column_special last_special = {draw_last, NULL, K_BIG, false};
static const struct column_special zone_special = {draw_zone, NULL, K_TEXT, false};
static const struct column_special outcome_special = {draw_outcome, NULL, K_TEXT, false};
static const struct column_special next_special = {draw_next, NULL, K_BIG, true};
static const struct column_special missed_special = {NULL, role_of_missed, K_CUSTOM, false};
static const struct column_special run_special = {draw_run, NULL, K_CUSTOM, false};
static const struct column_special took_special = {draw_took, NULL, K_CUSTOM, false};

/* clang-format off */
static const struct column columns[] = {
    {"name", "NAME", "Name of the schedule", K_TEXT, F(name), 12, 26, 0, NULL},
    {"cron", "CRON", "When: minute hour day month weekday", K_TEXT, F(cron), 11, 20, 0, NULL},
    {"tz", "ZONE", "By the clock of this time zone", K_CUSTOM, F(tz), 8, 20, 3,
     &zone_special},
    {"queue", "QUEUE", "Where its jobs go", K_TEXT, F(queue), 12, 24, 9, NULL},
    {"last", "LAST", "Time of the last run, and what became of its job", K_CUSTOM, F(last_run_ms), 13,
     13, 0, &last_special},
    {"outcome", "OUTCOME", "What became of the job of the last run", K_CUSTOM, F(last_outcome), 10, 10,
     11, &outcome_special},
    {"took", "TOOK", "How long that job ran", K_DURATION, F(last_took_ms), 7, 7, 5, NULL},
    {"next", "NEXT IN", "Time until the next run, or since when it is overdue", K_CUSTOM,
     F(next_run_ms), 8, 8, 0, &next_special},
    {"missed", "MISSED", "Of its last runs (100) those without a job of their own", K_COUNT, F(missed),
     6, 6, 4, &missed_special},
    {"state", "STATE", "active, paused, or failed: it can't push", K_STATE, F(state), 8, 8, 100, NULL},
    {"kind", "KIND", "What sort of job it is", K_TEXT, F(kind), 8, 16, 20, NULL},
    {"catch_up", "CATCH UP", "Which of the runs that were missed follow later", K_TEXT, F(catch_up), 8, 8,
     21, NULL},
    {"comment", "COMMENT", "A note", K_NOTE, F(comment), 10, 0, 22, NULL},
};
static const struct column run_columns[] = {
    {"outcome", "OUTCOME", "What became of the job", K_STATE, R(outcome), 12, 12, 0, NULL},
    {"run", "RUN", "The time it was for, by the schedule's clock", K_CUSTOM, R(due), 15, 20, 0,
     &run_special},
    {"job", "JOB", "Its id", K_UUID, R(job), 8, 8, 9, NULL},
    {"took", "TOOK, OR WHY NOT", "How long it ran, or why it failed", K_CUSTOM, R(error), 12, 0, 0,
     &took_special},
};
/* clang-format on */

static struct lead
lead_of(const void *row, const struct cell_ctx *c)
{
    return verdict_lead(verdict_of_schedule(row, c->now_ms));
}

const struct list_def schedule_list = {
    .columns = columns,
    .ncolumns = (int)(sizeof columns / sizeof *columns),
    .row_size = sizeof(struct schedule_row),
    .id_offset = F(name),
    .sort = "name",
    .lead = lead_of,
};
const struct list_def run_list = {
    .columns = run_columns,
    .ncolumns = (int)(sizeof run_columns / sizeof *run_columns),
    .row_size = sizeof(struct run_line),
    .id_offset = offsetof(struct run_line, id),
    .server_order = true,
};
