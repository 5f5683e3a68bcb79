/*
 * Several sources in one console: what is found beside each other in a database, databases side by
 * side, acts that reach the right one, one that dies while another lives.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proc.h"

static PGconn *books; /* the second database */

/* Our own queue, River's and a table of tasks in one database. */
static int
three_in_one(void **state)
{
    con_empty(state);
    con_failed("mail.send", 3, "boom");
    pg_file(con_db(), "tests/adapters/tasks_table.sql");
    pg_run(con_db(), "create schema river; set search_path = river");
    pg_file(con_db(), "tests/adapters/river.sql");
    pg_run(con_db(), "set search_path = queues, public");
    return 0;
}

static const char *
books_dsn(void)
{
    return pg_dsn("books");
}

static int
two_databases(void **state)
{
    con_empty(state);
    con_ready("mail.send", 4);
    if (!books) {
        PGconn *any = pg_connect(pg_dsn("postgres"));
        pg_run(any, "create database books");
        PQfinish(any);
        books = pg_connect(books_dsn());
        pg_file(books, "tests/adapters/tasks_table.sql");
    }
    return 0;
}

static int
teardown(void **state)
{
    PQfinish(books);
    return con_teardown(state);
}

static void
start(struct vt *vt)
{
    con_start(vt, 24, 80, NULL);
    vt_want(vt, "3 queue systems here: S lists them");
}

/* Goes to a source by its name in the palette. */
static void
palette(struct vt *vt, const char *text)
{
    vt_keys(vt, ":");
    vt_type(vt, text);
    vt_keys(vt, "enter");
}

static void
go_to(struct vt *vt, const char *adapter)
{
    char text[100], name[100];

    snprintf(name, sizeof name, "%s:%s ", PQdb(con_db()), adapter);
    snprintf(text, sizeof text, "source %s:%s", PQdb(con_db()), adapter);
    palette(vt, text);
    vt_want_row(vt, 0, name);
}

static void
filter(struct vt *vt, const char *text)
{
    vt_keys(vt, "/ C-u");
    vt_type(vt, text);
    vt_keys(vt, "enter");
}

static void
found_and_listed(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt);
    vt_want_row(&vt, 0, ":native 1/3");
    vt_keys(&vt, "S");
    vt_want(&vt, ":river");
    vt_want(&vt, "native ");
    vt_want(&vt, "river 7");
    vt_gone(&vt, "not looked at"); /* the menu connects the sources */
    vt_gone(&vt, "connecting");
    vt_keys(&vt, "j enter");
    vt_want_row(&vt, 0, ":river 2/3");
    vt_want(&vt, "default");
    palette(&vt, "source app");
    vt_want(&vt, "several sources begin with app");
    palette(&vt, "source nobody");
    vt_want(&vt, "no source is called nobody");
    con_quit(&vt);
}

/* Filters and cursors stay with their source; back and forward go across. */
static void
screens_of_its_own(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt);
    vt_keys(&vt, "2");
    vt_want(&vt, "unfinished jobs");
    filter(&vt, "state:failed boom");
    vt_want(&vt, "filter state:failed boom");
    go_to(&vt, "tasks_table"); /* also on Jobs, without that filter */
    vt_want(&vt, "highest id first");
    vt_want(&vt, "1 of 10");
    vt_keys(&vt, "j j j");
    vt_want(&vt, "4 of 10");
    go_to(&vt, "native");
    vt_want(&vt, "filter state:failed boom");
    go_to(&vt, "tasks_table");
    vt_want(&vt, "4 of 10");
    vt_keys(&vt, "C-p");
    vt_want_row(&vt, 0, ":native 1/3");
    vt_want(&vt, "filter state:failed boom");
    con_quit(&vt);
}

/* Enter in the overview goes to the queue's source; nothing can be changed from there. */
static void
overview(void **state)
{
    struct vt vt;
    int row, col;

    (void)state;
    start(&vt);
    vt_keys(&vt, "0");
    vt_want_row(&vt, 0, "3 sources");
    vt_want(&vt, "mail.send");
    vt_want(&vt, "default");
    vt_want(&vt, "failed 9"); /* 3 of ours, 4 of River's, 2 tasks */
    filter(&vt, "tasks");
    vt_gone(&vt, "mail.send");
    vt_keys(&vt, "p");
    vt_want(&vt, "p does nothing here");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 0, ":tasks_table 3/3");
    vt_want(&vt, "tasks");
    vt_cursor(&vt, &row, &col);
    assert_non_null(strstr(vt_row(&vt, row), "tasks"));
    vt_keys(&vt, "0");
    vt_want_row(&vt, 0, "3 sources");
    con_quit(&vt);
}

/* An act changes the source on the screen, and no other: all three have jobs with the same ids. */
static void
acts_on_its_own(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt);
    vt_keys(&vt, "2");
    vt_want(&vt, "unfinished jobs");
    go_to(&vt, "tasks_table");
    filter(&vt, "id:5");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "r");
    vt_want(&vt, "unofficial");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue of");
    assert_string_equal(pg_value(con_db(), "select status from public.tasks where id = 5"),
                        "pending");
    assert_int_equal(pg_int(con_db(), "select count(*) from public.tasks where status = 'failed'"),
                     1);
    go_to(&vt, "river");
    filter(&vt, "id:1");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "c");
    vt_want(&vt, "JobCancel");
    vt_keys(&vt, "y");
    vt_want(&vt, "cancel of");
    assert_string_equal(pg_value(con_db(), "select state from river.river_job where id = 1"),
                        "cancelled");
    assert_int_equal(con_count("state = 'failed'"), 3);
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 0);
    assert_int_equal(pg_int(con_db(), "select count(*) from river.river_job where state = "
                                      "'cancelled'"),
                     2);
    con_quit(&vt);
}

/* What a system can't do is said before anything is asked of it. */
static void
what_it_lacks(void **state)
{
    struct vt vt;

    (void)state;
    start(&vt);
    go_to(&vt, "tasks_table");
    vt_gone(&vt, "OUT/s");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 10");
    assert_false(vt_find(&vt, "PRI ", &(int){0}, &(int){0}));
    filter(&vt, "payload~recipient");
    vt_want(&vt, "can't filter by payload");
    vt_keys(&vt, "esc");
    vt_keys(&vt, "5");
    vt_want(&vt, "keeps no schedules in the database; its code may");
    vt_keys(&vt, "4");
    vt_want(&vt, "the workers are not recorded here: these are the running jobs");
    vt_keys(&vt, "6");
    vt_want(&vt, "keeps no audit: what you did is in Messages (8)");
    go_to(&vt, "river");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 15");
    vt_keys(&vt, "g a");
    vt_want(&vt, "── look ──");
    vt_want(&vt, "▲ Give back running jobs whose worker is gone");
    vt_want(&vt, "requeue: the job is running"); /* what is not possible comes last */
    vt_keys(&vt, "esc");
    filter(&vt, "state:ready");
    vt_keys(&vt, "a");
    vt_want(&vt, "unofficial: ");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

static void
side_by_side(struct vt *vt, const char *option)
{
    const char *argv[] = {getenv("QUEUETOP"), "--interval", "200ms", con_dsn(),
                          books_dsn(),        option,       NULL};

    vt_spawn(vt, 24, 80, argv, NULL);
    vt_want_row(vt, 0, "2 sources");
    vt_want(vt, "mail.send");
    vt_want(vt, "tasks");
}

/* If a database refuses the connection, its rows stay, with their age; the other database goes
 * on. */
static void
one_dies(void **state)
{
    struct vt vt;
    PGconn *any = pg_connect(pg_dsn("postgres"));

    (void)state;
    side_by_side(&vt, NULL);
    vt_want(&vt, "ready 6");
    vt_want(&vt, "live, each 0.2s");
    pg_run(any, "alter database books allow_connections false");
    pg_run(any, "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'books' "
                "and application_name like 'queuetop%%'");
    vt_want(&vt, "1 unreachable");
    vt_want(&vt, "numbers ");
    vt_want(&vt, "books: unreachable: ");
    vt_want(&vt, "tasks");
    con_ready("mail.send", 5);
    vt_want(&vt, "ready 11");
    vt_keys(&vt, "S");
    vt_want(&vt, "× unreachable");
    vt_keys(&vt, "esc");
    pg_run(any, "alter database books allow_connections true");
    vt_gone(&vt, "unreachable");
    PQfinish(any);
    con_quit(&vt);
}

/* Read-only holds for all of them, and acts of both go to their own database. */
static void
both_can_be_acted_on(void **state)
{
    struct vt vt;

    (void)state;
    side_by_side(&vt, NULL);
    filter(&vt, "tasks");
    vt_gone(&vt, "mail.send");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 0, "books 2/2");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 1, "[2 Jobs");
    filter(&vt, "id:6");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "r");
    vt_want(&vt, "unofficial");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue of books");
    assert_string_equal(pg_value(books, "select status from tasks where id = 6"), "pending");
    con_quit(&vt);
    pg_run(books, "update tasks set status = 'failed' where id = 6");
    side_by_side(&vt, "--read-only");
    palette(&vt, "source books");
    vt_want_row(&vt, 0, "READ-ONLY");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 1, "[2 Jobs");
    filter(&vt, "id:6");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "r");
    vt_want(&vt, "started with --read-only");
    con_quit(&vt);
    assert_string_equal(pg_value(books, "select status from tasks where id = 6"), "failed");
}

/* The second and the last of four actions wait for locks while the user goes to another source:
 * they stay actions of the source where they were asked for. */
static void
actions_keep_their_source(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("alpha", 1);
    con_ready("beta", 1);
    con_ready("zeta", 1);
    PGconn *second = con_hold_queue("beta"), *last = con_hold_queue("zeta");
    start(&vt);
    vt_want(&vt, "beta");
    vt_keys(&vt, "*");
    con_pause_marked(&vt, 4);
    vt_keys(&vt, "y");
    vt_want(&vt, "Esc hide (goes on");
    vt_keys(&vt, "esc");
    go_to(&vt, "river");
    pg_run(second, "rollback");
    pg_wait(con_db(), "select count(*) from queue_config where pause_reason = 'close'", "3", 60000);
    pg_wait(con_db(), /* the last has begun, so the console knows of the third */
            "select count(*) from pg_stat_activity where application_name = 'queuetop actor' and "
            "datname = current_database() and wait_event_type = 'Lock'",
            "1", 60000);
    vt_want(&vt, ":native: 1 queue paused");
    vt_keys(&vt, "g"); /* the message goes */
    vt_gone(&vt, "queue paused");
    pg_run(last, "rollback");
    vt_want(&vt, ":native: 1 queue paused");
    con_quit(&vt);
    PQfinish(second);
    PQfinish(last);
}

/* The box of a canary is of the source where the canary runs, also if another source that has a
 * queue of the same name is on the screen. */
static void
a_canary_keeps_its_source(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("default", 120, "refused"); /* River has a queue of this name */
    pg_run(con_db(), "select pause(gen_random_uuid(), 'default')");
    start(&vt);
    vt_keys(&vt, "3");
    vt_want(&vt, "refused");
    vt_keys(&vt, "r");
    vt_want(&vt, "none starts until it is resumed");
    vt_keys(&vt, "enter");
    vt_want(&vt, "0 of 10 ended");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "0 of 10 ended");
    go_to(&vt, "river");
    vt_keys(&vt, "1");
    vt_want(&vt, "default");
    vt_keys(&vt, "f8");
    vt_want(&vt, "0 of 10 ended");
    vt_want(&vt, "none starts until it is resumed");
    vt_want(&vt, ":native, not the source on the screen");
    vt_keys(&vt, "C-c");
    vt_want(&vt, "10 of 120 tried");
    con_quit(&vt);
}

/* --- one system in two schemas --------------------------------------------------------------- */

static PGconn *
twins(void)
{
    PGconn *conn = pg_connect(pg_newdb("twins"));

    for (int i = 0; i < 2; i++) {
        const char *schema = i ? "west" : "east";
        pg_run(conn, "create schema %s; set search_path = %s", schema, schema);
        pg_file(conn, "tests/adapters/river.sql");
    }
    pg_run(conn, "update west.river_job set queue = 'western' where queue = 'default'");
    return conn;
}

/* All that the act must leave alone. */
static const char *
east_side(PGconn *conn)
{
    return pg_value(conn, "select md5(string_agg(j::text, ',' order by id)) from east.river_job j");
}

/* Both in the overview, each by its schema; an act on one leaves the other alone, whose jobs have
 * the same ids. */
static void
twins_side_by_side(void **state)
{
    PGconn *conn = twins();
    char *east = strdup(east_side(conn)), *dsn = strdup(pg_dsn("twins"));
    const char *argv[] = {getenv("QUEUETOP"), "--interval", "200ms", dsn, NULL};
    struct vt vt;
    int row, col;

    (void)state;
    vt_spawn(&vt, 24, 100, argv, NULL);
    vt_want(&vt, "2 queue systems here");
    vt_keys(&vt, "0");
    vt_want_row(&vt, 0, "2 sources");
    vt_want(&vt, "twins:river.east");
    vt_want(&vt, "twins:river.west");
    vt_want(&vt, "default");
    vt_want(&vt, "western");
    vt_want(&vt, "failed 8"); /* four of each */
    filter(&vt, "western");
    vt_gone(&vt, "default");
    assert_true(vt_find(&vt, "twins:river.west", &row, &col));
    assert_non_null(strstr(vt_row(&vt, row), "western"));
    assert_false(vt_find(&vt, "twins:river.east", &row, &col));
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 0, "twins:river.west 2/2");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 1, "[2 Jobs");
    filter(&vt, "id:1");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "c");
    vt_want(&vt, "JobCancel");
    vt_want(&vt, "twins"); /* the question names the database */
    vt_keys(&vt, "y");
    vt_want(&vt, "cancel of");
    assert_string_equal(pg_value(conn, "select state from west.river_job where id = 1"),
                        "cancelled");
    assert_string_equal(east_side(conn), east);
    con_quit(&vt);
    /* a verb is not let guess which is meant */
    char *said, *out;
    assert_int_equal(proc_run(NULL, &out, &said, "delete --id 1 --yes \"%s\"", dsn), 2);
    assert_non_null(strstr(said, "east"));
    assert_non_null(strstr(said, "west"));
    free(said), free(out);
    assert_int_equal(proc_run(NULL, &out, &said, "delete --id 1 --yes --schema west \"%s\"", dsn),
                     0);
    free(said), free(out);
    assert_string_equal(pg_value(conn, "select count(*) from west.river_job where id = 1"), "0");
    assert_string_equal(east_side(conn), east);
    free(east);
    free(dsn);
    PQfinish(conn);
}

/* More databases than there is room for: the rest is named when the console starts, and on the
 * screens for as long as it lasts. */
static void
what_is_left_out_is_said(void **state)
{
    const char *argv[2 * 42 + 2] = {getenv("QUEUETOP")};
    struct vt vt;
    char *dsn = strdup(pg_dsn(PQdb(con_db())));
    int n = 1;

    (void)state;
    for (int i = 0; i < 42; i++)
        argv[n++] = dsn;
    vt_spawn(&vt, 24, 120, argv, NULL);
    vt_want(&vt, "40 of 42 sources are shown, which is the most");
    vt_want_row(&vt, 0, "40 of 42 sources");
    vt_keys(&vt, "S");
    vt_want(&vt, "sources: 2 more are left out");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "sources: 2 more");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 0, "/42");
    con_quit(&vt);
    free(dsn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(found_and_listed, three_in_one),
        cmocka_unit_test_setup(screens_of_its_own, three_in_one),
        cmocka_unit_test_setup(overview, three_in_one),
        cmocka_unit_test_setup(acts_on_its_own, three_in_one),
        cmocka_unit_test_setup(what_it_lacks, three_in_one),
        cmocka_unit_test_setup(actions_keep_their_source, three_in_one),
        cmocka_unit_test_setup(a_canary_keeps_its_source, three_in_one),
        cmocka_unit_test_setup(one_dies, two_databases),
        cmocka_unit_test_setup(both_can_be_acted_on, two_databases),
        cmocka_unit_test(twins_side_by_side),
        cmocka_unit_test_setup(what_is_left_out_is_said, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, teardown);
}
