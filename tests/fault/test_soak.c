/*
 * The soak: SOAK_SECONDS (10) of load and harm, SOAK_SEED to have the same dice again, then calm,
 * and the checker proves from the books that nothing was lost, done twice, or above a limit; what
 * the processes saw is replayed in its order (replay.h). In the end the checker itself is tested:
 * each check finds a fault that is put into the books on purpose.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/replay.h"
#include "tests/fault/soak.h"
#include "tests/proc.h"
#include "tests/server.h"

static const char command[] =
    "printf '%s\\t%s\\t%s\\n' $QUEUETOP_JOB_ID $QUEUETOP_NODE $QUEUETOP_TRY >>cmd\n"
    "case $QUEUETOP_KIND in\n"
    "poison) kill -9 $PPID ;;\n"
    "bad) test $QUEUETOP_TRY -ge 3 ;;\n"
    "esac\n";

/* A file of events and the table that it is loaded into. */
static const struct {
    const char *name, *columns;
} files[] = {
    {"acked",  "id"                                                 },
    {"rolled", "id"                                                 },
    {"run",    "job, node, lease, version, seq, try, queue, claimed"},
    {"answer", "job, node, lease, version, seq, said, outcome"      },
    {"act",    "action, verb, changed"                              },
    {"cmd",    "job, node, try"                                     },
    {"sample", "n, fault"                                           },
};

enum { SHORT = 10 }; /* seconds: as long as in make check */

static struct soak soak;

static int64_t
number(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static void
prepare(PGconn *conn)
{
    FILE *f = fopen("command", "we");

    assert_non_null(f);
    fputs(command, f);
    assert_int_equal(fclose(f), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fclose(fopen(files[i].name, "we"));
    fclose(fopen("errors", "we"));
    fclose(fopen("order", "we"));
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", soak.dsn), 0);
    pg_file(conn, "tests/fault/soak_books.sql");
    pg_run(conn, "insert into queues.queue_config (queue) select unnest("
                 "'{a,b,c,mail.send,lim.three,lim.varies,meta,rate,keys}'::text[]);"
                 "update queues.queue_config set backoff_base = '100 ms', backoff_max = '1 s', "
                 "max_tries = 6, lease_timeout = '2 s';"
                 "update queues.queue_config set max_running = 3 where queue = 'lim.three';"
                 "update queues.queue_config set max_running = 4 where queue = 'lim.varies';"
                 "update queues.queue_config set history = 'meta' where queue = 'meta';"
                 "insert into soak.bound values ('lim.three', 3), ('lim.varies', 6)");
    pg_run(
        conn,
        "update queues.queue_config set rate = 20, burst = 10 where queue = 'rate';"
        "select * from queues.schedule_set(gen_random_uuid(), 'tick', '{\"cron\": \"@every 1s\", "
        "\"queue\": \"cron.tick\", \"catch_up\": \"all\"}')");
}

static void
say(PGconn *conn, const struct soak_tally *t)
{
    printf("soak: %d killed, %d stopped, %d ended, %d crashes of the server, %d times sessions "
           "dropped, %d acts\n",
           t->kills, t->stops, t->ends, t->restarts, t->drops, t->acts);
    printf("soak: %s\n",
           pg_value(conn,
                    "select format('%%s pushed, %%s completed, %%s failed, %%s cancelled, %%s lost "
                    "tries, %%s late answers refused, %%s looks', "
                    "(select count(*) from soak.job), count(*) filter (where state = 'completed'), "
                    "(select count(*) from queues.queue where state = 'failed'), "
                    "count(*) filter (where state = 'cancelled'), "
                    "(select count(*) from queues.attempt where outcome = 'lost'), "
                    "(select count(*) from soak.answer where outcome = 'lost'), "
                    "(select sum(n) from soak.sample)) from queues.history"));
    fflush(stdout);
}

static int
show_errors(void)
{
    char line[700];
    int n = 0;
    FILE *f = fopen("errors", "re");

    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (n++ < 30)
            print_error("soak: unexpected: %s", line);
    fclose(f);
    return n;
}

static int
show_faults(PGconn *conn)
{
    PGresult *r =
        pg_query(conn, "select \"check\", count(*), min(what) from soak.faults() group by "
                       "1, left(what, 12)");
    int n = PQntuples(r);

    for (int i = 0; i < n; i++)
        print_error("soak: %s: %s x, such as %s\n", PQgetvalue(r, i, 0), PQgetvalue(r, i, 1),
                    PQgetvalue(r, i, 2));
    PQclear(r);
    return n;
}

/* Load, harm and calm in a new database, and the books closed; true = every job that could run ran.
 * The caller closes *conn. */
static bool
make_books(const char *database, PGconn **conn)
{
    struct soak_tally tally = {0};

    snprintf(soak.dsn, sizeof soak.dsn, "%s", pg_newdb(database));
    printf("soak: SOAK_SEED=%d SOAK_SECONDS=%d\n", (int)soak.seed, soak.seconds);
    fflush(stdout);
    *conn = pg_connect(soak.dsn);
    prepare(*conn);
    PQfinish(*conn);
    soak_chaos(&soak, &tally);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" cron pause tick --yes", soak.dsn), 0);
    int64_t from = soak_ms();
    bool drained = soak_calm(&soak);
    *conn = pg_connect(soak.dsn);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        soak_read(*conn, files[i].name, files[i].columns);
    pg_run(*conn, "analyze"); /* or each check is planned for empty books */
    printf("soak: %s after %d ms of calm\n", drained ? "drained" : "NOT drained",
           (int)(soak_ms() - from));
    say(*conn, &tally);
    pg_run(*conn, "select queues.check_queue(queue) from queues.queue_config");
    return drained;
}

static void
the_books_are_right_after_chaos(void **state)
{
    PGconn *conn;

    (void)state;
    soak.seconds = (int)number("SOAK_SECONDS", SHORT);
    soak.seed = soak.random = (uint64_t)number("SOAK_SEED", time(NULL) % 1000000);
    bool drained = make_books("soak", &conn);
    int errors = show_errors(), faults = show_faults(conn);
    PQfinish(conn);
    long events;
    int wrong = replay("order", &events);
    printf("soak: %ld events replayed, %d out of order\n", events, wrong);
    assert_int_equal(wrong, 0);
    assert_true(events > 0);
    assert_int_equal(errors, 0);
    assert_int_equal(faults, 0);
    assert_true(drained);
}

/* With wal_level minimal, as here, a sequence used in the transaction that made it goes back. */
static void
a_crash_after_install_repeats_no_number(void **state)
{
    char dsn[400];

    (void)state;
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("fresh"));
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    PGconn *conn = pg_connect(dsn);
    pg_run(conn, "select * from queues.push('a', '1'); select * from queues.schedule('one')");
    PQfinish(conn);
    pg_restart("immediate");
    conn = pg_connect(dsn);
    pg_run(conn,
           "update queues.fold set at = at - interval '1 s'; insert into queues.queue (queue) "
           "values ('b'); select * from queues.schedule('one')");
    assert_int_equal(pg_int(conn, "select count(*) from queues.claim('n', 9)"), 2);
    PQfinish(conn);
}

/* --- the checker itself --- */

/* Each check runs some forty times. In the books of a long soak this would take hours, and would
 * prove no more than in the books of a short soak. */
static void
short_books(void)
{
    PGconn *conn;

    if (soak.seconds <= SHORT)
        return;
    soak.seconds = SHORT;
    assert_true(make_books("short", &conn));
    PQfinish(conn);
}

#define DONE                                                                                       \
    "(select job from soak.answer join soak.push on id = job where said = 'complete' and outcome " \
    "= 'done' limit 1)"

/* What is done to the books, and the fault that must be found. */
static const struct {
    const char *fault, *harm;
} broken[] = {
    {"lost: pushed, and nowhere",              "delete from queues.history where id = " DONE                          },
    {"lost: committed, and not in the ledger", "insert into soak.acked values (uuid_nil())"                           },
    {"lost: its twin",
     "insert into soak.push values (uuid_nil(), 'a', null, null, false, gen_random_uuid())"                           },
    {"ghost: nobody pushed",                   "insert into queues.queue (queue) values ('a')"                        },
    {"ghost: rolled back, and there",
     "insert into soak.rolled select id from queues.history limit 1"                                                  },
    {"twice: finished twice",                  "insert into queues.history select * from queues.history limit 1"      },
    {"twice: finished and not",
     "insert into queues.queue (id, queue) select id, queue from queues.history limit 1"                              },
    {"twice: deleted and there",
     "insert into queues.audit (action, who, verb, params) values (uuid_nil(), '', 'delete', '{}');"
     "insert into queues.audit_batch select uuid_nil(), 1, now(), 1, 0, jsonb_build_array("
     "jsonb_build_object('id', " DONE ", 'state', 'deleted')), null, null"                                            },
    {"twice: completions accepted",
     "insert into soak.answer select * from soak.answer where job = " DONE " and outcome = 'done'"                    },
    {"twice: accepted, and not completed",
     "update queues.history set state = 'failed' where id = " DONE                                                    },
    {"fence: two ends",
     "update soak.answer set outcome = 'retry', said = 'fail' where job = " DONE
     "; insert into soak.answer select job, node, lease, version, seq, 'complete', "
     "'done' from soak.answer where outcome = 'retry'"                                                                },
    {"fence: completed by seq",
     "insert into soak.run select job, node, lease, version, seq + 1, try, queue, claimed from "
     "soak.run where job = " DONE                                                                                     },
    {"fence: accepted from a lease",
     "update soak.answer set version = version + 1 where job = " DONE                                                 },
    {"fence: claimed twice",                   "insert into soak.run select * from soak.run limit 1"                  },
    {"fence: completed by",                    "update queues.history set node = 'stranger' where id = " DONE         },
    {"limits: at a time in lim.three",
     "insert into queues.history (id, created, started, finished, state, priority, tries, queue, "
     "kind, node) select gen_random_uuid(), now(), now() - interval '2 s', now(), 'completed', 5, "
     "1, 'lim.three', '', 'x' from generate_series(1, 4)"                                                             },
    {"limits: at a time in a k",
     "update soak.push set key = 'k' where id in (select id from queues.history where queue = 'a' "
     "and state = 'completed' limit 2); update queues.history set started = finished - interval "
     "'1 day' where id in (select id from soak.push where key = 'k')"                                                 },
    {"limits: sampled",                        "insert into soak.sample values (1, 'a has 9')"                        },
    {"rate: starts",
     "insert into soak.run select gen_random_uuid(), 'x', i, 1, i, 1, 'rate', now() "
     "from generate_series(1, 21) i"                                                                                  },
    {"expired: claimed after",                 "update soak.push set expires_at = '2000-01-01' where id = (select "
                               "job from soak.run join soak.push on id = job where "
                               "job not in (select id from soak.requeued) limit 1)"     },
    {"expired: ended for its time",
     "update queues.history set state = 'cancelled', error = 'expired' where id = " DONE
     "; update soak.push set expires_at = 'infinity' where id = " DONE                                                },
    {"counters: a: ",                          "insert into queues.delta (queue, priority, ready) values ('a', 5, 1)" },
    {"counters: a: completed",                 "insert into queues.delta (queue, priority, completed) values ('a', "
                               "5, 1)"                                                  },
    {"counters: pushed",                       "insert into queues.delta (queue, priority, pushed) values ('a', 5, 1)"},
    {"stuck: ready for ever",                  "insert into queues.queue (queue) values ('a')"                        },
    {"stuck: lease",
     "insert into queues.work_queue (queue, priority, seqs) values ('a', 5, '{1}')"                                   },
    {"audit: no answer",                       "insert into queues.audit (action, who, verb, params) values (uuid_nil(), "
                         "'', 'x', '{}')"                                                     },
    {"audit: batches",                         "update queues.audit_batch set batch = 2 where action = (select action from "
                       "queues.audit_batch limit 1)"                                            },
    {"audit: the operator was told",           "update soak.act set changed = changed + 1"                            },
    {"audit: cancelled by nobody",
     "update queues.history set state = 'cancelled', last_action = null where id = " DONE                             },
    {"leases: in two leases",
     "insert into queues.work_queue (queue, priority, seqs) values ('a', 5, "
     "'{1}'), ('a', 5, '{1}')"                                                                                        },
    {"lost: a run of tick",
     "delete from queues.history where id in (select job from queues.cron_run)"                                       },
    {"twice: runs of tick",                    "delete from queues.cron_run where due = (select max(due) - interval "
                            "'1 s' from queues.cron_run)"                                  },
    {"counters: repaired",
     "insert into queues.checked (queue, at, repairs) values ('z', now(), 1)"                                         },
    {"leases: hidden",                         "insert into queues.work_queue (lease, queue, priority, seqs) values (-5, "
                       "'a', 5, '{1}')"                                                         },
};

static void
each_check_finds_its_fault(void **state)
{
    int blind = 0;

    (void)state;
    short_books();
    PGconn *conn = pg_connect(soak.dsn);
    pg_run(conn, "create function uuid_nil() returns uuid language sql immutable as $$ select "
                 "'00000000-0000-7000-8000-000000000000'::uuid $$");
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        pg_run(conn, "begin");
        pg_run(conn, "%s", broken[i].harm);
        if (pg_int(conn,
                   "select count(*) from soak.bad_%.*s where starts_with(\"check\" || ': ' || "
                   "what, '%s')",
                   (int)strcspn(broken[i].fault, ":"), broken[i].fault, broken[i].fault) == 0) {
            print_error("soak: not found: %s\n", broken[i].fault);
            blind++;
        }
        pg_run(conn, "rollback");
    }
    assert_string_equal(
        pg_value(conn, "select coalesce(string_agg(viewname, ' '), '') from pg_views where "
                       "schemaname = 'soak' and viewname like 'bad\\_%%' and position(viewname in "
                       "(select prosrc from pg_proc where proname = 'faults')) = 0"),
        ""); /* each of them is asked */
    PQfinish(conn);
    assert_int_equal(blind, 0);
}

/* What every snapshot is asked for must be seen there, too. */
static const struct {
    const char *fault, *harm;
} unseen[] = {
    {"in leases",             "insert into queues.work_queue (queue, priority, seqs) values ('lim.three', 5, "
                  "'{1,2,3,4}')"                                                                },
    {"key k has 2 ready",     "insert into queues.queue (queue, concurrency_key) values ('keys', 'k'), "
                          "('keys', 'k'); update "
                          "queues.queue set state = 'ready' where concurrency_key = 'k'"},
    {"paused and handed out",
     "insert into queues.work_queue (queue, priority, seqs) values ('a', 5, '{1}'); update "
     "queues.queue_config set paused_at = now() where queue = 'a'"                                               },
    {"in two leases",
     "insert into queues.work_queue (queue, priority, seqs) values ('a', 5, '{1}'), "
     "('a', 5, '{1}')"                                                                                           },
    {"a: (",                  "insert into queues.delta (queue, priority, ready) values ('a', 5, 1)"             },
};

static void
each_look_sees_its_fault(void **state)
{
    PGconn *conn = pg_connect(soak.dsn);

    (void)state;
    assert_string_equal(pg_value(conn, "select soak.look()"), "");
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++) {
        pg_run(conn, "begin; %s", unseen[i].harm);
        const char *seen = pg_value(conn, "select soak.look()");
        if (!strstr(seen, unseen[i].fault))
            fail_msg("'%s' is not seen in '%s'", unseen[i].fault, seen);
        pg_run(conn, "rollback");
    }
    PQfinish(conn);
}

static int
set_up(void **state)
{
    (void)state;
    if (chdir(getenv("TMPDIR")) != 0)
        return -1;
    pg_start(&(struct pg_opts){.is_durable = true, .conf = "fsync = off"});
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    pg_stop();
    if (getenv("SOAK_KEEP"))
        return 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(files[i].name);
    unlink("errors");
    unlink("order");
    unlink("command");
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_after_install_repeats_no_number),
        cmocka_unit_test(the_books_are_right_after_chaos),
        cmocka_unit_test(each_check_finds_its_fault),
        cmocka_unit_test(each_look_sees_its_fault),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
