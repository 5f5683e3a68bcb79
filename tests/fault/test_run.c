/* The driver of the tests itself (tests/run.c): does it count, and does it see what a test leaves
 * behind? */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char output[20000];
static int limit_s = 60; /* for one script */

/* Runs the driver on one shell script; returns its exit status and keeps its output. */
static int
drive(const char *script)
{
    char path[300], command[900];
    const char *build = getenv("BUILD");

    snprintf(path, sizeof path, "%s/script", getenv("TMPDIR"));
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    chmod(path, 0755);
    snprintf(command, sizeof command, "%s/testrun -t %d %s 2>&1", build ? build : "build", limit_s,
             path);
    FILE *p = popen(command, "re");
    assert_non_null(p);
    output[fread(output, 1, sizeof output - 1, p)] = 0;
    int status = pclose(p);
    remove(path);
    return WEXITSTATUS(status);
}

static void
assert_output(const char *text)
{
    if (!strstr(output, text))
        fail_msg("no '%s' in:\n%s", text, output);
}

static void
counts(void **state)
{
    (void)state;
    assert_int_equal(drive("echo '[  PASSED  ] 3 test(s).'"), 0);
    assert_output("\n3 passed, 0 failed\n");
    assert_int_equal(drive("echo '[  PASSED  ] 2 test(s).'; echo '[  SKIPPED ] 1 test(s), listed'"),
                     0);
    assert_output("\n2 passed, 0 failed, 1 skipped\n");
    assert_int_equal(drive("echo '[  FAILED  ] 2 test(s), listed below:'; echo why; exit 2"), 1);
    assert_output("\n0 passed, 2 failed\n");
    assert_output("why");
}

static void
silence_is_failure(void **state)
{
    (void)state;
    assert_int_equal(drive("exit 0"), 1);
    assert_output("ran no test");
    assert_output("\n0 passed, 1 failed\n");
}

static void
crash_is_failure(void **state)
{
    (void)state;
    assert_int_equal(drive("echo '[  PASSED  ] 1 test(s).'; kill -SEGV $$"), 1);
    assert_output("signal 11");
    assert_output("\n1 passed, 1 failed\n");
}

static void
time_out_is_failure(void **state)
{
    (void)state;
    limit_s = 1;
    int status = drive("echo '[  PASSED  ] 1 test(s).'; exec tail -f /dev/null");
    limit_s = 60;
    assert_int_equal(status, 1);
    assert_output("timed out");
}

static void
leftovers_are_found_and_ended(void **state)
{
    (void)state;
    assert_int_equal(
        drive("setsid tail -f /dev/null & echo pid $! end; echo '[  PASSED  ] 1 test(s).'"), 1);
    assert_output("left running");
    long pid = strtol(strstr(output, "pid ") + 4, NULL, 10);
    assert_true(pid > 1);
    assert_int_equal(kill((pid_t)pid, 0), -1);
    assert_int_equal(drive("touch $TMPDIR/x; echo '[  PASSED  ] 1 test(s).'"), 1);
    assert_output("left in TMPDIR: x");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(silence_is_failure),
        cmocka_unit_test(crash_is_failure),
        cmocka_unit_test(time_out_is_failure),
        cmocka_unit_test(leftovers_are_found_and_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
