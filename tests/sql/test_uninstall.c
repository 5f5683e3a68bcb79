/*
 * The end of an installation: uninstall, with its guards, and who may install at all; and the purge
 * of the audit, which has a verb of its own.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

struct place {
    char dsn[400];
    PGconn *conn;
};

static void
enter(struct place *p, const char *name)
{
    snprintf(p->dsn, sizeof p->dsn, "%s", pg_newdb(name));
    p->conn = pg_connect(p->dsn);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", p->dsn), 0);
}

/* Runs it; what it says, on either stream, must hold the text. */
static void
says(const char *dsn, const char *words, int code, const char *text)
{
    char *out, *err;
    int got = proc_run(NULL, &out, &err, "-d \"%s\" %s", dsn, words);

    if (got != code || (!strstr(out, text) && !strstr(err, text)))
        fail_msg("%s: %d, not %d and '%s':\n%s%s", words, got, code, text, out, err);
    free(out);
    free(err);
}

static void
check(const struct place *p, const char *expected, const char *sql)
{
    assert_string_equal(pg_value(p->conn, "%s", sql), expected);
}

static const char there[] = "select count(*) from pg_namespace where nspname = 'queues'";

static void
it_goes_when_its_name_is_said(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "goes");
    pg_run(p.conn, "select queues.push('a', '1'), queues.push('a', '2', delay => '1 h')");
    says(p.dsn, "uninstall --dry-run", 0, "unfinished jobs: 2 (ready 1, scheduled 1)");
    pg_run(p.conn, "select * from queues.schedule('one'); select * from queues.claim('n', 1)");
    says(p.dsn, "uninstall --dry-run", 0, "unfinished jobs: 2 (running 1, scheduled 1)");
    pg_run(p.conn, "update queues.work_queue set lock_timeout = now() - interval '1 s'; "
                   "update queues.scheduler set until = '-infinity'");
    says(p.dsn, "uninstall --dry-run", 0, "no living node, no active scheduler");
    says(p.dsn, "uninstall", 2, "--yes-drop-schema queues does it");
    says(p.dsn, "uninstall --yes-drop-schema queue", 2, "says 'queue', the schema is 'queues'");
    says(p.dsn, "uninstall --read-only --yes-drop-schema queues", 3, "--read-only");
    check(&p, "1", there);
    says(p.dsn, "uninstall --yes-drop-schema queues", 0, "role queues_worker is kept");
    check(&p, "0", there);
    check(&p, "4", "select count(*) from pg_roles where rolname ~ '^queues_'");
    says(p.dsn, "uninstall --yes-drop-schema queues", 5, "nothing to uninstall in queues");
    PQfinish(p.conn);
}

static void
living_workers_keep_it(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "living");
    pg_run(p.conn, "select queues.node_start('n1', gen_random_uuid(), 'h', 1, '1', 1, null, 1)");
    says(p.dsn, "uninstall --yes-drop-schema queues", 3, "it is in use: node n1 (last heartbeat ");
    pg_run(p.conn, "update queues.node set heartbeat = now() + interval '1 h'");
    says(p.dsn, "uninstall --yes-drop-schema queues", 3, "it is in use: node n1 (it sleeps)");
    pg_run(p.conn,
           "delete from queues.node; select * from queues.schedule('one'); update queues.scheduler "
           "set until = clock_timestamp() + interval '9 s' where term > 0");
    says(p.dsn, "uninstall --yes-drop-schema queues", 3, "scheduler one");
    pg_run(p.conn, "update queues.scheduler set until = now(); select queues.push('a', '1')");
    pg_run(p.conn,
           "update queues.scheduler set until = '-infinity'; select * from queues.claim('n2')");
    says(p.dsn, "uninstall --yes-drop-schema queues", 3, "node n2 (a lease until ");
    check(&p, "1", there);
    says(p.dsn, "uninstall --yes-drop-schema queues --force", 0, "dropped");
    check(&p, "0", there);
    PQfinish(p.conn);
}

static void
what_is_not_its_own_stays(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "stays");
    pg_run(p.conn,
           "create table queues.queue_before_queuetop (); create table queues.\"my, table\" ()");
    says(p.dsn, "uninstall --yes-drop-schema queues --force", 3,
         "not the queue's: my,  table, queue_before_queuetop");
    pg_run(p.conn, "drop table queues.queue_before_queuetop; drop table queues.\"my, table\"");
    pg_run(p.conn,
           "create view public.backlog as select queue, count(*) from queues.queue group by 1");
    says(p.dsn, "uninstall --yes-drop-schema queues", 3,
         "these would be dropped, too: view public.backlog");
    check(&p, "1", there);
    says(p.dsn, "uninstall --yes-drop-schema queues --force", 0, "dropped");
    check(&p, "0", "select count(*) from pg_views where viewname = 'backlog'");
    PQfinish(p.conn);
}

/* Answers the question of `uninstall` after something has been made. */
static void
answers(struct place *p, const char *option, const char *make, int code, const char *text)
{
    const char *argv[] = {getenv("QUEUETOP"), "uninstall", p->dsn, option, NULL};
    struct vt vt;

    vt_spawn(&vt, 24, 140, argv, NULL);
    vt_want(&vt, "Type the name of the schema");
    pg_run(p->conn, "%s", make);
    vt_type(&vt, "queues\n");
    vt_want(&vt, text);
    assert_int_equal(vt_exit_status(&vt), code);
    vt_done(&vt);
}

/* The user has not seen it. */
static void
what_comes_during_the_question_stays(void **state)
{
    static const struct {
        const char *option, *make, *says, *unmake;
    } things[] = {
        {NULL,      "create view public.late as select queue from queues.queue",
         "these would be dropped, too: view public.late",                                                                                               "drop view public.late"      },
        {NULL,      "create table queues.late ()",                                                "the tables in schema queues are others than before",
         "drop table queues.late"                                                                                                                                                    },
        {"--force", "create table queues.late ()",
         "the tables in schema queues are others than before",                                                                                          "drop table queues.late"     },
        {NULL,      "create function queues.late() returns int language sql as 'select 1'",
         "the functions in schema queues are others than before",                                                                                       "drop function queues.late()"},
        {NULL,      "select queues.node_start('n1', gen_random_uuid(), 'h', 1, '1', 1, null, 1)",
         "it is in use: node n1 (last heartbeat ",                                                                                                      "delete from queues.node"    },
    };
    struct place p;

    (void)state;
    enter(&p, "late");
    for (size_t i = 0; i < sizeof things / sizeof *things; i++) {
        answers(&p, things[i].option, things[i].make, 3, things[i].says);
        check(&p, "1", there);
        pg_run(p.conn, "%s", things[i].unmake);
    }
    answers(&p, NULL, "select 1", 0, "dropped");
    check(&p, "0", there);
    PQfinish(p.conn);
}

/* Objects in any schema that the server would drop, too, are named before the uninstall. */
static void
what_hangs_on_it_is_named(void **state)
{
    static const struct {
        const char *make, *named;
    } things[] = {
        {"create table public.states (s queues.job_state)",                               "column s of table public.states"},
        {"create table public.numbers (n bigint default nextval('queues.job_seq'))",
         "default value for column n of table public.numbers"                                                              },
        {"create table public.keys (q text references queues.queue_config)",
         "constraint keys_q_fkey on table public.keys"                                                                     },
        {"create table public.checked (a text check (queues.error_key(a) <> 'x'))",
         "constraint checked_a_check on table public.checked"                                                              },
        {"create view public.backlog as select 1 as n from queues.queue;"
         "create materialized view public.kept as select * from public.backlog", "materialized view public.kept"  },
        {"create function public.f(queues.queue) returns int language sql as 'select 1'",
         "function public.f("                                                                                              },
        {"create domain public.state as queues.job_state",                                "type public.state"              },
        {"create schema parts; create table parts.piece partition of queues.history for values from"
         " ('2001-01-01') to ('2001-01-02')",                                    "table parts.piece"              },
        {"create function queues.mine() returns int language sql as 'select 1'",          "function mine"                  },
        {"create type queues.colour as enum ('red')",                                     "type colour"                    },
        {"create sequence queues.numbers",                                                "sequence numbers"               },
        {"create statistics queues.both on queue, state from queues.queue",               "statistics object"              },
        {"create table public.rows (a text); create policy p on public.rows"
         " using (queues.error_key(a) = 'x')",                                   "policy p on table public.rows"  },
    };

    (void)state;
    struct place model;
    enter(&model, "hangs");
    PQfinish(model.conn);
    for (size_t i = 0; i < sizeof things / sizeof *things; i++) {
        struct place p;
        char name[20];
        snprintf(name, sizeof name, "hangs%zu", i);
        snprintf(p.dsn, sizeof p.dsn, "%s", pg_copydb(name, "hangs"));
        p.conn = pg_connect(p.dsn);
        pg_run(p.conn, "%s", things[i].make);
        says(p.dsn, "uninstall --yes-drop-schema queues", 3, "these would be dropped, too: ");
        says(p.dsn, "uninstall --yes-drop-schema queues", 3, things[i].named);
        check(&p, "1", there);
        PQfinish(p.conn);
    }
}

static void
roles_go_where_nobody_needs_them(void **state)
{
    struct place p;

    (void)state;
    enter(&p, "roles");
    assert_int_equal(
        proc_run(NULL, NULL, NULL,
                 "-d \"%s\" install --schema q --viewer v --worker w --operator o --pusher u",
                 p.dsn),
        0);
    pg_run(p.conn, "create table mine (); grant select on mine to w");
    says(p.dsn,
         "uninstall --schema q --yes-drop-schema q --drop-roles --viewer v --worker w --operator o "
         "--pusher u",
         0, "role w is kept: ");
    check(&p, "w",
          "select string_agg(rolname, ',') from pg_roles where rolname in ('v', 'w', 'o', 'u')");
    check(&p, "1", there); /* the other one is as it was */
    pg_run(p.conn, "drop table mine; drop role w");
    PQfinish(p.conn);
}

static void
who_may_not_install_is_told_why(void **state)
{
    struct place p;
    char dsn[400];

    (void)state;
    enter(&p, "denied");
    pg_run(p.conn, "create role plain login");
    snprintf(dsn, sizeof dsn, "host=%s user=plain dbname=denied", pg_host());
    says(dsn, "install --schema mine", 3,
         "plain may not create a schema in database denied: its owner can install, or GRANT CREATE "
         "ON DATABASE denied TO plain");
    says(dsn, "install", 3,
         "schema queues belongs to postgres, and plain is not a member of that role");
    says(dsn, "install --dry-run", 3, "install as its owner");
    says(dsn, "migrate", 3, "install as its owner");
    says(dsn, "uninstall --yes-drop-schema queues", 3,
         "schema queues belongs to postgres, and plain is not");
    pg_run(p.conn, "drop role plain");
    PQfinish(p.conn);
}

static void
the_audit_is_purged_by_its_own_verb(void **state)
{
    struct place p;
    char dsn[400];

    (void)state;
    enter(&p, "audit");
    pg_run(p.conn, "select queues.pause(gen_random_uuid(), 'q7')");
    pg_run(p.conn,
           "with made as (insert into queues.audit select (jsonb_populate_record(a,"
           " jsonb_build_object('action', gen_random_uuid(), 'queue', 'x' || i))).* from"
           " queues.audit a, generate_series(1, 2499) i returning action)"
           " insert into queues.audit_batch select (jsonb_populate_record(b,"
           " jsonb_build_object('action', made.action))).* from queues.audit_batch b, made");
    pg_run(p.conn, "update queues.audit set at = now() - interval '100 d' where queue <> 'q7'");
    says(p.dsn, "purge-audit", 2, "--older-than 90d");
    says(p.dsn, "purge-audit --older-than 1h", 2, "too short");
    says(p.dsn, "purge-audit --older-than 90d --dry-run", 0,
         ": 2499, with 2499 batches, the oldest of ");
    says(p.dsn, "purge-audit --older-than 90d", 2, "nobody to ask");
    says(p.dsn, "purge-audit --older-than 200d --yes", 1, ": 0, with 0 batches");
    check(&p, "2500", "select count(*) from queues.audit");
    says(p.dsn, "purge-audit --older-than 90d --yes --reason 'old'", 0, "2499 actions forgotten");
    check(&p, "pause,purge audit", "select string_agg(verb, ',' order by verb) from queues.audit");
    check(&p, "3 2499 old",
          "select concat_ws(' ', batches, changed, reason) from queues.audit_log where verb = "
          "'purge audit'");
    assert_string_equal(
        pg_try(p.conn, "select * from queues.purge_audit(gen_random_uuid(), 1, now())"), "QT007");
    pg_run(
        p.conn,
        "create role op login in role queues_operator; create role vi login in role queues_viewer");
    snprintf(dsn, sizeof dsn, "host=%s user=vi dbname=audit", pg_host());
    pg_run(p.conn, "update queues.audit set at = now() - interval '100 d' where queue = 'q7'");
    says(dsn, "purge-audit --older-than 90d --yes", 3,
         "the audit belongs to role postgres: only that role and its members may purge it");
    snprintf(dsn, sizeof dsn, "host=%s user=op dbname=audit", pg_host());
    says(dsn, "purge-audit --older-than 90d --yes", 3, "the audit belongs to role postgres");
    says(dsn, "purge-audit --older-than 90d --dry-run", 0, ": 1, with 1 batches");
    PGconn *op = pg_connect(dsn); /* an operator can't erase the audit */
    assert_string_equal(pg_try(op, "select * from queues.purge_audit(gen_random_uuid(), 1, now() -"
                                   " interval '2 days')"),
                        "42501");
    PQfinish(op);
    check(&p, "1", "select count(*) from queues.audit where queue = 'q7'");
    says(p.dsn, "purge-audit --older-than 90d --yes", 0, "1 action forgotten");
    PQfinish(p.conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_when_its_name_is_said),
        cmocka_unit_test(living_workers_keep_it),
        cmocka_unit_test(what_is_not_its_own_stays),
        cmocka_unit_test(what_comes_during_the_question_stays),
        cmocka_unit_test(what_hangs_on_it_is_named),
        cmocka_unit_test(roles_go_where_nobody_needs_them),
        cmocka_unit_test(who_may_not_install_is_told_why),
        cmocka_unit_test(the_audit_is_purged_by_its_own_verb),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
