/*
 * The tables of five articles and pgqueue's library, with workers of their kind at work: what each
 * act of the adapters does to the rows, what a worker sees that held the job before, what is left
 * alone; which index answers at many rows; and what the adapters are not mistaken for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sql/articles.h"
#include "tests/sql/ask.h"

#define IDS(id) brace(id)
#define ACT(adapter, section, ...) \
    article_act(c, adapter, section, PARAM_IDS, __VA_ARGS__, PARAM_TOTAL)
#define said(expected, ...) assert_string_equal(__VA_ARGS__, expected)
#define value(expected, ...) assert_string_equal(pg_value(c, __VA_ARGS__), expected)

/* {ID} */
static const char *
brace(const char *id)
{
    static char texts[8][100];
    static unsigned next;
    char *text = texts[next++ % 8];

    snprintf(text, sizeof texts[0], "{%s}", id);
    return text;
}

/* "ID STATE" */
static const char *
one(const char *claim, const char *state)
{
    static char texts[4][120];
    static unsigned next;
    char *text = texts[next++ % 4];

    snprintf(text, sizeof texts[0], "%s %s", article_id(claim), state);
    return text;
}

/* The same of two, in the order of their ids. */
static const char *
two(const char *a, const char *b, const char *state)
{
    static char text[250];
    bool swap = strcmp(a, b) > 0;

    snprintf(text, sizeof text, "%s, %s", one(swap ? b : a, state), one(swap ? a : b, state));
    return text;
}

/* --- pkgsite ---------------------------------------------------------------------------------- */

/* A task that is given back is done anew; what its first worker deletes when it ends is not the new
 * start. */
static void
pkgsite_release_is_fenced(void **state)
{
    static const char *const variants[] = {"queue_tasks_table", "queue_tasks_table+leases",
                                           "queue_tasks_table+priorities"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *q = variants[i];
        char database[40];
        snprintf(database, sizeof database, "fence%d", i);
        PGconn *c = article_new(q, database), *w = article_join(database);
        article_push(c, q, 2);
        const char *a = article_claim(w, q, "");
        said("1", article_id(a));
        said("0 1 0 1 0 0", article_counts(c, q));
        said("1 ready", ACT(q, SEC_RESCUE, "{1,2,3}"));
        said("0 2 0 0 0 0", article_counts(c, q));
        said("", ACT(q, SEC_RESCUE, "{1}"));
        const char *b = article_claim(w, q, "");
        said("1", article_id(b));
        article_done(w, q, a);
        said("running", article_job(c, q, "1", "state"));
        article_done(w, q, b);
        said("gone", article_job(c, q, "1", "state"));
        PQfinish(w);
        PQfinish(c);
    }
}

/* Five minutes, or the lease: till then nobody else gets it, and it can't be deleted. */
static void
pkgsite_stalls(void **state)
{
    const char *q = "queue_tasks_table";
    PGconn *c = article_new(q, "stalls"), *w = article_join("stalls");

    (void)state;
    article_push(c, q, 1);
    article_claim(w, q, "");
    said("", article_claim(c, q, ""));
    said("f", article_job(c, q, "1", "stale"));
    said("", ACT(q, SEC_DELETE, "{1}"));
    article_expire(c, q);
    said("t", article_job(c, q, "1", "stale"));
    said("running", article_job(c, q, "1", "state"));
    pg_run(w, "begin"); /* another takes it */
    said("1", article_id(article_claim(w, q, "")));
    said("", ACT(q, SEC_DELETE, "{1}"));
    pg_run(w, "rollback");
    said("1 deleted", ACT(q, SEC_DELETE, "{1}"));
    said("", article_claim(w, q, ""));
    PQfinish(w);
    PQfinish(c);
}

static void
pkgsite_leases(void **state)
{
    const char *q = "queue_tasks_table+leases";
    PGconn *c = article_new(q, "leases");

    (void)state;
    article_push(c, q, 2);
    article_claim(c, q, "");
    said("1 extended",
         article_act(c, q, SEC_EXTEND, PARAM_IDS, "{1,2}", PARAM_BY, "1 hour", PARAM_TOTAL));
    value("t", "select leased_until between now() + interval '59 min' and now() + interval '1 h' "
               "from queue_tasks where id = 1");
    said("", article_act(c, q, SEC_EXTEND, PARAM_IDS, "{1}", PARAM_BY, "1 s", PARAM_TOTAL));
    value("t", "select leased_until > now() + interval '59 min' from queue_tasks where id = 1");
    said("", article_act(c, q, SEC_EXTEND, PARAM_IDS, "{1}", PARAM_BY, "-1 s", PARAM_TOTAL));
    said("2", article_id(article_claim(c, q, "")));
    said("", article_claim(c, q, "")); /* both are leased */
    article_expire(c, q);
    said("t", article_job(c, q, "1", "stale"));
    said("1 extended",
         article_act(c, q, SEC_EXTEND, PARAM_IDS, "{1}", PARAM_BY, "1 min", PARAM_TOTAL));
    said("2", article_id(article_claim(c, q, ""))); /* 1 has its lease again */
    /* started without a lease: no worker ever takes it, giving back does */
    pg_run(c, "update queue_tasks set leased_until = null where id = 1");
    said("", ACT(q, SEC_DELETE, "{1}"));
    said("1 ready", ACT(q, SEC_RESCUE, "{1}"));
    said("1", article_id(article_claim(c, q, "")));
    PQfinish(c);
}

static void
pkgsite_priorities(void **state)
{
    const char *q = "queue_tasks_table+priorities";
    PGconn *c = article_new(q, "priorities");

    (void)state;
    article_push(c, q, 3);
    said("3 ready", article_act(c, q, SEC_PRIORITY, PARAM_IDS, "{3}", PARAM_N, "7", PARAM_TOTAL));
    said("7", article_job(c, q, "3", "priority"));
    said("3", article_id(article_claim(c, q, "")));
    said("", article_act(c, q, SEC_PRIORITY, PARAM_IDS, "{3}", PARAM_N, "8", PARAM_TOTAL));
    said("1", article_id(article_claim(c, q, "")));
    PQfinish(c);
}

/* A table that keeps its finished tasks: they are not running, and no act makes them run again. */
static void
pkgsite_completed(void **state)
{
    const char *q = "queue_tasks_table+completed";
    PGconn *c = article_new(q, "completed");

    (void)state;
    article_push(c, q, 3);
    article_done(c, q, article_claim(c, q, ""));
    article_claim(c, q, "");
    said("0 1 0 1 0 0", article_counts(c, q));
    said("completed", article_job(c, q, "1", "state"));
    article_expire(c, q);
    said("f", article_job(c, q, "1", "stale"));
    said("t", article_job(c, q, "2", "stale"));
    said("2 ready", ACT(q, SEC_RESCUE, "{1,2,3}"));
    value("1", "select id from queue_tasks where started_at is not null");
    said("", ACT(q, SEC_REQUEUE, "{1}"));
    said("", article_act(c, q, SEC_PURGE, PARAM_BEFORE, "2000-01-01", PARAM_TOTAL));
    said("1 purged", article_act(c, q, SEC_PURGE, PARAM_TOTAL));
    value("2 3", "select string_agg(id::text, ' ' order by id) from queue_tasks");
    PQfinish(c);
}

/* All columns together: each does what it does alone. */
static void
pkgsite_all_columns(void **state)
{
    const char *q = "queue_tasks_table+all";
    PGconn *c = article_new(q, "columns");

    (void)state;
    article_push(c, q, 3);
    said("3 ready", article_act(c, q, SEC_PRIORITY, PARAM_IDS, "{3}", PARAM_N, "7", PARAM_TOTAL));
    said("7", article_job(c, q, "3", "priority"));
    const char *first = article_claim(c, q, "");
    said("3", article_id(first));
    said("3 extended",
         article_act(c, q, SEC_EXTEND, PARAM_IDS, "{1,3}", PARAM_BY, "1 hour", PARAM_TOTAL));
    value("t", "select leased_until > now() + interval '59 min' from queue_tasks where id = 3");
    article_fail(c, q, first);
    said("0 2 0 0 1 0", article_counts(c, q));
    said("it went wrong after 17 s", article_job(c, q, "3", "error"));
    said("", ACT(q, SEC_RESCUE, "{3}"));
    said("3 ready", ACT(q, SEC_REQUEUE, "{1,2,3}"));
    article_done(c, q, article_claim(c, q, ""));
    said("completed", article_job(c, q, "3", "state"));
    article_fail(c, q, article_claim(c, q, ""));
    said("1 purged", article_act(c, q, SEC_PURGE, PARAM_STATES, "{failed,ready}", PARAM_TOTAL));
    said("3 purged", article_act(c, q, SEC_PURGE, PARAM_TOTAL));
    PQfinish(c);
}

/* --- columns that people add ------------------------------------------------------------------ */

/* Whatever the type of a column is, the jobs are read. */
static void
columns_of_any_type(void **state)
{
    static const char *const tables[][2] = {
        {"jobs_table",         "jobs"        },
        {"work_queue_table",   "queues.queue"},
        {"simple_queue_table", "simple_queue"}
    };
    static const char *const columns[] = {"error",        "last_error",   "error_message",
                                          "max_tries",    "max_attempts", "priority",
                                          "completed_at", "updated_at",   "leased_until"};
    static const char *const types[] = {"jsonb", "boolean", "text", "bigint", "timestamptz"};

    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const char *q = tables[i][0], *table = tables[i][1];
        PGconn *c = article_new(q, q);
        article_push(c, q, 3);
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
                pg_run(c, "alter table %s drop column if exists %s, add %s %s", table, columns[k],
                       columns[k], types[t]);
            said("0 3 0 0 0 0", article_counts(c, q));
            said("NULL",
                 article_job(c, q, pg_value(c, "select min(id::text) from %s", table), "priority"));
        }
        PQfinish(c);
    }
}

static void
piechut_more(void **state)
{
    const char *q = "work_queue_table+more";
    PGconn *c = article_new(q, "piechut_more");

    (void)state;
    article_push(c, q, 3);
    pg_run(c, "update queues.queue set max_tries = 7, updated_at = '2026-01-02 UTC'");
    article_schedule(c, q);
    const char *a = article_claim(c, q, "n1"), *b = article_claim(c, q, "n1");
    said("7", article_job(c, q, article_id(a), "max_tries"));
    said("1767312000000", article_job(c, q, article_id(a), "changed_ms"));
    article_fail(c, q, a);
    said("it went wrong after 17 s", article_job(c, q, article_id(a), "error"));
    PGresult *groups = article_ask(c, q, SEC_GROUPS, NULL);
    assert_int_equal(PQntuples(groups), 1);
    said("it went wrong after 17 s", PQgetvalue(groups, 0, PQfnumber(groups, "sample")));
    PQclear(groups);
    /* only what waits outside of work_queue gets another priority */
    said("", ACT(q, SEC_PRIORITY, IDS(article_id(b)), PARAM_N, "5"));
    said(one(a, "ready"), ACT(q, SEC_REQUEUE, IDS(article_id(a))));
    said(one(a, "ready"), ACT(q, SEC_PRIORITY, IDS(article_id(a)), PARAM_N, "5"));
    said("", ACT(q, SEC_PRIORITY, IDS(article_id(a)), PARAM_N, "5"));
    value("5", "select sum(priority) from queues.queue");
    said("5", article_job(c, q, article_id(a), "priority"));
    /* purged by the time of the end */
    article_done(c, q, b);
    pg_run(c, "update queues.queue set created = now() - interval '9 d' where id = '%s'",
           article_id(b));
    said("f", pg_value(c, "select '%s' = 'NULL'", article_job(c, q, article_id(b), "finished_ms")));
    const char *ago = pg_value(c, "select now() - interval '1 d'");
    said("", article_act(c, q, SEC_PURGE, PARAM_BEFORE, ago, PARAM_TOTAL));
    said(one(b, "purged"), article_act(c, q, SEC_PURGE, PARAM_TOTAL));
    PQfinish(c);
}

static void
postqueue_more(void **state)
{
    const char *q = "jobs_table+more";
    PGconn *c = article_new(q, "postqueue_more");

    (void)state;
    article_push(c, q, 2);
    pg_run(c, "update jobs set max_attempts = 1, updated_at = '2026-01-02 UTC'");
    said("1767312000000", article_job(c, q, "j1", "changed_ms"));
    said("j2 ready", ACT(q, SEC_PRIORITY, "{j2}", PARAM_N, "-3"));
    said("", ACT(q, SEC_PRIORITY, "{j2}", PARAM_N, "-3"));
    value("-3", "select sum(priority) from jobs");
    said("-3", article_job(c, q, "j2", "priority"));
    said("j1", article_id(article_claim(c, q, "")));
    said("", ACT(q, SEC_PRIORITY, "{j1}", PARAM_N, "1"));
    said("1", article_job(c, q, "j1", "max_tries"));
    article_fail(c, q, "j1");
    said("0 1 0 0 1 0", article_counts(c, q));
    said("it went wrong after 17 s", article_job(c, q, "j1", "error"));
    said("j1 ready", ACT(q, SEC_REQUEUE, "{j1}"));
    value("0", "select attempts from jobs where id = 'j1'");
    said("j1", article_id(article_claim(c, q, "")));
    article_done(c, q, "j1");
    said("f", pg_value(c, "select '%s' = 'NULL'", article_job(c, q, "j1", "finished_ms")));
    /* the lease of ten minutes no longer matters: it has ended now */
    said("j1 purged", article_act(c, q, SEC_PURGE, PARAM_TOTAL));
    PQfinish(c);
}

static void
blabosoft_more(void **state)
{
    const char *q = "simple_queue_table+more", *first = "00000000-0000-4000-8000-000000000001";
    PGconn *c = article_new(q, "blabosoft_more");

    (void)state;
    article_push(c, q, 3);
    pg_run(c, "update simple_queue set max_attempts = '9', attempts = 2, updated_at = "
              "'2026-01-02 UTC'");
    said("1767312000000", article_job(c, q, first, "changed_ms"));
    said("2", article_job(c, q, first, "tries"));
    said("9", article_job(c, q, first, "max_tries"));
    const char *a = article_claim(c, q, "");
    said("1", article_job(c, q, first, "tries")); /* attempts counts the try that runs */
    said("", ACT(q, SEC_PRIORITY, IDS(first), PARAM_N, "4"));
    said(one(a, "extended"), ACT(q, SEC_EXTEND, IDS(first), PARAM_BY, "1 hour"));
    said("", ACT(q, SEC_EXTEND, IDS(first), PARAM_BY, "1 s"));
    value("t", "select leased_until > timezone('UTC', now()) + interval '59 min' from simple_queue "
               "where id = '00000000-0000-4000-8000-000000000001'");
    said("f", article_job(c, q, first, "stale"));
    pg_run(c, "update simple_queue set leased_until = timezone('UTC', now()) - interval '1 s'");
    said("t", article_job(c, q, first, "stale"));
    /* what is done neither runs nor is given back, and stays until it is purged */
    article_done(c, q, a);
    said("0 2 0 0 0 0", article_counts(c, q));
    said("completed", article_job(c, q, first, "state"));
    said("", ACT(q, SEC_RESCUE, IDS(first)));
    said("", ACT(q, SEC_REQUEUE, IDS(first)));
    const char *b = article_claim(c, q, "");
    article_fail(c, q, b);
    said(one(b, "ready"), ACT(q, SEC_REQUEUE, IDS(article_id(b))));
    said(one(b, "ready"), ACT(q, SEC_PRIORITY, IDS(article_id(b)), PARAM_N, "4"));
    said("4", article_job(c, q, article_id(b), "priority"));
    said("", article_act(c, q, SEC_PURGE, PARAM_STATES, "{failed,ready}", PARAM_TOTAL));
    said(one(a, "purged"), article_act(c, q, SEC_PURGE, PARAM_TOTAL));
    /* one that is popped again after its end runs */
    article_claim(c, q, "");
    pg_run(c, "update simple_queue set completed_at = processing_started_at - interval '1 s'");
    said("0 1 0 1 0 0", article_counts(c, q));
    PQfinish(c);
}

/* --- PostQueue -------------------------------------------------------------------------------- */

/* A job has four attempts. A requeue gives one more, or all of them. */
static void
postqueue_attempts(void **state)
{
    const char *q = "jobs_table";
    PGconn *c = article_new(q, "attempts");

    (void)state;
    article_push(c, q, 1);
    for (int i = 0; i < 4; i++) {
        char ended[4];
        snprintf(ended, sizeof ended, "%d", i);
        said("j1", article_id(article_claim(c, q, "")));
        said(ended, article_job(c, q, "j1", "tries")); /* attempts counts the try that runs */
        said("", article_claim(c, q, ""));
        said("0 0 0 1 0 0", article_counts(c, q));
        article_expire(c, q);
    }
    said("", article_claim(c, q, ""));
    said("0 0 0 0 1 0", article_counts(c, q));
    said("no attempts left", article_job(c, q, "j1", "error"));
    said("j1 ready", ACT(q, SEC_REQUEUE, "{j1,j2}"));
    said("", ACT(q, SEC_REQUEUE, "{j1}"));
    said("j1", article_id(article_claim(c, q, "")));
    article_fail(c, q, "j1");
    said("failed", article_job(c, q, "j1", "state")); /* that was the one */
    said("j1 ready", ACT(q, SEC_REQUEUE, "{j1}", PARAM_RESET, "true"));
    value("0", "select attempts from jobs");
    article_claim(c, q, "");
    article_done(c, q, "j1");
    said("", ACT(q, SEC_REQUEUE, "{j1}"));
    said("completed", article_job(c, q, "j1", "state"));
    pg_run(c, "update jobs set status = 'in_transit', visibility_at = null where id = 'j1'");
    said("in_transit", article_job(c, q, "j1", "raw_state"));
    PQfinish(c);
}

static void
postqueue_visibility(void **state)
{
    const char *q = "jobs_table";
    PGconn *c = article_new(q, "visible"), *w = article_join("visible");

    (void)state;
    article_push(c, q, 2);
    const char *a = article_claim(w, q, "");
    said("", ACT(q, SEC_DELETE, "{j1}"));
    said("j1 extended",
         article_act(c, q, SEC_EXTEND, PARAM_IDS, "{j1,j2}", PARAM_BY, "1 hour", PARAM_TOTAL));
    value("t", "select visibility_at > now() + interval '59 min' from jobs where id = 'j1'");
    said("running", article_job(c, q, "j1", "state")); /* although its status is "pending" now */
    pg_run(c, "update jobs set status = 'in_transit' where id = 'j1'");
    said("", article_act(c, q, SEC_EXTEND, PARAM_IDS, "{j1}", PARAM_BY, "30 s", PARAM_TOTAL));
    value("in_transit", "select status from jobs where id = 'j1'"); /* nothing has changed */
    said("j2", article_id(article_claim(w, q, "")));
    said("", article_claim(w, q, ""));
    said("j1 ready", ACT(q, SEC_RESCUE, "{j1}"));
    said("j1", article_id(article_claim(c, q, "")));
    article_done(w, q, a); /* by its id alone: as the confirmation says */
    said("completed", article_job(c, q, "j1", "state"));
    article_expire(c, q); /* j2 was taken and its time is over: the next may take it */
    said("running", article_job(c, q, "j2", "state"));
    said("t", article_job(c, q, "j2", "stale"));
    said("j2 extended",
         article_act(c, q, SEC_EXTEND, PARAM_IDS, "{j2}", PARAM_BY, "1 min", PARAM_TOTAL));
    said("", article_claim(c, q, ""));
    PQfinish(w);
    PQfinish(c);
}

static void
postqueue_times(void **state)
{
    const char *q = "jobs_table";
    PGconn *c = article_new(q, "times");

    (void)state;
    article_push(c, q, 3);
    said("j1 scheduled",
         article_act(c, q, SEC_TIME, PARAM_IDS, "{j1}", PARAM_AT, "2100-01-01", PARAM_TOTAL));
    said("1 2 0 0 0 0", article_counts(c, q));
    said("j2", article_id(article_claim(c, q, "")));
    said("", article_act(c, q, SEC_TIME, PARAM_IDS, "{j2}", PARAM_AT, "2100-01-01", PARAM_TOTAL));
    pg_run(c, "update jobs set expires_at = now() + interval '1 h' where id = 'j3'");
    said("", article_act(c, q, SEC_TIME, PARAM_IDS, "{j3}", PARAM_AT, "2100-01-01", PARAM_TOTAL));
    said("j1 ready", ACT(q, SEC_REQUEUE, "{j1}"));
    said("j1", article_id(article_claim(c, q, "")));
    pg_run(c, "update jobs set expires_at = now() where id = 'j3'");
    said("", article_claim(c, q, ""));
    said("expired before it was done", article_job(c, q, "j3", "error"));
    said("j3 ready", ACT(q, SEC_REQUEUE, "{j3}"));
    said("j3", article_id(article_claim(c, q, "")));
    /* completed ones by when their lease ended; failed ones only where asked for */
    article_done(c, q, "j3");
    said("", article_act(c, q, SEC_PURGE, PARAM_TOTAL));
    article_expire(c, q);
    pg_run(c, "update jobs set attempts = 4 where id = 'j1'");
    said("j3 purged", article_act(c, q, SEC_PURGE, PARAM_QUEUE, "q", PARAM_TOTAL));
    said("", article_act(c, q, SEC_PURGE, PARAM_QUEUE, "r", PARAM_STATES, "{failed}", PARAM_TOTAL));
    said("j1 purged",
         article_act(c, q, SEC_PURGE, PARAM_STATES, "{failed}", PARAM_LIMIT, "5", PARAM_TOTAL));
    value("j2", "select string_agg(id, ' ') from jobs");
    PQfinish(c);
}

/* --- Piechut, and the library ----------------------------------------------------------------- */

/* A node's locks: extended, given back one by one or all of them, stolen when they are over. */
static void
work_queue_locks(void **state)
{
    static const char *const both[] = {"work_queue_table", "pgqueue_lib"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *q = both[i];
        char database[40];
        snprintf(database, sizeof database, "locks%d", i);
        PGconn *c = article_new(q, database), *w = article_join(database);
        article_push(c, q, 3);
        said("0 3 0 0 0 0", article_counts(c, q));
        article_schedule(w, q);
        const char *a = article_claim(w, q, "n1"), *b = article_claim(w, q, "n1");
        said("0 1 0 2 0 0", article_counts(c, q));
        said("n1", article_job(c, q, article_id(a), "node"));
        said(one(a, "extended"), ACT(q, SEC_EXTEND, IDS(article_id(a)), PARAM_BY, "1 hour"));
        value("t",
              "select lock_timeout > now() + interval '59 min' from queues.work_queue where id = "
              "'%s'",
              article_id(a));
        said("", ACT(q, SEC_EXTEND, IDS(article_id(a)), PARAM_BY, "1 s"));
        value("t",
              "select lock_timeout > now() + interval '59 min' from queues.work_queue where id = "
              "'%s'",
              article_id(a));
        said("", ACT(q, SEC_DELETE, IDS(article_id(a))));
        said("", ACT(q, SEC_REQUEUE, IDS(article_id(a))));
        said(two(a, b, "extended"), article_act(c, q, SEC_EXTEND_WHERE, PARAM_NODE, "n1", PARAM_BY,
                                                "2 hours", PARAM_TOTAL));
        said("", article_act(c, q, SEC_EXTEND_WHERE, PARAM_NODE, "n2", PARAM_BY, "2 hours",
                             PARAM_TOTAL));
        value("2", "select count(*) from queues.work_queue where lock_timeout > now() + interval "
                   "'119 min'");
        /* only what is over, unless all is asked for */
        pg_run(c,
               "update queues.work_queue set lock_timeout = now() - interval '1 s' where id = '%s'",
               article_id(b));
        said("t", article_job(c, q, article_id(b), "stale"));
        said(one(b, "ready"), article_act(c, q, SEC_RELEASE_WHERE, PARAM_NODE, "n1", PARAM_TOTAL));
        said("", article_act(c, q, SEC_RELEASE_WHERE, PARAM_NODE, "n2", PARAM_EXPIRED_ONLY, "false",
                             PARAM_TOTAL));
        said(article_id(b), article_id(article_claim(c, q, "n2")));
        said(one(a, "ready"), article_act(c, q, SEC_RELEASE_WHERE, PARAM_NODE, "n1",
                                          PARAM_EXPIRED_ONLY, "false", PARAM_TOTAL));
        value("0", "select count(*) from queues.work_queue where lock_key = 'n1'");
        PQfinish(w);
        PQfinish(c);
    }
}

/* One job of a node given back, one whose time is over taken by another; its old holder ends it all
 * the same. */
static void
work_queue_steals(void **state)
{
    static const char *const both[] = {"work_queue_table", "pgqueue_lib"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *q = both[i];
        char database[40];
        snprintf(database, sizeof database, "steals%d", i);
        PGconn *c = article_new(q, database), *w = article_join(database);
        article_push(c, q, 2);
        article_schedule(w, q);
        const char *b = article_claim(c, q, "n2"), *a = article_claim(w, q, "n1");
        /* one that was given back by hand has another version: an old holder's extension by (id,
         * version) comes too late */
        said(one(a, "ready"), ACT(q, SEC_RESCUE, IDS(article_id(a))));
        value("0", "select count(*) from queues.work_queue where id = '%s' and version = %s",
              article_id(a), strchr(a, '|') + 1);
        said("", ACT(q, SEC_RESCUE, IDS(article_id(a))));
        /* stolen once it is over */
        article_expire(c, q);
        pg_run(c, "update queues.work_queue set created = created - interval '1 h' where id = '%s'",
               article_id(b));
        said(article_id(b), article_id(article_claim(w, q, "n1")));
        article_done(c, q, b); /* the late end of n2, by its id alone */
        value("0", "select count(*) from queues.work_queue where id = '%s'", article_id(b));
        PQfinish(w);
        PQfinish(c);
    }
}

/* A job that is RUNNING without a lease: requeue makes it whole. Jobs that the scheduler is working
 * on are left alone. */
static void
work_queue_orphans(void **state)
{
    static const char *const both[] = {"work_queue_table", "pgqueue_lib"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *q = both[i];
        char database[40];
        snprintf(database, sizeof database, "orphans%d", i);
        PGconn *c = article_new(q, database), *w = article_join(database);
        article_push(c, q, 1);
        article_schedule(w, q);
        const char *a = article_claim(w, q, "n1"), *id = article_id(a);
        pg_run(w, "delete from queues.work_queue"); /* and then the worker died */
        said("0 0 0 0 0 1", article_counts(c, q));
        said("t", article_job(c, q, id, "stale"));
        article_schedule(w, q);
        said("", article_claim(w, q, "n1")); /* nobody takes it */
        said("",
             article_act(c, q, SEC_TIME, PARAM_IDS, IDS(id), PARAM_AT, "2100-01-01", PARAM_TOTAL));
        said(one(a, "ready"), ACT(q, SEC_REQUEUE, IDS(id)));
        said(one(a, "scheduled"),
             article_act(c, q, SEC_TIME, PARAM_IDS, IDS(id), PARAM_AT, "2100-01-01", PARAM_TOTAL));
        article_schedule(w, q);
        said("1 0 0 0 0 0", article_counts(c, q));
        said(one(a, "ready"), ACT(q, SEC_REQUEUE, IDS(id)));
        pg_run(w, "begin");
        article_schedule(w, q); /* has the row locked */
        said("", ACT(q, SEC_DELETE, IDS(id)));
        said("",
             article_act(c, q, SEC_TIME, PARAM_IDS, IDS(id), PARAM_AT, "2100-01-01", PARAM_TOTAL));
        pg_run(w, "commit");
        said("",
             article_act(c, q, SEC_TIME, PARAM_IDS, IDS(id), PARAM_AT, "2100-01-01", PARAM_TOTAL));
        const char *b = article_claim(w, q, "n1");
        said(id, article_id(b));
        article_fail(w, q, b);
        said("0 0 0 0 1 0", article_counts(c, q));
        said(one(a, "ready"), ACT(q, SEC_REQUEUE, IDS(id)));
        article_schedule(w, q);
        said("ready", article_job(c, q, id, "state"));
        pg_run(w, "begin");
        said(id, article_id(article_claim(w, q, "n1"))); /* a claim is on its way */
        said("", ACT(q, SEC_DELETE, IDS(id)));
        pg_run(w, "commit");
        article_expire(c, q);
        said(one(a, "deleted"), ACT(q, SEC_DELETE, IDS(id)));
        value("0 0", "select (select count(*) from queues.queue) || ' ' || (select count(*) from "
                     "queues.work_queue)");
        PQfinish(w);
        PQfinish(c);
    }
}

/* What is kept is purged by when it was pushed; other words for "finished" count as well. */
static void
piechut_finished(void **state)
{
    const char *q = "work_queue_table";
    PGconn *c = article_new(q, "finished");

    (void)state;
    article_push(c, q, 6);
    article_schedule(c, q);
    for (int i = 0; i < 3; i++)
        article_done(c, q, article_claim(c, q, "n1"));
    article_fail(c, q, article_claim(c, q, "n1"));
    const char *held = article_claim(c, q, "n1");
    pg_run(c,
           "update queues.queue set state = 'DONE', created = now() - interval '2 days' where id "
           "= (select id from queues.queue where state = 'COMPLETED' order by id limit 1)");
    said("0 1 0 1 1 0", article_counts(c, q));
    said("", article_act(c, q, SEC_PURGE, PARAM_QUEUE, "other", PARAM_TOTAL));
    pg_run(c, "update queues.queue set state = 'COMPLETED' where id = '%s'", article_id(held));
    assert_int_equal(strspn(article_act(c, q, SEC_PURGE, PARAM_BEFORE, "yesterday", PARAM_TOTAL),
                            "0123456789abcdef-"),
                     36);
    value("0 2",
          "select count(*) filter (where state = 'DONE') || ' ' || count(*) filter (where "
          "state = 'COMPLETED' and id <> '%s') from queues.queue",
          article_id(held));
    article_act(c, q, SEC_PURGE, PARAM_TOTAL);
    value("COMPLETED FAILED RUNNING", "select string_agg(state, ' ' order by state) from "
                                      "queues.queue"); /* what a node holds stays */
    article_act(c, q, SEC_PURGE, PARAM_STATES, "{failed}", PARAM_TOTAL);
    value("COMPLETED RUNNING", "select string_agg(state, ' ' order by state) from queues.queue");
    pg_run(c, "update queues.queue set state = 'PARKED'; delete from queues.work_queue");
    said("0 0 0 0 0 2", article_counts(c, q));
    PQfinish(c);
}

/* What ended is in the history: a failed job comes back whole, unless a live one has its key. */
static void
library_history(void **state)
{
    const char *q = "pgqueue_lib";
    PGconn *c = article_new(q, "history");

    (void)state;
    article_push(c, q, 2);
    article_schedule(c, q);
    const char *a = article_claim(c, q, "n1"), *b = article_claim(c, q, "n1"), *id = article_id(a);
    pg_run(c,
           "update queues.queue set tries = 5, created = created - interval '1 h' where id = '%s'",
           id);
    const char *was = pg_value(c,
                               "select md5(row(tenant_id, id, key, type, queue, created, tries, "
                               "target)::text) from queues.queue where id = '%s'",
                               id);
    article_fail(c, q, a);
    article_done(c, q, b);
    said("0 0 0 0 1 0", article_counts(c, q));
    said("completed", article_job(c, q, article_id(b), "state"));
    said("no answer from 10.0.0.1", article_job(c, q, id, "error"));
    pg_run(c, "insert into queues.queue (tenant_id, id, created, key, type, queue, state) values "
              "('t1', gen_random_uuid(), now(), 'k1', 'HTTP', 'q', 'PENDING')");
    said("", ACT(q, SEC_REQUEUE, IDS(id))); /* its key is taken */
    pg_run(c, "delete from queues.queue");
    said("", ACT(q, SEC_REQUEUE, IDS(article_id(b))));
    said(one(a, "ready"), ACT(q, SEC_REQUEUE, IDS(id)));
    value(was,
          "select md5(row(tenant_id, id, key, type, queue, created, tries, target)::text) from "
          "queues.queue where id = '%s'",
          id);
    value("COMPLETED", "select string_agg(state, ',') from queues.queue_history");
    article_schedule(c, q);
    article_fail(c, q, article_claim(c, q, "n1"));
    said(one(a, "ready"), ACT(q, SEC_REQUEUE, IDS(id), PARAM_RESET, "true"));
    value("0", "select tries from queues.queue");
    said("", article_act(c, q, SEC_PURGE, PARAM_BEFORE, "2000-01-01", PARAM_TOTAL));
    said(one(b, "purged"), article_act(c, q, SEC_PURGE, PARAM_QUEUE, "q", PARAM_TOTAL));
    PQfinish(c);
}

/* A paused schedule is what the library's runner passes over; row security hides others' tenants.
 */
static void
library_schedules_and_tenants(void **state)
{
    const char *q = "pgqueue_lib";
    const char *runnable =
        "select count(*) from queues.schedules where next_run <= now() and paused is not true";
    PGconn *c = article_new(q, "tenants");

    (void)state;
    pg_run(c, "insert into queues.schedules (id, tenant_id, queue, type, key, next_run, schedule, "
              "timezone) values "
              "(gen_random_uuid(), 't1', 'q', 'HTTP', 'nightly', now() + interval '1 h', '0 3 * * "
              "*', 'UTC')");
    value("0", "%s", runnable);
    said("t1/nightly run",
         article_act(c, q, SEC_CRON_RUN, PARAM_SCHEDULE, "t1/nightly", PARAM_TOTAL));
    value("1", "%s", runnable);
    said("t1/nightly paused",
         article_act(c, q, SEC_CRON_PAUSE, PARAM_SCHEDULE, "t1/nightly", PARAM_TOTAL));
    said("", article_act(c, q, SEC_CRON_PAUSE, PARAM_SCHEDULE, "t1/nightly", PARAM_TOTAL));
    said("", article_act(c, q, SEC_CRON_RUN, PARAM_SCHEDULE, "t1/nightly", PARAM_TOTAL));
    value("0", "%s", runnable);
    said("t1/nightly resumed",
         article_act(c, q, SEC_CRON_RESUME, PARAM_SCHEDULE, "t1/nightly", PARAM_TOTAL));
    value("1", "%s", runnable);
    said("t1/nightly removed",
         article_act(c, q, SEC_CRON_REMOVE, PARAM_SCHEDULE, "t1/nightly", PARAM_TOTAL));

    article_push(c, q, 4);
    pg_run(c, "do $$ begin create role tenant; exception when duplicate_object then null; end $$;"
              "grant usage on schema queues to tenant; grant all on all tables in schema queues to "
              "tenant; set role tenant");
    said("0 0 0 0 0 0", article_counts(c, q));
    pg_run(c, "set pgqueue.current_tenant = 't1'");
    said("0 2 0 0 0 0", article_counts(c, q));
    pg_run(
        c,
        "reset role; grant queue_worker to tenant; set role tenant; reset pgqueue.current_tenant");
    said("0 4 0 0 0 0", article_counts(c, q));
    PQfinish(c);
}

/* --- Teti ------------------------------------------------------------------------------------- */

/* A worker that works in the transaction of its claim: its task reads as waiting, and is left
 * alone. */
static void
teti_in_one_transaction(void **state)
{
    const char *q = "tasks_table";
    PGconn *c = article_new(q, "inone"), *w = article_join("inone");

    (void)state;
    article_push(c, q, 2);
    pg_run(w, "begin");
    const char *a = article_claim(w, q, "");
    said("0 2 0 0 0 0", article_counts(c, q));
    said("2 deleted", ACT(q, SEC_DELETE, "{1,2}"));
    said("", ACT(q, SEC_DISCARD, "{1}"));
    PQfinish(w); /* it dies: the task is there again */
    w = article_join("inone");
    pg_wait(c, "select count(*) from (select from tasks for update skip locked) x", "1", 5000);
    pg_run(w, "begin");
    said("1", article_id(article_claim(w, q, "")));
    article_done(w, q, a);
    pg_run(w, "commit");
    said("completed", article_job(c, q, "1", "state"));
    said("", article_claim(w, q, ""));
    PQfinish(w);
    PQfinish(c);
}

/* One that commits its claim first: only the operator gives the task back. */
static void
teti_committed(void **state)
{
    const char *q = "tasks_table";
    PGconn *c = article_new(q, "committed"), *w = article_join("committed");

    (void)state;
    article_push(c, q, 4);
    const char *a = article_claim(w, q, ""), *b = article_claim(w, q, "");
    said("0 2 0 2 0 0", article_counts(c, q));
    said("", ACT(q, SEC_DELETE, "{1,2}"));
    pg_run(w,
           "begin; select from tasks where id = 2 for update"); /* about to say that it is done */
    said("1 ready", ACT(q, SEC_RESCUE, "{1,2,3}"));
    article_done(w, q, b);
    pg_run(w, "commit");
    said("", ACT(q, SEC_RESCUE, "{2}"));
    said("1", article_id(article_claim(w, q, "")));
    for (int i = 0; i < 5; i++)
        article_fail(w, q, a);
    said("5", article_job(c, q, "1", "tries"));
    said("1 ready", ACT(q, SEC_REQUEUE, "{1,2,3,4}"));
    said("5", article_job(c, q, "1", "tries"));
    said("3 failed", ACT(q, SEC_DISCARD, "{2,3}"));
    said("0 2 0 0 1 0", article_counts(c, q));
    said("", article_act(c, q, SEC_PURGE, PARAM_BEFORE, "2000-01-01", PARAM_TOTAL));
    said("2 purged", article_act(c, q, SEC_PURGE, PARAM_TOTAL));
    said("3 purged", article_act(c, q, SEC_PURGE, PARAM_STATES, "{failed,ready}", PARAM_TOTAL));
    value("1 4", "select string_agg(id::text, ' ' order by id) from tasks");
    /* other columns that the article suggests, and other words for "finished" */
    pg_run(c, "alter table tasks add priority int, add error_message text; update tasks set status "
              "= 'failed', error_message = 'no route' where id = 4");
    said("no route", article_job(c, q, "4", "error"));
    said("4 ready", ACT(q, SEC_REQUEUE, "{4}"));
    said("4 ready", article_act(c, q, SEC_PRIORITY, PARAM_IDS, "{4}", PARAM_N, "3", PARAM_TOTAL));
    said("3", article_job(c, q, "4", "priority"));
    pg_run(c, "insert into tasks (status, payload) values ('done', '{}'), ('error', '{}')");
    said("0 2 0 0 1 0", article_counts(c, q));
    pg_run(c, "delete from tasks where status in ('done', 'error')");
    /* nobody says of which types these columns are */
    pg_run(c, "alter table tasks alter retry_count drop default, alter retry_count type text using "
              "'many', "
              "alter priority type text using 'high', alter error_message type jsonb using '{}'");
    said("0", article_job(c, q, "1", "tries"));
    said("NULL", article_job(c, q, "1", "priority"));
    said("0 2 0 0 0 0", article_counts(c, q));
    /* the column of retries is not everybody's */
    pg_run(c, "alter table tasks drop retry_count, drop priority, drop error_message");
    said("0", article_job(c, q, "1", "tries"));
    said("0 2 0 0 0 0", article_counts(c, q));
    PQfinish(w);
    PQfinish(c);
}

/* A task without a status may run: nothing says that it is done. */
static void
teti_without_status(void **state)
{
    const char *q = "tasks_table";
    PGconn *c = article_new(q, "nostatus");

    (void)state;
    article_push(c, q, 2);
    pg_run(c,
           "alter table tasks alter status drop not null; update tasks set status = case id when "
           "1 then null else 'on_hold' end");
    said("blocked", article_job(c, q, "1", "state"));
    said("", article_act(c, q, SEC_PURGE, PARAM_STATES, "{completed,cancelled,failed,blocked}",
                         PARAM_TOTAL));
    said("2 deleted", ACT(q, SEC_DELETE, "{1,2}"));
    PQfinish(c);
}

/* --- BlaboSoft -------------------------------------------------------------------------------- */

#define U(n) "00000000-0000-4000-8000-00000000000" #n

static void
blabosoft_items(void **state)
{
    const char *q = "simple_queue_table";
    PGconn *c = article_new(q, "items"), *w = article_join("items");

    (void)state;
    article_push(c, q, 3);
    said(U(1), article_id(article_claim(w, q, "")));
    said(U(2), article_id(article_claim(w, q, "")));
    said("0 1 0 2 0 0", article_counts(c, q));
    /* a worker that keeps its row locked while it works */
    pg_run(w, "begin; select from simple_queue where id = '" U(1) "' for update");
    said(U(2) " ready", ACT(q, SEC_RESCUE, "{" U(1) "," U(2) "," U(3) "}"));
    said("", ACT(q, SEC_RESCUE, "{" U(1) "}"));
    article_fail(w, q, U(1));
    pg_run(w, "commit");
    said("it went wrong after 17 s", article_job(c, q, U(1), "error"));
    said("", ACT(q, SEC_RESCUE, "{" U(1) "}"));
    said(U(1) " ready", ACT(q, SEC_REQUEUE, "{" U(1) "," U(2) "}"));
    said(U(1), article_id(article_claim(w, q, "")));
    said("running", article_job(c, q, U(1), "state")); /* nothing of its first failure is left */
    said("", ACT(q, SEC_DELETE, "{" U(1) "}"));
    article_done(w, q, U(1));
    pg_run(w, "begin");
    said(U(2), article_id(article_claim(w, q, "")));
    said("", ACT(q, SEC_DELETE, "{" U(2) "}")); /* being popped */
    pg_run(w, "rollback");
    said(U(2) " deleted, " U(3) " deleted", ACT(q, SEC_DELETE, "{" U(1) "," U(2) "," U(3) "}"));
    PQfinish(w);
    PQfinish(c);
}

/* The times are UTC, whatever zone the session has. */
static void
blabosoft_zone(void **state)
{
    const char *q = "simple_queue_table";
    PGconn *c = article_new(q, "zone");

    (void)state;
    pg_run(c, "set timezone = 'Asia/Tokyo'");
    article_push(c, q, 1);
    article_claim(c, q, "");
    value("t", "select abs(%s / 1000 - extract(epoch from now())) < 60",
          article_job(c, q, U(1), "started_ms"));
    said("f", article_job(c, q, U(1), "stale"));
    PQfinish(c);
}

/* --- what it costs ---------------------------------------------------------------------------- */

static const char *const names[] = {"queue_tasks_table", "jobs_table",         "work_queue_table",
                                    "tasks_table",       "simple_queue_table", "pgqueue_lib"};
enum { NAMES = sizeof names / sizeof *names };

/* A large table is scanned in order only directly below a Limit, or with a `cost` note. */
static void
check_plan(PGconn *c, const char *adapter, enum section_id s, const struct params *p,
           const char *table)
{
    struct adapter *a = ask_adapter(adapter, NULL);
    const char *before = "";
    char scan[100], text[1000];

    snprintf(scan, sizeof scan, "Seq Scan on %s ", table);
    ask_begin(c, a, true);
    PGresult *res = ask_send(c, a, s, p, "explain (costs off) ");
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(res));
    for (int i = 0; i < PQntuples(res); i++) {
        const char *line = PQgetvalue(res, i, 0);
        snprintf(text, sizeof text, "%s ", line);
        if (strstr(text, scan) && !strstr(before, "Limit") && !adapter_note(a, s, "cost"))
            fail_msg("%s: %s: %s", adapter, section_kinds[s].name, line);
        before = line;
    }
    PQclear(res);
    pg_run(c, "rollback");
    adapter_free(a);
}

/* If only a part is counted, the number is marked as an estimate, and is near the true one. */
static void
check_estimate(PGconn *c, const char *adapter)
{
    PGresult *res = article_ask(c, adapter, SEC_COUNTS, NULL);
    int approx = PQfnumber(res, "approx"), ready = PQfnumber(res, "ready");

    if (strstr("queue_tasks_table tasks_table simple_queue_table", adapter)) {
        said("t", PQgetvalue(res, 0, approx));
        assert_in_range(strtol(PQgetvalue(res, 0, ready), NULL, 10), 98000, 104000);
    } else if (approx >= 0) {
        said("f", PQgetvalue(res, 0, approx));
    }
    PQclear(res);
}

/* What makes of waiting jobs what is found in a table that has been in use. */
static const char *const used[][3] = {
    {"queue_tasks_table",  "queue_tasks",   "select"                                                  },
    {"jobs_table",         "jobs",          "update jobs set status = 'completed' where id > 'j5'"    },
    {"work_queue_table",   "queue",
     "update queues.queue set state = 'COMPLETED' where get_byte(uuid_send(id), 0) > 9"               },
    {"tasks_table",        "tasks",         "update tasks set status = 'completed' where id % 100 = 0"},
    {"simple_queue_table", "simple_queue",  "select"                                                  },
    {"pgqueue_lib",        "queue_history",
     "insert into queues.queue_history (tenant_id, id, queue, type, created, scheduled, started, "
     "state, "
     "tries) select tenant_id, id, queue, type, now(), created, now(), case when created > now() - "
     "interval '1000 s' then 'FAILED' else "
     "'COMPLETED' end, 0 from queues.queue; delete from queues.queue where get_byte(uuid_send(id), "
     "0) > 9"                                                                                         },
};

static void
many_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        const char *adapter = used[i][0];
        struct params p = {0};
        char database[40], table[60];
        snprintf(database, sizeof database, "many%zu", i);
        PGconn *c = article_new(adapter, database);
        article_push(c, adapter, 102000);
        pg_run(c, "%s", used[i][2]);
        pg_run(c, "vacuum analyze");
        bool by_month = !strcmp(used[i][1], "queue_history");
        snprintf(table, sizeof table, "%s%s", used[i][1],
                 by_month ? pg_value(c, "select to_char(now(), '_YYYY_MM')") : "");
        check_plan(c, adapter, SEC_COUNTS, NULL, table);
        check_plan(c, adapter, SEC_QUEUES, NULL, table);
        params_set_int(&p, PARAM_LIMIT, 100);
        params_set_int(&p, PARAM_N, 10000);
        check_plan(c, adapter, SEC_JOBS, &p, table);
        params_set(&p, PARAM_WORDS, "{zzz}");
        check_plan(c, adapter, SEC_JOBS, &p, table);
        params_done(&p);
        check_estimate(c, adapter);
        PQfinish(c);
    }
}

/* --- what they are not taken for -------------------------------------------------------------- */

/* The adapters that find something in the database. */
static const char *
detected(PGconn *c)
{
    static char text[400];
    size_t len = 0;

    *text = 0;
    for (int i = 0; i < NAMES; i++) {
        PGresult *res = article_ask(c, names[i], SEC_DETECT, NULL);
        for (int row = 0; row < PQntuples(res); row++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s:%s", len ? " " : "",
                                    names[i], PQgetvalue(res, row, 0));
        PQclear(res);
    }
    return text;
}

static void
near_misses(void **state)
{
    PGconn *c = pg_connect(pg_newdb("misses"));

    (void)state;
    said("", detected(c));
    pg_run(c, "create table tasks (id serial primary key, status varchar(50) not null default "
              "'open', payload jsonb, created_at timestamptz, updated_at timestamptz)");
    said("", detected(c));
    pg_run(c, "alter table tasks alter status set default 'pending'");
    said("tasks_table:public", detected(c));
    pg_run(c, "alter table tasks alter id type bigint");
    said("", detected(c));
    pg_run(c, "create table jobs (id bigserial primary key, queue text, payload text, attempts "
              "int, reserved_at int, available_at int, created_at int)");
    pg_run(c, "create table simple_queue (id uuid, created_at timestamptz, processing_started_at "
              "timestamptz, errors text, payload text)");
    said("", detected(c));
    pg_run(c, "create table queue_tasks (id bigserial primary key, task_name text, created_at "
              "timestamptz, started_at timestamp)");
    said("", detected(c));
    pg_run(c, "alter table queue_tasks alter started_at type timestamptz");
    said("queue_tasks_table:public", detected(c));
    pg_run(c, "alter table queue_tasks add priority int, add leased_until timestamptz");
    said("queue_tasks_table:public", detected(c));
    pg_run(c, "alter table queue_tasks alter leased_until type text");
    said("", detected(c));
    pg_run(c, "alter table queue_tasks drop leased_until, drop priority");
    pg_run(c, "create schema \"x 'y\"; alter table queue_tasks set schema \"x 'y\"");
    said("queue_tasks_table:x 'y", detected(c));
    PQfinish(c);
    c = pg_connect(pg_newdb("misses2"));
    pg_file(c, "tests/adapters/work_queue_table.sql");
    said("work_queue_table:queues", detected(c));
    pg_run(c, "alter table queues.work_queue drop lock_key");
    said("", detected(c));
    PQfinish(c);
    c = pg_connect(pg_newdb("misses3"));
    pg_file(c, "tests/adapters/pgqueue_lib.sql");
    said("pgqueue_lib:queues", detected(c));
    pg_run(c, "drop table queues.schedules");
    said("", detected(c));
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pkgsite_release_is_fenced),
        cmocka_unit_test(pkgsite_completed),
        cmocka_unit_test(columns_of_any_type),
        cmocka_unit_test(piechut_more),
        cmocka_unit_test(postqueue_more),
        cmocka_unit_test(blabosoft_more),
        cmocka_unit_test(piechut_finished),
        cmocka_unit_test(pkgsite_all_columns),
        cmocka_unit_test(pkgsite_stalls),
        cmocka_unit_test(pkgsite_leases),
        cmocka_unit_test(pkgsite_priorities),
        cmocka_unit_test(postqueue_attempts),
        cmocka_unit_test(postqueue_visibility),
        cmocka_unit_test(postqueue_times),
        cmocka_unit_test(work_queue_locks),
        cmocka_unit_test(work_queue_steals),
        cmocka_unit_test(work_queue_orphans),
        cmocka_unit_test(library_history),
        cmocka_unit_test(library_schedules_and_tenants),
        cmocka_unit_test(teti_in_one_transaction),
        cmocka_unit_test(teti_committed),
        cmocka_unit_test(teti_without_status),
        cmocka_unit_test(blabosoft_items),
        cmocka_unit_test(blabosoft_zone),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(near_misses),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
