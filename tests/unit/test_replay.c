/* replay() checks the events of the soak test: it finds each fault of order, and no fault in good
 * events. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fault/replay.h"

#define JOB "\t00000000-0000-7000-8000-00000000000"

/* Two jobs. The first job fails once, its lease expires once, a late answer is rejected, then the
 * job is done. The second job is given back, then an operator cancels it. */
static const char good[] =
    "commit\t10\t20" JOB "1\t-\t0\t0\t0\tacked\n"
    "claim\t15\t40" JOB "1\tn1\t7\t1\t1\t-\n" /* seen before the pusher heard of it */
    "answer\t50\t60" JOB "1\tn1\t7\t1\t1\tretry\n"
    "claim\t70\t80" JOB "1\tn1\t8\t1\t3\t-\n"
    "claim\t100\t130" JOB "1\tn2\t9\t1\t5\t-\n"
    "answer\t120\t140" JOB "1\tn1\t8\t1\t3\tlost\n"
    "answer\t150\t160" JOB "1\tn2\t9\t1\t5\tdone\n"
    "answer\t170\t180" JOB "1\tn2\t9\t1\t5\tlost\n"
    "commit\t10\t20" JOB "2\t-\t0\t0\t0\tacked\n"
    "claim\t30\t40" JOB "2\tn1\t7\t1\t2\t-\n"
    "answer\t50\t90" JOB "2\tn1\t7\t1\t2\tgiven back\n"
    "claim\t60\t100" JOB "2\tn2\t8\t2\t4\t-\n" /* overlaps the give-back */
    "ended\t110\t120" JOB "2\t-\t0\t0\t0\tby act\n";

static const struct {
    const char *rule, *line;
} faults[] = {
    {"claimed before it is pushed", "claim\t1\t9" JOB "2\tn1\t6\t1\t1\t-\n"         },
    {"one number, two claims",      "claim\t45\t49" JOB "1\tn3\t12\t1\t1\t-\n"      },
    {"numbers run backwards",       "claim\t90\t99" JOB "1\tn1\t7\t1\t2\t-\n"       },
    {"answer of nobody's claim",    "answer\t50\t60" JOB "1\tn1\t7\t2\t2\tretry\n"  },
    {"answer of an older claim",    "answer\t131\t139" JOB "1\tn1\t8\t1\t3\tretry\n"},
    {"two ends of one claim",       "answer\t150\t165" JOB "1\tn2\t9\t1\t5\tdone\n" },
    {"goes on after its end",       "claim\t161\t169" JOB "1\tn1\t9\t1\t9\t-\n"     },
    {"goes on after its end",       "claim\t121\t130" JOB "2\tn1\t9\t1\t9\t-\n"     },
    {"is no event",                 "claim\t121\t130" JOB "2\tn1\t9\n"              },
    {"is no event",                 "claims\t121\t130" JOB "2\tn1\t9\t1\t9\t-\n"    },
    {"is no event",                 "claim\t131\t130" JOB "2\tn1\t9\t1\t9\t-\n"     },
};

/* Returns the text of replay() for the good events and one more. *n gets its result. */
static char *
told(const char *more, int *n)
{
    enum { MOST = 8000 };
    char *text = calloc(1, MOST);
    long events;
    FILE *f = fopen("order", "we");

    assert_non_null(f);
    assert_non_null(text);
    assert_true(fputs(good, f) >= 0 && fputs(more, f) >= 0 && fclose(f) == 0);
    int err = dup(2);
    assert_non_null(freopen("said", "we", stderr));
    *n = replay("order", &events);
    fflush(stderr);
    assert_int_equal(dup2(err, 2), 2);
    close(err);
    f = fopen("said", "re");
    assert_non_null(f);
    assert_true(fread(text, 1, MOST - 1, f) < MOST - 1);
    fclose(f);
    return text;
}

static void
what_may_happen_is_no_fault(void **state)
{
    int n;
    char *text = told("", &n);

    (void)state;
    assert_string_equal(text, "");
    assert_int_equal(n, 0);
    free(text);
}

static void
each_fault_is_found_by_its_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int n;
        char *text = told(faults[i].line, &n);
        if (!strstr(text, faults[i].rule) || n == 0)
            fail_msg("not found: %s (%d): %s", faults[i].rule, n, text);
        free(text);
    }
}

static void
a_file_that_is_not_there_is_no_success(void **state)
{
    long events;

    (void)state;
    assert_int_equal(replay("nowhere", &events), -1);
}

static int
set_up(void **state)
{
    (void)state;
    return chdir(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
}

static int
tear_down(void **state)
{
    (void)state;
    return unlink("order") + unlink("said");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_happen_is_no_fault),
        cmocka_unit_test(each_fault_is_found_by_its_rule),
        cmocka_unit_test(a_file_that_is_not_there_is_no_success),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
