/*
 * Everything at once: pushers that hold and give up transactions, workers that finish, fail, give
 * back and vanish, two schedulers that both believe in themselves. At rest no job is lost, none was
 * completed twice, and the books are right.
 */
#include "tests/sql/core.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { PUSHERS = 4, WORKERS = 6, SCHEDULERS = 2, BATCHES = 15, QUEUES = 4 };

static void
begin_random(PGconn *conn, int i)
{
    const char *seed = getenv("SEED"); /* for other storms than the usual one */

    pg_run(conn, "select setseed(0.1 * %d / %d)", i, PUSHERS + WORKERS);
    srandom((unsigned)(seed ? strtol(seed, NULL, 10) : 0) + (unsigned)i + 1);
}

static bool
goes_on(PGconn *conn)
{
    return pg_int(conn, "select count(*) from t.over") < PUSHERS ||
           pg_int(conn, "select count(*) from queue") > 0;
}

/* Batches of 1 to 10 in transactions that stay open for a while; every sixth is given up. */
static void
pusher(PGconn *conn, int i)
{
    for (int batch = 0; batch < BATCHES; batch++) {
        pg_run(conn, "begin");
        for (long n = random() % 3; n >= 0; n--) {
            pg_run(conn,
                   "select t.many('q%d', 'p%d-%d-%d-', 1 + (4 * random())::int, (10 * random() - "
                   "0.5)::int)",
                   (int)(random() % QUEUES), i, batch, (int)n);
            if (random() % 4 == 0)
                pg_run(conn, "select t.push('q0', 'd%d-%d-%d', 5, '%d ms')", i, batch, (int)n,
                       (int)(random() % 200));
            poll(NULL, 0, (int)(random() % 40));
        }
        /* not by xmin: a batch may be inserted in a subtransaction */
        pg_run(conn, "insert into t.pushed select id from queue where created = now()");
        pg_run(conn, random() % 6 ? "commit" : "rollback");
    }
    pg_run(conn, "insert into t.over values (%d)", i);
}

/* Answers for the jobs that it holds, and notes which of them the queue took as done. */
static void
finish(PGconn *conn, const char *node)
{
    pg_run(conn,
           "with h as (select array_agg(lease order by n) l, array_agg(version order by n) v, "
           "array_agg(seq order by n) s"
           " from t.held where node = '%s'), r as (select x.* from h, complete('%s', l, v, s, "
           "null::timestamptz[],"
           " null::bytea[]) x) insert into t.effect select id from r join t.held using (seq) where "
           "node = '%s' and outcome"
           " = 'done'",
           node, node, node);
}

static void
worker(PGconn *conn, int i)
{
    char node[16];

    snprintf(node, sizeof node, "w%d", i);
    while (goes_on(conn)) {
        const char *got = pg_value(conn, "select t.claim('%s', %d, '%d ms', start => %s)", node,
                                   (int)(1 + random() % 12), (int)(30 + random() % 300),
                                   random() % 2 ? "true" : "false");
        if (!*got) {
            poll(NULL, 0, 5);
            continue;
        }
        switch (random() % 8) {
        case 0:
            pg_run(conn, "select t.fail('%s', null, 'storm', '%d ms')", node, (int)(random() % 50));
            break;
        case 1:
            pg_run(conn, "select t.back('%s')", node);
            break;
        case 2: /* too late, perhaps */
            poll(NULL, 0, (int)(random() % 400));
            finish(conn, node);
            break;
        case 3:
            break; /* never heard of again */
        default:
            pg_run(conn, "select t.extend('%s')", node);
            finish(conn, node);
        }
        pg_run(conn, "delete from t.held where node = '%s'", node);
    }
}

static void
scheduler(PGconn *conn, int i)
{
    while (goes_on(conn)) {
        poll(NULL, 0, (int)pg_int(conn, "select least(wait_ms, 20) from schedule('s%d')", i));
        if (random() % 200 == 0) /* the active one is taken for dead */
            pg_run(conn, "update scheduler set until = now() where term > 0");
        if (random() % 5 == 0)
            core_second(conn);
    }
}

static void
member(PGconn *conn, int i)
{
    begin_random(conn, i);
    if (i < PUSHERS)
        pusher(conn, i);
    else if (i < PUSHERS + WORKERS)
        worker(conn, i);
    else
        scheduler(conn, i);
}

static void
storm(void **state)
{
    PGconn *c = core_new("storm");

    (void)state;
    pg_run(c, "create table t.pushed (id uuid primary key); create table t.effect (id uuid); "
              "create table t.over (i int);"
              " insert into queue_config (queue, max_tries, max_running) values ('q0', 10000, "
              "null), ('q1', 10000, 2),"
              " ('q2', 10000, null), ('q3', 10000, null)");
    core_crowd("storm", PUSHERS + WORKERS + SCHEDULERS, member);
    assert_in_range(pg_int(c, "select count(*) from t.pushed"), 100, 100000);
    expect(c, "0", "select count(*) from queue");
    expect(c, "0",
           "select count(*) from (select id from t.pushed except all select id from t.effect) z");
    expect(c, "0",
           "select count(*) from (select id from t.effect except all select id from t.pushed) z");
    expect(c, "0",
           "select count(*) from (select id from t.pushed except all select id from history where "
           "state ="
           " 'completed') z");
    expect(c, "t",
           "select (select sum(completed) from t.counts) = (select count(*) from t.pushed) and "
           "(select sum(pushed)"
           " from t.counts) = (select count(*) from t.pushed)");
    /* tries and attempts tell the same story */
    expect(c, "0",
           "select count(*) from (select id, tries - 1 as n from history) h left join (select job, "
           "count(*) as n from"
           " attempt group by job) a on a.job = h.id where h.n <> coalesce(a.n, 0)");
    core_settle(c);
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storm),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
