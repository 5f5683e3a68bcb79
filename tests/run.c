/*
 * The driver behind `make check`: testrun [-j JOBS] [-t SECONDS] PROGRAM...
 *
 * Runs test programs, a few at a time, prints the whole output of those that failed, and closes
 * with the line `N passed, N failed[, N skipped]`. Each program has a keeper process, which is the
 * reaper of everything below it: so whatever a test leaves running is found, reported as a failure
 * and ended, also when this driver itself is told to stop. Each program gets an empty TMPDIR that
 * must be empty again when it ends. A crash, a time-out and a program that ran no test count as a
 * failure. The programs share one folder, TEST_CLUSTER: the first of them leaves an empty server
 * there, the others copy it (server.c).
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_MS = 10000, TIMED_OUT = 124, LEFT_BEHIND = 125 };

struct test {
    const char *path;
    pid_t keeper;
    int out; /* its output, an unlinked file */
    char dir[PATH_MAX];
    int64_t start_ms;
};

struct tally {
    int passed, failed, skipped;
};

extern char **environ;

static int64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static _Noreturn void
die(const char *what)
{
    perror(what);
    exit(1);
}

/* The signals that this program takes one by one with sigtimedwait, never by a handler. */
static sigset_t
watched(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

/* Waits for a watched signal until the deadline. Returns the signal's number, or 0 if none came. */
static int
next_signal(int64_t deadline_ms)
{
    sigset_t set = watched();
    int sig;

    do {
        int64_t left = deadline_ms - now_ms();
        struct timespec t = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        sig = left > 0 ? sigtimedwait(&set, NULL, &t) : 0;
    } while (sig < 0 && errno == EINTR); /* stopped, and continued */
    return sig > 0 ? sig : 0;
}

/* --- the keeper ------------------------------------------------------------------------------- */

static pid_t
parent_of(pid_t pid, char *name, size_t size)
{
    char path[64], text[512];
    int parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t len = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[len] = 0;
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (open && close && strlen(close) > 4) {
        parent = (int)strtol(close + 4, NULL, 10);
        snprintf(name, size, "%.*s", (int)(close - open - 1), open + 1);
    }
    return parent;
}

/* Sends sig to every direct child. Prints their names on stderr if asked to. */
static void
each_child(int sig, bool tell)
{
    DIR *proc = opendir("/proc");

    if (!proc)
        die("/proc");
    for (struct dirent *d; (d = readdir(proc));) {
        char name[64] = "";
        pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
        if (pid <= 0 || parent_of(pid, name, sizeof name) != getpid())
            continue;
        if (tell)
            fprintf(stderr, "testrun: left running: %d %s\n", (int)pid, name);
        kill(pid, sig);
    }
    closedir(proc);
}

/* Reaps until no process is left below us, or until the deadline. Returns true if none is left. */
static bool
reap_all(int64_t deadline_ms)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            return true;
        if (pid == 0) {
            if (now_ms() >= deadline_ms)
                return false;
            next_signal(deadline_ms);
        }
    }
}

static void
kill_all(void)
{
    while (!reap_all(now_ms())) {
        each_child(SIGKILL, false);
        reap_all(now_ms() + 100);
    }
}

/* Waits for the test itself. Returns false, with *why, if the test must be ended. */
static bool
wait_test(pid_t pid, int64_t deadline_ms, int *status, const char **why)
{
    for (;;) {
        pid_t got = waitpid(-1, status, WNOHANG);
        if (got == pid)
            return true;
        if (got > 0)
            continue;
        int sig = next_signal(deadline_ms);
        if (sig == 0)
            *why = "timed out";
        else if (sig != SIGCHLD)
            *why = "stopped by a signal";
        if (*why)
            return false;
    }
}

static _Noreturn void
keep(pid_t pid, int seconds)
{
    int status = 0;
    const char *why = NULL;

    if (!wait_test(pid, now_ms() + seconds * (int64_t)1000, &status, &why)) {
        fprintf(stderr, "testrun: %s\n", why);
        kill(-pid, SIGTERM);
        reap_all(now_ms() + GRACE_MS / 2);
        kill_all();
        _exit(TIMED_OUT);
    }
    if (WIFSIGNALED(status))
        fprintf(stderr, "testrun: died of signal %d (%s)\n", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    if (!reap_all(now_ms() + GRACE_MS)) {
        each_child(SIGKILL, true);
        kill_all();
        _exit(LEFT_BEHIND);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128);
}

static void
clean_environment(const char *dir)
{
    for (int i = 0; environ[i];) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(environ[i], "="), environ[i]);
        bool drop = !strncmp(name, "PG", 2) || !strncmp(name, "QUEUETOP_", 9) ||
                    !strncmp(name, "LC_", 3) || !strcmp(name, "NO_COLOR");
        if (!drop || unsetenv(name))
            i++;
    }
    unsetenv("LINES");
    unsetenv("COLUMNS");
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TZ", "UTC", 1);
    setenv("HOME", dir, 1);
    setenv("TMPDIR", dir, 1);
}

static _Noreturn void
become(const struct test *t)
{
    sigset_t set = watched();

    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGHUP, SIG_DFL); /* nohup, or & in a script, ignores these, and so would all programs
                                that a test starts */
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    clean_environment(t->dir);
    execl(t->path, t->path, (char *)NULL);
    perror(t->path);
    _exit(127);
}

static void
start(struct test *t, int seconds)
{
    const char *tmp = getenv("TMPDIR");
    FILE *out = tmpfile();

    if (!out)
        die("tmpfile");
    t->out = fcntl(fileno(out), F_DUPFD_CLOEXEC, 3);
    fclose(out);
    fcntl(t->out, F_SETFL, O_APPEND);
    snprintf(t->dir, sizeof t->dir, "%s/qtest-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    /* others may enter: the server of a test started by root runs as another user */
    if (!mkdtemp(t->dir) || chmod(t->dir, 0711))
        die(t->dir);
    t->start_ms = now_ms();
    t->keeper = fork();
    if (t->keeper < 0)
        die("fork");
    if (t->keeper > 0)
        return;

    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(t->out, 1);
    dup2(t->out, 2);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0)
        become(t);
    keep(pid, seconds);
}

/* --- the folder that the programs share --- */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void
remove_tree(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Others may write into it: the server of a test started by root runs as another user. */
static void
make_shared(char *dir, size_t size)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, size, "%s/qtest-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir) || chmod(dir, 01777) || setenv("TEST_CLUSTER", dir, 1))
        die(dir);
}

/* --- the books -------------------------------------------------------------------------------- */

/* Removes the private directory. Returns false if the test had left something in it. */
static bool
remove_dir(const struct test *t)
{
    if (rmdir(t->dir) == 0)
        return true;
    DIR *dir = opendir(t->dir);
    for (struct dirent *d; dir && (d = readdir(dir));)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            dprintf(t->out, "testrun: left in TMPDIR: %s\n", d->d_name);
    if (dir)
        closedir(dir);
    remove_tree(t->dir);
    return false;
}

/* cmocka closes each group with lines such as `[  PASSED  ] 3 test(s).` */
static void
count_line(const char *line, struct tally *n)
{
    static const char *const words[] = {"[  PASSED  ] ", "[  FAILED  ] ", "[  SKIPPED ] "};
    int *const counts[] = {&n->passed, &n->failed, &n->skipped};

    for (int i = 0; i < 3; i++) {
        size_t len = strlen(words[i]);
        char *end = NULL;
        if (strncmp(line, words[i], len) != 0)
            continue;
        long value = strtol(line + len, &end, 10);
        if (end > line + len && !strncmp(end, " test(s)", 8))
            *counts[i] += (int)value;
    }
}

static struct tally
read_output(struct test *t, char **text)
{
    struct tally n = {0};
    struct stat st;

    if (fstat(t->out, &st))
        die("fstat");
    *text = calloc(1, (size_t)st.st_size + 1);
    if (!*text)
        die("calloc");
    ssize_t got = pread(t->out, *text, (size_t)st.st_size, 0);
    (*text)[got > 0 ? got : 0] = 0;
    for (char *line = *text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        count_line(line, &n);
    }
    return n;
}

static void
finish(struct test *t, int status, struct tally *all)
{
    int64_t ms = now_ms() - t->start_ms;
    bool clean = remove_dir(t);
    char *text;
    struct tally n = read_output(t, &text);

    if (n.passed + n.failed + n.skipped == 0)
        dprintf(STDOUT_FILENO, "testrun: %s ran no test\n", t->path);
    if (n.failed == 0 && (status != 0 || !clean || n.passed + n.skipped == 0))
        n.failed = 1;
    if (n.failed > 0 || n.skipped > 0)
        printf("--- output of %s ---\n%s\n", t->path, text);
    printf("%s %-40s %3d passed, %d failed, %d skipped %6.2f s\n", n.failed ? "FAIL" : "ok  ",
           t->path, n.passed, n.failed, n.skipped, (double)ms / 1000);
    fflush(stdout);
    free(text);
    close(t->out);
    all->passed += n.passed;
    all->failed += n.failed;
    all->skipped += n.skipped;
}

/* Runs after a signal to us: ends the keepers, and each keeper ends all processes below it. */
static void
stop_all(struct test *tests, int n)
{
    for (int i = 0; i < n; i++)
        if (tests[i].keeper > 0)
            kill(tests[i].keeper, SIGTERM);
    for (int i = 0; i < n; i++)
        if (tests[i].keeper > 0) {
            waitpid(tests[i].keeper, NULL, 0);
            remove_dir(&tests[i]);
        }
}

static bool
reap_finished(struct test *tests, int n, struct tally *all)
{
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);

    if (pid <= 0)
        return false;
    for (int i = 0; i < n; i++)
        if (tests[i].keeper == pid) {
            tests[i].keeper = 0;
            finish(&tests[i], WIFEXITED(status) ? WEXITSTATUS(status) : 128, all);
        }
    return true;
}

int
main(int argc, char **argv)
{
    int jobs = 2, seconds = 1800, opt;
    struct tally all = {0};
    sigset_t set = watched();
    char shared[PATH_MAX];

    while ((opt = getopt(argc, argv, "j:t:")) != -1) {
        if (opt == '?')
            return 2;
        *(opt == 'j' ? &jobs : &seconds) = (int)strtol(optarg, NULL, 10);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    int n = argc - optind, started = 0, ended = 0;
    struct test *tests = calloc((size_t)n + 1, sizeof *tests);
    assert(tests);
    make_shared(shared, sizeof shared);
    while (ended < n) {
        for (; started < n && started - ended < jobs; started++) {
            tests[started].path = argv[optind + started];
            start(&tests[started], seconds);
        }
        int sig = next_signal(now_ms() + 1000);
        if (sig != 0 && sig != SIGCHLD) {
            stop_all(tests, started);
            remove_tree(shared);
            printf("stopped by signal %d\n", sig);
            return 128 + sig;
        }
        while (reap_finished(tests, started, &all))
            ended++;
    }
    free(tests);
    remove_tree(shared);
    printf("%d passed, %d failed", all.passed, all.failed);
    printf(all.skipped ? ", %d skipped\n" : "\n", all.skipped);
    return all.failed > 0 || all.passed == 0;
}
