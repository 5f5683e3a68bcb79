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

/* Runs the driver with some options on one shell script, as the programs of the names; returns its
 * exit status and keeps its output. In the script $STATE is a file that all of them share. */
static int
drive_on(const char *options, const char *names, const char *script)
{
    char path[300], command[1800];
    const char *build = getenv("BUILD");

    snprintf(path, sizeof path, "%s/script", getenv("TMPDIR"));
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\nSTATE=%s/state\n%s\n", getenv("TMPDIR"), script);
    fclose(f);
    chmod(path, 0755);
    snprintf(command, sizeof command,
             "cd %s && for n in %s; do ln -s script $n; done; "
             "%s/testrun -j 1 -t %d %s %s 2>&1; s=$?; rm -f state script %s; exit $s",
             getenv("TMPDIR"), names, build ? build : "build", limit_s, options, names, names);
    FILE *p = popen(command, "re");
    assert_non_null(p);
    output[fread(output, 1, sizeof output - 1, p)] = 0;
    return WEXITSTATUS(pclose(p));
}

static int
drive(const char *script)
{
    return drive_on("", "./one", script);
}

/* How often the text stands in the output. */
static int
count(const char *text)
{
    int n = 0;

    for (const char *at = output; (at = strstr(at, text)); at++)
        n++;
    return n;
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

/* A script that fails when it runs first, and passes afterwards. */
#define FAILS_ONCE(how) \
    "if ! grep -qx $0 $STATE; then echo $0 >>$STATE; " how "; fi; echo '[  PASSED  ] 2 test(s).'"
#define FAILURE "echo '[  FAILED  ] 1 test(s), by chance'; exit 1"

static void
an_unsteady_program_gets_a_second_try(void **state)
{
    (void)state;
    assert_int_equal(drive_on("", "./a ./b ./c", FAILS_ONCE(FAILURE)), 0);
    assert_output("unsteady: ./b\n--- output of ./b ---\n[  FAILED  ] 1 test(s), by chance");
    assert_output("\n6 passed, 0 failed\n");
    assert_int_equal(count("unsteady: "), 3);
    /* those that fail each time */
    assert_int_equal(drive(FAILURE), 1);
    assert_output("again, alone: ./one");
    assert_int_equal(count("unsteady: "), 0);
    assert_output("\n0 passed, 1 failed\n");
    /* what a test had allocated when it failed */
    assert_int_equal(drive(FAILS_ONCE("echo '==7==ERROR: LeakSanitizer: detected memory leaks' "
                                      ">$TMPDIR/sanitizer.txt.one.7; " FAILURE)),
                     0);
    assert_int_equal(count("unsteady: "), 1);
}

static void
too_many_unsteady_programs_are_a_failure(void **state)
{
    (void)state;
    assert_int_equal(drive_on("", "./a ./b ./c ./d ./e", FAILS_ONCE(FAILURE)), 1);
    assert_output("\n0 passed, 5 failed\n");
    assert_int_equal(
        drive_on("", "./a ./b ./c ./d",
                 "[ $0 = ./d ] || { " FAILS_ONCE(FAILURE) "; exit; }\n"
                                                          "echo '[  PASSED  ] 1 test(s).'"),
        0);
    assert_int_equal(count("unsteady: "), 3);
    assert_output("\n7 passed, 0 failed\n");
}

static void
a_crash_gets_no_second_try(void **state)
{
    static const char *const crashes[] = {
        FAILS_ONCE("kill -SEGV $$"),
        FAILS_ONCE("echo 'crash: a program under test died of signal 11'; " FAILURE),
        FAILS_ONCE("echo 'Test failed with exception: Segmentation fault(11)'; " FAILURE),
        FAILS_ONCE("echo 'x.c:1:2: runtime error: index 3 out of bounds'; " FAILURE),
        FAILS_ONCE("echo '==1==ERROR: AddressSanitizer: stack-overflow'; " FAILURE),
        FAILS_ONCE("echo a leak >$TMPDIR/sanitizer.txt.7"),
        FAILS_ONCE("echo '==7==ERROR: LeakSanitizer: a leak' >$TMPDIR/sanitizer.txt.one.7"),
        /* of a program under test */
        FAILS_ONCE(
            "echo '==7==ERROR: LeakSanitizer: a leak' >$TMPDIR/sanitizer.txt.queuetop.7; " FAILURE),
    };

    (void)state;
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        assert_int_equal(drive(crashes[i]), 1);
        assert_int_equal(count("again, alone"), 0);
        assert_output(", 1 failed\n");
    }
    assert_output("a leak");
}

static void
repeats_until_a_failure(void **state)
{
    (void)state;
    assert_int_equal(drive_on("-n 20", "./a", "echo '[  PASSED  ] 1 test(s).'"), 0);
    assert_output("\n20 passed, 0 failed\n");
    assert_int_equal(drive_on("-n 20", "./a",
                              "echo x >>$STATE; [ $(wc -l <$STATE) -lt 5 ] || { " FAILURE
                              "; }; echo '[  PASSED  ] 1 test(s).'"),
                     1);
    assert_output("\n4 passed, 1 failed\n");
    assert_int_equal(count("again, alone"), 0);
}

static void
a_program_runs_with_the_server_of_its_name(void **state)
{
    (void)state;
    assert_int_equal(
        drive_on("-p 13=/opt/thirteen -p 1=/opt/one", "./a@13 ./a@1 ./a@14 ./a",
                 "echo server ${PATH%%:*} ${TEST_CLUSTER##*/}; [ -d $TEST_CLUSTER ] || exit 1\n"
                 "echo '[  SKIPPED ] 1 test(s), to be seen'; echo '[  PASSED  ] 1 test(s).'"),
        0);
    assert_output("server /opt/thirteen 13\n");
    assert_output("server /opt/one 1\n");
    assert_output("skip ./a@14");
    assert_output("\n3 passed, 0 failed, 4 skipped\n");
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
        cmocka_unit_test(an_unsteady_program_gets_a_second_try),
        cmocka_unit_test(too_many_unsteady_programs_are_a_failure),
        cmocka_unit_test(a_crash_gets_no_second_try),
        cmocka_unit_test(repeats_until_a_failure),
        cmocka_unit_test(a_program_runs_with_the_server_of_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
