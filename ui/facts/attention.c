/*
 * The list of what needs attention. Each rule looks at one row and says one thing at a time.
 */
#include "ui/facts/attention.h"

#include <math.h>
#include <string.h>

#include "model/store/fail_day.h"
#include "ui/facts/life.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/recovery.h"
#include "ui/term/fmt.h"

enum { ERRORS_OLD_MS = 60000 };
struct look { /* what the rules share */
    const struct store *s;
    int64_t now;
    bool foreign, utc;
    struct workers workers;
    struct arena *mem;
    struct attention *out;   /* the bad ones */
    struct attention *later; /* the warnings */
    const char *ended; /* the session that the alert about the scheduler is about; "" = none */
    bool no_scheduler; /* such an alert is in the list */
};

/* An alert about a condition, where its row says. */
static struct alert
alert_of(enum condition_id id, enum verdict v, const char *row, const char *what)
{
    const struct condition *c = &conditions[id];

    return (struct alert){.id = id,
                          .verdict = v,
                          .screen = c->screen,
                          .row = row,
                          .where = row,
                          .what = what,
                          .key = c->key,
                          .act = c->act};
}

static void
add_alert(struct look *l, const struct alert *a)
{
    struct attention *to = a->verdict == VERDICT_BAD ? l->out : l->later;

    if (a->verdict < VERDICT_WARN)
        return;
    l->out->bad += a->verdict == VERDICT_BAD;
    l->out->warn += a->verdict == VERDICT_WARN;
    if (l->out->screens[a->screen] < a->verdict)
        l->out->screens[a->screen] = a->verdict;
    if (to->n == ALERTS_MOST)
        return;
    struct alert *kept = &to->alerts[to->n++];
    *kept = *a;
    kept->where = arena_strndup(l->mem, a->where, strlen(a->where));
    kept->row = arena_strndup(l->mem, a->row, strlen(a->row));
}

/* --- nobody works, nodes ---------------------------------------------------------------------- */

static void
look_at_life(struct look *l)
{
    struct trouble t[TROUBLES_MAX];
    int n = life_of_store(l->s, l->now, l->mem, t);

    for (int i = 0; i < n; i++) {
        l->no_scheduler = l->no_scheduler || t[i].id != COND_WORKER;
        l->ended = *t[i].row ? t[i].row : l->ended;
        struct alert a = alert_of(t[i].id, VERDICT_BAD, t[i].row, t[i].what);
        if (t[i].id == COND_TURN &&
            !*t[i].row) { /* a prepared transaction: nothing to end by a key */
            a.key = "7";
            a.act = "look";
        }
        a.where = t[i].where;
        a.is_words = true;
        a.is_missing = !*t[i].row;
        add_alert(l, &a);
    }
}

static void
look_at_shortfalls(struct look *l)
{
    const struct life_row *life = store_life(l->s);

    if (!life)
        return;
    struct shortfalls s = life_shortfalls(life, l->now, l->mem);
    const struct {
        enum condition_id id;
        int64_t n;
        const char *where, *what;
    } each[] = {
        {COND_UNSERVED,  life->unserved, "max_queues", s.unserved},
        {COND_UNCOUNTED, life->counting, "counters",   s.counting}
    };
    for (int i = 0; i < 2; i++) {
        struct alert a =
            alert_of(each[i].id, condition_judge(each[i].id, (double)each[i].n), "", each[i].what);
        a.where = each[i].where;
        a.is_words = true;
        add_alert(l, &a);
    }
}

/* "died 6m 12s ago, its 16 jobs back in 40s": when the jobs come back by themselves, because our
 * scheduler takes expired leases back. It must fit the row of a terminal of 80 columns. */
static const char *
say_died(struct look *l, const struct node_row *n, const char *ago)
{
    struct fmt jobs = fmt_plural(n->running, "job");
    const char *back = "now";

    if (l->foreign || n->leases <= 0 || n->lease_until_ms == FIELD_NULL)
        return arena_printf(l->mem, "died %s, holds %s", ago, jobs.s);
    if (n->lease_until_ms > l->now)
        back = arena_printf(l->mem, "in %s", fmt_age(n->lease_until_ms - l->now).s);
    return arena_printf(l->mem, "died %s, its %s back %s", ago, jobs.s, back);
}

static const char *
say_node(struct look *l, const struct node_row *n)
{
    const char *ago = "",
               *held = arena_printf(l->mem, "%s", fmt_plural(n->running, "running job").s);

    if (n->leases != FIELD_NULL)
        held = arena_printf(l->mem, "%s with %s", fmt_plural(n->leases, "lease").s,
                            fmt_plural(n->running, "job").s);
    if (n->heartbeat_ms != FIELD_NULL)
        ago = arena_printf(l->mem, "%s ago", fmt_age(l->now - n->heartbeat_ms).s);
    if (node_state(n) == NODE_UNKNOWN && l->foreign)
        return n->expired < n->running
                   ? arena_printf(l->mem, "%s of its %s have no worker any more",
                                  fmt_count(n->expired).s, fmt_plural(n->running, "running job").s)
                   : arena_printf(l->mem, "its %s ha%s no worker any more",
                                  fmt_plural(n->running, "running job").s,
                                  n->running == 1 ? "s" : "ve");
    if (node_state(n) == NODE_DEAD && *ago)
        return say_died(l, n, ago);
    if (node_is_gone(n))
        return arena_printf(l->mem, "no heartbeat ever, holds %s", held);
    if (node_is_cut_off(n))
        return arena_printf(l->mem, "its database session is gone, last heartbeat %s", ago);
    return arena_printf(l->mem, "last heartbeat %s%s%s", ago, n->leases > 0 ? ", holds " : "",
                        n->leases > 0 ? fmt_plural(n->leases, "lease").s : "");
}

static void
look_at_nodes(struct look *l)
{
    int n;
    const struct node_row *rows = store_nodes(l->s, &n);

    for (int i = 0; i < n; i++) {
        enum verdict v = verdict_of_node(&rows[i], l->foreign);
        enum condition_id id = v == VERDICT_BAD            ? COND_DEAD
                               : node_is_cut_off(&rows[i]) ? COND_CUT_OFF
                                                           : COND_LATE;
        struct alert a = alert_of(id, v, rows[i].node, "");
        if (v >= VERDICT_WARN)
            a.what = say_node(l, &rows[i]);
        add_alert(l, &a);
    }
}

/* --- queues ----------------------------------------------------------------------------------- */

/* What made the jobs fail that failed within the hour: their error if it is the same for most of
 * them, else how many errors there are. Nothing if the store has no recent errors: only some
 * screens ask for them. */
static void
say_errors(const struct look *l, const struct queue_row *q, bool ended, struct buf *out)
{
    int64_t age = store_age_ms(l->s, TOPIC_GROUPS), of_most = 0;
    const struct group_row *most = NULL;
    int n, errors = 0;
    const struct group_row *rows = store_groups(l->s, &n);

    if (age < 0 || age > ERRORS_OLD_MS)
        return;
    for (int i = 0; i < n; i++) {
        if (!rows[i].day || rows[i].day->hour <= 0 || strcmp(rows[i].queue, q->queue) != 0)
            continue;
        errors++;
        if (rows[i].day->hour > of_most) {
            most = &rows[i];
            of_most = most->day->hour;
        }
    }
    bool all = of_most >= q->failed_hour;
    if (most && 2 * of_most > q->failed_hour)
        buf_printf(out, "%s%s: %s",
                   ended ? ";"
                   : all ? ""
                         : ",",
                   !all    ? " most"
                   : ended ? " error"
                           : "",
                   most->error_key);
    else if (errors > 1)
        buf_printf(out, "%s %d errors", ended ? ";" : ",", errors);
}

/* "4,003 failed in 1 h, none for 4m, 1,230 completed; most: no paper". */
static const char *
say_failed(struct look *l, const struct queue_row *q, bool recent)
{
    struct recovery_of of = {l->s, l->now, l->utc};
    struct buf text = {0};

    if (!recent)
        return arena_printf(l->mem, "%s failed", fmt_about(q->failed, q->approx).s);
    buf_printf(&text, "%s failed in 1 h", fmt_count(q->failed_hour).s);
    bool ended = recovery_say_failures(&of, q, &text);
    say_errors(l, q, ended, &text);
    const char *said = arena_strndup(l->mem, text.data, text.len);
    buf_free(&text);
    return said;
}

static void
look_at_failed(struct look *l, const struct queue_row *q, enum verdict v)
{
    struct alert a = alert_of(v == VERDICT_BAD ? COND_FAILED_HOUR : COND_FAILED, v, q->queue,
                              say_failed(l, q, v == VERDICT_BAD));

    if (recovery_is_seen(l->s, q->queue)) { /* now a requeue does more than fail once again */
        a.key = "r";
        a.act = "requeue";
    }
    add_alert(l, &a);
}

/* "held by slots: fills up by 4.8 jobs/s since 13:55:59". The words for a queue that fills up. */
static const char *
say_filling(struct look *l, const struct queue_line *line)
{
    const struct outlook *o = &line->o;
    const char *since = "", *held = "";
    struct fmt by = queue_held_by(line);

    if (o->since_ms != FIELD_NULL)
        since = arena_printf(l->mem, " since %s%.5s", o->since_before ? "before " : "",
                             fmt_time(o->since_ms, l->utc).s);
    if (*by.s)
        held = arena_printf(l->mem, "held by %s: ", by.s);
    return arena_printf(l->mem, "%sfills up by %s jobs/s%s", held, fmt_rate(o->gain).s, since);
}

/* "held by limit 6: oldest job waits 11m 40s, empty at 14:38; 640 wait". The cause, how long, the
 * trend, and last the figures that the table has, too: a narrow row is cut at its end. */
static const char *
say_old(struct look *l, const struct queue_line *line, int64_t age)
{
    struct fmt empty = queue_empty_at(line, l->now, l->utc, INT32_MAX), held = queue_held_by(line);
    bool no_node = line->o.held == HELD_NO_NODE;
    const char *by = *held.s ? arena_printf(l->mem, "held by %s: ", held.s) : "", *until = "";
    struct recovery_of of = {l->s, l->now, l->utc};
    struct buf fewer = {0};

    if (line->o.trend == TREND_DRAINS)
        until = arena_printf(l->mem, ", empty at %s", empty.s);
    else if (line->o.trend == TREND_FILLS)
        until = arena_printf(l->mem, ", fills up by %s/s", fmt_rate(line->o.gain).s);
    else if (line->o.trend == TREND_STANDS && !no_node)
        until = ", nothing completes";
    if (no_node)
        by = "no living node takes it: ";
    if (line->o.trend != TREND_FILLS)
        recovery_say_backlog(&of, &line->q, &fewer);
    const char *said = arena_printf(l->mem, "%soldest job waits %s%s%s; %s", by, fmt_age(age).s,
                                    fewer.len ? fewer.data : "", until,
                                    fmt_they(line->q.ready, line->q.approx, "wait").s);
    buf_free(&fewer);
    return said;
}

/* Leases that have ended, of a system that does not know who holds them. */
static void
look_at_expired(struct look *l, const struct queue_row *q)
{
    struct alert a =
        alert_of(COND_ABANDONED, condition_judge(COND_ABANDONED, (double)q->expired), q->queue, "");

    if (a.verdict == VERDICT_WELL)
        return;
    a.what = arena_printf(l->mem, "%s of %s: the lease has ended without an answer",
                          fmt_count(q->expired).s, fmt_plural(q->running, "running job").s);
    add_alert(l, &a);
}

static void
look_at_queue(struct look *l, const struct queue_row *q)
{
    bool waits = q->oldest_ms != FIELD_NULL && q->oldest_ms > 0;
    int64_t age = waits ? l->now - q->oldest_ms : FIELD_NULL;
    enum verdict failed = verdict_of_failed(q), old = verdict_of_age(age);

    look_at_expired(l, q);
    if (q->paused == 1)
        return;
    if (failed >= VERDICT_WARN)
        look_at_failed(l, q, failed);
    static const struct slots unknown = {.all = FIELD_NULL};
    enum trend trend = outlook_of(q, &unknown, l->now).trend;
    if (old < VERDICT_WARN && (failed >= VERDICT_WARN || trend != TREND_FILLS))
        return;
    struct queue_line line;
    queue_line_fill(&line, q, &l->workers, l->now);
    struct alert a = old >= VERDICT_WARN
                         ? alert_of(COND_OLDEST, old, q->queue, say_old(l, &line, age))
                         : alert_of(COND_FILLS, VERDICT_WARN, q->queue, say_filling(l, &line));
    add_alert(l, &a);
}

/* --- schedules -------------------------------------------------------------------------------- */

static const char *
say_schedule(struct look *l, const struct schedule_row *s, int64_t read)
{
    if (!strcmp(s->state, "failed"))
        return arena_printf(l->mem, "can't push: %s", s->error);
    if (verdict_of_lateness(s, read) > VERDICT_WELL)
        return arena_printf(l->mem, "is late for %s", fmt_age(l->now - s->next_run_ms).s);
    return arena_printf(l->mem, "last run: %s%s%s", s->last_outcome, *s->last_error ? ": " : "",
                        s->last_error);
}

/* Judges the schedules by the time at which they were read. While no screen shows them, they are
 * read only each 30 s, and a run that became due since then may have been pushed. */
static void
look_at_schedules(struct look *l)
{
    int n;
    const struct schedule_row *rows = store_schedules(l->s, &n);
    int64_t age = store_age_ms(l->s, TOPIC_SCHEDULES), read = age > 0 ? l->now - age : l->now;

    for (int i = 0; i < n; i++) {
        enum verdict v = verdict_of_schedule(&rows[i], read);
        bool is_late = verdict_of_lateness(&rows[i], read) > VERDICT_WELL;
        enum condition_id id = !strcmp(rows[i].state, "failed") ? COND_CANT_PUSH
                               : is_late                        ? COND_OVERDUE
                                                                : COND_LAST_RUN;
        if (v < VERDICT_WARN || (id == COND_OVERDUE && l->no_scheduler))
            continue; /* one cause, one alert */
        struct alert a = alert_of(id, v, rows[i].name, say_schedule(l, &rows[i], read));
        add_alert(l, &a);
    }
}

/* --- the database ----------------------------------------------------------------------------- */

/* An alert from a piece of advice. "...: K ends it" is split: the key K becomes the
 * alert's own act. */
static struct alert
of_advice(struct look *l, const struct advice *advice)
{
    const char *text = advice->text, *key = strstr(text, ": K ");
    size_t len = key ? (size_t)(key - text) : strlen(text);

    struct alert a = alert_of(advice->of, advice->bad ? VERDICT_BAD : VERDICT_WARN, advice->id,
                              arena_strndup(l->mem, text, len));
    a.where = "database";
    a.is_words = true;
    if (!key) { /* somebody else has to end it, or something milder helps */
        a.key = "Ent";
        a.act = "look";
    }
    return a;
}

/* One alert for each session: the worst. */
static void
look_at_database(struct look *l)
{
    struct advice advice[ALERTS_MOST];
    struct health h = store_health(l->s);
    int64_t age = store_age_ms(l->s, TOPIC_HEALTH);

    h.now_ms = age > 0 ? l->now - age : l->now; /* a transaction may have ended since it was read */
    int n = h.server ? health_advice(&h, l->mem, advice, ALERTS_MOST) : 0;
    for (int i = 0; i < n; i++) {
        bool said = advice[i].calm || (*l->ended && !strcmp(advice[i].id, l->ended));
        for (int j = 0; j < i && *advice[i].id; j++)
            said = said || !strcmp(advice[j].id, advice[i].id);
        struct alert a = of_advice(l, &advice[i]);
        if (!said)
            add_alert(l, &a);
    }
}

void
attention(const struct store *s, const struct attention_of *of, struct arena *mem,
          struct attention *out)
{
    struct attention later = {.n = 0};
    int n, nnodes;
    const struct queue_row *q = store_queues(s, &n);
    const struct node_row *nodes = store_nodes(s, &nnodes);
    struct look l = {.s = s,
                     .now = of->now_ms,
                     .foreign = of->foreign,
                     .utc = of->utc,
                     .workers = workers_of(nodes, nnodes),
                     .mem = mem,
                     .ended = "",
                     .out = out,
                     .later = &later};

    *out = (struct attention){.n = 0};
    look_at_life(&l);
    look_at_shortfalls(&l);
    look_at_nodes(&l);
    for (int i = 0; i < n; i++)
        look_at_queue(&l, &q[i]);
    look_at_database(&l);
    look_at_schedules(&l);
    for (int i = 0; i < later.n && out->n < ALERTS_MOST; i++)
        out->alerts[out->n++] = later.alerts[i];
    workers_done(&l.workers);
}

char *
alert_key(const struct alert *alert)
{
    return xasprintf("%d\n%s\n%s\n%s", alert->screen, alert->row, alert->where, alert->act);
}
