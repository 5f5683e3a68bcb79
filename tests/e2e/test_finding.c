/*
 * Finding: the end of the jobs read from the end, searches that are bounded and say so, payloads.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* G goes to the oldest of many jobs, PgUp from there upwards, g back to the newest. */
static void
ends(void **state)
{
    struct vt vt;

    (void)state;
    pg_run(con_db(), "insert into queue (queue, kind) select 'mail.send', 'k' || i from "
                     "generate_series(1, 3000) i");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 200+");
    vt_keys(&vt, "G");
    vt_want(&vt, "the last");
    for (int i = 0; i < 15; i++)
        vt_keys(&vt, "pgup");
    vt_want(&vt, "near the end");
    vt_keys(&vt, "g");
    vt_want(&vt, "1 of 200+");
    vt_keys(&vt, "1");
    vt_want(&vt, "all queues");
    vt_keys(&vt, "enter");
    vt_want(&vt, "queue:mail.send");
    vt_keys(&vt, "G");
    vt_want(&vt, "the last");
    con_quit(&vt);
}

/* Nothing is said not to be there before all of it was looked at. */
static void
bounded(void **state)
{
    struct vt vt;

    (void)state;
    pg_run(con_db(), "insert into queue (queue, payload) select 'mail.send', json_build_object("
                     "'customer', json_build_object('name', case i when 1 then 'Acme' else 'Roe' "
                     "end)) from generate_series(1, 17000) i");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 200+");
    vt_keys(&vt, "/ text:nosuchword");
    vt_want(&vt, "no job matches");
    vt_keys(&vt, "C-u text:payload~roe");
    vt_want(&vt, "1 of 200+");
    vt_keys(&vt, "C-u text:payload.customer.name=Acme");
    vt_want(&vt, "none among 16,000 payloads; PgDn looks at more");
    vt_want(&vt, "16,000 looked at");
    vt_keys(&vt, "enter pgdn");
    vt_want(&vt, "1 of 1");
    vt_gone(&vt, "looked at");
    vt_keys(&vt, "/ C-u text:queue:mail.sent");
    vt_want(&vt, "no queue is called mail.sent");
    vt_keys(&vt, "C-u text:payload.a..b=x");
    vt_want(&vt, "a name is missing between the dots");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* Tab puts in keys, states and names, again and again; what is wrong is underlined and said. */
static void
completes(void **state)
{
    struct vt vt;
    int row, col;

    (void)state;
    pg_run(con_db(), "insert into queue (queue, kind) values ('image.resize', 'thumb'), "
                     "('image.scale', 'thumbnail'), ('my queue', 'other'), (e'evil\\x1b', 'x')");
    con_node("node-a", true);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "image.scale");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 4");
    vt_keys(&vt, "/");
    vt_want_row(&vt, 23, "state:  queue:  kind:");
    vt_keys(&vt, "text:queue:im");
    vt_want_row(&vt, 23, "queue:image.resize  queue:image.scale");
    vt_keys(&vt, "tab");
    vt_want_row(&vt, 22, "/queue:image.resize");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "tab");
    vt_want_row(&vt, 22, "/queue:image.scale");
    vt_type(&vt, "\033[Z");
    vt_want_row(&vt, 23, "[queue:image.resize]");
    vt_type(&vt, " ki");
    vt_keys(&vt, "tab");
    vt_want_row(&vt, 22, "queue:image.resize kind:");
    vt_type(&vt, "THUMBN");
    vt_want_row(&vt, 23, "Tab  kind:thumbnail");
    vt_keys(&vt, "tab");
    vt_want_row(&vt, 22, "queue:image.resize kind:thumbnail");
    vt_keys(&vt, "C-u text:MY tab");
    vt_want_row(&vt, 22, "queue:\"my queue\"");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "C-u text:node:n tab");
    vt_want_row(&vt, 22, "node:node-a");
    vt_keys(&vt, "C-u text:state:failed,re tab");
    vt_want_row(&vt, 22, "state:failed,ready");
    vt_keys(&vt, "C-u text:queue:evil");
    vt_gone(&vt, "Tab  ");
    vt_keys(&vt, "C-u text:thumb");
    vt_type(&vt, " zzz:1");
    vt_want_row(&vt, 23, "no such key");
    assert_true(vt_find(&vt, "zzz", &row, &col));
    assert_true(vt_cell(&vt, row, col).underline);
    assert_false(vt_cell(&vt, row, col - 2).underline);
    vt_keys(&vt, "esc 1 / text:image.s tab enter");
    vt_want_row(&vt, 1, "queues › image.scale");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ends, con_empty),
        cmocka_unit_test_setup(bounded, con_empty),
        cmocka_unit_test_setup(completes, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
