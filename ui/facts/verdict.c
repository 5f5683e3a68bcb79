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
    return condition_judge_ms(COND_OLDEST, age_ms);
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
    return verdict_worse(condition_judge(COND_FAILED_HOUR, (double)failed_lately(q)),
                         condition_judge(COND_FAILED, (double)q->failed));
}

enum verdict
verdict_of_queue(const struct queue_row *q, enum trend trend, int64_t now_ms)
{
    bool waits = q->oldest_ms != FIELD_NULL && q->oldest_ms > 0;

    if (q->paused == 1)
        return VERDICT_DECIDED;
    enum verdict v = verdict_worse(verdict_of_failed(q),
                                   verdict_of_age(waits ? now_ms - q->oldest_ms : FIELD_NULL));
    return verdict_worse(v, condition_judge(COND_FILLS, trend == TREND_FILLS));
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
        return condition_judge(COND_ABANDONED, (double)n->expired);
    if (node_is_gone(n))
        return condition_judge(COND_DEAD, node_held(n) > 0);
    if (state == NODE_DRAINING)
        return VERDICT_DECIDED;
    return verdict_worse(condition_judge(COND_LATE, state == NODE_LATE),
                         condition_judge(COND_CUT_OFF, node_is_cut_off(n)));
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

/* One error may make as many jobs fail as one queue may have. */
static bool
is_many(int64_t failed)
{
    return condition_judge(COND_FAILED_HOUR, (double)failed) == VERDICT_BAD;
}

enum fail_trend
fail_trend_of(const struct group_row *g, int64_t now_ms)
{
    if (!verdict_is_recent(g->last_ms, now_ms))
        return FAIL_OLD;
    if (verdict_is_recent(g->first_ms, now_ms))
        return is_many(g->n) ? FAIL_RISING : FAIL_NEW;
    return g->day && (is_many(g->day->hour) || is_rising(g, now_ms)) ? FAIL_RISING : FAIL_OLD;
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
verdict_of_lateness(const struct schedule_row *s, int64_t now_ms)
{
    return condition_judge_ms(COND_OVERDUE,
                              s->next_run_ms == FIELD_NULL ? FIELD_NULL : now_ms - s->next_run_ms);
}

enum verdict
verdict_of_schedule(const struct schedule_row *s, int64_t now_ms)
{
    bool failed = !strcmp(s->state, "failed"),
         ended_ill = is_failure(s->last_outcome) || !strcmp(s->last_outcome, "not pushed");

    if (!strcmp(s->state, "paused"))
        return VERDICT_DECIDED;
    enum verdict v = verdict_worse(
        condition_judge(COND_CANT_PUSH, failed),
        verdict_worse(verdict_of_lateness(s, now_ms), condition_judge(COND_LAST_RUN, ended_ill)));
    return v == VERDICT_WELL && s->queue_paused == 1 ? VERDICT_DECIDED : v;
}

enum verdict
verdict_of_session(const struct health_session *s, int64_t now_ms)
{
    int64_t open = s->xact_ms == FIELD_NULL ? 0 : now_ms - s->xact_ms;

    bool wants_a_look = health_waits(s) || !strcmp(s->kind, "prepared");

    return verdict_worse(wants_a_look ? VERDICT_WARN : VERDICT_WELL,
                         health_is_idle(s) ? condition_judge_ms(COND_IDLE, open) : VERDICT_WELL);
}

/* Dead rows count as trouble only if autovacuum should have removed them by now, and only if there
 * are many. autovacuum looks once a minute. */
enum verdict
verdict_of_table(const struct health_table *t)
{
    double part = health_dead_part(t);

    enum verdict off = condition_judge(COND_VACUUM_OFF, t->vacuum_off == 1);

    if (isnan(health_fill(t)) || health_fill(t) < 1 || t->dead < HEALTH_MANY_DEAD)
        return off;
    return verdict_worse(off, condition_judge(COND_DEAD_ROWS, part));
}
