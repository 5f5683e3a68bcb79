/*
 * Schedules at work. Each due time is pushed once, whoever steps and however often. catch_up
 * decides about missed times. A schedule that can't push delays no other. The audit has a row for
 * each act.
 */
#include "tests/sql/core.h"

#include <stdio.h>

#define ACT(n) "'00000000-0000-0000-0000-00000000000" #n "'"

static PGconn *
fresh(const char *database)
{
    PGconn *c = core_new(database);

    pg_run(c, "set timezone = 'UTC'");
    return c;
}

/* A schedule in queue q whose next time is the given one. */
static void
add(PGconn *c, const char *name, const char *settings, const char *next)
{
    pg_run(c,
           "select schedule_set(gen_random_uuid(), '%s', '{\"queue\": \"q\"}' || '%s'::jsonb, "
           "'{\"b\":1, \"a\":1}'); update schedule set next_run = '%s', runs_from = null where "
           "name = '%s'",
           name, settings, next, name);
}

#define RUNS                                                                              \
    "select coalesce(string_agg(schedule || ' ' || to_char(due, 'HH24:MI') || case when " \
    "pushed then '' else ' ' || error end, ',' order by schedule, due), '') from cron_run"

/* A pusher that took a schedule's unique key first would keep the schedule from running. */
static void
keys_of_schedules_are_theirs(void **state)
{
    PGconn *c = fresh("cron_keys"), *w = core_join("cron_keys");
    static const char *const tries[] = {
        "insert into queues.queue (queue, unique_key) values ('q', 'cron:a')",
        "insert into queues.queue (queue, unique_key) values ('q', null), ('q', 'cron:b:c')",
        "select queues.push('q', unique_key => 'cron:a')",
        "select queues.push_bytes('q', 'x', unique_key => 'cron:a')",
        "select queues.push_text('q', 'x', unique_key => 'cron:a')",
        "select * from queues.push_many(null, array['q'], unique_keys => array['cron:none'])"};

    (void)state;
    add(c, "a", "{\"cron\": \"0 10 * * *\", \"unique\": true}", "2026-01-01 10:00");
    add(c, "b:c", "{\"cron\": \"0 10 * * *\"}", "2026-01-01 10:00");
    pg_run(w, "set role queues_worker");
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        assert_string_equal(pg_try(w, "%s", tries[i]), "23514");
    pg_run(w, "select queues.push('q', unique_key => 'cron')");
    PQclear(PQexec(w, "copy queues.queue (queue, unique_key) from stdin"));
    assert_int_equal(PQputCopyData(w, "q\tcron:a\n", 9), 1);
    assert_int_equal(PQputCopyEnd(w, NULL), 1);
    PGresult *r = PQgetResult(w);
    assert_string_equal(PQresultErrorField(r, PG_DIAG_SQLSTATE), "23514");
    PQclear(r);
    assert_null(PQgetResult(w));
    pg_run(c, "select cron_due('2026-01-01 10:00'); select schedule_run(" ACT(1) ", 'b:c')");
    expect(c, "a 10:00,b:c 10:00,b:c",
           "select string_agg(schedule || case when due <"
           " '2026-02-01' then to_char(due, ' HH24:MI') else '' end,"
           " ',' order by schedule, due) from cron_run where pushed");
    /* a finished one is brought back by an operator, key and all */
    core_settle(c);
    pg_run(c, "select discard(" ACT(2) ", 1, array(select id from queue where unique_key ="
                                       " 'cron:a'))");
    expect(c, "1",
           "select count(*) from requeue(" ACT(3) ", 1, array(select id from history where"
                                                  " unique_key = 'cron:a')) where state ="
                                                  " 'ready'");
    core_check(c);
    PQfinish(w);
    PQfinish(c);
}

static void
undo(PGconn *c, const char *verb)
{
    pg_run(c,
           "select undo(gen_random_uuid(), 1, (select action from audit where verb = 'schedule %s'"
           " order by at desc limit 1))",
           verb);
}

/* An act on a schedule is undone, before a due time or after it, with another scheduler in between.
 * No time runs twice. catch_up decides about the times at which no scheduler was there. */
static void
undo_repeats_and_loses_no_time(void **state)
{
    PGconn *c = fresh("cron_undo");
    static const char remove[] = "select schedule_remove(gen_random_uuid(), 's')",
                      due[] = "select cron_due('2026-01-01 %s')",
                      next[] = "select to_char(next_run, 'HH24:MI') from schedule",
                      other[] = "update scheduler set until = '-infinity' where term > 0;"
                                " select schedule('%s')";

    (void)state;
    add(c, "s", "{\"cron\": \"0 * * * *\"}", "2026-01-01 10:00");
    pg_run(c, due, "10:00");
    pg_run(c, remove); /* the schedule has run before this act */
    pg_run(c, other, "b");
    undo(c, "remove");
    expect(c, "11:00", next);
    pg_run(c, due, "10:30");
    expect(c, "s 10:00", RUNS);
    pg_run(c, due, "11:00");
    pg_run(c, remove); /* a time between it and its undo */
    pg_run(c, due, "12:00");
    undo(c, "remove");
    pg_run(c, due, "12:10");
    expect(c, "s 10:00,s 11:00,s 12:00", RUNS);
    pg_run(c, "select schedule_set(gen_random_uuid(), 's', '{\"cron\": \"30 * * * *\"}')");
    pg_run(c, "update schedule set next_run = '2026-01-01 12:30'");
    pg_run(c, due, "12:30");
    pg_run(c, "select schedule_run(gen_random_uuid(), 's')"); /* by hand: for no time of the line */
    undo(c, "set");
    expect(c, "13:00", next);
    pg_run(c, due, "13:00");
    pg_run(c, "select schedule_pause(gen_random_uuid(), 's')");
    pg_run(c, due, "14:10");
    undo(c, "pause");
    expect(c, "14:00", next);
    pg_run(c, "update schedule set catch_up = 'none'");
    pg_run(c, due, "16:10");
    expect(c, "17:00", next);
    expect(c,
           "s 10:00,s 11:00,s 12:00,s 12:30,s 13:00,s 14:00 missed: no scheduler was there, up to"
           " 2026-01-01 16:00:00",
           RUNS " where due = date_trunc('second', due)");
    /* of two lives of one name: the second had the run */
    pg_run(c, remove);
    add(c, "s", "{\"cron\": \"0 * * * *\"}", "2026-01-01 17:00");
    pg_run(c, due, "17:00");
    pg_run(c, remove);
    pg_run(c, "select undo(gen_random_uuid(), 1, (select action from audit where verb = 'schedule"
              " remove' order by at desc offset 1 limit 1))");
    expect(c, "18:00", next);
    pg_run(c, other, "c");
    undo(c, "pause"); /* changed since: left alone */
    expect(c, "0",
           "select count(*) from (select from cron_run where pushed group by schedule, due"
           " having count(*) > 1) x");
    expect(c, "0",
           "select count(*) from (select from queue group by unique_key having count(*) >"
           " 1) x");
    core_check(c);
    PQfinish(c);
}

static void
each_time_is_pushed_once(void **state)
{
    PGconn *c = fresh("cron_once");

    (void)state;
    add(c, "a", "{\"cron\": \"*/10 * * * *\", \"kind\": \"k\", \"priority\": 2, \"max_tries\": 3}",
        "2026-01-01 10:00");
    add(c, "b", "{\"cron\": \"0 10 * * *\"}", "2026-01-01 10:00");
    expect(c, "2026-01-01 09:59:59.9+00",
           "select cron_due('2026-01-01 09:59:58.9')"); /* look again */
    expect(c, "0", "select count(*) from queue");
    pg_run(c, "select cron_due('2026-01-01 10:00'), cron_due('2026-01-01 10:00:01')");
    expect(c, "a 10:00,b 10:00", RUNS);
    expect(c, "cron:a:2026-01-01T10:00:00Z k 2 3 {\"b\":1, \"a\":1}",
           "select concat_ws(' ', unique_key, kind, priority, max_tries, payload) from queue where "
           "priority = 2"); /* the payload to the letter */
    expect(c, "2026-01-01 10:10:00+00 2026-01-01 10:00:00+00 t",
           "select concat_ws(' ', next_run, last_run, last_job = (select id from queue where "
           "priority = 2)) from schedule where name = 'a'");
    /* a clock that is set back, here even with a next time of before */
    pg_run(c, "select cron_due('2026-01-01 09:58')");
    pg_run(c, "update schedule set next_run = '2026-01-01 10:00' where name = 'b';"
              "select cron_due('2026-01-01 10:00')");
    expect(c, "a 10:00,b 10:00", RUNS);
    expect(c, "2026-01-02 10:00:00+00", "select next_run from schedule where name = 'b'");
    core_check(c);
    PQfinish(c);
}

static void
two_schedulers_and_a_death_push_once(void **state)
{
    PGconn *c = fresh("cron_two"), *d = core_join("cron_two");

    (void)state;
    add(c, "a", "{\"cron\": \"*/10 * * * *\"}", "2026-01-01 10:00");
    pg_run(d, "begin; select cron_due('2026-01-01 10:00:01')");
    pg_run(
        c,
        "set lock_timeout = '2 s'; select cron_due('2026-01-01 10:00:01')"); /* waits for nobody */
    expect(c, "", RUNS);
    PQfinish(d); /* dies before its commit */
    pg_wait(c, "select count(*) from pg_stat_activity where datname = current_database()", "1",
            5000);
    pg_run(c, "select cron_due('2026-01-01 10:00:02')");
    d = core_join("cron_two");
    pg_run(d, "select cron_due('2026-01-01 10:00:02')");
    expect(c, "a 10:00", RUNS);
    expect(c, "1", "select count(*) from queue");
    core_check(c);
    PQfinish(c);
    PQfinish(d);
}

static void
crowd(PGconn *conn, int i)
{
    (void)i;
    for (int k = 0; k < 50; k++)
        pg_run(conn, "select cron_due('2026-01-01 10:00'::timestamptz + %d * interval '1 min')", k);
}

static void
a_crowd_pushes_each_time_once(void **state)
{
    PGconn *c = fresh("cron_crowd");

    (void)state;
    for (char name[] = "a"; *name < 'f'; ++*name)
        add(c, name, "{\"cron\": \"* * * * *\", \"catch_up\": \"all\"}", "2026-01-01 10:00");
    core_crowd("cron_crowd", 4, crowd);
    for (int k = 0; k < 3; k++) /* what the last ones skipped: a row held */
        pg_run(c, "select cron_due('2026-01-01 10:49')");
    expect(c, "250 250 250",
           "select (select count(*) from queue) || ' ' || (select count(distinct unique_key) from "
           "queue) || ' ' || (select count(*) from cron_run where pushed)");
    core_check(c);
    PQfinish(c);
}

static void
missed_times_by_catch_up(void **state)
{
    PGconn *c = fresh("cron_missed");

    (void)state;
    add(c, "all", "{\"cron\": \"0 * * * *\", \"catch_up\": \"all\"}", "2026-01-01 06:00");
    add(c, "latest", "{\"cron\": \"0 * * * *\", \"catch_up\": \"latest\"}", "2026-01-01 06:00");
    add(c, "none", "{\"cron\": \"0 * * * *\", \"catch_up\": \"none\"}", "2026-01-01 06:00");
    pg_run(c, "select cron_due('2026-01-01 09:30')");
    expect(
        c,
        "all 06:00,all 07:00,all 08:00,all 09:00,latest 06:00 missed: no scheduler was there; the "
        "latest run made up for it,latest 09:00,none 06:00 missed: no scheduler was there, up to "
        "2026-01-01 09:00:00",
        RUNS);
    expect(c, "2026-01-01 10:00:00+00",
           "select string_agg(distinct next_run::text, ',') from "
           "schedule");
    expect(c, "06 07 08 09", /* in order */
           "select string_agg(substr(unique_key, 21, 2), ' ' order by seq) from queue where "
           "unique_key like 'cron:all:%%'");
    pg_run(c, "truncate cron_run; select cron_due('2026-01-01 10:00:59')"); /* late, not missed */
    expect(c, "all 10:00,latest 10:00,none 10:00", RUNS);
    core_check(c);
    PQfinish(c);
}

/* Settings change while no scheduler is there: only another line has other times. */
static void
what_is_due_stays_due(void **state)
{
    PGconn *c = fresh("cron_due");

    (void)state;
    add(c, "a", "{\"cron\": \"0 * * * *\", \"catch_up\": \"all\"}", "2026-01-01 06:00");
    pg_run(c, "select schedule_set(" ACT(1) ", 'a', '{\"comment\": \"x\"}')");
    pg_run(c, "select undo(" ACT(2) ", 1, " ACT(1) "); select cron_due('2026-01-01 07:30')");
    expect(c, "a 06:00,a 07:00", RUNS);
    pg_run(c, "select schedule_set(" ACT(3) ", 'a', '{\"cron\": \"5 * * * *\"}')");
    expect(c, "t", "select next_run > now() from schedule");
    PQfinish(c);
}

static void
catching_up_is_bounded(void **state)
{
    PGconn *c = fresh("cron_bounded");

    (void)state;
    add(c, "m", "{\"cron\": \"* * * * *\", \"catch_up\": \"all\"}", "2026-01-01 06:00");
    add(c, "n", "{\"cron\": \"0 6 * * *\"}", "2026-01-01 06:00");
    expect(c, "2026-01-01 07:39:00+00", "select cron_due('2026-01-01 10:10')");
    expect(c, "100", "select count(*) from queue");
    expect(c, "2026-01-01 07:38:00+00", "select max(due) from cron_run where schedule = 'm'");
    expect(c, "1", "select count(*) from cron_run where schedule = 'n'"); /* each has its turn */
    pg_run(c, "select cron_due('2026-01-01 10:10')");
    pg_run(c, "select cron_due('2026-01-01 10:10'), cron_due('2026-01-01 10:10')");
    expect(c, "252 251",
           "select count(*) || ' ' || count(*) filter (where unique_key like "
           "'cron:m%%') from queue");
    expect(c, "100", "select count(*) from cron_run where schedule = 'm'"); /* the last are kept */
    core_check(c);
    PQfinish(c);
}

/* Who has hours to catch up with is served first by time, and yet the runs of others that are due
 * later are neither late nor missed. */
static void
catching_up_delays_nobody(void **state)
{
    PGconn *c = fresh("cron_behind");

    (void)state;
    add(c, "a", "{\"cron\": \"@every 1s\", \"catch_up\": \"all\"}", "2026-01-01 06:00");
    add(c, "b", "{\"cron\": \"* * * * *\", \"catch_up\": \"all\"}", "2026-01-01 06:00");
    add(c, "n", "{\"cron\": \"* * * * *\", \"catch_up\": \"none\"}", "2026-01-01 10:00");
    for (int k = 0; k < 3; k++)
        pg_run(c, "select cron_due('2026-01-01 10:00'::timestamptz + %d * interval '1 min')", k);
    expect(c, "3 0",
           "select count(*) filter (where pushed) || ' ' || count(*) filter (where not pushed)"
           " from cron_run where schedule = 'n'");
    expect(c, "t 297",
           "select (count(*) filter (where unique_key like 'cron:b%%') > 2)::char || ' ' ||"
           " count(*) filter (where unique_key not like 'cron:n%%') from queue");
    core_check(c);
    PQfinish(c);
}

static void
a_run_may_wait_for_the_one_before(void **state)
{
    PGconn *c = fresh("cron_one");

    (void)state;
    add(c, "u", "{\"cron\": \"0 * * * *\", \"unique\": true}", "2026-01-01 06:00");
    pg_run(c, "select cron_due('2026-01-01 06:00'), cron_due('2026-01-01 07:00')");
    expect(c, "u 06:00,u 07:00 the job of an earlier run is not finished", RUNS);
    expect(c, "1 cron:u", "select count(*) || ' ' || max(unique_key) from queue");
    pg_run(c, "update schedule set next_run = null"); /* steps go by the real clock */
    core_settle(c);
    pg_run(c, "select complete_job('w', lease, version, seq) from claim('w')");
    pg_run(
        c,
        "update schedule set next_run = '2026-01-01 08:00'; select cron_due('2026-01-01 08:00')");
    expect(c, "1 t",
           "select (select count(*) from queue) || ' ' || (error is null)::char from schedule");
    core_check(c);
    PQfinish(c);
}

static void
what_fails_stops_nobody(void **state)
{
    PGconn *c = fresh("cron_fails");

    (void)state;
    add(c, "a", "{\"cron\": \"0 * * * *\"}", "2026-01-01 06:00");
    add(c, "b", "{\"cron\": \"0 * * * *\"}", "2026-01-01 06:00");
    add(c, "c", "{\"cron\": \"0 * * * *\"}", "2026-01-01 06:00");
    add(c, "d", "{\"cron\": \"0 * * * *\"}", "2026-01-01 06:00");
    pg_run(c, "update schedule set payload = to_json(repeat('x', 2000)) where name = 'b'; update "
              "setting set value = '1000' where name = 'payload_limit'; update schedule set tz = "
              "'Gone/Zone' where name = 'c'");
    pg_run(c, "select cron_due('2026-01-01 06:00')");
    expect(c, "a 06:00,b 06:00 payload of 2002 bytes is more than the limit of 1000,d 06:00", RUNS);
    expect(c, "07 t,07 f,stands still,07 t",
           "select string_agg(coalesce(to_char(next_run, 'HH24 ') || (error is null)::char, "
           "left(error, "
           "12)), ',' order by name) from schedule");
    expect(c, "active failed failed active",
           "select string_agg(case when error is not null then 'failed' else 'active' end, ' ' "
           "order by name) from schedule");
    pg_run(c, "delete from setting where name = 'payload_limit'; insert into setting values "
              "('payload_limit', '10000', ''); select cron_due('2026-01-01 07:00')");
    expect(c, "t", "select error is null from schedule where name = 'b'"); /* it recovers */
    expect(c, "2", "select count(*) from cron_run where schedule = 'd'");
    core_check(c);
    PQfinish(c);
}

/* Runs of a removed schedule stay for an undo of that. A new one of its name has none of them. */
static void
a_new_schedule_has_no_runs(void **state)
{
    PGconn *c = fresh("cron_new");
    static const char set[] =
        "select schedule_set(gen_random_uuid(), '%s', '{\"cron\": \"@yearly\","
        " \"queue\": \"q\"}')",
                      own[] = "select count(*) from cron_run r join schedule s on s.name ="
                              " r.schedule and r.due >= s.runs_from",
                      all[] = "select count(*) from cron_run";

    (void)state;
    pg_run(c, set, "n");
    pg_run(c, "insert into cron_run (schedule, due, error) select 'n', now() + i * interval '1 h',"
              " 'of the first' from unnest(array[-24, -1, 1]) i");
    pg_run(c, "select schedule_remove(gen_random_uuid(), 'n')");
    expect(c, "3", all);
    pg_run(c, set, "n");
    expect(c, "0", own);
    expect(c, "3", all);
    expect(c, "run", "select state from schedule_run(gen_random_uuid(), 'n')");
    expect(c, "1", own); /* an hour ahead, like the last of the first: the clock was set back */
    pg_run(c, "update cron_run set at = now() - interval '8 days'");
    pg_run(c, set, "other");
    pg_run(c, "select schedule_remove(gen_random_uuid(), 'other')");
    expect(c, "1", all); /* the first one's are forgotten after a week, its own are kept */
    expect(c, "1", own);
    PQfinish(c);
}

/* No time of a name is pushed twice, however often its schedule is removed and set anew. */
static void
a_name_has_each_time_once(void **state)
{
    PGconn *c = fresh("cron_name");
    static const char set[] =
        "select schedule_set(%s, 's', '{\"cron\": \"0 0 1 1 *\", \"queue\": \"q\","
        " \"catch_up\": \"all\"}')",
                      due[] = "update schedule set next_run = date_trunc('minute', (select"
                              " installed_at from meta)) - interval '2 min'",
                      step[] = "select cron_due()", jobs[] = "select count(*) from queue";

    (void)state;
    /* the second pushes a time that the first would push after an undo */
    pg_run(c, set, ACT(1));
    pg_run(c, due);
    pg_run(c, "select schedule_remove(" ACT(2) ", 's')");
    pg_run(c, set, ACT(3));
    pg_run(c, due);
    pg_run(c, step);
    expect(c, "1", jobs);
    pg_run(c, "delete from queue; select schedule_remove(" ACT(4) ", 's')");
    pg_run(c, set, ACT(5));
    pg_run(c, "select undo(" ACT(6) ", 1, " ACT(5) ")");
    expect(c, "0", "select count(*) from schedule");
    pg_run(c, "select undo(" ACT(7) ", 1, " ACT(2) ")");
    expect(c, "t", "select next_run > now() from schedule");
    pg_run(c, due);
    pg_run(c, step);
    expect(c, "0", jobs);
    /* a new one begins after the last time, also where the clock was set back since */
    pg_run(c, "update cron_run set due = date_trunc('hour', now()) + interval '2 h';"
              " select schedule_remove(" ACT(
                  8) ", 's');"
                     " select schedule_set(" ACT(
                         9) ", 's', '{\"cron\": \"0 * * * *\", \"queue\": \"q\"}')");
    expect(c, "01:00",
           "select to_char(next_run - (select max(due) from cron_run), 'HH24:MI') from schedule");
    PQfinish(c);
}

static void
acts_and_their_audit(void **state)
{
    PGconn *c = fresh("cron_acts");

    (void)state;
    expect(c, "added",
           "select state from schedule_preview('n', '{\"cron\": \"@daily\", \"queue\": "
           "\"q\"}', null)");
    expect(
        c, "n added 0",
        "select concat_ws(' ', id, state, (select count(*) from cron_run)) from schedule_set(" ACT(
            1) ", 'n', '{\"cron\": \"@daily\", \"queue\": \"q\", \"tz\": \"europe/berlin\", "
               "\"comment\": \"x\"}', '{\"z\":1,\"a\":2}', 'why')");
    expect(c, "t",
           "select next_run = cron_next('@daily', 'Europe/Berlin', now()) and tz = "
           "'Europe/Berlin' from schedule");
    expect(c, "n added", /* asked again: the stored answer */
           "select concat_ws(' ', id, state) from schedule_set(" ACT(
               1) ", 'n', '{\"cron\": \"@hourly\", \"queue\": \"q\"}')");
    assert_string_equal(pg_try(c, "select schedule_set(" ACT(1) ", 'm', '{\"cron\": \"@daily\", "
                                                                "\"queue\": \"q\"}')"),
                        "QT007");
    expect(c, "changed", "select state from schedule_set(" ACT(2) ", 'n', '{\"queue\": \"r\"}')");
    expect(c, "r @daily x {\"z\":1,\"a\":2}",
           "select concat_ws(' ', queue, cron, comment, payload) from schedule");
    expect(c, "run", "select state from schedule_run(" ACT(3) ", 'n')");
    expect(c, "1", "select count(*) from queue where queue = 'r' and unique_key like 'cron:n:%%'");
    expect(c, "paused", "select state from schedule_pause(" ACT(4) ", 'n', 'holiday')");
    expect(c, "paused already", "select why from schedule_pause(" ACT(5) ", 'n')");
    pg_run(c, "select cron_due(now() + interval '10 days')");
    expect(c, "1", "select count(*) from queue");
    expect(c, "resumed", "select state from schedule_resume(" ACT(6) ", 'n')");
    expect(c, "not paused", "select why from schedule_resume(" ACT(7) ", 'n')");
    expect(c, "t", "select next_run > now() and paused_at is null from schedule");
    expect(c, "removed", "select state from schedule_remove(" ACT(8) ", 'n')");
    expect(c, "not found", "select why from schedule_remove(" ACT(9) ", 'n')");
    expect(
        c, "{\"z\":1,\"a\":2} r @daily", /* to be put back */
        "select concat_ws(' ', before->>'payload', before->>'queue', before->>'cron') from audit "
        "join audit_batch using (action) where verb = 'schedule remove' and changed = 1");
    expect(
        c,
        "n: schedule set 2,n: schedule run 1,n: schedule pause 1,n: schedule resume 1,n: "
        "schedule remove 1",
        "select string_agg(v, ',' order by o) from (select (params->>'schedule') || ': ' || verb "
        "|| ' ' || sum(changed) as v, min(at) as o from audit_log group by params->>'schedule', "
        "verb) z");
    PQfinish(c);
}

static void
settings_are_checked(void **state)
{
    static const char *const wrong[][2] = {
        {"{\"cron\": \"61 * * * *\", \"queue\": \"q\"}",                                      "minute: 61 is not within 0-59"                       },
        {"{\"cron\": \"@daily\"}",                                                            "a new schedule needs a name, a cron line and a queue"},
        {"{\"cron\": \"@daily\", \"queue\": \"q\", \"color\": 1}",
         "a schedule has no setting color"                                                                                                          },
        {"{\"cron\": \"@daily\", \"queue\": \"q\", \"catch_up\": \"some\"}",
         "catch_up is none, latest or all, not \"some\""                                                                                            },
        {"{\"cron\": \"@daily\", \"queue\": \"q\", \"catch_up\": \"all\", \"unique\": true}",
         "unique and catch_up all exclude each other: of the missed runs one could wait only"                                                       },
        {"{\"cron\": \"@daily\", \"queue\": \"q\", \"priority\": 10}",
         "priority is a whole number from 0 to 9, not \"10\""                                                                                       },
        {"{\"cron\": \"@daily\", \"queue\": \"q\", \"tz\": \"Nowhere\"}",
         "there is no time zone \"Nowhere\": name one like Europe/Berlin or UTC"                                                                    },
    };
    PGconn *c = fresh("cron_settings");

    (void)state;
    pg_run(c, "create function t.why(s jsonb, p text) returns text language plpgsql as $$ begin "
              "perform schedule_set(gen_random_uuid(), 'n', s, p); return 'fine'; exception when "
              "sqlstate 'QT007' then return sqlerrm; end $$");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect(c, wrong[i][1], "select t.why('%s', null)", wrong[i][0]);
    expect(c, "payload: invalid input syntax for type json: \"{a}\"",
           "select t.why('{\"cron\": \"@daily\", \"queue\": \"q\"}', '{a}')");
    expect(c, "0 0",
           "select (select count(*) from schedule) || ' ' || (select count(*) from audit)");
    /* not JSON */
    expect(
        c, "fine",
        "select t.why('{\"cron\": \"@daily\", \"queue\": \"q\", \"payload_type\": \"text/plain\"}',"
        " '{a}')");
    pg_run(c, "select schedule_run(" ACT(1) ", 'n')");
    expect(c, "{a} text/plain",
           "select convert_from(body, 'UTF8') || ' ' || payload_type from "
           "queue");
    PQfinish(c);
}

/* Due in half a second: that is how long the scheduler sleeps. Where the machine took longer than
 * that to come to the step, which then has pushed it, again. */
static void
sleeps_until_due(PGconn *c)
{
    static const char runs[] = "select count(*) from cron_run where schedule = 'b'";

    for (int i = 0; i < 100; i++) {
        int64_t before = pg_int(c, runs);
        pg_run(c, "update schedule set next_run = clock_timestamp() + interval '500 ms' where name "
                  "= 'b'; update tick set cron_at = null");
        int64_t wait_ms = pg_int(c, "select wait_ms from schedule('test')");
        if (pg_int(c, runs) == before) {
            assert_in_range(wait_ms, 0, 501);
            return;
        }
    }
    fail_msg("never in time");
}

/* The scheduler's step does it, cuts in the same step, and sleeps no longer than until the next. */
static void
the_step_runs_schedules(void **state)
{
    PGconn *c = fresh("cron_step"), *d = core_join("cron_step");

    (void)state;
    add(c, "a", "{\"cron\": \"0 0 1 1 *\"}", "now");
    add(c, "b", "{\"cron\": \"@every 366d\"}", "now");
    pg_run(d, "begin; select active from schedule('other')");
    expect(c, "no", "select t.step()"); /* one is at it */
    PQfinish(d);
    pg_wait(c, "select count(*) from pg_stat_activity where datname = current_database()", "1",
            5000);
    char before[64];
    snprintf(before, sizeof before, "%s", pg_value(c, "select clock_timestamp()"));
    expect(c, "2 0 0", "select t.step()");
    expect(c, "2", "select count(*) from claim('n', 9)");
    expect(c, "1 1",
           "select count(*) filter (where schedule = 'a') || ' ' || count(*) filter (where "
           "schedule = 'b') from cron_run");
    core_settle(c);
    expect(c, "2", "select count(*) from cron_run");
    expect(c, "t",
           "select cron_at between '%s' and clock_timestamp() + interval '1 s' from tick order by "
           "tick desc limit 1",
           before); /* until then nothing is looked at */
    sleeps_until_due(c);
    int64_t runs = pg_int(c, "select count(*) from cron_run where schedule = 'b'");
    core_check(c);
    /* another scheduler takes over: what is due meanwhile is pushed by it, once */
    pg_run(c, "update schedule set next_run = date_trunc('minute', now()) + interval '1 ms' where "
              "name = 'b'; update tick set cron_at = null; update scheduler set until = now() - "
              "interval '1 s' where term > 0");
    expect(c, "t", "select active from schedule('another')");
    expect(c, "f", "select active from schedule('test')");
    assert_int_equal(pg_int(c, "select count(*) from cron_run where schedule = 'b'"), runs + 1);
    core_check(c);
    PQfinish(c);
}

static void
rights(void **state)
{
    PGconn *c = fresh("cron_rights"), *o = core_join("cron_rights"), *v = core_join("cron_rights");

    (void)state;
    pg_run(c, "create role cron_op login in role queues_operator; create role cron_view login in "
              "role queues_viewer");
    pg_run(o, "set session authorization cron_op");
    pg_run(v, "set session authorization cron_view");
    pg_run(o, "select schedule_set(" ACT(1) ", 'n', '{\"cron\": \"@daily\", \"queue\": \"q\"}'); "
                                            "select schedule_run(" ACT(2) ", 'n')");
    expect(c, "1", "select count(*) from queue");
    expect(v, "n 1", "select name || ' ' || (select count(*) from cron_run) from schedule");
    expect(v, "3", "select count(*) from cron_times('@daily')");
    assert_string_equal(pg_try(v, "select schedule_pause(" ACT(3) ", 'n')"), "42501");
    assert_string_equal(pg_try(v, "delete from schedule"), "42501");
    assert_string_equal(pg_try(o, "update schedule set queue = 'x'"), "42501");
    assert_string_equal(pg_try(o, "select cron_due()"), "42501");
    PQfinish(c);
    PQfinish(o);
    PQfinish(v);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undo_repeats_and_loses_no_time),
        cmocka_unit_test(each_time_is_pushed_once),
        cmocka_unit_test(keys_of_schedules_are_theirs),
        cmocka_unit_test(two_schedulers_and_a_death_push_once),
        cmocka_unit_test(a_crowd_pushes_each_time_once),
        cmocka_unit_test(missed_times_by_catch_up),
        cmocka_unit_test(what_is_due_stays_due),
        cmocka_unit_test(catching_up_is_bounded),
        cmocka_unit_test(catching_up_delays_nobody),
        cmocka_unit_test(a_run_may_wait_for_the_one_before),
        cmocka_unit_test(what_fails_stops_nobody),
        cmocka_unit_test(a_new_schedule_has_no_runs),
        cmocka_unit_test(a_name_has_each_time_once),
        cmocka_unit_test(acts_and_their_audit),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(the_step_runs_schedules),
        cmocka_unit_test(rights),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
