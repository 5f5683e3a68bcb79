/*
 * Every action of the console, with its question: what the ladder asks for, what happens when the
 * answer is no or wrong, and what the database says afterwards.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proc.h"

static void
requeues_a_group(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 120, "connection refused");
    con_failed("mail.send", 3, "mailbox full");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "connection refused");
    vt_want(&vt, "mailbox full");
    vt_keys(&vt, "r");
    vt_want(&vt, "120 jobs"); /* the question then takes all jobs at once */
    vt_want(&vt, "first 10, then ask");
    vt_keys(&vt, "tab"); /* not a few of them first */
    vt_want(&vt, "Type 120 to go on:");
    vt_keys(&vt, "y enter text:12 enter");
    vt_settle(&vt, 60);
    assert_int_equal(con_count("state = 'failed'"), 123);
    vt_keys(&vt, "text:0 enter");
    vt_want(&vt, "requeue: 120 jobs");
    assert_int_equal(con_count("state = 'failed'"), 3);
    assert_int_equal(con_count("state = 'failed' and error = 'mailbox full'"), 3);
    con_quit(&vt);
}

/* A text with ~ before it means "contains": here it begins the text of the group, which another
 * group contains. */
static void
takes_only_its_group(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "~/bin/7: not found");
    con_failed("mail.send", 2, "no such file: /bin/N: not found");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "2 errors");
    vt_keys(&vt, "g enter"); /* the jobs of the group */
    vt_want(&vt, "error:\" ~/bin/N: not found\"");
    vt_want(&vt, "1 of 3");
    vt_keys(&vt, "esc");
    vt_want(&vt, "2 errors");
    vt_keys(&vt, "g D");
    vt_want(&vt, "3 jobs → deleted");
    vt_want(&vt, "Type 3 to go on:");
    vt_keys(&vt, "text:3 enter");
    vt_want(&vt, "delete: 3 jobs deleted");
    assert_int_equal(con_count("error like '~%'"), 0);
    assert_int_equal(con_count("state = 'failed'"), 2);
    con_quit(&vt);
}

static void
opens_the_group_without_an_error(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "");
    con_failed("mail.send", 1, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "2 errors");
    vt_keys(&vt, "g enter");
    vt_want(&vt, "error:\"\"");
    vt_want(&vt, "1 of 2");
    con_quit(&vt);
}

static void
requeues_all_that_match(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_failed("sms.send", 4, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "/ text:queue:sms.send enter");
    vt_want(&vt, "1 of 4");
    vt_keys(&vt, "R");
    vt_want(&vt, "4 jobs");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 4 jobs");
    assert_int_equal(con_count("state = 'failed' and queue = 'sms.send'"), 0);
    assert_int_equal(con_count("state = 'failed' and queue = 'mail.send'"), 3);
    con_quit(&vt);
}

/* A box shows an action that takes a while. If the action succeeds, the box closes by itself, and
 * the screen takes the next key. */
static void
a_box_goes_by_itself(void **state)
{
    struct vt vt;
    PGconn *lock = pg_connect(con_dsn());

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "space r");
    vt_want(&vt, "1 job");
    pg_run(lock, "begin; select from queues.queue for update");
    vt_keys(&vt, "y");
    vt_want(&vt, "Esc hide (goes on");
    pg_run(lock, "commit");
    vt_want(&vt, "requeue: 1 job");
    vt_keys(&vt, "1");
    vt_want_row(&vt, 1, "[1 Queues");
    con_quit(&vt);
    PQfinish(lock);
}

/* "All that match" is a question to the server, not the rows that are loaded. */
static void
marks_all_that_match(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 350, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "*");
    vt_want(&vt, "all that match");
    vt_keys(&vt, "r");
    vt_want(&vt, "first 10, then ask");
    vt_keys(&vt, "tab");
    vt_want(&vt, "Type 350 to go on:");
    vt_keys(&vt, "text:350 enter");
    vt_want(&vt, "requeue: 350 jobs");
    assert_int_equal(con_count("state = 'failed'"), 0);
    con_quit(&vt);
}

/* Space after * takes one job out: its mark does not come back with the next rows, and the act is
 * not for it. */
static void
marks_all_but_one(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 3");
    vt_keys(&vt, "* space");
    vt_want(&vt, "2 marked");
    con_failed("mail.send", 1, "boom");
    vt_want(&vt, " of 4");
    vt_want(&vt, "2 marked");
    vt_keys(&vt, "r");
    vt_want(&vt, "2 jobs");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 2 jobs");
    assert_int_equal(con_count("state = 'failed'"), 2);
    con_quit(&vt);
}

/* Then only the rows that were read are marked, and a message says so. */
static void
marks_all_that_were_read_but_one(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 700); /* more than are read */
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 200+");
    vt_keys(&vt, "*");
    vt_want(&vt, "all that match marked");
    vt_keys(&vt, "space");
    vt_want(&vt, "only the rows that were read are marked now, not all");
    vt_want(&vt, "199 marked");
    con_quit(&vt);
}

static void
make_small(struct vt *vt)
{
    vt_resize(vt, 8, 39);
    vt_want(vt, "40x10 needed");
}

/* A screen too small for a question takes no answer, neither to a question that was never seen nor
 * to one that was seen before; q leaves. */
static void
asks_only_what_can_be_seen(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 1);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail");
    make_small(&vt);
    vt_keys(&vt, "p enter");
    vt_settle(&vt, 300);
    vt_keys(&vt, "y");
    vt_settle(&vt, 300);
    vt_resize(&vt, 24, 80);
    vt_want(&vt, "mail");
    assert_string_equal(pg_value(con_db(), "select count(*) from audit"), "0");
    vt_keys(&vt, "p");
    vt_want(&vt, "Pause queue: mail");
    vt_keys(&vt, "enter");
    vt_want(&vt, "mail is paused");
    make_small(&vt);
    vt_keys(&vt, "y enter");
    vt_settle(&vt, 300);
    vt_resize(&vt, 24, 80);
    vt_want(&vt, "mail is paused");
    assert_string_equal(pg_value(con_db(), "select count(*) from audit"), "0");
    vt_keys(&vt, "y");
    vt_want(&vt, "pause: ");
    assert_string_equal(pg_value(con_db(), "select count(*) from audit"), "1");
    make_small(&vt);
    con_quit(&vt);
}

/* A line that takes nothing for a while: a question that the terminal has not got takes no answer.
 */
static void
asks_only_what_the_terminal_has(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 1);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail");
    vt_keys(&vt, "p");
    vt_want(&vt, "Pause queue: mail");
    vt_keys(&vt, "enter");
    vt_want(&vt, "mail is paused");
    make_small(&vt);
    assert_int_equal(tcflow(vt.slave, TCOOFF), 0);
    vt_resize(&vt, 24, 80);
    vt_settle(&vt, 300); /* the console draws the question, and can't send it */
    vt_keys(&vt, "y");
    vt_settle(&vt, 300);
    assert_int_equal(tcflow(vt.slave, TCOON), 0);
    vt_want(&vt, "mail is paused");
    assert_string_equal(pg_value(con_db(), "select count(*) from audit"), "0");
    vt_keys(&vt, "y");
    vt_want(&vt, "pause: ");
    assert_string_equal(pg_value(con_db(), "select count(*) from audit"), "1");
    con_quit(&vt);
}

/* Types the second after this one into the form of a time, once that second has passed; returns the
 * day that this means. */
static const char *
type_the_past(struct vt *vt)
{
    char second[64], typed[64];

    snprintf(second, sizeof second, "%s",
             pg_value(con_db(), "select date_trunc('second', clock_timestamp() at time zone 'UTC') "
                                "+ interval '1 s'"));
    while (
        *pg_value(con_db(),
                  "select clock_timestamp() at time zone 'UTC' > timestamp '%s' + interval '1 s'",
                  second) != 't')
        vt_settle(vt, 50);
    snprintf(typed, sizeof typed, "C-u text:%.8s enter", strchr(second, ' ') + 1);
    vt_keys(vt, typed);
    return pg_value(con_db(), "select (timestamp '%s' + interval '1 day')::date", second);
}

/* On a frozen screen a clock time is the next one after now, not after the screen was frozen. */
static void
takes_times_by_the_clock_while_frozen(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 1);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "ready       0/");
    vt_keys(&vt, "z");
    vt_want_row(&vt, 0, "frozen");
    vt_keys(&vt, "t");
    vt_want(&vt, "become due then");
    const char *day = type_the_past(&vt);
    vt_want(&vt, "1 job");
    vt_want(&vt, "due 2");
    vt_want(&vt, day);
    vt_keys(&vt, "y");
    vt_want(&vt, "reschedule: 1 job");
    assert_int_equal(con_count("run_after > now() + interval '1 hour'"), 1);
    con_quit(&vt);
}

/* A long name that is not ASCII: no place that cuts it leaves half of a character. */
static void
cuts_names_between_characters(void **state)
{
    struct vt vt;
    char name[200] = "";

    (void)state;
    for (size_t i = 0; i + sizeof "é漢" <= sizeof name; i += strlen("é漢"))
        memcpy(name + i, "é漢", sizeof "é漢");
    con_ready(name, 1);
    con_start(&vt, 24, 300, NULL);
    vt_want(&vt, "é漢é漢");
    vt_keys(&vt, "a");
    vt_want(&vt, "p      Pause ");
    assert_false(vt_find(&vt, "\uFFFD", NULL, NULL));
    vt_keys(&vt, "esc p");
    vt_want(&vt, "Pause queue: ");
    assert_false(vt_find(&vt, "\uFFFD", NULL, NULL));
    vt_keys(&vt, "enter");
    vt_want(&vt, "is paused");
    assert_false(vt_find(&vt, "\uFFFD", NULL, NULL));
    vt_keys(&vt, "n esc");
    con_quit(&vt);
}

static void
refuses_pasted_answers(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "space space r");
    vt_want(&vt, "2 jobs");
    vt_paste(&vt, "y");
    vt_want(&vt, "Pasted text is refused");
    assert_int_equal(con_count("state = 'failed'"), 2);
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* In Nodes: the selected node's three leases are given back. */
static void
releases_three(struct vt *vt, const char *title)
{
    vt_keys(vt, "L");
    vt_want(vt, title);
    vt_keys(vt, "enter");
    vt_want(vt, "3 jobs → ready");
    vt_keys(vt, "y");
    vt_want(vt, "release: ");
    assert_int_equal(pg_int(con_db(), "select count(*) from work_queue where lock_key is not null"),
                     0);
}

static void
releases_a_dead_node(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail.send", 3, "worker-1");
    con_node("worker-1", false);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "dead");
    vt_want(&vt, "IF RELEASED");
    releases_three(&vt, "Release leases: worker-1");
    assert_int_equal(con_count("true"), 3);
    con_quit(&vt);
}

/* The node was killed an hour ago, and its leases last for hours. By name, healthy nodes would come
 * before this one. */
static void
the_dead_node_comes_first(void **state)
{
    struct vt vt;
    char *err;

    (void)state;
    con_node("a-healthy", true);
    con_running("mail.send", 3, "worker-4");
    con_node("worker-4", true);
    pg_run(con_db(), "update node set backend_pid = 1 where lock_key = 'worker-4'");
    pg_run(con_db(), "update work_queue set lock_timeout = now() + interval '5 h' where lock_key "
                     "is not null");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "▲ 1 cut off  1 up "); /* while its last heartbeat is new */
    pg_run(con_db(), "update node set heartbeat = now() - interval '1 h' "
                     "where lock_key = 'worker-4'");
    vt_want(&vt, "worker-4 is dead");
    assert_int_equal(
        proc_run(NULL, NULL, &err, "-d \"%s\" release --node worker-4 --yes", con_dsn()), 1);
    assert_non_null(strstr(err, "no lease of it is expired: --all releases them all"));
    free(err);
    assert_int_equal(
        proc_run(NULL, NULL, &err, "-d \"%s\" release --node a-healthy --all --yes", con_dsn()), 1);
    free(err);
    vt_keys(&vt, "1");
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "4");
    vt_want(&vt, "IF RELEASED");
    releases_three(&vt, "Release leases: worker-4");
    con_quit(&vt);
}

/* For a node without a connection the form shows the same word as the list, not "up". */
static void
a_node_cut_off_is_told(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail.send", 3, "worker-4");
    con_node("worker-4", true);
    pg_run(con_db(), "update setting set value = '1 h' where name in ('node_late', 'node_dead')");
    pg_run(con_db(), "update node set backend_pid = 1, heartbeat = now()");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "cut off");
    vt_keys(&vt, "L");
    vt_want(&vt, "cut off: its session is gone, last heartbeat");
    vt_want(&vt, "it may come back until they expire; all takes them now");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

static void
a_live_node_takes_its_name(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail.send", 3, "worker-1");
    con_node("worker-1", true);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "worker-1");
    vt_keys(&vt, "L");
    vt_want(&vt, "Release leases: worker-1");
    vt_keys(&vt, "space enter"); /* all, not only the expired ones */
    vt_want(&vt, "looks alive");
    vt_want(&vt, "Type the name");
    vt_keys(&vt, "text:worker-2 enter");
    vt_settle(&vt, 60);
    assert_int_not_equal(
        pg_int(con_db(), "select count(*) from work_queue where lock_key is not null"), 0);
    vt_keys(&vt, "C-u text:worker-1 enter");
    vt_want(&vt, "release: ");
    assert_int_equal(pg_int(con_db(), "select count(*) from work_queue where lock_key is not null"),
                     0);
    con_quit(&vt);
}

static void
extends_leases(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail.send", 2, "worker-1");
    con_node("worker-1", true);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "worker-1");
    vt_keys(&vt, "E");
    vt_want(&vt, "Extend leases: worker-1");
    vt_keys(&vt, "C-u text:soon enter"); /* not a time */
    vt_settle(&vt, 60);
    vt_keys(&vt, "C-u text:30m enter");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "extend: ");
    assert_string_equal(pg_value(con_db(),
                                 "select bool_and(lock_timeout > now() + interval '29 min') "
                                 "from work_queue where lock_key is not null"),
                        "t");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 2");
    vt_keys(&vt, "space j space"); /* two that run: what acts on none of them is not offered */
    vt_want(&vt, "2 marked: c cancel · E extend");
    vt_keys(&vt, "r");
    vt_want(&vt, "requeue: the marked jobs run or wait");
    vt_keys(&vt, "U");
    vt_gone(&vt, "2 marked");
    vt_keys(&vt, "E");
    vt_want(&vt, "Extend leases");
    vt_keys(&vt, "C-u text:2h enter");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "extend: ");
    assert_string_equal(pg_value(con_db(),
                                 "select bool_or(lock_timeout > now() + interval '119 min') "
                                 "from work_queue where lock_key is not null"),
                        "t");
    con_quit(&vt);
}

static void
purges(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail.send", 4, "w");
    pg_run(con_db(),
           "select complete('w', array_agg(lease), array_agg(version), array_agg(seq)) from held");
    con_ready("mail.send", 1);
    assert_int_equal(pg_int(con_db(), "select count(*) from history"), 4);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "P");
    vt_want(&vt, "Purge finished jobs: mail.send");
    vt_keys(&vt, "tab tab C-u text:7d enter");
    vt_want(&vt, "nothing matches"); /* no row is that old: the form reports this and stays open */
    vt_settle(&vt, 200);
    assert_int_equal(pg_int(con_db(), "select count(*) from history"), 4);
    vt_keys(&vt, "C-u text:7 enter");
    vt_want(&vt, "\"7\" has no unit: write 7s, 7m, 7h or 7d");
    vt_keys(&vt, "C-u text:59m enter");
    vt_want(&vt, "an hour at least; less: purge --force");
    pg_run(con_db(), "create table history_20200101 partition of history "
                     "for values from ('2020-01-01') to ('2020-01-02')");
    pg_run(con_db(), "update history set finished = '2020-01-01 12:00Z'");
    vt_keys(&vt, "C-u text:1h enter");
    vt_want(&vt, "Type");
    vt_keys(&vt, "text:4 enter");
    vt_want(&vt, "purge: ");
    pg_wait(con_db(), "select count(*) from history", "0", 60000);
    assert_int_equal(con_count("true"), 1);
    con_quit(&vt);
}

/* One act for all marked queues, and for all marked nodes: the question has each and the sum. */
static void
acts_on_marked_rows(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail.send", 3, "worker-1");
    con_running("image.resize", 2, "worker-2");
    con_node("worker-1", false);
    con_node("worker-2", false);
    con_ready("sms.send", 1);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "sms.send");
    vt_keys(&vt, "space");
    vt_want(&vt, "1 marked: p pause · l limits");
    vt_keys(&vt, "space");
    vt_want(&vt, "2 marked: p pause · P purge");
    vt_keys(&vt, "l");
    vt_want(&vt, "limits: several are marked: U unmarks them");
    vt_keys(&vt, "*");
    vt_want(&vt, "3 marked");
    con_pause_marked(&vt, 3);
    vt_keys(&vt, "y");
    pg_wait(con_db(), "select count(*) from queue_config where pause_reason = 'close'", "3", 60000);
    con_done(&vt, "3 marked");
    vt_keys(&vt, "4");
    vt_want(&vt, "worker-2");
    vt_keys(&vt, "*");
    vt_want(&vt, "2 marked");
    vt_keys(&vt, "L");
    vt_want(&vt, "Release leases: 2 nodes");
    vt_keys(&vt, "enter");
    vt_want(&vt, "Release 2 nodes");
    vt_want(&vt, "5 jobs in all");
    vt_want(&vt, "worker-2: 2 jobs → ready");
    vt_keys(&vt, "y");
    pg_wait(con_db(), "select count(*) from work_queue where lock_key is not null", "0", 60000);
    con_done(&vt, "2 marked");
    con_quit(&vt);
}

/* Of three actions the second waits for a lock. When they end, the marks of the queues go, though
 * another screen is in front, and the marks on that screen stay. */
static void
takes_only_its_own_marks(void **state)
{
    struct vt vt;
    int left = 60;

    (void)state;
    con_ready("fax", 1);
    con_ready("mail", 1);
    con_ready("sms", 1);
    con_node("worker-1", false);
    con_node("worker-2", false);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "worker-2");
    vt_keys(&vt, "*");
    vt_want(&vt, "2 marked");
    vt_keys(&vt, "1");
    vt_want(&vt, "sms");
    vt_keys(&vt, "*");
    con_pause_marked(&vt, 3);
    PGconn *lock = con_hold_queue("mail"); /* an act waits for it for about 15 s */
    vt_keys(&vt, "y");
    vt_want(&vt, "Esc hide (goes on");
    vt_keys(&vt, "esc 4"); /* the box stays hidden, for the third action, too */
    vt_want(&vt, "2 marked");
    pg_run(lock, "rollback");
    pg_wait(con_db(), "select count(*) from queue_config where pause_reason = 'close'", "3", 60000);
    vt_want(&vt, "pause: 1 queue paused");
    do
        vt_keys(&vt, "g"); /* the messages of the outcomes go, with the last of them */
    while (!vt_came(&vt, "2 marked", 1000) && --left > 0);
    vt_want(&vt, "2 marked");
    vt_keys(&vt, "1");
    vt_want(&vt, "sms");
    vt_gone(&vt, "3 marked");
    con_quit(&vt);
    PQfinish(lock);
}

/* The second of three actions fails: the third does not begin, and all marks stay for another try.
 */
static void
marks_stay_when_one_fails(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("fax", 1);
    con_ready("mail", 1);
    con_ready("sms", 1);
    pg_run(con_db(), "alter table queue_config add constraint no_mail check (queue <> 'mail')");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "sms");
    vt_keys(&vt, "*");
    con_pause_marked(&vt, 3);
    vt_keys(&vt, "y");
    vt_want(&vt, "the last one was not begun");
    pg_wait(con_db(),
            "select string_agg(queue, ' ') from queue_config where pause_reason = 'close'", "fax",
            60000);
    vt_keys(&vt, "g");
    vt_want(&vt, "3 marked");
    con_quit(&vt);
    pg_run(con_db(), "alter table queue_config drop constraint no_mail");
}

/* D and X with all jobs marked: those that run are counted and left alone. */
static void
running_jobs_are_left_alone(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 2);
    con_running("sms", 3, "worker-1");
    con_node("worker-1", true);
    con_start(&vt, 24, 100, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 5");
    vt_keys(&vt, "*");
    vt_want(&vt, "all that match are marked");
    vt_keys(&vt, "D");
    vt_want(&vt, "2 jobs → deleted (ready)");
    vt_want(&vt, "3 jobs left alone: running");
    vt_keys(&vt, "esc X");
    vt_want(&vt, "2 jobs → discarded (ready)");
    vt_want(&vt, "3 jobs left alone: running");
    vt_keys(&vt, "y");
    vt_want(&vt, "discard: 2 jobs discarded, 3 jobs left alone: 3 running");
    assert_string_equal(pg_value(con_db(), "select string_agg(queue, ' ') from queue"),
                        "sms sms sms");
    con_quit(&vt);
}

static void
mark_three_groups(struct vt *vt)
{
    con_failed("fax", 3, "no paper");
    con_failed("mail", 2, "boom");
    con_failed("sms", 4, "no credit");
    con_start(vt, 24, 100, NULL);
    vt_keys(vt, "3");
    vt_want(vt, "3 errors");
    vt_keys(vt, "*");
}

/* One act for all marked groups of failed jobs: also for those that the filter hides. What is
 * marked stays marked when rows come, go and move. */
static void
acts_on_marked_groups(void **state)
{
    struct vt vt;

    (void)state;
    mark_three_groups(&vt);
    vt_want(&vt, "3 marked: r requeue · X discard · D delete");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "3 marked");
    vt_keys(&vt, "g space space"); /* sms and fax: the largest ones come first */
    vt_want(&vt, "2 marked");
    con_failed("new", 9, "first of all");
    vt_want(&vt, "4 errors");
    vt_want(&vt, "2 marked");
    vt_keys(&vt, "e");
    vt_want(&vt, "edit: several are marked: U unmarks them");
    vt_keys(&vt, "/ text:boom enter");
    vt_want(&vt, "1 of 4");
    vt_keys(&vt, "r");
    vt_want(&vt, "Requeue 2 groups");
    vt_want(&vt, "7 jobs in all");
    vt_want(&vt, "fax, no paper: 3 jobs → ready");
    vt_want(&vt, "sms, no credit: 4 jobs → ready");
    vt_keys(&vt, "y");
    pg_wait(con_db(),
            "select string_agg(queue, ' ' order by queue) from (select distinct queue "
            "from queue where state = 'failed') q",
            "mail new", 60000);
    pg_wait(con_db(), "select count(distinct action) from audit where verb = 'requeue'", "2",
            60000);
    con_done(&vt, "2 marked");
    con_quit(&vt);
}

/* The console reports marked groups that have disappeared. Groups by anything else than the error
 * have no marks. The act on each group is undone separately. */
static void
marks_of_groups_tell_the_truth(void **state)
{
    struct vt vt;

    (void)state;
    mark_three_groups(&vt);
    vt_want(&vt, "3 marked");
    pg_run(con_db(), "select discard(gen_random_uuid(), 1, array_agg(id), null) from queue "
                     "where queue = 'sms'");
    vt_want(&vt, "2 errors");
    vt_want(&vt, "3 marked");
    vt_keys(&vt, "X");
    vt_want(&vt, "Discard 2 groups");
    vt_want(&vt, "5 jobs in all");
    vt_want(&vt, "1 marked group has no failed job any more");
    vt_keys(&vt, "y");
    pg_wait(con_db(), "select count(*) from queue", "0", 60000);
    con_done(&vt, "3 marked");
    vt_keys(&vt, "6");
    vt_want(&vt, "discard         fax");
    vt_keys(&vt, "g u");
    vt_want(&vt, "Undo an action");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "undo: ");
    pg_wait(con_db(), "select count(distinct queue) from queue where state = 'failed'", "1", 60000);
    vt_keys(&vt, "3 m");
    vt_want(&vt, "by error [kind]");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "space");
    vt_want(&vt, "mark: nothing can be done with rows like this");
    con_quit(&vt);
}

static void
pauses_and_resumes(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "p");
    vt_want(&vt, "Pause queue: mail.send");
    vt_type(&vt, "month close");
    vt_keys(&vt, "enter");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "pause: ");
    assert_string_equal(
        pg_value(con_db(), "select pause_reason from queue_config where queue = 'mail.send'"),
        "month close");
    vt_want(&vt, "‖");
    vt_keys(&vt, "p");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "resume: ");
    assert_int_equal(
        pg_int(con_db(), "select count(*) from queue_config where paused_at is not null"), 0);
    con_quit(&vt);
}

static void
cancels(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 2);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 2");
    vt_keys(&vt, "c");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "cancel: ");
    assert_int_equal(con_count("true"), 1);
    assert_int_equal(pg_int(con_db(), "select count(*) from history where state = 'cancelled'"), 1);
    con_quit(&vt);
}

static void
drains_a_node(void **state)
{
    struct vt vt;

    (void)state;
    con_node("worker-1", true);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "worker-1");
    vt_keys(&vt, "d");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "drain: ");
    pg_wait(con_db(), "select state from node where lock_key = 'worker-1'", "draining", 3000);
    vt_keys(&vt, "6");
    vt_want(&vt, "drain");
    con_quit(&vt);
}

/* Jobs that changed between the question and the answer are refused or skipped, never
 * overwritten. */
static void
guards_against_change(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 3, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "space space space r");
    vt_want(&vt, "3 jobs");
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id), false, null) from "
                     "(select id from queue where state = 'failed' order by seq limit 1) x");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 2 jobs");
    assert_int_equal(con_count("state = 'ready'"), 3);
    assert_int_equal(pg_int(con_db(), "select sum(changed) from audit_batch"), 3);
    con_quit(&vt);
}

static void
holds_the_count_that_was_typed(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 120, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3");
    vt_want(&vt, "boom");
    vt_keys(&vt, "R");
    vt_want(&vt, "first 10, then ask");
    vt_keys(&vt, "tab");
    vt_want(&vt, "If the count is no longer 120, nothing is changed.");
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id), false, null) from "
                     "(select id from queue where state = 'failed' order by seq limit 1) x");
    vt_keys(&vt, "1 2 0 enter");
    vt_want(&vt, "expected 120, but 119 would change");
    assert_int_equal(con_count("state = 'ready'"), 1);
    vt_keys(&vt, "esc"); /* a slow action showed its box, and a box takes q for itself */
    con_quit(&vt);
}

/* Two queues have jobs with the same error. The group of the form goes while the form is open: the
 * priority of the other one does not change. */
static void
a_form_is_for_one_group(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 3, "no paper");
    con_failed("mail", 1, "no paper");
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "3 / text:queue:fax enter");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "g / C-u enter");
    vt_want(&vt, "2 of 2");
    vt_keys(&vt, "b");
    vt_want(&vt, "Priority: fax, no paper");
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id), false, null) from queue "
                     "where queue = 'fax'");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "text:1 enter");
    vt_want(&vt, "another row is selected now");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(requeues_a_group, con_empty),
        cmocka_unit_test_setup(takes_only_its_group, con_empty),
        cmocka_unit_test_setup(opens_the_group_without_an_error, con_empty),
        cmocka_unit_test_setup(requeues_all_that_match, con_empty),
        cmocka_unit_test_setup(a_box_goes_by_itself, con_empty),
        cmocka_unit_test_setup(marks_all_that_match, con_empty),
        cmocka_unit_test_setup(marks_all_but_one, con_empty),
        cmocka_unit_test_setup(marks_all_that_were_read_but_one, con_empty),
        cmocka_unit_test_setup(asks_only_what_can_be_seen, con_empty),
        cmocka_unit_test_setup(asks_only_what_the_terminal_has, con_empty),
        cmocka_unit_test_setup(takes_times_by_the_clock_while_frozen, con_empty),
        cmocka_unit_test_setup(cuts_names_between_characters, con_empty),
        cmocka_unit_test_setup(refuses_pasted_answers, con_empty),
        cmocka_unit_test_setup(releases_a_dead_node, con_empty),
        cmocka_unit_test_setup(the_dead_node_comes_first, con_empty),
        cmocka_unit_test_setup(a_node_cut_off_is_told, con_empty),
        cmocka_unit_test_setup(a_live_node_takes_its_name, con_empty),
        cmocka_unit_test_setup(extends_leases, con_empty),
        cmocka_unit_test_setup(purges, con_empty),
        cmocka_unit_test_setup(acts_on_marked_rows, con_empty),
        cmocka_unit_test_setup(takes_only_its_own_marks, con_empty),
        cmocka_unit_test_setup(a_form_is_for_one_group, con_empty),
        cmocka_unit_test_setup(marks_stay_when_one_fails, con_empty),
        cmocka_unit_test_setup(running_jobs_are_left_alone, con_empty),
        cmocka_unit_test_setup(acts_on_marked_groups, con_empty),
        cmocka_unit_test_setup(marks_of_groups_tell_the_truth, con_empty),
        cmocka_unit_test_setup(pauses_and_resumes, con_empty),
        cmocka_unit_test_setup(cancels, con_empty),
        cmocka_unit_test_setup(drains_a_node, con_empty),
        cmocka_unit_test_setup(guards_against_change, con_empty),
        cmocka_unit_test_setup(holds_the_count_that_was_typed, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
