/*
 * The rules of the one scale. Each looks at one row.
 */
#include "ui/facts/verdict.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "model/base/field.h"
#include "model/store/fail_day.h"

struct sign
verdict_sign(enum verdict v)
{
    static const struct sign signs[] = {
        [VERDICT_WELL] = {NULL,  ROLE_TEXT},
        [VERDICT_DECIDED] = {"‖", ROLE_DIM },
        [VERDICT_WARN] = {"▲", ROLE_WARN},
        [VERDICT_BAD] = {"×",  ROLE_BAD }
    };

    return signs[v];
}

enum role
verdict_role(enum verdict v)
{
    static const enum role roles[] = {[VERDICT_WELL] = ROLE_TEXT,
                                      [VERDICT_DECIDED] = ROLE_DIM,
                                      [VERDICT_WARN] = ROLE_WARN,
                                      [VERDICT_BAD] = ROLE_BAD};

    return roles[v];
}

bool
verdict_is_recent(int64_t at_ms, int64_t now_ms)
{
    return at_ms != FIELD_NULL && now_ms - at_ms < RECENT_MS;
}

enum verdict
verdict_of_age(int64_t age_ms)
{
    if (age_ms == FIELD_NULL || age_ms <= OLD_MS)
        return VERDICT_WELL;
    return age_ms > VERY_OLD_MS ? VERDICT_BAD : VERDICT_WARN;
}

/* The number of recent failures. Failed jobs that somebody has requeued or discarded are no
 * trouble. If it is not known how many of the hour are left: no more than all that are left, unless
 * jobs fail now. */
static int64_t
failed_lately(const struct queue_row *q)
{
    if (q->failed_left != FIELD_NULL && (q->failed == FIELD_NULL || q->failed > q->failed_left))
        return q->failed_left;
    if (q->failed_left != FIELD_NULL) /* asked for more rarely than the number of all */
        return q->failed;
    bool fewer = q->failed != FIELD_NULL && q->failed < q->failed_hour;

    return fewer && !(q->failed_per_s > 0) ? q->failed : q->failed_hour;
}

enum verdict
verdict_of_failed(const struct queue_row *q)
{
    if (failed_lately(q) >= MANY_FAILED)
        return VERDICT_BAD;
    return q->failed >= MANY_FAILED ? VERDICT_WARN : VERDICT_WELL;
}

static enum verdict
worse(enum verdict a, enum verdict b)
{
    return a > b ? a : b;
}

enum verdict
verdict_of_queue(const struct queue_row *q, enum trend trend, int64_t now_ms)
{
    bool waits = q->oldest_ms != FIELD_NULL && q->oldest_ms > 0;

    if (q->paused == 1)
        return VERDICT_DECIDED;
    enum verdict v =
        worse(verdict_of_failed(q), verdict_of_age(waits ? now_ms - q->oldest_ms : FIELD_NULL));
    return v == VERDICT_WELL && trend == TREND_FILLS ? VERDICT_WARN : v;
}

bool
node_is_cut_off(const struct node_row *n)
{
    enum node_state state = node_state(n);
    bool beats = state == NODE_UP || state == NODE_LATE || state == NODE_ASLEEP;

    return beats && n->session_alive == 0 && n->backend_pid != INT_MIN;
}

enum verdict
verdict_of_node(const struct node_row *n, bool foreign)
{
    enum node_state state = node_state(n);

    if (state == NODE_UNKNOWN && foreign)
        return n->expired > 0 ? VERDICT_BAD : VERDICT_WELL;
    if (node_is_gone(n))
        return node_held(n) > 0 ? VERDICT_BAD : VERDICT_WELL;
    if (state == NODE_DRAINING)
        return VERDICT_DECIDED;
    return state == NODE_LATE || node_is_cut_off(n) ? VERDICT_WARN : VERDICT_WELL;
}

/* Whether more jobs fail than in a usual hour: the mean of the hours before the last one, at most
 * 23, since the first job failed. */
static bool
is_rising(const struct group_row *g, int64_t now_ms)
{
    double before = 0, hours = 23;

    if (g->day->hour < RISING_FAILED || g->first_ms == FIELD_NULL)
        return false;
    for (int i = 0; i < FAIL_STEPS; i++)
        before += (double)g->day->counts[i];
    before -= (double)g->day->hour;
    hours = fmin(hours, (double)(now_ms - g->first_ms - RECENT_MS) / RECENT_MS);
    return (double)g->day->hour > 2 * before / fmax(hours, 1);
}

enum fail_trend
fail_trend_of(const struct group_row *g, int64_t now_ms)
{
    if (!verdict_is_recent(g->last_ms, now_ms))
        return FAIL_OLD;
    if (verdict_is_recent(g->first_ms, now_ms))
        return g->n >= MANY_FAILED ? FAIL_RISING : FAIL_NEW;
    return g->day && (g->day->hour >= MANY_FAILED || is_rising(g, now_ms)) ? FAIL_RISING : FAIL_OLD;
}

enum verdict
verdict_of_group(const struct group_row *g, int64_t now_ms)
{
    static const enum verdict verdicts[] = {
        [FAIL_OLD] = VERDICT_WELL, [FAIL_NEW] = VERDICT_WARN, [FAIL_RISING] = VERDICT_BAD};

    return verdicts[fail_trend_of(g, now_ms)];
}

enum verdict
verdict_of_job(const struct job_row *j, int64_t now_ms)
{
    if (j->stale == 1)
        return VERDICT_WARN;
    if (!strcmp(j->state, "running") && j->lease_until_ms != FIELD_NULL &&
        j->lease_until_ms < now_ms)
        return VERDICT_WARN;
    return !strcmp(j->state, "failed") && verdict_is_recent(j->changed_ms, now_ms) ? VERDICT_BAD
                                                                                   : VERDICT_WELL;
}

static bool
is_failure(const char *outcome)
{
    return !strcmp(outcome, "failed") || !strcmp(outcome, "lost") || !strcmp(outcome, "timeout");
}

enum verdict
verdict_of_schedule(const struct schedule_row *s, int64_t now_ms)
{
    if (!strcmp(s->state, "failed"))
        return VERDICT_BAD;
    if (!strcmp(s->state, "paused"))
        return VERDICT_DECIDED;
    if (s->next_run_ms != FIELD_NULL && now_ms - s->next_run_ms >= SCHEDULE_LATE_MS)
        return VERDICT_BAD;
    if (is_failure(s->last_outcome) || !strcmp(s->last_outcome, "not pushed"))
        return VERDICT_WARN;
    return s->queue_paused == 1 ? VERDICT_DECIDED : VERDICT_WELL;
}

enum verdict
verdict_of_session(const struct health_session *s, int64_t now_ms)
{
    int64_t open = s->xact_ms == FIELD_NULL ? 0 : now_ms - s->xact_ms;

    if (health_is_idle(s) && open >= HEALTH_IDLE_MS)
        return open >= HEALTH_LONG_MS ? VERDICT_BAD : VERDICT_WARN;
    return health_waits(s) || !strcmp(s->kind, "prepared") ? VERDICT_WARN : VERDICT_WELL;
}

/* Dead rows count as trouble only if autovacuum should have removed them by now, and only if there
 * are many. autovacuum looks once a minute. */
enum verdict
verdict_of_table(const struct health_table *t)
{
    double part = health_dead_part(t);

    if (isnan(health_fill(t)) || health_fill(t) < 1 || t->dead < HEALTH_MANY_DEAD)
        return t->vacuum_off == 1 ? VERDICT_WARN : VERDICT_WELL;
    return !isnan(part) && part >= HEALTH_MUCH_DEAD ? VERDICT_BAD : VERDICT_WARN;
}
