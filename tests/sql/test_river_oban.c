/*
 * River and Oban by their schema: what the console shows of a database of theirs, and what each act
 * changes there, refuses, and tells the programs that listen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sql/other.h"

/* --- River ------------------------------------------------------------------------------------ */

static void
river_is_shown(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "river", "river_shown");
    expect_look(&f, "public", SEC_DETECT, "schema");
    expect_look(&f, "7", SEC_VERSION, "version");
    expect_look(&f, "default mail", SEC_QUEUES, "queue");
    expect_look(&f, "f t", SEC_QUEUES, "paused");
    expect_look(&f, "host1_2026_11_01 host2_2026_11_01", SEC_NODES, "node");
    expect_look(&f, "up unknown", SEC_NODES, "state");
    expect_look(&f, "0 3", SEC_NODES, "expired");
    expect_look(&f, "6 7 8", SEC_LEASES, "job_ids", "node=host2_2026_11_01");
    expect_look(&f, "1 1 1 1", SEC_GROUPS, "n");
    expect_look(&f, "11", SEC_GROUPS, "sample_id", "queue=mail");
    expect_look(&f, "division by zero in row N", SEC_GROUPS, "error_key", "queue=mail");
    expect_look(&f, "{\"to\": \"a@b\"}", SEC_JOB, "payload", "ids={1}");
    expect_look(&f, "timeout after 31 s timeout after 30 s", SEC_ATTEMPTS, "error", "ids={4}");
    expect_look(&f, "1793530800500 1793527200000", SEC_ATTEMPTS, "ended_ms", "ids={4}");
    expect_look(&f, "-", SEC_ATTEMPTS, "ended_ms", "ids={17}"); /* hostile text is no time */
    expect_look(&f, "t t t f", SEC_JOBS, "stale", "states={running}");
    expect_look(&f, "kind'; drop table river_job; -- report send_mail sync", SEC_GROUPS_BY, "group",
                "settings=kind");
    expect_look(&f, "1 1 1 1", SEC_GROUPS_BY, "n", "settings=kind");
    expect_look(&f, "1 1 1 1", SEC_FAIL_TIMES, "n");
    other_close(&f);
}

static void
river_counts_are_the_truth(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "river", "river_counts");
    pg_run(f.conn, "delete from river_job where id = 17");
    pg_run(f.conn, "update river_job set queue = 'mail'");
    expect_look(&f, "2", SEC_COUNTS, "scheduled");
    expect_look(&f, "3", SEC_COUNTS, "ready");
    expect_look(&f, "1", SEC_COUNTS, "retry");
    expect_look(&f, "4", SEC_COUNTS, "running");
    expect_look(&f, "3", SEC_COUNTS, "failed");
    expect_look(&f, "1", SEC_COUNTS, "blocked");
    expect_look(
        &f,
        pg_value(
            f.conn,
            "select (extract(epoch from scheduled_at) * 1000)::bigint from river_job where id = 1"),
        SEC_COUNTS, "oldest_ms");
    expect_look(&f, "2", SEC_COUNTS_FINAL, "completed");
    expect_look(&f, "1", SEC_COUNTS_FINAL, "cancelled");
    expect_look(&f, "f", SEC_COUNTS_FINAL, "approx");
    other_close(&f);
}

static void
river_lists_are_whole_page_by_page(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "river", "river_lists");
    expect_walk(&f, "6 7 8 5 1 15 2 4 3 18 9 17 16 11 10", "words={}");
    expect_walk(&f, "5 1 15 2 3 18 9 16 10", "queue=default");
    expect_walk(&f, "17 16 11 10", "states={failed}");
    expect_walk(&f, "13 12 14", "states={completed,cancelled}");
    expect_walk(&f, "12 14", "states={completed,cancelled}", "queue=default");
    expect_walk(&f, "3 18", "states={scheduled}");
    expect_walk(&f, "1 2 4 11 13 12 14", "kind=send_mail",
                "states={ready,retry,completed,cancelled,failed}");
    other_close(&f);
}

static void
river_requeue_keeps_its_checks(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "river", "river_requeue");
    /* 1 is ready and due, 5 runs, the others are no jobs; each comes back once */
    expect_act(
        &f, "10 ready, 12 ready, 14 ready, 3 ready, 4 ready, 9 ready", SEC_REQUEUE,
        "ids={1,3,3,4,5,9,10,12,14,99999,x,\"1; drop table river_job\",99999999999999999999}");
    expect_row(
        &f, "6",
        "select count(*) from river_job where id in (3, 4, 9, 10, 12, 14) and state = 'available' "
        "and finalized_at is null and scheduled_at = (select scheduled_at from river_job where id "
        "= 10)");
    expect_row(&f, "4", "select max_attempts from river_job where id = 10"); /* it was used up */
    expect_row(&f, "25", "select max_attempts from river_job where id = 4");
    /* once more: nothing */
    expect_act(&f, "", SEC_REQUEUE, "ids={3,4,9,10,12,14}");
    other_close(&f);
}

static void
river_meets_a_unique_job(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "river", "river_unique");
    expect_act(&f, "!23505", SEC_REQUEUE, "ids={10,16}"); /* 15 has the same key and is ready */
    expect_row(&f, "discarded", "select state from river_job where id = 10");
    expect_act(&f, "10 ready", SEC_REQUEUE, "ids={10}");
    expect_act(&f, "15 cancelled", SEC_CANCEL, "ids={15}"); /* its key is free then */
    expect_act(&f, "16 ready", SEC_REQUEUE, "ids={16}");
    other_close(&f);
}

/* The whole way, by the program: the batch fails as a whole and is repeated row by row. */
static void
river_is_requeued_row_by_row(void **state)
{
    struct other f;
    char command[1024], out[4096];

    (void)state;
    other_open(&f, "river", "river_rows");
    snprintf(command, sizeof command, "%s requeue --id 10 --id 16 --id 5 --id 3 --yes --json '%s'",
             getenv("QUEUETOP"), pg_dsn("river_rows"));
    FILE *p = popen(command, "re");
    assert_non_null(p);
    out[fread(out, 1, sizeof out - 1, p)] = 0;
    assert_int_equal(pclose(p), 0);
    assert_non_null(strstr(out, "\"changed\": 2, \"skipped\": 2"));
    assert_non_null(strstr(out, "the same unique key (index river_job_unique_idx)"));
    expect_row(&f, "available discarded running available",
               "select string_agg(state::text, ' ' order by array_position('{10,16,5,3}'::int[], "
               "id::int)) "
               "from river_job where id in (10, 16, 5, 3)");
    other_close(&f);
}

static void
river_takes_jobs_back(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "river", "river_rescue");
    expect_act(&f, "5 retry, 6 failed, 7 cancelled", SEC_RESCUE, "ids={1,5,6,7,12}");
    expect_row(&f, "retryable 1 1",
               "select concat_ws(' ', state, metadata ->> 'river:rescue_count', "
               "cardinality(errors)) from river_job where id = 5");
    expect_row(&f, "t", "select finalized_at is not null from river_job where id = 6");
    expect_row(&f, "{at,error,trace,attempt}",
               "select array(select jsonb_object_keys(errors[1])) from river_job where id = 6");
    expect_row(&f, "1", "select errors[1] ->> 'attempt' from river_job where id = 5");
    /* 8 is all that this node still has; its attempt is two hours old */
    expect_act(&f, "", SEC_RELEASE_WHERE, "node=host1_2026_11_01");
    expect_act(&f, "8 retry", SEC_RELEASE_WHERE, "node=host2_2026_11_01");
    pg_run(f.conn, "update river_job set state = 'running', attempted_at = now() where id = 8");
    expect_act(&f, "", SEC_RELEASE_WHERE, "node=host2_2026_11_01", "expired_only=true");
    expect_act(&f, "8 retry", SEC_RELEASE_WHERE, "node=host2_2026_11_01", "expired_only=false");
    other_close(&f);
}

static void
river_is_told_of_cancels_and_pauses(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "river", "river_told");
    other_listen(&f, "public.river_control");
    expect_act(&f, "1 cancelled, 4 cancelled, 5 running (its client is told)", SEC_CANCEL,
               "ids={1,4,5,10,12,14}");
    assert_string_equal(
        other_heard(&f),
        "public.river_control {\"action\" : \"cancel\", \"job_id\" : 5, \"queue\" : \"default\"}");
    expect_row(&f, "running t",
               "select state || ' ' || (metadata ? 'cancel_attempted_at' and finalized_at is "
               "null)::text::char from river_job where id = 5");
    expect_row(&f, "t",
               "select finalized_at is not null and metadata ? 'cancel_attempted_at' from "
               "river_job where id = 1");
    expect_act(&f, "default paused", SEC_PAUSE, "queue=default");
    assert_string_equal(other_heard(&f),
                        "public.river_control {\"action\" : \"pause\", \"queue\" : \"default\"}");
    expect_act(&f, "", SEC_PAUSE, "queue=default");
    expect_act(&f, "", SEC_PAUSE, "queue=nobody");
    expect_look(&f, "t t", SEC_QUEUES, "paused");
    expect_act(&f, "default active", SEC_RESUME, "queue=default");
    expect_act(&f, "", SEC_RESUME, "queue=default");
    assert_string_equal(other_heard(&f),
                        "public.river_control {\"action\" : \"resume\", \"queue\" : \"default\"}");
    other_close(&f);
}

static void
river_changes_and_deletes(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "river", "river_changes");
    expect_act(&f, "1 ready, 4 retry, 9 blocked", SEC_PRIORITY, "ids={1,4,5,9,10,12}", "n=4");
    expect_act(&f, "", SEC_PRIORITY, "ids={1}", "n=5");
    expect_act(&f, "1 scheduled, 3 scheduled, 4 retry", SEC_TIME, "ids={1,3,4,5,9,10,12}",
               "at=2099-01-01 00:00:00+00");
    expect_row(&f, "3",
               "select count(*) from river_job where scheduled_at = '2099-01-01 00:00:00+00'");
    expect_act(&f, "10 deleted, 2 deleted", SEC_DELETE, "ids={2,5,10,x}");
    /* finished a day ago: 12 completed, 14 cancelled */
    pg_run(f.conn, "select set_config('t.day', (now() - interval '1 day')::text, false)");
    const char *before = pg_value(f.conn, "select 'before=' || current_setting('t.day')");
    expect_look(&f, "2", SEC_PURGE_PREVIEW, "n", before);
    expect_look(&f, "1", SEC_PURGE_PREVIEW, "n", before, "states={completed}");
    expect_look(&f, "", SEC_PURGE_PREVIEW, "n", before, "queue=mail");
    expect_act(&f, "14 deleted", SEC_PURGE, before, "states={cancelled}", "limit=10");
    expect_act(&f, "12 deleted", SEC_PURGE, before, "limit=1");
    expect_act(&f, "", SEC_PURGE, before, "limit=1");
    expect_act(&f, "", SEC_PURGE, "states={running}", "limit=10"); /* never what is not final */
    /* what somebody is just retrying stays */
    pg_run(f.watcher, "begin");
    pg_run(f.watcher,
           "update river_job set state = 'available', finalized_at = null where id = 11");
    expect_act(&f, "", SEC_PURGE, "states={failed}", "queue=mail", "limit=10");
    pg_run(f.watcher, "rollback");
    expect_act(&f, "11 deleted", SEC_PURGE, "states={failed}", "queue=mail", "limit=10");
    other_close(&f);
}

/* --- Oban ------------------------------------------------------------------------------------- */

static void
oban_is_shown(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "oban", "oban_shown");
    expect_look(&f, "public", SEC_DETECT, "schema");
    expect_look(&f, "14", SEC_VERSION, "version");
    pg_run(f.conn, "delete from oban_jobs where id = 17");
    expect_look(&f, "default mailers", SEC_QUEUES, "queue");
    expect_look(&f, "- -", SEC_QUEUES, "paused"); /* nobody can tell */
    expect_look(&f, "web@host1 web@host2", SEC_NODES, "node");
    expect_look(&f, "up unknown", SEC_NODES, "state");
    expect_look(&f, "6 7", SEC_LEASES, "job_ids", "node=web@host2");
    expect_look(&f, "** (ArithmeticError) bad argument N", SEC_GROUPS, "error_key",
                "queue=default");
    expect_look(&f, "2 1", SEC_ATTEMPTS, "number", "ids={4}");
    expect_look(&f, "web@host1", SEC_GROUPS_BY, "group", "settings=node");
    expect_look(&f, "2", SEC_GROUPS_BY, "n", "settings=node");
    expect_look(&f, "1 1", SEC_FAIL_TIMES, "n");
    /* the times have no zone and mean UTC, whatever the session's zone is */
    expect_look(
        &f,
        pg_value(
            f.conn,
            "select (extract(epoch from inserted_at) * 1000)::bigint from oban_jobs where id = 1"),
        SEC_JOB, "created_ms", "ids={1}");
    expect_look(&f, "6 7 5 1 2 4 3 8 11 10", SEC_JOBS, "id", "younger_than=1 year");
    expect_look(&f, "8 5 3 2 1", SEC_JOBS, "id", "younger_than=10 min", "ids={1,2,3,4,5,6,8}",
                "limit=100", "n=100");
    other_close(&f);
}

static void
oban_counts_and_lists(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "oban", "oban_lists");
    expect_walk(&f, "6 7 5 1 2 4 3 8 17 11 10", "words={}");
    expect_walk(&f, "6 7 2 4 11", "queue=mailers");
    expect_walk(&f, "13 12 14", "states={completed,cancelled}");
    expect_walk(&f, "8", "states={blocked}");
    expect_walk(&f, "5 10", "kind=App.Report", "states={running,failed}");
    pg_run(f.conn, "update oban_jobs set queue = 'one'");
    expect_look(&f, "1", SEC_COUNTS, "scheduled");
    expect_look(&f, "2", SEC_COUNTS, "ready");
    expect_look(&f, "1", SEC_COUNTS, "retry");
    expect_look(&f, "3", SEC_COUNTS, "running");
    expect_look(&f, "3", SEC_COUNTS, "failed");
    expect_look(&f, "1", SEC_COUNTS, "blocked");
    expect_look(&f, "2", SEC_COUNTS_FINAL, "completed");
    other_close(&f);
}

static void
oban_requeues_and_tells(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "oban", "oban_requeue");
    other_listen(&f, "public.oban_insert");
    expect_act(&f, "10 ready, 12 ready, 14 ready, 3 ready, 8 ready", SEC_REQUEUE,
               "ids={1,3,5,8,10,12,14,x,99999999999999999999}");
    assert_string_equal(other_heard(&f), "public.oban_insert {\"queue\" : \"default\"}");
    expect_row(&f, "4",
               "select max_attempts from oban_jobs where id = 10"); /* 3 of 3 were used up */
    expect_row(&f, "t",
               "select bool_and(state = 'available' and coalesce(completed_at, cancelled_at, "
               "discarded_at) is null and "
               "abs(extract(epoch from scheduled_at - timezone('UTC', now()))) < 60) from "
               "oban_jobs where id in (3, 8, 10, 12, 14)");
    expect_act(&f, "", SEC_REQUEUE, "ids={3,8,10,12,14}");
    assert_string_equal(other_heard(&f), "");
    other_close(&f);
}

static void
oban_tells_its_nodes(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "oban", "oban_told");
    other_listen(&f, "public.oban_signal");
    expect_act(&f, "1 cancelled, 5 cancelled (its node is told to end it)", SEC_CANCEL,
               "ids={1,5,10,12,14}");
    assert_string_equal(other_heard(&f),
                        "public.oban_signal {\"action\" : \"pkill\", \"job_id\" : 5}");
    expect_row(&f, "t",
               "select bool_and(abs(extract(epoch from cancelled_at - timezone('UTC', now()))) < "
               "60) from oban_jobs where id in (1, 5)");
    other_act(&f, SEC_PAUSE, "queue=default", NULL);
    other_act(&f, SEC_RESUME, "queue=default", NULL);
    assert_string_equal(other_heard(&f), "public.oban_signal {\"action\" : \"pause\", \"queue\" "
                                         ": \"default\", \"ident\" : \"any\"}; "
                                         "public.oban_signal {\"action\" : \"resume\", \"queue\" "
                                         ": \"default\", \"ident\" : \"any\"}");
    other_close(&f);
}

static void
oban_takes_jobs_back_but_not_pros(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "oban", "oban_rescue");
    expect_act(&f, "5 ready, 6 failed", SEC_RESCUE, "ids={1,5,6,12}");
    expect_row(
        &f, "t",
        "select discarded_at is not null and state = 'discarded' from oban_jobs where id = 6");
    pg_run(f.conn, "create table oban_producers (uuid uuid)");
    expect_act(&f, "", SEC_RESCUE, "ids={7}");
    expect_act(&f, "", SEC_RELEASE_WHERE, "node=web@host2", "expired_only=false");
    pg_run(f.conn, "drop table oban_producers");
    expect_act(&f, "7 ready", SEC_RELEASE_WHERE, "node=web@host2");
    other_close(&f);
}

static void
oban_changes_and_deletes(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "oban", "oban_changes");
    expect_act(&f, "1 ready, 4 retry, 8 blocked", SEC_PRIORITY, "ids={1,4,5,8,10,12}", "n=9");
    expect_act(&f, "", SEC_PRIORITY, "ids={1}", "n=10");
    expect_act(&f, "1 scheduled, 4 retry", SEC_TIME, "ids={1,4,5,8,10}",
               "at=2099-01-01 05:30:00+05:30");
    expect_row(&f, "2",
               "select count(*) from oban_jobs where scheduled_at = '2099-01-01 00:00:00'");
    expect_act(&f, "10 deleted, 2 deleted", SEC_DELETE, "ids={2,5,10}");
    const char *before = pg_value(f.conn, "select 'before=' || now() - interval '1 day'");
    expect_look(&f, "2", SEC_PURGE_PREVIEW, "n", before);
    pg_run(f.watcher, "begin");
    pg_run(f.watcher, "select from oban_jobs where id = 12 for update");
    expect_act(&f, "", SEC_PURGE, before, "states={completed}", "limit=10");
    pg_run(f.watcher, "rollback");
    expect_act(&f, "12 deleted", SEC_PURGE, before, "states={completed}", "limit=10");
    expect_act(&f, "14 deleted", SEC_PURGE, before, "limit=10");
    /* by UTC, whatever the session's zone is: 13 was completed an hour ago */
    expect_act(&f, "", SEC_PURGE, pg_value(f.conn, "select 'before=' || now() - interval '75 min'"),
               "limit=10");
    expect_act(&f, "13 deleted", SEC_PURGE,
               pg_value(f.conn, "select 'before=' || now() - interval '59 min'"), "limit=10");
    other_close(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(river_is_shown),
        cmocka_unit_test(river_counts_are_the_truth),
        cmocka_unit_test(river_lists_are_whole_page_by_page),
        cmocka_unit_test(river_requeue_keeps_its_checks),
        cmocka_unit_test(river_meets_a_unique_job),
        cmocka_unit_test(river_is_requeued_row_by_row),
        cmocka_unit_test(river_takes_jobs_back),
        cmocka_unit_test(river_is_told_of_cancels_and_pauses),
        cmocka_unit_test(river_changes_and_deletes),
        cmocka_unit_test(oban_is_shown),
        cmocka_unit_test(oban_counts_and_lists),
        cmocka_unit_test(oban_requeues_and_tells),
        cmocka_unit_test(oban_tells_its_nodes),
        cmocka_unit_test(oban_takes_jobs_back_but_not_pros),
        cmocka_unit_test(oban_changes_and_deletes),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
