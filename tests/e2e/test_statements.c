/*
 * How many statements a verb sends, BEGIN and COMMIT included: on a slow server each is time that
 * somebody waits. The server's log is counted. A figure that grows needs a reason.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proc.h"
#include "tests/server.h"
#include "tests/sql/core.h"

static const struct pg_opts logs = {.conf = "log_statement = 'all'\n"};
static char dsn[400], path[500];
static PGconn *conn;

static int
start(void **state)
{
    (void)state;
    pg_start(&logs);
    conn = core_new("counted");
    snprintf(dsn, sizeof dsn, "%s", pg_dsn("counted"));
    snprintf(path, sizeof path, "%s/log", pg_host());
    return 0;
}

static int
stop(void **state)
{
    PQfinish(conn);
    return pg_group_stop(state);
}

/* The statements that the server has logged so far. */
static int
count(void)
{
    char line[2000];
    int n = 0;
    FILE *log = fopen(path, "re");

    assert_non_null(log);
    while (fgets(line, sizeof line, log))
        n += strstr(line, "LOG:  execute ") || strstr(line, "LOG:  statement: ");
    assert_int_equal(fclose(log), 0);
    return n;
}

struct figure {
    const char *words;
    int code, most;
};

static void
bounds(const struct figure *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int before = count();
        proc_check(list[i].code, NULL, NULL, "-d \"%s\" %s", dsn, list[i].words);
        int sent = count() - before;
        if (sent > list[i].most)
            fail_msg("%s: %d statements, not %d", list[i].words, sent, list[i].most);
        assert_true(sent > 0); /* the log is the right one */
        print_message("%-30s %d statements\n", list[i].words, sent);
    }
}

/* As the owner of the queue. */
static void
own(void **state)
{
    static const struct figure list[] = {
        {"push mails",                   0, 3  },
        {"queues",                       0, 22 },
        {"check",                        1, 27 },
        {"metrics",                      0, 46 },
        {"jobs",                         0, 14 },
        {"nodes",                        1, 14 },
        {"requeue --state failed --yes", 1, 30 },
        {"pause mails --yes",            0, 35 },
        {"doctor",                       9, 134},
    };

    (void)state;
    bounds(list, sizeof list / sizeof *list);
}

/* Where a stranger owns something else in the database, the cheap proof fails. */
static void
beside_a_stranger(void **state)
{
    static const struct figure list[] = {
        {"push mails", 0, 5 },
        {"queues",     0, 24},
    };

    (void)state;
    pg_run(conn, "create role mallory; create table public.his (); "
                 "alter table public.his owner to mallory");
    bounds(list, sizeof list / sizeof *list);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own),
        cmocka_unit_test(beside_a_stranger),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
