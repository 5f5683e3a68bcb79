/*
 * Waits for a job: reads its state again and again, with growing pauses. LISTEN is not used,
 * because only workers get notifications about jobs, and because a session that listens holds back
 * the server's queue of notifications. Whoever pushed a job asks job_outcome(), which takes no more
 * than the right to push; otherwise the adapter's sections are asked, as for any other system.
 */
#include "ui/cli/cli_wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "ui/cli/cli_table.h"

enum { FIRST_MS = 50, LONGEST_MS = 2000 };

struct wait {
    struct cli_queue *q;
    const char *id;
    int64_t until_ms; /* monotonic; 0 = for ever */
    int64_t pause_ms;
    bool is_open, was_there, is_told;
    bool knows_history; /* the answer has come */
    int keeps;          /* the queue keeps finished jobs: 1, 0, -1 = can't tell */
    char state[40];
    char *queue; /* the job's queue; NULL = not known yet */
    char *sql;   /* the call of job_outcome(); NULL = by the adapter */
    char *said;  /* by it: result or error */
};

/* Asks job_outcome(). */
static bool
ask_outcome(struct wait *w, struct err *e)
{
    struct db_param id = {.value = w->id};
    struct db_stmt stmt = {.sql = w->sql, .nparams = 1, .params = &id};
    struct db_call call = {.stmts = &stmt, .n = 1, .bare = true};
    struct cli *c = w->q->cli;
    struct db_reply reply;

    bool ok = db_do(cli_db(c, true), c->loop, &call, &reply, e);
    if (ok) {
        const struct result *r = reply.results[0];
        bool is_there = result_rows(r) > 0;
        snprintf(w->state, sizeof w->state, "%s", is_there ? result_text(r, 0, 0) : "");
        free(w->said);
        w->said = xstrdup(is_there ? result_text(r, 0, 1) : "");
        if (is_there)
            w->keeps = strcmp(result_text(r, 0, 2), "none") != 0;
    }
    db_reply_done(&reply);
    return ok;
}

static bool
open_source(const struct wait *w, struct err *e)
{
    return w->sql || cli_open(w->q->cli, false, w->q, e);
}

static void
close_source(const struct wait *w)
{
    struct cli *c = w->q->cli;

    if (!w->sql)
        cli_close(w->q);
    else if (c->db) {
        db_free(c->db);
        c->db = NULL;
    }
}

static bool
has_ended(const char *state)
{
    return !strcmp(state, "completed") || !strcmp(state, "failed") || !strcmp(state, "cancelled");
}

/* Both records begin with a job_row. */
static bool
ask_state(struct wait *w, enum section_id section, struct err *e)
{
    struct params p = {0};
    struct rowset rows = {0};

    params_set_list(&p, PARAM_IDS, &w->id, 1);
    params_set_int(&p, PARAM_LIMIT, 1);
    bool ok = cli_ask(w->q, &section, 1, &p, &rows, e);
    const struct job_row *j = ok && rows.n > 0 ? rows.rows : NULL;
    if (ok)
        snprintf(w->state, sizeof w->state, "%s", j && *j->id ? j->state : "");
    if (ok && *w->state && !w->queue)
        w->queue = xstrdup(j->queue);
    rowset_free(&rows);
    params_done(&p);
    return ok;
}

/* Reads the state; "" = there is no such job. A list reads no payload, but some systems list no
 * finished jobs. */
static bool
read_state(struct wait *w, struct err *e)
{
    if (w->sql)
        return ask_outcome(w, e);
    bool has_list = adapter_takes(w->q->adapter, SEC_JOBS, PARAM_IDS);

    if (has_list && (!ask_state(w, SEC_JOBS, e) || *w->state))
        return e->kind == ERR_NONE;
    return ask_state(w, SEC_JOB, e);
}

/* Our own queue: the setting of the job's queue. */
static int
own_keeps(const struct rowset *settings)
{
    const struct setting_row *s = settings->rows;

    for (int i = 0; i < settings->n; i++)
        if (!strcmp(s[i].setting, "history") && !strcmp(s[i].value, "none"))
            return 0;
    return 1;
}

/* Another system: what its adapter says of the queue. Several systems delete completed jobs or keep
 * them as the application wants: their adapters can't tell. */
static int
said_to_keep(const struct rowset *queues, const char *queue)
{
    const struct queue_row *q = queues->rows;

    for (int i = 0; i < queues->n; i++)
        if (!strcmp(q[i].queue, queue))
            return q[i].keeps;
    return -1;
}

static bool
has_settings(const struct wait *w)
{
    return w->sql || adapter_has(w->q->adapter, SEC_QUEUE_SETTINGS);
}

/* The wait needs no list of queues: another system may refuse it to this login, or need too long
 * for it. Then it is not known whether the queue keeps finished jobs. But a lock (55P03) is over at
 * some time. */
static bool
can_do_without(const struct wait *w, struct err *e)
{
    if (has_settings(w) || e->kind == ERR_CONN || !strcmp(e->sqlstate, "55P03"))
        return false;
    *e = (struct err){.kind = ERR_NONE};
    return true;
}

static bool
read_history(struct wait *w, struct err *e)
{
    enum section_id section = has_settings(w) ? SEC_QUEUE_SETTINGS : SEC_QUEUES;
    struct params p = {0};
    struct rowset rows = {0};

    params_set(&p, PARAM_QUEUE, w->queue);
    bool ok = cli_ask(w->q, &section, 1, &p, &rows, e);
    w->keeps = !ok ? -1 : has_settings(w) ? own_keeps(&rows) : said_to_keep(&rows, w->queue);
    ok = ok || can_do_without(w, e);
    rowset_free(&rows);
    params_done(&p);
    return ok;
}

/* Finds out once whether the job's queue keeps finished jobs. If it keeps none, the user learns
 * before the wait that the outcome can't be known. */
static bool
ask_history(struct wait *w, struct err *e)
{
    if (w->knows_history || !w->queue)
        return true;
    w->knows_history = w->sql || read_history(w, e);
    if (w->keeps == 0)
        cli_say(
            w->q->cli,
            "queue \"%s\" keeps no history: if the job does not fail, nothing is kept of how it "
            "ends",
            w->queue);
    return w->knows_history;
}

/* Looks once. False: the error is not a temporary one. */
static bool
look(struct wait *w, struct err *e)
{
    *e = (struct err){.kind = ERR_NONE};
    if (!w->is_open)
        w->is_open = open_source(w, e);
    if (w->is_open && read_state(w, e) && ask_history(w, e)) {
        w->is_told = false;
        return true;
    }
    if (w->is_open)
        close_source(w);
    w->is_open = false;
    if (e->kind != ERR_CONN && e->kind != ERR_TIMEOUT)
        return false;
    if (!w->is_told)
        cli_say(w->q->cli, "%s; trying again", e->text);
    w->is_told = true;
    return true;
}

static bool
sleep_a_while(struct wait *w, struct err *e)
{
    const bool never = false;
    int64_t at = clock_ms() + w->pause_ms;

    w->pause_ms += w->pause_ms / 2;
    if (w->pause_ms > LONGEST_MS)
        w->pause_ms = LONGEST_MS;
    if (w->until_ms && at > w->until_ms)
        at = w->until_ms;
    *e = (struct err){.kind = ERR_NONE};
    return loop_until(w->q->cli->loop, &never, at, e) || e->kind == ERR_NONE ||
           e->kind == ERR_TIMEOUT;
}

static int
say_time_over(const struct wait *w)
{
    if (!w->is_open)
        cli_say(w->q->cli, "the time is over, and the server can't be asked");
    else
        cli_say(w->q->cli, "the time is over, the job is %s", w->state);
    return CLI_TIME_OVER;
}

/* The job was there and is gone, and its queue may keep no finished jobs. Another system may delete
 * failed jobs, too. */
static int
say_unknown(const struct wait *w)
{
    if (has_settings(w))
        cli_say(w->q->cli, "the job has ended and has not failed: it was completed, cancelled or "
                           "deleted, and nothing was kept of it");
    else if (w->keeps == 0)
        cli_say(w->q->cli,
                "the job has ended: it was completed or deleted, and nothing was kept of it");
    else
        cli_say(w->q->cli, "the job is not there any more: it was deleted, or it was completed, if "
                           "completed jobs are deleted here");
    return CLI_UNKNOWN;
}

static int
judge(const struct wait *w)
{
    if (*w->state)
        return strcmp(w->state, "completed") ? CLI_FAILED : CLI_DONE;
    if (w->was_there && w->keeps != 1)
        return say_unknown(w);
    if (w->was_there)
        cli_say(w->q->cli, "the job is not there any more: it was deleted");
    else
        cli_say(w->q->cli, "there is no job %s", w->id);
    return CLI_NOTHING;
}

/* Looks until the wait has ended; false: *e is the error. */
static bool
wait_for_end(struct wait *w, int *code, struct err *e)
{
    for (;;) {
        if (!look(w, e))
            return false;
        if (w->is_open && (!*w->state || has_ended(w->state))) {
            *code = judge(w);
            return true;
        }
        w->was_there |= w->is_open;
        if (w->until_ms && clock_ms() >= w->until_ms) {
            *code = say_time_over(w);
            return w->is_open || fail(e, ERR_CONN, "no server");
        }
        if (!sleep_a_while(w, e))
            return false;
    }
}

bool
cli_wait(struct cli_queue *q, const char *id, const char *queue, int64_t wait_ms, int *code,
         struct err *e)
{
    struct wait w = {.q = q,
                     .id = id,
                     .pause_ms = FIRST_MS,
                     .is_open = q->adapter != NULL,
                     .was_there = queue != NULL,
                     .keeps = 1,
                     .queue = queue ? xstrdup(queue) : NULL};

    if (wait_ms != CLI_NO_TIME)
        w.until_ms = clock_ms() + wait_ms;
    bool ok = wait_for_end(&w, code, e);
    free(w.queue);
    return ok;
}

static void
print_text(const char *s)
{
    for (const char *end; *s; s = end + (*end == '\n')) {
        end = s + strcspn(s, "\n");
        cli_table_line(s, (size_t)(end - s));
    }
}

static bool
outcome_sql(const struct cli *c, char **sql, struct err *e)
{
    return queue_client_sql("job_outcome", c->schema, sql, e);
}

bool
cli_wait_may(struct cli *c, const char *id, struct err *e)
{
    struct wait w = {.q = &(struct cli_queue){.cli = c}, .id = id};
    bool ok = outcome_sql(c, &w.sql, e) && ask_outcome(&w, e);

    free(w.sql);
    free(w.said);
    return ok || fail_in(e, "not pushed, because how the job ends could not be asked");
}

int
cli_wait_outcome(struct cli *c, const char *id, const char *queue, int64_t wait_ms)
{
    struct wait w = {.q = &(struct cli_queue){.cli = c},
                     .id = id,
                     .pause_ms = FIRST_MS,
                     .was_there = true,
                     .keeps = -1,
                     .queue = xstrdup(queue)};
    struct err e = {0};
    int code = CLI_DONE;

    if (wait_ms != CLI_NO_TIME)
        w.until_ms = clock_ms() + wait_ms;
    bool ok = outcome_sql(c, &w.sql, &e) && wait_for_end(&w, &code, &e);
    if (ok && (code == CLI_DONE || code == CLI_FAILED)) {
        print_text(w.state);
        print_text(w.said);
    }
    free(w.queue);
    free(w.sql);
    free(w.said);
    int failed = cli_flush(c);
    if (!ok && code != CLI_TIME_OVER) {
        cli_fail(c, &e);
        cli_say(c, "the job is pushed; how it ends is not known: queuetop job %s --wait", id);
        return CLI_PART;
    }
    return code == CLI_TIME_OVER || failed == CLI_DONE ? code : failed;
}
