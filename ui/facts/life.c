/* The rules by which workers and schedulers count as alive. Heartbeats alone would give false
 * alarms, because a worker need not register. So valid leases, sessions that wait for a push, and
 * completed jobs count as well (section "life" of the adapter). */
#include "ui/facts/life.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "model/base/text.h"
#include "ui/term/fmt.h"

struct waiting {
    int64_t jobs, oldest_ms, later;
    int64_t open; /* all that have not ended */
};

static int64_t
known(int64_t n)
{
    return n == FIELD_NULL || n < 0 ? 0 : n;
}

static struct waiting
count_waiting(const struct life_look *l)
{
    struct waiting w = {.oldest_ms = INT64_MAX};

    for (int i = 0; i < l->nqueues; i++) {
        const struct queue_row *q = &l->queues[i];
        bool is_old = q->oldest_ms != FIELD_NULL && l->now_ms - q->oldest_ms >= LIFE_PATIENCE_MS;
        if (q->paused == 1)
            continue;
        w.later += known(q->scheduled) + known(q->retry);
        w.open += known(q->scheduled) + known(q->retry) + known(q->ready) + known(q->running) +
                  known(q->blocked);
        if (q->ready == FIELD_NULL || q->ready <= 0 || !is_old)
            continue;
        w.jobs += q->ready;
        if (q->oldest_ms < w.oldest_ms)
            w.oldest_ms = q->oldest_ms;
    }
    return w;
}

/* Whether all nodes are dead. For another queue system this is known only if its nodes have
 * heartbeats. */
static bool
all_nodes_are_dead(const struct life_look *l)
{
    int dead = 0;

    for (int i = 0; i < l->nnodes; i++) {
        const struct node_row *n = &l->nodes[i];
        if (node_state(n) != NODE_DEAD)
            return false;
        dead += n->heartbeat_ms != FIELD_NULL;
    }
    return dead > 0;
}

/* A transaction holds the scheduler's row, so no scheduler gets a turn. Who may not see since when
 * the transaction is open goes by the scheduler's last sign. */
static const char *
say_holder(const struct life_look *l, struct arena *mem)
{
    const struct life_row *row = l->row;
    struct buf who = {0};

    if (row->held_pid == INT_MIN)
        buf_str(&who, "a prepared transaction");
    else {
        buf_printf(&who, "pid %d (", row->held_pid);
        text_clean(&who, row->held_app, strlen(row->held_app), TEXT_LINE, 40);
        buf_str(&who, ", user ");
        text_clean(&who, row->held_user, strlen(row->held_user), TEXT_LINE, 40);
        buf_str(&who, ")");
    }
    const char *since = row->held_ms == FIELD_NULL
                            ? ""
                            : arena_printf(mem, " for %s", fmt_age(l->now_ms - row->held_ms).s);
    const char *text = arena_printf(
        mem, "waits%s for the transaction of %s: let it commit, or end it", since, who.data);
    buf_free(&who);
    return text;
}

/* What is wrong with the scheduler; what NULL = nothing. One sentence, the worst cause. */
static struct trouble
scheduler_trouble(const struct life_look *l, const struct waiting *w, struct arena *mem)
{
    const struct life_row *row = l->row;
    int64_t gone = row->scheduler_ms == FIELD_NULL ? 0 : l->now_ms - row->scheduler_ms;
    struct trouble t = {.where = "no scheduler", .id = COND_SCHEDULER, .row = ""};
    int64_t schedules = known(row->schedules);

    if (*row->held_app && (row->held_ms != FIELD_NULL || gone >= LIFE_SCHEDULER_MS)) {
        t.where = "scheduler";
        t.what = say_holder(l, mem);
        t.id = COND_TURN;
        if (row->held_pid != INT_MIN)
            t.row = arena_printf(mem, "pid %d", row->held_pid);
    } else if (row->overdue > 0 && l->now_ms - row->overdue_ms >= LIFE_PATIENCE_MS)
        t.what =
            arena_printf(mem, "%s %s overdue, for %s: start queuetop schedule",
                         fmt_plural(row->overdue, "schedule").s, row->overdue == 1 ? "is" : "are",
                         fmt_age(l->now_ms - row->overdue_ms).s);
    else if (*row->scheduler && gone >= LIFE_SCHEDULER_MS && (w->open > 0 || schedules > 0))
        t.what = arena_printf(
            mem, "its last sign is %s old, and %s%s%s depend%s on it: start queuetop schedule",
            fmt_age(gone).s, w->open > 0 ? fmt_plural(w->open, "job").s : "",
            w->open > 0 && schedules > 0 ? " and " : "",
            schedules > 0 ? fmt_plural(schedules, "schedule").s : "",
            w->open + schedules == 1 ? "s" : "");
    return t;
}

int
life_troubles(const struct life_look *l, struct arena *mem, struct trouble out[TROUBLES_MAX])
{
    const struct life_row *row = l->row;
    struct waiting w = count_waiting(l);
    bool no_worker = !l->completes && (row ? row->workers == 0 : all_nodes_are_dead(l));
    bool no_scheduler = row && row->scheduler_alive == 0;
    const char *who = no_scheduler ? "no worker or scheduler" : "no worker";
    int n = 0;

    if (no_worker && w.jobs > 0)
        out[n++] = (struct trouble){
            who,
            arena_printf(mem, "%s wait%s, for %s%s", fmt_plural(w.jobs, "job").s,
                         w.jobs == 1 ? "s" : "", fmt_age(l->now_ms - w.oldest_ms).s,
                         row ? ": start queuetop work -- COMMAND" : ""),
            COND_WORKER, ""};
    else if (no_worker && no_scheduler && w.later > 0)
        out[n++] = (struct trouble){
            who,
            arena_printf(mem, "%s %s to run later: start queuetop work -- COMMAND",
                         fmt_plural(w.later, "job").s, w.later == 1 ? "is" : "are"),
            COND_WORKER, ""};
    if (no_scheduler) {
        struct trouble t = scheduler_trouble(l, &w, mem);
        /* who starts a worker has a scheduler, too, but for schedules and for who holds its row */
        if (t.what && (n == 0 || *t.row || row->overdue > 0))
            out[n++] = t;
    }
    return n;
}

struct shortfalls
life_shortfalls(const struct life_row *row, int64_t now_ms, struct arena *mem)
{
    struct shortfalls s = {"", ""};

    if (row->unserved > 0)
        s.unserved =
            arena_printf(mem,
                         "%s above max_queues (%s) %s not served: raise it in table setting, or"
                         " remove queues",
                         fmt_plural(row->unserved, "queue").s, fmt_count(row->max_queues).s,
                         row->unserved == 1 ? "is" : "are");
    if (row->counting > 0)
        s.counting =
            arena_printf(mem,
                         "counters are counted anew after a restore, for %s: those of %s"
                         " may be wrong%s",
                         fmt_age(now_ms - row->counting_ms).s, fmt_plural(row->counting, "queue").s,
                         row->scheduler_alive == 0 ? ": start queuetop schedule" : "");
    return s;
}

int
life_of_store(const struct store *s, int64_t now_ms, struct arena *mem,
              struct trouble out[TROUBLES_MAX])
{
    int64_t age = store_age_ms(s, TOPIC_LIFE); /* nobody knows what came after it was read */
    struct life_look l = {.row = store_life(s), .now_ms = age > 0 ? now_ms - age : now_ms};
    const struct topic_info *life = store_topic(s, TOPIC_LIFE);
    double rate = store_totals(s)->done_per_s;

    if (!l.row && !life->unavailable)
        return 0; /* not known yet */
    l.queues = store_queues(s, &l.nqueues);
    if (!l.row)
        l.nodes = store_nodes(s, &l.nnodes);
    l.completes = !isnan(rate) && rate > 0;
    return life_troubles(&l, mem, out);
}
