/*
 * GoodJob and Solid Queue by their schema: what the console shows of a database of theirs, what
 * each act changes and refuses there, and that a job which another session has locked is left
 * alone.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sql/other.h"

#define ID(n) "00000000-0000-0000-0000-0000000000" #n

/* The lock that GoodJob takes while it works on a row. */
static void
lock(struct other *f, const char *table, const char *id)
{
    pg_run(f->watcher,
           "select pg_advisory_lock(('x' || substr(md5('%s-%s'), 1, 16))::bit(64)::bigint)", table,
           id);
}

static void
unlock_all(struct other *f)
{
    pg_run(f->watcher, "select pg_advisory_unlock_all()");
}

/* --- GoodJob ---------------------------------------------------------------------------------- */

static void
good_job_is_shown(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_shown");
    expect_look(&f, "public", SEC_DETECT, "schema");
    expect_look(&f, "4.19", SEC_VERSION, "version");
    pg_run(f.conn, "alter table good_jobs drop column lock_type");
    expect_look(&f, "4.0", SEC_VERSION, "version");
    expect_look(&f, "default mailers", SEC_QUEUES, "queue");
    expect_look(&f, "f t", SEC_QUEUES, "paused");
    expect_look(&f, "up dead dead", SEC_NODES, "state");
    expect_look(&f, "0 1 1", SEC_NODES, "expired");
    expect_look(&f, "- f f", SEC_NODES, "session_alive");
    lock(&f, "good_job_processes", "00000000-0000-0000-0000-000000000902");
    expect_look(&f, "up up dead", SEC_NODES, "state");
    unlock_all(&f);
    expect_look(&f, "5 4 3 2 1", SEC_ATTEMPTS, "number", "ids={" ID(10) "}");
    expect_look(&f, "1", SEC_GROUPS_BY, "n", "settings=kind", "queue=default", "n=3"); /* 10 */
    expect_look(&f, "1 1 1 1", SEC_FAIL_TIMES, "n");
    expect_look(&f, "[\"a@b\"]", SEC_JOB, "payload", "ids={" ID(01) "}");
    other_close(&f);
}

static void
good_job_counts_and_lists(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_lists");
    pg_run(f.conn,
           "update good_jobs set scheduled_at = scheduled_at + interval '1 ms' where id = '" ID(
               07) "' or id = '" ID(16) "'");
    expect_walk(&f,
                ID(06) " " ID(07) " " ID(01) " " ID(02) " " ID(05) " " ID(04) " " ID(03) " " ID(
                    16) " " ID(17) " " ID(11) " " ID(10) " " ID(15),
                "words={}");
    expect_walk(&f, ID(06) " " ID(07) " " ID(02) " " ID(04) " " ID(11), "queue=mailers");
    expect_walk(&f, ID(06) " " ID(07) " " ID(05), "states={running}");
    expect_walk(&f, ID(01) " " ID(02), "states={ready}");
    expect_walk(&f, ID(04) " " ID(03) " " ID(16), "states={retry,scheduled}");
    expect_walk(&f, ID(03) " " ID(16) " " ID(14) " " ID(13) " " ID(12),
                "states={scheduled,completed}");
    expect_walk(&f, ID(05) " " ID(03) " " ID(10), "kind=ReportJob");
    expect_walk(&f, ID(11) " " ID(10), "error=ZeroDivisionError: divided by 5 in row 6",
                "states={failed,completed}");
    pg_run(f.conn, "update good_jobs set queue_name = 'one'");
    expect_look(&f, "2", SEC_COUNTS, "scheduled");
    expect_look(&f, "2", SEC_COUNTS, "ready");
    expect_look(&f, "1", SEC_COUNTS, "retry");
    expect_look(&f, "3", SEC_COUNTS, "running");
    expect_look(&f, "4", SEC_COUNTS, "failed");
    expect_look(&f, "3", SEC_COUNTS_FINAL, "completed");
    /* the times have no zone and mean UTC, whatever the session's zone is */
    expect_look(&f,
                pg_value(f.conn, "select (extract(epoch from scheduled_at) * 1000)::bigint from "
                                 "good_jobs where id = '" ID(01) "'"),
                SEC_COUNTS, "oldest_ms");
    other_close(&f);
}

static void
good_job_leaves_locked_jobs_alone(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_locked");
    lock(&f, "good_jobs", ID(10));
    lock(&f, "good_jobs", ID(03));
    lock(&f, "good_jobs", ID(06));
    const char *refused = ID(10) " - (another session has locked it)";
    assert_string_equal(other_act(&f, SEC_REQUEUE, "ids={" ID(10) "}", NULL), refused);
    assert_string_equal(other_act(&f, SEC_DELETE, "ids={" ID(10) "}", NULL), refused);
    expect_act(&f, ID(03) " - (another session has locked it)", SEC_DISCARD, "ids={" ID(03) "}");
    expect_act(&f, ID(03) " - (another session has locked it)", SEC_TIME, "ids={" ID(03) "}",
               "at=2099-01-01");
    expect_act(&f, ID(03) " - (another session has locked it)", SEC_PRIORITY, "ids={" ID(03) "}",
               "n=1");
    expect_act(&f, ID(06) " - (another session has locked it)", SEC_RELEASE_WHERE,
               "node=00000000-0000-0000-0000-000000000902");
    expect_row(&f, "1",
               "select count(*) from good_job_processes where id = "
               "'00000000-0000-0000-0000-000000000902'");
    expect_look(&f, "f t f", SEC_JOBS, "stale",
                "states={running}"); /* 6 is locked, 7 is not, 5's process lives */
    unlock_all(&f);
    expect_act(&f, ID(10) " ready", SEC_REQUEUE, "ids={" ID(10) "}");
    expect_act(&f, ID(03) " scheduled", SEC_TIME, "ids={" ID(03) "}",
               "at=2099-01-01 05:30:00+05:30");
    expect_row(&f, "2099-01-01 00:00:00",
               "select scheduled_at from good_jobs where id = '" ID(03) "'");
    other_close(&f);
}

static void
good_job_requeues_failed_ones_and_tells(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_requeue");
    other_listen(&f, "good_job");
    expect_act(&f, ID(10) " ready, " ID(15) " ready", SEC_REQUEUE,
               "ids={" ID(01) "," ID(05) "," ID(10) "," ID(12) "," ID(15) ",x," ID(99) "}");
    assert_string_equal(other_heard(&f), "good_job {\"queue_name\" : \"default\"}");
    expect_row(&f, "6 3 t",
               "select concat_ws(' ', serialized_params ->> 'executions', error_event, "
               "abs(extract(epoch from scheduled_at - timezone('UTC', now()))) < 60 "
               "and finished_at is null and performed_at is null and error is not null) from "
               "good_jobs where id = '" ID(10) "'");
    expect_act(&f, "", SEC_REQUEUE, "ids={" ID(10) "," ID(15) "}");
    assert_string_equal(other_heard(&f), "");
    other_close(&f);
}

static void
good_job_discards_and_deletes(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_discard");
    /* 5's process lives, 10 is finished, 16 belongs to a batch */
    expect_act(&f, ID(03) " failed, " ID(06) " failed", SEC_DISCARD,
               "ids={" ID(03) "," ID(05) "," ID(06) "," ID(10) "," ID(16) "}", "reason=not needed");
    expect_row(&f, "GoodJob::Job::DiscardJobError: not needed 5",
               "select error || ' ' || error_event from good_jobs where id = '" ID(03) "'");
    expect_act(&f, ID(10) " deleted", SEC_DELETE, "ids={" ID(01) "," ID(05) "," ID(10) "}");
    expect_row(&f, "0", "select count(*) from good_job_executions");
    expect_act(&f, ID(01) " ready, " ID(04) " retry", SEC_PRIORITY,
               "ids={" ID(01) "," ID(04) "," ID(05) "," ID(12) "}", "n=-7");
    const char *before = pg_value(f.conn, "select 'before=' || now() - interval '90 min'");
    expect_look(&f, "1", SEC_PURGE_PREVIEW, "n", before);
    pg_run(f.watcher, "begin"); /* a job that another session has locked stays */
    pg_run(f.watcher, "select from good_jobs where id = '" ID(12) "' for update");
    expect_act(&f, "", SEC_PURGE, before, "limit=10");
    pg_run(f.watcher, "rollback");
    expect_act(&f, ID(12) " deleted", SEC_PURGE, before, "limit=10");
    expect_act(&f, ID(15) " deleted", SEC_PURGE, before, "states={failed}", "limit=10");
    other_close(&f);
}

static void
good_job_forgets_dead_processes(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_nodes");
    expect_act(&f, "", SEC_RELEASE_WHERE, "node=00000000-0000-0000-0000-000000000901"); /* lives */
    expect_act(&f, "", SEC_RELEASE_WHERE, "node=nobody");
    lock(&f, "good_job_processes", "00000000-0000-0000-0000-000000000902");
    expect_act(&f, "", SEC_RELEASE_WHERE, "node=00000000-0000-0000-0000-000000000902");
    unlock_all(&f);
    expect_act(&f, ID(06) " ready", SEC_RELEASE_WHERE, "node=00000000-0000-0000-0000-000000000902");
    expect_act(&f, ID(07) " ready", SEC_RELEASE_WHERE, "node=00000000-0000-0000-0000-000000000903");
    expect_row(&f, "1", "select count(*) from good_job_processes");
    expect_row(
        &f, "0",
        "select count(*) from good_jobs where locked_by_id is not null and id <> '" ID(05) "'");
    other_close(&f);
}

static void
good_job_sessions_are_ended(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_terminate");
    lock(&f, "good_jobs", ID(05));
    char ended[64];
    snprintf(ended, sizeof ended, "%d terminated", PQbackendPID(f.watcher));
    expect_act(&f, "", SEC_TERMINATE, "node=00000000-0000-0000-0000-000000000902");
    assert_string_equal(
        other_act(&f, SEC_TERMINATE, "node=00000000-0000-0000-0000-000000000901", NULL), ended);
    pg_wait(f.conn, "select count(*) from pg_locks where locktype = 'advisory'", "0", 5000);
    other_close(&f);
}

static void
good_job_pauses_by_settings(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_pause");
    expect_act(&f, "default paused", SEC_PAUSE, "queue=default");
    expect_act(&f, "", SEC_PAUSE, "queue=mailers");
    expect_look(&f, "t t", SEC_QUEUES, "paused");
    expect_act(&f, "mailers active", SEC_RESUME, "queue=mailers");
    expect_act(&f, "", SEC_RESUME, "queue=mailers");
    expect_row(&f, "{\"labels\": [], \"queues\": [\"default\"], \"job_classes\": []}",
               "select value from good_job_settings where key = 'pauses'");
    pg_run(f.conn, "delete from good_job_settings");
    expect_act(&f, "default paused", SEC_PAUSE, "queue=default");
    expect_row(&f, "[\"default\"]",
               "select value -> 'queues' from good_job_settings where key = 'pauses'");
    expect_act(&f, "sweep paused", SEC_CRON_PAUSE, "schedule=sweep");
    expect_act(&f, "", SEC_CRON_PAUSE, "schedule=sweep");
    expect_look(&f, "paused", SEC_SCHEDULES, "state", "schedule=sweep");
    expect_act(&f, "sweep active", SEC_CRON_RESUME, "schedule=sweep");
    expect_act(&f, "", SEC_CRON_RESUME, "schedule=sweep");
    expect_look(&f, "active", SEC_SCHEDULES, "state", "schedule=sweep");
    expect_row(&f, "[] [\"sweep\"]",
               "select (select value::text from good_job_settings where key = "
               "'cron_keys_disabled') || ' ' || "
               "(select value::text from good_job_settings where key = 'cron_keys_enabled')");
    other_close(&f);
}

/* --- Solid Queue ------------------------------------------------------------------------------ */

static void
solid_queue_is_shown(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "solid_queue", "sq_shown");
    expect_look(&f, "public", SEC_DETECT, "schema");
    expect_look(&f, "1.5", SEC_VERSION, "version");
    pg_run(f.conn, "delete from solid_queue_jobs where id = 17");
    expect_look(&f, "default mailers", SEC_QUEUES, "queue");
    expect_look(&f, "f t", SEC_QUEUES, "paused");
    expect_look(&f, "process 3 worker-aa11 worker-bb22", SEC_NODES, "node");
    expect_look(&f, "dead up dead", SEC_NODES, "state");
    expect_look(&f, "6", SEC_LEASES, "job_ids", "node=worker-bb22");
    expect_look(&f, "ReportJob SyncJob", SEC_GROUPS_BY, "group", "settings=kind");
    expect_look(&f, "1 1", SEC_FAIL_TIMES, "n");
    expect_look(&f, "ZeroDivisionError: divided by N in row N", SEC_GROUPS, "error_key",
                "queue=mailers");
    expect_look(&f, "3 1 0", SEC_JOBS, "tries",
                "ids={10,11,1}"); /* of the job, not of an argument */
    other_close(&f);
}

static void
solid_queue_counts_and_lists(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "solid_queue", "sq_lists");
    expect_walk(&f, "5 6 7 1 4 2 3 8 17 11 10", "words={}");
    expect_walk(&f, "6 7 4 2 8 11", "queue=mailers");
    expect_walk(&f, "14 13 12", "states={completed}");
    expect_walk(&f, "8 14 12", "states={blocked,completed}", "not_words={worker,\"13 \"}");
    expect_walk(&f, "6", "node=worker-bb22");
    expect_walk(&f, "11 10", "error=~divided");
    pg_run(f.conn, "delete from solid_queue_jobs where id = 17");
    pg_run(f.conn, "update solid_queue_jobs set queue_name = 'one'");
    for (int i = 0; i < 3; i++) {
        static const char *const tables[] = {"ready", "scheduled", "blocked"};
        pg_run(f.conn, "update solid_queue_%s_executions set queue_name = 'one'", tables[i]);
    }
    expect_look(&f, "1", SEC_COUNTS, "scheduled");
    expect_look(&f, "3", SEC_COUNTS, "ready");
    expect_look(&f, "3", SEC_COUNTS, "running");
    expect_look(&f, "2", SEC_COUNTS, "failed");
    expect_look(&f, "1", SEC_COUNTS, "blocked");
    expect_look(&f, "3", SEC_COUNTS_FINAL, "completed");
    other_close(&f);
}

static void
solid_queue_never_touches_semaphores(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "solid_queue", "sq_requeue");
    const char *semaphores =
        pg_value(f.conn, "select md5(string_agg(s::text, ',')) from solid_queue_semaphores s");
    expect_act(&f,
               "10 ready, 11 scheduled (the dispatcher lets it in when its concurrency key has "
               "room), 17 ready",
               SEC_REQUEUE, "ids={1,5,8,10,11,12,17,x}");
    expect_row(&f, "0", "select count(*) from solid_queue_failed_executions");
    expect_row(&f, "10,17",
               "select string_agg(job_id::text, ',' order by job_id) from "
               "solid_queue_ready_executions where job_id > 9");
    expect_row(&f, "t",
               "select abs(extract(epoch from scheduled_at - timezone('UTC', now()))) < 60 from "
               "solid_queue_scheduled_executions where job_id = 11");
    expect_row(&f,
               "{\"job_class\":\"ReportJob\",\"arguments\":[{\"n\":1,\"executions\":77}],"
               "\"executions\":0,\"exception_executions\":{},\"locale\":\"en\"}",
               "select arguments from solid_queue_jobs where id = 10");
    expect_row(&f, "1",
               "select arguments::json ->> 'executions' from (select replace(arguments, '\\u0000', "
               "'') as arguments from solid_queue_jobs where id = 17) j");
    expect_act(&f, "", SEC_REQUEUE, "ids={10,11,17}");
    /* a ready job with a key holds a slot; a running one is never deleted */
    expect_act(&f, "1 deleted, 12 deleted, 8 deleted", SEC_DELETE, "ids={1,4,5,8,12}");
    assert_string_equal(
        pg_value(f.conn, "select md5(string_agg(s::text, ',')) from solid_queue_semaphores s"),
        semaphores);
    other_close(&f);
}

static void
solid_queue_leaves_what_is_being_claimed(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "solid_queue", "sq_claim");
    pg_run(f.watcher,
           "begin; select from solid_queue_ready_executions where job_id = 1 for update");
    expect_act(&f, "2 deleted", SEC_DELETE, "ids={1,2}");
    pg_run(f.watcher, "rollback");
    expect_act(&f, "1 deleted", SEC_DELETE, "ids={1,2}");
    other_close(&f);
}

/* Claiming, dispatching, letting in and retrying as Solid Queue does it: the new row refers to the
 * job, so a delete of the job waits for it, and must not go by what it saw before. */
static void
moves(struct other *f, int job, const char *from, const char *to, const char *columns)
{
    pg_run(f->watcher, "begin");
    pg_run(f->watcher,
           "insert into solid_queue_%s_executions (job_id, created_at%s) select id, now()%s from "
           "solid_queue_jobs where id = %d",
           to, columns, columns, job);
    pg_run(f->watcher, "delete from solid_queue_%s_executions where job_id = %d", from, job);
}

static void
solid_queue_judges_after_it_has_waited(void **state)
{
    static const char *const states[] = {"claimed", "ready", "scheduled", "blocked", "failed"};
    static const struct {
        int job;
        const char *from, *to, *columns;
    } ways[] = {
        {1,  "ready",     "claimed", ""                      },
        {3,  "scheduled", "ready",   ", queue_name, priority"},
        {8,  "blocked",   "ready",   ", queue_name, priority"},
        {10, "failed",    "ready",   ", queue_name, priority"},
        {2,  "ready",     "failed",  ""                      }, /* a discard by its own console */
    };
    struct other f;

    (void)state;
    other_open(&f, "solid_queue", "sq_waits");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char id[32];
        snprintf(id, sizeof id, "ids={%d}", ways[i].job);
        moves(&f, ways[i].job, ways[i].from, ways[i].to, ways[i].columns);
        assert_string_equal(other_act_waits(&f, "commit", SEC_DELETE, id, NULL), "");
        int rows = 0;
        for (size_t k = 0; k < sizeof states / sizeof *states; k++)
            rows += (int)pg_int(f.conn,
                                "select count(*) from solid_queue_%s_executions where job_id = %d",
                                states[k], ways[i].job);
        assert_int_equal(rows, 1);
    }
    /* what turned out not to have happened does not count */
    moves(&f, 17, "failed", "claimed", "");
    assert_string_equal(other_act_waits(&f, "rollback", SEC_DELETE, "ids={17}", NULL),
                        "17 deleted");
    other_close(&f);
}

static void
solid_queue_does_not_wait_for_a_claim_that_ends(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "solid_queue", "sq_ends");
    pg_run(f.watcher, "begin");
    pg_run(f.watcher, "select from solid_queue_claimed_executions where job_id = 6 for update");
    expect_act(&f, "", SEC_RELEASE_WHERE, "node=worker-bb22");
    pg_run(f.watcher, "rollback");
    expect_act(&f, "6 ready", SEC_RELEASE_WHERE, "node=worker-bb22");
    other_close(&f);
}

/* A process registers and takes the job after the act began: the act's snapshot shows neither. */
static void
good_job_knows_who_took_a_job_meanwhile(void **state)
{
    static const char takes[] =
        "insert into good_job_processes (id, created_at, updated_at, state, lock_type) values "
        "('" ID(77) "', now(), timezone('UTC', now()), '{}', 0); "
                    "update good_jobs set locked_by_id = '" ID(
                        77) "', locked_at = now() where id = '" ID(03) "'; commit";
    struct other f;

    (void)state;
    other_open(&f, "good_job", "gj_waits");
    for (int i = 0; i < 2; i++) {
        pg_run(f.watcher, "begin; select from good_jobs where id = '" ID(03) "' for update");
        const char *got =
            i ? other_act_waits(&f, takes, SEC_DISCARD, "ids={" ID(03) "}", NULL)
              : other_act_waits(&f, takes, SEC_TIME, "ids={" ID(03) "}", "at=2099-01-01", NULL);
        assert_string_equal(got, "");
        pg_run(f.conn, "update good_jobs set locked_by_id = null, locked_at = null");
        pg_run(f.conn, "delete from good_job_processes where id = '" ID(77) "'");
    }
    other_close(&f);
}

static void
solid_queue_takes_jobs_back(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "solid_queue", "sq_rescue");
    expect_act(&f, "", SEC_RELEASE_WHERE, "node=worker-aa11"); /* lives */
    expect_act(&f, "6 ready", SEC_RELEASE_WHERE, "node=worker-bb22");
    expect_act(&f, "7 ready", SEC_RELEASE_WHERE, "node=process 3");
    expect_act(&f, "5 ready", SEC_RESCUE, "ids={1,5,6,12}");
    expect_row(&f, "0 6",
               "select (select count(*) from solid_queue_claimed_executions) || ' ' || (select "
               "count(*) from solid_queue_ready_executions)");
    other_close(&f);
}

static void
solid_queue_changes_and_purges(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "solid_queue", "sq_changes");
    expect_act(&f, "1 ready, 3 scheduled, 8 blocked", SEC_PRIORITY, "ids={1,3,5,8,10,12}", "n=7");
    expect_row(&f, "7 7",
               "select concat_ws(' ', j.priority, e.priority) from solid_queue_jobs j join "
               "solid_queue_ready_executions e on e.job_id = j.id where j.id = 1");
    expect_act(&f, "3 scheduled", SEC_TIME, "ids={1,3,5,8}", "at=2099-01-01 05:30:00+05:30");
    expect_row(&f, "2099-01-01 00:00:00 2099-01-01 00:00:00",
               "select concat_ws(' ', j.scheduled_at, e.scheduled_at) from solid_queue_jobs j "
               "join solid_queue_scheduled_executions e on e.job_id = j.id where j.id = 3");
    expect_act(&f, "default paused", SEC_PAUSE, "queue=default");
    expect_act(&f, "", SEC_PAUSE, "queue=default");
    expect_act(&f, "mailers active", SEC_RESUME, "queue=mailers");
    expect_act(&f, "", SEC_RESUME, "queue=mailers");
    const char *before = pg_value(f.conn, "select 'before=' || now() - interval '59 min 59 s'");
    expect_look(&f, "2", SEC_PURGE_PREVIEW, "n", before);
    expect_look(&f, "1", SEC_PURGE_PREVIEW, "n", before, "queue=mailers");
    expect_act(&f, "12 deleted", SEC_PURGE, before, "limit=1");
    expect_act(&f, "13 deleted", SEC_PURGE, before, "limit=1");
    expect_act(&f, "", SEC_PURGE, before, "limit=1");
    pg_run(f.watcher, "begin"); /* just being retried */
    pg_run(f.watcher, "delete from solid_queue_failed_executions where job_id = 10");
    expect_act(&f, "", SEC_PURGE, "states={failed}", "queue=default", "limit=10");
    pg_run(f.watcher, "rollback");
    expect_act(&f, "10 deleted", SEC_PURGE, "states={failed}", "queue=default", "limit=10");
    other_close(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_job_is_shown),
        cmocka_unit_test(good_job_counts_and_lists),
        cmocka_unit_test(good_job_leaves_locked_jobs_alone),
        cmocka_unit_test(good_job_requeues_failed_ones_and_tells),
        cmocka_unit_test(good_job_discards_and_deletes),
        cmocka_unit_test(good_job_forgets_dead_processes),
        cmocka_unit_test(good_job_sessions_are_ended),
        cmocka_unit_test(good_job_pauses_by_settings),
        cmocka_unit_test(solid_queue_is_shown),
        cmocka_unit_test(solid_queue_counts_and_lists),
        cmocka_unit_test(solid_queue_never_touches_semaphores),
        cmocka_unit_test(solid_queue_leaves_what_is_being_claimed),
        cmocka_unit_test(solid_queue_judges_after_it_has_waited),
        cmocka_unit_test(solid_queue_does_not_wait_for_a_claim_that_ends),
        cmocka_unit_test(good_job_knows_who_took_a_job_meanwhile),
        cmocka_unit_test(solid_queue_takes_jobs_back),
        cmocka_unit_test(solid_queue_changes_and_purges),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
