/*
 * Jobs that were claimed ahead and wait for a slot. They were expected to be short. If they are
 * not, the waiting jobs are given back, so that no job waits here while another worker is idle.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/worker/worker_parts.h"

enum { HELD_MS = 200 };

static char *
copy_bytes(char **at, const char *s, size_t len)
{
    char *to = *at;

    if (!s)
        return NULL;
    memcpy(to, s, len);
    to[len] = 0;
    *at += len + 1;
    return to;
}

struct queue_job
job_copy(const struct queue_job *job, char **copy)
{
    size_t queue = strlen(job->queue), kind = strlen(job->kind);
    size_t type = job->type ? strlen(job->type) : 0;
    struct queue_job out = *job;
    char *at = *copy = xmalloc(queue + kind + type + job->payload_len + 4);

    out.queue = copy_bytes(&at, job->queue, queue);
    out.kind = copy_bytes(&at, job->kind, kind);
    out.type = copy_bytes(&at, job->type, type);
    out.payload = copy_bytes(&at, job->payload, job->payload_len);
    return out;
}

void
held_add(struct worker *w, const struct queue_job *job, int64_t asked_ms)
{
    if (w->held.n == w->held.cap) {
        w->held.cap = w->held.cap ? 2 * w->held.cap : 64;
        w->held.items = xreallocarray(w->held.items, (size_t)w->held.cap, sizeof *w->held.items);
    }
    struct held *h = &w->held.items[w->held.n++];
    h->job = job_copy(job, &h->copy);
    h->asked_ms = asked_ms;
}

static void
drop_first(struct worker *w, int n)
{
    for (int i = 0; i < n; i++)
        free(w->held.items[i].copy);
    w->held.n -= n;
    if (w->held.n > 0)
        memmove(w->held.items, w->held.items + n, sizeof *w->held.items * (size_t)w->held.n);
}

static void
give_all_back(struct worker *w)
{
    for (int i = 0; i < w->held.n; i++) {
        const struct queue_job *job = &w->held.items[i].job;
        struct answer a = {
            .token = {.lease = job->lease, .seq = job->seq, .version = job->version}
        };
        memcpy(a.id, job->id, sizeof a.id);
        answer_add(w, ANSWER_GIVE_BACK, &a);
    }
    drop_first(w, w->held.n);
    w->held.most = 0;
}

void
held_start(struct worker *w, int64_t now)
{
    int n = 0;

    while (n < w->held.n && w->running < w->o.jobs) {
        job_start(w, &w->held.items[n].job, w->held.items[n].asked_ms);
        n++;
    }
    if (n > 0)
        drop_first(w, n);
    if (w->held.n > 0 && (now >= held_due_ms(w) || w->stop.how != STOP_NOT))
        give_all_back(w);
}

int64_t
held_due_ms(const struct worker *w)
{
    return w->held.n > 0 ? w->held.items[0].asked_ms + HELD_MS : INT64_MAX;
}

int
held_leases(const struct worker *w, int64_t *leases)
{
    for (int i = 0; i < w->held.n; i++)
        leases[i] = w->held.items[i].job.lease;
    return w->held.n;
}

void
held_free(struct worker *w)
{
    drop_first(w, w->held.n);
    free(w->held.items);
    w->held.items = NULL;
}
