/*
 * Verbs and console, as whichever role, in a database full of traps (trap.h), wherever public
 * stands in the search_path: all do their work, and none springs one.
 */
#include "tests/e2e/trap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/term.h"

/* Runs the words followed by the id of the first job of this queue in this state. */
static void
run_on_job(const char *user, const char *words, const char *queue, const char *state)
{
    char line[300];

    snprintf(line, sizeof line, "%s %s", words,
             pg_value(trap_db(),
                      "select id from (select id, queue, state::text from queues.queue union all"
                      " select id, queue, state::text from queues.history) j where queue = '%s' and"
                      " state = '%s' order by id limit 1",
                      queue, state));
    trap_run(user, 0, line);
}

static void
the_traps_work(void **state)
{
    static const char *const by_default[] = {"select extract(epoch from now()) * 1000",
                                             "select 1::numeric <= 2",
                                             "select 'a'::varchar = 'a'::text",
                                             "select left('a'::varchar, 1)",
                                             "select concat('a'::text, 1)",
                                             "select array_to_string('{1}'::bigint[], ' ')"};
    static const char *const before[] = {"select 1 = 1", "select now()", "select 'a'::text",
                                         "select relname from pg_class", "select 'a' like 'b'"};

    (void)state;
    for (int p = 0; p < 2; p++) {
        trap_enter("works", trap_paths[p]);
        PGconn *conn = pg_connect(pg_dsn("works"));
        pg_run(conn, "begin read only");
        for (size_t i = 0; i < sizeof by_default / sizeof *by_default; i++) {
            pg_run(conn, "savepoint a");
            if (strcmp(pg_try(conn, "%s", by_default[i]), "QTRAP") != 0)
                fail_msg("no trap: %s", by_default[i]);
            pg_run(conn, "rollback to a");
        }
        for (size_t i = 0; p == 1 && i < sizeof before / sizeof *before; i++) {
            pg_run(conn, "savepoint a");
            if (strcmp(pg_try(conn, "%s", before[i]), "QTRAP") != 0)
                fail_msg("no trap: %s", before[i]);
            pg_run(conn, "rollback to a");
        }
        PQfinish(conn);
        char *said = trap_sprung();
        assert_non_null(said);
        assert_non_null(strstr(said, "TRAP operator(numeric, integer) as postgres"));
        free(said);
    }
}

static void
pushes_and_works(const char *user)
{
    struct proc scheduler;

    trap_run(user, 0, "push mail --payload '{\"n\": 1}' --kind invoice --priority 3");
    trap_run(user, 0,
             "push mail - --unique one --max-tries 3 --lease-timeout 60s --run-timeout 9s");
    trap_run(user, 0, "push fails --payload 7 --max-tries 1");
    trap_run(user, 0,
             "push blob --payload abc --type text/plain --concurrency-key k --expires-in 1h");
    trap_run(user, 0, "push later --delay 2h --payload null");
    trap_run(user, 0, "push later --at '2030-01-01 10:00+01' --lines -");
    proc_queuetop(&scheduler, NULL, "-d \"host=%s dbname=%s user=%s\" schedule", pg_host(),
                  trap_name(), user);
    proc_want(&scheduler, "is active");
    trap_run(user, 0, "work --drain -q mail,blob -j 4 -- cat");
    trap_run(user, 0, "work --drain -q fails -- false");
    trap_run(user, 0, "work --poll --max-idle 1s -q later -- cat");
    trap_run(user, 0, "push mail --payload 1");
    pg_wait(trap_db(), "select count(*) from queues.work_queue", "1", PROC_WAIT_MS);
    proc_ends(&scheduler);
    proc_done(&scheduler);
    trap_none_sprung("schedule");
}

/* A held lease of a node that is gone, a failed job, one that waits, one for later. */
static void
lists(const char *user)
{
    static const char *const words[] = {"queues",
                                        "queues --json",
                                        "jobs --json -n 0",
                                        "jobs --csv",
                                        "jobs state:failed,ready",
                                        "jobs 'tries<9 age>0s'",
                                        "jobs -q mail --state completed",
                                        "jobs --error ~exit",
                                        "nodes --json",
                                        "leases --json",
                                        "failures --json",
                                        "audit --json",
                                        "cron list",
                                        "cron show night",
                                        "cron next '0 3 * * *' --tz Europe/Berlin",
                                        "queue mail",
                                        "adapter list"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        trap_run(user, ANY, words[i]);
    run_on_job(user, "job", "mail", "completed");
    run_on_job(user, "job --json", "fails", "ready");
}

static void
acts(const char *user)
{
    char line[100];

    trap_run(
        user, 0,
        "queue mail --weight 2 --limit 9 --rate 50/s --burst 5 --chunk 3 --timeout 1m --max-tries 4"
        " --backoff 5s..1h --retention 7d --history full --per-key 2 -y");
    trap_run(user, 0,
             "cron add night '30 2 * * *' -q mail --payload '{}' --tz Europe/Berlin --unique -y");
    trap_run(user, 0, "cron pause night -y");
    trap_run(user, 0, "cron resume night -y");
    trap_run(user, 0, "cron run night -y");
    trap_run(user, 0, "pause mail -y -r why");
    trap_run(user, 0, "resume mail -y");
    trap_run(user, 0, "requeue --state failed --queue fails --dry-run");
    run_on_job(user, "requeue -y --id", "fails", "failed");
    run_on_job(user, "priority 2 -y --id", "later", "scheduled");
    run_on_job(user, "reschedule 3h -y --id", "later", "scheduled");
    run_on_job(user, "edit -y --payload '{\"changed\": 1}'", "later", "scheduled");
    run_on_job(user, "discard -y --id", "later", "scheduled");
    snprintf(line, sizeof line, "undo -y %s",
             pg_value(trap_db(), "select action from queues.audit where verb = 'discard'"));
    trap_run(user, 0, line);
    trap_run(user, 0, "priority 3 -q later --yes");
    trap_run(user, 0, "cancel -q later --state scheduled -y");
    trap_run(user, 0, "purge -q mail --older-than 0s --force --dry-run");
}

static void
ends(const char *user)
{
    trap_run(user, 0, "delete -q fails -y");
    trap_run(user, 0, "purge -q mail --older-than 0s --force -y");
    trap_run(user, 0, "cron remove night -y");
    trap_run("postgres", 1, "purge-audit --older-than 1d -y");
}

/* A job that runs on a node: its lease is extended, the node drained, and its lease taken. */
static void
nodes(const char *user)
{
    struct proc scheduler, worker;

    proc_queuetop(&scheduler, NULL, "-d \"host=%s dbname=%s user=app\" schedule", pg_host(),
                  trap_name());
    proc_queuetop(&worker, NULL,
                  "-d \"host=%s dbname=%s user=app\" work --node n1 -q held -- sleep 600",
                  pg_host(), trap_name());
    trap_run(user, 0, "push held --payload 1");
    pg_wait(trap_db(),
            "select count(*) from queues.work_queue w join queues.node n using (lock_key)", "1",
            PROC_WAIT_MS);
    trap_run(user, 0, "extend --node n1 --by 5m -y");
    trap_run(user, 0, "leases");
    trap_run(user, 0, "drain n1 -y");
    run_on_job(user, "job", "held", "ready");
    trap_run(user, 0, "release --node n1 --all --force -y");
    proc_done(&worker);
    proc_ends(&scheduler);
    proc_done(&scheduler);
    trap_none_sprung("nodes");
}

/* Each screen, and the questions of some acts. */
static void
screens(const char *user)
{
    char dsn[300];
    struct vt vt;

    snprintf(dsn, sizeof dsn, "host=%s dbname=%s user=%s", pg_host(), trap_name(), user);
    vt_spawn(&vt, 30, 120, (const char *const[]){getenv("QUEUETOP"), dsn, NULL}, NULL);
    vt_want(&vt, "live");
    vt_want(&vt, "mail");
    vt_keys(&vt, "2");
    vt_want(&vt, "LAST ERROR");
    vt_keys(&vt, "/ text:queue:held enter");
    vt_want(&vt, " of 1");
    vt_want(&vt, "ready");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "esc 3");
    vt_want(&vt, "LAST 24 H");
    vt_keys(&vt, "4");
    vt_want(&vt, "n1");
    vt_keys(&vt, "5");
    vt_want(&vt, "night");
    vt_keys(&vt, "6");
    vt_want(&vt, "discard");
    vt_keys(&vt, "7");
    vt_want(&vt, "audit_batch");
    vt_keys(&vt, "1");
    vt_want(&vt, "mail");
    vt_want(&vt, "live");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    trap_none_sprung("the console");
}

static void
records(void)
{
    char line[300], path[280];

    snprintf(path, sizeof path, "%s/recording", getenv("TMPDIR"));
    snprintf(line, sizeof line, "record --for 10s %s", path);
    trap_run("ops", 0, line);
    assert_int_equal(unlink(path), 0);
}

static void
every_verb(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        trap_install(trap_paths[p]);
        pushes_and_works(p ? "app" : "postgres");
        acts(p ? "ops" : "postgres");
        nodes(p ? "postgres" : "ops");
        lists(p ? "look" : "postgres");
        lists("ops");
        screens(p ? "look" : "postgres");
        screens("ops");
        records();
        ends(p ? "ops" : "postgres");
        trap_run("postgres", 3, "uninstall --dry-run"); /* functions of the traps use its types */
        trap_run("postgres", 0, "uninstall --dry-run --force");
        trap_run("postgres", 0, "uninstall --yes-drop-schema queues --force");
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_traps_work),
        cmocka_unit_test(every_verb),
    };

    return cmocka_run_group_tests(tests, trap_setup, trap_teardown);
}
