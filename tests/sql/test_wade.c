/*
 * What a call costs follows its own jobs: not the square of their number, not the jobs of others,
 * not the dead rows that a held snapshot keeps. Measured in pages, or as processor time of the
 * server's process against that of fewer jobs in the same run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sql/core.h"

/* Processor time that the session's process has had so far, in clock ticks: fields 14 and 15. */
static int64_t
ticks(const PGconn *c)
{
    char path[64], line[1024];

    snprintf(path, sizeof path, "/proc/%d/stat", PQbackendPID(c));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    char *at = strrchr(line, ')');
    for (int field = 2; field < 14; field++) {
        assert_non_null(at);
        at = strchr(at + 1, ' ');
    }
    assert_non_null(at);
    int64_t user = strtoll(at, &at, 10);
    return user + strtoll(at, &at, 10);
}

/* n jobs in 20 queues, each in a lease of its own or ten in one, claimed by node n; the time of one
 * call that answers for all. */
static int64_t
answer_time(PGconn *c, int n, const char *answer)
{
    pg_run(c,
           "delete from t.held; insert into queue (queue, payload)"
           " select 'q' || i %% 20, '{}' from generate_series(1, %d) i",
           n);
    for (int64_t got = 0; got < n;) {
        pg_run(c, "update tick set want = 20000 where tick = (select max(tick) from tick)");
        core_settle(c);
        pg_run(c,
               "insert into t.held (node, lease, version, seq, id, queue) select 'n', lease, "
               "version, seq, id, queue from claim('n', %d, '1 h')",
               n - (int)got);
        got = pg_int(c, "select count(*) from t.held");
    }
    int64_t before = ticks(c);
    expect(c, pg_value(c, "select '%d'", n), "%s", answer);
    return ticks(c) - before;
}

/* Four calls for 500 jobs and one for 4000: twice the jobs in all, eight times the square. */
static void
not_the_square(const char *database, const char *answer)
{
    PGconn *c = core_new(database);
    int64_t small = 0, large;

    pg_run(c, "set enable_seqscan = off");
    answer_time(c, 500, answer);
    for (int i = 0; i < 4; i++)
        small += answer_time(c, 500, answer);
    large = answer_time(c, 4000, answer);
    print_message("%s: %" PRId64 " ticks for 4 x 500 jobs, %" PRId64 " for 4000\n", database, small,
                  large);
    assert_true(large <= 6 * small + 20);
    core_check(c);
    PQfinish(c);
}

static void
many_fail_in_one_call(void **state)
{
    (void)state;
    not_the_square(
        "many_fail",
        "with h as (select array_agg(lease order by n) l, array_agg(version order by n) v,"
        " array_agg(seq order by n) s, array_agg('x'::text) e from t.held)"
        " select count(*) from h, fail('n', h.l, h.v, h.s, h.e, final => array_fill(true, "
        "array[cardinality(h.l)]))"
        " where outcome in ('retry', 'failed')");
}

/* One job of the last lease is answered for twice, so that the call takes the long way. */
static void
many_complete_in_part(void **state)
{
    (void)state;
    not_the_square(
        "many_complete",
        "with h as (select array_agg(lease order by n) l, array_agg(version order by n) v,"
        " array_agg(seq order by n) s from t.held)"
        " select count(*) from h, complete_rest('n', h.l, h.v, h.s, null, null)"
        " where outcome = 'done'");
}

/* A fold that fails, or is cancelled as it takes too long, undoes no lease of its step. */
static void
a_fold_undoes_no_lease(void **state)
{
    static const char *const codes[] = {"57014", "22003"};
    PGconn *c = core_new("fold_fails");

    (void)state;
    pg_run(c, "alter function fold_now() rename to fold_well");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        pg_run(c,
               "create or replace function fold_now() returns boolean language plpgsql as $$ begin "
               "raise 'broken' using errcode = '%s'; end $$",
               codes[i]);
        pg_run(c, "update fold set at = at - interval '1 h'; select t.push('q', 'a,b,c')");
        core_settle(c);
        expect(c, "3000", "select ms from fold order by fold desc limit 1");
        expect(c, "a,b,c", "select t.claim('n', 3)");
        expect(c, "done,done,done", "select t.done('n')");
    }
    pg_run(c, "drop function fold_now(); alter function fold_well() rename to fold_now");
    pg_run(c, "update fold set at = at - interval '1 h'");
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

/* Pages that a statement touches. */
static int64_t
pages(PGconn *c, const char *sql)
{
    static const char *const kinds[] = {"\"Shared Hit Blocks\": ", "\"Shared Read Blocks\": "};
    PGresult *res = pg_query(c, "explain (analyze, buffers, format json) %s", sql);
    int64_t n = 0;

    for (int i = 0; i < 2; i++) {
        const char *at = strstr(PQgetvalue(res, 0, 0), kinds[i]); /* the first is the whole */
        assert_non_null(at);
        n += strtoll(at + strlen(kinds[i]), NULL, 10);
    }
    PQclear(res);
    return n;
}

/* A step that has nothing to do, twice: what it plans the first time does not count. */
static int64_t
idle_step(PGconn *c, const char *before)
{
    int64_t n = 0;

    for (int i = 0; i < 2; i++) {
        pg_run(c, "%s", before);
        n = pages(c, "select * from schedule('test')");
    }
    return n;
}

/* Inserts and deletes n jobs. Their dead rows stay as long as a held snapshot needs them. No
 * counter counts them. */
static void
dead_jobs(PGconn *c, int n, const char *columns, const char *values)
{
    pg_run(c,
           "begin; set local session_replication_role = replica;"
           " insert into queue (queue, payload, %s) select 'q', '{}', %s"
           " from generate_series(1, %d) i; delete from queue where queue = 'q'; commit",
           columns, values, n);
}

/* A thousand jobs are due at one instant, at which many others were: what was promoted is not read
 * again until a later job is due. */
static void
due_at_one_instant(void **state)
{
    PGconn *c = core_new("one_instant"), *holder = core_join("one_instant");

    (void)state;
    core_settle(c);
    int64_t fresh = idle_step(c, "select 1");
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    dead_jobs(c, 20000, "state, run_after", "'scheduled', '2020-01-01'");
    pg_run(c, "insert into queue (queue, payload, state, run_after) select 'r', '{}', 'scheduled',"
              " '2020-01-01' from generate_series(1, 1000)");
    /* each is found by its id once, not once for each of the thousand */
    int64_t promoting = pages(c, "select promoted from schedule('test')");
    print_message("a thousand promoted: %" PRId64 " pages\n", promoting);
    expect(c, "1000", "select count(*) from queue where queue = 'r' and state = 'ready'");
    assert_true(promoting < 150000);
    core_settle(c);
    int64_t held = idle_step(c, "select 1");
    print_message("an idle step: %" PRId64 " pages, %" PRId64 " fresh\n", held, fresh);
    assert_true(held < fresh + 100);
    pg_run(c, "insert into queue (queue, payload, state, run_after) select 'r', '{}', 'scheduled',"
              " '2020-01-01' from generate_series(1, 3)"); /* they come late */
    expect(c, "3", "select promoted from schedule('test')");
    core_check(c);
    PQfinish(holder);
    PQfinish(c);
}

/* After a flood the names that nobody knows are looked for. The dead rows of known names, which a
 * snapshot keeps, stand between them and are not read. */
static void
names_between_known(void **state)
{
    PGconn *c = core_new("names_known"), *holder = core_join("names_known");
    static const char look[] = "select queues, upto from next_names('', 100)";

    (void)state;
    pg_run(c, "select t.push(q, 'j') from unnest('{a,q,z}'::text[]) q");
    core_settle(c);
    int64_t fresh = (pages(c, look), pages(c, look));
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    dead_jobs(c, 50000, "state", "'ready'");
    dead_jobs(c, 50000, "state, run_after", "'scheduled', now()");
    expect(c, "NULL", "select queues from next_names('', 100)");
    int64_t held = pages(c, look);
    print_message("names: %" PRId64 " pages, %" PRId64 " fresh\n", held, fresh);
    assert_true(held < fresh + 50);
    pg_run(c, "insert into queue (queue, payload) values ('A', '1'), ('b', '1'), ('zz', '1'), "
              "('r', '1')");
    pg_run(c, "insert into queue (queue, payload, state, run_after) values"
              " ('aa', '1', 'scheduled', now()), ('p', '1', 'retry', now())");
    expect(c, "{A,aa,b,p,r,zz}",
           "select array(select unnest(queues) order by 1) from next_names('', 100)");
    expect(
        c, "{p,r}",
        "select array(select unnest(queues) order by 1) from next_names('b', 4)"); /* p, q, r, z */
    expect(c, "z", "select upto from next_names('b', 4)");
    expect(c, "NULL", "select upto from next_names('b', 6)");
    PQfinish(holder);
    PQfinish(c);
}

/* A thousand jobs expire in one step: each is found by its id once. */
static void
a_thousand_expire(void **state)
{
    PGconn *c = core_new("many_expire");

    (void)state;
    core_settle(c);
    pg_run(c, "insert into queue (queue, payload, expires_at) select 'r', '{}', now()"
              " from generate_series(1, 1000)");
    int64_t expiring = pages(c, "select * from expire('-infinity', 0, 1000)");
    print_message("a thousand expired: %" PRId64 " pages\n", expiring);
    expect(c, "1000", "select count(*) from history where error = 'expired'");
    assert_true(expiring < 150000);
    core_check(c);
    PQfinish(c);
}

/* What a worker without a session of its own asks while it is idle, twice. */
static int64_t
idle_look(PGconn *c)
{
    int64_t n = 0;

    for (int i = 0; i < 2; i++)
        n = pages(c, "select * from claim_or_wait('w', 1)");
    return n;
}

/* Jobs that were cancelled before their time, under a snapshot: those of an hour from now on are
 * read by no look, those whose time has passed by one step. A job that is due is found all the
 * same, and so is one whose time has long passed. */
static void
due_and_cancelled(void **state)
{
    PGconn *c = core_new("due_cancelled"), *holder = core_join("due_cancelled");
    static const char
        alone[] = "update scheduler set until = '-infinity' where term > 0",
        lives[] = "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0";

    (void)state;
    core_settle(c);
    int64_t step = idle_step(c, "select 1"), look = idle_look(c), claim = 0, held;
    pg_run(c, alone);
    claim = idle_look(c);
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    dead_jobs(c, 100000, "state, run_after", "'scheduled', now() + interval '1 h'");
    dead_jobs(c, 100000, "state, run_after", "'scheduled', now() - i * interval '1 ms'");
    pg_run(c, "select schedule('test')"); /* behind those that have passed */
    held = idle_step(c, lives);
    print_message("an idle step: %" PRId64 " pages, %" PRId64 " fresh\n", held, step);
    assert_true(held < step + 100);
    pg_run(c, lives);
    held = idle_look(c);
    print_message("an idle look: %" PRId64 " pages, %" PRId64 " fresh\n", held, look);
    assert_true(held < look + 100);
    pg_run(c, alone);
    held = idle_look(c);
    print_message("a look without a scheduler: %" PRId64 " pages, %" PRId64 " fresh\n", held,
                  claim);
    assert_true(held < claim + 200); /* it reads the dead versions of the row of schedulers, too */
    pg_run(c, "insert into queue (queue, payload, state, run_after) select 'r', '{}', 'scheduled',"
              " now() - i * interval '1 h' from generate_series(0, 2) i");
    expect(c, "3", "select promoted from schedule('test')");
    core_check(c);
    PQfinish(holder);
    PQfinish(c);
}

/* Jobs with a time to expire were completed long before it, under a snapshot: they are looked
 * through once, not at each step. What expires, or came with its time over, is found all the same.
 */
static void
expired_long_ago(void **state)
{
    PGconn *c = core_new("long_ago"), *holder = core_join("long_ago");
    static const char again[] = "update lane set expire_at = now(), expire_all = 'infinity'";

    (void)state;
    core_settle(c);
    int64_t fresh = idle_step(c, again);
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    dead_jobs(c, 100000, "expires_at", "now() - i * interval '1 ms'");
    pg_run(c, "update lane set expire_at = '-infinity'; select schedule('test')");
    int64_t held = idle_step(c, again);
    print_message("an idle step: %" PRId64 " pages, %" PRId64 " fresh\n", held, fresh);
    assert_true(held < fresh + 100);
    pg_run(
        c,
        "insert into queue (queue, payload, expires_at) values ('r', '{\"name\": \"a\"}', now());"
        " %s; select schedule('test')",
        again);
    expect(c, "a cancelled", "select t.finished()");
    pg_run(c, "insert into queue (queue, payload, expires_at) values ('r', '{\"name\": \"b\"}',"
              " now() - interval '1 h'); update lane set expire_at = now(), expire_all = now();"
              " select schedule('test')");
    expect(c, "a cancelled,b cancelled", "select t.finished()");
    core_check(c);
    PQfinish(holder);
    PQfinish(c);
}

/* One job of key k ends and the next becomes ready: the pages of the step between, in which it is
 * not time to look at all waiting jobs of the key again. */
static int64_t
next_of_key(PGconn *c, const char *again)
{
    pg_run(c,
           "select t.claim('n', 9); select t.done('n'); update lane set due = '-infinity',"
           " hot_at = now(), hot_all = %s",
           again);
    int64_t n = pages(c, "select * from schedule('test')");
    expect(c, "1", "select count(*) from queue where state = 'ready' and concurrency_key = 'k'");
    return n;
}

/* A key got tens of thousands of jobs under a snapshot: the next costs what the first cost. A job
 * whose transaction took long is found all the same, and so are other keys' jobs. */
static void
one_key_for_long(void **state)
{
    PGconn *c = core_new("one_key"), *holder = core_join("one_key");
    static const char soon[] = "now() + interval '1 min'";
    int64_t fresh = 0, held = 0;

    (void)state;
    pg_run(c, "insert into queue (queue, concurrency_key, payload) select 'r', 'k', '{}'"
              " from generate_series(1, 9)");
    core_settle(c);
    for (int i = 0; i < 3; i++)
        fresh = next_of_key(c, soon);
    pg_run(c, "delete from queue; select recount(); update lane set hot = '{}'");
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    dead_jobs(c, 20000, "state, concurrency_key", "'blocked', 'k'");
    dead_jobs(c, 20000, "state, concurrency_key", "'ready', 'k'");
    pg_run(c, "insert into queue (queue, concurrency_key, payload) select 'q', 'k',"
              " json_build_object('name', i) from generate_series(1, 9) i");
    core_settle(c);
    for (int i = 0; i < 2; i++) /* ten seconds each */
        pg_run(c, "update lane set hot_at = '-infinity', laps = 2, due = '-infinity';"
                  " select schedule('test')");
    for (int i = 0; i < 3; i++)
        held = next_of_key(c, soon);
    print_message("the next of a key: %" PRId64 " pages, %" PRId64 " fresh\n", held, fresh);
    assert_true(held < 2 * fresh + 100);
    pg_run(c, "insert into queue (queue, concurrency_key, payload) values ('q', 'j', '{\"name\":"
              " \"j\"}'), ('q', 'z', '{\"name\": \"z\"}'), ('p', 'k', '{\"name\": \"p\"}');"
              " update lane set due = '-infinity'; select schedule('test')");
    expect(c, "4", "select count(*) from queue where state = 'ready'");
    pg_run(c, "insert into queue (seq, queue, concurrency_key, payload)"
              " values (1, 'q', 'k', '{\"name\": \"late\"}')");
    next_of_key(c, "'-infinity'");
    expect(c, "late", "select payload ->> 'name' from queue where state = 'ready'");
    core_check(c);
    PQfinish(holder);
    PQfinish(c);
}

/* Fifty keys got jobs under a snapshot: a look at all of them costs what the first cost. */
static void
fifty_keys_for_long(void **state)
{
    static const char round[] = "select t.claim('n', 200); select t.done('n');"
                                " update lane set due = '-infinity', laps = 2, hot_at = %s,"
                                " hot_all = now() + interval '1 min'";
    PGconn *c = core_new("fifty_keys"), *holder = core_join("fifty_keys");
    int64_t fresh = 0, held = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        if (i == 1) {
            pg_run(c, "delete from queue; select recount(); update lane set hot = '{}'");
            pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
            dead_jobs(c, 10000, "state, concurrency_key", "'blocked', 'k' || mod(i, 50)");
            dead_jobs(c, 10000, "state, concurrency_key", "'ready', 'k' || mod(i, 50)");
        }
        pg_run(c,
               "insert into queue (queue, concurrency_key, payload) select '%s', 'k' || mod(i, 50),"
               " '{}' from generate_series(1, 450) i",
               i ? "q" : "r");
        core_settle(c);
        for (int n = 0; n < 3; n++) { /* ten seconds each */
            pg_run(c, round, "'-infinity'");
            pg_run(c, "select schedule('test')");
        }
        pg_run(c, round, "now()");
        *(i ? &held : &fresh) = pages(c, "select * from schedule('test')");
    }
    expect(c, "50", "select count(*) from queue where state = 'ready'");
    print_message("fifty keys: %" PRId64 " pages, %" PRId64 " fresh\n", held, fresh);
    assert_true(held < 2 * fresh + 100);
    core_check(c);
    PQfinish(holder);
    PQfinish(c);
}

/* A schedule keeps its last 100 runs. The runs before them were deleted under a snapshot: no later
 * run reads them. */
static void
runs_that_are_gone(void **state)
{
    static const char one[] = "select cron_push(s, '2026-01-01'::timestamptz + interval '%d min')"
                              " from schedule s";
    char sql[200];
    PGconn *c = core_new("runs_gone"), *holder = core_join("runs_gone");

    (void)state;
    pg_run(c, "insert into schedule (name, cron, queue, only_one)"
              " values ('s', '* * * * *', 'q', true)");
    pg_run(c, "do $$ begin for i in 1 .. 150 loop perform cron_push(s, '2026-01-01'::timestamptz"
              " + i * interval '1 min') from schedule s; end loop; end $$");
    snprintf(sql, sizeof sql, one, 151);
    int64_t fresh = pages(c, sql);
    pg_run(holder, "begin isolation level repeatable read; select count(*) from queue");
    pg_run(c, "do $$ begin for i in 152 .. 6000 loop perform cron_push(s, '2026-01-01'::timestamptz"
              " + i * interval '1 min') from schedule s; end loop; end $$");
    snprintf(sql, sizeof sql, one, 6001);
    int64_t held = pages(c, sql);
    print_message("a run: %" PRId64 " pages, %" PRId64 " fresh\n", held, fresh);
    expect(c, "100", "select count(*) from cron_run");
    assert_true(held < fresh + 300);
    PQfinish(holder);
    PQfinish(c);
}

/* The times of a schedule that are over stay in the index under a snapshot. A step reads them once,
 * and not for each of its looks. */
static void
times_that_are_over(void **state)
{
    static const char step[] = "select cron_due()", first[] = "select min(next_run) from schedule";
    PGconn *c = core_new("times_over"), *holder = core_join("times_over");

    (void)state;
    pg_run(c, "set enable_seqscan = off; insert into schedule (name, cron, queue, next_run)"
              " values ('s', '@hourly', 'q', now() + interval '1 h')");
    int64_t fresh = (pages(c, step), pages(c, step));
    pg_run(holder, "begin isolation level repeatable read; select count(*) from schedule");
    pg_run(c,
           "begin; insert into schedule (name, cron, queue, next_run) select 'd' || i, '@hourly',"
           " 'q', now() - i * interval '1 s' from generate_series(1, 20000) i;"
           " delete from schedule where name <> 's'; commit");
    int64_t once = (pages(c, first), pages(c, first)), held = (pages(c, step), pages(c, step));
    print_message("a look at schedules: %" PRId64 " pages, %" PRId64 " fresh, %" PRId64 " to read"
                  " the old times\n",
                  held, fresh, once);
    assert_true(once > 200);
    assert_true(held < fresh + once + 100);
    pg_run(c, "update schedule set next_run = now() - interval '3 h'");
    expect(c, "t", "select cron_due() > now()");
    expect(c, "1", "select count(*) from queue");
    PQfinish(holder);
    PQfinish(c);
}

/* Pages of statements that look for ids of the caller's own, which are no v7 uuids, each by itself:
 * of jobs that are new, or (ID) finished. The first time, in which they are planned, does not
 * count. */
static void
own_id_pages(PGconn *c, const char *finished, int64_t *pages_of)
{
    static const char *const asks[] = {
        "select push('q', '1', id => gen_random_uuid())",
        "select push('q', '1', id => 'ID')",
        ("select count(*) from push_many(array[gen_random_uuid(), uuid_v7()], array['q', 'q'], "
         "again => true)"),
        "select * from requeue_preview(array['ID'::uuid])",
        "select * from requeue(gen_random_uuid(), 1, array['ID'::uuid])",
        "select * from discard(gen_random_uuid(), 1, array['ID'::uuid])",
        "select * from set_priority(gen_random_uuid(), 1, array['ID'::uuid], 3)",
    };

    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        char *ask = strdup(pg_value(c, "select replace($$%s$$, 'ID', '%s')", asks[i], finished));
        assert_non_null(ask);
        pages(c, ask);
        pages_of[i] = pages(c, ask);
        free(ask);
    }
}

/* Finished jobs with ids of the caller's own are found by an index however many there are, and
 * those with v7 ids among them as if these were alone. */
static void
own_ids_in_history(void **state)
{
    static const char add[] =
        "insert into history (id, created, finished, state, priority, tries, queue, kind, payload)"
        " select %s, now(), now(), 'completed', 5, 1, 'q', '', '1' from generate_series(1, %d) i";
    PGconn *c = core_new("own_ids");
    int64_t few[7], many[7];
    char *seven;

    (void)state;
    pg_run(c, add, "'6ba7b810-9dad-41d1-80b4-00c04fd430c8'::uuid", 1);
    own_id_pages(c, "6ba7b810-9dad-41d1-80b4-00c04fd430c8", few);
    pg_run(c, add, "case when i % 3 = 0 then uuid_v7() else gen_random_uuid() end", 30000);
    pg_run(c, add, "'6ba7b810-9dad-41d1-80b4-00c04fd430c9'::uuid", 1);
    pg_run(c, add, "case when i % 3 = 0 then uuid_v7() else gen_random_uuid() end", 30000);
    pg_run(c, "select brin_summarize_new_values(i.indexrelid) from pg_index i join pg_class r on"
              " r.oid = i.indexrelid join pg_am a on a.oid = r.relam where a.amname = 'brin'"
              " and r.relkind = 'i'");
    own_id_pages(c, "6ba7b810-9dad-41d1-80b4-00c04fd430c9", many);
    for (int i = 0; i < 7; i++) {
        print_message("own ids, statement %d: %" PRId64 " pages, %" PRId64 " alone\n", i, many[i],
                      few[i]);
        assert_true(many[i] < few[i] + 100);
    }
    seven = strdup(pg_value(c, "select format('select * from history_of(array[%%L::uuid])', id)"
                               " from history where not own_id(id) offset 9000 limit 1"));
    assert_non_null(seven);
    assert_true(pages(c, seven) < 100);
    free(seven);
    core_check(c);
    PQfinish(c);
}

/* Days of history, each with three pages of queue long; 300 jobs of queue short are too old. */
static void
many_days(PGconn *c, int days)
{
    pg_run(c, "insert into queue_config (queue, retention) values ('long', '99 days'),"
              " ('short', '1 day')");
    pg_run(c,
           "do $$ declare d timestamptz; begin for i in 1 .. %d loop"
           " d := date_trunc('day', now(), 'UTC') - i * interval '24 h';"
           " execute format('create table if not exists %%I partition of history for values"
           " from (%%L) to (%%L)',"
           " to_char(d at time zone 'UTC', '\"history_\"YYYYMMDD'), d, d + interval '24 h');"
           " insert into history (id, created, finished, state, priority, tries, queue, kind)"
           " select uuid_v7(), d, d, 'completed', 5, 1, 'long', '' from generate_series(1, 300);"
           " end loop; end $$",
           days);
    pg_run(c,
           "insert into history (id, created, finished, state, priority, tries, queue, kind)"
           " select uuid_v7(), d, d, 'completed', 5, 1, 'short', '' from generate_series(1, 300),"
           " date_trunc('day', now() - interval '72 h', 'UTC') d");
    pg_run(c, "analyze history");
}

/* The pages of a trim, and of an undo that brings 300 jobs back. What is planned the first time
 * does not count, nor what every act reads, however few jobs it is about: its look at the rights on
 * each table. */
static void
trim_and_undo(PGconn *c, int64_t *pages_of)
{
    pages(c, "select n from trim_history('', 0, 0)");
    pages_of[0] = pages(c, "select n from trim_history('', 500, 2000)");
    expect(c, "0", "select count(*) from history where queue = 'short'");
    int64_t undone[3];
    for (int i = 0; i < 3; i++) {
        int n = i < 2 ? 1 : 300;
        char of[40], ask[120];
        snprintf(of, sizeof of, "%s", pg_value(c, "select gen_random_uuid()"));
        snprintf(ask, sizeof ask, "select * from undo(gen_random_uuid(), 1, '%s')", of);
        pg_run(c, "select push('u', delay => '1 h') from generate_series(1, %d)", n);
        pg_run(c, "select cancel('%s', 1, array(select id from queue where queue = 'u'))", of);
        expect(c, "0", "select count(*) from queue");
        undone[i] = pages(c, ask);
        assert_int_equal(pg_int(c, "select count(*) from queue"), n);
        pg_run(c, "delete from queue");
    }
    pages_of[1] = undone[2] - undone[1];
}

/* A finished job that is deleted, or comes back, is looked for in its own day only. */
static void
days_are_not_looked_through(void **state)
{
    PGconn *c = core_new("few_days"), *d = core_new("many_days");
    int64_t few[2], many[2];

    (void)state;
    many_days(c, 3);
    many_days(d, 60);
    trim_and_undo(c, few);
    trim_and_undo(d, many);
    for (int i = 0; i < 2; i++) {
        print_message("300 %s: %" PRId64 " pages with 60 days, %" PRId64 " with 3\n",
                      i ? "undone" : "trimmed", many[i], few[i]);
        assert_true(many[i] < few[i] + 3000);
    }
    PQfinish(c);
    PQfinish(d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(due_at_one_instant),          cmocka_unit_test(names_between_known),
        cmocka_unit_test(a_thousand_expire),           cmocka_unit_test(expired_long_ago),
        cmocka_unit_test(due_and_cancelled),           cmocka_unit_test(one_key_for_long),
        cmocka_unit_test(fifty_keys_for_long),         cmocka_unit_test(own_ids_in_history),
        cmocka_unit_test(many_fail_in_one_call),       cmocka_unit_test(many_complete_in_part),
        cmocka_unit_test(a_fold_undoes_no_lease),      cmocka_unit_test(runs_that_are_gone),
        cmocka_unit_test(days_are_not_looked_through), cmocka_unit_test(times_that_are_over),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
