/*
 * The other ways into a database full of traps (trap.h): through a pooler, by the library, by an
 * adoption, and to the tables of other queue systems.
 */
#include "tests/e2e/trap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/worker/queuetop.h"
#include "tests/bouncer.h"
#include "tests/proc.h"

enum { BOUNCER_PORT = 17432 };

/* Programs that come through a pooler work in the search path of the pooler's session: the traps
 * must not catch them there. */
static void
through_a_pooler(void **state)
{
    struct proc scheduler, worker;
    char where[300];

    (void)state;
    trap_installed(trap_paths[1]);
    pid_t bouncer = bouncer_start(BOUNCER_PORT, NULL, 2);
    snprintf(where, sizeof where, "host=%s port=%d dbname=%s user=postgres", pg_host(),
             BOUNCER_PORT, trap_name());
    proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", where);
    proc_want(&scheduler, "is active");
    proc_queuetop(&worker, NULL, "-d \"%s\" work -- cat", where);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" push mail --payload 1", where), 0);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" push mail --payload 2", where), 0);
    pg_wait(trap_db(), "select count(*) from queues.history where state = 'completed'", "2",
            PROC_WAIT_MS);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" queues", where), 0);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" pause mail -y", where), 0);
    proc_ends(&worker);
    proc_done(&worker);
    proc_ends(&scheduler);
    proc_done(&scheduler);
    bouncer_stop(bouncer);
    trap_none_sprung("through a pooler");
}

static enum queuetop_outcome
done(void *ctx, const struct queuetop_task *task)
{
    (void)task;
    ++*(int *)ctx;
    return QUEUETOP_DONE;
}

/* The library gets a connection whose search path the calling program has set like this. */
static void
the_library(void **state)
{
    struct queuetop_error e = {0};
    struct proc scheduler;
    char where[300], id[37];
    int n = 0;

    (void)state;
    for (int p = 0; p < 2; p++) {
        trap_installed(trap_paths[p]);
        snprintf(where, sizeof where, "host=%s dbname=%s user=app", pg_host(), trap_name());
        PGconn *conn = pg_connect(where);
        pg_run(conn, "set search_path = public, pg_catalog");
        struct queuetop_push job = queuetop_job("mail", "{\"a\": 1}");
        assert_int_equal(queuetop_push(conn, NULL, &job, id, &e), 1);
        job.unique_key = "k";
        job.delay_ms = 1;
        assert_int_equal(queuetop_push(conn, NULL, &job, id, &e), 1);
        job = queuetop_job("mail", "abc");
        job.type = "text/plain";
        assert_int_equal(queuetop_push(conn, NULL, &job, id, &e), 1);
        proc_queuetop(&scheduler, NULL, "-d \"%s\" schedule", where);
        proc_want(&scheduler, "is active");
        struct queuetop_options o = {
            .conninfo = where, .jobs = 2, .drain = true, .fn = done, .ctx = &n};
        struct queuetop_worker *w = queuetop_worker_new(&o, &e);
        assert_non_null(w);
        pg_wait(trap_db(), "select count(*) from queues.queue where state = 'scheduled'", "0",
                PROC_WAIT_MS);
        assert_true(queuetop_worker_run(w, &e));
        queuetop_worker_free(w);
        proc_ends(&scheduler);
        proc_done(&scheduler);
        PQfinish(conn);
        trap_none_sprung("the library");
        assert_int_equal(n, 3 * (p + 1));
    }
}

static const char plain[] =
    "create schema old; create table old.queue (id uuid not null primary key, created timestamp not"
    " null default now(), version integer not null default 0, queue varchar(255) not null, state"
    " varchar(40) not null, tries integer not null default 0, delay bigint, run_after timestamp,"
    " payload bytea, payload_type varchar(255)); create table old.work_queue (id uuid primary key"
    " references old.queue, version integer not null default 0, batch_order integer not null"
    " default 0, started timestamp, lock_key varchar(255), lock_timeout timestamp);"
    "insert into old.queue (id, queue, state, payload, payload_type) select gen_random_uuid(),"
    " 'mail', s, '{}', 'application/json' from unnest('{PENDING,RETRY,FAILED,COMPLETED,PENDING}'"
    "::text[]) s; update old.queue set run_after = now() + interval '1 h' where state = 'RETRY';"
    "insert into old.work_queue (id, lock_key, lock_timeout, started) select id, 'n', now() +"
    " interval '1 h', now() from old.queue where state = 'PENDING' limit 1";

static void
adopts(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        trap_enter("adopts", trap_paths[p]);
        pg_run(trap_db(), "%s", plain);
        trap_run("postgres", 0, "install --adopt --adopt-from old --adopt-zone UTC --dry-run");
        trap_run("postgres", 0, "install --adopt --adopt-from old --adopt-zone UTC");
        assert_int_equal(pg_int(trap_db(), "select count(*) from queues.queue"), 4);
    }
}

/* Other queue systems, each in a schema of its own: all their sections, those that act are rolled
 * back. Not Que, whose triggers belong into public, where they would find the traps themselves. */
static void
other_systems(void **state)
{
    static const char *const names[] = {"delayed_job",
                                        "django_tasks",
                                        "good_job",
                                        "graphile_worker",
                                        "minion",
                                        "oban",
                                        "pgboss",
                                        "pgmq",
                                        "pgq",
                                        "pgqueue_lib",
                                        "pgqueuer",
                                        "procrastinate",
                                        "river",
                                        "simple_queue_table",
                                        "work_queue_table",
                                        "queue_tasks_table",
                                        "tasks_table",
                                        "jobs_table",
                                        "solid_queue"};
    /* `adapter check` runs every section of each, as these verbs do, so some systems serve for the
     * verbs of one section */
    static const char *const verbs[] = {"queues", "jobs --json", "adapter check", "check",
                                        "nodes",  "leases",      "failures",      "cron list"};
    enum { FOR_ALL = 4 };
    char line[200], file[200];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (i == 0 || strstr(names[i], "_table")) /* these bring tables in public */
            trap_enter("other", trap_paths[i % 2]);
        pg_run(trap_db(),
               "discard temp; set search_path = pg_catalog; do $$ declare s text; begin for s in"
               " select nspname from pg_namespace where nspname !~ '^pg_|^public$|^info'"
               " loop execute format('drop schema %%I cascade', s); end loop; end $$;"
               " create schema other; set search_path = other, pg_catalog");
        snprintf(file, sizeof file, "tests/adapters/%s.sql", names[i]);
        pg_file(trap_db(), file);
        bool serves = strstr("pgboss river queue_tasks_table", names[i]) != NULL;
        for (size_t v = 0; v < (serves ? sizeof verbs / sizeof *verbs : FOR_ALL); v++) {
            char *out, *err;
            snprintf(line, sizeof line, "--adapter %s %s %s %s", names[i],
                     strcmp(names[i], "pgqueuer") ? "" : "--schema other", verbs[v],
                     strcmp(verbs[v], "adapter check") ? "" : names[i]);
            int code = proc_run(NULL, &out, &err, "-d \"%s\" %s", pg_dsn("other"), line);
            trap_none_sprung(line);
            bool judged = !strcmp(verbs[v], "check") && strstr(out, " | '"); /* 2 = CRITICAL */
            if (code > 1 && !judged && !(code == 3 && strstr(err, "does not")))
                fail_msg("%s: exit code %d: %s%s", line, code, err, out);
            free(out);
            free(err);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(through_a_pooler),
        cmocka_unit_test(the_library),
        cmocka_unit_test(adopts),
        cmocka_unit_test(other_systems),
    };

    return cmocka_run_group_tests(tests, trap_setup, trap_teardown);
}
