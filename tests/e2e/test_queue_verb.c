/*
 * `queuetop queue NAME`: each option sets what it says, in the database, and nothing else.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/proc.h"
#include "tests/server.h"

static char dsn[300];
static PGconn *conn;

static int
set_up(void **state)
{
    pg_group_start(state);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("queue_verb"));
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    conn = pg_connect(dsn);
    pg_run(conn, "insert into queues.queue (queue) values ('q'); select queues.schedule('test')");
    return 0;
}

static int
tear_down(void **state)
{
    PQfinish(conn);
    return pg_group_stop(state);
}

static void
each_option_sets_its_own(void **state)
{
    /* what is typed, and what it changes in the row of the queue */
    static const char *const rows[][2] = {
        {"--weight 3",        "{\"weight\": 3}"                                                },
        {"--limit 7",         "{\"max_running\": 7}"                                           },
        {"--rate 90/min",     "{\"rate\": 1.5}"                                                },
        {"--burst 4",         "{\"burst\": 4}"                                                 },
        {"--per-key 2",       "{\"max_per_key\": 2}"                                           },
        {"--chunk 20",        "{\"chunk\": 20}"                                                },
        {"--timeout 90s",     "{\"lease_timeout\": \"00:01:30\"}"                              },
        {"--run-timeout 5m",  "{\"run_timeout\": \"00:05:00\"}"                                },
        {"--max-tries 9",     "{\"max_tries\": 9}"                                             },
        {"--backoff 2s..90s", "{\"backoff_max\": \"00:01:30\", \"backoff_base\": \"00:00:02\"}"},
        {"--retention 3d",    "{\"retention\": \"72:00:00\"}"                                  },
        {"--history meta",    "{\"history\": \"meta\"}"                                        },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pg_run(conn, "create temp table was as select to_jsonb(c) as row from queues.queue_config "
                     "c where queue = 'q'");
        if (proc_run(NULL, NULL, NULL, "-d \"%s\" queue q %s --yes", dsn, rows[i][0]) != 0)
            fail_msg("%s was refused", rows[i][0]);
        const char *changed =
            pg_value(conn, "select jsonb_object_agg(k, v) from was, queues.queue_config c, "
                           "jsonb_each(to_jsonb(c)) e (k, v) where c.queue = 'q' and row -> k is "
                           "distinct from v");
        if (pg_int(conn, "select ('%s'::jsonb = '%s'::jsonb)::int", changed, rows[i][1]) != 1)
            fail_msg("%s changed %s", rows[i][0], changed);
        pg_run(conn, "drop table was");
    }
}

/* The same rule as for options that the program reads itself: a number alone is no time. */
static void
a_time_has_its_unit(void **state)
{
    static const char *const options[] = {"--timeout", "--run-timeout", "--backoff", "--retention"};

    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        proc_check(2, NULL, "such as 90s, 5m or 7d, or default, not \"30\"",
                   "-d \"%s\" queue q %s 30 --yes", dsn, options[i]);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" queue q --backoff 0 --yes", dsn), 0);
    /* the option is named, not the setting */
    proc_check(2, NULL, "queue: --limit takes a whole number",
               "-d \"%s\" queue q --limit ten --yes", dsn);
    proc_check(2, NULL, "queue: --backoff takes", "-d \"%s\" queue q --backoff soon --yes", dsn);
}

static void
pause_and_resume(void **state)
{
    (void)state;
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" queue q --pause --yes", dsn), 0);
    assert_string_equal(pg_value(conn, "select count(*) from queues.claim('n', 1)"), "0");
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" queue q --resume --yes", dsn), 0);
    pg_wait(conn, "select count(*) from queues.claim('n', 1)", "1", 5000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_sets_its_own),
        cmocka_unit_test(a_time_has_its_unit),
        cmocka_unit_test(pause_and_resume),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
