/*
 * The calls that queuetop-engine(7) shows for other languages, by the drivers of three of them:
 * node-pg and Ruby's pg, which leave the types of all parameters to the server, and psycopg, which
 * gives types of its own. The programs take the calls out of the page, and fail if they don't know
 * one.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/e2e/engine.h"
#include "tests/sql/core.h"

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

/* Whether `argv` ends well: the interpreter is there, and has the driver. */
static bool
has_driver(const char *const *argv)
{
    struct proc p;

    if (access(argv[0], X_OK) != 0)
        return false;
    proc_start(&p, argv, NULL);
    bool is_there = proc_wait(&p) == 0;
    proc_done(&p);
    return is_there;
}

static void
run_if_there(const char *interpreter, const char *loads, const char *program, const char *driver)
{
    const char *const probe[] = {interpreter, strstr(program, ".py") ? "-c" : "-e", loads, NULL};
    const char *const argv[] = {interpreter, program, NULL};
    char *database = xasprintf("by_%s", driver);

    if (!has_driver(probe)) {
        print_message("%s is skipped: %s can't load it; make deps-engines installs it\n", driver,
                      interpreter);
        free(database);
        skip();
    }
    run(argv, database);
    free(database);
}

static void
calls_by_psycopg(void **state)
{
    (void)state;
    /* the interpreter of the packages; not pyenv's */
    run_if_there("/usr/bin/python3", "import psycopg", "tests/e2e/calls.py", "psycopg");
}

static void
calls_by_ruby(void **state)
{
    (void)state;
    run_if_there("/usr/bin/ruby", "require 'pg'", "tests/e2e/calls.rb", "ruby-pg");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_by_node),
        cmocka_unit_test(calls_by_psycopg),
        cmocka_unit_test(calls_by_ruby),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
