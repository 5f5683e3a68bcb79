/*
 * How many keys the commonest tasks take: each is done with the keys of the table in a console that
 * was just opened, and the keys are counted.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 6 };

struct task {
    const char *name;
    int most; /* keys; a typed text counts as one */
    int rows, cols;
    void (*setup)(void);
    /* What is typed, and what the screen shows then; {0} ends them. */
    struct {
        const char *keys, *want;
    } steps[STEPS];
    const char *sql, *result; /* what is true in the end; NULL = only the screen counts */
};

/* --- databases -------------------------------------------------------------------------------- */

/* A dead node that holds leases is the worst; then a queue with failures. */
static void
trouble(void)
{
    con_running("mail", 2, "gone");
    con_failed("fax", 12, "no paper");
    con_node("gone", false); /* last: a claim might take its leases back */
}

/* All of its limit of two is in use. */
static void
at_its_limit(void)
{
    con_running("image", 2, "node-a");
    con_node("node-a", true);
    pg_run(con_db(), "select set_queue(gen_random_uuid(), 'image', '{\"max_running\": 2}')");
    con_ready("image", 3);
    pg_run(con_db(), "select fold_now()");
    pg_run(con_db(), "update counter set oldest = now() - interval '10 min' where ready > 0");
    pg_run(con_db(), "update queue set kind = 'the oldest', run_after = run_after - interval '1 h' "
                     "where seq = (select min(seq) from queue where state = 'ready' and seq not in "
                     "(select unnest(seqs) from work_queue where lock_key is not null))");
}

static void
failures(void)
{
    con_failed("fax", 3, "no paper");
    con_failed("mail", 2, "boom");
}

static void
payloads(void)
{
    con_ready("mail", 3);
    pg_run(con_db(), "select push('mail', '{\"customer\": \"acme\"}'::json)");
}

static void
paused(void)
{
    con_ready("mail", 3);
    pg_run(con_db(), "select pause(gen_random_uuid(), 'mail', 'lunch')");
}

/* --- the table -------------------------------------------------------------------------------- */

/* Two errors on a node that lives, and one of another. */
static void
failing_node(void)
{
    con_failed("fax", 3, "no paper");
    pg_run(con_db(),
           "update attempt set node = 'other' where job = (select min(id::text)::uuid from queue)");
    con_node("tester", true);
}

/* clang-format off */
static const struct task tasks[] = {
    {"what is wrong at all", 0, 24, 80, trouble,
     {{"", "× gone"}, {"", "▲ fax"}, {"", "BAD"}}, NULL, NULL},
    {"go to what the first alert says", 1, 24, 80, trouble,
     {{"", "× gone"}, {"!", "›× gone"}}, NULL, NULL},
    {"release the leases of the dead node", 4, 24, 80, trouble,
     {{"", "× gone"}, {"!", "›× gone"}, {"L", "Release leases: gone"}, {"enter", "2 jobs → ready"}, {"y", "release: "}},
     "select count(*) from work_queue where lock_key = 'gone'", "0"},
    {"why does this queue stand", 1, 24, 100, at_its_limit,
     {{"enter", "limit: all of 2 in use"}}, NULL, NULL},
    {"raise its limit", 5, 24, 80, at_its_limit,
     {{"enter", "queues › image"}, {"l", "Limits of queue: image"}, {"text:7 enter", "max_running 7, was 2"},
      {"y", "queue: 1 queue set"}},
     "select max_running from queue_config where queue = 'image'", "7"},
    {"the oldest ready job of a queue", 2, 24, 80, at_its_limit,
     {{"enter", "next to start, first on top"}, {"", "the oldest"}, {"enter", "kind the oldest"}}, NULL, NULL},
    {"what runs in this queue, how long", 1, 40, 80, at_its_limit,
     {{"enter", "running, longest on top"}, {"", "node-a"}}, NULL, NULL},
    {"failures of this queue", 2, 24, 80, failures,
     {{"enter", "queues › "}, {"3", " › failed"}, {"", "filter queue:"}, {"", "1 error"}}, NULL, NULL},
    {"on which nodes does this error happen", 1, 45, 140, failures,
     {{"3", "who and what"}, {"", "tester"}}, NULL, NULL},
    {"follow what happens now", 1, 24, 80, failures,
     {{"F", "is followed on all screens"}}, NULL, NULL},
    {"failed jobs of a node", 3, 24, 80, failing_node,
     {{"4", "tester"}, {"enter", "nodes › tester"}, {"3", "filter state:failed node:tester"}, {"", "1 of 2"}}, NULL, NULL},
    {"pause a queue", 4, 24, 80, payloads,
     {{"p", "Pause queue: mail"}, {"text:why enter", "y yes"}, {"y", "pause: "}},
     "select pause_reason from queue_config where queue = 'mail'", "why"},
    {"resume a queue", 2, 24, 80, paused,
     {{"p", "mail goes on"}, {"y", "resume: 1 queue"}},
     "select paused_at is null from queue_config where queue = 'mail'", "t"},
    {"find a job by its payload", 3, 24, 80, payloads,
     {{"/ text:payload~acme enter", "filter payload~acme"}, {"", "1 of 1"}}, NULL, NULL},
    {"was it so last night", 3, 45, 140, payloads,
     {{"enter", "x: 1 h"}, {"x", "x: 24 h"}}, NULL, NULL},
};
/* clang-format on */
enum { TASKS = (int)(sizeof tasks / sizeof *tasks) };

static int
count_keys(const char *keys)
{
    int n = 0;

    while (*(keys += strspn(keys, " "))) {
        n++;
        keys += strcspn(keys, " ");
    }
    return n;
}

/* Types keys and waits for what the screen shows then. Returns the number of keys. */
static int
press(struct vt *vt, const char *keys, const char *want)
{
    if (*keys)
        vt_keys(vt, keys);
    vt_want(vt, want);
    return count_keys(keys);
}

static void
is_at_most(const char *name, int keys, int most)
{
    if (keys > most)
        fail_msg("%s: %d keys, at most %d are meant", name, keys, most);
}

static void
does_task(void **state)
{
    const struct task *t = *state;
    struct vt vt;
    int keys = 0;

    t->setup();
    con_start(&vt, t->rows, t->cols, NULL);
    vt_want(&vt, "›"); /* rows */
    for (int i = 0; i < STEPS && t->steps[i].keys; i++)
        keys += press(&vt, t->steps[i].keys, t->steps[i].want);
    if (t->sql)
        pg_wait(con_db(), t->sql, t->result, 10000);
    is_at_most(t->name, keys, t->most);
    con_quit(&vt);
}

/* A session that holds back vacuum: its pid is what is typed. */
static void
ends_what_holds_vacuum_back(void **state)
{
    struct vt vt;
    char keys[60], sql[120];

    (void)state;
    con_ready("mail", 1);
    PGconn *etl = pg_connect(con_dsn());
    pg_run(etl, "set application_name = 'etl'");
    pg_run(etl, "begin");
    pg_run(etl, "select pg_current_xact_id()");
    snprintf(keys, sizeof keys, "text:%d enter", PQbackendPID(etl));
    snprintf(sql, sizeof sql, "select count(*) from pg_stat_activity where pid = %d",
             PQbackendPID(etl));
    con_start(&vt, 24, 80, NULL);
    int n = press(&vt, "7", "etl");
    n += press(&vt, "K", "End a session");
    vt_want(&vt, "Type the pid");
    n += press(&vt, keys, "1 session told to end");
    pg_wait(con_db(), sql, "0", 60000);
    is_at_most("end what holds back vacuum", n, 4);
    con_quit(&vt);
    PQfinish(etl);
}

/* Ten first; all are done, so y is enough for the rest. */
static void
requeues_a_group_with_care(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 105, "no paper");
    con_start(&vt, 24, 80, NULL);
    int keys = press(&vt, "3", "no paper");
    keys += press(&vt, "r", "first 10, then ask");
    keys += press(&vt, "enter", "10");
    for (int i = 0; i < 600 && pg_int(con_db(), "select count(*) from history") < 10; i++) {
        pg_run(con_db(), "select complete_job('w', lease, version, seq) "
                         "from claim('w', 10, queues => '{fax}')");
        vt_came(&vt, "what never comes", 100);
    }
    vt_want(&vt, "The other 95?");
    keys += press(&vt, "y", "requeue: 95 jobs");
    is_at_most("requeue a group with care", keys, 4);
    assert_int_equal(con_count("state = 'failed'"), 0);
    con_quit(&vt);
}

static void
is_one_test(struct CMUnitTest *to, const struct task *t)
{
    *to = (struct CMUnitTest){.name = t->name, .test_func = does_task, .setup_func = con_empty};
    to->initial_state = (void *)(uintptr_t)t;
}

int
main(void)
{
    struct CMUnitTest tests[TASKS + 2];

    for (int i = 0; i < TASKS; i++)
        is_one_test(&tests[i], &tasks[i]);
    tests[TASKS] =
        (struct CMUnitTest)cmocka_unit_test_setup(ends_what_holds_vacuum_back, con_empty);
    tests[TASKS + 1] =
        (struct CMUnitTest)cmocka_unit_test_setup(requeues_a_group_with_care, con_empty);
    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
