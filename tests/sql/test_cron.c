/*
 * Cron lines: what they mean, what is wrong with one, and the next time by the clock of a zone,
 * over both changes of the clock. The rule at these is that of cron(8): fixed times run once, at
 * the change if they are missing; lines with * first in minute or hour go by real time.
 */
#include "tests/sql/core.h"

#include <stdio.h>
#include <string.h>

static PGconn *conn;

static int
set_up(void **state)
{
    core_setup(state);
    conn = core_new("cron");
    pg_run(conn, "set timezone = 'UTC'");
    return 0;
}

static int
tear_down(void **state)
{
    PQfinish(conn);
    return core_teardown(state);
}

/* The next three times, in UTC. */
static void
next(const char *line, const char *zone, const char *after, const char *expected)
{
    const char *is =
        pg_value(conn,
                 "select string_agg(to_char(t, case when date_part('second', t) = 0 then 'YYMMDD "
                 "HH24:MI' else 'YYMMDD HH24:MI:SS' end), ', ' order by t)"
                 " from cron_times('%s', '%s', 3, '%s') t",
                 line, zone, after);

    if (strcmp(is, expected) != 0)
        fail_msg("%s in %s after %s: %s, expected %s", line, zone, after, is, expected);
}

static void
lines_mean_what_crontab_says(void **state)
{
    (void)state;
    next("*/20 * * * *", "UTC", "2026-11-21 10:30Z", "261121 10:40, 261121 11:00, 261121 11:20");
    next("5 4 * * *", "UTC", "2026-11-21 04:05Z", "261122 04:05, 261123 04:05, 261124 04:05");
    next("5 4 * * *", "UTC", "2026-11-21 04:04:59.9Z", "261121 04:05, 261122 04:05, 261123 04:05");
    next("0 8-18/5,20 * * *", "UTC", "2026-11-21 09:00Z",
         "261121 13:00, 261121 18:00, 261121 20:00");
    next("1,3-5,59 7 * * *", "UTC", "2026-11-21 07:03Z",
         "261121 07:04, 261121 07:05, 261121 07:59");
    next("0 0 * jan,JUL *", "UTC", "2026-01-30 00:00Z", "260131 00:00, 260701 00:00, 260702 00:00");
    next("0 9 * * Mon-Fri", "UTC", "2026-11-20 09:00Z", "261123 09:00, 261124 09:00, 261125 09:00");
    next("0 9 * * fri-sun", "UTC", "2026-11-20 09:00Z", "261121 09:00, 261122 09:00, 261127 09:00");
    for (const char *sunday = "07"; *sunday; sunday++) { /* 0 and 7 */
        char line[20];
        snprintf(line, sizeof line, "0 0 * * %c", *sunday);
        next(line, "UTC", "2026-11-21 00:00Z", "261122 00:00, 261129 00:00, 261206 00:00");
    }
    next("0 0 * * 5-7", "UTC", "2026-11-21 00:00Z", "261122 00:00, 261127 00:00, 261128 00:00");
    /* both days restricted: either is enough; with a * first, both count */
    next("0 0 13 * fri", "UTC", "2026-11-07 00:00Z", "261113 00:00, 261120 00:00, 261127 00:00");
    next("0 0 1 * 3", "UTC", "2026-11-25 00:00Z", "261201 00:00, 261202 00:00, 261209 00:00");
    next("0 0 */10 * mon", "UTC", "2026-11-01 00:00Z", "261221 00:00, 270111 00:00, 270201 00:00");
    next("@hourly", "UTC", "2026-11-21 23:30Z", "261122 00:00, 261122 01:00, 261122 02:00");
    next(" @Midnight ", "UTC", "2026-12-30 23:30Z", "261231 00:00, 270101 00:00, 270102 00:00");
    next("@daily", "Europe/Berlin", "2026-07-01 12:00Z",
         "260701 22:00, 260702 22:00, 260703 22:00");
    next("@weekly", "UTC", "2026-11-21 00:00Z", "261122 00:00, 261129 00:00, 261206 00:00");
    next("@monthly", "UTC", "2026-11-21 00:00Z", "261201 00:00, 270101 00:00, 270201 00:00");
    next("@yearly", "UTC", "2026-11-21 00:00Z", "270101 00:00, 280101 00:00, 290101 00:00");
    next("@every 90s", "UTC", "2026-11-21 00:00:01Z",
         "261121 00:01:30, 261121 00:03, 261121 00:04:30");
    next("@every 1h30m", "Asia/Kolkata", "2026-11-21 00:00Z",
         "261121 01:30, 261121 03:00, 261121 04:30");
}

static void
years_and_leap_days(void **state)
{
    (void)state;
    next("59 23 31 12 *", "UTC", "2026-11-21 00:00Z", "261231 23:59, 271231 23:59, 281231 23:59");
    next("0 0 29 2 *", "UTC", "2026-11-21 00:00Z", "280229 00:00, 320229 00:00, 360229 00:00");
    next("0 0 29 feb */7", "UTC", "2026-11-21 00:00Z", "320229 00:00, 600229 00:00, 880229 00:00");
    next("0 0 29 2 *", "UTC", "2096-03-01 00:00Z", "040229 00:00, 080229 00:00, 120229 00:00");
    next("0 0 31 * *", "UTC", "2026-03-31 00:00Z", "260531 00:00, 260731 00:00, 260831 00:00");
    next("0 0 30,31 2,4 *", "UTC", "2026-04-29 00:00Z", "260430 00:00, 270430 00:00, 280430 00:00");
    next("0 0 31 12 *", "Pacific/Kiritimati", "2026-12-30 00:00Z",
         "261230 10:00, 271230 10:00, 281230 10:00");
}

/* 2026-03-29 02:00 -> 03:00, 2026-10-25 03:00 -> 02:00 in Berlin; 2026-03-08 and 2026-11-01 at 2:00
 * in New York; Lord Howe half an hour on 2026-10-04 (2:00 -> 2:30) and 2026-04-05 (2:00 -> 1:30).
 */
static void
what_is_missing_runs_once_at_the_change(void **state)
{
    (void)state;
    next("30 2 * * *", "Europe/Berlin", "2026-03-28 00:00Z",
         "260328 01:30, 260329 01:00, 260330 00:30");
    next("10,40 2 * * *", "Europe/Berlin", "2026-03-28 01:20Z",
         "260328 01:40, 260329 01:00, 260330 00:10");
    next("0 1-4 * * *", "Europe/Berlin", "2026-03-28 23:30Z",
         "260329 00:00, 260329 01:00, 260329 02:00");
    next("30 2 29 3 *", "Europe/Berlin", "2026-03-28 00:00Z",
         "260329 01:00, 270329 00:30, 280329 00:30");
    next("30 2 * * *", "America/New_York", "2026-03-07 00:00Z",
         "260307 07:30, 260308 07:00, 260309 06:30");
    next("15 2 * * *", "Australia/Lord_Howe", "2026-10-02 12:00Z",
         "261002 15:45, 261003 15:30, 261004 15:15");
    next("30 2 * * *", "Australia/Lord_Howe", "2026-10-02 12:00Z",
         "261002 16:00, 261003 15:30, 261004 15:30");
}

static void
what_comes_twice_runs_once_the_first_time(void **state)
{
    (void)state;
    next("30 2 * * *", "Europe/Berlin", "2026-10-24 00:00Z",
         "261024 00:30, 261025 00:30, 261026 01:30");
    next("30 2 * * *", "Europe/Berlin", "2026-10-25 00:45Z",
         "261026 01:30, 261027 01:30, 261028 01:30");
    next("30 1-3 * * *", "Europe/Berlin", "2026-10-24 23:00Z",
         "261024 23:30, 261025 00:30, 261025 02:30");
    next("0,30 1 * * *", "America/New_York", "2026-11-01 05:10Z",
         "261101 05:30, 261102 06:00, 261102 06:30");
    next("45 1 * * *", "Australia/Lord_Howe", "2026-04-03 15:00Z",
         "260404 14:45, 260405 15:15, 260406 15:15");
}

static void
stars_go_by_real_time(void **state)
{
    (void)state;
    next("*/30 * * * *", "Europe/Berlin", "2026-03-29 00:10Z",
         "260329 00:30, 260329 01:00, 260329 01:30");
    next("*/30 * * * *", "Europe/Berlin", "2026-10-25 00:10Z",
         "261025 00:30, 261025 01:00, 261025 01:30");
    next("15 * * * *", "America/New_York", "2026-11-01 04:30Z",
         "261101 05:15, 261101 06:15, 261101 07:15");
    next("*/20 2 * * *", "Europe/Berlin", "2026-03-28 01:30Z",
         "260328 01:40, 260330 00:00, 260330 00:20");
    next("*/30 2 * * *", "Europe/Berlin", "2026-10-25 00:10Z",
         "261025 00:30, 261025 01:00, 261025 01:30");
    next("*/30 2 25 10 *", "Europe/Berlin", "2026-10-25 00:30Z",
         "261025 01:00, 261025 01:30, 271025 00:00");
    next("*/15 1 * * *", "Australia/Lord_Howe", "2026-04-04 14:40Z",
         "260404 14:45, 260404 15:00, 260404 15:15");
    next("*/15 * * * *", "Australia/Lord_Howe", "2026-10-03 15:20Z",
         "261003 15:30, 261003 15:45, 261003 16:00");
}

/* A year of each kind of line: strictly forward, on a minute that the line allows, and none left
 * out: as many as a count of all minutes by the wall clock, but for the two changes. */
static void
a_year_has_no_gaps(void **state)
{
    (void)state;
    expect(conn, "8760 8760",
           "with recursive n (t) as (select cron_next('7 * * * *', 'Europe/Berlin', '2026-01-01 "
           "00:00Z') union all select cron_next('7 * * * *', 'Europe/Berlin', t) from n where t < "
           "'2026-12-31 23:07Z') select count(*) || ' ' || count(distinct t) from n where "
           "date_part('minute', t) = 7");
    expect(
        conn, "365 365",
        "with recursive n (t) as (select cron_next('30 2 * * *', 'America/New_York', '2026-01-01 "
        "05:00Z') union all select cron_next('30 2 * * *', 'America/New_York', t) from n where "
        "t < '2026-12-31 00:00Z') select count(*) || ' ' || count(distinct (t at time zone "
        "'America/New_York')::date) from n");
}

static void
the_latest_of_many_is_found_at_once(void **state)
{
    (void)state;
    expect(conn, "2026-11-21 10:07:00+00",
           "select cron_last('* * * * *', 'UTC', '2001-01-01 00:00Z', '2026-11-21 10:07:59Z')");
    expect(conn, "2026-11-21 10:07:00+00",
           "select cron_last('* * * * *', 'UTC', '2001-01-01 00:00Z', '2026-11-21 10:07:00Z')");
    expect(conn, "2024-02-29 00:00:00+00",
           "select cron_last('0 0 29 2 *', 'UTC', '2004-02-29 00:00Z', '2026-11-21 10:07:59Z')");
    expect(conn, "2026-11-21 10:05:00+00",
           "select cron_last('5 10 * * *', 'UTC', '2026-11-21 10:05Z', '2026-11-21 10:05:10Z')");
}

static void
refused(const char *line, const char *why)
{
    expect(conn, why, "select e from (select t.why($q$select cron_parse($l$%s$l$)$q$) e) z", line);
}

static void
errors_name_the_field(void **state)
{
    (void)state;
    pg_run(conn,
           "create function t.why(q text) returns text language plpgsql as $$ begin execute q;"
           " return 'fine'; exception when others then return sqlstate || ' ' || sqlerrm; end "
           "$$");
    refused("61 * * * *", "QT007 minute: 61 is not within 0-59");
    refused("* 24 * * *", "QT007 hour: 24 is not within 0-23");
    refused("* * 0 * *", "QT007 day of month: 0 is not within 1-31");
    refused("* * * 13 *", "QT007 month: 13 is not within 1-12");
    refused("* * * * 8", "QT007 day of week: 8 is not within 0-7");
    refused("x * * * *", "QT007 minute: \"x\" is not a number");
    refused("-1 * * * *",
            "QT007 minute: \"-1\" is neither *, a number, a range (1-5), a list (1,5) "
            "nor a step (*/5)");
    refused("1,,2 * * * *", "QT007 minute: \"1,,2\" is neither *, a number, a range (1-5), a list "
                            "(1,5) nor a step (*/5)");
    refused("* * * foo *",
            "QT007 month: \"foo\" is not a number and none of jan feb mar apr may jun"
            " jul aug sep oct nov dec");
    refused("5/15 * * * *", "QT007 minute: 5/15 is a step without a range: write 5-59/15");
    refused("*/0 * * * *", "QT007 minute, step: 0 is not within 1-59");
    refused("* 22-2 * * *", "QT007 hour: the range 22-2 runs backwards: write 22-23,0-2");
    refused("0 0 31 2 *", "QT007 day of month: month 2 has no day 31: this line would never run");
    refused("0 0 30 feb *", "QT007 day of month: month 2 has no day 30: this line would never run");
    refused("0 0 31 4,6,9,11 *", "QT007 day of month: the months 4,6,9,11 have no day 31: "
                                 "this line would never run");
    refused("0 0 31 2 mon", "fine"); /* on Mondays */
    refused("* * * *",
            "QT007 a cron line has five fields (minute, hour, day of month, month, day of"
            " week), \"* * * *\" has 4");
    refused("* * * * * *", "QT007 a cron line has five fields (minute, hour, day of month, month, "
                           "day of week), \"* * * * * *\" has 6");
    refused("",
            "QT007 a cron line has five fields (minute, hour, day of month, month, day of week),"
            " \"\" has 0");
    refused("@reboot", "QT007 there is no @reboot: @hourly, @daily, @midnight, @weekly, @monthly, "
                       "@yearly, @annually, @every");
    refused("@every 0s", "QT007 \"@every 0s\" is not @every with a time from 1s to 366d, such as "
                         "90s, 15m or 1h30m");
    refused("@every 5",
            "QT007 \"@every 5\" is not @every with a time from 1s to 366d, such as 90s, "
            "15m or 1h30m");
    expect(conn, "QT007 there is no time zone \"Mars/Base\": name one like Europe/Berlin or UTC",
           "select t.why($$select cron_zone('Mars/Base')$$)");
    expect(conn, "QT007",
           "select left(t.why($$select cron_zone('CET')$$), 5)"); /* has no summer time */
    expect(conn, "QT007", "select left(t.why($$select cron_zone('XYZ-3')$$), 5)");
    expect(conn, "Europe/Berlin UTC",
           "select cron_zone('europe/berlin') || ' ' || cron_zone('utc')");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_mean_what_crontab_says),
        cmocka_unit_test(years_and_leap_days),
        cmocka_unit_test(what_is_missing_runs_once_at_the_change),
        cmocka_unit_test(what_comes_twice_runs_once_the_first_time),
        cmocka_unit_test(stars_go_by_real_time),
        cmocka_unit_test(a_year_has_no_gaps),
        cmocka_unit_test(the_latest_of_many_is_found_at_once),
        cmocka_unit_test(errors_name_the_field),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
