/*
 * Hostile text in every column: queue names, kinds, errors, traces, payloads, nodes, reasons. No
 * byte of it may reach the terminal as a command, and no row may move.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Title, bell, colours, cursor moves, clipboard, bidi, zero width, tags, C1, line breaks, a long
 * line, combining marks. */
#define EVIL                                                                              \
    "E'\\x1b]0;owned\\x07\\x1b[31mred\\x1b[2J\\x1b[H\\x1b]52;c;aGk=\\x07\\x1b]8;;http://" \
    "x\\x07\\r\\n\\t\\b"                                                                  \
    "\\u202egpj.exe\\u200b\\u2066\\U000e0041\\u0085\\u009b31m\\ufeff' || repeat('e' || "  \
    "U&'\\0301', 60)"                                                                     \
    " || repeat('long ', 50)"

/* One row of the screen must still be what it was: the frame around the hostile text stands. */
static void
frame_stands(struct vt *vt, const char *tab)
{
    vt_want_row(vt, 0, "queuetop");
    vt_want_row(vt, 1, tab);
    vt_want_row(vt, vt->rows - 1, "help");
    assert_int_equal(vt->titles, 0);
    assert_int_equal(vt->bells, 0);
    if (vt->unknown)
        fail_msg("a sequence of the data came through: %s", vt->unknown_text);
}

static void
evil_jobs(void)
{
    pg_run(con_db(), "create temp table evil as select " EVIL " as text");
    pg_run(con_db(), "insert into queue (queue, kind, payload, unique_key) select left(text, 190), "
                     "left(text, 190), "
                     "json_build_object(text, text), left(text, 60) from evil");
    pg_run(con_db(), "insert into queue (queue, kind, body, payload_type) select left(text, 190), "
                     "left(text, 190), "
                     "convert_to(text, 'UTF8') || '\\xff00fe', left(text, 40) from evil");
    pg_run(con_db(), "select push_text(left(text, 190), text, 'text/plain') from evil");
    pg_run(con_db(), "create temp table held as select c.*, e.text from evil e, "
                     "claim(left(e.text, 60), 1, '60 s', array[left(e.text, 190)]) c");
    pg_run(con_db(),
           "select f.* from held h, fail(left(h.text, 60), array[h.lease], array[h.version], "
           "array[h.seq], array[h.text], array[h.text], final => array[true]) f");
    pg_run(con_db(), "select count(*) from evil e, "
                     "claim(left(e.text, 60), 1, '60 s', array[left(e.text, 190)]) c");
    pg_run(con_db(), "select node_start(left(text, 60), gen_random_uuid(), left(text, 60), 1, "
                     "left(text, 60), 1, array[left(text, 60)], 4) "
                     "from evil");
    pg_run(con_db(), "select p.* from evil, pause(gen_random_uuid(), left(text, 190), text) p");
}

/* A role, a program, a statement and a table with such names, in a transaction that is open. */
static PGconn *
evil_session(void)
{
    static const char user[] = "\033]0;owned\007\033[2J\xe2\x80\xae"
                               "eve",
                      app[] = "\033[31mapp\r\n\007";
    char dsn[500];

    snprintf(dsn, sizeof dsn, "%s", con_dsn());
    PGresult *r = PQexec(con_db(), "select 1 from pg_roles where rolname like '%eve'");
    if (PQntuples(r) == 0)
        pg_run(con_db(), "create role \"%s\" login", user);
    PQclear(r);
    pg_run(con_db(), "create table \"\033[2Jtable\007\xe2\x80\xae\" (i int)");
    PGconn *c = PQconnectdbParams((const char *const[]){"dbname", "user", "application_name", NULL},
                                  (const char *const[]){dsn, user, app, NULL}, 1);
    assert_int_equal(PQstatus(c), CONNECTION_OK);
    pg_run(c, "begin isolation level repeatable read");
    pg_run(c, "select '\033]0;owned\007\033[2J\033]52;c;aGk=\007\xe2\x80\xae\r\n\t\b\xc2\x9b"
              "31m', "
              "repeat('e\xcc\x81\xcc\x81', 3)");
    return c;
}

/* The Database screen, its boxes and its question. */
static void
evil_database(struct vt *vt)
{
    vt_keys(vt, "7");
    vt_want(vt, "idle in txn");
    vt_settle(vt, 100);
    frame_stands(vt, "DB");
    vt_keys(vt, "f");
    vt_settle(vt, 50);
    vt_keys(vt, "esc enter");
    vt_want(vt, "client");
    vt_settle(vt, 50);
    vt_keys(vt, "esc K");
    vt_want(vt, "Type the pid");
    vt_keys(vt, "f3");
    vt_settle(vt, 50);
    vt_keys(vt, "esc esc");
    vt_want(vt, "nothing was changed");
    frame_stands(vt, "DB");
}

/* Opens a box: its text, and the text behind the box, must stay inside their frames. Esc may leave
 * the page after the box is closed: the key of the tab returns to the page. */
static void
evil_box(struct vt *vt, const char *key, const char *place, const char *tab)
{
    vt_keys(vt, key);
    vt_settle(vt, 80);
    assert_int_equal(vt->titles, 0);
    if (vt->unknown)
        fail_msg("a sequence of the data came through at %s: %s", key, vt->unknown_text);
    vt_keys(vt, "esc esc esc");
    vt_keys(vt, place);
    for (int i = 0; i < 60 && !vt_came(vt, "help", 1000); i++) { /* an editor has read them */
        vt_keys(vt, "esc esc esc");
        vt_keys(vt, place);
    }
    vt_settle(vt, 50);
    frame_stands(vt, tab);
}

static void
evil_boxes(struct vt *vt, const char *place, const char *tab, const char *const *keys)
{
    while (*keys)
        evil_box(vt, *keys++, place, tab);
}

static const char *const of_queues[] = {"f", "Y", "l", "N", "p", "P", "a", NULL},
                         *const of_jobs[] = {"f", "Y", "N", "e", "b", "X", "D", NULL},
                         *const of_failed[] = {"f", "Y", "N", "e", "X", NULL},
                         *const edit_only[] = {"e", NULL}, *const of_others[] = {"f", "Y", NULL};

/* The page of the queue: the frame must hold in each pane, and after the page is closed. */
static void
evil_queue(struct vt *vt)
{
    vt_keys(vt, "1 g enter");
    vt_want(vt, "errors of failed jobs");
    for (int pane = 0; pane < 4; pane++) {
        vt_settle(vt, 50);
        frame_stands(vt, "Queues");
        vt_keys(vt, "tab");
    }
    vt_keys(vt, "esc");
    vt_settle(vt, 50);
    frame_stands(vt, "Queues");
}

static void
evil_pages(struct vt *vt, bool with_boxes)
{
    vt_keys(vt, "2");
    vt_want(vt, "1 of 3");
    vt_settle(vt, 100);
    frame_stands(vt, "Jobs");
    for (int job = 0; job < 3; job++) {
        vt_keys(vt, "g");
        for (int down = 0; down < job; down++)
            vt_keys(vt, "down");
        vt_keys(vt, "enter");
        vt_want(vt, "PAYLOAD");
        vt_keys(vt, "G w right right g w");
        vt_settle(vt, 50);
        frame_stands(vt, "Jobs");
        vt_keys(vt, "esc");
        vt_settle(vt, 50);
        if (with_boxes)
            evil_boxes(vt, "2", "Jobs", job == 0 ? of_jobs : edit_only);
    }
}

static void
evil_failures(struct vt *vt, bool with_boxes)
{
    vt_keys(vt, "3");
    vt_want(vt, "by [error]");
    vt_settle(vt, 100);
    frame_stands(vt, "Failed");
    if (with_boxes)
        evil_boxes(vt, "3", "Failed", of_failed);
    vt_keys(vt, "r");
    vt_want(vt, "1 job");
    vt_settle(vt, 50);
    vt_keys(vt, "f3");
    vt_settle(vt, 50);
    vt_keys(vt, "esc esc");
}

static void
evil_nodes(struct vt *vt, bool with_boxes)
{
    vt_keys(vt, "4");
    vt_want(vt, "OVER");
    vt_settle(vt, 100);
    frame_stands(vt, "Nodes");
    if (with_boxes)
        evil_boxes(vt, "4", "Nodes", of_others);
    vt_keys(vt, "enter"); /* the page of the node */
    vt_settle(vt, 100);
    frame_stands(vt, "Nodes");
    vt_keys(vt, "esc L");
    vt_settle(vt, 50);
    vt_keys(vt, "enter");
    vt_settle(vt, 100);
    vt_keys(vt, "esc esc 6");
    vt_want(vt, "pause");
    vt_settle(vt, 50);
    frame_stands(vt, "Audit");
}

static void
hostile_text_is_text(void **state)
{
    static const int sizes[][2] = {
        {24, 80 },
        {45, 140},
        {20, 60 }
    };
    struct vt vt;

    (void)state;
    evil_jobs();
    PGconn *session = evil_session();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        con_spawn(&vt, sizes[i][0], sizes[i][1], NULL,
                  (const char *const[]){"VISUAL=sed -i s/long/short/", NULL});
        vt_want(&vt, "‖");
        vt_settle(&vt, 100);
        frame_stands(&vt, "Queues");
        if (i == 0)
            evil_boxes(&vt, "1", "Queues", of_queues);
        evil_queue(&vt);
        evil_pages(&vt, i == 0);
        evil_failures(&vt, i == 0);
        evil_nodes(&vt, i == 0);
        evil_database(&vt);
        vt_keys(&vt, "y 8");
        vt_settle(&vt, 50);
        frame_stands(&vt, "Messages");
        con_quit(&vt);
    }
    PQfinish(session);
}

/* An error of the server holds the words of whoever made it. */
static void
hostile_errors_too(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    pg_run(con_db(), "drop function overview() cascade");
    pg_run(con_db(), "create function overview() returns setof queue_config language plpgsql as "
                     "$$ begin raise exception E'\\x1b]0;owned\\x07\\x1b[2J\\u202e'; end $$");
    con_spawn(&vt, 24, 80, NULL, NULL);
    vt_settle(&vt, 500);
    frame_stands(&vt, "Queues");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(hostile_text_is_text, con_empty),
        cmocka_unit_test_setup(hostile_errors_too, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
