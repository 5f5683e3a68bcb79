/*
 * `queuetop --demo`: that it shows a live queue, and that nothing of it stays, whichever of its
 * processes ends by whatever signal. Processes of a demo are known by our TMPDIR: it stands in
 * their arguments or is where they work.
 */
#include "tests/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/term.h"

enum { WAIT_MS = 120000, LOOK_MS = 40, PIDS_MAX = 200 };

static const char *const queues[] = {"image.resize", "search.index", "thumb.video", "mail.send",
                                     "webhook.out",  "billing.sync", "sms.send",    "report.daily",
                                     "invoice.pdf",  "audit.ship"};

static int64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- what there is of a demo --- */

static size_t
read_proc(pid_t pid, const char *name, char *out, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    if (f)
        fclose(f);
    for (size_t i = 0; i < n; i++)
        if (out[i] == 0)
            out[i] = ' ';
    out[n] = 0;
    return n;
}

static bool
is_of_demo(pid_t pid, char *line, size_t size)
{
    char path[64], cwd[4096] = "";

    snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
    ssize_t n = readlink(path, cwd, sizeof cwd - 1);
    cwd[n > 0 ? n : 0] = 0;
    read_proc(pid, "cmdline", line, size);
    return strstr(cwd, getenv("TMPDIR")) || strstr(line, getenv("TMPDIR"));
}

/* Finds the first process whose arguments hold `word`; 0 = there is none. The demo itself is never
 * found: TMPDIR is not in its arguments, and it has another working directory. */
static pid_t
find_process(const char *word)
{
    DIR *proc = opendir("/proc");
    pid_t found = 0;
    char line[4096];

    assert_non_null(proc);
    for (const struct dirent *d; !found && (d = readdir(proc));) {
        pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && is_of_demo(pid, line, sizeof line) && strstr(line, word))
            found = pid;
    }
    closedir(proc);
    return found;
}

/* The demo ends its processes by SIGKILL. One that was looking for leaks then leaves a report that
 * says only that it could not look. */
static void
drop_reports_that_were_cut(void)
{
    char pattern[4096], text[1000];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/sanitizer.*", getenv("TMPDIR"));
    if (glob(pattern, 0, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *f = fopen(found.gl_pathv[i], "re");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        text[n] = 0;
        if (f)
            fclose(f);
        if (strstr(text, "Unable to get registers") && !strstr(text, "ERROR: ") &&
            !strstr(text, "runtime error: "))
            unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}

static bool
dir_is_empty(void)
{
    drop_reports_that_were_cut();
    return rmdir(getenv("TMPDIR")) == 0 && mkdir(getenv("TMPDIR"), 0711) == 0;
}

static void
wait_until(bool (*is_so)(const char *), const char *arg, const char *what)
{
    int64_t deadline = now_ms() + WAIT_MS;

    while (!is_so(arg)) {
        if (now_ms() > deadline) {
            print_error("waited in vain: %s %s\n", what, arg);
            _fail(__FILE__, __LINE__);
        }
        poll(NULL, 0, LOOK_MS);
    }
}

static bool
process_is_there(const char *word)
{
    return find_process(word) > 0;
}

static bool
nothing_is_left(const char *unused)
{
    (void)unused;
    return !find_process("") && dir_is_empty();
}

/* --- a demo without a terminal --- */

struct run {
    pid_t pid;
    int out; /* its standard output */
};

static struct run
start(const char *seconds)
{
    int out[2];
    struct run r;

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    r.pid = fork();
    if (r.pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execl(getenv("QUEUETOP"), "queuetop", "--demo", seconds, (char *)NULL);
        _exit(127);
    }
    assert_true(r.pid > 0);
    close(out[1]);
    r.out = out[0];
    return r;
}

/* Its exit status, or 128 + signal; its output in text. */
static int
finish(struct run *r, char *text, size_t size)
{
    int status;
    size_t len = 0;

    for (ssize_t n; (n = read(r->out, text + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = 0;
    close(r->out);
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    return proc_code(status);
}

static void
prints_the_counts_and_leaves_nothing(void **state)
{
    char text[8192];
    struct run r = start("5");

    (void)state;
    int status = finish(&r, text, sizeof text);
    print_message("%s", text);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        assert_non_null(strstr(text, queues[i]));
    assert_true(nothing_is_left(""));
}

/* when: the word of a process that must be there first */
static void
ends_by(int signo, const char *when, int expected)
{
    char text[8192];
    struct run r = start("100");

    print_message("signal %d once there is '%s'\n", signo, when);
    wait_until(process_is_there, when, "for the process");
    assert_int_equal(kill(r.pid, signo), 0);
    assert_int_equal(finish(&r, text, sizeof text), expected);
    wait_until(nothing_is_left, "", "for the end");
}

static void
leaves_nothing_after_a_signal(void **state)
{
    (void)state;
    ends_by(SIGTERM, "initdb", 128 + SIGTERM);
    ends_by(SIGTERM, "demo-step load", 128 + SIGTERM);
    ends_by(SIGINT, "demo-step load", 128 + SIGINT);
    ends_by(SIGHUP, "demo-step load", 128 + SIGHUP);
}

static void
leaves_nothing_after_kill_9(void **state)
{
    (void)state;
    ends_by(SIGKILL, "initdb", 128 + SIGKILL);
    ends_by(SIGKILL, "demo-job", 128 + SIGKILL);
}

static pid_t
child_of(pid_t parent)
{
    char path[64], text[64];

    snprintf(path, sizeof path, "task/%d/children", (int)parent);
    read_proc(parent, path, text, sizeof text);
    return (pid_t)strtol(text, NULL, 10);
}

static void
leaves_nothing_when_its_keeper_or_server_is_killed(void **state)
{
    char text[8192];

    for (int who = 0; who < 2; who++) {
        struct run r = start("100");
        wait_until(process_is_there, "demo-job", "for the process");
        pid_t victim = who == 0 ? child_of(r.pid) : find_process("bin/postgres -D");
        assert_true(victim > 0);
        kill(victim, SIGKILL);
        assert_int_equal(finish(&r, text, sizeof text), 4);
        wait_until(nothing_is_left, "", "for the end");
    }
    (void)state;
}

/* --- a demo in a terminal --- */

/* The workers do a tenth of the wanted work: the demo lowers its load, so the backlog stays small;
 * once they have caught up, it is whole again. */
static void
load_fits_the_machine(void)
{
    char pattern[4096], conninfo[4096];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/queuetop-demo-*", getenv("TMPDIR"));
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    snprintf(conninfo, sizeof conninfo, "host=%s dbname=demo user=ops", found.gl_pathv[0]);
    globfree(&found);
    PGconn *conn = PQconnectdb(conninfo);
    PGresult *r =
        PQexec(conn, "with recursive run (second, ready) as (select 0, 670::float union all "
                     "select second + 2, ready + 2 * (30 * public.demo_pace(ready::bigint) - 3) "
                     "from run where second < 600) "
                     "select max(ready) < 1500 and public.demo_pace(100) = 1 from run");
    assert_string_equal(PQerrorMessage(conn), "");
    assert_string_equal(PQgetvalue(r, 0, 0), "t");
    PQclear(r);
    PQfinish(conn);
}

static void
opens_the_console_on_a_live_queue(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), "--demo", NULL};
    struct vt vt;

    (void)state;
    vt_spawn(&vt, 24, 80, argv, NULL);
    assert_true(vt_came(&vt, "QUEUE", WAIT_MS));
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        assert_true(vt_came(&vt, queues[i], WAIT_MS));
    assert_true(vt_came(&vt, "ops:operator", WAIT_MS));
    load_fits_the_machine();
    vt_keys(&vt, "4");
    assert_true(vt_came(&vt, "worker-4", WAIT_MS));
    vt_keys(&vt, "7"); /* somebody's report holds vacuum back */
    assert_true(vt_came(&vt, "nightly-report", WAIT_MS));
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    assert_true(nothing_is_left(""));
}

static void
leaves_nothing_when_the_terminal_goes(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), "--demo", NULL};
    struct vt vt;

    (void)state;
    vt_spawn(&vt, 24, 80, argv, NULL);
    assert_true(vt_came(&vt, "audit.ship", WAIT_MS));
    vt_signal(&vt, SIGHUP);
    vt_exit_status(&vt);
    vt_done(&vt);
    assert_true(nothing_is_left(""));
}

static void
ends_by_itself_in_a_terminal_too(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), "--demo", "3", NULL};
    struct vt vt;

    (void)state;
    vt_spawn(&vt, 24, 80, argv, NULL);
    assert_true(vt_came(&vt, "QUEUE", WAIT_MS));
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    assert_true(nothing_is_left(""));
}

/* Where the programs and the data are, each in a line of its own that fits 80 columns. */
static void
says_where_it_works(void **state)
{
    char *err;

    (void)state;
    assert_int_equal(proc_run(NULL, NULL, &err, "--demo 1"), 0);
    assert_non_null(strstr(err, "queuetop: starting a private PostgreSQL\n  programs: /"));
    const char *data = strstr(err, "\n  data: ");
    assert_non_null(data);
    assert_non_null(strstr(data, getenv("TMPDIR")));
    assert_true(strcspn(data + 1, "\n") <= 80);
    free(err);
    assert_true(nothing_is_left(""));
}

/* --- what it refuses --- */

static void
says_what_is_wrong(void **state)
{
    char text[100], dir[400], tmp[200];
    struct run r = start("0");

    (void)state;
    assert_int_equal(finish(&r, text, sizeof text), 2);
    r = start("host=elsewhere");
    assert_int_equal(finish(&r, text, sizeof text), 2);
    r = start(NULL); /* no terminal, no SECONDS */
    assert_int_equal(finish(&r, text, sizeof text), 2);

    snprintf(tmp, sizeof tmp, "%s", getenv("TMPDIR"));
    snprintf(dir, sizeof dir, "%s/%0100d", tmp, 0); /* too long for a socket's path */
    setenv("TMPDIR", dir, 1);
    r = start("5");
    setenv("TMPDIR", tmp, 1);
    assert_int_equal(finish(&r, text, sizeof text), 4);
    assert_true(nothing_is_left(""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_the_counts_and_leaves_nothing),
        cmocka_unit_test(leaves_nothing_after_a_signal),
        cmocka_unit_test(leaves_nothing_after_kill_9),
        cmocka_unit_test(leaves_nothing_when_its_keeper_or_server_is_killed),
        cmocka_unit_test(opens_the_console_on_a_live_queue),
        cmocka_unit_test(leaves_nothing_when_the_terminal_goes),
        cmocka_unit_test(ends_by_itself_in_a_terminal_too),
        cmocka_unit_test(says_where_it_works),
        cmocka_unit_test(says_what_is_wrong),
    };

    return cmocka_run_group_tests_name("demo", tests, NULL, NULL);
}
