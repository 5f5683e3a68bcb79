/*
 * Minion's adapter against Minion: its own library makes the schema, works jobs and crashes; what
 * queuetop does to one clone of the database the library's calls do to another, and the rows are
 * the same afterwards. Schedules came with Minion 12: of those only our fixture is here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/e2e/console.h"
#include "tests/e2e/engine.h"

static void
driver(const char *database, const char *what, const char *argument)
{
    const char *argv[] = {"perl", engine_script("minion.pl"), pg_host(), database, what, argument,
                          NULL};

    if (!strcmp(what, "hold"))
        engine_crash(argv);
    else
        engine_run(argv);
}

static void
need_minion(void)
{
    static const char *const argv[] = {"perl", "-MMinion", "-MMojo::Pg", "-e", "1", NULL};
    struct proc p;

    proc_start(&p, argv, NULL);
    int code = proc_wait(&p);
    proc_done(&p);
    if (code != 0) {
        print_message("minion is skipped: Minion or Mojo::Pg is missing (libminion-perl, "
                      "libmojo-pg-perl)\n");
        skip();
    }
}

static const char *
job(PGconn *c, const char *t)
{
    return pg_value(c, "select id from minion_jobs where args ->> 0 = '%s'", t);
}

static PGconn *
begin(const char *name)
{
    need_minion();
    PGconn *c = pg_connect(pg_newdb(name));
    driver(name, "setup", NULL);
    driver(name, "hold", NULL);
    pg_run(c,
           "update minion_jobs set delayed = now() + interval '3 h' where args ->> 0 = 'retry1'");
    engine_age(c, "minion_jobs");
    return c;
}

static void
looks(const char *db, PGconn *c)
{
    char *out;

    engine_queuetop(db, 0, &out, "queues --json");
    engine_has(out, "\"queue\": \"held\"");
    engine_queuetop(db, 0, &out, "jobs --json -s blocked");
    engine_has_job(out, job(c, "child1"));
    engine_queuetop(db, 0, &out, "jobs --json -s running -k hold");
    engine_has_job(out, job(c, "held1"));
    engine_queuetop(db, 0, &out, "jobs --json -s retry");
    engine_has(out, "connection refused");
    engine_queuetop(db, 0, &out, "failures --json");
    engine_has(out, "\"error_key\": \"no such user N\"");
    engine_queuetop(db, 0, &out, "nodes --json");
    engine_has(out, "\"running\": 2");
    engine_queuetop(db, 0, &out, "job --json %s", job(c, "done1"));
    engine_has(out, "\"result\": \"{\\\"sent\\\": 1}\"");
}

static void
acts(const char *db, PGconn *c)
{
    char *out;

    engine_queuetop(db, 0, NULL, "requeue -y --id %s --id %s", job(c, "failed1"), job(c, "later1"));
    engine_queuetop(db, 0, NULL, "requeue -y --id %s", job(c, "done2"));
    engine_queuetop(db, 0, NULL, "reschedule -y --id %s 2h", job(c, "ready1"));
    engine_queuetop(db, 0, NULL, "priority -y --id %s 5", job(c, "ready2"));
    engine_queuetop(db, 0, NULL, "delete -y --id %s", job(c, "ready4"));
    engine_queuetop(db, 1, &out, "delete -y --id %s", job(c, "held1"));
    engine_has(out, "takes only jobs that do not run");
    engine_queuetop(db, 1, &out, "requeue -y --id %s", job(c, "held1"));
    engine_has(out, "takes only jobs that do not run and are not ready already");
    engine_queuetop(db, 0, NULL, "cancel -y --id %s", job(c, "held2"));
}

static void
calls(const char *db, PGconn *c)
{
    const char *worker = pg_value(c, "select worker from minion_jobs where args ->> 0 = 'held2'");
    char *list = xasprintf(
        "[[\"retry\", %s], [\"retry\", %s], [\"retry\", %s], [\"retry\", %s, {\"delay\": 7200}], "
        "[\"retry\", %s, {\"priority\": 5}], [\"remove\", %s], [\"broadcast\", \"stop\", [%s], "
        "[%s]]]",
        job(c, "failed1"), job(c, "later1"), job(c, "done2"), job(c, "ready1"), job(c, "ready2"),
        job(c, "ready4"), job(c, "held2"), worker);

    driver(db, "api", list);
    free(list);
}

static void
does_what_minion_does(void **state)
{
    char *out;

    (void)state;
    PGconn *c = begin("m");
    looks("m", c);
    PQfinish(c);
    pg_copydb("ma", "m");
    pg_copydb("mb", "m");
    PGconn *a = pg_connect(pg_dsn("ma")), *b = pg_connect(pg_dsn("mb"));
    /* workers are in an unlogged table: it is copied all the same */
    acts("ma", a);
    calls("mb", b);
    engine_same("ma", "mb", "minion_jobs:id minion_workers:id");

    const char *worker = pg_value(a, "select worker from minion_jobs where args ->> 0 = 'held1'");
    engine_queuetop("ma", 1, NULL, "release -y --node %s",
                    worker); /* half an hour it looks alive */
    engine_queuetop("ma", 3, NULL, "release -y --all --node %s", worker);
    pg_run(a, "update minion_workers set notified = now() - interval '1 h'");
    pg_run(b, "update minion_workers set notified = now() - interval '1 h'");
    engine_queuetop("ma", 0, &out, "release -y --node %s", worker);
    engine_has(out, "2");
    char *list = xasprintf("[[\"retry\", %s], [\"retry\", %s]]", job(b, "held1"), job(b, "held2"));
    driver("mb", "api", list);
    free(list);
    engine_same("ma", "mb", "minion_jobs:id minion_workers:id");

    engine_queuetop("ma", 0, NULL, "purge -y -s completed --older-than 0 --force");
    driver("mb", "api", "[[\"repair\", 0]]");
    engine_same("ma", "mb", "minion_jobs:id");
    engine_queuetop("ma", 0, NULL, "purge -y -s failed --older-than 0 --force");
    /* child1 waits for failed3, and done2 has been requeued */
    assert_string_equal(pg_value(a,
                                 "select string_agg(args ->> 0, ' ' order by id) from minion_jobs "
                                 "where state in ('failed', 'finished')"),
                        "failed3");
    driver("ma", "drain", NULL);
    assert_string_equal(pg_value(a,
                                 "select string_agg(args ->> 0, ' ' order by id) from minion_jobs "
                                 "where state <> 'finished'"),
                        "failed3 retry1 ready1 child1 child2");
    PQfinish(a);
    PQfinish(b);
}

/* Does the same in the console; the killed worker has sent no heartbeat for an hour. */
static void
acts_in_the_console(void **state)
{
    struct vt vt;
    char *out;

    (void)state;
    PGconn *c = begin("k");
    const struct engine_step alive[] = {
        {job(c, "failed1"),
         "r", {"1 job → ready", "as the system's own: retry_job"},
         "y",            "requeue: 1 job ready" },
        {job(c, "held2"),
         "c", {"1 job → running", "as the system's own: broadcast stop"},
         "y",            "cancel: 1 job"        },
        {job(c, "ready4"),
         "D", {"1 job → deleted", "as the system's own: remove_job"},
         "text:1 enter", "delete: 1 job deleted"},
    };
    const struct engine_step dead = {
        job(c, "held1"),
        "L",
        {"1 job → ready", "as the system's own: retry_job", "so it may run twice"},
        "text:1 enter",
        "release: 1 job ready"
    };
    engine_console("k", &vt);
    engine_counts(&vt, "default", "4 0 3 1 2");
    engine_steps(&vt, alive, sizeof alive / sizeof *alive);
    assert_int_equal(pg_int(c,
                            "select count(*) from minion_workers where inbox = jsonb_build_array("
                            "jsonb_build_array('stop', %s))",
                            job(c, "held2")),
                     1);
    pg_run(c, "update minion_workers set notified = now() - interval '1 h'");
    engine_queuetop("k", 1, &out, "cancel -y --id %s", job(c, "held1"));
    engine_has(out, "if the worker is gone: release");
    engine_step(&vt, &dead);
    engine_counts(&vt, "held", "1 1 0");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    assert_string_equal(pg_value(c,
                                 "select string_agg(args ->> 0 || ' ' || state || ' ' || retries, "
                                 "', ' order by id) from minion_jobs where args ->> 0 in "
                                 "('failed1', 'ready4', 'held1', 'held2')"),
                        "failed1 inactive 1, held1 inactive 1, held2 active 0");
    PQfinish(c);
}

/* Schedules by our fixture, which has the tables of Minion 12; Debian 12's Minion is 10.25. */
static void
pauses_schedules_of_the_fixture(void **state)
{
    (void)state;
    PGconn *c = pg_connect(pg_newdb("s"));
    pg_file(c, "tests/adapters/minion.sql");
    engine_queuetop("s", 0, NULL, "cron pause -y nightly");
    assert_string_equal(pg_value(c,
                                 "select string_agg(name, ' ') from minion_schedules where paused "
                                 "and name = 'nightly'"),
                        "nightly");
    engine_queuetop("s", 0, NULL, "cron resume -y off");
    assert_string_equal(
        pg_value(c, "select string_agg(name, ' ') from minion_schedules where not paused"), "off");
    engine_queuetop("s", 0, NULL, "cron remove -y off");
    assert_int_equal(pg_int(c, "select count(*) from minion_schedules"), 1);
    PQfinish(c);
}

static void
does_what_minion_12_does(void **state)
{
    (void)state;
    print_message(
        "minion's schedules are skipped: they came with Minion 12, and Debian 12 has 10.25\n");
    skip();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_what_minion_does),
        cmocka_unit_test(acts_in_the_console),
        cmocka_unit_test(pauses_schedules_of_the_fixture),
        cmocka_unit_test(does_what_minion_12_does),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
