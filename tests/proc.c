/*
 * Programs that run beside a test. Their output goes to files in memory, so nobody has to read the
 * output while a program runs.
 */
#include "tests/proc.h"

#include "tests/harness.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS = 64, STEP_MS = 10, FILTER_MOST = 64 };

static const int *refused; /* of proc_refuse() */

static void
must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    _fail(__FILE__, __LINE__);
}

static int64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static char *
read_all(int fd)
{
    struct stat st;

    must(fstat(fd, &st) == 0, "fstat");
    char *text = calloc(1, (size_t)st.st_size + 1);
    must(text != NULL, "calloc");
    ssize_t n = pread(fd, text, (size_t)st.st_size, 0);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static int
input_file(const char *input)
{
    int fd = input ? memfd_create("input", MFD_CLOEXEC) : open("/dev/null", O_RDONLY | O_CLOEXEC);

    must(fd >= 0, "input");
    if (input) {
        must(write(fd, input, strlen(input)) == (ssize_t)strlen(input), "write");
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

void
proc_refuse(const int *calls)
{
    refused = calls;
}

/* In this process and those that it becomes; allowed to everyone who gains no rights by exec. */
static void
refuse_calls(void)
{
    struct sock_filter filter[FILTER_MOST] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    struct sock_fprog program = {.len = 1, .filter = filter};

    for (const int *at = refused; *at >= 0; at += 2) {
        must(program.len + 3 <= FILTER_MOST, "too many calls to refuse");
        filter[program.len++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)at[0], 0, 1);
        filter[program.len++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)at[1]);
    }
    filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        _exit(126);
    }
}

void
proc_start(struct proc *p, const char *const *argv, const char *input)
{
    union { /* exec does not change the strings, but its type has no const */
        const char *const *in;
        char *const *out;
    } args = {.in = argv};
    int in = input_file(input);

    p->out = memfd_create("out", MFD_CLOEXEC);
    p->err = memfd_create("err", MFD_CLOEXEC);
    must(p->out >= 0 && p->err >= 0, "memfd_create");
    fcntl(p->out, F_SETFL, O_APPEND);
    fcntl(p->err, F_SETFL, O_APPEND);
    p->code = -1;
    p->pid = vfork();
    must(p->pid >= 0, "fork");
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in, STDIN_FILENO);
        dup2(p->out, STDOUT_FILENO);
        dup2(p->err, STDERR_FILENO);
        if (refused)
            refuse_calls();
        execvp(argv[0], args.out);
        perror(argv[0]);
        _exit(127);
    }
    close(in);
}

/* Splits line at blanks, in place; 'a b' and "a b" are one word. */
static void
split(char *line, const char **argv)
{
    int n = 0;

    for (char *at = line; *at;) {
        bool is_quoted = *at == '\'' || *at == '"';
        const char end[] = {is_quoted ? *at : ' ', 0};
        at += is_quoted;
        if (is_quoted || *at != ' ') {
            must(n < ARGS - 1, "too many words");
            argv[n++] = at;
        }
        at += strcspn(at, end);
        if (*at)
            *at++ = 0;
    }
    argv[n] = NULL;
}

static void __attribute__((format(printf, 3, 0)))
start_line(struct proc *p, const char *input, const char *fmt, va_list args)
{
    const char *program = getenv("QUEUETOP"), *argv[ARGS];
    char words[8192], line[8300];

    must(program != NULL, "QUEUETOP");
    vsnprintf(words, sizeof words, fmt, args);
    snprintf(line, sizeof line, "'%s' %s", program, words);
    split(line, argv);
    proc_start(p, argv, input);
}

void
proc_queuetop(struct proc *p, const char *input, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    start_line(p, input, fmt, args);
    va_end(args);
}

char *
proc_output(const struct proc *p)
{
    return read_all(p->out);
}

char *
proc_errors(const struct proc *p)
{
    return read_all(p->err);
}

int
proc_code(int status)
{
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (sig == SIGSEGV || sig == SIGABRT || sig == SIGBUS || sig == SIGILL || sig == SIGFPE)
        fprintf(stderr, "crash: a program under test died of signal %d (%s)\n", sig,
                strsignal(sig));
    return sig ? 128 + sig : WEXITSTATUS(status);
}

static bool
has_ended(struct proc *p)
{
    int status;

    if (p->pid > 0 && waitpid(p->pid, &status, WNOHANG) == p->pid) {
        p->code = proc_code(status);
        p->pid = 0;
    }
    return p->pid == 0;
}

int
proc_wait(struct proc *p)
{
    for (int64_t deadline = now_ms() + PROC_WAIT_MS; !has_ended(p); poll(NULL, 0, STEP_MS))
        if (now_ms() > deadline) {
            char *err = proc_errors(p);
            print_error("proc: did not end; it wrote:\n%s\n", err);
            free(err);
            proc_done(p);
            _fail(__FILE__, __LINE__);
        }
    return p->code;
}

/* from: bytes that were written before and do not count. */
static void
want(struct proc *p, const char *text, char *(*written)(const struct proc *p), size_t from)
{
    int64_t deadline = now_ms() + PROC_WAIT_MS;

    for (bool found = false; !found; poll(NULL, 0, found ? 0 : STEP_MS)) {
        bool is_last = has_ended(p) || now_ms() > deadline;
        char *all = written(p);
        found = strlen(all) > from && strstr(all + from, text);
        if (!found && is_last)
            print_error("proc: '%s' did not come; it wrote:\n%s\n", text, all);
        free(all);
        if (!found && is_last) {
            proc_done(p);
            _fail(__FILE__, __LINE__);
        }
    }
}

void
proc_want(struct proc *p, const char *text)
{
    want(p, text, proc_errors, 0);
}

void
proc_want_after(struct proc *p, size_t from, const char *text)
{
    want(p, text, proc_errors, from);
}

void
proc_want_output(struct proc *p, const char *text)
{
    want(p, text, proc_output, 0);
}

void
proc_done(struct proc *p)
{
    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
    }
    if (p->out > 0) {
        close(p->out);
        close(p->err);
    }
    *p = (struct proc){0};
}

void
proc_ends(struct proc *p)
{
    kill(p->pid, SIGTERM);
    assert_int_equal(proc_wait(p), 0);
    proc_done(p);
}

int
proc_run(const char *input, char **out, char **err, const char *fmt, ...)
{
    struct proc p = {0};
    va_list args;

    va_start(args, fmt);
    start_line(&p, input, fmt, args);
    va_end(args);
    int code = proc_wait(&p);
    if (out)
        *out = proc_output(&p);
    if (err)
        *err = proc_errors(&p);
    proc_done(&p);
    return code;
}

void
proc_check(int code, const char *out, const char *err, const char *fmt, ...)
{
    char *line, *said, *told;
    va_list args;

    va_start(args, fmt);
    must(vasprintf(&line, fmt, args) >= 0, "vasprintf");
    va_end(args);
    int got = proc_run(NULL, &said, &told, "%s", line);
    if (got != code || (out && !strstr(said, out)) || (err && !strstr(told, err)))
        fail_msg("queuetop %s: exit code %d, not %d, or no \"%s\" in\n%s--\nor no \"%s\" in\n%s",
                 line, got, code, out ? out : "", said, err ? err : "", told);
    free(line);
    free(said);
    free(told);
}

void
proc_verb(int code, char **out, char **err, const char *dsn, const char *fmt, va_list args)
{
    char *words;

    must(vasprintf(&words, fmt, args) >= 0, "vasprintf");
    int got = proc_run(NULL, out, err, "%s \"%s\"", words, dsn);
    if (got != code)
        fail_msg("%s: exit code %d, not %d\n%s%s", words, got, code, *out, *err);
    free(words);
}

long
proc_number(pid_t pid, const char *key)
{
    char path[64], line[256];
    long value = -1;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    must(f != NULL, path);
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            value = strtol(line + strlen(key), NULL, 10);
    fclose(f);
    return value;
}

bool
proc_lives(pid_t pid)
{
    char path[64], line[512] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool got = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    const char *end = strrchr(line, ')'); /* the name may have any characters */
    return got && end && strlen(end) > 2 && !strchr("ZXx", end[2]);
}

char *
proc_own_copy(const char *name)
{
    const char *src = getenv("SRCDIR"), *tmp = getenv("TMPDIR"), *base = strrchr(name, '/');
    char from[1000], *to = NULL;
    off_t size = 0;

    snprintf(from, sizeof from, "%s/%s", src ? src : ".", name);
    must(asprintf(&to, "%s/%s", tmp ? tmp : "/tmp", base ? base + 1 : name) > 0, name);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    must(in >= 0 && (size = lseek(in, 0, SEEK_END)) > 0 && lseek(in, 0, SEEK_SET) == 0, from);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(out >= 0, to);
    must(sendfile(out, in, NULL, (size_t)size) == size, to);
    close(in);
    close(out);
    return to;
}

void
proc_open_gate(const char *path)
{
    int fd = -1, left_ms = 60000;

    while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && left_ms-- > 0)
        poll(NULL, 0, 1); /* no process reads the pipe yet */
    must(fd >= 0, path);
    must(write(fd, "go\n", 3) == 3, path);
    close(fd);
}
