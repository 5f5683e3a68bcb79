/*
 * fork, exec and three pipes; no call here blocks. waitid with WNOWAIT reports that the command has
 * ended and leaves the zombie. As long as the zombie exists, the kernel gives the number of its
 * process group to no other process, so we may still kill the group. After the end of the command
 * we do not wait for the output of its own children.
 */
#include "model/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/base/secure.h"

/* --- the guard --- */

/* The list of groups is in memory that both processes see. When our end of the pipe closes, the
 * helper knows that we are dead. */

struct guard {
    atomic_int *groups; /* shared */
    int places;
    int fd; /* our end of the pipe: it closes when this process ends */
    pid_t pid;
};

/* The helper has a process group of its own, so signals that a terminal or a supervisor sends to
 * the worker's group do not end the helper. */
static _Noreturn void
watch(const struct guard *g, int fd)
{
    char byte;
    ssize_t n;
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setpgid(0, 0);
    dup2(fd, STDIN_FILENO);
    secure_close(STDOUT_FILENO, ~0U); /* the helper must not keep a file, socket or terminal open */
    do
        n = read(STDIN_FILENO, &byte, 1);
    while (n < 0 && errno == EINTR);
    for (int i = 0; i < g->places; i++) {
        int group = atomic_load(&g->groups[i]);
        if (group > 1)
            kill(-group, SIGKILL);
    }
    _exit(0);
}

struct guard *
guard_new(int places, struct err *e)
{
    size_t size = sizeof(atomic_int) * (size_t)places;
    atomic_int *groups =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2] = {-1, -1};
    struct guard *g;

    if (groups == MAP_FAILED || pipe2(ends, O_CLOEXEC)) {
        fail(e, ERR_SYS, "guard of commands: %s", strerror(errno));
        if (groups != MAP_FAILED)
            munmap(groups, size);
        return NULL;
    }
    g = xcalloc(1, sizeof *g);
    *g = (struct guard){.groups = groups, .places = places, .fd = ends[1], .pid = fork()};
    if (g->pid == 0)
        watch(g, ends[0]);
    close(ends[0]);
    if (g->pid > 0)
        return g;
    fail(e, ERR_SYS, "fork: %s", strerror(errno));
    guard_free(g);
    return NULL;
}

/* May be called between fork and exec: it only stores. pid 0 = the place is free again. */
static void
guard_note(struct guard *g, int place, pid_t pid)
{
    if (g)
        atomic_store(&g->groups[place], (int)pid);
}

void
guard_free(struct guard *g)
{
    if (!g)
        return;
    close(g->fd);
    if (g->pid > 0)
        waitpid(g->pid, NULL, 0);
    munmap(g->groups, sizeof *g->groups * (size_t)g->places);
    free(g);
}

/* --- a command --- */

enum { CHUNK = 65536, READS_AT_END = 64 };

struct pipe_end {
    int fd; /* -1 = closed */
    int watch;
};

struct child {
    struct loop *loop;
    child_fn *fn;
    void *ctx;
    pid_t pid;
    struct pipe_end in, out, err;
    int status_fd; /* errno of a failed exec comes here */
    int why;       /* this errno, once it was read */
    struct buf input;
    size_t written;
    struct buf output, tail;
    size_t output_limit, tail_limit;
    uint64_t output_all, tail_all;
    int64_t grace_ms;
    int run_timer, kill_timer;
    bool timed_out, is_killed, may_leave;
    struct guard *guard;
    int place;
};

static void
end_close(struct child *c, struct pipe_end *p)
{
    if (p->fd < 0)
        return;
    loop_unwatch(c->loop, p->watch);
    close(p->fd);
    *p = (struct pipe_end){.fd = -1};
}

static void
kill_now(void *ctx)
{
    struct child *c = ctx;

    c->kill_timer = 0;
    kill(-c->pid, SIGKILL);
}

void
child_kill(struct child *c, int64_t grace_ms)
{
    if (grace_ms <= 0) {
        c->is_killed = true;
        kill_now(c);
        return;
    }
    if (c->is_killed)
        return;
    c->is_killed = true;
    kill(-c->pid, SIGTERM);
    kill(-c->pid, SIGCONT); /* a stopped process takes the signal too */
    c->kill_timer = loop_at(c->loop, clock_ms() + grace_ms, kill_now, c);
}

static void
out_of_time(void *ctx)
{
    struct child *c = ctx;

    c->run_timer = 0;
    c->timed_out = true;
    child_kill(c, c->grace_ms);
}

static void
on_input(void *ctx, short revents)
{
    struct child *c = ctx;
    size_t left = c->input.len - c->written;
    ssize_t n = 0;

    (void)revents;
    if (left > 0)
        n = write(c->in.fd, c->input.data + c->written, left);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        c->written += (size_t)n;
    if (n < 0 || c->written == c->input.len) { /* EPIPE: the command does not read the rest */
        end_close(c, &c->in);
        buf_free(&c->input);
    }
}

static void
keep_output(struct child *c, const char *data, size_t n)
{
    size_t room = c->output_limit - c->output.len;

    c->output_all += n;
    if (room > 0)
        buf_add(&c->output, data, n < room ? n : room);
}

static void
keep_tail(struct child *c, const char *data, size_t n)
{
    c->tail_all += n;
    buf_add(&c->tail, data, n);
    if (c->tail.len < c->tail_limit * 2)
        return;
    memmove(c->tail.data, c->tail.data + c->tail.len - c->tail_limit, c->tail_limit);
    c->tail.len = c->tail_limit;
    c->tail.data[c->tail.len] = 0;
}

/* Reads once; false when there is nothing (more) to read now. */
static bool
read_once(struct child *c, struct pipe_end *p)
{
    char data[CHUNK];
    ssize_t n = p->fd < 0 ? -1 : read(p->fd, data, sizeof data);

    if (p->fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    if (n <= 0) {
        end_close(c, p);
        return false;
    }
    if (p == &c->out)
        keep_output(c, data, (size_t)n);
    else
        keep_tail(c, data, (size_t)n);
    return true;
}

static void
on_output(void *ctx, short revents)
{
    struct child *c = ctx;

    (void)revents;
    read_once(c, &c->out);
}

static void
on_error(void *ctx, short revents)
{
    struct child *c = ctx;

    (void)revents;
    read_once(c, &c->err);
}

/* --- starting --- */

struct pipes {
    int in[2], out[2], err[2], status[2];
};

static void
pipes_close(struct pipes *p)
{
    int *all = (int *)p;

    for (size_t i = 0; i < sizeof *p / sizeof *all; i++)
        if (all[i] >= 0)
            close(all[i]);
}

static bool
pipes_open(struct pipes *p, struct err *e)
{
    *p = (struct pipes){
        {-1, -1},
        {-1, -1},
        {-1, -1},
        {-1, -1}
    };
    if (pipe2(p->in, O_CLOEXEC) || pipe2(p->out, O_CLOEXEC) || pipe2(p->err, O_CLOEXEC) ||
        pipe2(p->status, O_CLOEXEC)) {
        fail(e, ERR_SYS, "pipe: %s", strerror(errno));
        pipes_close(p);
        return false;
    }
    fcntl(p->in[1], F_SETFL, O_NONBLOCK);
    fcntl(p->out[0], F_SETFL, O_NONBLOCK);
    fcntl(p->err[0], F_SETFL, O_NONBLOCK);
    fcntl(p->status[0], F_SETFL, O_NONBLOCK);
    return true;
}

/* Only calls that are safe between fork and exec. */
static _Noreturn void
become(const struct loop *l, const struct child_start *s, const struct pipes *p, pid_t parent)
{
    int why;

    setpgid(0, 0);
    guard_note(s->guard, s->place, getpid());
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* our death ends the lease, so the command must end too */
    if (getppid() != parent)
        _exit(127);
    dup2(p->in[0], STDIN_FILENO);
    dup2(p->out[1], STDOUT_FILENO);
    dup2(p->err[1], STDERR_FILENO);
    loop_child_signals(l);
    execvpe(s->path, s->argv, s->env);
    why = errno;
    ssize_t n = write(p->status[1], &why, sizeof why);
    _exit(n > 0 ? 127 : 126);
}

static struct pipe_end
end_watch(struct child *c, int fd, short events, loop_fd_fn *fn)
{
    return (struct pipe_end){.fd = fd, .watch = loop_watch(c->loop, fd, events, fn, c)};
}

static struct child *
adopt(struct loop *l, const struct child_start *s, const struct pipes *p, pid_t pid)
{
    struct child *c = xcalloc(1, sizeof *c);

    setpgid(pid, pid); /* parent and child both call it, so the group exists before a kill,
                          whichever runs first */
    close(p->in[0]);
    close(p->out[1]);
    close(p->err[1]);
    close(p->status[1]);
    c->loop = l;
    c->pid = pid;
    c->guard = s->guard;
    c->place = s->place;
    c->status_fd = p->status[0];
    c->output_limit = s->output_limit;
    c->tail_limit = s->tail_limit;
    c->grace_ms = s->grace_ms;
    c->may_leave = s->may_leave;
    c->out = end_watch(c, p->out[0], POLLIN, on_output);
    c->err = end_watch(c, p->err[0], POLLIN, on_error);
    c->in = end_watch(c, p->in[1], POLLOUT, on_input);
    if (s->input_len > 0)
        buf_add(&c->input, s->input, s->input_len);
    if (s->input_is_text && (c->input.len == 0 || c->input.data[c->input.len - 1] != '\n'))
        buf_str(&c->input, "\n");
    if (s->run_timeout_ms > 0)
        c->run_timer = loop_at(l, clock_ms() + s->run_timeout_ms, out_of_time, c);
    on_input(c, POLLOUT); /* most inputs fit into the pipe at once */
    return c;
}

struct child *
child_new(struct loop *l, const struct child_start *s, child_fn *fn, void *ctx, struct err *e)
{
    struct pipes p;
    pid_t parent = getpid(), pid;

    if (!pipes_open(&p, e))
        return NULL;
    pid = fork();
    if (pid == 0)
        become(l, s, &p, parent);
    if (pid < 0) {
        fail(e, ERR_SYS, "fork: %s", strerror(errno));
        pipes_close(&p);
        return NULL;
    }
    struct child *c = adopt(l, s, &p, pid);
    c->fn = fn;
    c->ctx = ctx;
    return c;
}

bool
child_has_started(struct child *c)
{
    /* exec closes the pipe; if it fails, the child writes into the pipe first */
    return c->why == 0 && read(c->status_fd, &c->why, sizeof c->why) == 0;
}

/* --- ending --- */

static void
make_report(struct child *c, int status, struct child_report *r)
{
    size_t tail = c->tail.len < c->tail_limit ? c->tail.len : c->tail_limit;

    *r = (struct child_report){
        .end = WIFEXITED(status) ? CHILD_EXITED : CHILD_SIGNALLED,
        .code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
        .timed_out = c->timed_out,
        .output = c->output.data,
        .output_len = c->output.len,
        .output_all = c->output_all,
        .tail = c->tail.data ? c->tail.data + c->tail.len - tail : "",
        .tail_len = tail,
        .tail_all = c->tail_all,
    };
    if (c->why != 0 || read(c->status_fd, &c->why, sizeof c->why) == (ssize_t)sizeof c->why) {
        r->end = CHILD_NOT_STARTED;
        r->code = c->why;
    }
}

/* Reads what the pipes hold now. The amount is bounded, because a process that the command started
 * may write for ever. */
static void
drain(struct child *c, struct pipe_end *p)
{
    for (int i = 0; i < READS_AT_END && read_once(c, p); i++)
        continue;
    end_close(c, p);
}

static void
let_go(struct child *c)
{
    end_close(c, &c->in);
    end_close(c, &c->out);
    end_close(c, &c->err);
    if (c->status_fd >= 0)
        close(c->status_fd);
    c->status_fd = -1;
    loop_cancel(c->loop, c->run_timer);
    loop_cancel(c->loop, c->kill_timer);
}

/* Ends the rest of the command's group, and takes its status. */
static int
reap(struct child *c)
{
    int status = 0;

    if (c->is_killed || !c->may_leave)
        kill(-c->pid, SIGKILL); /* processes that survived SIGTERM, or that the command started */
    guard_note(c->guard, c->place, 0); /* before waitpid frees the number of the group */
    waitpid(c->pid, &status, 0);
    return status;
}

bool
child_check(struct child *c)
{
    siginfo_t info = {0};
    struct child_report r;
    int failed = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    bool is_lost = failed && errno == ECHILD; /* its number may be that of a stranger by now */

    if (!is_lost && (failed || info.si_pid == 0))
        return false;
    if (is_lost)
        guard_note(c->guard, c->place, 0);
    int status = is_lost ? 0 : reap(c);
    drain(c, &c->out);
    drain(c, &c->err);
    make_report(c, status, &r);
    if (is_lost && r.end != CHILD_NOT_STARTED)
        r.end = CHILD_UNKNOWN;
    let_go(c);
    c->pid = 0;
    c->fn(c->ctx, &r);
    return true;
}

void
child_free(struct child *c)
{
    if (!c)
        return;
    if (c->pid > 0) {
        kill(-c->pid, SIGKILL);
        guard_note(c->guard, c->place, 0);
        waitpid(c->pid, NULL, WNOHANG); /* if it is still a zombie later, init reaps it */
    }
    let_go(c);
    buf_free(&c->input);
    buf_free(&c->output);
    buf_free(&c->tail);
    free(c);
}

/* --- looking up --- */

static bool
can_run(const char *path)
{
    struct stat st;

    return access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool
child_find(const char *name, char **path, struct err *e)
{
    const char *dirs = getenv("PATH");

    if (strchr(name, '/')) {
        if (!can_run(name))
            return fail(e, ERR_USAGE, "can't run %s: %s", name,
                        errno ? strerror(errno) : "not a program");
        *path = xstrdup(name);
        return true;
    }
    for (const char *at = dirs ? dirs : "/usr/bin:/bin"; *name && *at;) {
        size_t len = strcspn(at, ":");
        *path = xasprintf("%.*s/%s", len ? (int)len : 1, len ? at : ".", name);
        if (can_run(*path))
            return true;
        free(*path);
        at += len + (at[len] == ':');
    }
    *path = NULL;
    return fail(e, ERR_USAGE, "there is no command '%s' in PATH", name);
}
