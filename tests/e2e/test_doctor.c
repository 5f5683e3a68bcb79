/*
 * `queuetop doctor`: all is well where a queue works; each thing that is broken on purpose is
 * named, with its level, exit code and what to do; what the role may not see is said.
 */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proc.h"
#include "tests/server.h"

enum { WARN = 1, BAD = 9, END_MS = 30000 };

static char dsn[300];
static PGconn *conn;

static int
set_up(void **state)
{
    (void)state;
    pg_start(&(struct pg_opts){.is_durable = true,
                               .conf = "wal_level = replica\n"
                                       "max_wal_senders = 1\n"
                                       "max_replication_slots = 1\n"});
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("doctor"));
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install --schema \"doc's %%q\"", dsn),
                     0);
    conn = pg_connect(dsn);
    pg_run(conn, "set search_path = \"doc's %%q\"");
    return 0;
}

static int
tear_down(void **state)
{
    PQfinish(conn);
    return pg_group_stop(state);
}

/* What it says; the code must be that one. */
static char *
doctor(int code, const char *user, const char *options)
{
    char *out = NULL, *err = NULL;
    int got = proc_run(NULL, &out, &err, "-d \"%s%s\" --schema \"doc's %%q\" doctor %s", dsn, user,
                       options);

    if (got != code)
        fail_msg("doctor %s: %d instead of %d: %s%s", options, got, code, out, err);
    free(err);
    return out;
}

static void
want(int code, const char *options, const char *text)
{
    char *out = doctor(code, "", options);

    if (!strstr(out, text))
        fail_msg("\"%s\" is not in: %s", text, out);
    free(out);
}

/* A scheduler and a worker, and jobs that run. */
static void
all_is_well_where_jobs_run(void **state)
{
    struct proc scheduler, worker;

    (void)state;
    proc_queuetop(&scheduler, NULL, "-d \"%s\" --schema \"doc's %%q\" schedule", dsn);
    proc_queuetop(&worker, NULL, "-d \"%s\" --schema \"doc's %%q\" work -- true", dsn);
    pg_run(conn, "select schedule_set(gen_random_uuid(), 's', '{\"cron\": \"@every 1s\", "
                 "\"queue\": \"q\"}')");
    pg_run(conn, "select count(push('q', '1')) from generate_series(1, 500)");
    pg_wait(conn, "select count(*) >= 100 from history", "t", END_MS);
    want(0, "", "all is well");
    want(0, "--json", "\"level\":\"ok\"");
    kill(worker.pid, SIGTERM);
    assert_int_equal(proc_wait(&worker), 0);
    kill(scheduler.pid, SIGTERM);
    assert_int_equal(proc_wait(&scheduler), 0);
    proc_done(&worker);
    proc_done(&scheduler);
    pg_run(conn, "select schedule_remove(gen_random_uuid(), 's'); delete from work_queue;"
                 "delete from queue; select check_queue('q')");
}

/* Whoever was the scheduler is it no more. */
#define CUT                                                                          \
    "update scheduler set until = '-infinity' where term > 0; select count(*) from " \
    "schedule('test');"
#define OLD "update queue set changed = now() - interval '1 h';"

static const struct {
    const char *name;
    int code;
    const char *harm, *says;
} broken[] = {
    {"WARN     pushes",     WARN,
     "select schedule_set(gen_random_uuid(), 's', '{\"cron\": \"@yearly\", \"queue\": \"q\"}');"
     "update schedule set error = 'no room', error_at = now()",                             "schedule s: no room"         },
    {"WARN     pauses",     WARN,
     "select push('p', '1'); select pause(gen_random_uuid(), 'p');"
     "update queue_config set paused_at = now() - interval '2 days' where queue = 'p'",     "to do: queuetop resume QUEUE"},
    {"WARN     unwanted",   WARN, "select push('lonely', '1');" CUT OLD,
     "queue lonely: 1 leases wait"                                                                                        },
    {"WARN     recount",    WARN,
     "update tick set settled = 'm', at = now() - interval '1 h' where tick = (select max(tick) "
     "from tick)",                                                                          "came to \"m\""               },
    {"WARN     slots",      WARN, "select pg_create_physical_replication_slot('left')",     "slot left"                   },
    {"WARN     commit",     WARN, "alter database doctor set synchronous_commit = off",     "is off"                      },
    {"BAD      schedules",  BAD,
     "update schedule set next_run = now() - interval '1 h', error = null",                 "schedule s is overdue"       },
    {"BAD      schedules",  BAD,  "update schedule set next_run = null, error = 'no zone'",
     "schedule s stands still: no zone"                                                                                   },
    {"BAD      orphans",    BAD,
     "select push('o', '1');" CUT OLD "delete from work_queue where queue = 'o'",
     "queue o: 1 ready jobs are in no lease"                                                                              },
    {"BAD      leases",     BAD,
     "select count(*) from claim('gone', 1); update work_queue set lock_timeout = now() - interval "
     "'1 h' where lock_key = 'gone'",                                                       "node gone holds 1 leases"    },
    {"BAD      counters",   BAD,
     "select push('c', '1'), push('c', '2');" CUT "delete from queue where queue = 'c'",
     "queue c: counted are 2 ready"                                                                                       },
    {"BAD      partitions", BAD,
     "do $$ begin execute format('drop table attempt_%s', to_char(now() at time zone 'UTC' + "
     "interval '1 day', 'YYYYMMDD')); end $$",                                              "there is no table attempt_"  },
    {"BAD      settings",   BAD,  "alter system set autovacuum = off",                      "autovacuum is off"           },
};

/* One after the other; what was broken before stays so. */
static void
what_is_broken_is_named(void **state)
{
    char *before = NULL; /* what is said then was not said before the harm */

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        pg_run(conn, "%s", broken[i].harm);
        pg_run(conn, "select pg_reload_conf()");
        if (strstr(broken[i].harm, "alter system"))
            pg_wait(conn, "show autovacuum", "off", END_MS);
        char *out = doctor(broken[i].code, "", "");
        if (!strstr(out, broken[i].name) || !strstr(out, broken[i].says) ||
            (before && strstr(before, broken[i].says)))
            fail_msg("%s: %s: %s", broken[i].name, broken[i].says, out);
        free(before);
        before = out;
    }
    free(before);
    want(BAD, "--json",
         "{\"symptom\":\"counters\",\"level\":\"BAD\",\"what\":\"queue c: counted are 2 ready");
}

/* A viewer sees the queue as anybody, but not the sessions of others. */
static void
a_viewer_is_told_what_it_may_not_see(void **state)
{
    (void)state;
    pg_run(conn, "create role looker login in role queues_viewer");
    char *out = doctor(BAD, " user=looker", "");
    assert_non_null(strstr(out, "BAD      counters"));
    assert_non_null(strstr(out, "BAD      schedules"));
    assert_non_null(strstr(out, "unknown  vacuum"));
    assert_null(strstr(out, "permission denied"));
    free(out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well_where_jobs_run),
        cmocka_unit_test(what_is_broken_is_named),
        cmocka_unit_test(a_viewer_is_told_what_it_may_not_see),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
