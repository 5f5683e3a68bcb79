/*
 * pg-boss' adapter against pg-boss: its own library makes the schema, fetches, fails and crashes;
 * what queuetop does to one clone of the database the library's calls do to another, and the rows
 * are the same afterwards. The version that Debian's node knows, one of schema 37, and the newest
 * that was tried: their columns differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/e2e/console.h"
#include "tests/e2e/engine.h"

static const char *libraries;

static void
driver(const char *database, const char *what, const char *argument)
{
    const char *argv[] = {"node",    engine_script("engine.mjs"),
                          "pgboss",  libraries,
                          pg_host(), database,
                          what,      argument,
                          NULL};

    if (!strcmp(what, "hold"))
        engine_crash(argv);
    else
        engine_run(argv);
}

/* The full id of the job called t, which stands in quotes on a command line. */
static const char *
job(PGconn *c, const char *t)
{
    return pg_value(c,
                    "select name || ':' || id from pgboss.job where data ->> 't' = '%s' and name "
                    "<> 'dead'",
                    t);
}

static const char *
uuid(PGconn *c, const char *t)
{
    return strchr(job(c, t), ':') + 1;
}

static PGconn *
begin(const char *name, const char *dir, const char *engine)
{
    libraries = engine_dir(dir, engine);
    PGconn *c = pg_connect(pg_newdb(name));
    driver(name, "setup", NULL);
    driver(name, "hold", NULL);
    driver(name, "fill", NULL);
    engine_age(c, "pgboss.job pgboss.queue pgboss.schedule");
    return c;
}

static void
looks(const char *db, PGconn *c)
{
    char *out;

    engine_queuetop(db, 0, &out, "queues --json");
    engine_has(out, "\"queue\": \"mail\"");
    engine_queuetop(db, 0, &out, "jobs --json -s running -q mail");
    engine_has_job(out, job(c, "held1"));
    engine_queuetop(db, 0, &out, "jobs --json -s failed -e \"no such user 1\"");
    engine_has_job(out, job(c, "failed3"));
    engine_queuetop(db, 0, &out, "jobs --json -s retry");
    engine_has(out, "connection refused");
    engine_queuetop(db, 0, &out, "failures --json");
    engine_has(out, "\"error_key\": \"no such user N\"");
    engine_queuetop(db, 0, &out, "job --json %s", job(c, "done1"));
    engine_has(out, "\"result\": \"{\\\"sent\\\": true}\"");
    engine_queuetop(db, 0, &out, "cron list --json");
    engine_has(out, "\"cron\": \"0 3 * * *\"");
}

static void
acts(const char *db, PGconn *c)
{
    char *out;

    engine_queuetop(db, 0, NULL, "requeue -y --id %s", job(c, "failed1"));
    engine_queuetop(db, 0, NULL, "requeue -y --id %s", job(c, "later1"));
    engine_queuetop(db, 0, NULL, "reschedule -y --id %s 2h", job(c, "ready1"));
    engine_queuetop(db, 0, NULL, "priority -y --id %s 5", job(c, "ready2"));
    engine_queuetop(db, 0, NULL, "cancel -y --id %s", job(c, "ready3"));
    engine_queuetop(db, 0, NULL, "delete -y --id %s", job(c, "ready4"));
    engine_queuetop(db, 1, &out, "delete -y --id %s", job(c, "held1"));
    engine_has(out, "takes only jobs that do not run");
    engine_queuetop(db, 1, &out, "requeue -y --id %s", job(c, "held1"));
    engine_has(out, "takes only jobs that do not run and are neither completed");
    engine_queuetop(db, 0, NULL, "purge -y -q again --older-than 0 --force");
    engine_queuetop(db, 0, NULL, "cron remove -y mail");
    /* one of two: policy "short" lets only one wait */
    engine_queuetop(db, 0, &out, "requeue -y --id %s --id %s", job(c, "cancelled1"),
                    job(c, "twice1"));
    engine_has(out, "1 ");
}

/* What 10 has no call for is said in SQL. */
static char *
old_calls(PGconn *c)
{
    return xasprintf(
        "[\"sql\", \"update pgboss.job set start_after = now(), keep_until = now() + (keep_until - "
        "start_after) where id = '%s'\"], [\"sql\", \"update pgboss.job set start_after = now() + "
        "interval '2 h', keep_until = now() + interval '2 h' + (keep_until - start_after) where id "
        "= '%s'\"], [\"sql\", \"update pgboss.job set priority = 5 where id = '%s'\"], [\"sql\", "
        "\"delete from pgboss.job where name = 'again' and state > 'active'\"]",
        uuid(c, "later1"), uuid(c, "ready1"), uuid(c, "ready2"));
}

static char *
new_calls(PGconn *c, int version)
{
    /* restore() is not for applications: this is the statement that it sends */
    char *keyed =
        version < 45
            ? xstrdup("")
            : xasprintf(", [\"resume\", \"keyed\", \"%s\"], [\"sql\", \"update pgboss.job set "
                        "state = 'created', started_on = null, heartbeat_on = null, upsert_by_key "
                        "= null where id = '%s'\"]",
                        uuid(c, "keyed1"), uuid(c, "held3"));
    char *list = xasprintf(
        "[\"update\", {\"name\": \"mail\", \"options\": {\"id\": \"%s\", \"startAfter\": "
        "{\"$date\": 0}}}],"
        "[\"update\", {\"name\": \"mail\", \"options\": {\"id\": \"%s\", \"startAfter\": "
        "{\"$date\": 7200}}}],"
        "[\"update\", {\"name\": \"mail\", \"options\": {\"id\": \"%s\", \"priority\": 5}}],"
        "[\"deleteStoredJobs\", \"again\"], [\"touch\", \"beat\", \"%s\"]%s",
        uuid(c, "later1"), uuid(c, "ready1"), uuid(c, "ready2"), uuid(c, "held2"), keyed);

    free(keyed);
    return list;
}

static void
calls(const char *db, PGconn *c, int version)
{
    char *more = version > 30 ? new_calls(c, version) : old_calls(c);
    char *list = xasprintf(
        "[[\"retry\", \"mail\", \"%s\"], %s, [\"cancel\", \"mail\", \"%s\"], [\"deleteJob\", "
        "\"mail\", \"%s\"], [\"unschedule\", \"mail\"], [\"resume\", \"mail\", \"%s\"]]",
        uuid(c, "failed1"), more, uuid(c, "ready3"), uuid(c, "ready4"), uuid(c, "cancelled1"));

    driver(db, "api", list);
    free(more);
    free(list);
}

static const char *
state(PGconn *c, const char *t)
{
    return pg_value(c, "select state from pgboss.job where data ->> 't' = '%s' and name <> 'dead'",
                    t);
}

/* What only the newer versions can, compared or worked by the engine. */
static void
newer_acts(PGconn *a, int version)
{
    engine_queuetop("ba", 0, NULL, "extend -y --id %s --by 30s", job(a, "held2"));
    if (version < 45)
        return;
    engine_queuetop("ba", 0, NULL, "requeue -y --id %s", job(a, "keyed1"));
    engine_queuetop("ba", 0, NULL, "release -y --id %s", job(a, "held3"));
}

/* A redriven job gets a random id in both databases: an id made from its name replaces this id for
 * the comparison. */
static void
name_redriven(PGconn *c)
{
    pg_run(c, "update pgboss.job set id = md5(data ->> 't')::uuid where name = 'mail' and state = "
              "'created' and data ->> 't' like 'failed%%'");
}

static void
redrives(PGconn *a, PGconn *b, int version)
{
    char *out;

    if (version >= 45) { /* a job with its key waits there: it fails where it is */
        engine_queuetop("ba", 0, &out, "redrive -y -q dead2");
        engine_has(out, "1");
        driver("bb", "api", "[[\"redrive\", \"dead2\"]]");
        assert_int_equal(pg_int(a, "select count(*) from pgboss.job where name = 'dead2' and state "
                                   "= 'failed' and output ->> 'reason' = 'redrive_conflict'"),
                         1);
    }

    engine_queuetop("ba", 0, &out, "redrive -y -q dead");
    engine_has(out, "3");
    assert_int_equal(pg_int(a, "select count(*) from pgboss.job where name = 'dead'"), 0);
    driver("bb", "api", "[[\"redrive\", \"dead\"]]");
    name_redriven(a);
    name_redriven(b);
    engine_same("ba", "bb", "pgboss.job:name,id");
}

static void
both(const char *dir, const char *engine)
{
    PGconn *c = begin("b", dir, engine);
    int version = (int)pg_int(c, "select version from pgboss.version");
    bool is_new = version > 30;

    looks("b", c);
    PQfinish(c);
    pg_copydb("ba", "b");
    pg_copydb("bb", "b");
    PGconn *a = pg_connect(pg_dsn("ba")), *b = pg_connect(pg_dsn("bb"));
    acts("ba", a);
    if (is_new)
        newer_acts(a, version);
    calls("bb", b, version);
    engine_same("ba", "bb", "pgboss.job:name,id pgboss.schedule:name");
    if (is_new) {
        redrives(a, b, version);
        engine_queuetop("ba", 0, NULL, "release -y --id %s", job(a, "held1"));
    }

    driver("ba", "drain", NULL); /* what was made ready is worked by the engine */
    assert_int_equal(pg_int(a, "select count(*) from pgboss.job where data ->> 't' = 'failed1' and "
                               "state = 'completed' and name = 'mail'"),
                     is_new ? 2 : 1); /* requeued, and its dead letter redriven */
    assert_string_equal(state(a, "later1"), "completed");
    assert_string_equal(state(a, "cancelled1"), "completed");
    assert_string_equal(state(a, "ready1"), "created");
    assert_string_equal(state(a, "ready3"), "cancelled");
    assert_string_equal(state(a, "twice1"), "cancelled");
    assert_string_equal(state(a, "held1"), is_new ? "completed" : "active");
    PQfinish(a);
    PQfinish(b);
    engine_drop("b ba bb");
}

static void
does_what_10_does(void **state)
{
    (void)state;
    both("npm", "pgboss");
}

static void
does_what_12_27_does(void **state)
{
    (void)state;
    both("npm-37", "pgboss-37");
}

static void
does_what_12_38_does(void **state)
{
    (void)state;
    both("npm-new", "pgboss-new");
}

/* Version 10 has no heartbeats and no redrive: said, not tried. */
static void
says_what_a_version_lacks(void **state)
{
    char *out;

    (void)state;
    PGconn *c = begin("l", "npm", "pgboss");
    engine_queuetop("l", 3, &out, "extend -y --id %s --by 30s", job(c, "held1"));
    engine_has(out, "this version of the queue system can't do that");
    PQfinish(c);
}

/* The same by hand: what is asked, what is done, and the engine works what was given back. */
static void
acts_in_the_console(void **state_)
{
    struct vt vt;

    (void)state_;
    PGconn *c = begin("k", "npm-new", "pgboss-new");
    const struct engine_step steps[] = {
        {job(c, "failed1"),
         "r", {"1 job → ready", "as the system's own: retry (failed)"},
         "y",            "requeue: 1 job ready"   },
        {job(c, "ready3"),
         "c", {"1 job → cancelled", "as the system's own: cancel", "its answer is then dropped"},
         "text:1 enter", "cancel: 1 job cancelled"},
        {job(c, "ready4"),
         "D", {"1 job → deleted", "as the system's own: deleteJob"},
         "text:1 enter", "delete: 1 job deleted"  },
        {job(c, "held1"),
         "L", {"1 job → ready", "unofficial", "it may run twice"},
         "text:1 enter", "release: 1 job ready"   },
    };
    engine_console("k", &vt);
    engine_counts(&vt, "mail", "4 1 3 0 1 0");
    engine_steps(&vt, steps, sizeof steps / sizeof *steps);
    engine_counts(&vt, "mail", "4 0 2 0 1 0");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    assert_string_equal(state(c, "failed1"), "retry");
    assert_string_equal(state(c, "ready3"), "cancelled");
    assert_string_equal(state(c, "ready4"), "");
    assert_string_equal(state(c, "held1"), "created");
    driver("k", "drain", NULL);
    assert_string_equal(state(c, "failed1"), "completed");
    assert_string_equal(state(c, "held1"), "completed");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_what_10_does),    cmocka_unit_test(does_what_12_27_does),
        cmocka_unit_test(does_what_12_38_does), cmocka_unit_test(says_what_a_version_lacks),
        cmocka_unit_test(acts_in_the_console),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
