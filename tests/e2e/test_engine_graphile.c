/*
 * Graphile Worker's adapter against Graphile Worker: its own library makes the schema, works jobs
 * and crashes; what queuetop does to one clone of the database its own calls do to another, and the
 * rows are the same afterwards. Both kept versions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/e2e/console.h"
#include "tests/e2e/engine.h"

#define JOBS "graphile_worker._private_jobs"
#define LANES "graphile_worker._private_job_queues"

static const char *libraries;

static void
driver(const char *database, const char *what, const char *argument)
{
    const char *argv[] = {"node",     engine_script("engine.mjs"),
                          "graphile", libraries,
                          pg_host(),  database,
                          what,       argument,
                          NULL};

    if (!strcmp(what, "hold"))
        engine_crash(argv);
    else
        engine_run(argv);
}

static const char *
job(PGconn *c, const char *t)
{
    return pg_value(c, "select id from " JOBS " where payload ->> 't' = '%s'", t);
}

/* A database with jobs in every state, two of them held by a worker that was killed. */
static PGconn *
begin(const char *name, const char *dir, const char *engine)
{
    libraries = engine_dir(dir, engine);
    PGconn *c = pg_connect(pg_newdb(name));
    driver(name, "setup", NULL);
    driver(name, "hold", NULL);
    pg_run(c,
           "update " JOBS " set run_at = now() + interval '3 h' where payload ->> 't' = 'retry1'");
    engine_age(c, JOBS " " LANES);
    return c;
}

static void
looks(const char *db, PGconn *c)
{
    char *out;

    engine_queuetop(db, 0, &out, "queues --json");
    engine_has(out, "\"queue\": \"bad\"");
    engine_queuetop(db, 0, &out, "jobs --json -s running");
    engine_has_job(out, job(c, "held1"));
    engine_queuetop(db, 0, &out, "jobs --json -s blocked");
    engine_has_job(out, job(c, "lane1"));
    engine_queuetop(db, 0, &out, "jobs --json -s retry");
    engine_has(out, "no such user 4711");
    engine_queuetop(db, 0, &out, "failures --json");
    engine_has(out, "\"error_key\": \"no such user N\"");
    engine_queuetop(db, 0, &out, "nodes --json");
    engine_has(out, "\"queues\": [\"hold\"]");
    engine_queuetop(db, 0, &out, "job --json %s", job(c, "later1"));
    engine_has(out, "\"unique_key\": \"once\"");
}

/* Everything that can be done, here by queuetop. */
static void
acts(const char *db, PGconn *c)
{
    char *out;

    engine_queuetop(db, 0, NULL, "requeue -y --id %s --id %s", job(c, "failed1"), job(c, "retry1"));
    engine_queuetop(db, 0, NULL, "reschedule -y --id %s 2h", job(c, "ready1"));
    engine_queuetop(db, 0, NULL, "priority -y --id %s 5", job(c, "ready2"));
    engine_queuetop(db, 0, NULL, "discard -y --id %s -r \"not wanted\"", job(c, "ready3"));
    engine_queuetop(db, 0, NULL, "delete -y --id %s", job(c, "ready4"));
    engine_queuetop(db, 1, &out, "delete -y --id %s", job(c, "held1"));
    engine_has(out, "takes only jobs that do not run (locked within four hours)");
    engine_queuetop(db, 1, &out, "requeue -y --id %s", job(c, "held2"));
    engine_has(out, "takes only jobs that do not run and are not ready already");
    PGresult *r =
        pg_query(c, "select distinct locked_by from " JOBS " where locked_by is not null");
    for (int i = 0; i < PQntuples(r); i++)
        engine_queuetop(db, 0, NULL, "release -y --force --all --node %s", PQgetvalue(r, i, 0));
    PQclear(r);
}

/* Does the same by the library's calls. No call sets attempts to 0; the library's SQL function
 * does. */
static void
calls(const char *db, PGconn *c)
{
    char *list = xasprintf(
        "[[\"sql\", \"select graphile_worker.reschedule_jobs(array[%s]::bigint[], run_at := now(), "
        "attempts := 0)\"], [\"rescheduleJobs\", [%s], {\"runAt\": {\"$date\": 0}}],"
        "[\"rescheduleJobs\", [%s], {\"runAt\": {\"$date\": 7200}}], [\"rescheduleJobs\", [%s], "
        "{\"priority\": 5}], [\"permanentlyFailJobs\", [%s], \"not wanted\"], [\"completeJobs\", "
        "[%s]], [\"forceUnlockWorkers\", %s]]",
        job(c, "failed1"), job(c, "retry1"), job(c, "ready1"), job(c, "ready2"), job(c, "ready3"),
        job(c, "ready4"),
        pg_value(c, "select json_agg(locked_by) from " JOBS " where locked_by is not null"));

    driver(db, "api", list);
    free(list);
}

static void
both(const char *dir, const char *engine)
{
    const char *same = JOBS ":id " LANES ":id graphile_worker._private_tasks:id";
    PGconn *c = begin("g", dir, engine);

    looks("g", c);
    PQfinish(c);
    pg_copydb("ga", "g");
    pg_copydb("gb", "g");
    PGconn *a = pg_connect(pg_dsn("ga")), *b = pg_connect(pg_dsn("gb"));
    acts("ga", a);
    calls("gb", b);
    engine_same("ga", "gb", same);

    engine_queuetop("ga", 0, NULL, "purge -y -s failed --older-than 0 --force");
    driver("gb", "api", "[[\"cleanup\", {\"tasks\": [\"DELETE_PERMAFAILED_JOBS\"]}]]");
    engine_same("ga", "gb", same);
    assert_int_equal(pg_int(a, "select count(*) from " JOBS " where attempts >= max_attempts"), 0);

    driver("ga", "drain", NULL); /* what was given back is worked by the engine */
    assert_string_equal(
        pg_value(a, "select string_agg(payload ->> 't', ' ' order by id) from " JOBS),
        "ready1 later1");
    PQfinish(a);
    PQfinish(b);
    engine_drop("g ga gb");
}

static void
does_what_0_17_does(void **state)
{
    (void)state;
    both("npm", "graphile");
}

static void
does_what_0_18_does(void **state)
{
    (void)state;
    both("npm-new", "graphile-new");
}

/* Row security without a policy hides all rows from whoever is not the owner, without an error. */
static void
says_that_rows_are_hidden(void **state)
{
    char *out, *err;

    (void)state;
    PGconn *c = begin("r", "npm", "graphile");
    pg_run(c, "create role plain login");
    pg_run(c, "grant usage on schema graphile_worker to plain");
    pg_run(c, "grant select on all tables in schema graphile_worker to plain");
    PQfinish(c);
    proc_run(NULL, &out, &err, "jobs \"%s user=plain\"", pg_dsn("r"));
    assert_null(strstr(out, "good"));
    engine_has(xasprintf("%s%s", out, err), "row security");
    free(out);
    free(err);
}

/* The console: a failed job is requeued, and the engine's worker does it. */
static void
requeues_in_the_console(void **state)
{
    struct vt vt;

    (void)state;
    PGconn *c = begin("k", "npm-new", "graphile-new");
    engine_console("k", &vt);
    vt_want(&vt, "bad");
    vt_keys(&vt, "3");
    vt_want(&vt, "no such user");
    vt_keys(&vt, "r");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 2 jobs");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    driver("k", "drain", NULL);
    assert_int_equal(
        pg_int(c, "select count(*) from " JOBS " where payload ->> 't' like 'failed%%'"), 0);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_what_0_17_does),
        cmocka_unit_test(does_what_0_18_does),
        cmocka_unit_test(says_that_rows_are_hidden),
        cmocka_unit_test(requeues_in_the_console),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
