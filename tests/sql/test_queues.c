/*
 * Many queues, one a customer say: what a step costs follows what it has to do, never how many
 * queues there are; what is too much for a step is done in portions, each of them kept; and their
 * number is bounded. All is measured in processor time, pages and rows, so that no other load
 * changes it.
 */
#include "tests/sql/core.h"

static const char words[] =
    "create function t.spent() returns bigint language sql volatile as $$" /* ns on a processor */
    " select split_part(pg_read_file('/proc/self/schedstat', 0, 100), ' ', 1)::bigint $$;"
    "create function t.pages(ask text) returns bigint language plpgsql as $$ declare j json; begin"
    " execute 'explain (analyze, buffers, format json) ' || ask into j; return "
    "(j #>> '{0,Plan,Shared Hit Blocks}')::bigint + (j #>> '{0,Plan,Shared Read Blocks}')::bigint;"
    " end $$;"
    "create function t.pushed(n int) returns void language sql as $$"
    " insert into queue (queue, payload) select 'q' || to_char(i, 'FM000000'), '{}' from "
    "generate_series(1, n) i $$;"
    /* each step in a transaction of its own; the jobs are claimed and finished between */
    "create procedure t.work_off() language plpgsql as $$ declare h record; rest int := 0; begin"
    " while rest < 5 or (select more from tick order by tick desc limit 1) loop rest := rest + 1;"
    "  update tick set cut_at = cut_at - interval '1 s' where tick = (select max(tick) from tick);"
    "  perform schedule('test'); commit;"
    "  loop select array_agg(lease) l, array_agg(version) v, array_agg(seq) s into h"
    "    from claim('w', 500); exit when h.l is null; rest := 0;"
    "   perform complete('w', h.l, h.v, h.s, null::timestamptz[], null::bytea[]); commit;"
    "  end loop; end loop; end $$;";

static PGconn *
fresh(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, words);
    return c;
}

/* Processor time of the steps that make n new queues known. */
static int64_t
first_steps(int n)
{
    PGconn *c = fresh("first");

    pg_run(c, "select t.pushed(%d)", n);
    int64_t was = pg_int(c, "select t.spent()");
    do
        pg_run(c, "select schedule('test')");
    while (pg_int(c, "select count(*) from queue_config") < n);
    int64_t spent = pg_int(c, "select t.spent()") - was;
    PQfinish(c);
    pg_run(c = pg_connect(pg_dsn("postgres")), "drop database first");
    PQfinish(c);
    return spent;
}

/* Four times as many queues: four times the work, not sixteen times. */
static void
new_queues_cost_what_they_are(void **state)
{
    (void)state;
    int64_t few = first_steps(750);
    int64_t many = first_steps(3000);
    assert_true(many < 8 * few);
}

/* The pages of a step that cuts 400 jobs of a queue, beside `idle` queues with nothing to do. How
 * much a step cuts depends on earlier steps: that is set here, so that the same work is measured.
 */
static int64_t
step_beside(int idle)
{
    PGconn *c = fresh("beside");

    pg_run(c, "select t.pushed(%d)", idle);
    pg_run(c, "call t.work_off()");
    pg_run(c, "update tick set want = 20, rate = 0; select t.many('busy', 'b', 1000)");
    core_settle(c);
    pg_run(c, "vacuum");
    pg_run(c,
           "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0; select "
           "t.claim('w', 500); update tick set day_at = 'infinity', mark_at = 'infinity', cut_at = "
           "now() - interval '1 min', want = 400, weights = 1, rate = 0, filled = 0, free = 0, "
           "jobs = 0; update fold set at = now(), ms = 1000000"); /* no fold */
    int64_t pages = pg_int(c, "select t.pages('select * from schedule(''test'')')");
    expect(c, "400", "select sum(cardinality(seqs)) from work_queue where lock_key is null");
    PQfinish(c);
    pg_run(c = pg_connect(pg_dsn("postgres")), "drop database beside");
    PQfinish(c);
    return pages;
}

static void
idle_queues_cost_nothing(void **state)
{
    (void)state;
    int64_t few = step_beside(50);
    int64_t many = step_beside(12000);
    assert_in_range(many, 1, few + 200);
}

/* More names than a step takes: those of a step stay known when the next one is cancelled, and
 * every job is handed out once. */
static void
names_come_in_portions(void **state)
{
    PGconn *c = fresh("portions");

    (void)state;
    pg_run(c, "select t.pushed(1200)");
    pg_run(c, "select schedule('test')");
    expect(c, "500", "select count(*) from queue_config");
    pg_run(c, "begin; select schedule('test'); rollback");
    expect(c, "500", "select count(*) from queue_config");
    expect(c, "0", "select wait_ms from schedule('test')");
    expect(c, "1000", "select count(*) from queue_config");
    pg_run(c, "select schedule('test')");
    expect(c, "1200", "select count(*) from queue_config");
    pg_run(c, "call t.work_off()");
    expect(c, "1200 0",
           "select concat_ws(' ', (select count(distinct queue) from history), (select "
           "count(*) from queue))");
    core_check(c);
    PQfinish(c);
}

/* Thousands of names that one INSERT brings stop nobody: a queue that is known is cut by the step
 * that reads them, one that is new by the next. */
static void
names_delay_nobody(void **state)
{
    PGconn *c = fresh("burst");

    (void)state;
    pg_run(c, "select t.push('known', 'a')");
    core_settle(c);
    pg_run(c, "select t.claim('w', 10), t.pushed(3000), t.push('known', 'b')");
    pg_run(c, "select schedule('test')");
    expect(c, "1", "select count(*) from work_queue where queue = 'known' and lock_key is null");
    pg_run(c, "select t.push('new', 'c')");
    pg_run(c, "select schedule('test')");
    expect(c, "t", "select joining from tick order by tick desc limit 1");
    expect(c, "1", "select count(*) from queue_config where queue = 'new'");
    pg_run(c, "call t.work_off()");
    expect(c, "0", "select count(*) from queue where queue <> 'known'");
    core_check(c);
    PQfinish(c);
}

/* Rows of queue_config, leases and buckets that a look at the queues with limits reads beside so
 * many of them that have nothing to do. */
static int64_t
limited_beside(int idle)
{
    PGconn *c = fresh("limited");

    pg_run(c, "select t.pushed(%d)", idle);
    pg_run(c, "call t.work_off()");
    pg_run(c, "update queue_config set rate = 1000; insert into queue_config (queue, rate) "
              "values ('busy', 1)");
    pg_run(c, "select t.many('busy', 'b', 10)");
    core_settle(c);
    core_settle(c);
    expect(c, "{busy}", "select limited from tick order by tick desc limit 1");
    pg_run(c, "vacuum");
    /* The least of some steps, each undone: if the machine pauses for longer than a scheduler
     * lives, the step takes over and looks at every queue. */
    int64_t least = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        pg_run(c, "begin; update scheduler set until = clock_timestamp() + interval '9 s' where "
                  "term > 0; update tick set day_at = 'infinity', mark_at = 'infinity', "
                  "limited_at = '-infinity', settled = null; "
                  "update fold set at = now(), ms = 1000000");
        int64_t pages = pg_int(c, "select t.pages('select * from schedule(''test'')')");
        pg_run(c, "rollback");
        least = pages < least ? pages : least;
    }
    PQfinish(c);
    pg_run(c = pg_connect(pg_dsn("postgres")), "drop database limited");
    PQfinish(c);
    return least;
}

static void
idle_limits_cost_nothing(void **state)
{
    (void)state;
    int64_t few = limited_beside(20);
    int64_t many = limited_beside(1000);
    assert_in_range(many, 1, few + 50);
}

/* More queues with a rate wait than the list holds: all are passed in turn, and each gets its own.
 */
static void
many_limits_wait_at_once(void **state)
{
    PGconn *c = fresh("many_limits");

    (void)state;
    pg_run(c, "select t.pushed(1200); select t.pushed(1200)");
    pg_run(c, "insert into queue_config (queue, max_running) select distinct queue, 1 from queue");
    core_replace(c, "settle", "50 ms", "1 h"); /* a step looks at all of them */
    pg_run(c, "update tick set settled = ''");
    for (int i = 0; i < 12; i++)
        pg_run(c, "update tick set limited_at = '-infinity' where limits is not null; "
                  "select schedule('test')");
    expect(c, "1200 1",
           "select concat_ws(' ', count(*), max(n)) from (select sum(cardinality(seqs)) as n from "
           "work_queue group by queue) z");
    PQfinish(c);
}

/* The fold of the counters runs beside the steps. Leases do not wait for it, only one process at a
 * time folds, and a step folds only if nobody has folded for two seconds. */
static void
the_fold_stands_beside(void **state)
{
    PGconn *c = fresh("fold"), *other = core_join("fold");

    (void)state;
    pg_run(c, "select t.push('q', 'a')");
    core_settle(c);
    pg_run(c, "select t.push('q', 'b'); update fold set at = now(), ms = 0");
    int64_t fold = pg_int(c, "select max(fold) from fold");
    pg_run(c, "select schedule('test')");
    assert_int_equal(pg_int(c, "select max(fold) from fold"), fold);
    expect(c, "2", "select sum(cardinality(seqs)) from work_queue");
    pg_run(other, "begin; select from scheduler where term = -1 for update");
    expect(c, "f", "select fold_beside()");
    pg_run(c, "update fold set at = now() - interval '1 min'; select t.push('q', 'c')");
    pg_run(c, "select schedule('test')"); /* the step waits for nobody */
    expect(c, "3", "select sum(cardinality(seqs)) from work_queue");
    assert_int_equal(pg_int(c, "select max(fold) from fold"), fold);
    pg_run(other, "rollback");
    expect(c, "t", "select fold_beside()");
    pg_run(c, "update fold set at = now() - interval '3 s', ms = 0; select t.push('q', 'd')");
    fold = pg_int(c, "select max(fold) from fold");
    pg_run(c, "select schedule('test')");
    assert_true(pg_int(c, "select max(fold) from fold") > fold);
    core_check(c);
    PQfinish(other);
    PQfinish(c);
}

/* A claim that finds no scheduler makes the step, and folds: what it has told the planner for
 * itself doesn't reach these, or each fold would compare all queues with all. */
static void
a_claim_folds_as_well(void **state)
{
    PGconn *c = fresh("claims");
    int64_t spent[2];

    (void)state;
    pg_run(c, "select t.pushed(6000)");
    pg_run(c, "call t.work_off()");
    pg_run(c, "update scheduler set until = '-infinity' where term > 0");
    for (int i = 0; i < 2; i++) {
        pg_run(c,
               "insert into delta (queue, priority, completed, run_ms) select queue, 5, 1, 1 from "
               "queue_config");
        core_ten_seconds(c);
        int64_t fold = pg_int(c, "select max(fold) from fold");
        int64_t was = pg_int(c, "select t.spent()");
        pg_run(c, i == 0 ? "select fold_beside()" : "select claim('w', 1)");
        spent[i] = pg_int(c, "select t.spent()") - was;
        assert_true(pg_int(c, "select max(fold) from fold") > fold);
    }
    assert_true(spent[1] < 5 * spent[0] + 500 * 1000 * 1000);
    PQfinish(c);
}

/* Who takes over looks at every queue, some a step: it goes on where a cancelled step began. */
static void
a_take_over_comes_in_portions(void **state)
{
    PGconn *c = fresh("over");

    (void)state;
    pg_run(c, "select t.pushed(4500)");
    pg_run(c, "call t.work_off()");
    pg_run(c, "select t.many('q000001', 'a', 3), t.many('q004500', 'z', 3)");
    core_settle(c);
    core_replace(c, "settle", "50 ms", "1 h"); /* their number ends a portion, not the time */
    /* as if the cursors had been wrong: nothing but a take-over finds these */
    pg_run(c, "delete from work_queue; update scheduler set until = '-infinity' where term > 0");
    pg_run(c, "select schedule('other')");
    expect(c, "q002000", "select settled from tick order by tick desc limit 1");
    pg_run(c, "begin; select schedule('other'); rollback");
    pg_run(c, "select schedule('other')");
    expect(c, "q004000", "select settled from tick order by tick desc limit 1");
    expect(c, "0", "select count(*) from work_queue where queue = 'q004500'");
    pg_run(c, "select schedule('other')");
    expect(c, "t", "select settled is null from tick order by tick desc limit 1");
    expect(c, "3 3",
           "select string_agg(n::text, ' ') from (select sum(cardinality(seqs)) as n from "
           "work_queue group by queue) z");
    core_check(c);
    PQfinish(c);
}

/* A job that committed late is found twice by a takeover: in its range and from the first job on.
 * It is cut once. */
static void
a_late_job_at_a_take_over(void **state)
{
    PGconn *c = fresh("late_over"), *late = core_join("late_over");

    (void)state;
    pg_run(late, "begin; select t.push('q', 'late')");
    pg_run(c, "select t.push('q', 'b')");
    core_settle(c);
    pg_run(late, "commit");
    pg_run(c, "update scheduler set until = '-infinity' where term > 0");
    pg_run(c, "select schedule('other')");
    expect(c, "2 2", "select count(s) || ' ' || count(distinct s) from work_queue, unnest(seqs) s");
    core_check(c);
    PQfinish(late);
    PQfinish(c);
}

/* Thousands wait at once: all are passed in turn, some a cut, and none is left out. */
static void
many_wait_at_once(void **state)
{
    PGconn *c = fresh("many");

    (void)state;
    pg_run(c, "select t.pushed(1500); select t.pushed(1500); select t.pushed(1500)");
    pg_run(c, "insert into queue_config (queue, chunk) select distinct queue, 1 from queue");
    pg_run(c, "call t.work_off()");
    expect(c, "1500 3 3 0",
           "select concat_ws(' ', count(*), min(n), max(n), (select count(*) from queue)) from "
           "(select count(*) as n from history group by queue) z");
    expect(c, "t",
           "select waiting = '{}' and place is null and not more from tick order by tick "
           "desc limit 1");
    core_check(c);
    PQfinish(c);
}

/* A name beyond the bound waits, and delays no other. With more room its jobs come. */
static void
the_number_is_bounded(void **state)
{
    PGconn *c = fresh("bounded");

    (void)state;
    pg_run(c, "update setting set value = '5' where name = 'max_queues'; select t.pushed(8)");
    pg_run(c, "call t.work_off()");
    expect(c, "5 5 3",
           "select concat_ws(' ', (select count(*) from queue_config), (select count(*) "
           "from history), (select count(*) from queue))");
    pg_run(c, "select t.many('q000001', 'more', 10)");
    pg_run(c, "call t.work_off()");
    expect(c, "15", "select count(*) from history");
    core_ten_seconds(c);
    pg_run(c, "select schedule('test')");
    expect(c, "3 of 5", "select unserved || ' of ' || max_queues from shortfalls()");
    pg_run(c, "update setting set value = '7' where name = 'max_queues'");
    core_ten_seconds(c);
    pg_run(c, "select schedule('test'); select keep_books()");
    expect(c, "1 of 7", "select unserved || ' of ' || max_queues from shortfalls()");
    pg_run(c, "call t.work_off()");
    expect(c, "7 17",
           "select concat_ws(' ', (select count(*) from queue_config), (select count(*) "
           "from history))");
    core_check(c);
    PQfinish(c);
}

/* More deltas than a step should read: it reads none of them, and everything is found in portions:
 * new names, with priorities of their own and without a ready job, a late job, jobs that are due.
 */
static void
a_flood_comes_in_portions(void **state)
{
    PGconn *c = fresh("flood"), *late = core_join("flood");

    (void)state;
    pg_run(c, "create or replace function most_deltas() returns int language sql immutable as"
              " 'select 50'; select t.push('a', '1,2')");
    core_settle(c);
    pg_run(late, "begin; select t.push('a', 'late')");
    pg_run(c, "select t.push('a', '3')");
    core_settle(c);
    pg_run(c, "insert into queue (queue, priority, payload) select 'n' || i, mod(i, 10), '{}'"
              " from generate_series(1, 700) i; select t.push('later', 'l', 3, '1 h');"
              " insert into queue (queue, state, run_after, payload) select 'due', 'scheduled',"
              " now() - interval '1 min', '{}'");
    pg_run(late, "commit");
    pg_run(c, "select schedule('test')");
    expect(c, "2", "select count(*) from newcomer"); /* where the search began and where it is */
    expect(c, "t", "select count(*) between 400 and 502 from queue_config");
    core_settle(c);
    expect(c, "703", "select count(*) from queue_config");
    pg_run(c, "call t.work_off()");
    expect(c, "705 1",
           "select concat_ws(' ', (select count(*) from history), (select count(*) from queue))");
    pg_run(c, "update queue set run_after = now()");
    pg_run(c, "insert into queue (queue, run_after, payload) values ('due', now(), '{}')");
    pg_run(c, "call t.work_off()");
    expect(c, "0", "select count(*) from queue");
    /* a flood that was not committed at the last step */
    pg_run(late, "begin; insert into queue (queue, payload) select 'w' || i, '{}'"
                 " from generate_series(1, 51) i");
    pg_run(c, "select t.push('a', '4')");
    core_settle(c);
    expect(c, "f",
           "select (read_news(t)).flood from (select * from tick order by tick desc limit 1) t");
    pg_run(late, "commit");
    expect(c, "t",
           "select (read_news(t)).flood from (select * from tick order by tick desc limit 1) t");
    pg_run(c, "call t.work_off()");
    expect(c, "0", "select count(*) from queue");
    core_check(c);
    PQfinish(late);
    PQfinish(c);
}

/* After a flood the cursors of all names are looked at, and the cuts follow: one round through the
 * names is enough. A second one comes if the round has passed a name with new jobs. */
static void
a_flood_of_known_names_takes_one_round(void **state)
{
    static const char second_round[] =
        "select coalesce(bool_or(again), false) from tick where tick > (select max from t.was)";
    PGconn *c = fresh("round");

    (void)state;
    core_replace(c, "step_news", "2000", "600");
    core_replace(c, "settle", "50 ms", "1 min");
    pg_run(c, "create or replace function most_deltas() returns int language sql immutable as"
              " 'select 1000'; select t.pushed(1300)");
    pg_run(c, "call t.work_off()");
    pg_run(c, "create table t.was as select max(tick) from tick; select t.pushed(1300)");
    pg_run(c, "call t.work_off()");
    expect(c, "0 2600",
           "select concat_ws(' ', (select count(*) from queue), (select count(*) from history))");
    expect(c, "f", second_round);
    expect(c, "f t",
           "select concat((pass_all(t, '{q000702}')).again, ' ', (pass_all(t, '{q000700}')).again)"
           " from (select (jsonb_populate_record(z, '{\"place\": \"q000701\"}')).* from tick z"
           " order by tick desc limit 1) t");
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_queues_cost_what_they_are),
        cmocka_unit_test(idle_queues_cost_nothing),
        cmocka_unit_test(names_come_in_portions),
        cmocka_unit_test(names_delay_nobody),
        cmocka_unit_test(idle_limits_cost_nothing),
        cmocka_unit_test(many_limits_wait_at_once),
        cmocka_unit_test(the_fold_stands_beside),
        cmocka_unit_test(a_claim_folds_as_well),
        cmocka_unit_test(a_take_over_comes_in_portions),
        cmocka_unit_test(a_late_job_at_a_take_over),
        cmocka_unit_test(many_wait_at_once),
        cmocka_unit_test(a_flood_comes_in_portions),
        cmocka_unit_test(a_flood_of_known_names_takes_one_round),
        cmocka_unit_test(the_number_is_bounded),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
