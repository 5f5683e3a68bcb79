/*
 * The list of what needs attention. Each rule looks at one row and says at most one thing.
 */
#include "ui/facts/attention.h"

#include <math.h>
#include <string.h>

#include "ui/facts/life.h"
#include "ui/term/fmt.h"

enum { MANY_FAILED = 10, GROWING_FROM = 1000 };

struct alerts {
    struct alert *out;
    int n, max;
};

static void
add(struct alerts *a, bool bad, const char *where, const char *what, const char *advice)
{
    if (a->n < a->max)
        a->out[a->n++] = (struct alert){.bad = bad, .where = where, .what = what, .advice = advice};
}

static void
look_at_nodes(const struct store *s, int64_t now, struct arena *mem, bool bad, bool foreign,
              struct alerts *a)
{
    int n;
    const struct node_row *rows = store_nodes(s, &n);

    for (int i = 0; i < n; i++) {
        const struct node_row *r = &rows[i];
        const char *ago = r->heartbeat_ms == FIELD_NULL
                              ? "ever"
                              : arena_printf(mem, "for %s", fmt_age(now - r->heartbeat_ms).s);
        bool unknown = !strcmp(r->state, "unknown");
        if (bad && foreign && unknown && r->expired > 0)
            add(a, true, r->node,
                arena_printf(mem, "%s of %s seem left behind", fmt_count(r->expired).s,
                             fmt_plural(r->running, "running job").s),
                "4, then L");
        bool dead = !strcmp(r->state, "dead") || (unknown && !foreign);
        if (bad && dead && r->leases > 0)
            add(a, true, r->node,
                arena_printf(mem, "no heartbeat %s, holds %s", ago,
                             fmt_plural(r->leases, "lease").s),
                "4, then L");
        if (!bad && !strcmp(r->state, "late"))
            add(a, false, r->node, arena_printf(mem, "no heartbeat %s", ago), "4");
    }
}

/* The first to know of: nobody works at all. */
static void
look_at_life(const struct store *s, int64_t now, struct arena *mem, struct alerts *bad)
{
    struct trouble t[TROUBLES_MAX];
    int n = life_of_store(s, now, mem, t);

    for (int i = 0; i < n; i++)
        add(bad, true, t[i].where, t[i].what, t[i].key);
    for (int i = 0; i < bad->n; i++) /* nobody else has added one yet */
        bad->out[i].is_words = true;
}

static void
look_at_paused(const struct queue_row *q, int64_t now, struct arena *mem, struct alerts *warn)
{
    int64_t since = q->paused_ms == FIELD_NULL ? 0 : now - q->paused_ms;
    struct buf b = {0};

    buf_printf(&b, "paused%s%s %s ago", *q->paused_by ? " by " : "", q->paused_by,
               fmt_age(since).s);
    if (*q->pause_reason)
        buf_printf(&b, ": %s", q->pause_reason);
    add(warn, false, q->queue, arena_strndup(mem, b.data, b.len), "p resumes");
    buf_free(&b);
}

static bool
is_growing(const struct queue_row *q)
{
    return q->ready > GROWING_FROM && !isnan(q->pushed_per_s) && !isnan(q->done_per_s) &&
           q->pushed_per_s > q->done_per_s * 1.1 + 1;
}

static void
look_at_queue(const struct queue_row *q, int64_t now, struct arena *mem, struct alerts *bad,
              struct alerts *warn)
{
    int64_t age = q->oldest_ms == FIELD_NULL ? 0 : now - q->oldest_ms;
    struct fmt text = fmt_age(age);
    const char *old = age > OLD_MS ? text.s : "";

    if (q->paused == 1) {
        if (q->ready > 0)
            look_at_paused(q, now, mem, warn);
        return;
    }
    if (q->failed >= MANY_FAILED)
        add(bad, true, q->queue,
            arena_printf(mem, "%s failed%s%s", fmt_about(q->failed, q->approx).s,
                         *old ? ", oldest ready job is " : "", old),
            "3 groups them");
    else if (age > OLD_MS)
        add(age > VERY_OLD_MS ? bad : warn, age > VERY_OLD_MS, q->queue,
            arena_printf(mem, "oldest ready job is %s old, %s ready", old,
                         fmt_about(q->ready, q->approx).s),
            "Enter");
    else if (is_growing(q))
        add(warn, false, q->queue,
            arena_printf(mem, "backlog grows by %s/s", fmt_rate(q->pushed_per_s - q->done_per_s).s),
            "Enter");
}

int
attention(const struct store *s, int64_t now_ms, bool foreign, struct arena *mem, struct alert *out,
          int max)
{
    struct alert later[16];
    struct alerts bad = {out, 0, max}, warn = {later, 0, 16};
    int n;
    const struct queue_row *q = store_queues(s, &n);

    look_at_life(s, now_ms, mem, &bad);
    look_at_nodes(s, now_ms, mem, true, foreign, &bad);
    for (int i = 0; i < n; i++)
        look_at_queue(&q[i], now_ms, mem, &bad, &warn);
    look_at_nodes(s, now_ms, mem, false, foreign, &warn);
    for (int i = 0; i < warn.n; i++)
        add(&bad, false, later[i].where, later[i].what, later[i].advice);
    return bad.n;
}
