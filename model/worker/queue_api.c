/*
 * The public interface (queuetop.h): pushing on the caller's connection, and the worker with its
 * own loop and connection. Nothing is decided here.
 */
#include "model/worker/queuetop.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gen/sql.h"
#include "model/adapter/sections.h"
#include "model/adapter/trust.h"
#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "model/worker/queue_parts.h"
#include "model/worker/worker.h"

enum { AHEAD = 500, DAY_MS = 86400000 };

static void
say(struct queuetop_error *to, const struct err *e)
{
    if (!to)
        return;
    memcpy(to->sqlstate, e->sqlstate, sizeof to->sqlstate);
    memcpy(to->text, e->text, sizeof to->text);
}

/* --- pushing --- */

struct queuetop_push
queuetop_job(const char *queue, const char *payload)
{
    return (struct queuetop_push){.queue = queue, .payload = payload, .priority = 5};
}

/* Rejects what the server would reject, before anything is sent. */
static bool
check(const struct queuetop_push *job, size_t len, struct err *e)
{
    struct queue_push own = {.queue = job->queue ? job->queue : "",
                             .kind = job->kind,
                             .payload = job->payload,
                             .payload_len = len,
                             .type = job->type,
                             .unique_key = job->unique_key};

    return queue_push_check(&own, e);
}

static struct db_param
number(char buf[static 16], int n)
{
    snprintf(buf, 16, "%d", n);
    return (struct db_param){.value = buf};
}

static bool
push(struct pg_conn *conn, const char *sql, const struct queuetop_push *job, size_t len,
     struct result **out, struct err *e)
{
    char delay[40], timeout[40], priority[16], tries[16];
    struct db_param params[] = {
        queue_text(job->queue),
        {.value = job->payload, .len = (int)len, .binary = true},
        queue_text(job->kind ? job->kind : ""),
        number(priority, job->priority),
        queue_text(job->run_after),
        queue_interval(delay, job->delay_ms),
        queue_text(job->unique_key),
        job->max_tries > 0 ? number(tries, job->max_tries) : (struct db_param){0      },
        queue_interval(timeout, job->run_timeout_ms),
        queue_text(job->type),
    };
    struct db_stmt stmt = {.sql = sql, .nparams = job->type ? 10 : 9, .params = params};

    if (job->type && !job->payload)
        params[1].value = "";
    return db_lend(conn, &stmt, out, e);
}

int
queuetop_push(struct pg_conn *conn, const char *schema, const struct queuetop_push *job, char *id,
              struct queuetop_error *e)
{
    size_t len = job->payload_len || !job->payload ? job->payload_len : strlen(job->payload);
    struct result *r = NULL;
    struct err own = {0};
    char *sql = NULL;
    int pushed = -1;

    if (check(job, len, &own) &&
        queue_client_sql(job->type ? "push_one_bytes" : "push_one", schema ? schema : "queues",
                         &sql, &own) &&
        push(conn, sql, job, len, &r, &own)) {
        pushed = result_int(r, 0, result_col(r, "pushed"), 0) != 0;
        if (id)
            snprintf(id, QUEUE_ID_LEN + 1, "%s", result_text(r, 0, result_col(r, "id")));
    } else
        say(e, &own);
    result_free(r);
    free(sql);
    return pushed;
}

/* --- working --- */

struct queuetop_worker {
    struct loop *loop;
    struct db *db;
    struct worker *worker;
    struct trust *trust;
    struct schema_gate gate;
    char *schema, *node, **queues;
    int nqueues;
    int event_fd, watch;
};

static void
on_stop(void *ctx, short revents)
{
    struct queuetop_worker *w = ctx;
    eventfd_t n;

    (void)revents;
    (void)eventfd_read(w->event_fd, &n);
    worker_end(w->worker, "stopped");
}

static char *
copy_of(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static struct worker_options
options_of(const struct queuetop_worker *w, const struct queuetop_options *o)
{
    return (struct worker_options){.schema = w->schema,
                                   .node = w->node,
                                   .queues = (const char *const *)w->queues,
                                   .nqueues = w->nqueues,
                                   .fn = o->fn,
                                   .fn_ctx = o->ctx,
                                   .threads = o->threads,
                                   .ahead = o->ahead < 0   ? 0
                                            : o->ahead > 0 ? o->ahead
                                                           : AHEAD,
                                   .no_signals = !o->signals,
                                   .jobs = o->jobs > 0 ? o->jobs : 1,
                                   .timeout_ms = o->timeout_ms,
                                   .max_idle_ms = o->max_idle_ms,
                                   .sleep_ms = o->sleep_ms,
                                   .drain = o->drain,
                                   .poll = o->poll};
}

/* What node_sleep() would refuse. */
static bool
check_sleep(const struct queuetop_options *o, struct err *e)
{
    if (o->sleep_ms == 0)
        return true;
    if (o->drain || o->poll)
        return fail(e, ERR_USAGE,
                    "who sleeps waits for notifications: sleep_ms goes without drain "
                    "and poll");
    return (o->sleep_ms >= 1000 && o->sleep_ms <= DAY_MS) ||
           fail(e, ERR_USAGE, "sleep_ms is 1 s to 1 day");
}

struct queuetop_worker *
queuetop_worker_new(const struct queuetop_options *o, struct queuetop_error *e)
{
    struct queuetop_worker *w = xcalloc(1, sizeof *w);
    struct err own = {0};

    w->loop = loop_new();
    w->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    bool has_fds = w->event_fd >= 0 && (!o->signals || loop_takes_signals(w->loop));
    int lacks = errno;
    w->schema = xstrdup(o->schema ? o->schema : "queues");
    w->node = copy_of(o->node);
    w->nqueues = o->queues ? o->nqueues : 0;
    w->queues = xcalloc((size_t)w->nqueues + 1, sizeof *w->queues);
    for (int i = 0; i < w->nqueues; i++)
        w->queues[i] = xstrdup(o->queues[i]);
    w->trust = trust_new();
    trust_names(w->trust, o->trust_owner);
    schema_gate_init(&w->gate, w->schema, w->trust);
    w->db = db_new(w->loop, &(struct db_options){.conninfo = o->conninfo ? o->conninfo : "",
                                                 .app_name = "queuetop worker",
                                                 .gate = &w->gate.db});
    struct worker_options all = options_of(w, o);
    if (!has_fds)
        fail(&own, ERR_SYS, "no descriptor for a worker: %s", strerror(lacks));
    else if (!o->fn)
        fail(&own, ERR_USAGE, "a worker needs a function");
    else if (check_sleep(o, &own))
        w->worker = worker_new(w->loop, w->db, &all, &own);
    if (!w->worker) {
        say(e, &own);
        queuetop_worker_free(w);
        return NULL;
    }
    w->watch = loop_watch(w->loop, w->event_fd, POLLIN, on_stop, w);
    return w;
}

bool
queuetop_worker_run(struct queuetop_worker *w, struct queuetop_error *e)
{
    struct err own = {0};
    bool ok = worker_run(w->worker, &own);

    if (!ok)
        say(e, &own);
    return ok;
}

void
queuetop_worker_stop(struct queuetop_worker *w)
{
    (void)eventfd_write(w->event_fd, 1);
}

void
queuetop_worker_free(struct queuetop_worker *w)
{
    if (!w)
        return;
    db_free(w->db);
    worker_free(w->worker);
    loop_free(w->loop);
    close(w->event_fd);
    for (int i = 0; i < w->nqueues; i++)
        free(w->queues[i]);
    free(w->queues);
    schema_gate_done(&w->gate);
    trust_free(w->trust);
    free(w->schema);
    free(w->node);
    free(w);
}

struct queuetop_counts
queuetop_worker_counts(const struct queuetop_worker *w)
{
    const struct worker_counts *n = worker_counts(w->worker);

    return (struct queuetop_counts){
        .started = n->started, .done = n->done, .failed = n->failed, .lost = n->lost};
}

int
queuetop_watch(struct queuetop_worker *w, int fd, short events, void (*fn)(void *, short),
               void *ctx)
{
    return loop_watch(w->loop, fd, events, fn, ctx);
}

void
queuetop_unwatch(struct queuetop_worker *w, int handle)
{
    loop_unwatch(w->loop, handle);
}
