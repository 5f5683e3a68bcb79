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
    w->sleep.at_ms = clock_ms() + AWAKE_MS;
}

/* Ends the sleep. A heartbeat is due at once: during the sleep the node sent none. */
void
sleep_end(struct worker *w)
{
    if (!w->sleep.is_asleep)
        return;
    w->sleep.is_asleep = w->sleep.listens_to_all = false;
    w->sleep.listen_slot = -1; /* this session listens to more than its slot: the next claim sets it
                            anew */
    w->claim.at_ms = w->node.beat_at_ms = clock_ms();
    sleep_later(w);
    log_line(LOG_DEBUG, "node %s wakes", w->node.name);
}

static bool
is_cut(const struct worker *w)
{
    enum db_state state = db_state(w->db);

    return (state != DB_READY && state != DB_BUSY) || db_backend_pid(w->db) != w->sleep.pid;
}

static void
on_state(void *ctx)
{
    struct worker *w = ctx;

    if (w->sleep.is_asleep && is_cut(w))
        worker_pump(w);
}

/* The server refuses sleep. Logs the reason once, until the worker has slept again. */
static void
refused(struct worker *w, const char *why)
{
    w->sleep.at_ms = clock_ms() + REFUSED_MS;
    w->sleep.listen_slot = -1; /* perhaps the session listens to more than its slot */
    if (!w->sleep.has_said)
        log_line(LOG_WARN, "--sleep: node %s stays awake: %s", w->node.name, why);
    w->sleep.has_said = true;
}

static void
fall_asleep(struct worker *w, int64_t ms)
{
    w->sleep.is_asleep = true;
    w->sleep.has_said = false;
    w->claim.at_ms = w->node.beat_at_ms = clock_ms() + ms;
    if (w->claim.is_woken || is_cut(w)) /* a NOTIFY or a break came with the answer */
        sleep_end(w);
    else
        log_line(LOG_DEBUG, "node %s sleeps for %" PRId64 " ms at most", w->node.name, ms);
}

static void
on_sleep(void *ctx, const struct err *e, const char *text)
{
    struct worker *w = ctx;
    int64_t ms = strtoll(text, NULL, 10);

    w->sleep.is_asking = false;
    if (e->kind != ERR_NONE && e->kind != ERR_CONN)
        refused(w, e->text);
    else if (!strcmp(text, "pooler"))
        refused(w, "a pooler stands between, through which no notification comes");
    else if (!strcmp(text, "no place"))
        refused(w, "17 workers wait for jobs already, and only they can sleep");
    else if (!strcmp(text, "listens"))
        w->sleep.listens_to_all = true;
    else if (ms > 0)
        fall_asleep(w, ms);
    else
        w->sleep.at_ms = clock_ms() + AGAIN_MS;
    if (w->claim.is_woken)
        w->claim.at_ms = clock_ms();
    worker_pump(w);
}

static int64_t
longest(const struct worker *w, int64_t now)
{
    int64_t rest = w->claim.idle_since_ms + w->o.max_idle_ms - now;

    return w->o.max_idle_ms > 0 && rest < w->o.sleep_ms ? rest : w->o.sleep_ms;
}

static bool
may_sleep(const struct worker *w, int64_t now)
{
    bool is_idle = w->claim.was_idle && w->running == 0 && w->held.n == 0 && answers_left(w) == 0;
    bool is_calling =
        w->node.is_calling || w->claim.is_out || w->sleep.is_asking || w->node.is_tidying;

    return w->o.sleep_ms > 0 && w->node.is_registered && w->stop.how == STOP_NOT &&
           !w->node.is_paused && !w->o.drain && !w->claim.is_woken && !w->node.untidy && is_idle &&
           !is_calling && !w->sleep.is_asleep &&
           (w->sleep.slot >= 0 || w->claim.idle_wait_ms > 0) && now >= w->sleep.at_ms &&
           longest(w, now) >= AGAIN_MS;
}

void
sleep_keep(struct worker *w, int64_t now)
{
    if (w->sleep.is_asleep && (now >= w->claim.at_ms || is_cut(w)))
        sleep_end(w);
}

void
sleep_try(struct worker *w, int64_t now)
{
    int pid = db_backend_pid(w->db);

    if (!may_sleep(w, now))
        return;
    if (pid != w->sleep.pid)
        w->sleep.listens_to_all = false;
    w->sleep.pid = pid;
    w->sleep.is_asking = true;
    queue_wait(w->queue, 0);
    queue_fall_asleep(w->queue,
                      &(struct queue_sleeper){.node = w->node.name,
                                              .session = w->node.session,
                                              .most_ms = longest(w, now),
                                              .slot = w->sleep.slot,
                                              .is_listening = w->sleep.listens_to_all},
                      on_sleep, w);
}

int64_t
sleep_due_ms(const struct worker *w, int64_t now)
{
    if (w->sleep.is_asleep)
        return w->claim.at_ms;
    return may_sleep(w, w->sleep.at_ms) && w->sleep.at_ms > now ? w->sleep.at_ms : INT64_MAX;
}

void
sleep_watch(struct worker *w)
{
    if (w->o.sleep_ms > 0)
        db_on_state(w->db, on_state, w);
}
