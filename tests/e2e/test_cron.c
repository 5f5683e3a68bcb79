/*
 * `queuetop cron` as a script uses it: adding with a preview of the next runs, listing, showing,
 * pausing, running, removing; exit codes, JSON, and what a wrong line is told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/sql/core.h"

static PGconn *conn;
static char dsn[500];

static int
set_up(void **state)
{
    core_setup(state);
    conn = core_new("cron_verbs");
    snprintf(dsn, sizeof dsn, "%s", pg_dsn("cron_verbs"));
    return 0;
}

static int
tear_down(void **state)
{
    PQfinish(conn);
    return core_teardown(state);
}

/* Runs `queuetop cron WORDS DSN`; what it said on both must hold the part. */
static void
says(int code, const char *words, const char *part)
{
    char *out, *err;
    int got = proc_run(NULL, &out, &err, "cron %s \"%s\"", words, dsn);

    if (got != code || (!strstr(out, part) && !strstr(err, part)))
        fail_msg("cron %s: exit code %d, not %d, or no \"%s\" in:\n%s%s", words, got, code, part,
                 out, err);
    free(out);
    free(err);
}

static void
adding(void **state)
{
    (void)state;
    says(0, "add nightly '30 2 * * *' --queue report --tz Europe/Berlin --dry-run",
         "would change: 1 schedule added (next ");
    expect(conn, "0", "select count(*) from schedule");
    says(2, "add nightly '30 2 * * *' --queue report", "--yes acts");
    says(0,
         "add nightly 30 2 '*' '*' '*' --queue report --tz Europe/Berlin --payload '{\"b\":1, "
         "\"a\":2}' --kind pdf --catch-up all --priority 3 --comment hello --yes --reason why",
         "1 schedule added (next ");
    expect(
        conn, "30 2 * * *|Europe/Berlin|report|pdf|{\"b\":1, \"a\":2}|all|3|hello",
        "select concat_ws('|', cron, tz, queue, kind, payload, catch_up, priority, comment) from "
        "schedule");
    says(0, "add nightly --queue other --yes --json", "\"verb\": \"cron add\"");
    expect(conn, "other 30 2 * * * 3",
           "select concat_ws(' ', queue, cron, priority) from schedule");
    expect(conn, "schedule set why 1",
           "select concat_ws(' ', verb, reason, changed) from audit_log order by at limit 1");
}

static void
what_is_wrong_is_said(void **state)
{
    (void)state;
    says(2, "add x '61 * * * *' --queue q --yes", "minute: 61 is not within 0-59");
    says(2, "add x '0 0 31 2 *' --queue q --dry-run", "month 2 has no day 31");
    says(2, "add x '@daily' --yes", "needs a name, a cron line and a queue");
    says(2, "add x '@daily' --queue q --tz Mars --yes", "there is no time zone \"Mars\"");
    says(2, "add x '@daily' --queue q --payload '{a' --yes", "invalid input syntax for type json");
    says(2, "next '* * * *'", "has 4");
    says(2, "frobnicate", "there is no 'frobnicate'");
    says(2, "pause", "what it takes: pause NAME");
    says(2, "add x '@daily' --type text/plain", "--type goes with --payload");
    says(2, "add x '@daily' --priority 12", "--priority takes a number from 0 to 9");
    expect(conn, "0", "select count(*) from schedule where name = 'x'");
}

static void
looking(void **state)
{
    (void)state;
    says(0, "next '0 12 * * *' --count 2 --json", "\"due\": \"");
    says(0, "list --json",
         "\"name\": \"nightly\", \"cron\": \"30 2 * * *\", \"tz\": "
         "\"Europe/Berlin\", \"queue\": \"other\", \"kind\": \"pdf\", \"state\": "
         "\"active\", \"last_run\": null, \"last_outcome\": null, \"next_run\": ");
    says(0, "list", "NAME ");
    says(0, "show nightly", "catch up      all");
    says(0, "show nightly --json", "\"next\": [{\"due\": ");
    says(1, "show nobody", "");
}

static void
acting(void **state)
{
    (void)state;
    says(0, "run nightly --yes", "1 schedule run (job ");
    expect(conn, "1", "select count(*) from queue where queue = 'other' and kind = 'pdf'");
    says(0, "show nightly", "ready ");
    says(0, "pause nightly --yes --reason holiday", "1 schedule paused");
    says(1, "pause nightly --yes", "paused already");
    says(0, "list", "paused");
    says(0, "show nightly", "holiday");
    says(0, "resume nightly --yes", "1 schedule resumed (next ");
    says(0, "remove nightly --dry-run", "1 schedule removed");
    says(0, "remove nightly --yes", "1 schedule removed");
    says(1, "remove nightly --yes", "no schedule is called \"nightly\"");
    says(1, "list", "");
    core_check(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adding),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(looking),
        cmocka_unit_test(acting),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
