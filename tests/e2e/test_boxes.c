/*
 * Golden screens of the boxes: every form and every kind of question that an act asks, on the data
 * of the pictures. UPDATE=1 renews them, and their diff is to be read. Nothing is changed there.
 */
#include "tests/harness.h"
#include "tests/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/shop.h"

static const char *
editor(void)
{
    static char path[300], var[320];

    snprintf(path, sizeof path, "%s/editor", getenv("TMPDIR"));
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs("#!/bin/sh\nif grep -q mended \"$1\"; then echo '{ \"oops' >\"$1\"\n"
          "else echo '{ \"mended\": true, \"width\": 1024 }' >\"$1\"; fi\n",
          f);
    fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
    snprintf(var, sizeof var, "VISUAL=%s", path);
    return var;
}

/* Opens a box by its keys, waits for the text that the box shows, compares the picture, and closes
 * the box. */
static void
box(struct vt *vt, const char *keys, const char *shows, const char *name)
{
    vt_keys(vt, keys);
    vt_want(vt, shows);
    shop_golden(vt, name);
    vt_keys(vt, "esc");
    vt_gone(vt, shows);
}

static void
of_queues(struct vt *vt)
{
    vt_keys(vt, "j");
    box(vt, "p", "reason", "box_pause");
    box(vt, "P", "older than", "box_purge");
    box(vt, "N", "Push a job", "box_push");
    box(vt, "l", "Limits of queue", "box_limits");
    vt_keys(vt, "p enter");
    vt_want(vt, "F2 count again");
    shop_golden(vt, "ask_pause");
    vt_keys(vt, "esc esc");
}

static void
of_jobs(struct vt *vt)
{
    vt_keys(vt, "2");
    vt_want(vt, "unfinished jobs");
    vt_keys(vt, "/ text:queue:image.resize enter / end");
    vt_type(vt, " state:failed,retry");
    vt_keys(vt, "enter");
    vt_want(vt, " of 12");
    box(vt, "b", "Priority: ", "box_priority");
    box(vt, "r", "F2 count again", "ask_requeue");
    box(vt, "X", "undo brings it back", "ask_discard");
    box(vt, "D", "Type 1 to go on:", "ask_delete");
    box(vt, "Y", "row as JSON", "box_json");
    box(vt, "f", "the row in full", "box_full");
    vt_keys(vt, "r");
    vt_want(vt, "F2 count again");
    vt_keys(vt, "f4");
    vt_want(vt, "spread over");
    shop_golden(vt, "box_options");
    vt_keys(vt, "esc esc");
    vt_gone(vt, "F2 count again");
}

/* The question is answered with No: the console keeps the typed text. A mistake in the text is
 * reported. */
static void
of_payloads(struct vt *vt)
{
    vt_keys(vt, "e");
    vt_want(vt, "+ { \"mended\"");
    shop_golden(vt, "ask_edit");
    vt_keys(vt, "n");
    vt_want(vt, "What you typed is kept");
    vt_keys(vt, "e");
    vt_want(vt, "this is no JSON");
    shop_golden(vt, "box_edit");
    vt_keys(vt, "esc");
    vt_want(vt, "dropped");
}

static void
of_nodes(struct vt *vt)
{
    vt_keys(vt, "4");
    vt_want(vt, "worker-4");
    vt_keys(vt, "g");
    vt_want(vt, "worker-4 leases");
    box(vt, "E", "Extend leases", "box_extend");
    vt_keys(vt, "L enter");
    vt_want(vt, "undo");
    shop_golden(vt, "ask_release");
    vt_keys(vt, "esc");
    vt_gone(vt, "undo");
    vt_keys(vt, "G");
    box(vt, "d", "undo", "ask_drain");
}

static void
boxes_at(int rows, int cols)
{
    struct vt vt;

    shop_enter(&vt, rows, cols, editor());
    of_queues(&vt);
    of_jobs(&vt);
    of_payloads(&vt);
    of_nodes(&vt);
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

static void
at_80x24(void **state)
{
    (void)state;
    boxes_at(24, 80);
}

/* The boxes with the most lines, on a small screen. */
static void
at_60x20(void **state)
{
    struct vt vt;

    (void)state;
    shop_enter(&vt, 20, 60, NULL);
    vt_keys(&vt, "j");
    box(&vt, "N", "Push a job", "box_push");
    box(&vt, "l", "Limits of queue", "box_limits");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

/* The few that wait come to an end: one of them fails again. */
static void
let_them_end(void)
{
    PGconn *c = pg_connect(pg_dsn("shop"));

    pg_run(c, "set search_path to queues");
    pg_run(c, "create temp table few as select id, row_number() over (order by id) as n from queue "
              "where queue = 'search.index' and state = 'ready' and priority = 0");
    assert_int_equal(pg_int(c, "select count(*) from few"), 10);
    pg_run(c, "update queue q set state = 'failed', error = 'mapping conflict: field 7',"
              " error_key = 'mapping conflict: field N' from few f where f.id = q.id and f.n = 4");
    pg_run(c, "with done as (delete from queue q using few f where f.id = q.id and f.n <> 4"
              " returning q.*, f.n) insert into history (id, created, started, finished, state,"
              " priority, tries, queue, kind, node) select id, created, now() - (8 + n) * interval"
              " '0.1 s', now(), 'completed', 0, tries, queue, kind, 'worker-' || n %% 5 from done");
    PQfinish(c);
}

/* This test is the last one of the file: it changes what the other tests show. */
static void
a_few_first(void **state)
{
    static const struct {
        int rows, cols;
    } sizes[] = {
        {24, 80 },
        {20, 60 },
        {45, 140},
    };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct vt vt;
        shop_enter(&vt, sizes[i].rows, sizes[i].cols, NULL);
        vt_keys(&vt, "3");
        vt_want(&vt, "connect() to es-N");
        vt_keys(&vt, "r");
        vt_want(&vt, "first 10, then ask");
        vt_keys(&vt, "enter");
        vt_want(&vt, "0 of 10 ended");
        let_them_end();
        vt_want(&vt, "9 of 10 are done, 1 failed again: the cause seems");
        if (sizes[i].cols > 80)
            vt_want(&vt, "the newest of 3,970"); /* the table beside the box has been read again */
        shop_golden(&vt, "canary");
        vt_keys(&vt, "esc");
        vt_want(&vt, "tried: 9 done, 1 failed again");
        vt_keys(&vt, "q");
        vt_ended_well(&vt, 0);
        vt_done(&vt);
    }
}

static int
end(void **state)
{
    char path[300];

    snprintf(path, sizeof path, "%s/editor", getenv("TMPDIR"));
    unlink(path);
    return shop_close(state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_80x24),
        cmocka_unit_test(at_60x20),
        cmocka_unit_test(a_few_first),
    };

    return cmocka_run_group_tests(tests, shop_open, end);
}
