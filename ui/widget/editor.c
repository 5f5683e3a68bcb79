/*
 * The editor's parent is the keeper, a fork of this program. The keeper reports how the editor
 * ended, waits until we have read the file or have ended, and removes the directory. It only makes
 * calls that are safe after a fork, and keeps none of our descriptors except its two pipes.
 */
#include "ui/widget/editor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/child.h"
#include "model/base/mem.h"
#include "model/base/owned.h"
#include "model/base/secure.h"

enum { WORDS = 16, NOT_STARTED = 127 << 8 };

struct editor {
    struct loop *loop;
    editor_fn *fn;
    void *ctx;
    char *path; /* the words of the editor's command */
    char *line; /* its words */
    char *argv[WORDS + 2];
    char dir[PATH_MAX], file[PATH_MAX + 32];
    pid_t keeper, pid;   /* pid: of the editor, until it has ended */
    int from, to, watch; /* reports from the keeper; orders to the keeper */
};

/* --- the keeper ------------------------------------------------------------------------------- */

struct dir_entry { /* the layout that getdents64 writes */
    ino64_t inode;
    off64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* Removes the directory with all files in it, because editors leave copies. */
static void
remove_dir(const char *dir)
{
    _Alignas(struct dir_entry) char part[4096];
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    long n;

    while (fd >= 0 && (n = syscall(SYS_getdents64, fd, part, sizeof part)) > 0) {
        bool removed = false;
        for (long at = 0; at < n; at += ((struct dir_entry *)(void *)(part + at))->size)
            removed |= unlinkat(fd, ((struct dir_entry *)(void *)(part + at))->name, 0) == 0;
        if (removed)
            lseek(fd, 0, SEEK_SET);
    }
    if (fd >= 0)
        close(fd);
    rmdir(dir);
}

static _Noreturn void
become_editor(const struct editor *ed)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGTSTP};

    for (int i = 0; i < 5; i++)
        signal(signals[i], SIG_DFL);
    loop_child_signals(ed->loop);
    execv(ed->path, ed->argv);
    _exit(127);
}

/* Closes all descriptors except the standard ones and the two pipes, so that the keeper holds none
 * of ours open. */
static void
close_others(int one, int two)
{
    int low = one < two ? one : two, high = one < two ? two : one;

    secure_close(3, (unsigned)low - 1);
    secure_close((unsigned)low + 1, (unsigned)high - 1);
    secure_close((unsigned)high + 1, ~0U);
}

static _Noreturn void
guard_editor(const struct editor *ed, int say, int order)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE};
    int status = NOT_STARTED;
    char c;

    for (int i = 0; i < 5; i++)
        signal(signals[i], SIG_IGN);
    pid_t pid = fork();
    if (pid == 0)
        become_editor(ed);
    close_others(say, order);
    bool said = write(say, &pid, sizeof pid) > 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    said = write(say, &status, sizeof status) > 0 && said;
    while (said && read(order, &c, 1) < 0 && errno == EINTR)
        ;
    remove_dir(ed->dir);
    _exit(0);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void
end_keeper(struct editor *ed)
{
    if (ed->watch)
        loop_unwatch(ed->loop, ed->watch);
    if (ed->from >= 0)
        close(ed->from);
    if (ed->to >= 0)
        close(ed->to);
    if (ed->keeper > 0)
        while (waitpid(ed->keeper, NULL, 0) < 0 && errno == EINTR)
            ;
    ed->keeper = 0;
    ed->watch = 0;
    ed->from = ed->to = -1;
}

/* Waits for the keeper's first report. Without it nobody could end the editor, and we would wait
 * for its end. */
static void
wait_for_pid(struct editor *ed)
{
    ssize_t n;
    int word;

    fcntl(ed->from, F_SETFL, 0); /* the keeper has nothing to wait for before it reports */
    while ((n = read(ed->from, &word, sizeof word)) < 0 && errno == EINTR)
        ;
    if (n == (ssize_t)sizeof word)
        ed->pid = word;
}

void
editor_free(struct editor *ed)
{
    if (!ed)
        return;
    if (ed->keeper > 0 && ed->pid == 0)
        wait_for_pid(ed);
    if (ed->pid > 0) { /* the keeper will remove ed->dir */
        kill(ed->pid, SIGTERM);
        ed->keeper = 0;
    }
    end_keeper(ed);
    free(ed->path);
    free(ed->line);
    free(ed);
}

static bool
read_file(const char *path, struct buf *out, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    char part[65536];
    ssize_t n = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        return fail(e, ERR_SYS, "the editor left no file behind");
    }
    buf_str(out, "");
    while (out->len <= EDITOR_MOST && (n = read(fd, part, sizeof part)) > 0)
        buf_add(out, part, (size_t)n);
    close(fd);
    if (n < 0)
        return fail(e, ERR_SYS, "the edited file can't be read: %s", strerror(errno));
    if (out->len > EDITOR_MOST)
        return fail(e, ERR_USAGE, "%d MiB is the most that can be edited", EDITOR_MOST >> 20);
    return true;
}

static bool
ended_well(const struct editor *ed, int status, struct err *e)
{
    if (status == NOT_STARTED || status < 0)
        return fail(e, ERR_USAGE, "the editor %.100s can't be started", ed->argv[0]);
    if (WIFSIGNALED(status))
        return fail(e, ERR_USAGE, "the editor was ended by signal %d", WTERMSIG(status));
    if (status != 0)
        return fail(e, ERR_USAGE, "the editor ended with exit code %d", WEXITSTATUS(status));
    return true;
}

/* The keeper reports first the pid of the editor, then how the editor ended. */
static void
on_keeper(void *ctx, short revents)
{
    struct editor *ed = ctx;
    struct err e = {.kind = ERR_NONE};
    struct buf text = {0};
    int word = 0;
    ssize_t n = read(ed->from, &word, sizeof word);

    (void)revents;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == (ssize_t)sizeof word && !ed->pid && word > 0) {
        ed->pid = word;
        return;
    }
    ed->pid = 0;
    bool ok = n == (ssize_t)sizeof word ? ended_well(ed, word, &e)
                                        : fail(&e, ERR_SYS, "the editor could not be watched");
    ok = ok && read_file(ed->file, &text, &e);
    end_keeper(ed);
    ed->fn(ed->ctx, ok ? text.data : NULL, text.len, &e);
    buf_free(&text);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* Splits "code -w" into words, without a shell; the file is the last word. */
static bool
find_editor(struct editor *ed, struct err *e)
{
    static const char *const usual[] = {"editor", "nano", "vi"};
    const char *command = getenv("VISUAL");
    int n = 0;

    if (!command || !*command)
        command = getenv("EDITOR");
    for (int i = 0; i < 3 && (!command || !*command); i++)
        if (child_find(usual[i], &ed->path, e))
            command = usual[i];
    if (!command || !*command)
        return fail(e, ERR_USAGE, "no editor: set VISUAL or EDITOR");
    ed->line = xstrdup(command);
    char *rest = ed->line, *word;
    while (n < WORDS && (word = strsep(&rest, " \t")))
        if (*word)
            ed->argv[n++] = word;
    if (n == 0)
        return fail(e, ERR_USAGE, "no editor: VISUAL or EDITOR is blank");
    ed->argv[n] = ed->file;
    return ed->path || child_find(ed->argv[0], &ed->path, e);
}

/* Where the editor's file goes: nobody else may be able to put another one in its place. As root,
 * with the variables of another user, that is /tmp. */
static const char *
choose_base(void)
{
    static const char *const variables[] = {"XDG_RUNTIME_DIR", "TMPDIR"};

    for (int i = 0; i < 2; i++) {
        const char *base = getenv(variables[i]);
        if (base && *base && owned_folder(base) && access(base, W_OK | X_OK) == 0)
            return base;
    }
    return "/tmp";
}

static bool
write_file(struct editor *ed, const char *suffix, const char *text, size_t len, struct err *e)
{
    const char *base = choose_base();

    snprintf(ed->dir, sizeof ed->dir, "%s/queuetop-XXXXXX", base);
    if (!mkdtemp(ed->dir)) {
        int why = errno;
        ed->dir[0] = '\0';
        return fail(e, ERR_SYS, "no directory for the editor in %.100s: %s", base, strerror(why));
    }
    snprintf(ed->file, sizeof ed->file, "%s/payload%s", ed->dir, suffix);
    return owned_write_new(ed->file, 0600, text, len) ||
           fail(e, ERR_SYS, "no file for the editor: %s", strerror(errno));
}

static bool
fork_editor(struct editor *ed, struct err *e)
{
    int say[2], order[2];

    if (pipe2(say, O_CLOEXEC) < 0)
        return fail(e, ERR_SYS, "pipe: %s", strerror(errno));
    if (pipe2(order, O_CLOEXEC) < 0) {
        close(say[0]);
        close(say[1]);
        return fail(e, ERR_SYS, "pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0)
        guard_editor(ed, say[1], order[0]);
    close(say[1]);
    close(order[0]);
    ed->from = say[0];
    ed->to = order[1];
    if (pid < 0)
        return fail(e, ERR_SYS, "fork: %s", strerror(errno));
    ed->keeper = pid;
    fcntl(ed->from, F_SETFL, O_NONBLOCK);
    ed->watch = loop_watch(ed->loop, ed->from, POLLIN, on_keeper, ed);
    return true;
}

struct editor *
editor_open(struct loop *l, const char *suffix, const char *text, size_t len, struct err *e)
{
    struct editor *ed = xcalloc(1, sizeof *ed);

    ed->loop = l;
    ed->from = ed->to = -1;
    if (find_editor(ed, e) && write_file(ed, suffix, text, len, e) && fork_editor(ed, e))
        return ed;
    if (*ed->dir)
        remove_dir(ed->dir);
    editor_free(ed);
    return NULL;
}

void
editor_then(struct editor *ed, editor_fn *fn, void *ctx)
{
    ed->fn = fn;
    ed->ctx = ctx;
}
