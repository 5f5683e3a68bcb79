/*
 * Speed that lasts, counted in pages touched and never in time: no call wades through other jobs or
 * through the dead rows of finished ones, whatever the planner knows about the tables, however long
 * somebody holds a snapshot; no job row is updated between push and done (rule 6).
 */
#include "tests/sql/core.h"

static void
make_probe(PGconn *c)
{
    pg_run(c, "create function t.pages(ask text) returns bigint language plpgsql as $$ declare j "
              "json; begin"
              " execute 'explain (analyze, buffers, format json) ' || ask into j;"
              " return (j->0->'Plan'->>'Shared Hit Blocks')::bigint + (j->0->'Plan'->>'Shared Read "
              "Blocks')::bigint;"
              " end $$");
}

/* The pages that a call touches once its session is warm: the least of some calls. */
static int64_t
pages(PGconn *c, const char *before, const char *ask)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < 4; i++) {
        pg_run(c, "%s", *before ? before : "select 1");
        int64_t n = pg_int(c, "select t.pages($x$%s$x$)", ask);
        least = n < least ? n : least;
    }
    return least;
}

static void
no_job_row_is_updated(void **state)
{
    PGconn *c = core_new("no_update");

    (void)state;
    pg_run(
        c,
        "create function t.no() returns trigger language plpgsql as $$ begin raise 'a job row is "
        "updated';"
        " end $$; create trigger no before update on queue for each row execute function t.no()");
    pg_run(c,
           "select t.push('q', 'a,b,c'), t.push('q', 'd', 0), push('q', lease_timeout => '1 h')");
    core_settle(c);
    pg_run(c, "begin");
    expect(c, "5", "select count(*) from claim('n', 5)");
    expect(c, "0",
           "select pg_stat_get_xact_tuples_updated('work_queue'::regclass) -"
           " pg_stat_get_xact_tuples_hot_updated('work_queue'::regclass)");
    expect(c, "t", "select pg_stat_get_xact_tuples_updated('work_queue'::regclass) > 0");
    pg_run(c, "rollback");
    pg_run(c, "select t.claim('n', 5); select t.extend('n'); select t.done('n')");
    expect(c, "5", "select count(*) from history");
    core_settle(c);
    PQfinish(c);
}

/* Each call beside 20,000 waiting jobs, most of them leased, and beside none. */
static const struct probe {
    const char *name, *before, *ask;
    int64_t most;
} probes[] = {
    {"claim",     "",                                           "select * from claim('n', 1)",                  40  },
    {"claim of",  "",                                           "select * from claim('n', 1, queues => '{q}')", 160 },
    {"complete",  "select t.claim('c', 1)",                     "select t.done('c')",                           50  },
    {"complete2", "select t.claim('c', 2)",
     "select t.done('c', (select name from"
     " t.held where node = 'c' order by n desc limit 1))",                                                      60  },
    {"fail",      "delete from t.held; select t.claim('f', 1)", "select t.fail('f')",                           90  },
    {"extend",    "delete from t.held; select t.claim('e', 1)", "select t.extend('e')",                         30  },
    {"back",      "delete from t.held; select t.claim('b', 1)", "select t.back('b')",                           110 },
    {"push",      "",                                           "select push('q', '1')",                        30  },
    {"step",      "select push('q', '1')",                      "select t.step()",                              900 },
    {"steal",
     "select t.claim('s', 1, '1 us'); update tick set mark_at = '-infinity' where tick = (select "
     "max(tick) from"
     " tick)",                                                  "select t.step()",                              1800},
};

static void
beside(PGconn *c, const char *what)
{
    int wading = 0;

    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        int64_t n = pages(c, probes[i].before, probes[i].ask);
        print_message("%s: %s touches %d pages, at most %d\n", what, probes[i].name, (int)n,
                      (int)probes[i].most);
        wading += n > probes[i].most;
    }
    assert_int_equal(wading, 0);
}

static void
small_work_beside_many_jobs(void **state)
{
    PGconn *c = core_new("beside");

    (void)state;
    make_probe(c);
    pg_run(c, "alter table queue set (autovacuum_enabled = off); alter table work_queue set "
              "(autovacuum_enabled ="
              " off)");
    pg_run(c, "select t.push('q', 'first,second')");
    core_settle(c);
    beside(c, "empty");
    pg_run(
        c,
        "select t.many('q', 'j', 20000), t.many('big', 'j', 20000); update tick set want = 20000");
    core_settle(c);
    beside(c, "never analyzed");
    pg_run(c, "analyze");
    PQfinish(c);
    c = core_join("beside");
    beside(c, "analyzed");
    PQfinish(c);
}

/* The sample of jobs that a canary tries. Of 60,000 failed jobs in more than 2,000 pages the sample
 * reads only some pages. If a queue has few of these jobs, the sample finds all of them. */
static void
a_sample_of_many_failed_jobs(void **state)
{
    static const char many[] = "select * from requeue_sample('many', error => 'broken 7')",
                      few[] = "select * from requeue_sample('few')";
    PGconn *c = core_new("sample");

    (void)state;
    make_probe(c);
    pg_run(
        c,
        "begin; set local session_replication_role = replica; insert into queue (queue, state, "
        "payload, error, error_key, changed) select case when i %% 5000 = 0 then 'few' else 'many' "
        "end, 'failed', to_json(repeat('x', 200)), 'broken ' || i, 'broken N', now() - interval "
        "'1 day' + i * interval '1 s' from generate_series(1, 60000) i; commit");
    expect(c, "t", "select pg_relation_size('queue') / current_setting('block_size')::int > 2000");
    int64_t n = pages(c, "", many);
    print_message("a sample of 60,000 touches %d pages\n", (int)n);
    assert_in_range(n, 1, 700);
    expect(c, "10,t,t",
           "select concat_ws(',', count(distinct s.id), min(changed) < now() - interval '22 h',"
           " max(changed) > now() - interval '9 h') from (%s) s join queue q on q.id = s.id::uuid",
           many);
    expect(c, "10,10",
           "select concat_ws(',', count(distinct s.id), count(*) filter (where"
           " q.queue = 'few')) from (%s) s join queue q on q.id = s.id::uuid",
           few);
    expect(c, "12", "select count(distinct id) from requeue_sample('few', n => 100)");
    PQfinish(c);
}

/* The pages of each call, where it took least: what is due each second is done by more of the steps
 * on a slow machine. second: steps that do it anyway. */
struct costs {
    int64_t push, step, second, claim, done;
};

static void
keep_least(int64_t *least, int64_t n)
{
    *least = n < *least ? n : *least;
}

/* Rounds of the straight path: ten jobs pushed, cut, claimed, done. */
static struct costs
rounds(PGconn *c, int n)
{
    /* in the first five minutes no fold counts the jobs */
    pg_run(c, "update meta set installed_at = now()");
    struct costs k = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};

    for (int i = 0; i < n; i++) {
        keep_least(&k.push, pg_int(c, "select t.pages('select t.many(''q'', ''j'', 10)')"));
        keep_least(i % 10 == 1 ? &k.second : &k.step,
                   pg_int(c, "select t.pages('select t.step()')"));
        keep_least(&k.claim, pg_int(c, "select t.pages('select count(*) from claim(''n'', 10)')"));
        const char *held =
            pg_value(c, "select format('%%L,%%L,%%L', array_agg(lease), array_agg(version),"
                        " array_agg(seq)) from (select lease, version, unnest(seqs) seq from live"
                        " where lock_key = 'n') z");
        keep_least(
            &k.done,
            pg_int(
                c,
                "select t.pages($x$select count(*) from complete('n', %s, null::timestamptz[])$x$)",
                held));
        if (i % 10 == 0) {
            core_second(c);
            core_ten_seconds(c);
        }
    }
    return k;
}

static void
hardly_more(const char *what, int64_t before, int64_t after)
{
    if (after > before * 3 / 2)
        fail_msg("%s: %d pages, %d before", what, (int)after, (int)before);
}

/* A snapshot held open for long: dead rows pile up, and no call meets them. */
static void
a_held_snapshot_slows_nothing(void **state)
{
    enum { N = 20, BETWEEN = 250 };
    PGconn *c = core_new("held_snapshot"), *old = core_join("held_snapshot");

    (void)state;
    make_probe(c);
    rounds(c, N);
    struct costs before = rounds(c, N);
    pg_run(old, "begin isolation level repeatable read; select count(*) from queue");
    rounds(c, BETWEEN);
    struct costs after = rounds(c, N);
    expect(old, "0", "select count(*) from queue");
    hardly_more("push", before.push, after.push);
    hardly_more("step", before.step, after.step);
    hardly_more("step of a second", before.second, after.second);
    hardly_more("claim", before.claim, after.claim);
    hardly_more("complete", before.done, after.done);
    pg_run(old, "commit");
    core_check(c);
    expect(c, "3100", "select count(*) from history");
    PQfinish(old);
    PQfinish(c);
}

/* Thousands of late jobs lie between two jobs of one lease: neither a claim of the two nor an
 * answer for them reads the late jobs. */
static void
far_apart(void **state)
{
    PGconn *c = core_new("far_apart"), *late = core_join("far_apart");
    int64_t claim = INT64_MAX, done = INT64_MAX;

    (void)state;
    make_probe(c);
    for (int i = 0; i < 4; i++) {
        pg_run(c, "select t.push('q%d', 'a')", i);
        pg_run(late, "begin; select t.many('q%d', 'late', 10000)", i);
        pg_run(c, "select t.push('q%d', 'b')", i);
        core_settle(c);
        pg_run(late, "commit");
        int64_t n = pg_int(c, "select t.pages('select t.claim(''n'', 2, null, ''{q%d}'')')", i);
        claim = n < claim ? n : claim;
        expect(c, "a,b", "select string_agg(name, ',' order by n) from t.held");
        n = pg_int(c, "select t.pages('select t.done(''n'')')");
        done = n < done ? n : done;
        expect(
            c, "2 10000",
            "select (select count(*) from history where queue = 'q%d') || ' ' || (select count(*) "
            "from queue where queue = 'q%d')",
            i, i);
    }
    print_message("far apart: claim touches %d pages, complete %d\n", (int)claim, (int)done);
    assert_in_range(claim, 1, 80);
    assert_in_range(done, 1, 120);
    PQfinish(late);
    PQfinish(c);
}

/* A flood of deltas is not read as a whole, neither by a step nor by a worker that looks for new
 * jobs. This holds for deltas since the last step, and for deltas that were not committed at that
 * time. */
static void
a_flood_is_not_read(void **state)
{
    static const char last[] = "(select * from tick order by tick desc limit 1) t";

    (void)state;
    for (int was_open = 0; was_open < 2; was_open++) {
        PGconn *c = core_new(was_open ? "open_flood" : "new_flood");
        PGconn *late = core_join(was_open ? "open_flood" : "new_flood");
        char ask[400];

        make_probe(c);
        pg_run(c, "select t.push('q', 'a')");
        core_settle(c);
        pg_run(late, "begin; insert into delta (queue, priority, ready, min_seq, max_seq)"
                     " select 'f' || i, 5, 1, i, i from generate_series(1, 60000) i");
        if (was_open) {
            pg_run(c, "select t.push('q', 'b')");
            core_settle(c);
        }
        pg_run(late, "commit");
        expect(c, "t", "select (read_news(t)).flood from %s", last);
        expect(c, "step", "select (take_new(t, 'n', 1, null, null, true)).state from %s", last);
        snprintf(ask, sizeof ask, "select (read_news(t)).n from %s", last);
        int64_t step = pages(c, "", ask);
        snprintf(ask, sizeof ask, "select (take_new(t, 'n', 1, null, null, true)).state from %s",
                 last);
        int64_t look = pages(c, "", ask);
        print_message("a flood: a step touches %d pages, a look %d\n", (int)step, (int)look);
        assert_in_range(step, 1, 700);
        assert_in_range(look, 1, 100);
        PQfinish(late);
        PQfinish(c);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_job_row_is_updated),
        cmocka_unit_test(small_work_beside_many_jobs),
        cmocka_unit_test(a_sample_of_many_failed_jobs),
        cmocka_unit_test(a_held_snapshot_slows_nothing),
        cmocka_unit_test(far_apart),
        cmocka_unit_test(a_flood_is_not_read),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
