/*
 * The list of groups is in memory that both processes see. When our end of the pipe closes, the
 * helper knows that we are dead.
 */
#include "model/base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "model/base/secure.h"

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

void
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
