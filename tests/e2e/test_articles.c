/*
 * The card of an operator on the tables of the five articles, by key at 80x24: what waits, what
 * runs and until when, what failed; requeue one and all, release, extend, purge. Each act is looked
 * up in the tables, and what an article lacks is refused with the sentence that helps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/engine.h"
#include "tests/harness.h"
#include "tests/server.h"

struct step {
    const char *keys, *wants[3];
    const char *answer, *said; /* the keys that answer the question, the message at the end */
    const char *sql, *value;   /* what the tables have then */
};

static void
walk(const char *adapter, const char *change, const char *counts, const struct step *steps, int n)
{
    static char dsn[500];
    const char *argv[] = {getenv("QUEUETOP"), dsn, NULL};
    PGconn *c = pg_fixture(adapter, adapter);
    char queue[40];
    struct vt vt;

    pg_run(c, "%s", change);
    snprintf(dsn, sizeof dsn, "%s", pg_dsn(adapter));
    snprintf(queue, sizeof queue, "%.*s", (int)strcspn(counts, " "), counts);
    vt_spawn(&vt, 24, 80, argv, NULL);
    vt_want(&vt, "live");
    engine_counts(&vt, queue, counts + strlen(queue) + 1);
    for (const struct step *s = steps; s < steps + n; s++) {
        vt_keys(&vt, s->keys);
        for (int i = 0; i < 3 && s->wants[i]; i++)
            vt_want(&vt, s->wants[i]);
        if (s->answer)
            vt_keys(&vt, s->answer);
        if (s->said)
            vt_want(&vt, s->said);
        if (s->sql)
            pg_wait(c, s->sql, s->value, 5000);
    }
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    PQfinish(c);
}

#define WALK(adapter, change, counts, ...)                                  \
    do {                                                                    \
        const struct step steps[] = {__VA_ARGS__};                          \
        walk(adapter, change, counts, steps, sizeof steps / sizeof *steps); \
    } while (0)
#define PURGE(queue, age, number, message, check, is)                                          \
    {"1 / text:" queue " enter", {"queues › " queue}, NULL, NULL, NULL, NULL},                 \
        {"P", {"Purge finished jobs"}, "tab tab C-u text:" age " enter", "Type " number, NULL, \
         NULL},                                                                                \
    {                                                                                          \
        "text:" number " enter", {NULL}, NULL, message, check, is                              \
    }

#define ID(n) "'00000000-0000-7000-8000-0000000000" #n "'"

static void
piechut(void **state)
{
    (void)state;
    WALK("work_queue_table",
         "insert into queues.queue (id, queue, state, tries) select ('00000000-0000-7000-8000-"
         "0000000000' || i)::uuid, 'mail', 'FAILED', 3 from generate_series(21, 22) i",
         "mail 2 2 2 1 1",
         {
             "4", {"2 unknown", "1 over", "node-2 leases (1)"},
              NULL, NULL, NULL, NULL
    },
         {"L enter",
          {"Type 1 to go on", "done twice"},
          "text:1 enter",
          "release: 1 job ready",
          "select count(*) from queues.work_queue where lock_key = 'node-2'",
          "0"},
         {"", {"node-1 leases (2)"}, NULL, NULL, NULL, NULL},
         {"E enter",
          {"2 leases → extended"},
          "y",
          "extend: 2 leases extended",
          "select count(*) from queues.work_queue where lock_timeout > now() + interval '4 min'",
          "2"},
         {"L tab space enter",
          {"Its leases still hold"},
          "esc",
          NULL,
          "select count(*) from queues.work_queue where lock_key = 'node-1'",
          "2"},
         {"3", {"these are the failed jobs", "1 of 3"}, NULL, NULL, NULL, NULL},
         {"r",
          {"1 job → ready"},
          "y",
          "requeue: 1 job ready",
          "select state from queues.queue where id = " ID(22),
          "PENDING"},
         {"", {"1 of 2"}, NULL, NULL, NULL, NULL},
         {"R",
          {"Requeue 2 jobs"},
          "y",
          "requeue: 2 jobs ready",
          "select count(*) from queues.queue where state = 'FAILED'",
          "0"},
         PURGE("report", "1d", "1", "purge: 1 job purged",
               "select count(*) from queues.queue where state = 'COMPLETED'", "0"),
         {"p", {"stop the scheduler"}, NULL, NULL, NULL, NULL});
}

static void
postqueue(void **state)
{
    (void)state;
    WALK("jobs_table",
         "update jobs set visibility_at = now() + interval '1 min' where id = 'job-06'",
         "default 3 1 2 0 0",
         {
             "1", {"1 of 1 running job: the lease has ended"},
              NULL, NULL, NULL, NULL
    },
         {"4", {"these are the running jobs", "1 of 4", "over by"}, NULL, NULL, NULL, NULL},
         {"j L",
          {"1 job → ready", "the job is done twice"},
          "text:1 enter",
          "release: 1 job ready",
          "select status from jobs where id = 'job-07'",
          "pending"},
         {"", {"2 of 3"}, NULL, NULL, NULL, NULL},
         {"/ C-u text:id:job-06 enter", {"filter id:job-06", "1 of 1"}, NULL, NULL, NULL, NULL},
         {"E enter",
          {"1 lease → extended"},
          "y",
          "extend: 1 lease extended",
          "select visibility_at > now() + interval '4 min' from jobs where id = 'job-06'",
          "t"},
         /* nine minutes are left: nothing is changed */
         {"/ C-u text:id:job-05 enter", {"filter id:job-05", "1 of 1"}, NULL, NULL, NULL, NULL},
         {"E enter",
          {"1 lease left alone: extend takes only running jobs"},
          NULL,
          NULL,
          "select status from jobs where id = 'job-05'",
          "in_transit"},
         {"3", {"no attempts left", "expired before it was done"}, NULL, NULL, NULL, NULL},
         {"r",
          {"Requeue 1 job of default", "removed for good"},
          "y",
          "requeue: 1 job ready",
          "select status || ' ' || (expires_at is null) from jobs where id = 'job-09'",
          "pending true"},
         {"", {"1 of 1"}, NULL, NULL, NULL, NULL},
         {"R",
          {"Requeue 1 job"},
          "y",
          "requeue: 1 job ready",
          "select attempts from jobs where id = 'job-08'",
          "3"},
         PURGE("default", "2h", "1", "purge: 1 job purged",
               "select string_agg(id, ' ') from jobs where status = 'completed'", "job-11"),
         {"p", {"stop them in their own program"}, NULL, NULL, NULL, NULL});
}

static void
pkgsite(void **state)
{
    (void)state;
    WALK("queue_tasks_table",
         "insert into queue_tasks (task_name, module_path, version, started_at, completed_at, "
         "success, failure) select 'again ' || i, 'm', 'v1', now() - interval '2 h', now() - "
         "interval '2 h', false, 'no disk ' || i "
         "from generate_series(1, 2) i",
         "queue_tasks 2 3 3 0 0",
         {
             "1", {"1 of 3 running jobs: the lease has ended"},
              NULL, NULL, NULL, NULL
    },
         {"4", {"these are the running jobs", "1 of 3", "over by"}, NULL, NULL, NULL, NULL},
         {"j L",
          {"1 job → ready", "the task is done twice"},
          "text:1 enter",
          "release: 1 job ready",
          "select started_at is null from queue_tasks where id = 4",
          "t"},
         {"/ C-u text:id:3 enter", {"filter id:3", "1 of 1"}, NULL, NULL, NULL, NULL},
         {"E enter",
          {"1 lease → extended"},
          "y",
          "extend: 1 lease extended",
          "select leased_until > now() + interval '4 min' from queue_tasks where id = 3",
          "t"},
         {"3", {"no module at N"}, NULL, NULL, NULL, NULL},
         {"j r",
          {"Requeue 1 job of queue_tasks"},
          "y",
          "requeue: 1 job ready",
          "select num_nonnulls(started_at, completed_at) from queue_tasks where id = 7",
          "0"},
         {"", {"1 of 1"}, NULL, NULL, NULL, NULL},
         {"R",
          {"Requeue 2 jobs", "y yes"},
          "y",
          "requeue: 2 jobs ready",
          "select count(*) from queue_tasks where task_name like 'again %' and num_nonnulls("
          "started_at, completed_at) = 0",
          "2"},
         PURGE("queue_tasks", "1h", "1", "purge: 1 job purged",
               "select string_agg(id::text, ' ' order by id) from queue_tasks where id < 8",
               "1 2 3 4 5 7"),
         {"p", {"stop them in their own program"}, NULL, NULL, NULL, NULL});
}

static void
teti(void **state)
{
    (void)state;
    WALK("tasks_table", "alter table tasks drop error_message, drop priority", "tasks 2 2 2 0 0",
         {
             "4", {"these are the running jobs", "1 of 2", "for 5h 0"},
              NULL, NULL, NULL, NULL
    },
         {"E", {"a running job has no lease that could end"}, NULL, NULL, NULL, NULL},
         {"L",
          {"Nothing tells whether its worker is alive"},
          "text:1 enter",
          "release: 1 job ready",
          "select status from tasks where id = 4",
          "pending"},
         {"3", {"these are the failed jobs", "1 of 2"}, NULL, NULL, NULL, NULL},
         {"r",
          {"1 job → ready"},
          "y",
          "requeue: 1 job ready",
          "select status from tasks where id = 6",
          "pending"},
         {"", {"1 of 1"}, NULL, NULL, NULL, NULL},
         {"R",
          {"Requeue 1 job"},
          "y",
          "requeue: 1 job ready",
          "select count(*) from tasks where status = 'failed'",
          "0"},
         PURGE("tasks", "1h", "2", "purge: 2 jobs purged",
               "select string_agg(id::text, ' ') from tasks where status in ('completed', "
               "'cancelled')",
               "8"),
         {"p", {"stop them in their own program"}, NULL, NULL, NULL, NULL});
}

static void
blabosoft(void **state)
{
    (void)state;
    WALK("simple_queue_table", "select", "simple_queue 2 2 3 0 0",
         {
             "4", {"these are the running jobs", "1 of 2", "for "},
              NULL, NULL, NULL, NULL
    },
         {"E", {"a running job has no lease that could end"}, NULL, NULL, NULL, NULL},
         {"L",
          {"Nothing tells whether its worker is alive"},
          "text:1 enter",
          "release: 1 job ready",
          "select count(*) from simple_queue where processing_started_at is null",
          "3"},
         {"3", {"no answer from host N", "disk full"}, NULL, NULL, NULL, NULL},
         {"r",
          {"2 jobs", "The text of the error is removed"},
          "text:2 enter",
          "requeue: 2 jobs ready",
          "select string_agg(errors, ' ') from simple_queue where errors is not null",
          "disk full"},
         {"", {"1 of 1"}, NULL, NULL, NULL, NULL},
         {"R",
          {"1 job", "The text of the error is removed"},
          "text:1 enter",
          "requeue: 1 job ready",
          "select count(errors) from simple_queue",
          "0"},
         {"1", {"simple_queue"}, NULL, NULL, NULL, NULL},
         {"P", {"delete --state failed removes failed ones"}, NULL, NULL, NULL, NULL});
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(piechut), cmocka_unit_test(postqueue), cmocka_unit_test(pkgsite),
        cmocka_unit_test(teti),    cmocka_unit_test(blabosoft),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
