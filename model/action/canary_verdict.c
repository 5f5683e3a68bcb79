/*
 * Which jobs a canary tries, what keeps them from starting, and what their answers say about the
 * rest. Nothing here asks anybody.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/canary.h"

enum { ERROR_SHOWN = 300 };

int
canary_places(int64_t total, int n, int64_t *places)
{
    int64_t most = total < n ? total : n;

    for (int i = 0; i < most; i++)
        places[i] = most == 1 ? 0 : i * (total - 1) / (most - 1);
    return (int)(most > 0 ? most : 0);
}

/* --- the same error ------------------------------------------------------------------------------ */

/* A quoted part: its end, or NULL if nothing closes it. */
static const char *
quoted_end(const char *s)
{
    return strchr("\"'`", *s) ? strchr(s + 1, *s) : NULL;
}

/* The error with one N for each word that holds a digit and for each quoted part. */
static void
add_group(struct buf *b, const char *s)
{
    const char *end = s + strnlen(s, ERROR_SHOWN);

    buf_str(b, "");
    while (s < end) {
        const char *close = quoted_end(s), *word = s;
        bool digit = false;
        if (close) {
            buf_str(b, "N");
            s = close + 1;
            continue;
        }
        for (; s < end && isalnum((unsigned char)*s); s++)
            digit |= isdigit((unsigned char)*s) != 0;
        if (digit)
            buf_str(b, "N");
        else
            buf_add(b, word, (size_t)(s - word));
        if (s < end && !quoted_end(s))
            buf_add(b, s++, 1);
    }
}

static bool
is_same_error(const char *a, const char *b)
{
    struct buf one = {0}, other = {0};

    add_group(&one, a);
    add_group(&other, b);
    bool same = !strcmp(one.data, other.data);
    buf_free(&one);
    buf_free(&other);
    return same;
}

/* --- the verdict --------------------------------------------------------------------------------- */

static bool
failed_alike(const struct tried_job *jobs, int n)
{
    const struct tried_job *first = NULL;

    for (int i = 0; i < n; i++) {
        if (jobs[i].state != TRIED_FAILED)
            continue;
        if (!first)
            first = &jobs[i];
        else if (!is_same_error(first->error, jobs[i].error))
            return false;
    }
    return first != NULL;
}

/* If most jobs are done and only a few failed again, these few probably have a fault of their own,
 * so hope is not low. */
static enum canary_hope
hope_of(int done, int failed, int open) /* done: also those not kept */
{
    if (failed == 0)
        return done > 0 && open == 0 ? HOPE_GOOD : HOPE_UNKNOWN;
    if (done == 0 && open == 0)
        return HOPE_NONE;
    return open == 0 && failed * 4 <= done ? HOPE_SOME : HOPE_LITTLE;
}

struct canary_verdict
canary_judge(const struct tried_job *jobs, int n)
{
    struct canary_verdict v = {.tried = n, .same_error = failed_alike(jobs, n)};

    for (int i = 0; i < n; i++)
        v.by_state[jobs[i].state]++;
    v.hope = hope_of(v.by_state[TRIED_DONE] + v.by_state[TRIED_NOT_KEPT], v.by_state[TRIED_FAILED],
                     v.by_state[TRIED_WAITS] + v.by_state[TRIED_RUNS]);
    return v;
}

static void
add_part(struct buf *out, const char **sign, int n, const char *words)
{
    if (n > 0) {
        buf_printf(out, "%s%d %s", *sign, n, words);
        *sign = ", ";
    }
}

void
canary_say(const struct canary_verdict *v, int64_t waited_ms, struct buf *out)
{
    static const char *const so[] = {
        [HOPE_GOOD] = "the cause seems gone",
        [HOPE_SOME] = "the cause seems gone",
        [HOPE_LITTLE] = "the cause is still there for some",
        [HOPE_UNKNOWN] = "whether the cause is gone is not known",
        [HOPE_NONE] = NULL,
    };
    int done = v->by_state[TRIED_DONE], open = v->by_state[TRIED_WAITS] + v->by_state[TRIED_RUNS];
    int not_kept = v->by_state[TRIED_NOT_KEPT];
    static const char left[] = "completed or were removed (finished jobs are not kept there)";
    const char *sign = "";

    if (v->hope == HOPE_NONE) {
        buf_printf(out, "the cause is still there: %d of %d failed again with %s",
                   v->by_state[TRIED_FAILED], v->tried,
                   v->same_error ? "the same error" : "different errors");
        return;
    }
    sign = ", ";
    if (done > 0) {
        buf_printf(out, "%d of %d %s done", done, v->tried, done == 1 ? "is" : "are");
        add_part(out, &sign, not_kept, left);
    } else if (not_kept > 0) {
        buf_printf(out, "%d of %d %s", not_kept, v->tried, left);
    } else {
        buf_printf(out, "none of %d is done", v->tried);
        sign = ": ";
    }
    add_part(out, &sign, v->by_state[TRIED_FAILED], "failed again");
    if (not_kept > 0 && v->by_state[TRIED_FAILED] == 0)
        buf_str(out, ", none failed again");
    add_part(out, &sign, v->by_state[TRIED_GONE], "were discarded or purged meanwhile");
    if (open > 0)
        buf_printf(out, "%s%d without an answer in %llds", sign, open,
                   (long long)(waited_ms / 1000));
    buf_printf(out, ": %s", so[v->hope]);
}

/* --- what keeps the jobs from starting ------------------------------------------------------------ */

static const char *
waiting_queue(const struct tried_job *jobs, int n, const char *queue)
{
    for (int i = 0; i < n; i++)
        if (jobs[i].state == TRIED_WAITS && (!queue || !strcmp(jobs[i].queue, queue)))
            return jobs[i].queue;
    return NULL;
}

static char *
find_paused(const struct tried_job *jobs, int n, const struct rowset *queues)
{
    const struct queue_row *q = queues->rows;

    for (int i = 0; i < queues->n; i++)
        if (q[i].paused == 1 && waiting_queue(jobs, n, q[i].queue))
            return xasprintf("%s is paused: nothing of it starts until it is resumed (key p)",
                             q[i].queue);
    return NULL;
}

/* Says that no worker takes the queue: no worker is alive, or each living worker has named its
 * queues and this queue is not among them. */
static char *
find_idle(const char *queue, const struct life_row *life, const struct rowset *nodes)
{
    const struct node_row *n = nodes->rows;
    int64_t living = 0;

    if (!queue || !life)
        return NULL;
    if (life->workers <= 0)
        return xstrdup("no worker takes this queue: none is alive; start one (queuetop work)");
    for (int i = 0; i < nodes->n; i++) {
        enum node_state state = node_state(&n[i]);
        bool is_over = state == NODE_DEAD || state == NODE_STOPPED;
        if (!is_over && state != NODE_DRAINING && node_takes(n[i].queues, queue))
            return NULL;
        living += !is_over;
    }
    if (living < life->workers)
        return NULL; /* other workers have no row in nodes: they may take all queues */
    return xasprintf(
        "no worker takes this queue: those that are alive work others; start one for %s "
        "(queuetop work)",
        queue);
}

char *
canary_find_obstacle(const struct tried_job *jobs, int n, const struct rowset *queues,
                     const struct rowset *life, const struct rowset *nodes)
{
    char *paused = find_paused(jobs, n, queues);

    return paused ? paused
                  : find_idle(waiting_queue(jobs, n, NULL), life->n ? life->rows : NULL, nodes);
}
