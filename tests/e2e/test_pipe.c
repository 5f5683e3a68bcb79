/*
 * An output that nobody takes: exit code 5 and a word on standard error; what was to be done is
 * done all the same. A verb that looks has done its work when its reader leaves a pipe: code 0, no
 * word.
 */
#include "tests/harness.h"

#include <stdbool.h>
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
check(const char *before, const char *args, const char *after, bool is_told)
{
    char script[1000];
    const char *argv[] = {"sh", "-c", script, NULL};
    struct proc p;

    snprintf(script, sizeof script, "%s\"$QUEUETOP\" %s -d \"%s\"%s", before, args, dsn, after);
    proc_start(&p, argv, NULL);
    proc_wait(&p);
    char *err = proc_errors(&p);
    if (is_told ? !strstr(err, "code 5") || !strstr(err, ": standard output: ") ||
                      strstr(err, "Success")
                : strcmp(err, "code 0\n") != 0)
        fail_msg("%s: %s", args, err);
    free(err);
    proc_done(&p);
}

/* Many lines, a few, an id: buffers that are full before the end, and one that never is. */
static const struct {
    const char *args;
    bool looks;
} verbs[] = {
    {"jobs --limit 0",             true },
    {"jobs --limit 0 --json",      true },
    {"queues",                     true },
    {"check --list",               true },
    {"queue q",                    true },
    {"metrics",                    true },
    {"completion bash",            true },
    {"adapter list",               true },
    {"install --print",            true },
    {"push q --payload 1",         false},
    {"cancel --queue q --dry-run", false},
};

static void
a_full_disk(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        check("", verbs[i].args, " >/dev/full; echo code $? >&2", true);
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
        check("{ read x <\"$TMPDIR/gate\"; ", verbs[i].args,
              "; echo code $? >&2; } | { exec <&-; echo go >\"$TMPDIR/gate\"; }", !verbs[i].looks);
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
