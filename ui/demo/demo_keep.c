/*
 * The keeper of the demo: starts the server and everything that works on it, waits for its pipe to
 * close, and ends all. The keeper is the reaper of all orphans among its descendants, so sooner or
 * later it finds every process of the demo as its child in /proc. It never opens a connection: the
 * program's own verbs talk to the server, and the statements of the demo stand in
 * sql/console/demo.sql.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "model/base/loop.h"
#include "ui/demo/demo.h"

enum {
    LOOK_MS = 15,     /* between two tests whether the server is ready */
    START_MS = 60000, /* limit for one step of the start */
    END_MS = 5000,    /* limit for the server's end; then it is killed */
    ARGS_MAX = 24,
    DRAIN_MS = 9000,        /* when the operator drains worker-3 */
    FIRST_PAUSE_MS = 20000, /* the node with hiccups: its first one, */
    PAUSE_EVERY_MS = 90000, /* the others, */
    PAUSE_MS = 24000        /* and how long one takes */
};

struct keeper {
    const struct demo_place *place;
    struct loop *loop;
    int life, ready, log;
    off_t step_at; /* size of the log when the step began */
    bool stop;     /* the demo has ended, or a signal asks us to end */
    pid_t server;  /* pid of the server, 0 = not running */
    pid_t waited;  /* the step that runs; 0 = it ended with status */
    int status;
    pid_t hiccup; /* the worker that is stopped now and then */
    bool is_stopped;
    char self[PATH_MAX]; /* path of this program */
    char schema[80];     /* as an option of every verb */
};

/* node, jobs at once, lease, how its jobs behave */
struct demo_node {
    const char *name, *jobs, *timeout, *how;
    bool hiccup;
};

static const struct demo_node nodes[] = {
    {"worker-1", "6", "60s", NULL,    false},
    {"worker-2", "6", "60s", NULL,    false},
    {"worker-3", "3", "60s", "slow",  false}, /* drained: its jobs take minutes */
    {"worker-4", "8", "1h",  "crash", false}, /* its jobs kill it */
    {"worker-5", "6", "60s", NULL,    false},
    {"worker-6", "3", "10s", NULL,    true },
};

static void
ask_stop(void *ctx, int signo)
{
    struct keeper *k = ctx;

    (void)signo;
    k->stop = true;
}

static void
life_over(void *ctx, short revents)
{
    struct keeper *k = ctx;

    (void)revents;
    k->stop = true;
}

static void
reap(void *ctx, int signo)
{
    struct keeper *k = ctx;
    int status;
    pid_t pid;

    (void)signo;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == k->waited) {
            k->waited = 0;
            k->status = status;
        }
        if (pid == k->hiccup)
            k->hiccup = 0;
        if (pid == k->server) {
            k->server = 0;
            k->stop = true;
        }
    }
}

/* --- starting --- */

/* The child's part after fork: never returns. death_signal ends the child when the keeper dies. */
static _Noreturn void
become_program(struct keeper *k, const char *const *args, bool of_server, pid_t keeper)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int death_signal = of_server ? SIGQUIT : SIGKILL;

    loop_child_signals(k->loop);
    dup2(null, STDIN_FILENO);
    dup2(k->log, STDOUT_FILENO);
    dup2(k->log, STDERR_FILENO);
    /* after the change of user, which would reset the death signal */
    if (chdir(k->place->dir) != 0 || (of_server && !demo_drop_root(k->place)) ||
        prctl(PR_SET_PDEATHSIG, death_signal) != 0 || getppid() != keeper)
        _exit(126);
    char *argv[ARGS_MAX] = {NULL}; /* execv changes none of them, but its type does not say so */
    for (int i = 0; args[i] && i < ARGS_MAX - 1; i++)
        memcpy(&argv[i], &args[i], sizeof argv[i]);
    execv(args[0], argv);
    fprintf(stderr, "%s: %s\n", args[0], strerror(errno));
    _exit(127);
}

static pid_t
spawn(struct keeper *k, const char *const *args, bool of_server)
{
    pid_t keeper = getpid(), pid = fork();

    if (pid == 0)
        become_program(k, args, of_server, keeper);
    return pid;
}

/* What the log says since the step began, on one line; of a long log only the end. If our own verbs
 * have written lines, the server's lines are left out. */
static void
log_tail(const struct keeper *k, char *out, size_t size)
{
    off_t end = lseek(k->log, 0, SEEK_END), room = (off_t)size - 1;
    off_t from = end - k->step_at > room ? end - room : k->step_at;
    ssize_t n = pread(k->log, out, size - 1, from);

    out[n > 0 ? n : 0] = 0;
    const char *own = strstr(out, "\nqueuetop ");
    if (own)
        memmove(out, own + 1, strlen(own));
    for (char *at = out; (at = strchr(at, '\n'));)
        *at = ' ';
}

static bool
run_failed(struct keeper *k, const char *what, struct err *e)
{
    char tail[300];

    log_tail(k, tail, sizeof tail);
    return fail(e, ERR_SYS, "%s failed: %s", what, tail);
}

/* Runs one step of the start and waits for its end. */
static bool
run_program(struct keeper *k, const char *const *args, bool of_server, struct err *e)
{
    int64_t deadline = clock_ms() + START_MS;

    k->step_at = lseek(k->log, 0, SEEK_END);
    k->waited = spawn(k, args, of_server);
    if (k->waited < 0)
        return fail(e, ERR_SYS, "fork: %s", strerror(errno));
    while (k->waited > 0 && !k->stop && clock_ms() < deadline)
        if (!loop_turn(k->loop, START_MS, e))
            return false;
    if (k->waited > 0 || !WIFEXITED(k->status) || WEXITSTATUS(k->status) != 0)
        return run_failed(k, of_server ? args[0] : args[1], e);
    return true;
}

static bool
start_server(struct keeper *k, struct err *e)
{
    char initdb[PATH_MAX], postgres[PATH_MAX], data[128];
    const char *init[] = {initdb,   "-D",        data,         "-Upostgres",      "-Atrust",
                          "-EUTF8", "--no-sync", "--locale=C", "--wal-segsize=1", NULL};
    const char *start[] = {postgres, "-D", data, NULL};

    snprintf(initdb, sizeof initdb, "%s/initdb", k->place->bin);
    snprintf(postgres, sizeof postgres, "%s/postgres", k->place->bin);
    snprintf(data, sizeof data, "%s/data", k->place->dir);
    if (!run_program(k, init, true, e) || !demo_configure(k->place, e))
        return false;
    k->server = spawn(k, start, true);
    return k->server > 0 || fail(e, ERR_SYS, "fork: %s", strerror(errno));
}

/* Reads the state of the server from line eight of postmaster.pid, as pg_ctl does. */
static bool
server_is_ready(const struct keeper *k)
{
    char path[128], line[256] = "";
    bool ready = false;

    snprintf(path, sizeof path, "%s/data/postmaster.pid", k->place->dir);
    FILE *f = fopen(path, "re");
    for (int i = 1; f && i <= 8 && fgets(line, sizeof line, f); i++)
        ready = i == 8 && strncmp(line, "ready", 5) == 0;
    if (f)
        fclose(f);
    return ready;
}

static bool
wait_for_server(struct keeper *k, struct err *e)
{
    int64_t deadline = clock_ms() + START_MS;

    while (!server_is_ready(k)) {
        if (k->stop || clock_ms() > deadline)
            return run_failed(k, "the start of the server", e);
        if (!loop_turn(k->loop, LOOK_MS, e))
            return false;
    }
    return true;
}

static bool
set_up(struct keeper *k, struct err *e)
{
    char first[160], owner[160];
    const char *create[] = {k->self, "demo-step", "create", first, k->schema, NULL};
    const char *install[] = {k->self, "install", owner, k->schema, NULL};
    const char *scene[] = {k->self, "demo-step", "scene", owner, k->schema, NULL};

    snprintf(first, sizeof first, "host=%s dbname=postgres user=postgres", k->place->dir);
    snprintf(owner, sizeof owner, "host=%s dbname=demo user=postgres", k->place->dir);
    return run_program(k, create, false, e) && run_program(k, install, false, e) &&
           run_program(k, scene, false, e);
}

static pid_t
start_node(struct keeper *k, const struct demo_node *n, const char *app)
{
    static const char program[] = "-- name: program\n"; /* the last text of the file */
    const char *job = strstr(console_sql("demo"), program) + sizeof program - 1;
    const char *args[] = {k->self,  "work",  app,         k->schema,  "--node", n->name,
                          "--jobs", n->jobs, "--timeout", n->timeout, "--",     "/bin/sh",
                          "-c",     job,     "demo-job",  n->how,     NULL};

    return spawn(k, args, false);
}

static void
drain_node(void *ctx)
{
    struct keeper *k = ctx;
    const char *args[] = {k->self,   "drain", "worker-3", k->place->conninfo,
                          k->schema, "--yes", "--reason", "kernel update",
                          NULL};

    spawn(k, args, false);
}

/* Stops one worker for longer than its lease and then continues it. So the demo shows a late node,
 * jobs that are given to others, and answers that come too late. */
static void
hiccup(void *ctx)
{
    struct keeper *k = ctx;

    if (k->hiccup <= 0)
        return;
    k->is_stopped = !k->is_stopped;
    kill(k->hiccup, k->is_stopped ? SIGSTOP : SIGCONT);
    loop_at(k->loop, clock_ms() + (k->is_stopped ? PAUSE_MS : PAUSE_EVERY_MS), hiccup, k);
}

static bool
start_load(struct keeper *k, struct err *e)
{
    char app[160], owner[160];
    const char *works[] = {k->self, "demo-step", "works", owner, k->schema, NULL};
    const char *schedule[] = {k->self, "schedule", app, k->schema, NULL};
    const char *load[] = {k->self, "demo-step", "load", app, k->schema, NULL};
    const char *report[] = {k->self, "demo-step", "report", k->place->conninfo, k->schema, NULL};

    snprintf(app, sizeof app, "host=%s dbname=demo user=app", k->place->dir);
    snprintf(owner, sizeof owner, "host=%s dbname=demo user=postgres", k->place->dir);
    if (spawn(k, schedule, false) < 0 || spawn(k, load, false) < 0 || spawn(k, report, false) < 0)
        return fail(e, ERR_SYS, "fork: %s", strerror(errno));
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        pid_t pid = start_node(k, &nodes[i], app);
        if (nodes[i].hiccup)
            k->hiccup = pid;
    }
    loop_at(k->loop, clock_ms() + FIRST_PAUSE_MS, hiccup, k);
    loop_at(k->loop, clock_ms() + DRAIN_MS, drain_node, k);
    return run_program(k, works, false, e);
}

/* --- ending --- */

/* children of killed processes become ours: kill them, too */
static void
kill_all_but_server(struct keeper *k)
{
    struct err e;
    int64_t deadline = clock_ms() + END_MS;

    while (demo_kill_children(k->server) && clock_ms() < deadline)
        if (!loop_turn(k->loop, LOOK_MS, &e))
            return;
}

static void
end_all(struct keeper *k)
{
    struct err e;
    int64_t deadline = clock_ms() + END_MS;

    kill_all_but_server(k);
    if (k->server > 0)
        kill(k->server, SIGQUIT);
    while (k->server > 0 && clock_ms() < deadline && loop_turn(k->loop, END_MS, &e))
        continue;
    k->server = 0; /* so that it counts among those to kill */
    kill_all_but_server(k);
    demo_remove_dir(k->place);
}

/* --- the whole --- */

static void
open_log(struct keeper *k)
{
    char path[128];

    snprintf(path, sizeof path, "%s/log", k->place->dir);
    k->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t n = readlink("/proc/self/exe", k->self, sizeof k->self - 1);
    k->self[n > 0 ? n : 0] = 0;
    if (access(k->self, X_OK) != 0) /* the program was built again meanwhile */
        snprintf(k->self, sizeof k->self, "/proc/self/exe");
}

static void
watch_signals(struct keeper *k)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

    k->loop = loop_new();
    loop_watch(k->loop, k->life, POLLIN, life_over, k);
    loop_on_signal(k->loop, SIGCHLD, reap, k);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        loop_on_signal(k->loop, signals[i], ask_stop, k);
}

_Noreturn void
demo_keep(const struct demo_place *p, int life, int ready)
{
    struct keeper k = {.place = p, .life = life, .ready = ready};
    struct demo_report report = {0};
    struct err e = {0};

    setsid();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(k.schema, sizeof k.schema, "--schema=%s", p->schema);
    watch_signals(&k);
    open_log(&k);
    report.ok = start_server(&k, &report.err) && wait_for_server(&k, &report.err) &&
                set_up(&k, &report.err) && start_load(&k, &report.err);
    if (write(ready, &report, sizeof report) != (ssize_t)sizeof report || !report.ok)
        k.stop = true;
    while (!k.stop && loop_turn(k.loop, -1, &e))
        continue;
    end_all(&k);
    _exit(0);
}
