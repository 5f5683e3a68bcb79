/*
 * Every command of the table is typed by its key and by its name, and what it does is seen. A row
 * that no step here names fails the last test.
 */
#include "tests/e2e/console.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/command.h"

enum { SEEN_MAX = 200 };

static struct {
    const char *names[SEEN_MAX];
    int n;
} seen;

/* Types the first key of a command; without a key its name in the palette. */
static void
press(struct vt *vt, const char *name)
{
    const struct command *c = command_named(0, name);
    char keys[100];

    if (!c)
        fail_msg("no command is called %s", name);
    seen.names[seen.n++] = c->name;
    if (*c->keys) {
        struct key k;
        const char *at = c->keys;
        assert_true(key_next(&at, &k));
        snprintf(keys, sizeof keys, "%s", key_word(&k).s);
        for (char *s = keys; strlen(keys) > 1 && k.mods != MOD_CTRL && *s; s++)
            *s = (char)tolower((unsigned char)*s); /* as tests/term.h calls them */
    } else {
        snprintf(keys, sizeof keys, ": text:%s enter", name);
    }
    vt_keys(vt, keys);
}

static void
everywhere(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom");
    con_start(&vt, 24, 80, NULL);
    press(&vt, "jobs");
    vt_want(&vt, "unfinished jobs");
    press(&vt, "redrive");
    vt_want(&vt, "redrive: this queue system has no such action");
    press(&vt, "failed");
    vt_want_row(&vt, 1, "[3 Failed");
    press(&vt, "backward");
    vt_gone(&vt, "[3 Failed");
    press(&vt, "forward");
    vt_want_row(&vt, 1, "[3 Failed");
    vt_want(&vt, ", try 1 of"); /* its jobs have come */
    press(&vt, "older");
    vt_want(&vt, "newest but 1 of 2: job");
    press(&vt, "newer");
    vt_want(&vt, "the newest of 2: job");
    press(&vt, "group");
    vt_want(&vt, "failed › by kind");
    press(&vt, "nodes");
    vt_want(&vt, "OVER");
    press(&vt, "schedules");
    vt_want(&vt, "no schedule");
    press(&vt, "audit");
    vt_want_row(&vt, 1, "[6 Audit");
    press(&vt, "database");
    vt_want(&vt, "vacuum");
    press(&vt, "happened");
    vt_want(&vt, "what happened");
    press(&vt, "messages");
    vt_want(&vt, "in this session");
    press(&vt, "overview");
    vt_want(&vt, "all sources");
    press(&vt, "source");
    vt_want(&vt, "SYSTEM");
    vt_keys(&vt, "esc esc 8");
    vt_want(&vt, "in this session");
    press(&vt, "next");
    vt_want_row(&vt, 1, "[1 Queues");
    press(&vt, "previous");
    vt_want(&vt, "in this session");
    press(&vt, "queues");
    vt_want_row(&vt, 1, "[1 Queues");
    press(&vt, "alert");
    vt_want(&vt, "nothing needs attention");
    press(&vt, "help");
    vt_want(&vt, "On this screen");
    press(&vt, "back");
    vt_want_row(&vt, 1, "[1 Queues");
    con_quit(&vt);
}

/* The test of these commands with a name is test_finding. */
static void
without_names(struct vt *vt)
{
    press(vt, "queue");
    vt_want_row(vt, 1, "[1 Queues");
    press(vt, "job");
    vt_want_row(vt, 1, "[2 Jobs");
    press(vt, "node");
    vt_want_row(vt, 1, "[4 Nodes");
    press(vt, "schedule");
    vt_want_row(vt, 1, "[5 Sched");
    vt_keys(vt, "1");
}

static void
follows(struct vt *vt)
{
    press(vt, "follow");
    vt_want(vt, "is followed on all screens");
    press(vt, "events");
    vt_want(vt, "followed from here on");
    vt_keys(vt, "esc");
    press(vt, "follow");
    vt_want(vt, "is no longer followed");
}

static void
everywhere_too(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    follows(&vt);
    press(&vt, "sql");
    vt_want(&vt, "SQL of this screen");
    vt_keys(&vt, "j k esc");
    vt_gone(&vt, "SQL of this screen");
    press(&vt, "freeze");
    vt_want_row(&vt, 0, "frozen");
    press(&vt, "freeze");
    vt_want_row(&vt, 0, "live");
    press(&vt, "slower");
    vt_want_row(&vt, 0, "live, each 2s");
    press(&vt, "faster");
    vt_gone(&vt, "live, each 2s");
    press(&vt, "zone");
    vt_want(&vt, "times are UTC");
    press(&vt, "reconnect");
    vt_want(&vt, "asked the server again");
    press(&vt, "progress");
    vt_want(&vt, "no action is running");
    press(&vt, "redraw");
    vt_want(&vt, "1 Queues");
    press(&vt, "copy");
    vt_want(&vt, "--clipboard");
    press(&vt, "copy-row");
    vt_want(&vt, "{\"queue\": \"mail.send\"");
    vt_keys(&vt, "esc");
    press(&vt, "full");
    vt_want(&vt, "the row in full");
    vt_keys(&vt, "esc");
    press(&vt, "limits");
    vt_want(&vt, "Limits of queue: mail.send");
    vt_keys(&vt, "esc");
    press(&vt, "actions");
    vt_want(&vt, "Pause mail.send");
    vt_keys(&vt, "esc");
    press(&vt, "command");
    vt_keys(&vt, "text:nod tab enter");
    vt_want(&vt, "OVER");
    vt_keys(&vt, ": text:nonsense enter");
    vt_want(&vt, "no command is called nonsense");
    without_names(&vt);
    press(&vt, "stop");
    vt_want(&vt, "Leave queuetop?");
    vt_keys(&vt, "n");
    vt_gone(&vt, "Leave queuetop?");
    press(&vt, "quit");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

static void
in_tables(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("a.first", 1);
    con_ready("b.second", 2);
    con_failed("c.third", 3, "boom");
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "c.third");
    press(&vt, "span"); /* test_charts tests its effect */
    press(&vt, "sort");
    vt_want(&vt, "sort by");
    vt_keys(&vt, "g enter");
    vt_want(&vt, "QUEUE↑");
    press(&vt, "invert");
    vt_want(&vt, "QUEUE↓");
    press(&vt, "sort-right");
    vt_want(&vt, "OLDEST↓");
    press(&vt, "sort-left");
    vt_want(&vt, "QUEUE↑");
    press(&vt, "columns");
    vt_want(&vt, "columns");
    vt_keys(&vt, "j j space esc");
    vt_gone(&vt, "READY");
    press(&vt, "down");
    press(&vt, "up");
    press(&vt, "page-down");
    press(&vt, "page-up");
    press(&vt, "half-down");
    press(&vt, "half-up");
    press(&vt, "end");
    press(&vt, "top");
    press(&vt, "filter");
    vt_keys(&vt, "text:third enter");
    vt_gone(&vt, "a.first");
    press(&vt, "open");
    vt_want(&vt, "next to start");
    vt_keys(&vt, "2");
    vt_want(&vt, "filter queue:c.third");
    vt_want(&vt, "boom");
    press(&vt, "mark");
    vt_want(&vt, "1 marked");
    press(&vt, "unmark");
    vt_gone(&vt, "1 marked");
    press(&vt, "all");
    vt_want(&vt, "all that match");
    vt_keys(&vt, "U enter");
    vt_want(&vt, "PAYLOAD");
    press(&vt, "wrap");
    vt_want(&vt, "cut");
    press(&vt, "right");
    press(&vt, "left");
    press(&vt, "next-job");
    press(&vt, "previous-job");
    vt_want(&vt, "PAYLOAD");
    con_quit(&vt);
}

/* Each key opens a question; test_acts tests the answers. */
static void
acting(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail.send", 2, "worker-1");
    con_failed("mail.send", 2, "boom");
    con_node("worker-1", true);
    con_spawn(&vt, 30, 100, NULL, (const char *const[]){"VISUAL=true", NULL});
    vt_want(&vt, "mail.send");
    press(&vt, "pause");
    vt_want(&vt, "Pause queue");
    vt_keys(&vt, "esc");
    press(&vt, "purge");
    vt_want(&vt, "Purge finished");
    vt_keys(&vt, "esc");
    press(&vt, "push");
    vt_want(&vt, "Push a job");
    vt_keys(&vt, "tab tab");
    press(&vt, "editor");
    vt_settle(&vt, 100);
    vt_want(&vt, "Push a job");
    vt_keys(&vt, "esc 4");
    vt_want(&vt, "worker-1");
    press(&vt, "release");
    vt_want(&vt, "Release leases");
    vt_keys(&vt, "esc");
    press(&vt, "extend");
    vt_want(&vt, "Extend leases");
    vt_keys(&vt, "esc");
    press(&vt, "drain");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* The console ignores a key that is typed before the question is drawn again. */
static void
say_no(struct vt *vt)
{
    while (vt_find(vt, "┌─ Requeue", NULL, NULL)) {
        vt_keys(vt, "n");
        vt_settle(vt, 60);
    }
}

static void
acting_on_jobs(void **state)
{
    struct vt vt;

    (void)state;
    con_running("mail.send", 2, "worker-1");
    con_failed("mail.send", 2, "boom");
    con_start(&vt, 30, 100, NULL);
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "/ text:state:failed enter");
    vt_want(&vt, "1 of 2");
    press(&vt, "cancel");
    vt_want(&vt, "the job failed: X discards it");
    press(&vt, "discard");
    vt_want(&vt, "discarded (failed)");
    press(&vt, "options");
    vt_want(&vt, "Options: discard");
    vt_keys(&vt, "esc");
    vt_want(&vt, "F2 count again");
    press(&vt, "dismiss");
    vt_want(&vt, "nothing was changed");
    press(&vt, "delete");
    vt_want(&vt, "deleted (failed)");
    vt_keys(&vt, "esc");
    press(&vt, "priority");
    vt_want(&vt, "Priority: ");
    vt_keys(&vt, "esc");
    press(&vt, "reschedule");
    vt_want(&vt, "failed: r requeues it");
    press(&vt, "requeue-all");
    vt_want(&vt, "2 jobs");
    press(&vt, "dialog-sql");
    vt_want(&vt, "SQL of this action");
    vt_keys(&vt, "esc");
    press(&vt, "dry-run");
    say_no(&vt);
    press(&vt, "requeue");
    vt_want(&vt, "1 job");
    press(&vt, "accept");
    vt_want(&vt, "requeue: 1 job");
    assert_int_equal(con_count("state = 'failed'"), 1);
    vt_keys(&vt, "6");
    vt_want(&vt, "  requeue ");
    press(&vt, "undo");
    vt_want(&vt, "failed again");
    vt_keys(&vt, "esc");
    con_failed("bulk", 100, "refused");
    vt_keys(&vt, "3");
    vt_want(&vt, "bulk");
    press(&vt, "requeue");
    vt_want(&vt, "first 10, then ask");
    press(&vt, "other-way");
    vt_want(&vt, "Type 100 to go on:");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* What the acts do to schedules is test_schedules'. */
static void
at_schedules(void **state)
{
    struct vt vt;

    (void)state;
    pg_run(con_db(),
           "select from schedule_set(gen_random_uuid(), 'nightly', '{\"cron\": \"@yearly\", "
           "\"queue\": \"report\"}')");
    con_start(&vt, 24, 80, NULL);
    press(&vt, "schedules");
    vt_want(&vt, "nightly");
    press(&vt, "run");
    vt_want(&vt, "Run a schedule now");
    vt_keys(&vt, "esc");
    press(&vt, "new");
    vt_want(&vt, "New schedule");
    vt_keys(&vt, "esc");
    press(&vt, "edit");
    vt_want(&vt, "Change schedule");
    vt_keys(&vt, "esc");
    press(&vt, "remove");
    vt_want(&vt, "Type the name");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* Ending somebody's session is test_health's. */
static void
at_database(void **state)
{
    struct vt vt;

    (void)state;
    con_start(&vt, 24, 80, NULL);
    press(&vt, "database");
    vt_want(&vt, "vacuum");
    press(&vt, "advice");
    vt_want(&vt, "advice ─");
    vt_keys(&vt, "esc");
    press(&vt, "cancel-query");
    press(&vt, "terminate");
    vt_settle(&vt, 60);
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* Under a shell with job control, as only there something can take it to the foreground again. */
static void
suspends(void **state)
{
    struct vt vt;
    const char *argv[] = {"sh",
                          "-c",
                          "set -m; \"$0\" \"$1\"; echo in the shell; read x; fg >/dev/null",
                          getenv("QUEUETOP"),
                          con_dsn(),
                          NULL};

    (void)state;
    vt_spawn(&vt, 24, 80, argv, NULL);
    vt_want(&vt, "live");
    press(&vt, "suspend");
    vt_want(&vt, "in the shell");
    assert_false(vt.in_alt_screen);
    assert_true(vt.is_cursor_shown);
    vt_keys(&vt, "enter");
    vt_want(&vt, "1 Queues");
    con_quit(&vt);
}

static void
all_were_typed(void **state)
{
    (void)state;
    for (int i = 0; command_at(i); i++) {
        bool typed = command_at(i)->scope == IN_REPLAY; /* see test_replay.c */
        for (int j = 0; j < seen.n; j++)
            typed = typed || !strcmp(seen.names[j], command_at(i)->name);
        if (!typed)
            fail_msg("no test types the command %s", command_at(i)->name);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(everywhere, con_empty),
        cmocka_unit_test_setup(everywhere_too, con_empty),
        cmocka_unit_test_setup(in_tables, con_empty),
        cmocka_unit_test_setup(acting, con_empty),
        cmocka_unit_test_setup(acting_on_jobs, con_empty),
        cmocka_unit_test_setup(at_schedules, con_empty),
        cmocka_unit_test_setup(at_database, con_empty),
        cmocka_unit_test_setup(suspends, con_empty),
        cmocka_unit_test(all_were_typed),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
