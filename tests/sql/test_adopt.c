/*
 * Adoption: `queuetop install` into a database whose queue is two plain tables, made by hand as in
 * an article that many have followed (QUEUES.QUEUE, QUEUES.WORK_QUEUE). Every job and lease is
 * kept; what is unclear is refused before anything changes; the old tables stay.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/server.h"

static const char plain[] =
    "CREATE SCHEMA QUEUES;"
    "CREATE TABLE QUEUES.QUEUE ("
    "  id UUID NOT NULL, created TIMESTAMP NOT NULL DEFAULT now(), version INTEGER NOT NULL "
    "DEFAULT 0,"
    "  queue VARCHAR(255) NOT NULL, state VARCHAR(40) NOT NULL, tries INTEGER NOT NULL DEFAULT 0,"
    "  delay BIGINT, run_after TIMESTAMP, payload BYTEA, payload_type VARCHAR(255), PRIMARY "
    "KEY(id));"
    "CREATE INDEX IX_QUEUE_STATE_RUN_AFTER_CREATED ON QUEUES.QUEUE (state, run_after, created);"
    "CREATE TABLE QUEUES.WORK_QUEUE ("
    "  id UUID NOT NULL, version INTEGER NOT NULL DEFAULT 0, batch_order INTEGER NOT NULL DEFAULT "
    "0,"
    "  started TIMESTAMP, lock_key VARCHAR(255), lock_timeout TIMESTAMP, PRIMARY KEY(id),"
    "  FOREIGN KEY(id) REFERENCES QUEUES.QUEUE(id) ON DELETE CASCADE);";

/* Job n has the id job(n). */
static const char words[] =
    "create function job(n int) returns uuid language sql immutable as $$ select "
    "('00000000-0000-4000-8000-00000000000' || n)::uuid $$;"
    "create function here(ago interval default '0') returns timestamp language sql stable as $$ "
    "select now() at time zone 'Europe/Prague' - ago $$;";

static const char jobs[] =
    "insert into queues.queue (id, queue, state, created, payload, payload_type) values"
    " (job(1), 'mail', 'PENDING', '2024-07-05 12:00', convert_to('{\"re\": \"\\\\d+\"}', 'UTF8'),"
    "  'application/json'),"
    " (job(2), 'mail', 'PENDING', '2024-07-05 11:00', '\\x00ff', 'image/png'),"
    " (job(3), 'mail', 'PENDING', '2024-07-05 10:00', '\\x7b00', 'application/json; "
    "charset=utf-8'),"
    " (job(4), 'Ünter \"x\" {queue}', 'pending', '2024-07-05 09:00', null, null),"
    " (job(5), 'mail', 'RETRY', '2024-07-05 08:00', '\\x5b315d', 'application/problem+json');"
    "update queues.queue set tries = 70000, run_after = here('-1 h') where id = job(5);"
    "insert into queues.queue (id, queue, state, tries, delay, run_after) values"
    " (job(6), 'later', 'PENDING', 2, null, here('-1 day')),"
    " (job(7), 'mail', 'RETRY', 3, 5000, null), (job(8), 'mail', 'FAILED', 5, null, null),"
    " (job(9), 'mail', 'COMPLETED', 0, null, null);"
    "update queues.queue set created = here() where id > job(5);"
    "insert into queues.work_queue (id, version, batch_order, started, lock_key, lock_timeout) "
    "values"
    " (job(1), 4, 1, here(), 'node-a', here('-1 h')),"
    " (job(7), 9, 2, here('1 h'), 'node-b', here('1 min')), (job(2), 0, 3, null, null, null);";

struct place {
    char dsn[400];
    PGconn *conn;
};

static void
enter(struct place *p, const char *name)
{
    snprintf(p->dsn, sizeof p->dsn, "%s", pg_newdb(name));
    p->conn = pg_connect(p->dsn);
    pg_run(p->conn, "alter database \"%s\" set timezone = 'Europe/Prague'", name);
    pg_run(p->conn, "%s%s", plain, words);
}

/* Runs install with these options; the exit code and all that it said. */
static int
install(const struct place *p, char **said, const char *options)
{
    char *out, *err;
    int code = proc_run(NULL, &out, &err, "-d \"%s\" install %s", p->dsn, options);

    assert_true(asprintf(said, "%s%s", out, err) >= 0);
    free(out);
    free(err);
    return code;
}

static void
must_say(const struct place *p, const char *options, int code, const char *const *lines)
{
    char *said;
    int got = install(p, &said, options);

    for (; *lines; lines++)
        if (!strstr(said, *lines))
            fail_msg("no '%s' in:\n%s", *lines, said);
    if (got != code)
        fail_msg("%d, not %d:\n%s", got, code, said);
    free(said);
}
#define SAYS(p, options, code, ...) \
    must_say(p, options, code, (const char *const[]){__VA_ARGS__, NULL})

static void
check(const struct place *p, const char *expected, const char *sql)
{
    const char *value = pg_value(p->conn, "%s", sql);

    if (strcmp(value, expected) != 0)
        fail_msg("'%s' is not '%s': %s", value, expected, sql);
}

static const char untouched[] =
    "select count(*) || ' ' || (select count(*) from queues.work_queue where lock_key is not null) "
    "|| ' ' || count(*) filter (where state = 'PENDING') from queues.queue";

static void
it_is_noticed_and_explained(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "noticed");
    pg_run(p.conn, "%s", jobs);
    SAYS(&p, "", 3,
         "schema queues holds a queue of two plain tables: 9 jobs, 3 of them in work_queue",
         "--adopt takes them over");
    SAYS(&p, "--adopt --dry-run", 0, "state \"PENDING\": 3 become ready",
         "state \"PENDING\": 1 become scheduled", "state \"RETRY\": 1 become retry",
         "state \"FAILED\": 1 become failed", "leases: 2 of 2 nodes, 1 of them expired",
         "payloads: 3 called JSON (where they are valid; else bytes), 1 others",
         "read as Europe/Prague (TimeZone of this database", "queues.queue_before_queuetop",
         "waits at most 5 s", "dry run: nothing was changed");
    check(&p, "9 2 4", untouched);
    SAYS(&p, "--adopt-zone UTC", 2, "go with --adopt");
    PQfinish(p.conn);
}

static void
check_jobs(const struct place *p)
{
    check(
        p, "1 ready,2 ready,3 ready,4 ready,5 retry,6 scheduled,7 ready,8 failed",
        "select string_agg(right(id::text, 1) || ' ' || state, ',' order by id) from queues.queue");
    check(p, "2024-07-05 10:00:00+00",
          "select created at time zone 'UTC' || '+00' from queues.queue where id = job(1)");
    check(p, "t",
          "select run_after between now() + interval '50 min' and now() + interval '70 min' from "
          "queues.queue where id = job(5)");
    check(
        p, "32767 3 2",
        "select string_agg(tries::text, ' ' order by id) from (select id, tries from queues.queue "
        "where id in (job(5)) union all select '10000000-0000-4000-8000-000000000000', 3 union "
        "all select '20000000-0000-4000-8000-000000000000', tries from "
        "queues.queue where id = job(6)) z");
    check(p, "{\"re\": \"\\\\d+\"}", "select payload::text from queues.queue where id = job(1)");
    check(p, "\\x00ff image/png",
          "select body || ' ' || payload_type from (select body::text, payload_type from "
          "queues.queue where id = job(2)) z");
    check(p, "\\x7b00",
          "select body::text from queues.queue where id = job(3) and payload is null");
    check(p, "[1]", "select payload::text from queues.queue where id = job(5)");
    check(p, "Ünter \"x\" {queue}", "select queue from queues.queue where id = job(4)");
    check(p, "completed", "select state from queues.history where id = job(9)");
    /* jobs of the old work_queue come first, then the others by age */
    check(p, "1 7 2 4 3",
          "select string_agg(right(id::text, 1), ' ' order by seq) from queues.queue where state = "
          "'ready'");
}

static void
check_leases(const struct place *p)
{
    check(p, "node-a 4 1 t,node-b 9 2 f",
          "select string_agg(concat_ws(' ', lock_key, version, batch_order, left((lock_timeout > "
          "now())::text, 1)), ',' "
          "order by lock_key) from queues.work_queue");
    check(p, "t",
          "select seqs = started_seqs and seqs[1] = (select seq from queues.queue where id = "
          "job(1)) from queues.work_queue where lock_key = 'node-a'");
    check(p, "t",
          "select lock_timeout between now() + interval '30 min' and now() + interval '61 min' "
          "from queues.work_queue where lock_key = 'node-a'");
}

/* The queue works: the expired lease is stolen, the live lease is not, and its holder may answer.
 */
static void
check_life(const struct place *p)
{
    pg_run(p->conn, "select * from queues.schedule('t')");
    check(p, "lost 4", "select outcome || ' ' || number from queues.attempt where job = job(7)");
    pg_run(p->conn, "create table got as select * from queues.claim('new', 10)");
    check(p, "2 3 4 7", "select string_agg(right(id::text, 1), ' ' order by id) from got");
    check(p, "done",
          "select queues.complete_job('node-a', lease, version, seqs[1]) from queues.work_queue "
          "where "
          "lock_key = 'node-a'");
    check(p, "4",
          "select count(*) from got g, queues.complete_job('new', g.lease, g.version, g.seq) x "
          "where x "
          "= 'done'");
    check(p, "0",
          "select count(*) from queues.overview() o full join (select queue, count(*) filter "
          "(where state = 'ready') as ready, "
          "count(*) filter (where state = 'retry') as retry, count(*) filter (where state = "
          "'failed') as failed, "
          "count(*) filter (where state = 'scheduled') as scheduled from queues.queue group by 1) "
          "q using (queue) where "
          "(o.ready + o.running, o.retry, o.failed, o.scheduled) <> (coalesce(q.ready, 0), "
          "coalesce(q.retry, 0), coalesce(q.failed, 0), coalesce(q.scheduled, 0))");
    check(p, "9 6", "select sum(pushed) || ' ' || sum(completed) from queues.overview()");
    check(p, "1", "select n from queues.failure_groups()");
}

static void
every_job_and_lease_is_kept(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "kept");
    pg_run(p.conn, "%s", jobs);
    SAYS(&p, "--adopt", 0,
         "adopted: 8 jobs, 1 finished ones to history, 2 leases; 2 payloads are JSON now",
         "installed (");
    check_jobs(&p);
    check_leases(&p);
    check(&p, "9 3",
          "select (select count(*) from queues.queue_before_queuetop) || ' ' || (select count(*) "
          "from queues.work_queue_before_queuetop)");
    check_life(&p);
    SAYS(&p, "--adopt", 0, "nothing to adopt", "is there, nothing to change"); /* once is enough */
    check(&p, "3", "select count(*) from queues.queue");
    PQfinish(p.conn);
}

/* Every call of an old queue's program now ends in an error. No call fails silently. */
static void
old_programs_fail_cleanly(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "old");
    pg_run(p.conn, "%s", jobs);
    SAYS(&p, "--adopt", 0, "adopted");
    assert_string_equal(
        pg_try(p.conn, "select * from queues.queue where (state='PENDING' or state='RETRY') and "
                       "(run_after is null or run_after <= now()) order by created, id asc limit "
                       "100 for update skip locked"),
        "22P02");
    assert_string_equal(pg_try(p.conn, "insert into queues.queue (id, queue, state, payload) "
                                       "values (gen_random_uuid(), 'mail', 'PENDING', '\\x00')"),
                        "22P02");
    assert_string_equal(pg_try(p.conn,
                               "insert into queues.work_queue (id, batch_order) select * from "
                               "unnest(array[gen_random_uuid()], array[1]) on conflict do nothing"),
                        "42703");
    assert_string_equal(pg_try(p.conn, "with next as (select * from queues.work_queue where "
                                       "lock_key is null or lock_timeout < now() order by created, "
                                       "batch_order asc limit 10 for update skip locked) update "
                                       "queues.work_queue as updated set lock_key = 'x' from next "
                                       "where updated.id = next.id returning updated.*"),
                        "42703");
    assert_string_equal(pg_try(p.conn, "begin; delete from queues.work_queue where id = job(1); "
                                       "delete from queues.queue where id = job(1); commit"),
                        "42703");
    pg_run(p.conn, "rollback");
    check(&p, "8", "select count(*) from queues.queue");
    PQfinish(p.conn);
}

static void
what_is_unclear_is_refused(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "unclear");
    pg_run(p.conn, "%s", jobs);
    pg_run(p.conn, "update queues.queue set state = 'RUN; \"ning\"' where id = job(3); update "
                   "queues.queue set state = 'DEAD' where id = job(4)");
    SAYS(&p, "--adopt", 3, "what to do with jobs in these states?", "\"DEAD\" (1)",
         "--adopt-states STATE=ready");
    SAYS(&p, "--adopt --adopt-states 'DEAD=lost'", 3, "\"DEAD=lost\" does not say");
    SAYS(&p, "--adopt --adopt-states 'DEAD=cancelled'", 3, "in these states?");
    check(&p, "9 2 3", untouched);
    pg_run(p.conn, "update queues.queue set queue = '' where id = job(1)");
    SAYS(&p, "--adopt --adopt-states 'dead=cancelled,RUN; \"\"ning\"\"=ready'", 3, "states?");
    pg_run(p.conn, "update queues.queue set state = 'GO=NE' where id = job(3)");
    SAYS(&p, "--adopt --adopt-states dead=cancelled,GO=NE=ready", 3,
         "name is empty or longer than 200");
    pg_run(p.conn, "update queues.queue set queue = 'x' where id = job(1)");
    SAYS(&p, "--adopt --adopt-zone Nowhere/Land", 5, "time zone \"Nowhere/Land\" not recognized");
    pg_run(p.conn,
           "update queues.queue set created = now() at time zone 'Asia/Tokyo' where id = job(1)");
    SAYS(&p, "--adopt --adopt-states dead=cancelled,GO=NE=ready", 3,
         "were made in the future: say --adopt-zone");
    pg_run(p.conn, "create table queues.other ()");
    SAYS(&p, "--adopt --adopt-states dead=cancelled,GO=NE=ready --adopt-zone Asia/Tokyo", 3,
         "1 more tables than the two");
    pg_run(p.conn, "drop table queues.other");
    SAYS(&p, "--adopt --adopt-states dead=cancelled,GO=NE=ready --adopt-zone Asia/Tokyo", 0,
         "read as Asia/Tokyo\n", "adopted: 7 jobs, 2 finished");
    check(&p, "cancelled", "select state from queues.history where id = job(4)");
    PQfinish(p.conn);
}

static void
a_failure_changes_nothing(void **state)
{
    struct place p;
    PGconn *other;

    (void)state;
    enter(&p, "failure");
    pg_run(p.conn, "%s", jobs);
    other = pg_connect(p.dsn);
    pg_run(other, "begin; select * from queues.queue for update");
    SAYS(&p, "--adopt", 3, "select * from queues.queue for update"); /* an old program at work */
    pg_run(other, "rollback");
    /* fails at the end, when all is moved, because a job of that id is there already */
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install --schema q", p.dsn), 0);
    pg_run(other, "insert into q.queue (id, queue) values (job(4), 'x')");
    SAYS(&p, "--schema q --adopt --adopt-from queues", 5, "duplicate key");
    check(&p, "9 2 4", untouched);
    check(&p, "1", "select count(*) from q.queue");
    /* into a queue that is in use already */
    pg_run(other, "delete from queues.queue where id = job(4)");
    SAYS(&p, "--schema q --adopt --adopt-from queues", 0,
         "adopted: 7 jobs, 1 finished ones to history, 2 leases");
    pg_run(other, "select * from q.schedule('t')");
    check(&p, "4", "select count(*) from q.claim('new', 10)"); /* 2 3 7, and the new 4 */
    PQfinish(other);
    PQfinish(p.conn);
}

static void
a_hundred_thousand_jobs(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "many");
    pg_run(p.conn, "alter table queues.queue add column note text; alter table queues.work_queue "
                   "add created timestamp not null default now();"
                   "insert into queues.queue (id, queue, state, payload, payload_type) select "
                   "gen_random_uuid(), 'q' || i %% 50, 'PENDING', "
                   "convert_to('{\"n\": ' || i || '}', 'UTF8'), 'application/json' from "
                   "generate_series(1, 100000) i;"
                   "insert into queues.work_queue (id, lock_key, started, lock_timeout, version) "
                   "select id, 'n' || tries, now(), now() + interval "
                   "'1 h', 3 from queues.queue limit 1000");
    SAYS(&p, "--adopt", 0, "not carried over, but still in the old tables: queue.note",
         "adopted: 100000 jobs, 0 finished ones to history, 1000 leases; 100000 payloads");
    check(&p, "99000 1000 100000",
          "select sum(ready) || ' ' || sum(running) || ' ' || sum(pushed) from queues.overview()");
    check(&p, "0",
          "select count(*) from queues.queue q join queues.queue_before_queuetop o using (id) "
          "where q.payload::text <> convert_from(o.payload, 'UTF8')");
    pg_run(p.conn, "select * from queues.schedule('t'); select * from queues.schedule('t')");
    check(&p, "0",
          "select count(*) from (select unnest(seqs) from queues.work_queue group by 1 having "
          "count(*) > 1) z");
    PQfinish(p.conn);
}

/* With wal_level minimal: a number that a sequence gave in the transaction that made the sequence
 * is not given again after a crash. */
static void
a_crash_repeats_no_number(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "repeat");
    pg_run(p.conn, "%s", jobs);
    SAYS(&p, "--adopt", 0, "adopted");
    int64_t seq = pg_int(p.conn, "select max(seq) from queues.queue"),
            lease = pg_int(p.conn, "select max(lease) from queues.work_queue");
    PQfinish(p.conn);
    pg_restart("immediate");
    p.conn = pg_connect(p.dsn);
    assert_true(pg_int(p.conn, "select nextval('queues.job_seq')") > seq);
    assert_true(pg_int(p.conn, "select nextval('queues.lease_seq')") > lease);
    PQfinish(p.conn);
}

static int
set_up(void **state)
{
    (void)state;
    pg_start(&(struct pg_opts){.is_durable = true, .conf = "fsync = off"}); /* for the crash */
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_noticed_and_explained),
        cmocka_unit_test(every_job_and_lease_is_kept),
        cmocka_unit_test(old_programs_fail_cleanly),
        cmocka_unit_test(what_is_unclear_is_refused),
        cmocka_unit_test(a_failure_changes_nothing),
        cmocka_unit_test(a_hundred_thousand_jobs),
        cmocka_unit_test(a_crash_repeats_no_number),
    };

    return cmocka_run_group_tests(tests, set_up, pg_group_stop);
}
