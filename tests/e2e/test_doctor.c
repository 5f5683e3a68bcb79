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
                                       "max_replication_slots = 1\n"
                                       "max_prepared_transactions = 2\n"});
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

static char *
doctor_says(const char *user, const char *options, int *code, char **err)
{
    char *out = NULL;

    *code = proc_run(NULL, &out, err, "-d \"%s%s\" --schema \"doc's %%q\" doctor %s", dsn, user,
                     options);
    return out;
}

/* What it says; the code must be that one. */
static char *
doctor(int code, const char *user, const char *options)
{
    int got;
    char *err = NULL, *out = doctor_says(user, options, &got, &err);

    if (got != code)
        fail_msg("doctor %s: %d instead of %d: %s%s", options, got, code, err, out);
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
    char *out = doctor(0, "", "");
    /* each question can be asked in a schema with ' and % */
    assert_null(strstr(out, "unknown "));
    assert_null(strstr(out, "{s}"));
    free(out);
    kill(worker.pid, SIGTERM);
    assert_int_equal(proc_wait(&worker), 0);
    kill(scheduler.pid, SIGTERM);
    assert_int_equal(proc_wait(&scheduler), 0);
    proc_done(&worker);
    proc_done(&scheduler);
    pg_run(conn, "select schedule_remove(gen_random_uuid(), 's'); delete from work_queue;"
                 "delete from queue; select check_queue('q')");
}

/* The heartbeat of a sleeping node is the end of its sleep. It is wrong only without a session. */
static void
a_node_may_sleep(void **state)
{
    int code;

    (void)state;
    pg_run(conn, "insert into node (lock_key, session, heartbeat, queues, backend_pid) values "
                 "('sleeper', gen_random_uuid(), now() + interval '1 h', '{no}', "
                 "pg_backend_pid())");
    char *out = doctor_says("", "", &code, NULL);
    assert_null(strstr(out, "sleeper"));
    free(out);
    pg_run(conn, "update node set backend_pid = null where lock_key = 'sleeper'");
    out = doctor_says("", "", &code, NULL);
    assert_non_null(strstr(out, "the heartbeat of node sleeper is "));
    free(out);
    pg_run(conn, "delete from node where lock_key = 'sleeper'");
}

/* Jobs that nobody counted, and counters without jobs: both in queues with many jobs. */
static void
large_queues_are_compared(void **state)
{
    (void)state;
    pg_run(conn,
           "set session_replication_role = replica;"
           "insert into queue (queue, state) select 'large', (case when n %% 5 = 0 then 'failed'"
           " else 'ready' end)::job_state from generate_series(1, 25000) n;"
           "reset session_replication_role; insert into delta (queue, priority, ready, failed)"
           " values ('large', 5, 20000, 4999), ('empty', 5, 40000, 0)");
    want(BAD, "",
         "queue large: counted are 20000 ready, 0 scheduled, 0 retry, 4999 failed, 0 blocked;"
         " there are 20000, 0, 0, 5000, 0\n");
    want(BAD, "", "queue empty: counted are 40000 ready");
    pg_run(conn, "select check_queue('large'), check_queue('empty'); insert into delta (queue, "
                 "priority, ready) values ('huge', 5, 4000000)");
    want(0, "", "unknown  counters    queue huge with 4000000 jobs was not compared");
    pg_run(conn, "select check_queue('huge'); select check_queue('large')");
}

/* Here each failed job of the large queue takes 0.2 s to count: the small queues are compared
 * still, and the large one is named. */
static void
what_takes_too_long_is_named(void **state)
{
    (void)state;
    pg_run(conn, "insert into delta (queue, priority, failed) values ('small', 5, 1), ('large', 5, "
                 "300000); alter table queue rename to true_queue; create view queue as select * "
                 "from true_queue where case when queue = 'large' and state = 'failed' then "
                 "pg_sleep(0.2) is not null else true end");
    int code;
    char *out = doctor_says("", "", &code, NULL);
    pg_run(conn, "drop view queue; alter table true_queue rename to queue");
    if (code != BAD ||
        !strstr(out, "queue small: counted are 0 ready, 0 scheduled, 0 retry, 1 failed") ||
        !strstr(out, "unknown  counters    queue large with 325000 jobs was not compared"))
        fail_msg("%s", out);
    free(out);
    pg_run(conn, "delete from queue where queue = 'large'; select check_queue('large'), "
                 "check_queue('small')");
}

/* CUT ends the term of the scheduler: no process is the scheduler any more. */
#define CUT                                                                          \
    "update scheduler set until = '-infinity' where term > 0; select count(*) from " \
    "schedule('test');"
#define OLD "update queue set changed = now() - interval '1 h';"
/* The server's own view, in which what is there now began earlier, or is more. */
#define LIE(view, columns)                                                                  \
    "set allow_system_table_mods = on; alter view pg_catalog." view " rename to true_" view \
    "; create view pg_catalog." view " as select " columns " from pg_catalog.true_" view    \
    "; grant select on pg_catalog." view " to public; reset allow_system_table_mods;"
#define TRUTH(view)                                                \
    "set allow_system_table_mods = on; drop view pg_catalog." view \
    "; alter view pg_catalog.true_" view " rename to " view "; reset allow_system_table_mods;"

static const struct {
    const char *name;
    int code;
    const char *harm, *says;
} broken[] = {
    {"WARN     pushes",                                                                  WARN,
     "select schedule_set(gen_random_uuid(), 's', '{\"cron\": \"@yearly\", \"queue\": \"q\"}');"
     "update schedule set error = 'no room', error_at = now()",                                                                                                                                                    "schedule s: no room"                                                                            },
    {"WARN     pauses",                                                                  WARN,
     "select push('p', '1'); select pause(gen_random_uuid(), 'p');"
     "update queue_config set paused_at = now() - interval '2 days' where queue = 'p'",                                                                                                                            "run: queuetop resume 'p'\n"                                                                     },
    {"WARN     pauses",                                                                  WARN,
     "select schedule_set(gen_random_uuid(), 'it''s', '{\"cron\": \"@yearly\", \"queue\": \"q\"}');"
     "select schedule_pause(gen_random_uuid(), 'it''s');"
     "update schedule set paused_at = now() - interval '9 days' where name = 'it''s'",                                                                                                                             "run: queuetop cron resume 'it'\"'\"'s'\n"                                                       },
    {"WARN     pauses",                                                                  WARN,
     "select push('p' || n, '1'), pause(gen_random_uuid(), 'p' || n) from generate_series(1, 7) n;"
     "update queue_config set paused_at = now() - interval '2 days' where queue like 'p_'",                                                                                                                        ", and 4 more\n"                                                                                 },
    {"WARN     never",                                                                   WARN,
     "select schedule_set(gen_random_uuid(), 'n', '{\"cron\": \"@yearly\", \"queue\": \"q\"}');"
     "update schedule set created = now() - interval '2 years', changed = now() - interval '2 "
     "years' "
     "where name = 'n'",                                                                                                                                                                                           "schedule n never ran, and was due at"                                                           },
    {"WARN     dead",                                                                    WARN,
     "select push('d', '1');" CUT "select count(*) from claim('lost', 1, '2 h'); insert into node "
     "(lock_key, session, heartbeat) values ('lost', gen_random_uuid(), now() - interval '1 h')",                                                                                                                  "node lost is silent since"                                                                      },
    {"WARN     holders",                                                                 WARN,
     "select push('u', '1');" CUT "select count(*) from claim('it''s', 1, '2 h')",
     "run: queuetop release --all --force --node 'it'\"'\"'s'\n"                                                                                                                                                                                                                                                    },
    {"WARN     future",                                                                  WARN,
     "insert into node (lock_key, session, heartbeat, queues) values ('late', gen_random_uuid(), "
     "now() + interval '1 h', '{no}')",                                                                                                                                                                            "the heartbeat of node late is "                                                                 },
    {"WARN     clocks",                                                                  WARN,
     "insert into node (lock_key, session, host, queues, clock_ahead) values ('skewed', "
     "gen_random_uuid(), 'h', '{no}', '-90 s'), ('right', gen_random_uuid(), 'h', '{no}', '1 s')",                                                                                                                 "node skewed on h: its clock is 90.0 s behind the server's\n"                                    },
    {"WARN     schema",                                                                  WARN,                                                            "update meta set version = version + 1",
     "the schema has version 7, this program makes version 6\n"                                                                                                                                                                                                                                                     },
    {"WARN     versions",                                                                WARN,
     "insert into node (lock_key, session, host, version, protocol, queues) values ('old', "
     "gen_random_uuid(), 'h', '0.0.1', 1, '{no}')",                                                                                                                                                                "node old on h has version 0.0.1"                                                                },
    {"WARN     grants",                                                                  WARN,                                                            "revoke execute on function pause from queues_operator",
     "run: grant EXECUTE on function \"doc's %q\".pause(action uuid, queue text, reason text) to "
     "queues_operator\n"                                                                                                                                                                                                                                                                                            },
    {"WARN     autovacuum",                                                              WARN,                                                            "alter table node set (autovacuum_enabled = false)",
     "run: alter table \"doc's %q\".node reset (autovacuum_enabled)"                                                                                                                                                                                                                                                },
    {"WARN     unwanted",                                                                WARN,                                                            "select push('lonely', '1');" CUT OLD,
     "queue lonely: 1 lease waits, and"                                                                                                                                                                                                                                                                             },
    {"WARN     recount",                                                                 WARN,
     "update tick set settled = 'm', at = now() - interval '1 h' where tick = (select max(tick) "
     "from tick)",                                                                                                                                                                                                 "came to \"m\""                                                                                  },
    {"WARN     slots",                                                                   WARN,                                                            "select pg_create_physical_replication_slot('left')",    "slot left"                                                                                      },
    {"WARN     commit",                                                                  WARN,                                                            "alter database doctor set synchronous_commit = off",
     "run: alter database doctor reset synchronous_commit\n"                                                                                                                                                                                                                                                        },
    {"WARN     statistics",                                                              WARN,
     "create table big with (autovacuum_enabled = off) as select generate_series(1, 500000)",                                                                                                                      "table big has"                                                                                  },
    {"WARN     vacuum",                                                                  WARN,
     LIE("pg_stat_activity",
     "pid, usename, xact_start - interval '2 min' as xact_start, backend_xmin,"
         " backend_xid, backend_type, 'idle in transaction' as state"),
     "run: select pg_terminate_backend("},
    {"WARN     prepared",                                                                                  WARN,
     "begin; select pg_current_xact_id(); prepare transaction 'it''s';" LIE(
         "pg_prepared_xacts",                                                                                                 "gid, owner, prepared - interval '1 h' as prepared"),
     "run: rollback prepared 'it''s'; or: commit"},
    {"WARN     bloat",                                       WARN,
     LIE("pg_stat_user_tables",                                                                                                                                              "schemaname, relname, n_dead_tup + 2000000 as n_dead_tup,"
                                " n_live_tup"),
     "run: vacuum \"doc's %q\"."},
    {"BAD      strangers",                                     BAD,                                                                                                                         "grant delete on meta to public",
     "run: revoke DELETE on table \"doc's %q\".meta from public cascade\n"                                                                                                                                                                                                                                                             },
    {"WARN     given",                                                  BAD,
     "create role \"s%s\\e'\"; grant usage on schema \"doc's %q\" to \"s%s\\e'\"",                                                                                                                                      "run: revoke USAGE on schema \"doc's %q\" from \"s%s\\e'\" cascade\n"},
    {"BAD      strangers",       BAD, "grant execute on function recount() to public",
     "PUBLIC has EXECUTE on function recount()"                                      },
    {"BAD      paths",                                   BAD,
     "create function bare() returns int language sql security definer as 'select 1';",                                                                                                                                                                 "function bare() has no"                                                                                                                                                                                                            },
    {"BAD      strangers",  BAD,
     "grant insert, update, delete on history, attempt, schedule, tick to \"s%s\\e'\"","s%s\\e' has DELETE on table attempt\n"},
    {"BAD      schedules",  BAD,
     "update schedule set next_run = now() - interval '1 h', error = null",                                                                                                                                                  "schedule s is overdue"                                                                                                                                                                                                                                                                                                                                                                                                                              },
    {"BAD      schedules",              BAD,                                                      "update schedule set next_run = null, error = 'no zone'",
     "schedule s stands still: no zone"},
    {"BAD      orphans",                          BAD,
     "select push('o', '1');" CUT OLD "delete from work_queue where queue = 'o'",
     "queue o: 1 ready job is in no lease"                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             },
    {"BAD      leases",        BAD,
     "select count(*) from claim('gone', 1); update work_queue set lock_timeout = now() - interval "
     "'1 h' where lock_key = 'gone'",                                                                                                                                                                      "node gone holds 1 lease"},
    {"BAD      counters",                                                    BAD,
     "select push('c', '1'), push('c', '2');" CUT "delete from queue where queue = 'c'",
     "queue c: counted are 2 ready"                                                                                                                                                                                                                                                                                                                                                                                                                                                 },
    {"BAD      partitions", BAD,
     "do $$ begin execute format('drop table attempt_%s', to_char(now() at time zone 'UTC' + "
     "interval '1 day', 'YYYYMMDD')); end $$",                                                                                                                                                                             "there is no table attempt_"},
    {"BAD      xids",                                           BAD,
     "update pg_database set datfrozenxid = (4294967296 + txid_current() - 1050000000)::text::xid "
     "where datname = 'template0'","run: vacuumdb --freeze 'template0'"                                                                                                                                                                                                                                   },
    {"BAD      settings",                                                      BAD,                                                                                 "alter system set autovacuum = off",
     "run: alter system set autovacuum = on; select pg"                           },
};

/* Breaks one thing after the other. What was broken before stays broken. */
static void
what_is_broken_is_named(void **state)
{
    char *before = NULL; /* what is said then was not said before the harm */
    int code, wrong = 0;
    PGconn *open = pg_connect(dsn);

    (void)state;
    pg_run(open, "begin; select pg_current_xact_id()");
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        pg_run(conn, "%s", broken[i].harm);
        pg_run(conn, "select pg_reload_conf()");
        if (strstr(broken[i].harm, "alter system"))
            pg_wait(conn, "show autovacuum", "off", END_MS);
        char *out = doctor_says("", "", &code, NULL);
        if (code != broken[i].code || !strstr(out, broken[i].name) ||
            !strstr(out, broken[i].says) || (before && strstr(before, broken[i].says)) ||
            strstr(out, "{s}")) {
            print_error("%s: %s: %d: %s\n", broken[i].name, broken[i].says, code, out);
            wrong++;
        }
        free(before);
        before = out;
    }
    free(before);
    assert_int_equal(wrong, 0);
    PQfinish(open);
    pg_run(conn, "rollback prepared 'it''s'");
    pg_run(conn,
           TRUTH("pg_stat_activity") TRUTH("pg_prepared_xacts")
               TRUTH("pg_stat_user_tables") "update pg_database set datfrozenxid = (select "
                                            "datfrozenxid from pg_database where "
                                            "datname = 'template1') where datname = 'template0'");
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

/* What was broken above and needs nobody's decision is mended, and two nodes with a hostile name;
 * the audit has each act. */
static void
fix_mends_what_is_safe(void **state)
{
    static const char *const mended[] = {
        "mended  leases: node gone\n",  "mended  leases: node n%s\\\n", "mended  dead: node lost\n",
        "mended  counters: queue c\n",  "mended  orphans: queue o2\n",  "mended  partitions\n",
        "mended  leases: node hollow\n"};

    (void)state;
    pg_run(conn, "select push('f', '1'), push('f', '2'), push('o2', '1'), push('h', '1');" CUT
                 "select count(*) from claim('hollow', 1, queues => '{h}');"
                 "delete from queue where queue = 'h';" /* its lease has no job any more */
                 "select count(*) from claim('gone', 1, queues => '{f}');"
                 "select count(*) from claim('n%%s\\', 1, queues => '{f}');"
                 "update work_queue set lock_timeout = now() - interval '1 h' "
                 "where lock_key in ('gone', 'n%%s\\', 'hollow');" OLD
                 "delete from work_queue where queue = 'o2' and lock_key is null");
    /* a step makes the partitions again, once a minute */
    pg_run(conn, "do $$ begin execute format('drop table if exists attempt_%%s', to_char(now() "
                 "at time zone 'UTC' + interval '1 day', 'YYYYMMDD')); end $$");
    want(BAD, "", "--fix mends it: release --node NODE");
    want(BAD, "--json", "\"fix\":\"release --node NODE\"");
    want(2, "--yes", "");
    want(2, "--fix --json", "");
    want(2, "--fix", "node n%s\\ holds 1 lease"); /* nobody to ask */
    want(BAD, "--fix --dry-run", "would change");
    pg_wait(conn, "select count(distinct lock_key) = 3 from work_queue where lock_timeout < now()",
            "t", END_MS);
    char *out = doctor(BAD, "", "--fix --yes --reason mend");
    for (size_t i = 0; i < sizeof mended / sizeof *mended; i++)
        if (!strstr(out, mended[i]))
            fail_msg("\"%s\" is not in: %s", mended[i], out);
    free(out);
    pg_wait(conn, "select count(*) = 0 from work_queue where lock_timeout < now()", "t", END_MS);
    pg_wait(conn, "select count(*) = 4 from audit where verb = 'release' and reason = 'mend'", "t",
            END_MS);
    pg_wait(conn, "select count(*) >= 3 from audit where verb = 'repair' and reason = 'mend'", "t",
            END_MS);
    pg_run(conn, CUT);
    pg_wait(conn, "select count(*) = 1 from work_queue where queue = 'o2'", "t", END_MS);
    want(BAD, "--fix --yes", "--fix can mend none of it");
}

/* Two doctors see the expired lease, and wait for the same lock. */
static void
of_two_who_mend_one_finds_nothing_left(void **state)
{
    PGconn *scheduler = pg_connect(dsn);
    struct proc p[2];
    int mended = 0, late = 0;

    (void)state;
    pg_run(conn, "select push('f', '1');" CUT "select count(*) from claim('both', 1);"
                 "update work_queue set lock_timeout = now() - interval '1 h' "
                 "where lock_key = 'both'");
    pg_run(scheduler, "begin; select from \"doc's %%q\".scheduler where term = 0 for update");
    for (int i = 0; i < 2; i++)
        proc_queuetop(&p[i], NULL, "-d \"%s\" --schema \"doc's %%q\" doctor --fix --yes", dsn);
    pg_wait(conn, "select count(*) = 2 from pg_locks where not granted", "t", END_MS);
    pg_run(scheduler, "commit");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(proc_wait(&p[i]), BAD);
        char *out = proc_output(&p[i]);
        mended += strstr(out, "\n1 mended; still ") != NULL;
        late += strstr(out, "nothing left to mend  leases: node both\n"
                            "0 mended, 1 had nothing left to mend; still ") != NULL;
        free(out);
        proc_done(&p[i]);
    }
    assert_int_equal(mended, 1);
    assert_int_equal(late, 1);
    PQfinish(scheduler);
}

/* It ends at once, and says who switched changes off and how to switch them on. */
static void
a_database_that_takes_no_changes_is_not_waited_for(void **state)
{
    char *err = NULL;

    (void)state;
    pg_run(conn, "select push('f', '1');" CUT "select count(*) from claim('locked', 1);"
                 "update work_queue set lock_timeout = now() - interval '1 h' "
                 "where lock_key = 'locked';"
                 "alter database doctor set default_transaction_read_only = on");
    for (int i = 0; i < 2; i++) {
        int code = proc_run(NULL, NULL, &err, "-d \"%s\" --schema \"doc's %%q\" %s", dsn,
                            i ? "release --node locked --yes" : "doctor --fix --yes");
        assert_int_equal(code, 3);
        assert_non_null(strstr(err, "default_transaction_read_only is on (set by: database)"));
        assert_non_null(strstr(err, "alter database NAME reset"));
        free(err);
    }
    want(BAD, "--fix --dry-run", "would change");
    pg_run(conn, "alter database doctor reset default_transaction_read_only");
    want(BAD, "--fix --yes", "1 mended; still ");
}

/* A role without any right on the queue still sees the database, and gets the names of the missing
 * rights. */
static void
a_stranger_is_told_what_to_ask_for(void **state)
{
    (void)state;
    pg_run(conn, "create role outsider login");
    char *out = doctor(BAD, " user=outsider", "");
    assert_non_null(strstr(out, "unknown  counters    permission denied for schema doc's %q\n"));
    assert_non_null(strstr(out, "BAD      settings    autovacuum is off"));
    assert_non_null(strstr(out, "\nto know the unknown, ask as a role of queues_viewer"));
    free(out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well_where_jobs_run),
        cmocka_unit_test(a_node_may_sleep),
        cmocka_unit_test(large_queues_are_compared),
        cmocka_unit_test(what_takes_too_long_is_named),
        cmocka_unit_test(what_is_broken_is_named),
        cmocka_unit_test(a_viewer_is_told_what_it_may_not_see),
        cmocka_unit_test(fix_mends_what_is_safe),
        cmocka_unit_test(of_two_who_mend_one_finds_nothing_left),
        cmocka_unit_test(a_database_that_takes_no_changes_is_not_waited_for),
        cmocka_unit_test(a_stranger_is_told_what_to_ask_for),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
