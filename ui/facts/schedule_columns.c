/*
 * The columns of the tables on the Schedules screen, and their words.
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

    return waits && s->queue_paused == 1 ? "waits" : outcome;
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

/* Only a failure of the last hour is red. */
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
    enum verdict late = verdict_of_lateness(s, c->now_ms);

    if (s->next_run_ms == FIELD_NULL)
        grid_right(g, r, strcmp(s->state, "failed") ? ROLE_DIM : ROLE_BAD,
                   strcmp(s->state, "failed") ? s->state : "never");
    else if (late > VERDICT_WELL)
        grid_printf(g, r, verdict_role(late), "%*s late", r.w - 5,
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
    if ((int)len > r.w && len > 3 && text[len - 3] == ':') /* cut the seconds */
        text[len - 3] = 0;
    grid_str(g, r, ROLE_TEXT, text);
}

/* How long the run took, and why it failed or was not pushed. */
static void
draw_took(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct run_row *run = &((const struct run_line *)row)->r;
    struct pen p = pen_start(g, r);

    (void)c;
    if (run->took_ms != FIELD_NULL)
        pen_printf(&p, ROLE_TEXT, "%s%s", fmt_duration(run->took_ms).s, *run->error ? "  " : "");
    pen_put(&p, state_role(run->outcome),
            !strcmp(run->outcome, "waits") ? "queue paused" : run->error);
}

static const struct column_special last_special = {draw_last, NULL, K_BIG, false};
static const struct column_special zone_special = {draw_zone, NULL, K_TEXT, false};
static const struct column_special outcome_special = {draw_outcome, NULL, K_TEXT, false};
static const struct column_special next_special = {draw_next, NULL, K_BIG, true};
static const struct column_special missed_special = {NULL, role_of_missed, K_CUSTOM, false};
static const struct column_special run_special = {draw_run, NULL, K_CUSTOM, false};
static const struct column_special took_special = {draw_took, NULL, K_CUSTOM, false};

/* clang-format off */
const struct column schedule_columns[] = {
    {.name = "name", .title = "NAME", .help = "Name of the schedule", .kind = K_TEXT, .offset = F(name), .min_w = 12,
     .max_w = 26,
     .place = 1, .most = 30},
    {.name = "cron", .title = "CRON", .help = "When: minute hour day month weekday", .kind = K_TEXT,
     .offset = F(cron), .min_w = 11, .max_w = 20,
     .place = 2, .most = 24},
    {.name = "tz", .title = "ZONE", .help = "By the clock of this time zone", .kind = K_CUSTOM, .offset = F(tz),
     .min_w = 8, .max_w = 20, .keep = 3, .special = &zone_special,
     .place = 3, .most = 20},
    {.name = "queue", .title = "QUEUE", .help = "Where its jobs go", .kind = K_TEXT, .offset = F(queue), .min_w = 12,
     .max_w = 24, .keep = 9,
     .place = 4, .most = 24},
    {.name = "last", .title = "LAST", .help = "Time of the last run, and what became of its job", .kind = K_CUSTOM,
     .offset = F(last_run_ms), .min_w = 13, .max_w = 13, .special = &last_special,
     .place = 7, .json = "last_run", .table = "LAST RUN", .plain = K_TIME},
    {.name = "outcome", .title = "OUTCOME", .help = "What became of the job of the last run", .kind = K_CUSTOM,
     .offset = F(last_outcome), .min_w = 10, .max_w = 10, .keep = 11, .special = &outcome_special,
     .place = 8, .json = "last_outcome", .plain = K_NAME},
    {.name = "took", .title = "TOOK", .help = "How long that job ran", .kind = K_DURATION, .offset = F(last_took_ms),
     .min_w = 7, .max_w = 7, .keep = 5,
     .only = ON_SCREEN},
    {.name = "next", .title = "NEXT IN", .help = "Time until the next run, or since when it is overdue",
     .kind = K_CUSTOM, .offset = F(next_run_ms), .min_w = 8, .max_w = 8, .special = &next_special,
     .place = 9, .json = "next_run", .table = "NEXT RUN", .plain = K_TIME},
    {.name = "missed", .title = "MISSED", .help = "Of its last runs (100) those without a job of their own",
     .kind = K_COUNT, .offset = F(missed), .min_w = 6, .max_w = 6, .keep = 4, .special = &missed_special,
     .only = ON_SCREEN},
    {.name = "state", .title = "STATE", .help = "active, paused, or failed: it can't push", .kind = K_STATE,
     .offset = F(state), .min_w = 8, .max_w = 8, .keep = 100,
     .place = 6},
    {.name = "kind", .title = "KIND", .help = "What sort of job it is", .kind = K_NAME, .offset = F(kind), .min_w = 8,
     .max_w = 16, .keep = 20,
     .place = 5, .most = 16},
    {.name = "catch_up", .title = "CATCH UP", .help = "Which of the runs that were missed follow later",
     .kind = K_TEXT, .offset = F(catch_up), .min_w = 8, .max_w = 8, .keep = 21,
     .place = 10},
    {.name = "comment", .title = "COMMENT", .help = "A note", .kind = K_NOTE, .offset = F(comment), .min_w = 10,
     .keep = 22,
     .only = ON_SCREEN},
    /* the command line alone */
    {.name = "error", .title = "ERROR", .kind = K_NAME, .offset = F(error), .only = IN_TABLE | IN_DATA, .place = 11, .most = 40},
    {0},
};
static const struct column run_columns[] = {
    {.name = "outcome", .title = "OUTCOME", .help = "What became of the job", .kind = K_STATE, .offset = R(outcome),
     .min_w = 12, .max_w = 12},
    {.name = "run", .title = "RUN", .help = "The time it was for, by the schedule's clock", .kind = K_CUSTOM,
     .offset = R(due), .min_w = 15, .max_w = 20, .special = &run_special},
    {.name = "job", .title = "JOB", .help = "Its id", .kind = K_UUID, .offset = R(job), .min_w = 8, .max_w = 8,
     .keep = 9},
    {.name = "took", .title = "RESULT", .help = "How long it ran, or why it failed", .kind = K_CUSTOM,
     .offset = R(error), .min_w = 12, .special = &took_special},
    {0},
};
/* clang-format on */

static struct sign
sign_of(const void *row, const struct cell_ctx *c)
{
    return verdict_sign(verdict_of_schedule(row, c->now_ms));
}

const struct list_def schedule_list = {
    .columns = schedule_columns,
    .row_size = sizeof(struct schedule_row),
    .id_offset = F(name),
    .sort = "name",
    .sign = sign_of,
};
const struct list_def run_list = {
    .columns = run_columns,
    .row_size = sizeof(struct run_line),
    .id_offset = offsetof(struct run_line, id),
    .server_order = true,
};
