/*
 * pgmq by its schema: a queue is a table of its own there, read through statements that the server
 * makes and quotes itself, and changed by pgmq's own functions.
 */
#include <string.h>

#include "tests/sql/other.h"

#define EVIL "evil\u202e \"queue:7"

static void
pgmq_is_shown(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "pgmq", "pgmq_shown");
    expect_look(&f, "pgmq", SEC_DETECT, "schema");
    expect_look(&f, "1.5", SEC_VERSION, "version");
    expect_look(&f, "{\"trace\": \"x\"}", SEC_JOB, "result", "ids={orders:2}");
    expect_look(&f, "ready running scheduled completed", SEC_JOBS, "state",
                "ids={orders:1,orders:3,orders:4,orders:101,orders:99,nobody:1,orders,orders:x}");
    expect_look(&f, "completed", SEC_JOB, "state", "ids={orders:101}");
    /* what no XML can hold comes through whole */
    expect_look(&f, pg_value(f.conn, "select message::text from pgmq.\"q_evil\u202e \"\"queue:7\""),
                SEC_JOB, "payload", "ids={\"evil\u202e \\\"queue:7:1\"}");
    pg_run(f.conn, "delete from pgmq.meta where queue_name <> 'orders'");
    expect_look(&f, "2", SEC_COUNTS, "scheduled");
    expect_look(&f, "3", SEC_COUNTS, "ready");
    expect_look(&f, "1", SEC_COUNTS, "running");
    expect_look(
        &f,
        pg_value(
            f.conn,
            "select (extract(epoch from vt) * 1000)::bigint from pgmq.q_orders where msg_id = 1"),
        SEC_COUNTS, "oldest_ms");
    expect_look(&f, "2", SEC_COUNTS_FINAL, "completed");
    other_close(&f);
}

static void
pgmq_lists_all_queues_in_one_order(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "pgmq", "pgmq_lists");
    expect_walk(&f,
                "orders:1 orders:2 Mails:1 " EVIL ":1 orders:5 orders:4 Mails:2 orders:3 orders:6",
                "not_words={}");
    expect_walk(&f, "Mails:1 Mails:2", "queue=Mails");
    expect_walk(&f, "orders:3 orders:6", "states={scheduled}");
    expect_walk(&f, "orders:4 Mails:2 orders:102 orders:101", "states={running,completed}");
    expect_walk(&f, "orders:4", "in_payload==4", "path={order}");
    expect_walk(&f, "Mails:1 Mails:2", "in_payload=~\"TO\"");
    expect_walk(&f, "orders:5 orders:4 Mails:2", "min_tries=1");
    /* the same moment in several queues */
    pg_run(f.conn, "update pgmq.q_orders set vt = 'epoch'; update pgmq.q_mails set vt = 'epoch'");
    expect_walk(&f,
                pg_value(f.conn,
                         "select string_agg(queue || ':' || msg_id, ' ' order by queue, msg_id) "
                         "from (select 'orders' as queue, msg_id from pgmq.q_orders "
                         "union all select 'Mails', msg_id from pgmq.q_mails) m"),
                "not_words={evil}");
    other_close(&f);
}

static void
pgmq_acts_by_its_functions(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "pgmq", "pgmq_acts");
    expect_act(&f, "Mails:2 ready, " EVIL ":1 ready, orders:3 ready", SEC_REQUEUE,
               "ids={orders:3,orders:3,Mails:2,mails:1,orders:99,nobody:1,x,\"evil\u202e "
               "\\\"queue:7:1\",orders:99999999999999999999}");
    expect_row(&f, "2",
               "select (select count(*) from pgmq.q_orders where msg_id = 3 and vt <= "
               "clock_timestamp()) + "
               "(select count(*) from pgmq.q_mails where msg_id = 2 and vt <= clock_timestamp())");
    expect_act(&f, "orders:4 ready", SEC_RESCUE, "ids={orders:4}");
    /* only messages that a reader has: no ready ones, and none that wait for their first time */
    expect_act(&f, "", SEC_EXTEND, "ids={orders:1,orders:3,orders:6,orders:101,orders:99}",
               "by=1 hour");
    expect_row(&f, "2",
               "select count(*) from pgmq.q_orders where (msg_id = 1 and vt <= now()) or "
               "(msg_id = 6 and vt = 'infinity')");
    pg_run(f.conn, "update pgmq.q_orders set vt = now() + interval '30 s' where msg_id in (4, 5)");
    expect_act(&f, "orders:4 extended, orders:5 extended", SEC_EXTEND, "ids={orders:4,orders:5}",
               "by=90.5 seconds");
    expect_row(&f, "91",
               "select round(extract(epoch from vt - now())) from pgmq.q_orders where msg_id = 5");
    expect_act(&f, "orders:5 extended", SEC_EXTEND, "ids={orders:5}", "by=10 seconds");
    expect_row(&f, "t", /* never shorter than what it has */
               "select vt - now() > interval '80 s' from pgmq.q_orders where msg_id = 5");
    expect_act(&f, "", SEC_EXTEND, "ids={orders:5}", "by=-1 seconds");
    assert_string_equal(adapter_note(f.a, SEC_EXTEND, "guard"),
                        "only messages that are running; never shortened");
    assert_non_null(strstr(adapter_lacks(f.a, SEC_PURGE), "delete rows of a_QUEUE by archived_at"));
    expect_act(&f, "orders:1 scheduled, orders:5 running", SEC_TIME, "ids={orders:1,orders:5}",
               pg_value(f.conn, "select 'at=' || now() + interval '1 hour'"));
    expect_row(&f, "60 60",
               "select string_agg(round(extract(epoch from vt - now()) / 60)::text, ' ') from "
               "pgmq.q_orders where msg_id in (1, 5)");
    expect_act(&f, "orders:1 ready", SEC_TIME, "ids={orders:1}", "at=2020-01-01");
    other_close(&f);
}

static void
pgmq_archives_and_deletes(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "pgmq", "pgmq_archive");
    expect_act(&f, "Mails:1 completed, orders:1 completed", SEC_DISCARD,
               "ids={orders:1,Mails:1,orders:99,orders:101}");
    expect_row(&f, "3", "select count(*) from pgmq.a_orders");
    expect_act(&f, "", SEC_DISCARD, "ids={orders:1}");
    expect_act(&f, "orders:2 deleted", SEC_DELETE,
               "ids={orders:1,orders:2,orders:101}"); /* the archive stays */
    expect_row(&f, "3", "select count(*) from pgmq.a_orders");
    expect_row(&f, "4", "select count(*) from pgmq.q_orders");
    /* a queue whose table is gone stops nothing */
    pg_run(f.conn, "drop table pgmq.q_mails");
    expect_walk(&f, EVIL ":1 orders:5 orders:4 orders:3 orders:6", "not_words={}");
    pg_run(f.conn, "delete from pgmq.meta where queue_name = 'orders'");
    expect_look(&f, "1", SEC_COUNTS, "ready");
    other_close(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pgmq_is_shown),
        cmocka_unit_test(pgmq_lists_all_queues_in_one_order),
        cmocka_unit_test(pgmq_acts_by_its_functions),
        cmocka_unit_test(pgmq_archives_and_deletes),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
