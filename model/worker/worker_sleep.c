/*
 * The sleep of a worker that has nothing to do (--sleep): no look, no heartbeat, no statement at
 * all until the server's answer says that something is due, or a NOTIFY comes, or the connection is
 * gone. The server decides whether this worker may sleep, and until when (sql/core/61_sleep.sql). A
 * worker that has just waked stays awake for AWAKE_MS, because after one job more jobs usually
 * follow.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/worker/worker_parts.h"

enum {
    AWAKE_MS = 2000,
    AGAIN_MS = 1000,   /* next try if there was something to do */
    REFUSED_MS = 60000 /* next try after a pooler or an error prevented sleep */
};

void
sleep_later(struct worker *w)
{
    w->sleep_at_ms = clock_ms() + AWAKE_MS;
}

/* Ends the sleep. A heartbeat is due at once: during the sleep the node sent none. */
void
sleep_end(struct worker *w)
{
    if (!w->is_asleep)
        return;
    w->is_asleep = w->listens_to_all = false;
    w->listen_slot = -1; /* this session listens to more than its slot: the next claim sets it
                            anew */
    w->claim_at_ms = w->beat_at_ms = clock_ms();
    sleep_later(w);
    log_line(LOG_DEBUG, "node %s wakes", w->node);
}

static bool
is_cut(const struct worker *w)
{
    enum db_state state = db_state(w->db);

    return (state != DB_READY && state != DB_BUSY) || db_backend_pid(w->db) != w->sleep_pid;
}

static void
on_state(void *ctx)
{
    struct worker *w = ctx;

    if (w->is_asleep && is_cut(w))
        worker_pump(w);
}

/* The server refuses sleep. Logs the reason once, until the worker has slept again. */
static void
refused(struct worker *w, const char *why)
{
    w->sleep_at_ms = clock_ms() + REFUSED_MS;
    w->listen_slot = -1; /* perhaps the session listens to more than its slot */
    if (!w->has_said_no_sleep)
        log_line(LOG_WARN, "--sleep: node %s stays awake: %s", w->node, why);
    w->has_said_no_sleep = true;
}

static void
fall_asleep(struct worker *w, int64_t ms)
{
    w->is_asleep = true;
    w->has_said_no_sleep = false;
    w->claim_at_ms = w->beat_at_ms = clock_ms() + ms;
    if (w->is_woken || is_cut(w)) /* a NOTIFY or a break came with the answer */
        sleep_end(w);
    else
        log_line(LOG_DEBUG, "node %s sleeps for %" PRId64 " ms at most", w->node, ms);
}

static void
on_sleep(void *ctx, const struct err *e, const char *text)
{
    struct worker *w = ctx;
    int64_t ms = strtoll(text, NULL, 10);

    w->is_lulling = false;
    if (e->kind != ERR_NONE && e->kind != ERR_CONN)
        refused(w, e->text);
    else if (!strcmp(text, "pooler"))
        refused(w, "a pooler stands between, through which no notification comes");
    else if (!strcmp(text, "no place"))
        refused(w, "17 workers wait for jobs already, and only they can sleep");
    else if (!strcmp(text, "listens"))
        w->listens_to_all = true;
    else if (ms > 0)
        fall_asleep(w, ms);
    else
        w->sleep_at_ms = clock_ms() + AGAIN_MS;
    if (w->is_woken)
        w->claim_at_ms = clock_ms();
    worker_pump(w);
}

static int64_t
longest(const struct worker *w, int64_t now)
{
    int64_t rest = w->idle_since_ms + w->o.max_idle_ms - now;

    return w->o.max_idle_ms > 0 && rest < w->o.sleep_ms ? rest : w->o.sleep_ms;
}

static bool
may_sleep(const struct worker *w, int64_t now)
{
    bool is_idle = w->was_idle && w->running == 0 && w->nheld == 0 && answers_left(w) == 0;
    bool is_calling = w->is_calling_node || w->is_claiming || w->is_lulling || w->is_tidying;

    return w->o.sleep_ms > 0 && w->is_registered && w->stop == STOP_NOT && !w->is_paused &&
           !w->o.drain && !w->is_woken && !w->untidy && is_idle && !is_calling && !w->is_asleep &&
           (w->sleep_slot >= 0 || w->idle_wait_ms > 0) && now >= w->sleep_at_ms &&
           longest(w, now) >= AGAIN_MS;
}

void
sleep_keep(struct worker *w, int64_t now)
{
    if (w->is_asleep && (now >= w->claim_at_ms || is_cut(w)))
        sleep_end(w);
}

void
sleep_try(struct worker *w, int64_t now)
{
    int pid = db_backend_pid(w->db);

    if (!may_sleep(w, now))
        return;
    if (pid != w->sleep_pid)
        w->listens_to_all = false;
    w->sleep_pid = pid;
    w->is_lulling = true;
    queue_wait(w->queue, 0);
    queue_fall_asleep(w->queue,
                      &(struct queue_sleeper){.node = w->node,
                                              .session = w->session,
                                              .most_ms = longest(w, now),
                                              .slot = w->sleep_slot,
                                              .is_listening = w->listens_to_all},
                      on_sleep, w);
}

int64_t
sleep_due_ms(const struct worker *w, int64_t now)
{
    if (w->is_asleep)
        return w->claim_at_ms;
    return may_sleep(w, w->sleep_at_ms) && w->sleep_at_ms > now ? w->sleep_at_ms : INT64_MAX;
}

void
sleep_watch(struct worker *w)
{
    if (w->o.sleep_ms > 0)
        db_on_state(w->db, on_state, w);
}
