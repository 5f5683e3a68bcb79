/*
 * Runs a canary: chooses the few, requeues them by id at the soonest priority, looks each second
 * what became of them, and then counts the rest. Each of the two requeues is an action of its own
 * (model/action/action.c), so a lost answer changes nothing twice.
 */
#include "model/action/canary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/action_parts.h"
#include "model/base/clock.h"

enum {
    LOOK_MS = 1000,
    CONNECT_MS = 5000,
    AWAY_MS = 1000,      /* between two tries while the connection is lost */
    OBSTACLES_MS = 5000, /* between two looks at what may keep the jobs from starting */
    COUNTS_MOST = 2      /* no third try after two time-outs */
};

struct canary {
    struct loop *loop;
    struct db *db;
    const struct adapter *adapter;
    int serial;
    struct action *whole, *few, *rest;
    uint64_t seen; /* generation of the action under way */
    int wanted, wait_ms;
    enum canary_state state;
    uint64_t generation;
    bool orphan, looking, stopped, failed;
    bool misses; /* a job was no longer there, and nobody knew what its queue keeps */
    int counts;  /* counts of the rest that ran into their time limit */
    int timer;
    int exit_code;
    struct tried_job *jobs;
    int n;
    int64_t tried_ms, lost_ms, obstacles_ms; /* monotonic; 0 = not yet */
    int64_t wall_ms,
        waited_ms; /* when the few were requeued; the time since then at the last look */
    char *obstacle, *away, *summary;
};

static void look(void *ctx);

/* --- its life ---------------------------------------------------------------------------------- */

static void
touch(struct canary *c)
{
    c->generation++;
}

static void
free_now(struct canary *c)
{
    for (int i = 0; i < c->n; i++) {
        free(c->jobs[i].id);
        free(c->jobs[i].queue);
        free(c->jobs[i].node);
        free(c->jobs[i].error);
    }
    free(c->jobs);
    free(c->obstacle);
    free(c->away);
    free(c->summary);
    free(c);
}

void
canary_free(struct canary *c)
{
    if (!c)
        return;
    if (c->timer)
        loop_cancel(c->loop, c->timer);
    c->timer = 0;
    action_free(c->whole);
    action_free(c->few);
    action_free(c->rest);
    c->whole = c->few = c->rest = NULL;
    if (c->looking && c->state == CANARY_CHOOSING)
        db_cancel(c->db); /* nobody needs the sample, and the next act would wait */
    if (c->looking)
        c->orphan = true; /* the answer frees the canary */
    else
        free_now(c);
}

static void
later(struct canary *c, int64_t ms)
{
    if (c->timer)
        loop_cancel(c->loop, c->timer);
    c->timer = loop_at(c->loop, clock_ms() + ms, look, c);
}

static void
over(struct canary *c, bool failed, int exit_code, char *summary)
{
    if (c->timer)
        loop_cancel(c->loop, c->timer);
    c->timer = 0;
    c->state = CANARY_OVER;
    c->failed = failed;
    c->exit_code = exit_code;
    free(c->summary);
    c->summary = summary;
    touch(c);
}

static int64_t
total_of(const struct canary *c)
{
    return action_count(c->whole);
}

/* "10 of 4,000 tried: 9 done, 1 failed again". */
static void
add_tried(const struct canary *c, struct buf *b)
{
    static const char *const words[TRIED_STATES] = {
        [TRIED_DONE] = "done",    [TRIED_FAILED] = "failed again",
        [TRIED_RUNS] = "running", [TRIED_WAITS] = "waiting",
        [TRIED_GONE] = "gone",    [TRIED_NOT_KEPT] = "completed or removed"};
    static const enum tried_state order[] = {TRIED_DONE, TRIED_NOT_KEPT, TRIED_FAILED,
                                             TRIED_RUNS, TRIED_WAITS,    TRIED_GONE};
    struct canary_verdict v = canary_judge(c->jobs, c->n);
    const char *sign = ": ";

    buf_printf(b, "%d of ", c->n);
    action_add_count(b, total_of(c), NULL);
    buf_str(b, " tried");
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (v.by_state[order[i]] > 0) {
            buf_printf(b, "%s%d %s", sign, v.by_state[order[i]], words[order[i]]);
            sign = ", ";
        }
}

/* The end after some were tried. */
static void
over_tried(struct canary *c, bool failed, int exit_code, const char *rest)
{
    struct buf b = {0};

    add_tried(c, &b);
    buf_str(&b, rest);
    over(c, failed, exit_code, b.data);
}

static int64_t
other_count(const struct canary *c)
{
    return c->rest && action_state(c->rest) == ACTION_READY ? action_count(c->rest)
                                                            : total_of(c) - c->n;
}

static void
over_stopped(struct canary *c)
{
    struct canary_verdict v = canary_judge(c->jobs, c->n);
    struct buf b = {0};

    buf_str(&b, "; the other ");
    action_add_count(&b, other_count(c), NULL);
    buf_str(&b, other_count(c) == 1 ? " is as it was" : " are as they were");
    over_tried(c, v.hope == HOPE_NONE, 3, b.data);
    buf_free(&b);
}

/* If an action can't go on, the canary ends with the error of the action. */
static void
over_by(struct canary *c, const struct action *a)
{
    const char *rest = c->n > 0 ? "the tried jobs stay as they are: " : "";

    over(c, true, action_exit_code(a),
         xasprintf("%s%s; the rest is as it was", rest, action_summary(a)));
}

/* --- what becomes of the few --------------------------------------------------------------------- */

static void
take_text(char **to, const char *text)
{
    if (!strcmp(*to, text))
        return;
    free(*to);
    *to = xstrdup(text);
}

/* The state of a job that was not found. If its queue is not known and some queue keeps no finished
 * jobs, the job may have been in that queue: so the state is TRIED_NOT_KEPT. */
static enum tried_state
state_of_missing(const char *queue, const struct rowset *queues)
{
    const struct queue_row *q = queues->rows;

    for (int i = 0; i < queues->n; i++)
        if (q[i].keeps == 0 && (!*queue || !strcmp(q[i].queue, queue)))
            return TRIED_NOT_KEPT;
    return TRIED_GONE;
}

static enum tried_state
state_of(const struct job_row *row)
{
    if (!strcmp(row->state, "cancelled") || !strcmp(row->state, "discarded"))
        return TRIED_GONE;
    if (!strcmp(row->state, "completed"))
        return TRIED_DONE;
    if (!strcmp(row->state, "failed") || !strcmp(row->state, "retry"))
        return TRIED_FAILED;
    return !strcmp(row->state, "running") ? TRIED_RUNS : TRIED_WAITS;
}

/* Only the first outcome of a job counts. What others do to the job later says nothing about the
 * cause. */
static void
take_job(struct tried_job *j, const struct job_row *row)
{
    j->state = state_of(row);
    take_text(&j->queue, row->queue);
    take_text(&j->node, row->node);
    take_text(&j->error, j->state == TRIED_FAILED ? row->error : "");
    if (j->state == TRIED_DONE && row->started_ms != FIELD_NULL && row->finished_ms != FIELD_NULL)
        j->run_ms = row->finished_ms - row->started_ms;
}

static const struct job_row *
find_row(const struct rowset *jobs, const char *id)
{
    const struct job_row *rows = jobs->rows;

    for (int i = 0; i < jobs->n; i++)
        if (!strcmp(rows[i].id, id))
            return &rows[i];
    return NULL;
}

/* queues NULL: this look did not ask for the queues. If jobs are missing, the next look asks for
 * them and judges these jobs. */
static void
take_jobs(struct canary *c, const struct rowset *jobs, const struct rowset *queues)
{
    const char *asked = c->whole->params.value[PARAM_QUEUE];

    c->misses = false;
    for (int i = 0; i < c->n; i++) {
        struct tried_job *j = &c->jobs[i];
        const struct job_row *row = find_row(jobs, j->id);
        if (j->state != TRIED_WAITS && j->state != TRIED_RUNS)
            continue;
        if (row)
            take_job(j, row);
        else if (queues)
            j->state = state_of_missing(*j->queue ? j->queue : asked ? asked : "", queues);
        else
            c->misses = true;
    }
}

static bool
any_waits(const struct canary *c)
{
    return canary_judge(c->jobs, c->n).by_state[TRIED_WAITS] > 0;
}

static bool
all_answered(const struct canary *c)
{
    struct canary_verdict v = canary_judge(c->jobs, c->n);

    return v.by_state[TRIED_WAITS] + v.by_state[TRIED_RUNS] == 0;
}

static void
count_rest(struct canary *c)
{
    const char **ids = xcalloc((size_t)c->few->rows.n + 1, sizeof *ids);
    char *prefix = xasprintf("rest of action %s", action_id(c->few));
    int n = 0;

    for (; n < c->few->rows.n; n++)
        ids[n] = c->few->rows.ids[n];
    c->state = CANARY_COUNTING;
    c->rest = action_rest(c->whole, ids, n, prefix);
    c->seen = action_generation(c->rest);
    free(prefix);
    free(ids);
    touch(c);
}

/* An answer failed. If the connection is lost, waits for it and changes nothing meanwhile. */
static void
lost(struct canary *c, const struct err *e)
{
    int64_t now = clock_ms();
    bool passes = e->kind == ERR_CONN || e->kind == ERR_TIMEOUT;

    if (!c->lost_ms)
        c->lost_ms = now;
    if (passes && !(c->whole->how.give_up_ms && now - c->lost_ms >= c->whole->how.give_up_ms)) {
        free(c->away);
        c->away =
            xasprintf("%s: asks again; the %d that were tried go on, the rest is as it was",
                      e->kind == ERR_CONN ? "the connection is lost" : "the server is slow", c->n);
        later(c, AWAY_MS);
        touch(c);
        return;
    }
    struct buf b = {0};
    buf_printf(&b,
               "%d jobs were requeued (action %s), but their outcome is not known: %s; "
               "the rest is as it was",
               c->n, action_id(c->few), e->text);
    over(c, true, err_exit_code(e), b.data);
}

static void
is_back(struct canary *c)
{
    c->lost_ms = 0;
    free(c->away);
    c->away = NULL;
}

static void
take_obstacles(struct canary *c, struct db_reply *reply, int i, const struct rowset *queues)
{
    struct rowset life = {0}, nodes = {0};
    struct err e;
    bool ok = record_decode(&record_life, db_take(reply, i++), &life, &e);

    ok = ok && record_decode(&record_node, db_take(reply, i++), &nodes, &e);
    free(c->obstacle);
    c->obstacle = ok ? canary_find_obstacle(c->jobs, c->n, queues, &life, &nodes) : NULL;
    rowset_free(&life);
    rowset_free(&nodes);
}

/* By the wall clock, because QUEUETOP_NOW can freeze it (for pictures). */
static int64_t
waited_now(const struct canary *c)
{
    int64_t ms = clock_wall_ms() - c->wall_ms;

    return ms > 0 ? ms : 0;
}

static void
looked(void *ctx, struct db_reply *reply)
{
    struct canary *c = ctx;
    struct err e = reply->err;
    struct rowset jobs = {0}, queues = {0};

    c->looking = false;
    if (c->orphan) {
        free_now(c);
        return;
    }
    if (c->state != CANARY_WATCHING)
        return;
    bool with_queues = reply->n > 1;
    if (e.kind != ERR_NONE || !record_decode(&record_job, db_take(reply, 0), &jobs, &e) ||
        (with_queues && !record_decode(&record_queue, db_take(reply, 1), &queues, &e))) {
        rowset_free(&jobs);
        lost(c, &e);
        return;
    }
    is_back(c);
    take_jobs(c, &jobs, with_queues ? &queues : NULL);
    rowset_free(&jobs);
    if (reply->n > 2)
        take_obstacles(c, reply, 2, &queues);
    rowset_free(&queues);
    if (!any_waits(c)) {
        free(c->obstacle);
        c->obstacle = NULL;
    }
    c->waited_ms = waited_now(c);
    if (all_answered(c) || clock_ms() - c->tried_ms >= c->wait_ms)
        count_rest(c);
    else
        later(c, LOOK_MS);
    touch(c);
}

static bool
knows_obstacles(const struct canary *c)
{
    return adapter_has(c->adapter, SEC_LIFE) && adapter_has(c->adapter, SEC_NODES);
}

static bool
has_moved(struct canary *c)
{
    if (c->serial == adapter_serial(c->adapter))
        return false;
    over(c, true, 3,
         xstrdup("the schema holds another queue now than when this action began: the outcome of "
                 "the tried jobs is not known"));
    return true;
}

static void
look(void *ctx)
{
    static const enum section_id besides[] = {SEC_QUEUES, SEC_LIFE, SEC_NODES};
    struct db_param storage[4][ADAPTER_PARAMS];
    struct db_stmt stmts[4];
    struct canary *c = ctx;
    struct params p = {{0}};
    int n = 0;

    c->timer = 0;
    if (c->state != CANARY_WATCHING || c->looking || has_moved(c))
        return;
    params_set_list(&p, PARAM_IDS, c->few ? (const char *const *)c->few->done.ids : NULL, c->n);
    params_set_int(&p, PARAM_LIMIT, c->n);
    stmts[n] = adapter_bind(c->adapter, SEC_JOBS, &p, storage[n]);
    n++;
    int64_t now = clock_ms();
    int most = c->misses ? 2 : 1;
    if (knows_obstacles(c) && any_waits(c) &&
        (!c->obstacles_ms || now - c->obstacles_ms >= OBSTACLES_MS)) {
        c->obstacles_ms = now;
        most = 4;
    }
    for (; n < most; n++)
        stmts[n] = adapter_bind(c->adapter, besides[n - 1], NULL, storage[n]);
    struct db_call call = {.stmts = stmts, .n = n, .dry = true};
    adapter_settings(c->adapter, false, &call);
    c->looking = true;
    db_ask(c->db, &call, CONNECT_MS, looked, c);
    params_done(&p);
}

/* --- the few ------------------------------------------------------------------------------------- */

static void
try_few(struct canary *c, const char *const *ids, int n)
{
    struct buf prefix = {0};

    buf_printf(&prefix, "first %d of ", n);
    action_add_count(&prefix, total_of(c), NULL);
    c->state = CANARY_TRYING;
    c->few = action_few(c->whole, ids, n, prefix.data);
    c->seen = action_generation(c->few);
    buf_free(&prefix);
    touch(c);
}

static void
chosen(void *ctx, struct db_reply *reply)
{
    struct canary *c = ctx;
    struct err e = reply->err;
    struct rowset rows = {0};

    c->looking = false;
    if (c->orphan) {
        free_now(c);
        return;
    }
    if (c->state != CANARY_CHOOSING)
        return;
    if (e.kind != ERR_NONE || !record_decode(&record_sample, db_take(reply, 0), &rows, &e)) {
        over(c, true, err_exit_code(&e), xasprintf("nothing was changed: %s", e.text));
        return;
    }
    const char **ids = xcalloc((size_t)rows.n + 1, sizeof *ids);
    for (int i = 0; i < rows.n; i++)
        ids[i] = ((const struct sample_row *)rows.rows)[i].id;
    if (rows.n == 0)
        over(c, false, 1, xstrdup("nothing was changed: all have moved on meanwhile"));
    else
        try_few(c, ids, rows.n);
    free(ids);
    rowset_free(&rows);
}

static void
ask_sample(struct canary *c)
{
    struct db_param storage[ADAPTER_PARAMS];
    struct params p = {{0}};

    params_copy(&p, &c->whole->params);
    params_set_int(&p, PARAM_N, c->wanted);
    struct db_stmt stmt = adapter_bind(c->adapter, SEC_REQUEUE_SAMPLE, &p, storage);
    struct db_call call = {
        .stmts = &stmt, .n = 1, .dry = true, .statement_timeout_ms = ACTION_COUNT_MS};
    adapter_settings(c->adapter, false, &call);
    c->looking = true;
    db_ask(c->db, &call, CONNECT_MS, chosen, c);
    params_done(&p);
}

static void
choose(struct canary *c)
{
    const struct action *w = c->whole;
    int64_t places[CANARY_MOST];
    const char *ids[CANARY_MOST];

    if (!w->rows.ids) {
        ask_sample(c);
        return;
    }
    int n = canary_places(w->rows.n, c->wanted, places);
    for (int i = 0; i < n; i++)
        ids[i] = w->rows.ids[places[i]];
    try_few(c, ids, n);
}

/* True if some jobs have finished: they are requeued under new ids, so nobody can watch them. */
static bool
has_finished(const struct action *a)
{
    for (int i = 0; i < a->preview.effects.n; i++)
        if (*a->preview.effects.rows[i].state &&
            strstr(a->preview.effects.rows[i].why, "as a new job"))
            return true;
    return false;
}

bool
canary_fits(const struct action *a)
{
    const struct adapter *ad = a->adapter;

    return a->act == ACT_REQUEUE && a->state == ACTION_READY && a->audited &&
           adapter_takes(ad, SEC_REQUEUE, PARAM_N) &&
           adapter_takes(ad, SEC_REQUEUE, PARAM_ACTION) && adapter_takes(ad, SEC_JOBS, PARAM_IDS) &&
           (a->rows.ids || adapter_has(ad, SEC_REQUEUE_SAMPLE)) && !has_finished(a);
}

struct canary *
canary_new(struct action *whole, int n, int wait_ms)
{
    struct canary *c = xcalloc(1, sizeof *c);

    *c = (struct canary){.loop = whole->loop,
                         .db = whole->db,
                         .adapter = whole->adapter,
                         .serial = whole->serial,
                         .whole = whole,
                         .wanted = n < CANARY_MOST ? n : CANARY_MOST,
                         .wait_ms = wait_ms,
                         .state = CANARY_CHOOSING};
    choose(c);
    return c;
}

/* --- from one state to the next ------------------------------------------------------------------- */

/* Watches the jobs that the requeue has changed. Its guards left the other jobs alone. */
static void
watch(struct canary *c)
{
    c->n = c->few->done.n < CANARY_MOST ? c->few->done.n : CANARY_MOST; /* a server may say more */
    c->jobs = xcalloc((size_t)c->n + 1, sizeof *c->jobs);
    for (int i = 0; i < c->n; i++)
        c->jobs[i] = (struct tried_job){.id = xstrdup(c->few->done.ids[i]),
                                        .queue = xstrdup(""),
                                        .node = xstrdup(""),
                                        .error = xstrdup(""),
                                        .run_ms = FIELD_NULL};
    if (c->n == 0) {
        over_by(c, c->few);
        return;
    }
    c->state = CANARY_WATCHING;
    c->tried_ms = clock_ms();
    c->wall_ms = clock_wall_ms();
    if (c->stopped)
        over_stopped(c);
    else
        look(c);
    touch(c);
}

static void
update_few(struct canary *c)
{
    switch (action_state(c->few)) {
    case ACTION_READY:
        if (c->stopped)
            over(c, false, 3, xstrdup("nothing was changed"));
        else
            action_start(c->few, false);
        break;
    case ACTION_DONE:
        watch(c);
        break;
    case ACTION_STOPPED:
        if (c->few->done.n > 0)
            watch(c);
        else
            over(c, false, 3, xstrdup("nothing was changed"));
        break;
    case ACTION_REFUSED:
    case ACTION_FAILED:
    case ACTION_DOUBTFUL:
        over_by(c, c->few);
        break;
    case ACTION_PREVIEWING:
    case ACTION_RUNNING:
    case ACTION_WAITING:
        break;
    }
}

static void
update_rest(struct canary *c)
{
    enum action_state s = action_state(c->rest);

    if (s == ACTION_PREVIEWING)
        return;
    if (s != ACTION_READY) {
        struct err e = *action_error(c->rest);
        bool too_long = e.kind == ERR_TIMEOUT && ++c->counts >= COUNTS_MOST;
        bool comes_back = e.kind == ERR_CONN || e.kind == ERR_TIMEOUT;
        if (!comes_back || too_long) {
            over_by(c, c->rest);
            return;
        }
        action_free(c->rest);
        c->rest = NULL;
        c->state = CANARY_WATCHING; /* looks again, then counts again */
        lost(c, &e);
        return;
    }
    if (action_count(c->rest) == 0) {
        struct canary_verdict v = canary_verdict(c);
        bool good = v.hope == HOPE_GOOD;
        over_tried(c, !good, good ? 0 : 3,
                   total_of(c) > c->n ? "; nothing is left of the rest: it has moved on meanwhile"
                                      : "");
        return;
    }
    c->state = CANARY_ASKING;
    touch(c);
}

void
canary_update(struct canary *c)
{
    const struct action *a = c->state == CANARY_TRYING                                  ? c->few
                             : c->state == CANARY_COUNTING || c->state == CANARY_ASKING ? c->rest
                                                                                        : NULL;

    if (!a)
        return;
    if (action_generation(a) != c->seen)
        touch(c);
    c->seen = action_generation(a);
    if (c->state == CANARY_TRYING)
        update_few(c);
    else if (c->state == CANARY_COUNTING)
        update_rest(c);
}

void
canary_stop(struct canary *c)
{
    c->stopped = true;
    if (c->state == CANARY_CHOOSING) {
        if (c->looking)
            db_cancel(c->db);
        over(c, false, 3, xstrdup("nothing was changed"));
    } else if (c->state == CANARY_TRYING) {
        action_stop(c->few);
    } else if (c->state != CANARY_OVER) {
        over_stopped(c);
    }
}

void
canary_rest_again(struct canary *c, const struct act_options *o)
{
    struct action *old = c->rest;

    c->rest = action_again(old, o);
    action_free(old);
    c->state = CANARY_COUNTING;
    c->seen = action_generation(c->rest);
    touch(c);
}

struct action *
canary_take_rest(struct canary *c)
{
    struct action *rest = c->rest;

    c->rest = NULL;
    over(c, false, 0, xstrdup(""));
    return rest;
}

/* --- what it is ---------------------------------------------------------------------------------- */

uint64_t
canary_generation(const struct canary *c)
{
    return c->generation;
}

enum canary_state
canary_state(const struct canary *c)
{
    return c->state;
}

const struct action *
canary_whole(const struct canary *c)
{
    return c->whole;
}

const struct action *
canary_first(const struct canary *c)
{
    return c->few;
}

const struct action *
canary_rest(const struct canary *c)
{
    return c->rest;
}

const struct tried_job *
canary_jobs(const struct canary *c, int *n)
{
    *n = c->n;
    return c->jobs;
}

int
canary_wanted(const struct canary *c)
{
    return c->n > 0 ? c->n : c->wanted;
}

int64_t
canary_waited_ms(const struct canary *c)
{
    return c->state == CANARY_WATCHING ? waited_now(c) : c->waited_ms;
}

int64_t
canary_wait_ms(const struct canary *c)
{
    return c->wait_ms;
}

struct canary_verdict
canary_verdict(const struct canary *c)
{
    return canary_judge(c->jobs, c->n);
}

const char *
canary_obstacle(const struct canary *c)
{
    return c->obstacle;
}

const char *
canary_away(const struct canary *c)
{
    return c->state == CANARY_WATCHING ? c->away : NULL;
}

const char *
canary_summary(const struct canary *c)
{
    return c->summary ? c->summary : "";
}

bool
canary_failed(const struct canary *c)
{
    return c->failed;
}

int
canary_exit_code(const struct canary *c)
{
    return c->exit_code;
}
