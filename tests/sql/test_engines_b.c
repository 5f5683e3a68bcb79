/*
 * Procrastinate, Que, PGQueuer, Delayed Job and django-tasks by their fixtures: every act of the
 * adapters on rows in every state, the guards (who is refused), a second session that holds locks,
 * duplicates, what is written beside the row (events, log) and what is told (NOTIFY).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sql/foreign.h"

static const char *
states(struct foreign *q, const char *ids)
{
    char words[200];

    snprintf(words, sizeof words, "ids=%s", ids);
    return foreign_list(foreign_look(q, SEC_JOBS, words, NULL), "state");
}

/* --- Procrastinate ---------------------------------------------------------------------------- */

static const char *
events(struct foreign *q, int job)
{
    return pg_value(q->conn,
                    "select coalesce(string_agg(type::text, ' ' order by id), '') from "
                    "procrastinate_events where job_id = %d and at > now() - interval '1 min'",
                    job);
}

static void
procrastinate_looks(struct foreign *q)
{
    assert_string_equal(foreign_list(foreign_look(q, SEC_JOBS, NULL), "state"),
                        "cancelled cancelled cancelled completed failed failed failed running "
                        "running running running running retry scheduled ready ready");
    assert_string_equal(foreign_list(foreign_look(q, SEC_JOBS, "states={running}", NULL), "stale"),
                        "f t t t f");
    assert_string_equal(foreign_list(foreign_look(q, SEC_JOBS, "node=2", "limit=1", NULL), "id"),
                        "8");
    assert_string_equal(
        foreign_list(foreign_look(q, SEC_JOBS, "node=2", "limit=1", "cursor=8", NULL), "id"), "6");
    /* none of the first three rows fits: the cursor says where to go on */
    assert_string_equal(
        foreign_list(foreign_look(q, SEC_JOBS, "kind=app.report", "n=3", NULL), "cursor"), "14");
    PGresult *res = foreign_look(q, SEC_COUNTS, NULL);
    assert_string_equal(foreign_cell(res, "mail", "ready"), "2");
    assert_string_equal(foreign_cell(res, "mail", "failed"), "2");
    assert_string_equal(foreign_cell(res, "video", "running"), "5");
    assert_string_equal(foreign_cell(res, "mail", "approx"), "f");
    PQclear(res);
    res = foreign_look(q, SEC_NODES, NULL);
    assert_string_equal(foreign_cell(res, "1", "state"), "up");
    assert_string_equal(foreign_cell(res, "2", "state"), "dead");
    assert_string_equal(foreign_cell(res, "(none)", "running"), "1");
    PQclear(res);
    assert_string_equal(foreign_list(foreign_look(q, SEC_VERSION, NULL), "version"), "3.4");
}

static void
procrastinate_acts(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "procrastinate", NULL);
    procrastinate_looks(&q);
    /* 11 has the queueing lock of 1: the whole batch fails, alone too, the others go through */
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={10,11,12}", NULL), "!23505");
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={11}", NULL), "!23505");
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={1,3,6,10,13,14,99,x}", NULL),
                        "10 ready");
    assert_string_equal(events(&q, 10), "retried scheduled");
    PGconn *other = foreign_join(&q); /* what another one is just changing is not waited for */
    pg_run(other, "begin; select from procrastinate_jobs where id in (6, 8) for update");
    assert_string_equal(foreign_act(&q, SEC_RESCUE, "ids={6}", NULL), "");
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, "node=2", NULL), "");
    pg_run(other, "rollback");
    PQfinish(other);
    assert_string_equal(foreign_act(&q, SEC_RESCUE, "ids={5,6,9,10,11}", NULL), "6 ready");
    assert_string_equal(events(&q, 6), "deferred_for_retry scheduled");
    assert_int_equal(pg_int(q.conn, "select attempts from procrastinate_jobs where id = 6"), 2);
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, "node=1", NULL), "");
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, "node=2", NULL), "8 failed");
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, "node=(none)", NULL), "7 ready");
    assert_string_equal(foreign_act(&q, SEC_PRIORITY, "ids={2,5,10,11}", "n=7", NULL),
                        "2 ready, 10 ready");
    assert_string_equal(foreign_act(&q, SEC_TIME, "ids={2,3,5,11}", "at=2100-01-01 00:00+00", NULL),
                        "2 retry, 3 scheduled");
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={3,5,13}", NULL), "3 deleted, 13 deleted");
    assert_string_equal(pg_value(q.conn, "select count(*) from procrastinate_periodic_defers where "
                                         "job_id is null"),
                        "1");
    foreign_close(&q);
}

static void
procrastinate_cancels(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "procrastinate", NULL);
    PGconn *worker = foreign_join(&q);
    pg_run(worker, "listen \"procrastinate_queue_v1#video\"");
    /* waiting jobs are cancelled, running ones asked; who was asked is not asked again */
    assert_string_equal(foreign_act(&q, SEC_CANCEL, "ids={1,5,9,10,13}", NULL),
                        "1 cancelled, 5 abort requested");
    assert_string_equal(foreign_act(&q, SEC_CANCEL, "ids={1,5}", NULL), "");
    assert_string_equal(states(&q, "{1,5}"), "running cancelled");
    assert_string_equal(events(&q, 5), "abort_requested");
    assert_string_equal(events(&q, 1), "cancelled");
    assert_int_equal(
        pg_int(q.conn, "select abort_requested::int from procrastinate_jobs where id = 1"), 0);
    assert_string_equal(
        foreign_heard(worker),
        "procrastinate_queue_v1#video:{\"type\" : \"abort_job_requested\", \"job_id\" : 5}");
    /* a worker takes the job: the statement waits for the row, and then looks at its new state */
    pg_run(worker, "begin");
    pg_run(worker, "update procrastinate_jobs set status = 'doing' where id = 2");
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={2}", NULL), "!55P03");
    pg_run(worker, "commit");
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={2}", NULL), "");
    PQfinish(worker);
    foreign_close(&q);
}

static void
procrastinate_purges(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "procrastinate", NULL);
    assert_string_equal(foreign_list(foreign_look(&q, SEC_PURGE_PREVIEW, NULL), "n"), "1 1 1 1");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "limit=1", "states={completed}", NULL),
                        "13 purged");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={completed,cancelled}", "queue=video",
                                    "before=2000-01-01", NULL),
                        "");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={cancelled}", NULL),
                        "14 purged, 15 purged, 16 purged");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={failed,ready,running}", NULL),
                        "10 purged, 11 purged, 12 purged");
    /* an older schema has no function for failed jobs; the console refuses by "requires" */
    pg_run(q.conn, "drop function procrastinate_retry_job_v2");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_VERSION, NULL), "version"), "3.2");
    assert_string_equal(adapter_note(q.adapter, SEC_REQUEUE, "requires"), "version >= 3.4");
    pg_run(q.conn, "alter table procrastinate_jobs add result jsonb");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_VERSION, NULL), "version"), "3.5");
    foreign_close(&q);
}

/* --- Que -------------------------------------------------------------------------------------- */

/* A worker: registered, with the locks of some jobs. */
static PGconn *
que_worker(struct foreign *q, const char *ids)
{
    PGconn *worker = foreign_join(q);

    pg_run(worker, "insert into que_lockers values (pg_backend_pid(), 2, '{10,20}', 99, 'web-2', "
                   "'{mail}', true)");
    pg_run(worker, "select pg_advisory_lock(i) from unnest('%s'::bigint[]) i", ids);
    return worker;
}

static void
que_acts(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "que", NULL);
    PGconn *ear = foreign_join(&q), *worker = que_worker(&q, "{1,4,6}");
    pg_run(ear, "listen que_state");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_JOBS, NULL), "state"),
                        "completed completed failed failed ready running scheduled ready running");
    PGresult *res = foreign_look(&q, SEC_COUNTS, NULL);
    assert_string_equal(foreign_cell(res, "mail", "running"), "2");
    assert_string_equal(foreign_cell(res, "mail", "ready"), "1");
    assert_string_equal(foreign_cell(res, "mail", "failed"), "1");
    PQclear(res);
    /* whose lock a worker holds is refused by all acts: 1, 4 and, though expired, 6 */
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={1,2,3,4,5,6,7,8}", NULL),
                        "3 ready, 7 ready");
    assert_string_equal(foreign_heard(ear),
                        "que_state:{\"message_type\" : \"job_change\", \"queue\" : \"mail\", "
                        "\"previous_state\" : \"scheduled\", \"current_state\" : \"ready\", "
                        "\"job_class\" : \"SendMail\"}\nque_state:{\"message_type\" : "
                        "\"job_change\", \"queue\" : \"ma\\u001bil\", \"previous_state\" : "
                        "\"expired\", \"current_state\" : \"errored\", \"job_class\" : "
                        "\"Bad\\u001b]0;title\\u0007\u202eJob\"}");
    assert_string_equal(
        foreign_act(&q, SEC_TIME, "ids={1,4,5,6,8}", "at=2100-01-01 00:00+00", NULL), "5 retry");
    assert_string_equal(foreign_act(&q, SEC_DISCARD, "ids={1,4,5,6,8}", NULL), "5 expired");
    assert_string_equal(foreign_act(&q, SEC_PRIORITY, "ids={1,2,5}", "n=3", NULL), "2 ready");
    assert_string_equal(foreign_act(&q, SEC_PRIORITY, "ids={2}", "n=40000", NULL), "");
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={1,4,6,7}", NULL), "7 deleted");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "before=2100-01-01", "limit=1", NULL),
                        "8 purged");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={failed,completed}", NULL),
                        "5 purged, 6 purged, 9 purged");
    PQfinish(ear);
    PQfinish(worker);
    foreign_close(&q);
}

/* The act's own lock ends with its transaction, also where it was tried only. */
static void
que_locks(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "que", NULL);
    PGconn *other = foreign_join(&q);
    assert_string_equal(foreign_try(&q, SEC_REQUEUE, "ids={6,7}", NULL), "6 ready, 7 ready");
    pg_wait(q.conn, "select count(*) from pg_locks where locktype = 'advisory'", "0", 5000);
    /* two operators: the second finds the job locked, and later finds nothing to do */
    pg_run(other, "begin");
    assert_string_equal(foreign_on(&q, other, SEC_REQUEUE, "ids={6}", NULL), "6 ready");
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={6,7}", NULL), "7 ready");
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={6}", NULL), "");
    pg_run(other, "commit");
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={6}", NULL), "");
    PQfinish(other);
    foreign_close(&q);
}

static void
que_ends_sessions(void **state)
{
    struct foreign q;
    char node[40], wanted[60];

    (void)state;
    foreign_open(&q, "que", NULL);
    PGconn *worker = que_worker(&q, "{1}");
    int pid = PQbackendPID(worker);
    snprintf(node, sizeof node, "node=%d", pid);
    PGresult *res = foreign_look(&q, SEC_NODES, NULL);
    assert_string_equal(foreign_cell(res, node + 5, "state"), "up");
    assert_string_equal(foreign_cell(res, node + 5, "running"), "1");
    assert_string_equal(foreign_cell(res, "2147483000", "state"), "dead");
    PQclear(res);
    assert_string_equal(foreign_list(foreign_look(&q, SEC_LEASES, NULL), "job_ids"), "1");
    /* who lives is not removed, only ended; who is no worker is not ended either */
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, node, NULL), "");
    snprintf(wanted, sizeof wanted, "node=%d", PQbackendPID(q.conn));
    assert_string_equal(foreign_act(&q, SEC_TERMINATE, wanted, NULL), "");
    /* nor who has the pid of one that is gone: it may hold locks, but none of a job */
    PGconn *stranger = que_worker(&q, "{999999}");
    snprintf(wanted, sizeof wanted, "node=%d", PQbackendPID(stranger));
    assert_string_equal(foreign_act(&q, SEC_TERMINATE, wanted, NULL), "");
    pg_run(stranger, "select 1");
    PQfinish(stranger);
    snprintf(wanted, sizeof wanted, "%d terminated", pid);
    assert_string_equal(foreign_act(&q, SEC_TERMINATE, node, NULL), wanted);
    pg_wait(q.conn, "select count(*) from pg_locks where locktype = 'advisory'", "0", 5000);
    snprintf(wanted, sizeof wanted, "select 1 from pg_stat_activity where pid = %d", pid);
    pg_wait(q.conn, wanted, "", 5000); /* it goes after its locks */
    assert_string_equal(states(&q, "{1}"), "ready");
    snprintf(wanted, sizeof wanted, "%d removed", pid);
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, node, NULL), wanted);
    assert_string_equal(adapter_note(q.adapter, SEC_TERMINATE, "dry"), "no");
    assert_string_equal(adapter_note(q.adapter, SEC_TERMINATE, "requires"), "pg_signal_backend");
    PQfinish(worker);
    foreign_close(&q);
}

/* --- PGQueuer --------------------------------------------------------------------------------- */

static const char *
logged(struct foreign *q, const char *prefix)
{
    return pg_value(
        q->conn,
        "select coalesce(string_agg(job_id || ' ' || status, ', ' order by job_id), '') "
        "from %spgqueuer_log where created > now() - interval '1 min' and id > 28",
        prefix);
}

/* With 1.6 the tables may be in any schema, and ids have 8 bytes. The library can't be had from
 * Debian or npm: this is what its notes on releases say. */
static void
open_pgqueuer(struct foreign *q, bool is_newer)
{
    foreign_open(q, "pgqueuer", is_newer ? "work" : "public");
    if (is_newer)
        pg_run(q->conn, "create schema work; "
                        "drop table acme_pgqueuer, acme_pgqueuer_log, acme_pgqueuer_statistics, "
                        "acme_pgqueuer_schedules; "
                        "alter table pgqueuer alter id type bigint; "
                        "alter table pgqueuer_statistics alter id type bigint; "
                        "alter table pgqueuer_schedules alter id type bigint; "
                        "create index pgqueuer_picked_heartbeat_idx on pgqueuer (heartbeat) "
                        "where status = 'picked'; "
                        "alter type pgqueuer_status set schema work; "
                        "alter table pgqueuer set schema work; "
                        "alter table pgqueuer_log set schema work; "
                        "alter table pgqueuer_statistics set schema work; "
                        "alter table pgqueuer_schedules set schema work; "
                        "alter function fn_pgqueuer_changed() set schema work; "
                        "set search_path = work");
    assert_string_equal(foreign_list(foreign_look(q, SEC_DETECT, NULL), "schema"),
                        is_newer ? "work" : "public public/acme_");
    assert_string_equal(foreign_list(foreign_look(q, SEC_VERSION, NULL), "version"),
                        is_newer ? "1.6" : "1.3");
}

static void
act_on_pgqueuer(bool is_newer)
{
    struct foreign q;

    open_pgqueuer(&q, is_newer);
    PGconn *ear = foreign_join(&q);
    pg_run(ear, "listen ch_pgqueuer");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_JOBS, NULL), "state"),
                        "running failed failed running running retry scheduled ready ready");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_JOBS, "states={failed}", NULL), "id"),
                        "8 7 21");
    assert_string_equal(
        foreign_list(foreign_look(&q, SEC_JOBS, "states={failed}", "limit=1", "cursor=q7", NULL),
                     "id"),
        "21");
    /* 8 has the key of 1 */
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={7,8}", NULL), "!23505");
    assert_string_equal(foreign_heard(ear), "");
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={1,3,5,7,20,21}", NULL), "7 ready");
    /* the table's trigger does not notify of an update: the adapter does, once */
    const char *heard = foreign_heard(ear);
    assert_non_null(strstr(heard, "ch_pgqueuer:{\"channel\" : \"ch_pgqueuer\", \"operation\" : "
                                  "\"update\", \"sent_at\" : \"2"));
    assert_non_null(strstr(heard, "\"table\" : \"pgqueuer\", \"type\" : \"table_changed_event\"}"));
    assert_null(strchr(heard, '\n'));
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={7}", NULL), "");
    assert_string_equal(foreign_heard(ear), "");
    assert_string_equal(foreign_act(&q, SEC_RESCUE, "ids={5,6,7}", NULL), "6 ready");
    assert_int_equal(pg_int(q.conn, "select attempts from pgqueuer where id = 6"), 1);
    assert_string_equal(
        foreign_act(&q, SEC_RELEASE_WHERE, "node=11111111-1111-4111-8111-111111111111", NULL), "");
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, "node=(none)", NULL), "9 ready");
    assert_string_equal(logged(&q, ""), "6 queued, 7 queued, 9 queued");
    assert_string_equal(foreign_act(&q, SEC_EXTEND, "ids={5,6}", "by=3 hours", NULL), "5 extended");
    assert_string_equal(pg_value(q.conn, "select ceil(extract(epoch from heartbeat - now()) / 60) "
                                         "from pgqueuer where id = 5"),
                        "180");
    assert_string_equal(foreign_act(&q, SEC_EXTEND, "ids={5}", "by=1 min", NULL), "");
    assert_true(pg_int(q.conn, "select (heartbeat > now() + interval '2 h')::int from pgqueuer "
                               "where id = 5"));
    PQfinish(ear);
    foreign_close(&q);
}

static void
pgqueuer_acts(void **state)
{
    (void)state;
    act_on_pgqueuer(false);
    act_on_pgqueuer(true);
}

static void
end_pgqueuer_jobs(bool is_newer)
{
    struct foreign q;

    open_pgqueuer(&q, is_newer);
    PGconn *ear = foreign_join(&q);
    pg_run(ear, "listen ch_pgqueuer");
    assert_string_equal(foreign_act(&q, SEC_CANCEL, "ids={1,5,20,77}", NULL),
                        "1 cancelled, 5 cancelled");
    const char *heard = foreign_heard(ear);
    assert_non_null(strstr(heard, "\"ids\" : [1, 5], \"sent_at\""));
    assert_non_null(strstr(heard, "\"type\" : \"cancellation_event\"}"));
    assert_non_null(strstr(heard, "\"operation\" : \"delete\""));
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={2,6,7,20}", NULL),
                        "2 deleted, 7 deleted");
    assert_string_equal(logged(&q, ""), "1 canceled, 2 deleted, 5 canceled, 7 deleted");
    assert_string_equal(foreign_act(&q, SEC_PRIORITY, "ids={3,6,8}", "n=9", NULL), "3 scheduled");
    foreign_heard(ear);
    assert_string_equal(foreign_act(&q, SEC_TIME, "ids={3,6,8}", "at=now", NULL), "3 ready");
    assert_non_null(strstr(foreign_heard(ear), "table_changed_event"));
    assert_string_equal(states(&q, "{1,3,20,21}"), "ready cancelled failed completed");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_PURGE_PREVIEW, "states={completed}",
                                                  "before=2100-01-01", NULL),
                                     "n"),
                        "1");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={completed,cancelled}", "limit=100",
                                    "before=2100-01-01", "queue=mail", NULL),
                        "1 purged, 2 purged, 7 purged, 20 purged, 22 purged, 23 purged");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={failed,running}", "limit=1", NULL),
                        "21 purged");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={failed,running}", "limit=1", NULL),
                        "8 purged");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={failed,running}", "limit=1", NULL), "");
    assert_int_equal(pg_int(q.conn, "select count(*) from pgqueuer_log where job_id in (20, 21)"),
                     0);
    PQfinish(ear);
    foreign_close(&q);
}

static void
pgqueuer_ends_jobs(void **state)
{
    (void)state;
    end_pgqueuer_jobs(false);
    end_pgqueuer_jobs(true);
}

/* Ids beyond 4 bytes: looked up, listed from a place on, and changed. */
static void
pgqueuer_has_long_ids(void **state)
{
    struct foreign q;

    (void)state;
    open_pgqueuer(&q, true);
    pg_run(q.conn, "update pgqueuer set id = id + 5000000000; "
                   "update pgqueuer_log set job_id = job_id + 5000000000");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_JOBS, "states={failed}", NULL), "id"),
                        "5000000008 5000000007 5000000021");
    assert_string_equal(
        foreign_list(foreign_look(&q, SEC_JOBS, "cursor=q5000000003", "limit=1", NULL), "id"),
        "5000000002");
    assert_string_equal(
        foreign_list(foreign_look(&q, SEC_JOB, "ids={5000000007}", NULL), "raw_state"), "failed");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_LEASES, "queue=video", NULL), "job_ids"),
                        "5000000006 5000000005");
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={5000000007}", NULL), "5000000007 ready");
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={5000000007}", NULL),
                        "5000000007 deleted");
    foreign_close(&q);
}

/* Two installations in one schema are told apart by the prefix of their names. */
static void
pgqueuer_has_prefixes(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "pgqueuer", "public/acme_");
    PGconn *ear = foreign_join(&q);
    pg_run(ear, "listen acme_ch_pgqueuer");
    pg_run(ear, "listen ch_pgqueuer");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_DETECT, NULL), "schema"),
                        "public public/acme_");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_JOBS, NULL), "queue"),
                        "acme mail acme mail");
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={1,7}", NULL), "1 ready");
    assert_non_null(strstr(foreign_heard(ear), "acme_ch_pgqueuer:{\"channel\" : "
                                               "\"acme_ch_pgqueuer\""));
    assert_string_equal(pg_value(q.conn, "select string_agg(job_id || ' ' || status, ',') from "
                                         "acme_pgqueuer_log"),
                        "1 queued");
    assert_int_equal(pg_int(q.conn, "select count(*) from pgqueuer where status = 'failed'"), 2);
    pg_run(q.conn, "create role acme_only; grant all on all tables in schema public to acme_only;"
                   "revoke all on pgqueuer from acme_only; set role acme_only");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_ROLE, NULL), "role"), "operator");
    pg_run(q.conn, "reset role; revoke all on acme_pgqueuer from acme_only; set role acme_only");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_ROLE, NULL), "why"),
                        "user postgres may not read table acme_pgqueuer: grant select on it");
    PQfinish(ear);
    foreign_close(&q);
}

/* --- Minion: schedules of version 12 ----------------------------------------------------------- */

static void
minion_runs_schedules(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "minion", NULL);
    assert_string_equal(foreign_list(foreign_look(&q, SEC_SCHEDULES, NULL), "name"), "nightly off");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_SCHEDULES, NULL), "state"),
                        "active paused");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_SCHEDULES, NULL), "last_outcome"),
                        "completed NULL");
    assert_string_equal(foreign_act(&q, SEC_CRON_RUN, "schedule=off", NULL), "");
    assert_string_equal(foreign_act(&q, SEC_CRON_RUN, "schedule=nightly", NULL), "nightly run");
    assert_string_equal(pg_value(q.conn, "select name from minion_schedules where next_run <= "
                                         "now() and not paused"),
                        "nightly");
    assert_string_equal(foreign_act(&q, SEC_CRON_RUN, "schedule=nightly", NULL), "");
    assert_string_equal(foreign_act(&q, SEC_CRON_PAUSE, "schedule=nightly", NULL),
                        "nightly paused");
    assert_string_equal(foreign_act(&q, SEC_CRON_RESUME, "schedule=off", NULL), "off resumed");
    assert_string_equal(pg_value(q.conn, "select string_agg(name, ' ') from minion_schedules "
                                         "where paused"),
                        "nightly");
    foreign_close(&q);
}

/* --- Delayed Job ------------------------------------------------------------------------------ */

static void
delayed_job_acts(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "delayed_job", NULL);
    /* wherever the login and the database think they are, times without a zone are UTC */
    pg_run(q.conn, "set timezone = 'Asia/Kolkata'");
    assert_string_equal(foreign_list(foreign_look(&q, SEC_JOBS, NULL), "state"),
                        "blocked failed failed failed running running retry scheduled ready ready");
    PGresult *res = foreign_look(&q, SEC_JOBS, NULL);
    assert_string_equal(foreign_cell(res, "1", "kind"), "NewsletterJob");
    assert_string_equal(foreign_cell(res, "2", "kind"), "User#purge_old!");
    assert_string_equal(foreign_cell(res, "3", "kind"), "ReportJob");
    assert_string_equal(foreign_cell(res, "9", "kind"), "?");
    assert_string_equal(foreign_cell(res, "5", "stale"), "f");
    assert_string_equal(foreign_cell(res, "6", "stale"), "t");
    assert_string_equal(foreign_cell(res, "7", "node"), "NULL");
    PQclear(res);
    res = foreign_look(&q, SEC_JOB, "ids={3}", NULL);
    assert_string_equal(PQgetvalue(res, 0, PQfnumber(res, "payload_format")), "text");
    assert_non_null(
        strstr(PQgetvalue(res, 0, PQfnumber(res, "payload")), "  job_class: ReportJob"));
    PQclear(res);
    /* 7 kept the lock of the worker that gave it up */
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={1,4,5,6,7,10}", NULL),
                        "4 ready, 7 ready, 10 ready");
    assert_string_equal(
        pg_value(q.conn, "select attempts || ' ' || coalesce(locked_by, 'free') || ' ' "
                         "|| (run_at <= timezone('UTC', now()) and run_at > timezone("
                         "'UTC', now()) - interval '1 min') from delayed_jobs where id = 7"),
        "25 free true");
    assert_string_equal(foreign_act(&q, SEC_REQUEUE, "ids={8}", "reset=true", NULL), "8 ready");
    assert_int_equal(pg_int(q.conn, "select attempts from delayed_jobs where id = 8"), 0);
    assert_string_equal(foreign_act(&q, SEC_EXTEND, "ids={1,5}", "by=6 hours", NULL), "5 extended");
    res = foreign_look(&q, SEC_JOBS, "ids={5}", NULL);
    int64_t until = strtoll(foreign_cell(res, "5", "lease_until_ms"), NULL, 10);
    PQclear(res);
    int64_t now = pg_int(q.conn, "select (extract(epoch from now()) * 1000)::bigint");
    assert_in_range(until - now, 6 * 3600 * 1000 - 60000, 6 * 3600 * 1000);
    foreign_close(&q);
}

static void
delayed_job_ends(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "delayed_job", NULL);
    assert_string_equal(
        foreign_act(&q, SEC_RELEASE_WHERE, "node=delayed_job.0 host:web-1 pid:4711", NULL), "");
    assert_string_equal(foreign_try(&q, SEC_RELEASE_WHERE, "node=delayed_job.0 host:web-1 pid:4711",
                                    "expired_only=false", NULL),
                        "5 ready");
    assert_string_equal(
        foreign_act(&q, SEC_RELEASE_WHERE, "node=host:web-2 pid:99999999999999", NULL), "6 ready");
    assert_string_equal(foreign_act(&q, SEC_RESCUE, "ids={5,6,7}", NULL), "5 ready");
    pg_run(q.conn, "update delayed_jobs set locked_at = now(), locked_by = 'w' where id = 5");
    assert_string_equal(foreign_act(&q, SEC_DISCARD, "ids={1,5,7}", NULL), "1 failed");
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={1,5,7}", NULL), "1 deleted, 7 deleted");
    assert_string_equal(foreign_act(&q, SEC_PRIORITY, "ids={2,5,8}", "n=-3", NULL), "2 ready");
    assert_string_equal(foreign_act(&q, SEC_TIME, "ids={2,3,5,8}", "at=2100-01-01 00:00+00", NULL),
                        "2 retry, 3 scheduled");
    assert_string_equal(pg_value(q.conn, "select run_at from delayed_jobs where id = 3"),
                        "2100-01-01 00:00:00");
    assert_string_equal(foreign_act(&q, SEC_PURGE, NULL), "");
    assert_string_equal(
        foreign_act(&q, SEC_PURGE, "states={failed}", "queue=mail", "limit=9", NULL), "8 purged");
    assert_string_equal(
        adapter_note(q.adapter, SEC_RESCUE, "confirm"),
        "there is no heartbeat: if the worker still runs the job, it will run twice");
    foreign_close(&q);
}

/* --- django-tasks ----------------------------------------------------------------------------- */

#define DJ "00000000-0000-4000-8000-00000000000"

static void
django_acts(void **state)
{
    struct foreign q;

    (void)state;
    foreign_open(&q, "django_tasks", NULL);
    assert_string_equal(foreign_list(foreign_look(&q, SEC_JOBS, NULL), "state"),
                        "completed completed failed failed failed running running retry scheduled "
                        "ready ready");
    PGresult *res = foreign_look(&q, SEC_JOBS, "states={running}", NULL);
    assert_string_equal(foreign_cell(res, DJ "5", "node"), "w1");
    assert_string_equal(foreign_cell(res, DJ "6", "node"), "w2");
    assert_string_equal(foreign_cell(res, DJ "6", "stale"), "t");
    assert_string_equal(foreign_cell(res, DJ "5", "run_after_ms"), "NULL");
    char cursor[100];
    snprintf(cursor, sizeof cursor, "cursor=%s", foreign_cell(res, DJ "6", "cursor"));
    PQclear(res);
    assert_string_equal(
        foreign_list(foreign_look(&q, SEC_JOBS, "states={running}", cursor, NULL), "id"), DJ "5");
    res = foreign_look(&q, SEC_GROUPS, NULL);
    assert_string_equal(foreign_cell(res, "smtplib.SMTPException: N is down", "n"), "2");
    PQclear(res);
    assert_string_equal(
        foreign_act(&q, SEC_REQUEUE, "ids={" DJ "1," DJ "5," DJ "7," DJ "a,7}", NULL),
        DJ "7 ready");
    assert_string_equal(
        pg_value(q.conn, "select run_after || traceback || exception_class_path || worker_ids from "
                         "django_tasks_database_dbtaskresult where id = '" DJ "7'"),
        "9999-01-01 00:00:00+00[\"w1\"]");
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, "node=w1", NULL), "");
    assert_string_equal(foreign_try(&q, SEC_RELEASE_WHERE, "node=w1", "expired_only=false", NULL),
                        DJ "5 ready");
    assert_string_equal(foreign_act(&q, SEC_RELEASE_WHERE, "node=w2", NULL), DJ "6 ready");
    assert_string_equal(foreign_try(&q, SEC_RESCUE, "ids={" DJ "5," DJ "6}", NULL), DJ "5 ready");
    assert_string_equal(foreign_act(&q, SEC_DELETE, "ids={" DJ "5," DJ "6}", NULL), DJ "6 deleted");
    assert_string_equal(foreign_act(&q, SEC_PRIORITY, "ids={" DJ "1," DJ "5}", "n=100", NULL),
                        DJ "1 ready");
    assert_string_equal(foreign_act(&q, SEC_PRIORITY, "ids={" DJ "1}", "n=101", NULL), "");
    assert_string_equal(
        foreign_act(&q, SEC_TIME, "ids={" DJ "1," DJ "4," DJ "5}", "at=2100-01-01 00:00+00", NULL),
        DJ "1 scheduled, " DJ "4 retry");
    assert_string_equal(foreign_act(&q, SEC_TIME, "ids={" DJ "1}", "at=infinity", NULL), "");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={completed}", NULL),
                        DJ "a purged, " DJ "b purged");
    assert_string_equal(foreign_act(&q, SEC_PURGE, "states={failed,running}", "queue=mail", NULL),
                        DJ "8 purged");
    assert_string_equal(adapter_note(q.adapter, SEC_REQUEUE, "official"),
                        "no (plain update: ready at once; result and error are cleared, the "
                        "workers' names stay)");
    foreign_close(&q);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(procrastinate_acts),
        cmocka_unit_test(procrastinate_cancels),
        cmocka_unit_test(procrastinate_purges),
        cmocka_unit_test(que_acts),
        cmocka_unit_test(que_locks),
        cmocka_unit_test(que_ends_sessions),
        cmocka_unit_test(pgqueuer_acts),
        cmocka_unit_test(pgqueuer_ends_jobs),
        cmocka_unit_test(pgqueuer_has_prefixes),
        cmocka_unit_test(pgqueuer_has_long_ids),
        cmocka_unit_test(minion_runs_schedules),
        cmocka_unit_test(delayed_job_acts),
        cmocka_unit_test(delayed_job_ends),
        cmocka_unit_test(django_acts),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
