/*
 * What a session has set must not change what the functions do: words and times are read and
 * written by the settings of whoever calls. One story of all that a pusher, a worker, a scheduler
 * and an operator do is told under default settings, and again under each odd one: its lines must
 * be the same.
 */
#include "tests/sql/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACT(n) "'00000000-0000-7000-8000-0000000000" #n "'"

static const char *const story[] = {
    "select pushed from push('q', E'{\"name\": \"a\\\\\\\\d\"}')",
    "select pushed from push('q', '{\"name\": \"b\"}', 'k', 1, delay => '1 h')",
    "select pushed from push_text('q', E'\\\\x41 \\\\ text')",
    "select pushed from push_bytes('q', E'\\\\xff00'::bytea)",
    "select string_agg(pushed::text, ' ') from push_many(null, array['q', 'q'], unique_keys =>"
    " array['u', 'u'])",
    "insert into queue (queue, concurrency_key, expires_at, run_timeout) values ('q', 'c', now() +"
    " interval '1 h', '90 s') returning state",
    "select state || ' ' || why from set_queue(" ACT(
        01) ", 'q', '{\"lease_timeout\": \"90 s\","
            " \"retention\": \"1 month\", \"rate\": \"90/min\", \"backoff_base\": \"1.5 s\"}')",
    "select string_agg(setting || '=' || value, ' ') from queue_settings('q')",
    "select state || ' ' || why from set_queue(" ACT(02) ", 'q', '{\"rate\": null}')",
    "select why from set_queue_preview('q', '{\"run_timeout\": \"2h 30m\"}')",
    "select state from schedule_set(" ACT(
        03) ", 'often', '{\"cron\": \" */5 8-17 1 jan *\","
            " \"tz\": \"Europe/Berlin\", \"queue\": \"c\"}', E'{\"a\": \"\\\\\\\\s\"}')",
    "select state from schedule_set(" ACT(
        04) ", 'every', '{\"cron\": \"@every 8783h30m\", \"queue\":"
            " \"c\"}')",
    "select string_agg(extract(epoch from t)::bigint::text, ' ') from cron_times('30 2 28-31 3 *',"
    " 'Europe/Berlin', 4, '2026-03-27 00:00+00') t",
    "select string_agg(extract(epoch from t)::bigint::text, ' ') from cron_times('@every 90s',"
    " 'UTC', 2, '2026-03-27 00:00+00') t",
    "select state from schedule_run(" ACT(05) ", 'every')",
    "select active, cut, promoted from schedule('test')",
    "select active from schedule('test')",
    "select string_agg(concat_ws(' ', queue, kind, priority, try, max_tries, payload_type,"
    " run_timeout = '90 s', lease_until > now() + interval '80 s'), ',' order by seq) from"
    " claim('n', 3)",
    "select string_agg(outcome, ' ') from (select (fail('n', array[lease], array[version],"
    " array[s], array['no \"file\" at 0xdeadbeef in  /srv/12: 3.5 s, it was lost'])).outcome from"
    " (select lease, version, unnest(seqs) as s from work_queue where lock_key = 'n' order by"
    " lease limit 1) z limit 1) z",
    "select error_key from queue where error is not null",
    "select state || coalesce(why, '') from requeue_where(" ACT(
        06) ", 1, null, '{retry}', error =>"
            " 'no \"dir\" at 0xdeadbee1 in /srv/13: 4.5 s, it was lost')",
    "select string_agg(r.outcome, ' ') from (select lease, version, unnest(seqs) as s from"
    " work_queue where lock_key = 'n') z, complete('n', array[lease], array[version], array[s],"
    " array[clock_timestamp()], array[E'\\\\xff'::bytea]) r",
    "select count(*) from history where result = E'\\\\xff'::bytea",
    "select lease_until > now() + interval '59 min' from (select extend_lease('n', lease, version, "
    "'1"
    " h') as lease_until from claim('n')) z",
    "select count(*) from claim_or_wait('n', 1)",
    "select state from pause(" ACT(07) ", 'q', 'why')",
    "select state from resume(" ACT(08) ", 'q')",
    "select string_agg(state || n, ' ') from release(" ACT(09) ", 1, 'n', false, force => true)",
    "select why from extend_preview(null, 'n', '1 h')",
    "select count(*) from requeue_where(" ACT(10) ", 1, 'q', '{completed}', null, null, null, 1)",
    "select split_part(cursor, '\"', 2) from audit_batch where action = " ACT(10),
    "select count(*) from requeue_where(" ACT(
        10) ", 2, 'q', '{completed}', null, null, null, 1,"
            " (select cursor from audit_batch where action = " ACT(10) " and batch = 1))",
    "select state from cancel(" ACT(11) ", 1, array(select id from queue where state ="
                                        " 'scheduled'))",
    "select sum(n) from purge(" ACT(12) ", 1, 'q', '{cancelled}', null)",
    "select (add_days() is null)::text",
    "select count(*) from pg_inherits where inhparent = 'history'::regclass",
    "select retain() > '0 s'",
    "select fold_now()",
    "select keep_books() > 0",
    "select string_agg(concat_ws(' ', queue, scheduled, ready, retry, running, failed, pushed,"
    " completed, cancelled, blocked), ',' order by queue) from overview()",
    "select count(*) >= 0 from rates()",
    "select count(*) >= 0 from percentiles()",
    "select set_config('queuetop.day', '0', false)",
    "select complete_job('n', lease, version, seq) from claim('n')",
    "select current_setting('queuetop.day') = current_date::text || 'queues'",
    "select complete_and_claim('n', '{}', '{}', '{}', null, null, 1) is not null",
    "select node_start('m', " ACT(20) ", 'h', 1, 'v', 1, null, 4)",
    "select node_beat('m', " ACT(20) ")",
    "select t.truth()",
};

enum { LINES = sizeof story / sizeof *story };

/* A line of the story: the value, or the text of the error. */
static char *
told(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);
    bool is_error = PQresultStatus(r) != PGRES_TUPLES_OK;
    char *line = strdup(is_error            ? PQresultErrorMessage(r)
                        : PQntuples(r) == 0 ? "no row"
                                            : PQgetvalue(r, 0, 0));

    assert_non_null(line);
    PQclear(r);
    return line;
}

static void
the_settings_of_a_session_change_nothing(void **state)
{
    static const char *const odd[] = {
        "standard_conforming_strings = off",
        "intervalstyle = sql_standard",
        "intervalstyle = iso_8601",
        "intervalstyle = postgres_verbose",
        "datestyle = 'SQL, DMY'",
        "datestyle = 'German'",
        "datestyle = 'Postgres, MDY'",
        "timezone = 'Pacific/Kiritimati'",
        "timezone = 'America/St_Johns'",
        "bytea_output = escape",
        "extra_float_digits = -15",
        "array_nulls = off",
        "transform_null_equals = on",
        "xmloption = document",
        "plpgsql.extra_errors = 'all'",
    };
    char *plain[LINES], name[32];
    PGconn *c = core_new("plain");

    (void)state;
    for (size_t i = 0; i < LINES; i++)
        plain[i] = told(c, story[i]);
    PQfinish(c);
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        snprintf(name, sizeof name, "odd%zu", k);
        c = core_new(name);
        pg_run(c, "set escape_string_warning = off; set %s", odd[k]);
        for (size_t i = 0; i < LINES; i++) {
            char *line = told(c, story[i]);
            if (strcmp(line, plain[i]) != 0)
                fail_msg("set %s: %s\nis %s\nnot %s", odd[k], story[i], line, plain[i]);
            free(line);
        }
        PQfinish(c);
    }
    for (size_t i = 0; i < LINES; i++)
        free(plain[i]);
}

/* The database's default is another isolation level: pushing, claiming, answering and reading still
 * work. A call that needs to see what others commit meanwhile refuses and says why. */
static void
other_isolation_levels_are_refused_or_work(void **state)
{
    static const char *const level[] = {"repeatable read", "serializable"};
    static const char *const refused[] = {
        "select schedule('test')",
        "select set_queue(" ACT(31) ", 'q', '{\"weight\": 2}')",
        "select pause(" ACT(32) ", 'q')",
        "select release(" ACT(33) ", 1, 'n')",
        "select cancel(" ACT(34) ", 1, array(select id from queue))",
        "select check_queue('q')",
        "select fold_beside()",
        "select keep_books()"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        PGconn *c = core_new(level[i]), *o;
        pg_run(c, "alter database \"%s\" set default_transaction_isolation = '%s'", level[i],
               level[i]);
        o = core_join(level[i]);
        pg_run(o, "select t.push('q', 'a,b,c')");
        core_settle(c);
        expect(o, "a,b", "select t.claim('n', 2)");
        expect(o, "done", "select t.done('n', 'a')");
        expect(o, "retry", "select t.fail('n', 'b')");
        expect(o, "1", "select ready from overview()");
        for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
            assert_string_equal(pg_try(o, "%s", refused[k]), "QT007");
        core_settle(c);
        core_check(c);
        pg_run(o, "select t.claim('n', 9)"); /* nothing is left, and no scheduler lives */
        pg_run(c, "update scheduler set until = '-infinity'");
        assert_string_equal(pg_try(o, "select claim_or_wait('n', 1)"), "QT007");
        PQfinish(o);
        PQfinish(c);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_settings_of_a_session_change_nothing),
        cmocka_unit_test(other_isolation_levels_are_refused_or_work),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
