/*
 * The calls that queuetop-engine(7) shows for other languages, by the drivers of two of them:
 * node-pg, which leaves the types of all parameters to the server, and psycopg, which gives types
 * of its own. The programs take the calls out of the page, and fail if they don't know one.
 */
#include <stdlib.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/e2e/engine.h"
#include "tests/sql/core.h"

static const char python[] = "/usr/bin/python3"; /* the one of the packages; not pyenv's */

static char *
in_tree(const char *path)
{
    return xasprintf("%s/%s", getenv("SRCDIR"), path);
}

/* argv: the interpreter, the program, what else it takes. */
static void
run(const char *const *argv, const char *database)
{
    const char *words[8];
    char *page = in_tree("docs/queuetop-engine.7.md"), *program = in_tree(argv[1]);
    int n = 0;

    PQfinish(core_new(database));
    words[n++] = argv[0];
    words[n++] = program;
    if (argv[2])
        words[n++] = argv[2];
    words[n++] = pg_host();
    words[n++] = database;
    words[n++] = page;
    words[n] = NULL;
    engine_run(words);
    free(page);
    free(program);
}

static void
calls_by_node(void **state)
{
    const char *const argv[] = {"node", "tests/e2e/calls.mjs", engine_dir("npm", "graphile"), NULL};

    (void)state; /* pg comes with Graphile Worker */
    run(argv, "by_node");
}

static void
calls_by_psycopg(void **state)
{
    const char *const argv[] = {python, "tests/e2e/calls.py", NULL};
    const char *const import[] = {python, "-c", "import psycopg", NULL};
    bool is_there = access(python, X_OK) == 0;
    struct proc p;

    (void)state;
    if (is_there) {
        proc_start(&p, import, NULL);
        is_there = proc_wait(&p) == 0;
        proc_done(&p);
    }
    if (!is_there) {
        print_message("psycopg is skipped: %s can't import it; make deps-engines installs it\n",
                      python);
        skip();
    }
    run(argv, "by_psycopg");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_by_node),
        cmocka_unit_test(calls_by_psycopg),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
