/*
 * Other queues through the program itself: the list of adapters, a file of the user's own against a
 * table of his own (the example of queuetop-adapter(5)), what is read from his folder and what is
 * refused, and the exit codes of `adapter check`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/harness.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

static char *folder; /* $XDG_CONFIG_HOME */

#define EXAMPLE "tests/adapters/example_jobs.adapter.sql"

static char *
read_file(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "re");

    assert_non_null(f);
    assert_true(getdelim(&text, &size, 0, f) > 0);
    fclose(f);
    return text;
}

static void
write_file(const char *path, const char *text, mode_t mode)
{
    (void)unlink(path);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static char *
example(void)
{
    char *path = proc_own_copy(EXAMPLE), *text = read_file(path);

    unlink(path);
    free(path);
    return text;
}

static int
set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    pg_start(NULL);
    folder = xasprintf("%s/config", tmp ? tmp : "/tmp");
    (void)mkdir(folder, 0700);
    setenv("XDG_CONFIG_HOME", folder, 1);
    PGconn *conn = pg_connect(pg_newdb("shop"));
    pg_file(conn, "tests/adapters/example_jobs.sql");
    PQfinish(conn);
    conn = pg_connect(pg_newdb("two"));
    pg_file(conn, "tests/adapters/tasks_table.sql");
    pg_file(conn, "tests/adapters/work_queue_table.sql");
    PQfinish(conn);
    return 0;
}

static int
tear_down(void **state)
{
    char *line = xasprintf("%s/queuetop/adapters", folder);

    (void)state;
    (void)rmdir(line);
    free(line);
    line = xasprintf("%s/queuetop", folder);
    (void)rmdir(line);
    free(line);
    (void)rmdir(folder);
    free(folder);
    pg_stop();
    return 0;
}

static void
lists_and_shows(void **state)
{
    (void)state;
    proc_check(0, "\nriver ", NULL, "adapter list");
    proc_check(0, "\"adapter\": \"river\"", NULL, "adapter list --json");
    proc_check(0, "| River (Go) | `river` |", NULL, "adapter list --markdown");
    proc_check(0, "-- adapter: pgmq\n", NULL, "adapter show pgmq");
    proc_check(2, NULL, "no adapter is called \"nix\"", "adapter show nix");
    proc_check(2, NULL, "list, sections, show or check", "adapter find river");
    proc_check(2, NULL, "list, sections, show NAME", "adapter check");
}

/* The file of a stranger is printed byte by byte into a pipe. A terminal never gets a control
 * sequence of the file. */
static void
shows_a_hostile_file(void **state)
{
    char *text = example(), *path = xasprintf("%s/evil.sql", folder);
    char *evil = xasprintf("%s-- \tevil\x1b]0;owned\x07\x1b[2J\u202e\xc2\x9b"
                           "31m\r\n-- end",
                           text);
    const char *argv[] = {getenv("QUEUETOP"), "adapter", "show", path, NULL};
    struct vt vt;

    (void)state;
    write_file(path, evil, 0600);
    proc_check(0, evil, NULL, "adapter show %s", path);
    vt_spawn(&vt, 24, 100, argv, NULL);
    vt_want(&vt, "--      evil\\x1b]0;owned\\x07\\x1b[2J\\u{202e}\\u{009b}31m");
    vt_want(&vt, "-- end");
    vt_is_tame(&vt);
    vt_done(&vt);
    unlink(path);
    free(evil);
    free(path);
    free(text);
}

static void
checks_a_file(void **state)
{
    char *good = proc_own_copy(EXAMPLE), *text = read_file(good);
    char *bad = xasprintf("%s/bad.sql", folder);

    (void)state;
    unsetenv("PGHOST");
    unsetenv("PGDATABASE");
    unsetenv("PGSERVICE");
    proc_check(0, "the file is good", NULL, "adapter check %s", good);
    proc_check(0, "13 sections fit; everything was rolled back", NULL, "adapter check %s \"%s\"",
               good, pg_dsn("shop"));
    proc_check(0, "without completed: no rate of what goes out", NULL, "adapter check %s \"%s\"",
               good, pg_dsn("shop"));
    proc_check(0, "-     requeue ", NULL, "adapter check %s --read-only \"%s\"", good,
               pg_dsn("shop"));
    proc_check(1, NULL, "no tables of the shop's own jobs table in", "adapter check %s \"%s\"",
               good, pg_dsn("postgres"));
    proc_check(4, NULL, "/nowhere", "adapter check %s 'host=/nowhere dbname=x'", good);
    proc_check(0, "lease_until_ms bigint", NULL, "adapter sections");
    proc_check(0, "requeue              acts", NULL, "adapter sections");
    proc_check(0, "raw_states", NULL, "adapter sections");
    proc_check(2, NULL, "No such file", "adapter check %s/nothing.sql", folder);
    char *named = strstr(text, "the shop's own");
    assert_non_null(named);
    memcpy(named, "\033]0;x\007", 6); /* a file that a stranger gave */
    write_file(bad, text, 0600);
    proc_check(0, "\u241b]0;x\u2407", NULL, "adapter check %s \"%s\"", bad, pg_dsn("shop"));
    char *table = strstr(text, "jobs where status in ('waiting', 'working'"), *told;
    assert_non_null(table);
    memcpy(table, "nope", 4);
    write_file(bad, text, 0600);
    assert_int_equal(proc_run(NULL, NULL, &told, "queues --adapter %s \"%s\"", bad, pg_dsn("shop")),
                     5);
    assert_non_null(strstr(told, "nope\" does not exist (42P01)\n")); /* install is no help */
    free(told);
    memcpy(table, "jobs", 4);
    write_file(bad, "-- adapter: x\n-- titel: X\n", 0600);
    proc_check(2, NULL, "bad.sql:2: no line of the header is called \"titel\"", "adapter check %s",
               bad);
    char *at = strstr(text, "args::text as payload");
    assert_non_null(at);
    memcpy(at, "blob", 4);
    write_file(bad, text, 0600);
    proc_check(5, "bad.sql:69: 42703: column \"blob\" does not exist", NULL,
               "adapter check %s \"%s\"", bad, pg_dsn("shop"));
    unlink(bad);
    free(bad);
    free(text);
    unlink(good);
    free(good);
}

/* A database whose tables no adapter knows: every program names them, and each screen. */
static void
names_likely_tables(void **state)
{
    char *to = xstrdup(pg_dsn("shop")), *rec = xasprintf("%s/likely.rec", getenv("TMPDIR"));
    struct vt vt;

    (void)state;
    proc_check(4, NULL, "tables that look like one: shop.jobs;", "metrics \"%s\"", to);
    proc_check(5, NULL, "tables that look like one: shop.jobs;", "record --for 1s %s \"%s\"", rec,
               to);
    proc_check(5, NULL, "another kind: shop.jobs; queuetop-adapter(5)", "push q -d \"%s\"", to);
    proc_check(5, NULL, "another kind: shop.jobs;", "work -d \"%s\" -- true", to);
    proc_check(5, NULL, "another kind: shop.jobs;", "schedule -d \"%s\"", to);
    unlink(rec);
    free(rec);
    vt_spawn(&vt, 24, 80, (const char *[]){getenv("QUEUETOP"), to, NULL}, NULL);
    vt_want(&vt, "shop.jobs; queuetop-adapter(5) says how to open them");
    vt_want(&vt, "no queue in shop");
    for (const char *screen = "1234567"; *screen; screen++) {
        vt_keys(&vt, (const char[]){*screen, 0});
        vt_want(&vt, "queue beside them");
        vt_gone(&vt, "asking");
    }
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    free(to);
}

/* The verbs of the console's command line on a table of one's own. */
static void
works_with_a_file(void **state)
{
    char *good = proc_own_copy(EXAMPLE), *to = xstrdup(pg_dsn("shop"));
    PGconn *conn = pg_connect(to);

    (void)state;
    proc_check(0, "\"failed\": 1", NULL, "queues --json --adapter %s \"%s\"", good, to);
    proc_check(0, "no such file", NULL, "jobs --state failed --adapter %s \"%s\"", good, to);
    proc_check(5, NULL, "tables that look like one: shop.jobs; queuetop-adapter(5) says",
               "queues \"%s\"", to);
    proc_check(5, NULL, "tables that look like one: shop.jobs;", "doctor \"%s\"", to);
    proc_check(0, NULL, NULL, "requeue --yes --adapter %s \"%s\" --id 6", good, to);
    assert_string_equal(pg_value(conn, "select status from shop.jobs where id = 6"), "waiting");
    pg_run(conn, "alter table shop.jobs enable row level security; create role onlooker login;"
                 "grant usage on schema shop to onlooker; grant select on shop.jobs to onlooker");
    proc_check(1, NULL, "row security of table jobs applies to user onlooker",
               "jobs --adapter %s \"%s user=onlooker\"", good, to);
    proc_check(3, NULL, "may only look", "requeue --yes --adapter %s \"%s user=onlooker\" --id 6",
               good, to);
    struct vt vt;
    char *conninfo = xasprintf("%s user=onlooker", to);
    const char *argv[] = {getenv("QUEUETOP"), "--adapter", good, conninfo, NULL};
    vt_spawn(&vt, 24, 140, argv, NULL);
    vt_want(&vt, "row security of table jobs applies to user onlooker");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    free(conninfo);
    pg_run(conn, "alter table shop.jobs disable row level security; drop owned by onlooker;"
                 "drop role onlooker");
    PQfinish(conn);
    unlink(good);
    free(good);
    free(to);
}

/* Files of the user's own folder are candidates like the built-in ones, if nobody else wrote them.
 */
static void
reads_the_own_folder(void **state)
{
    char *text = example(), *dir = xasprintf("%s/queuetop", folder), *to = xstrdup(pg_dsn("shop"));
    char *deep = xasprintf("%s/adapters", dir), *file = xasprintf("%s/mine.sql", deep);

    (void)state;
    mkdir(dir, 0700);
    mkdir(deep, 0700);
    write_file(file, text, 0600);
    proc_check(0, "mine.sql", NULL, "adapter list");
    proc_check(0, "\"failed\":", NULL, "queues --json \"%s\"", to);
    proc_check(0, "\"failed\":", NULL, "queues --json --adapter example_jobs \"%s\"", to);
    chmod(file, 0620);
    proc_check(5, NULL, "mine.sql can be written by others (mode 0620): it is not used",
               "queues \"%s\"", to);
    proc_check(3, NULL, "can be written by others (mode 0620): it is not used",
               "queues --adapter %s \"%s\"", file, to);
    chmod(file, 0600);
    proc_check(0, "\"failed\":", NULL, "queues --json --adapter %s \"%s\"", file, to);
    chmod(deep, 0777);
    proc_check(0, "\nriver", "adapters can be written by others (mode 0777): it is not used",
               "adapter list");
    chmod(deep, 0700);
    char *aside = xasprintf("%s.aside", deep);
    assert_int_equal(rename(deep, aside), 0);
    write_file(deep, "", 0600);
    proc_check(0, "\nriver", "Not a directory: no adapters of your own are read", "adapter list");
    assert_int_equal(unlink(deep) | rename(aside, deep), 0);
    free(aside);
    if (geteuid() == 0) {
        assert_int_equal(chown(file, 12345, 0), 0);
        proc_check(0, NULL, "mine.sql belongs to another user (uid 12345): it is not used",
                   "adapter list");
    }
    write_file(file, "-- adapter: river\n", 0600);
    proc_check(0, "\nriver", "mine.sql: ", "adapter list"); /* a wrong one stops nobody */
    char *taken = xasprintf("-- adapter: river%s", strchr(text, '\n'));
    write_file(file, taken, 0600);
    proc_check(0, NULL, "an adapter \"river\" is there already", "adapter list");
    char *failing = xstrdup(text), *at = strstr(failing, "from pg_namespace");
    assert_non_null(at);
    memcpy(at, "from no_namespace", 17);
    write_file(file, failing, 0600);
    proc_check(2, NULL, "more than one queue", "queues \"%s\"", pg_dsn("two"));
    proc_check(0, "\nriver", NULL, "adapter list");
    proc_check(5, NULL, "adapter example_jobs can't look for its tables", "queues \"%s\"", to);
    unlink(file);
    rmdir(deep);
    rmdir(dir);
    free(failing);
    free(taken);
    free(file);
    free(deep);
    free(dir);
    free(text);
    free(to);
}

/* Several systems in one database: verbs don't guess. */
static void
does_not_guess(void **state)
{
    (void)state;
    proc_check(2, NULL, "tasks_table in schema public", "queues \"%s\"", pg_dsn("two"));
    proc_check(0, NULL, NULL, "jobs --adapter tasks_table \"%s\"", pg_dsn("two"));
    proc_check(0, NULL, NULL, "jobs --adapter work_queue_table \"%s\"", pg_dsn("two"));
}

/* A version that was never tested is looked at only, until somebody says that he trusts it. */
static void
trusts_no_new_version(void **state)
{
    char *to = xstrdup(pg_newdb("newer"));
    PGconn *conn = pg_connect(to);

    (void)state;
    pg_file(conn, "tests/adapters/river.sql");
    pg_run(conn, "insert into river_migration (line, version) values ('main', 99)");
    char *id =
        xstrdup(pg_value(conn, "select id from river_job where state = 'discarded' limit 1"));
    proc_check(0, NULL, NULL, "jobs \"%s\"", to);
    proc_check(3, NULL, "River (Go) is version 99 here, tested is 6-7: --trust-version",
               "requeue --yes \"%s\" --id %s", to, id);
    proc_check(0, NULL, NULL, "requeue --yes --trust-version \"%s\" --id %s", to, id);
    assert_string_equal(pg_value(conn, "select state from river_job where id = %s", id),
                        "available");
    free(id);
    PQfinish(conn);
    free(to);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_shows),   cmocka_unit_test(shows_a_hostile_file),
        cmocka_unit_test(checks_a_file),     cmocka_unit_test(names_likely_tables),
        cmocka_unit_test(works_with_a_file), cmocka_unit_test(reads_the_own_folder),
        cmocka_unit_test(does_not_guess),    cmocka_unit_test(trusts_no_new_version),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
