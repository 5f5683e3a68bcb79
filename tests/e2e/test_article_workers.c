/*
 * The tables of the articles as an operator meets them: workers of each kind at work in sessions of
 * their own, the program looking on and acting by its verbs and in the console, and the tables
 * looked at after each act.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/e2e/engine.h"
#include "tests/proc.h"
#include "tests/sql/articles.h"
#include "tests/term.h"

static char dsn[500];

static PGconn *
begin(const char *adapter, const char *database)
{
    PGconn *c = article_new(adapter, database);

    snprintf(dsn, sizeof dsn, "%s", pg_dsn(database));
    return c;
}

/* Runs `queuetop VERB... DSN`; gives both outputs, one after the other, valid until the next call.
 */
static __attribute__((format(printf, 2, 3))) const char *
run(int code, const char *fmt, ...)
{
    static char *said;
    char *out, *err;
    va_list ap;

    va_start(ap, fmt);
    proc_verb(code, &out, &err, dsn, fmt, ap);
    va_end(ap);
    free(said);
    said = xasprintf("%s%s", out, err);
    free(out);
    free(err);
    return said;
}

static void
has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in: %s", part, text);
}

#define value(expected, ...) assert_string_equal(pg_value(c, __VA_ARGS__), expected)

/* --- verbs ------------------------------------------------------------------------------------ */

static void
piechut(void **state)
{
    const char *q = "work_queue_table", *said;
    PGconn *c = begin(q, "piechut"), *w = article_join("piechut");

    (void)state;
    article_push(c, q, 4);
    article_schedule(w, q);
    const char *a = article_claim(w, q, "n1"), *b = article_claim(w, q, "n1");
    article_claim(w, q, "n2");
    said = run(0, "queues --json");
    has(said, "\"queue\": \"q\", \"paused\": null");
    has(said, "\"ready\": 1, \"scheduled\": 0, \"retry\": 0, \"running\": 3, \"failed\": 0");
    said = run(0, "nodes --json");
    has(said, "\"node\": \"n1\"");
    has(said, "\"state\": \"unknown\"");
    has(run(0, "leases --node n2 --json"), "\"node\": \"n2\", \"queue\": \"q\", \"jobs\": 1");
    has(run(0, "job %s --json", article_id(a)), "\"node\": \"n1\"");
    /* a node that is gone: what has expired, then all of it */
    has(run(1, "release --node n1 --yes"), "nothing");
    pg_run(c, "update queues.work_queue set lock_timeout = now() - interval '1 s' where id = '%s'",
           article_id(a));
    has(run(0, "release --node n1 --yes --json"), "\"changed\": 1");
    value("n1", "select string_agg(lock_key, ',') from queues.work_queue where lock_key <> 'n2'");
    has(run(0, "extend --node n2 --by 2h --yes"), "extended");
    value("t", "select lock_timeout > now() + interval '119 min' from queues.work_queue where "
               "lock_key = 'n2'");
    has(run(0, "extend --id %s --by 1h --yes", article_id(b)), "extended");
    value("t", "select lock_timeout > now() + interval '59 min' from queues.work_queue where "
               "lock_key = 'n1'");
    has(run(3, "release --node n1 --all --yes"), "its leases still hold");
    has(run(0, "release --node n1 --all --force --yes"), "1 job ready");
    value("n2",
          "select string_agg(lock_key, ',') from queues.work_queue where lock_key is not null");
    /* its first holder ends it all the same: by the id alone */
    article_done(w, q, b);
    has(run(0, "job %s --json", article_id(b)), "\"state\": \"completed\"");
    has(run(1, "purge --older-than 1d --yes"), "nothing");
    has(run(0, "purge --older-than 0 --force --yes --json"), "\"changed\": 1");
    value("0", "select count(*) from queues.queue where state = 'COMPLETED'");
    PQfinish(w);
    PQfinish(c);
}

static void
piechut_jobs(void **state)
{
    const char *q = "work_queue_table";
    PGconn *c = begin(q, "piechut_jobs"), *w = article_join("piechut_jobs");

    (void)state;
    article_push(c, q, 2);
    article_schedule(w, q);
    const char *d = article_claim(w, q, "n2");
    /* the worker dies between its two statements: nobody takes that job again */
    pg_run(w, "delete from queues.work_queue where id = '%s'", article_id(d));
    article_schedule(w, q);
    has(run(0, "jobs state:blocked --json"), article_id(d));
    has(run(0, "requeue --id %s --yes --json", article_id(d)), "\"changed\": 1");
    article_schedule(w, q);
    value("1", "select count(*) from queues.work_queue where id = '%s'", article_id(d));
    has(run(1, "requeue --id %s --yes", article_id(d)),
        "only jobs that have failed, wait for their time or are orphans");
    /* gives back one of the node's jobs */
    const char *f = article_claim(w, q, "n4");
    has(run(0, "release --id %s --yes --json", article_id(f)), "\"changed\": 1");
    value("0", "select count(*) from queues.work_queue where lock_key = 'n4'");
    has(run(1, "release --id %s --yes", article_id(f)), "only jobs that a node holds");
    /* no node holds this job: it may be deleted */
    has(run(0, "delete --id %s --yes", article_id(d)), "1 job deleted");
    value("0", "select count(*) from queues.queue where id = '%s'", article_id(d));
    const char *e = article_claim(w, q, "n3");
    has(run(1, "delete --id %s --yes", article_id(e)), "only jobs that no node holds");
    value("1", "select count(*) from queues.queue where id = '%s'", article_id(e));
    article_fail(w, q, e);
    has(run(3, "failures"), "jobs state:failed lists them");
    has(run(0, "jobs state:failed --json"), article_id(e));
    has(run(3, "pause q --yes"), "stop the scheduler");
    has(run(3, "cancel --id %s --yes", article_id(e)), "delete jobs that wait");
    has(run(0, "requeue --queue q --yes --json"), "\"changed\": 1"); /* what failed */
    value("PENDING", "select state from queues.queue where id = '%s'", article_id(e));
    has(run(0, "reschedule 2h --id %s --yes", article_id(e)), "scheduled");
    value("t", "select run_after > now() + interval '119 min' from queues.queue where id = '%s'",
          article_id(e));
    PQfinish(w);
    PQfinish(c);
}

static void
postqueue(void **state)
{
    const char *q = "jobs_table";
    PGconn *c = begin(q, "postqueue"), *w = article_join("postqueue");

    (void)state;
    article_push(c, q, 3);
    for (int i = 0; i < 4; i++) {
        pg_run(w, "update jobs set expires_at = now() where id <> 'j1'");
        assert_string_equal(article_id(article_claim(w, q, "")), "j1");
        article_expire(c, q);
    }
    has(run(0, "queues --json"),
        "\"ready\": 0, \"scheduled\": 0, \"retry\": 0, \"running\": 0, \"failed\": 3");
    has(run(0, "failures --json"), "\"error_key\": \"expired before it was done\"");
    has(run(0, "requeue --error 'no attempts left' --yes --json"), "\"changed\": 1");
    value("3", "select attempts from jobs where id = 'j1'");
    assert_string_equal(article_id(article_claim(w, q, "")), "j1");
    has(run(1, "requeue --id j1 --yes"), "takes only jobs that have failed or wait for their time");
    has(run(0, "extend --id j1 --by 1h --yes"), "1 lease extended");
    value("t", "select visibility_at > now() + interval '59 min' from jobs where id = 'j1'");
    /* a lease is never made shorter, and then nothing else is changed either */
    pg_run(c, "update jobs set status = 'in_transit' where id = 'j1'");
    has(run(1, "extend --id j1 --by 30s --yes"),
        "takes only running jobs whose lease ends before that time");
    value("in_transit t", "select status || ' ' || left((visibility_at > now() + interval '59 "
                          "min')::text, 1) from jobs where id = 'j1'");
    has(run(1, "delete --id j1 --yes"), "takes only jobs that do not run");
    has(run(0, "leases --json"), "\"job\": \"j1\", \"node\": null, \"queue\": \"q\"");
    has(run(3, "release --node n1 --yes"), "release it by its id (release --id)");
    has(run(3, "extend --node n1 --by 1h --yes"), "extend it by its id (extend --id)");
    has(run(3, "pause q --yes"), "stop them in their own program");
    has(run(3, "priority 5 --id j2 --yes"), "reschedule jobs that may wait");
    has(run(0, "release --id j1 --yes"), "1 job failed"); /* it was its last attempt */
    has(run(0, "requeue --id j1 --yes"), "1 job ready");
    assert_string_equal(article_id(article_claim(w, q, "")), "j1");
    article_done(w, q, "j1");
    has(run(0, "requeue --id j2 --id j3 --reset-tries --yes --json"), "\"changed\": 2");
    value("NULL", "select string_agg(expires_at::text, '') from jobs where id <> 'j1'");
    has(run(0, "reschedule 1h --id j3 --yes"), "1 job scheduled");
    has(run(0, "jobs state:scheduled --csv"), "j3");
    has(run(1, "purge --older-than 0 --force --yes"), "nothing"); /* its lease would still hold */
    article_expire(c, q);
    has(run(0, "purge --queue q --older-than 0 --force --yes --json"), "\"changed\": 1");
    has(run(0, "delete --id j2 --id j3 --yes --json"), "\"changed\": 2");
    value("0", "select count(*) from jobs");
    PQfinish(w);
    PQfinish(c);
}

static void
teti(void **state)
{
    const char *q = "tasks_table";
    PGconn *c = begin(q, "teti"), *w = article_join("teti");

    (void)state;
    article_push(c, q, 5);
    pg_run(w, "begin"); /* works in the transaction of its claim */
    article_claim(w, q, "");
    has(run(0, "queues --json"), "\"ready\": 5");
    has(run(1, "delete --id 1 --yes"),
        "only jobs that do not run, have a status, and whose row no worker has locked");
    article_fail(w, q, "1");
    pg_run(w, "commit");
    has(run(0, "queues --json"),
        "\"ready\": 4, \"scheduled\": 0, \"retry\": 0, \"running\": 0, \"failed\": 1");
    has(run(0, "requeue --id 1 --dry-run --yes"), "would change");
    value("failed", "select status from tasks where id = 1");
    has(run(0, "requeue --state failed --yes --json"), "\"changed\": 1");
    value("pending 1", "select status || ' ' || retry_count from tasks where id = 1");
    article_claim(w, q, ""); /* commits it and is never seen again */
    has(run(0, "jobs state:running --json"), "\"id\": \"1\"");
    has(run(1, "delete --id 1 --yes"), "takes only jobs that do not run");
    has(run(0, "release --id 1 --id 2 --yes --json"), "\"changed\": 1");
    assert_string_equal(article_id(article_claim(w, q, "")), "1");
    has(run(0, "discard --id 2 --id 1 --yes --json"), "\"changed\": 1");
    value("failed", "select status from tasks where id = 2");
    has(run(0, "delete --id 3 --yes"), "1 job deleted");
    has(run(0, "purge --state failed --older-than 0 --force --yes --json"), "\"changed\": 1");
    value("1 4 5", "select string_agg(id::text, ' ' order by id) from tasks");
    /* what it can't do is refused, and so is everything where nothing may change */
    has(run(3, "pause tasks --yes"), "stop them in their own program");
    has(run(3, "release --node n1 --yes"), "release it by its id (release --id)");
    has(run(3, "extend --id 1 --by 1h --yes"), "release it by its id");
    has(run(3, "reschedule 1h --id 4 --yes"), "no time at which it is due");
    has(run(3, "failures"), "jobs state:failed lists them");
    has(run(3, "delete --id 4 --yes --read-only"), "read-only");
    value("3", "select count(*) from tasks");
    PQfinish(w);
    PQfinish(c);
}

static void
blabosoft(void **state)
{
    const char *q = "simple_queue_table";
    PGconn *c = begin(q, "blabosoft"), *w = article_join("blabosoft");

    (void)state;
    article_push(c, q, 3);
    const char *a = article_claim(w, q, ""), *b = article_claim(w, q, "");
    article_fail(w, q, a);
    has(run(0, "failures --json"), "\"error_key\": \"it went wrong after N s\"");
    has(run(0, "job %s --json", article_id(a)), "\"outcome\": \"failed\"");
    pg_run(w, "begin; select from simple_queue where id = '%s' for update", article_id(a));
    has(run(1, "requeue --id %s --yes", article_id(a)),
        "only failed jobs whose row no worker has locked");
    pg_run(w, "rollback");
    has(run(0, "requeue --error 'it went wrong after 99 s' --yes --json"), "\"changed\": 1");
    value(
        "t",
        "select processing_started_at is null and errors is null from simple_queue where id = '%s'",
        article_id(a));
    pg_run(w, "begin; select from simple_queue where id = '%s' for update", article_id(b));
    has(run(1, "release --id %s --yes", article_id(b)),
        "only running jobs whose row no worker has locked");
    pg_run(w, "rollback");
    value("t", "select processing_started_at is not null from simple_queue where id = '%s'",
          article_id(b));
    has(run(0, "release --id %s --yes", article_id(b)), "1 job ready");
    value("t", "select processing_started_at is null from simple_queue where id = '%s'",
          article_id(b));
    article_claim(w, q, "");
    article_claim(w, q, "");
    has(run(1, "delete --id %s --yes", article_id(b)), "only jobs that do not run");
    article_fail(w, q, a);
    has(run(0, "delete --state failed --yes --json"), "\"changed\": 1");
    value("2", "select count(*) from simple_queue");
    /* what the article lacks, and what helps */
    has(run(3, "extend --id %s --by 1h --yes", article_id(b)), "release it by its id");
    has(run(3, "purge --older-than 1d --yes"), "delete --state failed removes failed ones");
    has(run(3, "release --node n1 --yes"), "release it by its id (release --id)");
    has(run(3, "pause simple_queue --yes"), "stop them in their own program");
    has(run(3, "priority 5 --id %s --yes", article_id(b)), "the oldest item is popped first");
    /* and what it has with columns of one's own */
    pg_run(c, "alter table simple_queue add completed_at timestamp, add leased_until timestamp");
    has(run(0, "extend --id %s --by 1h --yes", article_id(b)), "1 lease extended");
    value("t", "select leased_until > timezone('UTC', now()) + interval '59 min' from simple_queue "
               "where leased_until is not null");
    pg_run(c, "update simple_queue set completed_at = processing_started_at where id = '%s'",
           article_id(b));
    has(run(0, "job %s --json", article_id(b)), "\"state\": \"completed\"");
    has(run(0, "purge --older-than 0 --force --yes --json"), "\"changed\": 1");
    value("1", "select count(*) from simple_queue");
    PQfinish(w);
    PQfinish(c);
}

static void
pkgsite(void **state)
{
    const char *q = "queue_tasks_table+priorities";
    PGconn *c = begin(q, "pkgsite"), *w = article_join("pkgsite");

    (void)state;
    article_push(c, q, 3);
    has(run(0, "priority 5 --id 3 --yes"), "1 job ready");
    value("5", "select priority from queue_tasks where id = 3");
    const char *first = article_claim(w, q, "");
    assert_string_equal(article_id(first), "3");
    has(run(1, "priority 6 --id 3 --yes"), "only jobs of another priority that wait");
    /* the late end of the first worker does not delete the row of the new start */
    has(run(0, "release --id 3 --yes"), "1 job ready");
    const char *again = article_claim(w, q, "");
    assert_string_equal(article_id(again), "3");
    article_done(w, q, first);
    value("1", "select count(*) from queue_tasks where id = 3");
    has(run(0, "queues --json"), "\"queue\": \"queue_tasks\"");
    has(run(0, "jobs --kind m3@v1 --json"), "\"state\": \"running\"");
    has(run(1, "delete --id 3 --yes"), "takes only jobs that do not run, or whose lease has ended");
    article_expire(c, q);
    has(run(0, "delete --id 3 --yes --json"), "\"changed\": 1");
    has(run(0, "jobs 'm2' --csv"), "m2@v1");
    value("2", "select count(*) from queue_tasks");
    PQfinish(w);
    PQfinish(c);
}

/* A table that keeps its finished tasks: no verb makes one run again. */
static void
pkgsite_completed(void **state)
{
    const char *q = "queue_tasks_table+completed";
    PGconn *c = begin(q, "pkgsite_completed");

    (void)state;
    article_push(c, q, 2);
    article_done(c, q, article_claim(c, q, ""));
    has(run(0, "queues --json"), "\"ready\": 1, \"scheduled\": 0, \"retry\": 0, \"running\": 0");
    has(run(0, "job 1 --json"), "\"state\": \"completed\"");
    has(run(1, "release --id 1 --yes"), "release takes only running jobs");
    value("t", "select started_at is not null from queue_tasks where id = 1");
    has(run(3, "priority 5 --id 2 --yes"), "its table has no column priority");
    has(run(3, "extend --id 2 --by 1h --yes"), "its table has no column leased_until");
    has(run(0, "purge --older-than 0 --force --yes --json"), "\"changed\": 1");
    value("2", "select string_agg(id::text, ' ') from queue_tasks");
    PQfinish(c);
}

/* Every column that the article offers: the whole card by verbs. */
static void
pkgsite_card(void **state)
{
    const char *q = "queue_tasks_table+all";
    PGconn *c = begin(q, "pkgsite_card"), *w = article_join("pkgsite_card");

    (void)state;
    article_push(c, q, 4);
    for (int i = 0; i < 3; i++)
        article_fail(w, q, article_claim(w, q, ""));
    article_claim(w, q, "");
    has(run(0, "queues --json"),
        "\"ready\": 0, \"scheduled\": 0, \"retry\": 0, \"running\": 1, \"failed\": 3");
    has(run(0, "leases --json"), "\"job\": \"4\", \"node\": null");
    has(run(0, "failures --json"), "\"error_key\": \"it went wrong after N s\"");
    has(run(0, "extend --id 4 --by 1h --yes"), "1 lease extended");
    value("4", "select id from queue_tasks where leased_until > now() + interval '59 min'");
    has(run(0, "release --id 4 --yes"), "1 job ready");
    value("4", "select id from queue_tasks where started_at is null");
    has(run(0, "requeue --id 1 --yes"), "1 job ready");
    value("1 4", "select string_agg(id::text, ' ' order by id) from queue_tasks where started_at "
                 "is null and completed_at is null");
    has(run(0, "requeue --state failed --yes --json"), "\"changed\": 2");
    value("4",
          "select count(*) from queue_tasks where started_at is null and completed_at is null");
    has(run(0, "priority 2 --id 2 --yes"), "1 job ready");
    article_done(w, q, article_claim(w, q, ""));
    has(run(0, "purge --older-than 0 --force --yes --json"), "\"changed\": 1");
    value("1 3 4", "select string_agg(id::text, ' ' order by id) from queue_tasks");
    has(run(3, "pause queue_tasks --yes"), "stop them in their own program");
    has(run(3, "release --node n1 --yes"), "release it by its id (release --id)");
    PQfinish(w);
    PQfinish(c);
}

static void
library(void **state)
{
    const char *q = "pgqueue_lib";
    PGconn *c = begin(q, "library"), *w = article_join("library");

    (void)state;
    article_push(c, q, 2);
    pg_run(c, "insert into queues.schedules (id, tenant_id, queue, type, key, next_run, schedule, "
              "timezone) values "
              "(gen_random_uuid(), 't1', 'q', 'HTTP', 'nightly', now() + interval '1 h', '0 3 * * "
              "*', 'UTC')");
    article_schedule(w, q);
    const char *a = article_claim(w, q, "n1");
    article_fail(w, q, a);
    has(run(0, "queues --json"),
        "\"ready\": 1, \"scheduled\": 0, \"retry\": 0, \"running\": 0, \"failed\": 1");
    has(run(0, "failures --json"), "\"error_key\": \"no answer from N\"");
    has(run(0, "requeue --error '~No ANSWER' --yes --json"), "\"changed\": 1");
    value("PENDING", "select state from queues.queue where id = '%s'", article_id(a));
    value("0", "select count(*) from queues.queue_history");
    has(run(0, "cron list --json"), "\"name\": \"t1/nightly\"");
    has(run(0, "cron pause t1/nightly --yes"), "paused");
    value("t", "select paused from queues.schedules");
    has(run(0, "cron resume t1/nightly --yes"), "resumed");
    value("f", "select paused from queues.schedules");
    PQfinish(w);
    PQfinish(c);
}

/* --- the console ------------------------------------------------------------------------------ */

static void
console(struct vt *vt)
{
    const char *argv[] = {getenv("QUEUETOP"), dsn, NULL};

    vt_spawn(vt, 30, 130, argv, NULL);
    vt_want(vt, "live");
}

static void
quit(struct vt *vt)
{
    vt_keys(vt, "q");
    vt_ended_well(vt, 0);
    vt_done(vt);
}

/* A node is gone with what it held, another left an orphan; the work goes on. */
static void
piechut_console(void **state)
{
    const char *q = "work_queue_table";
    PGconn *c = begin(q, "piechut_console"), *w = article_join("piechut_console");
    struct vt vt;

    (void)state;
    article_push(c, q, 3);
    article_schedule(w, q);
    const char *a = article_claim(w, q, "n1"), *b = article_claim(w, q, "n1"),
               *d = article_claim(w, q, "n2");
    pg_run(w, "delete from queues.work_queue where id = '%s'", article_id(d));
    console(&vt);
    vt_keys(&vt, "4");
    vt_want(&vt, "n1 leases (2)");
    vt_keys(&vt, "L space enter");
    vt_want(&vt, "2 jobs");
    vt_want(&vt, "what it works on is done twice");
    vt_keys(&vt, "text:n2 enter"); /* not its name */
    vt_settle(&vt, 60);
    value("2", "select count(*) from queues.work_queue where lock_key = 'n1'");
    vt_keys(&vt, "esc L space enter");
    vt_want(&vt, "Type the name");
    vt_keys(&vt, "text:n1 enter");
    vt_want(&vt, "release: 2 jobs ready");
    value("0", "select count(*) from queues.work_queue where lock_key is not null");
    assert_string_equal(article_id(article_claim(w, q, "n3")), article_id(a));
    assert_string_equal(article_id(article_claim(w, q, "n3")), article_id(b));
    vt_want(&vt, "n3 leases (2)");
    vt_keys(&vt, "2 / text:state:blocked enter");
    vt_want(&vt, "filter state:blocked");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "r");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "requeue: 1 job");
    value("PENDING", "select state from queues.queue where id = '%s'", article_id(d));
    article_schedule(w, q);
    assert_string_equal(article_id(article_claim(w, q, "n3")), article_id(d));
    quit(&vt);
    PQfinish(w);
    PQfinish(c);
}

/* A group of failed items; what is typed is their number. */
static void
blabosoft_console(void **state)
{
    const char *q = "simple_queue_table";
    PGconn *c = begin(q, "blabosoft_console"), *w = article_join("blabosoft_console");
    struct vt vt;

    (void)state;
    article_push(c, q, 3);
    article_fail(w, q, article_claim(w, q, ""));
    article_fail(w, q, article_claim(w, q, ""));
    console(&vt);
    vt_want(&vt, "simple_queue");
    vt_keys(&vt, "3");
    vt_want(&vt, "it went wrong after N s");
    vt_keys(&vt, "r");
    vt_want(&vt, "2 jobs");
    vt_want(&vt, "The text of the error is removed");
    vt_keys(&vt, "text:2 enter");
    vt_want(&vt, "requeue: 2 jobs ready");
    value(
        "3",
        "select count(*) from simple_queue where processing_started_at is null and errors is null");
    vt_gone(&vt, "it went wrong after N s");
    quit(&vt);
    PQfinish(w);
    PQfinish(c);
}

/* A task that stands as running for ever is marked as stale and can't be deleted; it is given back
 * while the console looks on. */
static void
teti_console(void **state)
{
    const char *q = "tasks_table";
    PGconn *c = begin(q, "teti_console"), *w = article_join("teti_console");
    struct vt vt;

    (void)state;
    article_push(c, q, 2);
    article_claim(w, q, "");
    pg_run(c, "update tasks set updated_at = now() - interval '2 h' where id = 1");
    console(&vt);
    vt_keys(&vt, "2 / text:state:running enter");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "D"); /* not while it runs */
    vt_want(&vt, "the job is running");
    value("2", "select count(*) from tasks");
    vt_keys(&vt, "L");
    vt_want(&vt, "Nothing tells whether its worker is alive");
    vt_keys(&vt, "text:1 enter");
    vt_want(&vt, "release: 1 job ready");
    value("2", "select count(*) from tasks where status = 'pending'");
    assert_string_equal(article_id(article_claim(w, q, "")), "1");
    quit(&vt);
    PQfinish(w);
    PQfinish(c);
}

/* One of three messages has no attempts left, one is held, one waits. */
static void
postqueue_console(void **state)
{
    static const struct engine_step steps[] = {
        {"j1", "r", {"1 job → ready", "unofficial"},                                         "y",            "requeue: 1 job ready"    },
        {"j2",
         "E enter", {"1 lease → extended", "never made shorter"},
         "y",                                                                                                  "extend: 1 lease extended"},
        {"j2",
         "L",       {"1 job → ready", "as the system's own: nack", "the job is done twice"},
         "text:1 enter",                                                                                       "release: 1 job ready"    },
        {"j3", "D", {"1 job → deleted", "unofficial"},                                       "text:1 enter", "delete: 1 job deleted"   },
    };
    const char *q = "jobs_table";
    PGconn *c = begin(q, "postqueue_console"), *w = article_join("postqueue_console");
    struct vt vt;

    (void)state;
    article_push(c, q, 3);
    pg_run(c, "update jobs set attempts = 4 where id = 'j1'");
    assert_string_equal(article_id(article_claim(w, q, "")), "j2");
    pg_run(c, "update jobs set visibility_at = now() + interval '1 min' where id = 'j2'");
    console(&vt);
    engine_counts(&vt, "q", "1 1 1 0 0");
    engine_step(&vt, &steps[0]);
    engine_step(&vt, &steps[1]);
    value("t", "select visibility_at > now() + interval '4 min' from jobs where id = 'j2'");
    engine_step(&vt, &steps[2]);
    engine_step(&vt, &steps[3]);
    engine_counts(&vt, "q", "2 0 0 0 0");
    quit(&vt);
    value("j1 j2", "select string_agg(id, ' ' order by id) from jobs");
    assert_string_equal(article_id(article_claim(w, q, "")), "j1");
    assert_string_equal(article_id(article_claim(w, q, "")), "j2");
    PQfinish(w);
    PQfinish(c);
}

/* A task gets more time and is given back; then the late answer of its worker changes nothing. A
 * task that no worker has begun is deleted. */
static void
pkgsite_console(void **state)
{
    static const struct engine_step steps[] = {
        {"1",
         "E enter", {"1 lease → extended", "never made shorter"},
         "y",                                                                                     "extend: 1 lease extended"},
        {"1",
         "L",       {"1 job → ready", "unofficial", "Its worker may be alive"},
         "text:1 enter",                                                                          "release: 1 job ready"    },
        {"2", "D",  {"1 job → deleted", "unofficial"},                          "text:1 enter", "delete: 1 job deleted"   },
    };
    const char *q = "queue_tasks_table+leases";
    PGconn *c = begin(q, "pkgsite_console"), *w = article_join("pkgsite_console");
    struct vt vt;

    (void)state;
    article_push(c, q, 3);
    const char *claim = article_claim(w, q, "");
    pg_run(c, "update queue_tasks set leased_until = now() + interval '1 min' where id = 1");
    console(&vt);
    engine_counts(&vt, "queue_tasks", "2 1 0 0 0");
    engine_step(&vt, &steps[0]);
    value("t", "select leased_until > now() + interval '4 min' from queue_tasks where id = 1");
    engine_step(&vt, &steps[1]);
    value("t", "select started_at is null from queue_tasks where id = 1");
    engine_step(&vt, &steps[2]);
    engine_counts(&vt, "queue_tasks", "2 0 0 0 0");
    quit(&vt);
    assert_string_equal(article_id(article_claim(w, q, "")), "1");
    article_done(w, q, claim); /* from the first start: it does not end the new one */
    value("1 3", "select string_agg(id::text, ' ' order by id) from queue_tasks");
    PQfinish(w);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(piechut),           cmocka_unit_test(piechut_jobs),
        cmocka_unit_test(postqueue),         cmocka_unit_test(teti),
        cmocka_unit_test(blabosoft),         cmocka_unit_test(pkgsite),
        cmocka_unit_test(pkgsite_completed), cmocka_unit_test(pkgsite_card),
        cmocka_unit_test(library),           cmocka_unit_test(piechut_console),
        cmocka_unit_test(blabosoft_console), cmocka_unit_test(teti_console),
        cmocka_unit_test(postqueue_console), cmocka_unit_test(pkgsite_console),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
