/*
 * The figures of `queuetop check`, each by one rule. A limit that the user has not set is that of
 * model/store/conditions.def, by which the console colours its rows, too.
 */
#include "ui/facts/checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/store/health.h"
#include "ui/facts/life.h"
#include "ui/term/fmt.h"

enum {
    SCHEDULER_MS = 10000,   /* without a sign for less, a scheduler counts as alive */
    LEASE_GRACE_MS = 10000, /* a scheduler takes back expired leases within a second */
    PACE_MINUTES = 5
};

/* --- limits ----------------------------------------------------------------------------------- */

struct fmt
condition_limit(const struct condition *k, double limit)
{
    struct fmt f = {"-"};

    if (isnan(limit))
        return f;
    if (k->unit == UNIT_SECONDS)
        return fmt_age_short((int64_t)(limit * 1000));
    snprintf(f.s, sizeof f.s, k->unit == UNIT_PART ? "%.0f%%" : "%.0f",
             k->unit == UNIT_PART ? 100 * limit : limit);
    return f;
}

static bool
read_value(const struct condition *k, const char *text, double *value, struct err *e)
{
    char *end;
    int64_t ms;

    if (!strcmp(text, "off")) {
        *value = (double)NAN;
        return true;
    }
    if (k->unit == UNIT_SECONDS) {
        if (!duration_parse(text, &ms, e))
            return fail_in(e, "%s", k->name);
        *value = (double)ms / 1000;
        return true;
    }
    *value = strtod(text, &end);
    if (*text < '0' || *text > '9' || *end || !isfinite(*value))
        return fail(e, ERR_USAGE, "%s takes a number or off, not '%s'", k->name, text);
    return true;
}

static bool
find_kind(const char *spec, size_t len, enum condition_id *id, struct err *e)
{
    struct buf names = {0};

    for (int i = 0; i < CONDITIONS; i++) {
        if (!conditions[i].is_check)
            continue;
        if (strlen(conditions[i].name) == len && !strncmp(conditions[i].name, spec, len)) {
            *id = (enum condition_id)i;
            buf_free(&names);
            return true;
        }
        buf_printf(&names, "%s%s", i ? ", " : "", conditions[i].name);
    }
    fail(e, ERR_USAGE, "there is no check '%.*s'; there are %s", (int)len, spec, names.data);
    buf_free(&names);
    return false;
}

bool
check_limit_add(struct check_limits *l, bool is_crit, const char *spec, struct arena *mem,
                struct err *e)
{
    struct check_limit new = {.is_crit = is_crit};
    const char *is = strrchr(spec, '='), *at = strchr(spec, '@');

    if (!is)
        return fail(e, ERR_USAGE, "a limit is NAME=VALUE or NAME@QUEUE=VALUE, not '%s'", spec);
    if (at > is)
        at = NULL;
    if (!find_kind(spec, (size_t)((at ? at : is) - spec), &new.id, e))
        return false;
    const struct condition *k = &conditions[new.id];
    if (at && k->of != OF_QUEUE)
        return fail(e, ERR_USAGE, "%s has no limit for a single queue: leave out @QUEUE", k->name);
    if (!read_value(k, is + 1, &new.value, e))
        return false;
    if (at)
        new.queue = arena_strndup(mem, at + 1, (size_t)(is - at - 1));
    if (l->n == CHECK_LIMITS)
        return fail(e, ERR_USAGE, "%d limits are the most", CHECK_LIMITS);
    l->list[l->n++] = new;
    return true;
}

static double
limit_of(const struct check_limits *l, enum condition_id id, bool is_crit, const char *queue)
{
    double value = is_crit ? conditions[id].bad : conditions[id].warn;
    bool own = false;

    for (int i = 0; i < l->n; i++) {
        const struct check_limit *x = &l->list[i];
        if (x->id != id || x->is_crit != is_crit || (own && !x->queue) ||
            (x->queue && (!queue || strcmp(x->queue, queue) != 0)))
            continue;
        value = x->value;
        own = x->queue != NULL;
    }
    return value;
}

static bool
has_own_limit(const struct check_limits *l, enum condition_id id, const char *queue)
{
    for (int i = 0; i < l->n; i++)
        if (l->list[i].id == id && l->list[i].queue && !strcmp(l->list[i].queue, queue))
            return true;
    return false;
}

/* --- one figure ------------------------------------------------------------------------------- */

struct judge {
    const struct check_look *look;
    const struct check_limits *limits;
    struct arena *mem;
    struct checks *out;
};

static enum verdict
verdict_by(const struct check_seen *s)
{
    if (!isnan(s->crit) && s->value > s->crit)
        return VERDICT_BAD;
    return !isnan(s->warn) && s->value > s->warn ? VERDICT_WARN : VERDICT_WELL;
}

/* Keeps the worst figure of a check, and counts the bad ones. */
static void
put(struct judge *j, enum condition_id id, const char *queue, double value, const char *text)
{
    struct check_seen *kept = &j->out->seen[id],
                      new = {.known = true,
                             .value = value,
                             .warn = limit_of(j->limits, id, false, queue),
                             .crit = limit_of(j->limits, id, true, queue),
                             .queue = queue,
                             .text = text};

    new.verdict = verdict_by(&new);
    if (queue && has_own_limit(j->limits, id, queue) && j->out->nown < CHECK_LIMITS)
        j->out->own[j->out->nown++] = (struct check_own){id, new};
    new.bad = kept->bad + (new.verdict > VERDICT_WELL);
    if (!kept->known || new.verdict > kept->verdict ||
        (new.verdict == kept->verdict &&new.value > kept->value))
        *kept = new;
    kept->bad = new.bad;
}

static const char *
say_time(struct judge *j, const char *before, double seconds, const char *after)
{
    return arena_printf(j->mem, "%s%s%s", before, fmt_age((int64_t)(seconds * 1000)).s, after);
}

static const char *
say_count(struct judge *j, int64_t n, const char *noun, const char *after)
{
    return arena_printf(j->mem, "%s%s", fmt_plural(n, noun).s, after);
}

/* --- queues ----------------------------------------------------------------------------------- */

static void
judge_failures(struct judge *j, const struct queue_row *q)
{
    if (!q->paced || q->fails5 == FIELD_NULL)
        return;
    put(j, COND_FAILURES, q->queue, (double)q->fails5 / PACE_MINUTES,
        say_count(j, q->fails5, "job", " failed in five minutes"));
}

static void
judge_drain(struct judge *j, const struct queue_line *l)
{
    const struct outlook *o = &l->o;
    bool waits = o->trend == TREND_FILLS || o->trend == TREND_STANDS;
    double seconds = 0;

    if (o->trend == TREND_UNKNOWN)
        return;
    if (o->trend == TREND_DRAINS && o->empty_ms != FIELD_NULL)
        seconds = (double)(o->empty_ms - j->look->now_ms) / 1000;
    put(j, COND_DRAIN, l->q.queue, waits ? (double)INFINITY : seconds,
        waits ? (o->trend == TREND_FILLS ? "never empty: more comes in than goes out"
                                         : "never empty: nothing completes")
              : say_time(j, "empty in ", seconds, ""));
}

/* Judges the rows of one queue. A paused queue is no trouble, because somebody has decided the
 * pause. */
static void
judge_queue(struct judge *j, const struct queue_line *l)
{
    const struct queue_row *q = &l->q;
    bool waits = q->ready > 0 && q->oldest_ms != FIELD_NULL && q->oldest_ms > 0;
    double age = waits ? fmax(0, (double)(j->look->now_ms - q->oldest_ms) / 1000) : 0;

    if (q->paused == 1)
        return;
    put(j, COND_OLDEST, q->queue, age, say_time(j, "oldest job waits ", age, ""));
    if (q->ready != FIELD_NULL)
        put(j, COND_BACKLOG, q->queue, (double)q->ready,
            arena_printf(j->mem, "%s ready", fmt_plural(q->ready, "job").s));
    judge_failures(j, q);
    judge_drain(j, l);
}

/* --- nothing completes ------------------------------------------------------------------------ */

struct stall {
    bool works;         /* jobs run or wait */
    int64_t since_ms;   /* the oldest of them; FIELD_NULL = not known */
    int64_t ran;        /* jobs that run */
    int64_t completed5; /* FIELD_NULL = not known */
};

/* Whether a row of queue `of` counts for this queue; queue NULL = for all queues to judge. Minutes
 * and leases are read of every queue, also of those that nobody asked about. */
static bool
is_of(const struct check_look *look, const char *queue, const char *of)
{
    if (queue)
        return !strcmp(queue, of);
    for (int i = 0; i < look->nasked; i++)
        if (!strcmp(look->asked[i], of))
            return true;
    return look->nasked == 0;
}

static void
stall_since(struct stall *s, int64_t ms)
{
    if (ms != FIELD_NULL && ms > 0 && (s->since_ms == FIELD_NULL || ms < s->since_ms))
        s->since_ms = ms;
}

/* Sums the queues for the rule of stalled work; queue NULL = all queues to judge. */
static struct stall
stall_of(const struct check_look *look, const char *queue)
{
    struct stall s = {.since_ms = FIELD_NULL, .completed5 = FIELD_NULL};

    for (int i = 0; i < look->nlines; i++) {
        const struct queue_row *q = &look->lines[i].q;
        if (!is_of(look, queue, q->queue))
            continue;
        if (q->paced && q->completed5 != FIELD_NULL)
            s.completed5 = (s.completed5 == FIELD_NULL ? 0 : s.completed5) + q->completed5;
        bool waits = q->ready > 0 && q->paused != 1;
        if (waits)
            stall_since(&s, q->oldest_ms);
        s.ran += q->running > 0 ? q->running : 0;
        s.works = s.works || waits || q->running > 0;
    }
    for (int i = 0; i < look->nleases; i++)
        if (is_of(look, queue, look->leases[i].queue))
            stall_since(&s, look->leases[i].started_ms);
    return s;
}

/* The end of the last minute in which a job completed; an hour ago if there is no such minute. */
static int64_t
last_completed(const struct check_look *look, const char *queue)
{
    int64_t last = look->now_ms - RECENT_MS;

    for (int i = 0; i < look->nminutes; i++) {
        const struct minute_row *m = &look->minutes[i];
        if (m->completed > 0 && is_of(look, queue, m->queue) && m->at_ms + 60000 > last)
            last = m->at_ms + 60000;
    }
    return last;
}

static void
judge_stall(struct judge *j, const char *queue)
{
    const struct check_look *look = j->look;
    struct stall s = stall_of(look, queue);
    int64_t since = last_completed(look, queue);

    if (s.completed5 == FIELD_NULL)
        return;
    bool stands = s.works && s.completed5 == 0 && look->has_minutes && s.since_ms != FIELD_NULL;
    if (stands && s.since_ms > since)
        since = s.since_ms;
    double seconds = stands ? fmax(0, (double)(look->now_ms - since) / 1000) : 0;
    put(j, COND_STALLED, queue, seconds,
        stands ? say_time(j, "jobs run or wait and nothing has completed for ", seconds, "")
               : "jobs complete, or there are none");
}

/* Judges all queues together, and each queue that has a limit of its own. Together, because one
 * long job is no stall. */
static void
judge_stalls(struct judge *j)
{
    judge_stall(j, NULL);
    for (int i = 0; i < j->look->nlines; i++)
        if (has_own_limit(j->limits, COND_STALLED, j->look->lines[i].q.queue))
            judge_stall(j, j->look->lines[i].q.queue);
}

static bool
may_stand(const struct check_look *look, const char *queue)
{
    struct stall s = stall_of(look, queue);

    return s.works && s.completed5 == 0;
}

static bool
anything_may_stand(const struct check_look *look, const struct check_limits *limits)
{
    if (may_stand(look, NULL))
        return true;
    for (int i = 0; i < limits->n; i++)
        if (limits->list[i].id == COND_STALLED && limits->list[i].queue &&
            may_stand(look, limits->list[i].queue))
            return true;
    return false;
}

bool
check_needs_minutes(const struct check_look *look, const struct check_limits *limits)
{
    return anything_may_stand(look, limits);
}

bool
check_needs_leases(const struct check_look *look, const struct check_limits *limits)
{
    for (int i = 0; i < look->nnodes; i++)
        if (look->nodes[i].expired > 0 || look->nodes[i].expired == FIELD_NULL)
            return true;
    return anything_may_stand(look, limits);
}

/* --- nodes, schedules ------------------------------------------------------------------------- */

static void
judge_nodes(struct judge *j)
{
    const struct check_look *look = j->look;
    const char *name = NULL, *what = "jobs";
    int dead = 0;

    for (int i = 0; i < look->nnodes; i++)
        if (verdict_of_node(&look->nodes[i], look->foreign) == VERDICT_BAD) {
            name = name ? name : look->nodes[i].node;
            what = look->nodes[i].leases == FIELD_NULL ? what : "leases";
            dead++;
        }
    if (!look->has_heartbeats)
        return;
    put(j, COND_DEAD, NULL, dead,
        dead ? arena_printf(j->mem, "%s hold%s %s: %s%s", fmt_plural(dead, "dead node").s,
                            dead == 1 ? "s" : "", what, name, dead > 1 ? " and others" : "")
             : "no dead node holds leases");
}

/* The number of leases that have expired. A queue system without a list of leases counts them in
 * its queues. The list is read only if a node reports expired ones, or does not tell.
 * FIELD_NULL = it is not known. */
static int64_t
count_expired(const struct check_look *look)
{
    int64_t over = look->has_leases ? 0 : FIELD_NULL;

    for (int i = 0; i < look->nleases; i++) {
        int64_t until = look->leases[i].lease_until_ms;
        over += until != FIELD_NULL && look->now_ms - until > LEASE_GRACE_MS;
    }
    for (int i = 0; i < look->nlines && !look->has_leases; i++)
        over = add_if_known(over, look->lines[i].q.expired);
    return over;
}

static void
judge_leases(struct judge *j)
{
    int64_t over = count_expired(j->look);

    if (over == FIELD_NULL)
        return;
    put(j, COND_EXPIRED, NULL, (double)over,
        say_count(j, over, "lease",
                  over == 1 ? " has expired and nobody took it back"
                            : " have expired and nobody took them back"));
}

static void
judge_shortfalls(struct judge *j)
{
    const struct life_row *life = j->look->life;

    if (!life || life->unserved == FIELD_NULL)
        return;
    struct shortfalls s = life_shortfalls(life, j->look->now_ms, j->mem);
    put(j, COND_UNSERVED, NULL, (double)life->unserved,
        *s.unserved ? s.unserved : "all queues are served");
    put(j, COND_UNCOUNTED, NULL, (double)life->counting,
        *s.counting ? s.counting : "counters are exact");
}

static void
judge_life(struct judge *j)
{
    const struct check_look *look = j->look;
    const struct life_row *life = look->life;

    if (!life)
        return;
    put(j, COND_WORKER, NULL, (double)look->waiting,
        look->waiting
            ? arena_printf(j->mem, "no worker is alive, %s wait%s",
                           fmt_plural(look->waiting, "job").s, look->waiting == 1 ? "s" : "")
            : say_count(j, life->workers, "worker", ""));
    /* on a slow server a step takes longer than the scheduler's term */
    bool seen = life->scheduler_alive == 1 || (life->scheduler_ms != FIELD_NULL &&
                                               look->now_ms - life->scheduler_ms < SCHEDULER_MS);
    put(j, COND_SCHEDULER, NULL, look->no_scheduler ? 2 : !seen,
        look->no_scheduler ? look->no_scheduler
        : seen             ? "a scheduler is alive"
                           : "no scheduler is alive");
    double late = life->overdue > 0 && life->overdue_ms != FIELD_NULL
                      ? fmax(0, (double)(look->now_ms - life->overdue_ms) / 1000)
                      : 0;
    put(j, COND_OVERDUE, NULL, late,
        late > 0
            ? arena_printf(j->mem, "%s overdue, for %s", fmt_plural(life->overdue, "schedule").s,
                           fmt_age((int64_t)(late * 1000)).s)
            : "no schedule is overdue");
}

/* --- the database ----------------------------------------------------------------------------- */

static void
judge_transactions(struct judge *j)
{
    const struct check_look *look = j->look;
    const struct health_session *oldest = NULL;
    const struct health h = {.now_ms = look->now_ms};
    int64_t open = 0;

    if (!look->server)
        return;
    for (int i = 0; i < look->nsessions; i++) {
        const struct health_session *s = &look->sessions[i];
        bool is_one = !strcmp(s->kind, "session") || !strcmp(s->kind, "prepared");
        if (!is_one || health_open_ms(&h, s) <= open)
            continue;
        open = health_open_ms(&h, s);
        oldest = s;
    }
    const char *who = "";
    if (oldest)
        who = oldest->pid != INT32_MIN
                  ? arena_printf(j->mem, ", pid %d of %s", oldest->pid, oldest->user)
                  : ", a prepared transaction";
    put(j, COND_TRANSACTION, NULL, (double)open / 1000,
        say_time(j, "oldest transaction is open for ", (double)open / 1000, who));
}

static void
judge_rights(struct judge *j)
{
    if (j->look->is_native)
        put(j, COND_RIGHTS, NULL, j->look->risk != NULL,
            j->look->risk ? j->look->risk : "only the owner can make objects");
}

/* Judges the age of transaction ids. If the user has set no limit, the console's rule applies: it
 * knows the server's settings. */
static void
judge_xids(struct judge *j)
{
    const struct health_server *s = j->look->server;

    if (!s || s->xid_age == FIELD_NULL)
        return;
    put(j, COND_XIDS, NULL, (double)s->xid_age,
        arena_printf(j->mem, "oldest transaction id is %s back", fmt_count(s->xid_age).s));
    struct check_seen *seen = &j->out->seen[COND_XIDS];
    int alarm = health_xid_alarm(s);
    if (isnan(seen->warn) && isnan(seen->crit) && alarm)
        seen->verdict = alarm == 2 ? VERDICT_BAD : VERDICT_WARN;
}

void
checks_judge(const struct check_look *look, const struct check_limits *limits, struct arena *mem,
             struct checks *out)
{
    struct judge j = {look, limits, mem, out};

    *out = (struct checks){.nown = 0};
    for (int i = 0; i < look->nlines; i++)
        judge_queue(&j, &look->lines[i]);
    judge_stalls(&j);
    judge_life(&j);
    judge_shortfalls(&j);
    judge_nodes(&j);
    judge_leases(&j);
    judge_rights(&j);
    judge_transactions(&j);
    judge_xids(&j);
}
