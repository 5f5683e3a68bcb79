/*
 * The verbs that run a queue: schedule, work. The model does the work; this file has the options.
 * (push: ui/write/cli_push.c, install: ui/setup/cli_install.c)
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/worker/scheduler.h"
#include "model/worker/worker.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/verbs.h"

enum {
    RESULT_BYTES = 65536,
    ERROR_BYTES = 8192,
    GRACE_MS = 10000,
    SLEEP_LEAST_MS = 1000,            /* the least that node_sleep() accepts */
    SCHEDULER_SLEEP_LEAST_MS = 20000, /* scheduler_sleep() never sleeps for less than 11 s */
    SLEEP_MOST_MS = 86400000
};

/* --- schedule --- */

struct schedule_words {
    const char *name;
    int64_t sleep_ms;
};

/* Connection options for the scheduler. It checks the counters of long queues, so the server may be
 * silent for seconds. */
static struct db *
books_db(struct cli *c)
{
    struct db_options o;

    cli_db_options(c, &o);
    o.app_name = "queuetop books";
    o.stall_warn_ms = SCHEDULER_STALL_MS;
    o.stall_drop_ms = SCHEDULER_STALL_MS + 5000;
    o.unattended = true; /* first opened when this scheduler takes over: it must not give up then */
    return db_new(c->loop, &o);
}

/* Rejects --read-only, because the verbs would retry for ever. */
static bool
may_write(const struct cli *c, struct err *e)
{
    return !c->read_only || fail(e, ERR_DENIED, "--read-only: nothing is changed");
}

static int
fail_on(struct cli *c, const struct err *e)
{
    int code = cli_fail(c, e);

    if (cli_lacks_queue(e))
        cli_say_likely(c);
    return code;
}

static int
schedule_verb(struct cli *c, const void *options)
{
    const struct schedule_words *w = options;
    struct err e = {0};
    struct scheduler *s;
    bool ok;

    log_min_level(LOG_INFO);
    if (!may_write(c, &e) ||
        !(s = scheduler_new(c->loop, cli_db(c, false), books_db(c), c->schema, w->name, &e)))
        return cli_fail(c, &e);
    scheduler_may_sleep(s, w->sleep_ms);
    ok = scheduler_run(s, &e);
    int code = ok ? CLI_DONE : fail_on(c, &e);
    db_free(c->db);
    c->db = NULL;
    scheduler_free(s);
    return code;
}

/* name, letter, value, kind, offset, help, min, max */
/* clang-format off */
static const struct cli_option schedule_table[] = {
    {"name", 0, "NAME", CLI_TEXT, offsetof(struct schedule_words, name), "name of this process (default: host-pid-random)", 0, 0},
    {"sleep", 0, "T", CLI_TIME, offsetof(struct schedule_words, sleep_ms), "if nothing is due, send nothing to the server until something is; for T at most", SCHEDULER_SLEEP_LEAST_MS, SLEEP_MOST_MS},
    {0},
};
/* clang-format on */

/* --- work --- */

struct work_words {
    struct cli_list queues;
    const char *node;
    int jobs, result_limit;
    int64_t timeout_ms, max_idle_ms, grace_ms, sleep_ms;
    bool may_leave, drain, poll;
};

/* Opens descriptors 0 to 2 if they are closed: otherwise the pipes of a command could get these
 * numbers. */
static void
fill_standard_fds(void)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO)
        close(fd);
}

static void
say_counts(const struct worker *w)
{
    const struct worker_counts *n = worker_counts(w);

    if (n->started == 0 && n->given_back == 0)
        return;
    log_line(LOG_INFO,
             "node %s ends: %" PRId64 " started, %" PRId64 " done, %" PRId64 " failed, %" PRId64
             " timed out, %" PRId64 " cancelled, %" PRId64 " given back, %" PRId64 " lost",
             worker_node(w), n->started, n->done, n->failed, n->timed_out, n->cancelled,
             n->given_back, n->lost);
}

static int
work_verb(struct cli *c, const void *options)
{
    const struct work_words *words = options;
    struct err e = {0};
    struct worker_options o = {.schema = c->schema,
                               .node = words->node,
                               .queues = words->queues.items,
                               .nqueues = words->queues.n,
                               .argv = c->words,
                               .jobs = words->jobs,
                               .timeout_ms = words->timeout_ms,
                               .max_idle_ms = words->max_idle_ms,
                               .grace_ms = words->grace_ms,
                               .may_leave = words->may_leave,
                               .drain = words->drain,
                               .poll = words->poll,
                               .sleep_ms = words->sleep_ms,
                               .result_limit = (size_t)words->result_limit,
                               .error_limit = ERROR_BYTES};
    struct worker *w;
    int code;

    log_min_level(LOG_INFO);
    fill_standard_fds();
    if (words->sleep_ms > 0 && (words->poll || words->drain)) {
        fail(&e, ERR_USAGE, "--sleep waits for notifications: not with --poll or --drain");
        return cli_fail(c, &e);
    }
    if (!may_write(c, &e) || !(w = worker_new(c->loop, cli_db(c, false), &o, &e)))
        return cli_fail(c, &e);
    bool ok = worker_run(w, &e);
    code = !ok ? fail_on(c, &e) : worker_is_clean(w) ? CLI_DONE : CLI_PART;
    say_counts(w);
    db_free(c->db);
    c->db = NULL;
    worker_free(w);
    return code;
}

#define F(field) offsetof(struct work_words, field)
/* name, letter, value, kind, offset, help, min, max */
/* clang-format off */
static const struct cli_option work_table[] = {
    {"queues", 'q', "A,B", CLI_LIST, F(queues), "work these queues only", 0, 0},
    {"node", 0, "NAME", CLI_TEXT, F(node), "name of this process (default: host-pid-random)", 0, 0},
    {"jobs", 'j', "N", CLI_INT, F(jobs), "commands at a time (default 1)", 1, 1000},
    {"slots", 0, "N", CLI_INT, F(jobs), "the same: the console calls them slots", 1, 1000},
    {"timeout", 't', "T", CLI_TIME, F(timeout_ms), "lease: how long this process may be silent (60s)", 100, INT64_MAX},
    {"drain", 0, NULL, CLI_FLAG, F(drain), "end when no job is ready", 0, 0},
    {"poll", 0, NULL, CLI_FLAG, F(poll), "never wait for a NOTIFY: ask ten times a second (the default behind a transaction pooler)", 0, 0},
    {"sleep", 0, "T", CLI_TIME, F(sleep_ms), "if nothing is due, send nothing to the server until something is; for T at most", SLEEP_LEAST_MS, SLEEP_MOST_MS},
    {"max-idle", 0, "T", CLI_TIME, F(max_idle_ms), "end after that long without a job", 1, INT64_MAX},
    {"result-limit", 0, "BYTES", CLI_INT, F(result_limit), "how much of standard output is kept as the result (default 65536)", 0, 1 << 30},
    {"grace", 0, "T", CLI_TIME, F(grace_ms), "from SIGTERM to SIGKILL of a command (default 10s)", 0, INT64_MAX},
    {"allow-background", 0, NULL, CLI_FLAG, F(may_leave), "what a command leaves running lives on after its job (default: it is ended)", 0, 0},
    {0},
};
/* clang-format on */
#undef F

static const struct work_words work_defaults = {
    .jobs = 1, .result_limit = RESULT_BYTES, .grace_ms = GRACE_MS};

/* --- the table --- */

const struct cli_verb verbs_work[] = {
    {
     .name = "schedule",
     .examples = {"schedule -d app", "schedule -d app --log /var/log/queuetop.log"},
     .words = "",
     .help = "Run the scheduler; of several, one is active and the others stand by",
     .options = schedule_table,
     .size = sizeof(struct schedule_words),
     .run = schedule_verb,
     },
    {
     .name = "work",
     .examples = {"work -d app -q mails -- ./send-mail",
                     "work -d app -q mails,reports --jobs 4 -- python3 job.py"},
     .words = "-- COMMAND ARG...",
     .help = "Run COMMAND once a job: payload on its standard input, exit 0 completes the job",
     .min_words = 1,
     .max_words = -1,
     .options = work_table,
     .size = sizeof(struct work_words),
     .defaults = &work_defaults,
     .run = work_verb,
     .more =
            "COMMAND finds QUEUETOP_JOB_ID, _QUEUE, _KIND, _TRY, _MAX_TRIES, _NODE and _TYPE in "
            "its "
            "environment. JSON\non its standard input ends with a newline. Its standard output "
            "is the result; anything but exit 0 fails\nthe job, with the end of its standard "
            "error as the error. Exit 65: failed for good, no more tries.\nExit 75: tried again "
            "in the time that is the last line of its standard output (`echo 10m; exit 75`),\nif "
            "tries are left. The lease is extended while it runs, and a lost one kills it. "
            "SIGTERM ends after\nwhat runs is finished; a second one, 0.3 s later or more, "
            "kills, and gives the jobs back. A worker that is\nkilled itself (SIGKILL) takes "
            "its commands and their children along; a process that calls setsid\nescapes that.", .after_dashes = true,
     },
    {0},
};
