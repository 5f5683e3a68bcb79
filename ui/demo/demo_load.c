/*
 * The load of the demo, as two internal verbs. `demo-load` pushes jobs at a rate that swings. It
 * also plays the operator who drains a node, and the colleague whose report runs for minutes.
 * `demo-job` is the COMMAND of the workers: a program that takes as long, and fails as often, as
 * the table in demo_jobs.c says for its queue. Both use only functions that any other program can
 * use.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "gen/sql.h"
#include "model/base/clock.h"
#include "model/worker/queue.h"
#include "ui/cli/verbs.h"
#include "ui/demo/demo_jobs.h"

enum {
    TICK_MS = 250,
    PUSH_MAX = 400,   /* jobs in one statement */
    DRAIN_MS = 9000,  /* when worker-3 is asked to drain */
    EXPORT_MS = 5000, /* when the report begins, and the pause before the next one */
    EXPORT_LASTS_MS = 660000,
    SETUP_LASTS_MS = 60000, /* as long as a step of the start may take: the machine may be busy */
    LOOK_MS = 2000,         /* between looks at the backlog */
    SWING_MS = 150000,      /* period of the slowest swing */
    ONE_PERCENT = 100,
};

static const char as_operator[] = "dbname=demo user=ops";
static const char as_report[] = "nightly-report"; /* application_name of that session */

struct load {
    struct cli *c;
    struct queue *queue;
    struct db *operator_, *report;
    const struct demo_kind *first; /* kinds, ended by a NULL name */
    double due[DEMO_KINDS_MAX];    /* jobs of each kind to push, with fractions */
    uint64_t random;
    int64_t start_ms, last_ms, look_ms, report_ms; /* the last two: when they are due */
    double pace; /* factor for the rates: less than 1 while the workers are behind */
    bool busy;   /* a push has not been answered yet */
    bool drained;
    struct buf text; /* payloads of one push, each ended by a NUL */
};

/* --- pushing --- */

/* The factor for a rate, between 0.2 and 1.8; each kind swings with a period of its own. */
static double
swing(const struct load *l, int kind)
{
    double period = SWING_MS / (1.0 + 0.6 * kind);
    double at = (double)(l->last_ms - l->start_ms) / period + 0.37 * kind;
    double phase = at - (double)(int64_t)at;

    return phase < 0.5 ? 0.2 + 3.2 * phase : 3.4 - 3.2 * phase;
}

/* Appends a text with its NUL and returns the offset of its start. */
static size_t
add_text(struct load *l, const char *pattern)
{
    size_t at = l->text.len;

    demo_fill(&l->text, pattern, &l->random);
    buf_add(&l->text, "", 1);
    return at;
}

static void
pushed(void *ctx, const struct err *e, const struct queue_pushed *jobs, int n)
{
    struct load *l = ctx;

    (void)jobs, (void)n;
    l->busy = false;
    if (e->kind != ERR_NONE)
        cli_say(l->c, "push: %s", e->text);
}

/* Adds one job. Its texts are offsets until the buffer has its final size. */
struct draft {
    struct queue_push push;
    size_t payload, unique;
};

static void
draft_job(struct load *l, const struct demo_kind *k, struct draft *d)
{
    int percent = demo_roll(&l->random, ONE_PERCENT);

    *d = (struct draft){
        .push = {.queue = k->queue,
                 .kind = k->kind,
                 .type = k->type,
                 .priority = percent < k->urgent_percent ? 1 : -1,
                 .max_tries = k->max_tries}
    };
    queue_make_id(d->push.id);
    if (demo_roll(&l->random, ONE_PERCENT) < k->later_percent)
        d->push.delay_ms = (int64_t)1000 * (30 + demo_roll(&l->random, 1800));
    d->payload = add_text(l, k->payload);
    d->push.payload_len = l->text.len - d->payload - 1;
    if (k->unique)
        d->unique = add_text(l, k->unique);
}

static void
push_drafts(struct load *l, struct draft *drafts, int n)
{
    struct queue_push jobs[PUSH_MAX];

    for (int i = 0; i < n; i++) {
        jobs[i] = drafts[i].push;
        jobs[i].payload = l->text.data + drafts[i].payload;
        jobs[i].unique_key = drafts[i].unique ? l->text.data + drafts[i].unique : NULL;
    }
    l->busy = n > 0;
    if (n > 0)
        queue_push(l->queue, jobs, n, pushed, l);
}

/* Pushes the jobs that are due. While the server does not answer, they stay due, at most as many as
 * one push holds. */
static void
push_due(struct load *l)
{
    struct draft drafts[PUSH_MAX];
    int n = 0;

    buf_clear(&l->text);
    buf_add(&l->text, "", 1); /* so that offset 0 is no text */
    for (int i = 0; l->first[i].queue; i++)
        for (; l->due[i] >= 1 && n < PUSH_MAX; l->due[i] -= 1)
            draft_job(l, &l->first[i], &drafts[n++]);
    push_drafts(l, drafts, n);
}

/* --- the operator --- */

static struct db_call
console_call(struct db_stmt *stmt, const char *name, bool bare)
{
    *stmt = (struct db_stmt){0};
    for (int i = 0; i < sql_console_n; i++)
        if (strcmp(sql_console[i].name, name) == 0)
            stmt->sql = sql_console[i].text;
    return (struct db_call){.stmts = stmt, .n = 1, .bare = bare};
}

/* Opens another connection to the demo's server, beside that of the command line. */
static struct db *
other_db(struct cli *c, const char *names, const char *app_name, bool once)
{
    char conninfo[160];
    struct db_options o;

    snprintf(conninfo, sizeof conninfo, "host=%s %s", c->words[1], names);
    cli_db_options(c, &o);
    o.conninfo = conninfo;
    o.once = once;
    if (app_name)
        o.app_name = app_name;
    return db_new(c->loop, &o);
}

/* Runs one statement and closes the connection. */
static bool
say_once(struct cli *c, struct db *db, const char *name, bool bare, struct err *e)
{
    struct db_stmt stmt;
    struct db_call call = console_call(&stmt, name, bare);
    struct db_reply reply = {0};

    call.statement_timeout_ms = SETUP_LASTS_MS;
    bool ok = db_do(db, c->loop, &call, &reply, e);

    db_reply_done(&reply);
    db_free(db);
    return ok;
}

static int
create_database(struct cli *c)
{
    struct err e = {0};
    struct db *db = other_db(c, "dbname=postgres user=postgres", NULL, true);

    return say_once(c, db, "demo_database", true, &e) ? CLI_DONE : cli_fail(c, &e);
}

/* The owner makes roles and settings; the operator pauses a queue. */
static int
set_up(struct cli *c)
{
    struct err e = {0};
    struct db *owner = other_db(c, "dbname=demo user=postgres", NULL, true);

    if (!say_once(c, owner, "demo_setup", false, &e) ||
        !say_once(c, other_db(c, as_operator, NULL, true), "demo_pause", false, &e))
        return cli_fail(c, &e);
    return CLI_DONE;
}

static void
drained(void *ctx, struct db_reply *reply)
{
    struct load *l = ctx;

    if (reply->err.kind != ERR_NONE)
        cli_say(l->c, "drain: %s", reply->err.text);
}

static void
drain_node(struct load *l)
{
    struct db_stmt stmt;
    struct db_call call = console_call(&stmt, "demo_drain", false);

    l->drained = true;
    db_ask(l->operator_, &call, -1, drained, l);
}

/* Adapts the load to the machine: jobs that the workers can't do in time are not pushed. */
static void
looked(void *ctx, struct db_reply *reply)
{
    struct load *l = ctx;
    struct result *r = reply->err.kind == ERR_NONE ? db_take(reply, 0) : NULL;

    if (r)
        l->pace = demo_pace(l->pace, result_int(r, 0, 0, 0));
    result_free(r);
    l->look_ms = clock_ms() + LOOK_MS;
}

static void
ask_backlog(struct load *l)
{
    struct db_stmt stmt;
    struct db_call call = console_call(&stmt, "demo_backlog", false);

    l->look_ms = INT64_MAX;
    db_ask(l->operator_, &call, -1, looked, l);
}

/* Somebody may have ended the report: then it begins again later. */
static void
reported(void *ctx, struct db_reply *reply)
{
    struct load *l = ctx;

    (void)reply;
    l->report_ms = clock_ms() + EXPORT_MS;
}

static void
ask_export(struct load *l)
{
    struct db_stmt stmt;
    struct db_call call = console_call(&stmt, "demo_export", false);

    call.statement_timeout_ms = EXPORT_LASTS_MS;
    l->report_ms = INT64_MAX;
    db_ask(l->report, &call, -1, reported, l);
}

/* --- the loop --- */

static void
tick(void *ctx)
{
    struct load *l = ctx;
    int64_t now = clock_ms();
    double seconds = (double)(now - l->last_ms) / 1000;

    l->last_ms = now;
    for (int i = 0; l->first[i].queue; i++)
        if (l->due[i] < PUSH_MAX)
            l->due[i] += l->first[i].per_second * seconds * swing(l, i) * l->pace;
    if (!l->busy)
        push_due(l);
    if (!l->drained && now - l->start_ms > DRAIN_MS)
        drain_node(l);
    if (now >= l->look_ms)
        ask_backlog(l);
    if (now >= l->report_ms)
        ask_export(l);
    loop_at(l->c->loop, now + TICK_MS, tick, l);
}

static int
load_run(struct cli *c, const void *options)
{
    struct load l = {.c = c, .first = demo_kinds, .random = (uint64_t)clock_us() | 1};
    struct err e = {0};

    (void)options;
    if (strcmp(c->words[0], "create") == 0)
        return create_database(c);
    if (strcmp(c->words[0], "setup") == 0)
        return set_up(c);
    l.start_ms = l.last_ms = clock_ms();
    l.look_ms = l.start_ms + LOOK_MS;
    l.report_ms = l.start_ms + EXPORT_MS;
    l.pace = 1;
    l.queue = queue_new(cli_db(c, false), c->schema, &e);
    if (!l.queue)
        return cli_fail(c, &e);
    l.operator_ = other_db(c, as_operator, NULL, false);
    l.report = other_db(c, as_operator, as_report, false);
    for (int i = 0; l.first[i].queue; i++)
        l.due[i] = l.first[i].backlog;
    tick(&l);
    bool ok = loop_run(c->loop, &e);
    queue_free(l.queue);
    db_free(l.operator_);
    db_free(l.report);
    buf_free(&l.text);
    return ok ? CLI_DONE : cli_fail(c, &e);
}

/* --- the job --- */

static const char *
env(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

/* Sleeps for the time of the job; a signal ends the program as usual. */
static bool
work_for(struct loop *loop, int64_t ms)
{
    static const bool never = false;
    struct err e;

    return loop_until(loop, &never, clock_ms() + ms, &e);
}

static int
job_run(struct cli *c, const void *options)
{
    struct demo_try t = {.queue = env("QUEUETOP_QUEUE"), .id = env("QUEUETOP_JOB_ID")};
    const char *how = c->nwords ? c->words[0] : "";

    (void)options;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the worker has ended, so the job ends */
    t.number = (int)strtol(env("QUEUETOP_TRY"), NULL, 10);
    t.wall_ms = clock_wall_ms();
    demo_decide(&t);
    if (strcmp(how, "crash") == 0) { /* as the kernel does when memory is exhausted */
        work_for(c->loop, DEMO_CRASH_MS);
        kill(getppid(), SIGKILL);
        return EXIT_FAILURE;
    }
    work_for(c->loop, strcmp(how, "slow") == 0 ? DEMO_SLOW_MS : t.run_ms);
    if (!t.error) {
        printf("{\"ok\": true, \"ms\": %d}\n", t.run_ms);
        return CLI_DONE;
    }
    struct buf text = {0};
    demo_fill(&text, t.error, &t.random);
    fprintf(stderr, "%s\n", text.data);
    buf_free(&text);
    return EXIT_FAILURE;
}

/* Without a help text the verbs are in no list, because they are of no use to users. */
const struct cli_verb verbs_demo[] = {
    {.name = "demo-load",
     .words = "create|setup|run DIR",
     .min_words = 2,
     .max_words = 2,
     .run = load_run},
    {.name = "demo-job",      .words = "[slow|crash]", .max_words = 1, .run = job_run},
    {0    },
};
