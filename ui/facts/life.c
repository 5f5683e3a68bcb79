/* The rules by which workers and schedulers count as alive. Heartbeats alone would give false
 * alarms, because a worker need not register. So valid leases, sessions that wait for a push, and
 * completed jobs count as well (section "life" of the adapter). */
#include "ui/facts/life.h"

#include <math.h>
#include <string.h>

#include "ui/term/fmt.h"

struct waiting {
    int64_t jobs, oldest_ms, later;
};

static struct waiting
count_waiting(const struct life_look *l)
{
    struct waiting w = {.oldest_ms = INT64_MAX};

    for (int i = 0; i < l->nqueues; i++) {
        const struct queue_row *q = &l->queues[i];
        bool is_old = q->oldest_ms != FIELD_NULL && l->now_ms - q->oldest_ms >= LIFE_PATIENCE_MS;
        if (q->paused == 1)
            continue;
        if (q->scheduled != FIELD_NULL && q->scheduled > 0)
            w.later += q->scheduled;
        if (q->retry != FIELD_NULL && q->retry > 0)
            w.later += q->retry;
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
            "4"};
    else if (no_worker && no_scheduler && w.later > 0)
        out[n++] = (struct trouble){
            who,
            arena_printf(mem, "%s %s to run later: start queuetop work -- COMMAND",
                         fmt_plural(w.later, "job").s, w.later == 1 ? "is" : "are"),
            "4"};
    if (no_scheduler && row->overdue > 0 && l->now_ms - row->overdue_ms >= LIFE_PATIENCE_MS)
        out[n++] = (struct trouble){
            "no scheduler",
            arena_printf(mem, "%s %s overdue, for %s: start queuetop schedule",
                         fmt_plural(row->overdue, "schedule").s, row->overdue == 1 ? "is" : "are",
                         fmt_age(l->now_ms - row->overdue_ms).s),
            "5"};
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
    struct life_look l = {.row = store_life(s), .now_ms = now_ms};
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
