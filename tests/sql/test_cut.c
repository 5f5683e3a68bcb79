/*
 * Cutting: what stands in which lease. Ordinary queues are cut by arithmetic in one pass, those
 * where something is unusual (late jobs, a lowered cursor, timeouts of their own) by the general
 * statement; both in one step.
 */
#include "tests/sql/core.h"

/* Every free lease in order: queue, priority and the names of its jobs. */
static const char leases[] =
    "select string_agg(queue || priority || ':' || names, ' ' order by lease) from (select lease, "
    "w.queue, w.priority,"
    " string_agg(payload->>'name', ',' order by j.seq) as names from work_queue w join queue j on "
    "j.seq = any(w.seqs)"
    " and j.queue = w.queue where lock_key is null group by lease, w.queue, w.priority) z";

static PGconn *
new_cut(const char *database, const char *queue, int chunk)
{
    PGconn *c = core_new(database);

    pg_run(c,
           "insert into queue_config (queue, chunk) values ('%s', %d); update tick set want = 100",
           queue, chunk);
    return c;
}

static void
chunks_hold_one_priority(void **state)
{
    PGconn *c = new_cut("one_priority", "q", 3);

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c,d'), t.push('q', 'u,v', 0), t.push('q', 'x', 9), "
              "t.push('q', 'w', 0)");
    core_settle(c);
    expect(c, "q0:u,v,w q5:a,b,c q5:d q9:x", "%s", leases);
    pg_run(c, "select t.push('q', 'e,f'), t.push('q', 'y', 1)");
    core_settle(c);
    expect(c, "q0:u,v,w q1:y q5:a,b,c q5:d q5:e q5:f q9:x", "%s", leases);
    expect(c, "t",
           "select seq[1] = high[1] and seq[2] = high[2] and seq[6] = high[6] and seq[10] = "
           "high[10] and seq[1] = 8 and seq[2] = 11 and seq[6] = 10 and seq[10] = 7 and"
           " cardinality(seq) = 10 from cursor where queue = 'q' order by n desc limit 1");
    expect(c, "11", "select cardinality(string_to_array(t.claim('n', 20), ','))");
    core_check(c);
    PQfinish(c);
}

/* The share ends in the middle of a priority: the cursors stand right behind what was cut. */
static void
the_share_ends_between(void **state)
{
    PGconn *c = new_cut("share_ends", "q", 4);

    (void)state;
    pg_run(c, "update tick set want = 20; select t.many('q', 'a', 25), t.push('q', 'u,v', 0), "
              "t.push('q', 'z', 9)");
    pg_run(c, "select schedule('test')");
    expect(c, "2 4 4 4 4 2",
           "select string_agg(cardinality(seqs)::text, ' ' order by lease) from work_queue");
    expect(c, "u,v,a1,a2,a3", "select t.claim('n', 5)");
    expect(c, "15", "select cardinality(string_to_array(t.claim('n', 15), ','))");
    core_settle(c);
    expect(c, "a19,a20,a21,a22,a23,a24,a25,z", "select t.claim('n', 15)");
    core_check(c);
    PQfinish(c);
}

/* Leases of different queues alternate. */
static void
queues_take_turns(void **state)
{
    PGconn *c = new_cut("turns", "q", 2);

    (void)state;
    pg_run(c, "insert into queue_config (queue, chunk) values ('p', 2); select t.push('q', "
              "'a,b,c,d'), t.push('p', 'e,f,g,h')");
    core_settle(c);
    expect(c, "1 1 2 2",
           "select string_agg(batch_order::text, ' ' order by lease) from work_queue");
    expect(c, "2",
           "select count(distinct queue) from (select queue from work_queue order by lease limit "
           "2) z");
    expect(c, "2",
           "select count(distinct queue) from (select queue from work_queue order by lease desc "
           "limit 2) z");
    PQfinish(c);
}

static void
own_timeouts_own_leases(void **state)
{
    PGconn *c = new_cut("own_timeouts", "q", 3);

    (void)state;
    pg_run(c, "select t.push('p', 'x,y'), t.push('q', 'a,b'), push('q', '{\"name\": \"own\"}', "
              "run_timeout => '1 s'),"
              " t.push('q', 'c'), push('q', '{\"name\": \"slow\"}', lease_timeout => '1 h'), "
              "t.push('q', 'd')");
    core_settle(c);
    expect(c, "q5:a,b,c q5:d q5:own q5:slow",
           "select string_agg(x, ' ' order by x) from regexp_split_to_table((%s), ' ') x where x "
           "like 'q%%'",
           leases);
    expect(c, "p5:x,y",
           "select string_agg(x, ' ') from regexp_split_to_table((%s), ' ') x where x like 'p%%'",
           leases);
    expect(c, "01:00:00", "select max(lease_time) from work_queue");
    core_check(c);
    PQfinish(c);
}

/* One step: a queue with late jobs, one whose cursor was lowered over its leases, and an ordinary
 * one. */
static void
all_kinds_in_one_step(void **state)
{
    PGconn *c = new_cut("all_kinds", "late", 2), *a = core_join("all_kinds");

    (void)state;
    pg_run(c, "insert into queue_config (queue, chunk) values ('low', 2), ('plain', 2)");
    pg_run(a, "begin; select t.push('late', 'late1,late2,late3')");
    pg_run(c, "select t.push('late', 'a'), t.push('low', 'b,c,d'), t.push('plain', 'e')");
    core_settle(c);
    expect(c, "b,c", "select t.claim('n', 2, queues => '{low}')");
    pg_run(c, "select move_cursor('{low}', '{5}', '{0}', null)");
    pg_run(a, "commit");
    pg_run(c, "select t.push('late', 'f'), t.push('low', 'g'), t.push('plain', 'h')");
    pg_run(c, "select schedule('test')");
    expect(c, "late5:a late5:late1,late2 late5:late3,f low5:d low5:g plain5:e plain5:h",
           "select string_agg(x, ' ' order by x) from regexp_split_to_table((%s), ' ') x", leases);
    core_check(c);
    expect(c, "9", "select cardinality(string_to_array(t.claim('m', 20), ','))");
    core_settle(c);
    core_check(c);
    expect(c, "0", "select count(*) from work_queue where lock_key is null");
    PQfinish(a);
    PQfinish(c);
}

/* Other jobs, in leases of their own, lie between two jobs of one lease: each of the two is looked
 * for. */
static void
among_others_jobs(void **state)
{
    PGconn *c = core_new("among");

    (void)state;
    pg_run(c, "insert into queue_config (queue, chunk) values ('q', 2);"
              " select t.push('q', 'a'); select push('q', lease_timeout => '1 h') from "
              "generate_series(1, 30); select t.push('q', 'b')");
    pg_run(c, "update tick set want = 100, mark_at = 'infinity'");
    core_settle(c);
    expect(c, "t", "select scattered from work_queue where cardinality(seqs) = 2");
    expect(c, "30", "select count(*) from work_queue where scattered is null");
    PQfinish(c);
}

/* The start of claims moves on with each look, not only with each cut. While a snapshot is held,
 * every claim would have to pass one more dead lease for each lease that is finished. */
static void
claims_start_where_free_ones_do(void **state)
{
    PGconn *c = new_cut("start", "q", 2);

    (void)state;
    pg_run(c, "update tick set want = 20; select t.many('q', 'a', 40)");
    pg_run(c, "select schedule('test')");
    pg_run(
        c,
        "update tick set cut_at = now() + interval '1 min', mark_at = 'infinity'; update scheduler "
        "set until = clock_timestamp() + interval '9 s' where term > 0"); /* no cut is due */
    expect(c, "4", "select cardinality(string_to_array(t.claim('n', 4), ','))");
    expect(c, "4",
           "select count(*) from work_queue w cross join unnest(seqs) s "
           "cross join complete('n', array[w.lease], array[w.version], array[s]) where lock_key = "
           "'n'");
    expect(c, "0", "select cut from schedule('test')");
    expect(c, "t",
           "select free = (select min(lease) from work_queue where lock_key is null) "
           "from tick order by tick desc limit 1");
    expect(c, "16", "select cardinality(string_to_array(t.claim('n', 16), ','))");
    PQfinish(c);
}

/* Somebody frees a lease by hand, before the place where claims start: a claim finds it within a
 * second. */
static void
freed_by_hand(void **state)
{
    PGconn *c = new_cut("by_hand", "q", 1);

    (void)state;
    pg_run(c, "select t.push('q', 'a,b,c')");
    core_settle(c);
    expect(c, "a,b", "select t.claim('n', 2)");
    pg_run(c, "select t.push('q', 'd')");
    core_settle(c);
    pg_run(c, "update work_queue set lock_key = null, started = null, started_seqs = null, "
              "lock_timeout = null "
              "where lease = (select min(lease) from work_queue)");
    pg_run(c, "update tick set mark_at = '-infinity'"); /* the second is over */
    core_settle(c);
    expect(c, "a,c,d", "select t.claim('m', 3)");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(among_others_jobs),
        cmocka_unit_test(chunks_hold_one_priority),
        cmocka_unit_test(the_share_ends_between),
        cmocka_unit_test(queues_take_turns),
        cmocka_unit_test(own_timeouts_own_leases),
        cmocka_unit_test(all_kinds_in_one_step),
        cmocka_unit_test(freed_by_hand),
        cmocka_unit_test(claims_start_where_free_ones_do),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
