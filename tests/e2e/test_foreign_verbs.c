/*
 * The verbs on queues that are not ours: the real program on the tables of River, of a table of
 * tasks without nodes and leases, of Que, and of a system that only a file of the user's knows. The
 * answer of each is looked up in the tables themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/harness.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

static char dsn[500];

static PGconn *
begin(const char *fixture)
{
    static int databases;
    char name[100];

    snprintf(name, sizeof name, "%s%d", fixture, ++databases);
    snprintf(dsn, sizeof dsn, "%s", pg_dsn(name));
    return pg_fixture(name, fixture);
}

/* Runs `queuetop VERB... DSN`: both outputs, one after the other; the caller frees. */
static __attribute__((format(printf, 2, 3))) char *
run(int code, const char *fmt, ...)
{
    char *out, *err;
    va_list ap;

    va_start(ap, fmt);
    proc_verb(code, &out, &err, dsn, fmt, ap);
    va_end(ap);
    char *both = xasprintf("%s%s", out, err);
    free(out);
    free(err);
    return both;
}

/* Runs `queuetop VERB... DSN`; the output must contain `part`. */
static void
says(int code, const char *args, const char *part)
{
    char *all = run(code, "%s", args);

    if (!strstr(all, part))
        fail_msg("%s: no \"%s\" in:\n%s", args, part, all);
    free(all);
}

#define STATES "select string_agg(id || ' ' || state, ',' order by id) from river_job where id "

static void
looks(void **state)
{
    PGconn *conn = begin("river");

    (void)state;
    says(3, "tail", "can't be followed: use jobs --watch, or queues --watch");
    says(0, "queues --json", "\"queue\": \"mail\", \"paused\": true, ");
    says(0, "queues --csv", "default,false,");
    says(0, "jobs --state failed --queue mail --csv", "11,mail,send_mail,failed,4,25,25,");
    says(0, "job 4", "timeout after 30 s");
    says(2, "job 018f0000-0000-7000-8000-000000000001", "give it in full");
    says(1, "job 999", "");
    says(0, "nodes --json", "\"heartbeat_s\": null");
    says(0, "failures --queue mail --csv", ",division by zero in row N,");
    says(3, "audit", "does not record this");
    says(2, "check -c backlog@default=0", "'backlog@default'=");
    says(2, "check -w failures=1", "failures is not known here");
    pg_run(conn, "update river_job set errors = array[jsonb_build_object('error', case id when 10 "
                 "then '~/bin/7: exit 1' else 'see /bin/N: exit N' end)] where id in (10, 11)");
    says(0, "requeue --error ~/bin/N --dry-run", "would change: 1 job ready"); /* a part */
    says(0, "requeue --error ' ~/bin/N: exit N' --dry-run", "error like \"~/bin/N: exit N\"");
    says(0, "jobs --error ' ~/bin/9: exit 2' --csv", "\n10,");
    PQfinish(conn);

    conn = begin("tasks_table");
    says(0, "queues --csv", "tasks,,2,");
    says(3, "jobs node:a", "can't filter by node");
    says(3, "nodes", "does not record this");
    says(0, "leases --json", "\"job\": \"4\", \"node\": null, \"queue\": \"tasks\"");
    PQfinish(conn);

    conn = begin("pgqueue_lib"); /* a missing function: the message names another way */
    says(3, "redrive --id 018f0000-0000-7000-8000-000000000001 --yes",
         "no dead letters here: failed jobs are in the history, requeue them");
    says(3, "pause default --yes", "no worker reads queue_config.paused: stop the queue's workers");
    PQfinish(conn);
}

/* What is tried out changes nothing; then the same happens for good. */
static void
requeues(void **state)
{
    PGconn *conn = begin("river");
    char *before = strdup(pg_value(conn, STATES "> 0"));

    (void)state;
    says(0, "requeue --state failed --dry-run",
         "would change: 3 jobs ready, 1 job left alone: another live job has the same unique key "
         "(index river_job_unique_idx)");
    says(0, "requeue --state failed --dry-run", "as the system's own: JobRetry");
    assert_string_equal(pg_value(conn, STATES "> 0"), before);
    free(before);
    says(3, "requeue --state failed --yes --expect 4", "expected 4, would change 3");
    says(3, "requeue --state failed --yes --reset-tries", "can't start the tries of a job over");
    says(0, "requeue --state failed --yes",
         "3 jobs ready, 1 job left alone: another live job has the same unique key (index "
         "river_job_unique_idx); not audited by this system\n");
    assert_string_equal(pg_value(conn, STATES "in (10, 11, 16, 17)"),
                        "10 available,11 available,16 discarded,17 available");
    says(1, "requeue --id 5 --yes --json", "\"action\": null, \"dry_run\": true, \"exit\": 1");
    says(1, "requeue --id 5 --yes", "takes only jobs that do not run and are not ready and due");
    says(0, "requeue --id 3,5,5,4711 --yes", "1 job ready, 2 jobs left alone: requeue takes only");
    says(2, "requeue --id abc --yes", "give it in full");
    PQfinish(conn);
}

static void
changes(void **state)
{
    PGconn *conn = begin("river");
    char *log = xasprintf("%s/acts.log", getenv("TMPDIR"));
    char *args = xasprintf("cancel --id 1 --yes --reason wrong --log %s", log);

    (void)state;
    says(0, args, "1 job cancelled; not audited by this system");
    FILE *f = fopen(log, "r");
    assert_non_null(f);
    char line[1000] = "", said[1000] = "";
    while (fgets(line, sizeof line, f))
        if (strstr(line, "cancel by "))
            snprintf(said, sizeof said, "%s", line);
    fclose(f);
    assert_non_null(strstr(said, ": 1 job by id; counted at "));
    assert_non_null(strstr(said, "; reason: wrong"));
    free(args);
    remove(log);
    free(log);

    says(2, "priority 5 --id 2 --yes", "a priority is 1 to 4 here, not \"5\"");
    says(0, "priority 3 --id 2 --yes", "1 job");
    assert_string_equal(pg_value(conn, "select priority from river_job where id = 2"), "3");
    says(0, "reschedule 2h --id 2 --yes", "1 job scheduled");
    assert_string_equal(pg_value(conn, STATES "= 2"), "2 scheduled");
    says(0, "reschedule now --id 2 --yes", "1 job ready");
    says(0, "reschedule 2h --id 2 --yes", "1 job scheduled");
    says(0, "delete --id 10 --yes", "1 job deleted");
    says(0, "pause default --yes", "1 queue paused");
    says(1, "pause default --yes", "nothing to change: pause takes only");
    says(0, "resume default --yes", "1 queue");
    says(2, "purge --older-than 0 --force --state failed,bogus --yes",
         "cancelled, failed; not bogus");
    says(2, "purge --older-than 0 --force --state running --yes", "for jobs that have ended");
    says(2, "delete --state compleeted,failed --yes",
         "--state: no state \"compleeted\": scheduled");
    says(2, "requeue --state 'failed queue:mail' --yes", "no state \"failed queue:mail\": sched");
    says(2, "jobs --state 'failed queue:mail'", "no state \"failed queue:mail\": sched");
    says(2, "jobs --state failed,bogus",
         "no state \"bogus\": scheduled ready blocked running retry failed completed cancelled "
         "done");
    says(0, "requeue --state done --dry-run", "would change");
    says(0, "purge --older-than 1h --queue default --yes", "2 jobs deleted");
    assert_string_equal(pg_value(conn, STATES "in (1, 12, 13, 14)"), "1 cancelled,13 completed");
    says(3, "extend --id 5 --by 5m --yes", "no such action");
    says(3, "redrive --id 5 --yes", "no such action");
    says(3, "terminate host1 --yes", "no such action");
    says(3, "drain host1 --yes", "no such action");
    says(3, "undo 018f0000-0000-7000-8000-000000000001 --yes", "no such action");
    PQfinish(conn);
}

/* Graphile Worker deletes a completed job: nobody knows how a job ended that is gone. */
static void
waits_for_an_end_that_nobody_knows(void **state)
{
    PGconn *conn = begin("graphile_worker");
    struct proc p;

    (void)state;
    proc_queuetop(&p, NULL, "job 6 --wait -d \"%s\"", dsn);
    proc_want(&p, "keeps no history: if the job does not fail");
    pg_run(conn, "delete from graphile_worker._private_jobs where id = 6");
    int code = proc_wait(&p);
    char *said = proc_errors(&p);
    if (code != 10 || !strstr(said, "the job has ended: it was completed or deleted"))
        fail_msg("exit code %d, not 10: %s", code, said);
    free(said);
    proc_done(&p);
    PQfinish(conn);
}

/* The wait goes on for a login that may read the jobs, but not the list of queues. */
static void
waits_without_the_list_of_queues(void **state)
{
    PGconn *conn = begin("solid_queue");

    (void)state;
    pg_run(conn, "create role poor login; grant select on all tables in schema public to poor;"
                 "revoke select on solid_queue_pauses from poor;"
                 "update solid_queue_jobs set finished_at = now() where id = 1");
    snprintf(dsn + strlen(dsn), sizeof dsn - strlen(dsn), " user=poor");
    says(3, "queues", "permission denied");
    says(0, "job 1 --wait", "completed");
    PQfinish(conn);
}

/* Waits for a job and deletes it once the wait has read it: the wait then asks for the queues, for
 * which it needs a table that is locked. */
static void
check_wait(PGconn *conn, const char *id, const char *jobs, const char *queues, int want,
           const char *answer)
{
    struct proc p;
    char *is_asked = xasprintf("select count(*) from pg_locks where not granted and relation = "
                               "'%s'::regclass",
                               queues);

    pg_run(conn, "begin; lock table %s", queues);
    proc_queuetop(&p, NULL, "job %s --wait -d \"%s\"", id, dsn);
    pg_wait(conn, is_asked, "1", PROC_WAIT_MS);
    pg_run(conn, "delete from %s where id = %s; commit", jobs, id);
    int code = proc_wait(&p);
    char *said = proc_errors(&p);
    if (code != want || !strstr(said, answer))
        fail_msg("exit code %d, not %d: %s", code, want, said);
    free(said);
    free(is_asked);
    proc_done(&p);
}

/* In Solid Queue the application decides whether completed jobs are deleted; River keeps them. */
static void
a_job_that_is_gone_may_have_completed(void **state)
{
    PGconn *conn = begin("solid_queue");

    (void)state;
    char *id = strdup(pg_value(conn, "select min(job_id) from solid_queue_ready_executions"));
    check_wait(conn, id, "solid_queue_jobs", "solid_queue_pauses", 10,
               "it was deleted, or it was completed, if completed jobs are deleted here");
    free(id);
    PQfinish(conn);

    conn = begin("river");
    check_wait(conn, "5", "river_job", "river_queue", 1, "there any more: it was deleted\n");
    PQfinish(conn);
}

#define OWN_PAUSES "select count(*) from solid_queue_pauses where queue_name = 'mials'"
#define GOOD_PAUSES \
    "select count(*) from good_job_settings where key = 'pauses' and value::text like '%%mials%%'"

/* A misspelt name is not paused: the queue that was meant would run on, and the answer would say
 * that it is paused. --create takes any name. */
static void
pauses_no_misspelt_queue(void **state)
{
    PGconn *conn = begin("solid_queue");

    (void)state;
    says(1, "pause mials --yes", "--create pauses any other");
    assert_int_equal(pg_int(conn, OWN_PAUSES), 0);
    says(0, "pause mials --create --yes", "1 queue paused");
    assert_int_equal(pg_int(conn, OWN_PAUSES), 1);
    says(0, "pause default --yes", "1 queue paused");
    pg_run(conn, "delete from solid_queue_pauses where queue_name = 'mailers';"
                 "update solid_queue_jobs set finished_at = now() where queue_name = 'mailers'");
    says(0, "pause mailers --yes", "1 queue paused");
    PQfinish(conn);

    conn = begin("good_job");
    says(1, "pause mials --yes", "--create pauses any other");
    assert_int_equal(pg_int(conn, GOOD_PAUSES), 0);
    says(0, "pause mials --create --yes", "1 queue paused");
    assert_int_equal(pg_int(conn, GOOD_PAUSES), 1);
    PQfinish(conn);

    conn = begin("oban");
    says(1, "pause mials --yes", "--create pauses any other");
    says(0, "pause mials --create --yes", "1 queue paused");
    PQfinish(conn);
}

#define OFF_KEYS "select count(*) from good_job_settings where value::text like '%%mials%%'"

/* Otherwise the answer would say "active" of a queue that goes on resting, or "paused" of a
 * schedule that goes on running. */
static void
no_other_verb_takes_a_misspelt_name(void **state)
{
    PGconn *conn = begin("oban");

    (void)state;
    says(1, "resume mials --yes", "--create resumes any other");
    says(0, "resume mials --create --yes", "1 queue active");
    says(0, "resume default --yes", "1 queue active");
    PQfinish(conn);

    conn = begin("good_job");
    says(1, "cron pause mials --yes", "--create takes any other");
    assert_int_equal(pg_int(conn, OFF_KEYS), 0);
    says(0, "cron pause mials --create --yes", "1 schedule paused");
    says(0, "cron resume mials --yes", "1 schedule");
    says(0, "cron pause mials --yes", "1 schedule paused"); /* it was switched on here */
    says(0, "cron pause sweep --yes", "1 schedule paused"); /* it has jobs */
    says(1, "cron pause sweep --yes", "takes only a schedule that is switched on");
    PQfinish(conn);
}

/* Gives back leases by node if the system has nodes, and by job in every system. */
static void
releases(void **state)
{
    PGconn *conn = begin("river");

    (void)state;
    says(0, "release --node host2_2026_11_01 --dry-run", "3 leases, 3 expired");
    says(2, "release --id 5 --node host2 --yes", "say which");
    says(0, "release --id 8 --yes", "1 job retry");
    says(0, "release --node host2_2026_11_01 --yes", "1 job failed, 1 job cancelled");
    assert_string_equal(pg_value(conn, STATES "between 5 and 8"),
                        "5 running,6 discarded,7 cancelled,8 retryable");
    PQfinish(conn);

    conn = begin("tasks_table");
    says(3, "release --node x --yes", "release it by its id (release --id)");
    says(0, "release --id 3,5 --yes", "1 job ready, 1 job left alone: release takes only");
    assert_string_equal(pg_value(conn, "select status from tasks where id = 3"), "pending");
    PQfinish(conn);

    conn = begin("que");
    says(3, "release --node x --expired-only --yes", "can't tell expired leases from others");
    says(1, "terminate nobody --dry-run", "no node is called");
    PQfinish(conn);
}

/* More ids than one batch: page by page, batch by batch, unlocked in between. */
static void
many(void **state)
{
    PGconn *conn = begin("tasks_table");

    (void)state;
    pg_run(conn, "insert into tasks (status, payload) select 'failed', '{}' from "
                 "generate_series(1, 5000)");
    says(0, "requeue --state failed --yes", "5,002 jobs ready; not audited by this system");
    assert_string_equal(pg_value(conn, "select count(*) from tasks where status = 'failed'"), "0");
    pg_run(conn, "insert into tasks (status, payload) select 'failed', '{}' from "
                 "generate_series(1, 100001)");
    says(3, "requeue --state failed --yes", "more than 100000 jobs match");
    assert_string_equal(pg_value(conn, "select count(*) from tasks where status = 'failed'"),
                        "100001");
    PQfinish(conn);
}

/* An act that takes longer than the console waits in silence for an answer. */
static void
a_slow_act_is_not_cancelled(void **state)
{
    PGconn *conn = begin("tasks_table");

    (void)state;
    pg_run(conn, "create function slow() returns trigger language plpgsql as "
                 "$$ begin perform pg_sleep(4); return new; end $$;"
                 "create trigger slow before update on tasks for each row execute function slow()");
    says(0, "release --id 3 --yes", "1 job ready");
    PQfinish(conn);
}

/* A file of the user's own, with ids that are words, a statement that takes longer than the console
 * waits, and an act that the database refuses. */
static void
own_file(void **state)
{
    static const char text[] =
        "-- adapter: shop\n-- title: the shop's outbox\n-- format: 2\n-- schema: public\n"
        "-- id-type: text\n"
        "-- name: detect\nselect 'public' as schema where to_regclass('public.outbox') is not "
        "null\n"
        "-- name: queues\nselect 'mail' as queue, null::boolean as paused from pg_sleep(4)\n"
        "-- name: counts\nselect 'other' as queue, 0::bigint as scheduled, 1::bigint as ready, "
        "0::bigint as retry, 0::bigint as running, 0::bigint as failed, null::bigint as oldest_ms\n"
        "-- name: jobs\n-- params: queue states ids limit cursor\n"
        "select id, 'mail' as queue, '' as kind, 'ready' as state, 0 as tries, 1::bigint as "
        "created_ms, '' as error, id as cursor from {schema}.outbox where $1::text is null or "
        "$2::text[] is null or $3::text[] is null or $4::int is null or $5::text is null\n"
        "-- name: job\n-- params: ids\nselect 1 where $1::text[] is null\n"
        "-- name: requeue\n-- params: ids\n-- official: no\n"
        "update {schema}.outbox set locked = false where id = any($1::text[]) and locked "
        "returning id, 'ready' as state\n"
        "-- name: delete\n-- params: ids\n"
        "delete from {schema}.outbox where id = any($1::text[]) returning id, 'deleted' as state\n";
    char *path = xasprintf("%s/shop.sql", getenv("TMPDIR"));
    char *args;
    FILE *f = fopen(path, "w");

    (void)state;
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("shop"));
    PGconn *conn = pg_connect(dsn);
    pg_run(conn, "create table outbox (id text primary key, locked boolean);"
                 "insert into outbox values ('mail:1', true), ('mail/2', false);"
                 "create table refers (id text references outbox); insert into refers values "
                 "('mail/2')");
    args = xasprintf("--adapter %s queues --csv", path);
    says(0, args, "\nmail,,");
    free(args);
    args = xasprintf("--adapter %s requeue --id mail:1,mail/2 --yes", path);
    says(0, args, "1 job ready, 1 job left alone: its state does not allow this any more");
    assert_string_equal(pg_value(conn, "select count(*) from outbox where locked"), "0");
    free(args);
    args = xasprintf("--adapter %s delete --id mail/2 --yes", path);
    says(5, args, "foreign key");
    free(args);
    remove(path);
    free(path);
    PQfinish(conn);
}

/* The question holds all warnings; the message names what the server does not record. */
static void
asks(void **state)
{
    PGconn *conn = begin("tasks_table");
    const char *verb[] = {getenv("QUEUETOP"), "release", "--id", "3", dsn, NULL};
    const char *console[] = {getenv("QUEUETOP"), dsn, NULL};
    struct vt vt;

    (void)state;
    vt_spawn(&vt, 24, 100, verb, NULL);
    vt_want(&vt, "unofficial: tasks table (Teti) has no call for this");
    vt_want(&vt, "Nothing tells whether its worker is alive");
    vt_want(&vt, "Type 1 to go on:");
    vt_type(&vt, "1\n");
    vt_want(&vt, "1 job ready; not audited by this system");
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);

    vt_spawn(&vt, 24, 100, console, NULL);
    vt_want(&vt, "● live"); /* "tasks" is part of the database's name, too */
    vt_keys(&vt, "2 / text:id:5 enter");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "r");
    vt_want(&vt, "unofficial: tasks table (Teti) has no call for this");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "1 job ready; not audited by this system");
    assert_string_equal(pg_value(conn, "select status from tasks where id = 5"), "pending");
    vt_keys(&vt, "8");
    vt_want(&vt, "requeue by postgres on local/");
    vt_done(&vt);
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks),
        cmocka_unit_test(requeues),
        cmocka_unit_test(changes),
        cmocka_unit_test(waits_for_an_end_that_nobody_knows),
        cmocka_unit_test(waits_without_the_list_of_queues),
        cmocka_unit_test(a_job_that_is_gone_may_have_completed),
        cmocka_unit_test(pauses_no_misspelt_queue),
        cmocka_unit_test(no_other_verb_takes_a_misspelt_name),
        cmocka_unit_test(releases),
        cmocka_unit_test(many),
        cmocka_unit_test(own_file),
        cmocka_unit_test(asks),
        cmocka_unit_test(a_slow_act_is_not_cancelled),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
