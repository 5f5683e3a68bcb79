/*
 * An output that nobody takes: whatever the verb, exit code 5 and a word on standard error; what
 * was to be done is done all the same.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/server.h"

enum { JOBS = 3000 };

static char dsn[300];

static void
check(const char *before, const char *args, const char *after)
{
    char script[1000];
    const char *argv[] = {"sh", "-c", script, NULL};
    struct proc p;

    snprintf(script, sizeof script, "%s\"$QUEUETOP\" %s -d \"%s\"%s", before, args, dsn, after);
    proc_start(&p, argv, NULL);
    proc_wait(&p);
    char *err = proc_errors(&p);
    if (!strstr(err, "code 5") || !strstr(err, ": standard output: ") || strstr(err, "Success"))
        fail_msg("%s: %s", args, err);
    free(err);
    proc_done(&p);
}

/* Many lines, a few, an id: buffers that are full before the end, and one that never is. */
static const char *const verbs[] = {"jobs --limit 0", "jobs --limit 0 --json", "queues",
                                    "push q --payload 1", "cancel --queue q --dry-run"};

static void
a_full_disk(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        check("", verbs[i], " >/dev/full; echo code $? >&2");
}

/* The reader is gone before the first byte. */
static void
a_reader_that_is_gone(void **state)
{
    char gate[300];

    (void)state;
    snprintf(gate, sizeof gate, "%s/gate", getenv("TMPDIR"));
    assert_int_equal(mkfifo(gate, 0600), 0);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        check("{ read x <\"$TMPDIR/gate\"; ", verbs[i],
              "; echo code $? >&2; } | { exec <&-; echo go >\"$TMPDIR/gate\"; }");
    unlink(gate);
}

static int
set_up(void **state)
{
    pg_group_start(state);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("pipe"));
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    PGconn *c = pg_connect(dsn);
    pg_run(c, "insert into queues.queue (queue) select 'q' from generate_series(1, %d)", JOBS);
    PQfinish(c);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk),
        cmocka_unit_test(a_reader_that_is_gone),
    };

    return cmocka_run_group_tests(tests, set_up, pg_group_stop);
}
