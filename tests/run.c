/*
 * The driver behind `make check`: testrun [-j JOBS] [-t SECONDS] [-n TIMES] [-p SERVER=DIR]...
 * PROGRAM[@SERVER]...
 *
 * Runs test programs, a few at a time, prints the whole output of those that failed, and closes
 * with the line `N passed, N failed[, N skipped]`. Each program has a keeper process, which is the
 * reaper of everything below it: so whatever a test leaves running is found, reported as a failure
 * and ended, also when this driver itself is told to stop. Each program gets an empty TMPDIR that
 * must be empty again when it ends. A crash, a time-out and a program that ran no test count as a
 * failure. The programs share one folder, TEST_CLUSTER: the first of them leaves an empty server
 * there, the others copy it (server.c).
 *
 * PROGRAM@13 runs with the directory of -p 13=DIR first in PATH. Without such a -p it is skipped.
 * BUILD and QUEUETOP of a program in BUILD/tests/ are those of its own build.
 *
 * A program that failed runs a second time, alone, when all others have ended. If it passes then,
 * its first failure does not count, but `unsteady: NAME` and the first output are printed. There is
 * no second time after a crash or a report of a sanitizer in any program, nor if more than
 * UNSTEADY_MAX programs failed: such a run has failed. With -n there is none either: each program
 * runs up to TIMES times, and the first failure ends the run.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    GRACE_MS = 10000,
    TIMED_OUT = 124,
    LEFT_BEHIND = 125,
    CRASHED = 128,
    UNSTEADY_MAX = 3,
    SERVERS = 16
};

#define ROOM                                                                            \
    ((uint64_t)8 << 30) /* what the folders may need: some programs fill a million rows \
                         */

/* The reports of sanitizers are files of this name in TMPDIR: a program in a terminal has no other
 * place to write them to. */
#define REPORT "sanitizer."

struct counts {
    int passed, failed, skipped;
};

struct test {
    const char *name; /* as it was given */
    char path[PATH_MAX];
    const char *server; /* after the @, NULL = the system's */
    pid_t keeper;
    int out; /* its output, an unlinked file */
    char dir[PATH_MAX];
    int64_t start_ms;
    double busy; /* processor seconds, its servers and programs included */
    struct counts n;
    char *text;       /* what it printed, if it failed */
    bool has_leaked;  /* a report of a sanitizer, about a leak of the test program itself */
    bool has_crashed; /* also: any other report */
};

/* The arguments of -p, "13=/dir". */
static struct {
    const char *at[SERVERS];
    int n;
} servers;

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
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : CRASHED);
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

/* The directory of a server's programs; NULL = there was no -p for it. */
static const char *
server_dir(const char *server)
{
    size_t len = strlen(server);

    for (int i = 0; i < servers.n; i++)
        if (!strncmp(servers.at[i], server, len) && servers.at[i][len] == '=')
            return servers.at[i] + len + 1;
    return NULL;
}

/* The server that a program takes: its programs stand first in PATH, and its empty server is copied
 * from a folder of its own. */
static void
choose_server(const char *server)
{
    const char *old = getenv("PATH"), *shared = getenv("TEST_CLUSTER");
    char text[2 * PATH_MAX];

    snprintf(text, sizeof text, "%s:%s", server_dir(server), old ? old : "/usr/bin:/bin");
    setenv("PATH", text, 1);
    snprintf(text, sizeof text, "%s/%s", shared, server);
    if (mkdir(text, 0777) == 0 ? chmod(text, 01777) != 0 : errno != EEXIST)
        die(text);
    setenv("TEST_CLUSTER", text, 1);
}

static void
choose_build(const char *path)
{
    char build[PATH_MAX], text[PATH_MAX + 16];
    const char *end = strstr(path, "/tests/");

    if (!end)
        return;
    snprintf(text, sizeof text, "%.*s", (int)(end - path), path);
    if (!realpath(text, build))
        die(text);
    setenv("BUILD", build, 1);
    snprintf(text, sizeof text, "%s/queuetop", build);
    setenv("QUEUETOP", text, 1);
}

static void
report_into(const char *dir, const char *variable)
{
    const char *old = getenv(variable);
    char text[2 * PATH_MAX];

    snprintf(text, sizeof text, "%s%slog_exe_name=1:log_path=%s/" REPORT "txt", old ? old : "",
             old ? ":" : "", dir);
    setenv(variable, text, 1);
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
    choose_build(t->path);
    if (t->server)
        choose_server(t->server);
    report_into(t->dir, "ASAN_OPTIONS");
    report_into(t->dir, "UBSAN_OPTIONS");
    execl(t->path, t->path, (char *)NULL);
    perror(t->path);
    _exit(127);
}

/* The figure of a line of /proc/meminfo, in bytes; 0 = there is none. */
static uint64_t
memory(const char *name)
{
    char line[200];
    uint64_t bytes = 0;
    FILE *f = fopen("/proc/meminfo", "re");

    while (f && bytes == 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)))
            bytes = 1024 * strtoull(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
    return bytes;
}

/* Where the folders of the programs are: TMPDIR, else in memory if there is enough of it, because
 * most of what a throwaway server does with its files is to create and to remove them. */
static const char *
scratch(void)
{
    static const char shm[] = "/dev/shm";
    static const char *place;
    struct statvfs fs;

    if (!place)
        place = getenv("TMPDIR");
    if (!place || !*place)
        place = statvfs(shm, &fs) == 0 && !(fs.f_flag & (ST_NOEXEC | ST_RDONLY)) &&
                        access(shm, W_OK) == 0 && fs.f_bavail * fs.f_frsize > ROOM &&
                        memory("MemAvailable:") > ROOM
                    ? shm
                    : "/tmp";
    return place;
}

static void
start(struct test *t, int seconds)
{
    FILE *out = tmpfile();

    if (!out)
        die("tmpfile");
    t->out = fcntl(fileno(out), F_DUPFD_CLOEXEC, 3);
    fclose(out);
    fcntl(t->out, F_SETFL, O_APPEND);
    snprintf(t->dir, sizeof t->dir, "%s/qtest-XXXXXX", scratch());
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
    snprintf(dir, size, "%s/qtest-XXXXXX", scratch());
    if (!mkdtemp(dir) || chmod(dir, 01777) || setenv("TEST_CLUSTER", dir, 1))
        die(dir);
}

/* --- the books -------------------------------------------------------------------------------- */

/* Adds the report of a sanitizer to the output of the test, and notes whose it is. The name of its
 * file ends with the program's name and its pid. */
static void
add_report(struct test *t, const char *name)
{
    char path[2 * PATH_MAX], own[PATH_MAX + sizeof REPORT "txt.."], text[100000];
    const char *base = strrchr(t->path, '/');

    snprintf(own, sizeof own, REPORT "txt.%s.", base ? base + 1 : t->path);
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[got > 0 ? got : 0] = 0;
    dprintf(t->out, "%s", text);
    if (fd >= 0)
        close(fd);
    if (!strncmp(name, own, strlen(own)) && strstr(text, "ERROR: LeakSanitizer"))
        t->has_leaked = true;
    else
        t->has_crashed = true;
}

/* Removes the private directory. Returns false if the test had left something in it. */
static bool
remove_dir(struct test *t)
{
    if (rmdir(t->dir) == 0)
        return true;
    DIR *dir = opendir(t->dir);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
            continue;
        dprintf(t->out, "testrun: left in TMPDIR: %s\n", d->d_name);
        if (!strncmp(d->d_name, REPORT, strlen(REPORT)))
            add_report(t, d->d_name);
    }
    if (dir)
        closedir(dir);
    remove_tree(t->dir);
    return false;
}

/* True if a test program, or a program that it had started, crashed: proc.c and term.c print
 * `crash: `, cmocka reports its own. A test that failed was left by longjmp: what its program had
 * allocated is reported as a leak, which says nothing. */
static bool
tells_of_crash(const struct test *t, const char *text, int failed)
{
    static const char *const words[] = {"crash: ", "Test failed with exception",
                                        "ERROR: AddressSanitizer", "runtime error: "};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]))
            return true;
    return t->has_leaked && failed == 0;
}

/* cmocka closes each group with lines such as `[  PASSED  ] 3 test(s).` */
static void
count_line(const char *line, struct counts *n)
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

static struct counts
read_output(const struct test *t, char **text)
{
    struct counts n = {0};
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
print_output(const char *name, const char *text)
{
    printf("--- output of %s ---\n%s\n", name, text);
}

static void
finish(struct test *t, int status)
{
    int64_t ms = now_ms() - t->start_ms;
    bool is_clean = remove_dir(t);
    char *text;
    struct counts n = read_output(t, &text);

    t->has_crashed |= status == CRASHED || tells_of_crash(t, text, n.failed);
    if (n.passed + n.failed + n.skipped == 0)
        printf("testrun: %s ran no test\n", t->name);
    if (n.failed == 0 && (status != 0 || !is_clean || n.passed + n.skipped == 0))
        n.failed = 1;
    if (n.failed > 0 || n.skipped > 0)
        print_output(t->name, text);
    printf("%s %-40s %3d passed, %d failed, %d skipped %6.2f s, busy %6.2f s\n",
           n.failed ? "FAIL" : "ok  ", t->name, n.passed, n.failed, n.skipped, (double)ms / 1000,
           t->busy);
    fflush(stdout);
    close(t->out);
    t->has_crashed &= n.failed > 0;
    if (n.failed > 0)
        t->text = text;
    else
        free(text);
    t->n = n;
}

/* Runs after a signal to us, or after the first failure with -n: ends the keepers, and each keeper
 * ends all processes below it. */
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

static double
seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* The test that has ended; NULL = none. */
static struct test *
reap_finished(struct test *tests, int n)
{
    int status;
    struct rusage used;
    pid_t pid = wait4(-1, &status, WNOHANG, &used);

    if (pid <= 0)
        return NULL;
    for (int i = 0; i < n; i++)
        if (tests[i].keeper == pid) {
            tests[i].keeper = 0;
            tests[i].busy = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
            finish(&tests[i], WIFEXITED(status) ? WEXITSTATUS(status) : CRASHED);
            return &tests[i];
        }
    return NULL;
}

/* --- the run ---------------------------------------------------------------------------------- */

struct how {
    int jobs, seconds, times;
};

static bool
is_skipped(struct test *t)
{
    if (!t->server || server_dir(t->server))
        return false;
    printf("skip %-40s there is no server %s\n", t->name, t->server);
    t->n.skipped = 1;
    return true;
}

/* Runs them all. Returns the signal that ended the run, or 0. */
static int
run_all(struct test *tests, int n, const struct how *how)
{
    int started = 0, running = 0;

    while (started < n || running > 0) {
        for (; started < n && running < how->jobs; started++)
            if (!is_skipped(&tests[started])) {
                start(&tests[started], how->seconds);
                running++;
            }
        int sig = running > 0 ? next_signal(now_ms() + 1000) : 0;
        bool has_failed = false;
        for (struct test *t; (t = reap_finished(tests, started)); running--)
            has_failed |= t->n.failed > 0;
        if ((sig != 0 && sig != SIGCHLD) || (has_failed && how->times > 1)) {
            stop_all(tests, started);
            return sig == SIGCHLD ? 0 : sig;
        }
    }
    return 0;
}

/* Runs the failed ones again, alone. Returns the signal that ended the run, or 0. */
static int
run_failed(struct test *tests, int n, const struct how *how)
{
    int failed = 0, sig = 0;

    for (int i = 0; i < n; i++) {
        failed += tests[i].n.failed > 0;
        if (tests[i].has_crashed)
            return 0;
    }
    for (int i = 0; i < n && failed <= UNSTEADY_MAX && sig == 0; i++) {
        if (tests[i].n.failed == 0)
            continue;
        char *first = tests[i].text;
        struct how alone = {1, how->seconds, 1};
        printf("again, alone: %s\n", tests[i].name);
        tests[i].text = NULL;
        sig = run_all(&tests[i], 1, &alone);
        if (tests[i].n.failed == 0 && sig == 0) {
            printf("unsteady: %s\n", tests[i].name);
            print_output(tests[i].name, first);
        }
        free(first);
    }
    return sig;
}

/* The tests of the command line, each one as many times as -n says. */
static struct test *
list_tests(char *const *names, int n, int times)
{
    struct test *tests = calloc((size_t)n * times + 1, sizeof *tests);

    assert(tests);
    for (int i = 0; i < n * times; i++) {
        const char *name = names[i % n], *base = strrchr(name, '/');
        const char *at = strrchr(base ? base : name, '@');
        tests[i].name = name;
        tests[i].server = at ? at + 1 : NULL;
        snprintf(tests[i].path, sizeof tests[i].path, "%.*s",
                 at ? (int)(at - name) : (int)strlen(name), name);
    }
    return tests;
}

static int
close_books(struct test *tests, int n)
{
    struct counts all = {0};

    for (int i = 0; i < n; i++) {
        all.passed += tests[i].n.passed;
        all.failed += tests[i].n.failed;
        all.skipped += tests[i].n.skipped;
        free(tests[i].text);
    }
    printf("%d passed, %d failed", all.passed, all.failed);
    printf(all.skipped ? ", %d skipped\n" : "\n", all.skipped);
    return all.failed > 0 || all.passed == 0;
}

int
main(int argc, char **argv)
{
    struct how how = {.jobs = 2, .seconds = 1800, .times = 1};
    int opt;
    sigset_t set = watched();
    char shared[PATH_MAX];

    while ((opt = getopt(argc, argv, "j:t:n:p:")) != -1) {
        if (opt == '?' || (opt == 'p' && servers.n == SERVERS))
            return 2;
        if (opt == 'p')
            servers.at[servers.n++] = optarg;
        else
            *(opt == 'j'   ? &how.jobs
              : opt == 't' ? &how.seconds
                           : &how.times) = (int)strtol(optarg, NULL, 10);
    }
    if (how.times < 1 || optind == argc) {
        fprintf(stderr, "usage: testrun [-j JOBS] [-t SECONDS] [-n TIMES] [-p SERVER=DIR] "
                        "PROGRAM[@SERVER]...\n");
        return 2;
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    int n = (argc - optind) * how.times;
    struct test *tests = list_tests(argv + optind, argc - optind, how.times);
    make_shared(shared, sizeof shared);
    int sig = run_all(tests, n, &how);
    if (sig == 0 && how.times == 1)
        sig = run_failed(tests, n, &how);
    remove_tree(shared);
    int status = close_books(tests, n);
    free(tests);
    if (sig == 0)
        return status;
    printf("stopped by signal %d\n", sig);
    return 128 + sig;
}
