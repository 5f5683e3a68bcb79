/*
 * The process of the demo that the user started. It makes the private directory, forks the keeper
 * (demo_keep.c), which starts everything, and runs the console on it. Without a terminal it waits
 * and prints the queues. At the end it only has to close the pipe and to wait for the keeper. The
 * keeper calls an inner verb of this file to run a step of sql/console/demo.sql.
 */
#include "ui/demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "model/base/mem.h"
#include "ui/cli/verbs.h"

enum { SECONDS_MAX = 1000000, REMOVE_MS = 8000, KILL_MS = 3000, LOOK_MS = 20 };

extern char **environ;

struct demo {
    struct demo_place place;
    struct loop *loop;
    pid_t keeper;
    int life, ready; /* our ends of the two pipes */
    int watch;
    struct demo_report report;
    size_t got;   /* bytes of the report */
    bool is_over; /* the keeper is gone or going */
    bool timed_out;
    bool has_terminal;
    int signo;   /* the signal that ended us, 0 = none */
    int seconds; /* 0 = no limit */
};

static bool
read_seconds(const struct cli *c, int *seconds, struct err *e)
{
    char *end = NULL;

    *seconds = 0;
    if (c->nwords == 0)
        return true;
    long n = strtol(c->words[0], &end, 10);
    if (c->nwords > 1 || *end || n < 1 || n > SECONDS_MAX)
        return fail(e, ERR_USAGE, "--demo takes a number of seconds from 1 to %d", SECONDS_MAX);
    *seconds = (int)n;
    return true;
}

/* Removes libpq's variables from the environment, because they are about other servers. */
static void
forget_environment(void)
{
    for (int i = 0; environ[i];) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(environ[i], "="), environ[i]);
        if (strncmp(name, "PG", 2) != 0 || unsetenv(name) != 0)
            i++;
    }
}

/* Reads the keeper's report. It comes in one piece; then nothing comes until the keeper ends. */
static void
hear_keeper(void *ctx, short revents)
{
    struct demo *d = ctx;
    char *at = (char *)&d->report;

    (void)revents;
    ssize_t n = read(d->ready, at + d->got, sizeof d->report - d->got);
    if (n > 0)
        d->got += (size_t)n;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) { /* n == 0 leaves errno alone */
        d->is_over = true;
        loop_rewatch(d->loop, d->watch, -1, 0);
    }
}

static bool
fork_keeper(struct demo *d, struct err *e)
{
    int life[2], ready[2];

    if (pipe2(life, O_CLOEXEC) != 0)
        return fail(e, ERR_SYS, "pipe: %s", strerror(errno));
    if (pipe2(ready, O_CLOEXEC) != 0) {
        close(life[0]);
        close(life[1]);
        return fail(e, ERR_SYS, "pipe: %s", strerror(errno));
    }
    fflush(NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans of a killed keeper become our children */
    d->keeper = fork();
    if (d->keeper == 0) {
        close(life[1]);
        close(ready[0]);
        demo_keep(&d->place, life[0], ready[1]);
    }
    close(life[0]);
    close(ready[1]);
    d->life = life[1];
    d->ready = ready[0];
    return d->keeper > 0 || fail(e, ERR_SYS, "fork: %s", strerror(errno));
}

static void
take_signal(void *ctx, int signo)
{
    struct demo *d = ctx;

    d->signo = signo;
}

static bool
wait_for_report(struct demo *d, struct err *e)
{
    while (d->got < sizeof d->report && !d->is_over && !d->signo)
        if (!loop_turn(d->loop, -1, e))
            return false;
    if (d->signo)
        return fail(e, ERR_SYS, "stopped by a signal");
    if (d->got < sizeof d->report)
        return fail(e, ERR_SYS, "the process that starts the server was killed");
    *e = d->report.err;
    return d->report.ok;
}

static bool
start_keeper(struct demo *d, struct err *e)
{
    if (!demo_find_server(&d->place, e) || !demo_make_dir(&d->place, e))
        return false;
    fprintf(stderr, "queuetop: starting a private PostgreSQL\n  programs: %s\n  data: %s\n",
            d->place.bin, d->place.dir);
    if (!fork_keeper(d, e)) {
        demo_remove_dir(&d->place);
        return false;
    }
    return true;
}

/* Removes the directory once no process is left. If the keeper was killed, its children are ours
 * now, and the kernel has told them to end. A child that does not end is killed. */
static bool
clean_up(struct demo *d)
{
    static const bool never = false;
    int64_t start = clock_ms(), now = start;
    struct err e;
    pid_t pid;

    for (; now < start + REMOVE_MS; now = clock_ms()) {
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            continue;
        if (pid < 0 && demo_remove_dir(&d->place))
            return true;
        if (now > start + KILL_MS)
            demo_kill_children(0);
        if (!loop_until(d->loop, &never, now + LOOK_MS, &e))
            continue;
    }
    return false;
}

static bool
stop_keeper(struct demo *d)
{
    close(d->life);
    while (waitpid(d->keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(d->ready);
    return clean_up(d);
}

static void
time_is_up(void *ctx)
{
    struct demo *d = ctx;

    d->timed_out = true;
    if (d->has_terminal)
        raise(SIGTERM); /* SIGTERM ends the console as usual */
}

/* Runs `queuetop queues` as another process, because this process must not have a second thread and
 * its loop is busy. */
static int
print_queues(const struct cli *c, const struct demo *d)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        loop_child_signals(d->loop);
        execl("/proc/self/exe", "queuetop", "queues", "--schema", c->schema, d->place.conninfo,
              (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : CLI_SERVER;
}

static int
run_without_terminal(const struct cli *c, struct demo *d)
{
    struct err e;

    loop_at(d->loop, clock_ms() + (int64_t)d->seconds * 1000, time_is_up, d);
    while (!d->timed_out && !d->signo && !d->is_over)
        if (!loop_turn(d->loop, -1, &e))
            return cli_fail(c, &e);
    if (d->is_over) {
        cli_say(c, "the demo's server or its keeper was killed");
        return CLI_NO_SERVER;
    }
    return d->timed_out ? print_queues(c, d) : 128 + d->signo;
}

static int
run_console(struct cli *c, struct demo *d, int (*console)(struct cli *c, const void *options),
            const void *options)
{
    if (d->seconds)
        loop_at(d->loop, clock_ms() + (int64_t)d->seconds * 1000, time_is_up, d);
    c->nwords = 0;
    int code = console(c, options);
    return d->timed_out ? CLI_DONE : code;
}

static int
run_demo(struct cli *c, struct demo *d, int (*console)(struct cli *c, const void *options),
         const void *options)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct err e = {0};

    d->watch = loop_watch(d->loop, d->ready, POLLIN, hear_keeper, d);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        loop_on_signal(d->loop, signals[i], take_signal, d);
    if (!wait_for_report(d, &e)) {
        if (!d->signo)
            cli_say(c, "%s", e.text);
        return d->signo ? 128 + d->signo : CLI_NO_SERVER;
    }
    c->conninfo = d->place.conninfo;
    int code = d->has_terminal ? run_console(c, d, console, options) : run_without_terminal(c, d);
    loop_unwatch(d->loop, d->watch);
    return code;
}

int
demo_run(struct cli *c, int (*console)(struct cli *c, const void *options), const void *options)
{
    struct demo *d = arena_alloc(c->mem, sizeof *d); /* c->conninfo will point into this buffer */
    struct err e = {0};

    d->loop = c->loop;
    d->place.schema = c->schema;
    if (c->conninfo || c->dbname)
        return cli_usage(c, "--demo has a server of its own: no connection string, no -d");
    if (!read_seconds(c, &d->seconds, &e))
        return cli_usage(c, "%s", e.text);
    d->has_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!d->seconds && !d->has_terminal)
        return cli_usage(c, "--demo needs a terminal, or a number of SECONDS to run without one");
    forget_environment();
    if (!start_keeper(d, &e)) {
        cli_say(c, "%s", e.text);
        return CLI_NO_SERVER;
    }
    int code = run_demo(c, d, console, options);
    if (c->db) {
        db_free(c->db);
        c->db = NULL;
    }
    if (!stop_keeper(d))
        cli_say(c, "%s could not be removed", d->place.dir);
    return code;
}

/* --- a step of sql/console/demo.sql --- */

static const struct step {
    const char *name;
    const char *app_name; /* of its session; NULL = as usual */
    int every_ms;         /* again so long after its answer; 0 = once */
    int lasts_ms;         /* as long as it may take: the machine may be busy */
    bool bare, script;
} steps[] = {
    {"create", NULL,             0,    60000,  true,  false},
    {"scene",  NULL,             0,    60000,  false, true },
    {"works",  NULL,             0,    60000,  false, false},
    {"load",   NULL,             250,  60000,  false, false},
    {"report", "nightly-report", 5000, 660000, false, false},
};

struct stepper {
    struct cli *c;
    const struct step *step;
    struct db *db;
    const char *text;
    bool is_over;
    struct err err; /* of the last answer */
};

/* The step's text: between its "-- name:" and the next one. */
static const char *
text_of(const struct cli *c, const struct step *s)
{
    char head[40];

    snprintf(head, sizeof head, "-- name: %s\n", s->name);
    const char *from = strstr(console_sql("demo"), head) + strlen(head);
    const char *end = strstr(from, "-- name: ");
    return arena_strndup(c->mem, from, end ? (size_t)(end - from) : strlen(from));
}

static void step_ask(void *ctx);

static void
step_answered(void *ctx, struct db_reply *reply)
{
    struct stepper *s = ctx;

    s->err = reply->err;
    s->is_over = s->step->every_ms == 0;
    if (s->is_over)
        return;
    if (s->err.kind != ERR_NONE)
        cli_say(s->c, "%s: %s", s->step->name, s->err.text);
    loop_at(s->c->loop, clock_ms() + s->step->every_ms, step_ask, s);
}

static void
step_ask(void *ctx)
{
    struct stepper *s = ctx;
    struct db_stmt stmt = {.sql = s->text};
    struct db_call call = {.stmts = &stmt,
                           .n = 1,
                           .bare = s->step->bare,
                           .script = s->step->script,
                           .statement_timeout_ms = s->step->lasts_ms};

    db_ask(s->db, &call, -1, step_answered, s);
}

static int
step_run(struct cli *c, const void *options)
{
    struct stepper s = {.c = c};
    struct db_options o;
    struct err e = {0};

    (void)options;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(steps[i].name, c->words[0]) == 0)
            s.step = &steps[i];
    if (!s.step)
        return cli_usage(c, "%s is no step of the demo", c->words[0]);
    cli_db_options(c, &o);
    o.once = s.step->every_ms == 0;
    if (s.step->app_name)
        o.app_name = s.step->app_name;
    s.text = text_of(c, s.step);
    s.db = db_new(c->loop, &o);
    step_ask(&s);
    while (!s.is_over && loop_turn(c->loop, -1, &e))
        continue;
    db_free(s.db);
    return s.err.kind == ERR_NONE && e.kind == ERR_NONE ? CLI_DONE
                                                        : cli_fail(c, s.is_over ? &s.err : &e);
}

/* Without a help text the verb is in no list, because it is of no use to users. */
const struct cli_verb verbs_demo[] = {
    {.name = "demo-step",
     .words = "create|scene|load|report",
     .min_words = 1,
     .max_words = 1,
     .run = step_run},
    {0     },
};
