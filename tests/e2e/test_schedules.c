/*
 * The Schedules screen: what it shows of runs that were and will be, its trouble, and every act of
 * it with what the database says afterwards.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
add(const char *name, const char *settings, const char *payload)
{
    pg_run(con_db(), "select from schedule_set(gen_random_uuid(), '%s', '%s', '%s')", name,
           settings, payload);
}

/* Daily at the hour that is twelve hours away: nothing falls due while the test runs. */
static void
add_daily(const char *name, const char *queue)
{
    pg_run(con_db(),
           "select from schedule_set(gen_random_uuid(), '%s', jsonb_build_object('cron', "
           "format('0 %%s * * *', date_part('hour', now() at time zone 'UTC' + interval '12 h')), "
           "'queue', '%s'), '{\"a\": 1}')",
           name, queue);
}

static void
to_schedules(struct vt *vt, int rows, int cols, const char *option, const char *want)
{
    con_start(vt, rows, cols, option);
    vt_keys(vt, "5");
    vt_want(vt, want);
}

static void
shows_runs(void **state)
{
    static const int sizes[][2] = {
        {24, 80 },
        {45, 140},
        {20, 60 }
    };
    struct vt vt;

    (void)state;
    add_daily("nightly", "report");
    pg_run(con_db(), "select cron_push(s, now() - interval '2 h') from schedule s");
    pg_run(con_db(), "insert into cron_run (schedule, due, error) values ('nightly', now() - "
                     "interval '1 h', 'missed: nobody came')");
    pg_run(con_db(), "select from schedule('t')");
    pg_run(con_db(), "select from claim('w', 1)");
    pg_run(con_db(), "select f.* from work_queue w, fail('w', array[w.lease], array[w.version], "
                     "w.seqs, array['printer on fire'], final => array[true]) f");
    to_schedules(&vt, 24, 80, NULL, "nightly");
    vt_want(&vt, "nightly: last runs, UTC");
    vt_want(&vt, "not pushed");
    vt_want(&vt, "missed: nobo");
    vt_want(&vt, "next ten times");
    vt_want(&vt, "nightly: the job of its last run failed: printer on fire");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        vt_resize(&vt, sizes[i][0], sizes[i][1]);
        vt_want(&vt, "not pushed");
        vt_want(&vt, "× failed");
    }
    vt_keys(&vt, "/ text:elsewhere enter");
    vt_want(&vt, "no schedule has these words");
    vt_keys(&vt, "esc");
    vt_want(&vt, "not pushed");
    vt_resize(&vt, 45, 140);
    vt_keys(&vt, "v");
    vt_want(&vt, "-- last runs");
    vt_keys(&vt, "esc y");
    vt_want(&vt, "nightly   (--clipboard");
    vt_keys(&vt, "enter");
    vt_want(&vt, "printer on fire");
    vt_want(&vt, "jobs › report");
    vt_keys(&vt, "esc");
    vt_want(&vt, "last runs");
    con_quit(&vt);
}

/* Nothing of it is asked while another screen is in front. */
static void
hidden_it_asks_nothing(void **state)
{
    struct vt vt;

    (void)state;
    add_daily("nightly", "report");
    to_schedules(&vt, 24, 80, NULL, "next ten times");
    vt_keys(&vt, "2");
    vt_want(&vt, "unfinished jobs");
    vt_gone(&vt, "asking");
    vt_settle(&vt, 100);
    pg_run(con_db(), "drop function cron_result");
    con_asks_on(2500);
    vt_gone(&vt, "older version");
    vt_keys(&vt, "5");
    vt_want(&vt, "older version"); /* the console takes a missing function for an older version */
    con_quit(&vt);
}

static void
runs_one_now(void **state)
{
    struct vt vt;

    (void)state;
    add_daily("nightly", "report");
    to_schedules(&vt, 24, 80, NULL, "nightly");
    vt_keys(&vt, "n");
    vt_want(&vt, "Run a schedule now");
    vt_want(&vt, "schedule nightly");
    vt_keys(&vt, "esc");
    vt_want(&vt, "nothing was changed");
    assert_int_equal(con_count("true"), 0);
    vt_keys(&vt, "n");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "cron run: 1 schedule run (job ");
    assert_int_equal(con_count("queue = 'report'"), 1);
    vt_want(&vt, "· ready");
    assert_string_equal(pg_value(con_db(), "select string_agg(verb, ',' order by at) from audit"),
                        "schedule set,schedule run");
    con_quit(&vt);
}

static void
pauses_and_resumes(void **state)
{
    struct vt vt;

    (void)state;
    add_daily("nightly", "report");
    to_schedules(&vt, 24, 80, NULL, "nightly");
    vt_keys(&vt, "p");
    vt_want(&vt, "Pause schedule: nightly");
    vt_type(&vt, "disk is full");
    vt_keys(&vt, "enter");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "cron pause: 1 schedule paused");
    assert_string_equal(
        pg_value(con_db(), "select pause_reason || ' ' || (next_run is null) from schedule"),
        "disk is full true");
    vt_want(&vt, "next, once resumed");
    vt_keys(&vt, "p");
    vt_want(&vt, "Resume a schedule");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "cron resume: 1 schedule resumed (next ");
    assert_string_equal(pg_value(con_db(), "select paused_at is null and next_run > now() from "
                                           "schedule"),
                        "t");
    con_quit(&vt);
}

static void
adds_one(void **state)
{
    struct vt vt;

    (void)state;
    add_daily("nightly", "report");
    to_schedules(&vt, 24, 80, NULL, "nightly");
    vt_keys(&vt, "N enter");
    vt_want(&vt, "name: a schedule needs a name");
    vt_keys(&vt, "text:nightly enter");
    vt_want(&vt, "there is a schedule of this name");
    vt_keys(&vt, "text:2 tab");
    vt_type(&vt, "0 25 * * *");
    vt_keys(&vt, "enter");
    vt_want(&vt, "queue: empty");
    vt_keys(&vt, "text:pdf enter");
    vt_want(&vt, "cron line \"0 25 * * *\": hour: 25 is not within 0-23");
    vt_keys(&vt, "C-u");
    vt_type(&vt, "0 12 * * *");
    vt_keys(&vt, "tab C-u text:Mars/Olympus enter");
    vt_want(&vt, "zone \"Mars/Olympus\": there is no time zone");
    vt_keys(&vt, "C-u text:Asia/Tokyo tab tab text:page tab text:{x enter");
    vt_want(&vt, "payload \"{x\": payload: invalid input syntax for type json");
    vt_keys(&vt, "C-u");
    vt_type(&vt, "{\"n\": 1}");
    vt_keys(&vt, "tab tab tab right tab right enter"); /* all, and one at a time: not both */
    vt_want(&vt, "exclude each other");
    vt_keys(&vt, "left enter");
    vt_want(&vt, "12:00 Asia/Tokyo)");
    vt_want(&vt, "F2 count again");
    vt_want(&vt, "payload {\"n\": 1}"); /* what it will push, each time */
    assert_int_equal(pg_int(con_db(), "select count(*) from schedule"), 1);
    vt_keys(&vt, "esc"); /* back to the form, with all that was typed */
    vt_want(&vt, "one at a time");
    vt_keys(&vt, "enter");
    vt_want(&vt, "F2 count again");
    vt_keys(&vt, "y");
    vt_want(&vt, "cron add: 1 schedule added (next ");
    vt_gone(&vt, "New schedule");
    assert_string_equal(
        pg_value(con_db(),
                 "select concat_ws('|', cron, tz, queue, kind, priority, payload, catch_up, "
                 "only_one) from schedule where name = 'nightly2'"),
        "0 12 * * *|Asia/Tokyo|pdf|page|5|{\"n\": 1}|all|f");
    con_quit(&vt);
}

static void
changes_one(void **state)
{
    struct vt vt;

    (void)state;
    add("a",
        "{\"cron\": \"0 0 1 1 *\", \"queue\": \"q\", \"max_tries\": 3, \"payload_type\": "
        "\"text/plain\", \"comment\": \"x\"}",
        "caf\xc3\xa9");
    to_schedules(&vt, 24, 80, NULL, "0 0 1 1 *");
    vt_keys(&vt, "e");
    vt_want(&vt, "Change schedule: a");
    vt_keys(&vt, "enter");
    vt_want(&vt, "nothing was changed in the form");
    vt_keys(&vt, "C-u");
    vt_type(&vt, "@every 12h");
    vt_keys(&vt, "up C-u enter"); /* the comment goes */
    vt_want(&vt, "schedule → changed (next ");
    vt_keys(&vt, "y");
    vt_want(&vt, "cron add: 1 schedule changed");
    assert_string_equal(pg_value(con_db(), "select concat_ws('|', cron, queue, max_tries, "
                                           "payload_type, convert_from(body, 'UTF8'), comment) "
                                           "from schedule"),
                        "@every 12h|q|3|text/plain|caf\xc3\xa9|");
    vt_want(&vt, "@every 12h");
    vt_keys(&vt, "e");
    vt_want(&vt, "Change schedule: a");
    pg_run(con_db(), "select from schedule_set(gen_random_uuid(), 'a', '{\"queue\": \"other\"}')");
    con_asks_on(3000); /* the screen behind the form has read the change */
    vt_keys(&vt, "C-u text:@daily enter");
    vt_want(&vt, "somebody has changed the schedule meanwhile");
    assert_string_equal(pg_value(con_db(), "select cron from schedule"), "@every 12h");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

/* Texts with a joiner, which no line can show: they stay when something else is changed. */
static void
keeps_what_a_line_cannot_show(void **state)
{
    struct vt vt;

    (void)state;
    add("a", "{\"cron\": \"0 0 1 1 *\", \"queue\": \"q\u200Cr\"}", "{\"a\":\"x\u200Cy\"}");
    to_schedules(&vt, 24, 80, NULL, "0 0 1 1 *");
    vt_keys(&vt, "e");
    vt_want(&vt, "Change schedule: a");
    vt_keys(&vt, "C-u");
    vt_type(&vt, "@every 12h");
    vt_keys(&vt, "tab tab");
    vt_want(&vt, "no line can hold it: it stays as it is");
    vt_keys(&vt, "tab tab z");
    vt_want(&vt, "F5 opens it in the editor");
    vt_keys(&vt, "enter");
    vt_want(&vt, "schedule → changed (next ");
    vt_keys(&vt, "y");
    vt_want(&vt, "cron add: 1 schedule changed");
    assert_string_equal(
        pg_value(con_db(), "select concat_ws('|', cron, queue, payload::text) from schedule"),
        "@every 12h|q\u200Cr|{\"a\":\"x\u200Cy\"}");
    con_quit(&vt);
}

static void
removes_one(void **state)
{
    struct vt vt;

    (void)state;
    add_daily("nightly", "report");
    pg_run(con_db(), "select cron_push(s, now()) from schedule s");
    to_schedules(&vt, 24, 80, NULL, "nightly");
    vt_keys(&vt, "D");
    vt_want(&vt, "Remove a schedule");
    vt_want(&vt, "Type the name to go on");
    vt_keys(&vt, "y enter text:night enter");
    vt_want(&vt, "The text differs from the one above");
    assert_int_equal(pg_int(con_db(), "select count(*) from schedule"), 1);
    vt_keys(&vt, "C-u text:nightly enter");
    vt_want(&vt, "cron remove: 1 schedule removed");
    vt_want(&vt, "no schedule: N adds one");
    assert_int_equal(pg_int(con_db(), "select count(*) from schedule"), 0);
    assert_int_equal(con_count("queue = 'report'"), 1);
    vt_keys(&vt, "6");
    vt_want(&vt, "schedule remove");
    vt_want(&vt, "CHANGE");
    assert_string_equal(pg_value(con_db(), "select string_agg(verb, ',' order by at) from audit"),
                        "schedule set,schedule remove");
    con_quit(&vt);
}

static void
looking_only(void **state)
{
    static const char *const keys[] = {"n", "p", "N", "e", "D"};
    struct vt vt;

    (void)state;
    add_daily("nightly", "report");
    to_schedules(&vt, 24, 80, "--read-only", "nightly");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        vt_keys(&vt, keys[i]);
        vt_want(&vt, "--read-only");
        vt_keys(&vt, "j");
        vt_gone(&vt, "--read-only");
    }
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 1);
    con_quit(&vt);
}

/* What goes wrong with a schedule is said in words. */
static void
tells_of_trouble(void **state)
{
    struct vt vt;

    (void)state;
    add_daily("nightly", "report");
    pg_run(con_db(), "select cron_push(s, now() - interval '1 h') from schedule s");
    pg_run(con_db(), "select from pause(gen_random_uuid(), 'report', 'month close')");
    to_schedules(&vt, 24, 100, NULL, "queue paused");
    vt_want(&vt, "nightly: its queue report is paused by postgres");
    pg_run(con_db(), "update schedule set tz = 'Gone/Away', next_run = now()");
    pg_run(con_db(), "select cron_due(now())");
    vt_want(&vt, "could not push: stands still");
    vt_want(&vt, "never");
    pg_run(con_db(), "select from resume(gen_random_uuid(), 'report', null)");
    pg_run(con_db(),
           "update schedule set tz = 'UTC', error = null, next_run = now() + interval '1 h'");
    pg_run(con_db(), "insert into cron_run (schedule, due, error) values ('nightly', now() - "
                     "interval '3 h', 'missed')");
    vt_want(&vt, "nightly missed 1 of its last runs");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(shows_runs, con_empty),
        cmocka_unit_test_setup(hidden_it_asks_nothing, con_empty),
        cmocka_unit_test_setup(runs_one_now, con_empty),
        cmocka_unit_test_setup(pauses_and_resumes, con_empty),
        cmocka_unit_test_setup(adds_one, con_empty),
        cmocka_unit_test_setup(changes_one, con_empty),
        cmocka_unit_test_setup(keeps_what_a_line_cannot_show, con_empty),
        cmocka_unit_test_setup(removes_one, con_empty),
        cmocka_unit_test_setup(looking_only, con_empty),
        cmocka_unit_test_setup(tells_of_trouble, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
