/*
 * A running command: its input, the output that is kept, its end, and that no process of the
 * command is left. Commands that never end by themselves are `tail -f /dev/null`.
 */
#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/child.h"
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/base/secure.h"
#include "model/worker/worker_parts.h"
#include "tests/proc.h"

enum { LIMIT = 65536, TAIL = 4096, WAIT_MS = 60000 };

struct run {
    struct loop *loop;
    struct child *child;
    bool done;
    struct child_report r;
    char *output, *tail;
};

static void
on_end(void *ctx, const struct child_report *r)
{
    struct run *run = ctx;

    run->r = *r;
    run->output = xstrndup(r->output ? r->output : "", r->output_len);
    run->tail = xstrndup(r->tail, r->tail_len);
    run->done = true;
}

static void
on_sigchld(void *ctx, int signo)
{
    struct run *run = ctx;

    (void)signo;
    if (run->child && !run->done)
        child_check(run->child);
}

static void
begin(struct run *run, const char *script, struct child_start start)
{
    char sh[] = "sh", c[] = "-c", *text = xstrdup(script);
    char *argv[] = {sh, c, text, NULL};
    struct err e = {0};

    *run = (struct run){.loop = loop_new()};
    loop_on_signal(run->loop, SIGCHLD, on_sigchld, run);
    start.path = start.path ? start.path : "/bin/sh";
    start.argv = argv;
    start.env = environ;
    start.output_limit = LIMIT;
    start.tail_limit = TAIL;
    if (!start.grace_ms)
        start.grace_ms = WAIT_MS;
    run->child = child_new(run->loop, &start, on_end, run, &e);
    assert_non_null(run->child);
    free(text);
}

static void
finish(struct run *run)
{
    struct err e = {0};

    if (!loop_until(run->loop, &run->done, clock_ms() + WAIT_MS, &e))
        fail_msg("the command did not end: %s", e.text);
}

static void
end(struct run *run)
{
    child_free(run->child);
    loop_free(run->loop);
    free(run->output);
    free(run->tail);
}

static void
payload_goes_in_and_output_comes_back(void **state)
{
    struct run run;

    (void)state;
    begin(&run, "cat", (struct child_start){.input = "{\"a\": 1}", .input_len = 8});
    finish(&run);
    assert_int_equal(run.r.end, CHILD_EXITED);
    assert_int_equal(run.r.code, 0);
    assert_string_equal(run.output, "{\"a\": 1}");
    end(&run);
}

static void
large_input_is_written_piecemeal_and_output_cut(void **state)
{
    size_t len = 3 << 20, kept = 0;
    char *input = xmalloc(len), *result;
    struct run run;

    (void)state;
    memset(input, 'x', len);
    begin(&run, "cat", (struct child_start){.input = input, .input_len = len});
    free(input);
    finish(&run);
    assert_int_equal(run.r.output_all, len);
    assert_int_equal(run.r.output_len, LIMIT);
    end(&run);

    struct child_report r = {.output = "abc", .output_len = 3, .output_all = 10};
    result = report_result(&r, &kept);
    assert_string_equal(result, "abc\n[queuetop: cut, 3 of 10 bytes kept]\n");
    assert_int_equal(kept, strlen(result));
    free(result);
}

static void
a_command_need_not_read_its_input(void **state)
{
    size_t len = 1 << 20;
    char *input = xcalloc(1, len);
    struct run run;

    (void)state;
    begin(&run, "exec true", (struct child_start){.input = input, .input_len = len});
    free(input);
    finish(&run);
    assert_int_equal(run.r.code, 0);
    end(&run);
}

static void
standard_error_keeps_its_end(void **state)
{
    struct run run;

    (void)state;
    begin(&run, "seq 1 10000 >&2; echo last >&2; exit 3", (struct child_start){0});
    finish(&run);
    assert_int_equal(run.r.end, CHILD_EXITED);
    assert_int_equal(run.r.code, 3);
    assert_int_equal(run.r.tail_len, TAIL);
    assert_string_equal(run.tail + TAIL - 16, "9999\n10000\nlast\n");
    end(&run);
}

static void
a_signal_is_told_from_a_status(void **state)
{
    struct run run;

    (void)state;
    begin(&run, "kill -SEGV $$", (struct child_start){0});
    finish(&run);
    assert_int_equal(run.r.end, CHILD_SIGNALLED);
    assert_int_equal(run.r.code, SIGSEGV);
    end(&run);
}

static void
the_time_limit_ends_it(void **state)
{
    struct run run;

    (void)state;
    begin(&run, "exec tail -f /dev/null", (struct child_start){.run_timeout_ms = 50});
    finish(&run);
    assert_true(run.r.timed_out);
    assert_int_equal(run.r.code, SIGTERM);
    end(&run);
}

static void
who_ignores_the_first_signal_gets_the_second(void **state)
{
    struct run run;

    (void)state;
    begin(&run, "trap '' TERM; tail -f /dev/null & wait; wait; tail -f /dev/null",
          (struct child_start){.run_timeout_ms = 2000, .grace_ms = 100});
    finish(&run);
    assert_true(run.r.timed_out);
    assert_int_equal(run.r.code, SIGKILL);
    end(&run);
}

/* All processes of the group hold the writing end of a pipe. End of file on the pipe means that all
 * have ended. */
static void
a_kill_reaches_the_children_of_the_command(void **state)
{
    int ends[2];
    char byte;
    struct run run;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    begin(&run, "tail -f /dev/null & tail -f /dev/null & wait", (struct child_start){0});
    close(ends[1]);
    child_kill(run.child, 0);
    finish(&run);
    assert_int_equal(run.r.code, SIGKILL);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    end(&run);
}

/* Somebody else took the status: the end of the command is seen all the same, as a failure. */
static void
an_end_without_a_status_is_an_end(void **state)
{
    struct run run;
    char how[80];

    (void)state;
    begin(&run, "exec cat", (struct child_start){.input = "abc", .input_len = 3});
    assert_true(waitpid(-1, NULL, 0) > 0);
    child_check(run.child);
    assert_true(run.done);
    assert_int_equal(run.r.end, CHILD_UNKNOWN);
    assert_string_equal(run.output, "abc");
    report_how(&run.r, how, sizeof how);
    assert_string_equal(how, "ended, and its exit status is not known");
    end(&run);
}

static void
what_cannot_be_run_says_so(void **state)
{
    struct run run;

    (void)state;
    begin(&run, "", (struct child_start){.path = "/nonexistent/command"});
    finish(&run);
    assert_int_equal(run.r.end, CHILD_NOT_STARTED);
    assert_int_equal(run.r.code, ENOENT);
    end(&run);
}

static bool
is_over(pid_t pid)
{
    int64_t until = clock_ms() + WAIT_MS;

    while (proc_lives(pid) && clock_ms() < until)
        poll(NULL, 0, 5);
    return clock_ms() < until;
}

/* A process that the command left in its group is ended too. With may_leave it lives on. */
static void
what_is_left_ends_too(void **state)
{
    static const char script[] =
        "exec 3>&1; (exec >/dev/null 2>&1 3>&-; exec tail -f /dev/null) & echo $!";

    (void)state;
    for (int may_leave = 0; may_leave < 2; may_leave++) {
        struct run run;
        begin(&run, script, (struct child_start){.may_leave = may_leave});
        finish(&run);
        pid_t left = (pid_t)strtol(run.output, NULL, 10);
        assert_true(left > 1);
        if (may_leave) {
            assert_int_equal(kill(left, 0), 0);
            kill(left, SIGKILL);
        } else {
            assert_true(is_over(left));
        }
        end(&run);
    }
}

static void
commands_are_looked_up(void **state)
{
    struct err e = {0};
    char *path = NULL;

    (void)state;
    assert_true(child_find("sh", &path, &e));
    assert_int_equal(path[0], '/');
    free(path);
    assert_false(child_find("no-such-command-here", &path, &e));
    assert_int_equal(e.kind, ERR_USAGE);
    assert_non_null(strstr(e.text, "no-such-command-here"));
    assert_false(child_find("/etc", &path, &e));
    assert_false(child_find("/etc/passwd", &path, &e));
}

/* --- the texts of an answer --- */

static void
check_error(const char *tail, bool is_cut, const char *error, const char *trace)
{
    struct child_report r = {.end = CHILD_EXITED,
                             .code = 3,
                             .tail = tail,
                             .tail_len = strlen(tail),
                             .tail_all = strlen(tail) + is_cut};
    char *got_trace = NULL, how[80];

    report_how(&r, how, sizeof how);
    char *got = report_error(&r, how, &got_trace);
    assert_string_equal(got, error);
    if (trace)
        assert_string_equal(got_trace, trace);
    else
        assert_null(got_trace);
    free(got);
    free(got_trace);
}

static void
errors_are_one_line_and_a_trace(void **state)
{
    (void)state;
    check_error("", false, "exit status 3", NULL);
    check_error("no such file\n", false, "no such file (exit status 3)", NULL);
    check_error("\n  \nbad\r\nmore\nlines\n", false, "bad (exit status 3)", "more\nlines\n");
    check_error("bad\nat f\nat g\n", false, "bad (exit status 3)", "at f\nat g\n");
    check_error("Traceback (most recent call last):\n  f()\nKeyError: 'a'\n", false,
                "KeyError: 'a' (exit status 3)",
                "Traceback (most recent call last):\n  f()\nKeyError: 'a'\n");
    check_error("of a line\nlast words\n", true, "last words (exit status 3)",
                "of a line\nlast words\n");
    check_error("bad \xff byte", false, "bad \xEF\xBF\xBD byte (exit status 3)", NULL);
}

static void
a_signal_is_named(void **state)
{
    struct child_report r = {.end = CHILD_SIGNALLED, .code = SIGKILL};
    char how[80];

    (void)state;
    report_how(&r, how, sizeof how);
    assert_string_equal(how, "killed by signal 9 (Killed)");
    char *clean = report_clean("a\0b", 3);
    assert_string_equal(clean, "a\xEF\xBF\xBD"
                               "b");
    free(clean);
}

/* After this call close_range fails as on a kernel that does not have it. */
static bool
forget_close_range(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           syscall(__NR_close_range, ~0U, ~0U, 0) < 0 && errno == ENOSYS;
}

/* Returns 0 if descriptors 11 to 13 were closed and their neighbours were not, and then all from 14
 * on. */
static int
close_some(bool is_old)
{
    for (int fd = 10; fd <= 15; fd++)
        if (dup2(STDERR_FILENO, fd) != fd)
            return 1;
    if (is_old && !forget_close_range())
        return 2;
    secure_close(11, 13);
    secure_close(13, 12);
    for (int fd = 10; fd <= 15; fd++)
        if ((fcntl(fd, F_GETFD) < 0) != (fd >= 11 && fd <= 13))
            return 3;
    secure_close(14, ~0U);
    return fcntl(10, F_GETFD) < 0 || fcntl(14, F_GETFD) >= 0 || fcntl(15, F_GETFD) >= 0 ? 4 : 0;
}

static void
descriptors_are_closed_on_old_kernels_too(void **state)
{
    (void)state;
    for (int is_old = 0; is_old < 2; is_old++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(close_some(is_old));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_goes_in_and_output_comes_back),
        cmocka_unit_test(large_input_is_written_piecemeal_and_output_cut),
        cmocka_unit_test(a_command_need_not_read_its_input),
        cmocka_unit_test(standard_error_keeps_its_end),
        cmocka_unit_test(a_signal_is_told_from_a_status),
        cmocka_unit_test(the_time_limit_ends_it),
        cmocka_unit_test(who_ignores_the_first_signal_gets_the_second),
        cmocka_unit_test(a_kill_reaches_the_children_of_the_command),
        cmocka_unit_test(an_end_without_a_status_is_an_end),
        cmocka_unit_test(what_cannot_be_run_says_so),
        cmocka_unit_test(what_is_left_ends_too),
        cmocka_unit_test(commands_are_looked_up),
        cmocka_unit_test(errors_are_one_line_and_a_trace),
        cmocka_unit_test(a_signal_is_named),
        cmocka_unit_test(descriptors_are_closed_on_old_kernels_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
