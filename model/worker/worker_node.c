/*
 * What the server knows of this process: registers, sends heartbeats, gives back leases of a claim
 * whose answer was lost, and signs off.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/worker/worker_parts.h"

enum {
    BEAT_MS = 5000,
    BEAT_RETRY_MS = 1000,
    AUTH_MS = 5000,
    CLOCK_CHANGE_MS = 500, /* a smaller change of the clock is not sent */
    SLOTS_MAX = 1000,      /* the most that node_start accepts: the scheduler keeps jobs ready for
                              each slot */
    TIDY_MS = 10000        /* tidies again after this time: at first the lost claim may
                              have been running */
};

char *
worker_make_name(void)
{
    char host[64] = "", id[QUEUE_ID_LEN + 1];

    gethostname(host, sizeof host - 1);
    queue_make_id(id);
    return xasprintf("%s-%d-%s", *host ? host : "host", (int)getpid(), id + QUEUE_ID_LEN - 6);
}

/* --- the connection and the node --- */

void
node_watch(struct worker *w)
{
    enum err_kind why = db_last_error(w->db)->kind;

    if (w->node.is_registered && db_state(w->db) == DB_OFF &&
        (why == ERR_AUTH || why == ERR_DENIED) && clock_ms() >= w->node.retry_auth_ms) {
        w->node.retry_auth_ms = clock_ms() + AUTH_MS;
        db_retry_now(w->db);
    }
}

/* True if waiting can't help after this error. Called only before the worker has worked for the
 * first time. */
static bool
is_hopeless(const struct err *e)
{
    static const char *const no_queue[] = {"3F000", "42883", "42P01"};

    for (size_t i = 0; i < sizeof no_queue / sizeof *no_queue; i++)
        if (!strcmp(e->sqlstate, no_queue[i]))
            return true;
    return e->kind == ERR_AUTH || e->kind == ERR_DENIED;
}

static struct queue_node
node_of(const struct worker *w)
{
    return (struct queue_node){.name = w->node.name,
                               .session = w->node.session,
                               .host = w->node.host,
                               .version = QUEUETOP_VERSION,
                               .pid = (int)getpid(),
                               .slots = w->o.jobs + w->o.ahead < SLOTS_MAX ? w->o.jobs + w->o.ahead
                                                                           : SLOTS_MAX,
                               .queues = w->o.queues,
                               .nqueues = w->o.nqueues};
}

static void
on_clock(void *ctx, const struct err *e, const char *text)
{
    struct worker *w = ctx;

    (void)text;
    w->clock.is_telling = false;
    w->clock.is_told = e->kind == ERR_NONE;
    /* no such function in an older queue, or no right to call it: told again when the worker
     * registers again */
    w->clock.is_unheard = !strncmp(e->sqlstate, "42", 2);
    if (e->kind != ERR_NONE && e->kind != ERR_CONN && strcmp(e->sqlstate, "42883") != 0)
        log_line(LOG_WARN, "node_clock: %s", e->text);
}

/* Tells the server how far this machine's clock is from the server's, if that has changed. */
static void
tell_clock(struct worker *w, int64_t ahead)
{
    struct queue_node node = node_of(w);
    int64_t change = ahead - w->clock.told_ms;

    if (w->clock.is_telling || w->clock.is_unheard || !w->node.is_registered ||
        (w->clock.is_told && change < CLOCK_CHANGE_MS && change > -CLOCK_CHANGE_MS))
        return;
    w->clock.is_telling = true;
    w->clock.told_ms = ahead;
    queue_wait(w->queue, 0);
    queue_node_clock(w->queue, &node, ahead, on_clock, w);
}

/* Compares the clock of this machine with the server's, whose time came with an answer. The queue
 * goes by the server's clock only, but a job may use the clock of this machine. */
static void
compare_clocks(struct worker *w)
{
    int64_t there = queue_server_ms(w->queue);

    if (!there)
        return;
    int64_t ahead = clock_ahead_ms(there, w->node.sent_ms, clock_wall_ms(), w->clock.ahead_ms);
    bool is_wrong = ahead > CLOCK_SKEW_MS || ahead < -CLOCK_SKEW_MS;
    if (is_wrong && !w->clock.is_wrong)
        log_line(LOG_WARN, "node %s: the server's clock is %.1f s %s of this machine's",
                 w->node.name, (double)(ahead < 0 ? -ahead : ahead) / 1000,
                 ahead < 0 ? "behind" : "ahead");
    w->clock.ahead_ms = ahead;
    w->clock.is_wrong = is_wrong;
    tell_clock(w, -ahead);
}

static void
on_start(void *ctx, const struct err *e, const char *text)
{
    struct worker *w = ctx;

    (void)text;
    w->node.is_calling = false;
    w->node.beat_at_ms = clock_ms() + (e->kind == ERR_NONE ? BEAT_MS : BEAT_RETRY_MS);
    if (e->kind == ERR_NONE) {
        if (!w->node.is_registered)
            log_line(LOG_INFO, "node %s is up", w->node.name);
        w->node.is_registered = true;
        w->clock.is_told = w->clock.is_unheard = false;
        compare_clocks(w);
    } else if (e->kind == ERR_REFUSED || (w->counts.started == 0 && is_hopeless(e))) {
        w->fatal = *e;
        w->node.is_registered = false;
    } else if (e->kind != ERR_CONN)
        log_line(LOG_WARN, "node %s: %s", w->node.name, e->text);
    worker_pump(w);
}

static void
on_beat(void *ctx, const struct err *e, const char *text)
{
    struct worker *w = ctx;
    bool is_paused = !strcmp(text, "draining");

    w->node.is_calling = false;
    w->node.beat_at_ms = clock_ms() + (e->kind == ERR_NONE ? BEAT_MS : BEAT_RETRY_MS);
    if (e->kind == ERR_NONE && !strcmp(text, "gone")) {
        log_line(LOG_WARN, "node %s is unknown to the server: registering again", w->node.name);
        w->node.is_registered = false;
        w->node.beat_at_ms = 0;
    } else if (e->kind == ERR_NONE && is_paused != w->node.is_paused) {
        log_line(LOG_INFO, "node %s is %s", w->node.name,
                 is_paused ? "drained by an operator: no new jobs" : "up again");
        w->node.is_paused = is_paused;
    }
    if (e->kind == ERR_NONE)
        compare_clocks(w);
    worker_pump(w);
}

void
node_keep(struct worker *w, int64_t now)
{
    struct queue_node node = node_of(w);

    if (w->node.is_calling || w->sleep.is_asking || now < w->node.beat_at_ms)
        return;
    w->node.is_calling = true;
    queue_wait(w->queue, w->node.is_registered ? 0 : -1);
    w->node.sent_ms = clock_wall_ms();
    if (w->node.is_registered) {
        queue_node_beat(w->queue, &node, on_beat, w);
        return;
    }
    queue_node_start(w->queue, &node, on_start, w);
}

/* --- leases that we don't know of --- */

static void
on_tidy(void *ctx, const struct err *e, const char *text)
{
    struct worker *w = ctx;

    w->node.is_tidying = false;
    w->node.tidy_at_ms = clock_ms() + BEAT_RETRY_MS;
    if (e->kind == ERR_NONE) {
        w->node.untidy--;
        w->node.tidy_at_ms = clock_ms() + TIDY_MS;
        if (strcmp(text, "0") != 0)
            log_line(LOG_INFO, "jobs given back of a claim whose answer was lost: %s", text);
    } else if (e->kind != ERR_CONN) {
        w->node.untidy = 0; /* give up: the unknown leases will expire */
        log_line(LOG_WARN, "keep_only: %s", e->text);
    }
    worker_pump(w);
}

void
node_tidy(struct worker *w, int64_t now)
{
    struct queue_node node = node_of(w);

    if (!w->node.untidy || w->node.is_tidying || w->claim.is_out || !w->node.is_registered ||
        now < w->node.tidy_at_ms)
        return;
    int all = w->running + w->held.n + answers_left(w);
    int64_t *leases = xcalloc((size_t)all + 1, sizeof *leases);
    int n = jobs_leases(w, leases);
    n += held_leases(w, leases + n);
    n += answers_leases(w, leases + n);
    w->node.is_tidying = true;
    queue_wait(w->queue, 0);
    queue_keep_only(w->queue, &node, leases, n, on_tidy, w);
    free(leases);
}

/* --- signing off --- */

static void
on_stop(void *ctx, const struct err *e, const char *text)
{
    struct worker *w = ctx;

    (void)text;
    if (e->kind != ERR_NONE)
        log_line(LOG_WARN, "could not sign off: %s", e->text);
    w->node.has_left = true;
    loop_stop(w->loop);
}

void
node_leave(struct worker *w)
{
    struct queue_node node = node_of(w);

    w->node.is_leaving = true;
    if (!w->node.is_registered) {
        w->node.has_left = true;
        loop_stop(w->loop);
        return;
    }
    queue_wait(w->queue, 0);
    queue_node_stop(w->queue, &node, on_stop, w);
}

int64_t
node_due_ms(const struct worker *w, int64_t now)
{
    int64_t due = now + BEAT_MS;

    if (!w->node.is_calling && w->node.beat_at_ms < due)
        due = w->node.beat_at_ms;
    if (w->node.untidy && !w->node.is_tidying && !w->claim.is_out && w->node.tidy_at_ms < due)
        due = w->node.tidy_at_ms;
    return due;
}
