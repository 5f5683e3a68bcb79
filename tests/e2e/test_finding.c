/*
 * Finding: the end of the jobs read from the end, searches that are bounded and say so, payloads.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

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
    vt_want_row(&vt, 1, "[1 Queues");
    vt_keys(&vt, "enter 2");
    vt_want(&vt, "filter queue:mail.send");
    vt_keys(&vt, "G");
    vt_want(&vt, "the last");
    con_quit(&vt);
}

/* The console reports "not found" only after it has searched all rows. */
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
    vt_keys(&vt, "enter");
    PGconn *lock = pg_connect(con_dsn());
    pg_run(lock, "begin; lock table queues.queue in access exclusive mode");
    pg_wait(con_db(),
            "select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock' and "
            "datname = current_database()",
            "t", 120000);
    vt_keys(&vt, "pgdn"); /* while a refresh is under way */
    vt_settle(&vt, 100);
    pg_run(lock, "rollback");
    PQfinish(lock);
    vt_want(&vt, "1 of 1");
    vt_gone(&vt, "looked at");
    vt_keys(&vt, "/ C-u text:queue:mail.sent");
    vt_want(&vt, "no queue is called mail.sent");
    vt_keys(&vt, "C-u text:payload.a..b=x");
    vt_want(&vt, "a name is missing between the dots");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* The jobs are read at another time than the counts: the state that is filtered by shows the
 * number of the list. */
static void
one_number_for_one_list(void **state)
{
    static const char *const options[] = {"--interval", "1h", NULL};
    struct vt vt;

    (void)state;
    con_failed("mail", 4, "boom");
    con_spawn(&vt, 24, 80, options, NULL);
    vt_want(&vt, "failed 4");
    con_failed("mail", 3, "boom");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 7");
    vt_want_row(&vt, 3, "[all 7]");
    con_quit(&vt);
}

/* The states stand above the jobs with their counts; Left and Right walk them, Enter filters. */
static void
walks_the_states(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 3);
    con_ready("image.resize", 1);
    con_running("mail.send", 2, "node-a");
    con_failed("mail.send", 4, "boom");
    con_start(&vt, 20, 60, NULL);
    vt_want(&vt, "image.resize");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 3, "[all 10]  running 2   ready 4   retry ·");
    vt_want_row(&vt, 4, "QUEUE");
    vt_keys(&vt, "right right enter");
    vt_want_row(&vt, 3, " all 10   running 2  [ready 4]");
    vt_want(&vt, "1 of 4");
    vt_keys(&vt, "left enter");
    vt_want(&vt, "filter state:running");
    vt_want(&vt, "1 of 2");
    vt_want(&vt, "for ");
    vt_keys(&vt, "right right enter"); /* also where there is no row */
    vt_want(&vt, "no job matches");
    vt_keys(&vt, "left left left enter");
    vt_want(&vt, "1 of 10");
    vt_keys(&vt, "/ text:queue:mail.send enter");
    vt_want_row(&vt, 3, "[all 9]  running 2   ready 3 ");
    vt_keys(&vt, "right esc"); /* Esc goes back to the list */
    vt_settle(&vt, 300);       /* a starved program would read Esc and j as Alt-j */
    vt_keys(&vt, "j");
    vt_want(&vt, "2 of 9");
    vt_keys(&vt, "/");
    vt_type(&vt, " kind:none");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 3, "[all]  running   ready   retry   scheduled");
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

/* Types a line behind ":" and Enter. */
static void
command(struct vt *vt, const char *line)
{
    vt_keys(vt, ":");
    vt_type(vt, line);
    vt_keys(vt, "enter");
}

/* A command takes the text after its name, or reports that it takes no text. A name alone goes to
 * the thing of that name. Esc returns to the previous place. */
static void
goes_by_name(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("image.resize", 1);
    con_running("mail.send", 2, "node-a");
    con_node("node-a", true);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "4");
    vt_want_row(&vt, 1, "[4 Nodes");
    command(&vt, "queue mail.send");
    vt_want_row(&vt, 1, "queues › mail.send");
    command(&vt, "node-a");
    vt_want_row(&vt, 1, "nodes › node-a");
    command(&vt, "image.resize");
    vt_want_row(&vt, 1, "queues › image.resize");
    vt_keys(&vt, "esc");
    vt_want_row(&vt, 1, "nodes › node-a");
    vt_keys(&vt, "esc");
    vt_want_row(&vt, 1, "queues › mail.send");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "› mail.send");
    vt_want_row(&vt, 1, "[4 Nodes");
    command(&vt, "jobs state:running");
    vt_want(&vt, "filter state:running");
    vt_want(&vt, "1 of 2");
    vt_keys(&vt, "esc");
    vt_want_row(&vt, 1, "[4 Nodes");
    con_quit(&vt);
}

/* The console reports what can't be done, also for an id that no job can have. A part of an id
 * finds its job. */
static void
says_why_not(void **state)
{
    struct vt vt;
    char line[100];

    (void)state;
    con_ready("image.resize", 1);
    con_ready("image.scale", 1);
    con_ready("mail.send", 2);
    char *id = xstrdup(pg_value(con_db(), "select id from queue where queue = 'image.scale'"));
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    command(&vt, "quit now");
    vt_want(&vt, "quit takes no argument: nothing was done");
    command(&vt, "queue image");
    vt_want(&vt, "2 queues begin with image; Tab completes names");
    command(&vt, "node nosuch");
    vt_want(&vt, "no node is called nosuch");
    command(&vt, "jobs id:zzzz");
    vt_want(&vt, "\"zzzz\" can't be the id of a job");
    command(&vt, "jobs id:12345678");
    vt_want(&vt, "only a part of an id: leave out id: to look for it");
    command(&vt, "failed mail");
    vt_want(&vt, "filter queue:mail.send");
    command(&vt, id);
    snprintf(line, sizeof line, "image.scale › %s", id + strlen(id) - 8);
    vt_want_row(&vt, 1, line);
    vt_keys(&vt, "esc 2");
    vt_want(&vt, "1 of 4");
    snprintf(line, sizeof line, "job %s", id + strlen(id) - 8);
    command(&vt, line);
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "PAYLOAD");
    vt_keys(&vt, ": text:queue");
    vt_type(&vt, " image");
    vt_keys(&vt, "tab");
    vt_want_row(&vt, 22, ":queue image.resize");
    vt_keys(&vt, "tab");
    vt_want_row(&vt, 22, ":queue image.scale");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 1, "queues › image.scale");
    con_quit(&vt);
    free(id);
}

/* The line can't show a joiner in the error of a group: / and Enter leave the filter as it was. */
static void
keeps_a_filter_that_a_line_cannot_show(void **state)
{
    const char *error = "no\u200Cthing";
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, error);
    con_start(&vt, 24, 100, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "the newest of 1: job");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "/");
    vt_want_row(&vt, 23, "the line can't show all of the filter: Enter keeps it as it is");
    vt_keys(&vt, "enter");
    con_failed("mail.send", 1, error);
    vt_want(&vt, "2 of 2");
    vt_keys(&vt, "/ end space bs enter"); /* it reads as before */
    con_failed("mail.send", 1, error);
    vt_want(&vt, " of 3");
    vt_keys(&vt, "/ end space z");
    vt_want(&vt, "no job matches");
    vt_keys(&vt, "esc");
    vt_want(&vt, "1 of 3");
    con_quit(&vt);
}

/* Groups the same failed jobs by error, kind, node and hour; Enter shows the jobs of a group. */
static void
groups(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    pg_run(con_db(), "update queue set kind = 'letter' where seq = (select min(seq) from queue)");
    con_start(&vt, 30, 140, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "3");
    vt_want_row(&vt, 1, "[3 Failed");
    vt_want(&vt, "LAST 24 H");
    vt_want(&vt, "3 jobs run again");
    vt_keys(&vt, "m");
    vt_want(&vt, "failed › by kind");
    vt_want(&vt, "letter");
    vt_want(&vt, "2 kinds");
    vt_keys(&vt, "r");
    vt_gone(&vt, "Requeue jobs");
    vt_keys(&vt, "j enter");
    vt_want(&vt, "state:failed queue:mail.send kind:letter");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "esc m");
    vt_want(&vt, "failed › by node");
    vt_want(&vt, "1 node");
    vt_keys(&vt, "m");
    vt_want(&vt, "failed › by hour");
    vt_want(&vt, ":00 UTC");
    vt_keys(&vt, "v");
    vt_want(&vt, "hour");
    vt_keys(&vt, "esc enter");
    vt_want(&vt, "ATTEMPTS");
    vt_want(&vt, "ATTEMPTS");
    vt_keys(&vt, "esc m");
    vt_gone(&vt, "by hour");
    vt_keys(&vt, "1");
    vt_type(&vt, ":failed kind:letter");
    vt_keys(&vt, "enter");
    vt_want(&vt, "groups can't be filtered by kind: :jobs state:failed kind:letter lists the jobs");
    vt_gone(&vt, "filter kind");
    vt_type(&vt, ":failed mail.send boom");
    vt_keys(&vt, "enter");
    vt_want(&vt, "filter mail.send boom");
    vt_want(&vt, "1 error: 1 new, 3 jobs");
    con_quit(&vt);
}

/* What stands below the table about the selected error; Tab goes to who had it, Enter there. */
static void
the_selected_error(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "host db-7 said 503");
    pg_run(con_db(), "update queue set kind = 'letter' where seq = (select min(seq) from queue)");
    con_start(&vt, 45, 140, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "3");
    vt_want(&vt, "N 1 was");
    vt_want(&vt, "db-7 ");
    vt_want(&vt, "mail.send: the last one failed");
    vt_want(&vt, "the newest of 3: job");
    vt_keys(&vt, "]");
    vt_want(&vt, "newest but 1 of 3: job");
    vt_want(&vt, "samples (2 of 3)");
    vt_keys(&vt, "tab enter");
    vt_want(&vt, "failed › tester");
    vt_keys(&vt, "esc");
    vt_want(&vt, "› who and what");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "› who and what");
    vt_keys(&vt, "tab j j enter");
    vt_want(&vt, "kind:letter");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "esc x");
    vt_want(&vt, "x: 24 h");
    vt_resize(&vt, 24, 80);
    vt_want(&vt, "db-7 in all; 503 in all");
    vt_keys(&vt, "tab"); /* no panes: the next screen */
    vt_want(&vt, "HOST");
    con_quit(&vt);
}

/* What the console knows of a queue and of a node besides its counts. */
static void
evidence(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    con_running("image.resize", 2, "node-a");
    con_node("node-a", true);
    pg_run(con_db(), "update node set slots = 8, backend_pid = pg_backend_pid()");
    pg_run(con_db(),
           "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled, "
           "lost, wait_ms, run_ms, wait_max, run_max, buckets, waits, runs) values "
           "(date_trunc('minute', now()), 'mail.send', 9, 9, 0, 0, 0, 0, 0, 0, 9000, 900, "
           "'{20}', '{9}', '{9}')");
    con_start(&vt, 45, 160, NULL);
    vt_want(&vt, "WAIT p99");
    vt_want(&vt, "stands");
    vt_want(&vt, "2/8");
    vt_want(&vt, "0.6s");
    vt_keys(&vt, "4");
    vt_want(&vt, "node-a leases");
    vt_want(&vt, "last lease ends");
    vt_want(&vt, "alive");
    vt_want(&vt, "session pid");
    pg_run(con_db(), "update node set backend_pid = 2147483647");
    vt_want(&vt, "pid 2147483647, is gone");
    pg_run(con_db(), "select node_clock('node-a', session, 400) from node");
    vt_want(&vt, "clock right");
    pg_run(con_db(), "select node_clock('node-a', session, -70000) from node");
    vt_want(&vt, "its clock is 1m 10s behind");
    pg_run(con_db(), "select node_clock('node-a', session, 3400) from node");
    vt_want(&vt, "its clock is 3.4s ahead");
    con_quit(&vt);
}

/* Back and forward through screens, filters and jobs; somewhere else forgets what was ahead. */
static void
trail(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    con_ready("a.first", 1);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "C-p");
    vt_want(&vt, "this is the first place");
    vt_keys(&vt, "/ text:mail enter enter");
    vt_want(&vt, "next to start");
    vt_keys(&vt, "2");
    vt_want(&vt, "queues › mail.send › jobs");
    vt_want(&vt, "1 of 2");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "4");
    vt_want(&vt, "no node");
    vt_keys(&vt, "C-p");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "C-p");
    vt_want(&vt, "queues › mail.send › jobs");
    vt_keys(&vt, "C-p");
    vt_want(&vt, "next to start");
    vt_keys(&vt, "C-p");
    vt_want(&vt, "needs you");
    vt_keys(&vt, "C-n C-n");
    vt_want(&vt, "queues › mail.send › jobs");
    vt_keys(&vt, "C-n");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "] esc");
    vt_want(&vt, "queues › mail.send › jobs");
    vt_keys(&vt, "esc esc C-n C-n C-n");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "C-n");
    vt_want(&vt, "no node");
    vt_keys(&vt, "C-n");
    vt_want(&vt, "nothing to go forward to");
    vt_keys(&vt, "esc esc esc esc");
    vt_want(&vt, "needs you");
    for (int i = 0; i < 40; i++)
        vt_keys(&vt, "1 4");
    for (int i = 0; i < 31; i++)
        vt_keys(&vt, "C-p");
    vt_want(&vt, "needs you");
    vt_keys(&vt, "C-n");
    vt_want(&vt, "no node");
    vt_keys(&vt, "bs");
    vt_want(&vt, "needs you");
    con_quit(&vt);
}

/* The page of a node says how long it has held its jobs, as bars; there is no bar without a job
 * outside of the longest and the shortest. */
static void
a_node_says_how_long(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail", 4, "node-a");
    con_running("fax", 1, "node-a");
    con_node("node-a", true);
    pg_run(con_db(), "update work_queue set lock_timeout = now() + interval '1 day', started = "
                     "now() - case queue when 'fax' then interval '3 h' else interval '3 min' end");
    con_start(&vt, 30, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "node-a");
    vt_keys(&vt, "enter");
    vt_want(&vt, "how long ago it took its 5 jobs");
    vt_want(&vt, "2m to 10m   ████████████████████████████████████████       4");
    vt_want(&vt, "10m to 1h                                                  ·");
    vt_want(&vt, "1h or more  ██████████░");
    assert_false(vt_find(&vt, "30s to 2m", &(int){0}, &(int){0}));
    vt_resize(&vt, 16, 80); /* the lists come first */
    vt_gone(&vt, "how long ago");
    vt_want(&vt, "mail");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_node_says_how_long, con_empty),
        cmocka_unit_test_setup(ends, con_empty),
        cmocka_unit_test_setup(bounded, con_empty),
        cmocka_unit_test_setup(walks_the_states, con_empty),
        cmocka_unit_test_setup(one_number_for_one_list, con_empty),
        cmocka_unit_test_setup(completes, con_empty),
        cmocka_unit_test_setup(goes_by_name, con_empty),
        cmocka_unit_test_setup(says_why_not, con_empty),
        cmocka_unit_test_setup(keeps_a_filter_that_a_line_cannot_show, con_empty),
        cmocka_unit_test_setup(groups, con_empty),
        cmocka_unit_test_setup(the_selected_error, con_empty),
        cmocka_unit_test_setup(evidence, con_empty),
        cmocka_unit_test_setup(trail, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
