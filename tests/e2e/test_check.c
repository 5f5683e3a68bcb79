/*
 * `queuetop check` as a monitoring system calls it: one line, its exit codes, figures behind a bar.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/server.h"

static char dsn[300];
static PGconn *conn;

/* A new database with a queue, and a session in it. The caller frees *where. */
static PGconn *
new_queue(const char *name, char **where)
{
    *where = xstrdup(pg_newdb(name));
    proc_check(0, NULL, NULL, "-d \"%s\" install", *where);
    PGconn *c = pg_connect(*where);
    pg_run(c, "set search_path = queues");
    return c;
}

static int
set_up(void **state)
{
    char *where;

    pg_group_start(state);
    conn = new_queue("check", &where);
    snprintf(dsn, sizeof dsn, "%s", where);
    free(where);
    return 0;
}

static int
tear_down(void **state)
{
    PQfinish(conn);
    return pg_group_stop(state);
}

static int
begin(void **state)
{
    (void)state;
    pg_run(conn, "select count(*) from schedule('test')");
    return 0;
}

/* Runs the check and returns its output, which must be one line. Meanwhile the scheduler keeps its
 * term. */
static char *
line_of(int code, const char *options)
{
    char *out = NULL;

    pg_run(conn, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
    int got = proc_run(NULL, &out, NULL, "-d \"%s\" check %s", dsn, options);
    if (got != code)
        fail_msg("check %s: %d instead of %d: %s", options, got, code, out);
    char *end = strchr(out, '\n');
    assert_non_null(end);
    assert_string_equal(end, "\n");
    return out;
}

static void
want(int code, const char *options, const char *text)
{
    char *out = line_of(code, options);

    if (!strstr(out, text))
        fail_msg("check %s: no \"%s\" in %s", options, text, out);
    free(out);
}

static void
an_empty_queue_is_well(void **state)
{
    (void)state;
    want(0, "-w backlog=0 -w oldest=1s", "QUEUETOP OK: ");
    want(0, "", " | 'worker'=0;;0;0 'scheduler'=0;0;1;0 ");
}

/* The functions refuse because of a right of somebody else: an alarm. A login without rights is a
 * check that is set up wrongly. */
static void
rights_of_others(void **state)
{
    (void)state;
    pg_run(conn, "create role eve login; grant create on schema queues to eve");
    want(2, "", "QUEUETOP CRITICAL: eve has CREATE on schema queues");
    pg_run(conn, "revoke all on schema queues from eve");
    want(0, "", "QUEUETOP OK: ");
    proc_check(3, "QUEUETOP UNKNOWN: ", NULL, "-d \"%s user=eve\" check", dsn);
    pg_run(conn, "drop role eve");
}

static void
limits_by_option(void **state)
{
    /* no worker is needed: it would be missed when the jobs have waited for some seconds */
    (void)state;
    pg_run(conn, "insert into queue (queue) select 'mails' from generate_series(1, 3);"
                 "insert into queue (queue) values ('other'); select schedule('test')");
    want(1, "-w backlog=2 -c worker=off", "QUEUETOP WARNING: mails: 3 jobs ready");
    want(2, "-w backlog=0 -c backlog=2",
         "QUEUETOP CRITICAL: mails: 3 jobs ready (and 1 more queue)");
    want(2, "-c backlog@other=0", "'backlog@other'=1;;0;0");
    want(0, "-q other -w backlog=1 -w scheduler=off -c worker=off -w oldest=off",
         "'backlog'=1;1;;0");
    want(3, "-q nothing", "QUEUETOP UNKNOWN: there is no queue nothing");
    want(3, "-w backlog@nothing=5", "there is no queue nothing");
}

static void
limits_from_a_file(void **state)
{
    char path[] = "/tmp/check.XXXXXX", options[100];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    dprintf(fd, "# of the night shift\n\n  warn backlog = 2\ncrit  backlog@mails=2 \n");
    snprintf(options, sizeof options, "--config %s", path);
    want(2, options, "mails: 3 jobs ready");
    snprintf(options, sizeof options, "--config %s -c backlog@mails=off -c worker=off", path);
    want(1, options, "QUEUETOP WARNING: mails"); /* the command line counts */
    dprintf(fd, "crit oldest = never\n");
    snprintf(options, sizeof options, "--config %s", path);
    want(3, options, ":5: oldest: ");
    close(fd);
    unlink(path);
    want(3, options, "No such file");
}

/* Three jobs that were pushed an hour ago. */
static void
nobody_works(void **state)
{
    char *where;
    PGconn *old = new_queue("check_old", &where);

    (void)state;
    pg_run(old, "insert into queue (queue) select 'mails' from generate_series(1, 3);"
                "update queue set created = created - interval '1 h', "
                "changed = changed - interval '1 h';"
                "update delta set at = at - interval '1 h'");
    proc_check(2, "no worker is alive, 3 jobs wait; no scheduler is alive", NULL,
               "-d \"%s\" check -c oldest=off -w oldest=off", where);
    proc_check(2, "QUEUETOP CRITICAL: mails: oldest job waits 1h 00m", NULL,
               "-d \"%s\" check -c worker=off", where);
    PQfinish(old);
    free(where);
}

/* The job of queue stuck has waited for 40 minutes, and queue busy completes jobs in every minute.
 * All queues together are well; queue stuck alone is not. The minutes of the next half hour are
 * there, too, so that the test may take its time. */
static void
one_queue_stands_still(void **state)
{
    static const char others_off[] = "-c oldest=off -w oldest=off -c worker=off -w scheduler=off";
    char *where;
    PGconn *c = new_queue("check_stuck", &where);

    (void)state;
    pg_run(c, "insert into queue (queue) values ('stuck'), ('busy');"
              "update queue set created = created - interval '40 min', "
              "changed = changed - interval '40 min';"
              "update delta set at = at - interval '40 min'; select schedule('test');"
              "update queue_config set registered = registered - interval '1 h';"
              "insert into minute (minute, queue, pushed, completed, fails, retried, cancelled, "
              "lost, wait_ms, run_ms) select date_trunc('minute', now()) - i * interval '1 min', "
              "'busy', 5, 5, 0, 0, 0, 0, 0, 0 from generate_series(-30, 5) i");
    proc_check(0, "QUEUETOP OK", NULL, "-d \"%s\" check %s", where, others_off);
    proc_check(0, "QUEUETOP OK", NULL, "-d \"%s\" check -q busy %s", where, others_off);
    proc_check(2, "jobs run or wait and nothing has completed for ", NULL,
               "-d \"%s\" check -q stuck %s", where, others_off);
    PQfinish(c);
    free(where);
}

static void
json_says_the_same(void **state)
{
    char *out = line_of(2, "-c backlog@mails=0 --json");

    (void)state;
    pg_run(conn, "create temp table said as select '%s'::jsonb as j", out);
    assert_string_equal(pg_value(conn, "select j ->> 'status' from said"), "CRITICAL");
    assert_string_equal(pg_value(conn, "select j ->> 'exit' from said"), "2");
    assert_string_equal(
        pg_value(conn,
                 "select count(*) from said, jsonb_array_elements(j -> 'checks') c where c "
                 "->> 'check' = 'backlog' and c ->> 'queue' = 'mails' and c ->> 'value' = '3' "
                 "and c ->> 'status' = 'CRITICAL'"),
        "2");
    free(out);
}

/* The names hold characters with a meaning in the output: a bar begins the figures, a quote ends a
 * label, a line feed ends the message. */
static void
names_of_strangers(void **state)
{
    (void)state;
    pg_run(conn,
           "insert into queue (queue) select E'a''b|c\\nd=e\\x1b[31m' from generate_series(1, "
           "50); select schedule('test')");
    char *out = line_of(2, "-c backlog=10 -c worker=off -c oldest=off");
    assert_null(strchr(out, '\x1b'));
    assert_ptr_equal(strchr(out, '|'), strrchr(out, '|'));
    free(out);
}

static void
wrong_words(void **state)
{
    (void)state;
    want(3, "-w nonsense=1", "there is no check 'nonsense'; there are oldest, backlog");
    want(3, "-w oldest", "a limit is NAME=VALUE");
    proc_check(3, NULL, "unknown option --bogus", "-d \"%s\" check --bogus", dsn);
}

static void
no_server(void **state)
{
    (void)state;
    proc_check(2, "QUEUETOP CRITICAL: connection to server", NULL,
               "check \"host=/nowhere port=1 dbname=x\"");
    /* for two addresses the message names both causes, and nothing else: each may be the real
     * one */
    proc_check(2,
               "CRITICAL: \"127.0.0.1\", port 1: Connection refused; \"127.0.0.2\": Connection "
               "refused",
               NULL, "check \"host=127.0.0.1,127.0.0.2 port=1 dbname=x\"");
    const char *empty = pg_newdb("check_empty");
    proc_check(3, "QUEUETOP UNKNOWN: no queue in database", NULL, "-d \"%s\" check", empty);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(an_empty_queue_is_well, begin),
                                       cmocka_unit_test(rights_of_others),
                                       cmocka_unit_test(limits_by_option),
                                       cmocka_unit_test(limits_from_a_file),
                                       cmocka_unit_test(json_says_the_same),
                                       cmocka_unit_test(nobody_works),
                                       cmocka_unit_test(one_queue_stands_still),
                                       cmocka_unit_test(names_of_strangers),
                                       cmocka_unit_test(wrong_words),
                                       cmocka_unit_test(no_server)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
