/*
 * What happened, as one list: h on a queue, a node, an error, and everything; Enter goes to what a
 * row is about, Esc comes back to the row.
 */
#include "tests/e2e/console.h"

#include <stdlib.h>
#include <string.h>

/* A living node stays alive, however long the test takes. */
static void
nodes_live_long(void)
{
    pg_run(con_db(),
           "update setting set value = '30 min' where name in ('node_late', 'node_dead')");
}

/* Two queues with acts, a node that died and one that works, errors at known times. */
static void
story(void)
{
    nodes_live_long();
    con_node("died-1", false);
    con_node("works-1", true);
    pg_run(con_db(),
           "update node set started = timestamptz '2020-01-02 03:04:05+00', version = '9.8' "
           "where lock_key = 'died-1'");
    con_failed("mail", 2, "no route to 17");
    pg_run(con_db(), "select fold_now()");
    con_failed("mail", 1, "no route to 18");
    con_failed("fax", 3, "no paper");
    pg_run(con_db(), "select pause(gen_random_uuid(), 'mail', 'month close')");
    pg_run(con_db(), "select set_queue(gen_random_uuid(), 'mail', '{\"max_running\": 7}')");
    pg_run(con_db(), "select drain_node(gen_random_uuid(), 'works-1', 'new disk')");
    pg_run(con_db(), "select pause(gen_random_uuid(), 'fax', 'toner')");
    pg_run(con_db(), "select fold_now()");
}

/* On a queue: its acts and errors and the nodes that take its jobs; not those of other queues. */
static void
of_a_queue(void **state)
{
    struct vt vt;
    int pause, set, row;

    (void)state;
    story();
    con_start(&vt, 30, 120, "--utc");
    vt_keys(&vt, ": text:mail enter");
    vt_want_row(&vt, 1, "queues › mail");
    vt_keys(&vt, "h");
    vt_want_row(&vt, 1, "queues › mail › what happened");
    vt_want(&vt,
            "what happened to mail: 2 acts, 1 node died, 2 nodes came, 1 error   h everything");
    vt_want(&vt, "first failed");
    vt_want(&vt, "last failed");
    vt_want(&vt, "no route to N");
    vt_want(&vt, "\"month close\"");
    vt_want(&vt, "max_running 7");
    vt_want(&vt, "× ");
    vt_settle(&vt, 100); /* the whole frame is there */
    assert_false(vt_find(&vt, "no paper", NULL, NULL));
    assert_false(vt_find(&vt, "toner", NULL, NULL));
    assert_false(vt_find(&vt, "new disk", NULL, NULL));
    assert_true(vt_find(&vt, "set             mail", &set, NULL));
    assert_true(vt_find(&vt, "pause           mail", &pause, NULL));
    assert_true(set < pause); /* the newest on top */
    assert_true(vt_find(&vt, "01-02 03:04", &row, NULL) || vt_find(&vt, "2020-01-02", &row, NULL));
    vt_keys(&vt, "G");
    vt_want(&vt, "2020-01-02 03:04:05 came died-1: version 9.8");
    con_quit(&vt);
}

/* Enter on each kind of row, and Esc back to it. */
static void
each_row_leads_somewhere(void **state)
{
    struct vt vt;

    (void)state;
    story();
    con_start(&vt, 24, 80, "--utc");
    vt_keys(&vt, "8");
    vt_want(&vt, "in this session");
    vt_keys(&vt, "h");
    vt_want(&vt, "what happened: 4 acts, 1 node died");
    vt_keys(&vt, "/ text:month enter");
    vt_want(&vt, "filter month");
    vt_want(&vt, "1 of 10 match the filter");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 1, "what happened › audit");
    vt_want(&vt, "reason: month close"); /* of four acts, this one is selected */
    vt_keys(&vt, "esc");
    vt_want(&vt, "filter month");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "filter month");
    vt_want(&vt, "pause mail by");
    vt_keys(&vt, "/ text:route enter");
    vt_want(&vt, "no route to N");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 1, "[3 Failed");
    vt_want(&vt, "›▲        3");
    vt_keys(&vt, "esc");
    vt_want(&vt, "filter route");
    vt_keys(&vt, "esc / text:died enter");
    vt_want(&vt, "›× ");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 1, "what happened › died-1");
    vt_want(&vt, "dead");
    vt_keys(&vt, "esc");
    vt_want(&vt, "filter died");
    con_quit(&vt);
}

/* On an error and on a node; a second h shows everything, Esc comes back. */
static void
of_an_error_and_a_node(void **state)
{
    struct vt vt;

    (void)state;
    story();
    con_start(&vt, 24, 80, "--utc");
    vt_keys(&vt, "3 / text:paper enter");
    vt_want(&vt, "1 error");
    vt_keys(&vt, "h");
    vt_want(&vt, "what happened to fax: no paper");
    vt_want(&vt, "\"toner\"");
    assert_false(vt_find(&vt, "no route", NULL, NULL));
    vt_keys(&vt, "esc esc 4");
    vt_want(&vt, "works-1");
    vt_keys(&vt, "/ text:works enter");
    vt_gone(&vt, "died-1");
    vt_keys(&vt, "h");
    vt_want(&vt, "what happened to works-1: 1 act");
    vt_want(&vt, "\"new disk\"");
    assert_false(vt_find(&vt, "toner", NULL, NULL));
    vt_keys(&vt, "h");
    vt_want(&vt, "what happened: 4 acts");
    vt_want_row(&vt, 1, "what happened › everything");
    vt_want(&vt, "toner");
    vt_keys(&vt, "h");
    vt_want(&vt, "this is everything that is still known");
    vt_keys(&vt, "esc");
    vt_want(&vt, "what happened to works-1");
    vt_keys(&vt, "esc : text:happened enter");
    vt_want(&vt, "what happened to works-1");
    con_quit(&vt);
}

/* A name may have a newline: the story is that of the queue, not of another one. */
static void
a_queue_with_a_newline(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 1, "no paper");
    con_failed("fax\nhall", 2, "no toner");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3 / text:toner enter");
    vt_want(&vt, "1 error");
    vt_keys(&vt, "h");
    vt_want(&vt, "what happened to fax\u240ahall: no toner");
    vt_want(&vt, "1 error   h everything");
    con_quit(&vt);
}

/* The errors of a node are those of jobs whose last try was there. */
static void
errors_of_a_node(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 3, "no paper");
    con_failed("mail", 2, "no route");
    pg_run(con_db(), "update attempt set node = 'other' where queue = 'mail'");
    con_node("tester", true);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "tester");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 1, "nodes › tester");
    vt_keys(&vt, "h");
    vt_want(&vt, "no paper");
    assert_false(vt_find(&vt, "no route", NULL, NULL));
    con_quit(&vt);
}

/* A node that ends in order has no row any more: the console has seen it leaving. */
static void
a_node_that_left(void **state)
{
    struct vt vt;

    (void)state;
    nodes_live_long();
    con_node("leaves", true);
    con_node("stays", true);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "leaves");
    vt_want(&vt, "stays");
    pg_run(con_db(), "select node_stop(lock_key, session) from node where lock_key = 'leaves'");
    vt_gone(&vt, "leaves");
    vt_keys(&vt, "6");
    vt_want_row(&vt, 1, "[6 Audit");
    vt_keys(&vt, "h");
    vt_want(&vt, "left leaves: its process ended in order");
    vt_want(&vt, "what happened: 1 node came");
    vt_want(&vt, "stays");
    con_quit(&vt);
}

/* More errors and nodes than fit: the older acts and nodes are still there, and the heading says
 * that older rows are left out. */
static void
thousands_of_errors_hide_no_act(void **state)
{
    struct vt vt;

    (void)state;
    nodes_live_long();
    pg_run(con_db(), "select node_start('n' || i, gen_random_uuid(), 'h', 1, '1', 1, null, 1)"
                     " from generate_series(1, 70) i");
    con_ready("mail", 1);
    pg_run(con_db(), "select pause(gen_random_uuid(), 'mail', 'month close')");
    con_ready("many", 160);
    pg_run(
        con_db(),
        "do $$ declare c record; begin for i in 0..3 loop "
        "select array_agg(lease) l, array_agg(version) v, array_agg(seq) s, array_agg(true) t,"
        " array_agg('kind ' || chr(97 + i) || chr(97 + n::int / 8) || chr(97 + mod(n::int, 8))) e "
        "into c from (select *, row_number() over () as n from claim('w', 40, queues => "
        "'{many}')) z; perform fail('w', c.l, c.v, c.s, c.e, final => c.t); end loop; end $$");
    pg_run(con_db(), "select fold_now()");
    assert_true(pg_int(con_db(), "select count(*) from failure_groups()") > 100);
    con_start(&vt, 24, 100, NULL);
    vt_keys(&vt, "8 h");
    vt_want(&vt, "what happened: 1 act, 50 nodes came, 100 errors, no older ones");
    vt_keys(&vt, "/ text:month enter");
    vt_want(&vt, "1 of 151 match the filter");
    con_quit(&vt);
}

/* Several rows are marked: whose story is it? */
static void
not_of_several(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("a", 1);
    con_ready("b", 1);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "* h");
    vt_want(&vt, "several are marked: U unmarks them");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(of_a_queue, con_empty),
        cmocka_unit_test_setup(each_row_leads_somewhere, con_empty),
        cmocka_unit_test_setup(of_an_error_and_a_node, con_empty),
        cmocka_unit_test_setup(a_queue_with_a_newline, con_empty),
        cmocka_unit_test_setup(errors_of_a_node, con_empty),
        cmocka_unit_test_setup(a_node_that_left, con_empty),
        cmocka_unit_test_setup(thousands_of_errors_hide_no_act, con_empty),
        cmocka_unit_test_setup(not_of_several, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
